"""A record played again: the same cards and answers give the same result."""

from __future__ import annotations

from arena.engine.match import MatchResult, MatchState, Record
from arena.games import game_named
from protocol.errors import IllegalAnswer, UsageError, one_line
from protocol.messages import Ending

__all__ = ["is_dealt", "reopened", "replay"]

_WORDS = 160  # of what is wrong with a record


def is_dealt(record: Record) -> bool:
    """Whether there were cards: else a seat never came, or was never ready."""
    is_ready = bool(record.nonces) and all(record.nonces)
    is_done = record.termination.kind is Ending.COMPLETED
    return is_ready or is_done or bool(record.answers)


def reopened(record: Record, *, tells_deals: bool = False) -> MatchState:
    """The match of a record at its beginning, for `MatchState.steps`; one that was never dealt is not dealt now either.

    Raises:
        UsageError: it is no record of a match: unknown game, bad settings, no seed or decks, decks that do not suffice.
    """
    if (record.seed is None) == (record.decks is None):
        raise UsageError("expected a record with a seed or decks")
    game = game_named(record.game)
    settings: dict[str, object] = record.settings
    try:
        seed = None if record.seed is None else bytes.fromhex(record.seed)
    except ValueError:
        got = one_line(repr(record.seed), _WORDS)
        raise UsageError(f"expected a seed in hex, got {got}") from None
    return MatchState(
        game,
        game.vocabulary.read_settings(settings),
        seed=seed,
        nonces=record.nonces,
        decks=record.decks,
        start=is_dealt(record),
        enforced=record.enforced,
        commitment=record.commitment,
        tells_deals=tells_deals,
    )


def replay(record: Record) -> MatchResult:
    """Play a record again from its cards and answers alone.

    The offence of a match that ended by one is taken from the record, as it lies outside the rules.

    Raises:
        IllegalAnswer: an answer in the record is not legal where it stands, or answers are missing.
        UsageError: it is no record of a match: unknown game, bad settings, no seed or decks, decks that do not suffice.
    """
    match = reopened(record)
    if record.decks is not None and not is_dealt(record):
        # A match with stacked decks is dealt at once, even if a bot crashes before its first question.
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
        match.end(ended.kind, ended.seat, ended.text, record.also_out or (), record.events or ())
    return match.result()
