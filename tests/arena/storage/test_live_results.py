from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

import arena
from arena.competitions.ledger import Ledger
from arena.formats.bracket import StageStatus
from arena.formats.formats import schedule_of
from arena.formats.intervals import IntervalUnit, unit_kind
from arena.formats.schedule import Outcome, Pairing
from arena.formats.spec import Form, plan_of
from arena.formats.standings import RoundRobin
from arena.games import GAMES
from arena.storage.live_results import LiveResults
from arena.storage.models import CompetitionState
from arena.storage.store import Store
from protocol.errors import ArenaError, UsageError
from protocol.messages import Ending, Termination
from protocol.strategy import house_bots
from tests.support.sample_database import from_outside, missing
from tests.support.written_competition import COMPLETED, WrittenCompetition, names, offence, plan


def seen(results: LiveResults) -> tuple[Any, ...]:
    """All results."""
    return (
        results.competition,
        results.played,
        results.standings,
        results.cross_table,
        results.ranking,
        results.out,
        results.verdicts,
        results.progress,
    )


# ---- Games that are gone


def test_an_elimination_that_goes_on_has_no_bracket_without_its_rules(store: Store) -> None:
    with from_outside("high_low"):
        course = WrittenCompetition(store, plan(Form.ELIMINATION, names(8), package="leduc 1.0"))
        first, _ = next(schedule_of(course.plan))
        course.plays(1, first.players, (4, 3, -2, -5))
    with missing("high_low"):
        results = LiveResults(store, course.id)

        assert (results.played, results.standings, results.stages) == (1, (), ())
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


def test_a_round_robin_that_nobody_has_begun(store: Store) -> None:
    course = WrittenCompetition(store, plan(Form.ROUND_ROBIN, ("ann", "ben", "cem")))
    results = LiveResults(store, course.id)

    assert [row.name for row in results.standings] == ["ann", "ben", "cem"]
    assert (results.progress.settled, results.progress.scheduled) == (0, 3)
    assert results.progress.left_s is None
    assert not results.is_over
    assert results.update() is False


def test_a_round_robin_as_it_goes_on(store: Store) -> None:
    course = WrittenCompetition(store, plan(Form.ROUND_ROBIN, ("ann", "ben", "cem"), matches=2))
    results = LiveResults(store, course.id)
    course.plays(1, ("ann", "ben"), (5, -5))
    course.plays(2, ("cem", "ben"), (1, -1))
    course.plays(3, ("ann", "cem"), (0, 0), Termination(Ending.VOID))

    assert results.update() is True
    assert [(row.name, row.wins, row.score) for row in results.standings] == [
        ("ann", 1, 5),
        ("cem", 1, 1),
        ("ben", 0, -6),
    ]
    assert results.cross_table["ben"]["cem"].score == -1
    assert results.played == 2
    assert (results.progress.settled, results.progress.scheduled) == (2, 6)
    assert results.progress.left_s == 40  # four more, ten seconds each
    assert results.update() is False


def test_a_pause_is_not_counted_as_play(store: Store) -> None:
    course = WrittenCompetition(store, plan(Form.ROUND_ROBIN, ("ann", "ben", "cem"), matches=3))
    results = LiveResults(store, course.id)
    course.plays(1, ("ann", "ben"), (5, -5))
    course.plays(2, ("cem", "ben"), (1, -1))
    course.now += 3600
    store.state_changed(course.id, CompetitionState.RUNNING, course.act("resume"))
    store.flush()
    results.update()
    assert results.progress.left_s is None, "it has just gone on"

    course.plays(3, ("ann", "cem"), (0, 0))
    course.plays(4, ("ben", "ann"), (5, -5))
    results.update()

    assert results.progress.left_s == 50  # five more, ten seconds each
    assert seen(results) == seen(LiveResults(store, course.id))


def test_who_has_one_table_does_not_hold_the_others_up(store: Store) -> None:
    """A bot that has met all others and never itself will not meet itself."""
    course = WrittenCompetition(store, plan(Form.ROUND_ROBIN, ("ann", "ben"), with_itself=True))
    results = LiveResults(store, course.id)
    course.plays(1, ("ann", "ann"), (1, -1))
    results.update()
    assert (results.progress.settled, results.progress.scheduled) == (1, 3)

    course.plays(2, ("ann", "ben"), (1, -1))
    results.update()
    assert (results.progress.settled, results.progress.scheduled) == (3, 3)


def test_an_offender_is_struck_and_its_matches_are_settled(store: Store) -> None:
    course = WrittenCompetition(store, plan(Form.ROUND_ROBIN, names(4), matches=2))
    results = LiveResults(store, course.id)
    course.plays(1, ("bot-0", "bot-1"), (5, -5))
    course.plays(2, ("bot-1", "bot-2"), (0, 0), offence(0))
    results.update()

    assert results.standings[-1].name == "bot-1"
    assert results.standings[-1].eliminated == offence(0)
    assert results.out == {"bot-1": offence(0)}
    assert [verdict.match for verdict in results.verdicts] == ["a-competition-2"]
    assert results.cross_table["bot-0"] == {}
    # its six, of twelve
    assert (results.progress.settled, results.progress.scheduled) == (6, 12)


def test_an_offence_that_was_taken_back_is_none(store: Store) -> None:
    course = WrittenCompetition(store, plan(Form.ROUND_ROBIN, ("ann", "ben")))
    match = course.plays(1, ("ann", "ben"), (0, 0), offence(0))
    results = LiveResults(store, course.id)
    assert "ann" in results.out

    course.takes_back(match)
    results.update()
    assert (results.out, results.verdicts, results.played) == ({}, (), 0)

    course.plays(1, ("ann", "ben"), (1, -1))
    results.update()
    assert [row.name for row in results.standings] == ["ann", "ben"]
    assert results.played == 1


def test_who_was_removed_is_struck_with_what_it_had(store: Store) -> None:
    course = WrittenCompetition(store, plan(Form.ROUND_ROBIN, ("ann", "ben", "cem")))
    results = LiveResults(store, course.id)
    course.plays(1, ("ann", "ben"), (5, -5))
    results.update()
    course.removes("ann")

    assert results.update() is True
    assert [(row.name, row.score) for row in results.standings] == [
        ("ben", 0),
        ("cem", 0),
        ("ann", 0),
    ]
    assert results.out["ann"].kind is Ending.REMOVED
    assert results.out["ann"].text == "removed by prof"


def test_a_league(store: Store) -> None:
    course = WrittenCompetition(store, plan(Form.LEAGUE, ("ann", "ben"), matches=3))
    results = LiveResults(store, course.id)
    course.plays(1, ("ann",), (1000,))
    course.plays(2, ("ben",), (-1000,))
    course.plays(3, ("ann",), (-1000,))
    results.update()

    assert [(row.name, row.value) for row in results.standings] == [("ann", 0.5), ("ben", 0.0)]
    assert (results.progress.settled, results.progress.scheduled) == (3, 6)
    assert results.cross_table == {}


def test_a_ladder_has_no_end_and_strikes_no_offender(store: Store) -> None:
    course = WrittenCompetition(store, plan(Form.LADDER, ("ann", "ben")))
    results = LiveResults(store, course.id)
    course.plays(1, ("ann", "ben"), (0, 0), offence(0))
    course.plays(2, ("ben", "cem"), (1, 0))
    results.update()

    assert [row.name for row in results.standings] == ["ben", "cem", "ann"]
    assert results.out == {}
    assert (results.progress.settled, results.progress.scheduled) == (2, 2)
    assert results.progress.left_s is None


@pytest.mark.parametrize("is_over", [False, True])
def test_J3_who_was_removed_from_a_ladder_is_struck_and_the_others_are_rated_anew(
    store: Store, is_over: bool
) -> None:
    course = WrittenCompetition(store, plan(Form.LADDER, ("ann", "ben")))
    course.plays(1, ("ann", "ben"), (1, 0))
    course.plays(2, ("cem", "ann"), (1, 0))
    course.plays(3, ("ben", "ann"), (1, 0))
    course.plays(4, ("cem", "dan"), (1, 0))
    results = LiveResults(store, course.id)
    if is_over:
        course.ends()
    course.removes("cem")

    assert results.update() is True
    assert seen(results) == seen(LiveResults(store, course.id))
    other = WrittenCompetition(store, plan(Form.LADDER, ("ann", "ben")), "without-cem")
    other.plays(1, ("ann", "ben"), (1, 0))
    other.plays(3, ("ben", "ann"), (1, 0))
    without = LiveResults(store, other.id).standings
    *rest, cem = results.standings
    assert tuple(rest[:2]) == without
    assert [(row.name, row.rank, row.played) for row in rest[2:]] == [("dan", None, 0)]
    assert (cem.name, cem.rank, cem.played) == ("cem", None, 0)
    assert cem.eliminated == results.out["cem"]
    assert cem.eliminated.text == "removed by prof"
    assert results.played == 4, "they stay in the record"


@pytest.mark.parametrize("state", [CompetitionState.FINISHED, CompetitionState.STOPPED])
def test_J3_who_is_removed_after_the_end_is_struck(store: Store, state: CompetitionState) -> None:
    course = WrittenCompetition(store, plan(Form.ROUND_ROBIN, ("ann", "ben", "cem")))
    course.plays(1, ("ann", "ben"), (5, -5))
    course.plays(2, ("ann", "cem"), (5, -5))
    course.plays(3, ("ben", "cem"), (1, -1))
    course.ends(state)
    results = LiveResults(store, course.id)
    assert results.standings[0].name == "ann"
    course.removes("ann")

    assert results.update() is True
    assert seen(results) == seen(LiveResults(store, course.id))
    assert [(row.rank, row.name, row.score) for row in results.standings] == [
        (1, "ben", 1),
        (2, "cem", -1),
        (None, "ann", 0),
    ]
    assert results.cross_table.keys() == {"ben", "cem"}
    assert results.competition.state is state


def test_J3_who_is_removed_from_a_league_that_is_over_is_struck(store: Store) -> None:
    course = WrittenCompetition(store, plan(Form.LEAGUE, ("ann", "ben")))
    course.plays(1, ("ann",), (1000,))
    course.plays(2, ("ben",), (-1000,))
    course.ends()
    course.removes("ann")

    ben, ann = LiveResults(store, course.id).standings
    assert (ben.rank, ben.name, ann.rank, ann.value) == (1, "ben", None, None)
    assert ann.eliminated is not None


def tables(course: WrittenCompetition) -> list[Pairing]:
    return list(next(schedule_of(course.plan)))


def test_an_elimination_shows_who_is_in_and_who_is_out(store: Store) -> None:
    course = WrittenCompetition(store, plan(Form.ELIMINATION, names(9)))
    results = LiveResults(store, course.id)
    first, second = tables(course)
    resting = set(names(9)) - {*first.players, *second.players}
    course.plays(first.number, first.players, (4, 3, 2, -9))
    results.update()
    by_name = {row.name: row for row in results.standings}

    assert [by_name[name].stands for name in first.players] == [
        StageStatus.THROUGH,
        StageStatus.THROUGH,
        StageStatus.OUT,
        StageStatus.OUT,
    ]
    assert {by_name[name].stands for name in second.players} == {StageStatus.PLAYING}
    assert [by_name[name].stands for name in resting] == [StageStatus.BYE]
    assert [row.stands for row in results.standings[-2:]] == [StageStatus.OUT, StageStatus.OUT]
    assert results.ranking == ()

    course.plays(second.number, second.players, (0, 0, 0, 0), offence(2))
    course.removes(second.players[0])
    results.update()
    by_name = {row.name: row for row in results.standings}
    offender = by_name[second.players[2]]
    assert (offender.stands, offender.stage) == (StageStatus.OUT, 1)
    assert offender.eliminated == offence(2)
    removed = by_name[second.players[0]]
    assert removed.eliminated is not None
    assert (removed.stage, removed.eliminated.kind) == (2, Ending.REMOVED)
    left = [row.name for row in results.standings if row.stands is not StageStatus.OUT]
    assert set(left) == {*first.players[:2], *second.players, *resting} - {offender.name}


def test_the_ranking_of_an_elimination_is_computed_before_it_is_written(store: Store) -> None:
    course = WrittenCompetition(store, plan(Form.ELIMINATION, names(4)))
    (final,) = tables(course)
    course.plays(final.number, final.players, (4, 3, 2, -9))
    results = LiveResults(store, course.id)

    assert [placed.names for placed in results.ranking] == [(name,) for name in final.players]
    course.ends(ranking=results.ranking)
    results.update()
    assert results.competition.ranking == results.ranking
    assert (results.progress.settled, results.progress.scheduled) == (1, 1)
    assert results.is_over


def test_a_table_that_was_never_drawn_is_told(store: Store) -> None:
    course = WrittenCompetition(store, plan(Form.ELIMINATION, names(9)))
    course.plays(7, names(4), (4, 3, 2, -9))

    with pytest.raises(ArenaError, match="expected a table of stage 1, got table 7"):
        LiveResults(store, course.id)


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
    assert results.played == 60


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


@pytest.mark.parametrize("seed", range(3))
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
    assert results.played == len(store.results(course.id))
    assert course.numbers > 3


@pytest.mark.parametrize("seed", range(3))
def test_following_comes_to_the_same_as_counting_by_hand(store: Store, seed: int) -> None:
    course = WrittenCompetition(store, plan(Form.ROUND_ROBIN, names(6), matches=2))
    results = LiveResults(store, course.id)
    chance = Chance(course, seed)
    for _ in range(40):
        chance.step()
        results.update()
    counted = [match for match in store.matches(course.id) if match.counts]
    out = {act.bot for act in store.actions() if act.what == "remove"} | {
        match.players[seat]
        for match in counted
        if (seat := match.result.termination.seat) is not None
    }
    score = dict.fromkeys(set(names(6)) - out, 0)
    for match in counted:
        if not out & set(match.players):
            for name, won in zip(match.players, match.result.scores, strict=True):
                score[name] += won

    assert {row.name: row.score for row in results.standings if row.rank} == score
    assert {row.name for row in results.standings if row.rank is None} == out
    assert len(out) > 0


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


# ---- What is forgiven


def test_J3_events_are_counted_as_they_are_read(store: Store) -> None:
    players = ("ann", "ben", "cem")
    of = plan(Form.ROUND_ROBIN, players, matches=2, forgive=1)
    course = WrittenCompetition(store, of)
    results = LiveResults(store, course.id)
    crash = offence(0, Ending.CRASH)

    def ann() -> Any:
        results.update()
        assert seen(results) == seen(LiveResults(store, course.id))
        return next(row for row in results.standings if row.name == "ann")

    course.plays(1, ("ann", "ben"), (0, 0), crash, event="one")
    assert (ann().played, ann().forgiven, results.out) == (1, 1, {})
    course.plays(2, ("ann", "cem"), (0, 0), crash, event="one")
    assert (ann().played, ann().forgiven, results.out) == (2, 2, {})
    assert [verdict.forgiven for verdict in results.verdicts] == [True, True]
    third = course.plays(3, ("ann", "ben"), (0, 0), crash, event="two")
    assert (ann().rank, ann().played) == (None, 0)
    assert results.out == {"ann": crash}
    assert [verdict.forgiven for verdict in results.verdicts] == [True, True, False]
    course.takes_back(third)
    assert (ann().played, ann().forgiven, results.out) == (2, 2, {})


def test_J3_when_the_first_event_is_taken_back_the_second_is_forgiven(store: Store) -> None:
    of = plan(Form.LEAGUE, ("ann", "ben"), matches=3, forgive=1)
    course = WrittenCompetition(store, of)
    results = LiveResults(store, course.id)
    first = course.plays(1, ("ann",), (-100,), offence(0, Ending.ABSENT), event="one")
    course.plays(2, ("ann",), (-100,), offence(0, Ending.TIMEOUT), event="two")
    results.update()
    assert "ann" in results.out

    course.takes_back(first)
    results.update()
    assert results.out == {}
    assert [verdict.forgiven for verdict in results.verdicts] == [True]


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
        assert results.cross_table == expected.cross_table()
        assert results.unit == ledger.book.unit == results.summary().unit
    assert results.unit == IntervalUnit("hand", 50, 0)
    assert all(row.method == "Student" for row in results.standings)
