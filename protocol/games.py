"""The vocabularies of all games, by name: ours, and those of the entry points `protocol.games`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint
from types import ModuleType, NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from protocol.entry_points import LEFT_OUT, Package, load_all, package_of
from protocol.errors import BadGame, UnknownGame, did_you_mean, in_words
from protocol.messages import Ask, Past
from protocol.vocabulary import News, Question, Vocabulary, shorten
from protocol.words import Asked, Told, fields_in

__all__ = [
    "MOST_SEATS",
    "PACKAGES",
    "VOCABULARIES",
    "check_fields",
    "check_line",
    "conventions",
    "vocabulary_named",
]

ENTRY_POINTS = "protocol.games"
# A question's own fields are sent beside these, so they must have other names.
_ENVELOPE = frozenset({*Ask.__struct_fields__, *Past.__struct_fields__, "type", "kind"})

MOST_SEATS = 10
"""The largest number of seats for which the page has room."""

VOCABULARIES: dict[str, Vocabulary] = {}
"""All vocabularies by name, in alphabetical order, ours before those of other packages."""

PACKAGES: dict[str, Package] = {}
"""The package of every game that is not ours."""

_NAMES: dict[str, Vocabulary] = {}  # by name and by alias


def vocabulary_named(name: object) -> Vocabulary:
    """Return the vocabulary of a game by name or alias; raises `UnknownGame` if there is none."""
    if not isinstance(name, str) or name not in _NAMES:
        why = next((f"; {left}" for left in LEFT_OUT if left.name == name), "")
        meant = why or did_you_mean(name, VOCABULARIES)
        known = ", ".join(VOCABULARIES)
        raise UnknownGame(f"unknown game {name!r}; expected one of: {known}{meant}")
    return _NAMES[name]


def conventions(words: Vocabulary) -> None:
    """Raise `BadGame` with the first convention that a vocabulary breaks."""
    check_fields(words)
    name = words.name
    for what, given in ("name", name), ("alias", words.alias):
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", given):
            raise _bad(f"{what}: expected lower case letters, digits and _, got {given!r}")
    if not words.title:
        raise _bad("title: expected a name for people, got none")
    check_line("title", words.title)
    check_line("round", words.round)
    if not 1 <= words.seats <= MOST_SEATS:
        raise _bad(f"seats: expected 1 to {MOST_SEATS}, got {words.seats}")
    for cls in words.words:
        if not (isinstance(cls, type) and issubclass(cls, Question | News)):
            raise _bad(f"words: expected kinds of Question and News, got {cls!r}")
        listed = words.questions if issubclass(cls, Question) else words.news
        if cls not in listed.values():
            tag = cls.__struct_config__.tag
            raise _bad(f"words: expected another tag than {tag!r} for {cls.__name__}")
    if not words.questions:
        raise _bad("questions: expected at least one, got none")
    for question in words.questions.values():
        if "legal" not in question.__struct_fields__:
            raise _bad(f"legal: expected a field of that name in {question.__name__}")
    if words.closes not in words.news.values():
        raise _bad(f"closes: expected news of {name} that ends a round, got {words.closes!r}")
    kinds: tuple[Any, ...] = (*words.questions.values(), *words.news.values())
    if not words.opens:
        raise _bad("opens: expected a question or news that opens a round, got none")
    for opening in words.opens:
        if opening not in kinds:
            raise _bad(f"opens: expected questions or news of {name}, got {opening!r}")
        if "round" not in opening.__struct_fields__:
            raise _bad(
                f"opens: expected a field `round` in {opening.__name__}, which opens a round"
            )
    if unknown := [cls for cls in words.follows if cls not in kinds]:
        raise _bad(f"follows: expected news of {name}, got {unknown[0]!r}")
    if unknown := [cls for cls in words.private if cls not in words.news.values()]:
        raise _bad(f"private: expected news of {name}, got {unknown[0]!r}")
    if words.closes in words.private:
        raise _bad("private: expected news for one seat, got those that end a round for all")
    for cls in (words.settings, *kinds):
        _check_types(cls)
    for cls in kinds:
        _check_words(cls, words.words.get(cls))
    for shape in words.shapes:
        check_line("shapes", shape.name)
        if shape.kind not in words.questions:
            raise _bad(f"shapes: expected a kind of question, got {shape.kind!r} for {shape.name}")


def check_fields(described: object, of: str = "") -> None:
    """Raise `BadGame` for the first field of a description whose value has the wrong type."""
    for field, hint in get_type_hints(type(described)).items():
        given = getattr(described, field)
        if not _fits(given, hint):
            expected = " or ".join(dict.fromkeys(map(_kind_in_words, _kinds(hint))))
            raise _bad(f"{of}{field}: expected {expected}, got {shorten(given)}")


def _kinds(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _fits(given: object, hint: Any) -> bool:
    return any(_is_of(given, kind) for kind in _kinds(hint))


def _is_of(given: object, kind: Any) -> bool:
    origin = get_origin(kind) or kind
    if origin is Callable:
        return callable(given)
    if origin is int:
        return type(given) is int
    if origin is tuple and isinstance(given, tuple):
        return all(_fits(one, get_args(kind)[0]) for one in given)
    return isinstance(given, (int, float) if origin is float else origin)


def _kind_in_words(kind: Any) -> str:
    origin = get_origin(kind) or kind
    words = {
        Callable: "a function",
        Mapping: "a mapping",
        NoneType: "None",
        bool: "True or False",
        int: "a whole number",
        str: "a text",
        tuple: "a tuple",
        type: "a class",
    }
    return words.get(origin) or f"a {origin.__name__}"


def check_line(field: str, given: object) -> None:
    """Raise `BadGame` unless `given` is a text in one line, as commands and the page need it."""
    if not (isinstance(given, str) and given.strip() and given.isprintable()):
        raise _bad(f"{field}: expected a text in one line, got {shorten(given)}")


def _check_types(cls: Any) -> None:
    """Raise `BadGame` if the codec, which is made from these classes, could not send one."""
    taken = sorted(_ENVELOPE.intersection(cls.__struct_fields__))
    if issubclass(cls, Question) and taken:
        raise _bad(f"wire: expected another name for the field {taken[0]!r} of {cls.__name__}")
    try:
        msgspec.json.Decoder(cls)
    except Exception as error:
        raise _bad(f"wire: the types of {cls.__name__} cannot be sent: {in_words(error)}") from None


def _check_words(cls: Any, words: Any) -> None:
    expected = Asked if issubclass(cls, Question) else Told
    if not isinstance(words, expected):
        raise _bad(f"words: expected {expected.__name__} for {cls.__name__}, got {words!r}")
    known = {*cls.__struct_fields__, "who"}
    names = {f"{field}_name" for field in cls.__struct_fields__} if expected is Told else set()
    texts = [(words.text, known | names)]
    if isinstance(words, Asked):
        texts.append((words.answer, {*known, "answer"}))
    elif not isinstance(words.opening, str):
        raise _bad(f"words of {cls.__name__}: expected a text as opening, got {words.opening!r}")
    else:
        texts.append((words.opening, known | names))
    for text, fields in texts:
        if not isinstance(text, str):
            if not callable(text):
                raise _bad(
                    f"words of {cls.__name__}: expected a text or a function, got {shorten(text)}"
                )
            continue
        try:
            unknown = fields_in(text) - fields
        except ValueError as error:
            raise _bad(f"words of {cls.__name__}: {error} in {text!r}") from None
        if unknown:
            raise _bad(f"words of {cls.__name__}: expected its fields, got {min(unknown)!r}")


def _bad(text: str) -> BadGame:
    return BadGame(f"a game's convention is broken: {text}")


def _read(point: EntryPoint, module: ModuleType) -> None:
    """Add a vocabulary to the table; raises `BadGame` if it is invalid or its name is taken."""
    words = getattr(module, "VOCABULARY", None)
    if not isinstance(words, Vocabulary):
        raise _bad(f"expected a `VOCABULARY` in {point.module}, got {type(words).__name__}")
    package = package_of(point)
    if package is not None:  # a test checks ours: here it would slow every bot's start
        conventions(words)
    if words.name != point.name:
        raise _bad(f"name: expected that of its entry point, {point.name!r}, got {words.name!r}")
    for name in words.name, words.alias:
        if name in _NAMES:
            raise BadGame(f"the name {name!r} is taken by {_NAMES[name].name}")
    VOCABULARIES[words.name] = words
    _NAMES.update({words.name: words, words.alias: words})
    if package is not None:
        PACKAGES[words.name] = package


def _load() -> None:
    for _ in load_all(ENTRY_POINTS, _read):
        pass


_load()
