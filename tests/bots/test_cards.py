"""Cards as objects: they agree with the protocol, refuse wrong arguments, and are legal answers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import combinations, pairwise
from math import sqrt
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import arena
from bots import cards, gin_rummy
from bots.cards import (
    BlackjackHand,
    Card,
    Deck,
    Hand,
    Meld,
    ThreeCardPokerDeck,
    ThreeCardPokerHand,
    make_dist,
    play,
    play_round,
)
from protocol import blackjack, gin_melds
from protocol.cards import PACK, RANKS, SUITS, name
from protocol.errors import BadDeck, IllegalAnswer
from protocol.gin_rummy import Melds, Turn, TurnAnswer, turn_answers
from protocol.messages import Ending
from protocol.strategy import as_sent
from protocol.three_card_poker import CATEGORIES, category, compare, strength
from tests.support.answering import Answering

ALL_HANDS = list(combinations(PACK, 3))
Hand3 = tuple[str, str, str]


def named(given: Any) -> str:
    """What is given in a test, as its name says it; a deck's own text is another each time."""
    return "a deck" if isinstance(given, Deck) else repr(given)


NOT_CARDS: list[Any] = ["3d", 3, None, (1, 2), ["3d"], Deck()]
NOT_NUMBERS: list[Any] = [-1, True, 1.0, "1", None]
CODES = st.sampled_from(PACK)
HANDS = st.lists(CODES, min_size=3, max_size=3, unique=True)


def some(codes: str) -> list[Card]:
    """The cards of these characters."""
    return [Card.of(code) for code in codes.split()]


def poker(codes: str | Iterable[str]) -> ThreeCardPokerHand:
    return ThreeCardPokerHand(some(codes if isinstance(codes, str) else " ".join(codes)))


@pytest.fixture(scope="module")
def hands() -> dict[Hand3, ThreeCardPokerHand]:
    """All hands that there are."""
    deck = {code: Card.of(code) for code in PACK}
    return {codes: ThreeCardPokerHand(map(deck.__getitem__, codes)) for codes in ALL_HANDS}


ALWAYS: Callable[[ThreeCardPokerHand], bool] = lambda hand: True  # noqa: E731


# ---- A card


def test_a_card_is_made_from_its_two_characters_and_turned_into_them() -> None:
    made = [Card.of(code) for code in PACK]

    assert tuple(card.code for card in made) == PACK
    assert made == [Card(rank, suit) for suit in range(4) for rank in range(13)]
    assert [(card.get_rank(), card.get_suit()) for card in made] == [
        (RANKS.index(code[0]), SUITS.index(code[1])) for code in PACK
    ]


def test_a_card_is_called_by_its_number_or_face() -> None:
    assert str(Card.of("3d")) == "3 of Diamonds"
    assert str(Card.of("Ts")) == "10 of Spades"
    assert str(Card.of("Qh")) == "Queen of Hearts"
    assert str(Card.of("Ac")) == "Ace of Clubs"
    assert len({Card(1, 2), Card.of("3d"), Card(2, 1)}) == 2
    for card in map(Card.of, PACK):
        rank, suit = Card.ranks[card.get_rank()], Card.suits[card.get_suit()]
        assert str(card) == f"{rank} of {suit}"
        assert name(card.code).endswith(suit)
        assert rank.isdigit() or name(card.code).startswith(rank)


# ---- A deck and a hand


def test_a_new_deck_has_all_cards_in_order_and_a_new_hand_none() -> None:
    hand, deck, again = Hand("ann"), Deck(), Deck()

    assert deck.code == PACK
    assert (hand.code, hand.get_name()) == ((), "ann")
    for shuffled in deck, again:
        random.seed(1)
        shuffled.shuffle()
    assert deck.code == again.code != PACK
    assert sorted(deck.code) == sorted(PACK)


def test_cards_are_popped_from_the_end_the_last_one_first() -> None:
    deck, hand = Deck(), Hand("ann")
    popped = deck.pop_cards(3)
    deck.move_cards(hand, 2)
    deck.move_cards(hand, 1)

    assert [card.code for card in popped] == ["Ac", "Kc", "Qc"]
    assert hand.code == ("Jc", "Tc", "9c")
    assert deck.code == PACK[:-6]
    assert deck.pop_cards(0) == []
    assert len(deck.pop_cards(46)) == 46
    assert deck.cards == []


def test_cards_are_added_at_the_end_as_copies() -> None:
    mine = some("3d As")
    hand = Hand("ann")
    hand.add_cards(mine)
    hand.add_cards(card for card in some("2c"))
    mine.clear()

    assert hand.code == ("3d", "As", "2c")
    [card] = some("3d")
    hand.add_cards([card])
    assert hand.cards[-1] == card
    assert hand.cards[-1] is not card


def test_a_card_that_was_smuggled_into_a_deck_is_not_moved() -> None:
    deck, hand = Deck(), Hand("ann")
    deck.cards.append("3d")  # type: ignore[arg-type]
    with pytest.raises(BadDeck, match="expected Card, got '3d'"):
        deck.move_cards(hand, 2)

    assert (len(deck.cards), hand.cards) == (53, [])


@given(st.lists(st.tuples(st.integers(-2, 30), st.booleans()), max_size=20))
def test_no_card_is_lost_however_they_are_moved(moves: list[tuple[int, bool]]) -> None:
    deck, hand = Deck(), Hand("ann")
    for n, there in moves:
        start, end = (deck, hand) if there else (hand, deck)
        before = deck.code, hand.code
        try:
            start.move_cards(end, n)
        except BadDeck:
            assert n < 0 or n > len(start.cards)
            assert (deck.code, hand.code) == before
    assert sorted(deck.code + hand.code) == sorted(PACK)


# ---- A hand of three card poker


def test_T2_all_hands_have_the_label_and_rank_of_the_protocol(
    hands: dict[Hand3, ThreeCardPokerHand],
) -> None:
    assert ThreeCardPokerHand.all_labels == list(CATEGORIES)
    dealt: Counter[int] = Counter()
    for codes, hand in hands.items():
        assert hand.get_label() == category(codes) == hand.all_labels[hand.rank]
        dealt[hand.rank] += 1

    assert [dealt[rank] for rank in range(6)] == [16440, 3744, 1096, 720, 52, 48]


def test_T3_all_hands_are_in_the_order_of_the_protocol(
    hands: dict[Hand3, ThreeCardPokerHand],
) -> None:
    ranked = sorted((strength(hand), hand) for hand in ALL_HANDS)
    for (least, lower), (most, higher) in pairwise(ranked):
        worse, better = hands[lower], hands[higher]
        assert worse._compare(better) == compare(lower, higher)
        assert worse <= better
        assert (worse == better) == (least == most)


@settings(max_examples=300)
@given(HANDS, HANDS)
def test_T4_the_six_operators_and_the_hash_go_by_the_comparison(
    mine: list[str], theirs: list[str]
) -> None:
    a, b = poker(mine), poker(theirs)
    order = compare(mine, theirs)

    assert a._compare(b) == order == -b._compare(a)
    assert (a < b, a == b, a > b) == (order < 0, order == 0, order > 0)
    assert (a <= b, a != b, a >= b) == (order <= 0, order != 0, order >= 0)
    assert a != theirs
    if order == 0:
        assert len({a, b}) == 1


# ---- What is refused, and changes nothing


NINES, PAIR = poker("9s 9h 5d"), poker("9d 9c 4s")


def a_round(dealer: Any = PAIR, player: Any = NINES, cash: Any = 101, ante: Any = 1) -> object:
    return play_round(dealer, player, cash, lambda cash: ante, ALWAYS)


def trials(stake: Any = 2, goal: Any = 3, count: Any = 1) -> object:
    return play(stake, goal, lambda cash: 1, ALWAYS, count)


def pile() -> tuple[Deck, Hand]:
    """A deck and a hand of one card."""
    hand = Hand("ann")
    hand.add_cards(some("3d"))
    return Deck(), hand


Refused = tuple[Callable[[Any], object], list[Any], str]
OTHERS: list[Any] = [None, 3, ("9s", "9h", "5d"), Hand("ann")]
NO_CODES: list[Any] = ["", "3", "10d", "D3", "3D", ("3", "d"), 3, None, []]
NOT_THREE = ["", "3d", "3d 4d", "3d 4d 5d 6d", "3d 3d 4d"]
REFUSED: list[Refused] = [
    (lambda n: Card(n, 0), [*NOT_NUMBERS, 13], "expected a rank from 0 to 12, got "),
    (lambda n: Card(0, n), [*NOT_NUMBERS, 4], "expected a suit from 0 to 3, got "),
    (Card.of, NO_CODES, "expected a card such as '3d', got "),
    (lambda cards: BlackjackHand().add_card(cards), NOT_CARDS, "expected Card, got "),
    (lambda card: Meld([*some("3d 4d"), card]), NOT_CARDS, "expected Card, got "),
    (poker, NOT_THREE, "expected three different cards"),
    *[
        (act, OTHERS, "expected ThreeCardPokerHand, got ")
        for act in (NINES._compare, NINES.__lt__, NINES.__ge__)
    ],
    (make_dist, [*NOT_NUMBERS, 0], "expected hands from 1 to "),
    (lambda ante: a_round(ante=ante), [*NOT_NUMBERS, 0, 51], "expected an ante from 1 to 50, got "),
    (lambda cash: a_round(cash=cash), [*NOT_NUMBERS, 1], "expected cash from 2 to "),
    (lambda cards: a_round(dealer=cards), [some("9d 9c 4s")], "expected ThreeCardPokerHand, got "),
    (lambda cards: a_round(player=cards), [some("9d 9c 4s")], "expected ThreeCardPokerHand, got "),
    (lambda n: trials(stake=n), [*NOT_NUMBERS, 0], "expected a stake from 1"),
    (lambda n: trials(goal=n), [*NOT_NUMBERS, 0], "expected a goal from 1"),
    (lambda n: trials(count=n), [*NOT_NUMBERS, 0], "expected trials from 1"),
]


@pytest.mark.parametrize(("act", "given", "text"), REFUSED, ids=[text for *_, text in REFUSED])
def test_what_is_none_is_refused(act: Callable[[Any], object], given: list[Any], text: str) -> None:
    for wrong in given:
        with pytest.raises(BadDeck, match=text):
            act(wrong)


DECKS_REFUSE: list[tuple[Callable[[Deck, Hand, Any], object], list[Any], str]] = [
    (lambda deck, hand, n: deck.pop_cards(n), [*NOT_NUMBERS, 53], "from 0 to 52"),
    (lambda deck, hand, n: deck.move_cards(hand, n), [*NOT_NUMBERS, 53], "from 0 to 52"),
    (lambda deck, hand, to: deck.move_cards(to, 2), [[], None, "ann", Card(1, 2)], "expected Deck"),
    (lambda deck, hand, card: hand.add_cards([*some("As"), card]), NOT_CARDS, "expected Card"),
    (lambda deck, hand, card: hand.add_cards(iter([card])), NOT_CARDS, "expected Card"),
    (lambda deck, hand, one: hand.add_cards(one), [Card(1, 2), 3, None, Deck()], "expected Iter"),
]


@pytest.mark.parametrize(("act", "given", "text"), DECKS_REFUSE)
def test_what_is_refused_changes_no_deck_and_no_hand(
    act: Callable[[Deck, Hand, Any], object], given: list[Any], text: str
) -> None:
    for wrong in given:
        deck, hand = pile()
        with pytest.raises(BadDeck, match=text):
            act(deck, hand, wrong)
        assert (deck.code, hand.code) == (PACK, ("3d",))


def test_a_deck_with_too_few_cards_deals_no_hand() -> None:
    deck = ThreeCardPokerDeck()
    hand = deck.deal_hand("ann")
    assert (hand.code, hand.get_name(), deck.code) == (("Ac", "Kc", "Qc"), "ann", PACK[:-3])
    deck.pop_cards(47)
    with pytest.raises(BadDeck, match="from 0 to 2, got 3"):
        deck.deal_hand("ann")

    assert deck.code == PACK[:2]
    deck.clear_cards()
    assert deck.cards == []


# ---- Chances and rounds


def test_T9_a_distribution_is_near_the_exact_one() -> None:
    n = 20_000
    random.seed(1)
    dist = make_dist(n)

    assert list(dist) == ThreeCardPokerHand.all_labels
    assert sum(dist.values()) == pytest.approx(100)
    exact = Counter(map(category, ALL_HANDS))
    for label, share in dist.items():
        chance = exact[label] / len(ALL_HANDS)  # type: ignore[index]
        error = 100 * sqrt(chance * (1 - chance) / n)
        assert abs(share - 100 * chance) < 4 * error


def test_T9_a_label_that_was_never_dealt_has_0_per_cent() -> None:
    dist = make_dist(1)

    assert sorted(dist.values()) == [0.0] * 5 + [100.0]


@pytest.mark.parametrize(
    ("player", "dealer", "is_playing", "outcome"),
    [
        ("As Ah Kd", "7s 5h 2d", False, -1),
        ("7s 5h 2d", "Jc Td 8c", True, 1),
        ("9s 9h 5d", "Qc 3c 2h", True, 2),
        ("7s 5h 2d", "Qc 3c 2h", True, -2),
        ("9s 9h 5d", "9d 9c 4s", True, 0),
    ],
)
def test_T6_a_round_has_its_outcome(
    player: str, dealer: str, is_playing: bool, outcome: int
) -> None:
    asked: list[object] = []

    def get_ante(cash: int) -> int:
        asked.append(cash)
        return 7

    def decide(hand: ThreeCardPokerHand) -> bool:
        asked.append(hand.code)
        return is_playing

    played = play_round(poker(dealer), poker(player), 100, get_ante, decide)

    assert played == (7, outcome)
    assert asked == [100, tuple(player.split())]


ANTES_ONE = Answering(lambda question: 1 if question.kind == "ante" else "play")


@settings(max_examples=200)
@given(st.lists(CODES, min_size=6, max_size=6, unique=True))
def test_T6_a_round_ends_as_in_the_arena(six: list[str]) -> None:
    result = arena.play("tcp", [ANTES_ONE], settings={"rounds": 1}, decks=[six])
    _, outcome = play_round(poker(six[3:]), poker(six[:3]), 2, lambda cash: 1, ALWAYS)

    assert (outcome,) == result.scores


def test_T10_the_share_that_reaches_a_goal_is_the_known_chance() -> None:
    """From 2 chips the first round that is no tie ends a trial: at 0, or at 3 or more."""
    won, not_qualified, lost = 97_390_060, 123_809_280, 185_636_308
    chance = (won + not_qualified) / (won + not_qualified + lost)
    trials = 5_000
    random.seed(1)
    share = play(2, 3, lambda cash: 1, ALWAYS, trials)

    assert abs(share - chance) < 4 * sqrt(chance * (1 - chance) / trials)


def folds(hand: ThreeCardPokerHand) -> bool:
    return False


def test_T8_a_trial_is_over_when_the_cash_is_below_2() -> None:
    seen: list[int] = []

    def get_ante(cash: int) -> int:
        seen.append(cash)
        return 1

    assert play(5, 6, get_ante, folds, 1) == 0
    assert seen == [5, 4, 3, 2]
    assert play(20, 20, get_ante, folds, 3) == 1  # who starts at the goal has reached it


# ---- Blackjack


@given(st.lists(CODES, max_size=8))
def test_B4_a_hand_counts_as_in_the_protocol(codes: list[str]) -> None:
    hand = BlackjackHand("ann")
    for code in codes:
        hand.add_card(Card.of(code))

    assert hand.code == tuple(codes)
    assert hand.hand_value() == blackjack.hand_value(codes)
    hand.discard_all()
    assert (hand.cards, hand.hand_value()) == ([], (0, False))


# ---- Gin's melds


@given(st.one_of(st.lists(CODES, max_size=5), st.permutations("3d 4d 5d 6d".split())))
def test_G2_a_meld_is_what_the_protocol_says(codes: list[str]) -> None:
    made = [Card.of(code) for code in codes]
    if gin_melds.is_meld(codes):
        assert Meld(made).code == tuple(codes)
        assert Meld(made).cards == tuple(made)
    else:
        with pytest.raises(BadDeck, match="expected a set or a run"):
            Meld(made)


def test_G2_melds_of_the_same_cards_are_equal() -> None:
    run = Meld(some("3d 4d 5d"))

    assert {run, Meld.of(["3d", "4d", "5d"])} == {run}
    assert run != Meld.of(["4d", "5d", "6d"])
    assert run != ("3d", "4d", "5d")


# ---- In a bot's answers

HAND = tuple("As 2s 3s 9s 9h 9d 4c 5c 6c Ah Kd".split())
TURN = Turn("Kd", HAND, turn_answers(HAND))
GIN = (("As", "2s", "3s"), ("9s", "9h", "9d"), ("4c", "5c", "6c"))
KNOCK = TurnAnswer("Kd", True, GIN)
IN_OBJECTS: list[Any] = [
    TurnAnswer(Card.of("Kd"), True, tuple(map(Meld.of, GIN))),  # type: ignore[arg-type]
    TurnAnswer("Kd", True, [some(" ".join(meld)) for meld in GIN]),  # type: ignore[arg-type]
    {"discard": Card.of("Kd"), "knock": True, "melds": [Meld.of(GIN[0]), *GIN[1:]]},
    TurnAnswer(np.str_("Kd"), np.bool_(True), np.array(GIN)),  # type: ignore[arg-type]
    {np.str_("discard"): "Kd", "knock": np.True_, "melds": (np.array(GIN[0]), *GIN[1:])},
]
"""The knock, written in five ways."""


@pytest.mark.parametrize("answer", IN_OBJECTS, ids="melds cards map numpy some_numpy".split())
def test_G9_an_answer_in_objects_is_the_one_in_characters(answer: Any) -> None:
    sent = as_sent(answer)

    assert msgspec.json.encode(sent) == msgspec.json.encode(KNOCK)
    assert TURN.check(sent) == KNOCK
    assert TURN.fault(sent) is None


def test_G9_a_defender_declares_melds_in_objects() -> None:
    question = Melds(HAND[:10])

    for melds in ([*map(Meld.of, GIN)], np.array(GIN)):
        assert question.check(as_sent(melds)) == GIN
    with pytest.raises(IllegalAnswer, match="Jc Qc Kc: Jc is not among the ten cards"):
        question.check(as_sent([Meld(some("Jc Qc Kc"))]))


@pytest.mark.parametrize(
    "discard",
    [{"rank": 11, "suit": 2}, "King of Diamonds", ["Kd"], {"code": "Kd"}, Deck(), Card.of("Ac")],
    ids=named,
)
def test_nothing_else_than_a_card_is_taken_for_one(discard: Any) -> None:
    with pytest.raises(IllegalAnswer):
        TURN.check(as_sent({"discard": discard, "knock": False}))


class _InCharacters(gin_rummy.PlayerStrategy):
    """Declares its melds itself."""

    def get_melds(self) -> Any:
        return gin_melds.arrange(self.hand)[0]


class _InObjects(_InCharacters):
    """The same with objects."""

    def take_turn(self, drawn: str) -> Any:
        return Card.of(super().take_turn(drawn))

    def get_melds(self) -> Any:
        return [*map(Meld.of, super().get_melds())]


def test_a_gin_bot_plays_with_objects_as_with_characters() -> None:
    with_objects, with_characters = (
        arena.play("gin", [bot(), gin_rummy.Simple()], settings={"games": 2}, seed=1)
        for bot in (_InObjects, _InCharacters)
    )

    assert with_objects.termination.kind is Ending.COMPLETED
    assert with_objects.record.to_json() == with_characters.record.to_json()


# ---- The module


def test_the_module_stays_short_enough_to_be_read() -> None:
    assert cards.__file__ is not None
    with open(cards.__file__, encoding="utf-8") as module:
        assert len(module.readlines()) <= 250


@pytest.mark.parametrize(
    ("pile", "shown"),
    [
        (BlackjackHand("ann"), "BlackjackHand([Card.of('3d'), Card.of('Ts')], 'ann')"),
        (Hand("ann"), "Hand([Card.of('3d'), Card.of('Ts')], 'ann')"),
        (Deck(), "Deck([Card.of('3d'), Card.of('Ts')])"),
    ],
)
def test_a_list_of_hands_and_decks_shows_their_cards(pile: Deck, shown: str) -> None:
    pile.cards = [Card.of("3d"), Card.of("Ts")]

    assert repr([pile]) == f"[{shown}]"


def test_what_is_shown_of_a_hand_of_three_cards_makes_it_again() -> None:
    hand = ThreeCardPokerHand(map(Card.of, ("9s", "9h", "5d")), "ann")

    again = eval(repr(hand))

    assert (again.code, again.get_name()) == (hand.code, "ann")
