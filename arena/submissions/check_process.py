"""Runs the check of a submission in a process of its own, and defines the messages to and from it.

The process reads one `CheckJob` from its input. It writes a JSON line when a step begins, when a
step ends, and at the end. It runs at a low priority, and ends with the arena.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from asyncio.subprocess import PIPE
from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec
from msgspec import Struct

from arena.sandbox.manifest import ProgramManifest
from arena.sandbox.supervisor import ends_with_this
from protocol.errors import ArenaError, UsageError, one_line
from protocol.messages import Limits

__all__ = ["CheckJob", "CheckStep", "CheckVerdict", "check"]

_LINE_BYTES = 1 << 20
_LONGEST = 500  # letters of the process's stderr that the error quotes


class CheckJob(Struct, frozen=True, kw_only=True):
    """The task: check a built program in its folder, which cannot see the `hidden` paths."""

    folder: str
    manifest: ProgramManifest
    hidden: tuple[str, ...]
    name: str
    rounds: int
    limits: Limits
    seed: int


class CheckStep(Struct, frozen=True, tag_field="type", tag="step"):
    """A step has begun (status `begun`) or ended.

    `lines` are what `arena check` prints, `text` is the interesting part of them.
    """

    step: str
    status: str
    text: str = ""
    lines: tuple[str, ...] = ()


class CheckVerdict(Struct, frozen=True, tag_field="type", tag="verdict"):
    """The end of the check: `games` are those that it passed for; if none, `why` is the reason."""

    games: tuple[str, ...]
    why: str
    lines: tuple[str, ...]


_Said: TypeAlias = CheckStep | CheckVerdict


async def check(
    command: Sequence[str], job: CheckJob, within_s: float, tell: Callable[[CheckStep], None]
) -> CheckVerdict:
    """Run a check and return its verdict.

    The process is killed in the end. It is the arena's own, and the programs that it has started
    end with it.

    Raises `UsageError` if it takes longer than `within_s`, and `ArenaError` if the process fails.
    """
    with tempfile.TemporaryFile() as errors:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=errors,
            limit=_LINE_BYTES,
            start_new_session=True,  # Ctrl-C is for the arena
            preexec_fn=ends_with_this(),
        )
        assert process.stdin is not None, "it was started with one"
        assert process.stdout is not None, "it was started with one"
        try:
            process.stdin.write(msgspec.json.encode(job) + b"\n")
            async with asyncio.timeout(within_s):
                while line := await process.stdout.readline():
                    said = msgspec.json.decode(line, type=_Said)
                    if isinstance(said, CheckVerdict):
                        return said
                    tell(said)
        except TimeoutError:
            raise UsageError(f"the check took longer than {within_s:,.0f} s") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        errors.seek(0)
        last_words = errors.read().decode(errors="replace").strip()[-_LONGEST:]
        raise ArenaError(f"the check has failed: {one_line(last_words, _LONGEST)}")
