"""What is answered to owners and instructors, and that nobody hears of others' programs (J8)."""

from __future__ import annotations

import asyncio
import io
import threading
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from arena.sandbox.build import LOG_BYTES
from arena.storage.submissions import MOST_STDERR, STDERR_BYTES, Submission
from arena.submissions.requests import SubmissionRequests
from arena.submissions.socket import _BUFFER_BYTES
from arena.submissions.uploads import Upload
from protocol.errors import UsageError
from protocol.messages import Refused
from protocol.submitting import (
    Compare,
    Comparing,
    Disable,
    Download,
    Follow,
    FromSubmitter,
    GetLog,
    GetStarter,
    ListSubmissions,
    LogText,
    Piece,
    Progressing,
    Rebuild,
    Send,
    StarterFiles,
    SubmissionList,
    Submit,
    Use,
    encode_to_submitter,
)
from tests.support.submitting import (
    FakeSubmitterConnection,
    RunningSubmissions,
    SubmitterSurroundings,
    strategy,
)

NASH = strategy("ace_king_queen")


@pytest.fixture
async def arena(tmp_path: Path) -> AsyncIterator[SubmitterSurroundings]:
    async with RunningSubmissions(tmp_path / "a.db", tmp_path / "work") as running:
        arena = SubmitterSurroundings(running)
        yield arena
        await arena.sockets.close()


async def accepted(owner: FakeSubmitterConnection, data: bytes = NASH) -> int:
    """Hand a program in; its number once it is a version."""
    number = await owner.hands_in(data)
    await owner.hears(Progressing, lambda said: said.version is not None)
    return number


async def test_an_owner_lists_its_own_and_an_instructor_all(arena: SubmitterSurroundings) -> None:
    ann, bob, eva = arena.enters("ann"), arena.enters("bob"), arena.enters("Eva")
    await accepted(ann)
    await accepted(bob)

    own = await ann.says(ListSubmissions()).hears(SubmissionList)
    refused = await ann.says(ListSubmissions("bob")).hears(Refused)
    all_ = await eva.says(ListSubmissions()).hears(SubmissionList)
    his = await eva.says(ListSubmissions("bob")).hears(SubmissionList)

    assert [(entry.owner, entry.version, entry.in_play) for entry in own.entries] == [
        ("ann", 1, ("ace_king_queen",))
    ]
    assert [row.owner for row in own.in_play] == ["ann"]
    assert refused.text == "expected an instructor's token"
    assert [entry.owner for entry in all_.entries] == ["bob", "ann"]
    assert [entry.owner for entry in his.entries] == [row.owner for row in his.in_play] == ["bob"]


@pytest.mark.parametrize(
    "message",
    [Follow(1), GetLog(1), Download(1), Disable(1), Rebuild(1)],
    ids=lambda message: type(message).__name__,
)
async def test_of_others_submissions_an_owner_hears_what_it_hears_of_none(
    arena: SubmitterSurroundings, message: FromSubmitter
) -> None:
    await accepted(arena.enters("ann"))
    bob = arena.enters("bob")

    theirs = await bob.says(message).hears(Refused)
    arena.running.service.submissions.disable(1, None, "Eva")
    none = await bob.says(type(message)(submission=2)).hears(Refused)  # type: ignore[call-arg]

    assert theirs.text.replace("1", "2") == none.text


async def test_who_hands_in_hears_what_was_decided_before_it_could_follow(
    arena: SubmitterSurroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = arena.running.service
    receive = service.receive

    async def slow(upload: Upload) -> Submission:
        return await arena.running.decided(await receive(upload))

    monkeypatch.setattr(service, "receive", slow)
    ann = arena.enters("ann").says(Submit("bot.py", len(NASH)))
    await ann.hears(Send)
    ann.says(Piece(NASH))

    assert (await ann.hears(Progressing)).version == 1


async def test_others_versions_cannot_be_used(arena: SubmitterSurroundings) -> None:
    await accepted(arena.enters("ann"))

    refused = await arena.enters("bob").says(Use(1)).hears(Refused)

    assert refused.text == "expected a version of bob, got v1"


async def test_others_progress_is_not_heard(arena: SubmitterSurroundings) -> None:
    ann, bob = arena.enters("ann"), arena.enters("bob")

    await accepted(ann)
    await bob.says(ListSubmissions()).hears(SubmissionList)

    assert bob.heard == []


async def test_the_log_has_the_steps_and_the_stderr_of_matches(
    arena: SubmitterSurroundings,
) -> None:
    ann = arena.enters("ann")
    number = await accepted(ann)
    await arena.running.service._note_stderr(number, "akq-1", 1.5, "oops")

    log = await ann.says(GetLog(number)).hears(LogText)

    assert log.check.startswith(" 1 starts ok")
    assert [(line.match, line.version, line.text) for line in log.stderr] == [("akq-1", 1, "oops")]


async def test_the_longest_log_can_be_sent(arena: SubmitterSurroundings) -> None:
    ann = arena.enters("ann")
    number = await accepted(ann)
    submissions = arena.running.service.submissions
    for match in range(MOST_STDERR):
        submissions.note_stderr(number, f"akq-{match}", 1.0, "\x01\n\\\x1b" * STDERR_BYTES)
    submissions.log(number, "build", "\x00" * LOG_BYTES)

    log = await ann.says(GetLog(number)).hears(LogText)

    assert {len(line.text) for line in log.stderr} == {STDERR_BYTES}
    assert set(log.stderr[0].text) == {"?", "\n", "\\"}
    assert len(encode_to_submitter(log)) < 3 * 1024 * 1024 < _BUFFER_BYTES


async def test_what_is_decided_is_followed_to_its_end_at_once(arena: SubmitterSurroundings) -> None:
    number = await accepted(arena.enters("ann"))

    said = await arena.enters("ann").says(Follow(number)).hears(Progressing)

    assert (said.state, said.version) == ("accepted", 1)


async def test_two_connections_of_an_owner_hear_of_a_submission(
    arena: SubmitterSurroundings,
) -> None:
    phone, laptop = arena.enters("ann"), arena.enters("ann")
    number = await laptop.hands_in(NASH)
    laptop.leaves()

    done = await phone.says(Follow(number)).hears(Progressing, lambda said: said.state[0] == "a")

    assert done.version == 1


async def test_an_earlier_version_comes_into_play_again(arena: SubmitterSurroundings) -> None:
    ann = arena.enters("ann")
    await accepted(ann)
    await accepted(ann, NASH + b"\n")

    answer = await ann.says(Use(1, "akq")).hears(SubmissionList)
    refused = await ann.says(Use(1, "blackjack")).hears(Refused)

    assert answer.text == "v1 is in play in ace_king_queen"
    assert [(row.version, row.who) for row in answer.in_play] == [(1, "ann")]
    assert "a game that v1 plays" in refused.text


async def test_an_instructor_has_no_versions(arena: SubmitterSurroundings) -> None:
    refused = await arena.enters("Eva").says(Use(1)).hears(Refused)

    assert "expected a student's token" in refused.text


@pytest.mark.parametrize("who", ["ann", "Eva"])
async def test_a_program_can_be_downloaded_as_a_zip(arena: SubmitterSurroundings, who: str) -> None:
    number = await accepted(arena.enters("ann"), NASH + b"# more\n" * 20_000)
    reader = arena.enters(who)

    reader.says(Download(number))
    data = b""
    while piece := (await reader.hears(Piece)).data:
        data += piece

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.read("bot.py").startswith(NASH)


async def test_a_download_waits_for_its_reader(arena: SubmitterSurroundings) -> None:
    ann = arena.enters("ann")
    number = await accepted(ann)
    ann.is_behind = True
    ann.says(Download(number))
    await accepted(arena.enters("bob"))
    before = [one for one in ann.heard if isinstance(one, Piece)]

    ann.is_behind = False
    arena.sockets.drained(ann)

    assert before == []
    assert (await ann.hears(Piece)).data


async def test_a_download_is_not_packed_for_who_is_gone(
    arena: SubmitterSurroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = await accepted(arena.enters("ann"))
    has_begun, goes_on = asyncio.Event(), threading.Event()
    loop, packed = asyncio.get_running_loop(), list[str]()

    def zip_slowly(_: SubmissionRequests, sha256: str, __: object) -> None:
        packed.append(sha256)
        loop.call_soon_threadsafe(has_begun.set)
        goes_on.wait(60)

    monkeypatch.setattr(SubmissionRequests, "_zip", zip_slowly)
    first = arena.enters("ann").says(Download(number))
    await has_begun.wait()
    gone, last = (arena.enters("ann").says(Download(number)) for _ in range(2))
    gone.leaves()
    goes_on.set()
    await first.hears(Piece)
    await last.hears(Piece)

    assert len(packed) == 2


async def test_a_download_ends_with_its_reader(arena: SubmitterSurroundings) -> None:
    ann = arena.enters("ann")
    number = await accepted(ann)
    ann.is_behind = True
    ann.says(Download(number))
    await accepted(arena.enters("bob"))

    ann.leaves()
    await arena.sockets.close()

    assert not any(isinstance(one, Piece) for one in ann.heard)


async def test_an_instructor_disables_and_lets_back(arena: SubmitterSurroundings) -> None:
    ann, eva = arena.enters("ann"), arena.enters("Eva")
    number = await accepted(ann)

    out = await eva.says(Disable(number)).hears(SubmissionList)
    back = await eva.says(Disable(number, again=True)).hears(SubmissionList)

    assert out.text == f"submission {number} of ann is out of play"
    assert (out.entries[0].is_disabled, out.in_play) == (True, ())
    assert [row.owner for row in back.in_play] == ["ann"]


async def test_a_comparison_at_which_the_arena_fails_is_said_to_be_over(
    arena: SubmitterSurroundings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(*_: object) -> None:
        raise RuntimeError("no process left")

    monkeypatch.setattr(arena.running.service, "compare", fails)

    refused = await arena.enters("ann").says(Compare("ace_king_queen", 1, 2)).hears(Refused)

    assert refused.text == "the arena failed at this; its log says why"
    assert "no process left" in caplog.text


async def test_an_instructor_has_a_version_built_again(arena: SubmitterSurroundings) -> None:
    ann, eva = arena.enters("ann"), arena.enters("Eva")
    number = await accepted(ann)

    eva.says(Rebuild(number))
    answer = await eva.hears(SubmissionList)
    done = await eva.says(Follow(number)).hears(Progressing, lambda said: said.version is not None)

    assert answer.text == f"submission {number} of ann is built again"
    assert done.version == 1


async def test_a_starter_is_made_for_a_game_and_a_language(arena: SubmitterSurroundings) -> None:
    files = await arena.enters("ann").says(GetStarter("blackjack", "go")).hears(StarterFiles)

    assert files == StarterFiles({"bot.py": "blackjack go"}, "bot.py")


async def test_two_versions_are_compared_to_the_last_sentence(arena: SubmitterSurroundings) -> None:
    ann = arena.enters("ann")
    await accepted(ann)
    await accepted(ann, strategy("ace_king_queen", "blackjack"))

    ann.says(Compare("ace_king_queen", 1, 2), ListSubmissions())
    last = await ann.hears(Comparing, lambda said: said.is_over)

    assert last.text == "v1 is better than v2"


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (Compare("blackjack", 1, 2), "expected a version of yours that plays blackjack, got v1"),
        (Compare("ace_king_queen", 2, 3), "a version of yours that plays ace_king_queen, got v3"),
        (Compare("ace_king_queen", 2, 2), "expected two versions to compare, got one twice"),
        (Compare("blackjack", 2, 3), "the comparison has failed: no cards"),
    ],
)
async def test_what_cannot_be_compared_is_refused(
    arena: SubmitterSurroundings, message: Compare, why: str
) -> None:
    ann = arena.enters("ann")
    await accepted(ann)
    await accepted(ann, strategy("ace_king_queen", "blackjack"))
    if "no cards" in why:
        await accepted(ann, strategy("blackjack"))

    assert why in (await ann.says(message).hears(Refused)).text


async def test_an_owner_compares_so_often_a_day_and_one_after_another(
    arena: SubmitterSurroundings,
) -> None:
    ann = arena.enters("ann")
    await accepted(ann)
    await accepted(ann, NASH + b"\n")
    asked = Compare("ace_king_queen", 1, 2)

    refused = await ann.says(asked, asked).hears(Refused)
    await ann.hears(Comparing, lambda said: said.is_over)
    for _ in range(4):
        other = arena.enters("ann").says(asked)
        await other.hears(Comparing, lambda said: said.is_over)
    enough = await arena.enters("ann").says(asked).hears(Refused)

    assert refused.text == "another comparison of yours is played; wait for its end"
    assert enough.text == "expected at most 5 comparisons a day; try tomorrow"


async def test_one_comparison_is_played_at_a_time(arena: SubmitterSurroundings) -> None:
    comparisons = arena.running.service._comparisons
    turn = asyncio.Event()
    comparisons._queue.append(turn)
    ann = arena.enters("ann")
    await accepted(ann)
    await accepted(ann, NASH + b"\n")

    waits = await ann.says(Compare("ace_king_queen", 1, 2)).hears(Comparing)
    comparisons._queue.remove(turn)
    comparisons._queue[0].set()

    assert waits.position == 1
    assert (await ann.hears(Comparing, lambda said: said.is_over)).position is None


async def test_a_comparison_ends_with_its_connection(arena: SubmitterSurroundings) -> None:
    comparisons = arena.running.service._comparisons
    comparisons._queue.append(asyncio.Event())
    ann = arena.enters("ann")
    await accepted(ann)
    await accepted(ann, NASH + b"\n")
    await ann.says(Compare("ace_king_queen", 1, 2)).hears(Comparing)
    [task] = arena.requests._comparing.values()

    ann.leaves()
    await asyncio.wait([task])

    assert len(comparisons._queue) == 1


async def test_comparisons_are_for_owners(arena: SubmitterSurroundings) -> None:
    refused = await arena.enters("Eva").says(Compare("blackjack", 1, 2)).hears(Refused)

    assert refused.code == "submit"


async def test_an_error_of_a_request_ends_only_that(
    arena: SubmitterSurroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_starter(game: str, language: str) -> StarterFiles:
        raise UsageError(f"unknown game {game!r}")

    monkeypatch.setattr(arena.requests, "_starter", no_starter)
    ann = arena.enters("ann").says(GetStarter("chess", "go"), ListSubmissions())

    assert (await ann.hears(Refused)).text == "unknown game 'chess'"
    assert (await ann.hears(SubmissionList)).entries == ()
