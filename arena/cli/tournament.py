"""`arena tournament`: plays a competition here and now, between bots that it launches."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from arena.cli import Interrupted
from arena.cli import _competition_report as report
from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._bus_options import no_bus_options
from arena.cli._launched_bots import BotNotices
from arena.cli._limit_options import LimitsCommand, limits_options
from arena.cli._results import Found, result_command
from arena.cli._signals import stops_at_sigterm
from arena.competitions.bot_supervisor import program_of
from arena.competitions.planned_run import PlannedRun, plan_for
from arena.formats.formats import check_form
from arena.formats.spec import HOUSE_TABLES, Form, Plan, RelaunchSpec
from arena.games.rules import Game
from arena.sandbox.bot_spec import BotSpec, named, unused
from arena.sandbox.command import Program, strategy_program, views
from arena.storage.models import CompetitionReport
from protocol.errors import UsageError
from protocol.messages import Limits
from protocol.strategy import find

if TYPE_CHECKING:
    from arena.competitions.competition import Competition
    from arena.competitions.live_arena import LiveArena
    from arena.storage.store import Store

__all__ = ["command"]

_NAME = "tournament"
_FORMS = [form.value for form in Form if form is not Form.LADDER]  # which has no end


@result_command(_NAME, cls=LimitsCommand, prints=CompetitionReport)
@click.argument("form", metavar="FORMAT", type=click.Choice(_FORMS))
@options.game_argument
@click.argument("bots", nargs=-1, metavar="[BOT]...")
@options.bot_option
@click.option(
    "--matches",
    type=click.IntRange(1, 100_000),
    default=1,
    show_default=True,
    help="How often each two meet, or each bot the dealer.",
)
@click.option(
    "--split",
    type=click.IntRange(1, 100_000),
    default=1,
    metavar="N",
    help="Play every match in N parts, the bots reset before each.",
)
@click.option(
    "--with-itself",
    is_flag=True,
    help="In a round robin every bot also meets another instance of itself.",
)
@click.option(
    "--forgive",
    type=click.IntRange(0, 100_000),
    default=0,
    metavar="N",
    help="The first N times that a bot crashes, hangs or leaves "
    "cost it only the matches that this ends.",
)
@click.option(
    "--team",
    "teams",
    multiple=True,
    metavar="BOT=TEAM",
    help="In an elimination members of one team share no table while that can be avoided.",
)
@click.option(
    "--db",
    metavar="FILE|URL",
    help="Keep the results there; the same command goes on with what was interrupted. "
    "Without it they are thrown away.",
)
@options.log_option
@no_bus_options
@options.set_option
@limits_options
def command(
    form: str,
    game: Game,
    bots: tuple[str, ...],
    commands: tuple[BotSpec, ...],
    matches: int,
    split: int,
    with_itself: bool,
    forgive: int,
    teams: tuple[str, ...],
    db: str | None,
    log_file: str | None,
    settings: dict[str, object],
    limits: Limits,
) -> Iterator[Found]:
    """Play a round_robin, an elimination or a league of GAME between BOTs and those of --bot.

    BOT is a house bot or a file, as in `arena play`; listed several times, it plays as that many
    bots. All of them are processes of their own, launched, limited and refereed as by `arena
    serve`.

    The exit status is 1 if a bot was eliminated.
    """
    check_form(game, Form(form))
    entrants = _entrants(game, [*map(options.bot_file, bots)], commands, limits)
    run = PlannedRun(
        name=_NAME,
        game=game.name,
        form=Form(form),
        least=1,
        matches=matches,
        split=split,
        with_itself=with_itself,
        forgive=forgive,
        settings=settings,
    )
    players = tuple(bot.name for bot in entrants)
    plan = plan_for(run, limits, {}, players, _teams(teams, players), bots=entrants)
    done = _run(plan, entrants, db, log_file)
    yield done, report.lines_of(done)
    out = [f"{verdict.bot} ({verdict.kind})" for verdict in done.verdicts if not verdict.forgiven]
    if out:
        raise output.Eliminated(f"eliminated: {', '.join(out)}")


def _run(
    plan: Plan, entrants: Sequence[RelaunchSpec], db: str | None, log_file: str | None
) -> CompetitionReport:
    """Play the competition; Ctrl-C or SIGTERM stops all bots and raises `Interrupted`."""
    from arena.storage.store import Store

    with contextlib.ExitStack() as stack:
        if db is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            where: str | Path = folder / "tournament.db"
        else:
            where = options.database(db)
        for bot in entrants:
            views(program_of(bot), options.file_of(where))
        store = stack.enter_context(Store(where, exclusive=True))
        try:
            return asyncio.run(_play(store, plan, log_file))
        except (KeyboardInterrupt, asyncio.CancelledError):
            kept = "with --db it could be gone on with"
            if db is not None:
                kept = f"the same command goes on from there, {options.shown(where)}"
            raise Interrupted(f"interrupted, all bots are stopped; {kept}") from None


def _entrants(
    game: Game, bots: Sequence[str], commands: Sequence[BotSpec], limits: Limits
) -> tuple[RelaunchSpec, ...]:
    """Return the named bots, then the commands, each with a name of its own.

    Raises `UnknownBot` if one cannot be loaded, `UsageError` for no bot or a name that is taken.
    """
    entrants: list[RelaunchSpec] = []
    taken: set[str] = set()
    tables = min(HOUSE_TABLES, limits.tables)
    for bot in bots:
        find(game.name, bot)
        is_file = bot.endswith(".py")
        name = unused(Path(bot).stem if is_file else bot, taken)
        taken.add(name)
        if is_file:
            entrants.append(_relaunched(name, strategy_program(bot, name=name, tables=tables)))
        else:
            entrants.append(RelaunchSpec(name=name, house=bot, tables=tables))
    for entry in named(commands):
        assert entry.name is not None, "`named` has seen to that"
        if entry.name in taken:
            raise UsageError(f"expected every bot by another name, got {entry.name!r} twice")
        entrants.append(_relaunched(entry.name, entry.program))
    if not entrants:
        raise UsageError("expected bots to play, by name or with --bot, got none")
    return tuple(entrants)


def _relaunched(name: str, program: Program) -> RelaunchSpec:
    folder = None if program.folder is None else str(program.folder)
    return RelaunchSpec(name=name, words=program.words, stdio=program.stdio, folder=folder)


def _teams(texts: Sequence[str], players: Sequence[str]) -> Mapping[str, str]:
    teams = {}
    for text in texts:
        name, equals, team = text.partition("=")
        if not equals or not team or name not in players:
            known = ", ".join(players)
            raise UsageError(f"expected --team BOT=TEAM with one of {known}, got {text!r}")
        teams[name] = team
    return teams


async def _play(store: Store, plan: Plan, log_file: str | None) -> CompetitionReport:
    from arena.competitions.live_arena import LiveArena

    stops_at_sigterm()
    with report.watch() as board, report.match_log(log_file) as log:
        notices = BotNotices(board, log)
        async with LiveArena(store, limits=plan.limits, listener=notices) as arena:
            competition = _started(arena, plan, notices)
            board.follow(competition.title, competition)
            done = await arena.play(competition)
            await arena.storage.written()
            return msgspec.structs.replace(done, is_written=True)


def _started(arena: LiveArena, plan: Plan, notices: BotNotices) -> Competition:
    """Resume an unfinished competition with the same plan, or start a new one."""
    for row in arena.unfinished():
        if plan == msgspec.structs.replace(
            row.plan, seed=plan.seed, house=plan.house, bots=plan.bots
        ):
            competition = arena.resume(row)
            notices.told(f"{row.id} goes on: {competition.ledger.played:,} matches played")
            return competition
    return arena.compete(plan)
