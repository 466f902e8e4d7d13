from __future__ import annotations

import asyncio
from collections.abc import Callable

from arena.engine.verdict import Finding
from arena.referee.bot_session import BotSession
from arena.referee.losses import Losses
from arena.referee.referee import Referee
from arena.referee.timers import Timer, Timers
from protocol.messages import Limits
from tests.support.fake_bots import LIMITS, FakeArena, FakeBot

GRACE_S = LIMITS.grace_ms / 1000


class FakeTimers(Timers):
    """Timers that ring when they are told to."""

    def __init__(self) -> None:
        super().__init__(asyncio.new_event_loop())
        self._loop.close()
        self.waiting: list[tuple[float, Callable[[], None]]] = []

    def after(self, delay_s: float, call: Callable[[], None]) -> Timer:
        self.waiting.append((delay_s, call))
        return None  # type: ignore[return-value]  # nobody cancels these

    def ring(self) -> None:
        _, call = self.waiting.pop(0)
        call()


class ArenaWithLosses:
    """The losses of a house, on its clock."""

    def __init__(self, house: FakeArena, referee: Referee, limits: Limits) -> None:
        self.timers = FakeTimers()
        self.gone: list[tuple[str, str]] = []
        self.back: list[str] = []
        self.losses = Losses(
            referee, limits, lambda: house.now, self.timers, self._gone, self._back
        )
        referee.on_lost = self.losses.begin
        referee.on_heard = self.losses.end_silence

    def _gone(self, player: BotSession, finding: Finding) -> None:
        self.gone.append((player.name, finding.text))

    def _back(self, player: BotSession) -> None:
        self.back.append(player.name)

    @property
    def next_s(self) -> float:
        """When the next timer rings."""
        [(delay_s, _)] = self.timers.waiting
        return delay_s


def at_table(house: FakeArena) -> tuple[FakeBot, ArenaWithLosses]:
    watched = ArenaWithLosses(house, house.referee, LIMITS)
    ann, ben = house.bot("ann"), house.bot("ben")
    house.open(ann, ben)
    house.sit(ann, ben)
    ann.asks()
    return ann, watched


def test_J7_a_loss_that_is_noticed_after_a_stall_begins_with_its_end(house: FakeArena) -> None:
    ann, watched = at_table(house)
    ann.wire.silent = house.now
    house.held_up(40.0)
    house.referee.tick()

    assert ann.player.loss is not None
    assert ann.player.loss.by_arena
    assert ann.player.loss.since == house.now
    assert watched.next_s == GRACE_S

    ann.wire.silent = None
    house.now += 0.25
    house.referee.tick()

    assert watched.back == ["ann"]
    [chair] = ann.player.chairs.values()
    assert chair.grace_s == GRACE_S


def test_J7_a_match_without_any_grace_left_ends_at_once(house: FakeArena) -> None:
    ann, watched = at_table(house)
    [chair] = ann.player.chairs.values()
    chair.grace_s = -0.5
    ann.player.disconnected()
    watched.losses.begin(ann.player, house.now)

    assert watched.next_s == 0

    watched.timers.ring()

    assert len(house.results) == 1
    assert watched.gone == []
    assert watched.next_s == GRACE_S, "the session is kept for as long"


def test_J7_who_does_not_come_back_is_gone_when_all_its_grace_is_over(house: FakeArena) -> None:
    ann, watched = at_table(house)
    ann.player.disconnected()
    watched.losses.begin(ann.player, house.now)
    house.now += GRACE_S
    watched.timers.ring()

    [(name, text)] = watched.gone
    assert name == "ann"
    assert text.endswith("within 1,000 ms in all")


def test_J7_a_machine_that_is_awake_when_the_grace_is_over_is_not_ruled_on(
    house: FakeArena,
) -> None:
    ann, watched = at_table(house)
    ann.wire.silent = house.now
    house.now += 2.0
    house.referee.tick()
    assert ann.player.loss is not None
    ann.wire.silent = None
    watched.timers.ring()

    assert ann.player.loss is None
    assert (watched.gone, watched.back) == ([], ["ann"])


def test_J7_a_timer_of_a_loss_that_is_over_does_nothing(house: FakeArena) -> None:
    ann, watched = at_table(house)
    ann.goes()
    loss = ann.player.loss
    assert loss is not None
    ann.comes_back()
    ann.reads()
    house.now += 5.0
    watched.losses._over(ann.player, loss)

    assert (watched.gone, house.results) == ([], [])
