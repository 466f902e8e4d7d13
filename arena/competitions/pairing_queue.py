"""The pairings of a stage that wait for a table, in the order in which they are tried.

All pairings of the same bots can be opened at the same times, so they wait together, as one lineup. Every bot has a list of its
lineups: the end of a match costs a look at its own players' possible opponents, however often they meet, and however large the
competition is. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import chain, islice
from typing import TypeAlias

from arena.formats.schedule import Pairing

__all__ = ["Lineup", "PairingQueue"]

_CROWD = 100  # lineups of a bot that are sorted

Lineup: TypeAlias = frozenset[str]
"""Those who meet in a pairing; one, where a bot meets itself."""


class PairingQueue:
    """The pairings that wait.

    Args:
        on_idle: told of a bot for which nothing waits any more.
    """

    def __init__(self, on_idle: Callable[[str], None]) -> None:
        self._on_idle = on_idle
        self._pairings: dict[Lineup, dict[int, Pairing]] = {}
        self._lineups: dict[str, dict[Lineup, None]] = {}

    def __iter__(self) -> Iterator[str]:
        """The bots for which something waits."""
        return iter(self._lineups)

    def add(self, pairing: Pairing) -> None:
        """A pairing waits."""
        lineup = frozenset(pairing.players)
        self._pairings.setdefault(lineup, {})[pairing.number] = pairing
        for name in lineup:
            self._lineups.setdefault(name, {})[lineup] = None

    def discard(self, pairing: Pairing) -> None:
        """A pairing does not wait any more, if it did."""
        lineup = frozenset(pairing.players)
        waiting = self._pairings.get(lineup, {})
        waiting.pop(pairing.number, None)
        if waiting:
            return
        self._pairings.pop(lineup, None)
        for name in lineup:
            lineups = self._lineups.get(name, {})
            lineups.pop(lineup, None)
            if not lineups:
                self._on_idle(name)

    def move_to_end(self, lineup: Lineup) -> None:
        """They have met just now: others have not."""
        for name in lineup:
            lineups = self._lineups.get(name, {})
            if lineup in lineups:
                del lineups[lineup]
                lineups[lineup] = None

    def waits_for(self, name: str) -> bool:
        """Whether a bot has to be here for a pairing."""
        return bool(self._lineups.get(name))

    def of(self, name: str) -> tuple[Pairing, ...]:
        """The pairings of a bot."""
        lineups = self._lineups.get(name, ())
        return tuple(pairing for one in lineups for pairing in self.between(one))

    def between(self, lineup: Lineup) -> tuple[Pairing, ...]:
        """The pairings of a lineup."""
        return tuple(self._pairings.get(lineup, {}).values())

    def first(self, most: int) -> tuple[Pairing, ...]:
        """The first pairing of each lineup, in the order of the schedule; at most so many."""
        lineups = islice(self._pairings.values(), most)
        return tuple(next(iter(pairings.values())) for pairings in lineups)

    def lineups(
        self, name: str, had: Callable[[str], int], full: Collection[str]
    ) -> Iterator[Lineup]:
        """Those of a bot, first with those who have had the fewest matches, and of equals those who have not met for longest.

        Args:
            name: of the bot.
            had: says how many matches a bot has had.
            full: those who have no table free.
        """
        lineups = tuple(one for one in self._lineups.get(name, ()) if one.isdisjoint(full))

        def had_each(lineup: Lineup) -> float:
            return sum(map(had, lineup)) / len(lineup)

        return chain(sorted(lineups[:_CROWD], key=had_each), lineups[_CROWD:])
