"""Saved views of the dashboard."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from rota.server.schemas.common import RequestBody, ResponseBody

#: A path of this origin: a browser reads two slashes, or a slash and a backslash, as the start of a host name.
PAGE: Final = r"^/([^/\\\x00-\x1f\x7f][^\x00-\x1f\x7f]*)?$"
#: A name without control characters.
NAME: Final = r"^[^\x00-\x1f\x7f-\x9f]+$"


class SavedView(ResponseBody):
    """The filters of a page under a name."""

    name: str
    #: Path of the page, such as /jobs.
    page: str
    #: Its search parameters.
    search: dict[str, Any]
    by: str | None
    at: str


class SaveView(RequestBody):
    """The filters to save."""

    page: Annotated[str, Field(min_length=1, max_length=200, pattern=PAGE)]
    search: Annotated[dict[str, Any], Field(default_factory=dict)]

    @field_validator("search")
    @classmethod
    def check_search(cls, value: dict[str, Any]) -> dict[str, Any]:
        """Returns the value unchanged. Raises PydanticCustomError if it cannot be stored as JSON."""
        try:
            msgspec.json.encode(value)
        except (UnicodeEncodeError, RecursionError) as error:
            message = "has text that is not valid Unicode, or is nested too deeply"
            raise PydanticCustomError("not_storable", message) from error
        return value


class SavedViewResponse(ResponseBody):
    """One saved view."""

    view: SavedView


class SavedViewsResponse(ResponseBody):
    """The saved views, by name."""

    views: list[SavedView]
