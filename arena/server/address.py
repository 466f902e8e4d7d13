"""Where an arena is reached: by everybody at the address that it listens on, and by the bots on its own machine over loopback."""

from __future__ import annotations

import ssl
from collections.abc import Callable

from arena.server.gateway import Gateway

__all__ = ["ArenaAddress"]

_LOOPBACK = "127.0.0.1"


class ArenaAddress:
    """The address of one arena.

    Args:
        interface: to listen on.
        port: the port, or 0 for a free one.
        tls: says what a new connection to the port is encrypted with; bots on this machine have another port then, on loopback.

    Attributes:
        url: how the arena is reached; empty before it is open.
    """

    def __init__(self, interface: str, port: int, tls: Callable[[], ssl.SSLContext] | None) -> None:
        self.url = ""
        self._interface, self._port, self._tls = interface, port, tls
        self._near_port = 0

    async def open(self, gateway: Gateway) -> None:
        """Listen.

        Raises:
            Unreachable: the address cannot be listened on.
        """
        port = await gateway.open(self._interface, self._port, self._tls)
        host = f"[{self._interface}]" if ":" in self._interface else self._interface
        self.url = f"{'ws' if self._tls is None else 'wss'}://{host}:{port}"
        if gateway.entrance.base_path != "/":
            self.url += gateway.entrance.base_path
        if self._tls is not None:  # whose certificate need not be good for loopback
            self._near_port = await gateway.open(_LOOPBACK, 0)

    @property
    def near_url(self) -> str:
        """How a bot on this machine reaches the arena, whatever interface it listens on."""
        if self._near_port:
            return f"ws://{_LOOPBACK}:{self._near_port}"
        for everywhere, here in (("//0.0.0.0:", "//127.0.0.1:"), ("//[::]:", "//[::1]:")):
            if everywhere in self.url:
                return self.url.replace(everywhere, here)
        return self.url
