"""Games of other packages, made at run time, through whole arenas."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from arena.formats.formats import forms_for
from arena.formats.spec import Form
from arena.storage.roster import Roster
from arena.storage.store import Store
from tests.support.toy_games import toy_game, toy_name, write_toy

if TYPE_CHECKING:
    from tests.support.gateway_bots import StartedProgram

pytestmark = pytest.mark.e2e

TOYS = (1, 2, 3, 6)

Arena = Callable[..., "StartedProgram"]


@pytest.fixture
def arena(
    start: Callable[..., StartedProgram], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Arena:
    """Start `arena` in a folder of its own, beside the packages of the toys."""
    for seats in TOYS:
        write_toy(tmp_path / "games", seats)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "games"))
    return lambda *words: start("arena", *words, cwd=tmp_path)


def printed(program: StartedProgram) -> str:
    status, out, err = program.ends()
    assert status == 0, err
    assert "Traceback" not in err
    return out


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
    arena: Arena, tmp_path: Path, seats: int
) -> None:
    forms = forms_for(toy_game(seats))
    runs = "".join(a_run(seats, form) for form in forms)
    (tmp_path / "class.toml").write_text(f"[serve]\nport = 0\n{runs}")
    with Store(tmp_path / "arena.db") as store:
        token = Roster(store.engine).instructor("Eva")

    serving = arena("serve", "--config", "class.toml", "--once", "--json", "--log", "-")
    url = serving.until("arena at ws://").split()[2]
    if Form.LADDER in forms:
        for _ in range(3):
            while f"{toy_name(seats)}-" not in (line := serving.until("completed")):
                pass
        printed(arena("stop", "ladder", "--url", url, "--token", token))
    reports = {doc["form"]: doc for doc in map(json.loads, printed(serving).splitlines())}

    assert set(reports) == set(forms)
    for form, report in reports.items():
        assert report["verdicts"] == [], line
        assert report["played"] > 0 or form == "ladder"
        standings = json.loads(printed(arena("standings", form, "--json")))
        assert places(standings) == places(report)
    printed(arena("export", "out"))
    assert (
        f"Toy for {toy_name(seats).removeprefix('toy_')}"
        in (tmp_path / "out/index.html").read_text()
    )
    printed(arena("backup", "copy.db"))
    assert "all fit" in printed(arena("verify", "copy.db"))


def places(report: Any) -> list[tuple[int | None, str]]:
    """Who has which rank."""
    ranking = [(place["rank"], name) for place in report["ranking"] for name in place["names"]]
    return ranking or [(row["rank"], row["name"]) for row in report["standings"]]


@pytest.mark.parametrize(
    ("seats", "fields", "said"),
    [
        (2, "split = 2", "split: expected a game whose matches can be split, got toy_two"),
        (3, "form = 'round_robin'", "form: expected a game for 2 for a round robin, got toy_three"),
        (1, "form = 'ladder'", "form: expected a game for 2 or more for a ladder, got toy_one"),
        (6, "form = 'league'", "form: expected a game for 1 for a league, got toy_six"),
    ],
)
def test_a_run_that_does_not_fit_a_toy_is_one_line(
    arena: Arena, tmp_path: Path, seats: int, fields: str, said: str
) -> None:
    (tmp_path / "class.toml").write_text(f"[[run]]\ngame = '{toy_name(seats)}'\n{fields}\n")
    status, out, err = arena("serve", "--config", "class.toml").ends()

    assert (status, out) == (2, "")
    [line] = err.splitlines()
    assert said in line
