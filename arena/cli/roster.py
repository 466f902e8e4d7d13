"""`arena roster`: changes the list of people who may play here, and makes their tokens."""

from __future__ import annotations

import contextlib
import os
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._arena_connection import connected_to, instructed
from arena.cli._results import Found, ResultCommand
from arena.games.names import spelled
from arena.games.statistics import time_of
from arena.sandbox.bot_spec import some
from arena.storage.models import Imported, Issued, Member
from protocol.errors import ArenaError, Unreachable, UsageError
from protocol.messages import VERSION, Action, Instruct

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from websockets.sync.client import ClientConnection

    from arena.storage.arena_contact import ArenaContact
    from arena.storage.roster import Roster

__all__ = ["command"]

_UNCHANGED = "nothing has changed"
_BEHIND = "until the same command is given again it goes by the roster of before"

_PRIVATE = 0o600  # only its owner may read a file of tokens

_db_option = options.db_option("The database.")
_from_running_option = click.option(
    "--from-running",
    is_flag=True,
    help="Take their bots out of competitions that are not over, and do not ask.",
)


class _Members(msgspec.Struct, frozen=True):
    members: Sequence[Member]


class _Revoked(msgspec.Struct, frozen=True):
    revoked: str


class _Renamed(msgspec.Struct, frozen=True):
    renamed: str
    to: str


class _Removed(msgspec.Struct, frozen=True):
    removed: str


class _Instructor(msgspec.Struct, frozen=True):
    name: str
    token: str


@contextlib.contextmanager
def _opened(db: str, *, create: bool = False) -> Iterator[Roster]:
    from arena.storage.roster import Roster
    from arena.storage.schema import open_database

    engine, _ = open_database(db, create=create)
    try:
        yield Roster(engine)
    finally:
        engine.dispose()


@click.group(name="roster", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Say who may play here, and hand out tokens.

    A bot says its token in `hello`, and is then called as the roster says, or as it says itself if
    that begins with that name and a slash: ann, ann/NAME. Nobody else gets these names. The arena
    keeps no tokens, only their hashes: each is shown once, when it is made. An arena that runs on
    the database takes note of a change at once.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


_command = partial(command.command, cls=ResultCommand)


@_command("import", prints=Imported)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--tokens",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the new tokens to a new CSV file, which only you can read, and do not show them.",
)
@_db_option
def import_(file: Path, tokens: Path | None, db: str) -> Found:
    """Add a class, and make a token for everybody who is new.

    FILE is a CSV with the columns name and, if you like, email and team. Members of one team share
    no elimination table while that can be avoided. Those who are on the roster already keep their
    tokens, and get the e-mail and team of the file; nobody is removed. If a line is wrong, nothing
    is changed. With --tokens every token of the document is null.
    """
    from arena.storage.roster_csv import read_class

    students = read_class(file)
    write = (lambda issued: None) if tokens is None else partial(_write_tokens, tokens)
    with _changing(db, create=True) as roster, _removed_on_failure(tokens):
        done = roster.take(students, write)
    document = msgspec.to_builtins(done)
    for member in document["new"] if tokens is not None else ():
        member["token"] = None
    return document, _import_lines(done, tokens)


def _import_lines(done: Imported, tokens: Path | None) -> output.Lines:
    where = ""
    if done.new and tokens is None:
        yield _token_table(done.new)
    elif done.new:
        where = f", with tokens in {tokens}"
    old = done.changed + done.same
    yield f"{len(done.new):,} new{where}; {old:,} known, {done.changed:,} of them changed"
    if done.revoked:
        names = ", ".join(done.revoked)
        yield f"without a token, as before: {names}; see 'arena roster rotate'"


def _token_table(issued: Sequence[Issued]) -> output.TitledTable:
    # Never folded, not even on a narrow terminal: a token is shown only once.
    columns = ("name", ("e-mail", "email"), "team", "token")
    words = ("e-mail", "team")
    return output.table_of("Tokens, shown this once", issued, *columns, words=words, whole="token")


@_command("list", prints=_Members)
@_db_option
def list_(db: str) -> Found:
    """Show who is on the roster."""
    with _opened(db) as roster:
        members = roster.members()
    token = ("token", _token_of)
    columns = ("name", ("e-mail", "email"), "team", token)
    title = f"On the roster: {len(members):,}"
    words = ("e-mail", "team", "token")
    return _Members(members), [output.table_of(title, members, *columns, words=words)]


def _token_of(member: Member) -> str:
    if member.revoked_at is not None:
        return f"revoked {time_of(member.revoked_at)}"
    return f"of {time_of(member.made_at)}"


@_command("rotate", prints=Issued)
@click.argument("name")
@_db_option
def rotate(name: str, db: str) -> Found:
    """Give somebody another token.

    Use it when a token was lost, seen by others, or revoked. The old one is no longer valid: a
    bot that is connected with it is out of its matches, and absent if it does not come back in
    time with the new one.
    """
    with _changing(db) as roster:
        issued = roster.rotate(name)
        bots = roster.taking_part(issued.name)
    lines: list[str | output.TitledTable] = [_token_table([issued])]
    if bots:
        away = "not over yet: come back with the new token, or be absent"
        lines.append(f"{_listed(bots)}, {away}")
    return issued, lines


@_command("revoke", prints=_Revoked)
@click.argument("name")
@_from_running_option
@_db_option
def revoke(name: str, from_running: bool, db: str) -> Found:
    """Take somebody's token back; the name and what was handed in stay theirs.

    A bot that is connected with it is out of its competitions: while one is not over, this asks
    first, or needs --from-running. A version of theirs that plays goes on.
    """
    with _changing(db) as roster:
        _confirm_strike(roster, name, from_running)
        name = roster.revoke(name)
    text = f"{name}'s token is no longer valid; the name and the programs that were handed in stay"
    return _Revoked(name), text


@_command("rename", prints=_Renamed)
@click.argument("name")
@click.argument("new")
@_db_option
def rename(name: str, new: str, db: str) -> Found:
    """Give somebody another name; token, e-mail and team stay.

    Results keep the old name, and an export knows whose they are. Nobody is renamed while a bot of
    that name, or of one below it as ann/NAME, is connected or takes part in a competition that is
    not over, or, beside a running arena, while a [[run]] of its file that is still to be played
    names it. Without an arena nobody looks at files: change them as well.
    """
    new = unicodedata.normalize("NFC", new.strip())
    name = _change(db, name, new)
    return _Renamed(name, new), f"{name} is {new} now"


@_command("remove", prints=_Removed)
@click.argument("name")
@_from_running_option
@_db_option
def remove(name: str, from_running: bool, db: str) -> Found:
    """Take somebody off the roster; token, e-mail and team are forgotten, and the name is free.

    Results keep the name, and programs that were handed in stay in the database. They are no longer
    in play, and do not go to the next owner of the name. Beside a running arena, while a bot of
    that name, or of one below it as ann/NAME, takes part in a competition that is not over, this
    asks first, or needs --from-running; the bot is then taken out of it. Nobody is removed while a
    [[run]] of its file that is still to be played names them, or, without --from-running, while
    they are connected. Without an arena nobody looks at files: change them as well. To keep
    somebody out but the name taken, revoke the token instead.
    """
    name = _change(db, name, from_running=from_running)
    stay = "results keep the name, and the programs that were handed in stay"
    return _Removed(name), f"{name} is on the roster no longer; {stay}"


@_command("instructor", prints=_Instructor)
@click.argument("name", default="instructor")
@_db_option
def instructor(name: str, db: str) -> Found:
    """Make an instructor's token, or another one.

    It lets its owner start, pause, resume and stop competitions, void matches, remove bots and
    change the roster. NAME is recorded with all that is done with the token. An earlier token of
    that name is no longer valid.
    """
    with _changing(db, create=True) as roster:
        token = roster.instructor(name)
    return _Instructor(name, token), _instructor_lines(name, token)


def _instructor_lines(name: str, token: str) -> Iterator[str]:
    click.echo(f"an instructor's token, under the name {name}, shown this once:", err=True)
    yield token


def _confirm_strike(roster: Roster, name: str, from_running: bool) -> bool:
    """Ask whether a person's bots are to leave unfinished competitions; False if there are none.

    Raises `UsageError` if the answer is no.
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
    """Rename a person, or remove them if there is no new name; return the name as it was spelled.

    If an arena runs on the database, it makes the change, as it knows who is connected.
    """
    with _opened(db) as roster, _arena_on(roster.engine) as ask:
        name = spelled(name, [member.name for member in roster.members()])
        if ask is None:
            return roster.remove(name) if new is None else roster.rename(name, new)
        if new is not None:
            ask(Action.RENAME, bot=name, text=new)
        elif _confirm_strike(roster, name, from_running):
            ask(Action.UNLIST, bot=name, from_running=True)
        else:
            ask(Action.UNLIST, bot=name)
    return name


@contextlib.contextmanager
def _changing(db: str, *, create: bool = False) -> Iterator[Roster]:
    """Open the roster for changes; a running arena reads it again after the block."""
    with _opened(db, create=create) as roster:
        with _arena_on(roster.engine):
            yield roster
        try:
            with _arena_on(roster.engine, _BEHIND):  # which reads it
                pass
        except ArenaError as error:  # go on, as the tokens must still be shown
            click.echo(f"arena: the roster is written, but {error}", err=True)


@contextlib.contextmanager
def _arena_on(engine: Engine, otherwise: str = _UNCHANGED) -> Iterator[Callable[..., None] | None]:
    """Connect to the arena that runs on a database, and make it read its roster.

    The block gets a function that sends an instruction, or None if no arena runs; then none can
    start during the block. Raises `Unreachable` if the arena does not answer; its text ends with
    `otherwise`, which says what became of the change.
    """
    from arena.storage import arena_contact
    from arena.storage.lock import DatabaseInUse, hold
    from arena.storage.schema import shown

    where, ask = shown(engine.url), None
    with contextlib.ExitStack() as stack:
        try:
            stack.callback(hold(engine, where).release)
        except DatabaseInUse:
            # Only now: an address that a killed arena left behind may be in use by anybody.
            if (contact := arena_contact.find(engine)) is not None:
                with contextlib.suppress(ArenaError):
                    websocket = stack.enter_context(connected_to(contact.url))
                    reading = partial(_ask, engine, websocket, contact)
                    reading(Action.STATUS)
                    ask = reading
            if ask is None:
                text = f"the arena on {where} does not answer; {otherwise}"
                raise Unreachable(text) from None
        yield ask


def _ask(
    engine: Engine, websocket: ClientConnection, contact: ArenaContact, action: Action, **about: Any
) -> None:
    from arena.storage.schema import shown

    message = Instruct(VERSION, contact.token, action, **about)
    try:
        instructed(websocket, contact.url, message)
    except Unreachable:
        raise Unreachable(
            f"the arena on {shown(engine.url)} has begun with it, "
            "and it is not known whether it was done: see `arena roster list`"
        ) from None
    except ArenaError as error:
        raise UsageError(str(error)) from None


def _write_tokens(file: Path, issued: Sequence[Issued]) -> None:
    """Write tokens to a new file and sync it to disk; raises `UsageError` if the file exists."""
    from arena.results import csv_tables

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
    """Remove the file that the block made if the block raises."""
    was_there = file is not None and os.path.lexists(file)
    try:
        yield
    except BaseException:
        if file is not None and not was_there:
            file.unlink(missing_ok=True)
        raise
