"""Saved view endpoints: the filters of a page under a name, shared by all users of the dashboard."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Path, Response

from rota.client.session import checked_session
from rota.core.format_iso_time import iso_time
from rota.server.auth.api_tokens import http_server_store
from rota.server.auth.authentication import caller_of
from rota.server.http.idempotency_key import AuthenticatedRoute
from rota.server.http.problem_responses import Problem
from rota.server.request_context_and_permissions import Operator, Viewer, json_response
from rota.server.schemas.common import MessageResponse
from rota.server.schemas.saved_views import NAME, SavedViewResponse, SavedViewsResponse, SaveView

router = APIRouter(route_class=AuthenticatedRoute, tags=["overview"])

#: Bounds of the list: it is read as a whole.
MAX_VIEWS: Final = 200
MAX_VIEW_BYTES: Final = 4_000
NewViewName = Annotated[
    str, Path(max_length=100, pattern=NAME, description="The name of the view, without control characters.")
]
ViewName = Annotated[str, Path(max_length=100, description="The name of the view.")]


@router.get("/api/views", response_model=SavedViewsResponse)
async def list_views(context: Viewer) -> Response:
    """Lists the saved views."""
    context.check_unlimited("saved views")
    stored = await (await http_server_store(context.rota)).saved_views()
    return json_response({"views": [{"name": name, **msgspec.json.decode(stored[name])} for name in sorted(stored)]})


@router.put("/api/views/{name}", response_model=SavedViewResponse)
async def save_view(context: Operator, name: NewViewName, body: SaveView) -> Response:
    """Saves the filters of a page under a name, or replaces them."""
    context.check_unlimited("saved views")
    store = await http_server_store(context.rota)
    now = await (await checked_session(context.rota)).views.now()
    by = caller_of(context.identity, context.request).name
    view: dict[str, Any] = {"page": body.page, "search": body.search, "by": by, "at": iso_time(now)}
    encoded = msgspec.json.encode(view)
    if len(encoded) > MAX_VIEW_BYTES:
        raise Problem(413, "payload_too_large", f"the view has {len(encoded):,} bytes, the limit is {MAX_VIEW_BYTES:,}")
    known = await store.saved_views()
    if name not in known and len(known) >= MAX_VIEWS:
        raise Problem(409, "too_many_views", f"there are {MAX_VIEWS} saved views: delete one first")
    await store.save_view(name, encoded)
    await context.audit("save", f"view {name}", after={"page": body.page})
    return json_response({"view": {"name": name, **view}})


@router.delete("/api/views/{name}", response_model=MessageResponse)
async def delete_view(context: Operator, name: ViewName) -> Response:
    """Deletes a saved view."""
    context.check_unlimited("saved views")
    if not await (await http_server_store(context.rota)).delete_view(name):
        raise Problem(404, "view_not_found", f"there is no saved view {name!r}: GET /api/views lists them")
    await context.audit("delete", f"view {name}")
    return json_response({"message": f"view {name} was deleted"})
