"""`arena backup`: copies the database, even while an arena runs on it."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import msgspec

from arena.cli import _options as options
from arena.cli._results import Found, result_command
from arena.games.statistics import plural
from protocol.errors import UsageError

__all__ = ["command"]


class _Copied(msgspec.Struct, frozen=True):
    file: str
    bytes: int
    competitions: int


@result_command("backup", prints=_Copied)
@click.argument("file", type=click.Path(path_type=Path))
@options.db_option("The database.")
def command(file: Path, db: str) -> Found:
    """Copy the database to FILE, which is not there yet.

    An arena that runs on the database goes on meanwhile; the copy has all matches that were written
    when the command began. `arena verify FILE` checks it, and `arena serve --db FILE` goes on from
    it. FILE appears when it is complete, not before.

    For a database in PostgreSQL it says how `pg_dump` makes the copy.
    """
    from arena.storage.backup import backup
    from arena.storage.store import Store

    if "://" in db and not db.startswith("sqlite:"):
        raise UsageError(
            f"expected a database of SQLite, {options.shown(db)} is PostgreSQL's, "
            f"which is copied by: {_pg_dump(db, file)}"
        )
    with Store(db, create=False) as store:
        backup(store, file)
    with Store(file, create=False) as copy:
        competitions = len(copy.competitions())
    size = file.stat().st_size
    text = f"{file}: {plural(competitions, 'competition')}, {size:,} bytes"
    return _Copied(str(file), size, competitions), text


def _pg_dump(where: str, file: Path) -> str:
    """Return the command that copies a PostgreSQL database; it asks for the password itself."""
    from sqlalchemy import make_url

    url = make_url(where).set(drivername="postgresql")._replace(password=None)
    url = url.difference_update_query([key for key in url.query if "password" in key])
    address = url.render_as_string(hide_password=False)
    return shlex.join(["pg_dump", "--format=custom", f"--file={file}", address])
