"""Makes the files of protocol/schema/: JSON Schemas (draft 2020-12) per message, direction, game.

A file's schema describes one message, or for a direction one frame; the definitions that it refers
to are in its `$defs`. All of it comes from `protocol/schema/definitions.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from protocol.games import PACKAGES, VOCABULARIES
from protocol.schema.definitions import FROM_BOT, Schema, definitions, links, our_games, refer

__all__ = ["FROM_ARENA", "WHOLE_NUMBERS", "documents", "game_document", "needed"]

FROM_ARENA = ("welcome", "match", "ask", "past", "over", "refused", "done")
"""The messages of the arena."""

_DRAFT = "https://json-schema.org/draft/2020-12/schema"

WHOLE_NUMBERS = (
    "What JSON Schema calls an integer may be written 4.0, and is equal to 4 in an enumeration; "
    "the wire knows whole numbers without a fraction only."
)
"""What matters and these schemas cannot say."""

_GAME_PARTS = ("settings", "match", "ask", "past", "over", "answer", "news")


def documents() -> dict[str, Schema]:
    """Return all files of JSON Schema about the session and our games, by their names."""
    found = {f"{name}.json": _message(name) for name in (*FROM_BOT, *FROM_ARENA)}
    found["bot_to_arena.json"] = _direction(
        "A frame that a bot or an instructor sends: a message, or an array of messages.", FROM_BOT
    )
    found["arena_to_bot.json"] = _direction(
        "A frame that the arena sends: a message, "
        "or an array of messages to a bot that said so in its `hello`. "
        "A later release may add fields, and no other messages within version 1.",
        FROM_ARENA,
    )
    for words in our_games():
        found[f"{words.name}.json"] = game_document(words.name)
    return found


def needed(names: Iterable[str], outside: str = "") -> Iterator[str]:
    """Yield the names of some `definitions` and of all that they refer to, each once."""
    seen: set[str] = set()
    waiting = list(names)[::-1]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            yield name
            waiting += [*links(definitions(outside)[name])][::-1]


def _message(name: str) -> Schema:
    schema = definitions()[name]
    return _document(name, schema["description"], schema, links(schema))


def _direction(text: str, names: tuple[str, ...]) -> Schema:
    title = "from a bot" if names == FROM_BOT else "from the arena"
    message: Schema = {"oneOf": refer(names)}
    frame: Schema = {
        "anyOf": [
            {"$ref": "#/$defs/message"},
            {"type": "array", "items": {"$ref": "#/$defs/message"}},
        ]
    }
    document = _document(title, text, frame, names)
    document["$defs"] = {"message": message} | document["$defs"]
    return document


def game_document(game: str) -> Schema:
    """Describe all messages of the arena about a match of one game, ours or another package's."""
    outside = game if game in PACKAGES else ""
    names = [
        name
        for part in _GAME_PARTS
        for name in definitions(outside)
        if name == f"{game}.{part}" or name.startswith(f"{game}.{part}.")
    ]
    said = [name for name in names if name.split(".")[1] in FROM_ARENA]
    text = (
        f"A message about a match of {VOCABULARIES[game].title}. Its settings, "
        "what may be answered to each kind of question, and its news are among the definitions."
    )
    return _document(VOCABULARIES[game].title, text, {"oneOf": refer(said)}, names, outside)


def _document(
    title: str, text: str, schema: Schema, names: Iterable[str], outside: str = ""
) -> Schema:
    return {
        "$schema": _DRAFT,
        "title": title,
        **schema,
        "description": f"{text} {WHOLE_NUMBERS}",
        "$defs": {name: definitions(outside)[name] for name in needed(names, outside)},
    }
