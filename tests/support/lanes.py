"""What runs beside what where pytest is told to run two tests at a time, `-n 2`.

A file's tests stay together, so that what its fixtures build is built once. Tests in which bots play against limits of time are one lane:
they run one after another, as if alone, and beside them only what does not mind having less of the machine. The lane is as long as all else
together, so it goes first; then what takes long, and last what is quick, so that both processes end at about the same time.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

__all__ = [
    "ELSEWHERE",
    "IN_NO_HURRY",
    "LONG",
    "TIMED",
    "lane",
    "pytest_collection_modifyitems",
    "pytest_xdist_make_scheduler",
]

TIMED = "against limits of time"

ELSEWHERE = ("tests/arena/authoring/conformance/test_run.py", "tests/test_soak.py")
"""Files of the timed lane that are not in `tests/e2e`."""

IN_NO_HURRY = (
    "tests/e2e/test_docs.py",
    "tests/e2e/test_new.py",
    "tests/e2e/test_page.py",
    "tests/e2e/test_page_sizes.py",
    "tests/e2e/test_postgres.py",
    "tests/e2e/test_roster.py",
    "tests/e2e/test_transcripts.py",
    "tests/e2e/test_vectors.py",
)
"""Those in `tests/e2e` that nothing is too late for: compilers, browsers, databases."""

LONG = (
    "tests/e2e/test_page.py",
    "tests/e2e/test_page_sizes.py",
    "tests/e2e/test_docs.py",
    "tests/e2e/test_new.py",
    "tests/test_documents.py",
    "tests/bots/test_gin_rummy.py",
    "tests/bots/test_blackjack.py",
    "tests/test_style.py",
)
"""Those beside the lane that take more than ten seconds, the longest first."""


def lane(nodeid: str) -> str:
    """What a test stays together with: its file, or all that is timed."""
    file = nodeid.partition("::")[0]
    if file.startswith("tests/e2e/"):
        return file if file in IN_NO_HURRY else TIMED
    return TIMED if file in ELSEWHERE else file


def _turn(item: pytest.Item) -> int:
    """When a lane comes."""
    mine = lane(item.nodeid)
    if mine == TIMED:
        return -1
    return LONG.index(mine) if mine in LONG else len(LONG)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The same order in each of the processes; where there is one, the order stays as it is."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=_turn)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One lane after another goes to whichever process has nothing to do."""
    # Only here is it certain to be installed; it has no types.
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class Lanes(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return lane(nodeid)

    config.option.loadscopereorder = False
    return Lanes(config, log)
