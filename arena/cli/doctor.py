"""`arena doctor`: what holds launched bots to their limits here, and why not."""

from __future__ import annotations

import click
import msgspec

from arena.cli import _options as options
from arena.cli import _output as output
from arena.sandbox.doctor import DoctorReport, examine

__all__ = ["command"]


@click.command(name="doctor")
@options.json_option
def command(as_json: bool) -> None:
    """See what is active on this machine to hold launched bots to their limits, and why not.

    The exit status is 0 whatever is found.

    --json prints {layers: [{name, active, detail}]}.
    """
    report = examine()
    if as_json:
        output.print_json(msgspec.to_builtins(report))
    else:
        _show(report)


def _show(report: DoctorReport) -> None:
    from rich.table import Table

    table = Table()
    table.add_column("layer")
    table.add_column("")
    table.add_column("detail", overflow="fold")
    for layer in report.layers:
        table.add_row(layer.name, "yes" if layer.active else "no", layer.detail)
    output.print_table("What is active on this machine", table)
