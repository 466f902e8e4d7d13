"""The check of transcripts: all of ours are true, and any change in one is found, with its line."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from arena.records.check_transcript import check
from arena.records.transcript import read
from protocol.errors import UsageError
from tests.support.cases import CaseFile

CASES = CaseFile(Path(__file__).with_name("check_transcript.cases"))

FOLDER = Path(__file__).parents[3] / "protocol" / "vectors" / "transcripts"
FILES = sorted(FOLDER.glob("*.jsonl"))

Lines = list[dict[str, Any]]


def lines_of(name: str) -> Lines:
    """The lines of one of our transcripts, to be changed."""
    text = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def reasons(lines: Lines) -> tuple[str, ...]:
    return check(read(json.dumps(line).encode() for line in lines))


def at(lines: Lines, kind: str, number: int = 1) -> int:
    """Where the message of that type stands, the first or a later one."""
    found = [
        index
        for index, line in enumerate(lines)
        for message in line.values()
        if isinstance(message, dict) and message.get("type") == kind
    ]
    return found[number - 1]


def the(lines: Lines, kind: str, number: int = 1) -> dict[str, Any]:
    """That message itself."""
    [message] = lines[at(lines, kind, number)].values()
    assert isinstance(message, dict)
    return message


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_transcript_of_ours_is_true(file: Path) -> None:
    assert check(read(file.read_bytes().splitlines())) == ()


SHORT = [file.stem for file in FILES if len(file.read_bytes().splitlines()) < 25]


@pytest.mark.parametrize("name", SHORT)
def test_no_line_can_be_left_out(name: str) -> None:
    lines = lines_of(name)
    may = [
        line
        for number, line in enumerate(lines)
        if number and not reasons(lines[:number] + lines[number + 1 :])
    ]

    # Nobody waits for a repeated `ready`, and either copy of a repeated question may be lost.
    for line in may:
        [message] = line.values()
        assert message["type"] in ("ready", "ask")
        assert lines.count(line) > 1
    assert not may or any("event" in line for line in lines)


def test_the_order_of_fields_and_white_space_mean_nothing() -> None:
    lines = lines_of("gin_rummy-1")
    turned = [
        {side: dict(reversed(message.items())) for side, message in line.items()}
        for line in lines[1:]
    ]

    assert str(turned) != str(lines[1:])
    assert reasons([dict(reversed(lines[0].items())), *turned]) == ()


def change(lines: Lines, words: str) -> None:
    """Change something as a case says."""
    what, *more = words.split(" ", 2)
    first, *path = what.split(".")
    kind, _, number = (more[0] if what == "without" else first).partition("#")
    if what == "without":
        del lines[at(lines, kind, int(number or 1))]
    elif what == "cut":
        del lines[int(more[0]) : int(more[1])]
    elif what == "insert":
        lines.insert(int(more[0]), json.loads(more[1]))
    elif what == "over-of":
        the(lines, "over")["verdict"] = the(lines_of(more[0]), "over")["verdict"]
    else:
        where: Any = (
            lines[0]
            if kind == "heading"
            else lines[int(kind) - 1]
            if kind.isdigit()
            else the(lines, kind, int(number or 1))
        )
        for key in path:
            where = where[int(key) if key.isdigit() else key]
        name, _, value = more[0].partition("=")
        if name.startswith("-"):
            where.pop(int(name[1:]) if name[1:].isdigit() else name[1:])
        else:
            where[name] = json.loads(value)


@pytest.mark.made_up
@pytest.mark.parametrize("name", CASES.titles)
def test_whatever_is_changed_is_found(name: str) -> None:
    def found(line: str) -> tuple[str, ...]:
        lines = lines_of(name)
        for words in line.partition(": ")[2].split(" · "):
            change(lines, words)
        return reasons(lines)

    CASES.check(name, found)


def test_what_an_arena_cannot_know_again_may_be_anything() -> None:
    lines = lines_of("ace_king_queen-5")
    the(lines, "welcome").update(session="f" * 32)
    the(lines, "over")["verdict"].update(taken_ms=3.0, credit_ms=None, advice="")
    the(lines, "ask").update(bank_ms=9_000)

    assert reasons(lines) == ()


def test_where_the_page_shows_the_match_may_be_said() -> None:
    lines = lines_of("ace_king_queen-1")
    the(lines, "match")["page"] = "/#/m/m"

    assert reasons(lines) == ()


def test_an_answer_that_is_not_known_stands_for_what_was_not_legal() -> None:
    lines = lines_of("ace_king_queen-5")
    lines[at(lines, "answer")] = {"event": "answered what was not legal"}
    assert reasons(lines) == ()

    lines = lines_of("ace_king_queen-5")
    lines.insert(at(lines, "ask"), {"event": "answered what was not legal"})
    assert reasons(lines) == ("line 6: expected a question that waits",)

    lines = lines_of("ace_king_queen-1")
    lines[at(lines, "answer")] = {"event": "answered what was not legal"}
    expected = "line 7: the match did not end with an illegal answer from this seat"
    assert reasons(lines) == (expected,)


@pytest.mark.made_up
@pytest.mark.parametrize("name", ["ace_king_queen-2", "gin_rummy-1", "blackjack-4"])
def test_a_damaged_transcript_is_a_reason_and_never_an_error(name: str) -> None:
    text = (FOLDER / f"{name}.jsonl").read_bytes()
    chance = random.Random(name)
    unnoticed = []
    for _ in range(300):
        place = chance.randrange(text.index(b'"seed"'), len(text))
        damaged = text[:place] + bytes([chance.randrange(256)]) + text[place + 1 :]
        try:
            if not check(read(damaged.splitlines())):
                unnoticed.append(text[place - 40 : place + 10])
        except UsageError:
            pass  # it is no transcript any more

    # What may be anything: a session, names, numbers among the limits, advice.
    assert len(unnoticed) < 10, unnoticed


@pytest.mark.made_up
@pytest.mark.parametrize(
    "damage",
    [
        {"settings": {"hands": "two"}},
        {"settings": {}, "answers": [[]]},
        {"nonces": ["x" * 70_000, "y"]},
        {"seed": None},
        {"seed": None, "decks": [7]},
        {"seed": "seed"},
        {"answers": [10**30]},
        {"scores": []},
        {"seat": -1},
        {"seat": 10**18},
        {"players": []},
        {"termination": {"kind": "illegal", "seat": 7}},
        {"termination": {"kind": "completed", "seat": 0}, "answers": []},
    ],
)
def test_a_heading_that_cannot_be_is_a_reason(damage: dict[str, Any]) -> None:
    lines = lines_of("ace_king_queen-1")
    lines[0].update(damage)

    assert reasons(lines)
