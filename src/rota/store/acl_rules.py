"""The least permissions of each role on the Valkey or Redis server, as ACL rules.

The commands are those of the scripts and of the stores, the keys those of `keys.py`. Roles that write use the same
commands: what separates them are the keys that belong to no queue, above all the API tokens and the audit log.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from rota.store.keys import GLOBAL_KEYS, TRIAL_QUEUE, Keys
from rota.store.redis.script_compiler import names, script


class AclRole(StrEnum):
    """A user of the Valkey or Redis server."""

    PRODUCER = "producer"
    WORKER = "worker"
    API = "api"
    READ_ONLY = "read-only"
    ADMIN = "admin"


#: Owner of a key (`KeySpec.owner`) -> the roles that write it, besides the admin. Other roles read it, unless it is the
#: server's.
_WRITERS: Final = {
    **dict.fromkeys(
        ("all", "client", "register_queues", "open_workflow", "record_step_outcomes", "save_workflow_decision"),
        (AclRole.PRODUCER, AclRole.WORKER, AclRole.API),
    ),
    # The autoscaler works as a worker: its scripts name keys of both.
    **dict.fromkeys(
        (
            *("worker", "renew_registration", "drain_worker", "bulk", "bar_machine", "take_planner_lease"),
            *("record_scaling_decision", "save_launch", "change_scaling_settings", "annotate"),
        ),
        (AclRole.WORKER, AclRole.API),
    ),
    "change_worker_durations": (AclRole.API,),
    "server": (AclRole.API,),
}
#: Keys that the server reads and only an admin writes.
_ADMINISTERED: Final = ("tokens",)
_SERVER: Final = "server"

#: Commands of connections, sentinels and clusters, and the checks of `rota doctor`.
_CONNECTION: Final = ("asking", "client|setname", "cluster|slots", "info", "ping", "role", "select", "time", "type")
_READ_SCRIPTS: Final = ("eval_ro", "evalsha_ro", "script|load")
_READS: Final = (
    *("exists", "get", "hget", "hgetall", "hkeys", "hlen", "hmget", "hrandfield", "lrange", "smembers"),
    *("xinfo|stream", "xlen", "xrange", "xread", "xrevrange", "zcard", "zcount", "zmscore", "zrange", "zscan"),
    "zscore",
)
_WRITES: Final = (
    *("eval", "evalsha", "hdel", "hincrby", "hset", "pexpire", "publish", "sadd", "set", "subscribe", "unlink"),
    *("wait", "xadd"),
)
_CALL: Final = re.compile(r'redis\.p?call\(\s*"(\w+)"(?:\s*,\s*"([A-Z]+)")?')
#: Commands whose subcommands are permitted one by one.
_WITH_SUBCOMMANDS: Final = frozenset({"pubsub", "xinfo"})


def acl_rule(role: AclRole, namespace: str) -> str:
    """Returns the line of an ACL file that defines the user of a role. The user has no password and cannot log in."""
    words = [f"user {namespace}-{role}", "on", "resetkeys", "resetchannels", "-@all"]
    words += key_patterns(role, namespace)
    if role is not AclRole.READ_ONLY:
        words.append(f"&{Keys(namespace).inbox_prefix}*")
    words += (f"+{command}" for command in commands_of(role))
    return " ".join(words)


def commands_of(role: AclRole) -> list[str]:
    """Returns the commands that a role runs, itself and within scripts."""
    commands = {*_CONNECTION, *_READ_SCRIPTS, *_READS}
    if role is not AclRole.READ_ONLY:
        commands |= {*_WRITES}
    for compiled in map(script, names()):
        is_of_server = any(key in GLOBAL_KEYS and GLOBAL_KEYS[key].owner == _SERVER for key in compiled.keys)
        is_needed = role in (AclRole.API, AclRole.ADMIN) if is_of_server else True
        if is_needed and (role is not AclRole.READ_ONLY or compiled.is_read_only):
            commands |= _commands_in(compiled.source)
    return sorted(commands)


def key_patterns(role: AclRole, namespace: str) -> list[str]:
    """Returns the keys of a role: `~` before a pattern permits reads and writes, `%R~` reads."""
    can_write = role is not AclRole.READ_ONLY
    # The tag of the keys that belong to no queue is "~", and no queue's name starts with it. First, because the server
    # compares each key with the patterns in this order.
    patterns = [f"{'~' if can_write else '%R~'}{namespace}:{{[^~]*"]
    if can_write:
        patterns.append(f"~{namespace}:{{{TRIAL_QUEUE}}}:*")
    in_scripts = {key for name in names() for key in script(name).keys}
    for name, spec in GLOBAL_KEYS.items():
        if role is AclRole.ADMIN or (role in _WRITERS[spec.owner] and name not in _ADMINISTERED):
            access = "~"
        elif spec.owner != _SERVER or role is AclRole.API:
            access = "%R~"
        else:
            continue
        if "{name}" not in spec.pattern or name in in_scripts:  # scripts add the part to the name themselves
            patterns.append(access + Keys(namespace).shared(name))
        if "{name}" in spec.pattern:
            patterns.append(access + Keys(namespace).shared(name, "*"))
    return patterns


def _commands_in(source: str) -> set[str]:
    """Returns the commands that a script calls, with the subcommand where that is what is permitted."""
    found = ((match[1].lower(), match[2]) for match in _CALL.finditer(source))
    return {f"{name}|{sub.lower()}" if name in _WITH_SUBCOMMANDS and sub else name for name, sub in found}
