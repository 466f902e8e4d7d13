from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]

SMALL = ["--stake", "20", "--goal", "40", "--trials", "30", "--seed", "1"]


def test_T10_the_share_with_its_interval(run: Run) -> None:
    out = run("ruin", "three_card_poker", "q64", *SMALL).text

    assert "reached the goal" in out
    assert "went broke" in out
    assert "is a 95 % interval" in out
    assert "±" not in out
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


def test_any_number_of_jobs_gives_the_same(run: Run) -> None:
    argv = ["ruin", "tcp", "random", *SMALL, "--json", "--jobs"]

    assert run(*argv, "1").document == run(*argv, "2").document


def test_the_ante_is_the_bots(run: Run) -> None:
    argv = ["ruin", "tcp", "always", *SMALL, "--ante", "1", "--ante", "10"]
    one, ten = run(*argv, "--json").document["results"]

    assert (one["ante"], ten["ante"]) == (1, 10)
    assert one["reached"] != ten["reached"]
    assert len(run(*argv).out.splitlines()) == 1 + 3 + 2 + 1 + 1  # title, head, rows, foot, note


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such limit")
def test_more_jobs_than_files_can_be_open(run_process: Run) -> None:
    def few_files() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))

    argv = ["ruin", "tcp", "--bot", "sleep 100", *SMALL[:4], "--jobs", "200"]
    line = run_process(*argv, preexec_fn=few_files).refusal(1)

    assert line.endswith("Too many open files; expected fewer --jobs than 200")


def test_the_help_of_jobs_says_what_it_is_with_bot(run: Run) -> None:
    assert "With --bot: start the bot N times" in " ".join(run("ruin", "--help").out.split())


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
    ran = run("ruin", "tcp", path, *SMALL, "--json")

    said = "mine.py offended in 30 of 30 trials, first: illegal: seat 1 answered 0"
    assert said in ran.failure()
    assert json.loads(ran.out)["results"][0]["offences"] == 30
    assert "offended" in run("ruin", "tcp", path, *SMALL).out
