"""Built programs in folders, by the SHA-256 of what was handed in: a cache that can be made again.

The programs themselves are in the database. What is built here is never sent anywhere; it may be
removed at any time, and is built again when it is needed. One program is built at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import msgspec

from arena.sandbox.archive import unpack
from arena.sandbox.build import build
from arena.sandbox.command import sealed_program
from arena.sandbox.manifest import ProgramManifest, manifest_of
from arena.sandbox.workdir import remove
from arena.storage.programs import Programs
from arena.submissions.settings import SubmissionSettings
from protocol.errors import UsageError

__all__ = ["BuildCache", "BuildFailed", "BuiltProgram"]

_MOST_BYTES = 8 << 30
_MANIFEST = "manifest.json"
_PROGRAM = "program"


class BuildFailed(UsageError):
    """A program could not be built; `log` is what the build wrote."""

    def __init__(self, why: str, log: str) -> None:
        super().__init__(why)
        self.log = log


class BuiltProgram(msgspec.Struct, frozen=True):
    """A program that can be launched, and what its build wrote; empty if it was built before."""

    folder: Path
    manifest: ProgramManifest
    log: str = ""


class BuildCache:
    """Builds programs, once each.

    Args:
        hidden: what no build sees, this cache included.
        kept: says which programs must not make room for others; called in a thread.
    """

    def __init__(
        self,
        folder: Path,
        programs: Programs,
        settings: SubmissionSettings,
        hidden: Sequence[Path],
        kept: Callable[[], Collection[str]],
    ) -> None:
        self._folder = folder
        self._programs = programs
        self._settings = settings
        self._hidden = hidden
        self._kept = kept
        self._lock = asyncio.Lock()

    def sweep(self) -> None:
        """Remove what an arena that was killed has left half done; to be called in a thread."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self._folder.glob(".*"):
            remove(path)

    async def built(self, sha256: str) -> BuiltProgram:
        """A program, built now if it was not before.

        Raises `BuildFailed`, or `UsageError` for one that is no bot or not in the database.
        """
        if (found := await asyncio.to_thread(self._find, sha256)) is not None:
            return found
        async with self._lock:
            if (found := await asyncio.to_thread(self._find, sha256)) is not None:
                return found
            work = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix=".", dir=self._folder))
            try:
                return await self._make(sha256, work)
            finally:
                await asyncio.to_thread(remove, work)
                with contextlib.suppress(FileNotFoundError):  # one was forgotten meanwhile
                    await asyncio.to_thread(self._make_room)

    async def drop(self, sha256: str) -> None:
        """Remove a program that was refused, unless the same one is kept for a version."""
        if sha256 not in await asyncio.to_thread(self._kept):
            gone = await self.forget(sha256)
            await asyncio.to_thread(remove, gone)

    async def forget(self, sha256: str) -> Path:
        """Have a program built again when it is needed next; returns where the old one is.

        Processes may still run it, so it is there until an arena starts again.
        """
        gone = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix=".", dir=self._folder))
        with contextlib.suppress(FileNotFoundError):
            os.rename(self._folder / sha256, gone / sha256)
        return gone

    async def _make(self, sha256: str, work: Path) -> BuiltProgram:
        source, made = work / "source", work / "made"
        manifest = await asyncio.to_thread(self._unpack, sha256, source)
        (made / _PROGRAM).mkdir(parents=True)
        log = ""
        if manifest.build:
            outcome = await build(
                source,
                manifest,
                build_s=self._settings.build_s,
                build_mib=self._settings.build_mib,
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
        os.rename(made, self._folder / sha256)
        return BuiltProgram(self._folder / sha256 / _PROGRAM, manifest, log)

    def _unpack(self, sha256: str, into: Path) -> ProgramManifest:
        into.mkdir()
        stored = into.with_name("stored.tar")
        with stored.open("wb") as tar:
            self._programs.open(sha256, tar)
        _unpack(stored, into)
        return manifest_of(into)

    def _find(self, sha256: str) -> BuiltProgram | None:
        folder = self._folder / sha256
        try:
            manifest = msgspec.json.decode((folder / _MANIFEST).read_bytes(), type=ProgramManifest)
            os.utime(folder)
        except (OSError, msgspec.DecodeError):
            return None
        return BuiltProgram(folder / _PROGRAM, manifest)

    def _make_room(self) -> None:
        """Remove the least recently used programs, unless they are kept, if all are too large."""
        found = [path for path in self._folder.iterdir() if not path.name.startswith(".")]
        sizes = {path: _size(path) for path in found}
        total = sum(sizes.values())
        if total <= _MOST_BYTES:
            return
        kept = self._kept()
        for path in sorted(found, key=lambda path: path.stat().st_mtime):
            if total <= _MOST_BYTES:
                break
            if path.name not in kept:
                remove(path)
                total -= sizes[path]


def _unpack(tar: Path, into: Path) -> None:
    with tar.open("rb") as file:
        unpack(file, into)
    tar.unlink()


def _size(folder: Path) -> int:
    return sum(
        os.lstat(os.path.join(top, name)).st_size
        for top, _, names in os.walk(folder)
        for name in names
    )
