"""`arena play`, `cross`, `compare`, `analyse`, `mistakes` and `--bot COMMAND`; and Ctrl-C in the middle.

Their words and results are in `*.cram`.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import arena
from arena.cli import Interrupted, main
from arena.cli import _lab_runs as lab_runs
from arena.cli import _output as output
from arena.games.catalogue import GAMES
from arena.games.rules import Rules, Scoreboard
from arena.lab.matches import Offence
from arena.sandbox.bot_spec import read_entry
from arena.storage.store import Store
from protocol import watchdog
from protocol.messages import Ending
from tests.support.analysed import GAME
from tests.support.answering import Answering
from tests.support.game_packages import install_game
from tests.support.git_repository import commit_all, git
from tests.support.in_process import CommandProcess, Run


def test_one_match_is_the_one_that_arena_play_plays(run: Run, bot_file: Callable[..., str]) -> None:
    path = bot_file()
    document = run("play", "akq", path, path, "--seed", "5", "--json").document

    result = arena.play("akq", [Answering(), Answering()], seed=5)
    assert tuple(bot["score"] for bot in document["bots"]) == result.scores


@pytest.mark.stats
def test_G16_a_thousand_games_unless_told(run: Run) -> None:
    argv = ["cross", "gin", "simple", "random", "--set", "target=1"]
    document = run(*argv, "--seed", "1", "--json").document

    assert document["settings"]["games"] == 1000
    assert document["tables"][0]["units"] == 1000


@pytest.mark.needs("git")
def test_a_file_is_compared_with_itself_at_a_commit(
    run: Run, bot_file: Callable[..., str], tmp_path: Path
) -> None:
    mine = bot_file(answer="question.legal[-1]")  # checks and folds
    git(tmp_path, "init")
    commit_all(tmp_path)
    bot_file(answer="question.legal[0]")  # bets and calls
    document = run("compare", mine, f"{mine}@HEAD", "--json").document

    assert document["bots"] == [mine, f"{mine}@HEAD"]
    assert (document["verdict"], document["better"]) == ("better", 0)


AKQ = GAMES["ace_king_queen"]


def test_commands_come_after_the_bots_that_are_named(bot_file: Callable[..., str]) -> None:
    mine = bot_file()
    entries = [read_entry("sh"), read_entry("ann=sh"), read_entry("sh -c mine")]
    guests = lab_runs.guests(AKQ, ["nash", mine, "nash"], entries)

    # The default of the last would be the name of a file that plays, too.
    names = [bot.name for bot in guests]
    assert names == ["nash", mine, "nash", "sh", "ann", "mine-2"]
    assert [bot.program is None for bot in guests] == [True] * 3 + [False] * 3


@pytest.mark.parametrize("how", [KeyboardInterrupt, "cancelled"])
def test_ctrl_c_says_how_far_it_came(how: Any) -> None:
    def playing(progress: output.ProgressCount) -> Coroutine[Any, Any, None]:
        async def play() -> None:
            progress.tick()
            progress.tick()
            if how is KeyboardInterrupt:
                raise KeyboardInterrupt
            raise asyncio.CancelledError

        return play()

    with pytest.raises(Interrupted) as caught:
        lab_runs.run(playing, lab_runs.Bar("Blackjack", 5000, "trial", "--trials"))

    assert str(caught.value) == (
        "interrupted after 2 of 5,000 trials, all bots are stopped; "
        "a smaller --trials shortens the run"
    )


def test_who_is_out_is_told_in_a_line_after_the_end_of_its_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stderr = "\n".join([*(f"line {n}" for n in range(99)), "\tat x", "\x1b[2Jthe last"])
    offence = Offence(1, 1, Ending.ILLEGAL, "answered 4", 7, advice="do not", stderr=stderr)
    line = lab_runs.out("ann", offence)
    told = capsys.readouterr().err.splitlines()

    assert line == "ann is eliminated in match 7: illegal: answered 4; do not"
    assert told[-2:] == ["ann:     at x", "ann: \N{REPLACEMENT CHARACTER}[2Jthe last"]
    assert len(told) == 20


ANALYSING = pytest.mark.usefixtures("analysing")


@ANALYSING
def test_one_line_says_what_is_not_installed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)

    refusal = run("analyse", GAME, "honest").refusal()

    assert refusal == "numpy and scipy are not installed: pip install 'card-arena[analysis]'"


@ANALYSING
def test_a_terminal_shows_that_it_goes_on(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = run("analyse", GAME, "honest", "--seed", "5", "--json")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)

    shown = run("analyse", GAME, "honest", "--seed", "5", "--json")

    assert quiet.err == ""
    assert "asking honest" in shown.err
    assert "answers" in shown.err
    assert shown.out == quiet.out


@ANALYSING
def test_ctrl_c_says_how_many_answers_came(run: Run, bot_file: Callable[..., str]) -> None:
    stopped = bot_file(answer="exec('raise KeyboardInterrupt')")

    failure = run("analyse", GAME, "honest", "--against", stopped).failure(130)

    assert re.fullmatch(r"interrupted after [1-9][\d,]+ answers", failure)


def test_luck_refuses_while_an_arena_runs_on_the_database(
    run: Run, older_db: None, tmp_path: Path
) -> None:
    db = str(tmp_path / "class.db")
    with Store(db, exclusive=True):
        line = run("luck", db).refusal()

    assert line.startswith(f"expected a database that no other arena runs on, {db} is in use")


def test_rules_that_do_not_return_are_named_while_they_are_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    game, said = GAMES[GAME], ""

    def stuck(settings: Any, deals: Iterator[Any], board: Scoreboard) -> Rules:
        nonlocal said
        while "has been in" not in said:
            said += capsys.readouterr().err
        return (yield from game.rules(settings, deals, board))

    monkeypatch.setattr(watchdog, "LONG_S", 0.05)
    monkeypatch.setattr(watchdog, "LOOK_S", 0.005)
    monkeypatch.setitem(GAMES, GAME, msgspec.structs.replace(game, rules=stuck))
    assert main(["check-game", GAME, "--matches", "1"]) == 0

    assert re.fullmatch(r"arena: test_lab_commands\.py has been in \w+\(\) .*line \d+\)\n", said)


LATE = """
import sys

from protocol import watchdog

watchdog.LONG_S, watchdog.LOOK_S = 0.05, 0.005


def late(decide):
    def decide_late(strategy, question):
        while b"has been in" not in sys.stderr.buffer.getvalue():
            pass
        return decide(strategy, question)

    return decide_late
"""


def test_so_are_house_bots_and_what_else_their_package_has(tmp_path: Path) -> None:
    install_game(tmp_path, "stuck", 2)
    (tmp_path / "stuck" / "late.py").write_text(LATE)
    with (tmp_path / "stuck" / "bots.py").open("a") as bots:
        bots.write("\nfrom stuck.late import late\nBold.decide = late(Bold.decide)\n")
    with CommandProcess.beside(tmp_path) as commands:
        ran = commands.arena(tmp_path, "check-game", "stuck", "--matches", "1")

    assert ran.status == 0
    assert re.fullmatch(r"arena: late\.py has been in decide_late\(\) .*line \d+\)\n", ran.err)
