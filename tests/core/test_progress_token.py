"""Progress tokens: for one job, until a time, signed."""

from __future__ import annotations

import pytest

from rota.core.ids import JobRef
from rota.core.progress_token import InvalidToken, ProgressToken, read_token, sign_token

TOKEN = ProgressToken(JobRef("mail", "order-7", "000000001"), 2_000)


def test_a_token_names_its_job_until_it_expires() -> None:
    text = sign_token(b"secret", TOKEN)

    assert read_token(b"secret", text, 1_999) == TOKEN
    with pytest.raises(InvalidToken, match="expired"):
        read_token(b"secret", text, 2_000)


@pytest.mark.parametrize("text", ["", "x", "rota_job_", "rota_job_YQ.", "é.ü", "." * 2_000])
def test_what_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(InvalidToken, match="not valid"):
        read_token(b"secret", text, 0)


def test_a_changed_token_and_one_of_another_secret_are_refused() -> None:
    text = sign_token(b"secret", TOKEN)
    content, _, signature = text.partition(".")
    other = sign_token(b"secret", TOKEN._replace(job=JobRef("mail", "other", "000000002"))).partition(".")[0]

    for forged in (f"{other}.{signature}", f"{content}.{signature[:-2]}AA", sign_token(b"other", TOKEN)):
        with pytest.raises(InvalidToken):
            read_token(b"secret", forged, 0)


def test_a_signed_token_of_another_format_is_refused() -> None:
    text = sign_token(b"secret", TOKEN._replace(job="no job"))

    with pytest.raises(InvalidToken, match="unknown format"):
        read_token(b"secret", text, 0)
