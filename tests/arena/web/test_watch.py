"""The frames of spectators of live matches: no card before rule J8 lets them see it.

House bots play, and viewers of each kind watch. What every seat knew after which answer is computed
from the record afterwards, by the rules alone; each frame says after how many answers it was made.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import msgspec
import pytest
from websockets.asyncio.client import ClientConnection, connect

from arena.competitions.arena_host import Host
from arena.engine.match import MatchResult, MatchState, Record
from arena.engine.rules import EVERYONE
from arena.formats.spec import plan_of
from arena.games import GAMES
from arena.referee.live_match import LiveMatch
from arena.storage.roster import Roster
from arena.storage.roster_csv import Student
from arena.storage.store import Store
from arena.web.web import Web
from protocol.messages import Limits

pytestmark = pytest.mark.e2e

TIMEOUT_S = 90.0
LIMITS = Limits(decision_ms=5_000, hard_ms=20_000, hello_ms=20_000, start_ms=20_000)
EACH_GAME = pytest.mark.parametrize("game", GAMES)
BOTS = {
    "ace_king_queen": ("nash", "honest"),
    "gin_rummy": ("simple", "simple"),
    "high_low": ("timid", "bold", "counter", "random"),
    "three_card_poker": ("always",),
    "blackjack": ("simple",),
}
LONG: dict[str, dict[str, object]] = {
    "ace_king_queen": {"hands": 3_000},
    "gin_rummy": {"games": 30},
    "high_low": {"max_shuffles": 100, "gap": 1_000_000},
    "three_card_poker": {"rounds": 2_000, "stake": 1_000_000},
    "blackjack": {"hands": 1_500, "bankroll": 1_000_000},
}
NAMES = ("ann/bot", "ben/bot", "cem/bot", "dee/bot")
A_CARD = re.compile(r'"([2-9TJQKA][shdc]|[AKQ])"')
ENDS = ("round_over", "hand_over")

Message = dict[str, Any]


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


class Theatre:
    """An arena with a page, a roster and bots of its own."""

    def __init__(self, host: Host, tokens: dict[str, str], instructor: str) -> None:
        self.host = host
        self.tokens = tokens
        self.instructor = instructor
        self.results: dict[str, MatchResult] = {}

    async def bots(self, game: str) -> None:
        for bot, name in zip(BOTS[game], NAMES, strict=False):
            await self.host.launch((game, bot), name)
        while len(self.host.gateway.players) < len(BOTS[game]):
            await self.host.wait_for_change()

    def open(self, game: str, **settings: object) -> LiveMatch:
        return self.host.referee.open(
            GAMES[game],
            GAMES[game].vocabulary.read_settings(settings or LONG[game]),
            [self.host.gateway.players[name] for name in NAMES[: len(BOTS[game])]],
            LIMITS,
            lambda table, result, _: self.results.update({table.id: result}),
        )

    @asynccontextmanager
    async def looker(self) -> AsyncIterator[WatchingClient]:
        url = f"{self.host.url}/watch"
        async with connect(url, compression=None, max_size=None) as websocket:
            yield WatchingClient(websocket)

    async def get(self, path: str, token: str | None = None, **query: str) -> Message:
        url = f"http{self.host.url.removeprefix('ws')}{path}?{urlencode(query)}"
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        request = Request(url, headers=headers)

        def fetch() -> Message:
            with urlopen(request, timeout=TIMEOUT_S) as answer:
                document: Message = json.loads(answer.read())
                return document

        return await asyncio.to_thread(fetch)


@pytest.fixture
async def theatre(tmp_path: Path) -> AsyncIterator[Theatre]:
    with Store(tmp_path / "arena.db") as store:
        roster = Roster(store.engine)
        new = roster.take([Student(name="ann"), Student(name="eva")]).new
        tokens = {issued.name: issued.token for issued in new}
        instructor = roster.instructor()
        async with Host(store, limits=LIMITS, page=Web) as host:
            yield Theatre(host, tokens, instructor)


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


@EACH_GAME
async def test_J8_no_frame_has_a_card_that_its_viewer_may_not_know_yet(
    theatre: Theatre, game: str
) -> None:
    await theatre.bots(game)
    async with (
        theatre.looker() as public,
        theatre.looker() as stranger,
        theatre.looker() as owner,
        theatre.looker() as instructor,
    ):
        table = theatre.open(game)
        await public.watch(table.id)
        await stranger.watch(table.id, theatre.tokens["eva"])
        await owner.watch(table.id, theatre.tokens["ann"])
        await instructor.watch(table.id, theatre.instructor)
        of_public, of_stranger, of_owner, of_all = await asyncio.gather(
            *(spectator.reads() for spectator in (public, stranger, owner, instructor))
        )

    seats = len(BOTS[game])
    views = [f[0]["view"]["kind"] for f in (of_public, of_stranger, of_owner)]
    assert views == ["public", "public", "seat"]
    assert of_all[0]["view"] == {"kind": "all", "seats": []}
    assert of_owner[0]["view"]["seats"] == [0]
    record = theatre.results[table.id].record
    known = Known(record)
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


async def test_J8_when_a_competition_is_over_everybody_sees_all_of_it(theatre: Theatre) -> None:
    await theatre.bots("ace_king_queen")
    rules = GAMES["ace_king_queen"]
    settings = rules.vocabulary.read_settings({"hands": 100})
    host, names = theatre.host, NAMES[:2]
    plan = plan_of(rules, settings, names, matches=150, limits=LIMITS)
    competition = host.compete(plan)
    playing = asyncio.create_task(host.play(competition))
    path = f"/api/competitions/{competition.id}/matches.json"
    while not (matches := (await theatre.get(path))["matches"]):
        await asyncio.sleep(0)
    path = f"/api/matches/{matches[-1]['id']}/rounds.json"
    tokens = (None, theatre.tokens["eva"], theatre.tokens["ann"])
    wanted = {"from": "1", "to": "50"}

    def cards(document: Message) -> str:
        return json.dumps(document["rounds"])

    *others, own = [await theatre.get(path, token, **wanted) for token in tokens]
    whole = await theatre.get(path, theatre.instructor, **wanted)
    assert not playing.done()
    for document in (*others, own):
        assert '"deal"' not in cards(document)
    assert '"card"' not in cards(others[0])
    assert others[0] == others[1]
    assert '"card"' in cards(own)
    assert '"deal"' in cards(whole)
    await playing
    for token in tokens:  # a document may be a second old
        while cards(await theatre.get(path, token, **wanted)) != cards(whole):
            pass


async def test_J8_a_token_that_is_nobodys_shows_nothing(theatre: Theatre) -> None:
    await theatre.bots("blackjack")
    async with theatre.looker() as looker:
        table = theatre.open("blackjack")
        await looker.watch(table.id, "guessed")
        [refused] = await looker.reads("refused")

    assert refused["code"] == "token"


# ---- Coming late, and the end


async def test_whoever_comes_late_sees_the_rest(theatre: Theatre) -> None:
    await theatre.bots("gin_rummy")
    async with theatre.looker() as early, theatre.looker() as late:
        table = theatre.open("gin_rummy")
        await early.watch(table.id)
        await early.reads("events")
        while len(table.match.answers if table.match else ()) < 300:
            await asyncio.sleep(0)
        await late.watch(table.id)
        of_early, of_late = await asyncio.gather(early.reads(), late.reads())

    result = theatre.results[table.id]
    first = of_type(of_late, "events")[0]
    assert first["reset"]
    assert first["decisions"] >= 300
    for frames in (of_early, of_late):
        last = of_type(frames, "events")[-1]
        assert last["events"][-1]["event"] == "over"
        assert last["scores"] == list(result.scores)
        assert last["decisions"] == len(result.record.answers)
        assert last["turn"] is None


async def test_a_fast_match_is_shown_in_parts_and_its_scores_are_right(theatre: Theatre) -> None:
    await theatre.bots("ace_king_queen")
    async with theatre.looker() as looker:
        table = theatre.open("ace_king_queen")
        await looker.watch(table.id)
        frames = of_type(await looker.reads(), "events")

    record = theatre.results[table.id].record
    scores = _scores_by_round(record)
    for frame in frames:
        for number, event in _ends(frame):
            assert event["news"]["scores"] == scores[number]
    told = sum(1 for frame in frames for _ in _ends(frame))
    assert told < 3_000
    skipped = sum(frame["skipped"] for frame in frames)
    assert told + skipped >= 3_000 - frames[0]["round"] + 1
    assert frames[-1]["scores"] == list(record.scores)


def _ends(frame: Message) -> Iterator[tuple[int, Message]]:
    number = frame["round"]
    for event in frame["events"]:
        if event.get("news", {}).get("kind") in ENDS:
            yield number, event
            number += 1


def _scores_by_round(record: Record) -> dict[int, list[int]]:
    """After every hand of Ace-King-Queen, by the rules alone."""
    match = MatchState(
        GAMES[record.game],
        GAMES[record.game].vocabulary.read_settings(dict[str, object](record.settings)),
        seed=bytes.fromhex(record.seed or ""),
        nonces=record.nonces,
    )
    scores: dict[int, list[int]] = {}
    for value in record.answers:
        match.answer(value)
        for tell in match.take_news():
            scores[len(scores) + 1] = list(match.scores)
            assert tell.seat == EVERYONE
    return scores


async def test_a_match_that_is_void_ends_for_those_who_look_on(theatre: Theatre) -> None:
    await theatre.bots("high_low")
    async with theatre.looker() as looker:
        table = theatre.open("high_low", max_shuffles=5_000, gap=10**6)
        await looker.watch(table.id)
        await looker.reads("events")
        theatre.host.referee.void(table, "the instructor says so")
        *_, last, gone = await looker.reads()
        assert gone == {"type": "gone", "match": table.id}
        await looker.watch(table.id)
        await looker.reads("gone")

    over = last["events"][-1]
    assert over["termination"] == {"kind": "void", "seat": None, "text": "the instructor says so"}
