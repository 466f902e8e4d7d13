"""An arena in one piece: its database, its gateway, the bots that it has started, and the competitions that are on."""

from __future__ import annotations

import asyncio
import secrets
import ssl
import time
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import msgspec

from arena.competitions.bot_supervisor import Crew, program_of
from arena.competitions.competition import (
    Competition,
    Listener,
    Report,
    in_turn,
    share,
)
from arena.competitions.scorebook import Ledger
from arena.engine.match import Result
from arena.engine.names import alike, owner_of
from arena.engine.verdict import Finding
from arena.formats.formats import schedule_of
from arena.formats.schedule import Pairing
from arena.formats.spec import Bot, Form, Plan
from arena.referee.referee import Conduct
from arena.sandbox.launcher import Program
from arena.server.entrance import Page as EntrancePage
from arena.server.gateway import Gateway
from arena.server.login import OnInstruct
from arena.server.origin import read_base_path
from arena.storage.roster import BY_HAND, Roster
from arena.storage.roster_requests import Request, RosterRequests
from arena.storage.roster_watch import RosterWatch
from arena.storage.store import Competition as Written
from arena.storage.store import State, Store, new_id
from protocol.codec import Encoding
from protocol.errors import ArenaError, UsageError
from protocol.messages import (
    CLOSE_RESTART,
    VERSION,
    Done,
    Instruct,
    Limits,
    Verdict,
)
from protocol.strategy import house_bots

__all__ = ["Host", "Page", "People"]

_LOOPBACK = "127.0.0.1"
_FILES = 16_384  # that may be open at once: thousands of bots
_HOUSE_SEATS = 3  # the most free chairs that a final can have (K2)


class People(Protocol):
    """Those who play at the page, and the house bots that play with them."""

    @property
    def aside(self) -> Collection[str]:
        """Their names: no competition takes these."""

    def is_aside(self, name: str) -> bool:
        """Whether no competition takes who is called so."""

    def record(self, match: str) -> object | None:
        """A match that was played there lately."""

    def changed(self) -> None:
        """A bot or a person has come or gone."""

    def needed(self, competition: Competition) -> None:
        """A competition begins: who has to play in it does not play there."""


class Page(EntrancePage, Protocol):
    """What there is for browsers, as the host drives it."""

    @property
    def people(self) -> People:
        """Those who play at it."""

    def matched(
        self, competition: Competition, match: str, pairing: Pairing, result: Result
    ) -> None:
        """A match is over and written down."""

    async def close(self) -> None:
        """Stop what has been started for it."""


class _Relay(Listener):
    """What a competition tells goes to the host, and on to whoever listens to that."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def freed(self, competition: Competition, names: Sequence[str]) -> None:
        """Other competitions may wait for these bots."""
        self._host.freed(names)

    def share(self, competition: Competition, name: str) -> float:
        """Other competitions may wait for this bot."""
        return share(competition, self._host.competitions, name)

    def beside(self, competition: Competition) -> Collection[Competition]:
        """Those that have a player in common with it."""
        players = set(competition.plan.players)
        return [
            one
            for one in self._host.competitions
            if one is not competition and not players.isdisjoint(one.plan.players)
        ]

    def ruled(self, verdict: Verdict) -> None:
        """A bot is out."""
        self._host._ruled(verdict)

    def matched(
        self, competition: Competition, match: str, pairing: Pairing, result: Result
    ) -> None:
        """A match is over and written down."""
        if self._host.web is not None:
            self._host.web.matched(competition, match, pairing, result)
        self._host._listener.matched(competition, match, pairing, result)

    def told(self, text: str) -> None:
        """Something that the instructor should know."""
        self._host._listener.told(text)

    def guests_elsewhere(self, competition: Competition) -> Collection[str]:
        """The house bots of other competitions, and those with the people who play against them."""
        others = {name for one in self._host.competitions for name in one.fillers}
        return others.difference(competition.fillers).union(self._host.aside)

    def is_aside(self, name: str) -> bool:
        """People sit in the parlour, and do not compete."""
        parlour = self._host.people
        return parlour is not None and parlour.is_aside(name)


class Host:
    """Use it as an asynchronous context: inside, bots can connect to `url`.

    `on_instruct` does what an instructor wants, if there is one. `crew` has the bots that were launched, `web` the page, if there is one.

    Args:
        store: where results go; its owner closes it.
        address: the interface to listen on.
        port: the port, or 0 for a free one.
        limits: of time and space.
        practice: illegal answers are refused, and nobody is out for them.
        requires_token: whether everybody who comes needs a token of the roster; who is on it needs it always.
        tls: says what a new connection to the port is encrypted with; bots that the arena launches have another one, on loopback.
        listener: told of what happens in competitions.
        on_verdict: told of every elimination as it happens.
        is_attended: whether an instructor is there to be asked, when a match was void three times (J5).
        hidden: files of the arena's besides the store's, which launched bots must not see.
        page: makes the page for browsers; None for an arena without one.
        origins: whose pages may open WebSockets here besides our own, as `https://arena.example.org`.
        proxies: addresses or networks of those whose `X-Forwarded-For` says where a request comes from.
        base_path: below which browsers find the page and all that belongs to it, as `/arena/`.

    Raises:
        UsageError: one of the origins is none, or one of the proxies, or the base path.
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
        tls: Callable[[], ssl.SSLContext] | None = None,
        listener: Listener | None = None,
        is_attended: bool = False,
        on_verdict: Callable[[Verdict], None] = lambda verdict: None,
        hidden: Sequence[Path] = (),
        page: Callable[[Host, Store], Page] | None = None,
        origins: Sequence[str] = (),
        proxies: Sequence[str] = (),
        base_path: str = "/",
    ) -> None:
        self.limits = limits or Limits()
        self.url = ""
        self._address, self._port, self._tls = address, port, tls
        self._near_port = 0
        self._listener = listener or Listener()
        self._is_attended = is_attended
        self._store = store
        self._competitions: list[Competition] = []
        self._changed = asyncio.Event()
        self._is_interrupted = False
        self._restoring: set[asyncio.Task[None]] = set()
        self._restarting: set[str] = set()  # launched bots that were forgiven
        self._on_verdict = on_verdict
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
        file = store.file
        self.crew = Crew(
            self.gateway,
            self.limits,
            (*hidden, file) if file is not None else hidden,
            url=lambda: self._near_url,
            wait_for_change=self.wait_for_change,
            on_offence=self._on_offence,
            on_change=self._on_change,
        )
        # Whoever changes the roster does so in another process.
        self._requests = RosterRequests(store.engine)
        self._watch = RosterWatch(
            roster,
            self.gateway.roster_changed,
            access.revision,
            requests=self._requests,
            on_request=self._on_request,
        )
        self._watching: asyncio.Task[None] | None = None
        self.gateway.entrance.origins.allow(origins)
        self.gateway.entrance.proxies.trust(proxies)
        self.gateway.entrance.base_path = read_base_path(base_path)
        self.web: Page | None = None
        if page is not None:
            self.web = self.gateway.entrance.page = page(self, store)
            self.conduct.page = self.gateway.entrance.base_path
        self.on_instruct: OnInstruct | None = None

    async def __aenter__(self) -> Host:
        _allow_many_files()
        for earlier in self._store.competitions():
            self._spell(earlier.plan.players)
        for written in self.unfinished():  # its bots are launched again in a moment
            self._keep_names(written.plan)
        port = await self.gateway.open(self._address, self._port, self._tls)
        host = f"[{self._address}]" if ":" in self._address else self._address
        self.url = f"{'ws' if self._tls is None else 'wss'}://{host}:{port}"
        if self.gateway.entrance.base_path != "/":
            self.url += self.gateway.entrance.base_path
        if self._tls is not None:  # whose certificate need not be good for loopback
            self._near_port = await self.gateway.open(_LOOPBACK, 0)
        await asyncio.to_thread(self._requests.clear)
        self._watching = asyncio.create_task(self._watch.run())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.crew.closes()
        for task in tuple(self._restoring):
            task.cancel()
        if self._watching is not None:
            self._watching.cancel()
        if self._is_interrupted:
            await self.gateway.close(CLOSE_RESTART, "the arena will go on later")
        else:
            await self.gateway.close()
        if self.web is not None:
            await self.web.close()
        await self.crew.close()

    async def launch(
        self,
        bot: Sequence[str],
        name: str,
        *,
        tables: int = 1,
        encoding: Encoding = Encoding.JSON,
    ) -> None:
        """Start a bot of ours, given as GAME NAME, as a process that connects like any other."""
        await self.crew.launch(bot, name, tables=tables, encoding=encoding)

    async def launch_program(self, program: Program, name: str) -> None:
        """Start a bot that somebody has written, as a process that connects like any other or speaks over its pipes.

        Raises:
            UsageError: the program cannot be shown what it names.
            ArenaError: the name is taken, or it cannot be started on this machine.
        """
        await self.crew.launch_program(program, name)

    @property
    def ended(self) -> Mapping[str, str]:
        """What has become of the processes that were launched and have ended by themselves, by name."""
        return self.crew.ended

    async def wait_for_change(self) -> None:
        """Until a bot comes or goes."""
        self._changed.clear()
        await self._changed.wait()

    def names(self, game: str) -> tuple[str, ...]:
        """The connected bots that play a game, in the order in which they came; not people, and not those that fill others' chairs."""
        fillers = self._fillers
        return tuple(
            player.name
            for player in self.gateway.players.of_game(game)
            if player.connection is not None and player.name not in fillers
        )

    def count(self, game: str) -> int:
        """How many `names` there are, however many are connected."""
        players = self.gateway.players
        others = (players.get(name) for name in self._fillers)
        return players.count(game) - sum(
            one is not None and one.connection is not None and game in one.games
            for one in others
        )

    def saw(self, game: str, names: Collection[str]) -> None:
        """These take part in a game's competition."""
        self.gateway.players.see(game, names)

    def has_new(self, game: str) -> bool:
        """Whether one of the `names` was not among those that `saw` was told of last."""
        fillers = self._fillers
        return any(one not in fillers for one in self.gateway.players.unseen(game))

    def will_go_on(self) -> None:
        """Whoever is connected as it closes is told to come back, as it is awaited."""
        self._is_interrupted = True

    def is_awaiting(self, game: str) -> bool:
        """Whether a bot that plays a game has lost its connection, and may come back within its grace."""
        return any(
            player.connection is None and not player.leaving
            for player in self.gateway.players.of_game(game)
        )

    @property
    def people(self) -> People | None:
        """Where people play, if there is a page."""
        return None if self.web is None else self.web.people

    @property
    def aside(self) -> Collection[str]:
        """The names of people, and of the house bots that play with them."""
        return () if self.people is None else self.people.aside

    def _spell(self, names: Iterable[str]) -> None:
        """Whoever has played keeps its spelling as long as this arena runs."""
        for name in names:
            self.gateway.players.spellings.add(name)

    def _keep_names(self, plan: Plan) -> None:
        """Nobody else gets the names of bots that will be launched."""
        for name in (*(bot.name for bot in plan.bots), *plan.house):
            if name not in self.crew:
                self.gateway.admission.expect(name, secrets.token_urlsafe(16))

    @property
    def _fillers(self) -> set[str]:
        """The names of people, and of house bots that are there for one competition or for people."""
        fillers = {name for one in self._competitions for name in one.fillers}
        return fillers.union(self.aside)

    @property
    def taken(self) -> set[str]:
        """Names that are somebody's: of who is here or on its way, and of all that take part in what is played."""
        playing = (name for one in self._competitions for name in one.plan.players)
        return {*self.gateway.players, *self.crew, *playing, *self.aside}

    def spelled(self, name: str) -> str:
        """How a bot that is called so spells its name."""
        return self.gateway.players.spellings.of(name)

    def is_taken(self, name: str) -> bool:
        """Whether one of the names that are `taken` looks like this."""
        if self.gateway.players.like(name) is not None:
            return True
        playing = (
            one
            for competition in self._competitions
            for one in competition.plan.players
        )
        others = (*self.crew, *playing, *self.aside)
        return alike(name) in map(alike, others)

    def use_of(self, name: str) -> str | None:
        """What somebody's bots do here now, in words; None if none is here.

        Args:
            name: of the owner.
        """
        key = alike(name)
        for player in self.gateway.players.values():
            if alike(owner_of(player.name)) == key:
                if player.connection is None:
                    return f"{player.name} has lost its connection and may come back"
                return f"{player.name} is connected"
        for one in self._competitions:
            for bot in one.plan.players:
                is_out = bot in one.ledger.removed
                if alike(owner_of(bot)) == key and not is_out:
                    return f"{bot} takes part in {one.id}, which is not over"
        others = (
            other
            for other in (*self.crew, *self.aside)
            if alike(owner_of(other)) == key
        )
        return next((f"{other} is here" for other in others), None)

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
        launched = self.crew.written(plan.players)
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
        self._spell(ledger.plan.players)
        if ledger.plan.form is Form.LADDER:
            self._spell(row.name for row in ledger.rows)
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
        if self.people is not None:
            self.people.needed(competition)
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
            await self._launch_missing(competition, bot)

    async def _launch_missing(self, competition: Competition, bot: Bot) -> None:
        if bot.name in self.crew or not competition.is_in(bot.name):
            return
        try:
            if bot.house is not None:
                competition.guests.add(bot.name)
                words = competition.plan.game, bot.house
                await self.launch(words, bot.name, tables=bot.tables)
            else:
                await self.launch_program(program_of(bot), bot.name)
        except ArenaError as error:
            self._listener.told(f"{bot.name}: {error}")

    def restore(self, competition: Competition) -> None:
        """Start those of its launched bots again that are in it once more; those that play with people come back."""
        if self.people is not None:
            self.people.needed(competition)
        self._restore(self.launch_missing(competition))

    def _restore(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._restoring.add(task)
        task.add_done_callback(self._restoring.discard)

    async def _start_again(self, competition: Competition, bot: Bot) -> None:
        """Start a launched bot again that was forgiven, once nothing is left of it."""
        await self.crew.gone(bot.name)
        self._restarting.discard(bot.name)
        if not competition.is_over:
            await self._launch_missing(competition, bot)
        if bot.name not in self.crew:
            self.gateway.admission.forget(bot.name)

    def _dismiss_house(self, competition: Competition) -> None:
        """Stop the house bots that were there for this competition only."""
        needed = {name for one in self._competitions for name in one.fillers}
        for name in competition.fillers:
            if name not in self.crew:
                self.gateway.admission.forget(name)
            elif name not in needed:
                self.crew.dismiss(name)

    async def _call_house(self, game: str, name: str) -> None:
        await self.crew.call_house(game, name, next(iter(house_bots(game))))

    def freed(self, names: Sequence[str]) -> None:
        """A match has ended; its players may be awaited in any competition, once its own has counted it."""
        asyncio.get_running_loop().call_soon(self._seat, names)

    def _seat(self, names: Sequence[str]) -> None:
        for name in self._restarting.intersection(names):
            player = self.gateway.players.get(name)
            if player is not None and not player.chairs:
                self.crew.dismiss(name)  # it hung, and no match is disturbed by it now
        for competition in in_turn(self._competitions):
            competition.seat(names)

    def _on_instruct(self, message: Instruct, who: str) -> Done | Awaitable[Done]:
        """An instructor's word.

        Raises:
            UsageError: it cannot be done.
        """
        if self.on_instruct is None:
            raise UsageError("expected an arena with an instructor, this one has none")
        return self.on_instruct(message, who)

    async def _on_request(self, request: Request) -> str:
        """What another process asks, which may write the database: as if an instructor did.

        Raises:
            ArenaError: it cannot be done.
        """
        message = Instruct(
            VERSION, "", request.action, bot=request.name, text=request.new
        )
        done = self._on_instruct(message, BY_HAND)
        return (done if isinstance(done, Done) else await done).text

    def _on_change(self) -> None:
        self._changed.set()
        moved = self.gateway.players.take_moved()
        for competition in in_turn(self._competitions):
            competition.changed(moved)
        if self.people is not None:
            self.people.changed()

    def _on_offence(self, name: str, finding: Finding) -> None:
        """A player is gone for good: if it sat nowhere just then, its competitions must learn why."""
        if self.people is None or not self.people.is_aside(name):
            for competition in self._competitions:
                competition.offended(name, finding)
        self.crew.offended(name, finding)
        self._changed.set()

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

    def _ruled(self, verdict: Verdict) -> None:
        """A bot is out; one of ours is stopped, unless it still takes part in another competition.

        What happens in the parlour is known to those at the table, and has no consequences.
        """
        if self.people is not None and self.people.record(verdict.match) is not None:
            return
        self._on_verdict(verdict)
        plays_on = any(one.is_in(verdict.bot) for one in self._competitions)
        if verdict.bot in self.crew and not plays_on:
            finding = Finding(
                kind=verdict.kind, text=verdict.text, mechanism=verdict.mechanism
            )
            self._loop.call_soon(self.crew.stop, verdict.bot, finding)
        elif verdict.forgiven and verdict.bot not in self._restarting:
            for one in self._competitions:
                for bot in one.plan.bots:
                    if bot.name == verdict.bot and one.is_in(bot.name):
                        self._restart(one, bot)
                        return

    def _restart(self, competition: Competition, bot: Bot) -> None:
        """Start a launched bot again that was forgiven; one that hangs is ended first, when it sits nowhere any more."""
        name = bot.name
        self._restarting.add(name)
        if name not in self.crew:  # meanwhile nobody else gets its name
            self.gateway.admission.expect(name, secrets.token_urlsafe(16))
        elif (player := self.gateway.players.get(name)) is not None:
            player.leaving = True  # it is dealt to no more
            self.freed((name,))
        self._restore(self._start_again(competition, bot))


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
