"""A replay to a bot without processes: the questions with their news, and where it stops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import arena
from arena.games.match import Record
from arena.games.replay import CardsDealt, SeatAnswered, events_of, reopened
from arena.games.verdict import Finding
from arena.lab.replay_to_bot import (
    BotFailed,
    RecordedSeat,
    ReplayOutcome,
    brought,
    program_of,
    replay_to_bot,
)
from arena.records.seat_document import seat_document
from bots.ace_king_queen import Bluffer, Honest
from protocol.ace_king_queen import Open, Respond
from protocol.errors import ArenaError, UsageError
from protocol.messages import Ask, Ending, Limits, Match, Mechanism, Over
from tests.support.fake_bots import FakeBotProcess
from tests.support.refereed_bot import RefereedBot
from tests.support.sample_database import SHORT, play, void

GAMES = sorted(SHORT)
NAMES = ("ann", "ben", "cem", "dee")
replace = msgspec.structs.replace


class ReplayedBot(RefereedBot):
    """A replay and its bot."""

    def __init__(self, record: Record, seat: int, process: FakeBotProcess | None = None) -> None:
        super().__init__(process)
        self.record, self.seat = record, seat
        self.recorded = RecordedSeat(record, seat)
        self.asks: list[Ask] = []
        self.overs: list[Over] = []
        names = NAMES[: len(record.scores)]
        self.outcome = self.recorded.put_to(self.bot.player, self.referee, names, "m-1")

    def plays(self, decide: Callable[[Ask, Any], Any]) -> None:
        """Answer all questions by `decide`, which gets the question and the recorded answer."""
        recorded = iter(self._recorded())
        while messages := self.reads():
            for message in messages:
                if isinstance(message, Match):
                    self.invitation = message
                elif isinstance(message, Ask):
                    self.asks.append(message)
                    self.answers(message, decide(message, next(recorded, None)))
                elif isinstance(message, Over):
                    self.overs.append(message)

    @property
    def result(self) -> ReplayOutcome:
        failed = self.outcome.result()
        return ReplayOutcome(self.recorded.same, tuple(self.recorded.weighed()), failed)

    def _recorded(self) -> list[Any]:
        return [answer for seat, answer in _answers(self.record) if seat == self.seat]


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("last", [False, True])
async def test_the_same_answers_to_the_same_questions(game: str, last: bool) -> None:
    record = play(game, 6).record
    seat = len(record.scores) - 1 if last else 0
    replayed = ReplayedBot(record, seat)

    replayed.plays(lambda ask, recorded: recorded)

    assert replayed.result == ReplayOutcome(len(replayed.asks))
    match = reopened(record)
    for answer in record.answers:
        match.answer(answer)
    told = list(match.history_for(seat))
    assert [(ask.question, ask.news) for ask in replayed.asks] == [
        (question, news) for question, news, _ in told
    ]
    [over] = replayed.overs
    assert over.scores == record.scores
    assert over.reveal is not None
    assert over.reveal.nonces == record.nonces
    assert replayed.invitation.seats == NAMES[: len(record.scores)]
    assert replayed.invitation.commitment == record.commitment
    assert not replayed.bot.player.chairs
    assert not replayed.referee.tables


async def test_after_another_answer_the_recorded_history_goes_on() -> None:
    record = play("ace_king_queen", 6).record
    replayed = ReplayedBot(record, 0)
    other = {"bet": "check", "check": "bet", "call": "fold", "fold": "call"}

    replayed.plays(
        lambda ask, recorded: other[recorded] if len(replayed.asks) in (2, 3) else recorded
    )

    assert len(replayed.asks) == len(replayed._recorded()) == 3
    assert len(replayed.overs) == 1
    assert replayed.result.failed is None
    assert replayed.result.same == len(replayed.asks) - 2
    for number, difference in enumerate(replayed.result.differences, start=2):
        asked = replayed.asks[number - 1].question
        assert (difference.number, difference.question) == (number, asked)
        assert difference.round == asked.round  # type: ignore[attr-defined]
        assert other[difference.recorded] == difference.given


def told(seat: RecordedSeat) -> list[Any]:
    """All that a seat is told whose bot always answers something else."""
    script, given = seat.script(), None
    heard: list[Any] = []
    try:
        while True:
            heard.append(script.send(given))
            given = "something else"
    except StopIteration as ended:
        return [*heard, ended.value.news]


async def test_a_seats_document_puts_the_same_questions() -> None:
    record = play("gin_rummy", 6).record
    document = seat_document(record, 1, "m", NAMES[:2])
    of_record = RecordedSeat(record, 1)
    of_document = RecordedSeat(document.record, 1, document)

    assert told(of_document) == told(of_record)
    assert of_document.differences == of_record.differences
    assert len(of_document.differences) == len(document.record.answers) > 1


async def test_an_illegal_answer_fails() -> None:
    replayed = ReplayedBot(play("blackjack", 6).record, 0)

    replayed.plays(lambda ask, recorded: -1)

    ended = replayed.result.failed
    assert ended is not None
    assert ended.text.startswith("answered -1 to bet; legal: 5 to 100; answer with a whole number")
    assert ended.number == 1


async def test_where_the_bot_offended_then_it_is_asked_once_more() -> None:
    record = play("gin_rummy", 6, offender=1).record
    replayed = ReplayedBot(record, 1)

    replayed.plays(
        lambda ask, recorded: recorded or ask.question.choices[0]  # type: ignore[index]
    )

    [difference] = replayed.result.differences
    assert difference.recorded == "no legal answer"
    assert difference.would is None
    assert replayed.result.same == len(replayed.asks) - 1


async def test_where_another_offended_it_is_over() -> None:
    replayed = ReplayedBot(play("gin_rummy", 6, offender=1).record, 0)

    replayed.plays(lambda ask, recorded: recorded)

    assert replayed.result.failed is None
    [over] = replayed.overs
    assert over.termination.kind is Ending.ILLEGAL
    assert over.termination.text == ""


async def test_a_match_that_never_began_asks_nothing() -> None:
    replayed = ReplayedBot(void("high_low").record, 2)

    replayed.plays(lambda ask, recorded: recorded)

    assert replayed.result == ReplayOutcome(0)


async def test_a_bot_that_is_gone_fails() -> None:
    replayed = ReplayedBot(play("gin_rummy", 6).record, 0)
    replayed.bot.reads()
    crash = Finding(kind=Ending.CRASH, text="crashed: exit status 3", mechanism=Mechanism.EXIT)

    replayed.referee.offence(replayed.bot.player, crash)
    replayed.referee.offence(replayed.bot.player, replace(crash, text="later"))

    assert replayed.result == ReplayOutcome(0, failed=BotFailed("crashed: exit status 3"))


@pytest.mark.parametrize(
    ("is_ready", "limit_s", "text"),
    [
        (False, 10, "not ready within 10,000 ms after match"),
        (True, 30, "did not answer within 30,000 ms"),
    ],
)
async def test_a_bot_that_takes_too_long_fails(is_ready: bool, limit_s: int, text: str) -> None:
    replayed = ReplayedBot(play("gin_rummy", 6).record, 0)
    question = None
    if is_ready:
        replayed.reads()
        [ask] = replayed.bot.asks()
        replayed.bot.player.chairs[ask.match].asked_at = replayed.now
        question = ask.question

    replayed.now += limit_s - 0.1
    replayed.referee.tick()
    assert not replayed.outcome.done()
    replayed.now += 0.2
    replayed.referee.tick()

    assert replayed.result == ReplayOutcome(0, failed=BotFailed(text, int(is_ready), question))


@pytest.mark.parametrize("has_core", [True, False])
async def test_J7_a_launched_bot_that_sleeps_over_its_questions_fails_in_the_fifth(
    has_core: bool,
) -> None:
    process = FakeBotProcess()
    replayed = ReplayedBot(play("gin_rummy", 6).record, 0, process)

    def takes_28_s(ask: Ask, recorded: Any) -> Any:
        for _ in range(280):
            replayed.now += 0.1
            process.overbooked_ms += 0 if has_core else 100
            replayed.referee.tick()
        return recorded

    replayed.plays(takes_28_s)

    failed = replayed.result.failed
    assert (failed is None) is not has_core
    if failed is not None:
        assert (failed.number, replayed.result.same) == (5, 4)
        assert failed.text.startswith("out of time: 8,100 ms on the clock for a decision")


async def test_a_fault_of_the_arena_is_said() -> None:
    replayed = ReplayedBot(play("gin_rummy", 6).record, 0)
    [table] = replayed.referee.tables

    replayed.referee.void(table, "a fault of the arena")

    assert replayed.result.failed == BotFailed("a fault of the arena")


async def test_a_record_whose_other_answers_are_none() -> None:
    record = play("gin_rummy", 6).record
    broken = replace(record, answers=(record.answers[0], "x", *record.answers[2:]))
    seat = 1 - _answers(record)[1][0]
    replayed = ReplayedBot(broken, seat)
    replayed.reads()
    for ask in replayed.bot.asks():
        replayed.answers(ask, record.answers[0])

    with pytest.raises(ArenaError, match="the record cannot be played again"):
        replayed.outcome.result()


@pytest.mark.parametrize("name", ["", "a\0b", "a" * 65])
async def test_a_name_that_no_bot_can_have_is_refused_before_anything_starts(name: str) -> None:
    record = play("high_low").record
    names = ("ann", name, "cem", "dee")

    with pytest.raises(UsageError, match="expected a bot's name at seat 2"):
        await replay_to_bot(record, 1, names, program_of("high_low", "timid"), Limits())


# ---- What another answer would have brought: only where nobody could have done anything more

RANKS = "AKQ"


def test_an_answer_that_ends_the_hand_is_weighed_by_the_cards_alone() -> None:
    bots = [Bluffer(), Honest()]
    played = arena.play("ace_king_queen", bots, settings={"hands": 60}, seed=2).record
    deck: tuple[str, ...] = ()
    seen = set()
    for event in events_of(played):
        if isinstance(event, CardsDealt):
            deck = event.deal
        if not isinstance(event, SeatAnswered):
            continue
        index, seat, question = event.index, event.seat, event.question
        sign = 1 if RANKS.index(deck[seat]) < RANKS.index(deck[1 - seat]) else -1
        outcomes = {"check": sign, "call": 2 * sign, "fold": -1}
        others = {"bet": "check", "check": "bet", "call": "fold", "fold": "call"}
        answer = played.answers[index]
        other = others[answer]
        found = brought(played, seat, index, other)
        if isinstance(question, Open) and other == "bet":
            assert found is None  # the other seat would have been asked
        elif isinstance(question, Respond):
            assert found == (outcomes[answer], outcomes[other])
            seen.add(other)
        else:
            assert found is not None
            assert found[1] == outcomes[other]
            seen.add(other)

    assert seen >= {"check", "fold"}


def _answers(record: Record) -> list[tuple[int, Any]]:
    """Who gave which answer."""
    match = reopened(record)
    given = []
    for answer in record.answers:
        assert match.pending is not None
        given.append((match.pending.seat, answer))
        match.answer(answer)
    return given
