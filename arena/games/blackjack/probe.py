"""Puts hands of blackjack to a bot: hands that are wanted, from fresh decks, and whole matches.

Both play the game's own rules, and note what the bot decides on the way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple, TypeAlias

import msgspec

from arena.games.blackjack.luck import BlackjackLuckMeter
from arena.games.blackjack.rules import match
from arena.games.blackjack.values import FULL, UPCARDS, Hands, Place, counted
from arena.games.rules import AskSeat, Rules, Scoreboard, TellSeat
from protocol.blackjack import MINIMUM, NEW_DECK, POINTS, Bet, BlackjackSettings, Draw
from protocol.cards import Card

__all__ = ["FreshHands", "HandAnswer", "Path", "WholeMatches", "starts"]

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


class HandAnswer(NamedTuple):
    """What a bot did with a hand, and how it stood then.

    Attributes:
        hits: whether it hit.
        is_rich: whether it was asked from another bankroll.
        is_late: whether a quarter of the longest match was over.
        after_loss: whether it had lost the hand before.
        is_raised: whether it had bet more than was the least.
    """

    hits: bool
    is_rich: bool
    is_late: bool
    after_loss: bool
    is_raised: bool


class FreshHands:
    """Asks a bot what it does with certain hands, each from a deck that was just shuffled.

    With `is_exploring` it goes on to the hands that the bot's hits make of them, until it has asked
    them all. `is_rich` is noted with every answer.

    Attributes:
        answers: what the bot did, by hand, every time that it was asked.
        played: whether it hit, for one dealt hand after another.
        bets: what it bet.
    """

    def __init__(
        self,
        hands: Hands,
        paths: Iterable[Path],
        random: Random,
        *,
        is_exploring: bool = False,
        is_rich: bool = False,
    ) -> None:
        self.answers: dict[Place, list[HandAnswer]] = {}
        self.played: list[list[tuple[Place, bool]]] = []
        self.bets: Counter[int] = Counter()
        self._hands = hands
        self._after: list[list[int]] = hands.after.tolist()
        self._counts = list(hands.index)
        self._random, self._is_exploring, self._is_rich = random, is_exploring, is_rich
        self._state = False, False, False
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
        bankroll, paid = settings.bankroll, 0
        for number in range(1, settings.hands + 1):
            if bankroll < MINIMUM or self.is_done:
                break
            self.played.append([])
            self._state = self._is_rich, number > settings.hands // 4, paid < 0
            one = msgspec.structs.replace(settings, bankroll=bankroll, hands=1, shuffle="uniform")
            hand = Scoreboard(1)
            yield from self._noted(match(one, iter([self._deck(self._todo.pop())]), hand), number)
            paid = hand.scores[0]
            bankroll += paid
            board.scores[0] = bankroll - settings.bankroll

    def _noted(self, rules: Rules, number: int) -> Rules:
        """Play one hand, which is this one of the match."""
        bet = 0
        for step in rules:
            while type(step) is AskSeat:
                question = step.question
                if type(question) is Bet:
                    question = msgspec.structs.replace(question, round=number)
                answer = yield AskSeat(step.seat, question)
                if type(question) is Bet:
                    bet = answer
                    self.bets[bet] += 1
                else:
                    assert type(question) is Draw, "rules B ask nothing else"
                    self._note(question, HandAnswer(answer == "hit", *self._state, bet > MINIMUM))
                step = rules.send(answer)
            yield step

    def _note(self, question: Draw, answer: HandAnswer) -> None:
        upcard = POINTS[question.upcard]
        place = upcard, self._hands.index[counted(question.hand)]
        self.answers.setdefault(place, []).append(answer)
        self.played[-1].append((place, answer.hits))
        if answer.hits and self._is_exploring:
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

    No match is played further than `most` hands of all of them.

    Attributes:
        won: what each hand brought without luck, in chips.
        bets: of each hand.
        answers: whether the bot hit, by hand.
    """

    def __init__(self, hands: Hands, most: int) -> None:
        self.won: list[float] = []
        self.bets: list[int] = []
        self.answers: list[tuple[Place, bool]] = []
        self._hands, self._most = hands, most

    @property
    def asked(self) -> int:
        """How many questions were answered."""
        return len(self.bets) + len(self.answers)

    def surprises(self, answers: Mapping[Place, Sequence[HandAnswer]]) -> int:
        """How often the bot did something else than what it first did with that hand."""
        return sum(hits != answers[at][0].hits for at, hits in self.answers if at in answers)

    def rules(self, settings: BlackjackSettings, deals: Iterator[Any], board: Scoreboard) -> Rules:
        """One such match."""
        meter = BlackjackLuckMeter(settings)
        for step in (rules := match(settings, deals, board)):
            while type(step) is AskSeat:
                if type(step.question) is Bet and len(self.bets) == self._most:
                    self._measured(meter)
                    return
                answer = yield step
                meter.answered(step, answer)
                self._note(step.question, answer)
                step = rules.send(answer)
            assert type(step) is TellSeat, "rules yield nothing else"
            meter.told(step)
            yield step
        self._measured(meter)

    def _measured(self, meter: BlackjackLuckMeter) -> None:
        self.won += (each.gains[0] - each.luck[0] for each in meter.rounds)

    def _note(self, question: Any, answer: Any) -> None:
        if type(question) is Bet:
            self.bets.append(answer)
        else:
            place = POINTS[question.upcard], self._hands.index[counted(question.hand)]
            self.answers.append((place, answer == "hit"))
