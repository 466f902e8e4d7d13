"""Competitions without sockets or processes, in virtual time: a bot takes a millisecond to answer.

`FakeStore` keeps what it is given, so that a competition can go on from any row of it. `FakeHost`
passes on who comes and goes, and who is free again.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import msgspec

from arena.competitions.arbiter import Arbiter
from arena.competitions.bots_here import in_turn
from arena.competitions.competition import Competition
from arena.competitions.ledger import Ledger
from arena.competitions.listener import Listener
from arena.competitions.process_pool import SeatBot
from arena.competitions.seating import Seating
from arena.formats.formats import forms_for
from arena.formats.spec import Form, Plan, plan_of
from arena.games.catalogue import GAMES
from arena.games.match import MatchResult, Result
from arena.games.names import process_name
from arena.games.verdict import FORGIVABLE, Finding
from arena.referee.bot_session import BotSession
from arena.referee.sessions import BotSessions
from arena.referee.timers import Timers
from arena.server.gateway import Gateway
from arena.storage.models import VERSION, CompetitionReport, VersionChange, seated_versions
from arena.storage.store import Act, CompetitionState, MatchRow, Store
from bots.strategy import choose
from protocol.errors import StoreFailed
from protocol.messages import Answer, Ask, Ending, Match, Ready, Verdict
from protocol.vocabulary import Range
from tests.support.fake_submissions import FakeHostPools, FakeSeatPool, FakeVersionService

if TYPE_CHECKING:
    from tests.support.fake_bots import FakeArena, FakeBot

__all__ = [
    "SHORT",
    "SOON",
    "TIMEOUT_S",
    "FakeHost",
    "FakeStore",
    "WorkingStorage",
    "a_while",
    "act",
    "at_random",
    "failing",
    "first_legal",
    "illegal",
    "in_time",
    "silent",
    "until",
]

Plays = Callable[[Ask], object]

SHORT: dict[str, dict[str, object]] = {name: dict(game.rounds(4)) for name, game in GAMES.items()}
SOON = 0.001
"""For bots that do not come: nobody waits for them."""

TIMEOUT_S = 20.0  # of virtual time; nothing here takes more than some seconds
_ANSWERS_S = 0.001


def first_legal(ask: Ask) -> object:
    legal = ask.question.choices
    return legal.min if isinstance(legal, Range) else legal[0]


def illegal(ask: Ask) -> object:
    return "all in"


def at_random(seed: int = 4) -> Plays:
    """Answers at random, so that two bots hardly ever have the same score."""
    rng = random.Random(seed)
    return lambda ask: choose(ask.question.choices, rng)


def silent(ask: Ask) -> object:
    return None


def act(what: str, who: str = "Eva", **about: Any) -> Act:
    """What an instructor did."""
    return Act(competition="c", at=0.0, who=who, what=what, text=f"{what} by {who}", **about)


async def a_while(answers: int = 100) -> None:
    """Let time pass in which a bot gives this many answers."""
    await asyncio.sleep(answers * _ANSWERS_S)


async def until(holds: Callable[[], object]) -> None:
    """Let everything happen until something holds."""
    async with asyncio.timeout(TIMEOUT_S):
        while not holds():
            await asyncio.sleep(_ANSWERS_S / 4)


async def in_time(work: Awaitable[Any]) -> Any:
    """Its result, or an error if it takes for ever."""
    async with asyncio.timeout(TIMEOUT_S):
        return await work


class FakeStore:
    """Stands in for the store: keeps what it is given."""

    def __init__(self) -> None:
        self.matches: list[tuple[tuple[str, ...], MatchResult]] = []
        self.verdicts: list[Verdict] = []
        self.rows: list[MatchRow] = []
        self.acts: list[Act] = []
        self.finished: list[Any] = []
        self.fails_at: int | None = None
        self.fails_to_act = False
        self.on_match: Callable[[], None] = lambda: None

    def match_finished(
        self,
        competition: str,
        pairing: int,
        match: str,
        players: tuple[str, ...],
        result: MatchResult,
        started_at: float,
        finished_at: float,
        verdict: Verdict | None = None,
        others: Sequence[Verdict] = (),
    ) -> MatchRow:
        if len(self.matches) == self.fails_at:
            raise StoreFailed("the disk is full")
        counts = result.termination.kind is not Ending.VOID
        again = [row.pairing for row in self.results(competition)]
        assert not (counts and pairing in again), "the database would refuse it"
        assert result.record.termination == result.termination
        self.matches.append((players, result))
        played = MatchRow(
            number=len(self.rows) + 1,
            id=match,
            competition=competition,
            pairing=pairing,
            counts=counts,
            game=result.record.game,
            players=players,
            result=Result(result.scores, result.points, result.termination, result.also_out),
            started_at=started_at,
            finished_at=finished_at,
            digest="",
            versions=seated_versions(result.record.versions or ()),
        )
        self.rows.append(played)
        if verdict is not None:
            self.verdicts += (verdict, *others)
        self.on_match()
        return played

    async def flushed(self) -> None:
        """All of it is there at once."""

    def competition_finished(
        self,
        competition: str,
        finished_at: float,
        ranking: Any = (),
        state: CompetitionState = CompetitionState.FINISHED,
        act: Act | None = None,
    ) -> None:
        self.finished.append((competition, finished_at, ranking, state))
        if act is not None:
            self.acted(act)

    def acted(self, act: Act) -> None:
        if self.fails_to_act:
            raise StoreFailed("the disk is full")
        self.acts.append(act)

    def state_changed(self, competition: str, state: CompetitionState, act: Act) -> None:
        self.acted(act)

    def taken_back(
        self, competition: str, match: str, act: Act, reopened: Act | None = None
    ) -> None:
        self.acted(act)
        assert match in [row.id for row in self.rows if row.counts]
        self.rows = [
            msgspec.structs.replace(row, counts=row.counts and row.id != match) for row in self.rows
        ]

    def played(self, match: str) -> MatchRow:
        return next(row for row in self.rows if row.id == match)

    def results(self, competition: str = "c") -> list[MatchRow]:
        """The matches that count."""
        return [row for row in self.rows if row.counts and row.competition == competition]

    def version_changes(self, competition: str = "c") -> tuple[VersionChange, ...]:
        numbers = {row.id: row.number for row in self.rows}
        return tuple(
            VersionChange(act.bot or "", act.match, numbers.get(act.match or "", 0))
            for act in self.acts
            if act.what == VERSION
        )

    def counted(self) -> Counter[tuple[str, ...]]:
        """How often which bots have met in a match that ran its course."""
        return Counter(
            tuple(sorted(players))
            for players, result in self.matches
            if result.termination.kind is Ending.COMPLETED
        )

    def void_texts(self) -> set[str]:
        results = (result.termination for _, result in self.matches)
        return {ending.text for ending in results if ending.kind is Ending.VOID}

    def kinds(self) -> Counter[Ending]:
        return Counter(result.termination.kind for _, result in self.matches)


class _RecordingListener(Listener):
    """Keeps what a competition tells, and has the others told who is free."""

    def __init__(self, host: FakeHost, call_house: Callable[[str, str], Awaitable[None]]) -> None:
        self._host = host
        self._call_house = call_house

    async def launch_house_bot(self, game: str, name: str) -> None:
        await self._call_house(game, name)

    def freed(self, names: Sequence[str]) -> None:
        asyncio.get_running_loop().call_soon(self._host.seat, names)

    def verdict_given(self, verdict: Verdict) -> None:
        self._host.told.append(verdict)

    def told(self, text: str) -> None:
        self._host.lines.append(text)

    def house_bots_elsewhere(self, own: Collection[str]) -> Collection[str]:
        return (self._host.guests | self._host.people) - set(own)

    def is_non_competing(self, name: str) -> bool:
        return name in self._host.people


class WorkingStorage:
    """A `StorageWatch` of a disk that takes everything at once, until it is told otherwise."""

    state = filling = ""

    def __init__(self) -> None:
        self.on_time = asyncio.Event()
        self.on_time.set()

    @property
    def is_late(self) -> bool:
        return not self.on_time.is_set()

    def check(self) -> None:
        """Nothing waits."""

    async def goes_on(self) -> None:
        await self.on_time.wait()

    async def guard(self, work: Any) -> Any:
        return await work


class FakeHost:
    """Bots that are connected, and the competitions that they play."""

    def __init__(self, house: FakeArena) -> None:
        self.house = house
        self.players = BotSessions()
        self.book = FakeStore()
        self.competitions: list[Competition] = []
        self.most_chairs: Counter[str] = Counter()
        self.called: list[str] = []
        self.guests: set[str] = set()
        self.people: set[str] = set()
        self.heard: list[str] = []
        self.told: list[Verdict] = []
        self.lines: list[str] = []
        self.wall_s = 0.0
        self.seating = Seating(self.players)
        self.hosts = FakeHostPools(FakeSeatPool(self._start_process), 0, ())
        self.submitted: FakeVersionService | None = None
        self.pool = FakeSeatPool(self._start_process)
        self.submitted_play: dict[str, Plays] = {}  # how they play who do not play legally
        self._processes = itertools.count(1)
        self._plays: dict[BotSession, tuple[FakeBot, Plays]] = {}
        self._tasks: list[asyncio.Task[CompetitionReport]] = []

    @property
    def competition(self) -> Competition:
        """The latest one."""
        return self.competitions[-1]

    def seat(self, names: Sequence[str]) -> None:
        self.seating.look()
        for competition in in_turn(self.competitions):
            competition.stage.seat(names)

    def changed(self) -> None:
        self.seating.look()
        names = self.players.take_moved()
        for competition in in_turn(self.competitions):
            competition.changed(names)

    def has_hosts(self, at_once: int, *portable: str) -> None:
        """From now on a host plays that many matches at once, of submissions and of these."""
        hosts, self.seating.hosts = self.hosts, cast(Any, self.hosts)
        hosts.at_once = hosts.pool.at_once = at_once
        hosts.portable.update(portable)
        hosts.pool.on_room = self.seating.look
        for competition in in_turn(self.competitions):
            competition.look_anew()

    def takes_submissions(self, at_once: int = 4, **in_play: int) -> FakeVersionService:
        """These submissions are in play, by owner, and that many of their matches at once."""
        self.seating.pool = cast(Any, self.pool)
        self.pool.on_room = self.seating.look
        self.pool.at_once = at_once
        service = FakeVersionService(**in_play)
        service.on_change.append(self._versions_changed)
        self.submitted = service
        return service

    def comes(
        self, name: str, plays: Plays = first_legal, tables: int = 1, *, is_launched: bool = False
    ) -> FakeBot:
        make = self.house.launched if is_launched else self.house.bot
        bot = make(name, tables=tables, on_dirty=self._serve_soon)
        self._plays[bot.player] = (bot, plays)
        self.players.add(bot.player)
        self._serve_soon(bot.player)
        self.changed()
        return bot

    def come(self, *names: str, plays: Plays = first_legal, tables: int = 1) -> None:
        for name in names:
            self.comes(name, plays, tables)

    def leaves(self, name: str) -> None:
        """A bot goes that plays no match; it may come back."""
        self.players.remove(self.players[name])
        self.changed()

    def plays(self, name: str, plays: Plays) -> None:
        """From now on a bot plays otherwise; also what it has been asked before."""
        bot, _ = self._plays[self.players[name]]
        self._plays_now(bot, plays)

    def all_play(self, plays: Plays) -> None:
        """From now on all processes of submissions play otherwise."""
        for player, (bot, _) in tuple(self._plays.items()):
            if player.public_name != player.name:
                self._plays_now(bot, plays)

    def offends(self, name: str, finding: Finding) -> None:
        """A bot is gone for good by an offence between matches, as the gateway would rule."""
        player = self.players[name]
        player.leaving = True
        self.house.referee.offence(player, finding)
        self.players.remove(player)
        if finding.kind in FORGIVABLE:
            finding = msgspec.structs.replace(finding, event=player.event)
        for competition in self.competitions:
            competition.offended(name, finding)
        self.changed()

    def plan(self, *names: str, game: str = "ace_king_queen", **plan: Any) -> Plan:
        rules = GAMES[game]
        settings = rules.vocabulary.read_settings({**SHORT[game], **(plan.pop("settings", {}))})
        if Form.ELIMINATION in forms_for(rules):
            house = tuple(f"house-{n}" for n in range(rules.seats - 1))
            plan = {"seed": "5" * 64, "house": house, **plan}
        return plan_of(rules, settings, names, **plan)

    def compete(
        self,
        *names: str,
        game: str = "ace_king_queen",
        competition: str = "c",
        call_house: Callable[[str, str], Awaitable[None]] | None = None,
        is_attended: bool = False,
        is_paused: bool = False,
        **plan: Any,
    ) -> Competition:
        """A competition that begins, or one that goes on with what was `earlier`."""
        state = {name: plan.pop(name, ()) for name in ("earlier", "acts", "verdicts")}
        gateway = SimpleNamespace(
            players=self.players,
            referee=self.house.referee,
            timers=Timers(asyncio.get_running_loop()),
            admission=SimpleNamespace(left_s=lambda player: 0.0),
        )
        ledger = Ledger(
            competition, self.plan(*names, game=game, **plan), cast(Store, self.book), **state
        )
        arbiter = Arbiter(
            ledger,
            cast(Gateway, gateway),
            lambda: self.wall_s,
            _RecordingListener(self, call_house or self._call_house),
            self.seating,
            is_paused=is_paused,
            is_attended=is_attended,
            submitted=cast(Any, self.submitted),
        )
        self.competitions.append(Competition(arbiter))
        return self.competition

    async def play(self, *names: str, **plan: Any) -> CompetitionReport:
        """One competition, to its end."""
        competition = self.compete(*names, **plan)
        await self._learn(competition)
        report: CompetitionReport = await in_time(competition.run())
        return report

    async def begin(
        self, *names: str, **plan: Any
    ) -> tuple[Competition, asyncio.Task[CompetitionReport]]:
        """One that has opened all that it can, and is under way."""
        competition = self.compete(*names, **plan)
        await self._learn(competition)
        task = asyncio.create_task(competition.run())
        self._tasks.append(task)
        await a_while()
        return competition, task

    async def end(self) -> None:
        """End the competitions that have begun."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.seating.close()

    async def _learn(self, competition: Competition) -> None:
        if self.submitted is not None:
            await self.submitted.learn(competition.plan.versions.values())

    def _versions_changed(self) -> None:
        for competition in self.competitions:
            competition.look_anew()

    def _start_process(self, wanted: SeatBot) -> BotSession:
        bot = self.house.launched(wanted.name, on_dirty=self._serve_soon)
        bot.player.name = process_name(wanted.name, next(self._processes))
        self._plays[bot.player] = (bot, self.submitted_play.get(wanted.name, first_legal))
        self._serve_soon(bot.player)
        return bot.player

    async def _call_house(self, game: str, name: str) -> None:
        self.called.append(name)
        self.comes(name)

    def _serve_soon(self, player: BotSession) -> None:
        asyncio.get_running_loop().call_later(_ANSWERS_S, self._serve, player)

    def _serve(self, player: BotSession) -> None:
        if player not in self._plays:
            return  # it is being made
        bot, plays = self._plays[player]
        self.most_chairs[player.name] = max(self.most_chairs[player.name], len(player.chairs))
        for message in bot.reads():
            if isinstance(message, Match):
                self.house.say(bot, Ready(message.match, "nonce"))
            elif isinstance(message, Ask):
                self.heard.append(player.name)
                value = plays(message)
                if value is not None:
                    self._answer(bot, message, value)

    def _plays_now(self, bot: FakeBot, plays: Plays) -> None:
        self._plays[bot.player] = (bot, plays)
        for chair in tuple(bot.player.chairs.values()):
            if chair.ask is not None and (value := plays(chair.ask)) is not None:
                self._answer(bot, chair.ask, value)

    def _answer(self, bot: FakeBot, ask: Ask, value: object) -> None:
        self.house.say(bot, Answer(ask.match, ask.ask, cast(Any, value)))


def failing(times: int) -> Any:
    """Ace-King-Queen whose first matches fail."""
    sound, left = GAMES["ace_king_queen"], [times]

    def rules(*arguments: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise KeyError("a fault in the rules")
        return (yield from sound.rules(*arguments))

    return msgspec.structs.replace(sound, rules=rules)
