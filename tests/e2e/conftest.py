"""Fixtures for tests with sockets and processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from tests.support import arena_process
from tests.support.gateway_bots import GatewayArena, StartedProgram, in_arena


@pytest.fixture
async def arena() -> AsyncIterator[GatewayArena]:
    """An arena with the usual limits."""
    async with in_arena() as arena:
        yield arena


@pytest.fixture
def start() -> Iterator[Callable[..., StartedProgram]]:
    """Start a program, `python -m ...`; what is left at the end of the test is killed."""
    programs: list[StartedProgram] = []

    def call(*words: str, **options: Any) -> StartedProgram:
        programs.append(StartedProgram(*words, **options))
        return programs[-1]

    yield call
    for program in programs:
        program.kill()


@pytest.fixture
def free_port() -> int:
    """A port that nobody listens on."""
    return arena_process.free_port()
