"""`arena driver`: prints the transcript of a session of blackjack (B13).

This command exists for one game: its rulebook asks for the command and defines the output.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from arena.cli import _options as options
from arena.games.blackjack.rules import GAME
from arena.games.blackjack.script import drive
from arena.lab.in_process import entrant
from protocol.blackjack import NEW_DECK
from protocol.errors import BadDeck, UsageError
from protocol.text_files import read_text

__all__ = ["command"]

_CUTS = {str(cut): cut for cut in range(len(NEW_DECK) + 1)}


@click.command(name="driver")
@click.argument("bankroll", type=click.IntRange(min=0))
@click.argument("hands", type=click.IntRange(min=0))
@click.argument("player", type=click.Choice(["simple", "counting", "competitor"]))
@click.option(
    "--cuts",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Cut where this file says: numbers from 0 to 52, seven for every shuffle, "
    "separated by white space.",
)
@options.seed_option
def command(bankroll: int, hands: int, player: str, cuts: Path | None, seed: int | None) -> None:
    """Print a session of blackjack line by line.

    The house bot starts with BANKROLL chips and plays up to HANDS hands. The transcript alone is on
    stdout; if the cuts of a file are wrong or too few, nothing is.
    """
    if cuts is not None and seed is not None:
        raise UsageError("expected --cuts or --seed, got both")
    make = entrant(GAME, player).make
    if cuts is None:
        seed = options.fresh_seed(seed)
        lines: Iterable[str] = drive(bankroll, hands, make(f"{seed}:0"), seed=seed)
    else:
        lines = list(drive(bankroll, hands, make("0"), cuts=_read_cuts(cuts)))
    sys.stdout.writelines(f"{line}\n" for line in lines)


def _read_cuts(path: Path) -> list[int]:
    """Read the cut points of a file, and check all of them, even those not needed."""
    words = read_text(path).split()
    for word in words:
        if word not in _CUTS:
            raise BadDeck(
                f"expected cut points from 0 to {len(NEW_DECK)} in {path}, got {word[:40]!r}"
            )
    return [_CUTS[word] for word in words]
