"""Caches the programs that a host has fetched from arenas, ready to be launched.

A program is fetched part by part into a file, and used only if its SHA-256 is the one that the
arena named. Then a bundle is unpacked, and a submission is built by the same code as at an arena.
Folders appear under their keys only when complete. A starting host removes what a killed one left
behind. The cache survives restarts.

Hosts on one machine may share the folder: each uses a folder of its own in it.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import re
import shutil
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TypeAlias

from filelock import BaseFileLock, FileLock, Timeout

from arena.games.names import public_name
from arena.hosts.messages import Bundle, HouseBot, SeatProgram, Source
from arena.sandbox.build_cache import BuildCache, BuildFailed
from arena.sandbox.bundle import MOST_BUNDLED, bundle_key, bundled_program, unpack_bundle
from arena.sandbox.command import Program, bot_command, over_pipes, sealed_program
from arena.sandbox.folder_cache import FolderCache
from arena.sandbox.workdir import remove
from arena.server.background import BackgroundTasks, ignore_error
from protocol.errors import ArenaError, UsageError
from protocol.vocabulary import shorten

__all__ = ["Fetch", "NotFetched", "ProgramCache"]

Fetch: TypeAlias = Callable[[int], Awaitable[bytes]]
"""Asks an arena for bytes of a program from an offset on; raises `ArenaError`."""

_MOST_BYTES = 8 << 30
# The arena has built it within its own limits, but this machine may be slower.
_BUILD_S = 900.0
_BUILD_MIB = 2_048
# A failed build is not tried again for each match, but later: a toolchain may be installed.
_FAILED_S = 300.0
_KEY = re.compile(r"[0-9a-f]{64}")
_BOOT = "boot"  # the file with the boot id under which a folder was written; empty if unknown
_KERNEL_BOOT = Path("/proc/sys/kernel/random/boot_id")


class NotFetched(ArenaError):
    """A program did not come, or a different one came."""


class ProgramCache:
    """Programs by key; the least recently used make room for others.

    Args:
        folder: created if missing. No bot may see it.
        hidden: paths that builds must not see, besides that folder.

    Attributes:
        in_use: returns the keys of running programs, which never make room; called in a thread.
    """

    def __init__(
        self, folder: Path, hidden: Sequence[Path] = (), most_bytes: int = _MOST_BYTES
    ) -> None:
        self.in_use: Callable[[], Collection[str]] = lambda: ()
        own, self._lock = _own_folder(folder)
        self._fetched = own / "fetched"
        self._folders = FolderCache(own / "programs", self._kept, most_bytes)
        self._builds = BuildCache(
            self._folders,
            self._write_tar,
            (*hidden, folder),
            build_s=_BUILD_S,
            build_mib=_BUILD_MIB,
        )
        self._making: dict[str, asyncio.Task[None]] = {}
        self._failed: dict[str, tuple[float, str]] = {}
        self._tasks = BackgroundTasks(ignore_error)
        self._folders.sweep()
        shutil.rmtree(self._fetched, ignore_errors=True)
        self._fetched.mkdir(mode=0o700)

    async def close(self) -> None:
        """Cancel all fetching and building, and release the folder."""
        self._tasks.cancel()
        await self._tasks.ended()
        self._lock.release()

    async def program(self, wanted: SeatProgram, game: str, name: str, fetch: Fetch) -> Program:
        """Return how to launch a program for a bot of that name; fetch and build it if needed.

        The program speaks over pipes. Raises `NotFetched`, `BuildFailed`, or `UsageError` if it
        cannot be started here, each with one line. None of them is an offence of the bot.
        """
        if isinstance(wanted, HouseBot):
            words = bot_command((game, wanted.bot), name=public_name(name))
            return over_pipes(Program(tuple(words)))
        if not _KEY.fullmatch(wanted.key):
            raise NotFetched(f"expected the SHA-256 of a program, got {shorten(wanted.key)}")
        while (found := await asyncio.to_thread(self._find, wanted)) is None:
            await self._have(wanted, game, fetch)
        return found

    # --- making a program ready ---

    def _find(self, wanted: Source | Bundle) -> Program | None:
        if isinstance(wanted, Source):
            built = self._builds.find(wanted.key)
            return None if built is None else sealed_program(built.folder, built.manifest)
        folder = self._folders.find(wanted.key)
        if folder is None:
            return None
        return over_pipes(bundled_program(wanted.words, wanted.stdio, folder))

    async def _have(self, wanted: Source | Bundle, game: str, fetch: Fetch) -> None:
        """Put a program into the cache, once for all who want it at the same time."""
        until, why = self._failed.get(wanted.key, (0.0, ""))
        if asyncio.get_running_loop().time() < until:
            raise BuildFailed(why, "")
        task = self._making.get(wanted.key)
        is_mine = task is None
        if task is None:
            task = self._tasks.start(self._make(wanted, game, fetch))
            self._making[wanted.key] = task
            task.add_done_callback(lambda _: self._making.pop(wanted.key, None))
        try:
            # Others may wait, too: cancelling one of them must not cancel the task.
            await asyncio.shield(task)
        except NotFetched:
            if is_mine:  # otherwise another arena failed or was lost: then ask our own
                raise

    async def _make(self, wanted: Source | Bundle, game: str, fetch: Fetch) -> None:
        tar = self._fetched / wanted.key
        try:
            await self._fetch(wanted, game, fetch, tar)
            if isinstance(wanted, Source):
                await self._builds.built(wanted.key)
                return
            async with self._folders.work() as work:
                made = work / "made"
                made.mkdir()
                await asyncio.to_thread(_unpack, tar, made)
                self._folders.add(wanted.key, made)
        except UsageError as error:
            until = asyncio.get_running_loop().time() + _FAILED_S
            self._failed[wanted.key] = until, str(error)
            raise
        except OSError as error:
            raise NotFetched(f"cannot write a program to {self._fetched}: {error}") from error
        finally:
            await asyncio.to_thread(tar.unlink, missing_ok=True)

    def _kept(self) -> Collection[str]:
        return {*tuple(self._making), *self.in_use()}

    def _write_tar(self, key: str, into: BinaryIO) -> None:
        with (self._fetched / key).open("rb") as tar:
            shutil.copyfileobj(tar, into)

    # --- fetching ---

    async def _fetch(self, wanted: Source | Bundle, game: str, fetch: Fetch, tar: Path) -> None:
        """Write a program's tar to a file; raises `NotFetched` if it is a different one."""
        if wanted.size > MOST_BUNDLED:
            most = MOST_BUNDLED >> 20
            raise NotFetched(f"expected a program of at most {most} MiB, got {wanted.size:,} bytes")
        with tar.open("w+b") as file:
            while (offset := file.tell()) < wanted.size:
                try:
                    part = await fetch(offset)
                except ArenaError as error:
                    raise NotFetched(str(error)) from error
                most, got = wanted.size - offset, len(part)
                if not 0 < got <= most:
                    raise NotFetched(f"expected 1 to {most:,} bytes of a program, got {got:,}")
                await asyncio.to_thread(file.write, part)
            file.seek(0)
            digest = await asyncio.to_thread(hashlib.file_digest, file, "sha256")
        key = digest.hexdigest()
        if isinstance(wanted, Bundle):
            key = bundle_key(wanted.words, wanted.stdio, game, key)
        if key != wanted.key:
            raise NotFetched(f"expected the program {wanted.key}, got one with the SHA-256 {key}")


def _own_folder(folder: Path) -> tuple[Path, BaseFileLock]:
    """Return the first folder in `folder` that no other host uses, and its lock."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for number in itertools.count(1):
        lock = FileLock(folder / f"{number}.lock", 0, mode=0o600, thread_local=False)
        with suppress(Timeout):
            lock.acquire()
            break
    own = folder / str(number)
    boot = _text_of(_KERNEL_BOOT)
    # A power cut may have left empty files, and their failure would count as a bot's offence.
    if _text_of(own / _BOOT) != boot:
        remove(own)
    own.mkdir(mode=0o700, exist_ok=True)
    (own / _BOOT).write_text(boot)
    return own, lock


def _text_of(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""


def _unpack(tar: Path, folder: Path) -> None:
    with tar.open("rb") as file:
        unpack_bundle(file, folder)
