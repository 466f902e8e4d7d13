"""The command: its groups, and what is compared in each."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from typing import NamedTuple

import msgspec

from arena.games.catalogue import GAMES
from arena.server.listener import most_files
from protocol.codec import Encoding
from tests.tools import bench
from tests.tools.bench import game_rates
from tests.tools.bench.bare import GAME, QUICK_BOT
from tests.tools.bench.processes import (
    HERE,
    START_S,
    MeasuredProgram,
    MeasuredSide,
    Running,
    Tree,
    figure,
    in_turn,
    installed,
    running,
    until,
)
from tests.tools.bench.rows import BenchRow, row_of, show

_TABLES = (1, 64, 512, 2_048)
_TABLES_OF_A_BOT = 64  # at once: `arena serve` does not let it play more
# Questions that a connection gets together. How many share a frame changes what each costs by half,
# and is else left to chance: two free processes stay for minutes with four or with eighteen.
_TOGETHER = 16
_PAIRINGS = 30_000  # of a round robin: more than all rounds play
_HANDS = 1_000  # of a match: its beginning and end cost next to nothing beside its decisions
_MANY_BOTS, _FEW_HANDS = 200, 2
_FIRST_IDLE = 20  # not counted, as the first connections cost more, once and for all
_SETTLE_S = 2.0  # for the pings that measure the links
_CONNECTS_PER_S = 50  # at least, on a machine that has other work, too
_CPU = "µs of CPU a decision"
_BARE = ("-m", "tests.tools.bench.bare")


class _Turns(NamedTuple):
    """How often and for how long each side is measured, and the other commit, if there is one."""

    rounds: int
    seconds: float
    that: Tree | None
    tables: tuple[int, ...]
    idle: int

    def beside(self) -> list[tuple[str, Tree]]:
        """The other commit with its name; nothing without one."""
        return [] if self.that is None else [(self.that.name, self.that)]

    def costs(self, *sides: MeasuredSide) -> list[list[list[float]]]:
        """What each side cost in each round: on the clock, of the server, of its clients."""
        windows = in_turn(sides, self.rounds, self.seconds)
        return [[[turn[cost] for turn in own] for own in windows] for cost in range(3)]


# --- servers and clients


def _arena(bots: int, hands: int, tree: Tree = HERE) -> MeasuredProgram:
    """`arena serve`, in which each two of these bots play many matches."""
    matches = -(-_PAIRINGS // (bots * (bots + 1) // 2))
    # Bots stand still while others are measured, which is no fault of theirs.
    words = (
        f"-m arena serve {GAME} --port 0 --db bench.db --players {bots} --matches {matches} "
        f"--set hands={hands} --per-address 1000000 --decision-ms 86400000 --hard-ms 86400000"
    )
    return MeasuredProgram(tuple(words.split()), tree)


def _prototype(tables: int, bots: int, together: int) -> MeasuredProgram:
    return MeasuredProgram((*_BARE, "server", tables, bots, together))


def _thin(encoding: Encoding, tables: int, bots: int, together: int) -> list[MeasuredProgram]:
    return [MeasuredProgram((*_BARE, "client", encoding.value, tables, bots, together))]


def _connected(encoding: Encoding, tree: Tree) -> list[MeasuredProgram]:
    """Two bots by `arena connect`, with as many matches as a bot may have."""
    words = f"-m arena connect {GAME} {QUICK_BOT} --no-session --encoding {encoding.value}"
    words += f" --tables {_TABLES_OF_A_BOT} --name"
    return [MeasuredProgram((*words.split(), name), tree) for name in ("one", "two")]


# --- groups


def _tables(turns: _Turns) -> Iterator[BenchRow]:
    for encoding, tables in product(Encoding, turns.tables):
        bots = max(2, 2 * tables // _TABLES_OF_A_BOT)
        each, together = 2 * tables // bots, min(tables, _TOGETHER * bots)
        what, thin = f"{tables:,} at once, {encoding.value}", _thin(encoding, each, bots, together)
        this = MeasuredSide(_arena(bots, _HANDS), thin, tables)
        if turns.that is not None:
            that = MeasuredSide(_arena(bots, _HANDS, turns.that), thin, tables)
            _, (ours, theirs), _ = turns.costs(this, that)
            yield row_of(what, _CPU, ours, turns.that.name, theirs)
            continue
        echo = (
            [MeasuredSide(_prototype(1, 1, 1), _thin(encoding, 1, 1, 1), 1)] if tables == 1 else []
        )
        clock, server, _ = turns.costs(
            this, MeasuredSide(_prototype(tables, bots, 1), thin, tables), *echo
        )
        yield row_of(what, _CPU, server[0], "prototype", server[1])
        for peer, costs in zip(("prototype", "echo"), clock[1:], strict=False):
            yield row_of(what, "µs a decision", clock[0], peer, costs)


def _matches(turns: _Turns) -> Iterator[BenchRow]:
    trees = [("", HERE), *turns.beside()]
    thin = _thin(Encoding.JSON, 1, _MANY_BOTS, 1)
    sides = [
        MeasuredSide(_arena(_MANY_BOTS, _FEW_HANDS, tree), thin, _MANY_BOTS // 4)
        for _, tree in trees
    ]
    _, server, _ = turns.costs(*sides)
    # Thin bots always bet and always call: two decisions a hand.
    costs = [[2 * _FEW_HANDS * each for each in own] for own in server]
    yield row_of(f"{_MANY_BOTS} bots", "µs of CPU a match", costs[0], trees[-1][0], *costs[1:])


def _clients(turns: _Turns) -> Iterator[BenchRow]:
    """Measure clients at a prototype each, by which frames are alike."""
    server = _prototype(_TABLES_OF_A_BOT, 2, 2 * _TOGETHER)
    for encoding in Encoding:
        theirs = [(name, _connected(encoding, tree)) for name, tree in turns.beside()]
        [(name, that)] = theirs or [("thin client", _thin(encoding, _TABLES_OF_A_BOT, 2, 1))]
        both = (_connected(encoding, HERE), that)
        _, _, costs = turns.costs(*(MeasuredSide(server, own, _TABLES_OF_A_BOT) for own in both))
        yield row_of(f"arena connect, {encoding.value}", _CPU, costs[0], name, costs[1])


def _games(turns: _Turns) -> Iterator[BenchRow]:
    for name, game in GAMES.items():
        if turns.that is not None and game.package is not None:
            continue  # it is not installed there
        work = {"game": name, "seats": game.seats, "settings": game.bench.settings}
        work["closes"] = game.vocabulary.closes.__name__
        sides = [HERE, *(tree for _, tree in turns.beside())]
        counts = "deals" if turns.that is None else "decisions"
        costs: list[list[float]] = [[] for _ in sides]
        for number in range(turns.rounds):
            pairs = list(zip(sides, costs, strict=True))
            for tree, own in reversed(pairs) if number % 2 else pairs:
                did = _worked(tree, json.dumps(work), turns.seconds)
                own.append(1e6 * did["cpu_s"] / did[counts])
        what, unit = f"{name} in process", f"µs of CPU a {counts[:-1]}"
        if turns.that is None:
            yield row_of(what, unit, costs[0])
        else:
            yield row_of(what, unit, costs[0], turns.that.name, costs[1])


def _worked(tree: Tree, work: str, seconds: float) -> dict[str, float]:
    """What a process did in so many seconds of its CPU time."""
    words = [tree.python, "-P", str(game_rates.__file__), work, str(seconds)]
    done = subprocess.run(words, env=tree.env(), capture_output=True, text=True)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise SystemExit(f"{work} was to be timed: {last[0]}")
    return dict(json.loads(done.stdout))


def _idle(turns: _Turns) -> Iterator[BenchRow]:
    """Measure a crowd, and a quarter of it that joins: rare costs are among those of a join."""
    bots, more = turns.idle, turns.idle // 4
    needed, most = bots + more + 2 * _FIRST_IDLE, most_files()
    if most is not None and most < needed:
        raise SystemExit(f"{bots:,} bots need {needed:,} open files, this system allows {most:,}")
    # It never has enough bots. A process of its own has nothing to do with earlier measurements.
    words = "-m arena serve --port 0 --db idle.db --players 1000000 --per-address 1000000"
    with (
        running(MeasuredProgram(tuple(words.split()))) as arena,
        _crowd(arena, _FIRST_IDLE, _FIRST_IDLE),
    ):
        before = arena.process.memory_info().rss
        with _crowd(arena, bots, _FIRST_IDLE + bots):
            time.sleep(_SETTLE_S)
            kib = (arena.process.memory_info().rss - before) / 1024 / bots
            yield row_of(f"{bots:,} idle bots", "KiB a bot", [kib])
            shares = [_share(arena, 4 * turns.seconds) for _ in range(turns.rounds)]
            each_us = [1e6 * share / bots for share in shares]
            yield row_of(f"{bots:,} idle bots", "µs of CPU a bot and second", each_us)
            started, cpu_s = time.perf_counter(), arena.cpu_s()
            with _crowd(arena, more, _FIRST_IDLE + bots + more):
                idle_s = statistics.mean(shares) * (time.perf_counter() - started)
                join_us = 1e6 * (arena.cpu_s() - cpu_s - idle_s) / more
                yield row_of(f"joining {bots:,} idle bots", "µs of CPU a bot", [join_us])


def _share(arena: Running, seconds: float) -> float:
    """The server's CPU time per second."""
    started, cpu_s = time.perf_counter(), arena.cpu_s()
    time.sleep(seconds)
    return (arena.cpu_s() - cpu_s) / (time.perf_counter() - started)


@contextmanager
def _crowd(arena: Running, bots: int, all_bots: int) -> Iterator[None]:
    """Connect idle bots; the block begins once so many are there in all."""
    [thin] = _thin(Encoding.JSON, 1, bots, 1)
    with running(thin, arena.url()) as crowd:
        within_s = START_S + bots / _CONNECTS_PER_S

        def are_here() -> bool:
            crowd.said()
            return figure(arena.url(), 'arena_bots{state="here"}') >= all_bots

        until(are_here, f"{all_bots} connections", within_s)
        yield


_AGAINST: dict[str, Callable[[_Turns], Iterator[BenchRow]]] = {
    "tables": _tables,
    "matches": _matches,
    "clients": _clients,
    "games": _games,
}
_GROUPS = {**_AGAINST, "idle": _idle}


# --- the command


def main(words: Sequence[str] | None = None) -> None:
    """Measure, say each row on stderr as soon as it is there, and print all of them at the end."""
    described = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m tests.tools.bench", description=bench.__doc__, formatter_class=described
    )
    parser.add_argument("groups", nargs="*", metavar="GROUP", help="all by default")
    parser.add_argument("--against", metavar="COMMIT", help="all groups but idle")
    parser.add_argument(
        *("--in", "-i"), dest="folder", type=Path, help="its environment, made or used again"
    )
    parser.add_argument("--rounds", type=int, help="of all sides [5, with --against 15]")
    parser.add_argument("--seconds", type=float, default=0.5, help="of a turn [0.5]")
    parser.add_argument("--tables", type=int, action="append", metavar="N", help="1 to 2,048")
    parser.add_argument("--idle", type=int, default=5_000, metavar="N", help="idle bots [5000]")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(words)
    known = _AGAINST if asked.against else _GROUPS
    if not {*asked.groups} <= {*known}:
        parser.error(f"expected groups of {', '.join(known)}")
    rows: list[BenchRow] = []
    with ExitStack() as stack:
        that = None
        if asked.against:
            that = stack.enter_context(installed(asked.against, asked.folder))
        # With 15 rounds the interval leaves out the three lowest and highest ratios.
        rounds = asked.rounds or (5 if that is None else 15)
        tables = tuple(asked.tables or _TABLES)
        try:
            for group in asked.groups or known:
                print(f"measuring {group}", file=sys.stderr)
                for row in known[group](_Turns(rounds, asked.seconds, that, tables, asked.idle)):
                    rows.append(row)
                    print(f"{row.what}: {row.this:.2f} {row.unit}", file=sys.stderr)
        except KeyboardInterrupt:
            print("interrupted: this was found so far", file=sys.stderr)
    if asked.json:
        print(json.dumps(msgspec.to_builtins(rows), ensure_ascii=False))
    else:
        show(rows)


if __name__ == "__main__":
    main()
