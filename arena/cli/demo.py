"""`arena demo`: plays every game, between processes over WebSocket, in about a minute."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from arena.cli import Interrupted
from arena.cli import _competition_report as report
from arena.cli import _output as output
from arena.cli._results import Found, result_command
from arena.cli._signals import stops_at_sigterm
from arena.storage.models import CompetitionReport
from protocol.errors import UsageError

if TYPE_CHECKING:
    from arena.storage.store import Store

__all__ = ["command"]


class _Played(msgspec.Struct, frozen=True):
    competitions: list[CompetitionReport]


@result_command("demo", prints=_Played)
@click.option(
    "--keep",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep the database, in a file that is not there yet.",
)
def command(keep: Path | None) -> Found:
    """Play a small class competition in every game.

    Starts a server on a free port of this machine and house bots as processes that connect to it,
    three of which misbehave, and prints who won and who was eliminated for what. The exit status is
    0 if the competitions were played to their ends: that rogues are eliminated is what the demo is
    about.
    """
    from arena.storage.store import Store

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
    return _Played(reports), _lines(reports, keep)


def _lines(reports: list[CompetitionReport], keep: Path | None) -> output.Lines:
    for competition in reports:
        yield from report.lines_of(competition)
    if keep is not None:
        yield f"The database is {keep}."


async def _demo(store: Store) -> list[CompetitionReport]:
    from arena.lab.demo import demo, field

    stops_at_sigterm()
    with report.watch() as board:
        contests = field()
        board.note(f"starting {sum(len(contest.bots) for contest in contests)} bots")
        return await demo(store, contests, on_start=board.follow)
