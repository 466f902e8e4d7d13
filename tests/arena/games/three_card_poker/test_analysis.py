"""What is said of a whole bot of three card poker."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from itertools import combinations
from random import Random as Generator

import msgspec
import numpy as np
import pytest

import arena
from arena.games.analysis import Analysis, Certainty, Figure, ProbedMatch, SeatDecision, SeatMatch
from arena.games.three_card_poker import analysis as three_card_poker_analysis
from arena.games.three_card_poker.analysis import (
    MOST_CASHES,
    Asking,
    best_figures,
    dependence,
    differing,
    no_chain,
)
from arena.games.three_card_poker.chain import GoalChain, round_odds
from arena.games.three_card_poker.evaluator import BEST
from arena.games.three_card_poker.rules import GAME, league_goal
from arena.games.three_card_poker.table import CLASSES, HANDS, LINE, class_of, hand_classes, members
from arena.lab.probe import analyse_here
from arena.records.seat_document import seat_match
from bots.three_card_poker import Q64, Always, Doubler, PlayerStrategy, Random
from protocol.cards import PACK
from protocol.errors import NoAnalysis
from protocol.strategy import Strategy
from protocol.three_card_poker import (
    DECISIONS,
    FOLDED,
    Hand,
    Play,
    ThreeCardPokerSettings,
    outcome_of_play,
    strength,
)
from tests.support.not_none import not_none
from tests.support.poker_hands import worth
from tests.tools.league_odds import chance

SMALL = {"stake": 40, "goal": 60}
ANALYSING = not_none(GAME.analysing)


def analysed(bot: Strategy, seed: int = 1, **settings: object) -> Analysis:
    read = GAME.vocabulary.read_settings(settings)
    return analyse_here(GAME, ANALYSING.probe(read, seed, ()), [bot])


OF: dict[object, Analysis] = {}


def of(bot: type[PlayerStrategy], stake: int = 40, goal: int | None = 60) -> Analysis:
    """Analysed once; what a long way to the goal brings takes longer than all else."""
    key = bot, stake, goal
    if key not in OF:
        OF[key] = analysed(bot(), stake=stake, goal=goal)
    return OF[key]


def of_a_league() -> Analysis:
    """What is said of `q64` with the settings of a league."""
    return of(Q64, 1000, None)


def figure(analysis: Analysis, name: str) -> Figure:
    return next(one for one in analysis.figures if one.name == name)


def value(analysis: Analysis, name: str) -> float:
    return not_none(figure(analysis, name).value)


def bounds(figure: Figure) -> tuple[float, float]:
    return not_none(figure.low), not_none(figure.high)


# ---- An enumeration that shares nothing with the program: other ranks, no classes, no table


@cache
def enumerated() -> Mapping[Hand, int]:
    """What playing each hand brings, in antes, summed over all of the dealer's."""
    hands = sorted(combinations(PACK, 3), key=worth)
    bits = np.array([sum(1 << PACK.index(card) for card in hand) for hand in hands])
    worths = [*map(worth, hands)]
    opens = bisect_left(worths, worth(("Qs", "3h", "2d")))
    found = {}
    for hand, own, mine in zip(hands, bits.tolist(), worths, strict=True):
        can_be = bits & own == 0
        below, level = bisect_left(worths, mine), bisect_right(worths, mine)
        beaten = np.count_nonzero(can_be[opens : max(opens, below)])
        better = np.count_nonzero(can_be[max(opens, level) :])
        found[hand] = int(np.count_nonzero(can_be[:opens])) + 2 * int(beaten) - 2 * int(better)
    return found


def exactly(plays: Callable[[Hand], bool]) -> Fraction:
    total = sum(paid if plays(hand) else -18_424 for hand, paid in enumerated().items())
    return Fraction(total, 22_100 * 18_424)


@pytest.mark.stats
def test_q64_and_always_are_worth_what_an_enumeration_of_all_hands_says() -> None:
    q64 = exactly(lambda hand: worth(hand) >= worth(("Qs", "6h", "4d")))
    always = exactly(lambda hand: True)

    assert float(q64) == pytest.approx(-0.086580, abs=5e-7)
    assert float(always) == pytest.approx(-0.1294, abs=5e-5)
    for bot, exact in (Q64, q64), (Always, always):
        shown = figure(of(bot), "value")
        assert Fraction(shown.fraction) == exact
        assert shown.value == pytest.approx(100 * float(exact), abs=1e-12)
        assert shown.certainty is Certainty.EXACT
        assert shown.low is None
        assert shown.unit == "% of the ante"


@pytest.mark.stats
def test_no_hand_played_otherwise_would_bring_more_than_q64() -> None:
    best = sum(max(paid, -18_424) for paid in enumerated().values())

    assert figure(of_a_league(), "value").fraction == str(Fraction(best, 22_100 * 18_424))
    assert figure(of_a_league(), "given away").value == 0
    assert of_a_league().weaknesses == ()


# ---- Mistakes


class FoldsPairs(Q64):
    def play(self, hand: Hand, ante: int, cash: int) -> bool:
        return not self.is_pair(hand) and ("Qs" in hand or super().play(hand, ante, cash))

    @staticmethod
    def is_pair(hand: Hand) -> bool:
        return len({card[0] for card in hand}) == 2


@pytest.mark.stats
@pytest.mark.parametrize("bot", [Always, FoldsPairs])
def test_mistakes_sum_to_the_distance_from_the_best_play(bot: type[PlayerStrategy]) -> None:
    analysis = of(bot)
    costs = [weakness.cost for weakness in analysis.weaknesses]
    distance = value(of_a_league(), "value") - value(analysis, "value")

    assert sum(costs) == pytest.approx(distance, rel=1e-12)
    assert costs == sorted(costs, reverse=True)
    assert value(analysis, "given away") == pytest.approx(distance, rel=1e-12)
    cells = [row[0] for row in analysis.charts[0].cells]
    assert sum(cell.cost or 0 for cell in cells if cell) == pytest.approx(distance, rel=1e-12)


@pytest.mark.stats
def test_mistakes_are_named_by_groups_of_hands() -> None:
    folds, plays = of(FoldsPairs).weaknesses[0], of(Always).weaknesses[2]

    assert (folds.spot, folds.played, folds.best) == ("pairs", "folds", "plays")
    assert folds.cost > 30
    assert (plays.spot, plays.best) == ("queen-high below Q-6-4", "folds")
    assert plays.played == "plays"


# ---- Bots that draw lots or adapt


@pytest.mark.stats
def test_a_bot_that_draws_lots_has_a_band_that_holds_its_value() -> None:
    chances = [1 / 2] * CLASSES
    antes = [0, 0, *(min(20, cash // 2) for cash in range(2, 60))]
    truth = {
        "value": (100 * float(exactly(lambda hand: True)) - 100) / 2,
        "reaches the goal": 100
        * GoalChain(60, antes, round_odds(chances, False)).values().item(40),
    }
    bot = Random(20)
    bot.seed(1)
    analysis = analysed(bot, **SMALL)
    for name, true in truth.items():
        one = figure(analysis, name)
        assert one.certainty is Certainty.PROBED
        low, high = bounds(one)
        assert low < true < high
        assert high - low < 2
        assert not one.fraction
    assert analysis.adapts == ""
    assert "reaches the goal in time" not in {one.name for one in analysis.figures}
    assert sum(one.cost for one in analysis.weaknesses) == pytest.approx(
        value(analysis, "given away"), rel=1e-12
    )


class ForgetsItsHands(Q64):
    """Folds a good hand one time in ten thousand."""

    asked = 0

    def play(self, hand: Hand, ante: int, cash: int) -> bool:
        self.asked += 1
        return super().play(hand, ante, cash) and self.asked % 10_001 != 0


def test_no_band_is_better_than_the_best_play() -> None:
    analysis = of(ForgetsItsHands)
    worth, lost = figure(analysis, "value"), figure(analysis, "given away")

    assert worth.certainty is Certainty.PROBED
    assert value(analysis, "value") < 100 * float(BEST) == worth.high
    assert lost.low == 0.0


class Sulks(Q64):
    """Plays everything after a loss."""

    lost = False

    def play(self, hand: Hand, ante: int, cash: int) -> bool:
        return self.lost or super().play(hand, ante, cash)

    def round_over(self, hand: Hand, dealer: Hand, ante: int, outcome: int, cash: int) -> None:
        self.lost = outcome < 0


def test_a_bot_that_adapts_is_shown_as_probed_and_has_no_chain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(three_card_poker_analysis, "_MOST_ASKED", 4 * HANDS)
    analysis = analysed(Sulks(), **SMALL)

    assert analysis.adapts.endswith("it plays more after a worse round")
    assert figure(analysis, "value").certainty is Certainty.PROBED
    assert figure(analysis, "reaches the goal").value is None
    assert "more than its hand" in figure(analysis, "reaches the goal").remark
    # Where rounds and goal are huge, few matches are tried.
    assert figure(analysis, "reaches the goal in time").remark.endswith(" rounds, in 1 match")


# ---- The goal


@pytest.mark.stats
def test_a_doubler_has_a_value_and_no_chain() -> None:
    settings = ThreeCardPokerSettings(stake=200, goal=225, rounds=300)
    analysis = analysed(Doubler(), stake=200, goal=225, rounds=300)
    refused, tried = (
        figure(analysis, name) for name in ("reaches the goal", "reaches the goal in time")
    )

    assert figure(analysis, "value") == figure(of_a_league(), "value")
    assert refused.value is None
    assert refused.remark.startswith("its ante depends on more than its cash: with 200 it antes ")
    assert tried.certainty is Certainty.ESTIMATE
    low, high = bounds(tried)
    assert low < 100 * chance(Doubler(), settings).reached < high
    assert tried.remark == "from 200 to 225 in at most 300 rounds, in 100 matches"
    assert analysis.asked > 4 * HANDS


class Coward(Q64):
    """Antes less late in a match: in a single asking all antes of a cash differ by that alone."""

    asked = 0

    def ante(self, cash: int, most: int) -> int:
        self.asked += 1
        return min(most, 1 if self.asked > HANDS else 2)


def test_antes_that_differ_between_the_askings_only_are_found() -> None:
    refused = figure(analysed(Coward(), **SMALL), "reaches the goal")

    assert "with 40 it antes 1 as well as 2" in refused.remark


def test_K3_the_goal_is_that_of_a_league_if_none_is_set() -> None:
    q64 = of_a_league()
    antes = [0, 0, *(min(10, cash // 2) for cash in range(2, 1125))]
    shares = [float(one.group < LINE) for one in hand_classes(False)]
    chain = GoalChain(1125, antes, round_odds(shares, False))

    assert league_goal(1000) == 1125
    assert value(q64, "reaches the goal") == 100 * chain.values()[1000]
    assert value(q64, "reaches the goal in time") == 100 * chain.within(1000)[1000]
    assert "from 1,000 to 1,125" in figure(q64, "reaches the goal").remark
    assert 85 < value(q64, "best possible for the goal") < 86
    assert "a best first ante is 63" in figure(q64, "best possible for the goal").remark
    assert q64.asked == 4 * HANDS


@pytest.mark.parametrize(
    ("stake", "goal", "why"),
    [
        (40, 30, "a stake of 40 has reached the goal of 30 already"),
        (30_000, 33_750, "there are more than 20,000 cashes below the goal of 33,750"),
    ],
)
def test_without_a_way_to_the_goal_it_is_said_why(stake: int, goal: int, why: str) -> None:
    settings = ThreeCardPokerSettings(stake=stake, goal=goal)

    assert no_chain(settings, (), "") == why
    assert [*best_figures(settings)] == []


def test_nothing_is_tried_if_the_goal_is_reached_already() -> None:
    analysis = of(ForgetsItsHands, 40, 30)

    assert figure(analysis, "reaches the goal").value is None
    assert {one.name for one in analysis.figures} == {"value", "given away", "reaches the goal"}
    assert analysis.asked == 4 * HANDS


# ---- What is refused


def test_a_stake_that_pays_no_round_is_refused() -> None:
    assert ANALYSING.refuses(ThreeCardPokerSettings(stake=2)) is None
    assert ANALYSING.refuses(ThreeCardPokerSettings(stake=1)) == (
        "with a stake of 1 no round can be played"
    )


def test_there_is_no_analysis_against_others() -> None:
    with pytest.raises(NoAnalysis, match="played against the dealer"):
        next(ANALYSING.probe(ThreeCardPokerSettings(), 1, ("always",)))


def test_a_bot_that_commits_an_offence_is_told_which() -> None:
    class Reckless(Q64):
        def ante(self, cash: int, most: int) -> int:
            return 10

    with pytest.raises(NoAnalysis, match="answered 10 to ante; legal: 1 to 9"):
        analysed(Reckless(), **SMALL)


# ---- From matches that were played


def watched(*matches: SeatMatch) -> Analysis:
    return not_none(ANALYSING.watch)(matches)


def test_hands_that_were_not_seen_leave_no_value() -> None:
    result = arena.play("three_card_poker", [Always()], settings={"rounds": 300}, seed=1)
    match = seat_match(result.record, 0)
    analysis = watched(match)
    hands = {
        tuple(sorted(one.question.hand)) for one in match.decisions if type(one.question) is Play
    }
    unseen = CLASSES - len({class_of(hand) for hand in hands})

    assert figure(analysis, "value").value is None
    assert figure(analysis, "value").remark == f"{unseen:,} of 1,755 kinds of hands were not seen"
    assert analysis.asked == len(result.record.answers)
    lost = figure(analysis, "given away")
    assert lost.certainty is Certainty.ESTIMATE
    low, high = bounds(lost)
    assert low < 4.2808 < high
    assert sum(one.cost for one in analysis.weaknesses) == pytest.approx(lost.value)


def all_hands(plays: Callable[[int], bool], times: int = 1) -> SeatMatch:
    decisions = [
        SeatDecision(Play(hands[0], 10, 1000), DECISIONS[not plays(number)])
        for number, hands in enumerate(members())
        for _ in range(times)
    ]
    return SeatMatch(ThreeCardPokerSettings(), 0, decisions)


def test_if_all_kinds_of_hands_were_seen_there_is_a_value_with_a_band() -> None:
    classes = hand_classes(False)
    q64 = figure(watched(all_hands(lambda number: classes[number].gain > 0)), "value")
    random = Generator(1)
    half = figure(watched(all_hands(lambda number: random.random() < 1 / 2, times=5)), "value")

    assert q64.value == pytest.approx(-8.6580, abs=1e-4)
    assert q64.certainty is Certainty.PROBED
    for one, true in (q64, -8.6580), (half, (-12.9389 - 100) / 2):
        low, high = bounds(one)
        assert low < true < high
        assert high - low < 6


def test_of_few_hands_no_mean_is_said_and_of_hands_that_are_alike_no_interval() -> None:
    bots = Always(), Q64()
    few, alike = (
        watched(seat_match(arena.play(GAME.name, [bot], settings=settings, seed=1).record, 0))
        for bot, settings in zip(bots, ({"rounds": 1}, {"rounds": 50}), strict=True)
    )
    refused, lost = figure(few, "given away"), figure(alike, "given away")

    assert (refused.value, refused.low, refused.high) == (None, None, None)
    assert refused.remark == "too few hands to say, 1; it takes 20"
    assert (lost.value, lost.low, lost.high) == (0.0, None, None)


def test_without_a_hand_there_is_no_analysis() -> None:
    with pytest.raises(NoAnalysis, match="it was dealt no hand"):
        watched(SeatMatch(ThreeCardPokerSettings(rounds=0), 0, []))


# ---- What is asked

SETTINGS = ThreeCardPokerSettings(stake=40, goal=60)
Q64_LEAST = strength(("Qs", "6h", "4d"))


class AskedHand(msgspec.Struct, frozen=True):
    """What a bot knows when it decides; `last` is the outcome of the round before."""

    asking: int
    round: int
    hand: Hand
    cash: int
    last: int

    @property
    def is_good(self) -> bool:
        return strength(self.hand) >= Q64_LEAST


Decider = Callable[[AskedHand], bool]


def asked(decides: Decider, seed: int = 1) -> tuple[Asking, Asking]:
    """Two askings that a bot has answered."""
    askings = Asking(SETTINGS, 1, seed), Asking(SETTINGS, 2, seed)
    for number, asking in enumerate(askings, start=1):
        answers: list[object] = []
        last = 0
        for place, (cash, deck) in enumerate(zip(asking.cashes, asking.decks, strict=True), 1):
            hand, dealer = (deck[0], deck[1], deck[2]), deck[3:]
            plays = decides(AskedHand(number, place, hand, cash, last))
            answers += [1, "play" if plays else "fold"]
            last = outcome_of_play(hand, dealer) if plays else FOLDED
        asking.note(ProbedMatch([], answers, (0,)))
    return askings


@pytest.mark.stats
def test_every_hand_is_asked_once_in_an_order_of_its_own() -> None:
    first, second = (Asking(SETTINGS, number, 7) for number in (1, 2))
    hands = [[deck[:3] for deck in asking.decks] for asking in (first, second)]

    for some in hands:
        assert sorted(map(sorted, some)) == sorted(map(sorted, combinations(PACK, 3)))
    assert hands[0] != hands[1]
    assert all(len({*deck}) == 6 for deck in first.decks)
    assert first.decks == Asking(SETTINGS, 1, 7).decks
    assert first.decks != Asking(SETTINGS, 1, 8).decks


def test_the_stake_is_asked_first_and_then_every_cash_below_the_goal() -> None:
    first, second = (Asking(SETTINGS, number, 7).cashes for number in (1, 2))

    assert first[0] == second[0] == 40
    assert first != second
    for cashes in first, second:
        assert len(cashes) == HANDS
        assert {*cashes[1:59]} == {*cashes} == {*range(2, 60)}


def test_of_many_cashes_some_are_asked() -> None:
    settings = ThreeCardPokerSettings(stake=10**9, goal=2 * 10**9)
    cashes = Asking(settings, 1, 1).cashes

    assert cashes[0] == 10**9
    assert MOST_CASHES - 1 <= len({*cashes}) <= MOST_CASHES + 1
    assert max(cashes) > 1.9 * 10**9


def test_a_bot_that_decides_by_its_hand_alone_answers_the_same() -> None:
    first, second = asked(lambda case: case.is_good)

    assert differing(first, second) == []
    assert dependence(first, second) == ""
    assert 0.6 < sum(first.plays.values()) / HANDS < 0.7


@pytest.mark.stats
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_bot_that_draws_lots_is_not_said_to_adapt(seed: int) -> None:
    random = Generator(seed)
    first, second = asked(lambda case: random.random() < (0.9 if case.is_good else 0.3), seed)

    assert len(differing(first, second)) > 1000
    assert dependence(first, second) == ""


@pytest.mark.stats
@pytest.mark.parametrize(
    ("decides", "what"),
    [
        (lambda case: case.round > 15, "late in a match"),
        (lambda case: case.is_good or case.round < 100, "early in a match"),
        (lambda case: case.is_good or case.cash > 55, "with more cash"),
        (lambda case: case.is_good or case.cash < 5, "with less cash"),
        (lambda case: case.is_good or case.last < 0, "after a worse round"),
        (lambda case: case.is_good or case.asking == 2, "when it is asked again"),
    ],
)
def test_a_bot_that_adapts_is_found(decides: Decider, what: str) -> None:
    sentence = dependence(*asked(decides))

    assert "hands differently when asked again: it plays more" in sentence
    assert sentence.endswith(what)
