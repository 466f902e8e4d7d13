"""Where cards come from: one portable stream of bytes per match (J6).

Block i of a stream is SHA-256(key ‖ i as 8 bytes, big-endian). The blocks follow one another, and
everything random in a match takes its bytes from there, in the order in which the match needs it. A
number below n (n ≤ 256) is one byte b, thrown away and drawn again while b ≥ 256 − 256 mod n, then
b mod n. A shuffle is Fisher-Yates from the back: for i = last … 1, swap card i with card `below(i +
1)`. A deal of k cards is the first k steps of a shuffle, the cards then read from the back. Another
language can do this in twenty lines; `tests/arena/games/test_shuffle.py` has vectors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import SupportsIndex, TypeVar

from protocol.errors import UsageError
from protocol.strategy import as_sent

__all__ = ["Stream", "commitment", "match_key", "seed_from_int"]

Item = TypeVar("Item")

_MOST_BLOCKS = 32  # of a refill: enough for about 20 shuffles of a pack
_LIMITS = tuple(256 - 256 % n if n else 0 for n in range(257))


class Stream:
    """The bytes of one key, in order, and what is drawn from them."""

    __slots__ = ("_bytes", "_counter", "_key")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._counter = 0
        self._bytes: Iterator[int] = iter(b"")

    def below(self, n: int) -> int:
        """A number in 0..n−1, each equally likely; 1 ≤ n ≤ 256."""
        limit = _LIMITS[n]
        while True:
            for byte in self._bytes:  # goes on where it last stopped
                if byte < limit:
                    return byte % n
            self._refill()

    def shuffled(self, cards: Sequence[Item]) -> list[Item]:
        """The cards in a fair random order; at most 256 of them."""
        deck = list(cards)
        self._shuffle(deck, 1)
        return deck

    def dealt(self, cards: Sequence[Item], count: int) -> list[Item]:
        """`count` cards in a fair random order: `count` steps of a shuffle, from the back."""
        deck = list(cards)
        self._shuffle(deck, max(len(deck) - count, 1))
        return deck[: -count - 1 : -1]

    def _shuffle(self, deck: list[Item], least: int) -> None:
        """The steps of a shuffle from the back, until `least` cards are left in front.

        It draws as `below` does, without a call for every card.
        """
        left = len(deck)
        while left > least:
            for byte in self._bytes:  # goes on where it last stopped
                if byte < _LIMITS[left]:
                    other = byte % left
                    left -= 1
                    deck[left], deck[other] = deck[other], deck[left]
                    if left <= least:
                        return
            self._refill()

    def _refill(self) -> None:
        """Make the next blocks: one at first, then as many as there were so far, up to a limit.

        So a short match computes few of them, and a long one seldom refills.
        """
        first = self._counter
        self._counter += min(max(1, first), _MOST_BLOCKS)
        self._bytes = iter(
            b"".join(
                hashlib.sha256(self._key + block.to_bytes(8, "big")).digest()
                for block in range(first, self._counter)
            )
        )


def match_key(seed: bytes, nonces: Iterable[str] = ()) -> bytes:
    """The key of a match's stream: its seed and, in seat order, every seat's nonce (J6).

    SHA-256 over the seed, then each nonce in UTF-8 after its length as 2 bytes (big-endian).
    """
    digest = hashlib.sha256(seed)
    for nonce in nonces:
        encoded = nonce.encode()
        digest.update(len(encoded).to_bytes(2, "big") + encoded)
    return digest.digest()


def commitment(seed: bytes) -> str:
    """The seed's SHA-256 in hex, which `match` announces before the seats choose their nonces."""
    return hashlib.sha256(seed).hexdigest()


def seed_from_int(seed: SupportsIndex) -> bytes:
    """The 32 bytes that stand for `--seed N`: SHA-256 of its decimal digits.

    Raises `UsageError` if it is no whole number; `True`, `7.0` and `"7"` are not.
    """
    number = as_sent(seed)
    if type(number) is not int:
        raise UsageError(f"expected a whole number for a seed, got {seed!r}")
    return hashlib.sha256(str(number).encode()).digest()
