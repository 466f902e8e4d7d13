"""What gin rummy says on the wire (rules G).

`protocol/gin_melds.py` computes melds, `protocol/gin_declarations.py` judges declared ones. A
turn's answer is one `TurnAnswer`: the discard, whether to knock with it, and the melds declared
with the knock. `legal` lists the answers that leave the melds to the referee; in place of `null`
any declaration that G9 accepts may be given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from protocol import gin_words
from protocol.cards import PACK, Card
from protocol.errors import IllegalAnswer
from protocol.gin_declarations import declared_melds, fault_in
from protocol.gin_melds import (
    CARD_BITS,
    Layoff,
    Meld,
    arrange,
    card_mask,
    deadwood_value,
    mask_deadwood,
    points,
)
from protocol.vocabulary import News, Question, Settings, Shape, Vocabulary
from protocol.words import Asked, Told

__all__ = [
    "DISCARDS",
    "KNOCK_LIMIT",
    "MOST_TO_KNOCK",
    "VOCABULARY",
    "Dealt",
    "Draw",
    "GameOver",
    "GinRummySettings",
    "Layoff",
    "Meld",
    "Melds",
    "Offer",
    "Offered",
    "Pile",
    "Reason",
    "Reply",
    "RoundOver",
    "Turn",
    "TurnAnswer",
    "TurnTaken",
    "arrange",
    "legal_knocks",
    "turn_answers",
]

Reply = Literal["take", "pass"]
Pile = Literal["stock", "discard"]
Reason = Literal["gin", "knock", "undercut", "tie", "stock", "turns"]
"""Why a round ended: gin; a knock that won, that was undercut or that met equal deadwood (G11);
the stock was empty (G12); the turns were used up (G13).
"""

KNOCK_LIMIT = 10
"""The most deadwood to knock with (G7)."""

MOST_TO_KNOCK = 20
"""The most deadwood of eleven cards after which a knock can be legal: no card counts over 10."""

REPLIES: tuple[Reply, ...] = ("take", "pass")
PILES: tuple[Pile, ...] = ("stock", "discard")


class GinRummySettings(Settings, frozen=True):
    """The settings of gin rummy.

    Attributes:
        starter: the seat that starts round 1 of every game; `null` leaves it to the deal (G4).
        max_turns: the turns after which a round is a tie (G13).
        target: the points that end a game (G15).
        max_rounds: a game still undecided after this many rounds is drawn; competitions use 25
            for a `target` of 50 (G15).
        games: how many games a match has (G15).
    """

    starter: Literal[0, 1] | None = None
    max_turns: Annotated[int, Meta(ge=1, le=100_000)] = 200
    target: Annotated[int, Meta(ge=1, le=1_000_000)] = 50
    max_rounds: Annotated[int, Meta(ge=1, le=100_000)] = 100
    games: Annotated[int, Meta(ge=1, le=1_000_000)] = 1


class TurnAnswer(msgspec.Struct, frozen=True, gc=False):
    """The end of a turn (G6, G7, G9).

    Attributes:
        discard: the card to discard.
        knock: whether to knock with it.
        melds: the knocker's melds; `null` leaves them to the referee, and is required without a
            knock.
    """

    discard: Card
    knock: bool = False
    melds: tuple[Meld, ...] | None = None


class Offer(Question[Reply], frozen=True, gc=False, tag="offer"):
    """Whether to take the up-card of a new round (G5).

    Attributes:
        upcard: the card on offer.
        hand: your ten cards.
    """

    answered_by: ClassVar[str] = "will_take_top_discard"
    upcard: Card
    hand: tuple[Card, ...]
    legal: tuple[Reply, ...] = REPLIES


class Draw(Question[Pile], frozen=True, gc=False, tag="draw"):
    """Which pile to draw from (G6).

    Attributes:
        discard: the top of the discard pile.
        hand: your ten cards.
    """

    answered_by: ClassVar[str] = "will_take_top_discard"
    discard: Card
    hand: tuple[Card, ...]
    legal: tuple[Pile, ...] = PILES


class Turn(Question[TurnAnswer], frozen=True, gc=False, tag="turn"):
    """What to discard of eleven cards, and whether to knock (G6, G7).

    Attributes:
        drawn: the card that you have just taken or drawn.
        hand: your eleven cards, the drawn one last.
        legal: every discard, and once more with `"knock": true` those after which you may knock. In
            the place of `"melds": null` a knock may declare melds of its own that leave at most 10
            deadwood (G9).
    """

    answered_by: ClassVar[str] = "take_turn"
    drawn: Card
    hand: tuple[Card, ...]
    legal: tuple[TurnAnswer, ...]

    def check(self, value: object) -> TurnAnswer:
        """Return the answer that `value` is: a `TurnAnswer`, or a map with its fields.

        Raises:
            IllegalAnswer: not a card of the hand, not enough melded for a knock, melds that G9 does
                not accept, a field of another type or name.
        """
        for choice in self.legal:
            if choice is value:  # the very object from `legal`
                return choice
        answer = _read_turn_answer(value)
        if answer is None or answer.discard not in self.hand:
            raise self.refusal(value)
        if answer.melds is None:
            if answer not in self.legal:
                raise self.refusal(value)
            return answer
        kept = [card for card in self.hand if card != answer.discard]
        melds = declared_melds(answer.melds, kept)
        if not answer.knock or melds is None:
            raise self.refusal(value)
        if points(kept) - sum(map(points, melds)) > KNOCK_LIMIT:
            raise self.refusal(value)
        return TurnAnswer(answer.discard, True, melds)

    def fault(self, value: object) -> str | None:
        """Say why the melds of an answer are not accepted (G2, G7, G9); None if they are."""
        answer = _read_turn_answer(value)
        if answer is None or answer.melds is None or answer.discard not in self.hand:
            return None
        if not answer.knock:
            return "melds are declared with a knock only (G9)"
        kept = [card for card in self.hand if card != answer.discard]
        fault = fault_in(answer.melds, kept)
        if fault is not None:
            return fault
        left = points(kept) - sum(map(points, answer.melds))
        if left <= KNOCK_LIMIT:
            return None
        return f"these melds leave {left} deadwood, and a knock at most {KNOCK_LIMIT} (G7)"

    def refusal(self, value: object) -> IllegalAnswer:
        """The error: what was answered, what would have been legal, what is wrong with melds."""
        return _explained(super().refusal(value), self.fault(value))

    def advice(self, value: object) -> str:
        """Say in one line how to correct an illegal answer or invalid melds."""
        if isinstance(value, Mapping):
            discard = value.get("discard", value)
        else:
            discard = getattr(value, "discard", value)
        if discard is None:
            return super().advice(None)
        wrong = self.fault(value) is not None and not self.mistypes(value)
        return _MELDS_ADVICE if wrong else super().advice(value)

    def legal_text(self) -> str:
        """List the legal discards, and when a knock would have been legal."""
        knocks = [answer.discard for answer in self.legal if answer.knock]
        discards = f"discard one of {' '.join(self.hand)}; "
        if not knocks:
            return f"{discards}no knock"
        knock = f"knock discarding {' '.join(knocks)}"
        return f"{discards}{knock}, with melds that leave at most {KNOCK_LIMIT}"


class Melds(Question["tuple[Meld, ...] | None"], frozen=True, gc=False, tag="melds"):
    """The other seat has knocked: what you meld (G9).

    Attributes:
        hand: your ten cards.
        legal: `null` alone, which leaves it to the referee. In its place a list of melds of your
            own may be answered, each a list of cards of the hand.
    """

    answered_by: ClassVar[str] = "get_melds"
    hand: tuple[Card, ...]
    legal: tuple[None, ...] = (None,)

    def check(self, value: object) -> tuple[Meld, ...] | None:
        """Return the melds as a tuple of tuples, in the order declared, or None.

        Raises:
            IllegalAnswer: something that is no meld, or a card that is not in the hand or used
                twice.
        """
        if value is None:
            return None
        melds = declared_melds(value, self.hand)
        if melds is None:
            raise self.refusal(value)
        return melds

    def fault(self, value: object) -> str | None:
        """Say why these melds are not accepted (G2, G9); None if they are."""
        return None if value is None else fault_in(value, self.hand)

    def refusal(self, value: object) -> IllegalAnswer:
        """The error: what was answered, what would have been legal, what is wrong with melds."""
        return _explained(super().refusal(value), self.fault(value))

    def advice(self, value: object) -> str:
        """Say in one line how to correct invalid melds."""
        return super().advice(value) if self.mistypes(value) else _MELDS_ADVICE

    def legal_text(self) -> str:
        """Say what may be declared."""
        return f"null, or sets and runs of {' '.join(self.hand)}, no card twice"


class Dealt(News, frozen=True, gc=False, tag="dealt"):
    """A new round: what each seat learns of the deal (G3–G5).

    Attributes:
        game: which game of the match it is, from 1.
        round: which deal of the match it is, from 1.
        starter: the seat that starts.
        hand: your ten cards.
        upcard: the up-card.
    """

    game: int
    round: int
    starter: int
    hand: tuple[Card, ...]
    upcard: Card


class Offered(News, frozen=True, gc=False, tag="offered"):
    """What a seat did when it was offered the up-card, told to both (G5).

    Attributes:
        seat: the seat.
        took: whether it took the up-card.
    """

    seat: int
    took: bool


class TurnTaken(News, frozen=True, gc=False, tag="turn"):
    """What can be seen of a turn, told to both (G8).

    Attributes:
        seat: whose turn it was.
        drew: the pile that it drew from.
        card: the card drawn; `null` if it came from the stock.
        discarded: the card that was discarded.
    """

    seat: int
    drew: Pile
    card: Card | None
    discarded: Card


class RoundOver(News, frozen=True, gc=False, tag="round_over"):
    """How a round ended, told to both (G14).

    Attributes:
        knocker: its seat, or `null` if nobody knocked.
        gin: whether the knock was with no deadwood.
        hands: by seat, the ten cards each held, in the order of `hand`.
        melds: by seat, as declared or as the referee arranged them; without a knock as it would
            have.
        layoffs: in order, the defender's cards, each with the index of the knocker's meld that it
            went on: `["Qs", 0]`.
        points: of this round, by seat.
        scores: the points of the game so far, by seat.
        reason: why the round ended: gin; a knock that won, that was undercut or that met equal
            deadwood (G11); the stock was empty (G12); the turns were used up (G13).
    """

    knocker: int | None
    gin: bool
    hands: tuple[tuple[Card, ...], tuple[Card, ...]]
    melds: tuple[tuple[Meld, ...], tuple[Meld, ...]]
    layoffs: tuple[Layoff, ...]
    points: tuple[int, int]
    scores: tuple[int, int]
    reason: Reason


class GameOver(News, frozen=True, gc=False, tag="game_over"):
    """How a game ended, told to both (G15).

    Attributes:
        winner: its seat, or `null` if the game was drawn.
        scores: the points of the game, by seat.
        games: the games won so far, by seat.
    """

    winner: int | None
    scores: tuple[int, int]
    games: tuple[int, int]


DISCARDS = {card: TurnAnswer(card) for card in PACK}
"""The answer that discards a card, by card."""

_KNOCKS = {card: TurnAnswer(card, True) for card in PACK}


def turn_answers(hand: Sequence[Card]) -> tuple[TurnAnswer, ...]:
    """Return the legal answers with eleven cards: every discard, and every knock by G7."""
    return (*[DISCARDS[card] for card in hand], *legal_knocks(hand, card_mask(hand)))


def legal_knocks(hand: Sequence[Card], mask: int) -> tuple[TurnAnswer, ...]:
    """Return the knocks that G7 allows with these eleven cards; `mask` is their `card_mask`."""
    least = mask_deadwood(mask) - KNOCK_LIMIT
    return tuple(
        _KNOCKS[card]
        for card in hand
        # A discard lowers the deadwood by at most its points.
        if deadwood_value(card) >= least and mask_deadwood(mask ^ CARD_BITS[card]) <= KNOCK_LIMIT
    )


def _read_turn_answer(value: Any) -> TurnAnswer | None:
    """Convert `value` to a `TurnAnswer`, or return None; its melds are not checked yet."""
    if type(value) is dict:
        try:
            value = TurnAnswer(**value)
        except TypeError:  # no discard, or an unknown field
            return None
    if type(value) is not TurnAnswer:
        return None
    if type(value.discard) is not str or type(value.knock) is not bool:
        return None
    return value


_MELDS_ADVICE = (
    "declare sets of 3 or 4 of one rank and runs of 3 or more of one suit, or leave melds null"
)


def _explained(error: IllegalAnswer, fault: str | None) -> IllegalAnswer:
    return error if fault is None else IllegalAnswer(f"{error}; {fault}")


def _may_knock(legal: tuple[TurnAnswer, ...]) -> bool:
    return any(answer.knock for answer in legal)


VOCABULARY = Vocabulary(
    name="gin_rummy",
    title="Gin rummy",
    alias="gin",
    seats=2,
    settings=GinRummySettings,
    opens=(Dealt,),
    closes=RoundOver,
    follows=(GameOver,),
    private=(Dealt,),
    payoffs=lambda news: news.points,
    words={
        Offer: Asked(
            gin_words.offered, lambda _, answer: "takes it" if answer == "take" else "passes"
        ),
        Draw: Asked(
            gin_words.to_draw,
            lambda _, answer: "draws from the stock" if answer == "stock" else "takes it",
        ),
        Turn: Asked(
            lambda who, asked: f"{who} has drawn {asked.drawn} to {' '.join(asked.hand[:-1])}",
            gin_words.turn_answer,
            gin_words.legal_turn,
        ),
        Melds: Asked("{who} has {hand} and may meld", lambda _, melds: gin_words.melding(melds)),
        Dealt: Told(
            "{who} is dealt {hand}",
            opening=" of game {game}: the up-card is {upcard}, {starter_name} starts",
        ),
        Offered: Told(
            lambda news, _, who: [f"{who} {'takes' if news.took else 'passes'} the up-card"],
            repeats=True,
        ),
        TurnTaken: Told(gin_words.turn_taken, repeats=True),
        RoundOver: Told(gin_words.round_over),
        GameOver: Told(gin_words.game_over),
    },
    shapes=(
        Shape("a turn without a knock", "turn", lambda legal: not _may_knock(legal)),
        Shape("a turn with a knock", "turn", _may_knock),
        Shape("melds, which lists null alone", "melds"),
    ),
)
