"""A cache of folders by key, each of which can be made again; the least recently used are removed.

A folder is made under a name with a leading dot and renamed when it is complete. So the leftovers
of a killed process are known by their names, and nobody finds half a folder. Only one process uses
a cache at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Collection
from pathlib import Path

from arena.sandbox.workdir import remove

__all__ = ["FolderCache"]

_MOST_BYTES = 8 << 30


class FolderCache:
    """The cached folders in `folder`, which is created if needed.

    Attributes:
        kept: returns the keys that must not be removed; called in a thread.
        most_bytes: of all folders together; kept ones count, and stay.
    """

    def __init__(
        self, folder: Path, kept: Callable[[], Collection[str]], most_bytes: int = _MOST_BYTES
    ) -> None:
        self.kept = kept
        self.most_bytes = most_bytes
        self._folder = folder

    def sweep(self) -> None:
        """Remove unfinished folders that a killed process left behind; call this in a thread."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self._folder.glob(".*"):
            remove(path)

    def find(self, key: str) -> Path | None:
        """The folder of a key, which counts as used now; call this in a thread."""
        folder = self._folder / key
        try:
            os.utime(folder)
        except OSError:
            return None
        return folder

    @contextlib.asynccontextmanager
    async def work(self) -> AsyncIterator[Path]:
        """An empty folder to make a new one in. At the end it is removed, and room is made."""
        work = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix=".", dir=self._folder))
        try:
            yield work
        finally:
            await asyncio.to_thread(remove, work)
            with contextlib.suppress(FileNotFoundError):  # a folder was forgotten meanwhile
                await asyncio.to_thread(self._make_room)

    def add(self, key: str, made: Path) -> Path:
        """Move a finished folder to its key; returns its new path."""
        os.rename(made, self._folder / key)
        return self._folder / key

    async def drop(self, key: str) -> None:
        """Remove a folder, unless it is kept."""
        if key not in await asyncio.to_thread(self.kept):
            gone = await self.forget(key)
            await asyncio.to_thread(remove, gone)

    async def forget(self, key: str) -> Path:
        """Let a folder be made again when it is next needed; returns the path of the old one.

        Processes may still use the old one, so it exists until the next `sweep`.
        """
        gone = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix=".", dir=self._folder))
        with contextlib.suppress(FileNotFoundError):
            os.rename(self._folder / key, gone / key)
        return gone

    def _make_room(self) -> None:
        """If all folders are too large together, remove the least recently used ones not kept."""
        found = [path for path in self._folder.iterdir() if not path.name.startswith(".")]
        sizes = {path: _size(path) for path in found}
        total = sum(sizes.values())
        if total <= self.most_bytes:
            return
        kept = self.kept()
        for path in sorted(found, key=lambda path: path.stat().st_mtime):
            if total <= self.most_bytes:
                break
            if path.name not in kept:
                remove(path)
                total -= sizes[path]


def _size(folder: Path) -> int:
    return sum(
        os.lstat(os.path.join(top, name)).st_size
        for top, _, names in os.walk(folder)
        for name in names
    )
