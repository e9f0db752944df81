"""The user whose process is at the other end of a loopback connection, from the kernel's socket tables (Linux)."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from typing import Final

_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_REQUEST: Final = 1
_HEADER: Final = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_QUERY: Final = struct.Struct("=BBBxI")  # family, protocol, extensions, states
_ADDRESSES: Final = struct.Struct("!HH16s16s12s")  # ports, addresses, interface and cookie
_UID_AT: Final = 80
_ANY_COOKIE: Final = b"\0" * 4 + b"\xff" * 8


def peer_uid(client: tuple[str, int], server: tuple[str, int]) -> int | None:
    """Returns the id of the user that opened a loopback connection; None if it is unknown, as outside of Linux.

    Returns -1 if the client has closed its end: the kernel no longer knows whose it was.
    """
    if not hasattr(socket, "AF_NETLINK"):
        return None
    with suppress(OSError, struct.error):
        family = socket.AF_INET6 if ":" in client[0] else socket.AF_INET
        # The client's end of the connection: its own address is that of the client.
        ends = (client[1], server[1], *(socket.inet_pton(family, end[0]) for end in (client, server)))
        query = _QUERY.pack(family, socket.IPPROTO_TCP, 0, 0xFFFFFFFF) + _ADDRESSES.pack(*ends, _ANY_COOKIE)
        header = _HEADER.pack(_HEADER.size + len(query), _SOCK_DIAG_BY_FAMILY, _REQUEST, 0, 0)
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as netlink:
            netlink.settimeout(0.1)
            netlink.send(header + query)
            answer = netlink.recv(1_000)
        kind = _HEADER.unpack_from(answer)[1]
        if kind == _SOCK_DIAG_BY_FAMILY:
            uid, inode = struct.unpack_from("=II", answer, _UID_AT)
            return uid if inode else -1
    return None
