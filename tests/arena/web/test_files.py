"""The page's files: the version in their addresses, caching, and compression."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from websockets.datastructures import Headers

from arena.games import GAMES
from arena.server.reply import Reply
from arena.web.files import Files, game_files, page_files
from protocol.high_low import Dealt
from protocol.words import Told

SCRIPT = b"export const wide = 1;\n" * 100
CONTENTS = {
    "index.html": b'<script type="module" src="/static/{version}/app.js"></script>',
    "app.js": SCRIPT,
    "views/lobby.js": b"short",
    "favicon.svg": b"<svg/>",
}


@pytest.fixture
def files() -> Files:
    return Files(CONTENTS)


def get(files: Files, path: str, **headers: str) -> Reply:
    said = {name.replace("_", "-"): value for name, value in headers.items()}
    return files.answer(path, Headers(said))


def header(reply: Reply, name: str) -> str | None:
    return dict(reply.headers).get(name)


def test_the_index_names_the_version_and_is_asked_for_each_time(files: Files) -> None:
    index = get(files, "/")

    assert f"/static/{files.version}/app.js".encode() in index.body
    assert b"{version}" not in index.body
    assert header(index, "Cache-Control") == "no-cache"
    assert header(index, "Content-Type") == "text/html; charset=utf-8"


def test_what_is_kept_for_ever_has_the_version_in_its_address(files: Files) -> None:
    script = get(files, f"/static/{files.version}/app.js")

    assert (script.status, script.body) == (200, SCRIPT)
    assert header(script, "Cache-Control") == "public, max-age=31536000, immutable"
    assert header(script, "Content-Type") == "text/javascript; charset=utf-8"


@pytest.mark.parametrize(
    "path",
    [
        "/static/0000000000000000/app.js",
        "/static/{}/index.html",
        "/static/{}/",
        "/static/{}",
        "/static/{}/../files.py",
        "/static/{}/views",
        "/app.js",
        "/index.html",
        "//",
        "",
        "http://127.0.0.1/",
    ],
)
def test_whatever_else_is_not_there_and_not_kept(files: Files, path: str) -> None:
    answer = get(files, path.format(files.version))

    assert answer.status == 404
    assert header(answer, "Cache-Control") == "no-store"


@pytest.mark.parametrize("change", ["app.js", "views/lobby.js", "index.html"])
def test_any_change_is_another_version(files: Files, change: str) -> None:
    assert Files({**CONTENTS, change: b"{version}!"}).version != files.version


def test_a_change_that_is_as_long_is_another_version(files: Files) -> None:
    assert Files({**CONTENTS, "app.js": SCRIPT.swapcase()}).version != files.version


def test_what_editors_leave_behind_is_not_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.web.files.files", lambda package: tmp_path)
    page = tmp_path / "page"
    (page / "__pycache__").mkdir(parents=True)
    for name in ("index.html", "app.js", ".app.js.swp", "__pycache__/x.pyc"):
        (page / name).write_bytes(b"x")
    files = page_files()

    for name, status in (("app.js", 200), (".app.js.swp", 404), ("__pycache__/x.pyc", 404)):
        assert get(files, f"/static/{files.version}/{name}").status == status


def test_a_file_that_is_renamed_is_another_version(files: Files) -> None:
    renamed = {**CONTENTS, "b.js": CONTENTS["app.js"]}
    del renamed["app.js"]

    assert Files(renamed).version != files.version


def test_a_browser_that_takes_gzip_gets_it_where_that_is_worth_it(files: Files) -> None:
    where = f"/static/{files.version}/"
    script = get(files, where + "app.js", Accept_Encoding="br, gzip;q=0.8")
    short = get(files, where + "views/lobby.js", Accept_Encoding="gzip")

    assert header(script, "Content-Encoding") == "gzip"
    assert header(script, "Vary") == "Accept-Encoding"
    assert header(script, "Content-Length") == str(len(script.body))
    assert gzip.decompress(script.body) == SCRIPT
    assert (header(short, "Content-Encoding"), short.body) == (None, b"short")


@pytest.mark.parametrize("accepts", ["", "br", "gzip;q=0", "gzip ; q=0.000", "x-gzip"])
def test_who_takes_no_gzip_gets_none(files: Files, accepts: str) -> None:
    script = get(files, f"/static/{files.version}/app.js", Accept_Encoding=accepts)

    assert header(script, "Content-Encoding") is None
    assert script.body == SCRIPT


@pytest.mark.parametrize("form", ["{}", 'W/"other", {}', "*", "  {}  "])
def test_who_has_it_is_told_so(files: Files, form: str) -> None:
    tag = header(get(files, "/"), "ETag") or ""
    again = get(files, "/", If_None_Match=form.format(tag))

    assert (again.status, again.body) == (304, b"")
    assert header(again, "ETag") == tag
    assert header(again, "Content-Security-Policy")


def test_who_has_another_gets_it(files: Files) -> None:
    assert get(files, "/", If_None_Match='W/"other"').status == 200


def test_every_answer_forbids_what_the_page_does_not_need(files: Files) -> None:
    for path in ("/", "/favicon.svg", "/nothing"):
        answer = get(files, path)
        policy = header(answer, "Content-Security-Policy") or ""

        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert header(answer, "X-Content-Type-Options") == "nosniff"
        assert header(answer, "Referrer-Policy") == "no-referrer"


def test_the_script_within_the_index_is_allowed_by_its_hash() -> None:
    answer = get(page_files(), "/")
    [script] = re.findall(r"<script>(.*?)</script>", answer.body.decode(), re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()

    assert f"script-src 'self' 'sha256-{digest}';" in (
        header(answer, "Content-Security-Policy") or ""
    )


def test_all_that_the_index_of_the_installed_page_names_is_there() -> None:
    files = page_files()
    index = get(files, "/").body.decode()

    assert "{version}" not in index

    for address in index.split('"'):
        if address.startswith("static/"):
            assert get(files, f"/{address}").status == 200, address


def test_the_page_knows_every_game_as_it_describes_itself() -> None:
    files = game_files()
    script = files["games/games.js"].decode()
    described = json.loads(script.removeprefix("export const GAMES = ").removesuffix(";\n"))

    assert list(described) == list(GAMES)
    for name, game in GAMES.items():
        shown = described[name]
        assert (shown["title"], shown["about"]) == (game.vocabulary.title, game.about)
        assert shown["closes"] in game.vocabulary.news
        offered = [choice.setting for choice in game.choices if choice.is_offered]
        assert [choice["setting"] for choice in shown["choices"]] == offered
        for choice in shown["choices"]:
            assert choice["least"] <= choice["first"] <= choice["most"]
        for path in filter(None, (shown["view"], shown["style"])):
            assert f"games/{path}" in files


def test_private_news_are_the_seats_own_whatever_tells_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    game = GAMES["high_low"]
    told = Told(lambda news, names, who: [f"{who} is dealt {news.card}"])
    words = replace(game.vocabulary, words={**game.vocabulary.words, Dealt: told})
    monkeypatch.setitem(GAMES, "high_low", replace(game, vocabulary=words))
    script = game_files()["games/games.js"]

    assert script.count(b'"private":["dealt"]') == 2, "in gin rummy and high-low"
