"""A transcript for people: a block of Markdown with one message per line, after its sender.

The pages protocol/*.md show conversations so, between a line `<!-- generated: transcript NAME -->`
and `<!-- end -->`. NAME is a file in `protocol/vectors/transcripts/`. After it may come `from
TYPE`, to begin with the first message of that type, and `as WORD`, which tells blocks of the same
game apart. The frames are those of the file, byte for byte. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from protocol.errors import UsageError

__all__ = ["frames_block", "transcript_block"]

_MARKS = {"arena": "arena>", "bot": "bot>  ", "event": "--    "}


class _Heading(msgspec.Struct, frozen=True):
    """The needed fields of a transcript's first line."""

    game: str


class _Typed(msgspec.Struct, frozen=True):
    """The needed fields of a message."""

    type: str


def transcript_block(what: str, read: Callable[[str], bytes]) -> str:
    """Make the block that a marker asks for, such as `GAME-4 from ask as practice`.

    `read` returns the bytes of a transcript by name. Raises `UsageError` if the marker is invalid,
    or the transcript has no message of that type.
    """
    name, *words = what.split() or ("", "")
    options = dict(zip(words[::2], words[1::2], strict=False))
    if len(words) % 2 or not options.keys() <= {"from", "as"}:
        raise UsageError(f"expected `NAME [from TYPE] [as WORD]` after `transcript`, got {what!r}")
    try:
        return frames_block(read(name), start=options.get("from", ""), tag=options.get("as", ""))
    except UsageError as error:
        raise UsageError(f"transcript {name}: {error}") from None


def frames_block(transcript: bytes, *, start: str = "", tag: str = "") -> str:
    """Make a fenced block of a transcript, without a final newline; `tag` follows the game's name.

    It begins with the first message of type `start`, or if that is empty, with the first of all.
    Raises `UsageError` if the bytes are not a transcript, or have no message of that type.
    """
    first, *rest = transcript.splitlines() or [b""]
    try:
        game = msgspec.json.decode(first, type=_Heading).game
        lines = list(_shown(rest, start))
    except msgspec.DecodeError as error:
        raise UsageError(f"expected a transcript: {error}") from None
    if not lines:
        raise UsageError(f"expected a message of type {start!r}, got none")
    fence = " ".join(filter(None, ("```frames", game, tag)))
    return "\n".join([fence, *lines, "```"])


def _shown(lines: list[bytes], start: str) -> Iterator[str]:
    """Yield the lines of the block, from the first message of type `start` on."""
    begun = not start
    for line in filter(None, lines):
        [(side, raw)] = msgspec.json.decode(line, type=dict[str, msgspec.Raw]).items()
        text = bytes(raw)
        if side == "event":
            text = msgspec.json.decode(text, type=str).encode()
        elif not begun:
            begun = msgspec.json.decode(text, type=_Typed).type == start
        if begun:
            yield f"{_MARKS[side]} {text.decode()}"
