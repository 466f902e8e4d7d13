"""Lets `arena roster` find the arena that runs on a database, by its address and a token.

Only the running arena knows who is connected, and it keeps the roster in memory. With SQLite,
address and token are in a file beside the database, readable only for its owner. On a server they
are in the table `meta`, whose readers may write the roster anyway. A killed arena leaves them
behind, so they count only while the arena's lock is held (`arena/storage/lock.py`).
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import sqlalchemy as sa

from arena.storage.schema import META
from arena.storage.writer import reading, writing
from protocol.errors import UsageError

__all__ = ["ArenaContact", "contact_file", "find", "publish", "withdraw"]

_SUFFIX = "-arena"
_PRIVATE = 0o600
_IS_CONTACT = META.c.key == "contact"


class ArenaContact(msgspec.Struct, frozen=True):
    """Where an arena takes the commands of its administrator.

    Attributes:
        url: its address for programs on its machine.
        token: an instructor's token, valid as long as the arena runs.
    """

    url: str
    token: str


def contact_file(engine: sa.Engine) -> Path | None:
    """Return the contact file beside an SQLite database; None for a server."""
    if engine.dialect.name != "sqlite":
        return None
    database = Path(engine.url.database or "").resolve()
    return database.with_name(database.name + _SUFFIX)


def publish(engine: sa.Engine, contact: ArenaContact) -> None:
    """Let the database's administrator find this arena. Raises StoreFailed or OSError."""
    text = msgspec.json.encode(contact)
    file = contact_file(engine)
    if file is None:
        with writing(engine) as connection:
            connection.execute(META.delete().where(_IS_CONTACT))
            connection.execute(META.insert().values(key="contact", value=text.decode()))
        return
    file.unlink(missing_ok=True)
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE), "wb") as out:
        out.write(text)


def withdraw(engine: sa.Engine, contact: ArenaContact) -> None:
    """Delete this arena's contact, but not another arena's. Raises StoreFailed or OSError."""
    file = contact_file(engine)
    if file is None:
        text = msgspec.json.encode(contact).decode()
        with writing(engine) as connection:
            connection.execute(META.delete().where(_IS_CONTACT, META.c.value == text))
    elif find(engine) == contact:
        file.unlink(missing_ok=True)


def find(engine: sa.Engine) -> ArenaContact | None:
    """Return the contact that was published last, if any.

    Raises UsageError if only the arena's user can read it, StoreFailed if a server does not answer.
    """
    file = contact_file(engine)
    try:
        if file is None:
            with reading(engine) as connection:
                text = connection.execute(sa.select(META.c.value).where(_IS_CONTACT)).scalar()
        else:
            text = file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(
            f"expected the user who runs the arena, cannot read {file}: {error.strerror or error}"
        ) from None
    try:
        return None if text is None else msgspec.json.decode(text, type=ArenaContact)
    except msgspec.DecodeError:  # the file is being written
        return None
