"""The cases of every game's rules, `NAME/rules.cases`, as `tests/support/rule_cases.py` reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from arena.games.catalogue import GAMES
from arena.games.match import MatchState
from protocol.gin_rummy import Melds, Turn, TurnAnswer
from tests.support.rule_cases import RuleCase, Words, cases, value, words_of


def high_low_words(match: MatchState, line: str) -> Iterator[object] | None:
    """`stay 01--------`: who stays alone in each of ten rounds; `-` is nobody."""
    if not line.startswith("stay "):
        return None

    def answers() -> Iterator[object]:
        for plan in words_of(line.removeprefix("stay ")):
            for stayer in plan:
                yield from ["keep"] * 4
                for _ in range(4):
                    assert match.pending is not None, f"{line}: it is over"
                    yield 2 if stayer == str(match.pending.seat) else "quit"

    return answers()


def gin_words(match: MatchState, line: str) -> Iterator[object]:
    """Turns and melds as gin rummy's cases have them; `pile Jc 9` takes and discards it nine times."""
    words = words_of(line)
    if line.startswith("pile "):
        _, card, times = line.split()
        words = iter(["discard", card] * int(times))
    for word in words:
        question: Any = match.pending and match.pending.question
        if isinstance(question, Turn):
            card, bang, declared = word.partition("!")
            melds = tuple(map(tuple, value(declared))) if declared else None
            yield TurnAnswer(card, bool(bang), melds)
        elif isinstance(question, Melds):
            yield [] if word == "-" else value(word)
        else:
            yield word


WORDS: Mapping[str, Words] = {"high_low": high_low_words, "gin_rummy": gin_words}

CASES = [
    case
    for game in GAMES
    for case in cases(
        Path(__file__).parent / game / "rules.cases", *filter(None, [WORDS.get(game)])
    )
]


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_case(case: RuleCase) -> None:
    case.play()
