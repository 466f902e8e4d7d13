from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations

import pytest

from arena.formats.schedule import Outcome, Pairing, Ranking, Schedule, Stage, league, round_robin
from arena.games.match import Result
from protocol.errors import UsageError
from protocol.messages import Ending, Termination

HOUSE = ("house 1", "house 2", "house 3", "house 4", "house 5")

Table = Callable[[tuple[str, ...]], Result]
"""What happens at a table: the players' names by seat → the result."""


def result(*scores: int, offender: int | None = None, kind: Ending | None = None) -> Result:
    default = Ending.COMPLETED if offender is None else Ending.ILLEGAL
    termination = Termination(kind or default, offender)
    return Result(scores, (0,) * len(scores), termination)


def names(count: int) -> tuple[str, ...]:
    return tuple(f"bot {number}" for number in range(1, count + 1))


def strengths(players: tuple[str, ...]) -> Result:
    """The later they entered the better they play; house bots are better still."""
    order = (*names(99), *HOUSE)
    return result(*(order.index(player) for player in players))


def run(schedule: Schedule, *tables: Table) -> tuple[list[Stage], Ranking]:
    """Play a schedule to its end; stage after stage by `tables`, the last of which goes on."""
    stages: list[Stage] = []
    send: tuple[Outcome, ...] | None = None
    while True:
        try:
            stage = next(schedule) if send is None else schedule.send(send)
        except StopIteration as done:
            ranking: Ranking = done.value
            return stages, ranking
        table = tables[min(len(stages), len(tables) - 1)]
        stages.append(stage)
        send = tuple(Outcome(pairing, table(pairing.players)) for pairing in stage)


def seated(stage: Stage) -> list[str]:
    return [player for pairing in stage for player in pairing.players]


# --- K1: round robin ---


@pytest.mark.parametrize("count", [*range(2, 12), 40])
@pytest.mark.parametrize("matches", [1, 2, 3, 4])
def test_K1_seats_rotate_evenly(count: int, matches: int) -> None:
    (stage,), _ = run(round_robin(names(count), matches), strengths)
    seatings = Counter(pairing.players for pairing in stage)
    first = Counter(pairing.players[0] for pairing in stage)

    for one, other in combinations(names(count), 2):
        assert seatings[one, other] + seatings[other, one] == matches
        assert abs(seatings[one, other] - seatings[other, one]) == matches % 2
    assert len(stage) == matches * count * (count - 1) // 2
    games = (count - 1) * matches
    for name in names(count):
        assert first[name] in (games // 2, games - games // 2)


@pytest.mark.parametrize("count", range(2, 12))
def test_K1_all_are_busy_from_the_first_pairing_to_the_last(count: int) -> None:
    (stage,), _ = run(round_robin(names(count), 2), strengths)

    played: Counter[str] = Counter()
    for pairing in stage:
        played.update(pairing.players)
        assert max(played.values()) - min(played[name] for name in names(count)) <= 2


@pytest.mark.parametrize("count", range(1, 8))
def test_A10_with_itself_every_bot_also_meets_itself(count: int) -> None:
    (stage,), _ = run(round_robin(names(count), 3, with_itself=True), strengths)
    seatings = Counter(pairing.players for pairing in stage)

    assert all(seatings[name, name] == 3 for name in names(count))
    assert len(stage) == 3 * count * (count + 1) // 2


def test_K1_one_stage_numbered_from_one_and_no_ranking_of_its_own() -> None:
    (stage,), ranking = run(round_robin(names(3)), strengths)

    assert [pairing.number for pairing in stage] == [1, 2, 3]
    assert ranking == ()


# --- K3: league ---


def test_K3_every_bot_plays_the_dealer_equally_often_in_turn() -> None:
    (stage,), ranking = run(league(("ann", "ben"), 2), lambda players: result(0))

    assert stage == (
        Pairing(1, ("ann",)),
        Pairing(2, ("ben",)),
        Pairing(3, ("ann",)),
        Pairing(4, ("ben",)),
    )
    assert ranking == ()


# --- refusals ---


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: round_robin(("ann",)), "at least 2 of them"),
        (lambda: round_robin((), with_itself=True), "at least 1 of them"),
        (lambda: round_robin(("ann", "ben", "ann")), "'ann' twice"),
        (lambda: round_robin(("ann", "ben"), 0), "at least 1 match"),
        (lambda: league((), 5), "at least 1 of them"),
        (lambda: league(("ann",), 0), "at least 1 match"),
    ],
)
def test_what_cannot_be_scheduled_is_refused_at_once(
    call: Callable[[], Schedule], text: str
) -> None:
    with pytest.raises(UsageError, match=text):
        call()
