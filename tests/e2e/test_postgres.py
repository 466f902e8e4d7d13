"""PostgreSQL alone: servers that go away, passwords, locks that are lost.

What holds for any database is in tests/arena.
"""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
import sqlalchemy as sa

from arena.storage.store import Act, Store
from protocol.errors import StoreFailed, UsageError
from tests.support.databases import Server, needed, rows

pytestmark = pytest.mark.e2e

FLAG = Act(at=1.0, who="arena", what="flag")


@pytest.fixture
def server() -> Server:
    return needed()


@pytest.fixture
def url(server: Server) -> str:
    return server.url()


def name_of(url: str) -> str:
    return str(sa.make_url(url).database)


def drop(server: Server, url: str) -> None:
    """End all connections to a database."""
    server.execute(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name_of(url)}'"
    )


# --- coming in ---


def test_it_works_over_tcp_with_a_password(server: Server, url: str) -> None:
    where = server.tcp(url)
    with Store(where, exclusive=True) as store:
        store.acted(FLAG)
        store.flush()

        assert store.actions() == (FLAG,)
        assert store.file is None
        with pytest.raises(UsageError, match="is in use by process") as caught:
            Store(where.replace("+psycopg", ""), exclusive=True)
    assert "secret" not in str(caught.value)


def test_a_wrong_password_is_one_line_that_does_not_tell_it(server: Server, url: str) -> None:
    with pytest.raises(UsageError, match="password authentication failed") as caught:
        Store(server.tcp(url, "a wrong one"))
    assert "wrong one" not in str(caught.value)
    assert "wrong%20one" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_server_and_no_database_are_one_line(server: Server, url: str) -> None:
    nowhere = f"postgresql+psycopg://arena@/base?host={server.folder}&port=1"
    for where, text in (
        (nowhere, "No such file or directory"),
        (url.replace(name_of(url), "nosuch"), 'database "nosuch" does not exist'),
    ):
        with pytest.raises(UsageError, match=text) as caught:
            Store(where)
        assert "\n" not in str(caught.value)


def test_a_database_that_cannot_hold_all_names_is_refused(server: Server) -> None:
    server.execute("DROP DATABASE IF EXISTS latin")
    server.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")

    with pytest.raises(UsageError, match=r"expected a database in UTF8, .* has LATIN1"):
        Store(server.url("latin"))
    assert rows(
        server.url("latin"), "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
    ) == [(0,)]


def test_without_psycopg_one_line_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from arena.storage.store import Store\n"
        "from protocol.errors import UsageError\n"
        "try:\n    Store('postgresql+psycopg://arena@/base')\n"
        "except UsageError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == (
        "cannot open the database postgresql+psycopg://arena@/base: "
        "psycopg is not installed: pip install 'card-arena[postgres]'\n"
    )


def test_arenas_in_schemas_of_their_own_do_not_meet(server: Server, url: str) -> None:
    for name in ("red", "blue"):
        server.execute(f"CREATE SCHEMA {name}", name_of(url))
    red, blue = (f"{url}&options=-csearch_path%3D{name}" for name in ("red", "blue"))
    with Store(red, exclusive=True) as first, Store(blue, exclusive=True) as second:
        first.acted(FLAG)
        first.flush()

        assert first.actions() == (FLAG,)
        assert second.actions() == ()


# --- going away ---


def test_J5_nothing_is_lost_while_the_server_is_away(
    server: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.storage.writer.RETRY_S", 0.02)
    tried = threading.Event()
    with Store(url, exclusive=True) as store:
        store.acted(FLAG)
        store.flush()
        commit = store._writer._commit

        def trying(changes: list[object]) -> None:
            try:
                commit(changes)  # type: ignore[arg-type]
            except Exception:
                tried.set()
                raise

        monkeypatch.setattr(store._writer, "_commit", trying)
        server.stop()
        store.acted(FLAG)
        assert tried.wait(10)
        with pytest.raises(StoreFailed, match="cannot read the database") as caught:
            store.actions()
        assert "\n" not in str(caught.value)
        server.start()
        store.flush()

        assert store.actions() == (FLAG, FLAG)
        # And it is still the one that runs on it.
        with pytest.raises(UsageError, match="is in use by process"):
            Store(url, exclusive=True)


def test_readers_do_not_notice_that_the_server_was_away(server: Server, url: str) -> None:
    with Store(url) as store:
        assert store.actions() == ()
        server.stop()
        server.start()

        assert store.actions() == ()


def test_an_arena_whose_lock_another_has_taken_writes_nothing_more(
    server: Server, url: str
) -> None:
    first = Store(url, exclusive=True)
    first.acted(FLAG)
    first.flush()
    drop(server, url)
    with Store(url, exclusive=True) as second:
        first.acted(FLAG)
        with pytest.raises(StoreFailed, match=r"no other arena runs on, .* is in use"):
            first.flush()
        with pytest.raises(StoreFailed):
            first.close()

        assert second.actions() == (FLAG,)


def test_closing_while_the_server_is_away_is_one_line(server: Server, url: str) -> None:
    store = Store(url, exclusive=True)
    server.stop()
    try:
        store.acted(FLAG)
        with pytest.raises(StoreFailed, match="cannot write the database") as caught:
            store.close()
    finally:
        server.start()
    assert "\n" not in str(caught.value)
