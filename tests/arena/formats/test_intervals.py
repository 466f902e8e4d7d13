from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pytest
from msgspec.structs import replace

from arena.formats.intervals import (
    ENOUGH,
    IntervalUnit,
    MatchTally,
    UnitKind,
    interval_of,
    interval_of_league,
    unit_kind,
)
from arena.formats.schedule import Outcome, Pairing
from arena.formats.spec import plan_of
from arena.formats.standings import League, LeagueRow, RoundRobin, Row
from arena.games.catalogue import GAMES
from arena.games.match import Result
from arena.games.statistics import FEWEST, Bounds, Interval, Sample, UnitSums, student, wilson
from protocol.messages import Ending, Termination
from tests.support.long import sized
from tests.tools import coverage

HAND = UnitKind("hand")
GAME = UnitKind("game", is_share=True)


def completed(*scores: int) -> Result:
    return Result(scores, (0,) * len(scores), Termination(Ending.COMPLETED))


def scores(*matches: tuple[int, ...], are_summed: bool = True) -> MatchTally:
    """The scores of a pairing whose matches are told by what each of their units brought."""
    found = MatchTally()
    for units in matches:
        sums = UnitSums(len(units), (sum(units),), (sum(unit * unit for unit in units),))
        found.add(completed(sum(units)), 0, sums if are_summed else None)
    return found


def league(*values: float, lost: Sequence[float] = ()) -> MatchTally:
    """Completed matches of these values, and others that were lost by an offence."""
    found = MatchTally()
    for value in values:
        found.add(completed(0), 0, value=value)
    for value in lost:
        found.add(Result((0,), (0,), Termination(Ending.CRASH, 0)), 0, value=value)
    return found


def bounds(interval: Interval | None) -> tuple[float, float]:
    assert interval is not None, "there are enough values"
    return interval.low, interval.high


def sample(*values: float) -> Sample:
    found = Sample()
    for value in values:
        found.add(value)
    return found


def by_student(times: int, *values: float) -> tuple[float, float]:
    """The interval of a mean, scaled by the same factor as the values."""
    mean, error = sample(*values).mean, sample(*values).standard_error
    assert mean is not None, "there is a value"
    assert error is not None, "there are two"
    return bounds(student(times * mean, times * error, len(values) - 1))


# --- round robins ---


HANGING = [(5, 5, 5, 5), (-5, -5, -5, -5)] * (ENOUGH // 2)
APART = [(5, -5, 4, -4), (3, -3, 5, -6)] * ENOUGH


@pytest.mark.parametrize(
    ("matches", "kind", "expected"),
    [
        ([(1, 5, 3), (7, 4, 4)], HAND, by_student(3, 1, 5, 3, 7, 4, 4)),
        ([(1, 1, 0, 1), (1, 1, 1, 0)], GAME, bounds(wilson(6 / 8, 8).scaled(4))),
        # Units that hang together count as matches once there are ten.
        (HANGING[:-2], HAND, by_student(4, *(5, -5) * 16)),
        (HANGING, HAND, by_student(1, *(20, -20) * (ENOUGH // 2))),
        # Independent ones stay the units however many matches.
        (APART, HAND, by_student(4, *(unit for match in APART for unit in match))),
    ],
)
def test_a_mean_is_as_sure_as_its_units_make_it(
    matches: list[tuple[int, ...]], kind: UnitKind, expected: tuple[float, float]
) -> None:
    found = interval_of([scores(*matches)], kind)

    assert bounds(found) == pytest.approx(expected)
    assert found is not None
    assert found.level == 0.95


def test_without_sums_of_every_match_the_match_is_the_unit() -> None:
    whole = scores((1, 5, 3), (7, 4, 4))
    whole.add(completed(9), 0)
    alone = scores((1, 5, 3), (7, 4, 4), (4, 5), are_summed=False)

    assert bounds(interval_of([whole], HAND)) == bounds(interval_of([alone], HAND))


def test_whoever_has_won_all_games_may_lose_the_next() -> None:
    low, high = bounds(interval_of([scores((1, 1, 1))], GAME))

    assert low < 1.5
    assert high == pytest.approx(3.0)


def test_values_that_are_all_the_same_say_nothing() -> None:
    assert interval_of([scores((2, 2), (2, 2))], HAND) is None
    assert interval_of([scores((3,))], HAND) is None
    assert interval_of([], HAND) is None


def test_what_is_left_after_the_last_block_makes_a_mean_less_sure() -> None:
    whole, rest = UnitKind("hand", 50), UnitKind("hand", 50, rest=0.4)
    matches = scores((10, -30), (25, 0), (-8, 12))

    low, high = bounds(interval_of([matches], whole))
    wider = bounds(interval_of([matches], rest))
    assert wider[1] - wider[0] == pytest.approx((high - low) * 1.2**0.5)
    assert sum(wider) == pytest.approx(low + high)


def test_opponents_count_by_their_matches_and_their_difference_is_no_chance() -> None:
    good, bad = scores((50, 52), (51, 53), (49, 50)), scores((-50, -48))
    low, high = bounds(interval_of([good, bad], HAND))

    mean = (good.matches.total + bad.matches.total) / 4
    assert (low + high) / 2 == pytest.approx(mean)
    assert high - low < 20


# --- leagues ---


def test_K3_of_few_bankrolls_nothing_can_be_said() -> None:
    values = [float(number % 7) for number in range(FEWEST)]

    assert interval_of_league(league(*values), is_share=False) is not None
    assert interval_of_league(league(*values[1:]), is_share=False) is None
    # A loss that was forgiven says nothing of how far the others spread.
    assert interval_of_league(league(*values[1:], lost=[0]), is_share=False) is None


def test_J3_a_forgiven_loss_moves_the_interval_as_it_moves_the_value() -> None:
    values = [float(number) for number in range(FEWEST)]
    ends = bounds(interval_of_league(league(*values), is_share=False))
    moved = bounds(interval_of_league(league(*values, lost=[-30]), is_share=False))

    assert moved == pytest.approx([(end * FEWEST - 30) / (FEWEST + 1) for end in ends])


def test_K3_a_share_has_an_interval_from_the_first_match_on() -> None:
    with_loss = interval_of_league(league(1, 0, 1, lost=[0]), is_share=True)

    assert bounds(interval_of_league(league(1), is_share=True)) == bounds(wilson(1, 1))
    assert bounds(with_loss) == bounds(wilson(0.5, 4))
    assert interval_of_league(league(), is_share=True) is None


# --- in standings ---


def outcome(names: str, *values: int, units: UnitSums | None = None) -> Outcome:
    return Outcome(Pairing(1, tuple(names.split())), completed(*values), units=units)


def test_K1_rows_and_pairings_have_an_interval_beside_the_error() -> None:
    standings = RoundRobin(("ann", "ben", "cem"), kind=HAND)
    for other in ("ben", "cem"):
        for score in (4, 8):
            units = UnitSums(2, (score, -score), (score * score, score * score))
            standings.add(outcome(f"ann {other}", score, -score, units=units))

    [ann] = [row for row in standings.rows() if row.name == "ann"]
    cell = standings.cross_table()["ann"]["ben"]
    mirrored = standings.cross_table()["ben"]["ann"]
    for found in (ann, cell):
        assert isinstance(found.interval, Bounds)
        assert found.mean is not None
        assert found.interval.low < found.mean < found.interval.high
        assert (found.level, found.method) == (0.95, "Student")
    assert cell.error == 2.0  # one standard error of the matches, as before
    assert cell.interval is not None
    assert mirrored.interval == pytest.approx((-cell.interval.high, -cell.interval.low))
    assert Row(rank=1, name="x").interval is LeagueRow(rank=1, name="x").interval is None


def test_matches_without_sums_are_counted_where_the_game_has_units() -> None:
    standings = RoundRobin(("ann", "ben"), kind=UnitKind("hand", 50))
    standings.add(outcome("ann ben", 1, -1))
    standings.add(outcome("ann ben", 1, -1, units=UnitSums(2, (1, -1), (9, 9))))

    assert standings.unit == IntervalUnit("hand", 50, 1)
    assert "blocks of 50 hands" in standings.unit.in_words()
    assert "of 1 match without sums of the hands the unit is" in standings.unit.in_words()
    whole = RoundRobin(("ann", "ben"))
    whole.add(outcome("ann ben", 1, -1))
    assert whole.unit == IntervalUnit()
    assert whole.unit.in_words().endswith("each is computed from matches")


def test_without_the_rules_of_its_game_the_sums_of_a_match_say_nothing() -> None:
    known, gone = RoundRobin(("ann", "ben")), RoundRobin(("ann", "ben"))
    for score in (4, 8):
        units = UnitSums(2, (score, -score), (99, 99))
        known.add(outcome("ann ben", score, -score))
        gone.add(outcome("ann ben", score, -score, units=units))

    assert gone.rows() == known.rows()


def test_a_league_has_intervals_of_matches() -> None:
    rules = GAMES["blackjack"]
    league = League(("ann",), rules.measure, rules.vocabulary.read_settings({}))
    for score in range(FEWEST):
        [row] = league.rows()
        assert row.interval is None
        league.add(outcome("ann", score))

    [row] = league.rows()
    assert row.interval is not None
    assert row.value is not None
    assert row.interval.low < row.value < row.interval.high
    assert league.unit == IntervalUnit()


@pytest.mark.parametrize(
    ("game", "settings", "kind"),
    [
        ("ace_king_queen", {"hands": 120}, UnitKind("hand", 50, rest=0.4)),
        ("gin_rummy", {"games": 10}, UnitKind("game", is_share=True)),
        ("blackjack", {}, UnitKind()),
    ],
)
def test_a_game_says_what_its_units_are(
    game: str, settings: dict[str, int], kind: UnitKind
) -> None:
    rules = GAMES[game]
    plan = plan_of(rules, rules.vocabulary.read_settings(settings), ("ann", "ben"))

    assert unit_kind(plan) == kind
    assert unit_kind(replace(plan, game="gone")) == UnitKind()


# --- what is promised (`python -m tests.tools.coverage` has it at length) ---


SIMULATED: dict[str, Callable[[], Iterable[coverage.Covered]]] = {
    "means": lambda: coverage.means(sized(30, 25), 1),
    "tournaments": lambda: coverage.tournaments(sized(30, 25), 1),
    "games won": lambda: coverage.games_won(sized(30, 25), 1),
    "shares": coverage.shares,
    "bankrolls": lambda: coverage.leagues(sized(200, 30), sized(120, 20), 1),
    "bots that adapt": lambda: coverage.adapting(sized(200, 30), sized(100, 20), 1),
}


@pytest.mark.parametrize("what", SIMULATED)
def test_at_most_1_in_20_intervals_is_wrong(what: str) -> None:
    found = list(SIMULATED[what]())

    assert [str(covered) for covered in found if not covered.holds()] == []
    assert len(found) > (15 if what in ("means", "tournaments", "games won") else 0)
