"""The transcript of blackjack (B13): a match in process, written down line by line.

A driver round `arena.match.Match` like any other: it looks at what is asked and told, and at nothing else. The one thing it
knows beyond that is where the deck was cut: it sees the cuts that it hands in, and the player does not learn them.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator

from arena.chance import Stream, match_key, seed_from_int
from arena.games.blackjack import GAME
from arena.match import Match
from protocol.blackjack import (
    VOCABULARY,
    Bet,
    BlackjackSettings,
    Draw,
    Exposed,
    HandOver,
    Outcome,
    hand_value,
)
from protocol.cards import name
from protocol.errors import UsageError
from protocol.strategy import Strategy

__all__ = ["drive"]

_LAST_LINE: dict[Outcome, str] = {
    "natural": "Player dealt natural 21",
    "bust": "Player busts",
    "dealer_busts": "Dealer busts",
    "win": "Player wins",
    "lose": "Dealer wins",
    "push": "Push",
}


def drive(
    bankroll: int,
    hands: int,
    strategy: Strategy,
    *,
    cuts: Iterable[int] | None = None,
    seed: int | None = None,
) -> Iterator[str]:
    """Play a match of riffled blackjack and give its transcript, line by line as it is played.

    Args:
        bankroll: the chips to start with.
        hands: the most hands to play.
        strategy: the player; it is reset first.
        cuts: where to cut, seven for every shuffle.
        seed: what the cuts are drawn from otherwise, as in `arena.play`; None draws a seed.

    Raises:
        ValueError: bad settings, a bad cut, too few cuts, or both `cuts` and `seed` (BadSettings, BadDeck, OutOfDecks,
            UsageError); what goes wrong after the first shuffle is raised at its line.
        IllegalAnswer: the strategy gave one, at its line.
    """
    settings = VOCABULARY.read_settings({"bankroll": bankroll, "hands": hands})
    assert isinstance(settings, BlackjackSettings), "the vocabulary's own"
    if cuts is None:
        cuts = _drawn(settings, seed)
    elif seed is not None:
        raise UsageError("expected cuts or a seed, got both")
    made: list[int] = []
    match = Match(GAME, settings, decks=_noting(cuts, made))
    strategy.reset()
    return _transcript(match, settings.bankroll, strategy, made)


def _drawn(settings: BlackjackSettings, seed: int | None) -> Iterator[int]:
    seed_bytes = secrets.token_bytes(32) if seed is None else seed_from_int(seed)
    return GAME.deals(settings, Stream(match_key(seed_bytes)))


def _noting(cuts: Iterable[int], made: list[int]) -> Iterator[int]:
    for cut in cuts:
        made.append(cut)
        yield cut


def _transcript(
    match: Match, bankroll: int, strategy: Strategy, made: list[int]
) -> Iterator[str]:
    """The lines of a match; `made` holds the cuts that are not written down yet."""
    hands = dealers_cards = 0
    yield from _shuffle(made)
    while True:
        for tell in match.take_news():
            news = tell.news
            strategy.hear(news)
            if type(news) is Exposed:
                dealers_cards += news.to == "dealer"
                yield _dealt(news, dealers_cards)
            elif type(news) is HandOver:
                hands, bankroll = hands + 1, news.bankroll
                yield from _ended(news)
        if match.pending is None:
            break

        question = match.pending.question
        if type(question) is Bet:
            dealers_cards = 0
            yield f"Hand {question.round} bankroll {question.bankroll}"
            yield from _shuffle(made)  # a reshuffle comes after the hand's line (B6)
        answer = strategy.decide(question)
        match.answer(answer)
        if type(question) is Bet:
            yield f"Player bets {answer}"
        elif type(question) is Draw and answer == "stand":
            yield f"Player's total is {question.total}"
    yield f"Player has {bankroll} after {hands} hands"


def _shuffle(made: list[int]) -> Iterator[str]:
    """The lines of a shuffle if there was one."""
    if made:
        yield "Shuffling the deck"
        yield from [f"cut at {cut}" for cut in made]
        made.clear()


def _dealt(news: Exposed, dealers_cards: int) -> str:
    """The line of a card; the dealer's second is the one that lay face down (B7)."""
    if news.to == "player":
        return f"Player dealt {name(news.card)}"
    if dealers_cards == 2:
        return f"Dealer's hole card is {name(news.card)}"
    return f"Dealer dealt {name(news.card)}"


def _ended(news: HandOver) -> Iterator[str]:
    """The lines after a hand's last card; that of a player who stood has its total already."""
    if news.outcome == "bust":
        yield f"Player's total is {hand_value(news.player)[0]}"
    elif news.outcome != "natural":
        yield f"Dealer's total is {hand_value(news.dealer)[0]}"
    yield _LAST_LINE[news.outcome]
