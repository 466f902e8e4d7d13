"""How `arena bench` shows what was measured: the steadiest figure first, with its range."""

from __future__ import annotations

from collections.abc import Sequence

import click

from arena.cli import _output as output
from tests.tools.bench.against import AgainstRow
from tests.tools.bench.games import DeadwoodCost, InProcessRate
from tests.tools.bench.groups import Bench
from tests.tools.bench.idle import IdleCost
from tests.tools.bench.network import ClientCost, MatchRate, NetworkRate
from tests.tools.bench.spread import Range

__all__ = ["show", "show_against"]


def show(measured: Bench) -> None:
    """Print a table for each group that was measured, and why others were not."""
    if measured.network:
        _network(measured.network)
    if measured.matches is not None:
        _matches(measured.matches)
    if measured.clients:
        _clients(measured.clients)
    if measured.in_process:
        _in_process(measured.in_process)
    if measured.deadwood:
        _deadwood(measured.deadwood)
    if measured.idle is not None:
        _idle(measured.idle)
    for note in measured.notes:
        click.echo(f"not measured: {note}")


def show_against(commit: str, rows: Sequence[AgainstRow]) -> None:
    """Print a line for each comparison, with a sentence at its end."""
    columns = ("CPU time of", "µs here", f"µs in {commit}", "ratio", "interval", "sure", "this is")
    table = output.new_table(*columns, words=("CPU time of", "this is"))
    for row in rows:
        table.add_row(
            f"{row.row}, per {row.per}",
            f"{row.this_us:,.2f}",
            f"{row.that_us:,.2f}",
            f"{row.ratio:.3f}",
            f"{row.low:.3f} to {row.high:.3f}",
            f"{row.level:.1%}",
            row.verdict,
        )
    output.print_table(f"This tree beside {commit}, medians of paired rounds", table)


def _network(rows: Sequence[NetworkRate]) -> None:
    table = output.new_table(
        *("server µs", "matches", "encoding", "delay", "decisions/s", "prototype µs"),
        *("of the prototype's decisions/s", "of the echo's trips/s"),
        words=("encoding",),
    )
    for row in rows:
        table.add_row(
            _with_range(row.server_us, row.server_us_range, ".1f"),
            f"{row.tables:,}",
            row.encoding,
            f"{row.delay_ms:.0f} ms",
            f"{row.decisions_per_s:,.0f}",
            f"{row.prototype_us:.1f}",
            _with_range(row.prototype_ratio, row.prototype_ratio_range, ".2f"),
            _with_range(row.ratio, row.ratio_range, ".2f"),
        )
    output.print_table("Over WebSocket, two bots: CPU time of the server per decision", table)


def _matches(row: MatchRate) -> None:
    table = output.new_table("server µs", "matches/s", "bots")
    rate = _with_range(row.matches_per_s, row.matches_per_s_range, ",.0f")
    table.add_row(_with_range(row.server_us, row.server_us_range, ",.0f"), rate, str(row.bots))
    output.print_table("A round robin with its database: CPU time of the server per match", table)


def _clients(rows: Sequence[ClientCost]) -> None:
    columns = ("client µs", "client", "encoding", "matches", "a thin one's µs", "ratio")
    table = output.new_table(*columns, words=("client", "encoding"))
    for row in rows:
        table.add_row(
            _with_range(row.client_us, row.client_us_range, ".1f"),
            row.client,
            row.encoding,
            str(row.tables),
            f"{row.thin_us:.1f}",
            _with_range(row.ratio, row.ratio_range, ".2f"),
        )
    output.print_table("Python clients: CPU time per decision", table)


def _in_process(rows: Sequence[InProcessRate]) -> None:
    table = output.new_table(
        *("deals/s", "decisions/s", "game", "bots", "beside"), words=("game", "bots", "beside")
    )
    for row in rows:
        beside = (
            f"{peer.peer} {peer.rounds_per_s:,.0f}: "
            + _with_range(peer.ratio, peer.ratio_range, ".2f")
            for peer in row.peers
        )
        table.add_row(
            _with_range(row.rounds_per_s, row.rounds_per_s_range, ",.0f"),
            f"{row.decisions_per_s:,.0f}",
            row.game,
            row.bot,
            "; ".join(beside),
        )
    output.print_table("In process, per second of CPU", table)


def _deadwood(rows: Sequence[DeadwoodCost]) -> None:
    table = output.new_table("µs", "hands", "OpenSpiel's µs", "ratio", words=("hands",))
    for row in rows:
        theirs, ratio = "–", "–"
        if row.open_spiel_us is not None and row.ratio is not None and row.ratio_range is not None:
            theirs = f"{row.open_spiel_us:.2f}"
            ratio = _with_range(row.ratio, row.ratio_range, ".2f")
        table.add_row(_with_range(row.us, row.us_range, ".2f"), row.hands, theirs, ratio)
    output.print_table("Deadwood of ten cards: CPU time per hand", table)


def _idle(cost: IdleCost) -> None:
    table = output.new_table("CPU of a join", "CPU of the server", "connections", "KiB each")
    table.add_row(
        f"{_with_range(cost.join_ms, cost.join_ms_range, '.2f')} ms",
        f"{_with_range(cost.cpu_percent, cost.cpu_percent_range, '.1f')} %",
        f"{cost.connections:,}",
        f"{cost.kib_each:,.1f}",
    )
    output.print_table("Idle bots over WebSocket", table)


def _with_range(value: float, ends: Range, digits: str) -> str:
    """`13.2 (12.9–14.0)`: a median, and the lowest and the highest round."""
    return f"{value:{digits}} ({ends[0]:{digits}}–{ends[1]:{digits}})"
