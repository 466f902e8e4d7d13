"""A match of another machine, as an arena knows it while nobody looks and while somebody does."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from arena.competitions.remote_match import PublicFrame, RemoteMatch
from arena.games import GAMES
from protocol.messages import Limits


def frame(**about: Any) -> PublicFrame:
    usual: dict[str, Any] = {
        "number": 0,
        "reset": True,
        "round": 1,
        "events": ({"event": "told", "news": {"kind": "x"}},),
        "present": 1,
        "present_round": 1,
        "turn": None,
        "scores": (2, -2),
        "decisions": 10,
    }
    return PublicFrame(**{**usual, **about})


@pytest.fixture
def match() -> RemoteMatch:
    game = GAMES["ace_king_queen"]
    settings = game.vocabulary.read_settings({})
    return RemoteMatch(
        *("m1", "w1", game, settings, Limits(), ("ann", "ben"), (), 5.0, lambda _: None)
    )


def test_a_frame_arrives_as_it_was_sent(match: RemoteMatch) -> None:
    match.feed(msgspec.json.encode(frame(number=0)))  # nobody looks at it
    assert (match.decisions, match.scores) == (10, (2, -2))

    taken: list[PublicFrame] = []
    match.on_frame = taken.append
    match.feed(msgspec.json.encode(frame(number=1)))
    assert taken == [frame(number=1)]


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff\x00", b'{"number": "one"}'])
def test_what_is_no_frame_changes_nothing(match: RemoteMatch, data: bytes) -> None:
    taken: list[PublicFrame] = []
    match.on_frame = taken.append
    match.feed(data)

    assert not taken
    assert (match.decisions, match.scores) == (0, (0, 0))


def test_news_that_were_overtaken_change_nothing(match: RemoteMatch) -> None:
    match.reported(10, (2, -2))
    match.reported(9, (1, -1))

    assert (match.decisions, match.scores) == (10, (2, -2))


@pytest.mark.parametrize("scores", [(), (1, 2, 3)], ids=["none", "of other seats"])
def test_scores_are_those_of_its_seats(match: RemoteMatch, scores: tuple[int, ...]) -> None:
    match.reported(10, (2, -2))
    match.reported(11, scores)

    assert (match.decisions, match.scores) == (11, (2, -2))


def test_it_is_over_when_the_arena_has_its_result(match: RemoteMatch) -> None:
    before = match.is_over
    match.ended()

    assert (before, match.is_over) == (False, True)
