"""Turns struct fields into options, with their types, defaults and docstring descriptions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import click
import msgspec
from msgspec.inspect import BoolType, Field, IntType, ListType, StructType, UnionType, type_info

from arena.cli._results import ResultCommand
from protocol.messages import Limits
from protocol.schema.docstrings import of_class

__all__ = ["LimitsCommand", "limits_options", "struct_options"]


class LimitOption(click.Option):
    """An option that sets a limit."""


class LimitsCommand(ResultCommand):
    """A `ResultCommand` whose help lists the limits in a section of their own."""

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


def struct_options(
    struct: type[Any],
    argument: str,
    read: Callable[[dict[str, Any]], Any],
    more: Mapping[str, Mapping[str, Any]] = {},
    **common: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the fields of a struct as options; `read` turns their values into one argument.

    Each option has the attributes in `common`, and those in `more` under the name of its field.
    """
    info = type_info(struct)
    assert isinstance(info, StructType), "it has fields"
    # Python -OO strips docstrings.
    words = of_class(struct).fields if struct.__doc__ else {}

    def declared(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def gathered(*args: Any, **given: Any) -> Any:
            fields = {field.name: given.pop(field.name) for field in info.fields}
            return command(*args, **{argument: read(fields)}, **given)

        decorated: Callable[..., Any] = gathered
        for field in reversed(info.fields):
            text = words.get(field.name, "")
            about = {"help": text[:1].upper() + text[1:], **common, **more.get(field.name, {})}
            decorated = _option(field, about)(decorated)
        return decorated

    return declared


def _option(field: Field, about: dict[str, Any]) -> Callable[..., Any]:
    name = f"--{field.name.replace('_', '-')}"
    if field.default is not msgspec.NODEFAULT:
        about["default"] = field.default
    kinds = field.type.types if isinstance(field.type, UnionType) else (field.type,)
    match kinds[0]:
        case IntType(ge=least, le=most):
            about["type"] = click.IntRange(least, most)
        case BoolType():
            name = f"{name}/--no-{name[2:]}"
        case ListType():
            about["multiple"] = True
    return click.option(name, **about)


limits_options = struct_options(
    *(Limits, "limits", lambda fields: Limits(**fields)),
    cls=LimitOption,
    show_default=True,
    metavar="N",
)
"""Adds all limits as options; the command gets them as one argument, `limits`."""
