"""Whether the tests notice a mistake: changes one thing of the code at a time and runs the tests
that reach it.

Run as `python -m tests.tools.mutants [--sample 500] [--seed 1]`; it needs `pip install
'.[mutants]'`. `mutmut` makes the mutants, of `protocol/`, the engine, the games, the formats and
the referee's clock. Each is tried in a copy of the tree, first by the tests of its own module, then
by those of its package, then by all others that import it; tests that start processes or measure
averages are left out. Mutants that no test fails for are printed as diffs: either a test is
missing, or the mutant does the same as the code.

There are no mutants of prose, which is any text with a space in it, and of `__all__`; nor, as
`mutmut` has it, of annotations, of functions with decorators, and of calls of `len` and
`isinstance`."""

from __future__ import annotations

import argparse
import ast
import asyncio
import difflib
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import msgspec

__all__ = ["Mutant", "MutantTrial", "main", "mutant_of", "sample", "stages_of"]

ROOT = Path(__file__).parents[2]
TARGETS = (
    "protocol/*.py",
    "arena/engine/*.py",
    "arena/games/*.py",
    "arena/formats/*.py",
    "arena/referee/clock.py",
)
_NOT_COPIED = shutil.ignore_patterns(".git", ".venv", ".*_cache", "__pycache__", "node_modules")
_MEMORY_BYTES = 4 << 30  # of a test run: an endless loop may collect something, too
_RUN_S = 1_800.0  # for all tests of a stage, where not even pytest-timeout can end one
_PYTEST = (
    "import resource, sys, pytest; "
    f"resource.setrlimit(resource.RLIMIT_AS, ({_MEMORY_BYTES}, {_MEMORY_BYTES})); "
    "sys.exit(pytest.main(sys.argv[1:]))"
)
_OPTIONS = (
    *("-x", "-q", "-n", "0", "-m", "not e2e and not stats"),
    *("--timeout", "120", "--timeout-method", "thread"),  # for a loop without an end
)
_PASSED = (0, 5)  # exit statuses of pytest: all passed, none was chosen


class Mutant(msgspec.Struct, frozen=True):
    """A module with one thing changed.

    Attributes:
        path: of the module, from the top of the repository.
        code: all of it, changed.
        diff: what is changed, in unified form.
    """

    path: str
    code: str
    diff: str


class MutantTrial(msgspec.Struct, frozen=True):
    """What came of a mutant.

    Attributes:
        path: of the module.
        outcome: `failed` if a test failed that passes without the mutant, `ended` if pytest did not
            come to its end, `survived` if all passed.
        test: the one that failed.
        diff: what was changed.
    """

    path: str
    outcome: str
    test: str
    diff: str


# ---- Mutants


def sample(size: int, seed: int, paths: Sequence[str] = ()) -> list[Mutant]:
    """So many mutants, or all if there are fewer, drawn by chance from those of all targets.

    Args:
        size: how many.
        seed: the same seed draws the same from the same code.
        paths: modules, from the top of the repository, instead of the targets.
    """
    modules = paths or sorted(
        str(file.relative_to(ROOT)) for target in TARGETS for file in ROOT.glob(target)
    )
    places = [(path, number) for path in modules for number in range(len(_changes(path)[1]))]
    random.Random(seed).shuffle(places)
    drawn: list[Mutant] = []
    for path, number in places:
        if len(drawn) == size:
            break
        if (mutant := mutant_of(path, number)) is not None:
            drawn.append(mutant)
    return drawn


def mutant_of(path: str, number: int) -> Mutant | None:
    """A module with that change; None if it is one of those that are left out, no Python, or means
    the same.
    """
    code = (ROOT / path).read_text(encoding="utf-8")
    module, changes = _changes(path)
    before, after = changes[number]
    if " " in str(getattr(before, "value", "")):  # prose
        return None
    changed: str = module.deep_replace(before, after).code
    try:
        compile(changed, path, "exec", dont_inherit=True)
    except SyntaxError:
        return None
    if _without_exports(changed) == _without_exports(code):
        return None
    lines = difflib.unified_diff(
        *(code.splitlines(), changed.splitlines(), path, path), n=2, lineterm=""
    )
    return Mutant(path, changed, "\n".join(lines))


@cache
def _changes(path: str) -> tuple[Any, Sequence[tuple[Any, Any]]]:
    """A module as `libcst` has it, and each node that `mutmut` would change, with what it would put
    there.
    """
    try:
        libcst = import_module("libcst")
        mutating = import_module("mutmut.mutation.file_mutation")
        operators = import_module("mutmut.mutation.mutators").mutation_operators
        ignored = import_module("mutmut.mutation.pragma_handling").IgnoredCode
    except ImportError as error:
        raise SystemExit(f"expected pip install '.[mutants]': {error}") from None
    code = (ROOT / path).read_text(encoding="utf-8")
    visitor = mutating.MutationVisitor(operators, ignored(set(), set(), set()))
    module = libcst.MetadataWrapper(libcst.parse_module(code)).visit(visitor)
    return module, [(one.original_node, one.mutated_node) for one in visitor.mutations]


def _without_exports(code: str) -> str:
    """The syntax tree, without `__all__`."""
    tree = ast.parse(code)
    tree.body = [
        node
        for node in tree.body
        if not (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
    ]
    return ast.dump(tree)


# ---- Tests


@cache
def stages_of(path: str) -> Sequence[Sequence[str]]:
    """The test files that reach a module, in the order in which they are worth trying.

    They are its own, those of its package, and all others that import it, from the top of the
    repository."""
    module = Path(path)
    folder = ROOT / "tests" / module.parent
    package, _, name = ".".join(module.with_suffix("").parts).rpartition(".")
    imports = re.compile(
        rf"^\s*from {package}(\.{name} import|\b.* import .*\b{name}\b)", re.MULTILINE
    )
    others = [
        file
        for file in sorted((ROOT / "tests").rglob("test_*.py"))
        if "e2e" not in file.parts and imports.search(file.read_text(encoding="utf-8"))
    ]
    stages: list[list[str]] = []
    known: set[Path] = set()
    for files in (folder.glob(f"test_{module.stem}.py"), sorted(folder.rglob("test_*.py")), others):
        stage = [file for file in files if file not in known]
        known.update(stage)
        if stage:
            stages.append([str(file.relative_to(ROOT)) for file in stage])
    return stages


class TreeCopy:
    """A copy of the repository, in which one run of tests goes on at a time.

    Args:
        folder: where it is made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last_failed = folder / ".pytest_cache/v/cache/lastfailed"
        shutil.copytree(ROOT, folder, ignore=_NOT_COPIED)

    async def passes(self, tests: Sequence[str]) -> bool:
        """Whether pytest passes these files or tests."""
        self._last_failed.unlink(missing_ok=True)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _PYTEST, *_OPTIONS, *tests),
            cwd=self._folder,
            env={**os.environ, "CI": "1", "PYTHONPATH": str(self._folder)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(_RUN_S):
                return await process.wait() in _PASSED
        except TimeoutError:
            return False
        finally:  # and after Ctrl-C
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def failed(self) -> Sequence[str]:
        """The tests that failed in the last run, by pytest's names; none if it did not come to its
        end.
        """
        with suppress(FileNotFoundError):
            return [*json.loads(self._last_failed.read_bytes())]
        return []

    @contextmanager
    def holding(self, mutant: Mutant) -> Iterator[None]:
        """Have a mutant in the place of its module."""
        file = self._folder / mutant.path
        # Python knows what it has compiled by its size and second, which may be those of the last mutant.
        compiled = Path(cache_from_source(str(file)))
        code = file.read_text(encoding="utf-8")
        try:
            file.write_text(mutant.code, encoding="utf-8")
            compiled.unlink(missing_ok=True)
            yield
        finally:
            file.write_text(code, encoding="utf-8")
            compiled.unlink(missing_ok=True)


async def _try_out(mutant: Mutant, copy: TreeCopy, reliable: set[str]) -> MutantTrial:
    """Run the tests that reach a mutant, until one fails that passes without it.

    Args:
        mutant: to be tried.
        copy: where.
        reliable: the tests that are known to pass without a mutant; more are added.
    """
    for stage in stages_of(mutant.path):
        with copy.holding(mutant):
            if await copy.passes(stage):
                continue
        failed = copy.failed()
        if not failed:
            return MutantTrial(mutant.path, "ended", "", mutant.diff)
        if reliable.issuperset(failed) or await copy.passes(failed):
            reliable.update(failed)
            return MutantTrial(mutant.path, "failed", failed[0], mutant.diff)
    return MutantTrial(mutant.path, "survived", "", mutant.diff)


async def _try_all(mutants: Sequence[Mutant], jobs: int, trials: list[MutantTrial]) -> None:
    """Try mutants out, so many at once, and note each trial when it is over."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies = [TreeCopy(Path(folder) / str(number)) for number in range(jobs)]
        reliable: set[str] = set()
        left = iter(mutants)

        async def work(copy: TreeCopy) -> None:
            for mutant in left:
                trials.append(await _try_out(mutant, copy, reliable))
                survived = sum(trial.outcome == "survived" for trial in trials)
                _show(f"{len(trials)}/{len(mutants)} mutants, {survived} survived")

        async with asyncio.TaskGroup() as group:
            for copy in copies:
                group.create_task(work(copy))


# ---- The command


def _show(text: str) -> None:
    """What is being done, on a terminal, in a line that the next one replaces."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def main() -> int:
    """Read the command line, try mutants out and print those that survived."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("paths", nargs="*", help="modules, instead of all of them")
    parser.add_argument("--sample", type=int, default=500, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1, help="draws the sample")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", action="store_true", help="print all trials as JSON")
    options = parser.parse_args()
    _show("mutants are made")
    mutants = sample(options.sample, options.seed, options.paths)
    trials: list[MutantTrial] = []
    began_s = time.monotonic()
    status = 0
    try:
        asyncio.run(_try_all(mutants, options.jobs, trials))
    except KeyboardInterrupt:
        status = 130
    _show("")
    if options.json:
        print(msgspec.json.encode(trials).decode())
        return status
    survivors = [trial for trial in trials if trial.outcome == "survived"]
    for trial in survivors:
        print(f"{trial.diff}\n")
    outcomes = Counter(trial.outcome for trial in trials)
    print(
        f"{len(trials)} mutants: a test failed for {outcomes['failed']}, "
        f"{outcomes['ended']} ended pytest, {len(survivors)} survived; "
        f"{time.monotonic() - began_s:.0f} s, seed {options.seed}"
    )
    return status


if __name__ == "__main__":
    sys.exit(main())
