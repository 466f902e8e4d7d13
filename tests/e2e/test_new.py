"""What `arena new` writes, used as its student would use it.

Every language is tried in one game. One is checked to the end: the other languages' links are those
of the examples, which test_examples.py checks. `python -m tests.tools.starters` tries and checks all
thirty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

import pytest

from arena.games.catalogue import GAMES
from arena.sandbox.languages import Language
from tests.support.needs import make_options, missing, skip_without
from tests.tools.starters import NEEDS, CommandFailed, StarterTrial

pytestmark = [pytest.mark.e2e, pytest.mark.shares_processes]

ROUNDS = 20  # that `arena check` plays; by itself it plays more
AT_ONCE = 4  # a check is mostly waiting: for the bot to end, on a slow link
OTHERS = {
    Language.CPP: "blackjack",  # first, as its compiler takes longest
    Language.JAVASCRIPT: "high_low",
    Language.JAVA: "gin_rummy",
    Language.GO: "ace_king_queen",
    Language.BASH: "three_card_poker",
}
CHECKED = (Language.PYTHON, "high_low")
EACH = [*OTHERS.items(), CHECKED]

Outcomes: TypeAlias = dict[tuple[Language, str], "Future[str]"]


@pytest.fixture
def trial(tmp_path: Path) -> Callable[..., StarterTrial]:
    def make(game: str, language: Language = Language.PYTHON) -> StarterTrial:
        skip_without(*NEEDS[language])
        return StarterTrial(tmp_path / "mine", game, language)

    return make


def change(file: Path, right: str, wrong: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert right in text
    file.write_text(text.replace(right, wrong), encoding="utf-8")


def use(folder: Path, language: Language, game: str) -> str:
    """Do what a starter's readme says; what the last of it shows."""
    flags = " ".join(option.replace(" ", r"\ ") for option in make_options())
    mine = StarterTrial(folder / f"{language}-{game}", game, language, ROUNDS, f"-j2 -- {flags}")
    for step in ("build", "test"):
        mine.step(step)
    shown = mine.step("try")
    return mine.step("check") if (language, game) == CHECKED else shown


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    """All starters of `EACH`, used side by side."""
    folder = tmp_path_factory.mktemp("starters")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {
            (language, game): pool.submit(use, folder, language, game)
            for language, game in EACH
            if missing(*NEEDS[language]) is None
        }
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize(("language", "game"), EACH)
def test_a_starter_does_what_its_readme_says(
    outcomes: Outcomes, language: Language, game: str
) -> None:
    skip_without(*NEEDS[language])
    shown = outcomes[language, game].result()
    assert ("0 failed" if (language, game) == CHECKED else "score") in shown


def test_no_language_is_left_out() -> None:
    assert {Language.PYTHON, *OTHERS} == {*Language}
    assert {*OTHERS.values()} == {*GAMES}


def test_it_connects(trial: Callable[..., StarterTrial]) -> None:
    assert "mine" in trial("ace_king_queen").step("connect")


def test_its_test_finds_an_illegal_answer(trial: Callable[..., StarterTrial]) -> None:
    mine = trial("high_low")
    change(mine.folder / "bot.py", "return legal[1]", "return 3")

    with pytest.raises(CommandFailed, match="answered 3 to bid; legal: "):
        mine.step("test")


def test_its_test_finds_a_match_that_breaks_off(trial: Callable[..., StarterTrial]) -> None:
    mine = trial("blackjack")
    hears = "def hand_over(self, hand):\n"
    raises = f"{hears}        raise RuntimeError('at last')\n"
    change(mine.folder / "bot.py", hears, raises)

    with pytest.raises(CommandFailed, match="at last"):
        mine.step("test")


# Where the bot answers; C++ takes too long to compile.
ANY_LEGAL = {
    Language.JAVASCRIPT: ("bot.js", "return anyLegal(legal);"),
    Language.JAVA: ("Bot.java", 'return Session.anyLegal(question.get("legal"));'),
    Language.GO: ("bot.go", "return AnyLegal(legal)"),
    Language.BASH: ("bot.sh", "any_legal"),
}
KNOCK = '{"discard":"Ks","knock":true,"melds":[]}'
# How a bot answers with a value that is written as JSON.
AS_JSON: dict[Language, Callable[[str], str]] = {
    Language.JAVASCRIPT: lambda value: f"return {value};",
    Language.JAVA: lambda value: (
        f"return com.google.gson.JsonParser.parseString({json.dumps(value)});"
    ),
    Language.GO: lambda value: f"return json.RawMessage(`{value}`)",
    Language.BASH: lambda value: f"answer='{value}'",
}


@pytest.mark.parametrize("language", AS_JSON)
def test_the_test_of_another_language_knows_that_melds_may_be_ones_own(
    language: Language, trial: Callable[..., StarterTrial]
) -> None:
    mine = trial("gin_rummy", language)
    knocks_or_not(mine.folder / "samples.jsonl")
    file, any_legal = ANY_LEGAL[language]
    bot = mine.folder / file
    text = bot.read_text(encoding="utf-8")
    text = text.replace('import "log"', 'import (\n\t"encoding/json"\n\t"log"\n)')
    for kind, value in (("melds", "[]"), ("turn", KNOCK)):
        answers = AS_JSON[language](value)
        text, places = re.subn(
            rf"(\b{kind}\b[^\n]*\n\s*){re.escape(any_legal)}",
            lambda found, answers=answers: found[1] + answers,  # type: ignore[misc]
            text,
        )
        assert places == 1
    bot.write_text(text, encoding="utf-8")
    mine.step("test")

    bot.write_text(text.replace("true", "false"), encoding="utf-8")
    with pytest.raises(CommandFailed, match='"Ks"'):
        mine.step("test")


def knocks_or_not(samples: Path) -> None:
    """Have every turn in the samples allow to discard one card, with a knock and without."""
    told = [json.loads(line) for line in samples.read_text("utf-8").splitlines()]
    for message in told:
        if message.get("kind") == "turn":
            message["legal"] = [
                {"discard": "Ks", "knock": knock, "melds": None} for knock in (True, False)
            ]
    lines = [json.dumps(message) + "\n" for message in told]
    samples.write_text("".join(lines), encoding="utf-8")
