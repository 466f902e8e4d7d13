"""Standings of round robins and leagues, beside the same counted again from the rulebook.

What people are shown as intervals is tested in `test_intervals.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from statistics import stdev, variance
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from arena.formats.schedule import Outcome, Pairing
from arena.formats.standings import Cell, League, RoundRobin
from arena.games.catalogue import GAMES
from arena.games.match import Result
from protocol.messages import Ending, Termination
from tests.support.toy_games import toy_game

BARE = {"interval": None, "level": None, "method": None}


def outcome(
    players: str,
    *scores: int,
    points: tuple[int, ...] | None = None,
    ended: Termination | None = None,
    also_out: tuple[int, ...] = (),
    forgiven: tuple[int, ...] = (),
) -> Outcome:
    """A match told as `outcome("ann ben", 3, -3)`."""
    names = tuple(players.split())
    termination = ended or Termination(Ending.COMPLETED)
    points = points or (0,) * len(scores)
    result = Result(scores, points, termination, also_out)
    return Outcome(Pairing(1, names), result, forgiven)


def offence(seat: int, text: str = "it crashed") -> Termination:
    return Termination(Ending.CRASH, seat, text)


ENDINGS = ("completed",) * 5 + ("forgiven", "offence", "both", "one of both", "void", "unplayed")


@st.composite
def outcomes(draw: st.DrawFn, tables: Sequence[str]) -> list[Outcome]:
    """Matches of these tables, as they may end."""
    found = []
    for number in range(draw(st.integers(0, 14))):
        table = draw(st.sampled_from(tables))
        seats = len(table.split())
        scores = draw(st.tuples(*[st.integers(-5, 5)] * seats))
        ending = draw(st.sampled_from(ENDINGS))
        seat = draw(st.integers(0, seats - 1))
        other = (1 - seat,) if seats == 2 else ()
        ended = None if ending == "completed" else offence(seat, f"{ending} {number}")
        if ending == "void":
            ended = Termination(Ending.VOID)
        out = other if "both" in ending else ()
        pardoned = {"forgiven": (seat,), "both": (seat, *out), "one of both": (seat,)}
        points = tuple(score + 9 for score in scores)
        made = outcome(table, *scores, points=points, ended=ended, also_out=out)
        made = replace(made, forgiven=pardoned.get(ending, ()))
        if table.split() == ["ann", "ann"] and ending != "completed":
            continue  # nobody is at fault against itself
        found.append(replace(made, result=None) if ending == "unplayed" else made)
    return found


def counting(played: list[Outcome]) -> tuple[list[tuple[tuple[str, ...], Result]], dict[str, Any]]:
    """The matches that count, and who is out by which offence (J2, J3, J5)."""
    out: dict[str, Termination] = {}
    fine = []
    for each in played:
        result = each.result
        if result is None or result.termination.kind is Ending.VOID:
            continue
        offenders = [seat for seat in result.out if seat not in each.forgiven]
        for seat in offenders:
            out.setdefault(each.pairing.players[seat], result.termination)
        if not offenders:
            fine.append((each.pairing.players, result))
    return fine, out


def places(names: list[str], worth: Callable[[str], Any]) -> list[tuple[int, str]]:
    """Equals share a rank, 1 1 3."""
    order = sorted(names, key=lambda name: worth(name), reverse=True)
    return [(1 + sum(worth(other) > worth(name) for other in names), name) for name in order]


# --- K1: round robins ---


def cell(name: str, others: list[str], fine: list[tuple[tuple[str, ...], Result]]) -> Cell:
    """What a bot has done against these others in the matches that count."""
    seen = [
        (result, seat, players[1 - seat])
        for players, result in fine
        for seat in (0, 1)
        if players[seat] == name and players[1 - seat] in others
        if seat == 0 or players[0] != players[1]
    ]
    won = lost = 0
    by_opponent: dict[str, list[int]] = {}
    for result, seat, other in seen:
        mine, theirs = result.scores[seat], result.scores[1 - seat]
        won += seat not in result.out and (bool(result.out) or mine > theirs)
        lost += seat in result.out or (not result.out and mine < theirs)
        if not result.out:
            by_opponent.setdefault(other, []).append(mine)
    values = [value for some in by_opponent.values() for value in some]
    error = None
    if values and all(len(some) > 1 for some in by_opponent.values()):
        spread = sum(len(some) * variance(some) for some in by_opponent.values())
        error = sqrt(spread) / len(values)
    return Cell(
        played=len(seen),
        completed=len(values),
        wins=won,
        draws=len(seen) - won - lost,
        losses=lost,
        forgiven=sum(seat in result.out for result, seat, _ in seen),
        score=sum(result.scores[seat] for result, seat, _ in seen),
        mean=sum(values) / len(values) if values else None,
        error=error,
        points=sum(result.points[seat] for result, seat, _ in seen),
    )


def same(found: Cell, expected: Cell) -> bool:
    fields = {name: getattr(found, name) for name in Cell.__struct_fields__} | BARE
    for name in ("mean", "error"):
        assert fields[name] == pytest.approx(getattr(expected, name))
    approximate = {"mean": expected.mean, "error": expected.error}
    return Cell(**{**fields, **approximate}) == expected


TABLES = ("ann ben", "ben ann", "ben cem", "cem ben", "ann cem", "dan ann", "cem dan", "ann ann")


@settings(max_examples=80)
@given(outcomes(TABLES), st.none() | st.sampled_from(["ann", "dan"]))
def test_K1_K5_A10_J2_J3_J5_rows_and_cells_are_of_the_matches(
    played: list[Outcome], removed: str | None
) -> None:
    names = ["ann", "ben", "cem", "dan"]
    standings = RoundRobin(names, not_there=("eva",))
    for each in played:
        standings.add(each)
    fine, out = counting(played)
    if removed:
        gone = Termination(Ending.ABSENT, None, "it never came")
        standings.eliminate(removed, gone)
        out.setdefault(removed, gone)
    left = [name for name in names if name not in out]
    totals = {name: cell(name, [one for one in left if one != name], fine) for name in left}
    having_played = [name for name in left if totals[name].played]
    ranks = places(having_played, lambda name: (totals[name].wins, totals[name].score))
    rows = standings.rows()

    assert [(row.rank, row.name, row.eliminated, row.not_there) for row in rows] == [
        *((rank, name, None, False) for rank, name in ranks),
        *((None, name, None, False) for name in left if name not in having_played),
        *((None, name, ended, False) for name, ended in out.items()),
        (None, "eva", None, True),
    ]
    for row in rows:
        assert same(row, totals.get(row.name, Cell()) if row.rank else Cell())
    table = standings.cross_table()
    assert list(table) == left
    for name in left:
        cells = {other: cell(name, [other], fine) for other in left}
        assert list(table[name]) == [other for other in left if cells[other].played]
        assert all(same(table[name][other], cells[other]) for other in table[name])


def test_K1_the_error_counts_the_spread_against_each_opponent() -> None:
    standings = RoundRobin(("ann", "ben", "cem"))
    for score in 99, 101:
        standings.add(outcome("ann ben", score, 0))
    for score in -102, -98:
        standings.add(outcome("ann cem", score, 0))

    against_ben, against_cem = 2 * 2, 8 * 2  # variance of the two times two matches
    assert standings.rows()[0].error == pytest.approx(sqrt(against_ben + against_cem) / 4)


def test_J3_a_forgiven_loss_is_in_nobodys_mean_or_error() -> None:
    standings = RoundRobin(("ann", "ben"))
    for score in 99, 101:
        standings.add(outcome("ann ben", score, -score))
    clean = standings.rows()
    standings.add(outcome("ann ben", 7, -7, ended=offence(0), forgiven=(0,)))
    ann, ben = standings.rows()

    assert (ann.wins, ann.losses, ann.forgiven, ann.completed, ann.score) == (2, 1, 1, 2, 207)
    assert (ben.wins, ben.losses, ben.forgiven, ben.completed, ben.score) == (1, 2, 0, 2, -207)
    assert [(row.mean, row.error) for row in (ann, ben)] == [(row.mean, row.error) for row in clean]


# --- K3: leagues ---


def league(game: str, *played: Outcome, **chosen: int | None) -> League:
    rules = toy_game(1) if game == "toy" else GAMES[game]
    read = rules.vocabulary.read_settings(chosen)
    standings = League(("ann", "ben", "cem"), rules.measure, read, not_there=("eva",))
    for each in played:
        standings.add(each)
    return standings


@settings(max_examples=80)
@given(
    st.sampled_from(["three_card_poker", "blackjack", "toy"]),
    outcomes(("ann", "ben", "cem")),
    st.none() | st.integers(8, 12),
)
def test_K3_K5_J3_a_league_ranks_by_its_measure_per_match(
    game: str, played: list[Outcome], goal: int | None
) -> None:
    chosen: dict[str, dict[str, int | None]] = {
        "three_card_poker": {"stake": 9, "goal": goal},
        "blackjack": {"bankroll": 9},
    }
    standings = league(game, *played, **chosen.get(game, {}))

    def value(score: int) -> float:
        if game == "three_card_poker":
            return float(9 + score >= (18 if goal is None else goal))
        return score + 9 if game == "blackjack" else score

    fine, out = counting(played)
    left = [name for name in ("ann", "ben", "cem") if name not in out]
    expected: dict[str, tuple[int, int, Any, Any, int]] = {}
    for name in left:
        mine = [result for players, result in fine if players == (name,)]
        done = [value(result.scores[0]) for result in mine if not result.out]
        # Nothing is won by leaving, and in a share a match that was left is none.
        lost = [min(0, result.scores[0]) for result in mine if result.out]
        worth = sum(done) + sum(0 if game == "three_card_poker" else value(each) for each in lost)
        error = None
        if game == "three_card_poker" and done:
            smoothed = (sum(done) + 1) / (len(done) + 2)
            error = sqrt(smoothed * (1 - smoothed) / len(done)) * len(done) / len(mine)
        elif game != "three_card_poker" and len(done) > 1:
            error = stdev(done) / sqrt(len(done)) * len(done) / len(mine)
        mean = worth / len(mine) if mine else None
        total = sum(result.scores[0] for result in mine)
        expected[name] = len(mine), len(lost), mean, error, total
    having_played = [name for name in left if expected[name][0]]
    rows = standings.rows()

    assert [(row.rank, row.name, row.eliminated, row.not_there) for row in rows] == [
        *(
            (rank, name, None, False)
            for rank, name in places(having_played, lambda n: expected[n][2])
        ),
        *((None, name, None, False) for name in left if name not in having_played),
        *((None, name, ended, False) for name, ended in out.items()),
        (None, "eva", None, True),
    ]
    for row in rows:
        found = row.played, row.forgiven, row.value, row.error, row.score
        assert found == pytest.approx(expected.get(row.name, (0, 0, None, None, 0)))


@pytest.mark.parametrize(
    ("game", "chosen", "scores", "value", "error"),
    [
        ("three_card_poker", {"stake": 1000, "goal": 1500}, [500, 500, 499, -999], 0.5, 0.25),
        ("three_card_poker", {"stake": 100, "goal": None}, [99], 0, None),
        ("three_card_poker", {"stake": 100, "goal": None}, [100], 1, None),
        ("three_card_poker", {"stake": 100, "goal": None}, [-100] * 8, 0, sqrt(0.09 / 8)),
        ("blackjack", {"bankroll": 100}, [-100, 20], 60, 60),
        ("blackjack", {"bankroll": 100}, [-30, -10], 80, 10),
    ],
)
def test_K3_a_league_ranks_by_shares_or_bankrolls(
    game: str, chosen: dict[str, Any], scores: list[int], value: float, error: float | None
) -> None:
    row = league(game, *(outcome("ann", score) for score in scores), **chosen).rows()[0]

    assert (row.name, row.rank, row.value, row.score) == ("ann", 1, value, sum(scores))
    assert error is None or row.error == pytest.approx(error)


def test_K3_a_game_without_a_measure_ranks_by_the_mean_score() -> None:
    assert toy_game(1).measure.title == "mean score"
