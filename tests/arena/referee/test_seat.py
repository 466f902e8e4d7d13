"""What a seat's decisions cost (J7): time on the wall, or CPU time of launched bots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from arena.games import GAMES
from protocol.messages import Ask, Ending, Limits, Verdict

if TYPE_CHECKING:
    from arena.engine.match import MatchResult
    from arena.referee.live_match import LiveMatch
    from tests.support.fake_bots import LIMITS, FakeArena, FakeBot
else:
    LIMITS = Limits(decision_ms=1000, bank_ms=3000, hard_ms=5000, start_ms=2000, grace_ms=1000)


def begun(house: FakeArena, *bots: FakeBot, **options: Any) -> LiveMatch:
    """A match whose seats are ready."""
    table = house.open(*bots, **options)
    house.sit(*bots)
    return table


def asked(house: FakeArena, *bots: FakeBot, **options: Any) -> Ask:
    """The question that the first of them has read, in a match that has begun."""
    begun(house, *bots, **options)
    [ask] = bots[0].asks()
    return ask


def alone(house: FakeArena, bot: FakeBot, **limits: int) -> Ask:
    """The first question to a bot that plays the dealer, so that it is asked all the time."""
    return asked(house, bot, game="three_card_poker", limits=changed(**limits))


def changed(**limits: int) -> Limits:
    return msgspec.structs.replace(LIMITS, **limits)


def about(bank_ms: int) -> object:
    """A bank counts whole milliseconds, and the seconds of these tests are not exact."""
    return pytest.approx(bank_ms, abs=1)


def ended(house: FakeArena) -> tuple[LiveMatch, MatchResult, Verdict]:
    """The one match that has ended, by an offence."""
    [(table, result, verdict)] = house.results
    assert verdict is not None
    return table, result, verdict


# --- what is told of it ---


def test_every_question_shows_the_bank_and_what_is_free(house: FakeArena) -> None:
    ann = house.bot("ann")
    ask = alone(house, ann, decision_ms=500)
    shown = [(ask.bank_ms, ask.decision_ms)]
    for seconds in (0.7, 0.2, 1.0):
        house.now += seconds
        house.answer(ann, ask)
        [ask] = ann.asks()
        shown.append((ask.bank_ms, ask.decision_ms))

    assert [bank_ms for bank_ms, _ in shown] == [3000, *map(about, (2800, 2800, 2300))]
    assert {decision_ms for _, decision_ms in shown} == {500}


# --- many tables ---


def test_J7_many_tables_cannot_starve_the_clock(house: FakeArena) -> None:
    """A bot that answers nine tables again and again is late at the tenth after ten times."""
    ann = house.bot("ann", tables=10)
    for _ in range(9):
        house.open(ann, game="three_card_poker")
    house.sit(ann)
    waiting = {ask.match: ask for ask in ann.asks()}
    tenth = begun(house, ann, game="three_card_poker")
    [neglected] = ann.asks()
    began = house.now
    while not house.results:
        for match, ask in tuple(waiting.items()):
            if not house.results:
                house.passes(0.1)
                house.answer(ann, ask)
            for new in ann.asks():
                waiting[new.match] = new
            assert match != neglected.match
    table, _, verdict = ended(house)

    assert table is tenth
    assert verdict.kind is Ending.TIMEOUT
    # Nine turns of 1 s, 1 s of its own and 3 s of its bank.
    assert house.now - began == pytest.approx(13, abs=0.15)


# --- bots that the arena has launched ---


def test_J7_too_much_cpu_time_is_cpu_and_not_timeout(house: FakeArena) -> None:
    ann, ben = house.launched("ann"), house.bot("ben")
    asked(house, ann, ben)
    while not house.results:
        house.computes(ann, 0.05)
        house.referee.tick()
    _, result, verdict = ended(house)

    assert verdict.kind is Ending.CPU
    assert verdict.mechanism == "CPU clock"
    assert result.winner == 1
    assert verdict.taken_ms == pytest.approx(4000, abs=60)
    assert (verdict.credit_ms, verdict.bank_ms) == (0, 0)
    assert verdict.text == (
        f"out of time: {verdict.taken_ms:,.0f} ms of CPU for a decision "
        "(limit 4,000 ms, credit 0 ms), bank empty"
    )
    assert verdict.stderr == "the last that it said"
    assert verdict.enforced == "time, memory and processes (sampled)"


def test_cpu_time_is_not_read_for_every_answer(house: FakeArena) -> None:
    ann = house.launched("ann")
    ask = alone(house, ann)
    assert ann.process is not None
    before = ann.process.looks
    for _ in range(100):
        house.answer(ann, ask)
        [ask] = ann.asks()

    assert ann.process.looks - before <= 1, "the time stands still"


def test_cpu_time_of_a_bot_that_waits_is_looked_at_twenty_times_a_second_at_most(
    house: FakeArena,
) -> None:
    ann = house.launched("ann")
    alone(house, ann)
    assert ann.process is not None
    before = ann.process.looks
    house.passes(10)

    assert 1 <= ann.process.looks - before <= 200


@pytest.mark.parametrize("game", GAMES)
def test_J7_a_bot_that_is_quick_keeps_its_bank_in_every_game(house: FakeArena, game: str) -> None:
    bots = [house.launched(f"bot {seat}") for seat in range(GAMES[game].seats)]
    table = begun(house, *bots, game=game)
    for _ in range(20):
        for bot in bots:
            for ask in bot.asks():
                house.computes(bot, 0.9)
                house.answer(bot, ask)

    assert {chair.clock.bank_ms for chair in table.chairs} == {3000}


# --- the cap on the wall, on a machine with too much to do ---


def test_waits_for_a_core_are_not_read_for_quick_answers(house: FakeArena) -> None:
    ann = house.launched("ann")
    ask = alone(house, ann)
    assert ann.process is not None
    ann.process.overbooked_looks = 0
    for _ in range(100):
        house.passes(0.1)
        house.answer(ann, ask)
        [ask] = ann.asks()

    assert ann.process.overbooked_looks <= 100 / 9, "its deadline is looked at once a second"
