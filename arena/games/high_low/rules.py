"""High-low (rulebook, section H)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from arena.games.analysis import Analyser, Analysing
from arena.games.evaluator import Evaluated
from arena.games.rules import EVERYONE, AskSeat, Choice, Game, Rules, Scoreboard, TellSeat, Trial
from arena.games.shuffle import Stream
from protocol.cards import PACK, Card, check_cards
from protocol.errors import BadDeck, NoAnalysis
from protocol.high_low import (
    SEATS,
    VOCABULARY,
    Bid,
    Bidding,
    BidMade,
    Cards,
    Dealt,
    HighLowSettings,
    Points,
    RoundOver,
    Swap,
    SwapChoice,
    Swapped,
    legal_bids,
    strength,
)

__all__ = ["GAME", "advancing", "match", "payoffs", "survivors"]

ROUNDS = 10  # in a shuffle (H2)
CARDS = SEATS + 1  # in a round: the dealer-card is the fifth (H2)
QUIT = 2  # the price of quitting (H8)
EXTRA_SHUFFLES = 10  # while second and third are level (H12)

SPEAKING = ((0, 1, 2, 3), (1, 2, 3, 0), (2, 3, 0, 1), (3, 0, 1, 2))
"""By starter, the order in which the seats speak (H3)."""

Deck = Sequence[Card]
"""In groups of five: a card for each seat, then the dealer-card (H2)."""


def match(settings: HighLowSettings, decks: Iterator[Deck], board: Scoreboard) -> Rules:
    """Play shuffle after shuffle until two of the four are beaten (H11, H12)."""
    number = 0
    while not is_over(settings, number, board.scores):
        number += 1
        yield from shuffle(number, next(decks), board)


def is_over(settings: HighLowSettings, shuffles: int, scores: Sequence[int]) -> bool:
    """Whether the match ends after this number of shuffles with these scores (H11, H12)."""
    _, second, third, _ = sorted(scores, reverse=True)
    if shuffles < settings.max_shuffles:
        return second - third >= settings.gap
    return second != third or shuffles == settings.max_shuffles + EXTRA_SHUFFLES


def shuffle(number: int, deck: Deck, board: Scoreboard) -> Rules:
    """Play ten rounds from one deck (H2); rounds are numbered through the whole match (H3)."""
    first_round = (number - 1) * ROUNDS + 1
    for index in range(ROUNDS):
        five = deck[index * CARDS : (index + 1) * CARDS]
        if len(five) < CARDS:
            raise BadDeck(
                f"round {index + 1} of a shuffle needs {CARDS} cards, the deck has {len(five)} left"
            )
        yield from deal(number, first_round + index, five, board)


def deal(shuffle_number: int, round_number: int, five: Deck, board: Scoreboard) -> Rules:
    """Play one round (H3–H10)."""
    starter = (round_number - 1) % SEATS
    *cards, dealer_card = five
    for seat in range(SEATS):
        yield TellSeat(seat, Dealt(shuffle_number, round_number, starter, cards[seat], dealer_card))

    for seat in SPEAKING[starter]:
        choice: SwapChoice = yield AskSeat(seat, Swap(cards[seat], dealer_card))
        if choice == "swap":
            cards[seat], dealer_card = dealer_card, cards[seat]
        yield TellSeat(EVERYONE, Swapped(seat, choice == "swap", dealer_card))

    bids: list[Bidding | None] = [None] * SEATS
    last_bid: int | None = None
    for seat in SPEAKING[starter]:
        b0, b1, b2, b3 = bids
        bid: Bidding = yield AskSeat(
            seat, Bid(cards[seat], dealer_card, (b0, b1, b2, b3), legal_bids(last_bid))
        )
        bids[seat] = bid
        if bid != "quit":
            last_bid = bid
        yield TellSeat(EVERYONE, BidMade(seat, bid))

    shown = showdown(cards, bids)
    paid = payoffs(shown, last_bid)
    for seat in range(SEATS):
        board.scores[seat] += paid[seat]
    yield TellSeat(EVERYONE, RoundOver(shown, last_bid, paid, cast(Points, tuple(board.scores))))


def showdown(cards: Sequence[Card], bids: Sequence[Bidding | None]) -> Cards:
    """The cards of the seats that stayed; quitters' cards stay hidden (H10)."""
    shown: Any = tuple(
        None if bid == "quit" else card for card, bid in zip(cards, bids, strict=True)
    )
    return cast(Cards, shown)


def payoffs(shown: Cards, last_bid: int | None) -> Points:
    """What each seat wins or loses.

    Every stayer pays the last bid, and the highest and the lowest card take half the pot each (H7,
    H8); a lone stayer takes both halves (H9). Halves are whole, as all payments are even. The cards
    of quitters are None, and so is the last bid if all four quit.
    """
    paid = [-QUIT] * SEATS
    if last_bid is not None:
        stayers = [seat for seat in range(SEATS) if shown[seat] is not None]
        half = (QUIT * (SEATS - len(stayers)) + last_bid * len(stayers)) // 2
        for seat in stayers:
            paid[seat] = -last_bid
        stayers.sort(key=lambda seat: strength(cast(Card, shown[seat])))
        paid[stayers[0]] += half
        paid[stayers[-1]] += half
    return cast(Points, tuple(paid))


def advancing(scores: Sequence[int]) -> tuple[int, ...]:
    """The seats that advance by score: the best two, and all that tie with them (H11, H12)."""
    cut = sorted(scores, reverse=True)[1]
    return tuple(seat for seat, score in enumerate(scores) if score >= cut)


def survivors(scores: Sequence[int], offender: int | None = None) -> tuple[int, ...]:
    """The seats that advance: after an offence the other three (H13), else `advancing`."""
    if offender is None:
        return advancing(scores)
    return tuple(seat for seat in range(SEATS) if seat != offender)


def deals(settings: HighLowSettings, stream: Stream) -> Iterator[Deck]:
    """One fair shuffle of the whole pack per shuffle of the match."""
    while True:
        yield stream.shuffled(PACK)


def stacked(settings: HighLowSettings, decks: Iterable[Sequence[str]]) -> Iterator[Deck]:
    """Given decks, one per shuffle; raises `BadDeck` for an unknown or repeated card."""
    for deck in decks:
        check_cards(deck)
        yield tuple(deck)


def _refuse(settings: Any, seed: int, against: Sequence[str]) -> Analyser:
    raise NoAnalysis(_NO_VALUE)


_NO_VALUE = (
    "a bot has no value at a table of four: what it wins depends on how the other three play; "
    "`arena habits` shows what it does, and `arena mistakes` what that costs"
)
_EVALUATOR = Evaluated(f"{__package__}.evaluator:HighLowEvaluator")
_NEVER = 1_000_000_000  # a gap that no match can reach

GAME = Game(
    vocabulary=VOCABULARY,
    about="One card each: swap it or keep it, and bid.",
    summary="Everybody has one card. In turn keep it or swap it with the dealer-card, which all "
    "see. Then bid 2 to 10, no less than the bid before, or quit for 2. All who stay pay the last "
    "bid; the highest and the lowest card of theirs share the pot. The ace is highest, the two "
    "lowest.",
    rules=match,
    deals=deals,
    stacked=stacked,
    decisions=lambda settings: 40.0 * settings.max_shuffles,
    rounds=lambda most: {"max_shuffles": -(-most // ROUNDS), "gap": _NEVER},
    for_people={"max_shuffles": 2},
    choices=(Choice("max_shuffles", "Shuffles", 1, 50),),
    cross=Trial(matches=24),  # all seatings of four bots (K1)
    demo=Trial({"gap": 40, "max_shuffles": 20}),
    bench=Trial({"gap": _NEVER, "max_shuffles": 50}),
    advancing=2,
    survivors=survivors,
    luck=_EVALUATOR.luck("point"),
    analysing=Analysing(version=1, probe=_refuse, refuses=lambda settings: _NO_VALUE),
    judging=_EVALUATOR.judging(version=2),
    habits=_EVALUATOR.habits,
    view="view.js",
)
