"""Listening sockets and TLS: the certificate, the cipher suites and the key exchanges.

A handshake is the most expensive computation that a peer can cause without a token. So only cheap
key exchanges are offered.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import ssl
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from arena.sandbox.scarcity import Scarcity
from protocol.errors import Unreachable, UsageError
from protocol.text_files import other_encoding

__all__ = ["Certificate", "Listeners", "allow_many_files", "context", "most_files", "offer"]

log = logging.getLogger(__name__)

_BACKLOG = 1024  # connections in the kernel's queue: after a stall a whole class comes back at once
_AT_ONCE = 64  # accepted in one turn of the loop; asyncio also tries in vain this often
_SUITES = "ECDHE+AESGCM:ECDHE+CHACHA20"  # for TLS 1.2; those of 1.3 stay at the default
_GROUPS = "X25519:P-256"
_GROUP = "prime256v1"  # P-256, which every client knows
_FILES = 16_384  # open at once: enough for thousands of bots

_OF_ANOTHER = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED")
"""OpenSSL's reasons if a key belongs to another certificate, of the same key type or another."""


class Listeners:
    """The listening sockets of one server.

    If no file descriptor or memory is left to accept a connection, asyncio waits for a second; new
    connections stay in the kernel's queue meanwhile.
    """

    def __init__(self) -> None:
        self._servers: list[asyncio.Server] = []
        self._scarcity = Scarcity(
            "no connection can be accepted (%s): matches go on, and those who connect wait"
        )

    def __iter__(self) -> Iterator[asyncio.Server]:
        return iter(self._servers)

    async def open(self, make: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> int:
        """Listen on one more address; return the port, a free one if `port` is 0.

        `make` makes the protocol of each connection. Raises `Unreachable` if listening fails.
        """
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._on_error)
        try:
            server = await loop.create_server(make, host, port, backlog=_AT_ONCE)
            for each in server.sockets:
                with each.dup() as same:
                    same.listen(_BACKLOG)
        except OSError as error:
            why = error.strerror or str(error)
            if error.errno == errno.EADDRINUSE:
                taken = "another program uses that port; choose another with --port"
                why = taken if port else "this machine has no free port left"
            raise Unreachable(f"cannot listen on {host}:{port}: {why}") from None
        self._servers.append(server)
        listening: int = server.sockets[0].getsockname()[1]
        return listening

    def close(self) -> None:
        """Accept no more connections; open ones stay."""
        for server in self._servers:
            server.close()

    def _on_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log in a line why nobody is accepted; asyncio would log a traceback for each attempt."""
        error = context.get("exception")
        is_accept = "socket" in context and "transport" not in context
        if not is_accept or error is None or not self._scarcity.tell(error):
            loop.default_exception_handler(context)


def allow_many_files() -> None:
    """Raise the soft limit of open files: a class of 500 needs more than the usual 1,024."""
    most = most_files()
    if most is None:
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):  # macOS refuses some values; the limit stays then
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def most_files() -> int | None:
    """Return how many files a server can open, with the soft limit raised; None without a limit."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return None
    # No more than this: some bots begin by closing every possible file descriptor.
    most = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    return max(soft, most)


class Certificate:
    """A certificate and its key in files, as for `context`; they are read again when renewed."""

    def __init__(self, cert: Path, key: Path) -> None:
        self._files = cert, key
        self._seen = [*map(_stamp, self._files)]
        self._current = context(cert, key)

    def current(self) -> ssl.SSLContext:
        """Return the TLS context for the next connection; an invalid renewed pair is skipped."""
        stamps = [*map(_stamp, self._files)]
        if stamps == self._seen:
            return self._current
        self._seen = stamps
        try:
            self._current = context(*self._files)
        except UsageError as error:
            log.warning("the certificate stays as it was: %s", error)
        else:
            log.warning("the certificate was renewed: %s", self._files[0])
        return self._current


def _stamp(file: Path) -> tuple[int, ...] | None:
    """Return a value that changes when the file does; None if it cannot be read."""
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def context(cert: Path, key: Path) -> ssl.SSLContext:
    """Make a server's TLS context; raises `UsageError` if a file is missing or invalid.

    `cert` is the certificate in PEM, followed by those that lead to a known authority. `key` is its
    private key in PEM, without a password, as nobody types one when an arena restarts by itself.
    """
    _check(cert, "a certificate", b"CERTIFICATE-----")
    _check(key, "a private key", b"PRIVATE KEY-----")
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    offer(made)

    def password() -> str:
        raise UsageError(f"expected a private key without a password, {key} has one")

    try:
        made.load_cert_chain(cert, key, password)
    except ssl.SSLError as error:
        if error.reason in _OF_ANOTHER:
            raise UsageError(f"expected the private key of {cert}, got {key}") from None
        reason = (error.reason or "it is damaged").replace("_", " ").lower()
        raise UsageError(f"cannot use {cert} with {key}: {reason}") from None
    return made


def offer(made: Any) -> None:
    """Restrict a server's `ssl.SSLContext` to cheap handshakes.

    With a finite field such as ffdhe8192, a handshake takes a hundred times as long as on an
    elliptic curve, and an attacker can replay a recorded first message at no cost.
    """
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.options |= ssl.OP_NO_RENEGOTIATION
    made.set_ciphers(_SUITES)
    if hasattr(made, "set_groups"):  # from Python 3.15 on
        made.set_groups(_GROUPS)
    else:  # only one group can be set
        made.set_ecdh_curve(_GROUP)


def _check(file: Path, what: str, mark: bytes) -> None:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UsageError(
            f"expected {what}, cannot read {file}: {error.strerror or error}"
        ) from None
    if mark not in data:
        other = other_encoding(data)
        why = "" if other is None else f": it looks like {other}"
        raise UsageError(f"expected {what} in PEM, {file} has none{why}")
