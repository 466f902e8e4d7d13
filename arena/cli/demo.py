"""`arena demo`: plays every game, between processes over WebSocket, in about a minute."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from pathlib import Path

import click

from arena.cli import Interrupted
from arena.cli import _competition_report as report
from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._signals import stops_at_sigterm
from arena.competitions.ledger import CompetitionReport
from arena.lab.demo import demo, field
from arena.storage.store import Store
from protocol.errors import UsageError

__all__ = ["command"]


@click.command(name="demo")
@click.option(
    "--keep",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep the database, in a file that is not there yet.",
)
@options.json_option
def command(keep: Path | None, as_json: bool) -> None:
    """Play a small class competition in every game.

    Starts a server on a free port of this machine and house bots as processes that connect to it,
    three of which misbehave, and prints who won and who was eliminated for what. The exit status is
    0 if the competitions were played to their ends: that rogues are eliminated is what the demo is
    about.

    --json prints {competitions: [{game, form, players, standings, cross_table, ranking, verdicts,
    played, seconds, unit, versions}]}; `unit` is that of the intervals in the standings.
    """
    if keep is not None and keep.exists():
        raise UsageError(f"{keep} exists; expected the name of a new file for --keep")
    with contextlib.ExitStack() as stack:
        if keep is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store = stack.enter_context(Store(folder / "demo.db" if keep is None else keep))
        try:
            reports = asyncio.run(_demo(store))
        except (KeyboardInterrupt, asyncio.CancelledError):
            kept = "" if keep is None else f"; what was played is in {keep}"
            raise Interrupted(f"interrupted, all bots are stopped{kept}") from None
    if as_json:
        output.print_json({"competitions": reports})
        return
    for competition in reports:
        report.show(competition)
    if keep is not None:
        click.echo(f"The database is {keep}.")


async def _demo(store: Store) -> list[CompetitionReport]:
    stops_at_sigterm()
    with report.watch() as board:
        contests = field()
        board.note(f"starting {sum(len(contest.bots) for contest in contests)} bots")
        return await demo(store, contests, on_start=board.follow)
