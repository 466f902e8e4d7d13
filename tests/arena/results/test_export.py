from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas  # type: ignore[import-untyped]
import pytest
from msgspec.structs import replace

from arena.formats.formats import schedule_of
from arena.formats.spec import Form, RelaunchSpec, Settling
from arena.games.catalogue import GAMES, game_named
from arena.games.match import Record
from arena.games.settle import Goal
from arena.records import verify
from arena.records.decisions import decisions
from arena.records.document import MatchDocument
from arena.results import csv_tables
from arena.results.export import Options, export
from arena.storage.roster import Roster
from arena.storage.roster_csv import class_in
from arena.storage.schema import ROSTER
from arena.storage.store import CompetitionState, Store
from protocol.errors import ArenaError, UsageError
from protocol.messages import Ending
from tests.support.cases import CaseFile, StepByStep
from tests.support.golden import golden
from tests.support.written_competition import WrittenCompetition, begun, names, offence, plan, play

CASES = CaseFile(Path(__file__).with_name("export.cases"))
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
    result = replace(play(hands=2), termination=offence(1))
    evidence = {"asked": "the king", "got": "'raise'", "stderr": "one\ntwo\n"}
    course.notes(5, ("ann", "ben"), result, **evidence)
    return course


def finished(store: Store, folder: Path) -> WrittenCompetition:
    """That round robin, over and exported."""
    course = akq(store)
    course.ends()
    export(store, folder, [course.id])
    return course


def others(store: Store) -> list[WrittenCompetition]:
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
    return [league, ladder, final, going_on]


WRITTEN = (
    'round_robin ann ben cem not_there=["zoe"] id=absent · 1 ann ben 0 0 absent=1 · finished',
    'league ann ben not_there=["zoe"] id=league · 1 ann 5 · 2 ben 7',
    'elimination bots=4 not_there=["zoe"] id=final · 1 * 1200 40 0 -40 versions=v3,,,v4 · finished',
    'elimination bots=9 not_there=["zoe"] id=drawn',
    "round_robin ann ben matches=4 id=means · 1 ann ben 4 -4 · 2 ann ben 9 -9 · 3 ann ben -2 2",
    "round_robin ann ben matches=3 forgive=1 id=forgiven · 1 ann ben 4 -4 · 2 ben ann 0 0 crash=0 event=one",
    "round_robin ann ben cem id=versions · 1 ann ben 4 -4 versions=v1,connected · 2 ann cem 4 -4 versions=v2,",
    "round_robin ann ben cem id=shades · 1 ann ben 90 -90 · 2 ann cem -10 10 · 3 ben cem 0 0",
    "round_robin ann ben cem id=defeats · 1 ann ben 1 0 · 2 ann cem 0 0",  # G15
)
"""Who was not there (K5), was forgiven (J3), is out; final scores, intervals, versions, shades."""


def table(path: Path) -> list[dict[str, str]]:
    assert path.read_bytes().startswith(codecs.BOM_UTF8)
    with open(path, encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


# ---- What is in the files


def test_all_files_are_as_they_were(
    store: Store, folder: Path, zone: Callable[[str], None]
) -> None:
    zone("UTC")
    course = akq(store, run="monday")
    course.removes("ann")
    course.ends()
    courses = [*others(store), *(begun(store, line) for line in WRITTEN)]
    goal = Settling(goal=Goal.ORDER, level=2.0, most=40)
    of = plan(Form.ROUND_ROBIN, ("ann", "ben", "cem"), settle=goal)
    courses.append(WrittenCompetition(store, of, "settled"))
    courses[-1].plays(1, ("ann", "ben"), (4, -4))
    ids = [course.id, *(each.id for each in courses)]
    export(store, folder, ids, Options(decisions=True))
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    texts = {str(path.relative_to(folder)): path.read_text("utf-8-sig") for path in files}

    golden(Path(__file__).parent / "golden" / "export.txt", texts)


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


@pytest.mark.parametrize(
    "start", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20"]
)
def test_a_text_that_looks_like_a_formula_is_written_as_text(start: str) -> None:
    csv_tables.write(written := io.StringIO(newline=""), [[f"{start}1"]])
    [[cell]] = csv.reader([written.getvalue()])

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
    done = export(store, folder, [course.id], Options(decisions=True))
    [row] = table(folder / "akq-1" / "verdicts.csv")

    assert not {"matches.jsonl", "decisions.csv"} & {*done.competitions[0].files}
    assert "matches.csv" in done.competitions[0].files
    assert (row["asked"], row["got"], row["stderr"]) == ("", "", "")
    assert "the king" not in everything(folder)
    assert play(seed=1, hands=20).record.to_json().decode() not in everything(folder)

    more = Options(unfinished=True, force=True, decisions=True)
    export(store, folder, [course.id], more)
    assert decided(folder, "akq-1")
    assert (folder / "akq-1" / "matches.jsonl").read_bytes().count(b"\n") == 5
    assert "the king" in everything(folder)


def test_the_seed_of_tables_that_are_still_to_be_drawn_is_told_to_nobody(
    store: Store, folder: Path
) -> None:
    *_, over, going_on = others(store)
    export(store, folder, [over.id, going_on.id], Options(unfinished=True))
    files = [folder / course.id / "competition.json" for course in (over, going_on)]

    assert [json.loads(file.read_bytes())["plan"]["seed"] for file in files] == ["5eed", ""]


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


def test_a_name_does_nothing_and_nothing_comes_from_elsewhere(store: Store, folder: Path) -> None:
    course = akq(store, run='"><img src=x onerror=alert(1)>')
    export(store, folder, [course.id])
    shown = page(folder)

    text = (folder / "index.html").read_text(encoding="utf-8")
    policies = [meta for meta in shown.all("meta") if "http-equiv" in meta]

    assert not {"script", "img", "iframe", "link"} & {tag for tag, _ in shown.tags}
    assert not any(name.startswith("on") for _, attrs in shown.tags for name in attrs)
    assert shown.words.count(SCRIPT) >= 2
    assert not re.search(r"https?:|//\w|url\(|@import", text)
    assert [meta["content"] for meta in policies] == [
        "default-src 'none'; style-src 'unsafe-inline'"
    ]
    assert "prefers-color-scheme: dark" in text
    assert "width=device-width" in text


class ExportedCase(StepByStep):
    """Competitions by the lines of a case, and what is exported of them."""

    def __init__(self, store: Store, folder: Path) -> None:
        super().__init__()
        self.store, self.folder = store, folder
        self.roster = Roster(store.engine, lambda: 2000.0)
        self.written: list[str] = []

    def step(self, line: str) -> Iterator[str]:
        if line.partition(" ")[0] not in list(Form):
            return super().step(line)
        self.written.append(begun(self.store, line).id)
        return iter(())

    def does(self, *words: str) -> Iterator[str]:
        first, rest = words[0], words[1:]
        if first == "export":
            export(self.store, self.folder, self.written, Options(force=True))
        elif first == "roster":
            self.roster.take(class_in("\n".join(rest), "class.csv"))
        elif first in ("rename", "remove"):
            getattr(self.roster, first)(*rest)
        else:
            for row in table(self.folder / first):
                yield ", ".join(row[word] or "-" for word in rest)


@pytest.mark.parametrize("title", CASES.titles)
def test_what_is_written_is_exported(title: str, anywhere: Store, folder: Path) -> None:
    CASES.check(title, ExportedCase(anywhere, folder).step)


# ---- Folders


def test_an_earlier_export_is_replaced_only_if_that_is_said(store: Store, folder: Path) -> None:
    first, second = akq(store, "akq-1"), akq(store, "akq-2")
    folder.mkdir()  # an empty folder will do
    export(store, folder, [first.id])

    with pytest.raises(UsageError, match="has an export already; expected --force"):
        export(store, folder, [second.id])
    assert (folder / "akq-1").is_dir()

    export(store, folder, [second.id], Options(force=True))
    assert {path.name for path in folder.iterdir()} == {"akq-2", "index.html", "export.json"}
    export(store, folder / ".." / "deep" / "er", [first.id])
    assert (folder.parent / "deep" / "er" / "index.html").is_file()


@pytest.mark.parametrize("name", ["thesis.txt", "akq-1/thesis.txt", "export.json"])
def test_what_others_have_put_there_is_never_touched(store: Store, folder: Path, name: str) -> None:
    course = akq(store)
    export(store, folder, [course.id])
    (folder / name).write_text("years of work")

    with pytest.raises(UsageError, match=r"expected an empty folder"):
        export(store, folder, [course.id], Options(force=True))
    with pytest.raises(UsageError, match=r"expected a folder, .* is a file"):
        export(store, folder / name, [course.id])
    assert (folder / name).read_text() == "years of work"


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


@pytest.mark.parametrize("has_judge", [False, True])
def test_costs_stand_beside_the_answers_where_a_game_says_them(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch, has_judge: bool
) -> None:
    course = akq(store)
    course.ends()
    game = GAMES["ace_king_queen"]
    game = game if has_judge else replace(game, judging=None)
    monkeypatch.setitem(GAMES, game.name, game)
    export(store, folder, [course.id], Options(decisions=True, costs=True))
    lines = (folder / course.id / "matches.jsonl").read_bytes().splitlines()
    records = [MatchDocument.from_json(line).read_record() for line in lines]
    made = [each.cost for record in records for each in decisions(record, costs=has_judge)]

    assert [(row["cost"], row["best"], row["cost_unit"]) for row in decided(folder, course.id)] == [
        ("", "", "") if cost is None else (str(cost.cost), cost.best, cost.unit) for cost in made
    ]
    assert has_judge == any(made)


def test_a_match_whose_decisions_cannot_be_told_is_named(store: Store, folder: Path) -> None:
    course = WrittenCompetition(store, plan(Form.ROUND_ROBIN, ("ann", "ben")), "akq-9")
    result = play(hands=4)
    record = replace(result.record, answers=("raise",))
    course.notes(1, ("ann", "ben"), replace(result, record=record))
    course.ends()

    with pytest.raises(ArenaError, match=r"^match akq-9-1: .*raise"):
        export(store, folder, ["akq-9"], Options(decisions=True))
    assert not folder.exists()
