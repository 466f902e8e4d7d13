"""Makes the table of three card poker's hands: `python -m tests.tools.three_card_poker_table`.

It counts, for a hand of each class, the outcomes over all hands that the dealer may have, one by
one, and writes them to the file beside the rules; with `--check` it only compares. A second or two.
"""

from __future__ import annotations

import argparse
import struct
import sys
from collections.abc import Iterable, Iterator
from importlib.resources import files
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from arena.games.three_card_poker.table import OUTCOMES, TABLE_FILE, members
from protocol.cards import PACK
from protocol.three_card_poker import Hand, dealer_qualifies, strength

__all__ = ["Dealers", "packed"]


class Dealers:
    """All hands of the dealer, in three columns: cards as bits, places in order, who qualifies."""

    def __init__(self, pair_kicker: bool) -> None:
        self._pair_kicker = pair_kicker
        hands = [*combinations(PACK, 3)]
        worths = [strength(hand, pair_kicker) for hand in hands]
        self._place = {worth: place for place, worth in enumerate(sorted({*worths}))}
        self._bits: NDArray[np.int64] = np.array([*map(_bits, hands)])
        self._places: NDArray[np.int64] = np.array([self._place[worth] for worth in worths])
        self._qualifies: NDArray[np.bool_] = np.array([*map(dealer_qualifies, hands)])

    def counts(self, hand: Hand) -> Iterator[int]:
        """How many of those that hold none of the cards bring which of `OUTCOMES` (T6)."""
        own = self._place[strength(hand, self._pair_kicker)]
        outcomes = np.where(self._qualifies, 2 * np.sign(own - self._places), 1)
        outcomes = outcomes[self._bits & _bits(hand) == 0]
        for outcome in OUTCOMES:
            yield int(np.count_nonzero(outcomes == outcome))


def packed(pair_kicker: bool, hands: Iterable[Hand]) -> bytes:
    """The rows of some hands, as they stand in the file."""
    dealers = Dealers(pair_kicker)
    return b"".join(struct.pack(f"<{len(OUTCOMES)}H", *dealers.counts(hand)) for hand in hands)


def _bits(hand: Hand) -> int:
    return sum(1 << PACK.index(card) for card in hand)


def main() -> None:
    """Write the file, or compare it with what would be written."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.three_card_poker_table")
    parser.add_argument("--check", action="store_true")
    file = Path(str(files("arena.games.three_card_poker").joinpath(TABLE_FILE)))
    made = b"".join(packed(kicker, (hands[0] for hands in members())) for kicker in (False, True))
    if not parser.parse_args().check:
        file.write_bytes(made)
    elif file.read_bytes() != made:
        sys.exit(f"{file} is not what this program makes")
    print(f"{file}: {len(made):,} bytes")


if __name__ == "__main__":
    main()
