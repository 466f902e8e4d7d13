"""Bots that `arena serve` launches: what is reported of them before the competitions begin."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, cast

import pytest

from arena.cli._launched_bots import BotNotices, launched
from arena.competitions.arena_host import Host
from arena.sandbox.bot_spec import BotSpec
from protocol.messages import Limits


class HostWithABotThatEnds:
    """Launches anything; every bot has ended before it connected."""

    def __init__(self) -> None:
        self.limits = Limits()
        self.ended: dict[str, str] = {}

    async def launch_program(self, program: object, name: str) -> None:
        self.ended[name] = "it ended with 1"

    async def wait_for_bots(self, names: Iterable[str], within_s: float) -> set[str]:
        return set()

    async def wait_for_change(self) -> None:
        await asyncio.Event().wait()


async def test_a_bot_that_has_ended_is_reported_before_the_block_begins(
    capsys: pytest.CaptureFixture[str],
) -> None:
    notices = BotNotices()
    entry = BotSpec(cast("Any", object()), name="ann")
    async with launched(cast("Host", HostWithABotThatEnds()), [entry], notices):
        assert [line.partition("ann")[2] for line in notices.lines()] == [
            " has ended: it ended with 1"
        ]
