"""What other machines can play of a competition, and what they still play for an earlier arena."""

from __future__ import annotations

from collections.abc import Sequence

from arena.competitions.job_match import JobMatch, OpenMatch
from arena.competitions.jobs import Jobs, MatchJob
from arena.formats.schedule import Pairing

__all__ = ["RemotePlay", "WaitNotice"]

_WAITS_S = 10.0  # a worker that is restarted is there again by then


class RemotePlay:
    """The part of other machines in one competition; without `jobs` they have none.

    Attributes:
        carried: how many bots are `is_portable`, as far as somebody has counted them.
    """

    def __init__(self, jobs: Jobs | None, competition: str, game: str) -> None:
        self.carried: int | None = None
        self._jobs = jobs
        self._competition = competition
        self._game = game
        self._portable: dict[str, bool] = {}
        self._interrupted: dict[int, MatchJob] = {}  # by pairing

    @property
    def at_once(self) -> int:
        """How many matches other machines take at once; 0 if there are none."""
        return 0 if self._jobs is None else self._jobs.at_once

    def is_portable(self, name: str) -> bool:
        """What `Jobs.is_portable` says, asked once until `room_changed`."""
        if name not in self._portable:
            jobs = self._jobs
            self._portable[name] = jobs is not None and jobs.is_portable(name, self._game)
        return self._portable[name]

    def room_changed(self) -> None:
        """Bots have come or gone, or other machines."""
        self._portable.clear()
        self.carried = None

    def find_interrupted(self) -> Sequence[MatchJob]:
        """Look, once, for what other machines still play for an earlier arena."""
        jobs = () if self._jobs is None else self._jobs.interrupted(self._competition)
        self._interrupted = {job.pairing: job for job in jobs}
        return self.interrupted

    @property
    def interrupted(self) -> Sequence[MatchJob]:
        """What was found and not taken, by number of the pairing."""
        return [self._interrupted[number] for number in sorted(self._interrupted)]

    def take(self, pairing: Pairing) -> MatchJob | None:
        """The job of a pairing that other machines still play, which is the caller's then."""
        job = self._interrupted.get(pairing.number)
        if job is None or job.players != pairing.players:
            return None
        return self._interrupted.pop(pairing.number)


class WaitNotice:
    """Notices that nothing is played as all matches wait for machines of one speed."""

    def __init__(self) -> None:
        self._is_told = False

    def look(self, tables: Sequence[OpenMatch], now: float) -> str:
        """What to tell of it now: once in each wait that lasts, else an empty string."""
        waits = [each for each in tables if isinstance(each, JobMatch) and not each.has_begun]
        if not waits or len(waits) < len(tables):
            self._is_told = False
            return ""
        if self._is_told or now - min(table.opened_at for table in waits) < _WAITS_S:
            return ""
        self._is_told = True
        first = " against ".join(waits[0].names)
        count = f"{len(waits)} matches wait" if len(waits) > 1 else "1 match waits"
        return (
            f"{count} for workers of the speed that their bots have had, first {first}; "
            "`arena workers` says who is there"
        )
