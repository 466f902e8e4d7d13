"""`arena serve` with bots that it launches, a file of settings, and eliminations that are told as they happen."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.test_pipe import PYTHON

if TYPE_CHECKING:
    from tests.e2e.conftest import Program

pytestmark = pytest.mark.e2e

Serve = Callable[..., "Program"]

CHEAT = PYTHON.replace('value=it["legal"][0]', 'value="all in"')
CRASH = "raise SystemExit('no such luck')"
INTERPRETER = shlex.quote(sys.executable)


@pytest.fixture
def serve(start: Callable[..., Program], tmp_path: Path) -> Serve:
    """Start `arena serve akq --once --json` in a folder where `good.py`, `cheat.py` and `crash.py` are."""
    for name, text in (("good", PYTHON), ("cheat", CHEAT), ("crash", CRASH)):
        (tmp_path / f"{name}.py").write_text(text.replace("sys.argv[1]", '"me"'))

    def call(*words: str) -> Program:
        settings = ("--port", "0", "--set", "hands=10", "--matches", "2")
        fixed = ("akq", "--once", "--json", *settings)
        return start("arena", "serve", *fixed, *words, cwd=tmp_path)

    return call


def bot(file: str, name: str = "") -> tuple[str, str]:
    return "--bot", f"{name and name + '='}stdio: {INTERPRETER} {file}"


def test_launched_bots_play_and_what_becomes_of_them_is_told(
    serve: Serve, tmp_path: Path
) -> None:
    (tmp_path / "class.toml").write_text(
        f"[[bot]]\ncommand = \"stdio: {INTERPRETER} good.py\"\nname = 'ann'"
    )
    arena = serve("--config", "class.toml", *bot("good.py"), *bot("crash.py", "bad"))
    status, out, err = arena.ends()
    report = json.loads(out)

    assert status == 0, err
    assert {row["name"] for row in report["standings"]} == {"ann", "good"}
    assert (report["played"], report["verdicts"]) == (2, [])
    assert (
        "bad has ended: crashed: exit status 1; it said: no such luck"
        in err.splitlines()
    )
    assert "Traceback" not in err


def test_a_bot_that_never_says_hello_is_told_and_the_others_play(serve: Serve) -> None:
    sleeper = f"sleeper={INTERPRETER} -c 'import time; time.sleep(60)'"
    words = (*bot("good.py", "ann"), *bot("good.py", "ben"), "--bot", sleeper)
    status, out, err = serve(*words, "--hello-ms", "2000").ends()

    assert status == 0, err
    assert json.loads(out)["played"] == 2
    assert "sleeper has not said hello within 2,000 ms" in err.splitlines()


def test_an_elimination_is_told_as_it_happens(serve: Serve) -> None:
    arena = serve(*bot("good.py"), *bot("cheat.py"), *bot("good.py", "ben"))
    line = arena.until("eliminated")
    status, out, err = arena.ends()

    assert line.startswith("cheat (ace_king_queen) eliminated: ")
    assert '"all in"' in line
    assert status == 0, err
    assert err.count("cheat (ace_king_queen)") == 1
    assert [verdict["bot"] for verdict in json.loads(out)["verdicts"]] == ["cheat"]


def test_in_practice_an_illegal_answer_puts_nobody_out(
    serve: Serve, tmp_path: Path
) -> None:
    (tmp_path / "learner.py").write_text(
        PYTHON.replace("sys.argv[1]", '"me"')
        .replace('value=it["legal"][0]', 'value="all in"')
        .replace(
            "for line in sys.stdin:",
            "for line in sys.stdin:\n    if '\"refused\"' in line:\n"
            "        it = json.loads(line)\n"
            '        say(type="answer", match=it["match"], ask=it["ask"], value=it["legal"][0])\n'
            "        continue",
        )
    )
    arena = serve("--practice", *bot("good.py"), *bot("learner.py"))
    status, out, err = arena.ends()
    report = json.loads(out)

    assert status == 0, err
    assert (report["played"], report["verdicts"]) == (2, [])
    assert "eliminated" not in err


def test_a_command_that_can_never_work_is_called_wrong(
    serve: Serve, tmp_path: Path
) -> None:
    (tmp_path.parent / "above.py").write_text(CRASH)
    status, out, err = serve(*bot("../above.py", "ann")).ends()

    assert (status, out) == (2, "")
    assert err.splitlines()[-1].startswith("arena: ann: expected paths in ")
    assert "Traceback" not in err


def test_a_run_has_a_title_with_spaces_everywhere(
    start: Callable[..., Program], tmp_path: Path
) -> None:
    (tmp_path / "class.toml").write_text(
        "[serve]\nport = 0\n[[run]]\nname = 'Friday evening'\ngame = 'akq'\n"
        "house = ['nash', 'honest']\nleast = 2\nsettings = { hands = 10 }\n"
    )

    def arena(*words: str) -> str:
        status, out, err = start("arena", *words, cwd=tmp_path).ends()
        assert status == 0, err
        return out

    arena("serve", "--config", "class.toml", "--once")
    standings = json.loads(arena("standings", "Friday evening", "--json"))
    assert standings["run"] == "Friday evening"
    arena("export", "out", "--competition", "Friday evening")
    assert "Friday evening: " in (tmp_path / "out/index.html").read_text()
    arena("verify", "arena.db")
