"""A new database of either kind, as a store and as an engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from arena.storage.schema import open_database
from arena.storage.store import Store


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    with Store(database) as store:
        yield store


@pytest.fixture
def engine(database: str) -> Iterator[sa.Engine]:
    engine, _ = open_database(database, create=True)
    yield engine
    engine.dispose()
