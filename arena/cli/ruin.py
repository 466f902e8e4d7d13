"""`arena ruin`: counts how often a bot turns a stake into a goal before it goes broke (T10)."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

import click

from arena.cli import _lab_runs as lab_runs
from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._limit_options import LimitsCommand, limits_options
from arena.engine.rules import Game
from arena.lab.in_process import entrant
from arena.lab.ruin import Attempt, Ruin, ruin
from arena.sandbox.bot_spec import BotSpec
from arena.sandbox.worker_pool import usable_cores
from protocol.errors import ArenaError, UsageError
from protocol.messages import Limits

__all__ = ["command"]

_CHIPS = click.IntRange(min=1)


@click.command(name="ruin", cls=LimitsCommand)
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
@options.json_option
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
    as_json: bool,
    limits: Limits,
) -> None:
    """See how often a bot turns a stake into a goal before it goes broke.

    GAME is one that is played for chips against the dealer; BOT is the name of a house bot or a
    FILE.py.

    A trial that the bot loses by an offence counts as not reached, and the exit status is then 1.

    With --bot instead of BOT the bot is a process, under the limits below and a referee, as in
    a competition: its first offence puts it out, and only the trials so far count. It is started
    once, or with --jobs N as N processes that play side by side. The same cards cannot be dealt
    again then.

    --json prints {game, bot, stake, goal, trials, seed, results: [{ante, reached, broke, undecided,
    offences, share, standard_error, interval, level, method}]}, a result per ante; `seed` is null
    with --bot. The standard error is one; `interval` is [low, high] of the share.
    """
    lab_runs.check(commands, seed, limits)
    if len(commands) + (bot is not None) != 1:
        raise UsageError("expected one bot, as BOT or with --bot")
    if bot is None:
        if antes:
            raise UsageError("expected no --ante with --bot: the command decides what it antes")
        attempt = Attempt.of(game, stake=stake, goal=goal, settings=settings)
        _try_launched(attempt, commands, trials, jobs, limits, as_json)
        return
    seed = options.fresh_seed(seed)
    wanted = antes or (None,)
    results = _try(game, bot, wanted, stake, goal, trials, jobs, settings, seed)
    _print(game, bot, wanted, results, seed, as_json)
    for result in results:
        if (offence := result.first_offence) is not None:
            raise output.Eliminated(
                f"{bot} offended in {result.offences:,} of {output.plural(trials, 'trial')}, "
                f"first: {offence.kind}: {offence.text}"
            )


def _try(
    game: Game,
    bot: str,
    antes: Sequence[int | None],
    stake: int,
    goal: int,
    trials: int,
    jobs: int | None,
    settings: dict[str, object],
    seed: int,
) -> list[Ruin]:
    title, total = f"{bot}: {stake:,} to {goal:,}", trials * len(antes)
    with (
        output.stdout_for_results(),
        output.progress(title, total, "trial", seed=seed, less="--trials") as progress,
    ):
        arguments = [{} if ante is None else {"ante": ante} for ante in antes]
        return ruin(
            game.name,
            [entrant(game, bot, chosen).make for chosen in arguments],
            stake=stake,
            goal=goal,
            trials=trials,
            seed=seed,
            settings=settings,
            report=progress.tick,
            jobs=jobs or usable_cores(),
        )


def _try_launched(
    attempt: Attempt,
    commands: tuple[BotSpec, ...],
    trials: int,
    jobs: int | None,
    limits: Limits,
    as_json: bool,
) -> None:
    from arena.lab.launched import ruin

    [bot] = lab_runs.guests(attempt.game, (), commands)
    copies = min(trials, jobs or 1)  # a command may be heavy, or unable to run twice
    try:
        result, offence = lab_runs.run(
            lambda progress: ruin(
                attempt, bot, trials=trials, limits=limits, tick=progress.tick, jobs=copies
            ),
            f"{bot.name}: {attempt.stake:,} to {attempt.goal:,}",
            trials,
            "trial",
            "--trials",
        )
    except ArenaError as error:
        if copies > 1 and os.strerror(errno.EMFILE) in str(error):
            raise ArenaError(f"{error}; expected fewer --jobs than {copies:,}") from None
        raise
    _print(attempt.game, bot.name, (None,), [result], None, as_json)
    if offence is not None:
        raise output.Eliminated(lab_runs.out(bot.name, offence))


def _print(
    game: Game,
    bot: str,
    antes: Sequence[int | None],
    results: Sequence[Ruin],
    seed: int | None,
    as_json: bool,
) -> None:
    if not as_json:
        _show(game, bot, antes, results, seed)
        return
    first = results[0]
    rows = [
        {
            "ante": ante,
            "reached": result.wins,
            "broke": result.broke,
            "undecided": result.undecided,
            "offences": result.offences,
            "share": result.share,
            "standard_error": result.standard_error,
            **output.interval_fields(result.interval),
        }
        for ante, result in zip(antes, results, strict=True)
    ]
    document = {"game": game.name, "bot": bot, "stake": first.stake, "goal": first.goal}
    output.print_json({**document, "trials": first.trials, "seed": seed, "results": rows})


def _show(
    game: Game, bot: str, antes: Sequence[int | None], results: Sequence[Ruin], seed: int | None
) -> None:
    first = results[0]
    title = (
        f"{game.vocabulary.title}: {bot}, from {first.stake:,} to {first.goal:,}, "
        f"{output.plural(first.trials, 'trial')}{lab_runs.seed_shown(seed)}"
    )
    columns: dict[str, list[str]] = {}
    if antes[0] is not None:
        columns["ante"] = [f"{ante:,}" for ante in antes]
    columns["reached the goal"] = [f"{result.wins:,}" for result in results]
    columns["%"] = [
        output.with_interval(
            f"{100 * result.share:.2f}", result.interval.scaled(100), "{:.2f}".format
        )
        for result in results
    ]
    columns["went broke"] = [f"{result.broke:,}" for result in results]
    if any(result.undecided for result in results):
        columns["undecided"] = [f"{result.undecided:,}" for result in results]
    if any(result.offences for result in results):
        columns["offended"] = [f"{result.offences:,}" for result in results]
    table = output.new_table(*columns)
    for cells in zip(*columns.values(), strict=True):
        table.add_row(*cells)
    output.print_table(title, table)
    click.echo(output.interval_note([result.interval for result in results], "trial"))
