from __future__ import annotations

import io
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
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


def test_the_list_of_commands_imports_none_of_them() -> None:
    code = (
        "import sys, arena.cli as c; c.main(['--help']); "
        "print([m for m in sys.modules if m.startswith('arena.cli.') or m == 'rich'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert done.stdout.splitlines()[-1] == "[]"


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


def test_a_name_that_the_output_cannot_encode(
    run_process: Run, tmp_path: Path, bot_file: Callable[..., str]
) -> None:
    path = bot_file("ж.py")
    ran = run_process("cross", "akq", path, "--hands", "2", env={"PYTHONIOENCODING": "ascii"})

    assert ran.status == 0
    assert "?.py" in ran.out


@pytest.mark.e2e
@pytest.mark.parametrize(
    "argv", [["play", "akq", "nash", "nobody"], ["cross", "nothing"], ["--bogus"]]
)
def test_errors_in_a_process_of_its_own(run_process: Run, argv: list[str]) -> None:
    run_process(*argv).refusal(status=2)


def piped(*argv: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.e2e
def test_a_reader_that_goes_away() -> None:
    with piped("-m", "arena", "driver", "1000000", "100000", "simple") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()

    assert process.returncode == 1
    assert said == "arena: nobody reads the output any more\n"


@pytest.mark.e2e
@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
def test_ctrl_c_in_a_process_of_its_own(bot_file: Callable[..., str]) -> None:
    path = bot_file(init="import sys; print('ready', file=sys.stderr, flush=True)")
    # Where the tests run in the background, Ctrl-C would be ignored by inheritance.
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from arena.cli import main; sys.exit(main())"
    )
    argv = ("cross", "akq", path, "nash", "--hands", "10000000", "--jobs", "1")
    with piped("-c", code, *argv) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        assert process.stderr.readline() == "ready\n"
        assert process.stderr.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        out = process.stdout.read()

    assert process.returncode == 130
    assert out == ""
    [line] = said.splitlines()
    assert line.startswith("arena: interrupted after ")
    assert "--seed " in line


@pytest.mark.e2e
@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_processes_of_long_work_end_with_the_command(
    bot_file: Callable[..., str], number: signal.Signals
) -> None:
    path = bot_file(init="import os; os.write(2, b'%d\\n' % os.getpid())")
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from arena.cli import main; sys.exit(main())"
    )
    argv = ("cross", "akq", path, "nash", "--hands", "10000000", "--jobs", "2")
    with piped("-c", code, *argv) as process:
        assert process.stderr is not None
        while int(process.stderr.readline()) == process.pid:
            pass
        process.send_signal(number)
        # It ends when no process has its stderr open any more.
        said = [line for line in process.stderr if not line.strip().isdecimal()]

    if number == signal.SIGKILL:
        assert (process.returncode, said) == (-number, [])
    else:
        assert process.returncode == 130
        [line] = said
        assert line.startswith("arena: interrupted after ")
        assert "--seed " in line


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
