"""The mind of the gin rummy house bot `master`: it plays the likely choices out to the end.

It keeps `Beliefs` about the other hand and who plays it, takes the few answers that the worths of
`expert` like best, and plays the round on after each of them, always with the same hidden cards. An
answer is worth the share of the game that is won after the round.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, sqrt
from operator import itemgetter
from random import Random
from typing import Any, NamedTuple

from bots.gin_beliefs import Beliefs, Seen, evidence
from bots.gin_playout import (
    CARDS,
    MOST,
    VALUES,
    Manner,
    Table,
    cards_of,
    least_after,
    shares,
    showdown,
)
from bots.gin_stories import HABITS, Story
from bots.gin_worth import (
    GIN_SCORES,
    TARGET,
    TOO_MUCH,
    chances_held,
    keep_worth,
    knock_worth,
    prospect,
)
from protocol.gin_melds import CARD_BITS, card_mask, discard_deadwoods, mask_deadwood
from protocol.gin_rummy import (
    DISCARDS,
    KNOCK_LIMIT,
    Dealt,
    Draw,
    Offer,
    Offered,
    RoundOver,
    Turn,
    TurnAnswer,
    TurnTaken,
)
from protocol.strategy import Appraisal
from protocol.vocabulary import News, Question

__all__ = ["Choice", "Mind"]

_OWN = Manner(False, True, (10, 10, 10, 10, 0))
_OUT_WORTH = 0.5

STORIES = 96
CHANGES = 4
SAMPLES = 96
BATCH = 24
MOST_KEEPS = 3
MARGIN = 6.0
PRIORS = {"offer": 60.0, "draw": 60.0, "turn": 60.0}
KNOCKS = 1
MELD_PRIOR = 0.05
LOW_PRIOR = -0.03


class Choice(NamedTuple):
    """An answer, and the hand after it: ten cards, or eleven if the discard is still to come."""

    answer: Any
    hand: int
    discard: int = 0
    knocks: bool = False
    prior: float = 0.0  # in shares of the game, compared with the others


class Mind:
    """What a seat knows of a match, and what it makes of it."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._logs = [0.0] * len(HABITS)
        self._beliefs = Beliefs(rng, STORIES, CHANGES)
        self._appraising = Random(rng.getrandbits(64))
        self._second = Beliefs(self._appraising, STORIES, CHANGES)
        self._seen = Seen(0)

    # ---- What is told

    def hear(self, news: News, seat: int) -> None:
        """Note what a seat is told."""
        seen = self._seen
        if type(news) is Dealt:
            self._seen = Seen(CARD_BITS[news.upcard])
            self._beliefs.begin()
            self._second.begin()
        elif type(news) is Offered:
            if news.seat != seat and not news.took:
                seen.passed(seen.top)
        elif type(news) is TurnTaken:
            seen.turn(news.seat == seat, news.drew == "discard", CARD_BITS[news.discarded])
        elif type(news) is RoundOver and seen.events:
            shown = card_mask(news.hands[1 - seat])
            found = evidence(seen, shown, news.knocker == 1 - seat, Random(shown))
            self._logs = [0.98 * old + new for old, new in zip(self._logs, found, strict=True)]

    def habits(self) -> list[float]:
        """The shares of the habits."""
        most = max(self._logs)
        raw = [exp(one - most) for one in self._logs]
        total = sum(raw)
        return [one / total * 0.97 + 0.03 / len(raw) for one in raw]

    # ---- What is answered

    def choose(self, question: Question[Any], scores: tuple[int, int]) -> Any:
        """The answer that wins most."""
        choices = self.choices(question, scores)
        if len(choices) == 1:
            return choices[0].answer
        hand = card_mask(question.hand)  # type: ignore[attr-defined]
        stories = self._beliefs.update(self._seen, hand, self.habits())
        return self._best(choices, stories, scores, PRIORS[question.kind]).answer

    def appraise(
        self, question: Question[Any], answer: Any, scores: tuple[int, int], samples: int
    ) -> Appraisal:
        """What answers are worth, by playing all of them out so many times."""
        choices = self.choices(question, scores, answer)
        worth = shares(*scores)
        table = self._table()
        hand = card_mask(question.hand)  # type: ignore[attr-defined]
        beliefs, seen = self._second, self._seen
        stories = beliefs.update(seen, hand, self.habits())
        worths: list[tuple[float, ...]] = []
        while len(worths) < samples:
            if worths:
                beliefs.change(seen.events, seen.unseen(hand), CHANGES)
            for story in stories[: samples - len(worths)]:
                self._appraising.shuffle(story.free)
                points = [self._play(choice, story, table) for choice in choices]
                worths.append(tuple(worth[won + MOST] for won in points))
        answers = tuple(choice.answer for choice in choices)
        return Appraisal(answers, tuple(zip(*worths, strict=True)))

    def _table(self) -> Table:
        return Table(self._seen.dead | self._seen.known, _OUT_WORTH)

    def _best(
        self,
        choices: Sequence[Choice],
        stories: Sequence[Story],
        scores: tuple[int, int],
        weight: float,
    ) -> Choice:
        worth = shares(*scores)
        table = self._table()
        left = [(choice, [0.0] * 0) for choice in choices]
        for start in range(0, SAMPLES, BATCH):
            batch = stories[start : start + BATCH]
            for choice, won in left:
                won.extend([worth[self._play(choice, story, table) + MOST] for story in batch])
            rated = sorted(
                ((sum(won) + weight * choice.prior, at) for at, (choice, won) in enumerate(left)),
                reverse=True,
            )
            leader = left[rated[0][1]]
            count = len(leader[1])
            kept = [leader]
            for total, at in rated[1:]:
                pairs = zip(leader[1], left[at][1], strict=True)
                squares = sum([(a - b) ** 2 for a, b in pairs])
                if rated[0][0] - total < 2.0 * sqrt(squares):
                    kept.append(left[at])
            left = kept
            if len(left) == 1 or count >= SAMPLES:
                break
        return left[0][0]

    def _play(self, choice: Choice, story: Story, table: Table) -> int:
        """The points of the round after an answer, if a story is true."""
        if choice.knocks:
            return showdown(choice.hand, mask_deadwood(choice.hand), story.hand)
        own, other = self._seen.turns
        manners = (_OWN, HABITS[story.habit].manner)
        hands = (choice.hand, story.hand)
        if choice.discard:
            return table.play(hands, manners, story.free, 1, choice.discard, (own + 1, other))
        top, mover, drawn = self._seen.top, 0, 0
        if choice.answer in ("take", "discard"):
            drawn = top
        elif choice.answer == "pass":  # G5
            if self._seen.events:
                mover = 1  # it passed before, and draws now
            elif table.takes(story.hand, top, manners[1]):
                mover, drawn = 1, top
        return table.play(hands, manners, story.free, mover, top, (own, other), drawn, True)

    # ---- What may be answered

    def choices(
        self, question: Question[Any], scores: tuple[int, int], answer: Any = None
    ) -> list[Choice]:
        """The answers that are worth a thought."""
        if type(question) is Turn:
            found = self._discards(question, scores)
            return found if answer is None else _with(found, question, answer)
        assert isinstance(question, Offer | Draw)
        yes, no = ("take", "pass") if type(question) is Offer else ("discard", "stock")
        hand, top = card_mask(question.hand), self._seen.top
        now, left = mask_deadwood(hand), least_after(hand | top)[1]
        melds = mask_deadwood(hand | top) < now + VALUES[top]
        taking = Choice(yes, hand, prior=MELD_PRIOR if melds else LOW_PRIOR)
        leaving = Choice(no, hand)
        if answer is None:
            if left == 0:
                return [taking]
            if not melds and (left >= now or left > KNOCK_LIMIT):
                return [leaving]
        return [taking, leaving]

    def _discards(self, question: Turn, scores: tuple[int, int]) -> list[Choice]:
        seen = self._seen
        hand = question.hand
        mask = card_mask(hand)
        taken = [CARDS[bit] for bit in cards_of(seen.known)]
        unseen = [CARDS[bit] for bit in cards_of(seen.unseen(mask) & ~seen.top)]
        turn = seen.turns[0]
        held = chances_held(unseen, len(taken), turn)
        deadwoods = discard_deadwoods(hand)
        least = min(deadwoods)
        if least == 0:
            card = hand[deadwoods.index(0)]
            return [Choice(TurnAnswer(card, True), mask ^ CARD_BITS[card], CARD_BITS[card], True)]
        gin_wins = scores[0] + GIN_SCORES >= TARGET
        keeps = []
        for card, left in zip(hand, deadwoods, strict=True):
            if left <= least + TOO_MUCH:
                after = prospect(hand, card, held, taken)
                keeps.append((keep_worth(after, turn, len(taken), gin_wins), card))
        keeps.sort(key=itemgetter(0), reverse=True)
        best = keeps[0][0]
        found = [
            Choice(
                DISCARDS[card], mask ^ CARD_BITS[card], CARD_BITS[card], prior=(worth - best) / 100
            )
            for worth, card in keeps[:MOST_KEEPS]
            if worth > best - MARGIN
        ]
        if least <= KNOCK_LIMIT and KNOCKS:
            card = hand[deadwoods.index(least)]
            bit = CARD_BITS[card]
            worth = knock_worth(least / 10, turn, len(taken), seen.takes, scores)
            prior = (worth - best) / 100
            found.append(Choice(TurnAnswer(card, True), mask ^ bit, bit, True, prior))
        return found


def _with(choices: Sequence[Choice], question: Turn, answer: TurnAnswer) -> list[Choice]:
    """The choices, and among them the one that was answered."""
    discard = CARD_BITS[answer.discard]
    own = Choice(answer, card_mask(question.hand) ^ discard, discard, answer.knock)
    others = [
        choice for choice in choices if (choice.discard, choice.knocks) != (own.discard, own.knocks)
    ]
    return [*others, own]
