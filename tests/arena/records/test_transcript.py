"""The conversation of a seat, from the record of its match; and the transcripts of ours are true."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

import arena
from arena.games.match import Record
from arena.records.transcript import Side, Transcript, canonical, conversation
from bots.ace_king_queen import Honest, Random
from protocol.errors import IllegalAnswer, UsageError
from protocol.messages import Answer, Ending, Goodbye, Hello, Limits, Ready, Termination
from tests.support.sample_database import play
from tests.support.transcript_check import check, read

FOLDER = Path(__file__).parents[3] / "protocol" / "vectors" / "transcripts"
FILES = sorted(FOLDER.glob("*.jsonl"))
NAMES = ("ann", "ben", "cem", "Zoë")


def made(record: Record, seat: int = 0, **more: Any) -> Transcript:
    """A conversation, of which every message is checked."""
    players = NAMES[: len(record.scores)]
    transcript = conversation(record, players, seat, f"7-1.{seat}", limits=Limits(), **more)
    check(transcript)
    return transcript


def said(transcript: Transcript, side: Side) -> list[Any]:
    return [msgspec.json.decode(line.text) for line in transcript.lines if line.side is side]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_transcript_of_ours_is_true_and_written_as_it_is_read(file: Path) -> None:
    transcript = read(file.read_bytes().splitlines())

    check(transcript)
    assert transcript.to_bytes() == file.read_bytes()


@pytest.mark.parametrize("file", [file for file in FILES if file.stem.endswith("-1")], ids=str)
def test_no_line_can_be_left_out(file: Path) -> None:
    heading, *lines = file.read_bytes().splitlines()

    for number in range(len(lines)):
        with pytest.raises(Exception):  # noqa: B017, PT011 - whatever does not fit
            check(read([heading, *lines[:number], *lines[number + 1 :]]))


def test_a_match_in_process_with_a_seed_or_with_stacked_decks() -> None:
    seeded = arena.play("akq", [Honest(), Random()], settings={"hands": 9}, seed=3)
    transcript = conversation(seeded.record, NAMES[:2], 1, "7-1.1", limits=Limits())
    assert (transcript.heading.nonces, len(transcript.heading.decks)) == ((), 9)
    assert said(transcript, Side.ARENA)[-1]["reveal"]["nonces"] == []

    decks = [["A", "K"], ["Q", "A"]]
    stacked = arena.play("akq", [Honest(), Honest()], settings={"hands": 2}, decks=decks)
    transcript = conversation(stacked.record, NAMES[:2], 0, "7-1.0", limits=Limits())
    assert (transcript.heading.seed, transcript.heading.decks) == (None, (("A", "K"), ("Q", "A")))
    assert said(transcript, Side.ARENA)[-1]["reveal"] is None


def test_a_match_that_was_left_is_told_up_to_there() -> None:
    record = play("high_low").record
    ended = replace(record.termination, kind=Ending.DISCONNECT, seat=2, text="said goodbye")
    left = replace(record, answers=record.answers[:4], termination=ended, scores=(0, 0, 0, 0))
    [*_, ask, over] = said(made(left), Side.ARENA)

    assert (ask["kind"], over["termination"]["kind"]) == ("bid", "disconnect")
    assert over["news"] == []


def test_there_is_no_such_seat() -> None:
    with pytest.raises(UsageError, match="expected a seat of 2, got 3"):
        made(play("ace_king_queen").record, 2)


WHOLE = play("ace_king_queen").record.answers
ILLEGAL = Termination(Ending.ILLEGAL, 1, "x")
OTHERWISE = "but the answers play it to its end"


@pytest.mark.parametrize(
    ("offender", "changes", "why"),
    [
        (None, {"answers": WHOLE[:1]}, "has only 1 answers"),
        (None, {"answers": (*WHOLE, "check")}, "comes after the end"),
        (None, {"answers": ("raise",)}, 'answered "raise"'),
        (None, {"seed": None}, "with a seed or decks"),
        (None, {"termination": Termination(Ending.VOID)}, f"it says void, {OTHERWISE}"),
        (None, {"termination": Termination(Ending.CRASH, 1)}, f"crash of seat 2, {OTHERWISE}"),
        (None, {"termination": ILLEGAL}, f"it says illegal of seat 2, {OTHERWISE}"),
        (0, {"termination": ILLEGAL}, "illegal of seat 2, but seat 1 was asked"),
    ],
)
def test_a_record_that_its_answers_do_not_make_is_refused(
    offender: int | None, changes: dict[str, Any], why: str
) -> None:
    record = play("ace_king_queen", offender=offender).record

    with pytest.raises((IllegalAnswer, UsageError), match=why):
        made(replace(record, **changes))


def test_what_says_nothing_is_left_out_of_a_bots_message() -> None:
    assert canonical(Goodbye()) == b'{"type":"goodbye"}'
    assert canonical(Ready("1.0", "n")) == b'{"type":"ready","match":"1.0","nonce":"n"}'
    assert json.loads(canonical(Answer("1.0", "1.0:1", None))) == {
        "type": "answer",
        "match": "1.0",
        "ask": "1.0:1",
        "value": None,
    }
    assert canonical(Hello(1, "ann", ("akq",), tables=2, from_=0)) == (
        b'{"type":"hello","protocol":1,"name":"ann","games":["akq"],"tables":2,"from":0}'
    )
