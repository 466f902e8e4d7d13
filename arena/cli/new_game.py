"""`arena new-game`: writes a package with a small game, for the user to change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from arena.authoring.game_package import MOST_SEATS, check_name, game_package
from arena.authoring.starter import ShellCommand
from arena.cli import _new_folder as new_folder
from arena.cli._results import Found, result_command

__all__ = ["command"]


class _NewGame(msgspec.Struct, frozen=True):
    """What was written, and the commands that come next."""

    folder: str
    game: str
    seats: int
    files: Sequence[str]
    commands: Sequence[ShellCommand]


@result_command("new-game", prints=_NewGame)
@click.argument("name")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option(
    "--seats",
    type=click.IntRange(1, MOST_SEATS),
    default=2,
    show_default=True,
    metavar="N",
    help="How many seats it has; with one seat it is played against the dealer.",
)
@click.option("--view", is_flag=True, help="Write a view of its own for the page, too.")
@click.option("--luck", is_flag=True, help="Write a meter of luck, too.")
def command(name: str, folder: Path, seats: int, view: bool, luck: bool) -> Found:
    """Write a package with a game called NAME, and say how to install, check and play it.

    DIR is made; if it is there, it must be empty. The game is a small complete one: its rules, its
    house bots and its tests work as they are. Change it into yours; its README says in which order.
    """
    check_name(name)
    made = game_package(name, seats, view=view, luck=luck)
    new_folder.write(folder, made.files)
    written = _NewGame(str(folder), name, seats, list(made.files), made.commands)
    return written, new_folder.lines_of(folder, "a package with a game", made)
