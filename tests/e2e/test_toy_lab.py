"""Games from outside, for 1, 2 and 3 seats, in the commands for experiments and for bot authors.

They are packages that are written at run time, and found by PYTHONPATH in processes of their own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from arena.sandbox.languages import Language
from tests.support.in_process import CommandProcess, Ran
from tests.support.toy_games import toy_name, write_toy
from tests.tools.starters import StarterTrial

pytestmark = pytest.mark.e2e

SEATS = (1, 2, 3)
EACH_TOY = pytest.mark.parametrize("seats", SEATS)
HOUSE = ("bold", "random", "timid")
BOTS = ("bold", "timid")  # two of them, that bid differently
ROUNDS = 5  # that `arena check` plays

Run: TypeAlias = Callable[..., Ran]


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages of all toys."""
    folder = tmp_path_factory.mktemp("packages")
    for seats in SEATS:
        write_toy(folder, seats)
    return folder


@pytest.fixture(scope="module")
def commands(packages: Path) -> Iterator[CommandProcess]:
    with CommandProcess.beside(packages) as commands:
        yield commands


@pytest.fixture
def arena(commands: CommandProcess, tmp_path: Path) -> Run:
    """Runs `arena WORDS`, which finds the toys, in a folder of its own."""
    return partial(commands.arena, tmp_path)


@pytest.fixture
def python(commands: CommandProcess, tmp_path: Path) -> Run:
    """Runs a piece of Python there."""
    return partial(commands.python, tmp_path)


@pytest.fixture
def printed(arena: Run) -> Callable[..., Any]:
    """What `arena WORDS --json` prints."""

    def run(*words: str) -> Any:
        done = arena(*words, "--json")
        assert done.status == 0, done.err
        return json.loads(done.out)

    return run


def filling(seats: int) -> list[str]:
    """House bots for so many seats, some of them several times."""
    return [*islice(cycle(BOTS), seats)]


@EACH_TOY
def test_a_match_is_played_by_objects_and_by_processes(
    printed: Callable[..., Any], seats: int
) -> None:
    game = toy_name(seats)
    bots = filling(seats)
    mine = f"mine={sys.executable} -m bots {game} bold"
    here = printed("play", game, *bots)
    launched = printed("play", game, *bots[1:], "--bot", mine)

    for document in (here, launched):
        assert document["game"] == game
        assert document["unit"] == "match"
        assert len(document["bots"]) == seats
        assert document["eliminated"] is None
        if seats > 1:
            assert sum(bot["score"] for bot in document["bots"]) == 0
    assert launched["bots"][-1]["name"] == "mine"


@EACH_TOY
def test_everybody_meets_everybody_in_any_number_of_processes(
    printed: Callable[..., Any], seats: int
) -> None:
    words = ("cross", toy_name(seats), *BOTS, "--games", "30", "--seed", "1")
    document = printed(*words)

    assert document == printed(*words, "--jobs", "2")
    assert {bot["name"] for bot in document["bots"]} == {*BOTS}
    # Two bots meet at one table of two, and share a larger one in all ways.
    ways = 2 if seats == 1 else seats - 1
    assert [len(table["bots"]) for table in document["tables"]] == [seats] * ways
    assert all(bot["units"] > 0 for bot in document["bots"])


@EACH_TOY
def test_it_is_no_game_to_go_broke_in(arena: Run, seats: int) -> None:
    done = arena("ruin", toy_name(seats), "bold", "--stake", "5", "--goal", "10")

    assert done.status == 2
    [line] = done.err.splitlines()
    assert line.startswith(f"arena: {toy_name(seats)} is not played for chips against the dealer")
    assert toy_name(1) not in line.partition("expected")[2]


@EACH_TOY
def test_a_match_is_stepped_through(arena: Run, python: Run, tmp_path: Path, seats: int) -> None:
    game = toy_name(seats)
    record = tmp_path / "record.json"
    play = (
        "import sys, arena; from protocol.strategy import find\n"
        "game, record, *bots = sys.argv[1:]\n"
        "result = arena.play(game, [find(game, bot)() for bot in bots], seed=1)\n"
        "open(record, 'wb').write(result.record.to_json())\n"
    )
    assert python(play, game, str(record), *filling(seats)).status == 0
    done = arena("replay", str(record))

    assert done.status == 0, done.err
    assert [f"round {number}" in done.out for number in (1, 10, 11)] == [True, True, False]
    assert "bid" in done.out
    seat = arena("replay", str(record), "--seat", "1", "--bot", "bold")
    assert seat.status == 0, seat.out + seat.err


def test_all_are_timed(python: Run) -> None:
    timed = python(
        "import asyncio; from arena.lab import capacity\n"
        "toys = [game for game in capacity.measurable() if game.name.startswith('toy_')]\n"
        "capacity.measurable = lambda: toys\n"
        "show = lambda found: print(found.game, found.server_us > 0)\n"
        "asyncio.run(capacity.measure(show, 0.05))"
    )

    assert {*timed.out.splitlines()} == {f"{toy_name(seats)} True" for seats in SEATS}, timed.err


def test_the_demo_has_a_competition_in_each(python: Run) -> None:
    listed = python(
        "from arena.lab.demo import field\n"
        "for contest in field(): print(contest.game, len(contest.bots), *contest.bots)"
    )
    contests = {game: int(bots) for game, bots, *_ in map(str.split, listed.out.splitlines())}

    for seats in SEATS:
        assert contests[toy_name(seats)] > seats


@pytest.fixture(scope="module")
def trial(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., StarterTrial]:
    def make(seats: int, language: Language) -> StarterTrial:
        folder = tmp_path_factory.mktemp("starters") / "mine"
        return StarterTrial(folder, toy_name(seats), language, ROUNDS, packages=packages)

    return make


def test_a_starter_passes_its_test_and_the_check(trial: Callable[..., StarterTrial]) -> None:
    mine = trial(1, Language.PYTHON)  # checks of more seats are in e2e/test_new and test_examples
    for step in ("test", "try"):
        mine.step(step)

    assert "0 failed" in mine.step("check")


# What is compiled is in e2e/test_new for games of ours, and `tests.tools.starters` has all.
@pytest.mark.needs("bash", "jq")
def test_a_starter_in_bash_passes_its_test(trial: Callable[..., StarterTrial]) -> None:
    mine = trial(3, Language.BASH)
    shown = [mine.step(step) for step in ("build", "test", "try")]

    assert shown[-1]
