"""A network that can be cut without a word: a proxy that stops forwarding, in threads of its own."""

from __future__ import annotations

import contextlib
import socket
import threading

__all__ = ["StallingProxy"]

_CHUNK_BYTES = 1 << 16


class StallingProxy:
    """Forwards connections to a port of this machine; `port` is its own, and `passed` counts bytes.

    While it is cut it takes connections and bytes and forwards nothing, as a network does that
    drops every packet. What had come until then is lost when it goes on: its connections are
    closed. With `connects` it first takes a request to connect, as proxies for HTTP do.
    """

    def __init__(self, target: int, *, connects: bool = False) -> None:
        self.passed = 0
        self.asked: list[bytes] = []
        self._connects = connects
        self._target = target
        self._is_cut = threading.Event()
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lock = threading.Lock()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._is_cut.set()

    def go_on(self) -> None:
        self._is_cut.clear()
        self._close_all()

    def close(self) -> None:
        self._server.close()
        self._close_all()

    def _close_all(self) -> None:
        with self._lock:
            pairs, self._pairs = self._pairs, set()
        for each in (end for pair in pairs for end in pair):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return  # it was closed
            try:
                far = socket.create_connection(("127.0.0.1", self._target), timeout=5)
            except OSError:
                near.close()  # nobody listens there now
                continue
            far.settimeout(None)
            if self._connects:
                self.asked.append(near.recv(_CHUNK_BYTES).partition(b"\r\n")[0])
                near.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            with self._lock:
                self._pairs.add((near, far))
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(_CHUNK_BYTES):
                if not self._is_cut.is_set():
                    other.sendall(data)
                    self.passed += len(data)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
