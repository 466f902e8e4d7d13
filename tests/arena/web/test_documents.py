"""The documents of competitions and matches, from databases as an arena writes them."""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena.formats.spec import Form
from arena.games.catalogue import GAMES
from arena.games.match import Record
from arena.games.replay import SeatAnswered, events_of
from arena.games.rules import EVERYONE, AskSeat, TellSeat
from arena.records.rounds import Round, rounds_of
from arena.records.seat_document import SeatDocument
from arena.records.visibility import seen
from arena.results.match_sums import recompute
from arena.storage.live_results import LiveResults
from arena.storage.reader import document_of
from arena.storage.store import Act, CompetitionState, Store
from arena.web import analysis_pages, match_pages
from arena.web.competition_pages import CachedCompetition
from arena.web.documents import thinned
from arena.web.questions import SideQuestion
from protocol.errors import StoreFailed
from protocol.watching import View
from tests.arena.web.test_luck import met
from tests.support import databases
from tests.support.page_reader import INSTRUCTOR, PUBLIC, AnalysisReader, InProcessReader, owner
from tests.support.sample_database import personal_match, running, write
from tests.support.scripts import Case, Stage, cases, fields, fit, like

PLACES = {"analysis_pages": analysis_pages, "match_pages": match_pages}


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

    @property
    def _going_on(self) -> Store:
        """Of the competition that goes on."""
        if self._store is None:
            raise LookupError("all competitions are over")
        return self._store

    def _asked(self, name: str, words: str) -> tuple[tuple[Any, ...], dict[str, Any], str]:
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

    def do_judges(self, how: str) -> None:
        """The first game judges slowly, or not at all."""
        name, game = next(iter(GAMES.items()))
        changed: dict[str, Any] = {"judging": None, "analysing": None, "habits": None}
        if how == "slowly" and game.judging:
            changed = {"judging": msgspec.structs.replace(game.judging, is_slow=True)}
        self._patch.setitem(GAMES, name, msgspec.structs.replace(game, **changed))

    def do_sql(self, statement: str) -> None:
        databases.rows(self._file, statement)

    def do_damage(self, _: str) -> None:
        self.do_sql("UPDATE matches SET record = CAST(record || 'x' AS BLOB)")

    def do_spoil(self, text: str) -> None:
        """The record of a match by its number has something else in a field."""
        number, _, words = text.partition(" ")
        match = f"ace_king_queen-{number}"
        record = msgspec.structs.replace(self._going_on.record(match), **fields(words))
        sheet = msgspec.json.encode(record).decode()
        self.do_sql(f"UPDATE matches SET record = CAST('{sheet}' AS BLOB) WHERE id = '{match}'")

    def do_overwrite(self, _: str) -> None:
        """Nothing is left of the database but its first page."""
        with self._file.open("r+b") as damaged:
            size = damaged.seek(0, os.SEEK_END)
            damaged.seek(4096)
            damaged.write(b"\xa5" * (size - 4096))

    def do_pause(self, _: str) -> None:
        self._going_on.state_changed("c", CompetitionState.PAUSED, act("pause"))
        self._going_on.flush()

    def do_void(self, match: str) -> None:
        self._going_on.taken_back("c", match, act("void"))
        self._going_on.flush()

    def do_ended(self, text: str) -> None:
        """A match ended this number of seconds ago."""
        match, seconds = text.split()
        at = time.time() - float(seconds)
        self.do_sql(f"UPDATE matches SET finished_at = {at} WHERE id = '{match}'")

    def do_remove(self, words: str) -> None:
        bot, _, text = words.partition(" ")
        self._going_on.acted(act("remove", bot=bot, text=text))
        self._going_on.flush()

    def do_finish(self, _: str) -> None:
        self._going_on.competition_finished("c", 9_000.0)
        self._going_on.flush()

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

    def by_asks(self, name: str, words: str) -> None:
        """Ask for an analysis that is refused before it is queued."""
        words, _, expected = words.partition(": ")
        asked, query, _ = self._asked(name, words)
        assert like(self._reader.get(*asked, **query)["refused"], expected)

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


EACH_GAME = pytest.mark.parametrize("game", GAMES)
ALL = View("all")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "arena.db"


@contextmanager
def going_on(file: Path, *words: Any, **more: Any) -> Iterator[tuple[Store, InProcessReader]]:
    """A running competition, and its documents."""
    with running(file, *words, **more) as store:
        yield store, InProcessReader(file)


# ---- Competitions


def test_what_was_read_in_part_is_read_anew(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an update that fails half way the competition is read again from the start."""
    with going_on(file) as (store, library):
        before = library.get("competitions/c.json")["played"]
        update = LiveResults.update

        def fails(results: LiveResults) -> bool:
            update(results)
            raise StoreFailed("the disk was pulled out")

        store.taken_back("c", "ace_king_queen-1", act("void"))
        store.flush()
        with monkeypatch.context() as broken:
            broken.setattr(LiveResults, "update", fails)
            assert library.refused("competitions/c.json")[0] == 500

        assert library.get("competitions/c.json")["played"] == before - 1


def test_a_class_that_asks_all_at_once_is_one_look_at_the_database(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    update = LiveResults.update

    def counted(results: LiveResults) -> bool:
        nonlocal looks
        looks += 1
        return update(results)

    with going_on(file) as (_, library):
        library.get("competitions/c.json")
        monkeypatch.setattr(LiveResults, "update", counted)
        library.get("competitions/c.json")
        for document in ("c.json", "c/cross.json", "c/matches.json"):
            path = f"/api/competitions/{document}"
            assert library.answers.answer(SideQuestion(path=path)).status == 200

    assert looks == 1


# ---- Bots and pairings


@EACH_GAME
def test_the_histogram_has_a_bots_own_decisions(file: Path, game: str) -> None:
    store = running(file, game)
    with store:
        name = store.results("c")[0].players[0]
        taken: list[int] = []
        for played in store.results("c"):
            for event in events_of(store.record(played.id)):
                if isinstance(event, SeatAnswered) and played.players[event.seat] == name:
                    taken.append(event.took_ms or 0)
    library = InProcessReader(file)
    times = library.get("competitions/c/bot.json", name=name)["times"]

    assert times["decisions"] == sum(times["counts"]) == len(taken)
    assert times["max"] == max(taken)
    assert len(times["counts"]) == len(times["edges"]) - 1
    assert times["counts"][0] == taken.count(0)


def test_a_curve_is_thinned_between_its_ends() -> None:
    assert thinned(range(3), 5) == (0, 1, 2)
    assert thinned(range(101), 5) == (0, 25, 50, 75, 100)
    assert len(thinned(range(100_000), 500)) == 500


# ---- J8


@EACH_GAME
def test_J8_a_record_is_the_instructors_until_the_end(file: Path, game: str) -> None:
    with going_on(file, game) as (store, library):
        played = store.results("c")[0]
        path = f"matches/{played.id}"
        sheet = document_of(played, store.stored(played.id)).to_json()
        status, line = library.refused(f"{path}/record.json", PUBLIC)
        assert status == 403
        assert "when c is over" in line
        for viewer in (PUBLIC, owner(played.players[0])):
            assert library.get(f"{path}.json", viewer)["record"] is None

        assert library.reply(f"{path}/record.json", INSTRUCTOR).body == sheet
        store.competition_finished("c", 9_000.0)
        store.flush()
        assert library.reply(f"{path}/record.json").body == sheet
        record = store.record(played.id)
        assert library.get(f"{path}.json")["record"]["seed"] == record.seed


@EACH_GAME
def test_J8_the_owner_of_a_seat_gets_what_that_seat_saw(file: Path, game: str) -> None:
    with going_on(file, game) as (store, library):
        played = store.results("c")[0]
        path = f"matches/{played.id}/record.json"
        seat = len(played.players) - 1

        body = library.reply(path, owner(played.players[seat])).body

        document = msgspec.json.decode(body, type=SeatDocument)
        assert (document.match, document.seat) == (played.id, seat + 1)
        whole, own = store.record(played.id), document.record
        assert (own.seed, own.nonces, own.decks) == (None, (), None)
        seen = [event for event in document.events() if not isinstance(event, SeatAnswered)]
        assert seen == asked_and_told(whole, seat) != []
        if seat:
            status, line = library.refused(path, owner(played.players[seat]), seat="1")
            assert (status, line) == (403, f"expected seat {seat + 1}, your own, got 1")


def asked_and_told(record: Record, seat: int) -> list[AskSeat | TellSeat]:
    """What a seat is asked and told, by the rules."""
    return [
        event
        for event in events_of(record)
        if isinstance(event, AskSeat | TellSeat) and event.seat in (seat, EVERYONE)
    ]


@EACH_GAME
def test_J8_rounds_are_told_as_whoever_asks_may_see_them(file: Path, game: str) -> None:
    with going_on(file, game) as (store, library):
        played = store.results("c")[0]
        record = store.record(played.id)
        rounds = list(rounds_of(record))
        seats = len(played.players)
        for viewer, view in (
            (PUBLIC, View("public")),
            (owner(played.players[0]), View("seat", (0,))),
            (INSTRUCTOR, ALL),
        ):
            page = library.get(f"matches/{played.id}.json", viewer)
            told = []
            for first in range(1, len(rounds) + 1, 2):
                told += library.get(
                    f"matches/{played.id}/rounds.json", viewer, from_=str(first), to=str(first + 1)
                )["rounds"]

            assert View(page["view"]["kind"], tuple(page["view"]["seats"])) == view
            assert page["rounds"] == [list(round_.scores) for round_ in rounds]
            assert page["decisions"] == len(record.answers)
            shown = [
                {
                    "round": round_.number,
                    "scores": round_.scores,
                    "events": seen(round_.events, view, seats),
                }
                for round_ in rounds
            ]
            assert told == msgspec.json.decode(msgspec.json.encode(shown))


# ---- Matches


def test_rounds_of_a_long_match_are_found_wherever_they_are(file: Path) -> None:
    settings = {"hands": 130}
    with running(file, settings=settings) as store:
        match = store.results("c")[0].id
    library = InProcessReader(file)
    rng = random.Random(1)
    for _ in range(20):
        first = rng.randrange(1, 131)
        last = min(first + rng.randrange(50), 130)
        told = library.get(f"matches/{match}/rounds.json", from_=str(first), to=str(last))["rounds"]

        assert [round_["round"] for round_ in told] == list(range(first, last + 1))


def test_a_match_is_replayed_once_for_each_view(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replayed: list[Record] = []

    def counted(record: Record) -> Iterator[Round]:
        replayed.append(record)
        return rounds_of(record)

    monkeypatch.setattr(match_pages, "rounds_of", counted)
    library = InProcessReader(write(file, ["ace_king_queen"]))
    for _ in range(2):
        for path in ("ace_king_queen-1.json", "ace_king_queen-1/rounds.json"):
            library.get(f"matches/{path}")

    assert len(replayed) == 1


def test_a_match_that_somebody_sat_down_to_comes_with_the_question(file: Path) -> None:
    running(file).close()
    library = InProcessReader(file)
    sat = personal_match("gin_rummy")
    page = msgspec.json.decode(library.personal("matches/p-1.json", sat).body)
    bare = library.personal("matches/p-1/record.json", sat)

    assert page["competition"] is None
    assert page["players"] == list(sat.players)
    assert page["view"]["kind"] == "all"
    assert page["record"]["seed"] == sat.record.seed
    assert bare.body == sat.record.to_json()
    assert library.personal("matches/p-1/rounds.json", sat).status == 200
    assert library.refused("matches/p-1.json")[0] == 404


def test_what_takes_long_to_make_is_not_made_anew_at_every_match(file: Path) -> None:
    now = [0.0]
    with running(file) as store:
        cached = CachedCompetition(store, "c", lambda: now[0])

        def slow() -> int:
            now[0] += 2.0
            return cached.results.book.played

        def fast() -> int:
            return cached.results.book.played

        assert (cached.cached("slow", slow), cached.cached("fast", fast)) == (3, 3)
        store.taken_back("c", "ace_king_queen-1", act("void"))
        store.flush()
        now[0] += 10.0
        cached.update()
        assert (cached.cached("slow", slow), cached.cached("fast", fast)) == (3, 2)
        now[0] += 10.0
        assert cached.cached("slow", slow) == 2
