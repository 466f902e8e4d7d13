"""What an arena says of the programs of bots, and the parts of them that it serves."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from arena.formats.spec import RelaunchSpec
from arena.hosts.messages import Bundle, HouseBot, SeatProgram, Source
from arena.hosts.seat_programs import PART_BYTES, SeatPrograms
from arena.sandbox import bundle
from arena.sandbox.bundle import bundle_key
from arena.submissions import service
from arena.submissions.service import SubmissionService
from protocol.errors import UsageError
from tests.support.submitted_programs import read_program_bytes
from tests.support.submitting import RunningSubmissions, strategy

GAME = "ace_king_queen"
NAMES = ("rex", "ann", "bob", "eve")


class FakeLaunches:
    """Bots that were launched in `course`, as `BotSupervisor` knows them."""

    def __init__(self, course: Path) -> None:
        self.course = course
        self.specs: dict[str, RelaunchSpec] = {}

    def launch(self, name: str, *words: str, stdio: bool = False) -> None:
        folder = str(self.course)
        self.specs[name] = RelaunchSpec(name=name, words=words, stdio=stdio, folder=folder)

    def __call__(self, names: Sequence[str]) -> tuple[RelaunchSpec, ...]:
        return tuple(self.specs[name] for name in names if name in self.specs)


@pytest.fixture
def launches(tmp_path: Path) -> FakeLaunches:
    launches = FakeLaunches((tmp_path / "course").resolve())
    (launches.course / "ann").mkdir(parents=True)
    (launches.course / "ann/bot.py").write_text("print('hello')")
    (launches.course / "arena.db").write_text("results")
    launches.launch("ann", "python3", "ann/bot.py")
    launches.specs["rex"] = RelaunchSpec(name="rex", house="nash")
    return launches


def programs_of(
    launches: FakeLaunches, submissions: SubmissionService | None = None, most_bytes: int = 1 << 20
) -> SeatPrograms:
    cache, hidden = launches.course.parent / "cache", [launches.course / "arena.db"]
    return SeatPrograms(launches, submissions, cache, hidden, most_bytes)


@pytest.fixture
def programs(launches: FakeLaunches) -> SeatPrograms:
    return programs_of(launches)


async def bundle_of(programs: SeatPrograms, name: str, game: str = GAME) -> Bundle:
    found = await programs.seat_program(name, None, game)
    assert isinstance(found, Bundle)
    return found


async def tar_of(programs: SeatPrograms, program: SeatProgram) -> bytes:
    tar = b""
    while part := await programs.part(program.key, len(tar)):
        assert len(part) <= PART_BYTES
        tar += part
    return tar


# ---- Launched bots


async def test_a_launched_bot_is_a_house_bot_or_a_bundle(programs: SeatPrograms) -> None:
    ann = await bundle_of(programs, "ann")

    assert await programs.seat_program("rex", None, GAME) == HouseBot("nash")
    assert ann.words[1:] == ("ann/bot.py",)
    tar = await tar_of(programs, ann)
    assert len(tar) == ann.size
    assert bundle_key(ann.words, ann.stdio, GAME, hashlib.sha256(tar).hexdigest()) == ann.key


async def test_a_part_begins_anywhere_and_is_empty_behind_the_end(launches: FakeLaunches) -> None:
    (launches.course / "ann/data").write_bytes(bytes(range(256)) * 4096)
    programs = programs_of(launches)
    ann = await bundle_of(programs, "ann")
    tar = await tar_of(programs, ann)

    assert await programs.part(ann.key, 777) == tar[777 : 777 + PART_BYTES]
    assert await programs.part(ann.key, ann.size - 1) == tar[-1:]
    assert await programs.part(ann.key, ann.size) == b""


async def test_files_of_the_arena_are_never_served(launches: FakeLaunches) -> None:
    launches.launch("ann", "python3", "ann/bot.py", ".", "arena.db", str(launches.course))
    programs = programs_of(launches)
    tar = await tar_of(programs, await bundle_of(programs, "ann"))

    assert b"hello" in tar
    assert b"results" not in tar


async def test_hosts_run_what_was_there(launches: FakeLaunches, programs: SeatPrograms) -> None:
    first = await bundle_of(programs, "ann")
    (launches.course / "ann/bot.py").write_text("print('bye')")

    assert await bundle_of(programs, "ann") == first
    launches.launch("ann", "python3", "ann/bot.py")
    again = await bundle_of(programs, "ann")
    assert again.key != first.key
    # Hosts that were told of the earlier one before still fetch it.
    assert b"hello" in await tar_of(programs, first)
    assert b"bye" in await tar_of(programs, again)


async def test_what_was_announced_is_served(launches: FakeLaunches, programs: SeatPrograms) -> None:
    ann = await bundle_of(programs, "ann")
    shutil.rmtree(launches.course.parent / "cache")
    (launches.course.parent / "cache").mkdir()

    assert b"hello" in await tar_of(programs, ann)
    assert await bundle_of(programs, "ann") == ann
    launches.specs.clear()
    assert b"hello" in await tar_of(programs_of(launches), ann)


async def test_what_was_not_read_makes_room_but_not_what_runs(launches: FakeLaunches) -> None:
    programs = programs_of(launches, most_bytes=0)
    old = await bundle_of(programs, "ann")
    launches.launch("bob", "python3", "ann/bot.py", "--bob")
    bob = await bundle_of(programs, "bob")
    launches.launch("ann", "python3", "ann/bot.py", "--new")
    new = await bundle_of(programs, "ann")

    assert await programs.part(bob.key, 0)
    assert await programs.part(new.key, 0)
    with pytest.raises(UsageError, match="expected a program of this arena"):
        await programs.part(old.key, 0)


async def test_no_partial_bundle(launches: FakeLaunches, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = launches.course.parent / "cache"
    (cache / ".killed").mkdir(parents=True)
    (cache / ".killed/program.tar").write_bytes(b"half")
    monkeypatch.setattr(bundle, "MOST_BUNDLED", 1)

    with pytest.raises(UsageError, match="expected at most"):
        await bundle_of(programs_of(launches), "ann")
    assert [*cache.iterdir()] == []


# ---- What cannot be sent


async def test_who_is_not_portable_is_known(launches: FakeLaunches, programs: SeatPrograms) -> None:
    launches.launch("bob", "python3", sys.executable)
    (launches.course / "ann/model").symlink_to("../../model")

    assert [programs.is_portable(name, GAME) for name in NAMES] == [True, True, False, False]
    for name, why in (
        ("ann", r"^ann: expected links inside the bot's folder"),
        ("bob", r"^bob: .*other machines do not have it"),
        ("eve", r"^eve: expected a bot that was launched here"),
    ):
        with pytest.raises(UsageError, match=why):
            await programs.seat_program(name, None, GAME)
    assert [programs.is_portable(name, GAME) for name in NAMES] == [True, False, False, False]
    (launches.course / "ann/model").unlink()
    launches.launch("ann", "python3", "ann/bot.py")
    assert programs.is_portable("ann", GAME), "it is looked at again"
    assert (await bundle_of(programs, "ann")).size


@pytest.mark.parametrize(
    ("key", "offset"),
    [
        *((key, 0) for key in ("../arena", "", "A" * 64, "0" * 63, "0" * 64 + "\n")),
        *(("0" * 64, offset) for offset in (-1, 1 << 70)),
    ],
)
async def test_keys_and_offsets_name_parts(programs: SeatPrograms, key: str, offset: int) -> None:
    with pytest.raises(UsageError, match="expected a program and an offset"):
        await programs.part(key, offset)


# ---- Submissions


@pytest.fixture
async def submissions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[RunningSubmissions]:
    monkeypatch.setattr(service, "installed", tuple)  # it tries all compilers
    async with RunningSubmissions(tmp_path / "a.db", tmp_path / "work") as running:
        yield running


async def test_a_submitted_program(launches: FakeLaunches, submissions: RunningSubmissions) -> None:
    one = await submissions.decided(await submissions.hand_in("ann", strategy(GAME)))
    programs = programs_of(launches, submissions.service)
    ann = await programs.seat_program("ann", one.number, GAME)

    assert ann == Source(one.program, one.size, "python")
    stored = read_program_bytes(submissions.store.engine, one.program)
    assert await tar_of(programs, ann) == stored
    # An arena that starts again knows it by its key.
    assert await tar_of(programs_of(launches, submissions.service), ann) == stored


async def test_submission_eviction(launches: FakeLaunches, submissions: RunningSubmissions) -> None:
    found: list[Source] = []
    programs = programs_of(launches, submissions.service, most_bytes=0)
    for owner, text in (("ann", "1"), ("bob", "2")):
        one = await submissions.decided(await submissions.hand_in(owner, strategy(GAME, text)))
        program = await programs.seat_program(owner, one.number, GAME)
        assert isinstance(program, Source)
        await tar_of(programs, program)
        found.append(program)

    cached = {path.name for path in (launches.course.parent / "cache").iterdir()}
    assert cached == {found[1].key}
    assert len(await tar_of(programs, found[0])) == found[0].size


async def test_what_is_no_program(launches: FakeLaunches, submissions: RunningSubmissions) -> None:
    one = await submissions.decided(await submissions.hand_in("ann", strategy("nothing")))
    programs = programs_of(launches, submissions.service)

    for which, number, why in (
        (programs, one.number, "ann: expected an accepted submission"),
        (programs, 99, "ann: "),
        (programs_of(launches), 1, "takes no submissions"),
    ):
        with pytest.raises(UsageError, match=why):
            await which.seat_program("ann", number, GAME)
    with pytest.raises(UsageError, match="expected a program that is in"):
        await programs.part("0" * 64, 0)
