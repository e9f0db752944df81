"""The messages of KEDA's service `externalscaler.ExternalScaler`: their fields as on the wire.

The definitions are built when the module is imported, so neither generated code nor a compiler is needed. They are in
a pool of their own, where a program that brings KEDA's generated messages does not conflict with them.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SERVICE: Final = "externalscaler.ExternalScaler"
_PACKAGE: Final = "externalscaler"
_FIELD: Any = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final[dict[str, int]] = {
    "bool": _FIELD.TYPE_BOOL,
    "double": _FIELD.TYPE_DOUBLE,
    "int64": _FIELD.TYPE_INT64,
    "string": _FIELD.TYPE_STRING,
}


class _Field(NamedTuple):
    """One field of a message. A type that is no scalar is the name of a message."""

    number: int
    name: str
    type: str
    is_repeated: bool = False


#: A map is a repeated message of key and value.
_METADATA_ENTRY: Final = "ScalerMetadataEntry"
_MESSAGES: Final[dict[str, tuple[_Field, ...]]] = {
    "ScaledObjectRef": (
        _Field(1, "name", "string"),
        _Field(2, "namespace", "string"),
        _Field(3, "scalerMetadata", f"ScaledObjectRef.{_METADATA_ENTRY}", is_repeated=True),
    ),
    "IsActiveResponse": (_Field(1, "result", "bool"),),
    "MetricSpec": (
        _Field(1, "metricName", "string"),
        _Field(2, "targetSize", "int64"),
        _Field(3, "targetSizeFloat", "double"),
    ),
    "GetMetricSpecResponse": (_Field(1, "metricSpecs", "MetricSpec", is_repeated=True),),
    "GetMetricsRequest": (_Field(1, "scaledObjectRef", "ScaledObjectRef"), _Field(2, "metricName", "string")),
    "MetricValue": (
        _Field(1, "metricName", "string"),
        _Field(2, "metricValue", "int64"),
        _Field(3, "metricValueFloat", "double"),
    ),
    "GetMetricsResponse": (_Field(1, "metricValues", "MetricValue", is_repeated=True),),
}


def _add_field(message: Any, field: _Field) -> None:
    label = _FIELD.LABEL_REPEATED if field.is_repeated else _FIELD.LABEL_OPTIONAL
    added = message.field.add(name=field.name, number=field.number, label=label)
    if field.type in _SCALARS:
        added.type = _SCALARS[field.type]
    else:
        added.type, added.type_name = _FIELD.TYPE_MESSAGE, f".{_PACKAGE}.{field.type}"


def _message_classes() -> dict[str, Any]:
    file: Any = descriptor_pb2.FileDescriptorProto(name="rota/external_scaler", package=_PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in fields:
            _add_field(message, field)
        if name == "ScaledObjectRef":
            entry = message.nested_type.add(name=_METADATA_ENTRY)
            entry.options.map_entry = True
            for field in (_Field(1, "key", "string"), _Field(2, "value", "string")):
                _add_field(entry, field)
    pool: Any = descriptor_pool.DescriptorPool()
    pool.Add(file)
    factory: Any = message_factory
    return {name: factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _MESSAGES}


_classes: Final = _message_classes()
ScaledObjectRef: Final = _classes["ScaledObjectRef"]
IsActiveResponse: Final = _classes["IsActiveResponse"]
GetMetricSpecResponse: Final = _classes["GetMetricSpecResponse"]
GetMetricsRequest: Final = _classes["GetMetricsRequest"]
GetMetricsResponse: Final = _classes["GetMetricsResponse"]
