"""Blackjack (rulebook, section B)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from arena.games.blackjack.script import BlackjackScript
from arena.games.evaluator import Evaluated
from arena.games.rules import (
    AskSeat,
    Choice,
    Game,
    Measure,
    Purse,
    Rules,
    Scoreboard,
    TellSeat,
    Trial,
    Variation,
)
from arena.games.shuffle import Stream
from protocol.blackjack import (
    MINIMUM,
    NEW_DECK,
    VOCABULARY,
    Action,
    Bet,
    BlackjackSettings,
    Draw,
    Exposed,
    HandOver,
    Outcome,
    Shuffled,
    hand_value,
)
from protocol.cards import Card, check_cards
from protocol.errors import BadDeck, DeckEmpty
from protocol.vocabulary import Range

__all__ = ["GAME", "Deck", "DeckEmpty", "match", "outcome", "payoff"]

PLAYER = 0
CUTS = 7
RESHUFFLE_BELOW = 20  # enough for any hand: no two reach their totals in more than 17 cards
DEALER_STANDS = 17

Deal: TypeAlias = int | Sequence[Card]
"""A cut point, or a whole deck with `shuffle = "uniform"`."""

# Made once, as every hand tells at least five of them.
_TO_PLAYER = {card: TellSeat(PLAYER, Exposed(card, "player")) for card in NEW_DECK}
_TO_DEALER = {card: TellSeat(PLAYER, Exposed(card, "dealer")) for card in NEW_DECK}
_SHUFFLED = TellSeat(PLAYER, Shuffled())


class Deck:
    """A deck of 52 that is dealt from the front and shuffled by cutting (B1–B3)."""

    __slots__ = ("_cards", "_next")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Take a new deck, in the order of B1."""
        self.stack(NEW_DECK)

    def stack(self, cards: Iterable[Card]) -> None:
        """Use these cards as the deck, in dealing order; with fewer than 52 the rest is unknown."""
        self._cards = list(cards)
        self._next = 0

    def shuffle(self, n: int) -> None:
        """Put back what was dealt, cut `n` cards off and interleave: right, left, right … (B2).

        Raises `BadDeck` if `n` is no whole number from 0 to 52.
        """
        if type(n) is not int or not 0 <= n <= len(NEW_DECK):
            raise BadDeck(f"expected a cut from 0 to {len(NEW_DECK)}, got {n!r}")
        cards = self._cards
        both = min(n, len(cards) - n)  # this many of each alternate; the longer part's rest follows
        left, right = cards[:n], cards[n : n + both]
        cards[0 : 2 * both : 2], cards[1 : 2 * both : 2] = right, left[:both]
        if n > both:
            cards[2 * both :] = left[both:]
        self._next = 0

    def deal(self) -> Card:
        """Deal the next card; raises `DeckEmpty` if all have been dealt (B3)."""
        place = self._next
        try:
            card = self._cards[place]
        except IndexError:
            raise DeckEmpty(f"expected a card to deal, all {place} are dealt") from None
        self._next = place + 1
        return card

    @property
    def cards_left(self) -> int:
        """How many of the 52 have not been dealt."""
        return len(NEW_DECK) - self._next


def match(settings: BlackjackSettings, deals: Iterator[Any], board: Scoreboard) -> Rules:
    """Play hands until all are played or the bankroll is below the minimum (B5)."""
    deck = Deck()
    deal = deck.deal
    bankroll = settings.bankroll
    yield shuffle(deck, settings, deals)
    for round_number in range(1, settings.hands + 1):
        if bankroll < MINIMUM:
            break
        if deck.cards_left < RESHUFFLE_BELOW:
            yield shuffle(deck, settings, deals)
        bet: int = yield AskSeat(PLAYER, Bet(round_number, bankroll, Range(MINIMUM, bankroll)))

        # One card each face up, the player's second, and the dealer's hole card face down (B7).
        first, upcard, second, hole = deal(), deal(), deal(), deal()
        player, dealer = [first, second], [upcard]
        yield _TO_PLAYER[first]
        yield _TO_DEALER[upcard]
        yield _TO_PLAYER[second]

        total, soft = hand_value(player)
        is_natural = total == 21  # B8
        while total <= 21 and not is_natural:
            action: Action = yield AskSeat(PLAYER, Draw(upcard, tuple(player), total, soft))
            if action == "stand":
                break
            card = deal()
            player.append(card)
            yield _TO_PLAYER[card]
            total, soft = hand_value(player)

        ended: Outcome
        if is_natural:
            ended = "natural"
        elif total > 21:
            ended = "bust"
        else:
            # The dealer shows the hole card and hits below 17, soft or hard (B10).
            dealer.append(hole)
            yield _TO_DEALER[hole]
            while (dealers := hand_value(dealer)[0]) < DEALER_STANDS:
                card = deal()
                dealer.append(card)
                yield _TO_DEALER[card]
            ended = outcome(total, dealers)

        paid = payoff(ended, bet)
        bankroll += paid
        board.scores[PLAYER] = bankroll - settings.bankroll
        over = HandOver(bet, tuple(player), tuple(dealer), ended, paid, bankroll)
        yield TellSeat(PLAYER, over)


def shuffle(deck: Deck, settings: BlackjackSettings, deals: Iterator[Any]) -> TellSeat:
    """Shuffle the deck as the settings say (B6, B14); the news of it hides the cuts (B11)."""
    if settings.shuffle == "riffle":
        for _ in range(CUTS):
            deck.shuffle(next(deals))
    else:
        deck.stack(next(deals))
    return _SHUFFLED


def outcome(player: int, dealer: int) -> Outcome:
    """How a hand ends in which the player stood, by the two totals (B10)."""
    if dealer > 21:
        return "dealer_busts"
    if player == dealer:
        return "push"
    return "win" if player > dealer else "lose"


def payoff(ended: Outcome, bet: int) -> int:
    """The payoff of an outcome in whole chips: a natural's three for two is rounded down (B8)."""
    if ended == "natural":
        return bet * 3 // 2
    if ended == "push":
        return 0
    return bet if ended in ("win", "dealer_busts") else -bet


def deals(settings: BlackjackSettings, stream: Stream) -> Iterator[Deal]:
    """Cut points of 13 to 39 (B5), or with `uniform` fair shuffles of a new deck."""
    while True:
        if settings.shuffle == "riffle":
            yield 13 + stream.below(27)
        else:
            yield stream.shuffled(NEW_DECK)


def stacked(settings: BlackjackSettings, decks: Iterable[Any]) -> Iterator[Deal]:
    """Given cut points, seven for every shuffle; with `uniform` decks, one for every shuffle.

    Decks are checked here, and cuts by `Deck.shuffle`: both raise `BadDeck`.
    """
    for deal in decks:
        if settings.shuffle == "riffle":
            yield deal
        elif not isinstance(deal, Sequence):
            raise BadDeck(f"expected a deck of cards, got {deal!r}")
        else:
            check_cards(deal)
            yield tuple(deal)


def _refuses_luck(settings: BlackjackSettings) -> str | None:
    if settings.shuffle == "uniform":
        return None
    return "a riffle of a known deck is not fair chance (B14): who works it out would seem lucky"


def _refuses_analysis(settings: BlackjackSettings) -> str | None:
    if settings.bankroll >= MINIMUM and settings.hands:
        return None
    return f"no hand is played: it takes a bankroll of {MINIMUM} and a hand"


def _refuses_judging(settings: BlackjackSettings) -> str | None:
    if settings.shuffle == "uniform":
        return None
    return (
        "after a riffle of a known deck not every unseen card is equally likely (B14); "
        "play with `--set shuffle=uniform`, as competitions do, to have its decisions judged"
    )


_EVALUATOR = Evaluated(f"{__package__}.evaluator:BlackjackEvaluator", f"{__package__}.analysis")
_UNIFORM: Mapping[str, object] = {"shuffle": "uniform"}

GAME = Game(
    vocabulary=VOCABULARY,
    about="Closer to 21 than the dealer.",
    summary="Bet, then hit or stand: closest to 21 wins, over 21 loses at once. An ace counts 1 or "
    "11, court cards 10. A two-card 21 is a natural and pays half as much again. The dealer hits "
    "below 17. The least bet is 5.",
    rules=match,
    deals=deals,
    stacked=stacked,
    decisions=lambda settings: 1.7 * settings.hands,
    rounds=lambda most: {"hands": most, **_UNIFORM},
    short={"hands": 4, **_UNIFORM},
    choices=(
        Choice("hands", "Hands", 1, 1000),
        Choice("bankroll", "Chips to start with", MINIMUM, 1_000_000),
    ),
    variations=(
        Variation(lambda seat: {"bankroll": 5, "hands": 1, **_UNIFORM}),
        Variation(lambda seat: {"bankroll": 1_000_000_000, "hands": 3, **_UNIFORM}),
        Variation(lambda seat: {"bankroll": 100, "hands": 10, "shuffle": "riffle"}),
    ),
    cross=Trial(matches=100),
    demo=Trial({"hands": 200}, matches=25),
    bench=Trial({"hands": 10_000, "bankroll": 10**9}),
    in_competitions=lambda settings: _UNIFORM,  # B14
    stake=lambda settings: int(settings.bankroll),
    purse=Purse("bankroll", "hands", MINIMUM),
    measure=Measure("final bankroll", lambda settings, score: settings.bankroll + score),
    script=BlackjackScript,
    luck=_EVALUATOR.luck("chip", _refuses_luck),
    analysing=_EVALUATOR.analysing(version=1, refuses=_refuses_analysis),
    judging=_EVALUATOR.judging(version=1, is_slow=True, refuses=_refuses_judging),
    habits=_EVALUATOR.habits,
    view="view.js",
)
