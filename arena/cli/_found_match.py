"""Finds the match that a command names: in a database, a file, or among recent local matches."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import sqlalchemy as sa

from arena.cli._arena_pages import ArenaPages, check_database, is_database_named, pages_asked_for
from arena.games.catalogue import game_named
from arena.games.match import Record
from arena.games.rules import Game
from arena.records import document as sheet
from arena.records.document import MatchDocument
from arena.records.seat_document import SeatDocument
from arena.results import audit_database
from arena.storage.reader import document_of
from arena.storage.recent_matches import MOST_KEPT, recent_match
from arena.storage.schema import MATCHES
from arena.storage.store import Store
from protocol.errors import ArenaError, StoreFailed, UsageError, in_words
from protocol.messages import Limits, Verdict
from protocol.strategy import house_bots

_LAST = "last"
_RECENT = re.compile(r"last(?:-([1-9]\d?))?")  # `last` is the latest, `last-2` the one before


class FoundRecord(msgspec.Struct, frozen=True):
    """A match: its record, and what a document or the database adds.

    If `seen` is set, the record has only what that seat saw: no hidden cards, no others' answers.
    """

    record: Record
    document: MatchDocument | None = None
    verdict: Verdict | None = None
    limits: Limits = Limits()
    seated: tuple[str, ...] = ()  # the names by seat, if there is no document
    seen: SeatDocument | None = None
    launched: tuple[str, ...] = ()  # the house bots of its competition, by their names there

    @property
    def players(self) -> tuple[str, ...]:
        return self.seated if self.document is None else self.document.players

    @property
    def name(self) -> str:
        """The match's id, or `replay` for a record without a document."""
        about = self.document or self.seen
        return "replay" if about is None else about.match

    def rules(self) -> Game:
        """Return the match's game; raises `ArenaError` if it is not installed here."""
        try:
            return game_named(self.record.game, self.record.package)
        except UsageError as error:
            raise ArenaError(f"match {self.name}: {error}") from None

    def names(self, game: Game) -> tuple[str, ...]:
        """Return the players by seat, or `seat-1`, `seat-2` ... if their names are not known."""
        if len(self.players) == game.seats:
            return self.players
        return tuple(f"seat-{seat}" for seat in range(1, game.seats + 1))

    def own_seats(self, game: Game) -> tuple[int, ...]:
        """Return the seats, from 0, not played by launched house bots, or the seat of `seen`.

        Raises `UsageError` if there is none.
        """
        if self.seen is not None:
            return (self.seen.seat - 1,)
        if game.seats == 1:
            return (0,)
        houses = {*house_bots(game.name, slow=True), *self.launched}
        seats = tuple(seat for seat, name in enumerate(self.names(game)) if name not in houses)
        if not seats:
            raise UsageError(f"expected --seat with one of: {', '.join(self.names(game))}")
        return seats

    def seat_of(self, who: str, game: Game) -> int:
        """Return the seat, from 0, of a name or a number from 1; `UsageError` if none fits."""
        names = self.names(game)
        if names.count(who) > 1:
            seats = [str(seat) for seat, name in enumerate(names, start=1) if name == who]
            raise UsageError(f"expected a seat's number: {who} has seats {' and '.join(seats)}")
        if who in names:
            return names.index(who)
        if who.isascii() and who.isdigit() and 1 <= int(who) <= game.seats:
            return int(who) - 1
        raise UsageError(
            f"expected a seat from 1 to {game.seats} or {' or '.join(names)}, got {who!r}"
        )


def find_match(match: str, db: str) -> FoundRecord:
    """Find a match by an id, a file, `last` or `last-2`.

    Recent local matches are searched only without `--db`; with `--url`, that arena is asked. Raises
    `UsageError` if there is no such match, `ArenaError` if it is damaged or the arena refuses it.
    """
    if (pages := pages_asked_for()) is not None:
        return _from_arena(match, pages)
    return (None if is_database_named() else _recent(match, db)) or _find(match, db)


def match_or_none(where: str, db: str) -> FoundRecord | None:
    """Do as `find_match`, but return None if the database has no such match.

    `where` may then be the id of a competition.
    """
    try:
        return find_match(where, db)
    except UsageError:
        if (
            pages_asked_for() is not None
            or _RECENT.fullmatch(where)
            or ("://" not in db and not Path(db).is_file())
        ):
            raise
        return None


def _from_arena(match: str, pages: ArenaPages) -> FoundRecord:
    """Fetch a match from an arena by its id, or by `ID.SEAT` as its bots know it."""
    id_, _, seat = match.rpartition(".")
    if not (id_ and seat.isascii() and seat.isdigit()):
        return _read(pages.get("matches", match, "record"), f"match {match}")
    return _read(pages.get("matches", id_, "record", seat=int(seat) + 1), f"match {id_}")


def _read(text: bytes, name: str) -> FoundRecord:
    """Decode a match from the text of a file or of the page; raises `ArenaError` if invalid."""
    try:
        document = sheet.read(text)
        if isinstance(document, MatchDocument):
            return FoundRecord(document.read_record(), document)
        if isinstance(document, SeatDocument):
            return FoundRecord(document.record, seated=document.players, seen=document)
    except UsageError as error:
        raise ArenaError(f"{name}: {error}") from None
    return FoundRecord(document)


def _find(match: str, db: str) -> FoundRecord:
    path = Path(match)
    if path.is_file():
        return _read(path.read_bytes(), str(path))
    if path.suffix in (".json", ".jsonl"):
        raise UsageError(f"found no file {match}")
    check_database(db)
    with audit_database.opened(db) as store:
        return _stored(store, match)


def _recent(match: str, db: str) -> FoundRecord | None:
    """Find a match that was played here without a database; None if `match` names no such match."""
    number = _RECENT.fullmatch(match)
    if number is None or Path(match).is_file():
        return None
    recent = recent_match(int(number[1] or 1))
    if match != _LAST and recent is None:
        raise UsageError(f"expected one of the last {MOST_KEPT} matches played here, got {match}")
    if recent is None:
        return None
    # A database file (or its log) unchanged since the recent match has no later match.
    files = [file for file in (Path(db), Path(f"{db}-wal")) if file.is_file()]
    if match == _LAST and any(file.stat().st_mtime > recent.finished_at for file in files):
        stored = _find(match, db)
        if stored.document is not None and stored.document.finished_at > recent.finished_at:
            return stored
    return FoundRecord(recent.record, seated=recent.players)


def _stored(store: Store, match: str) -> FoundRecord:
    columns = sa.select(MATCHES.c.id, MATCHES.c.record)
    ids = (match, match.rpartition(".")[0])  # the bot in the first seat calls the match `ID.0`
    query = columns.where(MATCHES.c.id.in_(ids))
    if match == _LAST:
        query = columns.order_by(MATCHES.c.number.desc()).limit(1)
    try:
        with store.engine.connect() as connection:
            row = connection.execute(query).first()
        if row is None:
            what = "a match" if match == _LAST else "the id of a match or `last`"
            raise UsageError(f"expected {what} in the database, got {match!r}")
        played = store.played(row.id)
        document = document_of(played, row.record)
        verdicts = [
            verdict for verdict in store.verdicts(played.competition) if verdict.match == played.id
        ]
        plan = store.competition(played.competition).plan
        launched = (*(bot.name for bot in plan.bots if bot.house is not None), *plan.house)
    except ArenaError:
        raise
    except Exception as error:  # a damaged database may be broken in any way
        raise StoreFailed(f"cannot read match {match}: {in_words(error)}") from error
    try:
        record = document.read_record()
    except UsageError as error:
        raise ArenaError(f"match {played.id}: {error}") from None
    verdict = verdicts[0] if verdicts else None
    return FoundRecord(record, document, verdict, plan.limits, launched=launched)
