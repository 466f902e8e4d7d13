from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from arena.engine.verdict import Finding
from arena.games import GAMES
from arena.referee.bot_session import BotSession
from bots.strategy import choose
from protocol.codec import Encoding, decode_from_arena, encode
from protocol.messages import (
    Answer,
    ArenaMessage,
    Ask,
    Ending,
    Goodbye,
    Hello,
    Limits,
    Match,
    Mechanism,
    Over,
    Past,
    Ready,
    Refused,
    Welcome,
)
from protocol.session import Session
from protocol.vocabulary import Legal, Range

if TYPE_CHECKING:
    from tests.support.fake_bots import FakeArena, FakeBot


def found(kind: Ending, text: str) -> Finding:
    """An offence as it may be noticed."""
    return Finding(kind=kind, text=text, mechanism=Mechanism.WIRE)


def playing(house: FakeArena, *bots: FakeBot) -> list[Ask]:
    """A match in which the first bot has read its question."""
    house.open(*bots)
    house.sit(*bots)
    return bots[0].asks()


# --- frames ---


@pytest.mark.parametrize(
    ("tables", "batch", "most", "frames"),
    [
        pytest.param(3, True, 10_000, [3], id="all in one"),
        pytest.param(1, True, 10_000, [0], id="one without an array"),
        pytest.param(3, False, 10_000, [0] * 3, id="a bot that wants none"),
        pytest.param(3, True, 100, [0] * 3, id="longer than a batch"),
    ],
)
def test_what_waits_travels_in_as_few_frames_as_it_may(
    house: FakeArena,
    monkeypatch: pytest.MonkeyPatch,
    tables: int,
    batch: bool,
    most: int,
    frames: list[int],
) -> None:
    """By frame, how many messages are in its array, or 0 if it is a message itself."""
    monkeypatch.setattr("arena.referee.bot_session._FRAME_BYTES", most)
    ann = house.bot("ann", tables=tables, batch=batch)
    for number in range(tables):
        house.open(ann, house.bot(f"ben {number}"))
    ann.player.flush(house.now)

    sent = [msgspec.json.decode(frame) for frame in ann.wire.frames]
    assert [len(one) if isinstance(one, list) else 0 for one in sent] == frames
    assert [type(message) for message in ann.wire.read()] == [Match] * tables


@pytest.mark.parametrize("encoding", Encoding)
@pytest.mark.parametrize("most", [700, 1500, 1511, 2000, 2999])
def test_no_batch_is_longer_than_it_may_be(
    house: FakeArena, monkeypatch: pytest.MonkeyPatch, encoding: Encoding, most: int
) -> None:
    monkeypatch.setattr("arena.referee.bot_session._FRAME_BYTES", most)
    ann = house.bot("ann", tables=20, encoding=encoding)
    for number in range(20):
        house.open(ann, house.bot(f"ben {number}"))
    ann.player.flush(house.now)

    frames = ann.wire.frames
    assert max(map(len, frames)) <= most
    assert 20 / len(frames) > most // 1000  # and not cut finer than in halves
    assert len(ann.wire.read()) == 20


def test_more_asks_than_a_frame_takes_travel_in_order(house: FakeArena) -> None:
    ann = house.bot("ann", tables=300)
    ben = house.bot("ben", tables=300)
    for _ in range(300):
        house.open(ann, ben)
    house.sit(ann, ben)
    ann.player.flush(house.now)

    assert len(ann.wire.frames) == 2
    numbers = [ask.match.rpartition("-")[2] for ask in ann.asks()]
    assert numbers == [f"{number}.0" for number in range(1, 301)]


def test_a_question_out_of_turn_is_the_arenas_own_mistake(house: FakeArena) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    [ask] = playing(house, ann, ben)
    chair = ann.player.chairs[ask.match]

    with pytest.raises(AssertionError, match="the arena may not ask"):
        ann.player.ask(chair)


def test_after_goodbye_nothing_is_answered(house: FakeArena) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    [ask] = playing(house, ann, ben)
    ann.player.session.note(Goodbye())

    assert ann.player.answering(Answer(ask.match, ask.ask, "bet")) is None


def test_it_asks_to_be_written_once_until_it_is(house: FakeArena) -> None:
    dirty: list[BotSession] = []
    ann = house.bot("ann", tables=3, on_dirty=dirty.append)
    dirty.clear()
    house.open(ann, house.bot("ben"))
    house.open(ann, house.bot("cem"))

    assert dirty == [ann.player]

    ann.reads()
    house.open(ann, house.bot("dora"))

    assert dirty == [ann.player] * 2


# --- chairs ---


def test_it_is_free_as_long_as_it_has_chairs_and_a_connection(house: FakeArena) -> None:
    ann = house.bot("ann", tables=2)
    house.open(ann, house.bot("ben"))

    assert ann.player.is_free

    house.open(ann, house.bot("cem"))

    assert not ann.player.is_free

    ann.player.chairs.clear()
    ann.goes()

    assert not ann.player.is_free


def test_the_arena_caps_the_tables(house: FakeArena) -> None:
    assert house.bot("ann", tables=1 << 40).player.tables == 512


# --- a lost connection ---


def test_who_comes_back_gets_its_chair_and_its_question_again(house: FakeArena) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    [ask] = playing(house, ann, ben)
    ann.goes()
    ann.comes_back()
    welcome, invitation, again = ann.reads()

    assert isinstance(welcome, Welcome)
    assert isinstance(invitation, Match)
    assert again == ask


def test_the_session_has_a_new_secret_after_every_resume(house: FakeArena) -> None:
    ann = house.bot("ann")
    before = ann.player.secret
    ann.goes()
    ann.comes_back()

    assert len({before, ann.player.secret}) == 2
    assert len(ann.player.secret) == 32


def test_J7_every_loss_uses_the_grace_of_its_matches(house: FakeArena) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    playing(house, ann, ben)
    [chair] = ann.player.chairs.values()
    for _ in range(2):
        ann.goes()
        house.now += 0.25
        ann.comes_back()
        ann.reads()

    assert chair.grace_s == pytest.approx(0.5)

    ann.goes()
    assert ann.player.loss is not None
    house.now += 0.75

    assert chair.grace_left_s(ann.player.loss, house.now, 0.0) == pytest.approx(-0.25)


def test_J7_a_loss_by_a_stall_of_the_arena_has_a_grace_of_its_own(house: FakeArena) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    playing(house, ann, ben)
    [chair] = ann.player.chairs.values()
    chair.grace_s = 0.25
    ann.player.disconnected()
    loss = ann.player.connection_lost(house.now, 0.0, by_arena=True)
    house.now += 0.75

    assert chair.grace_left_s(loss, house.now, 0.0) == pytest.approx(0.25)

    ann.comes_back()
    ann.reads()

    assert chair.grace_s == 0.25


def test_J7_the_grace_is_not_used_while_the_arena_stands_still(house: FakeArena) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    playing(house, ann, ben)
    [chair] = ann.player.chairs.values()
    ann.goes()
    assert ann.player.loss is not None
    house.now += 0.25

    assert chair.grace_left_s(ann.player.loss, house.now + 9, 9.0) == pytest.approx(0.75)


def silent(ann: FakeBot, house: FakeArena) -> None:
    """As the gateway has it."""

    def lost(player: BotSession, since: float) -> None:
        player.connection_lost(since, 0.0)

    def heard(player: BotSession, now: float) -> None:
        if player.loss is not None and player.loss.is_silent:
            player.connection_regained(now, 0.0)

    house.referee.on_lost = lost
    house.referee.on_heard = heard
    ann.wire.silent = house.now


def test_J7_a_machine_that_acknowledges_nothing_is_away_while_its_bot_is_waited_for(
    house: FakeArena,
) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    [ask] = playing(house, ann, ben)
    silent(ann, house)
    for _ in range(40):
        house.now += 0.5
        house.referee.tick()

    assert not house.results

    ann.player.connection_regained(house.now, 0.0)  # its answer has come through
    house.answer(ann, ask, "check")
    [chair] = ann.player.chairs.values()

    assert not house.results
    assert chair.clock.bank_ms == 3000
    assert chair.grace_s == pytest.approx(1.0 - 20.0)


def test_J7_who_always_has_something_on_its_way_is_out_of_time_all_the_same(
    house: FakeArena,
) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    playing(house, ann, ben)
    silent(ann, house)
    for _ in range(60):
        house.now += 0.1
        ann.wire.silent = house.now - 0.05
        house.referee.tick()
    [(_, result, _)] = house.results

    assert result.termination.kind is Ending.TIMEOUT


def test_J7_an_answer_before_all_was_repeated_is_not_later_than_now(house: FakeArena) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    [ask] = playing(house, ann, ben)
    ann.goes()
    house.now += 20.0
    ann.comes_back()
    house.answer(ann, ask, "check")
    ann.reads()

    assert ann.player.last_answer == house.now


def test_J3_a_table_that_was_opened_before_a_loss_was_noticed_is_of_its_event(
    house: FakeArena,
) -> None:
    ann, ben, cem = house.bot("ann", tables=2), house.bot("ben"), house.bot("cem")
    playing(house, ann, ben)
    silent(ann, house)
    house.now += 0.5
    house.open(ann, cem)
    house.now += 1.0
    house.referee.tick()
    assert ann.player.loss is not None
    house.referee.offence(ann.player, found(Ending.DISCONNECT, "stayed away"))
    events = {verdict.event for _, _, verdict in house.results if verdict is not None}

    assert len(house.results) == 2
    assert len(events) == 1


def test_J7_pongs_of_a_bot_that_thinks_long_mean_something(house: FakeArena) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    playing(house, ann, ben)
    for _ in range(4):
        house.now += 1.0
        house.referee.tick()
    assert ann.wire.pings

    for ping in ann.wire.pings:
        assert ann.player.link_probe.ponged(ping, house.now)
        assert not ann.player.link_probe.ponged(ping, house.now)


def test_a_question_that_was_not_written_yet_is_asked_once(house: FakeArena) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    house.open(ann, ben)
    house.sit(ann, ben)
    ann.goes()
    ann.comes_back()

    assert len(ann.asks()) == 1


def test_an_answer_that_the_arena_has_is_not_asked_for_again(house: FakeArena) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    [ask] = playing(house, ann, ben)
    house.answer(ann, ask, "bet")
    ann.goes()
    ann.comes_back()

    assert ann.asks() == []

    house.answer(ann, ask, "check")  # a copy that was still on its way

    assert house.results == []


def test_an_over_that_came_while_it_was_away_is_there_when_it_is_back(house: FakeArena) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    playing(house, ann, ben)
    ann.goes()
    house.referee.offence(ben.player, found(Ending.CRASH, "crashed"))
    ann.comes_back()

    assert [type(message) for message in ann.reads()] == [Welcome, Over]


def test_an_over_that_was_written_to_a_dying_connection_comes_again(house: FakeArena) -> None:
    ann, ben = house.bot("ann", tables=3), house.bot("ben")
    playing(house, ann, ben)
    house.referee.offence(ben.player, found(Ending.CRASH, "crashed"))
    [written] = ann.reads()
    for _ in range(3):
        ann.goes()
        ann.comes_back()

        assert ann.reads()[1:] == [written]


def test_no_more_overs_are_kept_than_it_can_have_missed(house: FakeArena) -> None:
    ann = house.bot("ann", tables=2)
    for number in range(5):
        table = house.open(ann, house.bot(f"ben {number}"))
        house.referee.void(table, "not needed")
    ann.reads()
    ann.goes()
    ann.comes_back()

    assert [type(message) for message in ann.reads()] == [Welcome, Over, Over]


# --- a lost memory ---


class Diary:
    """Bots that play at random, with small stakes; notes what they are asked and answer."""

    def __init__(self, house: FakeArena, *bots: FakeBot, cautious: bool = False) -> None:
        self.house = house
        self.bots = bots
        self.cautious = cautious
        self.asked: dict[str, list[tuple[Ask, Any]]] = {}
        self._random = random.Random(1)

    def plays(self, answers: int) -> None:
        """So many answers, of whoever is asked; then all that is asked has been read."""
        while answers > 0:
            asks = [(bot, ask) for bot in self.bots for ask in bot.asks()]
            for bot, ask in asks:
                value = self._choose(ask.question.choices)
                self.house.answer(bot, ask, value)
                self.asked.setdefault(ask.match, []).append((ask, value))
                answers -= 1
            if not asks:
                break

    def _choose(self, legal: Legal) -> Any:
        if self.cautious and isinstance(legal, Range):
            return legal.min
        if self.cautious and isinstance(legal, tuple):  # a knock may end a match
            legal = tuple(answer for answer in legal if not getattr(answer, "knock", False))
        return choose(legal, self._random)

    def past(self, match: str, first: int = 0) -> list[Past]:
        """What there is to be told of a chair."""
        return [
            Past(ask.match, ask.ask, ask.question, ask.news, value)
            for ask, value in self.asked.get(match, [])[first:]
        ]


def as_told(bot: FakeBot, messages: list[Past]) -> list[ArenaMessage]:
    """How messages arrive on the other side of the wire."""
    told: list[ArenaMessage] = []
    for message in messages:
        frame = encode(message, bot.wire.encoding)
        told += decode_from_arena(frame, bot.wire.encoding, bot.wire.games.__getitem__)
    return told


def fits_the_sessions_tables(bot: FakeBot, messages: list[ArenaMessage], chairs: int) -> None:
    """A program that has just started takes all of it, and answers its invitations."""
    session = Session()
    session.note(bot.hello)
    invited = set()
    for message in messages:
        session.note(message)
        if isinstance(message, Match) and message.match not in invited:
            invited.add(message.match)
            session.note(Ready(message.match, "nonce"))

    assert len(invited) == chairs


@pytest.mark.parametrize("encoding", Encoding)
@pytest.mark.parametrize("game", GAMES)
def test_who_has_forgotten_all_is_told_all_of_its_match(
    house: FakeArena, game: str, encoding: Encoding
) -> None:
    seats = GAMES[game].seats
    bots = [house.bot(f"bot {seat}", encoding=encoding) for seat in range(seats)]
    house.open(*bots, game=game)
    house.sit(*bots)
    diary = Diary(house, *bots, cautious=True)
    diary.plays(25)
    for bot in bots:
        bot.reads_on()
        [chair] = bot.player.chairs.values()
        bot.goes()
        bot.comes_back(0)
        welcome, invitation, *past = bot.reads_on()
        repeated = 1 if chair.ask is None else 2  # the invitation, and the question
        told, now = past[:-repeated], past[-repeated:]

        assert isinstance(welcome, Welcome)
        assert isinstance(invitation, Match)
        assert invitation.match == chair.id
        assert told == as_told(bot, diary.past(chair.id))
        assert now[0] == invitation
        assert [type(message) for message in now[1:]] == [Ask] * (repeated - 1)
        fits_the_sessions_tables(bot, [welcome, invitation, *past], 1)


@pytest.mark.parametrize("first", [1, 4, 5, 6, 1000])
def test_who_remembers_the_first_questions_is_told_the_others(house: FakeArena, first: int) -> None:
    ann = house.bot("ann")
    house.open(ann, game="three_card_poker")
    house.sit(ann)
    diary = Diary(house, ann)
    diary.plays(6)
    ann.goes()
    ann.comes_back(first)
    told = [message for message in ann.reads_on() if isinstance(message, Past)]

    [match] = ann.player.chairs
    assert told == diary.past(match, first)
    assert len(told) == max(0, 6 - first)


def test_the_numbers_of_what_is_told_go_on_with_the_question_that_waits(house: FakeArena) -> None:
    ann = house.bot("ann")
    house.open(ann, game="three_card_poker")
    house.sit(ann)
    Diary(house, ann).plays(3)
    ann.goes()
    ann.comes_back(1)
    asks = [m.ask for m in ann.reads_on() if isinstance(m, Past | Ask)]

    [match] = ann.player.chairs
    assert asks == [f"{match}:2", f"{match}:3", f"{match}:4"]


def test_J7_being_told_the_past_does_not_stop_the_clock(house: FakeArena) -> None:
    ann = house.bot("ann")
    house.open(ann, game="three_card_poker")
    house.sit(ann)
    Diary(house, ann).plays(3)
    [chair] = ann.player.chairs.values()
    asked_at = chair.asked_at
    house.now += 0.5
    ann.goes()
    ann.comes_back(0)
    ann.reads_on()

    assert chair.asked_at == asked_at

    house.passes(3.6)

    [(_, result, _)] = house.results
    assert result.termination.kind is Ending.TIMEOUT


def test_matches_that_have_not_begun_are_told_as_invitations(house: FakeArena) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    house.open(ann, ben)
    ann.goes()
    ann.comes_back(0)
    messages = ann.reads_on()

    assert [type(message) for message in messages] == [Welcome, Match, Match]
    house.sit(ben)
    [match] = ann.player.chairs
    house.say(ann, Ready(match, "nonce"))

    assert len(ann.asks()) == 1


def long_past(house: FakeArena, tables: int = 1) -> tuple[FakeBot, Diary]:
    """A bot with a past of more than one piece."""
    ann = house.bot("ann", tables=tables + 1)
    for _ in range(tables):
        house.open(ann, game="three_card_poker")
    house.sit(ann)
    diary = Diary(house, ann, cautious=True)
    diary.plays(1200)
    return ann, diary


def test_a_long_past_is_told_in_pieces(house: FakeArena) -> None:
    ann, diary = long_past(house)
    ann.goes()
    ann.comes_back(0)
    ann.player.flush(house.now)
    [frame] = ann.wire.frames

    assert 32 * 1024 <= len(frame) < 40 * 1024

    told = [message for message in ann.reads_on() if isinstance(message, Past)]

    [match] = ann.player.chairs
    assert told == diary.past(match)


def test_after_every_piece_others_have_their_turn(house: FakeArena) -> None:
    ann, _ = long_past(house)
    dirty: list[BotSession] = []
    ann.player.mark_dirty = dirty.append
    ann.goes()
    ann.comes_back(0)
    pieces = 0
    while dirty:
        dirty.clear()
        pieces += bool(ann.reads())

    assert pieces > 3, "each in a turn of the loop of its own"


def test_a_past_that_is_remembered_takes_turns_too(house: FakeArena) -> None:
    ann, _ = long_past(house)
    ann.goes()
    ann.comes_back(10**9)
    turns = 0
    while not ann.player.is_caught_up:
        ann.player.flush(house.now)
        turns += 1

    assert turns > 3, "stepping through it takes as long as telling it"
    assert not any(isinstance(message, Past) for message in ann.wire.read())


def test_who_is_behind_with_reading_is_told_no_more_until_it_has_read(house: FakeArena) -> None:
    ann, diary = long_past(house)
    dirty: list[BotSession] = []
    ann.player.mark_dirty = dirty.append
    ann.goes()
    ann.comes_back(0, room=10_000)
    ann.player.flush(house.now)
    written = sum(map(len, ann.wire.frames))
    dirty.clear()
    for _ in range(10):
        ann.player.flush(house.now)

    assert sum(map(len, ann.wire.frames)) == written < 40 * 1024
    assert dirty == [], "it waits for `drained`, not in a loop"

    told = [message for message in ann.reads_on() if isinstance(message, Past)]

    [match] = ann.player.chairs
    assert told == diary.past(match)


def test_what_happens_while_the_past_is_told_comes_once_and_at_the_end(house: FakeArena) -> None:
    """Meanwhile one match ends, one begins, and one asks."""
    ann, diary = long_past(house, tables=2)
    ben = house.bot("ben", tables=2)
    house.open(ann, ben)
    house.sit(ann, ben)
    [ask] = ann.asks()
    house.answer(ann, ask, "check")
    [theirs] = ben.asks()
    playing_on, ending, asking = tuple(ann.player.chairs.values())
    ann.goes()
    ann.comes_back(0, room=10_000)
    begun = ann.reads()

    house.referee.void(ending.table, "not needed")
    house.answer(ben, theirs, "bet")
    opened = house.open(ann, game="blackjack")
    rest = ann.reads_on()

    [over] = [message for message in rest if isinstance(message, Over)]
    asks = [message for message in rest if isinstance(message, Ask)]
    at_end = rest[rest.index(over) :]
    assert over.match == ending.id
    assert not any(isinstance(message, Past) for message in at_end)
    assert [type(message) for message in at_end] == [Over, Match, Ask, Match, Ask, Match]
    assert [ask.match for ask in asks] == [playing_on.id, asking.id]
    assert at_end[-1] == opened.chairs[0].invitation
    invited = [m.match for m in begun + rest if isinstance(m, Match)]
    assert invited.count(opened.chairs[0].id) == 1
    told = [message for message in begun + rest if isinstance(message, Past)]
    assert [m for m in told if m.match == playing_on.id] == diary.past(playing_on.id)
    fits_the_sessions_tables(ann, begun + rest, 3)  # it never heard of what ended


def test_a_match_that_ends_while_its_past_is_told_is_over_after_that(house: FakeArena) -> None:
    ann, _ = long_past(house)
    [chair] = ann.player.chairs.values()
    ann.goes()
    ann.comes_back(0, room=10_000)
    messages = ann.reads()
    house.referee.void(chair.table, "not needed")
    messages += ann.reads_on()

    assert isinstance(messages[-1], Over)
    assert sum(isinstance(message, Over) for message in messages) == 1
    fits_the_sessions_tables(ann, messages, 1)


def test_J7_the_clock_of_a_question_begins_when_the_past_has_been_told(house: FakeArena) -> None:
    ann, _ = long_past(house)
    ben = house.bot("ben")
    house.open(ann, ben)
    house.sit(ann, ben)
    house.answer(ann, ann.asks()[0], "check")
    [theirs] = ben.asks()
    ann.goes()
    ann.comes_back(0, room=10_000)
    ann.reads()
    house.now += 1
    house.answer(ben, theirs, "bet")
    house.now += 1
    ann.reads_on()
    *_, chair = ann.player.chairs.values()

    assert chair.ask is not None
    assert chair.asked_at == house.now


def test_a_connection_that_is_lost_while_the_past_is_told_can_ask_for_it_again(
    house: FakeArena,
) -> None:
    ann, diary = long_past(house)
    for room in (10_000, 20_000, 1_000_000):
        ann.goes()
        ann.comes_back(0, room=room)
        messages = ann.reads()

        assert isinstance(messages[0], Welcome)
        assert isinstance(messages[1], Match)
    messages += ann.reads_on()

    [match] = ann.player.chairs
    assert [m for m in messages if isinstance(m, Past)] == diary.past(match)
    fits_the_sessions_tables(ann, messages, 1)


def test_J4_who_is_out_for_good_while_the_past_is_told_gets_its_verdict(house: FakeArena) -> None:
    ann, _ = long_past(house)
    ann.goes()
    ann.comes_back(0, room=10_000)
    messages = ann.reads()
    ann.player.leaving = True  # as the gateway does it
    house.referee.offence(ann.player, found(Ending.MALFORMED, "sent nonsense"))
    messages += ann.reads()  # then its connection is closed

    last = messages[-1]
    assert isinstance(last, Over)
    assert last.verdict is not None
    assert last.verdict.text == "sent nonsense"
    fits_the_sessions_tables(ann, messages, 1)


def test_an_answer_that_comes_while_the_past_is_told_counts(house: FakeArena) -> None:
    """A deterministic bot can know what it is asked before it is asked again."""
    ann, _ = long_past(house)
    [chair] = ann.player.chairs.values()
    assert chair.ask is not None
    pending = chair.ask
    ann.goes()
    ann.comes_back(0, room=10_000)
    ann.reads()
    house.answer(ann, pending)
    told = ann.reads_on()

    asks = [message for message in told if isinstance(message, Ask)]
    assert [ask.ask for ask in asks] == [f"{chair.id}:{chair.asked}"]
    assert house.results == []


def test_in_practice_a_refusal_while_the_past_is_told_is_the_question_again(
    house: FakeArena,
) -> None:
    house.referee.practice = True
    ann, _ = long_past(house)
    [chair] = ann.player.chairs.values()
    assert chair.ask is not None
    pending = chair.ask
    ann.goes()
    ann.comes_back(0, room=10_000)
    ann.reads()
    house.answer(ann, pending, "nonsense")
    told = ann.reads_on()

    assert not any(isinstance(message, Refused) for message in told)
    assert told[-1] == pending

    house.answer(ann, pending, "nonsense")

    assert [type(message) for message in ann.reads()] == [Refused]


# --- the link ---


def pongs(house: FakeArena, bot: FakeBot, round_trip_s: float) -> None:
    """It is pinged, and answers."""
    assert bot.player.link_probe.probe(house.now)
    payload = bot.wire.pings.pop()
    house.now += round_trip_s
    bot.player.link_probe.ponged(payload, house.now)


def test_pings_cannot_be_foreseen(house: FakeArena) -> None:
    ann = house.bot("ann")
    seen = set()
    for _ in range(10):
        house.now += 20
        ann.player.link_probe.probe(house.now)
        seen.add(ann.wire.pings[-1])
        ann.player.link_probe.ponged(ann.wire.pings[-1], house.now)

    assert len(seen) == 10
    assert {len(payload) for payload in seen} == {16}


@pytest.mark.parametrize("payload", [b"", b"x" * 16])
def test_J7_a_pong_that_answers_no_ping_of_ours_is_nothing(
    house: FakeArena, payload: bytes
) -> None:
    ann = house.bot("ann")
    ann.player.link_probe.ponged(payload, house.now)
    for _ in range(5):
        ann.player.link_probe.probe(house.now)
        ann.player.link_probe.ponged(payload, house.now)

    assert len(ann.wire.pings) == 1, "the first is still waited for"
    assert not ann.player.link.is_known


def test_J7_a_pong_counts_once(house: FakeArena) -> None:
    ann = house.bot("ann")
    ann.player.link_probe.probe(house.now)
    for _ in range(5):
        ann.player.link_probe.ponged(ann.wire.pings[0], house.now)

    assert not ann.player.link.is_known


def test_a_link_that_dies_at_the_worst_moment_is_missed_within_a_minute(house: FakeArena) -> None:
    ann = house.bot("ann")
    for _ in range(6):
        house.now += 20
        pongs(house, ann, 0.01)
    died_at, at = house.now, ann.player.link_probe.probe(house.now)
    while at is not None:
        house.now = at
        at = ann.player.link_probe.probe(house.now)

    assert 50 < house.now - died_at < 60


def test_who_has_no_link_or_no_connection_is_not_pinged(house: FakeArena) -> None:
    piped, away = house.bot("piped"), house.bot("away")
    piped.wire.has_link = False
    away.goes()
    for bot in (piped, away):
        house.now += 60

        assert bot.player.link_probe.probe(house.now)
        assert bot.wire.pings == []


def test_who_answers_a_ping_has_heard_the_welcome_before_it(house: FakeArena) -> None:
    ann = house.bot("ann")
    first = ann.player.secret
    ann.goes()
    again = Hello(1, "ann", ("ace_king_queen",), resume=first)
    ann.player.resumed(again, ann.wire)  # type: ignore[arg-type]
    ann.player.link_probe.probe(house.now)

    assert ann.player.is_session(first)

    ann.player.link_probe.ponged(ann.wire.pings[-1], house.now)

    assert not ann.player.is_session(first)
    assert ann.player.is_session(ann.player.secret)


def test_a_ping_of_the_former_connection_is_not_waited_for(house: FakeArena) -> None:
    ann = house.bot("ann")
    ann.player.link_probe.probe(house.now)
    former = ann.wire.pings[0]
    ann.goes()
    house.now += 60
    ann.comes_back()

    assert ann.player.link_probe.probe(house.now)
    assert len(ann.wire.pings) == 1
    for _ in range(3):
        ann.player.link_probe.ponged(former, house.now)

    assert not ann.player.link.is_known


# --- the arena's own mistakes ---


def test_what_the_arena_may_not_say_is_never_the_bots_offence(house: FakeArena) -> None:
    ann = house.bot("ann")
    ann.player.session.note(Goodbye())

    with pytest.raises(AssertionError, match="welcome may not be sent"):
        ann.player.send(Welcome(1, "ann", "secret", Limits()))


# --- how many matches at once ---


def test_few_matches_of_a_competition_are_opened_until_the_first_have_come_far(
    house: FakeArena,
) -> None:
    ann = house.bot("ann", tables=64).player

    assert ann.free_tables(0, 0.0) == 4
    assert ann.free_tables(3, 0.0) == 1
    assert ann.free_tables(3, 0.25) == 4 + 30 - 3
    assert house.bot("ben", tables=3).player.free_tables(0, 0.0) == 3


def test_what_a_bot_plays_in_another_competition_takes_a_table_and_does_not_count_here(
    house: FakeArena,
) -> None:
    ann, ben = house.bot("ann", tables=64), house.bot("ben", tables=5)
    for _ in range(4):
        house.open(ann, ben)

    assert ann.player.free_tables(0, 0.0) == 4
    assert ben.player.free_tables(0, 0.0) == 1
    assert ann.player.free_tables(0, 1.0) == 64 - 4


@pytest.mark.parametrize(("thinks_s", "more"), [(0.0, 32), (0.024, 7), (2.0, 1)])
def test_a_quick_bot_far_away_has_enough_questions_on_their_way(
    house: FakeArena, thinks_s: float, more: int
) -> None:
    ann, ben = house.bot("ann", tables=64), house.bot("ben", tables=64)
    for _ in range(3):
        ann.player.link.measured(40.0)
    house.open(ann, ben, hands=1000)
    house.sit(ann, ben)
    for _ in range(100):
        for ask in ann.asks():
            house.held_up(0.04 + thinks_s)
            house.answer(ann, ask)
        for ask in ben.asks():
            house.answer(ben, ask)

    assert ann.player.answers >= 16
    assert ann.player.free_tables(0, 0.0) == 4 + more


def test_only_the_first_answer_of_a_frame_tells_how_long_a_bot_takes(house: FakeArena) -> None:
    ann = house.bot("ann", tables=64).player
    for _ in range(3):
        ann.link.measured(40.0)
    for _ in range(16):
        ann.note_first_answer(house.now, house.now + 0.088)
        ann.answers += 2  # 24 ms each

    assert ann.free_tables(0, 0.0) == 4 + 7


def test_how_quick_a_bot_was_long_ago_counts_less_and_less(house: FakeArena) -> None:
    ann = house.bot("ann", tables=64).player
    for _ in range(3):
        ann.link.measured(40.0)
    for thinks_s, count in ((0.001, 1_000), (0.024, 5_000)):
        for _ in range(count):
            house.held_up(1.0)
            ann.note_first_answer(house.now - 0.04 - thinks_s, house.now)
            ann.answers += 1
            ann.last_answer = house.now

    assert ann.free_tables(0, 0.0) == 4 + 7
