"""Runs a ladder while it is open: free bots are paired again and again until it is closed (K4).

`arena/formats/ladder.py` decides who plays whom; this module decides when. A bot rests after a
match, so that a ladder neither fills the disk nor keeps bots from other competitions. After an
offence all bots of its owner rest, longer each time (`arena/formats/pauses.py`). A ladder waits for
nobody, so nobody is absent, and a void match is not repeated.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain, islice

from arena.competitions.arbiter import Arbiter, EndedMatch
from arena.competitions.stage import CompetitionStage
from arena.formats.ladder import Ladder, pairings
from arena.formats.schedule import Pairing
from arena.games.names import owner_of, public_name

__all__ = ["LadderStage"]

_AT_ONCE = 16  # tables that are opened in one pass; hundreds would block the event loop
_CROWD = 100  # bots; with more, changes are handled together, as each look takes a while
_GATHER_S = 0.1  # between two looks in a crowd
_WAIT_S = 1.0  # how long bots that have just met wait for others before they meet again


class LadderStage(CompetitionStage):
    """The matches of a ladder.

    `ladder` returns the current ratings; `first` is the number of the next pairing.
    """

    settled = 0  # counted here, unlike the property of the base class

    def __init__(self, arbiter: Arbiter, ladder: Callable[[], Ladder], first: int) -> None:
        super().__init__(arbiter)
        self._ladder = ladder
        self._number = first
        self._rests: set[str] = set()
        self._owners_rest: set[str] = set()
        self._timers: set[asyncio.TimerHandle] = set()
        self._waits = self._gathers = self._is_crowded = False
        self.settled = first - 1  # including matches under an earlier arena

    def close(self) -> None:
        if not self._done.done():
            self._done.set_result(None)

    def reopen(self, first: int = 1, *, retries: bool = False) -> None:
        # The result that was taken back may have been an offence.
        self._owners_rest.clear()
        self.seat(())

    def look_anew(self) -> None:
        """Let new versions take over, also in matches that have not begun."""
        self._arbiter.withdraw_replaced()
        self.seat(())

    def seat(self, names: Sequence[str]) -> None:
        """Pair all free bots, not only `names`, as every free bot affects who plays whom.

        With many bots this takes a while, so changes within `_GATHER_S` are handled together.
        """
        if not self._is_crowded:
            self._seat(rematch=False)
        elif not self._gathers:
            self._gathers = True
            self._later(_GATHER_S, self._gathered)

    def _seat(self, *, rematch: bool) -> None:
        if self._done.done() or self._arbiter.is_halted:
            return
        try:
            free = self._free()
            seats = self._arbiter.plan.rules.seats
            if len(free) < seats:
                return
            opened = self._open_some(free, rematch=rematch)
        except Exception as error:
            self._fail(error)
            return
        if len(opened) >= _AT_ONCE:  # let the event loop do other work in between
            self._later(0.0, partial(self._seat, rematch=rematch))
            return
        seated = Counter(name for players in opened for name in players)
        left = sum(free[name] > seated[name] for name in free)
        if left >= seats and not rematch and not self._waits:
            self._waits = True
            rests = not all(free.values())
            self._later(
                max(_WAIT_S, self._arbiter.plan.pause_s) if rests else _WAIT_S, self._rematch
            )

    def _open_some(self, free: Mapping[str, int], *, rematch: bool) -> Sequence[tuple[str, ...]]:
        """Open matches between free bots, and return their players.

        A bot without a free table here meets only bots that hosts can start as well.
        """
        playing = [pairing.players for pairing in self._opened.values()]
        seats = self._arbiter.plan.rules.seats
        slow = self._bots.restless
        tables = pairings(free, seats, self._ladder(), playing, rematch, slow)
        opened, full = [], set[str]()
        for players in tuple(islice(tables, _AT_ONCE)):
            without = self._without_table(players)
            full.update(without)
            if not without:
                self._open(players)
                opened.append(players)
        if full:
            seated = Counter(chain.from_iterable(opened))
            rest = {name: free[name] - seated[name] for name in free if name not in full}
            opened += self._open_some(rest, rematch=rematch)
        return opened

    def _without_table(self, players: Sequence[str]) -> Sequence[str]:
        """Return the bots without a free table, if the match of these bots needs tables here."""
        if not self._bots.has_hosts or self._bots.are_on_hosts(players):
            return ()
        sessions = map(self._bots.player, players)  # None for submitted bots
        return [player.name for player in sessions if player is not None and not player.is_free]

    def _gathered(self) -> None:
        self._gathers = False
        self._seat(rematch=False)

    def _rematch(self) -> None:
        self._waits = False
        self._seat(rematch=True)

    def _free(self) -> dict[str, int]:
        """Return the bots that are here, and how many more matches each can play (0 at rest)."""
        rests = bool(self._arbiter.plan.pause_s)
        playing = Counter(name for pairing in self._opened.values() for name in pairing.players)
        left = self._who_left()
        players, submitted = self._bots.plays(), self._bots.climbing_submissions()
        self._is_crowded = len(players) + len(submitted) > _CROWD
        free = {
            player.name: player.tables - len(player.chairs) - player.held
            for player in players
            if player.is_free
        }
        on_hosts = [player.name for player in players if self._bots.is_on_hosts(player.name)]
        at_once = self._bots.launched_at_once if submitted or on_hosts else 0
        restless = self._bots.restless
        most = {name: 1 if name in restless else at_once for name in submitted}
        free |= {
            name: most[name] - playing[name] for name in submitted if playing[name] < most[name]
        }
        free |= {
            name: max(free.get(name, 0), at_once - playing[name])
            for name in on_hosts
            if playing[name] < at_once
        }
        return {
            name: 0 if name in self._rests else 1 if rests else tables
            for name, tables in free.items()
            if not (rests and playing[name])
            and not self._bots.is_barred(name)
            and not left.get(owner_of(name), set()) - {name}
            and not self._owner_rests(owner_of(name))
        }

    def _who_left(self) -> dict[str, set[str]]:
        """Return, by owner, the bots that are or were away from a match that goes on.

        The owner's other bots get no match meanwhile. Otherwise one token could hold up all tables.
        """
        owners: dict[str, set[str]] = {}
        for table in self._arbiter.tables:
            for chair in table.chairs:
                name = public_name(chair.player.name)
                if chair.player.is_away or chair.has_been_away:
                    owners.setdefault(owner_of(name), set()).add(name)
        return owners

    def _owner_rests(self, owner: str) -> bool:
        """Return whether an owner rests after its offences; its bots are paired again later."""
        if owner in self._owners_rest:
            return True
        left_s = self._bots.rests_s(owner)
        if left_s:
            self._owners_rest.add(owner)
            self._later(left_s, partial(self._rested, self._owners_rest, (owner,)))
        return left_s > 0

    def _open(self, players: tuple[str, ...]) -> None:
        pairing = Pairing(self._number, players)
        self._number += 1
        self._opened[pairing.number] = pairing
        self._arbiter.open(pairing, partial(self._over, pairing))

    def _over(self, pairing: Pairing, ended: EndedMatch) -> None:
        del self._opened[pairing.number]
        self.settled += 1
        with self._failing():
            self._arbiter.note(pairing, ended)
            self._arbiter.flag_left(pairing)
        pause_s = self._arbiter.plan.pause_s
        if not ended.id and ended.is_fault:
            pause_s = max(pause_s, _WAIT_S)  # a new attempt would fail at once again
        if pause_s and not self._done.done():
            self._rests.update(pairing.players)
            self._later(pause_s, partial(self._rested, self._rests, pairing.players))
        self._arbiter.listener.freed(pairing.players)

    async def _until_over(self) -> None:
        try:
            await self._done
        finally:
            for timer in self._timers:
                timer.cancel()

    def _rested(self, resting: set[str], names: Sequence[str]) -> None:
        resting.difference_update(names)
        self._seat(rematch=False)

    def _later(self, delay_s: float, call: Callable[[], None]) -> None:
        def ring() -> None:
            self._timers.discard(timer)
            call()

        timer = self._loop.call_later(delay_s, ring)
        self._timers.add(timer)
