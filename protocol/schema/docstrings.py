"""Reads the descriptions of types and their fields from docstrings, for the pages and the schemas.

A docstring is a summary, and an `Attributes:` section with a line for every field; continuation
lines are indented further. A constant has the string beneath it. A missing description is an error.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from collections.abc import Mapping
from types import ModuleType
from typing import NamedTuple

from protocol.errors import UsageError

__all__ = ["Words", "of_class", "of_constants"]

_ATTRIBUTE = re.compile(r"^ {4}(\w[\w ]*): (.+(?:\n {5,}.+)*)", re.MULTILINE)


class Words(NamedTuple):
    """The description of a struct or an enumeration, and of its fields or values by name."""

    summary: str
    fields: Mapping[str, str]

    def of(self, field: str) -> str:
        """Return the description of one field; raises `UsageError` if there is none."""
        if field not in self.fields:
            raise UsageError(f"expected a description of {field!r} in {self.summary!r}")
        return self.fields[field]


def of_class(cls: type) -> Words:
    """Read the docstring of a class itself, not of its base; raises `UsageError` without one."""
    text = inspect.cleandoc(vars(cls).get("__doc__") or "")
    if not text:
        raise UsageError(f"expected a docstring in {cls.__name__}")
    summary, _, attributes = text.partition("Attributes:\n")
    fields = {name: _flat(said) for name, said in _ATTRIBUTE.findall(attributes)}
    return Words(_flat(summary), fields)


def of_constants(module: ModuleType, prefix: str) -> dict[int, str]:
    """Read the strings beneath the constants with this prefix, by value, in ascending order."""
    body = ast.parse(inspect.getsource(module)).body
    found = {}
    for node, beneath in itertools.pairwise(body):
        match node, beneath:
            case (
                ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ) if name.startswith(prefix):
                found[getattr(module, name)] = _flat(text)
    return dict(sorted(found.items()))


def _flat(text: str) -> str:
    return " ".join(text.split())
