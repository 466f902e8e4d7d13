"""Makes an option of every field of `Limits`: type, default, and the words of the docstring."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

import click
import msgspec

from arena.cli._results import ResultCommand
from protocol.messages import Limits

__all__ = ["LimitsCommand", "described", "limits_options"]

_ATTRIBUTE = re.compile(r" {4}(\w+): (.+(?:\n {6,}.+)*)")  # with its further lines


class LimitOption(click.Option):
    """An option that sets a limit."""


class LimitsCommand(ResultCommand):
    """A command that gives back what it found, and whose help shows the limits apart."""

    def format_own_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
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
    """The attributes in a struct's docstring, and what it says of each, as a sentence."""
    _, _, section = (inspect.getdoc(struct) or "").partition("Attributes:\n")
    texts = {name: " ".join(text.split()) for name, text in _ATTRIBUTE.findall(section)}
    return {name: text[0].upper() + text[1:] for name, text in texts.items()}


def limits_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add all limits as options; the command gets them as one argument, `limits`."""

    @functools.wraps(command)
    def gathered(*args: Any, **options: Any) -> Any:
        limits = Limits(**{name: options.pop(name) for name in Limits.__struct_fields__})
        return command(*args, limits=limits, **options)

    decorated: Callable[..., Any] = gathered
    words = described(Limits)
    struct = msgspec.inspect.type_info(Limits)
    assert isinstance(struct, msgspec.inspect.StructType), "Limits is a struct"
    for field in reversed(struct.fields):
        assert isinstance(field.type, msgspec.inspect.IntType), "all limits are integers"
        decorated = click.option(
            f"--{field.name.replace('_', '-')}",
            cls=LimitOption,
            type=click.IntRange(field.type.ge, field.type.le),
            default=field.default,
            show_default=True,
            metavar="N",
            help=words.get(field.name),  # Python -OO has no docstrings
        )(decorated)
    return decorated
