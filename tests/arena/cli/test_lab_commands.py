"""`arena play`, `cross`, `compare`, `analyse`, `mistakes` and `--bot COMMAND`; and Ctrl-C in the middle.

Their words and results are in `*.cram`.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable, Coroutine, Iterator
from itertools import count, islice
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
from arena.lab.recent_matches import LabMatches
from arena.records.luck import luck_of
from arena.records.mistakes import JudgedDecision, JudgedSeat
from arena.records.seat_document import seat_document
from arena.results import match_sums
from arena.results.export import export
from arena.sandbox.bot_spec import read_entry
from arena.storage.store import Store
from protocol import watchdog
from protocol.errors import UnknownBot
from protocol.messages import Ending
from protocol.strategy import find
from tests.support.analysed import GAME
from tests.support.answering import Answering
from tests.support.game_packages import install_game
from tests.support.git_repository import commit_all, git
from tests.support.in_process import CommandProcess, Run
from tests.support.judged_toys import play_in_pairs, toy_record


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


def test_a_match_says_how_much_of_what_was_won_is_luck(run: Run, tmp_path: Path) -> None:
    bots = [find("ace_king_queen", name)() for name in ("honest", "bluffer")]
    record = arena.play("ace_king_queen", bots, settings={"hands": 40}, seed=1).record
    file = tmp_path / "match.json"
    file.write_bytes(record.to_json())
    measured = luck_of(record)

    words = ("mistakes", str(file), "--seat", "2")
    line = run(*words).text.splitlines()[1]

    luck = {"unit": "chip", "gain": measured.gains[1], "luck": measured.luck[1]}
    assert run(*words, "--json").document["luck"] == luck
    without = measured.gains[1] - measured.luck[1]
    assert line.startswith(f"It won {measured.gains[1]:+.2f} chips, of which ")
    assert line.endswith(f" is luck: {without:+.2f} without it.")
    file.write_bytes(seat_document(record, 1, "m", ("ann", "ben")).to_json())
    assert run(*words, "--json").document["luck"] is None


AKQ = GAMES["ace_king_queen"]


def test_commands_come_after_the_bots_that_are_named(bot_file: Callable[..., str]) -> None:
    mine = bot_file()
    entries = [read_entry("sh"), read_entry("ann=sh"), read_entry("sh -c mine")]
    guests = lab_runs.guests(AKQ, ["nash", mine, "nash"], entries)

    # The default of the last would be the name of a file that plays, too.
    names = [bot.name for bot in guests]
    assert names == ["nash", mine, "nash", "sh", "ann", "mine-2"]
    assert [bot.program is None for bot in guests] == [True] * 3 + [False] * 3


def test_a_file_that_cannot_play_is_found_out_before_anything_is_launched(
    bot_file: Callable[..., str],
) -> None:
    path = bot_file(game="gin_rummy")

    with pytest.raises(UnknownBot, match="plays gin_rummy, expected a bot for ace"):
        lab_runs.guests(AKQ, [path], [read_entry("sh")])


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


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.fixture
def db(tmp_path: Path) -> str:
    return str(tmp_path / "class.db")


@pytest.mark.parametrize(("whole", "decisions"), [(0, 0), (0, 1), (2, 0), (2, 1)])
def test_mistakes_shows_what_was_found_until_then(
    run: Run, toy_db: None, db: str, whole: int, decisions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    matches = count()
    judged: Callable[..., Iterator[JudgedDecision]] = JudgedSeat.judged

    def until_then(*args: Any) -> Iterator[JudgedDecision]:
        if next(matches) < whole:
            yield from judged(*args)
        else:
            yield from islice(judged(*args), decisions)
            raise KeyboardInterrupt

    monkeypatch.setattr(JudgedSeat, "judged", until_then)
    ran = run("mistakes", "toy_two", "--seat", "ben", "--db", db, "--json")

    assert ran.failure(130) == f"interrupted after {whole} of 5 matches"
    documents = [json.loads(line) for line in ran.out.splitlines()]
    shown = whole + decisions
    assert [(one["matches"], one["of"]) for one in documents] == [(shown, 5)] * bool(shown)


@pytest.fixture
def pairs_file(judged_toy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A match of three pairs, of which seat 2 lost the second and drew the third."""
    play_in_pairs(monkeypatch, GAMES[judged_toy])
    file = tmp_path / "pairs.json"
    record = toy_record(judged_toy, (0, 3, 3, 1, 0, 3), "Ad Kd Qs Jh Ah Kd")
    file.write_bytes(record.to_json())
    return str(file)


def test_mistakes_of_a_long_match_begin_with_what_was_lost_highest(
    run: Run, pairs_file: str
) -> None:
    ran = run("mistakes", pairs_file, "--seat", "2", "--lost", "2", "--top", "1")

    assert ran.err.splitlines() == [
        "judging the 2 of 3 pairs that seat-2 lost highest",
        "worst so far: round 3, question 3: it bids 3; better: bids 0; costs 3.00 chips",
    ]
    lines = ran.out.splitlines()
    assert lines[1] == (
        "Only the 2 pairs that were lost highest were judged, 2 and 3; `--lost 0` judges all."
    )
    assert "round 3, its question 3" in lines[4]
    document = run("mistakes", pairs_file, "--seat", "2", "--lost", "2", "--json").document
    assert (document["games"], document["decisions"], document["judged"]) == ([2, 3], 6, 4)
    document = run("mistakes", pairs_file, "--seat", "2", "--json").document
    assert (document["games"], document["judged"]) == (None, 6)
    one = run("mistakes", pairs_file, "--seat", "2", "--lost", "1").out.splitlines()[1]
    assert one == "Only pair 2 was judged, which was lost highest; `--lost 0` judges all."


def test_of_many_matches_each_is_named_and_what_was_left_out_is_said(
    run: Run, toy_db: None, db: str, judged_toy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_in_pairs(monkeypatch, GAMES[judged_toy])
    ran = run("mistakes", "toy_two", "--seat", "ben", "--lost", "1", "--db", db)

    said = ran.err.splitlines()
    assert said[0] == "judging the 1 of 2 pairs that ben lost highest in match m-1"
    assert any(line.startswith("worst so far: match m-") for line in said)
    assert ran.out.splitlines()[1] == (
        "Of long matches only the pairs that were lost highest were judged; `--lost 0` judges all."
    )
    document = run("mistakes", "toy_two", "--seat", "ben", "--db", db, "--json").document
    assert (document["games"], document["judged"]) == (None, 8)


def test_a_long_match_that_is_interrupted_shows_what_was_found_of_it(
    run: Run, pairs_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: Callable[..., Iterator[JudgedDecision]] = JudgedSeat.judged

    def until_then(*args: Any) -> Iterator[JudgedDecision]:
        yield from islice(judged(*args), 3)
        raise KeyboardInterrupt

    monkeypatch.setattr(JudgedSeat, "judged", until_then)
    ran = run("mistakes", pairs_file, "--seat", "2")

    assert ran.status == 130
    assert ran.err.endswith("interrupted after 3 of 6 decisions\n")
    assert "3 mistakes in 3 judged decisions of 6" in ran.out


def test_without_seat_they_are_those_of_the_players_that_are_no_house_bots(
    run: Run, judged_toy: str, tmp_path: Path, toy_db: None, db: str
) -> None:
    both = run("mistakes", str(tmp_path / "again.json")).text
    assert both.index("again.json, seat-1:") < both.index("again.json, seat-2:")
    file = tmp_path / "view.json"
    record = toy_record(judged_toy, (3, 0), "As Kd")
    file.write_bytes(seat_document(record, 1, "m", ("ann", "ben")).to_json())
    assert run("mistakes", str(file)).text.startswith("Toy for two, match m, ben:")
    said = run("mistakes", "toy_two", "--db", db).refusal(2)
    assert said == "expected --seat with the name of a player of toy_two"
    bots = [find("ace_king_queen", name)() for name in ("honest", "bluffer")]
    record = arena.play("ace_king_queen", bots, settings={"hands": 4}, seed=1).record
    for names in (("honest", "mine.py"), ("honest", "bluffer")):
        recent = LabMatches()
        recent.add((0, 1), record)
        recent.keep(names)
    assert run("mistakes", "last-2").text.startswith("Ace-King-Queen, match last-2, mine.py:")
    assert run("mistakes", "last-1").refusal(2) == "expected --seat with one of: honest, bluffer"


def test_export_leaves_everything_as_it_was(
    run: Run, two_courses_db: None, db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write: Callable[..., Any] = export
    monkeypatch.setattr("arena.results.export.export", lambda *args: write(*args[:-1], interrupted))
    folder = tmp_path / "results"
    said = run("export", str(folder), "--db", db).refusal(130)

    assert said == f"interrupted; {folder} is as it was"
    assert {path.suffix for path in tmp_path.iterdir()} <= {".db", ".db-wal", ".db-shm"}


def test_luck_says_how_many_are_left(
    run: Run, older_db: None, db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(match_sums, "recompute", interrupted)

    assert run("luck", db).refusal(130) == (
        "interrupted; 3 matches left, and the same command goes on"
    )


def test_luck_refuses_while_an_arena_runs_on_the_database(
    run: Run, older_db: None, db: str
) -> None:
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
