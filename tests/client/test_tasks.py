"""Declaring tasks: names, conflicts, where they run, and that nothing is started by it."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn, cast

import msgspec
import pytest

from rota import (
    ConfigurationError,
    Context,
    Depends,
    InvalidArguments,
    InvalidOption,
    JobState,
    Retry,
    Rota,
    TaskConflict,
    UnknownTask,
)
from rota.client.tasks import detached_context
from tests.client.manual_worker import run_python


@pytest.fixture
def rota() -> Rota:
    """A client of a server that does not exist: declaring must not need one."""
    return Rota("redis://127.0.0.1:1", patience=0)


def test_a_task_is_called_like_its_function(rota: Rota) -> None:
    @rota.task
    def send() -> None: ...

    @rota.task(name="mail.send-it")
    def other() -> None: ...

    assert [task.name for task in rota.tasks] == ["send", "mail.send-it"]
    assert rota.tasks.get("mail.send-it") is other
    assert "send" in rota.tasks
    assert len(rota.tasks) == 2


@pytest.mark.parametrize("name", ["two words", "a\nb", "x" * 201, "\x00", "lone \ud800", "lone\ud800"])
def test_a_name_that_cannot_be_stored_is_refused(rota: Rota, name: str) -> None:
    with pytest.raises(InvalidOption, match="name"):
        rota.task(name=name)(lambda: None)

    assert len(rota.tasks) == 0


def test_two_functions_under_one_name_are_a_conflict_and_the_first_one_stays(rota: Rota) -> None:
    @rota.task(name="send")
    def first() -> None: ...

    with pytest.raises(TaskConflict, match=r"'send' is already declared by .*first.*give this one another name"):

        @rota.task(name="send")
        def second() -> None: ...

    assert rota.tasks.get("send") is first


def test_the_same_function_again_replaces_the_first(rota: Rota) -> None:
    def declare(queue: str) -> Any:
        @rota.task(queue=queue)
        def send() -> None: ...

        return send

    declare("old")
    new = declare("new")

    assert list(rota.tasks) == [new]


def test_an_unknown_task_says_which_there_are(rota: Rota) -> None:
    rota.task(name="b")(lambda: None)

    with pytest.raises(UnknownTask, match=r"'a'.*declares: b"):
        rota.tasks.get("a")


def test_generators_are_refused(rota: Rota) -> None:
    def plain() -> Iterator[int]:
        yield 1

    async def asynchronous() -> AsyncIterator[int]:
        yield 1

    for function in (plain, asynchronous):
        with pytest.raises(ConfigurationError, match="generator"):
            rota.task(function)
    assert len(rota.tasks) == 0


def test_what_is_not_a_function_is_refused(rota: Rota) -> None:
    class Handler:
        def __call__(self) -> None: ...

    what: list[Any] = [5, "send", functools.partial(print, 1), Handler()]
    for nonsense in what:
        with pytest.raises(ConfigurationError, match="takes a function"):
            rota.task(nonsense)
    assert len(rota.tasks) == 0


def test_attributes_of_the_function_do_not_become_those_of_the_task(rota: Rota) -> None:
    def send() -> None:
        """Sends."""

    vars(send)["queue"] = "theirs"

    task = rota.task(queue="ours")(send)

    assert task.queue == "ours"
    assert (task.__doc__, inspect.unwrap(task)) == ("Sends.", send)


class NotJson:
    """JSON cannot carry it."""


def test_an_annotation_that_json_cannot_carry_is_refused_with_a_way_out(rota: Rota) -> None:
    def one(thing: NotJson) -> None: ...
    def many(things: list[dict[str, NotJson]]) -> None: ...
    def variable(*things: NotJson) -> None: ...
    def named(**things: NotJson) -> None: ...
    def function(callback: Callable[[], None]) -> None: ...

    for declared in (one, many, variable, named, function):
        with pytest.raises(ConfigurationError, match=r"parameter '\w+'.*(NotJson|Callable)"):
            _ = rota.task(declared).signature


def test_a_result_that_json_cannot_carry_is_refused_before_a_handler_has_run_in_vain(rota: Rota) -> None:
    def one() -> NotJson: ...
    def many() -> Iterator[int]: ...
    def never() -> NoReturn:
        raise SystemExit

    for declared in (one, many):
        with pytest.raises(ConfigurationError, match=r"the result is a (NotJson|Iterator)"):
            rota.task(declared).call()
    rota.task(never).call()


@pytest.mark.parametrize("annotation", ["Missing", "1 +", "int[", "int | 'x'", "msgspec.nothing"])
def test_an_annotation_that_cannot_be_read_is_a_clear_error(rota: Rota, annotation: str) -> None:
    def send(to: str) -> None: ...

    send.__annotations__["to"] = annotation

    with pytest.raises(ConfigurationError, match=r"'send'.*annotation"):
        rota.task(send).call("x")


def test_an_annotation_may_name_what_is_defined_later(rota: Rota) -> None:
    @rota.task
    def send(to: Later) -> None: ...

    assert send.call(Later("a")).job.body.endswith(b'\nsend\n[{"name":"a"}]')
    with pytest.raises(InvalidArguments):
        send.call(5)  # pyright: ignore[reportArgumentType]


class Later(msgspec.Struct):
    """Defined below its use."""

    name: str


def test_constraints_in_an_annotation_are_kept(rota: Rota) -> None:
    @rota.task
    def send(count: Annotated[int, msgspec.Meta(gt=0)]) -> None: ...

    send.call(1)
    with pytest.raises(InvalidArguments, match="count"):
        send.call(0)


@pytest.mark.parametrize(
    ("run_in", "is_async", "expected"),
    [
        (None, True, "loop"),
        (None, False, "thread"),
        ("loop", True, "loop"),
        ("thread", False, "thread"),
        ("process", True, "process"),
        ("process", False, "process"),
        ("loop", False, "would block"),
        ("thread", True, "runs on the loop"),
        ("moon", True, "none of"),
    ],
)
def test_where_a_task_may_run(rota: Rota, run_in: Any, is_async: bool, expected: str) -> None:
    def plain() -> None: ...
    async def asynchronous() -> None: ...

    declare = rota.task(run_in=run_in)
    function = asynchronous if is_async else plain
    if expected in ("loop", "thread", "process"):
        assert declare(function).run_in == expected
    else:
        with pytest.raises(InvalidOption, match=expected):
            declare(function)


def test_bad_defaults_are_refused_where_they_are_written(rota: Rota) -> None:
    all_bad: list[dict[str, Any]] = [{"priority": "urgent"}, {"timeout": -1}, {"nonsense": 1}]
    all_bad += [{"queue": "a b"}, {"queue": "a-fail"}]
    for bad in all_bad:
        with pytest.raises(InvalidOption, match=next(iter(bad))):
            rota.task(**bad)(lambda: None)
        if "queue" not in bad:
            with pytest.raises(InvalidOption, match=next(iter(bad))):
                rota.queue("mail", defaults=bad)
    for placement in ("id", "delay", "run_at", "on_same_id"):
        with pytest.raises(InvalidOption, match=placement):
            rota.task(**cast(dict[str, Any], {placement: 1}))(lambda: None)
    assert len(rota.tasks) == 0


@pytest.mark.requirement("S4-2")
def test_options_of_the_enqueue_come_before_those_of_the_task_and_those_before_the_queues(rota: Rota) -> None:
    """A queue has defaults of its own; those of failure jobs come with failure handlers."""

    @rota.task(queue="mail", timeout=20, priority="high")
    def send() -> None: ...

    rota.queue("mail", defaults={"timeout": 10, "priority": "low", "max_stalls": 7, "retry": Retry(attempts=9)})
    rota.queue("other", defaults={"max_stalls": 1})

    plain, prepared, moved = send.options, send.using(priority=3).options, send.using(queue="other").options

    assert (plain.timeout_ms, plain.priority, plain.max_stalls, plain.attempts) == (20_000, -10, 7, 9)
    assert (prepared.timeout_ms, prepared.priority, prepared.max_stalls) == (20_000, 3, 7)
    assert (moved.timeout_ms, moved.priority, moved.max_stalls, moved.attempts) == (20_000, -10, 1, 3)


async def test_a_task_is_still_a_function(rota: Rota) -> None:
    @rota.task
    async def send(to: str, *, subject: str = "hi") -> str:
        return f"{to} {subject}"

    @rota.task
    def count(numbers: list[int]) -> int:
        return len(numbers)

    assert await send("a", subject="b") == "a b"
    assert count([1, 2]) == 2
    with pytest.raises(TypeError):
        await send()  # pyright: ignore[reportCallIssue]
    assert list(inspect.signature(send).parameters) == ["to", "subject"]


async def test_a_task_called_directly_gets_a_context_that_reports_nothing(rota: Rota) -> None:
    @rota.task(timeout=7)
    async def first(ctx: Context, to: str, *rest: int, **more: int) -> tuple[Any, ...]:
        ctx.progress(1, 2)
        ctx.log("done")
        return ctx.job.task, ctx.job.state, ctx.attempt, ctx.cancelled, to, rest, more

    assert await first("a") == ("first", JobState.PROCESSING, 1, False, "a", (), {})
    assert await first("a", 1, 2, z=3) == ("first", JobState.PROCESSING, 1, False, "a", (1, 2), {"z": 3})
    assert await first(to="a", z=3) == ("first", JobState.PROCESSING, 1, False, "a", (), {"z": 3})


def test_a_task_called_directly_refuses_what_its_function_would_refuse(rota: Rota) -> None:
    @rota.task
    def send(ctx: Context, to: str, subject: str = "hi") -> tuple[str, str]:
        return to, subject

    @rota.task
    def behind(to: str, ctx: Context, subject: str = "hi") -> tuple[str, str, bool]:
        return to, subject, isinstance(ctx, Context)

    untyped: Any = behind  # a context that is not in front stays in the static type

    @rota.task
    def only_by_position(ctx: Context, to: str, /) -> str:
        return to

    assert send("a", "b") == ("a", "b")
    assert only_by_position("a") == "a"
    assert untyped("a", subject="b") == ("a", "b", True)
    assert untyped("a", "b") == ("a", "b", True)
    for arguments in ((), ("a", "b", "c")):
        with pytest.raises(TypeError):
            send(*arguments)
    with pytest.raises(TypeError):
        send("a", to="b")  # pyright: ignore[reportCallIssue]


def test_a_task_called_directly_says_which_dependencies_to_pass(rota: Rota) -> None:
    """What would arrive there is a mark for the worker, and no database."""

    def open_database() -> str:
        return "real"

    def open_cache() -> str:
        return "real"

    @rota.task
    def look_up(
        ctx: Context, query: str, db: str = Depends(open_database), *, cache: str = Depends(open_cache)
    ) -> list[object]:
        return [ctx.attempt, query, db, cache]

    with pytest.raises(TypeError, match=r"what open_database, open_cache provides: pass db=…, cache=…"):
        look_up("all")
    with pytest.raises(TypeError, match=r"what open_cache provides: pass cache=…"):
        look_up("all", "fake")
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        look_up("all", "fake", nonsense=1)  # type: ignore[call-arg]
    assert look_up("all", "fake", cache="none") == [1, "all", "fake", "none"]
    assert look_up("all", db="fake", cache="none") == [1, "all", "fake", "none"]


def test_a_task_called_directly_takes_a_context_that_it_is_given(rota: Rota) -> None:
    @rota.task
    def behind(to: str, ctx: Context) -> int:
        return ctx.fence

    @rota.task
    def first(ctx: Context) -> int:
        return ctx.fence

    context = detached_context(first)
    context.fence = 42
    untyped: Any = first

    assert behind("a", context) == behind("a", ctx=context) == 42
    assert untyped(context) == untyped(ctx=context) == 42
    assert first() == 0


def test_importing_and_declaring_opens_no_socket_and_starts_no_thread(tmp_path: Path) -> None:
    ended = run_python(
        """
import sys, threading
seen = []
sys.addaudithook(lambda name, args: seen.append(name) if name.startswith(("socket.", "subprocess.")) else None)
from rota import Rota
rota = Rota("redis://198.51.100.1:6379", namespace="n")

@rota.task(queue="mail", timeout=3)
async def send(to: str) -> str: ...

send.call("x"); send.using(delay=5).call("x"); rota.queue("mail"); rota.job("a"); rota.address
Rota(), Rota("redis+sentinel://h/m"), Rota("redis+cluster://h")
assert seen == [], seen
assert threading.active_count() == 1
assert "redis" not in sys.modules
""",
        cwd=tmp_path,
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []


def test_a_dependency_must_be_a_function() -> None:
    with pytest.raises(TypeError, match="takes a function"):
        Depends(cast(Any, 5))


class NeedsAddress:
    """Nothing provides its address."""

    def __init__(self, address: str) -> None: ...


def test_a_provider_with_a_parameter_that_nothing_provides_is_refused() -> None:
    def of_context(ctx: Context, cache: str = Depends(str), size: int = 1, *others: int) -> str:
        return ""

    def of_address(address: str) -> str:
        return address

    def of_port(*, port: int) -> int:
        return port

    Depends(of_context)
    Depends(dict)
    for provider, parameter in ((of_address, "address"), (NeedsAddress, "address"), (of_port, "port")):
        with pytest.raises(TypeError, match=f"nothing provides its parameter '{parameter}'"):
            Depends(cast(Any, provider))


def test_a_context_manager_is_not_a_provider() -> None:
    @contextmanager
    def plain() -> Generator[str, None, None]:
        yield ""

    @asynccontextmanager
    async def of_loop() -> AsyncGenerator[str, None]:
        yield ""

    for provider in (plain, of_loop):
        with pytest.raises(TypeError, match="remove the decorator"):
            Depends(cast(Any, provider))


def test_a_dependency_that_is_no_default_is_refused_where_the_task_is_declared(rota: Rota) -> None:
    def annotated(number: int, db: Annotated[str, Depends(str)] = "") -> None: ...
    def uncalled(number: int, db: Any = Depends) -> None: ...

    for function in (annotated, uncalled):
        with pytest.raises(ConfigurationError, match=r"parameter 'db' is not injected.*Depends\(open_database\)"):
            rota.task(function)
    assert len(rota.tasks) == 0


def test_a_parameter_that_json_cannot_carry_is_refused_where_the_task_is_declared(rota: Rota) -> None:
    def send(thing: NotJson) -> None: ...

    with pytest.raises(ConfigurationError, match="NotJson"):
        rota.task(send)
    assert "send" not in rota.tasks


def test_a_field_of_a_parameter_may_name_what_is_defined_later(rota: Rota) -> None:
    @rota.task
    def send(to: Outer) -> None: ...

    globals()["Inner"] = int
    try:
        assert send.call(Outer(5)).job.body.endswith(b'[{"inner":5}]')
    finally:
        del globals()["Inner"]


class Outer(msgspec.Struct):
    """Its field has a type that does not exist when the task is declared."""

    inner: Inner  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("namespace", ""),
        ("namespace", "a b"),
        ("namespace", "a{b}"),
        ("namespace", "x" * 65),
        ("namespace", "ä"),
        ("namespace", 5),
        ("durability", "eternal"),
        ("replicas", 0),
        ("max_payload", 0),
        ("patience", -1),
        ("patience", 601),
        ("patience", math.inf),
        ("patience", math.nan),
    ],
)
def test_a_client_that_is_set_up_wrong_is_refused(option: str, value: Any) -> None:
    with pytest.raises(InvalidOption, match=option):
        Rota(**{option: value})
