from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count as count_from
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from arena.formats.elimination import elimination, saved
from arena.formats.schedule import Outcome, Pairing, Ranking, RankingPlace, Schedule, Stage
from arena.games.high_low.rules import GAME
from arena.games.match import Result
from arena.games.rules import Game
from arena.games.shuffle import Stream, seed_from_int
from protocol.errors import UsageError
from protocol.messages import Ending
from tests.arena.formats.test_schedule import HOUSE, Table, names, result, run, seated, strengths

NO_TEAMS: Mapping[str, str] = {}


def game_for(seats: int, **more: Any) -> Game:
    """A game for so many that says nothing of who goes on, unless `more` does."""
    vocabulary = replace(GAME.vocabulary, seats=seats)
    silent: dict[str, Any] = {"advancing": None, "survivors": None}
    return replace(GAME, vocabulary=vocabulary, **{**silent, **more})


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


# --- K2: elimination, told once more ---

Group = tuple[list[str], int, bool, int | None]
"""Names that share a place, the stage, whether it was an offence, and the score in a final."""


def lots_of(seed: bytes) -> Iterator[int]:
    """Sixteen bytes of the stream at a time: half a block of SHA-256."""
    block = 0
    while True:
        data = hashlib.sha256(seed + block.to_bytes(8, "big")).digest()
        yield int.from_bytes(data[:16], "big")
        yield int.from_bytes(data[16:], "big")
        block += 1


def drawn_by_hand(
    left: list[str],
    byes: Counter[str],
    teams: Mapping[str, str],
    lots: Iterator[int],
    seats: int = 4,
) -> tuple[list[str], list[list[str]]]:
    """The draw of a stage as the docstring of `elimination` says it, for once without its code."""
    if len(left) <= seats:
        left = [*left, *HOUSE[: seats - len(left)]]
        lot = {name: next(lots) for name in left}
        return [], [sorted(left, key=lot.__getitem__)]
    count = len(left) // seats
    lot = {name: next(lots) for name in left}
    order = sorted(left, key=lambda name: lot[name])

    resting: list[str] = []
    for _ in range(len(left) % seats):
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


GO_ON = {3: 1, 4: 2, 5: 2, 6: 3}
"""How many go on from a table of so many seats where the game does not say: half of them."""


def through_by_hand(game: Game, outcome: Outcome) -> Iterator[str]:
    """Who goes on: nobody by lot, and nobody is kept out by an offence of another."""
    played = outcome.result
    assert played is not None
    most = game.advancing or GO_ON[game.seats]
    for seat, name in enumerate(outcome.pairing.players):
        if played.out:
            if seat not in played.out:
                yield name
        elif sum(score > played.scores[seat] for score in played.scores) < most:
            yield name


def check_teams(
    stage: Stage,
    entered: list[str],
    resting: list[str],
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
    last = fewest[-1] if fewest else -1
    entitled = {name for name in entered if byes[name] == last}
    forced = {name for name in entered if byes[name] < last}
    members = Counter(teams[name] for name in entered if name in teams and name not in forced)
    excess = {team: max(0, size - len(stage)) for team, size in members.items()}
    can_rest = Counter(teams[name] for name in entitled if name in teams)
    is_free = sum(excess.values()) <= len(resting) - len(forced)
    if is_free and all(excess[team] <= can_rest[team] for team in excess):
        assert all(number == 1 for table in spread for number in table.values())


GAMES = (GAME, *map(game_for, (3, 4, 5, 6)), game_for(3, advancing=2), game_for(6, advancing=1))
ENDINGS = ("anything", "anything", "all level", "one out of all", "offences everywhere")


@settings(max_examples=100)
@given(
    count=st.integers(1, 13) | st.integers(14, 40),
    data=st.data(),
    seed=st.integers(0, 1000),
    most=st.integers(0, 6),
    game=st.sampled_from(GAMES),
)
def test_K2_H11_to_H13_J3_whatever_happens_is_as_the_rules_say(
    count: int, data: st.DataObject, seed: int, most: int, game: Game
) -> None:
    seats = game.seats
    ending = data.draw(st.sampled_from(ENDINGS))

    def anything(players: tuple[str, ...], number: int) -> Result:
        if ending == "all level" or (ending == "one out of all" and number > 1):
            return result(*[-2] * seats)
        scores = data.draw(st.tuples(*[st.integers(-3, 3)] * seats))
        out = data.draw(st.none() | st.integers(0, seats - 1))
        if ending == "offences everywhere":
            out = min(range(seats), key=players.__getitem__)
        ended = result(*scores, offender=out)
        if out is None or not data.draw(st.booleans()):
            return ended
        return replace(ended, also_out=((out + 1) % seats,))

    team_of = data.draw(st.lists(st.integers(0, most), min_size=count, max_size=count))
    pairs = zip(names(count), team_of, strict=True)
    teams = {name: f"team {team}" for name, team in pairs if team}  # number 0 is none
    schedule = elimination(game, names(count), Stream(seed_from_int(seed)), HOUSE, teams)
    lots = lots_of(seed_from_int(seed))
    left, byes, groups, numbers = list(names(count)), Counter[str](), list[Group](), count_from(1)
    stage = next(schedule)
    for at in range(1, count + 2):  # a stage puts one out at least, or is the last
        is_final = len(left) <= seats
        resting, tables = drawn_by_hand(left, byes, teams, lots, seats)
        assert stage == tuple(Pairing(next(numbers), tuple(table)) for table in tables)
        if not is_final:
            check_teams(stage, left, resting, byes, teams)
        byes.update(resting)

        outcomes = tuple(Outcome(pair, anything(pair.players, pair.number)) for pair in stage)
        played = [(pair.players, outcome.result) for pair, outcome in zip(stage, outcomes)]  # noqa: B905
        out = {players[seat] for players, ended in played if ended for seat in ended.out}
        going = {*resting, *(name for each in outcomes for name in through_by_hand(game, each))}
        through = [name for name in left if name in going]
        offenders = [name for name in left if name in out]
        if is_final:
            [(players, ended)] = played
            assert ended is not None
            scores = dict(zip(players, ended.scores, strict=True))
            better = sorted({scores[name] for name in left if name not in out}, reverse=True)
            fine = [name for name in left if name not in out]
            ranked: list[Group] = [
                ([name for name in fine if scores[name] == score], at, False, score)
                for score in better
            ]
        elif len(through) == len(left):
            ranked = [(left, at, False, None)]
        else:
            beaten = [name for name in left if name not in going and name not in out]
            ranked = [(beaten, at, False, None)]
        groups = [*ranked, (offenders, at, True, None), *groups]
        is_last = is_final or not through or len(through) == len(left)
        try:
            stage = schedule.send(outcomes)
        except StopIteration as done:
            ranking: Ranking = done.value
            assert is_last
            break
        assert not is_last
        left = through
    else:
        pytest.fail("it never ends")

    expected, better_ones = [], 0
    for together, at, offence, score in groups:
        if together:
            place = RankingPlace(rank=better_ones + 1, names=tuple(together), stage=at)
            expected.append(replace(place, offence=offence, score=score))
            better_ones += len(together)
    assert ranking == tuple(expected)
    assert better_ones == count


def test_K2_more_than_256_bots_can_be_drawn() -> None:
    stages, ranking = knock_out(98 * 4, lambda players: result(*[-2] * 4))

    assert len(set(seated(stages[0]))) == 98 * 4
    assert ranking == (RankingPlace(rank=1, names=names(98 * 4), stage=1),)


# --- games for other numbers of seats, and with rules of their own ---


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
    ("scores", "offender", "teams", "names_saved"),
    [
        ((9, 5, 3, 1), 0, RED, ("cem",)),  # ben was second all the same
        ((9, 3, 2, 5), 0, RED, ("ben", "cem")),
        ((1, 9, 5, 3), 0, RED, ()),  # both were through
        ((1, 9, 3, 5), 0, RED, ("cem",)),
        ((9, 5, 5, 1), 0, RED, ("ben", "cem")),  # level at the cut, nobody is sure
        ((9, 5, 5, 5), 1, RED, ("cem",)),
        ((9, 4, 5, 5), 0, RED, ("ben", "cem")),
        ((0, 0, 0, 0), 0, RED, ("ben", "cem")),  # at once: the best moment for it
        ((9, 5, 3, 1), 3, RED, ()),  # dan has no team-mate here
        ((9, 8, 3, 1), None, RED, ()),  # no offence
        ((9, 5, 3, 1), 0, {}, ()),  # nobody has a team
    ],
)
def test_K2_an_offence_that_saves_a_team_mate_is_told(
    scores: tuple[int, ...],
    offender: int | None,
    teams: dict[str, str],
    names_saved: tuple[str, ...],
) -> None:
    players = ("ann", "ben", "cem", "dan")

    assert saved(GAME, players, result(*scores, offender=offender), teams) == names_saved


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
