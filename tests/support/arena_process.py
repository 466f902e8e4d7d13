"""What tests that run a whole arena as a process need: its commands, actors beside it, and what it
leaves behind when it dies.
"""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.in_process import run_here

__all__ = [
    "ROOT",
    "RunningProcess",
    "alive",
    "below",
    "below_other_tests",
    "free_port",
    "printed",
    "running",
    "start",
    "state",
    "toml_of",
]

ROOT = Path(__file__).resolve().parents[2]
_PPID, _STARTED = 1, 19  # fields of /proc/PID/stat behind the name


class RunningProcess(NamedTuple):
    """A process that cannot be mistaken for a later one of the same number."""

    pid: int
    started: int


def start(
    folder: Path, errors: str, *words: str, within: Sequence[str] = (), beside: Sequence[Path] = ()
) -> subprocess.Popen[bytes]:
    """Start `python WORDS` in a folder; what it says to people is added to a file there.

    `within` is a command that becomes the program, such as `ip netns exec NAME`; packages are also
    found in the folders `beside` ours.
    """
    with (folder / errors).open("ab") as err:
        return subprocess.Popen(
            [*within, sys.executable, *words],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=err,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, *beside)))},
        )


def printed(*words: str) -> Any:
    """What `arena WORDS --json` prints; a process of its own would print the same."""
    done = run_here(*words, "--json")
    assert done.status == 0, done.err
    return json.loads(done.out)


def free_port() -> int:
    """A port that nobody listens on just now, and that no system gives to who asks for any: other
    tests may run beside this one.
    """
    while True:
        # Hypothesis makes `random` itself the same in every process.
        port = random.SystemRandom().randrange(20_000, 30_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def running(pid: int) -> set[RunningProcess]:
    """The process of that number, if it is there. Linux only."""
    fields = _stat(pid)
    return {RunningProcess(pid, int(fields[_STARTED]))} if fields else set()


def below(pid: int) -> set[RunningProcess]:
    """All processes that one has started, and those have started, and so on. Linux only."""
    children: dict[int, list[RunningProcess]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and (fields := _stat(int(entry.name))):
            one = RunningProcess(int(entry.name), int(fields[_STARTED]))
            children.setdefault(int(fields[_PPID]), []).append(one)
    found: set[RunningProcess] = set()
    waiting = [pid]
    while waiting:
        mine = children.get(waiting.pop(), [])
        found.update(mine)
        waiting += [one.pid for one in mine]
    return found


def below_other_tests() -> set[RunningProcess]:
    """All processes of the tests that run beside this one, by pytest's `-n`. Linux only."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return set()
    return below(os.getppid()) - below(os.getpid())


def alive(processes: set[RunningProcess]) -> dict[int, str]:
    """Those of them that are still there, with their command lines; a zombie is not."""
    found = {}
    for one in processes:
        fields = _stat(one.pid)
        if fields and int(fields[_STARTED]) == one.started and fields[0] != "Z":
            with suppress(OSError):
                words = (Path("/proc") / str(one.pid) / "cmdline").read_bytes()
                found[one.pid] = words.replace(b"\0", b" ").decode(errors="replace")
    return found


def state(pid: int) -> str:
    """What a process does, in one letter: `T` stands still, `Z` has ended; nothing if it is gone.
    Linux only.
    """
    return next(iter(_stat(pid)), "")


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; none if it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return []


def toml_of(settings: Mapping[str, object]) -> str:
    """Settings as the table of one `[[run]]`."""
    pairs = (f"{name} = {json.dumps(value)}" for name, value in settings.items())
    return f"{{ {', '.join(pairs)} }}"
