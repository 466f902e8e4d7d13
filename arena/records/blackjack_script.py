"""The transcript of blackjack (B13): a match in process, written down line by line.

A driver round `arena.engine.match.MatchState` like any other: it looks at what is asked and told, and at nothing else. The one thing it
knows beyond that is where the deck was cut: it sees the cuts that it hands in, and the player does not learn them. Its words,
`BlackjackScript`, are those of `arena replay`, too.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from typing import Any

from arena.engine.match import MatchState
from arena.engine.shuffle import Stream, match_key, seed_from_int
from arena.games.blackjack import GAME
from protocol.blackjack import (
    VOCABULARY,
    Bet,
    BlackjackSettings,
    Draw,
    Exposed,
    HandOver,
    Outcome,
    Shuffled,
    hand_value,
)
from protocol.cards import name
from protocol.errors import UsageError
from protocol.strategy import Strategy
from protocol.vocabulary import News, Question

__all__ = ["BlackjackScript", "drive"]

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
    match = MatchState(GAME, settings, decks=_noting(cuts, made))
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
    match: MatchState, bankroll: int, strategy: Strategy, made: list[int]
) -> Iterator[str]:
    """The lines of a match; `made` holds the cuts that are not written down yet."""
    transcript = BlackjackScript(bankroll, made)
    while True:
        for tell in match.take_news():
            strategy.hear(tell.news)
            yield from transcript.told(tell.news)
        if match.pending is None:
            break

        question = match.pending.question
        yield from transcript.asked(question)
        answer = strategy.decide(question)
        match.answer(answer)
        yield from transcript.answered(question, answer)
    yield transcript.end


class BlackjackScript:
    """The words of B13 for what happens in a match, in the order in which it happens.

    Args:
        bankroll: the chips at the start.
        made: holds the cuts of a shuffle when it is told, and is emptied then; none for who is not to see them, or if
            there are none.
    """

    def __init__(self, bankroll: int, made: list[int]) -> None:
        self._bankroll = bankroll
        self._made = made
        self._hands = self._dealers_cards = 0
        self._has_begun = self._is_shuffled = False

    def told(self, news: News) -> Iterator[str]:
        """The lines for something that the player learns."""
        if type(news) is Shuffled:
            if self._has_begun:
                self._is_shuffled = True  # it comes after the hand's line (B6)
            else:
                self._has_begun = True
                yield from self._shuffle()
        elif type(news) is Exposed:
            self._dealers_cards += news.to == "dealer"
            yield _dealt(news, self._dealers_cards)
        elif type(news) is HandOver:
            self._hands, self._bankroll = self._hands + 1, news.bankroll
            yield from _ended(news)

    def asked(self, question: Question[Any]) -> Iterator[str]:
        """The lines before the player's answer."""
        if type(question) is Bet:
            self._dealers_cards = 0
            yield f"Hand {question.round} bankroll {question.bankroll}"
            if self._is_shuffled:
                self._is_shuffled = False
                yield from self._shuffle()

    def answered(self, question: Question[Any], answer: object) -> Iterator[str]:
        """The lines for what the player does."""
        if type(question) is Bet:
            yield f"Player bets {answer}"
        elif type(question) is Draw and answer == "stand":
            yield f"Player's total is {question.total}"

    @property
    def end(self) -> str:
        """The last line."""
        return f"Player has {self._bankroll} after {self._hands} hands"

    def _shuffle(self) -> Iterator[str]:
        yield "Shuffling the deck"
        yield from [f"cut at {cut}" for cut in self._made]
        self._made.clear()


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
