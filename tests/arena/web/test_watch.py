"""The frames of spectators of live matches: no card before rule J8 lets them see it.

House bots play over a gateway, and viewers of each kind watch. What every seat knew after which
answer is computed from the record afterwards, by the rules alone; each frame says after how many
answers it was made.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from websockets.asyncio.client import ClientConnection, connect

from arena.engine.match import MatchState, Record
from arena.engine.rules import EVERYONE
from arena.games import GAMES
from arena.storage.roster import Roster
from arena.storage.roster_csv import Student
from arena.web.web import Web
from bots.client import Client
from protocol.strategy import find
from tests.support.arena_in_memory import HostArena, in_host
from tests.support.gateway_bots import Message
from tests.support.virtual_time import virtual_loop

pytestmark = pytest.mark.virtual_time

BOTS = {
    "ace_king_queen": ("nash", "honest"),
    "gin_rummy": ("simple", "simple"),
    "high_low": ("timid", "bold", "counter", "random"),
    "three_card_poker": ("always",),
    "blackjack": ("simple",),
}
LONG: dict[str, dict[str, object]] = {
    "ace_king_queen": {"hands": 300},
    "gin_rummy": {"games": 5},
    "high_low": {"max_shuffles": 20, "gap": 1_000_000},
    "three_card_poker": {"rounds": 300, "stake": 1_000_000},
    "blackjack": {"hands": 300, "bankroll": 1_000_000},
}
NAMES = ("ann/bot", "ben/bot", "cem/bot", "dee/bot")
A_CARD = re.compile(r'"([2-9TJQKA][shdc]|[AKQ])"')
ENDS = ("round_over", "hand_over")


class WatchingClient:
    """A spectator with all frames that it got."""

    def __init__(self, websocket: ClientConnection) -> None:
        self._websocket = websocket
        self.frames: list[str] = []

    async def watch(self, match: str, token: str | None = None) -> None:
        watch = {"type": "watch", "topic": "match", "match": match, "token": token}
        await self._websocket.send(json.dumps(watch))

    async def reads(self, until: str = "gone") -> list[Message]:
        """Read until a frame of this type."""
        while True:
            frame = await self._websocket.recv()
            assert isinstance(frame, str)
            self.frames.append(frame)
            if json.loads(frame)["type"] == until:
                return [json.loads(frame) for frame in self.frames]


@asynccontextmanager
async def looker(arena: HostArena) -> AsyncIterator[WatchingClient]:
    async with connect(f"{arena.url}/watch", compression=None, max_size=None) as websocket:
        yield WatchingClient(websocket)


async def play(arena: HostArena, game: str, token: str) -> None:
    """Have the house bots of a game come, the first with a token."""
    virtual_loop().network.latency_s = 0.005  # so that a match lasts some seconds
    for bot, name in zip(BOTS[game], NAMES, strict=False):
        own = token if name == NAMES[0] else None
        arena.beside(Client(arena.url, name, {game: find(game, bot)}, token=own).run())
    await arena.until(lambda: len(arena.gateway.players) == len(BOTS[game]))
    virtual_loop().network.latency_s = 0.000_1


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


def of_type(frames: list[Message], kind: str) -> list[Message]:
    return [frame for frame in frames if frame["type"] == kind]


# ---- Rule J8


@pytest.mark.parametrize("game", GAMES)
async def test_J8_no_frame_has_a_card_that_its_viewer_may_not_know_yet(game: str) -> None:
    async with in_host(page=Web) as arena:
        roster = Roster(arena.store.engine)
        new = roster.take([Student(name="ann"), Student(name="eva")]).new
        tokens = {issued.name: issued.token for issued in new}
        all_seeing = roster.instructor()
        arena.gateway.roster_changed(roster.access())
        await play(arena, game, tokens["ann"])
        async with (
            looker(arena) as public,
            looker(arena) as stranger,
            looker(arena) as owner,
            looker(arena) as instructor,
            looker(arena) as guesser,
        ):
            table = arena.open(game, *NAMES[: len(BOTS[game])], **LONG[game])
            await public.watch(table.id)
            await stranger.watch(table.id, tokens["eva"])
            await owner.watch(table.id, tokens["ann"])
            await instructor.watch(table.id, all_seeing)
            await guesser.watch(table.id, "guessed")
            of_public, of_stranger, of_owner, of_all = await asyncio.gather(
                *(spectator.reads() for spectator in (public, stranger, owner, instructor))
            )
            [refused] = await guesser.reads("refused")
        result, _ = await arena.result(table)

    assert refused["code"] == "token"
    seats = len(BOTS[game])
    views = [f[0]["view"]["kind"] for f in (of_public, of_stranger, of_owner)]
    assert views == ["public", "public", "seat"]
    assert of_all[0]["view"] == {"kind": "all", "seats": []}
    assert of_owner[0]["view"]["seats"] == [0]
    known = Known(result.record)
    for frames in (of_public, of_stranger):
        checked = _check(known, frames, range(seats))
        assert checked > 2
        for told in frames:
            for event in told.get("events", ()):
                _check_public(event, seats)
    _check(known, of_owner, [0])
    assert any('"deal":' in frame for frame in instructor.frames)
    assert not any('"deal":' in frame for frame in (*public.frames, *owner.frames))


def _check(known: Known, frames: list[Message], seats: Any) -> int:
    """Check that all seats know the cards of all frames; returns the number of cards."""
    told = of_type(frames, "events")
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
