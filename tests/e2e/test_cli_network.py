"""`arena serve` and `arena connect` as people use them."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from arena.cli._serving import urls_for_others
from arena.storage.store import Store
from tests.support.in_process import run_here

if TYPE_CHECKING:
    from tests.support.gateway_bots import StartedProgram

pytestmark = pytest.mark.e2e

Start = Callable[..., "StartedProgram"]

MINE = """
from bots.ace_king_queen import PlayerStrategy

class Mine(PlayerStrategy):
    def open(self, question):
        return "bet" if question.card == "A" else "check"

    def respond(self, question):
        return "call" if question.card == "A" else "fold"
"""


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "arena.db"


@pytest.fixture
def serve(start: Start, db: Path) -> Callable[..., tuple[StartedProgram, str]]:
    """Start an arena on a free port; the program and its address."""

    def call(*words: str) -> tuple[StartedProgram, str]:
        program = start("arena", "serve", "--port", "0", "--db", str(db), *words)
        line = program.until("arena at ws://")
        return program, line.split()[2]

    return call


def one_line(program: StartedProgram, status: int) -> str:
    """The one line on stderr of a program that was called wrong."""
    ended, out, err = program.ends()

    assert (ended, out) == (status, ""), err
    [line] = err.splitlines()
    assert line.startswith("arena: ")
    return line.removeprefix("arena: ")


# --- what works ---


def test_two_bots_play_a_competition(
    start: Start, serve: Callable[..., Any], db: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "bots").mkdir()  # a folder that is not the package
    arena, url = serve("akq", "--once", "--json", "--set", "hands=10", "--matches", "4")
    bots = [
        start("arena", "connect", "akq", "nash", "--url", url),
        start("arena", "connect", "mine.py", "--url", url, cwd=tmp_path),
    ]
    line = bots[0].until(" against mine · http://")
    assert f" · http://{url.removeprefix('ws://')}/#/m/" in line
    status, out, _ = arena.ends()
    report = json.loads(out)

    assert status == 0
    assert {row["name"] for row in report["standings"]} == {"nash", "mine"}
    assert report["played"] == 4
    assert report["verdicts"] == []
    assert [bot.ends()[0] for bot in bots] == [0, 0]
    with Store(db, create=False) as store:
        [competition] = store.competitions()
        played = store.matches(competition.id)

        assert len(played) == 4
        assert all(
            match.started_at <= match.finished_at and 0 <= match.finished_at - match.started_at < 60
            for match in played
        )
        assert competition.finished_at is not None


def test_a_taken_name_is_told_and_the_end_of_the_arena_is_said_to_its_bots(
    start: Start, serve: Callable[..., Any]
) -> None:
    arena, url = serve()
    bot = start("arena", "connect", "akq", "nash", "--url", url)
    bot.until("connected as nash")
    line = one_line(start("arena", "connect", "akq", "nash", "--url", url), 2)
    assert "a bot named 'nash' is here already" in line
    assert line.endswith("; --name sets the bot's name, as in --name nash-2")

    arena.process.send_signal(signal.SIGTERM)
    status, _, err = arena.ends()

    assert status == 0
    assert "stopped by SIGTERM; all matches that were over are in" in err
    assert "Traceback" not in err
    assert bot.ends()[0] == 0


# --- what is called wrong ---


def test_a_port_in_use(db: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])

        assert run_here("serve", "--port", port, "--db", str(db)).refusal(1) == (
            f"cannot listen on 127.0.0.1:{port}: another program uses that port; "
            "choose another with --port"
        )


def test_beyond_this_machine_a_token_is_needed_unless_it_is_open(start: Start, db: Path) -> None:
    words = "arena", "serve", "--port", "0", "--host", "::", "--db", str(db)

    arena = start(*words)
    arena.until("nobody is on the roster, so nobody can connect")

    where, *others = arena.said.splitlines()
    told = [line for line in others if "from other machines" in line]
    urls = urls_for_others(where.removeprefix("arena at ").split()[0])
    line = f"from other machines it is at {' or '.join(urls)}"
    assert told == ([line] if urls else [])


# --- what a student asks an arena ---


def test_a_student_asks_the_arena_how_it_stands_and_why_it_has_lost(
    start: Start,
    serve: Callable[..., Any],
    db: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = tmp_path / "class.csv"
    names.write_text("name\nann\nben\n")
    new = run_here("roster", "import", str(names), "--db", str(db), "--json").document["new"]
    tokens = {each["name"]: each["token"] for each in new}
    _, url = serve("akq", "--set", "hands=40")
    page = f"{url.replace('ws', 'http', 1)}/#/competitions"
    bots = {
        name: start(
            "arena", "connect", "akq", bot, "--url", url, "--token", tokens[name], "--name", name
        )
        for name, bot in (("ann", "bluffer"), ("ben", "nash"))
    }
    match = bots["ann"].until("match ").split()[2]
    place = bots["ann"].until(" is over · ")
    competition = place.strip().rpartition("/")[2]
    monkeypatch.chdir(tmp_path)

    shown = run_here("standings", "--url", page)
    assert f"{competition} · Ace-King-Queen: round robin, 1 match" in shown.out
    assert place.split(" · ")[1] in ("rank 1 of 2", "rank 2 of 2")
    assert run_here("standings", "--url", page, "--json").document["id"] == competition
    mine = "--url", page, "--token", tokens["ann"]
    replayed = run_here("replay", match, *mine, "--json").document
    assert replayed["match"] == match.rpartition(".")[0]
    judged = run_here("mistakes", match, *mine, "--seat", "ann", "--json").document
    assert (judged["player"], judged["decisions"] > 0) == ("ann", True)

    wrong = run_here("standings", "--url", page, "--token", "wrong").refusal(1)
    assert wrong.endswith("copy the whole token, as it was given to you for this arena")
    nothing = run_here("mistakes", "nothing", *mine).refusal(1)
    assert nothing == "expected the id of a match that is over, got 'nothing'"
