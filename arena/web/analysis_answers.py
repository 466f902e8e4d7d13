"""How the process that analyses does an `AnalysisTask`: the status that ends it, whatever happens.

One `AnalysisAnswers` lives as long as the process. Nothing here writes.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from arena.storage.reader import StoreReader
from arena.web import analysis_pages
from arena.web.analysis_documents import AnalysisState, AnalysisStatus
from arena.web.analysis_tasks import AnalysisKind, AnalysisQuestion
from arena.web.reader_answers import open_reader
from protocol.errors import ArenaError, NoAnalysis, NotInstalled, StoreFailed, UsageError, in_words

__all__ = ["AnalysisAnswers"]

_UNREAD = "the database of this arena cannot be read, its log says why"


class AnalysisAnswers:
    """Does tasks with the database at `where`, which the first one opens; `log` takes lines."""

    def __init__(self, where: str, log: Callable[[str], None] = lambda line: None) -> None:
        self._where = where
        self._log = log
        self._reader: StoreReader | None = None

    def answer(
        self,
        question: AnalysisQuestion,
        on_progress: Callable[[int, int], None] = lambda done, of: None,
    ) -> AnalysisStatus:
        """The end of a task; nothing is raised. `on_progress` gets how much is done, of what."""
        task = question.task
        try:
            return self._done(question, on_progress)
        except (NoAnalysis, NotInstalled, UsageError) as error:
            return task.status(AnalysisState.REFUSED, str(error))
        except Exception as failed:  # reading or replaying a damaged record may raise anything
            why = str(failed) if isinstance(failed, ArenaError) else in_words(failed)
            self._log(f"{task.kind} of {task.id}: {why}")
            text = _UNREAD if isinstance(failed, StoreFailed) else why
            return task.status(AnalysisState.FAILED, text)

    # --- within ---

    def _done(
        self, question: AnalysisQuestion, on_progress: Callable[[int, int], None]
    ) -> AnalysisStatus:
        task, personal = question.task, question.personal_match
        done = task.status(AnalysisState.DONE)
        if task.kind is AnalysisKind.STRENGTH:
            made = analysis_pages.strength(self._opened(), task, on_progress)
            return msgspec.structs.replace(done, strength=made)
        record = self._opened().record(task.id) if personal is None else personal.record
        page = analysis_pages.mistakes(record, task.id, task.seat, on_progress)
        return msgspec.structs.replace(done, mistakes=page)

    def _opened(self) -> StoreReader:
        if self._reader is None:
            self._reader = open_reader(self._where)
        return self._reader
