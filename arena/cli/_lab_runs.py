"""What `arena play`, `cross` and `ruin` share when a bot is given by its command line: who takes part, Ctrl-C, and what is said of who is out.

As soon as there is one such bot, all bots of that command are processes. The machinery for that is imported then and not before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from arena.cli import Interrupted
from arena.cli import _shared as shared
from arena.cli._signals import stops_at_sigterm
from arena.engine.rules import Game
from arena.lab.in_process import sittings
from arena.lab.series import Offence, Sitting, unit
from arena.sandbox.bot_spec import Entry, named
from arena.sandbox.command import Program
from protocol.errors import UsageError, one_line
from protocol.messages import Limits

if TYPE_CHECKING:
    from arena.lab.bot_pool import Guest

__all__ = [
    "check",
    "guests",
    "in_process",
    "launched",
    "out",
    "run",
    "seed_shown",
]

Result = TypeVar("Result")

_TAIL_LINES = 20  # a traceback, and some of what was printed before


def check(entries: Sequence[Entry], seed: int | None, limits: Limits) -> None:
    """See that the options suit the bots.

    Raises:
        UsageError: `--seed` with `--bot`, or limits without.
    """
    if entries and seed is not None:
        raise UsageError(
            "expected no --seed with --bot: the cards come from fresh seeds and nonces, and cannot be drawn again"
        )
    if not entries and limits != Limits():
        raise UsageError(
            "expected limits with --bot only: bots in this process are not held to any"
        )


def guests(
    game: Game, bots: Sequence[str], entries: Sequence[Entry]
) -> tuple[Guest, ...]:
    """Those that take part as processes: the bots that were named, then the commands, each under a name of its own.

    Raises:
        UnknownBot: a named one is not there, or cannot be loaded.
        UsageError: a command was given a name that another bot has.
    """
    from arena.lab.bot_pool import Guest

    with shared.stdout_for_results():
        for bot in bots:
            shared.entrant(game, bot)
    nothing = Program(())
    taken = [Entry(nothing, stem) for stem in dict.fromkeys(Path(b).stem for b in bots)]
    commands = named([*taken, *entries])[len(taken) :]
    return (
        *(Guest(bot) for bot in bots),
        *(Guest(entry.name or "", entry.program) for entry in commands),
    )


def in_process(
    planned: shared.Plan,
    bots: Sequence[str],
    seeds: Mapping[tuple[int, ...], int],
    seed: int,
) -> tuple[Sitting, ...]:
    """Let objects in this process play at tables.

    Args:
        planned: what is played.
        bots: the bots, by house name or file.
        seeds: who sits at each table, as numbers in `bots`, and what its cards are drawn from.
        seed: the one that begins all of it again.

    Raises:
        Interrupted: Ctrl-C.
    """
    game = planned.game
    with (
        shared.stdout_for_results(),
        shared.progress(
            game.vocabulary.title,
            planned.units * len(seeds),
            unit(game),
            seed=seed,
            less=shared.FEWER,
        ) as progress,
    ):
        return sittings(
            game,
            [shared.entrant(game, bot) for bot in bots],
            list(seeds),
            seeds=seeds.values(),
            matches=planned.matches,
            settings=planned.settings,
            tick=progress.tick,
        )


def launched(
    planned: shared.Plan,
    bots: Sequence[str],
    commands: Sequence[Entry],
    tables: Sequence[tuple[int, ...]],
    limits: Limits,
) -> tuple[tuple[str, ...], tuple[Sitting, ...]]:
    """Let the bots and those of the commands play at tables as processes: what they are called, and what they came to.

    Raises:
        Interrupted: Ctrl-C; all bots are stopped by then.
    """
    from arena.lab.launched import sittings

    game = planned.game
    them = guests(game, bots, commands)
    played = run(
        lambda progress: sittings(
            game,
            them,
            tables,
            matches=planned.matches,
            settings=planned.settings,
            limits=limits,
            tick=progress.tick,
        ),
        game.vocabulary.title,
        planned.units * len(tables),
        unit(game),
        shared.FEWER,
    )
    return tuple(guest.name for guest in them), played


def run(
    playing: Callable[[shared.Progress], Coroutine[Any, Any, Result]],
    what: str,
    total: int,
    noun: str,
    less: str,
) -> Result:
    """Let processes play, with a progress bar; the arguments are those of `shared.progress`.

    Raises:
        Interrupted: Ctrl-C; all bots are stopped by then.
    """
    # No seed begins the same again, and Ctrl-C does not get as far as to say so.
    with shared.progress(what, total, noun, seed=0, less=less) as progress:
        try:
            return asyncio.run(_until_stopped(playing(progress)))
        except (KeyboardInterrupt, asyncio.CancelledError):
            raise Interrupted(
                f"interrupted after {progress.done:,} of {shared.plural(total, noun)}, all bots are stopped; "
                f"fewer {less} take less time"
            ) from None


async def _until_stopped(playing: Coroutine[Any, Any, Result]) -> Result:
    """Play; SIGTERM stops it like Ctrl-C, which asyncio sees to."""
    stops_at_sigterm()
    return await playing


def out(name: str, offence: Offence) -> str:
    """Who is out, why, and what can be done about it; what its process wrote last goes to stderr before."""
    for line in offence.stderr.splitlines()[-_TAIL_LINES:]:
        click.echo(one_line(f"{name}: {line.expandtabs(4)}", 1000), err=True)
    text = shared.eliminated(name, offence)
    return f"{text}; {offence.advice}" if offence.advice else text


def seed_shown(seed: int | None) -> str:
    """What a title says of the seed, if there is one."""
    return "" if seed is None else f", seed {seed}"
