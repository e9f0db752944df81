"""Progress tokens: permit a browser to follow the progress of one job until a time. Signed, and stored nowhere.

A token is `rota_job_<job and expiry>.<signature>`. The secret is in the store: a program that can read it can read all
jobs.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Final, NamedTuple

from rota.core.ids import JobRef
from rota.errors import RotaError

PREFIX: Final = "rota_job_"
#: Longest token that is looked at: ids have 200 characters at most.
MAX_LENGTH: Final = 1_000


class ProgressToken(NamedTuple):
    """What a token permits."""

    job: JobRef
    #: When it ends, ms.
    expires_at: int


class InvalidToken(RotaError):
    """Not a token, changed, signed with another secret, or expired."""


def sign_token(secret: bytes, token: ProgressToken) -> str:
    """Returns the token as text that can be part of a URL."""
    content = _encode(f"{token.expires_at} {token.job}".encode())
    return f"{PREFIX}{content}.{_signature(secret, content)}"


def read_token(secret: bytes, text: str, now: int) -> ProgressToken:
    """Returns what a token permits at that time, ms. Raises InvalidToken."""
    content, _, signature = text.removeprefix(PREFIX).partition(".")
    expected = _signature(secret, content)
    if len(text) > MAX_LENGTH or not hmac.compare_digest(signature.encode(), expected.encode()):
        raise InvalidToken("the token is not valid: create one with job.progress_token()")
    try:
        expires_at, _, job = _decode(content).decode().partition(" ")
        token = ProgressToken(JobRef.parse(job), int(expires_at))
    except (binascii.Error, ValueError) as error:  # signed, but by another version
        raise InvalidToken("the token has an unknown format: create another one with job.progress_token()") from error
    if token.expires_at <= now:
        raise InvalidToken("the token has expired: create another one with job.progress_token()")
    return token


def _signature(secret: bytes, content: str) -> str:
    return _encode(hmac.digest(secret, content.encode(errors="replace"), hashlib.sha256))


def _encode(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
