"""What only a process of its own shows of a command: start-up, signals, pipes, and its exit status.

All else of the command line is in tests/arena/cli, in the tests' own process.
"""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.cram import write_bot
from tests.support.in_process import Ran, run_here

pytestmark = pytest.mark.e2e


def ran(*words: str, **options: Any) -> Ran:
    """Run `python -m arena` to its end."""
    done = subprocess.run(
        [sys.executable, "-m", "arena", *words], capture_output=True, encoding="utf-8", **options
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def test_the_list_of_commands_imports_none_of_them() -> None:
    code = (
        "import sys, arena.cli as c; c.main(['--help']); "
        "print([m for m in sys.modules if m.startswith('arena.cli.') or m == 'rich'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert done.stdout.splitlines()[-1] == "[]"


def test_help_loads_no_client_of_a_database_or_an_arena() -> None:
    """What these take to load is what the help of a command would wait for."""
    slow = ("analyse", "bench", "connect", "docs", "luck", "tournament")
    code = (
        "import sys, arena.cli as c; "
        f"[c.main([name, '--help']) for name in c.COMMANDS if name not in {slow}]; "
        "print([m for m in ('sqlalchemy', 'websockets', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert (done.stdout.splitlines()[-1], done.stderr) == ("[]", "")


def test_a_name_that_the_output_cannot_encode(tmp_path: Path) -> None:
    path = write_bot(tmp_path / "ж.py")
    done = ran("cross", "akq", path, "--hands", "2", env={"PYTHONIOENCODING": "ascii"})

    assert done.status == 0
    assert "?.py" in done.out


def test_an_error_in_a_process_of_its_own() -> None:
    ran("play", "akq", "nash", "nobody").refusal(status=2)


def piped(*argv: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_reader_that_goes_away() -> None:
    with piped("-m", "arena", "driver", "1000000", "100000", "simple") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()

    assert process.returncode == 1
    assert said == "arena: nobody reads the output any more\n"


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_processes_of_long_work_end_with_the_command(
    tmp_path: Path, number: signal.Signals
) -> None:
    path = write_bot(tmp_path / "mine.py", init="import os; os.write(2, b'%d\\n' % os.getpid())")
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
        # Python's own process beside it clears up, and says so.
        ours = [line for line in said if "resource_tracker" not in line]
        assert (process.returncode, ours) == (-number, [])
    else:
        assert process.returncode == 130
        [line] = said
        assert line.startswith("arena: interrupted after ")
        assert "--seed " in line


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such limit")
def test_more_jobs_than_files_can_be_open() -> None:
    def few_files() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))

    argv = ["ruin", "tcp", "--bot", "sleep 100", "--stake", "20", "--goal", "40", "--jobs", "200"]
    done = ran(*argv, preexec_fn=few_files)

    assert done.status == 1
    assert done.err.splitlines()[-1].endswith("Too many open files; expected fewer --jobs than 200")


@pytest.mark.parametrize(
    ("words", "said"),
    [(("--bus-key", "none.nk"), "cannot read none.nk"), ((), "nats://127.0.0.1:1: ")],
)
def test_a_bus_that_cannot_be_joined_is_one_line(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    where = ("--cache", str(tmp_path), "--bus", "nats://127.0.0.1:1")
    done = run_here("host", *where, *words)

    assert done.status in (1, 2)
    assert said in done.failure(done.status)
