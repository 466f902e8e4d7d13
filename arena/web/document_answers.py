"""Answers questions in a process beside the arena: with a document, or an error in one line.

One `DocumentAnswers` lives as long as the process and caches what it has read and replayed. An
error does not affect the next question. Nothing here writes to the database.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa

from arena.records.visibility import Viewer
from arena.results.match_sums import next_sums
from arena.storage.reader import StoreReader
from arena.storage.schema import open_database
from arena.web import analysis_pages, competition_pages, match_pages
from arena.web.competition_pages import LUCK_S, CachedCompetition
from arena.web.documents import AnalysisState, AnalysisStatus, Refusal, error
from arena.web.match_pages import RecordedMatches, RequestedMatch
from arena.web.questions import (
    SUMS,
    AnalysisKind,
    AnalysisTask,
    PageAnswer,
    PersonalMatch,
    SideQuestion,
)
from arena.web.sized_cache import SizedCache
from protocol.errors import (
    ArenaError,
    NoAnalysis,
    NotInstalled,
    StoreFailed,
    UsageError,
    in_words,
    one_line,
)

__all__ = ["DocumentAnswers"]

_DOCUMENTS: Mapping[str, frozenset[str]] = {
    "competitions": frozenset(),
    "competitions/ID": frozenset(),
    "competitions/ID/cross": frozenset(),
    "competitions/ID/pairing": frozenset({"a", "b"}),
    "competitions/ID/bot": frozenset({"name"}),
    "competitions/ID/matches": frozenset({"before", "limit"}),
    "competitions/ID/strength": frozenset({"bot"}),
    "matches/ID": frozenset(),
    "matches/ID/rounds": frozenset({"from", "to"}),
    "matches/ID/record": frozenset({"seat"}),
    "matches/ID/mistakes": frozenset({"seat"}),
}
"""The documents by their path below `/api/`, and the parameters of each."""
_COMPETITIONS = 8  # to cache
_FOR_ALL = ("competitions/ID/cross", "competitions/ID/matches")  # the same for every viewer
_LIMIT = 100  # matches in one answer by default
_BUSY_MS = 3_000  # the longest wait for a lock on the database, as a browser waits
_UNREAD = "the database of this arena cannot be read, its log says why"
_LARGEST = 1 << 53  # integer that JavaScript can represent

Default = TypeVar("Default", int, None)

OnProgress = Callable[[int, int], None]


class DocumentAnswers:
    """Answers questions about the database at `where`, which the first question opens.

    Lines for the arena's log go to `log`. `clock` is monotonic, in seconds.
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
        self._is_server = "://" in where and not where.startswith("sqlite")
        self._competitions = SizedCache[str, CachedCompetition](_COMPETITIONS)
        self._recorded = RecordedMatches()
        self._stopwatch = competition_pages.Stopwatch()
        self._logged = ""

    def answer(
        self, question: SideQuestion, on_progress: OnProgress = lambda done, of: None
    ) -> PageAnswer:
        """Return the answer to a question. Never raises.

        `on_progress` is called with how much of an analysis is done, and the total.
        """
        if question.task is not None:
            status = self._analysed(question.task, question.personal_match, on_progress)
            return PageAnswer(200, msgspec.json.encode(status))
        try:
            return PageAnswer(200, self._document(question))
        except Refusal as refusal:
            return PageAnswer(refusal.status, error(str(refusal)))
        except Exception as failed:  # reading a damaged database may raise anything
            return PageAnswer(500, error(self._failed(failed)))

    def close(self) -> None:
        if self._reader is not None:
            self._reader.engine.dispose()

    # --- internal ---

    def _document(self, question: SideQuestion) -> bytes:
        query = _Query(question.query)
        if question.path == SUMS:
            return msgspec.json.encode(next_sums(self._opened(), query.number("after", 0)))
        place, id_ = _route(question.path)
        known = _DOCUMENTS[place]
        unknown = sorted(set(question.query) - known)
        if unknown:
            expected = " and ".join(sorted(known)) or "nothing"
            got = one_line(unknown[0], 40)
            raise Refusal(400, f"expected {expected} behind the `?`, got {got!r}")
        if place.startswith("matches/"):
            if question.personal_match is not None:
                played = match_pages.personal(question.personal_match, question.viewer)
            else:
                played = match_pages.stored(self._opened(), id_, question.viewer, time.time())
            return self._of_match(place, played, query, question.viewer)
        if not id_:
            return msgspec.json.encode(competition_pages.competitions(self._opened()))
        competition, viewer = self._competition(id_), question.viewer
        key: tuple[Any, ...] = (place, *sorted(question.query.items()))
        if place not in _FOR_ALL:
            key = (*key, viewer, time.time() // LUCK_S)

        def make() -> bytes:
            return msgspec.json.encode(self._of_competition(place, competition, query, viewer))

        return competition.cached(key, make)

    def _of_competition(
        self, place: str, cached: CachedCompetition, query: _Query, viewer: Viewer
    ) -> msgspec.Struct:
        match place.removeprefix("competitions/ID"):
            case "":
                return competition_pages.overview(cached, viewer, time.time())
            case "/cross":
                return competition_pages.cross_table(cached)
            case "/pairing":
                names = query.text("a"), query.text("b")
                return competition_pages.pairing(cached, *names, viewer)
            case "/bot":
                return competition_pages.bot(cached, self._stopwatch, query.text("name"), viewer)
            case "/strength":
                bot = query.text("bot")
                return analysis_pages.strength_task(cached, bot, viewer, time.time())
            case _:
                limit = query.number("limit", _LIMIT, most=competition_pages.MOST_MATCHES)
                return competition_pages.matches(cached, query.number("before", None), limit)

    def _of_match(self, place: str, match_: RequestedMatch, query: _Query, viewer: Viewer) -> bytes:
        match place.removeprefix("matches/ID"):
            case "":
                return msgspec.json.encode(self._recorded.page(match_))
            case "/rounds":
                first = query.number("from", 1)
                return self._recorded.rounds(match_, first, query.number("to", first))
            case "/mistakes":
                task = analysis_pages.mistakes_task(match_, query.number("seat", 1), viewer)
                return msgspec.json.encode(task)
            case _:
                return match_pages.record(match_, query.number("seat", None))

    def _competition(self, id_: str) -> CachedCompetition:
        """Return a competition with its latest results; raises `Refusal` for an unknown id."""
        competition = self._competitions.get(id_)
        if competition is None:
            reader = self._opened()
            try:
                reader.competition(id_)
            except UsageError:
                got = one_line(id_, 80)
                raise Refusal(404, f"expected the id of a competition, got {got!r}") from None
            competition = CachedCompetition(reader, id_, self._clock)
            self._competitions.put(id_, competition)
        try:
            competition.update()
        except BaseException:  # it may have read only a part of the new results
            self._competitions.drop(id_)
            raise
        return competition

    def _analysed(
        self, task: AnalysisTask, personal: PersonalMatch | None, on_progress: OnProgress
    ) -> AnalysisStatus:
        """Do an analysis, and return its final status, even after an exception."""
        on_progress(0, 0)  # from here on, a death of the process is blamed on the task
        done = task.status(AnalysisState.DONE)
        try:
            if task.kind is AnalysisKind.STRENGTH:
                strength = analysis_pages.strength(self._opened(), task, on_progress)
                return msgspec.structs.replace(done, strength=strength)
            record = self._opened().record(task.id) if personal is None else personal.record
            mistakes = analysis_pages.mistakes(record, task.id, task.seat, on_progress)
            return msgspec.structs.replace(done, mistakes=mistakes)
        except (NoAnalysis, NotInstalled, UsageError) as error:
            return task.status(AnalysisState.REFUSED, str(error))
        except Exception as failed:  # reading or replaying a damaged record may raise anything
            why = _why(failed)
            self._log(f"{task.kind} of {task.id}: {why}")
            text = _UNREAD if isinstance(failed, StoreFailed) else why
            return task.status(AnalysisState.FAILED, text)

    def _opened(self) -> StoreReader:
        if self._reader is None:
            engine, _ = open_database(self._where, create=False)
            engine.dispose()  # so that all connections get the short timeout
            sa.event.listen(engine, "connect", _set_timeout)
            self._reader = StoreReader(engine, "of this arena")
        return self._reader

    def _failed(self, failed: Exception) -> str:
        """Log an error, and return its text for visitors, which never names the database."""
        why = _why(failed)
        if why != self._logged:
            self._logged = why
            self._log(why)
        is_about_server = self._is_server and isinstance(failed, StoreFailed)
        if is_about_server or self._reader is None:
            return _UNREAD
        return why


def _why(failed: Exception) -> str:
    return str(failed) if isinstance(failed, ArenaError) else in_words(failed)


def _set_timeout(connection: Any, _: object) -> None:
    """Make a connection wait for locks for a shorter time than the writer does."""
    if type(connection).__module__.startswith("sqlite3"):
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
        return
    connection.autocommit = True  # within a transaction, the setting would be lost at its end
    connection.execute(f"SET lock_timeout = {_BUSY_MS}")
    connection.autocommit = False


class _Query:
    """The parameters of a question; reading one raises `Refusal` if it is missing or invalid."""

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self._parameters = parameters

    def text(self, name: str) -> str:
        """Read a bot's name, which must not be empty."""
        if not self._parameters.get(name):
            raise Refusal(400, f"expected `?{name}=…`, the name of a bot, got none")
        return self._parameters[name]

    def number(self, name: str, default: Default, *, most: int = _LARGEST) -> int | Default:
        """Read a whole number from 1 to `most`."""
        text = self._parameters.get(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdigit() and len(text) <= len(str(most))):
            got = one_line(text, 40)
            raise Refusal(400, f"expected a whole number for `{name}`, got {got!r}")
        if not 1 <= int(text) <= most:
            raise Refusal(400, f"expected a number from 1 to {most} for `{name}`, got {text}")
        return int(text)


def _route(path: str) -> tuple[str, str]:
    """Split a path into its key in `_DOCUMENTS` and its id; raises `Refusal` if unknown."""
    words = path.removeprefix("/api/").removesuffix(".json").split("/")
    place = "/".join("ID" if at == 1 else word for at, word in enumerate(words))
    is_known = place in _DOCUMENTS and all(words)
    if not (is_known and path.startswith("/api/") and path.endswith(".json")):
        got = one_line(path, 80)
        raise Refusal(404, f"expected /api/competitions.json or one below, got {got!r}")
    return place, "".join(words[1:2])
