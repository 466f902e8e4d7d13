"""`arena connect`: runs a bot as a process of its own, connected to an arena."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

import click

__all__ = ["command"]


@click.command(
    name="connect",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def command(words: tuple[str, ...]) -> int:
    """Connect FILE.py, or a house bot by GAME NAME, to an arena, as `python -m bots` does."""
    # The arena never imports a bot that plays over the network, and the event loop of a bot has a
    # process to itself. -P: a folder `bots` in the current directory is not the package.
    os.environ["CARD_ARENA_CALLED_AS"] = "arena connect"
    argv = [sys.executable, "-P", "-m", "bots", *(words or ("--help",))]
    if os.name == "posix":
        os.execv(sys.executable, argv)  # so that the bot gets every signal
    process = subprocess.Popen(argv)
    while True:
        with contextlib.suppress(KeyboardInterrupt):  # the bot gets it, too, and says goodbye
            return process.wait()
