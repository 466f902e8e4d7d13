"""The command lines for bubblewrap; what they do is in tests/e2e/test_launch.py."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from arena.sandbox import bubblewrap
from arena.sandbox.command import VisiblePath
from arena.sandbox.scarcity import is_scarce

MODULE = "arena.sandbox.bubblewrap"
RUN = f"{MODULE}.subprocess.run"


def ended(status: int, stderr: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess(["bwrap"], status, "", stderr)


def raising(error: Exception) -> Callable[..., None]:
    def run(*_: object, **__: object) -> None:
        raise error

    return run


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[str]]]:
    """The command lines of a fake bubblewrap that works."""
    calls: list[list[str]] = []

    def run(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        calls.append(words)
        return ended(0)

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(f"{MODULE}.shutil.which", lambda name, **_: f"/usr/bin/{name}")
    monkeypatch.setattr(f"{MODULE}.knows", lambda option: True)
    monkeypatch.setattr(RUN, run)
    bubblewrap.probe.cache_clear()
    yield calls
    bubblewrap.probe.cache_clear()


def binds(words: list[str]) -> list[tuple[str, str]]:
    return [
        (words[index + 1], words[index + 2])
        for index, word in enumerate(words)
        if word == "--ro-bind-try"
    ]


# ---- Whether it works


BLOCKED = "bwrap: setting up uid map: Permission denied"


@pytest.mark.parametrize(
    ("part", "stand_in", "said"),
    [
        ("sys.platform", "darwin", "is there for Linux only"),
        (f"{MODULE}.shutil.which", lambda _: None, "is not installed (no bwrap on PATH)"),
        (RUN, lambda *_, **__: ended(1, f"{BLOCKED}\n"), f"is blocked on this machine: {BLOCKED}"),
        (RUN, raising(subprocess.TimeoutExpired("bwrap", 10)), "does not end within 10 s"),
        (RUN, raising(PermissionError(13, "Not allowed")), "does not start: Not allowed"),
    ],
)
def test_where_it_does_not_work_it_says_why(
    monkeypatch: pytest.MonkeyPatch, part: str, stand_in: object, said: str
) -> None:
    monkeypatch.setattr(part, stand_in)

    assert bubblewrap.probe() == f"bubblewrap {said}"


@pytest.mark.parametrize(
    "short_run",
    [
        raising(BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")),
        lambda *_, **__: ended(1, "bwrap: Can't fork for pid 1: Resource temporarily unavailable"),
        lambda *_, **__: ended(1, "bwrap: Creating new namespace failed: Cannot allocate memory"),
    ],
)
def test_what_the_machine_lacked_just_now_is_no_answer(
    monkeypatch: pytest.MonkeyPatch, short_run: Callable[..., Any]
) -> None:
    with monkeypatch.context() as short:
        short.setattr(RUN, short_run)
        with pytest.raises(OSError, match=r"bwrap|Resource") as caught:
            bubblewrap.probe()

    assert is_scarce(caught.value)
    assert bubblewrap.probe() is None


def test_it_is_tried_once_with_and_once_without_a_network(calls: list[list[str]]) -> None:
    assert [bubblewrap.probe() for _ in range(3)] == [None] * 3
    assert [bubblewrap.probe(network=False) for _ in range(3)] == [None] * 3
    assert ["--unshare-net" in words for words in calls] == [False, True]


# ---- Its command line


def test_a_command_runs_alone_and_ends_with_its_supervisor(tmp_path: Path) -> None:
    words = bubblewrap.wrap(["python3", "--", "bot.py"], scratch=tmp_path)

    assert words[-6:] == ["--chdir", str(tmp_path), "--", "python3", "--", "bot.py"]
    assert "--bind" not in words  # it fills no disk
    assert f"--size {64 << 20} --tmpfs {tmp_path}" in " ".join(words)
    assert {
        *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"),
        *("--die-with-parent", "--new-session", "--disable-userns"),
    } <= set(words)
    assert ("/proc/sys", "/proc/sys") in binds(words[words.index("--proc") :])
    assert "--unshare-net" not in words
    assert "--unshare-net" in bubblewrap.wrap(["true"], scratch=tmp_path, network=False)


def test_what_is_shown_comes_after_the_directory_it_is_shown_in(tmp_path: Path) -> None:
    shown = [VisiblePath(Path("/here/ann"), Path("ann")), VisiblePath(Path("/x"), Path("/x"))]
    words = bubblewrap.wrap(["true"], scratch=tmp_path, shown=shown)

    assert ("/x", "/x") in binds(words)
    assert binds(words[words.index(str(tmp_path)) :]) == [("/here/ann", str(tmp_path / "ann"))]


def test_a_python_has_its_packages_and_the_arena_is_not_among_them(tmp_path: Path) -> None:
    places = {place for _, place in binds(bubblewrap.wrap(["true"], scratch=tmp_path))}
    root = Path(bubblewrap.__file__).parents[2]

    if not (root / "pyproject.toml").exists():
        pytest.skip("the packages are installed among all others")
    assert {str(root / "bots"), str(root / "protocol")} <= places
    assert not {str(root), str(root / "arena")} & places


def test_what_is_hidden_among_the_systems_files_leaves_a_gap(tmp_path: Path) -> None:
    hidden = [Path("/usr/local/arena.db")]
    words = bubblewrap.wrap(["true"], scratch=tmp_path, hidden=hidden)
    places = {place for _, place in binds(words)}

    assert not {"/usr", "/usr/local", "/usr/local/arena.db"} & places
    assert {"/usr/bin", "/usr/local/bin"} <= places


def test_what_only_our_account_may_read_in_the_system_is_covered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "own" / "jdk").mkdir(parents=True)
    (tmp_path / "own" / "jdk" / "java").touch(0o700)
    (tmp_path / "own" / "token").touch(0o600)
    (tmp_path / "own").chmod(0o700)  # it has what bots need, so not all of it is covered
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "own" / "jdk"))
    for name in ("keys", "open"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "secret").touch(0o640)
        (tmp_path / name / "known").touch(0o644)
    (tmp_path / "keys").chmod(0o700)

    (tmp_path / "node").mkdir(0o700)
    support = frozenset((*bubblewrap._python_and_java(), tmp_path / "node"))

    assert bubblewrap._secrets(str(tmp_path), support) == (
        str(tmp_path / "keys"),
        str(tmp_path / "open" / "secret"),
        str(tmp_path / "own" / "token"),
    )


def test_of_a_virtual_environment_only_what_is_pythons_is_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A class may keep its database and tokens in the folder of the environment."""
    for part in ("bin", "lib"):
        (tmp_path / part).mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    (tmp_path / "tokens.csv").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    program = str(tmp_path / "bin" / "python3")
    words = bubblewrap.wrap([program], scratch=Path("/work"), sealed=True)
    seen = [source for bind, source in pairwise(words) if bind == "--ro-bind-try"]

    assert str(tmp_path / "lib") in seen
    assert not {str(tmp_path), str(tmp_path / "tokens.csv")} & {*seen}


def test_a_submission_sees_nothing_private_that_was_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "token").touch(0o600)
    monkeypatch.setattr(bubblewrap, "_INSTALLED", (str(tmp_path),))
    words = bubblewrap.wrap(["true"], scratch=tmp_path / "scratch", sealed=True)

    assert f"--ro-bind /dev/null {tmp_path / 'token'}" in " ".join(words)


@pytest.mark.parametrize(
    ("program", "bound"),
    [
        ("jdk/bin/java", "jdk"),
        ("tools/run", "tools"),
        ("pyenv/shims/python3", "pyenv"),
        (".local/bin/run", ".local/bin"),
        ("bin/run", "bin"),
        ("run", "run"),
    ],
)
def test_a_program_comes_with_its_installation_but_never_with_a_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str, bound: str
) -> None:
    home = tmp_path / "home"
    path = home / program
    path.parent.mkdir(parents=True)
    path.touch(0o755)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(f"{MODULE}.find_program", lambda _: str(path))
    words = bubblewrap.wrap([path.name], scratch=tmp_path / "scratch")

    places = [place for _, place in binds(words) if place.startswith(str(home))]
    assert places == [str(home / bound)]


def test_a_program_comes_with_its_links(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("venv", "python"):
        (tmp_path / name / "bin").mkdir(parents=True)
    (tmp_path / "python/bin/python3.11").touch(0o755)
    (tmp_path / "python/bin/python3").symlink_to("python3.11")
    (tmp_path / "venv/bin/python").symlink_to(tmp_path / "python/bin/python3")
    monkeypatch.setattr(f"{MODULE}.find_program", lambda _: f"{tmp_path}/venv/bin/python")
    words = bubblewrap.wrap(["python"], scratch=tmp_path / "scratch")

    places = [place for _, place in binds(words) if place.startswith(str(tmp_path))]
    assert sorted(places) == [f"{tmp_path}/python", f"{tmp_path}/venv"]


def test_no_unbounded_files_in_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(f"{MODULE}.knows", lambda option: False)
    words = " ".join(bubblewrap.wrap(["true"], scratch=tmp_path))

    assert "--tmpfs /tmp --remount-ro /tmp" in words
    assert "--size" not in words
    assert f"--bind {tmp_path} {tmp_path}" in words  # nothing else can be written in
    assert words.count("--bind ") == 1
    assert "--disable-userns" not in words
