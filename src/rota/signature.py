"""A task's parameters: what may be passed at enqueue, how it is written down, and how the handler gets it back.

Arguments are encoded and decoded again at enqueue, with the very decoder that the worker will use: what a task cannot
be called with is refused where the mistake was made.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from rota.context import Context, Provided
from rota.core.codec import (
    decode_arguments,
    decode_failure,
    decode_hook,
    encode_arguments,
    encode_arguments_with_results,
    encode_hook,
)
from rota.core.workflow import StepResult, find_results
from rota.errors import ConfigurationError, InvalidArguments, RotaError

_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Dependency:
    """A parameter that the worker fills in: the context, or what a `Depends` provides."""

    name: str
    provides: Provided | None  # None: the context


class Signature:
    """The parameters of one function, read when first needed, so that annotations may name what comes later."""

    def __init__(self, task: str, function: Callable[..., Any]) -> None:
        self._task = task
        self.dependencies: list[Dependency] = []
        hints = _hints(task, function)
        returns = hints.get("return", Any)
        self.returns = Any if returns in (typing.NoReturn, typing.Never) else returns
        self._check_type("the result", self.returns)
        fields: list[Any] = []
        self._positional: list[str] = []
        self._positional_only: set[str] = set()
        self._var_positional: Any = None
        self._var_named: Any = None
        for name, parameter in inspect.signature(function).parameters.items():
            annotation = hints.get(name, Any)
            if annotation is Context:
                self.dependencies.append(Dependency(name, None))
            elif isinstance(parameter.default, Provided):
                self.dependencies.append(Dependency(name, parameter.default))
            elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                self._check_type(f"parameter {name!r}", annotation)
                self._var_positional = annotation
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                self._check_type(f"parameter {name!r}", annotation)
                self._var_named = annotation
            else:
                self._check_type(f"parameter {name!r}", annotation)
                if parameter.kind in _POSITIONAL and not any(d.provides for d in self.dependencies):
                    self._positional.append(name)  # behind one that the worker provides, only by name
                if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
                    self._positional_only.add(name)
                if parameter.default is inspect.Parameter.empty:
                    fields.append((name, annotation))
                else:
                    # Unset stays unset, so that the handler's own default is the one that counts.
                    fields.append((name, annotation | msgspec.UnsetType, msgspec.UNSET))
        self._names = [field[0] for field in fields]
        self._required = [field[0] for field in fields if len(field) == 2]
        self._annotations = {field[0]: field[1] for field in fields}
        ordered = sorted(fields, key=len)  # required ones first: a struct wants that, and names decide anyway
        self._struct = msgspec.defstruct(
            f"{task}_arguments", ordered, kw_only=True, forbid_unknown_fields=self._var_named is None
        )
        self._fits_by_place, self._fits_by_name = self._quick_checks(fields)
        self._decode_array = self._array_decoder(fields)

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """Arguments as they are stored; refused if the task could not be called with them."""
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
            raise InvalidArguments(self._task, f"arguments are not JSON: {error}") from error
        self._check(encoded, is_positional=not kwargs)
        return encoded

    def encode_with_results(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bytes, list[StepResult]]:
        """The same where results of steps stand among the arguments: those are checked once they are there."""
        named = dict(zip(self._positional, args, strict=False)) | kwargs
        given = {name: value for name, value in named.items() if not find_results(value)}
        missing = [name for name in self._required if name not in named]
        unknown = [name for name in named if name not in self._annotations] if self._var_named is None else []
        if missing or unknown or len(named) < min(len(args), len(self._positional)) + len(kwargs):
            raise InvalidArguments(self._task, _misfit(missing, unknown))
        extra = args[len(self._positional) :]
        if extra and self._var_positional is None:
            raise InvalidArguments(self._task, f"takes {len(self._positional)} positional arguments, not {len(args)}")
        for name, value in given.items():
            self._convert(
                name, msgspec.to_builtins(value, enc_hook=encode_hook, str_keys=True), self._annotations.get(name, Any)
            )
        try:
            encoded = encode_arguments_with_results(extra, named)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InvalidArguments(self._task, f"arguments are not JSON: {error}") from error
        return encoded, find_results([args, kwargs])

    def decode(self, encoded: bytes) -> tuple[list[Any], dict[str, Any]]:
        """Typed arguments for the handler; refused where they do not fit its annotations."""
        if self._decode_array is not None and encoded.startswith(b"["):
            try:
                return self._decode_array(encoded), {}
            except (ValueError, RecursionError):
                pass  # what is wrong is said below
        return self.decode_by_name(encoded)

    def decode_by_name(self, encoded: bytes) -> tuple[list[Any], dict[str, Any]]:
        """The same, with every argument that can have a name under its name."""
        try:
            args, named = decode_arguments(encoded)
        except (ValueError, RecursionError) as error:
            raise InvalidArguments(self._task, f"arguments cannot be read: {error}") from error
        for dependency in self.dependencies:
            if dependency.name in named:
                raise InvalidArguments(self._task, f"{dependency.name!r} is filled in by the worker, do not pass it")
        if named:
            extra = args  # beside names, only what comes after all of them has no name
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
            raise InvalidArguments(self._task, _say(error)) from error
        values = {name: value for name in self._names if (value := getattr(struct, name)) is not msgspec.UNSET}
        by_place = self._positional if extra else self._positional[: len(self._positional_only)]
        gap = next((place for place, name in enumerate(by_place) if name not in values), len(by_place))
        if gap < len(by_place) and (extra or any(name in values for name in by_place[gap:])):
            raise InvalidArguments(self._task, f"{by_place[gap]!r} has to be given where what follows it is")
        return [values.pop(name) for name in by_place[:gap]] + extra, values | others

    def _quick_checks(self, fields: list[Any]) -> tuple[Callable[[bytes], object], Callable[[bytes], object]]:
        """Decoders that accept nothing that `decode` would not; what they refuse, `decode` has the last word on."""
        by_name = {field[0]: field for field in fields}
        places = [by_name[name] for name in self._positional]
        is_plain = (
            self._var_positional is None
            and self._var_named is None
            and not self._positional_only
            and places == fields[: len(places)]
            and sorted(places, key=len) == places
            and all(len(field) == 3 for field in fields[len(places) :])
        )
        if not is_plain:
            return self.decode, self.decode
        as_array = msgspec.defstruct("by_place", places, array_like=True, forbid_unknown_fields=True)
        by_place = msgspec.json.Decoder(as_array, dec_hook=decode_hook)
        return by_place.decode, msgspec.json.Decoder(self._struct, dec_hook=decode_hook).decode

    def _check_names(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for dependency in self.dependencies:
            if dependency.name in kwargs:
                raise InvalidArguments(self._task, f"{dependency.name!r} is filled in by the worker, do not pass it")
        for name in self._positional[: len(args)]:
            if name in kwargs:
                raise InvalidArguments(self._task, f"got two values for {name!r}")
        for name in self._positional_only.intersection(kwargs):
            raise InvalidArguments(self._task, f"{name!r} can only be passed by position")
        if "*" in kwargs:  # where the record keeps positional arguments
            raise InvalidArguments(self._task, "no such parameter: `*`")

    def _check(self, encoded: bytes, *, is_positional: bool) -> None:
        try:
            (self._fits_by_place if is_positional else self._fits_by_name)(encoded)
        except (msgspec.ValidationError, RecursionError):
            self.decode(encoded)

    def named(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Arguments by the names of their parameters, as far as they have any."""
        return dict(zip(self._positional, args, strict=False)) | kwargs

    @property
    def positional(self) -> list[str]:
        """Names of the parameters that can be given by position, in their order."""
        return list(self._positional)

    def takes(self, name: str) -> bool:
        """True when an argument can be given by that name."""
        return name in self._names or self._var_named is not None

    def schema(self) -> dict[str, Any]:
        """JSON Schema of the named arguments, for forms and for callers in other languages."""
        try:
            return msgspec.json.schema(self._struct, schema_hook=_schema_hook)
        except TypeError:
            return {"type": "object"}

    def _array_decoder(self, fields: list[Any]) -> Callable[[bytes], list[Any]] | None:
        """Reads arguments that were all passed by position in one go, as most are; None where some must have names."""
        if self._var_positional is not None or not set(self._required) <= set(self._positional):
            return None
        places = [field for field in fields if field[0] in self._positional]
        struct = msgspec.defstruct(f"{self._task}_places", places, array_like=True, forbid_unknown_fields=True)
        decode = msgspec.json.Decoder(struct, dec_hook=decode_hook).decode

        def decode_array(encoded: bytes) -> list[Any]:
            values = msgspec.structs.astuple(decode(encoded))
            return [value for value in values if value is not msgspec.UNSET]

        return decode_array

    def _check_type(self, what: str, annotation: Any) -> None:
        try:
            msgspec.json.Decoder(annotation, dec_hook=decode_hook)
            unknown = [
                info.cls
                for info in _walk(msgspec.inspect.type_info(annotation))
                if isinstance(info, msgspec.inspect.CustomType)
            ]
        except TypeError as error:
            raise ConfigurationError(f"task {self._task!r}: {what}: {error}") from error
        for cls in unknown:
            if cls is not object and not hasattr(cls, "model_validate"):
                raise ConfigurationError(
                    f"task {self._task!r}: {what} is a {cls.__name__}, which JSON cannot carry; "
                    "use builtins, dataclasses, msgspec Structs or pydantic models; "
                    "a parameter may also have a Depends(...) default"
                )

    def _convert(self, name: str, value: Any, annotation: Any) -> Any:
        try:
            return msgspec.convert(value, annotation, str_keys=True, dec_hook=decode_hook)
        except msgspec.ValidationError as error:
            raise InvalidArguments(self._task, f"{name}: {_say(error)}") from error


def _misfit(missing: list[str], unknown: list[str]) -> str:
    if missing:
        return f"missing argument `{missing[0]}`"
    return f"no such parameter: `{unknown[0]}`" if unknown else "got two values for one parameter"


class FailureSignature:
    """The parameters of a failure handler: the error, the job, and as many of the task's own as it names.

    The first two are passed by position, whatever they are called. What the task was called with has the types that
    the task declares, and is only looked at where the handler asks for it.
    """

    def __init__(self, name: str, function: Callable[..., Any], task: Signature) -> None:
        self._name = name
        self._task = task
        self.dependencies: list[Dependency] = []
        hints = _hints(name, function)
        by_place: list[str] = []
        self._named: set[str] = set()
        self._has_var_positional = self._has_var_named = False
        for parameter in inspect.signature(function).parameters.values():
            if hints.get(parameter.name) is Context:
                self.dependencies.append(Dependency(parameter.name, None))
            elif isinstance(parameter.default, Provided):
                self.dependencies.append(Dependency(parameter.name, parameter.default))
            elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                self._has_var_positional = True
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                self._has_var_named = True
            elif parameter.kind in _POSITIONAL and len(by_place) < 2:
                by_place.append(parameter.name)
            else:
                if parameter.kind in _POSITIONAL:
                    by_place.append(parameter.name)
                if parameter.kind is not inspect.Parameter.POSITIONAL_ONLY:
                    self._named.add(parameter.name)
                if parameter.default is inspect.Parameter.empty and not task.takes(parameter.name):
                    raise ConfigurationError(f"{name!r} asks for {parameter.name!r}, which the task does not have")
        if len(by_place) < 2 and not self._has_var_positional:
            raise ConfigurationError(f"{name!r} takes the error and the job first, then arguments of the task")
        self._places = max(0, len(by_place) - 2)

    def decode(self, encoded: bytes) -> tuple[list[Any], dict[str, Any]]:
        """Error, job and typed arguments for the handler."""
        try:
            failure = decode_failure(encoded)
        except (ValueError, RecursionError, RotaError) as error:
            raise InvalidArguments(self._name, f"what failed cannot be read: {error}") from error
        told: list[Any] = [failure.error, failure.job]
        if not (self._places or self._named or self._has_var_positional or self._has_var_named):
            return told, {}
        args, kwargs = self._task.decode_by_name(failure.job.arguments)
        if not self._has_var_positional:
            args = args[: self._places]
        if not self._has_var_named:
            kwargs = {name: value for name, value in kwargs.items() if name in self._named}
        return told + args, kwargs


def _schema_hook(annotation: type) -> dict[str, Any]:
    model: Any = annotation
    return model.model_json_schema() if hasattr(model, "model_json_schema") else {}


def _hints(task: str, function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception as error:  # an annotation is code, and may fail in any way
        raise ConfigurationError(f"task {task!r}: an annotation cannot be resolved: {error}") from error


def _walk(info: Any) -> typing.Iterator[Any]:
    yield info
    for name in ("types", "item_types"):
        for part in getattr(info, name, ()):
            yield from _walk(part)
    for name in ("item_type", "key_type", "value_type"):
        part = getattr(info, name, None)
        if part is not None:
            yield from _walk(part)


def _say(error: msgspec.ValidationError) -> str:
    text = str(error)
    return text.replace("Object missing required field", "missing argument").replace(
        "Object contains unknown field", "no such parameter:"
    )
