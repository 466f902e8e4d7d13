"""Whole bots on pipes, which know nothing of ours; tests have them misbehave."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from arena.games.catalogue import GAMES

__all__ = ["INTERPRETER", "SHELL", "bot", "pipe_bot", "slow", "write_bots"]

INTERPRETER = shlex.quote(sys.executable)

_BOT = """
import json, os, sys, threading, time
def say(**message): print(json.dumps(message), flush=True)
{first}
say(type="hello", protocol=1, name="x", games={games}, tables={tables})
for line in sys.stdin:
    it = json.loads(line)
    {heard}
    if it["type"] == "match":
        {invited}
        say(type="ready", match=it["match"], nonce="n")
    elif it.get("legal"):  # also of an answer that was refused, in practice
        legal = it["legal"]
        {asked}
        say(type="answer", match=it["match"], ask=it["ask"], value={value})
"""


def pipe_bot(
    games: Sequence[str] = tuple(GAMES),
    *,
    tables: int = 1,
    first: str = "",
    heard: str = "pass",
    invited: str = "pass",
    asked: str = "pass",
    value: str = 'legal["min"] if isinstance(legal, dict) else legal[0]',
) -> str:
    """A bot that gives the first legal answer, or a `value`.

    `first`, `heard`, `invited` and `asked` are statements: at its start, at each message, which is
    `it`, at an invitation, and at a question, whose answers are `legal`.
    """
    invited, asked = ("\n        ".join(text.strip().splitlines()) for text in (invited, asked))
    return _BOT.format(
        games=[*games],
        tables=tables,
        first=first,
        heard=heard,
        invited=invited,
        asked=asked,
        value=value,
    )


SHELL = r"""
echo '{"type":"hello","protocol":1,"name":"'sh'","games":["ace_king_queen"]}'
field() { echo "$line" | sed -n 's/.*"'$1'":"\([^"]*\)".*/\1/p'; }
while read -r line; do
    match=$(echo "$line" | sed -n 's/.*"match":"\([^"]*\)".*/\1/p')
    case $line in
    *'"type":"match"'*) echo '{"type":"ready","match":"'$match'","nonce":"n"}' ;;
    *'"kind":"open"'*) value=check ;;
    *'"kind":"respond"'*) value=fold ;;
    esac
    case $line in *'"type":"ask"'*)
        echo '{"type":"answer","match":"'$match'","ask":"'$(field ask)'","value":"'$value'"}' ;;
    esac
done
"""


def slow(seconds: float, tables: int = 1) -> str:
    """A bot that waits so long before each answer."""
    return pipe_bot(tables=tables, asked=f"time.sleep({seconds})")


def write_bots(folder: Path, **texts: str) -> None:
    """Write bots, each to a file NAME.py."""
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)


def bot(file: str, name: str = "", kind: str = "stdio: ") -> tuple[str, str]:
    """The option that launches such a bot."""
    return "--bot", f"{name and name + '='}{kind}{INTERPRETER} {file}"
