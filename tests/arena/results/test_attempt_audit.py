"""Attempts of workers and the matches of the same ids, as `arena verify` compares them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena.formats.schedule import Pairing
from arena.results import audit_database
from arena.storage.attempts import AttemptRow, AttemptState
from arena.storage.store import Store
from tests.support.sample_database import SampleWriter, plan, play, void

GAME = "three_card_poker"
ATTEMPT = "attempt-1"
COURSE = "tcp-1"


@pytest.fixture
async def writer(tmp_path: Path) -> AsyncIterator[SampleWriter]:
    with Store(tmp_path / "arena.db") as store:
        yield SampleWriter(store, plan(GAME), COURSE)


RESULT = play(GAME, worker="north")


async def announced(writer: SampleWriter, **fields: Any) -> AttemptRow:
    row = AttemptRow(
        id=ATTEMPT,
        job="job-1",
        competition=COURSE,
        pairing=1,
        players=("ann",),
        worker="north",
        commitment=RESULT.record.commitment or "",
        announced_at=1.0,
        message=b"",
    )
    row = msgspec.structs.replace(row, **fields)
    await writer.store.attempts.announce(row)
    return row


def found(writer: SampleWriter) -> tuple[list[str], tuple[str, ...]]:
    """The flaws of the match, and the notes."""
    writer.store.flush()
    [run] = audit_database.examine(writer.store)
    return [flaw.text for flaw in run.flaws], run.notes


async def test_a_match_as_it_was_announced_fits(writer: SampleWriter) -> None:
    await announced(writer)
    writer.finished(Pairing(1, ("ann",)), RESULT, ATTEMPT)

    assert found(writer) == ([], ())


async def test_a_late_result_of_a_lost_attempt_fits(writer: SampleWriter) -> None:
    await announced(writer)
    writer.store.attempts.ended(ATTEMPT, AttemptState.LOST, "north is gone")
    writer.finished(Pairing(1, ("ann",)), RESULT, ATTEMPT)

    assert found(writer) == ([], ())


async def test_what_the_arena_wrote_of_a_silent_worker_fits(writer: SampleWriter) -> None:
    await announced(writer)
    writer.store.attempts.ended(ATTEMPT, AttemptState.VOID, "stopped")
    nobody = msgspec.structs.replace(void(GAME).record, commitment=None, nonces=())
    unplayed = msgspec.structs.replace(void(GAME), record=nobody)
    writer.finished(Pairing(1, ("ann",)), unplayed, ATTEMPT)

    flaws, [note] = found(writer)
    assert flaws == []
    assert note == (
        "1 attempt of workers has no result: north (1); the latest is of pairing 1: stopped"
    )


async def test_a_match_of_a_worker_that_announced_nothing(writer: SampleWriter) -> None:
    writer.finished(Pairing(1, ("ann",)), RESULT, ATTEMPT)

    assert found(writer)[0] == ["its record is of worker north, which announced nothing"]


@pytest.mark.parametrize(
    ("fields", "flaw"),
    [
        ({"worker": "south"}, "its record is of worker north, worker south has announced it"),
        ({"commitment": "0000"}, 'its commitment is not the one that was announced, "0000"'),
        ({"pairing": 2}, "it was announced for pairing 2"),
        ({"players": ("ben",)}, "it was announced for ben"),
    ],
)
async def test_a_match_that_was_announced_otherwise(
    writer: SampleWriter, fields: dict[str, Any], flaw: str
) -> None:
    await announced(writer, **fields)
    writer.finished(Pairing(1, ("ann",)), RESULT, ATTEMPT)

    assert found(writer)[0] == [flaw]


async def test_a_match_of_the_arena_itself_that_a_worker_announced(writer: SampleWriter) -> None:
    await announced(writer)
    writer.finished(Pairing(1, ("ann",)), play(GAME), ATTEMPT)

    assert found(writer)[0] == ["its record is of no worker, worker north has announced it"]


async def test_a_match_whose_attempt_is_void(writer: SampleWriter) -> None:
    await announced(writer)
    writer.store.attempts.ended(ATTEMPT, AttemptState.VOID, "refused")
    writer.finished(Pairing(1, ("ann",)), RESULT, ATTEMPT)

    flaws, notes = found(writer)
    assert flaws == ["its attempt is void, and it is counted all the same: refused"]
    assert notes == ()


async def test_attempts_without_a_result_are_a_note(writer: SampleWriter) -> None:
    writer.finished(Pairing(1, ("ann",)), play(GAME))
    for n in range(8):
        row = await announced(writer, id=f"attempt-{n}", worker=f"w{n // 2}", pairing=n)
        if n:
            writer.store.attempts.ended(row.id, AttemptState.LOST, f"w{n // 2} is gone")

    assert found(writer) == (
        [],
        (
            "7 attempts of workers have no result: w1 (2), w2 (2), w3 (2), w0 (1); "
            "the latest is of pairing 7: w3 is gone",
        ),
    )
