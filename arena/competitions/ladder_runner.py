"""A ladder while it is open: whoever is free is paired, again and again, until the instructor closes it (K4).

`arena/formats/ladder.py` says who plays whom. Here is when: a bot rests after a match, so that a ladder neither fills the disk nor keeps bots
from the competitions that have an end; after an offence everything of its owner rests, longer each time (`arena/formats/pauses.py`). Nobody is waited for, nobody is absent, and what is void is not repeated: the next match comes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice

from arena.competitions.arbiter import Arbiter
from arena.competitions.stage_runner import CompetitionStopped
from arena.engine.match import MatchResult
from arena.engine.names import owner_of
from arena.formats.ladder import Ladder, pairings
from arena.formats.schedule import Outcomes, Pairing
from arena.referee.live_match import LiveMatch
from protocol.messages import Verdict

__all__ = ["LadderStage"]

_AT_ONCE = 16  # tables; opening hundreds in one pass would hold everybody up
_CROWD = 100  # to look at more bots at every change would hold everybody up
_GATHER_S = 0.1
_WAIT_S = 1.0
"""Those who have just met wait so long for somebody else before they meet again."""


class LadderStage:
    """The matches of a ladder; it looks like a stage of a schedule to whoever drives it.

    Args:
        arbiter: has the matches of its competition played.
        ladder: the ratings as they are at any time.
        first: the number of the next pairing.
    """

    waits_for: tuple[str, ...] = ()

    def __init__(self, arbiter: Arbiter, ladder: Callable[[], Ladder], first: int) -> None:
        self._arbiter = arbiter
        self._ladder = ladder
        self._number = first
        self._tables: dict[int, tuple[Pairing, LiveMatch]] = {}
        self._rests: set[str] = set()
        self._owners_rest: set[str] = set()
        self._timers: set[asyncio.TimerHandle] = set()
        self._waits = self._gathers = self._is_crowded = False
        self._loop = asyncio.get_running_loop()
        self._done: asyncio.Future[None] = self._loop.create_future()
        self.settled = 0

    @property
    def tables(self) -> tuple[LiveMatch, ...]:
        """The matches that are being played."""
        return tuple(table for _, table in self._tables.values())

    async def outcomes(self) -> Outcomes:
        """Play until it is closed.

        Raises:
            Stopped: the instructor has ended it.
            ArenaError: the results cannot be stored.
        """
        self.seat(())
        try:
            await self._done
        finally:
            self._done.cancel()
            for timer in self._timers:
                timer.cancel()
            for table in self.tables:
                self._arbiter.void_table(table, "its ladder was closed")
        return ()

    def stop(self) -> None:
        """End it here and now."""
        if not self._done.done():
            self._done.set_exception(CompetitionStopped())

    def close(self) -> None:
        """Its time is over."""
        if not self._done.done():
            self._done.set_result(None)

    def paused(self) -> None:
        """What is being played goes on."""

    def reopen(self, removed: Sequence[str] = (), *, retries: bool = False) -> None:
        """Go on after a pause, or without a result that was taken back and may have been an offence."""
        self._owners_rest.clear()
        self.seat(())

    def offended(self, name: str) -> None:
        """Nothing waits for it here."""

    def seat(self, names: Sequence[str]) -> None:
        """Pair whoever is free now, whatever `names` says: who plays whom depends on all who are free.

        With many of them that takes a while: what happens within a moment is looked at together.
        """
        if not self._is_crowded:
            self._seat(rematch=False)
        elif not self._gathers:
            self._gathers = True
            self._later(_GATHER_S, self._gathered)

    # --- within ---

    def _seat(self, *, rematch: bool) -> None:
        if self._done.done() or self._arbiter.is_paused:
            return
        try:
            free = self._free()
            seats = self._arbiter.plan.rules.seats
            if len(free) < seats:
                return
            playing = [pairing.players for pairing, _ in self._tables.values()]
            tables = pairings(free, seats, self._ladder(), playing, rematch)
            made = tuple(islice(tables, _AT_ONCE))
            for players in made:
                self._open(players)
        except Exception as error:
            if not self._done.done():
                self._done.set_exception(error)
            return
        if len(made) == _AT_ONCE:  # after whatever else there is to do
            self._later(0.0, partial(self._seat, rematch=rematch))
            return
        seated = Counter(name for table in made for name in table)
        left = sum(free[name] > seated[name] for name in free)
        if left >= seats and not rematch and not self._waits:
            self._waits = True
            self._later(_WAIT_S, self._rematch)

    def _gathered(self) -> None:
        self._gathers = False
        self._seat(rematch=False)

    def _rematch(self) -> None:
        self._waits = False
        self._seat(rematch=True)

    def _free(self) -> dict[str, int]:
        """Who could play now, and how many matches more; one at a time with rests in between."""
        rests = bool(self._arbiter.plan.pause_s)
        playing = {name for one, _ in self._tables.values() for name in one.players}
        left = self._who_left()
        players = self._arbiter.plays()
        self._is_crowded = len(players) > _CROWD
        return {
            player.name: 1 if rests else player.tables - len(player.chairs)
            for player in players
            if player.is_free
            and player.name not in self._rests
            and not (rests and player.name in playing)
            and not self._arbiter.is_barred(player.name)
            and not left.get(owner_of(player.name), set()) - {player.name}
            and not self._owner_rests(owner_of(player.name))
        }

    def _who_left(self) -> dict[str, set[str]]:
        """By owner, the bots that are or were away from a match that goes on: else one token with many names could hold all tables up."""
        owners: dict[str, set[str]] = {}
        for table in self.tables:
            for chair in table.chairs:
                name = chair.player.name
                if chair.player.is_away or chair.has_been_away:
                    owners.setdefault(owner_of(name), set()).add(name)
        return owners

    def _owner_rests(self, owner: str) -> bool:
        """Whether an owner rests after its offences; who is free is paired when that is over."""
        if owner in self._owners_rest:
            return True
        left_s = self._arbiter.rests_s(owner)
        if left_s:
            self._owners_rest.add(owner)
            self._later(left_s, partial(self._owner_rested, owner))
        return left_s > 0

    def _open(self, players: tuple[str, ...]) -> None:
        pairing = Pairing(self._number, players)
        self._number += 1
        table = self._arbiter.open(pairing, partial(self._over, pairing))
        self._tables[pairing.number] = pairing, table

    def _over(
        self, pairing: Pairing, table: LiveMatch, result: MatchResult, verdict: Verdict | None
    ) -> None:
        del self._tables[pairing.number]
        self.settled += 1
        try:
            self._arbiter.note(pairing, table, result, verdict)
        except Exception as error:
            if not self._done.done():
                self._done.set_exception(error)
            return
        pause_s = self._arbiter.plan.pause_s
        if pause_s and not self._done.done():
            self._rests.update(pairing.players)
            self._later(pause_s, partial(self._rested, pairing.players))
        self._arbiter.freed(pairing.players)

    def _rested(self, names: Sequence[str]) -> None:
        self._rests.difference_update(names)
        self._seat(rematch=False)

    def _owner_rested(self, owner: str) -> None:
        self._owners_rest.discard(owner)
        self._seat(rematch=False)

    def _later(self, delay_s: float, call: Callable[[], None]) -> None:
        def ring() -> None:
            self._timers.discard(timer)
            call()

        timer = self._loop.call_later(delay_s, ring)
        self._timers.add(timer)
