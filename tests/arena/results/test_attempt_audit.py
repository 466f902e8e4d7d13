"""Attempts of workers and the matches of the same ids, as `arena verify` compares them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from arena.formats.schedule import Pairing
from arena.results import audit_database
from arena.storage.attempts import AttemptRow, AttemptState
from arena.storage.store import Store
from tests.support.sample_database import SampleWriter, plan, play, void
from tests.support.written_competition import attempt

GAME = "three_card_poker"
ATTEMPT = "attempt-1"
COURSE = "tcp-1"


@pytest.fixture
async def writer(tmp_path: Path) -> AsyncIterator[SampleWriter]:
    with Store(tmp_path / "arena.db") as store:
        yield SampleWriter(store, plan(GAME), COURSE)


RESULT = play(GAME, worker="north")


async def announced(writer: SampleWriter, **fields: Any) -> AttemptRow:
    usual = {"players": ("ann",), "commitment": RESULT.record.commitment or ""}
    row = attempt(competition=COURSE, **{**usual, **fields})
    await writer.store.attempts.announce(row)
    return row


def found(writer: SampleWriter) -> tuple[list[str], tuple[str, ...]]:
    """The flaws of the match, and the notes."""
    writer.store.flush()
    [run] = audit_database.examine(writer.store)
    return [flaw.text for flaw in run.flaws], run.notes


NOBODY = replace(void(GAME).record, commitment=None, nonces=())
UNPLAYED = replace(void(GAME), record=NOBODY)
NOTE = "1 attempt of workers has no result: north (1); the latest is of pairing 1: stopped"
ANNOUNCED: dict[str, tuple[dict[str, Any] | None, tuple[AttemptState, str] | None, str, str]] = {
    "as it was announced it fits": ({}, None, "", ""),
    "a late result of a lost attempt fits": ({}, (AttemptState.LOST, "north is gone"), "", ""),
    "a worker that announced nothing": (
        *(None, None),
        *("its record is of worker north, which announced nothing", ""),
    ),
    "another worker": (
        *({"worker": "south"}, None),
        *("its record is of worker north, worker south has announced it", ""),
    ),
    "another commitment": (
        *({"commitment": "0000"}, None),
        *('its commitment is not the one that was announced, "0000"', ""),
    ),
    "another pairing": ({"pairing": 2}, None, "it was announced for pairing 2", ""),
    "another bot": ({"players": ("ben",)}, None, "it was announced for ben", ""),
    "a match of the arena itself": (
        *({}, None),
        *("its record is of no worker, worker north has announced it", ""),
    ),
    "an attempt that is void": (
        *({}, (AttemptState.VOID, "refused")),
        *("its attempt is void, and it is counted all the same: refused", ""),
    ),
    "what the arena wrote of a silent worker fits": ({}, (AttemptState.VOID, "stopped"), "", NOTE),
}
"""What was announced, how the attempt ended, the flaw of the match, and the note."""
PLAYED = {
    "a match of the arena itself": play(GAME),
    "what the arena wrote of a silent worker fits": UNPLAYED,
}


@pytest.mark.parametrize("what", ANNOUNCED)
async def test_a_match_is_held_against_what_was_announced(writer: SampleWriter, what: str) -> None:
    fields, ended, flaw, note = ANNOUNCED[what]
    if fields is not None:
        await announced(writer, **fields)
    if ended is not None:
        writer.store.attempts.ended(ATTEMPT, *ended)
    writer.finished(Pairing(1, ("ann",)), PLAYED.get(what, RESULT), ATTEMPT)

    assert found(writer) == ([flaw] * bool(flaw), (note,) * bool(note))


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
