"""What becomes of a competition when bots come, go and offend, and an instructor acts on it.

`competition.cases` has them, in virtual time; a bot takes a millisecond to answer. Acts of one line
follow one another at once, but for `wait` (seconds) and `end`, and then a while passes in which all
that can be played is played. `>` is what has changed since the line before: matches that ended
(`ann:ben 4` that many to their end; a bot that is played by a process is `ann'`, a version
`ann(v1)`), what is being played, whom it waits for, its state, the database's acts and verdicts,
what the instructor is told. A match is named by its players; `report` is what it came to.
"""

from __future__ import annotations

import asyncio
import random
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from arena.competitions.competition import Competition
from arena.formats.spec import Form, Settling, Take
from arena.games.catalogue import GAMES
from arena.games.names import is_process
from arena.games.settle import Goal
from arena.games.verdict import Finding, outage
from arena.referee import bot_session
from arena.referee.bot_session import LiveMatch
from arena.referee.referee import FAULT
from arena.storage.models import VERSION, CompetitionReport
from protocol.errors import ArenaError
from protocol.instructions import Unplayed
from protocol.messages import Ending, Limits, Mechanism, Verdict
from tests.support.cases import CaseFile, wrapped
from tests.support.fake_bots import FakeArena, FakeBot
from tests.support.fake_host import (
    FakeHost,
    Plays,
    a_while,
    act,
    at_random,
    failing,
    first_legal,
    illegal,
    in_time,
    silent,
)
from tests.support.virtual_time import run_in_virtual_time

CASES = CaseFile(Path(__file__).with_name("competition.cases"))
PLAYS: dict[str, Callable[[], Plays]] = {
    "legal": lambda: first_legal,
    "silent": lambda: silent,
    "illegal": lambda: illegal,
    "random": at_random,
}
OFFENCES = {
    "crash": Finding(
        kind=Ending.CRASH,
        text="crashed: exit status 1",
        mechanism=Mechanism.EXIT,
        exit_status=1,
        stderr="Traceback",
    ),
    "memory": Finding(
        kind=Ending.MEMORY, text="took 312 MiB", mechanism=Mechanism.SAMPLED, stderr="it hums"
    ),
    "left": Finding(kind=Ending.DISCONNECT, text="left", mechanism=Mechanism.WIRE),
}
FIELDS: dict[str, Callable[[str], Any]] = {
    "form": Form,
    "take": Take,
    "matches": int,
    "forgive": int,
    "wait_s": float,
    "pause_s": float,
    "versions": lambda text: {name: int(n) for name, n in _pairs(text)},
    "teams": lambda text: dict(_pairs(text)),
    "settle": lambda text: Settling(goal=Goal.PAIRS, level=2.0, most=int(text)),
    "hands": lambda text: {"hands": int(text)},
}
INSTRUCTOR = {*"pause resume stop close hold release void back fault outage remove".split()}
LAUNCHING = {
    *"submitted version starts unstartable room fits restless hosts asked seats all".split()
}
CLASS = tuple(f"b{number}" for number in range(12))
_MANY = 12  # from so many matches on they are counted, not listed
FLAGS = {"itself": "with_itself", "attended": "is_attended", "paused": "is_paused"}


def _pairs(text: str) -> Iterator[list[str]]:
    """`ann:1,ben:2`, parted."""
    return (pair.split(":") for pair in text.split(","))


def counted(found: Iterable[str]) -> str:
    """Each once and in order, with how often it is there; of many different ones how many."""
    of = Counter(found)
    if len(of) > _MANY:
        return f"{of.total()} matches of {len(of)} kinds"
    return ", ".join(f"{what} {n}" if n > 1 else what for what, n in sorted(of.items()))


def seat_of(name: str, version: str = "") -> str:
    return f"{name}({version})" if version else name


def in_play(table: LiveMatch) -> str:
    """The players of a match, in order."""
    seats = (
        f"{name}'" if is_process(chair.player.name) else name
        for name, chair in zip(table.names, table.chairs, strict=True)
    )
    return ":".join(sorted(seats))


def played_now(tables: Sequence[LiveMatch]) -> str:
    """The matches that are being played, or of many how many there are and of each bot."""
    if len(tables) < _MANY:
        return counted(map(in_play, tables))
    of = Counter(name for table in tables for name in table.names).values()
    return f"{len(tables)} matches, {min(of)} to {max(of)} of each bot"


def some(answers: int) -> Plays:
    """Answers so many questions at all tables together, and no more."""
    left = iter(range(answers))
    return lambda ask: None if next(left, None) is None else first_legal(ask)


def names_of(text: str) -> Sequence[str]:
    return CLASS if text == "class" else text.split(",")


SEED = 32  # bytes of a match's seed; pings draw others


class CompetitionCase:
    """An arena without sockets, and what the lines of a case do to it.

    Attributes:
        house_bots: what becomes of the next house bots that are started.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.house_bots: list[str] = []
        self._patch = patch
        cards = random.Random(4)  # one evening is as another
        chance = SimpleNamespace(
            token_bytes=lambda size: (cards.randbytes if size == SEED else secrets.token_bytes)(
                size
            ),
            token_hex=secrets.token_hex,
            compare_digest=secrets.compare_digest,
        )
        patch.setattr(bot_session, "secrets", chance)
        self._house = FakeArena()
        self._host = FakeHost(self._house)
        self._bots: dict[str, FakeBot] = {}
        self._tasks: dict[str, asyncio.Task[CompetitionReport]] = {}
        self._plan: tuple[tuple[str, ...], dict[str, Any]] = (), {}
        self._said: list[str] = []
        self._shown: dict[str, str] = {}
        self._seen = [0, 0, 0, 0]

    async def plays(self, lines: Sequence[str]) -> list[str]:
        out: list[str] = []
        for line in lines:
            out.append(line)
            if line.startswith("#"):
                continue
            for words in map(str.split, line.split(" · ")):
                try:
                    await self._does(words)
                except ArenaError as error:
                    self._said.append(f"error: {error}")
            await a_while(400)
            out += wrapped(" · ".join(self._news()))
        await self._host.end()
        return out

    # --- what there is to see ---

    def _news(self) -> Iterator[str]:
        """What was said and has changed since the line before."""
        host, book = self._host, self._host.book
        rows, acts, verdicts, lines = self._seen
        self._seen = [len(book.rows), len(book.acts), len(book.verdicts), len(host.lines)]
        yield from map(self._named, self._said)
        self._said.clear()
        if ended := counted(map(self._ended, range(rows, len(book.rows)))):
            yield f"ended {ended}"
        for each in book.verdicts[verdicts:]:
            ruled = "ruled " if each in host.told else ""  # where there was no match
            what = f"is {ruled}forgiven" if each.forgiven else f"is {ruled}out by"
            yield f"{each.bot} {what} {each.kind.value}"
        for noted in book.acts[acts:]:
            text = f": {noted.text}" if noted.what in ("flag", VERSION) else ""
            yield self._named(" ".join(filter(None, ("act", noted.what, noted.bot))) + text)
        flags = [noted.text for noted in book.acts if noted.what == "flag"]
        for line in host.lines[lines:]:
            flag = next((text for text in flags if text in line), None)
            yield f"told: {self._named(line.replace(flag, '…') if flag else line)}"
        shown = dict(self._state())
        for what, text in shown.items():
            if self._shown.get(what, "") != text:
                yield f"{what} {text or '-'}"
        self._shown = shown

    def _state(self) -> Iterator[tuple[str, str]]:
        for competition in self._host.competitions:
            of = "" if len(self._host.competitions) == 1 else f"{competition.id} "
            arbiter = competition.arbiter
            yield f"{of}plays", played_now(arbiter.tables)
            seats = arbiter.playing - len(arbiter.tables)
            yield f"{of}waits for seats of", f"{seats}" if seats else ""
            yield f"{of}waits for", " ".join(sorted(competition.progress.waits_for))
            state = competition.state.value
            yield f"{of}is", "" if state == "running" else state

    def _ended(self, at: int) -> str:
        row, (_, result) = self._host.book.rows[at], self._host.book.matches[at]
        versions = result.record.versions or [""] * len(row.players)
        seats = map(seat_of, row.players, versions)
        ended = result.termination
        by = "" if ended.seat is None else f" by {row.players[ended.seat]}"
        text = "a fault" if ended.text == FAULT else ended.text
        why = f" ({text})" if ended.kind is Ending.VOID else ""
        how = "" if ended.kind is Ending.COMPLETED else f" {ended.kind.value}{by}{why}"
        also = " and ".join(row.players[seat] for seat in row.result.also_out)
        return ":".join(sorted(seats)) + how + (f" and {also}" if also else "")

    def _named(self, text: str) -> str:
        """A text with players instead of ids of matches, and without times."""
        for row in self._host.book.rows:
            text = text.replace(row.id, ":".join(sorted(row.players)))
        text = re.sub(r"; ahead was .*? and waits", "; ahead was … and waits", text)
        return re.sub(r"\d\d:\d\d:\d\d", "…", text)

    # --- what is done ---

    @property
    def _competition(self) -> Competition:
        return self._host.competition

    async def _does(self, words: list[str]) -> None:
        host = self._host
        match words:
            case ["begin", *more]:
                await self._begins(more)
            case ["compete", *more]:
                self._competes(more)
            case ["run"]:
                self._runs()
            case ["wait", seconds]:
                await asyncio.sleep(float(seconds))
            case ["end", *which]:
                await self._ends(*which)
            case ["killed"]:
                for task in self._tasks.values():
                    task.cancel()
                await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            case ["again", *more]:
                await self._again(*more)
            case ["wall", seconds]:
                host.wall_s += float(seconds)
            case ["fails", times]:
                self._patch.setitem(GAMES, "ace_king_queen", failing(int(times)))
            case ["disk", "full", "at", match]:
                host.book.fails_at = int(match)
            case ["acts", "fail"]:
                host.book.fails_to_act = True
            case ["set", name, value]:
                self._patch.setattr(f"arena.{name}", float(value))
            case ["house", *bots]:
                self.house_bots += bots
            case ["guests", *names]:
                host.guests |= {*names}
            case ["people", *names]:
                host.people |= {*names}
            case ["order", *part]:
                first, count = map(int, part or ("0", "99"))
                played = host.book.matches[first : first + count]
                self._said += [" ".join(":".join(sorted(each)) for each, _ in played)]
            case ["most"]:
                self._said.append(f"a bot had up to {max(host.most_chairs.values())} matches")
            case ["verdicts"]:
                self._said += [*map(self._evidence, self._competition.ledger.verdicts)]
            case ["progress"]:
                said = self._competition.progress
                left = "" if said.left_s is None else ", some time left"
                self._said.append(f"settled {said.settled} of {said.scheduled}{left}")
            case ["pass", seconds]:
                self._house.now += float(seconds)
            case ["own", *names]:
                self._competition.arbiter.bots.guests |= {*names}
            case ["numbers"]:
                numbers = sorted(row.pairing for row in host.book.rows)
                self._said.append(f"numbers {numbers[0]} to {numbers[-1]}, {len(numbers)} in all")
            case ["in", *names]:
                found = [name for name in names if self._competition.is_in(name)]
                self._said.append(f"in it: {' '.join(found) or '-'}")
            case [act_, *about] if act_ in INSTRUCTOR:
                self._instructs(act_, *about)
            case [hosts, *more] if hosts in LAUNCHING:
                self._launches(hosts, *more)
            case [names, verb, *more]:
                for name in names_of(names):
                    self._bot_does(name, verb, more)
            case _:
                raise AssertionError(f"unknown words: {' '.join(words)}")

    def _bot_does(self, name: str, verb: str, more: list[str]) -> None:
        host = self._host
        options = dict(word.split("=") for word in more if "=" in word)
        plays = next((PLAYS[word]() for word in more if word in PLAYS), first_legal)
        if "some" in options:
            plays = some(int(options["some"]))
        match verb:
            case "comes" | "come":
                tables, is_launched = int(options.get("tables", 1)), "launched" in more
                self._bots[name] = host.comes(name, plays, tables, is_launched=is_launched)
            case "plays" | "play":
                host.submitted_play[name] = plays
                if name in host.players:
                    host.plays(name, plays)
            case "offends":
                host.offends(name, OFFENCES[more[0]])
            case "offended":  # as it would be told of a process that has ended
                self._competition.offended(name, OFFENCES[more[0]])
            case "goes":
                self._bots[name].goes()
                host.changed()
            case "returns":
                self._bots[name].comes_back()
                self._bots[name].reads()
                host.players.note(self._bots[name].player)
                host.changed()
            case "lingers":  # it has said goodbye
                host.players[name].leaving = True
            case "late":  # and not heard since
                host.players[name].event = "m-1.0"
            case "leaves":
                host.leaves(name)
            case _:
                raise AssertionError(f"unknown words: {name} {verb}")

    def _instructs(self, what: str, *about: str) -> None:
        competition = self._competition
        match what, *about:
            case "void", pair, *more:
                competition.void(self._match(pair, *more), act("void"))
            case "back", pair:
                competition.ledger.take_back(self._match(pair), act("void"))
            case "fault", pair:
                self._house.referee.void(self._table(pair), FAULT)
            case "outage", pair, away:
                table = self._table(pair)
                self._house.referee.void(table, outage([away]), (table.names.index(away),))
            case "remove", name:
                competition.remove(name, act("remove", bot=name))
            case "stop", *unplayed:
                competition.stop(act("stop"), *map(Unplayed, unplayed))
            case "close", *_:
                competition.close()
            case "hold" | "release", *_:
                competition.hold(what == "hold")
            case _, *which:
                chosen = {each.id: each for each in self._host.competitions}
                one = chosen[which[0]] if which else competition
                {"pause": one.pause, "resume": one.resume}[what](act(what))

    def _launches(self, what: str, *more: str) -> None:
        host = self._host
        match what, *more:
            case "submitted", at_once, *versions:
                host.takes_submissions(
                    int(at_once),
                    **{k: int(n) for k, n in map(partial(str.split, sep="="), versions)},
                )
            case "version", name, number:
                assert host.submitted is not None, "there are submissions"
                host.submitted.plays(name, None if number == "none" else int(number))
            case "starts", "held":
                for pool in (host.pool, host.hosts.pool):
                    pool.starts.clear()
            case "starts", "go":
                for pool in (host.pool, host.hosts.pool):
                    pool.starts.set()
            case "unstartable", name, *why:
                host.pool.failures[name] = (
                    OFFENCES[why[0]] if why[0] in OFFENCES else ArenaError(" ".join(why))
                )
            case "room", processes:
                host.hosts.pool.most = host.pool.most = int(processes)
            case "fits", bots:
                host.pool.ever = int(bots)
            case "restless", name:
                host.pool.restless = {name}
            case "hosts", at_once, *portable:
                host.has_hosts(int(at_once), *portable)
            case "asked", *_:
                asked = (":".join(sorted(bot.name for bot in bots)) for bots in host.hosts.asked)
                self._said.append(counted(asked))
            case "seats", *_:
                most, now = host.pool.most_reserved, len(host.pool.reserved)
                self._said.append(f"processes {now}, at most {most}")
            case "all", how:
                host.submitted_play.clear()
                host.all_play(PLAYS[how]())

    def _competes(self, more: Sequence[str]) -> None:
        words = (names_of(word) for word in more if "=" not in word and word not in FLAGS)
        names = tuple(name for found in words for name in found)
        plan: dict[str, Any] = {FLAGS[word]: True for word in more if word in FLAGS}
        plan.setdefault("limits", Limits())
        for name, text in (word.split("=") for word in more if "=" in word):
            plan[{"hands": "settings", "id": "competition"}.get(name, name)] = FIELDS.get(
                name, str
            )(text)
        if self._host.submitted is not None and names and "take" in plan:
            in_play = self._host.submitted.in_play("")
            plan.setdefault("versions", {name: in_play[name] for name in names if name in in_play})
        self._plan = names, plan
        self._host.compete(*names, call_house=self._start_house, **plan)

    async def _begins(self, more: Sequence[str]) -> None:
        self._competes(more)
        await self._learn()
        self._runs()
        await a_while()

    async def _learn(self) -> None:
        if (service := self._host.submitted) is not None:
            await service.learn(self._competition.plan.versions.values())

    def _runs(self) -> None:
        self._tasks[self._competition.id] = asyncio.create_task(self._competition.run())

    async def _again(self, rows: str = "") -> None:
        """Begin it again in an arena that starts, with all that the database has, or these rows."""
        before, (names, plan) = self._host, self._plan
        self._host = FakeHost(self._house)
        self._host.wall_s, self._seen = before.wall_s, [0, 0, 0, 0]
        book = before.book
        earlier = [row for row in book.rows if row.counts]
        earlier = earlier[int(rows) :] if rows else earlier
        self._host.book.rows = earlier
        self._host.book.matches = [
            match for row, match in zip(book.rows, book.matches, strict=True) if row in earlier
        ]
        self._seen = [len(earlier), 0, 0, 0]
        self._host.compete(
            *names,
            call_house=self._start_house,
            **plan,
            earlier=earlier,
            acts=tuple(book.acts),
            verdicts=book.verdicts,
        )

    async def _ends(self, *which: str) -> None:
        task = self._tasks[which[0] if which else self._competition.id]
        report: CompetitionReport = await in_time(task)
        self._said.append(f"report: {report.played} played{self._result(report)}")

    def _result(self, report: CompetitionReport) -> str:
        found = []
        for row in sorted(report.standings, key=lambda row: row.name):
            out = "" if row.eliminated is None else f" out by {row.eliminated.kind.value}"
            losses = f" {row.offences} offences" if getattr(row, "offences", 0) else ""
            unranked = " unranked" if row.rank is None and not out else ""
            found.append(f"{row.name} {row.played}{out}{losses}{unranked}")
        out_ = {name for place in report.ranking if place.offence for name in place.names}
        for name in sorted(name for place in report.ranking for name in place.names):
            found.append(f"{name}{' out' if name in out_ else ''}")
        return "".join(f", {each}" for each in found if len(found) < _MANY)

    async def _start_house(self, game: str, name: str) -> None:
        if name in self._host.players:
            return  # as an arena does: it is on its way
        self._said.append(f"{name} is started")
        match self.house_bots.pop(0) if self.house_bots else "plays":
            case "absent":
                pass
            case "unstartable":
                raise ArenaError("no memory")
            case "slow":
                await asyncio.sleep(5)
                self._host.comes(name)
            case "plays":
                self._host.comes(name)
            case how:
                self._host.comes(name, PLAYS[how]())

    def _table(self, pair: str) -> LiveMatch:
        tables = self._competition.arbiter.tables
        return next(each for each in tables if {*pair.split(":")} == {*each.names})

    def _match(self, pair: str, *state: str) -> str:
        """The id of a match that is being played, or else of the first one that counts."""
        if state == ("now",):
            return self._table(pair).id
        rows = [
            row
            for row in self._host.book.results(self._competition.id)
            if {*row.players} == {*pair.split(":")}
        ]
        return rows[0].id if rows else pair

    def _evidence(self, verdict: Verdict) -> str:
        parts = [verdict.text, verdict.mechanism and verdict.mechanism.value, verdict.stderr]
        status = [] if verdict.exit_status is None else [f"exit {verdict.exit_status}"]
        advice = ["advice"] if verdict.advice else []
        return self._named(f"{verdict.bot}: {', '.join(filter(None, [*parts, *status, *advice]))}")


@pytest.mark.parametrize("title", CASES.titles)
def test_a_competition_goes(title: str) -> None:
    def play(lines: Sequence[str]) -> list[str]:
        with pytest.MonkeyPatch.context() as patch:

            async def plays() -> list[str]:
                return await CompetitionCase(patch).plays(lines)

            return run_in_virtual_time(plays(), limit_s=2_000)

    CASES.check_whole(title, play)
