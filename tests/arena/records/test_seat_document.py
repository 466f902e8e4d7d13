"""What one seat saw as a document: all of it, nothing else, and good for all that a record is."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from arena.games.catalogue import GAMES
from arena.records.document import read
from arena.records.mistakes import judged
from arena.records.seat_document import SeatDocument, seat_document, seat_match
from protocol.errors import UsageError
from protocol.messages import Ending
from tests.support.sample_database import play

NAMES = ("ann", "ben", "cem", "dee")
EACH_GAME = pytest.mark.parametrize("game", GAMES)


def handed_on(game: str, seat: int = -1, **more: Any) -> tuple[Any, int, SeatDocument]:
    """A record, a seat, and that seat's document as somebody else reads it."""
    record = play(game, 4, **more).record
    seat %= len(record.scores)
    written = seat_document(record, seat, "m", NAMES[: len(record.scores)]).to_json()
    document = read(written)
    assert isinstance(document, SeatDocument)
    return record, seat, document


@EACH_GAME
def test_it_has_what_the_seat_was_asked_and_told(game: str) -> None:
    record, seat, document = handed_on(game)

    of_record = seat_match(record, seat)
    counted = [replace(each, index=at) for at, each in enumerate(of_record.decisions)]

    assert seat_match(document, seat) == replace(of_record, decisions=counted)
    assert len(document.record.times_ms) == len(document.record.answers)


@EACH_GAME
def test_it_has_no_cards_but_those_and_nobody_elses_answers(game: str) -> None:
    record, seat, document = handed_on(game, note="mine")

    assert (document.record.seed, document.record.nonces) == (None, ())
    own = [decision.answer for decision in seat_match(record, seat).decisions]
    assert msgspec.to_builtins(own) == list(msgspec.to_builtins(document.record.answers))
    assert record.seed is not None
    assert record.seed.encode() not in document.to_json()


@pytest.mark.parametrize("seat", [0, 1])
def test_what_an_offender_did_stands_in_its_own_alone(seat: int) -> None:
    _, _, document = handed_on("gin_rummy", seat, offender=0)

    ended = document.record.termination
    assert (ended.kind, ended.seat) == (Ending.ILLEGAL, 0)
    assert bool(ended.text) == (seat == 0)


@pytest.mark.parametrize("game", ["ace_king_queen"])
def test_its_decisions_are_judged_like_the_records(game: str) -> None:
    record, seat, document = handed_on(game)

    def costs(source: Any) -> list[tuple[int, float]]:
        return [(one.number, one.judgement.cost) for one in judged(source, seat)]

    assert costs(document) == costs(record) != []


def test_a_question_that_the_game_does_not_have_is_refused() -> None:
    _, _, document = handed_on("blackjack")
    first, *rest = document.asked
    odd = replace(first, question={"kind": "why"})

    with pytest.raises(UsageError, match="expected what a seat is asked or told"):
        [*replace(document, asked=(odd, *rest)).events()]
