"""Records the transcripts in `protocol/vectors/transcripts/`, or compares them with `--check`.

`python -m tests.tools.transcripts [NAME...]` takes the scenes in `tests/support/scenes/`. For each
it searches, without a network, the first seed that gives the wanted match. Then it opens a real
arena on a free port, with a WebSocket for each seat, and writes what one of them sends and hears.
Seeds and ids of matches and sessions are made of the scene's name, so that each recording gives the
same bytes, but for the measurements of a verdict and the time of a decision.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from arena.games.catalogue import GAMES
from arena.games.match import MatchResult, MatchState, drive
from arena.records.seat_document import seat_match
from arena.records.transcript import Event, Line, Side, Transcript, canonical, heading_of
from arena.referee.referee import Referee
from arena.server.gateway import Gateway
from protocol import messages
from protocol.codec import Encoding, decode_from_arena
from protocol.messages import ArenaMessage, BotMessage
from tests.support.scenes import SCENES, RecordedScene, Says, Twist

__all__ = ["FOLDER", "main", "record", "without_measures"]

FOLDER = Path(__file__).parents[2] / "protocol" / "vectors" / "transcripts"

_SEARCH = 20_000  # seeds that are tried for a scene
_TRIES = 3  # recordings, as on a busy machine a decision may take time from the bank
_TIMEOUT_S = 30.0


# --- the match that is wanted ---


def nonces(scene: RecordedScene) -> tuple[str, ...]:
    """The nonces of all seats."""
    return tuple(f"{name} was here" for name in scene.players)


def strategy(scene: RecordedScene, seat: int, seed: bytes) -> Any:
    """A new strategy for a seat, whose chance depends on the seed alone."""
    made = scene.bots[seat]()
    made.seed(f"{seed.hex()} {seat}")
    made.reset()
    return made


def seed_of(scene: RecordedScene, number: int) -> bytes:
    return hashlib.sha256(f"{_chance(scene)} {number}".encode()).digest()


def wanted_seed(scene: RecordedScene) -> tuple[int, bytes]:
    """The first seed that gives the match of a scene, with its number; or raises LookupError."""
    game = GAMES[scene.game]
    settings = game.vocabulary.read_settings(scene.settings)
    for number in range(scene.first, scene.first + _SEARCH):
        seed = seed_of(scene, number)
        match = MatchState(game, settings, seed=seed, nonces=nonces(scene))
        drive(match, [strategy(scene, seat, seed) for seat in range(game.seats)])
        if scene.wanted(seat_match(match.result().record, scene.seat)):
            return number, seed
    raise LookupError(f"{scene.name}: none of {_SEARCH:,} seeds gives what is wanted")


# --- the arena ---


@contextmanager
def known_chance(scene: RecordedScene, seed: bytes) -> Iterator[None]:
    """The arena draws its seeds and ids from the scene."""
    sessions = (_hex(scene, f"session {number}", 32) for number in count())
    chance = SimpleNamespace(
        token_bytes=lambda size: seed if size == len(seed) else secrets.token_bytes(size),
        token_hex=lambda size: _hex(scene, "run", 2 * size),
        compare_digest=secrets.compare_digest,
    )
    with (
        patch("arena.referee.referee.secrets", chance),
        patch("arena.referee.bot_session.secrets", chance),
        patch("arena.referee.bot_session.new_secret", lambda: next(sessions)),
    ):
        yield


def _chance(scene: RecordedScene) -> str:
    return scene.chance or scene.name


def _hex(scene: RecordedScene, what: str, digits: int) -> str:
    return hashlib.sha256(f"{_chance(scene)} {what}".encode()).hexdigest()[:digits]


class TranscribingSeat:
    """A bot on a WebSocket, which writes down the conversation."""

    def __init__(self, scene: RecordedScene, seat: int, seed: bytes, url: str) -> None:
        self.lines: list[Line] = []
        self._scene, self._seat, self._url = scene, seat, url
        self._seed = seed
        self._strategy = strategy(scene, seat, seed)
        self._session = ""
        self._heard = ""  # the last question whose news the strategy has
        self._value: Any = None
        self._twists = dict(scene.twists.get(seat, {}))
        self._websocket: ClientConnection | None = None

    async def enter(self) -> None:
        """Connect, say hello, be welcome."""
        await self._connect()
        welcome = await self._hear()
        assert isinstance(welcome, messages.Welcome), welcome
        self._session = welcome.session

    async def play(self) -> None:
        """Play until it is over."""
        while True:
            message = await self._hear()
            match message:
                case messages.Welcome():
                    self._session = message.session
                case messages.Match():
                    await self._say(messages.Ready(message.match, nonces(self._scene)[self._seat]))
                case messages.Ask():
                    await self._asked(message)
                case messages.Past():
                    for news in message.news:
                        self._strategy.hear(news)
                    self._strategy.decide(message.question)  # draws the same chance again
                case messages.Refused():
                    assert message.match is not None, message
                    assert message.ask is not None, message
                    await self._say(messages.Answer(message.match, message.ask, self._value))
                case messages.Over():
                    return
                case _:
                    raise AssertionError(message)

    async def leave(self) -> None:
        """Close the connection."""
        if self._websocket is not None:
            await self._websocket.close()

    async def _asked(self, ask: messages.Ask) -> None:
        if ask.ask != self._heard:
            self._heard = ask.ask
            for news in ask.news:
                self._strategy.hear(news)
            self._value = msgspec.to_builtins(self._strategy.decide(ask.question))
        number = int(ask.ask.rpartition(":")[2])
        twist = self._twists.pop(number, None)
        if isinstance(twist, Says):
            value: Any = twist.value
            if callable(value):
                value = value(ask.question)
            await self._say(messages.Answer(ask.match, ask.ask, value))
        elif twist is Twist.LEAVES:
            await self._say(messages.Goodbye())
        elif twist in (Twist.LOSES, Twist.FORGETS):
            await self._lose(forgets=twist is Twist.FORGETS)
        elif twist is not Twist.SLEEPS:
            note = self._scene.notes.get((self._seat, number))
            await self._say(messages.Answer(ask.match, ask.ask, self._value, note))

    async def _lose(self, *, forgets: bool) -> None:
        assert self._websocket is not None, "it is connected"
        self._websocket.transport.abort()
        await self._websocket.wait_closed()
        event = Event.KILLED if forgets else Event.LOST
        self.lines.append(Line(Side.EVENT, msgspec.json.encode(event)))
        if forgets:
            self._strategy = strategy(self._scene, self._seat, self._seed)
            self._heard = ""
        await self._connect(0 if forgets else None)

    async def _connect(self, first: int | None = None) -> None:
        self._websocket = await connect(self._url, compression=None, max_size=None)
        name, game = self._scene.players[self._seat], self._scene.game
        resume = self._session or None
        await self._say(messages.Hello(messages.VERSION, name, (game,), resume=resume, from_=first))

    async def _say(self, message: BotMessage) -> None:
        text = canonical(message)
        self.lines.append(Line(Side.BOT, text))
        assert self._websocket is not None, "it is connected"
        await self._websocket.send(text.decode())

    async def _hear(self) -> ArenaMessage:
        assert self._websocket is not None, "it is connected"
        frame = await self._websocket.recv()
        assert isinstance(frame, str), "it speaks JSON"
        self.lines.append(Line(Side.ARENA, frame.encode()))
        [message] = decode_from_arena(frame.encode(), Encoding.JSON, lambda match: self._scene.game)
        return message


async def played(scene: RecordedScene, seed: bytes) -> tuple[list[Line], MatchResult]:
    """Play a scene over the network; returns its seat's conversation and the match's result."""
    over: asyncio.Future[MatchResult] = asyncio.get_running_loop().create_future()
    referee = Referee(asyncio.get_running_loop().time, scene.practice)
    gateway = Gateway(referee, scene.limits)
    port = await gateway.open("127.0.0.1", 0)
    game = GAMES[scene.game]
    programs = [
        TranscribingSeat(scene, seat, seed, f"ws://127.0.0.1:{port}") for seat in range(game.seats)
    ]
    try:
        for program in programs:
            await program.enter()
        referee.open(
            game,
            game.vocabulary.read_settings(scene.settings),
            [gateway.players[name] for name in scene.players],
            scene.limits,
            lambda table, result, verdict: over.set_result(result),
        )
        await asyncio.gather(*(program.play() for program in programs))
        return programs[scene.seat].lines, await over
    finally:
        for program in programs:
            with suppress(ConnectionClosed, OSError):
                await program.leave()
        await gateway.close()
        await asyncio.sleep(0)  # for callbacks of the last connections


def record(scene: RecordedScene) -> Transcript:
    """The transcript of a scene, recorded from a real arena."""
    _, seed = wanted_seed(scene)

    async def main() -> tuple[list[Line], MatchResult]:
        async with asyncio.timeout(_TIMEOUT_S):
            return await played(scene, seed)

    with known_chance(scene, seed):
        lines, result = asyncio.run(main())
    heading = heading_of(result.record, scene.players, scene.seat, scene.about)
    return Transcript(heading, tuple(lines))


# --- the files ---


def recorded(scene: RecordedScene, kept: bytes) -> bytes:
    """The file of a scene: the old one if a new recording differs in its measurements alone."""
    for _ in range(_TRIES):
        text = record(scene).to_bytes()
        if without_measures(text) == without_measures(kept):
            return kept
    return text


def without_measures(text: bytes) -> bytes:
    """A transcript without the measurements of a verdict, which differ every time."""
    text = re.sub(rb'"(\w+_ms)":(?:\d+\.\d+|null)', rb'"\1":0', text)
    return re.sub(rb"out of time: [\d,]+ ms(.*?)credit [\d,]+", rb"out of time\1", text)


def main(words: list[str]) -> int:
    """Write the files that have changed, or with `--check` name them; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.transcripts")
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args(words)
    FOLDER.mkdir(exist_ok=True)
    stale = 0
    for scene in SCENES:
        if options.names and scene.name not in options.names:
            continue
        file = FOLDER / f"{scene.name}.jsonl"
        kept = file.read_bytes() if file.exists() else b""
        text = recorded(scene, kept)
        if text == kept:
            continue
        if options.check:
            print(f"{scene.name} comes out differently", file=sys.stderr)
            stale += 1
        else:
            file.write_bytes(text)
            lines = len(text.splitlines())
            print(f"{file.name}: {lines} lines, {len(text):,} bytes")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
