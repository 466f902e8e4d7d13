from __future__ import annotations

import gc
import hashlib
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from arena.engine.rules import Game
from arena.engine.verdict import Finding
from arena.games import GAMES
from arena.games.replay import replay
from arena.referee.live_match import LiveMatch
from arena.referee.referee import FAULT
from protocol.codec import Encoding, encode
from protocol.messages import (
    Answer,
    Ask,
    Ending,
    Limits,
    Match,
    Mechanism,
    Over,
    Ready,
    Refused,
    Termination,
)

if TYPE_CHECKING:
    from tests.support.fake_bots import LIMITS, FakeArena, FakeBot
else:
    LIMITS = Limits(decision_ms=1000, bank_ms=3000, hard_ms=5000, start_ms=2000, grace_ms=1000)


@pytest.fixture
def ann(house: FakeArena) -> FakeBot:
    return house.bot("ann")


@pytest.fixture
def ben(house: FakeArena) -> FakeBot:
    return house.bot("ben")


def found(kind: Ending, text: str) -> Finding:
    """An offence as it may be noticed."""
    return Finding(kind=kind, text=text, mechanism=Mechanism.WIRE)


def only(items: list[Any]) -> Any:
    [item] = items
    return item


def begun(house: FakeArena, *bots: FakeBot, **settings: Any) -> Any:
    """A match whose seats are ready."""
    table = house.open(*bots, **settings)
    house.sit(*bots)
    return table


def broken(raise_at: int) -> Game:
    """Ace-King-Queen with rules that fail at their nth answer, or before the first with 0."""
    sound = GAMES["ace_king_queen"]

    def rules(*arguments: Any) -> Iterator[Any]:
        steps, answers = sound.rules(*arguments), 0
        step = next(steps)
        while True:
            answer = yield step
            if answer is not None:
                answers += 1
                if answers == raise_at:
                    raise KeyError("a fault in the rules")
            step = steps.send(answer)

    def none(*_: Any) -> Iterator[Any]:
        raise KeyError("a fault in the rules")
        yield

    return msgspec.structs.replace(sound, rules=rules if raise_at else none)


# --- a match from the invitation to its end ---


def test_every_seat_is_invited_with_the_commitment_of_one_seed(
    house: FakeArena, ann: FakeBot, ben: FakeBot
) -> None:
    table = house.open(ann, ben, hands=2)
    for_ann, for_ben = only(ann.reads()), only(ben.reads())

    assert (for_ann.seat, for_ben.seat) == (0, 1)
    assert for_ann.match != for_ben.match
    assert for_ann.commitment == for_ben.commitment
    assert for_ann.commitment == hashlib.sha256(table.seed).hexdigest()
    assert for_ann.seats == ("ann", "ben")
    assert for_ann.settings == {"hands": 2}
    assert for_ann.limits == LIMITS


def test_an_invitation_says_where_the_page_shows_the_match(
    house: FakeArena, ann: FakeBot, ben: FakeBot
) -> None:
    house.referee.page = "/arena/"
    table = house.open(ann, ben)

    assert only(ann.reads()).page == only(ben.reads()).page == f"/arena/#/m/{table.id}"


def test_without_a_page_an_invitation_says_nothing_of_one(
    house: FakeArena, ann: FakeBot, ben: FakeBot
) -> None:
    house.open(ann, ben)
    invitation = only(ann.reads())

    assert invitation.page is None
    assert b"page" not in encode(invitation, Encoding.JSON)


def test_J6_no_card_is_dealt_before_all_seats_are_ready(
    house: FakeArena, ann: FakeBot, ben: FakeBot
) -> None:
    table = house.open(ann, ben)
    house.sit(ann)

    assert ann.asks() == []
    assert table.match is None

    house.sit(ben)

    assert [type(ask.question).__name__ for ask in ann.asks()] == ["Open"]


def test_J6_the_cards_come_from_the_seed_and_every_nonce(
    house: FakeArena, ann: FakeBot, ben: FakeBot
) -> None:
    begun(house, ann, ben, hands=4)
    house.play_out(ann, ben)
    table, result, _ = only(house.results)

    assert result.record.nonces == ("nonce of ann", "nonce of ben")
    assert result.record.seed == table.seed.hex()
    assert replay(result.record) == result


def test_a_second_ready_does_not_change_the_nonce(
    house: FakeArena, ann: FakeBot, ben: FakeBot
) -> None:
    table = house.open(ann, ben)
    invitation = only(ann.reads())
    house.say(ann, Ready(invitation.match, "one"))
    house.say(ann, Ready(invitation.match, "other"))

    assert table.chairs[0].nonce == "one"


def test_an_answer_puts_the_next_question_with_its_news_into_the_outbox(
    house: FakeArena, ann: FakeBot, ben: FakeBot
) -> None:
    begun(house, ann, ben, hands=2)
    house.answer(ann, only(ann.asks()), "check")
    ask = only(ben.asks())

    assert ask.question.round == 2
    assert [news.kind for news in ask.news] == ["hand_over"]
    assert ann.reads() == []  # what it has heard comes with its next question


def test_a_match_that_is_over_leaves_memory_without_a_garbage_collection(
    house: FakeArena, ann: FakeBot, ben: FakeBot
) -> None:
    gc.collect()
    gc.disable()
    try:
        over = weakref.ref(begun(house, ann, ben, hands=2))
        house.play_out(ann, ben)
        house.results.clear()
        house.now += 60.0
        house.referee.tick()  # deadlines of its seats were still noted

        assert over() is None
    finally:
        gc.enable()


def test_over_comes_to_all_seats_with_the_last_news_and_the_seed(
    house: FakeArena, ann: FakeBot, ben: FakeBot
) -> None:
    table = begun(house, ann, ben, hands=2)
    house.answer(ann, only(ann.asks()), "check")
    house.answer(ben, only(ben.asks()), "check")
    for_ann, for_ben = only(ann.reads()), only(ben.reads())
    _, result, verdict = only(house.results)

    assert [len(for_ann.news), len(for_ben.news)] == [2, 1]
    assert for_ann.scores == for_ben.scores == result.scores
    assert for_ann.termination.kind is Ending.COMPLETED
    assert for_ann.reveal.seed == table.seed.hex()
    assert verdict is None
    assert ann.player.chairs == {}
    assert house.referee.tables == ()


def test_a_bot_sits_at_both_sides_of_a_table(house: FakeArena) -> None:
    ann = house.bot("ann", tables=2)
    begun(house, ann, ann, hands=4)
    house.play_out(ann)
    _, result, _ = only(house.results)

    assert result.termination.kind is Ending.COMPLETED
    assert ann.player.pending == 0


# --- offences ---


def test_J3_after_an_illegal_answer_the_opponent_wins(
    house: FakeArena, ann: FakeBot, ben: FakeBot
) -> None:
    begun(house, ann, ben)
    house.answer(ann, only(ann.asks()), "raise")
    _, result, verdict = only(house.results)
    [for_ann], [for_ben] = ann.reads(), ben.reads()

    assert result.termination.kind is Ending.ILLEGAL
    assert result.winner == 1
    assert isinstance(for_ann, Over)
    assert isinstance(for_ben, Over)
    assert for_ann.termination == result.termination
    assert for_ann.verdict == verdict is not None
    assert for_ben.termination == Termination(Ending.ILLEGAL, 0), "one word for others"
    assert for_ben.verdict is None


def test_J4_the_verdict_has_all_the_evidence(house: FakeArena, ann: FakeBot, ben: FakeBot) -> None:
    table = begun(house, ann, ben)
    house.answer(ann, only(ann.asks()), "check")
    ask = only(ben.asks())
    house.now += 1.5
    house.answer(ben, ask, {"bluff": [1, 2]})
    _, _, verdict = only(house.results)

    assert verdict.kind is Ending.ILLEGAL
    assert verdict.advice == "answer with an element of `legal` as it stands in this very question"
    assert (verdict.bot, verdict.seat) == ("ben", 1)
    assert (verdict.match, verdict.game) == (table.id, "ace_king_queen")
    assert verdict.text == 'seat 2 answered {"bluff": [1, 2]} to open; legal: bet, check'
    assert msgspec.json.decode(verdict.asked) == {
        "kind": "open",
        "round": 2,
        "card": ask.question.card,
        "legal": ["bet", "check"],
    }
    assert verdict.legal == "bet, check"
    assert verdict.got == '{"bluff": [1, 2]}'
    assert verdict.taken_ms == 1500.0
    assert verdict.bank_ms == 2500
    assert verdict.limits == LIMITS


def test_J3_against_the_dealer_the_whole_stake_is_lost(house: FakeArena, ann: FakeBot) -> None:
    begun(house, ann, game="three_card_poker", stake=300)
    house.answer(ann, only(ann.asks()), True)
    _, result, _ = only(house.results)

    assert result.scores == (-300,)


def test_an_offence_ends_all_matches_of_that_player_and_no_other(house: FakeArena) -> None:
    ann, ben, cem = (house.bot(name, tables=4) for name in ("ann", "ben", "cem"))
    first = begun(house, ann, ben)
    second = begun(house, cem, ann)
    itself = begun(house, ann, ann)
    other = begun(house, ben, cem)
    house.referee.offence(ann.player, found(Ending.MALFORMED, "sent nonsense"))

    seats = {table.id: result.termination.seat for table, result, _ in house.results}
    assert [seats[table.id] for table in (first, second, itself)] == [0, 1, 0]
    assert all(verdict.bot == "ann" for *_, verdict in house.results if verdict)
    assert house.referee.tables == (other,)
    assert ann.player.pending == 0


def test_an_offence_before_the_match_has_begun_has_a_result_too(
    house: FakeArena, ann: FakeBot, ben: FakeBot
) -> None:
    house.open(ann, ben)
    house.sit(ben)
    house.referee.offence(ann.player, found(Ending.DISCONNECT, "left"))
    _, result, verdict = only(house.results)

    assert result.winner == 1
    assert result.record.nonces == ("", "nonce of ben")
    assert verdict.asked is None


def test_what_makes_of_a_result_cannot_stop_the_matches(
    house: FakeArena, ann: FakeBot, ben: FakeBot, caplog: pytest.LogCaptureFixture
) -> None:
    table = begun(house, ann, ben)

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    table.on_over = fail
    house.answer(ann, only(ann.asks()), "raise")

    assert "the disk is full" in caplog.text
    assert isinstance(only(ben.reads()), Over)


@pytest.mark.parametrize(
    "kind", [kind for kind in Ending if kind not in (Ending.COMPLETED, Ending.VOID)]
)
def test_J4_the_offender_is_told_all_and_the_others_one_word(
    house: FakeArena, kind: Ending
) -> None:
    bots = [house.bot(f"bot {seat}") for seat in range(4)]
    begun(house, *bots, game="high_low")
    house.referee.offence(bots[2].player, found(kind, "in many words"))
    _, result, verdict = only(house.results)
    overs = [only([m for m in bot.reads() if isinstance(m, Over)]) for bot in bots]

    assert overs[2].verdict == verdict
    assert overs[2].termination == Termination(kind, 2, "in many words")
    assert verdict.advice
    assert verdict.mechanism == "wire"
    for seat in (0, 1, 3):
        assert overs[seat].termination == Termination(kind, 2)
        assert overs[seat].verdict is None
        assert overs[seat].scores == result.scores


def test_J4_a_bot_at_both_sides_gets_its_verdict_at_the_side_of_its_offence(
    house: FakeArena,
) -> None:
    ann = house.bot("ann", tables=2)
    begun(house, ann, ann)
    house.answer(ann, only(ann.asks()), "raise")
    overs = [message for message in ann.reads() if isinstance(message, Over)]

    assert [over.verdict is not None for over in overs] == [True, False]


def test_J4_what_the_arena_found_out_elsewhere_is_in_the_verdict(
    house: FakeArena, ann: FakeBot, ben: FakeBot
) -> None:
    begun(house, ann, ben)
    finding = Finding(
        kind=Ending.CRASH,
        text="crashed: exit status 1",
        mechanism=Mechanism.EXIT,
        exit_status=1,
        stderr="Traceback: its own",
    )
    house.referee.offence(ben.player, finding)
    _, result, verdict = only(house.results)

    assert verdict.headline == result.termination.text == "crashed: exit status 1"
    assert (verdict.mechanism, verdict.exit_status) == ("exit", 1)
    assert verdict.stderr == "Traceback: its own"
    assert (verdict.asked, verdict.legal, verdict.taken_ms) == (None, None, None)
    assert (verdict.waited_ms, verdict.bank_ms) == (None, 3000)
    assert verdict.enforced == "time"


def test_J4_the_record_says_which_limits_every_seat_was_held_to(house: FakeArena) -> None:
    ours, ben = house.launched("ours"), house.bot("ben")
    begun(house, ours, ben, hands=2)
    house.play_out(ours, ben)

    assert only(house.results)[1].record.enforced == (
        "time, memory and processes (sampled)",
        "time",
    )


def test_the_record_says_which_version_of_every_bot_has_played(
    house: FakeArena, ann: FakeBot, ben: FakeBot
) -> None:
    begun(house, ann, ben, hands=2, versions=("v2", "connected"))
    house.play_out(ann, ben)
    begun(house, ann, ben, hands=2)
    house.play_out(ann, ben)
    first, second = (result.record for _, result, _ in house.results)

    assert first.versions == ("v2", "connected")
    assert second.versions is msgspec.UNSET


def test_the_record_names_the_worker_that_referees(
    house: FakeArena, ann: FakeBot, ben: FakeBot
) -> None:
    house.referee.worker = "north"
    begun(house, ann, ben, hands=2)
    house.play_out(ann, ben)
    [(_, result, _)] = house.results

    assert result.record.worker == "north"


def test_every_elimination_is_told_as_it_happens(
    house: FakeArena, ann: FakeBot, ben: FakeBot
) -> None:
    told: list[Any] = []
    house.referee.on_verdict = told.append
    house.referee.void(begun(house, ann, ben), "not needed")

    assert told == []

    begun(house, ann, ben)
    house.answer(ann, only(ann.asks()), "raise")

    assert told == [house.results[-1][2]]


# --- practice ---


@pytest.fixture
def practice(house: FakeArena) -> FakeArena:
    house.referee.practice = True
    return house


def refusals(bot: FakeBot) -> list[Refused]:
    return [message for message in bot.reads() if isinstance(message, Refused)]


def test_in_practice_an_illegal_answer_is_refused_with_what_is_legal(
    practice: FakeArena, ann: FakeBot, ben: FakeBot
) -> None:
    begun(practice, ann, ben)
    ask = only(ann.asks())
    practice.answer(ann, ask, "raise")

    assert ann.reads() == [
        Refused(
            "illegal",
            'answered "raise" to open; legal: bet, check',
            ask.match,
            ask.ask,
            legal=["bet", "check"],
        )
    ]
    assert ben.asks() == []
    assert practice.results == []


@pytest.mark.parametrize("game", GAMES)
def test_in_practice_the_question_stands_until_it_is_answered(
    practice: FakeArena, game: str
) -> None:
    bots = [practice.bot(f"bot {seat}") for seat in range(GAMES[game].seats)]
    table = begun(practice, *bots, game=game)
    for _ in range(3):
        for bot in bots:
            for ask in bot.asks():
                for value in (True, "nonsense", ["nonsense"], {"legal": None}):
                    practice.answer(bot, ask, value)

                assert {refused.ask for refused in refusals(bot)} == {ask.ask}
                assert table.chairs[bots.index(bot)].ask == ask

                practice.answer(bot, ask)

    assert practice.results == []
    assert "nonsense" not in table.match.answers


def test_in_practice_a_legal_answer_after_that_plays_on(
    practice: FakeArena, ann: FakeBot, ben: FakeBot
) -> None:
    begun(practice, ann, ben, hands=2)
    ask = only(ann.asks())
    practice.answer(ann, ask, "raise")
    practice.answer(ann, ask, 7)
    practice.answer(ann, ask, "check")
    practice.answer(ann, ask, "bet")  # it has been answered
    practice.play_out(ann, ben)
    _, result, verdict = only(practice.results)

    assert verdict is None
    assert result.record.answers[0] == "check"
    assert replay(result.record) == result


def test_in_practice_who_comes_back_is_asked_again_what_it_answered_wrongly(
    practice: FakeArena, ann: FakeBot, ben: FakeBot
) -> None:
    begun(practice, ann, ben)
    ask = only(ann.asks())
    practice.answer(ann, ask, "raise")
    ann.goes()
    ann.comes_back()

    assert ann.asks() == [ask]

    practice.answer(ann, ask, "raise")

    assert [refused.ask for refused in refusals(ann)] == [ask.ask]


# --- J5 ---


@pytest.mark.parametrize("raise_at", [0, 1])
def test_J5_rules_that_fail_void_the_match_and_charge_nobody(
    house: FakeArena, ann: FakeBot, ben: FakeBot, raise_at: int, caplog: pytest.LogCaptureFixture
) -> None:
    begun(house, ann, ben, game=broken(raise_at))
    if raise_at:
        house.answer(ann, only(ann.asks()))
    _, result, verdict = only(house.results)

    assert result.termination.kind is Ending.VOID
    assert result.termination.text == FAULT
    assert verdict is None
    assert "a fault in the rules" in caplog.text
    assert only([m for m in ben.reads() if isinstance(m, Over)]).termination.seat is None


def test_J5_one_match_that_fails_leaves_the_others_alone(house: FakeArena) -> None:
    ann, ben = house.bot("ann", tables=2), house.bot("ben", tables=2)
    house.open(ann, ben, game=broken(1))
    house.open(ann, ben, hands=2)
    house.sit(ann, ben)
    house.play_out(ann, ben)

    kinds = [result.termination.kind for _, result, _ in house.results]
    assert kinds == [Ending.VOID, Ending.COMPLETED]


def test_a_void_match_is_void_once(house: FakeArena, ann: FakeBot, ben: FakeBot) -> None:
    table = begun(house, ann, ben)
    house.referee.void(table, "not needed")
    house.referee.void(table, "not needed")

    assert only(house.results)[1].termination.kind is Ending.VOID


def test_J5_all_seats_are_told_why_a_match_is_void(
    house: FakeArena, ann: FakeBot, ben: FakeBot
) -> None:
    house.referee.void(begun(house, ann, ben), "its competition was stopped")

    for bot in (ann, ben):
        over = only([m for m in bot.reads() if isinstance(m, Over)])

        assert over.termination == Termination(Ending.VOID, None, "its competition was stopped")
        assert over.verdict is None


# --- J7 ---


def ten_tables(house: FakeArena) -> tuple[FakeBot, list[Ask]]:
    """A bot with a question at each of ten tables."""
    ann = house.bot("ann", tables=10)
    opponents = [house.bot(f"ben {n}") for n in range(10)]
    for ben in opponents:
        house.open(ann, ben)
    house.sit(ann, *opponents)
    return ann, ann.asks()


def test_J7_a_bot_with_many_tables_is_charged_as_one_worker(house: FakeArena) -> None:
    ann, asks = ten_tables(house)
    for ask in asks:
        house.now += 0.9
        house.referee.tick()
        house.answer(ann, ask, "check")

    assert not any(verdict and verdict.bot == "ann" for *_, verdict in house.results)
    assert all(chair.clock.bank_ms == 3000 for chair in ann.player.chairs.values())


def test_J7_many_answers_in_one_frame_are_charged_once(house: FakeArena) -> None:
    ann, asks = ten_tables(house)
    house.now += 1.5
    for ask in asks:
        house.answer(ann, ask, "check")

    banks = sorted(chair.clock.bank_ms for chair in ann.player.chairs.values())
    assert banks == [2500] + [3000] * 9


def test_J7_a_silent_worker_is_late_at_every_table(house: FakeArena) -> None:
    ten_tables(house)
    house.now += 4.1
    house.referee.tick()

    assert len(house.results) == 10


def test_J7_answers_elsewhere_do_not_hold_up_one_question_for_ever(house: FakeArena) -> None:
    ann, ben, cem = house.bot("ann", tables=2), house.bot("ben"), house.bot("cem")
    begun(house, ann, cem)
    [quick] = ann.asks()
    first = begun(house, ann, ben)
    [neglected] = ann.asks()
    for _ in range(5):  # 4.5 s: it came second, so that it has 1 s more, and the bank
        house.now += 0.9
        house.answer(ann, quick, "check")
        house.answer(cem, only(cem.asks()), "check")
        [quick] = ann.asks()
        house.referee.tick()

    assert house.results == []

    house.now += 0.51
    house.referee.tick()

    table, result, verdict = only(house.results)
    assert table is first
    assert neglected.match == f"{first.id}.0"
    assert (result.termination.kind, verdict.bot) == (Ending.TIMEOUT, "ann")


def test_a_deadline_that_was_met_is_forgotten(house: FakeArena, ann: FakeBot, ben: FakeBot) -> None:
    begun(house, ann, ben, hands=2)
    house.play_out(ann, ben)
    house.now += 60
    house.referee.tick()

    assert len(house.results) == 1


def test_deadlines_of_hundreds_of_tables_are_kept_in_order(house: FakeArena) -> None:
    bots = [house.bot(f"bot {n}") for n in range(200)]
    for ann, ben in zip(bots[::2], bots[1::2], strict=True):
        begun(house, ann, ben)
        ann.asks()
        house.now += 0.01
    for _ in range(600):
        house.now += 0.01
        house.referee.tick()

    assert [table.id for table, *_ in house.results] == sorted(
        (table.id for table, *_ in house.results), key=lambda match: int(match.rpartition("-")[2])
    )
    assert len(house.results) == 100


def test_messages_about_chairs_that_are_gone_do_nothing(
    house: FakeArena, ann: FakeBot, ben: FakeBot
) -> None:
    table = begun(house, ann, ben)
    house.referee.void(table, "not needed")
    house.referee.ready(ann.player, Ready("nowhere.0", "nonce"))
    match = only([m for m in ann.reads() if isinstance(m, Over)]).match

    assert ann.player.answering(Answer("nowhere.0", "nowhere.0:1", 1)) is None
    assert ann.player.answering(Answer(match, f"{match}:1", "bet")) is None
    assert len(house.results) == 1
    assert not any(isinstance(message, Match) for message in ann.reads())


def test_J4_the_evidence_is_of_the_table_where_a_bot_is_asked(house: FakeArena) -> None:
    ann, ben, cem = (house.bot(name, tables=4) for name in ("ann", "ben", "cem"))
    begun(house, ann, ben)
    house.answer(ann, only(ann.asks()), "check")
    begun(house, cem, ann)
    house.answer(cem, only(cem.asks()), "bet")
    house.referee.offence(ann.player, found(Ending.CRASH, "crashed"))
    first = house.results[0][2]

    assert first is not None
    assert first.asked is not None


# --- limits of a seat's own ---


def with_a_person(house: FakeArena, ann: FakeBot, ben: FakeBot) -> LiveMatch:
    """A table with a seat that may think for ten seconds, and one that may not."""
    long = msgspec.structs.replace(LIMITS, decision_ms=10_000, hard_ms=60_000)
    rules = GAMES["ace_king_queen"]
    table = house.referee.open(
        rules,
        rules.vocabulary.read_settings({"hands": 2}),
        [ann.player, ben.player],
        LIMITS,
        lambda *over: house.results.append(over),
        by_seat=(long, LIMITS),
    )
    house.sit(ann, ben)
    return table


def test_J7_every_seat_is_held_to_its_own_limits(
    house: FakeArena, ann: FakeBot, ben: FakeBot
) -> None:
    table = with_a_person(house, ann, ben)
    [ask] = ann.asks()
    assert ask.decision_ms == 10_000
    house.passes(9.9)
    house.answer(ann, ask, "bet")
    assert table.chairs[0].clock.bank_ms == LIMITS.bank_ms, "it cost nothing"

    [ask] = ben.asks()
    assert ask.decision_ms == LIMITS.decision_ms
    house.passes(4.1)
    [(_, result, verdict)] = house.results
    assert result.termination.kind is Ending.TIMEOUT
    assert verdict is not None
    assert (verdict.seat, verdict.limits) == (1, LIMITS)


def test_each_seat_is_told_its_own_limits(house: FakeArena, ann: FakeBot, ben: FakeBot) -> None:
    table = with_a_person(house, ann, ben)
    invitations = [chair.invitation for chair in table.chairs]

    assert [invitation and invitation.limits.decision_ms for invitation in invitations] == [
        10_000,
        1_000,
    ]
    assert table.limits == LIMITS


# --- events ---


def frozen(house: FakeArena, bot: FakeBot, tables: int) -> list[str]:
    """The ids of a bot's matches against the dealer; in each of them it has been asked."""
    opened = [house.open(bot, game="three_card_poker").id for _ in range(tables)]
    house.sit(bot)
    assert len(bot.asks()) == tables
    return opened


def events(house: FakeArena) -> dict[str, str]:
    """By match, which event has ended it."""
    return {table.id: verdict.event for table, _, verdict in house.results if verdict}


def test_J3_a_freeze_is_one_event_at_however_many_tables(house: FakeArena) -> None:
    bot = house.bot(tables=8)
    opened = frozen(house, bot, 8)
    house.passes(20)

    assert events(house) == dict.fromkeys(opened, f"{house.results[0][0].id}.0")
    for _, result, verdict in house.results:
        assert verdict is not None
        assert verdict.kind is Ending.TIMEOUT
        assert result.record.events == (verdict.event,)
        assert replay(result.record).record == result.record


def test_J3_what_waited_at_a_freeze_belongs_to_it_and_what_came_later_does_not(
    house: FakeArena,
) -> None:
    """A bot that thaws answers one question after another, and the last ones too late."""
    bot = house.bot(tables=3)
    first, second, third = frozen(house, bot, 3)
    [_, table, late] = house.referee.tables

    def answer(table: LiveMatch) -> None:
        [chair] = table.chairs
        assert chair.ask is not None
        house.answer(bot, chair.ask)
        bot.reads()

    house.passes(2)
    answer(table)
    answer(late)
    while not house.results:
        house.passes(0.1)
    answer(table)
    assert bot.player.event, "that question has waited since before"
    house.passes(0.1)
    answer(table)
    assert not bot.player.event
    while len(house.results) < 2:
        house.passes(0.1)
        answer(table)
    answer(table)
    house.passes(20)

    assert events(house) == {first: f"{first}.0", second: f"{second}.0", third: f"{first}.0"}


def test_J3_a_match_that_was_opened_later_is_lost_by_another_event(house: FakeArena) -> None:
    """Else a bot that hangs would lose all its matches one by one, and never be out."""
    bot = house.bot(tables=2)
    [first] = frozen(house, bot, 1)
    while not house.results:
        house.passes(0.1)
    later = house.open(bot, game="three_card_poker")
    house.passes(20)

    assert events(house) == {first: f"{first}.0", later.id: f"{later.id}.0"}


def test_J3_a_crash_is_one_event_at_all_tables(house: FakeArena) -> None:
    bot = house.bot(tables=4)
    opened = frozen(house, bot, 4)
    crash = Finding(kind=Ending.CRASH, text="crashed", mechanism=Mechanism.WIRE)
    house.referee.offence(bot.player, crash)

    assert set(events(house)) == set(opened)
    assert set(events(house).values()) == {bot.player.event}


def test_J3_an_illegal_answer_is_an_event_of_its_own(house: FakeArena) -> None:
    bot = house.bot(tables=2)
    frozen(house, bot, 2)
    for table in house.referee.tables:
        [chair] = table.chairs
        assert chair.ask is not None
        house.answer(bot, chair.ask, "all in")

    assert events(house) == {match: f"{match}.0" for match in events(house)}
    assert len(events(house)) == 2


def test_J3_a_pong_shows_that_a_bot_is_there_again(house: FakeArena) -> None:
    bot = house.bot()
    frozen(house, bot, 1)
    house.passes(20)
    assert bot.player.is_unresponsive
    bot.player.link_probe.probe(house.now)

    assert bot.player.link_probe.ponged(bot.wire.pings[-1], house.now)
    assert not bot.player.is_unresponsive
    assert bot.player.event == ""


def test_J3_a_bot_that_answers_no_pings_is_not_waited_for_until_it_does(house: FakeArena) -> None:
    bot = house.bot()
    bot.wire.has_link = False  # its pipes
    frozen(house, bot, 1)
    house.passes(20)

    assert bot.player.event
    assert not bot.player.is_unresponsive


def test_J3_the_verdict_says_whether_it_is_forgiven(house: FakeArena) -> None:
    bot = house.bot()
    rules = GAMES["three_card_poker"]
    house.referee.open(
        rules,
        rules.vocabulary.read_settings({}),
        [bot.player],
        LIMITS,
        lambda *over: house.results.append(over),
        forgives=lambda name, kind, event: (name, kind) == ("ann", Ending.TIMEOUT),
    )
    house.sit(bot)
    house.passes(20)

    [over] = [message for message in bot.reads() if isinstance(message, Over)]
    assert over.verdict is not None
    assert over.verdict.forgiven


def test_J7_an_old_stall_is_no_credit_for_a_question_that_comes_while_a_bot_is_away(
    house: FakeArena,
) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    table = house.open(ann, ben, hands=3)
    house.sit(ann, ben)
    [first] = ann.asks()
    house.answer(ann, first, "check")
    [his] = ben.asks()
    ann.goes()
    house.held_up(3.0)
    house.passes(0.1)
    house.answer(ben, his, "bet")

    assert table.chairs[0].ask is not None
    assert table.chairs[0].lag_s == house.referee.lag.total_s(house.now) > 2.0
