"""A fake host whose competitions end with the test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest

from tests.support.fake_host import FakeHost

if TYPE_CHECKING:
    from tests.support.fake_bots import FakeArena


@pytest.fixture
async def host(house: FakeArena) -> AsyncIterator[FakeHost]:
    host = FakeHost(house)
    yield host
    await host.end()
