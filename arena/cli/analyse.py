"""`arena analyse`: finds out how good a bot is, with exact figures where possible."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from arena.cli import _analysis_report as report
from arena.cli import _lab_runs as lab_runs
from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._limit_options import LimitsCommand, limits_options
from arena.cli._results import Found, result_command
from arena.cli._signals import stops_at_sigterm
from arena.games.analysis import Analyser, Analysis, ProbedMatch
from arena.games.catalogue import competition_settings
from arena.games.rules import Game
from arena.lab.analyse import begun, watched
from arena.lab.file_versions import bot_path, entrants_of, is_file
from arena.lab.probe import OnMatch, ProbeFailed, analyse_here
from arena.sandbox.bot_spec import BotSpec, named, read_entry
from protocol.errors import NoAnalysis, UnknownBot, UsageError
from protocol.messages import Limits
from protocol.strategy import Strategy, house_bots
from protocol.vocabulary import Settings

__all__ = ["command"]


class _Analysed(msgspec.Struct, frozen=True, kw_only=True):
    """What was found out about a bot.

    Attributes:
        seed: null with --from.
        competition: null without --from.
        matches: how many of the competition there are; null without --from.
    """

    game: str
    bot: str
    against: Sequence[str] = ()
    settings: Any
    seed: int | None = None
    competition: str | None = None
    matches: int | None = None
    analysis: Analysis


@result_command("analyse", cls=LimitsCommand, prints=_Analysed)
@options.game_argument
@click.argument("bot", required=False)
@options.bot_option
@click.option(
    "--against",
    multiple=True,
    metavar="BOT",
    help="Say also what it is worth against this one: the name of a house bot, a FILE.py, "
    "or a COMMAND as --bot takes it. May be repeated.",
)
@click.option(
    "--from",
    "competition",
    metavar="COMPETITION",
    help="Ask nothing, but analyse BOT's answers in this competition: its id, the beginning of "
    "it, or the name of a run for its latest.",
)
@options.db_option("With --from: the database that has it.")
@options.set_option
@options.seed_option
@limits_options
def command(
    game: Game,
    bot: str | None,
    commands: tuple[BotSpec, ...],
    against: tuple[str, ...],
    competition: str | None,
    db: str,
    settings: dict[str, object],
    seed: int | None,
    limits: Limits,
) -> Found:
    """Find out how good a bot is: what it is worth, exactly where that can be said, and where it
    gives something away.

    BOT is the name of a house bot, a FILE.py, or a FILE.py@COMMIT. They are asked made-up questions
    in this process; a bot of --bot is started and asked the same over the arena's own protocol,
    under the limits below, but its computing time is not charged.

    With --from, BOT is a bot that has played in that competition, wherever it ran. It is not asked:
    its recorded answers are analysed. A spot that never came up is not seen, and then there is no
    single value. This is for the instructor, as the database has everything that was hidden.

    In a game without exact values BOT plays against the house bots, and what its mistakes cost is
    estimated. A figure that cannot be found is refused with the reason; if all are refused, the
    exit status is 1.
    It needs numpy and scipy: pip install 'card-arena[analysis]'.
    """
    if competition is not None:
        if bot is None or commands or against or settings or seed is not None or limits != Limits():
            raise UsageError("expected the name of a bot with --from, and --db or --json besides")
        return _watch(game, bot, competition, options.database(db))
    if len(commands) + (bot is not None) != 1:
        raise UsageError("expected one bot: its name, a FILE.py, or a command with --bot")
    asked = commands[0] if bot is None else options.bot_file(bot)
    bots = _named([asked, *(_read(game, other) for other in against)])
    lab_runs.check([other for other in bots if isinstance(other, BotSpec)], None, limits)
    read, seed = competition_settings(game, settings), options.fresh_seed(seed)
    names = [other if isinstance(other, str) else other.name or "" for other in bots]
    analysis = _probed(game, bots, names, read, seed, limits)
    analysed = _Analysed(
        game=game.name, bot=names[0], against=names[1:], settings=read, seed=seed, analysis=analysis
    )
    title = f"{names[0]} in {game.name}, {output.plural(analysis.asked, 'answer')}, seed {seed}"
    return analysed, report.lines_of(analysis, names[0], title)


def _read(game: Game, bot: str) -> str | BotSpec:
    """Read a bot of --against: a house bot or a FILE.py stays text, all else is a command."""
    is_named = re.match(r"[\w-]+=", bot) is not None
    is_path = is_file(bot) and " " not in bot
    if bot in house_bots(game.name, slow=True) or (is_path and not is_named):
        return bot
    # A single word is no command: it is refused later, with the list of house bots.
    return read_entry(bot) if is_named or re.search(r"[\s/]", bot) else bot


def _named(bots: Sequence[str | BotSpec]) -> tuple[str | BotSpec, ...]:
    """Return the same bots, giving each command a name of its own."""
    commands = iter(named(bot for bot in bots if isinstance(bot, BotSpec)))
    return tuple(next(commands) if isinstance(bot, BotSpec) else bot for bot in bots)


def _probed(
    game: Game,
    bots: Sequence[str | BotSpec],
    names: Sequence[str],
    settings: Settings,
    seed: int,
    limits: Limits,
) -> Analysis:
    """Analyse the bots by asking them questions; raises `NoAnalysis` if one fails."""
    with contextlib.ExitStack() as stack:
        progress = stack.enter_context(output.counting(f"asking {names[0]}", "answer"))
        stack.enter_context(output.stdout_for_results())

        def on_match(probed: ProbedMatch) -> None:
            progress.tick(len(probed.decisions))

        here = [bot for bot in bots if isinstance(bot, str)]
        strategies = _strategies(game, here, seed, stack)
        analyser = begun(game, settings, seed, names[1:])
        try:
            if len(strategies) == len(bots):
                return analyse_here(game, analyser, strategies, on_match)
            made = iter(strategies)
            there = [bot if isinstance(bot, BotSpec) else next(made) for bot in bots]
            return _probe_programs(game, analyser, there, limits, on_match)
        except ProbeFailed as failed:
            output.print_stderr(names[failed.bot], failed.stderr)
            raise NoAnalysis(failed.told(game, names[failed.bot])) from None


def _strategies(
    game: Game, here: Sequence[str], seed: int, stack: contextlib.ExitStack
) -> list[Strategy]:
    """Load the bots that play in this process; their files exist until the stack is closed."""
    paths = [stack.enter_context(bot_path(bot)) for bot in here]
    random.seed(seed)  # for bots that draw from the module
    try:
        entrants = entrants_of(game, here, paths)
    except UnknownBot as error:
        if any(path.endswith(".py") for path in paths):
            raise
        elsewhere = "a bot that connects by itself cannot be asked made-up questions; see --from"
        raise UnknownBot(f"{error}; {elsewhere}") from None
    return [entrant.make(f"{seed}:{place}") for place, entrant in enumerate(entrants)]


def _probe_programs(
    game: Game,
    analyser: Analyser,
    bots: Sequence[Strategy | BotSpec],
    limits: Limits,
    on_match: OnMatch,
) -> Analysis:
    from arena.lab.probed_programs import analyse_programs

    async def probe() -> Analysis:
        stops_at_sigterm()
        return await analyse_programs(game, analyser, bots, limits, on_match)

    try:
        return asyncio.run(probe())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _watch(game: Game, bot: str, competition: str, where: str | Path) -> Found:
    """Analyse a bot from its recorded answers in a competition."""
    from arena.results.seat_records import played_by, seat_matches
    from arena.storage.store import Store

    with Store(where, create=False) as store:
        found = store.find(competition)
        if found.plan.game != game.name:
            raise UsageError(f"{found.id} is a competition in {found.plan.game}, not {game.name}")
        settings, total = found.plan.read_settings(), played_by(store, found.id, bot)
        with output.ticking(f"looking at {bot}", total) as tick:
            analysis = watched(game, settings, seat_matches(store, found.id, bot, tick))
    analysed = _Analysed(
        game=game.name,
        bot=bot,
        settings=settings,
        competition=found.id,
        matches=total,
        analysis=analysis,
    )
    what = f"{output.plural(total, 'match')} of {found.id}"
    title = f"{bot} in {game.name}, {output.plural(analysis.asked, 'answer')} in {what}"
    return analysed, report.lines_of(analysis, bot, title)
