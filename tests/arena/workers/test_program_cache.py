"""What a worker fetches, refuses, builds and keeps."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from arena.engine.verdict import Finding
from arena.sandbox.archive import canonical
from arena.sandbox.build_cache import BuildFailed
from arena.sandbox.bundle import pack_bundle
from arena.sandbox.command import Program, bot_command
from arena.sandbox.launcher import Launcher
from arena.workers import program_cache
from arena.workers.bus import BusDown
from arena.workers.messages import Bundle, HouseBot, SeatProgram, Source
from arena.workers.program_cache import NotFetched, ProgramCache
from protocol.errors import UsageError
from protocol.messages import Limits
from tests.support.submitting import bot_zip, strategy

GAME = "ace_king_queen"
PART = 1000


class FakeProgramServer:
    """Serves one tar in parts; `faults` are what happens first instead, one after the other."""

    def __init__(self, tar: bytes, *faults: Exception | bytes) -> None:
        self.tar = tar
        self.faults = [*faults]
        self.asked: list[int] = []
        self.was_asked = asyncio.Event()
        self.opens = asyncio.Event()
        self.opens.set()

    async def __call__(self, offset: int) -> bytes:
        self.asked.append(offset)
        self.was_asked.set()
        await self.opens.wait()
        if self.faults:
            fault = self.faults.pop(0)
            if isinstance(fault, Exception):
                raise fault
            return fault
        return self.tar[offset : offset + PART]


class CacheUser:
    """A cache that fetches and starts again quickly."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = self.opened()

    def opened(self, patience_s: float = 5.0, most_bytes: int = 1 << 30) -> ProgramCache:
        return ProgramCache(
            self.folder, pause_s=0.001, patience_s=patience_s, most_bytes=most_bytes
        )

    async def get(
        self, program: SeatProgram, fetch: Callable[[int], Awaitable[bytes]], name: str = "ann"
    ) -> Program:
        return await self.cache.program(program, GAME, name, fetch)

    @property
    def kept(self) -> set[str]:
        return {path.name for path in (self.folder / "1/programs").iterdir()}

    @property
    def is_clean(self) -> bool:
        """Whether nothing is half fetched or half made."""
        is_whole = not any(name.startswith(".") for name in self.kept)
        return is_whole and not [*(self.folder / "1/fetched").iterdir()]


@pytest.fixture
async def user(tmp_path: Path) -> CacheUser:
    return CacheUser(tmp_path / "cache")


def source_of(sent: bytes, name: str) -> tuple[Source, bytes]:
    tar = io.BytesIO()
    made = canonical(name, io.BytesIO(sent), tar)
    return Source(made.sha256, made.size, "python"), tar.getvalue()


def bundle_in(folder: Path, *words: str, stdio: bool = True) -> tuple[Bundle, bytes]:
    tar = io.BytesIO()
    packed = pack_bundle(Program(words, stdio=stdio, folder=folder.resolve()), GAME, (), tar)
    command = packed.command
    return Bundle(
        packed.key, packed.size, command.words, stdio, command.needs, command.is_native
    ), tar.getvalue()


@pytest.fixture
def ann(tmp_path: Path) -> tuple[Bundle, bytes]:
    """A bot that says what it is shown."""
    folder = tmp_path / "course"
    (folder / "ann").mkdir(parents=True)
    (folder / "ann/bot.sh").write_text("ls -A . ann; cat ann/data\n")
    (folder / "ann/data").write_text("0123456789" * 1000)
    (folder / "ann/.more").write_text("x")
    return bundle_in(folder, "sh", "ann/bot.sh")


# ---- Fetch


async def test_a_house_bot_is_here(user: CacheUser) -> None:
    program = await user.get(HouseBot("nash"), FakeProgramServer(b""), "rex")

    assert program == Program(tuple(bot_command((GAME, "nash"), name="rex")))


async def test_a_bundle_is_fetched_once_and_found_after_a_restart(
    user: CacheUser, ann: tuple[Bundle, bytes]
) -> None:
    bundle, tar = ann
    arena = FakeProgramServer(tar)
    first = await user.get(bundle, arena)

    assert arena.asked == [*range(0, len(tar), PART)]
    assert (first.words, first.stdio, first.sealed) == (("sh", "ann/bot.sh"), True, True)
    assert first.folder is not None
    assert (first.folder / "ann/data").read_text() == "0123456789" * 1000
    await user.cache.close()
    user.cache = user.opened()
    assert await user.get(bundle, FakeProgramServer(b"")) == first


async def test_what_does_not_arrive_is_asked_for_again(
    user: CacheUser, ann: tuple[Bundle, bytes]
) -> None:
    bundle, tar = ann
    arena = FakeProgramServer(tar, BusDown("away"), TimeoutError(), b"", b"x" * (len(tar) + 1))

    await user.get(bundle, arena)
    assert arena.asked[:6] == [0, 0, 0, 0, 0, PART]


async def test_patience_ends_with_a_line_that_says_why(
    user: CacheUser, ann: tuple[Bundle, bytes]
) -> None:
    bundle, tar = ann
    await user.cache.close()
    user.cache = user.opened(patience_s=0.0)

    with pytest.raises(NotFetched, match=r"did not come within 0 s: nobody answers$"):
        await user.get(bundle, FakeProgramServer(tar, BusDown("nobody answers")))
    assert user.is_clean
    assert await user.get(bundle, FakeProgramServer(tar))


async def test_what_the_arena_refuses_is_not_asked_for_again(
    user: CacheUser, ann: tuple[Bundle, bytes]
) -> None:
    bundle, tar = ann
    arena = FakeProgramServer(tar, UsageError("that attempt is not yours"))

    with pytest.raises(NotFetched, match=r"^that attempt is not yours$"):
        await user.get(bundle, arena)
    assert arena.asked == [0]


async def test_another_program_is_refused_in_a_line_and_not_kept(
    user: CacheUser, ann: tuple[Bundle, bytes]
) -> None:
    bundle, tar = ann
    other = tar.replace(b"01234", b"01334")
    source, source_tar = source_of(strategy(GAME), "bot.py")

    for wanted, sent in ((bundle, other), (source, source_tar[:-1] + b"x")):
        with pytest.raises(NotFetched, match=rf"^expected the program {wanted.key}, got one"):
            await user.get(wanted, FakeProgramServer(sent))
        assert user.kept == set()
        assert user.is_clean


async def test_words_that_are_not_the_bundle_s_are_refused(
    user: CacheUser, ann: tuple[Bundle, bytes]
) -> None:
    bundle, tar = ann
    altered = Bundle(bundle.key, bundle.size, ("sh", "ann/data"), True, "sh", False)

    with pytest.raises(NotFetched, match="expected the program"):
        await user.get(altered, FakeProgramServer(tar))


@pytest.mark.parametrize(
    "wanted", [Source("../../out", 10, "python"), Source("0" * 64, 1 << 40, "python")]
)
async def test_what_no_arena_sends_is_not_fetched(user: CacheUser, wanted: Source) -> None:
    arena = FakeProgramServer(b"x" * 10)

    with pytest.raises(NotFetched):
        await user.get(wanted, arena)
    assert arena.asked == []


# ---- Several at once


async def test_two_attempts_fetch_a_program_once(
    user: CacheUser, ann: tuple[Bundle, bytes]
) -> None:
    bundle, tar = ann
    arena = FakeProgramServer(tar)
    programs = await asyncio.gather(*(user.get(bundle, arena) for _ in range(5)))

    assert len(arena.asked) == len(set(arena.asked))
    assert len({program.folder for program in programs}) == 1


async def test_an_attempt_that_is_cancelled_takes_the_program_from_nobody(
    user: CacheUser, ann: tuple[Bundle, bytes]
) -> None:
    bundle, tar = ann
    arena = FakeProgramServer(tar)
    arena.opens.clear()
    first, second = (asyncio.create_task(user.get(bundle, arena)) for _ in range(2))
    await arena.was_asked.wait()
    first.cancel()
    await asyncio.wait([first])
    arena.opens.set()

    assert (await second).folder is not None
    assert arena.asked == [*range(0, len(tar), PART)]


async def test_an_attempt_fetches_by_itself_if_that_of_another_is_over(
    user: CacheUser, ann: tuple[Bundle, bytes]
) -> None:
    bundle, tar = ann
    over, mine = FakeProgramServer(tar, UsageError("that attempt is over")), FakeProgramServer(tar)
    over.opens.clear()
    first = asyncio.create_task(user.get(bundle, over))
    await over.was_asked.wait()
    second = asyncio.create_task(user.get(bundle, mine))
    await asyncio.sleep(0)
    over.opens.set()

    with pytest.raises(NotFetched, match="that attempt is over"):
        await first
    assert (await second).folder is not None
    assert mine.asked


async def test_closing_ends_what_is_fetched_and_leaves_nothing(
    user: CacheUser, ann: tuple[Bundle, bytes]
) -> None:
    bundle, tar = ann
    arena = FakeProgramServer(tar)
    arena.opens.clear()
    waits = asyncio.create_task(user.get(bundle, arena))
    await arena.was_asked.wait()
    await user.cache.close()

    with pytest.raises(asyncio.CancelledError):
        await waits
    assert user.is_clean


# ---- Build


async def test_a_submission_is_built_once(user: CacheUser) -> None:
    toml = 'build = "sh -c \'date +%N > made; chmod +x bot.sh\'"\nrun = "stdio: ./bot.sh"'
    sent = bot_zip(bot_toml=toml, bot_sh="#!/bin/sh\necho hello\n")
    source, tar = source_of(sent, "bot.zip")
    first, second = await asyncio.gather(
        *(user.get(source, FakeProgramServer(tar)) for _ in range(2))
    )
    again = await user.get(source, FakeProgramServer(b""))

    assert first == second == again
    assert first.folder is not None
    assert (first.words, first.stdio, first.sealed) == (("./bot.sh",), True, True)
    done = subprocess.run(first.words, cwd=first.folder, capture_output=True, check=True)
    assert done.stdout == b"hello\n"
    assert user.is_clean


async def test_a_python_strategy_is_started_by_our_client_here(user: CacheUser) -> None:
    source, tar = source_of(strategy(GAME), "bot.py")
    program = await user.get(source, FakeProgramServer(tar))

    assert program.words == tuple(bot_command(("bot.py",), name="bot"))
    assert program.script is not None
    assert program.folder is not None
    assert (program.folder / "bot.py").read_bytes() == strategy(GAME)


@pytest.mark.needs("g++")
async def test_a_compiled_program_is_built_and_runs(user: CacheUser) -> None:
    text = '#include <cstdio>\nint main() { puts("compiled here"); }\n'
    toml = 'build = "g++ -O0 -o mybot bot.cpp"\nrun = "stdio: ./mybot"'
    source, tar = source_of(bot_zip(bot_toml=toml, bot_cpp=text), "bot.zip")
    program = await user.get(source, FakeProgramServer(tar))

    done = subprocess.run(program.words, cwd=program.folder, capture_output=True, check=True)
    assert done.stdout == b"compiled here\n"


async def test_a_build_that_fails_says_why_and_is_not_tried_for_each_match(
    user: CacheUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    toml = 'build = "sh -c \'exit 3\'"\nrun = "stdio: ./mybot"'
    source, tar = source_of(bot_zip(bot_toml=toml, a_txt="x"), "bot.zip")
    arena = FakeProgramServer(tar)
    for _ in range(2):
        with pytest.raises(BuildFailed, match=r"^the build failed: sh ended with exit status 3$"):
            await user.get(source, arena)

    assert arena.asked == [*range(0, len(tar), PART)]
    assert (user.kept, user.is_clean) == (set(), True)
    monkeypatch.setattr(program_cache, "_FAILED_S", -1.0)
    user.cache._failed.clear()
    for _ in range(2):  # by then a compiler may be there
        with pytest.raises(BuildFailed):
            await user.get(source, arena)
    assert len(arena.asked) == 3 * len(range(0, len(tar), PART))


async def test_what_cannot_be_started_here_says_why(user: CacheUser) -> None:
    source, tar = source_of(bot_zip(bot_toml="run = 'nothing-like-it x'", a_txt="x"), "bot.zip")

    with pytest.raises(UsageError, match="expected a program on PATH or in its folder"):
        await user.get(source, FakeProgramServer(tar))


# ---- What stays


async def test_a_build_that_is_damaged_is_made_again(user: CacheUser) -> None:
    source, tar = source_of(strategy(GAME), "bot.py")
    await user.get(source, FakeProgramServer(tar))
    (user.folder / "1/programs" / source.key / "manifest.json").write_text("{")
    arena = FakeProgramServer(tar)

    assert (await user.get(source, arena)).folder is not None
    assert arena.asked


async def test_what_a_killed_worker_has_left_half_done_is_gone(
    user: CacheUser, ann: tuple[Bundle, bytes]
) -> None:
    bundle, tar = ann
    await user.get(bundle, FakeProgramServer(tar))
    await user.cache.close()
    (user.folder / "1/programs/.half").mkdir()
    (user.folder / "1/programs/.half/made").write_text("half")
    (user.folder / "1/fetched" / ("0" * 64)).write_bytes(b"half")
    user.cache = user.opened()

    assert user.kept == {bundle.key}
    assert user.is_clean


KILLED = """
import asyncio, sys
from pathlib import Path
from arena.workers.messages import Source
from arena.workers.program_cache import ProgramCache
async def fetch(offset):
    if offset:
        print("half", flush=True)
        await asyncio.Event().wait()
    return bytes(1000)
cache = ProgramCache(Path(sys.argv[1]))
async def main():
    await cache.program(Source("0" * 64, 2000, "python"), "", "ann", fetch)
asyncio.run(main())
"""


async def test_a_worker_that_is_killed_leaves_its_folder_clean_for_the_next(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "cache")], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert await asyncio.to_thread(process.stdout.readline) == b"half\n"
    process.kill()
    process.stdout.close()
    process.wait()
    fetched = tmp_path / "cache/1/fetched"
    assert [path.name for path in fetched.iterdir()] == ["0" * 64]
    user = CacheUser(tmp_path / "cache")

    assert user.kept == set()
    assert user.is_clean


async def test_after_a_power_cut_nothing_of_before_is_trusted(
    user: CacheUser, ann: tuple[Bundle, bytes]
) -> None:
    bundle, tar = ann
    await user.get(bundle, FakeProgramServer(tar))
    await user.cache.close()
    (user.folder / "1/boot").write_text("another start of this machine")
    user.cache = user.opened()

    assert user.kept == set()


async def test_workers_on_one_machine_share_no_folder(
    user: CacheUser, ann: tuple[Bundle, bytes]
) -> None:
    bundle, tar = ann
    other = user.opened()
    here = await user.get(bundle, FakeProgramServer(tar))
    there = await other.program(bundle, GAME, "ann", FakeProgramServer(tar))

    assert here.folder is not None
    assert there.folder is not None
    assert here.folder.parts[-3:-1] == ("1", "programs")
    assert there.folder.parts[-3:-1] == ("2", "programs")
    await user.cache.close()
    user.cache = user.opened()
    assert await user.get(bundle, FakeProgramServer(b"")) == here


async def test_the_least_recently_used_makes_room_but_not_what_runs(
    user: CacheUser, tmp_path: Path
) -> None:
    await user.cache.close()
    user.cache = user.opened(most_bytes=25_000)
    programs = []
    for name in "abc":
        (tmp_path / name).mkdir()
        (tmp_path / name / "data").write_bytes(name.encode() * 10_000)
        programs.append(bundle_in(tmp_path / name, "cat", "data"))
    (first, _), (second, _), (third, _) = programs
    user.cache.in_use = lambda: (first.key,)
    for at, (bundle, tar) in enumerate(programs[:2]):
        await user.get(bundle, FakeProgramServer(tar))
        os.utime(user.folder / "1/programs" / bundle.key, (at, at))
    await user.get(third, FakeProgramServer(programs[2][1]))

    assert user.kept == {first.key, third.key}
    assert second.key not in user.kept


async def test_a_program_larger_than_the_cache_is_played_all_the_same(
    user: CacheUser, ann: tuple[Bundle, bytes]
) -> None:
    bundle, tar = ann
    await user.cache.close()
    user.cache = user.opened(most_bytes=0)

    assert (await user.get(bundle, FakeProgramServer(tar))).folder is not None


async def test_a_disk_that_is_full_is_said_in_a_line(
    user: CacheUser, ann: tuple[Bundle, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle, tar = ann

    def full(tar: Path, folder: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(program_cache, "_unpack", full)
    with pytest.raises(NotFetched, match=r"^cannot write a program to .*No space left"):
        await user.get(bundle, FakeProgramServer(tar))
    assert user.is_clean


# ---- In the sandbox


async def test_a_bundle_sees_here_what_it_saw_there(
    user: CacheUser, ann: tuple[Bundle, bytes]
) -> None:
    bundle, tar = ann
    program = await user.get(bundle, FakeProgramServer(tar))
    ended = asyncio.get_running_loop().create_future()

    def end(_name: str, finding: Finding) -> None:
        ended.set_result(finding)

    launcher = Launcher(Limits(), [user.folder], end)
    try:
        bot = await launcher.start("ann", program)
        assert bot.stdin_fd is not None
        assert bot.stdout_fd is not None
        os.close(bot.stdin_fd)
        os.set_blocking(bot.stdout_fd, True)
        with os.fdopen(bot.stdout_fd, "rb") as stdout:
            said = await asyncio.to_thread(stdout.read)
        await ended
    finally:
        await launcher.close()

    assert said.decode().split() == [
        ".:", "ann", "ann:", ".more", "bot.sh", "data", "0123456789" * 1000
    ]  # fmt: skip
