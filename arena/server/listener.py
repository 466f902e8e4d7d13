"""The addresses that an arena listens on: one for people, and perhaps another for the bots that it has launched."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Iterator
from contextlib import suppress

from protocol.errors import Unreachable

__all__ = ["Listening", "allow_many_files"]

_BACKLOG = (
    1024  # that the kernel accepts for us: a class comes back at once after a stall
)


_FILES = 16_384  # that may be open at once: thousands of bots


class Listening:
    """Any number of addresses."""

    def __init__(self) -> None:
        self._servers: list[asyncio.Server] = []

    def __iter__(self) -> Iterator[asyncio.Server]:
        """Those that are open."""
        return iter(self._servers)

    async def open(
        self, make: Callable[[], asyncio.BaseProtocol], host: str, port: int
    ) -> int:
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
