"""The page's files: the version in their addresses, caching, and compression."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from websockets.datastructures import Headers

from arena.games.catalogue import GAMES
from arena.server.reply import Reply
from arena.web.files import Files, game_files, page_files
from protocol.high_low import Dealt
from protocol.messages import Limits
from protocol.words import Told

SCRIPT = b"export const wide = 1;\n" * 100
CONTENTS = {
    "index.html": b'<script type="module" src="/static/{version}/app.js"></script>',
    "app.js": SCRIPT,
    "views/lobby.js": b"short",
    "favicon.svg": b"<svg/>",
}


def get(files: Files, path: str) -> Reply:
    return files.answer(path, Headers())


@pytest.mark.parametrize(
    "changed",
    [
        {**CONTENTS, "app.js": b"{version}!"},
        {**CONTENTS, "views/lobby.js": b"{version}!"},
        {**CONTENTS, "index.html": b"{version}!"},
        {**CONTENTS, "app.js": SCRIPT.swapcase()},
        {"b.js" if name == "app.js" else name: body for name, body in CONTENTS.items()},
    ],
    ids=["a script", "a view", "the index", "as long", "renamed"],
)
def test_any_change_is_another_version(changed: dict[str, bytes]) -> None:
    assert Files(changed).version != Files(CONTENTS).version


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


def test_the_script_within_the_index_is_allowed_by_its_hash() -> None:
    answer = get(page_files(), "/")
    [script] = re.findall(r"<script>(.*?)</script>", answer.body.decode(), re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = dict(answer.headers)["Content-Security-Policy"]

    assert f"script-src 'self' 'sha256-{digest}';" in policy


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
    first, _, second = script.partition("\n")
    described = json.loads(first.removeprefix("export const GAMES = ").removesuffix(";"))
    limits = json.loads(second.removeprefix("export const LIMITS = ").removesuffix(";\n"))

    assert [*limits] == [*Limits.__struct_fields__]

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
