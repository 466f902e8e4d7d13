"""The byte pump as a process between the arena's pipes and a bot; the test plays both."""

from __future__ import annotations

import contextlib
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

import pytest

from arena.sandbox import relay

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform == "win32", reason="submissions are not played on Windows"),
]

TIMEOUT_S = 200.0  # far above what anything takes, on a machine however busy
REQUEST = b"GET / HTTP/1.1\r\nSec-WebSocket-Key: x\r\n\r\n"
LARGE = b"x" * (16 << 20)


class RelayedBot:
    """A pump and a program that lives until the test ends it; the test connects in its place."""

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
        self.where = "127.0.0.1", int(self.stderr.readline().decode().rpartition(":")[2])

    def calls(self) -> socket.socket:
        return socket.create_connection(self.where, TIMEOUT_S)

    def connects(self) -> socket.socket:
        """A connection that has asked for a WebSocket, in two pieces."""
        connection = self.calls()
        connection.sendall(REQUEST[:10])
        connection.sendall(REQUEST[10:])
        assert self.stdout.read(len(REQUEST)) == REQUEST
        return connection

    def says(self, data: bytes) -> None:
        """The arena writes."""
        self.stdin.write(data)
        self.stdin.flush()

    def exits(self, status: int) -> None:
        self._ends.write_text(f"{status}\n")

    def ended(self) -> tuple[int, str]:
        """The pump's exit status, and the rest of what it and the program wrote for people."""
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


def received(connection: socket.socket, size: int) -> bytes:
    with connection.makefile("rb") as file:
        return file.read(size)


# ---- Bytes


def test_much_passes_in_both_directions_at_once(bot: RelayedBot) -> None:
    """The bot reads nothing before it has written: neither its pipe nor its socket holds so much."""
    with bot.connects() as connection, ThreadPoolExecutor() as arena:
        arena.submit(bot.says, LARGE)
        heard = arena.submit(bot.stdout.read, len(LARGE))
        connection.sendall(LARGE)

        assert heard.result() == LARGE
        assert received(connection, len(LARGE)) == LARGE


def test_what_passes_is_not_kept(bot: RelayedBot) -> None:
    with bot.connects() as connection:
        writing = threading.Thread(target=connection.sendall, args=(2 * LARGE,))
        writing.start()
        assert bot.stdout.read(2 * len(LARGE)) == 2 * LARGE
        writing.join(TIMEOUT_S)
        [peak] = [
            int(line.split()[1])
            for line in Path(f"/proc/{bot.process.pid}/status").read_text().splitlines()
            if line.startswith("VmHWM")
        ]

    assert peak < 24 << 10  # KiB


def test_a_bot_that_does_not_read_holds_the_arenas_pipe_up(bot: RelayedBot) -> None:
    os.set_blocking(bot.stdin.fileno(), False)
    taken = 0
    with bot.connects():
        while select.select([], [bot.stdin], [], 0.5)[1]:
            with contextlib.suppress(BlockingIOError):
                taken += os.write(bot.stdin.fileno(), bytes(4_096))

    assert taken < 64 << 20


def test_a_connection_that_says_nothing_keeps_no_other_waiting(bot: RelayedBot) -> None:
    with bot.calls(), bot.connects():
        pass


# ---- Ends


def test_the_end_of_its_input_is_that_of_its_connection(bot: RelayedBot) -> None:
    with bot.connects() as connection:
        bot.says(b"over")
        bot.stdin.close()
        assert received(connection, 100) == b"over"
        bot.exits(0)

    assert bot.ended() == (0, "")


def test_what_was_sent_before_the_end_arrives(bot: RelayedBot) -> None:
    with bot.connects() as connection:
        connection.sendall(bytes(1 << 16))
        bot.exits(7)

    assert len(bot.stdout.read()) == 1 << 16
    assert bot.ended() == (7, "")


def test_who_closes_and_does_not_end_is_ended(bot: RelayedBot) -> None:
    bot.connects().close()

    assert bot.ended() == (1, "closed its connection, and did not end\n")


def test_the_signal_that_ends_the_bot_ends_the_pump(bot: RelayedBot) -> None:
    with bot.connects():
        children = Path(f"/proc/{bot.process.pid}/task/{bot.process.pid}/children")
        os.kill(int(children.read_text()), signal.SIGSEGV)

        assert bot.ended()[0] == -signal.SIGSEGV


def test_nobody_else_can_connect_once_the_bot_has(bot: RelayedBot) -> None:
    # A connection that asks for no WebSocket may be given up, and another one come.
    bot.calls().close()
    with bot.calls() as early:
        early.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert early.recv(1) == b""
    with bot.connects() as connection:
        with pytest.raises(ConnectionRefusedError):
            bot.calls()
        connection.sendall(b"still here")
        assert bot.stdout.read(10) == b"still here"


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
