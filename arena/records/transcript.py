"""Transcripts: the whole conversation of one seat on the wire, and what its cards came from.

The first line is the heading: the match as in its record, with the decks that were dealt. Each
further line is a map with one key: `arena` or `bot` with the message that this side sent, or
`event`. A transcript has all that a bot is told and has to say, so it can check an implementation
in any language without an arena. `conversation` makes a transcript from the record of a match.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import cache
from typing import Any

import msgspec

from arena.games.analysis import SeatMatch
from arena.games.match import MatchState, Record
from arena.games.replay import CardsDealt, events_of, played_through
from arena.games.shuffle import commitment
from arena.records.seat_document import seat_match
from arena.records.visibility import ending_for
from protocol import messages
from protocol.codec import Encoding, encode
from protocol.errors import IllegalAnswer, UsageError
from protocol.messages import BotMessage, Ending, Limits, Reveal, Termination, Verdict
from protocol.session import ask_id
from protocol.vocabulary import News

__all__ = [
    "VERSION",
    "Event",
    "Heading",
    "Line",
    "Side",
    "Transcript",
    "canonical",
    "conversation",
    "ended",
    "heading_of",
    "invitation",
]

VERSION = 1
_NO_SESSION = "0" * 32  # replaces the session, which is a secret
_NO_NONCE = "-"  # `ready` needs a nonce, and a match in process has none


class Side(StrEnum):
    """The sender of a line; an event has none."""

    ARENA = "arena"
    BOT = "bot"
    EVENT = "event"


class Event(StrEnum):
    """Something that happens to a bot between two messages."""

    LOST = "connection lost"
    """The bot keeps its state, and comes back with `resume`."""
    KILLED = "program killed"
    """The bot is started again, and knows only its last session."""
    UNKNOWN = "answered what was not legal"
    """Stands for an illegal answer, which no record has; a recorded transcript has the answer."""


class Heading(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a transcript.

    `decks` has everything that was dealt, in order, as the game's `deals` makes it; in most games
    these are lists of cards.
    """

    transcript: int  # the version of the format
    about: str  # what happens, in a sentence
    game: str
    settings: dict[str, Any]  # defaults included
    players: tuple[str, ...]  # the bots' names, by seat
    seat: int  # whose conversation this is, from 0
    seed: str | None  # in hex; None if decks were given
    nonces: tuple[str, ...]  # by seat; empty in process
    decks: tuple[Any, ...]
    answers: tuple[Any, ...]  # the legal ones of all seats, in order; the rules say whose each is
    scores: tuple[int, ...]  # by seat
    termination: Termination
    # Of a game from outside, as in the record of the match.
    package: str | msgspec.UnsetType = msgspec.UNSET


class Line(msgspec.Struct, frozen=True):
    """A message or an event, as JSON."""

    side: Side
    text: bytes


class Transcript(msgspec.Struct, frozen=True):
    """A heading and the lines that follow it."""

    heading: Heading
    lines: tuple[Line, ...]

    def to_bytes(self) -> bytes:
        written = [msgspec.json.encode(self.heading)]
        written += [b'{"%b":%b}' % (line.side.encode(), line.text) for line in self.lines]
        return b"\n".join(written) + b"\n"


def canonical(message: BotMessage) -> bytes:
    """Encode a bot's message in JSON, without optional fields that have their defaults."""
    kind = type(message)
    fields: dict[str, Any] = {"type": kind.__struct_config__.tag}
    for field in _fields(kind):
        value = getattr(message, field.name)
        if field.required or value != field.default:
            fields[field.encode_name] = value
    return msgspec.json.encode(fields)


@cache  # one look-up takes as long as encoding twenty messages
def _fields(kind: type[BotMessage]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(kind)


def _check_end(match: MatchState, record: Record) -> None:
    """Raise `IllegalAnswer` if a match, after its last answer, cannot have ended as recorded."""
    ended, asked = record.termination, match.pending
    seat = "" if ended.seat is None else f" of seat {ended.seat + 1}"
    ending = f"{ended.kind}{seat}"
    if match.termination is not None:
        if ended != match.termination:
            raise IllegalAnswer(f"it says {ending}, but the answers play it to its end")
    elif ended.kind is Ending.COMPLETED:
        raise IllegalAnswer(f"it says completed, but has only {len(record.answers)} answers")
    elif ended.kind is Ending.ILLEGAL and (asked is None or asked.seat != ended.seat):
        other = "nobody" if asked is None else f"seat {asked.seat + 1}"
        raise IllegalAnswer(f"it says {ending}, but {other} was asked")


def heading_of(record: Record, players: Sequence[str], seat: int, about: str) -> Heading:
    """The heading of a transcript of a match.

    Raises IllegalAnswer if an answer is illegal, there are too many or too few, or the match cannot
    have ended as the record says; ValueError for an unknown game, bad settings, no seed or decks,
    or too few decks.
    """
    _check_end(played_through(record), record)
    decks = record.decks
    if decks is None:
        dealt = (event.deal for event in events_of(record) if type(event) is CardsDealt)
        decks = tuple(map(msgspec.to_builtins, dealt))
    return Heading(
        transcript=VERSION,
        about=about,
        game=record.game,
        settings=record.settings,
        players=tuple(players),
        seat=seat,
        seed=record.seed,
        nonces=record.nonces,
        decks=decks,
        answers=record.answers,
        scores=record.scores,
        termination=record.termination,
        package=record.package,
    )


def invitation(
    heading: Heading, match: str, limits: Limits, hidden: str | None = None
) -> messages.Match:
    """The invitation of a heading's seat; `hidden` is the commitment, by default to the seed."""
    if hidden is None:
        seed = heading.seed
        hidden = "" if seed is None else commitment(bytes.fromhex(seed))
    return messages.Match(
        match=match,
        game=heading.game,
        seat=heading.seat,
        seats=heading.players,
        settings=heading.settings,
        limits=limits,
        commitment=hidden,
    )


def ended(
    heading: Heading, match: str, news: tuple[News, ...], verdict: Verdict | None
) -> messages.Over:
    """The `over` of a heading's seat; only the offender gets the text of an offence."""
    why = ending_for(heading.termination, [heading.seat])
    seed = heading.seed
    reveal = None if seed is None else Reveal(seed, heading.nonces)
    return messages.Over(match, news, heading.scores, why, reveal, verdict)


def conversation(
    record: Record,
    players: Sequence[str],
    seat: int,
    match: str,
    *,
    limits: Limits,
    verdict: Verdict | None = None,
    about: str = "",
) -> Transcript:
    """Make the transcript of a seat from the record of its match.

    What a record lacks is made up: the session is all zeros, the bank is always full, the
    connection was never lost, and an event replaces an illegal answer. `seat` counts from 0,
    `players` are the bots' names by seat, `match` is the id that the seat sees, and `about` is a
    sentence for the heading. Raises UsageError if there is no such seat, and what `heading_of`
    raises.
    """
    if not 0 <= seat < len(record.scores):
        raise UsageError(f"expected a seat of {len(record.scores)}, got {seat + 1}")
    heading = heading_of(record, players, seat, about)
    heard = seat_match(record, seat)
    why = record.termination
    lines = [*map(_line, _said(record, heading, heard, match, limits))]
    if (why.kind, why.seat) == (Ending.ILLEGAL, seat):
        lines.append(Line(Side.EVENT, msgspec.json.encode(Event.UNKNOWN)))
    mine = verdict if why.seat == seat else None
    news = () if heard.waiting else heard.news
    lines.append(_line(ended(heading, match, news, mine)))
    return Transcript(heading, tuple(lines))


def _said(
    record: Record, heading: Heading, heard: SeatMatch, match: str, limits: Limits
) -> Iterator[messages.BotMessage | messages.ArenaMessage]:
    """Yield all messages but the last, the `over`."""
    name = heading.players[heading.seat]
    yield messages.Hello(messages.VERSION, name, (record.game,))
    yield messages.Welcome(messages.VERSION, name, _NO_SESSION, limits)
    yield invitation(heading, match, limits, record.commitment)
    nonce = record.nonces[heading.seat] if record.nonces else _NO_NONCE
    if nonce:  # otherwise the bot was never ready
        yield messages.Ready(match, nonce)
    notes, times = dict(record.notes), (limits.bank_ms, limits.decision_ms)
    for each in heard.decisions:
        ask, value = ask_id(match, each.number), record.answers[each.index]
        yield messages.Ask(match, ask, each.question, each.news, *times)
        yield messages.Answer(match, ask, value, notes.get(each.index))
    if heard.waiting is not None:
        ask = ask_id(match, len(heard.decisions) + 1)
        yield messages.Ask(match, ask, heard.waiting, heard.news, *times)


def _line(message: messages.BotMessage | messages.ArenaMessage) -> Line:
    if isinstance(message, messages.Hello | messages.Ready | messages.Answer):
        return Line(Side.BOT, canonical(message))
    return Line(Side.ARENA, encode(message, Encoding.JSON))
