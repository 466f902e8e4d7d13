"""A lost connection is not a timeout, and costs its grace (J7): bots against a real arena.

All play at the same time, each in a run of its own. Each test is about one of them.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.served_arena import REAL, NotLetIn, ServedArena, outcomes_of, run_of

if TYPE_CHECKING:
    from tests.support.served_arena import PlayedCases

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform != "linux", reason="it looks at /proc"),
]

LIMITS = {"decision_ms": 500, "bank_ms": 2_000, "hard_ms": 3_000, "grace_ms": 6_000}
# Longer than a decision may take, but not than the grace; longer than the grace; a part of it.
AWAY_S, OUT_S, DROP_S = 4.5, 10.0, 1.5
if REAL:
    LIMITS = {"decision_ms": 1_000, "bank_ms": 20_000}
    LIMITS |= {"hard_ms": 15_000, "grace_ms": 30_000}
    AWAY_S, OUT_S, DROP_S = 20.0, 31.0, 7.5
MOST_DROPS = 5  # within the grace, and one in which it ends
TABLES = 64
LONG: Any = {"rounds": 100_000, "stake": 1_000_000}


async def answers_after(arena: ServedArena, name: str) -> Any:
    """Loses its connection while it is asked: the question before and after, and the next one."""
    hand = await arena.bot(name)
    before = await hand.asked()
    hand = await hand.loses(AWAY_S)
    after = await hand.asked()
    return before, after, await hand.answers_and_finishes(after)


async def starts_again(arena: ServedArena, name: str) -> Any:
    """As above, but it has lost its memory, too; and what it is told of the past."""
    hand = await arena.bot(name)
    await hand.answer(await hand.asked())
    before = await hand.hears("ask")
    hand = await hand.loses(AWAY_S, **{"from": 0})
    await hand.ready()
    past = await hand.hears("past")
    after = await hand.asked()
    return before, past, after, await hand.answers_and_finishes(after)


async def drops_always(arena: ServedArena, name: str, for_s: float = DROP_S) -> int:
    """Loses its connection at every question, until it is out or refused: how often."""
    hand = await arena.bot(name)
    dropped: list[str] = []
    while True:
        match await hand.hear():
            case {"type": "match"} as message:
                await hand.say(type="ready", match=message["match"], nonce="n")
            case {"type": "ask"} as message if message["ask"] in dropped:
                legal = message["legal"]  # the least, so that the match is not over soon
                least = legal["min"] if isinstance(legal, dict) else legal[0]
                await hand.answer(message, least)
            case {"type": "ask"} as message:
                dropped.append(message["ask"])
                try:
                    hand = await hand.loses(for_s)
                except NotLetIn:
                    return len(dropped)
            case _:
                return len(dropped)


async def drops_twice(arena: ServedArena, name: str) -> int:
    """Two losses, each of which is within the grace."""
    return await drops_always(arena, name, AWAY_S)


async def many_tables(arena: ServedArena, name: str) -> None:
    """Is asked at all of its tables, and is away for too long."""
    hand = await arena.bot(name, tables=TABLES)
    # The matches are offered within some seconds, before it has to be ready for the first.
    matches = [(await hand.hears("match"))["match"] for _ in range(TABLES)]
    for match in matches:
        await hand.say(type="ready", match=match, nonce="n")
    for _ in range(TABLES):
        await hand.hears("ask")
    with suppress(NotLetIn):
        await hand.loses(OUT_S)


async def beside_them(arena: ServedArena, name: str) -> None:
    """Plays in the same competition, and notices nothing."""
    await (await arena.bot(name, tables=8)).play(TABLES)


async def stands_still(arena: ServedArena, name: str) -> None:
    """Its process is stopped for as long as others are away, and its kernel goes on."""
    process = await arena.frozen(name)
    await asyncio.sleep(AWAY_S)
    process.send_signal(signal.SIGCONT)


async def idle(arena: ServedArena, name: str, for_s: float = AWAY_S) -> str:
    """Loses its connection while it plays nothing: the answer when it comes back."""
    hand = await arena.bot(name, game="blackjack")
    try:
        await hand.loses(for_s)
    except NotLetIn as refused:
        return str(refused)
    return "welcome"


async def idle_for_long(arena: ServedArena, name: str) -> str:
    return await idle(arena, name, OUT_S)


CASES = {
    case.__name__: case
    for case in (
        *(answers_after, starts_again, drops_always, drops_twice, many_tables),
        *(beside_them, stands_still, idle, idle_for_long),
    )
}
RUNS = [
    *map(run_of, ("answers_after", "starts_again")),
    run_of("drops_always", settings={"rounds": 20}),
    run_of("drops_twice", settings={"rounds": 20}),
    run_of("many_tables", "beside_them", matches=TABLES, least=2),
    run_of("stands_still", settings=LONG),
]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> PlayedCases:
    folder = tmp_path_factory.mktemp("lost")
    return outcomes_of(ServedArena(folder, LIMITS, RUNS), CASES)


def test_J7_the_clock_stands_while_the_connection_is_lost(outcome: PlayedCases) -> None:
    assert outcome.words("answers_after") == []
    before, after, following = outcome.of("answers_after")
    assert after["ask"] == before["ask"]
    assert following["bank_ms"] == LIMITS["bank_ms"]


def test_J7_the_clock_stands_until_the_transcript_is_told(outcome: PlayedCases) -> None:
    assert outcome.words("starts_again") == []
    before, past, after, following = outcome.of("starts_again")
    assert past["ask"] != after["ask"] == before["ask"]
    assert following["bank_ms"] == LIMITS["bank_ms"]


def test_J7_who_drops_at_every_question_gains_the_grace_once(outcome: PlayedCases) -> None:
    assert outcome.words("drops_always") == ["disconnect"]
    assert 2 <= outcome.of("drops_always") <= MOST_DROPS


def test_J7_two_losses_in_one_match_add_up(outcome: PlayedCases) -> None:
    assert outcome.words("drops_twice") == ["disconnect"]
    assert outcome.of("drops_twice") == 2


def test_J7_many_tables_on_one_lost_connection_are_one_offence(outcome: PlayedCases) -> None:
    outcome.of("many_tables")

    assert outcome.words("many_tables") == ["disconnect"]


def test_J3_nobody_else_is_harmed_by_that(outcome: PlayedCases) -> None:
    outcome.of("beside_them")
    played = [
        match.kind
        for match in outcome.book.matches.values()
        if match.players == ("beside_them",) and match.counts
    ]

    assert outcome.words("beside_them") == []
    assert played == ["completed"] * TABLES


def test_J7_who_stands_still_on_a_machine_that_does_not_is_out_of_time(
    outcome: PlayedCases,
) -> None:
    outcome.of("stands_still")

    assert outcome.words("stands_still") == ["timeout"]


def test_J7_who_has_no_match_keeps_its_session_for_the_grace(outcome: PlayedCases) -> None:
    assert outcome.of("idle") == "welcome"
    assert outcome.of("idle_for_long") == "session"


def test_the_arena_has_not_raised(outcome: PlayedCases) -> None:
    assert "Traceback" not in outcome.said
