"""A match that a worker plays and that is watched at an arena, with a wire that tests cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from arena.competitions.remote_match import RemoteMatch
from arena.workers.live_frames import LiveFrames
from protocol.vocabulary import News

if TYPE_CHECKING:
    from arena.engine.rules import Game
    from tests.support.fake_bots import FakeArena
    from tests.support.watched_arena import PlayedOnDemand, WatchedArena

__all__ = ["WatchedElsewhere", "rounds_of_frames"]


class WatchedElsewhere:
    """The worker's side of `played`, and the arena's: `remote`, which `arena` can show.

    Times are of one clock. While `is_cut`, nothing comes through, in either direction.
    """

    def __init__(self, house: FakeArena, played: PlayedOnDemand, arena: WatchedArena) -> None:
        table = played.table
        self.house = house
        self.arena = arena
        self.table = table
        self.is_cut = False
        self.orders: list[bool] = []  # what the worker was told: whether somebody watches
        self.carried: list[bytes] = []  # frames that came through
        self.frames: LiveFrames | None = None
        self.remote = RemoteMatch(
            table.id,
            "w1",
            table.game,
            table.settings,
            table.limits,
            table.names,
            table.versions,
            house.now,
            self._ordered,
            "7",
        )
        arena.remote[table.id] = self.remote

    def passes(self, seconds: float) -> None:
        """Let time pass, with a turn of both sides every 50 ms."""
        for _ in range(round(seconds / 0.05)):
            self.house.held_up(0.05)
            self.turns()
            self.arena.spectators.tick(self.house.now)

    def turns(self) -> None:
        """Have the worker send what is due."""
        if self.frames is None or (data := self.frames.due(self.house.now)) is None:
            return
        if not self.is_cut:
            self.carried.append(data)
            self.remote.feed(data)

    def ended(self) -> None:
        """The arena has the result."""
        self.remote.ended()
        del self.arena.remote[self.remote.id]

    def _ordered(self, is_watched: bool) -> None:
        if self.is_cut:
            return
        self.orders.append(is_watched)
        if not is_watched:
            self.frames = None
        elif self.frames is None:
            self.frames = LiveFrames(self.table, lambda: self.house.now)
        else:
            self.frames.again()


def rounds_of_frames(frames: list[dict[str, Any]], game: Game) -> dict[int, list[Any]]:
    """The events of each round, put together as the page does it."""
    words = game.vocabulary
    closes = _kind(words.closes)
    follows = {_kind(news) for news in words.follows}
    rounds: dict[int, list[Any]] = {}
    for frame in frames:
        if frame["type"] != "events":
            continue
        number = frame["round"]
        if frame["reset"]:
            rounds = {each: events for each, events in rounds.items() if each < number}
        for event in frame["events"]:
            kinds = [each.get("news", {}).get("kind") for each in rounds.get(number, [])]
            is_after = event["event"] == "over" or event.get("news", {}).get("kind") in follows
            if closes in kinds and not is_after:
                number += 1
            rounds.setdefault(number, []).append(event)
    return rounds


def _kind(news: type[News]) -> object:
    return news.__struct_config__.tag
