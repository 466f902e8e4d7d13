"""The program between the arena's pipes and a bot that speaks WebSocket, where there is no network.

Run as `python -I -S relay.py COMMAND...`. It listens on the loopback interface, starts the bot with
`ARENA_URL` leading there, and carries frames to and from its standard streams as lines. To the
arena the bot is a `stdio` program. It uses only the standard library, and little of that, as it
stands before every such bot: it starts in 20 ms, where `websockets` alone takes 50 and 10 MiB.

- A text frame is a line as it is, of any length; it is not kept here. A binary frame is msgpack and
  becomes a line of JSON. The bot is sent what it sent first: text or msgpack.
- It keeps nothing of the session. What is not allowed on the wire, it passes on for the arena to
  rule on. It reads from one side only when the other has taken what came before.
- One WebSocket is a bot's whole session, as pipes are. Once it is open nobody else can connect;
  when it is closed, the bot has two seconds to end.
- At the end of its input it closes the WebSocket with 1000. It ends with the bot's exit status;
  if the bot has closed with 1011, never with 0. The bot's standard output goes to its stderr.
"""

from __future__ import annotations

import binascii
import contextlib
import hashlib
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:  # it takes 10 ms to import
    from typing import Any

__all__ = ["NAME", "FrameReader", "NotWebSocket", "handshake", "header", "main"]

NAME = "arena-relay"
"""The name of its process, by which the sampler knows it as a part of the sandbox."""

_READ_BYTES = 1 << 16
_REQUEST_BYTES = 1 << 14  # of a handshake
# Beyond that a binary frame is passed on as it is: the arena finds it too long, or unreadable.
_BINARY_BYTES = 16 << 20
_END_S = 2.0  # from the end of its connection to that of the bot, as the arena gives it for pipes
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, 1.3

_CONT, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0, 1, 2, 8, 9, 10
_FIN, _MASKED = 0x80, 0x80
_DONE, _PROTOCOL, _CRASHED = 1000, 1002, 1011
_FAILED = 1 << 8  # exit status 1, as `waitpid` gives it


# ---- WebSocket (RFC 6455), as far as a server on one machine needs it


class NotWebSocket(Exception):
    """The bot sent something that is no handshake, or no frame of a client."""


def handshake(request: bytes) -> bytes:
    """The answer to a request for a WebSocket; `NotWebSocket` if it is another one."""
    first, *lines = request.split(b"\r\n")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(b":") for line in lines)
    }
    key = headers.get(b"sec-websocket-key", b"")
    if not first.startswith(b"GET ") or not key:
        raise NotWebSocket(f"expected a WebSocket handshake, got {first[:80]!r}")
    accept = binascii.b2a_base64(hashlib.sha1(key + _GUID).digest(), newline=False)
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
    )


def header(opcode: int, size: int) -> bytes:
    """What stands before the payload of a frame from us, which is whole and not masked."""
    first = bytes((_FIN | opcode,))
    if size < 126:
        return first + bytes((size,))
    if size < 1 << 16:
        return first + b"\x7e" + size.to_bytes(2, "big")
    return first + b"\x7f" + size.to_bytes(8, "big")


class FrameReader:
    """Frames from bytes, however they are cut.

    They come as an opcode, bytes, and whether these are the last of a message; a long frame of data
    comes in several parts.
    """

    def __init__(self) -> None:
        self._data = bytearray()
        self._message = _CONT  # the opcode of the message whose end has not come
        self._left = 0  # bytes of a frame of that message
        self._is_last = True
        self._mask = b""

    def receive(self, data: bytes) -> Iterator[tuple[int, bytes, bool]]:
        """Take bytes; what they complete. `NotWebSocket` is raised where they are no frames."""
        self._data += data
        while True:
            if self._left:
                if not self._data:
                    return
                yield self._rest()
            elif (part := self._next()) is not None:
                if part[0] != _CONT:
                    yield part
            else:
                return

    def _next(self) -> tuple[int, bytes, bool] | None:
        """Read a header, and a control frame or an empty one; None until more has come."""
        data = self._data
        if len(data) < 2:
            return None
        opcode, size, start = data[0] & 0x0F, data[1] & 0x7F, 2
        if size >= 126:
            start = 4 if size == 126 else 10
            size = int.from_bytes(data[2:start], "big")
        if data[0] & 0x70 or not data[1] & _MASKED:
            raise NotWebSocket("expected a masked frame without extensions")
        is_control = opcode >= _CLOSE
        if len(data) < start + 4 + (size if is_control else 0):
            return None
        mask, is_last = bytes(data[start : start + 4]), bool(data[0] & _FIN)
        del data[: start + 4]
        if is_control:
            if size > 125 or not is_last or opcode > _PONG:
                raise NotWebSocket(f"expected a short close, ping or pong, got opcode {opcode}")
            payload = _unmask(bytes(data[:size]), mask)
            del data[:size]
            return opcode, payload, True
        if opcode > _BINARY or (opcode == _CONT) != (self._message != _CONT):
            raise NotWebSocket(f"expected the next frame of a message, got opcode {opcode}")
        self._message = self._message or opcode
        self._mask, self._left, self._is_last = mask, size, is_last
        return (_CONT, b"", False) if size else self._part(b"")

    def _rest(self) -> tuple[int, bytes, bool]:
        piece = bytes(self._data[: self._left])
        del self._data[: self._left]
        self._left -= len(piece)
        plain = _unmask(piece, self._mask)
        turn = len(piece) % 4
        self._mask = self._mask[turn:] + self._mask[:turn]
        return self._part(plain)

    def _part(self, plain: bytes) -> tuple[int, bytes, bool]:
        opcode, is_last = self._message, self._is_last and not self._left
        if is_last:
            self._message = _CONT
        return opcode, plain, is_last


def _unmask(data: bytes, mask: bytes) -> bytes:
    size = len(data)
    key = (mask * (size // 4 + 1))[:size]
    # As two long numbers: per byte it would take a hundred times as long.
    plain = int.from_bytes(data, "little") ^ int.from_bytes(key, "little")
    return plain.to_bytes(size, "little")


# ---- Between the two


class _Relay:
    """A bot's process, its connection, and what has been read from one side for the other."""

    def __init__(self, command: Sequence[str], listener: socket.socket, wakeup: int) -> None:
        self._wakeup = wakeup
        self._listener: socket.socket | None = listener
        self._client: socket.socket | None = None
        self._request: bytearray | None = None  # until the connection is a WebSocket
        self._frames = FrameReader()
        self._line = bytearray()  # the beginning of one from the arena
        self._binary = bytearray()  # the beginning of a binary message
        self._outgoing = 0  # the opcode of the bot's first message
        self._to_bot = bytearray()
        self._to_arena = bytearray()
        self._has_input = self._has_output = True
        self._is_closing = False  # we have sent a close
        self._close_code: int | None = None  # the bot has sent a close, or what is no frame
        self._end_by: float | None = None
        self._child = _start(command, listener.getsockname()[1])

    def run(self) -> int:
        """Carry frames until the bot has ended; its status, as `waitpid` gives it."""
        while True:
            poll = select.poll()
            actions = self._wanted()
            for descriptor, (events, _) in actions.items():
                poll.register(descriptor, events)
            left_s = None if self._end_by is None else max(0.0, self._end_by - time.monotonic())
            for descriptor, events in poll.poll(None if left_s is None else left_s * 1000):
                actions[descriptor][1](events)
            pid, status = os.waitpid(self._child, os.WNOHANG)
            if pid:
                self._read_rest()
                return _FAILED if status == 0 and self._close_code == _CRASHED else status
            if self._end_by is not None and time.monotonic() >= self._end_by:
                _say("closed its connection, and did not end")
                os.kill(self._child, signal.SIGKILL)
                return 0 if self._close_code == _DONE else _FAILED

    def _wanted(self) -> Mapping[int, tuple[int, Callable[[int], None]]]:
        """What is waited for, by descriptor: each side is read while the other keeps up."""
        actions: dict[int, tuple[int, Callable[[int], None]]] = {
            self._wakeup: (select.POLLIN, self._woken)
        }
        if self._client is not None:
            reads = 0 if self._to_arena else select.POLLIN
            writes = select.POLLOUT if self._to_bot else 0
            if reads | writes:  # else a connection that is lost would wake us again and again
                actions[self._client.fileno()] = (reads | writes, self._serve_bot)
        elif self._listener is not None:
            actions[self._listener.fileno()] = (select.POLLIN, self._accept)
        if self._to_arena:
            actions[1] = (select.POLLOUT, self._write_to_arena)
        if self._has_input and not self._to_bot:
            actions[0] = (select.POLLIN, self._read_from_arena)
        return actions

    def _woken(self, _events: int) -> None:
        os.read(self._wakeup, 4096)

    # --- from the arena

    def _read_from_arena(self, _events: int) -> None:
        data = os.read(0, _READ_BYTES)
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._frame(bytes(self._line + line))
            self._line.clear()
        self._line += rest
        if not data:
            self._has_input = False
            self._close_listener()
            self._close(_DONE)
        self._write_to_bot()

    def _frame(self, line: bytes) -> None:
        if self._client is None or self._request is not None or self._is_closing:
            return
        opcode = self._outgoing or _TEXT
        if opcode == _BINARY:
            line = _packed(line)
        self._to_bot += header(opcode, len(line)) + line

    def _write_to_bot(self) -> None:
        if self._client is None:
            return
        if self._to_bot:
            try:
                del self._to_bot[: self._client.send(self._to_bot)]
            except BlockingIOError:
                return
            except OSError:  # what it has sent before is still read
                self._to_bot.clear()
        if self._close_code is not None and not self._to_bot:
            self._gone()

    # --- from the bot

    def _accept(self, _events: int) -> None:
        assert self._listener is not None, "it is waited for only then"
        with contextlib.suppress(OSError):
            self._client = self._listener.accept()[0]
            self._client.setblocking(False)
            self._client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._request = bytearray()

    def _serve_bot(self, events: int) -> None:
        if events & ~select.POLLOUT:
            self._read_from_bot()
        self._write_to_bot()

    def _read_from_bot(self) -> None:
        assert self._client is not None, "it is waited for only then"
        try:
            data = self._client.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._gone()
            return
        try:
            if self._request is not None:
                data = self._greet(self._request, data)
            for part in self._frames.receive(data):
                self._take(*part)
        except NotWebSocket as error:
            self._offended(str(error))
        self._write_to_arena()

    def _greet(self, request: bytearray, data: bytes) -> bytes:
        """Answer the handshake when it is complete; the bytes that came after it."""
        request += data
        head, end, rest = bytes(request).partition(b"\r\n\r\n")
        if not end:
            if len(request) > _REQUEST_BYTES:
                raise NotWebSocket("expected a WebSocket handshake, got a longer request")
            return b""
        self._to_bot += handshake(head)
        self._request = None
        self._close_listener()
        return rest

    def _take(self, opcode: int, data: bytes, is_last: bool) -> None:
        if self._close_code is not None:
            return
        if opcode == _TEXT:
            self._outgoing = self._outgoing or _TEXT
            self._to_arena += data.replace(b"\n", b" ")
            self._to_arena += b"\n" if is_last else b""
        elif opcode == _BINARY:
            self._outgoing = self._outgoing or _BINARY
            self._take_binary(data, is_last)
        elif opcode == _PING:
            if len(self._to_bot) < _READ_BYTES:  # else it pings and does not read
                self._to_bot += header(_PONG, len(data)) + data
        elif opcode == _CLOSE:
            code = int.from_bytes(data[:2], "big") if data else _DONE
            if code != _DONE:
                reason = data[2:].decode(errors="replace")
                _say(f"closed its connection with {code}: {reason}")
            self._close(code)
            self._close_code = code

    def _take_binary(self, data: bytes, is_last: bool) -> None:
        self._binary += data
        if len(self._binary) > _BINARY_BYTES:
            self._to_arena += self._binary.replace(b"\n", b" ")
            self._binary.clear()
        elif is_last:
            self._to_arena += _unpacked(bytes(self._binary))
            self._binary.clear()
        self._to_arena += b"\n" if is_last else b""

    def _offended(self, why: str) -> None:
        """Have the arena rule on what is no frame: it gets a line that is no message."""
        _say(why)
        if self._request is not None:  # it can try again
            self._drop()
            return
        self._to_arena += b"\n" + _no_message(why) + b"\n"
        self._close(_PROTOCOL)
        self._close_code = _PROTOCOL

    def _write_to_arena(self, _events: int = 0) -> None:
        if self._to_arena and self._has_output:
            try:
                del self._to_arena[: os.write(1, self._to_arena)]
            except BlockingIOError:
                return
            except OSError:  # the arena does not read any more
                self._has_output = False
        if not self._has_output:
            self._to_arena.clear()

    # --- the end

    def _close(self, code: int) -> None:
        """Send a close, once, after what is waiting."""
        if self._client is not None and self._request is None and not self._is_closing:
            self._is_closing = True
            self._to_bot += header(_CLOSE, 2) + code.to_bytes(2, "big")

    def _gone(self) -> None:
        """The bot's connection is closed: before the handshake there may be another one."""
        self._drop()
        if self._listener is None and self._end_by is None:
            self._end_by = time.monotonic() + _END_S

    def _drop(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = self._request = None
        self._to_bot.clear()

    def _close_listener(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def _read_rest(self) -> None:
        """Pass on what the bot sent before it ended; a child of it could go on for ever."""
        os.set_blocking(1, True)
        end_by = time.monotonic() + _END_S
        while self._client is not None and time.monotonic() < end_by:
            if not select.select([self._client], [], [], 0)[0]:
                break
            self._read_from_bot()
        while self._to_arena:
            self._write_to_arena()


def _packed(line: bytes) -> bytes:
    """JSON as msgpack."""
    msgspec = _codec()
    packed: bytes = msgspec.msgpack.encode(msgspec.json.decode(line))
    return packed


def _unpacked(frame: bytes) -> bytes:
    """Msgpack as JSON; what is not msgpack becomes a line that is no message."""
    msgspec = _codec()
    try:
        text: bytes = msgspec.json.encode(msgspec.msgpack.decode(frame))
    except Exception as error:  # of any type, as in protocol/codec.py
        why = f"expected msgpack in a binary frame: {error}"
        _say(why)
        return _no_message(why)
    return text


def _codec() -> Any:
    """`msgspec`, for bots that speak msgpack only: it takes 30 ms to import."""
    if "site" not in sys.modules:
        import site

        site.main()
    import msgspec

    return msgspec


def _no_message(why: str) -> bytes:
    import json  # rarely needed

    return json.dumps(why).encode()


# ---- Start and end


def _start(command: Sequence[str], port: int) -> int:
    """Start the bot; its process id. Raises `OSError`."""
    return os.posix_spawnp(
        command[0],
        list(command),
        # What it prints goes to stderr, and is to be in the log of this match, not of a later one.
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
    """Run the bot behind the relay; its exit status. A signal that has ended it ends us too."""
    # Linux only; elsewhere no process is told from others by its name.
    with contextlib.suppress(OSError), open("/proc/self/comm", "w") as file:
        file.write(NAME)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the bot has got it too, and we end with it
    wakeup, writer = os.pipe()
    for end in (wakeup, writer, 1):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    try:
        relay = _Relay(command, listener, wakeup)
    except OSError as error:
        _say(f"cannot start {command[0]}: {error.strerror}")
        return 127
    status = relay.run()
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
