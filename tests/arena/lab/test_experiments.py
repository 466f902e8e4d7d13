from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

import arena
from arena.games.catalogue import GAMES
from arena.lab.comparison import Standpoint
from bots.ace_king_queen import Bluffer, Honest, Nash, PlayerStrategy
from bots.three_card_poker import Q64, Always
from protocol.errors import UnknownBot, UsageError
from tests.support.cram import write_bot
from tests.support.in_process import run_here


class RaisingBettor(PlayerStrategy):
    def bet(self, card: str) -> bool:
        raise ValueError("no such card")


def command(*argv: str) -> Any:
    """The document of a command."""
    return run_here(*argv, "--json").document


# ---- Every bot against every bot


@pytest.mark.parametrize(
    ("game", "options"),
    [("ace_king_queen", {}), ("high_low", {"duplicate": True}), ("blackjack", {"duplicate": True})],
)
def test_the_same_seed_gives_what_the_command_gives(game: str, options: dict[str, Any]) -> None:
    short = GAMES[game].short
    words = [f"--set={name}={value}" for name, value in short.items()]
    words += [f"--{option}" for option in options]
    document = command("cross", game, "--games", "4", "--seed", "5", *words)
    scores = arena.cross(game, matches=4, settings=short, seed=5, **options)

    assert [each.name for each in scores.bots] == [bot["name"] for bot in document["bots"]]
    for each, bot in zip(scores.bots, document["bots"], strict=True):
        assert (each.total, each.units, each.mean) == (bot["total"], bot["units"], bot["mean"])
        ends = None if each.interval is None else [*each.interval.bounds]
        assert ends == bot["interval"]


def test_bots_are_names_files_classes_and_functions(tmp_path: Path) -> None:
    file = write_bot(tmp_path / "meek.py", answer="question.legal[-1]")

    def bluffer() -> Bluffer:
        return Bluffer()

    short = {"hands": 40}
    scores = arena.cross("akq", ["nash", file, Honest, bluffer], settings=short, seed=1)

    assert {each.name for each in scores.bots} == {"nash", file, "Honest", "bluffer"}
    assert sum(each.total for each in scores.bots) == 0
    named = arena.cross("akq", ["nash", "honest"], settings=short, seed=1)
    made = arena.cross("akq", [Nash, Honest], settings=short, seed=1)
    assert [each.total for each in named.bots] == [each.total for each in made.bots]


def test_two_of_one_name_are_told_apart() -> None:
    scores = arena.cross("akq", [Nash, lambda: Nash(), lambda: Honest()], seed=1, matches=1)

    assert sorted(each.name for each in scores.bots) == ["<lambda>", "<lambda> (2)", "Nash"]


def test_scores_are_short_to_read() -> None:
    scores = arena.cross("akq", ["nash", "bluffer"], settings={"hands": 200}, matches=2, seed=1)
    first, second = map(repr, scores.bots)

    assert str(scores) == f"{first}\n{second}"
    assert repr(scores) == (
        f"CrossScores(ace_king_queen, 2 matches a table, seed 1: [{first}, {second}])"
    )
    number = r"-?0\.\d{3}"
    for each in (first, second):
        assert re.fullmatch(rf"(nash|bluffer) {number} \[{number}, {number}\] per hand", each)


def test_a_bot_that_offends_is_out() -> None:
    out = arena.cross("akq", [Nash, Honest, RaisingBettor], matches=1, seed=1).bots[-1]
    compared = arena.compare("akq", Nash, RaisingBettor, seed=1)

    assert out.offence is not None
    assert repr(out) == "RaisingBettor is out: crash"
    assert "no such card" in out.offence.text
    assert compared.offence is not None
    assert compared.better is None
    assert str(compared).startswith("RaisingBettor is out: seat ")


def test_the_callers_random_numbers_go_on() -> None:
    random.seed(7)
    expected = [random.random() for _ in range(2)]
    random.seed(7)
    first = random.random()
    arena.cross("akq", matches=1, seed=1)
    arena.compare("akq", "nash", "nash", most=100, seed=1)

    assert [first, random.random()] == expected


@pytest.mark.parametrize(
    ("bots", "more", "error", "text"),
    [
        (["nash", "nash"], {}, UsageError, "each bot once"),
        ([Nash()], {}, UsageError, "class or function that makes one"),
        ([Q64, Nash], {}, UnknownBot, "Q64 plays three_card_poker"),
        (["nosuch", Nash], {}, UnknownBot, "no house bot 'nosuch'"),
        ([Nash, lambda: 5], {}, UnknownBot, "expected a strategy from <lambda>, got 5"),
        ([Nash, Honest], {"matches": 0}, UsageError, "at least 1 match, got 0"),
        ([Nash, Honest], {"matches": 3, "duplicate": True}, UsageError, "a multiple of 2"),
        ([Nash, Honest], {"settings": {"hand": 2}}, UsageError, "hand"),
    ],
)
def test_what_cannot_be_played_is_refused(
    bots: list[Any], more: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        arena.cross("akq", bots, seed=1, **more)


# ---- Two bots


def test_a_comparison_is_that_of_the_command() -> None:
    document = command("compare", "gin_rummy", "simple", "patient", "--seed", "1", "--jobs", "1")
    found = arena.compare("gin_rummy", "simple", "patient", seed=1)

    assert (found.units, found.value) == (document["units"], document["value"])
    assert found.interval is not None
    assert [*found.interval.bounds] == document["interval"]
    assert found.counted_in == document["counted_in"] == "share"
    assert (document["verdict"], document["better"]) == ("better", 1)
    assert (found.verdict, found.better, found.more) == (Standpoint.SECOND, "patient", 0)
    assert str(found).startswith("patient is better than simple: it won ")


def test_what_is_not_settled_says_how_much_more_it_would_take() -> None:
    found = arena.compare("akq", Nash, Honest, most=2000, seed=1)

    assert (found.verdict, found.better) == (Standpoint.OPEN, None)
    assert found.more is None or found.more > 0
    assert repr(found).startswith("ComparedBots(Nash, Honest: open, ")
    assert repr(found).endswith(f" in {found.units:,} hands)")


def test_a_bot_may_be_compared_with_itself() -> None:
    found = arena.compare("tcp", Always, Always, settings={"rounds": 20}, seed=1)

    assert found.bots == ("Always", "Always (2)")
    assert found.verdict == Standpoint.ALIKE
