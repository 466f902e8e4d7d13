"""`arena check`: checks step by step whether a bot keeps to the protocol and the rules."""

from __future__ import annotations

import asyncio
import re
import secrets
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from arena.authoring.conformance import CheckReport, StepOutcome, StepStatus
from arena.cli import Interrupted
from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._limit_options import LimitsCommand, limits_options
from arena.cli._results import Found, as_json, result_command
from arena.cli._signals import stops_at_sigterm
from arena.competitions.config import ServeSection
from arena.games.catalogue import game_named
from arena.sandbox.bot_spec import BotSpec, named
from arena.sandbox.command import Program, read_program, strategy_program
from protocol.errors import ArenaError, UsageError, one_line
from protocol.messages import Limits

__all__ = ["command", "lines_of", "program_of", "summary_of", "verdict_on"]

_STDIO = "stdio:"
_INTERPRETER = re.compile(r"(python|pypy|node|ruby|perl|bash|sh)[\d.]*(\.exe)?")
_GIVEN = click.core.ParameterSource.COMMANDLINE
_LONGEST_LINE = 1000
_BRACKETS = (StepStatus.SKIPPED, StepStatus.INCOMPLETE)
_LONGEST_FRAME = 4 << 20  # characters of a frame shown by --verbose, in effect all
_CLEAR = "\r\x1b[K"  # clears the terminal's last line


@result_command("check", cls=LimitsCommand, prints=CheckReport)
@click.argument("words", nargs=-1, metavar="[--] [COMMAND...]")
@click.option("--listen", is_flag=True, help="Wait for a bot that connects by itself instead.")
@click.option(
    "--host",
    default=ServeSection().host,
    show_default=True,
    help="With --listen: the address to listen on.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=ServeSection().port,
    show_default=True,
    help="With --listen: the port, 0 for a free one.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    metavar="N",
    help="How many rounds of each game it plays.",
)
@click.option(
    "--game",
    "games",
    multiple=True,
    metavar="GAME",
    help="Check only this one of the games that it offers. May be repeated.",
)
@click.option(
    "--seed",
    type=int,
    metavar="N",
    help="Draw the same seeds and opponents as last time. The bot's own chance, its nonces, "
    "which the cards depend on, too, and time are not fixed.",
)
@click.option("--verbose", is_flag=True, help="Show every frame on stderr.")
@limits_options
@click.pass_context
def command(
    context: click.Context,
    words: tuple[str, ...],
    listen: bool,
    host: str,
    port: int,
    rounds: int,
    games: tuple[str, ...],
    seed: int | None,
    verbose: bool,
    limits: Limits,
) -> Iterator[Found]:
    """See whether a bot behaves, step by step, and what to do about it if it does not.

    COMMAND is what starts the bot: `arena check -- java -Xmx128m MyBot`, `arena check -- stdio:
    ./mybot` if it speaks in lines, or the FILE.py of a strategy. It is started as a
    competition would start it. Nothing is written anywhere.

    The exit status is 0 only if all steps passed; a step that has no meaning for the bot is
    skipped, and one that a slow bot had no time for is incomplete: with --rounds N it is shorter. A
    check ends within 20 minutes of the bot's arrival.
    """
    if listen == bool(words):
        raise UsageError("expected either -- COMMAND or --listen")
    for option in ("host", "port"):
        if not listen and context.get_parameter_source(option) is _GIVEN:
            raise UsageError(f"expected --{option} with --listen only")
    from arena.authoring.conformance.bot import BotUnderTest
    from arena.authoring.conformance.run import run

    entry = None if listen else named([BotSpec(program_of(words))])[0]
    program, name = (None, "bot") if entry is None else (entry.program, entry.name or "bot")
    wanted = tuple(game_named(game).name for game in games)
    display = _Display(verbose=verbose, quiet=as_json())

    async def check() -> CheckReport:
        stops_at_sigterm()
        return await run(
            BotUnderTest(program, name, limits, display.frame, display.note),
            games=wanted,
            rounds=rounds,
            seed=secrets.randbits(32) if seed is None else seed,
            address=(host, port) if listen else ("127.0.0.1", 0),
            on_step=display.step_done,
            on_progress=display.progress,
        )

    try:
        checked = asyncio.run(check())
    except (KeyboardInterrupt, asyncio.CancelledError):
        stopped = "" if listen else ", the bot is stopped"
        raise Interrupted(f"interrupted{stopped}") from None
    yield checked, summary_of(checked)
    if not checked.passed:
        raise ArenaError(verdict_on(checked))


def program_of(words: Sequence[str]) -> Program:
    """Read the bot's command line from the words after `--`.

    A single word with spaces in it is a whole command, as for `--bot`; a single FILE.py is a
    strategy, which our client connects. Raises `UsageError` if a program or script is missing.
    """
    text, *more = words
    if not more:
        text = options.bot_file(text)
    if not more and text.endswith(".py") and len(text.split()) == 1:
        if not Path(text).is_file():
            raise UsageError(f"expected a file with a bot in it, found no file {text}")
        return strategy_program(text, name=Path(text).stem)
    if more:
        text = f"{_STDIO} {shlex.join(more)}" if text == _STDIO else shlex.join(words)
    program = read_program(text)
    called, *rest = program.words
    script = rest[0] if rest and _INTERPRETER.fullmatch(Path(called).name) else "-"
    if script[:1] != "-" and Path(script).suffix and not Path(script).exists():
        raise UsageError(f"expected a file with a bot in it, found no file {script}")
    return program


class _Display:
    """Shows a running check: steps on stdout unless `quiet`, everything else on stderr."""

    def __init__(self, *, verbose: bool, quiet: bool) -> None:
        self._is_verbose, self._is_quiet = verbose, quiet
        self._has_progress = sys.stderr.isatty() and not verbose

    def frame(self, who: str, text: str) -> None:
        if self._is_verbose:
            shown = one_line(text, _LONGEST_FRAME)
            click.echo(f"{who + ('>' if who != '--' else ''):<6} {shown}", err=True)

    def note(self, text: str) -> None:
        click.echo(f"{_CLEAR if self._has_progress else ''}{text}", err=True)

    def progress(self, text: str) -> None:
        if self._has_progress:
            width = shutil.get_terminal_size().columns - 1
            click.echo(f"{_CLEAR}{text[:width]}", err=True, nl=False)

    def step_done(self, outcome: StepOutcome) -> None:
        if self._has_progress:
            click.echo(_CLEAR, err=True, nl=False)
        if not self._is_quiet:
            click.echo("\n".join(lines_of(outcome)))
            sys.stdout.flush()


def lines_of(outcome: StepOutcome) -> list[str]:
    """Show a step in one line; a failed one has four more, and the end of the bot's stderr."""
    is_failed = outcome.status is StepStatus.FAILED
    word = "FAILED" if is_failed else outcome.status.value
    about = f"({outcome.about})" if outcome.status in _BRACKETS else outcome.about
    line = f"{outcome.number:>2} {outcome.name:<22} {word:<7} {about}".rstrip()
    if not is_failed:
        return [one_line(line, _LONGEST_LINE)]
    details = {
        "sent": outcome.sent or "nothing",
        "expected": outcome.expected,
        "came": outcome.came,
        "hint": outcome.advice,
    }
    lines = [line, *(f"     {label + ':':<9} {text}" for label, text in details.items())]
    if outcome.stderr:
        lines.append("     the end of its standard error:")
        lines += [f"       {text.expandtabs(4)}" for text in outcome.stderr.splitlines()]
    return [one_line(text, _LONGEST_LINE) for text in lines]


def summary_of(checked: CheckReport) -> list[str]:
    """Show the bot's time and memory beside the limits, and how many steps passed."""
    report, limits = checked.report, checked.limits
    lines = [""]
    if report.decisions:
        used_ms, of_ms = report.wall_bank_ms, limits.wall_bank_ms
        clock = f", clock bank {used_ms:,.0f} of {of_ms:,} ms used" if used_ms else ""
        lines.append(
            f"{output.plural(report.decisions, 'decision')}: "
            f"p50 {report.p50_ms:,.1f} ms, p99 {report.p99_ms:,.1f} ms, "
            f"max {report.max_ms:,.1f} ms "
            f"(free up to {limits.decision_ms:,} ms, never more than {limits.hard_ms:,} ms); "
            f"bank {report.bank_ms:,.0f} of {limits.bank_ms:,} ms used{clock}"
        )
    if report.memory_mib is not None:
        lines.append(
            f"memory {report.memory_mib:,.0f} of {limits.memory_mib:,} MiB, "
            f"processes {report.processes} of {limits.processes}, "
            f"CPU {(report.cpu_ms or 0) / 1000:,.1f} s"
        )
    counts = Counter(step.status for step in checked.steps)
    short = counts[StepStatus.INCOMPLETE]
    seed = "" if checked.seed is None else f"; seed {checked.seed}"
    lines.append(
        f"{output.plural(len(checked.steps), 'step')}: {counts[StepStatus.OK]} ok, "
        f"{counts[StepStatus.FAILED]} failed, {counts[StepStatus.SKIPPED]} skipped"
        f"{f', {short} incomplete' if short else ''}{seed}"
    )
    return lines


def verdict_on(checked: CheckReport) -> str:
    """Say in a sentence why the check did not pass."""
    failed = [step.name for step in checked.steps if step.status is StepStatus.FAILED]
    short = [step.name for step in checked.steps if step.status is StepStatus.INCOMPLETE]
    if short and not failed:
        return (
            f"nothing was wrong, but there was no time for all of {', '.join(short)}; "
            f"--rounds N makes it shorter, and --game looks at one game"
        )
    if not failed:
        return "nothing was played"
    steps = output.plural(len(checked.steps), "step")
    return f"{len(failed)} of {steps} failed: {', '.join(failed)}"
