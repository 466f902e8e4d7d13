"""Fixtures for tests with sockets and processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from protocol.messages import Limits
from tests.support import arena_process
from tests.support.gateway_bots import (
    LIMITS_NOW,
    TIMEOUT_S,
    Scenario,
    StartedProgram,
    _arena,
)


@pytest.fixture
def in_arena() -> Callable[..., None]:
    """Run a scenario in an arena of its own."""

    def run(scenario: Scenario, **limits: int) -> None:
        async def main() -> None:
            async with asyncio.timeout(TIMEOUT_S):
                async with _arena(Limits(**{**LIMITS_NOW, **limits})) as arena:
                    await scenario(arena)

        asyncio.run(main())

    return run


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
