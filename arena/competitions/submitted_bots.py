"""The bots that are played from submissions: which version is in play, and its processes.

An owner's bot has the owner's name. Whether it or a connected one plays in a competition is decided
there (`Take`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Protocol

from arena.competitions.job_runner import SeatPool
from arena.engine.names import version_label
from arena.games import GAMES
from arena.submissions.settings import SubmissionSettings
from protocol.errors import ArenaError

__all__ = ["SubmittedBots", "VersionInPlay", "VersionService"]


class VersionInPlay(Protocol):
    """What `InPlay` of the storage has."""

    @property
    def submission(self) -> int:
        """Its number among all submissions."""

    @property
    def version(self) -> int:
        """Its number among its owner's versions."""


class NumberedVersion(Protocol):
    """What `Submission` of the storage has."""

    @property
    def version(self) -> int | None:
        """Its number among its owner's versions."""


class VersionService(Protocol):
    """What competitions need of `SubmissionService`."""

    settings: SubmissionSettings
    on_change: list[Callable[[], None]]

    def in_play(self, game: str) -> Mapping[str, VersionInPlay]:
        """By owner, the version that is in play in a game."""

    def undecided_before(self, at: float, game: str | None = None) -> Collection[object]:
        """What arrived before a time, in Unix seconds, and is not decided yet."""

    def get(self, number: int) -> Awaitable[NumberedVersion]:
        """A submission by its number; raises `UsageError` if there is none."""


class SubmittedBots:
    """The submissions that competitions play.

    `decides_within_s` is how long a run waits at most for what has arrived and is not decided.
    """

    def __init__(self, service: VersionService, pool: SeatPool) -> None:
        self.decides_within_s = service.settings.wait_s
        self._service = service
        self._pool = pool
        self._by_game: dict[str, dict[str, int]] = {}  # as far as it was asked for
        self._labels: dict[int, str] = {}
        self._in_play: set[tuple[str, int]] = set()  # at the last look, and still to be retired

    def in_play(self, game: str) -> Mapping[str, int]:
        """By owner, the number of the submission that is in play in a game."""
        if game not in self._by_game:
            versions = self._service.in_play(game)
            for version in versions.values():
                self._labels[version.submission] = version_label(version.version)
            self._by_game[game] = {owner: each.submission for owner, each in versions.items()}
        return self._by_game[game]

    def undecided_before(self, at: float, game: str) -> int:
        """How many submissions arrived before a time, and may come into play in a game."""
        return len(self._service.undecided_before(at, game))

    def label(self, submission: int) -> str:
        """How people call a version, as `v3`; empty if it is not in play, and none `learn`s it."""
        return self._labels.get(submission, "")

    async def learn(self, submissions: Iterable[int]) -> None:
        """Find out what versions these are, of a competition that goes on."""
        for number in set(submissions) - self._labels.keys():
            try:
                version = (await self._service.get(number)).version
            except ArenaError:
                continue  # the pool says why it cannot be played
            if version is not None:
                self._labels[number] = version_label(version)

    def changed(self) -> None:
        """Forget what is in play, as that has changed."""
        self._by_game.clear()

    def retire(self, needed: Collection[int]) -> None:
        """End the processes of versions that are not in play any more, but for those `needed`."""
        in_play = {item for game in GAMES for item in self.in_play(game).items()}
        for owner, number in self._in_play - in_play:
            if number not in needed:
                self._pool.retire(owner, number)
                self._in_play.discard((owner, number))
        self._in_play |= in_play
