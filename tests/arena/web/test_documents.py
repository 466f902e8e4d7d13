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

from arena.formats.formats import schedule_of
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
from arena.web.competition_cache import CachedCompetition
from arena.web.documents import thinned
from arena.web.questions import SideQuestion
from protocol.errors import StoreFailed
from protocol.messages import Ending
from protocol.watching import View
from tests.arena.web.test_luck import met
from tests.support import databases
from tests.support.page_reader import INSTRUCTOR, PUBLIC, AnalysisReader, InProcessReader, owner
from tests.support.sample_database import SampleWriter, personal_match, plan, play, running, write
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


def competition_of(game: str) -> str:
    return f"{game}-{list(GAMES).index(game):08x}"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> InProcessReader:
    """A finished competition in each game."""
    return InProcessReader(write(tmp_path_factory.mktemp("finished") / "arena.db"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "arena.db"


@contextmanager
def going_on(file: Path, *words: Any, **more: Any) -> Iterator[tuple[Store, InProcessReader]]:
    """A running competition, and its documents."""
    with running(file, *words, **more) as store:
        yield store, InProcessReader(file)


# ---- Competitions


@EACH_GAME
def test_every_document_of_a_finished_competition_is_there(
    finished: InProcessReader, game: str
) -> None:
    at = f"competitions/{competition_of(game)}"
    form = plan(game).form
    overview = finished.get(f"{at}.json")

    assert overview["game"] == game
    assert overview["state"] == "finished"
    assert overview["settled"] == overview["scheduled"]
    assert bool(overview["bracket"]) == (form is Form.ELIMINATION)
    assert bool(overview["measure"]) == (form is Form.LEAGUE)
    assert overview["actions"] is None
    names = [row["name"] for row in overview["standings"]]
    assert sorted(names) == sorted(plan(game).players)
    for name in names:
        page = finished.get(f"{at}/bot.json", name=name)
        assert page["row"]["name"] == name
        assert all(name in match["players"] for match in page["matches"])
    void = finished.get(f"matches/{game}-void.json")
    assert void["result"]["termination"]["kind"] == Ending.VOID
    assert (void["counts"], void["decisions"]) == (False, 0)
    assert finished.get(f"{at}/matches.json")["matches"]
    assert finished.reply(f"{at}/cross.json").status == (200 if form is Form.ROUND_ROBIN else 404)


def test_the_list_has_all_competitions_the_newest_first(file: Path) -> None:
    with Store(file) as store:
        for number, game in enumerate(GAMES):
            writing = SampleWriter(store, plan(game), f"c{number}")
            store.competition_started(f"d{number}", writing.plan, 5_000.0 + number)
    lines = InProcessReader(file).get("competitions.json")["competitions"]

    last = len(GAMES) - 1
    assert [line["id"] for line in lines[: last + 1]] == [f"d{at}" for at in range(last, -1, -1)]
    assert lines[last - list(GAMES).index("blackjack")] == {
        "id": "d1",
        "run": "",
        "game": "blackjack",
        "title": "Blackjack",
        "form": "league",
        "state": "running",
        "started_at": 5001.0,
        "finished_at": None,
        "bots": 3,
        "played": 0,
        "scheduled": 3,
    }


def test_documents_say_which_versions_have_played_and_who_refereed(file: Path) -> None:
    with Store(file) as store:
        writer = SampleWriter(store, plan("ace_king_queen"), "c")
        [first, second, *_] = next(schedule_of(writer.plan))
        of_both = play("ace_king_queen", 1, versions=("v3", "connected"), worker="north")
        writer.finished(first, of_both, "m-1")
        writer.finished(second, play("ace_king_queen", 2), "m-2")
    library = InProcessReader(file)
    overview = library.get("competitions/c.json")
    told, silent = library.get("matches/m-1.json"), library.get("matches/m-2.json")
    ann, ben = first.players

    assert overview["versions"] == {ann: "v3", ben: "connected"}
    assert {row["name"]: row["version"] for row in overview["standings"]}[ann] == "v3"
    assert library.get("competitions/c/bot.json", name=ben)["row"]["version"] == "connected"
    assert (told["versions"], told["worker"]) == (["v3", "connected"], "north")
    assert not {"versions", "worker"} & silent.keys()


def test_the_cross_table_is_in_the_order_of_the_standings(file: Path) -> None:
    with Store(file) as store:
        SampleWriter(store, plan("ace_king_queen"), "c").to_the_end()
        store.flush()
        table = LiveResults(store, "c").book.cross_table
    library = InProcessReader(file)
    cross = library.get("competitions/c/cross.json")
    rows = library.get("competitions/c.json")["standings"]

    assert cross["names"] == [row["name"] for row in rows]
    assert len(cross["cells"]) == 6
    for row, column, played, *_, score, _, _, low, high in cross["cells"]:
        cell = table[cross["names"][row]][cross["names"][column]]
        assert (played, score) == (cell.played, cell.score)
        assert (low, high) == pytest.approx(cell.interval or (None, None), abs=1e-6)


def test_a_bracket_has_its_stages_byes_and_who_went_on(file: Path) -> None:
    players = tuple(f"p{number}" for number in range(9))
    with Store(file) as store:
        drawn = plan("high_low", players=players)
        SampleWriter(store, drawn, "c").to_the_end(offender_in=2)
    library = InProcessReader(file)
    overview = library.get("competitions/c.json")
    first, *_, last = overview["bracket"]
    offended = first["tables"][1]

    assert [len(table["players"]) for table in first["tables"]] == [4, 4]
    assert len(first["byes"]) == 1
    assert offended["offender"] == 0
    assert offended["out"] == offended["players"][:1]
    assert set(offended["advanced"]) == set(offended["players"][1:])
    assert len(first["tables"][0]["advanced"]) == 2
    assert last["final"]
    assert last["tables"][0]["advanced"] is None
    through = {*first["tables"][0]["advanced"], *offended["advanced"], *first["byes"]}
    seated = {
        name
        for stage in overview["bracket"][1:2]
        for name in (*stage["byes"], *(n for table in stage["tables"] for n in table["players"]))
    }
    assert through == seated - {"h1", "h2", "h3"}
    assert overview["ranking"][0]["rank"] == 1
    match = first["tables"][0]["match"]
    assert library.get(f"matches/{match}.json")["competition"] == "c"


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


def test_a_bots_page_adds_up(file: Path) -> None:
    with Store(file) as store:
        writing = SampleWriter(store, plan("ace_king_queen", matches=4), "c")
        writing.to_the_end()
        store.flush()
        played = store.results("c")
    page = InProcessReader(file).get("competitions/c/bot.json", name="ben")
    own = [match for match in played if "ben" in match.players]
    score = sum(match.result.scores[match.players.index("ben")] for match in own)

    assert page["curve"][-1] == [own[-1].finished_at, score]
    assert page["row"]["score"] == score
    assert sum(other["score"] for other in page["opponents"]) == score
    assert [match["id"] for match in page["matches"]] == [match.id for match in own[::-1]]
    assert not page["matches_more"]


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


@EACH_GAME
def test_G14_a_match_has_its_points_by_round_where_it_is_played_for_them(game: str) -> None:
    settings: dict[str, Any] = {"games": 2, "target": 40} if game == "gin_rummy" else {}
    record = play(game, settings=settings).record
    told = match_pages.RecordedMatch(record, ALL)

    if game == "gin_rummy":
        assert len(told.points) == len(told.scores)
        assert told.points[-1] == record.points
        assert list(told.points) == sorted(told.points)
    else:
        assert told.points == ()


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
