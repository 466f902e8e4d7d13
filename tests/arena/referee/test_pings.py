"""When links are looked at: only those that are due cost anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from arena.referee.pings import LinkProbe, Pings

if TYPE_CHECKING:
    from arena.referee.bot_session import BotSession
    from tests.support.fake_bots import FakeArena, FakeBot


class CountedLooks:
    """Counts the looks at players."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        probe = LinkProbe.probe

        def counted(link: LinkProbe, now: float, lag_s: float = 0.0) -> float | None:
            self.count += 1
            return probe(link, now, lag_s)

        monkeypatch.setattr(LinkProbe, "probe", counted)


@pytest.fixture
def pings(house: FakeArena) -> Pings:
    return Pings(house.referee.lag.total_s)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> CountedLooks:
    return CountedLooks(monkeypatch)


def answers(house: FakeArena, bot: FakeBot) -> None:
    """A bot answers all pings that it has got."""
    for payload in bot.wire.pings:
        bot.player.link_probe.ponged(payload, house.now)
    bot.wire.pings.clear()


def ticks(house: FakeArena, pings: Pings, seconds: float, *answering: FakeBot) -> list[BotSession]:
    """So much time passes; who is gone by then."""
    gone: list[BotSession] = []
    until = house.now + seconds
    while house.now < until:
        house.now += 0.05
        gone += pings.tick(house.now)
        for bot in answering:
            answers(house, bot)
    return gone


def test_a_new_player_is_pinged_at_once(house: FakeArena, pings: Pings) -> None:
    ann = house.bot("ann")
    pings.add(ann.player, house.now)

    assert list(pings.tick(house.now)) == []
    assert len(ann.wire.pings) == 1


def test_idle_players_are_looked_at_every_twenty_seconds(
    house: FakeArena, pings: Pings, looks: CountedLooks
) -> None:
    bots = [house.bot(f"bot {n}") for n in range(10)]
    for bot in bots:
        pings.add(bot.player, house.now)
    ticks(house, pings, 60, *bots)
    looks.count = 0

    assert ticks(house, pings, 200, *bots) == []
    assert looks.count <= 10 * 11


def test_a_tick_with_nothing_due_looks_at_nobody_however_many_there_are(
    house: FakeArena, pings: Pings, looks: CountedLooks
) -> None:
    for n in range(5_000):
        pings.add(house.bot(f"bot {n}").player, house.now + 1)
    looks.count = 0
    for _ in range(100):
        assert list(pings.tick(house.now)) == []

    assert looks.count == 0


def test_a_tick_in_which_all_are_due_looks_at_some(
    house: FakeArena, pings: Pings, looks: CountedLooks
) -> None:
    bots = [house.bot(f"bot {n}") for n in range(200)]
    for bot in bots:
        pings.add(bot.player, house.now)

    assert list(pings.tick(house.now)) == []
    assert looks.count < 100

    ticks(house, pings, 0.2)

    assert all(bot.wire.pings for bot in bots)


def test_who_does_not_answer_is_gone_within_a_minute(house: FakeArena, pings: Pings) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    for bot in (ann, ben):
        pings.add(bot.player, house.now)
    ticks(house, pings, 100, ann, ben)

    assert ticks(house, pings, 60, ann) == [ben.player]


def test_after_a_stall_what_waits_is_read_before_anybody_is_gone(
    house: FakeArena, pings: Pings
) -> None:
    ann = house.bot("ann")
    pings.add(ann.player, house.now)
    ticks(house, pings, 3)
    house.held_up(60)

    assert list(pings.tick(house.now)) == []

    answers(house, ann)

    assert ticks(house, pings, 100, ann) == []


def test_a_player_that_comes_back_is_pinged_at_once(
    house: FakeArena, pings: Pings, looks: CountedLooks
) -> None:
    ann = house.bot("ann")
    pings.add(ann.player, house.now)
    ticks(house, pings, 100, ann)
    ann.goes()
    ann.comes_back()
    ann.reads()
    pings.add(ann.player, house.now)

    assert list(pings.tick(house.now)) == []
    assert len(ann.wire.pings) == 1

    ticks(house, pings, 100, ann)
    looks.count = 0
    ticks(house, pings, 100, ann)

    assert looks.count <= 6, "it stands in the heap once"


@pytest.mark.parametrize("why", ["lost", "leaving", "no link"])
def test_who_cannot_be_pinged_is_looked_at_no_more(
    house: FakeArena, pings: Pings, looks: CountedLooks, why: str
) -> None:
    ann = house.bot("ann")
    pings.add(ann.player, house.now)
    if why == "lost":
        ann.goes()
    elif why == "leaving":
        ann.player.leaving = True
    else:
        ann.wire.has_link = False

    assert ticks(house, pings, 100) == []
    assert looks.count <= 1
    assert ann.wire.pings == []
