"""Where a session is kept, and what must not happen to other files there."""

from __future__ import annotations

import errno
import json
import sys
from contextlib import closing
from pathlib import Path

import pytest

from bots import session_file
from bots.session_file import SavedSession, SessionFile, SessionUnusable, default_place

URL = "ws://arena:7700"
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")


def kept(secret: str = "secret", name: str = "ann") -> SavedSession:
    return SavedSession(url=URL, name=name, secret=secret, made=7, seeds={"m-1.0": "1:7"})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "ann.json"


# --- what is kept ---


def test_what_was_written_is_read_by_the_next_process(path: Path) -> None:
    first = SessionFile(path)
    first.write(kept("one"))
    first.write(kept("two"))
    first.close()

    assert SessionFile(path).read(URL, "ann") == kept("two")


@pytest.mark.parametrize("data", [None, b""], ids=["no file", "an empty file"])
def test_there_may_be_nothing_yet(path: Path, data: bytes | None) -> None:
    file = SessionFile(path)
    if data is not None:
        path.write_bytes(data)

    assert file.read(URL, "ann") is None


@POSIX
def test_only_its_owner_can_read_it_and_it_is_json(path: Path) -> None:
    SessionFile(path).write(kept())

    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o077 == 0
    told = {"type": "session", "url": URL, "name": "ann", "secret": "secret", "made": 7}
    assert json.loads(path.read_text()) == {**told, "seeds": {"m-1.0": "1:7"}}


@POSIX
def test_a_file_that_others_could_read_is_not_written_to(path: Path) -> None:
    file = SessionFile(path)
    path.touch(0o644)
    path.with_name("ann.json.new").touch(0o666)
    file.write(kept())

    assert path.stat().st_mode & 0o777 == 0o600


def test_a_process_that_was_killed_in_the_middle_leaves_the_last_session(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(self: Path, target: Path) -> Path:
        raise KeyboardInterrupt

    file = SessionFile(path)
    file.write(kept("one"))
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            file.write(kept("two"))

    assert file.read(URL, "ann") == kept("one")
    file.write(kept("three"))
    assert file.read(URL, "ann") == kept("three")


def test_nothing_is_left_after_a_clean_end(path: Path) -> None:
    file = SessionFile(path)
    file.write(kept())
    file.remove()
    file.close()

    assert list(path.parent.iterdir()) == []


def test_the_secret_is_shown_to_nobody() -> None:
    assert "secret" not in repr(kept())
    assert "1:7" not in str(kept())


# --- what is not ours ---


@pytest.mark.parametrize(
    "data",
    [
        b"class Mine:\n    pass\n",
        b"{",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"type":"session"}',
        b'{"type":"session","url":"ws://arena:7700","name":"ann","secret":1}',
        b'{"type":"session","url":"ws://arena:7700","name":"ann","seeds":[]}',
        b'{"type":"session","url":"ws://arena:7700","name":"ann","more":1}',
    ],
    ids=lambda data: repr(data[:40]),
)
def test_what_is_no_session_is_told_and_left_alone(path: Path, data: bytes) -> None:
    file = SessionFile(path)
    path.write_bytes(data)

    with pytest.raises(SessionUnusable, match=r"ann\.json is no session of ours"):
        file.read(URL, "ann")
    assert path.read_bytes() == data


@pytest.mark.parametrize(("url", "name"), [(URL, "ben"), ("ws://elsewhere:7700", "ann")])
def test_a_session_of_another_bot_is_told_without_its_secret(
    path: Path, url: str, name: str
) -> None:
    file = SessionFile(path)
    file.write(kept("hush"))

    with pytest.raises(SessionUnusable, match="is the session of 'ann' at ws://") as no:
        file.read(url, name)
    assert "hush" not in str(no.value)


def test_a_folder_is_no_session(path: Path) -> None:
    path.mkdir(parents=True)
    file = SessionFile(path)

    with pytest.raises(SessionUnusable, match="the session cannot be read in"):
        file.read(URL, "ann")
    with pytest.raises(SessionUnusable, match="the session cannot be written in"):
        file.write(kept())


def test_a_folder_that_cannot_be_made_is_told(path: Path) -> None:
    path.parent.touch()

    with pytest.raises(SessionUnusable, match="the session cannot be kept in"):
        SessionFile(path)


@POSIX
@pytest.mark.parametrize(
    ("function", "error", "said"),
    [
        ("os.open", PermissionError(errno.EACCES, "Permission denied"), "in .*: Perm"),
        ("fcntl.flock", OSError(errno.ENOLCK, "No locks left"), "No locks left"),
    ],
)
def test_a_folder_or_a_lock_that_is_not_to_be_had_is_told(
    path: Path, monkeypatch: pytest.MonkeyPatch, function: str, error: OSError, said: str
) -> None:
    def refuse(*_: object) -> None:
        raise error

    path.parent.mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(function, refuse)
        with pytest.raises(SessionUnusable, match=said):
            SessionFile(path).write(kept())
    SessionFile(path).close()


# --- the lock ---


@POSIX
def test_a_second_process_does_not_get_the_session(path: Path) -> None:
    first = SessionFile(path)
    first.write(kept())

    with pytest.raises(SessionUnusable, match="another process of this bot has"):
        SessionFile(path)
    first.close()
    assert SessionFile(path).read(URL, "ann") == kept()


@POSIX
def test_the_lock_of_a_process_that_was_killed_is_open(path: Path) -> None:
    path.parent.mkdir()
    path.with_name("ann.json.lock").touch()

    with closing(SessionFile(path)) as session:
        assert session.read(URL, "ann") is None


@POSIX
def test_a_lock_that_was_given_up_while_it_was_taken_is_none(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = path.with_name("ann.json.lock")
    places: list[bool] = []
    is_at = session_file._is_at

    def unlinked_meanwhile(path: Path, descriptor: int) -> bool:
        if not places:
            lock.unlink()  # by whoever had it before
        places.append(is_at(path, descriptor))
        return places[-1]

    monkeypatch.setattr(session_file, "_is_at", unlinked_meanwhile)
    file = SessionFile(path)

    assert places == [False, True]
    with pytest.raises(SessionUnusable):
        SessionFile(path)
    file.close()
    assert not lock.exists()


# --- where ---


def test_every_name_at_every_address_has_a_place_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_STATE_HOME"
    monkeypatch.setenv(variable, str(tmp_path))
    bots = [(URL, "ann"), (URL, "ben"), (f"{URL}/", "ann"), (URL, "a/../b\0\udcff")]
    places = [default_place(url, name) for url, name in bots]

    assert len(set(places)) == 4
    assert {place.parent for place in places} == {tmp_path / "card-arena"}
    assert places[0] == default_place(URL, "ann")
    assert "ann" not in places[0].name


@pytest.mark.parametrize(
    ("platform", "variable", "value", "base"),
    [
        ("linux", "XDG_STATE_HOME", "", ".local/state"),
        ("linux", "XDG_STATE_HOME", "not/absolute", ".local/state"),
        ("linux", "LOCALAPPDATA", "/elsewhere", ".local/state"),
        ("darwin", "XDG_STATE_HOME", "", ".local/state"),
        ("win32", "LOCALAPPDATA", "", "AppData/Local"),
    ],
)
def test_it_is_where_the_system_has_such_things(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    platform: str,
    variable: str,
    value: str,
    base: str,
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv(variable, value)

    assert default_place(URL, "ann").parent == tmp_path / base / "card-arena"


def test_a_user_without_a_home_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("LOCALAPPDATA", raising=False)

    with pytest.raises(SessionUnusable, match="no home"):
        default_place(URL, "ann")
