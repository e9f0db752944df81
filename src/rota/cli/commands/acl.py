"""`rota acl`: prints the ACL rule of a role."""

from __future__ import annotations

import click

from rota.cli import output
from rota.cli.common_options import Settings, common_options
from rota.client.rota import Rota
from rota.store.acl_rules import AclRole, acl_rule, commands_of, key_patterns


@click.command()
@common_options
@click.argument("role", type=click.Choice([role.value for role in AclRole]))
@click.pass_obj
def command(settings: Settings, role: str) -> None:
    """Print the ACL rule of a role: the least permissions that it needs on the Valkey or Redis server.

    \b
    producer    enqueue, schedule and read jobs
    worker      run them
    api         the HTTP server: also tokens, logins and the audit log
    read-only   list and show
    admin       every command of rota, for example `rota token`

    The line belongs into the server's `aclfile`, or after `ACL SETUSER` without the word `user`. It has no password:
    add one as >SECRET. Connects to no server.
    """
    namespace = Rota(namespace=settings.namespace or "rota").namespace  # refuses an invalid one
    known = AclRole(role)
    if settings.json:
        output.document(
            {
                "user": f"{namespace}-{role}",
                "keys": key_patterns(known, namespace),
                "commands": commands_of(known),
                "rule": acl_rule(known, namespace),
            }
        )
    else:
        output.text(acl_rule(known, namespace))
