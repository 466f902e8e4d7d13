"""A bot that looks for what it must not see: `python spy.py`, with `targets.json` beside it.

It plays up to its third decision. Then it tries everything, prints the results as one line of JSON
on stderr, and exits with status 3. `targets.json` is an object with the paths of the arena's
`database` and of another bot's `scratch` directory, the `arena`'s process id, and the names of two
other bots: one that is `present`, one that is `awaited`.

What does not exist and what exists but is closed both count as out of reach; the result must never
be `got in`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

__all__ = ["GOT_IN", "look", "main"]

GOT_IN = "got in"
_WHEN = 3  # the decision


def main() -> None:
    targets = json.loads(Path("targets.json").read_text())
    asked = 0
    with arena() as websocket:
        say_hello(websocket, os.environ["ARENA_NAME"], token=os.environ["ARENA_TOKEN"])
        for message in map(json.loads, websocket):
            ids = {key: message[key] for key in ("match", "ask") if key in message}
            if message["type"] == "match":
                say(websocket, type="ready", nonce="007", **ids)
            elif message["type"] == "ask":
                asked += 1
                if asked == _WHEN:
                    print(json.dumps(look(targets)), file=sys.stderr, flush=True)
                    os._exit(3)
                say(websocket, type="answer", value=message["legal"][0], **ids)


def look(targets: dict[str, Any]) -> dict[str, Any]:
    """Try everything; the results by what was tried."""
    database, scratch = Path(targets["database"]), Path(targets["scratch"])
    arena_pid = targets["arena"]
    return {
        "read the database": tried(lambda: database.read_bytes()),
        "read its log": tried(lambda: Path(f"{database}-wal").read_bytes()),
        "write the database": tried(lambda: database.open("r+b").close()),
        "list a scratch directory": tried(lambda: os.listdir(scratch)),
        "write in it": tried(lambda: (scratch / "spy").touch()),
        "read the environment": tried(lambda: environment(arena_pid)),
        "signal the arena": tried(lambda: os.kill(arena_pid, 0)),
        "beside the bot": sorted(os.listdir()),
        "directories": len(os.listdir(Path.cwd().parent)),
        "strangers": strangers(),
        "be one who is present": comes_in(targets["present"]),
        "be one who is awaited": comes_in(targets["awaited"]),
        "be one with a used token": comes_in(targets["present"], token=os.environ["ARENA_TOKEN"]),
    }


def tried(deed: Callable[[], object]) -> str:
    try:
        deed()
    except OSError as error:
        return type(error).__name__
    return GOT_IN


# ---- Processes


def environment(pid: int | str) -> list[str]:
    return Path(f"/proc/{pid}/environ").read_text().split("\0")


def strangers() -> int:
    """The number of other bots' processes whose environment can be read."""
    count = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            variables = environment(pid)
            if any(variables) and f"ARENA_NAME={os.environ['ARENA_NAME']}" not in variables:
                count += 1
    return count


# ---- The arena


def arena() -> ClientConnection:
    return connect(os.environ["ARENA_URL"], compression=None)


def say(websocket: ClientConnection, **message: object) -> None:
    websocket.send(json.dumps(message))


def say_hello(websocket: ClientConnection, name: str, **more: object) -> None:
    games = ["ace_king_queen"]
    say(websocket, type="hello", protocol=1, name=name, games=games, **more)


def comes_in(name: str, **more: object) -> str:
    """The answer to a `hello` under a name: the code of a refusal, or `got in`."""
    with arena() as websocket:
        say_hello(websocket, name, **more)
        answer = json.loads(websocket.recv())
    if answer["type"] == "refused":
        return str(answer["code"])
    return GOT_IN if answer["bot"] == name else f"is called {answer['bot']}"


if __name__ == "__main__":
    main()
