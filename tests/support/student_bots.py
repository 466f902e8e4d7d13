"""House bots under students' names, in one process: `-m tests.support.student_bots FILE --url URL`.

The file is a list of {name, token, tables, bots: {game: house bot}, pause_s: before each decision}.
Every student has a connection
of its own, with our client: it plays all its games over that, and comes back by itself when the
connection is lost. A bot may also be a rogue of `bots/rogues.py`;
one that ends its process belongs into a process of its own. Nothing of the arena is imported.

SIGTERM says goodbye for all. The exit status is 1 if a student could not go on; stderr says why.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

from bots.client import Client, StrategyFailed
from bots.rogues import rogue
from protocol.errors import ArenaError, Unreachable
from protocol.strategy import find

__all__ = ["client_of", "main", "student"]

_PATIENCE_S = 120.0  # for an arena that is away
_PAUSE_S = 0.5
_PATIENCE = 3  # decisions: who plays blackjack at random may be broke before the usual ten


def student(
    name: str,
    bots: dict[str, str],
    *,
    tables: int = 4,
    token: str | None = None,
    pause_s: float = 0.0,
) -> dict[str, Any]:
    """A student as it stands in the file."""
    return {"name": name, "token": token, "tables": tables, "bots": bots, "pause_s": pause_s}


def client_of(student: dict[str, Any], url: str) -> Client:
    """The client that plays for a student."""
    pause_s = student["pause_s"]
    strategies = {game: _strategy(game, bot, pause_s) for game, bot in student["bots"].items()}
    return Client(
        url,
        student["name"],
        strategies,
        token=student["token"],
        tables=student["tables"],
        patience_s=_PATIENCE_S,
        on_event=lambda line: None,
    )


def _strategy(game: str, bot: str, pause_s: float) -> type[Any]:
    if not bot.startswith("rogue-"):
        quick = find(game, bot)

        class Thinking(quick):  # type: ignore[misc, valid-type]
            def decide(self, question: Any) -> object:
                time.sleep(pause_s)
                return super().decide(question)

        return Thinking if pause_s else quick
    cls = rogue(game, bot)
    cls.PATIENCE = _PATIENCE  # a class of its own, made for this game just now
    return cls


async def _play(student: dict[str, Any], url: str) -> bool:
    """Play until the arena closes; whether it went well."""
    end = time.monotonic() + _PATIENCE_S
    while True:
        try:
            await client_of(student, url).run()
        except Unreachable as error:  # it may be killed before it has ever been reached
            if time.monotonic() < end:
                await asyncio.sleep(_PAUSE_S)
                continue
            why: Exception = error
        except (ArenaError, StrategyFailed) as error:
            why = error
        else:
            return True
        print(f"{student['name']}: {why}", file=sys.stderr, flush=True)
        return False


async def _play_all(students: list[dict[str, Any]], url: str) -> bool:
    me = asyncio.current_task()
    assert me is not None, "we run in one"
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, me.cancel)
    return all(await asyncio.gather(*(_play(one, url) for one in students)))


def main() -> int:
    """Read the command line and play."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--url", required=True)
    options = parser.parse_args()
    students = json.loads(options.file.read_text(encoding="utf-8"))
    with contextlib.suppress(asyncio.CancelledError):
        return int(not asyncio.run(_play_all(students, options.url)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
