"""The commands of an instructor while the arena runs: pause, resume, void, remove and so on.

The instructor's token is checked before a command gets here. Every act is written to the database,
with the person and the time. A command that cannot be carried out changes nothing and is answered
with one line.
"""

from __future__ import annotations

import asyncio
import time
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import Any

import msgspec

from arena.competitions.competition import Competition
from arena.competitions.elsewhere import HostOverview
from arena.competitions.ledger import Ledger
from arena.competitions.live_arena import LiveArena
from arena.competitions.scheduler import Scheduler
from arena.formats.spec import Form
from arena.games.names import alike, owner_of, spelled
from arena.storage.live_results import LiveResults
from arena.storage.models import REOPENED
from arena.storage.roster import Roster
from arena.storage.roster_csv import class_in
from arena.storage.store import Act, CompetitionRow, CompetitionState, MatchRow, Store
from protocol.errors import UsageError
from protocol.instructions import TimedVerdict, Unplayed
from protocol.messages import VERSION, Action, Done, Ending, Instruct, Verdict

__all__ = ["AdminCommands"]

_FLUSH_S = 1.0  # a disk takes milliseconds; nobody else is served while a flush waits
_AWAY = (Ending.ABSENT, Ending.DISCONNECT)
_PLAYED = (Action.VOID, Action.REMOVE, Action.START)  # actions that change what is played
_DONE = {Action.PAUSE: "paused", Action.RESUME: "resumed", Action.STOP: "stopped"}


class AdminCommands:
    """Carries out an instructor's commands on a running arena.

    `wall` returns the time of day in Unix seconds; `lines` returns the latest lines of the log.
    """

    def __init__(
        self,
        arena: LiveArena,
        store: Store,
        wall: Callable[[], float] = time.time,
        *,
        starter: Scheduler,
        roster: Roster,
        lines: Callable[[], Sequence[str]],
    ) -> None:
        self._arena = arena
        self._store = store
        self._wall = wall
        self._starter = starter
        self._roster = roster
        self._lines = lines

    def __call__(self, message: Instruct, who: str) -> Done | Awaitable[Done]:
        """Carry out a command, now or when awaited; after a `UsageError` nothing has changed."""
        if message.action in _PLAYED or (message.action is Action.UNLIST and message.from_running):
            self._arena.storage.check()
        match message.action:
            case Action.STATUS:
                text = f"{len(self._arena.competitions)} on"
                storage = self._arena.storage
                late = filter(None, (storage.state, storage.filling))
                again = filter(None, (each.unplayed for each in self._on))
                return self._done(text, lines=(*late, *self._starter.waiting, *again))
            case Action.PAUSE | Action.RESUME | Action.STOP:
                return self._done(self._steer(message, who))
            case Action.VOID:
                if message.since is not None:
                    return self._list_away(message, message.since)
                return self._done(self._void(message, who))
            case Action.REMOVE:
                return self._remove(message, who)
            case Action.LOG:
                lines = tuple(self._lines())
                return self._done(f"{len(lines)} lines", lines=lines)
            case Action.START:
                return self._start(
                    message, _given(message.competition, "the name of a run or of a game"), who
                )
            case Action.IMPORT:
                return self._import(message, _given(message.text, "the text of a roster"), who)
            case Action.RENAME:
                return self._rename(message, who)
            case Action.UNLIST:
                return self._unlist(message, who)
            case Action.HOSTS:
                directory = self._directory()
                hosts = directory.views()
                text = f"{len(hosts)} host{'s' * (len(hosts) != 1)}"
                return self._done(text, hosts=hosts, lost=directory.lost_bots())
            case Action.DRAIN | Action.UNDRAIN:
                return self._drain(message, who)

    def _done(self, text: str, **more: Any) -> Done:
        """Make an answer with the progress of all competitions; `more` are further fields."""
        on = tuple(competition.progress for competition in self._arena.competitions)
        return Done(text, on, **more)

    def _directory(self) -> HostOverview:
        if self._arena.host_directory is None:
            raise UsageError("expected an arena with hosts, as `arena serve --bus` has them")
        return self._arena.host_directory

    async def _drain(self, message: Instruct, who: str) -> Done:
        directory = self._directory()
        host = _given(message.host, "the name of a host")
        is_draining = message.action is Action.DRAIN
        await directory.drain(host, is_draining)
        outcome = "takes no more bots" if is_draining else "takes bots again"
        self._store.acted(self._act(message, who, None, f"{host} {outcome}, by {who}"))
        return self._done(f"{host} {outcome}", hosts=directory.views())

    async def _start(self, message: Instruct, name: str, who: str) -> Done:
        competition = await self._starter.start(
            name, form=message.form, matches=message.matches, settings=message.settings
        )
        self._store.acted(self._act(message, who, competition.id, f"started by {who}"))
        await asyncio.sleep(0)  # after this, it is among the running competitions
        away = competition.plan.not_there
        without = f"; not there: {', '.join(away)}" if away else ""
        return self._done(f"started: {competition.id}{without}")

    async def _import(self, message: Instruct, text: str, who: str) -> Done:
        # In a thread, as a whole class takes a while.
        done = await asyncio.to_thread(lambda: self._roster.take(class_in(text, "roster")))
        await self._arena.read_roster()
        old = done.changed + done.same
        summary = f"{len(done.new):,} new; {old:,} known, {done.changed:,} of them changed"
        if done.revoked:
            summary += f"; without a token, as before: {', '.join(done.revoked)}"
        self._store.acted(self._act(message, who, None, f"{summary}, by {who}"))
        return self._done(summary, tokens=tuple((entry.name, entry.token) for entry in done.new))

    async def _rename(self, message: Instruct, who: str) -> Done:
        name = self._unused(message.bot)
        new = _given(message.text, "the new name")
        if alike(new) != alike(name) and (use := self._arena.here.use_of(new)):
            raise UsageError(f"expected a name that nobody has: {use}")
        new = unicodedata.normalize("NFC", new.strip())
        old = await asyncio.to_thread(self._roster.rename, name, new, who)
        await self._arena.read_roster()
        return self._done(f"{old} is {new} now")

    async def _unlist(self, message: Instruct, who: str) -> Done:
        """Take a person off the roster, and with `from_running` out of running competitions."""
        is_struck = bool(message.from_running)
        name = self._unused(message.bot, is_struck=is_struck)
        if is_struck:
            on = {each.id: each for each in self._on}
            for bot, where in await asyncio.to_thread(self._roster.taking_part, name):
                if where in on and on[where].is_in(bot):  # otherwise it is out already
                    removal = Instruct(VERSION, "", Action.REMOVE, bot=bot)
                    on[where].remove(bot, self._act(removal, who, where, f"removed by {who}"))
        old = await asyncio.to_thread(self._roster.remove, name, who, from_running=is_struck)
        await self._arena.read_roster()
        return self._done(f"{old} is on the roster no longer")

    def _unused(self, given: str | None, *, is_struck: bool = False) -> str:
        """Return the given name on the roster; raises `UsageError` if an upcoming run needs it, or
        if its bots are here and not `is_struck`.
        """
        name = _given(given, "a name on the roster")
        use = None if is_struck else self._arena.here.use_of(name)
        if use is None and (run := self._starter.awaiting(name)) is not None:
            use = f"it is among the players of the run {run}, which is still to be played"
        if use is not None:
            raise UsageError(f"expected a name that is not in use: {use}")
        return name

    def _steer(self, message: Instruct, who: str) -> str:
        done = _DONE[message.action]
        chosen = self._chosen(message.competition)
        if message.action is Action.PAUSE and message.competition is None:
            chosen = [each for each in chosen if not each.arbiter.is_paused]
        if message.action is Action.RESUME:
            going_on = _ids(chosen)
            chosen = [each for each in chosen if each.arbiter.is_paused or each.stage.is_stuck]
            if going_on and not chosen:
                raise UsageError(
                    "expected a competition that is paused, or has a match that waits after "
                    f"too many voids; going on: {going_on}"
                )
        if not chosen:
            raise UsageError(f"expected a competition to be {done}, none is on")
        if message.action is Action.STOP:
            return f"{done}: {_ids(chosen)}{self._stop(message, who, chosen)}"
        for competition in chosen:
            act = self._act(message, who, competition.id, f"{done} by {who}")
            if message.action is Action.PAUSE:
                competition.pause(act)
            else:
                competition.resume(act)
        return f"{done}: {_ids(chosen)}"

    def _stop(self, message: Instruct, who: str, chosen: Sequence[Competition]) -> str:
        """Stop competitions; return in words which matches count again by that."""
        reopened = [each for each in chosen if each.ledger.is_reopened]
        if message.unplayed is None and reopened:
            left = "; ".join(each.unplayed for each in reopened)
            raise UsageError(f"expected `--unplayed before` or `--unplayed void`: {left}")
        if message.unplayed is not None and not reopened:
            raise UsageError(
                "expected `--unplayed` for a competition that was over and goes on as a match of "
                f"it was made void, got {_ids(chosen)}"
            )
        if message.unplayed is Unplayed.BEFORE:
            self._flush()  # the matches that were taken back are then read
        text, restored = f"stopped by {who}", list[MatchRow]()
        for competition in chosen:
            unplayed = message.unplayed if competition in reopened else None
            more = "" if unplayed is None else f"; what is not played again: {unplayed.value}"
            act = self._act(message, who, competition.id, text + more)
            restored += competition.stop(act, unplayed)
        if not reopened:
            return ""
        if message.unplayed is Unplayed.VOID:
            return "; what is not played again stays void"
        return f"; counted as before: {', '.join(map(_restored, restored)) or 'nothing'}"

    def _void(self, message: Instruct, who: str) -> str:
        match = _given(message.match, "the id of a match to be void")
        text = f"made void by {who}"
        for competition in self._on:
            if competition.table(match) or competition.ledger.of_match(match):
                act = self._act(message, who, competition.id, text)
                competition.void(match, act)
                self._arena.restore(competition)
                if competition.plan.form is Form.LADDER:
                    return f"{match} is void; {competition.id} is rated without it"
                return f"{match} is void and played again in {competition.id}"
        return self._void_afterwards(message, match, who, text)

    def _void_afterwards(self, message: Instruct, match: str, who: str, text: str) -> str:
        """Void a match of a finished competition, which then goes on for that match."""
        self._flush()  # the match may have ended just now
        played = self._store.played(match)
        if not played.counts:
            raise UsageError(f"expected a match that counts, {match} is void already")
        row = self._store.competition(played.competition)
        _check_finished(row)
        act = self._act(message, who, row.id, text)
        if row.plan.form is Form.LADDER:  # a ladder has no pairings to play again
            self._store.taken_back(row.id, match, act)
            return f"{match} is void; {row.id}, which is over, is rated without it"
        # This raises `NotInstalled` before anything is changed.
        competition = self._arena.competition(self._arena.ledger_of(row))
        again = self._act(message, who, row.id, f"goes on for {match}")
        competition.void(match, act, msgspec.structs.replace(again, what=REOPENED))
        self._starter.play(competition)
        launched = (bot.name for bot in row.plan.bots)
        here = {*self._arena.here.taken, *launched, *row.plan.versions, *row.plan.house}
        away = [name for name in played.players if name not in here]
        if away:
            are = "is" if len(away) == 1 else "are"
            return f"{match} is void; {', '.join(away)} {are} not here; {competition.unplayed}"
        return f"{match} is void; {row.id} goes on for it"

    async def _list_away(self, message: Instruct, since: float) -> Done:
        """Answer with the verdicts from `since` to `message.until`, by default now, on absent bots.

        Each has the reason why its match cannot be made void, if it cannot.
        """
        until = self._wall() if message.until is None else message.until

        def read() -> list[tuple[float, Verdict, MatchRow]]:
            rows = self._store.competitions()
            if message.competition is not None:
                rows = (self._store.find(message.competition),)
            found = [
                (at, verdict, played)
                for row in rows
                for at, verdict in self._store.rulings(row.id)
                if since <= at <= until and verdict.kind in _AWAY
                if (played := self._store.played(verdict.match)).counts
            ]
            return sorted(found, key=lambda each: each[0])

        @cache
        def ledger_of(competition: str) -> Ledger:
            row = self._store.competition(competition)
            _check_finished(row)
            return self._arena.ledger_of(row)

        def refusal(match: MatchRow) -> str:
            on = (each for each in self._on if each.id == match.competition)
            try:
                (next(on, None) or ledger_of(match.competition)).check_back(match.id)
            except UsageError as error:
                return str(error)
            return ""

        await self._store.flushed()
        verdicts = []
        for at, verdict, match in await asyncio.to_thread(read):
            verdicts.append(
                TimedVerdict(
                    competition=match.competition,
                    match=match.id,
                    bot=verdict.bot,
                    kind=verdict.kind.value,
                    at=at,
                    text=verdict.text,
                    refusal=refusal(match),
                )
            )
            await asyncio.sleep(0)  # let others run, as each check may run a large schedule
        text = f"{len(verdicts)} verdict{'s' * (len(verdicts) != 1)} of that time"
        return self._done(text, verdicts=tuple(verdicts))

    def _remove(self, message: Instruct, who: str) -> Done | Awaitable[Done]:
        name = self._arena.here.spelled(_given(message.bot, "the name of a bot to be removed"))
        message = msgspec.structs.replace(message, bot=name)
        over = self._over(message.competition)
        if over is not None:
            return self._remove_afterwards(message, name, over, who)
        chosen = [each for each in self._chosen(message.competition) if each.is_in(name)]
        if not chosen:
            theirs = sorted(
                {
                    bot
                    for each in self._chosen(message.competition)
                    for bot in (*each.plan.players, *self._arena.here.taken)
                    if owner_of(bot) == name and each.is_in(bot)
                }
            )
            others = f"its owner has {', '.join(theirs)} there" if theirs else ""
            raise UsageError(
                f"expected a bot that is in a competition, got {name!r}; "
                f"{others or 'one that is over has to be named'}"
            )
        for competition in chosen:
            act = self._act(message, who, competition.id, f"removed by {who}")
            competition.remove(name, act)
        return self._done(f"{name} is removed from {_ids(chosen)}")

    def _over(self, text: str | None) -> CompetitionRow | None:
        """Return the competition named `text` if it is over; running ones have precedence."""
        on = self._arena.competitions
        if text is None or any(text in (each.id, each.plan.run) for each in on):
            return None
        try:
            row = self._store.find(text)
        except UsageError:  # `_chosen` then says what there is
            return None
        return row if row.state.is_over else None

    async def _remove_afterwards(
        self, message: Instruct, name: str, over: CompetitionRow, who: str
    ) -> Done:
        """Remove a bot from a competition that is over; the act itself changes its standings."""
        if over.plan.form is Form.ELIMINATION:
            raise UsageError(
                f"expected a round robin, a league or a ladder, {over.id} is an elimination that "
                "is over: its tables were drawn by its results, so nobody can be taken out of it"
            )

        def spelling() -> str:
            results = LiveResults(self._store, over.id)
            known = [row.name for row in results.standings]
            bot = spelled(name, [player for player in known if player not in results.out])
            if bot in results.out or bot not in known:
                why = results.out.get(bot)
                reason = "" if why is None else f", which is out by {why.kind.value}"
                raise UsageError(f"expected a bot that is in {over.id}, got {bot!r}{reason}")
            return bot

        await self._store.flushed()
        bot = await asyncio.to_thread(spelling)  # in a thread, as it reads all results
        respelled = msgspec.structs.replace(message, bot=bot)
        self._store.acted(self._act(respelled, who, over.id, f"removed by {who}"))
        return self._done(f"{bot} is removed from {over.id}, which is over")

    def _flush(self) -> None:
        """Wait until everything is in the database, but not for long, as matches wait for it."""
        try:
            self._store.flush(_FLUSH_S)
        except TimeoutError:
            raise UsageError(
                "expected a database that is written at once; try again when it is"
            ) from None

    @property
    def _on(self) -> Sequence[Competition]:
        """The running competitions; the arena's list may have one that has just ended."""
        return [each for each in self._arena.competitions if not each.is_over]

    def _chosen(self, text: str | None) -> Sequence[Competition]:
        """Return the running competitions with that id or name, or all of them for None."""
        on = self._on
        chosen = [each for each in on if text is None or text in (each.id, each.plan.run)]
        if text is not None and not chosen and "-" in text:  # the beginning of an id
            begun = [each for each in on if each.id.startswith(text)]
            chosen = begun if len(begun) == 1 else []
        if text is not None and not chosen:
            known = _ids(on) or "none"
            raise UsageError(f"expected a competition that is on ({known}), got {text!r}")
        return chosen

    def _act(self, message: Instruct, who: str, competition: str | None, text: str) -> Act:
        return Act(
            competition=competition,
            at=self._wall(),
            who=who,
            what=message.action.value,
            match=message.match,
            bot=message.bot,
            text=text,
        )


def _given(value: str | None, what: str) -> str:
    if value is None:
        raise UsageError(f"expected {what}, got none")
    return value


def _check_finished(row: CompetitionRow) -> None:
    """Raise `UsageError` if a competition that is over cannot go on."""
    if row.state is not CompetitionState.FINISHED:
        raise UsageError(
            "expected a match of a competition that goes on or is finished, "
            f"{row.id} is {row.state.value}"
        )


def _restored(match: MatchRow) -> str:
    """Name a match that counts again, and who is out by it."""
    out = ", ".join(match.players[seat] for seat in match.result.out)
    return f"{match.id}{f' ({out} is out by {match.result.termination.kind.value})' if out else ''}"


def _ids(competitions: Sequence[Competition]) -> str:
    return ", ".join(competition.id for competition in competitions)
