"""Games from outside: in every form and command, and when their packages are gone or broken.

They are packages that are written at run time, and found by PYTHONPATH in processes of their own.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from arena.formats.formats import forms_for
from arena.formats.spec import Form
from arena.sandbox.languages import Language
from arena.storage.roster import Roster
from arena.storage.store import CompetitionState, Store
from tests.support.arena_process import ROOT
from tests.support.in_process import CommandProcess, Ran, Run, run_here
from tests.support.toy_games import toy_game, toy_name, write_toy
from tests.tools.starters import StarterTrial

if TYPE_CHECKING:
    from tests.support.gateway_bots import StartedProgram

pytestmark = pytest.mark.e2e

SEATS = (1, 2, 3)
BOTS = ("bold", "timid")  # two of them, that bid differently
ROUNDS = 5  # that `arena check` plays
PLAY = (
    "import sys, arena; from protocol.strategy import find\n"
    "game, record, *bots = sys.argv[1:]\n"
    "result = arena.play(game, [find(game, bot)() for bot in bots], seed=1)\n"
    "open(record, 'wb').write(result.record.to_json())\n"
)
LIST = (
    "import asyncio; from arena.games.catalogue import GAMES; from arena.lab import capacity; from arena.lab.demo import field\n"
    "toys = [game for game in capacity.measurable() if game.name == 'toy_two']\n"
    "capacity.measurable = lambda: toys\n"
    "show = lambda found: print('timed', found.game, found.server_us > 0)\n"
    "asyncio.run(capacity.measure(show, 0.05))\n"
    "for contest in field(): print('demo', contest.game, len(contest.bots) > GAMES[contest.game].seats)"
)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages of all toys."""
    folder = tmp_path_factory.mktemp("packages")
    for seats in SEATS:
        write_toy(folder, seats)
    return folder


@pytest.fixture(scope="module")
def commands(packages: Path) -> Iterator[CommandProcess]:
    """A process for commands that end by themselves, beside the packages."""
    with CommandProcess.beside(packages) as commands:
        yield commands


@pytest.fixture
def arena(commands: CommandProcess, tmp_path: Path) -> Run:
    """Runs `arena WORDS`, which finds the toys, in a folder of its own."""
    return partial(commands.arena, tmp_path)


# ---- Competitions


def a_run(seats: int, form: Form) -> str:
    """A `[[run]]` with more bots than there are seats."""
    house = ["bold", "timid"] * (seats // 2 + 1)
    return (
        f"[[run]]\nname = '{form}'\ngame = '{toy_name(seats)}'\nform = '{form}'\n"
        f"house = {house}\nleast = {len(house)}\npause_s = 0\n"
    )


@pytest.mark.parametrize("seats", [1, 3])
def test_a_toy_is_played_in_every_form_that_fits_it(
    arena: Run, start: Callable[..., StartedProgram], packages: Path, tmp_path: Path, seats: int
) -> None:
    forms = forms_for(toy_game(seats))
    runs = "".join(a_run(seats, form) for form in forms)
    (tmp_path / "class.toml").write_text(f"[serve]\nport = 0\n{runs}")
    with Store(tmp_path / "arena.db") as store:
        token = Roster(store.engine).instructor("Eva")

    words = ("--config", "class.toml", "--once", "--json", "--log", "-")
    path = os.pathsep.join((str(packages), os.environ["PYTHONPATH"]))
    env = {**os.environ, "PYTHONPATH": path}
    serving = start("arena", "serve", *words, cwd=tmp_path, env=env)
    url = serving.until("arena at ws://").split()[2]
    if Form.LADDER in forms:
        for _ in range(3):
            while f"{toy_name(seats)}-" not in serving.until("completed"):
                pass
        assert arena("stop", "ladder", "--url", url, "--token", token).status == 0
    status, out, err = serving.ends()
    assert (status, "Traceback" in err) == (0, False), err
    reports = {doc["form"]: doc for doc in map(json.loads, out.splitlines())}

    assert set(reports) == set(forms)
    for form, report in reports.items():
        assert report["verdicts"] == []
        assert report["played"] > 0 or form == "ladder"
        assert places(arena("standings", form, "--json").document) == places(report)
    assert arena("export", "out").status == 0
    page = (tmp_path / "out/index.html").read_text()
    assert f"Toy for {toy_name(seats).removeprefix('toy_')}" in page
    assert arena("backup", "copy.db").status == 0
    assert "all fit" in arena("verify", "copy.db").out


def places(report: Any) -> list[tuple[int | None, str]]:
    """Who has which rank."""
    ranking = [(place["rank"], name) for place in report["ranking"] for name in place["names"]]
    return ranking or [(row["rank"], row["name"]) for row in report["standings"]]


# ---- Experiments and authors


@pytest.mark.parametrize("seats", SEATS)
def test_the_commands_for_experiments_take_a_game_from_outside(
    arena: Run, commands: CommandProcess, tmp_path: Path, seats: int
) -> None:
    game = toy_name(seats)
    bots = [*islice(cycle(BOTS), seats)]
    mine = f"mine={sys.executable} -m bots {game} bold"
    for words in (bots, (*bots[1:], "--bot", mine)):  # objects, and a process
        played = arena("play", game, *words, "--json").document
        assert (played["game"], played["unit"], played["eliminated"]) == (game, "match", None)
        assert len(played["bots"]) == seats
        assert seats == 1 or sum(bot["score"] for bot in played["bots"]) == 0

    cross = ("cross", game, *BOTS, "--games", "30", "--seed", "1", "--json")
    table = arena(*cross).document
    assert table == arena(*cross, "--jobs", "2").document
    # Two bots meet at one table of two, and share a larger one in all ways.
    ways = 2 if seats == 1 else seats - 1
    assert [len(each["bots"]) for each in table["tables"]] == [seats] * ways
    assert all(bot["units"] > 0 for bot in table["bots"])

    line = arena("ruin", game, "bold", "--stake", "5", "--goal", "10").refusal(2)
    assert line.startswith(f"{game} is not played for chips against the dealer")
    assert toy_name(1) not in line.partition("expected")[2]

    record = str(tmp_path / "record.json")
    assert commands.python(tmp_path, PLAY, game, record, *bots).status == 0
    shown = arena("replay", record)
    assert shown.status == 0, shown.err
    assert [f"round {number}" in shown.out for number in (1, 10, 11)] == [True, True, False]
    assert arena("replay", record, "--seat", "1", "--bot", "bold").status == 0


def test_one_is_timed_and_all_have_a_competition_in_the_demo(
    commands: CommandProcess, tmp_path: Path
) -> None:
    listed = commands.python(tmp_path, LIST)

    expected = {"timed toy_two True", *(f"demo {toy_name(seats)} True" for seats in SEATS)}
    assert expected <= {*listed.out.splitlines()}, listed.err


# What is compiled is in test_new for games of ours, and `tests.tools.starters` has all.
@pytest.mark.parametrize(("seats", "language"), [(1, Language.PYTHON), (3, Language.BASH)])
@pytest.mark.needs("bash", "jq")
def test_a_starter_passes_its_test_and_the_check(
    packages: Path, tmp_path: Path, seats: int, language: Language
) -> None:
    mine = StarterTrial(tmp_path / "mine", toy_name(seats), language, ROUNDS, packages=packages)
    shown = [mine.step(step) for step in ("build", "test", "try")]

    assert shown[-1]
    if language is Language.PYTHON:  # checks of more seats are in test_new and test_examples
        assert "0 failed" in mine.step("check")


# ---- Packages that are gone

GONE = "toy_two of package toy_two 1.0 is not installed"


def without(folder: Path, *words: str) -> Ran:
    """`arena WORDS` in a folder, without the packages."""
    with contextlib.chdir(folder):
        return run_here(*words)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, commands: CommandProcess) -> Path:
    """A folder with a database: a finished competition of a toy, and one that goes on."""
    folder = tmp_path_factory.mktemp("class")
    words = ("tournament", "round_robin", "toy_two", "bold", "timid", "bold", "--matches", "2")
    commands.arena(folder, *words, "--db", "arena.db")
    with Store(folder / "arena.db") as store:
        [row] = store.competitions()
        unfinished = msgspec.structs.replace(row.plan, players=("ann", "ben"), bots=(), run="")
        store.competition_started("toy_two-unfinished", unfinished, 1_000.0)
    return folder


def finished(folder: Path) -> str:
    with Store(folder / "arena.db", create=False) as store:
        [row] = (row for row in store.competitions() if row.state is CompetitionState.FINISHED)
    return row.id


def test_what_needs_no_rules_works_without_them(folder: Path) -> None:
    shown = without(folder, "replay", "last", "--db", "arena.db", "--json")
    ran = without(folder, "export", "--db", "arena.db", "whole")
    assert ran.status == 0, ran
    matches = folder / "whole" / finished(folder) / "matches.jsonl"
    records = [json.loads(line)["record"] for line in matches.read_text().splitlines()]
    assert json.loads(shown.out)["record"] in records
    assert {record["package"] for record in records} == {"toy_two 1.0"}
    assert "toy_two" in (folder / "whole" / "index.html").read_text()
    assert without(folder, "backup", "--db", "arena.db", "copy.db").status == 0
    for words, said in (((finished(folder),), "timid"), ((), "toy_two-unfinished")):
        ran = without(folder, "standings", "--db", "arena.db", *words)
        assert (ran.status, ran.err, said in ran.out) == (0, "", True)


@pytest.mark.parametrize("options", ["", "--seat 1 --frames", "--seat 1 --bot bold"])
def test_what_needs_the_rules_says_so_in_one_line(folder: Path, options: str) -> None:
    ran = without(folder, "replay", "last", "--db", "arena.db", *options.split())

    assert ran.refusal(1) == f"{GONE}, and its rules are needed for this"


def get(url: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no signals")
def test_an_arena_starts_and_shows_what_is_there(
    folder: Path, start: Callable[..., StartedProgram]
) -> None:
    over = finished(folder)
    serving = start("arena", "serve", "--db", "arena.db", "--port", "0", cwd=folder)
    url = f"{serving.until('the page is at').split()[-1]}/api"
    _, listed = get(f"{url}/competitions.json")
    status, shown = get(f"{url}/competitions/{over}.json")
    crossed, _ = get(f"{url}/competitions/{over}/cross.json")
    _, matches = get(f"{url}/competitions/{over}/matches.json")
    match = matches["matches"][0]["id"]
    refused, line = get(f"{url}/matches/{match}.json")
    recorded, record = get(f"{url}/matches/{match}/record.json")
    serving.until(f"toy_two-unfinished cannot go on: {GONE}")
    serving.process.terminate()
    ended, _, told = serving.ends()

    assert {row["id"] for row in listed["competitions"]} == {over, "toy_two-unfinished"}
    assert (status, crossed, recorded) == (200, 200, 200)
    assert (shown["title"], len(shown["standings"])) == ("toy_two", 3)
    assert record["record"]["package"] == "toy_two 1.0"
    assert (refused, GONE in line["error"]) == (500, True)
    assert (ended, "Traceback" in told) == (0, False)
    with Store(folder / "arena.db", create=False) as store:
        assert store.competition("toy_two-unfinished").state is CompetitionState.RUNNING


# ---- Packages that are broken


def test_a_broken_package_costs_one_line_on_stderr(tmp_path: Path) -> None:
    toys = tmp_path / "toys"
    write_toy(toys, 1)
    rules = toys / write_toy(toys, 3) / "rules.py"
    rules.write_text("print('hello')\nraise SystemExit(3)\n")
    words = ("play", "toy_one", "bold", "--set", "rounds=2", "--seed", "1", "--json")
    with CommandProcess.beside(toys) as commands:
        ran, other = (
            commands.arena(tmp_path, *each) for each in (words, ("play", "toy_three", "bold"))
        )
        layers = json.loads(commands.arena(tmp_path, "doctor", "--json").out)["layers"]
    (toys / "toy_one" / "bots.py").write_text("x = 1\n")
    bot = subprocess.run(
        [sys.executable, "-m", "bots", "toy_one", "bold"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(toys)))},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (ran.status, bool(json.loads(ran.out))) == (0, True)
    why = f"SystemExit: 3 at {rules}:2"
    line = f"arena: toy_three of toy_three 1.0 is left out (arena.games): {why}"
    assert ran.err.splitlines() == ["hello", line]
    assert other.status == 2
    assert other.err.splitlines() == [line, "arena: toy_three has words and no rules"]
    # The doctor has a row for what is left out and for what is not.
    assert [(layer["name"], layer["active"], layer["detail"]) for layer in layers[-2:]] == [
        ("games from outside", True, "toy_one of toy_one 1.0"),
        ("toy_three of toy_three 1.0", False, f"left out (arena.games): {why}"),
    ]
    assert (bot.returncode, len(bot.stderr.splitlines())) == (2, 2)
    assert bot.stderr.splitlines()[0] == (
        "arena: toy_one of toy_one 1.0 is left out (arena.bots): "
        "expected `__all__` with the house bots in toy_one.bots, found none"
    )
