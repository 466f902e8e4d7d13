"""A ladder: ratings that every match moves, and who plays next (K4).

Ratings are OpenSkill's: of every bot a mean `mu` and an uncertainty `sigma`; a match moves both by who came before whom, whatever
the margin. The model is Bradley-Terry's, with every two at a table compared and the mean of that taken, so that a table of four
counts as one match and not as six. (OpenSkill's Plackett-Luce rates two who share the first place no higher than the third.)
The table ranks by `mu - 3 * sigma`, what the bot is almost sure to be worth: it starts at 0, and nobody is first for two
lucky matches. An offence strikes nobody from a ladder: it is a lost match, and counted (J3). Whom the instructor removes is struck, as if
its matches had not been played.

`pairings` says who plays next. Pure, like everything here: no clock, no I/O, no random number; the same outcomes in the same order
give the same ladder. OpenSkill is imported with the first match, so that nobody else waits for it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from math import sqrt
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from arena.engine.match import Result
from arena.engine.names import owner_of
from arena.formats.schedule import Outcome
from protocol.errors import UsageError
from protocol.messages import Ending, Termination

if TYPE_CHECKING:
    from openskill.models import BradleyTerryPart

__all__ = ["Climber", "Ladder", "LadderRow", "pairings"]

SEATS = (2, 4)  # the tables that are rated; the dealer has no rating

# OpenSkill's own scale. With ratings that are sure, a bot that is BETA better wins two matches of three.
MU = 25.0
SIGMA = MU / 3
BETA = SIGMA / 2
CAUTION = 3  # in sigmas; the true value is below `mu - 3 * sigma` once in 740 times

# What stands against an opponent, beside how far away it is in the model's own measure (`_FreeBots._apart`): there two bots whose
# ratings are sure are EVEN apart if the better wins two matches of three.
EVEN = 0.5**0.5
JUST_MET = EVEN  # so another one that is as much farther off is "about as near"
MEMORY = 8  # tables; what was longer ago counts that much less, or cliques would form
GAME_MORE = EVEN / 4  # for every match that it has had more than others that are free
MOST_MORE = EVEN / 2  # below JUST_MET, or newcomers would stay among themselves


class LadderRow(msgspec.Struct, frozen=True, kw_only=True):
    """A bot's line in a ladder.

    Attributes:
        rank: shared by those who are level (1, 1, 3); None for those who have not played (K5), and for the removed, who are last.
        name: of the bot.
        rating: `mu - 3 * sigma`, which ranks; 0 at the start.
        mu: its strength as estimated; 25 at the start.
        sigma: the standard deviation of that.
        played: matches that count.
        wins: in which it was first alone.
        draws: in which it shared the first place.
        losses: all others.
        offences: those of its losses that an offence of its own ended.
        eliminated: that the instructor has removed it, or None.
    """

    rank: int | None
    name: str
    rating: float = MU - CAUTION * SIGMA
    mu: float = MU
    sigma: float = SIGMA
    played: int = 0
    wins: int = 0
    draws: int = 0
    losses: int = 0
    offences: int = 0
    eliminated: Termination | None = None


Lineup: TypeAlias = frozenset[str]
"""Who sat at a table."""


class Climber:
    """One bot on the ladder, while it is being counted.

    Attributes:
        mu, sigma: its rating.
        wins, draws, losses, offences: as in its row.
        chairs: by seat, how often it has sat there.
        met: who sat at its last tables, itself included; the latest first.
    """

    __slots__ = ("chairs", "draws", "losses", "met", "mu", "offences", "sigma", "wins")

    def __init__(self) -> None:
        self.mu, self.sigma = MU, SIGMA
        self.wins = self.draws = self.losses = self.offences = 0
        self.chairs = [0] * max(SEATS)
        self.met = deque[Lineup](maxlen=MEMORY)

    @property
    def played(self) -> int:
        """Matches that count."""
        return self.wins + self.draws + self.losses

    @property
    def rating(self) -> float:
        """What ranks."""
        return self.mu - CAUTION * self.sigma


class Ladder:
    """The standings of a ladder.

    Args:
        players: bots that are listed before they have played; others enter by their first match.
    """

    def __init__(self, players: Sequence[str] = ()) -> None:
        self._climbers = {name: Climber() for name in players}
        self._eliminated: dict[str, Termination] = {}
        self._model: BradleyTerryPart | None = None

    def add(self, outcome: Outcome) -> None:
        """Rate a match: by scores, an offender last (J3); unplayed and void ones, and those of the removed, count for nothing.

        Raises:
            UsageError: it is not a match of two or four different bots.
        """
        players, result = outcome.pairing.players, outcome.result
        if result is None or result.termination.kind is Ending.VOID:
            return
        _check(len(players))
        if len(set(players)) != len(players):
            raise UsageError(
                f"expected different bots in a rated match, got {' and '.join(players)}"
            )
        if not self._eliminated.keys().isdisjoint(players):
            for name in players:
                if name not in self._eliminated:  # it is listed all the same
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
        """Strike a bot before its matches are added: ratings follow from the order, so nothing can be taken out of them later."""
        self._eliminated.setdefault(name, termination)
        self._climbers.pop(name, None)

    def rows(self) -> tuple[LadderRow, ...]:
        """The table: by rating, then those who have not played, and the removed at the end."""

        def key(name: str) -> tuple[bool, float]:
            climber = self._climbers[name]
            return climber.played > 0, climber.rating

        rows: list[LadderRow] = []
        order = sorted(self._climbers, key=key, reverse=True)
        for place, name in enumerate(order, start=1):
            level = place > 1 and key(order[place - 2]) == key(name)
            climber = self._climbers[name]
            rows.append(
                LadderRow(
                    rank=(rows[-1].rank if level else place) if climber.played else None,
                    name=name,
                    rating=climber.rating,
                    mu=climber.mu,
                    sigma=climber.sigma,
                    played=climber.played,
                    wins=climber.wins,
                    draws=climber.draws,
                    losses=climber.losses,
                    offences=climber.offences,
                )
            )
        rows += [
            LadderRow(rank=None, name=name, eliminated=ended)
            for name, ended in self._eliminated.items()
        ]
        return tuple(rows)

    def __len__(self) -> int:
        return len(self._climbers) + len(self._eliminated)

    def __contains__(self, name: str) -> bool:
        return name in self._climbers or name in self._eliminated

    def climber(self, name: str) -> Climber:
        """What is known of a bot; of a stranger the start."""
        return self._climbers.get(name) or Climber()

    def _rate(self, climbers: Sequence[Climber], ranks: Sequence[int]) -> None:
        if self._model is None:
            from openskill.models import BradleyTerryPart

            self._model = BradleyTerryPart(mu=MU, sigma=SIGMA, beta=BETA, window_size=max(SEATS))
        rating = self._model.rating
        rated = self._model.rate(
            [[rating(climber.mu, climber.sigma)] for climber in climbers],
            ranks=[float(rank) for rank in ranks],
        )
        for climber, (new,) in zip(climbers, rated, strict=True):
            climber.mu, climber.sigma = new.mu, new.sigma


def pairings(
    free: Mapping[str, int],
    seats: int,
    ladder: Ladder,
    playing: Iterable[tuple[str, ...]] = (),
    rematch: bool = False,
) -> Iterator[tuple[str, ...]]:
    """Who plays next, table after table, until there are not enough free bots for one more.

    Whoever has had the fewest matches chooses first, and of those who have had equally many the one that stands first in `free`. It
    gets those who are nearest in `mu`; against one with whom it has just sat, or who has had more matches than others, speaks
    so much that another one that is about as near is taken instead. Matches that are being played count as had. Then
    the chairs: as they even out best how often each bot has sat in each.

    Bots that have just met each other, all at one table, would meet again and again if they are free at the same time and nobody
    else is: as long as there is somebody else, they wait for it, unless `rematch` says that they have waited enough.

    Args:
        free: by name, how many matches more each bot would take now.
        seats: of the game.
        ladder: all that has been played.
        playing: the players, by seat, of the matches that are not over yet, in the order in which they began.
        rematch: whether those who have just met may meet again while others are playing.

    Yields:
        The players by seat.

    Raises:
        UsageError: the game does not have two or four seats.
    """
    _check(seats)
    return _FreeBots(free, ladder, playing).pair(seats, rematch)


class _Candidate(msgspec.Struct, kw_only=True):
    """What the choice looks at: a bot's past, with the matches that are being played and those just made."""

    mu: float
    sigma: float
    games: int
    chairs: list[int]
    met: deque[Lineup]
    last: Lineup | None


class _FreeBots:
    """Who is there, while tables are made."""

    def __init__(
        self, free: Mapping[str, int], ladder: Ladder, playing: Iterable[tuple[str, ...]]
    ) -> None:
        self._free = {name: tables for name, tables in free.items() if tables > 0}
        self._owners = Counter(map(owner_of, self._free))
        self._seen: dict[str, _Candidate] = {}
        self._playing: set[Lineup] = set()
        tables = tuple(playing)
        for name in dict.fromkeys([*self._free, *(n for table in tables for n in table)]):
            past = ladder.climber(name)
            self._seen[name] = _Candidate(
                mu=past.mu,
                sigma=past.sigma,
                games=past.played,
                chairs=past.chairs.copy(),
                met=past.met.copy(),
                last=past.met[0] if past.met else None,
            )
        for table in tables:
            self._sit(table)

    def pair(self, seats: int, rematch: bool) -> Iterator[tuple[str, ...]]:
        """Tables of so many seats."""
        while table := self._next(seats, rematch):
            chairs = self._chairs(table)
            self._sit(chairs)
            for name in chairs:
                self._free[name] -= 1
                if not self._free[name]:
                    del self._free[name]
                    self._seated(owner_of(name))
            yield chairs

    def _seated(self, owner: str) -> None:
        """One of its bots is not free any more."""
        self._owners[owner] -= 1
        if not self._owners[owner]:
            del self._owners[owner]

    def _next(self, seats: int, rematch: bool) -> tuple[str, ...]:
        """The next table, not yet seated; empty if there is none."""
        if len(self._owners) < seats:  # else a thousand names of one would be tried
            return ()
        for name in sorted(self._free, key=lambda name: self._seen[name].games):
            others = self._nearest(name)
            table = (name, *others[: seats - 1])
            if rematch or not self._is_rematch(table):
                return table
            if len(others) >= seats:  # the next one instead of the last
                return (*table[:-1], others[seats - 1])
        return ()

    def _nearest(self, name: str) -> list[str]:
        """The others that are free, the best to play against first; two of one owner never meet, or one would feed the other."""
        others = [other for other in self._free if owner_of(other) != owner_of(name)]
        fewest = min((self._seen[other].games for other in others), default=0)

        def against(other: str) -> float:
            more = GAME_MORE * (self._seen[other].games - fewest)
            met = max(self._since(name, other), self._since(other, name))
            return self._apart(name, other) + JUST_MET * met + min(more, MOST_MORE)

        nearest: dict[str, str] = {}
        for other in sorted(others, key=against):
            nearest.setdefault(owner_of(other), other)  # one of every owner's
        return list(nearest.values())

    def _apart(self, name: str, other: str) -> float:
        """How far two are apart as the model sees it: the less is known of them, the nearer."""
        one, two = self._seen[name], self._seen[other]
        return abs(one.mu - two.mu) / sqrt(2 * BETA**2 + one.sigma**2 + two.sigma**2)

    def _since(self, name: str, other: str) -> float:
        """How well a bot remembers another: 1 if it was at its last table, less by the table, and in the end 0."""
        for ago, lineup in enumerate(self._seen[name].met):
            if other in lineup:
                return 1 - ago / MEMORY
        return 0.0

    def _is_rematch(self, table: Sequence[str]) -> bool:
        """Whether the same are at a table now, or all come from one, and somebody else is there for whom they may wait."""
        lineup = frozenset(table)
        if len(self._seen) == len(table):
            return False
        return lineup in self._playing or all(self._seen[name].last == lineup for name in table)

    def _chairs(self, table: Sequence[str]) -> tuple[str, ...]:
        """Everyone where it has sat least: the order in which they have sat in their new chairs least often, in all."""
        return min(
            permutations(table),
            key=lambda order: sum(self._seen[name].chairs[seat] for seat, name in enumerate(order)),
        )

    def _sit(self, table: tuple[str, ...]) -> None:
        lineup = frozenset(table)
        self._playing.add(lineup)
        for seat, name in enumerate(table):
            seen = self._seen[name]
            seen.games += 1
            seen.chairs[seat] += 1
            seen.met.appendleft(lineup)


def _check(seats: int) -> None:
    if seats not in SEATS:
        raise UsageError(
            f"expected a game for {' or '.join(map(str, SEATS))} on a ladder, got one for {seats}"
            + ("; against the dealer it is a league" if seats == 1 else "")
        )


def _ranks(result: Result) -> list[int]:
    """By seat, how many were better: by scores, and an offender is behind all others (J3)."""
    keys = [(seat != result.offender, score) for seat, score in enumerate(result.scores)]
    return [sum(other > key for other in keys) for key in keys]
