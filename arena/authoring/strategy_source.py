"""Reads the methods of a game's `PlayerStrategy` from its source, for a starter in Python.

It parses the source of the module that the game's entry point `arena.bots` names. So a starter
always has the current methods, with their docstrings and defaults. A module that cannot be loaded
is not read.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from textwrap import dedent, indent

import msgspec

from protocol.strategy import house_modules

__all__ = ["Interface", "interface"]

_CLASS = "PlayerStrategy"
_WIDTH = 84  # columns of a line in a class
_PLUMBING = frozenset({"decide", "hear", "reset"})  # messages to and from the other methods


class Interface(msgspec.Struct, frozen=True):
    """The methods that a student can replace, without indentation, and the imports they need.

    For a game without a `PlayerStrategy`, it is one method that answers every question at random.
    """

    base: str
    imports: tuple[str, ...]
    methods: tuple[str, ...]


_AT_RANDOM = Interface(
    "BaseStrategy",
    ("from bots.strategy import BaseStrategy, choose",),
    (
        "def decide(self, question):\n"
        '    """Answer a question with one of its `legal` answers."""\n'
        "    return choose(question.legal, self.random)",
        'def hear(self, news):\n    """Take note of what has happened."""',
    ),
)


def interface(game: str) -> Interface:
    """Read the interface of a game's strategies."""
    for loaded in house_modules(game):
        try:
            source = inspect.getsource(loaded)
        except (OSError, TypeError):  # a package may be installed without its source
            continue
        module = ast.parse(source)
        for node in module.body:
            if isinstance(node, ast.ClassDef) and node.name == _CLASS:
                return _of_class(source, module, node, loaded.__name__)
    return _AT_RANDOM


def _of_class(source: str, module: ast.Module, cls: ast.ClassDef, name: str) -> Interface:
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
    imports, methods = _imports(module, name, needed), (_method(source, m) for m in replaced)
    return Interface(_CLASS, tuple(imports), tuple(methods))


def _imports(module: ast.Module, name: str, needed: set[str]) -> Iterator[str]:
    defined = {
        node.name
        for node in module.body
        if isinstance(node, ast.FunctionDef) and node.name in needed
    }
    yield f"from {name} import {', '.join([_CLASS, *sorted(defined)])}"
    for node in module.body:
        if isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names if alias.name in needed]
            if names:
                yield f"from {node.module} import {', '.join(names)}"


def _method(source: str, method: ast.FunctionDef) -> str:
    """Return a method's source without its annotations, which a student need not know."""
    names = [argument.arg for argument in method.args.args]
    first = f"def {method.name}({', '.join(names)}):"
    if len(first) > _WIDTH:
        first = f"def {method.name}(\n    {', '.join(names)}\n):"
    lines = source.splitlines()[method.body[0].lineno - 1 : method.end_lineno]
    body = indent(dedent("\n".join(lines)), "    ")
    return f"{first}\n{body}"
