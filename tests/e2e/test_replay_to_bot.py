"""Rehearsals and analyses with bots as processes, over a WebSocket and over pipes."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

import arena
from arena.games.catalogue import GAMES
from arena.games.match import Record
from arena.lab.replay_to_bot import ReplayOutcome, program_of, replay_to_bot
from arena.sandbox.command import Program
from protocol.messages import Limits
from protocol.strategy import find
from tests.support.bot_processes import living
from tests.support.in_process import run_here
from tests.support.pipe_bot import pipe_bot

pytestmark = pytest.mark.e2e

LIMITS = Limits(start_ms=60_000, hello_ms=60_000, wall_ms=60_000)  # of bots that go on
GAME = "ace_king_queen"
HONEST = "legal[it['card'] != 'A']"  # bets and calls with the ace alone

# ---- Replays


def recorded(game: str, bot: str, **settings: object) -> Record:
    """A match between bots that do the same again."""
    bots = [find(game, bot)() for _ in range(GAMES[game].seats)]
    return arena.play(game, bots, settings=settings, seed=3).record


RECORD = recorded(GAME, "honest", hands=40)


async def rehearsed(
    record: Record, start: Callable[[str, str], Program], seat: int = 0, limits: Limits = LIMITS
) -> ReplayOutcome:
    names = ("ann", "ben", "cem", "dee")[: len(record.scores)]
    return await replay_to_bot(record, seat, names, start, limits)


def piped(
    tmp_path: Path, games: Sequence[str] = (GAME,), **more: Any
) -> Callable[[str, str], Program]:
    """A bot without a library."""
    (tmp_path / "bot.py").write_text(pipe_bot(games, **more))
    program = Program((sys.executable, "bot.py"), stdio=True, folder=tmp_path)
    return lambda url, name: program


async def test_the_same_bot_answers_the_same_and_another_does_not() -> None:
    record = recorded("high_low", "timid", max_shuffles=1)
    same = await rehearsed(record, program_of("high_low", "timid"), seat=3)
    by_chance = [await rehearsed(record, program_of("high_low", "random", "7")) for _ in range(2)]

    assert (same.differences, same.failed) == ((), None)
    assert same.same > 5
    assert by_chance[0] == by_chance[1], "it has a seed"
    assert len(by_chance[0].differences) > 0
    assert all(each.recorded != each.given for each in by_chance[0].differences)


async def test_a_bot_that_speaks_lines(tmp_path: Path) -> None:
    """It plays as `honest` does; what it lacks, only news could tell."""
    done = await rehearsed(RECORD, piped(tmp_path, value=HONEST), seat=1)

    assert done == await rehearsed(RECORD, program_of(GAME, "honest"), seat=1)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"value": '"raise"'}, 'answered "raise" to '),
        ({"asked": "sys.exit(3)"}, "crashed: exit status 3"),
        ({"asked": "say(type='nonsense')"}, "sent what cannot be accepted: "),
        ({"asked": "say(type='goodbye')"}, "said goodbye in the middle"),
        ({"games": ["gin_rummy"]}, "said hello for gin_rummy, expected ace_king"),
        ({"games": ["poker"]}, "its hello was refused: unknown game 'poker'"),
        ({"first": "sys.exit('no such book')"}, "crashed: exit status 1; it said: no such book"),
    ],
)
async def test_a_bot_that_fails(tmp_path: Path, options: dict[str, Any], text: str) -> None:
    done = await rehearsed(RECORD, piped(tmp_path, **options))

    assert done.failed is not None
    assert done.failed.text.startswith(text)
    assert done.same == 0


async def test_a_bot_that_never_says_hello(tmp_path: Path) -> None:
    limits = Limits(start_ms=200, hello_ms=300)
    done = await rehearsed(RECORD, piped(tmp_path, first="input()"), limits=limits)

    assert done.failed is not None


# ---- Analyses


def command(folder: Path, **more: Any) -> tuple[str, str]:
    """The option with the command of a bot without a library."""
    asked = f"asked += 1\n{more.pop('asked', '')}"
    text = pipe_bot(more.pop("games", (GAME,)), first="asked = 0", asked=asked, **more)
    (folder / "bot.py").write_text(text)
    return "--bot", f"ann=stdio: {sys.executable} {folder / 'bot.py'}"


@patch("arena.games.ace_king_queen.analysis.HANDS", 480)
def test_programs_are_worth_what_the_same_bots_are_in_process(tmp_path: Path) -> None:
    strategy = tmp_path / "mine.py"
    strategy.write_text("from bots.ace_king_queen import Honest\nclass Mine(Honest): pass\n")
    here = arena.analyse(GAME, "honest", against=["honest"], seed=3)

    options = (*command(tmp_path, value=HONEST), "--against", f"bob={strategy}", "--seed", "3")
    document = run_here("analyse", GAME, *options, "--json").document
    assert (document["bot"], document["against"]) == ("ann", ["bob"])
    found, expected = document["analysis"], msgspec.to_builtins(here)
    assert found["figures"][-1].pop("name") == "value against bob"
    assert expected["figures"][-1].pop("name") == "value against honest"
    assert found == json.loads(json.dumps(expected))
    assert found["asked"] > 1000


@pytest.mark.parametrize(
    ("options", "more", "text"),
    [
        ({"value": "'raise'"}, "", 'answered "raise" to open; legal: bet, check'),
        (
            {"asked": "if asked > 99: time.sleep(9)"},
            "--wall-ms 300",
            r"did not answer within \d+ ms",
        ),
        ({"games": ["gin_rummy"]}, "", f"said hello for gin_rummy, expected {GAME}"),
    ],
)
def test_what_a_program_does_wrong_ends_it(
    tmp_path: Path, options: dict[str, Any], more: str, text: str
) -> None:
    done = run_here("analyse", GAME, *command(tmp_path, **options), *more.split())

    assert re.match(f"ann failed: {text}", done.refusal(1))


def test_the_end_of_its_stderr_stands_before_the_line(tmp_path: Path) -> None:
    wrong = "asked > 9 and (print('which card?', file=sys.stderr, flush=True) or 1 / 0)"

    *said, line = run_here("analyse", GAME, *command(tmp_path, asked=wrong)).err.splitlines()
    assert said[0] == "ann: which card?"
    assert "ann: ZeroDivisionError: division by zero" in said
    assert line.startswith("arena: ann failed: crashed: exit status 1")


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="its processes are not found there")
def test_ctrl_c_stops_the_program_too(tmp_path: Path) -> None:
    option, words = command(tmp_path, asked="time.sleep(9)")
    sleeper = words.replace("ann=", "sleeper=")
    program = [sys.executable, "-m", "arena", "analyse", GAME, option, sleeper]
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as process:
        while not living("sleeper"):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)

    assert (process.returncode, said) == (130, "arena: interrupted after 0 answers\n")
    assert not living("sleeper")
