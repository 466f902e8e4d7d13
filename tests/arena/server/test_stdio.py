"""Two pipes in this process: the test holds the bot's ends of them."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.uri import parse_uri

from arena.referee.timers import Timers
from arena.referee.transport import Wire
from arena.sandbox.process import BotPipes
from arena.server import stdio as pipes
from arena.server.stdio import Pipe
from protocol.codec import Encoding
from protocol.errors import Malformed, Oversize, ProtocolError
from protocol.messages import Limits

TIMEOUT_S = 20.0  # nothing here takes more than a moment

LIMITS = Limits(frame_bytes=1024, buffer_bytes=200_000)


class RecordingOwner:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.frames: list[bytes] = []
        self.errors: list[ProtocolError] = []
        self.on_frame: Callable[[Wire], None] = lambda wire: None
        self.on_trivial: Callable[[Wire], None] = lambda wire: None
        self._changed = asyncio.Event()

    async def until(self, word: str, times: int = 1) -> None:
        """Wait until it was told something so many times."""
        while self.told.count(word) < times:
            self._changed.clear()
            await self._changed.wait()

    def _note(self, word: str) -> None:
        self.told.append(word)
        self._changed.set()

    def connected(self, connection: Wire) -> None:
        assert connection.is_open
        self._note("connected")

    def was_read(self, connection: Wire, took_s: float) -> None:
        raise AssertionError("that is for strangers, and who is at a pipe is known")

    def received(self, connection: Wire, frame: bytes, encoding: Encoding, arrived: float) -> None:
        connection.encoding = connection.encoding or encoding  # as the gateway
        assert encoding is connection.encoding
        assert 0 <= asyncio.get_running_loop().time() - arrived < TIMEOUT_S
        self.frames.append(frame)
        self._note("received")
        self.on_frame(connection)

    def misbehaved(self, connection: Wire, error: ProtocolError) -> None:
        self.errors.append(error)
        self._note("misbehaved")
        connection.send(b'"refused"', Encoding.JSON)
        connection.close(1002, str(error))

    def overflowed(self, connection: Wire, waiting: int) -> None:
        assert waiting > LIMITS.buffer_bytes
        self._note("overflowed")

    def ponged(self, connection: Wire, payload: bytes, arrived: float) -> None:
        self._note("ponged")

    def on_trivial_frame(self, connection: Wire) -> None:
        self._note("on_trivial_frame")
        self.on_trivial(connection)

    def drained(self, connection: Wire) -> None:
        self._note("drained")

    def lost(self, connection: Wire) -> None:
        assert not connection.is_open
        self._note("lost")


class FakePipeEnds:
    """The bot's ends of the pipes."""

    def __init__(self, stdin: int, stdout: int) -> None:
        self.stdin, self.stdout = stdin, stdout

    def say(self, data: bytes) -> None:
        assert os.write(self.stdout, data) == len(data)

    async def hear(self) -> bytes:
        """Read to the end of its input."""
        parts = []
        while part := await asyncio.to_thread(os.read, self.stdin, 65536):
            parts.append(part)
        return b"".join(parts)

    def close_stdin(self) -> None:
        os.close(self.stdin)
        self.stdin = -1

    def close_stdout(self) -> None:
        os.close(self.stdout)
        self.stdout = -1

    def end(self) -> None:
        for descriptor in (self.stdin, self.stdout):
            if descriptor >= 0:
                os.close(descriptor)
        self.stdin = self.stdout = -1


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    yield
    gc.collect()  # a transport that was not closed warns now


@asynccontextmanager
async def connected(**limits: int) -> AsyncIterator[tuple[RecordingOwner, Pipe, FakePipeEnds]]:
    """A bot and an arena; afterwards both pipes must be closed, and the owner told once."""
    asyncio.get_running_loop().set_debug(True)
    stdin, to_bot = os.pipe()
    from_bot, stdout = os.pipe()
    owner, bot = RecordingOwner(), FakePipeEnds(stdin, stdout)
    timers = Timers(asyncio.get_running_loop())
    changed = msgspec.structs.replace(LIMITS, **limits)
    pipe = await Pipe.open(owner, changed, timers, "ann", BotPipes(to_bot, from_bot))
    assert (pipe.peer, pipe.encoding, pipe.is_open) == ("ann", Encoding.JSON, True)
    assert (pipe.close_code, pipe.close_reason, pipe.min_rtt_ms) == (None, "", None)
    assert not pipe.has_link
    pipe.ping(b"nothing comes of it")
    try:
        yield owner, pipe, bot
    finally:
        bot.end()
        pipe.cut()
        await owner.until("lost")
        for descriptor in (to_bot, from_bot):
            with pytest.raises(OSError, match="descriptor"):
                os.fstat(descriptor)
    assert owner.told[0] == "connected"
    assert owner.told.count("lost") == 1
    assert owner.told[-1] == "lost"


# --- lines ---

ROWS = {
    "a line is a frame both ways": (
        r"""say={"name":"Zo\xc3\xab"}\n until=received sends={"a":1} sends={"b":2} close
        hears={"a":1}\n{"b":2}\n > {"name":"Zo\xc3\xab"}"""
    ),
    "lines may come in any pieces": (
        r"""drips=[1]\n[2]\n say=[3]\n[4]\n[ until=received*4 say=5]\n until=received*5
        > [1] [2] [3] [4] [5]"""
    ),
    "the lines of windows are lines": (
        r"say=\xef\xbb\xbf[1]\r\n\x20\x20[2]\x20\r\n until=received*2 trifles=0 > [1] [2]"
    ),
    "empty lines are no frames but counted": (
        r"say=\n\r\n\x20\t\x20\n[1]\n until=received trifles=3 > [1]"
    ),
    "what is no json is for the codec to refuse": (
        r"say=hello\n\xff\0\n until=received*2 trifles=0 > hello \xff\0"
    ),
    "the longest line is a frame": rf"say={'x' * 1024}\n until=received > {'x' * 1024}",
    **{
        f"a line that is too long is refused and the bot hears it: {end}": (
            rf"""say=[1]\n{"x" * 1025}{end} until=misbehaved closed hears="refused"\n
            error=expected_frames_of_at_most_1024_bytes,_got_a_line_of_1025_or_more > [1]"""
        )
        for end in ("", r"\n[1]\n")
    },
    # --- the end ---
    "the end of the bot's output is a lost connection": (
        r"say=[1]\n[2 ends=output until=lost hears= > [1]"
    ),
    "the last words of a bot that has closed its input are heard": (
        r"ends=input deaf sends=[0] say=[1]\n until=received ends=output until=lost > [1]"
    ),
    "a bot that has closed its input and goes on is cut": (
        r"soon ends=input say=[1]\n until=received hello until=lost goes_on > [1]"
    ),
    "after a close nothing is sent and nothing heard": (
        r"""sends="bye" close close sends="more" say=[1]\n hears="bye"\n ends=output until=lost close
        sends="more" told=connected,lost"""
    ),
    "what follows a frame that closed the connection does not count": (
        r"answers say=[1]\n[2]\n hears= > [1]"
    ),
    "a bot that writes on after a close is cut": "soon close goes_on until=lost",
    "a cut can follow a close at once and be repeated": (
        "close cut cut until=lost told=connected,lost"
    ),
    "also while much waits": "backlog close cut cut until=lost told=connected,lost",
    # --- rests ---
    "who rests is read later and loses nothing, and the latest counts": (
        r"rest=1000 rest=0.05 say=1\n2\n turns told=connected until=received*2 > 1 2"
    ),
    "a close ends a rest": "rest=1000 close ends=output until=lost",
}
"""What a bot and the arena do, word by word, and the frames that came of it.

A bot says something, in `drips` byte by byte, `ends` a stream of its own, or `goes_on` until it is
cut; the arena `answers` a frame by a close. `soon` makes its patience short.
"""


def bytes_in(word: str) -> bytes:
    return word.encode().decode("unicode_escape").encode("latin-1")


class PipeStage:
    """Does what the words of a case say."""

    def __init__(self, owner: RecordingOwner, pipe: Pipe, bot: FakePipeEnds) -> None:
        self.owner, self.pipe, self.bot = owner, pipe, bot

    async def does(self, word: str) -> None:
        owner, pipe, bot = self.owner, self.pipe, self.bot
        name, _, about = word.partition("=")
        match name:
            case "say":
                bot.say(bytes_in(about))
            case "drips":
                for byte in bytes_in(about):
                    bot.say(bytes([byte]))
                    await asyncio.sleep(0)
            case "goes_on":
                with suppress(BrokenPipeError):
                    while True:
                        bot.say(b"[1]\n")
                        await asyncio.sleep(0.001)
            case "ends":
                (bot.close_stdin if about == "input" else bot.close_stdout)()
            case "hears":
                assert await bot.hear() == bytes_in(about)
            case "sends":
                pipe.send(about.encode(), Encoding.JSON)
            case "rest":
                pipe.rest(asyncio.get_running_loop().time() + float(about))
            case "close":
                pipe.close(1000, "the arena has closed")
            case "cut" | "hello":
                (pipe.cut if name == "cut" else pipe.hello_received)()
            case "answers":
                owner.on_frame = lambda wire: wire.close(1000)
            case "backlog":
                while not pipe.is_behind:
                    pipe.send(b"x" * 10_000, Encoding.JSON)
            case "deaf":
                while pipe._outward is not None:
                    await asyncio.sleep(0)
            case "turns":
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            case "until":
                what, _, times = about.partition("*")
                await owner.until(what, int(times or 1))
            case "closed":
                assert not pipe.is_open
            case "error":
                assert [*map(str, owner.errors)] == [about.replace("_", " ")]
                assert isinstance(owner.errors[0], Oversize)
            case "trifles":
                assert owner.told.count("on_trivial_frame") == int(about)
            case "told":
                assert ",".join(owner.told) == about
            case _:
                raise AssertionError(word)


@pytest.mark.parametrize("title", ROWS)
async def test_what_goes_over_pipes(title: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words, _, frames = " ".join(ROWS[title].split()).partition(" > ")
    failures: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda loop, context: failures.append(context))
    if words.startswith("soon "):
        monkeypatch.setattr(pipes, "_CLOSE_S", 0.05)
    async with connected() as (owner, pipe, bot):
        for word in words.removeprefix("soon ").split():
            await PipeStage(owner, pipe, bot).does(word)

    assert owner.frames == [bytes_in(frame) for frame in frames.split()]
    assert failures == []


async def test_a_flood_of_empty_lines_takes_no_longer_than_its_budget() -> None:
    """A worker that stands still for a second charges no bot with its time."""
    async with connected() as (owner, pipe, _bot):
        pipe.data_received(b"\n" * 1_000_000 + b" \n" * 100_000 + b"[1]\n")

    assert owner.frames == [b"[1]"]
    assert owner.told.count("on_trivial_frame") == 11 * Limits().unanswered


async def test_a_long_line_in_drips_is_not_gathered_beyond_the_limit() -> None:
    async with connected() as (owner, pipe, bot):
        while "misbehaved" not in owner.told:
            bot.say(b"x" * 100)
            await asyncio.sleep(0)
            assert len(pipe._partial) <= 1024
        bot.say(b"x" * 10_000 + b"\n[1]\n")
        await bot.hear()
    assert owner.frames == []
    assert owner.told.count("misbehaved") == 1


async def test_a_bot_that_does_not_read_is_cut_when_too_much_waits() -> None:
    async with connected() as (owner, pipe, _bot):
        frame, sent = b"x" * 10_000, 0
        while pipe.is_open:
            pipe.send(frame, Encoding.JSON)
            sent += len(frame)
            assert sent < 10_000_000

        assert sent > LIMITS.buffer_bytes
        pipe.send(frame, Encoding.JSON)
        await owner.until("lost")

    assert owner.told == ["connected", "overflowed", "lost"]


async def test_a_bot_that_is_behind_can_catch_up() -> None:
    async with connected() as (owner, pipe, bot):
        while not pipe.is_behind:
            pipe.send(b"x" * 10_000, Encoding.JSON)
        hearing = asyncio.create_task(bot.hear())
        await owner.until("drained")

        assert not pipe.is_behind
        assert pipe.is_open
        pipe.close(1000)
        heard = await hearing
        assert heard == (b"x" * 10_000 + b"\n") * (len(heard) // 10_001)


async def test_descriptors_that_are_no_pipes_are_closed(tmp_path: Path) -> None:
    stdin, to_bot = os.pipe()
    (tmp_path / "file").touch()
    file = os.open(tmp_path / "file", os.O_RDONLY)
    owner, timers = RecordingOwner(), Timers(asyncio.get_running_loop())
    with pytest.raises(ValueError, match="Pipe transport is for pipes"):
        await Pipe.open(owner, LIMITS, timers, "ann", BotPipes(to_bot, file))
    for descriptor in (to_bot, file):
        with pytest.raises(OSError, match="descriptor"):
            os.fstat(descriptor)
    os.close(stdin)
    await asyncio.sleep(0)

    assert owner.told == []
    gc.collect()


# --- a WebSocket over the pipes, as the byte pump in a sandbox carries it ---


class FakeWebSocketBot:
    """A client of the library at the bot's ends of the pipes."""

    def __init__(self, bot: FakePipeEnds) -> None:
        self._bot = bot
        self.protocol = ClientProtocol(parse_uri("ws://127.0.0.1:1"), max_size=None)

    @property
    def close_code(self) -> int | None:
        """The one that it was closed with."""
        close = self.protocol.close_rcvd
        return None if close is None else close.code

    async def connect(self) -> None:
        self.protocol.send_request(self.protocol.connect())
        self.flush()
        self.protocol.receive_data(await asyncio.to_thread(os.read, self._bot.stdin, 65536))
        [answer] = self.protocol.events_received()
        assert isinstance(answer, Response)

    def flush(self) -> None:
        self._bot.say(b"".join(self.protocol.data_to_send()))

    async def hear(self) -> list[bytes]:
        """What it has heard at the end of its input."""
        self.protocol.receive_data(await self._bot.hear())
        return [
            bytes(event.data)
            for event in self.protocol.events_received()
            if isinstance(event, Frame) and event.opcode is not Opcode.CLOSE
        ]


@pytest.mark.parametrize("encoding", Encoding)
async def test_who_asks_for_a_websocket_has_one(encoding: Encoding) -> None:
    async with connected() as (owner, pipe, bot):
        client = FakeWebSocketBot(bot)
        await client.connect()
        send = (
            client.protocol.send_text if encoding is Encoding.JSON else client.protocol.send_binary
        )
        send(b"[1]")
        send(b"[", fin=False)
        client.protocol.send_ping(b"between")
        client.protocol.send_continuation(b"2]", fin=True)
        client.flush()
        await owner.until("received", 2)
        assert pipe.encoding is encoding
        pipe.send(b"[3]", encoding)
        pipe.close(1002, "for those who can be told")

        assert await client.hear() == [b"between", b"[3]"]
        assert client.close_code == 1000
    assert owner.frames == [b"[1]", b"[2]"]
    assert owner.told.count("on_trivial_frame") == 2
    assert pipe.crash is None


@pytest.mark.parametrize(
    ("sent", "error", "code"),
    [
        (b"\x81\xfe\x04\x01abcd" + bytes(1025), Oversize, 1009),
        (b"\x81\x01x", Malformed, 1002),
        (b"\xc1\x81abcdx", Malformed, 1002),
        (b"\x80\x81abcdx", Malformed, 1002),
    ],
    ids=["too long", "not masked", "compressed", "goes on with nothing"],
)
async def test_what_is_no_frame_is_refused(
    sent: bytes, error: type[ProtocolError], code: int
) -> None:
    async with connected() as (owner, pipe, bot):
        client = FakeWebSocketBot(bot)
        await client.connect()
        bot.say(sent)
        await owner.until("misbehaved")

        assert not pipe.is_open
        assert await client.hear() == [b'"refused"']
        assert client.close_code == code
    assert [type(one) for one in owner.errors] == [error]


@pytest.mark.parametrize(("code", "crash"), [(1000, None), (1011, "by zero")])
async def test_who_closes_its_websocket_hears_the_end(code: int, crash: str | None) -> None:
    async with connected() as (owner, pipe, bot):
        client = FakeWebSocketBot(bot)
        await client.connect()
        client.protocol.send_close(code, "by zero")
        client.flush()

        assert await client.hear() == []
        assert (pipe.is_open, pipe.crash, pipe.close_code) == (False, crash, None)
    assert owner.errors == []


async def test_what_a_bot_writes_after_the_close_is_not_kept() -> None:
    async with connected() as (owner, pipe, bot):
        await FakeWebSocketBot(bot).connect()
        pipe.close(1000)
        for _ in range(100):
            pipe.data_received(bytes(65_536))
        kept = len(pipe._unread)
        bot.close_stdout()
        await owner.until("lost")

    assert kept == 0


async def test_a_request_that_is_none_is_answered_and_the_input_ends() -> None:
    async with connected() as (_owner, pipe, bot):
        bot.say(b"GET / HTTP/1.1\r\nHost: x\r\nSec-WebSocket-Key: x\r\n\r\n")

        assert (await bot.hear()).startswith(b"HTTP/1.1 426 ")
        assert not pipe.is_open


async def test_who_pings_and_does_not_read_is_cut() -> None:
    async with connected() as (owner, pipe, bot):
        client = FakeWebSocketBot(bot)
        await client.connect()
        client.protocol.send_ping(bytes(125))
        [ping] = client.protocol.data_to_send()
        while pipe.is_open:
            pipe.data_received(ping)
        await owner.until("lost")

    assert "overflowed" in owner.told


async def test_a_flood_of_tiny_frames_takes_no_longer_than_its_budget() -> None:
    async with connected() as (owner, pipe, bot):
        client = FakeWebSocketBot(bot)
        await client.connect()
        loop = asyncio.get_running_loop()
        owner.on_trivial = lambda wire: wire.rest(loop.time() + 1000)
        pipe.data_received(b"\x8a\x80abcd" * 10_000 + b"\x81\x81abcd\0")

        assert 0 < owner.told.count("on_trivial_frame") < 400
        owner.on_trivial = lambda wire: None
        pipe.rest(loop.time())
        await owner.until("received")

    assert owner.told.count("on_trivial_frame") == 10_000
    assert owner.frames == [b"a"]


@given(st.binary(max_size=200))
def test_any_bytes_of_a_websocket_are_frames_or_are_refused(data: bytes) -> None:
    async def say() -> None:
        async with connected() as (owner, pipe, bot):
            await FakeWebSocketBot(bot).connect()
            pipe.data_received(data)
            assert all(isinstance(error, ProtocolError) for error in owner.errors)

    asyncio.run(say())
