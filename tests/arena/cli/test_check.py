"""`arena check`: the words after `--` and what it shows; a check of a submission, and `check-game`."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

from arena.authoring.conformance import (
    CheckReport,
    Hint,
    ResourceUse,
    Step,
    StepOutcome,
    StepStatus,
)
from arena.cli._submission_check import verdict
from arena.cli.check import lines_of, program_of, summary_of, verdict_on
from arena.games.catalogue import GAMES
from protocol.errors import UsageError
from protocol.messages import Limits
from tests.support.game_packages import install_game
from tests.support.in_process import CommandProcess

PYTHON = sys.executable
OK = StepOutcome(number=1, step=Step.STARTS, status=StepStatus.OK, about="at ws://here")
SKIPPED = StepOutcome(
    number=2, step=Step.BATCH, status=StepStatus.SKIPPED, about="it does not say `batch`"
)
BAD = StepOutcome(
    number=3,
    step=Step.PLAY,
    game="blackjack",
    status=StepStatus.FAILED,
    sent='{"type":"ask"}',
    expected="an answer",
    came="nothing\nat all",
    hint=Hint.SILENT,
    advice=Hint.SILENT.advice,
)

SHORT = StepOutcome(
    number=4,
    step=Step.PLAY,
    game="blackjack",
    status=StepStatus.INCOMPLETE,
    about="3 of 200 rounds",
    rounds=3,
)


def checked(*steps: StepOutcome, report: ResourceUse | None = None) -> CheckReport:
    return CheckReport(
        passed=all(step.status is not StepStatus.FAILED for step in steps),
        name="ann",
        games=("blackjack",),
        steps=steps,
        report=report or ResourceUse(),
        limits=Limits(),
    )


# ---- What stands behind --


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder has `bot.py` and `my bot.py`."""
    for name in ("bot.py", "my bot.py"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("scripts")
@pytest.mark.parametrize(
    ("words", "command"),
    [
        ([PYTHON, "my bot.py", "--fast"], (PYTHON, "my bot.py", "--fast")),
        ([f"stdio: {PYTHON} bot.py"], (PYTHON, "bot.py")),
        (["stdio:", PYTHON, "-c", "print('a b')"], (PYTHON, "-c", "print('a b')")),
        # A word that may be no script is left to the program.
        ([PYTHON, "-c", "print()", "nowhere.py"], (PYTHON, "-c", "print()", "nowhere.py")),
        (["env", "nowhere.py"], ("env", "nowhere.py")),
    ],
)
def test_words_are_those_of_a_command(words: list[str], command: tuple[str, ...]) -> None:
    """A single word is a whole command, and `stdio:` may be a word of its own."""
    program = program_of(words)

    assert program.words == command
    assert program.stdio == words[0].startswith("stdio:")


def test_a_file_is_a_strategy_that_our_client_connects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    program = program_of(["mine.py"])

    assert program.words[1:5] == ("-P", "-m", "bots", "mine.py")
    assert program.folder == tmp_path.resolve()


@pytest.mark.parametrize(
    "words", [["nowhere.py"], [PYTHON, "nowhere.py"], ["stdio:", PYTHON, "nowhere.py", "--fast"]]
)
def test_a_script_that_is_not_there(words: list[str]) -> None:
    with pytest.raises(UsageError, match=r"found no file nowhere\.py"):
        program_of(words)


# ---- What is shown


@pytest.mark.parametrize(
    ("step", "line"),
    [
        (OK, " 1 starts                 ok      at ws://here"),
        (SKIPPED, " 2 batch                  skipped (it does not say `batch`)"),
        (SHORT, " 4 play blackjack         incomplete (3 of 200 rounds)"),
    ],
    ids=lambda value: value.status if isinstance(value, StepOutcome) else "",
)
def test_a_step_that_has_not_failed_is_a_line(step: StepOutcome, line: str) -> None:
    assert lines_of(step) == [line]


def test_a_step_that_failed_says_all_that_its_author_needs() -> None:
    head, *said = lines_of(BAD)

    assert head == " 3 play blackjack         FAILED"
    assert [line.split(maxsplit=1)[0] for line in said] == [
        *("sent:", "expected:", "came:", "hint:")
    ]
    assert said[2] == "     came:     nothing\N{REPLACEMENT CHARACTER}at all"
    assert said[3].endswith(Hint.SILENT.advice)


def test_the_end_of_what_it_wrote_stands_below_line_by_line() -> None:
    bad = msgspec.structs.replace(BAD, stderr="Traceback:\n\tat Bot.main\x1b")

    assert lines_of(bad)[-3:] == [
        "     the end of its standard error:",
        "       Traceback:",
        "           at Bot.main\N{REPLACEMENT CHARACTER}",
    ]


def test_what_it_took_stands_beside_the_limits() -> None:
    report = ResourceUse(
        decisions=1234,
        p50_ms=0.1,
        p99_ms=2.0,
        max_ms=1500.0,
        bank_ms=500.0,
        memory_mib=30.4,
        processes=2,
        cpu_ms=1250.0,
    )

    assert summary_of(checked(OK, SKIPPED, BAD, report=report)) == [
        "",
        "1,234 decisions: p50 0.1 ms, p99 2.0 ms, max 1,500.0 ms (free up to 1,000 ms, "
        "never more than 15,000 ms); bank 500 of 20,000 ms used",
        "memory 30 of 512 MiB, processes 2 of 32, CPU 1.2 s",
        "3 steps: 1 ok, 1 failed, 1 skipped",
    ]


def test_of_a_stranger_no_memory_is_known() -> None:
    assert summary_of(checked(OK)) == ["", "1 step: 1 ok, 0 failed, 0 skipped"]


def test_what_is_not_complete_is_no_failure_and_not_enough() -> None:
    assert summary_of(checked(OK, SHORT))[-1] == (
        "2 steps: 1 ok, 0 failed, 0 skipped, 1 incomplete"
    )
    assert verdict_on(checked(OK, SHORT)).startswith(
        "nothing was wrong, but there was no time for all of play blackjack; --rounds N"
    )


def test_the_seed_is_told() -> None:
    report = ResourceUse(decisions=1, p50_ms=1.0, p99_ms=1.0, max_ms=1.0)
    lines = summary_of(msgspec.structs.replace(checked(OK, report=report), seed=7))

    assert lines[1].startswith("1 decision: ")
    assert lines[-1] == "1 step: 1 ok, 0 failed, 0 skipped; seed 7"


def test_the_last_word_names_what_failed() -> None:
    assert verdict_on(checked(OK, BAD)) == "1 of 2 steps failed: play blackjack"
    assert verdict_on(checked(OK)) == "nothing was played"


def step(
    kind: Step, game: str | None = None, status: StepStatus = StepStatus.OK, came: str = ""
) -> StepOutcome:
    return StepOutcome(
        number=1, step=kind, game=game, status=status, expected="that", came=came, advice="Mend it."
    )


def report(*steps: StepOutcome, games: tuple[str, ...] = ("akq", "gin")) -> CheckReport:
    return CheckReport(
        passed=False, name="bot", games=games, steps=steps, report=ResourceUse(), limits=Limits()
    )


FAILED = StepStatus.FAILED
PLAYED = step(Step.PLAY, "akq")
TRACE = "Traceback:\n  File …\nSyntaxError: invalid syntax\n"


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ([step(Step.CLOSE, None, FAILED, "it")], "close: expected that; got it. Mend it."),
        (
            [step(Step.CLOSE, None, StepStatus.INCOMPLETE, "it")],
            "close: expected that; got it. Mend it.",
        ),
        (
            [step(Step.PLAY, "gin", FAILED, "a card"), step(Step.OVER, None, FAILED, "nothing")],
            "play gin: expected that; got a card. Mend it.",
        ),
        (
            [msgspec.structs.replace(step(Step.STARTS, None, FAILED, "nothing"), stderr=TRACE)],
            "starts: expected that; got nothing. It wrote: SyntaxError: invalid syntax",
        ),
    ],
    ids=["failed", "incomplete", "the first fault", "what it wrote says more than a hint"],
)
def test_what_is_wrong_in_no_game_is_wrong_in_all(steps: list[StepOutcome], why: str) -> None:
    found = verdict(report(PLAYED, *steps))

    assert (found.games, found.why) == ((), why)


def test_a_bot_plays_the_games_in_which_it_passed() -> None:
    gin = step(Step.PLAY, "gin", FAILED, "nothing"), step(Step.LEGAL, "gin", StepStatus.SKIPPED)
    found = verdict(report(PLAYED, step(Step.LEGAL, "akq"), *gin))

    assert (found.games, found.why) == (("akq",), "")


def test_without_a_game_nothing_was_played() -> None:
    assert verdict(report(games=())).why == "nothing was played"


NAME = next(iter(GAMES))


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (
            ("    card: Card\n    actions", "    card: Kard\n    actions"),
            "types of Act cannot be sent",
        ),
        (
            ("    card: Card\n    actions", "    match: Card\n    actions"),
            "the field 'match' of Act",
        ),
        (
            ("    opens=(Dealt,),", '    questions={"act": Act},\n    opens=(Dealt,),'),
            "Unexpected keyword argument 'questions' at ",
        ),
        (
            ("    starter: int\n", "    starter: int | bool | set[int] | list[int]\n"),
            "types of Dealt",
        ),
    ],
)
def test_types_that_cannot_be_sent_leave_a_game_out_and_nothing_else(
    tmp_path: Path, edit: tuple[str, str], why: str
) -> None:
    install_game(tmp_path, "badly_typed", 2, {"vocabulary.py": (edit,)})
    with CommandProcess.beside(tmp_path) as commands:
        ran = commands.arena(tmp_path, "check-game", "badly_typed")
        good = commands.arena(tmp_path, "check-game", NAME, "--matches", "1")
    left_out, *_, refusal = ran.err.splitlines()

    assert (ran.status, ran.out) == (2, "")
    assert "badly_typed 0.1.0 is left out (protocol.games): " in left_out
    assert why in left_out
    assert refusal.startswith("arena: unknown game 'badly_typed'")
    assert good.status == 0
