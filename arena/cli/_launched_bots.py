"""Starts the bots that `arena serve` launches, and reports on stderr what happens to them.

If a bot cannot be started, does not connect or ends, this is reported and the arena goes on. Only
a command that can never work stops the arena.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING

from arena.cli._competition_report import Board
from arena.competitions.listener import Listener
from arena.formats.schedule import Pairing
from arena.games.match import Result
from arena.games.statistics import SECONDS, signed, time_of
from arena.sandbox.bot_spec import BotSpec
from protocol.errors import ArenaError, UsageError, error_line, one_line
from protocol.messages import Ending, Verdict

if TYPE_CHECKING:
    from arena.competitions.ledger import Ledger
    from arena.competitions.live_arena import LiveArena

__all__ = ["BotNotices", "launched"]

_LONGEST_LINE = 500
_MOST_LINES = 500  # returned by `lines`
_MOST_MATCHES = 250  # lines about matches, so that a thousand matches do not push notices out
_MOST_CHARACTERS = 200_000  # so that the frame with the log stays far below a mebibyte


class BotNotices(Listener):
    """Reports verdicts, ended bots and notices for the instructor, and logs matches.

    Each report is a line on stderr, above the bars of a `board`; `log` gets a line for every match.
    The latest lines are kept.
    """

    def __init__(
        self, board: Board | None = None, log: Callable[[str], None] = lambda line: None
    ) -> None:
        self._board = board or Board(None)
        self._log = log
        self._notices: deque[tuple[int, str]] = deque(maxlen=_MOST_LINES)
        self._matches: deque[tuple[int, str]] = deque(maxlen=_MOST_MATCHES)
        self._numbers = count()
        self._ruled: dict[str, set[str]] = {}
        self._ended: set[str] = set()

    def verdict_given(self, verdict: Verdict) -> None:
        self._ruled.setdefault(verdict.bot, set()).add(verdict.text)
        error = error_line(verdict.stderr or "") if verdict.kind is Ending.CRASH else ""
        said = f"; it said: {error}" if error else ""
        self.told(f"{verdict.bot} ({verdict.game}) {verdict.headline}{said}")

    def match_finished(self, ledger: Ledger, match: str, pairing: Pairing, result: Result) -> None:
        names = zip(pairing.players, result.scores, strict=True)
        scores = ", ".join(f"{name} {signed(score)}" for name, score in names)
        ended = result.termination
        why = ended.kind.value
        if ended.seat is not None:
            why += f": {pairing.players[ended.seat]} {ended.text}"
        elif ended.text:
            why += f": {ended.text}"
        clock = time_of(time.time(), SECONDS)
        line = f"{clock} {ledger.id} {pairing.number} {match} {scores} · {why}"
        line = one_line(line, _LONGEST_LINE)
        self._matches.append((next(self._numbers), line))
        self._log(line)

    def ended(self, name: str, why: str) -> None:
        """Report that a launched bot has ended, unless a verdict has already reported it."""
        if name not in self._ended:
            self._ended.add(name)
            if not any(map(why.startswith, self._ruled.get(name, ()))):
                self.told(f"{name} has ended: {why}")

    def told(self, text: str) -> None:
        line = one_line(text, _LONGEST_LINE)
        self._notices.append((next(self._numbers), f"{time_of(time.time(), SECONDS)} {line}"))
        with contextlib.suppress(OSError):  # stderr may be closed; the matches go on
            self._board.say(line)

    def lines(self) -> tuple[str, ...]:
        """Return the latest notices and matches, each line with its time, oldest first."""
        latest: list[str] = []
        characters = 0
        for _, line in sorted((*self._notices, *self._matches), reverse=True)[:_MOST_LINES]:
            characters += len(line)
            if characters > _MOST_CHARACTERS:
                break
            latest.append(line)
        return tuple(reversed(latest))


@contextlib.asynccontextmanager
async def launched(
    arena: LiveArena, entries: Sequence[BotSpec], notices: BotNotices
) -> AsyncIterator[None]:
    """Start bots, each with a name, and wait until all have said hello or `hello_ms` is over.

    While the block runs, bots that end are reported. Raises `UsageError` if one can never work.
    """
    coming = set()
    for entry in entries:
        assert entry.name is not None, "`named` has seen to that"
        try:
            await arena.supervisor.launch_program(entry.program, entry.name)
            coming.add(entry.name)
        except UsageError as error:
            raise UsageError(f"{entry.name}: {error}") from None
        except ArenaError as error:
            notices.told(f"{entry.name}: {error}")
    watching = asyncio.create_task(_tell_ends(arena, notices))
    try:
        came = await arena.wait_for_bots(coming, arena.limits.hello_ms / 1000)
        _tell_ended(arena, notices)
        for name in sorted(coming - came - arena.supervisor.ended.keys()):
            within = f"within {arena.limits.hello_ms:,} ms"
            notices.told(f"{name} {arena.supervisor.no_hello(name, within)}")
        yield
    finally:
        watching.cancel()


async def _tell_ends(arena: LiveArena, notices: BotNotices) -> None:
    while True:
        _tell_ended(arena, notices)
        await arena.wait_for_change()


def _tell_ended(arena: LiveArena, notices: BotNotices) -> None:
    for name, why in arena.supervisor.ended.items():
        notices.ended(name, why)
