from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.chance import Stream, seed_from_int
from arena.match import MatchResult, Record
from arena.schedule import (
    Outcome,
    Pairing,
    Placed,
    Ranking,
    Schedule,
    Stage,
    elimination,
    league,
    round_robin,
)
from protocol.errors import UsageError
from protocol.messages import Ending, Termination

HOUSE = ("house 1", "house 2", "house 3")

Table = Callable[[tuple[str, ...]], MatchResult]
"""What happens at a table: the players' names by seat → the result."""


def result(
    *scores: int, offender: int | None = None, kind: Ending | None = None
) -> MatchResult:
    default = Ending.COMPLETED if offender is None else Ending.ILLEGAL
    termination = Termination(kind or default, offender)
    points = (0,) * len(scores)
    record = Record(
        game="high_low",
        settings={},
        seed=None,
        nonces=(),
        decks=(),
        answers=(),
        scores=scores,
        points=points,
        termination=termination,
    )
    return MatchResult(scores, points, termination, record)


def names(count: int) -> tuple[str, ...]:
    return tuple(f"bot {number}" for number in range(1, count + 1))


def strengths(players: tuple[str, ...]) -> MatchResult:
    """The later they entered the better they play; house bots are better still."""
    order = (*names(99), *HOUSE)
    return result(*(order.index(player) for player in players))


def all_quit(players: tuple[str, ...]) -> MatchResult:
    return result(*(-2 for _ in players))


def offence_of(name: str, table: Table = strengths) -> Table:
    def play(players: tuple[str, ...]) -> MatchResult:
        if name not in players:
            return table(players)
        return result(*table(players).scores, offender=players.index(name))

    return play


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


def knock_out(count: int, *tables: Table, seed: int = 1) -> tuple[list[Stage], Ranking]:
    stream = Stream(seed_from_int(seed))
    return run(elimination(names(count), stream, HOUSE), *(tables or (strengths,)))


def seated(stage: Stage) -> list[str]:
    return [player for pairing in stage for player in pairing.players]


# --- K1: round robin ---


@pytest.mark.parametrize("count", range(2, 10))
@pytest.mark.parametrize("matches", [2, 4])
def test_K1_every_two_meet_equally_often_in_each_seat(count: int, matches: int) -> None:
    (stage,), _ = run(round_robin(names(count), matches), strengths)
    seatings = Counter(pairing.players for pairing in stage)

    expected = {
        (one, other): matches // 2
        for one in names(count)
        for other in names(count)
        if one != other
    }
    assert seatings == expected


@pytest.mark.parametrize("count", range(2, 12))
@pytest.mark.parametrize("matches", [1, 3])
def test_K1_odd_numbers_of_matches_leave_everyone_in_each_seat_half_the_time(
    count: int, matches: int
) -> None:
    (stage,), _ = run(round_robin(names(count), matches), strengths)
    first = Counter(pairing.players[0] for pairing in stage)
    second = Counter(pairing.players[1] for pairing in stage)

    meetings = Counter(frozenset(pairing.players) for pairing in stage)
    assert set(meetings.values()) == {matches}
    assert len(meetings) == count * (count - 1) // 2
    assert all(abs(first[name] - second[name]) <= 1 for name in names(count))


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


# --- K2: elimination ---


def test_H11_the_two_lowest_of_every_table_drop_out() -> None:
    stages, ranking = knock_out(8)

    assert [len(stage) for stage in stages] == [2, 1]
    out = {
        player
        for pairing in stages[0]
        for player in sorted(pairing.players, key=names(8).index)[:2]
    }
    assert set(seated(stages[1])) == set(names(8)) - out
    assert set(ranking[-1].names) == out


def test_K2_the_finals_scores_rank_the_finalists() -> None:
    _, ranking = knock_out(8)

    finalists = [place for place in ranking if place.stage == 2]
    assert [place.rank for place in ranking] == [1, 2, 3, 4, 5]
    ranked = [place.names[0] for place in finalists]
    assert ranked == sorted(ranked, key=names(8).index, reverse=True)
    assert finalists[0].names == ("bot 8",)


def test_K2_those_who_drop_out_in_one_stage_share_a_rank() -> None:
    _, ranking = knock_out(16)

    assert [(place.rank, len(place.names), place.stage) for place in ranking] == [
        (1, 1, 3),
        (2, 1, 3),
        (3, 1, 3),
        (4, 1, 3),
        (5, 4, 2),
        (9, 8, 1),
    ]


@pytest.mark.parametrize(
    ("count", "chairs"), [(5, [4, 4]), (6, [4, 4]), (7, [4, 4, 4]), (8, [8, 4])]
)
def test_K2_a_remainder_has_a_bye(count: int, chairs: list[int]) -> None:
    stages, _ = knock_out(count)

    assert [len(seated(stage)) for stage in stages] == chairs


def test_K2_five_bots_send_three_and_a_house_bot_to_the_final() -> None:
    stages, ranking = knock_out(5)

    (resting,) = set(names(5)) - set(seated(stages[0]))
    assert resting in seated(stages[1])
    assert len(set(seated(stages[1])) & set(HOUSE)) == 1
    assert [len(place.names) for place in ranking] == [1, 1, 1, 2]


def test_K2_seven_bots_second_bye_goes_to_one_who_had_none() -> None:
    for seed in range(20):
        stages, _ = knock_out(7, seed=seed)
        first = set(names(7)) - set(seated(stages[0]))
        through = first | (set(seated(stages[1])) & set(names(7)))
        second = (through | set(seated(stages[2]))) - set(seated(stages[1]))

        assert len(first) == 3
        assert len(second - set(HOUSE) - first) == 1


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_K2_four_or_fewer_play_the_final_with_house_bots_that_cannot_win(
    count: int,
) -> None:
    (final,), ranking = knock_out(count)

    assert sorted(seated(final)) == sorted([*names(count), *HOUSE[: 4 - count]])
    assert ranking == tuple(
        Placed(rank=rank, names=(name,), stage=1)
        for rank, name in enumerate(reversed(names(count)), start=1)
    )


def test_K2_equal_scores_in_the_final_share_a_rank() -> None:
    scores = {"bot 1": 5, "bot 2": 7, "bot 3": 5, "house 1": 9}
    _, ranking = knock_out(
        3, lambda players: result(*(scores[player] for player in players))
    )

    assert ranking == (
        Placed(rank=1, names=("bot 2",), stage=1),
        Placed(rank=2, names=("bot 1", "bot 3"), stage=1),
    )


def test_J3_an_offender_in_the_final_is_last_and_the_others_rank_by_scores() -> None:
    _, ranking = knock_out(4, offence_of("bot 4"))

    assert [place.names for place in ranking] == [
        ("bot 3",),
        ("bot 2",),
        ("bot 1",),
        ("bot 4",),
    ]
    assert [place.offence for place in ranking] == [False, False, False, True]


def test_K2_a_house_bots_offence_in_the_final_costs_nobody_a_place() -> None:
    _, ranking = knock_out(3, offence_of("house 1"))

    assert [place.names for place in ranking] == [("bot 3",), ("bot 2",), ("bot 1",)]
    assert not any(place.offence for place in ranking)


def test_H13_an_offender_is_out_and_the_three_others_advance() -> None:
    stages, ranking = knock_out(8, offence_of("bot 8"), strengths)

    (table,) = (pairing.players for pairing in stages[0] if "bot 8" in pairing.players)
    assert len(stages) == 3, "three and two went on"
    assert set(table) - {"bot 8"} <= set(seated(stages[1])) | set(seated(stages[2]))
    assert ranking[-1] == Placed(rank=8, names=("bot 8",), stage=1, offence=True)
    assert len(ranking[-2].names) == 2


def test_H12_all_who_tie_at_the_cut_advance() -> None:
    stages, ranking = knock_out(8, lambda players: result(5, 9, 5, 0), strengths)

    assert len(set(names(8)) & set(seated(stages[1]) + seated(stages[2]))) == 6
    lowest = {pairing.players[3] for pairing in stages[0]}
    assert (ranking[-1].rank, set(ranking[-1].names)) == (7, lowest)


def test_K2_a_stage_that_eliminates_nobody_ends_it_with_first_place_shared() -> None:
    stages, ranking = knock_out(8, all_quit)

    assert len(stages) == 1
    assert ranking == (Placed(rank=1, names=names(8), stage=1),)


def test_K2_shared_first_place_is_above_those_who_dropped_out_before() -> None:
    stages, ranking = knock_out(12, strengths, all_quit)

    assert len(stages) == 2
    assert [(place.rank, len(place.names)) for place in ranking] == [(1, 6), (7, 6)]


def test_K2_four_who_always_quit_share_first_place_by_the_final() -> None:
    _, ranking = knock_out(4, all_quit)

    assert ranking == (Placed(rank=1, names=names(4), stage=1),)


def test_K2_tables_are_numbered_through_the_competition() -> None:
    stages, _ = knock_out(16)

    numbers = [pairing.number for stage in stages for pairing in stage]
    assert numbers == [1, 2, 3, 4, 5, 6, 7]


def test_K2_the_stream_alone_draws_the_tables() -> None:
    again = [knock_out(11, seed=seed)[0] for seed in (5, 5, 6)]

    assert again[0] == again[1]
    assert again[0] != again[2]


def test_K2_more_than_256_bots_can_be_drawn() -> None:
    stages, ranking = knock_out(98 * 4, all_quit)

    assert len(set(seated(stages[0]))) == 98 * 4
    assert len(ranking) == 1


scores_of_four = st.tuples(*[st.integers(-3, 3)] * 4)


@settings(max_examples=12, deadline=None)
@pytest.mark.parametrize("count", range(2, 41))
@given(data=st.data(), seed=st.integers(0, 1000))
def test_K2_whatever_happens_the_rules_of_elimination_hold(
    count: int, data: st.DataObject, seed: int
) -> None:
    def anything(players: tuple[str, ...]) -> MatchResult:
        scores = data.draw(scores_of_four)
        offender = data.draw(st.none() | st.integers(0, 3))
        return result(*scores, offender=offender)

    schedule = elimination(names(count), Stream(seed_from_int(seed)), HOUSE)
    entered, byes = list(names(count)), Counter[str]()
    stage = next(schedule)
    for _ in range(count):  # a stage eliminates one at least, or is the last
        final = len(entered) <= 4
        chairs = seated(stage)
        assert all(len(set(pairing.players)) == 4 for pairing in stage)
        assert len(set(chairs)) == len(chairs)
        assert final or set(chairs) <= set(entered), "house bots in the final only"
        resting = set(entered) - set(chairs)
        assert len(resting) == (0 if final else len(entered) % 4)
        before = byes.copy()
        byes.update(resting)
        if any(before[name] for name in resting):
            assert all(byes[name] for name in entered), (
                "a second bye before all had one"
            )

        outcomes = tuple(Outcome(pair, anything(pair.players)) for pair in stage)
        through = resting | {
            name for outcome in outcomes for name in expected_through(outcome)
        }
        try:
            stage = schedule.send(outcomes)
        except StopIteration as done:
            ranking: Ranking = done.value
            break
        assert not final, "the final is the end"
        entered = [name for name in entered if name in through]
    else:
        pytest.fail("it never ends")

    if not final:
        assert set(ranking[0].names) == through == set(entered)
    placed = [name for place in ranking for name in place.names]
    assert sorted(placed) == sorted(names(count))
    better = 0
    for place in ranking:
        assert place.rank == better + 1
        better += len(place.names)


def expected_through(outcome: Outcome) -> Iterator[str]:
    """Who advances, told another way: nobody by lot, nobody kept out by an offence of another."""
    played = outcome.result
    assert played is not None
    for seat, name in enumerate(outcome.pairing.players):
        if played.termination.is_offence:
            if seat != played.termination.seat:
                yield name
        elif sum(score > played.scores[seat] for score in played.scores) < 2:
            yield name


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
        (lambda: elimination((), Stream(b""), HOUSE), "at least 1 of them"),
        (lambda: elimination(("ann",), Stream(b""), HOUSE[:2]), "3 house bots"),
        (lambda: elimination(("house 1",), Stream(b""), HOUSE), "'house 1' twice"),
    ],
)
def test_what_cannot_be_scheduled_is_refused_at_once(
    call: Callable[[], Schedule], text: str
) -> None:
    with pytest.raises(UsageError, match=text):
        call()


@pytest.mark.parametrize("played", [None, result(0, 0, 0, 0, kind=Ending.VOID)])
def test_J5_an_elimination_goes_on_only_with_results(
    played: MatchResult | None,
) -> None:
    schedule = elimination(names(8), Stream(b""), HOUSE)
    outcomes = tuple(Outcome(pairing, played) for pairing in next(schedule))

    with pytest.raises(UsageError, match="table 1 to be played"):
        schedule.send(outcomes)


def test_outcomes_of_other_pairings_are_refused() -> None:
    schedule = elimination(names(8), Stream(b""), HOUSE)
    stage = next(schedule)
    outcomes = tuple(
        Outcome(pairing, strengths(pairing.players)) for pairing in reversed(stage)
    )

    with pytest.raises(UsageError, match="in their order"):
        schedule.send(outcomes)
