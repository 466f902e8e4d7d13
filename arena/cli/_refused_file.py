"""Says in three lines why a FILE.py was refused: what happened, in which line, and what to do.

The failed step describes a fault by frames and standard error, as for any program. The author of
a strategy has neither sent nor seen a frame.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from protocol.errors import error_line, one_line

__all__ = ["three_lines"]

_PARTS = re.compile(r"^ *(sent|expected|came|hint): +(.*)$", re.MULTILINE)
_STDERR = "the end of its standard error:"
_MISSING = re.compile(r"No module named '([\w.]+)'")
_RAISED_IN = re.compile(r'File "([^"]+)", line (\d+)(?:, in (\S+))?')
_LEGAL = "a legal answer to "
_LONGEST = 300
_MEND = "mend that; `arena play` with the file and a house bot shows the same"


class _Answer(msgspec.Struct, frozen=True):
    value: object


def three_lines(step: str, text: str, file: Path) -> tuple[str, str, str]:
    """Return what happened at the failed step, where in the file, and what to do about it."""
    parts = dict(_PARTS.findall(text))
    stderr = text.partition(_STDERR)[2]
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # the file was moved in the meantime
        lines = []
    wrote = error_line(stderr).removeprefix("arena: ")
    if missing := _MISSING.search(wrote):
        name = missing[1]
        what = f"there is no module {name!r} where the arena runs your bot"
        where = _line(file, lines, rf"\s*(import|from)\s+{re.escape(name)}\b")
        todo = f"do without {name}, or ask your instructor to install it for the arena's Python"
    elif raised := [at for at in _RAISED_IN.findall(stderr) if Path(at[0]).name == file.name]:
        _, number, method = raised[-1]
        what, todo = wrote, _MEND
        where = _numbered(file, lines, int(number), f", in {method}" if method else "")
    elif named := re.search(rf"{re.escape(file.name)}(?::|, line )(\d+)", wrote):  # by our code
        what, where, todo = wrote, _numbered(file, lines, int(named[1])), _MEND
    elif parts.get("expected", "").startswith(_LEGAL):
        kind, _, legal = parts["expected"].removeprefix(_LEGAL).partition(": ")
        what = f"your bot answered {_value(parts.get('came', ''))} to {kind}; legal: {legal}"
        where = _line(file, lines, rf"\s*def ((\w+_)?{re.escape(kind)}|decide)\b")
        todo = parts.get("hint", "")
    elif wrote:
        what, where, todo = wrote, file.name, _MEND
    else:
        came = parts.get("came", "nothing came")
        what = f"{step}: expected {parts.get('expected', 'more')}; {came}"
        where, todo = file.name, parts.get("hint", "")
    return one_line(what, _LONGEST), one_line(where, _LONGEST), one_line(todo, _LONGEST)


def _value(came: str) -> str:
    """Return the answer in a bot's message, as JSON."""
    try:
        message = came.rpartition("}")[0] + "}"
        value = msgspec.json.decode(message, type=_Answer).value
    except msgspec.MsgspecError:
        return "something else"
    return msgspec.json.encode(value).decode()


def _line(file: Path, lines: list[str], pattern: str) -> str:
    """Return the first matching line with its number, or the file's name if none matches."""
    numbers: Iterator[int] = (at for at, line in enumerate(lines, 1) if re.match(pattern, line))
    number = next(numbers, None)
    return file.name if number is None else _numbered(file, lines, number)


def _numbered(file: Path, lines: list[str], number: int, within: str = "") -> str:
    text = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return f"{file.name} line {number}{within}: {text}"
