"""Bots that are away, or late for a reason that is not theirs (J7): timelines in virtual time.

A bot plays against the dealer in a run of its own, and is asked in its first round. A line of words
is what it does then:

    ask, again       hears its next question; the one that it has heard before
    answers, plays   answers it; goes on until its match is over
    bank=20000       that question shows so much of its bank
    goes, back       its connection is lost; it comes back with its session, `back=0` without its
                     memory, and is told the past
    grace=29.5       so much of the grace is left to its match
    anew             it has forgotten its session
    replaces         it comes back before the arena has noticed that it was away
    opens, hello, welcome    the steps of coming back, or of coming
    closes=REASON    it closes its connection with 1011
    drops=7.5        it loses its connection for so long at every question, until it is out
    dead, alive      its network passes nothing on, and does again; nobody closes
    cut              its keepalive has closed the connection, a second after a ping was not answered
    freezes, thaws   its program stands still, and its machine goes on
    +20, stall=40    time goes by; the arena's process stands still meanwhile
    ~hello           what it sends, here its hello, arrives while the arena stands still
    refused=CODE     it is not let in

A line that begins with `new` is of a bot that has not come yet, one with `idle` of a bot that plays
nothing, and one with `match` of a bot that has not said that it is ready. Limits are the usual
ones: 1 s a decision and 20 s in the bank, 15 s at most; 10 s to say hello and ready, 30 s of grace.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from protocol.messages import Limits
from tests.support.arena_in_memory import HostArena, in_host, plan_for
from tests.support.gateway_bots import Message, RawBot
from tests.support.memory_network import line_of
from tests.support.virtual_time import virtual_loop

pytestmark = pytest.mark.virtual_time(limit_s=300)

GAME = "three_card_poker"  # for one player, who waits for nobody else
LIMITS = Limits()
MACHINE = "10.0.0.7"
KEEPALIVE = "keepalive_ping_timeout"  # how `websockets` closes a connection without pongs
LATENCY_S = 0.5

ROWS = {
    "J7 the clock stands while the connection is lost": "goes +20 back again answers ask bank=20000 plays",
    "J7 the clock stands until the transcript is told": (
        "answers ask goes +20 back=0 again answers ask bank=20000 plays"
    ),
    "J7 it does not stand on a line that is whole": "+6 answers ask bank=15000 plays",
    "J7 who drops at every question gains the grace once": "drops=7.5 > disconnect",
    "J7 two losses in one match add up": "goes +20 back again answers ask goes +11 > disconnect",
    "J7 a loss within the grace and one after it": "goes +31 > disconnect",
    "J7 who stands still on a machine that does not is out of time": "freezes +16 thaws > timeout",
    "J2 who has not come back in time is new": (
        "goes +31 opens hello refused=session anew opens hello welcome > disconnect"
    ),
    "J7 who has no match keeps its session for the grace": "idle goes +29 back",
    "without matches it may come back with or without its session": (
        "idle goes back goes anew opens hello welcome +31 goes back"
    ),
    "a second connection with the session replaces the first": "replaces again answers plays",
    "J7 and no longer": "idle goes +31 opens hello refused=session",
    # --- a network that is dead, a machine that sleeps ---
    "J7 an answer counts after an outage in which nobody closed": "dead +20 alive answers ask plays",
    "J7 also one that was sent while packets were lost": "dead +3 answers +17 alive ask plays",
    "J7 a client whose keepalive closed comes back": "dead cut +15 alive back again answers plays",
    "J7 also one that plays nothing": "idle dead cut +15 alive back",
    "J9 who sleeps for a minute is not out, whoever closes": "dead cut +60 alive back again answers plays",
    "J9 what was silence and is closed then has the whole grace": (
        "dead +100 alive goes +29 back again grace=1 answers plays"
    ),
    "J9 who sleeps for longer than its silence is disconnected": "freezes dead +123 alive > disconnect",
    # --- the arena's process stands still, for longer than each of its limits ---
    "J7 grace, back in the socket": "goes opens ~hello stall=40 welcome again answers plays",
    "J7 grace, back soon after": "goes stall=40 +0.7 back again answers plays",
    "J7 coming, in the socket": "new opens ~hello stall=40 welcome match ready ask answers plays",
    "J7 coming soon after": "new +1 stall=40 +0.7 opens hello welcome match ready ask answers plays",
    "J7 not coming at all": "new +1 stall=40 +61 > absent",
    "J7 hello in the socket": "new opens ~hello stall=40 welcome match ready ask plays",
    "J7 hello soon after": "new opens stall=40 +0.7 hello welcome match ready ask plays",
    "J7 ready in the socket": "match ~ready stall=40 ask plays",
    "J7 ready soon after": "match stall=40 +0.7 ready ask plays",
    "J7 an answer in the socket": "~answers stall=40 ask bank=20000 plays",
    "J7 an answer soon after": "stall=40 answers ask bank=20000 plays",
    "J7 a crash soon after a stall is none": "stall=40 +0.7 closes= back again answers plays",
    "J7 a crash in the socket is none": "~closes= stall=40 back again answers plays",
    "J2 a crash long after a stall is one": "stall=40 +7 closes= > crash",
    "J2 a crash without a stall is one": "closes=KeyError > crash",
    "J2 who says that it failed has, after a stall too": "stall=40 +0.7 closes=failed:_x > crash",
    "J2 also if that came while the arena stood still": "~closes=failed:_x stall=40 > crash",
    "J2 also if it failed at a keepalive of its own": "closes=Failed:_heartbeat > crash",
    "J7 a close by keepalive is none": f"closes={KEEPALIVE} back again answers plays",
    "J7 a keepalive that failed is a lost connection": (
        "closes=Ping_timeout:_no_pong +0.5 back again grace=29.5 answers plays"
    ),
    "J7 a close after a stall of the arena is a lost connection": (
        "stall=40 closes=no_answer +0.5 back again grace=30 answers plays"
    ),
    "J7 nor is one of a bot that plays nothing": f"idle closes={KEEPALIVE} back",
    "J7 a loss by the stall and one of its own each have the grace": (
        f"~closes={KEEPALIVE} stall=40 +25 back again answers ask goes +4 back again answers plays"
    ),
}


class AwayBot:
    """A bot that does what its words say."""

    def __init__(self, arena: HostArena, *, has_keepalive: bool) -> None:
        self._arena = arena
        self._keepalive = {"ping_interval": 1, "ping_timeout": 1} if has_keepalive else {}
        self._asks: list[Message] = [{"ask": None}]
        self._match = ""
        self._resumes: dict[str, Any] = {}
        self.bot: RawBot

    async def does(self, words: str) -> None:
        for word in words.split():
            name, _, about = word.lstrip("~").partition("=")
            if word.startswith("~"):
                line_of(self.bot.websocket.transport).latency_s = LATENCY_S
            if name.startswith("+"):
                await asyncio.sleep(float(name))
            else:
                await getattr(self, name)(*([about] if "=" in word else []))

    # --- coming and going ---

    async def opens(self) -> None:
        options: dict[str, Any] = {"ping_interval": None, "close_timeout": 1, **self._keepalive}
        websocket = await connect(
            self._arena.url, compression=None, local_addr=(MACHINE, 0), **options
        )
        self.bot = RawBot(websocket, "ann")

    async def hello(self) -> None:
        await self.bot.say(**self.bot.a_hello(games=[GAME], **self._resumes))

    async def welcome(self) -> None:
        self._resumes = {"resume": (await self.bot.hears("welcome"))["session"]}

    async def back(self, known: str = "") -> None:
        await self.opens()
        self._resumes |= {"from": int(known)} if known else {}
        await self.hello()
        await self.welcome()
        if known:
            await self.does("match ready")
            past = await self.bot.hears("past")
            assert past["ask"] != self._asks[-1]["ask"]

    async def goes(self) -> None:
        await self.bot.vanish()

    async def closes(self, reason: str) -> None:
        closing = asyncio.ensure_future(self.bot.websocket.close(1011, reason.replace("_", " ")))
        await asyncio.sleep(0)
        if not line_of(self.bot.websocket.transport).latency_s:
            await closing

    async def cut(self) -> None:
        with pytest.raises(ConnectionClosed, match=KEEPALIVE.replace("_", " ")):
            await self.bot.hear()

    async def replaces(self) -> None:
        first = self.bot
        await self.back()
        assert await first.closed() == 4000

    async def anew(self) -> None:
        self._resumes.clear()

    async def grace(self, left_s: str) -> None:
        [seat] = self._arena.gateway.players["ann"].chairs.values()
        assert seat.grace_s == pytest.approx(float(left_s), abs=0.05)

    async def refused(self, code: str) -> None:
        assert (await self.bot.refused())[0] == code

    async def drops(self, for_s: str) -> None:
        grace_s, away_s = LIMITS.grace_ms / 1000, float(for_s)
        for _ in range(int(grace_s / away_s)):
            await self.does(f"goes +{away_s - 0.01} back again answers ask")
        await self.does(f"goes +{away_s}")

    # --- playing ---

    async def match(self) -> None:
        self._match = (await self.bot.hears("match"))["match"]

    async def ready(self) -> None:
        await self.bot.say(type="ready", match=self._match, nonce="n")

    async def ask(self) -> None:
        question = await self.bot.hears("ask")
        assert question["ask"] != self._asks[-1]["ask"]
        self._asks.append(question)

    async def again(self) -> None:
        question = await self.bot.hear()
        if question["type"] == "match":
            self._match = question["match"]
            await self.ready()
            question = await self.bot.hear()
        assert question["ask"] == self._asks[-1]["ask"]
        self._asks[-1] = question

    async def bank(self, left_ms: str) -> None:
        assert self._asks[-1]["bank_ms"] == int(left_ms)

    async def answers(self) -> None:
        legal = self._asks[-1]["legal"]  # the least, so that the match is not over soon
        least = legal["min"] if isinstance(legal, dict) else legal[0]
        await self.bot.answer(self._asks[-1], least)

    async def plays(self) -> None:
        if len(self._asks) > 1:
            await self.answers()
        await self.bot.play()

    # --- what becomes of it ---

    async def dead(self) -> None:
        virtual_loop().network.dead.add(MACHINE)

    async def alive(self) -> None:
        virtual_loop().network.dead.clear()

    async def freezes(self) -> None:
        self.bot.websocket.transport.pause_reading()

    async def thaws(self) -> None:
        self.bot.websocket.transport.resume_reading()

    async def stall(self, for_s: str) -> None:
        await asyncio.sleep(0)
        virtual_loop().stands_still(float(for_s))
        for line in virtual_loop().network.lines:
            line.latency_s = 0.0


@pytest.mark.parametrize("title", ROWS)
async def test_who_is_away_or_late_pays_for_its_own_part(title: str) -> None:
    words, _, verdict = ROWS[title].partition(" > ")
    begins, _, others = words.partition(" ")
    first = {"new": "", "idle": "", "match": "match"}.get(begins, "match ready ask")
    virtual_loop().network.latency_s = 0.0
    async with in_host(limits=LIMITS) as arena:
        bot = AwayBot(arena, has_keepalive="cut" in words)
        if begins != "new":
            await bot.does("opens hello welcome")
        playing = None
        if begins != "idle":
            plan = plan_for(GAME, ("ann",), settings={"rounds": 20}, limits=LIMITS, wait_s=30)
            playing = arena.begin(plan)
        await bot.does(f"{first} {others if begins in ('new', 'idle', 'match') else words}")
        if playing is not None:
            report = await playing
            assert " ".join(each.kind for each in report.verdicts) == verdict
