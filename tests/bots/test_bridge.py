"""The bridge without a network or a process: what it passes on between two fake ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import bots.bridge
from bots.bridge import Bridge
from bots.line_program import LineProgram, ProgramFailed
from bots.reach import NotAdmitted
from protocol.messages import Refused
from tests.support.scripted_connection import (
    STANDING_LINE,
    ScriptedConnection,
    Step,
    ask,
    competition_over,
    dialled,
    match,
    over,
    welcome,
)

pytestmark = pytest.mark.virtual_time

SETTLED_S = 0.01
"""Of the clock that jumps: after that all that could be done at once is done."""

HELLO = '{"type":"hello","protocol":1,"name":"sh","games":["ace_king_queen"]}'
READY = '{"type":"ready","match":"m","nonce":"n"}'
BET, CHECK = (
    f'{{"type":"answer","match":"m","ask":"m:1","value":"{value}"}}' for value in ("bet", "check")
)
END = None


class FakeProgram:
    """A program that says what it is told to say, and notes what it hears."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.read_lines = 0
        self.status = 0
        self.has_ended = False
        self.reads = asyncio.Event()
        self.reads.set()
        self._says: asyncio.Queue[str | None] = asyncio.Queue()
        self.say(HELLO)

    def say(self, *lines: str | None) -> None:
        for line in lines:
            self._says.put_nowait(line)

    async def start(self, environment: dict[str, str]) -> None:
        self.environment = environment

    async def read(self) -> bytes | None:
        line = await self._says.get()
        self.read_lines += 1
        return None if line is None else line.encode()

    async def write(self, message: bytes) -> None:
        await self.reads.wait()
        self.heard.append(msgspec.json.decode(message))

    async def end(self) -> int:
        self.has_ended = True
        return self.status

    def failure(self, status: int) -> ProgramFailed:
        return LineProgram(("sh",)).failure(status)

    def kinds(self) -> list[str]:
        return [message["type"] for message in self.heard]


class FakeConnection(ScriptedConnection):
    """One connection; between two steps all that follows from the first is done."""

    async def breathe(self) -> None:
        await asyncio.sleep(SETTLED_S)

    def kinds(self) -> list[str]:
        return [message["type"] for message in self.messages()]

    def values(self) -> list[str]:
        return [one["value"] for one in self.said("answer")]


class World:
    """A program, a bridge and the connections that it gets, one after another."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.program = FakeProgram()
        self.events: list[str] = []
        self._monkeypatch = monkeypatch
        monkeypatch.setattr(bots.bridge, "LineProgram", lambda words: self.program)

    def says(self, *lines: str | None) -> Callable[[], object]:
        """A step: the program says this now."""
        return lambda: self.program.say(*lines)

    async def carry(self, *connections: FakeConnection, **options: Any) -> None:
        dialled(self._monkeypatch, connections)
        self.bridge = Bridge("ws://arena", ("sh",), on_event=self.events.append, **options)
        await self.bridge.run()


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


async def test_lines_become_frames_and_frames_lines(world: World) -> None:
    arena = FakeConnection(
        welcome(), [match(), ask()], world.says(f"[{READY},{BET}]"), over(), 1000
    )
    await world.carry(arena)

    assert world.program.kinds() == ["welcome", "match", "ask", "over"]
    assert arena.kinds() == ["hello", "ready", "answer"]
    assert world.events[-1] == "the arena has closed"
    assert world.program.has_ended


async def test_a_message_of_a_later_release_is_passed_on_as_it_is(world: World) -> None:
    news = b'{"type": "weather",  "is": "fine"}'
    await world.carry(FakeConnection(welcome(), news, 1000))

    assert world.program.heard[1] == {"type": "weather", "is": "fine"}


async def test_hello_is_completed(world: World) -> None:
    arena = FakeConnection(welcome(), 1000)
    await world.carry(arena, name="ann", token="secret", tables=4)

    [hello] = arena.said("hello")
    assert (hello["name"], hello["token"], hello["tables"]) == ("ann", "secret", 4)
    assert hello["batch"] is True
    assert hello["client"].endswith("stdio")
    assert world.program.environment == {"ARENA_NAME": "ann"}


async def test_what_hello_says_itself_stays(world: World) -> None:
    arena = FakeConnection(welcome(), 1000)
    await world.carry(arena, batch=False)

    [hello] = arena.said("hello")
    assert (hello["name"], hello["tables"], hello["batch"]) == ("sh", 1, False)
    assert world.program.environment == {}


# --- a lost connection ---


async def test_J7_after_a_lost_connection_all_is_heard_once_and_said_again(world: World) -> None:
    first = FakeConnection(welcome("one"), match(), ask(), world.says(READY, BET), 1006)
    second = FakeConnection(welcome("two"), match(), ask(), ask(2), over("m"), over("m"), 1000)
    await world.carry(first, second)

    assert second.said("hello")[0]["resume"] == "one"
    assert second.kinds() == ["hello", "ready", "answer"]
    assert second.said("ready")[0]["nonce"] == "n"
    assert second.values() == ["bet"]
    asked = [one["ask"] for one in world.program.heard if one["type"] == "ask"]
    assert asked == ["m:1", "m:2"]
    assert world.program.kinds() == ["welcome", "match", "ask", "ask", "over"]


@pytest.mark.parametrize("is_welcome", [False, True])
async def test_J7_what_the_program_says_while_there_is_no_connection_is_said_when_it_is_asked_again(
    world: World, is_welcome: bool
) -> None:
    first = FakeConnection(welcome(), match(), ask(), world.says(READY), 1006)
    # Not before: until then the arena's clock stands.
    steps: list[Step] = [world.says(BET), welcome()]
    if is_welcome:
        steps.reverse()
    second = FakeConnection(*steps, match(), ask(), lambda: None, 1000)
    await world.carry(first, second)

    assert first.kinds() == ["hello", "ready"]
    assert second.kinds() == ["hello", "ready", "answer"]


async def test_J7_a_program_that_still_thinks_answers_once(world: World) -> None:
    first = FakeConnection(welcome(), match(), world.says(READY), ask(), 1006)
    second = FakeConnection(welcome(), match(), ask(), world.says(BET), 1000)
    await world.carry(first, second)

    assert second.kinds() == ["hello", "ready", "answer"]


async def test_an_answer_that_was_refused_is_not_said_again(world: World) -> None:
    refused = Refused("illegal", "no", "m", "m:1", ("check",))
    first = FakeConnection(welcome(), match(), ask(), world.says(READY, BET), refused, 1006)
    second = FakeConnection(welcome(), match(), ask(), world.says(CHECK), 1000)
    await world.carry(first, second)

    assert first.values() == ["bet"]
    assert second.values() == ["check"]
    assert world.program.kinds().count("refused") == 1


async def test_an_over_of_a_match_that_the_program_does_not_know_is_not_told(world: World) -> None:
    await world.carry(FakeConnection(welcome(), over("x"), 1000))

    assert world.program.kinds() == ["welcome"]


async def test_how_it_stands_when_a_competition_is_over_is_said_and_told(world: World) -> None:
    first = FakeConnection(welcome(), competition_over(), 1006)
    again = FakeConnection(welcome(), competition_over(), 1000)
    await world.carry(first, again)

    assert world.program.heard[-1]["standing"]["rank"] == 2
    assert world.program.kinds().count("over") == 1
    assert world.events.count(STANDING_LINE) == 1


async def test_a_session_that_is_forgotten_takes_its_matches_with_it(world: World) -> None:
    first = FakeConnection(welcome("one"), match(), world.says(READY), ask(), 1006)
    second = FakeConnection(Refused("session", "no such session"), 4001)
    third = FakeConnection(
        welcome("two"),
        world.says(BET),  # to a question of before: it would be out of turn
        match("k"),
        world.says(READY.replace('"m"', '"k"')),
        1000,
    )
    await world.carry(first, second, third)

    assert second.said("hello")[0]["resume"] == "one"
    assert third.said("hello")[0].get("resume") is None
    assert third.kinds() == ["hello", "ready"]
    assert world.program.kinds() == ["welcome", "match", "ask", "match"]


# --- nothing piles up ---


async def test_a_program_that_floods_is_read_no_faster_than_the_arena_reads(world: World) -> None:
    arena = FakeConnection(welcome(), lambda: arena.takes.clear())
    carrying = asyncio.create_task(world.carry(arena))
    await asyncio.sleep(SETTLED_S)
    world.program.say(*["x"] * 1000)
    await asyncio.sleep(1)

    assert world.program.read_lines <= 3  # its hello, what waits, and no more
    carrying.cancel()
    arena.takes.set()
    await asyncio.wait((carrying,))


async def test_an_arena_is_read_no_faster_than_the_program_reads(world: World) -> None:
    world.program.reads.clear()
    arena = FakeConnection(welcome(), match(), *[ask(n) for n in range(1, 100)])
    carrying = asyncio.create_task(world.carry(arena))
    await asyncio.sleep(1)

    assert arena.frames == 1
    carrying.cancel()
    await asyncio.wait((carrying,))


async def test_a_flood_while_there_is_no_connection_is_dropped(world: World) -> None:
    first = FakeConnection(welcome(), 1006)
    second = FakeConnection(world.says(*["x"] * 1000), welcome(), 1000)
    await world.carry(first, second)

    assert second.kinds() == ["hello"]
    assert world.program.read_lines == 1001


# --- the end ---


@pytest.mark.parametrize(("status", "told"), [(3, 3), (0, 1)])
async def test_a_program_that_ends_is_a_crash_with_its_status(
    world: World, status: int, told: int
) -> None:
    """One that ends with 0 in the middle has failed, too."""
    world.program.status = status
    arena = FakeConnection(welcome(), match(), world.says(READY, END))
    with pytest.raises(ProgramFailed) as failed:
        await world.carry(arena)

    assert str(failed.value) == f"the program has ended with status {status}"
    assert failed.value.status == told
    assert arena.closed == (1011, f"failed: {failed.value}")


async def test_a_program_that_says_goodbye_has_not_failed(world: World) -> None:
    goodbye = world.says('{"type":"goodbye"}', END)
    arena = FakeConnection(welcome(), goodbye, 1000)
    await world.carry(arena)

    assert arena.kinds() == ["hello", "goodbye"]


@pytest.mark.parametrize("does_end", [True, False])
@pytest.mark.parametrize("is_lost_again", [True, False])
async def test_J7_a_goodbye_without_a_connection_is_said_once_it_is_back(
    world: World, does_end: bool, is_lost_again: bool
) -> None:
    goodbye = world.says('{"type":"goodbye"}', *([END] if does_end else []))
    first = FakeConnection(welcome("one"), match(), world.says(READY), 1006)
    lost = FakeConnection(goodbye, 1006)
    back = FakeConnection(*([] if is_lost_again else [goodbye]), welcome("two"))
    await world.carry(first, *([lost] if is_lost_again else []), back)

    assert first.kinds() == ["hello", "ready"]
    assert back.said("hello")[0]["resume"] == "one"
    assert back.kinds() == ["hello", "goodbye"]
    assert world.program.has_ended


async def test_a_goodbye_without_a_connection_is_not_said_in_a_new_session(world: World) -> None:
    forgotten = Refused("session", "no such session")
    goodbye = world.says('{"type":"goodbye"}', END)
    second = FakeConnection(goodbye, forgotten, 4001)
    await world.carry(FakeConnection(welcome("one"), 1006), second)

    assert second.kinds() == ["hello"]


async def test_who_is_stopped_says_goodbye_for_the_program(world: World) -> None:
    arena = FakeConnection(welcome(), match())
    carrying = asyncio.create_task(world.carry(arena))
    await asyncio.sleep(1)
    carrying.cancel()
    await asyncio.wait((carrying,))

    assert carrying.cancelled()
    assert arena.kinds()[-1] == "goodbye"
    assert arena.closed == (1000, "")
    assert world.program.has_ended


async def test_a_hello_that_is_refused_ends_the_program(world: World) -> None:
    refused = Refused("name", "a bot named 'sh' is here already")
    with pytest.raises(NotAdmitted, match="here already") as failed:
        await world.carry(FakeConnection(refused, 4001))

    assert (failed.value.code, failed.value.name) == ("name", "sh")
    assert world.program.has_ended


@pytest.mark.parametrize("line", ["hello", READY, f"[{HELLO},{READY}]", HELLO.replace("1", "true")])
async def test_a_program_that_does_not_begin_with_hello_is_told_so(world: World, line: str) -> None:
    await world.program.read()
    world.program.say(line)
    with pytest.raises(ProgramFailed, match="expected hello as the program's"):
        await world.carry()

    assert world.program.has_ended


@pytest.mark.parametrize(("after_s", "is_asked"), [(4.0, False), (6.0, True)])
async def test_a_program_that_ends_before_its_hello_is_told_with_its_status(
    world: World, after_s: float, is_asked: bool
) -> None:
    await world.program.read()
    world.program.status = -9
    asyncio.get_running_loop().call_later(after_s, world.program.say, END)
    with pytest.raises(ProgramFailed, match="was ended by SIGKILL") as failed:
        await world.carry()

    assert failed.value.status == 137
    assert any("does it flush its output?" in line for line in world.events) == is_asked


# --- leaving after the matches that are on (J10) ---


@pytest.mark.parametrize("knows_finish", [True, False])
@pytest.mark.parametrize("by_program", [True, False])
async def test_J10_it_finishes_the_matches_that_are_on(
    world: World, knows_finish: bool, by_program: bool
) -> None:
    said: list[int] = []
    goodbye = world.says('{"type":"goodbye","finish":true}')
    arena = FakeConnection(
        welcome(finish=knows_finish),
        match(),
        world.says(READY),
        goodbye if by_program else lambda: world.bridge.finish(),
        ask(),
        lambda: said.append(len(arena.said("goodbye"))),
        world.says(BET),
        over(),
        1000,
    )
    await world.carry(arena)
    finish = {"finish": True} if knows_finish else {}

    assert said == [int(knows_finish)]
    assert arena.said("goodbye") == [{"type": "goodbye", **finish}]
    assert arena.values() == ["bet"]
    assert world.program.kinds() == ["welcome", "match", "ask", "over"]
    assert world.events[-1] == "because"


async def test_J10_a_program_that_leaves_while_the_connection_is_away_does_so_later(
    world: World,
) -> None:
    goodbye = world.says('{"type":"goodbye","finish":true}')
    first = FakeConnection(welcome("one", finish=True), match(), 1006)
    back = FakeConnection(goodbye, welcome("two", finish=True), match(), over(), 1006)
    await world.carry(first, back)

    assert back.kinds() == ["hello", "goodbye"]


async def test_J10_without_a_connection_it_ends_at_once(world: World) -> None:
    back = FakeConnection(lambda: world.bridge.finish())
    with pytest.raises(asyncio.CancelledError):
        await world.carry(FakeConnection(welcome(), 1006), back)

    assert world.program.has_ended
