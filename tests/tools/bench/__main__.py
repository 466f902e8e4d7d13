"""`arena bench`: measures the arena on this machine."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import click

from arena.cli import Interrupted
from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._signals import Stop, stopping
from arena.sandbox.process_table import probe
from protocol.errors import ArenaError, UsageError
from tests.tools.bench import tables
from tests.tools.bench.against import AGAINST, AgainstRow, against, checked_out
from tests.tools.bench.groups import Bench, Group, bench
from tests.tools.bench.idle import idle, too_few_files
from tests.tools.bench.network import Turns

__all__ = ["command"]

_ROUNDS = 5
# Short turns, and many: the interval then leaves out the three lowest and highest ratios.
_ROUNDS_AGAINST, _TURN_AGAINST_S = 15, 0.4

T = TypeVar("T")


@click.command(name="bench")
@click.argument(
    "groups", nargs=-1, type=click.Choice([group.value for group in Group]), metavar="[GROUP]..."
)
@click.option(
    "--against",
    "commit",
    metavar="COMMIT",
    help="In a git checkout: compare it with this commit, and say which is faster and how sure.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1, max=1000),
    metavar="N",
    help=f"How often each side is measured [default: {_ROUNDS}, --against {_ROUNDS_AGAINST}].",
)
@click.option(
    "--idle",
    "bots",
    type=click.IntRange(min=100, max=10_000),
    metavar="N",
    help="Measure only what N idle bots cost, and one that joins them.",
)
@options.json_option
def command(
    groups: tuple[str, ...], commit: str | None, rounds: int | None, bots: int | None, as_json: bool
) -> None:
    """Measure the arena on this machine; all groups take five minutes, or ten on a busy one.

    CPU time comes first, as it depends least on what else the machine does. Every figure is the
    median of several rounds, in which all that is compared has its turn, with the lowest and the
    highest round behind it.

    \b
    tables    the CPU time of the server for a decision with 1, 64, 512 and
              2,048 matches of two bots, beside a bare echo and a prototype
              without clock, session, record and fair cards
    delay     the same with 2,048 matches over 20 ms each way
    matches   a round robin of 200 bots, two hands a match
    clients   the CPU time of our Python client and of the plain example for
              a decision, beside a thin client
    games     deals and decisions per second of CPU in one process, beside
              OpenSpiel and RLCard if they are installed
    deadwood  of random and of rich hands of ten cards, beside OpenSpiel's
    idle      what 5,000 idle bots cost, and one that joins them

    With --against both arenas play against this one's bots, and the interval contains the true
    median of the ratios with the probability that is shown; below 95 %, with less than six rounds,
    nothing is said. It has the groups tables, matches, clients, games and deadwood.

    --json prints {in_process: [{game, bot, rounds_per_s, decisions_per_s, rounds_per_s_range,
    peers: [{peer, rounds_per_s, ratio, ratio_range}]}], network: [{tables, encoding, delay_ms,
    decisions_per_s, echo_per_s, ratio, ratio_range, server_us, server_us_range, prototype_us,
    prototype_per_s, prototype_ratio, prototype_ratio_range}], idle: {connections, kib_each,
    cpu_percent, cpu_percent_range, join_ms, join_ms_range}, matches: {bots, matches_per_s,
    matches_per_s_range, server_us, server_us_range}, clients: [{client, encoding, tables,
    client_us, client_us_range, thin_us, ratio, ratio_range}], deadwood: [{hands, us, us_range,
    open_spiel_us, ratio, ratio_range}], notes}; a range is [lowest, highest]; what was not measured
    is empty or null, and `notes` say why where it could not be. With --against: {commit, rows:
    [{row, per, this_us, that_us, ratio, low, high, level, verdict}]}.
    """
    chosen = tuple(map(Group, groups))
    if commit is not None:
        if bots is not None or not set(chosen) <= set(AGAINST):
            raise UsageError(f"expected groups of --against: {', '.join(AGAINST)}")
        rows = _against(commit, chosen, rounds or _ROUNDS_AGAINST)
        if as_json:
            output.print_json({"commit": commit, "rows": rows})
        else:
            tables.show_against(commit, rows)
        return
    if bots is not None:
        if chosen:
            raise UsageError("expected --idle or groups, not both")
        if rounds is not None:
            raise UsageError("expected --idle without --rounds")
        measured = _idle(bots)
    else:
        measured = _bench(chosen or tuple(Group), rounds or _ROUNDS)
    if as_json:
        output.print_json(measured)
    else:
        tables.show(measured)


def _bench(groups: tuple[Group, ...], rounds: int) -> Bench:
    with stopping() as stop, tempfile.TemporaryDirectory() as folder:
        return _run(bench(groups, Path(folder), Turns(rounds), _show_step), stop)


def _against(commit: str, groups: tuple[Group, ...], rounds: int) -> tuple[AgainstRow, ...]:
    turns = Turns(rounds, _TURN_AGAINST_S)
    with stopping() as stop, tempfile.TemporaryDirectory() as folder, checked_out(commit) as tree:
        return _run(against(tree, groups or AGAINST, Path(folder), turns, _show_step), stop)


def _idle(bots: int) -> Bench:
    why = probe() or too_few_files(bots)
    if why is not None:
        raise ArenaError(why)
    with stopping() as stop:
        return Bench(idle=_run(idle(bots), stop))


def _run(measuring: Coroutine[Any, Any, T], stop: Stop) -> T:
    """Run to the end; Ctrl-C, SIGTERM and SIGHUP stop all processes first."""

    async def stoppable() -> T:
        task = asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"
        stop.cancels(task)
        return await measuring

    try:
        return asyncio.run(stoppable())
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise Interrupted("interrupted, all that was measured is stopped") from None


def _show_step(step: str) -> None:
    if sys.stderr.isatty():
        click.echo(f"measuring {step}", err=True)


if __name__ == "__main__":
    command()
