"""Rehearsals with bots as processes, over a WebSocket and over pipes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import arena
from arena.games.catalogue import GAMES
from arena.games.match import Record
from arena.lab.replay_to_bot import BotFailed, ReplayOutcome, program_of, replay_to_bot
from arena.sandbox.command import Program
from protocol.messages import Limits
from protocol.strategy import find
from tests.support.pipe_bot import pipe_bot

pytestmark = pytest.mark.e2e

LIMITS = Limits(start_ms=60_000, hello_ms=60_000, wall_ms=60_000)  # of bots that go on
AKQ = "ace_king_queen"
STEADY = {AKQ: "honest", "gin_rummy": "simple", "high_low": "timid"}  # they do the same again
SETTINGS: dict[str, dict[str, Any]] = {
    AKQ: {"hands": 40},
    "gin_rummy": {},
    "high_low": {"max_shuffles": 1},
}


def recorded(game: str, seed: int = 3) -> Record:
    """A match between bots that do the same again."""
    seats = GAMES[game].seats
    bots = [find(game, STEADY[game])() for _ in range(seats)]
    return arena.play(game, bots, settings=SETTINGS[game], seed=seed).record


async def rehearsed(
    record: Record, start: Callable[[str, str], Program], seat: int = 0, limits: Limits = LIMITS
) -> ReplayOutcome:
    names = ("ann", "ben", "cem", "dee")[: len(record.scores)]
    return await replay_to_bot(record, seat, names, start, limits)


def piped(
    tmp_path: Path, games: Sequence[str] = (AKQ,), **more: Any
) -> Callable[[str, str], Program]:
    """A bot without a library."""
    (tmp_path / "bot.py").write_text(pipe_bot(games, **more))
    program = Program((sys.executable, "bot.py"), stdio=True, folder=tmp_path)
    return lambda url, name: program


@pytest.mark.parametrize("game", ["gin_rummy", "high_low"])
async def test_the_same_bot_answers_the_same(game: str) -> None:
    record = recorded(game)
    seat = len(record.scores) - 1

    done = await rehearsed(record, program_of(game, STEADY[game]), seat)

    assert (done.differences, done.failed) == ((), None)
    assert done.same > 5


async def test_another_bot_differs_somewhere() -> None:
    done = await rehearsed(recorded(AKQ), program_of(AKQ, "bluffer"))

    assert done.failed is None
    assert 0 < len(done.differences) < done.same + len(done.differences)
    assert all(difference.recorded != difference.given for difference in done.differences)


async def test_a_bot_that_plays_by_chance_does_the_same_with_a_seed() -> None:
    record = recorded("high_low")
    start = program_of("high_low", "random", "7")

    one, other = [await rehearsed(record, start) for _ in range(2)]

    assert one == other
    assert one.differences


async def test_a_bot_that_speaks_lines(tmp_path: Path) -> None:
    """It plays as `honest` does: bet and call with the ace; what it lacks, only news could tell."""
    value = "legal[it['card'] != 'A']"
    record = recorded("ace_king_queen")

    done = await rehearsed(record, piped(tmp_path, value=value), seat=1)

    assert done == await rehearsed(record, program_of("ace_king_queen", "honest"), seat=1)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"value": '"raise"'}, 'answered "raise" to '),
        ({"asked": "sys.exit(3)"}, "crashed: exit status 3"),
        ({"asked": "say(type='nonsense')"}, "sent what cannot be accepted: "),
        ({"asked": "say(type='goodbye')"}, "said goodbye in the middle"),
        ({"games": ["gin_rummy"]}, "said hello for gin_rummy, expected ace_king"),
        ({"games": ["poker"]}, "its hello was refused: unknown game 'poker'"),
    ],
)
async def test_a_bot_that_fails(tmp_path: Path, options: dict[str, Any], text: str) -> None:
    done = await rehearsed(recorded("ace_king_queen"), piped(tmp_path, **options))

    assert isinstance(done.failed, BotFailed)
    assert done.failed.text.startswith(text)
    assert done.same == 0


async def test_a_bot_that_ends_before_it_says_hello(tmp_path: Path) -> None:
    program = Program((sys.executable, "-c", "raise SystemExit('no such book')"))

    done = await rehearsed(recorded("ace_king_queen"), lambda url, name: program)

    assert isinstance(done.failed, BotFailed)
    assert done.failed.text == "crashed: exit status 1; it said: no such book"


async def test_a_bot_that_never_says_hello() -> None:
    program = Program((sys.executable, "-c", "input()"), stdio=True)
    limits = Limits(start_ms=200, hello_ms=300)

    done = await rehearsed(recorded("ace_king_queen"), lambda url, name: program, limits=limits)

    assert isinstance(done.failed, BotFailed)
