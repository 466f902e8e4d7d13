"""Compares this tree with another commit of it: which is faster, and how sure that is.

Both arenas are driven by this tree's clients, in rounds in which each has its turn. What is
compared is CPU time, which depends least on what else the machine does.
"""

from __future__ import annotations

import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from arena.games import GAMES
from protocol.codec import Encoding
from protocol.errors import ArenaError, UsageError
from tests.tools.bench.clients import our_bots
from tests.tools.bench.games import worked
from tests.tools.bench.groups import Group
from tests.tools.bench.network import (
    CLIENT_TABLES,
    DECISIONS_PER_MATCH,
    MANY_BOTS,
    Turns,
    in_turn,
    round_robin,
    steady_client,
    steady_server,
)
from tests.tools.bench.processes import TREE
from tests.tools.bench.spread import compared, spread

__all__ = ["AGAINST", "AgainstRow", "against", "checked_out"]

AGAINST = (Group.TABLES, Group.MATCHES, Group.CLIENTS, Group.GAMES, Group.DEADWOOD)
"""The groups that two commits can be compared in."""

# Packages that a commit must have: what it lacks would come from what is installed.
_PACKAGES = ("arena", "bots", "protocol")
_GAME_S = 0.4  # of CPU time, of one turn in process
_DEADWOOD_S = 0.2


class AgainstRow(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of both trees: CPU time in µs, and the median ratio of all rounds.

    Attributes:
        ratio: this tree's cost over the other's; below 1 this one is faster.
        low: of the interval for the true median.
        level: the probability that the interval contains it.
        verdict: `faster`, `slower`, `no difference seen` or `too few rounds to say`.
    """

    row: str
    per: str
    this_us: float
    that_us: float
    ratio: float
    low: float
    high: float
    level: float
    verdict: str


@contextmanager
def checked_out(commit: str, repository: Path = TREE) -> Iterator[Path]:
    """The files of a commit in a temporary folder; the checkout itself is only read.

    Raises `UsageError` if there is no such commit, or no arena in it, and `ArenaError` without git
    or a checkout.
    """
    top = _git(repository, "rev-parse", "--show-toplevel")
    if top is None or Path(top).resolve() != repository.resolve():
        raise ArenaError(f"expected this arena in a git checkout, got {repository}")
    found = _git(repository, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}", "--")
    if found is None:
        raise UsageError(f"expected a commit of {repository}, got {commit!r}")
    files = [f"{package}/__init__.py" for package in _PACKAGES]
    if (_git(repository, "ls-tree", "--name-only", found, *files) or "").split() != files:
        raise UsageError(f"expected a commit with arena/, bots/ and protocol/, got {commit!r}")
    with tempfile.TemporaryDirectory(prefix="arena-against-") as folder:
        archive, tree = Path(folder) / "archive.tar", Path(folder) / "tree"
        if _git(repository, "archive", "--output", str(archive), found) is None:
            raise ArenaError(f"git cannot archive {found}")
        with tarfile.open(archive) as file:
            file.extractall(tree, filter="data")
        archive.unlink()
        yield tree


def _git(repository: Path, *words: str) -> str | None:
    """What git prints, None if it fails."""
    try:
        done = subprocess.run(
            ["git", "-C", str(repository), *words], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise ArenaError("expected git on this machine, to check out a commit") from None
    return done.stdout.strip() if done.returncode == 0 else None


async def against(
    tree: Path,
    groups: Collection[Group],
    folder: Path,
    turns: Turns,
    on_step: Callable[[str], None] = lambda step: None,
    tables_of_rows: Sequence[int] = (64, 512, 2_048),
) -> tuple[AgainstRow, ...]:
    """Compare this tree with another one in these groups, with files in `folder`."""
    trees, rows = (TREE, tree), []
    for tables in tables_of_rows if Group.TABLES in groups else ():
        on_step(f"{tables} matches in JSON")
        rows.append(await _compare_tables(tables, trees, folder, turns))
    if Group.MATCHES in groups:
        on_step("a round robin of short matches")
        sides = [round_robin(MANY_BOTS, one) for one in trees]
        ours, theirs = await in_turn(folder, sides, turns)
        costs = [[turn.server_us * DECISIONS_PER_MATCH for turn in own] for own in (ours, theirs)]
        rows.append(_row(f"round robin of {MANY_BOTS} bots", "match", *costs))
    if Group.CLIENTS in groups:
        for encoding in Encoding:
            on_step(f"clients in {encoding.value}")
            rows.append(await _compare_clients(encoding, trees, folder, turns))
    in_trees = [name for name, game in GAMES.items() if game.package is None]
    for game in in_trees if Group.GAMES in groups else ():
        on_step(f"{game} in process")
        rows.append(await _compare_work(game, "decision", trees, turns.rounds, _GAME_S))
    for hands in ("random", "rich") if Group.DEADWOOD in groups else ():
        on_step(f"the deadwood of {hands} hands")
        rows.append(await _compare_work(hands, "hand", trees, turns.rounds, _DEADWOOD_S))
    return tuple(rows)


async def _compare_tables(
    tables: int, trees: Sequence[Path], folder: Path, turns: Turns
) -> AgainstRow:
    """Compare the CPU time of both servers for a decision, in `tables` matches of two bots."""
    sides = [steady_server(tables, tree=tree) for tree in trees]
    ours, theirs = await in_turn(folder, sides, turns)
    costs = [[turn.server_us for turn in own] for own in (ours, theirs)]
    return _row(f"server, {tables:,} matches", "decision", *costs)


async def _compare_clients(
    encoding: Encoding, trees: Sequence[Path], folder: Path, turns: Turns
) -> AgainstRow:
    sides = [steady_client(our_bots(encoding, CLIENT_TABLES, tree)) for tree in trees]
    ours, theirs = await in_turn(folder, sides, turns)
    costs = [[turn.client_us for turn in own] for own in (ours, theirs)]
    return _row(f"client, {encoding.value}", "decision", *costs)


async def _compare_work(
    what: str, per: str, trees: Sequence[Path], rounds: int, seconds: float
) -> AgainstRow:
    costs: list[list[float]] = [[] for _ in trees]
    for number in range(rounds):
        pairs = list(zip(trees, costs, strict=True))
        for tree, own in reversed(pairs) if number % 2 else pairs:
            turn = await worked(what, seconds, tree=tree)
            own.append(turn.cpu_s / (turn.decisions or turn.deals) * 1e6)
    row = f"{what} in process" if per == "decision" else f"deadwood of {what} hands"
    return _row(row, per, *costs)


def _row(row: str, per: str, ours: Sequence[float], theirs: Sequence[float]) -> AgainstRow:
    both = compared([a / b for a, b in zip(ours, theirs, strict=True)])
    return AgainstRow(
        row=row,
        per=per,
        this_us=spread(ours).median,
        that_us=spread(theirs).median,
        ratio=both.ratio,
        low=both.low,
        high=both.high,
        level=both.level,
        verdict=both.verdict,
    )
