"""The addresses that an arena listens on: one for people, and perhaps another for the bots that it has launched."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Iterator

from protocol.errors import Unreachable

__all__ = ["Listening"]

_BACKLOG = (
    1024  # that the kernel accepts for us: a class comes back at once after a stall
)


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
