"""`arena doctor`: says which limits of launched bots this machine can enforce."""

from __future__ import annotations

import click

from arena.cli import _options as options
from arena.cli import _output as output
from arena.sandbox.doctor import examine

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
        output.print_json(report)
        return
    from rich.table import Column, Table

    table = Table("layer", "", Column("detail", overflow="fold"))
    for layer in report.layers:
        table.add_row(layer.name, "yes" if layer.active else "no", layer.detail)
    output.print_table("What is active on this machine", table)
