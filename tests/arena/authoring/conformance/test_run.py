"""Whole checks of a bot in this process: what passes, and what fails with which hint."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import msgspec
import pytest

from arena.authoring.conformance import Hint, Step, StepOutcome, StepStatus
from arena.authoring.conformance.bot import BotUnderTest
from arena.authoring.conformance.run import quantile
from arena.authoring.conformance.wire import Line
from arena.games.catalogue import GAMES
from protocol.messages import Limits
from tests.support.in_memory_bot import LIMITS, InMemoryBot, Message, check

pytestmark = pytest.mark.virtual_time(limit_s=900)

CONFORMANCE = "arena.authoring.conformance"
GAME = "ace_king_queen"
MEND_HELLO = "skipped mend step 2 first"
MEND_PLAY = "skipped it must play first: mend step 5"
NOT_BACK = "skipped the bot has not come back; start it, and the check, again"
OK, SKIPPED, INCOMPLETE = StepStatus.OK, StepStatus.SKIPPED, StepStatus.INCOMPLETE


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory all that a bot has to say is said at once."""
    monkeypatch.setattr(f"{CONFORMANCE}.steps._END_S", 0.05)
    monkeypatch.setattr(f"{CONFORMANCE}.steps._LINGER_S", 0.002)


def of(told: list[StepOutcome], step: Step) -> StepOutcome:
    return next(outcome for outcome in told if outcome.step is step)


def failed(told: list[StepOutcome]) -> list[str]:
    """`STEP HINT` of every step that failed."""
    return [f"{each.step} {each.hint}" for each in told if each.status is StepStatus.FAILED]


# ---- Bots that behave, and those that do not


def broken(**methods: Callable[..., Any]) -> type[InMemoryBot]:
    """A bot with other methods."""
    return type("Broken", (InMemoryBot,), methods)


def instead(kind: str, said: Message) -> type[InMemoryBot]:
    """A bot that says something else after a message of a kind."""
    take = InMemoryBot.take
    return broken(take=lambda bot, heard: said if heard["type"] == kind else take(bot, heard))


def closed_as(change: Callable[[int | None], int | None]) -> type[InMemoryBot]:
    """A bot that takes another close code for the one that came; after 0 it stays away."""
    return broken(closed=lambda bot, code: InMemoryBot.closed(bot, change(code)))


def coming_back(**said: Any) -> type[InMemoryBot]:
    """A bot that says this when it comes back."""

    def hello(bot: InMemoryBot) -> Message:
        message = InMemoryBot.hello(bot)
        return {**message, **said} if "resume" in message else message

    return broken(hello=hello)


READY = {"type": "ready", "match": "m", "nonce": "n"}
POKER = {"type": "hello", "protocol": 1, "name": "memory", "games": ["three_card_poker"]}
INSTRUCT = {"type": "instruct", "protocol": 1, "token": "t", "action": "status"}
MUTE = broken(answer=lambda bot, ask, value: None)
GONE = closed_as(lambda code: 0 if code is None else code)
WRONG_ASK = broken(
    answer=lambda bot, ask, value: InMemoryBot.answer(bot, {**ask, "ask": "1"}, value)
)
WITHOUT_NONCE = broken(ready=lambda bot, match: {**READY, "match": match["match"], "nonce": ""})
TRUTHS = broken(choose=lambda bot, legal: True, hello=lambda bot: POKER)
FOR_ALL_GAMES = partial(InMemoryBot, games=[*GAMES])
NEWER = partial(InMemoryBot, protocol=2)
FOR_GIN = partial(InMemoryBot, games=["gin_rummy"])
NO_KNOCK = "did not come up in 1 match: a turn with a knock"
POOR = Limits(decision_ms=50, bank_ms=100)
NOBODY = broken(connect=lambda bot: None)
# It reads messages with its own eyes.
READS_TYPE_FIRST = broken(
    take=lambda bot, said: InMemoryBot.take(bot, said) if next(iter(said)) == "type" else None
)


class AnswersLate(InMemoryBot):
    """Takes its time for each question."""

    late_s, is_patient = 0.13, True

    def answer(self, ask: Message, value: Any) -> Message | None:
        later, wire = super().answer(ask, value), self.wire
        if ask["type"] != "ask":
            return later

        def say() -> None:
            if self.wire is wire or self.is_patient:
                self.say(later)

        asyncio.get_running_loop().call_later(self.late_s, say)
        return None


class Thinks(AnswersLate):
    """Takes its time, within the limits."""

    late_s, is_patient = 0.005, False


class Once(InMemoryBot):
    """Answers each question once."""

    def __init__(self, **said: Any) -> None:
        super().__init__(**said)
        self.seen: set[str] = set()

    def answer(self, ask: Message, value: Any) -> Message | None:
        is_new = ask["type"] != "ask" or ask["ask"] not in self.seen
        self.seen.add(ask["ask"])
        return super().answer(ask, value) if is_new else None


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


class Spams(InMemoryBot):
    def answer(self, ask: Message, value: Any) -> Message | None:
        answer = super().answer(ask, value)
        self.say(*[{**READY, "match": ask["match"]}] * 30)
        return answer


class Visited(InMemoryBot):
    """Somebody else connects as well, each time, and says another name, or nothing."""

    def closed(self, code: int | None) -> None:
        for name in ("somebody", None):
            stranger = Stranger(name=name)
            stranger.endpoint = self.endpoint
            asyncio.get_running_loop().call_soon(stranger.connect)
        super().closed(code)


class Stranger(InMemoryBot):
    def say(self, *messages: Message | None) -> None:
        if self.said["name"] is not None:
            super().say(*messages)

    def closed(self, code: int | None) -> None:
        """It has gone."""


class LateComer(InMemoryBot):
    def connect(self) -> None:
        if self.wire is None:
            self.wire = cast(Any, self)  # once
            asyncio.get_running_loop().call_later(0.15, super().connect)
        else:
            super().connect()


def spamming(unanswered: int) -> Limits:
    return msgspec.structs.replace(LIMITS, unanswered=unanswered)


def since_another_arena() -> InMemoryBot:
    memory = InMemoryBot()
    memory.session = "of another arena"
    return memory


@pytest.mark.parametrize(
    ("bot", "options"),
    [
        (InMemoryBot, {}),
        (broken(choose=lambda bot, legal: legal[0]), {}),  # is not stubborn
        (broken(choose=lambda bot, legal: legal[-1]), {}),
        (since_another_arena, {}),
        (Visited, {}),
        (Remembers, {}),
        (Thinks, {"rounds": 3}),
        (Spams, {"limits": spamming(1_000_000)}),
    ],
)
async def test_a_bot_that_behaves_passes(bot: Callable[[], InMemoryBot], options: Any) -> None:
    checked, told = await check(bot(), **options)

    assert failed(told) == []
    assert checked.passed


async def test_a_bot_for_all_games_passes_each_step_of_each() -> None:
    checked, told = await check(FOR_ALL_GAMES(tables=3, batch=True))

    assert checked.passed
    assert checked.name == "memory"
    assert checked.games == tuple(GAMES)
    assert [*checked.steps] == told
    assert [outcome.number for outcome in told] == [*range(1, len(told) + 1)]
    skipped = [outcome.step for outcome in told if outcome.status is SKIPPED]
    assert skipped == [Step.REFUSED_HELLO, Step.LATE_ARENA]
    shapes = {f"legal {name}": game.vocabulary.legal_shapes for name, game in GAMES.items()}
    found = {each.name: each.about for each in told if each.step is Step.LEGAL}
    assert found == {name: f"{len(legal)} shapes" for name, legal in shapes.items()}


ALONE, FIRST, AMONG = "alone", "first", "among others"


@pytest.mark.parametrize(
    ("bot", "where", "steps"),
    [
        (broken(choose=lambda bot, legal: "raise"), ALONE, "play illegal, legal illegal"),
        (instead("welcome", READY), ALONE, "hello out-of-turn"),
        (broken(hello=lambda bot: INSTRUCT), ALONE, "hello not-hello"),
        (Once, ALONE, "repeated-question repeated, lost-connection forgets"),
        (closed_as(lambda code: None if code == 1000 else code), ALONE, "close stays"),
        (RepeatsWhatWasRefused, ALONE, "refusal refusal"),
        (closed_as(lambda code: 0 if code == 1012 else code), ALONE, "lost-session not-back"),
        (TRUTHS, FIRST, "encoding strings"),
        (WRONG_ASK, FIRST, "encoding wrong-ask"),
        (instead("match", {"type": "goodbye"}), FIRST, "encoding left"),
        # The same fault is no fault of the later step, which has a hint of its own.
        (WITHOUT_NONCE, FIRST, "encoding no-message, unknown-fields no-message"),
        (READS_TYPE_FIRST, FIRST, "encoding json-library"),
        (StumblesOverThePast, FIRST, "lost-connection forgets"),
        (AnswersLate, AMONG, "play slow"),
        (coming_back(resume=None), AMONG, "lost-connection no-resume"),
        (ResumesItsFirstSession, AMONG, "lost-connection old-session"),
        (coming_back(name="other"), AMONG, "lost-connection same-name"),
    ],
)
async def test_a_fault_fails_its_own_steps_alone(
    bot: Callable[[], InMemoryBot], where: str, steps: str
) -> None:
    checked, told = await check(bot())
    found, expected = failed(told), steps.split(", ")
    among = [each for each in found if each in expected]

    assert not checked.passed
    assert expected == {ALONE: found, FIRST: found[: len(expected)], AMONG: among}[where]


# ---- What is told of each step


@pytest.mark.parametrize(
    ("bot", "options", "patches", "lines"),
    [
        (FOR_ALL_GAMES, {"games": ("blackjack",)}, {}, ["play blackjack ok 20 rounds"]),
        (InMemoryBot, {"games": ("blackjack",)}, {}, ["hello failed games it offers ace_king"]),
        (NEWER, {}, {}, ["hello failed version", f"encoding {MEND_HELLO}", f"close {MEND_HELLO}"]),
        (MUTE, {}, {}, [f"play {GAME} failed silent", f"lost-connection {MEND_PLAY}", "close ok"]),
        (GONE, {}, {}, ["lost-connection failed not-back", f"lost-session {NOT_BACK}"]),
        (lambda: InMemoryBot(tables=500), {}, {}, ["tables ok 64 matches at once, of 500 that"]),
        (InMemoryBot, {}, {}, ["batch skipped its `hello`", "tables skipped its `hello`"]),
        (Spams, {"limits": spamming(20)}, {}, ["encoding failed out-of-turn"]),
        (AnswersLate, {"limits": POOR}, {}, [f"play {GAME} failed slow one that took 130 ms when"]),
        (FOR_GIN, {}, {"steps._MOST_MATCHES": 1}, [f"legal gin_rummy ok {NO_KNOCK}"]),
        (NOBODY, {}, {"bot._AWAITED_MS": 50}, ["starts failed not-connected", "hello skipped"]),
        # A bot that is awaited may come later than any step may take.
        (LateComer, {"rounds": 1}, {"run._STEP_S": 0.05, "bot._AWAITED_MS": 5_000}, ["starts ok"]),
        # When the whole has taken too long, only the end is tried.
        (InMemoryBot, {}, {"run._TOTAL_S": 0.0}, ["tables incomplete the check has", "close ok"]),
        (Thinks, {"rounds": 1_000}, {"run._STEP_S": 0.3}, [f"play {GAME} incomplete not done"]),
    ],
)
async def test_what_is_told_of_a_step(
    monkeypatch: pytest.MonkeyPatch,
    bot: Callable[[], InMemoryBot],
    options: Any,
    patches: dict[str, float],
    lines: list[str],
) -> None:
    for name, value in patches.items():
        monkeypatch.setattr(f"{CONFORMANCE}.{name}", value)
    checked, told = await check(bot(), **options)
    shown = [f"{o.name} {o.status} {o.hint or o.about} {o.came or ''}" for o in told]

    assert [line for line in lines if not any(each.startswith(line) for each in shown)] == [], shown
    assert checked.passed == all(outcome.status in (OK, SKIPPED) for outcome in told)


async def test_what_a_slow_bot_has_no_time_for_is_not_complete_and_not_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(f"{CONFORMANCE}.steps._PLAY_S", 0.1)
    monkeypatch.setattr(f"{CONFORMANCE}.steps._LEGAL_S", 0.0)
    checked, told = await check(Thinks(), rounds=200)
    play, legal = of(told, Step.PLAY), of(told, Step.LEGAL)

    assert not checked.passed
    assert {outcome.status for outcome in told} == {OK, SKIPPED, INCOMPLETE}
    assert [each for each in told if each.status is INCOMPLETE] == [play, legal]
    assert play.rounds is not None
    assert 0 < play.rounds < 200
    assert play.about.startswith(f"{play.rounds} of 200 rounds, ")
    assert legal.missing == ("open", "respond")


async def test_one_that_dies_between_two_steps_is_not_started_again_in_silence() -> None:
    memory = InMemoryBot()

    def die() -> None:
        wire, memory.wire = memory.wire, None  # somebody starts it again when it is waited for
        assert wire is not None, "it is connected"
        wire.is_open = False
        memory.endpoint.lost(cast(Line, wire))

    _, told = await check(memory, after={Step.PLAY: die})

    assert failed(told) == ["legal leaves-at-over"]


async def test_what_is_being_done_is_told_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{CONFORMANCE}.run._TICK_S", 0.02)
    seen: list[str] = []
    await check(Thinks(), rounds=60, on_progress=seen.append)

    assert any("play ace_king_queen" in text and "of 60 rounds" in text for text in seen)


# ---- Time


@pytest.mark.parametrize(
    ("bot", "hint"),
    [
        (Once, Hint.REPEATED),
        (GONE, Hint.NOT_BACK),
        (closed_as(lambda code: 0 if code == 4001 else code), Hint.SESSION_REFUSED),
        (broken(ready=lambda bot, match: None), Hint.NOT_READY),
        (MUTE, Hint.SILENT),
    ],
)
async def test_a_fault_is_told_within_half_a_minute(
    bot: Callable[[], InMemoryBot], hint: Hint
) -> None:
    _, told = await check(bot(), limits=Limits(), rounds=3)
    first = next(at for at, outcome in enumerate(told) if outcome.status is StepStatus.FAILED)

    assert told[first].hint is hint
    assert sum(outcome.took_ms for outcome in told[: first + 1]) < 30_000


@pytest.mark.parametrize("busy", [("used_ms", 0.6), ("waited_ms", 0.6), ("used_ms", 0.1)])
async def test_one_that_computes_or_has_no_core_is_waited_for_as_an_arena_does(
    monkeypatch: pytest.MonkeyPatch, busy: tuple[str, float]
) -> None:
    monkeypatch.setattr(BotUnderTest, "is_metered", True)
    now, (measured, share) = asyncio.get_running_loop().time, busy
    monkeypatch.setattr(BotUnderTest, measured, lambda bot: now() * share * 1000)
    monkeypatch.setattr(AnswersLate, "late_s", 20)
    _, told = await check(AnswersLate(), limits=Limits(), rounds=1)

    assert (of(told, Step.ENCODING).hint is Hint.SILENT) == (share < 0.5)


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


async def test_what_its_decisions_took_is_told() -> None:
    checked, told = await check(AnswersLate(), limits=msgspec.structs.replace(LIMITS, hard_ms=200))
    report = checked.report

    assert of(told, Step.PLAY).about == f"20 rounds, {report.decisions} decisions"
    assert [report.p50_ms, report.p99_ms, report.max_ms] == pytest.approx([130] * 3)
    assert (report.memory_mib, report.cpu_ms) == (None, None)


def test_quantiles() -> None:
    times = [float(number) for number in range(100)]

    assert quantile([], 0.5) is None
    assert quantile([7.0], 0.99) == 7.0
    assert [quantile(times, share) for share in (0.5, 0.99, 1.0)] == [50, 99, 99]


# ---- What a bot is sent


async def test_who_asks_for_the_past_is_told_it_under_the_ids_of_an_arena() -> None:
    memory, ids = Remembers(), set[str]()
    take = memory.take

    def noting(message: Message) -> Message | None:
        ids.add(message.get("match") or "")
        return take(message)

    memory.take = noting  # type: ignore[method-assign]
    await check(memory)

    assert memory.past
    assert all(past["ask"].startswith(f"{past['match']}:") for past in memory.past)
    assert all("answer" in past for past in memory.past)
    assert all(re.fullmatch(r"[0-9a-f]{8}-\d+\.\d", match) for match in ids - {""}), ids
    assert len({match.split("-")[0] for match in ids - {""}}) == 1


async def test_it_gets_as_many_tables_as_it_says() -> None:
    memory, open_now, most = InMemoryBot(tables=7), set[str](), 0
    take = memory.take

    def counting(message: Message) -> Message | None:
        nonlocal most
        change = {"match": open_now.add, "over": open_now.discard}.get(message["type"])
        if change is not None:
            change(message["match"])
        most = max(most, len(open_now))
        return take(message)

    memory.take = counting  # type: ignore[method-assign]
    await check(memory)

    assert most == 7
