from __future__ import annotations

import msgspec
import pytest

import arena
from arena.games.match import Record
from arena.games.replay import (
    CardsDealt,
    MatchOver,
    Playback,
    SeatAnswered,
    events_of,
    is_dealt,
    playing_again,
    reopened,
    replay,
)
from arena.games.rules import EVERYONE, NOBODY, AskSeat, TellSeat
from bots.ace_king_queen import Bluffer, Nash
from protocol.errors import ArenaError, IllegalAnswer, NoAnalysis, UsageError
from protocol.messages import Ending, Termination
from tests.support.sample_database import play, void

SHORT = {"ace_king_queen": {"hands": 3}, "gin_rummy": {"games": 1, "max_rounds": 1}}


@pytest.fixture
def record() -> Record:
    strategies = [Nash(), Bluffer()]
    played = arena.play("ace_king_queen", strategies, settings={"hands": 3}, seed=1)
    return played.record


def test_a_record_without_seed_and_decks_is_none(record: Record) -> None:
    with pytest.raises(UsageError, match="expected a record with a seed or decks"):
        replay(msgspec.structs.replace(record, seed=None))


def test_a_completed_match_has_all_its_answers(record: Record) -> None:
    shorter = msgspec.structs.replace(record, answers=record.answers[:-1])

    with pytest.raises(IllegalAnswer, match="says completed, but has only"):
        replay(shorter)


def test_a_record_of_an_earlier_arena_says_which_worker_refereed_it(record: Record) -> None:
    of_worker = msgspec.structs.replace(record, worker="lab1")

    assert replay(of_worker).record == of_worker
    assert replay(record).record.worker is msgspec.UNSET


@pytest.mark.parametrize("number", [-1, 6])
def test_a_note_belongs_to_an_answer(record: Record, number: int) -> None:
    noted = msgspec.structs.replace(record, notes=((0, "mine"), (number, "nobody's")))

    assert replay(noted).record.notes == ((0, "mine"),)


def test_a_seed_is_hex(record: Record) -> None:
    with pytest.raises(UsageError, match="expected a seed in hex, got 'zz'"):
        replay(msgspec.structs.replace(record, seed="zz"))


def test_of_a_bad_seed_the_beginning_is_shown(record: Record) -> None:
    with pytest.raises(UsageError) as refused:
        replay(msgspec.structs.replace(record, seed="z" * 10_000))

    assert len(str(refused.value)) < 250


def test_deals_are_told_to_nobody_where_a_replay_may_show_them(record: Record) -> None:
    for tells_deals in (False, True):
        told = [tell.seat for tell in reopened(record, tells_deals=tells_deals).news]
        assert (NOBODY in told) is tells_deals


def test_what_was_never_dealt_is_not_dealt_now() -> None:
    result = void("ace_king_queen")

    assert replay(result.record) == result


def test_stacked_decks_are_dealt_whoever_crashes() -> None:
    class Crashes(Bluffer):
        def reset(self) -> None:
            raise RuntimeError

    decks = [["A", "K"]]
    result = arena.play("ace_king_queen", [Crashes(), Nash()], settings={"hands": 1}, decks=decks)

    assert result.record.decks == (("A", "K"),)
    assert replay(result.record) == result


def test_cards_are_dealt_when_all_are_ready() -> None:
    assert is_dealt(play("ace_king_queen").record)
    assert is_dealt(play("ace_king_queen", offender=0, after=0).record)
    assert not is_dealt(void("ace_king_queen").record)


def test_all_events_of_a_record_come_in_their_order(record: Record) -> None:
    events = list(events_of(record))

    assert [event.value for event in events if isinstance(event, SeatAnswered)] == [*record.answers]
    assert any(isinstance(event, CardsDealt) for event in events)
    assert isinstance(events[-1], MatchOver)
    assert events[-1].scores == record.scores
    # After each answer but the last the next question is asked.
    asked = [event for event in events if isinstance(event, AskSeat)]
    assert len(asked) == len(record.answers)


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("game", ["ace_king_queen", "gin_rummy"])
def test_a_seat_knows_of_its_own_alone(game: str, seat: int) -> None:
    events = list(events_of(play(game, 2, settings=SHORT[game]).record, seat))

    assert not any(isinstance(event, CardsDealt) for event in events)
    assert {event.seat for event in events if isinstance(event, AskSeat | SeatAnswered)} == {seat}
    told = {event.seat for event in events if isinstance(event, TellSeat)}
    assert told <= {seat, EVERYONE}


def test_before_the_cards_are_dealt_nothing_has_happened() -> None:
    assert Playback(reopened(void("ace_king_queen", 1).record)).take_events() == []


def test_an_end_comes_once(record: Record) -> None:
    early = Termination(Ending.VOID, None, "")
    playback = Playback.of(record)
    playback.take_events()

    assert isinstance(playback.end(early)[-1], MatchOver)
    assert playback.end(early) == []
    with pytest.raises(IllegalAnswer):
        playback.feed("bet")


def test_what_goes_wrong_while_playing_again_is_told_of_the_record() -> None:
    with pytest.raises(ArenaError, match=r"^m-1 .+ again: ZeroDivision"), playing_again("m-1"):
        raise ZeroDivisionError("no")
    with pytest.raises(ArenaError, match=r"^the record .+ again: no seed$"), playing_again():
        raise UsageError("no seed")
    with pytest.raises(NoAnalysis, match=r"^not here$"), playing_again():
        raise NoAnalysis("not here")
