"""Replays a live match for its spectators without slowing the match; no I/O.

A `WatchedMatch` replays the answers of a match at its own pace, in slices as long as its caller has
time for, and cuts the events into frames. If they are too many for a frame, whole rounds are left
out.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

import msgspec

from arena.games.match import MatchState
from arena.games.replay import Event, Playback
from arena.records.captions import captions_for
from arena.records.rounds import Round, RoundPlayback
from arena.records.visibility import Viewer, seen, view_of
from arena.referee.bot_session import LiveMatch
from protocol.watching import Events, Scene, Turn, View, encode_to_viewer

__all__ = ["LONGEST", "MOST_EVENTS", "EventCut", "WatchedMatch"]

MOST_EVENTS = 120  # in a frame; more than anybody can follow before the next
LONGEST = 2_000  # events of a round that newcomers get from its beginning

_AT_ONCE = 16  # answers between two reads of the clock: a tenth of a millisecond
_LATEST = 60  # latest answers (or three rounds) that are always shown, even with a long backlog
_LATEST_AT_END = 1_000  # the same when the match is over, to show the last round
_NEAR = 500  # answers; a replay with a smaller backlog has caught up
_PATIENCE_S = 3.0  # after which a match is shown even if the replay cannot catch up


class EventCut(msgspec.Struct, frozen=True):
    """Events for a frame; the first one is in round `round`, from 1, and begins it if `reset`.

    `skipped` rounds were left out just before it. If `is_latest`, nothing has been replayed since.
    """

    reset: bool
    round: int
    events: tuple[Event, ...]
    skipped: int
    is_latest: bool


class WatchedMatch:
    """One watched match; times are on the loop's clock, in seconds.

    It may be shown when `is_ready`: the replay has caught up once, or takes too long.
    """

    def __init__(self, table: LiveMatch, now: float) -> None:
        self.table = table
        self.is_ready = False
        self._captions = captions_for(table.game, table.names)
        self._since = now
        self._replay: RoundPlayback | None = None
        self._rounds: list[Round] = []  # complete rounds, not yet fully in frames
        self._sent = 0  # events in frames of the first of them, or of the current round
        is_new = table.match is None or not table.match.answers
        # The round in which the next frame should begin; None at first for a match that has begun.
        self._at = 1 if is_new else None
        self._is_first = True
        self._notes = 0  # how many of the match's notes were replayed

    @property
    def id(self) -> str:
        return self.table.id

    @property
    def is_over(self) -> bool:
        """Whether the match is replayed to its end, and all its events are in frames."""
        replay = self._replay
        return replay is not None and replay.is_over and not self._rounds

    def view(self, viewer: Viewer) -> View:
        """Return how much a viewer may see of the match, whose competition is still going on."""
        return view_of(self.table.names, False, viewer)

    def replay(self, now: float, goes_on: Callable[[], bool], is_due: bool) -> None:
        """Replay the answers since the last call while `goes_on()`, checked every few answers.

        A long backlog is replayed without events, except for the latest answers if a frame is due.
        """
        match = self.table.match
        if match is None:  # not all bots are ready
            self.is_ready = True
            return
        replay = self._replay
        if replay is None:
            replay = self._replay = self._begin()
        total = len(match.answers)
        has_time = True
        most = max(_LATEST, 3 * replay.decisions // replay.round)
        if total - replay.decisions > 2 * most:
            is_over = match.termination is not None
            latest = _LATEST_AT_END if is_over else most if is_due else 0
            has_time = self._pass_over(replay, match, total - latest, goes_on)
        elif not is_due:
            return
        is_complete = has_time and self._feed(replay, match, goes_on)
        if is_complete and match.termination is not None:
            replay.end(match.termination)
            self._gather(replay)
        is_near = total - replay.decisions < _NEAR
        self.is_ready = self.is_ready or is_near or now - self._since > _PATIENCE_S

    def cut(self) -> EventCut | None:
        """Return the events since the last frame, as many as fit; None if there are none."""
        replay = self._replay
        if replay is None:
            return None
        self._drop(len(replay.events))
        first, *others = [*(round_.events for round_ in self._rounds), replay.events]
        fresh = first[self._sent : self._sent + LONGEST]
        events = (*fresh, *chain.from_iterable(others))
        if not events:
            return None
        number = self._rounds[0].number if self._rounds else replay.round
        skipped = 0 if self._at is None else max(0, number - self._at)
        resets = self._is_first or skipped > 0
        self._is_first = False
        is_whole = len(fresh) == len(first) - self._sent
        if not is_whole:
            self._sent += len(fresh)
            self._at = number
            return EventCut(resets, number, tuple(fresh), skipped, False)
        last = self._rounds[-1].number if self._rounds else number
        self._at = replay.round if replay.events else last + 1
        self._rounds.clear()
        self._sent = len(replay.events)
        return EventCut(resets, number, events, skipped, True)

    def present_round(self) -> EventCut | None:
        """Return the current round's events sent so far, for a newcomer; None if too many."""
        replay = self._replay
        if replay is None:
            return EventCut(True, 1, (), 0, True)
        if replay.is_partial or self._sent > LONGEST:
            return None
        if self._rounds:
            first = self._rounds[0]
            events = first.events[: self._sent]
            return EventCut(True, first.number, events, 0, False)
        events = tuple(replay.events[: self._sent])
        return EventCut(True, replay.round, events, 0, True)

    def frame(self, cut: EventCut, view: View, now: float) -> bytes:
        return encode_to_viewer(
            Events(
                match=self.table.id,
                reset=cut.reset,
                round=cut.round,
                events=tuple(seen(cut.events, view, self.table.game.seats, self._captions)),
                turn=self.turn(now) if cut.is_latest else None,
                scores=self.scores,
                decisions=self.decisions,
                skipped=cut.skipped,
            )
        )

    def scene(self, view: View, competition: str | None) -> bytes:
        """Make the frame that says who plays what."""
        table, replay = self.table, self._replay
        return encode_to_viewer(
            Scene(
                match=table.id,
                game=table.game.name,
                settings=msgspec.to_builtins(table.settings),
                players=self.table.names,
                view=view,
                limits=table.limits,
                competition=competition,
                round=1 if replay is None else replay.round,
                scores=self.scores,
                versions=table.versions or msgspec.UNSET,
            )
        )

    @property
    def decisions(self) -> int:
        """The number of decisions replayed so far."""
        return 0 if self._replay is None else self._replay.decisions

    @property
    def scores(self) -> tuple[int, ...]:
        if self._replay is not None:
            return self._replay.scores
        match = self.table.match
        return (0,) * self.table.game.seats if match is None else match.scores

    def turn(self, now: float) -> Turn | None:
        """Return which seat is to decide; None while the replay is behind the match."""
        match, replay = self.table.match, self._replay
        if match is None or replay is None or match.pending is None:
            return None
        chair = self.table.chairs[match.pending.seat]
        if chair.question is None or replay.decisions != len(match.answers):
            return None
        return Turn(
            seat=chair.seat,
            kind=match.pending.question.kind,
            waited_ms=max(0, int((now - chair.asked_at) * 1000)),
            bank_ms=chair.clock.bank_ms,
            decision_ms=chair.limits.decision_ms,
        )

    # --- internal ---

    def _begin(self) -> RoundPlayback:
        table = self.table
        match = MatchState(
            table.game,
            table.settings,
            seed=table.seed,
            nonces=table.nonces,
            start=all(table.nonces),  # without all nonces, the match was over before it began
            tells_deals=True,
        )
        return RoundPlayback(Playback(match))

    def _pass_over(
        self, replay: RoundPlayback, match: MatchState, until: int, goes_on: Callable[[], bool]
    ) -> bool:
        """Replay the answers up to number `until` without events; False if time has run out."""
        answers, number = match.answers, replay.decisions
        if number < until:
            self._rounds.clear()
            self._sent = 0
        while number < until:
            replay.pass_over(answers[number])
            number += 1
            if number % _AT_ONCE == 0 and not goes_on():
                return False
        return True

    def _feed(self, replay: RoundPlayback, match: MatchState, goes_on: Callable[[], bool]) -> bool:
        """Replay all remaining answers; False if time has run out."""
        answers, times = match.answers, match.times_ms
        while (number := replay.decisions) < len(answers):
            replay.feed(answers[number], times[number], self._note(match, number))
            self._gather(replay)
            if number % _AT_ONCE == 0 and not goes_on():
                return False
        return True

    def _note(self, match: MatchState, number: int) -> str | None:
        notes = match.notes
        while self._notes < len(notes) and notes[self._notes][0] < number:
            self._notes += 1
        if self._notes < len(notes) and notes[self._notes][0] == number:
            return notes[self._notes][1]
        return None

    def _gather(self, replay: RoundPlayback) -> None:
        """Collect complete rounds, and drop those that do not fit a frame."""
        rounds = replay.take()
        if rounds:
            self._rounds += rounds
            self._drop(0 if replay.is_over else 1)

    def _drop(self, more: int) -> None:
        """Drop rounds until the rest and `more` events fit a frame; the latest events stay."""
        rounds = self._rounds
        total = sum(len(round_.events) for round_ in rounds) + more - self._sent
        while total > MOST_EVENTS and len(rounds) > (more == 0):
            total -= len(rounds.pop(0).events) - self._sent
            self._sent = 0
