"""What `--url` asks an arena's page for, and what is said of other answers."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import pytest

from arena.cli._arena_pages import ArenaPages
from arena.cli._page_documents import next_runs
from arena.games.statistics import time_of
from protocol.errors import TOKEN_NEEDED
from tests.support.in_process import Run


class PageRequest(NamedTuple):
    """A request that has come."""

    path: str
    authorization: str | None


class Page:
    """Answers every request alike, and notes it."""

    def __init__(self) -> None:
        self.asked: list[PageRequest] = []
        self.status, self.body = 200, b"{}"
        page = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page.asked.append(PageRequest(self.path, self.headers["Authorization"]))
                self.send_response(page.status)
                self.end_headers()
                self.wfile.write(page.body)

            def log_message(self, *_: object) -> None:
                """Stderr is the command's."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"ws://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def page() -> Iterator[Page]:
    page = Page()
    thread = Thread(target=page.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield page
    page.server.shutdown()
    page.server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("words", "path"),
    [
        (("standings",), "/api/competitions.json"),
        (("replay", "m-1"), "/api/matches/m-1/record.json"),
        (("replay", "m-1.0"), "/api/matches/m-1/record.json?seat=1"),
        (("mistakes", "http://school.example/#/m/m-1"), "/api/matches/m-1/record.json"),
        (("mistakes", "m-1.3"), "/api/matches/m-1/record.json?seat=4"),
    ],
)
def test_a_command_asks_for_the_document_that_a_browser_shows(
    run: Run, page: Page, words: tuple[str, ...], path: str
) -> None:
    page.status, page.body = 404, b'{"error": "there is none"}'

    line = run(*words, "--url", page.url, "--token", " secret\n").refusal(1)
    assert line == "there is none"
    assert page.asked == [(path, "Bearer secret")]


def test_without_a_database_a_link_says_which_arena_to_ask(
    run: Run, page: Page, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    page.status, page.body = 404, b'{"error": "there is none"}'
    link = f"{page.url.replace('ws', 'http')}/#/m/m-1"

    assert run("replay", link).refusal(1) == "there is none"
    assert page.asked == [("/api/matches/m-1/record.json", None)]
    (tmp_path / "arena.db").touch()
    assert run("replay", link).failure(run("replay", link).status) != "there is none"


def test_below_a_path_the_documents_are_below_it_too(page: Page) -> None:
    ArenaPages(f"{page.url}/course/").get("matches", "a/b?", seat=None)

    assert page.asked == [("/course/api/matches/a%2Fb%3F.json", None)]


@pytest.mark.parametrize(
    ("status", "body", "line"),
    [
        (401, f'{{"error": "{TOKEN_NEEDED}"}}', f"{TOKEN_NEEDED}; copy the whole token, "),
        (502, "<h1>bad gateway</h1>", "what answers at {url} says: <h1>bad gateway</h1>"),
        (503, "", "what answers at {url} says: HTTP 503"),
        (200, "<h1>log in</h1>", "what answers at {url} is no arena of this release: "),
        (200, '{"competitions": 3}', "what answers at {url} is no arena of this release: "),
    ],
)
def test_another_answer_is_a_line(run: Run, page: Page, status: int, body: str, line: str) -> None:
    page.status, page.body = status, body.encode()

    said = run("standings", "--url", page.url, "--token", "x").refusal(1)
    assert said.startswith(line.format(url=page.url))


def test_where_a_submission_plays_next(page: Page) -> None:
    ladders = [("evening", "akq", "ladder", "either"), ("open", "akq", "ladder", "connected")]
    others = [("now", "akq", "league", "submitted"), ("cards", "gin", "ladder", "submitted")]
    runs = [("friday", 1795456800.0, 0), ("soon", None, 3), ("connected", 1.0, None)]
    page.body = json.dumps(
        {
            "competitions": [
                dict(zip(("run", "game", "form", "take"), each, strict=True))
                for each in (*ladders, *others)
            ],
            "runs": [
                {"run": run, "game": "akq", "form": "round_robin", "next_at": at, "submitted": here}
                for run, at, here in runs
            ],
        }
    ).encode()

    assert next_runs(page.url, ["akq"]) == [
        "evening, ladder, now",
        f"friday, round robin, {time_of(1795456800.0)}",
        "soon, round robin, when enough bots are there",
    ]
    page.status = 404
    assert next_runs(page.url, ["akq"]) == []


def silent(listener: socket.socket) -> None:
    """Close every connection without a word of HTTP."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.sendall(b"SSH-2.0-OpenSSH\r\n")


def test_what_speaks_no_http_is_a_line(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=silent, args=(listener,), daemon=True).start()
        url = f"ws://127.0.0.1:{listener.getsockname()[1]}"
        assert run("standings", "--url", url).refusal(1).startswith(f"no arena answers at {url}: ")
        listener.shutdown(socket.SHUT_RDWR)


def test_a_proxy_that_cannot_be_used_is_refused_before(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)  # all is installed
    monkeypatch.setenv("ALL_PROXY", "socks5h://127.0.0.1:1")

    line = run("standings", "--url", "ws://far.example:9").refusal(2)
    assert line.startswith("expected an HTTP proxy in the environment")
