from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pandas  # type: ignore[import-untyped]
import pytest

from arena.engine.analysis import Judgement, Judging
from arena.engine.match import Record, Result
from arena.formats.formats import schedule_of
from arena.formats.schedule import Outcome
from arena.formats.spec import Form, RelaunchSpec
from arena.games import GAMES, game_named
from arena.records import verify
from arena.records.decisions import decisions
from arena.records.document import MatchDocument
from arena.results import csv_tables
from arena.results.export import Exported, Options, export
from arena.storage.attempts import AttemptRow
from arena.storage.live_results import LiveResults
from arena.storage.roster import Roster
from arena.storage.roster_csv import Student, class_in
from arena.storage.schema import ROSTER
from arena.storage.store import CompetitionState, Store
from protocol.errors import ArenaError, UsageError
from protocol.messages import Ending
from tests.support.written_competition import (
    COMPLETED,
    WrittenCompetition,
    names,
    offence,
    plan,
    play,
)

SCRIPT = "<script>alert(1)</script>"
FORMULA = "=1+1"
SECRET = "python3 --token=hush"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "arena.db") as store:
        yield store


@pytest.fixture
def anywhere(database: str) -> Iterator[Store]:
    """A store in either kind of database."""
    with Store(database) as store:
        yield store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "results"


def akq(store: Store, id_: str = "akq-1", **more: Any) -> WrittenCompetition:
    """A round robin with an offender, a void match, one taken back, and two unpleasant names."""
    players = (SCRIPT, FORMULA, "ann", "ben")
    course = WrittenCompetition(store, plan(Form.ROUND_ROBIN, players, **more), id_)
    course.notes(1, (SCRIPT, FORMULA), play(seed=1, hands=20))
    course.notes(2, ("ann", FORMULA), play(seed=2, hands=20))
    course.takes_back(course.notes(3, ("ann", SCRIPT), play(seed=3, hands=20)))
    course.plays(4, ("ann", "ben"), (0, 0), offence(1, Ending.VOID))
    result = msgspec.structs.replace(play(hands=2), termination=offence(1))
    evidence = {"asked": "the king", "got": "'raise'", "stderr": "one\ntwo\n"}
    course.notes(5, ("ann", "ben"), result, **evidence)
    return course


def finished(store: Store, folder: Path) -> WrittenCompetition:
    """That round robin, over and exported."""
    course = akq(store)
    course.ends()
    export(store, folder, [course.id])
    return course


def others(
    store: Store,
) -> tuple[WrittenCompetition, WrittenCompetition, WrittenCompetition, WrittenCompetition]:
    """One of each other form, and an elimination that goes on."""
    league = WrittenCompetition(store, plan(Form.LEAGUE, ("ann", "ben"), matches=2), "tcp-1")
    league.notes(1, ("ann",), play("three_card_poker", 1, rounds=5))
    ladder = WrittenCompetition(store, plan(Form.LADDER, ("ann", "ben")), "gin-1")
    ladder.notes(1, ("ann", "ben"), play("gin_rummy", 1, max_rounds=1))
    final = WrittenCompetition(store, plan(Form.ELIMINATION, names(4)), "high-low-1")
    (table,) = next(schedule_of(final.plan))
    final.notes(1, table.players, play("high_low", 1, max_shuffles=1))
    for course in (league, ladder, final):
        course.ends()
    going_on = WrittenCompetition(store, plan(Form.ELIMINATION, names(9)), "high-low-2")
    first, _ = next(schedule_of(going_on.plan))
    going_on.plays(1, first.players, (4, 3, 2, -9))
    return league, ladder, final, going_on


def table(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# ---- What is in the files


def test_a_round_robin(store: Store, folder: Path) -> None:
    course = akq(store)
    course.ends()
    done = export(store, folder, [course.id])

    assert done == Exported(files=("index.html", "export.json"), competitions=done.competitions)
    [one] = done.competitions
    assert (one.id, one.folder, one.matches) == ("akq-1", "akq-1", 5)
    assert one.files == (
        "standings.csv",
        "cross_table.csv",
        "verdicts.csv",
        "competition.json",
        "matches.csv",
        "matches.jsonl",
    )
    there = {p.relative_to(folder).as_posix() for p in folder.rglob("*")}
    assert there == {*done.files, "akq-1", *(f"akq-1/{file}" for file in one.files)}


def test_standings_are_those_of_the_arena(store: Store, folder: Path) -> None:
    course = finished(store, folder)
    rows = table(folder / "akq-1" / "standings.csv")
    expected = LiveResults(store, course.id).standings

    assert [row["name"] for row in rows] == [
        f"'{row.name}" if row.name == FORMULA else row.name for row in expected
    ]
    for row, one in zip(rows, expected, strict=True):
        assert row["rank"] == ("" if one.rank is None else str(one.rank))
        assert row["score"] == ("" if one.rank is None else str(one.score))
        assert row["mean"] == ("" if one.mean is None else repr(one.mean))
    assert list(rows[0])[:2] == ["rank", "name"]
    assert rows[-1]["eliminated"] == "illegal"
    assert rows[-1]["eliminated_text"] == "seat 2 offended"
    assert any(row["score"].startswith("-") for row in rows)  # no apostrophe there


def test_the_cross_table_has_a_row_and_a_column_for_everyone_left(
    store: Store, folder: Path
) -> None:
    course = akq(store)
    export(store, folder, [course.id])
    rows = {row["name"]: row for row in table(folder / "akq-1" / "cross_table.csv")}
    cells = LiveResults(store, course.id).cross_table

    assert [*rows] == [SCRIPT, f"'{FORMULA}", "ann"]
    assert int(rows["ann"][f"'{FORMULA}"]) == cells["ann"][FORMULA].score
    assert int(rows[SCRIPT][f"'{FORMULA}"]) == cells[SCRIPT][FORMULA].score
    assert rows["ann"][SCRIPT] == rows["ann"]["ann"] == ""


def test_matches_have_a_row_for_every_seat(store: Store, folder: Path) -> None:
    course = finished(store, folder)
    rows = table(folder / "akq-1" / "matches.csv")
    played = store.matches(course.id)

    assert len(rows) == 10
    for index, row in enumerate(rows):
        match, seat = played[index // 2], index % 2
        assert row["match"] == match.id
        assert int(row["seat"]) == seat
        assert row["name"].lstrip("'") == match.players[seat]
        assert int(row["score"]) == match.result.scores[seat]
        assert row["counts"] == ("true" if match.counts else "false")
        assert float(row["started_at"]) == match.started_at
        assert row["digest"] == match.digest
    assert [row["counts"] for row in rows[::2]] == ["true", "true", "false", "false", "true"]
    assert (rows[9]["kind"], rows[9]["kind_seat"]) == ("illegal", "1")


async def test_matches_name_the_worker_that_refereed(store: Store, folder: Path) -> None:
    three = ("ann", "ben", "cem")
    course = WrittenCompetition(store, plan(Form.ROUND_ROBIN, three), "akq-course")
    attempt = AttemptRow(
        id="akq-course-1",
        job="job",
        competition=course.id,
        pairing=1,
        players=("ann", "ben"),
        worker="north",
        commitment="",
        announced_at=1.0,
        message=b"",
    )
    await store.attempts.announce(attempt)
    assert course.plays(1, ("ann", "ben"), (4, -4)) == attempt.id
    course.plays(2, ("ann", "cem"), (4, -4))
    export(store, folder, [course.id])

    rows = table(folder / "akq-course" / "matches.csv")
    assert [row["worker"] for row in rows] == ["north", "north", "", ""]


def test_verdicts_have_all_evidence(store: Store, folder: Path) -> None:
    course = finished(store, folder)
    [row] = table(folder / "akq-1" / "verdicts.csv")
    [verdict] = store.verdicts(course.id)

    assert list(row) == list(verdict.__struct_fields__)
    assert (row["bot"], row["asked"], row["got"]) == ("ben", "the king", "'raise'")
    assert row["stderr"] == "one\ntwo\n"  # two lines in one cell
    assert json.loads(row["limits"]) == msgspec.to_builtins(verdict.limits)


def test_every_match_can_be_verified_from_its_line(store: Store, folder: Path) -> None:
    finished(store, folder)
    lines = (folder / "akq-1" / "matches.jsonl").read_bytes().splitlines()
    good = []
    for line in lines:
        document = MatchDocument.from_json(line)
        good.append(verify.check(document).reasons == ())
    broken = MatchDocument.from_json(lines[0].replace(b'"pairing":1', b'"pairing":2'))

    # The last two have the record of another match.
    assert good == [True, True, True, False, False]
    assert verify.check(broken).reasons


def test_the_document_says_all_that_the_tables_say(store: Store, folder: Path) -> None:
    course = akq(store)
    course.removes("ann")
    course.ends()
    export(store, folder, [course.id])
    document = json.loads((folder / "akq-1" / "competition.json").read_bytes())
    summary = LiveResults(store, course.id).summary()

    assert document == json.loads(msgspec.json.encode(summary))
    assert document["plan"]["players"] == [SCRIPT, FORMULA, "ann", "ben"]
    assert [act["what"] for act in document["actions"]] == ["void", "remove"]
    assert [row["name"] for row in document["standings"]][-2:] == ["ann", "ben"]


def test_every_other_form(store: Store, folder: Path) -> None:
    courses = others(store)
    export(store, folder, [course.id for course in courses])

    [ann, ben] = table(folder / "tcp-1" / "standings.csv")
    assert {ann["name"], ben["name"]} == {"ann", "ben"}
    assert not (folder / "tcp-1" / "cross_table.csv").exists()
    ladder = table(folder / "gin-1" / "standings.csv")
    assert sorted(float(row["rating"]) for row in ladder) != [0.0, 0.0]
    ranking = table(folder / "high-low-1" / "ranking.csv")
    assert {row["name"] for row in ranking} == set(names(4))
    assert ranking[0]["offence"] == "false"
    scores = [int(row["score_in_final"]) for row in ranking]
    assert scores == sorted(scores, reverse=True)
    assert not (folder / "high-low-1" / "standings.csv").exists()
    bracket = table(folder / "high-low-2" / "standings.csv")
    assert [row["stands"] for row in bracket].count("out") == 2


def graded(file: Path) -> dict[str, tuple[str, str]]:
    return {row["name"]: (row["email"], row["team"]) for row in table(file)}


def test_who_is_graded_has_the_rosters_email_and_team(anywhere: Store, folder: Path) -> None:
    players = ("ann/gin", "BEN", "house", "zoe")
    course = WrittenCompetition(anywhere, plan(Form.ROUND_ROBIN, players[:3], not_there=("zoe",)))
    course.plays(1, ("ann/gin", "BEN"), (0, 0), offence(1))
    course.ends()
    league = WrittenCompetition(anywhere, plan(Form.LEAGUE, ("ben",)), "tcp-1")
    final = WrittenCompetition(anywhere, plan(Form.ELIMINATION, ("ann", *names(3))), "final")
    (table_,) = next(schedule_of(final.plan))
    final.plays(1, table_.players, (4, 3, 2, -9))
    final.ends(ranking=LiveResults(anywhere, final.id).ranking)
    export(anywhere, folder, [course.id, league.id, final.id])
    assert set(graded(folder / course.id / "standings.csv").values()) == {("", "")}

    roster = Roster(anywhere.engine)
    text = "name,email,team\nann,ann@uni,red\nben,ben@uni,\nzoe,zoe@uni,blue\n"
    roster.take(class_in(text, "class.csv"))
    export(anywhere, folder, [course.id, league.id, final.id], Options(force=True))

    assert graded(folder / course.id / "standings.csv") == {
        "ann/gin": ("ann@uni", "red"),
        "BEN": ("ben@uni", ""),
        "house": ("", ""),
        "zoe": ("zoe@uni", "blue"),
    }
    assert graded(folder / "tcp-1" / "standings.csv") == {"ben": ("ben@uni", "")}
    ranking = graded(folder / "final" / "ranking.csv")
    assert (ranking["ann"], ranking["bot-0"]) == (("ann@uni", "red"), ("", ""))
    columns = list(table(folder / "final" / "ranking.csv")[0])
    assert columns[:4] == ["rank", "name", "email", "team"]


def test_results_keep_the_old_name_and_belong_to_who_had_it_then(
    anywhere: Store, folder: Path
) -> None:
    roster = Roster(anywhere.engine, lambda: 2000.0)
    roster.take([Student(name="ann", email="ann@uni"), Student(name="ben", email="b@uni")])
    course = WrittenCompetition(anywhere, plan(Form.ROUND_ROBIN, ("ann/gin", "ben")))
    course.plays(1, ("ann/gin", "ben"), (1, -1))
    course.ends()
    roster.rename("ann", "anna")
    roster.remove("ben")
    roster.take([Student(name="ann", email="new@uni"), Student(name="ben", email="n@uni")])
    later = WrittenCompetition(anywhere, plan(Form.LEAGUE, ("ann", "ben", "anna")), "later")
    anywhere.competition_started("last", later.plan, 3000.0)
    anywhere.flush()
    export(anywhere, folder, [course.id, "last"])

    assert graded(folder / course.id / "standings.csv") == {
        "ann/gin": ("ann@uni", ""),
        "ben": ("", ""),
    }
    assert graded(folder / "last" / "standings.csv") == {
        "ann": ("new@uni", ""),
        "ben": ("n@uni", ""),
        "anna": ("ann@uni", ""),
    }


def test_K5_who_was_not_there_and_who_met_nobody_has_no_rank(store: Store, folder: Path) -> None:
    away = {"not_there": ("zoe",)}
    course = WrittenCompetition(
        store, plan(Form.ROUND_ROBIN, ("ann", "ben", "cem"), **away), "akq-1"
    )
    course.plays(1, ("ann", "ben"), (0, 0), offence(1, Ending.ABSENT))
    league = WrittenCompetition(store, plan(Form.LEAGUE, ("ann", "ben"), **away), "tcp-1")
    league.plays(1, ("ann",), (5,))
    final = WrittenCompetition(store, plan(Form.ELIMINATION, names(4), **away), "high-low-1")
    (tables,) = next(schedule_of(final.plan))
    final.plays(1, tables.players, (4, 3, 2, -9))
    course.ends()
    final.ends(ranking=LiveResults(store, final.id).ranking)
    going_on = WrittenCompetition(store, plan(Form.ELIMINATION, names(9), **away), "high-low-2")
    export(store, folder, [course.id, league.id, final.id, going_on.id])

    def listed(id_: str, file: str) -> list[tuple[str, str, str]]:
        rows = table(folder / id_ / file)
        return [(row["rank"], row["name"], row["not_there"]) for row in rows]

    assert listed("akq-1", "standings.csv") == [
        *(("", "ann", "false"), ("", "cem", "false")),
        *(("", "ben", "false"), ("", "zoe", "true")),
    ]
    assert listed("tcp-1", "standings.csv") == [
        *(("1", "ann", "false"), ("", "ben", "false"), ("", "zoe", "true"))
    ]
    ranking = listed("high-low-1", "ranking.csv")
    assert ranking[-1] == ("", "zoe", "true")
    assert [rank for rank, _, _ in ranking[:-1]] == ["1", "2", "3", "4"]
    bracket = table(folder / "high-low-2" / "standings.csv")
    assert (bracket[-1]["name"], bracket[-1]["stands"]) == ("zoe", "not there")
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert page.count("not there when it started") == 3
    assert page.count("out: absent") == 1


def test_without_matches(store: Store, folder: Path) -> None:
    course = akq(store)
    course.ends()
    done = export(store, folder, [course.id], Options(matches=False))

    assert not any("matches" in file for file in done.competitions[0].files)
    assert done.competitions[0].matches == 0


@pytest.mark.parametrize(
    "start", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20"]
)
def test_a_text_that_looks_like_a_formula_is_written_as_text(start: str) -> None:
    [[cell]] = csv.reader([csv_tables.text([[f"{start}1"]])])

    assert cell.startswith(f"'{start}"[:2])


# ---- What must not be in them


def everything(folder: Path) -> str:
    return "".join(
        path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*")) if path.is_file()
    )


def test_no_token_and_no_command_leaves_the_arena_and_an_email_only_for_grades(
    store: Store, folder: Path
) -> None:
    row = {"name": "ann", "email": "=ann@example.org", "token_hash": "c0ffee" * 8, "made_at": 1.0}
    with store.engine.begin() as connection:
        connection.execute(ROSTER.insert().values(**row))
    bots = (RelaunchSpec(name="ann", words=tuple(SECRET.split()), folder="/home/prof"),)
    course = akq(store, bots=bots)
    course.ends()
    export(store, folder, [course.id])
    written = everything(folder)

    assert '"ann"' in written
    for secret in ("c0ffee", "hush", "/home/prof"):
        assert secret not in written
    grades = folder / course.id / "standings.csv"
    assert "'=ann@example.org" in grades.read_text(encoding="utf-8")
    grades.unlink()
    assert "example.org" not in everything(folder)

    export(store, folder.with_name("public"), [course.id], Options(emails=False))
    assert "example.org" not in everything(folder.with_name("public"))


@pytest.mark.parametrize("state", [CompetitionState.RUNNING, CompetitionState.PAUSED])
def test_while_a_competition_goes_on_its_cards_stay_where_they_are(
    store: Store, folder: Path, state: CompetitionState
) -> None:
    course = akq(store)
    store.state_changed(course.id, state, course.act("pause"))
    store.flush()
    done = export(store, folder, [course.id])
    [row] = table(folder / "akq-1" / "verdicts.csv")

    assert "matches.jsonl" not in done.competitions[0].files
    assert "matches.csv" in done.competitions[0].files
    assert (row["asked"], row["got"], row["stderr"]) == ("", "", "")
    assert "the king" not in everything(folder)
    assert play(seed=1, hands=20).record.to_json().decode() not in everything(folder)

    export(store, folder, [course.id], Options(unfinished=True, force=True))
    assert (folder / "akq-1" / "matches.jsonl").read_bytes().count(b"\n") == 5
    assert "the king" in everything(folder)


def test_the_seed_of_tables_that_are_still_to_be_drawn_is_told_to_nobody(
    store: Store, folder: Path
) -> None:
    *_, over, going_on = others(store)
    ids = [over.id, going_on.id]
    export(store, folder, ids, Options(unfinished=True))

    def seed(id_: str) -> str:
        document = json.loads((folder / id_ / "competition.json").read_bytes())
        return str(document["plan"]["seed"])

    assert seed(over.id) == "5eed"
    assert seed(going_on.id) == ""


# ---- The page


class ParsedPage(HTMLParser):
    """What a browser would make of it: elements, their attributes, the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]


def page(folder: Path) -> ParsedPage:
    return ParsedPage((folder / "index.html").read_text(encoding="utf-8"))


def test_the_page_shows_every_competition_and_links_its_files(store: Store, folder: Path) -> None:
    courses = (akq(store, run="monday"), *others(store))
    ids = [course.id for course in courses]
    done = export(store, folder, ids, Options(unfinished=True))
    shown = page(folder)

    assert shown.open == []
    assert [section["id"] for section in shown.all("section")] == ids
    links = [str(link["href"]) for link in shown.all("a")]
    assert [link for link in links if link.startswith("#")] == [f"#{id_}" for id_ in ids]
    files = {link for link in links if not link.startswith("#")}
    assert files == {f"{one.folder}/{file}" for one in done.competitions for file in one.files}
    assert all((folder / file).is_file() for file in files)
    assert any("monday" in word for word in shown.words)
    for name in ("ann", *names(9), SCRIPT, FORMULA):
        assert name in shown.words
    assert "seat 2 offended" in shown.words


def test_a_name_cannot_do_anything(store: Store, folder: Path) -> None:
    course = akq(store, run='"><img src=x onerror=alert(1)>')
    export(store, folder, [course.id])
    shown = page(folder)

    assert not {"script", "img", "iframe", "link"} & {tag for tag, _ in shown.tags}
    assert not any(name.startswith("on") for _, attrs in shown.tags for name in attrs)
    assert shown.words.count(SCRIPT) >= 2


def test_nothing_comes_from_elsewhere(store: Store, folder: Path) -> None:
    course = akq(store)
    export(store, folder, [course.id])
    text = (folder / "index.html").read_text(encoding="utf-8")
    policies = [meta for meta in page(folder).all("meta") if "http-equiv" in meta]

    assert not re.search(r"https?:|//\w|url\(|@import", text)
    assert [meta["content"] for meta in policies] == [
        "default-src 'none'; style-src 'unsafe-inline'"
    ]
    assert "prefers-color-scheme: dark" in text
    assert "width=device-width" in text


def test_the_final_of_an_elimination_says_by_how_much(store: Store, folder: Path) -> None:
    course = WrittenCompetition(store, plan(Form.ELIMINATION, names(8)))
    schedule = schedule_of(course.plan)
    tables = next(schedule)
    scores = (9, 8, -1, -2)
    for pairing in tables:
        course.plays(pairing.number, pairing.players, scores)
    result = Result(scores, (0,) * 4, COMPLETED)
    (final,) = schedule.send(tuple(Outcome(pairing, result) for pairing in tables))
    course.plays(final.number, final.players, (1_200, 40, 0, -40))
    course.ends()
    export(store, folder, [course.id])
    shown = page(folder).words

    assert "score in the final" in shown
    assert shown.count("final") == 4
    assert {"+1,200", "+40", "0", "−40"} <= set(shown)


def test_columns_that_are_empty_are_left_out(store: Store, folder: Path) -> None:
    record = play(hands=1)

    def heads(matches: int, points: tuple[int, int] = (0, 0)) -> set[str]:
        course = WrittenCompetition(store, plan(Form.ROUND_ROBIN, ("ann", "ben")), f"c-{matches}")
        for number in range(1, matches + 1):
            result = msgspec.structs.replace(record, scores=(number, -number), points=points)
            course.notes(number, ("ann", "ben"), result)
        export(store, folder, [course.id], Options(force=True))
        assert "±" not in page(folder).words
        return {"per match", "points", "score"} & set(page(folder).words)

    assert heads(1) == heads(2) == {"score", "per match"}
    assert heads(3, (25, 0)) == {"score", "per match", "points"}


def test_a_mean_has_its_interval_on_the_page_and_in_the_table(store: Store, folder: Path) -> None:
    course = WrittenCompetition(store, plan(Form.ROUND_ROBIN, ("ann", "ben"), matches=4), "akq-1")
    for number, score in enumerate((4, 9, -2), start=1):
        course.plays(number, ("ann", "ben"), (score, -score))
    export(store, folder, [course.id])
    ann, ben = table(folder / "akq-1" / "standings.csv")
    words = page(folder).words

    low, high = float(ann["low"]), float(ann["high"])
    assert [*ann][-2:] == ["low", "high"]
    assert low < float(ann["mean"]) < high
    assert (float(ben["low"]), float(ben["high"])) == (-high, -low)
    shown = [f"{number:+.1f}".replace("-", "−") for number in (float(ann["mean"]), low, high)]
    assert f"{shown[0]} [{shown[1]}, {shown[2]}]" in words
    assert any(text.startswith("[…]: 95 % intervals") for text in words)
    document = json.loads((folder / "akq-1" / "competition.json").read_text())
    assert document["standings"][0]["interval"] == [low, high]
    assert document["unit"] == {"name": "hand", "block": 50, "without": 3}


def test_J3_what_was_forgiven_is_in_the_table_and_on_the_page(store: Store, folder: Path) -> None:
    of = plan(Form.ROUND_ROBIN, ("ann", "ben"), matches=3, forgive=1)
    course = WrittenCompetition(store, of, "akq-1")
    course.plays(1, ("ann", "ben"), (4, -4))
    course.plays(2, ("ben", "ann"), (0, 0), offence(0, Ending.CRASH), event="one")
    export(store, folder, [course.id])
    rows = table(folder / "akq-1" / "standings.csv")
    [verdict] = table(folder / "akq-1" / "verdicts.csv")

    counts = [(one["name"], one["forgiven"], one["completed"]) for one in rows]
    assert counts == [("ann", "0", "1"), ("ben", "1", "1")]
    assert (verdict["event"], verdict["forgiven"]) == ("one", "true")
    assert "forgiven" in page(folder).words
    assert "crash, forgiven" in page(folder).words


def test_the_versions_that_have_played_are_in_the_tables_and_on_the_page(
    store: Store, folder: Path
) -> None:
    course = WrittenCompetition(store, plan(Form.ROUND_ROBIN, ("ann", "ben", "cem")), "akq-1")
    course.plays(1, ("ann", "ben"), (4, -4), versions=("v1", "connected"))
    course.plays(2, ("ann", "cem"), (4, -4), versions=("v2", ""))
    final = WrittenCompetition(store, plan(Form.ELIMINATION, names(4)), "high-low-1")
    (table_,) = next(schedule_of(final.plan))
    final.plays(1, table_.players, (4, 3, 2, -9), versions=("v3", "", "", "v4"))
    final.ends(ranking=LiveResults(store, final.id).ranking)
    export(store, folder, [course.id, final.id])

    def versions(path: str, *fields: str) -> list[tuple[str, ...]]:
        return [tuple(row[field] for field in fields) for row in table(folder / path)]

    assert versions("akq-1/standings.csv", "name", "version") == [
        ("ann", "v2"),
        ("ben", "connected"),
        ("cem", ""),
    ]
    assert versions("akq-1/matches.csv", "pairing", "name", "version") == [
        ("1", "ann", "v1"),
        ("1", "ben", "connected"),
        ("2", "ann", "v2"),
        ("2", "cem", ""),
    ]
    ranked = versions("high-low-1/ranking.csv", "version")
    assert ranked == [("v3",), ("",), ("",), ("v4",)]
    words = page(folder).words
    assert {"ann v2", "ben (connected)", "cem", f"{table_.players[0]} v3"} <= {*words}
    document = json.loads((folder / "akq-1" / "competition.json").read_text())
    assert document["versions"] == {"ann": "v2", "ben": "connected"}


def test_two_of_one_title_are_told_apart(store: Store, folder: Path) -> None:
    courses = [akq(store, id_) for id_ in ("akq-1", "akq-2")]
    export(store, folder, [course.id for course in courses])
    about = [word for word in page(folder).words if word.endswith(" · ")]

    assert about == ["akq-1 · ", "akq-2 · "]


def shades(folder: Path) -> dict[str, str | None]:
    """The class of each cell of the cross table, by `row v column`."""
    return {
        str(cell["title"]).partition(":")[0]: cell.get("class")
        for cell in page(folder).all("td")
        if "title" in cell
    }


def test_the_cross_table_is_shaded_by_who_wins(store: Store, folder: Path) -> None:
    course = WrittenCompetition(store, plan(Form.ROUND_ROBIN, ("ann", "ben", "cem")))
    course.plays(1, ("ann", "ben"), (90, -90))
    course.plays(2, ("ann", "cem"), (-10, 10))
    course.plays(3, ("ben", "cem"), (0, 0))
    export(store, folder, [course.id])

    assert shades(folder) == {
        "ann v ben": "w3",
        "ben v ann": "l3",
        "ann v cem": "l1",
        "cem v ann": "w1",
        "ben v cem": None,
        "cem v ben": None,
    }


def test_G15_a_defeat_without_a_score_is_not_shaded_as_a_draw(store: Store, folder: Path) -> None:
    course = WrittenCompetition(store, plan(Form.ROUND_ROBIN, ("ann", "ben", "cem")))
    course.plays(1, ("ann", "ben"), (1, 0))
    course.plays(2, ("ann", "cem"), (0, 0))
    export(store, folder, [course.id])

    assert shades(folder) == {
        "ann v ben": "w3",
        "ben v ann": "l3",
        "ann v cem": None,
        "cem v ann": None,
    }


# ---- Folders


def test_an_earlier_export_is_replaced_only_if_that_is_said(store: Store, folder: Path) -> None:
    first, second = akq(store, "akq-1"), akq(store, "akq-2")
    export(store, folder, [first.id])

    with pytest.raises(UsageError, match="has an export already; expected --force"):
        export(store, folder, [second.id])
    assert (folder / "akq-1").is_dir()

    export(store, folder, [second.id], Options(force=True))
    assert not (folder / "akq-1").exists()
    assert (folder / "akq-2").is_dir()


@pytest.mark.parametrize("name", ["thesis.txt", "akq-1/thesis.txt"])
def test_what_others_have_put_there_is_never_touched(store: Store, folder: Path, name: str) -> None:
    course = akq(store)
    export(store, folder, [course.id])
    (folder / name).write_text("years of work")

    with pytest.raises(UsageError, match=f"expected an empty folder.*{name}"):
        export(store, folder, [course.id], Options(force=True))
    assert (folder / name).read_text() == "years of work"


def test_a_folder_of_others_is_refused(store: Store, folder: Path) -> None:
    course = akq(store)
    folder.mkdir()
    (folder / "export.json").write_text('{"files": 4}')

    with pytest.raises(UsageError, match=r"expected an empty folder.*export\.json"):
        export(store, folder, [course.id], Options(force=True))
    with pytest.raises(UsageError, match=r"expected a folder, .* is a file"):
        export(store, folder / "export.json", [course.id])


def test_an_empty_folder_and_one_that_is_not_there_will_do(store: Store, folder: Path) -> None:
    course = akq(store)
    folder.mkdir()
    export(store, folder, [course.id])
    export(store, folder / ".." / "deep" / "er", [course.id])

    assert (folder / "index.html").is_file()
    assert (folder.parent / "deep" / "er" / "index.html").is_file()


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError])
def test_what_is_broken_off_leaves_nothing_behind(
    store: Store, folder: Path, failure: type[BaseException]
) -> None:
    course = finished(store, folder)
    before = everything(folder)
    ticks = 0

    def tick() -> None:
        nonlocal ticks
        ticks += 1
        if ticks == 3:
            raise failure

    with pytest.raises(failure):
        export(store, folder, [course.id], Options(force=True), tick)
    assert everything(folder) == before
    there = {path.name for path in folder.parent.iterdir()}
    assert there <= {"results", "arena.db", "arena.db-wal", "arena.db-shm"}


def test_ids_that_are_no_names_of_folders(store: Store, folder: Path) -> None:
    ids = ["../../etc", "a/b", "a b", "index.html", "..", "A-B"]
    for id_ in ids:
        WrittenCompetition(store, plan(Form.ROUND_ROBIN, ("ann", "ben")), id_)
    done = export(store, folder, ids)

    assert [one.id for one in done.competitions] == ids
    assert len({one.folder.lower() for one in done.competitions}) == len(ids)
    for one in done.competitions:
        assert (folder / one.folder / "competition.json").is_file()
        assert (folder / one.folder).parent == folder


# ---- Decisions


def decided(folder: Path, competition: str) -> list[dict[str, str]]:
    return table(folder / competition / "decisions.csv")


def test_every_decision_has_a_line(store: Store, folder: Path) -> None:
    course = akq(store)
    course.ends()
    done = export(store, folder, [course.id], Options(decisions=True))
    rows = decided(folder, course.id)
    [matches] = [each for each in done.competitions if "decisions.csv" in each.files]

    assert matches.matches == 5
    lines = (folder / course.id / "matches.jsonl").read_bytes().splitlines()
    made = [
        (document.match, each)
        for document in map(MatchDocument.from_json, lines)
        for each in decisions(document.read_record())
    ]
    assert len(rows) == len(made)
    for row, (match, each) in zip(rows, made, strict=True):
        assert (row["match"], row["index"], row["seat"]) == (match, str(each.index), str(each.seat))
        assert row["kind"] == each.question.kind
        assert row["asked_card"] == getattr(each.question, "card", None)
        assert (row["answer"], row["round"]) == (each.answer, str(each.round))
        assert row["luck"] == ("" if each.luck is None else repr(each.luck))
    assert {row["name"] for row in rows} == {SCRIPT, f"'{FORMULA}", "ann", "ben"}
    assert {row["counts"] for row in rows} == {"true", "false"}


def test_decisions_of_every_game_are_read_by_pandas(store: Store, folder: Path) -> None:
    courses = others(store)[:3]
    export(store, folder, [course.id for course in courses], Options(decisions=True))

    for course in courses:
        words = game_named(course.plan.game).vocabulary
        read = pandas.read_csv(folder / course.id / "decisions.csv")
        [[_, record]] = store.sealed_matches(course.id)
        answers = Record.from_json(record).answers
        assert list(read["index"]) == [*range(len(answers))]
        assert set(read["kind"]) <= {*words.questions}
        assert read["time_ms"].isna().all()
        assert not {"cost", "grade"} & {*read.columns}
    gin = pandas.read_csv(folder / "gin-1" / "decisions.csv")
    assert len(json.loads(gin["asked_hand"][0])) == 10


def test_J8_decisions_of_what_goes_on_stay_here(store: Store, folder: Path) -> None:
    course = akq(store)
    export(store, folder, [course.id], Options(decisions=True))
    assert not (folder / course.id / "decisions.csv").exists()
    export(store, folder, [course.id], Options(decisions=True, unfinished=True, force=True))

    assert decided(folder, course.id)


def test_costs_are_empty_where_a_game_does_not_say_them(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    course = akq(store)
    course.ends()
    game = msgspec.structs.replace(GAMES["ace_king_queen"], judging=None)
    monkeypatch.setitem(GAMES, "ace_king_queen", game)
    export(store, folder, [course.id], Options(decisions=True, costs=True))
    rows = decided(folder, course.id)

    assert rows
    assert {(row["cost"], row["cost_error"], row["cost_unit"]) for row in rows} == {("", "", "")}


class FirstAnswerJudge:
    """Thinks that the first legal answer is best and others cost a half."""

    def __init__(self, settings: Any, seat: int) -> None:
        pass

    def heard(self, news: Any) -> None:
        pass

    def decided(self, question: Any, answer: Any) -> Judgement:
        best = question.legal[0]
        cost = 0 if answer == best else 0.5
        return Judgement(cost=cost, best=best, unit="chips", grade=int(cost > 0))


def test_costs_stand_beside_the_answers(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    course = akq(store)
    course.ends()
    judging = Judging(version=1, judge=FirstAnswerJudge)
    game = msgspec.structs.replace(GAMES["ace_king_queen"], judging=judging)
    monkeypatch.setitem(GAMES, "ace_king_queen", game)
    export(store, folder, [course.id], Options(decisions=True, costs=True))

    for row in decided(folder, course.id):
        best = {"open": "bet", "respond": "call"}[row["kind"]]
        is_best = row["answer"] == best
        assert row["best"] == best
        assert (row["cost"], row["grade"]) == (("0", "0") if is_best else ("0.5", "1"))
        assert row["cost_unit"] == "chips"


def test_a_match_whose_decisions_cannot_be_told_is_named(store: Store, folder: Path) -> None:
    course = WrittenCompetition(store, plan(Form.ROUND_ROBIN, ("ann", "ben")), "akq-9")
    result = play(hands=4)
    record = msgspec.structs.replace(result.record, answers=("raise",))
    course.notes(1, ("ann", "ben"), msgspec.structs.replace(result, record=record))
    course.ends()

    with pytest.raises(ArenaError, match=r"^match akq-9-1: .*raise"):
        export(store, folder, ["akq-9"], Options(decisions=True))
    assert not folder.exists()
