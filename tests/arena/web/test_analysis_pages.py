"""What analyses say, and to whom: from databases as an arena writes them, without a process."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena.formats.schedule import Pairing
from arena.formats.spec import Form
from arena.games.analysis import Analysing, Analysis, Chart, Figure, Judgement, Judging, SeatMatch
from arena.games.catalogue import GAMES
from arena.games.match import Record
from arena.records.seat_document import seat_match
from arena.records.visibility import LADDER_S, Viewer
from arena.storage.store import Store
from arena.web import analysis_pages
from arena.web.questions import AnalysisTask, SideQuestion
from protocol.vocabulary import News, Question
from tests.support import databases
from tests.support.page_reader import INSTRUCTOR, PUBLIC, AnalysisReader, owner
from tests.support.sample_database import SampleWriter, personal_match, plan, play, running, write

EACH_GAME = pytest.mark.parametrize("game", GAMES)
GAME = "ace_king_queen"
NOT_INSTALLED = "numpy and scipy are not installed: pip install 'card-arena[analysis]'"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "arena.db"


class EavesdroppingGame:
    """Stands in for how a game analyses: notes all that it is told, and calls all a mistake."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, game: str) -> None:
        self.heard_by_judges: list[Any] = []
        self.heard_by_meters: list[Any] = []
        self.watched: list[SeatMatch] = []
        judging = Judging(
            version=7, judge=lambda settings, seat: EavesdroppingJudge(self.heard_by_judges)
        )
        analysing = Analysing(version=8, probe=None, watch=self.watch)  # type: ignore[arg-type]
        fields = {"judging": judging, "analysing": analysing, "habits": self.meter}
        monkeypatch.setitem(GAMES, game, msgspec.structs.replace(GAMES[game], **fields))

    def meter(self) -> EavesdroppingJudge:
        return EavesdroppingJudge(self.heard_by_meters)

    def watch(self, matches: Iterable[SeatMatch]) -> Analysis:
        self.watched += matches
        figure = Figure(name="matches", value=float(len(self.watched)))
        return Analysis(figures=(figure,))


class EavesdroppingJudge:
    """A judge, and a meter."""

    def __init__(self, heard: list[Any]) -> None:
        self._heard = heard

    def begin(self, settings: Any, seat: int) -> None:
        pass

    def heard(self, news: News) -> None:
        self._heard.append(plain(news))

    def decided(self, question: Question[Any], answer: Any) -> None:
        self._heard.append(plain(question))

    def judged(self, question: Question[Any], answer: Any) -> Judgement:
        return Judgement(cost=0.5, best=answer, unit="chips", grade=2)

    def charts(self) -> tuple[Chart, ...]:
        return (Chart(title="All", what="is", rows=(), columns=(), cells=()),)


def plain(what: object) -> Any:
    return msgspec.to_builtins(what)


def told_to(record: Record, seat: int) -> list[Any]:
    """All that a seat was told and asked, in order, as its bot got it."""
    match = seat_match(record, seat)
    heard: list[Any] = []
    for asked in match.decisions:
        heard += [*asked.news, asked.question]
    return [plain(what) for what in (*heard, *match.news)]


# ---- Mistakes


def test_a_match_that_a_person_has_played_comes_with_the_question(file: Path) -> None:
    reader = AnalysisReader(write(file, []))
    sat = personal_match(GAME)
    reply = reader.personal("matches/p-1/mistakes.json", sat)
    task = msgspec.json.decode(reply.body, type=AnalysisTask)
    status = reader.done(SideQuestion(task=task, personal_match=sat))

    assert reply.status == 200
    assert status["mistakes"]["decisions"] > 0


# ---- The strength of a bot


def strength_of(reader: AnalysisReader, viewer: Viewer = PUBLIC, bot: str = "ann") -> Any:
    return reader.analysis("competitions/c/strength.json", viewer, bot=bot)["strength"]


def test_a_bots_strength_is_made_from_its_latest_matches_and_says_how_many(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = EavesdroppingGame(monkeypatch, GAME)
    monkeypatch.setattr(analysis_pages, "MOST_MATCHES", 3)
    with Store(file) as store:
        writing = SampleWriter(store, plan(GAME, matches=6), "c")
        writing.to_the_end()
        store.flush()
        played = [row for row in store.results("c") if "ann" in row.players]
        seats = [(store.record(row.id), row.players.index("ann")) for row in played[-3:]]
    found = strength_of(AnalysisReader(file))

    assert (found["matches"], found["of_matches"]) == (3, len(played))
    assert found["analysis"]["figures"][0]["value"] == 3.0
    assert found["version"] == 8
    assert [chart["title"] for chart in found["charts"]] == ["All"]
    assert game.heard_by_meters == [
        heard for record, seat in seats for heard in told_to(record, seat)
    ]


def test_matches_that_were_taken_back_are_left_out(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    EavesdroppingGame(monkeypatch, GAME)
    with running(file, GAME, played=2) as store:
        reader = AnalysisReader(file)
        before = strength_of(reader, INSTRUCTOR)["matches"]
        match = next(row for row in store.results("c") if "ann" in row.players)
        databases.rows(file, f"UPDATE matches SET counts = 0 WHERE id = '{match.id}'")
        databases.rows(file, "UPDATE competitions SET revision = revision + 1")
        reply = reader.reply("competitions/c/strength.json", INSTRUCTOR, bot="ann")
        task = msgspec.json.decode(reply.body, type=AnalysisTask)

    assert before == task.matches + 1


@EACH_GAME
def test_without_the_packages_it_says_what_to_install_and_has_the_charts(
    file: Path, monkeypatch: pytest.MonkeyPatch, game: str
) -> None:
    monkeypatch.setattr("arena.games.analysis.find_spec", lambda name: None)
    analysing = GAMES[game].analysing
    reader = AnalysisReader(write(file, [game]))
    status = reader.analysis(f"competitions/{game}-00000000/strength.json", bot="ann")
    strength = status["strength"]

    assert (status["state"], strength["analysis"]) == ("done", None)
    assert strength["charts"]
    if analysing is not None and analysing.watch is not None:
        assert strength["refused"] == NOT_INSTALLED
        judged = reader.analysis(f"matches/{game}-1/mistakes.json", seat="1")
        assert judged["state"] == "done" or judged["text"] == NOT_INSTALLED


@pytest.mark.parametrize("game", [name for name, game in GAMES.items() if game.habits])
def test_what_a_game_says_of_a_bot_is_strict_json(file: Path, game: str) -> None:
    at = list(GAMES).index(game)
    reader = AnalysisReader(write(file, list(GAMES)[: at + 1]))
    status = reader.analysis(f"competitions/{game}-{at:08x}/strength.json", bot="ann")

    assert status["state"] == "done"
    assert status["strength"]["charts"]
    assert bool(status["strength"]["analysis"]) != bool(status["strength"]["refused"])


# ---- Who sees them (J8)


@EACH_GAME
def test_J8_mistakes_and_analysis_are_the_owners_and_the_instructors_until_the_end(
    file: Path, monkeypatch: pytest.MonkeyPatch, game: str
) -> None:
    EavesdroppingGame(monkeypatch, game)
    with running(file, game, played=2) as store:
        match = store.results("c")[0]
        reader = AnalysisReader(file)
        paths: list[tuple[str, str, dict[str, str]]] = []
        for seat, bot in enumerate(match.players, start=1):
            paths.append((bot, f"matches/{match.id}/mistakes.json", {"seat": str(seat)}))
            paths.append((bot, "competitions/c/strength.json", {"bot": bot}))
        for bot, path, query in paths:
            others = [owner(name) for name in (*match.players, "stranger") if name != bot]
            for viewer in (PUBLIC, Viewer(name=bot), *others):
                status, line = reader.refused(path, viewer, **query)
                assert status == 403
                assert "until c is over" in line
            for viewer in (owner(bot), INSTRUCTOR):
                assert reader.analysis(path, viewer, **query)["state"] == "done"
        store.competition_finished("c", 9_000.0)
        store.flush()
        for _, path, query in paths:
            for viewer in (PUBLIC, owner("stranger")):
                assert reader.analysis(path, viewer, **query)["state"] == "done"


@EACH_GAME
def test_J8_what_analyses_for_an_owner_hears_what_its_seat_heard_and_no_more(
    file: Path, monkeypatch: pytest.MonkeyPatch, game: str
) -> None:
    """So no mark, mistake or chart can tell more; and luck, made of all cards, is not there."""
    heard = EavesdroppingGame(monkeypatch, game)
    with running(file, game, played=2) as store:
        match = store.results("c")[0]
        record = store.record(match.id)
    reader = AnalysisReader(file)
    for seat, bot in enumerate(match.players):
        for noted in (heard.heard_by_judges, heard.heard_by_meters, heard.watched):
            noted.clear()
        reader.analysis(f"matches/{match.id}/mistakes.json", owner(bot), seat=str(seat + 1))
        found = reader.analysis("competitions/c/strength.json", owner(bot), bot=bot)
        told = told_to(record, seat)
        watched = next(one for one in heard.watched if one.seat == seat)

        assert found["strength"]["matches"] >= 1
        assert heard.heard_by_judges == told[: len(heard.heard_by_judges)]
        assert heard.heard_by_judges
        assert is_within(told, heard.heard_by_meters)
        heard_so = [[*one.news, one.question] for one in watched.decisions]
        assert plain([*chain(*heard_so), *watched.news]) == told
        assert reader.get(f"matches/{match.id}.json", owner(bot))["luck"] is None
    assert reader.get(f"matches/{match.id}.json")["luck"] is None


def is_within(part: list[Any], whole: list[Any]) -> bool:
    return any(whole[at : at + len(part)] == part for at in range(len(whole) - len(part) + 1))


def test_J8_on_a_ladder_others_see_what_comes_of_matches_of_a_day_ago(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    EavesdroppingGame(monkeypatch, GAME)
    with Store(file) as store:
        writing = SampleWriter(store, plan(GAME, form=Form.LADDER, players=("ann", "ben")), "c")
        matches = [
            writing.finished(Pairing(number, ("ann", "ben")), play(GAME, number))
            for number in (1, 2, 3)
        ]
        store.flush()
    ago = time.time() - LADDER_S
    for match, at in zip(matches, (ago - 9_000, ago - 600, ago + 600), strict=True):
        databases.rows(file, f"UPDATE matches SET finished_at = {at} WHERE id = '{match}'")
    reader = AnalysisReader(file)

    assert strength_of(reader, PUBLIC)["of_matches"] == 2
    assert strength_of(reader, owner("ben"))["matches"] == 2
    assert strength_of(reader, owner("ann"))["of_matches"] == 3
    assert strength_of(reader, INSTRUCTOR)["of_matches"] == 3
    path = f"matches/{matches[2]}/mistakes.json"
    for viewer in (PUBLIC, owner("ben")):
        assert reader.refused(path, viewer)[0] == 403
        assert reader.analysis(f"matches/{matches[1]}/mistakes.json", viewer)["state"] == "done"
    assert reader.analysis(path, owner("ann"))["state"] == "done"
