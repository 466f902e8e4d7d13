"""The readers of the process table: lines of /proc, and this test's own process by both readers."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from importlib.util import find_spec

import pytest

from arena.sandbox.process_table import (
    LinuxProcesses,
    ProcessEntry,
    Processes,
    PsutilProcesses,
    cpu_resolution_ms,
    knows_waits,
    parse_stat,
    probe,
)
from arena.sandbox.process_table import reader as reader_of_this_system
from tests.support.needs import skip_without

MIB = 1 << 20
ROUNDING_MS = 20.0  # user and system time, each rounded down to a tick of 10 ms

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="this is not Linux")


# ---- parse_stat

STAT = (
    b"42 (%s) %s 7 42 42 0 -1 4194560 900 0 0 0 150 50 30 20 20 0 %d 0 12345 "
    b"9000000 512 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n"
)


@pytest.mark.parametrize(
    ("name", "state", "threads", "is_zombie"),
    [
        *((name, b"S", 1, False) for name in (b"python", b"a b", b") R 1 1 (", b"))", b"(", b"")),
        ("ä".encode()[:1], b"S", 1, False),
        (b"bot", b"Z", 1, True),
        (b"bot", b"Z", 2, False),  # threads are left
    ],
)
def test_a_stat_line_is_read_whatever_the_process_calls_itself(
    name: bytes, state: bytes, threads: int, is_zombie: bool
) -> None:
    stat = parse_stat(STAT % (name, state, threads))

    entry = ProcessEntry(42, 7, name.decode(errors="replace"), 12345, is_zombie)
    assert stat == (entry, 200, 50)


@pytest.mark.parametrize("line", [b"", b"42", b"42 (bot) S 7", b"42 bot S 7"])
def test_a_stat_line_that_is_cut_off_is_none(line: bytes) -> None:
    assert parse_stat(line) is None


def pids(processes: list[subprocess.Popen[bytes]]) -> list[int]:
    return [process.pid for process in processes]


# ---- Readers, on the process of this test


@pytest.fixture(params=["proc", "psutil"])
def reader(request: pytest.FixtureRequest) -> Processes:
    if request.param == "proc":
        if sys.platform != "linux":
            pytest.skip("this is not Linux")
        return LinuxProcesses()
    skip_without("psutil")
    return PsutilProcesses()


def test_a_reader_knows_this_process(reader: Processes) -> None:
    entry = reader.entries([os.getpid()])[os.getpid()]
    memory = reader.memory(os.getpid())
    cpu = reader.cpu(os.getpid())
    pss = reader.pss(os.getpid())

    assert entry.parent == os.getppid()
    assert not entry.is_zombie
    assert memory is not None
    assert cpu is not None
    assert pss is not None
    assert MIB < memory.rss_bytes <= memory.peak_bytes < 4096 * MIB
    assert MIB < pss <= memory.rss_bytes + MIB
    assert cpu.started == entry.started


def test_a_reader_sees_cpu_time_pass(reader: Processes) -> None:
    before = reader.cpu(os.getpid())
    began_s = time.process_time()
    while time.process_time() - began_s < 0.1:
        pass
    after = reader.cpu(os.getpid())

    assert before is not None
    assert after is not None
    assert after.own_ms - before.own_ms >= 100 - ROUNDING_MS


def test_a_reader_knows_nothing_of_a_process_that_is_not_there(reader: Processes) -> None:
    nobody = 1 << 26  # more than a system numbers

    assert nobody not in reader.pids()
    assert reader.entries([nobody]) == {}
    assert reader.clock(nobody) is None
    assert reader.memory(nobody) is None
    assert reader.pss(nobody) is None
    assert reader.cpu(nobody) is None
    assert reader.waits(nobody) == {}


@ON_LINUX
def test_on_linux_a_thread_that_shares_its_core_has_waited_for_it() -> None:
    core = {min(os.sched_getaffinity(0))}
    program = f"import os, time\nos.sched_setaffinity(0, {core})\n"
    program += "while time.process_time() < 0.2: pass\ninput()"
    command = [sys.executable, "-c", program]
    pipe = subprocess.PIPE
    both = [subprocess.Popen(command, stdin=pipe) for _ in range(2)]
    processes = LinuxProcesses()
    while sum(cpu.own_ms for cpu in map(processes.cpu, pids(both)) if cpu) < 400:
        time.sleep(0.01)
    waits = [processes.waits(pid) for pid in pids(both)]
    for process in both:
        process.communicate()

    assert [list(wait) for wait in waits] == [[pid] for pid in pids(both)]
    assert sum(sum(wait.values()) for wait in waits) > 100
    assert processes.waits(both[0].pid) == {}


STANDS_BACK = """
import os, threading
def stand_back(how):
    how(threading.get_native_id())
    there.wait()
    threading.Event().wait()
nice = os.getpriority(os.PRIO_PROCESS, 0) + 1
there = threading.Barrier(4)
for how in (
    lambda thread: os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0)),
    lambda thread: os.setpriority(os.PRIO_PROCESS, thread, nice),
    lambda thread: None,
):
    threading.Thread(target=stand_back, args=(how,), daemon=True).start()
there.wait()
print(*(thread.native_id for thread in threading.enumerate()), flush=True)
input()
"""


@ON_LINUX
def test_on_linux_threads_that_stand_back_for_others_have_waited_for_no_core() -> None:
    command = [sys.executable, "-c", STANDS_BACK]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        main, _idle, _nice, other = map(int, process.stdout.readline().split())
        waits = LinuxProcesses().waits(process.pid)
        process.communicate()

    assert waits.keys() == {main, other}


@ON_LINUX
def test_on_linux_sampling_works_and_cpu_time_has_small_steps() -> None:
    step_ms = cpu_resolution_ms()

    assert probe() is None
    assert knows_waits()
    assert step_ms is not None
    assert 0 < step_ms <= 10
    assert isinstance(reader_of_this_system(), LinuxProcesses)


def test_where_there_is_no_proc_psutil_reads_or_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("arena.sandbox.process_table._has_proc", lambda: False)
    if find_spec("psutil") is not None:
        assert probe() is None
        assert isinstance(reader_of_this_system(), PsutilProcesses)
    monkeypatch.setattr(importlib, "import_module", missing)

    assert "pip install 'card-arena[psutil]'" in (probe() or "")
    assert cpu_resolution_ms() is None
