"""A database outlives the package of its game; a broken package costs a line and nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena.storage.store import CompetitionState, Store
from tests.support.arena_process import ROOT
from tests.support.gateway_bots import StartedProgram
from tests.support.in_process import CommandProcess, Ran, run_here
from tests.support.toy_games import write_toy

pytestmark = pytest.mark.e2e

GONE = "toy_two of package toy_two 1.0 is not installed"
NEEDED = f"arena: {GONE}, and its rules are needed for this"


def arena(folder: Path, *words: str) -> Ran:
    """`arena WORDS` in a folder, without the packages."""
    with contextlib.chdir(folder):
        return run_here(*words)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database: a finished competition of a toy, and one that goes on."""
    folder, toys = tmp_path_factory.mktemp("class"), tmp_path_factory.mktemp("toys")
    write_toy(toys, 2)
    words = ("tournament", "round_robin", "toy_two", "bold", "timid", "bold", "--matches", "2")
    with CommandProcess.beside(toys) as commands:
        ran = commands.arena(folder, *words, "--db", "arena.db")
        assert "toy_two" not in ran.err or ran.out, ran
        ran = commands.arena(folder, "vectors", "toy_two", "vectors")
        assert ran.status == 0, ran
    with Store(folder / "arena.db") as store:
        [row] = store.competitions()
        unfinished = msgspec.structs.replace(row.plan, players=("ann", "ben"), bots=(), run="")
        store.competition_started("toy_two-unfinished", unfinished, 1_000.0)
    return folder


def finished(folder: Path) -> str:
    with Store(folder / "arena.db", create=False) as store:
        [row] = (row for row in store.competitions() if row.state is CompetitionState.FINISHED)
    return row.id


def test_the_records_and_the_plan_name_the_package(folder: Path) -> None:
    shown = arena(folder, "replay", "last", "--db", "arena.db", "--json")
    ran = arena(folder, "export", "--db", "arena.db", "whole")
    assert ran.status == 0, ran
    matches = folder / "whole" / finished(folder) / "matches.jsonl"
    records = [json.loads(line)["record"] for line in matches.read_text().splitlines()]
    assert json.loads(shown.out)["record"] in records
    assert {record["package"] for record in records} == {"toy_two 1.0"}
    assert "toy_two" in (folder / "whole" / "index.html").read_text()


def test_what_needs_no_rules_works_without_them(folder: Path) -> None:
    assert arena(folder, "backup", "--db", "arena.db", "copy.db").status == 0
    ran = arena(folder, "standings", "--db", "arena.db", finished(folder))

    assert (ran.status, ran.err) == (0, "")
    assert "timid" in ran.out
    ran = arena(folder, "standings", "--db", "arena.db")
    assert (ran.status, ran.err) == (0, "")
    assert "toy_two-unfinished" in ran.out


@pytest.mark.parametrize(
    "words",
    [
        ("replay", "last", "--db", "arena.db"),
        ("replay", "last", "--db", "arena.db", "--seat", "1", "--frames"),
        ("replay", "last", "--db", "arena.db", "--seat", "1", "--bot", "bold"),
    ],
)
def test_what_needs_the_rules_says_so_in_one_line(folder: Path, words: tuple[str, ...]) -> None:
    ran = arena(folder, *words)

    assert (ran.status, ran.out, ran.err) == (1, "", f"{NEEDED}\n")


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
    assert refused == 500
    assert GONE in line["error"]
    assert ended == 0
    assert "Traceback" not in told
    with Store(folder / "arena.db", create=False) as store:
        assert store.competition("toy_two-unfinished").state is CompetitionState.RUNNING


# ---- Packages that are broken


@pytest.fixture
def toys(tmp_path: Path) -> Path:
    """A folder with a toy that works, and one whose rules cannot be imported."""
    toys = tmp_path / "toys"
    write_toy(toys, 1)
    (toys / write_toy(toys, 3) / "rules.py").write_text("print('hello')\nraise SystemExit(3)\n")
    return toys


LEFT_OUT = "toy_three of toy_three 1.0 is left out (arena.games): "


def test_a_broken_package_costs_one_line_on_stderr(toys: Path, tmp_path: Path) -> None:
    words = ("play", "toy_one", "bold", "--set", "rounds=2", "--seed", "1", "--json")
    with CommandProcess.beside(toys) as commands:
        ran, other = (
            commands.arena(tmp_path, *each) for each in (words, ("play", "toy_three", "bold"))
        )
        layers = json.loads(commands.arena(tmp_path, "doctor", "--json").out)["layers"]

    assert ran.status == 0, ran
    assert json.loads(ran.out)
    why = f"SystemExit: 3 at {toys / 'toy_three' / 'rules.py'}:2"
    assert ran.err.splitlines() == ["hello", f"arena: {LEFT_OUT}{why}"]
    assert other.status == 2
    assert other.err.splitlines() == [
        f"arena: {LEFT_OUT}{why}",
        "arena: toy_three has words and no rules",
    ]
    # The doctor has a row for what is left out and for what is not.
    assert layers[-2:] == [
        {"name": "games from outside", "active": True, "detail": "toy_one of toy_one 1.0"},
        {
            "name": "toy_three of toy_three 1.0",
            "active": False,
            "detail": f"left out (arena.games): {why}",
        },
    ]


def test_the_program_of_a_bot_says_it_too(toys: Path, tmp_path: Path) -> None:
    (toys / "toy_one" / "bots.py").write_text("x = 1\n")
    ran = subprocess.run(
        [sys.executable, "-m", "bots", "toy_one", "bold"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(toys)))},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert ran.returncode == 2
    assert ran.stderr.splitlines()[0] == (
        "arena: toy_one of toy_one 1.0 is left out (arena.bots): "
        "expected `__all__` with the house bots in toy_one.bots, found none"
    )
    assert len(ran.stderr.splitlines()) == 2
