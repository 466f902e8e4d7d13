"""`arena vectors`: writes a game's schema and golden transcripts, or says which are stale."""

from __future__ import annotations

from pathlib import Path

import click

from arena.authoring.samples import is_vector, vectors
from arena.cli import _options as options
from arena.games.rules import Game

__all__ = ["command"]


@click.command(name="vectors")
@options.game_argument
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")
@click.option("--check", "only_checks", is_flag=True, help="Write nothing; say what is stale.")
def command(game: Game, folder: Path, only_checks: bool) -> int:
    """Write the schema and the golden transcripts of GAME into DIR.

    DIR/GAME.json is the JSON Schema of the arena's messages about a match. DIR/GAME-BOT.jsonl, one
    for each house bot, is a short match with all that the bot says and hears. Files that no bot
    makes any longer are named, and stay.

    With --check the exit status is 1 if a file is missing or stale.
    """
    wanted = vectors(game)
    there = {file.name for file in folder.iterdir()} if folder.is_dir() else set()
    stale = [
        name
        for name, text in wanted.items()
        if name not in there or (folder / name).read_bytes() != text.encode()
    ]
    gone = sorted(name for name in there - wanted.keys() if is_vector(game, name))
    if not only_checks:
        folder.mkdir(parents=True, exist_ok=True)
    for name in stale:
        if only_checks:
            click.echo(f"stale: {folder / name}; run `arena vectors {game.name} {folder}`")
            continue
        (folder / name).write_text(wanted[name], encoding="utf-8", newline="\n")
        click.echo(f"wrote {folder / name}")
    for name in gone:  # it may be the user's own file, or of a bot that is broken for a moment
        click.echo(f"stale: {folder / name}; no house bot makes it, and it can be removed")
    return int(only_checks and bool(stale or gone))
