"""What a worker hands in, and what the arena knows of it: honest, to be altered by tests."""

from __future__ import annotations

from typing import Any

import msgspec

from arena.engine.match import MatchResult, Record
from arena.games import GAMES
from arena.games.replay import reopened
from arena.workers.messages import AttemptResult, BusJob, HouseBot
from arena.workers.result_fit import ExpectedAttempt
from protocol.messages import Ending, Limits, Mechanism, Termination
from protocol.vocabulary import shorten
from tests.support import sample_database
from tests.support.fake_bots import ANY_GAME

__all__ = ["ATTEMPT", "WORKER", "altered", "expected_of", "handed_in", "ruled_out", "unbegun"]

ATTEMPT = "attempt-1"
WORKER = "north"


def handed_in(
    game: str = ANY_GAME, number: int = 1, result: MatchResult | None = None, **more: Any
) -> AttemptResult:
    """The result of a match that ran its course, or of a given one."""
    played = result or sample_database.play(game, number, worker=WORKER, **more)
    record, seats = played.record, range(GAMES[game].seats)
    job = BusJob(
        arena="arena-1",
        id="job-1",
        game=game,
        settings=record.settings,
        limits=Limits(),
        players=tuple(f"bot-{seat}" for seat in seats),
        programs=tuple(HouseBot("random") for _ in seats),
        package=record.package or None,
        versions=record.versions or (),
    )
    return AttemptResult(
        job=job,
        attempt=ATTEMPT,
        worker=WORKER,
        record=record,
        verdict=None,
        stderr=("",) * len(seats),
        has_begun=True,
    )


def ruled_out(
    value: object = "no", kind: Ending = Ending.ILLEGAL, game: str = ANY_GAME, **more: Any
) -> AttemptResult:
    """The result of a match that the first seat that was asked ended, with that answer."""
    honest = handed_in(game, **more)
    match = reopened(msgspec.structs.replace(honest.record, answers=()))
    asked = match.pending
    assert asked is not None, "a match begins with a question"
    text = f"seat {asked.seat + 1} left"
    if kind is Ending.ILLEGAL:
        text = f"seat {asked.seat + 1} {asked.question.refusal(value)}"
    event = f"{ATTEMPT}.{asked.seat}"
    match.end(kind, asked.seat, text, events=(event,))
    result, is_illegal = match.result(), kind is Ending.ILLEGAL
    verdict = msgspec.structs.replace(
        sample_database.verdict_of(ATTEMPT, honest.job.players, result),
        mechanism=Mechanism.RULES if is_illegal else Mechanism.EXIT,
        got=shorten(value) if is_illegal else None,
        limits=honest.job.limits,
        event=event,
    )
    return msgspec.structs.replace(honest, record=result.record, verdict=verdict)


def expected_of(result: AttemptResult) -> ExpectedAttempt:
    """What the arena knows of an honest result."""
    return ExpectedAttempt(
        job=result.job,
        attempt=result.attempt,
        worker=result.worker,
        commitment=result.record.commitment or "",
    )


def altered(result: AttemptResult, **fields: Any) -> AttemptResult:
    """The result with other fields; those of record, verdict and job go by `record__scores`."""
    inner: dict[str, dict[str, Any]] = {}
    outer: dict[str, Any] = {}
    for name, value in fields.items():
        whole, _, part = name.partition("__")
        if part:
            inner.setdefault(whole, {})[part] = value
        else:
            outer[name] = value
    for whole, parts in inner.items():
        outer[whole] = msgspec.structs.replace(getattr(result, whole), **parts)
    return msgspec.structs.replace(result, **outer)


def unbegun(result: AttemptResult, why: str = "cancelled") -> AttemptResult:
    """The void result of the same job, whose match has not begun."""
    zeros = (0,) * len(result.job.players)
    record = Record(
        game=result.job.game,
        settings=result.job.settings,
        seed=None,
        nonces=(),
        decks=None,
        answers=(),
        scores=zeros,
        points=zeros,
        termination=Termination(Ending.VOID, None, why),
    )
    return msgspec.structs.replace(result, record=record, has_begun=False)
