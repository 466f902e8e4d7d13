"""Tries changes of the code, each by the tests that reach it: what `mutants` and `faults` do.

A change is killed if a test fails, fails again when it is alone, and passes without the change. The
tests that mirror its module come first, and of them the quick ones. All runs of a change have 60
seconds of the processor together; a test that only a limit of time ended kills nothing.

Tests are collected once. Each run is a fork of that process, in which the changed functions have
other code, and programs that tests start read the changed file; so a change is one within functions.
Results stand in a file, a line each, and what is there is not tried again: it can be interrupted."""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import select
import signal
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import cache_from_source
from itertools import chain, zip_longest
from pathlib import Path
from types import CodeType, FunctionType
from typing import NamedTuple

import coverage
import pytest

from tests.tools.branches import seconds_file
from tests.tools.trees import ROOT, group_of, kept, run_in, scratch, write_kept

__all__ = ["TriedChange", "parser", "try_all"]

_CPU_S = 60
_TESTS_S = 30.0  # of tests a change, as long as they took when they were measured
_UNKNOWN_S = 0.05
_TRIES = 4  # tests a change that fail without it, too, or only by a limit of time
_IDLE_S = 40  # a run that waits so long and computes nothing hangs
_DATA_BYTES = 4 << 30  # an endless loop may collect something, too
_OVER = b"over\n"
_OUR_SIGNALS = (signal.SIGXCPU, signal.SIGKILL)
_OUTCOMES = ("killed", "survived", "clock", "unreached")


class TriedChange(NamedTuple):
    """A module with other code in some of its functions.

    Attributes:
        path: of the module, from the top.
        name: what the change is known by; it begins with the path.
        lines: of the code as it is, those that run where it is changed.
        code: all of the module, changed.
    """

    path: str
    name: str
    lines: Sequence[int]
    code: str


# ---- In a scratch copy


def _functions(code: CodeType) -> Iterator[CodeType]:
    """The outermost functions of a module, and those of its classes, as they stand."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            is_function = bool(inner.co_flags & 2)  # CO_NEWLOCALS, which a class's body has not
            yield from [inner] if is_function else _functions(inner)


def _become(change: TriedChange) -> None:
    """Give this process and those that it starts the changed code."""
    file = ROOT / change.path
    before, after = (
        [*_functions(compile(text, str(file), "exec", dont_inherit=True))]
        for text in (file.read_text(encoding="utf-8"), change.code)
    )
    other = {
        (old.co_qualname, old.co_firstlineno): new
        for old, new in zip(before, after, strict=True)
        if old != new
    }
    file.write_text(change.code, encoding="utf-8")
    Path(cache_from_source(str(file))).unlink(missing_ok=True)
    gc.unfreeze()  # tests/conftest.py has hidden what all tests share
    for found in gc.get_objects():
        if isinstance(found, FunctionType) and found.__code__.co_filename == str(file):
            code = found.__code__
            found.__code__ = other.get((code.co_qualname, code.co_firstlineno), code)


def _used(pid: int) -> tuple[str, ...] | None:
    """The time that a process has had of the processor; None while it wants more."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return None if fields[0] == "R" else (fields[11], fields[12])


class _Trials:
    """A plugin of pytest that tries changes instead of running the tests."""

    def __init__(
        self,
        changes: Sequence[TriedChange],
        killers: dict[str, str],
        data: str,
        found: Path,
        again: bool,
    ) -> None:
        self._changes = changes
        self._killers = killers
        self._data = coverage.CoverageData(data) if data else None
        self._seconds: dict[str, float] = {}
        if self._data:
            self._data.read()
            self._seconds = json.loads(seconds_file(Path(data)).read_bytes())
        self._found = found
        self._again = again
        self._items: dict[str, pytest.Item] = {}
        self._of: defaultdict[str, list[str]] = defaultdict(list)  # a function's tests
        self._left_s = 0.0  # of the processor, for the change that is being tried
        self._failed = ""
        self._say: Callable[[str], object] = print

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for item in session.items:
            self._items[item.nodeid] = item
            self._of[item.nodeid.partition("[")[0]].append(item.nodeid)
        lines = map(json.loads, self._found.read_text().splitlines())
        tried = {name for name, outcome, _ in lines if outcome == "killed" or not self._again}
        for number, change in enumerate(self._changes, 1):
            if change.name in tried:
                continue
            outcome, test = self._try(session, change)
            with self._found.open("a") as file:
                file.write(json.dumps([change.name, outcome, test], ensure_ascii=False) + "\n")
            print(f"{number}/{len(self._changes)} {outcome:<9}{change.name}", file=sys.stderr)
        return True

    def _reaching(self, change: TriedChange) -> list[str]:
        """The tests that may notice a change, in the order in which they are worth trying."""
        killer = self._killers.get(change.name, "").partition("::")[0]
        folder, _, stem = change.path.removesuffix(".py").rpartition("/")
        own, near = f"tests/{folder}/test_{stem}.py", f"tests/{folder}/"
        reach: set[str] = set()
        if self._data:
            by_line = self._data.contexts_by_lineno(change.path)
            contexts = {name for line in change.lines for name in by_line.get(line, ())}
            reach = {*self._items} & {
                one for name in contexts for one in self._of.get(name, [name])
            }
        if not reach:  # it is reached in other processes, or nobody has measured it
            reach = {name for name in self._items if name.startswith((own, killer or own))}
            if not self._data:
                reach |= {name for name in self._items if name.startswith(near)}

        def seconds_of(name: str) -> float:
            function = name.partition("[")[0]
            whole_s = self._seconds.get(function, _UNKNOWN_S)
            return self._seconds.get(name, whole_s / len(self._of[function]))

        def cost_s(name: str) -> float:
            handicap_s = 0.0 if name.startswith(own) else 0.1 if name.startswith(near) else 0.5
            if killer and name.startswith(killer):
                handicap_s = -1.0
            return seconds_of(name) + handicap_s

        chosen: list[str] = []
        total_s = 0.0
        for name in sorted(sorted(reach), key=cost_s):
            total_s += seconds_of(name)
            if total_s <= _TESTS_S or not chosen:
                chosen.append(name)
        by_file: dict[str, list[str]] = {}  # their fixtures are set up once
        for name in chosen:
            by_file.setdefault(name.partition("::")[0], []).append(name)
        return [*chain(*by_file.values())]

    def _try(self, session: pytest.Session, change: TriedChange) -> tuple[str, str]:
        """What comes of a change: killed, clock, survived or unreached; and the test that failed."""
        names = self._reaching(change)
        outcome = "survived" if names else "unreached"
        self._left_s = float(_CPU_S)
        for _ in range(_TRIES):
            if self._left_s < 1:
                return "clock", ""
            failed, by_clock = self._run(session, names, change)
            if not failed:
                break
            if by_clock:
                outcome = "clock"
            else:
                alone = [failed]
                if not self._run(session, alone, None)[0] and self._run(session, alone, change)[0]:
                    return "killed", failed
            names = [name for name in names if name != failed]
        return outcome, ""

    def _run(
        self, session: pytest.Session, names: Sequence[str], change: TriedChange | None
    ) -> tuple[str, bool]:
        """The test that fails, none if all pass; and whether only a limit of time ended it."""
        said, write = os.pipe()
        file = ROOT / change.path if change else None
        code = file.read_bytes() if file else b""
        pid = os.fork()
        if not pid:
            try:
                os.setsid()
                os.close(said)
                self._say = lambda line: os.write(write, f"{line}\n".encode())
                self._child(session, names, change)
            finally:
                os._exit(0)
        os.close(write)
        lines, is_crash = self._heard(pid, said)
        if file:
            file.write_bytes(code)
            Path(cache_from_source(str(file))).unlink(missing_ok=True)
        word, _, test = (lines or [""])[-1].partition(" ")
        return test, word == "clock" or (word == "begun" and not is_crash)

    def _heard(self, pid: int, said: int) -> tuple[list[str], bool]:
        """The lines that a trial has said at its end, and whether it crashed."""
        heard = b""
        idle_s, used = 0, None
        try:
            while idle_s < _IDLE_S and not heard.endswith(_OVER):
                if select.select([said], [], [], 1.0)[0]:
                    if not (more := os.read(said, 1 << 16)):
                        break
                    heard += more
                    idle_s = 0
                before, used = used, _used(pid)
                idle_s = idle_s + 1 if used is not None and used == before else 0
        finally:  # and after Ctrl-C
            os.close(said)
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            _, status, usage = os.wait4(pid, 0)
            self._left_s -= usage.ru_utime + usage.ru_stime
        is_crash = os.WIFSIGNALED(status) and os.WTERMSIG(status) not in _OUR_SIGNALS
        return heard.removesuffix(_OVER).decode().splitlines(), is_crash

    def _child(
        self, session: pytest.Session, names: Sequence[str], change: TriedChange | None
    ) -> None:
        """Run tests in a process of their own, until one fails."""
        limit_s = max(1, int(self._left_s))
        resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s))
        resource.setrlimit(resource.RLIMIT_DATA, (_DATA_BYTES, _DATA_BYTES))
        for stream in 1, 2:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        if change:
            _become(change)
        hook = session.config.hook
        items = [self._items[name] for name in names]
        for item, following in zip_longest(items, items[1:]):
            self._say(f"begun {item.nodeid}")
            hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._failed:
                break
        hook.pytest_sessionfinish(session=session, exitstatus=0)
        self._say(self._failed or "passed")
        self._say("over")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self._failed:
            text = str(
                getattr(getattr(report.longrepr, "reprcrash", None), "message", report.longrepr)
            )
            by_clock = "TimeoutError" in text or "Timeout (>" in text
            self._failed = f"{'clock' if by_clock else 'failed'} {report.nodeid}"


class _Job(NamedTuple):
    """What the process that tries changes is told."""

    changes: list[TriedChange]
    killers: Mapping[str, str]
    data: str
    found: str
    again: bool


def _try_here(job: Path) -> int:
    """Try changes in this copy of the tree."""
    changes, killers, data, found, again = json.loads(job.read_bytes())
    trials = _Trials([TriedChange(*one) for one in changes], killers, data, Path(found), again)
    options = ("-q", "-s", "-n", "0", "-p", "no:cacheprovider", "-m", "not e2e and not stats")
    return int(pytest.main([*options, "--basetemp", f"{job}.tmp"], plugins=[trials]))


# ---- For the commands


def parser(prose: str | None, found: str) -> argparse.ArgumentParser:
    """The options that all who try changes have.

    Args:
        prose: what the command does.
        found: the file of results, if none is named.
    """
    made = argparse.ArgumentParser(
        description=prose, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--commit", default="", help="instead of the working tree")
    made.add_argument("--data", type=Path, help="what tests.tools.branches --data left")
    made.add_argument("--found", type=Path, default=Path(found), help="the file of results")
    made.add_argument("--again", action="store_true", help="those not killed are tried again")
    made.add_argument("--keep", action="store_true", help="write the results into the yardstick")
    return made


def try_all(kind: str, changes: Sequence[TriedChange], options: argparse.Namespace) -> int:
    """Try changes, and print how many of each package had which outcome.

    Args:
        kind: where their results stand in the yardstick.
        changes: to be tried.
        options: of the command.

    Returns:
        1 if one that the yardstick has as killed is not, or not all were tried; else 0.
    """
    killers = {name: by for name, by in kept(kind).items() if by.startswith("tests/")}
    options.found.touch()
    data = str(options.data.absolute()) if options.data else ""
    job = _Job([*changes], killers, data, str(options.found.absolute()), options.again)
    with scratch(options.commit) as tree, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "job"
        file.write_text(json.dumps(job))
        run_in(tree, "tests.tools.trials", str(file))
    lines = [json.loads(line) for line in options.found.read_text().splitlines()]
    results = {name: (outcome, test.partition("::")[0]) for name, outcome, test in lines}
    tried = {change.name: results[change.name] for change in changes if change.name in results}
    _show(kind, tried)
    if options.keep:
        write_kept(kind, {name: test or outcome for name, (outcome, test) in tried.items()})
    lost = [name for name in killers if tried.get(name, ("killed",))[0] != "killed"]
    for name in lost:
        print(f"{tried[name][0]}, killed before by {killers[name]}: {name}")
    return 1 if lost or len(tried) < len(changes) else 0


def _show(kind: str, tried: Mapping[str, tuple[str, str]]) -> None:
    counted = Counter((group_of(name.partition(" ")[0]), tried[name][0]) for name in tried)
    groups = sorted({group for group, _ in counted})
    print(f"{kind:<22}{'made':>6}", *(f"{word:>10}" for word in _OUTCOMES), sep="")
    for group in [*groups, ""]:
        row = [
            sum(n for (of, one), n in counted.items() if group in ("", of) and one == outcome)
            for outcome in _OUTCOMES
        ]
        print(f"{group or 'all':<22}{sum(row):>6}", *(f"{count:>10}" for count in row), sep="")


if __name__ == "__main__":
    sys.exit(_try_here(Path(sys.argv[1])))
