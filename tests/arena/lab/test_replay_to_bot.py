"""A rehearsal without processes: the same questions with the same news, and where it stops."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from arena.engine.match import Record
from arena.engine.verdict import Finding
from arena.games.replay import reopened
from arena.lab.replay_to_bot import BotFailed, FirstDifference, ReplayOutcome, ReplayReferee
from protocol.errors import ArenaError
from protocol.messages import Answer, Ask, Ending, Limits, Match, Mechanism, Over, Ready
from tests.support.sample_database import SHORT, play, void

if TYPE_CHECKING:
    from tests.support.fake_bots import FakeBot

GAMES = sorted(SHORT)
NAMES = ("ann", "ben", "cem", "dee")
replace = msgspec.structs.replace


class ReplayedBot:
    """A rehearsal and the bot that is asked, on a clock that tests set."""

    def __init__(self, record: Record, seat: int, bot: FakeBot) -> None:
        self.now = 100.0
        self.record, self.seat, self.bot = record, seat, bot
        names = NAMES[: len(record.scores)]
        self.rehearsal = ReplayReferee(record, seat, names, Limits(), lambda: self.now, "m-1")
        self.asks: list[Ask] = []
        self.overs: list[Over] = []
        self.rehearsal.invite(bot.player)

    def answers(self, decide: Callable[[Ask, Any], Any]) -> None:
        """Answer all that is asked, as `decide` says of the question and what was answered then."""
        recorded = iter(self._recorded())
        while messages := self.bot.reads():
            for message in messages:
                if isinstance(message, Match):
                    self.invitation = message
                    ready = Ready(message.match, "n")
                    self.bot.player.session.note(ready)
                    self.rehearsal.ready(self.bot.player, ready)
                elif isinstance(message, Ask):
                    self.asks.append(message)
                    value = decide(message, next(recorded, None))
                    answer = Answer(message.match, message.ask, value)
                    self.bot.player.session.note(answer)
                    self.rehearsal.answer(self.bot.player, answer, self.now)
                elif isinstance(message, Over):
                    self.overs.append(message)

    @property
    def result(self) -> ReplayOutcome:
        return self.rehearsal.outcome.result()

    def _recorded(self) -> list[Any]:
        match = reopened(self.record)
        found = []
        for answer in self.record.answers:
            assert match.pending is not None
            if match.pending.seat == self.seat:
                found.append(answer)
            match.answer(answer)
        return found


@pytest.fixture
def bot() -> FakeBot:
    from tests.support.fake_bots import FakeBot

    return FakeBot()


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("last", [False, True])
async def test_the_same_answers_to_the_same_questions(game: str, last: bool, bot: FakeBot) -> None:
    record = play(game, 6).record
    seat = len(record.scores) - 1 if last else 0
    stage = ReplayedBot(record, seat, bot)

    stage.answers(lambda ask, recorded: recorded)

    assert stage.result == ReplayOutcome(len(stage.asks))
    match = reopened(record)
    for answer in record.answers:
        match.answer(answer)
    told = list(match.history_for(seat))
    assert [(ask.question, ask.news) for ask in stage.asks] == [
        (question, news) for question, news, _ in told
    ]
    [over] = stage.overs
    assert over.scores == record.scores
    assert over.reveal is not None
    assert over.reveal.nonces == record.nonces
    assert stage.invitation.seats == NAMES[: len(record.scores)]
    assert stage.invitation.commitment == record.commitment
    assert not bot.player.chairs
    assert not stage.rehearsal.tables


async def test_it_stops_at_the_first_other_answer(bot: FakeBot) -> None:
    record = play("ace_king_queen", 6).record
    stage = ReplayedBot(record, 0, bot)
    other = {"bet": "check", "check": "bet", "call": "fold", "fold": "call"}

    stage.answers(lambda ask, recorded: other[recorded] if len(stage.asks) == 2 else recorded)

    assert len(stage.asks) == 2
    ended = stage.result.ended
    assert stage.result.same == 1
    assert isinstance(ended, FirstDifference)
    assert ended.number == 2
    assert ended.question == stage.asks[1].question
    assert other[ended.recorded] == ended.given


async def test_an_illegal_answer_fails(bot: FakeBot) -> None:
    stage = ReplayedBot(play("blackjack", 6).record, 0, bot)

    stage.answers(lambda ask, recorded: -1)

    ended = stage.result.ended
    assert isinstance(ended, BotFailed)
    assert ended.text == "answered -1 to bet; legal: 5 to 100"
    assert ended.number == 1


async def test_where_the_bot_offended_then_it_is_asked_once_more(bot: FakeBot) -> None:
    record = play("gin_rummy", 6, offender=1).record
    stage = ReplayedBot(record, 1, bot)

    stage.answers(
        lambda ask, recorded: recorded or ask.question.choices[0]  # type: ignore[index]
    )

    ended = stage.result.ended
    assert isinstance(ended, FirstDifference)
    assert ended.recorded == "no legal answer"
    assert stage.result.same == len(stage.asks) - 1


async def test_where_another_offended_it_is_over(bot: FakeBot) -> None:
    stage = ReplayedBot(play("gin_rummy", 6, offender=1).record, 0, bot)

    stage.answers(lambda ask, recorded: recorded)

    assert stage.result.ended is None
    [over] = stage.overs
    assert over.termination.kind is Ending.ILLEGAL
    assert over.termination.text == ""


async def test_a_match_that_never_began_asks_nothing(bot: FakeBot) -> None:
    stage = ReplayedBot(void("high_low").record, 2, bot)

    stage.answers(lambda ask, recorded: recorded)

    assert stage.result == ReplayOutcome(0)


async def test_a_bot_that_is_gone_fails(bot: FakeBot) -> None:
    stage = ReplayedBot(play("gin_rummy", 6).record, 0, bot)
    bot.reads()
    crash = Finding(kind=Ending.CRASH, text="crashed: exit status 3", mechanism=Mechanism.EXIT)

    stage.rehearsal.offence(bot.player, crash)
    stage.rehearsal.offence(bot.player, replace(crash, text="later"))

    assert stage.result == ReplayOutcome(0, BotFailed("crashed: exit status 3"))


async def test_a_bot_that_takes_too_long_fails(bot: FakeBot) -> None:
    stage = ReplayedBot(play("gin_rummy", 6).record, 0, bot)
    stage.now += 9.9
    stage.rehearsal.tick()
    assert not stage.rehearsal.outcome.done()

    stage.now += 0.2
    stage.rehearsal.tick()

    assert stage.result == ReplayOutcome(0, BotFailed("not ready within 10,000 ms after match"))


async def test_a_bot_that_never_answers_fails(bot: FakeBot) -> None:
    stage = ReplayedBot(play("gin_rummy", 6).record, 0, bot)
    [invitation] = bot.reads()
    assert isinstance(invitation, Match)
    ready = Ready(invitation.match, "n")
    bot.player.session.note(ready)
    stage.rehearsal.ready(bot.player, ready)
    [ask] = bot.asks()
    bot.player.chairs[ask.match].asked_at = stage.now

    stage.now += 29.9
    stage.rehearsal.tick()
    assert not stage.rehearsal.outcome.done()
    stage.now += 0.2
    stage.rehearsal.tick()

    assert stage.result.ended == BotFailed("did not answer within 30,000 ms", 1, ask.question)


async def test_a_fault_of_the_arena_is_said(bot: FakeBot) -> None:
    stage = ReplayedBot(play("gin_rummy", 6).record, 0, bot)
    [table] = stage.rehearsal.tables

    stage.rehearsal.void(table, "a fault of the arena")

    assert stage.result.ended == BotFailed("a fault of the arena")


async def test_a_record_whose_other_answers_are_none(bot: FakeBot) -> None:
    record = play("gin_rummy", 6).record
    broken = replace(record, answers=(record.answers[0], "x", *record.answers[2:]))
    seat = 1 if len(_seats(record)) and _seats(record)[1] == 0 else 0
    stage = ReplayedBot.__new__(ReplayedBot)
    stage.now = 1.0
    stage.rehearsal = ReplayReferee(broken, seat, NAMES[:2], Limits(), lambda: stage.now, "m-1")
    stage.rehearsal.invite(bot.player)
    [invitation] = bot.reads()
    assert isinstance(invitation, Match)
    stage.rehearsal.ready(bot.player, Ready(invitation.match, "n"))
    for ask in bot.asks():
        answer = Answer(ask.match, ask.ask, record.answers[0])
        stage.rehearsal.answer(bot.player, answer, 1.0)

    with pytest.raises(ArenaError, match="the record cannot be played again"):
        stage.rehearsal.outcome.result()


def _seats(record: Record) -> list[int]:
    """Who gave each answer."""
    match = reopened(record)
    seats = []
    for answer in record.answers:
        assert match.pending is not None
        seats.append(match.pending.seat)
        match.answer(answer)
    return seats
