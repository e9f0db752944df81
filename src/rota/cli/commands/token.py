"""`rota token`: creates, lists and revokes tokens of the HTTP API."""

from __future__ import annotations

from typing import Any

import click

from rota.cli import output
from rota.cli.audit import audit
from rota.cli.commands.enqueue import duration
from rota.cli.common_options import Settings, common_options
from rota.cli.connection import connected, run
from rota.core.format_iso_time import iso_time_or_none


@click.group()
def command() -> None:
    """Create, list and revoke tokens of the HTTP API."""


@command.command()
@common_options
@click.option(
    "--role",
    type=click.Choice(["viewer", "operator", "admin"]),
    required=True,
    help="viewer: read; operator: act on jobs; admin: everything.",
)
@click.option("--name", default="", help="Name of the caller in the audit log.")
@click.option("--queue", "queues", multiple=True, help="Limit the token to this queue; repeatable.")
@click.option("--task", "tasks", multiple=True, help="Limit what it may run: a task, or mail.*; repeatable.")
@click.option("--expires", "lifetime_s", metavar="TIME", callback=duration, help="Lifetime: 12h, 30d.")
@click.option("--requests-per-second", type=float, help="Limit its requests, in each server process.")
@click.option("--burst", type=int, help="Requests that may come at once. Default: those of two seconds, at least 10.")
@click.option("--enqueues-per-minute", type=int, help="Limit the jobs that it enqueues, in each server process.")
@click.pass_obj
def create(
    settings: Settings,
    /,
    requests_per_second: float | None,
    burst: int | None,
    enqueues_per_minute: int | None,
    **options: Any,
) -> None:
    """Create a token and print it. It cannot be shown again: only its hash is stored."""
    from rota.server.auth.request_and_enqueue_rate_limits import Limits

    run(_create(settings, limits=Limits(requests_per_second, burst, enqueues_per_minute), **options))


async def _create(settings: Settings, **options: Any) -> None:
    from rota.server.auth.api_tokens import Tokens

    async with connected(settings) as rota:
        text, token = await Tokens(rota).create(**options)
        await audit(
            rota,
            "create",
            f"token {token.id}",
            name=token.name,
            role=token.role,
            queues=token.queues,
            tasks=token.tasks,
            limits=_limits_json(token.limits) or None,
        )
    if settings.json:
        output.document({"token": text, **_token_json(token)})
        return
    output.text(text)
    output.note(f"token {token.id} for {token.name}; it cannot be shown again")


@command.command(name="list")
@common_options
@click.pass_obj
def list_(settings: Settings) -> None:
    """List the tokens: name, role, queues and last use."""
    run(_list(settings))


async def _list(settings: Settings) -> None:
    from rota.client.session import session_of
    from rota.server.auth.api_tokens import Tokens

    async with connected(settings) as rota:
        tokens = await Tokens(rota).list()
        now = await session_of(rota).views.now()
    if settings.json:
        output.document({"tokens": [{**_token_json(t), "last_used": iso_time_or_none(t.last_used)} for t in tokens]})
    elif not tokens:
        output.note("there are no tokens: `rota token create --role admin` creates one")
    else:
        rows = [
            (
                token.id,
                token.name,
                token.role.value,
                ", ".join(token.queues) or "all",
                output.when(token.last_used, now) or output.NOTHING,
                ("expired" if token.is_expired else output.when(token.expires_at, now)) or "never",
            )
            for token in tokens
        ]
        output.table(output.Table(("id", "name", "role", "queues", "last used", "expires"), rows))


@command.command()
@common_options
@click.argument("token_id", metavar="ID")
@click.pass_obj
def revoke(settings: Settings, token_id: str) -> None:
    """Revoke a token and end its sessions, within seconds."""
    run(_revoke(settings, token_id))


async def _revoke(settings: Settings, token_id: str) -> None:
    from rota.server.auth.api_tokens import Tokens

    async with connected(settings) as rota:
        token = await Tokens(rota).revoke(token_id)
        await audit(rota, "revoke", f"token {token.id}", name=token.name, role=token.role, queues=token.queues)
    if settings.json:
        output.document({"id": token.id, "name": token.name})
    else:
        output.text(f"token {token.id} of {token.name} is revoked")


def _token_json(token: Any) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "role": token.role.value,
        "queues": list(token.queues),
        "tasks": list(token.tasks),
        "limits": _limits_json(token.limits),
        "created_at": iso_time_or_none(token.created_at),
        "expires_at": iso_time_or_none(token.expires_at),
    }


def _limits_json(limits: Any) -> dict[str, float]:
    return {name: value for name in limits.__struct_fields__ if (value := getattr(limits, name)) is not None}
