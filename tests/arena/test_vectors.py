"""The vectors for other languages: recomputed by the arena, and as `protocol/README.md` says."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from arena.games.catalogue import GAMES
from arena.records.document import MatchDocument, read
from arena.records.verify import check
from tests.support.scenes import DEALT
from tests.tools import vectors

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


def test_J6_the_arena_deals_the_vectors() -> None:
    kept = (VECTORS / "cards.json").read_text("utf-8")

    assert vectors.cards(kept) == kept


@pytest.mark.parametrize("vector", CARDS)
def test_J6_the_deals_are_those_of_all_games(vector: dict[str, Any]) -> None:
    known = {"seed", "commitment", "nonces", "key", "stream"}
    dealt = {one.key for all_ in DEALT.values() for one in all_}

    assert {*DEALT} == {*GAMES}
    assert vector.keys() == known | dealt


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
    assert [{"starter": gin.below(2), "deck": gin.shuffle(PACK)} for _ in range(2)] == vector[
        "gin_rummy"
    ]
    assert [high_low.shuffle(PACK) for _ in range(2)] == vector["high_low"]
    assert [poker.six() for _ in range(4)] == vector["three_card_poker"]
    assert [[13 + riffle.below(27) for _ in range(7)] for _ in range(2)] == vector[
        "blackjack_riffle"
    ]
    assert [uniform.shuffle(NEW_DECK) for _ in range(2)] == vector["blackjack_uniform"]


def test_J6_there_are_matches_of_all_games() -> None:
    assert {json.loads(line)["game"] for line in MATCHES} == {*GAMES}


def test_J6_matches_that_fit_are_kept_and_those_of_a_new_game_are_played() -> None:
    kept = b"".join(line + b"\n" for line in MATCHES)
    gone = json.loads(MATCHES[0])["game"]
    others = [line for line in MATCHES if json.loads(line)["game"] != gone]
    wrong = MATCHES[0].replace(b'"scores":[-3,3]', b'"scores":[-4,4]')
    made = vectors.matches(b"\n".join([*others, wrong])).splitlines()
    new = read(made[-1])

    assert vectors.matches(kept) == kept
    assert wrong != MATCHES[0]
    assert made[:-1] == others
    assert isinstance(new, MatchDocument)
    assert new.game == gone
    assert check(new).reasons == ()


@pytest.mark.parametrize("line", MATCHES, ids=range(len(MATCHES)))
def test_J6_every_match_fits(line: bytes) -> None:
    document = read(line)

    assert isinstance(document, MatchDocument)
    assert check(document).reasons == ()
    assert check(document).is_committed


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


# ---- Transcripts: what is among them, and that their cards are what the document says


TRANSCRIPTS = {
    file.stem: [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    for file in sorted((VECTORS / "transcripts").glob("*.jsonl"))
}
EACH_TRANSCRIPT = pytest.mark.parametrize("name", TRANSCRIPTS)


def messages(name: str, kind: str) -> list[dict[str, Any]]:
    """The messages of one type in a transcript, in order."""
    said = [message for line in TRANSCRIPTS[name][1:] for message in line.values()]
    return [one for one in said if isinstance(one, dict) and one["type"] == kind]


def of_game(game: str, kind: str) -> list[dict[str, Any]]:
    """The same in all transcripts of a game."""
    names = [name for name in TRANSCRIPTS if name.rpartition("-")[0] == game]
    return [message for name in names for message in messages(name, kind)]


def told(game: str) -> list[dict[str, Any]]:
    """All news in them."""
    heard = [*of_game(game, "ask"), *of_game(game, "over")]
    return [one for message in heard for one in message["news"]]


@EACH_TRANSCRIPT
def test_J6_the_decks_of_a_transcript_are_dealt_as_the_document_says(name: str) -> None:
    heading = TRANSCRIPTS[name][0]
    stream = Plain(plain_key(heading["seed"], heading["nonces"]))
    decks = heading["decks"]

    def deal() -> Any:
        match heading["game"]:
            case "ace_king_queen":
                return stream.shuffle(["A", "K", "Q"])
            case "gin_rummy":
                return {"starter": stream.below(2), "deck": stream.shuffle(PACK)}
            case "high_low":
                return stream.shuffle(PACK)
            case "three_card_poker":
                return stream.six()
            case _ if heading["settings"]["shuffle"] == "riffle":
                return 13 + stream.below(27)
            case _:
                return stream.shuffle(NEW_DECK)

    hidden = hashlib.sha256(bytes.fromhex(heading["seed"])).hexdigest()
    assert [deal() for _ in decks] == decks
    assert messages(name, "match")[0]["commitment"] == hidden
    assert decks


@pytest.mark.parametrize("game", GAMES)
def test_J6_the_transcripts_have_every_question_and_all_news(game: str) -> None:
    vocabulary = GAMES[game].vocabulary
    asked = {message["kind"] for message in of_game(game, "ask")}

    assert asked == {*vocabulary.questions}
    assert {one["kind"] for one in told(game)} == {*vocabulary.news}
    assert sum(name.startswith(game) for name in TRANSCRIPTS) >= 3


def test_J6_the_transcripts_have_every_ending_of_a_game() -> None:
    def values(game: str, kind: str, field: str) -> set[Any]:
        return {one[field] for one in told(game) if one["kind"] == kind}

    rounds = [one for one in told("high_low") if one["kind"] == "round_over"]
    hands = values("ace_king_queen", "hand_over", "response")

    assert hands == {"call", "fold", None}
    assert values("gin_rummy", "round_over", "reason") == {
        *("gin", "knock", "undercut", "tie", "stock", "turns")
    }
    assert values("gin_rummy", "game_over", "winner") == {0, 1, None}
    assert values("gin_rummy", "turn", "drew") == {"stock", "discard"}
    assert {one["cards"].count(None) for one in rounds} == {0, 1, 2, 3, 4}
    assert values("high_low", "bid", "bid") == {"quit", 2, 4, 6, 8, 10}
    assert values("three_card_poker", "round_over", "outcome") == {-2, -1, 0, 1, 2}
    assert values("blackjack", "hand_over", "outcome") == {
        *("natural", "bust", "dealer_busts", "win", "lose", "push")
    }


def test_J6_the_transcripts_have_every_answer_of_a_game() -> None:
    def answers(game: str) -> list[Any]:
        asked = {message["ask"]: message for message in of_game(game, "ask")}
        return [message["value"] for message in of_game(game, "answer") if message["ask"] in asked]

    turns = [one for one in answers("gin_rummy") if isinstance(one, dict)]
    melds = [one for one in answers("gin_rummy") if isinstance(one, list)]

    assert {"bet", "check", "call"} <= {*map(str, answers("ace_king_queen"))}
    assert {"take", "pass", "stock", "discard"} <= {*map(str, answers("gin_rummy"))}
    assert {(one.get("knock"), bool(one.get("melds"))) for one in turns} >= {
        *((False, False), (True, False), (True, True))
    }
    assert melds  # the defender's own
    assert {"swap", "keep", "quit"} <= {*map(str, answers("high_low"))}
    assert {"play", "fold"} <= {*map(str, answers("three_card_poker"))}
    assert {"hit", "stand"} <= {*map(str, answers("blackjack"))}


def test_J6_the_transcripts_have_what_a_session_can_come_to() -> None:
    events = {line["event"] for lines in TRANSCRIPTS.values() for line in lines if "event" in line}
    overs = [over for name in TRANSCRIPTS for over in messages(name, "over")]
    blamed = [over for over in overs if over["verdict"]]
    legal = [refused["legal"] for name in TRANSCRIPTS for refused in messages(name, "refused")]

    assert events == {"connection lost", "program killed"}
    assert {over["termination"]["kind"] for over in overs} == {
        *("completed", "illegal", "timeout", "disconnect")
    }
    assert {over["verdict"]["kind"] for over in blamed} == {"illegal", "timeout"}
    assert {type(one) for one in legal} == {list, dict}
    assert any(messages(name, "past") for name in TRANSCRIPTS)
    assert any("note" in one for one in of_game("ace_king_queen", "answer"))
    assert any(not nonce.isascii() for nonce in TRANSCRIPTS["high_low-1"][0]["nonces"])


@EACH_TRANSCRIPT
def test_J6_a_transcript_goes_from_hello_to_over(name: str) -> None:
    heading, first, *_, last = TRANSCRIPTS[name]
    [over] = messages(name, "over")

    assert first["bot"]["type"] == "hello"
    assert last["arena"] == over
    assert over["scores"] == heading["scores"]
    assert over["reveal"] == {"seed": heading["seed"], "nonces": heading["nonces"]}
