"""`arena mistakes` and `arena habits`, of a match and of a competition."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
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
from tests.support.judged_toys import install_judged_toy, toy_match, toy_record
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


def test_the_mistakes_of_a_seat_in_a_match(run: Run, db: str) -> None:
    assert run("mistakes", "m-2", "--seat", "cem", "--db", db).text.splitlines() == [
        "Toy for two, match m-2, cem: 2 mistakes in 2 judged decisions, together 6.00 chips.",
        "",
        "1. ?? costs 3.00 chips (exact)",
        "   round 1, its question 1",
        "   cem has As",
        "   it bids 3",
        "   better: bids 0",
        "",
        "2. ?? costs 3.00 chips (estimate, [2.51, 3.49])",
        "   round 2, its question 2",
        "   cem has Kd",
        "   it bids 0",
        "   better: bids 3",
        "",
        "Each is judged by what its seat knew at that moment, whatever cards came then.",
        "[low, high] is a 95 % interval of an estimate. "
        "The dearest of many estimates are more often too high than too low.",
    ]
    assert run("mistakes", "m-2", "--seat", "2", "--top", "1", "--db", db).text.count("better") == 1


def test_a_seat_without_a_mistake_and_one_without_a_judgement(
    run: Run, db: str, game: str, tmp_path: Path
) -> None:
    shown = run("mistakes", "last", "--seat", "1", "--db", db).text
    assert shown == "Toy for two, match m-4, ben: no mistake in 1 judged decision.\n"

    path = tmp_path / "record.json"
    path.write_bytes(toy_match(game, (0,), "2h").record.to_json())
    shown = run("mistakes", str(path), "--seat", "seat-2").text
    assert shown == f"Toy for two, match {path}, seat-2: none of 1 decision can be judged.\n"


def test_the_dearest_of_a_competition_name_their_match(run: Run, db: str, game: str) -> None:
    lines = run("mistakes", f"{game}-0", "--seat", "ben", "--db", db).text.splitlines()

    assert lines[0] == (
        "Toy for two, 5 matches, ben: 4 mistakes in 8 judged decisions of 9, together 9.00 chips."
    )
    assert [line for line in lines if "match " in line] == [
        "   match m-4, round 1, its question 1",
        "   match m-1, round 2, its question 2",
        "   match m-3, round 1, its question 1",
        "   match m-3, round 2, its question 2",
    ]


def test_the_document_has_what_is_shown(run: Run, db: str, game: str) -> None:
    document = run("mistakes", game, "--seat", "ben", "--top", "2", "--db", db, "--json").document
    first, second = document.pop("mistakes")

    assert document == {
        "game": game,
        "player": "ben",
        "matches": 5,
        "of": 5,
        "version": 7,
        "decisions": 9,
        "judged": 8,
        "totals": [{"unit": "chips", "count": 4, "total": 9.0}],
        "luck": None,
    }
    assert first == {
        "match": "m-4",
        "seat": 2,
        "round": 1,
        "number": 1,
        "index": 1,
        "kind": "bid",
        "question": "ben has Kd",
        "answer": 0,
        "answer_text": "bids 0",
        "best": 3,
        "best_text": "bids 3",
        "cost": 3.0,
        "unit": "chips",
        "error": None,
        "interval": None,
        "grade": 3,
        "times": 1,
    }
    assert second["interval"] == pytest.approx([2 - 0.49, 2 + 0.49], abs=0.001)


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


def test_names_in_a_file_from_elsewhere_are_made_fit_for_a_terminal(
    run: Run, db: str, tmp_path: Path
) -> None:
    document = json.loads(run("replay", "m-2", "--db", db, "--json").text)
    document["players"][0] = "\x1b[2Jann"
    file = tmp_path / "match.json"
    file.write_text(json.dumps(document))
    text = run("mistakes", str(file), "--seat", "1").text

    assert "[2Jann: " in text
    assert "\x1b" not in text


def test_the_same_exact_mistake_stands_once_with_how_often_it_was_made(
    run: Run, game: str, tmp_path: Path
) -> None:
    file = tmp_path / "match.json"
    file.write_bytes(toy_record(game, (3, 0, 3, 0), "As Ad As Ad").to_json())

    lines = run("mistakes", str(file), "--seat", "2", "--top", "1").text.splitlines()
    assert lines[2:4] == [
        "1. ?? costs 3.00 chips (exact), 2 times: 6.00 together",
        "   first in round 1, its question 1",
    ]
    assert sum(line.startswith("1.") for line in lines) == 1


def test_what_is_nowhere_is_a_line(run: Run, db: str, game: str, tmp_path: Path) -> None:
    def refusal(*words: str) -> str:
        return run("mistakes", *words, "--db", db).refusal()

    assert refusal("m-9", "--seat", "ann").startswith(
        "'m-9' is no match in the database: expected the id of a competition in "
    )
    assert refusal("m-1", "--seat", "eva") == "expected a seat from 1 to 2 or ann or ben, got 'eva'"
    assert refusal("m-4", "--seat", "ben") == "expected a seat's number: ben has seats 1 and 2"
    assert refusal(game, "--seat", "eva") == (
        f"'eva' played no match of {game}-00000001; expected one of: ann, ben, cem"
    )
    assert refusal("last-20", "--seat", "1") == (
        "expected the id of a match or `last` in the database, got 'last-20'"
    )
    missing = run("mistakes", "m-1", "--seat", "1", "--db", str(tmp_path / "none.db")).refusal()
    assert "found no file" in missing


def test_a_game_without_a_judge_and_a_damaged_record_are_lines(
    run: Run, game: str, tmp_path: Path
) -> None:
    path = tmp_path / "long.json"
    path.write_bytes(toy_match(game, (0,), "2h", 91).record.to_json())
    text = run("mistakes", str(path), "--seat", "1").refusal(1)
    assert text == "more than 90 rounds are too many"

    path.write_text(path.read_text().replace('"rounds":91', '"rounds":0'))
    text = run("mistakes", str(path), "--seat", "1").refusal(1)
    assert text.startswith(f"match {path} cannot be played again: ")


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


def test_the_habits_of_two_bots_stand_side_by_side(run: Run, db: str, game: str) -> None:
    lines = run("habits", game, "ben", "cem", "--db", db).text.splitlines()

    assert lines[:3] == [
        "ben: 9 decisions in 5 matches",
        "cem: 4 decisions in 2 matches",
        "Bids: how often",
    ]
    rows = [line.split() for line in lines if line.startswith("│")]
    assert [(row[1], "9" in row, "4" in row) for row in rows] == [
        (bid, True, True) for bid in "0123"
    ]


def test_the_habits_of_one_bot_as_a_document(run: Run, db: str, game: str) -> None:
    document = run("habits", game, "ann", "--db", db, "--json").document
    [habits] = document.pop("bots")

    assert document == {"game": game, "competition": f"{game}-00000001", "match": None}
    assert (habits["name"], habits["matches"], habits["decisions"]) == ("ann", 1, 3)
    assert [cell["count"] for [cell] in habits["charts"][0]["cells"]] == [3, 0, 0, 0]


def test_a_bot_that_never_played_is_a_line(run: Run, db: str, game: str) -> None:
    assert run("habits", game, "ann", "eva", "--db", db).refusal() == (
        f"'eva' played no match of {game}-00000001; expected one of: ann, ben, cem"
    )


def test_the_habits_in_one_match_by_name_or_seat(run: Run, db: str, game: str) -> None:
    document = run("habits", "m-2", "cem", "1", "--db", db, "--json").document
    assert (document["competition"], document["match"]) == (None, "m-2")
    assert [(bot["name"], bot["decisions"]) for bot in document["bots"]] == [("cem", 2), ("ben", 2)]

    lines = run("habits", "m-2", "cem", "--db", db).text.splitlines()
    assert lines[:2] == ["cem: 2 decisions in 1 match", "Bids: how often"]


def test_habits_of_what_is_nowhere_is_a_line(run: Run, db: str) -> None:
    assert "expected a seat from 1 to 2" in run("habits", "m-2", "eva", "--db", db).refusal()
    assert "expected" in run("habits", "m-9", "ben", "--db", db).refusal()


def test_habits_of_a_damaged_record_is_a_line(run: Run, game: str, tmp_path: Path) -> None:
    file = tmp_path / "match.json"
    record = toy_record(game, (3, 0), "As Kd")
    file.write_bytes(msgspec.structs.replace(record, answers=("x",)).to_json())

    assert "cannot be played again" in run("habits", str(file), "1").failure()
