"""The cases in `spectators.cases`: matches here and of other machines, and who watches them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from arena.competitions import watched_match
from arena.records.visibility import Viewer
from protocol.messages import Answer
from protocol.watching import Watch
from tests.support.fake_bots import ANY_GAME, FakeArena
from tests.support.page_reader import INSTRUCTOR, PUBLIC, owner
from tests.support.scripts import Case, Stage, at, cases, fields, fit
from tests.support.watched_arena import FakeSpectator, PlayedOnDemand, WatchedArena
from tests.support.watched_elsewhere import WatchedElsewhere


class WatchingStage(Stage):
    """Matches and spectators by their names; whoever is not said to be somebody is eva."""

    def __init__(self, house: FakeArena, patch: pytest.MonkeyPatch) -> None:
        self._house = house
        self._patch = patch
        self._arena = WatchedArena(house)
        self._played: dict[str, PlayedOnDemand] = {}
        self._elsewhere: dict[str, WatchedElsewhere] = {}
        self._spectators: dict[str, FakeSpectator] = {}
        self._topics: dict[str, str | None] = {}
        self._frames: dict[str, list[dict[str, Any]]] = {}

    def _id(self, match: str) -> str:
        return self._played[match].table.id if match in self._played else match

    # --- what happens ---

    def do_pass(self, seconds: str) -> None:
        """Let time pass, with a turn of all every 50 ms."""
        for _ in range(round(float(seconds) / 0.05)):
            self._house.held_up(0.05)
            for other in self._elsewhere.values():
                other.turns()
            self._arena.spectators.tick(self._house.now)

    def do_set(self, text: str) -> None:
        name, number = text.split()
        self._patch.setattr(watched_match, name, int(number))

    def do_work(self, seconds: str) -> None:
        """What each look at the clock takes from now on."""
        self._arena.work_s = float(seconds)

    def do_hold(self, seconds: str) -> None:
        self._house.held_up(float(seconds))

    def do_lobby(self, names: str) -> None:
        """The lobby has changed."""
        self._arena.document = {"bots": names.split(), "now": self._house.now}

    def do_void(self, why: str) -> None:
        [played] = self._played.values()
        self._house.referee.void(played.table, why)

    # --- what a match does ---

    def by_waits(self, name: str, words: str) -> None:
        """Wait for its bots."""
        game, *_ = [word for word in words.split() if "=" not in word] or [ANY_GAME]
        settings = fields(" ".join(word for word in words.split() if "=" in word))
        self._played[name] = PlayedOnDemand(self._house, game, **settings)

    def by_begins(self, name: str, _: str) -> None:
        self._played[name].begins()

    def by_plays(self, name: str, words: str) -> None:
        self.by_waits(name, words)
        self.by_begins(name, "")

    def by_is(self, name: str, _: str) -> None:
        """It is in no competition."""
        self._arena.competition = None
        self.by_plays(name, "")

    def by_goes(self, name: str, text: str) -> None:
        answers, _, answer = text.partition(" ")
        self._played[name].goes_on(int(answers or 1), answer.replace("_", " ") or None)

    def by_notes(self, name: str, note: str) -> None:
        bot = self._played[name].asked
        assert bot is not None
        [ask] = bot.asks()
        self._house.say(bot, Answer(ask.match, ask.ask, "check", note))

    def by_ends(self, name: str, text: str) -> None:
        """Play a match to its end; or the latest events of one are all those of another."""
        if name in self._played:
            self._played[name].ends()
            return
        all_, latest = self._events(name), self._events(text.removeprefix("like "))
        assert all_[-len(latest) :] == latest

    def by_elsewhere(self, name: str, _: str) -> None:
        played = self._played[name]
        self._elsewhere[name] = WatchedElsewhere(self._house, played, self._arena)

    def by_cut(self, name: str, _: str) -> None:
        self._elsewhere[name].is_cut = True

    def by_uncut(self, name: str, _: str) -> None:
        self._elsewhere[name].is_cut = False

    def by_over(self, name: str, _: str) -> None:
        """The arena has the result."""
        self._elsewhere[name].ended()

    # --- what a spectator does ---

    def by_watches(self, name: str, text: str) -> None:
        topic, _, as_ = text.partition(" as ")
        match = None if topic == "lobby" else self._id(topic)
        viewer: Viewer = owner(as_) if as_ else INSTRUCTOR
        spectator = self._spectators.setdefault(name, FakeSpectator())
        watch = Watch("match" if match else "lobby", match)
        self._topics[name] = match
        self._arena.spectators.watch(spectator, watch, PUBLIC if as_ == "public" else viewer)

    def by_unwatches(self, name: str, _: str) -> None:
        self._arena.spectators.unwatch(self._spectators[name])

    def by_leaves(self, name: str, _: str) -> None:
        self._arena.spectators.disconnected(self._spectators[name])

    def by_dismisses(self, name: str, other: str) -> None:
        """Another one leaves when this one gets the next frame."""
        self._spectators[name].on_send = lambda: self.by_leaves(other, "")

    def by_stalls(self, name: str, _: str) -> None:
        self._spectators[name].is_behind = True

    def by_resumes(self, name: str, _: str) -> None:
        self._spectators[name].is_behind = False

    def by_reads(self, name: str, _: str) -> None:
        frames = self._frames[name] = self._spectators[name].read()
        assert all(frame.get("match") == self._topics[name] for frame in frames)

    # --- what is so ---

    def by_gets(self, name: str, kinds: str) -> None:
        """Read what has come: frames of these kinds."""
        self.by_reads(name, "")
        assert [frame["type"] for frame in self._frames[name]] == kinds.replace(
            "nothing", ""
        ).split()

    def by_count(self, name: str, text: str) -> None:
        """So many frames at least and at most have come and are not read."""
        least, most = map(int, text.split())
        assert least <= len(self._spectators[name].frames) <= most

    def by_sees(self, name: str, text: str) -> None:
        """One of the frames that were read, or a part of it, is as is said."""
        path, _, expected = text.partition(" ")
        fit(at(self._frames[name], path), expected)

    def by_lacks(self, name: str, field: str) -> None:
        assert all(field not in frame for frame in self._frames[name])

    def by_hears(self, name: str, kinds: str) -> None:
        assert [event["event"] for event in self._events(name)] == kinds.split()

    def by_noted(self, name: str, notes: str) -> None:
        answered = [event for event in self._events(name) if event["event"] == "answered"]
        assert [str(event.get("note")) for event in answered] == notes.split()

    def by_knows(self, name: str, what: str) -> None:
        """The latest frame has the match's scores, or its decisions; or all have its answers."""
        [table] = [played.table for played in self._played.values()]
        assert table.match is not None
        if what == "all answers":
            answered = [event for event in self._events(name) if event["event"] == "answered"]
            assert len(answered) == len(table.match.answers) > 10
            return
        so = list(table.match.scores) if what == "the scores" else table.decisions
        assert self._frames[name][-1][what.removeprefix("the ")] == so

    def do_viewers(self, text: str) -> None:
        match, number = text.split()
        assert self._arena.spectators.viewers(self._id(match)) == int(number)

    def by_orders(self, name: str, orders: str) -> None:
        """What the worker was told: whether somebody watches."""
        assert [str(order) for order in self._elsewhere[name].orders] == orders.split()

    def by_carried(self, name: str, text: str) -> None:
        """Frames have come through since this was looked at, or `nothing`."""
        carried = self._elsewhere[name].carried
        assert bool(carried) == (text != "nothing")
        carried.clear()

    def _events(self, name: str) -> list[dict[str, Any]]:
        frames = (frame for frame in self._frames[name] if frame["type"] == "events")
        return [event for frame in frames for event in frame["events"]]


@pytest.mark.parametrize("case", cases(Path(__file__).with_name("spectators.cases")))
async def test_what_spectators_see(
    house: FakeArena, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    await WatchingStage(house, monkeypatch).play(case)
