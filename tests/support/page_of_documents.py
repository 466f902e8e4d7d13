"""The page in Chromium without an arena: its files, documents and manual come from this process.

What `arena.web` would answer is given to the browser by interception. Nothing listens, and nothing
is waited for. Whoever logs in shows a name as the token; `Eva` is the instructor.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import msgspec
from websockets.datastructures import Headers

from arena.formats.formats import schedule_of
from arena.games.catalogue import GAMES
from arena.storage.store import Store
from arena.web.files import Files, page_files
from arena.web.manual_pages import MANUAL, ManualPages
from tests.support.browser import BrowserWindow
from tests.support.class_with_page import LONG, ROGUE
from tests.support.page_reader import INSTRUCTOR, PUBLIC, AnalysisReader, owner
from tests.support.sample_database import SampleWriter, plan

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Route, WebSocketRoute

__all__ = ["URL", "documents_window", "manual_page", "route", "views_of", "write_class"]

URL = "http://localhost:1"
_CLASS = (ROGUE, LONG, "Ada", "Ben", "Çem Öztürk", "李小龍", "Eva", "Fay", "Gus")


@cache
def _files() -> Files:
    return page_files()


@cache
def _manual() -> ManualPages:
    return ManualPages(_files().version)


def manual_page(path: str) -> str:
    """The page of a document of the manual."""
    return _manual().answer(f"{MANUAL}{path}", "", Headers()).body.decode()


def documents_window(
    browser: Browser, reader: AnalysisReader | None = None, *options: Any
) -> BrowserWindow:
    """A window at a page whose documents are those of a reader; options as of `BrowserWindow`."""

    def answer(route: Route) -> None:
        asked, headers = urlsplit(route.request.url), Headers(route.request.headers)
        path = unquote(asked.path)
        if path.startswith("/api/"):
            assert reader is not None, f"{path} is asked for"
            status, body = _document(reader, path.removeprefix("/api/"), asked.query, headers)
            route.fulfill(status=status, body=body, content_type="application/json")
            return
        if f"{path}/".startswith(MANUAL):
            reply = _manual().answer(path, asked.query, Headers())
        else:
            reply = _files().answer(path, Headers())
        route.fulfill(status=reply.status, body=reply.body, headers=dict(reply.headers))

    look = BrowserWindow(browser, URL, *options)
    look.page.context.route(f"{URL}/**", answer)
    look.page.context.route_web_socket("**/watch", _watch)
    return look


def _watch(socket: WebSocketRoute) -> None:
    """Say of every match that it is over, and nothing of the lobby."""

    def said(message: str | bytes) -> None:
        if '"match"' in str(message):
            socket.send('{"type": "gone"}')

    socket.on_message(said)


def _document(reader: AnalysisReader, path: str, query: str, headers: Headers) -> tuple[int, bytes]:
    name = headers.get("Authorization", "").removeprefix("Bearer ")
    viewer = PUBLIC if not name else INSTRUCTOR if name == "Eva" else owner(name)
    if path == "me.json":
        return 200, msgspec.json.encode(viewer)
    reply = reader.analysed(path, viewer, **dict(parse_qsl(query)))
    return reply.status, reply.body


def route(*parts: object) -> str:
    """The address of a view, as arena/web/page/route.js has it."""
    return "#/" + "/".join(quote(str(part), safe="") for part in parts)


def write_class(file: Path) -> None:
    """A database in which a class has played a cup in every game; one bot has offended."""
    with Store(file) as store:
        for game in GAMES:
            cup = SampleWriter(store, plan(game, players=_CLASS), f"{game}-cup")
            first = next(schedule_of(cup.plan))
            offends = [pairing.number for pairing in first if pairing.players[0] == ROGUE]
            cup.to_the_end(offender_in=next(iter(offends), None))


def views_of(reader: AnalysisReader, game: str) -> dict[str, str]:
    """The views of one game's cup, by what they show."""
    id_ = f"{game}-cup"
    listed = reader.get(f"competitions/{id_}/matches.json")["matches"]
    fair = next(match["id"] for match in listed if match["kind"] == "completed")
    return {
        "competition": route("c", id_),
        **{tab: route("c", id_, tab) for tab in ("matches", "verdicts", "rules", "standings")},
        "cross": route("c", id_, "cross"),
        "pairing": route("c", id_, "pairing", LONG, "Ada"),
        "bot": route("c", id_, "bot", LONG),
        "rogue": route("c", id_, "bot", ROGUE),
        "match": route("m", fair),
    }
