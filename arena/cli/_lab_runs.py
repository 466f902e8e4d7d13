"""What `arena play`, `cross`, `ruin` and `replay --bot` share: what is played, by objects in this process or by processes, and who is out.

As soon as one bot is given by its command line, all bots of that command are processes. The machinery for that is imported then and not
before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from arena.cli import Interrupted
from arena.cli import _output as output
from arena.cli._signals import stops_at_sigterm
from arena.engine.rules import Game
from arena.games import competition_settings
from arena.lab.in_process import entrant, sittings
from arena.lab.series import Offence, Sitting, unit
from arena.sandbox.bot_spec import BotSpec, named
from arena.sandbox.command import Program
from protocol.errors import UsageError
from protocol.messages import Limits
from protocol.vocabulary import Settings

if TYPE_CHECKING:
    from arena.lab.bot_pool import PoolBot

__all__ = [
    "FEWER",
    "SeriesPlan",
    "check",
    "guests",
    "in_process",
    "launched",
    "offence_document",
    "out",
    "plan",
    "run",
    "seed_shown",
]

Result = TypeVar("Result")

FEWER = "--games or --hands"


class SeriesPlan(msgspec.Struct, frozen=True):
    """What is to be played: how many matches, and by which settings."""

    game: Game
    matches: int
    settings: Settings

    @property
    def units(self) -> int:
        """How many hands, games or matches one table will play at most."""
        per_match = {"hand": "hands", "game": "games"}.get(unit(self.game))
        return self.matches * (getattr(self.settings, per_match) if per_match else 1)

    def bar(self, tables: int) -> tuple[str, int, str]:
        """For a progress bar: its title, how many units so many tables play at most, and what one is called."""
        return self.game.vocabulary.title, self.units * tables, unit(self.game)

    def score(self, value: float | None, digits: int = 0) -> str:
        """A score, or the mean of several, for people; games won need no sign."""
        if self.game.name != "gin_rummy" or value is None:
            return output.signed(value, digits)
        return f"{value:,.{digits}f}"

    @property
    def title(self) -> str:
        """The game and how much of it, for people."""
        what = unit(self.game)
        text = f"{self.game.vocabulary.title}, {output.plural(self.matches, 'match')}"
        return text if what == "match" else f"{text}, {output.plural(self.units, what)}"


def plan(
    game: Game,
    *,
    games: int | None,
    hands: int | None,
    settings: Mapping[str, object],
    matches: int = 1,
    defaults: Mapping[str, object] | None = None,
    competition: bool = False,
) -> SeriesPlan:
    """What `--games`, `--hands` and `--set` ask for together.

    Args:
        game: what is played.
        games: the option.
        hands: the option.
        settings: the options `--set`.
        matches: how many there are if `--games` does not say.
        defaults: settings that differ from the rulebook's unless an option gives them.
        competition: whether the rulebook's are those of a competition (B14, K3).

    Raises:
        UsageError: they contradict each other or do not suit the game.
        BadSettings: a setting that is unknown or out of its range.
    """
    known = game.vocabulary.settings.__struct_fields__
    chosen: dict[str, object] = {}
    if hands is not None:
        if "hands" not in known:
            raise UsageError(f"a match of {game.name} has no --hands; expected --games")
        chosen["hands"] = hands
    if games is not None and "games" in known:
        chosen["games"] = games
    elif games is not None:
        matches = games
    for name in chosen.keys() & settings.keys():
        raise UsageError(f"expected --{name} or --set {name}=…, got both")
    asked = {**(defaults or {}), **settings, **chosen}
    if competition:
        return SeriesPlan(game, matches, competition_settings(game, asked))
    return SeriesPlan(game, matches, game.vocabulary.read_settings(asked))


def check(entries: Sequence[BotSpec], seed: int | None, limits: Limits) -> None:
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


def guests(game: Game, bots: Sequence[str], entries: Sequence[BotSpec]) -> tuple[PoolBot, ...]:
    """Those that take part as processes: the bots that were named, then the commands, each under a name of its own.

    Raises:
        UnknownBot: a named one is not there, or cannot be loaded.
        UsageError: a command was given a name that another bot has.
    """
    from arena.lab.bot_pool import PoolBot

    with output.stdout_for_results():
        for bot in bots:
            entrant(game, bot)
    nothing = Program(())
    taken = [BotSpec(nothing, stem) for stem in dict.fromkeys(Path(b).stem for b in bots)]
    commands = named([*taken, *entries])[len(taken) :]
    return (
        *(PoolBot(bot) for bot in bots),
        *(PoolBot(entry.name or "", entry.program) for entry in commands),
    )


def in_process(
    planned: SeriesPlan, bots: Sequence[str], seeds: Mapping[tuple[int, ...], int], seed: int
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
        output.stdout_for_results(),
        output.progress(*planned.bar(len(seeds)), seed=seed, less=FEWER) as progress,
    ):
        return sittings(
            game,
            [entrant(game, bot) for bot in bots],
            list(seeds),
            seeds=seeds.values(),
            matches=planned.matches,
            settings=planned.settings,
            tick=progress.tick,
        )


def launched(
    planned: SeriesPlan,
    bots: Sequence[str],
    commands: Sequence[BotSpec],
    tables: Sequence[tuple[int, ...]],
    limits: Limits,
) -> tuple[tuple[str, ...], tuple[Sitting, ...]]:
    """Let the bots and those of the commands play at tables as processes: what they are called, and what they came to.

    Raises:
        Interrupted: Ctrl-C; all bots are stopped by then.
    """
    from arena.lab.launched import sittings

    game = planned.game
    processes = guests(game, bots, commands)
    played = run(
        lambda progress: sittings(
            game,
            processes,
            tables,
            matches=planned.matches,
            settings=planned.settings,
            limits=limits,
            tick=progress.tick,
        ),
        *planned.bar(len(tables)),
        FEWER,
    )
    return tuple(bot.name for bot in processes), played


def run(
    playing: Callable[[output.ProgressCount], Coroutine[Any, Any, Result]],
    what: str,
    total: int,
    noun: str,
    less: str,
) -> Result:
    """Let processes play, with a progress bar; the arguments are those of `output.progress`.

    Raises:
        Interrupted: Ctrl-C; all bots are stopped by then.
    """
    # No seed begins the same again, and Ctrl-C does not get as far as to say so.
    with output.progress(what, total, noun, seed=0, less=less) as progress:
        try:
            return asyncio.run(_until_stopped(playing(progress)))
        except (KeyboardInterrupt, asyncio.CancelledError):
            raise Interrupted(
                f"interrupted after {progress.done:,} of {output.plural(total, noun)}, all bots are stopped; "
                f"fewer {less} take less time"
            ) from None


async def _until_stopped(playing: Coroutine[Any, Any, Result]) -> Result:
    """Play; SIGTERM stops it like Ctrl-C, which asyncio sees to."""
    stops_at_sigterm()
    return await playing


def out(name: str, offence: Offence) -> str:
    """Who is out, why, and what can be done about it; what its process wrote last goes to stderr before."""
    output.print_stderr(name, offence.stderr)
    text = eliminated(name, offence)
    return f"{text}; {offence.advice}" if offence.advice else text


def eliminated(name: str, offence: Offence) -> str:
    """Who is out and why, in a sentence."""
    return f"{name} is eliminated in match {offence.match}: {offence.kind}: {offence.text}"


def offence_document(offence: Offence | None, names: Sequence[str]) -> dict[str, object] | None:
    """An offence for a JSON document."""
    if offence is None:
        return None
    return {
        "bot": offence.bot,
        "name": names[offence.bot],
        "kind": offence.kind,
        "text": offence.text,
        "match": offence.match,
    }


def seed_shown(seed: int | None) -> str:
    """What a title says of the seed, if there is one."""
    return "" if seed is None else f", seed {seed}"
