"""`arena backup`: a copy of the database, also while an arena runs on it."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from arena.cli import _options as options
from arena.cli import _output as output
from arena.storage.backup import backup
from arena.storage.store import Store
from protocol.errors import UsageError

__all__ = ["command"]


@click.command(name="backup")
@click.argument("file", type=click.Path(path_type=Path))
@options.db_option("The database.")
@options.json_option
def command(file: Path, db: str, as_json: bool) -> None:
    """Copy the database to FILE, which is not there yet.

    An arena that runs on the database goes on meanwhile; the copy has all matches that were written
    when the command began. `arena verify FILE` checks it, and `arena serve --db FILE` goes on from
    it. FILE appears when it is complete, not before.

    For a database in PostgreSQL it says how `pg_dump` makes the copy.

    --json prints {file, bytes, competitions}.
    """
    where = options.database(db)
    if isinstance(where, str) and not where.startswith("sqlite:"):
        raise UsageError(
            f"expected a database of SQLite, {options.shown(where)} is PostgreSQL's, "
            f"which is copied by: {_pg_dump(where, file)}"
        )
    with Store(where, create=False) as store:
        backup(store, file)
    with Store(file, create=False) as copy:
        competitions = len(copy.competitions())
    size = file.stat().st_size
    document = {"file": str(file), "bytes": size, "competitions": competitions}
    text = f"{file}: {output.plural(competitions, 'competition')}, {size:,} bytes"
    output.print_result(document, text, as_json=as_json)


def _pg_dump(where: str, file: Path) -> str:
    """The command that copies a database of PostgreSQL, without the password: it asks for that."""
    from sqlalchemy import make_url

    url = make_url(where).set(drivername="postgresql")._replace(password=None)
    url = url.difference_update_query([key for key in url.query if "password" in key])
    address = url.render_as_string(hide_password=False)
    return shlex.join(["pg_dump", "--format=custom", f"--file={file}", address])
