"""`arena submit`: hands in a bot, and shows its progress and result."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from arena.cli import Interrupted
from arena.cli._arena_connection import (
    Entering,
    SubmissionOutcome,
    SubmissionProgress,
    SubmitterConnection,
    submitter_options,
)
from arena.cli._results import Found, as_json, result_command
from protocol.submitting import Got, Piece, Progressing, Send, Submit, ToSubmitter, UploadTurn

__all__ = ["command"]

_MIB = 1 << 20


@result_command("submit", prints=SubmissionOutcome)
@click.argument("path", type=click.Path(exists=True, path_type=Path), metavar="DIR|FILE")
@click.option("--message", default="", metavar="TEXT", help="What is new, for yourself.")
@submitter_options
def command(path: Path, message: str, arena: Entering) -> Iterator[Found]:
    """Hand a bot in: a FILE.py with a strategy, or a folder or zip archive with a program.

    The arena finds out what it is: a `bot.toml` says so, or the folder is laid out as `arena new`
    makes them. Entries that start with a dot are left out. The program is built without network,
    and checked as `arena check` does it, with twenty rounds of each of its games. If it passes it
    is your next version, and in play from then on.

    The exit status is 0 only if it was accepted. After Ctrl-C the submission goes on: `arena
    submissions` shows what became of it.
    """
    from arena.sandbox.archive import pack

    name, data = pack(path)
    progress = SubmissionProgress(quiet=as_json(), file=_strategy_in(path))
    with arena as connection:
        try:
            _upload(connection, Submit(name, len(data), message), data, progress)
        except KeyboardInterrupt:
            progress.clear()
            raise Interrupted("interrupted before all was sent: nothing was handed in") from None
        yield from progress.follow(connection)


def _strategy_in(path: Path) -> Path | None:
    """Return the strategy file that our client would connect; None for any other program."""
    if path.suffix == ".py":
        return path
    file = path / "bot.py"
    return file if file.is_file() and not (path / "bot.toml").exists() else None


def _upload(
    arena: SubmitterConnection, submit: Submit, data: bytes, progress: SubmissionProgress
) -> None:
    """Wait for the arena's go-ahead, and send a program piece by piece."""

    def shown(message: ToSubmitter) -> ToSubmitter:
        if isinstance(message, UploadTurn):
            progress.passing(f"others upload; this one is at position {message.position}")
        elif isinstance(message, Got):
            of = len(data) / _MIB
            progress.passing(f"uploading: {message.bytes / _MIB:,.1f} of {of:,.1f} MiB")
        elif isinstance(message, Progressing):
            progress.last = message
        return message

    arena.send(submit)
    while not isinstance(send := shown(arena.receive(None)), Send):
        pass
    for start in range(0, len(data), send.piece_bytes):
        arena.send(Piece(data[start : start + send.piece_bytes]))
        while (message := arena.poll()) is not None:
            shown(message)
