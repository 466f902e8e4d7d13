"""What a worker sends of a watched match: its public view, in time, and nothing else."""

from __future__ import annotations

import re

import msgspec
import pytest

from arena.competitions.remote_match import PublicFrame
from arena.games import GAMES
from arena.records.visibility import Viewer, ViewerKind
from arena.workers import live_frames
from arena.workers.live_frames import LiveFrames
from tests.support.fake_bots import FakeArena
from tests.support.watched_arena import NAMES, PlayedOnDemand, WatchedArena, begun

EACH_GAME = pytest.mark.parametrize("game", GAMES)
A_CARD = re.compile(rb'"([2-9TJQKA][shdc]|[AKQ])"')


def read(data: bytes) -> PublicFrame:
    return msgspec.json.decode(data, type=PublicFrame)


class SendingWorker:
    """Sends the frames of a match to nobody; time is the house's."""

    def __init__(self, house: FakeArena, played: PlayedOnDemand) -> None:
        self.house = house
        self.frames = LiveFrames(played.table, lambda: house.now)

    def sends(self, seconds: float) -> list[bytes]:
        """What is due while so much time passes."""
        sent = []
        for _ in range(round(seconds / 0.05)):
            self.house.held_up(0.05)
            if (data := self.frames.due(self.house.now)) is not None:
                sent.append(data)
        return sent


@EACH_GAME
def test_J8_nothing_leaves_the_worker_that_one_was_not_told(house: FakeArena, game: str) -> None:
    played = begun(house, game)
    arena = WatchedArena(house)
    owners = [arena.comes(played.table, Viewer(ViewerKind.OWNER, name)) for name in NAMES]
    owners = owners[: len(played.bots)]
    worker = SendingWorker(house, played)
    shown: list[set[bytes]] = [set() for _ in owners]
    seed, nonces = played.table.seed.hex().encode(), played.table.nonces
    while (bot := played.asked) is not None:
        sent = b"".join(worker.sends(0.3))
        arena.spectators.tick(house.now)
        for owner, cards in zip(owners, shown, strict=True):
            cards |= set(A_CARD.findall(b"".join(owner.frames)))
            owner.frames.clear()
        assert set(A_CARD.findall(sent)) <= set.intersection(*shown)
        assert seed not in sent
        assert not any(nonce.encode() in sent for nonce in nonces)
        [ask] = bot.asks()
        house.answer(bot, ask)


def test_there_are_four_frames_a_second_at_most_and_one_at_least(house: FakeArena) -> None:
    played = begun(house, hands=1_000)
    worker = SendingWorker(house, played)
    busy = 0
    for _ in range(40):
        played.goes_on(3)
        busy += len(worker.sends(0.05))
    quiet = worker.sends(4.0)

    assert busy in (7, 8)
    assert len(quiet) in (4, 5)
    assert not any(read(data).events for data in quiet[1:])


def test_frames_are_numbered_and_begin_a_round_when_asked_again(house: FakeArena) -> None:
    played = begun(house, "high_low")
    worker = SendingWorker(house, played)
    frames = []
    for _ in range(4):
        frames += [read(data) for data in worker.sends(0.3)]
        played.goes_on()
    frames += [read(data) for data in worker.sends(0.3)]
    worker.frames.again()
    [whole] = [read(data) for data in worker.sends(0.3)]

    assert [frame.number for frame in (*frames, whole)] == [*range(len(frames) + 1)]
    assert [frame.reset for frame in (*frames, whole)] == [True, *[False] * (len(frames) - 1), True]
    assert {frame.present_round for frame in frames} == {1}, "one round is not over in this test"
    assert whole.events == tuple(event for frame in frames for event in frame.events)
    assert whole.present == len(whole.events)


def test_a_match_that_is_over_ends_with_its_last_frame(house: FakeArena) -> None:
    played = begun(house, hands=2_000)
    worker = SendingWorker(house, played)
    worker.sends(0.5)
    before = worker.frames.is_over
    played.ends()
    frames = [read(data) for data in worker.sends(2.0)]

    assert not before
    assert worker.frames.is_over
    over = next(frame for frame in frames if frame.events and frame.events[-1]["event"] == "over")
    assert over.scores == played.house.results[0][1].scores


def test_a_long_match_is_replayed_in_slices(house: FakeArena) -> None:
    played = begun(house, hands=4_000)
    played.goes_on(5_000)
    looks = 0

    def clock() -> float:
        nonlocal looks
        looks += 1
        return house.now + looks * 0.002

    frames = LiveFrames(played.table, clock)
    sent: list[PublicFrame] = []
    turns = 0
    while not sent:
        turns += 1
        house.held_up(0.05)
        if (data := frames.due(house.now)) is not None:
            sent.append(read(data))

    assert turns > 3, "one slice was not enough"
    assert turns * 0.05 <= 3.5, "a viewer is not kept waiting for longer"


@pytest.mark.parametrize("matches", [1, 10])
def test_matches_that_are_watched_at_once_share_the_time(house: FakeArena, matches: int) -> None:
    played = begun(house, hands=4_000)
    played.goes_on(4_000)
    worked_s = 0.0

    def clock() -> float:
        nonlocal worked_s
        worked_s += 0.0001  # a look at it
        return house.now + worked_s

    frames = LiveFrames(played.table, clock)
    house.held_up(0.05)
    frames.due(house.now, matches)

    assert worked_s == pytest.approx(0.01 / matches, abs=0.001)


def test_a_frame_too_large_has_no_events(house: FakeArena, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_frames, "_MOST_BYTES", 600)
    played = begun(house, hands=1_000)
    worker = SendingWorker(house, played)
    played.goes_on(30)
    first, *_ = [read(data) for data in worker.sends(0.3)]
    played.goes_on(1)
    second, *_ = [read(data) for data in worker.sends(0.6)]

    assert (first.reset, first.events, first.decisions) == (False, (), 30)
    assert second.number == first.number + 2, "the arena sees that one is missing"
