from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import arena
from arena.competitions.ledger import Ledger
from arena.formats.formats import open_stages, schedule_of
from arena.formats.intervals import IntervalUnit, unit_kind
from arena.formats.schedule import Outcome, Pairing
from arena.formats.spec import Form, plan_of
from arena.formats.standings import RoundRobin
from arena.games.catalogue import GAMES
from arena.records.luck import LuckSums
from arena.results.luck_table import LuckTable
from arena.storage.live_results import LiveResults
from arena.storage.models import MatchSums
from arena.storage.store import Store
from protocol.errors import UsageError
from protocol.messages import Ending, Termination
from protocol.strategy import house_bots
from tests.support.cases import CaseFile, StepByStep
from tests.support.sample_database import from_outside, missing
from tests.support.written_competition import (
    COMPLETED,
    WrittenCompetition,
    begun,
    names,
    offence,
    plan,
)

CASES = CaseFile(Path(__file__).with_name("live_results.cases"))


def seen(results: LiveResults) -> tuple[Any, ...]:
    """All results."""
    return (
        results.competition,
        results.book.played,
        results.standings,
        results.book.cross_table,
        results.ranking,
        results.out,
        results.verdicts,
        results.progress,
    )


# ---- Without luck


@pytest.mark.parametrize("form", [Form.ROUND_ROBIN, Form.LADDER])
def test_luck_is_of_the_bots_and_matches_of_the_standings(store: Store, form: Form) -> None:
    """Of a round robin an offender is struck; a ladder keeps it, but not the match that it ended."""
    course = WrittenCompetition(store, plan(form, ("ann", "ben", "cem")))
    played = [
        course.plays(1, ("ann", "ben"), (4, -4)),
        course.plays(2, ("ann", "cem"), (9, -9)),
        course.plays(3, ("ben", "ann"), (1, -1)),
        course.plays(4, ("ben", "cem"), (0, 0), offence(1)),
    ]
    luck = [LuckSums(2, gains, (0.0, 0.0), None) for gains in ((4, -4), (9, -9), (1, -1), (0, 0))]
    store.sums_made(zip(played, (MatchSums(luck=each) for each in luck), strict=True))
    store.flush()
    results = LiveResults(store, course.id)
    lines = LuckTable(results.luck(), results.unranked).lines()

    if form is Form.LADDER:
        assert {name: line.matches for name, line in lines.items()} == {
            "ann": 3,
            "ben": 2,
            "cem": 1,
        }
        course.removes("cem")
        store.flush()
        results.update()
        without = LuckTable(results.luck(), results.unranked).lines()
        assert {name: line.matches for name, line in without.items()} == {"ann": 2, "ben": 2}
        return
    rows = {row.name: (row.played, row.mean) for row in results.standings if row.rank is not None}
    assert {name: (line.matches, line.gain) for name, line in lines.items()} == rows
    assert rows == {"ann": (2, 1.5), "ben": (2, -1.5)}


def test_luck_has_no_line_of_a_house_bot_that_fills_an_elimination(store: Store) -> None:
    names = "ann", "ben", "cem"
    cup = plan(Form.ELIMINATION, names)
    [table] = open_stages(cup).open[0]
    course = WrittenCompetition(store, cup)
    match = course.plays(1, table.players, (3, 1, -1, -3))
    store.sums_made([(match, MatchSums(luck=LuckSums(2, (3, 1, -1, -3), (0.0,) * 4, None)))])
    store.flush()
    results = LiveResults(store, course.id)

    assert {*LuckTable(results.luck(), results.unranked).lines()} == {*names} < {*table.players}


# ---- Games that are gone


def test_an_elimination_that_goes_on_has_no_bracket_without_its_rules(store: Store) -> None:
    with from_outside("high_low"):
        course = WrittenCompetition(store, plan(Form.ELIMINATION, names(8), package="leduc 1.0"))
        first, _ = next(schedule_of(course.plan))
        course.plays(1, first.players, (4, 3, -2, -5))
    with missing("high_low"):
        results = LiveResults(store, course.id)

        assert (results.book.played, results.standings, results.stages) == (1, (), ())
        assert (results.progress.settled, results.progress.scheduled) == (1, 1)
        assert results.missing is not None
        assert results.missing.startswith("high_low of package leduc 1.0 is not installed")


def test_a_ladder_needs_no_rules(store: Store) -> None:
    course = WrittenCompetition(
        store, plan(Form.LADDER, ("ann", "ben"), package="leduc 1.0"), "ladder-1"
    )
    course.plays(1, ("ann", "ben"), (5, -5))
    before = LiveResults(store, course.id).standings
    with missing(course.plan.game):
        assert LiveResults(store, course.id).standings == before != ()


# ---- Each form


def told(row: Any) -> str:
    """A row of any standings."""
    facts = (
        f"{name}={round(value, 3) if isinstance(value, float) else value}"
        for name in ("score", "value", "rating", "stage", "forgiven", "played")
        if (value := getattr(row, name, None)) not in (None, 0)
    )
    out = "" if row.eliminated is None else f" is out: {row.eliminated.text}"
    first = getattr(row, "stands", None) or getattr(row, "rank", None) or "-"
    return f"{first} {' '.join([row.name, *facts])}{out}"


class FollowedCompetition(StepByStep):
    """A competition by the lines of a case, and somebody who follows it."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store
        self.has_news = False

    def step(self, line: str) -> Iterator[str]:
        if line.partition(" ")[0] not in list(Form):
            return super().step(line)
        self.course = begun(self.store, line)
        self.results = LiveResults(self.store, self.course.id)
        return iter(())

    def does(self, *words: str) -> Iterator[str]:
        if words == ("cross",):
            table = self.results.book.cross_table
            yield (
                ", ".join(f"{a} v {b} {table[a][b].score}" for a in table for b in table[a])
                or "none"
            )
        elif words != ("look",):
            self.course.does(*words)
            self.has_news = True

    def shows(self) -> Iterator[str]:
        results = self.results
        assert results.update() is self.has_news
        self.has_news = False
        assert seen(results) == seen(LiveResults(self.store, self.course.id))
        progress = results.progress
        yield "; ".join(map(told, results.standings))
        state = f"{results.competition.state}, {results.book.played} played"
        left = "" if progress.left_s is None else f", {progress.left_s} s left"
        yield f"{state}, {progress.settled} of {progress.scheduled}{left}"
        if results.verdicts:
            yield ", ".join(f"{one.match}{' forgiven' * one.forgiven}" for one in results.verdicts)
        if results.ranking:
            yield f"ranking {' '.join(name for place in results.ranking for name in place.names)}"


@pytest.mark.parametrize("title", CASES.titles)
def test_a_competition_is_followed(title: str, store: Store) -> None:
    CASES.check(title, FollowedCompetition(store).step)


def tables(course: WrittenCompetition) -> list[Pairing]:
    return list(next(schedule_of(course.plan)))


def test_a_competition_that_is_not_there(store: Store) -> None:
    with pytest.raises(UsageError, match="expected the id of a competition"):
        LiveResults(store, "nothing")


# ---- What an update costs


def test_an_update_reads_what_is_new_and_no_more(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    course = WrittenCompetition(store, plan(Form.ROUND_ROBIN, names(2), matches=100))
    for number in range(1, 61):
        course.plays(number, names(2), (1, -1))
    results = LiveResults(store, course.id)
    counted: list[int] = []
    read = store._read

    def counting(query: Any) -> Any:
        rows = read(query)
        counted.append(len(rows))
        return rows

    monkeypatch.setattr(store, "_read", counting)
    results.update()
    idle, counted[:] = tuple(counted), []
    course.plays(61, names(2), (1, -1))
    results.update()
    busy, counted[:] = tuple(counted), []
    course.takes_back("a-competition-3")
    results.update()

    assert sum(idle) == 1  # the competition itself
    assert sum(busy) == 4  # and a match with two seats
    assert len(idle) <= len(busy) <= 4
    assert sum(counted) > 120
    assert results.book.played == 60


# ---- Whatever happens


class Chance:
    """A competition with random events."""

    def __init__(self, course: WrittenCompetition, seed: int) -> None:
        self.course = course
        self.random = random.Random(seed)
        self.open = self._pairings()
        self.played: dict[int, tuple[str, tuple[str, ...]]] = {}

    def _pairings(self) -> list[Pairing]:
        if self.course.plan.form is Form.LADDER:
            players = self.course.plan.players
            pair = self.random.sample
            return [Pairing(n, tuple(pair(players, 2))) for n in range(1, 41)]
        return tables(self.course)

    def step(self) -> None:
        chance = self.random.random()
        if self.played and chance < 0.15:
            number = self.random.choice(list(self.played))
            match, players = self.played.pop(number)
            self.open.append(Pairing(number, players))
            self.course.takes_back(match)
        elif chance < 0.2:
            self.course.removes(self.random.choice(self.course.plan.players))
        elif self.open:
            self._play(self.open.pop(self.random.randrange(len(self.open))))

    def _play(self, pairing: Pairing) -> None:
        players, chance = pairing.players, self.random.random()
        ended = COMPLETED
        if chance < 0.1:
            ended = Termination(Ending.VOID)
            self.open.append(pairing)
        elif chance < 0.2:
            ended = offence(self.random.randrange(len(players)))
        scores = [self.random.randint(-3, 3) for _ in players]
        match = self.course.plays(pairing.number, players, scores, ended)
        if ended.kind is not Ending.VOID:
            self.played[pairing.number] = match, players


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("form", Form)
def test_following_comes_to_the_same_as_adding_up_at_the_end(
    store: Store, form: Form, seed: int
) -> None:
    course = WrittenCompetition(store, plan(form, names(16)))
    results = LiveResults(store, course.id)
    chance = Chance(course, seed)
    for _ in range(40):
        chance.step()
        if chance.random.random() < 0.5:
            results.update()
            assert seen(results) == seen(LiveResults(store, course.id))
    results.update()

    assert seen(results) == seen(LiveResults(store, course.id))
    assert results.book.played == len(store.results(course.id))
    assert course.numbers > 3


def test_another_process_sees_it_too(store: Store, database: str) -> None:
    course = WrittenCompetition(store, plan(Form.ROUND_ROBIN, ("ann", "ben")))
    with Store(database, create=False) as other:
        results = LiveResults(other, course.id)
        course.plays(1, ("ann", "ben"), (1, -1))
        course.ends()

        assert results.update() is True
        assert results.is_over
        assert results.standings[0].wins == 1
        assert msgspec.to_builtins(results.progress)["state"] == "finished"


def test_the_sums_of_units_reach_the_standings(database: str) -> None:
    rules = GAMES["ace_king_queen"]
    of = plan_of(rules, rules.vocabulary.read_settings({"hands": 100}), ("ann", "ben"), matches=3)
    expected = RoundRobin(of.players, kind=unit_kind(of))
    with Store(database) as store:
        store.competition_started("akq-9", of, 0.0)
        for seed in (1, 2, 3):
            bots = [house_bots(rules.name)[name]() for name in ("nash", "honest")]
            result = arena.play(rules.name, bots, settings={"hands": 100}, seed=seed)
            store.match_finished("akq-9", seed, f"m-{seed}", of.players, result, 1.0, 2.0)
            pairing = Pairing(seed, of.players)
            expected.add(Outcome(pairing, result, units=result.units))
        store.flush()
        results = LiveResults(store, "akq-9")
        ledger = Ledger("akq-9", of, store, store.results("akq-9"))

        assert results.standings == expected.rows() == ledger.book.rows
        assert results.book.cross_table == expected.cross_table()
        assert results.book.unit == ledger.book.unit == results.summary().unit
    assert results.book.unit == IntervalUnit("hand", 50, 0)
    assert all(row.method == "Student" for row in results.standings)
