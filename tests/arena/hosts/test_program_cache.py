"""What a host fetches, refuses, builds and keeps."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import TypeAlias
from unittest.mock import Mock

import pytest

from arena.games.names import process_name
from arena.games.verdict import Finding
from arena.hosts import program_cache
from arena.hosts.messages import Bundle, HouseBot, SeatProgram, Source
from arena.hosts.program_cache import NotFetched, ProgramCache
from arena.referee.timers import Timers
from arena.sandbox.archive import canonical
from arena.sandbox.build_cache import BuildFailed
from arena.sandbox.bundle import pack_bundle
from arena.sandbox.command import Program, bot_command, over_pipes
from arena.sandbox.launcher import Launcher
from arena.server.stdio import Pipe
from protocol.errors import ArenaError, UsageError
from protocol.messages import Limits
from tests.support.submitting import bot_zip, strategy

GAME = "ace_king_queen"
PART = 1000
Sent: TypeAlias = tuple[SeatProgram, bytes]
"""What a host wants, and the tar that an arena sends of it."""


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
    """A cache that can start again.

    Attributes:
        arena: the latest one that it has asked.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = self.opened()
        self.arena = FakeProgramServer(b"")

    def opened(self, most_bytes: int = 1 << 30) -> ProgramCache:
        return ProgramCache(self.folder, most_bytes=most_bytes)

    async def starts_again(self, most_bytes: int = 1 << 30) -> None:
        await self.cache.close()
        self.cache = self.opened(most_bytes)

    async def get(self, sent: Sent, *faults: Exception | bytes, name: str = "ann") -> Program:
        """Get a program of an arena that serves it, after these faults."""
        return await self.get_from(FakeProgramServer(sent[1], *faults), sent, name)

    async def get_from(self, arena: FakeProgramServer, sent: Sent, name: str = "ann") -> Program:
        self.arena = arena
        return await self.cache.program(sent[0], GAME, name, arena)

    async def find(self, sent: Sent) -> Program:
        """Get a program that is here: the arena serves nothing."""
        return await self.get((sent[0], b""))

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


def folder_of(program: Program) -> Path:
    assert program.folder is not None, "what was fetched has one"
    return program.folder


def offsets(sent: Sent) -> list[int]:
    """Where the parts of a program begin."""
    return [*range(0, len(sent[1]), PART)]


def output_of(program: Program) -> bytes:
    done = subprocess.run(program.words, cwd=program.folder, capture_output=True, check=True)
    return done.stdout


async def hello_of(program: Program) -> bytes:
    """The first message of a bot that is started where there is no network."""
    launcher = Launcher(Limits(), (), lambda name, finding: None)
    loop = asyncio.get_running_loop()
    hello, owner = loop.create_future(), Mock()
    owner.received = lambda wire, frame, encoding, arrived: hello.set_result(frame)
    try:
        pipes = (await launcher.start("rex", program)).pipes
        assert pipes is not None
        await Pipe.open(owner, Limits(), Timers(loop), "rex", pipes)
        frame: bytes = await hello
        return frame
    finally:
        await launcher.close()


def source_of(sent: bytes, name: str) -> Sent:
    tar = io.BytesIO()
    made = canonical(name, io.BytesIO(sent), tar)
    return Source(made.sha256, made.size, "python"), tar.getvalue()


def built_by(build: str, run: str = "stdio: ./mybot", **files: str) -> Sent:
    toml = f'build = "{build}"\nrun = "{run}"'
    return source_of(bot_zip(bot_toml=toml, **files), "bot.zip")


def bundle_in(folder: Path, *words: str, stdio: bool = True) -> tuple[Bundle, bytes]:
    tar = io.BytesIO()
    bundle = pack_bundle(Program(words, stdio=stdio, folder=folder.resolve()), GAME, (), tar)
    return bundle, tar.getvalue()


@pytest.fixture
def ann(tmp_path: Path) -> tuple[Bundle, bytes]:
    """A bot that says what it is shown."""
    folder = tmp_path / "course"
    (folder / "ann").mkdir(parents=True)
    (folder / "ann/bot.sh").write_text("ls -A . ann; cat ann/data\n")
    (folder / "ann/data").write_text("0123456789" * 1000)
    (folder / "ann/.more").write_text("x")
    return bundle_in(folder, "sh", "ann/bot.sh")


@pytest.fixture
def python() -> Sent:
    """A strategy in Python, as it was submitted."""
    return source_of(strategy(GAME), "bot.py")


# ---- Fetch


async def test_a_house_bot_is_here(user: CacheUser) -> None:
    program = await user.get((HouseBot("nash"), b""), name=process_name("rex", 2))

    assert program == over_pipes(Program(tuple(bot_command((GAME, "nash"), name="rex"))))
    assert b'"name":"rex"' in await hello_of(program)


async def test_a_launched_bot_that_speaks_websocket_says_hello_over_pipes(
    user: CacheUser, tmp_path: Path
) -> None:
    folder = tmp_path / "ann"
    folder.mkdir()
    tar = io.BytesIO()
    words = (sys.executable, "-m", "bots", GAME, "nash", "--no-session")
    bundle = pack_bundle(Program(words, folder=folder), GAME, (), tar)

    program = await user.get((bundle, tar.getvalue()))

    assert b'"type":"hello"' in await hello_of(program)


async def test_a_bundle_is_fetched_once_and_found_later(user: CacheUser, ann: Sent) -> None:
    first = await user.get(ann)

    assert user.arena.asked == offsets(ann)
    assert (first.words, first.stdio, first.sealed) == (("sh", "ann/bot.sh"), True, True)
    assert (folder_of(first) / "ann/data").read_text() == "0123456789" * 1000
    await user.starts_again()
    assert await user.find(ann) == first


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (ArenaError("the link to the arena was lost"), r"^the link to the arena was lost$"),
        (b"", r"^expected 1 to [\d,]+ bytes of a program, got 0$"),
        (b"x" * (1 << 20), r"^expected 1 to [\d,]+ bytes of a program, got 1,048,576$"),
        (None, r"^cannot write a program to .*No space left"),
    ],
    ids=["refused", "nothing", "too much", "the disk is full"],
)
async def test_what_fails_is_said_and_leaves_nothing(
    user: CacheUser,
    ann: Sent,
    monkeypatch: pytest.MonkeyPatch,
    fault: Exception | bytes | None,
    why: str,
) -> None:
    def full(tar: Path, folder: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        if fault is None:
            patch.setattr(program_cache, "_unpack", full)
        with pytest.raises(NotFetched, match=why):
            await user.get(ann, *([] if fault is None else [fault]))
    assert user.arena.asked == (offsets(ann) if fault is None else [0])
    assert user.is_clean
    assert await user.get(ann)


async def test_another_program_is_refused_and_not_kept(
    user: CacheUser, ann: tuple[Bundle, bytes], python: Sent
) -> None:
    bundle, tar = ann
    (source, its_tar), key = python, bundle.key
    other_words = Bundle(key, bundle.size, ("sh", "ann/data"), True, "sh", False)
    for sent in (
        (bundle, tar.replace(b"01234", b"01334")),
        (source, its_tar[:-1] + b"x"),
        (other_words, tar),
    ):
        with pytest.raises(NotFetched, match=rf"^expected the program {sent[0].key}, got one"):
            await user.get(sent)
        assert user.kept == set()
        assert user.is_clean


@pytest.mark.parametrize(
    "wanted", [Source("../../out", 10, "python"), Source("0" * 64, 1 << 40, "python")]
)
async def test_what_no_arena_sends_is_not_fetched(user: CacheUser, wanted: Source) -> None:
    with pytest.raises(NotFetched):
        await user.get((wanted, b"x" * 10))
    assert user.arena.asked == []


# ---- Several at once


class HeldServer(FakeProgramServer):
    """Answers once it is opened."""

    def __init__(self, tar: bytes, *faults: Exception | bytes) -> None:
        super().__init__(tar, *faults)
        self.opens.clear()


async def test_a_bot_that_is_given_up_takes_nothing_from_others(user: CacheUser, ann: Sent) -> None:
    arena = HeldServer(ann[1])
    first, second = (asyncio.create_task(user.get_from(arena, ann)) for _ in range(2))
    await arena.was_asked.wait()
    first.cancel()
    await asyncio.wait([first])
    arena.opens.set()

    assert (await second).folder is not None
    assert arena.asked == offsets(ann)


async def test_an_arena_is_asked_itself_if_the_link_to_another_is_lost(
    user: CacheUser, ann: Sent
) -> None:
    lost, mine = HeldServer(ann[1], ArenaError("it was lost")), FakeProgramServer(ann[1])
    first = asyncio.create_task(user.get_from(lost, ann))
    await lost.was_asked.wait()
    second = asyncio.create_task(user.get_from(mine, ann))
    await asyncio.sleep(0)
    lost.opens.set()

    with pytest.raises(NotFetched, match="it was lost"):
        await first
    assert (await second).folder is not None
    assert mine.asked


async def test_closing_ends_what_is_fetched_and_leaves_nothing(user: CacheUser, ann: Sent) -> None:
    arena = HeldServer(ann[1])
    waits = asyncio.create_task(user.get_from(arena, ann))
    await arena.was_asked.wait()
    await user.cache.close()

    with pytest.raises(asyncio.CancelledError):
        await waits
    assert user.is_clean


# ---- Build


async def test_a_submission_is_built_once(user: CacheUser) -> None:
    build = "sh -c 'date +%N > made; chmod +x bot.sh'"
    sent = built_by(build, "stdio: ./bot.sh", bot_sh="#!/bin/sh\necho hello\n")
    first, second = await asyncio.gather(user.get(sent), user.get(sent))

    assert first == second == await user.find(sent)
    assert (first.words, first.stdio, first.sealed) == (("./bot.sh",), True, True)
    assert output_of(first) == b"hello\n"
    assert user.is_clean


async def test_a_python_strategy_is_started_by_our_client(user: CacheUser, python: Sent) -> None:
    program = await user.get(python)

    assert program.words == tuple(bot_command(("bot.py",), name="bot"))
    assert program.script is not None
    assert (folder_of(program) / "bot.py").read_bytes() == strategy(GAME)


async def test_a_failed_build_says_why(user: CacheUser, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = built_by("sh -c 'exit 3'", a_txt="x")
    arena = FakeProgramServer(sent[1])
    why = r"^the build failed: sh ended with exit status 3$"
    for _ in range(2):
        with pytest.raises(BuildFailed, match=why):
            await user.get_from(arena, sent)

    assert arena.asked == offsets(sent)
    assert (user.kept, user.is_clean) == (set(), True)
    monkeypatch.setattr(program_cache, "_FAILED_S", -1.0)
    user.cache._failed.clear()
    for _ in range(2):  # by then a compiler may be there
        with pytest.raises(BuildFailed):
            await user.get_from(arena, sent)
    assert arena.asked == offsets(sent) * 3


async def test_what_cannot_be_started_here_says_why(user: CacheUser) -> None:
    sent = source_of(bot_zip(bot_toml="run = 'nothing-like-it x'", a_txt="x"), "bot.zip")

    with pytest.raises(UsageError, match="expected a program on PATH or in its folder"):
        await user.get(sent)


# ---- What stays


async def test_a_build_that_is_damaged_is_made_again(user: CacheUser, python: Sent) -> None:
    await user.get(python)
    (user.folder / "1/programs" / python[0].key / "manifest.json").write_text("{")

    assert (await user.get(python)).folder is not None
    assert user.arena.asked


@pytest.mark.parametrize("boot", ["", "another start of this machine"], ids=["killed", "power cut"])
async def test_what_a_host_finds_that_starts_again(user: CacheUser, ann: Sent, boot: str) -> None:
    """What is half done is gone; after a power cut nothing of before is trusted."""
    await user.get(ann)
    await user.cache.close()
    (user.folder / "1/programs/.half").mkdir()
    (user.folder / "1/programs/.half/made").write_text("half")
    (user.folder / "1/fetched" / ("0" * 64)).write_bytes(b"half")
    if boot:
        (user.folder / "1/boot").write_text(boot)
    user.cache = user.opened()

    assert user.kept == (set() if boot else {ann[0].key})
    assert user.is_clean


async def test_hosts_on_one_machine_share_no_folder(user: CacheUser, ann: Sent) -> None:
    here = await user.get(ann)
    there = await user.opened().program(ann[0], GAME, "ann", FakeProgramServer(ann[1]))

    assert folder_of(here).parts[-3:-1] == ("1", "programs")
    assert folder_of(there).parts[-3:-1] == ("2", "programs")
    await user.starts_again()
    assert await user.find(ann) == here


async def test_the_least_used_makes_room_but_not_what_runs(user: CacheUser, tmp_path: Path) -> None:
    await user.starts_again(most_bytes=25_000)
    programs = []
    for name in "abc":
        (tmp_path / name).mkdir()
        (tmp_path / name / "data").write_bytes(name.encode() * 10_000)
        programs.append(bundle_in(tmp_path / name, "cat", "data"))
    first, _, third = (bundle.key for bundle, _ in programs)
    user.cache.in_use = lambda: (first,)
    for at, sent in enumerate(programs):
        await user.get(sent)
        os.utime(user.folder / "1/programs" / sent[0].key, (at, at))

    assert user.kept == {first, third}


async def test_a_program_larger_than_the_cache_is_played(user: CacheUser, ann: Sent) -> None:
    await user.starts_again(most_bytes=0)

    assert (await user.get(ann)).folder is not None


# ---- In the sandbox


async def test_a_bundle_sees_here_what_it_saw_there(user: CacheUser, ann: Sent) -> None:
    program = await user.get(ann)
    ended = asyncio.get_running_loop().create_future()

    def end(_name: str, finding: Finding) -> None:
        ended.set_result(finding)

    launcher = Launcher(Limits(), [user.folder], end)
    try:
        bot = await launcher.start("ann", program)
        assert bot.pipes is not None
        os.close(bot.pipes.stdin_fd)
        os.set_blocking(bot.pipes.stdout_fd, True)
        with os.fdopen(bot.pipes.stdout_fd, "rb") as stdout:
            said = await asyncio.to_thread(stdout.read)
        await ended
    finally:
        await launcher.close()

    assert said.decode().split() == [
        ".:", "ann", "ann:", ".more", "bot.sh", "data", "0123456789" * 1000
    ]  # fmt: skip
