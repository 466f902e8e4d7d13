"""The portable stream (J6): test vectors, a plain second implementation, and fairness."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.games.shuffle import Stream, commitment, match_key, seed_from_int
from protocol.cards import PACK
from protocol.errors import UsageError

KEY = bytes(range(32))


# ---- The same in another twenty lines


def stream_of(key: bytes) -> Iterator[int]:
    """The bytes of a stream, one after another."""
    block = 0
    while True:
        yield from hashlib.sha256(key + block.to_bytes(8, "big")).digest()
        block += 1


def number_below(n: int, stream: Iterator[int]) -> int:
    """A number drawn by rejection."""
    while True:
        byte = next(stream)
        if byte < 256 - 256 % n:
            return byte % n


def shuffle(cards: list[str], stream: Iterator[int]) -> list[str]:
    """Fisher and Yates, from the back."""
    cards = list(cards)
    for i in reversed(range(1, len(cards))):
        j = number_below(i + 1, stream)
        cards[i], cards[j] = cards[j], cards[i]
    return cards


# ---- Vectors, for other languages


def test_J6_vector_of_the_first_numbers() -> None:
    stream = Stream(b"card arena")

    assert [stream.below(256) for _ in range(8)] == list(bytes.fromhex("00816e94c24531d8"))


def test_J6_vector_of_a_shuffle() -> None:
    deck = Stream(b"card arena").shuffled(PACK)

    assert " ".join(deck) == (
        "8h 6d 2d 9s 9h Th 5c 7s 7h Ad 4h 4c Ks 8c 6h Tc 7d Ah 9d Kd 7c 9c Qh As 2h Js "
        "2c Qc 6c Ts 6s Jc 5d 4d Td 3c 5h 3h Ac Kc Jd 8d Kh 8s Qd 5s Jh 4s 3s Qs 3d 2s"
    )


def test_J6_vector_of_a_key() -> None:
    assert match_key(b"\x01" * 32, ("a", "ö")).hex() == (
        "6f3c7212325361e30c94b7f92ad6f2100d2e411cad30ff464e8ceee0da4398e1"
    )


def test_J6_vector_of_a_seed_given_as_a_number() -> None:
    assert seed_from_int(7) == hashlib.sha256(b"7").digest()
    assert seed_from_int(-7) == hashlib.sha256(b"-7").digest()
    for other in True, 7.0, "7":
        with pytest.raises(UsageError, match="expected a whole number for a seed"):
            seed_from_int(other)  # type: ignore[arg-type]


def test_J6_a_commitment_is_the_hash_of_the_seed() -> None:
    assert commitment(KEY) == hashlib.sha256(KEY).hexdigest()


def test_J6_a_key_is_the_hash_of_seed_and_nonces_with_their_lengths() -> None:
    expected = hashlib.sha256(KEY + b"\0\x01a" + b"\0\x02\xc3\xb6" + b"\0\0").digest()

    assert match_key(KEY, ["a", "ö", ""]) == expected
    assert match_key(KEY) == hashlib.sha256(KEY).digest()


def test_J6_where_one_nonce_ends_and_the_next_begins_matters() -> None:
    keys = {
        match_key(KEY, nonces)
        for nonces in [("ab", "c"), ("a", "bc"), ("abc", ""), ("", "abc"), ("abc",)]
    }

    assert len(keys) == 5


# ---- Against the twenty lines


@pytest.mark.parametrize("n", [1, 2, 3, 6, 27, 52, 100, 255, 256])
def test_J6_numbers_are_drawn_by_rejection(n: int) -> None:
    ours, plain = Stream(KEY), stream_of(KEY)

    assert [ours.below(n) for _ in range(3000)] == [number_below(n, plain) for _ in range(3000)]


def test_J6_bytes_from_the_uneven_end_are_thrown_away() -> None:
    drawn = next(n for n in range(10**6) if next(stream_of(b"%d" % n)) == 255)
    key = b"%d" % drawn
    second = list(zip(range(2), stream_of(key), strict=False))[1][1]

    assert Stream(key).below(256) == 255
    assert Stream(key).below(3) == second % 3  # 255 = 3 × 85 is one too many
    assert Stream(key).below(2) == 1


@given(st.binary(max_size=40), st.integers(0, 256))
def test_J6_shuffles_are_fisher_yates_from_the_back(key: bytes, size: int) -> None:
    cards = [str(number) for number in range(size)]
    ours, plain = Stream(key), stream_of(key)

    for _ in range(2):  # the second goes on where the first has stopped
        assert ours.shuffled(cards) == shuffle(cards, plain)


@given(st.binary(max_size=40), st.integers(0, 52))
def test_J6_a_deal_is_the_back_of_a_shuffle(key: bytes, count: int) -> None:
    shuffled = shuffle(list(PACK), stream_of(key))

    assert Stream(key).dealt(PACK, count) == shuffled[::-1][:count]


def test_a_stream_makes_no_more_blocks_than_twice_what_is_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[bytes] = []
    sha256 = hashlib.sha256

    def counted(block: bytes) -> hashlib._Hash:
        made.append(block)
        return sha256(block)

    monkeypatch.setattr(hashlib, "sha256", counted)
    stream = Stream(KEY)

    assert made == [], "a match that deals nothing needs none"
    stream.shuffled("AKQ")
    assert len(made) == 1
    for _ in range(2000):
        stream.below(256)
    assert len(made) == 1 + 1 + 2 + 4 + 8 + 16 + 32, "of 32 bytes each"


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_J6_a_deal_takes_no_byte_that_its_shuffle_would_not(count: int) -> None:
    ours, plain = Stream(KEY), stream_of(KEY)
    ours.dealt("AKQ", count)
    for left in range(3, max(3 - count, 1), -1):
        number_below(left, plain)

    assert ours.below(256) == next(plain)


def test_what_is_shuffled_stays_as_it_was() -> None:
    cards = list(PACK)
    Stream(KEY).shuffled(cards)
    Stream(KEY).dealt(cards, 6)

    assert cards == list(PACK)
