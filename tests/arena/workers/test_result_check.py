"""The processes that check results: several, each with an end, none of which takes the arena."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from arena.workers import result_check, result_check_process
from arena.workers.messages import encode
from arena.workers.result_check import ResultChecker
from arena.workers.result_fit import ResultFit
from protocol.errors import ArenaError
from tests.support.worker_results import altered, expected_of, handed_in, ruled_out

HONEST = handed_in("gin_rummy")
EXPECTED = expected_of(HONEST)
DATA = encode(HONEST)


@pytest.fixture
async def checker(request: pytest.FixtureRequest) -> AsyncIterator[ResultChecker]:
    """One with processes of ours, or with fake ones that do what a test's parameter says."""
    body = getattr(request, "param", None)
    checker = ResultChecker() if body is None else ResultChecker(command=fake(body))
    yield checker
    await checker.close()


def fake(body: str) -> tuple[str, ...]:
    """A process that does that instead of a check; `question` is what it was asked."""
    lines = (
        "import os, struct, sys, time",  # and no module of ours, which takes ten times as long
        f"LENGTH = struct.Struct({result_check_process.LENGTH.format!r})",
        "def read(): return sys.stdin.buffer.read(*LENGTH.unpack(sys.stdin.buffer.read(4)))",
        "def write(data): sys.stdout.buffer.write(data); sys.stdout.flush()",
        "question = read()",
        body,
    )
    return sys.executable, "-c", "\n".join(lines)


async def test_an_honest_result_counts_with_units_or_verdict(checker: ResultChecker) -> None:
    offence = ruled_out()
    honest = await checker.check(DATA, EXPECTED)
    ruled = await checker.check(encode(offence), expected_of(offence))

    assert encode(honest.result) == DATA
    assert honest.match_result.record.to_json() == HONEST.record.to_json()
    assert honest.match_result.units is not None
    assert honest.match_result.scores == HONEST.record.scores
    assert encode(ruled.result) == encode(offence)
    assert ruled.match_result.offender == 0


async def test_what_does_not_fit_is_refused_and_the_next_is_checked(checker: ResultChecker) -> None:
    forged = altered(HONEST, record__scores=(5, -5))
    checked = await checker.check(encode(forged), EXPECTED)

    assert checked.result is None
    assert "score at seat 1 says 5" in checked.why
    assert (await checker.check(b"\xc1", EXPECTED)).why.startswith("it cannot be read")
    assert (await checker.check(DATA, EXPECTED)).result is not None


async def test_many_at_once_are_checked_each_by_itself(checker: ResultChecker) -> None:
    forged = encode(altered(HONEST, record__scores=(5, -5)))
    checked = await asyncio.gather(
        *(checker.check(forged if n % 3 == 0 else DATA, EXPECTED) for n in range(12))
    )

    assert [one.result is None for one in checked] == [n % 3 == 0 for n in range(12)]


async def test_the_job_is_the_one_that_was_put(checker: ResultChecker) -> None:
    """True equals 1, and 1.0 does: what is counted is not the worker's copy."""
    ours = handed_in(settings={"hands": 1})
    theirs = encode(altered(ours, job__settings={"hands": True}))
    checked = await checker.check(theirs, expected_of(ours))

    assert checked.result is not None
    assert checked.result.job is not None
    assert checked.result.job.settings["hands"] is not True


async def test_more_than_256_MiB_are_refused_unread(checker: ResultChecker) -> None:
    too_many = bytes(result_check.MOST_BYTES + 1)

    assert (await checker.check(too_many, EXPECTED)).why == "it has more than 256 MiB"


async def test_a_small_result_before_does_not_limit_a_large_one(checker: ResultChecker) -> None:
    await checker.check(DATA, EXPECTED)
    large = await checker.check(bytes(160 << 20), EXPECTED)

    assert large.why == "it cannot be read: expected `object`, got `int`"


async def test_a_memory_bomb_is_refused_and_the_next_is_checked(checker: ResultChecker) -> None:
    """One byte is an empty map, which takes 90: they are more than a result of that size gets."""
    size = 8 << 20
    head = b"\xdd" + size.to_bytes(4)
    marked = encode(altered(HONEST, record__answers=("MARK",)))
    bomb = marked.replace(b"\xa4MARK", head + b"\x80" * size)
    checked = await checker.check(bomb, EXPECTED)

    assert checked.result is None
    assert checked.why in ("it takes too much memory to check", "its check has ended its process")
    assert (await checker.check(DATA, EXPECTED)).result is not None


ENDED = "its check has ended its process"
CPU_S = """\
import arena.workers.result_check_process as process
process._CPU_S = 0
process._limit(0)
while True: pass
"""


@pytest.mark.parametrize(
    ("checker", "why"),
    [
        ("os._exit(0)", ENDED),
        ("os.abort()", ENDED),
        ("os.kill(os.getpid(), 9)", ENDED),
        ("write(b'oh no')", ENDED),
        ("write(b'\\xff\\xff\\xff\\xff')", ENDED),
        ("write(LENGTH.pack(3) + b'\\xc1\\xc1\\xc1')", ENDED),
        (CPU_S, "its check took too much CPU time"),
    ],
    indirect=["checker"],
)
async def test_a_process_that_does_otherwise_is_one_line(checker: ResultChecker, why: str) -> None:
    for _ in range(2):
        assert (await checker.check(DATA, EXPECTED)).why == why


async def test_a_process_that_hangs_is_killed() -> None:
    checker = ResultChecker(within_s=0.5, command=fake("time.sleep(600)"))

    for _ in range(2):
        assert (await checker.check(DATA, EXPECTED)).why == "its check took longer than 0.5 s"
    await checker.close()


async def test_without_a_process_nothing_is_raised(tmp_path: Path) -> None:
    checker = ResultChecker(command=(str(tmp_path / "none"),))

    with pytest.raises(ArenaError, match="no process to check results can be started"):
        await checker.check(DATA, EXPECTED)
    await checker.close()


async def test_an_idle_process_that_was_killed_costs_one_result(checker: ResultChecker) -> None:
    await checker.check(DATA, EXPECTED)
    [process] = checker._idle
    os.kill(process.pid, signal.SIGKILL)
    await process.wait()

    assert (await checker.check(DATA, EXPECTED)).result is not None


async def test_what_is_checked_when_the_arena_ends_is_neither_taken_nor_refused() -> None:
    checker = ResultChecker(command=fake("time.sleep(600)"))
    check = asyncio.create_task(checker.check(DATA, EXPECTED))
    await asyncio.sleep(0)
    await checker.close()

    with pytest.raises(asyncio.CancelledError):
        await check
    with pytest.raises(asyncio.CancelledError):
        await checker.check(DATA, EXPECTED)


async def test_a_check_that_nobody_waits_for_leaves_no_process(tmp_path: Path) -> None:
    began = tmp_path / "began"
    os.mkfifo(began)
    checker = ResultChecker(
        command=fake(f"open({str(began)!r}, 'w').write(str(os.getpid())); time.sleep(600)")
    )
    check = asyncio.create_task(checker.check(DATA, EXPECTED))
    pid = int(await asyncio.to_thread(began.read_text))
    check.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await check
    await checker.close()

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_the_process_ends_with_its_input() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "arena.workers.result_check_process"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    length = result_check_process.LENGTH
    question = encode((EXPECTED, DATA))
    process.stdin.write(length.pack(len(question)) + question)
    assert process.stdout is not None
    (size,) = length.unpack(await process.stdout.readexactly(length.size))
    fit = msgspec.msgpack.decode(await process.stdout.readexactly(size), type=ResultFit)
    process.stdin.close()

    assert fit.why == ""
    assert await process.wait() == 0
