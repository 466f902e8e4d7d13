"""An arena in one piece: its database, its gateway, the bots that it has started, and the competitions that are on."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import msgspec

from arena.conduct import Conduct
from arena.director import Competition, Plan, Report
from arena.gateway import Gateway
from arena.launch import Launched, Launcher, Program, bot_command
from arena.pipe import Pipe
from arena.store import Store
from arena.verdict import Finding
from protocol.codec import Encoding
from protocol.errors import ArenaError, one_line
from protocol.messages import Ending, Limits, Mechanism, Verdict
from protocol.strategy import house_bots

__all__ = ["Host"]

_LAUNCH_S = 60.0  # for a program to say hello, on a machine that starts thirty of them
_FILES = 16_384  # that may be open at once: thousands of bots


class _Ours:
    """A bot that the arena has launched, from before it is started until after its end."""

    def __init__(self, name: str, launcher: Launcher) -> None:
        self._name = name
        self._launcher = launcher
        self.launched: Launched | None = None

    @property
    def enforced(self) -> str:
        """The limits that it is held to, and by what."""
        return "time" if self.launched is None else self.launched.enforced

    @property
    def is_metered(self) -> bool:
        """Whether its CPU time can be measured here."""
        return self.launched is None or self.launched.is_metered

    def cpu_ms(self) -> float:
        """The CPU time that its processes have used so far."""
        return 0.0 if self.launched is None else self.launched.cpu_ms()

    def tail(self) -> str:
        """The end of what it wrote to stderr."""
        return self._launcher.tail(self._name)


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
        hidden: files of the arena's besides the store's, which launched bots must not see.

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
        hidden: Sequence[Path] = (),
    ) -> None:
        self.limits = limits or Limits()
        self.url = ""
        self.ended: dict[str, str] = {}
        self._address, self._port = address, port
        self._store = store
        self._competitions: list[Competition] = []
        self._changed = asyncio.Event()
        self._closing = False
        self._ours: dict[str, _Ours] = {}
        self._stopping: set[asyncio.Task[None]] = set()
        self._on_verdict = on_verdict
        file = store.file
        files = (*hidden, file) if file is not None else hidden
        self._launcher = Launcher(self.limits, files, self._found)
        self._loop = asyncio.get_running_loop()
        self.conduct = Conduct(self._loop.time, practice, self._ruled)
        self.gateway = Gateway(
            self.conduct, self.limits, self._on_change, self._on_offence
        )

    async def __aenter__(self) -> Host:
        _allow_many_files()
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
        self._closing = True
        await self.gateway.close()
        await self._launcher.close()

    async def launch(
        self,
        bot: Sequence[str],
        name: str,
        *,
        tables: int = 1,
        encoding: Encoding = Encoding.JSON,
    ) -> None:
        """Start a bot of ours, given as GAME NAME, as a process that connects like any other."""
        url = self._near_url
        words = bot_command(bot, url=url, name=name, tables=tables, encoding=encoding)
        await self.launch_program(Program(tuple(words)), name)

    async def launch_program(self, program: Program, name: str) -> None:
        """Start a bot that somebody has written, as a process that connects like any other or speaks over its pipes.

        It gets a word that nobody else has, and is called `name` whatever it calls itself. What becomes of it if it ends by itself
        is in `ended`.

        Raises:
            UsageError: the program cannot be shown what it names.
            ArenaError: the name is taken, or it cannot be started on this machine.
        """
        if name in self._ours or name in self.gateway.players:
            raise ArenaError(f"expected a name that no bot has, got {name!r}")
        self.ended.pop(name, None)  # it may be started once more
        ours = _Ours(name, self._launcher)
        token = secrets.token_urlsafe(16)
        self.gateway.admission.expect(name, token, ours)
        self._ours[name] = ours
        try:
            ours.launched = launched = await self._launcher.start(
                name, program, url=self._near_url, token=token
            )
        except BaseException:
            self.gateway.admission.forget(name)
            del self._ours[name]
            raise
        self._loop.call_later(_LAUNCH_S, self._awaited, name, ours)
        if launched.stdin_fd is not None and launched.stdout_fd is not None:
            address = f"stdio:{name}"
            self.gateway.admission.forget(name, keeps_name=True)
            self.gateway.vouch(address, (name, ours))
            fds = launched.stdin_fd, launched.stdout_fd
            await Pipe.open(self.gateway, self.limits, address, *fds)

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
            self._ruled,
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
            gone = Finding(
                kind=Ending.DISCONNECT,
                text="its final is over",
                mechanism=Mechanism.SESSION,
            )
            for name in competition.house:
                if name in self._ours:
                    self._stop(name, gone)

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

    def _on_offence(self, name: str, finding: Finding) -> None:
        """A player is gone for good: if it sat nowhere just then, its competitions must learn why."""
        for competition in self._competitions:
            competition.offended(name, finding)
        if name in self._ours and finding.kind is not Ending.CRASH:
            got = f"; got {finding.got}" if finding.got else ""
            self.ended.setdefault(name, finding.text + got)
            self._changed.set()
            self._loop.call_soon(self._stop, name, finding)

    @property
    def _near_url(self) -> str:
        """How a bot on this machine reaches us, whatever interface we listen on."""
        for everywhere, here in (
            ("//0.0.0.0:", "//127.0.0.1:"),
            ("//[::]:", "//[::1]:"),
        ):
            if everywhere in self.url:
                return self.url.replace(everywhere, here)
        return self.url

    def _found(self, name: str, finding: Finding) -> None:
        """A bot of ours has ended by itself, or taken too much and been ended."""
        if self._closing:
            return  # they go because we do
        last = one_line((finding.stderr or "").strip().rpartition("\n")[2])
        said = f"; it said: {last}" if last else ""
        self.ended.setdefault(name, finding.text + said)  # what came first counts
        ours = self._forget(name)
        if name in self.gateway.players:
            self.gateway.dismiss(name, finding)
        else:  # it never came, or has gone before
            enforced = "time" if ours is None else ours.enforced
            self._on_offence(name, msgspec.structs.replace(finding, enforced=enforced))
        self._on_change()

    def _awaited(self, name: str, ours: _Ours) -> None:
        """A bot that was started should be here by now."""
        if self._ours.get(name) is ours and name not in self.gateway.players:
            finding = Finding(
                kind=Ending.ABSENT,
                text=f"did not say hello with its ARENA_TOKEN within {_LAUNCH_S:.0f} s",
                mechanism=Mechanism.SESSION,
                enforced=ours.enforced,
            )
            self._on_offence(name, finding)

    def _ruled(self, verdict: Verdict) -> None:
        """A bot is out; one of ours is stopped, unless it still takes part in another competition."""
        self._on_verdict(verdict)
        plays_on = any(one.is_in(verdict.bot) for one in self._competitions)
        if verdict.bot in self._ours and not plays_on:
            finding = Finding(
                kind=verdict.kind, text=verdict.text, mechanism=verdict.mechanism
            )
            self._loop.call_soon(self._stop, verdict.bot, finding)

    def _forget(self, name: str) -> _Ours | None:
        """A bot of ours has ended: its name is free again."""
        self.gateway.admission.forget(name)
        return self._ours.pop(name, None)

    def _stop(self, name: str, finding: Finding) -> None:
        self.gateway.dismiss(name, finding)
        task = self._loop.create_task(self._launcher.stop(name))
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)
        task.add_done_callback(lambda _: self._forget(name))


def _allow_many_files() -> None:
    """Raise the soft limit of open files to the hard one: a class of 500 needs more than the usual 1,024."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Not more: some programs that bots may be close every file that they could have.
    most = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):  # macOS refuses some values; then it stays
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
