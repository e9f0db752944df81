"""Annotations: marks on the charts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rota.server.schemas.common import DateTimeText, QueueName, RequestBody, ResponseBody


class Annotation(ResponseBody):
    """A mark at one moment."""

    id: str
    at: str
    kind: Literal["deploy", "note"]
    text: str
    #: The version that was deployed.
    version: str | None
    #: The queue that it is about; null for all.
    queue: str | None
    by: str | None


class NewAnnotation(RequestBody):
    """A mark. Without `at` it is now."""

    text: Annotated[str, Field(min_length=1, max_length=500)]
    kind: Literal["deploy", "note"] = "note"
    at: DateTimeText | None = None
    version: Annotated[str, Field(max_length=100)] = ""
    queue: QueueName | None = None


class AnnotationResponse(ResponseBody):
    """One mark."""

    annotation: Annotation


class AnnotationsResponse(ResponseBody):
    """The marks of a time range, oldest first."""

    annotations: list[Annotation]
