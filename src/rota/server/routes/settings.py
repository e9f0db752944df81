"""Settings of the namespace: the durations that all workers share."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from rota.core.format_iso_time import iso_time_or_none
from rota.core.lease_heartbeat_poll_and_grace_durations import NAMES, DurationSettings
from rota.server.http.idempotency_key import IdempotentRoute
from rota.server.request_context_and_permissions import Admin, Viewer, json_response
from rota.server.schemas.settings import ChangeSettings, SettingsResponse

router = APIRouter(route_class=IdempotentRoute, tags=["settings"])


@router.get("/api/settings", response_model=SettingsResponse)
async def settings(context: Viewer) -> Response:
    """Returns the durations that all workers share: lease, heartbeat, fallback poll and grace period."""
    return json_response(_settings_json(await context.rota.settings.get()))


@router.patch("/api/settings", response_model=SettingsResponse)
async def change_settings(context: Admin, body: ChangeSettings) -> Response:
    """Changes durations, in ms; null restores a default. Running workers follow within 5 s.

    422 for durations that do not fit each other, such as a heartbeat of more than a third of the lease.
    """
    context.check_unlimited("the settings of the namespace")
    before = await context.rota.settings.get()
    given = {name: getattr(body, f"{name}_ms") for name in NAMES if f"{name}_ms" in body.model_fields_set}
    after = await context.rota.settings.change(
        **{name: None if ms is None else ms / 1000 for name, ms in given.items()}
    )
    await context.audit("change", "settings", before=_settings_json(before), after=_settings_json(after))
    return json_response(_settings_json(after))


def _settings_json(found: DurationSettings) -> dict[str, Any]:
    return {
        "version": found.version,
        "changed_at": iso_time_or_none(found.changed_at or None),
        **{f"{name}_ms": getattr(found.durations, f"{name}_ms") for name in NAMES},
        "set": [name for name in NAMES if getattr(found, f"{name}_ms") is not None],
    }
