"""Says where an arena listens and to whom, and at which addresses bots and browsers reach it.

`ws://0.0.0.0:7700` is where an arena listens, and nobody can connect to it from another machine.
The network may not know this machine's name, so the machine's address in it is printed as well.
Finding it out sends nothing, and asks no name server.
"""

from __future__ import annotations

import functools
import ipaddress
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import msgspec

from arena.competitions.config import ServeSection
from arena.server.origin import Origins, is_loopback, read_base_path
from arena.server.proxies import Proxies
from protocol.errors import UsageError

__all__ = ["Endpoint", "endpoint_options", "page_at", "urls_for_others"]

_DEFAULTS = ServeSection()
_FILE = click.Path(dir_okay=False, path_type=Path)

# Documentation addresses of RFC 5737 and RFC 3849: no machine has them, so they take the default
# route.
_ANYWHERE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
_DISCARD = 9  # the port of the discard service; nothing is sent to it


class Endpoint(msgspec.Struct, frozen=True):
    """Where the arena listens, and to whom.

    Attributes:
        open_to_all: whether nobody needs a token.
        hidden: files that no bot may see, such as the key.
        proxies: the trusted ones. With any, a connection from loopback may come from elsewhere.
    """

    host: str
    port: int
    open_to_all: bool
    practice: bool
    tls: Callable[[], ssl.SSLContext] | None
    hidden: Sequence[Path]
    page: bool
    origins: Sequence[str]
    proxies: Sequence[str]
    base_path: str = "/"
    certificate: Path | None = None

    @property
    def is_near(self) -> bool:
        """Whether the arena listens on loopback, so that only this machine can connect."""
        return is_loopback(self.host)

    @property
    def requires_token(self) -> bool:
        """Whether a client must show a token: not with `--open`, nor if all are on this machine."""
        return not (self.open_to_all or (self.is_near and not self.proxies))

    def check(self) -> None:
        """Raise `UsageError` if all who come through a proxy would seem to be on this machine."""
        if self.is_near and self.origins and not (self.proxies or self.open_to_all):
            listens = _listens_on(self.host.strip("[]"))
            if listens is None:  # a name, such as localhost, may have either address
                proxies = "127.0.0.1 --trusted-proxy ::1"
            else:  # a program that connects to 127.0.0.2 has the address 127.0.0.1 all the same
                proxies = "127.0.0.1" if listens.version == 4 else "::1"
            raise UsageError(
                "expected --trusted-proxy beside --origin, "
                f"as all who come through a proxy on this machine seem to be on {self.host}: "
                f"with --trusted-proxy {proxies} everybody needs a token, "
                "--open lets anybody in without one"
            )


def urls_for_others(url: str) -> tuple[str, ...]:
    """The addresses for other machines, best first, of an arena that listens on all interfaces.

    Empty if it listens on one interface: its own address is the one to use then.
    """
    parts = urlsplit(url)
    listens = _listens_on(parts.hostname or "0.0.0.0")
    if listens is None or not listens.is_unspecified:
        return ()
    family = socket.AF_INET if listens.version == 4 else socket.AF_INET6
    hosts = [socket.gethostname(), _outward(family)]
    return tuple(
        f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{parts.port}{parts.path}"
        for host in hosts
        if host and not host.startswith("localhost")
    )


def page_at(url: str) -> str:
    """The address of the page in a browser on this machine, for an arena that listens at `url`."""
    parts = urlsplit(url)
    listens = _listens_on(parts.hostname or "0.0.0.0")
    host = parts.netloc
    if listens is not None and listens.is_unspecified:
        host = f"localhost:{parts.port}"
    return f"{'https' if parts.scheme == 'wss' else 'http'}://{host}{parts.path}"


def _listens_on(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    with suppress(ValueError):
        return ipaddress.ip_address(host)
    return None


def _outward(family: socket.AddressFamily) -> str:
    """The address of this machine on the default route; empty if there is none."""
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((_ANYWHERE[family], _DISCARD))  # UDP: only looks up the route
        address: str = probe.getsockname()[0]
        return address
    return ""


def _tls_of(cert: Path | None, key: Path | None) -> Callable[[], ssl.SSLContext] | None:
    """What gives each connection its TLS context; None without `--tls-cert` and `--tls-key`.

    Raises `UsageError` if one of the files is not given, or is not valid.
    """
    if cert is None and key is None:
        return None
    if cert is None or key is None:
        raise UsageError("expected --tls-cert and --tls-key together, got one of them")
    from arena.server.listener import Certificate

    return Certificate(cert, key).current


def _read_origins(_ctx: click.Context, _param: object, texts: Sequence[str]) -> Sequence[str]:
    Origins().allow(texts)
    return texts


def _read_proxies(_ctx: click.Context, _param: object, texts: Sequence[str]) -> Sequence[str]:
    Proxies().trust(texts)
    return texts


_OPTIONS = (
    click.option("--host", default=_DEFAULTS.host, show_default=True, help="The interface."),
    click.option(
        "--port",
        type=click.IntRange(0, 65535),
        default=_DEFAULTS.port,
        envvar="ARENA_PORT",
        show_default=True,
        show_envvar=True,
        help="The port; 0 takes a free one.",
    ),
    click.option(
        "--practice/--no-practice",
        default=_DEFAULTS.practice,
        help="Refuse an illegal answer with the reason and what is legal, "
        "and put nobody out for it; the clock runs on.",
    ),
    click.option(
        "--open/--no-open",
        "open_to_all",
        default=_DEFAULTS.open,
        help="Let anybody in who can reach this machine; "
        "without it everybody from elsewhere needs a token.",
    ),
    click.option(
        "--page/--no-page",
        default=_DEFAULTS.page,
        show_default=True,
        help="Show browsers at the arena's address what is played, and let people play.",
    ),
    click.option(
        "--origin",
        "origins",
        multiple=True,
        metavar="URL",
        callback=_read_origins,
        help="Where browsers find the arena if a proxy is in front of it, "
        "as https://arena.example.org. May be repeated.",
    ),
    click.option(
        "--trusted-proxy",
        "proxies",
        multiple=True,
        metavar="ADDRESS|NETWORK",
        callback=_read_proxies,
        help="A proxy in front of the arena, whose X-Forwarded-For says who connects; "
        "everybody needs a token then. May be repeated.",
    ),
    click.option(
        "--base-path",
        default=_DEFAULTS.base_path,
        metavar="PATH",
        callback=lambda _ctx, _param, text: read_base_path(text),
        help="Below which path browsers find the arena, as /arena/, "
        "if a proxy in front has other pages too and passes it on unchanged.",
    ),
    click.option(
        "--tls-cert",
        type=_FILE,
        metavar="FILE",
        help="Speak wss:// with this certificate, and those that vouch for it.",
    ),
    click.option("--tls-key", type=_FILE, metavar="FILE", help="The key of that certificate."),
)


def endpoint_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of an `Endpoint`; the command gets them as one argument, `endpoint`."""

    @functools.wraps(command)
    def gathered(*args: Any, tls_cert: Path | None, tls_key: Path | None, **given: Any) -> Any:
        fields = [name for name in Endpoint.__struct_fields__ if name in given]
        chosen = {name: given.pop(name) for name in fields}
        hidden = () if tls_key is None else (tls_key,)
        tls = _tls_of(tls_cert, tls_key)
        endpoint = Endpoint(**chosen, tls=tls, hidden=hidden, certificate=tls_cert)
        return command(*args, endpoint=endpoint, **given)

    decorated: Callable[..., Any] = gathered
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
