"""`arena bench`: measures the arena on this machine."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

import click

from arena.cli import _options as options
from arena.cli import _output as output
from arena.lab.bench import Bench, bench
from arena.lab.idle_connections import idle
from arena.storage.store import Store
from protocol.errors import ArenaError

__all__ = ["command"]


@click.command(name="bench")
@click.option(
    "--idle",
    "bots",
    type=click.IntRange(min=100, max=10_000),
    metavar="N",
    help="Measure only what N bots cost that have nothing to play, and one that joins them.",
)
@options.json_option
def command(bots: int | None, as_json: bool) -> None:
    """Measure the arena on this machine; takes a minute or two.

    In process: deals and decisions per second of CPU. Over WebSocket: decisions per second of 1 and
    of 64 matches over the same two connections, each beside a bare `websockets` echo of the same
    message size in the same run, and the CPU time that the server spends on a decision. Idle: what
    an arena holds in memory for one more of 500 bots that are connected and have nothing to play,
    the CPU time that all of them need, per cent of a core, and that of one more that joins them.

    --json prints {in_process: [{game, bot, rounds_per_s, decisions_per_s}], network: [{tables,
    encoding, decisions_per_s, echo_per_s, ratio, server_us}], idle: {connections, kib_each,
    cpu_percent, join_ms}}; idle is null where other processes cannot be looked at: without Linux's
    /proc or psutil.
    """
    if bots is not None:
        cost = asyncio.run(idle(bots))
        if cost is None:
            raise ArenaError("expected Linux's /proc or psutil, to look at processes")
        measured = Bench((), (), cost)
    else:
        with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "bench.db") as store:
            measured = bench(store, _show_step)
    if as_json:
        output.print_json(measured)
    else:
        _show(measured)


def _show_step(step: str) -> None:
    if sys.stderr.isatty():
        click.echo(f"measuring {step}", err=True)


def _show(measured: Bench) -> None:
    if measured.network:
        local = output.new_table("game", "bots", "deals/s", "decisions/s", words=("game", "bots"))
        for row in measured.in_process:
            rates = (f"{row.rounds_per_s:,.0f}", f"{row.decisions_per_s:,.0f}")
            local.add_row(row.game, row.bot, *rates)
        output.print_table("In process, per second of CPU", local)
        columns = ("matches", "encoding", "decisions/s", "echo/s", "ratio", "server µs")
        wire = output.new_table(*columns, words=("encoding",))
        for net in measured.network:
            wire.add_row(
                str(net.tables),
                net.encoding,
                f"{net.decisions_per_s:,.0f}",
                f"{net.echo_per_s:,.0f}",
                f"{net.ratio:.2f}",
                f"{net.server_us:.1f}",
            )
        output.print_table("Over WebSocket, two connections, beside a bare echo", wire)
    if (idle_cost := measured.idle) is not None:
        waiting = output.new_table("connections", "KiB each", "CPU of the server", "CPU of a join")
        waiting.add_row(
            f"{idle_cost.connections:,}",
            f"{idle_cost.kib_each:,.1f}",
            f"{idle_cost.cpu_percent:.1f} %",
            f"{idle_cost.join_ms:.2f} ms",
        )
        output.print_table("Idle bots over WebSocket", waiting)
