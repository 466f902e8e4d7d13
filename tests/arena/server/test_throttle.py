"""When a stranger is read, on a clock that the tests set; most of it is in `throttle.cases`."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from arena.server.throttle import Allowance, Throttle
from protocol.messages import Limits
from tests.support.cases import step_cases

TICK_S = 0.01
COST_S = 0.000_5  # of one thing that a stranger says
HALF_S = 0.000_1  # of half a request
SHARE = 0.05


class FakeUnknownConnection:
    """A connection that has not logged in."""

    def __init__(self, door: ThrottledArena, address: str = "10.0.0.1") -> None:
        self.address = address
        self.handshake_s = 0.0
        self.is_read = False
        self.is_cut = False
        self._door = door
        door.throttle.connected(self)

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True

    def cut(self) -> None:
        self.is_cut = True
        self.is_read = False
        self._door.throttle.disconnected(self)

    def says(self, what: str = "something", cost_s: float = COST_S) -> None:
        """It sends something in its turn."""
        assert self.is_read, "it waits"
        if what == "a request":
            self._door.throttle.asked(self)
        elif what == "a whole request":
            self._door.throttle.requested(self)
        elif what == "a good hello":
            self._door.throttle.known(self)
        elif what == "a bad hello":
            self._door.throttle.failed(self)
        self._door.spent_s += cost_s
        self._door.throttle.was_read(self, cost_s)

    def goes(self) -> None:
        self._door.throttle.disconnected(self)


class ThrottledArena:
    """A throttle, matches that are played or not, and the time that strangers have cost."""

    def __init__(self, most: int = 100) -> None:
        self.now = 100.0
        self.is_busy = True
        self.spent_s = 0.0
        limits = Limits(strangers=most)
        self.throttle = Throttle(limits, lambda: self.is_busy, lambda: self.now)

    def tick(self, seconds: float = TICK_S) -> None:
        self.now += seconds
        self.throttle.tick()

    def fails(self, count: int = 10, address: str = "10.0.0.1") -> None:
        """So many come and go without logging in."""
        for _ in range(count):
            FakeUnknownConnection(self, address).goes()

    def fails_everywhere(self) -> None:
        """So many addresses fail that everybody has to wait."""
        for number in range(500):
            self.fails(1, f"10.{number // 250}.{number % 250}.1")

    def requests(self, count: int) -> None:
        """So many requests from one address, each over its own connection."""
        for _ in range(count):
            guest = FakeUnknownConnection(self)
            guest.says("a request")
            guest.goes()


@pytest.fixture
def door() -> ThrottledArena:
    return ThrottledArena()


@pytest.mark.parametrize("steps", step_cases(Path(__file__).with_name("throttle.cases")))
def test_a_case_of_the_throttle(steps: list[str]) -> None:
    strangers = Strangers()
    for step in steps:
        strangers.does(step)


class Strangers:
    """Strangers, and what the steps of a case have them do."""

    def __init__(self) -> None:
        self._door = ThrottledArena()
        self._guests: dict[str, FakeUnknownConnection] = {}
        self._heard: dict[str, bool] = {}
        self._ports = itertools.count(1)

    def does(self, step: str) -> None:
        first, _, rest = step.partition(" ")
        if do := getattr(self, f"do_{first}", None):
            do(*rest.split())
        else:
            verb, _, rest = rest.partition(" ")
            getattr(self, f"guest_{verb}")(first, rest)

    def do_most(self, count: str) -> None:
        self._door = ThrottledArena(int(count))

    def do_tick(self) -> None:
        self._door.tick()

    def do_pass(self, seconds: str) -> None:
        self._door.tick(float(seconds))

    def do_fails(self, count: str) -> None:
        if count == "everywhere":
            self._door.fails_everywhere()
        else:
            self._door.fails(int(count))

    def do_requests(self, count: str) -> None:
        self._door.requests(int(count))

    def do_blame(self) -> None:
        self._door.throttle.blame("10.0.0.1")

    def do_cut(self, name: str) -> None:
        self._guests[name].cut()

    def do_strangers(self, count: str) -> None:
        assert len(self._door.throttle) == int(count)

    def do_near(self, *counts: str) -> None:
        expected = dict(zip(counts[::2], map(int, counts[1::2]), strict=True))
        assert dict(self._door.throttle._near) == expected

    def guest_comes(self, name: str, where: str) -> None:
        """Directly, or through a proxy, which tells its address with its request."""
        how, _, address = where.partition(" ")
        if how == "through":
            self.guest_comes(name, f"from 127.0.0.1:{next(self._ports)}")
            self.guest_moves(name, f"to {address}")
        else:
            self._guests[name] = FakeUnknownConnection(self._door, address or "10.0.0.1")

    def guest_moves(self, name: str, to_address: str) -> None:
        address = to_address.removeprefix("to ")
        self._heard[name] = self._door.throttle.moved(self._guests[name], address)

    def guest_says(self, name: str, what: str) -> None:
        self._guests[name].says(what)

    def guest_asks(self, name: str, _: str) -> None:
        """Its request is not answered yet."""
        self._door.throttle.asked(self._guests[name])

    def guest_goes(self, name: str, _: str) -> None:
        self._guests[name].goes()

    def guest_waits(self, name: str, _: str) -> None:
        guest = self._guests[name]
        assert (guest.is_read, guest.is_cut) == (False, False)

    def guest_is(self, name: str, state: str) -> None:
        guest = self._guests[name]
        what, *within = state.split()
        if what in ("heard", "unheard"):
            assert self._heard[name] is (what == "heard")
            return
        for _ in range(int(within[1]) if within else 0):
            if not guest.is_read:
                self._door.tick()
        assert guest.is_cut if what == "cut" else guest.is_read


# --- well-meaning strangers ---


def test_of_too_many_from_everywhere_the_oldest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.server.throttle._MOST", 3)
    door = ThrottledArena()
    guests = [FakeUnknownConnection(door, f"10.0.0.{n}") for n in range(4)]

    assert [guest.is_cut for guest in guests] == [True, False, False, False]


# --- an address where many have failed ---


def test_no_more_addresses_are_remembered_than_needed(
    door: ThrottledArena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.server.throttle._MOST_ADDRESSES", 10)
    for number in range(100):
        door.fails(1, f"10.0.0.{number}")

    assert len(door.throttle._failures) == 10


def test_while_nothing_is_played_nobody_waits(door: ThrottledArena) -> None:
    door.fails()
    door.is_busy = False
    guests = [FakeUnknownConnection(door) for _ in range(50)]
    for guest in guests:
        guest.says()
        guest.says("a bad hello")
        guest.says()
    door.is_busy = True
    door.tick()

    assert sum(guest.is_read for guest in guests) <= 8, "now something is"


def test_who_waits_when_the_last_match_ends_waits_no_more(door: ThrottledArena) -> None:
    door.fails()
    guests = [FakeUnknownConnection(door) for _ in range(50)]
    door.is_busy = False
    door.tick()

    assert all(guest.is_read for guest in guests)


# --- the queue ---


def test_turns_go_round_and_end_with_the_first_words(door: ThrottledArena) -> None:
    door.fails()
    guests = [FakeUnknownConnection(door) for _ in range(24)]
    order: list[int] = []
    while len(order) < 72:
        door.tick()
        for number, guest in enumerate(guests):
            if guest.is_read:
                guest.says()
                order.append(number)
                assert not guest.is_read

    assert order == [*range(24)] * 3


def test_who_says_nothing_holds_nobody_up(door: ThrottledArena) -> None:
    door.fails()
    silent = [FakeUnknownConnection(door) for _ in range(50)]
    guest = FakeUnknownConnection(door)
    ticks = 0
    while not guest.is_read:
        door.tick()
        ticks += 1
        assert sum(stranger.is_read for stranger in silent) <= 8

    assert ticks <= 20, "after its share of the time has paid for accepting them"


def test_all_turns_together_take_no_more_than_their_share_of_the_time(door: ThrottledArena) -> None:
    door.fails()
    guests = [FakeUnknownConnection(door) for _ in range(100)]
    began = door.now
    while door.now - began < 10.0:
        door.tick()
        for guest in guests:
            if guest.is_read:
                guest.says()
                door.now += COST_S

    share = door.spent_s / (door.now - began)
    assert 0.8 * SHARE < share <= 1.03 * SHARE, "with what was saved up at first"


def test_a_long_turn_is_paid_back(door: ThrottledArena) -> None:
    door.fails()
    guest, other = FakeUnknownConnection(door), FakeUnknownConnection(door)
    door.tick()
    assert guest.is_read
    door.throttle.was_read(guest, 1.0)
    ticks = 0
    while not other.is_read or ticks == 0:
        if other.is_read:
            other.says()
        door.tick()
        ticks += 1

    assert ticks * TICK_S == pytest.approx(1.0 / SHARE, rel=0.1)


def test_time_that_nobody_wanted_is_no_burst_later(door: ThrottledArena) -> None:
    door.fails()
    for _ in range(1000):
        door.tick()
    guests = [FakeUnknownConnection(door) for _ in range(90)]
    turns = 0
    for _ in range(10):
        door.tick()
        for guest in guests:
            if guest.is_read:
                guest.says()
                turns += 1

    assert turns * COST_S <= 0.01 + 10 * TICK_S * SHARE + 8 * COST_S


@pytest.mark.parametrize("per_s", [100, 250, 450])
def test_half_requests_without_end_keep_no_newcomer_of_their_address_out(per_s: int) -> None:
    door = ThrottledArena(most=512)

    def passes() -> None:
        """A tick in which more of them come; each has all its time."""
        door.tick()
        for _ in range(int(door.now * per_s) - int((door.now - TICK_S) * per_s)):
            FakeUnknownConnection(door)
        for stranger in [entry.stranger for entry in door.throttle._turn]:
            if stranger is not newcomer and isinstance(stranger, FakeUnknownConnection):
                stranger.says("half a request", HALF_S)

    newcomer = None
    for _ in range(2_000):
        passes()
    waits_s = []
    for _ in range(20):
        began = door.now
        newcomer = FakeUnknownConnection(door)
        for said in ("a whole request", "a good hello"):
            while not newcomer.is_read:
                assert not newcomer.is_cut
                passes()
            newcomer.says(said)
        waits_s.append(door.now - began)
    assert len(door.throttle) == 511, "all places but the one of who has just logged in"
    assert max(waits_s) < 3.0


def test_in_a_full_line_the_newest_has_no_place() -> None:
    door = ThrottledArena(most=20)
    door.fails()
    waiting = [FakeUnknownConnection(door) for _ in range(20)]
    late = FakeUnknownConnection(door)

    assert late.is_cut
    assert not any(guest.is_cut for guest in waiting)

    while not waiting[0].is_read:
        door.tick()
    waiting[0].says("a good hello")

    assert not FakeUnknownConnection(door).is_cut, "there is a place again"


# --- the requests of an address ---

ALLOWED: dict[str, list[tuple[float, str, int]]] = {
    "so many at once and then so many a second": [
        *((0, "a", 5), (1, "a", 2), (0.75, "a", 1)),
        (0.25, "a", 1),  # what was left of one is not lost
    ],
    "who was quiet for long has no more than at once": [(0, "a", 5), (3_600, "a", 5)],
    "every address has its own": [(0, "a", 5), (0, "b", 5)],
    "the address that was quiet longest is forgotten": [
        *((0, "a", 5), (0, "b", 5), (0, "a", 0), (0, "c", 5), (0, "a", 0), (0, "c", 0)),
        (0, "b", 5),
    ],
}
"""How many seconds later which address can spend how much, of 5 at once and 2 a second."""


@pytest.mark.parametrize("what", ALLOWED)
def test_what_an_address_may_ask_for(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.server.throttle._MOST_ADDRESSES", 2)
    now = [100.0]
    allowance = Allowance(5, 2, lambda: now[0])
    for later_s, address, count in ALLOWED[what]:
        now[0] += later_s
        spent = itertools.takewhile(bool, (allowance.spend(address) for _ in range(9)))

        assert sum(spent) == count
