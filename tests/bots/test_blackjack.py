"""The house bots of blackjack (B12), and the interface that they share."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pytest

import arena
from bots.blackjack import Competitor, Counting, PlayerStrategy, Simple
from protocol.blackjack import Bet, Draw, Exposed, HandOver, Shuffled, hand_value
from protocol.vocabulary import News, Question, Range
from tests.support.long import sized

UPCARDS = "23456789TJQKA"


def hits(player: PlayerStrategy, hand: str) -> str:
    """The up-cards against which the player hits this hand."""
    cards = tuple(hand.split())
    total, soft = hand_value(cards)
    return "".join(
        rank for rank in UPCARDS if player.decide(Draw(rank + "d", cards, total, soft)) == "hit"
    )


def bet_after(player: PlayerStrategy, seen: str, bankroll: int = 100) -> object:
    """The player's bet after it has seen these cards of a deck; the dealer's are in brackets."""
    player.reset()
    player.hear(Shuffled())
    see(player, seen.split())
    return bet(player, bankroll)


def see(player: PlayerStrategy, cards: Iterable[str]) -> None:
    for card in cards:
        to = "dealer" if card.startswith("(") else "player"
        player.hear(Exposed(card.strip("()"), to))  # type: ignore[arg-type]


def bet(player: PlayerStrategy, bankroll: int = 100) -> object:
    return player.decide(Bet(1, bankroll, Range(5, bankroll)))


# --- The play of Simple and Counting ---


@pytest.mark.parametrize("cls", [Simple, Counting])
@pytest.mark.parametrize(
    ("hands", "hit_against"),
    [
        ("2s 3s, 5s 5h, 6s 4s, 9s 2s, 2s 3s 6s", UPCARDS),  # hard, to 11
        ("Ts 2s, 7s 5s, As 9s 2s", "23789TJQKA"),  # 12
        ("Ts 3s, Ts 4s, 9s 6s, Ts 6s, As Ts 5s", "789TJQKA"),  # 13 to 16
        ("Ts 7s, Ts 8s, Ts Js, 9s 7s 5s, As 9s 7s", ""),  # from 17
        ("As Ah, As 2s, As 5s, As 6s, As 2s 4s", UPCARDS),  # soft, to 17
        ("As 7s, As 3s 4s", "34569TJQKA"),  # 18
        ("As 8s, As 9s, As 5s 5h", ""),  # from 19
    ],
)
def test_B12_simple_and_counting_play_by_the_table(
    hands: str, hit_against: str, cls: type[PlayerStrategy]
) -> None:
    for hand in hands.split(", "):
        assert hits(cls(), hand) == hit_against, hand


def test_B12_simple_bets_the_minimum_whatever_it_has_seen() -> None:
    assert bet_after(Simple(), "2s 3s 4s 5s 6s") == 5


# --- The count ---

LOW = [rank + suit for rank in "23456" for suit in "shdc"]
MANY_LOW = [rank + suit for suit in "sh" for rank in "23456"]


@pytest.mark.parametrize(
    ("seen", "bankroll", "bet"),
    [
        ("", 100, 5),
        ("2s", 100, 5),
        *[(" ".join(LOW[:count]), 100, 10) for count in range(2, len(LOW) + 1)],
        *[(f"{rank}s {rank}h", 100, 10) for rank in "23456"],
        *[(f"2s 3s {rank}s", 100, 5) for rank in "TJQKA"],
        *[(f"2s 3s 4s {rank}s", 100, 10) for rank in "TJQKA"],
        *[(f"2s {rank}s {rank}h", 100, 5) for rank in "789"],
        *[(f"2s 3s {rank}s {rank}h", 100, 10) for rank in "789"],
        ("(2s) (3s)", 100, 10),  # whoever was dealt the cards
        ("(2s) 3s", 100, 10),
        ("Ts Js Qs 2s 3s 4s", 100, 5),  # below 0 too
        ("Ts 2s 3s 4s", 100, 10),
        ("2s 3s", 9, 5),  # what it cannot afford
        ("2s 3s", 10, 10),
    ],
)
def test_B12_counting_bets_twice_the_minimum_at_2_or_more(
    seen: str, bankroll: int, bet: int
) -> None:
    assert bet_after(Counting(), seen, bankroll) == bet


def test_B12_counting_starts_from_0_at_a_shuffle() -> None:
    player = Counting()
    assert bet_after(player, "2s 3s 4s") == 10

    player.hear(Shuffled())

    assert bet(player) == 5
    see(player, ["5s", "6s"])
    assert bet(player) == 10


def test_B12_counting_is_built_on_simple_without_repeating_it() -> None:
    assert issubclass(Counting, Simple)
    assert "draw" not in vars(Counting)


def test_reset_forgets_the_last_match() -> None:
    counting, competitor = Counting(), Competitor()
    for player in (counting, competitor):
        fresh = bet(player, 1000)
        see(player, MANY_LOW)
        assert bet(player, 1000) != fresh
        player.reset()
        assert bet(player, 1000) == fresh


# --- Competitor ---


@pytest.mark.parametrize(
    ("seen", "bankroll", "bet"),
    [
        ("As Ah Ts Ks Qs Js", 100, 5),
        ("", 100, 6),  # even: a natural pays 9
        (" ".join(MANY_LOW), 100, 20),
        (" ".join(MANY_LOW), 10_000, 726),
        ("", 5, 5),  # never more than it has
        (" ".join(MANY_LOW[:-2]), 13, 13),
    ],
)
def test_B12_competitor_bets_more_the_more_it_is_favoured(
    seen: str, bankroll: int, bet: int
) -> None:
    assert bet_after(Competitor(), seen, bankroll) == bet


def test_B12_competitor_draws_what_the_unseen_cards_favour() -> None:
    """On 16 against a ten a fresh deck says hit; with the small cards gone, stand."""
    player = Competitor()
    see(player, ["Ts", "Th", "6s"])
    assert "T" in hits(player, "Ts 6s")

    see(player, ["2s", "3s", "4s", "5s", "2h", "3h", "4h", "5h", "2c", "3c", "4c"])

    assert "T" not in hits(player, "Ts 6s")


def test_B12_competitor_plays_the_clear_hands_like_anybody() -> None:
    player = Competitor()

    assert hits(player, "5s 6s") == UPCARDS
    assert hits(player, "As 6s") == UPCARDS
    assert hits(player, "Ts 6s") == "789TJQKA"
    assert hits(player, "Ts 2s") == "23789TJQKA"
    assert hits(player, "Ts 7s") == ""
    assert hits(player, "As 8s") == ""
    assert hits(player, "As 7s").startswith("9TJQK")  # against an ace it is close


# --- In the long run ---


class _Ledger:
    """Plays matches and adds up what was bet and paid."""

    def __init__(self, player: PlayerStrategy) -> None:
        self.player = player
        self.hands = self.bet = self.paid = self.squares = 0

    def play(self, hands: int, bankroll: int, shuffle: str, seed: int) -> int:
        """One match; returns the chips at its end."""
        settings = {"bankroll": bankroll, "hands": hands, "shuffle": shuffle}
        result = arena.play("blackjack", [self], settings=settings, seed=seed)
        return bankroll + result.scores[0]

    def decide(self, question: Question[Any]) -> object:
        return self.player.decide(question)

    def hear(self, news: News) -> None:
        self.player.hear(news)
        if type(news) is HandOver:
            self.hands += 1
            self.bet += news.bet
            self.paid += news.payoff
            self.squares += news.payoff**2

    def reset(self) -> None:
        self.player.reset()

    @property
    def error(self) -> float:
        """The standard error of `paid`."""
        return math.sqrt(self.squares - self.paid**2 / self.hands)


@pytest.mark.stats
def test_B12_competitor_wins_more_per_chip_and_ends_with_more() -> None:
    per_chip: dict[str, tuple[float, float]] = {}
    final: dict[str, tuple[float, float]] = {}
    matches = sized(400, 40)
    for cls in Simple, Counting, Competitor:
        ledger = _Ledger(cls())
        ends = [ledger.play(1000, 100, "uniform", seed) for seed in range(matches)]
        mean = sum(ends) / matches
        spread = math.sqrt(sum((end - mean) ** 2 for end in ends)) / matches
        final[cls.__name__] = (mean, spread)
        per_chip[cls.__name__] = (ledger.paid / ledger.bet, ledger.error / ledger.bet)

    for other in ("Simple", "Counting"):
        for (best, error), (mean, its) in (
            (per_chip["Competitor"], per_chip[other]),
            (final["Competitor"], final[other]),
        ):
            assert best - mean > sized(3, 0) * math.hypot(error, its)
