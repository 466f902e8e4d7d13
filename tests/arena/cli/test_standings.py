from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from arena.cli import standings
from arena.formats.formats import schedule_of
from arena.formats.spec import Form
from arena.games import GAMES
from arena.storage.live_results import LiveResults
from arena.storage.store import Store
from protocol.messages import Ending
from tests.support.sample_database import from_outside, missing, write
from tests.support.written_competition import WrittenCompetition, names, offence, plan

Run = Callable[..., Any]


@pytest.fixture
def db(tmp_path: Path) -> str:
    return str(tmp_path / "class.db")


@pytest.fixture
def store(db: str) -> Iterator[Store]:
    with Store(db) as store:
        yield store


def akq(store: Store, id_: str = "akq-1", **more: Any) -> WrittenCompetition:
    players = ("ann", "ben", "cem")
    course = WrittenCompetition(store, plan(Form.ROUND_ROBIN, players, matches=2, **more), id_)
    course.plays(1, ("ann", "ben"), (5, -5))
    course.plays(2, ("ann", "cem"), (3, -3))
    return course


def ended_elimination(store: Store, id_: str, **more: Any) -> None:
    final = WrittenCompetition(store, plan(Form.ELIMINATION, names(4), **more), id_)
    (table,) = next(schedule_of(final.plan))
    final.plays(1, table.players, (4, 3, 2, -9))
    final.ends(ranking=LiveResults(store, final.id).ranking)


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


def test_the_only_competition(run: Run, store: Store, db: str) -> None:
    akq(store, run="monday")
    out = run("standings", "--db", db).text

    assert out.splitlines()[0] == (
        "akq-1 · monday · Ace-King-Queen: round robin, 2 matches, 20.0 s · "
        "running, 2 of 6, about 40 s left"
    )
    few = ("(too", "few)")
    assert ["1", "ann", "2", "0", "0", "+8", "+4.0", *few, "+3", "+5"] in cells(out)
    assert ["3", "ben", "0", "0", "1", "-5", "-5.0", *few, "-5"] in cells(out)


def test_a_mean_has_an_interval_and_a_line_below_says_what_that_is(
    run: Run, store: Store, db: str
) -> None:
    course = akq(store)
    for number, score in ((3, 4), (4, 9), (5, -2)):
        course.plays(number, ("ann", "ben"), (score, -score))
        course.plays(number + 3, ("ann", "cem"), (score + 2, -score - 2))
    ran = run("standings", "--db", db)
    row = run("standings", "--db", db, "--json").document["standings"][0]

    low, high = row["interval"]
    assert (row["level"], row["method"]) == (0.95, "Student")
    assert low < row["mean"] < high
    assert f"{row['mean']:+.1f} [{low:+.1f}, {high:+.1f}]" in ran.out
    assert "±" not in ran.out
    *_, below = ran.out.splitlines()
    assert below.startswith(
        "[…]: 95 % intervals, made so that at most 1 in 20 such ranges is wrong"
    )
    assert "of 8 matches without sums of the hands the unit is the match" in below


def test_verdicts_stand_beneath_in_a_line_each(run: Run, store: Store, db: str) -> None:
    course = akq(store)
    course.plays(3, ("ben", "cem"), (0, 0), offence(1))
    course.ends()
    *_, last = run("standings", "--db", db).out.splitlines()

    assert last == (
        "cem eliminated: seat 2 offended "
        "(illegal; match akq-1-3, seat 2; found by rules; 0 ms left in the bank)"
    )


def test_J3_what_was_forgiven_has_a_column_and_says_so(run: Run, store: Store, db: str) -> None:
    of = plan(Form.ROUND_ROBIN, ("ann", "ben"), matches=3, forgive=1)
    course = WrittenCompetition(store, of, "akq-1")
    course.plays(1, ("ann", "ben"), (4, -4))
    course.plays(2, ("ben", "ann"), (0, 0), offence(0, Ending.CRASH), event="one")
    table = run("standings", "--db", db).out
    league = WrittenCompetition(store, plan(Form.LEAGUE, ("ann",), matches=3, forgive=1), "tcp-1")
    league.plays(1, ("ann",), (1000,))
    league.plays(2, ("ann",), (-1000,), offence(0, Ending.CRASH), event="one")

    assert "forgiven" in table
    few = ("(too", "few)")
    assert ["1", "ann", "2", "0", "0", "0", "+4", "+4.0", *few, "+4"] in cells(table)
    assert ["2", "ben", "0", "0", "2", "1", "-4", "-4.0", *few, "-4"] in cells(table)
    assert "ben lost this match and plays on: seat 1 offended (crash;" in table
    assert "50.0 %" in run("standings", "tcp-1", "--db", db).out


def test_as_json(run: Run, store: Store, db: str) -> None:
    course = akq(store)
    course.ends()
    document = run("standings", "akq-1", "--db", db, "--json").document

    assert document["competition"] == "akq-1"
    assert document["state"] == "finished"
    assert [row["name"] for row in document["standings"]] == ["ann", "cem", "ben"]
    assert document["cross_table"]["ann"]["ben"]["score"] == 5
    assert (document["progress"]["settled"], document["progress"]["scheduled"]) == (6, 6)


def test_several_are_listed(run: Run, store: Store, db: str) -> None:
    akq(store, "akq-1", run="monday").ends()
    akq(store, "akq-2", run="monday")
    out = run("standings", "--db", db).out
    listed = run("standings", "--db", db, "--json").document

    assert out.startswith("2 competitions\n")
    assert "finished, 6 of 6" in out
    assert [(progress["competition"], progress["state"]) for progress in listed] == [
        ("akq-1", "finished"),
        ("akq-2", "running"),
    ]
    latest = run("standings", "monday", "--db", db, "--json").document
    assert latest["competition"] == "akq-2"


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


def test_none_is_a_list_of_none(run: Run, store: Store, db: str) -> None:
    assert run("standings", "--db", db, "--json").document == []


def test_every_form_has_a_table(run: Run, store: Store, db: str) -> None:
    league = WrittenCompetition(store, plan(Form.LEAGUE, ("ann", "ben")), "tcp-1")
    league.plays(1, ("ann",), (1000,))
    ladder = WrittenCompetition(store, plan(Form.LADDER, ("ann", "ben")), "gin-1")
    ladder.plays(1, ("ann", "ben"), (1, 0))
    bracket = WrittenCompetition(store, plan(Form.ELIMINATION, names(9)), "high-low-1")
    first, _ = next(schedule_of(bracket.plan))
    bracket.plays(1, first.players, (4, 3, 2, -9))
    ended_elimination(store, "high-low-2")

    def shown(id_: str) -> str:
        return str(run("standings", id_, "--db", db).text)

    assert "100.0 %" in shown("tcp-1")
    assert "rating" in shown("gin-1")
    assert "of" not in shown("gin-1").splitlines()[0].rpartition("·")[2]
    still = shown("high-low-1")
    assert still.count("out") == 2
    assert still.count("through") == 2
    assert still.count("bye") == 1
    over = shown("high-low-2")
    heads = next(line for line in over.splitlines() if "rank" in line)
    assert [head.strip() for head in heads.strip("┃").split("┃")] == [
        *("rank", "bot", "reached stage", "score in the final", "offence")
    ]
    assert [row[2:] for row in cells(over) if len(row) == 4] == [
        ["final", score] for score in ("+4", "+3", "+2", "-9")
    ]


@pytest.mark.parametrize("form", Form)
def test_every_table_shows_the_version_that_has_played_last(
    run: Run, store: Store, db: str, form: Form
) -> None:
    players = names(9 if form is Form.ELIMINATION else 2)
    course = WrittenCompetition(store, plan(form, players), "c-1")
    goes_on = form is Form.LADDER
    seats = players[:2] if goes_on else next(schedule_of(course.plan))[0].players
    last = tuple(f"v{seat}" if seat else "connected" for seat in range(len(seats)))
    scores = (100, 3, 2, -9)[: len(seats)]
    if goes_on:
        course.plays(2, seats, scores, versions=("v7", "v8"))
    course.plays(1, seats, scores, versions=last)
    ran, document = run("standings", "--db", db), run("standings", "--db", db, "--json").document

    expected = dict(zip(seats, last, strict=True))
    shown = {row["name"]: row["version"] for row in document["standings"]}
    assert document["versions"] == expected
    assert shown == {row["name"]: expected.get(row["name"]) for row in document["standings"]}
    assert f"{seats[0]} (connected)" in ran.out
    assert all(f"{name} v{seat} " in ran.out for seat, name in enumerate(seats) if seat)


def test_a_ranking_shows_the_version_that_has_played_last(run: Run, store: Store, db: str) -> None:
    final = WrittenCompetition(store, plan(Form.ELIMINATION, names(4)), "high-low-1")
    (table,) = next(schedule_of(final.plan))
    final.plays(1, table.players, (4, 3, 2, -9), versions=("v2", "connected", "v1", ""))
    final.ends(ranking=LiveResults(store, final.id).ranking)
    shown = [row[1:3] for row in cells(run("standings", "--db", db).out) if row[0] in "1234"]

    assert [" ".join(row).rpartition(" final")[0] or " ".join(row) for row in shown] == [
        f"{table.players[0]} v2",
        f"{table.players[1]} (connected)",
        f"{table.players[2]} v1",
        table.players[3],
    ]


def test_K5_who_was_not_there_and_who_met_nobody_has_no_rank(
    run: Run, store: Store, db: str
) -> None:
    away = {"not_there": ("zoe",)}
    course = WrittenCompetition(
        store, plan(Form.ROUND_ROBIN, ("ann", "ben", "cem"), **away), "akq-1"
    )
    course.plays(1, ("ben", "ann"), (0, 0), offence(1, Ending.ABSENT))
    course.plays(2, ("cem", "ben"), (0, 0), offence(1, Ending.ABSENT))
    league = WrittenCompetition(store, plan(Form.LEAGUE, ("ann", "ben"), **away), "tcp-1")
    league.plays(1, ("ann",), (1000,))
    ended_elimination(store, "high-low-1", **away)

    def rows(id_: str) -> dict[str, list[str]]:
        lines = run("standings", id_, "--db", db).out.splitlines()
        rows = (line.strip("│").split("│") for line in lines if line.startswith("│"))
        return {row[1].strip(): [cell.strip() for cell in row] for row in rows}

    def ranks(id_: str) -> list[Any]:
        document = run("standings", id_, "--db", db, "--json").document
        assert document["not_there"] == ["zoe"]
        return [(row["name"], row["rank"]) for row in document["standings"]]

    assert ranks("akq-1") == [(name, None) for name in ("cem", "ann", "ben", "zoe")]
    assert rows("akq-1")["cem"][:4] == ["–", "cem", "0", "0"]
    assert rows("akq-1")["ann"][:3] == ["–", "ann", "out"]
    assert rows("akq-1")["zoe"][:3] == ["–", "zoe", "not there"]
    assert ranks("tcp-1") == [("ann", 1), ("ben", None), ("zoe", None)]
    assert rows("tcp-1")["ben"][:3] == ["–", "ben", "0"]
    assert rows("tcp-1")["zoe"][:3] == ["–", "zoe", "not there"]
    assert rows("high-low-1")["zoe"] == ["–", "zoe", "not there", "", ""]


def test_a_cross_table_too_wide_for_a_terminal_is_left_out(run: Run, store: Store, db: str) -> None:
    WrittenCompetition(store, plan(Form.ROUND_ROBIN, names(12)), "small")
    WrittenCompetition(store, plan(Form.ROUND_ROBIN, names(13)), "large")

    assert "v bot-0" in run("standings", "small", "--db", db).out
    assert "v bot-0" not in run("standings", "large", "--db", db).out


def test_what_is_not_there(run: Run, store: Store, db: str, tmp_path: Path) -> None:
    said = run("standings", "monday", "--db", db).refusal()
    assert said.startswith("expected the id of a competition")

    said = run("standings", "--db", str(tmp_path / "none.db")).refusal()
    assert "found no file" in said
    assert not (tmp_path / "none.db").exists()


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

    assert "about" in out or not is_terminal
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
