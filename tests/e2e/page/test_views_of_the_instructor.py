"""What the instructor does at the page; last at the class's arena, as it ends what others look at."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from arena.competitions.attendance import MissingVersions, Upcoming
from protocol.instructions import HostView, LostBot
from tests.support.browser import PHONE, SIZES, BrowserWindow
from tests.support.class_with_page import ROGUE
from tests.support.host_views import host_view

if TYPE_CHECKING:
    from playwright.sync_api import FilePayload, Page, WebSocketRoute

    from tests.e2e.page.conftest import Windows
    from tests.support.class_with_page import ClassWithPage
    from tests.support.page_reader import AnalysisReader

pytestmark = pytest.mark.e2e


def test_an_instructor_has_all_of_it_done(windows: Windows, school: ClassWithPage) -> None:
    look = windows.at(school.url, PHONE)
    page = look.to("#/instructor")
    page.get_by_label("Token").fill("a word that is none")
    with look.expecting("."):
        page.get_by_role("button", name="Enter").click()
        page.get_by_text("expected a token").wait_for()
    page.get_by_label("Token").fill(school.instructor)
    page.get_by_role("button", name="Enter").click()
    page.get_by_role("heading", name="Competitions that are on").wait_for()
    look.sound("the instructor's desk")

    page.get_by_role("button", name="Pause ace_king_queen-live").click()
    page.get_by_role("button", name="Resume ace_king_queen-live").click()
    page.get_by_role("button", name="Pause ace_king_queen-live").wait_for()

    before = school.at_table()["ace_king_queen"]
    page.get_by_label("The match's id").fill(before)
    page.get_by_role("button", name="Void it…").click()
    look.sound("a question that is asked first")
    page.get_by_role("dialog").get_by_role("button", name="Void it").click()
    school.until(lambda: school.at_table()["ace_king_queen"] != before, "another match")

    started = school.started()
    page.get_by_label("What").select_option("blackjack")
    page.get_by_label("Hands").fill("5")
    page.get_by_role("button", name="Start", exact=True).click()
    school.until(lambda: school.started() == started + 1, "one competition more")

    for encoding in ("cp1252", "utf-16"):
        data = "name\tteam\r\nZoë\tblue\r\n".encode(encoding)
        file: FilePayload = {"name": "class.txt", "mimeType": "text/plain", "buffer": data}
        page.get_by_label("From a file").set_input_files(file)
        if encoding == "cp1252":
            page.get_by_text("expected text in UTF-8, class.txt is something else").wait_for()
    page.get_by_role("button", name="Put on the roster").click()
    with page.expect_download() as tokens:
        page.get_by_role("button", name="Download tokens.csv").click()
    assert tokens.value.path().read_bytes().startswith("\ufeffname,token\r\nZoë,".encode())
    page.get_by_role("button", name="Show them here").click()
    assert "Zoë" in page.get_by_role("region", name="Tokens", exact=True).inner_text()

    page.get_by_label("Who", exact=True).fill("zoë")
    page.get_by_label("New name").fill("Zoe Zhang")
    page.get_by_role("button", name="Rename").click()
    page.get_by_text("Zoë is Zoe Zhang now", exact=True).wait_for()
    page.get_by_label("Who", exact=True).fill("Zoe Zhang")
    page.get_by_role("button", name="Take off the roster…").click()
    page.get_by_role("dialog").get_by_role("button", name="Take off").click()
    page.get_by_text("Zoe Zhang is on the roster no longer").wait_for()
    page.get_by_label("Who", exact=True).fill("Slow Sue")
    page.get_by_label("New name").fill("Sue")
    page.get_by_role("button", name="Rename").click()
    page.get_by_text("not in use: Slow Sue is connected").wait_for()

    page.get_by_role("button", name="See it").click()
    page.get_by_label("what the arena has told").get_by_text(ROGUE).first.wait_for()
    look.sound("the log")

    page.get_by_label("Bot", exact=True).fill("Slow Sue")
    page.get_by_role("button", name="Remove it…").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove it").click()
    school.until(lambda: "Slow Sue" in school.out("ace_king_queen-live"), "a verdict")

    where = page.get_by_label(re.compile(r"^From\s*every competition"))
    over = where.locator("optgroup option").last
    where.select_option(over.get_attribute("value"))
    page.get_by_label("Bot", exact=True).fill("nobody")
    page.get_by_role("button", name="Remove it…").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove it").click()
    page.get_by_text("expected a bot that is in").wait_for()


# ---- To start a competition


def desk(windows: Windows, school: ClassWithPage) -> Page:
    look = windows.at(school.url, PHONE)
    page = look.to("#/instructor")
    page.get_by_label("Token").fill(school.instructor)
    page.get_by_role("button", name="Enter").click()
    page.get_by_role("heading", name="Competitions that are on").wait_for()
    return page


@pytest.mark.parametrize(
    ("game", "forms"),
    [
        ("gin_rummy", ["round robin", "ladder"]),
        ("high_low", ["elimination", "ladder"]),
        ("blackjack", ["league"]),
    ],
)
def test_only_forms_that_a_game_has_are_offered(
    windows: Windows, school: ClassWithPage, game: str, forms: list[str]
) -> None:
    page = desk(windows, school)
    page.get_by_label("What").select_option(game)

    assert page.get_by_label("Form").locator("option").all_inner_texts() == forms


def listed(school: ClassWithPage) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = school.document("/api/competitions.json")["competitions"]
    return found


def test_every_setting_has_its_field_and_a_bad_value_its_line(
    windows: Windows, school: ClassWithPage
) -> None:
    page = desk(windows, school)
    page.get_by_label("What").select_option("blackjack")
    before = {one["id"] for one in listed(school)}

    assert page.get_by_label("Bankroll").input_value() == "100"
    assert page.get_by_label("Hands").input_value() == "1000"
    assert page.get_by_label("Shuffle").input_value() == "uniform"
    page.get_by_label("Hands").fill("-5")
    page.get_by_role("button", name="Start", exact=True).click()
    page.get_by_text("Expected a whole number from 0 to 10,000,000, got -5").wait_for()
    assert page.get_by_label("Hands").get_attribute("aria-invalid") == "true"
    assert {one["id"] for one in listed(school)} == before

    page.get_by_label("Hands").fill("7")
    page.get_by_label("Matches of each bot").fill("2")
    page.get_by_role("button", name="Start", exact=True).click()
    school.until(lambda: len(listed(school)) > len(before), "one competition more")
    [id_] = {one["id"] for one in listed(school)} - before
    started = school.document(f"/api/competitions/{id_}.json")
    assert started["settings"] == {"bankroll": 100, "hands": 7, "shuffle": "uniform"}
    assert started["matches"] == 2


def arena_of(
    look: BrowserWindow, hosts: Sequence[HostView] = (), lost: Sequence[LostBot] = (), **lobby: Any
) -> list[dict[str, Any]]:
    """Have a window see this lobby, and hosts if there are some; returns what it says."""
    told: list[dict[str, Any]] = []
    arena: dict[str, object] = {"games": [], "submissions": False, "hosts": bool(hosts)}
    arena |= {"startable": [], "filling": "the disk will be full within an hour"}
    lists = ("competitions", "bots", "matches", "queue", "runs", "latest")
    document = {"type": "lobby", "arena": arena, **{key: [] for key in lists}, **lobby}

    def watch(socket: WebSocketRoute) -> None:
        def said(message: str | bytes) -> None:
            told.append(json.loads(message))
            done = {"type": "done", "text": "stopped: akq-1", "competitions": []}
            done |= {"hosts": msgspec.to_builtins(hosts), "lost": msgspec.to_builtins(lost)}
            socket.send(json.dumps(done if told[-1]["type"] == "instruct" else document))

        socket.on_message(said)

    look.page.context.route_web_socket("**/watch", watch)
    return told


def test_the_instructor_sees_the_hosts_and_drains_one(
    windows: Windows, reader: AnalysisReader
) -> None:
    look = windows.of(reader, is_new=True)
    hosts = [
        host_view("h1", state="working", own_bots=3),
        host_view("h2", state="unfit", why="it does not isolate bots", isolation=""),
        host_view("h3", state="silent", why="it has not reported for 60 s"),
    ]
    told = arena_of(look, hosts=hosts, lost=[LostBot("ann", 4, 9, 0.52)])
    page = look.to("#/instructor")
    page.get_by_label("Token").fill("Eva")
    with look.expecting("games.json"):  # the reader has none
        page.get_by_role("button", name="Enter").click()
        page.get_by_role("row").filter(has_text="h1").get_by_text("working").wait_for()
    row = page.get_by_role("row").filter(has_text="h1")
    for size in SIZES.values():
        look.resize(size)
        look.sound("the hosts", colours=size == PHONE)

    assert "3 of 5" in row.inner_text()
    main = page.locator("main").inner_text()
    assert "it does not isolate bots" in main
    assert "ann 4 of 9 starts; at the rate of the others it were 0.5" in main
    page.get_by_role("button", name="Drain h1").click()
    page.get_by_text("stopped: akq-1").wait_for()
    orders = [each for each in told if each.get("action") == "drain"]
    assert [order["host"] for order in orders] == ["h1"]


def test_what_a_run_waits_for_and_will_miss_is_said(
    windows: Windows, reader: AnalysisReader
) -> None:
    look = windows.of(reader, is_new=True)
    late = Upcoming("cup", "akq", "league", 1e9, too_late=MissingVersions(23, 1265.0))
    waits = Upcoming("late", "akq", "league", None, come=4, least=2, undecided=("ann", "ben"))
    arena_of(look, runs=msgspec.to_builtins((late, waits)), bots_more=0, matches_more=0)
    page = look.to("#/instructor")
    page.get_by_label("Token").fill("Eva")
    page.get_by_role("button", name="Enter").click()
    line = page.get_by_role("status").filter(has_text="versions that are missing: 23")
    assert "takes about 21 min, longer than the time left" in line.inner_text()
    look.to("#/").get_by_text("it starts when what ann and ben handed in before is").wait_for()


@pytest.mark.parametrize(
    ("answer", "unplayed"), [("Stop it, they count", "before"), ("Stop it, they stay void", "void")]
)
def test_what_was_over_and_goes_on_is_stopped_in_two_ways(
    windows: Windows, reader: AnalysisReader, answer: str, unplayed: str
) -> None:
    look = windows.of(reader, is_new=True)
    cup = {"id": "akq-1", "run": "cup", "game": "ace_king_queen", "title": "Ace-King-Queen"}
    progress = {"state": "running", "settled": 61, "scheduled": 90, "left_s": None}
    on = {**cup, **progress, "form": "round_robin", "waits_for": ["b6"], "bots": 6}
    told = arena_of(look, competitions=[{**on, "reopened": True}])
    page = look.to("#/instructor")
    page.get_by_label("Token").fill("Eva")
    page.get_by_role("button", name="Enter").click()
    page.get_by_text("Make room: the disk will be full within an hour.").wait_for()
    page.get_by_text("It was over, and matches are played again: nobody is absent").wait_for()
    page.get_by_role("button", name="Stop… cup").click()
    page.get_by_role("dialog").get_by_role("button", name=answer).click()
    page.get_by_text("stopped: akq-1").wait_for()
    stop = {"action": "stop", "competition": "akq-1", "unplayed": unplayed}
    assert told[-1] == {"type": "instruct", "protocol": 1, "token": "Eva", **stop}
