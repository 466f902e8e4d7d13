"""Who is on the roster, in either kind of database, and whose token is good."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest
import sqlalchemy as sa

from arena.formats.spec import Form
from arena.storage.roster import Issued, Roster
from arena.storage.roster_csv import Student
from arena.storage.roster_watch import RosterWatch
from arena.storage.schema import ROSTER, open_database
from arena.storage.store import CompetitionState, Store
from arena.storage.tokens import Access, hashed
from protocol.errors import StoreFailed, UsageError
from tests.support.databases import rows
from tests.support.written_competition import WrittenCompetition, plan

ANN = Student(name="ann", email="ann@school", team="red")
BEN = Student(name="ben", email="", team="")
NOW = 1000.0


@pytest.fixture
def roster(engine: sa.Engine) -> Roster:
    return Roster(engine, lambda: NOW)


def tokens(issued: Sequence[Issued]) -> dict[str, str]:
    return {student.name: student.token for student in issued}


# --- a class comes ---


def test_a_new_class_gets_a_token_each(roster: Roster) -> None:
    done = roster.take([ANN, BEN])
    ann, ben = done.new

    assert (ann.name, ann.email, ann.team) == ("ann", "ann@school", "red")
    assert (ben.name, ben.email, ben.team) == ("ben", None, None)
    assert len({ann.token, ben.token}) == 2
    assert len(ann.token) == 32
    assert (done.changed, done.same, done.revoked) == (0, 0, ())
    access = roster.access()
    assert access.names == {"ann", "ben"}
    assert access.players == {hashed(ann.token): "ann", hashed(ben.token): "ben"}
    assert roster.teams() == {"ann": "red"}
    made_at = {member.name: member.made_at for member in roster.members()}
    assert made_at == {"ann": NOW, "ben": NOW}


def test_only_hashes_are_kept(roster: Roster, database: str) -> None:
    [ann] = roster.take([ANN]).new
    instructor = roster.instructor()
    tables = ("roster", "instructors", "meta")
    stored = repr([rows(database, f"SELECT * FROM {table}") for table in tables])

    assert hashed(ann.token) in stored
    assert hashed(instructor) in stored
    assert ann.token not in stored
    assert instructor not in stored


def test_the_same_class_again_keeps_its_tokens(roster: Roster) -> None:
    roster.take([ANN, BEN])
    before = roster.access()
    done = roster.take([BEN, ANN])

    assert (done.new, done.changed, done.same) == ((), 0, 2)
    assert roster.access().players == before.players


def test_a_later_list_adds_and_updates_and_removes_nobody(roster: Roster) -> None:
    first = tokens(roster.take([ANN, BEN]).new)
    cem = Student(name="cem", team="blue")
    done = roster.take([Student(name="ann", email="new@school", team=""), cem])

    assert [new.name for new in done.new] == ["cem"]
    assert (done.changed, done.same) == (1, 0)
    by_name = {member.name: member for member in roster.members()}
    assert by_name.keys() == {"ann", "ben", "cem"}
    assert (by_name["ann"].email, by_name["ann"].team) == ("new@school", None)
    players = roster.access().players
    assert players[hashed(first["ann"])] == "ann"
    assert players[hashed(first["ben"])] == "ben"


def test_what_a_list_does_not_have_stays(roster: Roster) -> None:
    roster.take([ANN])
    done = roster.take([Student(name="ann")])

    assert (done.changed, done.same) == (0, 1)
    assert roster.teams() == {"ann": "red"}


def test_tokens_that_cannot_be_handed_out_are_not_made(roster: Roster) -> None:
    before = roster.revision()

    def fails(issued: Sequence[Issued]) -> None:
        raise UsageError("no room")

    with pytest.raises(UsageError, match="no room"):
        roster.take([ANN], fails)
    assert roster.members() == ()
    assert roster.revision() == before


def test_nothing_is_handed_out_if_nobody_is_new(roster: Roster) -> None:
    handed: list[Sequence[Issued]] = []
    first = roster.take([ANN], handed.append).new
    roster.take([ANN], handed.append)

    assert handed == [first]


# --- tokens change ---


def test_a_token_that_is_rotated_is_good_no_longer(roster: Roster) -> None:
    [old] = roster.take([ANN]).new
    new = roster.rotate("ann")

    assert (new.name, new.email, new.team) == ("ann", "ann@school", "red")
    assert roster.access().players == {hashed(new.token): "ann"}
    assert new.token != old.token


def test_a_token_that_is_revoked_leaves_the_name_behind(roster: Roster) -> None:
    roster.take([ANN, BEN])
    roster.revoke("ann")
    access = roster.access()

    assert list(access.players.values()) == ["ben"]
    assert access.names == {"ann", "ben"}
    assert [member.revoked_at for member in roster.members()] == [NOW, None]
    with pytest.raises(UsageError, match="'ann' is revoked already"):
        roster.revoke("ann")


def test_who_was_revoked_stays_so_until_there_is_another_token(roster: Roster) -> None:
    roster.take([ANN])
    roster.revoke("ann")
    done = roster.take([ANN])

    assert (done.new, done.revoked) == ((), ("ann",))
    assert roster.access().players == {}

    new = roster.rotate("ann")

    assert roster.access().players == {hashed(new.token): "ann"}
    assert roster.members()[0].revoked_at is None


def test_a_name_is_found_however_it_is_spelled_and_stays_as_it_was(roster: Roster) -> None:
    [first] = roster.take([ANN]).new
    done = roster.take([Student(name="ANN", team="blue")])

    assert (done.new, done.changed) == ((), 1)
    assert roster.access().players == {hashed(first.token): "ann"}
    assert roster.teams() == {"ann": "blue"}
    assert roster.rotate("Ａnn").name == "ann"
    assert roster.revoke("ANN") == "ann"
    assert roster.take([Student(name="ANN")]).revoked == ("ann",)


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


def test_nobody_of_that_name(roster: Roster) -> None:
    before = roster.revision()
    for change in (roster.rotate, roster.revoke):
        with pytest.raises(UsageError, match="a name on the roster, got 'zed'"):
            change("zed")
    assert roster.revision() == before


def test_an_instructors_token_is_apart_from_those_of_players(roster: Roster) -> None:
    roster.take([ANN])
    first = roster.instructor()
    other = roster.instructor("prof")
    second = roster.instructor()
    access = roster.access()

    assert access.instructors == {hashed(second): "instructor", hashed(other): "prof"}
    assert hashed(first) not in access.players
    assert list(access.players.values()) == ["ann"]
    with pytest.raises(UsageError, match="without '/'"):
        roster.instructor("a/b")


def test_instructors_whose_names_look_alike_are_one(roster: Roster) -> None:
    former = roster.instructor("Boss")
    token = roster.instructor("BOSS")
    access = roster.access()

    assert access.instructors == {hashed(token): "Boss"}
    assert hashed(former) not in access.instructors


def test_every_change_raises_the_revision(roster: Roster) -> None:
    seen = [roster.revision()]
    for change in (
        lambda: roster.take([ANN]),
        lambda: roster.rotate("ann"),
        lambda: roster.revoke("ann"),
        lambda: roster.instructor(),
    ):
        change()
        seen.append(roster.revision())

    assert seen == sorted(set(seen))
    assert roster.access().revision == seen[-1]


def test_changes_at_the_same_time_wait_for_each_other(engine: sa.Engine, database: str) -> None:
    Roster(engine).take([ANN])
    revision = Roster(engine).revision()
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
    assert Roster(engine).revision() == revision + 40
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


def test_who_is_renamed_keeps_token_email_and_team(roster: Roster) -> None:
    [ann] = roster.take([ANN]).new
    before = roster.revision()

    assert roster.rename("ANN", "Anna Lee") == "ann"
    [member] = roster.members()
    assert (member.name, member.email, member.team) == ("Anna Lee", "ann@school", "red")
    assert roster.access().players == {hashed(ann.token): "Anna Lee"}
    assert roster.revision() == before + 1
    roster.rename("Anna Lee", "anna lee")  # another spelling of the same
    assert roster.access().names == {"anna lee"}


def test_who_is_removed_is_gone_and_the_name_is_free(roster: Roster) -> None:
    [ann, _] = roster.take([ANN, BEN]).new
    assert roster.remove("ANN") == "ann"

    access = roster.access()
    assert access.names == {"ben"}
    assert hashed(ann.token) not in access.players
    [again] = roster.take([ANN]).new
    assert again.token != ann.token


def test_changes_of_names_are_written_down(roster: Roster, database: str) -> None:
    roster.take([ANN, BEN])
    roster.rename("ann", "anna")
    roster.remove("ben", "Eva")

    written = rows(database, "SELECT who, what, bot, text, at FROM actions")
    assert written == [
        ("arena roster", "rename", "ann", "anna", NOW),
        ("Eva", "unlist", "ben", "", NOW),
    ]
    owner = roster.history().owner
    then, now = owner("ann/gin", NOW - 1), owner("anna", NOW + 1)
    assert then is not None
    assert then == now
    assert (owner("ann", NOW + 1), owner("ben", NOW - 1)) == (None, None)


@pytest.mark.parametrize(
    ("name", "new", "said"),
    [
        ("ann", "ben", "that nobody on the roster has, got 'ben', and 'ben' is on it"),
        ("ann", "BEN", "that nobody on the roster has, got 'BEN', and 'ben' is on it"),
        ("ann", "ann", "another name, got 'ann' again"),
        ("ann", "a/b", "a name without '/'"),
        ("ann", "", "a name, got none"),
        ("ann", "x" * 65, "at most 64 letters, got 65"),
        ("zed", "cem", "a name on the roster, got 'zed'"),
    ],
)
def test_what_is_no_name_for_somebody(roster: Roster, name: str, new: str, said: str) -> None:
    roster.take([ANN, BEN])
    before = roster.revision(), roster.members()

    with pytest.raises(UsageError, match=said):
        roster.rename(name, new)
    assert (roster.revision(), roster.members()) == before


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


# --- somebody watches ---


async def test_a_change_is_seen_once(roster: Roster) -> None:
    seen: list[Access] = []

    watch = RosterWatch(roster, seen.append, seen=roster.revision())
    await watch.look()
    assert seen == []
    roster.take([ANN])
    await watch.look()
    await watch.look()
    assert seen == [roster.access()]


async def test_it_looks_again_and_again(roster: Roster) -> None:
    seen: asyncio.Queue[Access] = asyncio.Queue()
    watch = RosterWatch(roster, seen.put_nowait, 0, every_s=0.01)
    watching = asyncio.create_task(watch.run())
    for _ in range(2):
        await asyncio.to_thread(roster.instructor)
        assert await seen.get() == roster.access()
    watching.cancel()


async def test_a_change_that_could_not_take_effect_hides_no_later_one(
    roster: Roster, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Access] = []
    first, later = threading.Event(), threading.Event()

    def on_change(access: Access) -> None:
        seen.append(access)
        if not first.is_set():
            first.set()
            raise KeyError("a fault of the arena")
        later.set()

    watch = RosterWatch(roster, on_change, roster.revision(), every_s=0.01)
    watching = asyncio.create_task(watch.run())
    roster.take([ANN])
    assert await asyncio.to_thread(first.wait, 10)
    roster.revoke("ann")
    assert await asyncio.to_thread(later.wait, 10)
    watching.cancel()
    assert [list(access.players.values()) for access in seen] == [["ann"], []]
    [record] = caplog.records
    assert record.exc_info is not None
    assert "the roster" in record.getMessage()


async def test_while_the_database_is_out_of_reach_everything_stays_as_it_was(
    roster: Roster, engine: sa.Engine, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Access] = []
    roster.take([ANN])

    watch = RosterWatch(roster, seen.append, roster.revision())
    _execute(engine, "ALTER TABLE meta RENAME TO gone")
    await watch.look()
    await watch.look()
    _execute(engine, "ALTER TABLE gone RENAME TO meta")
    roster.revoke("ann")
    await watch.look()
    assert [access.players for access in seen] == [{}]
    [record] = caplog.records
    assert record.getMessage().startswith("the roster stays as it was: cannot read")


def _execute(engine: sa.Engine, statement: str) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql(statement)
