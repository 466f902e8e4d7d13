"""Receives programs in pieces and spools them to disk, a few at a time.

An owner can send one program at a time, and only a few owners at once; the others wait their turn.
A peer that pauses too long or sends too slowly loses its turn. The spool folder is hidden from all
bots, and emptied when the arena starts, as incomplete uploads do not count.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO

from protocol.errors import UsageError
from protocol.submitting import PIECE_BYTES, Got, Send, Submit, ToSubmitter, UploadTurn

__all__ = ["Upload", "Uploads"]

_AT_ONCE = 4
_STALLED_S = 60.0  # the longest pause between two pieces
_SLOWEST_BYTES_PER_S = 16 * 1024  # on average: a trickle would hold a turn for days


class Upload:
    """A program that an owner is sending.

    Attributes:
        tell: sends a message to the owner.
        is_on: whether its pieces are accepted: from `send` until the last one has come.
        got: how many bytes have come.
    """

    def __init__(self, owner: str, submit: Submit, tell: Callable[[ToSubmitter], None]) -> None:
        self.owner = owner
        self.submit = submit
        self.tell = tell
        self.is_on = False
        self.got = 0
        self._reader = asyncio.StreamReader()

    def feed(self, data: bytes) -> None:
        """Take a piece; raises `UsageError` if more bytes come than were announced."""
        self.got += len(data)
        self.is_on = self.got < self.submit.size
        if self.got > self.submit.size:
            raise UsageError(f"expected {self.submit.size:,} bytes, got more")
        self._reader.feed_data(data)

    async def read(self) -> bytes:
        """Return the bytes since the last call; waits until there are any."""
        return await self._reader.read(self.submit.size)


class Uploads:
    """All uploads of an arena, and their spool folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._uploads: list[Upload] = []  # the first few are being received, the others wait
        self._one_left = asyncio.Event()  # set when an upload leaves the list

    def sweep(self) -> None:
        """Remove what a killed arena left behind; called in a thread."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(mode=0o700, parents=True)

    @asynccontextmanager
    async def receive(self, upload: Upload) -> AsyncIterator[BinaryIO]:
        """Receive an upload into a temporary file; at the end, file and turn are released.

        Raises `UsageError` if the owner has another upload going on, or if it comes too slowly. The
        caller cancels this when the sender gives up.
        """
        if any(one.owner == upload.owner for one in self._uploads):
            raise UsageError("another upload of yours is on; wait until it has arrived")
        with tempfile.TemporaryFile(dir=self.folder) as file:
            self._uploads.append(upload)
            try:
                await self._wait_for_turn(upload)
                await self._spool(upload, file)
                yield file
            finally:
                self._uploads.remove(upload)
                self._one_left.set()
                self._one_left = asyncio.Event()

    async def _wait_for_turn(self, upload: Upload) -> None:
        said = None
        while (position := self._uploads.index(upload) - _AT_ONCE + 1) > 0:
            if position != said:
                upload.tell(UploadTurn(position))
                said = position
            await self._one_left.wait()

    async def _spool(self, upload: Upload, file: BinaryIO) -> None:
        size, written = upload.submit.size, 0
        upload.is_on = size > 0
        upload.tell(Send(PIECE_BYTES))
        try:
            async with asyncio.timeout(_STALLED_S + size / _SLOWEST_BYTES_PER_S):
                while written < size:
                    async with asyncio.timeout(_STALLED_S):
                        data = await upload.read()
                    await asyncio.to_thread(file.write, data)
                    written += len(data)
                    upload.tell(Got(written))
        except TimeoutError:
            text = f"expected {size:,} bytes, got {upload.got:,} in the time; hand it in again"
            raise UsageError(text) from None
        finally:
            upload.is_on = False
        file.seek(0)
