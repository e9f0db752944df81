"""An exception as the error record that is stored with a job."""

from __future__ import annotations

import traceback as tracebacks
from typing import Any, Final

import msgspec

from rota.core.job_record import ErrorRecord
from rota.errors import PermanentError

#: Longer tracebacks are cut in the middle: the two ends show what happened and where.
MAX_TRACEBACK: Final = 16_000
MAX_MESSAGE: Final = 4_000
MAX_ATTRIBUTES: Final = 16_000


def record_error(error: BaseException, *, kind: str | None = None) -> ErrorRecord:
    """Returns an exception as text, with those of its attributes that JSON can encode."""
    try:
        text = "".join(tracebacks.format_exception(error))
    except Exception as broken:  # such as a SyntaxError whose fields are not what Python expects
        text = f"<the traceback of {type(error).__name__} raised {type(broken).__name__}>"
    if len(text) > MAX_TRACEBACK:
        half = MAX_TRACEBACK // 2
        text = f"{text[:half]}\n… {len(text) - MAX_TRACEBACK:,} characters left out …\n{text[-half:]}"
    return ErrorRecord(
        kind=kind or ("permanent" if isinstance(error, PermanentError) else "exception"),
        type=type(error).__name__,
        message=text_of(error),
        traceback=text.encode(errors="replace").decode(),
        attributes=_attributes(error),
    )


def text_of(value: object) -> str:
    """Returns `str(value)`, cut, and with characters that cannot be encoded replaced. Never raises."""
    try:
        return str(value)[:MAX_MESSAGE].encode(errors="replace").decode()
    except Exception as broken:  # a __str__ that raises must not hide the error itself
        return f"<{type(value).__name__} whose str() raised {type(broken).__name__}>"


def class_names(error: BaseException) -> list[str]:
    """Returns the names of an error's classes, nearest first: a rule of `Retry` may name any of them."""
    return [cls.__name__ for cls in type(error).__mro__ if cls not in (object, BaseException)]


def _attributes(error: BaseException) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    size = 0
    for name, value in vars(error).items():
        if name.startswith("_") or name == "args":
            continue
        try:
            encoded = msgspec.json.encode(value)
        except Exception:  # not only that it has no encoding: a `tzinfo` can raise anything
            continue
        size += len(encoded)
        if size > MAX_ATTRIBUTES:
            break
        kept[name] = msgspec.json.decode(encoded)
    return kept
