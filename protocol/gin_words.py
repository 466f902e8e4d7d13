"""The turns and rounds of gin rummy in words; `protocol/gin_rummy.py` has the rest of its words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from protocol.gin_melds import arrange, deadwood
from protocol.words import each

if TYPE_CHECKING:
    from protocol.gin_rummy import (
        Draw,
        GameOver,
        Offer,
        Reason,
        RoundOver,
        Turn,
        TurnAnswer,
        TurnTaken,
    )

__all__ = [
    "game_over",
    "in_groups",
    "legal_turn",
    "melding",
    "offered",
    "round_over",
    "to_draw",
    "turn_answer",
    "turn_taken",
]

_ENDS: Mapping[Reason, str] = {
    "gin": "gin",
    "knock": "a knock",
    "undercut": "a knock that was undercut",
    "tie": "a knock that met equal deadwood",
    "stock": "an empty stock: a tie",
    "turns": "too many turns: a tie",
}


_MOST_HELD = 11  # with the card that was drawn (G6)


def offered(who: str, question: Offer) -> str:
    """Describe what a seat holds when it is offered the up-card."""
    return f"{who} has {_holding(question.hand)} and is offered {question.upcard}"


def to_draw(who: str, question: Draw) -> str:
    """Describe what a seat holds when it must draw."""
    return f"{who} has {_holding(question.hand)}; on the pile lies {question.discard}"


def _holding(hand: Sequence[str]) -> str:
    """Show cards in their best melds, and the deadwood left."""
    if len(hand) > _MOST_HELD:  # a made-up hand; finding its melds may take forever
        return " ".join(hand)
    melds, left = arrange(hand)
    melded = {card for meld in melds for card in meld}
    rest = " ".join(card for card in hand if card not in melded)
    return f"{', '.join(filter(None, (*map(' '.join, melds), rest)))} with {left} deadwood"


def turn_answer(question: Turn, answer: TurnAnswer) -> str:
    """Describe what a seat does in its turn, and the deadwood left."""
    if len(question.hand) > _MOST_HELD:
        return f"discards {answer.discard}"
    left = deadwood([card for card in question.hand if card != answer.discard])
    if not answer.knock:
        return f"discards {answer.discard}, which leaves {left} deadwood"
    return f"knocks with {left} deadwood, discards {answer.discard}, {melding(answer.melds)}"


def legal_turn(question: Turn) -> str:
    """Describe in brief what a seat may do in its turn."""
    knocks = " ".join(answer.discard for answer in question.legal if answer.knock)
    return f"any discard, a knock with {knocks}" if knocks else "any discard, no knock"


def melding(melds: Sequence[Sequence[str]] | None) -> str:
    """Describe which melds a seat declares."""
    if melds is None:
        return "leaves the melds to the referee"
    return f"melds {in_groups(melds)}"


def in_groups(melds: Iterable[Sequence[str]]) -> str:
    """Show melds side by side."""
    return ", ".join(map(" ".join, melds)) or "nothing"


def turn_taken(news: TurnTaken, names: Sequence[str], who: str) -> Iterator[str]:
    """Describe what could be seen of a seat's turn."""
    drew = "draws from the stock" if news.card is None else f"takes {news.card}"
    yield f"{who} {drew} and discards {news.discarded}"


def round_over(news: RoundOver, names: Sequence[str], who: str) -> Iterator[str]:
    """Describe how a round ended, the hands, and the points."""
    by = "" if news.knocker is None else f" of {names[news.knocker]}"
    yield f"the round ends with {_ENDS[news.reason].replace('a knock', f'a knock{by}', 1)}"
    for name, hand, melds in zip(names, news.hands, news.melds, strict=True):
        melded = {card for meld in melds for card in meld}
        rest = [card for card in hand if card not in melded]
        yield f"{name} has {in_groups(melds)} and {' '.join(rest) or 'nothing'} unmelded"
    if news.layoffs and news.knocker is not None:
        defender = names[1 - news.knocker]
        yield f"{defender} lays off {' '.join(card for card, _ in news.layoffs)}"
    yield f"points: {each(names, news.points)}; in the game: {each(names, news.scores)}"


def game_over(news: GameOver, names: Sequence[str], who: str) -> Iterator[str]:
    """Describe who won a game, and the games won so far."""
    won = "nobody" if news.winner is None else names[news.winner]
    yield f"{won} wins the game, {each(names, news.scores)}; games: {each(names, news.games)}"
