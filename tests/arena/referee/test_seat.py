"""What a seat's decisions cost (J7): time on the wall, or CPU time of launched bots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from arena.games import GAMES
from protocol import messages
from protocol.messages import Ask, Ending, Limits, Mechanism, Ready, Verdict

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


def bank(bot: FakeBot) -> int:
    """What is left to it in the one match that it plays."""
    [chair] = bot.player.chairs.values()
    return chair.clock.bank_ms


def about(bank_ms: int) -> object:
    """A bank counts whole milliseconds, and the seconds of these tests are not exact."""
    return pytest.approx(bank_ms, abs=1)


def ended(house: FakeArena) -> tuple[LiveMatch, MatchResult, Verdict]:
    """The one match that has ended, by an offence."""
    [(table, result, verdict)] = house.results
    assert verdict is not None
    return table, result, verdict


def linked(bot: FakeBot, round_trip_ms: float) -> None:
    for _ in range(3):
        bot.player.link.measured(round_trip_ms)


# --- the arena's own lag ---


def test_J7_nobody_loses_on_time_because_the_arena_was_held_up(house: FakeArena) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    ask = asked(house, ann, ben, limits=changed(decision_ms=100, bank_ms=50))
    house.held_up(0.3)
    house.answer(ann, ask, "check")

    assert house.results == []
    assert house.referee.decisions == 1


def test_J7_a_deadline_that_passes_while_the_arena_is_held_up_is_put_off(house: FakeArena) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    ask = asked(house, ann, ben)
    house.now += 3.9
    house.held_up(0.3)
    house.referee.tick()
    house.now += 0.35  # 4.55 s have passed, and 0.288 s of them count for nothing
    house.referee.tick()
    _, _, verdict = ended(house)

    assert verdict.kind is Ending.TIMEOUT
    assert verdict.taken_ms == pytest.approx(4550)
    assert verdict.credit_ms == pytest.approx(288)
    assert ask.bank_ms == 3000


def test_J7_lag_before_the_question_is_not_credited(house: FakeArena) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    house.held_up(10)
    house.referee.tick()
    ask = asked(house, ann, ben)
    house.now += 1.5
    house.answer(ann, ask, "check")

    assert bank(ann) == about(2500)


def test_J7_lag_between_the_question_and_its_frame_is_not_credited(house: FakeArena) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    begun(house, ann, ben)
    house.held_up(10)
    [ask] = ann.asks()
    house.referee.tick()
    house.now += 1.5
    house.answer(ann, ask, "check")

    assert bank(ann) == about(2500)


def test_J7_a_tick_is_counted_once_as_lag(house: FakeArena) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    ask = asked(house, ann, ben)
    for _ in range(3):
        house.held_up(0.512)
        house.referee.tick()
    house.answer(ann, ask, "check")

    assert bank(ann) == 3000, "1,536 ms have passed, and 1,500 were the arena's"


def test_J7_the_arenas_lag_counts_for_who_is_to_be_ready_too(house: FakeArena) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    house.open(ann, ben)
    house.sit(ann)
    house.now += 1.5
    house.held_up(1.012)
    house.referee.tick()

    assert house.results == [], "2.5 s have passed, and 1 s was the arena's"

    house.now += 0.6
    house.referee.tick()
    _, _, verdict = ended(house)

    assert (verdict.kind, verdict.bot) == (Ending.ABSENT, "ben")
    assert verdict.credit_ms == pytest.approx(1000, abs=1)


def test_J7_lag_before_the_invitation_is_not_credited(house: FakeArena) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    house.held_up(10)
    house.referee.tick()
    house.open(ann, ben)
    house.sit(ann)
    house.now += 2.1
    house.referee.tick()

    assert ended(house)[2].kind is Ending.ABSENT


# --- the link ---


def test_J7_every_decision_is_credited_with_the_floor_of_the_link(house: FakeArena) -> None:
    ann = house.bot("ann")
    linked(ann, 120)
    ask = alone(house, ann)
    for _ in range(3):
        house.now += 1.1
        house.answer(ann, ask)
        [ask] = ann.asks()

        assert ask.bank_ms == 3000

    house.now += 1.2
    house.answer(ann, ask)

    assert bank(ann) == about(2920)


def test_J7_a_link_that_holds_back_its_pongs_gains_150_ms_a_decision(house: FakeArena) -> None:
    ann = house.bot("ann")
    linked(ann, 4_000)
    ask = alone(house, ann)
    house.now += 1.25
    house.answer(ann, ask)

    assert bank(ann) == about(2900)


def test_J7_credits_for_link_and_lag_add_up(house: FakeArena) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    linked(ann, 100)
    ask = asked(house, ann, ben)
    house.now += 1.3
    house.held_up(0.212)
    house.answer(ann, ask, "check")

    assert bank(ann) == about(2788)  # 1,512 ms, less 100 and 200


def test_J7_a_connection_has_the_floor_of_the_former_one_until_its_own_is_known(
    house: FakeArena,
) -> None:
    ann = house.bot("ann")
    linked(ann, 20)
    alone(house, ann)
    for _ in range(2):  # the second time, the floor of the first is still all it has
        ann.goes()
        ann.comes_back()
    [ask] = ann.asks()
    house.now += 1.1
    house.answer(ann, ask)

    assert bank(ann) == about(2920)

    linked(ann, 120)  # it is another network
    [ask] = ann.asks()
    house.now += 1.1
    house.answer(ann, ask)

    assert bank(ann) == about(2920)


# --- what is told of it ---


def test_J4_out_of_time_is_told_with_taken_limit_credit_and_bank(house: FakeArena) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    linked(ann, 12)
    asked(house, ann, ben, limits=changed(bank_ms=1000))
    house.now += 2.14
    house.referee.tick()
    _, result, verdict = ended(house)

    assert verdict.text == result.termination.text
    assert verdict.text == (
        "out of time: 2,140 ms for a decision (limit 2,000 ms, credit 12 ms), bank empty"
    )
    assert (verdict.taken_ms, verdict.waited_ms) == (2140, 2140)
    assert (verdict.credit_ms, verdict.bank_ms) == (12, 0)
    assert verdict.mechanism == "wall clock"
    assert verdict.min_rtt_ms == 0.5


def test_J4_what_a_late_answer_left_in_the_bank_is_told(house: FakeArena) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    asked(house, ann, ben, limits=changed(bank_ms=60_000))
    house.now += 5.1
    house.referee.tick()

    assert ended(house)[2].text == (
        "out of time: 5,100 ms for a decision (limit 5,000 ms, credit 0 ms), "
        "55,900 ms left in the bank"
    )


def test_J4_a_later_offence_does_not_show_the_bill_of_an_earlier_decision(house: FakeArena) -> None:
    ann = house.bot("ann")
    ask = alone(house, ann)
    house.now += 1.5
    house.answer(ann, ask)
    [ask] = ann.asks()
    house.now += 0.25
    house.answer(ann, ask, "all in")
    _, _, verdict = ended(house)

    assert verdict.taken_ms == 250
    assert verdict.bank_ms == 2500


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


def test_J7_waiting_for_its_turn_is_told_beside_what_was_charged(house: FakeArena) -> None:
    ann = house.bot("ann", tables=2)
    [first] = [alone(house, ann)]
    second = alone(house, ann)
    house.now += 0.9
    house.answer(ann, first)
    house.now += 0.5
    house.answer(ann, second, "all in")
    _, _, verdict = ended(house)

    assert verdict.waited_ms == 1400
    assert verdict.taken_ms == 500


# --- bots that the arena has launched ---


def test_J7_load_costs_a_launched_bot_nothing(house: FakeArena) -> None:
    ann, ben = house.launched("ann"), house.bot("ben")
    ask = asked(house, ann, ben)
    house.passes(29)  # the machine had other work, and the bot used no CPU
    house.answer(ann, ask, "check")

    assert house.results == []
    assert bank(ann) == 3000


def test_J7_a_launched_bot_is_charged_its_cpu_time(house: FakeArena) -> None:
    ann = house.launched("ann")
    ask = alone(house, ann)
    house.computes(ann, 1.5)
    house.passes(2)
    house.answer(ann, ask)

    assert bank(ann) == about(2500)


def test_J7_nothing_is_credited_to_cpu_time(house: FakeArena) -> None:
    ann = house.launched("ann")
    linked(ann, 100)
    ask = alone(house, ann)
    house.computes(ann, 1.5)
    house.held_up(1)
    house.answer(ann, ask)

    assert bank(ann) == about(2500)


def test_J7_thinking_while_others_decide_is_not_free(house: FakeArena) -> None:
    ann, ben = house.launched("ann"), house.bot("ben")
    house.answer(ann, asked(house, ann, ben), "check")
    [ask] = ben.asks()
    house.computes(ann, 0.9)  # while Ben decides
    house.answer(ben, ask, "bet")
    [ask] = ann.asks()
    house.computes(ann, 0.6)
    house.answer(ann, ask, "fold")

    assert bank(ann) == about(2500)


def test_J7_cpu_time_is_charged_once(house: FakeArena) -> None:
    ann = house.launched("ann")
    ask = alone(house, ann)
    for _ in range(3):
        house.computes(ann, 1.1)
        house.answer(ann, ask)
        [ask] = ann.asks()

    assert bank(ann) == about(2700)


def test_J7_setting_up_is_free_of_cpu_time(house: FakeArena) -> None:
    ann, ben = house.launched("ann"), house.bot("ben")
    house.open(ann, ben)
    house.computes(ann, 1.9)
    house.sit(ann, ben)
    [ask] = ann.asks()
    house.computes(ann, 0.5)
    house.answer(ann, ask, "check")

    assert house.results == []
    assert bank(ann) == 3000


def test_J7_what_is_used_between_matches_is_free(house: FakeArena) -> None:
    ann = house.launched("ann")
    house.answer(ann, alone(house, ann), "all in")
    ann.reads()
    house.computes(ann, 60)
    house.results.clear()
    ask = alone(house, ann)
    house.answer(ann, ask)

    assert house.results == []
    assert bank(ann) == 3000


def test_J7_getting_ready_for_one_match_does_not_wipe_out_what_another_has_cost(
    house: FakeArena,
) -> None:
    ann = house.launched("ann", tables=2)
    first = alone(house, ann)
    house.computes(ann, 1.5)
    begun(house, ann, game="three_card_poker")
    house.answer(ann, first)

    chair = ann.player.chairs[first.match]
    assert chair.clock.bank_ms == about(2500)


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


def test_J7_an_answer_that_took_too_much_cpu_time_is_late_before_any_tick(house: FakeArena) -> None:
    ann, ben = house.launched("ann"), house.bot("ben")
    ask = asked(house, ann, ben)
    assert ann.process is not None
    house.now += 0.02
    ann.process.used_ms += 4_001  # many cores were at work for it
    house.answer(ann, ask, "check")

    assert ended(house)[2].kind is Ending.CPU


def test_J7_an_opponents_time_is_not_charged_to_whoever_waits(house: FakeArena) -> None:
    ann, ben = house.launched("ann"), house.bot("ben")
    house.answer(ann, asked(house, ann, ben), "check")
    ben.asks()
    house.computes(ann, 60)
    house.referee.tick()
    _, _, verdict = ended(house)

    assert (verdict.bot, verdict.kind) == ("ben", Ending.TIMEOUT)


def test_J7_a_launched_bot_that_stalls_is_out_of_time_on_the_wall(house: FakeArena) -> None:
    ann, ben = house.launched("ann"), house.bot("ben")
    asked(house, ann, ben)
    house.passes(29.9)

    assert house.results == []

    house.passes(0.2)
    _, _, verdict = ended(house)

    assert verdict.kind is Ending.TIMEOUT
    assert verdict.mechanism == Mechanism.WALL_CAP
    assert verdict.taken_ms == pytest.approx(30_000, abs=100)
    assert "answer within 30,000 ms whatever happens" in verdict.advice


def test_J4_the_wall_is_not_told_as_an_empty_bank(house: FakeArena) -> None:
    ann, ben = house.launched("ann"), house.bot("ben")
    ask = asked(house, ann, ben)
    house.now += 30.25
    house.answer(ann, ask, "check")
    _, _, verdict = ended(house)

    assert verdict.bank_ms == 3000
    assert verdict.text == ("out of time: 30,250 ms for a decision (limit 30,000 ms, credit 0 ms)")


def test_J7_the_wall_is_put_off_by_link_and_lag(house: FakeArena) -> None:
    ann, ben = house.launched("ann"), house.bot("ben")
    linked(ann, 100)
    ask = asked(house, ann, ben, limits=changed(wall_ms=2000))
    house.now += 1.9
    house.held_up(0.192)
    house.answer(ann, ask, "check")

    assert house.results == [], "2,092 ms, less 100 and 180"


def test_J7_a_turn_at_many_tables_is_wall_ms_for_a_launched_bot(house: FakeArena) -> None:
    ann = house.launched("ann", tables=3)
    limits = {"wall_ms": 2000}
    first, second, third = (alone(house, ann, **limits) for _ in range(3))
    for ask in (first, second, third):
        house.passes(1.9)
        house.answer(ann, ask)

    assert house.results == []


def test_J7_two_seats_of_one_process_are_charged_once(house: FakeArena) -> None:
    ann = house.launched("ann", tables=2)
    first, second = alone(house, ann), alone(house, ann)
    house.computes(ann, 1.5)
    house.answer(ann, first)
    house.answer(ann, second)

    banks = {match: chair.clock.bank_ms for match, chair in ann.player.chairs.items()}
    assert banks == {first.match: about(2500), second.match: 3000}


def test_J7_a_bot_against_itself_pays_for_both_seats(house: FakeArena) -> None:
    ann = house.launched("ann", tables=2)
    table = begun(house, ann, ann)
    [ask] = ann.asks()
    house.computes(ann, 1.2)
    house.answer(ann, ask, "bet")
    [ask] = ann.asks()
    house.computes(ann, 1.3)
    house.answer(ann, ask, "fold")

    assert [chair.clock.bank_ms for chair in table.chairs] == [about(2800), about(2700)]


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


def test_J7_where_cpu_time_cannot_be_measured_the_time_on_the_wall_is_charged(
    house: FakeArena,
) -> None:
    ann, ben = house.launched("ann"), house.bot("ben")
    ann.player.is_metered = False
    asked(house, ann, ben)
    house.passes(4.1)
    _, _, verdict = ended(house)

    assert (verdict.kind, verdict.mechanism) == (Ending.TIMEOUT, "wall clock")


# --- the cap on the wall, on a machine with too much to do ---


def waits_for_a_core(house: FakeArena, bot: FakeBot, seconds: float) -> None:
    """Let time pass in which the bot is ready to run, and others have the cores."""
    assert bot.process is not None, "only launched bots have processes"
    end = house.now + seconds
    while house.now < end:
        step = min(0.5, end - house.now)
        house.passes(step)
        bot.process.overbooked_ms += step * 1000


def test_J7_the_cap_on_the_wall_grows_while_a_bot_has_no_core(house: FakeArena) -> None:
    ann, ben = house.launched("ann"), house.bot("ben")
    ask = asked(house, ann, ben, limits=changed(wall_ms=2000))
    waits_for_a_core(house, ann, 60)
    house.answer(ann, ask, "check")

    assert house.results == []
    assert bank(ann) == 3000


def test_J7_the_cap_ends_a_bot_that_sleeps_though_it_has_had_no_core_before(
    house: FakeArena,
) -> None:
    ann, ben = house.launched("ann"), house.bot("ben")
    asked(house, ann, ben, limits=changed(wall_ms=2000))
    waits_for_a_core(house, ann, 10)
    house.passes(2.5)
    _, _, verdict = ended(house)

    assert (verdict.kind, verdict.mechanism) == (Ending.TIMEOUT, Mechanism.WALL_CAP)
    assert verdict.taken_ms == pytest.approx(11_000, abs=1_100), "1 s is free before a first look"


def test_J7_what_a_bot_waited_before_its_question_is_no_credit(house: FakeArena) -> None:
    ann, ben = house.launched("ann"), house.bot("ben")
    assert ann.process is not None
    ann.process.overbooked_ms = 1_000_000
    asked(house, ann, ben, limits=changed(wall_ms=2000))
    house.passes(2.1)
    _, _, verdict = ended(house)

    assert verdict.taken_ms == pytest.approx(2000, abs=60)


def test_J7_many_processes_without_a_core_put_the_cap_off_by_no_more_than_the_time(
    house: FakeArena,
) -> None:
    ann, ben = house.launched("ann"), house.bot("ben")
    asked(house, ann, ben, limits=changed(wall_ms=2000))
    assert ann.process is not None
    house.passes(1.5)
    ann.process.overbooked_ms += 1_000_000  # by thirty of them
    house.passes(1.4)
    assert house.results == [], "it was looked at after 1 s and after 2 s"
    house.passes(0.2)
    _, _, verdict = ended(house)

    assert verdict.mechanism is Mechanism.WALL_CAP


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


# --- the start of a launched bot ---


def invited(house: FakeArena, bot: FakeBot, **limits: int) -> messages.Match:
    house.open(bot, game="three_card_poker", limits=changed(**limits))
    [invitation] = bot.reads()
    assert isinstance(invitation, messages.Match)
    return invitation


def test_J7_the_start_of_a_launched_bot_is_charged_cpu_time(house: FakeArena) -> None:
    ann = house.launched("ann")
    invitation = invited(house, ann, start_ms=2000)
    house.computes(ann, 1.9)
    waits_for_a_core(house, ann, 20)
    house.say(ann, Ready(invitation.match, "nonce"))

    assert house.results == []


def test_J7_a_launched_bot_that_computes_too_much_for_its_start_is_absent(house: FakeArena) -> None:
    ann = house.launched("ann")
    invited(house, ann, start_ms=2000)
    house.computes(ann, 2.1)
    house.passes(0.1)
    _, _, verdict = ended(house)

    assert (verdict.kind, verdict.mechanism) == (Ending.ABSENT, Mechanism.CPU_CLOCK)
    assert verdict.text == "not ready within 2,000 ms of CPU after match"


def test_J7_a_launched_bot_that_sleeps_at_its_start_is_absent_by_the_cap(house: FakeArena) -> None:
    ann = house.launched("ann")
    invited(house, ann, start_ms=2000, wall_ms=5000)
    house.passes(4.9)
    assert house.results == []
    house.passes(0.2)
    _, _, verdict = ended(house)

    assert (verdict.kind, verdict.mechanism) == (Ending.ABSENT, Mechanism.WALL_CAP)
    assert verdict.text == "not ready within 5,000 ms after match"


def test_J7_the_cap_at_the_start_is_at_least_start_ms(house: FakeArena) -> None:
    ann = house.launched("ann")
    invited(house, ann, start_ms=2000, wall_ms=500)
    house.passes(1.9)

    assert house.results == []


def test_J7_what_a_launched_bot_computed_before_its_match_is_not_charged_to_the_start(
    house: FakeArena,
) -> None:
    ann = house.launched("ann")
    house.computes(ann, 100)
    invitation = invited(house, ann, start_ms=2000)
    house.computes(ann, 1)
    house.passes(2)
    house.say(ann, Ready(invitation.match, "nonce"))

    assert house.results == []


def test_J7_decisions_at_other_tables_are_not_charged_to_the_start(house: FakeArena) -> None:
    ann = house.launched("ann", tables=2)
    ask = alone(house, ann)
    invitation = invited(house, ann, start_ms=2000)
    for _ in range(3):
        house.computes(ann, 0.9)
        house.answer(ann, ask)
        [ask] = ann.asks()
    house.passes(1)
    house.say(ann, Ready(invitation.match, "nonce"))

    assert house.results == []
