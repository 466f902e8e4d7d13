from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.engine.match import Result
from arena.engine.rules import Game
from arena.engine.shuffle import Stream, seed_from_int
from arena.formats.elimination import advancing, elimination, saved
from arena.formats.schedule import Outcome, Ranking, RankingPlace, Schedule, Stage
from arena.games.high_low import GAME
from protocol.errors import UsageError
from protocol.messages import Ending
from tests.arena.formats.test_schedule import HOUSE, Table, names, result, run, seated, strengths

NO_TEAMS: Mapping[str, str] = {}
COUNTS = (*range(5, 18), 23, 40)


def game_for(seats: int, **more: Any) -> Game:
    """A game for so many that says nothing of who goes on, unless `more` does."""
    vocabulary = msgspec.structs.replace(GAME.vocabulary, seats=seats)
    silent: dict[str, Any] = {"advancing": None, "survivors": None}
    return msgspec.structs.replace(GAME, vocabulary=vocabulary, **{**silent, **more})


def all_quit(players: tuple[str, ...]) -> Result:
    return result(*(-2 for _ in players))


def offence_of(name: str, table: Table = strengths) -> Table:
    def play(players: tuple[str, ...]) -> Result:
        if name not in players:
            return table(players)
        return result(*table(players).scores, offender=players.index(name))

    return play


def knock_out(
    count: int, *tables: Table, seed: int = 1, teams: Mapping[str, str] = NO_TEAMS
) -> tuple[list[Stage], Ranking]:
    stream = Stream(seed_from_int(seed))
    schedule = elimination(GAME, names(count), stream, HOUSE, teams)
    return run(schedule, *(tables or (strengths,)))


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
def test_K2_four_or_fewer_play_the_final_with_house_bots_that_cannot_win(count: int) -> None:
    (final,), ranking = knock_out(count)

    assert sorted(seated(final)) == sorted([*names(count), *HOUSE[: 4 - count]])
    assert ranking == tuple(
        RankingPlace(rank=rank, names=(name,), stage=1, score=count - rank)
        for rank, name in enumerate(reversed(names(count)), start=1)
    )


def test_K2_equal_scores_in_the_final_share_a_rank() -> None:
    scores = {"bot 1": 5, "bot 2": 7, "bot 3": 5, "house 1": 9}
    _, ranking = knock_out(3, lambda players: result(*(scores[player] for player in players)))

    assert ranking == (
        RankingPlace(rank=1, names=("bot 2",), stage=1, score=7),
        RankingPlace(rank=2, names=("bot 1", "bot 3"), stage=1, score=5),
    )


def test_J3_an_offender_in_the_final_is_last_and_the_others_rank_by_scores() -> None:
    _, ranking = knock_out(4, offence_of("bot 4"))

    assert [place.names for place in ranking] == [("bot 3",), ("bot 2",), ("bot 1",), ("bot 4",)]
    assert [place.offence for place in ranking] == [False, False, False, True]
    assert [place.score is None for place in ranking] == [False, False, False, True]


def test_K2_a_house_bots_offence_in_the_final_costs_nobody_a_place() -> None:
    _, ranking = knock_out(3, offence_of("house 1"))

    assert [place.names for place in ranking] == [("bot 3",), ("bot 2",), ("bot 1",)]
    assert not any(place.offence for place in ranking)


def test_H13_an_offender_is_out_and_the_three_others_advance() -> None:
    stages, ranking = knock_out(8, offence_of("bot 8"), strengths)

    (table,) = (pairing.players for pairing in stages[0] if "bot 8" in pairing.players)
    assert len(stages) == 3, "three and two went on"
    assert set(table) - {"bot 8"} <= set(seated(stages[1])) | set(seated(stages[2]))
    assert ranking[-1] == RankingPlace(rank=8, names=("bot 8",), stage=1, offence=True)
    assert len(ranking[-2].names) == 2
    in_final = [place.score is not None for place in ranking]
    assert in_final == [place.stage == 3 for place in ranking]


def test_H12_all_who_tie_at_the_cut_advance() -> None:
    stages, ranking = knock_out(8, lambda players: result(5, 9, 5, 0), strengths)

    assert len(set(names(8)) & set(seated(stages[1]) + seated(stages[2]))) == 6
    lowest = {pairing.players[3] for pairing in stages[0]}
    assert (ranking[-1].rank, set(ranking[-1].names)) == (7, lowest)


def test_K2_a_stage_that_eliminates_nobody_ends_it_with_first_place_shared() -> None:
    stages, ranking = knock_out(8, all_quit)

    assert len(stages) == 1
    assert ranking == (RankingPlace(rank=1, names=names(8), stage=1),)


def test_K2_shared_first_place_is_above_those_who_dropped_out_before() -> None:
    stages, ranking = knock_out(12, strengths, all_quit)

    assert len(stages) == 2
    assert [(place.rank, len(place.names)) for place in ranking] == [(1, 6), (7, 6)]


def test_K2_four_who_always_quit_share_first_place_by_the_final() -> None:
    _, ranking = knock_out(4, all_quit)

    assert ranking == (RankingPlace(rank=1, names=names(4), stage=1, score=-2),)


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


@pytest.mark.parametrize("count", [2, 3, 4, *COUNTS])
def test_H13_an_offence_at_every_table_of_every_stage_comes_to_an_end(count: int) -> None:
    def offend(players: tuple[str, ...]) -> Result:
        return result(5, 3, 2, 1, offender=min(range(4), key=players.__getitem__))

    stages, ranking = knock_out(count, offend)

    last = [place for place in ranking if place.stage == len(stages)]
    assert sum(len(place.names) for place in last) == min(count, 4)
    for number in range(1, len(stages)):
        (out,) = (place for place in ranking if place.stage == number)
        assert out.offence
        assert len(out.names) == len(stages[number - 1])


@pytest.mark.parametrize("count", COUNTS)
def test_K2_a_stage_of_ties_alone_ends_it_and_byes_share_the_first_place(count: int) -> None:
    stages, ranking = knock_out(count, all_quit)

    assert len(stages) == 1
    assert ranking == (RankingPlace(rank=1, names=names(count), stage=1),)


@pytest.mark.parametrize("count", COUNTS)
def test_K2_one_who_drops_out_at_a_time_is_enough_to_come_to_an_end(count: int) -> None:
    def last_is_beaten(players: tuple[str, ...]) -> Result:
        if {*players} & {*HOUSE}:
            return strengths(players)
        beaten = max(players, key=names(count).index)
        if beaten != max(left, key=names(count).index):
            return all_quit(players)  # at every other table all are level
        left.remove(beaten)
        return result(*(-(player == beaten) for player in players))

    left = list(names(count))
    stages, ranking = knock_out(count, last_is_beaten)

    assert len(stages) <= count
    assert sorted(n for place in ranking for n in place.names) == sorted(names(count))


GAMES = (GAME, *map(game_for, (3, 4, 5, 6)), game_for(3, advancing=2), game_for(6, advancing=1))


@settings(max_examples=60)
@given(
    count=st.integers(2, 13) | st.integers(14, 40),
    data=st.data(),
    seed=st.integers(0, 1000),
    most=st.integers(0, 6),
    game=st.sampled_from(GAMES),
)
def test_K2_whatever_happens_the_rules_of_elimination_hold(
    count: int, data: st.DataObject, seed: int, most: int, game: Game
) -> None:
    seats = game.seats

    def anything(players: tuple[str, ...]) -> Result:
        scores = data.draw(st.tuples(*[st.integers(-3, 3)] * seats))
        offender = data.draw(st.none() | st.integers(0, seats - 1))
        return result(*scores, offender=offender)

    team_of = st.lists(st.integers(0, most), min_size=count, max_size=count)
    teams = {
        name: f"team {team}"
        for name, team in zip(names(count), data.draw(team_of), strict=True)
        if team  # number 0 is none
    }
    schedule = elimination(game, names(count), Stream(seed_from_int(seed)), HOUSE, teams)
    entered, byes, offenders = list(names(count)), Counter[str](), set[str]()
    stage = next(schedule)
    for _ in range(count):  # a stage eliminates one at least, or is the last
        final = len(entered) <= seats
        chairs = seated(stage)
        assert all(len(set(pairing.players)) == seats for pairing in stage)
        assert len(set(chairs)) == len(chairs)
        assert not offenders & set(chairs), "an offender plays again"
        resting = set(entered) - set(chairs)
        assert len(resting) == (0 if final else len(entered) % seats)
        if final:
            assert set(chairs) == {*entered, *HOUSE[: seats - len(entered)]}
        else:
            assert set(chairs) <= set(entered), "house bots in the final only"
            check_byes(entered, resting, byes)
            check_teams(stage, entered, resting, byes, teams)
        byes.update(resting)

        outcomes = tuple(Outcome(pair, anything(pair.players)) for pair in stage)
        through = resting | {
            name for outcome in outcomes for name in expected_through(game, outcome)
        }
        offenders |= set(offenders_of(outcomes))
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
        assert place.offence == (place.names[0] in offenders)
        better += len(place.names)


def check_byes(entered: list[str], resting: set[str], byes: Counter[str]) -> None:
    """Nobody rests who has had more byes than somebody who plays."""
    playing = [byes[name] for name in entered if name not in resting]
    assert all(byes[name] <= min(playing) for name in resting)


def check_teams(
    stage: Stage,
    entered: list[str],
    resting: set[str],
    byes: Counter[str],
    teams: Mapping[str, str],
) -> None:
    """Teams are spread evenly, and share no table if other byes or tables could avoid it."""
    spread = [
        Counter(teams[name] for name in pairing.players if name in teams) for pairing in stage
    ]
    for team in set(teams.values()):
        shares = [table[team] for table in spread]
        assert max(shares) - min(shares) <= 1

    fewest = sorted(byes[name] for name in entered)[: len(resting)]
    if not fewest:
        entitled, forced, free = set[str](), set[str](), 0
    else:
        entitled = {name for name in entered if byes[name] == fewest[-1]}
        forced = {name for name in entered if byes[name] < fewest[-1]}
        free = len(resting) - len(forced)
    excess = {
        team: max(0, size - len(stage))
        for team, size in Counter(
            teams[name] for name in entered if name in teams and name not in forced
        ).items()
    }
    can_rest = Counter(teams[name] for name in entitled if name in teams)
    if sum(excess.values()) <= free and all(excess[team] <= can_rest[team] for team in excess):
        assert all(number == 1 for table in spread for number in table.values())


def offenders_of(outcomes: Sequence[Outcome]) -> Iterator[str]:
    for outcome in outcomes:
        played = outcome.result
        assert played is not None
        if played.termination.is_offence and played.termination.seat is not None:
            yield outcome.pairing.players[played.termination.seat]


def expected_through(game: Game, outcome: Outcome) -> Iterator[str]:
    """Who advances, told another way: nobody by lot, nobody kept out by an offence of another."""
    played = outcome.result
    assert played is not None
    for seat, name in enumerate(outcome.pairing.players):
        if played.termination.is_offence:
            if seat != played.termination.seat:
                yield name
        elif sum(score > played.scores[seat] for score in played.scores) < advancing(game):
            yield name


# --- games for other numbers of seats, and with rules of their own ---


@pytest.mark.parametrize(
    ("game", "count", "chairs", "through"),
    [
        (game_for(3), 9, [9, 3], 3),  # one of three goes on
        (game_for(3), 4, [3, 3], 2),  # a bye, and a house bot in the final
        (game_for(3, advancing=2), 9, [9, 6, 3, 3], 6),
        (game_for(5), 10, [10, 5], 4),
        (game_for(6), 13, [12, 6, 6], 7),
    ],
)
def test_K2_the_best_half_of_a_table_goes_on_unless_the_game_says_otherwise(
    game: Game, count: int, chairs: list[int], through: int
) -> None:
    stages, ranking = run(
        elimination(game, names(count), Stream(seed_from_int(1)), HOUSE), strengths
    )

    assert [len(seated(stage)) for stage in stages] == chairs
    assert sum(len(place.names) for place in ranking if place.stage > 1) == through


def test_K2_a_game_may_have_a_rule_of_its_own_for_who_goes_on() -> None:
    game = game_for(3, survivors=lambda scores, offender: (scores.index(min(scores)),))
    stages, ranking = run(elimination(game, names(9), Stream(seed_from_int(1)), HOUSE), strengths)

    worst = {min(pairing.players, key=names(9).index) for pairing in stages[0]}
    assert set(seated(stages[1])) == worst
    assert {name for place in ranking[:3] for name in place.names} == worst


@pytest.mark.parametrize(
    ("survivors", "places"),
    [
        ((), [(1, 9)]),  # nobody goes on
        ((0, 1, 2), [(1, 9)]),  # all do
        ((0, 7), [(1, 1), (2, 1), (3, 1), (4, 6)]),  # a seat that is not there
    ],
)
def test_K2_a_rule_that_makes_no_sense_comes_to_an_end(
    survivors: tuple[int, ...], places: list[tuple[int, int]]
) -> None:
    game = game_for(3, survivors=lambda scores, offender: survivors)
    _, ranking = run(elimination(game, names(9), Stream(seed_from_int(1)), HOUSE), strengths)

    assert [(place.rank, len(place.names)) for place in ranking] == places


# --- K2: teams and the draw ---


def in_teams(*sizes: int) -> dict[str, str]:
    """The first bots in teams of these sizes; the rest have none."""
    members = iter(names(sum(sizes)))
    return {
        name: f"team {number}"
        for number, size in enumerate(sizes)
        for name in islice(members, size)
    }


def shared(stage: Stage, teams: Mapping[str, str]) -> int:
    """How many more of one team than one sit at the tables of a stage."""
    return sum(
        number - 1
        for pairing in stage
        for number in Counter(teams[n] for n in pairing.players if n in teams).values()
    )


@pytest.mark.parametrize(
    ("count", "sizes"),
    [
        (8, (2, 2, 2, 2)),
        (12, (3, 3, 3, 3)),
        (13, (3, 3, 3, 3)),
        (40, (10, 10, 10, 10)),
        (40, (10, 9, 8, 7, 6)),
        (16, (4,)),
        (10, (4, 2, 2)),  # two byes for the team of four
        (11, (3, 4)),  # one for the team of three, two for that of four
        (11, (5, 2, 2, 2)),  # all three for the team of five
        (7, (4, 1)),
        (7, (2, 2, 2)),
    ],
)
def test_K2_team_mates_share_no_table_where_that_can_be_avoided(
    count: int, sizes: tuple[int, ...]
) -> None:
    teams = in_teams(*sizes)
    for seed in range(15):
        stages, _ = knock_out(count, seed=seed, teams=teams)

        assert shared(stages[0], teams) == 0


@pytest.mark.parametrize(
    ("count", "sizes", "most"), [(8, (8,), 4), (8, (5, 3), 3), (12, (7, 5), 3)]
)
def test_K2_teams_too_large_for_the_tables_are_spread_evenly(
    count: int, sizes: tuple[int, ...], most: int
) -> None:
    teams = in_teams(*sizes)
    for seed in range(15):
        stages, _ = knock_out(count, seed=seed, teams=teams)
        for team in set(teams.values()):
            shares = [sum(teams[name] == team for name in pairing.players) for pairing in stages[0]]

            assert max(shares) - min(shares) <= 1
            assert max(shares) <= most


def test_K2_a_bye_that_avoids_a_shared_table_is_never_anybodys_second() -> None:
    """Of 14 bots two rest, and of 7 that go on three; the team is too large each time."""
    teams = in_teams(6)
    for seed in range(30):
        stages, _ = knock_out(14, seed=seed, teams=teams)
        first = set(names(14)) - set(seated(stages[0]))

        assert {teams.get(name) for name in first} == {"team 0"}
        left = {
            name
            for pairing in stages[0]
            for name in sorted(pairing.players, key=names(14).index)[2:]
        } | first
        assert not first & (left - set(seated(stages[1])))


def test_K2_in_the_final_team_mates_may_meet() -> None:
    (final,), _ = knock_out(4, teams=in_teams(4))

    assert set(seated(final)) == set(names(4))


def test_K2_a_team_that_nobody_is_of_changes_nothing() -> None:
    strangers = {"house 1": "a", "zoe": "a"}

    assert knock_out(11, teams=strangers) == knock_out(11)


def test_K2_without_teams_every_division_into_tables_is_as_likely() -> None:
    draws = 700
    divisions = Counter(
        frozenset(next(pairing.players for pairing in stage if "bot 1" in pairing.players))
        for stage in (first_stage(8, seed) for seed in range(draws))
    )

    assert len(divisions) == 35
    assert chi_square(divisions.values(), draws / 35) < 65.2  # once in 1000 samples it is not


def test_K2_without_teams_every_bot_is_as_likely_to_have_a_bye() -> None:
    draws = 1000
    byes = Counter(
        name for seed in range(draws) for name in set(names(6)) - set(seated(first_stage(6, seed)))
    )

    assert len(byes) == 6
    assert chi_square(byes.values(), draws / 3) < 20.5


@pytest.mark.parametrize("sizes", [(), (2,), (3, 3), (3, 2, 2, 1)])
def test_K2_no_chair_and_no_table_is_for_one_team_more_often(sizes: tuple[int, ...]) -> None:
    draws = 400
    teams = in_teams(*sizes)
    places = {name: Counter[tuple[int, int]]() for name in ("bot 1", "bot 12")}
    for seed in range(draws):
        for pairing in first_stage(12, seed, teams):
            for seat, name in enumerate(pairing.players):
                if name in places:
                    places[name][pairing.number, seat] += 1

    for counted in places.values():
        assert len(counted) == 12
        assert chi_square(counted.values(), draws / 12) < 31.3


def first_stage(count: int, seed: int, teams: Mapping[str, str] = NO_TEAMS) -> Stage:
    return next(elimination(GAME, names(count), Stream(seed_from_int(seed)), HOUSE, teams))


def chi_square(counted: Iterable[int], expected: float) -> float:
    return sum((number - expected) ** 2 / expected for number in counted)


@pytest.mark.parametrize("count", COUNTS)
def test_K2_the_draw_can_be_recomputed_from_its_description(count: int) -> None:
    teams = {name: f"team {index % 5}" for index, name in enumerate(names(count)[::2])}
    seed = seed_from_int(count)
    lots = lots_of(seed)
    left, byes = list(names(count)), Counter[str]()
    stages, _ = run(elimination(GAME, names(count), Stream(seed), HOUSE, teams), strengths)

    for stage in stages[:-1]:
        resting, tables = drawn_by_hand(left, byes, teams, lots)

        assert [list(pairing.players) for pairing in stage] == tables
        byes.update(resting)
        beaten = {name for table in tables for name in sorted(table, key=names(count).index)[:2]}
        left = [name for name in left if name not in beaten]
    guests = [*left, *HOUSE[: 4 - len(left)]]
    lot = {name: next(lots) for name in guests}
    assert list(stages[-1][0].players) == sorted(guests, key=lambda name: lot[name])


def lots_of(seed: bytes) -> Iterator[int]:
    """Sixteen bytes of the stream at a time: half a block of SHA-256."""
    block = 0
    while True:
        data = hashlib.sha256(seed + block.to_bytes(8, "big")).digest()
        yield int.from_bytes(data[:16], "big")
        yield int.from_bytes(data[16:], "big")
        block += 1


def drawn_by_hand(
    left: list[str], byes: Counter[str], teams: Mapping[str, str], lots: Iterator[int]
) -> tuple[list[str], list[list[str]]]:
    """The draw of a stage as the docstring of `elimination` says it, for once without its code."""
    count = len(left) // 4
    lot = {name: next(lots) for name in left}
    order = sorted(left, key=lambda name: lot[name])

    resting: list[str] = []
    for _ in range(len(left) % 4):
        open_to = [name for name in order if name not in resting]
        fewest = min(byes[name] for name in open_to)
        open_to = [name for name in open_to if byes[name] == fewest]
        size = {
            name: sum(teams.get(mate) == teams[name] for mate in order if mate not in resting)
            for name in open_to
            if name in teams
        }
        largest = max([count + 1, *size.values()])
        preferred = [name for name in open_to if size.get(name, 0) == largest]
        resting.append((preferred or open_to)[0])

    row: list[str] = []
    for name in order:
        if name not in resting and name not in row:
            row += [
                mate
                for mate in order
                if mate not in resting
                and (mate == name or (name in teams and teams.get(mate) == teams[name]))
            ]
    chair = {name: next(lots) for name in left if name not in resting}
    tables = [sorted(row[first::count], key=lambda name: chair[name]) for first in range(count)]
    return resting, sorted(tables, key=lambda table: chair[table[0]])


def test_K2_the_draw_is_the_same_for_ever() -> None:
    """A test vector; the arena's stream and this draw are what another language has to match."""
    stage = first_stage(11, 7, in_teams(3, 2))

    assert [pairing.players for pairing in stage] == [
        ("bot 8", "bot 4", "bot 3", "bot 7"),
        ("bot 5", "bot 10", "bot 11", "bot 9"),
    ]


# --- K2: an offence that saves a team-mate ---

RED = {"ann": "red", "ben": "red", "cem": "red", "dan": "blue"}


@pytest.mark.parametrize(
    ("scores", "offender", "names_saved"),
    [
        ((9, 5, 3, 1), 0, ("cem",)),  # ben was second all the same
        ((9, 3, 2, 5), 0, ("ben", "cem")),
        ((1, 9, 5, 3), 0, ()),  # both were through
        ((1, 9, 3, 5), 0, ("cem",)),
        ((9, 5, 5, 1), 0, ("ben", "cem")),  # level at the cut, nobody is sure
        ((9, 5, 5, 5), 1, ("cem",)),
        ((9, 4, 5, 5), 0, ("ben", "cem")),
        ((0, 0, 0, 0), 0, ("ben", "cem")),  # at once: the best moment for it
        ((9, 5, 3, 1), 3, ()),  # dan has no team-mate here
        ((9, 8, 3, 1), None, ()),  # no offence
    ],
)
def test_K2_an_offence_that_saves_a_team_mate_is_told(
    scores: tuple[int, ...], offender: int | None, names_saved: tuple[str, ...]
) -> None:
    players = ("ann", "ben", "cem", "dan")

    assert saved(GAME, players, result(*scores, offender=offender), RED) == names_saved


def test_K2_who_has_no_team_saves_nobody() -> None:
    ended = result(9, 5, 3, 1, offender=0)

    assert saved(GAME, ("zoe", "yan", "xia", "wim"), ended, {}) == ()


def test_H13_those_who_are_saved_advance_and_would_not_have() -> None:
    teams = in_teams(4)
    stages, _ = knock_out(8, offence_of("bot 4"), strengths, teams=teams)
    (table,) = (pair.players for pair in stages[0] if "bot 4" in pair.players)
    mates = saved(GAME, table, offence_of("bot 4")(table), teams)

    assert mates
    assert set(mates) <= set(seated(stages[1])) | set(seated(stages[2]))
    for mate in mates:
        better = [name for name in table if names(8).index(name) > names(8).index(mate)]
        assert len(better) >= 2


# --- refusals ---


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: elimination(GAME, (), Stream(b""), HOUSE), "at least 1 of them"),
        (lambda: elimination(GAME, ("ann",), Stream(b""), HOUSE[:2]), "3 house bots"),
        (lambda: elimination(GAME, ("house 1",), Stream(b""), HOUSE), "'house 1' twice"),
        (lambda: elimination(game_for(6), ("ann",), Stream(b""), HOUSE[:3]), "5 house bots"),
    ],
)
def test_what_cannot_be_scheduled_is_refused_at_once(
    call: Callable[[], Schedule], text: str
) -> None:
    with pytest.raises(UsageError, match=text):
        call()


@pytest.mark.parametrize("played", [None, result(0, 0, 0, 0, kind=Ending.VOID)])
def test_J5_an_elimination_goes_on_only_with_results(played: Result | None) -> None:
    schedule = elimination(GAME, names(8), Stream(b""), HOUSE)
    outcomes = tuple(Outcome(pairing, played) for pairing in next(schedule))

    with pytest.raises(UsageError, match="table 1 to be played"):
        schedule.send(outcomes)


def test_outcomes_of_other_pairings_are_refused() -> None:
    schedule = elimination(GAME, names(8), Stream(b""), HOUSE)
    stage = next(schedule)
    outcomes = tuple(Outcome(pairing, strengths(pairing.players)) for pairing in reversed(stage))

    with pytest.raises(UsageError, match="in their order"):
        schedule.send(outcomes)
