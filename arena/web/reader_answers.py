"""What the reader process says to a question: which document it is about, who may see it, and what is wrong with it.

One `DocumentAnswers` lives as long as the process and keeps what it has read and told. Whatever goes wrong is one line and a status, and
the next question is answered as if nothing had been. Nothing here writes.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import msgspec
import sqlalchemy as sa

from arena.records.visibility import Viewer
from arena.storage.reader import StoreReader
from arena.storage.schema import open_database
from arena.web import bot_pages, competition_pages, match_pages
from arena.web.competition_cache import CachedCompetition
from arena.web.documents import Refusal, error
from arena.web.match_rounds import RecordedMatches
from arena.web.reader_questions import QUERY, Query, ReaderQuestion, ReaderReply, route
from protocol.errors import ArenaError, StoreFailed, UsageError, in_words, one_line

__all__ = ["DocumentAnswers"]

_COMPETITIONS = 8  # that are followed at once
_LIMIT = 100  # matches in one answer, if nobody says otherwise
_BUSY_MS = 3_000  # somebody else has the database for itself: long enough, as a page waits


class DocumentAnswers:
    """Answers questions about one database, which is opened with the first one.

    Args:
        where: a file, or `postgresql+psycopg://…`, with its password.
        log: told of what the arena's log should have, a line each.
        clock: a monotonic one, in seconds.
    """

    def __init__(
        self,
        where: str,
        log: Callable[[str], None] = lambda line: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._where = where
        self._log = log
        self._clock = clock
        self._reader: StoreReader | None = None
        self._engine: sa.Engine | None = None
        self._is_server = "://" in where and not where.startswith("sqlite")
        self._followed: OrderedDict[str, CachedCompetition] = OrderedDict()
        self._tellings = RecordedMatches()
        self._stopwatch: bot_pages.Stopwatch | None = None
        self._logged = ""

    def answer(self, question: ReaderQuestion) -> ReaderReply:
        """The answer to a question; nothing is raised."""
        try:
            return ReaderReply(200, self._document(question))
        except Refusal as refusal:
            return ReaderReply(refusal.status, error(str(refusal)))
        except ArenaError as failed:
            return ReaderReply(500, error(self._failed(failed, str(failed))))
        except Exception as failed:  # a damaged database may be broken in any way
            return ReaderReply(500, error(self._failed(failed, in_words(failed))))

    def close(self) -> None:
        """Let go of the database."""
        if self._engine is not None:
            self._engine.dispose()

    # --- within ---

    def _document(self, question: ReaderQuestion) -> bytes:
        name, what = route(question.path)
        unknown = sorted(set(question.query) - QUERY[name])
        if unknown:
            known = " and ".join(sorted(QUERY[name])) or "nothing"
            got = one_line(unknown[0], 40)
            raise Refusal(400, f"expected {known} behind the `?`, got {got!r}")
        query, viewer = Query(question.query), question.viewer
        if name in ("match", "rounds", "record"):
            return self._of_match(name, what, query, question)
        if name == "competitions":
            return _encoded(competition_pages.competitions(self._opened()))
        cached = self._following(what)
        key: tuple[Any, ...] = (name, *sorted(question.query.items()))
        if name in ("overview", "bot"):
            key = (*key, viewer)
        return cached.kept(key, lambda: _encoded(self._of_competition(name, cached, query, viewer)))

    def _of_competition(
        self, name: str, cached: CachedCompetition, query: Query, viewer: Viewer
    ) -> msgspec.Struct:
        match name:
            case "overview":
                return competition_pages.overview(cached, viewer)
            case "cross":
                return competition_pages.cross_table(cached)
            case "pairing":
                return competition_pages.pairing(cached, query.text("a"), query.text("b"))
            case "bot":
                if self._stopwatch is None:
                    self._stopwatch = bot_pages.Stopwatch(cached.reader)
                return bot_pages.bot(cached, self._stopwatch, query.text("name"), viewer)
            case _:
                limit = query.number("limit", _LIMIT, most=competition_pages.MOST_MATCHES)
                before = query.number("before", 0) if query.has("before") else None
                return competition_pages.matches(cached, before, limit)

    def _of_match(self, name: str, match_id: str, query: Query, question: ReaderQuestion) -> bytes:
        if question.parlour is not None:
            found = match_pages.sat_down(question.parlour, question.viewer)
        else:
            found = match_pages.written(self._opened(), match_id, question.viewer)
        match name:
            case "match":
                return _encoded(match_pages.page(found, self._tellings))
            case "rounds":
                first = query.number("from", 1)
                last = query.number("to", first)
                return match_pages.rounds(found, self._tellings, first, last)
            case _:
                return match_pages.record(found)

    def _following(self, competition: str) -> CachedCompetition:
        """A competition, as far as it is now.

        Raises:
            Refusal: there is none.
        """
        cached = self._followed.get(competition)
        if cached is None:
            reader = self._opened()
            try:
                reader.competition(competition)
            except UsageError:
                got = one_line(competition, 80)
                raise Refusal(404, f"expected the id of a competition, got {got!r}") from None
            cached = CachedCompetition(reader, competition, self._clock)
            self._followed[competition] = cached
            if len(self._followed) > _COMPETITIONS:
                self._followed.popitem(last=False)
        self._followed.move_to_end(competition)
        try:
            cached.look()
        except BaseException:  # it may have read a part of what is new
            del self._followed[competition]
            raise
        return cached

    def _opened(self) -> StoreReader:
        if self._reader is None:
            engine, _ = open_database(self._where, create=False)
            engine.dispose()  # the connections from here on are hurried
            sa.event.listen(engine, "connect", _hurry)
            self._reader, self._engine = StoreReader(engine, "of this arena"), engine
        return self._reader

    def _failed(self, failed: Exception, why: str) -> str:
        """What somebody is told who need not know where the database is; the log has it all."""
        if why != self._logged:
            self._logged = why
            self._log(why)
        is_about_server = self._is_server and isinstance(failed, StoreFailed)
        if is_about_server or self._reader is None:
            return "the database of this arena cannot be read, its log says why"
        return why


def _encoded(document: msgspec.Struct) -> bytes:
    return msgspec.json.encode(document)


def _hurry(connection: Any, _: object) -> None:
    """Who looks at a page does not wait as long as who writes down a match."""
    if type(connection).__module__.startswith("sqlite3"):
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
        return
    connection.autocommit = True  # else it would end with the first transaction
    connection.execute(f"SET lock_timeout = {_BUSY_MS}")
    connection.autocommit = False
