"""`arena connect`: a bot as a program of its own, connected to an arena."""

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
    """Connect FILE.py, or a house bot by GAME NAME, to an arena: `python -m bots` with the same words."""
    # A program of its own: the arena never imports a bot to play over the network, and a bot's loop has a process to itself here
    # as everywhere. -P: a folder `bots` in the present directory is not the package.
    argv = [sys.executable, "-P", "-m", "bots", *(words or ("--help",))]
    if os.name == "posix":
        os.execv(sys.executable, argv)  # so that every signal is the bot's
    process = subprocess.Popen(argv)
    while True:
        with contextlib.suppress(KeyboardInterrupt):  # it says goodbye
            return process.wait()
