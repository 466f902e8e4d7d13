"""Builds programs that were handed in, once each, into folders by the SHA-256 of their tars.

The tars are stored elsewhere. The built folders are never sent anywhere; they may be removed at any
time, and are built again when needed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from arena.sandbox.archive import unpack
from arena.sandbox.build import build
from arena.sandbox.command import sealed_program
from arena.sandbox.folder_cache import FolderCache
from arena.sandbox.manifest import ProgramManifest, manifest_of
from arena.sandbox.workdir import remove
from protocol.errors import UsageError

__all__ = ["BuildCache", "BuildFailed", "BuiltProgram"]

_MANIFEST = "manifest.json"
_PROGRAM = "program"


class BuildFailed(UsageError):
    """A program could not be built; `log` is what the build wrote."""

    def __init__(self, why: str, log: str) -> None:
        super().__init__(why)
        self.log = log


class BuiltProgram(msgspec.Struct, frozen=True):
    """A program that can be launched, and the output of its build; empty if it was built before."""

    folder: Path
    manifest: ProgramManifest
    log: str = ""


class BuildCache:
    """Builds programs, once each, one at a time.

    Args:
        folders: the cache for the built programs.
        write_tar: writes the tar of a program, by its SHA-256, to a file; called in a thread.
        hidden: what no build sees, including the folders of this cache.
        build_s, build_mib: as in `build`.
    """

    def __init__(
        self,
        folders: FolderCache,
        write_tar: Callable[[str, BinaryIO], None],
        hidden: Sequence[Path],
        *,
        build_s: float,
        build_mib: int,
    ) -> None:
        self.folders = folders
        self._write_tar = write_tar
        self._hidden = hidden
        self._build_s = build_s
        self._build_mib = build_mib
        self._building = asyncio.Lock()

    def find(self, sha256: str) -> BuiltProgram | None:
        """The program if it is built already; call this in a thread."""
        if (folder := self.folders.find(sha256)) is None:
            return None
        try:
            manifest = msgspec.json.decode((folder / _MANIFEST).read_bytes(), type=ProgramManifest)
        except (OSError, msgspec.DecodeError):
            remove(folder)  # a power cut may have left it incomplete
            return None
        return BuiltProgram(folder / _PROGRAM, manifest)

    async def built(self, sha256: str) -> BuiltProgram:
        """The program, built now if it was not before.

        Raises `BuildFailed`, `UsageError` if it is not a bot, or what `write_tar` raises.
        """
        if (found := await asyncio.to_thread(self.find, sha256)) is not None:
            return found
        async with self._building:
            if (found := await asyncio.to_thread(self.find, sha256)) is not None:
                return found
            async with self.folders.work() as work:
                return await self._make(sha256, work)

    async def _make(self, sha256: str, work: Path) -> BuiltProgram:
        source, made = work / "source", work / "made"
        manifest = await asyncio.to_thread(self._unpack, sha256, source)
        (made / _PROGRAM).mkdir(parents=True)
        log = ""
        if manifest.build:
            outcome = await build(
                source,
                manifest,
                build_s=self._build_s,
                build_mib=self._build_mib,
                into=work / "built.tar",
                hidden=self._hidden,
            )
            log = outcome.log
            if outcome.why:
                raise BuildFailed(f"the build failed: {outcome.why}", log)
            await asyncio.to_thread(_unpack, work / "built.tar", made / _PROGRAM)
        else:
            os.rename(source, made / _PROGRAM)
        try:
            sealed_program(made / _PROGRAM, manifest)
        except UsageError as error:
            raise BuildFailed(f"what starts it was not built: {error}", log) from None
        (made / _MANIFEST).write_bytes(msgspec.json.encode(manifest))
        folder = self.folders.add(sha256, made)
        return BuiltProgram(folder / _PROGRAM, manifest, log)

    def _unpack(self, sha256: str, into: Path) -> ProgramManifest:
        into.mkdir()
        stored = into.with_name("stored.tar")
        with stored.open("wb") as tar:
            self._write_tar(sha256, tar)
        _unpack(stored, into)
        return manifest_of(into)


def _unpack(tar: Path, into: Path) -> None:
    with tar.open("rb") as file:
        unpack(file, into)
    tar.unlink()
