"""An instructor's commands at a running arena, over a real socket.

Pausing, making void and removing are in `test_serve_resume`, starting in `test_serve`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from websockets.sync.client import connect

from arena.cli.instruct import _ask
from arena.storage.roster import Roster
from arena.storage.store import Store
from arena.storage.tokens import hashed
from protocol.errors import ArenaError
from protocol.messages import VERSION, Action, Instruct
from tests.support.pipe_bot import bot, slow, write_bots

if TYPE_CHECKING:
    from tests.support.gateway_bots import StartedProgram

pytestmark = pytest.mark.e2e

WAIT_S = 30.0
# More matches than any machine plays during a test.
LONG = ("akq", "--players", "3", "--matches", "400", "--set", "hands=30")


def test_a_class_is_imported_while_they_play_and_the_page_instructs_too(
    start: Callable[..., StartedProgram], tmp_path: Path
) -> None:
    db = tmp_path / "class.db"
    write_bots(tmp_path, slow=slow(0.05, tables=2))
    with Store(db) as store:
        token = Roster(store.engine).instructor("Eva")
    bots = [word for name in ("ann", "ben", "cem") for word in bot("slow.py", name)]
    arena = start("arena", "serve", "--port", "0", "--db", "class.db", *LONG, *bots, cwd=tmp_path)
    url = arena.until("arena at ws://").split()[2]
    arena.until("bots compete")

    text = "name,team\n" + "".join(f"student {n},{n % 9}\n" for n in range(300))
    word = Instruct(VERSION, token, Action.IMPORT, text=text)
    done = _ask(url, word)
    assert done.text == "300 new; 0 known, 0 of them changed"
    tokens = dict(done.tokens)
    assert len(set(tokens.values())) == 300
    again = _ask(url, word)
    assert (again.text, again.tokens) == ("0 new; 300 known, 0 of them changed", ())
    with pytest.raises(ArenaError, match=r"^roster:2: expected a name without '/'"):
        _ask(url, msgspec.structs.replace(word, text="name\na/b\n"))
    with Store(db, create=False) as store:
        access = Roster(store.engine).access()
    assert access.players[hashed(tokens["student 7"])] == "student 7"

    with connect(f"{url}/watch") as page:

        def says(action: str, **about: Any) -> Any:
            word = {"type": "instruct", "protocol": 1, "token": token, "action": action}
            page.send(json.dumps({**word, **about}))
            return json.loads(page.recv(WAIT_S))

        assert says("pause")["text"].startswith("paused: ")
        assert says("import", text="name\nann lee\n")["tokens"][0][0] == "ann lee"
        refused = says("import", text="nom\nann\n")
        assert refused["code"] == "instruct"
        assert refused["text"].startswith("roster:1: expected the columns name")
        started = says("start", competition="akq", form="ladder")
        assert len(started["competitions"]) == 2
        assert any("bots compete" in line for line in says("log")["lines"])
    arena.process.terminate()
    arena.ends()
    with Store(db, create=False) as store:
        acts = [act.what for act in store.actions()]
    assert acts == ["import", "import", "pause", "import", "start"]
