"""A record played again: the same cards and answers give the same result."""

from __future__ import annotations

from collections.abc import Mapping

from arena.engine.match import Match, MatchResult, Record, end
from arena.games import game_named
from protocol.errors import IllegalAnswer, UsageError
from protocol.messages import Ending

__all__ = ["replay"]


def replay(record: Record) -> MatchResult:
    """Play a record again from its cards and answers alone.

    The offence of a match that ended by one is taken from the record, as it lies outside the rules.

    Raises:
        IllegalAnswer: an answer in the record is not legal where it stands, or answers are missing.
        ValueError: it is no record of a match: unknown game, bad settings, no seed or decks, decks that do not suffice.
    """
    if (record.seed is None) == (record.decks is None):
        raise UsageError("expected a record with a seed or decks")
    game = game_named(record.game)
    settings: Mapping[str, object] = record.settings
    match = Match(
        game,
        game.vocabulary.read_settings(settings),
        seed=None if record.seed is None else bytes.fromhex(record.seed),
        nonces=record.nonces,
        decks=record.decks,
        enforced=record.enforced,
        commitment=record.commitment,
    )
    match.times_ms.extend(record.times_ms)
    notes = dict(record.notes)
    for number, value in enumerate(record.answers):
        if match.pending is None:
            raise IllegalAnswer(
                f"answer {number + 1} of the record comes after the end"
            )
        match.answer(value, notes.get(number))
    if match.termination is None:
        if record.termination.kind is Ending.COMPLETED:
            raise IllegalAnswer(
                f"the record says completed, but has only {len(record.answers)} answers"
            )
        end(match, record)
    return match.result()
