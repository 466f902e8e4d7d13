"""Matches of other machines for their spectators here: the same as of the arena's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from arena.competitions import watched_match
from arena.competitions.remote_match import PublicFrame
from arena.games import GAMES
from arena.records.visibility import Viewer, ViewerKind
from arena.web import watched_remote
from tests.support.watched_arena import INSTRUCTOR, PlayedOnDemand, WatchedArena, begun
from tests.support.watched_elsewhere import WatchedElsewhere, rounds_of_frames

if TYPE_CHECKING:
    from tests.support.fake_bots import FakeArena
    from tests.support.watched_arena import FakeSpectator

EACH_GAME = pytest.mark.parametrize("game", GAMES)
OWNER = Viewer(ViewerKind.OWNER, "ben")


@pytest.fixture
def arena(house: FakeArena) -> WatchedArena:
    return WatchedArena(house)


def elsewhere(
    house: FakeArena, arena: WatchedArena, game: str = "ace_king_queen", **about: Any
) -> tuple[PlayedOnDemand, WatchedElsewhere]:
    played = begun(house, game, **about)
    return played, WatchedElsewhere(house, played, arena)


def of_type(frames: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [frame for frame in frames if frame["type"] == kind]


# ---- As in process


@EACH_GAME
def test_a_spectator_sees_what_one_of_the_same_match_in_process_sees(
    house: FakeArena, arena: WatchedArena, game: str
) -> None:
    played, other = elsewhere(house, arena, game)
    here = WatchedArena(house)
    remote, local = arena.comes(other.remote, Viewer()), here.comes(played.table, Viewer())
    for _ in range(60):
        if not played.goes_on():
            break
        other.passes(0.3)
        here.spectators.tick(house.now)
    shown, wanted = remote.read(), local.read()

    rules = played.table.game
    assert rounds_of_frames(shown, rules) == rounds_of_frames(wanted, rules)
    assert of_type(shown, "events")[-1]["scores"] == of_type(wanted, "events")[-1]["scores"]
    expected = of_type(wanted, "scene")[0] | {"elsewhere": True}
    assert of_type(shown, "scene") == [expected]


def test_what_happens_is_seen_within_a_second(house: FakeArena, arena: WatchedArena) -> None:
    played, other = elsewhere(house, arena, hands=1_000)
    spectator = arena.comes(other.remote)
    other.passes(1.0)
    spectator.read()
    for _ in range(20):
        before = played.table.decisions
        played.goes_on()
        other.passes(0.5)
        assert spectator.read()[-1]["decisions"] == before + 1


def test_whose_turn_it_is_is_told_with_the_time_on_the_way(
    house: FakeArena, arena: WatchedArena
) -> None:
    played, other = elsewhere(house, arena)
    spectator = arena.comes(other.remote)
    other.passes(0.3)
    [*_, frame] = spectator.read()

    asked = played.asked
    assert asked is not None
    assert frame["turn"]["seat"] == played.bots.index(asked)
    assert frame["turn"]["waited_ms"] <= 300


def test_a_latecomer_gets_the_present_round(house: FakeArena, arena: WatchedArena) -> None:
    played, other = elsewhere(house, arena, "high_low")
    first = arena.comes(other.remote)
    for _ in range(12):
        played.goes_on()
        other.passes(0.3)
    late = arena.comes(other.remote)
    other.passes(0.3)
    frames = late.read()

    rules = played.table.game
    [scene], [news] = of_type(frames, "scene"), of_type(frames, "events")
    assert news["reset"]
    assert news["round"] == scene["round"]
    seen = rounds_of_frames(first.read(), rules)
    assert rounds_of_frames(frames, rules) == {news["round"]: seen[news["round"]]}
    assert other.orders == [True], "the worker is not asked for it"


def test_one_who_comes_in_the_middle_of_a_match_sees_what_follows(
    house: FakeArena, arena: WatchedArena
) -> None:
    played, other = elsewhere(house, arena, hands=1_000)
    played.goes_on(700)
    spectator = arena.comes(other.remote)
    other.passes(1.0)
    played.goes_on(5)
    other.passes(1.0)
    frames = of_type(spectator.read(), "events")

    assert frames[0]["reset"]
    assert frames[-1]["decisions"] == 705


def test_a_match_that_has_not_begun_has_an_empty_table(
    house: FakeArena, arena: WatchedArena
) -> None:
    played = PlayedOnDemand(house, "ace_king_queen")
    other = WatchedElsewhere(house, played, arena)
    spectator = arena.comes(other.remote)
    other.passes(0.5)
    before = spectator.read()
    played.begins()
    other.passes(0.5)

    assert [frame["events"] for frame in of_type(before, "events")] == [[]]
    assert of_type(spectator.read(), "events")[0]["events"]


def test_the_end_is_shown_and_then_the_match_is_gone(house: FakeArena, arena: WatchedArena) -> None:
    played, other = elsewhere(house, arena, hands=20)
    spectator = arena.comes(other.remote)
    played.ends()
    other.passes(0.5)
    shown = spectator.read()
    other.ended()
    other.passes(1.5)

    assert of_type(shown, "events")[-1]["events"][-1]["event"] == "over"
    assert [frame["type"] for frame in spectator.read()] == ["gone"]
    assert other.orders == [True, False]


def test_a_match_that_is_lost_with_its_worker_is_gone(
    house: FakeArena, arena: WatchedArena
) -> None:
    _, other = elsewhere(house, arena)
    other.is_cut = True
    spectator = arena.comes(other.remote)
    other.passes(5.0)
    other.ended()
    other.passes(1.5)

    assert [frame["type"] for frame in spectator.read()] == ["scene", "gone"]


# ---- Who sees what


@pytest.mark.parametrize("viewer", [Viewer(), OWNER, INSTRUCTOR])
def test_everybody_has_the_public_view_and_is_told_that_it_is_played_elsewhere(
    house: FakeArena, arena: WatchedArena, viewer: Viewer
) -> None:
    _, other = elsewhere(house, arena)
    [scene] = arena.comes(other.remote, viewer).read()

    assert scene["view"] == {"kind": "public", "seats": []}
    assert scene["elsewhere"]
    assert scene["competition"] == "7"


# ---- Only while somebody watches


def test_nothing_comes_before_somebody_watches_nor_soon_after(
    house: FakeArena, arena: WatchedArena
) -> None:
    played, other = elsewhere(house, arena)
    other.passes(2.0)
    silent = list(other.orders)
    spectator = arena.comes(other.remote)
    other.passes(1.0)
    arena.spectators.disconnected(spectator)
    other.passes(11.0)
    carried = len(other.carried)
    played.goes_on()
    other.passes(3.0)

    assert not silent
    assert other.orders == [True, False]
    assert len(other.carried) == carried


def test_a_page_that_is_reloaded_asks_for_nothing(house: FakeArena, arena: WatchedArena) -> None:
    _, other = elsewhere(house, arena)
    spectator = arena.comes(other.remote)
    other.passes(1.0)
    arena.spectators.disconnected(spectator)
    other.passes(5.0)
    again = arena.comes(other.remote)
    other.passes(0.5)

    assert of_type(again.read(), "events")
    assert other.orders == [True]


# ---- Frames that are lost


def shows_all(spectator: FakeSpectator, played: PlayedOnDemand) -> dict[int, list[Any]]:
    return rounds_of_frames(spectator.read(), played.table.game)


def test_after_a_loss_the_present_round_comes_whole(house: FakeArena, arena: WatchedArena) -> None:
    played, other = elsewhere(house, arena, "high_low")
    here = WatchedArena(house)
    spectator, local = arena.comes(other.remote, Viewer()), here.comes(played.table, Viewer())
    for number in range(30):
        other.is_cut = number % 7 == 3
        played.goes_on()
        other.passes(0.3)
        here.spectators.tick(house.now)
    other.is_cut = False
    other.passes(2.5)
    shown, wanted = shows_all(spectator, played), shows_all(local, played)

    newest = max(wanted)
    assert max(shown) == newest
    assert shown[newest] == wanted[newest]


def test_a_worker_that_has_not_heard_that_somebody_watches_is_told_again(
    house: FakeArena, arena: WatchedArena
) -> None:
    _, other = elsewhere(house, arena)
    other.is_cut = True
    spectator = arena.comes(other.remote)
    other.passes(3.0)
    other.is_cut = False
    other.passes(2.0)

    assert of_type(spectator.read(), "events")


def test_a_match_where_nobody_answers_for_long_is_not_asked_for_again(
    house: FakeArena, arena: WatchedArena
) -> None:
    _, other = elsewhere(house, arena)
    spectator = arena.comes(other.remote)
    other.passes(30.0)

    assert other.orders == [True]
    assert len(of_type(spectator.read(), "events")) == 1


# ---- More than anybody can follow


def frame(number: int, round_: int, events: int, **about: Any) -> bytes:
    fields: dict[str, Any] = {
        "number": number,
        "reset": number == 0,
        "round": round_,
        "events": tuple({"event": "told", "number": n} for n in range(events)),
        "present": 1,
        "present_round": round_,
        "turn": None,
        "scores": (0, 0),
        "decisions": number,
    }
    return msgspec.json.encode(PublicFrame(**{**fields, **about}))


def test_a_backlog_is_shown_as_its_present_round(house: FakeArena, arena: WatchedArena) -> None:
    _, other = elsewhere(house, arena)
    spectator = arena.comes(other.remote)
    other.remote.feed(frame(0, 1, 3, present=3))
    arena.passes(1.0)
    spectator.read()
    for number in range(1, 5):
        other.remote.feed(frame(number, number * 10, 60))
    arena.passes(0.05)
    [shown] = of_type(spectator.read(), "events")

    assert (shown["reset"], shown["round"], shown["skipped"]) == (True, 40, 39)
    assert len(shown["events"]) == 1


def test_of_a_round_without_an_end_newcomers_do_not_get_the_beginning(
    house: FakeArena, arena: WatchedArena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_remote, "LONGEST", 5)
    _, other = elsewhere(house, arena)
    spectator = arena.comes(other.remote)
    other.remote.feed(frame(0, 1, 6, present=6))
    arena.passes(0.3)
    late = arena.comes(other.remote)
    arena.passes(0.3)
    waiting = of_type(late.read(), "events")
    other.remote.feed(frame(1, 2, 2, present=2))
    arena.passes(0.3)

    assert len(of_type(spectator.read(), "events")) == 2
    assert not waiting
    assert of_type(late.read(), "events")[0]["round"] == 2
    assert watched_match.LONGEST > 5


def test_frames_that_cannot_be_read_are_ignored(house: FakeArena, arena: WatchedArena) -> None:
    _, other = elsewhere(house, arena)
    spectator = arena.comes(other.remote)
    other.remote.feed(b"\x00 nothing that anybody knows")
    arena.passes(0.5)

    assert [shown["type"] for shown in spectator.read()] == ["scene"]
