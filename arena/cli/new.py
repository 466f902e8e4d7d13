"""`arena new`: writes the files of a bot to begin with."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import click

from arena.authoring.other_language import other_language
from arena.authoring.starter import Language, Starter, plain_name, starter
from arena.cli import _options as options
from arena.cli import _output as output
from arena.engine.rules import Game
from protocol.errors import ArenaError, UsageError

__all__ = ["command"]

_OTHER = "other"


@click.command(name="new")
@options.game_argument
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option(
    "--lang",
    "language",
    type=click.Choice([*(language.value for language in Language), _OTHER]),
    default=Language.PYTHON.value,
    show_default=True,
    help="What it is written in; other writes the game's page of the manual "
    "and the session in pseudocode.",
)
@options.json_option
def command(game: Game, folder: Path, language: str, as_json: bool) -> None:
    """Write a bot for GAME to begin with, and say how to try, check and connect it.

    DIR is made; if it is there, it must be empty. The bot is called like it.

    The bot answers every question that the game asks, if not cleverly; it has a test of its own.
    For a language that has no starter, --lang other writes what such a bot is written from.

    --json prints {folder, game, language, files, commands: [{purpose, line}]}.
    """
    name = plain_name(os.path.basename(os.path.realpath(folder)))
    if language == _OTHER:
        made = other_language(game, name)
        contents = f"what a bot for {game.vocabulary.title} is written from"
    else:
        made = starter(game, Language(language), name)
        contents = f"a bot for {game.vocabulary.title} in {Language(language).shown}"
    _write(folder, made)
    if as_json:
        document = {"folder": str(folder), "game": game.name, "language": language}
        output.print_json({**document, "files": list(made.files), "commands": made.commands})
        return
    click.echo(f"{folder} has {contents}: {', '.join(made.files)}")
    click.echo("In that folder:\n")
    width = max(len(command.purpose) for command in made.commands)
    for command in made.commands:
        click.echo(f"{command.purpose:{width}}  {command.line}")


def _write(folder: Path, made: Starter) -> None:
    """Write all files, or none: then `ArenaError` is raised.

    Raises `UsageError` if the folder is neither new nor empty.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"expected a folder, {folder} is a file")
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"expected an empty folder or a new one, got {folder}")
    written: list[Path] = []
    was_there = folder.is_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in made.files.items():
            written.append(folder / name)
            written[-1].write_text(text, encoding="utf-8", newline="\n")
    except BaseException as error:  # Ctrl-C, too: half a starter would be in the way
        with contextlib.suppress(OSError):
            for file in written:
                file.unlink(missing_ok=True)
            if not was_there:
                folder.rmdir()
        if not isinstance(error, OSError):
            raise
        why = error.strerror or error
        raise ArenaError(f"cannot write {(written or [folder])[-1]}: {why}") from None
