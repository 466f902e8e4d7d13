"""`arena tournament`: bots as processes, its result, and how it goes on after a kill."""

from __future__ import annotations

import json
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from arena.storage.store import CompetitionState, Store
from protocol.messages import Ending
from tests.support.arena_process import printed
from tests.support.in_process import run_here
from tests.support.pipe_bot import bot, slow, write_bots

if TYPE_CHECKING:
    from tests.support.gateway_bots import StartedProgram

pytestmark = pytest.mark.e2e

Tournament = Callable[..., "StartedProgram"]


@pytest.fixture
def tournament(start: Callable[..., StartedProgram], tmp_path: Path) -> Tournament:
    """Start `arena tournament` in a folder where `slow.py` is."""
    write_bots(tmp_path, slow=slow(0.01))
    return lambda *words: start("arena", "tournament", *words, cwd=tmp_path)


def document(program: StartedProgram) -> Any:
    ended, out, err = program.ends()
    assert ended == 0, err
    assert "Traceback" not in err
    return json.loads(out)


def pairs(store: Store, competition: str) -> Counter[tuple[str, ...]]:
    """How often which bots have met in a match that counts."""
    return Counter(tuple(sorted(row.players)) for row in store.results(competition))


def test_K3_a_league_is_a_table_for_people(tournament: Tournament, tmp_path: Path) -> None:
    words = ("league", "blackjack", "simple", "simple", "--matches", "2")
    status, out, err = tournament(*words, "--set", "hands=5", "--log", "matches.log").ends()

    assert status == 0, err
    title = next(line for line in out.splitlines() if line)
    assert title.startswith("tournament · Blackjack: league, 4 matches, ")
    assert "simple-2" in out
    lines = (tmp_path / "matches.log").read_text().splitlines()
    assert len(lines) == 4
    assert all("completed" in line for line in lines)
    assert not list(tmp_path.glob("*.db*")), "the results are thrown away"


LONG = (
    *("round_robin", "akq", "nash", *bot("slow.py", "ann"), *bot("slow.py", "ben")),
    *("--matches", "6", "--set", "hands=10", "--db", "mine.db", "--json"),
    *("--log", "-"),
)
"""Eighteen matches that take a while."""


def test_after_a_kill_the_same_command_plays_the_rest(
    tournament: Tournament, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = tournament(*LONG)
    for _ in range(4):
        first.until("completed")
    first.kill()
    with Store(tmp_path / "mine.db", create=False) as store:
        [before] = store.competitions()
        kept = store.results(before.id)

    assert before.state is CompetitionState.RUNNING
    assert 0 < len(kept) < 18

    another = ("league", "blackjack", "simple", "--set", "hands=2", "--db", "mine.db")
    assert printed("tournament", *another)["played"] == 1, "another command begins its own"

    second = tournament(*LONG)
    line = second.until(f"{before.id} goes on: ")
    assert line.strip() == f"{before.id} goes on: {len(kept)} matches played"
    report = document(second)

    assert report["competition"] == before.id
    assert report["played"] == 18
    with Store(tmp_path / "mine.db", create=False) as store:
        after, other = store.competitions()
        assert after.state is other.state is CompetitionState.FINISHED
        assert store.results(after.id)[: len(kept)] == kept
        assert pairs(store, after.id) == {("ann", "nash"): 6, ("ben", "nash"): 6, ("ann", "ben"): 6}
    assert all(row["played"] == 12 for row in report["standings"])


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals there")
def test_ctrl_c_is_one_line_and_leaves_nothing_running(
    tournament: Tournament, tmp_path: Path
) -> None:
    program = tournament(*LONG)
    program.until("completed")
    program.process.send_signal(signal.SIGINT)
    status, out, err = program.ends()

    assert (status, out) == (130, "")
    assert err.splitlines()[-1] == (
        "arena: interrupted, all bots are stopped; the same command goes on from there, mine.db"
    )
    assert "Traceback" not in err
    with Store(tmp_path / "mine.db", create=False) as store:
        [competition] = store.competitions()
        assert competition.state is CompetitionState.RUNNING
        kinds = {row.result.termination.kind for row in store.matches(competition.id)}
        assert kinds <= {Ending.COMPLETED, Ending.VOID}
        assert store.verdicts() == ()


def test_one_bot_alone_is_called_wrong_in_one_line() -> None:
    said = run_here("tournament", "round_robin", "akq", "nash").refusal()

    assert said == "expected bots, at least 2 of them, got 1"
