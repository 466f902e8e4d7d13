"""The few words that all games are written in."""

from __future__ import annotations

import pytest

from arena.games.catalogue import GAMES
from arena.games.rules import EVERYONE, Game, Scoreboard, TellSeat, Trial


def test_a_scoreboard_starts_at_zero() -> None:
    board = Scoreboard(4)

    assert board.scores == board.points == [0, 0, 0, 0]
    assert board.scores is not board.points


def test_everyone_is_no_seat() -> None:
    assert TellSeat(EVERYONE, None).seat not in range(4)  # type: ignore[arg-type]


@pytest.mark.parametrize("game", GAMES.values(), ids=list(GAMES))
def test_only_who_plays_against_the_dealer_has_a_stake_to_lose(game: Game) -> None:
    assert (game.stake is not None) == (game.seats == 1)


def test_what_a_game_does_not_say_follows_from_its_rounds() -> None:
    said = GAMES["ace_king_queen"]
    unsaid = "short", "for_people", "cross", "demo", "bench", "unit"
    fields = [field for field in Game.__struct_fields__ if field not in unsaid]
    game = Game(**{field: getattr(said, field) for field in fields})

    assert (game.short, game.for_people) == (said.rounds(6), said.rounds(20))
    assert (game.cross, game.demo) == (Trial(matches=120), Trial(said.rounds(100)))
    assert game.bench == Trial(said.rounds(1000))
