"""Documentation of the HTTP API: the table of routes, and the OpenAPI document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from rota import Rota
from rota.server import create_app

#: Clients and the dashboard's types are generated from this file.
OPENAPI: Final = Path(__file__).parent / "reference" / "openapi.json"


def document() -> dict[str, Any]:
    """Returns the OpenAPI document. Needs no store."""
    return create_app(Rota("redis://nowhere")).openapi()


def openapi_text() -> str:
    """Returns the text of the committed document."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"


def routes() -> str:
    """Returns tables of all routes by tag, with their query parameters and roles."""
    by_tag: dict[str, list[str]] = {}
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            parameters = [f"`{one['name']}`" for one in operation.get("parameters", []) if one["in"] == "query"]
            summary = operation["description"].split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
            query = f" Query: {', '.join(parameters)}." if parameters else ""
            row = f"| `{method.upper()} {path}` | {summary}{query} | {operation.get('x-role', 'public')} |"
            by_tag.setdefault(operation["tags"][0], []).append(row)
    parts = [
        "\n".join([f"### {tag.capitalize()}", "", "| | | role |", "|---|---|---|", *rows])
        for tag, rows in by_tag.items()
    ]
    return "\n\n".join(parts)


def write() -> bool:
    """Writes the document. Returns True if it has changed."""
    text = openapi_text()
    if OPENAPI.exists() and OPENAPI.read_text(encoding="utf-8") == text:
        return False
    OPENAPI.write_text(text, encoding="utf-8")
    return True
