"""A competition that was over and is played on, as results of it were taken back (K5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from arena.competitions import live_arena
from arena.competitions.admin import AdminCommands
from arena.competitions.competition import Competition
from arena.competitions.config import Config
from arena.competitions.scheduler import Scheduler
from arena.formats.spec import Form
from arena.results.audit_database import examine
from arena.storage.live_results import LiveResults
from arena.storage.models import CompetitionReport, MatchRow
from arena.storage.roster import Roster
from protocol.errors import UsageError
from protocol.instructions import Unplayed
from protocol.messages import VERSION, Action, Done, Instruct, Verdict
from tests.support.arena_in_memory import HostArena, in_host, plan_for

pytestmark = pytest.mark.virtual_time(limit_s=600, tick_s=0.1)

WAIT_S = 20.0
NAMES = ("ann", "ben", "cem", "dora")


class HostWithInstructor:
    """An arena with its instructor; what happened before is in its database."""

    def __init__(self, arena: HostArena) -> None:
        self.arena = arena
        self.lines: list[str] = []
        self.playing: list[asyncio.Task[CompetitionReport]] = []
        scheduler = Scheduler(
            *(arena.host, arena.store, Config()),
            on_start=lambda competition: None,
            on_report=lambda report: None,
            tell=self.lines.append,
        )
        scheduler.play = self.begins  # type: ignore[method-assign, assignment]
        self._admin = AdminCommands(
            *(arena.host, arena.store),
            starter=scheduler,
            roster=Roster(arena.store.engine),
            lines=list,
        )

    def begins(self, competition: Competition) -> None:
        self.playing.append(self.arena.begin(competition))

    async def says(self, action: Action, **about: Any) -> Done:
        done = self._admin(Instruct(VERSION, "", action, **about), "Eva")
        return await done if isinstance(done, Awaitable) else done

    async def refuses(self, action: Action, **about: Any) -> str:
        acts = self.arena.store.actions()
        with pytest.raises(UsageError) as caught:
            await self.says(action, **about)
        await self.arena.store.flushed()
        assert self.arena.store.actions() == acts
        return str(caught.value)

    async def goes_on(self) -> None:
        """As a restarted arena does."""
        for row in self.arena.host.unfinished():
            self.begins(self.arena.host.resume(row))

    async def standings(self) -> dict[str, tuple[int, str]]:
        """By bot, how many of its matches count, and why it is out; `arena verify` agrees."""
        await self.arena.store.flushed()
        assert [run.flaws for run in examine(self.arena.store)] == [()]
        [row] = self.arena.store.competitions()
        rows = LiveResults(self.arena.store, row.id).standings
        return {each.name: (getattr(each, "played", 0), _out(each)) for each in rows}

    def matches(self, *players: str) -> list[MatchRow]:
        """All matches between these bots, in the order in which they ended."""
        rows = (self.arena.store.matches(row.id) for row in self.arena.store.competitions())
        return [match for [*found] in rows for match in found if {*match.players} == {*players}]

    @property
    def state(self) -> str:
        return self.arena.store.competitions()[0].state.value


def _out(row: Any) -> str:
    return "" if row.eliminated is None else row.eliminated.kind.value


@asynccontextmanager
async def evening(folder: Path) -> AsyncIterator[HostWithInstructor]:
    async with in_host(folder, is_attended=True) as arena:
        yield HostWithInstructor(arena)


async def cup(arena: HostArena, *names: str, matches: int = 2) -> Sequence[Verdict]:
    """A round robin of all, of whom only these come; its verdicts."""
    await arena.come(*names, tables=4)
    more = {"matches": matches, "settings": {"hands": 4}, "wait_s": WAIT_S}
    return (await arena.begin(plan_for("ace_king_queen", NAMES, Form.ROUND_ROBIN, **more))).verdicts


BEFORE = {"ann": (4, ""), "ben": (4, ""), "cem": (4, ""), "dora": (0, "absent")}


@pytest.mark.parametrize(
    ("unplayed", "said", "state", "standings"),
    [
        (*(Unplayed.BEFORE, "; counted as before: {} (dora is out by absent)", "finished"), BEFORE),
        (
            *(Unplayed.VOID, "; what is not played again stays void", "stopped"),
            BEFORE | {"ann": (6, ""), "dora": (2, "")},
        ),
    ],
)
async def test_K5_nobody_is_absent_from_what_was_over(
    tmp_path: Path, unplayed: Unplayed, said: str, state: str, standings: object
) -> None:
    async with evening(tmp_path) as first:
        [verdict] = await cup(first.arena, "ann", "ben", "cem")
        assert await first.standings() == BEFORE

    async with evening(tmp_path) as second:
        await second.arena.come("ann", "dora", tables=4)
        done = await second.says(Action.VOID, match=verdict.match)
        assert done.text.startswith(f"{verdict.match} is void; ben is not here; ")
        await asyncio.sleep(3 * WAIT_S)
    async with evening(tmp_path) as third:  # of an arena that was killed meanwhile
        await third.goes_on()
        await third.arena.come("ann", "dora", tables=4)
        await asyncio.sleep(3 * WAIT_S)

        [progress] = (status := await third.says(Action.STATUS)).competitions
        shown = LiveResults(third.arena.store, progress.competition).progress
        assert (progress.state, progress.reopened) == ("running", True)
        assert shown.left_s is None, "it waits"
        assert set(progress.waits_for) == {"ben", "cem"}
        assert f"it waits for {', '.join(progress.waits_for)}, however long" in status.lines[-1]
        assert await third.standings() == BEFORE | {"ann": (6, ""), "dora": (2, "")}
        refusal = await third.refuses(Action.STOP)
        assert refusal.startswith("expected `--unplayed before` or `--unplayed void`: ")
        done = await third.says(Action.STOP, unplayed=unplayed)
        await third.playing[0]
        assert done.text == f"stopped: {progress.competition}{said.format(verdict.match)}"
        assert (await third.standings(), third.state) == (standings, state)


async def test_K5_who_is_away_in_what_is_played_again_loses_nothing(tmp_path: Path) -> None:
    async with evening(tmp_path) as before:
        [verdict] = await cup(before.arena, "ann", "ben", "cem", matches=1)
    async with evening(tmp_path) as after:
        await after.says(Action.VOID, match=verdict.match)
        await after.arena.come("ann")
        async with after.arena.bot("dora") as dora:
            await dora.ready()
            await dora.vanish()
        await asyncio.sleep(10)
        async with after.arena.bot("dora") as dora:
            await dora.hears("match")
            await dora.hears("over")
        await asyncio.sleep(10)
        lost = "dora lost its connection and did not come back within 4,000 ms in all"
        late = "dora not ready within 4,000 ms after match"
        ended = (each.result.termination for each in after.matches("ann", "dora"))
        assert [(end.kind.value, end.text) for end in ended] == [
            ("void", f"an outage: {why}; the match does not count") for why in (lost, late)
        ]
        [progress] = (await after.says(Action.STATUS)).competitions
        assert {*progress.waits_for} == {"ann", "ben", "cem", "dora"}, "ann and dora by two voids"

        await after.says(Action.RESUME)
        async with after.arena.bot("ben") as ben:
            await ben.websocket.close(1011, "failed: between matches")
        await after.arena.come("ben", "cem", "dora", tables=4)
        await after.playing[0]
        assert await after.standings() == dict.fromkeys(NAMES, (3, ""))
        assert after.state == "finished"


async def test_a_match_counts_as_before_and_is_void_once_more(tmp_path: Path) -> None:
    async with evening(tmp_path) as before:
        await cup(before.arena, "ann", "ben", "cem")
        [match, *_] = before.matches("ann", "ben")
    async with evening(tmp_path) as after:
        await after.arena.come("ann")
        for _ in range(2):
            await after.says(Action.VOID, match=match.id)
            await asyncio.sleep(1)
            assert await after.standings() == BEFORE | {"ann": (3, ""), "ben": (3, "")}
            [waiting] = after.arena.host.competitions
            assert not waiting.is_spreading, "others may have all tables"
            assert waiting.progress.left_s is None
            refusal = await after.refuses(Action.VOID, match=match.id)
            assert refusal.endswith("is void already")
            done = await after.says(Action.STOP, unplayed=Unplayed.BEFORE)
            assert done.text.endswith(f"; counted as before: {match.id}")
            await after.playing[-1]
            assert (await after.standings(), after.state) == (BEFORE, "finished")
        await after.says(Action.VOID, match=match.id)
        await after.arena.come("ben")
        await after.playing[-1]
        assert after.matches("ann", "ben")[-1].counts
        assert (await after.standings(), after.state) == (BEFORE, "finished")


async def test_K2_a_final_that_was_over_waits_and_has_its_ranking_again(tmp_path: Path) -> None:
    limits = {"settings": {"max_shuffles": 1}, "wait_s": WAIT_S}
    async with evening(tmp_path) as before:
        await before.arena.come(*NAMES[:3], tables=4)
        plan = plan_for("high_low", NAMES, Form.ELIMINATION, **limits)
        report = await before.arena.begin(plan)
        [verdict] = report.verdicts
    async with evening(tmp_path) as after:
        await after.arena.come("ann", "ben", "dora")
        await after.says(Action.VOID, match=verdict.match)
        await asyncio.sleep(3 * WAIT_S)
        await after.says(Action.STOP, unplayed=Unplayed.BEFORE)
        assert (await after.playing[0]).ranking == report.ranking
        await after.standings()
        assert after.state == "finished"


async def test_the_verdicts_of_a_time_are_listed_with_what_can_be_void(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eve is absent at the first table of an elimination, in `two`, and in what is stopped."""
    seed = SimpleNamespace(token_hex=lambda count: "51" * count)
    async with evening(tmp_path) as here:
        await here.arena.come(*NAMES, tables=4)
        five = (*NAMES, "eve")
        with monkeypatch.context() as patch:
            patch.setattr(live_arena, "secrets", seed)
            await here.arena.begin(plan_for("high_low", five, Form.ELIMINATION, wait_s=1.0))
        await here.arena.begin(plan_for("ace_king_queen", ("ann", "eve"), run="two", wait_s=1.0))
        async with here.arena.bot("mute"):
            three = plan_for("ace_king_queen", ("ann", "mute", "eve"), wait_s=1.0)
            stopped = here.arena.begin(three)
            await asyncio.sleep(2)
            await here.says(Action.STOP)
            await stopped

        done = await here.says(Action.VOID, since=0.0)
        drawn, listed, late = done.verdicts
        assert [(each.bot, each.kind) for each in done.verdicts] == [("eve", "absent")] * 3
        assert "what came after it was drawn" in drawn.refusal
        assert (listed.refusal, late.refusal.rpartition(" ")[2]) == ("", "stopped")
        within = {"since": listed.at, "until": listed.at}
        assert (await here.says(Action.VOID, **within)).verdicts == (listed,)
        assert (await here.says(Action.VOID, since=0.0, competition="two")).verdicts == (listed,)
        await here.says(Action.VOID, match=listed.match)
        assert (await here.says(Action.VOID, **within)).verdicts == ()


async def test_K4_a_ladder_that_is_over_stays_over_without_a_match(tmp_path: Path) -> None:
    async with evening(tmp_path) as here:
        await here.arena.come("ann", "ben")
        plan = plan_for("ace_king_queen", (), Form.LADDER, pause_s=1.0)
        played = here.arena.begin(ladder := here.arena.host.compete(plan))
        await asyncio.sleep(5)
        match, *_ = here.matches("ann", "ben")
        done = await here.says(Action.VOID, match=match.id)
        assert done.text == f"{match.id} is void; {ladder.id} is rated without it"
        ladder.close()
        await played
        match, *_ = matches = [each for each in here.matches("ann", "ben") if each.counts]
        done = await here.says(Action.VOID, match=match.id)
        assert done.text == f"{match.id} is void; {ladder.id}, which is over, is rated without it"
        left = len(matches) - 1
        assert await here.standings() == dict.fromkeys(("ann", "ben"), (left, ""))
        assert here.state == "finished"


async def test_a_match_is_made_void_in_the_moment_of_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with evening(tmp_path) as here:
        write = here.arena.store.competition_finished
        voids: list[asyncio.Task[Done]] = []

        def void() -> None:
            [match, *_] = here.matches("ann", "ben")
            voids.append(asyncio.ensure_future(here.says(Action.VOID, match=match.id)))

        def finished(*about: Any) -> None:
            write(*about)
            here.arena.store.flush()
            if not voids:
                void()

        monkeypatch.setattr(here.arena.store, "competition_finished", finished)
        await cup(here.arena, "ann", "ben", "cem")
        await here.playing[0]
        assert (await voids[0]).text.endswith(" goes on for it")
        assert (await here.standings(), here.state) == (BEFORE, "finished")
        assert [match.counts for match in here.matches("ann", "ben")] == [False, True, True]


async def leaves(host: HostWithInstructor, how: str) -> None:
    """Dora comes, is asked, and leaves; then the arena has ruled."""
    async with host.arena.bot("dora") as dora:
        await dora.ready()
        await dora.hears("ask")
        if how == "goodbye":
            await dora.say(type="goodbye")
        else:
            await dora.vanish()
    await asyncio.sleep(3 * WAIT_S)


async def test_J9_who_leaves_what_is_played_again_gains_nothing_by_it(tmp_path: Path) -> None:
    async with evening(tmp_path) as host:
        await host.arena.come("ann")
        plan = plan_for("ace_king_queen", ("ann", "dora"), settings={"hands": 4}, wait_s=WAIT_S)
        [verdict] = (await host.arena.begin(plan)).verdicts
        await host.says(Action.VOID, match=verdict.match)
        await leaves(host, "cut")
        assert host.arena.host.competitions[0].ledger.verdicts == []
        await leaves(host, "cut")
        await host.arena.store.flushed()
        texts = [act.text for act in host.arena.store.actions()]
        [line] = [text for text in texts if "not for the first time" in text]
        [competition] = host.arena.host.competitions
        await host.says(Action.RESUME)
        await leaves(host, "goodbye")

        assert "was void as dora was away, dora not for the first time; ahead was" in line
        assert [(each.bot, each.kind) for each in competition.ledger.verdicts] == [
            ("dora", "disconnect")
        ]
