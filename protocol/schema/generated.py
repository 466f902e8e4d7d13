"""All that `python -m protocol.schema` writes, as file contents; nothing is written or printed here.

The transcripts that the README shows are read from protocol/vectors/transcripts/.
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
_README = _PROTOCOL / "README.md"
_TRANSCRIPTS = _PROTOCOL / "vectors" / "transcripts"

SCHEMAS = _PROTOCOL / "schema"
"""Where the schemas are."""


def files() -> Mapping[Path, str]:
    """What every generated file should hold.

    Raises:
        UsageError: the README asks for a part or a transcript that there is not.
    """
    found = {SCHEMAS / name: _written(schema) for name, schema in documents().items()}
    found[SCHEMAS / "asyncapi.json"] = _written(asyncapi())
    found[_README] = fill_in(_README.read_text(encoding="utf-8"), _transcript)
    return found


def stale() -> Mapping[Path, str | None]:
    """The files that are not as they should be, and what they should hold; None for one that should not be there.

    Raises:
        UsageError: as `files`.
    """
    wanted = files()
    found: dict[Path, str | None] = {
        path: text for path, text in wanted.items() if _held(path) != text
    }
    return found | dict.fromkeys(sorted({*SCHEMAS.glob("*.json")} - {*wanted}))


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
