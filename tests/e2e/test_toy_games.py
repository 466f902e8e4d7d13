"""Games of other packages, made at run time, through whole arenas."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from arena.formats.formats import forms_for
from arena.formats.spec import Form
from arena.storage.roster import Roster
from arena.storage.store import Store
from tests.support.in_process import CommandProcess, Run
from tests.support.toy_games import toy_game, toy_name, write_toy

if TYPE_CHECKING:
    from tests.support.gateway_bots import StartedProgram

pytestmark = pytest.mark.e2e

TOYS = (1, 3)


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandProcess]:
    """A process for commands that end by themselves, beside the packages of the toys."""
    folder = tmp_path_factory.mktemp("games")
    for seats in TOYS:
        write_toy(folder, seats)
    with pytest.MonkeyPatch.context() as patch, CommandProcess.beside(folder) as commands:
        patch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        yield commands


@pytest.fixture
def arena(commands: CommandProcess, tmp_path: Path) -> Run:
    """Runs `arena WORDS` in a folder of its own."""
    return partial(commands.arena, tmp_path)


# --- competitions ---


def a_run(seats: int, form: Form) -> str:
    """A `[[run]]` with more bots than there are seats."""
    house = ["bold", "timid"] * (seats // 2 + 1)
    return (
        f"[[run]]\nname = '{form}'\ngame = '{toy_name(seats)}'\nform = '{form}'\n"
        f"house = {house}\nleast = {len(house)}\npause_s = 0\n"
    )


@pytest.mark.parametrize("seats", TOYS)
def test_a_toy_is_played_in_every_form_that_fits_it(
    arena: Run, start: Callable[..., StartedProgram], tmp_path: Path, seats: int
) -> None:
    forms = forms_for(toy_game(seats))
    runs = "".join(a_run(seats, form) for form in forms)
    (tmp_path / "class.toml").write_text(f"[serve]\nport = 0\n{runs}")
    with Store(tmp_path / "arena.db") as store:
        token = Roster(store.engine).instructor("Eva")

    words = ("--config", "class.toml", "--once", "--json", "--log", "-")
    serving = start("arena", "serve", *words, cwd=tmp_path)
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
