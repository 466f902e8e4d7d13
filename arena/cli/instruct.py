"""The commands that instruct a running arena: `arena status`, `pause`, `resume` and the others.

Each opens a WebSocket and sends one `instruct` message with the instructor's token, which
`arena roster instructor` makes.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from datetime import time as clock_time
from typing import Any, Protocol

import click
import msgspec

from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._arena_connection import connected_to, instructed
from arena.cli._results import Found, ResultCommand, as_json, result_command
from arena.competitions.planned_run import MOST_MATCHES
from arena.formats.spec import Form
from arena.games.statistics import SECONDS, plural, time_of
from arena.sandbox.bot_spec import some
from protocol.errors import ArenaError, Unreachable, UsageError
from protocol.instructions import TimedVerdict, Unplayed
from protocol.messages import VERSION, Action, Done, Instruct

__all__ = ["COMMANDS"]

_LISTS = ("tokens", "lines", "hosts", "lost", "verdicts")  # fields that only some answers use

COMMANDS: dict[str, ResultCommand] = {}


class SendsInstruct(Protocol):
    """Sends an action with the other fields of `Instruct`; returns and raises as `_ask` does."""

    def __call__(self, action: Action, /, **about: Any) -> Done: ...


def _instruction(*lists: str) -> Callable[[Callable[..., Found | Iterator[Found]]], ResultCommand]:
    """Declare a command whose function gets `ask`; its document includes these `lists`."""

    def declared(function: Callable[..., Found | Iterator[Found]]) -> ResultCommand:
        @functools.wraps(function)
        def called(url: str, token: str, **given: Any) -> Found | Iterator[Found]:
            def ask(action: Action, /, **about: Any) -> Done:
                return _ask(url, Instruct(VERSION, token, action, **about))

            return function(ask, **given)

        name, fields = function.__name__, ("text", "competitions", *lists)
        given = options.url_option(options.instructor_option(called))
        command = COMMANDS[name] = result_command(name, prints=Done, fields=fields)(given)
        return command

    return declared


def _told(done: Done, lines: str | output.Lines | None = None, *asked: str) -> Found:
    """Return an answer as a document and lines, leaving out empty lists not `asked` for."""
    document: dict[str, Any] = msgspec.to_builtins(done)
    for name in _LISTS:
        if not document[name] and name not in asked:
            del document[name]
    return document, done.text if lines is None else lines


@_instruction("lines")
def status(ask: SendsInstruct) -> Found:
    """Say how far the competitions of a running arena are, and about how much longer they take.

    Below them stand runs that wait for bots, and competitions that were over and are played on.
    """
    done = ask(Action.STATUS)
    competitions = output.table_of(
        "Competitions",
        done.competitions,
        "competition",
        "run",
        ("form", lambda each: each.form.replace("_", " ")),
        "state",
        ("matches", lambda each: _of(each.settled, each.scheduled)),
        ("left", lambda each: _about(each.left_s)),
        ("waits for", lambda each: some(each.waits_for)),
        words=("form", "left", "waits for"),
        whole=("competition",),
    )
    return _told(done, [competitions if done.competitions else "no competition is on", *done.lines])


def _about(left_s: float | None) -> str | None:
    return None if left_s is None else f"about {output.duration(left_s)}"


def _of(settled: int, scheduled: int) -> str:
    return f"{settled:,} of {scheduled:,}" if scheduled else f"{settled:,}"


@_instruction()
@click.argument("competition", required=False, callback=options.read_id)
def pause(ask: SendsInstruct, competition: str | None) -> Found:
    """Open no new matches in COMPETITION, its id or the name of its run, or in all.

    Matches that are being played go on to their ends, and nobody is absent meanwhile. A paused
    competition stays paused when the arena is started again.
    """
    return _told(ask(Action.PAUSE, competition=competition))


@_instruction()
@click.argument("competition", required=False, callback=options.read_id)
def resume(ask: SendsInstruct, competition: str | None) -> Found:
    """Go on with COMPETITION, or with all, and with matches that were void three times."""
    return _told(ask(Action.RESUME, competition=competition))


@_instruction()
@click.argument("competition", required=False, callback=options.read_id)
@click.option(
    "--unplayed",
    type=click.Choice([each.value for each in Unplayed]),
    help="What becomes of void results that were not played again, if the competition was over "
    "before. `before`: they count as they did; `void`: they stay void.",
)
@click.option("--all", "everything", is_flag=True, help="End all competitions that are on.")
def stop(
    ask: SendsInstruct, competition: str | None, unplayed: str | None, everything: bool
) -> Found:
    """End COMPETITION, its id or the name of its run, for good: what is being played is void, the
    standings stay as they are.

    A competition that was over, and goes on because a match was made void, needs --unplayed. To
    interrupt an arena and go on later, stop the arena itself.
    """
    if (competition is None) is not everything:
        got = "nothing" if competition is None else "both"
        raise UsageError(
            f"expected what to stop, got {got}: the id of a competition, the name of its run, or "
            "--all for all that are on"
        )
    how = None if unplayed is None else Unplayed(unplayed)
    return _told(ask(Action.STOP, competition=competition, unplayed=how))


def _match_unless_since(ctx: click.Context, param: click.Parameter, what: str | None) -> str | None:
    if what is None and ctx.params.get("since") is None:
        raise click.MissingParameter(ctx=ctx, param=param, param_hint="'MATCH'")
    return options.read_id(ctx, param, what)


@_instruction("verdicts")
@click.argument("what", metavar="[MATCH|COMPETITION]", required=False, callback=_match_unless_since)
@click.option(
    "--since",
    metavar="TIME",
    is_eager=True,
    help="Take back all absences and lost connections since.",
)
@click.option("--until", metavar="TIME", help="The end of that time  [default: now].")
@click.option("--yes", is_flag=True, help="Do not ask.")
def void(
    ask: SendsInstruct, what: str | None, since: str | None, until: str | None, yes: bool
) -> Iterator[Found]:
    """Make MATCH void, and play it again with fresh cards.

    MATCH is its id, with the seat behind a dot or without, or the link to its page. It may be one
    that is being played, or one that is over: its result is taken back then, and so is what it
    brought about: a bot that was eliminated in it is in again. In an elimination only matches of
    the latest stage can be void. A competition that is finished goes on for it: it waits for its
    bots, and nobody is absent from it. `arena stop --unplayed` ends that.

    With --since, after an outage, the matches of all verdicts `absent` and `disconnect` are made
    void that were given in that time, in COMPETITION or in all. They are listed first. TIME is a
    time of day here, the latest one, as 18:02 or 18:02:30, or a date and time, as 2026-11-29T18:02.
    """
    if since is not None:
        begin, end = _times(since, until)
        found = ask(Action.VOID, competition=what, since=begin, until=end)
        yield from _void_all(found, ask, is_sure=yes)
    elif until is not None or yes:
        raise UsageError("expected --since with --until and --yes, got a match alone")
    else:  # the bot in the first seat calls the match `ID.0`
        yield _told(ask(Action.VOID, match=re.sub(r"\.\d+$", "", what or "")))


def _void_all(found: Done, ask: SendsInstruct, *, is_sure: bool) -> Iterator[Found]:
    """Void the matches of some verdicts one by one, after asking the user."""
    matches = dict.fromkeys(each.match for each in found.verdicts if not each.refusal)
    count = plural(len(matches), "match")
    is_blind = bool(matches) and not is_sure and not sys.stdin.isatty()
    if is_blind or not as_json():
        yield _told(found, _verdicts(found.verdicts) if found.verdicts else ())
    if not matches:
        yield _told(msgspec.structs.replace(found, text="nothing to be made void"))
        return
    if not is_sure and not output.confirm(f"make {count} void?", "--yes"):
        yield _told(msgspec.structs.replace(found, text=f"{count} left as is"))
        return
    done, refused = found, dict[str, str]()
    for match in reversed(matches):  # later first: an earlier match may have drawn it
        try:
            done = ask(Action.VOID, match=match)
        except Unreachable:
            raise
        except ArenaError as error:
            refused[match] = str(error)
        if not as_json():
            click.echo(refused.get(match, done.text))
    verdicts = tuple(
        msgspec.structs.replace(each, refusal=refused.get(each.match, each.refusal))
        for each in found.verdicts
    )
    text = f"{plural(len(matches) - len(refused), 'match')} made void"
    yield _told(msgspec.structs.replace(done, text=text, verdicts=verdicts))


def _verdicts(verdicts: Sequence[TimedVerdict]) -> output.Lines:
    at = ("time", lambda each: time_of(each.at, SECONDS))
    columns = ("competition", "match", "bot", ("verdict", "kind"), ("refused", "refusal"))
    return [output.table_of("Verdicts of that time", verdicts, at, *columns, words=("time",))]


def _times(since: str, until: str | None) -> tuple[float, float | None]:
    """Read the times of `--since` and `--until`; returns Unix seconds."""
    begin = _time(since)
    end = None if until is None else _time(until, begin)
    if end is not None and end < begin:
        shown = [time_of(at, SECONDS) for at in (end, begin)]
        raise UsageError(f"expected --until after --since, got {shown[0]} after {shown[1]}")
    return begin, end


def _time(text: str, after: float | None = None) -> float:
    """Read a date and time of this machine; returns Unix seconds.

    A time of day is the latest one before now, or the next one `after` a moment. It is never
    tomorrow's: 18:02 after 18:04 is a mistake, which the caller reports.
    """
    given = text if ":" in text else ""  # without this, 18.02 would be read as 18:00 and a fraction
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


@_instruction()
@click.argument("bot")
@click.option("--competition", help="Its id, or the name of its run; else all.")
def remove(ask: SendsInstruct, bot: str, competition: str | None) -> Found:
    """Take BOT out of the competitions that it is in, like an offender.

    In a round robin, a league or a ladder none of its matches counts for anybody any more. A
    competition that is over must be named with --competition. Nobody can be removed from an
    elimination that is over, because its tables were drawn by its results.
    """
    return _told(ask(Action.REMOVE, competition=competition, bot=bot))


@_instruction()
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
def start(
    ask: SendsInstruct,
    what: str,
    form: str | None,
    matches: int | None,
    settings: dict[str, object],
) -> Found:
    """Begin a competition now.

    WHAT is the name of a [[run]] in the arena's file, which is played now whatever its time is, or
    a game, which is played by all bots that are connected and play it.
    """
    about = {"form": form, "matches": matches, "settings": settings or None}
    return _told(ask(Action.START, competition=what, **about))


@_instruction("lines")
def log(ask: SendsInstruct) -> Found:
    """Show what a running arena has told on stderr lately, and the latest matches, each with its
    time.
    """
    done = ask(Action.LOG)
    return _told(done, done.lines)


@_instruction("hosts", "lost")
@click.option("--drain", metavar="NAME", help="Have this host take no more bots.")
@click.option("--undrain", metavar="NAME", help="Have it take bots again.")
def hosts(ask: SendsInstruct, drain: str | None, undrain: str | None) -> Found:
    """List the machines that run bots for an arena, and the bots that were lost with one.

    With --drain a host takes no more bots, for all arenas of its bus. Matches that are
    played there go on to their end. With --drain and --undrain there is no `lost`.
    """
    if drain is not None and undrain is not None:
        raise UsageError("expected --drain or --undrain, got both")
    if drain is not None:
        return _told(ask(Action.DRAIN, host=drain))
    if undrain is not None:
        return _told(ask(Action.UNDRAIN, host=undrain))
    done = ask(Action.HOSTS)
    hosts = output.table_of(
        "Hosts",
        done.hosts,
        "host",
        "state",
        ("bots", lambda host: f"{host.own_bots} of {host.bots}"),
        "room",
        "cores",
        ("languages", lambda host: ", ".join(host.languages)),
        ("latest fault", "why"),
        words=("languages",),
    )
    expected = ("expected", lambda bot: f"{bot.expected:.1f}")
    lost = output.table_of("Lost with a host", done.lost, "bot", "lost", "of", expected)
    lines = [hosts if done.hosts else "no host reports on the bus", *([lost] if done.lost else [])]
    return _told(done, lines, "hosts", "lost")


def _ask(url: str, message: Instruct) -> Done:
    """Send an instruction to the arena, and wait for its answer.

    Raises `ArenaError` if it refuses, `Unreachable` if none answers, `UsageError` for a bad `url`.
    """
    with connected_to(url) as websocket:
        return instructed(websocket, url, message)
