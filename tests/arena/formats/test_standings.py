from __future__ import annotations

from math import sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.engine.match import Result
from arena.formats.schedule import Outcome, Pairing
from arena.formats.standings import League, RoundRobin, Row
from arena.games import GAMES
from protocol.messages import Ending, Termination
from tests.support.toy_games import toy_game


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


def round_robin(*outcomes: Outcome, players: str = "ann ben cem") -> RoundRobin:
    standings = RoundRobin(players.split())
    for played in outcomes:
        standings.add(played)
    return standings


def order(standings: RoundRobin) -> list[tuple[int | None, str]]:
    return [(row.rank, row.name) for row in standings.rows()]


def league(
    game: str, *outcomes: Outcome, players: str = "ann ben", **settings: int | None
) -> League:
    rules = GAMES[game]
    read = rules.vocabulary.read_settings(settings)
    standings = League(players.split(), rules.measure, read)
    for played in outcomes:
        standings.add(played)
    return standings


# --- K1 ---


def test_K1_a_row_adds_up_all_matches() -> None:
    standings = round_robin(
        outcome("ann ben", 3, 1, points=(90, 40)),
        outcome("ben ann", 2, 2, points=(60, 70)),
        outcome("ann cem", 0, 4, points=(10, 99)),
        outcome("cem ann", 2, 3, points=(50, 80)),
    )

    (ann,) = (row for row in standings.rows() if row.name == "ann")
    assert (ann.played, ann.wins, ann.draws, ann.losses) == (4, 2, 1, 1)
    assert (ann.score, ann.mean, ann.points) == (8, 2.0, 250)


def test_K1_wins_rank_before_score() -> None:
    standings = round_robin(
        outcome("ann ben", 1, 0), outcome("ann cem", 1, 0), outcome("ben cem", 100, 0)
    )

    assert order(standings) == [(1, "ann"), (2, "ben"), (3, "cem")]


def test_K1_score_ranks_those_with_equal_wins() -> None:
    standings = round_robin(
        outcome("ann ben", 1, 0), outcome("ben cem", 5, 0), outcome("cem ann", 2, 0)
    )

    assert order(standings) == [(1, "ben"), (2, "cem"), (3, "ann")]


def test_K1_those_who_are_level_share_a_rank() -> None:
    standings = round_robin(
        outcome("cem ben", 1, 1),
        outcome("ann cem", 1, 1),
        outcome("ann ben", 1, 1),
        outcome("dan ann", 0, 1),
        outcome("ben dan", 1, 0),
        outcome("cem dan", 1, 0),
        players="ann ben cem dan",
    )

    assert order(standings) == [(1, "ann"), (1, "ben"), (1, "cem"), (4, "dan")]


def test_K5_before_the_first_match_nobody_has_a_rank() -> None:
    assert round_robin().rows() == tuple(
        Row(rank=None, name=name) for name in ("ann", "ben", "cem")
    )


def test_K5_who_has_nobody_left_to_meet_has_no_rank() -> None:
    standings = round_robin(
        outcome("ann ben", 5, 0),
        outcome("ann dan", 0, 0, ended=offence(1)),
        outcome("ben dan", 1, 0),
        outcome("cem dan", 9, 0),
        players="ann ben cem dan",
    )

    assert order(standings) == [(1, "ann"), (2, "ben"), (None, "cem"), (None, "dan")]
    cem = standings.rows()[2]
    assert (cem.eliminated, cem.not_there, cem.played) == (None, False, 0)


def test_K5_who_met_only_itself_has_no_rank() -> None:
    standings = round_robin(outcome("ann ann", 7, -7), players="ann")

    assert order(standings) == [(None, "ann")]


def test_K5_who_was_not_there_is_listed_at_the_end_without_a_rank() -> None:
    table = RoundRobin(("ann", "ben", "cem"), not_there=("dan", "eva"))
    table.add(outcome("ann ben", 1, 0))
    table.add(outcome("cem ann", 0, 0, ended=offence(0)))

    assert order(table) == [
        *((1, "ann"), (2, "ben")),
        *((None, "cem"), (None, "dan"), (None, "eva")),
    ]
    assert [row.not_there for row in table.rows()] == [False] * 3 + [True] * 2
    assert table.rows()[-1].eliminated is None
    assert "dan" not in table.cross_table()


def test_K1_the_error_counts_the_spread_against_each_opponent_alone() -> None:
    standings = round_robin(
        *[outcome("ann ben", 100 + d, 0) for d in (-1, 1)],
        *[outcome("ann cem", -100 + d, 0) for d in (-2, 2)],
    )

    ann = next(row for row in standings.rows() if row.name == "ann")
    against_ben, against_cem = 2 * 2, 8 * 2  # variance of the two times two matches
    assert ann.error == pytest.approx(sqrt(against_ben + against_cem) / 4)


def test_K1_one_match_against_an_opponent_leaves_the_error_unknown() -> None:
    standings = round_robin(*[outcome("ann ben", 1, 0)] * 2, outcome("ann cem", 1, 0))

    errors = {row.name: row.error for row in standings.rows()}
    assert errors == {"ann": None, "ben": 0, "cem": None}


def test_A10_the_cross_table_tells_each_two_from_both_sides() -> None:
    table = round_robin(
        outcome("ann ben", 3, 1), outcome("ben ann", 2, 0), outcome("ann cem", 0, 0)
    ).cross_table()

    assert list(table) == ["ann", "ben", "cem"]
    assert (table["ann"]["ben"].score, table["ann"]["ben"].wins) == (3, 1)
    assert (table["ben"]["ann"].score, table["ben"]["ann"].losses) == (3, 1)
    assert table["ann"]["ben"].mean == 1.5
    assert table["ann"]["ben"].error == pytest.approx(1.5)
    assert table["cem"]["ann"].draws == 1
    assert "cem" not in table["ben"]


def test_A10_a_match_against_itself_stands_on_the_diagonal_alone() -> None:
    standings = round_robin(outcome("ann ann", 7, -7))

    assert standings.cross_table()["ann"]["ann"].score == 7
    assert all(row.played == row.wins == row.score == 0 for row in standings.rows())


# --- J3, J5 ---


def test_J3_an_eliminated_bots_pairings_are_struck_before_and_after() -> None:
    standings = round_robin(
        outcome("ann cem", 0, 50),
        outcome("ann ben", 2, 1),
        outcome("ben cem", 9, 0, ended=offence(1, "seat 2 raised KeyError")),
        outcome("cem ben", 50, 0),
    )

    ann, ben, cem = standings.rows()
    assert (ann.name, ann.rank, ann.played, ann.score) == ("ann", 1, 1, 2)
    assert (ben.name, ben.rank, ben.played, ben.score) == ("ben", 2, 1, 1)
    assert (cem.name, cem.rank, cem.played) == ("cem", None, 0)
    assert cem.eliminated == Termination(Ending.CRASH, 1, "seat 2 raised KeyError")
    assert standings.cross_table().keys() == {"ann", "ben"}
    assert standings.cross_table()["ann"].keys() == {"ben"}


def test_J2_only_the_first_offence_is_told() -> None:
    standings = round_robin(
        outcome("ann ben", 0, 0, ended=offence(0, "first")),
        outcome("ann cem", 0, 0, ended=offence(0, "second")),
    )

    (row,) = (row for row in standings.rows() if row.eliminated)
    assert row.eliminated is not None
    assert row.eliminated.text == "first"


def test_J3_a_bot_can_be_struck_without_a_match() -> None:
    standings = round_robin(outcome("ann ben", 1, 0))
    standings.eliminate("ann", Termination(Ending.ABSENT, None, "it never came"))

    assert order(standings) == [(None, "ben"), (None, "cem"), (None, "ann")]


def test_J3_all_may_be_eliminated() -> None:
    standings = round_robin(
        outcome("ann ben", 0, 0, ended=offence(0)),
        outcome("ben cem", 0, 0, ended=offence(0)),
        outcome("cem ben", 0, 0, ended=offence(0)),
    )

    assert order(standings) == [(None, "ann"), (None, "ben"), (None, "cem")]
    assert standings.cross_table() == {}


def test_J3_a_forgiven_loss_is_a_loss_and_a_win_in_nobodys_mean_or_error() -> None:
    played = [outcome("ann ben", 100 + d, -100 - d) for d in (-1, 1)]
    lost = outcome("ann ben", 7, -7, ended=offence(0), forgiven=(0,))
    ann, ben = round_robin(*played, lost, players="ann ben").rows()
    clean = {row.name: row for row in round_robin(*played, players="ann ben").rows()}

    assert (ann.played, ann.completed, ann.forgiven) == (3, 2, 1)
    assert (ann.wins, ann.losses, ann.score) == (2, 1, 207)
    assert (ben.played, ben.completed, ben.forgiven) == (3, 2, 0)
    assert (ben.wins, ben.losses, ben.score) == (1, 2, -207)
    for row in (ann, ben):
        assert (row.mean, row.error) == (clean[row.name].mean, clean[row.name].error)


def test_J3_forgiven_losses_rank_by_the_wins_of_others() -> None:
    standings = round_robin(
        outcome("ann ben", 50, 0, ended=offence(0), forgiven=(0,)), players="ann ben"
    )

    assert order(standings) == [(1, "ben"), (2, "ann")]


def test_J3_of_two_who_are_forgiven_neither_has_won() -> None:
    ended = Termination(Ending.ABSENT, 0, "late")
    both = outcome("ann ben", 0, 0, ended=ended, also_out=(1,), forgiven=(0, 1))

    for row in round_robin(both, players="ann ben").rows():
        assert (row.rank, row.wins, row.losses, row.forgiven) == (1, 0, 1, 1)


def test_J3_if_one_of_two_is_out_the_match_is_struck() -> None:
    ended = Termination(Ending.ABSENT, 0, "late")
    one = outcome("ann ben", 0, 0, ended=ended, also_out=(1,), forgiven=(0,))
    ann, ben = round_robin(one, players="ann ben").rows()

    assert (ann.name, ann.played, ann.rank) == ("ann", 0, None)
    assert (ben.name, ben.eliminated) == ("ben", ended)


def test_J3_forgiven_losses_are_struck_with_the_rest() -> None:
    standings = round_robin(
        outcome("ann ben", 0, 0, ended=offence(0), forgiven=(0,)),
        outcome("ann cem", 0, 0, ended=offence(0, "again")),
    )

    assert {row.played for row in standings.rows()} == {0}
    assert {row.wins for row in standings.rows()} == {0}
    assert standings.rows()[-1].eliminated == offence(0, "again")


def test_J5_void_and_unplayed_matches_count_for_nothing() -> None:
    standings = round_robin(
        outcome("ann ben", 5, 0, ended=Termination(Ending.VOID)),
        Outcome(Pairing(2, ("ann", "cem")), None),
    )

    assert standings.rows() == round_robin().rows()


results = st.lists(
    st.tuples(
        st.sampled_from(["ann ben", "ben ann", "ben cem", "cem ben", "ann cem"]),
        st.tuples(st.integers(-5, 5), st.integers(-5, 5)),
        st.none() | st.integers(0, 3),
    )
)


@given(results)
def test_K1_the_rows_agree_with_each_other(
    played: list[tuple[str, tuple[int, int], int | None]],
) -> None:
    outcomes = [
        outcome(players, *scores, ended=offence(seat) if seat is not None and seat < 2 else None)
        for players, scores, seat in played
    ]
    rows = round_robin(*outcomes).rows()
    out = {row.name for row in rows if row.eliminated}
    counted = [
        outcome.result
        for outcome in outcomes
        if outcome.result and not out & set(outcome.pairing.players)
    ]

    assert sum(row.played for row in rows) == 2 * len(counted)
    assert sum(row.wins for row in rows) == sum(row.losses for row in rows)
    assert sum(row.score for row in rows) == sum(sum(result.scores) for result in counted)
    for row in rows:
        assert row.played == row.wins + row.draws + row.losses
        assert (row.rank is None) == (row.played == 0)
        assert row.played == 0 or row.name not in out
    ranked = [row for row in rows if row.rank is not None]
    assert ranked == sorted(ranked, key=lambda row: (-row.wins, -row.score))


# --- K3 ---


def test_K3_three_card_poker_ranks_by_the_share_of_matches_that_reached_the_goal() -> None:
    standings = league(
        "three_card_poker",
        *[outcome("ann", 2000)] * 2,
        *[outcome("ann", -999)] * 2,
        *[outcome("ben", 500)] * 3,
        outcome("ben", 499),
        stake=1000,
        goal=1500,
    )

    ben, ann = standings.rows()
    assert (ben.rank, ben.name, ben.played, ben.value) == (1, "ben", 4, 0.75)
    assert (ann.rank, ann.name, ann.played, ann.value) == (2, "ann", 4, 0.5)
    assert ann.score == 2002
    assert ann.error == pytest.approx(sqrt(0.5 * 0.5 / 4))


@pytest.mark.parametrize(("score", "value"), [(99, 0), (100, 1), (101, 1)])
def test_K3_the_goal_is_twice_the_stake_unless_the_competition_says_otherwise(
    score: int, value: float
) -> None:
    standings = league("three_card_poker", outcome("ann", score), stake=100, goal=None)

    assert standings.rows()[0].value == value


def test_K3_a_goal_never_reached_has_an_error_all_the_same() -> None:
    standings = league("three_card_poker", *[outcome("ann", -100)] * 8, stake=100, goal=None)

    assert standings.rows()[0].value == 0
    assert standings.rows()[0].error == pytest.approx(sqrt(0.1 * 0.9 / 8))


def test_K3_blackjack_ranks_by_the_mean_final_bankroll() -> None:
    standings = league(
        "blackjack",
        outcome("ann", -100),
        outcome("ann", 20),
        outcome("ben", -30),
        outcome("ben", -10),
        bankroll=100,
    )

    ben, ann = standings.rows()
    assert (ben.name, ben.rank, ben.value, ben.score) == ("ben", 1, 80, -40)
    assert (ann.name, ann.rank, ann.value, ann.score) == ("ann", 2, 60, -80)
    assert ann.error == pytest.approx(60)
    assert ben.error == pytest.approx(10)


def test_K5_those_who_have_not_played_come_last_and_have_no_rank() -> None:
    standings = league(
        "three_card_poker", outcome("cem", -100), players="ann ben cem", stake=100, goal=None
    )

    assert [(row.rank, row.name, row.value, row.error) for row in standings.rows()][1:] == [
        (None, "ann", None, None),
        (None, "ben", None, None),
    ]


def test_K5_who_was_not_there_is_listed_in_a_league_too() -> None:
    rules = GAMES["blackjack"]
    settings = rules.vocabulary.read_settings({"bankroll": 100})
    table = League(("ann", "ben"), rules.measure, settings, not_there=("cem",))
    table.add(outcome("ann", 50))

    assert [(row.rank, row.name, row.not_there) for row in table.rows()] == [
        (1, "ann", False),
        (None, "ben", False),
        (None, "cem", True),
    ]


def test_J3_an_eliminated_bot_is_struck_from_a_league() -> None:
    standings = league(
        "blackjack",
        outcome("ann", 50),
        outcome("ann", -100, ended=offence(0)),
        outcome("ben", -100),
        bankroll=100,
    )

    ben, ann = standings.rows()
    assert (ben.rank, ben.name) == (1, "ben")
    assert (ann.rank, ann.name, ann.played, ann.value) == (None, "ann", 0, None)
    assert ann.eliminated == offence(0)


@pytest.mark.parametrize(
    ("game", "settings", "good", "value"),
    [
        ("three_card_poker", {"stake": 100, "goal": None}, 100, 2 / 3),
        ("blackjack", {"bankroll": 100}, 20, 80),
    ],
)
def test_J3_in_a_league_a_forgiven_loss_counts_as_the_lost_stake_and_in_no_error(
    game: str, settings: dict[str, Any], good: int, value: float
) -> None:
    """Who leaves a match that goes badly has gained nothing by it."""
    played = [outcome("ann", good)] * 2
    left = outcome("ann", -100, ended=offence(0), forgiven=(0,))
    lost = outcome("ann", -100)
    forgiven, ben = league(game, *played, left, **settings).rows()
    plain, _ = league(game, *played, **settings).rows()
    as_lost, _ = league(game, *played, lost, **settings).rows()

    assert (forgiven.played, forgiven.forgiven) == (3, 1)
    assert forgiven.value == pytest.approx(value) == as_lost.value
    assert forgiven.score == as_lost.score
    assert plain.error is not None
    assert forgiven.error == pytest.approx(plain.error * 2 / 3)
    assert (ben.rank, ben.value) == (None, None)


def test_J3_a_league_of_forgiven_losses_alone_has_no_error() -> None:
    left = outcome("ann", -100, ended=offence(0), forgiven=(0,))
    ann, _ = league("blackjack", left, bankroll=100).rows()

    assert (ann.rank, ann.played, ann.value, ann.error) == (1, 1, 0, None)


@pytest.mark.parametrize(
    ("score", "value"),
    [(9, (5 + 3 + 0) / 3), (-4, (5 + 3 - 4) / 3)],  # nothing is won by leaving
)
def test_K3_a_game_without_a_measure_of_its_own_ranks_by_the_mean_score(
    score: int, value: float
) -> None:
    toy = toy_game(1)
    standings = League(("ann", "ben"), toy.measure, toy.vocabulary.read_settings(None))
    for played in outcome("ann", 5), outcome("ann", 3), outcome("ben", 3):
        standings.add(played)
    assert toy.measure.title == "mean score"
    assert [(row.name, row.value) for row in standings.rows()] == [("ann", 4), ("ben", 3)]
    assert standings.rows()[0].error == pytest.approx(1)

    standings.add(outcome("ann", score, ended=offence(0), forgiven=(0,)))
    ann = next(row for row in standings.rows() if row.name == "ann")
    assert ann.value == pytest.approx(value)
    assert (ann.played, ann.forgiven) == (3, 1)


def test_K3_in_a_share_a_lost_match_is_none_even_where_nothing_was_to_be_reached() -> None:
    left = outcome("ann", 0, ended=offence(0), forgiven=(0,))
    ann, _ = league("three_card_poker", outcome("ann", 0), left, stake=0).rows()

    assert ann.value == 0.5
