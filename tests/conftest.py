"""How the property tests run: without a clock, and where `CI` is set always with the same examples.
And that frames fit the schemas.
"""

from __future__ import annotations

import gc
import inspect
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from arena.web.side_program import NICENESS
from tests.support import frame_validation
from tests.support.long import LONG
from tests.support.needs import skip_without
from tests.support.rules_coverage import pytest_runtest_protocol, pytest_sessionfinish
from tests.support.run_of_tests import (
    begin,
    pytest_configure,
    pytest_fixture_setup,
    pytest_runtest_makereport,
    pytest_runtest_teardown,
)
from tests.support.virtual_time import pytest_asyncio_loop_factories

__all__ = [
    "pytest_asyncio_loop_factories",
    "pytest_configure",
    "pytest_fixture_setup",
    "pytest_runtest_makereport",
    "pytest_runtest_protocol",
    "pytest_runtest_teardown",
    "pytest_sessionfinish",
]

_ROOT = Path(__file__).parents[1]
_LONG = ("tests/e2e/", "tests/test_")
_PAGE = "tests/e2e/page/"
_WAITS_SPAN = 0.8  # the share of a run by whose end the last file that takes long has begun

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Set the time zone of this process for a test, by a text as TZ has it."""

    tzset = getattr(time, "tzset", lambda: None)  # Windows has none

    def set_zone(name: str) -> None:
        patch.setenv("TZ", name)
        tzset()

    with monkeypatch.context() as patch:
        yield set_zone
    tzset()


@pytest.fixture(autouse=True, scope="session")
def _state_of_bots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No bot or command of a test leaves anything in the home directory of whoever runs it."""
    with pytest.MonkeyPatch.context() as patch:
        for variable in "XDG_STATE_HOME", "LOCALAPPDATA":
            patch.setenv(variable, str(tmp_path_factory.mktemp("state")))
        patch.setenv("CCACHE_DIR", str(tmp_path_factory.getbasetemp().parent / "ccache"))
        # Nothing here runs for so long that Java's second compiler pays.
        patch.setenv("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        yield


@pytest.fixture(autouse=True, scope="session")
def _nothing_is_downloaded() -> Iterator[None]:
    """Whatever a test wants of an index of packages must be here before."""
    with pytest.MonkeyPatch.context() as patch:
        for variable, off in (
            ("PIP_NO_INDEX", "1"),
            ("NPM_CONFIG_OFFLINE", "true"),
            ("GOPROXY", "off"),
        ):
            patch.setenv(variable, off)
        yield


@pytest.fixture(autouse=True, scope="session")
def _analyses_in_time() -> Iterator[None]:
    """Arenas of tests analyse beside other tests, not after them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(NICENESS, "0")
        yield


@pytest.fixture(autouse=True, scope="session")
def _frames_of_programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Programs that tests start hold their frames against the schemas, too."""
    paths = [
        str(Path(__file__).parent / "support/hooks"),
        *filter(None, [os.environ.get("PYTHONPATH")]),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        patch.setenv(frame_validation.FILE, str(tmp_path_factory.mktemp("frames") / "faults"))
        yield


frame_validation.install()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what has no small form.

    Where several processes share the tests, files of tests that mostly wait and files of tests that
    compute take turns, so that no processor is idle; those that take long end before the others. In
    a file those marked `stats` go last (`tests/support/rules_coverage.py` says why).
    """
    left_out = {item for item in items if not LONG and item.get_closest_marker("long")}
    config.hook.pytest_deselected(items=[*left_out])
    items[:] = [item for item in items if item not in left_out]
    if "PYTEST_XDIST_WORKER" in os.environ:
        files = {item.path: item.nodeid.startswith(_LONG) for item in items}
        waits = [path for path, is_long in files.items() if is_long]
        computes = [path for path, is_long in files.items() if not is_long]
        turns = {
            path: number / len(some) * span
            for some, span in ((waits, _WAITS_SPAN), (computes, 1.0))
            for number, path in enumerate(some)
        }
        items.sort(
            key=lambda item: (
                turns[item.path],
                str(item.path),
                item.get_closest_marker("stats") is not None,
            )
        )


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Where several processes collect all tests, each begins with others, and writes their bytecode.

    In the same order each would compile them all, which takes as long as many tests. What is made
    meanwhile stays: looking through it for garbage takes a third of the time.
    """
    gc.disable()
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw")
    if worker == "gw" or session.config.args != session.config.getini("testpaths"):
        return
    files = sorted(Path(__file__).parent.rglob("test_*.py"))
    share = len(files) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    first = share * int(worker.removeprefix("gw"))
    for file in (*files[first:], *files[:first]):
        name = file.relative_to(_ROOT).with_suffix("").as_posix().replace("/", ".")
        with suppress(BaseException):  # its collection tells why
            import_module(name)


def pytest_collection_finish() -> None:
    """What all tests share is no garbage: it is not looked through again and again.

    Python looks for garbage after 700 new objects, which takes a twentieth of the time of tests.
    """
    gc.freeze()
    gc.set_threshold(10_000)  # as `arena serve` does
    gc.enable()


@pytest.fixture(autouse=True, scope="module")
def _garbage_is_of_one_file() -> Iterator[None]:
    """Freeze what a file of tests leaves: each collection that visits all of it takes half a second."""
    yield
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The tests of a file stay in one process, and files are given away in their order.

    Those of the page share a browser and an arena, so that all of them stay together.
    """
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

    class FilesTogether(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return _PAGE if nodeid.startswith(_PAGE) else str(super()._split_scope(nodeid))

    config.option.loadscopereorder = False
    return FilesTogether(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Without its tools a test is skipped, before any of its fixtures is set up."""
    begin(item)
    for mark in item.iter_markers("needs"):
        skip_without(*mark.args)


def pytest_itemcollected(item: pytest.Item) -> None:
    """A coroutine that waits for what never comes fails after three minutes."""
    if inspect.iscoroutinefunction(getattr(item, "function", None)):
        item.add_marker(pytest.mark.timeout(180, func_only=True))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A test in which a frame fits no schema has failed, whoever wrote it."""
    frame_validation.taken()  # what came between tests
    yield
    faults = frame_validation.taken()
    if faults and item.get_closest_marker("made_up") is None:
        pytest.fail("\n".join(faults[:10]), pytrace=False)
