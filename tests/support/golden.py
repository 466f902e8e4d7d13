"""Texts as they once were: a file with all of them, which `GOLDEN=write pytest …` writes anew.

A text stands below its name. Of a number 9 digits count, as the last ones differ by machine.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

__all__ = ["by_viewer", "golden", "laid_out"]

_LONG_FRACTION = re.compile(r"-?\d+\.\d{7,}(e-?\d+)?")


def golden(file: Path, texts: Mapping[str, str]) -> None:
    """Compare texts, by their names, with those of a file."""
    found = {name: _LONG_FRACTION.sub(_short, text).strip("\n") for name, text in texts.items()}
    if os.environ.get("GOLDEN") == "write":
        file.parent.mkdir(exist_ok=True)
        written = "".join(f"== {name}\n{text}\n" for name, text in found.items())
        file.write_text(written, encoding="utf-8", newline="\n")
    parts = re.split(r"^== ", file.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    expected = dict(part.removesuffix("\n").split("\n", 1) for part in parts)
    assert list(found) == list(expected)
    for name, text in found.items():
        assert text.split("\n") == expected[name].split("\n"), name


def _short(number: re.Match[str]) -> str:
    return f"{float(number[0]):.9g}"


def laid_out(document: bytes) -> str:
    """A document in JSON, a line for each field."""
    fields = msgspec.json.decode(document, type=dict[str, msgspec.Raw])
    return "\n".join(f"{name}: {bytes(so).decode()}" for name, so in fields.items())


def by_viewer(name: str, texts: Mapping[str, str]) -> dict[str, str]:
    """The texts of one document by viewer; of those who see the same, once."""
    viewers: dict[str, list[str]] = {}
    for viewer, text in texts.items():
        viewers.setdefault(text, []).append(viewer)
    return {f"{name} for {' '.join(who)}": text for text, who in viewers.items()}
