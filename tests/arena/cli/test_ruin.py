from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from arena.cli import ruin

Run = Callable[..., Any]

SMALL = ["--stake", "20", "--goal", "40", "--trials", "30", "--seed", "1"]


def test_T10_the_share_with_its_error(run: Run) -> None:
    status, out, err = run("ruin", "three_card_poker", "q64", *SMALL)

    assert (status, err) == (0, "")
    assert "reached the goal" in out
    assert "went broke" in out
    assert "±" in out
    assert "undecided" not in out


def test_as_json_and_repeatable(run: Run) -> None:
    argv = ["ruin", "tcp", "q64", *SMALL, "--ante", "5", "--json"]
    document = run(*argv).document

    assert document == run(*argv).document
    [result] = document["results"]
    assert result["ante"] == 5
    assert result["reached"] + result["broke"] == document["trials"] == 30
    assert result["share"] == result["reached"] / 30
    assert result["standard_error"] > 0


def test_the_ante_is_the_bots(run: Run) -> None:
    argv = ["ruin", "tcp", "always", *SMALL, "--ante", "1", "--ante", "10"]
    one, ten = run(*argv, "--json").document["results"]

    assert (one["ante"], ten["ante"]) == (1, 10)
    assert one["reached"] != ten["reached"]
    assert len(run(*argv).out.splitlines()) == 1 + 3 + 2 + 1  # title, head, rows, foot


def test_antes_are_compared_over_the_same_trials(run: Run) -> None:
    argv = ["ruin", "tcp", "random", *SMALL, "--json", "--ante", "5"]
    first, second = run(*argv, "--ante", "5").document["results"]

    assert first == second


def test_a_bot_without_an_ante(run: Run) -> None:
    line = run("ruin", "blackjack", "simple", *SMALL, "--ante", "5").refusal()

    assert line.startswith("simple cannot be started: TypeError")


def test_blackjack(run: Run) -> None:
    argv = ["ruin", "blackjack", "simple", *SMALL, "--json"]

    assert run(*argv, "--set", "shuffle=uniform").document["game"] == "blackjack"


def test_J3_trials_lost_by_an_offence(run: Run, bot_file: Callable[..., str]) -> None:
    path = bot_file(answer="0", game="three_card_poker")
    status, out, err = run("ruin", "tcp", path, *SMALL, "--json")

    assert status == 1
    assert json.loads(out)["results"][0]["offences"] == 30
    [line] = err.splitlines()
    assert "mine.py offended in 30 of 30 trials, first: illegal: seat 1 answered 0" in line
    assert "offended" in run("ruin", "tcp", path, *SMALL).out


def test_ctrl_c_says_how_far_it_came_and_how_to_go_on(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, tick: Callable[[], None], **__: object) -> None:
        tick()
        tick()
        raise KeyboardInterrupt

    monkeypatch.setattr(ruin, "ruin", interrupted)
    line = run(
        "ruin",
        "tcp",
        "always",
        "--stake",
        "100",
        "--goal",
        "200",
        "--trials",
        "5000",
        "--seed",
        "7",
    ).refusal(130)

    assert line == (
        "interrupted after 2 of 5,000 trials; "
        "--seed 7 begins the same again, fewer --trials take less time"
    )
