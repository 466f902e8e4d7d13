"""`python -m bots GAME NAME` or `python -m bots FILE.py`: connect a bot to an arena."""

from __future__ import annotations

import asyncio
import inspect
import os
import shlex
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click

from bots.bridge import Bridge
from bots.client import Client, StrategyFailed
from bots.line_program import STDIO, ProgramFailed, read_command
from bots.reach import NotAdmitted
from bots.rogues import rogue
from bots.session_file import SessionUnusable, default_place
from protocol.address import websocket_url
from protocol.codec import Encoding
from protocol.entry_points import first_left_out, unsaid
from protocol.errors import ArenaError, UsageError, one_line, token_advice
from protocol.games import vocabulary_named
from protocol.messages import Ending, Match, Over
from protocol.strategy import find, load_file, load_others
from protocol.watchdog import Watchdog

__all__ = ["main"]

PROGRAM = "python -m bots"
CALLED_AS = "CARD_ARENA_CALLED_AS"  # set by `arena connect`, for the help
DEFAULT_URL = "ws://127.0.0.1:7700"
_STOPPED = 130  # the exit status after a signal


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("bot", nargs=-1, required=True, metavar="GAME NAME | FILE.py | 'stdio: COMMAND'")
@click.option(
    "--url",
    default=DEFAULT_URL,
    envvar="ARENA_URL",
    show_default=True,
    show_envvar=True,
    callback=lambda _ctx, _param, url: websocket_url(url),
    help="The arena's address; that of its page will do.",
)
@click.option(
    "--name",
    help="What the bot is called there [default: NAME, the file's, or as the program says].",
)
@click.option(
    "--token",
    envvar="ARENA_TOKEN",
    show_envvar=True,
    # A token copied from tokens.csv may end with a line break.
    callback=lambda _ctx, _param, token: token and token.strip(),
    help="Your token, if the arena asks for one.",
)
@click.option(
    "--tables",
    type=click.IntRange(1, 4096),
    show_default="1, or as the program says",
    help="How many matches to play at once, each with a strategy of its own.",
)
@click.option(
    "--encoding",
    type=click.Choice([encoding.value for encoding in Encoding]),
    default=Encoding.JSON.value,
    show_default=True,
    help="JSON in text frames or msgpack in binary ones.",
)
@click.option("--batch/--no-batch", default=True, help="Several messages in a frame, or one.")
@click.option("--seed", help="Makes a bot that plays by chance repeatable.")
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="For how many seconds to wait for an arena that is not up yet.",
)
@click.option(
    "--patience",
    "patience_s",
    type=click.FloatRange(min=0),
    default=3600.0,
    show_default=True,
    help="For how many seconds to try to get a lost connection back.",
)
@click.option(
    "--session",
    "session_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where to keep the session, to go on after a crash "
    "[default: a file of its own in the user's state folder].",
)
@click.option("--no-session", is_flag=True, help="Keep none.")
@click.option("--quiet", is_flag=True, help="Say nothing but errors.")
def command(
    bot: tuple[str, ...],
    url: str,
    name: str | None,
    token: str | None,
    tables: int | None,
    encoding: str,
    batch: bool,
    seed: str | None,
    wait_s: float,
    patience_s: float,
    session_file: Path | None,
    no_session: bool,
    quiet: bool,
) -> None:
    """Connect a house bot, by game and name, the bot in a file, or a program that speaks lines
    to an arena.

    It plays until the arena closes or Ctrl-C is pressed, and comes back by itself when the
    connection is lost. If its process is killed, start it again in the same way: it goes on where
    it was.

    Ctrl-C once: it plays the matches that are on to their end, begins no other, and leaves. Ctrl-C
    again: it leaves now, which is an offence in the middle of a match.

    Exit status: 0 when the arena has closed, 1 when the bot failed or no arena answers, 2 when it
    was called wrong or the arena does not take it, 130 after Ctrl-C, SIGTERM or SIGHUP.
    """
    if no_session and session_file is not None:
        raise click.UsageError("expected --session or --no-session, got both")

    def say(line: str) -> None:
        if not quiet:
            _print(line)

    client: Client | Bridge

    def on_event(line: str) -> None:
        if not quiet or client.is_finishing:  # always answer Ctrl-C, and say what leaving costs
            _print(line)

    common: dict[str, Any] = {
        "token": token,
        "batch": batch,
        "wait_s": wait_s,
        "patience_s": patience_s,
        "on_event": on_event,
        "on_over": lambda match, over: say(_result(match, over)),
    }
    if bot[0].lstrip().startswith(STDIO):
        words = _program(bot, (encoding != Encoding.JSON, seed, session_file))
        client = Bridge(url, words, name=name, tables=tables, **common)
        _run(client, token)
        return
    cls, default_name = _bot(bot)
    name = name or default_name
    if session_file is None and not no_session:
        session_file = _place(url, name, say)
    common.update(tables=tables or 1, encoding=Encoding(encoding), seed=seed)
    client = Client(url, name, {cls.game: cls}, session_file=session_file, **common)
    file = inspect.getfile(cls)
    _run(client, token, Watchdog([file], _say, client.has_lost_arena))


def _program(words: tuple[str, ...], refused: tuple[object, ...]) -> tuple[str, ...]:
    """Read the command in `stdio: COMMAND`, with which no `refused` option may be given."""
    if len(words) > 1:
        raise click.UsageError("expected 'stdio: COMMAND' as one word, in quotes")
    if any(option not in (None, False) for option in refused):
        raise click.UsageError(
            "expected no --encoding, --seed or --session with 'stdio: COMMAND': "
            "its lines are JSON, and its memory is its own"
        )
    return read_command(words[0])


def _place(url: str, name: str, say: Callable[[str], None]) -> Path | None:
    """Return the default session file; None if this user cannot have one."""
    try:
        return default_place(url, name)
    except SessionUnusable as error:
        say(f"{error}; going on without")
        return None


def _run(client: Client | Bridge, token: str | None, watchdog: Watchdog | None = None) -> None:
    try:
        with watchdog or nullcontext():
            was_stopped = asyncio.run(_until_stopped(client, watchdog))
    except NotAdmitted as error:
        if advice := token_advice(str(error), token):
            raise UsageError(f"{error}{advice}") from None
        if error.code != "name":
            raise
        # With a token, the arena's text already says which names are allowed.
        example = "" if token else f", as in --name {shlex.quote(f'{error.name}-2')}"
        raise UsageError(f"{error}; --name sets the bot's name{example}") from None
    except (KeyboardInterrupt, asyncio.CancelledError):  # after the second signal
        was_stopped = True
    if was_stopped:
        _fail("left the arena", _STOPPED)


def _bot(words: tuple[str, ...]) -> tuple[type[Any], str]:
    """Load the strategy class that the command line names, and its default name in the arena."""
    if len(words) == 1 and (file := Path(words[0], "bot.py")).is_file():
        return _of_file(file), Path(words[0]).resolve().name
    if len(words) == 1 and words[0].endswith(".py"):
        return _of_file(Path(words[0])), Path(words[0]).stem
    if len(words) != 2:
        raise click.UsageError("expected GAME NAME, FILE.py or 'stdio: COMMAND'")
    game, name = vocabulary_named(words[0]).name, words[1]
    if name.startswith("rogue-"):
        return rogue(game, name), name
    return find(game, name), name


def _of_file(path: Path) -> type[Any]:
    """Load the strategy of a file; refuse one that cannot be made without arguments."""
    strategy = load_file(path)
    try:
        parameters = inspect.signature(strategy).parameters.values()
    except (TypeError, ValueError):  # it does not say
        return strategy
    variable = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    needed = [
        each.name for each in parameters if each.default is each.empty and each.kind not in variable
    ]
    if needed:
        raise UsageError(
            f"{path}: a strategy is made without arguments, and {strategy.__name__}() needs "
            f"{', '.join(needed)}: give each a default"
        )
    return strategy


def _result(match: Match, over: Over) -> str:
    """Describe a finished match for its player, in one line."""
    ended = _ending(match, over)
    why = f" · {ended}" if ended else ""
    scores = " ".join(
        f"{'you' if seat == match.seat else name}: {score:+}"
        for seat, (name, score) in enumerate(zip(match.seats, over.scores, strict=True))
    )
    return f"{match.game} match {match.match} over · {scores}{why}"


def _ending(match: Match, over: Over) -> str:
    """Say why a match stopped early, with advice if this bot is to blame; empty if completed."""
    ended, verdict = over.termination, over.verdict
    if verdict is not None:
        return "; ".join(filter(None, (verdict.headline, verdict.advice)))
    if ended.kind is Ending.COMPLETED:
        return ""
    if ended.seat is None:
        return ": ".join(filter(None, (ended.kind.value, ended.text)))
    who = "you are" if ended.seat == match.seat else f"{match.seats[ended.seat]} is"
    return f"{who} out: {ended.kind.value}"


async def _until_stopped(client: Client | Bridge, watchdog: Watchdog | None) -> bool:
    """Run the client; return whether a signal stopped it.

    The first Ctrl-C, SIGTERM or SIGHUP lets the running matches finish (J10). The second cancels
    the client, which then says goodbye. The third ends the program at once, and so does a signal
    that comes before the previous one was handled, or while a strategy does not return.
    """
    me, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert me is not None, "a coroutine runs in a task"
    terminals = [fd for fd in range(3) if os.isatty(fd)]
    steps: list[Callable[[], object]] = [
        client.finish,
        me.cancel,
    ]  # each is removed when the event loop runs it
    sent = 0

    def step() -> None:
        if watchdog is not None:
            watchdog.end_if_stuck(None)
        steps.pop(0)()

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal sent
        if number == getattr(signal, "SIGHUP", None):
            signal.signal(number, signal.SIG_IGN)  # an ending shell sends it twice
            with open(os.devnull, "r+b", buffering=0) as nowhere:
                for fd in terminals:  # writing to a closed terminal would fail
                    os.dup2(nowhere.fileno(), fd)
        is_late = not steps or sent + len(steps) != 2  # the previous signal was not handled yet
        if is_late and watchdog is None:  # first the line program must be ended
            raise KeyboardInterrupt
        if is_late:
            _say("left the arena at once")
            os._exit(_STOPPED)
        sent += 1
        if watchdog is not None:
            watchdog.end_if_stuck(_STOPPED)
        loop.call_soon_threadsafe(step)

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # as by nohup
            signal.signal(number, on_signal)
    await client.run()
    return sent > 0


def main() -> None:
    """Run the command, with one line on stderr for every error."""
    program = os.environ.pop(CALLED_AS, PROGRAM)
    load_others()
    for left in first_left_out():
        print(f"arena: {one_line(str(left), 2000)}", file=sys.stderr)
    try:
        command.main(prog_name=program, standalone_mode=False)
    except StrategyFailed as error:
        traceback.print_exception(error.__cause__)
        _fail(str(error), 1)
    except ProgramFailed as error:
        _fail(str(error), error.status)
    except click.UsageError as error:
        text = error.format_message().rstrip(".")
        _fail(f"{text[0].lower()}{text[1:]}; see '{program} --help'", 2)
    except UsageError as error:
        _fail(str(error), 2)
    except ArenaError as error:
        _fail(str(error), 1)
    except click.Abort:
        _fail("interrupted", 130)


def _fail(text: str, status: int) -> NoReturn:
    _say(" ".join(unsaid(text).split()))
    sys.exit(status)


def _say(text: str) -> None:
    _print(f"arena: {text}")


def _print(line: str) -> None:
    with suppress(OSError):  # the terminal may be gone while matches go on
        print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
