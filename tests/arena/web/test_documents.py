"""The documents of competitions and matches, from databases as an arena writes them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena.engine.match import Record, questions_of
from arena.formats.formats import schedule_of
from arena.formats.spec import Form
from arena.games import GAMES
from arena.games.replay import reopened
from arena.records.replay_events import rounds_of
from arena.records.seat_document import SeatDocument
from arena.records.visibility import seen
from arena.storage.live_results import LiveResults
from arena.storage.reader import document_of
from arena.storage.store import Act, CompetitionState, Store
from arena.web import match_rounds
from arena.web.competition_cache import CachedCompetition
from arena.web.competition_pages import MOST_MATCHES
from arena.web.documents import thinned
from arena.web.play.recent import PersonalMatch
from arena.web.reader_questions import ReaderQuestion
from protocol.errors import StoreFailed
from protocol.messages import Ending
from protocol.watching import View
from tests.support import databases
from tests.support.page_reader import INSTRUCTOR, PUBLIC, InProcessReader, owner
from tests.support.sample_database import SampleWriter, plan, play, write

EACH_GAME = pytest.mark.parametrize("game", GAMES)
ALL = View("all")
DAMAGED = "UPDATE matches SET record = CAST(record || 'x' AS BLOB)"


def competition_of(game: str) -> str:
    return f"{game}-{list(GAMES).index(game):08x}"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> InProcessReader:
    """A finished competition in each game."""
    return InProcessReader(write(tmp_path_factory.mktemp("finished") / "arena.db"))


def running(
    file: Path, game: str = "ace_king_queen", offends: int | None = 2, **more: Any
) -> Store:
    """A running competition with three matches; in pairing `offends` seat 0 commits an offence."""
    store = Store(file)
    writing = SampleWriter(store, plan(game, **more), "c")
    for pairing in next(schedule_of(writing.plan))[:3]:
        offender = 0 if pairing.number == offends else None
        settings = writing.plan.settings
        writing.finished(pairing, play(game, pairing.number, settings=settings, offender=offender))
    store.flush()
    return store


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
    assert finished.get(f"{at}/matches.json")["matches"]
    assert finished.reply(f"{at}/cross.json").status == (200 if form is Form.ROUND_ROBIN else 404)


def test_the_list_has_all_competitions_the_newest_first(tmp_path: Path) -> None:
    with Store(tmp_path / "arena.db") as store:
        for number, game in enumerate(GAMES):
            writing = SampleWriter(store, plan(game), f"c{number}")
            store.competition_started(f"d{number}", writing.plan, 5_000.0 + number)
    lines = InProcessReader(tmp_path / "arena.db").get("competitions.json")["competitions"]

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


def test_a_competition_whose_game_is_gone_has_its_pages(tmp_path: Path) -> None:
    file = write(tmp_path / "arena.db", ["ace_king_queen"])
    plan_of_gone = "REPLACE(plan, '\"ace_king_queen\"', '\"gone\"')"
    databases.rows(file, f"UPDATE competitions SET game = 'gone', plan = {plan_of_gone}")
    databases.rows(file, "UPDATE matches SET game = 'gone'")
    library = InProcessReader(file)
    [line] = library.get("competitions.json")["competitions"]

    assert (line["game"], line["title"]) == ("gone", "gone")
    page = library.get(f"competitions/{line['id']}.json")
    assert page["standings"]
    assert "unknown game 'gone'" in page["missing"]
    assert library.get("matches/ace_king_queen-1.json")["players"]
    assert library.reply("matches/ace_king_queen-1/record.json").status == 200


def test_nobody_knows_how_long_a_ladder_is_nor_who_will_come(tmp_path: Path) -> None:
    with Store(tmp_path / "arena.db") as store:
        climbs = msgspec.structs.replace(plan("ace_king_queen", players=("ann",)), form=Form.LADDER)
        writing = SampleWriter(store, climbs, "c")
        first = next(schedule_of(plan("ace_king_queen")))[0]
        writing.finished(first, play("ace_king_queen"))
    library = InProcessReader(tmp_path / "arena.db")
    [line] = library.get("competitions.json")["competitions"]

    assert line["scheduled"] is None
    assert line["bots"] == 2
    assert library.get("competitions/c.json")["scheduled"] is None


def test_the_standings_are_those_of_the_results(tmp_path: Path) -> None:
    with Store(write(tmp_path / "arena.db", ["gin_rummy"])) as store:
        rows = LiveResults(store, "gin_rummy-00000000").standings
    overview = InProcessReader(tmp_path / "arena.db").get("competitions/gin_rummy-00000000.json")

    assert overview["standings"] == msgspec.json.decode(msgspec.json.encode(rows))


def test_documents_say_which_versions_have_played(tmp_path: Path) -> None:
    with Store(tmp_path / "arena.db") as store:
        writer = SampleWriter(store, plan("ace_king_queen"), "c")
        [first, second, *_] = next(schedule_of(writer.plan))
        writer.finished(first, play("ace_king_queen", 1, versions=("v3", "connected")), "m-1")
        writer.finished(second, play("ace_king_queen", 2), "m-2")
    library = InProcessReader(tmp_path / "arena.db")
    overview = library.get("competitions/c.json")
    ann, ben = first.players

    assert overview["versions"] == {ann: "v3", ben: "connected"}
    assert {row["name"]: row["version"] for row in overview["standings"]}[ann] == "v3"
    assert library.get("competitions/c/bot.json", name=ben)["row"]["version"] == "connected"
    assert library.get("matches/m-1.json")["versions"] == ["v3", "connected"]
    assert "versions" not in library.get("matches/m-2.json")


def test_a_match_says_which_worker_has_refereed_it(tmp_path: Path) -> None:
    with Store(tmp_path / "arena.db") as store:
        writer = SampleWriter(store, plan("ace_king_queen"), "c")
        [first, second, *_] = next(schedule_of(writer.plan))
        writer.finished(first, play("ace_king_queen", 1, worker="north"), "m-1")
        writer.finished(second, play("ace_king_queen", 2), "m-2")
    library = InProcessReader(tmp_path / "arena.db")

    assert library.get("matches/m-1.json")["worker"] == "north"
    assert "worker" not in library.get("matches/m-2.json")


@pytest.mark.parametrize("game", ["ace_king_queen", "high_low"])
def test_K5_who_was_not_there_is_listed_and_has_a_page(tmp_path: Path, game: str) -> None:
    running(tmp_path / "arena.db", game, not_there=("zoe",)).close()
    library = InProcessReader(tmp_path / "arena.db")
    overview = library.get("competitions/c.json")
    page = library.get("competitions/c/bot.json", name="zoe")

    assert overview["not_there"] == ["zoe"]
    assert overview["standings"][-1] == page["row"]
    assert page["row"]["name"] == "zoe"
    assert page["row"].get("rank") is None
    assert page["row"].get("not_there") or page["row"]["stands"] == "not there"
    assert (page["matches"], page["verdicts"]) == ([], [])


def test_the_cross_table_is_in_the_order_of_the_standings(tmp_path: Path) -> None:
    with Store(tmp_path / "arena.db") as store:
        SampleWriter(store, plan("ace_king_queen"), "c").to_the_end()
        store.flush()
        table = LiveResults(store, "c").cross_table
    library = InProcessReader(tmp_path / "arena.db")
    cross = library.get("competitions/c/cross.json")
    rows = library.get("competitions/c.json")["standings"]

    assert cross["names"] == [row["name"] for row in rows]
    assert len(cross["cells"]) == 6
    for row, column, played, *_, score, _, _, low, high in cross["cells"]:
        cell = table[cross["names"][row]][cross["names"][column]]
        assert (played, score) == (cell.played, cell.score)
        assert (low, high) == pytest.approx(cell.interval or (None, None), abs=1e-6)


def test_a_bracket_has_its_stages_byes_and_who_went_on(tmp_path: Path) -> None:
    players = tuple(f"p{number}" for number in range(9))
    with Store(tmp_path / "arena.db") as store:
        drawn = plan("high_low", players=players)
        SampleWriter(store, drawn, "c").to_the_end(offender_in=2)
    library = InProcessReader(tmp_path / "arena.db")
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


def test_tables_of_a_stage_that_goes_on_are_being_played_or_wait_in_a_pause(tmp_path: Path) -> None:
    players = tuple(f"p{number}" for number in range(16))
    with running(tmp_path / "arena.db", "high_low", players=players) as store:
        library = InProcessReader(tmp_path / "arena.db")
        states = [
            table["state"] for table in library.get("competitions/c.json")["bracket"][0]["tables"]
        ]
        store.state_changed("c", CompetitionState.PAUSED, act("pause"))
        store.flush()
        paused = library.get("competitions/c.json")["bracket"][0]["tables"]

    assert states == ["over"] * 3 + ["playing"]
    assert paused[-1]["state"] == "waits"
    assert paused[-1]["match"] is None


def act(what: str, **about: Any) -> Act:
    return Act(competition="c", at=1.0, who="eva", what=what, **about)


def test_what_was_played_or_taken_back_meanwhile_is_seen(tmp_path: Path) -> None:
    with running(tmp_path / "arena.db", offends=None) as store:
        library = InProcessReader(tmp_path / "arena.db")
        before = library.get("competitions/c.json")
        assert library.get("competitions/c/bot.json", name="ann")["curve"]
        store.taken_back("c", "ace_king_queen-1", act("void"))
        store.flush()
        after = library.get("competitions/c.json")
        curve = library.get("competitions/c/bot.json", name="ann")["curve"]

        assert (before["played"], after["played"]) == (3, 2)
        assert len(curve) == sum(
            "ann" in match["players"] and match["counts"]
            for match in library.get("competitions/c/matches.json")["matches"]
        )


def test_documents_are_cached_until_there_are_new_results(tmp_path: Path) -> None:
    with running(tmp_path / "arena.db"):
        library = InProcessReader(tmp_path / "arena.db")
        first = library.reply("competitions/c/cross.json")

        assert library.reply("competitions/c/cross.json").body is first.body


def test_what_was_read_in_part_is_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an update that fails half way the competition is read again from the start."""
    with running(tmp_path / "arena.db") as store:
        library = InProcessReader(tmp_path / "arena.db")
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    update = LiveResults.update

    def counted(results: LiveResults) -> bool:
        nonlocal looks
        looks += 1
        return update(results)

    with running(tmp_path / "arena.db"):
        library = InProcessReader(tmp_path / "arena.db")
        library.get("competitions/c.json")
        monkeypatch.setattr(LiveResults, "update", counted)
        library.get("competitions/c.json")
        for document in ("c.json", "c/cross.json", "c/matches.json"):
            path = f"/api/competitions/{document}"
            assert library.answers.answer(ReaderQuestion(id=1, path=path)).status == 200

    assert looks == 1


def test_the_log_has_what_is_wrong_once(tmp_path: Path) -> None:
    running(tmp_path / "arena.db").close()
    databases.rows(tmp_path / "arena.db", DAMAGED)
    library = InProcessReader(tmp_path / "arena.db")
    for _ in range(3):
        library.refused("matches/ace_king_queen-1.json")

    assert len(library.log) == 1


def test_only_so_many_competitions_are_followed_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.web.reader_answers._COMPETITIONS", 2)
    library = InProcessReader(write(tmp_path / "arena.db"))
    for game in (*GAMES, *GAMES):
        assert library.get(f"competitions/{competition_of(game)}.json")["game"] == game

    assert len(library.answers._competitions) == 2


# ---- Bots and pairings


def test_a_bots_page_adds_up(tmp_path: Path) -> None:
    with Store(tmp_path / "arena.db") as store:
        writing = SampleWriter(store, plan("ace_king_queen", matches=4), "c")
        writing.to_the_end()
        store.flush()
        played = store.results("c")
    page = InProcessReader(tmp_path / "arena.db").get("competitions/c/bot.json", name="ben")
    own = [match for match in played if "ben" in match.players]
    score = sum(match.result.scores[match.players.index("ben")] for match in own)

    assert page["curve"][-1] == [own[-1].finished_at, score]
    assert page["row"]["score"] == score
    assert sum(other["score"] for other in page["opponents"]) == score
    assert [match["id"] for match in page["matches"]] == [match.id for match in own[::-1]]
    assert not page["matches_more"]


@EACH_GAME
def test_the_histogram_has_a_bots_own_decisions(tmp_path: Path, game: str) -> None:
    store = running(tmp_path / "arena.db", game, offends=None)
    with store:
        name = store.results("c")[0].players[0]
        taken: list[int] = []
        for played in store.results("c"):
            for round_ in rounds_of(store.record(played.id)):
                answers = msgspec.to_builtins(round_.events)
                taken += [
                    event["took_ms"]
                    for event in answers
                    if event["event"] == "answered" and played.players[event["seat"]] == name
                ]
    library = InProcessReader(tmp_path / "arena.db")
    times = library.get("competitions/c/bot.json", name=name)["times"]

    assert times["decisions"] == sum(times["counts"]) == len(taken)
    assert times["max"] == max(taken)
    assert len(times["counts"]) == len(times["edges"]) - 1
    assert times["counts"][0] == taken.count(0)


def test_a_bots_page_survives_a_record_that_cannot_be_played_again(tmp_path: Path) -> None:
    running(tmp_path / "arena.db").close()
    databases.rows(tmp_path / "arena.db", DAMAGED)
    page = InProcessReader(tmp_path / "arena.db").get("competitions/c/bot.json", name="ann")

    assert page["times"]["decisions"] == 0
    assert page["times"]["median"] is None
    assert page["matches"]


def test_a_bot_against_itself_is_a_pairing_and_not_in_its_curve(tmp_path: Path) -> None:
    with Store(tmp_path / "arena.db") as store:
        SampleWriter(store, plan("ace_king_queen", with_itself=True), "c").to_the_end()
    library = InProcessReader(tmp_path / "arena.db")
    alone = library.get("competitions/c/pairing.json", a="ann", b="ann")
    pair = library.get("competitions/c/pairing.json", a="ann", b="ben")

    assert [match["players"] for match in alone["matches"]] == [["ann", "ann"]]
    assert alone["cell"]["played"] == 1
    assert sorted(pair["matches"][0]["players"]) == ["ann", "ben"]
    assert len(pair["matches"]) == 1
    assert pair["cell"]["name"] == "ben"
    assert len(library.get("competitions/c/bot.json", name="ann")["curve"]) == 2


def test_matches_come_in_pages(tmp_path: Path) -> None:
    with Store(tmp_path / "arena.db") as store:
        SampleWriter(store, plan("ace_king_queen", matches=3), "c").to_the_end()
    library = InProcessReader(tmp_path / "arena.db")
    first = library.get("competitions/c/matches.json", limit="5")
    rest = library.get("competitions/c/matches.json", before=str(first["matches"][-1]["number"]))
    numbers = [match["number"] for match in (*first["matches"], *rest["matches"])]

    assert (len(first["matches"]), first["more"]) == (5, True)
    assert (len(rest["matches"]), rest["more"]) == (4, False)
    assert numbers == sorted(numbers, reverse=True)


def test_a_curve_is_thinned_between_its_ends() -> None:
    assert thinned(range(3), 5) == (0, 1, 2)
    assert thinned(range(101), 5) == (0, 25, 50, 75, 100)
    assert len(thinned(range(100_000), 500)) == 500


# ---- What is wrong with a question


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        ("competitions/none.json", {}, 404),
        ("competitions/none/cross.json", {}, 404),
        ("competitions.json", {"x": "1"}, 400),
        ("competitions/c/bot.json", {}, 400),
        ("competitions/c/bot.json", {"name": "nobody"}, 404),
        ("competitions/c/pairing.json", {"a": "ann"}, 400),
        ("competitions/c/pairing.json", {"a": "ann", "b": "nobody"}, 404),
        ("competitions/c/matches.json", {"before": "-1"}, 400),
        ("competitions/c/matches.json", {"before": "9" * 30}, 400),
        ("competitions/c/matches.json", {"before": "²"}, 400),
        ("competitions/c/matches.json", {"limit": "0"}, 400),
        ("competitions/c/matches.json", {"limit": str(MOST_MATCHES + 1)}, 400),
        ("competitions/c/nothing.json", {}, 404),
        ("matches/none.json", {}, 404),
        ("matches/none/rounds.json", {}, 404),
        ("matches/ace_king_queen-1/rounds.json", {"from": "0"}, 400),
        ("matches/ace_king_queen-1/rounds.json", {"from": "3", "to": "2"}, 400),
        ("matches/ace_king_queen-1/rounds.json", {"from": "1", "to": "51"}, 400),
        ("matches/ace_king_queen-1/rounds.json", {"from": "99"}, 404),
        ("nothing.json", {}, 404),
        ("../competitions.json", {}, 404),
        ("competitions/c\n\x1b.json", {}, 404),
        ("lobby.json", {}, 404),
    ],
)
def test_a_bad_question_gets_one_line(
    tmp_path: Path, path: str, query: dict[str, str], status: int
) -> None:
    running(tmp_path / "arena.db").close()
    said, line = InProcessReader(tmp_path / "arena.db").refused(path, PUBLIC, **query)

    assert said == status
    assert line.startswith(("expected ", "match ace_king_queen-1 has"))
    assert str(tmp_path) not in line


# ---- J8


def test_J8_why_a_bot_is_out_is_its_owners_and_the_instructors_until_the_end(
    tmp_path: Path,
) -> None:
    with running(tmp_path / "arena.db") as store:
        library = InProcessReader(tmp_path / "arena.db")
        [verdict] = store.verdicts("c")
        bot, other = verdict.bot, "ann" if verdict.bot != "ann" else "ben"
        paths = [
            ("competitions/c.json", {}),
            ("competitions/c/bot.json", {"name": bot}),
            (f"matches/{verdict.match}.json", {}),
        ]
        for path, query in paths:
            for viewer in (PUBLIC, owner(other), owner("some")):
                body = library.reply(path, viewer, **query).body
                assert b"legal:" not in body
                assert b'"asked":"' not in body
            for viewer in (INSTRUCTOR, owner(bot)):
                body = library.reply(path, viewer, **query).body
                assert b"legal:" in body
                assert b'"asked":"' in body
        store.competition_finished("c", 9_000.0)
        store.flush()
        for path, query in paths:
            assert b'"asked":"' in library.reply(path, PUBLIC, **query).body


def test_J8_a_bot_below_somebodys_name_is_its_own(tmp_path: Path) -> None:
    players = ("ann/1", "ben/1", "cem/1")
    with running(tmp_path / "arena.db", players=players) as store:
        [verdict] = store.verdicts("c")
        stem = verdict.bot.partition("/")[0]
        [own] = InProcessReader(tmp_path / "arena.db").get("competitions/c.json", owner(stem))[
            "verdicts"
        ]

        assert own["text"] == verdict.text


def test_J8_what_instructors_did_is_theirs(tmp_path: Path) -> None:
    with running(tmp_path / "arena.db") as store:
        store.acted(act("remove", bot="cem", text="for a reason"))
        store.flush()
        library = InProcessReader(tmp_path / "arena.db")

        assert library.get("competitions/c.json")["actions"] is None
        assert b"for a reason" not in library.reply("competitions/c.json").body
        [acted] = library.get("competitions/c.json", INSTRUCTOR)["actions"]
        assert acted["what"] == "remove"


@EACH_GAME
def test_J8_a_record_is_the_instructors_until_the_end(tmp_path: Path, game: str) -> None:
    with running(tmp_path / "arena.db", game, offends=None) as store:
        library = InProcessReader(tmp_path / "arena.db")
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
def test_J8_the_owner_of_a_seat_gets_what_that_seat_saw(tmp_path: Path, game: str) -> None:
    with running(tmp_path / "arena.db", game, offends=None) as store:
        library = InProcessReader(tmp_path / "arena.db")
        played = store.results("c")[0]
        path = f"matches/{played.id}/record.json"
        seat = len(played.players) - 1

        body = library.reply(path, owner(played.players[seat])).body

        document = msgspec.json.decode(body, type=SeatDocument)
        assert (document.match, document.seat) == (played.id, seat + 1)
        whole, own = store.record(played.id), document.record
        assert (own.seed, own.nonces, own.decks) == (None, (), None)
        assert [*document.steps()] != []
        told = [(question, news) for question, news in asked_and_told(whole, seat)]
        assert [
            (step.asked.question if step.asked else None, tuple(tell.news for tell in step.news))
            for step in document.steps()
        ] == told
        if seat:
            status, line = library.refused(path, owner(played.players[seat]), seat="1")
            assert (status, line) == (403, f"expected seat {seat + 1}, your own, got 1")


def asked_and_told(record: Record, seat: int) -> Iterator[tuple[object, tuple[object, ...]]]:
    """What a seat is asked and told, by the rules."""
    for _, question, news in questions_of(seat, reopened(record).steps(record.answers)):
        yield question, news


@EACH_GAME
def test_J8_rounds_are_told_as_whoever_asks_may_see_them(tmp_path: Path, game: str) -> None:
    with running(tmp_path / "arena.db", game, offends=None) as store:
        library = InProcessReader(tmp_path / "arena.db")
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


def test_rounds_of_a_long_match_are_found_wherever_they_are(tmp_path: Path) -> None:
    settings = {"hands": 130}
    with running(tmp_path / "arena.db", offends=None, settings=settings) as store:
        match = store.results("c")[0].id
    library = InProcessReader(tmp_path / "arena.db")
    rng = random.Random(1)
    for _ in range(20):
        first = rng.randrange(1, 131)
        last = min(first + rng.randrange(50), 130)
        told = library.get(f"matches/{match}/rounds.json", from_=str(first), to=str(last))["rounds"]

        assert [round_["round"] for round_ in told] == list(range(first, last + 1))


def test_what_was_told_is_forgotten_when_it_is_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(match_rounds, "_BYTES", 1)
    with running(tmp_path / "arena.db", offends=None) as store:
        matches = [played.id for played in store.results("c")]
    library = InProcessReader(tmp_path / "arena.db")
    for match in (*matches, *matches):
        assert library.get(f"matches/{match}.json")["rounds"]


def test_what_was_asked_for_last_is_forgotten_last(monkeypatch: pytest.MonkeyPatch) -> None:
    record = play("ace_king_queen").record
    size = match_rounds.RecordedMatch(record, ALL).size
    monkeypatch.setattr(match_rounds, "_BYTES", 2 * size)
    matches = match_rounds.RecordedMatches()
    replayed: list[str] = []

    def asks_for(match: str) -> None:
        def read() -> Record:
            replayed.append(match)
            return record

        matches.get(match, ALL, (), read)

    for match in "abacada":
        asks_for(match)
    assert "".join(replayed) == "abcd"
    asks_for("d")
    asks_for("b")
    assert "".join(replayed) == "abcdb"


def test_a_match_that_is_too_long_is_for_arena_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(match_rounds, "MOST_ANSWERS", 3)
    running(tmp_path / "arena.db").close()
    status, line = InProcessReader(tmp_path / "arena.db").refused("matches/ace_king_queen-1.json")

    assert status == 413
    assert "use `arena replay ace_king_queen-1`" in line


@pytest.mark.parametrize("kind", ["", ".json", "/rounds.json"])
def test_a_record_that_cannot_be_read_is_one_line(tmp_path: Path, kind: str) -> None:
    running(tmp_path / "arena.db").close()
    databases.rows(tmp_path / "arena.db", DAMAGED)
    path = f"matches/ace_king_queen-1{kind or '.json'}"
    status, line = InProcessReader(tmp_path / "arena.db").refused(path)

    assert status == 500
    assert "ace_king_queen-1" in line
    assert str(tmp_path) not in line


@pytest.mark.parametrize(
    "wrong",
    [
        {"answers": ("nothing",)},
        {"game": "chess"},
        {"settings": {"hands": -1}},
        {"seed": "no hex"},
        {"seed": None},
    ],
)
def test_a_record_that_cannot_be_played_again_is_one_line(
    tmp_path: Path, wrong: dict[str, Any]
) -> None:
    with running(tmp_path / "arena.db", offends=None) as store:
        record = store.record("ace_king_queen-1")
    damaged = msgspec.structs.replace(record, **wrong).to_json().decode()
    databases.rows(
        tmp_path / "arena.db",
        f"UPDATE matches SET record = CAST('{damaged}' AS BLOB) WHERE pairing = 1",
    )
    library = InProcessReader(tmp_path / "arena.db")
    status, line = library.refused("matches/ace_king_queen-1.json")

    assert status == 500
    assert line.startswith("match ace_king_queen-1 cannot be told again: ")
    assert library.get("matches/ace_king_queen-2.json")


def test_a_void_match_has_a_page_too(finished: InProcessReader) -> None:
    for game in GAMES:
        page = finished.get(f"matches/{game}-void.json")

        assert page["result"]["termination"]["kind"] == Ending.VOID
        assert not page["counts"]
        assert page["decisions"] == 0


def test_a_match_that_somebody_sat_down_to_comes_with_the_question(tmp_path: Path) -> None:
    running(tmp_path / "arena.db").close()
    library = InProcessReader(tmp_path / "arena.db")
    record = play("gin_rummy").record
    sat = PersonalMatch(
        match="m", players=("eva", "house:expert"), record=record, started_at=1.0, finished_at=2.0
    )
    page = msgspec.json.decode(library.personal("matches/m.json", sat).body)
    bare = library.personal("matches/m/record.json", sat)

    assert page["competition"] is None
    assert page["players"] == ["eva", "house:expert"]
    assert page["view"]["kind"] == "all"
    assert page["record"]["seed"] == record.seed
    assert bare.body == record.to_json()
    assert library.personal("matches/m/rounds.json", sat).status == 200
    assert library.refused("matches/m.json")[0] == 404


@EACH_GAME
def test_G14_a_match_has_its_points_by_round_where_it_is_played_for_them(game: str) -> None:
    settings: dict[str, Any] = {"games": 2, "target": 40} if game == "gin_rummy" else {}
    record = play(game, settings=settings).record
    told = match_rounds.RecordedMatch(record, ALL)

    if game == "gin_rummy":
        assert len(told.points) == len(told.scores)
        assert told.points[-1] == record.points
        assert list(told.points) == sorted(told.points)
    else:
        assert told.points == ()


def test_what_takes_long_to_make_is_not_made_anew_at_every_match(tmp_path: Path) -> None:
    now = [0.0]
    with running(tmp_path / "arena.db", offends=None) as store:
        cached = CachedCompetition(store, "c", lambda: now[0])

        def slow() -> int:
            now[0] += 2.0
            return cached.results.played

        def fast() -> int:
            return cached.results.played

        assert (cached.cached("slow", slow), cached.cached("fast", fast)) == (3, 3)
        store.taken_back("c", "ace_king_queen-1", act("void"))
        store.flush()
        now[0] += 10.0
        cached.update()
        assert (cached.cached("slow", slow), cached.cached("fast", fast)) == (3, 2)
        now[0] += 10.0
        assert cached.cached("slow", slow) == 2
