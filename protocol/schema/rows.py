"""Makes the rows of a table of fields: name, type in words, description.

The words are for readers who know neither Python nor JSON Schema: `text, 1 to 64 characters`, `list
of 2 integers`, `card or null`. A map within a message has rows of its own, with paths such as
`termination.kind` and `legal[].discard`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TypeAlias

from protocol.schema.definitions import Schema, definitions

__all__ = ["Row", "in_words", "rows_of", "said"]

Row: TypeAlias = tuple[str, ...]
"""The cells of a table's row."""

_PLURALS = {
    "card": "cards",
    "integer": "integers",
    "text": "texts",
    "map": "maps",
    "true or false": "booleans",
}


def said(schema: Schema) -> str:
    """Format a description for a table: without a capital or a full stop."""
    text = str(schema["description"]).rstrip(".")
    is_a_name = text[:1].isupper() and text[1:2].isupper()  # such as CPU
    return text if is_a_name else text[:1].lower() + text[1:]


def rows_of(name: str, schema: Schema) -> Iterator[Row]:
    """Yield a row for a message, question or news, and one for each of its fields."""
    yield f"`{name}`", "", "", said(schema)
    required = schema.get("required", [*schema["properties"]])
    for field, form in schema["properties"].items():
        if "const" in form and "description" not in form:  # the message's type
            continue
        if field == "question":
            yield "", "…", "", said(form)
            continue
        yield "", f"`{field}`", _told(form, field in required), said(form)
        yield from _inner(field, form)


def _inner(path: str, form: Schema) -> Iterator[Row]:
    """Yield rows for the fields of a map within a message, unless it has its own table."""
    if form.get("type") == "array":
        path, form = f"{path}[]", form["items"]
    for part in form.get("anyOf", [form]):
        name = part.get("$ref", "").removeprefix("#/$defs/")
        inner = definitions().get(name, {})
        if name in ("limits", "verdict") or "properties" not in inner:
            continue
        for field, about in inner["properties"].items():
            yield "", f"`{path}.{field}`", in_words(about), said(about)


def _told(form: Schema, is_required: bool) -> str:
    """Describe a field's type, and what leaving it out means."""
    if is_required:
        return in_words(form)
    kind, default = in_words(form), form.get("default")
    if default is None:
        kind = kind.removesuffix("or `null`").rstrip(", ")
        return f"{kind}; may be left out"
    return f"{kind}; `{json.dumps(default)}` if left out"


def in_words(form: Schema) -> str:
    """Describe the type of a value in words."""
    if "enum" in form:
        return ", ".join(f"`{json.dumps(word)}`" for word in form["enum"])
    if "$ref" in form:
        return _referred(form["$ref"].removeprefix("#/$defs/"))
    if "anyOf" in form:
        parts = [in_words(part) for part in form["anyOf"]]
        is_long = any("," in part for part in parts)
        return (", or " if is_long else " or ").join(parts)
    match form.get("type"):
        case "integer":
            return "integer" + _bounds(form, "minimum", "maximum")
        case "string":
            bounds = _bounds(form, "minLength", "maxLength")
            return "text" + (f"{bounds} characters" if bounds else "")
        case "array":
            return _list(form)
        case None:
            return "anything"
        case plain:
            words = {"boolean": "true or false", "object": "map", "null": "`null`"}
            return words.get(str(plain), str(plain))


def _referred(name: str) -> str:
    schema = definitions()[name]
    if name == "card":
        return "card"
    if name == "value":
        return "anything"
    return "a word" if "oneOf" in schema else "map"


def _list(form: Schema) -> str:
    if "prefixItems" in form:
        return f"[{', '.join(in_words(part) for part in form['prefixItems'])}]"
    item = in_words(form["items"])
    if item == "anything":
        return "list"
    least, most = form.get("minItems"), form.get("maxItems")
    many = f"{least}" if least == most else f"{least} to {most}"
    plural = _PLURALS.get(item) or _PLURALS.get(item.partition(", ")[0])
    if item.startswith("list of "):
        plural = "lists" + item.removeprefix("list")
    if least is None:
        return f"list of {plural or item}"
    return f"list of {many} {plural}" if plural else f"list of {many}, each {item}"


def _bounds(form: Schema, least: str, most: str) -> str:
    if least in form and most in form:
        return f", {form[least]} to {form[most]}"
    if least in form:
        return f", at least {form[least]}"
    return f", at most {form[most]}" if most in form else ""
