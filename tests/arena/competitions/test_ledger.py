"""Competitions that go on from any moment of what was played end as if nothing had happened."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from arena.competitions.ledger import Ledger
from arena.formats import ladder as ladder_module
from arena.formats.ladder import SIGMA
from arena.formats.schedule import Pairing
from arena.formats.scorebook import ScheduleRun
from arena.formats.spec import Form, Plan
from arena.games.match import MatchResult
from arena.games.verdict import were_away
from arena.storage.live_results import LiveResults
from arena.storage.models import ARENA, VERSION, Outage
from arena.storage.store import Act, MatchRow, Store, new_id
from protocol.errors import ArenaError
from protocol.messages import Ending, Termination
from tests.support.fake_bots import FakeArena
from tests.support.fake_host import SOON, FakeHost, FakeStore, at_random, illegal, in_time
from tests.support.written_competition import RECORD
from tests.support.written_competition import plan as plan_of_form

pytestmark = pytest.mark.virtual_time

THREE = ("ann", "ben", "cem")
TEN = tuple(f"bot {number}" for number in range(10))

FORMS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "round robin": (("ann", "ben", "cem", "rogue"), {"matches": 2}),
    "with itself": (THREE, {"with_itself": True}),
    "league": (("ann", "rogue", "cem"), {"game": "blackjack", "matches": 3}),
    "elimination": (TEN, {"game": "high_low"}),
}


def come(host: FakeHost, names: tuple[str, ...], seed: int = 4) -> None:
    """All bots, two of which may be rogues."""
    plays = at_random(seed)
    for name in names:
        rogue = name in ("rogue", "bot 3")
        host.comes(name, illegal if rogue else plays, tables=2)


async def played(house: FakeArena, form: str) -> FakeHost:
    """A competition that has been played to its end."""
    host = FakeHost(house)
    names, plan = FORMS[form]
    come(host, names)
    await host.play(*names, **plan)
    return host


def as_of(host: FakeHost, count: int) -> dict[str, Any]:
    """What a database had when so many matches were over."""
    rows = host.book.rows[:count]
    ids = {row.id for row in rows}
    verdicts = [verdict for verdict in host.book.verdicts if verdict.match in ids]
    return {"earlier": [row for row in rows if row.counts], "verdicts": verdicts}


def beyond(plan: Plan, counted: Mapping[int, MatchRow]) -> set[int]:
    """The results that the schedule does not ask for yet, or at all."""
    run = ScheduleRun(plan)
    run.run({number: row.result for number, row in counted.items()})
    return counted.keys() - run.asked.keys()


# --- resume ---


@pytest.mark.parametrize("form", FORMS)
async def test_after_any_match_the_rest_is_played_and_nothing_twice(
    house: FakeArena, form: str
) -> None:
    first = await played(house, form)
    names, plan = FORMS[form]
    assert len(first.book.rows) > 3
    for count in range(len(first.book.rows) + 1):
        before = as_of(first, count)
        host = FakeHost(house)
        come(host, names, seed=count)
        competition = host.compete(*names, **plan, **before)
        report = await in_time(competition.run())

        earlier = before["earlier"]
        rows = (*earlier, *host.book.results())
        numbers = [row.pairing for row in rows]
        assert len(numbers) == len(set(numbers)) == report.played
        assert not beyond(competition.plan, {row.pairing: row for row in rows})
        out = {verdict.bot for verdict in report.verdicts}
        if form == "elimination":
            placed = [name for place in report.ranking for name in place.names]
            assert sorted(placed) == sorted(names)
            assert sorted(numbers) == list(range(1, len(numbers) + 1))
        else:
            met = Counter(frozenset(row.players) for row in rows if out.isdisjoint(row.players))
            assert set(met.values()) == {plan.get("matches", 1)}
            left = [name for name in names if name not in out]
            assert set().union(*met) == set(left)
        assert out == {"rogue", "bot 3"} & set(names)


@pytest.mark.parametrize("form", FORMS)
async def test_what_is_complete_is_not_played_again_and_comes_to_the_same(
    house: FakeArena, host: FakeHost, form: str
) -> None:
    first = await played(house, form)
    names, plan = FORMS[form]
    report = await first.competition.run()  # nobody asks for it, but it may be
    again = await host.play(*names, **plan, **as_of(first, len(first.book.rows)), wait_s=SOON)

    assert host.book.matches == []
    assert again.standings == report.standings
    assert again.cross_table == report.cross_table
    assert again.ranking == report.ranking
    assert again.verdicts == report.verdicts
    assert again.played == report.played


async def test_results_of_other_bots_are_refused_in_a_line(
    house: FakeArena, host: FakeHost
) -> None:
    first = FakeHost(house)
    come(first, ("ann", "ben"))
    await first.play("ann", "ben")
    come(host, ("ann", "cem"))
    with pytest.raises(ArenaError) as caught:
        await host.play("ann", "cem", earlier=first.book.results())

    text = str(caught.value)
    assert text.startswith("expected ")
    assert "got " in text
    assert "arena verify" in text
    assert "\n" not in text
    assert host.book.matches == []


# --- what is taken back ---


def ledger(house: FakeArena, *rows: MatchRow, **state: Any) -> Ledger:
    plan = FakeHost(house).plan("ann", "ben", "cem", **state.pop("plan", {}))
    store = cast(Store, state.pop("store", FakeStore()))
    return Ledger("c", plan, store, rows, **state)


def outage(number: int, pairing: int, away: str, began: float, ended: float) -> Outage:
    scores = {"ann": 3, "ben": -3, "cem": 0}
    return Outage(
        match=f"m{number}",
        pairing=pairing,
        away=tuple(away.split()),
        scores=scores,
        started_at=began,
        finished_at=ended,
    )


@pytest.mark.parametrize(
    ("outages", "resumed_at", "waits"),
    [
        ([outage(1, 7, "ann ben", 0, 10)], None, ""),
        ([outage(1, 7, "ann ben", 0, 10), outage(2, 7, "cem", 10, 20)], None, ""),
        ([outage(1, 7, "ann ben", 0, 10), outage(2, 7, "ben cem", 10, 20)], None, "ben"),
        # of other pairings: one outage that ends many matches, and two
        ([outage(1, 6, "ann ben", 0, 10), outage(2, 7, "ann ben", 5, 11)], None, ""),
        ([outage(1, 6, "ann ben", 0, 10), outage(2, 7, "ann ben", 12, 20)], None, "ann and ben"),
        # the instructor has had it played again since, or before
        ([outage(1, 7, "ann", 0, 10), outage(2, 7, "ann", 10, 20)], 21.0, ""),
        ([outage(1, 7, "ann", 0, 10), outage(2, 7, "ann", 10, 20)], 9.0, "ann"),
        ([outage(1, 7, "ann", 0, 10), outage(2, 8, "ann", 10, 20)], None, ""),
    ],
)
def test_J9_the_second_outage_with_the_same_bot_waits(
    house: FakeArena, outages: list[Outage], resumed_at: float | None, waits: str
) -> None:
    acts = () if resumed_at is None else (Act(at=resumed_at, who="prof", what="resume"),)
    why = ledger(house, outages=outages, acts=acts).left_again(Pairing(7, ("ann", "ben", "cem")))
    away = were_away(outages[-1].away)
    expected = (
        f"match m2 was void as {away}, {waits} not for the first time; "
        "ahead was ann 3, before cem 0, ben -3"
    )
    assert why == (expected if waits else None)


ILLEGAL = Termination(Ending.ILLEGAL, 0, "seat 1 answered 4")


# --- versions on a ladder ---

NAMES = ("ann", "ben", "cem", "dan")
WAYS = {  # a match has ended: scores, and how
    "won": ((3, -3), Termination(Ending.COMPLETED)),
    "lost": ((-3, 3), Termination(Ending.COMPLETED)),
    "drawn": ((0, 0), Termination(Ending.COMPLETED)),
    "offence": ((0, 0), ILLEGAL),
    "void": ((0, 0), Termination(Ending.VOID)),
}
STEPS = st.one_of(
    st.tuples(st.just("match"), st.permutations(NAMES), st.sampled_from([*WAYS, "won", "lost"])),
    st.tuples(st.just("version"), st.sampled_from(NAMES), st.integers(1, 3)),
    st.tuples(st.just("back"), st.integers(0, 9), st.none()),
    st.tuples(st.just("remove"), st.sampled_from(NAMES), st.none()),
    st.tuples(st.sampled_from(("restart", "look", "peek", "turn", "rated")), st.none(), st.none()),
)


WON: Any = ("match", NAMES, "won")
LOOK: Any = ("look", None, None)


class WrittenLadder:
    """A ladder in a database, whose ledger is told what happens."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.id = new_id("gin_rummy")
        self.plan = plan_of_form(Form.LADDER, NAMES[:3])
        store.competition_started(self.id, self.plan, 0.0)
        store.flush()
        self.live = Ledger(self.id, self.plan, store)
        self.results = LiveResults(store, self.id)
        self.versions = dict.fromkeys(NAMES, "connected")
        self.counting: list[str] = []
        self.numbers = 0

    def again(self) -> Ledger:
        """The ledger of an arena that is started now."""
        self.store.flush()
        rows, acts = self.store.results(self.id), self.store.actions(self.id)
        changes = self.store.version_changes(self.id)
        return Ledger(self.id, self.plan, self.store, rows, acts, changes=changes)

    async def does(self, what: str, first: Any, second: Any) -> None:
        match what:
            case "match":
                self.plays(first[:2], second)
            case "version":
                self.versions[first] = f"v{second}"
                self.live.version_in_play(first, f"v{second}", 0.0)
            case "back" if self.counting:
                match_ = self.counting.pop(first % len(self.counting))
                self.store.flush()
                self.live.take_back(match_, self.act("void", match=match_))
            case "remove":
                self.store.acted(self.act("remove", bot=first))
                self.live.remove(first, "removed")
            case "restart":
                await self.live.rated()
                self.live = self.again()
            case "look":
                self.store.flush()
                self.results.update()
            case "peek":  # while it is being written
                self.results.update()
            case "turn":
                await asyncio.sleep(0.001)
            case "rated":
                await self.live.rated()

    def plays(self, players: Sequence[str], way: str) -> None:
        self.numbers += 1
        scores, ended = WAYS[way]
        versions = tuple(self.versions[name] for name in players)
        record = msgspec.structs.replace(RECORD, versions=versions)
        result = MatchResult(scores, (0, 0), ended, record=record)
        pairing = Pairing(self.numbers, tuple(players))
        match = f"{self.id}-{self.numbers}"
        self.live.note(match, pairing, result, None, 0.0, 1.0)
        if way != "void":
            self.counting.append(match)

    def act(self, what: str, **about: Any) -> Act:
        return Act(competition=self.id, at=0.0, who="Eva", what=what, text="removed", **about)


@pytest.fixture(scope="module")
def written_ladders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A database for all examples, as making one takes longer than an example."""
    with Store(tmp_path_factory.mktemp("ladders") / "arena.db") as store:
        yield store


@given(steps=st.lists(STEPS, min_size=1, max_size=30))
@settings(max_examples=40, deadline=None)
@example([WON, ("version", "ann", 2), WON, LOOK, WON])  # a reader reads a bit at a time
@example(
    [WON, WON, ("back", 0, None), WON, ("version", "ann", 2), WON]
)  # it is rated anew meanwhile
@example([WON, ("match", NAMES, "void"), ("version", "ann", 2), ("restart", None, None), WON])
@example([WON, WON, ("version", "ann", 2), ("back", 1, None), WON])  # its match counts no more
@example([("match", NAMES[::-1], "won"), ("version", "cem", 2), ("remove", "dan", None), WON])
def test_K4_ratings_are_the_same_while_it_is_played_after_a_restart_and_for_readers(
    written_ladders: Store, steps: list[tuple[str, Any, Any]]
) -> None:
    async def played() -> WrittenLadder:
        ladder = WrittenLadder(written_ladders)
        for step in steps:
            await ladder.does(*step)
        await ladder.live.rated()
        return ladder

    with pytest.MonkeyPatch.context() as patch:
        # Else it would take dozens of matches until a version changes anything.
        patch.setattr(ladder_module, "NEW_VERSION", SIGMA)
        ladder = asyncio.run(played())
        again = ladder.again()
        ladder.results.update()
        fresh = LiveResults(written_ladders, ladder.id)

    assert again.book.rows == ladder.live.book.rows
    assert fresh.standings == ladder.results.standings == again.book.rows
    assert fresh.book.versions == ladder.results.book.versions == again.book.versions
    assert not ladder.results.update()


@pytest.mark.parametrize("rates_anew", [False, True])
async def test_K4_a_version_is_rated_where_it_came_into_play(
    database: str, rates_anew: bool
) -> None:
    with Store(database) as store:
        ladder = WrittenLadder(store)
        for _ in range(30):
            ladder.plays(("ann", "ben"), "won")
            ladder.plays(("ann", "ben"), "lost")
        ladder.plays(("ann", "cem"), "void")
        known = ladder.live.ladder().climber("ann").sigma
        if rates_anew:
            await ladder.does("back", 0, None)
        ladder.live.version_in_play("ann", "v2", 7.0)
        ladder.live.version_in_play("ann", "v2", 8.0)
        await ladder.live.rated()
        ladder.store.flush()
        [*_, written] = store.actions(ladder.id)
        changed = ladder.live.ladder().climber("ann")

        assert known < SIGMA / 2 == changed.sigma
        assert ladder.again().ladder().climber("ann").sigma == SIGMA / 2
        assert written == Act(
            competition=ladder.id,
            at=7.0,
            who=ARENA,
            what=VERSION,
            match=f"{ladder.id}-61",
            bot="ann",
            text="ann v2 is in play",
        )


def test_K4_an_arena_that_is_started_again_does_not_bring_a_version_into_play_once_more(
    written_ladders: Store,
) -> None:
    ladder = WrittenLadder(written_ladders)
    ladder.live.version_in_play("ann", "v2", 1.0)
    again = ladder.again()
    again.version_in_play("ann", "v2", 2.0)
    again.version_in_play("ann", "v1", 3.0)
    written_ladders.flush()

    assert [act.text for act in written_ladders.actions(ladder.id)] == [
        "ann v2 is in play",
        "ann v1 is in play",
    ]
