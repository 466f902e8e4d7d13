"""The commands of an instructor while the arena runs: pause, resume, void, remove and so on.

The instructor's token has been checked before a command gets here. Everything that is done is
written to the database with who did it and when. A command that cannot be carried out changes
nothing and is answered with one line.
"""

from __future__ import annotations

import asyncio
import time
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

import msgspec

from arena.competitions.competition import Competition
from arena.competitions.ledger import Ledger
from arena.competitions.live_arena import LiveArena
from arena.competitions.scheduler import Scheduler
from arena.engine.names import alike, spelled
from arena.formats.spec import Form
from arena.hosts.host_control import HostControl
from arena.storage.live_results import LiveResults
from arena.storage.models import REOPENED
from arena.storage.roster import Imported, Roster
from arena.storage.roster_csv import class_in
from arena.storage.store import Act, CompetitionRow, CompetitionState, MatchRow, Store
from protocol.errors import UsageError
from protocol.instructions import TimedVerdict, Unplayed
from protocol.messages import VERSION, Action, Done, Ending, Instruct, Verdict

__all__ = ["AdminCommands"]

_FLUSH_S = 1.0  # a disk takes milliseconds; nobody else is served meanwhile
_AWAY = (Ending.ABSENT, Ending.DISCONNECT)
_DONE = {Action.PAUSE: "paused", Action.RESUME: "resumed", Action.STOP: "stopped"}


class AdminCommands:
    """Carries out an instructor's commands on a running arena.

    `reopen` plays a finished competition on, because one of its matches is to be played again.
    `wall` is the time of day in Unix seconds; `lines` returns the latest of the arena's log.
    """

    def __init__(
        self,
        arena: LiveArena,
        store: Store,
        reopen: Callable[[Competition], object],
        wall: Callable[[], float] = time.time,
        *,
        starter: Scheduler,
        roster: Roster,
        lines: Callable[[], Sequence[str]],
    ) -> None:
        self._arena = arena
        self._store = store
        self._reopen = reopen
        self._wall = wall
        self._starter = starter
        self._roster = roster
        self._lines = lines

    def __call__(self, message: Instruct, who: str) -> Done | Awaitable[Done]:
        """Carry out a command, now or awaited; after a `UsageError` nothing has changed."""
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
                self._arena.storage.check()
                if message.since is not None:
                    return self._list_away(message, message.since)
                return self._done(self._void(message, who))
            case Action.REMOVE:
                self._arena.storage.check()
                return self._remove(message, who)
            case Action.LOG:
                lines = self._lines()
                return self._done(f"{len(lines)} lines", lines=lines)
            case Action.START:
                self._arena.storage.check()
                return self._start(message, who)
            case Action.IMPORT:
                return self._import(message, who)
            case Action.RENAME | Action.UNLIST:
                return self._change_roster(message, who)
            case Action.HOSTS:
                return self._hosts()
            case Action.DRAIN | Action.UNDRAIN:
                return self._drain(message, who)

    def _done(
        self, text: str, tokens: Sequence[tuple[str, str]] = (), lines: Sequence[str] = ()
    ) -> Done:
        progress = (competition.progress for competition in self._arena.competitions)
        return Done(text, tuple(progress), tuple(tokens), tuple(lines))

    def _control(self) -> HostControl:
        if self._arena.host_control is None:
            raise UsageError("expected an arena with hosts, as `arena serve --bus` has them")
        return self._arena.host_control

    def _hosts(self) -> Done:
        control = self._control()
        hosts = control.views()
        done = self._done(f"{len(hosts)} host{'s' * (len(hosts) != 1)}")
        return msgspec.structs.replace(done, hosts=hosts, lost=control.lost_bots())

    async def _drain(self, message: Instruct, who: str) -> Done:
        control = self._control()
        host = _given(message.host, "the name of a host")
        is_draining = message.action is Action.DRAIN
        await control.drain(host, is_draining)
        outcome = "takes no more bots" if is_draining else "takes bots again"
        self._store.acted(self._act(message, who, None, f"{host} {outcome}, by {who}"))
        return msgspec.structs.replace(self._done(f"{host} {outcome}"), hosts=control.views())

    def _start(self, message: Instruct, who: str) -> Awaitable[Done]:
        name = _given(message.competition, "the name of a run or of a game")

        async def started() -> Done:
            competition = await self._starter.start(
                name, form=message.form, matches=message.matches, settings=message.settings
            )
            self._store.acted(self._act(message, who, competition.id, f"started by {who}"))
            await asyncio.sleep(0)  # then it is among those that are on
            away = competition.plan.not_there
            without = f"; not there: {', '.join(away)}" if away else ""
            return self._done(f"started: {competition.id}{without}")

        return started()

    def _import(self, message: Instruct, who: str) -> Awaitable[Done]:
        text = _given(message.text, "the text of a roster")

        def take() -> Imported:
            return self._roster.take(class_in(text, "roster"))

        async def imported() -> Done:
            done = await asyncio.to_thread(take)  # a class takes a while
            summary = _import_summary(done)
            self._store.acted(self._act(message, who, None, f"{summary}, by {who}"))
            return self._done(summary, tokens=[(entry.name, entry.token) for entry in done.new])

        return imported()

    def _change_roster(self, message: Instruct, who: str) -> Awaitable[Done]:
        name = _given(message.bot, "a name on the roster")
        is_struck = message.action is Action.UNLIST and bool(message.from_running)
        if is_struck:
            self._arena.storage.check()
        self._check_unused(name, is_struck=is_struck)
        if message.action is Action.UNLIST:
            change = partial(self._roster.remove, name, who, from_running=is_struck)
            outcome = "is on the roster no longer"
        else:
            new = _given(message.text, "the new name")
            if alike(new) != alike(name) and (use := self._arena.here.use_of(new)):
                raise UsageError(f"expected a name that nobody has: {use}")
            new = unicodedata.normalize("NFC", new.strip())
            change = partial(self._roster.rename, name, new, who)
            outcome = f"is {new} now"

        async def changed() -> Done:
            if is_struck:
                self._strike(await asyncio.to_thread(self._roster.taking_part, name), who)
            return self._done(f"{await asyncio.to_thread(change)} {outcome}")

        return changed()

    def _strike(self, bots: Iterable[tuple[str, str]], who: str) -> None:
        """Remove bots from competitions, given by their ids, unless they are out already."""
        on = {each.id: each for each in self._on}
        for bot, where in bots:
            if where in on and on[where].is_in(bot):
                message = Instruct(VERSION, "", Action.REMOVE, bot=bot)
                on[where].remove(bot, self._act(message, who, where, f"removed by {who}"))

    def _check_unused(self, name: str, *, is_struck: bool) -> None:
        use = None if is_struck else self._arena.here.use_of(name)
        if use is None and (run := self._starter.awaiting(name)) is not None:
            use = f"it is among the players of the run {run}, which is still to be played"
        if use is not None:
            raise UsageError(f"expected a name that is not in use: {use}")

    def _steer(self, message: Instruct, who: str) -> str:
        done = _DONE[message.action]
        chosen = self._chosen(message.competition)
        if message.action is Action.PAUSE and message.competition is None:
            chosen = [each for each in chosen if not each.arbiter.is_paused]
        if message.action is Action.RESUME:
            going_on = _ids(chosen)
            chosen = [each for each in chosen if each.arbiter.is_paused or each.is_stuck]
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
        """Stop competitions; returns what counts again by that, in words."""
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
            self._flush()  # what was taken back is read
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
        """Void a match of a finished competition, which goes on for it."""
        self._flush()  # it may have ended just now
        played = self._store.played(match)
        if not played.counts:
            raise UsageError(f"expected a match that counts, {match} is void already")
        row = self._store.competition(played.competition)
        _check_finished(row)
        act = self._act(message, who, row.id, text)
        if row.plan.form is Form.LADDER:  # which has no pairings to be played again
            self._store.taken_back(row.id, match, act)
            return f"{match} is void; {row.id}, which is over, is rated without it"
        # Raises `NotInstalled` before anything is changed.
        competition = self._arena.competition(self._arena.ledger_of(row))
        again = self._act(message, who, row.id, f"goes on for {match}")
        competition.void(match, act, msgspec.structs.replace(again, what=REOPENED))
        self._reopen(competition)
        launched = (bot.name for bot in row.plan.bots)
        here = {*self._arena.here.taken, *launched, *row.plan.versions, *row.plan.house}
        away = [name for name in played.players if name not in here]
        if away:
            are = "is" if len(away) == 1 else "are"
            return f"{match} is void; {', '.join(away)} {are} not here; {competition.unplayed}"
        return f"{match} is void; {row.id} goes on for it"

    def _list_away(self, message: Instruct, since: float) -> Awaitable[Done]:
        """List the verdicts of a time on bots that were away, and which can be taken back."""
        until = self._wall() if message.until is None else message.until

        def read() -> list[tuple[float, Verdict, MatchRow]]:
            rows = self._store.competitions()
            if message.competition is not None:
                rows = (self._store.find(message.competition),)
            return [
                (at, verdict, played)
                for row in rows
                for at, verdict in self._store.rulings(row.id)
                if since <= at <= until and verdict.kind in _AWAY
                if (played := self._store.played(verdict.match)).counts
            ]

        def refusal(match: MatchRow) -> str:
            on = (each for each in self._on if each.id == match.competition)
            try:
                if (competition := next(on, None)) is not None:
                    competition.check_back(match.id)
                else:
                    row = self._store.competition(match.competition)
                    _check_finished(row)
                    over = ledgers.get(row.id) or self._arena.ledger_of(row)
                    ledgers.setdefault(row.id, over).check_back(match.id)
            except UsageError as error:
                return str(error)
            return ""

        ledgers: dict[str, Ledger] = {}

        async def listed() -> Done:
            await self._store.flushed()
            found = sorted(await asyncio.to_thread(read), key=lambda each: each[0])
            verdicts = []
            for at, verdict, match in found:
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
                await asyncio.sleep(0)  # a large schedule is looked at for each
            done = self._done(f"{len(verdicts)} verdict{'s' * (len(verdicts) != 1)} of that time")
            return msgspec.structs.replace(done, verdicts=tuple(verdicts))

        return listed()

    def _remove(self, message: Instruct, who: str) -> Done | Awaitable[Done]:
        name = self._arena.here.spelled(_given(message.bot, "the name of a bot to be removed"))
        message = msgspec.structs.replace(message, bot=name)
        over = self._over(message.competition)
        if over is not None:
            return self._remove_afterwards(message, name, over, who)
        chosen = [each for each in self._chosen(message.competition) if each.is_in(name)]
        if not chosen:
            raise UsageError(
                f"expected a bot that is in a competition, got {name!r}; "
                "one that is over has to be named"
            )
        for competition in chosen:
            act = self._act(message, who, competition.id, f"removed by {who}")
            competition.remove(name, act)
        return self._done(f"{name} is removed from {_ids(chosen)}")

    def _over(self, text: str | None) -> CompetitionRow | None:
        """The competition that `text` names, if it is over; one that is on comes first."""
        on = self._arena.competitions
        if text is None or any(text in (each.id, each.plan.run) for each in on):
            return None
        try:
            row = self._store.find(text)
        except UsageError:  # `_chosen` says what there is
            return None
        is_over = row.state in (CompetitionState.FINISHED, CompetitionState.STOPPED)
        return row if is_over else None

    def _remove_afterwards(
        self, message: Instruct, name: str, over: CompetitionRow, who: str
    ) -> Awaitable[Done]:
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

        async def removed() -> Done:
            await self._store.flushed()
            bot = await asyncio.to_thread(spelling)  # reads all of its results
            respelled = msgspec.structs.replace(message, bot=bot)
            self._store.acted(self._act(respelled, who, over.id, f"removed by {who}"))
            return self._done(f"{bot} is removed from {over.id}, which is over")

        return removed()

    def _flush(self) -> None:
        """Wait until all is in the database, but not for long, as matches wait meanwhile."""
        try:
            self._store.flush(_FLUSH_S)
        except TimeoutError:
            raise UsageError(
                "expected a database that is written at once; try again when it is"
            ) from None

    @property
    def _on(self) -> Sequence[Competition]:
        """The competitions that are on; the host has one for a moment after its end."""
        return [each for each in self._arena.competitions if not each.is_over]

    def _chosen(self, text: str | None) -> Sequence[Competition]:
        """The competitions of that id or name, or all of them without one."""
        on = self._on
        chosen = [each for each in on if text is None or text in (each.id, each.plan.run)]
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
    """Raise `UsageError` unless a competition that is over can go on."""
    if row.state is not CompetitionState.FINISHED:
        raise UsageError(
            "expected a match of a competition that goes on or is finished, "
            f"{row.id} is {row.state.value}"
        )


def _restored(match: MatchRow) -> str:
    """A match that counts again, and who is out by it."""
    out = ", ".join(match.players[seat] for seat in match.result.out)
    return f"{match.id}{f' ({out} is out by {match.result.termination.kind.value})' if out else ''}"


def _ids(competitions: Sequence[Competition]) -> str:
    return ", ".join(competition.id for competition in competitions)


def _import_summary(done: Imported) -> str:
    old = done.changed + done.same
    text = f"{len(done.new):,} new; {old:,} known, {done.changed:,} of them changed"
    if done.revoked:
        text += f"; without a token, as before: {', '.join(done.revoked)}"
    return text
