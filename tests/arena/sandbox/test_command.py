"""Command lines of bots, and which files they see; no program is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from arena.sandbox import relay
from arena.sandbox.command import (
    Program,
    VisiblePath,
    bot_command,
    game_folders,
    game_packages,
    read_program,
    sealed_program,
    search_path,
    views,
)
from arena.sandbox.manifest import ProgramManifest
from protocol import entry_points
from protocol.errors import UsageError
from tests.support.toy_games import write_toy


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with bots and what an arena leaves there."""
    for name in ("bot.py", "Main.class", "arena.db", ".env", "ann/bot.py", "ben/x.jar"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    (tmp_path / "mybot").touch(0o755)
    (tmp_path / ".git").mkdir()
    return tmp_path


def seen(folder: Path, text: str, hidden: Sequence[str] = ()) -> set[str]:
    """What a command line shows, by the names in its directory."""
    shown = views(read_program(text, folder), [folder / name for name in hidden])
    assert all(item.place == item.source.relative_to(folder) for item in shown)
    return {str(item.place) for item in shown}


# ---- The command line


def test_a_command_line_is_quoted_as_in_a_shell(folder: Path) -> None:
    program = read_program(f"{sys.executable} 'my bot.py' --level \"3\"", folder)

    assert program == Program(words=(sys.executable, "my bot.py", "--level", "3"), folder=folder)


@pytest.mark.parametrize("text", ["stdio: ./mybot --fast", " stdio:./mybot --fast"])
def test_stdio_in_front_says_how_it_talks(folder: Path, text: str) -> None:
    program = read_program(text, folder)

    assert program.stdio
    assert program.words == ("./mybot", "--fast")


def test_a_program_here_comes_after_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_program("mybot", folder).words == (os.path.join(".", "mybot"),)
    monkeypatch.setenv("PATH", str(folder))
    assert read_program("mybot", folder / "ann").words == ("mybot",)


def test_a_path_here_by_chance_is_not_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", os.pathsep.join([".", "ann", "/usr/bin"]))
    program = read_program("mybot")

    assert search_path() == "/usr/bin"
    assert (program.words, program.folder) == ((os.path.join(".", "mybot"),), folder.resolve())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "expected a command line such as 'python3 bot.py', got ''"),
        ("stdio: ", "expected a command line such as 'python3 bot.py'"),
        ("'' x", "expected a command line such as 'python3 bot.py'"),
        ("python3 'bot.py", "with its quotes closed"),
        ("no-such-program x", "got 'no-such-program', which is in neither"),
        ("expert", "in neither; for a house bot: `arena connect gin_rummy expert`"),
        ("./nobody", "which is in neither"),
        ("./ann", "which is in neither"),
        ("stdio: ./bot.py", "not executable; start it as in 'python3 bot.py'"),
    ],
)
def test_what_cannot_be_started_is_refused_in_one_line(folder: Path, text: str, why: str) -> None:
    with pytest.raises(UsageError, match="expected") as caught:
        read_program(text, folder)

    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_house_bot_is_a_command_line_too() -> None:
    words = bot_command(("akq", "nash"), url="ws://here", name="ann", tables=3)

    assert words[:6] == [sys.executable, "-P", "-m", "bots", "akq", "nash"]
    assert "--url ws://here --name ann --tables 3" in " ".join(words)


# ---- What it sees


EVERYTHING = {"bot.py", "Main.class", "mybot", "ann", "ben"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("python ann/bot.py", {"ann"}),
        ("python ./ann/../ann/bot.py --verbose", {"ann"}),
        ("python ann", {"ann"}),
        ("python --bot=ann/bot.py", {"ann"}),
        ("python ann/bot.py ben", {"ann", "ben"}),
        ("python ann/made-later.py", {"ann"}),
        ("python -cp ben/x.jar:ann Main", {"ann", "ben"}),
        ("python -cp 'ben/*' Main", {"ben"}),
        ("python .git/hook ann/bot.py", {"ann", ".git"}),
        ("python bot.py", EVERYTHING),
        ("python bot.py ann", EVERYTHING),
        ("python -cp . Main", EVERYTHING),
        ("python -cp .:ben/x.jar Main", EVERYTHING),
        ("python Main", EVERYTHING),
        ("./mybot", EVERYTHING),
        ("python bot.py .env", EVERYTHING | {".env"}),
    ],
)
def test_it_sees_what_its_command_line_names(
    folder: Path, text: str, names: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "tools").mkdir()
    (folder / "tools" / "python").touch(0o755)
    monkeypatch.setenv("PATH", str(folder / "tools"))

    assert seen(folder, text, ["arena.db", "tools"]) == names


def test_a_program_on_path_names_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))
    program = Program(words=("mybot", "ann/bot.py"), folder=folder)

    assert [item.place for item in views(program, ())] == [Path("ann")]
    assert views(Program(words=(sys.executable, ".")), ()) == ()


def test_a_path_that_leads_out_of_the_folder_is_refused(folder: Path) -> None:
    program = Program(words=("python", "../bot.py"), folder=folder / "ann")

    with pytest.raises(UsageError, match=r"expected paths in .*ann, got '\.\./bot\.py'"):
        views(program, ())


@pytest.mark.parametrize(("is_home", "visible"), [(False, EVERYTHING), (True, {"bot.py"})])
def test_whole_paths_are_shown_where_they_are(
    folder: Path, monkeypatch: pytest.MonkeyPatch, is_home: bool, visible: set[str]
) -> None:
    """With what lies beside them, but in a home only the file itself."""
    monkeypatch.setenv("HOME", str(folder if is_home else folder.parent / "home"))
    words = ("python", str(folder / "bot.py"), *([str(folder)] if is_home else []))
    shown = views(Program(words=words, folder=folder / "ann"), [folder / "arena.db"])

    places = {item.place for item in shown if item.place.is_absolute()}
    assert places == {folder / name for name in visible}


def test_too_many_files_are_refused_with_advice(folder: Path) -> None:
    for number in range(1_001):
        (folder / f"{number}.txt").touch()

    for program, advice in (
        (Program(words=("python", "bot.py"), folder=folder), "put the bot into a folder"),
        (sealed_program(folder, manifest("./mybot")), "put them into folders"),
    ):
        with pytest.raises(UsageError, match=f"at most 1,000 files .* {advice}"):
            views(program, ())
    assert seen(folder, f"{sys.executable} ann/bot.py") == {"ann"}


# ---- What is hidden


HIDDEN: dict[str, tuple[str, str, str, str]] = {
    # files and links that there are, the words, what is hidden, what is seen
    "what is not there yet": ("ann/data/", "ann/bot.py", "ann/arena.db", "ann/bot.py ann/data"),
    "what lies deep in a folder": (
        *("ann/a/arena.db ann/a/b/arena.db ann/a/b/kept", "ann", "ann/a/b/arena.db"),
        "ann/bot.py ann/a/arena.db ann/a/b/kept",
    ),
    "a folder by a link": ("records/one link>records", "link ben", "records", "ben"),
    "a file by a link": (
        *("records/one ann/db>records/one", "ann", "records ann/arena.db"),
        "ann/bot.py",
    ),
    "what lies in a folder, by a link to that": (
        *("ben/arena.db link>ben", "link", "ben/arena.db"),
        "link/x.jar",
    ),
    "a link that leads back up": (*("ann/up>ann", "ann", "ann/arena.db"), "ann/bot.py"),
    "nothing, but a link leads there": (
        *("nothing>nowhere", ".", "arena.db"),
        "bot.py Main.class mybot ann ben",
    ),
}


@pytest.mark.parametrize(("made", "words", "hidden", "visible"), HIDDEN.values(), ids=HIDDEN)
def test_what_is_hidden(folder: Path, made: str, words: str, hidden: str, visible: str) -> None:
    for name in made.split():
        path, _, target = name.partition(">")
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        if target:
            (folder / path).symlink_to(folder / target)
        elif path.endswith("/"):
            (folder / path).mkdir()
        else:
            (folder / path).touch()

    assert seen(folder, f"{sys.executable} {words}", hidden.split()) == {*visible.split()}


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is executable there")
@pytest.mark.parametrize(
    ("text", "mode", "first"),
    [("", 0o644, None), ("", 0o755, None), ("#!/usr/bin/env python3\n", 0o755, "ann/bot.py")],
)
def test_a_strategy_is_connected(folder: Path, text: str, mode: int, first: str | None) -> None:
    (folder / "ann" / "bot.py").write_text(text)
    (folder / "ann" / "bot.py").chmod(mode)
    program = read_program("ann/bot.py", folder)

    expected = (first,) if first else (sys.executable, "-P", "-m", "bots", "ann/bot.py")
    assert program.words[: len(expected)] == expected
    assert (program.stdio, program.folder) == (False, folder)


# ---- Games that are installed beside ours


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a game whose package lies in `tmp_path`, among what we import."""
    caches = (entry_points._found, game_packages)
    name = write_toy(tmp_path, 2)
    monkeypatch.delitem(sys.modules, name, raising=False)  # another test's
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path.parent)
    for known in caches:
        known.cache_clear()
    yield name
    for known in caches:
        known.cache_clear()


def test_bots_are_shown_games(toy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what says that it is a game; of the import path it gets no other folders."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path.parent), tmp_path.name, "")))

    assert set(game_packages()) == {tmp_path / toy, tmp_path / f"{toy}-1.0.dist-info"}
    assert game_folders() == str(tmp_path)


def test_without_games_no_import_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    assert game_folders() == ""


# ---- A submission


def manifest(*command: str, stdio: bool = True) -> ProgramManifest:
    return ProgramManifest("other", command, stdio)


def test_a_submission_is_shown_all_of_its_folder(folder: Path) -> None:
    outside = folder.parent / "elsewhere.txt"
    outside.touch()
    program = sealed_program(folder, manifest("./mybot", "ann/bot.py", str(outside)))

    assert program.stdio
    assert {item.place for item in views(program, ())} == set(map(Path, os.listdir(folder)))
    assert program.command == ("./mybot", "ann/bot.py", str(outside))


def test_a_submission_that_connects_runs_behind_the_relay(folder: Path) -> None:
    program = sealed_program(folder, manifest("./mybot", "--fast", stdio=False))
    script = Path(relay.__file__).resolve()

    assert program.stdio  # to the arena
    assert program.command == (sys.executable, "-I", "-S", str(script), "./mybot", "--fast")
    assert VisiblePath(script, script) in views(program, ())


def test_a_submission_without_its_program_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"'\./nothing', which is in neither"):
        sealed_program(folder, manifest("./nothing"))
