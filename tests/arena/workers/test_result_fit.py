"""What an attacker who controls a worker can hand in, and what is said of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.engine.match import MatchResult
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
SEATS = range(len(HONEST.job.players))


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


def test_versions_and_what_a_worker_does_not_charge_fit() -> None:
    result = handed_in(versions=("v3", "v1"))
    assert why(result, expected_of(result)) == ""

    result = voided(voided_offence="crash: the worker had no memory")
    assert why(result, EXPECTED) == ""


def test_J5_a_match_that_is_void_fits_before_it_has_begun_and_in_the_middle() -> None:
    assert why(unbegun(HONEST)) == ""
    assert why(altered(unbegun(HONEST), record__worker="north")) == ""
    assert why(voided()) == ""


def test_a_bot_that_could_not_be_started_fits() -> None:
    result = absent()

    assert why(result) == ""


def voided(**fields: Any) -> AttemptResult:
    match = reopened(msgspec.structs.replace(RECORD, answers=()))
    match.end(Ending.VOID, None, FAULT)
    return altered(HONEST, record=match.result().record, **fields)


def absent(**fields: Any) -> AttemptResult:
    """A match before which a bot could not be started: no seat has heard of it."""
    blank = msgspec.structs.replace(
        RECORD, answers=(), nonces=(), commitment=None, enforced=(), times_ms=()
    )
    match = reopened(
        msgspec.structs.replace(blank, termination=Termination(Ending.ABSENT, 0, "no start"))
    )
    match.end(Ending.ABSENT, 0, "no start", events=("attempt-1.0",))
    ruling = ruled_out(kind=Ending.ABSENT).verdict
    assert ruling is not None
    verdict = msgspec.structs.replace(
        ruling, seat=0, bot="bot-0", event="attempt-1.0", text="no start", asked=None, legal=None
    )
    return altered(HONEST, record=match.result().record, verdict=verdict, **fields)


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


def test_another_attempt_or_worker_than_announced_is_refused() -> None:
    assert why(altered(HONEST, attempt="x\n")) == 'it is of attempt "x\\n", expected attempt-1'
    assert why(altered(HONEST, worker="south")) == (
        'it is of worker "south", north has announced it'
    )
    assert why(altered(HONEST, record__worker="south")) == (
        'it is of worker "south", north has announced it'
    )
    assert why(altered(HONEST, record__worker=msgspec.UNSET)) == (
        "its record names no worker, expected north"
    )


def test_a_match_with_cards_of_another_seed_is_refused() -> None:
    """It was played with cards that were looked for, or twice."""
    other = handed_in(number=2)

    assert why(other) == "its seed is not the one whose commitment was announced"
    for seed in (None, "", "no", other.record.seed):
        assert "its seed is not the one" in why(altered(HONEST, record__seed=seed))


def test_another_commitment_than_the_one_announced_is_refused() -> None:
    other = msgspec.structs.replace(EXPECTED, commitment="0" * 64)

    assert "its seed is not the one" in why(HONEST, other)
    for commitment in ("0" * 64, None):
        told = why(altered(HONEST, record__commitment=commitment))
        assert told == "its record has another commitment than the one that was announced"


def test_given_decks_are_refused() -> None:
    result = altered(HONEST, record__decks=(), record__seed=None)

    assert "its seed is not the one" in why(result)


# ---- The record


def swapped(scores: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(score + 1 for score in scores)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
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
def test_a_record_that_was_altered_is_refused(fields: dict[str, Any], reason: str) -> None:
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


def test_an_illegal_offence_in_other_words_than_the_rules_is_refused() -> None:
    result = ruled_out()
    text = 'seat 1 answered "no" to the teacher'
    result = altered(
        result, verdict__text=text, record__termination=Termination(Ending.ILLEGAL, 0, text)
    )

    assert "the rules say" in why(result, expected_of(result))


def test_an_illegal_offence_of_a_seat_that_was_not_asked_is_refused() -> None:
    result = ruled_out()
    text = result.record.termination.text
    result = altered(
        result,
        record__termination=Termination(Ending.ILLEGAL, 1, text),
        verdict__seat=1,
        verdict__bot="bot-1",
        verdict__asked=None,
        verdict__legal=None,
    )

    assert "but seat 1 was asked" in why(result, expected_of(result))


def test_an_illegal_offence_before_there_were_cards_is_refused() -> None:
    result = absent()
    ended = Termination(Ending.ILLEGAL, 0, "no start")
    result = altered(result, record__termination=ended, verdict__kind=Ending.ILLEGAL)

    assert why(altered(result, verdict__mechanism=Mechanism.RULES)) == (
        "it ended by an illegal answer, and nothing was asked"
    )
    assert "wrong mechanism" in why(result)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda result: altered(result, verdict=None), "it has no verdict"),
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


def test_a_verdict_on_a_match_without_an_offence_is_refused() -> None:
    verdict = ruled_out().verdict

    assert why(altered(HONEST, verdict=verdict)) == "it has a verdict on a match that is completed"
    assert why(voided(verdict=verdict)) == "it has a verdict on a match that is void"


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


def test_a_match_that_was_played_is_not_one_that_has_not_begun() -> None:
    assert why(altered(HONEST, has_begun=False)) == "its match has not begun"


# ---- Numbers and sizes


def test_stderr_of_more_seats_or_more_letters_is_refused() -> None:
    assert "not everything" in why(altered(HONEST, stderr=("",)))
    assert "letters of stderr" in why(altered(HONEST, stderr=("a" * (2 << 20), "")))


@pytest.mark.parametrize(
    "answer", [1 << 63, -(1 << 62), math.nan, "a" * 1_000_000, [[]] * 100_000, {"a": {"b": [0]}}]
)
def test_huge_and_odd_answers_are_refused(answer: object) -> None:
    said = why(altered(HONEST, record__answers=(answer, *RECORD.answers[1:])))

    assert "cannot be played again" in said


def test_what_is_nested_without_end_is_refused() -> None:
    """msgpack of one byte a level: a list in a list, a million times."""
    deep = b"\x91" * 1_000_000 + b"\x90"
    marked = encode(altered(HONEST, record__answers=("MARK",)))
    data = marked.replace(b"\xa4MARK", deep)
    assert data != marked

    assert "cannot be read" in fit_of(data, EXPECTED).why


def test_a_length_that_is_not_there_is_refused() -> None:
    """msgpack that says a list of 4 billion things, or a text of 4 GiB."""
    for head in (b"\xdd\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff"):
        data = encode(altered(HONEST, record__answers=("MARK",))).replace(b"\xa4MARK", head)

        assert "cannot be read" in fit_of(data, EXPECTED).why
        assert "cannot be read" in fit_of(head, EXPECTED).why


def test_texts_that_are_not_UTF_8_are_refused() -> None:
    data = encode(altered(HONEST, attempt="MARK")).replace(b"MARK", b"\xff\xed\xa0\x80")

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
        told = MatchResult(
            *(getattr(result.record, name) for name in ("scores", "points", "termination")),
            record=result.record,
        )
        assert told.scores == RECORD.scores
        assert told.termination == RECORD.termination
        assert result.job == HONEST.job
        assert result.record.seed == RECORD.seed
        assert result.verdict is None


def test_a_match_that_never_began_over_the_network_fits() -> None:
    result = handed_in(result=void("ace_king_queen"))
    result = altered(result, record__worker="north")

    assert why(result, expected_of(result)) == ""


def test_the_same_match_without_a_worker_is_as_the_arena_plays_it() -> None:
    plain = play("ace_king_queen")

    assert msgspec.structs.replace(RECORD, worker=msgspec.UNSET) == plain.record
