"""`arena roster`: changes who may play here, and makes their tokens."""

from __future__ import annotations

import contextlib
import os
import unicodedata
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import click
import msgspec
import sqlalchemy as sa

from arena.cli import _options as options
from arena.cli import _output as output
from arena.engine.names import spelled
from arena.results import csv_tables
from arena.sandbox.bot_spec import some
from arena.storage.lock import DatabaseInUse, hold
from arena.storage.roster import Imported, Issued, Member, Roster
from arena.storage.roster_csv import read_class
from arena.storage.roster_requests import Request, RosterRequests
from arena.storage.schema import open_database, shown
from arena.strength.figures import time_of
from protocol.errors import UsageError
from protocol.messages import Action

__all__ = ["command"]

_TOKEN_LETTERS = 32
_PRIVATE = 0o600  # a file of tokens is for its owner alone


_db_option = options.db_option("The database.")
_from_running_option = click.option(
    "--from-running",
    is_flag=True,
    help="Take their bots out of competitions that are not over, and do not ask.",
)


@contextlib.contextmanager
def _opened(db: str, *, create: bool = False) -> Iterator[sa.Engine]:
    engine, _ = open_database(db, create=create)
    try:
        yield engine
    finally:
        engine.dispose()


@click.group(name="roster", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Say who may play here, and hand out tokens.

    A bot says its token in `hello`, and is then called as the roster says, or as it says itself if
    that begins with that name and a slash: ann, ann/NAME. Nobody else gets these names. The arena
    keeps no tokens, only their hashes: each is shown once, when it is made. An arena that runs on
    the database takes note of a change within about a second.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@command.command(name="import")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--tokens",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the new tokens to a new CSV file, which only you can read, and do not show them.",
)
@_db_option
@options.json_option
def import_(file: Path, tokens: Path | None, db: str, as_json: bool) -> None:
    """Add a class, and make a token for everybody who is new.

    FILE is a CSV with the columns name and, if you like, email and team. Members of one team share
    no elimination table while that can be avoided. Those who are on the roster already keep their
    tokens, and get the e-mail and team of the file; nobody is removed. If a line is wrong, nothing
    is changed.

    --json prints {new: [{name, email, team, token}], changed, same, revoked: [name]}; with --tokens
    every token is null.
    """
    students = read_class(file)
    write = (lambda issued: None) if tokens is None else partial(_write_tokens, tokens)
    with _opened(db, create=True) as engine, _removed_on_failure(tokens):
        done = Roster(engine).take(students, write)
    if as_json:
        document = msgspec.to_builtins(done)
        for member in document["new"] if tokens is not None else ():
            member["token"] = None
        output.print_json(document)
    else:
        _show_import(done, tokens)


@command.command(name="list")
@_db_option
@options.json_option
def list_(db: str, as_json: bool) -> None:
    """Show who is on the roster.

    --json prints {members: [{name, email, team, made_at, revoked_at}]}, times in Unix seconds.
    """
    with _opened(db) as engine:
        members = Roster(engine).members()
    if as_json:
        output.print_json({"members": members})
    else:
        _show_members(members)


@command.command()
@click.argument("name")
@_db_option
@options.json_option
def rotate(name: str, db: str, as_json: bool) -> None:
    """Give somebody another token.

    Use it when a token was lost, seen by others, or revoked. The old one is no longer valid: a
    bot that is connected with it is out of its matches, and absent if it does not come back in
    time with the new one.

    --json prints {name, email, team, token}.
    """
    with _opened(db) as engine:
        roster = Roster(engine)
        issued = roster.rotate(name)
        bots = roster.taking_part(issued.name)
    if as_json:
        output.print_json(issued)
        return
    _show_tokens([issued])
    if bots:
        click.echo(f"{_listed(bots)}, not over yet: come back with the new token, or be absent")


@command.command()
@click.argument("name")
@_from_running_option
@_db_option
@options.json_option
def revoke(name: str, from_running: bool, db: str, as_json: bool) -> None:
    """Take somebody's token back; the name and what was handed in stay theirs.

    A bot that is connected with it is out of its competitions: while one is not over, this asks
    first, or needs --from-running. A version of theirs that plays goes on.

    --json prints {revoked: name}.
    """
    with _opened(db) as engine:
        roster = Roster(engine)
        _confirm_strike(roster, name, from_running)
        name = roster.revoke(name)
    text = f"{name}'s token is no longer valid; the name and the programs that were handed in stay"
    output.print_result({"revoked": name}, text, as_json=as_json)


@command.command()
@click.argument("name")
@click.argument("new")
@_db_option
@options.json_option
def rename(name: str, new: str, db: str, as_json: bool) -> None:
    """Give somebody another name; token, e-mail and team stay.

    Results keep the old name, and an export knows whose they are. Nobody is renamed while a bot of
    that name, or of one below it as ann/NAME, is connected or takes part in a competition that is
    not over, or, beside a running arena, while a [[run]] of its file that is still to be played
    names it. Without an arena nobody looks at files: change them as well.

    --json prints {renamed: name, to: name}.
    """
    new = unicodedata.normalize("NFC", new.strip())
    name = _change(db, name, new)
    output.print_result({"renamed": name, "to": new}, f"{name} is {new} now", as_json=as_json)


@command.command()
@click.argument("name")
@_from_running_option
@_db_option
@options.json_option
def remove(name: str, from_running: bool, db: str, as_json: bool) -> None:
    """Take somebody off the roster; token, e-mail and team are forgotten, and the name is free.

    Results keep the name, and programs that were handed in stay in the database. They are no longer
    in play, and do not go to the next owner of the name. Beside a running arena, while a bot of
    that name, or of one below it as ann/NAME, takes part in a competition that is not over, this
    asks first, or needs --from-running; the bot is then taken out of it. Nobody is removed while a
    [[run]] of its file that is still to be played names them, or, without --from-running, while
    they are connected. Without an arena nobody looks at files: change them as well. To keep
    somebody out but the name taken, revoke the token instead.

    --json prints {removed: name}.
    """
    name = _change(db, name, from_running=from_running)
    text = (
        f"{name} is on the roster no longer; "
        "results keep the name, and the programs that were handed in stay"
    )
    output.print_result({"removed": name}, text, as_json=as_json)


def _confirm_strike(roster: Roster, name: str, from_running: bool) -> bool:
    """Ask whether bots of somebody leave what is not over; False if there are none.

    Raises `UsageError` if they are to stay.
    """
    bots = roster.taking_part(name)
    if bots and not from_running:
        question = f"{_listed(bots)}, not over yet; take them out?"
        if not output.confirm(question, "--from-running"):
            raise UsageError(f"{name} stays, nothing has changed")
    return from_running or bool(bots)


def _listed(bots: Sequence[tuple[str, str]]) -> str:
    return some([f"{bot} is in {competition}" for bot, competition in bots])


def _change(db: str, name: str, new: str | None = None, *, from_running: bool = False) -> str:
    """Rename somebody, or remove them without a new name; returns the name as it was spelled.

    An arena that runs on the database does it, as it knows who is connected.
    """
    with _opened(db) as engine:
        roster = Roster(engine)
        name = spelled(name, [member.name for member in roster.members()])
        try:
            lock = hold(engine, shown(engine.url))  # no arena can start meanwhile
        except DatabaseInUse:
            request = Request(action=Action.RENAME, name=name, new=new)
            if new is None:
                is_struck = _confirm_strike(roster, name, from_running)
                request = Request(action=Action.UNLIST, name=name, from_running=is_struck)
            RosterRequests(engine).ask(request)
            return name
        try:
            if new is None:
                roster.remove(name)
            else:
                roster.rename(name, new)
        finally:
            lock.release()
    return name


@command.command()
@click.argument("name", default="instructor")
@_db_option
@options.json_option
def instructor(name: str, db: str, as_json: bool) -> None:
    """Make an instructor's token, or another one.

    It lets its owner start, pause, resume and stop competitions, void matches, remove bots and
    change the roster. NAME is recorded with all that is done with the token. An earlier token of
    that name is no longer valid.

    --json prints {name, token}.
    """
    with _opened(db, create=True) as engine:
        token = Roster(engine).instructor(name)
    if as_json:
        output.print_json({"name": name, "token": token})
    else:
        click.echo(f"an instructor's token, under the name {name}, shown this once:", err=True)
        click.echo(token)


def _write_tokens(file: Path, issued: Sequence[Issued]) -> None:
    """Write tokens to a new file, on the disk when this returns; `UsageError` if it exists."""
    try:
        fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
    except FileExistsError:
        raise UsageError(f"expected a new file for the tokens, {file} is there already") from None
    with csv_tables.new_file(fd) as out:
        csv_tables.write(out, [Issued.__struct_fields__, *map(msgspec.structs.astuple, issued)])
        out.flush()
        os.fsync(fd)


@contextlib.contextmanager
def _removed_on_failure(file: Path | None) -> Iterator[None]:
    """Remove a file that the block has made if the block raises."""
    was_there = file is not None and os.path.lexists(file)
    try:
        yield
    except BaseException:
        if file is not None and not was_there:
            file.unlink(missing_ok=True)
        raise


def _show_import(done: Imported, tokens: Path | None) -> None:
    new, old = len(done.new), done.changed + done.same
    if done.new and tokens is None:
        _show_tokens(done.new)
    where = f", with tokens in {tokens}" if done.new and tokens is not None else ""
    click.echo(f"{new:,} new{where}; {old:,} known, {done.changed:,} of them changed")
    if done.revoked:
        names = ", ".join(done.revoked)
        click.echo(f"without a token, as before: {names}; see 'arena roster rotate'")


def _show_tokens(issued: Sequence[Issued]) -> None:
    from rich.table import Column, Table

    names = (Column(name, overflow="fold") for name in ("name", "e-mail", "team"))
    # Whole on the narrowest terminal: a token is not shown again.
    table = Table(*names, Column("token", no_wrap=True, min_width=_TOKEN_LETTERS))
    for member in issued:
        table.add_row(member.name, member.email or "", member.team or "", member.token)
    output.print_table("Tokens, shown this once", table)


def _show_members(members: Sequence[Member]) -> None:
    from rich.table import Table

    table = Table("name", "e-mail", "team", "token")
    for member in members:
        made, revoked = f"of {time_of(member.made_at)}", member.revoked_at
        token = made if revoked is None else f"revoked {time_of(revoked)}"
        table.add_row(member.name, member.email or "", member.team or "", token)
    output.print_table(f"On the roster: {len(members):,}", table)
