"""`arena bench`: what it says of a machine; that it measures is in tests/e2e/test_toys.py."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from arena.lab.capacity import GameCapacity
from tests.support.in_process import Run

HAND = GameCapacity(
    game="ace_king_queen", decisions=1500.0, server_us=60.0, matches_per_hour=40_000.0
)
LEAGUE = GameCapacity(
    game="three_card_poker", decisions=1500.0, server_us=54.0, matches_per_hour=44_444.4
)
TABLE = GameCapacity(game="high_low", decisions=2000.0, server_us=50.0, matches_per_hour=36_000.0)

Measured = Callable[..., None]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Measured:
    """What there is to find, on a machine with 2 cores, 1,064 files and memory for 7 bots."""
    monkeypatch.setattr("arena.lab.capacity.usable_cores", lambda: 2)
    monkeypatch.setattr("arena.lab.capacity.fitting_bots", lambda limits: 7)

    def set_to(*found: GameCapacity, files: int | None = 1_064, ends: bool = True) -> None:
        async def measure(on_game: Callable[[GameCapacity], None]) -> None:
            for game in found:
                on_game(game)
            if not ends:
                raise KeyboardInterrupt

        monkeypatch.setattr("arena.lab.capacity.measure", measure)
        monkeypatch.setattr("arena.lab.capacity.most_files", lambda: files)

    return set_to


def test_it_says_what_a_class_can_play(run: Run, measured: Measured) -> None:
    measured(HAND, LEAGUE, TABLE)

    assert run("bench").text == (
        "On one of its 2 cores the arena plays, between bots that answer at once:\n"
        "  about 40,000 matches of Ace-King-Queen an hour; a class of 30, each against each: 39 s\n"
        "  about 44,000 matches of Three card poker an hour; a class of 30, once each: 2 s\n"
        "  about 36,000 matches of High-low an hour\n"
        "Bots at once: about 900 that connect, each in a match, with 20 ms of network each way and "
        "5 ms of thought.\n"
        "Of bots that the arena launches or that were handed in, 7 fit into memory, and 2 cores "
        "compute for them and for the arena.\n"
    )


@pytest.mark.parametrize(("files", "connected"), [(None, 900), (564, 500)])
def test_as_many_bots_connect_as_the_core_and_open_files_allow(
    run: Run, measured: Measured, files: int | None, connected: int
) -> None:
    measured(HAND, files=files)

    assert run("bench", "--json").document == {
        "games": [
            {
                "game": "ace_king_queen",
                "decisions": 1500.0,
                "server_us": 60.0,
                "matches_per_hour": 40_000.0,
            }
        ],
        "cores": 2,
        "connected": connected,
        "launched": 7,
    }


@pytest.mark.parametrize(("found", "lines"), [((HAND, LEAGUE), 5), ((), 1)])
def test_ctrl_c_keeps_what_was_found(
    run: Run, measured: Measured, found: tuple[GameCapacity, ...], lines: int
) -> None:
    measured(*found, ends=False)

    stopped = run("bench")

    assert len(stopped.out.splitlines()) == lines
    assert stopped.failure(130).startswith(f"interrupted after {len(found)} games of ")
