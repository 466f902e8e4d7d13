"""Checks the attempts of workers at the matches of a competition against these matches. Pure.

Only an attempt that was announced, with its commitment, may have the result of a pairing: else a
worker could play matches until it likes the cards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from arena.storage.attempts import AttemptRow, AttemptState
from arena.storage.models import MatchRow
from protocol.errors import one_line
from protocol.vocabulary import shorten

__all__ = ["misattempted", "resultless"]

_SHOWN = 5  # most workers that a note lists


def misattempted(
    matches: Sequence[MatchRow],
    recorded: Mapping[str, tuple[str, str | None]],
    attempts: Sequence[AttemptRow],
) -> Iterator[tuple[str, str]]:
    """The matches that do not fit the attempts, by their ids, with what is wrong.

    `recorded` has, by the ids of matches whose records name a worker, it and the commitment.
    """
    announced = {attempt.id: attempt for attempt in attempts}
    for match in matches:
        worker, commitment = recorded.get(match.id, ("", None))
        attempt = announced.get(match.id)
        if attempt is not None:
            for text in _misfits(match, worker, commitment, attempt):
                yield match.id, text
        elif worker:
            yield match.id, f"its record is of worker {one_line(worker)}, which announced nothing"


def _misfits(
    match: MatchRow, worker: str, commitment: str | None, attempt: AttemptRow
) -> Iterator[str]:
    # The arena itself writes that a match is void of which no worker has said anything.
    if worker != attempt.worker and match.counts:
        said = f"worker {one_line(worker)}" if worker else "no worker"
        yield f"its record is of {said}, worker {one_line(attempt.worker)} has announced it"
    if commitment not in (None, attempt.commitment):
        yield f"its commitment is not the one that was announced, {shorten(attempt.commitment)}"
    if match.pairing != attempt.pairing:
        yield f"it was announced for pairing {attempt.pairing}"
    if match.players != attempt.players:
        yield f"it was announced for {' v '.join(map(one_line, attempt.players))}"
    if match.counts and attempt.state is AttemptState.VOID:
        yield f"its attempt is void, and it is counted all the same: {one_line(attempt.why)}"


def resultless(matches: Sequence[MatchRow], attempts: Sequence[AttemptRow]) -> Iterator[str]:
    """A line about the attempts that have no result, and who made them."""
    counted = {match.id for match in matches if match.counts}
    missing = [
        attempt
        for attempt in attempts
        if attempt.state is not AttemptState.OPEN and attempt.id not in counted
    ]
    if not missing:
        return
    workers = Counter(attempt.worker for attempt in missing).most_common()
    names = ", ".join(f"{one_line(worker)} ({number:,})" for worker, number in workers[:_SHOWN])
    more = f" and {len(workers) - _SHOWN:,} more" if len(workers) > _SHOWN else ""
    what = "1 attempt" if len(missing) == 1 else f"{len(missing):,} attempts"
    yield (
        f"{what} of workers {'has' if len(missing) == 1 else 'have'} no result: {names}{more}; "
        f"the latest is of pairing {missing[-1].pairing}: {one_line(missing[-1].why)}"
    )
