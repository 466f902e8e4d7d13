"""What a competition has come to so far: which match is whose result, who is out, the standings; written down as it happens.

A ledger begins empty, or with what the database has of a competition that was interrupted: from then on there is no difference. Every
pairing has one result at most. Taking one back is the instructor's right, and then everything is counted anew from what is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from arena.engine.match import MatchResult, Result
from arena.engine.verdict import Finding
from arena.formats.forgiveness import Forgiveness
from arena.formats.formats import schedule_of, standings_of
from arena.formats.ladder import Ladder
from arena.formats.pauses import Pauses
from arena.formats.schedule import Outcome, Pairing, Ranking
from arena.formats.spec import Form, Plan
from arena.formats.standings import RoundRobin
from arena.storage.models import ARENA, Act, Played, State, removed
from arena.storage.store import Store
from protocol.errors import ArenaError, UsageError
from protocol.messages import Ending, Termination, Verdict

__all__ = ["Counted", "Ledger", "beyond"]

_LATEST = 100  # verdicts of a ladder that are kept at hand; the database has them all
_OUT, _IN = "out", "in"  # what the arena writes down of a bot that sits nowhere

Counted = Mapping[int, Played]
"""The results that count, by the number of their pairing."""


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
        out: who is out (J3), and why.
        verdicts: every offence with its evidence, forgiven ones too; of a ladder the latest.
        findings: what was found while a bot sat nowhere, and has not ended a match yet.
        pauses: of the owners on a ladder.
        on_rated: called when a ladder has been rated anew.
    """

    def __init__(
        self,
        competition: str,
        plan: Plan,
        store: Store,
        earlier: Iterable[Played] = (),
        acts: Iterable[Act] = (),
        verdicts: Iterable[Verdict] = (),
    ) -> None:
        self.id = competition
        self.plan = plan
        self.out: dict[str, Termination] = {}
        self._store = store
        earlier = tuple(earlier)
        self._is_ladder = plan.form is Form.LADDER
        # A ladder has no end, and nothing is ever asked of it again: there the database alone keeps what was played.
        self._ladder = {one.id: one.pairing for one in earlier if self._is_ladder}
        self._counted = {one.pairing: one for one in earlier if not self._is_ladder}
        self._standings = standings_of(plan)
        self._rating: asyncio.Task[None] | None = None  # of a ladder, anew
        self.on_rated: Callable[[], None] = lambda: None
        self._late: list[Played] = []  # what has ended since that began
        matches = {played.id for played in earlier}
        self.verdicts = [one for one in verdicts if one.match in matches]
        acts = tuple(acts)
        self._flags = {act.text for act in acts}
        self.findings = _findings(acts)
        self._removed = removed(acts)
        self._forgiveness = Forgiveness(0)
        self._recount(earlier)

    @property
    def played(self) -> int:
        """How many matches count or ended by an offence."""
        return len(self._counted) + len(self._ladder)

    @property
    def removed(self) -> Mapping[str, Termination]:
        """Whom the instructor has taken out."""
        return self._removed

    @property
    def rows(self) -> tuple[Any, ...]:
        """The standings, best first; empty for an elimination."""
        return () if self._standings is None else self._standings.rows()

    @property
    def cross_table(self) -> dict[str, dict[str, Any]]:
        """Who has done how against whom, in a round robin."""
        if isinstance(self._standings, RoundRobin):
            return self._standings.cross_table()
        return {}

    def ladder(self) -> Ladder:
        """The ratings of a ladder, as they are now."""
        assert isinstance(self._standings, Ladder), "only a ladder has them"
        return self._standings

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
        self._store.match_finished(
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
        if result.termination.kind is Ending.VOID:
            return
        played = Played(
            number=0,  # the database's business
            id=match,
            competition=self.id,
            pairing=pairing.number,
            counts=True,
            game=self.plan.game,
            players=pairing.players,
            result=Result(
                result.scores, result.points, result.termination, result.also_out
            ),
            started_at=started_at,
            finished_at=finished_at,
            digest="",
        )
        if self._is_ladder:
            self._ladder[match] = pairing.number
            if self._rating is not None and not self._rating.done():
                self._late.append(played)
        else:
            self._counted[pairing.number] = played
        ruled = (*(() if verdict is None else (verdict,)), *others)
        self.verdicts += [one for one in ruled if one.bot not in self.out]
        self._forgiveness.ruled(ruled)
        if self._is_ladder:  # where an offender plays on, and may offend for ever
            del self.verdicts[:-_LATEST]
        self._count(played)

    def match_of(self, pairing: Pairing) -> str:
        """The id of the match that is a pairing's result."""
        return self._counted[pairing.number].id

    def forgives(self, name: str, kind: Ending, event: str) -> bool:
        """Whether an offence that is noticed now costs a bot no more than the match (J3)."""
        return name not in self.out and self._forgiveness.would_forgive(
            name, kind, event
        )

    def knows(self, name: str, event: str) -> bool:
        """Whether that event has ended a match here already."""
        return self._forgiveness.knows(name, event)

    def found(self, name: str, finding: Finding, at: float) -> None:
        """Write down that a bot has offended while it sat nowhere: it is out at its next match."""
        text = msgspec.json.encode(finding).decode()
        self._store.acted(self._own(_OUT, name, text, at))

    def excused(self, name: str, at: float) -> None:
        """What was found does not count any more, as its match was taken back."""
        self._store.acted(self._own(_IN, name, "", at))

    def _own(self, what: str, name: str, text: str, at: float) -> Act:
        return Act(
            competition=self.id, at=at, who=ARENA, what=what, bot=name, text=text
        )

    def flag(self, act: Act) -> bool:
        """Have the instructor look at something; whether that is new."""
        is_new = act.text not in self._flags
        if is_new:
            self._flags.add(act.text)
            self._store.acted(act)
        return is_new

    def of_match(self, match: str) -> Played | None:
        """What counts as the result of a match, if it does."""
        if match in self._ladder:
            return self._store.played(match)
        for played in self._counted.values():
            if played.id == match:
                return played
        return None

    def take_back(self, match: str, act: Act, first: int = 1) -> Played:
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
            raise UsageError(
                f"expected a match of {self.id} that counts, got {match!r}"
            )
        left = {
            number: other
            for number, other in self._counted.items()
            if other is not played
        }
        if played.pairing < first or beyond(self.plan, left):
            raise UsageError(
                f"expected a match of the latest stage, got {match!r}: what came after it was drawn by its result"
            )
        self._store.taken_back(self.id, match, act)
        self._counted = left
        self.verdicts = [one for one in self.verdicts if one.match != match]
        if self._is_ladder:
            del self._ladder[match]
            self._recount_ladder()
        else:
            self._recount(left.values())
        return played

    def remove(self, name: str, text: str) -> None:
        """The instructor takes a bot out, as has been written down."""
        ended = Termination(Ending.REMOVED, None, text)
        self._removed.setdefault(name, ended)
        has_played = self._is_ladder and name in self.ladder()
        if self.plan.form is not Form.ELIMINATION:
            self._strike(name, ended)
        if has_played:
            self._recount_ladder()

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

    def state_changed(self, state: State, act: Act) -> None:
        """The competition is paused, or goes on."""
        self._store.state_changed(self.id, state, act)

    def finished(
        self,
        at: float,
        ranking: Ranking,
        state: State = State.FINISHED,
        act: Act | None = None,
    ) -> None:
        """The competition has ended."""
        self._store.competition_finished(self.id, at, ranking, state, act)

    # --- within ---

    def _recount_ladder(self) -> None:
        """Ratings follow from the order of all matches, which the database has; what ends while it is read is counted last."""
        if self._rating is not None:
            self._rating.cancel()
        self._late = []
        known, out = frozenset(self._ladder), dict(self._removed)
        self._rating = asyncio.create_task(self._rate(known, out))

    async def _rate(
        self, known: Collection[str], out: Mapping[str, Termination]
    ) -> None:
        """Rate anew, in a thread: thousands of matches take seconds."""
        await self._store.flushed()

        def rate() -> tuple[Ladder, Pauses]:
            ladder, pauses = Ladder(self.plan.players), Pauses()
            for name, ended in out.items():
                ladder.eliminate(name, ended)
            for one in self._store.results(self.id):
                if one.id in known:
                    ladder.add(Outcome(Pairing(one.pairing, one.players), one.result))
                    pauses.add(one.players, one.result, one.finished_at)
            return ladder, pauses

        ladder, self.pauses = await asyncio.to_thread(rate)
        self._standings = ladder
        for played in self._late:
            self._count(played)
        self.on_rated()

    def _recount(self, counted: Iterable[Played]) -> None:
        """Count everything, in the order in which it happened."""
        self.out = {}
        self._forgiveness = Forgiveness(self.plan.forgive, self.verdicts)
        self._standings = standings_of(self.plan)
        self.pauses = Pauses()
        if self.plan.form is not Form.ELIMINATION:
            for name, ended in self._removed.items():
                self._strike(name, ended)
        for played in counted:
            self._count(played)
        self.verdicts = list(self._forgiveness.told(self.verdicts))

    def _count(self, played: Played) -> None:
        pairing, result = Pairing(played.pairing, played.players), played.result
        forgiven = self._forgiveness.forgiven(played.id, played.players, result)
        if self._standings is not None:  # which leave out whoever has been struck
            self._standings.add(Outcome(pairing, result, forgiven))
        if self._is_ladder:  # where it is only a loss, and a pause (J3)
            self.pauses.add(played.players, played.result, played.finished_at)
            return
        for seat in result.out:
            if seat not in forgiven:
                self.out.setdefault(pairing.players[seat], result.termination)

    def _strike(self, name: str, ended: Termination) -> None:
        self.out.setdefault(name, ended)
        if self._standings is not None:
            self._standings.eliminate(name, ended)


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


def beyond(plan: Plan, counted: Counted) -> set[int]:
    """The results that a schedule does not ask for yet, as a stage before them is not complete; or at all."""
    if plan.form is Form.LADDER:
        return set()
    schedule = schedule_of(plan)
    asked: set[int] = set()
    try:
        stage = next(schedule)
        while True:
            asked |= {pairing.number for pairing in stage}
            missing = any(pairing.number not in counted for pairing in stage)
            if missing:
                break
            stage = schedule.send(
                tuple(
                    Outcome(pairing, counted[pairing.number].result)
                    for pairing in stage
                )
            )
    except StopIteration:  # all its stages are complete
        pass
    return set(counted) - asked
