"""Work that is done several pieces at once: its results come in order."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from arena.lab.in_order import InOrder


class HeldWork:
    """Pieces of work that end when a test says."""

    def __init__(self) -> None:
        self.begun: dict[int, asyncio.Future[str]] = {}

    async def __call__(self, piece: int) -> str:
        self.begun[piece] = asyncio.get_running_loop().create_future()
        return await self.begun[piece]


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_results_come_in_the_order_of_the_pieces() -> None:
    work = HeldWork()

    async with InOrder(work, range(3), lambda: 3) as results:
        await settled()
        for piece in (2, 0, 1):
            work.begun[piece].set_result(f"result {piece}")
        taken = [result async for result in results]

    assert taken == ["result 0", "result 1", "result 2"]


async def test_a_slow_piece_holds_up_no_other() -> None:
    work = HeldWork()

    async with InOrder(work, range(9), lambda: 2):
        await settled()
        for piece in (1, 2, 3):
            work.begun[piece].set_result("")
            await settled()

        assert set(work.begun) == {0, 1, 2, 3, 4}


async def test_more_are_begun_when_there_is_more_room() -> None:
    work, room = HeldWork(), 1

    async with InOrder(work, count(), lambda: room):
        await settled()
        first = set(work.begun)
        room = 3
        work.begun[0].set_result("")
        await settled()

        assert first == {0}
        assert set(work.begun) == {0, 1, 2, 3}


async def test_what_is_not_over_at_the_end_is_cancelled() -> None:
    work = HeldWork()

    async with InOrder(work, count(), lambda: 2) as results:
        await settled()
        work.begun[0].set_result("")
        await anext(results)
        await settled()

    assert [future.cancelled() for future in work.begun.values()] == [False, True, True]


async def test_what_a_piece_raises_is_raised_in_its_turn_and_nothing_more_is_begun() -> None:
    work = HeldWork()

    async with InOrder(work, count(), lambda: 2) as results:
        await settled()
        work.begun[1].set_exception(OSError("no"))
        await settled()
        begun = set(work.begun)
        work.begun[0].set_result("")
        await anext(results)
        with pytest.raises(OSError, match="no"):
            await anext(results)

    assert begun == {0, 1}
