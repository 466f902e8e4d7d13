"""The results of a running competition, read from the database by any process.

Each `update` reads the matches written since the last one, and adds them up as the arena does. It
adds up all matches again only after a match was taken back or a bot was removed. Nothing here
writes or reads a clock.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from arena.formats.bracket import Bracket, BracketStage
from arena.formats.eta import Pace
from arena.formats.formats import expected_matches
from arena.formats.intervals import IntervalUnit
from arena.formats.ladder import RatingHistory
from arena.formats.schedule import Pairing, Ranking
from arena.formats.scorebook import Scorebook
from arena.formats.spec import Form, Plan
from arena.records.luck import LuckSums
from arena.storage.models import (
    REOPENED,
    Act,
    CompetitionRow,
    CompetitionState,
    MatchRow,
    VersionChange,
    add_to,
    in_order,
    removed,
)
from arena.storage.reader import StoreReader
from protocol.messages import Action, Progress, Termination, Verdict

__all__ = ["LiveResults", "Summary"]


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a competition at one moment, for publication; times in Unix seconds."""

    id: str
    plan: Plan  # without the bots' commands; without the seed until the competition is over
    state: CompetitionState
    started_at: float
    finished_at: float | None
    played: int  # matches that count
    standings: tuple[Any, ...]  # as in `LiveResults`; empty if there is a ranking
    cross_table: dict[str, dict[str, Any]]  # only for a round robin, else empty
    ranking: Ranking  # only for an elimination that was played to its end, else empty
    verdicts: tuple[Verdict, ...]  # of every offence that stands, with its evidence
    actions: tuple[Act, ...]
    unit: IntervalUnit | None  # what the intervals in the standings count; None without intervals
    versions: dict[str, str]  # each bot's latest version that has played, if it has versions


class LiveResults:
    """Reads the results of the competition with a given id.

    Raises UsageError if there is no such competition. Here and in `update`, StoreFailed means that
    the database cannot be read, and ArenaError that a result does not fit the schedule.

    If the rules of its game are missing, a league or an unfinished elimination has no standings;
    `missing` says why.

    Attributes:
        competition: its row at the last `update`.
        book: the sums of the matches; take standings, `out` and `ranking` from the properties here.
        history: the course of the ratings on a ladder; empty for other forms.
    """

    def __init__(self, store: StoreReader, competition: str) -> None:
        self._store = store
        self.competition: CompetitionRow = store.competition(competition)
        self._begin(self._read_acts())
        self._read_new()

    def update(self) -> bool:
        """Read what is new, and return whether anything was."""
        before = (self.competition, self.book.removed, self._last, self._versions)
        # Read the revision before the matches: a change in between is then seen next time.
        self.competition = self._store.competition(self.competition.id)
        removed = self._read_acts()
        if (self.competition.revision, removed) != (before[0].revision, before[1]):
            self._begin(removed)
        self._read_new()
        return (self.competition, self.book.removed, self._last, self._versions) != before

    @property
    def plan(self) -> Plan:
        return self.competition.plan

    @property
    def is_over(self) -> bool:
        return self.competition.state.is_over

    @property
    def seconds(self) -> float:
        """The time from its start to its end, or to the end of the last match so far."""
        began = self.competition.started_at
        return (self.competition.finished_at or self._pace.last or began) - began

    @property
    def standings(self) -> tuple[Any, ...]:
        """`Row`s, `LeagueRow`s, `LadderRow`s or `BracketRow`s, best first, eliminated bots last."""
        if self._bracket is not None:
            return self.book.with_versions(
                tuple(
                    msgspec.structs.replace(row, eliminated=self.out.get(row.name))
                    for row in self._bracket.rows()
                )
            )
        return self.book.rows

    @property
    def ranking(self) -> Ranking:
        """The final places of an elimination that was played to its end; else empty."""
        computed = () if self._bracket is None else self._bracket.ranking
        return computed or self.competition.ranking

    @property
    def stages(self) -> tuple[BracketStage, ...]:
        """The bracket of an elimination, with its results; empty for other forms."""
        return () if self._bracket is None else self._bracket.stages

    def match_of(self, pairing: int) -> str | None:
        """The id of the match that counts for a pairing of an elimination, if it is over."""
        return self._matches.get(pairing)

    @property
    def out(self) -> dict[str, Termination]:
        """Removed bots and unforgiven offenders, by name; a ladder keeps offenders in (J3)."""
        return self.book.out | self.book.removed

    @property
    def unranked(self) -> frozenset[str]:
        """Bots without a line in the standings: those out, and house bots in an elimination."""
        house = self.plan.house if self.plan.form is Form.ELIMINATION else ()
        return frozenset((*self.out, *house))

    def luck(self, until: float | None = None) -> tuple[tuple[tuple[str, ...], LuckSums], ...]:
        """Return the names by seat and the luck of each match that counts in the standings' means.

        With `until`, in Unix seconds, only matches that were over by then are included.
        """
        measured = self._store.luck(self.competition.id, until)
        if self.plan.form is Form.ELIMINATION:
            return measured
        out = self.out.keys()  # the matches of these bots are struck
        return tuple(match for match in measured if out.isdisjoint(match[0]))

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts that stand, forgiven ones included; read from the database each time."""
        return tuple(verdict for _, verdict in self.rulings)

    @property
    def rulings(self) -> tuple[tuple[float, Verdict], ...]:
        """The verdicts that stand, each with its time in Unix seconds."""
        return tuple(
            (at, standing)
            for at, verdict in self._store.rulings(self.competition.id)
            for standing in self.book.standing((verdict,))
        )

    @property
    def progress(self) -> Progress:
        """How many matches are settled, and the time left at the pace of the last ones."""
        settled, scheduled = self._settled()
        left_s = None
        is_running = self.competition.state is CompetitionState.RUNNING
        is_unknown = self.plan.form is Form.LADDER or self.plan.settle or self._is_reopened
        if is_running and not is_unknown:  # a reopened competition may wait days for its bots
            left_s = self._pace.left_s(scheduled - settled, self._resumed_at)
        return Progress(
            competition=self.competition.id,
            run=self.plan.run,
            game=self.plan.game,
            form=self.plan.form.value,
            state=self.competition.state.value,
            settled=settled,
            scheduled=0 if self.plan.settle else scheduled,
            left_s=left_s,
            reopened=self._is_reopened and not self.is_over,
        )

    def summary(self) -> Summary:
        competition, ranking = self.competition, self.ranking
        seed = self.plan.seed if self.is_over else ""
        return Summary(
            id=competition.id,
            plan=msgspec.structs.replace(self.plan, bots=(), seed=seed),
            state=competition.state,
            started_at=competition.started_at,
            finished_at=competition.finished_at,
            played=self.book.played,
            standings=() if ranking else self.standings,
            cross_table=self.book.cross_table,
            ranking=ranking,
            verdicts=self.verdicts,
            actions=self._store.actions(competition.id),
            unit=self.book.unit,
            versions=self.book.versions,
        )

    # --- within ---

    def _begin(self, removed: dict[str, Termination]) -> None:
        self._last = 0
        self._versions = 0  # how many version changes are in the ratings of a ladder
        self.missing = self.plan.missing
        is_elimination = self.plan.form is Form.ELIMINATION
        is_ranked = self.missing is None or self.plan.form is not Form.LEAGUE
        self.history = RatingHistory()
        self.book = Scorebook(self.plan, removed, is_ranked=is_ranked, history=self.history)
        self._matches: dict[int, str] = {}
        self._meetings: Counter[tuple[str, ...]] = Counter()
        self._pace = Pace()
        has_bracket = is_elimination and self.missing is None
        self._bracket = Bracket(self.plan) if has_bracket else None

    def _read_acts(self) -> dict[str, Termination]:
        """Return the removed bots; note when it last went on, and whether it was reopened."""
        acts = self._store.actions(self.competition.id)
        went_on = [act for act in acts if act.what in (Action.RESUME, REOPENED)]
        self._resumed_at = max((act.at for act in went_on), default=0.0)
        self._is_reopened = any(act.what == REOPENED for act in went_on)
        return removed(acts)

    def _read_new(self) -> None:
        before = self._version_changes()
        new = self._store.results(self.competition.id, after=self._last)
        if self.plan.forgive and any(played.result.out for played in new):
            self.book.ruled(self._store.verdicts(self.competition.id))
        # A version that came into play while the matches were read belongs among them or after
        # them. If after, it waits for the next time: matches before it may not have been read.
        changes, ripe = before, len(before)
        if new:
            changes = self._version_changes()
            ripe += sum(change.after < new[-1].number for change in changes[ripe:])
        for each in in_order(new, changes[self._versions : ripe]):
            add_to(self.book, each)
            if isinstance(each, MatchRow):
                self._add(each)
        self._versions = ripe

    def _version_changes(self) -> tuple[VersionChange, ...]:
        if self.plan.form is not Form.LADDER:
            return ()
        return self._store.version_changes(self.competition.id)

    def _add(self, played: MatchRow) -> None:
        self._last = played.number
        self._meetings[played.players] += 1
        self._pace.ended(played.finished_at)
        if self._bracket is not None:
            self._bracket.add(Pairing(played.pairing, played.players), played.result)
            self._matches[played.pairing] = played.id

    def _settled(self) -> tuple[int, int]:
        """Return how many matches were played or never will be, and how many there are in all."""
        expected = expected_matches(self.plan)
        if expected is None or (self._bracket is not None and self.is_over):
            return self.book.played, self.book.played
        if self.competition.state is CompetitionState.FINISHED:
            return expected, expected
        if self._bracket is not None:
            return self.book.played, max(expected, self.book.played)
        # The matches of bots that are out are settled, played or not.
        out = self.book.out
        players = tuple(name for name in self.plan.players if name not in out)
        among = msgspec.structs.replace(self.plan, players=players)
        left = sum(count for names, count in self._meetings.items() if out.keys().isdisjoint(names))
        struck = expected - (expected_matches(among) or 0)
        return struck + left + self._unplayable(players), expected

    def _unplayable(self, players: tuple[str, ...]) -> int:
        """Count the matches of bots against themselves that cannot be played.

        A bot that has met all others and never itself can sit at only one table at a time.
        """
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
