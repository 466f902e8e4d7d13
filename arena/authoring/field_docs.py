"""Makes a starter's comments on every question and news, from the types and their docstrings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Any, TypeAlias

import msgspec
from msgspec import inspect as types

from protocol.schema.docstrings import Words, of_class
from protocol.vocabulary import News, Question, Range

__all__ = ["FieldDoc", "Kind", "KindDocs", "answers", "fields", "go_type", "is_range", "kind_docs"]

Kind: TypeAlias = type[Question[Any]] | type[News]


class FieldDoc(msgspec.Struct, frozen=True):
    """A field of a question or news: its name on the wire, what it holds, and its type."""

    name: str
    what: str
    type: types.Type


_COMMENT = 80  # columns
# Kinds of questions that cannot be a method's name in C++, Go, Java or JavaScript, or that the
# templates use themselves.
_RESERVED = frozenset(
    "and assert auto bool break case catch char class compl const constructor continue decide "
    "default defer delete do double else enum explicit export extends extern final finally float "
    "for friend func go goto hear if implements import inline int interface long main map match "
    "mutable namespace native new not operator or package private protected public range register "
    "return seat select short signed sizeof static struct super switch synchronized template this "
    "throw throws transient try type typedef typename union unsigned using var virtual void "
    "volatile while xor".split()
)


class KindDocs(msgspec.Struct, frozen=True, kw_only=True):
    """What a template needs to know about a kind of question or news.

    Attributes:
        camel: its name in camel case, such as `handOver`.
        notes: the lines of a comment; `go_notes` has them as gofmt formats them after `//`.
        columns: the fields of a struct in Go, as gofmt formats them.
    """

    kind: str
    camel: str
    is_range: bool
    notes: tuple[str, ...]
    go_notes: tuple[str, ...]
    columns: tuple[str, ...]


def kind_docs(kind: str, cls: Kind) -> KindDocs:
    """Collect what a template needs to know about a kind of question or news, from its class."""
    notes = tuple(_notes(cls))
    return KindDocs(
        kind=kind,
        camel=_camel(kind),
        is_range=is_range(cls),
        notes=notes,
        # gofmt puts a tab before lines that must not be wrapped.
        go_notes=tuple(re.sub("^ {3}", "\t", f" {line}") for line in notes),
        columns=tuple(_columns(cls)),
    )


def _notes(cls: Kind) -> Iterator[str]:
    yield from wrap(_words(cls).summary, _COMMENT)
    listed = fields(cls)
    if listed:
        yield ""
    width = max((len(field.name) for field in listed), default=0) + 4
    for field in listed:
        first = f"  {field.name}".ljust(width)
        what = wrap(field.what, _COMMENT, initial_indent=first, subsequent_indent=" " * width)
        yield from what or [first.rstrip()]
    if issubclass(cls, Question):
        yield ""
        yield from wrap(f"Answer: {answers(cls)}.", _COMMENT)


def _columns(cls: Kind) -> Iterator[str]:
    rows = [
        (_camel(f"_{field.name}"), go_type(field.type), f'`json:"{field.name}"`')
        for field in fields(cls)
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield " ".join(cells).rstrip()


def _camel(kind: str) -> str:
    """Turn `hand_over` into `handOver`, `_hand_over` into `HandOver`, and `pass` into `pass_`."""
    camel = re.sub(r"_(\w)", lambda after: after[1].upper(), kind)
    return f"{camel}_" if camel in _RESERVED else camel


def fields(kind: Kind) -> list[FieldDoc]:
    """Return all fields except `legal`; the text of a field names its values if they are few."""
    said = _words(kind).fields
    return [
        FieldDoc(name, _with_values(said.get(name, ""), field.type), field.type)
        for field in _fields(kind)
        if (name := field.encode_name) != "legal"
    ]


def answers(kind: type[Question[Any]]) -> str:
    """Describe the legal answers to a question in words."""
    [legal] = [field for field in _fields(kind) if field.name == "legal"]
    said = _words(kind).fields.get("legal", "").removesuffix(".")
    if is_range(kind):
        numbers = "a whole number from `legal.min` to `legal.max`"
        return f"{numbers}: {said}" if said else numbers
    if said or not isinstance(legal.type, types.VarTupleType):
        return said or "one of `legal`"
    if isinstance(legal.default, tuple) and legal.default:
        return _one_of(legal.default)
    values = _values(legal.type.item_type)
    some = f", which has some of {_one_of(values, 'and')}" if values else ""
    return f"one of `legal`{some}"


def is_range(kind: Kind) -> bool:
    """Whether `legal` is a range of whole numbers."""
    return any(
        isinstance(field.type, types.StructType) and field.type.cls is Range
        for field in _fields(kind)
    )


def go_type(kind: types.Type) -> str:
    """Return the Go type of a field. A number that may be null is a pointer, as 0 has a meaning."""
    match kind:
        case types.Metadata():
            return go_type(kind.type)
        case types.IntType():
            return "int"
        case types.BoolType():
            return "bool"
        case types.StrType():
            return "string"
        case types.LiteralType():
            return "string" if all(isinstance(v, str) for v in kind.values) else "any"
        case types.VarTupleType():
            return f"[]{go_type(kind.item_type)}"
        case types.TupleType():
            each = {go_type(item) for item in kind.item_types}
            return f"[]{each.pop() if len(each) == 1 else 'any'}"
        case types.UnionType():
            inner = {go_type(part) for part in kind.types if not isinstance(part, types.NoneType)}
            is_number = inner == {"int"}
            return "*int" if is_number else inner.pop() if len(inner) == 1 else "any"
    return "any"


def _words(kind: Kind) -> Words:
    """Return what the docstring of a question or news says; without one, the class's name."""
    return of_class(kind) if vars(kind).get("__doc__") else Words(kind.__name__, {})


def _fields(kind: Kind) -> tuple[types.Field, ...]:
    info = types.type_info(kind)
    assert isinstance(info, types.StructType), "questions and news are structs"
    return info.fields


def _with_values(said: str, kind: types.Type) -> str:
    """Return a field's text, with its possible values added unless the text names them."""
    said = said.removesuffix(".")
    values = _values(kind)
    if values and not all(json.dumps(value) in said for value in values):
        return f"{said}: {_one_of(values)}"
    return said


def _values(kind: types.Type) -> Sequence[object]:
    """Return the values of a literal type, alone or within a union or a tuple."""
    match kind:
        case types.LiteralType():
            return kind.values
        case types.UnionType():
            return [value for part in kind.types for value in _values(part)]
        case types.TupleType():
            return _values(kind.item_types[0])
    return ()


def _one_of(values: Sequence[object], joined: str = "or") -> str:
    """Join values in JSON, such as `"bet" or "check"`."""
    *rest, last = map(json.dumps, values)
    return f"{', '.join(rest)} {joined} {last}" if rest else last
