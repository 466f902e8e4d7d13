"""Spectators of live matches, without sockets: which frames they get, and how often."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from arena.competitions import watched_match
from arena.games import GAMES
from arena.records import seat_transcript
from arena.records.visibility import Viewer, ViewerKind
from tests.support.watched_arena import INSTRUCTOR, WatchedArena

if TYPE_CHECKING:
    from tests.support.fake_bots import FakeArena

EACH_GAME = pytest.mark.parametrize("game", GAMES)


@pytest.fixture
def arena(house: FakeArena) -> WatchedArena:
    return WatchedArena(house)


def events(frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for frame in frames if frame["type"] == "events" for event in frame["events"]]


def types(frames: list[dict[str, Any]]) -> list[str]:
    return [frame["type"] for frame in frames]


def ticks(arena: WatchedArena, is_done: Callable[[], bool], most_s: float = 1.0) -> int:
    """How many ticks pass until it is so; none of them works for longer."""
    for number in range(1, 300):
        worked_s = arena.worked_s
        arena.passes(0.05)
        assert arena.worked_s - worked_s < most_s
        if is_done():
            return number
    raise AssertionError("it is never so")


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
    told = seat_transcript.told(result.record, 0)
    assert json.loads(json.dumps(dealt)) == json.loads(json.dumps(told.decks))
    assert shown[-1]["event"] == "over"
    assert frames[-1]["scores"] == list(result.scores)
    assert all(frame["skipped"] == 0 for frame in frames)
    assert [frame["reset"] for frame in frames] == [True] + [False] * (len(frames) - 1)


def test_the_round_of_a_frame_is_that_of_its_first_event(arena: WatchedArena) -> None:
    played = arena.begun(hands=20)
    spectator = arena.comes(played.table)
    arena.passes(0.1)
    for _ in range(10):
        played.goes_on(1, "check")
        arena.passes(0.1)
    _, *frames = spectator.read()
    number, is_complete = 1, False
    for frame in frames:
        for at, event in enumerate(frame["events"]):
            number += is_complete
            is_complete = event.get("news", {}).get("kind") == "hand_over"
            if at == 0:
                assert frame["round"] == number

    assert number == 11


# ---- Late and slow


def test_two_who_come_at_different_times_see_the_same_from_then_on(arena: WatchedArena) -> None:
    played = arena.begun("gin_rummy", max_rounds=3)
    early = arena.comes(played.table)
    for _ in range(15):
        played.goes_on(1)
        arena.passes(0.1)
    late = arena.comes(played.table)
    arena.passes(0.1)
    early_so_far, late_so_far = events(early.read()), events(late.read())
    assert early_so_far[-len(late_so_far) :] == late_so_far
    while played.goes_on(1):
        arena.passes(0.1)

    assert early.read() == late.read()


def test_a_long_match_is_caught_up_with_in_slices(arena: WatchedArena) -> None:
    """No tick takes longer than its time, however much was played before."""
    played = arena.begun(hands=10_000)
    played.goes_on(9_000, "check")
    spectator = arena.comes(played.table)
    arena.work_s = 0.001  # each look at the clock

    assert ticks(arena, lambda: len(spectator.frames) == 2, most_s=0.05) > 10
    _, frame = spectator.read()
    assert frame["round"] > 8_000
    assert frame["reset"] is True


def test_rounds_that_nobody_could_follow_are_left_out_whole(arena: WatchedArena) -> None:
    played = arena.begun(hands=10_000)
    spectator = arena.comes(played.table, Viewer())
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


def test_the_more_look_on_the_fewer_frames_each_gets(arena: WatchedArena) -> None:
    played = arena.begun(hands=10_000)
    spectators = [arena.comes(played.table) for _ in range(2_000)]
    for _ in range(80):
        played.goes_on(1, "check")
        arena.passes(0.05)

    assert len(spectators[0].frames) <= 4
    assert sum(len(spectator.frames) for spectator in spectators) >= 4_000


def test_sending_stops_where_the_time_is_up_and_goes_on_with_the_next_tick(
    arena: WatchedArena,
) -> None:
    played = arena.begun()
    spectators = [arena.comes(played.table) for _ in range(20)]
    for spectator in spectators:
        spectator.read()
    arena.work_s = 0.0002

    assert 1 < ticks(arena, lambda: all(spectator.frames for spectator in spectators)) < 20
    frames = {frame for spectator in spectators for frame in spectator.frames}
    assert len(frames) == 1


def test_a_frame_is_made_once_for_each_way_to_see_the_match(arena: WatchedArena) -> None:
    played = arena.begun()
    viewers = [Viewer(), INSTRUCTOR, Viewer(ViewerKind.OWNER, "ann"), Viewer()]
    spectators = [arena.comes(played.table, viewer) for viewer in viewers]
    arena.passes(0.1)

    frames = [spectator.frames[-1] for spectator in spectators]
    assert frames[0] is frames[3]
    assert len(set(frames)) == 3


def test_telling_many_matches_takes_no_longer_than_telling_one(arena: WatchedArena) -> None:
    """Matches that do not fit into a tick are replayed in the next one."""
    many = [arena.begun(hands=1_000) for _ in range(60)]
    spectators = [arena.comes(played.table) for played in many]
    arena.passes(10)
    for spectator in spectators:
        spectator.read()
    arena.work_s = 0.001  # each look at the clock
    for played in many:
        played.goes_on(1, "check")

    assert ticks(arena, lambda: all(spectator.frames for spectator in spectators), most_s=0.03) > 5


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


def test_those_who_have_waited_longest_get_the_next_frames(arena: WatchedArena) -> None:
    """However little time there is for it, nobody is left out for ever."""
    many = [arena.begun(hands=1_000) for _ in range(12)]
    spectators = [arena.comes(played.table) for played in many]
    arena.work_s = 0.0006
    for _ in range(100):
        for played in many:
            played.goes_on(1, "check")
        arena.passes(0.05)

    counts = [len(spectator.frames) for spectator in spectators]
    assert min(counts) > 3
    assert max(counts) < 2 * min(counts)


def test_what_cannot_be_sent_in_time_does_not_pile_up(arena: WatchedArena) -> None:
    """There are fewer frames then, and those are of this moment."""
    played = arena.begun(hands=10_000)
    spectators = [arena.comes(played.table) for _ in range(40)]
    arena.work_s = 0.002  # one frame is sent in a tick
    for _ in range(400):
        played.goes_on(1, "check")
        arena.passes(0.05)

    latest = [spectator.read()[-1]["decisions"] for spectator in spectators]
    assert min(latest) > 250


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
