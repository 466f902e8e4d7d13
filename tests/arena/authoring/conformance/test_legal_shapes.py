"""Every shape of `legal` comes up in the matches that `arena check` plays for them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from arena.authoring.conformance.legal_shapes import SHAPES, VARIATIONS
from arena.authoring.conformance.table import CheckMatch
from arena.games import GAMES, game_named
from protocol.games import VOCABULARIES
from protocol.messages import Ask, Limits
from protocol.vocabulary import Question

EACH_GAME = pytest.mark.parametrize("game", GAMES)


def questions(game: str, matches: int) -> list[Question[Any]]:
    """The questions to a bot that plays at random."""
    rules, rng = game_named(game), random.Random(game)
    asked: list[Question[Any]] = []
    for number in range(matches):
        variation = VARIATIONS[game][number % len(VARIATIONS[game])]
        seat = number % rules.seats
        settings, others = variation.settings_for(seat), variation.others
        table = CheckMatch(
            number, rules, settings, seat, "ann", Limits(), rng, others, variation.wanted
        )
        table.begin("nonce")
        while isinstance(message := table.next(), Ask):
            asked.append(message.question)
            table.instead()
    return asked


@EACH_GAME
def test_every_kind_of_question_has_a_shape(game: str) -> None:
    kinds = {shape.kind for shape in SHAPES[game]}

    assert kinds == {*VOCABULARIES[game].questions}


@EACH_GAME
def test_every_shape_comes_up(game: str) -> None:
    asked = questions(game, 6)

    for shape in SHAPES[game]:
        assert any(map(shape.is_of, asked)), shape.name
