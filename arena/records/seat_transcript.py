"""What one seat is told in a match, and the conversation that this makes on the wire.

`told` replays the rules from the cards and the answers of all seats, and collects what one seat
hears. A transcript is checked against that (`arena/records/check_transcript.py`), and
`conversation` makes one of it where none was recorded. Pure.
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
from protocol.messages import Ending, Limits, Reveal, Termination, Verdict
from protocol.session import ask_id
from protocol.vocabulary import News, Question

__all__ = ["SeatTranscript", "conversation", "ended", "heading_of", "invitation", "told"]

_NO_SESSION = "0" * 32  # in place of the session, which is a secret
_NO_NONCE = "-"  # `ready` needs one, and a match in process has none


class TranscribedQuestion(msgspec.Struct, frozen=True):
    """One question of a seat."""

    question: Question[Any]
    news: tuple[News, ...]  # what the seat has learnt since its last question
    answer: int | None  # the index of the answer in the record; None if no legal one came


class SeatTranscript(msgspec.Struct, frozen=True):
    """All that one seat hears of a match."""

    asked: tuple[TranscribedQuestion, ...]
    news: tuple[News, ...]  # what it is told at the end
    decks: tuple[Any, ...]  # what was dealt, as in a heading
    scores: tuple[int, ...]  # by seat


def told(record: Record, seat: int) -> SeatTranscript:
    """Replay a record, and collect what a seat hears.

    Raises IllegalAnswer if an answer is illegal, there are too many or too few, or the match cannot
    have ended as the record says; ValueError for an unknown game, bad settings, no seed or decks,
    or too few decks.
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
    """The same steps, whose deals are added to `dealt`, as a heading has them."""
    for step in steps:
        dealt += (msgspec.to_builtins(tell.news) for tell in step.news if tell.seat == NOBODY)
        yield step


def _end(match: MatchState, record: Record) -> None:
    """End a match as the record says; raises IllegalAnswer if it cannot have ended so."""
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
    match.end(ended.kind, ended.seat, ended.text)


def heading_of(record: Record, players: Sequence[str], seat: int, about: str) -> Heading:
    """The heading of a transcript of a match; raises what `told` raises."""
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
        package=record.package,
    )


def invitation(
    heading: Heading, match: str, limits: Limits, hidden: str | None = None
) -> messages.Match:
    """The invitation of the seat of a heading; `hidden` is the commitment, None for the seed's."""
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
    """The `over` for the seat of a heading; only the offender gets the text of an offence."""
    why = heading.termination
    if why.is_offence and why.seat != heading.seat:
        why = Termination(why.kind, why.seat)
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

    What no record has is made up: the session is all zeros, the bank is always full, the connection
    was never lost, and an event stands in the place of an illegal answer. `seat` counts from 0,
    `players` are the bots' names by seat, `match` is the id that the seat sees, `about` a sentence
    for the heading. Raises UsageError if there is no such seat, else what `told` raises.
    """
    if not 0 <= seat < len(record.scores):
        raise UsageError(f"expected a seat of {len(record.scores)}, got {seat + 1}")
    heading = heading_of(record, players, seat, about)
    heard = told(record, seat)
    why = record.termination
    lines = [
        *map(_line, _opening(record, heading, match, limits)),
        *map(_line, _questions(record, heard, match, limits)),
    ]
    if (why.kind, why.seat) == (Ending.ILLEGAL, seat):
        lines.append(Line(Side.EVENT, msgspec.json.encode(Event.UNKNOWN)))
    mine = verdict if why.seat == seat else None
    lines.append(_line(ended(heading, match, heard.news, mine)))
    return Transcript(heading, tuple(lines))


_Messages: TypeAlias = Iterator[messages.BotMessage | messages.ArenaMessage]


def _opening(record: Record, heading: Heading, match: str, limits: Limits) -> _Messages:
    name = heading.players[heading.seat]
    yield messages.Hello(messages.VERSION, name, (record.game,))
    yield messages.Welcome(messages.VERSION, name, _NO_SESSION, limits)
    yield invitation(heading, match, limits, record.commitment)
    nonce = record.nonces[heading.seat] if record.nonces else _NO_NONCE
    if nonce:  # else the bot was never ready
        yield messages.Ready(match, nonce)


def _questions(record: Record, heard: SeatTranscript, match: str, limits: Limits) -> _Messages:
    notes = dict(record.notes)
    for number, asked in enumerate(heard.asked, start=1):
        ask = ask_id(match, number)
        yield messages.Ask(
            match, ask, asked.question, asked.news, limits.bank_ms, limits.decision_ms
        )
        if asked.answer is not None:
            yield messages.Answer(match, ask, record.answers[asked.answer], notes.get(asked.answer))


def _line(message: messages.BotMessage | messages.ArenaMessage) -> Line:
    if isinstance(message, messages.Hello | messages.Ready | messages.Answer):
        return Line(Side.BOT, canonical(message))
    return Line(Side.ARENA, encode(message, Encoding.JSON))
