"""A small class at an arena with its page, for tests in browsers, screenshots and measurements.

`ClassWithPage` starts `arena serve --config` as a process, puts a class on the roster, and has it
play a competition in every game; one bot offends in all of them. Slow bots think before they
answer, so that their matches go on while somebody looks.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

from arena.games.catalogue import GAMES as RULES
from arena.storage.roster import Roster
from arena.storage.roster_csv import Student
from arena.storage.store import Store
from protocol.strategy import house_bots
from tests.support import arena_process
from tests.support.random_matches import endless
from tests.support.student_bots import student

__all__ = ["GAMES", "LONG", "ROGUE", "TOYS", "ClassWithPage", "enrolled"]

GAMES = {game: tuple(house_bots(game)) for game in RULES}
"""The bots of the class, by game."""

ROGUE = "Mallory"
LONG = "Wolfeschlegelsteinhausenbergerdorff-Maximiliane-Theodora-the-2nd"
"""A name of the greatest length."""

TOYS = (1, 2, 3, 6)
"""The numbers of seats of the games from outside that tests of the page play."""

_NAMES = (LONG, "Ada", "Ben", "Çem Öztürk", "李小龍", "Eva", "Fay", "Gus")
_SLOW = ("Slow Sam", "Slow Sue", "Slow Sid", "Slow Sol")
_PAUSE_S = 0.8
_READY_S = 60.0
_PLAYED_S = 120.0

_CONFIG = """
[serve]
port = 0
db = "class.db"
{serve}

[limits]
decision_ms = 5000
bank_ms = 60000
hard_ms = 20000
grace_ms = 3000
"""
_RUN = """
[[run]]
name = {name}
game = "{game}"
players = {players}
matches = {matches}
wait_s = 20
settings = {settings}
"""
_ROUNDS = 20
_MATCHES = {1: 8, 2: 1}  # by seats; 1 for more seats


class ClassWithPage:
    """Use it as a context: inside, `url` is the arena's page.

    Args:
        folder: the folder of the arena's files.
        live: the games in which slow bots play on and on.
        serve: more lines for the arena's `[serve]`, in TOML.
        cups: the games in which the class plays a competition.
        beside: folders with packages of games.
        guests: more names on the roster.
    """

    def __init__(
        self,
        folder: Path,
        live: Sequence[str] = tuple(RULES)[:1],
        serve: str = "",
        cups: Sequence[str] = tuple(RULES),
        beside: Sequence[Path] = (),
        guests: Sequence[str] = (),
    ) -> None:
        self.url = ""
        self.tokens: dict[str, str] = {}
        self.instructor = ""
        self._folder = folder
        self._live = live
        self._serve = serve
        self._cups = cups
        self._beside = beside
        self._guests = guests
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> ClassWithPage:
        names = [*_NAMES, ROGUE, *_SLOW, *self._guests]
        self.tokens, self.instructor = enrolled(self._folder / "class.db", names)
        self._configure()
        arena = self.start("-m", "arena", "serve", "--config", "class.toml")
        try:
            self.url = self._address(arena)
            self._come()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start `python WORDS` beside the arena; it ends with the class."""
        errors = "arena.err" if not self._processes else "bots.err"
        started = arena_process.start(self._folder, errors, *words, beside=self._beside)
        self._processes.append(started)
        return started

    def said(self) -> str:
        """What the arena has written to stderr."""
        return (self._folder / "arena.err").read_text(encoding="utf-8")

    def document(self, path: str, token: str | None = None) -> Any:
        """A document of the arena's, as the page reads it."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        with urlopen(Request(f"{self.url}{path}", headers=headers), timeout=20) as it:
            return json.load(it)

    def until(self, holds: Callable[[], bool], what: str, within_s: float = _PLAYED_S) -> None:
        end = time.monotonic() + within_s
        while not holds():
            assert time.monotonic() < end, f"{what} never came; {self.said()[-2000:]}"
            time.sleep(0.1)

    def competitions(self) -> dict[str, dict[str, Any]]:
        """All competitions by the name of their run."""
        listed = self.document("/api/competitions.json")["competitions"]
        return {competition["run"]: competition for competition in listed}

    def started(self) -> int:
        """How many competitions there have been."""
        return len(self.document("/api/competitions.json")["competitions"])

    def out(self, run: str) -> set[str]:
        """The bots that are out of a competition."""
        id_ = self.competitions()[run]["id"]
        verdicts = self.document(f"/api/competitions/{id_}.json")["verdicts"]
        return {verdict["bot"] for verdict in verdicts}

    def played(self) -> None:
        """Wait until the competitions of all games are over."""

        def all_over() -> bool:
            on = self.competitions()
            return all(on.get(f"{game}-cup", {}).get("state") == "finished" for game in self._cups)

        self.until(all_over, "the end of all cups")

    def route(self, *parts: object) -> str:
        """The address of a view, as arena/web/page/route.js has it."""
        return "#/" + "/".join(quote(str(part), safe="") for part in parts)

    def at_table(self) -> dict[str, str]:
        """The matches that go on and on, by game; matches of people are in no competition."""
        live: dict[str, str] = {}

        def all_there() -> bool:
            for match in self.document("/api/lobby.json")["matches"]:
                if match["competition"]:
                    live[match["game"]] = match["match"]
            return live.keys() >= set(self._live)

        self.until(all_there, "a match in every game that is to be seen live")
        return live

    # ---- before

    def _configure(self) -> None:
        config = _CONFIG.format(serve=self._serve)
        everybody = [*_NAMES, ROGUE]
        for game, rules in RULES.items():
            matches = _MATCHES.get(rules.seats, 1)
            if game in self._cups:
                config += _run(f"{game}-cup", game, everybody, matches, rules.rounds(_ROUNDS))
            if game in self._live:
                names = _SLOW[: rules.seats]
                config += _run(f"{game}-live", game, names, 1, endless(game))
        (self._folder / "class.toml").write_text(config, encoding="utf-8")

    def _address(self, arena: subprocess.Popen[bytes]) -> str:
        end = time.monotonic() + _READY_S
        while arena.poll() is None and time.monotonic() < end:
            if "arena at " in (said := self.said()):
                url = said.partition("arena at ")[2].split()[0]
                return url.replace("ws", "http", 1).rstrip("/")
            time.sleep(0.05)
        raise AssertionError(self.said())

    def _come(self) -> None:
        honest = [self._student(name, number) for number, name in enumerate(_NAMES)]
        self._bots("class", honest)
        rogue = student(ROGUE, dict.fromkeys(GAMES, "rogue-illegal"), token=self.tokens[ROGUE])
        self._bots("rogue", [rogue])
        if self._live:
            slow = [self._student(name, number, _PAUSE_S) for number, name in enumerate(_SLOW)]
            self._bots("slow", slow)

    def _student(self, name: str, number: int, pause_s: float = 0.0) -> dict[str, Any]:
        bots = {game: bots[number % len(bots)] for game, bots in GAMES.items()}
        return student(name, bots, tables=8, token=self.tokens[name], pause_s=pause_s)

    def _bots(self, name: str, students: list[dict[str, Any]]) -> None:
        file = self._folder / f"{name}.json"
        file.write_text(json.dumps(students), encoding="utf-8")
        words = ("-m", "tests.support.student_bots", str(file))
        self.start(*words, "--url", self.url.replace("http", "ws"))


def enrolled(database: Path, names: Sequence[str]) -> tuple[dict[str, str], str]:
    """Put a class on the roster; returns the tokens by name, and the instructor's."""
    with Store(database) as store:
        roster = Roster(store.engine)
        new = roster.take([Student(name=name) for name in names]).new
        return {issued.name: issued.token for issued in new}, roster.instructor()


def _run(
    name: str, game: str, players: Sequence[str], matches: int, settings: Mapping[str, object]
) -> str:
    quoted = json.dumps(list(players), ensure_ascii=False)
    return _RUN.format(
        name=json.dumps(name),
        game=game,
        players=quoted,
        matches=matches,
        settings=arena_process.toml_of(settings),
    )
