"""The commands of an instructor, on competitions that are played and on those that are over."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, cast

import pytest

from arena.competitions.admin import AdminCommands
from arena.competitions.competition import Competition
from arena.competitions.live_arena import LiveArena
from arena.competitions.scheduler import Scheduler
from arena.formats.spec import Form
from arena.referee.referee import FAULT, MOST_VOIDS
from arena.storage.live_results import LiveResults
from arena.storage.roster import Imported, Issued, Roster
from arena.storage.roster_csv import Student
from arena.storage.store import CompetitionRow, CompetitionState, MatchRow, Store
from protocol.errors import UsageError
from protocol.instructions import HostView, LostBot
from protocol.messages import VERSION, Action, Done, Ending, Instruct, Limits
from tests.support.fake_bots import FakeArena
from tests.support.fake_host import FakeHost, WorkingStorage, a_while, act, in_time, silent
from tests.support.host_views import host_view
from tests.support.written_competition import WrittenCompetition, names, offence, plan

pytestmark = pytest.mark.virtual_time


LOST = LostBot("ann", 3, 4, 0.5)


class FakeHostDirectory:
    """One host, `h1`."""

    def __init__(self) -> None:
        self.is_draining = False

    def views(self) -> tuple[HostView, ...]:
        return (host_view("h1", state="draining" if self.is_draining else "idle"),)

    def lost_bots(self) -> tuple[LostBot, ...]:
        return (LOST,)

    async def drain(self, host: str, is_draining: bool) -> None:
        if host != "h1":
            raise UsageError(f"expected a host (h1), got {host!r}")
        self.is_draining = is_draining


class AdminArena:
    """A host with the competitions of a fake one, and its store."""

    taken: Sequence[str] = ()

    def __init__(self, host: FakeHost) -> None:
        self.host = host
        self.storage = WorkingStorage()
        self.written: dict[str, CompetitionRow] = {}
        self.restored: list[str] = []
        self.reopened: list[Competition] = []
        self.told: list[str] = []
        self.started: list[tuple[str, dict[str, Any]]] = []
        self.waiting: tuple[str, ...] = ()
        self.imports: list[tuple[Student, ...]] = []
        self.threads: set[int] = set()
        self.tasks: list[asyncio.Task[Any]] = []
        self.host_directory: FakeHostDirectory | None = None
        self.instructor = AdminCommands(
            cast(LiveArena, self),
            cast(Store, self),
            lambda: 1234.5,
            starter=cast(Scheduler, self),
            roster=cast(Roster, self),
            lines=lambda: self.told,
        )

    async def read_roster(self) -> None:
        self.told.append("the roster is read")

    @property
    def here(self) -> AdminArena:
        return self

    def spelled(self, name: str) -> str:
        return self.host.players.spellings.of(name)

    def says(self, action: Action, **about: Any) -> Done:
        """Eva says it."""
        done = self.instructor(Instruct(VERSION, "token", action, **about), "Eva")
        assert isinstance(done, Done)
        return done

    async def has(self, action: Action, **about: Any) -> Done:
        """Eva says something that takes a while."""
        done = self.instructor(Instruct(VERSION, "token", action, **about), "Eva")
        assert not isinstance(done, Done)
        waited: Done = await in_time(done)
        return waited

    def refuses(self, action: Action, **about: Any) -> str:
        """What it says to that; nothing has changed."""
        before = self.state()
        with pytest.raises(UsageError) as caught:
            self.says(action, **about)
        assert self.state() == before
        return str(caught.value)

    def state(self) -> object:
        return (
            len(self.host.book.acts),
            len(self.host.book.rows),
            [row.counts for row in self.host.book.rows],
            [(on.id, on.progress.state) for on in self.host.competitions],
        )

    async def end(self) -> None:
        for competition in self.competitions:
            competition.stop(act("stop"))
        for task in self.tasks:
            await in_time(task)

    # --- as a host ---

    @property
    def competitions(self) -> tuple[Competition, ...]:
        return tuple(on for on in self.host.competitions if not on.is_over)

    async def start(self, name: str, **about: Any) -> Competition:
        if not self.host.competitions:
            raise UsageError("expected at least 2 connected bots")
        self.started.append((name, about))
        return self.host.competition

    def play(self, competition: Competition) -> None:
        self.reopened.append(competition)

    def awaiting(self, name: str) -> str | None:
        return None

    def take(self, students: Sequence[Student]) -> Imported:
        """As a roster, on which Ann is already."""
        self.threads.add(threading.get_ident())
        self.imports.append(tuple(students))
        new = (student.name for student in students if student.name != "Ann")
        return Imported(
            new=tuple(Issued(name=n, email=None, team=None, token=f"t-{n}") for n in new),
            changed=sum(student.name == "Ann" for student in students),
            same=0,
            revoked=(),
        )

    def acted(self, act: Any) -> None:
        self.host.book.acted(act)

    def restore(self, competition: Competition) -> None:
        self.restored.append(competition.id)

    # --- as a store ---

    def competition(self, competition: str) -> CompetitionRow:
        return self.written[competition]

    def flush(self, within_s: float | None = None) -> None:
        for competition in self.host.competitions:
            self.written[competition.id] = CompetitionRow(
                id=competition.id,
                plan=competition.plan,
                state=competition.state,
                revision=0,
                started_at=0.0,
                finished_at=None,
                ranking=(),
            )

    def find(self, text: str) -> CompetitionRow:
        raise UsageError(f"expected the id of a competition, got {text!r}")

    def played(self, match: str) -> MatchRow:
        for row in self.host.book.rows:
            if row.id == match:
                return row
        raise UsageError(f"expected the id of a match in x.db, got {match!r}")


def states(arena: AdminArena) -> list[CompetitionState]:
    return [competition.state for competition in arena.host.competitions]


@pytest.fixture
async def arena(host: FakeHost) -> AsyncIterator[AdminArena]:
    """Two competitions that are on: `cup-1`, a run called cup, and `two`."""
    arena = AdminArena(host)
    host.come("ann", "ben", plays=silent, tables=2)
    for name, run_name in (("cup-1", "cup"), ("two", "")):
        _, task = await host.begin(
            *("ann", "ben"), competition=name, run=run_name, limits=Limits(), is_attended=True
        )
        arena.tasks.append(task)
    yield arena
    await arena.end()


async def test_status_says_how_far_they_are_and_changes_nothing(arena: AdminArena) -> None:
    done = arena.says(Action.STATUS)

    assert done.text == "2 on"
    assert [shown.competition for shown in done.competitions] == ["cup-1", "two"]
    assert arena.host.book.acts == []

    await arena.end()
    assert arena.says(Action.STATUS) == Done("0 on", ())
    arena.waiting = ("cup waits: 1 of 2 here",)
    assert arena.says(Action.STATUS).lines == arena.waiting


@pytest.mark.parametrize("meant", ["cup-1", "cup"])
async def test_one_is_meant_by_its_id_or_the_name_of_its_run(arena: AdminArena, meant: str) -> None:
    done = arena.says(Action.PAUSE, competition=meant)

    assert done.text == "paused: cup-1"
    assert [shown.state for shown in done.competitions] == ["paused", "running"]
    assert states(arena) == [CompetitionState.PAUSED, CompetitionState.RUNNING]

    done = arena.says(Action.RESUME, competition=meant)
    assert done.text == "resumed: cup-1"
    assert states(arena) == [CompetitionState.RUNNING, CompetitionState.RUNNING]
    assert [
        (noted.competition, noted.who, noted.what, noted.at, noted.text)
        for noted in arena.host.book.acts
    ] == [
        ("cup-1", "Eva", "pause", 1234.5, "paused by Eva"),
        ("cup-1", "Eva", "resume", 1234.5, "resumed by Eva"),
    ]


async def test_without_a_name_all_are_meant(arena: AdminArena) -> None:
    arena.says(Action.PAUSE, competition="two")

    assert "goes on, two is paused" in arena.refuses(Action.PAUSE, competition="two")
    assert arena.says(Action.PAUSE).text == "paused: cup-1", "the other one is"
    assert "expected a competition to be paused, none is on" in arena.refuses(Action.PAUSE)
    arena.says(Action.RESUME, competition="two")
    assert arena.says(Action.RESUME).text == "resumed: cup-1", "the other one is"
    assert arena.says(Action.STOP).text == "stopped: cup-1, two"
    for task in arena.tasks:
        assert (await in_time(task)).state is CompetitionState.STOPPED
    stops = [noted for noted in arena.host.book.acts if noted.what == "stop"]
    assert [stop.competition for stop in stops] == ["cup-1", "two"]
    for action, done in (
        (Action.PAUSE, "paused"),
        (Action.RESUME, "resumed"),
        (Action.STOP, "stopped"),
    ):
        said = arena.refuses(action)
        assert said == f"expected a competition to be {done}, none is on"


async def test_the_beginning_of_an_id_is_enough(arena: AdminArena) -> None:
    assert arena.says(Action.PAUSE, competition="cup-").text == "paused: cup-1"
    assert "that is on" in arena.refuses(Action.PAUSE, competition="cu"), "a word is none"


@pytest.mark.parametrize("action", [Action.PAUSE, Action.RESUME, Action.STOP])
async def test_no_such_competition(arena: AdminArena, action: Action) -> None:
    expected = "expected a competition that is on"
    assert arena.refuses(action, competition="tow") == f"{expected} (cup-1, two), got 'tow'"

    await arena.end()
    assert arena.refuses(action, competition="two") == f"{expected} (none), got 'two'"


@pytest.mark.parametrize(
    ("action", "about", "said"),
    [
        (Action.VOID, {"match": "nonsense"}, "the id of a match in x.db, got 'nonsense'"),
        (Action.VOID, {}, "the id of a match to be void, got none"),
        (
            *(Action.REMOVE, {"bot": "nobody"}),
            "a bot that is in a competition, got 'nobody'; one that is over has to be named",
        ),
        (Action.REMOVE, {}, "the name of a bot to be removed, got none"),
        (
            *(Action.REMOVE, {"bot": "ann", "competition": "no"}),
            "a competition that is on (cup-1, two), got 'no'",
        ),
        (Action.START, {}, "the name of a run or of a game, got none"),
        (Action.IMPORT, {}, "the text of a roster, got none"),
    ],
)
async def test_what_is_not_there_or_not_named_is_refused(
    arena: AdminArena, action: Action, about: dict[str, str], said: str
) -> None:
    assert arena.refuses(action, **about).startswith(f"expected {said}")


async def test_an_owner_of_bots_that_take_part_is_told_their_names(arena: AdminArena) -> None:
    arena.host.come("mallory/b", "mallory/a", plays=silent)
    _, task = await arena.host.begin("mallory/b", "mallory/a", competition="three")
    arena.tasks.append(task)

    said = arena.refuses(Action.REMOVE, bot="mallory")
    assert said.endswith("got 'mallory'; its owner has mallory/a, mallory/b there")


async def test_what_goes_on_and_has_nothing_that_waits_is_not_resumed(
    house: FakeArena, arena: AdminArena
) -> None:
    why = (
        "expected a competition that is paused, or has a match that waits after too many voids; "
        "going on: "
    )

    assert arena.refuses(Action.RESUME) == f"{why}cup-1, two"
    assert arena.refuses(Action.RESUME, competition="two") == f"{why}two"

    stuck, _ = arena.competitions
    for _ in range(MOST_VOIDS):  # of an arena that fails
        [table] = [table for table in house.referee.tables if stuck.table(table.id)]
        house.referee.void(table, FAULT)
        await a_while()
    assert not stuck.arbiter.is_paused
    assert arena.says(Action.RESUME).text == f"resumed: {stuck.id}"
    assert not stuck.is_stuck


async def test_a_match_is_void_and_its_bots_are_started_again(
    house: FakeArena, arena: AdminArena
) -> None:
    table = house.referee.tables[1]
    done = arena.says(Action.VOID, match=table.id)

    assert done.text == f"{table.id} is void and played again in two"
    assert arena.restored == ["two"]
    [noted] = arena.host.book.acts
    assert (noted.what, noted.match, noted.text) == ("void", table.id, "made void by Eva")
    [row] = arena.host.book.rows
    assert row.result.termination.text == "made void by Eva"


async def test_a_match_of_a_stopped_competition_stays(host: FakeHost) -> None:
    host.come("ann", "ben", tables=2)
    host.comes("cem", silent)
    _, task = await host.begin("ann", "ben", "cem")
    arena = AdminArena(host)
    [row] = [row for row in host.book.rows if set(row.players) == {"ann", "ben"}]
    arena.says(Action.STOP)
    await in_time(task)

    assert arena.refuses(Action.VOID, match=row.id) == (
        "expected a match of a competition that goes on or is finished, c is stopped"
    )
    assert arena.reopened == []


async def test_a_bot_is_removed_from_all_that_it_is_in_or_from_one(arena: AdminArena) -> None:
    done = arena.says(Action.REMOVE, bot="ben", competition="cup")

    assert done.text == "ben is removed from cup-1"
    assert arena.host.competition.is_in("ben"), "in the other"

    assert arena.says(Action.REMOVE, bot="BEN").text == "ben is removed from two"
    assert "is in a competition, got 'ben'" in arena.refuses(Action.REMOVE, bot="ben")
    for task in arena.tasks:
        report = await in_time(task)
        assert [verdict.kind for verdict in report.verdicts] == [Ending.REMOVED]
    assert [(noted.competition, noted.bot, noted.text) for noted in arena.host.book.acts] == [
        ("cup-1", "ben", "removed by Eva"),
        ("two", "ben", "removed by Eva"),
    ]


# ---- The machines that run bots


def test_the_instructor_sees_the_hosts_and_who_was_lost_with_one(arena: AdminArena) -> None:
    arena.host_directory = FakeHostDirectory()
    done = arena.says(Action.HOSTS)

    assert done.text == "1 host"
    assert [view.host for view in done.hosts] == ["h1"]
    assert done.lost == (LOST,)


async def test_a_host_is_drained_and_takes_bots_again(arena: AdminArena) -> None:
    arena.host_directory = FakeHostDirectory()
    drained = await arena.has(Action.DRAIN, host="h1")
    resumed = await arena.has(Action.UNDRAIN, host="h1")

    assert (drained.text, drained.hosts[0].state) == ("h1 takes no more bots", "draining")
    assert (resumed.text, resumed.hosts[0].state) == ("h1 takes bots again", "idle")
    acts = [(act.what, act.who, act.text) for act in arena.host.book.acts]
    assert acts == [
        ("drain", "Eva", "h1 takes no more bots, by Eva"),
        ("undrain", "Eva", "h1 takes bots again, by Eva"),
    ]


@pytest.mark.parametrize(
    ("has_hosts", "named", "why"),
    [
        (False, "h1", "expected an arena with hosts"),
        (True, None, "expected the name of a host, got none"),
        (True, "h9", "expected a host (h1), got 'h9'"),
    ],
)
async def test_a_host_that_is_not_there_cannot_be_drained(
    arena: AdminArena, has_hosts: bool, named: str | None, why: str
) -> None:
    arena.host_directory = FakeHostDirectory() if has_hosts else None
    before = arena.state()
    with pytest.raises(UsageError) as caught:
        await arena.has(Action.DRAIN, host=named)

    assert str(caught.value).startswith(why)
    assert arena.state() == before


class Office:
    """An instructor of an arena in which nothing is on, with a real database."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.storage = WorkingStorage()
        self.uses: dict[str, str] = {}
        self.named: dict[str, str] = {}
        self.known: list[list[str]] = []  # who was on the roster, each time it was read
        self.competitions = ()
        self.roster = Roster(store.engine, lambda: 1234.5)
        self.instructor = AdminCommands(
            cast(LiveArena, self),
            store,
            lambda: 5000.0,
            starter=cast(Scheduler, self),
            roster=self.roster,
            lines=list,
        )

    async def read_roster(self) -> None:
        self.known.append([member.name for member in self.roster.members()])

    @property
    def here(self) -> Office:
        return self

    def spelled(self, name: str) -> str:
        return name

    def use_of(self, name: str) -> str | None:
        return self.uses.get(name)

    def awaiting(self, name: str) -> str | None:
        return self.named.get(name)

    async def says(self, action: Action, **about: Any) -> str:
        done = self.instructor(Instruct(VERSION, "", action, **about), "Eva")
        assert not isinstance(done, Done)
        text: str = (await in_time(done)).text
        return text

    async def refuses(self, action: Action, **about: Any) -> str:
        before = self.store.actions(), self.roster.members()
        with pytest.raises(UsageError) as caught:
            await self.says(action, **about)
        self.store.flush()
        assert (self.store.actions(), self.roster.members()) == before
        return str(caught.value)


@pytest.fixture
def office(database: str) -> Iterator[Office]:
    with Store(database) as store:
        yield Office(store)


@pytest.mark.parametrize("state", [CompetitionState.FINISHED, CompetitionState.STOPPED])
async def test_a_bot_is_removed_from_what_is_over(office: Office, state: CompetitionState) -> None:
    course = WrittenCompetition(office.store, plan(Form.ROUND_ROBIN, ("ann", "ben"), run="cup"))
    course.plays(1, ("ann", "ben"), (5, -5))
    course.ends(state)

    said = await office.says(Action.REMOVE, bot="ANN", competition="cup")

    assert said == f"ann is removed from {course.id}, which is over"
    office.store.flush()
    [act] = office.store.actions(course.id)
    assert (act.who, act.what, act.bot, act.at) == ("Eva", "remove", "ann", 5000.0)
    assert LiveResults(office.store, course.id).standings[-1].name == "ann"
    assert await office.refuses(Action.REMOVE, bot="ann", competition="cup") == (
        f"expected a bot that is in {course.id}, got 'ann', which is out by removed"
    )


async def test_a_bot_is_removed_from_a_ladder_that_is_over(office: Office) -> None:
    course = WrittenCompetition(office.store, plan(Form.LADDER, ()))
    course.plays(1, ("ann/gin", "ben"), (1, 0))
    course.ends(CompetitionState.STOPPED)
    await office.says(Action.REMOVE, bot="ann/gin", competition=course.id)
    office.store.flush()

    ben, ann = LiveResults(office.store, course.id).standings
    assert (ben.name, ben.rank, ben.played) == ("ben", None, 0)
    assert (ann.name, ann.rank) == ("ann/gin", None)


async def test_who_cannot_be_removed_from_what_is_over(office: Office) -> None:
    course = WrittenCompetition(office.store, plan(Form.ROUND_ROBIN, ("ann", "ben")))
    course.plays(1, ("ann", "ben"), (0, 0), offence(0))
    course.ends()
    drawn = WrittenCompetition(office.store, plan(Form.ELIMINATION, names(5)), "drawn")
    drawn.ends()
    where = {"competition": course.id}

    assert await office.refuses(Action.REMOVE, bot="zoe", **where) == (
        f"expected a bot that is in {course.id}, got 'zoe'"
    )
    assert await office.refuses(Action.REMOVE, bot="ann", **where) == (
        f"expected a bot that is in {course.id}, got 'ann', which is out by illegal"
    )
    assert await office.refuses(Action.REMOVE, bot="bot-1", competition="drawn") == (
        "expected a round robin, a league or a ladder, drawn is an elimination that is over: "
        "its tables were drawn by its results, so nobody can be taken out of it"
    )


async def test_somebody_is_renamed_or_taken_off_the_roster(office: Office) -> None:
    office.roster.take([Student(name="ann"), Student(name="ben")])

    assert await office.says(Action.RENAME, bot="ANN", text=" anna ") == "ann is anna now"
    assert await office.says(Action.UNLIST, bot="ben") == "ben is on the roster no longer"
    assert office.known == [["anna", "ben"], ["anna"]]
    assert [(act.who, act.what, act.bot, act.text) for act in office.store.actions()] == [
        ("Eva", "rename", "ann", "anna"),
        ("Eva", "unlist", "ben", ""),
    ]


async def test_whose_name_is_in_use_keeps_it(office: Office) -> None:
    office.roster.take([Student(name="ann"), Student(name="ben")])
    office.uses["ann"] = "ann/gin is connected"
    office.named["ben"] = "cup"

    for word in ({"action": Action.UNLIST}, {"action": Action.RENAME, "text": "cem"}):
        assert await office.refuses(**word, bot="ann") == (
            "expected a name that is not in use: ann/gin is connected"
        )
        assert await office.refuses(**word, bot="ben") == (
            "expected a name that is not in use: "
            "it is among the players of the run cup, which is still to be played"
        )
    del office.named["ben"]
    assert await office.refuses(Action.RENAME, bot="ben", text="ann") == (
        "expected a name that nobody has: ann/gin is connected"
    )
    assert "on the roster, got none" in await office.refuses(Action.UNLIST)
    assert "the new name, got none" in await office.refuses(Action.RENAME, bot="ben")
    assert "on the roster, got 'zoe'" in await office.refuses(Action.UNLIST, bot="zoe")


async def test_a_competition_is_started_and_that_is_written_down(arena: AdminArena) -> None:
    chosen = {"form": "ladder", "matches": None, "settings": {"hands": 2}}
    done = await arena.has(Action.START, competition="akq", form="ladder", settings={"hands": 2})

    assert done.text == "started: two"
    assert [shown.competition for shown in done.competitions] == ["cup-1", "two"]
    assert arena.started == [("akq", chosen)]
    [noted] = arena.host.book.acts
    assert (noted.competition, noted.who, noted.what, noted.text) == (
        *("two", "Eva", "start"),
        "started by Eva",
    )


async def test_what_cannot_be_started_changes_nothing(host: FakeHost) -> None:
    arena = AdminArena(host)
    with pytest.raises(UsageError, match="at least 2 connected bots"):
        await arena.has(Action.START, competition="akq")
    assert arena.host.book.acts == []


async def test_a_class_is_imported_beside_the_event_loop(host: FakeHost) -> None:
    arena = AdminArena(host)
    done = await arena.has(Action.IMPORT, text="\ufeffname;team\nAnn;red\nBen;\nCem;blue\n")

    assert done.text == "2 new; 1 known, 1 of them changed"
    assert done.tokens == (("Ben", "t-Ben"), ("Cem", "t-Cem"))
    [students] = arena.imports
    assert students[0] == Student(name="Ann", team="red")
    assert arena.threads.isdisjoint({threading.get_ident()})
    assert arena.told == ["the roster is read"]
    [noted] = arena.host.book.acts
    assert (noted.competition, noted.what, noted.text) == (
        *(None, "import"),
        "2 new; 1 known, 1 of them changed, by Eva",
    )
    assert "t-Ben" not in noted.text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "roster: expected a line of column names, got an empty file"),
        ("name\na/b\n", "roster:2: expected a name without '/'"),
    ],
)
async def test_a_line_of_a_class_that_is_wrong_is_named(
    host: FakeHost, text: str, said: str
) -> None:
    arena = AdminArena(host)
    with pytest.raises(UsageError) as caught:
        await arena.has(Action.IMPORT, text=text)

    assert str(caught.value).startswith(said)
    assert (arena.imports, arena.host.book.acts) == ([], [])


async def test_the_log_is_what_was_told_lately(host: FakeHost) -> None:
    arena = AdminArena(host)
    arena.told += ["one", "two"]

    done = arena.says(Action.LOG)
    assert (done.lines, done.tokens) == (("one", "two"), ())
    assert arena.host.book.acts == []
