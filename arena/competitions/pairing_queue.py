"""The pairings of a stage that wait for a table, in the order in which they are tried. Pure.

All pairings of the same bots can be opened at the same times, so they are queued together, as one
lineup. Each bot has its lineups, numbered by turn. When a match ends, only the bots with a free
table have to be looked at, or the possible opponents of its players if these are fewer. This does
not depend on the size of the competition, or on how often bots meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from itertools import chain, count, islice
from typing import TypeAlias

from arena.formats.schedule import Pairing

__all__ = ["Lineup", "PairingQueue"]

_CROWD = 100  # most lineups of a bot that are sorted; more would take too long at every match

Lineup: TypeAlias = frozenset[str]
"""The bots of a pairing; only one if a bot meets itself."""


class PairingQueue:
    """The pairings that wait for a table; `on_idle` gets a bot for which none waits any more."""

    def __init__(self, on_idle: Callable[[str], None]) -> None:
        self._on_idle = on_idle
        self._pairings: dict[Lineup, dict[int, Pairing]] = {}
        self._lineups: dict[str, dict[Lineup, int]] = {}  # of each bot, with their turns
        self._turns = count()
        self._has_large = False  # lineups of more than two bots

    def __iter__(self) -> Iterator[str]:
        """Yield the bots of all pairings, also of those that no longer wait."""
        return iter(self._lineups)

    def add(self, pairing: Pairing) -> None:
        lineup = frozenset(pairing.players)
        self._has_large |= len(lineup) > 2
        self._pairings.setdefault(lineup, {})[pairing.number] = pairing
        for name in pairing.players:
            self._lineups.setdefault(name, {}).setdefault(lineup, next(self._turns))

    def discard(self, pairing: Pairing) -> None:
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
        """Try the lineup after all others of its bots, as these have just met."""
        for name in lineup:
            lineups = self._lineups.get(name, {})
            if lineup in lineups:
                del lineups[lineup]
                lineups[lineup] = next(self._turns)

    def waits_for(self, name: str) -> bool:
        return bool(self._lineups.get(name))

    def of(self, name: str) -> tuple[Pairing, ...]:
        lineups = self._lineups.get(name, ())
        return tuple(pairing for lineup in lineups for pairing in self.between(lineup))

    def lineups_of(self, name: str) -> Iterable[Lineup]:
        """Return all lineups of a bot, in any order."""
        return self._lineups.get(name, ())

    def between(self, lineup: Lineup) -> tuple[Pairing, ...]:
        return tuple(self._pairings.get(lineup, {}).values())

    def first(self, most: int) -> tuple[Pairing, ...]:
        """Return the first pairing of each lineup, in schedule order; at most `most`."""
        lineups = islice(self._pairings.values(), most)
        return tuple(next(iter(pairings.values())) for pairings in lineups)

    def lineups(self, name: str, had: Mapping[str, int], free: Set[str]) -> Iterator[Lineup]:
        """Yield the lineups of a bot whose bots are all `free`, in the order to try them.

        Lineups whose bots have had the fewest matches come first, and among these the ones that
        have not met for longest. `had` is the number of matches of each bot.
        """
        waiting = self._lineups.get(name, {}) if name in free else {}
        if len(waiting) <= len(free) or self._has_large:
            lineups = [lineup for lineup in waiting if lineup <= free]
        else:  # it has many opponents left, of which few are free
            lineups = [pair for other in free if (pair := frozenset((name, other))) in waiting]
            lineups.sort(key=waiting.__getitem__)

        def had_each(lineup: Lineup) -> float:
            return sum(map(had.__getitem__, lineup)) / len(lineup)

        return chain(sorted(lineups[:_CROWD], key=had_each), lineups[_CROWD:])
