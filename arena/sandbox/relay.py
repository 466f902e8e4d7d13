"""The byte pump between the arena's pipes and a bot that speaks WebSocket without a network.

Run as `python -I -S relay.py COMMAND...`. It listens on the loopback interface, starts the bot with
`ARENA_URL` leading there, and copies bytes between the bot's connection and our standard streams.
The arena's own WebSocket is at the other ends of these (`arena/server/stdio.py`). The relay uses
only the standard library, and little of that, as there is one for every such bot.

- It keeps only what it is copying, and reads from one side only when the other has taken what came
  before.
- One WebSocket is a bot's whole session, as pipes are. Until a WebSocket is requested, a connection
  may be dropped for another one. After that nobody else can connect; when it is closed, the bot has
  two seconds to end.
- When our input ends, the bot sees the end of its connection, after the arena's close. We end with
  the bot's exit status, or 1 if it did not end. Its standard output goes to its stderr.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence

__all__ = ["NAME", "main"]

NAME = "arena-relay"
"""The name of its process, by which the sampler recognizes it as part of the sandbox."""

_READ_BYTES = 1 << 16
_REQUEST_BYTES = 1 << 14
_REQUEST_S = 2.0  # between two parts of a request
_KEY = b"sec-websocket-key"  # a header of each WebSocket request
_END_S = 2.0  # from the end of its connection to that of the bot, as the arena allows for pipes


class _Pump:
    """A bot's process, and the threads that copy its bytes."""

    def __init__(self, command: Sequence[str]) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._child = _start(command, self._listener.getsockname()[1])
        self._was_killed = False
        self._is_copied = _thread.allocate_lock()  # held while the bot's output is copied
        self._is_copied.acquire()

    def run(self) -> int:
        """Copy until the bot has ended; returns its status, as from `waitpid`."""
        _thread.start_new_thread(self._serve, ())
        _, status = os.waitpid(self._child, 0)
        # Wait for what it sent before it ended; a child of it could send for ever.
        self._is_copied.acquire(timeout=_END_S)
        return 1 << 8 if self._was_killed else status

    def _serve(self) -> None:
        client, request = self._accept()
        with self._listener:
            pass
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _thread.start_new_thread(_copy_input, (client,))
        with contextlib.suppress(OSError):  # the bot is gone, or the arena no longer reads
            data = request
            while data:
                while data:
                    data = data[os.write(1, data) :]
                data = client.recv(_READ_BYTES)
        self._is_copied.release()
        time.sleep(_END_S)
        _say("closed its connection, and did not end")
        self._was_killed = True
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._child, signal.SIGKILL)

    def _accept(self) -> tuple[socket.socket, bytes]:
        """The first connection that requests a WebSocket, with what it has sent."""
        while True:
            client, _ = self._listener.accept()
            client.settimeout(_REQUEST_S)  # so a silent connection blocks no other
            request = b""
            with contextlib.suppress(OSError):
                while b"\r\n\r\n" not in request and len(request) < _REQUEST_BYTES:
                    data = client.recv(_READ_BYTES)
                    if not data:
                        break
                    request += data
            if _KEY in request.lower():
                client.settimeout(None)
                return client, request
            client.close()


def _copy_input(client: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := os.read(0, _READ_BYTES):
            client.sendall(data)
        client.shutdown(socket.SHUT_WR)


def _start(command: Sequence[str], port: int) -> int:
    """Start the bot; returns its process id. Raises `OSError`."""
    return os.posix_spawnp(
        command[0],
        list(command),
        # What it prints goes to stderr, and must be in the log of this match, not of a later one.
        os.environ | {"ARENA_URL": f"ws://127.0.0.1:{port}", "PYTHONUNBUFFERED": "1"},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, 2, 1),
        ],
        # Python ignores the first two, and we the third: a bot would inherit that.
        setsigdef=[signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM],
    )


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"{text}\n".encode(errors="replace"))


def main(command: Sequence[str]) -> int:
    """Run the bot behind the pump; returns its exit status. A signal that ends it ends us, too."""
    # Linux only; on other systems processes are not recognized by name.
    with contextlib.suppress(OSError), open("/proc/self/comm", "w") as file:
        file.write(NAME)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the bot has got it too, and we end with the bot
    try:
        pump = _Pump(command)
    except OSError as error:
        _say(f"cannot start {command[0]}: {error.strerror}")
        return 127
    status = pump.run()
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
