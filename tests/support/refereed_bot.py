"""A bot without sockets, and the referee of a seat that asks it."""

from __future__ import annotations

from typing import Any

from arena.lab.seat_referee import SeatReferee
from protocol.messages import Answer, Ask, Limits, Match, Ready
from tests.support.fake_bots import FakeBot, FakeBotProcess

__all__ = ["RefereedBot"]


class RefereedBot:
    """It accepts every invitation; `now` is the time, which tests set."""

    def __init__(self, process: FakeBotProcess | None = None) -> None:
        self.now = 100.0
        self.bot = FakeBot(clock=lambda: self.now, process=process)
        self.referee = SeatReferee(Limits(), lambda: self.now)

    def reads(self) -> list[Any]:
        """All messages since the last call."""
        messages = self.bot.reads()
        for message in messages:
            if isinstance(message, Match):
                ready = Ready(message.match, "n")
                self.bot.player.session.note(ready)
                self.referee.ready(self.bot.player, ready)
        return messages

    def answers(self, ask: Ask, value: Any) -> None:
        answer = Answer(ask.match, ask.ask, value)
        chair = self.bot.player.answering(answer)
        assert chair is not None, "it is the answer to its question"
        self.referee.answer(chair, answer, self.now)
