"""Encrypted arguments and results, as the store keeps them. The codec that encrypts is `rota.client.encryption`.

An encrypted value is a JSON string, `"rota:encrypted:1:<key id>:<base64>:<what it is bound to>"`: arguments are never a
string, so a program without the key cannot call a task with it. Arguments that take results of steps are an array of
that string and an object with the results, which the scripts fill in as they are stored, encrypted or not.

Any other value never has a string that begins so: arguments are refused, and results are stored with an escape.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

import msgspec

from rota.errors import InvalidArguments, InvalidOption, Undecryptable

T = TypeVar("T")

MARK: Final = "rota:encrypted:"
_START: Final = b'"' + MARK.encode()
_STARTS: Final = (_START, b"[" + _START)
#: The same in JSON, but not as it is stored.
_ESCAPED_START: Final = b'"\\u0072' + MARK[1:].encode()
#: How names of failure handlers end. Their arguments contain those of the job that failed.
_FAILURE_SUFFIX: Final = ".on_failure"
_PLACEHOLDER: Final = "rota.result."


class Codec(Protocol):
    """Encrypts and decrypts. `bound_to` is authenticated: a value that was copied to another place is refused."""

    def encrypt(self, value: bytes, bound_to: str) -> str:
        """Returns the value as text that begins with `MARK`."""
        ...

    def decrypt(self, text: str, bound_to: str | None) -> bytes:
        """Returns the value; `bound_to` None accepts any. Raises Undecryptable."""
        ...


def is_encrypted(value: bytes) -> bool:
    """True for a value that is stored encrypted."""
    return value.startswith(_STARTS)


def check_not_marked(task: str, arguments: bytes) -> None:
    """Refuses new arguments that would be read as encrypted ones. Raises InvalidArguments."""
    if is_encrypted(arguments):
        raise InvalidArguments(
            task, f"the first argument begins with {MARK!r}, as encrypted values do: pass it by name"
        )


def escape_marks(value: bytes) -> bytes:
    """Returns the same JSON, with an escape in each string that begins as an encrypted value does.

    A list is escaped as a whole: workflows pass its items on as arguments.
    """
    return value.replace(_START, _ESCAPED_START)


def readable(value: bytes) -> bytes:
    """Returns the value for display: one that is encrypted as an object that says so, with the id of its key."""
    if not is_encrypted(value):
        return value
    key_id = value[:100].decode(errors="replace").partition(MARK)[2].split(":")[1:2]
    return msgspec.json.encode({"encrypted": f"with key {''.join(key_id)}"})


def check_are_kept(stored: bytes, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuses new arguments in the place of encrypted ones whose key is missing, except those that `readable` returns.

    A form that shows them and sends them back changes nothing. Raises InvalidOption.
    """
    shown = msgspec.json.decode(readable(stored))
    if args or kwargs != shown:
        raise InvalidOption(
            "arguments",
            f"the stored ones are encrypted {shown['encrypted']}, which this program does not have: "
            "set ROTA_ENCRYPTION_KEYS to change them",
        )


def encrypt_arguments(codec: Codec, task: str, arguments: bytes, placeholders: Iterable[str] = ()) -> bytes:
    """Encrypts the arguments of a task. Placeholders of results stay readable next to them."""
    text = codec.encrypt(arguments, f"arguments of {task}")
    results = {placeholder.removeprefix(_PLACEHOLDER): placeholder for placeholder in placeholders}
    return msgspec.json.encode([text, results] if results else text)


def decrypt_arguments(codec: Codec | None, task: str, arguments: bytes) -> bytes:
    """Decrypts arguments; those that are not encrypted stay as they are. Raises Undecryptable."""
    if task.endswith(_FAILURE_SUFFIX) and _START in arguments:
        error, failed, original = _decode(arguments, tuple[msgspec.Raw, msgspec.Raw, msgspec.Raw])
        decrypted = decrypt_arguments(codec, task.removesuffix(_FAILURE_SUFFIX), bytes(original))
        return b"[%b,%b,%b]" % (bytes(error), bytes(failed), decrypted)
    if not is_encrypted(arguments):
        return arguments
    if not arguments.startswith(b"["):
        return _decrypt(codec, arguments, f"arguments of {task}")
    text, results = _decode(arguments, tuple[msgspec.Raw, dict[str, msgspec.Raw]])
    decrypted = _decrypt(codec, bytes(text), f"arguments of {task}")
    for name, result in results.items():
        placeholder = msgspec.json.encode(_PLACEHOLDER + name)
        decrypted = decrypted.replace(placeholder, decrypt_result(codec, None, bytes(result)))
    return decrypted


def encrypt_result(codec: Codec, job_id: str, result: bytes) -> bytes:
    """Encrypts the result of a run; an empty one stays empty."""
    return msgspec.json.encode(codec.encrypt(result, f"result of {job_id}")) if result else result


def decrypt_result(codec: Codec | None, job_id: str | None, result: bytes) -> bytes:
    """Decrypts the result of a run, or of any run if `job_id` is None. Raises Undecryptable."""
    if not is_encrypted(result):
        return result
    return _decrypt(codec, result, None if job_id is None else f"result of {job_id}")


def encrypt_response(codec: Codec, name: str, response: bytes) -> bytes:
    """Encrypts the response to a request with an Idempotency-Key, as it is stored under a name."""
    return msgspec.json.encode(codec.encrypt(response, f"response {name}"))


def decrypt_response(codec: Codec | None, name: str, response: bytes) -> bytes:
    """Decrypts a stored response; one that is not encrypted stays as it is. Raises Undecryptable."""
    return _decrypt(codec, response, f"response {name}") if is_encrypted(response) else response


def _decrypt(codec: Codec | None, encoded: bytes, bound_to: str | None) -> bytes:
    if codec is None:
        raise Undecryptable(
            f"the value is encrypted {readable(encoded).decode()[14:-2]}, and this program has no keys: "
            "set ROTA_ENCRYPTION_KEYS, or pass Rota(codec=Encrypted(keys))"
        )
    return codec.decrypt(_decode(encoded, str), bound_to)


def _decode(encoded: bytes, expected: type[T]) -> T:
    """Decodes the JSON around encrypted values. Lists cut it to its first bytes. Raises Undecryptable."""
    try:
        return msgspec.json.decode(encoded, type=expected)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Undecryptable("the encrypted value was cut or changed") from error
