"""What is said of a bot's code that does not return, and when it ends the program."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from protocol import watchdog
from protocol.strategy import load_file
from protocol.watchdog import Watchdog

BOT = """
import time
from helper import wait
class Bot:
    game = "blackjack"
    def decide(self, is_over):
        while not is_over():
            time.sleep(0.01)
    def hear(self, is_over): wait(is_over)
    def reset(self): pass
"""
HELPER = """
def wait(is_over):
    while not is_over():
        pass
"""


@pytest.fixture
def bot(tmp_path: Path) -> Any:
    (tmp_path / "mine.py").write_text(BOT)
    (tmp_path / "helper.py").write_text(HELPER)
    return load_file(tmp_path / "mine.py")()


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "LONG_S", 0.05)
    monkeypatch.setattr(watchdog, "LOOK_S", 0.005)


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The statuses with which it would have ended the program."""
    statuses: list[int] = []
    monkeypatch.setattr("os._exit", statuses.append)
    return statuses


@pytest.mark.parametrize(
    ("method", "where"),
    [
        ("decide", r"mine\.py has been in decide\(\) for 0 s \(line [78]\)"),
        ("hear", r"helper\.py has been in wait\(\) for 0 s \(line [34]\)"),
    ],
)
def test_where_the_code_is_is_said_once(bot: Any, ends: list[int], method: str, where: str) -> None:
    lines: list[str] = []
    with Watchdog((), lines.append) as watching:
        getattr(bot, method)(lambda: lines)
        first = time.monotonic()
        getattr(bot, method)(lambda: time.monotonic() > first + 0.2)
        assert watching.stuck
        assert len(lines) == 2, "each call is told once"

    assert re.fullmatch(where, lines[0])
    assert (watching.stuck, ends) == ("", [])


def test_code_that_returns_is_not_named(bot: Any, ends: list[int]) -> None:
    lines: list[str] = []
    with Watchdog((), lines.append):
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            bot.decide(lambda: True)

    assert (lines, ends) == ([], [])


def stuck(bot: Any, watching: Callable[[], list[int]]) -> None:
    bot.decide(watching)


def test_a_house_bot_is_watched_by_its_file(ends: list[int]) -> None:
    lines: list[str] = []
    with Watchdog([__file__], lines.append):
        until = time.monotonic() + 60
        while not lines and time.monotonic() < until:
            time.sleep(0.01)

    assert "test_watchdog.py has been in test_a_house_bot_is_watched_by_its_file()" in lines[0]
    assert ends == []


def test_nothing_is_said_to_whoever_debugs(bot: Any, ends: list[int]) -> None:
    lines: list[str] = []
    until = time.monotonic() + 0.2
    inside = {"__name__": "bdb", "is_over": lambda: time.monotonic() > until, "time": time}
    exec("def waits():\n    while not is_over(): time.sleep(0.01)\n    return True", inside)
    with Watchdog((), lines.append):
        bot.decide(inside["waits"])

    assert (lines, ends) == ([], [])


def test_it_ends_when_the_arena_has(bot: Any, ends: list[int]) -> None:
    lines: list[str] = []
    with Watchdog((), lines.append, lambda: True):
        stuck(bot, lambda: ends)

    assert ends[0] == 1
    assert lines[1].startswith("the arena has closed the connection; mine.py has been in decide()")


@pytest.mark.parametrize("is_known", [False, True])
def test_a_signal_ends_it_at_once_or_as_soon_as_that_is_known(
    bot: Any, ends: list[int], is_known: bool
) -> None:
    lines: list[str] = []

    def signalled() -> list[int]:
        if not is_known or lines:
            watching.end_if_stuck(130)
        return ends

    with Watchdog((), lines.append) as watching:
        stuck(bot, signalled)

    assert ends[0] == 130
    assert any(line.startswith("ended, as mine.py has been in decide()") for line in lines)


def test_it_ends_though_nothing_can_be_said(bot: Any, ends: list[int]) -> None:
    def fails(line: str) -> None:
        raise OSError("standard error is closed")

    with Watchdog((), fails) as watching:
        watching.end_if_stuck(130)
        stuck(bot, lambda: ends)

    assert ends[0] == 130
