"""Arguments: what a task can be called with comes back as its annotations say; all else is refused at enqueue."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import msgspec
import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from rota import Context, Depends, InvalidArguments, InvalidJob, Job, JobRecord, PayloadTooLarge, Rota
from rota.client.task_arguments import Signature
from rota.core.job_record_codec import decode_arguments, decode_result, encode_result
from tests.client.manual_worker import Hand, dump


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 1


@dataclass
class Address:
    street: str
    number: int = 1


class Order(msgspec.Struct, frozen=True):
    id: UUID
    address: Address
    at: datetime


class Point(NamedTuple):
    x: int
    y: int = 0


class Options(TypedDict, total=False):
    loud: bool


MOMENT = datetime(2024, 2, 29, 12, 30, 15, 123456, tzinfo=UTC)
IDENTITY = UUID("12345678-1234-5678-1234-567812345678")


def called_with(signature: Signature, *args: Any, **kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
    """What the handler gets."""
    return signature.decode(signature.encode(args, kwargs))


def bound(function: Any, *args: Any, **kwargs: Any) -> Any:
    """What the function returns when it is called as a worker calls it."""
    positional, named = called_with(Signature("task", function), *args, **kwargs)
    return function(*positional, **named)


# --- what fits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (str, ""),
        (str, "ü\n\x00 😀"),
        (int, -(2**63)),
        (int, 2**200),
        (float, 1.5),
        (float, 3),
        (bool, True),
        (bytes, b"\x00\xff"),
        (type(None), None),
        (int | None, None),
        (datetime, MOMENT),
        (date, date(2024, 2, 29)),
        (timedelta, timedelta(days=1, microseconds=1)),
        (UUID, IDENTITY),
        (Decimal, Decimal("1.10")),
        (Colour, Colour.RED),
        (Level, Level.HIGH),
        (Address, Address("a", 2)),
        (Order, Order(IDENTITY, Address("a"), MOMENT)),
        (Point, Point(1, 2)),
        (Options, {"loud": True}),
        (list[int], [1]),
        (tuple[int, str], (1, "a")),
        (set[int], {1, 2}),
        (frozenset[str], frozenset({"a"})),
        (dict[str, list[Address]], {"a": [Address("b")]}),
        (dict[int, str], {1: "a"}),
        (dict[UUID, int], {IDENTITY: 1}),
        (Sequence[int], [1]),
        (Mapping[str, int], {"a": 1}),
        (Literal["a", "b"], "a"),
        (Any, {"a": [1, None, "x"]}),
        (object, [1, {"a": None}]),
        (list[Order], [Order(IDENTITY, Address("a"), MOMENT)]),
    ],
    ids=repr,
)
def test_a_value_comes_back_as_the_type_that_the_task_declares(annotation: Any, value: Any) -> None:
    def handler(it: object) -> Any:
        return it

    handler.__annotations__ = {"it": annotation, "return": annotation}

    returned = bound(handler, value)

    assert returned == value
    assert type(returned) in (type(value), annotation)
    assert decode_result(encode_result(value), annotation) == value


@pytest.mark.requirement("S2-5")
@pytest.mark.parametrize("annotation", [Any, object, dict[str, Any], list[Any] | None], ids=repr)
@pytest.mark.parametrize("value", [{1, 2}, frozenset({1}), b"ab", bytearray(b"ab")], ids=repr)
def test_a_set_or_bytes_in_an_untyped_parameter_is_refused(annotation: Any, value: Any) -> None:
    """The handler would get a list or a text: JSON has neither sets nor bytes, and `Any` does not restore them."""

    def handler(it: object, *more: Any, **others: Any) -> Any:
        return it

    handler.__annotations__ = {"it": annotation}
    given: Any = {"a": ["text", value]} if annotation == dict[str, Any] else [value, 1]
    signature = Signature("task", handler)
    for args, kwargs in (((given,), {}), ((), {"it": given}), (({}, value), {}), ((), {"it": {}, "other": value})):
        if annotation == list[Any] | None and args[:1] != (given,):
            continue
        with pytest.raises(InvalidArguments, match=f"a {type(value).__name__} is not JSON"):
            signature.encode(args, kwargs)


def test_a_pydantic_model_comes_back_as_itself() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Model", name=(str, ...), count=(int, 1))

    def handler(it: Any) -> Any:
        return it

    handler.__annotations__ = {"it": model}
    assert bound(handler, model(name="a")) == model(name="a")
    with pytest.raises(InvalidArguments, match="name"):
        bound(handler, {"count": 1})


def test_every_way_to_pass_arguments_reaches_the_function_as_it_does_in_a_plain_call() -> None:
    def plain(a: int, b: int = 2, *, c: int = 3) -> Any:
        return a, b, c

    def variable(a: int, b: int = 2, *rest: int, c: int = 3, **more: int) -> Any:
        return a, b, rest, c, more

    def positional(a: int, b: int = 2, /, c: int = 3) -> Any:
        return a, b, c

    def only_variable(*rest: int) -> Any:
        return rest

    def only_named(**more: int) -> Any:
        return more

    ways: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
        (plain, (1,), {}),
        (plain, (1, 5), {}),
        (plain, (1,), {"c": 9}),
        (plain, (), {"b": 4, "a": 1}),
        (variable, (1,), {}),
        (variable, (1, 2, 3), {}),
        (variable, (1, 2, 3, 4), {"c": 5}),
        (variable, (1, 2, 3), {"c": 5}),
        (variable, (1, 2), {"z": 5}),
        (variable, (1, 2, 3, 4, 5), {"z": 5, "c": 7}),
        (variable, (), {"a": 1, "z": 5}),
        (positional, (1,), {}),
        (positional, (1, 5), {"c": 9}),
        (positional, (1, 5, 9), {}),
        (only_variable, (), {}),
        (only_variable, (1, 2), {}),
        (only_named, (), {}),
        (only_named, (), {"a": 1, "x y": 2}),
    ]
    for function, args, kwargs in ways:
        assert bound(function, *args, **kwargs) == function(*args, **kwargs), (function, args, kwargs)


@given(
    args=st.lists(st.integers(0, 9), max_size=6),
    kwargs=st.dictionaries(st.sampled_from(["a", "b", "c", "c", "z", "z"]), st.integers(0, 9), max_size=3),
)
def test_a_call_is_taken_if_and_only_if_python_would_take_it(args: list[int], kwargs: dict[str, int]) -> None:
    def strict(a: int, b: int = 2, *, c: int = 3) -> Any:
        return a, b, c

    def open_ended(a: int, b: int = 2, *rest: int, c: int = 3, **more: int) -> Any:
        return a, b, rest, c, more

    for function in (strict, open_ended):
        try:
            expected = function(*args, **kwargs)
        except TypeError:
            with pytest.raises(InvalidArguments):
                bound(function, *args, **kwargs)
        else:
            assert bound(function, *args, **kwargs) == expected


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=20,
)


@given(value=json_values)
def test_any_json_goes_through_unchanged(value: Any) -> None:
    def handler(it: Any, **more: Any) -> Any:
        return it, more

    assert bound(handler, value) == (value, {})
    assert bound(handler, it=value, other=value) == (value, {"other": value})


def test_what_is_not_passed_is_left_to_the_default_of_the_code_that_runs() -> None:
    def old(a: int, b: list[int] = [1]) -> Any: ...  # noqa: B006
    def new(a: int, b: list[int] = [2]) -> Any:  # noqa: B006
        return b

    stored = Signature("task", old).encode((1,), {})

    positional, named = Signature("task", new).decode(stored)
    assert new(*positional, **named) == [2]


# --- what does not ---------------------------------------------------------------------------------------------------


class Custom:
    pass


def _anything(it: Any) -> None: ...


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


REFUSED: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    ("wrong type", ("a", "x"), {}, r"Expected `int`, got `str` - at `\$\.count`"),
    ("wrong type by name", ("a",), {"count": 1.5}, "Expected `int`"),
    ("true is not a number", ("a", True), {}, "Expected `int`"),
    ("null", (None,), {}, "Expected `str`, got `null`"),
    ("missing", (), {}, "missing argument `to`"),
    ("unknown name", ("a",), {"colour": 1}, "no such parameter: `colour`"),
    ("too many", ("a", 1, 2), {}, r"takes 2 positional arguments \(to, count\), not 3"),
    ("twice", ("a",), {"to": "b"}, "two values for 'to'"),
    ("context", ("a",), {"ctx": 1}, "'ctx' is filled in by the worker"),
    ("dependency", ("a",), {"db": 1}, "'db' is filled in by the worker"),
    ("object", ("a",), {"extra": Custom()}, "Custom is not JSON"),
    ("function", ("a",), {"extra": print}, "not JSON"),
    ("path", ("a",), {"extra": Path("a")}, "not JSON"),
    ("complex", ("a",), {"extra": [1j]}, "not JSON"),
    ("tuple as key", ("a",), {"extra": {(1, 2): 3}}, "not JSON"),
    ("NaN", ("a",), {"extra": math.nan}, "NaN"),
    ("infinity in depth", ("a",), {"extra": {"a": [1, -math.inf]}}, "infinit"),
    ("NaN where null fits", ("a",), {"number": math.nan}, "NaN"),
    ("lone surrogate", ("a\ud800",), {}, "surrogates"),
    ("surrogate as key", ("a",), {"extra": {"\udfff": 1}}, "surrogates"),
    ("too deep", ("a",), {"extra": deep(100_000)}, "not JSON|cannot be read"),
    ("a star", ("a",), {"*": [1]}, r"no such parameter: `\*`"),
]


@pytest.mark.parametrize(("args", "kwargs", "said"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
async def test_what_does_not_fit_is_refused_and_leaves_nothing(
    rota: Rota, raw: redis.Redis, namespace: str, args: tuple[Any, ...], kwargs: dict[str, Any], said: str
) -> None:
    @rota.task
    async def send(
        ctx: Context,
        to: str,
        count: int = 1,
        *,
        extra: Any = None,
        number: float | None = None,
        db: Custom = Depends(Custom),  # noqa: B008
    ) -> None: ...

    with pytest.raises(InvalidArguments, match=said) as refusal:
        await send.enqueue(*args, **kwargs)
    assert refusal.value.task == "send"
    assert isinstance(refusal.value, InvalidJob)
    assert isinstance(refusal.value, ValueError)
    with pytest.raises(InvalidArguments, match=said):
        await rota.enqueue_many([send.call("a"), send.call(*args, **kwargs)])
    assert dump(raw, namespace) == {}


@dataclass
class Line:
    article: str
    count: int


@pytest.mark.parametrize(
    ("kwargs", "field", "reason"),
    [
        ({"lines": []}, "to", "missing argument `to`"),
        ({"to": 1, "lines": []}, "to", "Expected `str`, got `int`"),
        ({"to": "a", "lines": [{"article": "x", "count": "y"}]}, "lines.0.count", "Expected `int`, got `str`"),
        ({"to": "a", "lines": [{"article": "x"}]}, "lines.0.count", "missing argument `count`"),
        ({"to": "a", "lines": [], "colour": 1}, "colour", "no such parameter: `colour`"),
        ({"to": "a", "lines": [], "by_day": {"mon": "x"}}, "by_day", "Expected `int`, got `str`"),
        ({"to": "a", "lines": [], "ctx": 1}, "ctx", "'ctx' is filled in by the worker, do not pass it"),
        ({"to": "a", "lines": [1, math.nan]}, "", None),
    ],
)
async def test_a_refusal_has_the_path_of_the_argument_and_the_reason(
    rota: Rota, kwargs: dict[str, Any], field: str, reason: str | None
) -> None:
    @rota.task
    async def order(ctx: Context, to: str, lines: list[Line], by_day: dict[str, int] | None = None) -> None: ...

    with pytest.raises(InvalidArguments) as refusal:
        await order.enqueue(**kwargs)
    assert refusal.value.field == field
    assert reason in (None, refusal.value.reason)


def test_a_dependency_cannot_be_passed_by_position_either() -> None:
    def handler(a: int, db: Custom = Depends(Custom), b: Any = 2) -> Any:  # noqa: B008
        return a, b

    signature = Signature("task", handler)

    assert called_with(signature, 1, b=3) == ([], {"a": 1, "b": 3})
    with pytest.raises(InvalidArguments, match=r"takes 1 positional arguments \(a\), not 2"):
        signature.encode((1, 5), {})


def test_a_circle_is_refused(rota: Rota) -> None:
    circle: list[Any] = []
    circle.append(circle)

    with pytest.raises(InvalidArguments):
        rota.task(_anything).call(circle)


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        (b"", "cannot be read"),
        (b"{", "cannot be read"),
        (b"5", "neither"),
        (b'"a"', "neither"),
        (b"null", "neither"),
        (b"[" * 100_000, "cannot be read"),
        (b'{"*": 5, "a": 1}', "cannot be read"),
        (b'{"a": "x"}', "Expected `int`"),
        (b'{"a": 1, "*": ["x"]}', "Expected `int`"),
        (b'{"b": 1, "*": [1]}', "'o'"),
        (b'{"a": 1, "ctx": 1}', "ctx"),
        (b'{"a": 1, "p": 1}', "'o'"),
        (b'{"o": 1, "p": 1, "b": 1, "*": [1]}', "'a'"),
    ],
)
def test_a_record_that_another_program_wrote_is_read_with_the_same_care(stored: bytes, said: str) -> None:
    def handler(ctx: Context, o: int = 0, p: int = 0, /, a: int = 0, b: int = 0, *rest: int, **more: int) -> None: ...
    def without(a: int) -> None: ...

    with pytest.raises(InvalidArguments, match=said):
        Signature("task", handler).decode(stored)
    with pytest.raises(InvalidArguments):
        Signature("task", without).decode(b'{"a": 1, "*": [2]}')


# --- size ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("on_each")
async def test_a_mebibyte_goes_through_and_one_byte_more_does_not(
    rota: Rota, hand: Hand, raw: redis.Redis, namespace: str
) -> None:
    @rota.task
    async def send(text: str) -> None: ...

    limit = 2**20
    fits = "x" * (limit - len('[""]'))

    job = await send.enqueue(fits)
    before = dump(raw, namespace)
    with pytest.raises(PayloadTooLarge, match="1,048,577 bytes, the limit is 1,048,576") as refusal:
        await send.enqueue(fits + "x")

    assert (refusal.value.size, refusal.value.limit) == (limit + 1, limit)
    assert dump(raw, namespace) == before
    record: JobRecord = await job.refresh()
    assert decode_arguments(record.arguments) == ([fits], {})
    await hand.finish(job)


async def test_the_limit_counts_bytes_and_can_be_set(valkey: Any, namespace: str) -> None:
    rota = Rota(valkey.url, namespace=namespace, max_payload=10)
    send = rota.task(name="send")(_anything)

    send.call("123456")
    send.call("ééé")
    with pytest.raises(PayloadTooLarge):
        send.call("1234567")
    with pytest.raises(PayloadTooLarge):
        send.call("éééé")


async def test_a_batch_of_large_jobs_is_stored_whole(rota: Rota) -> None:
    @rota.task
    async def send(text: str) -> None: ...

    jobs = await rota.enqueue_many(send.call(str(n) * 900_000) for n in range(10))

    stored = [json.loads((await job.refresh()).arguments)[0][0] for job in jobs if isinstance(job, Job)]
    assert stored == [str(n) for n in range(10)]
