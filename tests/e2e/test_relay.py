"""The relay as a process between the arena's pipes and a bot, which is played by the test."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgpack  # type: ignore[import-untyped]
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from arena.sandbox import relay

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform == "win32", reason="submissions are not played on Windows"),
]

TIMEOUT_S = 200.0  # far above what anything takes, on a machine however busy
ASK = {"type": "ask", "ask": "1", "legal": ["bet", "check"], "text": "Zoë ♠", "half": 0.5}


class RelayedBot:
    """A relay and a program that lives until the test ends it; the test connects in its place."""

    def __init__(self, folder: Path) -> None:
        self._ends = folder / "ends"
        os.mkfifo(self._ends)
        script = f'echo "started $PYTHONUNBUFFERED"; echo "$ARENA_URL" >&2; read status < {self._ends}; exit $status'
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", relay.__file__, "sh", "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.stderr = self.process.stderr
        self.heard = self.stderr.readline()  # what the program writes for people
        self.url = self.stderr.readline().decode().strip()

    def connects(self) -> ClientConnection:
        return connect(self.url, compression=None, max_size=None, close_timeout=0.5)

    def says(self, line: bytes) -> None:
        """The arena writes."""
        self.stdin.write(line + b"\n")
        self.stdin.flush()

    def hears(self) -> bytes:
        """The next line for the arena."""
        return self.stdout.readline().removesuffix(b"\n")

    def exits(self, status: int) -> None:
        self._ends.write_text(f"{status}\n")

    def ended(self) -> tuple[int, str]:
        """The relay's exit status, and the rest of what it and the program wrote for people."""
        status = self.process.wait(TIMEOUT_S)
        return status, self.stderr.read().decode()


@pytest.fixture
def bot(tmp_path: Path) -> Iterator[RelayedBot]:
    here = RelayedBot(tmp_path)
    watchdog = threading.Timer(TIMEOUT_S, here.process.kill)
    watchdog.start()
    try:
        yield here
    finally:
        watchdog.cancel()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(here.process.pid, signal.SIGKILL)  # the program, too
        here.process.wait()
        for pipe in (here.stdin, here.stdout, here.stderr):
            with contextlib.suppress(OSError):  # what nobody has read
                pipe.close()


# ---- Frames


def test_lines_become_text_and_text_becomes_lines(bot: RelayedBot) -> None:
    with bot.connects() as websocket:
        websocket.send('{"type":"hello",\n"name":"Zoë"}')
        assert json.loads(bot.hears()) == {"type": "hello", "name": "Zoë"}

        for message in ([ASK], [ASK, ASK], ASK):  # a batch is a line, too
            text = json.dumps(message)
            bot.says(text.encode())
            assert websocket.recv() == text
            websocket.send(text)
            assert bot.hears() == text.encode()


def test_who_speaks_msgpack_is_spoken_to_in_msgpack(bot: RelayedBot) -> None:
    with bot.connects() as websocket:
        for message in (ASK, [ASK, ASK]):
            websocket.send(msgpack.packb(message))
            assert json.loads(bot.hears()) == message
            bot.says(json.dumps(message).encode())
            assert msgpack.unpackb(websocket.recv()) == message


def test_what_is_not_msgpack_is_a_line_that_is_no_message(bot: RelayedBot) -> None:
    with bot.connects() as websocket:
        websocket.send(b"\xc1")

        assert json.loads(bot.hears()).startswith("expected msgpack in a binary frame: ")


def test_a_message_in_fragments_is_one_line(bot: RelayedBot) -> None:
    with bot.connects() as websocket:
        websocket.send(iter(['["a', "b", 'c"]']))

        assert bot.hears() == b'["abc"]'


def test_a_ping_is_answered(bot: RelayedBot) -> None:
    with bot.connects() as websocket:
        assert websocket.ping().wait(TIMEOUT_S)


def test_large_frames_pass_in_both_directions_at_once(bot: RelayedBot) -> None:
    """The bot reads nothing before it has written: neither its pipe nor its socket holds so much."""
    large = '"' + "x" * (16 << 20) + '"'
    with bot.connects() as websocket, ThreadPoolExecutor() as arena:
        arena.submit(bot.says, large.encode())
        heard = arena.submit(bot.hears)
        websocket.send(large)

        assert heard.result() == large.encode()
        assert websocket.recv() == large


def test_a_frame_without_end_is_passed_on_as_it_comes(bot: RelayedBot) -> None:
    """The arena rules on it; the relay does not keep it."""

    def parts() -> Iterator[str]:
        while True:
            yield "x" * 65_536

    with bot.connects() as websocket:

        def send() -> None:
            with pytest.raises(ConnectionClosed):
                websocket.send(parts())

        writing = threading.Thread(target=send)
        writing.start()
        assert bot.stdout.read(32 << 20) == b"x" * (32 << 20)
        [peak] = [
            int(line.split()[1])
            for line in Path(f"/proc/{bot.process.pid}/status").read_text().splitlines()
            if line.startswith("VmHWM")
        ]
        bot.process.kill()
        writing.join(TIMEOUT_S)

    assert peak < 24 << 10  # KiB


def test_a_bot_that_does_not_read_holds_the_arenas_pipe_up(bot: RelayedBot) -> None:
    line = b"x" * 999 + b"\n"
    os.set_blocking(bot.stdin.fileno(), False)
    taken = 0
    with bot.connects() as websocket:
        websocket.socket.setsockopt(1, 8, 4_096)  # SOL_SOCKET, SO_RCVBUF
        while True:
            try:
                taken += os.write(bot.stdin.fileno(), line)
            except BlockingIOError:
                # The relay may read a little more, until its socket is full too.
                if not bot.process.poll() and _is_full(bot.stdin.fileno()):
                    break
        bot.process.kill()

    assert taken < 64 << 20


def _is_full(pipe: int) -> bool:
    return not select.select([], [pipe], [], 0.2)[1]


# ---- Ends


def test_at_the_end_of_its_input_the_bot_gets_1000_and_its_exit_status_counts(
    bot: RelayedBot,
) -> None:
    with bot.connects() as websocket:
        bot.says(b'{"type":"over"}')
        bot.stdin.close()
        assert websocket.recv() == '{"type":"over"}'
        with pytest.raises(ConnectionClosed):
            websocket.recv()
        assert websocket.close_code == 1000
        bot.exits(0)

    assert bot.ended() == (0, "")


def test_what_was_sent_before_the_end_arrives(bot: RelayedBot) -> None:
    with bot.connects() as websocket:
        for number in range(100):
            websocket.send(str(number))
        bot.exits(7)

        assert [bot.hears() for _ in range(100)] == [b"%d" % number for number in range(100)]
    assert bot.ended() == (7, "")


def test_a_close_with_1011_is_a_crash_whatever_its_exit_status_is(bot: RelayedBot) -> None:
    with bot.connects() as websocket:
        websocket.close(1011, "division by zero")
    bot.exits(0)

    assert bot.ended() == (1, "closed its connection with 1011: division by zero\n")


@pytest.mark.parametrize(("code", "status"), [(1000, 0), (1001, 1)])
def test_who_closes_and_does_not_end_is_ended(bot: RelayedBot, code: int, status: int) -> None:
    with bot.connects() as websocket:
        websocket.close(code)

    ended, said = bot.ended()
    assert ended == status
    assert said.endswith("closed its connection, and did not end\n")


def test_the_signal_that_ends_the_bot_ends_the_relay(bot: RelayedBot) -> None:
    with bot.connects():
        children = Path(f"/proc/{bot.process.pid}/task/{bot.process.pid}/children")
        os.kill(int(children.read_text()), signal.SIGSEGV)

        assert bot.ended()[0] == -signal.SIGSEGV


def test_what_is_no_frame_is_told_to_the_arena(bot: RelayedBot) -> None:
    with bot.connects() as websocket:
        websocket.socket.sendall(b"\x81\x01x")  # not masked
        bot.hears()
        said = "expected a masked frame without extensions"
        assert json.loads(bot.hears()) == said
        with pytest.raises(ConnectionClosed):
            websocket.recv()
        assert websocket.close_code == 1002
    bot.exits(0)

    assert bot.ended()[1] == f"{said}\n"


def test_nobody_else_can_connect_once_the_bot_has(bot: RelayedBot) -> None:
    where = ("127.0.0.1", int(bot.url.rpartition(":")[2]))
    # A connection that is no WebSocket yet may be given up, and another one come.
    with socket.create_connection(where, TIMEOUT_S) as early:
        early.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert early.recv(1) == b""
    with bot.connects() as websocket:
        with pytest.raises(ConnectionRefusedError):
            bot.connects()
        websocket.send("still here")
        assert bot.hears() == b"still here"


def test_what_the_bot_prints_is_for_people_and_python_prints_at_once(bot: RelayedBot) -> None:
    assert bot.heard == b"started 1\n"


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", relay.__file__, "./nothing"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )

    assert done.returncode == 127
    assert done.stderr == "cannot start ./nothing: No such file or directory\n"
