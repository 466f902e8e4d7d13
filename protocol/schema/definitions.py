"""Makes the JSON Schemas of everything on the wire, one definition per name, with msgspec.

It adds the wire's names (`GAME.ask.turn`, `limits`), the descriptions in the docstrings, and the
arena's promises beyond the types: its messages have every field that is not left out by default,
and may have more in later versions; messages of bots have no other fields. Definitions refer to one
another as `#/$defs/NAME`; `protocol/schema/documents.py` makes files of them. The definitions of
our games do not depend on which games of other packages are installed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum
from functools import cache
from typing import Any, ForwardRef, Literal, TypeAlias, get_args, get_origin

import msgspec
from msgspec.structs import fields

from protocol import field_types
from protocol.cards import Card
from protocol.codec import shapes
from protocol.errors import UsageError
from protocol.games import PACKAGES, VOCABULARIES
from protocol.messages import (
    Answer,
    Ask,
    Done,
    Goodbye,
    Hello,
    Instruct,
    Limits,
    Match,
    Over,
    Past,
    Progress,
    Ready,
    Refused,
    Welcome,
)
from protocol.schema.docstrings import Words, of_class
from protocol.vocabulary import Question, Settings, Vocabulary

__all__ = ["FROM_BOT", "Schema", "definitions", "links", "our_games", "refer"]

Schema: TypeAlias = dict[str, Any]

FROM_BOT = ("hello", "ready", "answer", "goodbye", "instruct")
"""The messages of bots and instructors; all others are the arena's."""

_PREFIX = "#/$defs/"
_WITH_DEFAULTS = (Limits, Settings)  # sent by the arena, but chosen by people
_SESSION: tuple[type, ...] = (Welcome, Refused, Done, Progress)
_BOTS: tuple[type, ...] = (Hello, Ready, Answer, Goodbye, Instruct)


def our_games() -> list[Vocabulary]:
    """Return the vocabularies of our own games."""
    return [words for words in VOCABULARIES.values() if words.name not in PACKAGES]


@cache
def definitions(outside: str = "") -> Mapping[str, Schema]:
    """Return all definitions by name, in reading order: of our games, or of the game `outside`."""
    found: dict[str, Schema] = {"card": _card()}
    found |= _values()
    found |= _components({cls: _named(cls) for cls in _BOTS}, from_bot=True)
    found |= _components({cls: _named(cls) for cls in _SESSION})
    for vocabulary in [VOCABULARIES[outside]] if outside else our_games():
        found |= _game(vocabulary)
    for cls in (Match, Ask, Past, Over):
        message = _named(cls)
        names = [name for name in found if _is_about(name, message)]
        found[message] = {
            "description": of_class(cls).summary,
            # An `over` without news fits every game, so `oneOf` would fail.
            "anyOf" if cls is Over else "oneOf": refer(names),
        }
    return found


def refer(names: Iterable[str]) -> list[Schema]:
    """Make references to definitions."""
    return [{"$ref": _PREFIX + name} for name in names]


def links(schema: object) -> Iterator[str]:
    """Yield the names of the definitions that a schema refers to, with repetitions."""
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"].removeprefix(_PREFIX)
        for part in schema.values():
            yield from links(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from links(part)


def _is_about(name: str, message: str) -> bool:
    """Whether `name` is one game's form of `message`, such as `GAME.over` or `GAME.ask.turn`."""
    game, _, rest = name.partition(".")
    return game in VOCABULARIES and rest.partition(".")[0] == message


# ---- One game


def _game(words: Vocabulary) -> dict[str, Schema]:
    game = words.name
    wire = shapes(game)
    named: dict[type, str] = {words.settings: f"{game}.settings"}
    said: dict[type, Words] = {}
    for tag, flats, envelope in (("ask", wire.asks, Ask), ("past", wire.pasts, Past)):
        for kind, flat in flats.items():
            named[flat] = f"{game}.{tag}.{kind}"
            said[flat] = _both(of_class(envelope), of_class(words.questions[kind]))
    named |= {cls: f"{game}.news.{kind}" for kind, cls in words.news.items()}
    named[wire.over] = f"{game}.over"
    said[wire.over] = of_class(Over)
    found = _components(named, said, game=game)
    for tag, flats in (("ask", wire.asks), ("past", wire.pasts)):
        for kind in flats:
            found[f"{game}.{tag}.{kind}"]["properties"]["kind"]["const"] = kind
    for kind, question in words.questions.items():
        found |= _answer(game, kind, question)
        past = found[f"{game}.past.{kind}"]["properties"]
        past["answer"]["$ref"] = f"{_PREFIX}{game}.answer.{kind}"
    found[f"{game}.match"] = _match(words)
    return found


def _both(envelope: Words, question: Words) -> Words:
    return Words(question.summary, {**envelope.fields, **question.fields})


def _answer(game: str, kind: str, question: type[Question[Any]]) -> dict[str, Schema]:
    """Define the type of the answers to one kind of question, and the types in it.

    Which answers are legal is in the question's `legal`.
    """
    answer, name = _answer_type(question), f"{game}.answer.{kind}"
    if isinstance(answer, type) and issubclass(answer, msgspec.Struct):
        return _components({answer: name}, game=game, from_bot=True)
    nested = {cls: _named(cls, game) for cls in _types_in([answer])}
    [schema], _ = msgspec.json.schema_components([answer], ref_template=_PREFIX + "{name}")
    tidied: Schema = _tidied(schema, {cls.__name__: named for cls, named in nested.items()})
    return {
        **_components(nested, game=game, from_bot=True),
        name: {"description": f"What may be answered to `{kind}`."} | tidied,
    }


def _answer_type(question: type[Question[Any]]) -> Any:
    """Return the type parameter of `Question`; raises `UsageError` if there is none."""
    for cls in question.__mro__:
        for base in vars(cls).get("__orig_bases__", ()):
            if get_origin(base) is Question:
                [answer] = get_args(base)
                if isinstance(answer, ForwardRef):
                    return eval(answer.__forward_arg__, dict(vars(sys.modules[cls.__module__])))
                return answer
    raise UsageError(f"expected the type of the answers, `Question[…]`, in {question.__name__}")


def _match(words: Vocabulary) -> Schema:
    found = _components({Match: "match"})["match"]
    found["properties"]["game"]["const"] = words.name
    settings = found["properties"]["settings"]
    found["properties"]["settings"] = {
        "$ref": f"{_PREFIX}{words.name}.settings",
        "description": settings["description"],
    }
    found["properties"]["seats"] |= {"minItems": words.seats, "maxItems": words.seats}
    return found


# ---- From msgspec's schemas to ours


def _components(
    named: Mapping[type, str],
    said: Mapping[type, Words] | None = None,
    *,
    from_bot: bool = False,
    game: str = "",
) -> dict[str, Schema]:
    """Define some types, by these names, and all types that they contain.

    `said` describes types without docstrings of their own. Types `from_bot` have no further fields,
    and optional fields may be left out. A nested type may belong to `game`.
    """
    _, components = msgspec.json.schema_components(list(named), ref_template=_PREFIX + "{name}")
    by_name = {cls.__name__: cls for cls in [*_types_in(named), *named]}
    names = {name: named.get(cls) or _named(cls, game) for name, cls in by_name.items()}
    found = {}
    for name, schema in components.items():
        cls = by_name[name]
        words = (said or {}).get(cls) or of_class(cls)
        if issubclass(cls, Enum):
            found[names[name]] = _words(cls, words)
        else:
            assert issubclass(cls, msgspec.Struct), "these two make up the wire"
            omits = from_bot or cls.__struct_config__.omit_defaults
            keeps = omits or issubclass(cls, _WITH_DEFAULTS)
            unset = {each.encode_name for each in fields(cls) if each.default is msgspec.UNSET}
            tidied = _tidied(schema, names)
            required = schema["required"] if omits else tidied["properties"].keys() - unset
            found[names[name]] = _described(tidied, words, from_bot, keeps, required)
    return found


def _types_in(types: Iterable[Any]) -> Iterator[type]:
    """Yield the structs and enumerations that some types are made of, each once."""
    seen: set[type] = set()
    waiting: list[Any] = [*msgspec.inspect.multi_type_info(types)]
    while waiting:
        about = waiting.pop()
        if isinstance(about, list | tuple):
            waiting += about
        elif isinstance(about, msgspec.inspect.StructType | msgspec.inspect.EnumType):
            if about.cls not in seen:
                seen.add(about.cls)
                yield about.cls
                waiting += getattr(about, "fields", ())
        elif isinstance(about, msgspec.inspect.Type | msgspec.inspect.Field):
            waiting += [getattr(about, name) for name in about.__struct_fields__]


def _named(cls: type, game: str = "") -> str:
    """Name a type: `GAME.turn_answer` for its TurnAnswer, `welcome` for Welcome."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()
    package, _, module = cls.__module__.rpartition(".")
    owner = module if package == "protocol" else game
    return f"{owner}.{name}" if owner in VOCABULARIES else name


def _described(
    schema: Schema, words: Words, from_bot: bool, keeps: bool, required: Collection[str]
) -> Schema:
    """Add the descriptions to a struct's schema, and the promises about its fields."""
    properties: dict[str, Schema] = {}
    for field, form in schema["properties"].items():
        is_tag = list(form) == ["const"]
        said = "" if is_tag else _sentence(words.of(field))
        described = form if is_tag else {"description": said} | form
        if not keeps:
            described.pop("default", None)
        properties[field] = described
    found: Schema = {
        "description": words.summary,
        "type": "object",
        "properties": properties,
        "required": [field for field in properties if field in required],
    }
    if from_bot:
        found["additionalProperties"] = False
    return found


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _words(cls: type[Enum], words: Words) -> Schema:
    """Define an enumeration, each word with its meaning, in the order of its definition."""
    meant = [{"const": word.value, "description": _sentence(words.of(word.value))} for word in cls]
    return {"description": words.summary, "oneOf": meant}


def _tidied(schema: Any, names: Mapping[str, str]) -> Any:
    """Remove Python's names from a schema of msgspec, and refer to our definitions."""
    if isinstance(schema, list):
        return [_tidied(part, names) for part in schema]
    if not isinstance(schema, dict):
        return schema
    for name, whole in _said_at_length():
        if schema.items() >= whole.items():
            rest = {key: schema[key] for key in schema.keys() - whole.keys()}
            return {"$ref": _PREFIX + name, **rest}
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_PREFIX)
        return schema | {"$ref": _PREFIX + names[name]}
    found = {
        key: _tidied(part, names)
        for key, part in schema.items()
        if key not in ("title", "discriminator")
    }
    if "enum" in found:
        known = frozenset(found["enum"])
        found["enum"] = list(_in_order().get(known, found["enum"]))
        if len(known) == 1:
            [found["const"]] = found.pop("enum")
    return _row(found)


def _row(schema: Schema) -> Schema:
    """Replace `prefixItems` of equal items by `items`, which every draft of JSON Schema has."""
    parts = schema.get("prefixItems", [None])
    if parts[0] is None or any(part != parts[0] for part in parts):
        return schema
    kept = {key: value for key, value in schema.items() if key != "prefixItems"}
    return kept | {"items": parts[0]}


@cache
def _in_order() -> Mapping[frozenset[object], tuple[object, ...]]:
    """Return the original order of the words in our games' `Literal`s; msgspec sorts them."""
    named = (
        get_args(alias)
        for words in our_games()
        for alias in vars(sys.modules[words.settings.__module__]).values()
        if get_origin(alias) is Literal
    )
    return {frozenset(words): words for words in named}


def _card() -> Schema:
    schema = msgspec.json.schema(Card)
    return {"description": "A card: rank and suit, as in `As Td 9h 2c`."} | schema


def _values() -> dict[str, Schema]:
    """Define what an answer may contain: `value`, and `value_3` to `value_1`, each less nested."""
    found = {}
    for name, whole in _said_at_length():
        if name.startswith("value"):
            inner = {key: _tidied(part, {}) for key, part in whole.items()}
            text = "What an answer may be made of"
            depth = int(name.partition("_")[2] or 4)
            found[name] = {"description": f"{text}, nested {depth} deep at most."}
            found[name] |= inner
    return found


@cache
def _said_at_length() -> tuple[tuple[str, Schema], ...]:
    """Return definitions of unnamed types, which msgspec would write out wherever they occur."""
    nested = vars(field_types)
    values = {
        "value": nested["Value"],
        **{f"value_{depth}": nested[f"_Value{depth}"] for depth in (3, 2, 1)},
    }
    return (
        ("card", msgspec.json.schema(Card)),
        *((name, msgspec.json.schema(alias)) for name, alias in values.items()),
    )
