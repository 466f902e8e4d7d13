from __future__ import annotations

import msgspec
import pytest

import arena
from arena.engine.match import Record
from arena.games.replay import replay
from bots.ace_king_queen import Bluffer, Nash
from protocol.errors import IllegalAnswer, UsageError


@pytest.fixture
def record() -> Record:
    strategies = [Nash(), Bluffer()]
    played = arena.play("ace_king_queen", strategies, settings={"hands": 3}, seed=1)
    return played.record


def test_a_record_played_again_gives_the_same_record(record: Record) -> None:
    assert replay(record).record == record


def test_a_record_without_seed_and_decks_is_none(record: Record) -> None:
    with pytest.raises(UsageError, match="expected a record with a seed or decks"):
        replay(msgspec.structs.replace(record, seed=None))


def test_an_answer_after_the_end_is_refused(record: Record) -> None:
    longer = msgspec.structs.replace(record, answers=(*record.answers, "bet"))

    with pytest.raises(IllegalAnswer, match="comes after the end"):
        replay(longer)


def test_a_completed_match_has_all_its_answers(record: Record) -> None:
    shorter = msgspec.structs.replace(record, answers=record.answers[:-1])

    with pytest.raises(IllegalAnswer, match="says completed, but has only"):
        replay(shorter)
