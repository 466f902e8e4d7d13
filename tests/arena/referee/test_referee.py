from __future__ import annotations

import gc
import hashlib
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from arena.games.catalogue import GAMES
from arena.games.rules import Game
from arena.games.verdict import Finding
from arena.referee.referee import FAULT
from protocol.codec import Encoding, encode
from protocol.messages import Answer, Ending, Limits, Match, Mechanism, Over, Ready, Refused

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


@pytest.mark.parametrize("page", ["/arena/", None])
def test_an_invitation_says_where_the_page_shows_the_match(
    house: FakeArena, ann: FakeBot, ben: FakeBot, page: str | None
) -> None:
    house.referee.page = page
    table = house.open(ann, ben)
    invitations = [only(bot.reads()) for bot in (ann, ben)]

    assert {each.page for each in invitations} == {page and f"/arena/#/m/{table.id}"}
    assert (b"page" in encode(invitations[0], Encoding.JSON)) is (page is not None)


def test_a_second_ready_does_not_change_the_nonce(
    house: FakeArena, ann: FakeBot, ben: FakeBot
) -> None:
    table = house.open(ann, ben)
    invitation = only(ann.reads())
    for nonce in ("one", "other"):
        house.referee.ready(ann.player, Ready(invitation.match, nonce))

    assert table.chairs[0].nonce == "one"


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


# --- offences ---


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
    record = only(house.results)[1].record

    assert record.enforced == ("time, memory and processes (sampled)", "time")


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


# --- J7 ---


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


def test_J7_every_seat_is_held_to_its_own_limits(
    house: FakeArena, ann: FakeBot, ben: FakeBot
) -> None:
    """As a person may think for longer than a bot."""
    long = msgspec.structs.replace(LIMITS, decision_ms=10_000, hard_ms=60_000)
    table = begun(house, ann, ben, hands=2, referees={"by_seat": (long, LIMITS)})
    assert [chair.invitation.limits for chair in table.chairs] == [long, LIMITS]
    assert table.limits == LIMITS
    [ask] = ann.asks()
    assert ask.decision_ms == 10_000
    house.passes(9.9)
    house.answer(ann, ask, "bet")
    assert table.chairs[0].clock.bank_ms == LIMITS.bank_ms, "it cost nothing"

    [ask] = ben.asks()
    assert ask.decision_ms == LIMITS.decision_ms
    house.passes(4.1)
    _, result, verdict = only(house.results)
    assert result.termination.kind is Ending.TIMEOUT
    assert (verdict.seat, verdict.limits) == (1, LIMITS)


# --- events ---


def test_J3_the_verdict_says_whether_it_is_forgiven(house: FakeArena) -> None:
    bot = house.bot()
    options = {"forgives": lambda name, kind, event: (name, kind) == ("ann", Ending.TIMEOUT)}
    begun(house, bot, game="three_card_poker", referees=options)
    house.passes(20)
    *_, over = bot.reads()

    assert isinstance(over, Over)
    assert over.verdict is not None
    assert over.verdict.forgiven


def test_J7_an_old_stall_is_no_credit_for_a_question_that_comes_while_a_bot_is_away(
    house: FakeArena, ann: FakeBot, ben: FakeBot
) -> None:
    table = begun(house, ann, ben, hands=3)
    house.answer(ann, only(ann.asks()), "check")
    [his] = ben.asks()
    ann.goes()
    house.held_up(3.0)
    house.passes(0.1)
    house.answer(ben, his, "bet")

    assert table.chairs[0].ask is not None
    assert table.chairs[0].lag_s == house.referee.lag.total_s(house.now) > 2.0
