from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def cuts(tmp_path: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        path = tmp_path / "cuts.txt"
        path.write_text(text)
        return str(path)

    return write


def test_B13_the_transcript_and_nothing_else(run: Run, cuts: Callable[[str], str]) -> None:
    # Cuts of 0 leave a new deck as it is: 2s 3s 4s 5s, 6s … are dealt.
    argv = ["driver", "5", "1", "simple", "--cuts", cuts("0 0 0\n0\t0 0 0\n")]

    assert run(*argv).text == (
        "Shuffling the deck\n" + 7 * "cut at 0\n" + "Hand 1 bankroll 5\n"
        "Player bets 5\n"
        "Player dealt Two of Spades\n"
        "Dealer dealt Three of Spades\n"
        "Player dealt Four of Spades\n"
        "Player dealt Six of Spades\n"
        "Player dealt Seven of Spades\n"
        "Player's total is 19\n"
        "Dealer's hole card is Five of Spades\n"
        "Dealer dealt Eight of Spades\n"
        "Dealer dealt Nine of Spades\n"
        "Dealer's total is 25\n"
        "Dealer busts\n"
        "Player has 10 after 1 hands\n"
    )


def test_B13_the_first_shuffle_is_printed_even_if_no_hand_is_played(run: Run) -> None:
    lines = run("driver", "4", "10", "simple").out.splitlines()

    assert lines[0] == "Shuffling the deck"
    assert len(lines) == 9
    assert lines[-1] == "Player has 4 after 0 hands"


def test_the_same_seed_gives_the_same_transcript(run: Run) -> None:
    argv = ["driver", "200", "50", "competitor", "--seed"]

    assert run(*argv, "3") == run(*argv, "3") != run(*argv, "4")


@pytest.mark.parametrize("player", ["simple", "counting", "competitor"])
def test_every_player_plays(run: Run, player: str) -> None:
    out = run("driver", "1000", "20", player, "--seed", "1").text

    assert out.splitlines()[-1].endswith("after 20 hands")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("13 13 x 13 13 13 13", "expected cut points from 0 to 52 in "),
        ("13 13 53 13 13 13 13", "got '53'"),
        ("13 13 -1 13 13 13 13", "got '-1'"),
        ("13 13 1.5 13 13 13 13", "got '1.5'"),
        ("13 13 13 13 13 13 13 bad", "got 'bad'"),
        ("13 13 ²", "got '²'"),
        ("9" * 5000, "got '999"),
        ("13 13 13", "another deck or cut"),
        ("", "another deck or cut"),
    ],
)
def test_bad_cuts_print_nothing(run: Run, cuts: Callable[[str], str], text: str, said: str) -> None:
    assert said in run("driver", "100", "1", "simple", "--cuts", cuts(text)).refusal()


def test_cuts_that_run_out_at_a_reshuffle_print_nothing(
    run: Run, cuts: Callable[[str], str]
) -> None:
    argv = ["driver", "1000", "50", "simple", "--cuts", cuts("20 " * 7)]

    assert "another deck or cut" in run(*argv).refusal()


def test_a_file_that_is_not_there(run: Run, tmp_path: Path) -> None:
    path = str(tmp_path / "no.txt")
    line = run("driver", "5", "1", "simple", "--cuts", path).refusal(status=1)

    assert line == f"{path}: No such file or directory"


def test_a_file_that_is_a_directory(run: Run, tmp_path: Path) -> None:
    argv = ["driver", "5", "1", "simple", "--cuts", str(tmp_path)]

    assert "directory" in run(*argv).refusal(status=1)


def test_a_file_that_is_no_text(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "cuts.bin"
    path.write_bytes(b"\xff\x00\x1b[31m")

    run("driver", "5", "1", "simple", "--cuts", str(path)).refusal()


def test_cuts_and_a_seed(run: Run, cuts: Callable[[str], str]) -> None:
    argv = ["driver", "5", "1", "simple", "--cuts", cuts("1"), "--seed", "1"]

    assert run(*argv).refusal() == "expected --cuts or --seed, got both"
