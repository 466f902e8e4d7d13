"""The bots that are here, connected or launched: their names, and whose matches they play.

Competitions share the tables of their bots: a free bot is offered to all of them, first to those
that need it most. House bots that are here for one competition, and people at the page, play in no
other competition.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Protocol

from arena.competitions.bot_supervisor import BotSupervisor, program_of
from arena.competitions.competition import Competition
from arena.competitions.ledger import Ledger
from arena.competitions.listener import Listener
from arena.competitions.seating import Seating
from arena.formats.eta import Left
from arena.formats.schedule import Pairing
from arena.formats.spec import Form, Plan, RelaunchSpec
from arena.games.match import Result
from arena.games.names import alike, owner_of
from arena.games.verdict import Finding
from arena.sandbox.scarcity import NO_PROGRAM, Scarcity
from arena.server.background import BackgroundTasks
from arena.server.entrance import EntrancePage
from arena.server.gateway import Gateway
from protocol.errors import ArenaError
from protocol.messages import Verdict
from protocol.strategy import house_bots

__all__ = ["BotsHere", "HostPage", "PeoplePlaying", "in_turn"]

_ORDER = {Form.ELIMINATION: 0, Form.LADDER: 2}


def in_turn(competitions: Iterable[Competition]) -> list[Competition]:
    """Return the order in which competitions are offered a free bot.

    Eliminations come first, as a stage waits for all its matches. Ladders come last, as they have
    no end. Among the others, those with few tables for their remaining decisions come first, so
    that all advance at their own pace.
    """

    def turn(competition: Competition) -> tuple[int, float]:
        tables = competition.arbiter.playing / max(1.0, competition.rest)
        return _ORDER.get(competition.plan.form, 1), tables

    return sorted(competitions, key=turn)


class PeoplePlaying(Protocol):
    """The people who play at the page, and the house bots that play with them."""

    @property
    def non_competing(self) -> Collection[str]:
        """Their names, which do not take part in competitions."""

    def is_non_competing(self, name: str) -> bool:
        """Return whether this is one of the `non_competing` names."""

    def record(self, match: str) -> object | None:
        """Return a recent match that was played at the page, else None."""

    def changed(self) -> None:
        """Called when a bot or a person has come or gone."""

    def competition_started(self, competition: Competition) -> None:
        """Called when a competition begins; its bots stop playing with people."""


class HostPage(EntrancePage, Protocol):
    """The page for browsers, as the host drives it."""

    @property
    def people(self) -> PeoplePlaying:
        """The people who play at the page."""

    def match_finished(self, ledger: Ledger, match: str, pairing: Pairing, result: Result) -> None:
        """Called when a match has ended and is recorded."""

    async def close(self) -> None:
        """Stop the page's tasks and processes."""


class BotsHere(Listener):
    """All bots of an arena; the listener of all its competitions.

    Attributes:
        competitions: those that are running.
        page: None if there is none.
    """

    def __init__(
        self, gateway: Gateway, supervisor: BotSupervisor, seating: Seating, listener: Listener
    ) -> None:
        self.competitions: list[Competition] = []
        self.page: HostPage | None = None
        self._gateway = gateway
        self._players = gateway.players
        self._supervisor = supervisor
        self._seating = seating
        self._listener = listener
        self._freed: dict[str, None] = {}  # bots to offer in the next turn of the loop
        self._forgiven: set[str] = set()  # launched bots that are being started again
        self._scarcity = Scarcity(NO_PROGRAM)
        self._tasks = BackgroundTasks()

    def close(self) -> None:
        """Start no more bots."""
        self._tasks.cancel()

    # --- the players of a game ---

    def names(self, game: str) -> tuple[str, ...]:
        """Return the connected bots that play a game, may compete and stay, in order of arrival."""
        others = self.temporary_house_bots
        here = (bot for bot in self._players.of_game(game) if bot.takes_matches)
        return tuple(bot.name for bot in here if bot.name not in others)

    def count(self, game: str) -> int:
        """Return how many `names` there are, in a time that does not grow with their number."""
        others = (self._players.get(name) for name in self.temporary_house_bots)
        return self._players.count(game) - sum(
            bot is not None and bot.takes_matches and game in bot.games for bot in others
        )

    def saw(self, game: str, names: Collection[str]) -> None:
        """Note that these bots take part in a competition of a game."""
        self._players.see(game, names)

    def has_new(self, game: str) -> bool:
        """Return whether some of the `names` were not in the last call of `saw`."""
        return not self.temporary_house_bots.issuperset(self._players.unseen(game))

    def is_awaiting(self, game: str) -> bool:
        """Return whether a bot that plays a game has lost its connection and may come back."""
        bots = self._players.of_game(game)
        return any(bot.connection is None and not bot.leaving for bot in bots)

    @property
    def non_competing(self) -> Collection[str]:
        """The names that never compete: people, and the house bots that play with them."""
        return () if self.page is None else self.page.people.non_competing

    def is_non_competing(self, name: str) -> bool:
        return self.page is not None and self.page.people.is_non_competing(name)

    @property
    def temporary_house_bots(self) -> set[str]:
        """The names of people, and of house bots here for one competition or for people."""
        return self.house_bots_elsewhere(())

    def house_bots_elsewhere(self, own: Collection[str]) -> set[str]:
        return self._needed_house_bots().difference(own).union(self.non_competing)

    def _needed_house_bots(self) -> set[str]:
        bots = (running.arbiter.bots.temporary_house_bots for running in self.competitions)
        return set().union(*bots)

    # --- names ---

    @property
    def taken(self) -> set[str]:
        """The names of all bots that are here, starting or taking part, and of people."""
        return {*self._players, *self._others()}

    def is_taken(self, name: str) -> bool:
        """Return whether one of the `taken` names looks like this one."""
        return self._players.like(name) is not None or alike(name) in map(alike, self._others())

    def _others(self) -> tuple[str, ...]:
        """Return the taken names other than those of connected bots."""
        playing = (
            name
            for running in self.competitions
            for name in (*running.plan.players, *running.submitted)
        )
        return (*self._supervisor, *playing, *self.non_competing)

    def keep_spellings(self, names: Iterable[str]) -> None:
        """Keep the spelling of names that have played, as long as this arena runs."""
        for name in names:
            self._players.spellings.add(name)

    def spelled(self, name: str) -> str:
        """Return the spelling of the bot whose name looks like this one."""
        return self._players.spellings.of(name)

    def use_of(self, name: str) -> str | None:
        """Say what the bots of the owner `name` do here now; None if none is here."""
        key = alike(name)
        for player in self._players.values():
            if alike(owner_of(player.name)) == key:
                if player.connection is None:
                    return f"{player.name} has lost its connection and may come back"
                return f"{player.name} is connected"
        for competition in self.competitions:
            for bot in (*competition.plan.players, *competition.submitted):
                is_out = bot in competition.ledger.book.removed
                if alike(owner_of(bot)) == key and not is_out:
                    return f"{bot} takes part in {competition.id}, which is not over"
        for other in (*self._supervisor, *self.non_competing):
            if alike(owner_of(other)) == key:
                return f"{other} is here"
        return None

    def keep_names(self, plan: Plan) -> None:
        """Reserve the names of bots that will be launched."""
        for name in (*(bot.name for bot in plan.bots), *plan.house):
            if name not in self._supervisor:
                self._gateway.admission.expect(name, secrets.token_urlsafe(16))

    # --- the launched bots of competitions ---

    async def start(self, competition: Competition) -> None:
        """Start the bots of a competition that are neither running nor out.

        Tell the instructor if one cannot be started.
        """
        for bot in competition.plan.bots:
            await self._start(competition, bot)

    async def launch_house_bot(self, game: str, name: str) -> None:
        bot = next(iter(house_bots(game)), None)
        if bot is None:
            raise ArenaError(
                f"a free chair needs a house bot for {game}, none is installed; `arena doctor` may "
                "say why"
            )
        await self._supervisor.launch_house_bot(game, name, bot)

    def dismiss(self, competition: Competition) -> None:
        """Stop the house bots that only this competition, which is over, needed."""
        needed = self._needed_house_bots()
        for name in competition.arbiter.bots.temporary_house_bots:
            if name not in self._supervisor:
                self._gateway.admission.forget(name)
            elif name not in needed:
                self._supervisor.dismiss(name)

    def _ruled(self, verdict: Verdict) -> None:
        """Stop a bot that is out of its last competition, or restart one that is forgiven.

        After an offence on a host, its process here is left alone.
        """
        name = verdict.bot
        player = self._players.get(name)
        is_well = player is not None and not player.has_offended
        plays_on = [competition for competition in self.competitions if competition.is_in(name)]
        if name in self._supervisor and not plays_on:
            finding = Finding(kind=verdict.kind, text=verdict.text, mechanism=verdict.mechanism)
            asyncio.get_running_loop().call_soon(self._supervisor.stop, name, finding)
        elif verdict.forgiven and name not in self._forgiven and not is_well:
            for competition in plays_on:
                for bot in competition.plan.bots:
                    if bot.name == name:
                        self._start_again(competition, bot)
                        return

    async def _start(self, competition: Competition, bot: RelaunchSpec) -> None:
        if bot.name in self._supervisor or not competition.is_in(bot.name):
            return
        try:
            if bot.house is not None:
                competition.arbiter.bots.guests.add(bot.name)
                words = competition.plan.game, bot.house
                launch = partial(self._supervisor.launch, words, bot.name, tables=bot.tables)
            else:
                launch = partial(self._supervisor.launch_program, program_of(bot), bot.name)
            await self._scarcity.outlast(launch)
        except ArenaError as error:
            self.told(f"{bot.name}: {error}")

    def _start_again(self, competition: Competition, bot: RelaunchSpec) -> None:
        """Start a forgiven bot again; one that hangs is first stopped, after its last match."""
        name = bot.name
        self._forgiven.add(name)
        if name not in self._supervisor:  # reserve its name meanwhile
            self._gateway.admission.expect(name, secrets.token_urlsafe(16))
        elif (player := self._players.get(name)) is not None:
            player.leaving = True  # it gets no new matches
            self.freed((name,))

        async def again() -> None:
            await self._supervisor.gone(name)
            self._forgiven.discard(name)
            if not competition.is_over:
                await self._start(competition, bot)
            if name not in self._supervisor:
                self._gateway.admission.forget(name)

        self._tasks.start(again())

    # --- shared tables ---

    def freed(self, names: Sequence[str]) -> None:
        """Offer these bots to all competitions, once their own has counted the match."""
        if not self._freed:
            asyncio.get_running_loop().call_soon(self._seat)
        self._freed.update(dict.fromkeys(names))

    def share(self, competition: str, name: str) -> float:
        """Return the part of a bot's tables that a competition may use while one is spreading.

        It is the competition's part of the remaining decisions, so that all competitions keep the
        pace at which they began. Afterwards `in_turn` is enough. An elimination may use all tables.
        """
        on = self.competitions
        if len(on) < 2:
            return 1.0
        wanting = [each for each in on if each.id == competition or each.stage.wants(name)]
        own = next((each for each in wanting if each.id == competition), None)
        if own is None or own.plan.form is Form.ELIMINATION:
            return 1.0
        if not any(each.is_spreading for each in wanting):
            return 1.0
        return own.rest / max(1.0, sum(each.rest for each in wanting))

    def beside(self, competition: str) -> Collection[Left]:
        own = next((each for each in self.competitions if each.id == competition), None)
        names = frozenset(() if own is None else own.plan.players)
        others = (each for each in self.competitions if not names.isdisjoint(each.plan.players))
        return [left for each in others if each is not own and (left := each.left) is not None]

    def _seat(self) -> None:
        names, self._freed = tuple(self._freed), {}
        # A forgiven bot that hangs is stopped when its last match has ended.
        for name in self._forgiven.intersection(names):
            player = self._players.get(name)
            if player is not None and not player.chairs:
                self._supervisor.dismiss(name)
        self._seating.look()
        for competition in in_turn(self.competitions):
            competition.stage.seat(names)

    # --- as the competitions' listener ---

    def verdict_given(self, verdict: Verdict) -> None:
        """Report that a bot is out, and stop its process."""
        # An offence in a match with a person has no consequences.
        if self.page is not None and self.page.people.record(verdict.match) is not None:
            return
        self._listener.verdict_given(verdict)
        self._ruled(verdict)

    def match_finished(self, ledger: Ledger, match: str, pairing: Pairing, result: Result) -> None:
        if self.page is not None:
            self.page.match_finished(ledger, match, pairing, result)
        self._listener.match_finished(ledger, match, pairing, result)

    def told(self, text: str) -> None:
        self._listener.told(text)
