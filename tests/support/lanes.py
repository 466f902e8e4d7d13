"""Which tests run beside which when pytest runs two at a time, `-n 2`.

The tests of a file run in one process, so that its fixtures are set up once. Tests in which bots
play against limits of time are one lane: they run one after another, beside tests that may be slow.
That lane is as long as all others together, so it goes first. Then come the files that take long,
and last the quick ones, so that both processes end at about the same time.
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

ELSEWHERE = ("tests/arena/authoring/conformance/test_run.py",)
"""Files of the timed lane that are not in `tests/e2e`."""

IN_NO_HURRY = (
    "tests/e2e/test_analyse.py",
    "tests/e2e/test_analyses.py",
    "tests/e2e/test_docs.py",
    "tests/e2e/test_missing_games.py",
    "tests/e2e/test_new.py",
    "tests/e2e/test_new_game.py",
    "tests/e2e/test_page.py",
    "tests/e2e/test_page_sizes.py",
    "tests/e2e/test_postgres.py",
    "tests/e2e/test_programs.py",
    "tests/e2e/test_roster.py",
    "tests/e2e/test_strength_page.py",
    "tests/e2e/test_submissions.py",
    "tests/e2e/test_submit_page.py",
    "tests/e2e/test_toy_lab.py",
    "tests/e2e/test_toys_on_the_page.py",
    "tests/e2e/test_transcripts.py",
    "tests/e2e/test_vectors.py",
    "tests/e2e/test_versions_on_the_page.py",
    "tests/e2e/test_wheel.py",
    "tests/e2e/test_workers_on_the_page.py",
)
"""Files in `tests/e2e` without limits of time: compilers, installers, browsers, databases."""

LONG = (
    "tests/test_documents.py",
    "tests/e2e/test_page.py",
    "tests/e2e/test_strength_page.py",
    "tests/e2e/test_page_sizes.py",
    "tests/e2e/test_submissions.py",
    "tests/e2e/test_docs.py",
    "tests/e2e/test_submit_page.py",
    "tests/e2e/test_new.py",
    "tests/e2e/test_toy_lab.py",
    "tests/e2e/test_toys_on_the_page.py",
    "tests/e2e/test_new_game.py",
    "tests/bots/test_gin_rummy.py",
    "tests/bots/test_blackjack.py",
    "tests/test_style.py",
    "tests/e2e/test_analyse.py",
    "tests/arena/games/test_ace_king_queen_analysis.py",
    "tests/bots/test_gin_master.py",
    "tests/arena/games/test_three_card_poker_analysis.py",
    "tests/arena/games/test_blackjack_analysis.py",
)
"""Files outside the timed lane that take more than ten seconds, the longest first."""


def lane(nodeid: str) -> str:
    """The lane of a test: its file, or the timed one."""
    file = nodeid.partition("::")[0]
    if file.startswith("tests/e2e/"):
        return file if file in IN_NO_HURRY else TIMED
    return TIMED if file in ELSEWHERE else file


def _turn(item: pytest.Item) -> int:
    """The rank of a test's lane."""
    mine = lane(item.nodeid)
    if mine == TIMED:
        return -1
    return LONG.index(mine) if mine in LONG else len(LONG)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort by lane, alike in both processes; with a single process, leave the order."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=_turn)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give an idle process the next lane."""
    # Only here is it certain to be installed; it has no types.
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class Lanes(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return lane(nodeid)

    config.option.loadscopereorder = False
    return Lanes(config, log)
