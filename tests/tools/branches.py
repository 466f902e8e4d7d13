"""How many branches of each package the tests reach that are not e2e, and which test reaches what.

Run as `python -m tests.tools.branches`, of a commit with `--commit`. It proves that tests that went
reached nothing that no other reaches: the figures stand beside those of the yardstick. With `--data`
it leaves coverage's data, which name the tests that reach a line, and the seconds of each:
`python -m tests.tools.mutants` chooses tests by them. What runs in other processes is not measured."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import coverage
import pytest

from tests.tools.trees import PRODUCT, kept, package_of, run_in, scratch, write_kept

__all__ = ["main", "seconds_file"]


def seconds_file(data: Path) -> Path:
    """Where the seconds of each test stand, beside coverage's data."""
    return data.with_name(data.name + ".seconds")


class _ByTest:
    """Tells coverage which test runs, and takes its time on the processor."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self._measured = measured
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._measured.switch_context(item.nodeid)
        tracer, began_s = sys.gettrace(), time.process_time()
        result = yield
        sys.settrace(tracer)  # a test may have had one of its own
        self.seconds[item.nodeid] = time.process_time() - began_s
        return result


def _measure(data: Path, tests: Sequence[str]) -> int:
    """Run the tests here, and leave coverage's data and report."""
    measured = coverage.Coverage(str(data), branch=True, config_file=False, source=[*PRODUCT])
    measured.set_option("run:relative_files", True)
    for pattern in "if TYPE_CHECKING:", "@overload", r"^ *\.\.\.$":
        measured.exclude(pattern)
    plugin = _ByTest(measured)
    measured.start()
    options = ("-q", "-n", "0", "-m", "not e2e", "-p", "no:cacheprovider", "--tb=line")
    status = pytest.main([*options, *tests], plugins=[plugin])
    measured.stop()
    measured.save()
    seconds_file(data).write_text(json.dumps(plugin.seconds))
    measured.json_report(outfile=f"{data}.report")
    return int(status)


def _by_package(report: Path) -> dict[str, list[int]]:
    """The branches of each package: those that are reached, and all."""
    found: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for path, file in json.loads(report.read_bytes())["files"].items():
        pair = found[package_of(path)]
        pair[0] += file["summary"]["covered_branches"]
        pair[1] += file["summary"]["num_branches"]
    return dict(sorted(found.items()))


def _show(now: Mapping[str, Sequence[int]], before: Mapping[str, Sequence[int]]) -> bool:
    """Print the figures beside those of the yardstick; whether none fell."""
    is_kept = True
    print(f"{'branches reached':<22}{'before':>16}{'now':>16}")
    for package in sorted({*now, *before}):
        columns = ""
        shares: list[float] = []
        for reached, branches in (figures.get(package, (0, 0)) for figures in (before, now)):
            shares.append(reached / branches if branches else 1.0)
            columns += f"{reached:>6}/{branches:<5}{shares[-1]:5.1%}"
        fell = shares[1] < shares[0]
        is_kept &= not fell
        print(f"{package:<22}{columns}{'  fell' if fell else ''}")
    return is_kept


def main() -> int:
    """Measure, print and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tests", nargs="*", help="instead of all")
    parser.add_argument("--commit", default="", help="instead of the working tree")
    parser.add_argument("--data", type=Path, help="keep coverage's data in this file")
    parser.add_argument("--keep", action="store_true", help="write the figures into the yardstick")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        return _measure(options.data, options.tests)
    with tempfile.TemporaryDirectory() as folder, scratch(options.commit) as tree:
        data = (options.data or Path(folder) / "data").absolute()
        run_in(tree, "tests.tools.branches", "--here", "--data", str(data), *options.tests)
        now = _by_package(Path(f"{data}.report"))
    is_kept = _show(now, kept("branches"))
    if options.keep:
        write_kept("branches", now)
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
