"""The schedule of an elimination (K2): full tables, drawn by lots from a committed seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import msgspec

from arena.formats.schedule import Outcomes, Pairing, RankingPlace, Schedule, Stage, check_entry
from arena.games.match import Result
from arena.games.rules import Game
from arena.games.shuffle import Stream
from protocol.errors import UsageError
from protocol.messages import Ending

__all__ = ["advanced", "advancing", "elimination", "saved"]

LOT_BYTES = 16  # two equal lots of 128 bits will never happen

Teams: TypeAlias = Mapping[str, str]
"""The team of each bot that has one."""

NO_TEAMS: Teams = MappingProxyType({})

Group: TypeAlias = tuple[tuple[str, ...], bool]
"""Names that share a place, and whether an offence put them out."""


def elimination(
    game: Game,
    players: Sequence[str],
    stream: Stream,
    house: Sequence[str],
    teams: Teams = NO_TEAMS,
) -> Schedule:
    """Tables of `s` seats until `s` or fewer are left, who play the final (K2, H11–H13).

    A game for four has s = 4. `advanced` says who goes on from a table.

    Those who drop out in the same stage share a rank; behind them come the offenders of that stage.

    Everything is drawn from the stream by lots. Bots draw in the order of entry; a lot is the next
    sixteen bytes of the stream, compared as a big-endian number, the lowest first. A stage of n
    bots has T = n // s tables and is drawn like this:

    1. All n draw a lot. "Lot order" below is by these.
    2. n mod s byes are given one after another. Each goes to one of those who have had the fewest
       byes in the stages before, among those who have none in this one yet. Of these a member of a
       team with more than T members without a bye in this stage goes first, of the largest such
       team before the others; and then the first in lot order.
    3. The others are put in a row, team by team: the teams in the lot order of their first members,
       the members of each in lot order. A bot without a team is a team of one. The row is dealt
       round the tables like cards: number i of the row, from 0, comes to table i mod T. A team of
       up to T members meets none of its own; a larger one is spread evenly.
    4. All who have no bye draw another lot. At every table they sit in the order of these, and the
       tables are numbered by the lots in their first seats: no team has a seat or a table more
       often than another.

    Then the stage is played; one that puts nobody out is the last, and all share the first place.
    With s or fewer left, they and as many house bots as make s draw a lot each, and sit in the
    final in that order. House bots, of which `house` names s - 1, cannot win. `players` are in the
    order of entry; the stream comes from the committed seed.

    Raises UsageError for a name twice, no bot, fewer than s - 1 house names, or an outcome that is
    missing, unplayed or void. (A bot that does not come is `absent`, which is a result.)
    """
    check_entry(players, 1, at_least=1)
    check_entry([*players, *house], 1, at_least=1)
    if len(house) < game.seats - 1:
        raise UsageError(
            f"expected {game.seats - 1} house bots for free chairs in the final, got {len(house)}"
        )
    return _elimination(game, tuple(players), stream, house, teams)


def advancing(game: Game) -> int:
    """How many seats advance from a table before the final, without ties."""
    return max(1, game.seats // 2) if game.advancing is None else game.advancing


def advanced(game: Game, result: Result) -> frozenset[int]:
    """The seats that advance from a table before the final (H11–H13); an offender never does."""
    scores = result.scores
    seats = frozenset(range(len(scores))) - set(result.out)
    if game.survivors is not None:
        return seats.intersection(game.survivors(scores, result.offender))
    if result.offender is not None:
        return seats
    cut = sorted(scores, reverse=True)[advancing(game) - 1]
    return frozenset(seat for seat in seats if scores[seat] >= cut)


def saved(game: Game, players: Sequence[str], result: Result, teams: Teams) -> tuple[str, ...]:
    """The team-mates that an offence saved at a table before the final, by seat (K2).

    They advance (H13), though by the scores at that moment they were not sure to (H11). An offence
    at the start, when all are level, saves the most. The instructor judges such cases.
    """
    offender = result.offender
    team = None if offender is None else teams.get(players[offender])
    if team is None:
        return ()
    scores = result.scores
    return tuple(
        player
        for seat, player in enumerate(players)
        if seat != offender
        # A seat that ties with a seat below the cut is not sure to advance.
        and sum(other >= scores[seat] for other in scores) > advancing(game)
        and teams.get(player) == team
    )


def _elimination(
    game: Game, left: tuple[str, ...], stream: Stream, house: Sequence[str], teams: Teams
) -> Schedule:
    seats = game.seats
    played = stage = 0
    byes: Counter[str] = Counter()
    below: list[RankingPlace] = []
    while len(left) > seats:
        stage += 1
        resting, tables = _draw(seats, left, stream, byes, teams)
        byes.update(resting)
        pairings = _numbered(tables, played)
        played += len(pairings)
        outcomes = yield pairings

        through, offenders = set(resting), set[str]()
        for players, result in _results(pairings, outcomes):
            through |= {players[seat] for seat in advanced(game, result)}
            offenders |= {players[seat] for seat in result.out}
        if len(through) == len(left):
            return tuple(_places([(left, False)], stage) + below)
        beaten = set(left) - through - offenders
        dropped = [(_among(left, beaten), False), (_among(left, offenders), True)]
        below = _places(dropped, stage, better=len(through)) + below
        left = _among(left, through)
        if not left:  # every bot was absent
            return tuple(below)

    stage += 1
    final = _numbered([_by_lot([*left, *house[: seats - len(left)]], stream)], played)
    outcomes = yield final
    ((players, result),) = _results(final, outcomes)
    places = _places(_finalists(left, players, result), stage)
    return tuple(_scored(places, players, result) + below)


def _draw(
    seats: int, left: Sequence[str], stream: Stream, byes: Counter[str], teams: Teams
) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Draw the byes, and the players of every table by seat, as `elimination` says."""
    count, rest = divmod(len(left), seats)
    lots = _by_lot(left, stream)
    resting = _resting(lots, rest, count, byes, teams)
    row = _team_by_team([name for name in lots if name not in resting], teams)
    table_of = {player: index % count for index, player in enumerate(row)}
    tables: dict[int, list[str]] = {}
    for player in _by_lot([name for name in left if name in table_of], stream):
        tables.setdefault(table_of[player], []).append(player)
    return resting, list(tables.values())


def _resting(
    lots: Sequence[str], count: int, tables: int, byes: Counter[str], teams: Teams
) -> list[str]:
    """Draw who has a bye: the bots with the fewest so far, large teams' members first (K2)."""
    resting: list[str] = []
    sizes = Counter(teams[name] for name in lots if name in teams)
    for _ in range(count):
        playing = [name for name in lots if name not in resting]

        def claim(name: str) -> tuple[int, int]:
            size = sizes[teams[name]] if name in teams else 0
            return byes[name], -size if size > tables else 0

        first = min(playing, key=claim)  # of equals, the first in lot order
        resting.append(first)
        if first in teams:
            sizes[teams[first]] -= 1
    return resting


def _team_by_team(players: Sequence[str], teams: Teams) -> list[str]:
    """The same players, with each team placed together where its first member was."""
    groups: dict[tuple[bool, str], list[str]] = {}
    for player in players:
        team = teams.get(player)
        key = (False, player) if team is None else (True, team)
        groups.setdefault(key, []).append(player)
    return [player for group in groups.values() for player in group]


def _by_lot(players: Sequence[str], stream: Stream) -> list[str]:
    """The players in a fair random order: each draws a lot, and the lowest comes first."""
    lots = {player: bytes(stream.below(256) for _ in range(LOT_BYTES)) for player in players}
    return sorted(players, key=lots.__getitem__)


def _numbered(tables: Sequence[Sequence[str]], played: int) -> Stage:
    """The tables of a stage; their numbers continue those of earlier stages."""
    return tuple(
        Pairing(number, tuple(table)) for number, table in enumerate(tables, start=played + 1)
    )


def _results(pairings: Stage, outcomes: Outcomes) -> list[tuple[tuple[str, ...], Result]]:
    if tuple(outcome.pairing for outcome in outcomes) != pairings:
        raise UsageError("expected the outcomes of the stage's pairings in their order, got others")
    results = []
    for pairing, outcome in zip(pairings, outcomes, strict=True):
        if outcome.result is None or outcome.result.termination.kind is Ending.VOID:
            raise UsageError(
                f"expected table {pairing.number} to be played, got no result or a void one"
            )
        results.append((pairing.players, outcome.result))
    return results


def _finalists(left: Sequence[str], players: Sequence[str], result: Result) -> list[Group]:
    """The finalists, best first: by scores, offenders last (J3); house bots get no place (K2)."""
    last = {players[seat] for seat in result.out}
    scores = {
        player: score
        for player, score in zip(players, result.scores, strict=True)
        if player in left and player not in last
    }
    groups = [
        _among(left, {player for player in scores if scores[player] == score})
        for score in sorted(set(scores.values()), reverse=True)
    ]
    return [*((names, False) for names in groups), (_among(left, last), True)]


def _places(groups: Sequence[Group], stage: int, better: int = 0) -> list[RankingPlace]:
    """The places of the bots that went out in this stage, best first, behind `better` others."""
    places = []
    for names, offence in groups:
        if names:
            places.append(RankingPlace(rank=better + 1, names=names, stage=stage, offence=offence))
            better += len(names)
    return places


def _scored(
    places: Sequence[RankingPlace], players: Sequence[str], result: Result
) -> list[RankingPlace]:
    scores = dict(zip(players, result.scores, strict=True))
    return [
        placed if placed.offence else msgspec.structs.replace(placed, score=scores[placed.names[0]])
        for placed in places
    ]


def _among(order: Sequence[str], chosen: set[str]) -> tuple[str, ...]:
    """The chosen players in the order of entry, as a set's own order is random."""
    return tuple(player for player in order if player in chosen)
