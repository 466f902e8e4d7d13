"""The check of a submission, in a process of its own: what it is told, and what it says.

The process reads one `CheckJob` from its input and writes a JSON line for each step that begins and
each that is over, and one at the end. It runs at a low priority, and ends with the arena.
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
_LONGEST = 500  # letters of what it wrote on stderr, for the error


class CheckJob(Struct, frozen=True, kw_only=True):
    """What is to be checked: a built program in its folder, which does not see what is `hidden`."""

    folder: str
    manifest: ProgramManifest
    hidden: tuple[str, ...]
    name: str
    rounds: int
    limits: Limits
    seed: int


class CheckStep(Struct, frozen=True, tag_field="type", tag="step"):
    """A step has begun, with the status `begun`, or is over.

    `lines` are those of `arena check`, `text` what is of interest in them.
    """

    step: str
    status: str
    text: str = ""
    lines: tuple[str, ...] = ()


class CheckVerdict(Struct, frozen=True, tag_field="type", tag="verdict"):
    """The check is over. With `games` it has passed, for these; else `why` says what was wrong."""

    games: tuple[str, ...]
    why: str
    lines: tuple[str, ...]


_Said: TypeAlias = CheckStep | CheckVerdict


async def check(
    command: Sequence[str], job: CheckJob, within_s: float, tell: Callable[[CheckStep], None]
) -> CheckVerdict:
    """Run a check and return what came of it.

    In the end its process is killed; it is the arena's own, and the programs that it has started
    end too.

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
