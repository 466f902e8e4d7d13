"""The bridge without a network or a process: what it passes on between two fake ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

import bots.bridge
from bots.bridge import Bridge
from bots.line_program import LineProgram, ProgramFailed
from bots.reach import NotAdmitted
from tests.support.bot_transcripts import BotTranscript, transcripts
from tests.support.scripted_connection import ScriptedConnection, ask, dialled, match, welcome

pytestmark = pytest.mark.virtual_time

SETTLED_S = 0.01
"""Of the clock that jumps: after that all that could be done at once is done."""

ANSWER = '{"type":"answer","match":"m","ask":"m:1","value":"%s"}'
LINES: dict[str, str | None] = {
    "hello": '{"type":"hello","protocol":1,"name":"sh","games":["ace_king_queen"]}',
    "ready": '{"type":"ready","match":"m","nonce":"n"}',
    "ready k": '{"type":"ready","match":"k","nonce":"n"}',
    "bet": ANSWER % "bet",
    "check": ANSWER % "check",
    "goodbye": '{"type":"goodbye"}',
    "goodbye finish": '{"type":"goodbye","finish":true}',
    "END": None,
}
"""What a program says; at its end nothing comes any more."""
HELLO, READY = str(LINES["hello"]), str(LINES["ready"])
FLOOD = ["x"] * 1_000


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


class World:
    """A program, a bridge and the connections that it gets, one after another."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.program = FakeProgram()
        self.events: list[str] = []
        self._bridge: Bridge | None = None
        self._monkeypatch = monkeypatch
        monkeypatch.setattr(bots.bridge, "LineProgram", lambda words: self.program)

    def says(self, *lines: str | None) -> Callable[[], object]:
        """A step: the program says this now."""
        return lambda: self.program.say(*lines)

    def bridge(self, **options: Any) -> Bridge:
        """Make the bridge that is then run."""
        self._bridge = Bridge("ws://arena", ("sh",), **{"on_event": self.events.append, **options})
        return self._bridge

    async def carry(self, *connections: FakeConnection, **options: Any) -> None:
        dialled(self._monkeypatch, connections)
        await (self._bridge or self.bridge(**options)).run()


class BridgeTranscript(BotTranscript):
    """A case of `bridge.cases`: after each step all that follows from it is done."""

    chosen = ()

    def says(self, word: str) -> Callable[[], object]:
        said: Any = {"nothing": [], "flood": FLOOD}.get(word)
        if said is None and word.startswith("["):
            said = [f"[{','.join(str(LINES[one]) for one in word.strip('[]').split(', '))}]"]
        return lambda: self.world.program.say(*([LINES[word]] if said is None else said))

    async def play(self, world: World) -> None:
        self.world = world
        self.stop = lambda: running.cancel()
        connections = self.lines_to(FakeConnection, FakeConnection)
        with ExitStack() as ending:
            for text in self.all("raises"):
                error, _, why = text.partition(" ")
                ending.enter_context(pytest.raises(ERRORS[error], match=why or None))
            self.speaker = world.bridge(**self.options())
            running = asyncio.ensure_future(world.carry(*connections))
            await running
        self.check([])
        if self.all("hears"):
            assert world.program.kinds() == self.all("hears")[0].split()
        assert world.program.has_ended


ERRORS: dict[str, type[BaseException]] = {
    "CancelledError": asyncio.CancelledError,
    "NotAdmitted": NotAdmitted,
}


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


@transcripts(BridgeTranscript, Path(__file__).with_name("bridge.cases"))
async def test_transcript(transcript: BridgeTranscript, world: World) -> None:
    await transcript.play(world)


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


# --- the end ---


@pytest.mark.parametrize(("status", "told"), [(3, 3), (0, 1)])
async def test_a_program_that_ends_is_a_crash_with_its_status(
    world: World, status: int, told: int
) -> None:
    """One that ends with 0 in the middle has failed, too."""
    world.program.status = status
    arena = FakeConnection(welcome(), match(), world.says(READY, None))
    with pytest.raises(ProgramFailed) as failed:
        await world.carry(arena)

    assert str(failed.value) == f"the program has ended with status {status}"
    assert failed.value.status == told
    assert arena.closed == (1011, f"failed: {failed.value}")


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
    asyncio.get_running_loop().call_later(after_s, world.program.say, None)
    with pytest.raises(ProgramFailed, match="was ended by SIGKILL") as failed:
        await world.carry()

    assert failed.value.status == 137
    assert any("does it flush its output?" in line for line in world.events) == is_asked


# --- leaving after the matches that are on (J10) ---
