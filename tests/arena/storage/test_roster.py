"""Who is on the roster, in either kind of database, and whose token is good."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa

from arena.formats.spec import Form
from arena.storage.roster import Issued, Roster
from arena.storage.roster_csv import Student
from arena.storage.schema import ROSTER, open_database
from arena.storage.store import CompetitionState, Store
from arena.storage.tokens import hashed
from protocol.errors import StoreFailed, UsageError
from tests.support.cases import CaseFile, StepByStep
from tests.support.databases import rows
from tests.support.written_competition import WrittenCompetition, plan

CASES = CaseFile(Path(__file__).with_name("roster.cases"))
ANN = Student(name="ann", email="ann@school", team="red")
BEN = Student(name="ben", email="", team="")
NOW = 1000.0


@pytest.fixture
def roster(engine: sa.Engine) -> Roster:
    return Roster(engine, lambda: NOW)


def student(name: str, email: str | None = None, team: str | None = None) -> Student:
    return Student(name=name, email=email, team=team)


class RosterDesk(StepByStep):
    """Does what a case says, and tells what has changed."""

    def __init__(self, roster: Roster, database: str) -> None:
        super().__init__()
        self.roster, self.database = roster, database
        self.issued: list[str] = []

    def does(self, *all_words: str) -> Iterator[str]:
        what, *words = all_words
        match what:
            case "list":
                done = self.roster.take([student(*word.split(",")) for word in words])
                self.issued += [new.token for new in done.new]
                self._agree(done.new)
                names = " ".join(new.name for new in done.new) or "nobody"
                revoked = f", {' '.join(done.revoked)} revoked" if done.revoked else ""
                yield f"new {names}, {done.changed} changed, {done.same} same{revoked}"
            case "rotate":
                new = self.roster.rotate(*words)
                self.issued.append(new.token)
                self._agree([new])
            case "instructor":
                self.issued.append(self.roster.instructor(*words))
            case "acts":
                yield from map(
                    str, rows(self.database, "SELECT who, what, bot, text, at FROM actions")
                )
            case "owner":
                owner = self.roster.history().owner(words[0], float(words[1]))
                yield f"{words[0]} was {owner and owner.name}"
            case _:
                yield f"{what} {getattr(self.roster, what)(*words)}"

    def _agree(self, issued: Sequence[Issued]) -> None:
        """The tokens that an import returns are those on the roster."""
        told = {(new.name, new.email, new.team) for new in issued}
        assert told <= {(one.name, one.email, one.team) for one in self.roster.members()}

    def shows(self) -> Iterator[str]:
        access = self.roster.access()
        good = {**access.players, **access.instructors}
        tokens = [good.get(hashed(token), "nobody") for token in self.issued]
        yield f"tokens of {', '.join(tokens)}"
        if access.instructors:
            yield f"instructors {', '.join(sorted(access.instructors.values()))}"
        members = self.roster.members()
        assert access.names == {one.name for one in members}
        assert self.roster.teams() == {one.name: one.team for one in members if one.team}
        assert len({*self.issued}) == len(self.issued)
        for one in members:
            assert one.made_at == NOW
            revoked = "" if one.revoked_at is None else f" revoked {one.revoked_at}"
            yield f"{one.name} {one.email or '-'} {one.team or '-'}{revoked}"


@pytest.mark.parametrize("title", CASES.titles)
def test_a_roster_goes(title: str, roster: Roster, database: str) -> None:
    CASES.check(title, RosterDesk(roster, database).step)


# --- a class comes ---


def test_only_hashes_are_kept(roster: Roster, database: str) -> None:
    [ann] = roster.take([ANN]).new
    instructor = roster.instructor()
    tables = ("roster", "instructors", "meta")
    stored = repr([rows(database, f"SELECT * FROM {table}") for table in tables])

    assert hashed(ann.token) in stored
    assert hashed(instructor) in stored
    assert ann.token not in stored
    assert instructor not in stored


def test_tokens_that_cannot_be_handed_out_are_not_made(roster: Roster) -> None:
    def fails(issued: Sequence[Issued]) -> None:
        raise UsageError("no room")

    with pytest.raises(UsageError, match="no room"):
        roster.take([ANN], fails)
    assert roster.members() == ()


def test_nothing_is_handed_out_if_nobody_is_new(roster: Roster) -> None:
    handed: list[Sequence[Issued]] = []
    first = roster.take([ANN], handed.append).new
    roster.take([ANN], handed.append)

    assert handed == [first]


# --- tokens change ---


def test_two_alike_that_have_long_been_on_the_roster_stay_two(
    roster: Roster, engine: sa.Engine
) -> None:
    roster.take([ANN, BEN])
    with engine.begin() as connection:
        connection.execute(ROSTER.update().where(ROSTER.c.name == "ben").values(name="Ann"))
    done = roster.take([Student(name="Ann", team="blue")])

    assert (done.new, done.changed) == ((), 1)
    assert roster.teams() == {"ann": "red", "Ann": "blue"}
    assert roster.revoke("ann") == "ann"
    assert list(roster.access().players.values()) == ["Ann"]


def test_changes_at_the_same_time_wait_for_each_other(engine: sa.Engine, database: str) -> None:
    Roster(engine).take([ANN])
    failures: list[Exception] = []

    def rotate() -> None:
        mine, _ = open_database(database, create=False)
        try:
            for _ in range(10):
                Roster(mine).rotate("ann")
        except Exception as error:
            failures.append(error)
        finally:
            mine.dispose()

    threads = [threading.Thread(target=rotate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert rows(database, "SELECT value FROM meta WHERE key = 'roster'") == [("41",)]
    assert len(Roster(engine).access().players) == 1


def test_a_database_that_cannot_be_read_is_told_in_one_line(
    roster: Roster, engine: sa.Engine
) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE roster")
    with pytest.raises(StoreFailed, match=r"^cannot read the database .*roster") as why:
        roster.access()
    assert "\n" not in str(why.value)
    with pytest.raises(StoreFailed, match=r"^cannot write the database .*roster"):
        roster.take([ANN])


# --- names change ---


@pytest.mark.parametrize("form", [Form.ROUND_ROBIN, Form.LADDER])
@pytest.mark.parametrize("state", [CompetitionState.RUNNING, CompetitionState.PAUSED])
def test_who_takes_part_in_what_goes_on_keeps_the_name_until_it_is_over(
    roster: Roster, database: str, form: Form, state: CompetitionState
) -> None:
    roster.take([ANN, BEN])
    with Store(database) as store:
        players = () if form is Form.LADDER else ("ANN/gin", "zed")
        course = WrittenCompetition(store, plan(form, players))
        roster.rename("ben", "cem")
        if form is Form.LADDER:  # which is entered by a match
            course.plays(1, ("ANN/gin", "zed"), (1, 0))
        store.state_changed(course.id, state, course.act("pause"))
        store.flush()
        for change in (roster.remove, lambda name: roster.rename(name, "anna")):
            with pytest.raises(UsageError, match=f"ANN/gin is in {course.id}, which"):
                change("ann")
        assert roster.access().names == {"ann", "cem"}
        course.ends()
        roster.rename("ann", "anna")

    assert roster.access().names == {"anna", "cem"}


@pytest.mark.parametrize("form", [Form.ROUND_ROBIN, Form.LADDER])
def test_whom_the_instructor_took_out_takes_part_no_more(
    roster: Roster, database: str, form: Form
) -> None:
    roster.take([ANN])
    with Store(database) as store:
        course = WrittenCompetition(store, plan(form, ("ann", "zed")))
        course.removes("ann")

    assert roster.remove("ann") == "ann"


def test_no_token_is_a_formula_to_a_spreadsheet(
    roster: Roster, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = iter(["-formula", "-another", "token"])
    monkeypatch.setattr("secrets.token_urlsafe", lambda _: next(drawn))

    assert roster.instructor() == "token"
