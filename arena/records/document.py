"""A match as one JSON document, as `arena export` and `arena replay --json` write it, and its seal.

A document has the match's rows and, to the byte, its stored record, so that its digest can be
computed from the document alone; white space around the record may change. It is computed and
stored when a match is written, and computed again when the database is checked or exported. A
forger can seal what he has forged; an export made before has the true seals. Of a bare record,
without rows, only the cards and the result can be checked. `arena/records/verify.py` checks both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from arena.games.match import Record
from arena.records.seat_document import SeatDocument
from protocol.errors import UsageError, one_line
from protocol.messages import Termination
from protocol.text_files import decode_text

__all__ = ["UNREADABLE", "MatchDocument", "decoding_failure", "read", "sealed", "stored_text"]

UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)
"""What decoding a stranger's JSON raises."""

_WORDS = 160  # most letters of msgspec's message


class MatchDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A match: its rows, and its record as it was stored; players and scores are by seat."""

    match: str  # its id
    competition: str  # its id
    pairing: int  # its number in the competition's schedule, from 1
    players: tuple[str, ...]
    game: str
    scores: tuple[int, ...]
    points: tuple[int, ...]
    termination: Termination
    started_at: float  # when the seats were invited, in Unix seconds
    finished_at: float  # when the result was known
    digest: str  # the seal over all other fields, in hex
    record: msgspec.Raw
    also_out: tuple[int, ...] = ()  # seats that are out with the offender: they did not come either

    def to_json(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, data: bytes) -> MatchDocument:
        """Read what `to_json` wrote, with any white space; UsageError if it is something else."""
        with _decoding("expected a match in JSON"):
            document = msgspec.json.decode(data, type=cls)
            plain = msgspec.json.format(bytes(document.record), indent=-1)
        return msgspec.structs.replace(document, record=msgspec.Raw(plain))

    def read_record(self) -> Record:
        """The record; raises UsageError if it cannot be read."""
        return _read_record(bytes(self.record))


def sealed(document: MatchDocument) -> str:
    """The digest of a match, in hex; the one that the document has is not looked at.

    It is SHA-256 over a JSON array of its fields, a line feed, and its record as it is stored.
    """
    ended = document.termination
    fields = (
        document.match,
        document.competition,
        document.pairing,
        document.players,
        document.scores,
        document.points,
        ended.kind,
        ended.seat,
        ended.text,
        document.started_at,
        document.finished_at,
    )
    data = msgspec.json.encode(fields) + b"\n" + bytes(document.record)
    return hashlib.sha256(data).hexdigest()


def read(data: bytes) -> MatchDocument | SeatDocument | Record:
    """Read a document, what a seat saw, or a bare record; raises UsageError if it is none."""
    data = decode_text(data).encode()
    with _decoding("expected a match in JSON"):
        fields: dict[str, Any] = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        if "asked" in fields:
            return msgspec.json.decode(data, type=SeatDocument)
    return MatchDocument.from_json(data) if "record" in fields else _read_record(data)


def _read_record(data: bytes) -> Record:
    with _decoding("its record cannot be read"):
        return Record.from_json(data)


@contextmanager
def _decoding(what: str) -> Iterator[None]:
    """Raise UsageError if the block cannot decode a stranger's JSON."""
    try:
        yield
    except UNREADABLE as error:
        raise UsageError(f"{what}: {decoding_failure(error)}") from None


def decoding_failure(error: Exception) -> str:
    """What msgspec found wrong, in one line that begins with a small letter, as our errors do."""
    text = one_line(str(error), _WORDS)
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def stored_text(text: str) -> str:
    """A text as the database has it: PostgreSQL's texts hold no NUL."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")
