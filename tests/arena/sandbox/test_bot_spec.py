from __future__ import annotations

from pathlib import Path

import pytest

from arena.sandbox.bot_spec import BotSpec, named, read_entry, unused
from arena.sandbox.command import Program
from protocol.errors import UsageError


def names(*texts: str) -> list[str | None]:
    return [entry.name for entry in named(map(read_entry, texts))]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of bots, which we are in."""
    monkeypatch.chdir(tmp_path)
    for path in ("bot.py", "ann/bot.py", "ben/main.py", "carl/dora.py", "weights.bin"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    mine = tmp_path / "mybot"
    mine.write_text("#!/bin/sh\n")
    mine.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("ann=sh -c x", "ann", ("sh", "-c", "x")),
        ("Zoë_2-b=sh", "Zoë_2-b", ("sh",)),
        (" ann= stdio: sh", "ann", ("sh",)),
        ("sh --name=ann", None, ("sh", "--name=ann")),
        ("stdio: sh --name=ann", None, ("sh", "--name=ann")),
    ],
)
def test_a_name_stands_before_equals(text: str, name: str | None, words: tuple[str, ...]) -> None:
    entry = read_entry(text)

    assert (entry.name, entry.program.words) == (name, words)
    assert entry.program.stdio is ("stdio:" in text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ann=", "expected a command line"),
        ("", "expected a command line"),
        ("=sh", "expected a program"),
        ("ann=no-such-program-anywhere", "expected a program"),
        ("x" * 65 + "=sh", "expected a name of 1 to 64 letters"),
    ],
)
def test_what_is_no_bot(here: Path, text: str, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        read_entry(text)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("./mybot --fast", "mybot"),
        ("mybot weights.bin", "mybot"),
        ("sh bot.py", "bot"),
        ("sh -u bot.py --weights weights.bin", "bot"),
        ("sh ann/bot.py", "ann"),
        ("sh ben/main.py", "ben"),
        ("sh carl/dora.py", "dora"),
        ("sh -cp . MyBot", "MyBot"),
        ("sh -cp . org.school.MyBot 5", "MyBot"),
        ("sh -m bots akq nash", "nash"),
        ("sh", "sh"),
        ("/bin/sh -c 'echo !'", "echo"),
        ("sh -c '  ! !a'", "a"),
        ("sh -c " + "x" * 100, "x" * 24),  # short enough for a table
    ],
)
def test_a_bot_without_a_name_is_called_as_expected(here: Path, command: str, name: str) -> None:
    assert names(command) == [name]


def test_a_word_that_makes_no_name() -> None:
    assert named([BotSpec(Program(("/",)))])[0].name == "bot"


def test_bots_that_would_have_the_same_name_are_numbered(here: Path) -> None:
    found = names("./mybot", "mybot=sh", "./mybot", "./mybot", "mybot-3=sh")

    assert found == ["mybot-2", "mybot", "mybot-4", "mybot-5", "mybot-3"]


@pytest.mark.parametrize(
    ("second", "why"),
    [
        ("ann=sh -c x", "by another name, got 'ann' twice"),
        ("ANN=sh", "got 'ann' and 'ANN', which look alike"),
    ],
)
def test_names_that_are_given_twice_or_look_alike(second: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        names("ann=sh", second)


@pytest.mark.parametrize(
    ("name", "number"), [("ann", "ann-3"), ("ben", "ben"), ("ann-2", "ann-2-2"), ("ANN", "ANN-3")]
)
def test_a_name_that_somebody_has_gets_the_next_number(name: str, number: str) -> None:
    assert unused(name, {"ann", "Ann-2", "ben-2"}) == number
