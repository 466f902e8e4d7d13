from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from arena.cli import standings
from arena.formats.spec import Form
from arena.storage.store import Store
from tests.support.in_process import Run
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
