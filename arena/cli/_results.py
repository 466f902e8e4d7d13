"""Prints the results that commands return, as JSON or as lines for people.

The function of `@result_command(NAME, prints=STRUCT)` returns a pair: the document for `--json`,
which is a `STRUCT`, and the lines for people, which are made only if they are shown. A command that
can fail after printing yields such pairs, and then raises, or returns an exit status.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import click
from msgspec import inspect

from arena.cli import _output as output

__all__ = ["Found", "ResultCommand", "ResultGroup", "as_json", "print_found", "result_command"]

Found: TypeAlias = tuple[Any, str | output.Lines]
"""A command's result: the document for `--json`, and the lines for people."""
Callback = TypeVar("Callback", bound=Callable[..., Any])

_AS_JSON = "arena.cli.as_json"
_TEXT = "Print one JSON document instead of a table."


def as_json() -> bool:
    """Whether the running command prints JSON."""
    return bool(click.get_current_context().meta[_AS_JSON])


class ResultCommand(click.Command):
    """A command that prints what its function returns, as JSON with `--json`.

    `prints` is the struct of that document, or `module:Struct`, which is imported only for the
    help. The help describes its `fields`, by default all.
    """

    def __init__(
        self, name: str | None, *, prints: type | str, fields: Sequence[str] = (), **attributes: Any
    ) -> None:
        super().__init__(name, **attributes)
        self._prints = prints
        self._fields = fields
        self.params.append(click.Option(["--json", "as_json"], is_flag=True, help=_TEXT))

    def invoke(self, ctx: click.Context) -> Any:
        ctx.meta[_AS_JSON] = ctx.params.pop("as_json")
        found = super().invoke(ctx)
        if isinstance(found, tuple):
            print_found(found)
            return None
        if not isinstance(found, Generator):
            return found  # the exit status of a subcommand
        while True:
            try:
                print_found(next(found))
            except StopIteration as end:
                return end.value

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        struct, fields = self._document()
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(f"--json prints {_braces(struct, fields)}.")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_own_options(ctx, formatter)
        if words := list(_words(*self._document())):
            with formatter.section("Fields of --json"):
                formatter.write_dl(words)

    def format_own_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's options, without the fields of the document."""
        super().format_options(ctx, formatter)

    def _document(self) -> tuple[inspect.StructType, Sequence[inspect.Field]]:
        """Return the struct of the document, and the fields that the help describes."""
        prints = self._prints
        struct = inspect.type_info(
            pkgutil.resolve_name(prints) if isinstance(prints, str) else prints
        )
        assert isinstance(struct, inspect.StructType), "documents are structs"
        return struct, [
            each for each in struct.fields if not self._fields or each.name in self._fields
        ]


class ResultGroup(ResultCommand, click.Group):
    """A group that prints the result of its own function if no subcommand is named."""


def result_command(name: str, **attributes: Any) -> Callable[[Callable[..., Any]], ResultCommand]:
    """Declare a `ResultCommand`, or a subclass of it as `cls`, with these `attributes`."""
    return click.command(name, **{"cls": ResultCommand, **attributes})


def print_found(found: Found) -> None:
    """Print the document with `--json`, and otherwise the lines."""
    document, lines = found
    if as_json():
        output.print_json(document)
    else:
        output.print_lines([lines] if isinstance(lines, str) else lines)


# ---- How the help describes the fields of a document


def _braces(
    struct: inspect.StructType, fields: Sequence[inspect.Field], *, is_inner: bool = False
) -> str:
    """Show the fields of a struct and nested ones: `{files, competitions: [{id, folder}]}`."""
    names = [] if struct.tag_field is None else [struct.tag_field]
    for field in fields:
        nested = None if is_inner else _nested(field.type)
        if nested is None:
            names.append(field.encode_name)
        else:
            inner, around = nested
            text = around % _braces(inner, inner.fields, is_inner=True)
            names.append(f"{field.encode_name}: {text}")
    return f"{{{', '.join(names)}}}"


def _nested(kind: inspect.Type) -> tuple[inspect.StructType, str] | None:
    """Return the struct in a field's type, and a pattern for its container.

    The pattern is `%s`, `[%s]` or `{name: %s}`.
    """
    match kind:
        case inspect.StructType():
            return kind, "%s"
        case inspect.UnionType():
            return next(filter(None, map(_nested, kind.types)), None)
        case inspect.DictType():
            found, around = _nested(kind.value_type), "{name: %s}"
        case inspect.CollectionType():
            found, around = _nested(kind.item_type), "[%s]"
        case _:
            return None
    return None if found is None else (found[0], around % found[1])


def _words(
    struct: inspect.StructType, fields: Sequence[inspect.Field], within: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield the names and descriptions of the fields of a struct and its nested structs."""
    from protocol.schema.docstrings import of_class

    # A struct inherits the descriptions of its bases; Python -OO strips them all.
    documented = [cls for cls in reversed(struct.cls.__mro__) if vars(cls).get("__doc__")]
    words = {name: text for cls in documented for name, text in of_class(cls).fields.items()}
    for field in fields:
        name = within + field.encode_name
        if field.name in words:
            yield name, words[field.name].replace("None", "null")  # as in JSON
        nested = None if within else _nested(field.type)
        if nested is not None:
            yield from _words(nested[0], nested[0].fields, f"{name}.")
