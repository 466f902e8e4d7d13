"""The vectors for other languages: recomputed by the arena, and once more as plainly as `protocol/README.md` says it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from arena.chance import Stream, commitment, match_key
from arena.games import GAMES
from arena.sheet import Sheet, read
from arena.verify import check

VECTORS = Path(__file__).parent.parent.parent / "protocol" / "vectors"
CARDS: list[dict[str, Any]] = json.loads((VECTORS / "cards.json").read_text("utf-8"))
MATCHES = (VECTORS / "matches.jsonl").read_bytes().splitlines()

PACK = [rank + suit for suit in "shdc" for rank in "23456789TJQKA"]
NEW_DECK = [rank + suit for suit in "shcd" for rank in "23456789TJQKA"]


class Plain:
    """A stream, in the words of the document."""

    def __init__(self, key: bytes) -> None:
        self.bytes = self._all(key)

    def _all(self, key: bytes) -> Iterator[int]:
        counter = 0
        while True:
            yield from hashlib.sha256(key + counter.to_bytes(8, "big")).digest()
            counter += 1

    def below(self, n: int) -> int:
        while (byte := next(self.bytes)) >= 256 - 256 % n:
            pass
        return byte % n

    def shuffle(self, cards: list[str]) -> list[str]:
        cards = list(cards)
        for i in range(len(cards) - 1, 0, -1):
            j = self.below(i + 1)
            cards[i], cards[j] = cards[j], cards[i]
        return cards

    def six(self) -> list[str]:
        cards = list(PACK)
        for i in range(51, 45, -1):
            j = self.below(i + 1)
            cards[i], cards[j] = cards[j], cards[i]
        return cards[:45:-1]


def plain_key(seed: str, nonces: list[str]) -> bytes:
    text = bytes.fromhex(seed)
    for nonce in nonces:
        encoded = nonce.encode()
        text += bytes([len(encoded) // 256, len(encoded) % 256]) + encoded
    return hashlib.sha256(text).digest()


def ours(game: str, key: bytes, count: int, **settings: object) -> list[Any]:
    rules = GAMES[game]
    read_settings = rules.vocabulary.read_settings(settings)
    return list(islice(rules.deals(read_settings, Stream(key)), count))


@pytest.mark.parametrize("vector", CARDS)
def test_J6_the_arena_deals_the_vectors(vector: dict[str, Any]) -> None:
    seed = bytes.fromhex(vector["seed"])
    key = match_key(seed, vector["nonces"])
    stream = Stream(key)
    cuts = ours("blackjack", key, 14)

    assert commitment(seed) == vector["commitment"]
    assert key.hex() == vector["key"]
    assert bytes(stream.below(256) for _ in range(64)).hex() == vector["stream"]
    assert ours("ace_king_queen", key, 4) == vector["ace_king_queen"]
    assert [
        {"starter": deal.starter, "deck": deal.deck}
        for deal in ours("gin_rummy", key, 2)
    ] == vector["gin_rummy"]
    assert ours("high_low", key, 2) == vector["high_low"]
    assert ours("three_card_poker", key, 4) == vector["three_card_poker"]
    assert [cuts[:7], cuts[7:]] == vector["blackjack_riffle"]
    assert ours("blackjack", key, 2, shuffle="uniform") == vector["blackjack_uniform"]


@pytest.mark.parametrize("vector", CARDS)
def test_J6_so_does_whoever_follows_the_document(vector: dict[str, Any]) -> None:
    key = plain_key(vector["seed"], vector["nonces"])
    hidden = hashlib.sha256(bytes.fromhex(vector["seed"]))

    def stream() -> Plain:
        return Plain(key)

    akq, gin, high_low, poker = stream(), stream(), stream(), stream()
    riffle, uniform = stream(), stream()
    assert hidden.hexdigest() == vector["commitment"]
    assert key.hex() == vector["key"]
    assert [akq.shuffle(["A", "K", "Q"]) for _ in range(4)] == vector["ace_king_queen"]
    assert [
        {"starter": gin.below(2), "deck": gin.shuffle(PACK)} for _ in range(2)
    ] == vector["gin_rummy"]
    assert [high_low.shuffle(PACK) for _ in range(2)] == vector["high_low"]
    assert [poker.six() for _ in range(4)] == vector["three_card_poker"]
    assert [[13 + riffle.below(27) for _ in range(7)] for _ in range(2)] == vector[
        "blackjack_riffle"
    ]
    assert [uniform.shuffle(NEW_DECK) for _ in range(2)] == vector["blackjack_uniform"]


def test_J6_there_are_matches_of_all_games() -> None:
    assert {json.loads(line)["game"] for line in MATCHES} == {*GAMES}


@pytest.mark.parametrize("line", MATCHES, ids=range(len(MATCHES)))
def test_J6_every_match_fits(line: bytes) -> None:
    sheet = read(line)

    assert isinstance(sheet, Sheet)
    assert check(sheet).reasons == ()
    assert check(sheet).is_committed


@pytest.mark.parametrize("line", MATCHES, ids=range(len(MATCHES)))
def test_J6_the_digest_is_what_the_document_says(line: bytes) -> None:
    sheet = json.loads(line)
    ended = sheet["termination"]
    fields = [
        *(sheet[name] for name in "match competition pairing players".split()),
        *(sheet["scores"], sheet["points"]),
        *(ended["kind"], ended["seat"], ended["text"]),
        *(sheet["started_at"], sheet["finished_at"]),
    ]

    def compact(value: object) -> bytes:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    text = compact(fields) + b"\n" + compact(sheet["record"])
    assert hashlib.sha256(text).hexdigest() == sheet["digest"]
