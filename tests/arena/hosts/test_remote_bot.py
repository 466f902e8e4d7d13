"""A bot on a host as the arena hears it: what its host has read, and when it was asked."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from arena.competitions.elsewhere import HostLost
from arena.games.verdict import Finding
from arena.hosts.messages import (
    MOST_PIECE,
    BotEnded,
    BotReading,
    BotStarted,
    BotStderr,
    FromArena,
    FromHost,
    ProgramPart,
    RetireBot,
    Source,
    StartBot,
    StartRefused,
    WantedPart,
    WholeBotOutput,
    from_arena,
    on_link,
    read_input,
)
from arena.hosts.remote_bot import RemoteBot, RemoteLauncher
from protocol.errors import UsageError
from protocol.messages import Ending, Limits, Mechanism

pytestmark = pytest.mark.virtual_time

PROGRAM = "ace_king_queen", Source("k", 1, "python")
TOO_LARGE = Finding(kind=Ending.MEMORY, text="memory 9 MiB > 8 MiB", mechanism=Mechanism.SAMPLED)
BEHIND_S = 5_000.0  # the host's clock behind this one


class ScriptedHost:
    """The host's end of a link, and its bots, of which `cold` ones do not start; `told` is what the arena has said."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.pieces: list[tuple[int, bool, bytes]] = []
        self.findings: list[tuple[str, Finding]] = []
        self.lost: list[tuple[str, str]] = []
        self.retired: list[str] = []
        self.launcher = RemoteLauncher(
            "h1",
            self,
            Limits(),
            self._part,
            lambda *found: self.findings.append(found),
            lambda *lost: self.lost.append(lost),
            self.retired.append,
        )

    def tell(self, message: FromArena | FromHost) -> None:
        told = from_arena(on_link(message))
        self.told.append(told)
        if isinstance(told, StartBot) and told.name != "cold":
            asyncio.get_running_loop().call_soon(self._starts, told.seat)

    def carry(self, piece: bytes) -> None:
        self.pieces.append(read_input(piece))

    def cut(self) -> None: ...

    def says(self, message: object) -> None:
        self.launcher.message(on_link(message))

    def reads(self, handed: int, data: bytes = b"", *, at: float, **more: float) -> None:
        fields = {"handed_at": at, "cpu_ms": 0.0, "waited_ms": 0.0, "lag_s": 0.0, **more}
        self.launcher.piece(BotReading(1, handed, at, **fields).piece(data))

    def _starts(self, seat: int) -> None:
        now = asyncio.get_running_loop().time() - BEHIND_S
        self.says(BotStarted(seat=seat, enforced="time (test)", is_metered=True, now=now))

    async def _part(self, key: str, offset: int) -> bytes:
        if key != "k":
            raise UsageError(f"expected a program of this arena, got {key}")
        return b"tar"


class HeardOutput(asyncio.Protocol):
    """What the arena reads of a bot."""

    def __init__(self) -> None:
        self.said = b""
        self.has_ended = False

    def data_received(self, data: bytes) -> None:
        self.said += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.has_ended = True


@pytest.fixture
async def host() -> ScriptedHost:
    return ScriptedHost()


@pytest.fixture
async def bot(host: ScriptedHost) -> RemoteBot:
    return await host.launcher.start("ann1", *PROGRAM)


async def test_what_it_says_before_somebody_reads_is_kept(
    host: ScriptedHost, bot: RemoteBot
) -> None:
    host.reads(0, b"hello\n", at=1)
    heard = HeardOutput()
    await bot.connect(heard, asyncio.BaseProtocol())
    host.reads(0, b"more\n", at=2)
    host.says(WholeBotOutput(1))

    assert (heard.said, heard.has_ended) == (b"hello\nmore\n", True)
    assert (bot.enforced, bot.is_metered) == ("time (test)", True)


async def test_its_time_begins_when_the_host_has_handed_the_question_over(
    host: ScriptedHost, bot: RemoteBot
) -> None:
    now = asyncio.get_running_loop().time()
    handed: list[tuple[float, float]] = []
    bot.on_handed = lambda *when: handed.append(when)
    bot.enter(None, lambda: bot.write(b"question\n"))
    host.reads(0, at=now - BEHIND_S + 3)
    assert (bot.clock(now), handed, bot.get_write_buffer_size()) == (None, [], 9)

    host.reads(9, at=now - BEHIND_S + 5, handed_at=now - BEHIND_S + 4, lag_s=0.5, cpu_ms=7.0)
    assert handed == [(now + 4, 0.5)]
    assert (bot.clock(now), bot.cpu_ms(), bot.waited_ms()) == (now + 5, 7.0, 0.0)
    host.reads(9, at=now - BEHIND_S + 6, lag_s=0.75, waited_ms=-1.0)
    assert (bot.total_s(now), bot.stalled_s(now, now), bot.waited_ms()) == (0.75, 0.25, None)
    assert host.pieces == [(1, True, b"question\n")]


async def test_long_input_travels_in_pieces(host: ScriptedHost, bot: RemoteBot) -> None:
    bot.write(b"x" * (MOST_PIECE + 1))
    assert [(asks, len(data)) for _, asks, data in host.pieces] == [(False, MOST_PIECE), (False, 1)]


async def test_its_end_is_found_once_and_not_if_it_was_stopped(
    host: ScriptedHost, bot: RemoteBot
) -> None:
    host.says(BotStderr(1, b"Killed\n"))
    assert (bot.stderr.tail, host.launcher.tail("ann1")) == ("Killed\n", "Killed\n")
    stopping = asyncio.ensure_future(host.launcher.stop("ann1"))
    await asyncio.sleep(0)
    host.says(BotEnded(1, TOO_LARGE))
    await stopping
    again = await host.launcher.start("ben2", *PROGRAM)
    assert (host.findings, len(host.launcher)) == ([], 1)
    host.launcher.piece(BotReading(1, 0, 0, 0, 0, 0, 0).piece(b"late"))
    host.says(BotEnded(again.seat, TOO_LARGE))
    host.says(BotEnded(again.seat, TOO_LARGE))
    assert (host.findings, len(host.launcher)) == ([("ben2", TOO_LARGE)], 0)


async def test_who_is_there_when_the_link_is_lost_is_lost(
    host: ScriptedHost, bot: RemoteBot
) -> None:
    starting = asyncio.ensure_future(host.launcher.start("cold", *PROGRAM))
    await asyncio.sleep(0)
    host.launcher.lost()
    with pytest.raises(HostLost, match="the host h1 was lost"):
        await starting
    with pytest.raises(HostLost):
        await host.launcher.start("cyd3", *PROGRAM)
    assert host.lost == [("ann1", "the host h1 was lost")]


async def test_a_host_fetches_refuses_and_asks_for_room(host: ScriptedHost, bot: RemoteBot) -> None:
    host.says(WantedPart("k", 0))
    host.says(WantedPart("none", 0))
    await asyncio.sleep(0.01)
    assert [part for part in host.told if isinstance(part, ProgramPart)] == [
        ProgramPart("k", 0, b"tar"),
        ProgramPart("none", 0, why="expected a program of this arena, got none"),
    ]
    host.says(RetireBot(1))
    assert host.retired == ["ann1"]
    refused = asyncio.ensure_future(host.launcher.start("cold", *PROGRAM))
    await asyncio.sleep(0)
    host.says(StartRefused(2, "no java here"))
    with pytest.raises(HostLost, match="the host h1: no java here"):
        await refused
    with pytest.raises(msgspec.DecodeError):
        host.launcher.message(b"{}")
