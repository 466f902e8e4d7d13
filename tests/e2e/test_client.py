"""Bots of ours as programs, against an arena in this process."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from protocol.messages import Ending

if TYPE_CHECKING:
    from tests.e2e.conftest import Arena, Program

pytestmark = pytest.mark.e2e

Run = Callable[..., None]
Start = Callable[..., "Program"]

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


@pytest.fixture
def bot_file(tmp_path: Path) -> Callable[[str], str]:
    """Write a bot that does something odd when it is asked; its path."""

    def write(decide: str) -> str:
        path = tmp_path / "mine.py"
        path.write_text(BOT.format(decide=decide))
        return str(path)

    return write


async def here(arena: Arena, name: str) -> None:
    await arena.until(lambda: name in arena.gateway.players)


async def ended(program: Program) -> tuple[int, str, str]:
    return await asyncio.to_thread(program.ends)


def connect(start: Start, arena: Arena, *words: str) -> Program:
    return start("bots", *words, "--url", arena.url)


@pytest.mark.parametrize("options", [(), ("--encoding", "msgpack", "--tables", "4")])
def test_a_house_bot_plays_until_the_arena_closes(
    in_arena: Run, start: Start, options: tuple[str, ...]
) -> None:
    programs: list[Program] = []

    async def scenario(arena: Arena) -> None:
        programs.append(connect(start, arena, "blackjack", "simple", *options))
        await here(arena, "simple")
        _, verdict = await arena.result(arena.open("blackjack", "simple", hands=20))

        assert verdict is None

    in_arena(scenario)
    status, out, err = programs[0].ends()

    assert (status, out) == (0, "")
    assert "connected as simple" in err
    assert "blackjack match" in err
    assert err.endswith("the arena has closed\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_whoever_stops_a_bot_lets_it_say_goodbye(
    in_arena: Run, start: Start, number: signal.Signals
) -> None:
    async def scenario(arena: Arena) -> None:
        program = connect(start, arena, "akq", "random")
        await here(arena, "random")
        async with arena.bot("raw"):
            table = arena.open("ace_king_queen", "random", "raw")
            program.process.send_signal(number)
            result, verdict = await arena.result(table)
            status, _, err = await ended(program)

            assert result.termination.kind is Ending.DISCONNECT
            assert "left in the middle of the match" in result.termination.text
            assert verdict is not None
            assert status == 130
            assert err.endswith("arena: left the arena\n")
            assert "Traceback" not in err

    in_arena(scenario)


def test_a_second_ctrl_c_ends_a_strategy_that_never_returns(
    in_arena: Run, start: Start, bot_file: Callable[[str], str]
) -> None:
    async def scenario(arena: Arena) -> None:
        program = connect(
            start,
            arena,
            bot_file("print('stuck', file=sys.stderr, flush=True); time.sleep(600)"),
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

    in_arena(scenario)


@pytest.mark.parametrize(
    ("decide", "error"),
    [
        ("raise KeyError('deck')", "KeyError"),
        ("sys.exit(3)", "SystemExit"),
        ("return {1, 2}.add", "TypeError"),
    ],
)
def test_J2_a_strategy_that_raises_has_crashed(
    in_arena: Run,
    start: Start,
    bot_file: Callable[[str], str],
    decide: str,
    error: str,
) -> None:
    async def scenario(arena: Arena) -> None:
        program = connect(start, arena, bot_file(decide))
        await here(arena, "mine")
        result, verdict = await arena.result(arena.open("blackjack", "mine"))
        status, _, err = await ended(program)

        assert result.termination.kind is Ending.CRASH
        assert verdict is not None
        assert verdict.text.startswith("seat 1 crashed: ")
        assert status == 1
        assert error in err
        assert err.splitlines()[-1].startswith("arena: ")
        assert "Traceback" in err  # its author's, with the line that raised

    in_arena(scenario)


def test_J2_a_process_that_dies_has_lost_its_connection(
    in_arena: Run, start: Start, bot_file: Callable[[str], str]
) -> None:
    async def scenario(arena: Arena) -> None:
        connect(start, arena, bot_file("os._exit(3)"))
        await here(arena, "mine")
        result, _ = await arena.result(arena.open("blackjack", "mine"))

        assert result.termination.kind is Ending.DISCONNECT

    in_arena(scenario, grace_ms=200)


def test_J7_a_slow_bot_with_many_tables_is_in_time(
    in_arena: Run, start: Start, bot_file: Callable[[str], str]
) -> None:
    async def scenario(arena: Arena) -> None:
        path = bot_file("time.sleep(0.1)")
        connect(start, arena, path, "--tables", "8")
        await here(arena, "mine")
        tables = [arena.open("blackjack", "mine", hands=1) for _ in range(8)]
        verdicts = [(await arena.result(table))[1] for table in tables]

        assert verdicts == [None] * 8

    in_arena(scenario, decision_ms=300, bank_ms=100, hard_ms=400)


def test_a_bot_comes_back_with_its_memory_when_its_connection_is_lost(
    in_arena: Run, start: Start
) -> None:
    async def scenario(arena: Arena) -> None:
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

    in_arena(scenario)


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


def test_a_bot_gives_up_when_its_patience_ends(
    in_arena: Run, start: Start, free_port: int
) -> None:
    programs: list[Program] = []

    async def scenario(arena: Arena) -> None:
        programs.append(
            connect(start, arena, "akq", "nash", "--patience", "0.5", "--quiet")
        )
        await here(arena, "nash")
        for connection in tuple(arena.gateway._connections):
            connection.cut()
        assert arena.gateway._server is not None
        arena.gateway._server.close()
        await asyncio.to_thread(programs[0].process.wait)

    in_arena(scenario)
    status, out, err = programs[0].ends()

    assert (status, out) == (1, "")
    assert err.startswith("arena: no arena answers at ws://")
    assert err.count("\n") == 1
