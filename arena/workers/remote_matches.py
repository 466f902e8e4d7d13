"""The matches that workers play now, among those that can be watched here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import UNSET

from arena.competitions.remote_match import RemoteMatch
from arena.games import game_named
from arena.workers.attempt_tracker import AttemptTracker, KnownAttempt
from arena.workers.messages import Command, WatchAttempt

__all__ = ["RemoteMatches"]


class RemoteMatches:
    """Follows the attempts that are shown; `command` sends a command to a worker."""

    def __init__(
        self,
        tracker: AttemptTracker,
        command: Callable[[str, Command], None],
        clock: Callable[[], float],
    ) -> None:
        self._tracker = tracker
        self._command = command
        self._clock = clock
        self._matches: dict[str, RemoteMatch] = {}

    @property
    def by_id(self) -> Mapping[str, RemoteMatch]:
        return self._matches

    def show(self, attempt: KnownAttempt) -> None:
        """Have the match of an attempt among those that can be watched."""
        job = attempt.job
        game = game_named(job.game, job.package or UNSET)
        attempt.remote = self._matches[attempt.id] = RemoteMatch(
            attempt.id,
            attempt.worker,
            game,
            game.vocabulary.read_settings(job.settings),
            job.limits,
            job.players,
            job.versions,
            self._clock(),
            lambda is_watched: self._watch(attempt, is_watched),
        )

    def hide(self, attempt: KnownAttempt) -> None:
        """It is over, or nobody plays it any more; once more does nothing."""
        if attempt.remote is not None:
            remote, attempt.remote = attempt.remote, None
            del self._matches[attempt.id]
            remote.ended()

    def framed(self, worker: str, attempt: str, data: bytes) -> None:
        """Take what a worker has sent for spectators."""
        known = self._tracker.get(attempt)
        if known is not None and known.worker == worker and known.remote is not None:
            known.frames_at = self._clock()
            known.remote.feed(data)

    def _watch(self, attempt: KnownAttempt, is_watched: bool) -> None:
        attempt.is_watched, attempt.frames_at = is_watched, self._clock()
        self._command(attempt.worker, WatchAttempt(attempt.id, is_watched))
