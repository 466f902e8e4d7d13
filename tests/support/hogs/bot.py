"""A whole bot in one file: `python bot.py [DEED]`.

It plays the first legal answer, and at its third decision does its deed. It speaks the protocol in
lines over its standard input and output, with the standard library alone. The bots in JavaScript,
Java and C++ beside it have the same deeds:

- `hello`: none, it plays; `slow`: it sleeps a little in every decision;
- `hog`: it takes 320 MiB and plays on; `crash`: it says why on stderr and exits with status 1;
- `spin`: it computes for ever; `stall`: it sleeps for ever; `ponder`: from then on it computes
  while the others decide.

It imports nothing of the arena, like a bot of an author who has only read the protocol.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

__all__ = ["HOARD_MIB", "LAST_WORDS", "main"]

HOARD_MIB = 320
LAST_WORDS = "it was the butler"
_WHEN = 3  # the decision
_SLOW_S = 0.5

_hoard: list[bytes] = []

Message = dict[str, Any]


def say(message: Message) -> None:
    print(json.dumps(message), flush=True)


def main(deed: str) -> None:
    """Play until the arena ends the connection."""
    name = os.environ.get("ARENA_NAME", "bot")
    games = ["ace_king_queen"]
    say({"type": "hello", "protocol": 1, "name": name, "games": games, "tables": 16})
    asked = 0
    for message in map(json.loads, sys.stdin):
        if message["type"] == "match":
            say({"type": "ready", "match": message["match"], "nonce": "python"})
        elif message["type"] == "ask":
            asked += 1
            if deed == "slow":
                time.sleep(_SLOW_S)
            elif asked == _WHEN and deed in DEEDS:
                DEEDS[deed]()
            legal = message["legal"]
            value = legal["min"] if isinstance(legal, dict) else legal[0]
            ids = {"match": message["match"], "ask": message["ask"]}
            say({"type": "answer", **ids, "value": value})


# ---- Deeds


def hog() -> None:
    """Take memory, in small pieces, and keep it."""
    for _ in range(HOARD_MIB // 8):
        _hoard.append(b"x" * (8 << 20))
        time.sleep(0.002)


def crash() -> None:
    print(LAST_WORDS, file=sys.stderr, flush=True)
    sys.exit(1)


def spin() -> None:
    """Compute for ever."""
    while True:
        pass


def stall() -> None:
    """Sleep for ever."""
    threading.Event().wait()


def ponder() -> None:
    """Compute for ever, in another thread."""
    threading.Thread(target=spin, daemon=True).start()


DEEDS = {"hog": hog, "crash": crash, "spin": spin, "stall": stall, "ponder": ponder}


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["hello"]))
