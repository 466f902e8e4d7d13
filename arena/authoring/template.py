"""Files that are made from templates: a few tags, on lines that read as they will when they are filled.

`{{name}}` stands for a text; lines between `{{#name}}` and `{{/name}}` are there once for each part of a list, or once if it is a flag
that is set, those between `{{^name}}` and `{{/name}}` if it is not. A tag that opens or closes has a line to itself, which goes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

__all__ = ["Values", "fill"]

Values: TypeAlias = Mapping[str, "str | bool | Sequence[Values]"]
"""What a template is filled with; the parts of a list see the names around them too."""

_TEXT = re.compile(r"\{\{(\w+)\}\}")
_SECTION = re.compile(r"\s*\{\{([#^])(\w+)\}\}\s*")


def fill(template: str, values: Values) -> str:
    """The template with all its tags replaced.

    Raises:
        KeyError: it names something that is not among the values.
        ValueError: a section has no end.
    """
    return "".join(_filled(template.splitlines(keepends=True), values))


def _filled(lines: Sequence[str], values: Values) -> Iterator[str]:
    at = 0
    while at < len(lines):
        opens = _SECTION.fullmatch(lines[at])
        if opens is None:
            line = _TEXT.sub(lambda tag: str(values[tag[1]]), lines[at])
            yield line.rstrip() + "\n"  # a comment's empty line ends behind its mark
            at += 1
            continue
        end = _end(lines, at, opens[2])
        for part in _parts(values[opens[2]], inverted=opens[1] == "^"):
            yield from _filled(lines[at + 1 : end], {**values, **part})
        at = end + 1


def _end(lines: Sequence[str], start: int, name: str) -> int:
    for at in range(start + 1, len(lines)):
        if lines[at].strip() == f"{{{{/{name}}}}}":
            return at
    raise ValueError(f"expected {{{{/{name}}}}} after line {start + 1}")


def _parts(value: str | bool | Sequence[Values], *, inverted: bool) -> Sequence[Values]:
    """What a section is filled with, once for each."""
    if inverted:
        return [] if value else [{}]
    if isinstance(value, str | bool):
        return [{}] if value else []
    return value
