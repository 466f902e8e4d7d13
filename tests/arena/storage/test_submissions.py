"""What is handed in, what becomes of it and what is in play, in either kind of database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from arena.storage import submissions as quota
from arena.storage.programs import Programs
from arena.storage.roster import Roster
from arena.storage.schema import open_database
from arena.storage.store import Store
from arena.storage.submissions import Submission, Submissions, SubmissionState
from protocol.errors import StoreFailed, UsageError
from tests.support.cases import CaseFile, StepByStep
from tests.support.databases import rows
from tests.support.submitted_programs import MANIFEST, bytes_of, enrol, hand_in, hashed_program

GIN, AKQ = "gin_rummy", "ace_king_queen"
GAMES = {"gin": GIN, "akq": AKQ}
SHORT = {game: name for name, game in GAMES.items()}
CASES = CaseFile(Path(__file__).with_name("submissions.cases"))
NOW = 99.0


@pytest.fixture
def submissions(engine: sa.Engine) -> Submissions:
    """Those of a class of two who have handed in nothing yet."""
    enrol(engine, "ann", "ben")
    return Submissions(engine, lambda: NOW)


HandsIn = Callable[..., Submission]


@pytest.fixture
def hands_in(engine: sa.Engine, submissions: Submissions) -> HandsIn:
    """Hand another program in, which is accepted for some games, or waits without any."""
    numbers = iter(range(1, 1000))

    def call(owner: str, *games: str, data: bytes | None = None) -> Submission:
        number = next(numbers)
        made = hand_in(engine, owner, bytes_of(number) if data is None else data, float(number))
        if not games:
            return made
        return submissions.accepted(made.number, MANIFEST, games, "fine", number + 0.5)

    return call


class SubmissionDesk(StepByStep):
    """Does what a case says, and tells what has changed."""

    def __init__(self, engine: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.engine, self.monkeypatch = engine, monkeypatch
        self.roster = Roster(engine, lambda: NOW)
        self.submissions = Submissions(engine, lambda: NOW)
        self.at, self.programs = 0.0, list[str]()

    def shows(self) -> Iterator[str]:
        for one in sorted(self.submissions.of(None), key=lambda one: one.number):
            version = "" if one.version is None else f" v{one.version}"
            games = "".join(f" {SHORT[game]}" for game in one.games)
            decided = f"{games} at {one.decided_at}, {one.text}" if one.decided_at else ""
            disabled = f", disabled at {one.disabled_at}" if one.disabled_at else ""
            yield f"{one.number} {one.owner}{version} {one.state}{decided}{disabled}"
        in_play = [
            f"{one.owner} {SHORT[one.game]} v{one.version} (#{one.submission} at {one.at} {one.who})"
            for one in self.submissions.in_play()
        ]
        yield f"in play: {', '.join(in_play) or 'none'}"

    def does(self, *words: str) -> Iterator[str]:
        known = self.submissions
        self.at += 1.0
        numbers = [int(word) for word in words if word.isdigit()]
        number = numbers[0] if numbers else 0
        games = [GAMES[word] for word in words if word in GAMES]
        match words:
            case owner, "hands", "in", *_:
                data = words[-1].encode() if "=" in words[-1] else bytes_of(len(self.programs))
                made = hand_in(self.engine, owner, data, self.at)
                self.programs.append(made.program)
                if games:
                    known.accepted(made.number, MANIFEST, games, "fine", self.at)
            case (("building" | "checking" as state), _):
                known.began(number, SubmissionState(state))
            case "accepted", *_:
                known.accepted(number, MANIFEST, games, "again", self.at)
            case "refused", _:
                known.refused(number, "no", self.at)
            case "again", _:
                known.reopened(number)
            case "use", owner, *_:
                who = words[-1] if "by" in words else owner
                now = known.use(owner, number, games[0] if games else None, who, self.at)
                assert now == known.in_play()
            case (("disable" | "enable" as what), _):
                known.disable(number, self.at if what == "disable" else None, "prof")
            case (("rename" | "remove" as what), *names):
                getattr(self.roster, what)(*names)
            case "enrol", name:
                enrol(self.engine, name)
            case "log", _, kind, text:
                known.log(number, kind, text)
            case "stderr", _, game_match, text:
                known.note_stderr(number, game_match, 1.0, text)
            case (("most_versions" | "most_stored" as most), _):
                self.monkeypatch.setattr(quota, most.upper(), number)
            case "room", owner, *_:
                yield f"gone {known.make_room(owner, in_use=numbers)}"
            case "program", _:
                is_there = self.programs[number - 1] in Programs(self.engine)
                yield f"program {number} is {'there' if is_there else 'gone'}"
            case "of", owner:
                found = [one.number for one in known.of(owner)]
                logs = [one.text for one in known.stderr(owner)]
                yield f"of {owner} {found}, stderr {logs}, logs of 1 {known.logs(1)}"
            case ("undecided",):
                yield f"undecided {[one.number for one in known.undecided()]}"
            case "plays", _:
                yield f"plays {[one.submission for one in known.in_play(games[0])]}"
            case ("acts",):
                with Store(
                    self.engine.url.render_as_string(hide_password=False), create=False
                ) as store:
                    for one in store.actions():
                        yield f"act {one.at} {one.who} {one.what} {one.bot}: {one.text}"
            case _:
                raise AssertionError(words)


@pytest.mark.parametrize("title", CASES.titles)
def test_submissions_go(
    title: str, engine: sa.Engine, submissions: Submissions, monkeypatch: pytest.MonkeyPatch
) -> None:
    CASES.check(title, SubmissionDesk(engine, monkeypatch).step)


# --- how a submission goes ---


def test_one_that_has_arrived_waits(hands_in: HandsIn, submissions: Submissions) -> None:
    made = hands_in("ann", data=b"a bot")

    assert made == Submission(
        number=1,
        owner="ann",
        version=None,
        name="bot.py",
        message="",
        arrived_at=1.0,
        program=hashed_program(b"a bot"),
        size=5,
        state=SubmissionState.WAITING,
        games=(),
        manifest=None,
        text="",
        decided_at=None,
        disabled_at=None,
    )
    assert submissions.get(1) == made
    assert submissions.of("ann") == submissions.of(None) == submissions.undecided() == (made,)
    assert submissions.of("ben") == ()
    assert submissions.in_play() == ()


def test_only_somebody_on_the_roster_hands_in(engine: sa.Engine, submissions: Submissions) -> None:
    with pytest.raises(UsageError, match=r"^expected a name on the roster, got 'eva'$"):
        hand_in(engine, "eva", b"a bot")

    assert submissions.of(None) == ()


def test_an_arena_that_was_killed_leaves_them_waiting(
    hands_in: HandsIn, submissions: Submissions, database: str
) -> None:
    done = hands_in("ann", AKQ)
    made = hands_in("ann")
    submissions.began(made.number, SubmissionState.BUILDING)
    data = "'\\x00'" if "postgresql" in database else "x'00'"
    rows(database, f"INSERT INTO program_parts VALUES ('cut', 0, {data})")
    submissions.restarted()

    assert submissions.undecided() == (made,)
    assert submissions.get(done.number) == done
    assert rows(database, "SELECT count(*) FROM program_parts") == [(2,)]


def test_two_that_are_accepted_at_once_get_two_numbers(
    hands_in: HandsIn, submissions: Submissions, database: str
) -> None:
    numbers = [hands_in("ann").number for _ in range(8)]

    def accepts(number: int) -> int | None:
        engine, _ = open_database(database, create=False)
        try:
            return Submissions(engine).accepted(number, MANIFEST, (AKQ,), "", 1.0).version
        finally:
            engine.dispose()

    with ThreadPoolExecutor(4) as pool:
        versions = list(pool.map(accepts, numbers))

    assert sorted(filter(None, versions)) == list(range(1, 9))
    assert [one.submission for one in submissions.in_play()] == [max(numbers)]


def test_one_that_is_unknown_is_one_line(submissions: Submissions) -> None:
    calls: list[Callable[[], object]] = [
        lambda: submissions.get(7),
        lambda: submissions.accepted(7, MANIFEST, (AKQ,), "", 1.0),
        lambda: submissions.refused(7, "", 1.0),
        lambda: submissions.reopened(7),
        lambda: submissions.disable(7, 1.0, "prof"),
        lambda: submissions.log(7, "build", ""),
    ]
    for call in calls:
        with pytest.raises(UsageError, match=r"^expected the number of a submission in .*, got 7$"):
            call()


def test_a_damaged_row_is_one_line(
    hands_in: HandsIn, submissions: Submissions, database: str
) -> None:
    hands_in("ann", AKQ)
    for change in ("manifest = '{'", "state = 'odd'"):
        rows(database, f"UPDATE submissions SET {change}")

        with pytest.raises(StoreFailed, match=r"^cannot read submission 1 in the database"):
            submissions.of("ann")


# --- logs ---


def test_logs_are_kept_by_kind_and_written_over(
    hands_in: HandsIn, submissions: Submissions
) -> None:
    hands_in("ann")
    submissions.log(1, "build", "javac\n")
    submissions.log(1, "check", "ok\0\udc80")
    submissions.log(1, "build", "javac again\n")

    assert submissions.logs(1) == {
        "build": "javac again\n",
        "check": "ok\N{REPLACEMENT CHARACTER}?",
    }
    assert submissions.logs(2) == {}


def test_stderr_of_the_last_twenty_matches_is_kept(
    hands_in: HandsIn, submissions: Submissions
) -> None:
    hands_in("ann", AKQ)
    hands_in("ben", AKQ)
    submissions.note_stderr(2, "m-0", 0.0, "mine")
    for number in range(25):
        submissions.note_stderr(1, f"m-{number}", float(number), f"match {number}\n")
    submissions.note_stderr(1, "m-24", 24.0, "match 24 again\n")
    submissions.note_stderr(7, "m-25", 25.0, "of one that is gone")

    found = submissions.stderr("ann")
    assert [one.match for one in found] == [f"m-{number}" for number in range(24, 4, -1)]
    assert (found[0].text, found[0].version, found[0].at) == ("match 24 again\n", 1, 24.0)
    assert [one.text for one in submissions.stderr("ben")] == ["mine"]


def test_of_stderr_the_end_is_kept(hands_in: HandsIn, submissions: Submissions) -> None:
    hands_in("ann", AKQ)
    submissions.note_stderr(1, "m-1", 1.0, "é" * 40_000 + "\0end")

    [found] = submissions.stderr("ann")
    assert found.text.endswith("éé\N{REPLACEMENT CHARACTER}end")
    assert 65_530 < len(found.text.encode()) <= 65_536


# --- databases of before ---


TABLES = ("stderr", "submission_logs", "in_play", "submissions", "program_parts", "programs")


@pytest.fixture
def before(database: str) -> str:
    """A database as an arena made it that knew no submissions."""
    Store(database).close()
    for table in TABLES:
        rows(database, f"DROP TABLE {table}")
    rows(database, "DELETE FROM meta WHERE key = 'in play'")
    return database


def test_a_database_of_before_is_read_as_empty_and_not_changed(before: str) -> None:
    engine, _ = open_database(before, create=False)
    submissions = Submissions(engine)

    assert submissions.of(None) == submissions.undecided() == ()
    assert submissions.in_play() == ()
    assert submissions.stderr("ann") == ()
    assert submissions.logs(1) == {}
    with pytest.raises(UsageError, match="expected the number of a submission"):
        submissions.get(1)
    assert "00" not in Programs(engine)
    assert not sa.inspect(engine).has_table("submissions")
    engine.dispose()


def test_a_roster_of_before_is_changed_without_them(before: str) -> None:
    engine, _ = open_database(before, create=False)
    enrol(engine, "ann", "ben")
    Roster(engine).rename("ann", "anna")
    Roster(engine).remove("ben")

    assert [one.name for one in Roster(engine).members()] == ["anna"]
    engine.dispose()


def test_an_arena_adds_the_tables_to_a_database_of_before(before: str) -> None:
    for _ in range(2):  # once more does nothing
        engine, _ = open_database(before, create=True)
        enrol(engine, "ann")
        made = hand_in(engine, "ann", b"a bot")
        Submissions(engine).accepted(made.number, MANIFEST, (AKQ,), "", 1.0)
        engine.dispose()

    engine, _ = open_database(before, create=False)
    assert [one.version for one in Submissions(engine).of("ann")] == [2, 1]
    engine.dispose()
