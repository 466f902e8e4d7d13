"""An arena in one piece: its database, its gateway, the bots that it has started, and the competitions that are on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from types import TracebackType

from arena.conduct import Conduct
from arena.director import Competition, Plan, Report
from arena.gateway import Gateway
from arena.launch import Launcher, bot_command
from arena.player import Player
from arena.store import Store
from arena.verdict import Finding
from protocol.codec import Encoding
from protocol.errors import one_line
from protocol.messages import Ending, Limits, Verdict
from protocol.strategy import house_bots

__all__ = ["Host"]


class Host:
    """Use it as an asynchronous context: inside, bots can connect to `url`.

    `ended` has what became of the processes that were launched and have ended by themselves, by name.

    Args:
        store: where results go; its owner closes it.
        address: the interface to listen on.
        port: the port, or 0 for a free one.
        limits: of time and space.
        practice: illegal answers are refused, and nobody is out for them.
        on_verdict: told of every elimination as it happens.

    Raises:
        Unreachable: the address cannot be listened on.
    """

    def __init__(
        self,
        store: Store,
        *,
        address: str = "127.0.0.1",
        port: int = 0,
        limits: Limits | None = None,
        practice: bool = False,
        on_verdict: Callable[[Verdict], None] = lambda verdict: None,
    ) -> None:
        self.limits = limits or Limits()
        self.url = ""
        self.ended: dict[str, str] = {}
        self._address, self._port = address, port
        self._store = store
        self._competitions: list[Competition] = []
        self._changed = asyncio.Event()
        self._launcher = Launcher(self._exited)
        clock = asyncio.get_running_loop().time
        self.conduct = Conduct(clock, practice, on_verdict)
        self.gateway = Gateway(
            self.conduct, self.limits, self._on_change, self._on_offence
        )

    async def __aenter__(self) -> Host:
        port = await self.gateway.open(self._address, self._port)
        host = f"[{self._address}]" if ":" in self._address else self._address
        self.url = f"ws://{host}:{port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.gateway.close()
        await self._launcher.stop()

    async def launch(
        self,
        bot: Sequence[str],
        name: str,
        *,
        tables: int = 1,
        encoding: Encoding = Encoding.JSON,
    ) -> None:
        """Start a bot of ours, given as GAME NAME, as a process that connects like any other."""
        command = bot_command(
            bot, url=self.url, name=name, tables=tables, encoding=encoding
        )
        await self._launcher.start(name, command)

    async def wait_for_change(self) -> None:
        """Until a bot comes or goes."""
        self._changed.clear()
        await self._changed.wait()

    def names(self, game: str) -> tuple[str, ...]:
        """The connected bots that play a game, in the order in which they came."""
        return tuple(
            name
            for name, player in self.gateway.players.items()
            if game in player.games and player.connection is not None
        )

    def compete(self, plan: Plan) -> Competition:
        """Set a competition up; it plays while `play` is awaited."""
        return Competition(
            plan,
            self.gateway,
            self._store,
            time.time,
            self._call_house,
            self._on_freed,
            self.conduct.on_verdict,
        )

    async def play(self, competition: Competition) -> Report:
        """Play a competition to its end.

        Raises:
            ArenaError: as `Competition.run`.
        """
        self._competitions.append(competition)
        try:
            return await competition.run()
        finally:
            self._competitions.remove(competition)

    async def _call_house(self, game: str, name: str) -> None:
        bots = tuple(house_bots(game))
        await self.launch((game, bots[0]), name)

    def _on_freed(self, names: Sequence[str]) -> None:
        """A match has ended; its players may be awaited in any competition, once its own has counted it."""
        asyncio.get_running_loop().call_soon(self._seat, names)

    def _seat(self, names: Sequence[str]) -> None:
        for competition in self._competitions:
            competition.seat(names)

    def _on_change(self) -> None:
        self._changed.set()
        for competition in self._competitions:
            competition.changed()

    def _on_offence(self, player: Player, finding: Finding) -> None:
        """A player is gone for good: if it sat nowhere just then, its competitions must learn why."""
        for competition in self._competitions:
            competition.offended(player.name, finding)

    def _exited(self, name: str, status: int, tail: str) -> None:
        """A process of ours has ended by itself."""
        last = one_line(tail.strip().rpartition("\n")[2])
        said = f"; it said: {last}" if last else ""
        text = f"its process ended with status {status}{said}"
        self.ended[name] = text
        finding = Finding(
            kind=Ending.CRASH,
            text=f"crashed: exit status {status}",
            mechanism="exit",
            exit_status=status,
            stderr=tail,
        )
        self.gateway.dismiss(name, finding)
        self._on_change()
