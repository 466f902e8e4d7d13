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
from arena.formats.formats import expected_matches
from arena.formats.schedule import Pairing, Ranking
from arena.formats.scorebook import Scorebook
from arena.formats.spec import Form, Plan
from arena.storage.models import Act, CompetitionRow, CompetitionState, MatchRow, removed
from arena.storage.reader import StoreReader
from protocol.messages import Action, Progress, Termination, Verdict

__all__ = ["LiveResults", "Summary"]

_OVER = (CompetitionState.FINISHED, CompetitionState.STOPPED)


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """All that a competition has come to at one moment.

    Attributes:
        id: its own in its database.
        plan: what is played; without commands of bots, and without the seed of an elimination that goes on.
        state: whether it goes on.
        started_at: in Unix seconds.
        finished_at: when it ended, if it has.
        played: how many matches count.
        standings: as in `LiveResults`; empty if there is a ranking.
        cross_table: of a round robin.
        ranking: of an elimination that has been played to its end.
        verdicts: every offence that stands, with its evidence.
        actions: what instructors did.
    """

    id: str
    plan: Plan
    state: CompetitionState
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


class LiveResults:
    """What a competition has come to; it begins with what is there now.

    Args:
        store: the database, open for reading at least.
        competition: its id.

    Attributes:
        competition: as it was set up, and whether it goes on, at the last update.

    Raises:
        UsageError: there is no such competition.
        StoreFailed: the database cannot be read; also from `update`.
        ArenaError: a result is not one of this competition's schedule; also from `update`.
    """

    def __init__(self, store: StoreReader, competition: str) -> None:
        self._store = store
        self.competition: CompetitionRow = store.competition(competition)
        self._begin(self._read_acts())
        self._read_new()

    def update(self) -> bool:
        """Read what is new; whether anything was."""
        before = (self.competition, self._book.removed, self._last)
        # First what says whether to begin anew: what comes in meanwhile is then seen the next time.
        self.competition = self._store.competition(self.competition.id)
        out = self._read_acts()
        if (self.competition.revision, out) != (before[0].revision, before[1]):
            self._begin(out)
        self._read_new()
        return (self.competition, self._book.removed, self._last) != before

    @property
    def plan(self) -> Plan:
        """What is played."""
        return self.competition.plan

    @property
    def played(self) -> int:
        """How many matches count."""
        return self._book.played

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
                msgspec.structs.replace(row, eliminated=self.out.get(row.name))
                for row in self._bracket.rows()
            )
        return self._book.rows

    @property
    def cross_table(self) -> dict[str, dict[str, Any]]:
        """Row bot → column bot → `Cell`: who has done how against whom, in a round robin."""
        return self._book.cross_table

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
        return self._book.out | self._book.removed

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """All offences that stand, with their evidence, forgiven ones too; read anew each time, as they are few."""
        return tuple(verdict for _, verdict in self.rulings)

    @property
    def rulings(self) -> tuple[tuple[float, Verdict], ...]:
        """The same, each with when it was put in."""
        rulings = self._store.rulings(self.competition.id)
        return tuple(
            (at, standing)
            for at, verdict in rulings
            for standing in self._book.standing((verdict,))
        )

    @property
    def progress(self) -> Progress:
        """How far it is; the time left is that of the matches left, at the pace of the last ones."""
        settled, scheduled = self._settled()
        left_s = None
        is_running = self.competition.state is CompetitionState.RUNNING
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
        self._last = 0
        self._book = Scorebook(self.plan, removed)
        self._matches: dict[int, str] = {}
        self._meetings: Counter[tuple[str, ...]] = Counter()
        self._pace = Pace()
        is_elimination = self.plan.form is Form.ELIMINATION
        self._bracket = Bracket(self.plan) if is_elimination else None

    def _read_acts(self) -> dict[str, Termination]:
        """Whom the instructor has taken out, and with what words; and when it went on after the last pause."""
        acts = self._store.actions(self.competition.id)
        resumed = (act.at for act in acts if act.what == Action.RESUME)
        self._resumed_at = max(resumed, default=0.0)
        return removed(acts)

    def _read_new(self) -> None:
        new = self._store.results(self.competition.id, after=self._last)
        if self.plan.forgive and any(played.result.out for played in new):
            self._book.ruled(self._store.verdicts(self.competition.id))
        for played in new:
            self._add(played)

    def _add(self, played: MatchRow) -> None:
        pairing, result = Pairing(played.pairing, played.players), played.result
        self._last = played.number
        self._meetings[played.players] += 1
        self._pace.ended(played.finished_at)
        self._book.add(played.id, pairing, result, played.finished_at)
        if self._bracket is not None:
            self._bracket.add(pairing, result)
            self._matches[played.pairing] = played.id

    def _settled(self) -> tuple[int, int]:
        """How many matches have been played or never will be, and how many there are in all."""
        expected = expected_matches(self.plan)
        if expected is None or (self._bracket is not None and self.is_over):
            return self.played, self.played
        if self.competition.state is CompetitionState.FINISHED:
            return expected, expected
        if self._bracket is not None:
            return self.played, max(expected, self.played)
        # Those of bots that are out are settled, whether they were played or not.
        out = self._book.out
        players = tuple(name for name in self.plan.players if name not in out)
        among = msgspec.structs.replace(self.plan, players=players)
        left = sum(count for names, count in self._meetings.items() if out.keys().isdisjoint(names))
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
