"""What an attacker who controls a worker can hand in, and what is said of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.games.replay import reopened, replay
from arena.referee.referee import FAULT
from arena.workers.messages import AttemptResult, HouseBot, encode
from arena.workers.result_fit import ExpectedAttempt, fit_of
from protocol.messages import Ending, Limits, Mechanism, Termination
from tests.support.sample_database import SHORT, from_outside, play, void
from tests.support.worker_results import altered, expected_of, handed_in, ruled_out, unbegun

GAMES = sorted(SHORT)
HONEST = handed_in()
EXPECTED = expected_of(HONEST)
RECORD = HONEST.record


def why(result: AttemptResult, expected: ExpectedAttempt = EXPECTED) -> str:
    """What is said of a result; one printable line."""
    said = fit_of(encode(result), expected).why
    assert said.isprintable()
    assert len(said) <= 500
    return said


# ---- What fits


@pytest.mark.parametrize("game", GAMES)
def test_a_match_as_it_was_played_fits_and_has_its_units(game: str) -> None:
    result = handed_in(game)
    fit = fit_of(encode(result), expected_of(result))

    assert fit.why == ""
    assert fit.units == replay(result.record).units


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("kind", [Ending.ILLEGAL, Ending.CRASH, Ending.TIMEOUT])
def test_an_offence_as_it_was_found_fits(game: str, kind: Ending) -> None:
    result = ruled_out(game=game, kind=kind)

    assert why(result, expected_of(result)) == ""


@pytest.mark.parametrize("value", [True, 4.5, None, ["x"], {"card": "é"}, math.nan, "\x00 \x1b[1m"])
def test_J1_any_answer_that_the_rules_refuse_is_illegal(value: object) -> None:
    result = ruled_out(value)

    assert why(result, expected_of(result)) == ""


def test_what_is_mostly_no_result_is_refused() -> None:
    """The arena reads a result that fits once more, in its event loop."""
    padded = msgspec.to_builtins(HONEST, builtin_types=(bytes,)) | {"more": [None] * 1_000_000}

    assert fit_of(encode(padded), EXPECTED).why == "most of it is no result"


def voided(**fields: Any) -> AttemptResult:
    match = reopened(msgspec.structs.replace(RECORD, answers=()))
    match.end(Ending.VOID, None, FAULT)
    return altered(HONEST, record=match.result().record, **fields)


def absent(**fields: Any) -> AttemptResult:
    """A match before which a bot could not be started: no seat has heard of it."""
    ended = Termination(Ending.ABSENT, 0, "no start")
    blank: dict[str, Any] = dict.fromkeys(("answers", "nonces", "enforced", "times_ms"), ())
    match = reopened(msgspec.structs.replace(RECORD, **blank, commitment=None, termination=ended))
    match.end(Ending.ABSENT, 0, "no start", events=("attempt-1.0",))
    result = altered(
        ruled_out(kind=Ending.ABSENT),
        verdict__seat=0,
        verdict__bot="bot-0",
        verdict__event="attempt-1.0",
        verdict__text="no start",
        verdict__asked=None,
        verdict__legal=None,
    )
    return altered(HONEST, record=match.result().record, verdict=result.verdict, **fields)


VERSIONED = handed_in(versions=("v3", "v1"))
NEVER_BEGUN = altered(handed_in(result=void("ace_king_queen")), record__worker="north")
FITTING = {
    "versions": (VERSIONED, expected_of(VERSIONED)),
    "a match that never began over the network": (NEVER_BEGUN, expected_of(NEVER_BEGUN)),
    "what a worker does not charge": (voided(voided_offence="crash: no memory"), EXPECTED),
    "J5 a void match before it has begun": (unbegun(HONEST), EXPECTED),
    "J5 a void match of a worker": (altered(unbegun(HONEST), record__worker="north"), EXPECTED),
    "J5 a void match in the middle": (voided(), EXPECTED),
    "a bot that could not be started": (absent(), EXPECTED),
}


@pytest.mark.parametrize(("result", "expected"), FITTING.values(), ids=FITTING)
def test_what_may_be_handed_in_fits(result: AttemptResult, expected: ExpectedAttempt) -> None:
    assert why(result, expected) == ""


# ---- What was put and announced

OTHER_JOB: dict[str, Any] = {
    "arena": "arena-2",
    "id": "job-2",
    "game": "blackjack",
    "settings": {"hands": 1},
    "limits": Limits(decision_ms=5),
    "players": ("bot-1", "bot-0"),
    "programs": (HouseBot("random"), HouseBot("careful")),
    "package": "leduc 1.0",
    "versions": ("v1", "v2"),
    "version": 7,
}


@pytest.mark.parametrize("field", HONEST.job.__struct_fields__)
def test_a_job_that_was_altered_is_refused(field: str) -> None:
    result = altered(HONEST, **{f"job__{field}": OTHER_JOB[field]})

    assert why(result) == f"its job has another {field} than the one that was put"


OTHER_MATCH = handed_in(number=2)
"""Cards that were looked for, or played twice."""
NUMBERS = (1 << 63, -(1 << 62), math.nan)
ODD: tuple[object, ...] = (*NUMBERS, "a" * 1_000_000, [[]] * 100_000, {"a": {"b": [0]}})
OTHER_SEED = "its seed is not the one whose commitment was announced"


def test_another_commitment_than_the_one_announced_is_refused() -> None:
    other = msgspec.structs.replace(EXPECTED, commitment="0" * 64)

    assert OTHER_SEED in why(HONEST, other)


# ---- The result


def swapped(scores: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(score + 1 for score in scores)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"attempt": "x\n"}, 'it is of attempt "x\\n", expected attempt-1'),
        ({"worker": "south"}, 'it is of worker "south", north has announced it'),
        ({"record__worker": "south"}, 'it is of worker "south", north has announced it'),
        ({"record__worker": msgspec.UNSET}, "its record names no worker, expected north"),
        *(
            ({"record__seed": seed}, OTHER_SEED)
            for seed in (None, "", "no", OTHER_MATCH.record.seed)
        ),
        ({"record": OTHER_MATCH.record}, OTHER_SEED),
        ({"record__decks": (), "record__seed": None}, OTHER_SEED),
        ({"record__commitment": "0" * 64}, "its record has another commitment than the one that"),
        ({"record__commitment": None}, "its record has another commitment than the one that"),
        ({"has_begun": False}, "its match has not begun"),
        ({"stderr": ("",)}, "not everything"),
        ({"stderr": ("a" * (2 << 20), "")}, "letters of stderr"),
        *(
            ({"record__answers": (answer, *RECORD.answers[1:])}, "cannot be played again")
            for answer in ODD
        ),
        ({"verdict": ruled_out().verdict}, "it has a verdict on a match that is completed"),
        (
            {"record": voided().record, "verdict": ruled_out().verdict},
            "it has a verdict on a match that is void",
        ),
        ({"record__game": "blackjack"}, "in ace_king_queen"),
        ({"record__settings": {**RECORD.settings, "hands": 1}}, "hands"),
        ({"record__settings": {**RECORD.settings, "hands": float(4)}}, ""),
        ({"record__settings": {**RECORD.settings, "more": 1}}, ""),
        ({"record__settings": {}}, ""),
        ({"record__package": "leduc 1.0"}, "package"),
        ({"record__versions": ("v1", "v2")}, "other versions"),
        ({"record__scores": swapped(RECORD.scores)}, "score at seat 1 says"),
        ({"record__scores": (*RECORD.scores, 0)}, "not everything of 2 seats"),
        ({"record__points": (1, 0)}, "points at seat 1 says 1"),
        ({"record__answers": RECORD.answers[:-1]}, ""),
        ({"record__answers": (*RECORD.answers, RECORD.answers[0])}, ""),
        ({"record__answers": RECORD.answers[::-1]}, ""),
        ({"record__answers": ("no", *RECORD.answers[1:])}, "cannot be played again"),
        ({"record__nonces": ()}, ""),
        ({"record__nonces": ("", *RECORD.nonces[1:])}, "without a nonce of seat 1"),
        ({"record__nonces": ("a" * 65, *RECORD.nonces[1:])}, "more than 64"),
        ({"record__enforced": ()}, "what its bots were held to"),
        ({"record__enforced": ("time",)}, "not everything of 2 seats"),
        ({"record__enforced": ("a" * 5_000, "time")}, "a text of more than"),
        ({"record__times_ms": ()}, "0 times for"),
        ({"record__times_ms": (-1, *RECORD.times_ms[1:])}, "time of a decision that cannot be"),
        ({"record__times_ms": (1 << 40, *RECORD.times_ms[1:])}, "a decision that cannot be"),
        ({"record__notes": ((999, "note"),)}, "not what its cards and answers make"),
        ({"record__notes": ((0, "a"), (0, "b"))}, "not what its cards and answers make"),
        ({"record__notes": ((0, "a" * 600_000),)}, "notes of more than"),
        ({"record__also_out": (1,)}, "also"),
        ({"record__events": ("event",)}, ""),
        ({"record__termination": Termination(Ending.COMPLETED, 0)}, ""),
        ({"record__termination": Termination(Ending.VOID, 1)}, ""),
        ({"record__termination": Termination(Ending.CRASH, 0, "gone")}, ""),
        ({"record__termination": Termination(Ending.CRASH, 7, "gone")}, ""),
        ({"record__termination": Termination(Ending.CRASH, None, "gone")}, ""),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_result_that_was_altered_is_refused(fields: dict[str, Any], reason: str) -> None:
    said = why(altered(HONEST, **fields))

    assert said
    if reason != "also":
        assert reason in said


def test_a_match_of_another_game_is_refused() -> None:
    other = handed_in("blackjack")
    result = msgspec.structs.replace(HONEST, record=other.record)
    expected = msgspec.structs.replace(EXPECTED, commitment=expected_of(other).commitment)

    assert why(result, expected)


def test_what_cannot_be_played_again_by_the_rules_here_is_refused() -> None:
    with from_outside("ace_king_queen", version="2.0"):
        outside = handed_in()
    with from_outside("ace_king_queen", version="1.0"):
        said = why(outside, expected_of(outside))

    assert "was played by package leduc 2.0, and here it is of package leduc 1.0" in said


# ---- The ending and the verdict


@pytest.mark.parametrize("kind", [Ending.ILLEGAL, Ending.CRASH], ids=["illegal", "crash"])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", Ending.MALFORMED),
        ("match", "attempt-2"),
        ("game", "blackjack"),
        ("bot", "bot-1"),
        ("seat", 1),
        ("text", "seat 1 did nothing"),
        ("asked", None),
        ("legal", "nothing"),
        ("limits", Limits(decision_ms=5)),
        ("enforced", "nothing"),
        ("event", "another"),
    ],
)
def test_a_verdict_that_was_altered_is_refused(kind: Ending, field: str, value: object) -> None:
    result = ruled_out(kind=kind)

    said = why(altered(result, **{f"verdict__{field}": value}), expected_of(result))
    assert said.startswith("its verdict has wrong")
    assert field in said


def test_an_illegal_offence_whose_answer_is_legal_is_refused() -> None:
    """The rules are asked again, as a worker may dislike a bot (J1)."""
    result = ruled_out("bet")

    said = why(result, expected_of(result))
    assert said == 'it ended by an illegal answer, and "bet" is legal'


def test_an_illegal_offence_before_there_were_cards_is_refused() -> None:
    result = absent()
    ended = Termination(Ending.ILLEGAL, 0, "no start")
    result = altered(result, record__termination=ended, verdict__kind=Ending.ILLEGAL)

    assert why(altered(result, verdict__mechanism=Mechanism.RULES)) == (
        "it ended by an illegal answer, and nothing was asked"
    )
    assert "wrong mechanism" in why(result)


def with_text(result: AttemptResult, text: str) -> AttemptResult:
    ended = Termination(Ending.ILLEGAL, 0, text)
    return altered(result, verdict__text=text, record__termination=ended)


def of_seat(result: AttemptResult, seat: int) -> AttemptResult:
    """An offence of a seat that was not asked."""
    ended = Termination(Ending.ILLEGAL, seat, result.record.termination.text)
    unasked = dict.fromkeys(("verdict__asked", "verdict__legal"))
    return altered(
        result, record__termination=ended, verdict__seat=seat, verdict__bot=f"bot-{seat}", **unasked
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda result: altered(result, verdict=None), "it has no verdict"),
        (lambda result: with_text(result, 'seat 1 answered "no" to the teacher'), "the rules say"),
        (lambda result: of_seat(result, 1), "but seat 1 was asked"),
        (lambda result: altered(result, record__events=msgspec.UNSET), "wrong event"),
        (lambda result: altered(result, record__events=("a", "b")), "wrong event"),
        (lambda result: altered(result, record__also_out=(1,)), "only an arena can say"),
        (lambda result: altered(result, verdict__forgiven=True), "wrong forgiven"),
        (lambda result: altered(result, verdict__got=None), "wrong got"),
        (lambda result: altered(result, verdict__taken_ms=math.nan), "a time that is no number"),
        (lambda result: altered(result, verdict__credit_ms=math.inf), "a time that is no number"),
        (lambda result: altered(result, verdict__advice="a" * 5_000), "a text of more than"),
        (lambda result: altered(result, verdict__stderr="a" * (2 << 20)), "letters of stderr"),
        (lambda result: altered(result, voided_offence="memory"), "an offence is void"),
    ],
)
def test_an_offence_without_its_evidence_is_refused(
    change: Callable[[AttemptResult], AttemptResult], reason: str
) -> None:
    result = ruled_out()

    assert reason in why(change(result), expected_of(result))


@pytest.mark.parametrize(
    "fields",
    [
        {"verdict": ruled_out().verdict},
        {"record__scores": (1, -1)},
        {"record__answers": ("bet",)},
        {"record__seed": "0" * 64},
        {"record__termination": Termination(Ending.CRASH, 0, "gone")},
        {"record__termination": Termination(Ending.COMPLETED)},
        {"record__game": "blackjack"},
        {"record__settings": {}},
    ],
)
def test_a_match_that_has_not_begun_has_no_result(fields: dict[str, Any]) -> None:
    assert why(altered(unbegun(HONEST), **fields)) == "its match has not begun"


# ---- Numbers and sizes


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x91" * 1_000_000 + b"\x90", id="a list in a list, a million times"),
        pytest.param(b"\xdd\xff\xff\xff\xff", id="a list of 4 billion things"),
        pytest.param(b"\xdb\xff\xff\xff\xff", id="a text of 4 GiB"),
        pytest.param(b"\xdf\xff\xff\xff\xff", id="a map of 4 billion things"),
        pytest.param(b"\xa4\xff\xed\xa0\x80", id="a text that is not UTF-8"),
    ],
)
def test_bytes_that_are_no_result_are_refused(data: bytes) -> None:
    whole = encode(altered(HONEST, record__answers=("MARK",)))
    assert whole.count(b"\xa4MARK") == 1

    assert "cannot be read" in fit_of(whole.replace(b"\xa4MARK", data), EXPECTED).why
    assert "cannot be read" in fit_of(data, EXPECTED).why


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_in_one_line(data: bytes) -> None:
    said = fit_of(data, EXPECTED).why

    assert said.startswith("it cannot be read")
    assert said.isprintable()


@given(st.integers(0, len(encode(HONEST)) - 1), st.integers(1, 255))
def test_no_byte_can_be_changed_to_another_result(at: int, by: int) -> None:
    """What still fits is the same match: another duration, stderr or a time of a decision."""
    data = bytearray(encode(HONEST))
    data[at] ^= by
    fit = fit_of(bytes(data), EXPECTED)

    if not fit.why:
        result = msgspec.msgpack.decode(bytes(data), type=AttemptResult)
        for name in ("scores", "points", "termination", "seed"):
            assert getattr(result.record, name) == getattr(RECORD, name)
        assert result.job == HONEST.job
        assert result.verdict is None


def test_the_same_match_without_a_worker_is_as_the_arena_plays_it() -> None:
    plain = play("ace_king_queen")

    assert msgspec.structs.replace(RECORD, worker=msgspec.UNSET) == plain.record
