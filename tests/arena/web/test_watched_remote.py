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
from tests.support.watched_arena import PlayedOnDemand, WatchedArena
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
    arena: WatchedArena, game: str = "ace_king_queen"
) -> tuple[PlayedOnDemand, WatchedElsewhere]:
    played = arena.begun(game)
    return played, WatchedElsewhere(arena.house, played, arena)


def of_type(frames: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [frame for frame in frames if frame["type"] == kind]


# ---- As in process


@EACH_GAME
def test_a_spectator_sees_what_one_of_the_same_match_in_process_sees(
    arena: WatchedArena, game: str
) -> None:
    played, other = elsewhere(arena, game)
    here = WatchedArena(arena.house)
    remote, local = arena.comes(other.remote, Viewer()), here.comes(played.table, Viewer())
    for _ in range(60):
        if not played.goes_on():
            break
        other.passes(0.3)
        here.spectators.tick(arena.house.now)
    shown, wanted = remote.read(), local.read()

    rules = played.table.game
    assert rounds_of_frames(shown, rules) == rounds_of_frames(wanted, rules)
    assert of_type(shown, "events")[-1]["scores"] == of_type(wanted, "events")[-1]["scores"]
    expected = of_type(wanted, "scene")[0] | {"elsewhere": True}
    assert of_type(shown, "scene") == [expected]


def test_a_latecomer_gets_the_present_round(arena: WatchedArena) -> None:
    played, other = elsewhere(arena, "high_low")
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


# ---- Frames that are lost


def shows_all(spectator: FakeSpectator, played: PlayedOnDemand) -> dict[int, list[Any]]:
    return rounds_of_frames(spectator.read(), played.table.game)


def test_after_a_loss_the_present_round_comes_whole(arena: WatchedArena) -> None:
    played, other = elsewhere(arena, "high_low")
    here = WatchedArena(arena.house)
    spectator, local = arena.comes(other.remote, Viewer()), here.comes(played.table, Viewer())
    for number in range(30):
        other.is_cut = number % 7 == 3
        played.goes_on()
        other.passes(0.3)
        here.spectators.tick(arena.house.now)
    other.is_cut = False
    other.passes(2.5)
    shown, wanted = shows_all(spectator, played), shows_all(local, played)

    newest = max(wanted)
    assert max(shown) == newest
    assert shown[newest] == wanted[newest]


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


def test_a_backlog_is_shown_as_its_present_round(arena: WatchedArena) -> None:
    _, other = elsewhere(arena)
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
    arena: WatchedArena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_remote, "LONGEST", 5)
    _, other = elsewhere(arena)
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


def test_frames_that_cannot_be_read_are_ignored(arena: WatchedArena) -> None:
    _, other = elsewhere(arena)
    spectator = arena.comes(other.remote)
    other.remote.feed(b"\x00 nothing that anybody knows")
    arena.passes(0.5)

    assert [shown["type"] for shown in spectator.read()] == ["scene"]
