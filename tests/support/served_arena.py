"""`arena serve` as a process that a test can stop, and bots by hand that lose their connections.

Cases share an arena and run at the same time, as each waits for seconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from websockets.asyncio.client import ClientConnection, connect

from tests.support import arena_process, independent_audit
from tests.support.gateway_bots import RawBot

__all__ = [
    "REAL",
    "Case",
    "NotLetIn",
    "PlayedCases",
    "ReconnectingRawBot",
    "ServedArena",
    "outcomes_of",
    "run_of",
]

REAL = "CARD_ARENA_REAL_TIMES" in os.environ
"""Whether limits and absences are as long as by default in `arena serve`; else all are shorter."""

_READY_S = 60.0
_CASE_S = 120.0 if REAL else 40.0  # at most: no case takes half of it
_DIAL_S = 3.0
_GAME = "three_card_poker"  # for one player, who waits for nobody else


class NotLetIn(Exception):
    """The arena refuses a bot; the text is the code."""


class ReconnectingRawBot(RawBot):
    """A bot by hand that can come back; `line` is its network line, if there are several."""

    def __init__(
        self, arena: ServedArena, websocket: ClientConnection, name: str, line: str
    ) -> None:
        super().__init__(websocket, name)
        self._arena, self._line = arena, line
        self._fields: dict[str, Any] = {}

    async def enters(self, **fields: Any) -> None:
        """Say hello and be welcome.

        Raises:
            NotLetIn: it is refused.
        """
        self._fields = {**self._fields, **fields}
        await self.say(**self.a_hello(**self._fields))
        message = await self.hear()
        if message["type"] == "refused":
            raise NotLetIn(message["code"])
        assert message["type"] == "welcome", message
        self.session = message["session"]

    async def loses(self, for_s: float, **fields: Any) -> ReconnectingRawBot:
        """Lose the connection, and come back after so long."""
        await self.vanish()
        await asyncio.sleep(for_s)
        return await self.back(**fields)

    async def back(self, **fields: Any) -> ReconnectingRawBot:
        """The same bot over another connection, with its session resumed."""
        hand = await self._arena.reach(self.name, self._line)
        hand._fields = self._fields
        await hand.enters(resume=self.session, **fields)
        return hand

    async def asked(self) -> dict[str, Any]:
        """Accept a match, and hear its first question."""
        await self.ready()
        return await self.hears("ask")

    async def finishes(self) -> None:
        """Answer to the end of the match."""
        await self.play(len(self.overs) + 1)

    async def answers_and_finishes(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Answer a question, and go on to the end; the next question."""
        await self.answer(ask)
        following = await self.hears("ask")
        await self.answer(following)
        await self.finishes()
        return following


class ServedArena:
    """`arena serve` with a configuration; call `listens` first, and `close` in the end.

    Args:
        folder: where its files are.
        limits: those that are not the default, in milliseconds.
        runs: tables `[[run]]` of its file, as `run_of` writes them.
        network: a `NamespaceNetwork`; None if bots reach it by loopback.
    """

    def __init__(
        self, folder: Path, limits: Mapping[str, int], runs: Sequence[str], network: Any = None
    ) -> None:
        self.port = 0
        self.stood = asyncio.Event()
        self.stands = asyncio.Event()
        self._folder = folder
        self._network = network
        self._wires: list[ClientConnection] = []
        host = "127.0.0.1" if network is None else "0.0.0.0"
        lines = [f'[serve]\nport = 0\nhost = "{host}"\ndb = "class.db"\nopen = true']
        lines += ["[limits]", *(f"{name} = {value}" for name, value in limits.items())]
        (folder / "class.toml").write_text("\n".join([*lines, *runs]))
        within = () if network is None else network.within("arena")
        words = ("-m", "arena", "serve", "--config", "class.toml")
        self.process = arena_process.start(folder, "arena.err", *words, within=within)
        self._started: list[subprocess.Popen[bytes]] = [self.process]

    async def listens(self) -> None:
        """Wait until it listens."""
        end = time.monotonic() + _READY_S
        while "arena at " not in (said := self.said()):
            assert self.process.poll() is None, said
            assert time.monotonic() < end, said
            await asyncio.sleep(0.05)
        self.port = int(said.partition("arena at ")[2].split()[0].rpartition(":")[2])

    def said(self) -> str:
        """Its standard error."""
        return (self._folder / "arena.err").read_text(encoding="utf-8")

    def url(self, line: str = "") -> str:
        """The URL for a bot at the end of a line."""
        host = self._network.arena_from(line) if line else "127.0.0.1"
        return f"ws://{host}:{self.port}"

    async def dial(self, line: str) -> socket.socket:
        """A socket at the end of a line, connected to the arena.

        Raises:
            TimeoutError: the connection could not be made.
        """
        sock: socket.socket = self._network.socket(line)
        try:
            async with asyncio.timeout(_DIAL_S):
                host = self._network.arena_from(line)
                await asyncio.get_running_loop().sock_connect(sock, (host, self.port))
        except BaseException:
            sock.close()
            raise
        return sock

    # --- bots ---

    async def reach(self, name: str, line: str = "", **options: Any) -> ReconnectingRawBot:
        """A connection that has said nothing yet."""
        if line:
            options["sock"] = await self.dial(line)
        websocket = await connect(
            self.url(line), compression=None, max_size=None, close_timeout=1, **options
        )
        self._wires.append(websocket)
        return ReconnectingRawBot(self, websocket, name, line)

    async def bot(
        self, name: str, line: str = "", game: str = _GAME, **fields: Any
    ) -> ReconnectingRawBot:
        """A bot that is welcome."""
        hand = await self.reach(name, line)
        await hand.enters(games=[game], **fields)
        return hand

    def start(self, *words: str, line: str = "") -> subprocess.Popen[bytes]:
        """A bot in a process of its own."""
        within = self._network.within(line) if line else ()
        process = arena_process.start(self._folder, "bots.err", *words, within=within)
        self._started.append(process)
        return process

    async def frozen(self, name: str, line: str = "") -> subprocess.Popen[bytes]:
        """A bot in a process of its own that stops as soon as it is asked something."""
        words = ("--url", self.url(line), "--game", _GAME, "--freeze", name)
        process = self.start("-m", "tests.support.plain_bot", *words, line=line)
        while arena_process.state(process.pid) != "T":
            assert process.poll() is None, "it waits to be asked"
            await asyncio.sleep(0.02)
        return process

    # --- standing still, and the end ---

    async def stands_still(self, for_s: float) -> None:
        """Stop the arena's process for so long."""
        self.process.send_signal(signal.SIGSTOP)
        self.stands.set()
        try:
            await asyncio.sleep(for_s)
        finally:
            self.process.send_signal(signal.SIGCONT)
            self.stood.set()

    async def close(self) -> None:
        """Interrupt the arena, and end everything that was started here."""
        self.process.send_signal(signal.SIGINT)
        try:
            await asyncio.to_thread(self.process.wait, 30)
        finally:
            for process in self._started:
                if process.poll() is None:
                    process.kill()  # also one that is stopped
                process.wait()
            for websocket in self._wires:
                websocket.transport.abort()
                await websocket.wait_closed()

    def book(self) -> independent_audit.AuditedDatabase:
        """Its database, once it is closed."""
        return independent_audit.read(self._folder / "class.db")


class PlayedCases(NamedTuple):
    """What each case returned or raised, and the arena's database and standard error."""

    results: Mapping[str, Any]
    book: independent_audit.AuditedDatabase
    said: str

    def of(self, case: str) -> Any:
        """What a case returned; what it raised is raised again."""
        result = self.results[case]
        if isinstance(result, BaseException):
            raise result
        return result

    def words(self, bot: str) -> list[str]:
        """The words of all verdicts on a bot."""
        return [word for _, name, word, _ in self.book.verdicts if name == bot]


Case = Callable[[ServedArena, str], Awaitable[Any]]
"""Plays a bot of that name."""


def outcomes_of(
    arena: ServedArena,
    cases: Mapping[str, Case],
    conduct: Callable[[ServedArena], Awaitable[None]] | None = None,
) -> PlayedCases:
    """Run all cases at the same time, each with a bot of its name, and `conduct` beside them."""

    async def play() -> list[Any]:
        try:
            await arena.listens()
            beside = [] if conduct is None else [conduct(arena)]
            started = (case(arena, name) for name, case in cases.items())
            return await asyncio.gather(
                *(asyncio.wait_for(work, _CASE_S) for work in (*started, *beside)),
                return_exceptions=True,
            )
        finally:
            await arena.close()

    results = asyncio.run(play())
    for extra in results[len(cases) :]:
        assert extra is None, extra
    named = dict(zip(cases, results, strict=False))
    return PlayedCases(named, arena.book(), arena.said())


def run_of(*players: str, game: str = _GAME, **fields: Any) -> str:
    """A table `[[run]]` whose players are named."""
    fields = {"name": players[0], "game": game, "players": list(players), **fields}
    fields = {"wait_s": 60, "settings": {"rounds": 3}, **fields}
    return "\n".join(["[[run]]", *(f"{key} = {_toml(value)}" for key, value in fields.items())])


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items())
        return f"{{ {inner} }}"
    return json.dumps(value)
