"""The messages of the WebSocket at `/submit`: JSON in text frames, one message per frame.

With a token of the roster, its owner hands in programs and follows them; an instructor's token
shows the programs of all. The terminal (`arena submit`) and the page use the same messages. Bytes
are base64 in JSON. The arena refuses unknown fields; clients ignore them.

    owner                         arena
    enter {token}              →
                               ←  rules {…}
    submit {name, size}        →
                               ←  turn {position}        (while other uploads are on)
                               ←  send {number of bytes wanted in a piece}
    piece {data} …             →
                               ←  got {bytes} …
                               ←  progress {…} …         (until the submission is decided)

A `refused` with the code `submit` ends what was asked for, never the connection.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Struct

from protocol.errors import Malformed, Oversize, UsageError, one_line
from protocol.field_types import Id, Name
from protocol.messages import Refused

__all__ = [
    "FRAME_BYTES",
    "PIECE_BYTES",
    "Abort",
    "Disable",
    "Download",
    "Enter",
    "EntryOf",
    "Follow",
    "FromSubmitter",
    "GetLog",
    "GetStarter",
    "Got",
    "InPlayEntry",
    "InstalledLanguage",
    "ListSubmissions",
    "LogText",
    "Piece",
    "Progressing",
    "Rebuild",
    "Rules",
    "Send",
    "StarterFiles",
    "StderrOf",
    "SubmissionList",
    "Submit",
    "ToSubmitter",
    "UploadTurn",
    "Use",
    "decode_from_submitter",
    "decode_to_submitter",
    "encode_from_submitter",
    "encode_to_submitter",
]

PIECE_BYTES = 48 * 1024
"""Of a program in one frame: as base64 it fits into `FRAME_BYTES`."""
FRAME_BYTES = 96 * 1024
"""The largest frame that is taken at `/submit`."""

_Token = Annotated[str, Meta(max_length=256)]
_FileName = Annotated[str, Meta(min_length=1, max_length=255)]
_Message = Annotated[str, Meta(max_length=200)]
_MOST = 2**31 - 1  # that any database takes
_Number = Annotated[int, Meta(ge=1, le=_MOST)]
_Version = Annotated[int, Meta(ge=1, le=_MOST)]


class Enter(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="enter"):
    """The first message.

    Attributes:
        token: of the roster, or an instructor's.
    """

    token: _Token


class Submit(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="submit"):
    """A program is to be handed in; its bytes follow as `piece` when `send` has come.

    Attributes:
        name: of the file, without a folder: `bot.py`, or `ann.zip` for an archive of a folder.
        size: in bytes.
        message: what is new, for the owner itself.
    """

    name: _FileName
    size: Annotated[int, Meta(ge=0)]
    message: _Message = ""

    def __post_init__(self) -> None:
        """Raise `UsageError` for text that cannot be shown in a line; reported as `Malformed`."""
        for text in (self.name, self.message):
            if not (text.isprintable() and "/" not in self.name and "\\" not in self.name):
                raise UsageError(f"expected printable letters in a line, got {text!r}")


class Piece(Struct, frozen=True, tag_field="type", tag="piece"):
    """The next bytes of a program, in both directions; at most `PIECE_BYTES`."""

    data: Annotated[bytes, Meta(max_length=PIECE_BYTES)]


class Abort(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="abort"):
    """The upload is given up; nothing of it remains."""


class Follow(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="follow"):
    """Send `progress` of a submission that is not decided yet, from its beginning."""

    submission: _Number


class ListSubmissions(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="list"
):
    """Answer with `submissions`: one's own, or for an instructor those of `owner` or of all."""

    owner: Name | None = None


class GetLog(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="log"):
    """Answer with `log_text`: what became of a submission, and stderr of its latest matches."""

    submission: _Number


class Use(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="use"):
    """Put an earlier version in play again; answered with `submissions`.

    Attributes:
        version: the number after the `v`.
        game: the name of a game; without it all games that the version plays.
    """

    version: _Version
    game: Id | None = None


class Download(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="download"):
    """Answer with `piece`s of the program as a zip archive, the last one empty."""

    submission: _Number


class Disable(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="disable"):
    """An instructor takes a submission out of play, or with `again` lets it back."""

    submission: _Number
    again: bool = False


class Rebuild(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="rebuild"):
    """An instructor has a submission built and checked again."""

    submission: _Number


class GetStarter(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="starter"):
    """Answer with `starter_files`: a bot to begin with."""

    game: Id
    language: Id


# --- what the arena says ---


class InstalledLanguage(Struct, frozen=True):
    """A language that programs can be in here.

    Attributes:
        name: as `arena new` takes it.
        title: for people.
        version: what is installed: `Python 3.11.7, numpy 1.26`; empty if it is not there.
        missing: what would have to be installed; empty if it is there.
    """

    name: str
    title: str
    version: str
    missing: str = ""


class Rules(Struct, frozen=True, tag_field="type", tag="rules"):
    """The answer to `enter`: who one is, and what may be handed in.

    Attributes:
        owner: the name on the roster; of an instructor `null`.
        most_bytes: of what is sent.
        games: names of the games that submissions can play here.
        opens_at: from when submissions are taken, in Unix seconds; `null` without a limit.
        closes_at: until when.
        left_today: how many versions may still be handed in today; `null` without a limit.
        unsafe: what every student could read, where programs are not isolated; else empty.
    """

    owner: str | None
    most_bytes: int
    games: tuple[str, ...]
    languages: tuple[InstalledLanguage, ...]
    opens_at: float | None
    closes_at: float | None
    left_today: int | None
    unsafe: str = ""


class UploadTurn(Struct, frozen=True, tag_field="type", tag="turn"):
    """Other uploads are on; this one is at that position, from 1."""

    position: int


class Send(Struct, frozen=True, tag_field="type", tag="send"):
    """Send the bytes now, in pieces of at most `piece_bytes`, without waiting for each `got`."""

    piece_bytes: int


class Got(Struct, frozen=True, tag_field="type", tag="got"):
    """So many bytes have come so far."""

    bytes: int


class Progressing(Struct, frozen=True, tag_field="type", tag="progress"):
    """How far a submission is; comes again whenever that has changed.

    Attributes:
        submission: its number.
        state: `waiting`, `building`, `checking`, `accepted` or `refused`.
        step: of the check, or `build`; empty between steps.
        status: of the step: `begun`, `ok`, `FAILED`, `skipped` or `incomplete`.
        text: what was done, or what is wrong and what to do about it; when it is decided, what is
            in play now.
        position: in the queue, from 1; `null` when it is not waiting.
        expected_s: roughly how long until it is decided; `null` when that is not known.
        version: its number when it is accepted.
    """

    submission: int
    state: str
    step: str = ""
    status: str = ""
    text: str = ""
    position: int | None = None
    expected_s: float | None = None
    version: int | None = None


class EntryOf(Struct, frozen=True):
    """A submission in a list.

    Attributes:
        submission: its number in this arena.
        version: its number among the owner's, once it is accepted; else `null`.
        program: the SHA-256 of what was handed in.
        arrived_at: in Unix seconds.
        decided_at: when it was accepted or refused; else `null`.
        games: what it plays, once it is accepted.
        in_play: in which of these it is in play.
        text: why it was refused, or what was found.
        is_disabled: whether an instructor has taken it out.
    """

    submission: int
    owner: str
    version: int | None
    name: str
    message: str
    program: str
    bytes: int
    language: str
    state: str
    arrived_at: float
    decided_at: float | None
    games: tuple[str, ...]
    in_play: tuple[str, ...]
    text: str
    is_disabled: bool = False
    position: int | None = None
    expected_s: float | None = None


class InPlayEntry(Struct, frozen=True):
    """Which version of an owner is in play in a game, since when, and who has put it there."""

    owner: str
    game: str
    version: int
    at: float
    who: str


class SubmissionList(Struct, frozen=True, tag_field="type", tag="submissions"):
    """The answer to `list` and to what changes it; the latest first."""

    entries: tuple[EntryOf, ...]
    in_play: tuple[InPlayEntry, ...] = ()
    text: str = ""


class StderrOf(Struct, frozen=True):
    """The end of what a submitted bot wrote on stderr in a match."""

    match: str
    at: float
    version: int
    text: str


class LogText(Struct, frozen=True, tag_field="type", tag="log_text"):
    """The answer to `log`.

    Attributes:
        build: what the build wrote.
        check: the steps of the check, a line each, as `arena check` shows them.
        stderr: of the latest matches of its owner's submissions, the latest first.
    """

    submission: int
    build: str
    check: str
    stderr: tuple[StderrOf, ...]


class StarterFiles(Struct, frozen=True, tag_field="type", tag="starter_files"):
    """A starter's files by name, and the name of the one to be changed."""

    files: dict[str, str]
    edit: str


FromSubmitter: TypeAlias = (
    Enter
    | Submit
    | Piece
    | Abort
    | Follow
    | ListSubmissions
    | GetLog
    | Use
    | Download
    | Disable
    | Rebuild
    | GetStarter
)
ToSubmitter: TypeAlias = (
    Rules
    | UploadTurn
    | Send
    | Got
    | Progressing
    | SubmissionList
    | LogText
    | StarterFiles
    | Piece
    | Refused
)

_UNREADABLE = (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError)
"""All that the decoder raises, as in protocol/codec.py."""

_decode = msgspec.json.Decoder(FromSubmitter).decode
_decode_told = msgspec.json.Decoder(ToSubmitter).decode
_encode = msgspec.json.Encoder().encode


def decode_from_submitter(frame: bytes) -> FromSubmitter:
    """Decode the message in a frame that was sent to `/submit`.

    Raises:
        Oversize: the frame is longer than `FRAME_BYTES`.
        Malformed: it is not one message that may be sent there.
    """
    if len(frame) > FRAME_BYTES:
        raise Oversize(f"expected frames of at most {FRAME_BYTES} bytes, got {len(frame)}")
    try:
        message: FromSubmitter = _decode(frame)
    except _UNREADABLE as error:
        text = one_line(str(error))
        raise Malformed(text[:1].lower() + text[1:]) from None
    return message


def encode_to_submitter(message: ToSubmitter) -> bytes:
    """One message as a frame."""
    return _encode(message)


def decode_to_submitter(frame: bytes) -> ToSubmitter:
    """Decode the message in a frame of the arena; raises `Malformed` if that is impossible."""
    try:
        message: ToSubmitter = _decode_told(frame)
    except _UNREADABLE as error:
        raise Malformed(one_line(str(error))) from None
    return message


def encode_from_submitter(message: FromSubmitter) -> bytes:
    """One message as a frame."""
    return _encode(message)
