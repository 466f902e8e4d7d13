"""Bytes to messages and back: JSON in text frames, msgpack in binary ones, of the same structure.

A frame holds one message or an array of messages. Any bytes either parse or raise `ProtocolError`,
nothing else. Parsing is exact: `4.0`, `true` and `"4"` are not integers, unknown fields and types
are refused by name. If a map has a key twice, the last value counts, as in every JSON library that
bots are written with.

An `ask` is one flat map, with the question's fields among the envelope's. This module makes a
struct of that shape for every kind of question, so that asks, which are most of the arena's
messages, are encoded and decoded in one step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal, NamedTuple, NewType, TypeAlias, Union, get_type_hints

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import astuple

from protocol.errors import Malformed, Oversize, one_line
from protocol.games import VOCABULARIES
from protocol.messages import (
    ArenaMessage,
    Ask,
    BotMessage,
    Done,
    Match,
    Over,
    Past,
    Refused,
    Welcome,
)
from protocol.text_files import other_encoding
from protocol.vocabulary import News, Question, Vocabulary

__all__ = [
    "Encoding",
    "FlatAsk",
    "Shapes",
    "decode_from_arena",
    "decode_from_bot",
    "encode",
    "encode_all",
    "flat_ask",
    "join",
    "shapes",
]


class Encoding(StrEnum):
    """How a connection's frames are written; the arena answers in that of the bot's first frame."""

    JSON = "json"
    MSGPACK = "msgpack"


FlatAsk = NewType("FlatAsk", object)
"""An `ask` as it is sent: one map of the fields of the envelope and of the question."""

_FromBot: TypeAlias = BotMessage | list[BotMessage]

_TYPES = "hello, ready, answer or goodbye"  # `instruct` is not for bots

_decode_bot: dict[Encoding, Callable[[bytes], _FromBot]] = {
    Encoding.JSON: msgspec.json.Decoder(_FromBot).decode,
    Encoding.MSGPACK: msgspec.msgpack.Decoder(_FromBot).decode,
}


_encode: dict[Encoding, Callable[[object], bytes]] = {
    Encoding.JSON: msgspec.json.Encoder().encode,
    Encoding.MSGPACK: msgspec.msgpack.Encoder().encode,
}

# All exceptions of the decoders: besides their own errors, integers of thousands of digits
# (ValueError), unhashable map keys (TypeError), dates out of range (OverflowError) and deep nesting
# (RecursionError).
_UNREADABLE = (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError)

_MSGPACK_BEGINS = frozenset((*range(0x80, 0xA0), *range(0xDC, 0xE0)))  # a map or an array


def decode_from_bot(frame: bytes, encoding: Encoding, limit: int | None = None) -> list[BotMessage]:
    """Decode the messages in a frame that a bot sent, in order.

    Raises `Oversize` if the frame is longer than `limit` bytes, `Malformed` if it is not one
    message or an array of messages that a bot may send.
    """
    if limit is not None and len(frame) > limit:
        raise Oversize(f"expected frames of at most {limit} bytes, got {len(frame)}")
    try:
        messages = _decode_bot[encoding](frame)
    except _UNREADABLE as error:
        mixed = _mixed_up(frame, encoding)
        raise (mixed or _malformed(error, _TYPES)) from None
    return messages if isinstance(messages, list) else [messages]


def _mixed_up(frame: bytes, encoding: Encoding) -> Malformed | None:
    """Make the error for a frame that begins like one of the other encoding; else None."""
    first = frame.lstrip(b" \t\r\n")[:1]
    if encoding is Encoding.MSGPACK and first in (b"{", b"["):
        return Malformed(
            "expected msgpack in a binary frame, got JSON; "
            "send it in a text frame, or speak msgpack"
        )
    if encoding is Encoding.JSON and first and first[0] in _MSGPACK_BEGINS:
        return Malformed(
            "expected JSON in a text frame, got msgpack; send it in a binary frame, or speak JSON"
        )
    if encoding is Encoding.JSON and (other := other_encoding(frame)) is not None:
        return Malformed(f"expected JSON in UTF-8, got what looks like {other}")
    return None


def encode(message: BotMessage | ArenaMessage, encoding: Encoding) -> bytes:
    """Encode one message as a frame, or as a part for `join`."""
    encoder = _encode[encoding]
    if type(message) is Past:
        return encoder(_flat(message))
    if type(message) is Ask:
        return encoder(flat_ask(*astuple(message)))
    return encoder(message)


def encode_all(parts: Sequence[Raw | FlatAsk | BotMessage], encoding: Encoding) -> bytes:
    """Encode messages as one frame: several as an array, a single one as it is."""
    return _encode[encoding](parts if len(parts) > 1 else parts[0])


def flat_ask(
    match: str,
    ask: str,
    question: Question[Any],
    news: tuple[News, ...],
    bank_ms: int,
    decision_ms: int,
) -> FlatAsk:
    """Make the flat form of an `Ask` with these fields, for `encode_all`."""
    flat, kind = _FLAT_ASKS[type(question)]
    fields: FlatAsk = flat(match, ask, kind, *astuple(question), news, bank_ms, decision_ms)
    return fields


def _flat(past: Past) -> object:
    flat, kind = _FLAT_PASTS[type(past.question)]
    fields = astuple(past.question)
    return flat(past.match, past.ask, kind, *fields, past.news, past.answer)


def join(parts: list[bytes], encoding: Encoding) -> bytes:
    """Join several encoded messages into one frame that holds an array."""
    if encoding is Encoding.JSON:
        return b"[%b]" % b",".join(parts)
    if len(parts) < 16:
        header = bytes([0x90 | len(parts)])
    else:
        header = b"\xdd" + len(parts).to_bytes(4, "big")
    return header + b"".join(parts)


def decode_from_arena(
    frame: bytes, encoding: Encoding, game_of: Callable[[str], str], likely: str | None = None
) -> list[ArenaMessage]:
    """Decode the messages in a frame that the arena sent; unknown fields are ignored.

    `game_of` returns the game of a match by its id, or raises KeyError. Raises `Malformed` for a
    frame that cannot be read, or that is about a match unknown to `game_of`. `likely` is a game: a
    frame that has only asks of this game, as most have, is decoded in one step.
    """
    read = _READERS[encoding]
    if likely is not None and (asks := read.asks(frame, likely, game_of)) is not None:
        return asks
    games: dict[str, str] = {}

    def game(match: str) -> str:
        return games[match] if match in games else game_of(match)

    messages = []
    try:
        for part in read.parts(frame):
            message = read.message(part, game)
            if isinstance(message, Match):  # the match's first ask may be in the same frame
                games[message.match] = message.game
            messages.append(message)
    except KeyError as error:
        raise Malformed(one_line(f"no match, game, kind or field {error} is known here")) from None
    except _UNREADABLE as error:
        raise _malformed(error) from None
    return messages


class _Peek(Struct, frozen=True, gc=False):
    """The fields of a message that determine its type."""

    type: str
    match: str | None = None  # `refused` may have none
    kind: str = ""


def _news_type(vocabulary: Vocabulary) -> Any:
    union: Any = Union[tuple(vocabulary.news.values())]  # noqa: UP007 - of unknown length
    return tuple[union, ...]


def _flat_type(
    question: type[Question[Any]], news: Any, tag: str, *last: tuple[str, Any]
) -> type[Any]:
    """Make the struct for an `ask` or `past` of this question, with `last` as last fields."""
    name = f"{question.__name__}{tag.title()}"
    fields = _flat_fields(question, news, ("kind", str), *last)
    return msgspec.defstruct(name, fields, frozen=True, gc=False, tag_field="type", tag=tag)


def _flat_fields(
    question: type[Question[Any]], news: Any, sort: tuple[str, Any], *last: tuple[str, Any]
) -> list[tuple[str, Any]]:
    asked = get_type_hints(question, include_extras=True)
    own = ((name, asked[name]) for name in question.__struct_fields__)
    return [("match", str), ("ask", str), sort, *own, ("news", news), *last]


def _over(news: Any) -> type[Any]:
    types = get_type_hints(Over, include_extras=True) | {"news": news}
    shape: list[Any] = [
        (field.name, types[field.name], *(() if field.required else (field.default,)))
        for field in msgspec.structs.fields(Over)
    ]
    return msgspec.defstruct("Over", shape, frozen=True, tag_field="type", tag="over")


_NEWS = {game: _news_type(words) for game, words in VOCABULARIES.items()}

_Flat: TypeAlias = dict[type[Question[Any]], tuple[type[Any], str]]


def _flat_types(tag: str, *last: tuple[str, Any]) -> dict[str, _Flat]:
    return {
        game: {
            question: (_flat_type(question, _NEWS[game], tag, *last), kind)
            for kind, question in words.questions.items()
        }
        for game, words in VOCABULARIES.items()
    }


def _by_question(flats: Mapping[str, _Flat]) -> _Flat:
    """Merge the structs of all games, for encoding, where the types of the news do not matter."""
    return {question: flat for game in flats.values() for question, flat in game.items()}


_TIMES = (("bank_ms", int), ("decision_ms", int))
_ASKS = _flat_types("ask", *_TIMES)
_PASTS = _flat_types("past", ("answer", Any))
_FLAT_ASKS, _FLAT_PASTS = _by_question(_ASKS), _by_question(_PASTS)


def _ask_by_kind(question: type[Question[Any]], kind: str, news: Any) -> type[Any]:
    """Make the struct into which an `ask` of this question is decoded if its game is known.

    Its tag is the question's `kind`, so that all kinds of a game's asks form one union.
    """
    fields = _flat_fields(question, news, ("type", Literal["ask"]), *_TIMES)
    name = f"{question.__name__}Ask"
    return msgspec.defstruct(name, fields, frozen=True, gc=False, tag_field="kind", tag=kind)


# By game, the class of the question for each struct into which an ask is decoded.
_ASKED = {
    game: {
        _ask_by_kind(question, kind, _NEWS[game]): question
        for kind, question in words.questions.items()
    }
    for game, words in VOCABULARIES.items()
}


class Shapes(NamedTuple):
    """The wire's structs of one game: `ask` and `past` by kind of question, and `over`."""

    asks: Mapping[str, type[Any]]
    pasts: Mapping[str, type[Any]]
    over: type[Any]


def shapes(game: str) -> Shapes:
    """Return the wire's structs of one game, for the schemas; KeyError for an unknown game."""
    return Shapes(
        {kind: flat for flat, kind in _ASKS[game].values()},
        {kind: flat for flat, kind in _PASTS[game].values()},
        _over(_NEWS[game]),
    )


_Decoded: TypeAlias = Callable[[bytes | msgspec.Raw], Any]


def _one_or_more(types: Iterable[type[Any]]) -> Any:
    """Make the type of a frame: one message of these types, or an array."""
    union: Any = Union[tuple(types)]  # noqa: UP007 - of unknown length
    return list[union] | union


class _Words(NamedTuple):
    """One game's decoders in one encoding; those by kind come with the question's class.

    `frame` reads a whole frame that has only asks.
    """

    frame: _Decoded
    over: _Decoded
    asks: Mapping[str, tuple[_Decoded, type[Question[Any]]]]
    pasts: Mapping[str, tuple[_Decoded, type[Question[Any]]]]


class _Reader:
    """Decodes what the arena sends: each message straight into its type.

    This way a client reads an ask in 3 µs; decoding to maps and converting these takes 11 µs.
    """

    def __init__(self, arrays: tuple[int, ...], decoder: Callable[[Any], _Decoded]) -> None:
        self._arrays = arrays
        self._array = decoder(list[msgspec.Raw])
        self._peek = decoder(_Peek)
        self._plain = {
            "welcome": decoder(Welcome),
            "match": decoder(Match),
            "refused": decoder(Refused),
            "done": decoder(Done),
        }
        self._over_of_nobody = decoder(_over(Any))
        self._words = {
            game: _Words(
                decoder(_one_or_more(_ASKED[game])),
                decoder(_over(_NEWS[game])),
                *(
                    {kind: (decoder(flat), asked) for asked, (flat, kind) in flats[game].items()}
                    for flats in (_ASKS, _PASTS)
                ),
            )
            for game in VOCABULARIES
        }

    def parts(self, frame: bytes) -> list[bytes | msgspec.Raw]:
        first = frame.lstrip()[:1] if self._arrays == _JSON_ARRAY else frame[:1]
        if first and first[0] in self._arrays:
            parts: list[bytes | msgspec.Raw] = self._array(frame)
            return parts
        return [frame]

    def asks(
        self, frame: bytes, game: str, game_of: Callable[[str], str]
    ) -> list[ArenaMessage] | None:
        """Decode a frame that holds only asks of this game; None for any other frame."""
        messages: list[ArenaMessage] = []
        try:
            classes = _ASKED[game]
            flats = self._words[game].frame(frame)
            for flat in flats if type(flats) is list else (flats,):
                match, ask, _, *asked, news, bank_ms, decision_ms = astuple(flat)
                if game_of(match) != game:
                    return None
                question = classes[type(flat)](*asked)
                messages.append(Ask(match, ask, question, news, bank_ms, decision_ms))
        except (KeyError, *_UNREADABLE):
            return None
        return messages

    def message(self, part: bytes | msgspec.Raw, game_of: Callable[[str], str]) -> ArenaMessage:
        """Decode one message; raises as the decoders, and KeyError for unknown types and ids."""
        peek: _Peek = self._peek(part)
        about = peek.match or ""
        if peek.type == "ask":
            decode, cls = self._words[game_of(about)].asks[peek.kind]
            match, ask, _, *asked, news, bank_ms, decision_ms = astuple(decode(part))
            return Ask(match, ask, cls(*asked), news, bank_ms, decision_ms)
        if peek.type == "over":
            return self._over(part, about, game_of)
        if peek.type == "past":
            decode, cls = self._words[game_of(about)].pasts[peek.kind]
            match, ask, _, *asked, news, answer = astuple(decode(part))
            return Past(match, ask, cls(*asked), news, answer)
        message: ArenaMessage = self._plain[peek.type](part)
        return message

    def _over(self, part: bytes | msgspec.Raw, match: str, game_of: Callable[[str], str]) -> Over:
        try:
            over = self._words[game_of(match)].over(part)
        except KeyError:  # the invitation was lost with a connection, so nobody needs the news
            over = msgspec.structs.replace(self._over_of_nobody(part), news=())
        return Over(*astuple(over))


_JSON_ARRAY = (ord("["),)
_MSGPACK_ARRAYS = (*range(0x90, 0xA0), 0xDC, 0xDD)

_READERS = {
    Encoding.JSON: _Reader(_JSON_ARRAY, lambda kind: msgspec.json.Decoder(kind).decode),
    Encoding.MSGPACK: _Reader(_MSGPACK_ARRAYS, lambda kind: msgspec.msgpack.Decoder(kind).decode),
}


def _malformed(error: Exception, types: str = "") -> Malformed:
    """Make an error with the fault in one line; it names `types` if the type is another."""
    if isinstance(error, RecursionError):
        return Malformed("expected a message, got one that is nested too deeply")
    text = one_line(str(error))
    if types and text.startswith("Invalid value") and text.endswith(".type`"):
        text = f"{text}; expected {types}"
    is_word = text[1:2].islower() and not text.startswith("MessagePack")
    return Malformed(text[:1].lower() + text[1:] if is_word else text)
