"""The cases in `documents.cases`: databases as an arena writes them, and who asks."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena.formats.spec import Form
from arena.results.match_sums import recompute
from arena.storage.store import Act, CompetitionState, Store
from arena.web import analysis_pages, match_rounds
from tests.arena.web.test_luck import met
from tests.support import databases
from tests.support.page_reader import INSTRUCTOR, PUBLIC, AnalysisReader, owner
from tests.support.sample_database import running, write
from tests.support.scripts import Case, Stage, cases, fit, like

PLACES = {"analysis_pages": analysis_pages, "match_rounds": match_rounds}


class DocumentStage(Stage):
    """Viewers: `anybody`, the instructor eva, and owners by their names."""

    def __init__(self, file: Path, given: dict[str, Any], patch: pytest.MonkeyPatch) -> None:
        given = {name: tuple(so) if isinstance(so, list) else so for name, so in given.items()}
        if "form" in given:
            given["form"] = Form(given["form"])
        self._file = file
        self._store: Store | None = None
        if games := given.pop("finished", None):
            write(file, games.split("+"))
        elif matches := given.pop("met", None):
            with Store(met(file, matches, **given), exclusive=True) as store:
                recompute(store)
        else:
            self._store = running(file, **given)
        self._reader = AnalysisReader(file)
        self._patch = patch

    def close(self) -> None:
        self._reader.close()
        if self._store is not None:
            self._store.close()

    def _asked(self, name: str, words: str) -> tuple[tuple[Any, ...], dict[str, str], str]:
        """Path, viewer and query, and the words that follow them."""
        path, _, rest = words.partition(" ")
        asked, expected = re.fullmatch(r"((?:\?\S+?(?=[ ]|: |$) ?)*)(.*)", rest).groups()  # type: ignore[union-attr]
        viewer = {"anybody": PUBLIC, "eva": INSTRUCTOR}.get(name, owner(name))
        query = dict(word.removeprefix("?").split("=", 1) for word in asked.split())
        return (re.sub("^c(?=[./])", "competitions/c", path), viewer), query, expected

    # --- what happens ---

    def do_set(self, text: str) -> None:
        name, number = text.split()
        place, _, attribute = name.partition(".")
        self._patch.setattr(PLACES[place], attribute, int(number))

    def do_sql(self, statement: str) -> None:
        databases.rows(self._file, statement)

    def do_damage(self, _: str) -> None:
        self.do_sql("UPDATE matches SET record = CAST(record || 'x' AS BLOB)")

    def do_overwrite(self, _: str) -> None:
        """Nothing is left of the database but its first page."""
        with self._file.open("r+b") as damaged:
            size = damaged.seek(0, os.SEEK_END)
            damaged.seek(4096)
            damaged.write(b"\xa5" * (size - 4096))

    def do_pause(self, _: str) -> None:
        assert self._store is not None
        self._store.state_changed("c", CompetitionState.PAUSED, act("pause"))
        self._store.flush()

    def do_void(self, match: str) -> None:
        assert self._store is not None
        self._store.taken_back("c", match, act("void"))
        self._store.flush()

    def do_ended(self, text: str) -> None:
        """A match has ended so many seconds ago."""
        match, seconds = text.split()
        at = time.time() - float(seconds)
        self.do_sql(f"UPDATE matches SET finished_at = {at} WHERE id = '{match}'")

    def do_remove(self, words: str) -> None:
        assert self._store is not None
        bot, _, text = words.partition(" ")
        self._store.acted(act("remove", bot=bot, text=text))
        self._store.flush()

    def do_finish(self, _: str) -> None:
        assert self._store is not None
        self._store.competition_finished("c", 9_000.0)
        self._store.flush()

    # --- what is so ---

    def by_gets(self, name: str, words: str) -> None:
        asked, query, expected = self._asked(name, words)
        reply = self._reader.analysed(*asked, **query)
        assert reply.status == 200, reply.body
        fit(msgspec.json.decode(reply.body), expected)

    def by_refused(self, name: str, words: str) -> None:
        status, _, words = words.partition(" ")
        words, _, expected = words.partition(": ")
        asked, query, _ = self._asked(name, words)
        found, line = self._reader.refused(*asked, **query)
        assert found == int(status)
        assert like(line, expected), line
        assert str(self._file.parent) not in line

    def by_finds(self, name: str, words: str) -> None:
        part, _, words = words.partition(" ")
        asked, query, _ = self._asked(name, words)
        assert part in self._reader.reply(*asked, **query).body.decode()

    def by_misses(self, name: str, words: str) -> None:
        part, _, words = words.partition(" ")
        asked, query, _ = self._asked(name, words)
        reply = self._reader.reply(*asked, **query)
        assert reply.status == 200
        assert part not in reply.body.decode()

    def do_logs(self, text: str) -> None:
        number, _, line = text.partition(" ")
        assert len(self._reader.log) == int(number)
        assert like(self._reader.log[0], line or "…")


def act(what: str, **about: Any) -> Act:
    return Act(competition="c", at=1.0, who="eva", what=what, **about)


@pytest.mark.parametrize("case", cases(Path(__file__).with_name("documents.cases")))
async def test_what_documents_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    stage = DocumentStage(tmp_path / "arena.db", case.given, monkeypatch)
    try:
        await stage.play(case)
    finally:
        stage.close()
