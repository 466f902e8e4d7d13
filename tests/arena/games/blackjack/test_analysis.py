"""How good a player of blackjack is, found by asking it, and from matches that it has played."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from random import Random
from typing import Any, NamedTuple

import pytest

import arena
from arena.games.analysis import (
    Analyser,
    Analysis,
    Certainty,
    Figure,
    ProbeMatch,
    SeatDecision,
    SeatMatch,
)
from arena.games.blackjack import analysis as blackjack_analysis
from arena.games.blackjack.analysis import FreshHands, HandAnswer, found_adapting, starts, watch
from arena.games.blackjack.rules import GAME
from arena.games.blackjack.values import Place, fresh_deck
from arena.lab.probe import analyse_here
from arena.records.seat_document import seat_match
from bots.blackjack import PlayerStrategy, Simple
from protocol.blackjack import NEW_DECK, Bet, BlackjackSettings, Draw, HandOver, Side, hand_value
from protocol.cards import Card
from protocol.errors import NoAnalysis
from protocol.vocabulary import Question, Range
from tests.support.not_none import not_none

ANALYSING = not_none(GAME.analysing)

LEAGUE = BlackjackSettings(shuffle="uniform")


class Cautious(PlayerStrategy):
    """Never busts."""

    bankroll = 0
    lost = False

    def bet(self, bankroll: int, minimum: int) -> int:
        self.bankroll = bankroll
        return minimum

    def draw(self, upcard: Card, hand: tuple[Card, ...], total: int, soft: bool) -> bool:
        return total <= 11

    def hand_over(self, hand: HandOver) -> None:
        self.lost = hand.payoff < 0


class Mixing(Cautious):
    """Hits one hard twelve in three."""

    def __init__(self) -> None:
        self.random = Random(7)

    def draw(self, upcard: Card, hand: tuple[Card, ...], total: int, soft: bool) -> bool:
        return total <= 11 or (total == 12 and not soft and self.random.random() < 1 / 3)


class Rarely(Cautious):
    """Hits two tens one time in 25, but none of the twenty that are asked for."""

    def __init__(self) -> None:
        self.random = Random(4)

    def draw(self, upcard: Card, hand: tuple[Card, ...], total: int, soft: bool) -> bool:
        return total <= 11 or (
            len(hand) == 2 and total == 20 and not soft and self.random.random() < 0.04
        )


class Wealthy(Cautious):
    """Hits twelve if it has many chips."""

    def draw(self, upcard: Card, hand: tuple[Card, ...], total: int, soft: bool) -> bool:
        return total <= 11 or (total == 12 and self.bankroll > 5000)


class Desperate(Cautious):
    """Hits twelve and thirteen when it has lost."""

    def draw(self, upcard: Card, hand: tuple[Card, ...], total: int, soft: bool) -> bool:
        return total <= 11 or (total <= 13 and self.lost)


class SeenCounter(Cautious):
    """Bets more and hits twelve once many cards have been seen."""

    seen = 0

    def bet(self, bankroll: int, minimum: int) -> int:
        return min(bankroll, minimum if self.seen < 20 else 4 * minimum)

    def shuffled(self) -> None:
        self.seen = 0

    def exposed(self, card: Card, to: Side) -> None:
        self.seen += 1

    def draw(self, upcard: Card, hand: tuple[Card, ...], total: int, soft: bool) -> bool:
        return total <= 11 or (total == 12 and self.seen >= 20)


def analysed(bot: Any, settings: BlackjackSettings = LEAGUE, seed: int = 1) -> Analysis:
    return analyse_here(GAME, ANALYSING.probe(settings, seed, ()), [bot])


@pytest.fixture
def few_hands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blackjack_analysis, "_HANDS", 2000)


@pytest.fixture(scope="module")
def simple() -> Analysis:
    return analysed(Simple())


class Band(NamedTuple):
    low: float
    high: float


def band(figure: Figure) -> Band:
    return Band(not_none(figure.low), not_none(figure.high))


def number(figure: Figure) -> float:
    return not_none(figure.value)


def exact_value(hits: Callable[[int, bool], float]) -> float:
    """What a play is worth that hits so often by its total, in per cent."""
    fresh = fresh_deck()
    shares = fresh.best.copy()
    for hand, cards in enumerate(zip(fresh.hands.totals, fresh.hands.soft, strict=True)):
        if fresh.is_asked[0, hand]:
            shares[:, hand] = hits(*cards)
    return 100 * fresh.value(shares)


@pytest.mark.stats
def test_B12_simple_is_worth_exactly_what_an_independent_program_finds(simple: Analysis) -> None:
    value, best, given, *_ = simple.figures

    # Both stand in test_values.py, made by another program.
    assert (f"{value.value:.10f}", value.certainty) == ("-1.3592453927", Certainty.EXACT)
    assert (f"{best.value:.10f}", best.certainty) == ("-1.2861886484", Certainty.EXACT)
    assert f"{given.value:.10f}" == "0.0730567443"
    assert {value.unit, best.unit, given.unit} == {"% of the bet"}
    assert simple.adapts == ""


@pytest.mark.stats
def test_mistakes_sum_to_the_distance_from_the_best_play_as_do_the_cells(simple: Analysis) -> None:
    cells = [cell for chart in simple.charts for row in chart.cells for cell in row]

    assert simple.weaknesses[0].spot == "hard 16 against 10"
    assert sum(each.cost for each in simple.weaknesses) == pytest.approx(0.0730567443, abs=1e-10)
    assert sum(cell.cost or 0 for cell in cells if cell) == pytest.approx(0.0730567443, abs=1e-10)
    assert all(each.cost > 0 for each in simple.weaknesses)


@pytest.mark.stats
def test_the_value_of_a_fresh_deck_and_that_of_matches_are_two_figures(simple: Analysis) -> None:
    *_, at_five, matches = simple.figures
    naturals = 2 * 4 * 16 / (52 * 51)

    # Half a chip is lost of every natural (B8).
    assert at_five.value == pytest.approx(5 * -0.013592453927 - naturals / 2)
    assert (at_five.name, at_five.certainty) == (
        "value from a fresh deck, with a bet of 5",
        Certainty.EXACT,
    )
    assert (matches.name, matches.certainty) == (
        "won in whole matches, without luck",
        Certainty.ESTIMATE,
    )
    # A million hands gave -0.0967, tests/bots/test_blackjack.py.
    assert band(matches).low < -0.0967 < band(matches).high < band(matches).low + 0.04
    assert "cut-card effect" in matches.remark
    assert "Bets were 5 to 5" in matches.remark
    assert "something else" not in matches.remark


def put(asking: FreshHands, bot: PlayerStrategy, settings: BlackjackSettings) -> None:
    """Let a bot play hands that are wanted, a match at least."""

    def analyser() -> Analyser:
        yield ProbeMatch(settings=settings, rules=asking.rules)
        while not asking.is_done:
            yield ProbeMatch(settings=settings, rules=asking.rules)
        return Analysis(figures=())

    analyse_here(GAME, analyser(), [bot])


@pytest.mark.stats
def test_every_hand_that_a_bot_may_reach_is_asked_and_no_other() -> None:
    fresh = fresh_deck()
    asking = FreshHands(fresh.hands, starts(fresh.hands), Random(3), is_exploring=True)
    put(asking, Cautious(), LEAGUE)
    shares = fresh.best.copy()
    for hand, total in enumerate(fresh.hands.totals):
        if fresh.is_asked[0, hand]:
            shares[:, hand] = total <= 11
    reached = (fresh.reached(shares) > 0) & fresh.is_asked

    assert {(upcard - 1, hand) for upcard, hand in asking.answers} == {
        (int(upcard), int(hand)) for upcard, hand in zip(*reached.nonzero(), strict=True)
    }


class Witness(Mixing):
    """Checks that all that it is told fits together, as it would in a match."""

    def __init__(self) -> None:
        super().__init__()
        self.hands = 0

    def reset(self) -> None:
        self.chips = self.round = 0

    def decide(self, question: Question[Any]) -> object:
        if type(question) is Bet:
            self.round += 1
            assert question.round == self.round
            assert question.bankroll == (self.chips if self.round > 1 else 40)
            assert (question.legal.min, question.legal.max) == (5, question.bankroll)
            self.mine: list[Card] = []
            self.dealers: list[Card] = []
        return super().decide(question)

    def shuffled(self) -> None:
        self.mine, self.dealers = [], []

    def exposed(self, card: Card, to: Side) -> None:
        assert card not in self.mine + self.dealers
        (self.mine if to == "player" else self.dealers).append(card)

    def draw(self, upcard: Card, hand: tuple[Card, ...], total: int, soft: bool) -> bool:
        assert (hand, [upcard]) == (tuple(self.mine), self.dealers)
        assert (total, soft) == hand_value(hand)
        return super().draw(upcard, hand, total, soft)

    def hand_over(self, hand: HandOver) -> None:
        assert (hand.player, hand.dealer) == (tuple(self.mine), tuple(self.dealers))
        assert hand.bankroll == self.bankroll + hand.payoff
        self.chips = hand.bankroll
        self.hands += 1


@pytest.mark.stats
@pytest.mark.parametrize("is_exploring", [True, False])
def test_made_up_hands_are_asked_and_told_as_those_of_a_match_are(is_exploring: bool) -> None:
    fresh, bot = fresh_deck(), Witness()
    paths = starts(fresh.hands) if is_exploring else [(), (10, 2, 3, 4), (1, 2, 2, 2, 1)] * 9
    asking = FreshHands(fresh.hands, paths, Random(3), is_exploring=is_exploring)
    put(asking, bot, BlackjackSettings(bankroll=40, hands=30, shuffle="uniform"))

    assert bot.hands == len(asking.played) == asking.bets.total()
    assert sum(map(len, asking.played)) == asking.asked - bot.hands


# ---- Bots that do not always do the same


@pytest.mark.stats
@pytest.mark.usefixtures("few_hands")
def test_a_bot_that_mixes_has_an_estimate_and_does_not_adapt() -> None:
    analysis = analysed(Mixing())
    value, best, given, at_bet, _ = analysis.figures
    twelve = exact_value(lambda total, is_soft: total <= 11 or (total == 12 and not is_soft) / 3)

    assert value.certainty is given.certainty is Certainty.ESTIMATE
    assert band(value).low < twelve < band(value).high < band(value).low + 1
    assert number(given) == pytest.approx(number(best) - number(value))
    assert sum(each.cost for each in analysis.weaknesses) == pytest.approx(given.value)
    assert band(at_bet).low < number(at_bet) < band(at_bet).high
    assert analysis.adapts == ""
    assert any(
        each.spot == "hard 12 against 10" and each.played.startswith("hits 3")
        for each in analysis.weaknesses
    )


@pytest.mark.stats
@pytest.mark.usefixtures("few_hands")
def test_a_bot_that_mixes_rarely_has_no_exact_value() -> None:
    analysis = analysed(Rarely())
    value, *_, matches = analysis.figures

    assert value.certainty is Certainty.ESTIMATE
    assert number(value) < exact_value(lambda total, is_soft: total <= 11)
    assert "what came before matters" not in matches.remark
    assert analysis.adapts == ""


@pytest.mark.usefixtures("few_hands")
def test_a_bot_that_plays_otherwise_with_more_chips_is_found() -> None:
    analysis = analysed(Wealthy())

    assert "it did something else when it was asked again" in analysis.adapts
    assert "another bankroll" in analysis.adapts
    assert analysis.figures[0].certainty is Certainty.ESTIMATE


@pytest.mark.stats
@pytest.mark.usefixtures("few_hands")
def test_a_bot_that_looks_at_the_hand_before_is_found() -> None:
    analysis = analysed(Desperate())

    assert analysis.adapts == "How often it hits depends on whether it lost the hand before."


@pytest.mark.usefixtures("few_hands")
def test_a_bot_that_counts_is_exact_from_a_fresh_deck_and_said_to_count() -> None:
    analysis = analysed(SeenCounter(), BlackjackSettings(bankroll=10**9, hands=10**7))
    value, *_, matches = analysis.figures

    assert value.value == pytest.approx(exact_value(lambda total, is_soft: total <= 11))
    assert value.certainty is Certainty.EXACT
    assert analysis.adapts == ""
    assert "Bets were 5 to 20" in matches.remark
    assert "hands it bet something else than 5." in matches.remark
    assert "decisions it did something else than from a fresh deck" in matches.remark
    assert matches.value is not None
    assert analysis.asked < 40_000  # a match of millions of hands is not played to its end


def answers(condition: int, hits: Callable[[bool, int], bool]) -> dict[Place, list[HandAnswer]]:
    """Of two hands, under a condition and without it in turn."""
    found: dict[Place, list[HandAnswer]] = {}
    fresh = fresh_deck()
    for cards in ((0, 1, *(0,) * 7, 1), (0, 0, 1, *(0,) * 5, 1, 0)):
        place = 10, fresh.hands.index[cards]
        for number in range(60):
            is_so = number % 2 == 0
            states = [False] * 4
            states[condition] = is_so
            found.setdefault(place, []).append(HandAnswer(hits(is_so, number), *states))
    return found


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (0, "its bankroll"),
        (1, "how long the match has gone on"),
        (2, "whether it lost the hand before"),
        (3, "its bet"),
    ],
)
def test_what_hits_depend_on_is_named(condition: int, words: str) -> None:
    depends = answers(condition, lambda is_so, number: is_so and number % 3 > 0)
    chance = answers(condition, lambda is_so, number: number % 3 == 0)

    assert found_adapting(fresh_deck(), depends) == f"How often it hits depends on {words}."
    assert found_adapting(fresh_deck(), chance) == ""


def test_bots_that_mix_are_hardly_ever_said_to_adapt() -> None:
    fresh, random = fresh_deck(), Random(5)
    alarms = 0
    for _ in range(200):
        played = answers(random.randrange(4), lambda is_so, number: random.random() < 0.2)
        alarms += found_adapting(fresh, played) != ""

    assert alarms <= 6  # 2 are allowed on average


# ---- Refusals


def test_there_is_nobody_to_analyse_it_against() -> None:
    with pytest.raises(NoAnalysis, match="against the dealer alone"):
        next(ANALYSING.probe(LEAGUE, 1, ["simple"]))


@pytest.mark.parametrize(("bankroll", "hands", "is_refused"), [(4, 9, 1), (5, 0, 1), (5, 1, 0)])
def test_B5_where_no_hand_is_played_nothing_is_analysed(
    bankroll: int, hands: int, is_refused: int
) -> None:
    reason = ANALYSING.refuses(BlackjackSettings(bankroll=bankroll, hands=hands))

    assert bool(reason) == bool(is_refused)


@pytest.mark.stats
def test_matches_of_few_hands_have_no_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blackjack_analysis, "_MATCHES", 9)
    *_, matches = analysed(Cautious(), BlackjackSettings(bankroll=5, hands=2)).figures

    assert matches.value is None
    assert matches.remark.endswith("too few to say; it takes 1000.")


# ---- Bots that were watched


def watched(shuffle: str, hands: int, bot: PlayerStrategy) -> SeatMatch:
    settings = {"shuffle": shuffle, "hands": hands, "bankroll": 10**6}
    return seat_match(arena.play("blackjack", [bot], settings=settings, seed=2).record, 0)


def figure(analysis: Analysis, name: str) -> Figure:
    return next(figure for figure in analysis.figures if figure.name == name)


def test_a_watched_bot_that_was_not_asked_everywhere_has_no_single_value() -> None:
    match = watched("uniform", 1500, Simple())
    analysis = watch([match])
    value = analysis.figures[0]
    won = figure(analysis, "won in whole matches, without luck")
    given = figure(analysis, "given away from a fresh deck")

    assert value.value is None
    assert "(not seen)" in value.remark
    assert "not seen count as played best" in given.remark
    assert sum(each.cost for each in analysis.weaknesses) == pytest.approx(given.value)
    assert band(won).low < -0.0967 < band(won).high
    assert analysis.asked == len(match.decisions)


def test_a_watched_bot_that_was_asked_everywhere_has_a_value_with_a_band() -> None:
    cards = [
        *product(NEW_DECK[:13], NEW_DECK[13:26], NEW_DECK[26:39]),
        *product(NEW_DECK[:13], ["4h"], ["6c"], ["As", "Ad"]),
        *product(NEW_DECK[:13], ["5h"], ["6c"], ["Td"]),
    ]
    asked = [SeatDecision(Bet(1, 100, Range(5, 100)), 5)]
    for upcard, *hand in cards:
        total, is_soft = hand_value(hand)
        answer = "hit" if total <= 11 else "stand"
        asked += [SeatDecision(Draw(upcard, tuple(hand), total, is_soft), answer)] * 30
    value, best, given, won = watch([SeatMatch(BlackjackSettings(), 0, asked)]).figures
    exact = exact_value(lambda total, is_soft: total <= 11)

    assert value.value == pytest.approx(exact)
    assert value.certainty is given.certainty is Certainty.PROBED
    assert band(value).low < exact < band(value).high
    assert best.value is not None
    assert band(given).high == best.value - band(value).low
    assert band(given).low < best.value - exact < band(given).high
    assert won.value is None  # a riffle's luck is not measured


def test_a_bot_that_was_never_asked_to_hit_cannot_be_watched() -> None:
    with pytest.raises(NoAnalysis, match="never asked"):
        not_none(ANALYSING.watch)([SeatMatch(LEAGUE, 0, ())])
