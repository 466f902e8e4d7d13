"""`arena play`, `cross`, `compare` and `ruin` with bots that they launch: programs without a line of ours."""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from collections.abc import Callable
from itertools import combinations_with_replacement
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.arena_process import alive, below
from tests.support.in_process import run_here
from tests.support.pipe_bot import INTERPRETER, SHELL, bot, pipe_bot, write_bots

if TYPE_CHECKING:
    from tests.support.gateway_bots import StartedProgram

pytestmark = pytest.mark.e2e

SMALL = 'min(5, legal["max"]) if "max" in legal else "play"'
PROGRAMS = {
    "good": pipe_bot(),
    "folds": pipe_bot(value="legal[-1]"),
    "cheat": pipe_bot(value='"all in"'),
    "crash": "import sys\nprint('hello', file=sys.stderr)\nsys.exit('no such luck')",
    "breaks": pipe_bot(value='legal[0] if it["round"] < 5 else 1 // 0'),
    "player": pipe_bot(value=SMALL),
    "connects": """
import json, os
from websockets.sync.client import connect
with connect(os.environ["ARENA_URL"]) as arena:
    def say(**message): arena.send(json.dumps(message))
    token = os.environ["ARENA_TOKEN"]
    say(type="hello", protocol=1, name="x", token=token, games=["ace_king_queen"])
    for it in map(json.loads, arena):
        if it["type"] == "match":
            say(type="ready", match=it["match"], nonce="n")
        elif it["type"] == "ask":
            say(type="answer", match=it["match"], ask=it["ask"], value=it["legal"][-1])
""",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be in a folder where the programs are, and a file with a strategy, `mine.py`."""
    write_bots(tmp_path, **PROGRAMS)
    (tmp_path / "bot.sh").write_text(SHELL)
    (tmp_path / "mine.py").write_text(
        "from bots.ace_king_queen import Honest\nclass Mine(Honest): pass\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def done(*words: str, status: int = 0) -> tuple[Any, list[str]]:
    """The document that a command printed, and its lines on stderr."""
    ran = run_here(*words, "--json")

    assert ran.status == status, ran.err
    return json.loads(ran.out), ran.err.splitlines()


# --- play ---


def test_a_program_plays_a_house_bot() -> None:
    words = ("--hands", "50", "--games", "3")
    document, err = done("play", "akq", "nash", *bot("good.py"), *words)

    assert err == []
    assert [each["name"] for each in document["bots"]] == ["nash", "good"]
    assert (document["matches"], document["seed"]) == (3, None)
    assert sum(each["score"] for each in document["bots"]) == 0
    assert document["eliminated"] is None
    assert document["bots"][0]["mean"] == document["bots"][0]["score"] / 150


def test_a_shell_a_websocket_and_a_file_for_people() -> None:
    shell = ("--bot", "stdio: sh bot.sh")
    connects = bot("connects.py", kind="")
    for bots in ((*shell, *connects), ("mine.py", *connects)):
        out = run_here("play", "akq", *bots, "--hands", "20").text

        assert "20 hands\n" in out  # and no seed
        assert out.splitlines()[-1].endswith(
            (" wins", " share first place", "too few to say that it is better")
        )


SLEEPS = f"{INTERPRETER} -c 'import time; time.sleep(60)'"
OUT = {
    "J3 an illegal answer is told with what was legal": (
        "cheat",
        'illegal: seat 2 answered "all in" to .*; legal: .*; answer with an element of `legal`',
    ),
    "J3 a crash is told with what the program said last": (
        "breaks",
        "crash: crashed: exit status 1; it said: ZeroDivisionError: integer .* by zero$",
    ),
    "a program that crashes at once": (
        "crash",
        "absent: did not say hello: crashed: exit status 1; it said: no such luck$",
    ),
    "a program that never connects": (
        SLEEPS,
        "absent: did not say hello with its ARENA_TOKEN within 2,500 ms$",
    ),
    "a program that never says hello in lines": (
        f"stdio: {SLEEPS}",
        r"absent: did not say hello within 2,500 ms; did it flush its output\?$",
    ),
}


@pytest.mark.parametrize(("name", "why"), OUT.values(), ids=OUT)
def test_J3_who_is_out_is_told_in_the_last_line(name: str, why: str) -> None:
    rest = ("--bot", f"sleeper={name}", "--hello-ms", "1000", "--start-ms", "1500")
    words = rest if SLEEPS in name else bot(f"{name}.py")
    document, err = done("play", "akq", "nash", *words, "--hands", "50", status=1)

    assert document["winners"] == [0]
    called = "sleeper" if SLEEPS in name else name
    assert re.match(f"arena: {called} is eliminated in match 1: {why}", err[-1])
    assert document["eliminated"]["bot"] == 1
    assert document["eliminated"]["kind"] == why.partition(":")[0]
    assert ("breaks: Traceback (most recent call last):" in err) is (name == "breaks")
    assert name != "breaks" or document["bots"][0]["mean"] is not None, "of the hands before"


# --- cross ---


def test_J3_an_offender_counts_for_nobody() -> None:
    argv = ("cross", "akq", "nash", *bot("good.py", "ann"), *bot("cheat.py"), *bot("good.py"))
    document, err = done(*argv, "--hands", "20", status=1)

    units = {each["name"]: each["units"] for each in document["bots"]}
    assert units == {"nash": 40, "ann": 40, "good": 40, "cheat": 0}
    tables = [table["bots"] for table in document["tables"] if "cheat" not in table["bots"]]
    assert tables == [[*pair] for pair in combinations_with_replacement(("nash", "ann", "good"), 2)]
    assert document["bots"][-1]["eliminated"]["kind"] == "illegal"
    assert len(err) == 1


# --- compare ---


def test_two_programs_are_told_apart() -> None:
    words = ("compare", "akq", *bot("folds.py"), *bot("good.py"), "--set", "hands=250")
    document, _ = done(*words, "--jobs", "2")

    assert document["bots"] == ["folds", "good"]
    assert (document["verdict"], document["better"], document["seed"]) == ("better", 1, None)
    assert document["units"] % 500 == 0  # whole parts: both seatings


# --- ruin ---


def test_T10_a_program_tries_to_reach_a_goal() -> None:
    argv = ("ruin", "tcp", *bot("player.py"), "--stake", "20", "--goal", "25", "--jobs", "2")
    document, err = done(*argv, "--trials", "13")
    [result] = document["results"]

    assert err == []
    assert (document["bot"], document["trials"]) == ("player", 13)
    assert result["reached"] + result["broke"] == 13
    assert result["reached"] > 0


# --- Ctrl-C ---


def interrupted(
    program: StartedProgram, file: str, number: signal.Signals = signal.SIGINT
) -> tuple[int, str, str]:
    """Stop a command once it has started a bot; nothing that it has started is left."""
    deadline = time.monotonic() + 120
    while file not in str(alive(below(program.process.pid))):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    started = below(program.process.pid)
    program.process.send_signal(number)
    ended = program.ends()
    assert alive(started) == {}
    return ended


STOPPED = {
    "play": (
        ("nash", "--hands", "1000000"),
        *("", "of 1,000,000 hands, all bots are stopped; a smaller"),
    ),
    "compare": (
        ("nash", "--set", "hands=50", "--level", "0.01"),
        *("Ace-King-Queen", "all bots are stopped"),
    ),
}
"""By command: its words, the title that it prints, and what ends its line."""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(
    ("command", "number"), [("play", signal.SIGTERM), ("compare", signal.SIGINT)]
)
def test_whoever_stops_it_stops_all_bots(
    start: Callable[..., StartedProgram], command: str, number: signal.Signals
) -> None:
    words, title, end = STOPPED[command]
    program = start("arena", command, "akq", *words, *bot("good.py"))
    status, out, err = interrupted(program, "good.py", number)

    assert (status, out.partition("\n")[0]) == (130, title)
    [line] = err.splitlines()
    assert line.startswith("arena: interrupted after ")
    assert end in line
