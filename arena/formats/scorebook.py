"""Adds up the matches of a competition: standings, who is out, verdicts, schedule.

The arena feeds a scorebook while it plays, readers feed one from the database, and an audit feeds
one with the matches that it checks. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from arena.formats.formats import open_stages, standings_of
from arena.formats.intervals import IntervalUnit
from arena.formats.ladder import Ladder, RatingHistory
from arena.formats.pauses import Pauses
from arena.formats.schedule import Outcome, Pairing, Ranking, Stage
from arena.formats.spec import Form, Plan
from arena.games.match import Result
from arena.games.statistics import UnitSums
from arena.games.verdict import FORGIVABLE
from protocol.messages import Ending, Termination, Verdict

__all__ = ["ScheduleRun", "Scorebook"]


class Scorebook:
    """Adds up matches in the order in which they ended; to withdraw a result, make a new scorebook.

    `verdicts` are the offences known so far. Without `is_ranked` there are no standings: an audit
    may have results that standings refuse. A ladder's ratings are added to its `history`.

    `out` has the bots that play no more, and why: offenders that are not forgiven, and those that
    the instructor has `removed`. In an elimination the removed are not in it, as their tables wait
    for them; on a ladder offenders are not in it (J3). `versions` has the latest version that each
    bot has played with, if it has versions.
    """

    def __init__(
        self,
        plan: Plan,
        removed: Mapping[str, Termination] = {},
        verdicts: Iterable[Verdict] = (),
        *,
        is_ranked: bool = True,
        history: RatingHistory | None = None,
    ) -> None:
        self.played = 0  # matches that have been added
        self.out: dict[str, Termination] = {}
        self.removed: dict[str, Termination] = {}
        self.versions: dict[str, str] = {}
        self.pauses = Pauses()  # of the owners on a ladder
        self._form = plan.form
        self._forgive = plan.forgive
        self._ruled: dict[tuple[str, str], tuple[Ending, str]] = {}
        self._events: dict[str, set[str]] = {}  # by bot
        self._offences: set[str] = set()  # the matches that an offence ended
        self._forgiven: set[tuple[str, str]] = set()
        self.ruled(verdicts)
        self._standings = standings_of(plan) if is_ranked else None
        self._history = history  # of a ladder
        for name, ended in removed.items():
            self.remove(name, ended)

    @property
    def rows(self) -> tuple[Any, ...]:
        """`Row`s, `LeagueRow`s or `LadderRow`s, best first; empty for an elimination."""
        return () if self._standings is None else self.with_versions(self._standings.rows())

    def with_versions(self, rows: tuple[Any, ...]) -> tuple[Any, ...]:
        """Add to rows of standings the versions that have played."""
        if not self.versions:
            return rows
        return tuple(
            msgspec.structs.replace(row, version=self.versions.get(row.name)) for row in rows
        )

    @property
    def cross_table(self) -> dict[str, dict[str, Any]]:
        """Row bot → column bot → `Cell` in a round robin; else empty."""
        return {} if self._standings is None else self._standings.cross_table()

    @property
    def unit(self) -> IntervalUnit | None:
        """What the intervals in `rows` are computed from; None if they have none."""
        return None if self._standings is None else self._standings.unit

    @property
    def ladder(self) -> Ladder:
        assert isinstance(self._standings, Ladder), "only a ladder has them"
        return self._standings

    def add(
        self,
        match: str,
        pairing: Pairing,
        result: Result,
        finished_at: float,
        units: UnitSums | None = None,
        versions: Sequence[str | None] = (),
    ) -> tuple[str, ...]:
        """Count a match that is neither void nor withdrawn, and return the offenders now out.

        On a ladder nobody goes out: an offence is a loss and a pause (J3). `units` are only used
        for intervals; `versions` say, by seat, which version of its bot has played.
        """
        self.played += 1
        players = pairing.players
        by_seat = zip(players, versions, strict=False)
        self.versions |= {name: version for name, version in by_seat if version}
        # A damaged database may name seats that are not there.
        out = [seat for seat in result.out if 0 <= seat < len(players)]
        if out:
            self._offences.add(match)
        forgiven = tuple(seat for seat in out if self._forgives(match, players[seat]))
        if self._standings is not None:
            self._standings.add(Outcome(pairing, result, forgiven, units))
        if isinstance(self._standings, Ladder):
            self.pauses.add(players, result, finished_at)
            if self._history is not None:
                for name in players:
                    climber = self.ladder.climber(name)
                    if climber.played:  # otherwise it was removed
                        version = self.versions.get(name)
                        self._history.add(name, finished_at, climber.rating, version)
        if self._form is Form.LADDER:
            return ()
        struck = tuple(players[seat] for seat in out if seat not in forgiven)
        for name in struck:
            self.out.setdefault(name, result.termination)
        return struck

    def version_changed(self, name: str) -> None:
        """Note that another version of a bot is active on a ladder (K4)."""
        if self._standings is not None:
            self.ladder.version_changed(name)

    def remove(self, name: str, ended: Termination) -> None:
        """Take a bot out; on a ladder its matches still count in the others' ratings."""
        self.removed.setdefault(name, ended)
        if self._form is not Form.ELIMINATION:
            self.out.setdefault(name, ended)
            if self._standings is not None:
                self._standings.eliminate(name, ended)

    def ruled(self, verdicts: Iterable[Verdict]) -> None:
        """Note verdicts; call this before adding their matches."""
        if self._forgive:
            for verdict in verdicts:
                event = verdict.event or verdict.match
                self._ruled[verdict.match, verdict.bot] = verdict.kind, event

    def standing(self, verdicts: Iterable[Verdict]) -> list[Verdict]:
        """The verdicts of the matches that count, with `forgiven` as it is now."""
        return [
            msgspec.structs.replace(
                verdict, forgiven=(verdict.match, verdict.bot) in self._forgiven
            )
            for verdict in verdicts
            if verdict.match in self._offences
        ]

    def forgives(self, name: str, kind: Ending, event: str) -> bool:
        """Whether an offence now would cost a bot no more than the match (J3)."""
        return name not in self.out and self._would_forgive(name, kind, event)

    def events(self, name: str) -> int:
        """How many events of a bot have been forgiven, or have put it out."""
        return len(self._events.get(name, ()))

    def knows(self, name: str, event: str) -> bool:
        """Whether this event of the bot `name` has ended one of the matches added (J3).

        An event is the id in a verdict. False for every event if the plan forgives nothing.
        """
        return event in self._events.get(name, ())

    # --- what a run forgives (J3): the first `forgive` events of each bot ---

    def _would_forgive(self, name: str, kind: Ending, event: str) -> bool:
        events = self._events.get(name, set()) | {event}
        return kind in FORGIVABLE and len(events) <= self._forgive

    def _forgives(self, match: str, name: str) -> bool:
        """Count the event that ended a match, if a verdict names it; return whether forgiven."""
        ruled = self._ruled.get((match, name))
        if ruled is None or ruled[0] not in FORGIVABLE:
            return False
        kind, event = ruled
        is_forgiven = self._would_forgive(name, kind, event)
        self._events.setdefault(name, set()).add(event)
        if is_forgiven:
            self._forgiven.add((match, name))
        return is_forgiven


class ScheduleRun:
    """Runs the schedule of a competition as far as its results allow; a ladder has none.

    If stages depend on results, it asks for the pairings of all stages that may have been played.
    """

    def __init__(self, plan: Plan) -> None:
        self.asked: dict[int, Pairing] = {}  # what the schedule asks for, by number
        self.missing: list[Pairing] = []  # those without a result, though neither bot is out
        self.ranking: Ranking | None = None  # None if the schedule does not reach its end
        self._plan = plan

    def run(self, results: Mapping[int, Result], out: Collection[str] = ()) -> None:
        """Run the schedule with the results that count, until the next stage cannot be drawn.

        Pairings of bots that are `out` need no result, except in an elimination. Raises UsageError
        if the plan cannot be played.
        """
        is_elimination = self._plan.form is Form.ELIMINATION
        absent = frozenset() if is_elimination else frozenset(out)
        follows = is_elimination or self._plan.settle
        stages = open_stages(self._plan)
        for stage in stages.open:
            self._ask(stage, results, absent)
        while stage := stages.oldest:
            if follows and self.missing and self.missing[0].number <= stage[-1].number:
                return
            outcomes = (Outcome(pairing, results.get(pairing.number)) for pairing in stage)
            self._ask(stages.hear(tuple(outcomes)), results, absent)
        self.ranking = stages.ranking

    def _ask(self, stage: Stage, results: Mapping[int, Result], absent: frozenset[str]) -> None:
        self.asked |= {pairing.number: pairing for pairing in stage}
        self.missing += [
            pairing
            for pairing in stage
            if pairing.number not in results and absent.isdisjoint(pairing.players)
        ]
