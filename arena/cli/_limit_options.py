"""A flag for every field of `Limits`, made from the struct: its type and default, and the words of its docstring.

A command that takes them is a `LimitsCommand` of this module's, which shows them in a section of their own.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

import click
import msgspec

from protocol.messages import Limits

__all__ = ["LimitsCommand", "described", "limits_options"]

_ATTRIBUTE = re.compile(r" {4}(\w+): (.+(?:\n {6,}.+)*)")  # and where it goes on


class LimitOption(click.Option):
    """A flag that sets a limit."""


class LimitsCommand(click.Command):
    """A command whose help has the limits at the end."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """All options but those for limits, then those."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": [], "Limits": []}
        for param in self.get_params(ctx):
            section = "Limits" if isinstance(param, LimitOption) else "Options"
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                sections[section].append(record)
        for section, records in sections.items():
            with formatter.section(section):
                formatter.write_dl(records)


def described(struct: type[msgspec.Struct]) -> dict[str, str]:
    """What a struct's docstring says of its attributes, each as a sentence."""
    _, _, text = (inspect.getdoc(struct) or "").partition("Attributes:\n")
    found = {name: " ".join(said.split()) for name, said in _ATTRIBUTE.findall(text)}
    return {name: said[0].upper() + said[1:] for name, said in found.items()}


def limits_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """All limits as options; the command gets them as one argument, `limits`."""
    fields = msgspec.structs.fields(Limits)

    @functools.wraps(command)
    def gathered(*args: Any, **options: Any) -> Any:
        limits = Limits(**{field.name: options.pop(field.name) for field in fields})
        return command(*args, limits=limits, **options)

    decorated: Callable[..., Any] = gathered
    words = described(Limits)
    types = {kind.name: kind.type for kind in _kinds()}
    for field in reversed(fields):
        kind = types[field.name]
        if isinstance(kind, msgspec.inspect.Metadata):  # who is held to it
            kind = kind.type
        assert isinstance(kind, msgspec.inspect.IntType), "so are all limits"
        decorated = click.option(
            f"--{field.name.replace('_', '-')}",
            cls=LimitOption,
            type=click.IntRange(kind.ge, kind.le),
            default=field.default,
            show_default=True,
            metavar="N",
            help=words.get(field.name),  # Python -OO has no docstrings
        )(decorated)
    return decorated


def _kinds() -> tuple[msgspec.inspect.Field, ...]:
    struct = msgspec.inspect.type_info(Limits)
    assert isinstance(struct, msgspec.inspect.StructType), "it is one"
    return struct.fields
