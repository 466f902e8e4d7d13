"""Finds and packs the programs that an arena sends to hosts.

A submission is sent as its source from the database. A launched bot is packed into a bundle once:
hosts run what was in its folder when it was first needed there, until it is launched again. Tars
are in a folder of the arena's cache, by key, so that any part can be read. Tars that have not been
read for long make room, and are made again when needed.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar

import msgspec

from arena.competitions.bot_supervisor import program_of
from arena.formats.spec import RelaunchSpec
from arena.hosts.messages import Bundle, HouseBot, SeatProgram, Source
from arena.sandbox.bundle import pack_bundle, portable_command
from arena.sandbox.folder_cache import FolderCache
from arena.storage.models import Submission
from protocol.errors import UsageError

__all__ = ["PART_BYTES", "HandedIn", "SeatPrograms"]

PART_BYTES = 512 << 10
"""Bytes of a program in one message of a link."""

_MOST_BYTES = 4 << 30  # of the tars of old bundles and of submissions
_KEY = re.compile(r"[0-9a-f]{64}")
_TAR = "program.tar"  # in the folder of its key

_Tarred = TypeVar("_Tarred", Bundle, Source)


class HandedIn(Protocol):
    """The submissions of an arena, as far as they are needed here."""

    async def get(self, number: int) -> Submission:
        """Return a submission; raises `UsageError` if there is none."""

    def open_program(self, sha256: str, into: BinaryIO) -> None:
        """Write the tar of a program; called in a thread; raises `UsageError` if there is none."""


class _Launched(msgspec.Struct):
    """A launched bot: its bundles by game, or why it cannot be sent."""

    spec: RelaunchSpec
    why: str = ""
    bundles: dict[str, Bundle] = {}


class SeatPrograms:
    """Finds, packs and serves programs.

    Args:
        relaunch_specs: returns how running bots were launched, as a new object for each launch.
        submissions: None if nothing can be submitted.
        folder: for tars; created if missing. No bot may see it.
        hidden: the arena's files, which no bot may see and which no bundle includes.
    """

    def __init__(
        self,
        relaunch_specs: Callable[[Sequence[str]], tuple[RelaunchSpec, ...]],
        submissions: HandedIn | None,
        folder: Path,
        hidden: Sequence[Path],
        most_bytes: int = _MOST_BYTES,
    ) -> None:
        self._relaunch_specs = relaunch_specs
        self._submissions = submissions
        self._folder = folder
        self._hidden = (*hidden, folder)
        self._folders = FolderCache(folder, self._kept, most_bytes)
        self._folders.sweep()
        self._latest = ""
        self._by_name: dict[str, _Launched] = {}
        self._sources: dict[int, Source] = {}
        self._writing = asyncio.Lock()  # one tar at a time: it takes a core

    async def seat_program(self, name: str, submission: int | None, game: str) -> SeatProgram:
        """Return the program of a submission, or with None of the launched bot of that name.

        Raises `StoreFailed`, and `UsageError` with a line that says which bot cannot be sent, and
        why.
        """
        try:
            if submission is None:
                return await self._launched(name, game)
            return await self._source(submission)
        except UsageError as error:
            raise UsageError(f"{name}: {error}") from None

    def is_portable(self, name: str, game: str) -> bool:
        """Return whether a bot was launched here and can be sent, as far as is known."""
        found = self._find(name)
        return found is not None and not found.why

    async def part(self, key: str, offset: int) -> bytes:
        """Return at most `PART_BYTES` bytes of a program's tar; empty after its end.

        Raises `UsageError` if there is no such program, and `StoreFailed`.
        """
        if not _KEY.fullmatch(key) or not 0 <= offset < _MOST_BYTES:
            raise UsageError(f"expected a program and an offset in it, got {key!r} and {offset}")
        tar = self._folder / key / _TAR
        try:
            return await asyncio.to_thread(_read, tar, offset)
        except FileNotFoundError:
            await self._spool(key)
            return await asyncio.to_thread(_read, tar, offset)

    # --- programs ---

    def _find(self, name: str) -> _Launched | None:
        spec = next(iter(self._relaunch_specs((name,))), None)
        found = self._by_name.get(name)
        if spec is not None and (found is None or found.spec is not spec):  # a new launch
            found = self._by_name[name] = _Launched(spec)
            try:
                if spec.house is None:
                    portable_command(program_of(spec))
            except UsageError as error:
                found.why = str(error)
        return None if spec is None else found

    async def _launched(self, name: str, game: str) -> SeatProgram:
        found = self._find(name)
        if found is None:
            raise UsageError("expected a bot that was launched here, got one that was not")
        if found.spec.house is not None:
            return HouseBot(found.spec.house)
        if not found.why and game not in found.bundles:
            await self._pack(found, game)
        if found.why:
            raise UsageError(found.why)
        return found.bundles[game]

    async def _source(self, number: int) -> Source:
        """Return a submission's source; raises `UsageError` if it is unknown, and `StoreFailed`."""
        if number not in self._sources:
            if self._submissions is None:
                raise UsageError("expected a bot of this arena, which takes no submissions")
            one = await self._submissions.get(number)
            if one.manifest is None:
                raise UsageError(f"expected an accepted submission, got {number}")
            self._sources[number] = Source(one.program, one.size, one.manifest.language)
        return self._sources[number]

    async def _pack(self, found: _Launched, game: str) -> None:
        """Pack a bundle, or note why there is none until the bot is launched again."""
        program = program_of(found.spec)
        async with self._writing:
            if found.why or game in found.bundles:
                return
            try:
                found.bundles[game] = await self._write(
                    lambda tar: pack_bundle(program, game, self._hidden, tar)
                )
            except (UsageError, OSError) as error:
                found.why = str(error)

    # --- tars ---

    async def _spool(self, key: str) -> None:
        """Make a tar again that is no longer in the folder."""
        for found in tuple(self._by_name.values()):
            for game, bundle in tuple(found.bundles.items()):
                if bundle.key == key and not self._is_there(key):
                    found.bundles.pop(game, None)
                    await self._pack(found, game)
        async with self._writing:
            if self._is_there(key):
                return
            service = self._submissions
            if service is None:
                raise UsageError(f"expected a program of this arena, got {key}")

            def write(tar: BinaryIO) -> Source:
                service.open_program(key, tar)
                return Source(key, tar.tell(), "")

            try:
                await self._write(write)
            except OSError as error:
                raise UsageError(f"cannot write a program to {self._folder}: {error}") from error

    async def _write(self, write: Callable[[BinaryIO], _Tarred]) -> _Tarred:
        """Write a tar, and move it to its key when it is complete."""
        async with self._folders.work() as work:
            made = work / "made"
            made.mkdir()
            written = await asyncio.to_thread(_write, write, made / _TAR)
            self._latest = written.key
            if not self._is_there(written.key):
                self._folders.add(written.key, made)
        return written

    def _kept(self) -> Collection[str]:
        """Return the keys of the tars to keep; others are made again when they are asked for.

        They are the bundles of each bot's latest launch, and the tar that was written last.
        """
        launched = tuple(self._by_name.values())
        kept = {bundle.key for bot in launched for bundle in tuple(bot.bundles.values())}
        return kept | {self._latest}

    def _is_there(self, key: str) -> bool:
        return self._folders.find(key) is not None


def _read(file: Path, offset: int) -> bytes:
    """Read bytes of a tar, and mark its folder as used."""
    with file.open("rb") as tar:
        tar.seek(offset)
        data = tar.read(PART_BYTES)
    os.utime(file.parent)
    return data


def _write(write: Callable[[BinaryIO], _Tarred], file: Path) -> _Tarred:
    with file.open("wb") as tar:
        written = write(tar)
        tar.flush()
        os.fsync(tar.fileno())  # the next arena relies on it being complete
    return written
