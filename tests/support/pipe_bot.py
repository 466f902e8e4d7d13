"""The text of a whole bot on pipes, which knows nothing of ours; tests have it misbehave."""

from __future__ import annotations

from collections.abc import Sequence

from arena.games.catalogue import GAMES

__all__ = ["pipe_bot"]

_BOT = """
import json, os, sys, threading, time
def say(**message): print(json.dumps(message), flush=True)
{first}
say(type="hello", protocol=1, name="x", games={games}, tables={tables})
for line in sys.stdin:
    it = json.loads(line)
    if it["type"] == "match":
        {invited}
        say(type="ready", match=it["match"], nonce="n")
    elif it["type"] == "ask":
        legal = it["legal"]
        {asked}
        say(type="answer", match=it["match"], ask=it["ask"], value={value})
"""


def pipe_bot(
    games: Sequence[str] = tuple(GAMES),
    *,
    tables: int = 1,
    first: str = "",
    invited: str = "pass",
    asked: str = "pass",
    value: str = 'legal["min"] if isinstance(legal, dict) else legal[0]',
) -> str:
    """A bot that gives the first legal answer, or a `value`.

    `first`, `invited` and `asked` are statements: at its start, at an invitation, which is `it`,
    and at a question, whose answers are `legal`.
    """
    invited, asked = ("\n        ".join(text.strip().splitlines()) for text in (invited, asked))
    return _BOT.format(
        games=[*games], tables=tables, first=first, invited=invited, asked=asked, value=value
    )
