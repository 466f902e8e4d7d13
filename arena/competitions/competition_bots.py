"""Starts the launched bots of competitions, starts forgiven ones again, and stops unneeded ones.

`arena/competitions/bot_supervisor.py` makes processes of them.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from functools import partial

from arena.competitions.bot_supervisor import BotSupervisor
from arena.competitions.competition import Competition
from arena.competitions.listener import Listener
from arena.engine.verdict import Finding
from arena.formats.spec import Plan, RelaunchSpec
from arena.hosts.seat_programs import program_of
from arena.sandbox.scarcity import NO_PROGRAM, Scarcity
from arena.server.background import BackgroundTasks
from arena.server.gateway import Gateway
from protocol.errors import ArenaError
from protocol.messages import Verdict
from protocol.strategy import house_bots

__all__ = ["CompetitionBots"]


class CompetitionBots:
    """The launched bots of all `competitions`; the listener is told if one cannot be started."""

    def __init__(
        self,
        supervisor: BotSupervisor,
        gateway: Gateway,
        competitions: Sequence[Competition],
        listener: Listener,
    ) -> None:
        self._supervisor = supervisor
        self._gateway = gateway
        self._competitions = competitions
        self._listener = listener
        self._forgiven: set[str] = set()  # those that are being started again
        self._scarcity = Scarcity(NO_PROGRAM)
        self._tasks = BackgroundTasks()

    def keep_names(self, plan: Plan) -> None:
        """Reserve the names of bots that will be launched."""
        for name in (*(bot.name for bot in plan.bots), *plan.house):
            if name not in self._supervisor:
                self._keep_name(name)

    async def start(self, competition: Competition) -> None:
        """Start the bots of a competition that do not run and are not out."""
        for bot in competition.plan.bots:
            await self._start(competition, bot)

    def start_soon(self, competition: Competition) -> None:
        self._tasks.start(self.start(competition))

    async def launch_house_bot(self, game: str, name: str) -> None:
        """Start the usual house bot of a game, or raise `ArenaError` if it cannot be started."""
        bot = next(iter(house_bots(game)), None)
        if bot is None:
            raise ArenaError(
                f"a free chair needs a house bot for {game}, none is installed; `arena doctor` may "
                "say why"
            )
        await self._supervisor.launch_house_bot(game, name, bot)

    def dismiss(self, competition: Competition) -> None:
        """Stop the house bots that only this competition needed, which is over."""
        needed = {name for other in self._competitions for name in other.temporary_house_bots}
        for name in competition.temporary_house_bots:
            if name not in self._supervisor:
                self._gateway.admission.forget(name)
            elif name not in needed:
                self._supervisor.dismiss(name)

    def end_forgiven(self, names: Sequence[str]) -> None:
        """Of these bots, which have just left a match, stop those that hang and were forgiven.

        A bot that still plays elsewhere goes on until its last match has ended.
        """
        for name in self._forgiven.intersection(names):
            player = self._gateway.players.get(name)
            if player is not None and not player.chairs:
                self._supervisor.dismiss(name)

    def ruled(self, verdict: Verdict, *, is_elsewhere: bool = False) -> None:
        """Stop a bot that is out of its last competition, or start one again that is forgiven.

        If it has offended elsewhere, nothing has happened to its process here.
        """
        name = verdict.bot
        plays_on = [competition for competition in self._competitions if competition.is_in(name)]
        if name in self._supervisor and not plays_on:
            finding = Finding(kind=verdict.kind, text=verdict.text, mechanism=verdict.mechanism)
            asyncio.get_running_loop().call_soon(self._supervisor.stop, name, finding)
        elif verdict.forgiven and name not in self._forgiven and not is_elsewhere:
            for competition in plays_on:
                for bot in competition.plan.bots:
                    if bot.name == name:
                        self._start_again(competition, bot)
                        return

    def close(self) -> None:
        """Start no more bots."""
        self._tasks.cancel()

    def _keep_name(self, name: str) -> None:
        self._gateway.admission.expect(name, secrets.token_urlsafe(16))

    async def _start(self, competition: Competition, bot: RelaunchSpec) -> None:
        if bot.name in self._supervisor or not competition.is_in(bot.name):
            return
        try:
            if bot.house is not None:
                competition.arbiter.guests.add(bot.name)
                words = competition.plan.game, bot.house
                launch = partial(self._supervisor.launch, words, bot.name, tables=bot.tables)
            else:
                launch = partial(self._supervisor.launch_program, program_of(bot), bot.name)
            await self._scarcity.outlast(launch)
        except ArenaError as error:
            self._listener.told(f"{bot.name}: {error}")

    def _start_again(self, competition: Competition, bot: RelaunchSpec) -> None:
        """Start a forgiven bot again; one that hangs is stopped first, after its last match."""
        name = bot.name
        self._forgiven.add(name)
        if name not in self._supervisor:  # nobody else may get its name meanwhile
            self._keep_name(name)
        elif (player := self._gateway.players.get(name)) is not None:
            player.leaving = True  # it gets no new matches
            self._listener.freed((name,))

        async def again() -> None:
            await self._supervisor.gone(name)
            self._forgiven.discard(name)
            if not competition.is_over:
                await self._start(competition, bot)
            if name not in self._supervisor:
                self._gateway.admission.forget(name)

        self._tasks.start(again())
