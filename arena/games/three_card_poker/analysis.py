"""Measures how good a three card poker bot is: the value of its play, and its chance of a goal.

The bot is asked every hand twice, and every cash below the goal at least as often. An asking is a
match in which each of the 22,100 hands is dealt once, in random order, against a random dealer's
hand and with a cash chosen from all below the goal. The bot hears the outcome of each round, so a
bot that remembers has something to remember. Two askings differ in all of that.

If a bot decides by its hand alone, its play is worth an exact share of the ante. If its ante
depends on the cash alone, the probability of reaching the goal is exact, too. It is given without a
limit of rounds, as a Markov chain has none, and within the rounds of the settings, which a league
counts. Otherwise the latter is estimated from matches. If a bot plays some hands at random, how
often it plays a hand is estimated from two answers. This module needs numpy and scipy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, islice, permutations
from math import sqrt
from random import Random
from statistics import NormalDist
from typing import TypeAlias

import msgspec
from scipy.special import bdtr  # type: ignore[import-untyped]

from arena.games.analysis import (
    Analyser,
    Analysis,
    Certainty,
    Figure,
    ProbedMatch,
    ProbeMatch,
    SeatMatch,
    heard_by,
)
from arena.games.evaluator import CellMeter, Tally
from arena.games.rules import Rules, Scoreboard
from arena.games.statistics import FEWEST, wilson
from arena.games.three_card_poker.chain import GoalChain, best_for_goal, play_odds, round_odds
from arena.games.three_card_poker.evaluator import (
    BEST,
    MOST_FOR_BEST,
    UNIT,
    ThreeCardPokerEvaluator,
    given_away,
    hand_cells,
    played_chart,
    weaknesses,
)
from arena.games.three_card_poker.rules import Deck, league_goal, play_round, reached_goal
from arena.games.three_card_poker.table import (
    CLASSES,
    DEALERS_HANDS,
    HANDS,
    HandClass,
    class_of,
    hand_classes,
)
from protocol.cards import PACK
from protocol.errors import NoAnalysis
from protocol.three_card_poker import (
    FOLDED,
    LEAST_CASH,
    Hand,
    ThreeCardPokerSettings,
    outcome_of_play,
)

__all__ = [
    "MOST_CASHES",
    "Asking",
    "best_figures",
    "chain_figures",
    "dependence",
    "differing",
    "no_chain",
    "probe",
    "tried_figures",
    "watch",
]

_BEST = 100 * BEST  # in `UNIT`
_OF_MATCHES, _IN_TIME = "% of matches", "reaches the goal in time"
_MATCHES = 100  # played where no chain can be solved; at most 1 s of CPU in this process
_MOST_ASKED = 1_000_000  # then no further match is played: rounds and goal may be huge
_Z = NormalDist().inv_cdf(0.975)


def probe(settings: ThreeCardPokerSettings, seed: int, against: Sequence[str]) -> Analyser:
    """Ask a bot all hands twice; raises `NoAnalysis` if `against` names other bots."""
    if against:
        raise NoAnalysis("it is played against the dealer: no other bot changes what one is worth")
    goal = league_goal(settings.stake) if settings.goal is None else settings.goal
    settings = msgspec.structs.replace(settings, goal=goal)
    askings = Asking(settings, 1, seed), Asking(settings, 2, seed)
    tally, classes = Tally(), hand_classes(settings.pair_kicker)
    for asking in askings:
        asking.note((yield asking.match()))
        for hand, plays in asking.plays.items():
            for cell, done in hand_cells(classes, hand, "play" if plays else "fold"):
                tally.add(cell, done)
    unsure = [class_of(hand) for hand in differing(*askings)]
    figures = [*_worth(tally, [classes[number] for number in unsure])]
    adapts, asked = dependence(*askings), 4 * HANDS
    if why := no_chain(settings, askings, adapts):
        won = []
        for number in range(_MATCHES if goal > settings.stake else 0):
            if asked > _MOST_ASKED:
                break
            probed = yield ProbeMatch(settings=settings, seed=seed + number)
            won.append(reached_goal(settings, probed.scores[0]))
            asked += len(probed.decisions)
        figures += tried_figures(settings, why, won)
    else:
        figures += chain_figures(settings, askings[0], tally, unsure)
    return Analysis(
        figures=(*figures, *best_figures(settings)),
        weaknesses=weaknesses(tally),
        charts=(played_chart(tally, is_sample=False),),
        adapts=adapts,
        asked=asked,
    )


def _worth(tally: Tally, unsure: Sequence[HandClass]) -> Iterator[Figure]:
    """The figures for the value of the play and for its loss against the best play.

    The variance of the mean of two answers is, on average, the square of half their difference.
    """
    lost = given_away(tally)
    half = _Z * 50 * sqrt(sum(one.gain**2 for one in unsure)) / (HANDS * DEALERS_HANDS)
    least, most = max(0.0, float(lost) - half), float(lost) + half  # nothing beats the best
    best = float(_BEST)
    bands = (best - most, best - least), (least, most)
    values = ("value", _BEST - lost), ("given away", lost)
    for (name, value), band in zip(values, bands, strict=True):
        yield Figure(
            name=name,
            value=float(value),
            unit=UNIT,
            certainty=Certainty.PROBED if unsure else Certainty.EXACT,
            low=band[0] if unsure else None,
            high=band[1] if unsure else None,
            fraction="" if unsure else str(value / 100),
            remark=_REMARKS[name],
        )


_REMARKS = {
    "value": f"on average in a round; the best play is worth −{-float(_BEST):.4f} %",
    "given away": "the distance from the best play",
}


def watch(matches: Iterable[SeatMatch]) -> Analysis:
    """Analyse a bot from matches that it has played; raises `NoAnalysis` if they have no hand."""
    meter, asked = CellMeter(ThreeCardPokerEvaluator), 0
    classes: Sequence[HandClass] = ()
    for match in matches:
        heard_by(match, meter)
        classes = hand_classes(match.settings.pair_kicker)  # type: ignore[attr-defined]  # ours
        asked += len(match.decisions)
    tally = meter.tally
    if not tally.asked["cost"]:
        raise NoAnalysis("it was dealt no hand in these matches")
    return Analysis(
        figures=(_seen(tally, classes), _estimated(tally)),
        weaknesses=weaknesses(tally),
        charts=meter.charts(),
        asked=asked,
    )


def _seen(tally: Tally, classes: Sequence[HandClass]) -> Figure:
    """The value of the play seen in each class, weighted by how often the class is dealt."""
    if unseen := sum(not tally.asked[number] for number in range(CLASSES)):
        remark = f"{unseen:,} of {CLASSES:,} kinds of hands were not seen"
        return Figure(name="value", value=None, unit=UNIT, remark=remark)
    value, variance = -1.0, 0.0
    for number, one in enumerate(classes):
        played, asked = tally.count(number)
        weight = one.size * one.gain / (HANDS * DEALERS_HANDS)
        likely = (played + 1) / (asked + 2)  # 0 of 1 does not prove that it never plays it
        value += weight * played / asked
        variance += weight * weight * likely * (1 - likely) / asked
    half = 100 * _Z * sqrt(variance)
    return Figure(
        name="value",
        value=100 * value,
        unit=UNIT,
        certainty=Certainty.PROBED,
        low=100 * value - half,
        high=100 * value + half,
        remark=_REMARKS["value"],
    )


def _estimated(tally: Tally) -> Figure:
    """The mean loss per hand; it has no interval if no mistake was seen."""
    name, certainty = "given away", Certainty.ESTIMATE
    hands = tally.asked["cost"]
    if hands < FEWEST:
        remark = f"too few hands to say, {hands}; it takes {FEWEST}"
        return Figure(name=name, value=None, unit=UNIT, certainty=certainty, remark=remark)
    lost = float(given_away(tally))
    square = 100**2 * tally.done["square"] / (DEALERS_HANDS**2 * hands)
    half = _Z * sqrt(max(0.0, square - lost * lost) / hands)
    return Figure(
        name=name,
        value=lost,
        unit=UNIT,
        certainty=certainty,
        low=max(0.0, lost - half) if half else None,
        high=lost + half if half else None,
        remark="the mean over the hands that were dealt; the rest of what was lost is the dealer's",
    )


# ---- What is asked

MOST_CASHES = 20_000
"""The most cashes that a match of all hands asks for; with more, some are chosen."""

_SURE = 0.01  # the probability that a bot which only plays at random is called adaptive
_RECENT = 5  # rounds
_ALL: tuple[Hand, ...] = tuple(combinations(PACK, 3))
_ORDERS = tuple(permutations(range(3)))


class Asking:
    """One asking of all hands, and the answers once they are noted.

    Attributes:
        cashes, decks: by round; a deck begins with the hand.
        antes: by cash, the antes that the bot chose.
        plays: whether it played each hand; a hand's cards are in the order of the pack.
    """

    def __init__(self, settings: ThreeCardPokerSettings, number: int, seed: int) -> None:
        random = Random(f"{seed}:{number}")
        self._number = number
        self._settings = msgspec.structs.replace(settings, rounds=HANDS)
        self._hands = random.sample(_ALL, HANDS)
        self.decks = [_deck(hand, random) for hand in self._hands]
        cashes = _cashes(max(settings.goal or 0, settings.stake + 1), random)
        self.cashes = [settings.stake, *islice(cashes, HANDS - 1)]
        self.antes: dict[int, set[int]] = {}
        self.plays: dict[Hand, bool] = {}

    def match(self) -> ProbeMatch:
        return ProbeMatch(settings=self._settings, decks=self.decks, rules=self._rules)

    def note(self, probed: ProbedMatch) -> None:
        self._named: Sequence[int] = probed.answers[::2]
        self._played = [answer == "play" for answer in probed.answers[1::2]]
        self.plays = dict(zip(self._hands, self._played, strict=True))
        for cash, ante in zip(self.cashes, self._named, strict=True):
            self.antes.setdefault(cash, set()).add(ante)

    def moments(self) -> dict[Hand, Moment]:
        """The circumstances in which each hand was asked."""
        found: dict[Hand, Moment] = {}
        outcomes = [0]
        for number, hand in enumerate(self._hands):
            now = self._number, number, self.cashes[number], self._named[number]
            follows_play = number > 0 and self._played[number - 1]
            found[hand] = (*now, outcomes[-1], sum(outcomes[-_RECENT:]), follows_play)
            outcomes.append(self._outcome(number))
        return found

    def _outcome(self, number: int) -> int:
        if not self._played[number]:
            return FOLDED
        deck = self.decks[number]
        return outcome_of_play(deck[:3], deck[3:], self._settings.pair_kicker)

    def _rules(
        self, settings: ThreeCardPokerSettings, decks: Iterator[Deck], board: Scoreboard
    ) -> Rules:
        """Play rounds with a chosen cash each, so that no round depends on the one before."""
        for number, cash in enumerate(self.cashes, start=1):
            yield from play_round(number, cash, next(decks), settings, board)


Moment: TypeAlias = tuple[float, ...]
"""The circumstances in which a hand was asked, in the order of `_SIDES`."""

_SIDES = (
    ("when it is asked again", "when it is asked first"),
    ("late in a match", "early in a match"),
    ("with more cash", "with less cash"),
    ("at a higher ante", "at a lower ante"),
    ("after a better round", "after a worse round"),
    ("after better rounds", "after worse rounds"),
    ("after a hand that it played", "after a hand that it folded"),
)


def differing(first: Asking, second: Asking) -> list[Hand]:
    """The hands that the bot answered differently in the two askings."""
    return [hand for hand, plays in first.plays.items() if plays != second.plays[hand]]


def dependence(first: Asking, second: Asking) -> str:
    """A sentence that says what the answers depend on besides the hand; empty if nothing is found.

    A bot that plays a hand at random, and answers it differently in two askings, is equally likely
    to have played it in either. So a sign test need not assume how often it plays the hand.
    """
    hands = differing(first, second)
    if not hands:
        return ""
    one, other = first.moments(), second.moments()
    pairs = [
        (one[hand], other[hand]) if first.plays[hand] else (other[hand], one[hand])
        for hand in hands
    ]
    chances = [_sign_test(pairs, at) for at in range(len(_SIDES))]
    least = min(chances, key=lambda chance: chance[0])
    if least[0] >= _SURE / len(_SIDES):
        return ""
    side = _SIDES[chances.index(least)][0 if least[1] else 1]
    return f"it answers {len(hands):,} hands differently when asked again: it plays more {side}"


def _sign_test(pairs: Sequence[tuple[Moment, Moment]], at: int) -> tuple[float, bool]:
    """The p-value of the split of the pairs, and whether the larger value goes with playing."""
    more = sum(played[at] > folded[at] for played, folded in pairs)
    less = sum(played[at] < folded[at] for played, folded in pairs)
    return min(1.0, 2 * float(bdtr(min(more, less), more + less, 0.5))), more > less


def _deck(hand: Hand, random: Random) -> Deck:
    """The hand in random order, then a random hand for the dealer."""
    a, b, c = _ORDERS[int(random.random() * len(_ORDERS))]
    while True:
        dealer = _ALL[int(random.random() * HANDS)]
        if not {*hand} & {*dealer}:
            return hand[a], hand[b], hand[c], *dealer


def _cashes(goal: int, random: Random) -> Iterator[int]:
    """All cashes below the goal, or `MOST_CASHES` of them, in random order, repeated for ever."""
    levels = range(LEAST_CASH, goal, -(-(goal - LEAST_CASH) // MOST_CASHES))
    while True:
        yield from random.sample(levels, len(levels))


# ---- The goal


def no_chain(settings: ThreeCardPokerSettings, askings: Sequence[Asking], adapts: str) -> str:
    """Why no chain to the goal can be solved; empty if one can."""
    stake, goal = settings.stake, goal_of(settings)
    if goal <= stake:
        return f"a stake of {stake:,} has reached the goal of {goal:,} already"
    if goal - LEAST_CASH > MOST_CASHES:
        return f"there are more than {MOST_CASHES:,} cashes below the goal of {goal:,}"
    if adapts:
        return "its plays depend on more than its hand"
    first, second = (asking.antes for asking in askings)
    several = [cash for cash in first if len(first[cash] | second[cash]) > 1]
    if several:
        cash = min(several, key=lambda cash: abs(cash - stake))
        one, other = sorted(first[cash] | second[cash])[:2]
        return (
            f"its ante depends on more than its cash: with {cash:,} it antes {one:,} as well as "
            f"{other:,}"
        )
    return ""


def goal_of(settings: ThreeCardPokerSettings) -> int:
    assert settings.goal is not None, "it was filled in"
    return settings.goal


def chain_figures(
    settings: ThreeCardPokerSettings, asking: Asking, tally: Tally, unsure: Sequence[int]
) -> Iterator[Figure]:
    """The probability of the goal without a limit of rounds and, if exact, within the settings'.

    Args:
        settings: with a goal.
        asking: one of the askings, with its answers.
        tally: of all answers.
        unsure: the classes of the hands that were answered differently.
    """
    goal = goal_of(settings)
    stake = settings.stake
    antes = [0] * LEAST_CASH + [min(asking.antes[cash]) for cash in range(LEAST_CASH, goal)]
    shares = [tally.done[number] / tally.asked[number] for number in range(CLASSES)]
    chain = GoalChain(goal, antes, round_odds(shares, settings.pair_kicker))
    value = 100 * float(chain.values()[stake])
    low = high = None
    if unsure:
        changes = play_odds(settings.pair_kicker)[unsure] @ chain.slopes(stake)
        half = 100 * _Z * sqrt(float(changes @ changes)) / 2
        low, high = max(0.0, value - half), min(100.0, value + half)
    yield Figure(
        name="reaches the goal",
        value=value,
        unit=_OF_MATCHES,
        certainty=Certainty.PROBED if unsure else Certainty.EXACT,
        low=low,
        high=high,
        remark=f"{_way(settings)}, without a limit of rounds",
    )
    if not unsure:
        yield Figure(
            name=_IN_TIME,
            value=100 * float(chain.within(settings.rounds)[stake]),
            unit=_OF_MATCHES,
            remark=_in_time(settings),
        )


def tried_figures(settings: ThreeCardPokerSettings, why: str, won: Sequence[float]) -> list[Figure]:
    """Figures for why there is no chain, and for the share of matches won, if any were played."""
    figures = [Figure(name="reaches the goal", value=None, unit=_OF_MATCHES, remark=why)]
    if won:
        share = sum(won) / len(won)
        low, high = wilson(share, len(won)).scaled(100).bounds
        matches = "1 match" if len(won) == 1 else f"{len(won)} matches"
        figures.append(
            Figure(
                name=_IN_TIME,
                value=100 * share,
                unit=_OF_MATCHES,
                certainty=Certainty.ESTIMATE,
                low=low,
                high=high,
                remark=f"{_in_time(settings)}, in {matches}",
            )
        )
    return figures


def best_figures(settings: ThreeCardPokerSettings) -> Iterator[Figure]:
    """The figure for the best play, unless computing it would take too long."""
    stake, goal = settings.stake, goal_of(settings)
    if stake < goal <= MOST_FOR_BEST:
        best = best_for_goal(goal, settings.pair_kicker)
        yield Figure(
            name="best possible for the goal",
            value=100 * float(best.values[stake]),
            unit=_OF_MATCHES,
            remark=f"{_way(settings)}, by the best antes and plays for it, without a limit of "
            f"rounds; a best first ante is {best.antes[stake]:,}",
        )


def _way(settings: ThreeCardPokerSettings) -> str:
    return f"from {settings.stake:,} to {settings.goal:,}"


def _in_time(settings: ThreeCardPokerSettings) -> str:
    return f"{_way(settings)} in at most {settings.rounds:,} rounds"
