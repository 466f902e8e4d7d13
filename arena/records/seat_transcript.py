"""What one seat is told in a match, and the conversation that this is on the wire.

The rules are played again from the cards and the answers of all seats, and what a seat hears and is asked is set down: `told`. That is what a
transcript is compared with (`arena/records/check_transcript.py`), and what one is made of where nobody wrote it down (`conversation`). Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from arena.engine.match import MatchState, MatchStep, Record, questions_of
from arena.engine.rules import NOBODY
from arena.engine.shuffle import commitment
from arena.games.replay import reopened
from arena.records.transcript import VERSION, Event, Heading, Line, Side, Transcript, canonical
from protocol import messages
from protocol.codec import Encoding, encode
from protocol.errors import IllegalAnswer, UsageError
from protocol.messages import (
    Answer,
    ArenaMessage,
    Ask,
    BotMessage,
    Ending,
    Hello,
    Limits,
    Over,
    Ready,
    Reveal,
    Termination,
    Verdict,
    Welcome,
)
from protocol.session import ask_id
from protocol.vocabulary import News, Question

__all__ = [
    "SeatTranscript",
    "TranscribedQuestion",
    "conversation",
    "ended",
    "heading_of",
    "invitation",
    "told",
]

_NO_SESSION = "0" * 32  # of a conversation that is made up: a session is a secret
_NO_NONCE = "-"  # a bot has to say something, though a match in process has no nonces


class TranscribedQuestion(msgspec.Struct, frozen=True):
    """One question of a seat.

    Attributes:
        question: what was asked.
        news: what the seat has learnt since the question before.
        answer: the number of the answer among those of the match, from 0; None if none that was legal came.
    """

    question: Question[Any]
    news: tuple[News, ...]
    answer: int | None


class SeatTranscript(msgspec.Struct, frozen=True):
    """All that one seat hears of a match.

    Attributes:
        asked: its questions, in order.
        news: what was left to be told at the end.
        decks: what was dealt, as in a heading.
        scores: by seat.
    """

    asked: tuple[TranscribedQuestion, ...]
    news: tuple[News, ...]
    decks: tuple[Any, ...]
    scores: tuple[int, ...]


def told(record: Record, seat: int) -> SeatTranscript:
    """Play a record again, and note what a seat hears.

    Raises:
        IllegalAnswer: an answer is not legal where it stands, there are too many or too few, or they cannot have ended so.
        ValueError: it is no record of a match: unknown game, bad settings, no seed or decks, decks that do not suffice.
    """
    match = reopened(record, tells_deals=True)
    dealt: list[Any] = []
    asked: list[TranscribedQuestion] = []
    rest: tuple[News, ...] = ()
    for number, question, news in questions_of(seat, _noting(match.steps(record.answers), dealt)):
        if question is None:
            rest = news
        else:
            answer = number if number < len(record.answers) else None
            asked.append(TranscribedQuestion(question, news, answer))
    _end(match, record)
    decks = dealt if record.decks is None else record.decks
    return SeatTranscript(tuple(asked), rest, tuple(decks), match.scores)


def _noting(steps: Iterator[MatchStep], dealt: list[Any]) -> Iterator[MatchStep]:
    """The same steps; what is dealt in them is added to `dealt`, as a heading has it."""
    for step in steps:
        dealt += (msgspec.to_builtins(tell.news) for tell in step.news if tell.seat == NOBODY)
        yield step


def _end(match: MatchState, record: Record) -> None:
    """End a match after its last answer as the record says that it ended.

    Raises:
        IllegalAnswer: it cannot have ended so.
    """
    ended, asked = record.termination, match.pending
    if match.termination is not None:
        if ended != match.termination:
            text = f"it says {_in_words(ended)}, but the answers play it to its end"
            raise IllegalAnswer(text)
    elif ended.kind is Ending.COMPLETED:
        count = len(record.answers)
        raise IllegalAnswer(f"it says completed, but has only {count} answers")
    elif ended.kind is Ending.ILLEGAL and (asked is None or asked.seat != ended.seat):
        nobody = "nobody" if asked is None else f"seat {asked.seat + 1}"
        raise IllegalAnswer(f"it says {_in_words(ended)}, but {nobody} was asked")
    match.end(ended.kind, ended.seat, ended.text)


def _in_words(ended: Termination) -> str:
    """The word and the seat."""
    who = "" if ended.seat is None else f" of seat {ended.seat + 1}"
    return f"{ended.kind}{who}"


def heading_of(record: Record, players: Sequence[str], seat: int, about: str) -> Heading:
    """The heading of a transcript of a match.

    Raises:
        IllegalAnswer: the record cannot be played again.
        ValueError: it is no record of a match.
    """
    return Heading(
        transcript=VERSION,
        about=about,
        game=record.game,
        settings=record.settings,
        players=tuple(players),
        seat=seat,
        seed=record.seed,
        nonces=record.nonces,
        decks=told(record, seat).decks,
        answers=record.answers,
        scores=record.scores,
        termination=record.termination,
    )


def invitation(
    heading: Heading, match: str, limits: Limits, hidden: str | None = None
) -> messages.Match:
    """What invites the seat of a heading; `hidden` is the commitment, if it is not to be reckoned from the seed."""
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


def ended(heading: Heading, match: str, news: tuple[News, ...], verdict: Verdict | None) -> Over:
    """What tells the seat of a heading that the match is over; the words of an offence are for the offender alone."""
    why = heading.termination
    if why.is_offence and why.seat != heading.seat:
        why = Termination(why.kind, why.seat)
    seed = heading.seed
    reveal = None if seed is None else Reveal(seed, heading.nonces)
    return Over(match, news, heading.scores, why, reveal, verdict)


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
    """The transcript of a seat in a match of which there is a record alone.

    What no record has is made up: the session is all zeros, the bank is always full, nothing was lost on the way, and in the place of an
    answer that was not legal stands an event.

    Args:
        record: the match.
        players: the names, by seat.
        seat: whose conversation, from 0.
        match: the id of the chair.
        limits: those of the match.
        verdict: the evidence, if the match ended by an offence.
        about: a sentence for the heading.

    Raises:
        UsageError: there is no such seat.
        IllegalAnswer: the record cannot be played again.
        ValueError: it is no record of a match.
    """
    if not 0 <= seat < len(record.scores):
        raise UsageError(f"expected a seat of {len(record.scores)}, got {seat + 1}")
    heading = heading_of(record, players, seat, about)
    heard = told(record, seat)
    mine = verdict if record.termination.seat == seat else None
    lines = [
        *map(_line, _opening(record, heading, match, limits)),
        *map(_line, _questions(record, heard, match, limits)),
    ]
    why = record.termination
    if (why.kind, why.seat) == (Ending.ILLEGAL, seat):
        lines.append(Line(Side.EVENT, msgspec.json.encode(Event.UNKNOWN)))
    lines.append(_line(ended(heading, match, heard.news, mine)))
    return Transcript(heading, tuple(lines))


_Messages: TypeAlias = Iterator[BotMessage | ArenaMessage]


def _opening(record: Record, heading: Heading, match: str, limits: Limits) -> _Messages:
    """All that is said before the first question."""
    name = heading.players[heading.seat]
    yield Hello(messages.VERSION, name, (record.game,))
    yield Welcome(messages.VERSION, name, _NO_SESSION, limits)
    yield invitation(heading, match, limits, record.commitment)
    nonce = record.nonces[heading.seat] if record.nonces else _NO_NONCE
    if nonce:  # else it was never ready
        yield Ready(match, nonce)


def _questions(record: Record, heard: SeatTranscript, match: str, limits: Limits) -> _Messages:
    """The questions, and the answers that the record has."""
    notes = dict(record.notes)
    for number, asked in enumerate(heard.asked, start=1):
        ask = ask_id(match, number)
        times = limits.bank_ms, limits.decision_ms
        yield Ask(match, ask, asked.question, asked.news, *times)
        if asked.answer is not None:
            value = record.answers[asked.answer]
            yield Answer(match, ask, value, notes.get(asked.answer))


def _line(message: BotMessage | ArenaMessage) -> Line:
    """A message as a line; each end has its way to write."""
    if isinstance(message, Hello | Ready | Answer):
        return Line(Side.BOT, canonical(message))
    return Line(Side.ARENA, encode(message, Encoding.JSON))
