"""Finds what is wrong with a bot's message in `arena check`, and the hint that fits. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from arena.authoring.conformance import Hint
from arena.games.verdict import Finding
from protocol.codec import Encoding
from protocol.errors import Oversize, ProtocolError, one_line
from protocol.games import VOCABULARIES
from protocol.messages import VERSION, Answer, BotMessage, Ending, Hello
from protocol.vocabulary import Question

__all__ = [
    "GENERIC",
    "blame_of_answer",
    "blame_of_frame",
    "blame_of_hello",
    "blame_of_process",
    "blame_of_turn",
    "in_a_line",
    "is_garbled",
    "last_lines",
    "messages_of",
    "readable",
]

_LINE = 300  # characters shown of a frame
_CLIENT, _UNUSABLE = "arena: ", 2  # our client's prefix and exit status for an unusable FILE.py
_LAST_LINES = 5  # Java, Perl and Ruby print the cause above the stack

# These hints only say how something went wrong; the step that provoked it knows why.
GENERIC = frozenset(
    {
        Hint.SILENT,
        Hint.CRASHED,
        Hint.LEFT,
        Hint.NOT_READY,
        Hint.ILLEGAL,
        Hint.WRONG_ASK,
        Hint.OUT_OF_TURN,
        Hint.NO_MESSAGE,
        Hint.NOT_BACK,
    }
)


def in_a_line(frame: bytes) -> str:
    """Show a frame in one line, shortened if it is long."""
    return one_line(frame.decode(errors="replace"), _LINE)


def readable(frame: bytes, encoding: Encoding) -> bytes:
    """Convert a frame to JSON for people; an unreadable frame stays as it is."""
    if encoding is Encoding.JSON:
        return frame
    try:
        return msgspec.json.encode(msgspec.msgpack.decode(frame))
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
        return frame


def messages_of(frame: bytes, count: int) -> Sequence[bytes]:
    """Split a JSON frame into its `count` messages, each as it came."""
    if frame.lstrip()[:1] != b"[":
        return [frame]
    parts = msgspec.json.decode(frame, type=list[msgspec.Raw])
    assert len(parts) == count, "it was read before"
    return [bytes(part) for part in parts]


def blame_of_frame(error: ProtocolError, frame: bytes, *, is_stdio: bool) -> Hint:
    """Return the hint for a frame that cannot be read."""
    text = str(error)
    if isinstance(error, Oversize):
        return Hint.OVERSIZE
    if is_stdio and frame.lstrip()[:1] not in (b"{", b"["):
        return Hint.PRINTS
    if "got `float`" in text:
        return Hint.NUMBERS
    if "unknown field" in text:
        return Hint.UNKNOWN_TO_US
    if "`$.games" in text:
        return Hint.GAMES
    return Hint.NO_MESSAGE


def blame_of_hello(
    hello: Hello, *, token: str | None, before: Hello | None
) -> tuple[str, Hint] | None:
    """Return what a `hello` after `before` should have said, and the hint; None if it is right."""
    if hello.protocol != VERSION:
        return f'"protocol":{VERSION}', Hint.VERSION
    if unknown := [game for game in hello.games if game not in VOCABULARIES]:
        return f"games that there are, and not {unknown[0]!r}", Hint.GAMES
    if token is not None and hello.token != token:
        return 'the "token" that ARENA_TOKEN says', Hint.TOKEN
    if before is not None and hello.name != before.name:
        return f'"name":"{before.name}", as before', Hint.SAME_NAME
    return None


def is_garbled(said: str, name: str, *, is_utf8: bool) -> bool:
    """Whether `said` is the name in ARENA_NAME with lost or garbled non-ASCII letters.

    A name that the bot has chosen itself is fine. If the environment is not UTF-8, many programs
    cannot read such letters, so question marks in their place are fine.
    """
    if said == name or _plain(said) != _plain(name):
        return False
    letters = {letter for letter in said if not letter.isascii() or letter == "?"}
    return is_utf8 or not letters <= _UNREADABLE


_UNREADABLE = frozenset("?\N{REPLACEMENT CHARACTER}")


def _plain(name: str) -> str:
    return "".join(char for char in name if char.isascii() and char != "?")


def blame_of_turn(message: BotMessage) -> Hint:
    """Return the hint for a message that may not be sent now."""
    return Hint.WRONG_ASK if isinstance(message, Answer) else Hint.OUT_OF_TURN


def blame_of_answer(question: Question[Any], value: object) -> Hint:
    """Return the hint for an illegal answer: a wrong type, such as 4.0 or "4" for 4, or another.

    If `legal` does not list the answers and the question can name the fault, the hint is its own.
    """
    if not question.mistypes(value):
        return Hint.ILLEGAL if question.fault(value) is None else Hint.FAULT
    return Hint.NUMBERS if isinstance(value, float) else Hint.STRINGS


def blame_of_process(finding: Finding, usual: Hint) -> tuple[str, Hint, str]:
    """Return how a process ended in words, the hint, and the end of its standard error."""
    hint = {Ending.MEMORY: Hint.MEMORY, Ending.PROCESSES: Hint.PROCESSES}
    said = last_lines(finding.stderr or "")
    is_ours = said.rpartition("\n")[2].startswith(_CLIENT)
    if usual is Hint.DIED and finding.exit_status == _UNUSABLE and is_ours:
        usual = Hint.NOT_LOADED
    return f"its process: {finding.text}", hint.get(finding.kind, usual), said


def last_lines(stderr: str) -> str:
    """Return the last five non-empty lines of standard error."""
    lines = [line.rstrip() for line in stderr.splitlines() if line.strip()]
    return "\n".join(lines[-_LAST_LINES:])
