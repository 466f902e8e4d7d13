"""The gin rummy house bot `master`: its playouts, what it believes, plays and appraises."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from random import Random
from statistics import fmean
from typing import Any

import pytest

import arena
from arena.games.gin_rummy.rules import defend, score
from arena.games.match import MatchResult
from bots import gin_master
from bots.gin_beliefs import RoundSeen
from bots.gin_playout import (
    CARDS,
    MOST,
    VALUES,
    Manner,
    Table,
    after_drawing,
    cards_of,
    hand_of,
    least_after,
    outs_of,
    shares,
    showdown,
)
from bots.gin_rummy import Expert, Master, Patient, PlayerStrategy, Simple
from bots.gin_stories import HABITS, Story
from protocol.cards import PACK, Card
from protocol.gin_melds import (
    CARD_BITS,
    arrange,
    card_mask,
    deadwood,
    deadwood_value,
    discard_deadwoods,
    is_meld,
)
from protocol.gin_rummy import KNOCK_LIMIT, Draw, Melds, Offer, RoundOver, Turn, TurnAnswer
from protocol.messages import Ending
from protocol.strategy import Appraisal, Appraiser
from protocol.vocabulary import News, Question

LOW = Manner(True, False, (10,))
GIN = Manner(False, False, (0,))
OUTS = Manner(False, True, (10, 10, 0))


def hands(count: int, size: int) -> list[list[Card]]:
    """Random hands, every second of few ranks and suits, so that they have melds."""
    rng = Random(7)
    few = [card for card in PACK if card[0] in "A23456" and card[1] in "shd"]
    return [rng.sample(few if number % 2 else PACK, size) for number in range(count)]


@pytest.mark.parametrize("hand", hands(60, 10), ids=" ".join)
def test_outs_are_the_cards_that_meld_with_two_of_the_hand(hand: list[Card]) -> None:
    outs = {
        card
        for card in set(PACK).difference(hand)
        if any(is_meld([card, *pair]) for pair in combinations(hand, 2))
    }

    assert {CARDS[bit] for bit in cards_of(outs_of(card_mask(hand)))} == outs
    assert hand_of(card_mask(hand)).deadwood == deadwood(hand)


@pytest.mark.parametrize("hand", hands(60, 11), ids=" ".join)
def test_the_discard_that_leaves_least_is_found_with_and_without_the_drawn_card_apart(
    hand: list[Card],
) -> None:
    lefts = discard_deadwoods(hand)
    dearest = max(
        deadwood_value(card) for card, left in zip(hand, lefts, strict=True) if left == min(lefts)
    )
    ten, drawn = card_mask(hand[:-1]), CARD_BITS[hand[-1]]

    for discard, left in (least_after(ten | drawn), after_drawing(ten, drawn)):
        assert (left, VALUES[discard]) == (min(lefts), dearest)
        assert lefts[hand.index(CARDS[discard])] == left


def test_a_knock_scores_what_the_referee_would_give() -> None:
    knocks = [hand for hand in hands(4000, 10) if deadwood(hand) <= KNOCK_LIMIT]
    rng = Random(3)

    same = 0
    for hand in knocks:
        defender = rng.sample([card for card in PACK if card not in hand], 10)
        melds, own = arrange(hand)
        _, _, left = defend(defender, None, melds if own else ())
        (won, lost), _ = score(own, left)
        points = showdown(card_mask(hand), own, card_mask(defender))
        assert points <= won - lost or own == 0
        same += points == won - lost
    assert len(knocks) > 100
    assert same > 0.98 * len(knocks)  # it melds as is best before laying off


class PlaysAManner(PlayerStrategy):
    """Plays as the playouts do, but asked by the referee."""

    def __init__(self, manner: Manner) -> None:
        self.manner = manner
        self.table = Table(0)
        super().__init__()

    def receive_initial_hand(self, hand: Sequence[Card]) -> None:
        self.turn = 0

    def will_take_top_discard(self, card: Card) -> bool:
        return self.table.takes(card_mask(self.hand), CARD_BITS[card], self.manner)

    def take_turn(self, drawn: Card) -> Card:
        ten = card_mask(self.hand) ^ CARD_BITS[drawn]
        discard, left = self.table.discard(ten, CARD_BITS[drawn], self.manner.counts_outs)
        self.knocks = left <= self.manner.knocks[min(self.turn, len(self.manner.knocks) - 1)]
        self.turn += 1
        return CARDS[discard]

    def knock(self) -> bool:
        return self.knocks

    def hear(self, news: News) -> None:
        super().hear(news)
        if isinstance(news, RoundOver):
            self.points = news.points


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("manners", [(LOW, GIN), (OUTS, LOW), (GIN, OUTS)])
def test_a_playout_ends_as_the_match_of_the_same_players(
    seed: int, manners: tuple[Manner, Manner]
) -> None:
    deck = Random(seed).sample(PACK, 52)
    bots = [PlaysAManner(manner) for manner in manners]
    settings = {"max_rounds": 1, "target": 1000, "starter": 0}
    arena.play("gin", bots, settings=settings, decks=[deck])
    mine, theirs = bots[0].points
    both = card_mask(deck[:10]), card_mask(deck[10:20])
    top, stock = CARD_BITS[deck[20]], [CARD_BITS[card] for card in deck[:20:-1]]
    table = Table(0)
    taker = next((s for s in (0, 1) if table.takes(both[s], top, manners[s])), None)

    mover, drawn = (0, 0) if taker is None else (taker, top)
    played = table.play(both, manners, stock, mover, top, (0, 0), drawn, True)

    assert played == mine - theirs


def test_a_game_is_won_by_the_points_that_were_missing() -> None:
    worth = shares(30, 49)

    assert worth[MOST] == pytest.approx(1 - shares(49, 30)[MOST])
    assert worth[MOST + 20] == 1
    assert worth[MOST - 1] == 0
    assert worth == sorted(worth)


FEW = 16


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few playouts: the tests here are not about how strong it is."""
    for name in ("STORIES", "SAMPLES", "BATCH"):
        monkeypatch.setattr(gin_master, name, FEW)


class Watched(Master):
    """Lets its stories be looked at after every decision."""

    stories: list[Story]

    def decide(self, question: Question[Any]) -> object:
        answer = super().decide(question)
        if type(question) is not Melds:
            own = card_mask(question.hand)  # type: ignore[attr-defined]
            self.stories = self._mind._beliefs.update(self.seen, own, self._mind.habits())
            self.look(own)
        return answer

    def look(self, own: int) -> None:
        """Look at the stories; `own` has the cards of the hand."""

    @property
    def seen(self) -> RoundSeen:
        return self._mind._seen


def play(master: Master, other: PlayerStrategy, *, games: int = 1, seed: int = 1) -> MatchResult:
    master.seed(seed)
    result = arena.play("gin", [master, other], settings={"games": games}, seed=seed)

    assert result.termination.kind is Ending.COMPLETED
    return result


def test_every_story_agrees_with_what_was_seen() -> None:
    looks = 0

    class LooksAtAll(Watched):
        def look(self, own: int) -> None:
            nonlocal looks
            looks += 1
            seen = self.seen
            for story in self.stories:
                assert story.hand.bit_count() == 10
                assert story.hand & seen.known == seen.known
                assert not story.hand & (own | seen.dead | seen.top)
                free = sum(story.free)
                assert free.bit_count() == len(story.free)
                assert free | story.hand == seen.unseen(own) | seen.known
                assert not free & story.hand

    play(LooksAtAll(), Simple(), games=2)

    assert looks > 20


def test_its_stories_know_more_of_the_other_hand_than_chance_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gin_master, "STORIES", 96)
    other = Simple()
    hits: list[float] = []
    chance: list[float] = []

    class ComparesHands(Watched):
        def look(self, own: int) -> None:
            unknown = card_mask(other.hand) & ~self.seen.known
            unseen = self.seen.unseen(own).bit_count()
            if len(self.seen.events) >= 4 and unseen:
                hits.append(fmean((s.hand & unknown).bit_count() for s in self.stories))
                chance.append(unknown.bit_count() ** 2 / unseen)

    play(ComparesHands(), other, games=3)

    assert fmean(hits) > 1.15 * fmean(chance)


@pytest.mark.parametrize(
    ("other", "habit"), [(Simple, "simple"), (Patient, "patient"), (Expert, "expert")]
)
def test_it_learns_whom_it_faces(other: type[PlayerStrategy], habit: str) -> None:
    master = Master()
    play(master, other(), games=2, seed=4)

    shares = dict(zip([h.name for h in HABITS], master._mind.habits(), strict=True))
    assert shares[habit] == max(shares.values())
    assert sum(shares.values()) == pytest.approx(1)


def test_it_knocks_with_gin_at_once() -> None:
    hand = "As 2s 3s 7h 7d 7c Jc Qc Kc 5h Tc".split()
    turn = Turn("Tc", tuple(hand), (TurnAnswer("5h"), TurnAnswer("5h", True)))
    master = Master()

    assert master.decide(turn) == TurnAnswer("5h", True)


class Appraises(Simple):
    """Plays as `Simple`; in its place `master` says what the answers are worth."""

    def __init__(self, appraiser: Appraiser, *, every: int = 1) -> None:
        self.appraiser = appraiser
        self.every = every
        self.appraisals: list[tuple[Question[Any], object, Appraisal]] = []
        self.asked = 0
        super().__init__()

    def reset(self) -> None:
        super().reset()
        self.appraiser.reset()

    def hear(self, news: News) -> None:
        super().hear(news)
        self.appraiser.hear(news)

    def decide(self, question: Question[Any]) -> object:
        answer = super().decide(question)
        if self.asked % self.every == 0:
            appraisal = self.appraiser.appraise(question, answer, samples=FEW + 6)
            self.appraisals.append((question, answer, appraisal))
        self.appraiser.recall(question, answer)
        self.asked += 1
        return answer


@pytest.fixture(scope="module")
def appraised() -> Iterator[Appraises]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("STORIES", "SAMPLES", "BATCH"):
            patch.setattr(gin_master, name, FEW)
        master = Master()
        master.seed(1)
        simple = Appraises(master, every=3)
        arena.play("gin", [simple, Expert()], settings={"target": 30}, seed=5)
        yield simple


def test_the_given_answer_is_among_those_appraised(appraised: Appraises) -> None:
    for question, answer, appraisal in appraised.appraisals:
        assert answer in appraisal.answers
        assert len(set(map(repr, appraisal.answers))) == len(appraisal.answers)
        for each, worths in zip(appraisal.answers, appraisal.worths, strict=True):
            question.check(each)  # raises for an illegal one
            assert len(worths) == FEW + 6, "samples"
            assert all(0 <= worth <= 1 for worth in worths)
    assert {type(question) for question, *_ in appraised.appraisals} >= {Offer, Draw, Turn}


def test_the_same_seed_plays_the_same_game_whatever_was_appraised() -> None:
    class AppraisesItself(Master):
        def decide(self, question: Question[Any]) -> object:
            answer = super().decide(question)
            self.appraise(question, answer, samples=2)
            return answer

    plain, again, watched = (
        play(master(), Simple(), seed=6).record for master in (Master, Master, AppraisesItself)
    )

    assert plain == again
    assert plain.answers == watched.answers


def test_another_seed_appraises_alike_but_not_equally() -> None:
    def worths(seed: int) -> list[float]:
        master = Master()
        master.seed(seed)
        simple = Appraises(master, every=12)
        arena.play("gin", [simple, Patient()], seed=3)
        return [fmean(worths) for _, _, found in simple.appraisals for worths in found.worths]

    first, second = worths(1), worths(2)

    assert worths(1) == first != second
    assert fmean(abs(a - b) for a, b in zip(first, second, strict=True)) < 0.12


def test_it_plays_on_after_it_was_told_what_it_had_played() -> None:
    class LosesItsProcess(Master):
        count = 0

        def hear(self, news: News) -> None:
            super().hear(news)
            plain.hear(news)

        def decide(self, question: Question[Any]) -> object:
            self.count += 1
            if self.count < 12:
                self.recall(question, answer := Simple.decide(plain, question))
                return answer
            return super().decide(question)

    plain = Simple()
    plain.reset()
    master = LosesItsProcess()

    play(master, Expert(), seed=2)

    assert master.count > 12


def test_a_card_that_is_not_seen_is_in_the_stock_or_in_the_other_hand() -> None:
    seen = RoundSeen(CARD_BITS["Ks"])
    seen.passed(CARD_BITS["Ks"])
    seen.turn(True, True, CARD_BITS["2c"])  # takes the king, discards a two
    seen.turn(False, True, CARD_BITS["9h"])  # takes the two
    own = card_mask("Ks As Ah Ad 5c 6c 7c Th Jh Qh".split())

    assert seen.known == CARD_BITS["2c"]
    assert len(cards_of(seen.unseen(own))) == 52 - 10 - 2
    assert (seen.takes, seen.turns, seen.top) == (1, [1, 1], CARD_BITS["9h"])


@pytest.mark.long
def test_G16_master_beats_simple_by_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    result = play(Master(), Simple(), games=60, seed=31)

    assert result.scores[0] >= 0.6 * 60  # three errors below what it wins
