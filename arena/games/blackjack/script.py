"""The transcript of blackjack (B13): a match in this process, written line by line.

`drive` plays a match through a `MatchState`; the bot is not told the cuts. `arena replay` uses the
wording of `BlackjackScript`, too.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from typing import Any

from arena.games.match import MatchState
from arena.games.rules import NOBODY
from arena.games.shuffle import Stream, match_key, seed_from_int
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
from protocol.strategy import Strategy, as_sent
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
    """Play a match of riffled blackjack and yield its transcript, line by line as it is played.

    The match begins with `bankroll` chips and has at most `hands` hands. The strategy is reset
    first. `cuts` are the cut points, seven per shuffle. If None, they are drawn from `seed`, as in
    `arena.play`; if that is None, too, a random seed is used.

    Raises:
        ValueError: bad settings, a bad cut, too few cuts, or both `cuts` and `seed` (BadSettings,
            BadDeck, OutOfDecks, UsageError); after the first shuffle they are raised at their line.
        IllegalAnswer: the strategy gave an illegal answer; raised at its line.
    """
    from arena.games.catalogue import game_named  # it loads the rules, which load the class below

    game, settings = (
        game_named("blackjack"),
        VOCABULARY.read_settings({"bankroll": bankroll, "hands": hands}),
    )
    assert isinstance(settings, BlackjackSettings), "the vocabulary's own"
    if cuts is None:
        seed_bytes = secrets.token_bytes(32) if seed is None else seed_from_int(seed)
        cuts = game.deals(settings, Stream(match_key(seed_bytes)))
    elif seed is not None:
        raise UsageError("expected cuts or a seed, got both")
    match = MatchState(game, settings, decks=cuts, tells_deals=True)
    strategy.reset()
    return _lines(match, BlackjackScript(settings), strategy)


def _lines(match: MatchState, script: BlackjackScript, strategy: Strategy) -> Iterator[str]:
    while True:
        for tell in match.take_news():
            if tell.seat == NOBODY:
                yield from script.dealt(tell.news)
                continue
            strategy.hear(tell.news)
            yield from script.told(tell.news)
        if match.pending is None:
            break

        question = match.pending.question
        yield from script.asked(question)
        answer = as_sent(strategy.decide(question))
        match.answer(answer)
        yield from script.answered(question, answer)
    yield from script.ended()


class BlackjackScript:
    """The words of B13 for the events of a match; call its methods in the order of the events."""

    def __init__(self, settings: BlackjackSettings) -> None:
        self._bankroll = settings.bankroll
        self._cuts: list[int] = []  # of the latest shuffle, not yet written
        self._hands = self._dealers_cards = 0
        self._has_begun = self._is_shuffled = False

    def dealt(self, deal: object) -> Iterable[str]:
        if type(deal) is int:  # a whole deck has no line
            self._cuts.append(deal)
        return ()

    def told(self, news: News) -> Iterator[str]:
        if type(news) is Shuffled:
            if self._has_begun:
                self._is_shuffled = True  # its lines follow the line of the hand (B6)
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
        if type(question) is Bet:
            self._dealers_cards = 0
            yield f"Hand {question.round} bankroll {question.bankroll}"
            if self._is_shuffled:
                self._is_shuffled = False
                yield from self._shuffle()

    def answered(self, question: Question[Any], answer: object) -> Iterator[str]:
        if type(question) is Bet:
            yield f"Player bets {answer}"
        elif type(question) is Draw and answer == "stand":
            yield f"Player's total is {question.total}"

    def ended(self) -> Iterable[str]:
        return (f"Player has {self._bankroll} after {self._hands} hands",)

    def _shuffle(self) -> Iterator[str]:
        yield "Shuffling the deck"
        yield from (f"cut at {cut}" for cut in self._cuts)
        self._cuts.clear()


def _dealt(news: Exposed, dealers_cards: int) -> str:
    """The line for a card; the dealer's second card lies face down (B7)."""
    if news.to == "player":
        return f"Player dealt {name(news.card)}"
    if dealers_cards == 2:
        return f"Dealer's hole card is {name(news.card)}"
    return f"Dealer dealt {name(news.card)}"


def _ended(news: HandOver) -> Iterator[str]:
    """The lines after a hand's last card; a player's total after standing was written before."""
    if news.outcome == "bust":
        yield f"Player's total is {hand_value(news.player)[0]}"
    elif news.outcome != "natural":
        yield f"Dealer's total is {hand_value(news.dealer)[0]}"
    yield _LAST_LINE[news.outcome]
