"""The words of `arena check`: every step has a title, and every hint is a sentence that somebody can act on."""

from __future__ import annotations

import re

import pytest

from arena.authoring.conformance import HINTS, TITLES, Hint, Step, StepOutcome, StepStatus
from tests.support.documents import DOCUMENTS


def test_every_step_has_a_title() -> None:
    assert [*TITLES] == [*Step]


def test_the_manual_has_the_same_titles() -> None:
    rows = "".join(f"| `{step}` | {title} |\n" for step, title in TITLES.items())

    assert f"---|\n{rows}\n" in DOCUMENTS["arena/authoring/checking.md"]


def test_every_hint_has_its_sentences() -> None:
    assert [*HINTS] == [*Hint]


@pytest.mark.parametrize("hint", Hint)
def test_a_hint_is_made_of_sentences(hint: Hint) -> None:
    text = HINTS[hint]

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
