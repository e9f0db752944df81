"""Servers return the scores that scripts compare and store again as plain digits, never as 1.7e+12."""

from __future__ import annotations

from typing import Final, cast

import pytest

from tests.store.driver import Driver

#: Every way in which a script reads a score.
READ: Final = """
redis.call("DEL", KEYS[1])
redis.call("ZADD", KEYS[1], ARGV[1], "run")
return {
  redis.call("ZSCORE", KEYS[1], "run"),
  redis.call("ZMSCORE", KEYS[1], "run")[1],
  redis.call("ZRANGE", KEYS[1], 0, 0, "WITHSCORES")[2],
  redis.call("ZPOPMIN", KEYS[1])[2],
}
"""
#: Times, lowest and highest scores, and round ones of each: those are short in exponent form.
SCORES: Final = (
    0,
    10**12,
    1_700_000_000_000,
    2 * 10**12,
    2**42 - 1,
    10**14,
    4 * 10**14,
    256 * 2**42,
    200 * 2**42 + 1_800_000_000_000,
    201 * 2**42 - 1,
)


@pytest.mark.parametrize("score", SCORES)
def test_a_score_is_returned_as_plain_digits(driver: Driver, score: int) -> None:
    found = cast(list[bytes], driver.redis.eval(READ, 1, driver.key("pending"), score))

    assert [text.decode() for text in found] == [str(score)] * 4
