"""Reads the records of all matches that a bot played in a competition, with its seat in each."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from arena.games.analysis import SeatMatch
from arena.games.match import Record
from arena.games.replay import playing_again
from arena.records.seat_document import seat_match
from arena.storage.models import MatchRow
from arena.storage.reader import StoreReader
from protocol.errors import StoreFailed, UsageError, in_words, one_line

__all__ = ["SeatRecord", "played_by", "seat_matches", "seat_records"]


class SeatRecord(msgspec.Struct, frozen=True):
    """A match, its record, and one of its seats, from 0."""

    match: MatchRow
    seat: int
    record: Record


def played_by(store: StoreReader, competition: str, bot: str) -> int:
    """Return the number of `seat_records`; raises `UsageError` if the bot never had a seat."""
    matches = store.matches(competition)
    bots = {name for played in matches for name in played.players}
    if bot not in bots:
        known = ", ".join(sorted(bots)) or "nobody"
        text = f"{bot!r} played no match of {competition}; expected one of: {known}"
        raise UsageError(one_line(text, 1000))
    return sum(played.players.count(bot) for played in matches if played.counts)


def seat_records(store: StoreReader, competition: str, bot: str) -> Iterator[SeatRecord]:
    """Yield a bot's counting matches in the order of writing; one per seat if it met itself.

    Raises `StoreFailed` if a record cannot be read.
    """
    for played, data in store.sealed_matches(competition, bot=bot):
        if not played.counts:
            continue
        try:
            record = Record.from_json(data)
        except (msgspec.DecodeError, TypeError, UnicodeError, RecursionError) as error:
            raise StoreFailed(f"cannot read match {played.id}: {in_words(error)}") from error
        for seat, name in enumerate(played.players):
            if name == bot:
                yield SeatRecord(played, seat, record)


def seat_matches(
    store: StoreReader, competition: str, bot: str, tick: Callable[[], None]
) -> Iterator[SeatMatch]:
    """Yield the same matches as the bot's seat saw them, with a `tick` after each.

    Raises `StoreFailed` if a record cannot be read, and `ArenaError` if it cannot be replayed.
    """
    for played in seat_records(store, competition, bot):
        with playing_again(f"match {played.match.id}"):
            yield seat_match(played.record, played.seat)
        tick()
