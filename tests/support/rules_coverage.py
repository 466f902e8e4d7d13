"""Measures, in the run of all tests, how much of the rules and the wire their own tests reach.

Where `COVERAGE_PROCESS_START` is set, coverage runs in each process of pytest from its beginning.
It is halted in all tests but those that mirror `protocol` and `arena/games`, and the programs that
tests start do without it. What the rules have cached while it was halted is made anew.
"""

from __future__ import annotations

import os
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from functools import _lru_cache_wrapper
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from coverage import Coverage

__all__ = ["pytest_runtest_protocol", "pytest_sessionfinish"]

_SWITCH = "COVERAGE_PROCESS_START"
_MIRRORS = ("tests/protocol/", "tests/arena/games/")


class RulesCoverage:
    """The measurement of this process."""

    def __init__(self) -> None:
        self._coverage: Coverage | None = None
        if _SWITCH in os.environ:
            from coverage import Coverage

            self._coverage = Coverage.current()
            _load_all()
        self._is_on = self._coverage is not None
        self._caches = _caches() if self._is_on else ()
        self._sizes: Sequence[int] = ()  # of the caches, when it was halted
        # Not in the first process, whose own have yet to start.
        if "PYTEST_XDIST_WORKER" in os.environ:
            os.environ.pop(_SWITCH, None)

    def switch(self, is_on: bool) -> None:
        """Go on with the measurement, or halt it."""
        if self._coverage is not None and is_on is not self._is_on:
            self._is_on = is_on
            if is_on:
                for cached, size in zip(self._caches, self._sizes, strict=True):
                    if cached.cache_info().currsize != size:
                        cached.cache_clear()
            else:
                self._sizes = [cached.cache_info().currsize for cached in self._caches]
            (self._coverage.start if is_on else self._coverage.stop)()

    def save(self) -> None:
        """Write down what was measured."""
        self.switch(False)
        if self._coverage is not None:
            self._coverage.save()


def _load_all() -> None:
    """Load all that is measured: some modules are loaded late, perhaps while it is halted."""
    for name in "protocol", "arena.games":
        for module in pkgutil.walk_packages(import_module(name).__path__, f"{name}."):
            if not module.name.endswith("__main__"):
                import_module(module.name)


def _caches() -> Sequence[_lru_cache_wrapper[Any]]:
    """The functions of the rules that keep what they have made."""
    return [
        value
        for name, module in sys.modules.items()
        if name.startswith(("arena.games.", "protocol.gin_melds"))
        for value in vars(module).values()
        if isinstance(value, _lru_cache_wrapper)
    ]


_measured = RulesCoverage()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Measure coverage in a test of the rules or the wire.

    Tests marked `stats` are left out: others reach the same branches, and measured they take almost
    four times as long. They run last in their files: before that, they would fill the caches of the
    file, and the measured tests would not run the code behind them.
    """
    _measured.switch(item.nodeid.startswith(_MIRRORS) and item.get_closest_marker("stats") is None)
    return (yield)


def pytest_sessionfinish() -> None:
    """Save it while there is time: xdist kills a process that takes long to end after its tests."""
    _measured.save()
