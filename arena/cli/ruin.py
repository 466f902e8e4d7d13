"""`arena ruin`: how often a bot turns a stake into a goal before it goes broke (T10)."""

from __future__ import annotations

import click

from arena.cli import _shared as shared
from arena.ruin import Ruin, ruin
from arena.rules import Game
from protocol.strategy import Strategy

__all__ = ["command"]

_CHIPS = click.IntRange(min=1)


@click.command(name="ruin")
@shared.game_argument
@click.argument("bot")
@click.option(
    "--stake", type=_CHIPS, required=True, metavar="S", help="Start with S chips."
)
@click.option(
    "--goal", type=_CHIPS, required=True, metavar="G", help="Stop with G chips or more."
)
@click.option(
    "--trials",
    type=_CHIPS,
    default=1000,
    show_default=True,
    metavar="N",
    help="How often to try.",
)
@click.option(
    "--ante",
    type=_CHIPS,
    metavar="A",
    help="Make the bot ante A: its class is called with ante=A.",
)
@shared.set_option
@shared.seed_option
@shared.json_option
def command(
    game: Game,
    bot: str,
    stake: int,
    goal: int,
    trials: int,
    ante: int | None,
    settings: dict[str, object],
    seed: int | None,
    as_json: bool,
) -> None:
    """See how often a bot turns a stake into a goal before it goes broke.

    GAME is one against the dealer, three_card_poker or blackjack; BOT is the name of a house bot or a FILE.py. ± is one
    standard error.

    A trial that the bot loses by an offence counts as not reached, and the exit status is then 1.

    --json prints {game, bot, ante, stake, goal, trials, seed, reached, broke, undecided, offences, share, standard_error}.
    """
    seed = shared.fresh_seed(seed)
    with (
        shared.stdout_for_results(),
        shared.progress(f"{bot}: {stake:,} to {goal:,}", trials) as progress,
    ):
        entrant = shared.entrant(game, bot, {} if ante is None else {"ante": ante})

        def next_trial() -> Strategy:
            progress.tick()
            return entrant.make(f"{seed}:{progress.done}")

        result = ruin(
            game.name,
            next_trial,
            stake=stake,
            goal=goal,
            trials=trials,
            seed=seed,
            settings=settings,
        )
    if as_json:
        shared.print_json(
            {
                "game": game.name,
                "bot": bot,
                "ante": ante,
                "stake": stake,
                "goal": goal,
                "trials": trials,
                "seed": seed,
                "reached": result.wins,
                "broke": result.broke,
                "undecided": result.undecided,
                "offences": result.offences,
                "share": result.share,
                "standard_error": result.standard_error,
            }
        )
    else:
        _show(game, bot, result, ante, seed)
    if result.first_offence is not None:
        offence = result.first_offence
        raise shared.Eliminated(
            f"{bot} offended in {result.offences:,} of {shared.plural(trials, 'trial')}, "
            f"first: {offence.kind}: {offence.text}"
        )


def _show(game: Game, bot: str, result: Ruin, ante: int | None, seed: int) -> None:
    from rich.table import Table

    who = bot if ante is None else f"{bot} with an ante of {ante:,}"
    title = (
        f"{game.vocabulary.title}: {who}, from {result.stake:,} to {result.goal:,}, "
        f"{shared.plural(result.trials, 'trial')}, seed {seed}"
    )
    table = Table("outcome")
    table.add_column("trials", justify="right")
    table.add_column("%", justify="right")
    share = shared.with_error(
        f"{100 * result.share:.2f}", 100 * result.standard_error, 2
    )
    table.add_row("reached the goal", f"{result.wins:,}", share)
    for outcome, count in (
        ("went broke", result.broke),
        ("undecided", result.undecided),
        ("offended", result.offences),
    ):
        if count or outcome == "went broke":
            table.add_row(outcome, f"{count:,}", f"{100 * count / result.trials:.2f}")
    shared.print_table(title, table)
