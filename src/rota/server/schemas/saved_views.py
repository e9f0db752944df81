"""Saved views of the dashboard."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from rota.server.schemas.common import RequestBody, ResponseBody


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

    page: Annotated[str, Field(min_length=1, max_length=200, pattern="^/")]
    search: Annotated[dict[str, Any], Field(default_factory=dict)]


class SavedViewResponse(ResponseBody):
    """One saved view."""

    view: SavedView


class SavedViewsResponse(ResponseBody):
    """The saved views, by name."""

    views: list[SavedView]
