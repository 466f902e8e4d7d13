"""Gin rummy (rulebook, section G)."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from arena.games.evaluator import Evaluated
from arena.games.rules import (
    EVERYONE,
    AskSeat,
    Choice,
    Game,
    Rules,
    Scoreboard,
    TellSeat,
    Trial,
    Unit,
    Variation,
)
from arena.games.shuffle import Stream
from protocol.cards import PACK, Card, check_cards
from protocol.gin_melds import (
    CARD_BITS,
    Layoff,
    Meld,
    arrange,
    best_defence,
    card_mask,
    lay_off,
    mask_deadwood,
    points,
)
from protocol.gin_rummy import (
    DISCARDS,
    KNOCK_LIMIT,
    MOST_TO_KNOCK,
    VOCABULARY,
    Dealt,
    Draw,
    GameOver,
    GinRummySettings,
    Melds,
    Offer,
    Offered,
    Pile,
    Reason,
    Reply,
    RoundOver,
    Turn,
    TurnAnswer,
    TurnTaken,
    legal_knocks,
)

__all__ = ["GAME", "Drawn", "competition_rounds", "match", "score"]

BONUS = 25
"""For gin, and for the defender who undercuts (G11)."""

HAND = 10
UPCARD = 2 * HAND  # its place in the deck (G3)

Deck = Sequence[Card]
"""Ten cards to seat 0, ten to seat 1, the up-card, then the stock in drawing order (G3)."""

Pair = tuple[int, int]  # by seat


class Drawn(msgspec.Struct, frozen=True):
    """A random deal: a deck, and the seat that starts if this is round 1 of a game (G4)."""

    starter: int
    deck: Deck


class SeatHand:
    """A seat's cards in the order in which they came, and what a turn needs to know of them.

    Everything is updated card by card, so that no turn computes it anew.
    """

    __slots__ = ("cards", "discards", "mask")

    def __init__(self, cards: Iterable[Card]) -> None:
        self.cards = list(cards)
        self.discards = [DISCARDS[card] for card in self.cards]
        self.mask = card_mask(self.cards)

    def take(self, card: Card) -> None:
        self.cards.append(card)
        self.discards.append(DISCARDS[card])
        self.mask |= CARD_BITS[card]

    def discard(self, card: Card) -> None:
        place = self.cards.index(card)
        del self.cards[place], self.discards[place]
        self.mask ^= CARD_BITS[card]

    def answers(self) -> tuple[TurnAnswer, ...]:
        """The legal answers of a turn, with eleven cards (G6, G7)."""
        discards = tuple(self.discards)
        if mask_deadwood(self.mask) > MOST_TO_KNOCK:
            return discards  # in most turns
        return discards + legal_knocks(self.cards, self.mask)


Hands = tuple[SeatHand, SeatHand]


class RoundEnd(msgspec.Struct, frozen=True):
    """How a round ended; the fields are those of `RoundOver`."""

    reason: Reason
    hands: Hands
    knocker: int | None = None
    melds: tuple[tuple[Meld, ...], tuple[Meld, ...]] | None = None
    layoffs: tuple[Layoff, ...] = ()
    points: Pair = (0, 0)


def match(settings: GinRummySettings, deals: Iterator[Drawn | Deck], board: Scoreboard) -> Rules:
    """Play `games` games (G15)."""
    numbered = enumerate(deals, start=1)
    for number in range(1, settings.games + 1):
        scores = yield from game(number, settings, numbered, board)
        winner = None
        if max(scores) >= settings.target:
            winner = scores.index(max(scores))
            board.scores[winner] += 1
        yield TellSeat(
            EVERYONE, GameOver(winner, (scores[0], scores[1]), (board.scores[0], board.scores[1]))
        )


def game(
    number: int,
    settings: GinRummySettings,
    deals: Iterator[tuple[int, Drawn | Deck]],
    board: Scoreboard,
) -> Generator[AskSeat | TellSeat, Any, list[int]]:
    """Play rounds until a seat has the target, at most `max_rounds` (G4, G15); returns points."""
    scores = [0, 0]
    first: int | None = settings.starter
    for turnabout in range(settings.max_rounds):
        round_number, deal = next(deals)
        by_chance, deck = (deal.starter, deal.deck) if isinstance(deal, Drawn) else (0, deal)
        if first is None:
            first = by_chance
        starter = (first + turnabout) % 2
        for seat in (0, 1):
            hand = tuple(deck[seat * HAND : seat * HAND + HAND])
            yield TellSeat(seat, Dealt(number, round_number, starter, hand, deck[UPCARD]))

        ended = yield from play_round(settings, starter, deck)
        for seat in (0, 1):
            scores[seat] += ended.points[seat]
            board.points[seat] += ended.points[seat]
        yield TellSeat(EVERYONE, round_over(ended, (scores[0], scores[1])))
        if max(scores) >= settings.target:
            break
    return scores


def play_round(
    settings: GinRummySettings, starter: int, deck: Deck
) -> Generator[AskSeat | TellSeat, Any, RoundEnd]:
    """Play one deal, from the upcard to the knock or the tie (G5–G13)."""
    hands = SeatHand(deck[:HAND]), SeatHand(deck[HAND:UPCARD])
    stock = list(deck[:UPCARD:-1])
    top = deck[UPCARD]
    seat, pile = yield from offers(starter, top, hands)

    for _ in range(settings.max_turns):
        if not stock and pile == "stock":
            break  # a stacked deck may end with the upcard, if nobody takes it
        hand = hands[seat]
        if pile is None:
            pile = yield AskSeat(seat, Draw(top, tuple(hand.cards)))
        drawn = stock.pop() if pile == "stock" else top
        hand.take(drawn)
        answer: TurnAnswer = yield AskSeat(seat, Turn(drawn, tuple(hand.cards), hand.answers()))
        top = answer.discard
        hand.discard(top)
        shown = drawn if pile == "discard" else None
        yield TellSeat(EVERYONE, TurnTaken(seat, pile, shown, top))
        if answer.knock:
            return (yield from showdown(seat, answer.melds, hands))
        if not stock:
            break  # G12
        seat, pile = 1 - seat, None
    return RoundEnd("turns" if stock else "stock", hands)


def offers(
    starter: int, upcard: Card, hands: Hands
) -> Generator[AskSeat | TellSeat, Any, tuple[int, Pile | None]]:
    """Offer the upcard (G5); returns who has the first turn, and which pile it draws from."""
    for seat in (starter, 1 - starter):
        reply: Reply = yield AskSeat(seat, Offer(upcard, tuple(hands[seat].cards)))
        yield TellSeat(EVERYONE, Offered(seat, reply == "take"))
        if reply == "take":
            return seat, "discard"
    return starter, "stock"


def showdown(
    knocker: int, declared: tuple[Meld, ...] | None, hands: Hands
) -> Generator[AskSeat | TellSeat, Any, RoundEnd]:
    """Play a knock: the defender declares before it sees the knocker's melds (G9–G11)."""
    defender = 1 - knocker
    hand, defending = tuple(hands[knocker].cards), tuple(hands[defender].cards)
    reply: tuple[Meld, ...] | None = yield AskSeat(defender, Melds(defending))
    melds = arrange(hand)[0] if declared is None else declared
    deadwood = points(unmelded(hand, melds))
    gin = deadwood == 0
    defence, layoffs, left = defend(defending, reply, () if gin else melds)

    gained, reason = score(deadwood, left)
    if knocker == 0:
        return RoundEnd(reason, hands, knocker, (melds, defence), layoffs, gained)
    return RoundEnd(reason, hands, knocker, (defence, melds), layoffs, gained[::-1])


def defend(
    hand: Collection[Card], declared: tuple[Meld, ...] | None, knocker_melds: tuple[Meld, ...]
) -> tuple[tuple[Meld, ...], tuple[Layoff, ...], int]:
    """The defender's melds, layoffs and remaining deadwood (G9, G10).

    After gin there are no `knocker_melds`, as nothing is laid off.
    """
    if declared is None:
        return best_defence(hand, knocker_melds)
    layoffs, left = lay_off(unmelded(hand, declared), knocker_melds)
    return declared, layoffs, points(left)


def unmelded(hand: Collection[Card], melds: Iterable[Meld]) -> list[Card]:
    """The cards of the hand that are in none of the melds."""
    melded = {card for meld in melds for card in meld}
    return [card for card in hand if card not in melded]


def score(deadwood: int, defender_deadwood: int) -> tuple[Pair, Reason]:
    """What the knocker and the defender score, and the word for the reason (G11)."""
    difference = defender_deadwood - deadwood
    if deadwood == 0:
        return (BONUS + difference, 0), "gin"
    if difference > 0:
        return (difference, 0), "knock"
    if difference == 0:
        return (0, 0), "tie"
    return (0, BONUS - difference), "undercut"


def round_over(ended: RoundEnd, scores: Pair) -> RoundOver:
    """The news of a finished round (G14); without a knock, the melds are the referee's choice."""
    hands = tuple(ended.hands[0].cards), tuple(ended.hands[1].cards)
    return RoundOver(
        ended.knocker,
        ended.reason == "gin",
        hands,
        ended.melds or (arrange(hands[0])[0], arrange(hands[1])[0]),
        ended.layoffs,
        ended.points,
        scores,
        ended.reason,
    )


def deals(settings: GinRummySettings, stream: Stream) -> Iterator[Drawn]:
    """Per deal, one bit for the starter, then a shuffle of the pack."""
    while True:
        yield Drawn(stream.below(2), stream.shuffled(PACK))


def stacked(settings: GinRummySettings, decks: Iterable[Sequence[str]]) -> Iterator[Deck]:
    """Given decks, of at least 21 cards each; raises `BadDeck` for others."""
    for deck in decks:
        check_cards(deck, PACK, at_least=UPCARD + 1)
        yield tuple(deck)


def competition_rounds(target: int) -> int:
    """The rounds after which a game of a competition is drawn, unless its settings say (G15).

    Two bots that knock take 3 to 5 rounds to 50 points, and at most 18 in 4,000 games. Two that
    never knock would play 100 rounds, of some 60 decisions each.
    """
    return min(100, max(25, target // 2))


_ONE_ROUND: Mapping[str, object] = {"target": 1, "max_rounds": 1}


def knocks(legal: Sequence[Any]) -> list[Any]:
    """The legal answers that knock."""
    return [answer for answer in legal if isinstance(answer, TurnAnswer) and answer.knock]


def may_knock(deal: Any, seat: int) -> bool:
    """Whether a deal gives this seat a hand that may knock at once, as one deal in 1,250 does."""
    hand = deal.deck[seat * HAND :][:HAND]
    return mask_deadwood(card_mask(hand)) <= KNOCK_LIMIT


_EVALUATOR = Evaluated(f"{__package__}.evaluator:GinRummyEvaluator")


GAME = Game(
    vocabulary=VOCABULARY,
    about="Melds out of ten cards, and when to knock.",
    summary="Draw a card, discard one. Three or four of a rank, or three and more of a suit in a "
    "row, are a meld; the rest is deadwood: ace 1, court cards 10. With at most 10 deadwood you "
    "may knock: the lower deadwood scores the difference, and 25 more for gin (no deadwood) or "
    "against a knock that was higher.",
    rules=match,
    deals=deals,
    stacked=stacked,
    decisions=lambda settings: 120.0 * settings.games,
    rounds=lambda most: {"max_rounds": min(most, 100)},
    short=_ONE_ROUND,
    in_competitions=lambda settings: {"max_rounds": competition_rounds(settings.target)},  # G15
    for_people={"games": 1, "target": 50},
    choices=(
        Choice("target", "Points that win a game", 1, 1000),
        Choice("games", "Games", 1, 10),
        Choice("max_rounds", "Rounds", 1, 100, is_offered=False),
        Choice("max_turns", "Turns", 1, 200, is_offered=False),
    ),
    variations=(
        Variation(lambda seat: _ONE_ROUND, chooses=None),
        Variation(lambda seat: {**_ONE_ROUND, "starter": seat}, knocks, may_knock),
        Variation(
            lambda seat: {**_ONE_ROUND, "starter": 1 - seat},
            knocks,
            lambda deal, seat: may_knock(deal, 1 - seat),
        ),
    ),
    cross=Trial({"games": 1000}),  # G16
    demo=Trial(matches=20),
    bench=Trial({"games": 20}),
    unit=Unit(
        *("game", "games", GameOver),
        lambda news: (int(news.winner == 0), int(news.winner == 1)),
        margins=lambda news: (news.scores[0] - news.scores[1], news.scores[1] - news.scores[0]),
    ),
    is_count=True,
    points="points of gin, in all",
    splits_by="games",
    luck=_EVALUATOR.luck("game"),
    judging=_EVALUATOR.judging(version=2, most=5, is_slow=True, refuses=_EVALUATOR.refuses),
    habits=_EVALUATOR.habits,
    view="view.js",
)
