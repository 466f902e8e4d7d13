"""`arena new`: writes the files of a new bot."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from arena.authoring.starter import ShellCommand, other_language, plain_name, starter
from arena.cli import _new_folder as new_folder
from arena.cli import _options as options
from arena.cli._results import Found, result_command
from arena.games.rules import Game
from arena.sandbox.languages import Language
from arena.web.manual.documents import protocol_section
from protocol.errors import did_you_mean

__all__ = ["command"]

_OTHER = "other"


class _LanguageChoice(click.Choice[str]):
    """The choice of a language: one that has a starter, or `other` for all that have none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            meant = did_you_mean(value, self.choices)
            text = error.message.rstrip(".") + (meant or f". Did you mean --lang {_OTHER}?")
            raise click.BadParameter(text, ctx, param) from None


class _NewBot(msgspec.Struct, frozen=True):
    """What was written, and the commands that come next."""

    folder: str
    game: str
    language: str
    files: Sequence[str]
    commands: Sequence[ShellCommand]


@result_command("new", prints=_NewBot)
@options.game_argument
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option(
    "--lang",
    "language",
    type=_LanguageChoice([*(language.value for language in Language), _OTHER]),
    default=Language.PYTHON.value,
    show_default=True,
    help="What it is written in; other writes the game's page of the manual "
    "and the session in pseudocode.",
)
def command(game: Game, folder: Path, language: str) -> Found:
    """Write a bot for GAME to begin with, and say how to try, check and connect it.

    DIR is made; if it is there, it must be empty. The bot gets its name.

    The bot answers every question that the game asks, if not cleverly; it has a test of its own.
    --lang other writes what you need for a bot in a language that has no starter.
    """
    name = plain_name(os.path.basename(os.path.realpath(folder)))
    if language == _OTHER:
        made = other_language(game, name, protocol_section)
        contents = f"what a bot for {game.vocabulary.title} is written from"
    else:
        made = starter(game, Language(language), name)
        contents = f"a bot for {game.vocabulary.title} in {Language(language).shown}"
    new_folder.write(folder, made.files)
    written = _NewBot(str(folder), game.name, language, list(made.files), made.commands)
    return written, new_folder.lines_of(folder, contents, made)
