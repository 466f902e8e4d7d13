"""The commands that instruct a running arena: `arena status`, `pause`, `resume` and the others.

Each opens a WebSocket, and sends one `instruct` with the instructor's token, which
`arena roster instructor` makes.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from datetime import time as clock_time
from typing import Any

import click
import msgspec

from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._arena_connection import connected_to
from arena.competitions.planned_run import MOST_MATCHES
from arena.formats.spec import Form
from arena.sandbox.bot_spec import some
from arena.strength.figures import SECONDS, time_of
from protocol.codec import Encoding, decode_from_arena, encode
from protocol.errors import ArenaError, ProtocolError, Unreachable, UsageError
from protocol.instructions import TimedVerdict, Unplayed
from protocol.messages import VERSION, Action, Done, Instruct, Progress, Refused

__all__ = ["COMMANDS"]

Send = Callable[..., None]

_TIMEOUT_S = 10.0  # for the answer

_token_option = click.option(
    "--token",
    envvar="ARENA_INSTRUCTOR",
    required=True,
    show_envvar=True,
    help="The instructor's token, as `arena roster instructor` has printed it.",
)


def _instructs(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of all these commands; the command gets `send`, which also prints."""

    @functools.wraps(command)
    def gathered(url: str, token: str, as_json: bool, **given: Any) -> Any:
        return command(functools.partial(_send, url, token, as_json), **given)

    return options.url_option(_token_option(options.json_option(gathered)))


def _send(url: str, token: str, as_json: bool, action: Action, **about: Any) -> None:
    done = _ask(url, Instruct(VERSION, token, action, **about))
    if as_json:
        output.print_json(_document(done, ("hosts", "lost") if action is Action.HOSTS else ()))
    else:
        _show(action, done)


def _document(done: Done, asked: Sequence[str] = ()) -> dict[str, Any]:
    """A `Done` as JSON, without the empty lists that were not asked for."""
    document: dict[str, Any] = msgspec.to_builtins(done)
    for name in ("tokens", "lines", "hosts", "lost", "verdicts"):
        if not document[name] and name not in asked:
            del document[name]
    return document


@click.command(name="status")
@_instructs
def status(send: Send) -> None:
    """Say how far the competitions of a running arena are, and about how much longer they take.

    --json prints {text, competitions: [{competition, run, game, form, state, settled, scheduled,
    left_s, waits_for, reopened}]}, as do the others of an instructor's commands, and `lines` about
    runs that wait for bots, and about competitions that were over and are played on.
    """
    send(Action.STATUS)


@click.command(name="pause")
@click.argument("competition", required=False)
@_instructs
def pause(send: Send, competition: str | None) -> None:
    """Open no new matches in COMPETITION, its id or the name of its run, or in all.

    Matches that are being played go on to their ends, and nobody is absent meanwhile. A paused
    competition stays paused when the arena is started again.
    """
    send(Action.PAUSE, competition=competition)


@click.command(name="resume")
@click.argument("competition", required=False)
@_instructs
def resume(send: Send, competition: str | None) -> None:
    """Go on with COMPETITION, or with all, and with matches that were void three times."""
    send(Action.RESUME, competition=competition)


@click.command(name="stop")
@click.argument("competition", required=False)
@click.option(
    "--unplayed",
    type=click.Choice([each.value for each in Unplayed]),
    help="What becomes of void results that were not played again, if the competition was over "
    "before. `before`: they count as they did; `void`: they stay void.",
)
@_instructs
def stop(send: Send, competition: str | None, unplayed: str | None) -> None:
    """End COMPETITION, or all that are on, for good: what is being played is void, the standings
    stay as they are.

    A competition that was over, and goes on because a match was made void, needs --unplayed. To
    interrupt an arena and go on later, stop the arena itself.
    """
    send(Action.STOP, competition=competition, unplayed=unplayed and Unplayed(unplayed))


def _match_unless_since(ctx: click.Context, param: click.Parameter, what: str | None) -> str | None:
    if what is None and ctx.params.get("since") is None:
        raise click.MissingParameter(ctx=ctx, param=param, param_hint="'MATCH'")
    return what


@click.command(name="void")
@click.argument("what", metavar="[MATCH|COMPETITION]", required=False, callback=_match_unless_since)
@click.option(
    "--since",
    metavar="TIME",
    is_eager=True,
    help="Take back all absences and lost connections since.",
)
@click.option("--until", metavar="TIME", help="The end of that time  [default: now].")
@click.option("--yes", is_flag=True, help="Do not ask.")
@options.url_option
@_token_option
@options.json_option
def void(
    url: str,
    token: str,
    as_json: bool,
    what: str | None,
    since: str | None,
    until: str | None,
    yes: bool,
) -> None:
    """Make MATCH void, and play it again with fresh cards.

    It may be one that is being played, or one that is over: its result is taken back then, and so
    is what it brought about: a bot that was eliminated in it is in again. In an elimination only
    matches of the latest stage can be void. A competition that is finished goes on for it: it waits
    for its bots, and nobody is absent from it. `arena stop --unplayed` ends that.

    With --since, after an outage, the matches of all verdicts `absent` and `disconnect` are made
    void that were given in that time, in COMPETITION or in all. They are listed first. TIME is a
    time of day here, the latest one, as 18:02 or 18:02:30, or a date and time, as 2026-11-29T18:02.

    --json prints of these {text, competitions, verdicts: [{competition, match, bot, kind, at, text,
    refusal}]}, where `refusal` says why a match was not made void.
    """

    def ask(**about: Any) -> Done:
        return _ask(url, Instruct(VERSION, token, Action.VOID, **about))

    if since is not None:
        begin, end = _times(since, until)
        found = ask(competition=what, since=begin, until=end)
        done = _void_all(found, ask, is_sure=yes, as_json=as_json)
    elif until is not None or yes:
        raise UsageError("expected --since with --until and --yes, got a match alone")
    else:
        done = ask(match=what)
    if as_json:
        output.print_json(_document(done))
    else:
        click.echo(done.text)


def _void_all(found: Done, ask: Callable[..., Done], *, is_sure: bool, as_json: bool) -> Done:
    """Make the matches of some verdicts void, one after another, after a question."""
    matches = dict.fromkeys(each.match for each in found.verdicts if not each.refusal)
    count = output.plural(len(matches), "match")
    is_blind = bool(matches) and not is_sure and not sys.stdin.isatty()
    if not as_json and found.verdicts:
        _show_verdicts(found.verdicts)
    elif is_blind:
        output.print_json(_document(found))
    if not matches:
        return msgspec.structs.replace(found, text="nothing to be made void")
    if not is_sure and not output.confirm(f"make {count} void?", "--yes"):
        return msgspec.structs.replace(found, text=f"{count} left as is")
    done, refused = found, dict[str, str]()
    for match in reversed(matches):  # what was drawn by a match is taken back before it
        try:
            done = ask(match=match)
        except Unreachable:
            raise
        except ArenaError as error:
            refused[match] = str(error)
        if not as_json:
            click.echo(refused.get(match, done.text))
    verdicts = (
        msgspec.structs.replace(each, refusal=refused.get(each.match, each.refusal))
        for each in found.verdicts
    )
    text = f"{output.plural(len(matches) - len(refused), 'match')} made void"
    return msgspec.structs.replace(done, text=text, verdicts=tuple(verdicts))


def _times(since: str, until: str | None) -> tuple[float, float | None]:
    """The times of `--since` and `--until`, in Unix seconds."""
    begin = _time(since)
    end = None if until is None else _time(until, begin)
    if end is not None and end < begin:
        shown = [time_of(at, SECONDS) for at in (end, begin)]
        raise UsageError(f"expected --until after --since, got {shown[0]} after {shown[1]}")
    return begin, end


def _time(text: str, after: float | None = None) -> float:
    """Read a date and time of this machine; returns Unix seconds.

    A time of day is the latest one until now, or the next one `after` a moment. It is never
    one of tomorrow that is still to come: 18:02 after 18:04 is a mistake, which the caller reports.
    """
    given = text if ":" in text else ""  # else 18.02 were 18:00 and two hundredths of a second
    with suppress(ValueError):
        return datetime.fromisoformat(given).timestamp()
    now = datetime.now().astimezone()
    near = now if after is None else datetime.fromtimestamp(after).astimezone()
    try:
        moment = datetime.combine(near, clock_time.fromisoformat(given)).astimezone()
    except ValueError:
        raise UsageError(
            f"expected a time such as 18:02 or 2026-11-29T18:02, got {text!r}"
        ) from None
    day = timedelta(days=1)
    if after is None and moment > near:
        moment -= day
    elif after is not None and moment < near and moment + day <= now:
        moment += day
    return moment.timestamp()


@click.command(name="remove")
@click.argument("bot")
@click.option("--competition", help="Its id, or the name of its run; else all.")
@_instructs
def remove(send: Send, bot: str, competition: str | None) -> None:
    """Take BOT out of the competitions that it is in, like an offender.

    In a round robin, a league or a ladder none of its matches counts for anybody any more. A
    competition that is over must be named with --competition. Nobody can be removed from an
    elimination that is over, because its tables were drawn by its results.
    """
    send(Action.REMOVE, competition=competition, bot=bot)


@click.command(name="start")
@click.argument("what")
@click.option(
    "--form",
    type=click.Choice([form.value for form in Form]),
    help="How a game is played [default: as `arena serve` plays it].",
)
@click.option(
    "--matches",
    type=click.IntRange(min=1, max=MOST_MATCHES),
    help="Of a game: how often each two meet, or each bot the dealer.",
)
@options.set_option
@_instructs
def start(
    send: Send, what: str, form: str | None, matches: int | None, settings: dict[str, object]
) -> None:
    """Begin a competition now.

    WHAT is the name of a [[run]] in the arena's file, which is played now whatever its time is, or
    a game, which is played by all bots that are connected and play it.
    """
    about = {"form": form, "matches": matches, "settings": settings or None}
    send(Action.START, competition=what, **about)


@click.command(name="log")
@_instructs
def log(send: Send) -> None:
    """Show what a running arena has told on stderr lately, and the latest matches, each with its
    time.

    --json prints {text, competitions, lines: [text]}.
    """
    send(Action.LOG)


@click.command(name="hosts")
@click.option("--drain", metavar="NAME", help="Have this host take no more bots.")
@click.option("--undrain", metavar="NAME", help="Have it take bots again.")
@_instructs
def hosts(send: Send, drain: str | None, undrain: str | None) -> None:
    """List the machines that run bots for an arena, and the bots that were lost with one.

    With --drain a host takes no more bots, for all arenas of its bus. Matches that are
    played there go on to their end.

    --json prints {text, competitions, hosts: [{host, state, why, cores, memory_mib, bots, own_bots,
    room, isolation, languages, lag_ms, version}], lost: [{bot, lost, of, expected}]}, where `lost`
    is how often a process of the bot was on a host when that was lost, `of` how often one was
    started on hosts, and `expected` how many losses the rate of all other bots would give. With
    --drain and --undrain there is no `lost`.
    """
    if drain is not None and undrain is not None:
        raise UsageError("expected --drain or --undrain, got both")
    if drain is not None:
        send(Action.DRAIN, host=drain)
    elif undrain is not None:
        send(Action.UNDRAIN, host=undrain)
    else:
        send(Action.HOSTS)


COMMANDS: dict[str, click.Command] = {
    str(command.name): command
    for command in (status, pause, resume, stop, void, remove, start, log, hosts)
}


def _ask(url: str, message: Instruct) -> Done:
    """Send an instruction to the arena, and wait for its answer.

    Raises `ArenaError` if it refuses, `Unreachable` if none answers, `UsageError` for a bad `url`.
    """
    from websockets.exceptions import WebSocketException

    from protocol.address import through

    place = url + through(url)
    try:
        with connected_to(url) as websocket:
            websocket.send(encode(message, Encoding.JSON), text=True)
            frame = websocket.recv(_TIMEOUT_S, decode=False)
    except (OSError, TimeoutError, WebSocketException) as error:
        raise Unreachable(
            f"no arena answers at {place}: {str(error) or 'it does not answer'}"
        ) from None
    try:
        [answer] = decode_from_arena(frame, Encoding.JSON, str)
    except (ProtocolError, ValueError) as error:
        raise Unreachable(f"what answers at {place} is no arena: {error}") from None
    if isinstance(answer, Refused):
        raise ArenaError(answer.text)
    if not isinstance(answer, Done):
        raise Unreachable(f"what answers at {place} is no arena")
    return answer


def _show(action: Action, done: Done) -> None:
    if action is Action.HOSTS:
        _show_hosts(done)
        return
    if action not in (Action.LOG, Action.STATUS):
        click.echo(done.text)
        return
    if action is Action.STATUS:
        if done.competitions:
            _show_competitions(done.competitions)
        else:
            click.echo("no competition is on")
    for line in done.lines:
        click.echo(line)


def _show_competitions(competitions: Sequence[Progress]) -> None:
    columns = ("competition", "run", "form", "state", "matches", "left", "waits for")
    table = output.new_table(*columns, words=set(columns) - {"matches"})
    for progress in competitions:
        of = f" of {progress.scheduled:,}" if progress.scheduled else ""
        table.add_row(
            progress.competition,
            progress.run,
            progress.form.replace("_", " "),
            progress.state,
            f"{progress.settled:,}{of}",
            "" if progress.left_s is None else f"about {output.duration(progress.left_s)}",
            some(progress.waits_for),
        )
    output.print_table("Competitions", table)


def _show_hosts(done: Done) -> None:
    if not done.hosts:
        click.echo("no host reports on the bus")
    else:
        table = output.new_table(
            "host", "state", "bots", "room", "cores", "languages", "latest fault",
            words={"host", "state", "languages", "latest fault"},
        )  # fmt: skip
        for host in done.hosts:
            table.add_row(
                host.host,
                host.state,
                f"{host.own_bots} of {host.bots}",
                str(host.room),
                str(host.cores),
                ", ".join(host.languages),
                host.why,
            )
        output.print_table("Hosts", table)
    if done.lost:
        table = output.new_table("bot", "lost", "of", "expected", words={"bot"})
        for bot in done.lost:
            table.add_row(bot.bot, f"{bot.lost:,}", f"{bot.of:,}", f"{bot.expected:.1f}")
        output.print_table("Lost with a host", table)


def _show_verdicts(verdicts: Sequence[TimedVerdict]) -> None:
    columns = ("time", "competition", "match", "bot", "verdict", "refused")
    table = output.new_table(*columns, words=set(columns))
    for each in verdicts:
        at = time_of(each.at, SECONDS)
        table.add_row(at, each.competition, each.match, each.bot, each.kind, each.refusal)
    output.print_table("Verdicts of that time", table)
