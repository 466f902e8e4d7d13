"""Puts hands of blackjack to a bot: hands that are wanted, from fresh decks, and whole matches.

Both play the game's own rules, and note what the bot decides on the way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any, TypeAlias

import msgspec

from arena.engine.rules import AskSeat, Rules, Scoreboard, TellSeat
from arena.games.blackjack import match
from arena.games.blackjack_luck import BlackjackLuckMeter
from arena.games.blackjack_values import FULL, UPCARDS, Hands, Place, counted
from protocol.blackjack import MINIMUM, NEW_DECK, POINTS, Bet, BlackjackSettings, Draw
from protocol.cards import Card

__all__ = ["FreshHands", "Path", "WholeMatches", "starts"]

Path: TypeAlias = tuple[int, ...]
"""The points of the up-card and of the player's cards as they are dealt; empty for any cards."""


def starts(hands: Hands) -> list[Path]:
    """All hands of two cards, but naturals, against all up-cards."""
    return [
        (upcard, first, second)
        for upcard in UPCARDS
        for first in UPCARDS
        for second in range(first, 11)
        if (first, second) != (1, 10)
    ]


class FreshHands:
    """Asks a bot what it does with certain hands, each from a deck that was just shuffled.

    With `is_exploring` it goes on to the hands that the bot's hits make of them, until it has asked
    them all.

    Attributes:
        answers: whether the bot hit, by hand, every time that it was asked.
        played: the same for one hand after another.
        bets: what it bet.
    """

    def __init__(
        self, hands: Hands, paths: Iterable[Path], random: Random, *, is_exploring: bool = False
    ) -> None:
        self.answers: dict[Place, list[bool]] = {}
        self.played: list[list[tuple[Place, bool]]] = []
        self.bets: Counter[int] = Counter()
        self._hands = hands
        self._after: list[list[int]] = hands.after.tolist()
        self._counts = list(hands.index)
        self._random, self._is_exploring = random, is_exploring
        self._todo = list(paths)
        random.shuffle(self._todo)

    @property
    def asked(self) -> int:
        """How many questions were answered."""
        return self.bets.total() + sum(map(len, self.answers.values()))

    @property
    def is_done(self) -> bool:
        """Whether everything was asked."""
        if self._is_exploring:
            while self._todo and self._place(self._todo[-1]) in self.answers:
                self._todo.pop()
        return not self._todo

    def rules(self, settings: BlackjackSettings, deals: Iterator[Any], board: Scoreboard) -> Rules:
        """A match of such hands, until they are all asked."""
        bankroll = settings.bankroll
        for number in range(1, settings.hands + 1):
            if bankroll < MINIMUM or self.is_done:
                break
            self.played.append([])
            one = msgspec.structs.replace(settings, bankroll=bankroll, hands=1, shuffle="uniform")
            hand = Scoreboard(1)
            yield from self._noted(match(one, iter([self._deck(self._todo.pop())]), hand), number)
            bankroll += hand.scores[0]
            board.scores[0] = bankroll - settings.bankroll

    def _noted(self, rules: Rules, number: int) -> Rules:
        """Play one hand, which is this one of the match."""
        for step in rules:
            while type(step) is AskSeat:
                question = step.question
                if type(question) is Bet:
                    question = msgspec.structs.replace(question, round=number)
                answer = yield AskSeat(step.seat, question)
                if type(question) is Bet:
                    self.bets[answer] += 1
                else:
                    assert type(question) is Draw, "rules B ask nothing else"
                    self._note(question, answer == "hit")
                step = rules.send(answer)
            yield step

    def _note(self, question: Draw, hits: bool) -> None:
        upcard = POINTS[question.upcard]
        place = upcard, self._hands.index[counted(question.hand)]
        self.answers.setdefault(place, []).append(hits)
        self.played[-1].append((place, hits))
        if hits and self._is_exploring:
            path = (upcard, *(POINTS[card] for card in question.hand))
            self._todo += [(*path, card) for card, _ in self._unasked(place)]

    def _unasked(self, place: Place) -> list[tuple[int, Place]]:
        """The cards that make a hand of this one that was not asked yet."""
        upcard, hand = place
        counts, after = self._counts[hand], self._after[hand]
        return [
            (card, (upcard, after[card - 1]))
            for card in UPCARDS
            if after[card - 1] < len(self._after)
            and counts[card - 1] + (card == upcard) < FULL[card - 1]
            and (upcard, after[card - 1]) not in self.answers
        ]

    def _place(self, path: Path) -> Place:
        hand = 0
        for card in path[1:]:
            hand = self._after[hand][card - 1]
        return path[0], hand

    def _deck(self, path: Path) -> list[Card]:
        """A deck that deals this hand, and after it cards that make hands that were not asked."""
        rest = list(NEW_DECK)
        self._random.shuffle(rest)
        if not path:
            return rest
        upcard, *player = path
        if self._random.random() < 0.5:
            player[:2] = player[1::-1]
        if self._is_exploring:
            more, place = [(0, (0, 0))], self._place(path)
            while more := self._unasked(place):
                card, place = self._random.choice(more)
                player.append(card)
        front = [_taken(rest, points) for points in (player[0], upcard, *player[1:])]
        front.insert(3, rest.pop())
        return front + rest


def _taken(cards: list[Card], points: int) -> Card:
    return cards.pop(next(at for at, card in enumerate(cards) if POINTS[card] == points))


class WholeMatches:
    """Plays whole matches with fair shuffles, and measures the luck of the cards.

    Attributes:
        won: what each hand brought without luck, in chips.
        bets: of each hand.
        answers: whether the bot hit, by hand.
    """

    def __init__(self, hands: Hands) -> None:
        self.won: list[float] = []
        self.bets: list[int] = []
        self.answers: list[tuple[Place, bool]] = []
        self._hands = hands

    @property
    def asked(self) -> int:
        """How many questions were answered."""
        return len(self.bets) + len(self.answers)

    def rules(self, settings: BlackjackSettings, deals: Iterator[Any], board: Scoreboard) -> Rules:
        """One such match."""
        meter = BlackjackLuckMeter(settings)
        for step in (rules := match(settings, deals, board)):
            while type(step) is AskSeat:
                answer = yield step
                meter.answered(step, answer)
                self._note(step.question, answer)
                step = rules.send(answer)
            assert type(step) is TellSeat, "rules yield nothing else"
            meter.told(step)
            yield step
        self.won += (each.gains[0] - each.luck[0] for each in meter.rounds)

    def _note(self, question: Any, answer: Any) -> None:
        if type(question) is Bet:
            self.bets.append(answer)
        else:
            place = POINTS[question.upcard], self._hands.index[counted(question.hand)]
            self.answers.append((place, answer == "hit"))
