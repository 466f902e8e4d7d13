"""What is handed in, what becomes of it and what is in play, in either kind of database."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from arena.storage import quota
from arena.storage.programs import Programs
from arena.storage.roster import Roster
from arena.storage.schema import open_database
from arena.storage.store import Act, Store
from arena.storage.submissions import Submission, Submissions, SubmissionState
from protocol.errors import StoreFailed, UsageError
from tests.support.databases import rows
from tests.support.submitted_programs import (
    MANIFEST,
    bytes_of,
    enrol,
    hand_in,
    hashed_program,
    read_program_bytes,
)

GIN, AKQ = "gin_rummy", "ace_king_queen"
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


def playing(submissions: Submissions, game: str | None = None) -> list[tuple[str, str, int]]:
    return [(one.owner, one.game, one.version) for one in submissions.in_play(game)]


def acts(engine: sa.Engine) -> list[Act]:
    with Store(engine.url.render_as_string(hide_password=False), create=False) as store:
        return list(store.actions())


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


def test_they_are_built_and_checked_in_the_order_of_arrival(
    hands_in: HandsIn, submissions: Submissions
) -> None:
    for owner in ("ben", "ann", "ben"):
        hands_in(owner)
    submissions.began(1, SubmissionState.BUILDING)
    submissions.began(1, SubmissionState.CHECKING)

    found = [(one.number, one.owner, one.state.value) for one in submissions.undecided()]
    assert found == [(1, "ben", "checking"), (2, "ann", "waiting"), (3, "ben", "waiting")]
    assert [one.number for one in submissions.of("ben")] == [3, 1]


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


def test_one_that_is_accepted_is_the_next_version_and_in_play(
    hands_in: HandsIn, submissions: Submissions
) -> None:
    first = hands_in("ann", AKQ, GIN)
    hands_in("ben", GIN)
    assert (first.version, first.state, first.games) == (1, SubmissionState.ACCEPTED, (AKQ, GIN))
    assert (first.manifest, first.text, first.decided_at) == (MANIFEST, "fine", 1.5)

    assert playing(submissions) == [("ann", AKQ, 1), ("ann", GIN, 1), ("ben", GIN, 1)]
    hands_in("ann", GIN)

    assert playing(submissions) == [("ann", AKQ, 1), ("ann", GIN, 2), ("ben", GIN, 1)]
    assert playing(submissions, AKQ) == [("ann", AKQ, 1)]
    [_, latest, _] = submissions.in_play()
    assert (latest.submission, latest.at, latest.who) == (3, 3.5, "ann")


def test_what_is_refused_changes_nothing_in_play(
    hands_in: HandsIn, submissions: Submissions
) -> None:
    hands_in("ann", AKQ)
    submissions.refused(hands_in("ann").number, "it does not build", 7.0)

    refused = submissions.get(2)
    assert (refused.state, refused.version) == (SubmissionState.REFUSED, None)
    assert (refused.text, refused.decided_at) == ("it does not build", 7.0)
    assert playing(submissions) == [("ann", AKQ, 1)]
    assert hands_in("ann", AKQ).version == 2


def test_what_is_decided_is_not_decided_again(hands_in: HandsIn, submissions: Submissions) -> None:
    good, bad = hands_in("ann", AKQ), hands_in("ann")
    submissions.refused(bad.number, "no", 7.0)
    before = submissions.of("ann")
    for number in (good.number, bad.number):
        submissions.accepted(number, MANIFEST, (GIN,), "again", 8.0)
        submissions.refused(number, "again", 8.0)
        submissions.began(number, SubmissionState.CHECKING)

    assert submissions.of("ann") == before
    assert playing(submissions) == [("ann", AKQ, 1)]


def test_one_that_is_rebuilt_keeps_its_number_and_stays_in_play(
    hands_in: HandsIn, submissions: Submissions
) -> None:
    first = hands_in("ann", AKQ)
    again = submissions.reopened(first.number)
    assert (again.state, again.decided_at, again.version) == (SubmissionState.WAITING, None, 1)
    assert playing(submissions) == [("ann", AKQ, 1)]

    assert submissions.accepted(1, MANIFEST, (AKQ,), "still fine", 8.0).version == 1
    assert submissions.get(1).text == "still fine"
    assert [(one.version, one.at) for one in submissions.in_play()] == [(1, 1.5)]


def test_one_that_is_not_decided_is_not_built_again(
    hands_in: HandsIn, submissions: Submissions
) -> None:
    hands_in("ann")
    submissions.began(1, SubmissionState.CHECKING)
    with pytest.raises(UsageError, match=r"^submission 1 is not decided yet$"):
        submissions.reopened(1)

    assert submissions.get(1).state is SubmissionState.CHECKING


def test_one_whose_owner_has_left_does_not_come_into_play_by_being_built_again(
    hands_in: HandsIn, submissions: Submissions, engine: sa.Engine
) -> None:
    hands_in("ann")
    Roster(engine).remove("ann")
    with pytest.raises(UsageError, match=r"^the owner of submission 1 is off the roster$"):
        submissions.reopened(1)

    assert submissions.undecided() == ()


def test_one_that_is_rebuilt_is_out_of_play_where_it_no_longer_plays(
    hands_in: HandsIn, submissions: Submissions
) -> None:
    hands_in("ann", AKQ, GIN)
    submissions.reopened(1)
    submissions.accepted(1, MANIFEST, (GIN,), "fine", 8.0)

    assert playing(submissions) == [("ann", GIN, 1)]


def test_one_that_no_longer_builds_is_in_play_no_longer(
    hands_in: HandsIn, submissions: Submissions
) -> None:
    hands_in("ann", AKQ)
    submissions.reopened(1)
    submissions.refused(1, "Java is gone", 8.0)

    assert playing(submissions) == []
    assert submissions.get(1).version == 1
    with pytest.raises(UsageError, match="expected a version that was accepted, v1 is refused"):
        submissions.use("ann", 1, None, "ann", 9.0)


def test_an_earlier_one_that_is_accepted_late_does_not_replace_a_later_one(
    hands_in: HandsIn, submissions: Submissions
) -> None:
    early = hands_in("ann")
    submissions.refused(early.number, "the check was at fault", 1.0)
    hands_in("ann", AKQ)
    submissions.reopened(early.number)
    late = submissions.accepted(early.number, MANIFEST, (AKQ, GIN), "fine", 9.0)

    assert late.version == 2
    assert playing(submissions) == [("ann", AKQ, 1), ("ann", GIN, 2)]


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


# --- what is in play ---


def test_an_owner_goes_back_in_a_game_or_in_all(
    hands_in: HandsIn, submissions: Submissions, engine: sa.Engine
) -> None:
    hands_in("ann", AKQ, GIN)
    hands_in("ann", AKQ, GIN)
    now = submissions.use("ann", 1, GIN, "ann", 9.0)
    assert now == submissions.in_play()
    assert playing(submissions) == [("ann", AKQ, 2), ("ann", GIN, 1)]

    submissions.use("ann", 1, None, "prof", 10.0)
    assert playing(submissions) == [("ann", AKQ, 1), ("ann", GIN, 1)]
    assert [(one.at, one.who) for one in submissions.in_play()] == [(10.0, "prof"), (9.0, "ann")]

    submissions.use("ann", 1, None, "ann", 11.0)  # it is in play already
    assert acts(engine) == [
        Act(at=9.0, who="ann", what="use", bot="ann", text="ann v1 is in play in gin_rummy"),
        Act(at=10.0, who="prof", what="use", bot="ann", text="ann v1 is in play in ace_king_queen"),
    ]


def test_what_cannot_be_put_in_play_is_said(hands_in: HandsIn, submissions: Submissions) -> None:
    for owner in ("ann", "ben", "ben"):
        hands_in(owner, AKQ)
    before = submissions.in_play()

    with pytest.raises(UsageError, match=r"^expected a version of ann, got v2$"):
        submissions.use("ann", 2, None, "ann", 9.0)
    with pytest.raises(
        UsageError, match=r"^expected a game that v1 plays \(ace_king_queen\), got gin"
    ):
        submissions.use("ann", 1, GIN, "ann", 9.0)
    assert submissions.in_play() == before


def test_an_instructor_takes_one_out_and_lets_it_back(
    hands_in: HandsIn, submissions: Submissions, engine: sa.Engine
) -> None:
    hands_in("ann", AKQ)
    hands_in("ann")
    assert submissions.disable(1, 9.0, "prof").disabled_at == 9.0
    submissions.disable(1, 10.0, "prof")  # it is already
    assert playing(submissions) == []
    with pytest.raises(UsageError, match=r"^ann v1 is disabled by an instructor$"):
        submissions.use("ann", 1, None, "ann", 9.0)

    assert submissions.disable(1, None, "prof").disabled_at is None
    submissions.disable(2, 12.0, "prof")
    assert playing(submissions) == [("ann", AKQ, 1)]
    said = [(act.at, act.who, act.what, act.bot, act.text) for act in acts(engine)]
    assert said == [
        (9.0, "prof", "disable", "ann", "ann v1 is disabled"),
        (NOW, "prof", "enable", "ann", "ann v1 is enabled"),
        (12.0, "prof", "disable", "ann", "submission 2 of ann is disabled"),
    ]


def test_one_that_is_disabled_before_it_is_accepted_replaces_nothing(
    hands_in: HandsIn, submissions: Submissions
) -> None:
    hands_in("ann", AKQ)
    submissions.disable(hands_in("ann").number, 9.0, "prof")

    assert submissions.accepted(2, MANIFEST, (AKQ,), "fine", 10.0).version == 2
    assert playing(submissions) == [("ann", AKQ, 1)]


def test_every_change_of_what_is_in_play_is_seen_by_those_who_poll(
    hands_in: HandsIn, submissions: Submissions, engine: sa.Engine
) -> None:
    seen = [submissions.revision()]
    for change in (
        lambda: hands_in("ann", AKQ),
        lambda: hands_in("ann", AKQ),
        lambda: submissions.use("ann", 1, None, "ann", 9.0),
        lambda: submissions.disable(1, 9.0, "prof"),
        lambda: submissions.disable(1, None, "prof"),
        lambda: Roster(engine).rename("ann", "anna"),
        lambda: Roster(engine).remove("anna"),
    ):
        change()
        seen.append(submissions.revision())

    assert seen == sorted(set(seen))


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


def test_stderr_of_a_submission_that_is_gone_is_not_kept(submissions: Submissions) -> None:
    submissions.note_stderr(7, "m-1", 1.0, "late")

    assert submissions.stderr("ann") == ()


# --- owners ---


def test_submissions_follow_a_new_name(
    hands_in: HandsIn, submissions: Submissions, engine: sa.Engine
) -> None:
    hands_in("ann", AKQ)
    submissions.note_stderr(1, "m-1", 1.0, "oops")
    Roster(engine).rename("ann", "anna")
    submissions.note_stderr(1, "m-2", 1.0, "late")
    enrol(engine, "ann")

    assert playing(submissions) == [("anna", AKQ, 1)]
    assert submissions.of("ann") == ()
    assert submissions.stderr("ann") == ()
    assert hands_in("anna", AKQ).version == 2
    assert [one.text for one in submissions.stderr("anna")] == ["late", "oops"]


def test_what_somebody_has_left_is_out_of_play_and_nobody_inherits_it(
    hands_in: HandsIn, submissions: Submissions, engine: sa.Engine
) -> None:
    hands_in("ann", AKQ)
    hands_in("ann")
    submissions.note_stderr(1, "m-1", 1.0, "oops")
    Roster(engine, lambda: NOW).remove("ann")
    assert submissions.in_play() == ()
    assert submissions.undecided() == ()
    enrol(engine, "ann")

    assert submissions.of("ann") == ()
    assert submissions.stderr("ann") == ()
    assert hands_in("ann", AKQ).version == 1
    assert [one.owner for one in submissions.of(None)] == ["ann", "ann/left", "ann/left"]
    open_then = submissions.get(2)
    assert (open_then.state, open_then.decided_at) == (SubmissionState.REFUSED, NOW)
    assert open_then.text == "ann was taken off the roster"
    assert submissions.accepted(2, MANIFEST, (GIN,), "", 1.0) == open_then
    assert read_program_bytes(engine, open_then.program) == bytes_of(2)


# --- room ---


def test_the_oldest_go_first_with_all_that_is_theirs(
    hands_in: HandsIn,
    submissions: Submissions,
    engine: sa.Engine,
    database: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(quota, "MOST_VERSIONS", 2)
    made = [hands_in("ann", AKQ) for _ in range(4)]
    submissions.log(1, "build", "javac")
    submissions.note_stderr(1, "m-1", 1.0, "oops")
    submissions.use("ann", 2, None, "ann", 9.0)
    assert submissions.make_room("ben") == ()

    assert submissions.make_room("ann") == (1, 3)
    assert [one.version for one in submissions.of("ann")] == [4, 2]
    assert made[0].program not in Programs(engine)
    assert made[1].program in Programs(engine)
    assert submissions.logs(1) == {}
    assert submissions.stderr("ann") == ()
    assert rows(database, "SELECT count(*) FROM program_parts") == [(2,)]
    assert submissions.make_room("ann") == ()
    assert hands_in("ann", AKQ).version == 5


def test_what_is_needed_stays_whatever_the_quota(
    hands_in: HandsIn, submissions: Submissions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota, "MOST_STORED", 1)
    hands_in("ann", AKQ, GIN)  # in play in gin rummy
    hands_in("ann", AKQ)  # in the plan of a competition
    hands_in("ann")  # waits
    hands_in("ann", AKQ)  # neither
    hands_in("ann", AKQ)  # the latest version
    submissions.use("ann", 1, AKQ, "ann", 9.0)
    submissions.refused(hands_in("ann").number, "no", 9.0)  # neither
    submissions.refused(hands_in("ann").number, "no", 9.0)  # the latest of all

    assert submissions.make_room("ann", in_use=[2]) == (4, 6)
    assert [one.number for one in submissions.of("ann")] == [7, 5, 3, 2, 1]


def test_a_program_of_two_owners_stays_while_one_of_them_needs_it(
    hands_in: HandsIn, submissions: Submissions, engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota, "MOST_VERSIONS", 1)
    for owner in ("ann", "ben"):
        hands_in(owner, AKQ, data=b"a starter")
        hands_in(owner, AKQ)
    assert submissions.make_room("ann") == (1,)
    assert read_program_bytes(engine, hashed_program(b"a starter")) == b"a starter"

    assert submissions.make_room("ben") == (3,)
    assert hashed_program(b"a starter") not in Programs(engine)


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
    assert (submissions.logs(1), submissions.revision()) == ({}, 0)
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
    assert Submissions(engine).revision() == 2
    engine.dispose()
