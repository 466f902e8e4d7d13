from __future__ import annotations

import pytest

from arena.games.catalogue import GAMES
from arena.games.drive import drive
from arena.games.match import MatchState
from bots.ace_king_queen import Honest
from protocol.messages import Ending
from protocol.vocabulary import News, Question


class Raising(Honest):
    """Raises in one of its methods."""

    def __init__(self, where: str) -> None:
        self.where = where

    def _raise_in(self, method: str) -> None:
        if method == self.where:
            raise KeyError(method)

    def reset(self) -> None:
        self._raise_in("reset")
        super().reset()

    def decide(self, question: Question[object]) -> object:
        self._raise_in("decide")
        return super().decide(question)

    def hear(self, news: News) -> None:
        self._raise_in("hear")
        super().hear(news)


@pytest.mark.parametrize("where", ["reset", "decide", "hear"])
def test_J2_whatever_a_strategy_raises_is_a_crash_of_its_seat(where: str) -> None:
    game = GAMES["ace_king_queen"]
    match = MatchState(game, game.vocabulary.read_settings({"hands": 4}), seed=b"seed")
    drive(match, (Honest(), Raising(where)))

    ended = match.result().termination
    assert (ended.kind, ended.seat) == (Ending.CRASH, 1)
    assert ended.text.startswith(f"seat 2 raised KeyError: '{where}' at ")
    assert "test_drive.py" in ended.text
