"""What is wrong with what a bot of `arena check` has said, and which hint fits: pure, so that every hint has its test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from arena.check import Hint
from arena.verdict import Finding
from protocol.errors import IllegalAnswer, Oversize, ProtocolError, one_line
from protocol.games import VOCABULARIES
from protocol.messages import VERSION, Answer, ArenaMessage, BotMessage, Ending, Hello
from protocol.vocabulary import Question

__all__ = [
    "GENERIC",
    "blame_of_answer",
    "blame_of_frame",
    "blame_of_hello",
    "blame_of_process",
    "blame_of_turn",
    "in_a_line",
]

LINE = 300  # of what is shown of a frame

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
"""Hints that only say how something went wrong: a step that has provoked it knows better why."""


def in_a_line(message: BotMessage | ArenaMessage | bytes) -> str:
    """A message or a frame, cut to a line."""
    if isinstance(message, bytes):
        return one_line(message.decode(errors="replace"), LINE)
    return one_line(msgspec.json.encode(message).decode(), LINE)


def blame_of_frame(error: ProtocolError, frame: bytes, *, is_stdio: bool) -> Hint:
    """Why a frame cannot be read."""
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
    """What a `hello` should have said, and why it did not; None if it is fine.

    Args:
        hello: what came.
        token: what it was given; None if it was given none.
        before: the one of its last connection, if it had one.
    """
    if hello.protocol != VERSION:
        return f'"protocol":{VERSION}', Hint.VERSION
    if unknown := [game for game in hello.games if game not in VOCABULARIES]:
        return f"games that there are, and not {unknown[0]!r}", Hint.GAMES
    if token is not None and hello.token != token:
        return 'the "token" that ARENA_TOKEN says', Hint.TOKEN
    if before is not None and hello.name != before.name:
        return f'"name":"{before.name}", as before', Hint.SAME_NAME
    return None


def blame_of_turn(message: BotMessage) -> Hint:
    """Why a message may not be sent now."""
    return Hint.WRONG_ASK if isinstance(message, Answer) else Hint.OUT_OF_TURN


def blame_of_answer(question: Question[Any], value: object) -> Hint:
    """Why an answer is not legal: 4.0, "4" and true instead of 4 are of the wrong type, anything else is another answer."""
    meant = value
    if isinstance(value, Mapping):
        meant = {key: _TRUTH.get(str(field), field) for key, field in value.items()}
    elif isinstance(value, str):
        try:
            meant = msgspec.json.decode(value)
        except (ValueError, RecursionError):
            return Hint.ILLEGAL
    elif isinstance(value, bool):
        meant = int(value)
    if isinstance(meant, float) and meant.is_integer():
        meant = int(meant)
    try:
        question.check(meant)
    except IllegalAnswer:
        return Hint.ILLEGAL
    return Hint.NUMBERS if isinstance(value, float) else Hint.STRINGS


_TRUTH: Mapping[str, bool | None] = {
    "true": True,
    "True": True,
    "1": True,
    "false": False,
    "False": False,
    "0": False,
    "null": None,
    "None": None,
}
"""What texts and numbers in an answer's map stand for in languages that have no truth values, or write them as texts."""


def blame_of_process(finding: Finding, usual: Hint = Hint.CRASHED) -> tuple[str, Hint]:
    """What became of a process, with the end of what it wrote, and why."""
    last = one_line((finding.stderr or "").strip().rpartition("\n")[2], LINE)
    said = f"; the last line on its standard error: {last}" if last else ""
    hint = {Ending.MEMORY: Hint.MEMORY, Ending.PROCESSES: Hint.PROCESSES}
    return f"its process: {finding.text}{said}", hint.get(finding.kind, usual)
