"""People at an arena: they ask for a seat at `/watch`, and play over another WebSocket."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from arena.competitions.arena_host import Host
from arena.formats.spec import Form, plan_of
from arena.games import GAMES, game_named
from arena.games.replay import replay
from arena.server.websocket import Connection
from arena.storage.roster import Roster
from arena.storage.roster_csv import Student
from arena.storage.store import Store
from arena.web.web import Web
from protocol.messages import Limits, Verdict
from protocol.strategy import house_bots
from tests.support.gateway_bots import Message, RawBot

pytestmark = pytest.mark.e2e

LIMITS = Limits(decision_ms=2_000, hard_ms=4_000, grace_ms=300)
SHORT: dict[str, dict[str, Any]] = {
    "ace_king_queen": {"hands": 4},
    "gin_rummy": {"max_rounds": 2},
    "high_low": {"max_shuffles": 1},
    "three_card_poker": {"rounds": 3},
    "blackjack": {"hands": 3},
}


class ArenaWithPeople:
    """An arena with its page, and its people and bots."""

    def __init__(self, host: Host, store: Store, stack: AsyncExitStack) -> None:
        self.host = host
        self.store = store
        self._stack = stack
        self.verdicts: list[Verdict] = []

    async def opens(self, path: str = "") -> ClientConnection:
        opened = connect(self.host.url + path, compression=None)
        return await self._stack.enter_async_context(opened)

    async def bot(self, name: str, tables: int = 1, **hello: Any) -> RawBot:
        bot = RawBot(await self.opens(), name)
        await bot.hello(tables=tables, **hello)
        return bot

    async def asks(self, game: str, *against: str, **more: Any) -> Message:
        """The answer to a person who asks for a seat, at a new socket."""
        return await ask(await self.opens("/watch"), game, *against, **more)

    async def sits(self, game: str, *against: str, **more: Any) -> tuple[ClientConnection, RawBot]:
        """A person who has said hello: the socket at the page, and the one for the match."""
        eye = await self.opens("/watch")
        seat = await ask(eye, game, *against, **more)
        assert seat["type"] == "seat", seat
        return eye, await self.arrives(seat, game)

    async def arrives(self, seat: Message, game: str) -> RawBot:
        person = RawBot(await self.opens(), seat["name"])
        await person.hello(token=seat["token"], games=[game_named(game).name])
        return person

    def league(self, game: str, *players: str, **more: Any) -> Any:
        """Run a competition of these bots to its end."""
        rules = GAMES[game]
        settings = rules.vocabulary.read_settings(SHORT[game])
        plan = plan_of(rules, settings, players, limits=LIMITS, **more)
        return self.host.play(self.host.compete(plan))

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await asyncio.sleep(0.01)


async def ask(eye: ClientConnection, game: str, *against: str, **more: Any) -> Message:
    """Ask for a seat; returns the answer."""
    sit = {"type": "sit", "game": game, "name": "Pat", "against": against, **more}
    sit.setdefault("settings", SHORT[game_named(game).name])
    await eye.send(json.dumps(sit))
    answer: Message = json.loads(await eye.recv())
    return answer


def match_of(over: Message) -> str:
    match: str = over["match"].rpartition(".")[0]
    return match


@asynccontextmanager
async def opened(
    tmp_path: Path, limits: Limits = LIMITS, **options: Any
) -> AsyncIterator[ArenaWithPeople]:
    places: list[ArenaWithPeople] = []
    with Store(tmp_path / "arena.db") as store:
        async with (
            Host(
                store,
                limits=limits,
                page=Web,
                on_verdict=lambda verdict: places[0].verdicts.append(verdict),
                **options,
            ) as host,
            AsyncExitStack() as stack,
        ):
            places.append(ArenaWithPeople(host, store, stack))
            yield places[0]


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[ArenaWithPeople]:
    async with opened(tmp_path) as place:
        yield place


@pytest.mark.parametrize("game", GAMES)
async def test_a_person_plays_house_bots_in_every_game(place: ArenaWithPeople, game: str) -> None:
    bots = list(house_bots(game))
    seats = GAMES[game].seats
    against = [f"house:{bots[n % len(bots)]}" for n in range(seats - 1)]
    _, person = await place.sits(game, *against)
    match = await person.ready()
    assert match["seats"] == ["Pat", *against]
    assert match["limits"]["decision_ms"] == 600_000
    assert {k: match["settings"][k] for k in SHORT[game]} == SHORT[game]

    [over] = await person.play()
    assert over["termination"]["kind"] == "completed"
    code, _, closed = await person.refused()
    assert (code, closed) == ("", 1000)
    assert isinstance(place.host.web, Web)
    kept = place.host.web.people.record(match_of(over))
    assert kept is not None
    assert replay(kept.record).scores == tuple(over["scores"])
    assert place.store.competitions() == ()
    assert place.host.presence.names(game) == ()


async def test_a_person_plays_a_connected_bot_and_again(place: ArenaWithPeople) -> None:
    bob = await place.bot("bob")
    eye, person = await place.sits("akq", "bob")
    assert "first" in (await ask(eye, "tcp"))["text"]
    (over,), _ = await asyncio.gather(person.play(), bob.play())
    assert over["termination"]["kind"] == "completed"
    assert await person.closed() == 1000

    seat = await ask(eye, "akq", "bob")
    person = await place.arrives(seat, "akq")
    await asyncio.gather(person.play(), bob.play())
    assert bob.overs[0]["match"] != bob.overs[1]["match"]
    assert place.host.presence.names("ace_king_queen") == ("bob",)


async def test_a_competition_that_needs_the_bot_takes_it(place: ArenaWithPeople) -> None:
    bob, eve = await place.bot("bob"), await place.bot("eve")
    _, person = await place.sits("akq", "bob")
    await person.ready()
    invited = await bob.ready()
    assert invited["seats"] == ["Pat", "bob"]
    await person.hears("ask")
    competition = asyncio.create_task(place.league("ace_king_queen", "bob", "eve"))
    over = await person.hears("over")
    assert over["termination"]["kind"] == "void"
    assert over["termination"]["text"] == "bob has to play in a competition"
    await person.closed()
    await bob.hears("over")
    refused = await place.asks("akq", "bob")
    assert (refused["code"], "got 'bob'" in refused["text"]) == ("sit", True)

    playing = [asyncio.create_task(bot.play()) for bot in (bob, eve)]
    report = await competition
    await asyncio.gather(*playing)
    assert (report.played, report.verdicts) == (1, ())
    assert (await place.asks("akq", "bob"))["type"] == "seat"


async def test_people_and_their_house_bots_are_on_no_ladder(place: ArenaWithPeople) -> None:
    bob, eve = await place.bot("bob"), await place.bot("eve")
    bot = next(iter(house_bots("ace_king_queen")))
    _, person = await place.sits("akq", f"house:{bot}")
    await person.ready()
    ladder = asyncio.create_task(place.league("ace_king_queen", form=Form.LADDER, pause_s=0.0))
    (_, over), _ = await asyncio.gather(bob.play(2), eve.play(2))
    assert over["termination"]["kind"] == "completed"
    [competition] = place.host.competitions
    names = {name for row in competition.ledger.book.rows for name in (row.name,)}
    assert names == {"bob", "eve"}
    assert [player.name for player in competition.arbiter.plays()] == ["bob", "eve"]
    await person.play()

    ladder.cancel()
    await asyncio.gather(ladder, return_exceptions=True)


@pytest.mark.parametrize("offender", ["Pat", "bob"])
async def test_an_offence_ends_the_match_and_is_told_to_nobody_else(
    place: ArenaWithPeople, offender: str
) -> None:
    bob = await place.bot("bob", tables=2)
    _, person = await place.sits("akq", "bob")
    await person.ready()
    await bob.ready()
    question = await person.hears("ask")
    if offender == "Pat":
        await person.answer(question, "all in")
    else:
        await person.answer(question, "bet")
        await bob.answer(await bob.hears("ask"), "all in")
    mine, other = await person.hears("over"), await bob.hears("over")

    seat = ["Pat", "bob"].index(offender)
    for over in (mine, other):
        assert over["termination"]["kind"] == "illegal"
        assert over["termination"]["seat"] == seat
    verdicts = [page["verdict"] for page in (mine, other) if page.get("verdict")]
    assert [verdict["bot"] for verdict in verdicts] == [offender]
    assert place.verdicts == []
    assert isinstance(place.host.web, Web)
    kept = place.host.web.people.record(match_of(mine))
    assert kept is not None
    assert kept.verdict is not None
    assert place.store.verdicts() == ()

    await person.closed()
    _, again = await place.sits("akq", "bob")
    await asyncio.gather(again.play(), bob.play())


@pytest.mark.parametrize("how", ["stand", "goodbye", "lost"])
async def test_a_person_who_goes_has_lost_and_the_bot_is_free(
    place: ArenaWithPeople, how: str
) -> None:
    bob = await place.bot("bob")
    eye, person = await place.sits("akq", "bob")
    await person.ready()
    await bob.ready()
    await person.hears("ask")
    if how == "stand":
        await eye.send('{"type":"stand"}')
        over = await person.hears("over")
        assert "stood up" in over["termination"]["text"]
    elif how == "goodbye":
        await person.say(type="goodbye")
    else:
        await person.vanish()
    over = await bob.hears("over")
    assert (over["termination"]["kind"], over["termination"]["seat"]) == (*("disconnect", 0),)
    await place.until(lambda: not place.host.non_competing)
    assert place.host.presence.names("ace_king_queen") == ("bob",)
    assert place.verdicts == []


async def test_a_person_whose_connection_is_lost_comes_back(tmp_path: Path) -> None:
    async with opened(tmp_path, msgspec.structs.replace(LIMITS, grace_ms=20_000)) as place:
        _, person = await place.sits("tcp")
        await person.ready()
        await person.hears("ask")
        await person.vanish()
        back = RawBot(await place.opens(), "Pat")
        hello = person.a_hello(resume=person.session, games=["three_card_poker"])
        token = place.host.gateway.players["Pat"].token
        await back.say(**(hello | {"token": token}))
        await back.hears("welcome")
        [over] = await back.play()
        assert over["termination"]["kind"] == "completed"


async def test_a_page_that_is_closed_frees_the_chair_that_nobody_took(
    place: ArenaWithPeople,
) -> None:
    eye = await place.opens("/watch")
    seat = await ask(eye, "tcp")
    await eye.close()
    await place.until(lambda: not place.host.non_competing)
    late = RawBot(await place.opens(), seat["name"])
    await late.say(**late.a_hello(name="Late", token=seat["token"]))
    refused = await late.hears("refused")
    assert (refused["code"], refused["text"].count("sit down")) == ("token", 1)
    assert place.host.presence.names("three_card_poker") == (), "a person is no bot"


async def test_so_many_for_one_person_and_more_from_one_address(place: ArenaWithPeople) -> None:
    answers = [await place.asks("tcp") for _ in range(5)]
    assert [answer["type"] for answer in answers] == ["seat"] * 4 + ["refused"]
    assert answers[-1]["code"] == "sit"
    assert "at most 4 tables for one person" in answers[-1]["text"]

    cookie = await fetched(place, "/", "Set-Cookie: ")
    opened = connect(place.host.url + "/watch", additional_headers={"Cookie": cookie})
    assert cookie.startswith("arena-browser=")
    async with opened as eye:
        assert (await ask(eye, "tcp"))["name"] == "Pat 5", cookie


async def test_who_plays_too_fast_for_a_person_is_read_more_slowly_and_bots_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rested: list[str] = []
    rest = Connection.rest

    def counted(connection: Connection, until: float) -> None:
        rested.append(connection.peer)
        rest(connection, until)

    monkeypatch.setattr(Connection, "rest", counted)
    monkeypatch.setattr("arena.web.play.tables._SAVED_EACH_S", 0.0)
    monkeypatch.setattr("arena.web.play.tables._SHARE_EACH", 0.5)

    async with opened(tmp_path) as place:
        bob = await place.bot("bob")
        _, person = await place.sits("akq", "bob")
        peer = place.host.gateway.players["Pat"].connection
        assert peer is not None
        (over,), _ = await asyncio.gather(person.play(), bob.play())

        assert over["termination"]["kind"] == "completed", "it was only slower"
        assert len(rested) > 2, "at what it sent"
        assert set(rested) == {peer.peer}


async def test_nobody_takes_the_chair_or_the_name_of_another(place: ArenaWithPeople) -> None:
    seat = await place.asks("tcp")
    thief = RawBot(await place.opens(), "Pat")
    await thief.say(**thief.a_hello())
    assert (await thief.refused())[0] == "name"
    assert (await place.asks("tcp"))["name"] == "Pat 2"

    person = await place.arrives(seat, "three_card_poker")
    again = RawBot(await place.opens(), "Pat")
    await again.say(**again.a_hello(token=seat["token"]))
    assert (await again.refused())[0] == "token"
    await person.play()


async def test_where_tokens_are_needed_people_need_one(tmp_path: Path) -> None:
    with Store(tmp_path / "arena.db") as store:
        roster = Roster(store.engine)
        [ann] = roster.take([Student(name="ann")]).new
        eva = roster.instructor("Eva")

    async with opened(tmp_path, requires_token=True) as place:
        assert (await place.asks("tcp"))["code"] == "token"
        guessed = await place.opens("/watch")
        assert (await ask(guessed, "tcp", token="guessed"))["code"] == "token"
        with pytest.raises(ConnectionClosed):
            await guessed.recv()

        own = await place.bot("ann", token=ann.token)
        eye, person = await place.sits("akq", "ann", name="ann", token=ann.token)
        assert person.name == "ann/person"
        await asyncio.gather(person.play(), own.play())
        taken = await place.asks("tcp", name="ann", token=eva)
        assert taken["code"] == "token"
        seat = await place.asks("tcp", name="Eva", token=eva)
        assert seat["name"] == "Eva"
        await (await place.arrives(seat, "three_card_poker")).play()
        await eye.close()


async def test_a_house_bot_that_is_killed_ends_its_match_and_is_started_again(
    place: ArenaWithPeople,
) -> None:
    bot = next(iter(house_bots("ace_king_queen")))
    _, person = await place.sits("akq", f"house:{bot}")
    await person.ready()
    await person.hears("ask")
    ours = place.host.supervisor._ours[f"house:{bot}"].launched
    assert ours is not None
    os.kill(ours.pid, signal.SIGKILL)
    over = await person.hears("over")
    assert (over["termination"]["kind"], over["termination"]["seat"]) == (*("crash", 1),)
    await person.closed()
    _, again = await place.sits("akq", f"house:{bot}")
    [over] = await again.play()
    assert over["termination"]["kind"] == "completed"


async def test_what_people_played_can_be_stepped_through(place: ArenaWithPeople) -> None:
    _, person = await place.sits("tcp")
    [over] = await person.play()
    match = match_of(over)
    document = await fetched(place, f"/api/matches/{match}.json")

    assert document["players"] == ["Pat"]
    assert document["competition"] is None
    assert document["view"]["kind"] == "all"
    rounds = await fetched(place, f"/api/matches/{match}/rounds.json?from=1&to=3")
    assert len(rounds["rounds"]) == 3


async def fetched(place: ArenaWithPeople, path: str, header: str = "") -> Any:
    """A document, as a browser gets it; or a header that came with it."""
    host, _, port = place.host.url.removeprefix("ws://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET {path} HTTP/1.0\r\nHost: {host}:{port}\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    assert head.startswith(b"HTTP/1.1 200"), (head, body)
    if header:
        return head.decode().partition(header)[2].partition("\r\n")[0]
    return json.loads(body)
