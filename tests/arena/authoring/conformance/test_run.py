"""Whole checks of a bot in this process: what passes, and what fails with which hint."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest

from arena.authoring.conformance import Hint, Step, StepOutcome, StepStatus
from arena.authoring.conformance.bot import BotUnderTest
from arena.authoring.conformance.run import quantile
from arena.authoring.conformance.wire import Line
from arena.games import GAMES
from protocol.messages import Limits
from tests.support.in_memory_bot import LIMITS, InMemoryBot, Message, check

pytestmark = pytest.mark.virtual_time(limit_s=900)


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory all that a bot has to say is said at once."""
    monkeypatch.setattr("arena.authoring.conformance.steps._END_S", 0.05)
    monkeypatch.setattr("arena.authoring.conformance.matches._SETTLE_S", 0.002)
    monkeypatch.setattr("arena.authoring.conformance.steps._LINGER_S", 0.002)


async def failures(memory: InMemoryBot, **changes: Any) -> list[tuple[Step, Hint | None]]:
    checked, told = await check(memory, **changes)

    assert not checked.passed
    assert [*checked.steps] == told
    return [(outcome.step, outcome.hint) for outcome in told if outcome.status is StepStatus.FAILED]


def of(told: list[StepOutcome], step: Step) -> StepOutcome:
    return next(outcome for outcome in told if outcome.step is step)


# ---- Those that behave


async def test_a_bot_that_behaves_passes() -> None:
    checked, told = await check(InMemoryBot(tables=3, batch=True, games=[*GAMES]))

    assert checked.passed
    assert checked.name == "memory"
    assert checked.games == tuple(GAMES)
    assert [outcome.number for outcome in told] == [*range(1, len(told) + 1)]
    skipped = [outcome.step for outcome in told if outcome.status is StepStatus.SKIPPED]
    assert skipped == [Step.REFUSED_HELLO, Step.LATE_ARENA]
    for game in GAMES:
        [legal] = [outcome for outcome in told if outcome.name == f"legal {game}"]
        assert legal.about == f"{len(GAMES[game].vocabulary.legal_shapes)} shapes"


async def test_what_its_decisions_took_is_told() -> None:
    checked, told = await check(InMemoryBot())
    report = checked.report

    assert of(told, Step.PLAY).about == f"20 rounds, {report.decisions} decisions"
    assert report.p50_ms is not None
    assert report.max_ms is not None
    assert 0 <= report.p50_ms <= report.max_ms
    assert (report.memory_mib, report.cpu_ms) == (None, None)
    assert of(told, Step.BATCH).status is of(told, Step.TABLES).status is StepStatus.SKIPPED


async def test_only_the_games_that_are_named_are_checked() -> None:
    checked, told = await check(InMemoryBot(games=[*GAMES]), games=("blackjack",))

    assert checked.games == ("blackjack",)
    assert [outcome.game for outcome in told if outcome.step is Step.PLAY] == ["blackjack"]


# ---- Those that do not


async def test_a_game_that_it_does_not_offer_cannot_be_checked() -> None:
    _, told = await check(InMemoryBot(), games=("blackjack",))
    hello = of(told, Step.HELLO)

    assert [one for one in told if one.status is StepStatus.FAILED] == [hello]
    assert hello.hint is Hint.GAMES
    assert "blackjack" in str(hello.expected)
    assert hello.came == "it offers ace_king_queen"


async def test_after_a_hello_that_is_none_nothing_can_be_said() -> None:
    _, told = await check(InMemoryBot(protocol=2))

    assert of(told, Step.HELLO).hint is Hint.VERSION
    after = told[2:]
    assert {outcome.status for outcome in after} == {StepStatus.SKIPPED}
    assert {outcome.about for outcome in after} == {"mend step 2 first"}


class AnswersLate(InMemoryBot):
    late_s = 0.13

    def answer(self, ask: Message, value: Any) -> Message | None:
        later = super().answer(ask, value)
        if ask["type"] == "ask":
            asyncio.get_running_loop().call_later(self.late_s, self.say, later)
            return None
        return later


async def test_J7_what_a_launched_bot_sleeps_drains_a_bank_of_clock_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(BotUnderTest, "is_metered", True)
    monkeypatch.setattr(BotUnderTest, "waited_ms", lambda bot: 0.0)
    monkeypatch.setattr(AnswersLate, "late_s", 3)

    checked, told = await check(AnswersLate(), limits=Limits(wall_bank_ms=8_000))

    assert of(told, Step.PLAY).came == "one that took 3,000 ms when that bank was empty"
    assert of(told, Step.PLAY).hint is Hint.SLOW
    assert checked.report.wall_bank_ms == 9_000


def broken(**methods: Callable[..., Any]) -> type[InMemoryBot]:
    """A bot with other methods."""
    return type("Broken", (InMemoryBot,), methods)


def instead(kind: str, said: Message) -> type[InMemoryBot]:
    """A bot that says something else after a message of a kind."""
    take = InMemoryBot.take
    return broken(take=lambda bot, heard: said if heard["type"] == kind else take(bot, heard))


READY = {"type": "ready", "match": "m", "nonce": "n"}
INSTRUCT = {"type": "instruct", "protocol": 1, "token": "t", "action": "status"}


class Truths(InMemoryBot):
    def __init__(self) -> None:
        super().__init__(games=["three_card_poker"])

    def choose(self, legal: Any) -> Any:
        return super().choose(legal) if isinstance(legal, list) else True


class Once(InMemoryBot):
    """Answers each question once."""

    def __init__(self, **said: Any) -> None:
        super().__init__(**said)
        self.seen: set[str] = set()

    def answer(self, ask: Message, value: Any) -> Message | None:
        is_new = ask["type"] != "ask" or ask["ask"] not in self.seen
        self.seen.add(ask["ask"])
        return super().answer(ask, value) if is_new else None


class Forgetful(InMemoryBot):
    def hello(self) -> Message:
        self.session = None
        return super().hello()


class ResumesItsFirstSession(InMemoryBot):
    first: str | None = None

    def hello(self) -> Message:
        self.first = self.first or self.session
        said = super().hello()
        return {**said, "resume": self.first} if self.session else said


class RepeatsWhatWasRefused(InMemoryBot):
    kept: Any = None

    def answer(self, ask: Message, value: Any) -> Message | None:
        self.kept = value if ask["type"] == "ask" else self.kept
        return super().answer(ask, self.kept)


class Remembers(InMemoryBot):
    """Has everything told once more."""

    def __init__(self, **said: Any) -> None:
        super().__init__(**said)
        self.past: list[Message] = []

    def hello(self) -> Message:
        said = super().hello()
        return {**said, "from": 0} if "resume" in said else said

    def take(self, message: Message) -> Message | None:
        if message["type"] == "past":
            self.past.append(message)
        return super().take(message)


class StumblesOverThePast(Remembers):
    def ready(self, match: Message) -> Message | None:
        return None if self.past else super().ready(match)


def closed_as(change: Callable[[int | None], int | None]) -> type[InMemoryBot]:
    """A bot that takes another close code for the one that came; after 0 it stays away."""
    return broken(closed=lambda bot, code: InMemoryBot.closed(bot, change(code)))


def resuming(**said: Any) -> type[InMemoryBot]:
    """A bot that says this when it comes back."""

    def hello(bot: InMemoryBot) -> Message:
        message = InMemoryBot.hello(bot)
        return {**message, **said} if "resume" in message else message

    return broken(hello=hello)


def wrong_ask(bot: InMemoryBot, ask: Message, value: Any) -> Message | None:
    return InMemoryBot.answer(bot, {**ask, "ask": "1"}, value)


def reads_type_first(bot: InMemoryBot, message: Message) -> Message | None:
    """It reads messages with its own eyes."""
    return InMemoryBot.take(bot, message) if next(iter(message)) == "type" else None


NOT_READY = broken(ready=lambda bot, match: {**READY, "match": match["match"], "nonce": ""})
ALONE, FIRST, AMONG = "alone", "first", "among others"


@pytest.mark.parametrize(
    ("bot", "where", "expected"),
    [
        (
            *(broken(choose=lambda bot, legal: "raise"), ALONE),
            [(Step.PLAY, Hint.ILLEGAL), (Step.LEGAL, Hint.ILLEGAL)],
        ),
        (instead("welcome", READY), ALONE, [(Step.HELLO, Hint.OUT_OF_TURN)]),
        (broken(hello=lambda bot: INSTRUCT), ALONE, [(Step.HELLO, Hint.NOT_HELLO)]),
        (
            *(Once, ALONE),
            [(Step.REPEATED_QUESTION, Hint.REPEATED), (Step.LOST_CONNECTION, Hint.FORGETS)],
        ),
        (
            closed_as(lambda code: None if code == 1000 else code),
            *(ALONE, [(Step.CLOSE, Hint.STAYS)]),
        ),
        (RepeatsWhatWasRefused, ALONE, [(Step.REFUSAL, Hint.REFUSAL)]),
        (
            closed_as(lambda code: 0 if code == 1012 else code),
            *(ALONE, [(Step.LOST_SESSION, Hint.NOT_BACK)]),
        ),
        (Truths, FIRST, [(Step.ENCODING, Hint.STRINGS)]),
        (broken(answer=wrong_ask), FIRST, [(Step.ENCODING, Hint.WRONG_ASK)]),
        (instead("match", {"type": "goodbye"}), FIRST, [(Step.ENCODING, Hint.LEFT)]),
        # The same fault is no fault of the later step, which has a hint of its own.
        (
            *(NOT_READY, FIRST),
            [(Step.ENCODING, Hint.NO_MESSAGE), (Step.UNKNOWN_FIELDS, Hint.NO_MESSAGE)],
        ),
        (broken(take=reads_type_first), FIRST, [(Step.ENCODING, Hint.JSON_LIBRARY)]),
        (StumblesOverThePast, FIRST, [(Step.LOST_CONNECTION, Hint.FORGETS)]),
        (AnswersLate, AMONG, [(Step.PLAY, Hint.SLOW)]),
        (Forgetful, AMONG, [(Step.LOST_CONNECTION, Hint.NO_RESUME)]),
        (ResumesItsFirstSession, AMONG, [(Step.LOST_CONNECTION, Hint.OLD_SESSION)]),
        (resuming(name="other"), AMONG, [(Step.LOST_CONNECTION, Hint.SAME_NAME)]),
    ],
)
async def test_a_fault_fails_its_own_steps_alone(
    bot: Callable[[], InMemoryBot], where: str, expected: list[tuple[Step, Hint]]
) -> None:
    found: list[Any] = await failures(bot())

    assert (
        expected
        == {
            ALONE: found,
            FIRST: found[: len(expected)],
            AMONG: [each for each in found if each in expected],
        }[where]
    )


async def test_one_that_does_not_answer_must_play_before_all_else() -> None:
    _, told = await check(broken(answer=lambda bot, ask, value: None)())

    assert of(told, Step.PLAY).hint is Hint.SILENT
    assert of(told, Step.LOST_CONNECTION).about == "it must play first: mend step 5"
    assert of(told, Step.CLOSE).status is StepStatus.OK


class Dies(InMemoryBot):
    def die(self) -> None:
        assert self.wire is not None, "it is connected"
        self.wire.is_open = False
        self.endpoint.lost(cast(Line, self.wire))
        self.wire = None  # somebody starts it again when it is waited for


async def test_one_that_dies_between_two_steps_is_not_started_again_in_silence() -> None:
    memory = Dies()
    _, told = await check(memory, after={Step.PLAY: memory.die})

    failed = [outcome for outcome in told if outcome.status is StepStatus.FAILED]
    assert [(outcome.step, outcome.hint) for outcome in failed] == [
        (Step.LEGAL, Hint.LEAVES_AT_OVER)
    ]


async def test_one_that_does_not_come_back_is_awaited_once() -> None:
    _, told = await check(closed_as(lambda code: 0 if code is None else code)())

    assert of(told, Step.LOST_CONNECTION).hint is Hint.NOT_BACK
    assert "has not come back" in of(told, Step.LOST_SESSION).about


@pytest.mark.parametrize(
    ("bot", "hint"),
    [
        (Once, Hint.REPEATED),
        (closed_as(lambda code: 0 if code is None else code), Hint.NOT_BACK),
        (closed_as(lambda code: 0 if code == 4001 else code), Hint.SESSION_REFUSED),
        (broken(ready=lambda bot, match: None), Hint.NOT_READY),
        (broken(answer=lambda bot, ask, value: None), Hint.SILENT),
    ],
)
async def test_a_fault_is_told_within_half_a_minute(
    bot: Callable[[], InMemoryBot], hint: Hint
) -> None:
    _, told = await check(bot(), limits=Limits(), rounds=3)
    first = next(at for at, outcome in enumerate(told) if outcome.status is StepStatus.FAILED)

    assert told[first].hint is hint
    assert sum(outcome.took_ms for outcome in told[: first + 1]) < 30_000


@pytest.mark.parametrize("share", [0.6, 0.1])
async def test_one_that_computes_is_waited_for_as_an_arena_does(
    monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    monkeypatch.setattr(BotUnderTest, "is_metered", True)
    now = asyncio.get_running_loop().time
    monkeypatch.setattr(BotUnderTest, "used_ms", lambda bot: now() * share * 1000)
    monkeypatch.setattr(AnswersLate, "late_s", 20)
    _, told = await check(AnswersLate(), limits=Limits(), rounds=1)

    assert (of(told, Step.ENCODING).hint is Hint.SILENT) == (share < 0.5)


@pytest.mark.parametrize("place", [0, -1])
async def test_a_bot_that_takes_the_first_or_the_last_in_the_list_is_not_stubborn(
    place: int,
) -> None:
    checked, _ = await check(broken(choose=lambda bot, legal: legal[place])())

    assert checked.passed


async def test_a_session_of_an_arena_before_is_refused_first() -> None:
    memory = InMemoryBot()
    memory.session = "of another arena"
    checked, _ = await check(memory)

    assert checked.passed


# ---- Time


async def test_a_bot_that_is_awaited_may_come_later_than_any_step_may_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("arena.authoring.conformance.run._STEP_S", 0.05)
    monkeypatch.setattr("arena.authoring.conformance.bot._AWAITED_MS", 5_000)

    class LateComer(InMemoryBot):
        def connect(self) -> None:
            if self.wire is None:
                self.wire = cast(Any, self)  # once
                asyncio.get_running_loop().call_later(0.15, super().connect)
            else:
                super().connect()

    _, told = await check(LateComer(), rounds=1)

    assert of(told, Step.STARTS).status is StepStatus.OK
    assert of(told, Step.STARTS).took_ms >= 140


async def test_nobody_is_awaited_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.authoring.conformance.bot._AWAITED_MS", 50)
    nobody = broken(connect=lambda bot: None)()

    assert await failures(nobody) == [(Step.STARTS, Hint.NOT_CONNECTED)]


class Thinks(InMemoryBot):
    """Takes its time, within the limits."""

    def answer(self, ask: Message, value: Any) -> Message | None:
        answer, wire = super().answer(ask, value), self.wire

        def say() -> None:
            if self.wire is wire:
                self.say(answer)

        asyncio.get_running_loop().call_later(0.005, say)
        return None


async def test_what_a_slow_bot_has_no_time_for_is_not_complete_and_not_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("arena.authoring.conformance.steps._PLAY_S", 0.1)
    monkeypatch.setattr("arena.authoring.conformance.steps._LEGAL_S", 0.0)
    checked, told = await check(Thinks(), rounds=200)
    play, legal = of(told, Step.PLAY), of(told, Step.LEGAL)

    assert not checked.passed
    assert {outcome.status for outcome in told} == {
        StepStatus.OK,
        StepStatus.SKIPPED,
        StepStatus.INCOMPLETE,
    }
    assert play.status is legal.status is StepStatus.INCOMPLETE
    assert play.rounds is not None
    assert 0 < play.rounds < 200
    assert play.about.startswith(f"{play.rounds} of 200 rounds, ")
    assert legal.missing == ("open", "respond")
    assert [outcome.name for outcome in told if outcome.status is StepStatus.INCOMPLETE] == [
        "play ace_king_queen",
        "legal ace_king_queen",
    ]


async def test_with_fewer_rounds_a_slow_bot_shows_all() -> None:
    checked, _ = await check(Thinks(), rounds=3)

    assert checked.passed


async def test_when_the_whole_has_taken_too_long_only_the_end_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("arena.authoring.conformance.run._TOTAL_S", 0.0)
    checked, told = await check(InMemoryBot())

    assert not checked.passed
    by_status = {outcome.step: outcome.status for outcome in told}
    assert by_status[Step.TABLES] is StepStatus.INCOMPLETE
    assert by_status[Step.CLOSE] is StepStatus.OK


async def test_a_step_that_lasts_too_long_is_not_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.authoring.conformance.run._STEP_S", 0.3)
    _, told = await check(Thinks(), rounds=1_000)

    assert of(told, Step.PLAY).status is StepStatus.INCOMPLETE
    assert of(told, Step.PLAY).about == "not done within 0 s"


async def test_what_is_being_done_is_told_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.authoring.conformance.run._TICK_S", 0.02)
    seen: list[str] = []
    checked, _ = await check(Thinks(), rounds=60, on_progress=seen.append)

    assert checked.passed
    assert any("play ace_king_queen" in text and "of 60 rounds" in text for text in seen)


# ---- Whose fault it is


class Spams(InMemoryBot):
    def answer(self, ask: Message, value: Any) -> Message | None:
        answer = super().answer(ask, value)
        ready = {"type": "ready", "match": ask["match"], "nonce": "n"}
        self.say(*[ready] * 30)
        return answer


async def test_too_many_repeats_in_a_second_fail() -> None:
    few = msgspec.structs.replace(LIMITS, unanswered=20)
    many = msgspec.structs.replace(LIMITS, unanswered=1_000_000)
    checked, _ = await check(Spams(), limits=many)

    assert checked.passed
    assert (await failures(Spams(), limits=few))[0] == (Step.ENCODING, Hint.OUT_OF_TURN)


# ---- Closed with 1012, and lost memory


async def test_who_asks_for_the_past_is_told_it() -> None:
    memory = Remembers()
    checked, _ = await check(memory)

    assert checked.passed
    assert memory.past
    assert all(past["ask"].startswith(f"{past['match']}:") for past in memory.past)
    assert all("answer" in past for past in memory.past)


async def test_ids_of_matches_are_those_of_an_arena() -> None:
    ids: set[str] = set()

    class NotesIds(InMemoryBot):
        def take(self, message: Message) -> Message | None:
            if message["type"] in ("match", "over"):
                ids.add(message["match"])
            return super().take(message)

    await check(NotesIds(batch=True, tables=2))

    assert all(re.fullmatch(r"[0-9a-f]{8}-\d+\.\d", match) for match in ids), ids
    assert len({match.split("-")[0] for match in ids}) == 1


async def test_it_gets_as_many_tables_as_it_says() -> None:
    open_now: set[str] = set()
    most = [0]

    class CountsTables(InMemoryBot):
        def take(self, message: Message) -> Message | None:
            if message["type"] == "match":
                open_now.add(message["match"])
            elif message["type"] == "over":
                open_now.discard(message["match"])
            most[0] = max(most[0], len(open_now))
            return super().take(message)

    checked, told = await check(CountsTables(tables=500))

    assert checked.passed
    assert most == [64]
    assert of(told, Step.TABLES).about == "64 matches at once, of 500 that it says"


# ---- Strangers


class Visited(InMemoryBot):
    """Somebody else connects as well, each time, and says another name, or nothing."""

    def closed(self, code: int | None) -> None:
        for name in ("somebody", None):
            stranger = VisitedByAStranger(name)
            stranger.endpoint = self.endpoint
            asyncio.get_running_loop().call_soon(stranger.connect)
        super().closed(code)


class VisitedByAStranger(InMemoryBot):
    def __init__(self, name: str | None) -> None:
        super().__init__(name=name)

    def say(self, *messages: Message | None) -> None:
        if self.said["name"] is not None:
            super().say(*messages)

    def closed(self, code: int | None) -> None:
        """It has gone."""


async def test_strangers_do_no_harm_to_a_good_bot() -> None:
    checked, told = await check(Visited())

    assert checked.passed, [outcome for outcome in told if outcome.status is StepStatus.FAILED]


# ---- Figures


def test_quantiles() -> None:
    times = [float(number) for number in range(100)]

    assert quantile([], 0.5) is None
    assert quantile([7.0], 0.99) == 7.0
    assert [quantile(times, share) for share in (0.5, 0.99, 1.0)] == [50, 99, 99]
