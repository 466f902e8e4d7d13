"""The options of commands that join the bus of arenas and hosts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from arena.competitions.elsewhere import BusAddress
from protocol.errors import UsageError

__all__ = [
    "BusAddress",
    "bus_options",
    "check_address",
    "needs_nats",
    "no_bus_options",
    "read_address",
]

_EXPECTED = "expected tls://HOST:PORT or nats://HOST:PORT for the bus, got {url!r}"
_FILE = click.Path(path_type=Path, dir_okay=False)
_EXTRA = ("nats", "nkeys", "nacl", "cryptography")
_NOT_INSTALLED = "nats-py is not installed: pip install 'card-arena[nats]'"
_PLAYED_HERE = (
    "expected no --{option}: hosts run the bots of `arena serve` only; "
    "this command plays all matches on this machine"
)


def bus_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --bus, --bus-key and --bus-ca; the command gets `bus`, a `BusAddress` or None."""
    option = functools.partial(click.option, show_envvar=True)
    file = functools.partial(option, metavar="FILE", type=_FILE)
    key_help = "The key to the bus, as `arena bus init` wrote it."

    @option(
        "--bus",
        metavar="URL",
        envvar="ARENA_BUS",
        help="The bus of arenas and hosts: tls://HOST:PORT, where a nats-server listens.",
    )
    @file("--bus-key", envvar="ARENA_BUS_KEY", help=key_help)
    @file(
        "--bus-ca", envvar="ARENA_BUS_CA", help="The certificate by which the bus is known, ca.pem."
    )
    @functools.wraps(command)
    def with_address(
        *args: Any, bus: str | None, bus_key: Path | None, bus_ca: Path | None, **others: Any
    ) -> Any:
        if bus is None:
            _refuse_without_bus()
        address = None if bus is None else read_address(bus, bus_key, bus_ca)
        return command(*args, bus=address, **others)

    return with_address


def no_bus_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse --bus, --bus-key and --bus-ca, which an earlier version of the command had.

    Using one raises `UsageError` with its replacement. Their environment variables are ignored.
    """
    for option in ("bus", "bus-key", "bus-ca"):
        hidden = click.option(
            f"--{option}", hidden=True, is_eager=True, expose_value=False, callback=_refuse_bus
        )
        command = hidden(command)
    return command


def _refuse_bus(_context: click.Context, option: click.Parameter, value: object) -> None:
    if value is not None:
        raise UsageError(_PLAYED_HERE.format(option=str(option.name).replace("_", "-")))


def _refuse_without_bus() -> None:
    """Raise `UsageError` if --bus-key or --bus-ca is given on the command line without --bus.

    Environment variables are not checked: they may be meant for other commands.
    """
    context = click.get_current_context()
    for option in ("bus_key", "bus_ca"):
        if context.get_parameter_source(option) is ParameterSource.COMMANDLINE:
            raise UsageError(f"expected --bus URL beside --{option.replace('_', '-')}")


def read_address(url: str, key: Path | None, ca: Path | None) -> BusAddress:
    """Return the address of a bus; raises `UsageError` if the URL is not valid for one."""
    try:
        parts = urlsplit(url)
        is_bus = url.startswith(("tls://", "nats://"))
        is_address = is_bus and bool(parts.hostname) and parts.port != 0
    except ValueError:  # its port is not valid
        is_address = False
    if not is_address:
        raise UsageError(_EXPECTED.format(url=url))
    return BusAddress(url, key, ca)


def check_address(address: BusAddress | None) -> BusAddress:
    """Return the address; raises `UsageError` if it is None or nats-py is not installed."""
    if address is None:
        raise UsageError("expected --bus tls://HOST:PORT, or ARENA_BUS with that")
    with needs_nats():
        import nats  # noqa: F401
    return address


@contextmanager
def needs_nats() -> Iterator[None]:
    """Turn a failed import of nats-py into a one-line error that says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        raise UsageError(_NOT_INSTALLED) from None
