"""The tests of the deck (B1–B3) and of the counting player (B12) catch what a student gets wrong.

Every mutant has one fault and names a test that must fail for it; the correct classes pass every
test. The tests are those of `test_blackjack.py` here and under `tests/bots`: they take the class
under test as their only argument.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from arena.games.blackjack import Deck
from bots.blackjack import Counting, Simple
from protocol.blackjack import NEW_DECK, POINTS, Side
from protocol.cards import PACK, Card

TESTS = Path(__file__).parents[2]


def _tests(file: Path, paragraphs: tuple[str, ...]) -> dict[str, Callable[[Any], None]]:
    """The tests in a file that are named after these paragraphs and take a class to test."""
    spec = importlib.util.spec_from_file_location(f"mutants_of_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {
        name: test
        for name, test in vars(module).items()
        if name.startswith(tuple(f"test_{paragraph}_" for paragraph in paragraphs))
        and test.__code__.co_varnames[: test.__code__.co_argcount]
        in (("deck_class",), ("player_class",), ("counting_class",))
    }


DECK_TESTS = _tests(TESTS / "arena/games/test_blackjack.py", ("B1", "B2", "B3"))
COUNTING_TESTS = _tests(TESTS / "bots/test_blackjack.py", ("B12",))


def caught_by(tests: dict[str, Callable[[Any], None]], cls: type[object]) -> set[str]:
    """The tests that fail for this class."""
    return set(_failing(tests, cls))


def _failing(tests: dict[str, Callable[[Any], None]], cls: type[object]) -> Iterator[str]:
    for name, test in tests.items():
        try:
            test(cls)
        except (Exception, pytest.fail.Exception):
            yield name.removeprefix("test_")


# --- Decks with one fault ---


class LeftFirst(Deck):
    """Interleaves left, right."""

    def shuffle(self, n: int) -> None:
        super().shuffle(n)
        both = 2 * min(n, 52 - n)
        for i in range(0, both, 2):
            self._cards[i : i + 2] = self._cards[i + 1], self._cards[i]


class CutsOneMore(Deck):
    """Off by one: the left part has n + 1 cards."""

    def shuffle(self, n: int) -> None:
        super().shuffle(n + 1 if n in range(52) else n)


class CutsFromTheEnd(Deck):
    """The right part has n cards."""

    def shuffle(self, n: int) -> None:
        super().shuffle(52 - n if n in range(53) else n)


class ShufflesANewDeck(Deck):
    """Forgets the order in which the deck stood."""

    def shuffle(self, n: int) -> None:
        self.reset()
        super().shuffle(n)


class ForgetsTheDealt(Deck):
    """Shuffles, but what was dealt stays dealt."""

    def shuffle(self, n: int) -> None:
        dealt = self._next
        super().shuffle(n)
        self._next = dealt


class RestoresBehind(Deck):
    """Puts the dealt cards behind the undealt."""

    def shuffle(self, n: int) -> None:
        self._cards = self._cards[self._next :] + self._cards[: self._next]
        super().shuffle(n)


class RestoresReversed(Deck):
    """Puts the dealt cards back the last one first."""

    def shuffle(self, n: int) -> None:
        self._cards[: self._next] = self._cards[: self._next][::-1]
        super().shuffle(n)


class DropsTheRest(Deck):
    """What remains of the longer part is lost."""

    def shuffle(self, n: int) -> None:
        super().shuffle(n)
        self._cards = self._cards[: 2 * min(n, 52 - n)]


class RestFirst(Deck):
    """What remains of the longer part comes first instead of last."""

    def shuffle(self, n: int) -> None:
        super().shuffle(n)
        both = 2 * min(n, 52 - n)
        self._cards = self._cards[both:] + self._cards[:both]


class TurnsTheRestOver(Deck):
    """What remains of the longer part follows the last card first."""

    def shuffle(self, n: int) -> None:
        super().shuffle(n)
        both = 2 * min(n, 52 - n)
        self._cards[both:] = self._cards[both:][::-1]


class RefusesNoCut(Deck):
    """0 and 52 are refused."""

    def shuffle(self, n: int) -> None:
        if n in (0, 52):
            raise ValueError(f"cut from 0 to 52: {n}")
        super().shuffle(n)


class TakesAnyCut(Deck):
    """Cuts at -1 and 53 as Python's slices would."""

    def shuffle(self, n: int) -> None:
        super().shuffle(int(n) % 52)


class SuitsInAnotherOrder(Deck):
    """Spades, hearts, diamonds, clubs."""

    def reset(self) -> None:
        self.stack(PACK)


class AceIsLow(Deck):
    """Each suit begins with its ace."""

    def reset(self) -> None:
        self.stack(sorted(NEW_DECK, key=lambda c: (NEW_DECK.index("2" + c[1]), POINTS[c])))


class RankByRank(Deck):
    """All the twos first."""

    def reset(self) -> None:
        self.stack([card for i in range(13) for card in NEW_DECK[i::13]])


class DealsFromTheBack(Deck):
    """The ace of diamonds is dealt first."""

    def deal(self) -> Card:
        self._cards.reverse()
        card = super().deal()
        self._cards.reverse()
        return card


class ResetGoesOnDealing(Deck):
    """Reset orders the cards, but begins where dealing had stopped."""

    def reset(self) -> None:
        dealt = getattr(self, "_next", 0)
        super().reset()
        self._next = dealt


class EmptyDealsNone(Deck):
    """Nothing is dealt, and nothing said, when the deck is empty."""

    def deal(self) -> Any:
        return super().deal() if self.cards_left else None


class EmptyIsAnIndexError(Deck):
    """An error, but none of its own."""

    def deal(self) -> Card:
        if not self.cards_left:
            raise IndexError("list index out of range")
        return super().deal()


class EmptyStartsAgain(Deck):
    """Deals the same cards again."""

    def deal(self) -> Card:
        if not self.cards_left:
            self._next = 0
        return super().deal()


class CountsTheDealt(Deck):
    """`cards_left` counts the wrong ones."""

    @property
    def cards_left(self) -> int:
        return self._next


class CountsOneTooFew(Deck):
    """`cards_left` is the last index."""

    @property
    def cards_left(self) -> int:
        return max(0, 51 - self._next)


DECKS: list[tuple[type[Deck], str]] = [
    (LeftFirst, "B2_cut_in_half_a_new_deck_interleaves_right_left"),
    (CutsOneMore, "B2_cut_in_half_a_new_deck_interleaves_right_left"),
    (CutsFromTheEnd, "B2_what_remains_of_a_longer_right_part_follows"),
    (ShufflesANewDeck, "B2_a_second_shuffle_goes_on_from_the_first"),
    (ForgetsTheDealt, "B2_restores_dealt_cards_in_the_order_dealt"),
    (RestoresBehind, "B2_restores_dealt_cards_in_the_order_dealt"),
    (RestoresReversed, "B2_restores_dealt_cards_in_the_order_dealt"),
    (DropsTheRest, "B2_no_card_is_lost_whatever_the_cut"),
    (RestFirst, "B2_what_remains_of_a_longer_left_part_follows"),
    (TurnsTheRestOver, "B2_what_remains_of_a_longer_left_part_follows"),
    (RefusesNoCut, "B2_cutting_0_or_52_changes_nothing"),
    (TakesAnyCut, "B2_refuses_a_cut_outside_0_to_52"),
    (SuitsInAnotherOrder, "B1_then_hearts_clubs_and_diamonds"),
    (AceIsLow, "B1_the_two_of_spades_is_dealt_first"),
    (RankByRank, "B1_the_two_of_spades_is_dealt_first"),
    (DealsFromTheBack, "B1_the_two_of_spades_is_dealt_first"),
    (ResetGoesOnDealing, "B1_reset_takes_a_new_deck"),
    (EmptyDealsNone, "B3_dealing_from_an_empty_deck_is_an_error_of_its_own"),
    (EmptyIsAnIndexError, "B3_dealing_from_an_empty_deck_is_an_error_of_its_own"),
    (EmptyStartsAgain, "B3_dealing_from_an_empty_deck_is_an_error_of_its_own"),
    (CountsTheDealt, "B3_cards_left_counts_the_undealt"),
    (CountsOneTooFew, "B3_cards_left_counts_the_undealt"),
]


# --- Counting players with one fault ---


class CountsSevens(Counting):
    """A seven is a low card too."""

    def exposed(self, card: Card, to: Side) -> None:
        super().exposed(card, to)
        self.count += card[0] == "7"


class CountsNines(Counting):
    """A nine is a high card too."""

    def exposed(self, card: Card, to: Side) -> None:
        super().exposed(card, to)
        self.count -= card[0] == "9"


class ForgetsAces(Counting):
    """Counts what counts ten."""

    def exposed(self, card: Card, to: Side) -> None:
        if card[0] != "A":
            super().exposed(card, to)


class ForgetsFaces(Counting):
    """Counts tens, but neither jack, queen nor king."""

    def exposed(self, card: Card, to: Side) -> None:
        if card[0] not in "JQK":
            super().exposed(card, to)


class ForgetsTwos(Counting):
    """Low cards begin with three."""

    def exposed(self, card: Card, to: Side) -> None:
        if card[0] != "2":
            super().exposed(card, to)


class CountsTheWrongWay(Counting):
    """High cards up, low cards down."""

    def exposed(self, card: Card, to: Side) -> None:
        before = self.count
        super().exposed(card, to)
        self.count = 2 * before - self.count


class NeverBelowZero(Counting):
    """The count stops at 0."""

    def exposed(self, card: Card, to: Side) -> None:
        super().exposed(card, to)
        self.count = max(self.count, 0)


class CountsItsOwnCards(Counting):
    """Passes over the dealer's."""

    def exposed(self, card: Card, to: Side) -> None:
        if to == "player":
            super().exposed(card, to)


class CountsTheDealersCards(Counting):
    """Passes over its own."""

    def exposed(self, card: Card, to: Side) -> None:
        if to == "dealer":
            super().exposed(card, to)


class CountsThroughAShuffle(Counting):
    """Does not start from 0 at a shuffle."""

    def shuffled(self) -> None:
        pass


class DoublesAt1(Counting):
    """Bets more from +1 on."""

    RICH = 1


class DoublesAbove2(Counting):
    """Bets more at +3 only."""

    RICH = 3


class BetsWhatItHasNot(Counting):
    """Doubles whatever its bankroll."""

    def bet(self, bankroll: int, minimum: int) -> int:
        return super().bet(max(bankroll, 2 * minimum), minimum)


class NeedsAChipToSpare(Counting):
    """Does not double if that is all it has."""

    def bet(self, bankroll: int, minimum: int) -> int:
        return super().bet(bankroll - 1, minimum)


class BetsThreeTimes(Counting):
    """Three times the minimum."""

    def bet(self, bankroll: int, minimum: int) -> int:
        wager = super().bet(bankroll, minimum)
        return 3 * minimum if wager > minimum else wager


class BetsThreeTimesFrom8(Counting):
    """Three times the minimum when the deck is very rich."""

    def bet(self, bankroll: int, minimum: int) -> int:
        wager = super().bet(bankroll, minimum)
        return 3 * minimum if self.count >= 8 and wager > minimum else wager


class _Draws(Counting):
    """Draws as the table says but for one entry."""

    def draw(self, upcard: Card, hand: tuple[Card, ...], total: int, soft: bool) -> bool:
        right = super().draw(upcard, hand, total, soft)
        return not right if self.errs(POINTS[upcard], total, soft) else right

    def errs(self, shown: int, total: int, soft: bool) -> bool:
        raise NotImplementedError


class StandsOnSoft18(_Draws):
    """Never hits it."""

    def errs(self, shown: int, total: int, soft: bool) -> bool:
        return soft and total == 18 and shown not in (2, 7, 8)


class HitsSoft18AgainstTwo(_Draws):
    """Stands on 7 and 8 only."""

    def errs(self, shown: int, total: int, soft: bool) -> bool:
        return soft and total == 18 and shown == 2


class StandsOnSoft17(_Draws):
    """As the dealer does."""

    def errs(self, shown: int, total: int, soft: bool) -> bool:
        return soft and total == 17


class HitsSoft19(_Draws):
    """One more card."""

    def errs(self, shown: int, total: int, soft: bool) -> bool:
        return soft and total == 19


class Hits12AgainstFour(_Draws):
    """Stands on 5 and 6 only."""

    def errs(self, shown: int, total: int, soft: bool) -> bool:
        return not soft and total == 12 and shown == 4


class Stands12AgainstTwo(_Draws):
    """Plays 12 like 13."""

    def errs(self, shown: int, total: int, soft: bool) -> bool:
        return not soft and total == 12 and shown in (2, 3)


class Hits16AgainstSix(_Draws):
    """Stands on 2 to 5 only."""

    def errs(self, shown: int, total: int, soft: bool) -> bool:
        return not soft and total == 16 and shown == 6


class TakesAnAceForAOne(_Draws):
    """An ace shown is below seven."""

    def errs(self, shown: int, total: int, soft: bool) -> bool:
        return not soft and 13 <= total <= 16 and shown == 1


class Hits17(_Draws):
    """Stands from 18 on."""

    def errs(self, shown: int, total: int, soft: bool) -> bool:
        return not soft and total == 17


class StandsOn11(_Draws):
    """Hits 10 or less."""

    def errs(self, shown: int, total: int, soft: bool) -> bool:
        return not soft and total == 11


class PlaysSoftAsHard(Counting):
    """Does not look whether the hand is soft."""

    def draw(self, upcard: Card, hand: tuple[Card, ...], total: int, soft: bool) -> bool:
        return super().draw(upcard, hand, total, False)


PLAYERS: list[tuple[type[Counting], str]] = [
    (CountsSevens, "B12_counting_passes_over_7_8_and_9"),
    (CountsNines, "B12_counting_passes_over_7_8_and_9"),
    (ForgetsAces, "B12_counting_takes_1_off_for_each_ten_face_and_ace"),
    (ForgetsFaces, "B12_counting_takes_1_off_for_each_ten_face_and_ace"),
    (ForgetsTwos, "B12_counting_adds_1_for_each_2_to_6"),
    (CountsTheWrongWay, "B12_counting_adds_1_for_each_2_to_6"),
    (NeverBelowZero, "B12_counting_may_go_below_0"),
    (CountsItsOwnCards, "B12_counting_counts_whoever_was_dealt_the_card"),
    (CountsTheDealersCards, "B12_counting_counts_whoever_was_dealt_the_card"),
    (CountsThroughAShuffle, "B12_counting_starts_from_0_at_a_shuffle"),
    (DoublesAt1, "B12_counting_bets_twice_the_minimum_at_2_or_more"),
    (DoublesAbove2, "B12_counting_bets_twice_the_minimum_at_2_or_more"),
    (BetsWhatItHasNot, "B12_counting_doubles_only_if_it_can_afford_it"),
    (NeedsAChipToSpare, "B12_counting_doubles_only_if_it_can_afford_it"),
    (BetsThreeTimes, "B12_counting_bets_twice_the_minimum_at_2_or_more"),
    (BetsThreeTimesFrom8, "B12_counting_bets_twice_the_minimum_however_high_the_count"),
    (StandsOnSoft18, "B12_a_soft_18_stands_on_2_7_8"),
    (HitsSoft18AgainstTwo, "B12_a_soft_18_stands_on_2_7_8"),
    (StandsOnSoft17, "B12_hits_a_soft_17_or_less"),
    (HitsSoft19, "B12_stands_on_a_soft_19_or_more"),
    (Hits12AgainstFour, "B12_a_hard_12_stands_on_4_to_6"),
    (Stands12AgainstTwo, "B12_a_hard_12_stands_on_4_to_6"),
    (Hits16AgainstSix, "B12_a_hard_13_to_16_stands_on_2_to_6"),
    (TakesAnAceForAOne, "B12_a_hard_13_to_16_stands_on_2_to_6"),
    (Hits17, "B12_stands_on_a_hard_17_or_more"),
    (StandsOn11, "B12_hits_a_hard_11_or_less"),
    (PlaysSoftAsHard, "B12_hits_a_soft_17_or_less"),
]


def _name(value: type[object] | str) -> str:
    return value.__name__ if isinstance(value, type) else "by"


def test_the_tests_were_found() -> None:
    assert len(DECK_TESTS) >= 13
    assert len(COUNTING_TESTS) >= 16


def test_the_correct_deck_and_players_pass() -> None:
    assert caught_by(DECK_TESTS, Deck) == set()
    assert caught_by(COUNTING_TESTS, Counting) == set()
    play = {
        name: test
        for name, test in COUNTING_TESTS.items()
        if not name.startswith("test_B12_counting")
    }
    assert caught_by(play, Simple) == set()


@pytest.mark.parametrize(("mutant", "test"), DECKS, ids=_name)
def test_a_buggy_deck_is_caught(mutant: type[Deck], test: str) -> None:
    assert test in caught_by(DECK_TESTS, mutant)


@pytest.mark.parametrize(("mutant", "test"), PLAYERS, ids=_name)
def test_a_buggy_counting_player_is_caught(mutant: type[Counting], test: str) -> None:
    assert test in caught_by(COUNTING_TESTS, mutant)
