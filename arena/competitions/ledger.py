"""Keeps the results of a competition while it is played, and adds them up.

Everything is written to the database as it happens. A ledger begins empty, or with the results of
an interrupted competition; from then on there is no difference. A pairing has at most one result.
The instructor may take a result back; then the others are added up again.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from arena.competitions.storage_watch import read_again
from arena.formats.ladder import Ladder
from arena.formats.schedule import Pairing, Ranking
from arena.formats.scorebook import ScheduleRun, Scorebook
from arena.formats.spec import Form, Plan
from arena.games.match import MatchResult, Result
from arena.games.names import versioned
from arena.games.verdict import Finding, were_away
from arena.storage.models import (
    ARENA,
    REOPENED,
    RESTORED,
    VERSION,
    Act,
    CompetitionReport,
    CompetitionState,
    MatchRow,
    Outage,
    VersionChange,
    add_to,
    in_order,
    removed,
)
from arena.storage.store import Store
from protocol.errors import ArenaError, UsageError
from protocol.messages import Action, Ending, Termination, Verdict

__all__ = ["Ledger"]

_LATEST = 100  # verdicts of a ladder in memory; the database has all of them
_OUT, _IN = "out", "in"  # acts of the arena: an offence between matches, and its excuse


class Ledger:
    """The results of one competition.

    For an interrupted competition, `earlier` are the matches that count, `acts` are those of the
    instructor and the arena, `verdicts` are those so far, `changes` are the versions that came into
    play on a ladder, and `outages` are the matches that were void because bots were away.

    Attributes:
        book: the sums of the matches.
        verdicts: every offence with its evidence, also forgiven ones; on a ladder only the latest.
        findings: by bot, offences between matches, which put it out at its next match.
        on_rated: called when the ratings of a ladder have been computed again.
    """

    def __init__(
        self,
        competition: str,
        plan: Plan,
        store: Store,
        earlier: Iterable[MatchRow] = (),
        acts: Iterable[Act] = (),
        verdicts: Iterable[Verdict] = (),
        changes: Sequence[VersionChange] = (),
        outages: Iterable[Outage] = (),
    ) -> None:
        self.id = competition
        self.plan = plan
        self._store = store
        earlier, acts = tuple(earlier), tuple(acts)
        self._is_ladder = plan.form is Form.LADDER
        # A ladder has no end, so only the numbers of its matches are in memory.
        self._ladder = {row.id: row.pairing for row in earlier if self._is_ladder}
        self._counted = {row.pairing: row for row in earlier if not self._is_ladder}
        self._rating: asyncio.Task[None] | None = None  # rates a ladder again
        self.on_rated: Callable[[], None] = lambda: None
        self._late: list[MatchRow | VersionChange] = []  # what has come since that task began
        self._latest = _latest(earlier, changes)  # the match that was noted last, perhaps void
        self._changes = len(changes)
        # By bot, the text of the act for its version.
        self._in_play = {act.bot: act.text for act in acts if act.what == VERSION}
        self._flags = {act.text for act in acts}
        self._void = _void_since_the_end(acts)
        self._outages = list(outages)
        resumed = (act.at for act in acts if act.what == Action.RESUME)
        self._resumed_at = max(resumed, default=-math.inf)
        self.findings = _findings(acts)
        verdicts = tuple(verdicts)
        self.book = _added_up(Scorebook(plan, removed(acts), verdicts), earlier, changes)
        self.verdicts = self.book.standing(verdicts)

    @property
    def played(self) -> int:
        """How many matches count or ended by an offence."""
        return len(self._counted) + len(self._ladder)

    @property
    def is_reopened(self) -> bool:
        """Whether it was over, and goes on because results were taken back."""
        return self._void is not None

    def ladder(self) -> Ladder:
        return self.book.ladder

    @property
    def last_pairing(self) -> int:
        """The greatest number of a pairing that has a result, or 0."""
        return max((*self._counted, *self._ladder.values()), default=0)

    def known(self, pairing: Pairing) -> Result | None:
        """Return a pairing's result, if any; `ArenaError` if the database has other bots in it."""
        played = self._counted.get(pairing.number)
        if played is None:
            return None
        if played.players != pairing.players:
            raise ArenaError(
                f"expected {' v '.join(pairing.players)} in match {played.id}, "
                f"got {' v '.join(played.players)}; "
                "ask `arena verify` what is wrong with the database"
            )
        return played.result

    def note(
        self,
        match: str,
        pairing: Pairing,
        result: MatchResult,
        verdict: Verdict | None,
        started_at: float,
        finished_at: float,
        others: Sequence[Verdict] = (),
    ) -> Result:
        """Record a match, and count it and its offenders unless it is void. Times in Unix seconds.

        `verdict` is on the offender that ended it, if there is one; `others` are on further ones.
        Returns the result without the record, which need not stay in memory.
        """
        played = self._store.match_finished(
            self.id,
            pairing.number,
            match,
            pairing.players,
            result,
            started_at,
            finished_at,
            verdict,
            others,
        )
        self._latest = match
        if result.record.away:
            self._outages.append(Outage.of(played, result.record.away))
        if not played.counts:
            return played.result
        if self._is_ladder:
            self._ladder[match] = pairing.number
        else:
            self._counted[pairing.number] = played
        verdicts = (*(() if verdict is None else (verdict,)), *others)
        self.verdicts += [verdict for verdict in verdicts if verdict.bot not in self.book.out]
        if self._is_ladder:  # offenders on a ladder play on, and may offend again and again
            del self.verdicts[:-_LATEST]
        self.book.ruled(verdicts)
        self._count(played)
        return played.result

    def left_again(self, pairing: Pairing) -> str | None:
        """Return why a pairing waits for the instructor, as bots left it again (J9); else None.

        One outage may end many matches. So matches of other pairings count only if they were over
        before this pairing's latest match began.
        """
        mine = [void for void in self._outages if void.pairing == pairing.number]
        if not mine or self._resumed_at >= mine[-1].finished_at:
            return None
        latest = mine[-1]
        earlier = (
            void
            for void in self._outages
            if void in mine[:-1] or void.finished_at <= latest.started_at
        )
        before = {name for void in earlier for name in void.away}
        again = [name for name in latest.away if name in before]
        if not again:
            return None
        scores = sorted(latest.scores.items(), key=lambda each: -each[1])
        first, *others = [f"{name} {score}" for name, score in scores]
        return (
            f"match {latest.match} was void as {were_away(latest.away)}, "
            f"{' and '.join(again)} not for the first time; "
            f"ahead was {first}, before {', '.join(others)}"
        )

    def version_in_play(self, name: str, label: str, at: float) -> None:
        """Record that a version of a bot plays on a ladder from now on, and rate it so (K4).

        Ignored if the label is the same as before.
        """
        assert self._is_ladder, "elsewhere a version stays until the end"
        text = f"{versioned(name, label)} is in play"
        if self._in_play.get(name) == text:
            return
        self._in_play[name] = text
        self._note_act(VERSION, name, text, at, self._latest)
        self._changes += 1
        self._count(VersionChange(name, self._latest, 0))

    def match_of(self, pairing: Pairing) -> str:
        return self._counted[pairing.number].id

    def forgives(self, name: str, kind: Ending, event: str) -> bool:
        """Return whether an offence now would cost a bot only the match (J3)."""
        return self.book.forgives(name, kind, event)

    def note_offence(self, name: str, finding: Finding, at: float) -> None:
        """Record that a bot has offended between matches: it is out at its next match."""
        self._note_act(_OUT, name, msgspec.json.encode(finding).decode(), at)

    def clear_offence(self, name: str, at: float) -> None:
        """Record that an offence no longer counts, as its match was taken back."""
        self._note_act(_IN, name, "", at)

    def _note_act(
        self, what: str, name: str, text: str, at: float, match: str | None = None
    ) -> None:
        self._store.acted(
            Act(competition=self.id, at=at, who=ARENA, what=what, match=match, bot=name, text=text)
        )

    def flag(self, act: Act) -> bool:
        """Record something for the instructor to look at, once; return whether it is new."""
        is_new = act.text not in self._flags
        if is_new:
            self._flags.add(act.text)
            self._store.acted(act)
        return is_new

    def of_match(self, match: str) -> MatchRow | None:
        """Return the row of a match that counts, else None."""
        if match in self._ladder:
            return self._store.played(match)
        return next((row for row in self._counted.values() if row.id == match), None)

    def check_back(self, match: str, first: int = 1) -> MatchRow:
        """Return the row of a match whose result can be taken back.

        `first` is the number of the current stage's first pairing. Raises `UsageError` if the match
        does not count, or if later stages were drawn by its result.
        """
        played = self.of_match(match)
        if played is None:
            raise UsageError(f"expected a match of {self.id} that counts, got {match!r}")
        left = {number: other for number, other in self._counted.items() if other is not played}
        others = [verdict for verdict in self.verdicts if verdict.match != match]
        if played.pairing < first or self._has_later(left, others, first):
            raise UsageError(
                f"expected a match of the latest stage, got {match!r}: "
                "what came after it was drawn by its result"
            )
        return played

    def take_back(
        self, match: str, act: Act, first: int = 1, reopened: Act | None = None
    ) -> MatchRow:
        """Take the result of a match back, record the act, and undo its consequences.

        With the act `reopened`, the competition was over and goes on for this match. Raises what
        `check_back` raises.
        """
        played = self.check_back(match, first)
        self._store.taken_back(self.id, match, act, reopened)
        if reopened is not None:
            self._void = [match]
        elif self._void is not None:
            self._void.append(match)
        if self._is_ladder:
            del self._ladder[match]
            self._rate_anew()
        else:
            del self._counted[played.pairing]
            self._add_up([verdict for verdict in self.verdicts if verdict.match != match])
        return played

    def restore(self, act: Act) -> tuple[MatchRow, ...]:
        """Restore the results that were taken back since the end and not played again.

        A result that no longer fits the schedule stays void. This reads the database, to which
        everything must have been written. Returns the matches.
        """
        verdicts = self._store.verdicts(self.id)
        counted, restored = self._counted, list[MatchRow]()
        rows = {row.id: row for row in self._store.matches(self.id)}
        # A match that had not begun, or was lost in a power cut, has an act and no row.
        voids = (rows[match] for match in self._void or () if match in rows)
        # If a pairing was taken back twice, its first match is the one from before the end.
        for played in sorted(voids, key=lambda played: played.pairing):
            if played.pairing in counted or played.result.termination.kind is Ending.VOID:
                continue
            with_it = counted | {played.pairing: played}
            asked = self._schedule_run(with_it, verdicts).asked
            if all(n in asked and asked[n].players == row.players for n, row in with_it.items()):
                counted, restored = with_it, [*restored, played]
        for played in restored:
            made = msgspec.structs.replace(act, what=RESTORED, match=played.id)
            self._store.restored(self.id, played.id, made)
        self._counted = dict(sorted(counted.items(), key=lambda each: each[1].finished_at))
        self._add_up(verdicts)
        return tuple(restored)

    def _add_up(self, verdicts: Iterable[Verdict]) -> None:
        """Add all counting results up again."""
        verdicts = tuple(verdicts)
        book = Scorebook(self.plan, self.book.removed, verdicts)
        self.book = _added_up(book, self._counted.values())
        self.verdicts = self.book.standing(verdicts)

    def remove(self, name: str, text: str) -> None:
        """Remove a bot for the instructor; the act itself has been recorded."""
        has_played = self._is_ladder and name in self.ladder()
        self.book.remove(name, Termination(Ending.REMOVED, None, text))
        if has_played:
            self._rate_anew()

    async def rated(self) -> None:
        """Wait until a ladder is rated again; `ArenaError` if the database cannot be read."""
        while (rating := self._rating) is not None:
            await asyncio.wait((rating,))
            if rating is self._rating:  # otherwise it was begun again
                rating.result()
                return

    def acted(self, act: Act) -> None:
        self._store.acted(act)

    def state_changed(self, state: CompetitionState, act: Act) -> None:
        if state is CompetitionState.RUNNING:
            self._resumed_at = act.at
        self._store.state_changed(self.id, state, act)

    def finished(
        self, at: float, ranking: Ranking, state: CompetitionState, act: Act | None
    ) -> None:
        self._store.competition_finished(self.id, at, ranking, state, act)

    def report(
        self, ranking: Ranking, state: CompetitionState, seconds: float
    ) -> CompetitionReport:
        return CompetitionReport(
            competition=self.id,
            run=self.plan.run,
            game=self.plan.game,
            form=self.plan.form,
            players=self.plan.players,
            state=state,
            standings=self.book.rows,
            cross_table=self.book.cross_table,
            ranking=ranking,
            verdicts=tuple(self.verdicts),
            played=self.played,
            seconds=seconds,
            not_there=self.plan.not_there,
            unit=self.book.unit,
            versions=self.book.versions,
        )

    def _has_later(
        self, left: Mapping[int, MatchRow], verdicts: Sequence[Verdict], first: int
    ) -> bool:
        """Return whether stages have been drawn that these results do not lead to.

        If stages overlap, also whether a bot that is in again lacks matches of a stage before
        `first`.
        """
        if self._is_ladder:
            return False
        run = self._schedule_run(left, verdicts)
        lacks_earlier = any(pairing.number < first for pairing in run.missing)
        return not left.keys() <= run.asked.keys() or bool(self.plan.settle and lacks_earlier)

    def _schedule_run(
        self, counted: Mapping[int, MatchRow], verdicts: Sequence[Verdict]
    ) -> ScheduleRun:
        """Run the schedule with these results."""
        run = ScheduleRun(self.plan)
        out: Collection[str] = ()
        if self.plan.settle:
            book = Scorebook(self.plan, self.book.removed, verdicts, is_ranked=False)
            out = _added_up(book, counted.values()).out
        run.run({number: played.result for number, played in counted.items()}, out)
        return run

    def _count(self, each: MatchRow | VersionChange) -> None:
        add_to(self.book, each)
        if self._rating is not None and not self._rating.done():
            self._late.append(each)

    def _rate_anew(self) -> None:
        """Rate all matches in the order of the database; those that end meanwhile come last."""
        if self._rating is not None:
            self._rating.cancel()
        self._late = []
        known, removed = frozenset(self._ladder), dict(self.book.removed)
        self._rating = asyncio.create_task(self._rate(known, self._changes, removed))

    async def _rate(
        self, known: frozenset[str], changes: int, removed: Mapping[str, Termination]
    ) -> None:
        await self._store.flushed()

        def rate() -> Scorebook:
            rows = (row for row in self._store.results(self.id) if row.id in known)
            made = self._store.version_changes(self.id)[:changes] if changes else ()
            return _added_up(Scorebook(self.plan, removed), rows, made)

        book = await read_again(rate)  # thousands of matches take seconds
        for name, ended in self.book.removed.items():
            book.remove(name, ended)
        self.book = book
        for late in self._late:
            add_to(book, late)
        self.on_rated()


def _added_up(
    book: Scorebook, rows: Iterable[MatchRow], changes: Sequence[VersionChange] = ()
) -> Scorebook:
    for each in in_order(rows, changes):
        add_to(book, each)
    return book


def _latest(earlier: Sequence[MatchRow], changes: Sequence[VersionChange]) -> str | None:
    """Return the match that was noted last, as far as these rows show."""
    if changes and (not earlier or changes[-1].after > earlier[-1].number):
        return changes[-1].match
    return earlier[-1].id if earlier else None


def _findings(acts: Iterable[Act]) -> dict[str, Finding]:
    """Return the recorded offences between matches that were not excused later, by bot."""
    findings: dict[str, Finding] = {}
    for act in acts:
        if act.bot is not None and act.what == _OUT:
            findings.setdefault(act.bot, msgspec.json.decode(act.text, type=Finding))
        elif act.bot is not None and act.what == _IN:
            findings.pop(act.bot, None)
    return findings


def _void_since_the_end(acts: Iterable[Act]) -> list[str] | None:
    """Return the matches made void since the competition was over; None if it never was over."""
    void: list[str] | None = None
    for act in acts:
        if act.match is not None and act.what == REOPENED:
            void = [act.match]
        elif act.match is not None and act.what == Action.VOID and void is not None:
            void.append(act.match)
    return void
