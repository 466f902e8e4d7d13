"""`arena serve`: runs an arena that bots connect to, and that launches bots."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import click
import msgspec

from arena.cli import _options as options
from arena.cli._bus_options import BusAddress, bus_options
from arena.cli._limit_options import LimitsCommand, limits_options
from arena.cli._results import result_command
from arena.cli._signals import Stop
from arena.competitions.config import Config, ServeSection, example, read_config
from arena.competitions.elsewhere import secret_files
from arena.games.catalogue import GAMES, competition_settings, game_named
from arena.sandbox.bot_spec import BotSpec, named
from protocol.errors import UsageError
from protocol.messages import Limits

__all__ = ["command"]


def _read_config(ctx: click.Context, _param: object, path: Path | None) -> Config:
    """Read the configuration file; its settings become defaults, which options override."""
    if path is None:
        return Config()
    config = read_config(path)
    tables = {name: msgspec.structs.asdict(getattr(config, name)) for name in ("serve", "limits")}
    bus = {"bus": config.bus.url, "bus_key": config.bus.key, "bus_ca": config.bus.ca}
    ctx.default_map = {**tables["serve"], **bus, **tables["limits"]}
    return config


def _print_example(ctx: click.Context, _param: object, wanted: bool) -> None:
    if wanted:
        click.echo(example(), nl=False)
        ctx.exit()


@result_command("serve", cls=LimitsCommand, prints="arena.storage.models:CompetitionReport")
@click.argument("games", nargs=-1, metavar="[GAME]...")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    is_eager=True,
    callback=_read_config,
    help="Settings in TOML: the tables [serve], [limits], [bus], [games.GAME], [submissions], "
    "[[bot]] and [[run]]; options win over them.",
)
@options.serve_options
@options.bot_option
@bus_options
@click.option(
    "--submissions-without-isolation",
    "without_isolation",
    is_flag=True,
    help="Take submissions though this machine cannot isolate them: every student could then read "
    "the database. Only where nobody else can connect.",
)
@click.option(
    "--print-example",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_example,
    help="Print a file for --config, for a whole course, and exit.",
)
@options.set_option
@limits_options
@click.pass_obj
def command(
    stop: Stop | None,
    games: tuple[str, ...],
    config: Config,
    section: ServeSection,
    commands: tuple[BotSpec, ...],
    bus: BusAddress | None,
    without_isolation: bool,
    settings: dict[str, object],
    limits: Limits,
) -> None:
    """Run an arena, for all games or for those named.

    With [[run]] tables in the file of --config their competitions are played, each at its time.
    Without, or for games that are named: as soon as enough bots that play a game are connected,
    they play its competition: a league in a game for one, a round robin in one for two, an
    elimination in one for more. The next one starts when another bot has come. When a competition
    is over its standings are printed.

    With a table [submissions] students can hand bots in (`arena submit`, or on the page).

    With a --bus other machines, by `arena host`, run bots that the arena launches or that were
    handed in. The arena referees every match, and runs here what no host can run.

    Every match is in the database when it is over. Ctrl-C stops the arena, and so do SIGTERM and
    SIGHUP, with status 0; started again with the same database it goes on where it was, also after
    a power cut.

    With --json there is a document for each competition, one a line.
    """
    from arena.cli._serving import ServePlan, certificate_of, check_proxies, check_safety, run
    from arena.competitions.scheduler import OpenGame
    from arena.formats.spec import plan_of

    chosen = tuple(game_named(name) for name in games)
    if not chosen and not config.runs:
        chosen = tuple(GAMES.values())
    if settings and len(chosen) != 1:
        raise UsageError("expected one GAME with --set, as settings belong to a game")
    config = msgspec.structs.replace(config, serve=section, limits=limits)
    tls = certificate_of(section)
    files = (section.tls_key, None if section.log == "-" else section.log)
    hidden = (*config.files, *(Path(file) for file in files if file), *secret_files(bus))
    check_proxies(section)
    unsafe = ""
    if config.submissions is not None:
        unsafe = check_safety(config, without_isolation=without_isolation)
    elif without_isolation:
        raise UsageError("expected a table [submissions] in the file of --config")
    open_games = []
    for game in chosen:
        own = competition_settings(game, {**config.games.get(game.name, {}), **settings})
        itself, count = game.meets_itself, section.matches
        planned = plan_of(game, own, (), matches=count, with_itself=itself, limits=limits)
        open_games.append(OpenGame(planned, section.players or game.seats))
    playable = {None, *(run.game for run in config.runs), *(game.name for game in chosen)}
    database = () if "://" in section.db else (Path(section.db),)
    bots = _named((*config.bots, *commands), playable, (*database, *hidden))
    plan = ServePlan(config, tuple(open_games), bots, hidden, unsafe, bus, tls)
    run(plan, stop or Stop())


def _named(
    bots: Sequence[BotSpec], playable: Collection[str | None], hidden: Sequence[Path]
) -> tuple[BotSpec, ...]:
    """Return the bots that play one of the games, each with a name of its own.

    Raises `UsageError` if two have the same name, or a command can never work on this machine.
    """
    from arena.sandbox.command import views

    ours = named(bot for bot in bots if bot.game in playable)
    for bot in ours:
        try:
            views(bot.program, hidden)
        except UsageError as error:
            raise UsageError(f"{bot.name}: {error}") from None
    return ours
