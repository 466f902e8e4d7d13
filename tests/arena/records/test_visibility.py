"""Nobody is shown a card before the rules let it be seen (J8)."""

from __future__ import annotations

import random
import re
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from arena.games.catalogue import GAMES
from arena.games.match import MatchState, Record
from arena.games.replay import CardsDealt, MatchOver, Playback, SeatAnswered
from arena.games.rules import EVERYONE, AskSeat, TellSeat
from arena.records.rounds import RoundPlayback, rounds_of
from arena.records.seat_document import seat_match
from arena.records.visibility import Viewer, ViewerKind, is_open_to, seen, sees_luck, view_of
from bots.strategy import choose
from protocol.watching import View
from tests.support import sample_database
from tests.support.random_matches import SETTINGS, events_of, played

EACH_GAME = pytest.mark.parametrize("game", GAMES)
BETWEEN_BOTS = [name for name, game in GAMES.items() if game.seats > 1]
AGAINST_THE_DEALER = [name for name, game in GAMES.items() if game.seats == 1]
PUBLIC, ALL = View("public"), View("all")
A_CARD = re.compile(rb'"([2-9TJQKA][shdc]|[AKQ])"')


def shown(record: Record, view: View) -> list[dict[str, Any]]:
    return seen(events_of(record), view, GAMES[record.game].seats)


def cards(what: object) -> set[bytes]:
    """All that looks like a card."""
    return set(A_CARD.findall(msgspec.json.encode(what)))


@pytest.mark.parametrize(
    ("players", "kind", "name", "view"),
    [
        # During a competition only the instructor may see all.
        ("ann/gin ben", ViewerKind.PUBLIC, "", PUBLIC),
        ("ann/gin ben", ViewerKind.INSTRUCTOR, "ann", ALL),
        ("ann/gin ben", ViewerKind.OWNER, "ann", View("seat", (0,))),
        ("ann/gin ben", ViewerKind.OWNER, "eva", PUBLIC),
        # Who owns several seats sees with all of them.
        ("ann ben ann/two anna", ViewerKind.OWNER, "ann", View("seat", (0, 2))),
        # A name is nothing without a token.
        ("ann ben", ViewerKind.PUBLIC, "ann", PUBLIC),
        (" ben", ViewerKind.PUBLIC, "", PUBLIC),
    ],
)
def test_J8_who_may_see_what(players: str, kind: ViewerKind, name: str, view: View) -> None:
    names, viewer = tuple(players.split(" ")), Viewer(kind, name)

    assert view_of(names, False, viewer) == view
    assert view_of(names, True, viewer) == ALL, "when it is over everybody sees all"


@pytest.mark.parametrize("number", range(2))
@EACH_GAME
def test_J8_an_owner_is_shown_what_its_seat_was_told_and_no_more(game: str, number: int) -> None:
    """Compared with what the seat's transcript has."""
    record = played(game, number)
    for seat in range(GAMES[game].seats):
        heard = seat_match(record, seat)
        told, asked, others = [], [], []
        for event in shown(record, View("seat", (seat,))):
            if event["event"] == "told":
                told.append(event["news"])
            elif event["event"] == "asked" and event["seat"] == seat:
                asked.append(event["question"])
            else:
                others.append(event)

        news = [one for each in heard.decisions for one in each.news] + [*heard.news]
        assert told == msgspec.to_builtins(news)
        assert asked == [msgspec.to_builtins(each.question) for each in heard.decisions]
        answers = [
            event["value"]
            for event in others
            if event["event"] == "answered" and event["seat"] == seat
        ]
        assert answers == [msgspec.to_builtins(each.answer) for each in heard.decisions]
        for event in others:
            if event.get("seat") != seat:
                assert not cards(event)


@pytest.mark.parametrize("number", range(2))
@EACH_GAME
def test_J8_spectators_see_no_card_that_not_every_seat_has_seen(game: str, number: int) -> None:
    """After every answer: no card of the round that some seat does not know of."""
    record = played(game, number)
    rules = GAMES[game]
    telling = RoundPlayback(Playback.of(record))
    match = MatchState(
        rules,
        rules.vocabulary.read_settings(SETTINGS[game]),
        seed=bytes.fromhex(record.seed or ""),
        nonces=record.nonces,
    )
    heard: list[list[Any]] = [[] for _ in range(rules.seats)]  # of this round
    for number in range(len(record.answers) + 1):
        for tell in match.take_news():
            if tell.news.kind in ("round_over", "hand_over"):
                heard = [[] for _ in range(rules.seats)]
                continue
            seats = range(rules.seats) if tell.seat == EVERYONE else [tell.seat]
            for seat in seats:
                heard[seat].append(tell.news)
        if match.pending is not None:
            heard[match.pending.seat].append(match.pending.question)
        known = set.intersection(*map(cards, heard))
        assert cards(seen(telling.events, PUBLIC, rules.seats)) <= known
        if match.pending is not None:
            telling.feed(record.answers[number])
            telling.take()
            match.answer(record.answers[number])


@pytest.mark.parametrize("game", BETWEEN_BOTS)
def test_J8_spectators_hear_what_all_are_told_and_of_questions_the_kind(game: str) -> None:
    record = played(game, note="a thought")
    rules = GAMES[game]
    public = [
        msgspec.to_builtins(event.news)
        for event in events_of(record)
        if isinstance(event, TellSeat) and event.seat == EVERYONE
    ]
    told, merged = [], 0
    for event in shown(record, PUBLIC):
        match event["event"]:
            case "told":
                assert event["seat"] is None
                if None in (event["news"].get("hand", 0), event["news"].get("card", 0)):
                    merged += event["news"]["kind"] == "dealt"
                if event["news"]["kind"] != "dealt":
                    told.append(event["news"])
            case "asked":
                assert set(event["question"]) == {"kind"}
            case "answered":
                assert set(event) == {"event", "seat", "took_ms"}
            case kind:
                assert kind == "over"
    assert told == public
    assert merged == (0 if game == "ace_king_queen" else len([*rounds_of(record)]))
    assert rules.seats > 1


def test_J8_what_all_seats_are_told_one_by_one_is_one_thing_to_spectators() -> None:
    [dealt] = [
        event
        for event in shown(played("gin_rummy"), PUBLIC)
        if event["event"] == "told" and event["news"]["kind"] == "dealt"
    ][:1]

    upcard = dealt["news"].pop("upcard")
    assert cards([upcard])
    assert dealt["news"].pop("starter") in (0, 1)
    assert dealt == {
        "event": "told",
        "seat": None,
        "news": {"kind": "dealt", "game": 1, "round": 1, "hand": None},
    }


def test_J8_what_not_all_seats_are_told_is_for_no_spectator() -> None:
    events = [e for e in events_of(played("gin_rummy")) if isinstance(e, TellSeat)]
    first, second, *_ = events

    assert len(seen([first, second], PUBLIC, 2)) == 1
    assert seen([first], PUBLIC, 2) == []
    assert seen([second], PUBLIC, 2) == []
    assert seen([second, first], PUBLIC, 2) == []
    assert seen([first, TellSeat(1, events[-1].news)], PUBLIC, 2) == []


@pytest.mark.parametrize("game", AGAINST_THE_DEALER)
def test_J8_against_the_dealer_everybody_sees_what_the_player_does(game: str) -> None:
    """But for notes; and nobody but the instructor where the deck was cut."""
    record = played(game, note="a thought")
    public, own = shown(record, PUBLIC), shown(record, View("seat", (0,)))

    assert own[1:3] != public[1:3]
    for event in own:
        event.pop("note", None)
    assert own == public
    assert "dealt" not in {event["event"] for event in public}


@EACH_GAME
def test_H10_J8_the_instructor_sees_everything(game: str) -> None:
    record = played(game, note="a thought")
    names = {CardsDealt: "dealt", TellSeat: "told", AskSeat: "asked", MatchOver: "over"}
    whole = []
    for event in events_of(record):
        fields = msgspec.to_builtins(event)
        if isinstance(event, SeatAnswered):
            del fields["question"], fields["index"]  # the one before; how many there were before
            if event.note is None:
                del fields["note"]
        elif fields.get("seat") == EVERYONE:
            fields["seat"] = None
        whole.append({"event": names.get(type(event), "answered"), **fields})

    assert shown(record, ALL) == whole


@EACH_GAME
def test_J8_only_the_offender_is_told_what_it_did(game: str) -> None:
    record = played(game, offender=0, after=4)
    text = record.termination.text

    def ending(view: View) -> dict[str, Any]:
        ended: dict[str, Any] = shown(record, view)[-1]["termination"]
        return ended

    assert text
    assert ending(ALL)["text"] == ending(View("seat", (0,)))["text"] == text
    for view in (PUBLIC, View("seat", (1,))):
        assert ending(view) == {"kind": "illegal", "seat": 0, "text": ""}


def test_why_a_match_is_void_is_for_all_to_know() -> None:
    record = sample_database.void("gin_rummy").record

    assert shown(record, PUBLIC)[-1]["termination"]["text"] == record.termination.text


@EACH_GAME
def test_a_view_of_parts_is_the_parts_of_the_view(game: str) -> None:
    """Frames may be cut wherever a seat is asked."""
    record = played(game)
    seats = GAMES[game].seats
    events = events_of(record)
    rng = random.Random(game)
    asked = [number for number, event in enumerate(events) if type(event) is AskSeat]
    cuts = sorted({0, *choose_some(rng, asked), len(events)})

    for view in (PUBLIC, View("seat", (0,)), ALL):
        parts = [seen(events[a:b], view, seats) for a, b in pairwise(cuts)]
        assert [event for part in parts for event in part] == seen(events, view, seats)


def choose_some(rng: random.Random, numbers: list[int]) -> set[int]:
    return {choose(tuple(numbers), rng) for _ in range(5)}


# ---- Luck (J8)


@pytest.mark.parametrize("name", ["", "ann", "ben"])
def test_J8_luck_of_all_is_seen_as_whole_records_are(name: str) -> None:
    for kind in ViewerKind:
        assert sees_luck(True, Viewer(kind, name))
        assert sees_luck(False, Viewer(kind, name)) is (kind is ViewerKind.INSTRUCTOR)


# ---- What is a bot's own (J8)


def test_J8_what_is_a_bots_own_is_its_owners_and_the_instructors_until_the_end() -> None:
    def who_sees(bot: str, is_over: bool) -> list[str]:
        viewers = {
            "public": Viewer(),
            "public who calls itself ann": Viewer(ViewerKind.PUBLIC, "ann"),
            "ann": Viewer(ViewerKind.OWNER, "ann"),
            "ben": Viewer(ViewerKind.OWNER, "ben"),
            "instructor": Viewer(ViewerKind.INSTRUCTOR, "eva"),
        }
        return [name for name, viewer in viewers.items() if is_open_to(viewer, bot, is_over)]

    assert who_sees("ann", False) == who_sees("ann/two", False) == ["ann", "instructor"]
    assert who_sees("anna", False) == who_sees("", False) == ["instructor"]
    assert len(who_sees("ann", True)) == 5
