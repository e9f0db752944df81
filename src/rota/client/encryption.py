"""Encryption of arguments and results at rest: `Rota(codec=Encrypted(keys))`. Requires the extra `rota[encryption]`."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Final

from rota.core.encrypted_values import MARK
from rota.errors import ConfigurationError, Undecryptable
from rota.install_command import install_command

VARIABLE: Final = "ROTA_ENCRYPTION_KEYS"
#: Of AES-256-GCM.
KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
#: Of the format. It is part of what is authenticated.
VERSION: Final = "1"


def new_key() -> str:
    """Returns a new random key for `Encrypted`."""
    return base64.urlsafe_b64encode(os.urandom(KEY_BYTES)).decode()


class Encrypted:
    """Encrypts arguments and results with AES-256-GCM. The first key encrypts, all keys decrypt.

    A key is 32 random bytes in base64, as `rota encryption-key` prints it. Raises ConfigurationError.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        try:
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ModuleNotFoundError as error:
            raise ConfigurationError(f"encryption requires {error.name}: {install_command('encryption')}") from error
        if isinstance(keys, str) or not keys:
            raise ConfigurationError("Encrypted takes a list of keys; `rota encryption-key` prints a new one")
        decoded = [_decoded(key) for key in keys]
        self._invalid_tag: type[Exception] = InvalidTag
        self._ciphers = {_key_id(key): AESGCM(key) for key in decoded}
        self._key_id = _key_id(decoded[0])
        self._cipher = self._ciphers[self._key_id]

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Encrypted | None:
        """Returns the codec with the keys of ROTA_ENCRYPTION_KEYS, separated by commas; None if it is not set."""
        keys = [key.strip() for key in environment.get(VARIABLE, "").split(",") if key.strip()]
        return cls(keys) if keys else None

    def encrypt(self, value: bytes, bound_to: str) -> str:
        """Returns the value as text."""
        nonce = os.urandom(NONCE_BYTES)
        sealed = nonce + self._cipher.encrypt(nonce, value, f"{VERSION} {bound_to}".encode())
        return f"{MARK}{VERSION}:{self._key_id}:{binascii.b2a_base64(sealed, newline=False).decode()}:{bound_to}"

    def decrypt(self, text: str, bound_to: str | None) -> bytes:
        """Returns the value; `bound_to` None accepts any. Raises Undecryptable."""
        try:
            version, key_id, encoded, bound = text.removeprefix(MARK).split(":", 3)
            sealed = binascii.a2b_base64(encoded, strict_mode=True)
        except ValueError as error:
            raise Undecryptable("the encrypted value was cut or changed") from error
        if version != VERSION:
            raise Undecryptable(f"the value is encrypted in format {version}: upgrade Rota")
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            raise Undecryptable(
                f"the value is encrypted with key {key_id}, which this program does not have: add it to its keys"
            )
        if bound_to is not None and bound != bound_to:
            raise Undecryptable(f"the encrypted value is the {bound}, not the {bound_to}: it was copied")
        try:
            return cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], f"{VERSION} {bound}".encode())
        except (self._invalid_tag, ValueError) as error:
            raise Undecryptable("the encrypted value was changed after it was stored") from error

    def __repr__(self) -> str:
        return f"<Encrypted with keys {', '.join(self._ciphers)}>"


def _decoded(key: str) -> bytes:
    try:
        decoded = base64.urlsafe_b64decode(key.encode())
    except (binascii.Error, ValueError, AttributeError):
        decoded = b""
    if len(decoded) != KEY_BYTES:
        raise ConfigurationError(
            f"an encryption key is not {KEY_BYTES} bytes in base64: `rota encryption-key` prints a new one"
        )
    return decoded


def _key_id(key: bytes) -> str:
    """The name of a key in stored values. It reveals nothing of the key."""
    return hashlib.sha256(b"rota key id" + key).hexdigest()[:8]
