"""A match as one document, to be handed on and checked elsewhere: what `arena export` and `arena replay --json` write.

A sheet has what the database's rows say of a match and, to the byte, the record that was stored, so that its digest can be reckoned
again from the sheet alone (`arena/records/digest.py`); white space between them may have changed on the way. A bare record, without rows, can be
read as well, but then only its cards and its result can be checked. What is checked is in `arena/records/verify.py`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from arena.engine.match import Record
from protocol.errors import UsageError, one_line
from protocol.messages import Termination

__all__ = ["MatchDocument", "read", "read_record"]

_WORDS = 160  # of what is wrong with a document


class MatchDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A match: its rows, and its record as it was stored.

    Attributes:
        match: its id.
        competition: the id of its competition.
        pairing: its number there, from 1.
        players: the bots' names by seat.
        game: its name.
        scores: by seat.
        points: by seat.
        termination: why it stopped.
        also_out: seats that are out with the offender's, as they did not come either.
        started_at: when the seats were invited, in Unix seconds.
        finished_at: when the result was known.
        digest: the seal over all of this and the record, in hex.
        record: the record's JSON, as bytes.
    """

    match: str
    competition: str
    pairing: int
    players: tuple[str, ...]
    game: str
    scores: tuple[int, ...]
    points: tuple[int, ...]
    termination: Termination
    started_at: float
    finished_at: float
    digest: str
    record: msgspec.Raw
    also_out: tuple[int, ...] = ()

    def to_json(self) -> bytes:
        """The sheet as one JSON document, in one line."""
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, data: bytes) -> MatchDocument:
        """Read what `to_json` wrote, laid out in whatever way.

        Raises:
            UsageError: it is no sheet.
        """
        try:
            document = msgspec.json.decode(data, type=cls)
            plain = msgspec.json.format(bytes(document.record), indent=-1)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise UsageError(f"expected a match in JSON: {_said(error)}") from None
        return msgspec.structs.replace(document, record=msgspec.Raw(plain))

    def read_record(self) -> Record:
        """The record, read.

        Raises:
            UsageError: it is none.
        """
        return read_record(bytes(self.record))


def read(data: bytes) -> MatchDocument | Record:
    """Read a document: a sheet, or a bare record.

    Raises:
        UsageError: it is neither.
    """
    try:
        fields: dict[str, Any] = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UsageError(f"expected a match in JSON: {_said(error)}") from None
    return MatchDocument.from_json(data) if "record" in fields else read_record(data)


def read_record(data: bytes) -> Record:
    """Read a record.

    Raises:
        UsageError: it is none.
    """
    try:
        return Record.from_json(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UsageError(f"its record cannot be read: {_said(error)}") from None


def _said(error: Exception) -> str:
    """What is wrong with a document, in a line that begins like ours."""
    text = one_line(str(error), _WORDS)
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
