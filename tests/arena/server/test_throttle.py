"""When a stranger is read, on a clock that the tests set."""

from __future__ import annotations

import pytest

from arena.server.throttle import Allowance, Throttle
from protocol.messages import Limits

TICK_S = 0.01
COST_S = 0.000_5  # of one thing that a stranger says
SHARE = 0.05


class FakeUnknownConnection:
    """A connection that has not logged in."""

    def __init__(self, door: ThrottledArena, address: str = "10.0.0.1") -> None:
        self.address = address
        self.handshake_s = 0.0
        self.shakes_s = 0.002
        self.shaken = 0
        self.is_read = False
        self.is_cut = False
        self._door = door
        door.throttle.connected(self)

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True

    def shake(self) -> float:
        self.shaken += 1
        self._door.spent_s += self.shakes_s
        return self.shakes_s

    def greets(self) -> None:
        """A part of a TLS handshake has come from it."""
        self._door.throttle.shakes(self)

    def cut(self) -> None:
        self.is_cut = True
        self.is_read = False
        self._door.throttle.disconnected(self)

    def says(self, what: str = "something") -> None:
        """It sends something in its turn."""
        assert self.is_read, "it waits"
        if what == "a request":
            self._door.throttle.asked(self)
        elif what == "a good hello":
            self._door.throttle.known(self)
        elif what == "a bad hello":
            self._door.throttle.failed(self)
        self._door.spent_s += COST_S
        self._door.throttle.was_read(self, COST_S)

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


@pytest.fixture
def door() -> ThrottledArena:
    return ThrottledArena()


# --- well-meaning strangers ---


def test_a_stranger_is_read_at_once_and_all_the_time(door: ThrottledArena) -> None:
    guest = FakeUnknownConnection(door)

    for _ in range(3):
        guest.says()
        door.tick()
    guest.says("a good hello")

    assert len(door.throttle) == 0


def test_of_too_many_from_one_address_the_oldest_goes() -> None:
    door = ThrottledArena(most=3)
    other = FakeUnknownConnection(door, "10.0.0.2")
    guests = [FakeUnknownConnection(door) for _ in range(5)]

    assert [guest.is_cut for guest in guests] == [True, True, False, False, False]
    assert not other.is_cut
    assert len(door.throttle) == 4


def test_of_too_many_from_everywhere_the_oldest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.server.throttle._MOST", 3)
    door = ThrottledArena()
    guests = [FakeUnknownConnection(door, f"10.0.0.{n}") for n in range(4)]

    assert [guest.is_cut for guest in guests] == [True, False, False, False]


def test_who_is_known_does_not_count() -> None:
    door = ThrottledArena(most=3)
    for _ in range(50):
        FakeUnknownConnection(door).says("a good hello")
    guest = FakeUnknownConnection(door)
    door.tick()

    assert guest.is_read, "nobody has failed"


# --- an address where many have failed ---


@pytest.mark.parametrize("how", ["goes", "a bad hello", "is cut"])
def test_after_some_failures_those_from_there_wait_for_their_turn(
    door: ThrottledArena, how: str
) -> None:
    for count in range(10):
        guest = FakeUnknownConnection(door)
        assert guest.is_read, count
        if how == "a bad hello":
            guest.says(how)
        elif how == "goes":
            guest.goes()
        else:
            guest.cut()
    there, elsewhere = (FakeUnknownConnection(door), FakeUnknownConnection(door, "10.0.0.2"))

    assert not there.is_read
    assert elsewhere.is_read

    for _ in range(10):  # until accepting them has been paid for
        door.tick()
        if there.is_read:
            break

    assert there.is_read, "it is its turn"


def test_a_failure_counts_once(door: ThrottledArena) -> None:
    for _ in range(9):
        guest = FakeUnknownConnection(door)
        guest.says("a bad hello")
        guest.goes()

    assert FakeUnknownConnection(door).is_read


def test_failures_are_forgotten_after_a_minute(door: ThrottledArena) -> None:
    door.fails(9)
    door.tick(61.0)
    door.fails(9)

    assert FakeUnknownConnection(door).is_read

    door.fails(1)

    assert not FakeUnknownConnection(door).is_read

    door.tick(61.0)

    assert FakeUnknownConnection(door).is_read


def test_failures_from_many_addresses_make_everybody_wait(door: ThrottledArena) -> None:
    for number in range(500):
        door.fails(1, f"10.{number // 250}.{number % 250}.1")
    guest = FakeUnknownConnection(door, "192.168.0.1")

    assert not guest.is_read

    door.tick()

    assert guest.is_read


def test_no_more_addresses_are_remembered_than_needed(
    door: ThrottledArena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.server.throttle._MOST_ADDRESSES", 10)
    for number in range(100):
        door.fails(1, f"10.0.0.{number}")

    assert len(door.throttle._failures) == 10


def test_who_came_before_the_failures_waits_from_its_next_words_on(door: ThrottledArena) -> None:
    early = FakeUnknownConnection(door)
    door.fails()
    early.says()

    assert not early.is_read


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
    assert 0.8 * SHARE < share <= SHARE


def test_handshakes_and_accepting_count_too(door: ThrottledArena) -> None:
    door.fails()
    began, handshakes = door.now, 0
    while door.now - began < 2.0:
        if len(door.throttle) < 100:
            FakeUnknownConnection(door).handshake_s = 0.002
        for place in list(door.throttle._turn):
            handshakes += 1
            place.stranger.cut()
        door.tick()

    spent_s = handshakes * 0.002
    assert 0.5 * SHARE < spent_s / (door.now - began) <= SHARE


def test_of_all_handshakes_so_many_steps_are_worked_off_in_a_tick(door: ThrottledArena) -> None:
    guests = [FakeUnknownConnection(door, f"10.0.0.{number}") for number in range(30)]
    steps: list[int] = []
    for guest in guests:
        guest.shakes_s = 0.000_4
        guest.greets()
    while sum(steps) < len(guests):
        steps.append(sum(guest.shaken for guest in guests) - sum(steps))
        assert [guest.shaken for guest in guests] == sorted(
            (guest.shaken for guest in guests), reverse=True
        ), "in the order in which they came"
        door.tick()

    assert steps == [8, 8, 8, 6]


@pytest.mark.parametrize("is_busy", [True, False])
def test_more_than_a_tick_has_room_for_waits_for_the_next(
    door: ThrottledArena, is_busy: bool
) -> None:
    door.is_busy = is_busy
    guest, later = FakeUnknownConnection(door), FakeUnknownConnection(door)
    guest.shakes_s = 0.000_4
    for _ in range(8):
        guest.greets()
    later.greets()

    assert (guest.shaken, later.shaken) == (8, 0)

    door.tick()

    assert (guest.shaken, later.shaken) == (8, 1)


@pytest.mark.parametrize("is_busy", [True, False])
@pytest.mark.parametrize(
    ("step_s", "steps"),
    [(0.000_4, [8, 1, 0]), (0.001_5, [3, 3, 3]), (0.003_7, [2, 2, 2]), (0.130, [1, 1, 1])],
)  # fmt: skip
def test_steps_of_handshakes_end_for_this_tick_when_they_have_taken_long(
    door: ThrottledArena, is_busy: bool, step_s: float, steps: list[int]
) -> None:
    """As with a key of RSA-4096."""
    door.is_busy = is_busy
    guests = [FakeUnknownConnection(door, f"10.0.0.{number}") for number in range(9)]
    for guest in guests:
        guest.shakes_s = step_s
        guest.greets()
    counts = [sum(guest.shaken for guest in guests)]
    for _ in range(2):
        door.tick()
        counts.append(sum(guest.shaken for guest in guests) - sum(counts))

    assert counts == steps


def test_who_goes_while_its_handshake_waits_is_forgotten(door: ThrottledArena) -> None:
    guests = [FakeUnknownConnection(door) for _ in range(9)]
    for guest in guests:
        guest.shakes_s = 0.000_4
        guest.greets()
    guests[-1].goes()
    door.tick()

    assert guests[-1].shaken == 0
    assert not door.throttle._shaking


def test_handshakes_after_failures_take_no_more_than_the_share(door: ThrottledArena) -> None:
    door.fails()
    began, door.spent_s = door.now, 0.0
    while door.now - began < 10.0:
        if len(door.throttle) < 100:
            FakeUnknownConnection(door).greets()
        for place in list(door.throttle._turn):
            if isinstance(guest := place.stranger, FakeUnknownConnection) and guest.shaken:
                guest.goes()
        door.tick()

    assert 0.5 * SHARE < door.spent_s / (door.now - began) <= SHARE


def test_what_a_handshake_cost_is_paid_back_before_the_next_begins(door: ThrottledArena) -> None:
    """As when a recorded handshake that takes 130 ms is sent twice a second."""
    door.fails()
    began, door.spent_s, shaken = door.now, 0.0, 0
    while door.now - began < 20.0:
        guest = FakeUnknownConnection(door)
        guest.shakes_s = 0.130
        guest.greets()
        for _ in range(50):
            door.tick()
        shaken += guest.shaken
        guest.goes()

    assert 0 < shaken <= 20.0 * SHARE / 0.130 + 1


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


def test_who_has_a_good_token_gets_in_whatever_the_others_do(door: ThrottledArena) -> None:
    door.fails()
    flood = [FakeUnknownConnection(door) for _ in range(60)]
    guest = FakeUnknownConnection(door)
    words = 0
    for _ in range(400):
        door.tick()
        for attacker in tuple(flood):
            if attacker.is_read:
                attacker.says("a bad hello")
                attacker.goes()
                flood.remove(attacker)
                flood.append(FakeUnknownConnection(door))
        if guest.is_read:
            words += 1
            guest.says("something" if words == 1 else "a good hello")
            if words == 2:
                break

    assert words == 2, "the handshake, and its hello"


# --- those who only ask for the page ---


def asks(door: ThrottledArena, count: int = 1) -> FakeUnknownConnection:
    """So many requests from one address, each over its own connection; returns the last one."""
    for _ in range(count):
        guest = FakeUnknownConnection(door)
        guest.says("a request")
        guest.goes()
    return guest


def test_a_class_that_opens_the_page_has_failed_at_nothing(door: ThrottledArena) -> None:
    asks(door, 3000)

    assert FakeUnknownConnection(door).is_read
    assert len(door.throttle) == 1


def test_who_has_asked_is_no_stranger_any_more(door: ThrottledArena) -> None:
    guest = FakeUnknownConnection(door)
    guest.says("a request")

    assert len(door.throttle) == 0


def test_who_asks_without_end_stands_in_line(door: ThrottledArena) -> None:
    asks(door, 3010)
    late = FakeUnknownConnection(door)

    assert not late.is_read

    for _ in range(20):
        door.tick()

    assert late.is_read


def test_what_asking_costs_the_line_is_no_more_than_its_share(door: ThrottledArena) -> None:
    asks(door, 3010)
    waiting = [FakeUnknownConnection(door) for _ in range(90)]
    door.spent_s = 0.0
    for _ in range(100):  # a second
        door.tick()
        for guest in [guest for guest in waiting if guest.is_read]:
            guest.says("a request")
            guest.goes()
            waiting.remove(guest)
            waiting.append(FakeUnknownConnection(door))

    assert door.spent_s <= 1.2 * SHARE


def test_requests_come_back_with_time(door: ThrottledArena) -> None:
    asks(door, 3000)
    door.tick(60)
    asks(door, 3000)

    assert FakeUnknownConnection(door).is_read


def test_another_address_does_not_pay_for_it(door: ThrottledArena) -> None:
    asks(door, 3010)

    assert FakeUnknownConnection(door, "10.0.0.2").is_read


def test_a_viewer_that_was_refused_counts_like_a_stranger(door: ThrottledArena) -> None:
    for _ in range(10):
        door.throttle.blame("10.0.0.1")

    assert not FakeUnknownConnection(door).is_read


def test_who_asks_and_goes_at_once_has_failed_at_nothing(door: ThrottledArena) -> None:
    for _ in range(20):
        guest = FakeUnknownConnection(door)
        door.throttle.asked(guest)
        guest.goes()

    assert FakeUnknownConnection(door).is_read


# --- those who come through a proxy ---


def through(
    door: ThrottledArena, number: int, address: str = "10.0.0.1"
) -> tuple[FakeUnknownConnection, bool]:
    """A connection through a proxy, and whether it is served at once."""
    guest = FakeUnknownConnection(door, f"127.0.0.1:{number}")
    return guest, door.throttle.moved(guest, address)


def test_those_behind_a_proxy_are_counted_where_they_come_from() -> None:
    door = ThrottledArena(most=3)
    guests = [through(door, number)[0] for number in range(4)]
    other, is_heard = through(door, 4, "10.0.0.2")

    assert [guest.is_cut for guest in guests] == [True, False, False, False]
    assert (is_heard, other.is_cut) == (True, False)
    assert dict(door.throttle._near) == {"10.0.0.1": 3, "10.0.0.2": 1}


def test_after_failures_a_request_through_a_proxy_waits_for_its_turn(door: ThrottledArena) -> None:
    door.fails()
    guest, is_heard = through(door, 1)
    other, is_other_heard = through(door, 2, "10.0.0.2")

    assert (is_heard, guest.is_read) == (False, False)
    assert (is_other_heard, other.is_read) == (True, True)

    for _ in range(10):
        door.tick()
        if guest.is_read:
            break

    assert guest.is_read


def test_who_had_its_turn_already_is_heard(door: ThrottledArena) -> None:
    for number in range(500):
        door.fails(1, f"10.{number // 250}.{number % 250}.1")
    guest = FakeUnknownConnection(door, "127.0.0.1:1")
    while not guest.is_read:
        door.tick()

    assert door.throttle.moved(guest, "10.0.0.1")


def test_failures_count_where_they_come_from(door: ThrottledArena) -> None:
    for number in range(10):
        through(door, number)[0].goes()

    assert through(door, 11)[1] is False
    assert through(door, 12, "10.0.0.2")[1] is True


def test_whoever_has_no_place_any_more_is_not_heard() -> None:
    door = ThrottledArena(most=1)
    early = FakeUnknownConnection(door, "127.0.0.1:1")
    through(door, 2)
    door.throttle.disconnected(early)

    assert door.throttle.moved(early, "10.0.0.1") is False
    assert dict(door.throttle._near) == {"10.0.0.1": 1}


# ---- The requests of an address


class ManualClock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def spent(allowance: Allowance, address: str = "10.0.0.1") -> int:
    """Spend all tokens; how many there were."""
    count = 0
    while allowance.spend(address):
        count += 1
    return count


def test_so_many_at_once_and_then_so_many_a_second(clock: ManualClock) -> None:
    allowance = Allowance(5, 2, clock)

    assert spent(allowance) == 5
    clock.now += 1
    assert spent(allowance) == 2
    clock.now += 0.75
    assert spent(allowance) == 1
    clock.now += 0.25
    assert spent(allowance) == 1, "what was left of one is not lost"


def test_who_was_quiet_for_long_has_no_more_than_at_once(clock: ManualClock) -> None:
    allowance = Allowance(5, 2, clock)
    allowance.spend("10.0.0.1")
    clock.now += 3_600

    assert spent(allowance) == 5


def test_every_address_has_its_own(clock: ManualClock) -> None:
    allowance = Allowance(5, 2, clock)
    spent(allowance)

    assert spent(allowance, "10.0.0.2") == 5


def test_the_address_that_was_quiet_longest_is_forgotten(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.server.throttle._MOST_ADDRESSES", 2)
    allowance = Allowance(5, 2, clock)
    for address in ("first", "second", "first", "third"):
        spent(allowance, address)

    assert spent(allowance, "first") == 0
    assert spent(allowance, "third") == 0
    assert spent(allowance, "second") == 5
