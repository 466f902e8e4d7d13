"""Bytes to messages and back: JSON in text frames, msgpack in binary ones, the same structures in both.

A frame holds one message or an array of messages. Whatever bytes come in, they either parse or raise `ProtocolError`, nothing else.
Parsing is exact: `4.0`, `true` and `"4"` are not integers, unknown fields and types are refused by name. A map that says a key
twice means its last value, as in every JSON library that bots are written with.

An `ask` is one flat map: the envelope's fields followed by the question's own. `_splice` builds it from the two encoded maps,
because that is several times as fast as merging dicts, and an ask is most of what the arena ever sends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from protocol.errors import Malformed, Oversize, one_line
from protocol.games import VOCABULARIES
from protocol.messages import (
    ArenaMessage,
    Ask,
    BotMessage,
    Match,
    Over,
    Refused,
    Welcome,
)
from protocol.vocabulary import News, Question, Vocabulary

__all__ = [
    "Encoding",
    "decode_from_arena",
    "decode_from_bot",
    "encode",
    "join",
]


class Encoding(Enum):
    """How a connection's frames are written; the arena answers in that of the bot's first frame."""

    JSON = "json"
    MSGPACK = "msgpack"


_FromBot: TypeAlias = BotMessage | list[BotMessage]

_decode_bot: dict[Encoding, Callable[[bytes], _FromBot]] = {
    Encoding.JSON: msgspec.json.Decoder(_FromBot).decode,
    Encoding.MSGPACK: msgspec.msgpack.Decoder(_FromBot).decode,
}
_decode_any: dict[Encoding, Callable[[bytes], Any]] = {
    Encoding.JSON: msgspec.json.Decoder().decode,
    Encoding.MSGPACK: msgspec.msgpack.Decoder().decode,
}
_encode: dict[Encoding, Callable[[object], bytes]] = {
    Encoding.JSON: msgspec.json.Encoder().encode,
    Encoding.MSGPACK: msgspec.msgpack.Encoder().encode,
}

_UNREADABLE = (
    msgspec.MsgspecError,
    ValueError,
    TypeError,
    OverflowError,
    RecursionError,
)
"""All that the decoders raise: beside their own errors, integers of thousands of digits (ValueError), map keys that
cannot be keys (TypeError), dates out of range (OverflowError) and nesting (RecursionError)."""


class _AskHead(Struct, frozen=True, gc=False, tag_field="type", tag="ask"):
    """An `ask` without its question's fields."""

    match: str
    ask: str
    news: tuple[News, ...]
    bank_ms: int
    decision_ms: int


def decode_from_bot(
    frame: bytes, encoding: Encoding, limit: int | None = None
) -> list[BotMessage]:
    """The messages in a frame that a bot sent, in order.

    Raises:
        Oversize: the frame is longer than `limit` bytes.
        Malformed: it is not one message or an array of messages that a bot may send.
    """
    if limit is not None and len(frame) > limit:
        raise Oversize(f"expected frames of at most {limit} bytes, got {len(frame)}")
    try:
        messages = _decode_bot[encoding](frame)
    except _UNREADABLE as error:
        raise _malformed(error) from None
    return messages if isinstance(messages, list) else [messages]


def encode(message: BotMessage | ArenaMessage, encoding: Encoding) -> bytes:
    """One message as a frame, or as a part for `join`."""
    encoder = _encode[encoding]
    if not isinstance(message, Ask):
        return encoder(message)
    head = _AskHead(
        message.match, message.ask, message.news, message.bank_ms, message.decision_ms
    )
    return _splice(encoder(head), encoder(message.question), encoding)


def join(parts: list[bytes], encoding: Encoding) -> bytes:
    """Several encoded messages as one frame that holds an array."""
    if encoding is Encoding.JSON:
        return b"[%b]" % b",".join(parts)
    if len(parts) < 16:
        header = bytes([0x90 | len(parts)])
    else:
        header = b"\xdd" + len(parts).to_bytes(4, "big")
    return header + b"".join(parts)


def decode_from_arena(
    frame: bytes, encoding: Encoding, game_of: Callable[[str], str]
) -> list[ArenaMessage]:
    """The messages in a frame that the arena sent; fields that are not known are ignored.

    Args:
        frame: its payload.
        encoding: JSON for a text frame, msgpack for a binary one.
        game_of: the game that is played in a match, by the match's id; raises KeyError for an id it does not know.

    Raises:
        Malformed: it cannot be read, or is about a match that is not known.
    """
    games: dict[str, str] = {}

    def game(match: str) -> str:
        return games[match] if match in games else game_of(match)

    try:
        raw = _decode_any[encoding](frame)
        messages = []
        for item in raw if isinstance(raw, list) else (raw,):
            message = _from_arena(item, game)
            if isinstance(message, Match):
                games[message.match] = (
                    message.game
                )  # its first ask may be in this frame
            messages.append(message)
    except KeyError as error:
        raise Malformed(
            one_line(f"no match, game, kind or field {error} is known here")
        ) from None
    except _UNREADABLE as error:
        raise _malformed(error) from None
    return messages


_PLAIN: Mapping[str, type[Welcome] | type[Match] | type[Refused]] = {
    "welcome": Welcome,
    "match": Match,
    "refused": Refused,
}


def _from_arena(raw: Any, game_of: Callable[[str], str]) -> ArenaMessage:
    """One message out of decoded maps; raises what the decoders raise."""
    if not isinstance(raw, dict):
        raise TypeError(f"expected a message with a `type`, got {type(raw).__name__}")
    kind = raw["type"]
    if kind == "ask":
        return _ask_from(raw, game_of(raw["match"]))
    if kind == "over":
        return _over_from(raw, game_of)
    return msgspec.convert(raw, _PLAIN[kind])


def _ask_from(raw: dict[str, Any], game: str) -> Ask:
    question: Question[Any] = msgspec.convert(
        raw, VOCABULARIES[game].questions[raw["kind"]]
    )
    given = raw["news"]
    news = _news_from(given, game) if given else ()
    head = msgspec.convert({**raw, "news": ()} if given else raw, _AskHead)
    return Ask(head.match, head.ask, question, news, head.bank_ms, head.decision_ms)


def _over_from(raw: dict[str, Any], game_of: Callable[[str], str]) -> Over:
    over = msgspec.convert({**raw, "news": ()}, Over)
    try:
        game = game_of(over.match)
    except KeyError:  # its invitation was lost with a connection: its news are nobody's
        return over
    return msgspec.structs.replace(over, news=_news_from(raw["news"], game))


def _news_type(vocabulary: Vocabulary) -> Any:
    kinds: Iterable[type[News]] = vocabulary.news.values()
    union: Any = None
    for kind in kinds:
        union = kind if union is None else union | kind
    return tuple[union, ...]


_NEWS_TYPES = {name: _news_type(words) for name, words in VOCABULARIES.items()}


def _news_from(raw: Any, game: str) -> tuple[News, ...]:
    news: tuple[News, ...] = msgspec.convert(raw, _NEWS_TYPES[game])
    return news


def _splice(head: bytes, body: bytes, encoding: Encoding) -> bytes:
    """Two encoded maps as one."""
    if encoding is Encoding.JSON:
        return b"%b,%b" % (head[:-1], body[1:])
    size = (head[0] & 0x0F) + (body[0] & 0x0F)
    assert head[0] & body[0] & 0xF0 == 0x80, "messages are maps of at most 15 fields"
    assert size <= 15, "an ask has at most 15 fields"
    return bytes([0x80 | size]) + head[1:] + body[1:]


def _malformed(error: Exception) -> Malformed:
    if isinstance(error, RecursionError):
        return Malformed("expected a message, got one that is nested too deeply")
    text = one_line(str(error))
    is_word = text[1:2].islower() and not text.startswith("MessagePack")
    return Malformed(text[:1].lower() + text[1:] if is_word else text)
