"""Declaring failure handlers: what is accepted, what is refused where it was said, and how arguments reach them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rota import (
    ConfigurationError,
    Context,
    Depends,
    ErrorRecord,
    Exponential,
    InvalidArguments,
    InvalidOption,
    JobRecord,
    JobState,
    Retry,
    Rota,
    TaskConflict,
    UnknownTask,
)
from rota.client.rota import enqueuer_of


@pytest.fixture
def rota() -> Rota:
    return Rota("redis://nowhere.invalid")


def told(arguments: str = "[]", **more: Any) -> bytes:
    """The arguments of a failure job, as the store writes them."""
    job = {
        "ref": "mail:x@000000001",
        "task": "send",
        "options": "",
        "enqueued_at": 5,
        "attempt": 3,
        "failures": 2,
        "stalls": 1,
        "snoozes": 0,
        "handbacks": 0,
        "worker": "w",
        "claimed_at": 6,
        "ended_at": 7,
        "reason": "",
        **more,
    }
    error = {"type": "ValueError", "message": "boom", "attributes": {"code": 5}}
    return f"[{json.dumps(error)},{json.dumps(job)},{arguments}]".encode()


def call(rota: Rota, arguments: str = "[]") -> tuple[list[Any], dict[str, Any]]:
    """What the handler of `send` would be called with."""
    return rota.tasks.find("send.on_failure").signature.decode(told(arguments))


async def test_a_handler_stays_a_plain_function(rota: Rota) -> None:
    @rota.task
    async def send(to: str) -> None: ...

    async def tell(error: ErrorRecord, job: JobRecord, to: str) -> str:
        return to

    assert send.on_failure(tell) is tell
    assert send.on_failure(timeout=5)(tell) is tell
    assert send.failure_handler is not None
    assert send.failure_handler.function is tell
    assert len(rota.tasks) == 1


@pytest.mark.requirement("S4-21", "S4-15")
def test_the_handler_receives_the_error_and_the_job(rota: Rota) -> None:
    @rota.task
    def send(to: str, count: int = 1) -> None: ...

    @send.on_failure
    def tell(error: ErrorRecord, job: JobRecord, to: str, count: int = 1) -> None:
        pass

    (error, job), kwargs = call(rota, '["a"]')

    assert error == ErrorRecord(type="ValueError", message="boom", attributes={"code": 5})
    assert job.error == error
    assert (job.ref.full_id, job.ref.run, job.task, job.state) == ("mail:x", "000000001", "send", JobState.FAILED)
    assert (job.counts.attempt, job.counts.failures, job.counts.stalls) == (3, 2, 1)
    assert (job.enqueued_at, job.claimed_at, job.ended_at, job.worker) == (5, 6, 7, "w")
    assert job.arguments == b'["a"]'
    assert kwargs == {"to": "a"}, "its own default counts for what was not given"


@pytest.mark.parametrize(
    ("arguments", "args", "kwargs"),
    [('{"a":1,"c":3}', [], {"a": 1, "c": 3}), ("[1,2]", [], {"a": 1, "b": 2}), ("[1,2,7,8]", [1, 2, 7, 8], {})],
)
def test_arguments_keep_their_places_and_names(
    rota: Rota, arguments: str, args: list[Any], kwargs: dict[str, Any]
) -> None:
    @rota.task
    def send(a: int, b: int = 0, *more: int, c: int = 0) -> None: ...

    @send.on_failure
    def tell(error: ErrorRecord, job: JobRecord, a: int, b: int = 0, *more: int, c: int = 0) -> None:
        pass

    found, named = call(rota, arguments)

    assert (found[2:], named) == (args, kwargs)


def test_a_handler_need_not_take_all_or_any_of_the_arguments(rota: Rota) -> None:
    @rota.task
    def send(error: int, a: int, b: int) -> None: ...

    def none(error: ErrorRecord, job: JobRecord) -> None: ...
    def some(_: Any, __: Any, b: int) -> None: ...
    def all_of_them(*args: Any, **kwargs: Any) -> None: ...

    handlers: list[tuple[Any, dict[str, int]]] = [
        (none, {}),
        (some, {"b": 3}),
        (all_of_them, {"error": 1, "a": 2, "b": 3}),
    ]
    for handler, named in handlers:
        send.failure_handler = None
        send.on_failure(handler)
        args, kwargs = call(rota, "[1,2,3]")
        assert len(args) == 2
        assert kwargs == named


def test_a_handler_without_arguments_runs_whatever_the_job_was_called_with(rota: Rota) -> None:
    """It may have failed for just that."""

    @rota.task
    def send(a: int) -> None: ...

    @send.on_failure
    def tell(error: ErrorRecord, job: JobRecord) -> None:
        pass

    assert len(call(rota, '["no number"]')[0]) == 2


@pytest.mark.parametrize("encoded", [b"", b"[1,2]", told("{"), told("[" * 5000), told(ref="a b:c d")])
def test_what_cannot_be_read_is_refused_for_good(rota: Rota, encoded: bytes) -> None:
    @rota.task
    def send(a: int) -> None: ...

    @send.on_failure
    def tell(error: ErrorRecord, job: JobRecord) -> None:
        pass

    with pytest.raises(InvalidArguments, match=r"send\.on_failure"):
        rota.tasks.find("send.on_failure").signature.decode(encoded)


def test_arguments_that_do_not_fit_are_refused(rota: Rota) -> None:
    @rota.task
    def send(a: int) -> None: ...

    @send.on_failure
    def tell(error: ErrorRecord, job: JobRecord, a: int) -> None:
        pass

    with pytest.raises(InvalidArguments, match="int"):
        call(rota, '["no number"]')


def test_context_and_providers_are_filled_in_wherever_they_stand(rota: Rota) -> None:
    @rota.task
    def send(a: int) -> None: ...

    @send.on_failure
    def tell(ctx: Context, error: ErrorRecord, job: JobRecord, a: int, db: str = Depends(str)) -> None:
        pass

    signature = rota.tasks.find("send.on_failure").signature
    assert [dependency.name for dependency in signature.dependencies] == ["ctx", "db"]
    assert call(rota, "[1]")[1] == {"a": 1}


def test_a_handler_that_could_not_be_called_is_refused(rota: Rota) -> None:
    @rota.task
    def send(a: int) -> None: ...

    def too_few(error: ErrorRecord) -> None: ...
    def unknown(error: ErrorRecord, job: JobRecord, colour: str) -> None: ...

    handlers: list[Any] = [too_few, unknown]
    for handler in handlers:
        with pytest.raises(ConfigurationError, match=r"send\.on_failure"):
            send.on_failure(handler)
        assert send.failure_handler is None


@pytest.mark.parametrize("thing", [5, "text", object])
def test_only_functions_can_be_handlers(rota: Rota, thing: Any) -> None:
    @rota.task
    def send() -> None: ...

    with pytest.raises(ConfigurationError):
        send.on_failure(thing)
    assert send.failure_handler is None


def test_a_task_has_one_handler_and_the_same_again_replaces_it(rota: Rota) -> None:
    @rota.task
    def send() -> None: ...

    def declare() -> Any:
        def tell(error: ErrorRecord, job: JobRecord) -> None: ...

        return send.on_failure(tell)

    def another(error: ErrorRecord, job: JobRecord) -> None: ...

    declare()
    again = declare()
    assert send.failure_handler is not None
    assert send.failure_handler.function is again
    with pytest.raises(TaskConflict, match="already has a failure handler"):
        send.on_failure(another)
    assert send.failure_handler.function is again


def test_the_names_of_handlers_are_reserved(rota: Rota) -> None:
    with pytest.raises(InvalidOption, match="on_failure"):

        @rota.task(name="send.on_failure")
        def send() -> None: ...

    assert len(rota.tasks) == 0


def test_a_handler_that_is_not_declared_is_not_found(rota: Rota) -> None:
    @rota.task
    def send() -> None: ...

    for name in ("send.on_failure", "other.on_failure", ".on_failure"):
        with pytest.raises(UnknownTask):
            rota.tasks.find(name)


@pytest.mark.requirement("S4-2", "S4-22")
def test_options_of_failure_jobs(rota: Rota) -> None:
    """Separate defaults for failure jobs; below what the handler itself says."""

    @rota.task(timeout=1, retry=1)
    def send() -> None: ...

    @send.on_failure(timeout=20, run_in="process")
    def tell(error: ErrorRecord, job: JobRecord) -> None:
        pass

    handler = send.failure_handler
    assert handler is not None
    assert handler.run_in == "process"
    plain = handler.options_in("any")
    assert plain.retry == Retry(attempts=100, backoff=Exponential(base=10, max=900))
    assert plain.timeout_ms == 20_000

    rota.queue("mail", failure_defaults={"timeout": 30, "retry": 5, "tags": ["x"]})

    mail = handler.options_in("mail")
    assert (mail.timeout_ms, mail.retry.attempts, mail.tags) == (20_000, 5, ("x",))
    assert mail.terms == ("tag=x",)
    assert handler.options_in("any") == plain
    assert send.options.tags == (), "the jobs themselves have their own defaults"


@pytest.mark.parametrize(
    "options", [{"delay": 5}, {"lock": "x"}, {"expires": 5}, {"durability": "memory"}, {"timeout": 0}, {"colour": 1}]
)
def test_options_that_failure_jobs_cannot_have_are_refused(rota: Rota, options: dict[str, Any]) -> None:
    @rota.task
    def send() -> None: ...

    def tell(error: ErrorRecord, job: JobRecord) -> None: ...

    (name,) = options
    with pytest.raises(InvalidOption) as refused:
        rota.queue("mail", failure_defaults=options)
    assert refused.value.option == name
    with pytest.raises(InvalidOption):
        send.on_failure(**options)(tell)
    assert send.failure_handler is None
    assert enqueuer_of(rota).failure_defaults == {}


@pytest.mark.parametrize("option", ["defaults", "failure_defaults"])
def test_options_for_failures_are_given_with_their_queue(rota: Rota, option: str) -> None:
    given: dict[str, Any] = {option: {"timeout": 5}}
    with pytest.raises(InvalidOption, match=r"rota\.queue\('mail', failure_defaults"):
        rota.queue("mail-fail", **given)

    assert rota.queue("mail-fail").name == "mail-fail"


def test_the_failures_of_a_queue_with_a_long_name_can_be_named(rota: Rota) -> None:
    job = rota.job("x" * 64 + "-fail:y")

    assert job.queue == "x" * 64 + "-fail"
    with pytest.raises(InvalidOption):
        rota.job("x" * 65 + ":y")
    with pytest.raises(InvalidOption):
        rota.job("x" * 65 + "-fail:y")
