"""The mind of the gin rummy house bot `master`: it plays the best candidates out to the end.

It keeps `Beliefs` about the other hand and its player, takes the few answers that `expert` values
most, and plays the round to its end after each of them, always with the same hidden cards. The
worth of an answer is the share of the game that is won after the round.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, sqrt
from operator import itemgetter
from random import Random
from typing import Any, NamedTuple

from bots.gin_beliefs import Beliefs, RoundSeen, evidence
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

__all__ = ["Candidate", "Mind"]

# How its own seat plays in playouts: it knocks early, later only with gin. A bot that plays so wins
# 68 % against `simple`, 55 % against `patient` and 46 % against `expert` (400 games each); if it
# always knocks at 10, it wins 57 %, 45 % and 41 %.
_OWN = Manner(False, True, (10, 10, 10, 10, 0))
_OUT_WORTH = 0.5  # any value from 0.5 to 1 gives the discard of `expert` in 82 % of turns

# 96 playouts of up to four answers take 20 to 30 ms on average. The difference of two answers has a
# standard deviation of 0.2 per playout, so that more playouts would tell little more.
STORIES = 96
SAMPLES = 96
BATCH = 24  # playouts of every answer before some are dropped
CHANGES = 4  # attempted per story after an event; 16 gave no better stories

_MOST_KEEPS = 3  # discards without a knock to play out
_MARGIN = 6.0  # except those this far below the best, in percent of the game
_BEHIND = 2.0  # an answer this many standard errors behind is dropped
_PRIOR = 60.0  # `expert`'s worths count as this many playouts; with 6, noise cost games
# The worth of taking a discard before it is played out, compared with the stock.
_MELD_PRIOR = 0.05  # `expert` takes every card that melds,
_LOW_PRIOR = -0.03  # and no other
_FORGETS = 0.98  # the factor by which evidence about habits fades per round


class Candidate(NamedTuple):
    """An answer, and the hand after it: ten cards, or eleven if the discard is still to come."""

    answer: Any
    hand: int
    discard: int = 0
    knocks: bool = False
    prior: float = 0.0  # as a share of the game, relative to the other candidates


class Mind:
    """What a seat knows of a match, and how it decides."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._logs = [0.0] * len(HABITS)
        self._beliefs = Beliefs(rng, STORIES, CHANGES)
        self._appraises = rng.getrandbits(64)  # the seed for appraisals
        self._told = 0  # the number of news and answers so far
        self._looks = 0  # the number of appraisals since the latest of them
        # What was seen at each answer of the round, with the hand, until `_second` has used it.
        self._moments: list[tuple[RoundSeen, int]] = []
        self._second = Beliefs(Random(self._appraises), STORIES, CHANGES)
        self._seen = RoundSeen(0)

    # ---- News

    def hear(self, news: News, seat: int) -> None:
        """Note news to a seat."""
        self._told, self._looks = self._told + 1, 0
        seen = self._seen
        if type(news) is Dealt:
            self._seen = RoundSeen(CARD_BITS[news.upcard])
            self._beliefs.begin()
            self._moments = []
            rng = Random(f"{self._appraises} {self._told}")
            self._second = Beliefs(rng, STORIES, CHANGES)
        elif type(news) is Offered:
            if news.seat != seat and not news.took:
                seen.passed(seen.top)
        elif type(news) is TurnTaken:
            seen.turn(news.seat == seat, news.drew == "discard", CARD_BITS[news.discarded])
        elif type(news) is RoundOver and seen.events:
            shown = card_mask(news.hands[1 - seat])
            found = evidence(seen, shown, news.knocker == 1 - seat, Random(shown))
            self._logs = [_FORGETS * old + new for old, new in zip(self._logs, found, strict=True)]

    def habits(self) -> list[float]:
        """Return the probability of each habit."""
        most = max(self._logs)
        raw = [exp(one - most) for one in self._logs]
        total = sum(raw)
        return [one / total * 0.97 + 0.03 / len(raw) for one in raw]

    # ---- Answers

    def choose(self, question: Question[Any], scores: tuple[int, int]) -> Any:
        """Return the answer that wins the most."""
        choices = self.choices(question, scores)
        if len(choices) == 1:
            return choices[0].answer
        hand = card_mask(question.hand)  # type: ignore[attr-defined]
        stories = self._beliefs.update(self._seen, hand, self.habits())
        return self._best(choices, stories, scores).answer

    def recall(self, question: Question[Any]) -> None:
        """Note a question that was answered."""
        self._told, self._looks = self._told + 1, 0
        hand = card_mask(question.hand)  # type: ignore[attr-defined]
        self._moments.append((self._seen.copy(), hand))

    def appraise(
        self, question: Question[Any], answer: Any, scores: tuple[int, int], samples: int
    ) -> Appraisal:
        """Estimate the worth of answers by playing each of them out `samples` times.

        Its random numbers depend only on how much it was told so far and how often it has
        appraised since then, not on earlier appraisals.
        """
        self._looks += 1
        rng = Random(f"{self._appraises} {self._told} {self._looks}")
        for before, held in self._moments:
            self._second.update(before, held, self.habits())
        self._moments = []
        choices = self.choices(question, scores, answer)
        worth = shares(*scores)
        table = self._table()
        hand = card_mask(question.hand)  # type: ignore[attr-defined]
        beliefs, seen = self._second.copy(rng), self._seen
        stories = beliefs.update(seen, hand, self.habits())
        worths: list[tuple[float, ...]] = []
        while len(worths) < samples:
            if worths:
                beliefs.change(seen.events, seen.unseen(hand), CHANGES)
            for story in stories[: samples - len(worths)]:
                rng.shuffle(story.free)
                points = [self._play(choice, story, table) for choice in choices]
                worths.append(tuple(worth[won + MOST] for won in points))
        answers = tuple(choice.answer for choice in choices)
        return Appraisal(answers, tuple(zip(*worths, strict=True)))

    def _table(self) -> Table:
        return Table(self._seen.dead | self._seen.known, _OUT_WORTH)

    def _best(
        self, choices: Sequence[Candidate], stories: Sequence[Story], scores: tuple[int, int]
    ) -> Candidate:
        worth = shares(*scores)
        table = self._table()
        left = [(choice, [0.0] * 0) for choice in choices]
        for start in range(0, SAMPLES, BATCH):
            batch = stories[start : start + BATCH]
            for choice, won in left:
                won.extend([worth[self._play(choice, story, table) + MOST] for story in batch])
            rated = sorted(
                ((sum(won) + _PRIOR * choice.prior, at) for at, (choice, won) in enumerate(left)),
                reverse=True,
            )
            leader = left[rated[0][1]]
            count = len(leader[1])
            kept = [leader]
            for total, at in rated[1:]:
                pairs = zip(leader[1], left[at][1], strict=True)
                squares = sum([(a - b) ** 2 for a, b in pairs])
                if rated[0][0] - total < _BEHIND * sqrt(squares):
                    kept.append(left[at])
            left = kept
            if len(left) == 1 or count >= SAMPLES:
                break
        return left[0][0]

    def _play(self, choice: Candidate, story: Story, table: Table) -> int:
        """Play a round out after an answer, assuming a story; return its points."""
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
                mover = 1  # this seat passed before, and draws now
            elif table.takes(story.hand, top, manners[1]):
                mover, drawn = 1, top
        return table.play(hands, manners, story.free, mover, top, (own, other), drawn, True)

    # ---- Candidates

    def choices(
        self, question: Question[Any], scores: tuple[int, int], answer: Any = None
    ) -> list[Candidate]:
        """Return the candidate answers, among them `answer` if it is given."""
        if type(question) is Turn:
            found = self._discards(question, scores)
            return found if answer is None else _with(found, question, answer)
        assert isinstance(question, Offer | Draw)
        yes, no = ("take", "pass") if type(question) is Offer else ("discard", "stock")
        hand, top = card_mask(question.hand), self._seen.top
        now, left = mask_deadwood(hand), least_after(hand | top)[1]
        melds = mask_deadwood(hand | top) < now + VALUES[top]
        taking = Candidate(yes, hand, prior=_MELD_PRIOR if melds else _LOW_PRIOR)
        leaving = Candidate(no, hand)
        if answer is None:
            if left == 0:
                return [taking]
            if not melds and (left >= now or left > KNOCK_LIMIT):
                return [leaving]
        return [taking, leaving]

    def _discards(self, question: Turn, scores: tuple[int, int]) -> list[Candidate]:
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
            return [_discarding(question, TurnAnswer(hand[deadwoods.index(0)], True))]
        gin_wins = scores[0] + GIN_SCORES >= TARGET
        keeps = []
        for card, left in zip(hand, deadwoods, strict=True):
            if left <= least + TOO_MUCH:
                after = prospect(hand, card, held, taken)
                keeps.append((keep_worth(after, turn, len(taken), gin_wins), card))
        keeps.sort(key=itemgetter(0), reverse=True)
        best = keeps[0][0]
        found = [
            _discarding(question, DISCARDS[card], worth - best)
            for worth, card in keeps[:_MOST_KEEPS]
            if worth > best - _MARGIN
        ]
        if least <= KNOCK_LIMIT:
            knock = TurnAnswer(hand[deadwoods.index(least)], True)
            worth = knock_worth(least / 10, turn, len(taken), seen.takes, scores)
            found.append(_discarding(question, knock, worth - best))
        return found


def _discarding(question: Turn, answer: TurnAnswer, percent: float = 0.0) -> Candidate:
    discard = CARD_BITS[answer.discard]
    hand = card_mask(question.hand) ^ discard
    return Candidate(answer, hand, discard, answer.knock, percent / 100)


def _with(choices: Sequence[Candidate], question: Turn, answer: TurnAnswer) -> list[Candidate]:
    """Return the choices, with the given answer among them."""
    own = _discarding(question, answer)
    others = [
        choice for choice in choices if (choice.discard, choice.knocks) != (own.discard, own.knocks)
    ]
    return [*others, own]
