"""A ladder: ratings that every match changes, and who plays next (K4).

Ratings are OpenSkill's: each bot has a mean `mu` and an uncertainty `sigma`. A match changes both
by the order of the players, whatever the margin. The model is Bradley-Terry's: every two at a table
are compared and the mean is taken, so that a table of four counts as one match and not as six.
(OpenSkill's Plackett-Luce rates two who share the first place no higher than the third.) The table
ranks by `mu - 3 * sigma`, a strength that the bot almost surely has: it starts at 0, and two lucky
matches bring nobody to the top. An offence is a lost match and strikes nobody (J3). A bot that the
instructor removes is struck, as if its matches had not been played. A new version of a bot keeps
its `mu`, and its `sigma` becomes at least half of a beginner's.

`pairings` says who plays next. Pure: the same outcomes in the same order give the same ladder.
OpenSkill is imported with the first match, as importing it takes long.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from math import sqrt
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from arena.formats.standings import RunningStandings, ranked
from arena.games.match import Result
from arena.games.names import owner_of
from arena.games.statistics import UnitSums
from protocol.errors import UsageError
from protocol.games import MOST_SEATS
from protocol.messages import Termination

if TYPE_CHECKING:
    from openskill.models import BradleyTerryPart

__all__ = ["Climber", "Ladder", "LadderRow", "pairings"]

# OpenSkill's own scale. With certain ratings, a bot that is BETA better wins two matches of three.
MU = 25.0
SIGMA = MU / 3
BETA = SIGMA / 2
NEW_VERSION = SIGMA / 2  # the least sigma of a bot that has changed (K4)
CAUTION = 3  # in sigmas; the true value is below `mu - 3 * sigma` once in 740 times

# Penalties of an opponent, added to its distance in the model's own measure (`_FreeBots._apart`).
# Between two bots with certain ratings, the better one wins two of three matches at distance EVEN.
EVEN = 0.5**0.5
JUST_MET = EVEN  # for the latest opponent
MEMORY = 8  # tables, over which that penalty fades; with fewer, cliques form
GAME_MORE = EVEN / 4  # for each match more than the free bot with the fewest has
MOST_MORE = EVEN / 2  # for all those: below JUST_MET, or newcomers would stay among themselves
_MOST_RATINGS = 1000  # per bot in a history: twice what a screen shows


class LadderRow(msgspec.Struct, frozen=True, kw_only=True):
    """A bot's line in a ladder."""

    rank: int | None  # shared by equals (1, 1, 3); None before its first match (K5) or if removed
    name: str
    rating: float = MU - CAUTION * SIGMA  # the order of the ladder
    mu: float = MU  # its estimated strength
    sigma: float = SIGMA  # the standard deviation of `mu`
    played: int = 0  # matches that count
    wins: int = 0  # in which it came first alone
    draws: int = 0  # in which it shared the first place
    losses: int = 0
    offences: int = 0  # losses by an offence of its own
    eliminated: Termination | None = None  # if the instructor has removed it
    version: str | None = None  # the latest that has played a match that counts; None without any


Lineup: TypeAlias = frozenset[str]
"""The bots at a table."""


class Climber:
    """One bot on the ladder, with its past."""

    __slots__ = ("chairs", "draws", "losses", "met", "mu", "offences", "sigma", "wins")

    def __init__(self) -> None:
        self.mu, self.sigma = MU, SIGMA
        self.wins = self.draws = self.losses = self.offences = 0
        self.chairs = [0] * MOST_SEATS  # by seat, how often it has sat there
        self.met = deque[Lineup](maxlen=MEMORY)  # its last tables, the latest first

    @property
    def played(self) -> int:
        return self.wins + self.draws + self.losses

    @property
    def rating(self) -> float:
        return self.mu - CAUTION * self.sigma


class Ladder(RunningStandings):
    """The standings of a ladder, ranked by rating.

    Bots that are not in `players` enter with their first match. An offence strikes nobody (J3).
    """

    line = LadderRow
    strikes = False

    def __init__(self, players: Sequence[str] = ()) -> None:
        super().__init__(players)
        self._climbers = {name: Climber() for name in players}
        self._model: BradleyTerryPart | None = None

    def _count(self, players: tuple[str, ...], result: Result, units: UnitSums | None) -> None:
        """Rate a match by scores, an offender last (J3); matches of removed bots do not count.

        Raises UsageError if it is not a match of two or more different bots.
        """
        _check(len(players))
        if len(set(players)) != len(players):
            raise UsageError(
                f"expected different bots in a rated match, got {' and '.join(players)}"
            )
        if not self._eliminated.keys().isdisjoint(players):
            for name in players:
                if name not in self._eliminated:  # listed, though the match does not count
                    self._climbers.setdefault(name, Climber())
            return
        climbers = [self._climbers.setdefault(name, Climber()) for name in players]
        ranks = _ranks(result)
        self._rate(climbers, ranks)
        for seat, climber in enumerate(climbers):
            climber.chairs[seat] += 1
            climber.met.appendleft(frozenset(players))
            if ranks[seat] > 0:
                climber.losses += 1
            elif ranks.count(0) > 1:
                climber.draws += 1
            else:
                climber.wins += 1
        if result.offender is not None:
            climbers[result.offender].offences += 1

    def eliminate(self, name: str, termination: Termination) -> None:
        """Strike a bot; call this before adding its matches, as ratings cannot be undone."""
        super().eliminate(name, termination)
        self._climbers.pop(name, None)

    def version_changed(self, name: str) -> None:
        """Note that another version of a bot is active. Ignored if the bot has not played."""
        climber = self._climbers.get(name)
        if climber is not None:
            climber.sigma = max(climber.sigma, NEW_VERSION)

    def __len__(self) -> int:
        return len(self._climbers) + len(self._eliminated)

    def __contains__(self, name: str) -> bool:
        return name in self._climbers or name in self._eliminated

    def climber(self, name: str) -> Climber:
        """A bot's past; that of a beginner for an unknown bot."""
        return self._climbers.get(name) or Climber()

    def _remaining(self) -> list[str]:
        return list(self._climbers)

    def _line(self, name: str, remaining: Collection[str]) -> LadderRow:
        climber = self._climbers[name]
        fields = ("rating", "mu", "sigma", "played", "wins", "draws", "losses", "offences")
        known: dict[str, Any] = {field: getattr(climber, field) for field in fields}
        return LadderRow(rank=None, name=name, **known)

    def _ranked(self, played: list[str], lines: Mapping[str, Any]) -> list[tuple[int, str]]:
        return ranked(played, lambda name: lines[name].rating)

    def _rate(self, climbers: Sequence[Climber], ranks: Sequence[int]) -> None:
        if self._model is None:
            from openskill.models import BradleyTerryPart

            self._model = BradleyTerryPart(mu=MU, sigma=SIGMA, beta=BETA, window_size=MOST_SEATS)
        rating = self._model.rating
        rated = self._model.rate(
            [[rating(climber.mu, climber.sigma)] for climber in climbers],
            ranks=[float(rank) for rank in ranks],
        )
        for climber, (new,) in zip(climbers, rated, strict=True):
            climber.mu, climber.sigma = new.mu, new.sigma


class RatingHistory:
    """How the ratings of a ladder changed, and when each version first played.

    Attributes:
        ratings: by bot (when, rating) after its matches, thinned out if there are many.
        versions: by bot (when, version) at the first match of each version.
    """

    def __init__(self) -> None:
        self.ratings: dict[str, list[tuple[float, float]]] = {}
        self.versions: dict[str, list[tuple[float, str]]] = {}

    def add(self, name: str, at: float, rating: float, version: str | None) -> None:
        """Add the rating of a bot after a match that ended at a Unix second."""
        points = self.ratings.setdefault(name, [])
        if len(points) >= _MOST_RATINGS:
            del points[1::2]
        points.append((at, rating))
        marks = self.versions.setdefault(name, [])
        if version and (not marks or marks[-1][1] != version):
            marks.append((at, version))


def pairings(
    free: Mapping[str, int],
    seats: int,
    ladder: Ladder,
    playing: Iterable[tuple[str, ...]] = (),
    rematch: bool = False,
    slow: Collection[str] = (),
) -> Iterator[tuple[str, ...]]:
    """Say who plays next, table after table, until too few bots are free for another table.

    `free` says how many more matches each bot accepts now, 0 while it rests. The bot with the
    fewest matches chooses first; of equals, the first in `free`. It gets the bots that are nearest
    in `mu`. A bot that it has just met, or that has had more matches than others, makes way for one
    that is about as near. Open matches, in `playing` in the order in which they began, count as
    played. Seats are chosen so that each bot sits in each about equally often.

    Bots that have just met, all at one table, would meet again and again if they alone are free at
    the same time. They wait as long as others play or rest, unless `rematch` is set. Nobody waits
    for bots that are `slow`, as their matches take long.

    Tables are tuples of names by seat. Raises UsageError for a game for one.
    """
    _check(seats)
    return _FreeBots(free, ladder, playing, slow).pair(seats, rematch)


class _Candidate(msgspec.Struct, kw_only=True):
    """A bot's past, including the matches being played and those just paired."""

    mu: float
    sigma: float
    games: int
    chairs: list[int]
    met: deque[Lineup]
    last: Lineup | None


class _FreeBots:
    """The free bots, while tables are made."""

    def __init__(
        self,
        free: Mapping[str, int],
        ladder: Ladder,
        playing: Iterable[tuple[str, ...]],
        slow: Collection[str],
    ) -> None:
        self._free = {name: tables for name, tables in free.items() if tables > 0}
        self._owners = Counter(map(owner_of, self._free))
        self._seen: dict[str, _Candidate] = {}
        self._playing: set[Lineup] = set()
        tables = tuple(playing)
        for name in dict.fromkeys([*free, *chain.from_iterable(tables)]):
            past = ladder.climber(name)
            self._seen[name] = _Candidate(
                mu=past.mu,
                sigma=past.sigma,
                games=past.played,
                chairs=past.chairs.copy(),
                met=past.met.copy(),
                last=past.met[0] if past.met else None,
            )
        self._worth_waiting_for = self._seen.keys() - slow
        for table in tables:
            self._sit(table)

    def pair(self, seats: int, rematch: bool) -> Iterator[tuple[str, ...]]:
        while players := self._next(seats, rematch):
            table = self._seated(players)
            self._sit(table)
            for name in table:
                self._free[name] -= 1
                if not self._free[name]:
                    del self._free[name]
                    self._owners -= Counter([owner_of(name)])  # drops owners with no free bot left
            yield table

    def _next(self, seats: int, rematch: bool) -> tuple[str, ...]:
        """Choose the players of the next table, in any order; empty if there is none."""
        if len(self._owners) < seats:  # avoids trying a thousand names of one owner
            return ()
        for name in sorted(self._free, key=lambda name: self._seen[name].games):
            others = self._nearest(name)
            table = (name, *others[: seats - 1])
            if rematch or not self._is_rematch(table):
                return table
            if len(others) >= seats:  # replace the last by the next nearest
                return (*table[:-1], others[seats - 1])
        return ()

    def _nearest(self, name: str) -> list[str]:
        """The free opponents, best first; none of the same owner, as it could lose on purpose."""
        others = [other for other in self._free if owner_of(other) != owner_of(name)]
        fewest = min((self._seen[other].games for other in others), default=0)

        def against(other: str) -> float:
            more = GAME_MORE * (self._seen[other].games - fewest)
            met = max(self._since(name, other), self._since(other, name))
            return self._apart(name, other) + JUST_MET * met + min(more, MOST_MORE)

        nearest: dict[str, str] = {}
        for other in sorted(others, key=against):
            nearest.setdefault(owner_of(other), other)  # one per owner
        return list(nearest.values())

    def _apart(self, name: str, other: str) -> float:
        """The distance of two bots in the model; uncertain ratings make it smaller."""
        first, second = self._seen[name], self._seen[other]
        return abs(first.mu - second.mu) / sqrt(2 * BETA**2 + first.sigma**2 + second.sigma**2)

    def _since(self, name: str, other: str) -> float:
        """How recently a bot met another: 1 at its last table, less for each one before, then 0."""
        for ago, lineup in enumerate(self._seen[name].met):
            if other in lineup:
                return 1 - ago / MEMORY
        return 0.0

    def _is_rematch(self, table: Sequence[str]) -> bool:
        """Whether these bots play or just played each other, and others are worth waiting for."""
        lineup = frozenset(table)
        if self._worth_waiting_for <= lineup:
            return False
        return lineup in self._playing or all(self._seen[name].last == lineup for name in table)

    def _seated(self, players: Sequence[str]) -> tuple[str, ...]:
        """Seat the players in the order in which they have least often sat in their seats.

        Of several such orders it takes the first that `permutations` would give; trying them all
        would take too long at a large table.
        """

        @cache
        def best(left: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
            """The fewest times these players have sat in the last seats, and the order for that."""
            seat = len(players) - len(left)
            orders = []
            for place, name in enumerate(left):
                often, order = best(left[:place] + left[place + 1 :])
                orders.append((self._seen[name].chairs[seat] + often, (name, *order)))
            return min(orders, key=itemgetter(0), default=(0, ()))

        return best(tuple(players))[1]

    def _sit(self, table: tuple[str, ...]) -> None:
        lineup = frozenset(table)
        self._playing.add(lineup)
        for seat, name in enumerate(table):
            seen = self._seen[name]
            seen.games += 1
            seen.chairs[seat] += 1
            seen.met.appendleft(lineup)


def _check(seats: int) -> None:
    if not 2 <= seats <= MOST_SEATS:
        raise UsageError(
            f"expected a game for 2 to {MOST_SEATS} on a ladder, got one for {seats}"
            + ("; for 1 it is a league" if seats == 1 else "")
        )


def _ranks(result: Result) -> list[int]:
    """By seat, how many players did better: by scores, with an offender behind all others (J3)."""
    keys = [(seat != result.offender, score) for seat, score in enumerate(result.scores)]
    return [sum(other > key for other in keys) for key in keys]
