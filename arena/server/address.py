"""Where an arena is reached: at its address, and by the bots on its machine over loopback."""

from __future__ import annotations

import ssl
from collections.abc import Callable

from arena.server.gateway import Gateway

__all__ = ["ArenaAddress"]

_LOOPBACK = "127.0.0.1"


class ArenaAddress:
    """The address of one arena: `port` 0 means a free one, and `url` is empty before it is open.

    `tls` makes what a new connection is encrypted with. Bots on this machine then have another
    port, on loopback and without TLS.
    """

    def __init__(self, interface: str, port: int, tls: Callable[[], ssl.SSLContext] | None) -> None:
        self.url = ""
        self._interface, self._port, self._tls = interface, port, tls
        self._near_port = 0

    async def open(self, gateway: Gateway) -> None:
        """Start to listen; raises `Unreachable` if the address cannot be listened on."""
        port = await gateway.open(self._interface, self._port, self._tls)
        host = f"[{self._interface}]" if ":" in self._interface else self._interface
        self.url = f"{'ws' if self._tls is None else 'wss'}://{host}:{port}"
        if gateway.entrance.base_path != "/":
            self.url += gateway.entrance.base_path
        if self._tls is not None:  # the certificate need not be valid for loopback
            self._near_port = await gateway.open(_LOOPBACK, 0)

    @property
    def near_url(self) -> str:
        """The URL for a bot on this machine, whatever interface the arena listens on."""
        if self._near_port:
            return f"ws://{_LOOPBACK}:{self._near_port}"
        for everywhere, here in (("//0.0.0.0:", "//127.0.0.1:"), ("//[::]:", "//[::1]:")):
            if everywhere in self.url:
                return self.url.replace(everywhere, here)
        return self.url
