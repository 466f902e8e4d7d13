"""An instructor's commands at a running arena, over a real socket."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from websockets.sync.client import connect

from arena.cli.instruct import _ask
from arena.storage.roster import Roster
from arena.storage.store import CompetitionRow, CompetitionState, Store
from arena.storage.tokens import hashed
from protocol.errors import ArenaError
from protocol.messages import VERSION, Action, Instruct
from tests.support.in_process import run_here
from tests.support.stdio_bots import PYTHON, bot, slow, write_bots

if TYPE_CHECKING:
    from tests.support.gateway_bots import StartedProgram

pytestmark = pytest.mark.e2e

WAIT_S = 30.0


class InstructedArena:
    """An arena with launched bots, and its instructor."""

    def __init__(self, start: Callable[..., StartedProgram], folder: Path) -> None:
        self.folder = folder
        self.db = folder / "class.db"
        self._start = start
        with Store(self.db) as store:
            self.token = Roster(store.engine).instructor("Eva")
        self.program: StartedProgram | None = None
        self.url = ""

    def serve(self, *words: str, until: str = "bots compete") -> str:
        """Start the arena, and wait until it says that a competition has begun; that line."""
        fixed = ("--port", "0", "--db", "class.db", "--json", "--log", "-")
        self.program = self._start("arena", "serve", *fixed, *words, cwd=self.folder)
        self.url = self.program.until("arena at ws://").split()[2]
        return self.program.until(until)

    def says(self, *words: str, status: int = 0) -> Any:
        """An instructor's command: its document, or the one line of its refusal."""
        secret = ("--url", self.url, "--token", self.token)
        ended, out, err = run_here(*words, *secret, "--json")
        assert ended == status, err
        if status:
            assert out == ""
            [line] = err.splitlines()
            return line.removeprefix("arena: ")
        assert err == ""
        return json.loads(out)

    def reads(self, *words: str, db: bool = True) -> Any:
        """A document that is made of the database alone."""
        where = ("--db", str(self.db)) if db else ()
        return run_here(*words, *where).document

    def stops(self) -> None:
        assert self.program is not None
        self.program.kill()

    def until(self, holds: Callable[[Store], Any]) -> Any:
        """Wait until the database says something."""
        give_up = time.monotonic() + WAIT_S
        with Store(self.db, create=False) as store:
            while not (found := holds(store)):
                assert time.monotonic() < give_up, "the database never said so"
                time.sleep(0.02)
        return found

    def acts(self) -> list[tuple[str, str]]:
        with Store(self.db, create=False) as store:
            return [(act.what, act.who) for act in store.actions()]


@pytest.fixture
def arena(start: Callable[..., StartedProgram], tmp_path: Path) -> InstructedArena:
    write_bots(tmp_path, hello='"me", tables=2', good=PYTHON, slow=slow(0.005))
    return InstructedArena(start, tmp_path)


def finished(store: Store) -> list[CompetitionRow]:
    return [
        competition
        for competition in store.competitions()
        if competition.state is CompetitionState.FINISHED
    ]


def bots(*names: str, file: str = "slow.py") -> list[str]:
    return [word for name in names for word in bot(file, name)]


# More matches than any machine plays during a test.
LONG = (
    *("akq", "--players", "3", "--matches", "400", "--set", "hands=30"),
    *bots("ann", "ben", "cem"),
)


def test_when_it_is_over_a_match_is_void_and_a_bot_removed(
    arena: InstructedArena, tmp_path: Path
) -> None:
    words = ("akq", "--players", "3", "--set", "hands=4", *bots(*"abc", file="good.py"))
    arena.serve(*words)
    [over] = arena.until(finished)
    with Store(arena.db, create=False) as store:
        rows = store.results(over.id)
    match = next(row.id for row in rows if len(set(row.players)) == 2)
    assert arena.says("status")["competitions"] == []
    done = arena.says("void", match)
    assert done["text"] == f"{match} is void; {over.id} goes on for it"

    arena.until(lambda store: any(again.revision > 0 for again in finished(store)))
    with Store(arena.db, create=False) as store:
        after = store.results(over.id)
    assert {row.pairing for row in after} == {row.pairing for row in rows}
    assert match not in {row.id for row in after}

    assert "one that is over has to be named" in arena.says("remove", "a", status=1)
    done = arena.says("remove", "a", "--competition", over.id)
    assert done["text"] == f"a is removed from {over.id}, which is over"
    assert "which is out by removed" in arena.says(
        *("remove", "a", "--competition", over.id), status=1
    )
    arena.until(lambda store: "remove" in [act.what for act in store.actions(over.id)])
    for _ in range(2):  # also once the arena has gone
        standings = arena.reads("standings", over.id, "--json")["standings"]
        assert {row["name"] for row in standings if row["rank"]} == {"b", "c"}
        assert [row["played"] for row in standings] == [1, 1, 0]
        assert standings[-1]["eliminated"]["text"] == "removed by Eva"
        checked = arena.reads("verify", str(arena.db), "--json", db=False)
        assert checked["failed"] == []
        [note] = checked["notes"]
        assert note.endswith("a was removed after its end: none of its matches counts")
        arena.stops()
    arena.reads("export", str(tmp_path / "out"), "--json")
    with (tmp_path / "out" / over.id / "standings.csv").open(encoding="utf-8-sig") as file:
        [*_, last] = csv.DictReader(file)
    assert (last["name"], last["eliminated"]) == ("a", "removed")


def test_a_class_is_imported_while_they_play_and_the_page_instructs_too(
    arena: InstructedArena,
) -> None:
    arena.serve(*LONG)
    text = "name,team\n" + "".join(f"student {n},{n % 9}\n" for n in range(300))
    word = Instruct(VERSION, arena.token, Action.IMPORT, text=text)
    done = _ask(arena.url, word)

    assert done.text == "300 new; 0 known, 0 of them changed"
    tokens = dict(done.tokens)
    assert len(set(tokens.values())) == 300
    again = _ask(arena.url, word)
    assert (again.text, again.tokens) == ("0 new; 300 known, 0 of them changed", ())
    with pytest.raises(ArenaError, match=r"^roster:2: expected a name without '/'"):
        _ask(arena.url, msgspec.structs.replace(word, text="name\na/b\n"))
    with Store(arena.db, create=False) as store:
        access = Roster(store.engine).access()
    assert access.players[hashed(tokens["student 7"])] == "student 7"

    with connect(f"{arena.url}/watch") as page:

        def says(action: str, **about: Any) -> Any:
            word = {"type": "instruct", "protocol": 1, "token": arena.token}
            page.send(json.dumps({**word, "action": action, **about}))
            return json.loads(page.recv(WAIT_S))

        assert says("pause")["text"].startswith("paused: ")
        assert says("import", text="name\nann lee\n")["tokens"][0][0] == "ann lee"
        refused = says("import", text="nom\nann\n")
        assert refused["code"] == "instruct"
        assert refused["text"].startswith("roster:1: expected the columns name")
        started = says("start", competition="akq", form="ladder")
        assert len(started["competitions"]) == 2
        assert any("bots compete" in line for line in says("log")["lines"])
    arena.until(lambda store: "start" in [act.what for act in store.actions()])
    assert [what for what, _ in arena.acts()] == ["import", "import", "pause", "import", "start"]
