"""An arena in this process whose competitions are played by submitted programs, as processes.

What is in play is set by the test, and nothing is uploaded, built or isolated.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any, cast

from arena.competitions.live_arena import LiveArena
from arena.competitions.process_pool import Launch, ProcessPool, SeatBot
from arena.formats.spec import Plan, Take, plan_of
from arena.games.catalogue import GAMES
from arena.referee.compute_gate import ComputeGate
from arena.sandbox.command import Program
from arena.storage.models import CompetitionReport
from arena.storage.store import Store
from protocol.messages import Limits
from tests.support.fake_submissions import FakeVersionService
from tests.support.pipe_bot import pipe_bot

__all__ = ["SubmittedArena", "submitted_arena"]


LIMITS = Limits(start_ms=5_000)


class SubmittedArena:
    """An arena with submissions; those that are not among `programs`, by number, play legally."""

    def __init__(
        self, host: LiveArena, store: Store, cores: int, most: int, in_play: dict[str, int]
    ) -> None:
        self.host = host
        self.store = store
        self.programs: dict[int, str | Program] = {}
        self.stderr: list[tuple[int, str, str]] = []
        self.service = FakeVersionService(**in_play)
        self.gate = ComputeGate(cores)
        self.pool = ProcessPool(
            host.supervisor, self.gate, self._prepared, most, lambda *told: self.stderr.append(told)
        )
        host.take_submissions(cast(Any, self.service), self.pool, cores)

    def plan(self, game: str, *players: str, take: Take = Take.SUBMITTED, **more: Any) -> Plan:
        """A short competition; the players that have a version in play are played by it."""
        rules = GAMES[game]
        in_play = self.host.versions_in_play(game)
        versions = {name: in_play[name] for name in players if name in in_play}
        settings = rules.vocabulary.read_settings(dict(rules.rounds(4)))
        return plan_of(
            rules, settings, players, take=take, versions=versions, limits=self.host.limits, **more
        )

    async def play(self, plan: Plan) -> CompetitionReport:
        return await self.host.play(self.host.compete(plan))

    async def _prepared(self, bot: SeatBot) -> Launch:
        assert bot.submission is not None, "all are submitted"
        text = self.programs.get(bot.submission) or pipe_bot()
        if isinstance(text, str):
            text = Program((sys.executable, "-c", text), stdio=True)
        return partial(self.host.supervisor.launch_process, program=text)


@contextlib.asynccontextmanager
async def submitted_arena(
    folder: Path, *, cores: int = 1, most: int = 8, limits: Limits = LIMITS, **in_play: int
) -> AsyncIterator[SubmittedArena]:
    """An arena with a database in a folder, in which these submissions are in play, by owner."""
    with Store(folder / "arena.db") as store:
        async with LiveArena(store, limits=limits) as host:
            yield SubmittedArena(host, store, cores, most, in_play)
