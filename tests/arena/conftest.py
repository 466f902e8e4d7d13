"""Fixtures for tests of the arena: databases, and matches between bots without sockets."""

from __future__ import annotations

import pytest

from tests.support.databases import database, empty_database, postgres, public
from tests.support.fake_bots import FakeArena
from tests.support.fake_host import FakeHost

__all__ = ["database", "empty_database", "postgres", "public"]


@pytest.fixture
def house() -> FakeArena:
    return FakeArena()


@pytest.fixture
def host(house: FakeArena) -> FakeHost:
    return FakeHost(house)
