"""A fake host whose competitions end with the test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.fake_bots import FakeArena
from tests.support.fake_host import FakeHost


@pytest.fixture
async def host(house: FakeArena) -> AsyncIterator[FakeHost]:
    host = FakeHost(house)
    yield host
    await host.end()
