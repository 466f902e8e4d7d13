from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import arena
from arena.games import GAMES

Run = Callable[..., Any]

TABLES = {
    "ace_king_queen": ["nash", "honest"],
    "gin_rummy": ["random", "simple"],
    "high_low": ["random", "timid", "bold", "counter"],
    "three_card_poker": ["q64"],
    "blackjack": ["competitor"],
}


@pytest.mark.parametrize("game", GAMES)
def test_every_game_for_people(run: Run, game: str) -> None:
    out = run("play", game, *TABLES[game], "--seed", "1").text

    assert GAMES[game].vocabulary.title in out
    assert all(name in out for name in TABLES[game])
    assert "seed 1" in out


@pytest.mark.parametrize("game", GAMES)
def test_every_game_as_json_and_repeatable(run: Run, game: str) -> None:
    argv = ["play", game, *TABLES[game], "--games", "2", "--seed", "1", "--json"]
    document = run(*argv).document

    assert document == run(*argv).document
    head = ["game", "settings", "matches", "seed", "unit"]
    assert list(document) == [*head, "bots", "winners", "sure", "eliminated"]
    assert [bot["name"] for bot in document["bots"]] == TABLES[game]
    assert set(document["bots"][0]) == {
        *("name", "won", "score", "points", "mean", "standard_error"),
        *("interval", "level", "method"),
    }
    assert document["eliminated"] is None


def test_one_match_is_the_one_that_arena_play_plays(run: Run, bot_file: Callable[..., str]) -> None:
    class First:
        def decide(self, question: Any) -> object:
            return question.legal[0]

        def hear(self, news: Any) -> None:
            pass

        def reset(self) -> None:
            pass

    path = bot_file()
    document = run("play", "akq", path, path, "--seed", "5", "--json").document

    result = arena.play("akq", [First(), First()], seed=5)
    assert tuple(bot["score"] for bot in document["bots"]) == result.scores


def test_games_are_matches_of_ace_king_queen(run: Run) -> None:
    document = run("play", "akq", "nash", "nash", "--games", "3", "--json").document

    assert document["matches"] == 3
    assert document["settings"] == {"hands": 1000}
    assert document["bots"][0]["won"] + document["bots"][1]["won"] <= 3


def test_G15_games_are_a_setting_of_one_match_of_gin(run: Run) -> None:
    argv = ["play", "gin", "random", "simple", "--games", "3", "--seed", "1"]
    document = run(*argv, "--json").document

    assert document["matches"] == 1
    assert document["settings"]["games"] == 3
    assert "points" in run(*argv).out


def test_settings(run: Run) -> None:
    argv = ["play", "tcp", "q64", "--set", "stake=50", "--set", "pair_kicker=true"]
    document = run(*argv, "--set", "goal=null", "--json").document

    assert document["settings"] == {"stake": 50, "rounds": 1000, "goal": None, "pair_kicker": True}


def test_a_setting_that_is_text(run: Run) -> None:
    argv = ["play", "blackjack", "simple", "--set", "shuffle=uniform", "--json"]

    assert run(*argv, "--hands", "3").document["settings"]["shuffle"] == "uniform"


def test_a_winner_and_a_loser(run: Run, bot_file: Callable[..., str]) -> None:
    timid = bot_file("timid.py", answer="question.legal[-1]")
    argv = ["play", "akq", "bluffer", timid, "--hands", "500", "--seed", "1"]

    assert run(*argv).out.splitlines()[-1] == "bluffer wins"
    assert run(*argv, "--json").document["sure"] is True


def test_who_is_ahead_by_chance_is_no_winner(run: Run) -> None:
    argv = ["play", "gin", "expert", "simple", "--games", "20", "--seed", "1"]
    last = run(*argv).out.splitlines()[-1]

    assert last == "expert is ahead, but 20 games are too few to say that it is better"
    document = run(*argv, "--json").document
    assert (document["winners"], document["sure"]) == ([0], False)


def test_bots_of_one_name_are_told_apart(run: Run) -> None:
    ran = run("play", "akq", "nash", "nash", "--hands", "5", "--seed", "2")

    last = ran.out.splitlines()[-1]
    few = "is ahead, but 5 hands are too few to say that it is better"
    shared = "nash (1) and nash (2) share first place"
    assert last in {f"nash (1) {few}", f"nash (2) {few}", shared}


def test_an_even_score_is_shared(run: Run, bot_file: Callable[..., str]) -> None:
    # Nobody bets: over these two hands each wins one.
    checks = bot_file(answer="question.legal[-1]")
    argv = ["play", "akq", checks, "honest", "--hands", "2", "--seed"]
    lasts = {run(*argv, str(seed)).out.splitlines()[-1] for seed in range(100)}

    assert f"{checks} and honest share first place" in lasts


def test_J3_an_illegal_answer_is_reported_and_is_the_exit_status(
    run: Run, bot_file: Callable[..., str]
) -> None:
    ran = run("play", "akq", "nash", bot_file(answer="'raise'"))

    assert ran.out.splitlines()[-1] == "nash wins"
    said = 'mine.py is eliminated in match 1: illegal: seat 2 answered "raise"'
    assert said in ran.failure()


def test_J3_a_crash_is_reported_with_its_place(run: Run, bot_file: Callable[..., str]) -> None:
    line = run("play", "akq", bot_file(answer="1 / 0"), "nash").failure()

    assert "crash: seat 1 raised ZeroDivisionError: division by zero at" in line


def test_an_offence_as_json(run: Run, bot_file: Callable[..., str]) -> None:
    path = bot_file(answer="'raise'")
    status, out, _ = run("play", "akq", path, "nash", "--json", "--seed", "3")

    assert status == 1
    document = json.loads(out)
    assert document["winners"] == [1]
    assert document["eliminated"]["bot"] == 0
    assert document["eliminated"]["name"] == path
    assert document["eliminated"]["kind"] == "illegal"


def test_H13_the_others_go_on(run: Run, bot_file: Callable[..., str]) -> None:
    path = bot_file(answer="None", game="high_low")
    status, out, _ = run("play", "high_low", "bold", "timid", path, "random")

    assert status == 1
    assert out.splitlines()[-1] == "bold, timid and random go on"


def test_what_a_bot_prints_does_not_reach_stdout(run: Run, bot_file: Callable[..., str]) -> None:
    path = bot_file(init="print('hello')", answer="print('thinking') or 'bet'")
    status, out, err = run("play", "akq", path, "honest", "--hands", "1", "--json")

    assert "hello" in err
    assert out.startswith("{")
    assert out.count("\n") == 1
    assert status == 0
