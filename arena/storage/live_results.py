"""The results of a competition, followed in the database from any process: standings, cross table, ranking, progress.

Each `update` reads what has been written since the last, and adds it up as the arena itself does: the standings of a competition of
any length cost a look at its newest matches. Only after a match was taken back, or a bot taken out, everything is added up anew. Nothing
here writes or reads a clock.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from arena.formats.bracket import Bracket, BracketStage
from arena.formats.eta import Pace
from arena.formats.forgiveness import Forgiveness
from arena.formats.formats import Standings, expected_matches, standings_of
from arena.formats.schedule import Outcome, Pairing, Ranking
from arena.formats.spec import Form, Plan
from arena.formats.standings import RoundRobin
from arena.storage.models import Act, Competition, Played, State, removed
from arena.storage.reader import Archive
from protocol.errors import UsageError
from protocol.messages import Action, Progress, Termination, Verdict

__all__ = ["Results", "Summary"]

_OVER = (State.FINISHED, State.STOPPED)


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """All that a competition has come to at one moment.

    Attributes:
        id: its own in its database.
        plan: what is played; without commands of bots, and without the seed of an elimination that goes on.
        state: whether it goes on.
        started_at: in Unix seconds.
        finished_at: when it ended, if it has.
        played: how many matches count.
        standings: as in `Results`; empty if there is a ranking.
        cross_table: of a round robin.
        ranking: of an elimination that has been played to its end.
        verdicts: every offence that stands, with its evidence.
        actions: what instructors did.
    """

    id: str
    plan: Plan
    state: State
    started_at: float
    finished_at: float | None
    played: int
    standings: tuple[Any, ...]
    cross_table: dict[str, dict[str, Any]]
    ranking: Ranking
    verdicts: tuple[Verdict, ...]
    actions: tuple[Act, ...]

    @property
    def is_over(self) -> bool:
        """Whether it has been played to its end or been stopped."""
        return self.state in _OVER


class Results:
    """What a competition has come to; it begins with what is there now.

    Args:
        store: the database, open for reading at least.
        competition: its id.

    Attributes:
        competition: as it was set up, and whether it goes on, at the last update.
        played: how many matches count.

    Raises:
        UsageError: there is no such competition.
        StoreFailed: the database cannot be read; also from `update`.
        ArenaError: a result is not one of this competition's schedule; also from `update`.
    """

    def __init__(self, store: Archive, competition: str) -> None:
        self._store = store
        self.competition: Competition = store.competition(competition)
        self._begin(self._read_acts())
        self._read_new()

    def update(self) -> bool:
        """Read what is new; whether anything was."""
        before = (self.competition, self._removed, self._last)
        # First what says whether to begin anew: what comes in meanwhile is then seen the next time.
        self.competition = self._store.competition(self.competition.id)
        out = self._read_acts()
        if (self.competition.revision, out) != (before[0].revision, before[1]):
            self._begin(out)
        self._read_new()
        return (self.competition, self._removed, self._last) != before

    @property
    def plan(self) -> Plan:
        """What is played."""
        return self.competition.plan

    @property
    def is_over(self) -> bool:
        """Whether it has been played to its end or been stopped."""
        return self.competition.state in _OVER

    @property
    def seconds(self) -> float:
        """How long it has taken: to its end, or to that of the last match so far."""
        began = self.competition.started_at
        return (self.competition.finished_at or self._pace.last or began) - began

    @property
    def standings(self) -> tuple[Any, ...]:
        """`Row`s, `LeagueRow`s or `LadderRow`s, best first, the eliminated at the end; of an elimination `BracketRow`s."""
        if self._bracket is not None:
            return tuple(
                msgspec.structs.replace(row, eliminated=self._out.get(row.name))
                for row in self._bracket.rows()
            )
        return () if self._standings is None else self._standings.rows()

    @property
    def cross_table(self) -> dict[str, dict[str, Any]]:
        """Row bot → column bot → `Cell`: who has done how against whom, in a round robin."""
        if isinstance(self._standings, RoundRobin):
            return self._standings.cross_table()
        return {}

    @property
    def ranking(self) -> Ranking:
        """The places of an elimination that has been played to its end."""
        computed = () if self._bracket is None else self._bracket.ranking
        return computed or self.competition.ranking

    @property
    def stages(self) -> tuple[BracketStage, ...]:
        """An elimination as it was drawn, with what came of it; empty for other forms."""
        return () if self._bracket is None else self._bracket.stages

    def match_of(self, pairing: int) -> str | None:
        """The id of the match that counts for a pairing of an elimination, if it is over."""
        return self._matches.get(pairing)

    @property
    def out(self) -> dict[str, Termination]:
        """Who is out, and why: offenders who are not forgiven, and those whom the instructor took out. On a ladder only these are (J3)."""
        return dict(self._out)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """All offences that stand, with their evidence, forgiven ones too; read anew each time, as they are few."""
        return tuple(verdict for _, verdict in self.rulings)

    @property
    def rulings(self) -> tuple[tuple[float, Verdict], ...]:
        """The same, each with when it was put in."""
        found = [
            (at, verdict)
            for at, verdict in self._store.rulings(self.competition.id)
            if verdict.match in self._offences
        ]
        told = self._forgiveness.told(verdict for _, verdict in found)
        return tuple(zip((at for at, _ in found), told, strict=True))

    @property
    def progress(self) -> Progress:
        """How far it is; the time left is that of the matches left, at the pace of the last ones."""
        settled, scheduled = self._settled()
        left_s = None
        is_running = self.competition.state is State.RUNNING
        if is_running and self.plan.form is not Form.LADDER:
            left_s = self._pace.left_s(scheduled - settled, self._resumed_at)
        return Progress(
            competition=self.competition.id,
            run=self.plan.run,
            game=self.plan.game,
            form=self.plan.form.value,
            state=self.competition.state.value,
            settled=settled,
            scheduled=scheduled,
            left_s=left_s,
        )

    def summary(self) -> Summary:
        """All of it, to be written down where others read it: a bot's command and a seed that is still in use are nobody's business."""
        competition, ranking = self.competition, self.ranking
        seed = self.plan.seed if self.is_over else ""
        return Summary(
            id=competition.id,
            plan=msgspec.structs.replace(self.plan, bots=(), seed=seed),
            state=competition.state,
            started_at=competition.started_at,
            finished_at=competition.finished_at,
            played=self.played,
            standings=() if ranking else self.standings,
            cross_table=self.cross_table,
            ranking=ranking,
            verdicts=self.verdicts,
            actions=self._store.actions(competition.id),
        )

    # --- within ---

    def _begin(self, removed: dict[str, Termination]) -> None:
        """Forget all that was added up."""
        self.played = 0
        self._last = 0
        self._removed = removed
        self._out = dict(removed)
        self._offences: set[str] = set()
        self._forgiveness = Forgiveness(self.plan.forgive)
        self._matches: dict[int, str] = {}
        self._meetings: Counter[tuple[str, ...]] = Counter()
        self._pace = Pace()
        self._standings: Standings | None = standings_of(self.plan)
        self._bracket = _bracket(self.plan)
        for name, ended in self._out.items():
            self._strike(name, ended)

    def _read_acts(self) -> dict[str, Termination]:
        """Whom the instructor has taken out, and with what words; and when it went on after the last pause."""
        acts = self._store.actions(self.competition.id)
        resumed = (act.at for act in acts if act.what == Action.RESUME)
        self._resumed_at = max(resumed, default=0.0)
        return removed(acts)

    def _read_new(self) -> None:
        new = self._store.results(self.competition.id, after=self._last)
        if self.plan.forgive and any(played.result.out for played in new):
            self._forgiveness.ruled(self._store.verdicts(self.competition.id))
        for played in new:
            self._add(played)

    def _add(self, played: Played) -> None:
        self._last = played.number
        self.played += 1
        self._meetings[played.players] += 1
        self._pace.ended(played.finished_at)
        pairing, out = Pairing(played.pairing, played.players), played.result.out
        forgiven = self._forgiveness.forgiven(played.id, played.players, played.result)
        if self._standings is not None:
            self._standings.add(Outcome(pairing, played.result, forgiven))
        if self._bracket is not None:
            self._bracket.add(pairing, played.result)
            self._matches[played.pairing] = played.id
        if out:
            self._offences.add(played.id)
            if self.plan.form is not Form.LADDER:
                for name in (
                    played.players[seat] for seat in out if seat not in forgiven
                ):
                    self._out.setdefault(name, played.result.termination)

    def _strike(self, name: str, ended: Termination) -> None:
        """Somebody is out who has not lost a match by it."""
        if self._standings is not None:
            self._standings.eliminate(name, ended)

    def _settled(self) -> tuple[int, int]:
        """How many matches have been played or never will be, and how many there are in all."""
        expected = expected_matches(self.plan)
        if expected is None or (self._standings is None and self.is_over):
            return self.played, self.played
        if self.competition.state is State.FINISHED:
            return expected, expected
        if self._standings is None:
            return self.played, max(expected, self.played)
        # Those of bots that are out are settled, whether they were played or not.
        players = tuple(name for name in self.plan.players if name not in self._out)
        among = msgspec.structs.replace(self.plan, players=players)
        left = sum(
            count
            for names, count in self._meetings.items()
            if not any(name in self._out for name in names)
        )
        struck = expected - (expected_matches(among) or 0)
        return struck + left + self._never(players), expected

    def _never(self, players: tuple[str, ...]) -> int:
        """How many matches with themselves bots will not play: one that has played all others and none of these has one table."""
        if not self.plan.with_itself or len(players) < 2:
            return 0
        met: Counter[str] = Counter()
        for names, count in self._meetings.items():
            if all(name in players for name in names):
                met.update(dict.fromkeys(names, count))
        others = self.plan.matches * (len(players) - 1)
        return self.plan.matches * sum(
            met[name] == others and not self._meetings[name, name] for name in players
        )


def _bracket(plan: Plan) -> Bracket | None:
    """The elimination, unless it is one of an older arena, which did not keep what its tables were drawn from."""
    if plan.form is not Form.ELIMINATION:
        return None
    try:
        return Bracket(plan)
    except UsageError:
        return None
