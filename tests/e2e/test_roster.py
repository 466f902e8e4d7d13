"""`arena roster rename` and `remove` beside a running arena, which knows who is connected."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.support.databases import needed
from tests.support.in_process import Terminal, run_here

if TYPE_CHECKING:
    from tests.support.gateway_bots import StartedProgram

pytestmark = pytest.mark.e2e

TIMEOUT_S = 30.0
FILE = """
[serve]
port = 0

[[run]]
name = "cup"
game = "ace_king_queen"
players = ["cem", "dan"]
at = 2099-01-01T10:00:00Z

[[run]]
name = "final"
game = "gin"
least = 4
house = ["simple", "patient"]
"""


class ArenaWithRoster:
    """An arena on either kind of database, with a class of four on its roster."""

    def __init__(self, start: Callable[..., StartedProgram], folder: Path, database: str) -> None:
        self._start = start
        self._folder = folder
        self.db = database
        (folder / "class.toml").write_text(FILE)
        (folder / "class.csv").write_text("name\nann\nben\ncem\ndan\n")
        done = self.roster("import", "class.csv", "--json")
        self.tokens = {made["name"]: made["token"] for made in json.loads(done)["new"]}
        self.program, self.url = self.serves()

    def serves(self) -> tuple[StartedProgram, str]:
        words = ("--config", "class.toml", "--db", self.db)
        program = self._start("arena", "serve", *words, cwd=self._folder)
        return program, program.until("arena at ws://").split()[2]

    def roster(self, *words: str, status: int = 0) -> str:
        """What it prints, or the one line of its refusal."""
        ran = run_here("roster", *words, "--db", self.db)
        return ran.refusal(status) if status else ran.text

    def says(self, bot: ClientConnection, **fields: Any) -> Any:
        bot.send(json.dumps(fields))
        return json.loads(bot.recv(TIMEOUT_S))

    def hello(
        self, bot: ClientConnection, name: str, owner: str, game: str = "ace_king_queen"
    ) -> Any:
        fields = {"name": name, "games": [game], "token": self.tokens[owner]}
        return self.says(bot, type="hello", protocol=1, **fields)


@pytest.fixture
def arena_on(
    start: Callable[..., StartedProgram], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], ArenaWithRoster]:
    monkeypatch.chdir(tmp_path)
    return partial(ArenaWithRoster, start, tmp_path)


def closed(bot: ClientConnection) -> str:
    """Why a connection was closed."""
    try:
        while True:
            bot.recv(TIMEOUT_S)
    except ConnectionClosed as end:
        return str(end)


def test_who_is_in_what_runs_is_struck_only_if_said_so(
    arena_on: Callable[[str], ArenaWithRoster], monkeypatch: pytest.MonkeyPatch
) -> None:
    arena = arena_on("class.db")
    with connect(arena.url) as ann, connect(arena.url) as ben:
        bots = {"ann": ann, "ben": ben}
        for name, bot in bots.items():
            arena.hello(bot, f"{name}/x", name, "gin_rummy")
        for word, (name, bot) in zip(("revoke", "remove"), bots.items(), strict=True):
            while json.loads(bot.recv(TIMEOUT_S))["type"] != "match":
                pass
            assert arena.roster(word, name.upper(), status=2).startswith(
                f"expected --from-running, as there is no terminal to ask at: {name}/x is in gin-"
            )
            if word == "remove":
                assert f"{name}/x is in gin-" in arena.roster("rotate", name)
            with monkeypatch.context() as patch:
                patch.setattr(sys, "stdin", Terminal("n\n"))
                asked = run_here("roster", word, name, "--db", arena.db)
            assert f"take them out? [y/N]: arena: {name} stays, nothing has changed" in asked.err
            said = arena.roster(word, name, "--from-running")
            assert said.endswith("the programs that were handed in stay\n")
            assert "its token was re" in closed(bot)  # revoked, or replaced
    assert "its token was revoked" in arena.program.until("ann/x (gin_rummy) eliminated")
    assert "removed by arena roster" in arena.program.until("ben/x (gin_rummy) eliminated")
    listed = json.loads(arena.roster("list", "--json"))["members"]
    assert [member["name"] for member in listed] == ["ann", "cem", "dan"]


def test_names_not_in_use_are_changed_and_a_killed_arena_uses_none(
    arena_on: Callable[[str], ArenaWithRoster],
) -> None:
    arena = arena_on(needed().url())
    with connect(arena.url) as bot:
        assert arena.hello(bot, "ann/gin", "ann")["type"] == "welcome"
        for words in (("remove", "ann"), ("rename", "ANN", "anna")):
            assert arena.roster(*words, status=2) == (
                "expected a name that is not in use: ann/gin is connected"
            )
        for words in (("remove", "cem"), ("rename", "dan", "zed")):
            assert arena.roster(*words, status=2) == (
                "expected a name that is not in use: "
                "it is among the players of the run cup, which is still to be played"
            )
        bot.send(json.dumps({"type": "goodbye"}))
        closed(bot)

    assert arena.roster("rename", "ANN", "anna") == "ann is anna now\n"
    assert arena.roster("remove", "ben").startswith("ben is on the roster no longer; ")
    with connect(arena.url) as bot:
        assert arena.hello(bot, "ann/gin", "ann")["type"] == "welcome"
        assert "anna is connected" in arena.roster("remove", "anna", status=2)
    with connect(arena.url) as bot:
        refused = arena.hello(bot, "ben", "ben")
        assert (refused["type"], refused["code"]) == ("refused", "token")
    listed = json.loads(arena.roster("list", "--json"))["members"]
    assert [member["name"] for member in listed] == ["anna", "cem", "dan"]

    with connect(arena.url) as bot:
        arena.hello(bot, "anna", "ann")
        assert "anna is connected" in arena.roster("remove", "anna", status=2)
        arena.program.kill()

        assert arena.roster("remove", "anna").startswith("anna is on the roster no longer; ")
    program, url = arena.serves()
    with connect(url) as bot:
        refused = arena.hello(bot, "anna", "ann")
        assert (refused["type"], refused["code"]) == ("refused", "token")
        program.kill()
