from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from arena.player import Player
from arena.verdict import Finding
from protocol.codec import Encoding
from protocol.messages import Ask, Ending, Goodbye, Limits, Match, Over, Welcome

if TYPE_CHECKING:
    from tests.arena.conftest import Bot, House


def found(kind: Ending, text: str) -> Finding:
    """An offence as it may be noticed."""
    return Finding(kind=kind, text=text, mechanism="wire")


def playing(house: House, *bots: Bot) -> list[Ask]:
    """A match in which the first bot has read its question."""
    house.open(*bots)
    house.sit(*bots)
    return bots[0].asks()


# --- frames ---


def test_all_that_waits_travels_in_one_frame(house: House) -> None:
    ann = house.bot("ann", tables=3)
    for number in range(3):
        house.open(ann, house.bot(f"ben {number}"))
    ann.player.flush(house.now)

    [frame] = ann.wire.frames
    assert [message["type"] for message in msgspec.json.decode(frame)] == ["match"] * 3


def test_one_message_travels_without_an_array(house: House) -> None:
    ann = house.bot("ann")
    house.open(ann, house.bot("ben"))
    ann.player.flush(house.now)

    [frame] = ann.wire.frames
    assert msgspec.json.decode(frame)["type"] == "match"


def test_a_bot_that_wants_no_arrays_gets_a_frame_per_message(house: House) -> None:
    ann = house.bot("ann", tables=3, batch=False)
    for number in range(3):
        house.open(ann, house.bot(f"ben {number}"))
    ann.player.flush(house.now)

    assert len(ann.wire.frames) == 3


def test_large_batches_are_cut(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.player._FRAME_BYTES", 1000)
    ann = house.bot("ann", tables=9)
    for number in range(9):
        house.open(ann, house.bot(f"ben {number}"))
    ann.player.flush(house.now)

    assert len(ann.wire.frames) > 1
    assert len(ann.wire.read()) == 9


def test_the_bot_is_answered_in_its_encoding(house: House) -> None:
    ann = house.bot("ann", encoding=Encoding.MSGPACK)
    house.open(ann, house.bot("ben"))
    ann.player.flush(house.now)

    [frame] = ann.wire.frames
    assert msgspec.msgpack.decode(frame)["type"] == "match"


def test_it_asks_to_be_written_once_until_it_is(house: House) -> None:
    dirty: list[Player] = []
    ann = house.bot("ann", tables=3, on_dirty=dirty.append)
    dirty.clear()
    house.open(ann, house.bot("ben"))
    house.open(ann, house.bot("cem"))

    assert dirty == [ann.player]

    ann.reads()
    house.open(ann, house.bot("dora"))

    assert dirty == [ann.player] * 2


# --- chairs ---


def test_it_is_free_as_long_as_it_has_chairs_and_a_connection(house: House) -> None:
    ann = house.bot("ann", tables=2)
    house.open(ann, house.bot("ben"))

    assert ann.player.is_free

    house.open(ann, house.bot("cem"))

    assert not ann.player.is_free

    ann.player.chairs.clear()
    ann.goes()

    assert not ann.player.is_free


def test_the_arena_caps_the_tables(house: House) -> None:
    assert house.bot("ann", tables=1 << 40).player.tables == 512


# --- a lost connection ---


def test_who_comes_back_gets_its_chair_and_its_question_again(house: House) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    [ask] = playing(house, ann, ben)
    ann.goes()
    ann.comes_back()
    welcome, invitation, again = ann.reads()

    assert isinstance(welcome, Welcome)
    assert isinstance(invitation, Match)
    assert again == ask


def test_the_session_has_a_new_secret_after_every_resume(house: House) -> None:
    ann = house.bot("ann")
    before = ann.player.secret
    ann.goes()
    ann.comes_back()

    assert len({before, ann.player.secret}) == 2
    assert len(ann.player.secret) == 32


def test_J7_the_clock_runs_on_while_a_bot_is_away(house: House) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    playing(house, ann, ben)
    ann.goes()
    house.now += 3.0
    ann.comes_back()
    ann.reads()
    house.now += 1.5
    house.conduct.tick()

    [(_, result, _)] = house.results
    assert result.termination.kind is Ending.TIMEOUT


def test_J7_the_clock_of_a_question_asked_while_away_runs_from_then(
    house: House,
) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    [ask] = playing(house, ann, ben)
    ben.goes()
    house.answer(ann, ask, "bet")
    house.now += 3.0
    ben.comes_back()
    [asked] = ben.asks()
    house.now += 1.5
    house.conduct.tick()

    [(_, result, verdict)] = house.results
    assert asked.question.kind == "respond"
    assert result.termination.kind is Ending.TIMEOUT
    assert verdict is not None
    assert verdict.bot == "ben"


def test_a_question_that_was_not_written_yet_is_asked_once(house: House) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    house.open(ann, ben)
    house.sit(ann, ben)
    ann.goes()
    ann.comes_back()

    assert len(ann.asks()) == 1


def test_an_answer_that_the_arena_has_is_not_asked_for_again(house: House) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    [ask] = playing(house, ann, ben)
    house.answer(ann, ask, "bet")
    ann.goes()
    ann.comes_back()

    assert ann.asks() == []

    house.answer(ann, ask, "check")  # a copy that was still on its way

    assert house.results == []


def test_an_over_that_came_while_it_was_away_is_there_when_it_is_back(
    house: House,
) -> None:
    ann, ben = house.bot("ann"), house.bot("ben")
    playing(house, ann, ben)
    ann.goes()
    house.conduct.offence(ben.player, found(Ending.CRASH, "crashed"))
    ann.comes_back()

    assert [type(message) for message in ann.reads()] == [Welcome, Over]


def test_an_over_that_was_written_to_a_dying_connection_comes_again(
    house: House,
) -> None:
    ann, ben = house.bot("ann", tables=3), house.bot("ben")
    playing(house, ann, ben)
    house.conduct.offence(ben.player, found(Ending.CRASH, "crashed"))
    [written] = ann.reads()
    for _ in range(3):
        ann.goes()
        ann.comes_back()

        assert ann.reads()[1:] == [written]


def test_no_more_overs_are_kept_than_it_can_have_missed(house: House) -> None:
    ann = house.bot("ann", tables=2)
    for number in range(5):
        table = house.open(ann, house.bot(f"ben {number}"))
        house.conduct.void(table, "not needed")
    ann.reads()
    ann.goes()
    ann.comes_back()

    assert [type(message) for message in ann.reads()] == [Welcome, Over, Over]


# --- the arena's own mistakes ---


def test_what_the_arena_may_not_say_is_never_the_bots_offence(house: House) -> None:
    ann = house.bot("ann")
    ann.player.session.note(Goodbye())

    with pytest.raises(AssertionError, match="welcome may not be sent"):
        ann.player.send(Welcome(1, "ann", "secret", Limits()))
