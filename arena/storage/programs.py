"""Stores the bytes of submitted programs in the database, compressed, by their SHA-256.

A program is written in parts, each in a short transaction of its own, so that no result waits long
for a transaction. The row in `programs` comes last: without it nobody sees the parts. The next
arena to start deletes the parts that a killed one left. Bytes are verified when they are read.
"""

from __future__ import annotations

import hashlib
import secrets
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

import sqlalchemy as sa

from arena.storage.schema import PROGRAM_PARTS, PROGRAMS, SUBMISSIONS, has_submissions, shown
from arena.storage.writer import failed, reading, writing
from protocol.errors import StoreFailed, UsageError

__all__ = ["Programs"]

_PART_BYTES = 1 << 20  # compressed: a disk writes this in milliseconds
_READ_BYTES = 1 << 18


class Programs:
    """The programs in an arena's database.

    Methods block, and are called from a thread (`asyncio.to_thread`). They raise StoreFailed if the
    database cannot be read or written.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._where = shown(engine.url)

    def __contains__(self, sha256: str) -> bool:
        """Return whether the whole program is stored."""
        return self._row(sha256) is not None

    def put(self, sha256: str, tar: BinaryIO) -> None:
        """Store a program; all of it is durable when this returns.

        A program that is stored already is not read. UsageError means that the bytes have another
        SHA-256; none of them is kept then.
        """
        if sha256 in self:
            return
        upload = secrets.token_hex(16)
        try:
            made = self._write_parts(upload, tar)
            if made["sha256"] != sha256:
                raise UsageError(f"expected the program {sha256}, got {made['sha256']}")
            with writing(self._engine) as connection:
                if connection.execute(_named(sha256)).first() is None:
                    connection.execute(PROGRAMS.insert().values(**made))
                else:  # another upload of the same bytes was quicker
                    connection.execute(_parts_of(upload))
        except StoreFailed:
            # Whether the last commit took place is not known: the parts stay until `sweep`.
            if sha256 not in self:
                raise
        except BaseException:
            self._remove_parts(upload)
            raise

    def open(self, sha256: str, into: BinaryIO) -> None:
        """Write a program's tar to `into`; after an error, the bytes in `into` are worthless.

        Raises UsageError if the program is not there, StoreFailed if it is damaged.
        """
        row = self._row(sha256)
        if row is None:
            raise self._no_program(sha256)
        digest = hashlib.sha256()
        size = 0
        try:
            for data in self._inflated(row):
                digest.update(data)
                size += len(data)
                if size > row.size:
                    break
                into.write(data)
        except zlib.error as error:
            raise self._damaged(sha256) from error
        if size != row.size or digest.hexdigest() != sha256:
            raise self._damaged(sha256)

    def remove(self, sha256: str) -> None:
        """Delete a program, unless a submission needs it or it is not stored."""
        needs = sa.select(SUBMISSIONS.c.number).where(SUBMISSIONS.c.program == sha256)
        with writing(self._engine) as connection:
            # Lock the row first: a submission arriving now is seen, or finds no program.
            row = connection.execute(_named(sha256).with_for_update()).first()
            if row is None or connection.execute(needs.limit(1)).first() is not None:
                return
            connection.execute(PROGRAMS.delete().where(PROGRAMS.c.sha256 == sha256))
        self._remove_parts(row.upload)

    def sweep(self) -> None:
        """Delete programs that no submission needs, and the parts of unfinished uploads.

        Called by a starting arena that holds the database's lock, so no upload is under way.
        """
        needed = sa.select(SUBMISSIONS.c.program)
        needless = sa.select(PROGRAMS.c.sha256).where(PROGRAMS.c.sha256.not_in(needed))
        whole = sa.select(PROGRAMS.c.upload)
        cut = sa.select(PROGRAM_PARTS.c.upload).where(PROGRAM_PARTS.c.upload.not_in(whole))
        with reading(self._engine) as connection:
            programs = connection.execute(needless).scalars().all()
            uploads = connection.execute(cut.distinct()).scalars().all()
        for upload in uploads:
            self._remove_parts(upload)
        for sha256 in programs:
            self.remove(sha256)

    # --- within ---

    def _write_parts(self, upload: str, tar: BinaryIO) -> dict[str, Any]:
        """Write all parts, and return the row for `programs` that completes them."""
        digest, deflate = hashlib.sha256(), zlib.compressobj()
        buffer = bytearray()
        size = stored = parts = 0
        is_over = False
        while not is_over:
            data = tar.read(_READ_BYTES)
            digest.update(data)
            size += len(data)
            is_over = not data
            buffer += deflate.flush() if is_over else deflate.compress(data)
            if is_over or len(buffer) >= _PART_BYTES:
                row = {"upload": upload, "part": parts, "data": bytes(buffer)}
                with writing(self._engine) as connection:
                    connection.execute(PROGRAM_PARTS.insert().values(**row))
                stored += len(buffer)
                parts += 1
                buffer.clear()
        made = {"sha256": digest.hexdigest(), "size": size, "stored": stored}
        return {**made, "upload": upload, "parts": parts}

    def _inflated(self, row: sa.Row[Any]) -> Iterator[bytes]:
        """Yield a program's bytes in pieces of at most `_READ_BYTES`."""
        inflate = zlib.decompressobj()
        for part in range(row.parts):
            data = inflate.decompress(self._part(row, part), _READ_BYTES)
            while data:
                yield data
                data = inflate.decompress(inflate.unconsumed_tail, _READ_BYTES)

    def _part(self, row: sa.Row[Any], part: int) -> bytes:
        is_it = (PROGRAM_PARTS.c.upload == row.upload) & (PROGRAM_PARTS.c.part == part)
        with reading(self._engine) as connection:
            data: bytes | None = connection.execute(
                sa.select(PROGRAM_PARTS.c.data).where(is_it)
            ).scalar()
        if data is not None:
            return data
        if row.sha256 not in self:  # the program was removed meanwhile
            raise self._no_program(row.sha256)
        raise self._damaged(row.sha256, f"part {part + 1} of {row.parts} is missing")

    def _remove_parts(self, upload: str) -> None:
        with writing(self._engine) as connection:
            connection.execute(_parts_of(upload))

    def _row(self, sha256: str) -> sa.Row[Any] | None:
        with reading(self._engine) as connection:
            return (
                connection.execute(_named(sha256)).first() if has_submissions(connection) else None
            )

    def _no_program(self, sha256: str) -> UsageError:
        return UsageError(f"expected a program that is in {self._where}, got {sha256}")

    def _damaged(
        self, sha256: str, why: str = "its bytes are not those that were handed in"
    ) -> StoreFailed:
        return failed(f"read program {sha256} in", self._where, ValueError(why))


def _named(sha256: str) -> sa.Select[Any]:
    return sa.select(PROGRAMS).where(PROGRAMS.c.sha256 == sha256)


def _parts_of(upload: str) -> sa.Delete:
    return PROGRAM_PARTS.delete().where(PROGRAM_PARTS.c.upload == upload)
