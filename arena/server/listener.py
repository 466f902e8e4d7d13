"""The addresses that an arena listens on, and TLS there: the certificate that it shows, what it offers, and handshakes that are worked
on when there is time.

Whatever is wrong with the files is told in one line. A handshake is the most that somebody without a token can make us compute, so only
what is cheap is offered, and how long each step took is measured.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from protocol.errors import Unreachable, UsageError

__all__ = ["Certificate", "Handshake", "Listeners", "allow_many_files", "context", "offer"]

log = logging.getLogger(__name__)

# That the kernel accepts for us: a class comes back at once after a stall.
_BACKLOG = 1024
_SUITES = "ECDHE+AESGCM:ECDHE+CHACHA20"  # of TLS 1.2; those of 1.3 stay as they are
_GROUPS = "X25519:P-256"
_GROUP = "prime256v1"  # P-256, which every client knows
_STEP_BYTES = 16 * 1024  # of a handshake, read at once

_LOOK_S = 2.0  # between two looks at the files; they change every other month

_OF_ANOTHER = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED")
"""What OpenSSL says of a key that belongs to another certificate: of the same kind, or of another, as RSA to one that is EC."""


_FILES = 16_384  # that may be open at once: thousands of bots


class Listeners:
    """Any number of addresses."""

    def __init__(self) -> None:
        self._servers: list[asyncio.Server] = []

    def __iter__(self) -> Iterator[asyncio.Server]:
        """Those that are open."""
        return iter(self._servers)

    async def open(self, make: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> int:
        """Listen on one more; `make` makes what a connection talks to. Returns the port, which is a free one for port 0.

        Raises:
            Unreachable: the address cannot be listened on.
        """
        loop = asyncio.get_running_loop()
        try:
            server = await loop.create_server(make, host, port, backlog=_BACKLOG)
        except OSError as error:
            why = (
                "another program uses that port; choose another with --port"
                if error.errno == errno.EADDRINUSE
                else (error.strerror or str(error))
            )
            raise Unreachable(f"cannot listen on {host}:{port}: {why}") from None
        self._servers.append(server)
        listening: int = server.sockets[0].getsockname()[1]
        return listening

    def close(self) -> None:
        """Accept nobody any more; who is connected stays."""
        for server in self._servers:
            server.close()


def allow_many_files() -> None:
    """Raise the soft limit of open files to the hard one: a class of 500 needs more than the usual 1,024."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Not more: some programs that bots may be close every file that they could have.
    most = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):  # macOS refuses some values; then it stays
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class Certificate:
    """A certificate and its key in files; when these are renewed new connections are encrypted with what they hold then.

    Args:
        cert: as `context` takes it.
        key: as `context` takes it.
        clock: seconds, of a clock that never goes back.

    Raises:
        UsageError: as `context`.
    """

    def __init__(self, cert: Path, key: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._files = cert, key
        self._clock = clock
        self._looked_at = clock()
        self._seen = self._stamps()
        self._current = context(cert, key)

    def current(self) -> ssl.SSLContext:
        """What the next connection is encrypted with. The old pair stays while the new one is not complete, which is logged."""
        now = self._clock()
        if now - self._looked_at < _LOOK_S:
            return self._current
        self._looked_at = now
        stamps = self._stamps()
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

    def _stamps(self) -> tuple[object, ...]:
        """What changes when one of the files does."""
        return tuple(map(_stamp, self._files))


def _stamp(file: Path) -> tuple[int, ...] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def context(cert: Path, key: Path) -> ssl.SSLContext:
    """What a server encrypts with.

    Args:
        cert: the certificate in PEM, and those that lead to a known authority after it.
        key: its private key in PEM, not encrypted, as nobody is there to type a password when an arena starts again by itself.

    Raises:
        UsageError: a file is not there, or is not what it should be.
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
    """Have a server's `ssl.SSLContext` offer nothing that costs it much.

    With a finite field such as ffdhe8192 a handshake takes a hundred times as long as on an elliptic curve, and whoever
    has recorded the first message of one can send it for nothing.
    """
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.options |= ssl.OP_NO_RENEGOTIATION
    made.set_ciphers(_SUITES)
    if hasattr(made, "set_groups"):  # from Python 3.15 on
        made.set_groups(_GROUPS)
    else:  # only one can be set
        made.set_ecdh_curve(_GROUP)


class Handshake(asyncio.BufferedProtocol):
    """Stands between a socket and asyncio's protocol for TLS until that has shaken hands: what comes in waits until `step`.

    Args:
        raw: the socket's transport.
        within: asyncio's protocol.
        came: told that something waits.
    """

    def __init__(
        self, raw: asyncio.Transport, within: asyncio.BufferedProtocol, came: Callable[[], None]
    ) -> None:
        self._raw = raw
        self._within = within
        self._came = came
        self._waiting = 0  # bytes that have been read
        raw.set_protocol(self)

    def step(self) -> float:
        """Work off what waits, and read on; the seconds that it took."""
        began_s = time.perf_counter()
        waiting, self._waiting = self._waiting, 0
        if waiting and not self._raw.is_closing():
            self._within.buffer_updated(waiting)
            self._raw.resume_reading()
        return time.perf_counter() - began_s

    def end(self) -> None:
        """They have shaken hands: what comes in from now on waits no more."""
        self.step()
        self._raw.set_protocol(self._within)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes are to be read into."""
        return memoryview(self._within.get_buffer(-1))[:_STEP_BYTES]

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes came in: no more of them, until these are worked off."""
        self._waiting = nbytes
        self._raw.pause_reading()
        self._came()

    def eof_received(self) -> bool | None:
        """The peer sends no more."""
        return self._within.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is closed."""
        self._waiting = 0
        self._within.connection_lost(exc)

    def pause_writing(self) -> None:
        """The peer reads more slowly than is written."""
        self._within.pause_writing()

    def resume_writing(self) -> None:
        """It has caught up."""
        self._within.resume_writing()


def _check(file: Path, what: str, mark: bytes) -> None:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UsageError(
            f"expected {what}, cannot read {file}: {error.strerror or error}"
        ) from None
    if mark not in data:
        raise UsageError(f"expected {what} in PEM, {file} has none")
