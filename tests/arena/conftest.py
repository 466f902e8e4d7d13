"""Fixtures for tests of the arena: databases, and matches between bots without sockets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.databases import database, empty_database, postgres, public
from tests.support.fake_bots import FakeArena
from tests.support.fake_host import FakeHost
from tests.support.virtual_time import memory_folder

__all__ = ["database", "empty_database", "postgres", "public"]

_MANY_COMMITS = ("results", "storage")


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """In memory, if there is some, for tests of these folders: no commit waits for a disk."""
    if request.path.parent.name in _MANY_COMMITS:
        with memory_folder() as folder:
            yield folder
    else:
        yield tmp_path


@pytest.fixture
def house() -> FakeArena:
    return FakeArena()


@pytest.fixture
def host(house: FakeArena) -> FakeHost:
    return FakeHost(house)
