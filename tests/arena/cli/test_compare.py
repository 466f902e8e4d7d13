from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arena.games import GAMES

Run = Callable[..., Any]

SHORT = {
    "ace_king_queen": ["nash", "honest", "--set", "hands=100", "--most", "400"],
    "gin_rummy": ["simple", "random", "--set", "target=1"],
    "high_low": ["bold", "timid", "--set", "max_shuffles=1", "--most", "150"],
    "three_card_poker": ["q64", "random", "--set", "rounds=10", "--most", "25"],
    "blackjack": ["simple", "counting", "--set", "hands=10", "--most", "25"],
}
FIELDS = [
    *("game", "settings", "seed", "bots", "verdict", "better", "unit", "units", "value"),
    *("counted_in", "interval", "level", "method", "level_within", "more", "measures"),
    "eliminated",
]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state directory of the test's own, and no database in the way."""
    for variable in "XDG_STATE_HOME", "LOCALAPPDATA":
        monkeypatch.setenv(variable, str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("game", GAMES)
def test_every_game_for_people(run: Run, game: str) -> None:
    title, sentence, *_ = run("compare", game, *SHORT[game], "--seed", "1").text.splitlines()

    assert title == f"{GAMES[game].vocabulary.title}, seed 1"
    first, second, *_ = SHORT[game]
    assert first in sentence or second in sentence
    assert sentence.endswith(".")


@pytest.mark.parametrize("game", GAMES)
def test_every_game_as_json_and_repeatable(run: Run, game: str) -> None:
    argv = ["compare", game, *SHORT[game], "--seed", "1", "--json"]
    document = run(*argv).document

    assert document == run(*argv, "--jobs", "1").document
    assert list(document) == FIELDS
    assert document["verdict"] in {"better", "level", "alike", "open"}
    assert document["units"] > 0
    assert document["eliminated"] is None


def test_the_better_one_is_named_with_how_much_at_least(run: Run) -> None:
    argv = ["compare", "gin", "random", "simple", "--set", "target=1", "--seed", "1"]
    document = run(*argv, "--json").document
    _, high = document["interval"]
    games = document["units"]

    assert (document["verdict"], document["better"]) == ("better", 1)
    assert high < 0.5
    assert document["counted_in"] == "share"
    assert run(*argv).out.splitlines()[1] == (
        f"simple is better than random: it wins at least {100 * (1 - high):.1f} of 100 games, "
        f"and has won {100 * (1 - document['value']):.1f} of 100 games, in {games} games."
    )


def test_whoever_is_first_the_same_one_is_better(run: Run) -> None:
    both = ["simple", "random"]
    for order, better in (both, 0), (both[::-1], 1):
        argv = ["compare", "gin", *order, "--set", "target=1", "--seed", "1", "--json"]
        assert run(*argv).document["better"] == better


def test_within_the_level_they_are_level(run: Run) -> None:
    argv = ["compare", "akq", "nash", "honest", "--level", "20", "--seed", "1"]
    sentence = run(*argv).out.splitlines()[1]

    assert sentence.startswith("nash and honest are level within 0.200 chips a hand: ")
    assert run(*argv, "--json").document["level_within"] == 0.2


def test_after_most_it_says_how_many_more_it_would_take(run: Run) -> None:
    argv = ["compare", "gin", "simple", "simple", "--set", "target=1", "--seed", "1"]
    sentence = run(*argv, "--most", "20").out.splitlines()[1]
    document = run(*argv, "--most", "20", "--json").document

    assert sentence.startswith("20 games are too few to say which is better: simple (")
    assert f"it would take about {document['more']:,} games more." in sentence
    assert (document["verdict"], document["units"]) == ("open", 20)
    assert document["more"] > 0


def test_two_copies_of_a_file_play_alike(run: Run, bot_file: Callable[..., str]) -> None:
    mine = bot_file()
    copy = shutil.copy(mine, Path(mine).with_name("copy.py"))
    argv = ["compare", mine, str(copy)]

    assert "play alike: on the same cards each got" in run(*argv).out
    assert run(*argv, "--json").document["verdict"] == "alike"


def test_a_file_says_which_game_it_plays(run: Run, bot_file: Callable[..., str]) -> None:
    argv = ["compare", "nash", bot_file(), "--set", "hands=1", "--most", "1", "--json"]

    assert run(*argv).document["game"] == "ace_king_queen"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "expected two bots, and perhaps a game before them, got 0 words"),
        (("akq",), "expected two bots, and perhaps a game before them, got 1 words"),
        (("akq", "a", "b", "c"), "expected two bots, and perhaps a game before them, got 4 words"),
        (("random", "random"), "expected a game before the bots: more than one or none fits them"),
        (("akq", "nash", "none"), "no house bot 'none' for ace_king_queen; expected one of: "),
        (("akq", "nash", "honest", "--level", "0"), "0"),
    ],
)
def test_what_is_wrong_is_said(run: Run, words: tuple[str, ...], said: str) -> None:
    assert said in run("compare", *words).refusal()


def test_a_file_of_another_game(run: Run, bot_file: Callable[..., str]) -> None:
    mine = bot_file(game="blackjack")

    assert "plays blackjack, expected a bot for" in run("compare", "akq", "nash", mine).refusal()


def test_J3_the_first_offence_ends_it(run: Run, bot_file: Callable[..., str]) -> None:
    argv = ["compare", "nash", bot_file(answer="'raise'")]
    status, out, _ = run(*argv, "--json")

    assert status == 1
    document = json.loads(out)
    assert document["verdict"] is None
    assert document["eliminated"]["bot"] == 1
    assert "mine.py is eliminated in match 1: illegal: " in run(*argv).failure()


def test_ctrl_c_prints_what_is_known_and_how_to_go_on(run: Run, tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from itertools import count\n"
        "from bots.ace_king_queen import Honest\n"
        "asked = count()\n"
        "class Mine(Honest):\n"
        "    def decide(self, question):\n"
        "        if next(asked) > 90: raise KeyboardInterrupt\n"
        "        return super().decide(question)\n"
    )
    ran = run("compare", str(mine), "honest", "--set", "hands=20", "--seed", "7", "--level", "1")

    assert "Ace-King-Queen, seed 7" in ran.out
    assert "are too few to say which is better" in ran.out
    said = ran.failure(130)
    assert said.startswith("interrupted after 120 hands; the same command with --seed 7 plays ")


def test_the_dealer_shows_the_measure_of_a_league_beside_the_gain(run: Run) -> None:
    argv = ["compare", "blackjack", "simple", "counting", "--set", "hands=20", "--seed", "1"]
    lines = run(*argv, "--most", "40").out.splitlines()
    measures = run(*argv, "--most", "40", "--json").document["measures"]

    shown = f"final bankroll: {measures[0]:.1f} of simple, {measures[1]:.1f} of counting"
    assert shown in lines


@pytest.mark.needs("git")
def test_a_file_is_compared_with_itself_at_a_commit(
    run: Run, bot_file: Callable[..., str], tmp_path: Path
) -> None:
    mine = bot_file(answer="question.legal[-1]")  # checks and folds
    who = ("-c", "user.name=ann", "-c", "user.email=ann@example.org")
    for words in ("init", "-q"), ("add", "mine.py"), ("commit", "-qm", "one"):
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)
    bot_file(answer="question.legal[0]")  # bets and calls
    document = run("compare", mine, f"{mine}@HEAD", "--json").document

    assert document["bots"] == [mine, f"{mine}@HEAD"]
    assert (document["verdict"], document["better"]) == ("better", 0)


# ---- The last matches


def test_the_last_match_can_be_replayed_with_its_names(run: Run) -> None:
    run("play", "akq", "nash", "honest", "--hands", "2", "--games", "2", "--seed", "1")

    assert run("replay", "last").out.startswith("Ace-King-Queen: seat 1 honest, seat 2 nash")
    assert run("replay", "last-2").out.startswith("Ace-King-Queen: seat 1 nash, seat 2 honest")
    assert run("replay", "last-3").refusal() == (
        "expected one of the last 20 matches played here, got last-3"
    )


def test_what_compare_played_is_kept_and_can_be_asked_again(run: Run) -> None:
    argv = ["compare", "akq", "honest", "bluffer", "--set", "hands=20", "--most", "40"]
    run(*argv, "--seed", "1")

    record = json.loads(run("replay", "last", "--json").out)
    assert record["game"] == "ace_king_queen"
    assert "seat 1 bluffer, seat 2 honest" in run("replay", "last").out


def test_with_a_database_the_last_match_is_the_one_in_it(run: Run, tmp_path: Path) -> None:
    run("play", "akq", "nash", "honest", "--hands", "2")

    none = str(tmp_path / "none.db")
    assert "found no file" in run("replay", "last", "--db", none).refusal()


def test_a_match_is_played_though_it_cannot_be_kept(run: Run, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file in the way")

    assert run("play", "akq", "nash", "honest", "--hands", "2", "--seed", "1").status == 0
    assert "found no file" in run("replay", "last").refusal()
