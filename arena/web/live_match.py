"""A live match told again for those who watch it, beside the match and never in its way; no I/O.

A `WatchedMatch` follows the answers of a table at its own pace, in slices as long as its caller has time for, and cuts what it has told into frames.
What is too much for one is left out by whole rounds: whoever looks on can follow only so much.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

import msgspec

from arena.engine.match import MatchState
from arena.records.replay_events import Event, EventReplay, Round
from arena.records.visibility import seen
from arena.referee.live_match import LiveMatch
from protocol.watching import Events, Scene, Turn, View, encode_to_viewer

__all__ = ["LONGEST", "MOST_EVENTS", "EventCut", "WatchedMatch"]

MOST_EVENTS = 120
"""In a frame; more than anybody can follow before the next."""
LONGEST = 2_000
"""Of a round, in events: one that is longer is not told from its beginning to those who come in the middle of it."""

_AT_ONCE = 16  # answers between two looks at the clock: a tenth of a millisecond
_KEPT = 60  # of the latest answers, that are told even if there are many; and three rounds
_KEPT_AT_END = 1_000  # the last round is told, however long it was
_NEAR = 500  # answers: who is no further behind is up with the match
_PATIENCE_S = 3.0  # a match that is faster than we can tell it is shown late


class EventCut(msgspec.Struct, frozen=True):
    """Events for a frame.

    Attributes:
        reset: whether they begin with their round.
        round: the round of the first.
        events: in order.
        skipped: how many rounds were left out just before them.
        is_latest: whether nothing has been told since.
    """

    reset: bool
    round: int
    events: tuple[Event, ...]
    skipped: int
    is_latest: bool


class WatchedMatch:
    """One match that is watched.

    Args:
        table: where it is played.
        now: on the loop's clock, in seconds.

    Attributes:
        is_ready: whether there is something to be shown: it has caught up with the match once, or cannot.
    """

    def __init__(self, table: LiveMatch, now: float) -> None:
        self.table = table
        self.is_ready = False
        self._since = now
        self._telling: EventReplay | None = None
        self._rounds: list[Round] = []  # complete, and not yet in a frame to the end
        self._sent = 0  # events of the first of them, or of the present round
        is_new = table.match is None or not table.match.answers
        # The round that the next frame should begin in; who comes late has missed none.
        self._at = 1 if is_new else None
        self._is_first = True
        self._notes = 0  # of the match's, so many have been told

    @property
    def players(self) -> tuple[str, ...]:
        """The names, by seat."""
        return tuple(chair.player.name for chair in self.table.chairs)

    @property
    def is_over(self) -> bool:
        """Whether the end is told, and all of it is in frames."""
        telling = self._telling
        return telling is not None and telling.is_over and not self._rounds

    def tell(self, now: float, goes_on: Callable[[], bool], is_due: bool) -> None:
        """Tell what has happened meanwhile, as long as there is time.

        Args:
            now: on the loop's clock.
            goes_on: whether there is; asked every few answers.
            is_due: whether the next frame is: else of what comes in masses nothing is told.
        """
        match = self.table.match
        if match is None:  # not all are ready
            self.is_ready = True
            return
        telling = self._telling
        if telling is None:
            telling = self._telling = self._begin()
        total = len(match.answers)
        has_time = True
        most = max(_KEPT, 3 * telling.decisions // telling.round)
        if total - telling.decisions > 2 * most:
            is_over = match.termination is not None
            kept = _KEPT_AT_END if is_over else most if is_due else 0
            has_time = self._pass_over(telling, match, total - kept, goes_on)
        elif not is_due:
            return
        is_told = has_time and self._feed(telling, match, goes_on)
        if is_told and match.termination is not None:
            telling.end(match.termination)
            self._gather(telling)
        is_near = total - telling.decisions < _NEAR
        self.is_ready = self.is_ready or is_near or now - self._since > _PATIENCE_S

    def cut(self) -> EventCut | None:
        """What has been told since the last frame, and not too much of it; None if nothing has."""
        telling = self._telling
        if telling is None:
            return None
        self._drop(len(telling.events))
        first, *others = [*(each.events for each in self._rounds), telling.events]
        fresh = first[self._sent : self._sent + LONGEST]
        events = (*fresh, *chain.from_iterable(others))
        if not events:
            return None
        number = self._rounds[0].number if self._rounds else telling.round
        skipped = 0 if self._at is None else max(0, number - self._at)
        resets = self._is_first or skipped > 0
        self._is_first = False
        is_whole = len(fresh) == len(first) - self._sent
        if not is_whole:
            self._sent += len(fresh)
            self._at = number
            return EventCut(resets, number, tuple(fresh), skipped, False)
        last = self._rounds[-1].number if self._rounds else number
        self._at = telling.round if telling.events else last + 1
        self._rounds.clear()
        self._sent = len(telling.events)
        return EventCut(resets, number, events, skipped, True)

    def afresh(self) -> EventCut | None:
        """All of the present round that was in frames, for one who comes in; None if that is too much."""
        telling = self._telling
        if telling is None:
            return EventCut(True, 1, (), 0, True)
        if telling.is_partial or self._sent > LONGEST:
            return None
        if self._rounds:
            first = self._rounds[0]
            events = first.events[: self._sent]
            return EventCut(True, first.number, events, 0, False)
        return EventCut(True, telling.round, tuple(telling.events[: self._sent]), 0, True)

    def frame(self, cut: EventCut, view: View, now: float) -> bytes:
        """The frame with some events, as a view shows them."""
        telling, table = self._telling, self.table
        return encode_to_viewer(
            Events(
                match=table.id,
                reset=cut.reset,
                round=cut.round,
                events=tuple(seen(cut.events, view, table.game.seats)),
                turn=self._turn(now) if cut.is_latest else None,
                scores=self._scores(),
                decisions=0 if telling is None else telling.decisions,
                skipped=cut.skipped,
            )
        )

    def scene(self, view: View, competition: str | None) -> bytes:
        """The frame that says who plays what."""
        table, telling = self.table, self._telling
        return encode_to_viewer(
            Scene(
                match=table.id,
                game=table.game.name,
                settings=msgspec.to_builtins(table.settings),
                players=self.players,
                view=view,
                limits=table.limits,
                competition=competition,
                round=1 if telling is None else telling.round,
                scores=self._scores(),
            )
        )

    # --- within ---

    def _begin(self) -> EventReplay:
        table = self.table
        nonces = tuple(chair.nonce or "" for chair in table.chairs)
        match = MatchState(
            table.game,
            table.settings,
            seed=table.seed,
            nonces=nonces,
            start=all(nonces),  # else it ended before
            tells_deals=True,
        )
        return EventReplay(match)

    def _pass_over(
        self, telling: EventReplay, match: MatchState, until: int, goes_on: Callable[[], bool]
    ) -> bool:
        """Pass over the answers up to a number; whether there was time for all."""
        answers, number = match.answers, telling.decisions
        if number < until:
            self._rounds.clear()
            self._sent = 0
        while number < until:
            telling.pass_over(answers[number])
            number += 1
            if number % _AT_ONCE == 0 and not goes_on():
                return False
        return True

    def _feed(self, telling: EventReplay, match: MatchState, goes_on: Callable[[], bool]) -> bool:
        """Tell all answers that there are; whether there was time for all."""
        answers, times = match.answers, match.times_ms
        while (number := telling.decisions) < len(answers):
            telling.feed(answers[number], times[number], self._note(match, number))
            self._gather(telling)
            if number % _AT_ONCE == 0 and not goes_on():
                return False
        return True

    def _note(self, match: MatchState, number: int) -> str | None:
        """The note that came with an answer."""
        notes = match.notes
        while self._notes < len(notes) and notes[self._notes][0] < number:
            self._notes += 1
        if self._notes < len(notes) and notes[self._notes][0] == number:
            return notes[self._notes][1]
        return None

    def _gather(self, telling: EventReplay) -> None:
        """Take the rounds that are complete, and drop those that will be in no frame."""
        rounds = telling.take()
        if rounds:
            self._rounds += rounds
            self._drop(0 if telling.is_over else 1)

    def _drop(self, more: int) -> None:
        """Leave out whole rounds until what is left, and `more` events, fit a frame; the latest of all stays."""
        rounds = self._rounds
        total = sum(len(each.events) for each in rounds) + more - self._sent
        while total > MOST_EVENTS and len(rounds) > (more == 0):
            total -= len(rounds.pop(0).events) - self._sent
            self._sent = 0

    def _scores(self) -> tuple[int, ...]:
        if self._telling is not None:
            return self._telling.scores
        match = self.table.match
        return (0,) * self.table.game.seats if match is None else match.scores

    def _turn(self, now: float) -> Turn | None:
        """Who is to decide, if what was told is what there is."""
        match, telling = self.table.match, self._telling
        if match is None or telling is None or match.pending is None:
            return None
        chair = self.table.chairs[match.pending.seat]
        if chair.ask is None or telling.decisions != len(match.answers):
            return None
        return Turn(
            seat=chair.seat,
            kind=match.pending.question.kind,
            waited_ms=max(0, int((now - chair.asked_at) * 1000)),
            bank_ms=chair.ask.bank_ms,
            decision_ms=chair.ask.decision_ms,
        )
