"""Checks the results that workers hand in, in processes of their own (`result_check_process.py`).

A match of 1,000 rounds takes seconds to play again, and a result may be made to take any time and
memory. A process checks one result at a time, so that it is known which one it died of; it is
killed if it takes too long, and another starts with the next result.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence

import msgspec

from arena.engine.match import MatchResult
from arena.engine.statistics import UnitSums
from arena.sandbox.supervisor import ends_with_this
from arena.sandbox.worker_pool import usable_cores
from arena.workers.messages import AttemptResult, decode, encode
from arena.workers.result_check_process import LENGTH, OUT_OF_CPU
from arena.workers.result_fit import ExpectedAttempt, ResultFit

__all__ = ["MOST_BYTES", "CheckedAttempt", "ExpectedAttempt", "ResultChecker"]

MOST_BYTES = 256 << 20
"""Of a result: 1,000 rounds of the game with the longest records take 3 MiB, by chance 110 MiB."""

_MOST_PROCESSES = 4
_WITHIN_S = 600.0  # by the clock on the wall, if its CPU time does not end it
_REPLY_BYTES = 1 << 16
_LARGE_BYTES = 8 << 20  # after such a result a process holds hundreds of MiB, and is not kept
_COMMAND = (sys.executable, "-m", "arena.workers.result_check_process")


class CheckedAttempt(msgspec.Struct, frozen=True):
    """The result if it counts, with the job as it was put; else None, and in one line why not.

    `units` are the sums of its units, which follow from the record.
    """

    result: AttemptResult | None
    why: str = ""
    units: UnitSums | None = None

    @property
    def match_result(self) -> MatchResult:
        """How the match ended, as a `JobWatcher` is told it."""
        assert self.result is not None, "it counts"
        record = self.result.record
        return MatchResult(
            record.scores,
            record.points,
            record.termination,
            record.also_out or (),
            record=record,
            units=self.units,
        )


class _CheckFailed(Exception):
    """The process has not answered; the text says why."""


class ResultChecker:
    """Checks results, several at once; the processes start when they are needed.

    `within_s` is the longest time for one, `command` what starts a process.
    """

    def __init__(self, *, within_s: float = _WITHIN_S, command: Sequence[str] = _COMMAND) -> None:
        self._within_s = within_s
        self._command = command
        self._room = asyncio.Semaphore(min(_MOST_PROCESSES, max(1, usable_cores())))
        self._idle: list[Process] = []
        self._checks: set[asyncio.Future[ResultFit]] = set()
        self._is_closed = False

    async def check(self, data: bytes, expected: ExpectedAttempt) -> CheckedAttempt:
        """Check an `AttemptResult`; whatever the data, nothing is raised, and it has an end.

        After `close`, and for what is being checked then, it raises `CancelledError`: nothing is
        known of such a result.
        """
        if len(data) > MOST_BYTES:
            return CheckedAttempt(None, f"it has more than {MOST_BYTES >> 20} MiB")
        if self._is_closed:
            raise asyncio.CancelledError
        check = asyncio.ensure_future(self._fit(data, expected))
        self._checks.add(check)
        check.add_done_callback(self._checks.discard)
        fit = await check  # which is cancelled with this
        if fit.why:
            return CheckedAttempt(None, fit.why)
        # The same bytes were read by the process, which has limits.
        result: AttemptResult = decode(data, AttemptResult)
        return CheckedAttempt(msgspec.structs.replace(result, job=expected.job), units=fit.units)

    async def close(self) -> None:
        """End the processes and what is being checked; once more does nothing."""
        self._is_closed = True
        for check in self._checks:
            check.cancel()
        await asyncio.gather(*self._checks, return_exceptions=True)
        while self._idle:
            await _kill(self._idle.pop())

    async def _fit(self, data: bytes, expected: ExpectedAttempt) -> ResultFit:
        async with self._room:
            try:
                return await self._asked(encode((expected, data)))
            except _CheckFailed as error:
                return ResultFit(str(error))

    async def _asked(self, question: bytes) -> ResultFit:
        try:
            while self._idle and self._idle[-1].returncode is not None:
                self._idle.pop()  # it was killed since
            process = self._idle.pop() if self._idle else await self._start()
        except OSError as error:
            raise _CheckFailed(f"no process to check it can be started: {error}") from error
        is_kept = False
        try:
            async with asyncio.timeout(self._within_s):
                fit = await _ask(process, question)
            is_kept = len(question) < _LARGE_BYTES
            return fit
        except TimeoutError:
            raise _CheckFailed(f"its check took longer than {self._within_s:,g} s") from None
        except (OSError, EOFError, msgspec.MsgspecError):
            await _kill(process)
            is_slow = process.returncode == -OUT_OF_CPU
            ended = "took too much CPU time" if is_slow else "has ended its process"
            raise _CheckFailed(f"its check {ended}") from None
        finally:
            if is_kept and not self._is_closed:
                self._idle.append(process)
            else:
                await asyncio.shield(_kill(process))

    async def _start(self) -> Process:
        return await asyncio.create_subprocess_exec(
            *self._command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            start_new_session=True,  # Ctrl-C is for the arena
            preexec_fn=ends_with_this(),
        )


async def _ask(process: Process, question: bytes) -> ResultFit:
    assert process.stdin is not None, "it was started with one"
    assert process.stdout is not None, "it was started with one"
    process.stdin.write(LENGTH.pack(len(question)) + question)
    await process.stdin.drain()
    (length,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
    if length > _REPLY_BYTES:
        raise EOFError
    return decode(await process.stdout.readexactly(length), ResultFit)


async def _kill(process: Process) -> None:
    """End a process that may have ended; it has nothing to lose."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    assert process.stdin is not None, "it was started with one"
    process.stdin.close()
    await process.wait()
