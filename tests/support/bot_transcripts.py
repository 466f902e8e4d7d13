"""Golden transcripts of what speaks to an arena for a bot: `tests/bots/*.cases`.

A case is a paragraph `== TITLE`, line by line:

    with OPTION=…     options; `file` is a session file
    plays / fails at  what the strategy answers always, or where it raises
    > …; …            a connection: what the arena says in it, frame by frame, and what happens there
    < …; …            what was said to the arena in it; `=legal` may be left out
    fails | speaks no HTTP   nobody answers there, or no arena
    hears, noted, overs      what a program or each strategy has heard, and which matches were over
    tells TEXT | …    parts of what is told, in that order; `silent` is nothing at all
    raises, closed           how it ends, and with which code
    kept, gone               what is left of the file

A connection ends with `close CODE`. In it `finish` and `stop` are the first and the second Ctrl-C,
`says WORD` is what a program says; a client's process is killed at `kill`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from websockets.exceptions import InvalidMessage

from protocol.messages import Refused
from tests.support.cases import paragraphs
from tests.support.scripted_connection import (
    NEWS,
    ScriptedConnection,
    ask,
    competition_over,
    match,
    over,
    past,
    welcome,
)

__all__ = ["BotTranscript", "transcripts"]


def spoken(text: str) -> Any:
    """What a word of a transcript is: `ask m:1 +news`, `close 1006`, `[match m, ask m:1]`."""
    if text.startswith("["):
        return [spoken(part) for part in text.strip("[]").split(", ")]
    kind, *rest = text.split()
    plus = {word for word in rest if word.startswith("+")}
    name, _, number = next((word for word in rest if word not in plus), "").partition(":")
    news = (NEWS,) if "+news" in plus else ()
    match kind:
        case "welcome":
            return welcome(name or "secret", finish="+finish" in plus)
        case "practice":
            return msgspec.structs.replace(welcome(), practice=True)
        case "match":
            return match(name)
        case "ask":
            return ask(int(number), name, news)
        case "past":
            return past(int(number), name)
        case "over":
            return over(name, news)
        case "standing":
            return competition_over()
        case "illegal":
            legal = None if "without" in rest else ("bet", "check")
            return Refused(kind, "answered 'raise' to open", name, f"{name}:{number}", legal)
        case "refused":
            return Refused(name, "refused")
    return int(name)


def as_written(said: dict[str, Any], legal: tuple[str, ...]) -> str:
    """A message to the arena as transcripts have it."""
    match said["type"]:
        case "hello":
            resumed = [
                f"{key}={said[key]}" for key in ("resume", "from") if said.get(key) is not None
            ]
            return " ".join(("hello", *resumed))
        case "ready":
            return f"ready {said['match']}"
        case "answer":
            value = "legal" if said["value"] in legal else said["value"]
            return f"answer {said['ask']}={value}"
        case "goodbye":
            return "goodbye finish" if said.get("finish") else "goodbye"
    return str(said["type"])


class BotTranscript:
    """A case.

    Attributes:
        chosen: answers of which it does not matter which is given.
        events: what was told to people.
        speaker: what is tried, once it is made.
    """

    chosen: tuple[str, ...] = ("bet", "check")
    speaker: Any
    stop: Callable[[], object]

    def __init__(self, title: str, lines: list[str]) -> None:
        self.title = title
        self.lines = lines
        self.events: list[str] = []

    def __repr__(self) -> str:
        return self.title.replace(" ", "_")

    def all(self, first: str) -> list[str]:
        """The rest of all lines that begin so."""
        found = [line for line in self.lines if line.split()[0].partition("*")[0] == first]
        return [line.removeprefix(first).strip() for line in found]

    def options(self, file: Path | None = None) -> dict[str, Any]:
        """Those of the case, and where its events go."""
        chosen: dict[str, Any] = {"on_event": self.events.append}
        for word in " ".join(self.all("with")).split():
            name, _, value = word.partition("=")
            chosen |= {"session_file": file} if name == "file" else {name: float(value)}
        return chosen

    def lines_to(
        self, usual: type[ScriptedConnection], killed: type[ScriptedConnection]
    ) -> list[Any]:
        """What it gets to when it connects, time after time."""
        found: list[Any] = []
        self._said: list[tuple[ScriptedConnection, str]] = []
        for line in self.lines:
            if line.startswith("> "):
                words = line[2:].split("; ")
                kind = killed if words[-1] == "kill" else usual
                found.append(kind(*(self._step(word) for word in words if word != "kill")))
            elif line.startswith("< "):
                self._said.append((found[-1], line[2:]))
            elif line.startswith("fails") and " at " not in line:
                found += [OSError("refused")] * int(line.partition("*")[2] or 1)
            elif line.startswith("speaks "):
                found.append(InvalidMessage("no HTTP"))
        self.connections = found
        return found

    def says(self, word: str) -> Callable[[], object]:
        """A step: a program says this now."""
        raise NotImplementedError

    def _step(self, word: str) -> Any:
        if word == "finish":
            return lambda: self.speaker.finish()
        if word == "stop":
            return lambda: self.stop()
        if word.startswith("says "):
            return self.says(word.removeprefix("says "))
        return spoken(word)

    def check(self, overs: list[str]) -> None:
        """What was said and told, and how the last connection ended."""
        for connection, expected in self._said:
            shown = "; ".join(as_written(message, self.chosen) for message in connection.messages())
            assert expected in (shown, shown.replace("=legal", "")), self.title
        for reason in self.all("closed"):
            assert str(self.connections[-1].closed).startswith(f"({reason}")
        if self.all("overs"):
            assert " ".join(overs) == self.all("overs")[0]
        rest = iter(self.events)
        for text in filter(None, " | ".join(self.all("tells")).split(" | ")):
            assert any(text in event for event in rest), f"{text} in {self.events}"
        if "silent" in self.lines:
            assert self.events == []

    def said(self, kind: str) -> Iterator[Any]:
        """All messages of a kind in the connections whose words are in the case."""
        for connection, _ in self._said:
            yield from connection.said(kind)


def transcripts(kind: type[BotTranscript], file: Path) -> pytest.MarkDecorator:
    """The cases of a file, as parameters of a test."""
    cases = paragraphs(file)
    del cases[""]
    return pytest.mark.parametrize(
        "transcript", [kind(title, lines) for title, lines in cases.items()], ids=repr
    )
