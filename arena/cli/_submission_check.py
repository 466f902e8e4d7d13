"""The process that checks one submission: `arena check` with few rounds, at a low priority.

`arena/submissions/check_process.py` starts it, sends it the job, and reads its output.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec

from arena.authoring.conformance import CheckReport, Step, StepOutcome, StepStatus
from arena.authoring.conformance.bot import BotUnderTest
from arena.authoring.conformance.run import run
from arena.cli._signals import stops_at_sigterm
from arena.cli.check import lines_of, summary_of, verdict_on
from arena.sandbox.command import sealed_program
from arena.submissions.check_process import CheckJob, CheckStep, CheckVerdict

__all__ = ["main", "passed_games", "verdict"]

_OF_A_GAME = (Step.PLAY, Step.LEGAL)
_NICE = 10  # the check and the processes it starts yield to matches


async def main(job: CheckJob) -> CheckVerdict:
    """Check a program, and write the progress to stdout."""
    stops_at_sigterm()
    program = sealed_program(Path(job.folder), job.manifest)
    bot = BotUnderTest(program, job.name, job.limits, hidden=map(Path, job.hidden))
    checked = await run(
        bot,
        games=job.manifest.games,
        rounds=job.rounds,
        seed=job.seed,
        on_begin=lambda step: _say(CheckStep(step, "begun")),
        on_step=lambda outcome: _say(_done(outcome)),
    )
    return verdict(checked)


def verdict(checked: CheckReport) -> CheckVerdict:
    """Return the result of a check, with the games that the program can play.

    A fault in one game does not affect the others: a bot may be accepted for some of its games.
    """
    lines = tuple(line for line in summary_of(checked) if line)
    games = tuple(game for game in checked.games if passed_games(checked.steps, game))
    wrong = [step for step in checked.steps if _is_wrong(step) and step.step not in _OF_A_GAME]
    if games and not wrong:
        return CheckVerdict(games, "", lines)
    failed = next((step for step in checked.steps if _is_wrong(step)), None)
    why = verdict_on(checked)
    if failed is not None and failed.came:
        why = _fault(failed)
    return CheckVerdict((), why, lines)


def _fault(step: StepOutcome) -> str:
    """Describe a failed step in a line, with the bot's last words, or else with the hint."""
    last_words = (step.stderr or "").strip().rpartition("\n")[2]
    more = f"It wrote: {last_words}" if last_words else step.advice
    return f"{step.name}: expected {step.expected}; got {step.came}. {more}"


def passed_games(steps: Iterable[StepOutcome], game: str) -> bool:
    """Whether the bot played a game without a failed step."""
    own = [step for step in steps if step.game == game]
    is_played = any(step.step is Step.PLAY and step.status is StepStatus.OK for step in own)
    return is_played and not any(map(_is_wrong, own))


def _is_wrong(step: StepOutcome) -> bool:
    return step.status in (StepStatus.FAILED, StepStatus.INCOMPLETE)


def _done(outcome: StepOutcome) -> CheckStep:
    lines = tuple(lines_of(outcome))
    is_failed = outcome.status is StepStatus.FAILED
    word = "FAILED" if is_failed else outcome.status.value
    text = "\n".join(line.strip() for line in lines[1:]) if is_failed else outcome.about
    return CheckStep(outcome.name, word, text, lines)


def _say(said: CheckStep | CheckVerdict) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(said) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    if sys.platform != "win32":
        os.nice(_NICE)
    _say(asyncio.run(main(msgspec.json.decode(sys.stdin.buffer.readline(), type=CheckJob))))
