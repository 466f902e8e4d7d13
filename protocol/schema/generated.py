"""Collects all files that `python -m protocol.schema` writes; nothing is written or printed here.

The pages protocol/*.md have generated parts; their transcripts are read from
protocol/vectors/transcripts/.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from protocol.errors import UsageError
from protocol.schema.asyncapi import asyncapi
from protocol.schema.definitions import Schema
from protocol.schema.documents import documents
from protocol.schema.tables import fill_in

__all__ = ["SCHEMAS", "files", "stale"]

_PROTOCOL = Path(__file__).parent.parent
_PAGES = _PROTOCOL
_TRANSCRIPTS = _PROTOCOL / "vectors" / "transcripts"

SCHEMAS = _PROTOCOL / "schema"
"""Where the schemas are."""


def files() -> Mapping[Path, str]:
    """Return the content of every generated file.

    Raises `UsageError` if a page asks for a part or a transcript that does not exist.
    """
    found = {SCHEMAS / name: _written(schema) for name, schema in documents().items()}
    found[SCHEMAS / "asyncapi.json"] = _written(asyncapi())
    pages = {page: page.read_text(encoding="utf-8") for page in _PAGES.glob("*.md")}
    for page, text in pages.items():
        links = _links({other.name: pages[other] for other in pages}, page.name)
        found[page] = fill_in(text, _transcript, links)
    return found


def stale() -> Mapping[Path, str | None]:
    """Return the outdated files with their new content; None if a file should not exist.

    Raises what `files` raises.
    """
    wanted = files()
    found: dict[Path, str | None] = {
        path: text for path, text in wanted.items() if _held(path) != text
    }
    return found | dict.fromkeys(sorted({*SCHEMAS.glob("*.json")} - {*wanted}))


def _links(pages: Mapping[str, str], here: str) -> Mapping[str, str]:
    """Return the targets of links from one page, by the heading of the section."""
    return {
        heading: f"{'' if name == here else name}#{_anchor(heading)}"
        for name, text in pages.items()
        for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    }


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _held(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def _written(schema: Schema) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _transcript(name: str) -> bytes:
    if not re.fullmatch(r"\w[\w-]*", name):
        raise UsageError(f"expected the name of a transcript, got {name!r}")
    path = _TRANSCRIPTS / f"{name}.jsonl"
    if not path.exists():
        raise UsageError(f"expected a transcript {name!r} in {_TRANSCRIPTS}, got none")
    return path.read_bytes()
