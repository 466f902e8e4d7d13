"""Programs that speak in lines, connected by `arena connect`: processes, sockets, TLS."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from bots.line_program import LineProgram, ProgramFailed, read_command
from protocol.errors import UsageError
from protocol.games import VOCABULARIES
from tests.e2e.test_tls import make
from tests.support.gateway_bots import StartedProgram
from tests.support.in_process import run_here
from tests.support.pipe_bot import pipe_bot
from tests.support.stalling_proxy import StallingProxy

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform == "win32", reason="it uses signals"),
]

Start = Callable[..., StartedProgram]

HEARS = "heard.write(line); heard.flush()"


def plain_bot(heard: str = HEARS) -> str:
    """A program that plays at random, and does something with all that it hears."""
    value = 'random.choice(legal) if isinstance(legal, list) else legal["min"]'
    first = 'import random\nheard = open("heard.jsonl", "a")'
    return pipe_bot(tables=8, first=first, heard=heard, value=value)


def carried(
    start: Start, folder: Path, command: str, url: str, *words: str, **env: str
) -> StartedProgram:
    """`arena connect 'stdio: COMMAND'`, in a folder."""
    options = ("--url", url, *words)
    environment = {**os.environ, **env}
    return start("bots", f"stdio: {command}", *options, cwd=folder, env=environment)


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A folder with a program that knows nothing of WebSockets, nor of us."""
    (tmp_path / "plain.py").write_text(plain_bot())
    return tmp_path


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An arena without a roster, where bots come and go; its address."""
    db = tmp_path_factory.mktemp("arena") / "arena.db"
    arena = StartedProgram("arena", "serve", "--port", "0", "--db", str(db))
    yield arena.until("arena at ws://").split()[2]
    arena.kill()


def test_J7_a_match_over_TLS_goes_on_after_its_connection_was_cut(
    start: Start, plain: Path
) -> None:
    """Three times, each in the middle: nobody is out, and the program hears every hand once."""
    hands = 300
    cert, key = make(plain, "arena")
    arena = start(
        *("arena", "serve", "akq", "--once", "--json", "--set", f"hands={hands}"),
        *("--port", "0", "--db", str(plain / "arena.db"), "--matches", "1"),
        *("--tls-cert", str(cert), "--tls-key", str(key)),
    )
    url = arena.until("arena at wss://").split()[2]

    trust = {"SSL_CERT_FILE": str(cert)}
    with closing(StallingProxy(int(url.rpartition(":")[2]))) as line:
        through = f"wss://127.0.0.1:{line.port}"
        bot = carried(start, plain, "python3 plain.py", through, "--name", "carried", **trust)
        bot.until("connected as carried")
        start(*("arena", "connect", "akq", "honest", "--url", url), env={**os.environ, **trust})
        for _ in range(3):
            until = line.passed + 30 * hands
            while line.passed < until:
                time.sleep(0.001)
            line.go_on()
        status, out, _ = arena.ends()
        left, printed, err = bot.ends()
    report = json.loads(out)
    lines = (plain / "heard.jsonl").read_text().splitlines()
    messages = [json.loads(line) for line in lines]
    chairs = {m["match"] for m in messages if m["type"] == "match"}

    assert (status, left, printed) == (0, 0, "")
    assert err.count("back as carried") == 3
    assert report["verdicts"] == []
    assert chairs
    assert [message["type"] for message in messages].count("welcome") == 1
    for one in chairs:
        told = [m for m in messages if m.get("match") == one]
        kinds = [message["type"] for message in told]
        assert (kinds[0], kinds[-1]) == ("match", "over")
        assert set(kinds[1:-1]) == {"ask"}
        news = [item["round"] for message in told[1:] for item in message["news"]]
        assert news == list(range(1, hands + 1))


def test_a_carried_program_passes_arena_check_in_all_games(
    plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(plain)
    carrier = (sys.executable, "-P", "-m", "bots", "stdio: python3 plain.py")
    check = run_here("check", "--rounds", "2", "--json", "--", *carrier)
    report = json.loads(check.out)
    wrong = [step for step in report["steps"] if step["status"] != "ok"]
    played = [step["game"] for step in report["steps"] if step["step"] == "play"]

    assert wrong == [], check.err
    assert sorted(played) == sorted(VOCABULARIES)


def test_Ctrl_C_ends_both_after_a_goodbye(start: Start, plain: Path, url: str) -> None:
    bot = carried(start, plain, "python3 plain.py", url)
    bot.until("connected as x")
    bot.process.send_signal(signal.SIGINT)
    status, _, err = bot.ends()

    assert status == 130
    assert err.splitlines()[-1] == "arena: left the arena"
    again = carried(start, plain, "python3 plain.py", url)
    again.until("connected as x")  # the name is free at once
    again.process.send_signal(signal.SIGINT)
    again.ends()


@pytest.mark.parametrize(
    ("last", "status", "said"),
    [
        (
            "raise KeyError('x')",
            1,
            "has ended with status 1; the end of its standard error: KeyError: 'x'",
        ),
        ("os.kill(os.getpid(), 9)", 137, "was ended by SIGKILL"),
    ],
)  # fmt: skip
def test_a_program_that_ends_is_told_in_one_line_with_its_status(
    start: Start, plain: Path, url: str, last: str, status: int, said: str
) -> None:
    (plain / "plain.py").write_text(plain_bot(last))
    left, _, err = carried(start, plain, "python3 plain.py", url).ends()

    assert left == status
    assert err.splitlines()[-1] == f"arena: the program {said}"


# --- the process alone ---


@asynccontextmanager
async def running(text: str) -> AsyncIterator[LineProgram]:
    """A program in Python."""
    program = LineProgram((sys.executable, "-c", text))
    await program.start({})
    try:
        yield program
    finally:
        await program.end()


async def test_lines_are_read_without_what_is_around_them() -> None:
    said = rb"\xef\xbb\xbf{}\r\n\n \n[]"  # as a program on Windows begins
    async with running(f"import os; os.write(1, b'{said.decode()}')") as program:
        assert [await program.read() for _ in range(3)] == [b"{}", b"[]", None]


async def test_a_message_is_one_line_whatever_space_it_has() -> None:
    async with running("print(repr(input()))") as program:
        await program.write(b'{"a":\r\n1}')

        assert (await program.read()) == b"'{\"a\":  1}'"


async def test_a_line_without_an_end_is_not_kept() -> None:
    async with running("while True: print('x' * 65536, end='')") as program:
        with pytest.raises(ProgramFailed, match="lines of at most 1048576 bytes"):
            await program.read()


async def test_a_program_that_has_closed_its_input_is_written_to_in_vain() -> None:
    async with running("import os; os.close(0); print('closed', flush=True); input") as program:
        assert await program.read() == b"closed"
        for _ in range(100):
            await program.write(b"x" * 10_000)


async def test_a_program_that_does_not_end_is_ended_with_its_children() -> None:
    text = (
        "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = os.fork()\n"
        "if child: print(child, flush=True)\n"
        "while True: time.sleep(60)"
    )

    async with running(text) as program:
        child = os.pidfd_open(int(await program.read() or b""))
        status = await program.end(patience_s=0.1)

    assert status == -signal.SIGKILL
    try:
        # A kill is sent, not awaited, and the child is not ours to reap: its descriptor tells.
        assert select.select([child], [], [], 20) == ([child], [], [])
    finally:
        os.close(child)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("stdio:", "expected a command such as"),
        ("stdio: ''", "expected a command such as"),
        ("stdio: 'x", "with its quotes closed"),
        ("stdio: no-such-program", "expected a program on PATH or a path to one"),
        ("stdio: ./plain.py", "is not executable; start it as in"),
        ("stdio: plain.py", "is not executable; start it as in"),
    ],
)
def test_a_command_that_cannot_be_one_is_told(
    plain: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.chdir(plain)

    with pytest.raises(UsageError, match=said):
        read_command(text)


def test_a_program_in_this_folder_needs_no_path(
    plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(plain)
    (plain / "plain.py").chmod(0o755)

    assert read_command("stdio: plain.py --fast 'a b'") == ("./plain.py", "--fast", "a b")
    assert read_command(" stdio: sh -c x") == ("sh", "-c", "x")
