"""An arena for tests in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.gateway_bots import GatewayArena, in_arena


@pytest.fixture
async def arena() -> AsyncIterator[GatewayArena]:
    """An arena with the usual limits."""
    async with in_arena() as arena:
        yield arena
