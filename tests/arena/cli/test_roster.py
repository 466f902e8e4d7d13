"""`arena roster`: tokens are made, shown once, and taken back."""

from __future__ import annotations

import csv
import os
import socket
import stat
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from websockets.sync.server import ServerConnection, serve

from arena.storage.arena_contact import ArenaContact, publish
from arena.storage.store import Store
from arena.storage.tokens import hashed
from protocol.codec import Encoding, encode
from protocol.messages import Done
from tests.support.databases import rows
from tests.support.in_process import Run


@pytest.fixture
def at(tmp_path: Path, run: Run) -> Run:
    """Run a subcommand on a database of the test's."""

    def call(*argv: str) -> Any:
        return run("roster", *argv, "--db", str(tmp_path / "arena.db"))

    return call


@pytest.fixture
def class_csv(tmp_path: Path) -> str:
    file = tmp_path / "class.csv"
    file.write_text("name,email,team\nann,ann@school,red\nben,,\n")
    return str(file)


def hashes(folder: Path, table: str = "roster") -> dict[str, str]:
    query = f"SELECT name, token_hash FROM {table}"
    return dict(rows(folder / "arena.db", query))


# --- import ---


def test_the_tokens_that_are_shown_are_those_that_count(
    at: Run, class_csv: str, tmp_path: Path
) -> None:
    lines = [line.split() for line in at("import", class_csv).out.splitlines() if "│" in line]
    shown = {line[1]: hashed(line[-2]) for line in lines}
    assert shown == hashes(tmp_path)

    shown["ann"] = hashed(at("rotate", "ann", "--json").document["token"])
    assert hashes(tmp_path) == shown

    Path(class_csv).write_text("name\ncem\n")
    [cem] = at("import", class_csv, "--json").document["new"]
    assert hashes(tmp_path) == {**shown, "cem": hashed(cem["token"])}

    token = at("instructor").out.strip()
    prof = at("instructor", "prof", "--json").document["token"]
    tokens = {"instructor": hashed(token), "prof": hashed(prof)}
    assert hashes(tmp_path, "instructors") == tokens


def test_tokens_go_to_a_new_file_for_its_owner_alone(
    at: Run, class_csv: str, tmp_path: Path
) -> None:
    file = tmp_path / "tokens.csv"
    old = os.umask(0)
    try:
        out = at("import", class_csv, "--tokens", str(file)).text
    finally:
        os.umask(old)

    assert out == f"2 new, with tokens in {file}; 0 known, 0 of them changed\n"
    if sys.platform != "win32":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_bytes().startswith(b"\xef\xbb\xbfname,email,team,token\r\n")
    with file.open(newline="", encoding="utf-8-sig") as text:
        table = list(csv.DictReader(text))
    assert [list(row) for row in table] == [["name", "email", "team", "token"]] * 2
    assert {row["name"]: hashed(row["token"]) for row in table} == hashes(tmp_path)


def test_tokens_that_do_not_count_are_not_left_behind(
    at: Run, class_csv: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fails)
    line = at("import", class_csv, "--tokens", str(tmp_path / "t.csv")).refusal(1)

    assert line == "No space left on device"
    assert not (tmp_path / "t.csv").exists()
    assert hashes(tmp_path) == {}


# --- rotate, revoke ---


def test_a_token_is_shown_whole_however_narrow_the_terminal_is(
    at: Run, class_csv: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "50")
    at("import", class_csv)
    _, out, _ = at("rotate", "ann")

    words = {hashed(word) for word in out.split()}
    assert hashes(tmp_path)["ann"] in words


def test_an_arena_that_runs_and_does_not_answer_is_told_and_nothing_has_changed(
    at: Run, class_csv: str, tmp_path: Path
) -> None:
    at("import", class_csv)
    before = hashes(tmp_path)
    with Store(tmp_path / "arena.db", exclusive=True) as store:
        for said in (None, ArenaContact("ws://127.0.0.1:1", "token")):
            if said is not None:
                publish(store.engine, said)
                assert at("revoke", "ann").refusal(1) == at("remove", "ann").refusal(1)
            line = at("remove", "ann").refusal(1)
            where = tmp_path / "arena.db"
            assert line == f"the arena on {where} does not answer; nothing has changed"
            assert hashes(tmp_path) == before

    with socket.create_server(("127.0.0.1", 0)) as anybody:  # listens where the arena listened
        anybody.setblocking(False)
        url = f"ws://127.0.0.1:{anybody.getsockname()[1]}"
        with Store(tmp_path / "arena.db") as store:
            publish(store.engine, ArenaContact(url, "token"))
        assert at("revoke", "ann").text.startswith("ann's token is no longer valid"), "was killed"
        with pytest.raises(BlockingIOError):
            anybody.accept()


def test_an_arena_that_ends_in_the_middle_leaves_a_doubt_which_is_told(
    at: Run, class_csv: str, tmp_path: Path
) -> None:
    at("import", class_csv)
    where = tmp_path / "arena.db"

    def once(connection: ServerConnection) -> None:
        """It answers when somebody connects, but not what is asked for."""
        if not doubted:
            connection.recv()
            connection.send(encode(Done(""), Encoding.JSON), text=True)
            connection.recv()
            doubted.append(True)

    doubted: list[bool] = []
    with Store(where, exclusive=True) as store, serve(once, "127.0.0.1", 0) as server:
        port = server.socket.getsockname()[1]
        publish(store.engine, ArenaContact(f"ws://127.0.0.1:{port}", "token"))
        thread = Thread(target=server.serve_forever)
        thread.start()
        assert at("rename", "ann", "anna").refusal(1) == (
            f"the arena on {where} has begun with it, "
            "and it is not known whether it was done: see `arena roster list`"
        )
        server.shutdown()
        thread.join()
