"""The documents of the repository, found by walking its folders: their blocks of code, sections,
links and words. Also its code, parsed.
"""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "DOCUMENTS",
    "PROTOCOL",
    "ROOT",
    "Block",
    "anchor",
    "blocks",
    "headings",
    "parsed",
    "section",
    "without_blocks",
    "words",
]

ROOT = Path(__file__).parent.parent.parent

_NOT_OURS = {"node_modules", "venv", "build", "dist"}


def _is_ours(path: Path) -> bool:
    return not any(part[0] == "." or part in _NOT_OURS for part in path.parts)


DOCUMENTS = {
    path.as_posix(): (ROOT / path).read_text(encoding="utf-8")
    for path in sorted(file.relative_to(ROOT) for file in ROOT.rglob("*.md"))
    if _is_ours(path)
}
"""The text of every document, by its path from the root."""

PROTOCOL = "\n".join(text for path, text in DOCUMENTS.items() if path.startswith("protocol/"))
"""All pages of the protocol, one after another."""


class Block(NamedTuple):
    """A block of code, and the paragraph before it."""

    before: str
    language: str
    text: str

    @property
    def file(self) -> str | None:
        """Where the reader is told to save it."""
        told = re.search(r"Save this as `(\w+\.(?:py|sh))`", self.before)
        return told[1] if told else None


def blocks(document: str) -> list[Block]:
    """All blocks of code, in order."""
    found = re.findall(r"([^\n]*)\n\n```([^\n]+)\n(.*?)^```$", document, re.DOTALL | re.MULTILINE)
    return [Block(*parts) for parts in found]


def without_blocks(document: str) -> str:
    return re.sub(r"^```.*?^```$", "", document, flags=re.DOTALL | re.MULTILINE)


def headings(document: str) -> list[str]:
    """All headings, in order, of any level."""
    return re.findall(r"^#+ (.+)$", without_blocks(document), re.MULTILINE)


def section(heading: str, folder: str = "") -> str:
    """What stands under a heading, up to the next heading; only one document may have it.

    Args:
        heading: its text, without the marks.
        folder: only documents whose path begins so are searched.
    """
    found = [
        body
        for path, text in DOCUMENTS.items()
        if path.startswith(folder)
        for body in re.findall(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", text, re.M | re.S)
    ]
    assert len(found) == 1, f"expected one section {heading!r}, got {len(found)}"
    return str(found[0])


def anchor(heading: str) -> str:
    """What a link to a heading is called, as every viewer of Markdown makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def words(text: str) -> set[str]:
    """Everything in it that is set as code."""
    return set(re.findall(r"`([^`\n]+)`", text))


def parsed(folders: Iterable[str]) -> dict[Path, ast.Module]:
    """Parse all modules of these folders, by path. Garbage collection, which takes longest, pauses."""
    gc.disable()
    try:
        return {
            path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8"))
            for folder in folders
            for path in sorted((ROOT / folder).rglob("*.py"))
        }
    finally:
        gc.freeze()
        gc.enable()
