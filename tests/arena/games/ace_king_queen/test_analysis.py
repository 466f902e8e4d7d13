"""How good bots are in Ace-King-Queen, as a probe or records show it.

The long measurements run where `CARD_ARENA_LONG` is set; small forms of them on every commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, chi2_contingency, fisher_exact  # type: ignore[import-untyped]

import arena
from arena.games.ace_king_queen.analysis import (
    HANDS,
    SCRIPTS,
    Box,
    SpotCounts,
    analysed,
    box,
    differs,
    exploitability_band,
    extremes,
    halves_differ,
    watch,
)
from arena.games.ace_king_queen.evaluator import EQUILIBRIUM, exploitability, value
from arena.games.analysis import Analysis, Figure, SeatDecision, SeatMatch
from arena.games.catalogue import GAMES
from arena.lab.probe import analyse_here
from arena.records.seat_document import seat_match
from bots.ace_king_queen import Bluffer, Honest, Learner, Nash, PlayerStrategy
from bots.ace_king_queen import Random as RandomBot
from protocol.ace_king_queen import AceKingQueenSettings, Card, Open, Respond
from protocol.strategy import Strategy
from protocol.vocabulary import Question
from tests.support.long import sized
from tests.support.not_none import not_none

GAME = GAMES["ace_king_queen"]
ANALYSING = not_none(GAME.analysing)
SETTINGS = AceKingQueenSettings()


class NeverCalling(PlayerStrategy):
    """Bets aces, and never calls."""

    def call(self, card: Card) -> bool:
        return False


class Changing(PlayerStrategy):
    """Begins to bet all of its queens in the middle of a match."""

    def decide(self, question: Question[Any]) -> object:
        if type(question) is Open and question.card == "Q":
            return "bet" if question.round > HANDS // 2 else "check"
        return super().decide(question)


def analysed_anew(*kinds: type[PlayerStrategy], seed: int = 1) -> Analysis:
    """An analysis of the first bot, against the others."""
    bots = [kind() for kind in kinds]
    for number, bot in enumerate(bots):
        bot.seed(f"{seed}:{number}")
    names = [kind.__name__.lower() for kind in kinds[1:]]
    return analyse_here(GAME, ANALYSING.probe(SETTINGS, seed, names), bots)


ANALYSES: dict[object, Analysis] = {}


def analysis_of(*kinds: type[PlayerStrategy], seed: int = 1) -> Analysis:
    """The same, made once."""
    if (kinds, seed) not in ANALYSES:
        ANALYSES[kinds, seed] = analysed_anew(*kinds, seed=seed)
    return ANALYSES[kinds, seed]


def figure(analysis: Analysis, name: str) -> Figure:
    (found,) = (figure for figure in analysis.figures if figure.name == name)
    return found


@pytest.mark.stats
@pytest.mark.parametrize(
    ("bot", "fraction", "remark"),
    [
        (Honest, "1/12", "It is taken by one that bets A Q and calls A."),
        (Bluffer, "1/6", "It is taken by one that bets A and calls A K."),
    ],
)
def test_a_bot_that_never_mixes_is_known_to_0_003(
    bot: type[PlayerStrategy], fraction: str, remark: str
) -> None:
    found = figure(analysis_of(bot), "exploitability")
    exact = Fraction(fraction)

    assert (found.value, found.fraction) == (float(exact), fraction)
    low, high = not_none(found.low), not_none(found.high)
    assert low <= exact <= high
    assert high - low <= 0.003
    assert found.remark == remark


@pytest.mark.stats
@pytest.mark.parametrize("seed", range(1, 1 + sized(20, 2)))
def test_nash_is_within_0_015_of_perfect(seed: int) -> None:
    analysis = analysis_of(Nash, seed=seed)
    found = figure(analysis, "exploitability")

    assert not analysis.adapts
    assert found.low == 0
    assert not_none(found.high) <= 0.015
    assert found.remark == f"It is within {found.high:.4f} of perfect."


def test_what_is_given_away_sums_to_the_distance_from_the_best_play() -> None:
    analysis = analysis_of(RandomBot)
    lost = figure(analysis, "value against the equilibrium").value
    taken = figure(analysis, "exploitability").value

    costs = [weakness.cost for weakness in analysis.weaknesses]
    assert sum(costs) == pytest.approx(-not_none(lost), abs=1e-12)
    assert costs == sorted(costs, reverse=True)
    assert sum(weakness.exploited or 0 for weakness in analysis.weaknesses) == pytest.approx(taken)


def test_a_weakness_says_what_the_bot_does_and_what_would_be_better() -> None:
    weaknesses = analysis_of(NeverCalling).weaknesses

    assert [(w.spot, w.played, w.best) for w in weaknesses] == [
        ("call with the ace", "calls 0 % of the time", "always calls"),
        ("call with the king", "calls 0 % of the time", "calls 1 time in 3"),
        ("bet with the queen", "bets 0 % of the time", "bets 1 time in 3"),
    ]
    assert weaknesses[0].cost == pytest.approx(1 / 12)


def test_a_share_that_may_be_the_best_is_said_to_be_so() -> None:
    assert {weakness.best for weakness in analysis_of(Nash).weaknesses} <= {
        "bets 1 time in 3 (it may do so)",
        "calls 1 time in 3 (it may do so)",
    }


@pytest.mark.stats
def test_every_spot_stands_in_the_chart_with_its_band_and_cost() -> None:
    (chart,) = analysis_of(NeverCalling).charts
    aces_called = not_none(chart.cells[0][1])

    assert (aces_called.share, aces_called.low) == (0, 0)
    assert 0 < (aces_called.high or 1) < 0.01
    assert aces_called.cost == pytest.approx(1 / 12)


def test_the_value_against_another_bot_is_exact_where_neither_mixes() -> None:
    found = figure(analysis_of(Bluffer, Honest), "value against honest")

    # Each queen that it bets wins a king's ante and loses two to an ace; kings call aces.
    assert found.value == float(value((1, 0, 1, 1, 1, 0), (1, 0, 0, 1, 0, 0)))
    assert found.fraction == "0"
    low, high = not_none(found.low), not_none(found.high)
    assert low < 0 < high
    assert high - low < 0.006


# ---- Bots that adapt


@pytest.mark.stats
@pytest.mark.parametrize("seed", range(1, 1 + sized(20, 1)))
def test_a_bot_that_learns_is_found(seed: int) -> None:
    analysis = analysis_of(Learner, seed=seed)

    assert analysis.adapts
    assert analysis.figures[0].value is None


def test_a_bot_that_learns_has_no_single_value() -> None:
    analysis = analysis_of(Learner)

    assert "against one that" in analysis.adapts
    assert "(p < 0.0001)" in analysis.adapts
    for refused in analysis.figures[:2]:
        assert (refused.value, refused.remark) == (None, "A bot that adapts has no single value.")
    assert all(weakness.exploited is None for weakness in analysis.weaknesses)


def test_a_bot_that_learns_is_shown_as_it_was_probed() -> None:
    as_probed = {
        figure.name: figure for figure in analysis_of(Learner).figures if figure.value is not None
    }

    assert list(as_probed) == [f"won {title}" for title in SCRIPTS]
    best = as_probed["won against one that bets all and calls all"]
    assert best.value == pytest.approx(1 / 3, abs=0.01)  # nearly all that can be taken from it


def test_a_bot_that_changes_in_a_match_is_found() -> None:
    assert analysis_of(Changing).adapts == (
        "It bets with the queen 100 % of the time in the second halves, "
        "and 0 % in the first halves of matches (p < 0.0001)."
    )


@pytest.mark.parametrize(
    ("bots", "remark"), [((Learner, Honest), "It "), ((Honest, Learner), "learner adapts. It ")]
)
def test_no_value_is_given_where_one_of_two_adapts(bots: Sequence[Any], remark: str) -> None:
    found = analysis_of(*bots).figures[-1]

    assert found.value is None
    assert found.remark.startswith(remark)


def simulated(shares: Sequence[float], random: np.random.Generator) -> SpotCounts:
    """What a probe of a bot with these shares brings, drawn at once."""
    tally = SpotCounts()
    for title, script in SCRIPTS.items():
        asked = [HANDS // 6] * 3
        for mine in range(3):
            bets = sum(float(script[card]) for card in range(3) if card != mine)
            asked.append(round(HANDS // 12 * bets))
        halves = []
        for _ in range(2):
            counts = [
                (int(random.binomial(n // 2, p)), n // 2)
                for n, p in zip(asked, shares, strict=True)
            ]
            halves.append(counts)
        tally.note(title, *halves)
    return tally


def coverage(probes: int) -> float:
    """In what share of simulated probes exploitability and value are both within their bands.

    The bots are near the equilibrium, where bands are the most difficult, or anywhere.
    """
    random = np.random.default_rng(7)
    right = 0
    for probe in range(probes):
        shares = random.random(6) if probe % 2 else np.array([1, 0, 1 / 3, 1, 1 / 3, 0])
        if probe % 4 == 0:
            shares = np.clip(shares + random.normal(0, 0.05, 6), 0, 1)
        analysis = analysed(simulated(list(shares), random))
        truths = exploitability(list(shares)), value(list(shares), EQUILIBRIUM)
        if analysis.adapts:
            probes -= 1  # counted with false alarms
            continue
        right += all(
            figure.low is not None
            and figure.high is not None
            and figure.low - 1e-9 <= truth <= figure.high + 1e-9
            for figure, truth in zip(analysis.figures, truths, strict=True)
        )
    return right / probes


@pytest.mark.stats
def test_bands_hold_in_95_of_100_probes() -> None:
    assert coverage(sized(1000, 20)) >= 0.95


def alarms(probes: int) -> int:
    random = np.random.default_rng(11)
    ways: list[list[float]] = [[float(share) for share in EQUILIBRIUM], [0.5] * 6]
    return sum(bool(simulated(ways[probe % 2], random).adapts()) for probe in range(probes))


def test_a_bot_that_mixes_is_seldom_taken_for_one_that_adapts() -> None:
    assert alarms(sized(400, 20)) <= sized(4, 0)


# ---- From records


def played(bot: Strategy, other: Strategy, hands: int, seed: int = 1) -> SeatMatch:
    result = arena.play("ace_king_queen", [bot, other], settings={"hands": hands}, seed=seed)
    return seat_match(result.record, 0)


def test_a_bot_is_known_from_its_matches_too() -> None:
    analysis = not_none(ANALYSING.watch)(
        [played(Honest(), other, 3000) for other in (Bluffer(), RandomBot())]
    )

    found = figure(analysis, "exploitability")
    assert found.fraction == "1/12"
    assert not_none(found.high) < 0.1


def test_what_was_never_asked_leaves_a_bot_without_a_value() -> None:
    analysis = watch([played(Bluffer(), Honest(), 200)])

    # An honest bot bets nothing but aces, so nobody is asked to call with the ace.
    assert [(figure.value, figure.remark) for figure in analysis.figures] == [
        (None, "Not seen: call with the ace."),
        (None, "Not seen: call with the ace."),
    ]
    unseen = not_none(analysis.charts[0].cells[0][1])
    assert unseen.share is None
    assert "call with the ace" not in [weakness.spot for weakness in analysis.weaknesses]


def test_without_any_match_nothing_is_seen() -> None:
    analysis = watch([])

    assert analysis.asked == 0
    assert analysis.weaknesses == ()
    assert not analysis.adapts


def test_a_bot_that_differs_from_match_to_match_is_found() -> None:
    def match_with(answer: str) -> SeatMatch:
        asked = [SeatDecision(Respond(n, "K"), answer if n % 3 else "call") for n in range(90)]
        return SeatMatch(SETTINGS, 0, asked)

    analysis = watch([match_with("call"), match_with("fold")])

    assert analysis.adapts == (
        "It calls with the king 100 % of the time in match 1, and 33 % in match 2 (p < 0.0001)."
    )


def test_a_chance_that_is_not_tiny_is_told() -> None:
    tally = SpotCounts()
    none = [(0, 0)] * 5
    tally.note("in match 1", [(30, 100), *none], [(58, 100), *none])

    assert tally.adapts().endswith("(p = 0.0013).")


def test_decks_are_all_deals_equally_often_in_both_roles() -> None:
    probe = next(ANALYSING.probe(SETTINGS, 5, []))
    deals = list(not_none(probe.decks))

    assert len(deals) == probe.settings.hands == HANDS  # type: ignore[attr-defined]
    for role in 0, 1:
        of_role = deals[role::2]
        assert {of_role.count(deal) for deal in of_role} == {HANDS // 12}
        assert len(set(of_role)) == 6
        assert of_role != sorted(of_role)


# ---- Bands


@pytest.mark.parametrize("done", [1, 19])
def test_at_the_ends_of_an_interval_the_count_is_as_rare_as_may_be(done: int) -> None:
    ((low, high),) = box([(done, 20)], 5)

    assert binom.sf(done - 1, 20, low) == pytest.approx(0.005)
    assert binom.cdf(done, 20, high) == pytest.approx(0.005)


def test_what_was_never_seen_may_be_anything() -> None:
    assert box([(0, 0)], 6) == [(0.0, 1.0)]


def test_extremes_are_found_at_corners() -> None:
    assert extremes(lambda corner: corner[0] - corner[1], [(0.25, 0.5), (0.0, 1.0)]) == (-0.75, 0.5)


def some_box(random: Random) -> Box:
    low = [random.random() * 0.8 for _ in range(6)]
    return [(least, least + random.random() * 0.2) for least in low]


@pytest.mark.stats
@pytest.mark.parametrize("seed", range(5))
def test_no_strategy_in_a_box_is_outside_its_band(seed: int) -> None:
    shares = some_box(Random(seed))
    low, high = exploitability_band(shares)
    # Of a finer and finer grid the least comes down to the least of all.
    grid = [
        exploitability(point) for point in product(*([a, a + (b - a) / 2, b] for a, b in shares))
    ]

    assert low - 1e-9 <= min(grid) < low + 0.02
    assert max(grid) == pytest.approx(high)


def test_a_box_with_the_equilibrium_in_it_begins_at_0() -> None:
    around = [(max(0.0, float(e) - 0.1), min(1.0, float(e) + 0.1)) for e in EQUILIBRIUM]

    low, high = exploitability_band(around)

    assert low == pytest.approx(0, abs=1e-9)
    assert high > 0.05


def test_chi_square_is_that_of_scipy() -> None:
    counts = [(20, 100), (40, 110), (60, 150)]
    table = [[done, asked - done] for done, asked in counts]

    assert differs(counts) == pytest.approx(chi2_contingency(table, correction=False).pvalue)


def test_matches_with_too_few_answers_are_left_out() -> None:
    counts = [(20, 100), (40, 110)]

    assert differs([*counts, (3, 3), (0, 0)]) == pytest.approx(differs(counts), rel=0.1)


@pytest.mark.parametrize(
    "counts",
    [[], [(0, 0)], [(3, 3), (5, 5)], [(0, 300), (1, 300)], [(50, 100)], [(90, 100), (1, 2)]],
)
def test_what_is_always_done_or_too_seldom_differs_in_nothing(
    counts: list[tuple[int, int]],
) -> None:
    assert differs(counts) == 1.0


@pytest.mark.parametrize(
    ("first", "second"),
    [((3, 10), (8, 11)), ((0, 10), (10, 10)), ((300, 900), (350, 901)), ((0, 0), (2, 5))],
)
def test_fishers_test_is_that_of_scipy(first: tuple[int, int], second: tuple[int, int]) -> None:
    table = [[done, asked - done] for done, asked in (first, second)]

    assert halves_differ(first, second) == pytest.approx(fisher_exact(table).pvalue)
