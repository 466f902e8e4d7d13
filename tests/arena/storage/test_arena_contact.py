"""Where an arena is found by the administrator of its database, in either kind of database."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from arena.storage.arena_contact import ArenaContact, contact_file, find, publish, withdraw
from arena.storage.schema import open_database
from protocol.errors import UsageError
from tests.support.databases import anybody

CONTACT = ArenaContact("ws://127.0.0.1:7700", "token")


def test_what_was_published_last_is_found_until_it_is_withdrawn(engine: sa.Engine) -> None:
    assert find(engine) is None
    publish(engine, ArenaContact("ws://127.0.0.1:1", "of a killed arena"))
    publish(engine, CONTACT)
    assert find(engine) == CONTACT
    withdraw(engine, ArenaContact("ws://127.0.0.1:1", "of another"))
    assert find(engine) == CONTACT
    for _ in range(2):
        withdraw(engine, CONTACT)
        assert find(engine) is None


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are others there")
def test_another_user_cannot_read_it(public: Path) -> None:
    engine, _ = open_database(public / "arena.db", create=True)
    publish(engine, CONTACT)
    file = contact_file(engine)
    assert file is not None
    file.chmod(0)  # where the tests do not run as root, they are this user themselves
    with anybody(), pytest.raises(UsageError, match=r"^expected the user who runs the arena, "):
        find(engine)
    file.chmod(0o600)
    file.write_bytes(b'{"url":')
    assert find(engine) is None, "it is being written"
    engine.dispose()
