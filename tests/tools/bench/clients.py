"""The servers and clients of the rows, as programs."""

from __future__ import annotations

from pathlib import Path

from protocol.codec import Encoding
from tests.tools.bench.processes import TREE, PythonProgram, module, source
from tests.tools.bench.prototype import GAME, QUICK_BOT

__all__ = [
    "arena_server",
    "echo",
    "example_bots",
    "our_bots",
    "prototype",
    "round_robin_server",
    "thin_bots",
]

_HANDS = 10_000_000  # of a match that is to outlast all rounds
_MEETINGS = 5  # of each two bots: more than all rounds play
# Bots stand still while others are measured, which is no fault of theirs.
_NO_HURRY_MS = 86_400_000
_MOST = 1_000_000  # bots from one address, which is this machine

_ARENA = """
import asyncio, gc, sys
from arena.competitions.live_arena import LiveArena
from arena.games import game_named
from arena.storage.store import Store
from arena.web.web import Web
from protocol.messages import Limits

async def main(game, tables, hands):
    game = game_named(game)
    settings = game.vocabulary.read_settings({"hands": int(hands)})
    limits = Limits(decision_ms=86_400_000, hard_ms=86_400_000, tables=4096)
    with Store("bench.db") as store:
        async with LiveArena(store, limits=limits, page=Web) as host:
            print("an arena at", host.url, flush=True)
            while len(names := host.here.names(game.name)) < 2:
                await host.wait_for_change()
            gc.freeze()
            gc.set_threshold(10_000)  # as `arena serve` does
            players = [host.gateway.players[name] for name in names]
            for _ in range(int(tables)):
                host.referee.open(game, settings, players, limits, lambda *_: None)
            await asyncio.Event().wait()

asyncio.run(main(*sys.argv[1:]))
"""
"""An arena that plays a given number of matches between two bots; `arena serve` lets a bot play 64.

It is text, so that it can run in another tree, and because it puts the page on the arena, as the
command does. It uses only what earlier commits have, too."""

_OUR_BOTS = """
import asyncio, importlib, os, sys
from bots.client import Client
from protocol.codec import Encoding

async def main(game, bot, encoding, tables):
    module, _, name = bot.partition(":")
    options = {"encoding": Encoding(encoding), "tables": int(tables)}
    strategies = {game: getattr(importlib.import_module(module), name)}
    url = os.environ["ARENA_URL"]
    bots = [Client(url, name, strategies, **options) for name in ("one", "two")]
    await asyncio.gather(*(bot.run() for bot in bots))

asyncio.run(main(*sys.argv[1:]))
"""
"""Two bots with a connection each. They decide at once, because what is around them is measured.

It is text, because the arena imports no bots."""

_EXAMPLE_BOT = """
import sys
from pathlib import Path
import bots
sys.path.insert(0, str(Path(bots.__file__).parent / "examples" / "python"))
import session
game, session.TABLES, encoding = sys.argv[1], int(sys.argv[2]), sys.argv[3]
sys.argv[1:] = ["--encoding", encoding]
session.play([game], lambda match: session.Player())
"""
"""The plain example, one bot; its player gives random answers."""


def arena_server(tables: int, tree: Path = TREE) -> PythonProgram:
    """An arena in which the first two bots play `tables` long matches."""
    return source(_ARENA, GAME, tables, _HANDS)._replace(tree=tree)


def round_robin_server(bots: int, hands: int, tree: Path = TREE) -> PythonProgram:
    """`arena serve`, in which each two of `bots` bots play many short matches."""
    words: tuple[object, ...] = (
        *("-m", "arena", "serve", GAME, "--port", 0, "--db", "bench.db"),
        *("--players", bots, "--matches", _MEETINGS, "--set", f"hands={hands}"),
        *("--per-address", _MOST, "--decision-ms", _NO_HURRY_MS, "--hard-ms", _NO_HURRY_MS),
    )
    return PythonProgram(tuple(map(str, words)), tree)


def prototype(tables: int, together: int = 1) -> PythonProgram:
    """The bare match server; it asks `together` questions at a time."""
    return module("tests.tools.bench.prototype", tables, _HANDS, together)


def echo() -> PythonProgram:
    """The server that asks the same again."""
    return module("tests.tools.bench.prototype", "echo")


def our_bots(encoding: Encoding, tables: int, tree: Path = TREE) -> list[PythonProgram]:
    """Two bots with our client, in one process."""
    return [source(_OUR_BOTS, GAME, QUICK_BOT, encoding.value, tables)._replace(tree=tree)]


def thin_bots(
    encoding: Encoding, tables: int, bots: int = 2, together: int = 1
) -> list[PythonProgram]:
    """Bots with next to no client, in one process, that answer `together` questions at a time."""
    return [module("tests.tools.bench.thin", encoding.value, tables, bots, together)]


def example_bots(encoding: Encoding, tables: int) -> list[PythonProgram]:
    """Two bots with the plain Python example's client, each a process."""
    one = source(_EXAMPLE_BOT, GAME, tables, encoding.value)
    return [one.with_env(ARENA_NAME=name) for name in ("one", "two")]
