"""`arena submissions`: shows and changes the submissions of a running arena."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click
import msgspec

from arena.cli import _output as output
from arena.cli._arena_connection import (
    Entering,
    SubmissionOutcome,
    SubmissionProgress,
    submitter_options,
)
from arena.cli._results import Found, ResultCommand, ResultGroup, as_json
from arena.games.statistics import time_of
from protocol.errors import UsageError, one_line
from protocol.submitting import (
    Disable,
    Download,
    EntryOf,
    Follow,
    GetLog,
    ListSubmissions,
    LogText,
    Piece,
    Rebuild,
    SubmissionList,
    Use,
)

__all__ = ["command"]

_LAST_WORDS = "It wrote: "  # comes before a bot's last words in a refusal
_LONGEST_TEXT = 120  # in the list; `log` shows all

_number = click.argument("number", type=click.IntRange(min=1), metavar="N")


class Downloaded(msgspec.Struct, frozen=True):
    """The file to which a submission was written."""

    submission: int
    file: str
    bytes: int


def _read_version(_ctx: click.Context, _param: click.Parameter, text: str) -> int:
    """Read the number of a version, given as `v3` or `3`."""
    number = text.removeprefix("v")
    if not (number.isascii() and number.isdigit() and int(number) > 0):
        raise UsageError(f"expected a version such as v3, got {one_line(repr(text), 60)}")
    return int(number)


@click.group(
    name="submissions", cls=ResultGroup, prints=SubmissionList, invoke_without_command=True
)
@click.pass_context
@click.option("--owner", metavar="NAME", help="For an instructor: only those of NAME.")
@submitter_options
def command(ctx: click.Context, owner: str | None, arena: Entering) -> Found | None:
    """List what you have handed in; with an instructor's token, what everybody has.

    The commands below show more of one, and change what is in play. N is the number of a
    submission, vN that of a version: only what was accepted is one.
    """
    return _listed(arena, ListSubmissions(owner)) if ctx.invoked_subcommand is None else None


_command = partial(command.command, cls=ResultCommand)
_changes = partial(_command, prints=SubmissionList)


@_command("log", prints=LogText)
@_number
@submitter_options
def log(number: int, arena: Entering) -> Found:
    """Show how submission N was built and checked, and stderr of its owner's latest matches."""
    with arena as connection:
        answer = connection.ask(GetLog(number), LogText)
    return answer, _log_lines(answer)


def _log_lines(log: LogText) -> Iterator[str]:
    for title, text in (("build", log.build), ("check", log.check)):
        yield f"{title}:" if text else f"{title}: nothing"
        yield from _indented(text)
    written = [match for match in log.stderr if match.text]
    if not written:
        yield "stderr: nothing in the latest matches"
    for match in written:
        yield f"stderr of v{match.version} in {match.match}, {time_of(match.at)}:"
        yield from _indented(match.text)


def _indented(text: str) -> Iterator[str]:
    return (f"  {one_line(line.expandtabs(4), 1000)}" for line in text.splitlines())


@_command("follow", prints=SubmissionOutcome)
@_number
@submitter_options
def follow(number: int, arena: Entering) -> Iterator[Found]:
    """Show each step of submission N as it happens until it is decided, as `arena submit` does."""
    with arena as connection:
        connection.send(Follow(number))
        yield from SubmissionProgress(quiet=as_json()).follow(connection)


@_changes("use")
@click.argument("version", callback=_read_version, metavar="vN")
@click.option("--game", metavar="GAME", help="Only in this game.")
@submitter_options
def use(version: int, game: str | None, arena: Entering) -> Found:
    """Put version vN in play again, in all games that it plays."""
    return _listed(arena, Use(version, game))


@_command("download", prints=Downloaded)
@_number
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@submitter_options
def download(number: int, file: Path | None, arena: Entering) -> Found:
    """Write what was handed in as submission N to FILE, a new zip archive."""
    file = file or Path(f"submission-{number}.zip")
    with arena as connection:
        data = connection.ask(Download(number), Piece).data
        size = 0
        with file.open("xb") as out:
            while data:
                out.write(data)
                size += len(data)
                data = connection.expect(Piece).data
    return Downloaded(number, str(file), size), f"{file}: {size:,} bytes"


@_changes("disable")
@_number
@click.option("--again", is_flag=True, help="Let it be in play again.")
@submitter_options
def disable(number: int, again: bool, arena: Entering) -> Found:
    """Take anybody's submission N out of play, as an instructor."""
    return _listed(arena, Disable(number, again))


@_changes("rebuild")
@_number
@submitter_options
def rebuild(number: int, arena: Entering) -> Found:
    """Build and check submission N again with what is installed now, as an instructor.

    A version keeps its number, and stays in play unless it fails.
    """
    return _listed(arena, Rebuild(number))


@command.command(
    name="compare",
    hidden=True,
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
)
@click.argument("words", nargs=-1, expose_value=False)
def compare() -> None:
    raise UsageError("arena submissions compare is gone: `arena compare` compares two bots at home")


def _listed(arena: Entering, message: ListSubmissions | Use | Disable | Rebuild) -> Found:
    """Send a message, and return the arena's answer: a text or a list of submissions."""
    with arena as connection:
        answer = connection.ask(message, SubmissionList)
    return answer, answer.text or _lines(answer)


def _lines(answer: SubmissionList) -> output.Lines:
    if not answer.entries:
        yield "nothing was handed in yet"
        return
    owners = len({entry.owner for entry in answer.entries}) > 1
    yield output.table_of(
        "Submissions",
        answer.entries,
        ("N", "submission"),
        *(["owner"] if owners else []),
        ("version", lambda entry: entry.version and f"v{entry.version}"),
        ("arrived", lambda entry: time_of(entry.arrived_at)),
        ("file", "name"),
        ("state", _state),
        ("text", _text),
        words=("version", "arrived", "state", "text"),
    )
    for row in answer.in_play:
        yield f"in play: {row.owner} v{row.version} in {row.game}, since {time_of(row.at)}"


def _state(entry: EntryOf) -> str:
    state = "disabled" if entry.is_disabled else entry.state
    return state if entry.position is None else f"{state}, position {entry.position}"


def _text(entry: EntryOf) -> str:
    text = entry.text
    if entry.state == "refused":  # the program's last words give the cause
        text = text.rpartition(_LAST_WORDS)[2]
    return one_line(": ".join(filter(None, (entry.message, text))), _LONGEST_TEXT)
