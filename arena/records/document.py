"""A match as one JSON document, as `arena export` and `arena replay --json` write it, and its seal.

A document has the match's rows and its stored record, byte for byte, so its digest can be computed
from the document alone; only white space around the record may change. The digest is stored when a
match is written, and is computed again when the database is checked or exported. A forger can seal
a forgery, but an earlier export has the true seals. In a bare record, without rows, only the cards
and the result can be checked. `arena/records/verify.py` checks both.
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
"""The errors of decoding JSON from outside."""

_WORDS = 160  # the most letters shown of msgspec's message


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
    also_out: tuple[int, ...] = ()  # seats that are out with the offender, as they were absent too

    def to_json(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, data: bytes) -> MatchDocument:
        """Read what `to_json` wrote, with any white space; UsageError for anything else."""
        with _decoding("expected a match in JSON"):
            document = msgspec.json.decode(data, type=cls)
            plain = msgspec.json.format(bytes(document.record), indent=-1)
        return msgspec.structs.replace(document, record=msgspec.Raw(plain))

    def read_record(self) -> Record:
        """The record; raises UsageError if it cannot be read."""
        return _read_record(bytes(self.record))


def sealed(document: MatchDocument) -> str:
    """The digest of a match, in hex, without looking at the one that the document has.

    It is SHA-256 over a JSON array of the fields, a line feed, and the record as it is stored.
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
    """Read a match, a seat's document or a bare record; raises UsageError for anything else."""
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
    """Raise UsageError if the block fails to decode JSON from outside."""
    try:
        yield
    except UNREADABLE as error:
        raise UsageError(f"{what}: {decoding_failure(error)}") from None


def decoding_failure(error: Exception) -> str:
    """The error that msgspec found, in one line with a small first letter, as our errors have."""
    text = one_line(str(error), _WORDS)
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def stored_text(text: str) -> str:
    """A text as the database stores it: PostgreSQL's texts hold no NUL."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")
