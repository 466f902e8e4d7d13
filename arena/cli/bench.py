"""`arena bench`: what the arena does on this machine."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

import click
import msgspec

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

    In process: deals and decisions per second of CPU. Over WebSocket: decisions per second of 1 and of 64 matches over the same
    two connections, each beside a bare `websockets` echo of the same message size in the same run, and the CPU time
    that the server spends on a decision. Idle: what an arena holds in memory for one more of 500 bots that are connected and
    have nothing to play, the CPU time that all of them need, per cent of a core, and that of one more that joins them.

    --json prints {in_process: [{game, bot, rounds_per_s, decisions_per_s}], network: [{tables, encoding, decisions_per_s,
    echo_per_s, ratio, server_us}], idle: {connections, kib_each, cpu_percent, join_ms}}; idle is null where other processes
    cannot be looked at: without Linux's /proc or psutil.
    """
    if bots is not None:
        cost = asyncio.run(idle(bots))
        if cost is None:
            raise ArenaError("expected Linux's /proc or psutil, to look at processes")
        _show_all(Bench((), (), cost), as_json)
        return
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "bench.db") as store:
        measured = bench(store, _say)
    _show_all(measured, as_json)


def _show_all(measured: Bench, as_json: bool) -> None:
    if as_json:
        output.print_json(msgspec.to_builtins(measured))
    else:
        _show(measured)


def _say(step: str) -> None:
    if sys.stderr.isatty():
        click.echo(f"measuring {step}", err=True)


def _show(measured: Bench) -> None:
    from rich.table import Table

    local = Table()
    for name in ("game", "bots", "deals/s", "decisions/s"):
        local.add_column(name, justify="left" if name in ("game", "bots") else "right")
    for row in measured.in_process:
        local.add_row(row.game, row.bot, f"{row.rounds_per_s:,.0f}", f"{row.decisions_per_s:,.0f}")
    wire = Table()
    for name in ("matches", "encoding", "decisions/s", "echo/s", "ratio", "server µs"):
        wire.add_column(name, justify="left" if name == "encoding" else "right")
    for net in measured.network:
        wire.add_row(
            str(net.tables),
            net.encoding,
            f"{net.decisions_per_s:,.0f}",
            f"{net.echo_per_s:,.0f}",
            f"{net.ratio:.2f}",
            f"{net.server_us:.1f}",
        )
    if measured.network:
        output.print_table("In process, per second of CPU", local)
        output.print_table("Over WebSocket, two connections, beside a bare echo", wire)
    if measured.idle is not None:
        waits = Table()
        for name in ("connections", "KiB each", "CPU of the server", "CPU of a join"):
            waits.add_column(name, justify="right")
        waits.add_row(
            f"{measured.idle.connections:,}",
            f"{measured.idle.kib_each:,.1f}",
            f"{measured.idle.cpu_percent:.1f} %",
            f"{measured.idle.join_ms:.2f} ms",
        )
        output.print_table("Idle bots over WebSocket", waits)
