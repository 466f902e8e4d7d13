from __future__ import annotations

import msgspec
import pytest

from arena.games.verdict import Finding
from arena.referee.bot_session import BotSession
from protocol.codec import Encoding
from protocol.messages import Answer, Ask, Ending, Goodbye, Hello, Limits, Match, Mechanism, Welcome
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


def test_the_session_has_a_new_secret_after_every_resume(house: FakeArena) -> None:
    ann = house.bot("ann")
    before = ann.player.secret
    ann.goes()
    ann.comes_back()

    assert len({before, ann.player.secret}) == 2
    assert len(ann.player.secret) == 32


def test_J7_an_answer_before_all_was_repeated_is_not_later_than_now(house: FakeArena) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    [ask] = playing(house, ann, ben)
    ann.goes()
    house.now += 20.0
    ann.comes_back()
    house.answer(ann, ask, "check")
    ann.reads()

    assert ann.player.last_answer == house.now


def test_an_answer_may_come_again_once_however_often_its_bot_comes_back(house: FakeArena) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    [ask] = playing(house, ann, ben)
    again = Answer(ask.match, ask.ask, house.answer(ann, ask))
    allowed = []
    for _ in range(2):
        ann.goes()
        ann.comes_back()
        allowed.append([ann.player.may_repeat(again) for _ in range(2)])

    assert allowed == [[True, False], [False, False]]


# --- the link ---


def pongs(house: FakeArena, bot: FakeBot, round_trip_s: float) -> None:
    """It is pinged, and answers."""
    assert bot.player.probe(house.now)
    payload = bot.wire.pings.pop()
    house.now += round_trip_s
    bot.player.ponged(payload, house.now)


def test_pings_cannot_be_foreseen(house: FakeArena) -> None:
    ann = house.bot("ann")
    seen = set()
    for _ in range(10):
        house.now += 20
        ann.player.probe(house.now)
        seen.add(ann.wire.pings[-1])
        ann.player.ponged(ann.wire.pings[-1], house.now)

    assert len(seen) == 10
    assert {len(payload) for payload in seen} == {16}


@pytest.mark.parametrize("payload", [b"", b"x" * 16])
def test_J7_a_pong_that_answers_no_ping_of_ours_is_nothing(
    house: FakeArena, payload: bytes
) -> None:
    ann = house.bot("ann")
    ann.player.ponged(payload, house.now)
    for _ in range(5):
        ann.player.probe(house.now)
        ann.player.ponged(payload, house.now)

    assert len(ann.wire.pings) == 1, "the first is still waited for"
    assert not ann.player.link.is_known


def test_a_link_that_dies_at_the_worst_moment_is_missed_within_a_minute(house: FakeArena) -> None:
    ann = house.bot("ann")
    for _ in range(6):
        house.now += 20
        pongs(house, ann, 0.01)
    died_at, at = house.now, ann.player.probe(house.now)
    while at is not None:
        house.now = at
        at = ann.player.probe(house.now)

    assert 50 < house.now - died_at < 60


def test_who_answers_a_ping_has_heard_the_welcome_before_it(house: FakeArena) -> None:
    ann = house.bot("ann")
    first = ann.player.secret
    ann.goes()
    again = Hello(1, "ann", ("ace_king_queen",), resume=first)
    ann.player.resumed(again, ann.wire)  # type: ignore[arg-type]
    ann.player.probe(house.now)

    assert ann.player.is_session(first)

    ann.player.ponged(ann.wire.pings[-1], house.now)

    assert not ann.player.is_session(first)
    assert ann.player.is_session(ann.player.secret)


def test_a_ping_of_the_former_connection_is_not_waited_for(house: FakeArena) -> None:
    ann = house.bot("ann")
    ann.player.probe(house.now)
    former = ann.wire.pings[0]
    ann.goes()
    house.now += 60
    ann.comes_back()

    assert ann.player.probe(house.now)
    assert len(ann.wire.pings) == 1
    for _ in range(3):
        ann.player.ponged(former, house.now)

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


def far_away(house: FakeArena) -> BotSession:
    """A bot whose link takes 40 ms."""
    ann = house.bot("ann", tables=64).player
    for _ in range(3):
        ann.link.measured(40.0)
    return ann


def test_only_the_first_answer_of_a_frame_tells_how_long_a_bot_takes(house: FakeArena) -> None:
    ann = far_away(house)
    for _ in range(16):
        ann.note_first_answer(house.now, house.now + 0.088)
        ann.answers += 2  # 24 ms each

    assert ann.free_tables(0, 0.0) == 4 + 7


def test_how_quick_a_bot_was_long_ago_counts_less_and_less(house: FakeArena) -> None:
    ann = far_away(house)
    for thinks_s, count in ((0.001, 1_000), (0.024, 5_000)):
        for _ in range(count):
            house.held_up(1.0)
            ann.note_first_answer(house.now - 0.04 - thinks_s, house.now)
            ann.answers += 1
            ann.last_answer = house.now

    assert ann.free_tables(0, 0.0) == 4 + 7
