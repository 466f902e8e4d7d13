"""Matches told again: what happened, and in which round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from arena.games import replay
from arena.games.catalogue import GAMES
from arena.games.match import MatchResult, MatchState
from arena.games.replay import CardsDealt, MatchOver, Playback, SeatAnswered
from arena.games.rules import EVERYONE, AskSeat, TellSeat
from arena.records.rounds import RoundPlayback, rounds_of
from protocol.errors import IllegalAnswer
from protocol.messages import Ending, Termination
from tests.support import sample_database
from tests.support.random_matches import SETTINGS, played

EACH_GAME = pytest.mark.parametrize("game", GAMES)


# ---- Rounds


def test_G15_a_game_that_is_over_belongs_to_its_last_round() -> None:
    told = [
        [event.news.kind for event in each.events if isinstance(event, TellSeat)]
        for each in rounds_of(played("gin_rummy"))
    ]

    over = [kinds for kinds in told if "game_over" in kinds]
    assert len(over) == 2
    assert all(kinds[-2:] == ["round_over", "game_over"] for kinds in over)


@pytest.mark.parametrize(
    "result",
    [
        sample_database.play("ace_king_queen", settings={"hands": 0}),
        sample_database.void("gin_rummy"),
    ],
)
def test_a_match_without_a_round_or_a_card_has_only_its_end(result: MatchResult) -> None:
    [only] = rounds_of(result.record)

    assert (only.number, only.scores) == (1, (0, 0))
    assert [*only.events] == [MatchOver((0, 0), (0, 0), result.termination)]


def test_a_long_match_is_told_as_it_is_read() -> None:
    """Not all of it at once, whatever it takes of memory."""
    record = sample_database.play("ace_king_queen", settings={"hands": 2_000}).record
    taken = RoundPlayback(Playback.of(record))
    most = 0
    for value in record.answers:
        taken.feed(value)
        taken.take()
        most = max(most, len(taken.events))

    assert most < 8
    assert taken.round == 2_000
    assert isinstance(rounds_of(record), Iterator)


# ---- Events


@EACH_GAME
def test_all_that_happened_is_there_in_the_order_in_which_it_did(game: str) -> None:
    """Compared with the rules' own steps."""
    record = played(game)
    steps: list[tuple[str, Any]] = []
    match = MatchState(
        GAMES[game],
        GAMES[game].vocabulary.read_settings(SETTINGS[game]),
        seed=bytes.fromhex(record.seed or ""),
        nonces=record.nonces,
    )
    for value, took_ms in zip(record.answers, record.times_ms, strict=True):
        steps += [("told", (tell.seat, tell.news)) for tell in match.take_news()]
        assert match.pending is not None
        steps.append(("asked", (match.pending.seat, match.pending.question)))
        steps.append(("answered", (match.pending.seat, value, took_ms)))
        match.answer(value)
    steps += [("told", (tell.seat, tell.news)) for tell in match.take_news()]

    def told(seat: int | None) -> list[tuple[str, Any]]:
        """What is told to all, or to one seat (J8)."""
        got: list[tuple[str, Any]] = []
        for event in replay.events_of(record, seat):
            match event:
                case TellSeat(to, news):
                    got.append(("told", (to, news)))
                case AskSeat(to, question):
                    got.append(("asked", (to, question)))
                case SeatAnswered(to, value=value, took_ms=took):
                    got.append(("answered", (to, value, took)))
        return got

    assert told(None) == steps
    for seat in range(GAMES[game].seats):
        assert told(seat) == [step for step in steps if step[1][0] in (seat, EVERYONE)]


def test_stacked_decks_are_told_as_well() -> None:
    game = GAMES["ace_king_queen"]
    settings = game.vocabulary.read_settings({"hands": 2})
    telling = RoundPlayback(
        Playback(MatchState(game, settings, decks=["AK", "QK"], tells_deals=True))
    )
    telling.feed("check")
    telling.feed("check")

    assert [
        event.deal
        for each in telling.take()
        for event in each.events
        if isinstance(event, CardsDealt)
    ] == [("A", "K"), ("Q", "K")]


def test_an_answer_that_is_not_legal_changes_nothing() -> None:
    telling = RoundPlayback(Playback.of(played("ace_king_queen")))
    before = list(telling.events)

    with pytest.raises(IllegalAnswer, match="seat 1 answered"):
        telling.feed("call")
    assert telling.events == before
    assert telling.decisions == 0


def test_an_answer_after_the_end_is_refused() -> None:
    record = played("ace_king_queen")
    longer = replace(record, answers=(*record.answers, "bet"))

    with pytest.raises(IllegalAnswer, match="comes after the end"):
        list(rounds_of(longer))


def test_a_match_ends_once() -> None:
    record = played("ace_king_queen")
    telling = RoundPlayback(Playback.of(record))
    for value in record.answers:
        telling.feed(value)
    telling.end(Termination(Ending.VOID, None, "too late"))

    [*_, last] = telling.take()
    assert last.events[-1] == MatchOver(record.scores, record.points, record.termination)


@EACH_GAME
def test_an_offence_is_the_end_of_the_round_in_which_it_was(game: str) -> None:
    record = played(game, offender=0, after=4)
    *_, last = rounds_of(record)

    assert last.events[-1] == MatchOver(record.scores, record.points, record.termination)
    assert isinstance(last.events[-2], AskSeat)


# ---- Passing over


@EACH_GAME
def test_what_was_passed_over_is_not_told_and_the_rest_is(game: str) -> None:
    """From the next round on, as if all had been told."""
    record = played(game)
    whole = list(rounds_of(record))
    for count in (1, 2, 5):
        telling = RoundPlayback(Playback.of(record))
        for value in record.answers[:count]:
            telling.pass_over(value)
        assert telling.is_partial
        assert telling.events == []
        for value, took_ms in zip(record.answers[count:], record.times_ms[count:], strict=True):
            telling.feed(value, took_ms)
        rounds = telling.take()

        begun = telling.round - len(rounds)
        assert rounds == whole[begun:]
        assert telling.round == whole[-1].number
        assert begun <= count + 1  # a hand may have one decision


@pytest.mark.parametrize("offender", [None, 0])
@EACH_GAME
def test_the_end_is_told_even_if_all_was_passed_over(game: str, offender: int | None) -> None:
    record = played(game, offender=offender, after=6)
    telling = RoundPlayback(Playback.of(record))
    for value in record.answers:
        telling.pass_over(value)
    telling.end(record.termination)

    [last] = telling.take()
    assert [*last.events] == [MatchOver(record.scores, record.points, record.termination)]
    assert last.number == list(rounds_of(record))[-1].number
    assert last.scores == record.scores
    assert telling.is_over
