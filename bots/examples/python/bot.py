"""A bot for all of our games: it plays Ace-King-Queen well, and the others at random.

    python3 bot.py

After every hand of Ace-King-Queen the bot is told both cards. It counts how often the other seat
bets and calls with each card, and gives the answer that wins the most chips on average against
that.
"""

from __future__ import annotations

import random

from session import Message, Player, play

__all__ = ["Learner", "make_player"]

RANK = {"Q": 0, "K": 1, "A": 2}
OTHERS = {"Q": "KA", "K": "QA", "A": "QK"}  # what the other seat may have against each card

# How often an opponent bets and calls with each card, before we know it: this is the equilibrium,
# which nobody can beat. It counts as much as PRIOR_HANDS real hands.
BETS = {"Q": 1 / 3, "K": 0.0, "A": 1.0}
CALLS = {"Q": 0.0, "K": 1 / 3, "A": 1.0}
PRIOR_HANDS = 6

# The most chips that are added to the value of an answer at random: if two answers are worth about
# the same, as against the equilibrium, we mix them.
BLUR = 0.1


class Habit:
    """How often a player does something when it can."""

    def __init__(self, share: float) -> None:
        self.share = share  # of the times when it can, from 0 to 1
        self.seen, self.done = float(PRIOR_HANDS), PRIOR_HANDS * share

    def note(self, done: bool) -> None:
        """Count one more time, done or not."""
        self.seen += 1
        self.done += done
        self.share = self.done / self.seen


class Learner(Player):
    """Plays Ace-King-Queen against one opponent."""

    def __init__(self, seat: int) -> None:
        self.seat = seat
        self.bets = {card: Habit(share) for card, share in BETS.items()}
        self.calls = {card: Habit(share) for card, share in CALLS.items()}

    def hear(self, news: Message) -> None:
        """Count what the other seat did with its card, which is open after the hand."""
        card = news["cards"][1 - self.seat]
        if news["bettor"] != self.seat:
            self.bets[card].note(news["open"] == "bet")
        elif news["open"] == "bet":
            self.calls[card].note(news["response"] == "call")

    def decide(self, question: Message) -> object:
        """Give the answer that is worth more against this opponent."""
        worth = self.open if question["kind"] == "open" else self.respond
        card = question["card"]
        return max(
            question["legal"], key=lambda answer: worth(card, answer) + BLUR * random.random()
        )

    def open(self, card: str, answer: str) -> float:
        """What a bet or a check wins on average; the two other cards are equally likely."""
        total = 0.0
        for other in OTHERS[card]:
            showdown = 1 if RANK[card] > RANK[other] else -1
            if answer == "check":
                total += showdown
            else:
                called = self.calls[other].share
                total += called * 2 * showdown + (1 - called) * 1
        return total / 2

    def respond(self, card: str, answer: str) -> float:
        """What a call or a fold wins on average, after the other seat has bet."""
        if answer == "fold":
            return -1.0
        total = weight = 0.0
        for other in OTHERS[card]:
            bets = self.bets[other].share
            weight += bets
            total += bets * (2 if RANK[card] > RANK[other] else -2)
        return total / weight if weight else 0.0


def make_player(match: Message) -> Player:
    """Make the player for one match."""
    if match["game"] == "ace_king_queen":
        return Learner(match["seat"])
    return Player()


if __name__ == "__main__":
    games = "ace_king_queen gin_rummy high_low three_card_poker blackjack"
    play(games.split(), make_player)
