"""What the scheduler plays and when: the evenings in `scheduler.cases`, in virtual time.

A case (`tests/support/cases.py`) says what is there when the arena starts, then what happens at
a time; a line without one is of the same moment. The arena starts on Monday 23 November at 17:00, or
`from` another time, and is stopped a minute after the last line. `>` is what the scheduler says and
plays until the next line, all of it, with its time.
With UPDATE_CASES in the environment it writes that anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from arena.competitions import scheduler
from arena.competitions.attendance import Upcoming
from arena.competitions.config import Config
from arena.competitions.live_arena import LiveArena
from arena.competitions.planned_run import PlannedRun, teams_of
from arena.competitions.scheduler import OpenGame, Scheduler
from arena.formats.spec import Form, Plan, Take, plan_of
from arena.formats.timetable import Times, parse
from arena.games.catalogue import game_named
from arena.storage.store import CompetitionRow, CompetitionState, Store
from protocol.errors import ArenaError, StoreFailed, UsageError
from protocol.messages import Ending, Limits, Termination
from tests.support.cases import CaseFile
from tests.support.fake_host import WorkingStorage
from tests.support.virtual_time import all_done, run_in_virtual_time

MONDAY = datetime(2026, 11, 23, 17, 0, tzinfo=UTC)
SIX = MONDAY.replace(hour=18)
CLASS = ("ann", "ben", "cem", "dan")
FILE = Path(__file__).with_name("scheduler.cases")
TIME = re.compile(r"(?:(\d\d)/)?(\d\d):(\d\d)(?::(\d\d))?$")


def moment_of(text: str) -> datetime:
    """`18:00`, on Monday, or `24/18:00:05`."""
    found = TIME.match(text)
    assert found is not None, text
    day, hour, minute, second = found.groups()
    return MONDAY.replace(
        day=int(day or 23), hour=int(hour), minute=int(minute), second=int(second or 0)
    )


def shown(moment: datetime) -> str:
    day = "" if moment.day == MONDAY.day else f"{moment:%d}/"
    return f"{day}{moment:%H:%M:%S}".removesuffix(":00")


def fields(words: Iterable[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words)


class FakeCompetition:
    """Stands in for a competition: it is over when a case says so."""

    def __init__(self, host: EveningHost, name: str, plan: Plan, is_paused: bool = False) -> None:
        self._host = host
        self.id = name
        self.plan = plan
        self.title = plan.run or plan.game
        self.arbiter = SimpleNamespace(is_paused=is_paused)
        self.is_over = False
        self.unplayed = ""  # it was never over
        self.ledger = SimpleNamespace(played=3)
        self.progress = SimpleNamespace(scheduled=0 if plan.form is Form.LADDER else 1_200)
        self.ends: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def end(self, error: Exception | None = None) -> None:
        self.is_over = True
        if error is None:
            self.ends.set_result(f"report of {self.id}")
        else:
            self.ends.set_exception(error)

    def close(self) -> None:
        self._host.says(f"{self.id} is closed")
        if not self.ends.done():
            self.end()


class EveningHost:
    """Stands in for the host and its store, and says what is played."""

    def __init__(self, says: Any) -> None:
        self.says = says
        self.storage = WorkingStorage()
        self.bots: dict[str, object] = {}  # who is connected, and its session
        self.started: dict[str, FakeCompetition] = {}
        self.playing: list[FakeCompetition] = []
        self.written: list[CompetitionRow] = []
        self.seen: set[object] = set()  # who took part in the last
        self.endings = [Ending.COMPLETED]  # of matches that were played before
        self.awaits_somebody = False
        self.goes_on = False
        self.is_stopped = False
        self.refuses = ""
        self.versions: dict[str, int] = {}  # the submissions that are in play
        self.undecided: dict[str, datetime] = {}  # when submissions arrived that are not decided
        self.decision_s: float | None = None
        self._changed = asyncio.Event()

    def changes(self) -> None:
        self._changed.set()

    # --- as a host ---

    @property
    def here(self) -> EveningHost:
        return self

    @property
    def taken(self) -> set[str]:
        """Names that are somebody's."""
        return {*self.bots, *(name for cup in self.playing for name in cup.plan.players)}

    def names(self, game: str) -> tuple[str, ...]:
        fillers = {bot.name for cup in self.playing for bot in cup.plan.bots}
        return tuple(name for name in self.bots if name not in fillers)

    def count(self, game: str) -> int:
        return len(self.names(game))

    def saw(self, game: str, names: Collection[str]) -> None:
        self.seen = {self.bots[name] for name in names}

    def has_new(self, game: str) -> bool:
        return any(self.bots[name] not in self.seen for name in self.names(game))

    def will_go_on(self) -> None:
        self.goes_on = True

    def is_awaiting(self, game: str) -> bool:
        return self.awaits_somebody

    def versions_in_play(self, game: str) -> dict[str, int]:
        return self.versions

    submissions_closed = ""

    def undecided_before(self, at: float) -> tuple[str, ...]:
        return tuple(who for who, when in self.undecided.items() if when.timestamp() < at)

    async def wait_for_change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def unfinished(self) -> tuple[CompetitionRow, ...]:
        return tuple(row for row in self.written if row.finished_at is None)

    def resume(self, row: CompetitionRow) -> FakeCompetition:
        return self._started(row.id, row.plan, row.state is CompetitionState.PAUSED)

    def compete(self, plan: Plan) -> FakeCompetition:
        if self.refuses:
            raise UsageError(self.refuses)
        assert plan.limits.bank_ms == 1, "those of the file"
        cup = self._started(f"c{len(self.started)}", plan)
        self.writes(cup.id, cup.plan)
        return cup

    def _started(self, name: str, plan: Plan, is_paused: bool = False) -> FakeCompetition:
        self.started[name] = FakeCompetition(self, name, plan, is_paused)
        return self.started[name]

    async def play(self, cup: FakeCompetition) -> str:
        self.playing.append(cup)
        self.says(f"{cup.id} plays{described(cup.plan)}")
        try:
            report = await cup.ends
            self.writes(cup.id, cup.plan, CompetitionState.FINISHED)
            return report
        except asyncio.CancelledError:
            if not self.is_stopped:
                self.says(f"{cup.id} is halted")
            raise
        finally:
            self.playing.remove(cup)

    # --- as a store ---

    def writes(
        self, name: str, plan: Plan, state: CompetitionState = CompetitionState.RUNNING
    ) -> None:
        is_over = state in (CompetitionState.FINISHED, CompetitionState.STOPPED)
        row = CompetitionRow(
            id=name,
            plan=plan,
            state=state,
            revision=0,
            started_at=MONDAY.timestamp(),
            finished_at=1.0 if is_over else None,
            ranking=(),
        )
        self.written = [*(row for row in self.written if row.id != name), row]

    def competitions(self) -> tuple[CompetitionRow, ...]:
        return tuple(self.written)

    def results(self, competition: str) -> Sequence[Any]:
        return [
            SimpleNamespace(result=SimpleNamespace(termination=Termination(kind)))
            for kind in self.endings
        ]


def described(plan: Plan) -> str:
    """What is played, by whom, and all that is not usual."""
    due = "" if plan.due_at is None else shown(datetime.fromtimestamp(plan.due_at, UTC))
    changed = {
        name: value
        for name, value in plan.settings.items()
        if plan_for(plan.game).settings[name] != value and name != "goal"
    }
    parts = {
        "by": " ".join(plan.players),
        "form": "" if plan.form is Form.ROUND_ROBIN else plan.form.value,
        "due": due,
        "not there": " ".join(plan.not_there),
        "take": "" if plan.take is Take.CONNECTED else plan.take.value,
        "versions": pairs(plan.versions),
        "teams": pairs(plan.teams),
        "house": " ".join(f"{bot.name}={bot.house}:{bot.tables}" for bot in plan.bots),
        "matches": "" if plan.matches == 1 else f"{plan.matches}",
        "settings": pairs(changed),
        "with itself": "yes" if plan.with_itself and not plan.run else "",
        "rests": f"{plan.pause_s:g}" if plan.form is Form.LADDER else "",
    }
    told = (f"{name} {part}" for name, part in parts.items() if part)
    return "; ".join([f" {plan.run or plan.game}", *told])


def pairs(of: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in of.items())


class Evening:
    """An arena's scheduler, its host and its clock, and all that happens by the lines of a case."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._start = MONDAY
        self._started_at = asyncio.get_running_loop().time()
        self.out: list[str] = []
        self.host = EveningHost(self.says)
        self.roster: Sequence[str] = CLASS
        self.teams: dict[str, str] = {}
        self._runs: list[PlannedRun] = []
        self._games: list[OpenGame] = []
        self._once = False
        self._task: asyncio.Task[None] | None = None
        monkeypatch.setattr(scheduler, "local_now", self.now)
        # The roster is read at once, so that all has one order.
        monkeypatch.setattr(asyncio, "to_thread", at_once)

    def now(self) -> datetime:
        passed_s = asyncio.get_running_loop().time() - self._started_at
        return self._start + timedelta(seconds=round(passed_s, 3))

    def says(self, text: str) -> None:
        """Note a line; one that comes again and again is there twice."""
        line, before = (
            f"> {shown(self.now())} {text}",
            [each.split(" ", 2)[2:] for each in self.out[-2:]],
        )
        if before == [[text], [text]]:
            self.out.pop()
        self.out.append(line)

    async def plays(self, lines: Sequence[str]) -> list[str]:
        """Do what the lines say; they come back, and what is said after each."""
        for line in lines:
            self.out.append(line)
            for act in line.split(" · "):
                words = act.split()
                if TIME.match(words[0]):
                    if self._task is None:
                        self._begins()
                    left = moment_of(words.pop(0)) - self.now()
                    await asyncio.sleep(left.total_seconds())
                if words:
                    await self._does(words)
                    await all_done()
        await asyncio.sleep(60)
        await self._ends()
        return joined(self.out)

    def _begins(self) -> None:
        self.scheduler = Scheduler(
            cast(LiveArena, self.host),
            cast(Store, self.host),
            Config(limits=Limits(bank_ms=1, tables=8)),
            on_start=lambda competition: None,
            on_report=lambda report: self.says(str(report)),
            tell=self.says,
            roster=lambda: (self.roster, self.teams),
            once=self._once,
        )
        self._task = asyncio.create_task(self._runs_on())

    async def _runs_on(self) -> None:
        try:
            await self.scheduler.run(self._runs, self._games)
            self.says("all is over")
        except StoreFailed as error:
            self.says(f"ends: {error}")

    async def _ends(self) -> None:
        assert self._task is not None, "a case has a time"
        self.host.is_stopped = True
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        if self.scheduler.has_failed:
            self.says("something has failed")
        if self.host.goes_on:
            self.says("its bots are to come back")

    async def _does(self, words: list[str]) -> None:
        host, rest = self.host, words[1:]
        match words:
            case ["from", time]:
                self._start += moment_of(time) - self.now()
            case ["run", name, *more]:
                self._runs.append(a_run(name, **fields(more)))
            case ["game", name, least]:
                self._games.append(OpenGame(plan_for(name), int(least)))
            case ["once"]:
                self._once = True
            case ["disk", "late"]:
                host.storage.on_time.clear()
            case ["disk", "back"]:
                host.storage.on_time.set()
            case ["roster", *names]:
                self.roster = names
            case ["team", team, *names]:
                self.teams |= dict.fromkeys(names, team)
            case ["has", name, *more]:
                about = fields(more)
                state = CompetitionState(about.pop("state", "running"))
                changes: dict[str, Any] = {"run": about.pop("run", "cup")}
                if "due" in about:
                    changes["due_at"] = moment_of(about["due"]).timestamp()
                if "form" in about:
                    changes["form"] = Form(about["form"])
                plan = msgspec.structs.replace(plan_for("akq"), **changes)
                host.writes(name, plan, state)
            case ["endings", *kinds]:
                host.endings = [Ending(kind) for kind in kinds]
            case ["submitted", *versions]:
                host.versions = {name: int(n) for name, n in fields(versions).items()}
            case ["undecided", *times]:
                host.undecided = {who: moment_of(time) for who, time in fields(times).items()}
                host.changes()
            case ["each", "takes", seconds]:
                host.decision_s = float(seconds)
            case ["refuses", *_]:
                host.refuses = " ".join(rest)
            case ["awaits", who]:
                host.awaits_somebody = who == "somebody"
            case ["end", name]:
                host.started[name].end()
            case ["fail", name, *why]:
                host.started[name].end(ArenaError(" ".join(why)))
            case ["disk", "fails", name]:
                host.started[name].end(StoreFailed("the disk is full"))
            case ["opens", name]:
                host.started[name] = FakeCompetition(host, name, plan_for("akq"))
                self.scheduler.play(cast(Any, host.started[name]))
            case ["start", name, *more]:
                await self._starts(name, fields(more))
            case ["upcoming"]:
                for run in self.scheduler.upcoming:
                    usual = Upcoming(run.run, run.game, run.form, None)
                    of = msgspec.structs.asdict(run).items()
                    about = {k: v for k, v in of if v != getattr(usual, k)}
                    self.says(f"upcoming: {run.run} {run.game} {run.form}; {pairs(about)}")
            case ["planned"]:
                self.says(f"planned: {', '.join(sorted(self.scheduler.planned_games))}")
            case ["waiting"]:
                for line in self.scheduler.waiting:
                    self.says(f"waiting: {line}")
            case ["awaiting", *names]:
                self.says(str([self.scheduler.awaiting(name) for name in names]))
            case ["clock", time]:
                self._start += moment_of(time) - self.now()
            case ["restart"]:
                await self._ends()
                self.host = EveningHost(self.says)
                self.host.written = host.written
                self._begins()
            case [*names, "come" | "comes"]:
                host.bots |= {name: object() for name in names}
                host.changes()
            case [*names, "goes"]:
                for name in names:
                    del host.bots[name]
                host.changes()
            case _:
                raise AssertionError(f"unknown words: {' '.join(words)}")

    async def _starts(self, name: str, about: dict[str, Any]) -> None:
        if "matches" in about:
            about["matches"] = int(about["matches"])
        if "settings" in about:
            setting, _, value = about["settings"].partition(":")
            about["settings"] = {setting: int(value)}
        try:
            await self.scheduler.start(name, **about)
        except UsageError as error:
            self.says(f"refused: {error}")


def joined(lines: Iterable[str]) -> list[str]:
    """What is said at one moment stands in one line, if it fits."""
    out: list[str] = []
    for line in lines:
        words = line.split(" ", 2)
        is_same = line[0] == ">" and out[-1].startswith(f"> {words[1]} ")
        if is_same and len(out[-1]) + 3 + len(words[2]) <= 100:
            out[-1] += f" · {words[2]}"
        else:
            out.append(line)
    return out


async def at_once(read: Any) -> Any:
    return read()


def plan_for(name: str) -> Plan:
    game = game_named(name)
    limits = Limits(bank_ms=1)
    return plan_of(game, game.vocabulary.read_settings({}), (), limits=limits)


def a_run(name: str, **fields: Any) -> PlannedRun:
    at: Times | None = None
    if "at" in fields:
        text = fields.pop("at").replace("_", " ")
        once = {"once": SIX, "last year": SIX.replace(year=SIX.year - 1)}
        at = Times(once=(once[text],), zone=UTC) if text in once else parse(text.split(","), UTC)
    who, named = fields.pop("who", "connected"), fields.pop("players", "")
    return PlannedRun(
        name=name,
        game=game_named(fields.pop("game", "akq")).name,
        form=Form(fields.pop("form", "round_robin")),
        least=int(least) if (least := fields.pop("least", None)) else None,
        at=at,
        until=parse(until, UTC) if (until := fields.pop("until", None)) else None,
        players={"connected": None, "roster": "roster", "named": tuple(named.split(","))}[who],
        take=Take(fields.pop("take", "connected")),
        house=tuple(house.split(",")) if (house := fields.pop("house", "")) else (),
        **fields,
    )


# --- the cases ---


def played(lines: Sequence[str]) -> list[str]:
    with pytest.MonkeyPatch.context() as monkeypatch:

        async def play() -> list[str]:
            return await Evening(monkeypatch).plays(lines)

        return run_in_virtual_time(play(), limit_s=30 * 86_400.0)


CASES = CaseFile(FILE)


@pytest.mark.parametrize("title", CASES.titles)
def test_an_evening_goes(title: str) -> None:
    CASES.check_whole(title, played)


def test_K2_two_programs_of_one_owner_are_a_team() -> None:
    players = ("ann/one", "ann/two", "ben/one", "cem")

    assert teams_of(players, {"cem": "red"}) == {"ann/one": "ann/", "ann/two": "ann/", "cem": "red"}
