"""How a command connects to a running arena, and what it says if it cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.errors import Unreachable, UsageError, one_line

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

__all__ = ["connected_to", "place_of"]

_TIMEOUT_S = 10.0
_LONGEST = 200  # letters of why a server does not let it in


def place_of(url: str) -> str:
    """An arena's address for errors, with the proxy that leads there."""
    from protocol.address import through

    return url + through(url)


def connected_to(url: str, path: str = "") -> ClientConnection:
    """Connect to an arena's address or a path below it, through the proxy that leads there.

    Raises:
        Unreachable: no arena answers there.
        UsageError: the address or the proxy is not valid.
    """
    from websockets.exceptions import InvalidMessage, InvalidStatus, InvalidURI, WebSocketException
    from websockets.sync.client import connect

    from protocol.address import proxy_to

    try:
        return connect(
            f"{url.rstrip('/')}/{path}" if path else url,
            proxy=proxy_to(url),
            open_timeout=_TIMEOUT_S,
            compression=None,
            max_size=None,
        )
    except InvalidURI:
        raise UsageError(f"expected an address such as ws://127.0.0.1:7700, got {url!r}") from None
    except InvalidStatus as error:
        said = error.response.body.decode(errors="replace")
        why = one_line(said.strip() or f"HTTP {error.response.status_code}", _LONGEST)
        raise Unreachable(f"what answers at {place_of(url)} says: {why}") from None
    except (OSError, TimeoutError, WebSocketException) as error:
        why = str(error) or "it does not answer"
        if isinstance(error, InvalidMessage) and url.startswith("ws://"):
            why += "; it may be a wss:// address"
        raise Unreachable(f"no arena answers at {place_of(url)}: {why}") from None
