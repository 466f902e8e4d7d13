"""The arena's process is stopped for a while, and nobody pays for it (J7).

Bots wait, come, come back and close meanwhile. All play at the same time, against one arena that is
stopped once, for longer than each of its limits. Each test is about one bot.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

import pytest
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.uri import parse_uri

from tests.support.gateway_bots import RawBot
from tests.support.plain_bot import IMPATIENT, KEEPALIVE, PlainBot
from tests.support.served_arena import ServedArena, outcomes_of, run_of

if TYPE_CHECKING:
    from tests.support.served_arena import PlayedCases, ReconnectingRawBot

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform == "win32", reason="it has no SIGSTOP"),
]

LIMIT_S = 5.0
STALL_S = 6.5
SET_UP_S = 1.5  # until all bots wait as they should
SOON_S = 0.7  # after the stall
NEARLY_S = LIMIT_S - 1.5
LATER_S = 7.0  # then a loss is no longer put down to the stall
LIMITS = {name: int(LIMIT_S * 1000) for name in ("grace_ms", "hello_ms", "start_ms")}
LIMITS |= {"decision_ms": 20_000, "hard_ms": 20_000}  # nobody is out of time


class EagerClient:
    """A connection that sends hello without waiting for the response to its handshake."""

    def __init__(self, url: str, reader: asyncio.StreamReader, writer: Any) -> None:
        self._wire = ClientProtocol(parse_uri(url), max_size=None)
        self._reader, self._writer = reader, writer
        self._heard: list[str] = []
        self._wire.send_request(self._wire.connect())
        writer.write(b"".join(self._wire.data_to_send()))

    async def send(self, text: str) -> None:
        self._writer.write(Frame(Opcode.TEXT, text.encode()).serialize(mask=True))

    async def recv(self) -> str:
        while not self._heard:
            data = await self._reader.read(65536)
            assert data, "the arena has closed"
            self._wire.receive_data(data)
            for event in self._wire.events_received():
                if isinstance(event, Frame) and event.opcode is Opcode.TEXT:
                    self._heard.append(bytes(event.data).decode())
            self._writer.writelines(self._wire.data_to_send())  # pongs
        return self._heard.pop(0)

    def close(self) -> None:
        self._writer.close()


async def comes_eagerly(arena: ServedArena, name: str, **fields: Any) -> None:
    """Say hello to an arena that is stopped, and play a match afterwards."""
    await arena.stands.wait()
    await asyncio.sleep(0.2)
    streams = await asyncio.open_connection("127.0.0.1", arena.port)
    eager = EagerClient(arena.url(), *streams)
    try:
        bot = RawBot(eager, name)  # type: ignore[arg-type]
        await bot.hello(games=["three_card_poker"], **fields)
        await bot.play()
    finally:
        eager.close()


async def after_the_stall(arena: ServedArena, for_s: float = SOON_S) -> None:
    await arena.stood.wait()
    await asyncio.sleep(for_s)


async def is_asked(arena: ServedArena, name: str) -> ReconnectingRawBot:
    hand = await arena.bot(name)
    await hand.asked()
    return hand


async def closes(hand: ReconnectingRawBot, reason: str) -> None:
    await hand.websocket.close(1011, reason)


async def returns(hand: ReconnectingRawBot) -> None:
    """Come back, and play to the end."""
    await (await hand.back()).finishes()


# ---- Timers that fire late


async def grace_in_socket(arena: ServedArena, name: str) -> None:
    hand = await is_asked(arena, name)
    await asyncio.sleep(SET_UP_S / 2)
    await hand.vanish()
    await comes_eagerly(arena, name, resume=hand.session)


async def grace_after(arena: ServedArena, name: str) -> None:
    hand = await is_asked(arena, name)
    await hand.vanish()
    await after_the_stall(arena)
    await returns(hand)


async def wait_in_socket(arena: ServedArena, name: str) -> None:
    await comes_eagerly(arena, name)


async def wait_after(arena: ServedArena, name: str) -> None:
    await after_the_stall(arena)
    await (await arena.bot(name)).finishes()


async def there(arena: ServedArena, name: str) -> None:
    """A bot that is there, so that the runs begin in which others are waited for."""
    await (await arena.bot(name, tables=8)).play(2)


async def hello_in_socket(arena: ServedArena, name: str) -> None:
    hand = await arena.reach(name)
    await arena.stands.wait()
    await hand.enters()


async def hello_after(arena: ServedArena, name: str) -> None:
    hand = await arena.reach(name)
    await after_the_stall(arena)
    await hand.enters()


async def starts(arena: ServedArena, name: str, when: Awaitable[object]) -> None:
    hand = await arena.bot(name)
    match = await hand.hears("match")
    await when
    await hand.say(type="ready", match=match["match"], nonce="n")
    await hand.finishes()


async def start_in_socket(arena: ServedArena, name: str) -> None:
    await starts(arena, name, arena.stands.wait())


async def start_after(arena: ServedArena, name: str) -> None:
    await starts(arena, name, after_the_stall(arena))


LATE = (
    *(grace_in_socket, grace_after, wait_in_socket, wait_after),
    *(hello_in_socket, hello_after, start_in_socket, start_after),
)


# ---- 1011


async def raises_soon_after(arena: ServedArena, name: str) -> None:
    hand = await is_asked(arena, name)
    await after_the_stall(arena)
    await closes(hand, "")
    await returns(hand)


async def raises_long_after(arena: ServedArena, name: str) -> None:
    hand = await is_asked(arena, name)
    await after_the_stall(arena, LATER_S)
    await closes(hand, "")


async def keepalive_without_a_stall(arena: ServedArena, name: str) -> None:
    hand = await is_asked(arena, name)
    await closes(hand, KEEPALIVE)
    await returns(hand)


async def keepalive_while_idle(arena: ServedArena, name: str) -> None:
    """Its close arrives before its new connection."""
    hand = await arena.bot(name, game="blackjack")
    await closes(hand, KEEPALIVE)
    await hand.back()


async def keepalive_in_play(arena: ServedArena, name: str) -> PlainBot:
    """A client with the usual keepalive, which is asked while the arena is stopped."""
    bot = PlainBot(arena.url(), name, ["three_card_poker"], **IMPATIENT)
    bot.before_answer = lambda ask: after_the_stall(arena, 0)
    await bot.play_one()
    return bot


async def keepalive_between_matches(arena: ServedArena, name: str) -> PlainBot:
    """The same, but it is not asked before the stall is over."""
    bot = PlainBot(arena.url(), name, ["ace_king_queen"], **IMPATIENT)
    await bot.play_one()
    return bot


async def the_other(arena: ServedArena, name: str) -> None:
    """The opponent of `keepalive_between_matches`."""
    await after_the_stall(arena, LATER_S)
    await (await arena.bot(name, game="ace_king_queen")).play()


async def loses_twice(arena: ServedArena, name: str) -> None:
    """A loss by the stall, and one of its own: together they are longer than the grace."""
    hand = await is_asked(arena, name)
    await arena.stands.wait()
    closing = asyncio.create_task(closes(hand, KEEPALIVE))
    await after_the_stall(arena, NEARLY_S)
    await closing
    hand = await hand.back()
    await hand.answer(await hand.asked())
    await hand.hears("ask")
    await (await hand.loses(NEARLY_S)).finishes()


LOST = (
    *(raises_soon_after, keepalive_without_a_stall, keepalive_while_idle),
    *(keepalive_in_play, keepalive_between_matches, loses_twice),
)
CRASHED = (raises_long_after,)
CASES = {case.__name__: case for case in (*LATE, *LOST, *CRASHED, there, the_other)}
ALONE = (
    *(grace_in_socket, grace_after, start_in_socket, start_after),
    *(raises_soon_after, raises_long_after, keepalive_without_a_stall),
    *(keepalive_in_play, loses_twice),
)
AWAITED = (wait_in_socket, wait_after)
RUNS = [
    *(run_of(case.__name__) for case in ALONE),
    *(run_of(case.__name__, "there", least=1, wait_s=int(LIMIT_S)) for case in AWAITED),
    run_of(
        *("keepalive_between_matches", "the_other"),
        game="ace_king_queen",
        least=1,
        settings={"hands": 20},
    ),
]


async def stall(arena: ServedArena) -> None:
    await asyncio.sleep(SET_UP_S)
    await arena.stands_still(STALL_S)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> PlayedCases:
    folder = tmp_path_factory.mktemp("stalls")
    return outcomes_of(ServedArena(folder, LIMITS, RUNS), CASES, stall)


def each(cases: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [case.__name__ for case in cases])


@each(LATE)
def test_J7_every_deadline_is_moved_by_the_time_in_which_the_arena_stood_still(
    outcome: PlayedCases, case: str
) -> None:
    assert outcome.words(case) == []
    outcome.of(case)


@each(LOST)
def test_J7_a_close_by_keepalive_or_after_a_stall_is_a_lost_connection(
    outcome: PlayedCases, case: str
) -> None:
    assert outcome.words(case) == []
    outcome.of(case)


@each((keepalive_in_play, keepalive_between_matches))
def test_the_client_had_closed_by_its_keepalive_and_was_known_again(
    outcome: PlayedCases, case: str
) -> None:
    bot = outcome.of(case)

    assert any(KEEPALIVE in loss for loss in bot.losses)
    assert bot.forgotten == 0


@each(CRASHED)
def test_J2_any_other_1011_is_a_crash(outcome: PlayedCases, case: str) -> None:
    outcome.of(case)

    assert outcome.words(case) == ["crash"]


@each((there, the_other))
def test_nobody_else_is_out(outcome: PlayedCases, case: str) -> None:
    outcome.of(case)

    assert outcome.words(case) == []


def test_the_arena_has_not_raised(outcome: PlayedCases) -> None:
    assert "Traceback" not in outcome.said
