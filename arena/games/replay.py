"""Plays a record again: the same cards and answers give the same result, and the same events.

`Playback` is the only loop over a finished match. It is fed the answers one at a time and returns
what happens, as one seat may know it or with all cards (J8). Everything that is read out of a
record hears these events: texts, documents, decisions, luck, mistakes, the rounds on the page. A
live match is played back in the same way for its spectators.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any, TypeAlias

import msgspec

from arena.games.catalogue import game_named
from arena.games.match import MatchResult, MatchState, Record
from arena.games.rules import EVERYONE, NOBODY, AskSeat, TellSeat
from protocol.errors import ArenaError, IllegalAnswer, NoAnalysis, UsageError, in_words, one_line
from protocol.messages import Ending, Termination
from protocol.vocabulary import Question

__all__ = [
    "CardsDealt",
    "Event",
    "MatchOver",
    "Playback",
    "SeatAnswered",
    "ended_as",
    "events_of",
    "is_dealt",
    "played_through",
    "playing_again",
    "reopened",
    "replay",
]

_SEED_LENGTH = 160  # shown characters of a bad seed; a real one has 64


class CardsDealt(msgspec.Struct, frozen=True, gc=False):
    """A deck was shuffled or cut; holds the deck or the cut as in a record with stacked decks."""

    deal: Any


class SeatAnswered(msgspec.Struct, frozen=True, gc=False):
    """A seat answered.

    Attributes:
        index: the index of the answer in the match, from 0.
        value: as the rules took it.
    """

    seat: int
    index: int
    question: Question[Any]
    value: Any
    took_ms: int | None = None
    note: str | None = None


class MatchOver(msgspec.Struct, frozen=True, gc=False):
    """The match is over."""

    scores: tuple[int, ...]
    points: tuple[int, ...]
    termination: Termination


Event: TypeAlias = CardsDealt | TellSeat | AskSeat | SeatAnswered | MatchOver
"""An event of a match. A listener that hears thousands should compare the `type` of an event:
`match` and `isinstance` are slower, as all events are structs.
"""


class Playback:
    """Replays a match from answers that it is fed.

    With `seat`, the events are what this seat knows: what it is told, is asked and answers. Without
    it they are all events, deals included if the match `tells_deals`.
    """

    def __init__(self, match: MatchState, seat: int | None = None) -> None:
        self.match, self.seat = match, seat
        self._is_over = False

    @classmethod
    def of(cls, record: Record, seat: int | None = None) -> Playback:
        """Make the playback of a record, at its beginning; raises what `reopened` raises."""
        return cls(reopened(record, tells_deals=seat is None), seat)

    def feed_all(self, record: Record) -> Iterator[list[Event]]:
        """Feed a record's answers and its end; yield the events after each. Raises as `feed`."""
        notes, times_ms = dict(record.notes), iter(record.times_ms)
        for index, value in enumerate(record.answers):
            yield self.feed(value, next(times_ms, None), notes.get(index))
        yield self.end(record.termination)

    def feed(
        self, value: object, took_ms: int | None = None, note: str | None = None
    ) -> list[Event]:
        """Feed the next answer; returns it and all events after it, up to the next question.

        Raises `IllegalAnswer` if it is not legal or comes after the end; nothing has changed then.
        """
        match, asked = self.match, self.match.pending
        index = len(match.answers)
        match.answer(value)
        assert asked is not None, "it was answered"
        if self.seat is not None and self.seat != asked.seat:
            return self.take_events()
        legal = match.answers[index]
        answered = SeatAnswered(asked.seat, index, asked.question, legal, took_ms, note)
        return [answered, *self.take_events()]

    def end(self, termination: Termination) -> list[Event]:
        """End the match, unless the rules have ended it already; returns the last events."""
        if self._is_over:
            return []
        self.match.end(termination.kind, termination.seat, termination.text)
        return self.take_events()

    def take_events(self) -> list[Event]:
        """The events since the last answer: the news, and the next question or the end."""
        match, own = self.match, self.seat
        happened: list[Event] = []
        for told in match.take_news():
            if told.seat == NOBODY:
                happened.append(CardsDealt(told.news))
            elif own is None or told.seat == own or told.seat == EVERYONE:
                happened.append(told)
        asked = match.pending
        if asked is not None:
            if own is None or asked.seat == own:
                happened.append(asked)
        elif match.termination is not None:
            self._is_over = True
            happened.append(MatchOver(match.scores, match.points, match.termination))
        return happened


def events_of(record: Record, seat: int | None = None) -> Iterator[Event]:
    """All events of a record in order, or those that one seat knows (J8).

    Raises what `reopened` and `Playback.feed` raise, and what a game raises that runs out of cards.
    """
    playback = Playback.of(record, seat)
    return chain(playback.take_events(), chain.from_iterable(playback.feed_all(record)))


def is_dealt(record: Record) -> bool:
    """Whether cards were dealt: not if a seat never came, or was never ready."""
    is_ready = bool(record.nonces) and all(record.nonces)
    is_done = record.termination.kind is Ending.COMPLETED
    return is_ready or is_done or bool(record.answers)


def reopened(record: Record, *, tells_deals: bool = False) -> MatchState:
    """The match of a record at its beginning; it is dealt only if the recorded match was.

    Raises `UsageError` for an unknown game, bad settings, no seed and no decks, or too few decks,
    and `NotInstalled` if the package of the game is missing.
    """
    if (record.seed is None) == (record.decks is None):
        raise UsageError("expected a record with a seed or decks")
    game = game_named(record.game, record.package)
    try:
        seed = None if record.seed is None else bytes.fromhex(record.seed)
    except ValueError:
        got = one_line(repr(record.seed), _SEED_LENGTH)
        raise UsageError(f"expected a seed in hex, got {got}") from None
    return MatchState(
        game,
        game.vocabulary.read_settings(record.settings),
        seed=seed,
        nonces=record.nonces,
        decks=record.decks,
        start=is_dealt(record),
        enforced=record.enforced,
        commitment=record.commitment,
        tells_deals=tells_deals,
        versions=record.versions or (),
    )


def replay(record: Record) -> MatchResult:
    """Replay a record from its cards and answers alone; raises also what `reopened` raises.

    An offence is copied from the record, as it lies outside the rules. `IllegalAnswer` is raised if
    an answer in the record is not legal where it stands, or if answers are missing.
    """
    return ended_as(record, played_through(record))


def played_through(record: Record) -> MatchState:
    """The match of a record after its last answer; raises what `replay` raises for answers."""
    match = reopened(record)
    if record.decks is not None and not is_dealt(record):
        # Stacked decks are dealt at once, even if a bot crashes before its first question.
        match.start()
    for value in record.answers:
        match.answer(value)
        match.news.clear()
    return match


def ended_as(record: Record, match: MatchState) -> MatchResult:
    """The result of a match from `played_through`, ended as its record says."""
    answers, ended = record.answers, record.termination
    match.times_ms.extend(record.times_ms)
    notes = dict(record.notes)
    match.notes = [(n, notes[n]) for n in sorted(notes) if 0 <= n < len(answers)]
    if match.termination is None:
        if ended.kind is Ending.COMPLETED:
            raise IllegalAnswer(f"the record says completed, but has only {len(answers)} answers")
        also_out, events = record.also_out or (), record.events or ()
        match.end(ended.kind, ended.seat, ended.text, also_out, events, record.away or ())
    result = match.result()
    if record.worker:  # old records say who refereed; a replay cannot
        again = msgspec.structs.replace(result.record, worker=record.worker)
        result = msgspec.structs.replace(result, record=again)
    return result


@contextmanager
def playing_again(what: str = "the record") -> Iterator[None]:
    """Raise any error of the block, in which a match is replayed, as `ArenaError`.

    `NoAnalysis` is raised unchanged.
    """
    try:
        yield
    except NoAnalysis:
        raise
    except Exception as error:  # a record from outside may be broken in any way
        why = str(error) if isinstance(error, ArenaError) else in_words(error)
        raise ArenaError(f"{what} cannot be played again: {why}") from error
