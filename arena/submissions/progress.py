"""How far each undecided submission is, and who is told: its owner, on every page and terminal."""

from __future__ import annotations

from typing import Protocol

from protocol.submitting import Progressing

__all__ = ["Follower", "ProgressFeed"]

_DECIDED = ("accepted", "refused")


class Follower(Protocol):
    """Is told of a submission until it is decided."""

    def tell(self, message: Progressing) -> None: ...


class ProgressFeed:
    """What has been said of each undecided submission since it waits, and who follows it."""

    def __init__(self) -> None:
        self._said: dict[int, list[Progressing]] = {}
        self._followers: dict[int, dict[Follower, None]] = {}

    def say(self, progress: Progressing) -> None:
        """Tell the followers. What waits begins anew: nothing that was said before counts."""
        number = progress.submission
        for follower in tuple(self._followers.get(number, ())):
            follower.tell(progress)
        if progress.state in _DECIDED:
            self._said.pop(number, None)
            self._followers.pop(number, None)
            return
        said = self._said.setdefault(number, [])
        if progress.position is not None:
            said.clear()
        said.append(progress)

    def last(self, number: int) -> Progressing | None:
        """What was said last of an undecided submission."""
        said = self._said.get(number)
        return said[-1] if said else None

    def follow(self, number: int, follower: Follower) -> bool:
        """Tell all from the beginning, and what comes; False if it is decided or unknown."""
        if number not in self._said:
            return False
        for progress in self._said[number]:
            follower.tell(progress)
        self._followers.setdefault(number, {})[follower] = None
        return True

    def forget(self, follower: Follower) -> None:
        """Tell this one nothing any more."""
        for number, followers in tuple(self._followers.items()):
            followers.pop(follower, None)
            if not followers:
                del self._followers[number]
