"""Makes the generated parts of protocol/*.md: tables from the same definitions as the schemas.

A part is between `<!-- generated: WHAT -->` and `<!-- end -->`, each on a line of its own. WHAT is
a word of `PARTS` and its subject: `messages bot`, `settings GAME`, `transcript GAME-1`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping

from protocol import messages
from protocol.errors import UsageError
from protocol.games import VOCABULARIES
from protocol.messages import LAUNCHED_LIMITS, Ask, Past
from protocol.schema.definitions import Schema, definitions, our_games
from protocol.schema.docstrings import of_class, of_constants
from protocol.schema.frames import transcript_block
from protocol.schema.rows import Row, in_words, rows_of, said

__all__ = ["PARTS", "fill_in"]

_PART = re.compile(
    r"^(<!-- generated: (\w[^\n]*) -->\n).*?^(<!-- end -->)$", re.DOTALL | re.MULTILINE
)
_SECTION = re.compile(r'\b([Ss]ee) "([^"]+)"(?: and "([^"]+)")?')

_MESSAGES = {
    "bot": ("hello", "ready", "answer", "goodbye"),
    "arena": ("welcome", "match", "ask", "past", "over", "refused"),
    "instructor": ("instruct", "done"),
}
_MAPS: Schema = {"type": "array", "items": {"type": "object"}}


def fill_in(
    document: str, read: Callable[[str], bytes], links: Mapping[str, str] | None = None
) -> str:
    """Return the text of a page with all its generated parts up to date.

    `read` returns a transcript's bytes by its name; `links` has the targets of `see "SECTION"` by
    heading. Raises `UsageError` if a part, its subject or a linked section does not exist.
    """
    parts = len(_PART.findall(document))
    marks = "<!-- generated: ", "<!-- end -->"
    if any(document.count(mark) != parts for mark in marks):
        raise UsageError("expected `<!-- end -->` after every `<!-- generated: … -->`")

    def filled(found: re.Match[str]) -> str:
        begin, what, end = found.groups()
        return f"{begin}\n{_part(what, read, links or {})}\n\n{end}"

    return _PART.sub(filled, document)


def _part(what: str, read: Callable[[str], bytes], links: Mapping[str, str]) -> str:
    part, _, about = what.partition(" ")
    if part == "transcript":
        return transcript_block(about, read)
    if part not in PARTS:
        known = ", ".join([*PARTS, "transcript"])
        raise UsageError(f"expected a part that is one of: {known}; got {what!r}")
    try:
        table = "\n".join(PARTS[part](about))
    except KeyError as error:
        raise UsageError(f"{part!r} knows no {error}") from None
    return _linked(table, links)


def _table(*rows: Row) -> Iterator[str]:
    """Yield a table in Markdown; the first row is the header."""
    head, *body = rows
    for row in (head, ("---",) * len(head), *body):
        cells = (f" {cell} " if cell else " " for cell in row)
        yield f"|{'|'.join(cells)}|".replace(" --- ", "---")


def _linked(text: str, links: Mapping[str, str]) -> str:
    """Turn `see "Time" and "Space"` into links to these sections."""

    def linked(found: re.Match[str]) -> str:
        see, *names = filter(None, found.groups())
        for name in names:
            if name not in links:
                raise UsageError(f"expected a section {name!r} in a page, got none")
        return f"{see} {' and '.join(f'[{name}]({links[name]})' for name in names)}"

    return _SECTION.sub(linked, text)


# ---- The parts


def _messages(side: str) -> Iterator[str]:
    rows: list[Row] = []
    for name in _MESSAGES[side]:
        schema = definitions()[name]
        if name in ("ask", "past"):
            schema = _envelope(name)
        elif "oneOf" in schema or "anyOf" in schema:
            schema = _any_game(name)
        rows += rows_of(name, schema)
    return _table(("message", "field", "type", "what it is"), *rows)


def _envelope(name: str) -> Schema:
    """Describe `ask` or `past` without the fields of any one kind of question."""
    words = of_class({"ask": Ask, "past": Past}[name])
    [first, *_] = (form for key, form in definitions().items() if f".{name}." in key)
    forms = first["properties"] | {
        "kind": {"type": "string"},
        "question": {},
        "legal": {"anyOf": [{"type": "array", "items": {}}, {"type": "object"}]},
        "news": _MAPS,
        "answer": {},
    }
    order = ("match", "ask", "kind", "question", "legal", "news", *words.fields)
    fields = {
        field: forms[field] | {"description": words.of(field)} for field in dict.fromkeys(order)
    }
    return {"description": words.summary, "properties": fields}


def _any_game(name: str) -> Schema:
    """Describe `match` or `over` without what differs from game to game."""
    schema = definitions()[f"{our_games()[0].name}.{name}"]
    plain: dict[str, Schema] = {
        "game": {"type": "string"},
        "settings": {"type": "object"},
        "seats": {"type": "array", "items": {"type": "string"}},
        "news": _MAPS,
    }
    fields = {
        field: plain.get(field, form) | {"description": form.get("description", "")}
        for field, form in schema["properties"].items()
        if field != "type"
    }
    return schema | {"properties": fields}


def _questions(game: str) -> Iterator[str]:
    words = VOCABULARIES[game]
    envelope = {*of_class(Ask).fields} - {"legal"} | {"type"}
    rows: list[Row] = []
    for kind in words.questions:
        schema = definitions()[f"{game}.ask.{kind}"]
        own = {field: form for field, form in schema["properties"].items() if field not in envelope}
        rows += rows_of(kind, schema | {"properties": own})
    return _table(("question", "field", "type", "what it is"), *rows)


def _news(game: str) -> Iterator[str]:
    rows: list[Row] = []
    for kind in VOCABULARIES[game].news:
        rows += rows_of(kind, definitions()[f"{game}.news.{kind}"])
    return _table(("news", "field", "type", "what it is"), *rows)


def _settings(game: str) -> Iterator[str]:
    fields = definitions()[f"{game}.settings"]["properties"]
    rows = (
        (f"`{name}`", f"`{json.dumps(form['default'])}`", in_words(form), said(form))
        for name, form in fields.items()
    )
    return _table(("setting", "default", "type", "what it is"), *rows)


def _limits(about: str) -> Iterator[str]:
    is_time = {"time": True, "space": False}[about]
    rows = (
        (
            f"`{name}`",
            str(form["default"]),
            "launched" if name in LAUNCHED_LIMITS else "all",
            said(form),
        )
        for name, form in definitions()["limits"]["properties"].items()
        if name.endswith("_ms") == is_time
    )
    return _table(("limit", "default", "who", "what it limits"), *rows)


def _verdict(_: str) -> Iterator[str]:
    fields = definitions()["verdict"]["properties"]
    rows = ((f"`{name}`", in_words(form), said(form)) for name, form in fields.items())
    return _table(("field", "type", "what it is"), *rows)


def _enumeration(name: str, head: tuple[str, str]) -> Callable[[str], Iterator[str]]:
    def part(_: str) -> Iterator[str]:
        words = definitions()[name]["oneOf"]
        rows = ((f"`{word['const']}`", said(word)) for word in words)
        return _table(head, *rows)

    return part


def _close_codes(_: str) -> Iterator[str]:
    codes = of_constants(messages, "CLOSE_").items()
    rows = ((str(code), said({"description": text})) for code, text in codes)
    return _table(("code", "who closes, and why"), *rows)


PARTS: Mapping[str, Callable[[str], Iterator[str]]] = {
    "messages": _messages,
    "questions": _questions,
    "news": _news,
    "settings": _settings,
    "limits": _limits,
    "verdict": _verdict,
    "actions": _enumeration("action", ("`action`", "what is done")),
    "endings": _enumeration("ending", ("`kind`", "what happened")),
    "mechanisms": _enumeration("mechanism", ("`mechanism`", "what detected it")),
    "close": _close_codes,
}
"""By the name of a part, the function that makes its lines from the subject."""
