"""What is put to a bot of three card poker: every hand twice, and every cash at least as often.

An asking is a match in which each of the 22,100 hands is dealt once, in any order, against a hand
drawn at random and with a cash chosen from all below the goal. The bot hears what came of each
round, so one that remembers has something to remember. Two askings differ in all of that. This
module needs scipy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, islice, permutations
from random import Random
from typing import TypeAlias

import msgspec
from scipy.special import bdtr  # type: ignore[import-untyped]

from arena.games.analysis import ProbedMatch, ProbeMatch
from arena.games.rules import Rules, Scoreboard
from arena.games.three_card_poker.luck import HANDS
from arena.games.three_card_poker.rules import Deck, play_round
from protocol.cards import PACK
from protocol.three_card_poker import (
    FOLDED,
    LEAST_CASH,
    Hand,
    ThreeCardPokerSettings,
    outcome_of_play,
)

__all__ = ["MOST_CASHES", "Asking", "dependence", "differing"]

MOST_CASHES = 20_000
"""A match of all hands can ask for no more; of more, some are chosen."""

_SURE = 0.01  # how likely a bot that draws lots may be said to adapt
_RECENT = 5  # rounds
_ALL: tuple[Hand, ...] = tuple(combinations(PACK, 3))
_ORDERS = tuple(permutations(range(3)))


class Asking:
    """One asking, and its answers as soon as they are noted.

    Attributes:
        cashes, decks: by round; a hand comes first in its deck.
        antes: the antes that were named, by cash.
        plays: whether each hand was played; its cards are in the order of the pack.
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
        """What is put to the bot."""
        return ProbeMatch(settings=self._settings, decks=self.decks, rules=self._rules)

    def note(self, probed: ProbedMatch) -> None:
        """Note the answers to a whole match."""
        self._named: Sequence[int] = probed.answers[::2]
        self._played = [answer == "play" for answer in probed.answers[1::2]]
        self.plays = dict(zip(self._hands, self._played, strict=True))
        for cash, ante in zip(self.cashes, self._named, strict=True):
            self.antes.setdefault(cash, set()).add(ante)

    def moments(self) -> dict[Hand, Moment]:
        """What was the case when each hand was asked."""
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
        """Rounds whose cash is chosen, so that no more than one round hangs together."""
        for number, cash in enumerate(self.cashes, start=1):
            yield from play_round(number, cash, next(decks), settings, board)


Moment: TypeAlias = tuple[float, ...]
"""What was the case when a hand was asked, in the order of `_SIDES`."""

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
    """The hands that were answered differently."""
    return [hand for hand, plays in first.plays.items() if plays != second.plays[hand]]


def dependence(first: Asking, second: Asking) -> str:
    """What the answers depend on besides the hand, a sentence; empty if nothing is found.

    A bot that draws lots plays a hand that it answers differently in either asking, equally likely,
    whatever else was the case. So a sign test needs no assumption about how often it plays it.
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
    """How likely lots are so uneven, and whether more is played where this is greater."""
    more = sum(played[at] > folded[at] for played, folded in pairs)
    less = sum(played[at] < folded[at] for played, folded in pairs)
    return min(1.0, 2 * float(bdtr(min(more, less), more + less, 0.5))), more > less


def _deck(hand: Hand, random: Random) -> Deck:
    """A hand in any order, and one for the dealer."""
    a, b, c = _ORDERS[int(random.random() * len(_ORDERS))]
    while True:
        dealer = _ALL[int(random.random() * HANDS)]
        if not {*hand} & {*dealer}:
            return hand[a], hand[b], hand[c], *dealer


def _cashes(goal: int, random: Random) -> Iterator[int]:
    """All cashes from the least to the goal, or `MOST_CASHES` of them, in any order, repeatedly."""
    levels = range(LEAST_CASH, goal, -(-(goal - LEAST_CASH) // MOST_CASHES))
    while True:
        yield from random.sample(levels, len(levels))
