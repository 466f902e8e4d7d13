from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arena.games import GAMES
from arena.sandbox import worker_pool
from protocol.strategy import house_bots

Run = Callable[..., Any]

SHORT = {
    "ace_king_queen": ["--hands", "20"],
    "gin_rummy": ["--games", "2"],
    "high_low": ["--games", "2", "--set", "max_shuffles=2"],
    "three_card_poker": ["--games", "3", "--set", "rounds=20"],
    "blackjack": ["--games", "3", "--hands", "20"],
}


@pytest.mark.parametrize("game", GAMES)
def test_all_house_bots_of_every_game(run: Run, game: str) -> None:
    out = run("cross", game, *SHORT[game], "--seed", "1").text

    assert all(name in out for name in house_bots(game))
    assert "±" not in out
    assert "too few" in out or "95 % interval" in out
    assert "total" in out
    assert "seed 1" in out


@pytest.mark.parametrize("game", GAMES)
def test_every_game_as_json_and_repeatable(run: Run, game: str) -> None:
    argv = ["cross", game, *SHORT[game], "--seed", "1", "--json"]
    document = run(*argv).document

    assert document == run(*argv).document
    assert list(document) == ["game", "settings", "matches", "seed", "unit", "bots", "tables"]
    assert {bot["name"] for bot in document["bots"]} == set(house_bots(game))
    totals = [bot["total"] for bot in document["bots"]]
    assert totals == sorted(totals, reverse=True)


def test_any_number_of_jobs_gives_the_same(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_REPORT_S", "_ALONE_S", "_WORTH_S"):
        monkeypatch.setattr(worker_pool, name, -1.0)
    argv = ["cross", "high_low", *SHORT["high_low"], "--games", "30", "--seed", "1"]
    one, two = (run(*argv, "--jobs", jobs).text for jobs in "12")

    assert one == two
    assert "counter" in one


def test_A10_every_bot_meets_every_bot_and_itself(run: Run) -> None:
    argv = ["cross", "akq", "nash", "honest", "bluffer", "--hands", "10", "--json"]
    document = run(*argv).document

    assert [table["bots"] for table in document["tables"]] == [
        ["nash", "nash"],
        ["nash", "honest"],
        ["nash", "bluffer"],
        ["honest", "honest"],
        ["honest", "bluffer"],
        ["bluffer", "bluffer"],
    ]
    assert all(sum(table["scores"]) == 0 for table in document["tables"])
    assert {bot["units"] for bot in document["bots"]} == {20}


def test_A8_a_thousand_hands_unless_told(run: Run) -> None:
    document = run("cross", "akq", "honest", "bluffer", "--json").document

    assert {table["units"] for table in document["tables"]} == {1000}


def test_hands_and_games_multiply(run: Run) -> None:
    argv = ["cross", "akq", "honest", "bluffer", "--hands", "10", "--games", "4"]

    assert {t["units"] for t in run(*argv, "--json").document["tables"]} == {40}


@pytest.mark.stats
def test_G16_a_thousand_games_unless_told(run: Run) -> None:
    argv = ["cross", "gin", "simple", "random", "--set", "target=1"]
    document = run(*argv, "--seed", "1", "--json").document

    assert document["settings"]["games"] == 1000
    assert document["tables"][0]["units"] == 1000


def test_games_may_be_a_setting(run: Run) -> None:
    argv = ["cross", "gin", "simple", "random", "--set", "games=2", "--json"]

    assert run(*argv).document["settings"]["games"] == 2


def test_one_bot_meets_itself(run: Run) -> None:
    ran = run("cross", "akq", "nash", "--hands", "10")

    row = next(line for line in ran.out.splitlines() if line.startswith("│ nash"))
    assert row.count(" – ") == 2


def test_J3_an_offender_is_out_and_harms_nobody(run: Run, bot_file: Callable[..., str]) -> None:
    path = bot_file(answer="'raise'")
    argv = ["cross", "akq", path, "nash", "honest", "--hands", "20", "--seed", "4"]
    ran = run(*argv, "--json")

    document = json.loads(ran.out)
    assert "mine.py is eliminated in match 1: illegal: " in ran.failure()
    assert [bot["units"] for bot in document["bots"]] == [20, 20, 0]
    assert document["bots"][2]["eliminated"]["kind"] == "illegal"
    assert "eliminated" in run(*argv).out


def test_an_offender_against_the_dealer(run: Run, bot_file: Callable[..., str]) -> None:
    path = bot_file(answer="0", game="blackjack")
    status, out, _ = run("cross", "blackjack", path, "simple", *SHORT["blackjack"])

    assert status == 1
    assert "eliminated" in out
    assert "illegal" in out


@pytest.mark.parametrize(
    ("game", "setting", "value"),
    [("blackjack", "shuffle", "uniform"), ("three_card_poker", "goal", 1125)],
)
def test_B14_K3_the_defaults_are_those_of_a_competition(
    run: Run, game: str, setting: str, value: object
) -> None:
    document = run("cross", game, "--games", "1", "--json").document

    assert document["settings"][setting] == value


def test_B14_a_shuffle_that_is_chosen_is_respected(run: Run) -> None:
    argv = ["cross", "blackjack", "--games", "1", "--set", "shuffle=riffle", "--json"]

    assert run(*argv).document["settings"]["shuffle"] == "riffle"


def test_every_mean_has_an_interval_by_blocks_of_the_game(run: Run) -> None:
    argv = ["cross", "akq", "honest", "bluffer", "--hands", "500", "--seed", "1"]
    document = run(*argv, "--json").document
    best = document["bots"][0]

    low, high = best["interval"]
    assert low < best["mean"] < high
    assert (best["level"], best["method"]) == (0.95, "Student")
    # Of 10 blocks, with Student's quantile: wider than two errors of single hands.
    assert high - low > 4 * best["mean_error"] * 0.7
    shares = [table["intervals"] for table in document["tables"]]
    assert all(each["interval"] is not None for table in shares for each in table)
    assert "Its unit is the block of 50 hands." in run(*argv).out


def test_too_few_matches_of_a_bankroll_have_no_interval(run: Run) -> None:
    argv = ["cross", "tcp", "q64", "--games", "19", "--set", "rounds=5", "--seed", "1"]
    [bot] = run(*argv, "--json").document["bots"]

    assert (bot["interval"], bot["level"], bot["method"]) == (None, None, None)
    assert "too few" in run(*argv).out


def test_nothing_is_ever_shown_as_sure_though_all_games_were_won(run: Run) -> None:
    argv = ["cross", "gin", "simple", "random", "--games", "3", "--set", "target=1"]
    document = run(*argv, "--seed", "1", "--json").document

    for bot in document["bots"]:
        low, high = bot["interval"]
        assert 0 <= low < high <= 1


# ---- The same cards in all seats


def test_duplicate_deals_the_same_cards_in_all_seats_and_says_so(run: Run) -> None:
    argv = ["cross", "akq", "nash", "bluffer", "--hands", "500", "--seed", "5"]
    shown = run(*argv, "--duplicate").text

    assert "2 matches, 1,000 hands" in shown
    assert "the block of 50 hands with the same cards in all seats" in shown
    [against] = [
        table
        for table in run(*argv, "--duplicate", "--json").document["tables"]
        if table["bots"] == ["bluffer", "bluffer"]
    ]
    assert against["scores"] == [0, 0], "it plays the same in both seats, with the same cards"


def test_duplicate_tells_bots_apart_with_a_narrower_interval(run: Run) -> None:
    widths = []
    for more in [], ["--duplicate"]:
        argv = ["cross", "akq", "honest", "bluffer", "--games", "4", "--seed", "2", "--json", *more]
        document = run(*argv).document
        low, high = document["bots"][0]["interval"]
        widths.append(high - low)

    assert widths[1] < widths[0] / 1.5


def test_duplicate_gives_the_same_with_any_number_of_jobs(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = ["cross", "high_low", "bold", "timid", "--games", "48", *SHORT["high_low"][2:]]
    one = run(*argv, "--seed", "3", "--duplicate", "--json").document
    monkeypatch.setattr(worker_pool, "_ALONE_S", -1.0)
    monkeypatch.setattr(worker_pool, "_WORTH_S", -1.0)

    assert run(*argv, "--seed", "3", "--duplicate", "--json", "--jobs", "2").document == one


def test_duplicate_against_the_dealer_gives_all_the_same_cards(run: Run, tmp_path: Path) -> None:
    copy = tmp_path / "copy.py"
    copy.write_text("from bots.blackjack import Simple\n\nclass Copy(Simple):\n    pass\n")
    argv = ["cross", "blackjack", "simple", str(copy), *SHORT["blackjack"], "--seed", "1", "--json"]
    for more, alike in ([], False), (["--duplicate"], True):
        one, other = run(*argv, *more).document["tables"]

        assert (one["scores"] == other["scores"]) is alike


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (["high_low", "--games", "5"], "expected a multiple of 4 matches with --duplicate"),
        (["akq", "--bot", "true", "nash"], "expected no --bot with --duplicate: a process could"),
    ],
)
def test_duplicate_is_refused_where_it_cannot_be(run: Run, more: list[str], line: str) -> None:
    assert run("cross", *more, "--duplicate").refusal().startswith(line)
