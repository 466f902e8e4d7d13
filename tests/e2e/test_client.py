"""Bots of ours as programs, against an arena in this process."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from arena.engine.drive import drive
from arena.engine.match import MatchState, Record
from arena.games import GAMES
from bots.client import Client
from bots.strategy import BaseStrategy
from protocol.codec import Encoding
from protocol.messages import Ending
from protocol.strategy import find, house_bots
from protocol.vocabulary import Question, Range
from tests.support.gateway_bots import in_arena

if TYPE_CHECKING:
    from tests.support.gateway_bots import GatewayArena, RawBot, StartedProgram

pytestmark = pytest.mark.e2e

SHORT: dict[str, dict[str, object]] = {
    "ace_king_queen": {"hands": 20},
    "gin_rummy": {"target": 25, "max_rounds": 2},
    "high_low": {"max_shuffles": 1},
    "three_card_poker": {"rounds": 20},
    "blackjack": {"hands": 20},
}
Start = Callable[..., "StartedProgram"]

BOT = """
import os, sys, time

class Mine:
    game = "blackjack"
    def reset(self): pass
    def hear(self, news): pass
    def decide(self, question):
        {decide}
        legal = question.legal
        return legal[0] if isinstance(legal, tuple) else legal.min
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the programs keep their sessions: not in the home of whoever runs the tests."""
    place = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(place))
    return place


@pytest.fixture
def bot_file(tmp_path: Path) -> Callable[[str], str]:
    """Write a bot that does something odd when it is asked; its path."""

    def write(decide: str) -> str:
        path = tmp_path / "mine.py"
        path.write_text(BOT.format(decide=decide))
        return str(path)

    return write


async def here(arena: GatewayArena, name: str) -> None:
    await arena.until(lambda: name in arena.gateway.players)


async def ended(program: StartedProgram) -> tuple[int, str, str]:
    return await asyncio.to_thread(program.ends)


def connect(start: Start, arena: GatewayArena, *words: str) -> StartedProgram:
    return start("bots", *words, "--url", arena.url)


@pytest.mark.parametrize("options", [(), ("--encoding", "msgpack", "--tables", "4")])
async def test_a_house_bot_plays_until_the_arena_closes(
    start: Start, options: tuple[str, ...]
) -> None:
    programs: list[StartedProgram] = []

    async with in_arena() as arena:
        programs.append(connect(start, arena, "blackjack", "simple", *options))
        await here(arena, "simple")
        _, verdict = await arena.result(arena.open("blackjack", "simple", hands=20))

        assert verdict is None
    status, out, err = programs[0].ends()

    assert (status, out) == (0, "")
    assert "connected as simple" in err
    assert "blackjack match" in err
    assert err.endswith("the arena has closed\n")


@pytest.mark.parametrize("game", GAMES)
async def test_two_implementations_of_msgpack_meet_in_every_game(
    arena: GatewayArena, game: str
) -> None:
    rivals = [*house_bots(game)]
    names = [f"{bot} {seat}" for seat, bot in enumerate(rivals)]
    clients = [
        Client(arena.url, name, {game: find(game, bot)}, encoding=Encoding.MSGPACK)
        for name, bot in zip(names, rivals, strict=True)
    ]
    async with asyncio.TaskGroup() as group:
        playing = [group.create_task(client.run()) for client in clients]
        for name in names:
            await here(arena, name)
        for first in range(len(names) - GAMES[game].seats + 1):
            seated = names[first : first + GAMES[game].seats]
            table = arena.open(game, *seated, **SHORT[game])
            result, verdict = await arena.result(table)

            assert result.termination.kind is Ending.COMPLETED
            assert verdict is None
        for client in playing:
            client.cancel()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_whoever_stops_a_bot_lets_it_say_goodbye(
    arena: GatewayArena, start: Start, number: signal.Signals
) -> None:
    program = connect(start, arena, "akq", "random")
    await here(arena, "random")
    async with arena.bot("raw"):
        table = arena.open("ace_king_queen", "random", "raw")
        program.process.send_signal(number)
        result, verdict = await arena.result(table)
        status, _, err = await ended(program)

        assert result.termination.kind is Ending.DISCONNECT
        assert "said goodbye in the middle of the match" in result.termination.text
        assert verdict is not None
        assert status == 130
        assert err.endswith("arena: left the arena\n")
        assert "Traceback" not in err


async def test_a_second_ctrl_c_ends_a_strategy_that_never_returns(
    arena: GatewayArena, start: Start, bot_file: Callable[[str], str]
) -> None:
    program = connect(
        start, arena, bot_file("print('stuck', file=sys.stderr, flush=True); time.sleep(600)")
    )
    await here(arena, "mine")
    arena.open("blackjack", "mine")
    await asyncio.to_thread(program.until, "stuck")
    program.process.send_signal(signal.SIGINT)
    while program.process.poll() is None:
        await asyncio.sleep(0.1)  # the first may still be on its way
        program.process.send_signal(signal.SIGINT)
    status, _, _ = await ended(program)

    assert status in (130, -signal.SIGINT)  # a third may meet Python at its end


@pytest.mark.parametrize(
    ("decide", "error"),
    [
        ("raise KeyError('deck')", "KeyError"),
        ("sys.exit(3)", "SystemExit"),
        ("return {1, 2}.add", "TypeError"),
    ],
)
async def test_J2_a_strategy_that_raises_has_crashed(
    arena: GatewayArena, start: Start, bot_file: Callable[[str], str], decide: str, error: str
) -> None:
    program = connect(start, arena, bot_file(decide))
    await here(arena, "mine")
    result, verdict = await arena.result(arena.open("blackjack", "mine"))
    status, _, err = await ended(program)

    assert result.termination.kind is Ending.CRASH
    assert verdict is not None
    assert verdict.headline.startswith("crashed: the strategy raised at ") or (
        "the strategy's answer cannot be sent" in verdict.headline
    )
    assert status == 1
    assert error in err
    assert err.splitlines()[-1].startswith("arena: ")
    assert "Traceback" in err  # its author's, with the line that raised


async def test_J2_a_process_that_dies_has_lost_its_connection(
    start: Start, bot_file: Callable[[str], str]
) -> None:
    async with in_arena(grace_ms=200) as arena:
        connect(start, arena, bot_file("os._exit(3)"))
        await here(arena, "mine")
        result, _ = await arena.result(arena.open("blackjack", "mine"))

        assert result.termination.kind is Ending.DISCONNECT


async def test_J7_a_slow_bot_with_many_tables_is_in_time(
    start: Start, bot_file: Callable[[str], str]
) -> None:
    async with in_arena(decision_ms=300, bank_ms=100, hard_ms=400) as arena:
        path = bot_file("time.sleep(0.1)")
        connect(start, arena, path, "--tables", "8")
        await here(arena, "mine")
        tables = [arena.open("blackjack", "mine", hands=1) for _ in range(8)]
        verdicts = [(await arena.result(table))[1] for table in tables]

        assert verdicts == [None] * 8


async def test_a_bot_comes_back_with_its_memory_when_its_connection_is_lost(
    arena: GatewayArena, start: Start
) -> None:
    program = connect(start, arena, "akq", "learner")
    await here(arena, "learner")
    async with arena.bot("raw") as raw:
        table = arena.open("ace_king_queen", "learner", "raw", hands=200)
        raws = asyncio.create_task(raw.play())
        for _ in range(3):
            player = arena.gateway.players["learner"]
            await arena.until(lambda player=player: bool(player.connection))  # type: ignore[misc]
            assert player.connection is not None
            player.connection.cut()
            await asyncio.to_thread(program.until, "back as learner")
        await raws
        _, verdict = await arena.result(table)

        assert verdict is None


def test_a_bot_finds_an_arena_that_was_killed_and_started_again(
    start: Start, tmp_path: Path, free_port: int
) -> None:
    serve: tuple[Any, ...] = ("arena", "serve", "akq", "--once", "--port")
    words = (*serve, str(free_port), "--db", str(tmp_path / "arena.db"))
    first = start(*words)
    first.until("arena at ws://")
    bots = [
        start("bots", "akq", name, "--url", f"ws://127.0.0.1:{free_port}")
        for name in ("nash", "honest")
    ]
    for bot in bots:
        bot.until("connected as")
    first.kill()
    for bot in bots:
        bot.until("next attempt in")
    second = start(*words)

    assert second.ends()[0] == 0
    for bot in bots:
        status, _, err = bot.ends()
        assert status == 0
        assert err.count("connected as") == 2


async def test_a_bot_gives_up_when_its_patience_ends(start: Start, free_port: int) -> None:
    programs: list[StartedProgram] = []

    async with in_arena() as arena:
        programs.append(connect(start, arena, "akq", "nash", "--patience", "0.5", "--quiet"))
        await here(arena, "nash")
        for connection in tuple(arena.gateway._connections):
            connection.cut()
        arena.gateway._listeners.close()
        await asyncio.to_thread(programs[0].process.wait)
    status, out, err = programs[0].ends()

    assert (status, out) == (1, "")
    assert err.startswith("arena: no arena answers at ws://")
    assert err.count("\n") == 1


# --- killed and started again ---

PATIENT = {"decision_ms": 15_000, "bank_ms": 0, "hard_ms": 15_000, "grace_ms": 15_000}
"""Python takes a while to start on a busy machine; no test waits for these times to pass."""


def pick(count: int, number: int) -> int:
    """Which of so many answers the scripted bot gives to its question of that number."""
    return (number * 7 + number // 5) % count


class ScriptedInProcess(BaseStrategy):
    """What `by_script` is over the wire, in process."""

    def __init__(self) -> None:
        self.asked = 0

    def decide(self, question: Question[Any]) -> object:
        self.asked += 1
        legal = question.choices
        assert not isinstance(legal, Range), "these games have lists"
        return legal[pick(len(legal), self.asked)]


async def nothing() -> None:
    """What happens at most answers."""


async def by_script(
    raw: RawBot,
    before: dict[int, Callable[[], Awaitable[None]]],
    after: dict[int, Callable[[], Awaitable[None]]],
) -> None:
    """Play a match by numbers, doing something before some answers and after others."""
    number = 0
    while (message := await raw.hear())["type"] != "over":
        if message["type"] == "match":
            await raw.say(type="ready", match=message["match"], nonce="raw")
        elif message["type"] == "ask":
            number += 1
            await before.get(number, nothing)()
            legal = message["legal"]
            await raw.answer(message, legal[pick(len(legal), number)])
            await after.get(number, nothing)()


def undisturbed(record: Record, bot: str, seed: str) -> Record:
    """The same match with the same cards in process, where nobody is killed."""
    assert record.seed is not None
    game = GAMES[record.game]
    match = MatchState(
        game,
        game.vocabulary.read_settings(record.settings),
        seed=bytes.fromhex(record.seed),
        nonces=record.nonces,
    )
    learner = find(record.game, bot)()
    learner.seed(seed)
    drive(match, [learner, ScriptedInProcess()])
    return match.result().record


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize(
    ("game", "bot", "settings", "encoding"),
    [
        ("ace_king_queen", "learner", {"hands": 200}, "json"),
        ("ace_king_queen", "nash", {"hands": 200}, "json"),
        ("gin_rummy", "expert", {"games": 4}, "msgpack"),
    ],
)
async def test_a_bot_that_is_killed_and_started_again_plays_as_if_nothing_had_been(
    start: Start, tmp_path: Path, game: str, bot: str, settings: dict[str, object], encoding: str
) -> None:
    file = tmp_path / "session.json"
    words = (game, bot, "--seed", "s", "--session", str(file), "--encoding", encoding)

    async with in_arena(**PATIENT) as arena:
        programs = [connect(start, arena, *words)]
        await here(arena, bot)

        async def killed() -> None:
            programs[-1].process.kill()
            await asyncio.to_thread(programs[-1].process.wait)
            programs.append(connect(start, arena, *words))

        async with arena.bot("raw") as raw:
            first = arena.open(game, bot, "raw", **settings)  # has the first seed
            await by_script(raw, {}, {})
            await arena.result(first)
            table = arena.open(game, bot, "raw", **settings)
            # Once while it waits for the other, once when it has something to answer.
            await by_script(raw, {20: killed}, {45: killed})
            result, verdict = await arena.result(table)

        assert verdict is None
        assert result.termination.kind is Ending.COMPLETED
        assert len(programs) == 3, "it has been killed twice"
        again = undisturbed(result.record, bot, "s:2")
        assert result.record.answers == again.answers
        assert (result.scores, result.points) == (again.scores, again.points)
        if bot == "nash":  # the others leave little or nothing to chance
            assert undisturbed(result.record, bot, "s:1").answers != again.answers
        waited, asked = [await asyncio.to_thread(p.until, "goes on") for p in programs[1:]]
        assert "otherwise" not in waited + asked

    assert not file.exists(), "the arena has closed"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
async def test_many_matches_go_on_after_a_crash(start: Start, state: Path) -> None:
    words = ("akq", "learner", "--tables", "8")  # a seed of its own for every match
    strategies: list[str] = []

    async with in_arena(**PATIENT) as arena:
        program = connect(start, arena, *words)
        await here(arena, "learner")
        async with arena.bot("raw", tables=8) as raw:
            tables = [arena.open("ace_king_queen", "learner", "raw", hands=100) for _ in range(8)]
            readies = [await raw.ready() for _ in tables]
            assert len(readies) == 8
            for _ in range(200):
                message = await raw.hears("ask")
                await raw.answer(message)
            program.process.kill()
            program = connect(start, arena, *words)
            raw.overs = []
            await raw.play(8)
            verdicts = [(await arena.result(table))[1] for table in tables]

            assert verdicts == [None] * 8
        [file] = state.glob("card-arena/*.json")
        await arena.until(lambda: not arena.gateway.players["learner"].chairs)
        program.process.send_signal(signal.SIGTERM)
        status, _, err = await ended(program)
        strategies.extend(line for line in err.splitlines() if "goes on after" in line)

        assert status == 130
        assert not file.exists()

    assert len(strategies) == 8
    assert not [line for line in strategies if "otherwise" in line]


async def test_a_second_process_does_not_take_the_session_over(
    arena: GatewayArena, start: Start, state: Path
) -> None:
    connect(start, arena, "akq", "learner")
    await here(arena, "learner")
    player = arena.gateway.players["learner"]
    connection = player.connection
    second = connect(start, arena, "akq", "learner")
    status, _, err = await ended(second)

    assert status == 2
    assert "a bot named 'learner' is here already" in err
    assert player.connection is connection
    [file] = state.glob("card-arena/*.json")
    assert json.loads(file.read_text())["secret"] == player.secret
    assert player.secret not in err


# --- verdicts and practice ---


async def test_J4_who_plays_illegally_is_told_what_to_do(
    arena: GatewayArena, start: Start, bot_file: Callable[[str], str]
) -> None:
    program = connect(start, arena, bot_file("return 'raise'"))
    await here(arena, "mine")
    await arena.result(arena.open("blackjack", "mine"))
    line = await asyncio.to_thread(program.until, "blackjack match")

    assert "eliminated: " in line
    assert '"raise"' in line
    assert "; answer with a whole number from `min` to `max`" in line


async def test_in_practice_a_bot_that_plays_illegally_plays_on(
    arena: GatewayArena, start: Start, bot_file: Callable[[str], str]
) -> None:
    arena.gateway.referee.practice = True
    program = connect(start, arena, bot_file("return 'raise'"))
    await here(arena, "mine")
    _, verdict = await arena.result(arena.open("blackjack", "mine", hands=5))
    await asyncio.to_thread(program.until, "blackjack match")

    assert verdict is None
    assert "for practice" in program.said
    refused = [line for line in program.said.splitlines() if "refused: " in line]
    assert refused, "at least its first bet; after that it may be broke"
    assert all('"raise"' in line and "; answered " in line for line in refused)
