"""The `arena` command.

There is one module per command, which is imported when that command is used: `arena --help` imports
none. A command prints its result on stdout and raises when something is wrong. `main` alone turns
what was raised into a line on stderr and an exit status: 0 when all went well, 1 when it did not,
2 when the command was called wrong, 3 when `arena verify` could not verify all, 130 after Ctrl-C.
"""

from __future__ import annotations

import gc
import importlib
import io
import os
import sys
from collections.abc import Sequence

import click

from protocol.entry_points import first_left_out, has_others, unsaid
from protocol.errors import ArenaError, UsageError, one_line
from protocol.version import __version__

__all__ = ["COMMANDS", "Interrupted", "arena", "command_named", "main"]

# The line of each command in `arena --help`.
COMMANDS: dict[str, str] = {
    "demo": "See the arena at work: all games, between processes.",
    "docs": "Read the manual in a browser.",
    "serve": "Run an arena that bots connect to.",
    "bus": "Set up the bus by which other machines run bots.",
    "connect": "Connect a bot to an arena.",
    "submit": "Hand a bot in, which the arena then plays.",
    "submissions": "See what was handed in, and say what is in play.",
    "roster": "Say who may play here, and hand out tokens.",
    "luck": "Measure the luck of matches, and add up their hands.",
    "new": "Write a bot to begin with, in one of six languages.",
    "check": "See whether a bot behaves, step by step.",
    "new-game": "Write a package with a game to begin with.",
    "check-game": "See whether a game keeps to the conventions.",
    "vectors": "Write a game's schema and golden transcripts.",
    "play": "Play a match or a pairing here and now.",
    "cross": "Let every bot of a game play against every bot.",
    "compare": "Play two bots until it is known which is better.",
    "analyse": "Find out how good a bot is, exactly where that can be said.",
    "odds": "Deal three card poker hands and compare with the exact odds.",
    "ruin": "See how often a bot turns a stake into a goal.",
    "driver": "Print a session of blackjack line by line.",
    "standings": "See how a competition stands.",
    "export": "Write competitions as CSV, JSON and a web page.",
    "backup": "Copy the database, also while an arena runs on it.",
    "replay": "Step through a match, or put its questions to a bot again.",
    "mistakes": "See which decisions cost most, and what was better.",
    "habits": "See what a bot did, or two side by side.",
    "verify": "Recompute every deal and every result from the records.",
    "tournament": "Play a competition here and now, between launched bots.",
    "host": "Run bots of arenas on this machine.",
    "status": "See how far the competitions of a running arena are.",
    "pause": "Have an arena open no new matches.",
    "resume": "Have a paused competition go on.",
    "stop": "End a competition that is being played.",
    "void": "Have a match played again.",
    "remove": "Take a bot out of a competition.",
    "start": "Have an arena begin a competition now.",
    "log": "Show what an arena has told lately.",
    "hosts": "See the machines that run bots of an arena, and drain one.",
    "bench": "Measure what this machine carries.",
    "doctor": "See which limits can be enforced on this machine.",
}

# The commands that `arena/cli/instruct.py` has; `arena/cli/NAME.py` has the others,
# with _ for -.
_INSTRUCT = ("status", "pause", "resume", "stop", "void", "remove", "start", "log", "hosts")

# Removed commands, and what replaces each.
_GONE = {
    "worker": "`arena host` runs the bots of arenas on this machine",
    "workers": "`arena hosts` lists the machines that run bots, and drains one",
}

_LONGEST_LINE = 2000  # the text of an error may quote a file from anywhere

DONE, FAILED, CALLED_WRONG, UNVERIFIED, INTERRUPTED = 0, 1, 2, 3, 130


class Interrupted(ArenaError):
    """Ctrl-C was pressed; the text says what was done and how to go on."""


class _Lazy(click.Group):
    """A group that imports a command when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        # `serve` handles SIGTERM before its slow import, during which the signal may arrive.
        if name == "serve":
            from arena.cli._signals import stopping

            ctx.obj = ctx.with_resource(stopping())
        if name in COMMANDS:
            return command_named(name)
        if name in _GONE:
            raise UsageError(f"arena {name} is gone: {_GONE[name]}")
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # click would print an empty line
            raise Interrupted("interrupted") from None
        except BrokenPipeError:
            raise _NobodyReads from None
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("arena."):
                raise
            needs = f"this command needs {error.name}, which is not installed here"
            raise UsageError(needs) from None


def command_named(name: str) -> click.Command:
    """Import one of `COMMANDS`."""
    gc.disable()  # imports leave no garbage, and searching it takes a tenth of the start
    try:
        if name in _INSTRUCT:
            command = importlib.import_module("arena.cli.instruct").COMMANDS[name]
        else:
            command = importlib.import_module(f"arena.cli.{name.replace('-', '_')}").command
    finally:
        gc.enable()
    assert isinstance(command, click.Command), "every module there has one"
    return command


class _NobodyReads(Exception):
    """The program that reads our output has closed the pipe."""


@click.group(
    cls=_Lazy,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="arena", message="%(prog)s %(version)s")
@click.pass_context
def arena(ctx: click.Context) -> None:
    """Card Arena: bots play card games, and a referee sees to it that they play by the rules.

    Exit status: 0 when all went well, 1 when it did not (a bot was eliminated, a file cannot be
    read), 2 when the command was called wrong, 3 when `arena verify` found nothing wrong and could
    not verify all, 130 after Ctrl-C.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
    elif has_others():
        _say_what_is_left_out()


def _say_what_is_left_out() -> None:
    """Load the games and bots of installed packages, and report each one that is left out."""
    import arena.games.catalogue  # noqa: F401  # it fills the table
    from protocol.strategy import load_others

    load_others()
    for left in first_left_out():
        click.echo(f"arena: {one_line(str(left), _LONGEST_LINE)}", err=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line, by default the process's, and return its exit status."""
    if sys.stderr is None:  # the caller has closed it; the result is still printed
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        return _fail("standard output is closed, expected it open", FAILED)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a name may not fit the terminal's encoding
    try:
        status = arena.main(argv, prog_name="arena", standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as error:
        return _fail(_text_of(error), CALLED_WRONG)
    except click.ClickException as error:
        return _fail(error.format_message(), FAILED)
    except (KeyboardInterrupt, click.Abort):
        return _fail("interrupted", INTERRUPTED)
    except Interrupted as error:
        return _fail(str(error), INTERRUPTED)
    except UsageError as error:
        return _fail(str(error), CALLED_WRONG)
    except ArenaError as error:
        return _fail(str(error), FAILED)
    except (_NobodyReads, BrokenPipeError):
        # What is still buffered would break the pipe again when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _fail("nobody reads the output any more", FAILED)
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        return _fail(f"{where}{error.strerror or error}", FAILED)
    return status if isinstance(status, int) else DONE


def _text_of(error: click.UsageError) -> str:
    """A usage error in one line, with the command whose `--help` says more."""
    text = error.format_message().rstrip(".")
    if text[1:2].islower():
        text = text[0].lower() + text[1:]
    path = "arena" if error.ctx is None else error.ctx.command_path
    return f"{text}; see '{path} --help'"


def _fail(text: str, status: int) -> int:
    click.echo(f"arena: {one_line(' '.join(unsaid(text).split()), _LONGEST_LINE)}", err=True)
    return status
