from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest

from arena.cli import standings
from arena.formats.spec import Form
from arena.games.catalogue import GAMES
from arena.storage.store import Store
from tests.support.in_process import Run
from tests.support.sample_database import from_outside, missing, write
from tests.support.written_competition import WrittenCompetition, names, plan


@pytest.fixture
def db(tmp_path: Path) -> str:
    return str(tmp_path / "class.db")


@pytest.fixture
def store(empty_db: Store) -> Store:
    return empty_db


def akq(store: Store, id_: str = "akq-1", **more: Any) -> WrittenCompetition:
    players = ("ann", "ben", "cem")
    course = WrittenCompetition(store, plan(Form.ROUND_ROBIN, players, matches=2, **more), id_)
    course.plays(1, ("ann", "ben"), (5, -5))
    course.plays(2, ("ann", "cem"), (3, -3))
    return course


def without_intervals(table: str) -> list[str]:
    """The rows of a table, but for how sure their means are, which the rules must say."""
    rows = [
        " ".join(words) for words in cells(table)[1:] if words[:1] and words[0][0] in "–123456789"
    ]
    means = [re.sub(r" \[[^]]*\]| \(too few\)", "", row) for row in rows]
    return [re.sub(r"(\.\d)\d+", r"\1", row) for row in means]


def cells(table: str) -> list[list[str]]:
    """The words in each line of a table."""
    return [line.replace("│", " ").split() for line in table.splitlines()]


@pytest.mark.parametrize("game", sorted(GAMES))
def test_a_game_that_is_gone_has_standings_or_a_line_that_names_its_package(
    game: str, run: Run, db: str
) -> None:
    with from_outside(game):
        write(Path(db), (game,))
        before = run("standings", "--db", db).text
    with missing(game):
        ran, listed = run("standings", "--db", db, "--json"), run("standings", "--db", db)
        title = game

    league = GAMES[game].seats == 1
    assert (ran.status, listed.status) == (0, 0)
    assert listed.out.splitlines()[0].split(" · ")[1].startswith(f"{title}: ")
    line = f"arena: {game} of package leduc 1.0 is not installed, and its rules are needed for this"
    assert listed.err.splitlines() == ([line] if league else [])
    assert (without_intervals(listed.out) == without_intervals(before)) != league


def test_the_list_has_competitions_whose_game_is_gone(run: Run, db: str) -> None:
    with from_outside("high_low"), from_outside("three_card_poker"):
        write(Path(db), ("high_low", "three_card_poker", "ace_king_queen"))
    with missing("high_low"), missing("three_card_poker"):
        out = run("standings", "--db", db).text

    assert out.startswith("3 competitions\n")


def test_in_a_narrow_terminal_ids_can_still_be_read(
    run: Run, store: Store, db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = ("three_card_poker-9a8b7c6d", "three_card_poker-12345678")
    for id_ in ids:
        akq(store, id_, run="monday evening")
    monkeypatch.setenv("COLUMNS", "70")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    out = run("standings", "--db", db).out

    assert len(out.splitlines()[1]) == 70
    assert "…" not in out
    assert all(id_ in out for id_ in ids)


def test_a_cross_table_too_wide_for_a_terminal_is_left_out(run: Run, store: Store, db: str) -> None:
    WrittenCompetition(store, plan(Form.ROUND_ROBIN, names(12)), "small")
    WrittenCompetition(store, plan(Form.ROUND_ROBIN, names(13)), "large")

    assert "v bot-0" in run("standings", "small", "--db", db).out
    assert "v bot-0" not in run("standings", "large", "--db", db).out


@pytest.mark.parametrize("is_terminal", [False, True])
def test_following_ends_with_the_competition(
    run: Run, store: Store, db: str, monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    course = akq(store)
    looked = threading.Event()

    def play_on(seconds: float) -> None:
        """Instead of waiting: what happens meanwhile."""
        assert seconds == standings.INTERVAL_S
        if looked.is_set():
            course.ends()
        else:
            course.plays(3, ("ben", "cem"), (7, -7))
            looked.set()

    monkeypatch.setattr("arena.cli.standings.time.sleep", play_on)
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal, raising=False)
    out = run("standings", "--db", db, "--follow").out

    assert ("about" in out) == is_terminal  # how far it is, only where one looks
    assert "finished, 6 of 6" in out
    assert "+7" in out


def test_ctrl_c_while_following_disturbs_nobody(
    run: Run, store: Store, db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    akq(store)

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("arena.cli.standings.time.sleep", interrupted)
    said = run("standings", "--db", db, "--follow").refusal(130)

    assert said == "interrupted; akq-1 goes on without us"
