from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any

import click
import pytest

from arena.cli import COMMANDS, command_named, main
from arena.cli import _options as options
from arena.cli import _output as output
from protocol.version import __version__

Run = Callable[..., Any]


def test_version(run: Run) -> None:
    assert run("--version") == (0, f"arena {__version__}\n", "")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_there(run: Run, name: str) -> None:
    command = command_named(name)

    assert isinstance(command, click.Command)
    assert command.name == name
    assert COMMANDS[name] in run("--help").out


def test_a_closed_stdout(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    line = run("odds", "tcp", "--trials", "1").refusal(status=1)

    assert line == "standard output is closed, expected it open"


def test_a_closed_stderr(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)

    assert run("odds", "tcp", "--trials", "1", "--json").document["trials"] == 1
    assert run("odds").status == 2


def test_ctrl_c(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(options, "fresh_seed", interrupted)

    assert run("play", "akq", "nash", "nash").refusal(status=130) == "interrupted"


@pytest.mark.parametrize(
    ("argv", "unit"),
    [
        (["odds", "tcp"], "hands"),
        (["ruin", "tcp", "always", "--stake", "100", "--goal", "200"], "trials"),
    ],
    ids=["odds", "ruin"],
)
def test_ctrl_c_says_how_far_it_came_and_how_to_go_on(
    run: Run, monkeypatch: pytest.MonkeyPatch, argv: list[str], unit: str
) -> None:
    def interrupted(*_: object, report: Callable[[int], None], **__: object) -> None:
        report(2)
        raise KeyboardInterrupt

    monkeypatch.setattr(f"arena.cli.{argv[0]}.{argv[0]}", interrupted)
    line = run(*argv, "--trials", "5000", "--seed", "7").refusal(130)

    assert line == (
        f"interrupted after 2 of 5,000 {unit}; "
        "--seed 7 repeats the run, and a smaller --trials shortens it"
    )


def test_a_full_disk(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(output, "print_json", full)
    line = run("odds", "tcp", "--trials", "1", "--json").refusal(status=1)

    assert line == "No space left on device"


def test_progress_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with output.progress("Gin rummy", 2, "game", seed=1, less="--games") as progress:
        progress.tick()

    assert progress.done == 1
    assert "Gin rummy" in terminal.getvalue()


def test_progress_is_quiet_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with output.progress("Gin rummy", 2, "game", seed=1, less="--games") as progress:
        progress.tick()

    assert progress.done == 1
    assert capsys.readouterr() == ("", "")


def test_main_reads_the_process_arguments(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["arena", "--version"])

    assert main() == 0
    assert capsys.readouterr().out.startswith("arena ")
