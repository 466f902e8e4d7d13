"""Folders by keys, each of which can be made again: the least recently used make room for others.

A folder is made under a name with a dot in front and renamed when it is whole. So what a process
that was killed has left is known by its name, and nobody finds half a folder. One process uses a
cache at a time.
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
    """The folders in `folder`, which is made if it is not there.

    Attributes:
        kept: says which keys must not make room for others; called in a thread.
        most_bytes: of all folders together; those that are kept count, and stay.
    """

    def __init__(
        self, folder: Path, kept: Callable[[], Collection[str]], most_bytes: int = _MOST_BYTES
    ) -> None:
        self.kept = kept
        self.most_bytes = most_bytes
        self._folder = folder

    def sweep(self) -> None:
        """Remove what a process that was killed has left half done; to be called in a thread."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self._folder.glob(".*"):
            remove(path)

    def find(self, key: str) -> Path | None:
        """The folder of a key, which is used now; to be called in a thread."""
        folder = self._folder / key
        try:
            os.utime(folder)
        except OSError:
            return None
        return folder

    @contextlib.asynccontextmanager
    async def work(self) -> AsyncIterator[Path]:
        """An empty folder to make one in, which is gone at the end; then there is room again."""
        work = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix=".", dir=self._folder))
        try:
            yield work
        finally:
            await asyncio.to_thread(remove, work)
            with contextlib.suppress(FileNotFoundError):  # one was forgotten meanwhile
                await asyncio.to_thread(self._make_room)

    def add(self, key: str, made: Path) -> Path:
        """Move a folder that is whole to its key; returns where it is then."""
        os.rename(made, self._folder / key)
        return self._folder / key

    async def drop(self, key: str) -> None:
        """Remove a folder, unless it is kept."""
        if key not in await asyncio.to_thread(self.kept):
            gone = await self.forget(key)
            await asyncio.to_thread(remove, gone)

    async def forget(self, key: str) -> Path:
        """Have a folder made again when it is needed next; returns where the old one is.

        Processes may still use it, so it is there until the next `sweep`.
        """
        gone = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix=".", dir=self._folder))
        with contextlib.suppress(FileNotFoundError):
            os.rename(self._folder / key, gone / key)
        return gone

    def _make_room(self) -> None:
        """Remove the least recently used folders, unless they are kept, if all are too large."""
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
