"""The methods of a game's `PlayerStrategy`, read from its source, for a starter in Python.

The source is parsed because the arena never imports bots. A starter therefore has the present
methods, with their docstrings and defaults.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.resources import files
from textwrap import dedent, indent

import msgspec

__all__ = ["Interface", "interface"]

_CLASS = "PlayerStrategy"
_WIDTH = 84  # columns of a line in a class
_PLUMBING = frozenset({"decide", "hear", "reset"})  # messages to and from the other methods


class Interface(msgspec.Struct, frozen=True):
    """The methods of a bot that a student can replace, not indented, and the imports they need."""

    imports: tuple[str, ...]
    methods: tuple[str, ...]


def interface(game: str) -> Interface:
    """The interface of a game's strategies in `bots/<game>.py`."""
    source = files("bots").joinpath(f"{game}.py").read_text(encoding="utf-8")
    module = ast.parse(source)
    [cls] = [node for node in module.body if isinstance(node, ast.ClassDef) and node.name == _CLASS]
    replaced = [
        node
        for node in cls.body
        if isinstance(node, ast.FunctionDef)
        and not node.name.startswith("_")
        and node.name not in _PLUMBING
    ]
    needed = {
        name.id
        for method in replaced
        for statement in method.body
        for name in ast.walk(statement)
        if isinstance(name, ast.Name)
    }
    return Interface(
        tuple(_imports(module, game, needed)), tuple(_method(source, node) for node in replaced)
    )


def _imports(module: ast.Module, game: str, needed: set[str]) -> Iterator[str]:
    defined = {
        node.name
        for node in module.body
        if isinstance(node, ast.FunctionDef) and node.name in needed
    }
    yield f"from bots.{game} import {', '.join([_CLASS, *sorted(defined)])}"
    for node in module.body:
        if isinstance(node, ast.ImportFrom):
            names = [name.name for name in node.names if name.name in needed]
            if names:
                yield f"from {node.module} import {', '.join(names)}"


def _method(source: str, method: ast.FunctionDef) -> str:
    """A method's source without its annotations, which a student need not know."""
    names = [argument.arg for argument in method.args.args]
    first = f"def {method.name}({', '.join(names)}):"
    if len(first) > _WIDTH:
        first = f"def {method.name}(\n    {', '.join(names)}\n):"
    lines = source.splitlines()[method.body[0].lineno - 1 : method.end_lineno]
    body = indent(dedent("\n".join(lines)), "    ")
    return f"{first}\n{body}"
