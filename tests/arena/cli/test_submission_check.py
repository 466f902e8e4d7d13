"""What a check of a submission comes to: in which games it may play, or what was wrong."""

from __future__ import annotations

import msgspec
import pytest

from arena.authoring.conformance import CheckReport, ResourceUse, Step, StepOutcome, StepStatus
from arena.cli._submission_check import verdict
from protocol.messages import Limits


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


def test_a_bot_plays_the_games_in_which_it_passed() -> None:
    found = verdict(
        report(
            step(Step.PLAY, "akq"),
            step(Step.PLAY, "gin", StepStatus.FAILED, "nothing"),
            step(Step.LEGAL, "akq"),
            step(Step.LEGAL, "gin", StepStatus.SKIPPED),
        )
    )

    assert (found.games, found.why) == (("akq",), "")


@pytest.mark.parametrize("status", [StepStatus.FAILED, StepStatus.INCOMPLETE])
def test_what_is_wrong_in_no_game_is_wrong_in_all(status: StepStatus) -> None:
    steps = (step(Step.PLAY, "akq"), step(Step.LEGAL, "akq"), step(Step.CLOSE, None, status, "it"))

    found = verdict(report(*steps, games=("akq",)))

    assert found.games == ()
    assert found.why == "close: expected that; got it. Mend it."


def test_the_first_fault_is_the_one_that_is_said() -> None:
    found = verdict(
        report(
            step(Step.PLAY, "akq", StepStatus.FAILED, "a card of its own"),
            step(Step.OVER, None, StepStatus.FAILED, "nothing"),
        )
    )

    assert found.why == "play akq: expected that; got a card of its own. Mend it."


def test_what_a_bot_wrote_as_it_ended_says_more_than_a_hint() -> None:
    fault = step(Step.STARTS, None, StepStatus.FAILED, "nothing")
    trace = "Traceback:\n  File …\nSyntaxError: invalid syntax\n"

    found = verdict(report(msgspec.structs.replace(fault, stderr=trace)))

    assert found.why == "starts: expected that; got nothing. It wrote: SyntaxError: invalid syntax"


def test_without_a_game_nothing_was_played() -> None:
    assert verdict(report(games=())).why == "nothing was played"
