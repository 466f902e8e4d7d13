from __future__ import annotations

from typing import Any

import pytest

from arena.formats.elimination import elimination
from arena.formats.formats import (
    check_form,
    expected_matches,
    expected_tables,
    forms_for,
    schedule_of,
    standings_of,
)
from arena.formats.ladder import Ladder
from arena.formats.schedule import Outcome, Pairing, Schedule, league, round_robin
from arena.formats.spec import Form, Plan, form_of, plan_of
from arena.formats.standings import League, RoundRobin
from arena.games.catalogue import GAMES, game_named
from arena.games.match import Result
from arena.games.shuffle import Stream
from protocol.errors import UsageError
from protocol.messages import Ending, Termination
from tests.arena.formats.test_schedule import HOUSE, names, run, strengths
from tests.support.toy_games import toy_game

SEED = "00ff" * 16


def plan(game: str, count: int, form: Form | None = None, **rest: Any) -> Plan:
    rules = game_named(game)
    settings = rules.vocabulary.read_settings({})
    return plan_of(rules, settings, names(count), form, house=HOUSE[:3], seed=SEED, **rest)


def played(schedule: Schedule) -> list[Pairing]:
    """All pairings of a schedule."""
    stages, _ = run(schedule, strengths)
    return [pairing for stage in stages for pairing in stage]


FITS = {
    1: {Form.LEAGUE},
    2: {Form.ROUND_ROBIN, Form.LADDER},
    3: {Form.ELIMINATION, Form.LADDER},
    4: {Form.ELIMINATION, Form.LADDER},
    6: {Form.ELIMINATION, Form.LADDER},
}


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("game", GAMES)
def test_K_every_form_is_of_its_games_alone(game: str, form: Form) -> None:
    if form in FITS[GAMES[game].seats]:
        check_form(GAMES[game], form)
        return
    for call in (
        lambda: check_form(GAMES[game], form),
        lambda: schedule_of(plan(game, 8, form)),
        lambda: standings_of(plan(game, 8, form)),
    ):
        with pytest.raises(UsageError, match=f"^expected .*, got {game}") as caught:
            call()

        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("game", GAMES)
def test_K_the_default_form_fits_its_game(game: str) -> None:
    check_form(GAMES[game], form_of(GAMES[game]))


@pytest.mark.parametrize("seats", [1, 2, 3, 6])
def test_K_a_game_of_another_package_has_the_forms_of_its_seats(seats: int) -> None:
    game = toy_game(seats)

    assert set(forms_for(game)) == FITS[seats]
    assert forms_for(game)[0] is form_of(game)
    for form in FITS[seats]:
        check_form(game, form)
    for form in set(Form) - FITS[seats]:
        with pytest.raises(UsageError, match=f"got {game.name}, which is for {seats}; its forms:"):
            check_form(game, form)


@pytest.mark.parametrize("bots", range(2, 31))
@pytest.mark.parametrize("seats", [3, 6])
def test_K2_the_tables_of_an_elimination_are_counted_for_any_seats(seats: int, bots: int) -> None:
    game = toy_game(seats)
    house = tuple(f"house {n}" for n in range(1, seats))
    schedule = elimination(game, names(bots), Stream(b"5"), house)

    assert expected_tables(game, bots) == len(played(schedule))


def test_K1_a_plan_has_its_round_robin() -> None:
    ours = plan("akq", 5, matches=2, with_itself=True)

    assert played(schedule_of(ours)) == played(round_robin(names(5), 2, True))
    assert isinstance(standings_of(ours), RoundRobin)


def test_K3_a_plan_has_its_league_with_its_settings() -> None:
    ours = plan("blackjack", 3, matches=4)
    standings = standings_of(ours)
    assert isinstance(standings, League)
    won = Result((25,), (0,), Termination(Ending.COMPLETED))
    standings.add(Outcome(Pairing(1, ("bot 2",)), won))

    assert played(schedule_of(ours)) == played(league(names(3), 4))
    assert standings.rows()[0].value == ours.settings["bankroll"] + 25


def test_K2_a_plan_has_its_elimination_from_its_seed_with_its_teams() -> None:
    teams = {"bot 1": "red", "bot 2": "red", "bot 3": "red"}
    ours = plan("high_low", 13, teams=teams)
    again = elimination(ours.rules, names(13), Stream(bytes.fromhex(SEED)), HOUSE[:3], teams)

    assert played(schedule_of(ours)) == played(schedule_of(ours)) == played(again)
    assert standings_of(ours) is None


@pytest.mark.parametrize(
    ("seed", "text"), [("", "with a seed, got none"), ("xy", "in hex, got 'xy'")]
)
def test_K2_an_elimination_that_anybody_could_foretell_is_refused(seed: str, text: str) -> None:
    rules = GAMES["high_low"]
    ours = plan_of(rules, rules.vocabulary.read_settings({}), names(8), house=HOUSE[:3], seed=seed)

    with pytest.raises(UsageError, match=text):
        schedule_of(ours)


def test_K4_a_ladder_has_standings_and_no_schedule() -> None:
    ours = plan("gin", 3, Form.LADDER)
    standings = standings_of(ours)

    assert isinstance(standings, Ladder)
    assert [row.name for row in standings.rows()] == list(names(3))
    assert expected_matches(ours) is None
    with pytest.raises(UsageError, match="got a ladder"):
        schedule_of(ours)


@pytest.mark.parametrize("count", [*range(2, 18), 40])
@pytest.mark.parametrize(
    ("game", "rest"),
    [
        ("akq", {"matches": 3}),
        ("akq", {"matches": 2, "with_itself": True}),
        ("blackjack", {"matches": 3}),
        ("high_low", {}),
    ],
)
def test_the_number_of_matches_is_known_beforehand(
    game: str, rest: dict[str, Any], count: int
) -> None:
    """For an elimination, where two of every four drop out."""
    ours = plan(game, count, **rest)

    assert expected_matches(ours) == len(played(schedule_of(ours)))
