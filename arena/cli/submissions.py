"""`arena submissions`: what was handed in to a running arena, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._submission_progress import SubmissionProgress
from arena.cli._submitter import SubmitterConnection, submitter_options
from arena.strength.figures import time_of
from protocol.errors import UsageError, one_line
from protocol.submitting import (
    Disable,
    Download,
    EntryOf,
    Follow,
    GetLog,
    InPlayEntry,
    ListSubmissions,
    LogText,
    Piece,
    Rebuild,
    SubmissionList,
    Use,
)

__all__ = ["command"]

_LONGEST_TEXT = 120  # in the list; `log` shows all

_number = click.argument("number", type=click.IntRange(min=1), metavar="N")


class _VersionNumber(click.ParamType):  # type: ignore[type-arg]
    """`v3` or `3`."""

    name = "version"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        text = str(value).removeprefix("v")
        if not (text.isascii() and text.isdigit() and int(text) > 0):
            raise UsageError(f"expected a version such as v3, got {one_line(repr(value), 60)}")
        return int(text)


@click.group(name="submissions", invoke_without_command=True)
@click.pass_context
@click.option("--owner", metavar="NAME", help="For an instructor: only those of NAME.")
@submitter_options
@options.json_option
def command(
    ctx: click.Context, owner: str | None, arena: SubmitterConnection, as_json: bool
) -> None:
    """List what you have handed in; with an instructor's token, what everybody has.

    The commands below show more of one, and change what is in play. N is the number of a
    submission, vN that of a version: only what was accepted is one.

    --json prints {entries: [{submission, owner, version, name, message, program, bytes, language,
    state, arrived_at, decided_at, games, in_play, text, is_disabled, position, expected_s}],
    in_play: [{owner, game, version, at, who}], text}, as do `use`, `disable` and `rebuild`.
    """
    if ctx.invoked_subcommand is None:
        with arena:
            arena.send(ListSubmissions(owner))
            _show(arena.expect(SubmissionList), as_json)


@command.command(name="log")
@_number
@submitter_options
@options.json_option
def log(number: int, arena: SubmitterConnection, as_json: bool) -> None:
    """Show how submission N was built and checked, and stderr of its owner's latest matches.

    --json prints {submission, build, check, stderr: [{match, at, version, text}]}.
    """
    with arena:
        arena.send(GetLog(number))
        answer = arena.expect(LogText)
    if as_json:
        output.print_json(msgspec.to_builtins(answer))
        return
    for title, text in (("build", answer.build), ("check", answer.check)):
        click.echo(f"{title}:" if text else f"{title}: nothing")
        _print_lines(text)
    written = [match for match in answer.stderr if match.text]
    if not written:
        click.echo("stderr: nothing in the latest matches")
    for match in written:
        click.echo(f"stderr of v{match.version} in {match.match}, {time_of(match.at)}:")
        _print_lines(match.text)


@command.command(name="follow")
@_number
@submitter_options
@options.json_option
def follow(number: int, arena: SubmitterConnection, as_json: bool) -> None:
    """Show each step of submission N as it happens until it is decided, as `arena submit` does.

    --json prints what `arena submit --json` does.
    """
    progress = SubmissionProgress(quiet=as_json)
    with arena:
        arena.send(Follow(number))
        progress.follow(arena)
    progress.finish(as_json=as_json)


@command.command(name="use")
@click.argument("version", type=_VersionNumber(), metavar="vN")
@click.option("--game", metavar="GAME", help="Only in this game.")
@submitter_options
@options.json_option
def use(version: int, game: str | None, arena: SubmitterConnection, as_json: bool) -> None:
    """Put version vN in play again, in all games that it plays."""
    with arena:
        arena.send(Use(version, game))
        _show(arena.expect(SubmissionList), as_json)


@command.command(name="download")
@_number
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@submitter_options
@options.json_option
def download(number: int, file: Path | None, arena: SubmitterConnection, as_json: bool) -> None:
    """Write what was handed in as submission N to FILE, a new zip archive.

    --json prints {submission, file, bytes}.
    """
    file = file or Path(f"submission-{number}.zip")
    with arena:
        arena.send(Download(number))
        data = arena.expect(Piece).data
        size = 0
        with file.open("xb") as out:
            while data:
                out.write(data)
                size += len(data)
                data = arena.expect(Piece).data
    done = {"submission": number, "file": str(file), "bytes": size}
    output.print_result(done, f"{file}: {size:,} bytes", as_json=as_json)


@command.command(name="disable")
@_number
@click.option("--again", is_flag=True, help="Let it be in play again.")
@submitter_options
@options.json_option
def disable(number: int, again: bool, arena: SubmitterConnection, as_json: bool) -> None:
    """Take anybody's submission N out of play, as an instructor."""
    with arena:
        arena.send(Disable(number, again))
        _show(arena.expect(SubmissionList), as_json)


@command.command(name="rebuild")
@_number
@submitter_options
@options.json_option
def rebuild(number: int, arena: SubmitterConnection, as_json: bool) -> None:
    """Build and check submission N again with what is installed now, as an instructor.

    A version keeps its number, and stays in play unless it fails.
    """
    with arena:
        arena.send(Rebuild(number))
        _show(arena.expect(SubmissionList), as_json)


@command.command(
    name="compare",
    hidden=True,
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
)
@click.argument("words", nargs=-1, expose_value=False)
def compare() -> None:
    raise UsageError("arena submissions compare is gone: `arena compare` compares two bots at home")


def _show(answer: SubmissionList, as_json: bool) -> None:
    if as_json:
        output.print_json(msgspec.to_builtins(answer))
        return
    if answer.text:
        click.echo(answer.text)
        return
    if not answer.entries:
        click.echo("nothing was handed in yet")
        return
    _show_entries(answer.entries)
    _show_in_play(answer.in_play)


def _show_entries(entries: Sequence[EntryOf]) -> None:
    owners = len({entry.owner for entry in entries}) > 1
    columns = ("N", *(("owner",) if owners else ()), "version", "arrived", "file", "state", "text")
    table = output.new_table(*columns, words=set(columns) - {"N"})
    for entry in entries:
        state = "disabled" if entry.is_disabled else entry.state
        if entry.position is not None:
            state += f", position {entry.position}"
        table.add_row(
            str(entry.submission),
            *((entry.owner,) if owners else ()),
            "" if entry.version is None else f"v{entry.version}",
            time_of(entry.arrived_at),
            entry.name,
            state,
            one_line(": ".join(filter(None, (entry.message, entry.text))), _LONGEST_TEXT),
        )
    output.print_table("Submissions", table)


def _show_in_play(in_play: Sequence[InPlayEntry]) -> None:
    for row in in_play:
        click.echo(f"in play: {row.owner} v{row.version} in {row.game}, since {time_of(row.at)}")


def _print_lines(text: str) -> None:
    for line in text.splitlines():
        click.echo(f"  {one_line(line.expandtabs(4), 1000)}")
