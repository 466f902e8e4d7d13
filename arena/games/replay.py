"""Plays a record again: the same cards and answers give the same result."""

from __future__ import annotations

import msgspec

from arena.engine.match import MatchResult, MatchState, Record
from arena.engine.rules import Game
from arena.games import game_named
from protocol.errors import IllegalAnswer, UsageError, one_line
from protocol.messages import Ending

__all__ = ["is_dealt", "reopened", "replay"]

_SEED_LENGTH = 160  # characters of a bad seed in the error; a real one has 64


def is_dealt(record: Record) -> bool:
    """Whether cards were dealt; not if a seat never came, or was never ready."""
    is_ready = bool(record.nonces) and all(record.nonces)
    is_done = record.termination.kind is Ending.COMPLETED
    return is_ready or is_done or bool(record.answers)


def reopened(record: Record, *, tells_deals: bool = False, game: Game | None = None) -> MatchState:
    """The match of a record at its beginning, for `MatchState.steps`; dealt only if it was then.

    `game` takes the place of the one that the record names: the same, but its rules report.

    Raises `UsageError` for an unknown game, bad settings, no seed and no decks, or too few decks,
    and `NotInstalled` if the package of the game is missing.
    """
    if (record.seed is None) == (record.decks is None):
        raise UsageError("expected a record with a seed or decks")
    game = game or game_named(record.game, record.package)
    try:
        seed = None if record.seed is None else bytes.fromhex(record.seed)
    except ValueError:
        got = one_line(repr(record.seed), _SEED_LENGTH)
        raise UsageError(f"expected a seed in hex, got {got}") from None
    return MatchState(
        game,
        game.vocabulary.read_settings(record.settings),
        seed=seed,
        nonces=record.nonces,
        decks=record.decks,
        start=is_dealt(record),
        enforced=record.enforced,
        commitment=record.commitment,
        tells_deals=tells_deals,
        versions=record.versions or (),
    )


def replay(record: Record) -> MatchResult:
    """Play a record again from its cards and answers alone; raises also what `reopened` raises.

    An offence is taken from the record, as it lies outside the rules. `IllegalAnswer` says that an
    answer in the record is not legal where it stands, or that answers are missing.
    """
    match = reopened(record)
    if record.decks is not None and not is_dealt(record):
        # Stacked decks are dealt at once, even if a bot crashes before its first question.
        match.start()
    answers, ended = record.answers, record.termination
    for _ in match.steps(answers):
        pass
    match.times_ms.extend(record.times_ms)
    notes = dict(record.notes)
    match.notes = [(n, notes[n]) for n in sorted(notes) if 0 <= n < len(answers)]
    if match.termination is None:
        if ended.kind is Ending.COMPLETED:
            raise IllegalAnswer(f"the record says completed, but has only {len(answers)} answers")
        also_out, events = record.also_out or (), record.events or ()
        match.end(ended.kind, ended.seat, ended.text, also_out, events, record.away or ())
    result = match.result()
    if record.worker:  # it says who refereed, which no replay makes
        again = msgspec.structs.replace(result.record, worker=record.worker)
        result = msgspec.structs.replace(result, record=again)
    return result
