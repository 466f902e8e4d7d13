"""The results of a competition that is played: which match is whose result, and what that adds up to; written down as it happens.

A ledger begins empty, or with what the database has of a competition that was interrupted: from then on there is no difference. Every
pairing has one result at most. Taking one back is the instructor's right, and then everything is added up anew from what is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from arena.engine.match import MatchResult, Result
from arena.engine.verdict import Finding
from arena.formats.ladder import Ladder
from arena.formats.schedule import Pairing, Ranking, RankingPlace
from arena.formats.scorebook import ScheduleRun, Scorebook
from arena.formats.spec import Form, Plan
from arena.storage.models import ARENA, Act, CompetitionState, MatchRow, removed
from arena.storage.store import Store
from protocol.errors import ArenaError, UsageError
from protocol.messages import Ending, Termination, Verdict

__all__ = ["CompetitionReport", "Ledger"]

_LATEST = 100  # verdicts of a ladder that are kept at hand; the database has them all
_OUT, _IN = "out", "in"  # what the arena writes down of a bot that sits nowhere


class CompetitionReport(msgspec.Struct, frozen=True, kw_only=True):
    """How a competition ended.

    Attributes:
        competition, run: its id, and the name of its run or empty.
        game, form, players: what was played, by whom.
        state: `finished`, or `stopped` by the instructor.
        standings: rows, best first, the eliminated at the end; empty for an elimination.
        cross_table: who has done how against whom, in a round robin.
        ranking: the places of an elimination.
        not_there: those of the roster who had not come when it started.
        verdicts: every offence, with its evidence.
        played: how many matches count or ended by an offence.
        seconds: how long it took, since the arena was last started.
    """

    competition: str
    run: str
    game: str
    form: Form
    players: tuple[str, ...]
    state: CompetitionState
    standings: tuple[Any, ...]
    cross_table: dict[str, dict[str, Any]]
    ranking: tuple[RankingPlace, ...]
    verdicts: tuple[Verdict, ...]
    played: int
    seconds: float
    not_there: tuple[str, ...] = ()


class Ledger:
    """The results of one competition.

    Args:
        competition: its id.
        plan: what is played.
        store: where everything is written.
        earlier: what counted when it was interrupted.
        acts: what the instructor had done by then.
        verdicts: the offences until then.

    Attributes:
        book: what the matches add up to.
        verdicts: every offence with its evidence, forgiven ones too; of a ladder the latest.
        findings: what was found while a bot sat nowhere, and has not ended a match yet.
        on_rated: called when a ladder has been rated anew.
    """

    def __init__(
        self,
        competition: str,
        plan: Plan,
        store: Store,
        earlier: Iterable[MatchRow] = (),
        acts: Iterable[Act] = (),
        verdicts: Iterable[Verdict] = (),
    ) -> None:
        self.id = competition
        self.plan = plan
        self._store = store
        earlier, acts = tuple(earlier), tuple(acts)
        self._is_ladder = plan.form is Form.LADDER
        # A ladder has no end, and nothing is ever asked of it again: there the database alone keeps what was played.
        self._ladder = {one.id: one.pairing for one in earlier if self._is_ladder}
        self._counted = {one.pairing: one for one in earlier if not self._is_ladder}
        self._rating: asyncio.Task[None] | None = None  # of a ladder, anew
        self.on_rated: Callable[[], None] = lambda: None
        self._late: list[MatchRow] = []  # what has ended since that began
        self._flags = {act.text for act in acts}
        self.findings = _findings(acts)
        self.verdicts = list(verdicts)
        self.book = Scorebook(plan, removed(acts), self.verdicts)
        for played in earlier:
            _add(self.book, played)
        self.verdicts = self.book.standing(self.verdicts)

    @property
    def played(self) -> int:
        """How many matches count or ended by an offence."""
        return len(self._counted) + len(self._ladder)

    def ladder(self) -> Ladder:
        """The ratings of a ladder, as they are now."""
        return self.book.ladder

    @property
    def last_pairing(self) -> int:
        """The greatest number of a pairing that has a result; 0 without any."""
        return max((*self._counted, *self._ladder.values()), default=0)

    def known(self, pairing: Pairing) -> Result | None:
        """The result of a pairing, if there is one.

        Raises:
            ArenaError: it is that of other bots: the database does not belong to this schedule.
        """
        played = self._counted.get(pairing.number)
        if played is None:
            return None
        if played.players != pairing.players:
            raise ArenaError(
                f"expected {' v '.join(pairing.players)} in match {played.id}, got {' v '.join(played.players)}; "
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
    ) -> None:
        """Write a match down, count it unless it is void, and strike an offender, and `others` who are out with it."""
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
        if not played.counts:
            return
        if self._is_ladder:
            self._ladder[match] = pairing.number
            if self._rating is not None and not self._rating.done():
                self._late.append(played)
        else:
            self._counted[pairing.number] = played
        ruled = (*(() if verdict is None else (verdict,)), *others)
        self.verdicts += [one for one in ruled if one.bot not in self.book.out]
        if self._is_ladder:  # where an offender plays on, and may offend for ever
            del self.verdicts[:-_LATEST]
        self.book.ruled(ruled)
        _add(self.book, played)

    def match_of(self, pairing: Pairing) -> str:
        """The id of the match that is a pairing's result."""
        return self._counted[pairing.number].id

    def forgives(self, name: str, kind: Ending, event: str) -> bool:
        """Whether an offence that is noticed now costs a bot no more than the match (J3)."""
        return self.book.forgives(name, kind, event)

    def note_offence(self, name: str, finding: Finding, at: float) -> None:
        """Write down that a bot has offended while it sat nowhere: it is out at its next match."""
        text = msgspec.json.encode(finding).decode()
        self._store.acted(self._own(_OUT, name, text, at))

    def clear_offence(self, name: str, at: float) -> None:
        """What was found does not count any more, as its match was taken back."""
        self._store.acted(self._own(_IN, name, "", at))

    def _own(self, what: str, name: str, text: str, at: float) -> Act:
        return Act(competition=self.id, at=at, who=ARENA, what=what, bot=name, text=text)

    def flag(self, act: Act) -> bool:
        """Have the instructor look at something; whether that is new."""
        is_new = act.text not in self._flags
        if is_new:
            self._flags.add(act.text)
            self._store.acted(act)
        return is_new

    def of_match(self, match: str) -> MatchRow | None:
        """What counts as the result of a match, if it does."""
        if match in self._ladder:
            return self._store.played(match)
        for played in self._counted.values():
            if played.id == match:
                return played
        return None

    def take_back(self, match: str, act: Act, first: int = 1) -> MatchRow:
        """A result does not count any more; what it brought about is undone.

        Args:
            match: its id.
            act: whose wish it is.
            first: the number of the first pairing of the stage that is being played.

        Raises:
            UsageError: no such result counts, or later stages have been drawn by it.
        """
        played = self.of_match(match)
        if played is None:
            raise UsageError(f"expected a match of {self.id} that counts, got {match!r}")
        left = {number: other for number, other in self._counted.items() if other is not played}
        if played.pairing < first or self._has_later(left):
            raise UsageError(
                f"expected a match of the latest stage, got {match!r}: what came after it was drawn by its result"
            )
        self._store.taken_back(self.id, match, act)
        self._counted = left
        self.verdicts = [one for one in self.verdicts if one.match != match]
        if self._is_ladder:
            del self._ladder[match]
            self._rate_anew()
        else:
            self.book = Scorebook(self.plan, self.book.removed, self.verdicts)
            for one in left.values():
                _add(self.book, one)
            self.verdicts = self.book.standing(self.verdicts)
        return played

    def remove(self, name: str, text: str) -> None:
        """The instructor takes a bot out, as has been written down."""
        has_played = self._is_ladder and name in self.ladder()
        self.book.remove(name, Termination(Ending.REMOVED, None, text))
        if has_played:
            self._rate_anew()

    async def rated(self) -> None:
        """Wait until a ladder's ratings are those of what counts, after `remove` and `take_back`.

        Raises:
            ArenaError: they cannot be made, as the database fails.
        """
        while (rating := self._rating) is not None:
            await asyncio.wait((rating,))
            if rating is self._rating:  # else it has been begun again
                rating.result()
                return

    def acted(self, act: Act) -> None:
        """Write down what was done."""
        self._store.acted(act)

    def state_changed(self, state: CompetitionState, act: Act) -> None:
        """The competition is paused, or goes on."""
        self._store.state_changed(self.id, state, act)

    def finished(
        self,
        at: float,
        ranking: Ranking,
        state: CompetitionState = CompetitionState.FINISHED,
        act: Act | None = None,
    ) -> None:
        """The competition has ended."""
        self._store.competition_finished(self.id, at, ranking, state, act)

    def report(
        self, ranking: Ranking, state: CompetitionState, seconds: float
    ) -> CompetitionReport:
        """How it has ended, after so many seconds."""
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
        )

    # --- within ---

    def _has_later(self, left: Mapping[int, MatchRow]) -> bool:
        """Whether some of these results are of stages that the schedule has not come to with them."""
        if self._is_ladder:
            return False
        run = ScheduleRun(self.plan)
        run.run({number: played.result for number, played in left.items()})
        return not left.keys() <= run.asked.keys()

    def _rate_anew(self) -> None:
        """Ratings follow from the order of all matches, which the database has; what ends while it is read is counted last."""
        if self._rating is not None:
            self._rating.cancel()
        self._late = []
        book = Scorebook(self.plan, self.book.removed)
        self._rating = asyncio.create_task(self._rate(frozenset(self._ladder), book))

    async def _rate(self, known: frozenset[str], book: Scorebook) -> None:
        """Rate anew, in a thread: thousands of matches take seconds."""
        await self._store.flushed()

        def rate() -> None:
            for one in self._store.results(self.id):
                if one.id in known:
                    _add(book, one)

        await asyncio.to_thread(rate)
        for name, ended in self.book.removed.items():
            book.remove(name, ended)
        self.book = book
        for played in self._late:
            _add(book, played)
        self.on_rated()


def _add(book: Scorebook, played: MatchRow) -> None:
    pairing = Pairing(played.pairing, played.players)
    book.add(played.id, pairing, played.result, played.finished_at)


def _findings(acts: Iterable[Act]) -> dict[str, Finding]:
    """What was found and not excused later."""
    findings: dict[str, Finding] = {}
    for act in acts:
        if act.bot is not None and act.what == _OUT:
            found = msgspec.json.decode(act.text, type=Finding)
            findings.setdefault(act.bot, found)
        elif act.bot is not None and act.what == _IN:
            findings.pop(act.bot, None)
    return findings
