"""`arena mistakes` and `arena habits`, of a match and of a competition."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import arena
from arena.cli import mistakes
from arena.formats.schedule import Pairing
from arena.formats.spec import Form
from arena.records.luck import luck_of
from arena.records.mistakes import mistakes_of
from arena.records.seat_document import seat_document
from arena.storage.store import Store
from protocol.strategy import find
from tests.support.judged_toys import install_judged_toy, toy_match
from tests.support.sample_database import SHORT, SampleWriter, plan, void

if TYPE_CHECKING:
    from tests.arena.cli.conftest import Run


@pytest.fixture
def game(monkeypatch: pytest.MonkeyPatch) -> str:
    name = install_judged_toy(monkeypatch).name
    monkeypatch.setitem(SHORT, name, {"rounds": 3})
    return name


@pytest.fixture
def db(game: str, tmp_path: Path) -> str:
    """Five seats of ben's in four matches, beside a void one."""
    file = tmp_path / "arena.db"
    with Store(file) as store:
        planned = plan(game, players=("ann", "ben", "cem"), form=Form.ROUND_ROBIN)
        writer = SampleWriter(store, planned, f"{game}-00000001")
        writer.finished(Pairing(1, ("ann", "ben")), void(game), f"{game}-void")
        match = toy_match(game, (3, 1, 2), "Ah Kd 2s")
        writer.finished(Pairing(1, ("ann", "ben")), match, "m-1")
        writer.finished(Pairing(2, ("ben", "cem")), toy_match(game, (3, 0), "As Kd"), "m-2")
        writer.finished(Pairing(3, ("cem", "ben")), toy_match(game, (2, 2), "As Qc"), "m-3")
        writer.finished(Pairing(4, ("ben", "ben")), toy_match(game, (0,), "Kd"), "m-4")
    return str(file)


def test_a_match_says_how_much_of_what_was_won_is_luck(run: Run, tmp_path: Path) -> None:
    bots = [find("ace_king_queen", name)() for name in ("honest", "bluffer")]
    record = arena.play("ace_king_queen", bots, settings={"hands": 40}, seed=1).record
    file = tmp_path / "match.json"
    file.write_bytes(record.to_json())
    measured = luck_of(record)

    words = ("mistakes", str(file), "--seat", "2")
    line = run(*words).text.splitlines()[1]

    luck = {"unit": "chip", "gain": measured.gains[1], "luck": measured.luck[1]}
    assert run(*words, "--json").document["luck"] == luck
    without = measured.gains[1] - measured.luck[1]
    assert line.startswith(f"It won {measured.gains[1]:+.2f} chips, of which ")
    assert line.endswith(f" is luck: {without:+.2f} without it.")
    file.write_bytes(seat_document(record, 1, "m", ("ann", "ben")).to_json())
    assert run(*words, "--json").document["luck"] is None


@pytest.mark.parametrize("done", [0, 2])
def test_ctrl_c_shows_what_was_found_until_then(
    run: Run, db: str, game: str, done: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [None] * done

    def interrupted(*args: object) -> object:
        if not left:
            raise KeyboardInterrupt
        left.pop()
        return mistakes_of(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(mistakes, "mistakes_of", interrupted)
    ran = run("mistakes", game, "--seat", "ben", "--db", db, "--json")

    assert ran.failure(130) == f"interrupted after {done} of 5 matches"
    documents = [json.loads(line) for line in ran.out.splitlines()]
    assert [(one["matches"], one["of"]) for one in documents] == [(2, 5)] * bool(done)
