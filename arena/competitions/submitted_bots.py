"""The bots that are played from submissions: which version is in play, and its processes.

An owner's bot has the owner's name. Whether it or a connected one plays in a competition is decided
there (`Take`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from arena.competitions.process_pool import ProcessPool
from arena.engine.names import version_label
from arena.submissions.service import SubmissionService
from protocol.errors import ArenaError

__all__ = ["SubmittedBots"]


class SubmittedBots:
    """The submissions that competitions play."""

    def __init__(self, service: SubmissionService, pool: ProcessPool) -> None:
        self._service = service
        self._pool = pool
        self._by_game: dict[str, dict[str, int]] = {}  # as far as it was asked for
        self._labels: dict[int, str] = {}

    def in_play(self, game: str) -> Mapping[str, int]:
        """By owner, the number of the submission that is in play in a game."""
        if game not in self._by_game:
            versions = self._service.in_play(game)
            for version in versions.values():
                self._labels[version.submission] = version_label(version.version)
            self._by_game[game] = {owner: each.submission for owner, each in versions.items()}
        return self._by_game[game]

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

    def retire(self, needed: Iterable[int]) -> None:
        """End the processes of versions that are not in play any more, but for those `needed`."""
        in_play = {row.submission for row in self._service.all_in_play()}
        self._pool.retire_others(in_play.union(needed))
