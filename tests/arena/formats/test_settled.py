"""Competitions with `settle`: their blocks, and what their standings say (K6)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import combinations, permutations

import msgspec
import pytest
from msgspec.structs import replace

from arena.formats import settled
from arena.formats.formats import expected_matches, open_stages, standings_of
from arena.formats.schedule import Outcome, Pairing, Stage
from arena.formats.scorebook import ScheduleRun, Scorebook
from arena.formats.settled import SettledRoundRobin
from arena.formats.spec import Form, Plan, Settling, plan_of
from arena.games.catalogue import game_named
from arena.games.match import Result
from arena.games.settle import Goal, Mark
from arena.games.statistics import SharePart, share_of
from protocol.errors import UsageError
from protocol.messages import Ending, Termination
from tests.arena.formats.test_schedule import result, seated

Play = Callable[[Pairing], Result | None]
NAMES = ("ann", "ben", "cem", "dan")


def plan(
    goal: Goal = Goal.PAIRS,
    players: tuple[str, ...] = NAMES,
    *,
    least: int = 4,
    most: int = 400,
    level: float = 2.0,
) -> Plan:
    game = game_named("gin_rummy")
    settle = Settling(goal=goal, level=level, most=most)
    settings = game.vocabulary.read_settings({"games": 1})
    return plan_of(game, settings, players, matches=least, settle=settle)


def league(goal: Goal = Goal.FIRST, game: str = "blackjack", level: float = 2.0) -> Plan:
    rules = game_named(game)
    settle = Settling(goal=goal, level=level, most=2_000)
    settings = rules.vocabulary.read_settings({})
    return plan_of(rules, settings, NAMES, Form.LEAGUE, matches=20, settle=settle)


def by_strength(seed: int, **shares: float) -> Play:
    """Who is stronger wins more often; a bot without a number has none of its own."""
    rng = random.Random(seed)

    def play(pairing: Pairing) -> Result:
        first, second = pairing.players
        edge = shares.get(first, 0.0) - shares.get(second, 0.0)
        return result(*((1, 0) if rng.random() < 0.5 + edge else (0, 1)))

    return play


def run(chosen: Plan, play: Play) -> tuple[list[Stage], dict[int, Result]]:
    """Play blocks one after the other; returns all of them, and the results by number."""
    stages = open_stages(chosen)
    drawn, results = list(stages.open), dict[int, Result]()
    while stage := stages.oldest:
        outcomes = tuple(Outcome(pairing, play(pairing)) for pairing in stage)
        results |= {o.pairing.number: o.result for o in outcomes if o.result is not None}
        if new := stages.hear(outcomes):
            drawn.append(new)
    assert stages.ranking == ()
    return drawn, results


def standings(chosen: Plan, outcomes: Iterable[Outcome] = ()) -> SettledRoundRobin:
    found = standings_of(chosen)
    assert isinstance(found, SettledRoundRobin)
    for outcome in outcomes:
        found.add(outcome)
    return found


def outcomes_of(stages: list[Stage], results: dict[int, Result]) -> list[Outcome]:
    return [Outcome(each, results.get(each.number)) for stage in stages for each in stage]


def booked(book: Scorebook, stages: list[Stage], results: dict[int, Result]) -> Scorebook:
    for pairing in (pairing for stage in stages for pairing in stage):
        book.add(str(pairing.number), pairing, results[pairing.number], 0.0)
    return book


def meetings(stages: list[Stage]) -> Counter[frozenset[str]]:
    return Counter(frozenset(pairing.players) for stage in stages for pairing in stage)


# --- the blocks ---


@pytest.mark.parametrize("goal", list(Goal))
def test_K6_in_a_block_each_two_meet_equally_often_in_each_seat(goal: Goal) -> None:
    stages, _ = run(plan(goal), by_strength(1, ann=0.2, ben=0.1))

    for stage in stages:
        seatings = Counter(pairing.players for pairing in stage)
        assert {seatings[pair] - seatings[pair[::-1]] for pair in seatings} == {0}
        assert len(set(seatings.values())) == 1


def test_the_first_block_has_the_least_number_of_matches_and_the_next_is_drawn_ahead() -> None:
    first, second = open_stages(plan(least=6)).open

    assert Counter(pairing.players for pairing in first) == dict.fromkeys(permutations(NAMES, 2), 3)
    assert Counter(pairing.players for pairing in second) == dict.fromkeys(
        permutations(NAMES, 2), 1
    )
    assert [pairing.number for pairing in (*first, *second)] == list(range(1, 49))


def test_K6_a_block_does_not_depend_on_the_one_before_it() -> None:
    """Block 3 is known while block 2 is played, whatever comes of that."""
    chosen = plan(players=("ann", "ben"), least=40)
    one, other = open_stages(chosen), open_stages(chosen)
    wins = tuple(Outcome(p, result(*_win(p, "ann"))) for p in one.oldest)
    third = one.hear(wins)

    assert third == other.hear(wins) == (), "40 of 40 settle it"
    assert len(one.open) == 1, "block 2 had been drawn"


def test_in_pairs_only_open_pairings_play_on() -> None:
    chosen = plan(Goal.PAIRS)
    strong = by_strength(2, ann=0.5)
    stages, results = run(chosen, strong)
    met = meetings(stages)

    assert all(met[frozenset(("ann", name))] < 40 for name in NAMES[1:])
    assert max(met.values()) == 400, "equal bots are played out"
    assert len(results) == sum(met.values())


def test_in_first_a_bot_whose_rank_is_open_plays_all_others() -> None:
    stages, _ = run(plan(Goal.FIRST, least=10), by_strength(3, ann=0.25, ben=0.25, cem=-0.1))
    last = {frozenset(pairing.players) for pairing in stages[-1]}

    assert last == {frozenset(p) for p in combinations(NAMES, 2) if {"ann", "ben"} & {*p}}


def test_nothing_is_played_beyond_most() -> None:
    stages, _ = run(plan(most=30, least=10), by_strength(4))

    assert set(meetings(stages).values()) == {30}


def test_two_equal_bots_are_level_once_that_is_sure() -> None:
    chosen = plan(players=("ann", "ben"), level=10.0, most=10_000)

    def alternate(pairing: Pairing) -> Result:
        return result(*_win(pairing, "ann" if pairing.number % 4 < 2 else "ben"))

    stages, results = run(chosen, alternate)
    found = standings(chosen, outcomes_of(stages, results))

    assert found.cross_table()["ann"]["ben"].mark is Mark.LEVEL  # type: ignore[attr-defined]
    assert len(results) < 1_000


def test_J3_a_pairing_of_a_bot_that_is_out_is_not_open() -> None:
    """It has been out since its first match: the matches of the two blocks drawn are not played."""
    even = by_strength(5)

    def play(pairing: Pairing) -> Result | None:
        if "dan" not in pairing.players:
            return even(pairing)
        if pairing.number > 6:
            return None
        return result(0, 0, offender=pairing.players.index("dan"))

    stages, _ = run(plan(least=10), play)

    assert all("dan" in seated(stage) for stage in stages[:2])
    assert all("dan" not in seated(stage) for stage in stages[3:])
    assert len(stages) > 5


def test_with_nobody_left_but_one_it_ends() -> None:
    stages, results = run(plan(Goal.FIRST), lambda pairing: None)

    assert results == {}
    assert len(stages) <= 3


# --- an audit draws the blocks again ---


def test_a_schedule_that_is_run_again_asks_for_the_same_matches() -> None:
    chosen = plan(Goal.ORDER)
    stages, results = run(chosen, by_strength(6, ann=0.2, ben=0.1))
    again = ScheduleRun(chosen)
    again.run(results)

    assert list(again.asked.values()) == [pairing for stage in stages for pairing in stage]
    assert (again.missing, again.ranking) == ([], ())


def test_a_schedule_that_is_run_again_stops_at_the_two_blocks_that_are_open() -> None:
    chosen = plan()
    stages, results = run(chosen, by_strength(7))
    cut = {number: results[number] for number in results if number <= stages[1][3].number}
    again = ScheduleRun(chosen)
    again.run(cut)

    assert max(again.asked) == stages[2][-1].number
    assert again.missing[0] == stages[1][4]


# --- the standings ---


def test_K6_ranks_by_the_mean_share_over_opponents_however_often_they_have_met() -> None:
    chosen = plan(players=("ann", "ben", "cem"), least=2)
    matches = [("ann", "ben", 1), *[("ben", "cem", 1)] * 8, ("ann", "cem", 0)]
    rows = standings(
        chosen,
        (
            Outcome(Pairing(100 + number, (one, other)), result(won, 0))
            for number, (one, other, won) in enumerate(matches)
        ),
    ).rows()

    shares = [(row.rank, row.name, row.share) for row in rows]
    assert shares == [(1, "ann", 0.75), (2, "ben", 0.5), (3, "cem", 0.25)]
    assert rows[1].wins == 8


def test_K6_bots_of_one_share_are_ranked_by_their_mean_score() -> None:
    matches = [Pairing(number, ("ann", "ben")) for number in (100, 101)]
    played = zip(matches, (result(1, -1), result(-3, 3)), strict=True)
    rows = standings(plan(players=("ann", "ben")), (Outcome(*each) for each in played)).rows()

    assert [(row.rank, row.name, row.share) for row in rows] == [(1, "ben", 0.5), (2, "ann", 0.5)]


def test_ranks_and_marks_change_only_with_a_whole_block() -> None:
    chosen = plan(players=("ann", "ben"), least=40)
    first = open_stages(chosen).oldest
    wins = [Outcome(pairing, result(*_win(pairing, "ann"))) for pairing in first]
    found = standings(chosen, wins[:-1])
    before, marked = found.rows(), found.cross_table()["ann"]["ben"]
    found.add(wins[-1])
    ranges = [(row.name, row.rank_low, row.rank_high) for row in found.rows()]

    assert [(row.rank_low, row.rank_high) for row in before] == [(1, 2), (1, 2)]
    assert marked.mark is Mark.OPEN  # type: ignore[attr-defined]
    assert ranges == [("ann", 1, 1), ("ben", 2, 2)]
    assert found.cross_table()["ben"]["ann"].mark is Mark.WORSE  # type: ignore[attr-defined]


def test_J3_an_offender_is_struck_from_the_rank_ranges() -> None:
    chosen = plan(players=("ann", "ben", "cem"), least=40)
    stages, results = run(chosen, by_strength(8, ann=0.3, ben=0.3))
    found = standings(chosen, outcomes_of(stages, results))
    found.eliminate("cem", Termination(Ending.ILLEGAL, 0))
    rows = {row.name: row for row in found.rows()}

    assert (rows["cem"].rank, rows["cem"].rank_low, rows["cem"].share) == (None, None, None)
    assert {rows[name].rank_high for name in ("ann", "ben")} == {2}


def test_a_removed_bot_that_is_known_before_its_results_changes_no_block() -> None:
    """A reader of the database learns of the removal first."""
    chosen = plan(Goal.FIRST)
    stages, results = run(chosen, by_strength(9, ann=0.1))
    removed = Termination(Ending.REMOVED, None)
    books = (Scorebook(chosen), Scorebook(chosen, {"dan": removed}))
    late, soon = (booked(book, stages, results) for book in books)
    late.remove("dan", removed)

    assert soon.rows == late.rows
    assert soon.cross_table == late.cross_table


def test_a_forgiven_loss_is_the_opponents_win() -> None:
    chosen = replace(plan(players=("ann", "ben"), least=2), forgive=1)
    lost = Outcome(Pairing(1, ("ann", "ben")), result(0, 0, offender=0), forgiven=(0,))

    shares = [(row.name, row.share) for row in standings(chosen, [lost]).rows()]
    assert shares == [("ben", 1.0), ("ann", 0.0)]


# --- leagues ---


def test_a_league_plays_on_with_the_bots_whose_rank_is_open() -> None:
    chosen = league()
    rng = random.Random(1)
    gains = {"ann": 300, "ben": 290, "cem": -400, "dan": -500}
    stages, results = run(chosen, lambda p: result(gains[p.players[0]] + rng.randint(-200, 200)))
    counts = Counter(pairing.players[0] for stage in stages for pairing in stage)
    rows = {row.name: row for row in booked(Scorebook(chosen), stages, results).rows}

    assert counts["ann"] == counts["ben"] > counts["cem"] == counts["dan"]
    assert rows["cem"].rank_low >= 3


def test_a_league_of_shares_is_settled_too() -> None:
    chosen = league(Goal.ORDER, "three_card_poker", level=0.0)
    shares = {"ann": 0.9, "ben": 0.6, "cem": 0.3, "dan": 0.05}
    rng = random.Random(2)
    goal = chosen.read_settings().stake  # type: ignore[attr-defined]
    stages, results = run(
        chosen, lambda p: result(goal if rng.random() < shares[p.players[0]] else -goal)
    )
    rows = booked(Scorebook(chosen), stages, results).rows

    assert [(row.name, row.rank_low, row.rank_high) for row in rows] == [
        (name, rank, rank) for rank, name in enumerate(NAMES, start=1)
    ]
    assert len(results) < 2_000


# --- the plan ---


def test_a_plan_without_settle_is_written_as_before() -> None:
    plain = msgspec.json.encode(replace(plan(), settle=msgspec.UNSET))

    assert b"settle" not in plain
    assert msgspec.json.decode(msgspec.json.encode(plan()), type=Plan) == plan()


def test_nobody_knows_how_many_matches_it_will_have() -> None:
    assert expected_matches(plan()) is None


def test_a_competition_of_one_bot_is_refused() -> None:
    with pytest.raises(UsageError, match="at least 2"):
        open_stages(plan(players=("ann",)))


def _win(pairing: Pairing, name: str) -> tuple[int, int]:
    return (1, 0) if pairing.players[0] == name else (0, 1)


@pytest.mark.parametrize(
    ("played", "unplayed", "gone"),
    [
        ("ab", ["ac", "bc"], "c"),
        ("cd", ["ab", "ac", "ad", "bc", "bd"], "ab"),
        # Nothing was played: each other one waits for these two alone.
        ("", ["ab", "ac", "ad", "ae", "bc", "bd", "be"], "ab"),
        ("", ["ab"], "ab"),
        ("ab", ["ab"], ""),
        ("", ["a"], "a"),
    ],
)
def test_the_fewest_that_explain_why_pairings_were_not_played_are_out(
    played: str, unplayed: list[str], gone: str
) -> None:
    outcomes = [Outcome(Pairing(1, tuple(played)), result(1, 0))] if played else []
    outcomes += [Outcome(Pairing(2, tuple(names)), None) for names in unplayed]

    assert settled._gone(tuple(outcomes)) == frozenset(gone)


def test_K6_the_share_that_ranks_has_its_interval_with_equal_weight_for_every_opponent() -> None:
    won, lost = result(1, 0), result(0, 1)
    matches = [("ben", won if number % 4 else lost) for number in range(40)] + [("cem", won)] * 4
    outcomes = [Outcome(Pairing(n, ("ann", other)), r) for n, (other, r) in enumerate(matches, 1)]
    rows = standings(plan(players=NAMES[:3]), outcomes).rows()
    row = next(row for row in rows if row.name == "ann")
    expected = share_of([SharePart(0.5, 30, 40), SharePart(0.5, 4, 4)])

    assert row.share == (30 / 40 + 1) / 2
    assert expected is not None
    assert (row.share_low, row.share_high) == expected.bounds
