"""The words of `arena check`: the manual has every step, and every hint has its advice."""

from __future__ import annotations

import re

import pytest

from arena.authoring.conformance import Hint, Step, StepOutcome, StepStatus
from tests.support.documents import DOCUMENTS


def test_the_manual_describes_every_step_in_order() -> None:
    rows = re.findall(r"^\| `(.+?)` \| .+ \|$", DOCUMENTS["arena/authoring/checking.md"], re.M)

    assert rows == [*Step]


@pytest.mark.parametrize("hint", Hint)
def test_a_hint_is_made_of_sentences(hint: Hint) -> None:
    text = hint.advice

    assert text[0].isupper()
    assert text.endswith(".")
    assert "\n" not in text
    assert len(text) < 300


@pytest.mark.parametrize("word", [*Step, *Hint])
def test_ids_are_words_for_a_shell(word: str) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", word)


def test_a_step_of_a_game_is_called_by_both() -> None:
    outcome = StepOutcome(number=5, step=Step.PLAY, game="blackjack", status=StepStatus.OK)

    assert outcome.name == "play blackjack"
