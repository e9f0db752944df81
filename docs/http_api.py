"""The HTTP API as the documentation shows it: a table of its routes, and the OpenAPI document itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from rota import Rota
from rota.server import create_app

#: What clients and the dashboard's types are generated from. A change of it is a change for them.
OPENAPI: Final = Path(__file__).parent / "reference" / "openapi.json"


def document() -> dict[str, Any]:
    """The OpenAPI document. No store is asked for it."""
    return create_app(Rota("redis://nowhere")).openapi()


def openapi_text() -> str:
    """The document as it is kept."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"


def routes() -> str:
    """Every route by its tag: what it does, and the role that it asks for."""
    by_tag: dict[str, list[str]] = {}
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            parameters = [f"`{one['name']}`" for one in operation.get("parameters", []) if one["in"] == "query"]
            said = operation["description"].split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
            asks = f" Takes {', '.join(parameters)}." if parameters else ""
            row = f"| `{method.upper()} {path}` | {said}{asks} | {operation.get('x-role', 'anybody')} |"
            by_tag.setdefault(operation["tags"][0], []).append(row)
    parts = [
        "\n".join([f"### {tag.capitalize()}", "", "| | | role |", "|---|---|---|", *rows])
        for tag, rows in by_tag.items()
    ]
    return "\n\n".join(parts)


def write() -> bool:
    """Keeps the document; True if it has changed."""
    text = openapi_text()
    if OPENAPI.exists() and OPENAPI.read_text(encoding="utf-8") == text:
        return False
    OPENAPI.write_text(text, encoding="utf-8")
    return True
