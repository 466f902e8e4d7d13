"""How `arena bench` shows what was measured, and how it refuses what cannot be.

The measuring itself, in small sizes, is in tests/e2e/test_bench.py.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.tools.bench.against import AgainstRow
from tests.tools.bench.groups import Bench

from tests.support.in_process import Run

MEASURED = msgspec.json.decode(
    """{
    "in_process": [{
        "game": "blackjack", "bot": "simple", "rounds_per_s": 12345.6, "decisions_per_s": 7890.1,
        "rounds_per_s_range": [12000.0, 13000.0], "peers": [{
            "peer": "OpenSpiel", "rounds_per_s": 6543.2, "ratio": 1.887, "ratio_range": [1.7, 1.95]
        }]
    }],
    "network": [{
        "tables": 64, "encoding": "json", "delay_ms": 20, "decisions_per_s": 30000.4,
        "echo_per_s": 10000.2, "ratio": 3.004, "ratio_range": [2.9, 3.1], "server_us": 12.34,
        "server_us_range": [11.1, 14.9], "prototype_us": 5.55, "prototype_per_s": 40000,
        "prototype_ratio": 0.754, "prototype_ratio_range": [0.7, 0.8]
    }],
    "idle": {
        "connections": 1500, "kib_each": 9.62, "cpu_percent": 2.06, "join_ms": 0.456,
        "cpu_percent_range": [1.0, 4.0], "join_ms_range": [0.4, 0.5]
    },
    "matches": {
        "bots": 200, "matches_per_s": 1089.4, "matches_per_s_range": [1000, 1100],
        "server_us": 820.1, "server_us_range": [800, 900]
    },
    "clients": [{
        "client": "ours", "encoding": "msgpack", "tables": 64, "client_us": 13.91,
        "client_us_range": [13, 15], "thin_us": 7.52, "ratio": 1.853, "ratio_range": [1.8, 1.9]
    }],
    "deadwood": [
        {
            "hands": "rich", "us": 0.784, "us_range": [0.7, 0.9], "open_spiel_us": 2.19,
            "ratio": 0.358, "ratio_range": [0.3, 0.4]
        },
        {"hands": "random", "us": 0.391, "us_range": [0.38, 0.41]}
    ],
    "notes": ["idle: the moon is full"]
    }""",
    type=Bench,
)
ROW = msgspec.json.decode(
    """{
    "row": "server, 64 matches", "per": "decision", "this_us": 9.87, "that_us": 13.21,
    "ratio": 0.7471, "low": 0.7312, "high": 0.7654, "level": 0.9648, "verdict": "faster"
    }""",
    type=AgainstRow,
)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Callable[[Bench], list[Any]]:
    """What there is to show; gives what was asked for."""
    asked: list[Any] = []

    def set_to(bench: Bench) -> list[Any]:
        async def measure(groups: object, folder: Path, turns: object, on_step: object) -> Bench:
            asked.extend((groups, turns))
            return bench

        monkeypatch.setattr("arena.cli.bench.bench", measure)
        return asked

    return set_to


def test_json_has_all_figures(run: Run, measured: Callable[[Bench], object]) -> None:
    measured(MEASURED)

    assert msgspec.convert(run("bench", "--json").document, Bench) == MEASURED


def test_the_tables_have_them_too(run: Run, measured: Callable[[Bench], object]) -> None:
    measured(MEASURED)

    status, out, err = run("bench")

    assert (status, err) == (0, "")
    for figure in (
        *("12.3 (11.1–14.9)", "20 ms", "30,000", "5.5", "0.75 (0.70–0.80)", "3.00 (2.90–3.10)"),
        *("820 (800–900)", "1,089 (1,000–1,100)", "13.9 (13.0–15.0)", "1.85 (1.80–1.90)"),
        *("12,346 (12,000–13,000)", "7,890", "OpenSpiel 6,543: 1.89 (1.70–1.95)"),
        *("0.78 (0.70–0.90)", "2.19", "0.36 (0.30–0.40)", "0.39 (0.38–0.41)"),
        *("0.46 (0.40–0.50) ms", "2.1 (1.0–4.0) %", "1,500", "9.6"),
        "not measured: idle: the moon is full",
    ):
        assert figure in out


def test_what_was_not_measured_has_no_table(run: Run, measured: Callable[[Bench], object]) -> None:
    measured(Bench(notes=("clients: there is no /proc",)))

    assert run("bench").text == "not measured: clients: there is no /proc\n"


GROUPS = ["clients", "deadwood", "delay", "games", "idle", "matches", "tables"]


@pytest.mark.parametrize(
    ("words", "groups", "rounds"),
    [(["games", "deadwood", "--rounds", "3"], ["deadwood", "games"], 3), ([], GROUPS, 5)],
)
def test_groups_and_rounds_are_chosen_or_everything_is_measured(
    run: Run,
    measured: Callable[[Bench], list[Any]],
    words: list[str],
    groups: list[str],
    rounds: int,
) -> None:
    asked = measured(Bench())

    run("bench", *words)

    assert (sorted(asked[0]), asked[1].rounds) == (groups, rounds)


def test_two_commits_are_compared_in_a_sentence_each(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def compare(*_: object) -> tuple[AgainstRow, ...]:
        return (ROW,)

    monkeypatch.setattr("arena.cli.bench.against", compare)
    monkeypatch.setattr("arena.cli.bench.checked_out", lambda commit: nullcontext(Path(commit)))

    out = run("bench", "--against", "HEAD").text

    for part in ("server, 64 matches", "9.87", "13.21", "0.747", "0.731 to 0.765", "96.5%"):
        assert part in out
    assert "faster" in out
    document = run("bench", "--against", "HEAD", "--json").document
    assert document == {"commit": "HEAD", "rows": [msgspec.to_builtins(ROW)]}


def test_ctrl_c_ends_it_with_a_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def measure(*_: object) -> Bench:
        raise KeyboardInterrupt

    monkeypatch.setattr("arena.cli.bench.bench", measure)

    assert run("bench").failure(130) == "interrupted, all that was measured is stopped"
