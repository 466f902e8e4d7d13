"""Spectators of live matches, without sockets: which frames they get, and how often."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from arena.competitions import watched_match
from arena.games import GAMES
from arena.records import seat_transcript
from arena.records.visibility import Viewer, ViewerKind
from protocol.messages import Answer, Ending
from protocol.watching import Watch
from tests.support.watched_arena import (
    INSTRUCTOR,
    NAMES,
    FakeSpectator,
    PlayedOnDemand,
    WatchedArena,
    begun,
)

if TYPE_CHECKING:
    from tests.support.fake_bots import FakeArena

EACH_GAME = pytest.mark.parametrize("game", GAMES)
A_CARD = re.compile(rb'"([2-9TJQKA][shdc]|[AKQ])"')


@pytest.fixture
def arena(house: FakeArena) -> WatchedArena:
    return WatchedArena(house)


def events(frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for frame in frames if frame["type"] == "events" for event in frame["events"]]


def types(frames: list[dict[str, Any]]) -> list[str]:
    return [frame["type"] for frame in frames]


# ---- The lobby


def test_the_lobby_is_shown_at_once_and_again_when_it_has_changed(arena: WatchedArena) -> None:
    spectator = arena.comes()
    arena.passes(3)

    first, *same = spectator.read()
    assert first == {"type": "lobby", "bots": []}
    assert len(same) <= 1
    arena.document = {"bots": ["ann"]}
    arena.passes(3)
    assert spectator.read() == [{"type": "lobby", "bots": ["ann"]}]


def test_the_lobby_is_shown_once_a_second_at_most(arena: WatchedArena) -> None:
    spectator = arena.comes()
    for number in range(100):
        arena.document = {"number": number}
        arena.passes(0.05)

    assert 4 <= len(spectator.frames) <= 7


def test_who_was_behind_sees_the_lobby_as_it_is_then(arena: WatchedArena) -> None:
    spectator = arena.comes()
    arena.passes(2)
    spectator.is_behind = True
    arena.document = {"bots": ["ann"]}
    arena.passes(2)
    spectator.read()
    spectator.is_behind = False
    arena.passes(2)

    assert spectator.read() == [{"type": "lobby", "bots": ["ann"]}]


# ---- A match


def test_a_match_begins_with_its_scene_and_what_was_played_of_the_round(
    house: FakeArena, arena: WatchedArena
) -> None:
    played = begun(house)
    played.goes_on(1, "bet")
    spectator = arena.comes(played.table)

    [scene] = spectator.read()
    assert scene["type"] == "scene"
    assert scene["match"] == played.table.id
    assert scene["players"] == ["ann", "ben"]
    assert scene["settings"] == {"hands": 4}
    assert scene["view"] == {"kind": "all", "seats": []}
    assert scene["competition"] == "7"
    assert scene["limits"]["decision_ms"] == 1000
    arena.passes(0.05)
    [frame] = spectator.read()
    assert (frame["reset"], frame["round"], frame["decisions"]) == (True, 1, 1)
    assert [event["event"] for event in frame["events"]] == ["dealt", "asked", "answered", "asked"]


def test_a_scene_says_which_versions_play(house: FakeArena, arena: WatchedArena) -> None:
    played = begun(house, versions=("v3", "connected"))
    [scene] = arena.comes(played.table).read()
    [other] = arena.comes(begun(house).table).read()

    assert scene["versions"] == ["v3", "connected"]
    assert "versions" not in other


@EACH_GAME
def test_who_looks_on_sees_the_whole_match_as_it_is_told(
    house: FakeArena, arena: WatchedArena, game: str
) -> None:
    played = begun(house, game)
    spectator = arena.comes(played.table)
    while played.goes_on(1):
        arena.passes(0.1)
    arena.passes(0.1)

    [(_, result, _)] = house.results
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


def test_the_round_of_a_frame_is_that_of_its_first_event(
    house: FakeArena, arena: WatchedArena
) -> None:
    played = begun(house, hands=20)
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


def test_the_turn_is_whose_and_for_how_long(house: FakeArena, arena: WatchedArena) -> None:
    played = begun(house)
    house.held_up(0.4)
    spectator = arena.comes(played.table)
    arena.passes(0.05)

    assert spectator.read()[-1]["turn"] == {
        "seat": 0,
        "kind": "open",
        "waited_ms": pytest.approx(450, abs=1),
        "bank_ms": 3000,
        "decision_ms": 1000,
    }


def test_a_match_that_waits_for_its_bots_shows_an_empty_table(
    house: FakeArena, arena: WatchedArena
) -> None:
    played = PlayedOnDemand(house, "gin_rummy")
    spectator = arena.comes(played.table)
    arena.passes(0.2)

    scene, frame = spectator.read()
    assert scene["scores"] == [0, 0]
    assert (frame["reset"], frame["events"], frame["turn"]) == (True, [], None)
    played.begins()
    arena.passes(0.1)
    [frame] = spectator.read()
    assert frame["round"] == 1
    assert frame["events"][-1]["event"] == "asked"


def test_nothing_is_sent_while_nothing_happens(house: FakeArena, arena: WatchedArena) -> None:
    spectator = arena.comes(begun(house).table)
    arena.passes(0.1)
    spectator.read()
    arena.passes(2)

    assert spectator.read() == []


def test_a_match_that_is_not_played_is_gone(arena: WatchedArena) -> None:
    spectator = FakeSpectator()
    arena.spectators.watch(spectator, Watch("match", "x-1"), Viewer())

    assert spectator.read() == [{"type": "gone", "match": "x-1"}]


def test_a_match_that_is_over_is_gone_a_moment_later(house: FakeArena, arena: WatchedArena) -> None:
    played = begun(house)
    spectator = arena.comes(played.table)
    played.ends()
    arena.passes(0.5)

    assert types(spectator.read()) == ["scene", "events"]
    late = arena.comes(played.table)
    assert types(late.read()) == ["gone"]
    arena.passes(1)
    assert spectator.read() == [{"type": "gone", "match": played.table.id}]
    assert arena.spectators.viewers(played.table.id) == 0
    arena.passes(1)
    assert spectator.read() == []


def test_a_match_that_is_void_before_its_first_card_ends_with_that(
    house: FakeArena, arena: WatchedArena
) -> None:
    played = PlayedOnDemand(house, "gin_rummy")
    spectator = arena.comes(played.table)
    arena.passes(0.1)
    house.referee.void(played.table, "the instructor says so")
    arena.passes(2)

    *_, frame, gone = spectator.read()
    [over] = frame["events"]
    assert over["termination"]["kind"] == "void"
    assert over["termination"]["text"] == "the instructor says so"
    assert gone["type"] == "gone"


def test_an_offence_is_shown_and_what_it_was_only_to_some(
    house: FakeArena, arena: WatchedArena
) -> None:
    played = begun(house)
    spectator = arena.comes(played.table)
    public = arena.comes(played.table, Viewer())
    played.goes_on(1, "all in")
    arena.passes(0.1)

    def ended(who: FakeSpectator) -> dict[str, Any]:
        termination: dict[str, Any] = events(who.read())[-1]["termination"]
        return termination

    assert ended(public) == {"kind": "illegal", "seat": 0, "text": ""}
    assert "answered" in ended(spectator)["text"]
    assert house.results[0][1].termination.kind is Ending.ILLEGAL


def test_notes_are_for_the_instructor(house: FakeArena, arena: WatchedArena) -> None:
    played = begun(house)
    spectators = [arena.comes(played.table, viewer) for viewer in (INSTRUCTOR, Viewer())]
    for note in (None, "bluff", None, "again"):
        bot = played.asked
        assert bot is not None
        [ask] = bot.asks()
        house.say(bot, Answer(ask.match, ask.ask, "check", note))
    arena.passes(0.1)

    notes, none = (
        [e.get("note") for e in events(spectator.read()) if e["event"] == "answered"]
        for spectator in spectators
    )
    assert notes == [None, "bluff", None, "again"]
    assert none == [None] * 4


def test_whoever_watches_something_else_hears_no_more_of_this(
    house: FakeArena, arena: WatchedArena
) -> None:
    first, second = begun(house), begun(house)
    spectator = arena.comes(first.table)
    arena.watches(spectator, second.table)
    arena.passes(0.1)
    first.goes_on(2)
    arena.passes(0.2)

    assert {frame["match"] for frame in spectator.read()[1:]} == {second.table.id}
    assert arena.spectators.viewers(first.table.id) == 0
    assert arena.spectators.viewers(second.table.id) == 1
    arena.spectators.unwatch(spectator)
    second.goes_on(2)
    arena.passes(0.2)
    assert spectator.read() == []


def test_a_frame_on_its_way_to_who_has_left_is_not_sent(
    house: FakeArena, arena: WatchedArena
) -> None:
    played = begun(house)
    first, second = arena.comes(played.table), arena.comes(played.table)
    first.on_send = lambda: arena.spectators.disconnected(second)
    arena.passes(0.1)

    assert types(first.read()) == ["scene", "events"]
    assert types(second.read()) == ["scene"]


def test_nobody_who_has_left_is_counted(house: FakeArena, arena: WatchedArena) -> None:
    played = begun(house)
    spectators = [arena.comes(played.table) for _ in range(3)]
    for spectator in spectators:
        arena.spectators.disconnected(spectator)
        arena.spectators.disconnected(spectator)  # once more means nothing

    assert arena.spectators.viewers(played.table.id) == 0
    arena.passes(30)
    assert types(arena.comes(played.table).read()) == ["scene"]


# ---- Late and slow


def test_a_late_joiner_sees_the_present_round_from_its_beginning(
    house: FakeArena, arena: WatchedArena
) -> None:
    played = begun(house, hands=1_000)
    played.goes_on(500, "check")
    early = arena.comes(played.table)
    arena.passes(0.3)
    assert played.asked is played.bots[0]
    played.goes_on(1, "bet")
    arena.passes(0.3)
    late = arena.comes(played.table)
    arena.passes(0.3)

    _, frame = late.read()
    assert frame["reset"] is True
    assert [event["event"] for event in frame["events"]] == ["dealt", "asked", "answered", "asked"]
    shown = events(early.read())
    assert shown[-4:] == frame["events"]
    match = played.table.match
    assert match is not None
    assert frame["scores"] == list(match.scores)


def test_two_who_come_at_different_times_see_the_same_from_then_on(
    house: FakeArena, arena: WatchedArena
) -> None:
    played = begun(house, "gin_rummy", max_rounds=3)
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


def test_a_long_match_is_caught_up_with_in_slices(house: FakeArena, arena: WatchedArena) -> None:
    """No tick takes longer than its time, however much was played before."""
    played = begun(house, hands=10_000)
    played.goes_on(9_000, "check")
    spectator = arena.comes(played.table)
    arena.work_s = 0.001  # each look at the clock
    ticks = 0
    while len(spectator.frames) < 2:
        worked_s = arena.worked_s
        arena.passes(0.05)
        assert arena.worked_s - worked_s < 0.05
        ticks += 1

    _, frame = spectator.read()
    assert ticks > 10
    assert frame["round"] > 8_000
    assert frame["reset"] is True


def test_a_match_that_is_too_fast_for_us_is_shown_late(
    house: FakeArena, arena: WatchedArena
) -> None:
    played = begun(house, hands=10_000)
    spectator = arena.comes(played.table)
    arena.work_s = 0.02  # no tick gets further than sixteen answers
    for _ in range(70):
        played.goes_on(40, "check")
        arena.passes(0.05)

    *_, frame = spectator.read()
    assert frame["type"] == "events"
    assert frame["decisions"] < 2_000
    assert frame["turn"] is None


def test_rounds_that_nobody_could_follow_are_left_out_whole(
    house: FakeArena, arena: WatchedArena
) -> None:
    played = begun(house, hands=10_000)
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


def test_the_end_of_a_match_is_never_left_out(house: FakeArena, arena: WatchedArena) -> None:
    played = begun(house, hands=2_000)
    spectator = arena.comes(played.table)
    arena.passes(0.05)
    played.ends()
    arena.passes(0.5)

    [(_, result, _)] = house.results
    *_, frame = spectator.read()
    assert frame["events"][-1]["event"] == "over"
    assert frame["scores"] == list(result.scores)
    assert frame["skipped"] > 1_900


def test_the_last_round_is_told_however_fast_it_was(
    house: FakeArena, arena: WatchedArena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_match, "_LATEST", 5)
    played = begun(house, "gin_rummy", games=1, max_rounds=1)
    spectator = arena.comes(played.table)
    arena.passes(0.1)
    played.ends()
    arena.passes(0.5)

    [(_, result, _)] = house.results
    told = [e for e in events(spectator.read()) if e["event"] == "answered"]
    assert len(told) == len(result.record.answers) > 10


def test_a_round_of_many_turns_is_told_in_one_piece(
    house: FakeArena, arena: WatchedArena, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gin round may have more events than a frame of short rounds."""
    monkeypatch.setattr(watched_match, "MOST_EVENTS", 50)
    played = begun(house, "gin_rummy")
    played.goes_on(50)
    early = arena.comes(played.table)
    arena.passes(0.3)

    _, frame = early.read()
    assert len(frame["events"]) > watched_match.MOST_EVENTS
    assert frame["round"] == 1
    late = arena.comes(played.table)
    arena.passes(0.3)
    assert events(late.read()) == frame["events"]


def test_a_round_without_end_is_not_begun_in_its_middle(
    house: FakeArena, arena: WatchedArena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_match, "LONGEST", 50)
    played = begun(house, "gin_rummy", max_rounds=2)
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


def test_frames_come_ten_times_a_second_at_most_and_four_times_if_much_happens(
    house: FakeArena, arena: WatchedArena
) -> None:
    slow, fast = begun(house, hands=1_000), begun(house, hands=10_000)
    of_slow, of_fast = arena.comes(slow.table), arena.comes(fast.table)
    arena.passes(1)
    of_slow.read(), of_fast.read()
    for _ in range(40):
        slow.goes_on(1, "check")
        fast.goes_on(50, "check")
        arena.passes(0.05)

    assert 18 <= len(of_slow.frames) <= 21
    assert 7 <= len(of_fast.frames) <= 9


def test_the_more_look_on_the_fewer_frames_each_gets(house: FakeArena, arena: WatchedArena) -> None:
    played = begun(house, hands=10_000)
    spectators = [arena.comes(played.table) for _ in range(2_000)]
    for _ in range(80):
        played.goes_on(1, "check")
        arena.passes(0.05)

    assert len(spectators[0].frames) <= 4
    assert sum(len(spectator.frames) for spectator in spectators) >= 4_000


def test_sending_stops_where_the_time_is_up_and_goes_on_with_the_next_tick(
    house: FakeArena, arena: WatchedArena
) -> None:
    played = begun(house)
    spectators = [arena.comes(played.table) for _ in range(20)]
    for spectator in spectators:
        spectator.read()
    arena.work_s = 0.0002
    ticks = 0
    while not all(spectator.frames for spectator in spectators):
        arena.passes(0.05)
        ticks += 1
        assert ticks < 20

    assert ticks > 1
    frames = {frame for spectator in spectators for frame in spectator.frames}
    assert len(frames) == 1


def test_a_frame_is_made_once_for_each_way_to_see_the_match(
    house: FakeArena, arena: WatchedArena
) -> None:
    played = begun(house)
    viewers = [Viewer(), INSTRUCTOR, Viewer(ViewerKind.OWNER, "ann"), Viewer()]
    spectators = [arena.comes(played.table, viewer) for viewer in viewers]
    arena.passes(0.1)

    frames = [spectator.frames[-1] for spectator in spectators]
    assert frames[0] is frames[3]
    assert len(set(frames)) == 3


def test_who_is_behind_misses_frames_and_sees_the_round_from_its_beginning(
    house: FakeArena, arena: WatchedArena
) -> None:
    played = begun(house, hands=50)
    spectator, other = arena.comes(played.table), arena.comes(played.table)
    arena.passes(0.1)
    spectator.read()
    spectator.is_behind = True
    for _ in range(9):
        played.goes_on(1, "check")
        arena.passes(0.1)
    assert spectator.frames == []
    spectator.is_behind = False
    arena.passes(0.1)

    [frame] = spectator.read()
    assert frame["reset"]
    assert frame["round"] == 10
    assert [event["event"] for event in frame["events"]] == ["dealt", "asked"]
    played.goes_on(1, "check")
    arena.passes(0.1)
    assert spectator.read() == other.read()[-1:]


def test_who_comes_back_in_time_goes_on_watching(house: FakeArena, arena: WatchedArena) -> None:
    """A match without spectators for a moment is not dropped when the next one has come."""
    played = begun(house, hands=1_000)
    arena.spectators.disconnected(arena.comes(played.table))
    arena.passes(5)
    spectator = arena.comes(played.table)
    arena.passes(15)
    spectator.read()
    played.goes_on(1, "check")
    arena.passes(0.2)

    assert types(spectator.read()) == ["events"]


def test_telling_many_matches_takes_no_longer_than_telling_one(
    house: FakeArena, arena: WatchedArena
) -> None:
    """Matches that do not fit into a tick are replayed in the next one."""
    many = [begun(house, hands=1_000) for _ in range(60)]
    spectators = [arena.comes(played.table) for played in many]
    arena.passes(10)
    for spectator in spectators:
        spectator.read()
    arena.work_s = 0.001  # each look at the clock
    for played in many:
        played.goes_on(1, "check")
    ticks = 0
    while not all(spectator.frames for spectator in spectators):
        worked_s = arena.worked_s
        arena.passes(0.05)
        assert arena.worked_s - worked_s < 0.03
        ticks += 1
        assert ticks < 300

    assert ticks > 5


def test_telling_takes_less_of_the_time_while_much_is_played(
    house: FakeArena, arena: WatchedArena
) -> None:
    played, other = begun(house, hands=10_000), begun(house, hands=10_000)
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


def test_those_who_have_waited_longest_get_the_next_frames(
    house: FakeArena, arena: WatchedArena
) -> None:
    """However little time there is for it, nobody is left out for ever."""
    many = [begun(house, hands=1_000) for _ in range(12)]
    spectators = [arena.comes(played.table) for played in many]
    arena.work_s = 0.0006
    for _ in range(100):
        for played in many:
            played.goes_on(1, "check")
        arena.passes(0.05)

    counts = [len(spectator.frames) for spectator in spectators]
    assert min(counts) > 3
    assert max(counts) < 2 * min(counts)


def test_what_cannot_be_sent_in_time_does_not_pile_up(
    house: FakeArena, arena: WatchedArena
) -> None:
    """There are fewer frames then, and those are of this moment."""
    played = begun(house, hands=10_000)
    spectators = [arena.comes(played.table) for _ in range(40)]
    arena.work_s = 0.002  # one frame is sent in a tick
    for _ in range(400):
        played.goes_on(1, "check")
        arena.passes(0.05)

    latest = [spectator.read()[-1]["decisions"] for spectator in spectators]
    assert min(latest) > 250


def test_that_a_match_is_gone_is_told_to_who_is_behind_too(
    house: FakeArena, arena: WatchedArena
) -> None:
    played = begun(house)
    spectator = arena.comes(played.table)
    arena.passes(0.1)
    spectator.is_behind = True
    played.ends()
    arena.passes(2)

    assert types(spectator.read())[-1] == "gone"


def test_a_page_that_is_loaded_again_finds_its_match_told(
    house: FakeArena, arena: WatchedArena
) -> None:
    played = begun(house, hands=10_000)
    played.goes_on(3_000, "check")
    arena.spectators.disconnected(arena.comes(played.table))
    spectator = arena.comes(played.table)
    arena.passes(1)
    spectator.read()
    arena.spectators.disconnected(spectator)
    arena.passes(5)
    again = arena.comes(played.table)

    assert again.read()[0]["round"] == 3_001
    arena.spectators.disconnected(again)
    arena.passes(11)
    assert arena.comes(played.table).read()[0]["round"] == 1


def test_a_match_that_cannot_be_told_is_no_reason_to_stop_all(
    house: FakeArena,
    arena: WatchedArena,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken, sound = begun(house), begun(house)
    spectators = [arena.comes(broken.table), arena.comes(sound.table)]
    broken.table.seed = bytes(32)  # other cards than those that were dealt
    broken.goes_on(1, "bet")
    broken.goes_on(1, "call")
    monkeypatch.setattr(broken.table.match, "answers", ["call"])
    arena.passes(0.2)

    assert types(spectators[0].read()) == ["scene", "gone"]
    assert types(spectators[1].read()) == ["scene", "events"]
    assert f"match {broken.table.id} cannot be shown" in caplog.text


# ---- Who sees what


@EACH_GAME
def test_J8_no_frame_for_spectators_has_a_card_that_a_seat_does_not_know(
    house: FakeArena, arena: WatchedArena, game: str
) -> None:
    played = begun(house, game)
    public = arena.comes(played.table, Viewer())
    owners = [
        arena.comes(played.table, Viewer(ViewerKind.OWNER, name))
        for name in NAMES[: len(played.bots)]
    ]
    shown: list[set[bytes]] = [set() for _ in played.bots]
    while (bot := played.asked) is not None:
        arena.passes(0.1)
        for owner, cards in zip(owners, shown, strict=True):
            cards |= set(A_CARD.findall(b"".join(owner.frames)))
            owner.frames.clear()
        seen = set(A_CARD.findall(b"".join(public.frames)))
        public.frames.clear()
        assert seen <= set.intersection(*shown)
        [ask] = bot.asks()
        house.answer(bot, ask)


def test_J8_a_view_follows_from_the_token(house: FakeArena, arena: WatchedArena) -> None:
    played = begun(house)
    for viewer, view in (
        (Viewer(), {"kind": "public", "seats": []}),
        (Viewer(ViewerKind.OWNER, "ben"), {"kind": "seat", "seats": [1]}),
        (Viewer(ViewerKind.OWNER, "eva"), {"kind": "public", "seats": []}),
        (INSTRUCTOR, {"kind": "all", "seats": []}),
    ):
        [scene] = arena.comes(played.table, viewer).read()
        assert scene["view"] == view


def test_a_match_outside_of_any_competition_says_so(house: FakeArena, arena: WatchedArena) -> None:
    arena.competition = None
    [scene] = arena.comes(begun(house).table, Viewer()).read()

    assert scene["competition"] is None
    assert scene["view"]["kind"] == "public"
