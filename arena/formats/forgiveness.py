"""What a run forgives (J3): the first so many events of a bot cost it the matches that they end, and no more.

The arena while it plays, one that goes on after a power cut, whoever reads the results and `arena verify` all count with this, from the
same verdicts in the same order. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from arena.engine.match import Result
from arena.engine.verdict import FORGIVABLE
from protocol.messages import Ending, Verdict

__all__ = ["Forgiveness"]


class Forgiveness:
    """The events of the bots of one competition.

    Args:
        most: how many are forgiven to each; with 0 none ever is.
        verdicts: those that are there already.
    """

    def __init__(self, most: int, verdicts: Iterable[Verdict] = ()) -> None:
        self._most = most
        self._found: dict[tuple[str, str], tuple[Ending, str]] = {}
        self._events: dict[str, set[str]] = {}
        self._forgiven: set[tuple[str, str]] = set()
        self.ruled(verdicts)

    def ruled(self, verdicts: Iterable[Verdict]) -> None:
        """There are verdicts; they count when `forgiven` is asked about their matches."""
        if self._most:
            self._found |= {
                (one.match, one.bot): (one.kind, one.event or one.match)
                for one in verdicts
            }

    def forgiven(
        self, match: str, players: Sequence[str], result: Result
    ) -> tuple[int, ...]:
        """The seats that are not out, though an offence of theirs ended this match.

        It is asked once of every match that counts, in the order in which they ended; after an offence that is not forgiven
        what it says of the bot does not matter any more.
        """
        seats = range(len(players))  # a damaged database may name others
        return tuple(
            seat
            for seat in result.out
            if seat in seats and self._add(match, players[seat])
        )

    def would_forgive(self, bot: str, kind: Ending, event: str) -> bool:
        """Whether an offence that is noticed now costs no more than the match."""
        events = self._events.get(bot, set()) | {event}
        return kind in FORGIVABLE and len(events) <= self._most

    def knows(self, bot: str, event: str) -> bool:
        """Whether that event has ended a match already."""
        return event in self._events.get(bot, ())

    def told(self, verdicts: Iterable[Verdict]) -> Iterator[Verdict]:
        """Verdicts as they stand now: what was forgiven can change when a match is taken back."""
        for verdict in verdicts:
            is_forgiven = (verdict.match, verdict.bot) in self._forgiven
            if verdict.forgiven is is_forgiven:
                yield verdict
            else:
                yield msgspec.structs.replace(verdict, forgiven=is_forgiven)

    def _add(self, match: str, bot: str) -> bool:
        found = self._found.get((match, bot))
        if found is None:
            return False
        kind, event = found
        is_forgiven = self.would_forgive(bot, kind, event)
        if kind in FORGIVABLE:
            self._events.setdefault(bot, set()).add(event)
        if is_forgiven:
            self._forgiven.add((match, bot))
        return is_forgiven
