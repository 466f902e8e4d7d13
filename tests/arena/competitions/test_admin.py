"""What an instructor says to an arena, what is answered, and what it brings about: `admin.cases`.

The arena is a whole one with its database, in virtual time, and its scheduler plays. Acts of a line
follow one another at once, but for `wait` (seconds) and `end`. `>` is what was answered, and what has
happened since the line before: acts in the database, matches that ended, reports, the state of what
is on. Competitions are called as their runs, matches as their players. `standings` has how many
matches of each bot count, once `arena verify` has found nothing.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from arena.competitions import live_arena
from arena.competitions.admin import AdminCommands
from arena.competitions.competition import Competition
from arena.competitions.config import Config
from arena.competitions.planned_run import PlannedRun
from arena.competitions.scheduler import Scheduler
from arena.formats.spec import Form
from arena.formats.timetable import parse
from arena.games.names import owner_of
from arena.referee.referee import FAULT
from arena.results.audit_database import examine
from arena.storage.live_results import LiveResults
from arena.storage.models import CompetitionReport
from arena.storage.roster import Roster
from arena.storage.store import MatchRow
from protocol.errors import ArenaError, UsageError
from protocol.instructions import HostView, LostBot, Unplayed
from protocol.messages import VERSION, Action, Done, Instruct
from tests.support.arena_in_memory import in_host, plan_for
from tests.support.cases import CaseFile, wrapped
from tests.support.gateway_bots import RawBot
from tests.support.host_views import host_view
from tests.support.virtual_time import memory_folder, run_in_virtual_time

CASES = CaseFile(Path(__file__).with_name("admin.cases"))
ACTIONS = {*map(str, Action)}
GAME_OF = {"elimination": "high_low", "league": "blackjack"}
FIELDS: dict[str, Callable[[str], Any]] = {
    "form": str,
    "matches": int,
    "settings": json.loads,
    "since": float,
    "until": float,
    "unplayed": Unplayed,
    "from_running": json.loads,
}
MAIN = {"void": "match", "remove": "bot", "rename": "bot", "unlist": "bot", "import": "text"}


class OneHost:
    """A directory of hosts with `h1` alone."""

    def __init__(self) -> None:
        self.is_draining = False

    def views(self) -> tuple[HostView, ...]:
        return (host_view("h1", state="draining" if self.is_draining else "idle"),)

    def lost_bots(self) -> tuple[LostBot, ...]:
        return (LostBot("ann", 3, 4, 0.5),)

    async def drain(self, host: str, is_draining: bool) -> None:
        if host != "h1":
            raise UsageError(f"expected a host (h1), got {host!r}")
        self.is_draining = is_draining


class AdminCase:
    """An arena with its scheduler and its instructor, Eva; `restart` makes another on its database."""

    def __init__(self, patch: pytest.MonkeyPatch, folder: Path) -> None:
        self._folder = folder
        self._said: list[str] = []
        self._runs: list[PlannedRun] = []
        self._seen = [0, 0]
        self._shown: dict[str, str] = {}
        self._bots: dict[str, AsyncExitStack] = {}
        self._sitting: dict[str, RawBot] = {}
        self._tokens: dict[str, str | None] = {}
        self._stack = AsyncExitStack()
        self._ids = iter(range(1, 100))
        self._patch = patch
        patch.setattr(live_arena, "new_id", lambda game: f"c-{next(self._ids)}")
        drawn = SimpleNamespace(token_hex=lambda n: "51" * n, token_urlsafe=secrets.token_urlsafe)
        patch.setattr(live_arena, "secrets", drawn)  # each table is drawn as in another run

    async def plays(self, lines: Sequence[str]) -> list[str]:
        out: list[str] = []
        await self._opens()
        for line in lines:
            out.append(line)
            if line.startswith("#"):
                continue
            for words in map(str.split, line.split(" · ")):
                try:
                    await self._does(words)
                except ArenaError as error:
                    self._said.append(f"refused: {error}")
            await asyncio.sleep(1)
            await self._arena.store.flushed()
            out += wrapped(" · ".join(map(self._named, self._news())))
        await self._stack.aclose()
        return out

    async def _opens(self) -> None:
        self._arena = arena = await self._stack.enter_async_context(
            in_host(self._folder, is_attended=True)
        )
        restore = arena.host.restore

        def restored(competition: Competition) -> None:
            self._said.append(f"the bots of {competition.id} are started again")
            restore(competition)

        self._patch.setattr(arena.host, "restore", restored)
        roster = Roster(arena.store.engine)
        self._scheduler = Scheduler(
            arena.host,
            arena.store,
            Config(),
            on_start=lambda competition: None,
            on_report=self._reports,
            tell=lambda line: None,
            roster=lambda: ([member.name for member in roster.members()], {}),
        )
        self._admin = AdminCommands(
            arena.host,
            arena.store,
            starter=self._scheduler,
            roster=roster,
            lines=lambda: ["one", "two"],
        )
        arena.beside(self._scheduler.run(self._runs, ()))
        await asyncio.sleep(0.01)

    def _reports(self, report: CompetitionReport) -> None:
        out = [f"{each.bot} out by {each.kind.value}" for each in report.verdicts]
        self._said.append(f"{report.competition} is {report.state.value}{', '.join(['', *out])}")

    # --- what there is to see ---

    def _news(self) -> Iterator[str]:
        yield from self._said
        self._said.clear()
        rows = self._rows
        ended = Counter(map(_ended, rows[self._seen[0] :]))
        if ended:
            yield f"ended {', '.join(f'{what} {n}' if n > 1 else what for what, n in sorted(ended.items()))}"
        acts = self._arena.store.actions()
        for act in sorted(acts[self._seen[1] :], key=lambda act: act.what):
            of = "" if act.competition is None else f" {act.competition}"
            who = "" if act.who == "Eva" else f", by {act.who}"
            yield f"act {act.what}{of}{f' {act.bot}' if act.bot else ''}: {act.text}{who}"
        self._seen = [len(rows), len(acts)]
        shown = {}
        for on in self._arena.host.competitions:
            waits = (
                f", waits for {' '.join(sorted(on.progress.waits_for))}"
                if on.progress.waits_for
                else ""
            )
            shown[on.id] = f"{on.state.value}{waits}"
            if self._shown.get(on.id) != shown[on.id]:
                yield f"{on.id} is {shown[on.id]}"
        self._shown = shown

    @property
    def _rows(self) -> list[MatchRow]:
        store = self._arena.store
        found = [row for each in store.competitions() for row in store.matches(each.id)]
        return sorted(found, key=lambda row: row.number)

    def _named(self, text: str) -> str:
        for row in self._rows:
            text = text.replace(row.id, ":".join(sorted(row.players)))
        for table in self._arena.gateway.referee.tables:
            text = text.replace(table.id, ":".join(sorted(table.names)))
        for row_ in self._arena.store.competitions():
            text = text.replace(row_.id, row_.plan.run or row_.id)
        text = text.replace(str(self._folder), "HERE")
        if not text.startswith("refused"):  # which has all of it
            text = re.sub(r": `arena stop .*` it stays void", " …", text)
        return text.partition("; ahead was")[0]

    # --- what is done ---

    async def _does(self, words: list[str]) -> None:
        arena = self._arena
        match words:
            case ["wait", seconds]:
                await asyncio.sleep(float(seconds))
            case ["restart"]:
                await self._stack.aclose()
                await self._opens()
            case ["play", run, form, *more]:
                self._plays(run, form, more)
            case ["run", name, *players]:
                at = parse("Mon 18:00")
                about: dict[str, Any] = {"game": "ace_king_queen", "form": Form.ROUND_ROBIN}
                self._runs.append(PlannedRun(name=name, at=at, players=tuple(players), **about))
            case ["close"]:
                arena.host.competitions[-1].close()
            case ["fault", pair]:
                arena.gateway.referee.void(self._table(pair), FAULT)
            case ["hosts", "come"]:
                arena.host.host_directory = OneHost()  # type: ignore[assignment]
            case ["at", "its", "end", *what]:
                self._does_at_the_end(what)
            case ["standings"]:
                self._said += await self._standings()
            case [action, *more] if action in ACTIONS:
                await self._says(Action(action), more)
            case [names, ("come" | "comes" | "sit" | "sits") as how, *tables]:
                for name in names.split(","):
                    bot = await self._connects(name, int([*tables, "1"][0]))
                    if how.startswith("come"):
                        arena.beside(bot.plays_on())
            case [name, "goes"]:
                await self._bots[name].aclose()
            case [name, "is", "asked"]:
                await self._sitting[name].ready()
                await self._sitting[name].hears("ask")
            case [name, "vanishes"]:
                await self._sitting[name].vanish()
            case [name, "says", "goodbye"]:
                await self._sitting[name].say(type="goodbye")
            case _:
                raise AssertionError(f"unknown words: {' '.join(words)}")

    def _does_at_the_end(self, what: list[str]) -> None:
        """Once a competition is finished in the database, and before anybody knows that."""
        store = self._arena.store
        write = store.competition_finished

        def finished(*about: Any) -> None:
            write(*about)
            store.flush()
            self._patch.setattr(store, "competition_finished", write)
            self._arena.beside(self._does(what))

        self._patch.setattr(store, "competition_finished", finished)

    async def _connects(self, name: str, tables: int) -> RawBot:
        token = self._tokens.get(owner_of(name))
        stack = self._bots[name] = AsyncExitStack()
        self._stack.push_async_callback(stack.aclose)
        bot = await stack.enter_async_context(self._arena.stranger(name))
        await bot.hello(tables=tables, **({} if token is None else {"token": token}))
        self._sitting[name] = bot
        return bot

    def _plays(self, run: str, form: str, more: Sequence[str]) -> None:
        names = tuple(word for word in more if "=" not in word)
        fields: dict[str, Any] = {
            k: json.loads(v) for k, v in (word.split("=") for word in more if "=" in word)
        }
        game = GAME_OF.get(form, "ace_king_queen")
        settings = {"high_low": {"max_shuffles": 1}}.get(game, {"hands": 4})
        plan = plan_for(game, names, Form(form), settings=settings, run=run, **fields)
        self._scheduler.play(self._arena.host.compete(plan))

    async def _says(self, action: Action, more: Sequence[str]) -> None:
        fields: dict[str, Any] = {}
        for name, text in (word.split("=", 1) for word in more if "=" in word):
            text = text.replace("_", " ") if name == "text" else text
            fields[name] = FIELDS.get(name, str)(text)
        for word in (word for word in more if "=" not in word):
            main = (
                "host"
                if action in (Action.DRAIN, Action.UNDRAIN)
                else MAIN.get(action.value, "competition")
            )
            fields[main] = self._match(word) if main == "match" else word
        if "text" in fields:
            fields["text"] = fields["text"].replace("|", "\n")
        done = self._admin(Instruct(VERSION, "", action, **fields), "Eva")
        done = await done if isinstance(done, Awaitable) else done
        self._tokens.update(done.tokens)
        self._said.append(_told(done))

    def _table(self, pair: str) -> Any:
        tables = self._arena.gateway.referee.tables
        return next(table for table in tables if {*table.names} == {*pair.split(":")})

    def _match(self, pair: str) -> str:
        """The id of the first match of these bots that counts, else of one that is being played."""
        names = {*pair.split(":")}
        rows = [row for row in self._rows if {*row.players} == names]
        tables = [
            table.id for table in self._arena.gateway.referee.tables if {*table.names} == names
        ]
        return next((row.id for row in rows if row.counts), None) or next(
            iter([*tables, *(row.id for row in rows)]), pair
        )

    async def _standings(self) -> Iterator[str]:
        store = self._arena.store
        await asyncio.sleep(0.1)  # what was just done has been read and written
        flaws = [flaw for run in examine(store) for flaw in run.flaws]
        assert flaws == []
        found = []
        for row in store.competitions():
            results = LiveResults(store, row.id)
            of = [
                f"{each.name} {getattr(each, 'played', 0)}"
                + ("" if each.eliminated is None else f" out by {each.eliminated.kind.value}")
                for each in sorted(results.standings, key=lambda each: each.name)
            ]
            left = (
                ""
                if results.progress is None or results.progress.left_s is None
                else ", some time left"
            )
            found.append(f"{row.id}: {row.state.value}{left}, {', '.join(of)}")
        return iter(found)


def _ended(row: MatchRow) -> str:
    ended = row.result.termination
    by = "" if ended.seat is None else f" by {row.players[ended.seat]}"
    how = "" if ended.kind.value == "completed" else f" {ended.kind.value}{by}"
    why = f" ({ended.text})" if ended.kind.value == "void" else ""
    return ":".join(sorted(row.players)) + how + why


def _told(done: Done) -> str:
    hosts = "".join(f", {host.host} {host.state}" for host in done.hosts)
    lost = "".join(f", {bot.bot} lost" for bot in done.lost)
    tokens = "".join(f", {name} has a token" for name, token in done.tokens if token)
    lines = "".join(f"; {line}" for line in done.lines)
    verdicts = "".join(
        f"; {each.bot} {each.kind} in {each.match}{f': {each.refusal}' if each.refusal else ''}"
        for each in done.verdicts
    )
    return f"{done.text}{hosts}{lost}{tokens}{lines}{verdicts}"


@pytest.mark.parametrize("title", CASES.titles)
def test_an_instructor_acts(title: str) -> None:
    def play(lines: Sequence[str]) -> list[str]:
        with pytest.MonkeyPatch.context() as patch, memory_folder() as folder:

            async def plays() -> list[str]:
                return await AdminCase(patch, folder).plays(lines)

            return run_in_virtual_time(plays(), limit_s=5_000)

    CASES.check_whole(title, play)
