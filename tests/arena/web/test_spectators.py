"""Spectators of live matches, without sockets: which frames they get, and how often."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena.games.catalogue import GAMES
from arena.games.replay import CardsDealt, events_of
from arena.web import watched_match
from protocol.messages import Answer
from protocol.watching import Watch
from tests.support.fake_bots import ANY_GAME, FakeArena
from tests.support.page_reader import INSTRUCTOR, PUBLIC, owner
from tests.support.scripts import Case, Stage, at, cases, fields, fit
from tests.support.watched_arena import FakeSpectator, PlayedOnDemand, WatchedArena


class WatchingStage(Stage):
    """Matches and spectators by their names. Without another name a spectator is eva."""

    def __init__(self, house: FakeArena, patch: pytest.MonkeyPatch) -> None:
        self._house = house
        self._patch = patch
        self._arena = WatchedArena(house)
        self._played: dict[str, PlayedOnDemand] = {}
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

    # --- what a spectator does ---

    def by_watches(self, name: str, text: str) -> None:
        topic, _, as_ = text.partition(" as ")
        match = None if topic == "lobby" else self._id(topic)
        viewer = owner(as_) if as_ else INSTRUCTOR
        spectator = self._spectators.setdefault(name, FakeSpectator())
        watch = Watch("match" if match else "lobby", match)
        self._topics[name] = match
        self._arena.spectators.watch(spectator, watch, PUBLIC if as_ == "public" else viewer)

    def by_unwatches(self, name: str, _: str) -> None:
        self._arena.spectators.unwatch(self._spectators[name])

    def by_leaves(self, name: str, _: str) -> None:
        self._arena.spectators.unwatch(self._spectators[name])

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

    # --- what many do ---

    def do_crowd(self, text: str) -> None:
        """So many more watch a match."""
        number, match = text.split()
        for each in range(int(number)):
            self.by_watches(f"c{each}", match)

    def do_many(self, text: str) -> None:
        """So many matches begin, each with a spectator."""
        number, words = text.split(" ", 1)
        for each in range(int(number)):
            self.by_plays(f"m{each}", words)
            self.by_watches(f"c{each}", f"m{each}")

    def do_all(self, words: str) -> None:
        """Every match goes on."""
        for played in self._played:
            self.by_goes(played, words)

    def do_drain(self, _: str) -> None:
        for name in self._spectators:
            self.by_reads(name, "")

    def do_each(self, text: str) -> None:
        """Everybody has got so many frames at least, and at most; all together at least so many."""
        least, most, total = map(int, text.split())
        counts = [len(spectator.frames) for spectator in self._spectators.values()]
        assert min(counts) >= least
        assert max(counts) <= most
        assert sum(counts) >= total

    def do_ticks(self, text: str) -> None:
        """So many ticks pass until all have frames; none of them works for longer than is said."""
        least, most, most_s = map(float, text.split())
        passed = 0
        while not all(spectator.frames for spectator in self._spectators.values()):
            worked_s = self._arena.worked_s
            self.do_pass("0.05")
            assert self._arena.worked_s - worked_s < most_s
            passed += 1
            assert passed <= most
        assert passed >= least

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

    def _events(self, name: str) -> list[dict[str, Any]]:
        frames = (frame for frame in self._frames[name] if frame["type"] == "events")
        return [event for frame in frames for event in frame["events"]]


@pytest.mark.parametrize("case", cases(Path(__file__).with_name("spectators.cases")))
async def test_what_spectators_see(
    house: FakeArena, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    await WatchingStage(house, monkeypatch).play(case)


EACH_GAME = pytest.mark.parametrize("game", GAMES)


@pytest.fixture
def arena(house: FakeArena) -> WatchedArena:
    return WatchedArena(house)


def events(frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for frame in frames if frame["type"] == "events" for event in frame["events"]]


def types(frames: list[dict[str, Any]]) -> list[str]:
    return [frame["type"] for frame in frames]


# ---- A match


@EACH_GAME
def test_who_looks_on_sees_the_whole_match_as_it_is_told(arena: WatchedArena, game: str) -> None:
    played = arena.begun(game)
    spectator = arena.comes(played.table)
    while played.goes_on(1):
        arena.passes(0.1)
    arena.passes(0.1)

    [(_, result, _)] = arena.house.results
    scene, *frames = spectator.read()
    assert scene["type"] == "scene"
    shown = events(frames)
    answered = [event["value"] for event in shown if event["event"] == "answered"]
    assert answered == json.loads(result.record.to_json())["answers"]
    dealt = [event["deal"] for event in shown if event["event"] == "dealt"]
    deals = [each.deal for each in events_of(result.record) if isinstance(each, CardsDealt)]
    assert json.loads(json.dumps(dealt)) == json.loads(msgspec.json.encode(deals))
    assert shown[-1]["event"] == "over"
    assert frames[-1]["scores"] == list(result.scores)
    assert all(frame["skipped"] == 0 for frame in frames)
    assert [frame["reset"] for frame in frames] == [True] + [False] * (len(frames) - 1)


# ---- Late and slow


def test_rounds_that_nobody_could_follow_are_left_out_whole(arena: WatchedArena) -> None:
    played = arena.begun(hands=10_000)
    spectator = arena.comes(played.table, PUBLIC)
    arena.passes(0.05)
    for _ in range(20):
        played.goes_on(100, "check")
        arena.passes(0.25)
    arena.passes(0.25)

    _, *frames = spectator.read()
    told = skipped = 0
    number = 1
    for frame in frames:
        assert len(frame["events"]) <= watched_match.MOST_EVENTS
        if frame["skipped"]:
            assert frame["reset"]
            assert frame["events"][0]["event"] == "asked"
            number = frame["round"]
        skipped += frame["skipped"]
        for event in frame["events"]:
            if event["event"] == "told":
                assert event["news"]["round"] == number
                number += 1
                told += 1
    assert frames[-1]["decisions"] == 2_000
    assert skipped > 0
    # The first round was left out in part.
    assert 2_000 <= told + skipped <= 2_001
    assert frames[-1]["scores"] == list(played.table.match.scores)  # type: ignore[union-attr]


def test_a_round_without_end_is_not_begun_in_its_middle(
    arena: WatchedArena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_match, "LONGEST", 50)
    played = arena.begun("gin_rummy", max_rounds=2)
    early = arena.comes(played.table)
    arena.passes(0.1)
    played.goes_on(60)
    arena.passes(2)
    late = arena.comes(played.table)
    arena.passes(1)

    _, *frames = early.read()
    assert len(frames) > 3
    assert max(len(frame["events"]) for frame in frames) <= 50
    *earlier, last = frames[1:]
    assert all(frame["turn"] is None for frame in earlier), "there is more to come"
    assert last["turn"] is not None
    assert types(late.read()) == ["scene"]
    while played.goes_on(1):
        arena.passes(0.1)
    *frames, _ = late.read()
    assert frames[0]["reset"]
    assert frames[0]["round"] == 2


def test_telling_takes_less_of_the_time_while_much_is_played(arena: WatchedArena) -> None:
    played, other = arena.begun(hands=10_000), arena.begun(hands=10_000)
    other.goes_on(9_000, "check")
    arena.comes(other.table)
    arena.work_s = 0.0001

    def work_s() -> float:
        before_s = arena.worked_s
        arena.passes(0.05)
        return arena.worked_s - before_s

    assert played.goes_on(100, "check")
    busy_s, idle_s = work_s(), work_s()
    played.goes_on(100, "check")

    assert busy_s < idle_s / 2
    assert work_s() < idle_s / 2


def test_a_match_that_cannot_be_told_is_no_reason_to_stop_all(
    arena: WatchedArena, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken, sound = arena.begun(), arena.begun()
    spectators = [arena.comes(broken.table), arena.comes(sound.table)]
    broken.table.seed = bytes(32)  # other cards than those that were dealt
    broken.goes_on(1, "bet")
    broken.goes_on(1, "call")
    monkeypatch.setattr(broken.table.match, "answers", ["call"])
    arena.passes(0.2)

    assert types(spectators[0].read()) == ["scene", "gone"]
    assert types(spectators[1].read()) == ["scene", "events"]
    assert f"match {broken.table.id} cannot be shown" in caplog.text
