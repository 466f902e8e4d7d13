"""One stage of a competition while it is played, until every pairing has its outcome.

A stage opens matches when bots are free, knows which bots it waits for, and drops the pairings of
eliminated bots. The arbiter runs the matches, records them and knows who is out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

from arena.competitions.absences import Absences
from arena.competitions.arbiter import Arbiter, EndedMatch
from arena.competitions.pairing_queue import PairingQueue
from arena.competitions.stage import CompetitionStage
from arena.formats.schedule import Outcome, Outcomes, Pairing
from arena.games.match import Result
from arena.referee.bot_session import BotSession
from arena.referee.referee import MOST_VOIDS
from arena.referee.timers import Timer
from protocol.messages import Ending

__all__ = ["RunningStage"]

_GROW_S = 0.5  # between two checks for room for more matches
_QUEUED = 4  # matches of a submitted bot, so that some are between warm bots
_TRIES = 1_000  # pairings per check: some 5 ms
_TOGETHER_S = 10.0  # bots that are lost in one outage are missed one after another


class RunningStage(CompetitionStage):
    """A stage whose pairings are known in advance, such as a round robin.

    If stages overlap, `follow` gets the outcomes so far, by number, whenever there are new ones,
    and returns further pairings to play.
    """

    def __init__(
        self,
        arbiter: Arbiter,
        pairings: Sequence[Pairing],
        follow: Callable[[Mapping[int, Outcome]], Sequence[Pairing]] | None = None,
    ) -> None:
        super().__init__(arbiter)
        self._follow = follow
        self._pairings: list[Pairing] = []
        self._playing: Counter[str] = Counter()  # by bot, matches at its tables
        self._launched: Counter[str] = Counter()  # by bot, matches that need none of its tables
        self._counted: dict[int, Counter[str]] = {}  # which of the two counts each match
        self.progress = 0.0
        self._ended = 0
        self._free: set[str] = set()  # bots, except those without a free table at the last look
        self._outcomes: dict[int, Outcome] = {}
        self._voids: Counter[int] = Counter()
        self._stuck: dict[int, Pairing] = {}
        self._had: Counter[str] = Counter()  # matches of each bot, also those being played
        self._turn: Iterator[str] = iter(())
        self._growth: Timer | None = None
        self._tries = 0
        self._absences = Absences(arbiter.gateway.timers.after, self._loop.time, self._absent)
        self._queue = PairingQueue(self._absences.cancel)
        self._add(pairings)
        self._extend()
        self._end_if_all_settled()

    @property
    def waits_for(self) -> tuple[str, ...]:
        stuck = (name for pairing in self._stuck.values() for name in pairing.players)
        return tuple(dict.fromkeys((*self._absences, *stuck)))

    def wants(self, name: str) -> bool:
        return self._queue.waits_for(name) and not self._arbiter.is_halted

    @property
    def waiting(self) -> int:
        return len(self._pairings) - len(self._outcomes) - self.playing

    def queue(self, most: int) -> tuple[Pairing, ...]:
        return self._queue.first(most)

    def waiting_for(self, name: str) -> tuple[Pairing, ...]:
        stuck = (pairing for pairing in self._stuck.values() if name in pairing.players)
        return (*self._queue.of(name), *stuck)

    @property
    def is_stuck(self) -> bool:
        return bool(self._stuck)

    @property
    def settled(self) -> int:
        return len(self._outcomes)

    async def outcomes(self) -> Outcomes:
        await super().outcomes()
        return tuple(self._outcomes[pairing.number] for pairing in self._pairings)

    def halted(self) -> None:
        self._absences.cancel_all()

    def reopen(self, first: int = 1, *, retries: bool = False) -> None:
        for pairing in tuple(self._pairings):
            if pairing.number < first or pairing.number in self._opened:
                continue
            result = self._arbiter.ledger.known(pairing)
            has_outcome = pairing.number in self._outcomes
            if result is not None and not has_outcome:
                self._settle(pairing, result)
                self._ruled(pairing, result)
            elif result is None and has_outcome:
                if self._bots.is_out(*pairing.players):
                    self._outcomes[pairing.number] = Outcome(pairing, None)
                else:
                    del self._outcomes[pairing.number]
                    self._queue.add(pairing)
        done = self._done
        if done.done() and not done.cancelled() and done.exception() is None:
            self._done = self._loop.create_future()
            self._end_if_all_settled()
        if retries:
            for pairing in self._stuck.values():
                self._voids[pairing.number] = 0
                self._queue.add(pairing)
            self._stuck.clear()
        for name in tuple(self._arbiter.ledger.book.removed):
            self._forfeit(name)
        self.seat(tuple(self._queue))

    def offended(self, name: str) -> None:
        self._forfeit(name)

    def seat(self, names: Sequence[str]) -> None:
        self._free.update(names)
        with self._failing():
            for name in names:
                while self._seat_once(name):
                    pass

    def look_anew(self) -> None:
        self.seat(tuple(self._queue))

    async def _until_over(self) -> None:
        self._grow()
        try:
            await self._done
            while self.settled < len(self._pairings):
                await self._done  # a result has just been taken back
        finally:
            if self._growth is not None:
                self._growth.cancel()

    def _add(self, pairings: Sequence[Pairing]) -> None:
        """Queue pairings that have no result yet, may still have one, and are not stuck."""
        self._pairings += pairings
        for pairing in pairings:
            result = self._arbiter.ledger.known(pairing)
            if result is None and not self._bots.is_out(*pairing.players):
                if self._arbiter.ledger.left_again(pairing) is not None:
                    self._stuck[pairing.number] = pairing  # also after a restart
                    self._arbiter.void_too_often(pairing)
                else:
                    self._queue.add(pairing)
            else:
                self._outcomes[pairing.number] = Outcome(pairing, result)
                self._had.update(pairing.players)

    def _extend(self) -> None:
        """Queue the pairings that follow from the outcomes so far, and seat their bots soon."""
        names: dict[str, None] = {}
        while self._follow is not None and (pairings := self._follow(self._outcomes)):
            self._add(pairings)
            names |= {name: None for pairing in pairings for name in pairing.players}
        if names:
            self._loop.call_soon(self.seat, tuple(names))

    def _seat_once(self, name: str) -> bool:
        """Try a pairing of each lineup of a bot; True if one was opened and it has tables left."""
        has_opened = False
        for lineup in self._queue.lineups(name, self._had, self._free):
            for pairing in self._queue.between(lineup):
                if pairing.is_alone and self._meets_others(name):
                    break
                self._open_if_free(pairing)
                if pairing.number in self._opened:
                    has_opened = True
                    self._queue.move_to_end(lineup)
                if pairing.number not in self._outcomes:
                    break  # a settled pairing is skipped; the next one may still be played
            if not self._has_room(name):
                return False
        return has_opened

    def _meets_others(self, name: str) -> bool:
        """Return whether a bot has opponents left that are here: it meets them before itself.

        A match against itself takes two tables. If it took turns with the other matches, bots with
        few tables would never have two free at the same time.
        """
        return any(
            len(lineup) > 1 and all(self._is_here(other) for other in lineup)
            for lineup in self._queue.lineups_of(name)
        )

    def _grow(self) -> None:
        """Look for bots that may play more matches as `progress` grows, though no match ended."""
        if self.progress < 1.0:
            progress = (table.progress for table in self._arbiter.tables)
            self.progress = max(self.progress, *progress, 0.0)
        enough = self._tries + _TRIES
        while not self._arbiter.is_halted and self._tries < enough:
            name = next(self._turn, None)
            if name is None:
                self._turn = iter(tuple(self._queue))
                self._free.update(self._queue)
                break
            bot = self._here(name)
            if bot is not None and self._room(bot) > 0:
                self.seat([name])
        self._growth = self._arbiter.gateway.timers.after(_GROW_S, self._grow)

    def _open_if_free(self, pairing: Pairing) -> None:
        """Open a pairing's match if all its players are free; settle it if it cannot be played."""
        self._tries += 1
        if self._done.done() or self._arbiter.is_halted:
            return
        if self._bots.is_out(*pairing.players) or self._cannot_meet_itself(pairing):
            self._settle(pairing, None)
            return
        needs_tables = not self._bots.are_on_hosts(pairing.players)
        if all(
            self._free_tables(name, needs_tables=needs_tables) >= pairing.players.count(name)
            for name in pairing.players
        ):
            self._queue.discard(pairing)
            for name in pairing.players:
                self._absences.forgive(name)
            if not self._opened:
                self.progress, self._ended = 0.0, 0  # the first match, or the first after a pause
            matches = self._playing if needs_tables else self._launched
            self._counted[pairing.number] = matches
            matches.update(pairing.players)
            self._had.update(pairing.players)
            self._opened[pairing.number] = pairing
            self._arbiter.open(pairing, partial(self._over, pairing))

    def _free_tables(self, name: str, *, needs_tables: bool = True) -> int:
        """Return how many more matches a bot may play now; an absent bot gets a deadline.

        With `needs_tables` they are at its own tables, otherwise on hosts.
        """
        is_submitted = self._bots.submission(name) is not None
        if is_submitted or not needs_tables:
            open_now = self._launched[name] + (self._playing[name] if is_submitted else 0)
            is_restless = name in self._bots.restless
            room = (1 if is_restless else max(self._bots.launched_at_once, _QUEUED)) - open_now
            if room < 1 and is_submitted:
                self._free.discard(name)
            return room
        player = self._here(name)
        if player is None:
            idle = self._done.done() or self._arbiter.is_halted
            if name not in self._absences and not idle:
                self._absences.begin(name, self._arbiter.awaited(name))
            return 0
        self._absences.came(name)
        room = self._room(player)
        if room < 1 and not self._bots.is_on_hosts(name):
            self._free.discard(name)
        return room

    def _has_room(self, name: str) -> bool:
        """Return whether a bot may play one more match now, here or on a host."""
        if not self._bots.is_on_hosts(name):
            return self._free_tables(name) > 0
        player = self._here(name)
        has_room = self._free_tables(name, needs_tables=False) > 0 or (
            player is not None and self._room(player) > 0
        )
        if not has_room:
            self._free.discard(name)
        return has_room

    def _room(self, player: BotSession) -> int:
        share = self._arbiter.listener.share(self._arbiter.ledger.id, player.name)
        return player.free_tables(self._playing[player.name], self.progress, share)

    def _here(self, name: str) -> BotSession | None:
        """Return the bot, unless its connection is lost or it is late and silent since."""
        player = self._bots.player(name)
        if player is None or player.is_away or player.is_unresponsive:
            return None
        return player

    def _is_here(self, name: str) -> bool:
        """Return whether a bot can be given matches; a submission always can."""
        return self._bots.submission(name) is not None or self._here(name) is not None

    def _cannot_meet_itself(self, pairing: Pairing) -> bool:
        """Return whether a bot that is to meet itself has too few tables."""
        name = pairing.players[0]
        player = self._bots.player(name)
        return player is not None and player.tables < pairing.players.count(name)

    def _absent(self, name: str) -> None:
        """Rule that a bot has not come in time to the matches that wait for it.

        Bots that are equally late are ruled on together; otherwise the order of deadlines would
        decide who is out (J9). So a bot waits for those that are soon late, or have no match left
        without it.
        """
        if self._is_here(name):
            return
        late = {name, *(other for other in self._absences if self._absences.is_due(other))}
        for bot in sorted(late):
            waiting = self.waiting_for(bot)
            if all(pairing.is_alone for pairing in waiting):  # a forfeit would help no opponent
                late.discard(bot)
                for pairing in waiting:
                    self._settle(pairing, None)
        if name not in late:
            return
        met = self._opponents(name)
        soon = [other for other in met if self._absences.is_due(other, _TOGETHER_S)]
        first = self._first(self.waiting_for(name)).players
        if not self._absences.extend(name, (*first, *soon, *self._left_without(late))):
            self._forfeit_together(late)

    def _forfeit_together(self, late: Collection[str]) -> None:
        """Let each of these bots forfeit one match, two of them the same one if possible.

        A bot that is equally late must not win a match. If no other late bot is left for it, it
        waits for its next opponents, if there are any. Bots with the fewest absences come first,
        then those with the fewest choices.
        """
        book, left = self._arbiter.ledger.book, {bot: self._opponents(bot) for bot in late}
        for met in left.values():
            met.intersection_update(late)

        def rank(bot: str) -> tuple[int, int, str]:
            return book.events(bot), len(left[bot]), bot

        tables: list[tuple[Pairing, list[str]]] = []
        while others := [bot for bot in left if left[bot]]:
            bot = min(others, key=rank)
            other = min(left[bot], key=rank)
            pairing = next(each for each in self.waiting_for(bot) if other in each.players)
            names = [each for each in dict.fromkeys(pairing.players) if each in left]
            tables.append((pairing, names))
            for each in names:
                del left[each]
            for met in left.values():
                met.difference_update(names)
        stays = {
            bot
            for _, names in tables
            for bot in names
            if self._arbiter.ledger.forgives(bot, Ending.ABSENT, "")
        }
        byes = {bot: met for bot in sorted(left) if (met := self._opponents(bot) & stays)}
        for bot in sorted(left.keys() - byes.keys()):  # before all its opponents are out
            self._forfeit(bot)
        for pairing, names in tables:
            self._forfeit(names[0], names[1:], pairing)
        for bot, met in byes.items():
            self._absences.cancel(bot)
            self._absences.forgive(bot)
            if not self._absences.extend(bot, met):
                self._forfeit(bot)

    def _opponents(self, name: str) -> set[str]:
        """Return the other bots of all matches that wait for a bot."""
        return {other for each in self.waiting_for(name) for other in each.players} - {name}

    def _first(self, waiting: Sequence[Pairing]) -> Pairing:
        """Return the pairing that a bot forfeits: preferably against others, for it to count."""
        return min(waiting, key=lambda pairing: pairing.is_alone)

    def _left_without(self, names: Collection[str]) -> list[str]:
        """Return the absent bots that have no match left once these are out: they are absent with
        them.
        """
        met = set().union(*map(self._opponents, names)).difference(names)
        out = {*names}
        return [
            other
            for other in met
            if other in self._absences
            # `all` ends at the first match that is left, as a whole class may be away at once.
            and all(
                out.union((other,)).issuperset(left.players) for left in self.waiting_for(other)
            )
        ]

    def _forfeit(
        self, name: str, also: Collection[str] = (), pairing: Pairing | None = None
    ) -> None:
        """Let a bot forfeit a match that waits for it, and all such matches if it is then out.

        The bots `also` forfeit that match, too.
        """
        waiting = self.waiting_for(name)
        if not waiting or self._done.done():
            return
        with self._failing():
            pairing = pairing or self._first(waiting)
            seat = pairing.players.index(name)
            late = [seat for seat, other in enumerate(pairing.players) if other in also]
            result = self._arbiter.forfeit(pairing, seat, late)
            if result.termination.kind is Ending.VOID:
                self._queue.discard(pairing)
                self._repeat(pairing)
                self.seat(pairing.players)
            else:
                self._settle(pairing, result)
                self._ruled(pairing, result)

    def _over(self, pairing: Pairing, ended: EndedMatch) -> None:
        del self._opened[pairing.number]
        self._counted.pop(pairing.number).subtract(pairing.players)
        self._had.subtract(pairing.players)  # until it is settled
        self._free.update(pairing.players)
        if ended.result.termination.kind is Ending.COMPLETED:
            # One short match says little, as matches of some games differ much in length.
            self._ended += 1
            self.progress = max(self.progress, min(1.0, self._ended / (self.playing + 1)))
        with self._failing():
            noted = self._arbiter.note(pairing, ended)
            if noted.termination.kind is not Ending.VOID:
                self._settle(pairing, noted)
                self._ruled(pairing, noted)
            elif self._bots.is_out(*pairing.players):
                self._settle(pairing, None)
            elif ended.is_fault:
                self._repeat(pairing)
            else:
                self._queue.add(pairing)  # the instructor has voided it
        self._arbiter.listener.freed(pairing.players)

    def _repeat(self, pairing: Pairing) -> None:
        """Play a match again that is void by nobody's offence, but not for ever (J5, J9)."""
        self._voids[pairing.number] += 1
        left_again = self._arbiter.ledger.left_again(pairing) is not None
        if left_again or self._voids[pairing.number] >= MOST_VOIDS:
            self._stuck[pairing.number] = pairing
            self._arbiter.void_too_often(pairing)
        else:
            self._queue.add(pairing)

    def _ruled(self, pairing: Pairing, result: Result) -> None:
        """Drop offenders that are out; wait again for forgiven ones that are away (J3)."""
        for name in [pairing.players[seat] for seat in result.out]:
            if self._bots.is_out(name):
                self._drop_offender(name)
            else:
                self._absences.forgive(name)
                self._absences.cancel(name)
                if self._queue.waits_for(name):
                    self._free_tables(name)

    def _drop_offender(self, name: str) -> None:
        """Cancel the matches of an offender, and settle waiting ones as never played (J3)."""
        for pairing in tuple(self._opened.values()):
            if name in pairing.players:
                self._arbiter.cancel(pairing, f"{name} has been eliminated")
        for pairing in self.waiting_for(name):
            self._settle(pairing, None)

    def _settle(self, pairing: Pairing, result: Result | None) -> None:
        self._queue.discard(pairing)
        self._stuck.pop(pairing.number, None)
        self._outcomes[pairing.number] = Outcome(pairing, result)
        if result is not None:
            for name in pairing.players:
                self._had[name] += 1
        self._extend()
        self._end_if_all_settled()

    def _end_if_all_settled(self) -> None:
        if self.settled == len(self._pairings) and not self._done.done():
            self._done.set_result(None)
