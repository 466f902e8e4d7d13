"""Databases for tests: files, and a PostgreSQL server that ends with this process.

The server runs without fsync, as nobody cuts the power during a test, and in memory if there is
some: a disk takes six times as long to make a database. It runs as another user if the tests run as
root, which it refuses. If its programs or psycopg are missing, tests that need it are
skipped; where `CI` is set they fail.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from arena.storage.schema import open_database
from tests.support.arena_process import free_port
from tests.support.memory import memory
from tests.support.needs import skip_without, tool
from tests.support.run_of_tests import lasting

__all__ = [
    "PASSWORD",
    "Server",
    "anybody",
    "database",
    "empty_database",
    "needed",
    "postgres",
    "postgres_server",
    "public",
    "rows",
]

PASSWORD = "a secret"
_READY_S = 60.0
_MOST_BYTES = 2**30  # of a server, whose databases are dropped after their tests


class Server:
    """A PostgreSQL server in a directory of its own, on a socket there and on a port of 127.0.0.1.

    Its programs are in `bin_`; with `fsync`, commits wait for the disk.
    """

    def __init__(self, bin_: Path, *, fsync: bool = False) -> None:
        self._bin = bin_
        self._numbers = itertools.count(1)
        self._user = _other_user()
        # Not pytest's folder, which other users cannot read; and short, as a socket's name must be.
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir=memory(_MOST_BYTES)))
        (self.folder / "password").write_text(PASSWORD)
        if self._user is not None:
            shutil.chown(self.folder, self._user)
            shutil.chown(self.folder / "password", self._user)
        self.port = free_port()
        self._run(
            "initdb",
            *("--pgdata", "data", "--username", "arena", "--encoding", "UTF8"),
            *("--locale", "C", "--auth-local", "trust", "--no-sync"),
            *("--auth-host", "scram-sha-256", "--pwfile", "password"),
        )
        self._options = [
            *("-c", f"unix_socket_directories={self.folder}"),
            *("-c", "listen_addresses=127.0.0.1", "-c", f"port={self.port}"),
            *("-c", f"fsync={'on' if fsync else 'off'}", "-c", "max_connections=50"),
            # Each costs more than the queries of a test.
            *("-c", "jit=off", "-c", "autovacuum=off"),
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def url(self, name: str | None = None) -> str:
        """The address of a new database, or of the one of that name."""
        name = name or self._create("template1")
        return f"postgresql+psycopg://arena@/{name}?host={self.folder}&port={self.port}"

    @contextmanager
    def database(self, *, has_tables: bool = False) -> Iterator[str]:
        """The address of a new database, which is dropped at the end."""
        name = self._create(self._with_tables if has_tables else "template1")
        try:
            yield self.url(name)
        finally:
            self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    @functools.cached_property
    def _with_tables(self) -> str:
        """The database that others are copied from, which is quicker than to make the tables."""
        name = self._create("template1")
        engine, _ = open_database(self.url(name), create=True)
        engine.dispose()
        return name

    def _create(self, template: str) -> str:
        name = f"arena_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}{self._strategy}")
        return name

    @functools.cached_property
    def _strategy(self) -> str:
        """The clause that has PostgreSQL 15 and later copy files, and not write them to its log."""
        [(version,)] = self.execute("SHOW server_version_num")
        return " STRATEGY file_copy" if int(version) >= 150_000 else ""

    def tcp(self, url: str, password: str = PASSWORD) -> str:
        """The same database over TCP, where the server asks for a password."""
        made = sa.make_url(url).set(host="127.0.0.1", port=self.port, query={})
        return made.set(password=password).render_as_string(hide_password=False)

    def execute(self, statement: str, name: str = "postgres") -> list[Any]:
        """Execute a statement outside of transactions, and return its rows."""
        import psycopg  # an extra

        address = f"host={self.folder} port={self.port} user=arena dbname={name}"
        with closing(psycopg.connect(address, autocommit=True)) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        # The shell ends it when the pipe from here is closed, even by our death.
        with (self.folder / "log").open("ab") as log, lasting("run"):
            self._process = process = subprocess.Popen(
                [
                    *("sh", "-c", '"$@" & read _; kill -INT $!; wait $!', "sh"),
                    *(str(self._bin / "postgres"), "-D", "data", *self._options),
                ],
                cwd=self.folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=log,
                **self._as_user(),
            )
        give_up_at = time.monotonic() + _READY_S
        while not self._is_ready():
            assert process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < give_up_at, (self.folder / "log").read_text()
            time.sleep(0.05)

    def stop(self) -> None:
        """End the server and all connections to it."""
        if self._process is not None:
            assert self._process.stdin is not None, "it was made with one"
            self._process.stdin.close()
            self._process.wait(_READY_S)
            self._process = None

    def remove(self) -> None:
        """End the server, and remove its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _is_ready(self) -> bool:
        import psycopg  # an extra

        try:
            self.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def _run(self, program: str, *argv: str) -> None:
        subprocess.run(
            [self._bin / program, *argv],
            check=True,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            **self._as_user(),
        )

    def _as_user(self) -> dict[str, Any]:
        return {} if self._user is None else {"user": self._user, "extra_groups": []}


def _other_user() -> str | None:
    """The user who runs the server if we are root, which it refuses to be."""
    if sys.platform == "win32" or os.geteuid() != 0:
        return None
    import pwd

    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


@functools.cache
def postgres_server(*, fsync: bool = False) -> Server:
    """The server of this process, which the first call starts."""
    server = Server(Path(tool("initdb")).resolve().parent, fsync=fsync)
    atexit.register(server.remove)
    return server


def needed() -> Server:
    """The server; without one the test is skipped, or fails where `CI` is set."""
    skip_without("psycopg", "initdb")
    return postgres_server()


def rows(where: str | Path, query: str) -> list[Any]:
    """Execute a statement as another program would, commit, and return its rows."""
    url = str(where) if "://" in str(where) else f"sqlite:///{where}"
    engine = sa.create_engine(url)
    try:
        with engine.begin() as connection:
            result = connection.exec_driver_sql(query)
            return [tuple(row) for row in result] if result.returns_rows else []
    finally:
        engine.dispose()


@contextmanager
def anybody() -> Iterator[None]:
    """Be another user than root, whom no permission stops."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that all users can read; only their owner can read pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="public-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


@pytest.fixture
def postgres() -> Server:
    return needed()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a new arena's database: each test runs on both kinds."""
    if request.param == "sqlite":
        yield str(tmp_path / "arena.db")
    else:
        with needed().database(has_tables=True) as url:
            yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database without tables, for tests of how they are made."""
    if request.param == "sqlite":
        yield str(tmp_path / "arena.db")
    else:
        with needed().database() as url:
            yield url
