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
    expose,
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


def test_the_folder_is_the_current_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)

    assert read_program("./mybot").folder == folder.resolve()


def test_a_program_in_the_folder_needs_no_dot(folder: Path) -> None:
    assert read_program("mybot", folder).words == (os.path.join(".", "mybot"),)


def test_a_path_that_leads_here_only_by_chance_is_not_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", os.pathsep.join([".", "ann", "/usr/bin"]))

    assert search_path() == "/usr/bin"
    assert read_program("mybot").words == (os.path.join(".", "mybot"),)


def test_a_program_on_path_comes_before_one_in_the_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(folder))

    assert read_program("mybot", folder / "ann").words == ("mybot",)


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


def test_a_program_found_on_path_names_no_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(folder))
    program = Program(words=("mybot", "ann/bot.py"), folder=folder)

    assert [item.place for item in views(program, ())] == [Path("ann")]


def test_a_program_without_a_folder_sees_nothing() -> None:
    assert views(Program(words=(sys.executable, ".")), ()) == ()


def test_a_path_that_leads_out_of_the_folder_is_refused(folder: Path) -> None:
    program = Program(words=("python", "../bot.py"), folder=folder / "ann")

    with pytest.raises(UsageError, match=r"expected paths in .*ann, got '\.\./bot\.py'"):
        views(program, ())


def test_a_whole_path_is_shown_where_it_is_with_what_lies_beside_it(folder: Path) -> None:
    program = Program(words=("python", str(folder / "bot.py")), folder=folder / "ann")
    shown = views(program, [folder / "arena.db"])

    assert {str(item.place) for item in shown if item.place.is_absolute()} == {
        str(folder / name) for name in EVERYTHING
    }


def test_in_a_home_only_the_file_itself_is_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder))
    words = ("python", str(folder / "bot.py"), str(folder))
    shown = views(Program(words=words, folder=folder / "ann"), ())

    assert [item.place for item in shown if item.place.is_absolute()] == [folder / "bot.py"]


def test_too_many_files_are_refused_with_advice(folder: Path) -> None:
    for number in range(1_001):
        (folder / f"{number}.txt").touch()

    with pytest.raises(UsageError, match="expected at most 1,000 files"):
        views(Program(words=("python", "bot.py"), folder=folder), ())
    assert seen(folder, f"{sys.executable} ann/bot.py") == {"ann"}


# ---- What is hidden


def test_what_is_hidden_need_not_be_there_yet(folder: Path) -> None:
    (folder / "ann" / "data").mkdir()

    assert seen(folder, f"{sys.executable} ann/bot.py", ["ann/arena.db"]) == {
        "ann/bot.py",
        "ann/data",
    }


def test_what_is_hidden_deep_in_a_folder_leaves_a_gap_there(folder: Path) -> None:
    (folder / "ann" / "a" / "b").mkdir(parents=True)
    for name in ("arena.db", "b/arena.db", "b/kept"):
        (folder / "ann" / "a" / name).touch()

    assert seen(folder, f"{sys.executable} ann", ["ann/a/b/arena.db"]) == {
        "ann/bot.py",
        "ann/a/arena.db",
        "ann/a/b/kept",
    }


def test_a_link_to_what_is_hidden_is_hidden(folder: Path) -> None:
    (folder / "records").mkdir()
    (folder / "records" / "one").touch()
    (folder / "link").symlink_to(folder / "records")
    (folder / "ann" / "db").symlink_to(folder / "records" / "one")

    hidden = [folder / "records"]
    assert list(expose(folder / "link", Path("link"), hidden)) == []
    assert list(expose(folder / "ann" / "db", Path("db"), hidden)) == []


def test_a_link_to_the_folder_of_what_is_hidden_shows_the_rest(folder: Path) -> None:
    (folder / "link").symlink_to(folder / "ben")
    (folder / "ben" / "arena.db").touch()

    assert list(expose(folder / "link", Path("link"), [folder / "ben/arena.db"])) == [
        VisiblePath(folder / "link" / "x.jar", Path("link/x.jar"))
    ]


def test_a_link_that_leads_back_up_ends(folder: Path) -> None:
    (folder / "ann" / "up").symlink_to(folder / "ann")

    assert seen(folder, f"{sys.executable} ann", ["ann/arena.db"]) == {"ann/bot.py"}


def test_a_link_to_nothing_is_left_out(folder: Path) -> None:
    (folder / "nothing").symlink_to(folder / "nowhere")

    assert "nothing" not in seen(folder, f"{sys.executable} .")


def test_a_file_with_a_strategy_is_connected_by_our_client(folder: Path) -> None:
    program = read_program("ann/bot.py", folder)

    assert program.words[:5] == (sys.executable, "-P", "-m", "bots", "ann/bot.py")
    assert (program.stdio, program.folder) == (False, folder)


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is executable there")
@pytest.mark.parametrize(
    ("text", "first"), [("#!/usr/bin/env python3\n", "ann/bot.py"), ("", None)]
)
def test_a_file_that_is_a_program_of_its_own_is_started_as_it_is(
    folder: Path, text: str, first: str | None
) -> None:
    (folder / "ann" / "bot.py").write_text(text)
    (folder / "ann" / "bot.py").chmod(0o755)

    assert read_program("ann/bot.py", folder).words[0] == (first or sys.executable)


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


def test_a_bot_is_shown_the_package_of_a_game_and_what_says_that_it_is_one(
    toy: str, tmp_path: Path
) -> None:
    assert set(game_packages()) == {tmp_path / toy, tmp_path / f"{toy}-1.0.dist-info"}


def test_a_bot_gets_the_folders_of_games_of_our_import_path_and_no_others(
    toy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = (str(tmp_path.parent), tmp_path.name, "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(entries))

    assert game_folders() == str(tmp_path)


def test_without_games_from_elsewhere_a_bot_gets_no_import_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    assert game_folders() == ""


# ---- A submission


def manifest(*command: str, stdio: bool = True) -> ProgramManifest:
    return ProgramManifest("other", command, stdio)


def test_a_submission_is_shown_all_of_its_folder_whatever_its_words_name(folder: Path) -> None:
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


def test_a_submission_may_have_as_many_entries_at_the_top_as_can_be_shown(folder: Path) -> None:
    for number in range(1_001):
        (folder / f"{number}.txt").touch()

    with pytest.raises(UsageError, match=r"at most 1,000 files .* put them into folders"):
        views(sealed_program(folder, manifest("./mybot")), ())
