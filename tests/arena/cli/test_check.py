"""`arena check`: the words after `--`, how it is called wrong, and what it shows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

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
from arena.cli.check import lines_of, program_of, summary_of, verdict_on
from protocol.errors import UsageError
from protocol.messages import Limits

if TYPE_CHECKING:
    pass

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
def test_words_are_those_of_a_command() -> None:
    program = program_of([PYTHON, "my bot.py", "--fast"])

    assert program.words == (PYTHON, "my bot.py", "--fast")
    assert not program.stdio


@pytest.mark.usefixtures("scripts")
def test_a_single_word_is_a_whole_command() -> None:
    program = program_of([f"stdio: {PYTHON} bot.py"])

    assert program.words == (PYTHON, "bot.py")
    assert program.stdio


def test_lines_may_be_a_word_of_their_own() -> None:
    program = program_of(["stdio:", PYTHON, "-c", "print('a b')"])

    assert program.words == (PYTHON, "-c", "print('a b')")
    assert program.stdio


def test_a_file_is_a_strategy_that_our_client_connects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    program = program_of(["mine.py"])

    assert program.words[1:5] == ("-P", "-m", "bots", "mine.py")
    assert program.folder == tmp_path.resolve()


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(UsageError, match=r"found no file nowhere\.py"):
        program_of(["nowhere.py"])


@pytest.mark.parametrize(
    "words", [[PYTHON, "nowhere.py"], ["stdio:", PYTHON, "nowhere.py", "--fast"]]
)
def test_a_script_that_is_not_there(words: list[str]) -> None:
    with pytest.raises(UsageError, match=r"found no file nowhere\.py"):
        program_of(words)


@pytest.mark.parametrize("words", [[PYTHON, "-c", "print()", "nowhere.py"], ["env", "nowhere.py"]])
def test_a_word_that_may_be_no_script_is_left_to_the_program(words: list[str]) -> None:
    assert program_of(words).words == tuple(words)


# ---- What is shown


def test_a_step_that_passed_is_a_line() -> None:
    assert lines_of(OK) == [" 1 starts                 ok      at ws://here"]


def test_a_step_that_was_skipped_says_why() -> None:
    [line] = lines_of(SKIPPED)

    assert line.endswith("skipped (it does not say `batch`)")


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


SHORT = StepOutcome(
    number=4,
    step=Step.PLAY,
    game="blackjack",
    status=StepStatus.INCOMPLETE,
    about="3 of 200 rounds",
    rounds=3,
)


def test_what_is_not_complete_is_no_failure_and_not_enough() -> None:
    [line] = lines_of(SHORT)

    assert line == " 4 play blackjack         incomplete (3 of 200 rounds)"
    assert summary_of(checked(OK, SHORT))[-1] == (
        "2 steps: 1 ok, 0 failed, 0 skipped, 1 incomplete"
    )
    assert verdict_on(checked(OK, SHORT)).startswith(
        "nothing was wrong, but there was no time for all of play blackjack; --rounds N"
    )


def test_the_seed_is_told() -> None:
    seeded = msgspec.structs.replace(checked(OK, report=ResourceUse(decisions=1)), seed=7)
    report = msgspec.structs.replace(seeded.report, p50_ms=1.0, p99_ms=1.0, max_ms=1.0)
    lines = summary_of(msgspec.structs.replace(seeded, report=report))

    assert lines[1].startswith("1 decision: ")
    assert lines[-1] == "1 step: 1 ok, 0 failed, 0 skipped; seed 7"


def test_the_last_word_names_what_failed() -> None:
    assert verdict_on(checked(OK, BAD)) == "1 of 2 steps failed: play blackjack"
    assert verdict_on(checked(OK)) == "nothing was played"
