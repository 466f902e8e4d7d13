from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from arena.sandbox.workdir import LOCK_SUFFIX, with_companions
from arena.storage.lock import hold
from arena.storage.store import Act, Store
from protocol.errors import StoreFailed, UsageError
from tests.support.databases import anybody, needed

FLAG = Act(at=1.0, who="arena", what="flag")
HOLDER = """
import sys
from arena.storage.store import Store
store = Store(sys.argv[1], exclusive=True)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def holder(database: str) -> Iterator[subprocess.Popen[str]]:
    """Another process, whose arena runs on it."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, database],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None, "it was made with one"
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_a_second_arena_is_told_who_has_the_database(database: str) -> None:
    with holder(database) as other, pytest.raises(UsageError) as caught:
        Store(database, exclusive=True)

    said = str(caught.value)
    assert "\n" not in said
    assert "expected a database that no other arena runs on" in said
    assert f"is in use by process {other.pid}" in said
    assert ("arena.db" if "://" not in database else "/arena_") in said


def test_it_is_free_when_its_holder_has_been_killed(database: str) -> None:
    with holder(database) as other:
        other.send_signal(signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
        other.wait(10)
        # A server notices it a moment later.
        store = patiently(database)
        with pytest.raises(UsageError, match=f"by process {os.getpid()}"):
            Store(database, exclusive=True)
        store.close()


def patiently(database: str) -> Store:
    for _ in range(1000):
        try:
            return Store(database, exclusive=True)
        except UsageError:
            threading.Event().wait(0.01)
    return Store(database, exclusive=True)


def test_it_is_free_when_the_store_is_closed(database: str) -> None:
    Store(database, exclusive=True).close()

    with Store(database, exclusive=True) as store:
        assert store.competitions() == ()


def test_a_server_has_freed_it_when_it_is_released() -> None:
    """Who waits for no new connection sees it; else a command's next one may find it taken."""
    held = sa.text(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = "
        "(SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    with (
        needed().database(has_tables=True) as url,
        Store(url) as store,
        store.engine.connect() as other,
    ):
        for _ in range(100):
            hold(store.engine, "it").release()
            assert other.execute(held).scalar_one() == 0


def test_a_server_that_gives_it_to_nobody_is_asked_no_more() -> None:
    """Without a schema the lock has no key."""
    with needed().database(has_tables=True) as url:
        engine = sa.create_engine(url, connect_args={"options": "-csearch_path=none"})
        with pytest.raises(sa.exc.OperationalError, match="is there a schema"):
            hold(engine, "it")
        engine.dispose()


def test_others_may_read_and_write_meanwhile(database: str) -> None:
    with Store(database, exclusive=True), Store(database, create=False) as reader, Store(database):
        assert reader.competitions() == ()


def test_what_cannot_be_opened_is_not_held(empty_database: str) -> None:
    with pytest.raises(UsageError, match=r"found no file|is empty"):
        Store(empty_database, create=False, exclusive=True)

    Store(empty_database, exclusive=True).close()


# --- the file ---


@pytest.mark.parametrize("was_left", [False, True])
def test_the_file_is_a_lock_and_there_only_while_it_is_held(tmp_path: Path, was_left: bool) -> None:
    beside = tmp_path / f"arena.db{LOCK_SUFFIX}"
    if was_left:  # by a dead arena
        beside.write_text(" 1\n")

    with Store(tmp_path / "arena.db", exclusive=True):
        assert int(beside.read_text()) == os.getpid()
    assert [path.name for path in tmp_path.iterdir()] == ["arena.db"]


def test_a_link_to_the_database_leads_to_the_same_lock(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    link = tmp_path / "other" / "link.db"
    with Store(tmp_path / "arena.db", exclusive=True):
        link.symlink_to(tmp_path / "arena.db")
        with pytest.raises(UsageError, match=r"link\.db is in use"):
            Store(link, exclusive=True)


def test_those_who_take_it_from_each_other_hold_it_one_at_a_time(tmp_path: Path) -> None:
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'arena.db'}")
    holders, most, taken = set[int](), list[int](), Counter[int]()

    def take(number: int) -> None:
        while taken[number] < 25:
            with contextlib.suppress(UsageError):
                lock = hold(engine, "arena.db")
                holders.add(number)
                most.append(len(holders))
                lock.keep()
                taken[number] += 1
                holders.remove(number)
                lock.release()

    threads = [threading.Thread(target=take, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(most), max(most)) == (100, 1)


@pytest.mark.skipif(sys.platform == "win32", reason="it cannot be removed there")
@pytest.mark.parametrize("is_replaced", [False, True])
def test_an_arena_whose_file_was_removed_writes_nothing_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, is_replaced: bool
) -> None:
    file = tmp_path / "arena.db"
    first = Store(file, exclusive=True)
    first.acted(FLAG)
    first.flush()
    beside = file.with_name(file.name + LOCK_SUFFIX)
    beside.unlink()  # it looks like a leftover
    with contextlib.ExitStack() as stack:
        if is_replaced:
            stack.enter_context(holder(str(file)))
        first.acted(FLAG)
        with pytest.raises(StoreFailed, match="it was removed or replaced") as caught:
            first.flush()
        assert "\n" not in str(caught.value)
        assert str(beside) in str(caught.value)
        with pytest.raises(StoreFailed, match="it was removed or replaced"):
            first.close()

        assert beside.exists() is is_replaced, "the file of another is left alone"
        if is_replaced:
            with pytest.raises(UsageError, match="is in use by process"):
                Store(file, exclusive=True)
    with Store(file, create=False) as reader:
        assert reader.actions() == (FLAG,)
    assert "Traceback" not in caplog.text  # it is one line, for people


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are others there")
def test_an_arena_that_cannot_see_its_file_writes_nothing_more(public: Path) -> None:
    store = Store(public / "arena.db", exclusive=True)
    public.chmod(0)
    with anybody():
        store.acted(FLAG)
        with pytest.raises(StoreFailed, match="cannot see the lock") as caught:
            store.flush()
        assert "\n" not in str(caught.value)
    public.chmod(0o755)
    with pytest.raises(StoreFailed):
        store.close()


def test_a_launched_process_does_not_inherit_it(tmp_path: Path) -> None:
    file = tmp_path / "arena.db"
    code = "import sys; print('up', flush=True); sys.stdin.read()"
    store = Store(file, exclusive=True)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False
    ) as child:
        assert child.stdout is not None, "it was made with one"
        assert child.stdout.readline().startswith(b"up")
        store.close()

        Store(file, exclusive=True).close()
        child.kill()


def test_launched_bots_do_not_see_it(tmp_path: Path) -> None:
    file = tmp_path / "arena.db"
    with Store(file, exclusive=True):
        assert set(tmp_path.iterdir()) <= set(with_companions([file]))
