"""The command: its groups, and what is compared in each."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import NamedTuple

import msgspec

from arena.games import GAMES
from protocol.codec import Encoding
from tests.tools.bench import game_rates
from tests.tools.bench.commit import installed
from tests.tools.bench.idle import idle_rows
from tests.tools.bench.processes import HERE, Program, Side, Tree, Window, in_turn
from tests.tools.bench.prototype import GAME, QUICK_BOT
from tests.tools.bench.rows import BenchRow, row_of, show
from tests.tools.trees import ROOT

_ROUNDS, _ROUNDS_AGAINST = 5, 15  # the interval then leaves out the three lowest and highest ratios
_SECONDS = 0.5
_IDLE = 5_000  # connections: ten large classes
_TABLES = (1, 64, 512, 2_048)
_TABLES_OF_A_BOT = 64  # at once: `arena serve` does not let it play more
_DELAY_MS = 20.0  # each way, as between two continents' edges
# Questions that a connection gets together. How many share a frame changes what each costs by half,
# and is else left to chance: two free processes stay for minutes with four or with eighteen.
_TOGETHER = 16
_PAIRINGS = 30_000  # of a round robin: more than all rounds play
_HANDS = 1_000  # of a match: its beginning and end cost next to nothing beside its decisions
_MANY_BOTS, _FEW_HANDS = 200, 2
_EXAMPLE = ROOT / "bots" / "examples" / "python"

_OUR_BOTS = """
import asyncio, os, sys
from bots.client import Client
from protocol.codec import Encoding
from protocol.strategy import find

async def main(game, bot, encoding, tables, bots):
    options = {"encoding": Encoding(encoding), "tables": int(tables)}
    strategies, url = {game: find(game, bot)}, os.environ["ARENA_URL"]
    names = [f"{bot}-{number}" for number in range(int(bots))]
    await asyncio.gather(*(Client(url, name, strategies, **options).run() for name in names))

asyncio.run(main(*sys.argv[1:]))
"""
"""Bots with our client, in one process. They decide at once: what is around them is measured."""

_EXAMPLE_BOT = f"""
import sys
sys.path.insert(0, {str(_EXAMPLE)!r})
import session
game, session.TABLES, encoding = sys.argv[1], int(sys.argv[2]), sys.argv[3]
sys.argv[1:] = ["--encoding", encoding]
session.play([game], lambda match: session.Player())
"""
"""The plain example, one bot; its player gives random answers."""


class _Turns(NamedTuple):
    """How often and for how long each side is measured, and the other commit, if there is one."""

    rounds: int
    seconds: float
    that: Tree | None
    idle: int


# --- servers and clients


def _arena(bots: int, hands: int, tree: Tree = HERE) -> Program:
    """`arena serve`, in which each two of these bots play many matches."""
    matches = -(-_PAIRINGS // (bots * (bots + 1) // 2))
    # Bots stand still while others are measured, which is no fault of theirs.
    words = (
        f"-m arena serve {GAME} --port 0 --db bench.db --players {bots} --matches {matches} "
        f"--set hands={hands} --per-address 1000000 --decision-ms 86400000 --hard-ms 86400000"
    )
    return Program(tuple(words.split()), tree)


def _prototype(*words: object) -> Program:
    return Program(("-m", "tests.tools.bench.prototype", *words))


def _thin(encoding: str, tables: int, bots: int, together: int) -> list[Program]:
    return [Program(("-m", "tests.tools.bench.thin", encoding, tables, bots, together))]


def _ours(encoding: str, tables: int, bots: int) -> list[Program]:
    return [Program(("-c", _OUR_BOTS, GAME, QUICK_BOT, encoding, tables, bots))]


def _connected(encoding: str, tree: Tree) -> list[Program]:
    """Two bots by `arena connect`, with as many matches as a bot may have."""
    words = f"-m arena connect {GAME} {QUICK_BOT} --no-session --encoding {encoding}"
    words += f" --tables {_TABLES_OF_A_BOT} --name"
    return [Program((*words.split(), name), tree) for name in ("one", "two")]


def _examples(encoding: str) -> list[Program]:
    words = ("-c", _EXAMPLE_BOT, GAME, _TABLES_OF_A_BOT, encoding)
    return [Program(words, env=(("ARENA_NAME", name),)) for name in ("one", "two")]


# --- groups


def _tables(turns: _Turns) -> Iterator[BenchRow]:
    for encoding, tables in product(Encoding, _TABLES):
        if turns.that is None or encoding is Encoding.JSON:
            yield from _matches_at_once(turns, encoding.value, tables)


def _delay(turns: _Turns) -> Iterator[BenchRow]:
    relay = Program(("-m", "tests.tools.bench.relay", _DELAY_MS))
    yield from _matches_at_once(turns, Encoding.JSON.value, _TABLES[-1], relay)


def _matches_at_once(
    turns: _Turns, encoding: str, tables: int, relay: Program | None = None
) -> Iterator[BenchRow]:
    """The server's CPU time and the time on the clock for a decision, by the number of matches."""
    bots = max(2, 2 * tables // _TABLES_OF_A_BOT)
    each = 2 * tables // bots
    together = min(tables, _TOGETHER * bots)
    what = f"{tables:,} matches, {encoding}{'' if relay is None else f', {_DELAY_MS:.0f} ms'}"
    thin, ours = _thin(encoding, each, bots, together), _ours(encoding, each, bots)
    if turns.that is not None:
        sides = [Side(_arena(bots, _HANDS, tree), thin, tables) for tree in (HERE, turns.that)]
        this, that = in_turn(sides, turns.rounds, turns.seconds)
        yield _server_row(what, this, turns.that.name, that)
        return
    arena, bare = _arena(bots, _HANDS), _prototype(tables, bots, 1)
    sides = [
        Side(server, clients, tables, relay) for clients in (thin, ours) for server in (arena, bare)
    ]
    if tables == 1:
        sides.append(Side(_prototype("echo"), _thin(encoding, 1, 1, 1), 1))
    this, that, this_ours, that_ours, *echo = in_turn(sides, turns.rounds, turns.seconds)
    yield _server_row(what, this, "prototype", that)
    yield _clock_row(what, this_ours, "prototype", that_ours)
    for each_us in echo:
        yield _clock_row(what, this, "echo", each_us)


def _matches(turns: _Turns) -> Iterator[BenchRow]:
    """A round robin of short matches between many bots, with its database."""
    thin = _thin(Encoding.JSON.value, 1, _MANY_BOTS, 1)
    trees = [HERE] if turns.that is None else [HERE, turns.that]
    sides = [Side(_arena(_MANY_BOTS, _FEW_HANDS, tree), thin, _MANY_BOTS // 4) for tree in trees]
    this, *that = in_turn(sides, turns.rounds, turns.seconds)
    what = f"round robin of {_MANY_BOTS} bots"
    # Thin bots always bet and always call: two decisions a hand.
    costs = [[turn.server_us * 2 * _FEW_HANDS for turn in own] for own in (this, *that)]
    beside = "" if turns.that is None else turns.that.name
    yield row_of(what, "µs of CPU a match", costs[0], beside, *costs[1:])


def _clients(turns: _Turns) -> Iterator[BenchRow]:
    """The clients' CPU time for a decision, at a prototype each, by which frames are alike."""
    server = _prototype(_TABLES_OF_A_BOT, 2, 2 * _TOGETHER)
    for encoding in Encoding:
        clients = {"arena connect": _connected(encoding.value, HERE)}
        if turns.that is None:
            clients["plain example"] = _examples(encoding.value)
            beside = "thin client"
            clients[beside] = _thin(encoding.value, _TABLES_OF_A_BOT, 2, 1)
        else:
            clients[beside := turns.that.name] = _connected(encoding.value, turns.that)
        sides = [Side(server, programs, _TABLES_OF_A_BOT) for programs in clients.values()]
        windows = in_turn(sides, turns.rounds, turns.seconds)
        costs = [[turn.client_us for turn in own] for own in windows]
        for client, own in zip(clients, costs[:-1], strict=False):
            what = f"{client}, {encoding.value}"
            yield row_of(what, "µs of CPU a decision", own, beside, costs[-1])


def _games(turns: _Turns) -> Iterator[BenchRow]:
    for name, game in GAMES.items():
        if turns.that is not None and game.package is not None:
            continue  # it is not installed there
        work = {
            "game": name,
            "seats": game.seats,
            "settings": game.bench.settings,
            "closes": game.vocabulary.closes.__name__,
        }
        peers = [peer for peer, games in game_rates.PEERS.items() if name in games]
        yield from _in_process(turns, name, json.dumps(work), peers)


def _deadwood(turns: _Turns) -> Iterator[BenchRow]:
    for hands in game_rates.DEADWOOD:
        yield from _in_process(turns, hands, hands, ["OpenSpiel"])


def _in_process(turns: _Turns, what: str, work: str, peers: Sequence[str]) -> Iterator[BenchRow]:
    """The CPU time of work in a process, of this tree and beside it, by turns."""
    sides = [("this", HERE)]
    if turns.that is not None:
        sides.append((turns.that.name, turns.that))
    else:
        sides += [
            (peer, HERE) for peer in peers if importlib.util.find_spec(game_rates.MODULES[peer])
        ]
    counts: list[list[dict[str, float]]] = [[] for _ in sides]
    for number in range(turns.rounds):
        pairs = list(zip(sides, counts, strict=True))
        for (side, tree), own in reversed(pairs) if number % 2 else pairs:
            is_peer = side in game_rates.MODULES
            own.append(
                _worked(tree, side if is_peer else "ours", what if is_peer else work, turns.seconds)
            )
    unit = "deals" if turns.that is None or not counts[0][0]["decisions"] else "decisions"
    costs = [[1e6 * each["cpu_s"] / each[unit] for each in own] for own in counts]
    if len(sides) == 1:
        yield row_of(f"{what} in process", f"µs of CPU a {unit[:-1]}", costs[0])
    for (side, _), own in zip(sides[1:], costs[1:], strict=True):
        yield row_of(f"{what} in process", f"µs of CPU a {unit[:-1]}", costs[0], side, own)


def _worked(tree: Tree, whose: str, work: str, seconds: float) -> dict[str, float]:
    words = [tree.python, "-P", game_rates.__file__, whose, work, str(seconds)]
    env = {**os.environ, "PYTHONPATH": tree.path}
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{work} of {whose} was to be timed: {done.stderr.strip()}")
    return dict(json.loads(done.stdout))


def _idle(turns: _Turns) -> Iterator[BenchRow]:
    return idle_rows(turns.idle, turns.rounds, 8 * turns.seconds)


def _server_row(what: str, this: Sequence[Window], beside: str, that: Sequence[Window]) -> BenchRow:
    costs = [[turn.server_us for turn in own] for own in (this, that)]
    return row_of(what, "µs of CPU a decision", costs[0], beside, costs[1])


def _clock_row(what: str, this: Sequence[Window], beside: str, that: Sequence[Window]) -> BenchRow:
    costs = [[turn.clock_us for turn in own] for own in (this, that)]
    return row_of(what, "µs a decision", costs[0], beside, costs[1])


_GROUPS: dict[str, Callable[[_Turns], Iterator[BenchRow]]] = {
    "tables": _tables,
    "delay": _delay,
    "matches": _matches,
    "clients": _clients,
    "games": _games,
    "deadwood": _deadwood,
    "idle": _idle,
}
_AGAINST = ("tables", "matches", "clients", "games")


# --- the command


def main(words: Sequence[str] | None = None) -> None:
    """Measure the groups, print each row as soon as it is there on stderr, and all at the end."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.bench", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(_GROUPS))
    parser.add_argument(
        "--against", metavar="COMMIT", help=f"compare with it: {', '.join(_AGAINST)}"
    )
    parser.add_argument(
        "--in", dest="folder", type=Path, help="the environment of that commit, made or used again"
    )
    parser.add_argument("--rounds", type=int, help="of turns of each side [5, against a commit 15]")
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="of a turn")
    parser.add_argument(
        "--idle", type=int, default=_IDLE, metavar="N", help="bots of the group idle"
    )
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(words)
    groups = asked.groups or [*(_AGAINST if asked.against else _GROUPS)]
    known = _AGAINST if asked.against else tuple(_GROUPS)
    if not {*groups} <= {*known}:
        parser.error(f"expected groups of {', '.join(known)}")
    rows = []
    with ExitStack() as stack:
        that = None
        if asked.against:
            that = stack.enter_context(installed(asked.against, asked.folder))
        rounds = asked.rounds or (_ROUNDS_AGAINST if that else _ROUNDS)
        turns = _Turns(rounds, asked.seconds, that, asked.idle)
        try:
            for group in groups:
                print(f"measuring {group}", file=sys.stderr)
                for row in _GROUPS[group](turns):
                    rows.append(row)
                    print(f"{row.what}: {row.this:.2f} {row.unit}", file=sys.stderr)
        except KeyboardInterrupt:  # what has been found is printed all the same
            print("interrupted", file=sys.stderr)
    if asked.json:
        print(json.dumps(msgspec.to_builtins(rows), ensure_ascii=False))
    else:
        show(rows)


if __name__ == "__main__":
    main()
