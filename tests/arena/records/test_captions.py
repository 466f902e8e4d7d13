"""The captions of events: the game's words, and no word that the view is not shown (J8)."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from arena.games.catalogue import GAMES
from arena.records.captions import Captioner, captions_for
from arena.records.visibility import seen
from protocol.high_low import BidMade, Dealt
from protocol.watching import View
from tests.support.random_matches import events_of, played

EACH_GAME = pytest.mark.parametrize("game", GAMES)
PUBLIC, ALL, OWN = View("public"), View("all"), View("seat", (0,))
A_CARD = re.compile(r"\b([2-9TJQKA][shdc])\b")


def names(game: str) -> list[str]:
    return [f"ann{seat}" for seat in range(GAMES[game].seats)]


def captioned(game: str, view: View, number: int = 1) -> list[dict[str, Any]]:
    captions = Captioner(GAMES[game].vocabulary, names(game))
    return seen(events_of(played(game, number)), view, GAMES[game].seats, captions)


@EACH_GAME
def test_only_games_without_a_view_of_their_own_need_captions(game: str) -> None:
    bare = replace(GAMES[game], view=None)

    assert captions_for(GAMES[game], names(game)) is None
    assert captions_for(bare, names(game)) is not None


@pytest.mark.parametrize("view", [PUBLIC, OWN, ALL])
@EACH_GAME
def test_J8_a_caption_names_no_card_that_its_event_does_not_show(game: str, view: View) -> None:
    events = captioned(game, view)
    question = ""
    for event in events:
        text = event.pop("text", "")
        known = msgspec.json.encode(event).decode()
        if event["event"] == "asked":
            question = known
        for card in A_CARD.findall(text):
            assert f'"{card}"' in known + question, text


def test_J8_what_all_are_told_of_their_own_has_only_the_words_that_are_alike() -> None:
    captions = Captioner(GAMES["high_low"].vocabulary, ("ann", "ben", "cem", "dee"))
    dealt = [Dealt(1, 3, 1, card, "5h") for card in ("As", "Kd", "2c", "9h")]

    assert captions.told_each(dealt) == "round 3: the dealer-card is 5h, ben starts"
    different = [*dealt[:3], replace(dealt[3], dealer_card="6h")]
    assert captions.told_each(different) == ""
    assert captions.told(1, dealt[1]).endswith("; ben is dealt Kd")


@EACH_GAME
def test_a_seats_own_events_are_put_into_the_same_words(game: str) -> None:
    """As its page sends them, with its question beside an answer."""
    captions = Captioner(GAMES[game].vocabulary, names(game))
    question: dict[str, Any] | None = None
    for event in captioned(game, OWN):
        told = {key: event.pop(key) for key in ("text", "gains") if key in event}
        if event["event"] == "asked":
            question = event["question"]
        if event["event"] == "over" or ("value" not in event and event["event"] == "answered"):
            continue
        if event["event"] == "asked" and set(event["question"]) == {"kind"}:
            continue  # another seat's
        if event["event"] == "answered":
            event["question"] = question
        given = msgspec.json.decode(msgspec.json.encode(event))
        assert msgspec.to_builtins(captions.of(given, 0)) == msgspec.to_builtins(told)


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"event": "told"},
        {"event": "told", "seat": None, "news": {"kind": "nonsense"}},
        {"event": "told", "seat": None, "news": {"kind": "bid", "seat": 17, "bid": 2}},
        {"event": "asked", "seat": "x", "question": {"kind": "bid"}},
        {"event": "answered", "seat": 0, "question": 3, "value": 4},
        {"event": ["told"], "seat": 0, "news": []},
    ],
)
def test_what_is_no_event_has_no_caption(event: dict[str, Any]) -> None:
    captions = Captioner(GAMES["high_low"].vocabulary, ("ann", "ben", "cem", "dee"))

    assert captions.of(event, 0) == {}


def test_a_bots_two_seats_are_told_apart() -> None:
    captions = Captioner(GAMES["high_low"].vocabulary, ("ann", "ben", "ann", "dee"))

    assert captions.told(None, BidMade(2, 4)) != captions.told(None, BidMade(0, 4))
