"""What an instructor can have done while the arena runs: start, pause, resume, stop, void a match, remove a bot, change the roster.

Who it is has been established by a token when a word gets here. Everything that is done is written down with who and when; what
cannot be done changes nothing and is told in one line.
"""

from __future__ import annotations

import asyncio
import time
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import msgspec

from arena.competitions.arena_host import Host
from arena.competitions.competition import Competition
from arena.competitions.scheduler import Scheduler
from arena.engine.names import alike, spelled
from arena.formats.spec import Form
from arena.storage.live_results import LiveResults
from arena.storage.roster import Imported, Roster
from arena.storage.roster_csv import class_in
from arena.storage.store import Act, CompetitionRow, CompetitionState, Store
from protocol.errors import UsageError
from protocol.messages import Action, Done, Instruct

__all__ = ["AdminCommands"]

_FLUSH_S = 1.0  # a disk takes milliseconds; nobody else is served meanwhile
_DONE = {Action.PAUSE: "paused", Action.RESUME: "resumed", Action.STOP: "stopped"}


class AdminCommands:
    """Carries out an instructor's words on a running arena.

    Args:
        host: the arena.
        store: its database.
        reopen: has a competition played on that was over, as one of its matches is to be played again.
        wall: the time of day in Unix seconds.
        starter: begins competitions.
        roster: the class is put there.
        lines: what the arena has told lately.
    """

    def __init__(
        self,
        host: Host,
        store: Store,
        reopen: Callable[[Competition], object],
        wall: Callable[[], float] = time.time,
        *,
        starter: Scheduler,
        roster: Roster,
        lines: Callable[[], Sequence[str]],
    ) -> None:
        self._host = host
        self._store = store
        self._reopen = reopen
        self._wall = wall
        self._starter = starter
        self._roster = roster
        self._lines = lines

    def __call__(self, message: Instruct, who: str) -> Done | Awaitable[Done]:
        """Do as told; what needs the roster is done in a while.

        Raises:
            UsageError: it cannot be done; nothing has changed.
        """
        match message.action:
            case Action.STATUS:
                text = f"{len(self._host.competitions)} on"
                return self._done(text, lines=self._starter.waiting)
            case Action.PAUSE | Action.RESUME | Action.STOP:
                text = self._steer(message, who)
            case Action.VOID:
                text = self._void(message, who)
            case Action.REMOVE:
                return self._remove(message, who)
            case Action.LOG:
                lines = tuple(self._lines())
                return self._done(f"{len(lines)} lines", lines=lines)
            case Action.START:
                return self._start(message, who)
            case Action.IMPORT:
                return self._import(message, who)
            case Action.RENAME | Action.UNLIST:
                return self._relist(message, who)
        return self._done(text)

    def _done(
        self, text: str, tokens: Sequence[tuple[str, str]] = (), lines: Sequence[str] = ()
    ) -> Done:
        progress = (one.progress for one in self._host.competitions)
        return Done(text, tuple(progress), tuple(tokens), tuple(lines))

    def _start(self, message: Instruct, who: str) -> Awaitable[Done]:
        name = message.competition
        if name is None:
            raise UsageError("expected the name of a run or of a game, got none")

        async def started() -> Done:
            competition = await self._starter.start(
                name, form=message.form, matches=message.matches, settings=message.settings
            )
            text = f"started by {who}"
            self._store.acted(self._act(message, who, competition.id, text))
            await asyncio.sleep(0)  # then it is among those that are on
            away = competition.plan.not_there
            without = f"; not there: {', '.join(away)}" if away else ""
            return self._done(f"started: {competition.id}{without}")

        return started()

    def _import(self, message: Instruct, who: str) -> Awaitable[Done]:
        text = message.text
        if text is None:
            raise UsageError("expected the text of a roster, got none")

        def take() -> Imported:
            return self._roster.take(class_in(text, "roster"))

        async def imported() -> Done:
            done = await asyncio.to_thread(take)  # a class takes a while, and its turn
            said = _of_import(done)
            self._store.acted(self._act(message, who, None, f"{said}, by {who}"))
            return self._done(said, tokens=[(one.name, one.token) for one in done.new])

        return imported()

    def _relist(self, message: Instruct, who: str) -> Awaitable[Done]:
        """Somebody gets another name, or is taken off the roster."""
        name, new = message.bot, message.text
        if name is None:
            raise UsageError("expected a name on the roster, got none")
        self._check_idle(name)
        if message.action is Action.UNLIST:
            change = partial(self._roster.remove, name, who)
            said = "is on the roster no longer"
        elif new is None:
            raise UsageError("expected the new name, got none")
        else:
            if alike(new) != alike(name) and (use := self._host.presence.use_of(new)):
                raise UsageError(f"expected a name that nobody has: {use}")
            new = unicodedata.normalize("NFC", new.strip())
            change = partial(self._roster.rename, name, new, who)
            said = f"is {new} now"

        async def changed() -> Done:
            return self._done(f"{await asyncio.to_thread(change)} {said}")

        return changed()

    def _check_idle(self, name: str) -> None:
        """See that a name on the roster is not in use."""
        if (use := self._host.presence.use_of(name)) is not None:
            raise UsageError(f"expected a name that is not in use: {use}")
        if (run := self._starter.awaiting(name)) is not None:
            raise UsageError(
                f"expected a name that is not in use: it is among the players of the run {run}, which is still to be played"
            )

    def _steer(self, message: Instruct, who: str) -> str:
        done = _DONE[message.action]
        chosen = self._chosen(message.competition)
        if message.action is Action.PAUSE and message.competition is None:
            chosen = [one for one in chosen if not one.is_paused]
        if message.action is Action.RESUME:
            waiting = [one for one in chosen if one.is_paused or one.is_stuck]
            if chosen and not waiting:
                names = ", ".join(one.id for one in chosen)
                raise UsageError(
                    f"expected a competition that is paused, or has a match that waits after too many voids; going on: {names}"
                )
            chosen = waiting
        if not chosen:
            raise UsageError(f"expected a competition to be {done}, none is on")
        for competition in chosen:
            act = self._act(message, who, competition.id, f"{done} by {who}")
            if message.action is Action.PAUSE:
                competition.pause(act)
            elif message.action is Action.RESUME:
                competition.resume(act)
            else:
                competition.stop(act)
        return f"{done}: {', '.join(one.id for one in chosen)}"

    def _void(self, message: Instruct, who: str) -> str:
        match = message.match
        if match is None:
            raise UsageError("expected the id of a match to be void, got none")
        text = f"made void by {who}"
        for competition in self._host.competitions:
            is_here = competition.table(match) or competition.ledger.of_match(match)
            if is_here:
                act = self._act(message, who, competition.id, text)
                competition.void(match, act)
                self._host.restore(competition)
                return f"{match} is void and played again in {competition.id}"
        return self._void_afterwards(message, match, who, text)

    def _void_afterwards(self, message: Instruct, match: str, who: str, text: str) -> str:
        """The match is one of a competition that is over, which goes on for it."""
        self._flush()  # it may have ended just now
        played = self._store.played(match)
        if not played.counts:
            raise UsageError(f"expected a match that counts, {match} is void already")
        written = self._store.competition(played.competition)
        if written.state is not CompetitionState.FINISHED:
            raise UsageError(
                f"expected a match of a competition that goes on or is finished, {written.id} is {written.state.value}"
            )
        ledger = self._host.ledger_of(written)
        ledger.take_back(match, self._act(message, who, written.id, text))
        # Who is not here would be absent in a minute: that is for the instructor to time.
        here = {*self._host.presence.taken, *(bot.name for bot in written.plan.bots)}
        away = [name for name in played.players if name not in here]
        again = self._act(message, who, written.id, f"goes on for {match}")
        ledger.state_changed(CompetitionState.PAUSED if away else CompetitionState.RUNNING, again)
        self._reopen(self._host.competition(ledger, bool(away)))
        if away:
            return f"{match} is void; {written.id} is paused, as {', '.join(away)} is not here: `arena resume {written.id}` when it is"
        return f"{match} is void; {written.id} goes on for it"

    def _remove(self, message: Instruct, who: str) -> Done | Awaitable[Done]:
        name = message.bot
        if name is None:
            raise UsageError("expected the name of a bot to be removed, got none")
        name = self._host.presence.spelled(name)
        message = msgspec.structs.replace(message, bot=name)
        over = self._over(message.competition)
        if over is not None:
            return self._remove_afterwards(message, name, over, who)
        chosen = [one for one in self._chosen(message.competition) if one.is_in(name)]
        if not chosen:
            raise UsageError(
                f"expected a bot that is in a competition, got {name!r}; one that is over has to be named"
            )
        for competition in chosen:
            text = f"removed by {who}"
            competition.remove(name, self._act(message, who, competition.id, text))
        return self._done(f"{name} is removed from {', '.join(one.id for one in chosen)}")

    def _over(self, text: str | None) -> CompetitionRow | None:
        """The competition that is meant, if it is over and none that is on is meant."""
        if text is None or any(text in (one.id, one.plan.run) for one in self._host.competitions):
            return None
        try:
            written = self._store.find(text)
        except UsageError:  # `_chosen` says what there is
            return None
        return (
            written
            if written.state in (CompetitionState.FINISHED, CompetitionState.STOPPED)
            else None
        )

    def _remove_afterwards(
        self, message: Instruct, name: str, over: CompetitionRow, who: str
    ) -> Awaitable[Done]:
        """Strike a bot from a competition that is over: its standings are made of what is written, this act included."""
        if over.plan.form is Form.ELIMINATION:
            raise UsageError(
                f"expected a round robin, a league or a ladder, {over.id} is an elimination that is over: "
                "its tables were drawn by its results, so nobody can be taken out of it"
            )

        def spelling() -> str:
            results = LiveResults(self._store, over.id)
            known = [row.name for row in results.standings]
            bot = spelled(name, [one for one in known if one not in results.out])
            if bot in results.out or bot not in known:
                why = results.out.get(bot)
                said = "" if why is None else f", which is out by {why.kind.value}"
                raise UsageError(f"expected a bot that is in {over.id}, got {bot!r}{said}")
            return bot

        async def removed() -> Done:
            await self._store.flushed()
            bot = await asyncio.to_thread(spelling)  # reads all of its results
            word = msgspec.structs.replace(message, bot=bot)
            self._store.acted(self._act(word, who, over.id, f"removed by {who}"))
            return self._done(f"{bot} is removed from {over.id}, which is over")

        return removed()

    def _flush(self) -> None:
        """See that all that has happened is written.

        Raises:
            UsageError: that takes too long, as matches wait meanwhile.
        """
        try:
            self._store.flush(_FLUSH_S)
        except TimeoutError:
            raise UsageError(
                "expected a database that is written at once; try again when it is"
            ) from None

    def _chosen(self, text: str | None) -> Sequence[Competition]:
        """The competitions that are meant.

        Raises:
            UsageError: there is none of that id or name.
        """
        on = [one for one in self._host.competitions if not one.is_over]
        if text is None:
            return on
        chosen = [one for one in on if text in (one.id, one.plan.run)]
        if not chosen:
            known = ", ".join(one.id for one in on) or "none"
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


def _of_import(done: Imported) -> str:
    old = done.changed + done.same
    said = f"{len(done.new):,} new; {old:,} known, {done.changed:,} of them changed"
    if done.revoked:
        said += f"; without a token, as before: {', '.join(done.revoked)}"
    return said
