"""Programs that play over their standard input and output; they use no code of this repository."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from arena.server.stdio import Pipe
from tests.support.gateway_bots import in_arena

if TYPE_CHECKING:
    from tests.support.gateway_bots import GatewayArena

pytestmark = pytest.mark.e2e

# All that a bot in Python needs, and the same in a shell.
PYTHON = """
import json, sys
def say(**message): print(json.dumps(message), flush=True)
say(type="hello", protocol=1, name=sys.argv[1], games=["ace_king_queen"])
for line in sys.stdin:
    it = json.loads(line)
    if it["type"] == "match":
        say(type="ready", match=it["match"], nonce="n")
    elif it["type"] == "ask":
        say(type="answer", match=it["match"], ask=it["ask"], value=it["legal"][0])
"""
SHELL = r"""
echo '{"type":"hello","protocol":1,"name":"'$1'","games":["ace_king_queen"]}'
field() { echo "$line" | sed -n 's/.*"'$1'":"\([^"]*\)".*/\1/p'; }
while read -r line; do
    match=$(echo "$line" | sed -n 's/.*"match":"\([^"]*\)".*/\1/p')
    case $line in
    *'"type":"match"'*) echo '{"type":"ready","match":"'$match'","nonce":"n"}' ;;
    *'"kind":"open"'*) value=check ;;
    *'"kind":"respond"'*) value=fold ;;
    esac
    case $line in *'"type":"ask"'*)
        echo '{"type":"answer","match":"'$match'","ask":"'$(field ask)'","value":"'$value'"}' ;;
    esac
done
"""
CRASHES_IN_THE_MIDDLE = PYTHON.replace("value=it", "value=1 // 0 or it")
CHATTERS = PYTHON.replace("for line", 'print("I am ready!", flush=True)\nfor line')
CHEATS = PYTHON.replace('value=it["legal"][0]', 'value="all in"')

INTERPRETER = shlex.quote(sys.executable)


def slow(seconds: float) -> str:
    """The bot in Python, which waits so long before each answer."""
    waits = f'value=(time.sleep({seconds}), it["legal"][0])[1]'
    text = PYTHON.replace('value=it["legal"][0]', waits)
    return text.replace("import ", "import time, ", 1)


def write_bots(folder: Path, *, hello: str = '"me"', **texts: str) -> None:
    """Write bots, each to a file NAME.py; `hello` is their name, and may add fields of `hello`."""
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text.replace("sys.argv[1]", hello))


def bot(file: str, name: str = "") -> tuple[str, str]:
    """The option that launches such a bot."""
    return "--bot", f"{name and name + '='}stdio: {INTERPRETER} {file}"


@asynccontextmanager
async def program(
    arena: GatewayArena, name: str, *words: str
) -> AsyncIterator[tuple[Pipe, subprocess.Popen[bytes]]]:
    """Start a program beside the arena, connected by pipes; wait until it ends by itself."""
    process = subprocess.Popen([*words, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    stdin_fd, stdout_fd = (os.dup(end.fileno()) for end in (process.stdin, process.stdout))
    process.stdin.close()
    process.stdout.close()
    try:
        gateway = arena.gateway
        fds = stdin_fd, stdout_fd
        pipe = await Pipe.open(gateway, gateway.limits, gateway.timers, name, *fds)
        yield pipe, process
        pipe.close(1000)
        await asyncio.to_thread(process.wait, 10)
    finally:
        process.kill()
        process.wait()


async def present(arena: GatewayArena, *names: str) -> None:
    await arena.until(lambda: set(names) <= set(arena.gateway.players))


async def test_bots_on_pipes_play_each_other_to_the_end(arena: GatewayArena) -> None:
    python = (sys.executable, "-c", PYTHON)

    async with (
        program(arena, "ann", *python) as (_, one),
        program(arena, "ben", *python) as (_, two),
    ):
        await present(arena, "ann", "ben")
        table = arena.open("ace_king_queen", "ann", "ben", hands=100)
        result, verdict = await arena.result(table)
    assert (result.termination.kind.value, verdict) == ("completed", None)
    assert (one.returncode, two.returncode) == (0, 0)


async def test_a_shell_script_plays_a_bot_on_a_socket(arena: GatewayArena) -> None:
    async with (
        program(arena, "sh", "sh", "-c", SHELL, "bot") as (_, process),
        arena.bot("ben") as ben,
    ):
        await present(arena, "sh")
        table = arena.open("ace_king_queen", "sh", "ben", hands=4)
        await ben.play()
        result, verdict = await arena.result(table)

        assert (result.termination.kind.value, verdict) == ("completed", None)
    assert process.returncode == 0


async def test_a_bot_that_ends_in_the_middle_of_a_match_is_gone_after_its_grace() -> None:
    async with in_arena(grace_ms=50) as arena:
        words = (sys.executable, "-c", CRASHES_IN_THE_MIDDLE)
        async with program(arena, "ann", *words), arena.bot("ben") as ben:
            await present(arena, "ann")
            table = arena.open("ace_king_queen", "ann", "ben", hands=4)
            await ben.play()
            result, _ = await arena.result(table)

        assert result.termination.kind.value == "disconnect"
        assert result.termination.seat == 0
        await arena.still_plays()


async def test_what_is_printed_for_people_is_malformed(arena: GatewayArena) -> None:
    words = (sys.executable, "-c", CHATTERS)
    async with program(arena, "ann", *words) as (pipe, process):
        await arena.until(lambda: not pipe.is_open)
        await asyncio.to_thread(process.wait, 10)  # at the end of its input

        assert process.returncode == 0
    assert "ann" not in arena.gateway.players
    await arena.still_plays()


async def test_an_arena_that_closes_ends_its_bots(arena: GatewayArena) -> None:
    words = (sys.executable, "-c", PYTHON)
    async with program(arena, "ann", *words) as (pipe, process):
        await present(arena, "ann")
        await arena.gateway.close()
        await asyncio.to_thread(process.wait, 10)

        assert (process.returncode, pipe.is_open) == (0, False)
