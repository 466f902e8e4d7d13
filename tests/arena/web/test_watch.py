"""The frames of spectators of live matches: no card before rule J8 lets them see it.

Bots play by chance, and viewers of each kind watch. What every seat knew after which answer is
computed from the record afterwards, by the rules alone; each frame says after how many answers it
was made.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from arena.games.catalogue import GAMES
from arena.games.match import MatchState, Record
from arena.games.rules import EVERYONE
from bots.strategy import choose
from tests.support.fake_bots import FakeArena
from tests.support.page_reader import INSTRUCTOR, PUBLIC, owner
from tests.support.watched_arena import WatchedArena

A_CARD = re.compile(r'"([2-9TJQKA][shdc]|[AKQ])"')
ENDS = ("round_over", "hand_over")

Message = dict[str, Any]


# ---- What is known, by the rules alone


class Known:
    """Which cards each seat had been told in which round, after so many answers."""

    def __init__(self, record: Record) -> None:
        rules = GAMES[record.game]
        self.seats = range(rules.seats)
        # By round and seat: after how many answers which card.
        self._told: dict[tuple[int, int], list[tuple[int, str]]] = {}
        self._round, self._is_complete = 1, False
        match = MatchState(
            rules,
            rules.vocabulary.read_settings(dict[str, object](record.settings)),
            seed=bytes.fromhex(record.seed or ""),
            nonces=record.nonces,
        )
        for number, value in enumerate(record.answers):
            self._hear(match, number)
            match.answer(value)
        self._hear(match, len(record.answers))

    def cards(self, seat: int, number: int, answers: int) -> set[str]:
        """The cards that a seat had been told in a round."""
        told = self._told.get((number, seat), ())
        return {card for at, card in told if at <= answers}

    def _hear(self, match: MatchState, answers: int) -> None:
        for tell in match.take_news():
            if tell.news.kind != "game_over":
                self._begin()
            seats = self.seats if tell.seat == EVERYONE else (tell.seat,)
            self._note(answers, seats, tell.news)
            self._is_complete = self._is_complete or tell.news.kind in ENDS
        if match.pending is not None:
            self._begin()
            self._note(answers, (match.pending.seat,), match.pending.question)

    def _begin(self) -> None:
        if self._is_complete:
            self._round, self._is_complete = self._round + 1, False

    def _note(self, answers: int, seats: Any, what: Any) -> None:
        for card in set(A_CARD.findall(msgspec.json.encode(what).decode())):
            for seat in seats:
                told = self._told.setdefault((self._round, seat), [])
                told.append((answers, card))


def shown(frame: Message) -> Iterator[tuple[int, set[str]]]:
    """The cards in a frame, round by round."""
    number, is_complete = frame["round"], False
    cards: dict[int, set[str]] = {}
    for event in frame["events"]:
        kind = event.get("news", {}).get("kind")
        if is_complete and kind != "game_over" and event["event"] != "over":
            number, is_complete = number + 1, False
        cards.setdefault(number, set()).update(A_CARD.findall(json.dumps(event)))
        is_complete = is_complete or kind in ENDS
    yield from cards.items()


# ---- Rule J8


@pytest.mark.parametrize("game", GAMES)
def test_J8_no_frame_has_a_card_that_its_viewer_may_not_know_yet(
    house: FakeArena, game: str
) -> None:
    arena, dice = WatchedArena(house), random.Random(game)
    played = arena.begun(game)
    viewers = (PUBLIC, owner("eva"), owner("ann"), INSTRUCTOR)
    spectators = [arena.comes(played.table, viewer) for viewer in viewers]
    while (bot := played.asked) is not None:
        arena.passes(0.1)
        [ask] = bot.asks()
        house.answer(bot, ask, choose(ask.question.choices, dice))
    arena.passes(0.5)
    told = [b"".join(spectator.frames) for spectator in spectators]
    of_public, of_stranger, of_owner, of_all = (spectator.read() for spectator in spectators)

    [(_, result, _)] = house.results
    seats = len(played.bots)
    views = [frames[0]["view"]["kind"] for frames in (of_public, of_stranger, of_owner, of_all)]
    assert views == ["public", "public", "seat", "all"]
    assert of_owner[0]["view"]["seats"] == [0]
    known = Known(result.record)
    for frames in (of_public, of_stranger):
        assert _check(known, frames, range(seats)) > 2
        for frame in frames:
            for event in frame.get("events", ()):
                _check_public(event, seats)
    _check(known, of_owner, [0])
    assert [b'"deal":' in frames for frames in told] == [False, False, False, True]


def _check(known: Known, frames: list[Message], seats: Any) -> int:
    """Check that all seats know the cards of all frames; returns the number of cards."""
    told = [frame for frame in frames if frame["type"] == "events"]
    for frame in told:
        for number, cards in shown(frame):
            may = [known.cards(seat, number, frame["decisions"]) for seat in seats]
            assert cards <= set.intersection(*may), frame
    return len(told)


def _check_public(event: Message, seats: int) -> None:
    """Check that a frame has nothing that spectators never get."""
    assert event["event"] != "dealt"
    assert "note" not in event
    if seats > 1:
        assert event["event"] != "answered" or "value" not in event
        assert event["event"] != "asked" or set(event["question"]) == {"kind"}
        assert event["event"] != "told" or event["seat"] is None
