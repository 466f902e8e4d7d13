"""The check of transcripts: all of ours are true, and any change in one is found, with its line."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from arena.records.check_transcript import check
from arena.records.transcript import read
from protocol.errors import UsageError

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


Change: TypeAlias = Callable[[Lines], object]


def fields(kind: str, number: int = 1, **values: Any) -> Change:
    return lambda lines: the(lines, kind, number).update(values)


def heading(**values: Any) -> Change:
    return lambda lines: lines[0].update(values)


def without(kind: str, number: int = 1) -> Change:
    return lambda lines: lines.pop(at(lines, kind, number))


def cut(begin: int, end: int) -> Change:
    return lambda lines: lines.__delitem__(slice(begin, end))


_CHANGES: dict[str, dict[str, tuple[Change, str]]] = {
    "ace_king_queen-1": {
        "a card": (fields("ask", card="Q"), 'line 6: `card` is "Q", expected "A"'),
        "a type of number": (fields("ask", round=True), "line 6: expected `int`, got `bool`"),
        "what is legal": (
            fields("ask", legal=["bet"]),
            'line 6: `legal` is ["bet"], expected ["bet", "check"]',
        ),
        "news that are left out": (
            fields("ask", 2, news=[]),
            'line 8: `news` is [], expected [{"kind": "hand_over"',
        ),
        "the number of a question": (
            fields("ask", ask="4e56d80d-1.0:2"),
            'line 6: `ask` is "4e56d80d-1.0:2", expected "4e56d80d-1.0:1"',
        ),
        "a limit that is missing in welcome": (
            lambda lines: the(lines, "welcome")["limits"].pop("tables"),
            "line 3: `limits` is ",
        ),
        "somebody else's name": (
            fields("welcome", bot="ben"),
            'line 3: `bot` is "ben", expected "ann"',
        ),
        "more in the bank than before": (
            fields("ask", bank_ms=20_001),
            "line 6: `bank_ms` is 20001, expected 0 to 20000",
        ),
        "a field that there is not": (
            fields("ask", hint="bet"),
            'line 6: `hint` is "bet", expected "nothing"',
        ),
        "settings": (
            fields("match", settings={"hands": 4}),
            'line 4: `settings` is {"hands": 4}, expected {"hands": 2}',
        ),
        "the commitment": (fields("match", commitment="0" * 64), 'line 4: `commitment` is "0000'),
        "the nonce": (
            fields("ready", nonce="mine"),
            'line 5: `nonce` is "mine", expected "ann was here"',
        ),
        "an answer": (
            fields("answer", value="check"),
            'line 7: `value` is "check", expected "bet"',
        ),
        "an answer to another question": (
            fields("answer", ask="4e56d80d-1.0:7"),
            "line 7: '4e56d80d-1.0:7' was never asked",
        ),
        "an answer that is not legal, and nothing comes of it": (
            fields("answer", value="raise"),
            "line 8: expected `over` after an answer that is not legal",
        ),
        "an optional field that says nothing": (
            fields("answer", note=None),
            'line 7: `note` is null, expected "nothing"',
        ),
        "the scores at the end": (
            fields("over", scores=[9, -9]),
            "line 10: `scores` is [9, -9], expected [3, -3]",
        ),
        "a message out of turn": (
            lambda lines: lines.insert(2, lines[at(lines, "ready")]),
            "line 3: ready may not be sent before welcome",
        ),
        "a message that is none": (fields("answer", type="reply"), "line 7: "),
        "an end that is missing": (lambda lines: lines.pop(), "it ends before `over`"),
        "an end that comes too early": (
            cut(5, 9),
            "line 6: expected 2 answers before `over`, got 0",
        ),
        "something after the end": (
            lambda lines: lines.append({"bot": {"type": "goodbye"}}),
            "line 11: it goes on after `over`",
        ),
        "another game in hello": (
            fields("hello", games=["blackjack"]),
            "line 2: expected `games` with ace_king_queen",
        ),
        "an instructor": (
            lambda lines: lines.insert(
                1, {"bot": {"type": "instruct", "protocol": 1, "token": "t", "action": "status"}}
            ),
            "line 2: expected a message of a bot that plays",
        ),
        "what is said to instructors": (
            lambda lines: lines.insert(
                1, {"arena": {"type": "done", "text": "", "competitions": []}}
            ),
            "line 2: expected a message about a match",
        ),
        "an over without a match": (cut(3, 9), "line 4: expected `match` before `over`"),
        "the seed": (heading(seed="00" * 32), "its decks are not what seed and nonces deal"),
        "an end before the last answer": (
            heading(termination={"kind": "crash", "seat": 1}),
            "its match cannot be played again: it says crash of seat 2, "
            "but the answers play it to its end",
        ),
    },
    "ace_king_queen-6": {
        "a verdict for somebody who did nothing": (
            lambda lines: the(lines, "over").update(
                verdict=the(lines_of("ace_king_queen-5"), "over")["verdict"]
            ),
            "line 6: `verdict` is there for a seat that did nothing",
        ),
        "a seat that was never ready": (
            without("ready"),
            "line 5: expected `ready`, without which nothing is dealt",
        ),
    },
    "ace_king_queen-5": {
        "the words of a verdict": (
            lambda lines: the(lines, "over")["verdict"].update(legal="raise"),
            'line 8: `verdict.legal` is "raise", expected "bet, check"',
        ),
        "the text of an offence": (
            lambda lines: lines[0]["termination"].update(text="it was rude"),
            'line 8: `text` is "it was rude", expected "seat 1 answered',
        ),
        "an over for a word that nobody has said": (
            fields("answer", value="bet"),
            "line 7: the match has no answer to this question",
        ),
        "another word for what was not legal": (
            lambda lines: [
                one.update(kind="crash")
                for one in (
                    lines[0]["termination"],
                    the(lines, "over")["termination"],
                    the(lines, "over")["verdict"],
                )
            ],
            "line 8: it says crash after an answer that is not legal",
        ),
    },
    "ace_king_queen-4": {
        "a refusal of what was legal": (
            fields("answer", value="check"),
            "line 8: nothing was said that could be refused",
        ),
        "a refusal that is left out": (
            without("refused"),
            "line 8: expected `refused` after an answer that is not legal",
        ),
        "what a refusal says": (
            fields("refused", legal=["check"]),
            'line 8: `legal` is ["check"], expected ["bet", "check"]',
        ),
    },
    "ace_king_queen-3": {
        "a session that was never given": (
            fields("hello", 2, resume="0" * 32),
            'line 10: `resume` is "' + "0" * 32 + '", expected "',
        ),
        "another question after a lost connection": (
            fields("ask", 3, card="A"),
            'line 14: `card` is "A", expected ',
        ),
        "an invitation that is not repeated": (
            without("match", 2),
            "line 13: expected `match` once more after a lost connection",
        ),
        "a connection that was not lost": (
            lambda lines: lines.pop(8),
            "line 9: hello may not be sent twice",
        ),
        "an event that there is not": (
            lambda lines: lines[8].update(event="thunder"),
            "line 9: ValidationError: Invalid enum value 'thunder'",
        ),
    },
    "ace_king_queen-2": {
        "what was before, told otherwise": (
            fields("past", answer="bet"),
            'line 14: `answer` is "bet", expected "check"',
        ),
        "what was before, not told": (
            without("past"),
            "line 16: expected 1 more of what was before",
        ),
        "what was before, told to who has not asked": (
            lambda lines: the(lines, "hello", 2).update({"from": 1}),
            "line 14: expected no more of what was before",
        ),
        "an invitation that is not repeated after what was before": (
            cut(14, 16),
            "line 15: expected `match` once more after a lost connection",
        ),
        "what was before, without an invitation": (
            cut(11, 13),
            "line 12: expected `match` once more after a lost connection",
        ),
    },
    "blackjack-2": {"a number that is none": (fields("ask", decision_ms=1000.0), "line 6: ")},
    "gin_rummy-1": {
        "the decks": (
            lambda lines: lines[0]["decks"][0].update(starter=0),
            "its decks are not what seed and nonces deal",
        ),
        "the players": (heading(players=["ann"]), "it has 1 players for 2 seats"),
        "the seat": (heading(seat=2), "its seat is 2, expected 0 to 1"),
        "the game": (heading(game="whist"), "its match cannot be played again: "),
        "answers of others": (
            lambda lines: lines[0]["answers"].pop(0),
            "its match cannot be played again: ",
        ),
    },
    "high_low-1": {
        "the scores in the heading": (
            heading(scores=[0, 0, 0, 0]),
            "its scores say [0, 0, 0, 0], the answers make [-7, ",
        )
    },
    "high_low-4": {
        "an end with an offence and nobody to blame": (
            heading(termination={"kind": "crash"}),
            "it says crash with `seat` ",
        ),
        "an offence of a seat that there is not": (
            heading(termination={"kind": "crash", "seat": 4}),
            "it says crash of seat 4, of 4",
        ),
    },
}
"""What to change in which transcript, and how the reason begins."""

CHANGES = {
    what: (name, *change) for name, changes in _CHANGES.items() for what, change in changes.items()
}


@pytest.mark.made_up
@pytest.mark.parametrize("what", CHANGES)
def test_whatever_is_changed_is_found(what: str) -> None:
    name, change, why = CHANGES[what]
    lines = lines_of(name)
    change(lines)

    assert any(reason.startswith(why) for reason in reasons(lines)), reasons(lines)


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
