"""An arena in one piece: its database, its gateway, the bots that it has started, and the competitions that are on."""

from __future__ import annotations

import asyncio
import secrets
import ssl
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import msgspec

from arena.conduct import Conduct
from arena.director import Competition, Listener, Report
from arena.forms import schedule_of
from arena.gateway import Gateway
from arena.launch import Launched, Launcher, Program, bot_command
from arena.ledger import Ledger
from arena.match import Result
from arena.pipe import Pipe
from arena.plan import Bot, Form, Plan
from arena.roster import Roster
from arena.roster_watch import RosterWatch
from arena.schedule import Pairing
from arena.store import Competition as Written
from arena.store import State, Store, new_id
from arena.verdict import Finding
from protocol.codec import Encoding
from protocol.errors import ArenaError, UsageError, one_line
from protocol.messages import (
    CLOSE_RESTART,
    Done,
    Ending,
    Instruct,
    Limits,
    Mechanism,
    Verdict,
)
from protocol.strategy import house_bots

__all__ = ["Host"]

_LAUNCH_S = 60.0  # for a program to say hello, on a machine that starts thirty of them
_LOOPBACK = "127.0.0.1"
_DISMISSED = "its competition is over"
_FILES = 16_384  # that may be open at once: thousands of bots
_HOUSE_SEATS = 3  # the most free chairs that a final can have (K2)


class _Relay(Listener):
    """What a competition tells goes to the host, and on to whoever listens to that."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def freed(self, competition: Competition, names: Sequence[str]) -> None:
        """Other competitions may wait for these bots."""
        self._host._on_freed(names)

    def ruled(self, verdict: Verdict) -> None:
        """A bot is out."""
        self._host._ruled(verdict)

    def matched(
        self, competition: Competition, match: str, pairing: Pairing, result: Result
    ) -> None:
        """A match is over and written down."""
        self._host._listener.matched(competition, match, pairing, result)

    def told(self, text: str) -> None:
        """Something that the instructor should know."""
        self._host._listener.told(text)

    def guests_elsewhere(self, competition: Competition) -> Collection[str]:
        """The house bots of other competitions."""
        others = {name for one in self._host.competitions for name in one.fillers}
        return others.difference(competition.fillers)


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

    `on_instruct` does what an instructor wants, if there is one. `ended` has what became of the processes that were launched and have ended by themselves, by name.

    Args:
        store: where results go; its owner closes it.
        address: the interface to listen on.
        port: the port, or 0 for a free one.
        limits: of time and space.
        practice: illegal answers are refused, and nobody is out for them.
        requires_token: whether everybody who comes needs a token of the roster; who is on it needs it always.
        tls: what encrypts the port; bots that the arena launches have another one, on loopback.
        listener: told of what happens in competitions.
        on_verdict: told of every elimination as it happens.
        is_attended: whether an instructor is there to be asked, when a match was void three times (J5).
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
        requires_token: bool = False,
        tls: ssl.SSLContext | None = None,
        listener: Listener | None = None,
        is_attended: bool = False,
        on_verdict: Callable[[Verdict], None] = lambda verdict: None,
        hidden: Sequence[Path] = (),
    ) -> None:
        self.limits = limits or Limits()
        self.url = ""
        self.ended: dict[str, str] = {}
        self._address, self._port, self._tls = address, port, tls
        self._near_port = 0
        self._listener = listener or Listener()
        self._is_attended = is_attended
        self._store = store
        self._competitions: list[Competition] = []
        self._changed = asyncio.Event()
        self._closing = self._is_interrupted = False
        self._ours: dict[str, _Ours] = {}
        self._written: dict[str, Bot] = {}  # how what we launched can be launched again
        self._stopping: set[asyncio.Task[None]] = set()
        self._on_verdict = on_verdict
        file = store.file
        files = (*hidden, file) if file is not None else hidden
        self._launcher = Launcher(self.limits, files, self._found)
        self._loop = asyncio.get_running_loop()
        self.conduct = Conduct(self._loop.time, practice, self._ruled)
        roster = Roster(store.engine)
        access = roster.access()
        self.gateway = Gateway(
            self.conduct,
            self.limits,
            self._on_change,
            self._on_offence,
            access=access,
            requires_token=requires_token,
            on_instruct=self._on_instruct,
        )
        # Whoever changes the roster does so in another process.
        self._watch = RosterWatch(roster, self.gateway.roster_changed, access.revision)
        self._watching: asyncio.Task[None] | None = None
        self.on_instruct: Callable[[Instruct, str], Done] | None = None

    async def __aenter__(self) -> Host:
        _allow_many_files()
        for written in self.unfinished():  # its bots are launched again in a moment
            self._keep_names(written.plan)
        port = await self.gateway.open(self._address, self._port, self._tls)
        host = f"[{self._address}]" if ":" in self._address else self._address
        self.url = f"{'ws' if self._tls is None else 'wss'}://{host}:{port}"
        if self._tls is not None:  # whose certificate need not be good for loopback
            self._near_port = await self.gateway.open(_LOOPBACK, 0)
        self._watching = asyncio.create_task(self._watch.run())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing = True
        if self._watching is not None:
            self._watching.cancel()
        if self._is_interrupted:
            await self.gateway.close(CLOSE_RESTART, "the arena will go on later")
        else:
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
        self._written[name] = Bot(name=name, house=bot[1], tables=tables)

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
        self._written[name] = Bot(
            name=name,
            words=program.words,
            stdio=program.stdio,
            folder=None if program.folder is None else str(program.folder),
        )
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
        """The connected bots that play a game, in the order in which they came; not those that fill others' chairs."""
        fillers = {name for one in self._competitions for name in one.fillers}
        return tuple(
            name
            for name, player in self.gateway.players.items()
            if game in player.games
            and player.connection is not None
            and name not in fillers
        )

    def _keep_names(self, plan: Plan) -> None:
        """Nobody else gets the names of bots that will be launched."""
        for name in (*(bot.name for bot in plan.bots), *plan.house):
            if name not in self._ours:
                self.gateway.admission.expect(name, secrets.token_urlsafe(16))

    @property
    def taken(self) -> set[str]:
        """Names that are somebody's: of who is here or on its way, and of all that take part in what is played."""
        playing = (name for one in self._competitions for name in one.plan.players)
        return {*self.gateway.players, *self._ours, *playing}

    @property
    def competitions(self) -> tuple[Competition, ...]:
        """Those that are being played."""
        return tuple(self._competitions)

    def compete(self, plan: Plan) -> Competition:
        """Set a competition up, and write it down; it plays while `play` is awaited.

        Raises:
            UsageError: the game is not played in this form, or not by these players; nothing is written.
        """
        if plan.form is Form.ELIMINATION:
            tag = secrets.token_hex(2)
            house = tuple(f"house-{tag}-{n}" for n in range(_HOUSE_SEATS))
            seed = secrets.token_hex(32)
            plan = msgspec.structs.replace(plan, house=house, seed=seed)
        known = {bot.name for bot in plan.bots}
        launched = (self._written[name] for name in plan.players if name in self._ours)
        bots = (*plan.bots, *(bot for bot in launched if bot.name not in known))
        plan = msgspec.structs.replace(plan, bots=bots)
        if plan.form is not Form.LADDER:
            schedule_of(plan)
        competition = new_id(plan.game)
        self._keep_names(plan)
        ledger = Ledger(competition, plan, self._store)
        self._store.competition_started(competition, plan, time.time())
        return self.competition(ledger)

    def unfinished(self) -> tuple[Written, ...]:
        """The competitions that an earlier arena on this database has not played to their ends."""
        return tuple(
            one
            for one in self._store.competitions()
            if one.state in (State.RUNNING, State.PAUSED)
        )

    def resume(self, written: Written) -> Competition:
        """Set a competition up that was interrupted: what has been played stands, the rest is for `play`."""
        return self.competition(self.ledger_of(written), written.state is State.PAUSED)

    def ledger_of(self, written: Written) -> Ledger:
        """What has come of a competition so far."""
        store, competition = self._store, written.id
        return Ledger(
            competition,
            written.plan,
            store,
            store.results(competition),
            store.actions(competition),
            store.verdicts(competition),
        )

    def competition(self, ledger: Ledger, is_paused: bool = False) -> Competition:
        """A competition with what is in its ledger, to be played."""
        return Competition(
            ledger,
            self.gateway,
            time.time,
            self._call_house,
            _Relay(self),
            is_paused=is_paused,
            is_attended=self._is_attended,
        )

    async def play(self, competition: Competition) -> Report:
        """Play a competition to its end.

        Raises:
            ArenaError: as `Competition.run`.
        """
        self._competitions.append(competition)
        try:
            await self.launch_missing(competition)
            return await competition.run()
        finally:
            self._is_interrupted |= not competition.is_over
            self._competitions.remove(competition)
            self._dismiss_house(competition)

    async def launch_missing(self, competition: Competition) -> None:
        """Start those of its launched bots that do not run and are not out."""
        for bot in competition.plan.bots:
            if bot.name in self._ours or not competition.is_in(bot.name):
                continue
            try:
                if bot.house is not None:
                    competition.guests.add(bot.name)
                    words = competition.plan.game, bot.house
                    await self.launch(words, bot.name, tables=bot.tables)
                else:
                    await self.launch_program(bot.program, bot.name)
            except ArenaError as error:
                self._listener.told(f"{bot.name}: {error}")

    def restore(self, competition: Competition) -> None:
        """Start those of its launched bots again that are in it once more."""
        task = self._loop.create_task(self.launch_missing(competition))
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)

    def _dismiss_house(self, competition: Competition) -> None:
        """Stop the house bots that were there for this competition only."""
        gone = Finding(
            kind=Ending.DISCONNECT, text=_DISMISSED, mechanism=Mechanism.SESSION
        )
        needed = {name for one in self._competitions for name in one.fillers}
        for name in competition.fillers:
            if name in self._ours and name not in needed:
                self._stop(name, gone)
            elif name not in self._ours:
                self.gateway.admission.forget(name)

    async def _call_house(self, game: str, name: str) -> None:
        if name in self._ours:
            return  # it is on its way
        while name in self.gateway.players:  # the one before it, which is going
            await self.wait_for_change()
        await self._launcher.stop(name)  # until nothing of it is left
        bots = tuple(house_bots(game))
        await self.launch((game, bots[0]), name)

    def _on_freed(self, names: Sequence[str]) -> None:
        """A match has ended; its players may be awaited in any competition, once its own has counted it."""
        asyncio.get_running_loop().call_soon(self._seat, names)

    def _seat(self, names: Sequence[str]) -> None:
        for competition in self._in_order:
            competition.seat(names)

    @property
    def _in_order(self) -> list[Competition]:
        """The competitions: eliminations first, as a stage waits for every match of it, ladders last, as they have no end."""
        order = {Form.ELIMINATION: 0, Form.LADDER: 2}
        return sorted(self._competitions, key=lambda one: order.get(one.plan.form, 1))

    def _on_instruct(self, message: Instruct, who: str) -> Done:
        """An instructor's word.

        Raises:
            UsageError: it cannot be done.
        """
        if self.on_instruct is None:
            raise UsageError("expected an arena with an instructor, this one has none")
        return self.on_instruct(message, who)

    def _on_change(self) -> None:
        self._changed.set()
        for competition in self._in_order:
            competition.changed()

    def _on_offence(self, name: str, finding: Finding) -> None:
        """A player is gone for good: if it sat nowhere just then, its competitions must learn why."""
        for competition in self._competitions:
            competition.offended(name, finding)
        tells = finding.kind is not Ending.CRASH and finding.text != _DISMISSED
        if name in self._ours and tells:
            got = f"; got {finding.got}" if finding.got else ""
            self.ended.setdefault(name, finding.text + got)
            self._changed.set()
            self._loop.call_soon(self._stop, name, finding)

    @property
    def _near_url(self) -> str:
        """How a bot on this machine reaches us, whatever interface we listen on."""
        if self._near_port:
            return f"ws://{_LOOPBACK}:{self._near_port}"
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
