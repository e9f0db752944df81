"""The arguments of a task: checked and encoded at enqueue, decoded for the handler.

Arguments are encoded and decoded again at enqueue, with the decoder that the worker uses: arguments that a task does
not take are rejected at the call that passes them.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, cast

import msgspec

from rota.client.blob import Blob, find_blobs
from rota.client.context import Context
from rota.client.depends import Depends, Provided, is_context
from rota.core.encrypted_values import check_not_marked
from rota.core.job_record_codec import (
    decode_arguments,
    decode_failure,
    decode_hook,
    encode_arguments,
    encode_arguments_with_placeholders,
    encode_hook,
)
from rota.core.workflow_record_and_decisions import StepResult, find_results
from rota.errors import ConfigurationError, InvalidArguments, RotaError

_END: Final = object()
#: Types that JSON stores as they are.
_JSON_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
#: Types that JSON stores as a list or a text.
_NOT_JSON: Final = (set, frozenset, bytes, bytearray, memoryview)
#: Types that msgspec reads back from the list or text that they are stored as.
_RESTORED: Final = (
    msgspec.inspect.SetType,
    msgspec.inspect.FrozenSetType,
    msgspec.inspect.BytesType,
    msgspec.inspect.ByteArrayType,
    msgspec.inspect.MemoryViewType,
)
_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class UnresolvedAnnotation(ConfigurationError):
    """An annotation names a type that does not exist, or is defined later."""


@dataclass(frozen=True, slots=True)
class InjectedParameter:
    """A parameter that the worker injects: the context, or the value of a `Depends`."""

    name: str
    provides: Provided | None  # None: the context


class Signature:
    """The parameters of one function: checks, encodes and decodes its arguments."""

    def __init__(self, task: str, function: Callable[..., Any]) -> None:
        self._task = task
        self.dependencies: list[InjectedParameter] = []
        hints = _hints(task, function)
        returns = hints.get("return", Any)
        self.returns = Any if returns in (typing.NoReturn, typing.Never) else returns
        self._check_type("the result", self.returns)
        #: Its arguments may contain blobs.
        self.has_blobs = False
        fields: list[Any] = []
        self._positional: list[str] = []
        self._positional_only: set[str] = set()
        self._var_positional: Any = None
        self._var_named: Any = None
        #: Parameters whose annotation does not restore a set or bytes; `*` and `**` for any number of them.
        self._untyped: set[str] = set()
        for name, parameter in inspect.signature(function).parameters.items():
            annotation = hints.get(name, Any)
            self._check_injection(name, parameter.default, annotation)
            if annotation is Context:
                self.dependencies.append(InjectedParameter(name, None))
            elif isinstance(parameter.default, Provided):
                self.dependencies.append(InjectedParameter(name, parameter.default))
            elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                self._check_type(f"parameter {name!r}", annotation)
                self._var_positional = annotation
                self._untyped |= {"*"} if _is_untyped(annotation) else set()
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                self._check_type(f"parameter {name!r}", annotation)
                self._var_named = annotation
                self._untyped |= {"**"} if _is_untyped(annotation) else set()
            else:
                self._check_type(f"parameter {name!r}", annotation)
                self._untyped |= {name} if _is_untyped(annotation) else set()
                if parameter.kind in _POSITIONAL and not any(d.provides for d in self.dependencies):
                    self._positional.append(name)  # after an injected one, only by name
                if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
                    self._positional_only.add(name)
                if parameter.default is inspect.Parameter.empty:
                    fields.append((name, annotation))
                else:
                    # Unset stays unset, so that the default of the handler applies.
                    fields.append((name, annotation | msgspec.UnsetType, msgspec.UNSET))
        self._names = [field[0] for field in fields]
        self._required = [field[0] for field in fields if len(field) == 2]
        self._annotations = {field[0]: field[1] for field in fields}
        ordered = sorted(fields, key=len)  # a struct needs required fields first; arguments are matched by name
        self._struct = msgspec.defstruct(
            f"{task}_arguments", ordered, kw_only=True, forbid_unknown_fields=self._var_named is None
        )
        self._check_by_position, self._check_by_name = self._quick_checks(fields)
        self._decode_array = self._array_decoder(fields)

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """Returns arguments as they are stored. Raises InvalidArguments when the task does not take them."""
        if kwargs:
            self._check_names(args, kwargs)
        if len(args) > len(self._positional) and self._var_positional is None:
            raise InvalidArguments(
                self._task,
                f"takes {len(self._positional)} positional arguments ({', '.join(self._positional)}), not {len(args)}",
            )
        try:
            if kwargs:
                named = dict(zip(self._positional, args, strict=False)) | kwargs
                encoded = encode_arguments(args[len(self._positional) :], named)
            else:
                encoded = encode_arguments(args, kwargs)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InvalidArguments(self._task, _why_not_json(args, kwargs, error)) from error
        check_not_marked(self._task, encoded)
        self._check(encoded, is_positional=not kwargs)
        if self._untyped:
            self._check_untyped(args, kwargs)
        return encoded

    def encode_with_results(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bytes, list[StepResult]]:
        """Like `encode`, for arguments that contain results of steps: those are checked once they exist."""
        named = dict(zip(self._positional, args, strict=False)) | kwargs
        given = {name: value for name, value in named.items() if not find_results(value)}
        missing = [name for name in self._required if name not in named]
        unknown = [name for name in named if name not in self._annotations] if self._var_named is None else []
        if missing or unknown or len(named) < min(len(args), len(self._positional)) + len(kwargs):
            raise InvalidArguments(self._task, _misfit(missing, unknown), field=next(iter(missing + unknown), ""))
        extra = args[len(self._positional) :]
        if extra and self._var_positional is None:
            raise InvalidArguments(self._task, f"takes {len(self._positional)} positional arguments, not {len(args)}")
        for name, value in given.items():
            self._convert(
                name, msgspec.to_builtins(value, enc_hook=encode_hook, str_keys=True), self._annotations.get(name, Any)
            )
        try:
            encoded = encode_arguments_with_placeholders(extra, named)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InvalidArguments(self._task, f"arguments are not JSON: {error}") from error
        check_not_marked(self._task, encoded)
        return encoded, find_results([args, kwargs])

    def decode(self, encoded: bytes) -> tuple[list[Any], dict[str, Any]]:
        """Returns typed arguments for the handler. Raises InvalidArguments where they do not fit its annotations."""
        if self._decode_array is not None and encoded.startswith(b"["):
            try:
                return self._decode_array(encoded), {}
            except (ValueError, RecursionError):
                pass  # `decode_by_name` raises with the reason
        return self.decode_by_name(encoded)

    def decode_by_name(self, encoded: bytes) -> tuple[list[Any], dict[str, Any]]:
        """Like `decode`, with arguments by name wherever their parameter can be passed by name."""
        try:
            args, named = decode_arguments(encoded)
        except (ValueError, RecursionError) as error:
            raise InvalidArguments(self._task, f"arguments cannot be read: {error}") from error
        for dependency in self.dependencies:
            if dependency.name in named:
                raise self._not_to_be_passed(dependency.name)
        if named:
            extra = args  # next to names, only arguments of `*args` have none
        else:
            extra = args[len(self._positional) :]
            named = dict(zip(self._positional, args, strict=False))
        if extra and self._var_positional is None:
            raise InvalidArguments(self._task, f"takes {len(self._positional)} positional arguments, more were given")
        extra = [self._convert("*", item, self._var_positional) for item in extra]
        others: dict[str, Any] = {}
        if self._var_named is not None:
            others = {
                name: self._convert(name, named.pop(name), self._var_named) for name in set(named) - set(self._names)
            }
        try:
            struct = msgspec.convert(named, self._struct, str_keys=True, dec_hook=decode_hook)
        except msgspec.ValidationError as error:
            raise self._misfit(error) from error
        values = {name: value for name in self._names if (value := getattr(struct, name)) is not msgspec.UNSET}
        by_position = self._positional if extra else self._positional[: len(self._positional_only)]
        gap = next((index for index, name in enumerate(by_position) if name not in values), len(by_position))
        if gap < len(by_position) and (extra or any(name in values for name in by_position[gap:])):
            missing = by_position[gap]
            message = f"{missing!r} has to be given where what follows it is"
            raise InvalidArguments(self._task, message, field=missing)
        return [values.pop(name) for name in by_position[:gap]] + extra, values | others

    def _quick_checks(self, fields: list[Any]) -> tuple[Callable[[bytes], object], Callable[[bytes], object]]:
        """Returns fast decoders that accept nothing that `decode` would not. `decode` checks what they reject."""
        by_name = {field[0]: field for field in fields}
        positional = [by_name[name] for name in self._positional]
        is_plain = (
            self._var_positional is None
            and self._var_named is None
            and not self._positional_only
            and positional == fields[: len(positional)]
            and sorted(positional, key=len) == positional
            and all(len(field) == 3 for field in fields[len(positional) :])
        )
        if not is_plain:
            return self.decode, self.decode
        as_array = msgspec.defstruct("by_position", positional, array_like=True, forbid_unknown_fields=True)
        by_position = msgspec.json.Decoder(as_array, dec_hook=decode_hook)
        return by_position.decode, msgspec.json.Decoder(self._struct, dec_hook=decode_hook).decode

    def _check_names(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for dependency in self.dependencies:
            if dependency.name in kwargs:
                raise self._not_to_be_passed(dependency.name)
        for name in self._positional[: len(args)]:
            if name in kwargs:
                raise InvalidArguments(self._task, f"got two values for {name!r}", field=name)
        for name in self._positional_only.intersection(kwargs):
            raise InvalidArguments(self._task, f"{name!r} can only be passed by position", field=name)
        if "*" in kwargs:  # the record keeps positional arguments under this name
            raise InvalidArguments(self._task, "no such parameter: `*`")

    def _check(self, encoded: bytes, *, is_positional: bool) -> None:
        try:
            (self._check_by_position if is_positional else self._check_by_name)(encoded)
        except (msgspec.ValidationError, RecursionError):
            self.decode(encoded)

    def _check_untyped(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Refuses sets and bytes in untyped parameters: the handler would get a list or a text instead."""
        for name, value in (dict(zip(self._positional, args, strict=False)) | kwargs).items():
            if name in self._untyped or ("**" in self._untyped and name not in self._annotations):
                self._check_is_json(name, value)
        if "*" in self._untyped:
            self._check_is_json("*", list(args[len(self._positional) :]))

    def _check_is_json(self, name: str, value: Any) -> None:
        changed = _find_set_or_bytes(value)
        if changed is not None:
            kind = type(changed).__name__
            reason = f"a {kind} is not JSON: pass a list or a text, or annotate the parameter, such as {name}: {kind}"
            raise InvalidArguments(self._task, f"{name}: {reason}", field=name, reason=reason)

    def named(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Returns arguments by the names of their parameters, where they have one."""
        return dict(zip(self._positional, args, strict=False)) | kwargs

    @property
    def positional(self) -> list[str]:
        """Names of the parameters that can be given by position, in their order."""
        return list(self._positional)

    def takes(self, name: str) -> bool:
        """True when an argument can be passed by that name."""
        return name in self._names or self._var_named is not None

    def schema(self) -> dict[str, Any]:
        """JSON Schema of the named arguments, for forms and for callers in other languages."""
        try:
            return msgspec.json.schema(self._struct, schema_hook=_schema_hook)
        except TypeError:
            return {"type": "object"}

    def _array_decoder(self, fields: list[Any]) -> Callable[[bytes], list[Any]] | None:
        """Returns a decoder for arguments that were all passed by position, as most are; None where some need names."""
        if self._var_positional is not None or not set(self._required) <= set(self._positional):
            return None
        positional = [field for field in fields if field[0] in self._positional]
        struct = msgspec.defstruct(f"{self._task}_positional", positional, array_like=True, forbid_unknown_fields=True)
        decode = msgspec.json.Decoder(struct, dec_hook=decode_hook).decode

        def decode_array(encoded: bytes) -> list[Any]:
            values = msgspec.structs.astuple(decode(encoded))
            return [value for value in values if value is not msgspec.UNSET]

        return decode_array

    def _check_injection(self, name: str, default: Any, annotation: Any) -> None:
        """Raises ConfigurationError for a `Depends` in a place where it has no effect."""
        if default is Depends or any(isinstance(part, Provided) for part in typing.get_args(annotation)):
            raise ConfigurationError(
                f"task {self._task!r}: parameter {name!r} is not injected: Depends(provider) is the default of a "
                f"parameter, as in {name}: Database = Depends(open_database)"
            )

    def _check_type(self, what: str, annotation: Any) -> None:
        try:
            msgspec.json.Decoder(annotation, dec_hook=decode_hook)
            unknown = [
                info.cls
                for info in _walk(msgspec.inspect.type_info(annotation))
                if isinstance(info, msgspec.inspect.CustomType)
            ]
        except NameError as error:  # a field of its type names a type that is defined later
            raise UnresolvedAnnotation(f"task {self._task!r}: {what}: {error}") from error
        except TypeError as error:
            raise ConfigurationError(f"task {self._task!r}: {what}: {error}") from error
        if Blob in unknown:
            self.has_blobs = True
        for cls in unknown:
            if cls is not object and not hasattr(cls, "model_validate"):
                raise ConfigurationError(
                    f"task {self._task!r}: {what} is a {cls.__name__}, which JSON cannot carry; "
                    "use builtins, dataclasses, msgspec Structs or pydantic models; "
                    "a parameter may also have a Depends(...) default"
                )

    def _not_to_be_passed(self, name: str) -> InvalidArguments:
        return InvalidArguments(self._task, f"{name!r} is filled in by the worker, do not pass it", field=name)

    def _misfit(self, error: msgspec.ValidationError, name: str = "") -> InvalidArguments:
        path, reason = _located(error)
        message = f"{name}: {_plain(str(error))}" if name else _plain(str(error))
        return InvalidArguments(self._task, message, field=".".join([name, *path] if name else path), reason=reason)

    def _convert(self, name: str, value: Any, annotation: Any) -> Any:
        try:
            return msgspec.convert(value, annotation, str_keys=True, dec_hook=decode_hook)
        except msgspec.ValidationError as error:
            raise self._misfit(error, name) from error


def _why_not_json(args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> str:
    # What refers to itself, or is too deep, cannot be walked.
    if not isinstance(error, RecursionError) and any(find_blobs([args, kwargs])):
        return "a Blob can only be given to a parameter of type Blob, and only when its job is enqueued"
    return f"arguments are not JSON: {error}"


def _is_untyped(annotation: Any) -> bool:
    """True if a part of the annotation is `Any`, and none restores a set or bytes."""
    parts = list(_walk(msgspec.inspect.type_info(annotation)))
    is_any = any(isinstance(part, msgspec.inspect.AnyType) or getattr(part, "cls", None) is object for part in parts)
    return is_any and not any(isinstance(part, _RESTORED) for part in parts)


def _find_set_or_bytes(value: Any) -> Any:
    """Returns the first set or bytes in lists, tuples and dicts; None if there is none."""
    rest: list[Any] = [value]
    while rest:
        one = rest.pop()
        if type(one) in (dict, list, tuple):
            items = cast(Iterable[Any], one.values() if hasattr(one, "values") else one)
            if not _JSON_SCALARS.issuperset(map(type, items)):
                rest.extend(items)
        elif type(one) not in _JSON_SCALARS and isinstance(one, _NOT_JSON):
            return cast(Any, one)
    return None


def _misfit(missing: list[str], unknown: list[str]) -> str:
    if missing:
        return f"missing argument `{missing[0]}`"
    return f"no such parameter: `{unknown[0]}`" if unknown else "got two values for one parameter"


class FailureSignature:
    """The parameters of a failure handler: the error, the job, and as many of the task's own as it names.

    The first two are passed by position and may have any name. The task's arguments have the types that the task
    declares, and are only decoded where the handler takes some.
    """

    def __init__(self, name: str, function: Callable[..., Any], task: Signature) -> None:
        self._name = name
        self._task = task
        self.dependencies: list[InjectedParameter] = []
        hints = _hints(name, function)
        by_position: list[str] = []
        self._named: set[str] = set()
        self._has_var_positional = self._has_var_named = False
        for parameter in inspect.signature(function).parameters.values():
            if hints.get(parameter.name) is Context:
                self.dependencies.append(InjectedParameter(parameter.name, None))
            elif isinstance(parameter.default, Provided):
                self.dependencies.append(InjectedParameter(parameter.name, parameter.default))
            elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                self._has_var_positional = True
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                self._has_var_named = True
            elif parameter.kind in _POSITIONAL and len(by_position) < 2:
                by_position.append(parameter.name)
            else:
                if parameter.kind in _POSITIONAL:
                    by_position.append(parameter.name)
                if parameter.kind is not inspect.Parameter.POSITIONAL_ONLY:
                    self._named.add(parameter.name)
                if parameter.default is inspect.Parameter.empty and not task.takes(parameter.name):
                    raise ConfigurationError(f"{name!r} asks for {parameter.name!r}, which the task does not have")
        if len(by_position) < 2 and not self._has_var_positional:
            raise ConfigurationError(f"{name!r} takes the error and the job first, then arguments of the task")
        self.has_blobs = task.has_blobs
        self._task_positional = max(0, len(by_position) - 2)

    def decode(self, encoded: bytes) -> tuple[list[Any], dict[str, Any]]:
        """Error, job and typed arguments for the handler."""
        try:
            failure = decode_failure(encoded)
        except (ValueError, RecursionError, RotaError) as error:
            raise InvalidArguments(self._name, f"what failed cannot be read: {error}") from error
        first: list[Any] = [failure.error, failure.job]
        if not (self._task_positional or self._named or self._has_var_positional or self._has_var_named):
            return first, {}
        args, kwargs = self._task.decode_by_name(failure.job.arguments)
        if not self._has_var_positional:
            args = args[: self._task_positional]
        if not self._has_var_named:
            kwargs = {name: value for name, value in kwargs.items() if name in self._named}
        return first + args, kwargs


def place_injected(
    function: Callable[..., Any], injected: dict[str, Any], args: Iterable[Any], kwargs: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Returns the arguments for a call of `function` whose positional `args` skip the injected parameters.

    A parameter that is injected before or between positional arguments has to be passed by position as well.
    """
    left, given, ordered = dict(injected), iter(args), list[Any]()
    for name in _positional_names(function):
        if name in left:
            ordered.append(left.pop(name))
        elif (value := next(given, _END)) is not _END:
            ordered.append(value)
        else:
            break
    return [*ordered, *given], {**left, **kwargs}


def check_names(task: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raises InvalidArguments for arguments whose number or names do not fit, without resolving annotations."""
    parameters = inspect.signature(function).parameters.values()
    passed = [one for one in parameters if not (isinstance(one.default, Provided) or is_context(one.annotation))]
    try:
        inspect.Signature(passed).bind(*args, **kwargs)
    except TypeError as error:
        raise InvalidArguments(task, str(error)) from error


@lru_cache(maxsize=1_000)
def _positional_names(function: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(function).parameters
    return [name for name, parameter in parameters.items() if parameter.kind in _POSITIONAL]


def _schema_hook(annotation: type) -> dict[str, Any]:
    model: Any = annotation
    return model.model_json_schema() if hasattr(model, "model_json_schema") else {}


def _hints(task: str, function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception as error:  # an annotation is code, and may raise anything
        raise UnresolvedAnnotation(f"task {task!r}: an annotation cannot be resolved: {error}") from error


def _walk(info: Any) -> typing.Iterator[Any]:
    yield info
    for name in ("types", "item_types"):
        for part in getattr(info, name, ()):
            yield from _walk(part)
    for name in ("item_type", "key_type", "value_type"):
        part = getattr(info, name, None)
        if part is not None:
            yield from _walk(part)


#: msgspec reports the path of an error in its message alone: "Expected `int`, got `str` - at `$.items[1].count`".
_ERROR: Final = re.compile(r"(?P<reason>.*?)(?: - at `\$(?P<path>[^`]*)`)?", re.DOTALL)
_NAMED_FIELD: Final = re.compile(r"Object (?:missing required|contains unknown) field `(?P<name>[^`]*)`")


def _located(error: msgspec.ValidationError) -> tuple[list[str], str]:
    """The path of the argument that msgspec refused, and the reason without the path."""
    match = _ERROR.fullmatch(str(error))
    assert match is not None
    reason, path = match["reason"], re.findall(r"[^.\[\]]+", (match["path"] or "").partition("[...]")[0])
    named = _NAMED_FIELD.match(reason)
    return [*path, named["name"]] if named else path, _plain(reason)


def _plain(text: str) -> str:
    return text.replace("Object missing required field", "missing argument").replace(
        "Object contains unknown field", "no such parameter:"
    )
