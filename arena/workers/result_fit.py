"""Whether a result that a worker has handed in fits what was put and announced. Pure.

A worker may be anybody's by now, and its data may be anything. What does not fit is one line. What
no check can see is the worker's word: answers, times, nonces (who knows seed and nonces may choose
both), that a match is void, offences other than `illegal`, and an illegal answer that is too long
for a verdict.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

import msgspec

from arena.competitions.jobs import unplayed_record
from arena.engine.match import Record
from arena.engine.shuffle import commitment
from arena.engine.statistics import UnitSums
from arena.engine.verdict import FORGIVABLE
from arena.games.replay import is_dealt, reopened
from arena.records.document import UNREADABLE, decoding_failure
from arena.records.verify import OpenQuestion, PlannedMatch, check_record
from arena.referee.seat import NOTE_BYTES
from arena.results.verdict_audit import misquoted
from arena.workers.messages import AttemptResult, BusJob, decode, encode
from protocol.errors import IllegalAnswer, in_words, one_line
from protocol.messages import Ending, Mechanism, Verdict
from protocol.vocabulary import shorten

__all__ = ["ExpectedAttempt", "ResultFit", "fit_of"]

_LONGEST = 500  # letters of a reason
_TEXT = 4_096  # letters of a text for people; ours are shorter than half of that
_STDERR = 1 << 20  # letters of what a process wrote; an arena stores 64 KiB
_PADDING = 4_096  # bytes of a result beyond twice what is in it
_DAY_MS = 86_400_000  # no limit is longer


class ExpectedAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt as it was announced, and the job that the arena has put."""

    job: BusJob
    attempt: str
    worker: str
    commitment: str


class ResultFit(msgspec.Struct, frozen=True):
    """Why a result does not count, in one line; empty if it fits, with the sums of its units."""

    why: str = ""
    units: UnitSums | None = None


def fit_of(data: bytes, expected: ExpectedAttempt) -> ResultFit:
    """Check an `AttemptResult`; nothing is raised, however broken or malicious it is."""
    try:
        result: AttemptResult = decode(data, AttemptResult)
        if len(data) > 2 * len(encode(result)) + _PADDING:  # the arena reads it once more
            return ResultFit("most of it is no result")
        return _fit(result, expected)
    except UNREADABLE as error:
        why = f"it cannot be read: {decoding_failure(error)}"
    except MemoryError:
        why = "it takes too much memory to check"
    except Exception as error:
        why = f"it cannot be checked: {in_words(error)}"
    return ResultFit(one_line(why, _LONGEST))


def _fit(result: AttemptResult, expected: ExpectedAttempt) -> ResultFit:
    for why in _announced(result, expected):
        return _unfit(why)
    for why in (*_sized(result), *_committed(result, expected)):
        return _unfit(why)
    if not result.has_begun:
        return ResultFit() if _is_void_unbegun(result) else _unfit("its match has not begun")
    record, job = result.record, expected.job
    planned = PlannedMatch(job.game, job.settings, job.package or msgspec.UNSET)
    checked = check_record(record, planned)
    if checked.unverified is not None:
        return _unfit(checked.unverified)
    for why in (*checked.reasons, *_ruled(result, checked.asked)):
        return _unfit(why)
    return ResultFit(units=checked.units)


def _unfit(why: str) -> ResultFit:
    return ResultFit(one_line(why, _LONGEST))


def _announced(result: AttemptResult, expected: ExpectedAttempt) -> Iterator[str]:
    """How it differs from the job, and from what the worker has announced."""
    job, record = expected.job, result.record
    for field in job.__struct_fields__:
        if getattr(result.job, field) != getattr(job, field):
            yield f"its job has another {field} than the one that was put"
    if result.attempt != expected.attempt:
        yield f"it is of attempt {shorten(result.attempt)}, expected {expected.attempt}"
    said = (result.worker, *([] if record.worker == msgspec.UNSET else [record.worker]))
    for worker in said:
        if worker != expected.worker:
            yield f"it is of worker {shorten(worker)}, {expected.worker} has announced it"
    if result.has_begun and not record.worker:
        yield f"its record names no worker, expected {expected.worker}"
    if (record.versions or ()) != job.versions:
        yield "its record has other versions of the bots than the job"


def _sized(result: AttemptResult) -> Iterator[str]:
    """What is too long or no number, and goes into the database as it comes."""
    record, verdict, seats = result.record, result.verdict, len(result.job.players)
    by_seat = [result.stderr, record.scores, record.points]
    if record.enforced:
        by_seat.append(record.enforced)
    if any(len(each) != seats for each in by_seat):
        yield f"it has not everything of {seats} seats"
    texts = [record.termination.text, result.voided_offence, *record.enforced]
    numbers: list[float | None] = []
    if verdict is not None:
        texts += [verdict.text, verdict.advice, verdict.event, verdict.got or ""]
        numbers += [verdict.taken_ms, verdict.waited_ms, verdict.credit_ms, verdict.min_rtt_ms]
    if any(len(text) > _TEXT for text in texts):
        yield f"it has a text of more than {_TEXT:,} letters"
    stderr = [*result.stderr, "" if verdict is None else verdict.stderr or ""]
    if any(len(text) > _STDERR for text in stderr):
        yield f"it has more than {_STDERR:,} letters of stderr"
    if any(number is not None and not math.isfinite(number) for number in numbers):
        yield "it has a time that is no number"
    if not all(0 <= took <= _DAY_MS for took in record.times_ms):
        yield "it has a time of a decision that cannot be"
    if sum(len(note) for _, note in record.notes) > seats * NOTE_BYTES:
        yield f"it has notes of more than {NOTE_BYTES:,} letters a seat"


def _committed(result: AttemptResult, expected: ExpectedAttempt) -> Iterator[str]:
    """Whether its cards come from the seed that was announced (J6)."""
    record = result.record
    if not result.has_begun:
        return
    try:
        seed = bytes.fromhex(record.seed or "")
    except ValueError:
        seed = b""
    if record.decks is not None or commitment(seed) != expected.commitment:
        yield "its seed is not the one whose commitment was announced"
    is_told = is_dealt(record) or bool(record.nonces)
    if record.commitment not in ({expected.commitment} if is_told else {expected.commitment, None}):
        yield "its record has another commitment than the one that was announced"
    if is_dealt(record) and not record.enforced:
        yield "its record does not say what its bots were held to"


def _is_void_unbegun(result: AttemptResult) -> bool:
    """Whether it is what is made of a match that never began (`unplayed_record`)."""
    job, record = result.job, result.record
    unplayed = unplayed_record(job.game, job.settings, len(job.players), record.termination.text)
    plain = msgspec.structs.replace(record, worker=msgspec.UNSET, versions=msgspec.UNSET)
    return result.verdict is None and plain == unplayed


def _ruled(result: AttemptResult, asked: OpenQuestion | None) -> Iterator[str]:
    """How ending and verdict do not fit each other, or the question that waited."""
    record, verdict = result.record, result.verdict
    ended = record.termination
    if record.also_out or record.away:
        yield "its record has seats that were away or are out too, which only an arena can say"
    if result.voided_offence and ended.kind is not Ending.VOID:
        yield f"it says that an offence is void, and its match is {ended.kind.value}"
    if not ended.is_offence:
        if verdict is not None or record.events:
            yield f"it has a verdict on a match that is {ended.kind.value}"
        return
    if verdict is None:
        yield f"its match ended by {ended.kind.value}, and it has no verdict"
        return
    odd = [*_misruled(result, verdict), *misquoted(verdict, asked)]
    if odd:
        yield f"its verdict has wrong {' and wrong '.join(odd)}"
    elif ended.kind is Ending.ILLEGAL:
        yield from _illegal(record, verdict, asked)


def _misruled(result: AttemptResult, verdict: Verdict) -> Iterator[str]:
    """The fields of a verdict that do not fit the match; its seat is one of the match's."""
    job, record = result.job, result.record
    ended = record.termination
    seat = ended.seat or 0
    is_illegal = ended.kind is Ending.ILLEGAL
    right = {
        "kind": verdict.kind is ended.kind,
        "match": verdict.match == result.attempt,
        "game": verdict.game == job.game,
        "seat": verdict.seat == ended.seat,
        "bot": verdict.bot == job.players[seat],
        "text": verdict.text == ended.text,
        "limits": verdict.limits == job.limits,
        "enforced": not record.enforced or verdict.enforced == record.enforced[seat],
        "event": record.events == (verdict.event,) and bool(verdict.event),
        "mechanism": not is_illegal or verdict.mechanism is Mechanism.RULES,
        "forgiven": not verdict.forgiven or verdict.kind in FORGIVABLE,
    }
    yield from (field for field, is_right in right.items() if not is_right)


def _illegal(record: Record, verdict: Verdict, asked: OpenQuestion | None) -> Iterator[str]:
    """Whether the rules refuse the answer, in these words (J1)."""
    if asked is None:
        yield "it ended by an illegal answer, and nothing was asked"
        return
    try:
        value = json.loads(verdict.got or "")
    except ValueError:  # it was cut, or is of no type of JSON
        return
    match = reopened(record)
    for _ in match.steps(record.answers):
        pass
    try:
        match.answer(value)
    except IllegalAnswer as error:
        if str(error) != verdict.text:
            yield f"it ended by {shorten(verdict.text)}, the rules say {shorten(str(error))}"
    else:
        yield f"it ended by an illegal answer, and {verdict.got} is legal"
