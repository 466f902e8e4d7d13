"""The bots that `arena serve` launches, and what is told of bots on stderr while the arena runs: one line each, as it happens.

A bot that cannot be started, does not come or ends is told, and the arena goes on; only a command that can never work stops it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import count

from arena.cli._competition_report import Board
from arena.competitions.arena_host import Host
from arena.sandbox.bot_spec import BotSpec
from protocol.errors import ArenaError, UsageError, one_line
from protocol.messages import Ending, Verdict

__all__ = ["BotNotices", "launched"]

_LONGEST_LINE = 500
_KEPT = 500  # lines in all
_KEPT_MATCHES = 250  # of them at most: a thousand matches must not push out what was told
_KEPT_LETTERS = 200_000  # a frame of the log stays far below a mebibyte


class BotNotices:
    """Tells of eliminations and of bots of ours that have ended, but not of the same thing twice; keeps what was told lately."""

    def __init__(self, board: Board | None = None) -> None:
        self._board = board or Board(None)
        self._told: deque[tuple[int, str]] = deque(maxlen=_KEPT)
        self._matches: deque[tuple[int, str]] = deque(maxlen=_KEPT_MATCHES)
        self._numbers = count()
        self._ruled: dict[str, set[str]] = {}
        self._ended: set[str] = set()

    def ruled(self, verdict: Verdict) -> None:
        """A bot is out."""
        self._ruled.setdefault(verdict.bot, set()).add(verdict.text)
        last = (verdict.stderr or "").strip().rpartition("\n")[2]
        said = f"; it said: {last}" if last and verdict.kind is Ending.CRASH else ""
        self.say(f"{verdict.bot} ({verdict.game}) {verdict.headline}{said}")

    def ended(self, name: str, why: str) -> None:
        """A bot of ours has ended by itself; nothing more is said if a verdict has said so."""
        if name not in self._ended:
            self._ended.add(name)
            if not any(map(why.startswith, self._ruled.get(name, ()))):
                self.say(f"{name} has ended: {why}")

    def say(self, text: str) -> None:
        """A line on stderr; if nobody reads that any more, matches go on all the same."""
        line = one_line(text, _LONGEST_LINE)
        clock = time.strftime("%Y-%m-%d %H:%M:%S")
        self._told.append((next(self._numbers), f"{clock} {line}"))
        with contextlib.suppress(OSError):
            self._board.say(line)

    def noting(self, log: Callable[[str], None]) -> Callable[[str], None]:
        """A log of matches whose latest lines are kept, too."""

        def note(line: str) -> None:
            self._matches.append((next(self._numbers), line))
            log(line)

        return note

    def lines(self) -> tuple[str, ...]:
        """What was told lately, each line with its time, oldest first."""
        latest: list[str] = []
        letters = 0
        for _, line in sorted((*self._told, *self._matches), reverse=True)[:_KEPT]:
            letters += len(line)
            if letters > _KEPT_LETTERS:
                break
            latest.append(line)
        return tuple(reversed(latest))


@contextlib.asynccontextmanager
async def launched(
    host: Host, entries: Sequence[BotSpec], notices: BotNotices
) -> AsyncIterator[None]:
    """Start bots, and go on when all are here, but not later than they have to say hello; their ends are told inside.

    Args:
        host: the arena, which is open.
        entries: the bots, each with a name.
        notices: what tells of them.

    Raises:
        UsageError: a bot's command can never work here.
    """
    coming = set()
    for entry in entries:
        assert entry.name is not None, "`named` has seen to that"
        try:
            await host.launch_program(entry.program, entry.name)
            coming.add(entry.name)
        except UsageError as error:
            raise UsageError(f"{entry.name}: {error}") from None
        except ArenaError as error:
            notices.say(f"{entry.name}: {error}")
    all_here = asyncio.Event()
    watching = asyncio.create_task(_watch(host, coming, all_here, notices))
    try:
        await _wait_for(all_here, host.limits.hello_ms / 1000)
        for name in sorted(coming):
            notices.say(f"{name} has not said hello within {host.limits.hello_ms:,} ms")
        yield
    finally:
        watching.cancel()


async def _wait_for(event: asyncio.Event, within_s: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await event.wait()


async def _watch(
    host: Host, coming: set[str], all_here: asyncio.Event, notices: BotNotices
) -> None:
    """Cross off who has come or will not come, and tell who has ended."""
    while True:
        for name, why in host.ended.items():
            notices.ended(name, why)
        players = host.gateway.players
        coming.difference_update([one for one in coming if one in players], host.ended)
        if not coming:
            all_here.set()
        await host.wait_for_change()
