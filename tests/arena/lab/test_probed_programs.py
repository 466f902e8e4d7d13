"""Made-up matches that are put to programs, without processes: a bot gets what an object gets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from arena.engine.analysis import ProbedMatch, ProbeMatch
from arena.engine.verdict import Finding
from arena.games import GAMES, competition_settings
from arena.lab.probe import begin, play_probe
from arena.lab.probed_programs import ProbedSeat
from arena.lab.seat_referee import BotFailed, SeatReferee
from protocol.messages import Answer, Ask, Ending, Limits, Match, Mechanism, Over, Ready
from protocol.strategy import Strategy, house_bots
from tests.support.fake_bots import FakeBot
from tests.support.sample_database import SHORT


def seeded(game: str, seed: str) -> Strategy:
    house = house_bots(game)
    strategy: Strategy = house["random" if "random" in house else next(iter(house))]()
    if callable(seeding := getattr(strategy, "seed", None)):
        seeding(seed)
    return strategy


def probe(game: str, seat: int = 0, seed: int = 5) -> ProbeMatch:
    rules = GAMES[game]
    others = tuple(seeded(game, f"other:{number}") for number in range(rules.seats - 1))
    settings = competition_settings(rules, SHORT[game])
    return ProbeMatch(settings=settings, seat=seat, others=others, seed=seed)


class ProbedBot:
    """A bot without sockets that a strategy plays for, and the referee that asks it."""

    def __init__(self, strategy: Strategy) -> None:
        self.bot = FakeBot()
        self.referee = SeatReferee(Limits(), lambda: 100.0)
        self.messages: list[Any] = []
        self._strategy = strategy

    def plays(self, game: str, probe: ProbeMatch) -> ProbedMatch:
        seat, outcome = self.begins(game, probe)
        while messages := self.bot.reads():
            for message in messages:
                self._reads(message)
        assert outcome.result() is None
        return ProbedMatch(seat.decisions, seat.match.answers, seat.match.scores)

    def begins(
        self, game: str, probe: ProbeMatch
    ) -> tuple[ProbedSeat, asyncio.Future[BotFailed | None]]:
        seat = ProbedSeat(begin(GAMES[game], probe), probe, "ann")
        return seat, self.referee.put(self.bot.player, seat, f"m-{len(self.messages)}")

    def _reads(self, message: Any) -> None:
        self.messages.append(message)
        player = self.bot.player
        if isinstance(message, Match):
            self._strategy.reset()
            ready = Ready(message.match, "n")
            player.session.note(ready)
            self.referee.ready(player, ready)
            return
        for news in message.news:
            self._strategy.hear(news)
        if isinstance(message, Ask):
            value: Any = self._strategy.decide(message.question)
            answer = Answer(message.match, message.ask, value)
            chair = player.answering(answer)
            assert chair is not None, "it is the answer to its question"
            self.referee.answer(chair, answer, 100.0)


@pytest.mark.parametrize("game", sorted(SHORT))
@pytest.mark.parametrize("is_last", [False, True])
async def test_a_program_is_asked_and_told_what_an_object_is(game: str, is_last: bool) -> None:
    seat = GAMES[game].seats - 1 if is_last else 0
    here = play_probe(GAMES[game], probe(game, seat), seeded(game, "bot"))

    there = ProbedBot(seeded(game, "bot")).plays(game, probe(game, seat))

    assert there == here
    assert there.decisions


async def test_one_bot_plays_match_after_match() -> None:
    game = "ace_king_queen"
    bot = ProbedBot(seeded(game, "bot"))
    same = seeded(game, "bot")

    there = [bot.plays(game, probe(game, number % 2, seed=number)) for number in range(3)]
    here = [play_probe(GAMES[game], probe(game, n % 2, seed=n), same) for n in range(3)]

    assert there == here
    invitations = [message for message in bot.messages if isinstance(message, Match)]
    assert [one.seats for one in invitations] == [
        ("ann", "probe-1"),
        ("probe-1", "ann"),
        ("ann", "probe-1"),
    ]
    assert len({one.match for one in invitations}) == 3
    assert not bot.bot.player.chairs


async def test_made_up_cards_are_not_committed_to() -> None:
    bot = ProbedBot(seeded("ace_king_queen", "bot"))

    bot.plays("ace_king_queen", probe("ace_king_queen"))

    assert bot.messages[0].commitment == ""
    over = bot.messages[-1]
    assert isinstance(over, Over)
    assert over.reveal is None


async def test_a_bot_that_has_gone_between_two_matches_is_not_asked_again() -> None:
    bot = ProbedBot(seeded("ace_king_queen", "bot"))
    bot.plays("ace_king_queen", probe("ace_king_queen"))
    crash = Finding(
        kind=Ending.CRASH, text="crashed: exit status 3", mechanism=Mechanism.EXIT, stderr="oh"
    )

    bot.bot.player.leaving = True
    bot.referee.offence(bot.bot.player, crash)
    _, outcome = bot.begins("ace_king_queen", probe("ace_king_queen"))

    assert outcome.result() == BotFailed("crashed: exit status 3", stderr="oh")


async def test_a_fault_of_the_analysis_is_raised_where_it_is_awaited() -> None:
    class WrongScript:
        def decide(self, question: Any) -> object:
            raise RuntimeError("a script of the analysis is wrong")

        def hear(self, news: Any) -> None: ...

        def reset(self) -> None: ...

    broken = probe("ace_king_queen", seat=1)
    broken = ProbeMatch(settings=broken.settings, seat=1, others=(WrongScript(),), seed=5)
    bot = ProbedBot(seeded("ace_king_queen", "bot"))
    _, outcome = bot.begins("ace_king_queen", broken)
    while messages := bot.bot.reads():
        for message in messages:
            bot._reads(message)

    with pytest.raises(RuntimeError, match="a script of the analysis is wrong"):
        outcome.result()
