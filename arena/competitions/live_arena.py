"""A whole arena: its database, gateway, launched bots and running competitions."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import ssl
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from arena.competitions.arbiter import Arbiter
from arena.competitions.bot_supervisor import BotSupervisor
from arena.competitions.bots_here import BotsHere, HostPage, PeoplePlaying, in_turn
from arena.competitions.competition import Competition
from arena.competitions.elsewhere import HostOverview, Hosts
from arena.competitions.final_standings import final_standings
from arena.competitions.ledger import Ledger
from arena.competitions.listener import Listener
from arena.competitions.process_pool import ProcessPool
from arena.competitions.seating import Seating
from arena.competitions.storage_watch import StorageWatch
from arena.formats.formats import schedule_of
from arena.formats.spec import Form, Plan, Take
from arena.games.names import is_process, owner_of
from arena.games.verdict import Finding
from arena.referee.bot_session import BotSession
from arena.referee.referee import Referee
from arena.server.admin_requests import OnInstruct
from arena.server.background import BackgroundTasks
from arena.server.entrance import EntranceSockets
from arena.server.gateway import ArenaAddress, Gateway
from arena.server.listener import allow_many_files
from arena.server.origins import read_base_path
from arena.storage import arena_contact
from arena.storage.arena_contact import ArenaContact
from arena.storage.models import CompetitionReport
from arena.storage.roster import BY_HAND, Roster
from arena.storage.store import CompetitionRow, CompetitionState, Store, new_id
from arena.storage.tokens import Access, hashed
from arena.submissions.service import SubmissionService
from arena.submissions.socket import SubmitterSockets
from protocol.errors import StoreFailed, UsageError
from protocol.messages import (
    CLOSE_RESTART,
    Action,
    Done,
    Ending,
    Instruct,
    Limits,
    Over,
    Termination,
)

__all__ = ["LiveArena"]

_BEGIN_S = 5.0  # how long a command waits for the arena to begin; its client gives up after 10 s
_POLL_S = 0.05


class LiveArena:
    """An asynchronous context manager: inside it, bots can connect to `url`.

    Args:
        store: the database; its owner closes it.
        port: 0 for a free one.
        practice: whether illegal answers are refused without putting a bot out.
        requires_token: whether every bot needs a token; names on the roster always do.
        tls: makes the TLS context of a new connection to the port. Launched bots connect to another
            port, on loopback.
        is_attended: whether there is an instructor to ask when a match was void three times (J5).
        hidden: files that launched bots must not see, besides the store's.
        origins: other sites whose pages may open WebSockets here: `https://arena.example.org`.
        proxies: addresses or networks of proxies whose `X-Forwarded-For` is trusted.
        base_path: the path of the page for browsers, such as `/arena/`.
        submissions: takes what students submit; it is started and closed here.

    Raises:
        UsageError: an origin, a proxy or the base path is invalid.
        Unreachable: the arena cannot listen on the address.

    Attributes:
        hidden: all files that launched bots must not see.
        storage: watches whether results reach the disk; while they do not, nothing begins.
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
        hidden: Sequence[Path] = (),
        page: Callable[[LiveArena, Store], HostPage] | None = None,
        origins: Sequence[str] = (),
        proxies: Sequence[str] = (),
        base_path: str = "/",
        submissions: SubmissionService | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self._address = ArenaAddress(address, port, tls)
        self._is_attended = is_attended
        self.store = store
        contact = arena_contact.contact_file(store.engine)
        self.hidden = (*hidden, *filter(None, (store.file, contact)))
        self._changed = asyncio.Event()
        self._is_interrupted = False
        self._loop = asyncio.get_running_loop()
        self.on_instruct: OnInstruct | None = None
        self.planned_games: Callable[[], Collection[str]] | None = None
        self.host_directory: HostOverview | None = None
        self.referee = Referee(self._loop.time, practice)
        self._roster = Roster(store.engine)
        self._roster_lock = asyncio.Lock()
        self._own_token = secrets.token_urlsafe()  # for the administrator of this database
        self.gateway = Gateway(
            self.referee,
            self.limits,
            self._on_change,
            self._on_offence,
            self._on_leaving,
            access=self._access(),
            requires_token=requires_token,
            on_instruct=self._on_instruct,
        )
        self.gateway.note = self._note_for
        self.supervisor = BotSupervisor(
            self.gateway,
            self.limits,
            self.hidden,
            url=lambda: self._address.near_url,
            wait_for_change=self.wait_for_change,
            on_offence=self._on_offence,
            on_change=self._on_change,
        )
        self._seating = Seating(self.gateway.players)
        self.here = BotsHere(self.gateway, self.supervisor, self._seating, listener or Listener())
        self.referee.on_verdict = self.here.verdict_given
        self.storage = StorageWatch(store, self._hold, self.here.told)
        self._tasks = BackgroundTasks()
        self.submissions = submissions
        self._open_to_browsers(page, origins, proxies, base_path)
        self._submitters: SubmitterSockets | None = None
        if submissions is not None:
            submissions.check_storage = self.storage.check
            self._submitters = SubmitterSockets(self.gateway, submissions, self._loop.time())
            self.gateway.entrance.submitters = self._submitters

    def _open_to_browsers(
        self,
        page: Callable[[LiveArena, Store], HostPage] | None,
        origins: Sequence[str],
        proxies: Sequence[str],
        base_path: str,
    ) -> None:
        entrance = self.gateway.entrance
        entrance.origins.allow(origins)
        entrance.proxies.trust(proxies)
        entrance.base_path = read_base_path(base_path)
        if page is not None:
            self.here.page = entrance.page = page(self, self.store)
            self.referee.page = entrance.base_path

    async def __aenter__(self) -> LiveArena:
        allow_many_files()
        if self.submissions is not None:
            await self.submissions.start()
        for earlier in self.store.competitions():
            self.here.keep_spellings(earlier.plan.players)
        for interrupted in self.unfinished():  # its bots are launched again in a moment
            self.here.keep_names(interrupted.plan)
        await self._address.open(self.gateway)
        await asyncio.to_thread(arena_contact.publish, self.store.engine, self._contact)
        await self.read_roster()  # it may have changed before `arena roster` could find this arena
        self._tasks.start(self.storage.run())
        return self

    @property
    def _contact(self) -> ArenaContact:
        return ArenaContact(self._address.near_url, self._own_token)

    async def __aexit__(self, *_: object) -> None:
        self.supervisor.is_closing = True
        self.here.close()
        self._seating.close()
        self._tasks.cancel()
        with contextlib.suppress(OSError, StoreFailed):  # a contact left behind does not count
            await asyncio.to_thread(arena_contact.withdraw, self.store.engine, self._contact)
        if self._is_interrupted:
            await self.gateway.close(CLOSE_RESTART, "the arena will go on later")
        else:
            await self.gateway.close()
        if self.here.page is not None:
            await self.here.page.close()
        if self._submitters is not None:
            await self._submitters.close()
        await self.supervisor.close()
        if self.submissions is not None:  # after the last matches, which report their stderr to it
            await self.submissions.close()

    def take_submissions(self, service: SubmissionService, pool: ProcessPool, cores: int) -> None:
        """Let competitions play submissions, of which `cores` compute at once.

        Some more matches than that are played at once, as many wait for messages.
        """
        self.submissions = service
        self._seating.pool = pool
        pool.at_once = 2 * cores + 2
        pool.on_room = self._seating.look
        service.on_change.append(self._versions_changed)

    def take_hosts(self, pools: Hosts, links: EntranceSockets) -> None:
        """Let launched bots also run on hosts, which open their links at this arena's port."""
        self._seating.hosts = pools
        pools.on_room = self._room_changed
        self.gateway.entrance.hosts = links

    def versions_in_play(self, game: str) -> Mapping[str, int]:
        """Return the submission in play in a game, by owner."""
        return {} if self.submissions is None else self.submissions.in_play(game)

    def undecided_before(self, at: float) -> Sequence[str]:
        """Return the owners of submissions that arrived before a time and are still undecided."""
        return () if self.submissions is None else self.submissions.undecided_before(at)

    @property
    def submissions_closed(self) -> str:
        """Why nothing can be submitted any more; empty while something can, or later will."""
        settings = None if self.submissions is None else self.submissions.settings
        if settings is None or settings.closes is None or time.time() < settings.closes:
            return ""
        return settings.closed(time.time())

    @property
    def decision_s(self) -> float | None:
        """The mean seconds that the latest decisions on submissions took; None without any."""
        return None if self.submissions is None else self.submissions.pipeline.mean_s

    @property
    def url(self) -> str:
        """Where bots connect; empty before the arena is open."""
        return self._address.url

    async def wait_for_change(self) -> None:
        """Wait until a bot comes or goes."""
        self._changed.clear()
        await self._changed.wait()

    async def wait_for_bots(self, names: Iterable[str], within_s: float) -> set[str]:
        """Wait until each of these bots has connected or, if it was launched, has ended. Return
        those that connected in time; they may have left again.
        """
        awaited, came = set(names), set[str]()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while True:
                    came |= awaited.intersection(self.gateway.players)
                    if awaited <= came | self.supervisor.ended.keys():
                        break
                    await self.wait_for_change()
        return came

    def will_go_on(self) -> None:
        """Announce a restart: bots that are connected at the end are told to come back."""
        self._is_interrupted = True

    @property
    def people(self) -> PeoplePlaying | None:
        return None if self.here.page is None else self.here.page.people

    @property
    def competitions(self) -> tuple[Competition, ...]:
        return tuple(self.here.competitions)

    def compete(self, plan: Plan) -> Competition:
        """Set up a competition for `play` and record it; after a `UsageError` nothing is."""
        self._check_take(plan)
        if plan.form is Form.ELIMINATION:
            tag = secrets.token_hex(2)
            # As many as there can be free seats in a final (K2).
            house = tuple(f"house-{tag}-{n}" for n in range(plan.rules.seats - 1))
            seed = secrets.token_hex(32)
            plan = msgspec.structs.replace(plan, house=house, seed=seed)
        known = {bot.name for bot in plan.bots}
        connected = [name for name in plan.players if name not in plan.versions]
        launched = self.supervisor.relaunch_specs(connected)
        bots = (*plan.bots, *(bot for bot in launched if bot.name not in known))
        plan = msgspec.structs.replace(plan, bots=bots)
        if plan.form is not Form.LADDER:
            schedule_of(plan)
        competition = new_id(plan.game)
        self.here.keep_names(plan)
        ledger = Ledger(competition, plan, self.store)
        self.store.competition_started(competition, plan, time.time())
        return self.competition(ledger)

    def unfinished(self) -> tuple[CompetitionRow, ...]:
        """Return the competitions of this database that an earlier arena did not finish."""
        unfinished = (CompetitionState.RUNNING, CompetitionState.PAUSED)
        return tuple(row for row in self.store.competitions() if row.state in unfinished)

    def resume(self, row: CompetitionRow) -> Competition:
        """Set up an interrupted competition: its results stand, and `play` plays the rest."""
        is_paused = row.state is CompetitionState.PAUSED
        return self.competition(self.ledger_of(row), is_paused, is_resumed=True)

    def ledger_of(self, row: CompetitionRow) -> Ledger:
        store = self.store
        return Ledger(
            row.id,
            row.plan,
            store,
            store.results(row.id),
            store.actions(row.id),
            store.verdicts(row.id),
            store.version_changes(row.id),
            store.outages(row.id),
        )

    def competition(
        self, ledger: Ledger, is_paused: bool = False, *, is_resumed: bool = False
    ) -> Competition:
        """Make a competition that goes on from the results in its ledger."""
        self._check_take(ledger.plan)
        self.here.keep_spellings(ledger.plan.players)
        if ledger.plan.form is Form.LADDER:
            self.here.keep_spellings(row.name for row in ledger.book.rows)
        arbiter = Arbiter(
            ledger,
            self.gateway,
            time.time,
            self.here,
            self._seating,
            is_paused=is_paused,
            is_attended=self._is_attended,
            is_resumed=is_resumed,
            submitted=self.submissions,
        )
        return Competition(arbiter)

    def _check_take(self, plan: Plan) -> None:
        if plan.take is not Take.CONNECTED and self.submissions is None:
            raise UsageError(
                f"expected an arena that takes submissions, as its bots are {plan.take.value}; "
                "`[submissions]` in the file does that"
            )

    async def play(self, competition: Competition) -> CompetitionReport:
        """Play a competition to its end; raises what `Competition.run` raises."""
        self.here.competitions.append(competition)
        competition.hold(self.storage.is_late)
        if self.people is not None:
            self.people.competition_started(competition)
        try:
            if self.submissions is not None:
                await self.submissions.learn(competition.plan.versions.values())
            await self.here.start(competition)
            report = await self.storage.guard(competition.run())
        finally:
            self._is_interrupted |= not competition.is_over
            self.here.competitions.remove(competition)
            self.here.dismiss(competition)
            self._retire_versions()
        report = msgspec.structs.replace(report, is_written=await self.storage.is_written())
        self._tell_standings(competition, report)
        return report

    def _tell_standings(
        self, competition: Competition, report: CompetitionReport, only: str | None = None
    ) -> None:
        """Tell the connected bots, or one, how they stand, as nobody can ask a closed arena."""
        base = self.referee.page
        page = None if base is None else f"{base}#/c/{report.competition}"
        completed = Termination(Ending.COMPLETED)
        for name, standing in final_standings(report, page).items():
            bot = self.gateway.players.get(name)
            is_asked = only in (None, name) and name not in competition.submitted
            if bot is not None and is_asked:
                bot.send(Over(report.competition, (), (), completed, None, standing=standing))

    def restore(self, competition: Competition) -> None:
        """Bring back a competition's bots that are to be launched, or that play with people."""
        if self.people is not None:
            self.people.competition_started(competition)
        self._tasks.start(self.here.start(competition))

    async def read_roster(self) -> None:
        """Put a change of the roster into effect; raises StoreFailed if it cannot be read."""
        async with self._roster_lock:  # otherwise an older roster could arrive later
            self.gateway.roster_changed(await asyncio.to_thread(self._access))

    def _access(self) -> Access:
        access = self._roster.access()
        instructors = {**access.instructors, hashed(self._own_token): BY_HAND}
        return msgspec.structs.replace(access, instructors=instructors)

    def _on_instruct(self, message: Instruct, who: str) -> Done | Awaitable[Done]:
        if who == BY_HAND and message.action is Action.STATUS:
            return self._roster_written()
        if self.on_instruct is not None:
            return self.on_instruct(message, who)
        if self._is_attended:
            return self._instruct_when_begun(message, who)
        raise UsageError("expected an arena with an instructor, this one has none")

    async def _instruct_when_begun(self, message: Instruct, who: str) -> Done:
        """Wait until the arena has started its own bots, then carry the command out.

        Only then are the runs of its file and the competitions that it resumes known. Raises
        UsageError if that takes longer than `_BEGIN_S`.
        """
        end = self._loop.time() + _BEGIN_S
        while self.on_instruct is None:
            if self._loop.time() >= end:
                raise UsageError(
                    "expected an arena that has started its own bots; try again in a moment"
                )
            await asyncio.sleep(_POLL_S)
        done = self.on_instruct(message, who)
        return done if isinstance(done, Done) else await done

    async def _roster_written(self) -> Done:
        """Answer `arena roster`, which has changed the roster in the database."""
        await self.read_roster()
        return Done("the roster was read again")

    def _hold(self, is_held: bool) -> None:
        for competition in in_turn(self.here.competitions):
            competition.hold(is_held)

    def _on_change(self) -> None:
        self._changed.set()
        self._seating.look()
        moved = self.gateway.players.take_moved()
        for competition in in_turn(self.here.competitions):
            competition.changed(moved)
        if self.people is not None:
            self.people.changed()

    def _room_changed(self) -> None:
        """Handle a change of the hosts or of their room."""
        self._seating.look()
        for competition in in_turn(self.here.competitions):
            competition.look_anew()

    def _versions_changed(self) -> None:
        """Handle another version in play, or a decision on a submission."""
        self._changed.set()
        for competition in in_turn(self.here.competitions):
            competition.look_anew()
        self._retire_versions()

    def _retire_versions(self) -> None:
        """End the processes of versions that are not in play and that no competition plays."""
        if self.submissions is not None and self._seating.pool is not None:
            needed = {row.submission for row in self.submissions.all_in_play()}
            for competition in self.here.competitions:
                needed.update(competition.plan.versions.values())
            self._seating.pool.retire_others(needed)

    def _note_for(self, bot: BotSession) -> str:
        """Return a line for the author of a bot that connects; mostly empty."""
        if bot.process is not None:
            return ""
        if bot.token is None and self.gateway.admission.has_roster:
            return "without a token it plays for nobody on the roster (--token, or ARENA_TOKEN)"
        if (idle := self._never_played(bot)) or self.submissions is None:
            return idle
        return self._replaced_by(bot, self.submissions)

    def _never_played(self, bot: BotSession) -> str:
        """Say that no competition here plays any of the bot's games; empty if one may."""
        planned = () if self.planned_games is None else self.planned_games()
        games = {*planned, *(each.plan.game for each in self.here.competitions)}
        if not games or bot.games & games:
            return ""
        mine, theirs = (", ".join(sorted(names)) for names in (bot.games, games))
        return (
            f"no competition here plays {mine}, only {theirs}: "
            "the bot waits until somebody plays with it at the page"
        )

    def _replaced_by(self, bot: BotSession, service: SubmissionService) -> str:
        """Say which versions in play of its owner a connected bot replaces; empty if none."""
        owner = owner_of(bot.name)
        games = defaultdict[str, list[str]](list)
        for game in sorted(bot.games):
            if (version := service.in_play(game).get(owner)) is not None:
                games[service.label(version)].append(game)
        if not games:
            return ""
        versions = ", ".join(f"{label} ({', '.join(names)})" for label, names in games.items())
        return f"where connected bots and submissions both play, it replaces your {versions}"

    def _on_leaving(self, name: str) -> str:
        """Tell a leaving bot how it stands on ladders; return what leaving costs it (J10)."""
        on = self.here.competitions
        costs = "; ".join(filter(None, (each.leaving_costs(name) for each in on)))
        ladders = [each for each in on if each.plan.form is Form.LADDER and each.is_in(name)]
        for ladder in ladders:
            self._tell_standings(ladder, ladder.report(), name)
        return costs or ("leaving a ladder costs nothing" if ladders else "")

    def _on_offence(self, name: str, finding: Finding) -> None:
        """Tell the competitions why a bot is gone for good, as it may have been in no match."""
        # What a submission's process does outside a match costs its owner nothing.
        if not (is_process(name) or self.here.is_non_competing(name)):
            for competition in self.here.competitions:
                competition.offended(name, finding)
        self.supervisor.offended(name, finding)
        self._changed.set()
