"""append_audit: the log is bounded, and no caller displaces the entries of one that has fewer."""

from __future__ import annotations

from typing import Any

from rota.store.http_server_state import HttpServerStore
from tests.store.driver import Driver


async def test_the_books_of_the_audit_log_are_consistent(driver: Driver) -> None:
    store = HttpServerStore(driver.redis_client, driver.keys)
    store.audit_kept = 7
    for number in range(60):
        await store.append_audit(f"caller {number % (1 + number // 10)}", b"{}")

    redis: Any = driver.redis
    callers = redis.zrange(driver.keys.shared("audit_callers"), 0, -1, withscores=True)
    listed = {
        entry
        for caller, count in callers
        for entry in _checked(redis.lrange(driver.keys.shared("audit_of", caller.decode()), 0, -1), int(count))
    }
    assert listed == {entry_id for entry_id, _ in redis.xrange(driver.keys.shared("audit"))}
    assert len(listed) == 7
    assert len(redis.keys(driver.keys.shared("audit_of", "*"))) == len(callers)

    # Lost books, as after a partial restore: the log is bounded all the same.
    redis.delete(driver.keys.shared("audit_callers"))
    for _ in range(20):
        await store.append_audit("other", b"{}")
    assert redis.xlen(driver.keys.shared("audit")) <= 8


async def test_entries_that_no_caller_has_are_lost_first(driver: Driver) -> None:
    """As after a partial restore: a log that is full of such entries still records what happens now."""
    store = HttpServerStore(driver.redis_client, driver.keys)
    store.audit_kept = 5
    redis: Any = driver.redis
    for _ in range(5):
        redis.xadd(driver.keys.shared("audit"), {"entry": "old"})

    for number in range(3):
        await store.append_audit("ada", b"%d" % number)

    entries = [fields[b"entry"] for _, fields in redis.xrange(driver.keys.shared("audit"))]
    assert entries == [b"old", b"old", b"0", b"1", b"2"]


async def test_an_entry_does_not_displace_itself(driver: Driver) -> None:
    store = HttpServerStore(driver.redis_client, driver.keys)
    store.audit_kept = 3
    for caller in ("a", "b", "c", "z"):
        await store.append_audit(caller, caller.encode())

    redis: Any = driver.redis
    entries = [fields[b"entry"] for _, fields in redis.xrange(driver.keys.shared("audit"))]
    assert entries == [b"b", b"c", b"z"]


def _checked(ids: list[bytes], count: int) -> list[bytes]:
    assert len(ids) == count
    return ids
