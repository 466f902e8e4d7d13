"""`arena ruin`: counts how often a bot turns a stake into a goal before it goes broke (T10)."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence

import click
import msgspec

from arena.cli import _lab_runs as lab_runs
from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._limit_options import LimitsCommand, limits_options
from arena.cli._results import Found, result_command
from arena.games.rules import Game
from arena.lab.in_process import entrant
from arena.lab.ruin import Attempt, Ruin, Trials
from arena.sandbox.bot_spec import BotSpec
from protocol.errors import ArenaError, UsageError
from protocol.messages import Limits

__all__ = ["command"]

_CHIPS = click.IntRange(min=1)


class _RuinByAnte(msgspec.Struct, frozen=True, kw_only=True):
    """How the trials with an ante ended.

    Attributes:
        standard_error: of the share, one.
        interval: [low, high] of the share.
    """

    ante: int | None
    reached: int
    broke: int
    undecided: int
    offences: int
    share: float
    standard_error: float | None
    interval: tuple[float, float] | None
    level: float | None
    method: str | None


class _Tried(msgspec.Struct, frozen=True):
    """How the trials ended.

    Attributes:
        seed: null with --bot.
    """

    game: str
    bot: str
    stake: int
    goal: int
    trials: int
    seed: int | None
    results: Sequence[_RuinByAnte]


@result_command("ruin", cls=LimitsCommand, prints=_Tried)
@options.game_argument
@click.argument("bot", required=False)
@options.bot_option
@click.option("--stake", type=_CHIPS, required=True, metavar="S", help="Start with S chips.")
@click.option("--goal", type=_CHIPS, required=True, metavar="G", help="Stop with G chips or more.")
@click.option(
    "--trials", type=_CHIPS, default=1000, show_default=True, metavar="N", help="How often to try."
)
@click.option(
    "--ante",
    "antes",
    type=_CHIPS,
    multiple=True,
    metavar="A",
    help="Make the bot ante A: its class is called with ante=A. May be repeated, to compare.",
)
@options.jobs_option("start the bot N times, by default once")
@options.set_option
@options.seed_option
@limits_options
def command(
    game: Game,
    bot: str | None,
    commands: tuple[BotSpec, ...],
    stake: int,
    goal: int,
    trials: int,
    antes: tuple[int, ...],
    jobs: int | None,
    settings: dict[str, object],
    seed: int | None,
    limits: Limits,
) -> Iterator[Found]:
    """See how often a bot turns a stake into a goal before it goes broke.

    GAME is one that is played for chips against the dealer; BOT is the name of a house bot or a
    FILE.py.

    A trial that the bot loses by an offence counts as not reached, and the exit status is then 1.

    With --bot instead of BOT the bot is a process, under the limits below and a referee, as in
    a competition: its first offence puts it out, and only the trials so far count. It is started
    once, or with --jobs N as N processes that play side by side. The same cards cannot be dealt
    again then.
    """
    lab_runs.check(commands, seed, limits)
    if len(commands) + (bot is not None) != 1:
        raise UsageError("expected one bot, as BOT or with --bot")
    if bot is None and antes:
        raise UsageError("expected no --ante with --bot: the command decides what it antes")
    seed = None if bot is None else options.fresh_seed(seed)
    attempt = Attempt(game, stake=stake, goal=goal, settings=settings, seed=seed)
    wanted = antes or (None,)
    done = Trials()
    bots = lab_runs.guests(game, (), commands) if commands else ()
    name = bot or bots[0].name
    title = f"{name}: {stake:,} to {goal:,}"
    bar = lab_runs.Bar(title, trials * len(wanted), "trial", "--trials")
    arguments = [{} if ante is None else {"ante": ante} for ante in wanted]
    copies = min(trials, jobs or 1)  # a command may be heavy, or unable to run twice
    try:
        lab_runs.play(
            attempt,
            attempt.parts(len(wanted), trials, at_once=1 if bot is None else None),
            *(done.add, bar),
            seed=seed,
            makers=lambda: [entrant(game, name, chosen) for chosen in arguments],
            bots=bots,
            limits=limits,
            copies=copies,
            jobs=copies if bot is None else jobs,
        )
    except ArenaError as error:
        if bot is None and copies > 1 and os.strerror(errno.EMFILE) in str(error):
            raise ArenaError(f"{error}; expected fewer --jobs than {copies:,}") from None
        raise
    results = [done[bot] for bot in range(len(wanted))]
    yield _document(game, name, wanted, results, seed), _lines(game, name, wanted, results, seed)
    for result in results:
        if (offence := result.offence) is not None:
            if bot is None:
                raise output.Eliminated(lab_runs.out(name, offence))
            raise output.Eliminated(
                f"{bot} offended in {result.offences:,} of {output.plural(trials, 'trial')}, "
                f"first: {offence.kind}: {offence.text}"
            )


def _document(
    game: Game, bot: str, antes: Sequence[int | None], results: Sequence[Ruin], seed: int | None
) -> _Tried:
    first = results[0]
    rows = [
        _RuinByAnte(
            ante=ante,
            reached=result.wins,
            broke=result.broke,
            undecided=result.undecided,
            offences=result.offences,
            share=result.share,
            standard_error=result.standard_error,
            **output.interval_fields(result.interval),
        )
        for ante, result in zip(antes, results, strict=True)
    ]
    return _Tried(game.name, bot, first.stake, first.goal, first.trials, seed, rows)


def _lines(
    game: Game, bot: str, antes: Sequence[int | None], results: Sequence[Ruin], seed: int | None
) -> output.Lines:
    first = results[0]
    title = (
        f"{game.vocabulary.title}: {bot}, from {first.stake:,} to {first.goal:,}, "
        f"{output.plural(first.trials, 'trial')}{lab_runs.seed_shown(seed)}"
    )
    columns: list[output.Column] = [
        ("reached the goal", "wins"),
        ("%", _percent),
        ("went broke", "broke"),
    ]
    if antes[0] is not None:
        columns.insert(0, ("ante", lambda result: antes[result.bot]))
    if any(result.undecided for result in results):
        columns.append("undecided")
    if any(result.offences for result in results):
        columns.append(("offended", "offences"))
    yield output.table_of(title, results, *columns)
    yield output.interval_note([result.interval for result in results], "trial")


def _percent(result: Ruin) -> str:
    share = f"{100 * result.share:.2f}"
    return output.with_interval(share, result.interval.scaled(100), "{:.2f}".format)
