"""`rota token`: make, list and revoke tokens of the HTTP API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import click

from rota.cli import output
from rota.cli.enqueue import duration
from rota.cli.settings import Settings, common_options, connected, run
from rota.core.shapes import moment

#: Who is named in the audit log, where a person at a terminal did it.
WHO: Final = "command line"


@click.group()
def command() -> None:
    """Make, list and revoke tokens of the HTTP API."""


@command.command()
@common_options
@click.option(
    "--role",
    type=click.Choice(["viewer", "operator", "admin"]),
    required=True,
    help="viewer: look; operator: act on jobs; admin: everything.",
)
@click.option("--name", default="", help="Whose it is, for the audit log.")
@click.option("--queue", "queues", multiple=True, help="Only for this queue; may be given again.")
@click.option("--expires", metavar="TIME", callback=duration, help="Worthless after that time: 12h, 30d.")
@click.pass_obj
def create(settings: Settings, role: str, name: str, queues: Sequence[str], expires: float | None) -> None:
    """Make a token, and print it. It is shown this once: only a hash of it is kept."""
    run(_create(settings, role, name, queues, expires))


async def _create(settings: Settings, role: str, name: str, queues: Sequence[str], expires: float | None) -> None:
    from rota.server.audit import note_change
    from rota.server.tokens import Role, Tokens

    async with connected(settings) as rota:
        text, token = await Tokens(rota).create(role, name=name, queues=queues, lifetime_s=expires)
        after = {"name": token.name, "role": token.role, "queues": token.queues}
        await note_change(rota, who=WHO, role=Role.ADMIN, action="create", target=f"token {token.id}", after=after)
    if settings.json:
        output.document({"token": text, **_shape(token)})
        return
    output.text(text)
    output.note(f"token {token.id} for {token.name}: it is not shown again")


@command.command(name="list")
@common_options
@click.pass_obj
def list_(settings: Settings) -> None:
    """List the tokens: whose each is, what it may do, when it was last used."""
    run(_list(settings))


async def _list(settings: Settings) -> None:
    from rota.server.tokens import Tokens

    async with connected(settings) as rota:
        tokens = await Tokens(rota).list()
        now = await rota.views.now()
    if settings.json:
        output.document({"tokens": [{**_shape(t), "last_used": moment(t.last_used)} for t in tokens]})
    elif not tokens:
        output.note("there are no tokens: rota token create --role admin makes one")
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
    """Make a token worthless, and end the sessions that were opened with it, within seconds."""
    run(_revoke(settings, token_id))


async def _revoke(settings: Settings, token_id: str) -> None:
    from rota.server.audit import note_change
    from rota.server.tokens import Role, Tokens

    async with connected(settings) as rota:
        token = await Tokens(rota).revoke(token_id)
        before = {"name": token.name, "role": token.role, "queues": token.queues}
        await note_change(rota, who=WHO, role=Role.ADMIN, action="revoke", target=f"token {token.id}", before=before)
    if settings.json:
        output.document({"id": token.id, "name": token.name})
    else:
        output.text(f"token {token.id} of {token.name} is revoked")


def _shape(token: Any) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "role": token.role.value,
        "queues": list(token.queues),
        "created_at": moment(token.created_at),
        "expires_at": moment(token.expires_at),
    }
