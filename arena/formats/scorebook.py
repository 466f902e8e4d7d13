"""What the matches of a competition add up to: the standings, who is out, which verdicts stand, how far its schedule has come.

The arena feeds a scorebook while it plays, readers feed one from the database, and an audit feeds one with what it checks. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from arena.engine.match import Result
from arena.engine.verdict import FORGIVABLE
from arena.formats.formats import schedule_of, standings_of
from arena.formats.ladder import Ladder
from arena.formats.pauses import Pauses
from arena.formats.schedule import Outcome, Pairing, Ranking
from arena.formats.spec import Form, Plan
from arena.formats.standings import RoundRobin
from protocol.messages import Ending, Termination, Verdict

__all__ = ["ScheduleRun", "Scorebook"]


class Scorebook:
    """Adds matches up in the order in which they ended; nothing can be taken out of it: whoever takes a result back makes another.

    Args:
        plan: what is played.
        removed: whom the instructor has taken out, and with what words.
        verdicts: the offences that are known already.
        is_ranked: whether there are standings. An audit needs none, and has results that no standings would take.

    Attributes:
        played: how many matches have been added.
        out: who plays no more, and why: offenders who are not forgiven, and those whom the instructor has taken out. In an
            elimination these are not among them, as their tables wait for them; on a ladder offenders are not (J3).
        removed: whom the instructor has taken out.
        pauses: of the owners on a ladder.
    """

    def __init__(
        self,
        plan: Plan,
        removed: Mapping[str, Termination] = {},
        verdicts: Iterable[Verdict] = (),
        *,
        is_ranked: bool = True,
    ) -> None:
        self.played = 0
        self.out: dict[str, Termination] = {}
        self.removed: dict[str, Termination] = {}
        self.pauses = Pauses()
        self._form = plan.form
        self._forgive = plan.forgive
        self._ruled: dict[tuple[str, str], tuple[Ending, str]] = {}
        self._events: dict[str, set[str]] = {}  # of each bot, so far
        self._offences: set[str] = set()  # the matches that they ended
        self._forgiven: set[tuple[str, str]] = set()
        self.ruled(verdicts)
        self._standings = standings_of(plan) if is_ranked else None
        for name, ended in removed.items():
            self.remove(name, ended)

    @property
    def rows(self) -> tuple[Any, ...]:
        """`Row`s, `LeagueRow`s or `LadderRow`s, best first; empty for an elimination."""
        return () if self._standings is None else self._standings.rows()

    @property
    def cross_table(self) -> dict[str, dict[str, Any]]:
        """Row bot → column bot → `Cell`: who has done how against whom, in a round robin."""
        if isinstance(self._standings, RoundRobin):
            return self._standings.cross_table()
        return {}

    @property
    def ladder(self) -> Ladder:
        """The ratings of a ladder."""
        assert isinstance(self._standings, Ladder), "only a ladder has them"
        return self._standings

    def add(
        self, match: str, pairing: Pairing, result: Result, finished_at: float
    ) -> tuple[str, ...]:
        """Count a match that is neither void nor taken back.

        Returns:
            Whom it puts out: those who offended and are not forgiven; nobody on a ladder, where an offence is a loss and a pause (J3).
        """
        self.played += 1
        players = pairing.players
        # A damaged database may name seats that are not there.
        out = [seat for seat in result.out if 0 <= seat < len(players)]
        if out:
            self._offences.add(match)
        forgiven = tuple(seat for seat in out if self._forgives(match, players[seat]))
        if self._standings is not None:  # which leave out whoever has been struck
            self._standings.add(Outcome(pairing, result, forgiven))
        if isinstance(self._standings, Ladder):
            self.pauses.add(players, result, finished_at)
        if self._form is Form.LADDER:
            return ()
        struck = tuple(players[seat] for seat in out if seat not in forgiven)
        for name in struck:
            self.out.setdefault(name, result.termination)
        return struck

    def remove(self, name: str, ended: Termination) -> None:
        """The instructor takes a bot out; of a ladder its matches stay in the others' ratings."""
        self.removed.setdefault(name, ended)
        if self._form is not Form.ELIMINATION:
            self.out.setdefault(name, ended)
            if self._standings is not None:
                self._standings.eliminate(name, ended)

    def ruled(self, verdicts: Iterable[Verdict]) -> None:
        """There are verdicts; they have to be known before their matches are added."""
        if self._forgive:
            self._ruled |= {
                (one.match, one.bot): (one.kind, one.event or one.match) for one in verdicts
            }

    def standing(self, verdicts: Iterable[Verdict]) -> list[Verdict]:
        """Those of matches that count, each with whether it is forgiven by now: that can change when a match is taken back."""
        return [
            msgspec.structs.replace(one, forgiven=(one.match, one.bot) in self._forgiven)
            for one in verdicts
            if one.match in self._offences
        ]

    def forgives(self, name: str, kind: Ending, event: str) -> bool:
        """Whether an offence that is noticed now costs a bot no more than the match (J3)."""
        return name not in self.out and self._would_forgive(name, kind, event)

    def knows(self, name: str, event: str) -> bool:
        """Whether that event has ended a match already."""
        return event in self._events.get(name, ())

    # --- what a run forgives (J3): the first so many events of a bot cost it the matches that they end, and no more ---

    def _would_forgive(self, name: str, kind: Ending, event: str) -> bool:
        events = self._events.get(name, set()) | {event}
        return kind in FORGIVABLE and len(events) <= self._forgive

    def _forgives(self, match: str, name: str) -> bool:
        """Count the event that ended a match, if there is a verdict that says which; whether it is forgiven."""
        found = self._ruled.get((match, name))
        if found is None or found[0] not in FORGIVABLE:
            return False
        kind, event = found
        is_forgiven = self._would_forgive(name, kind, event)
        self._events.setdefault(name, set()).add(event)
        if is_forgiven:
            self._forgiven.add((match, name))
        return is_forgiven


class ScheduleRun:
    """The schedule of a competition, run as far as its results go.

    Args:
        plan: what is played; no ladder, which has no schedule.

    Attributes:
        asked: the pairings that the schedule asks for, by number.
        missing: those of them that have no result, though nobody in them is out.
        ranking: what the schedule returns; None if it does not get to its end.
    """

    def __init__(self, plan: Plan) -> None:
        self.asked: dict[int, Pairing] = {}
        self.missing: list[Pairing] = []
        self.ranking: Ranking | None = None
        self._plan = plan

    def run(self, results: Mapping[int, Result], out: Collection[str] = ()) -> None:
        """Run it with these results, by the numbers of their pairings; it ends where the next stage cannot be drawn.

        Args:
            results: those that count.
            out: who is out; what they do not play is not missing, but in an elimination, where everybody has a result.

        Raises:
            UsageError: the plan cannot be played.
        """
        is_elimination = self._plan.form is Form.ELIMINATION
        absent = frozenset() if is_elimination else frozenset(out)
        schedule = schedule_of(self._plan)
        try:
            stage = next(schedule)
            while True:
                self.asked |= {pairing.number: pairing for pairing in stage}
                self.missing += [
                    pairing
                    for pairing in stage
                    if pairing.number not in results and absent.isdisjoint(pairing.players)
                ]
                if is_elimination and self.missing:
                    return
                stage = schedule.send(tuple(Outcome(one, results.get(one.number)) for one in stage))
        except StopIteration as end:
            self.ranking = end.value
