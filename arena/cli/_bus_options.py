"""The options by which commands find the bus between arenas and workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from protocol.errors import UsageError

if TYPE_CHECKING:
    from arena.workers.nats_connection import BusAddress

__all__ = ["address", "bus_options", "needs_nats"]

Command = TypeVar("Command", bound=Callable[..., Any])


def bus_options(command: Command) -> Command:
    """Add --bus, --bus-key and --bus-ca: parameters `bus`, `bus_key` and `bus_ca`, or None."""
    options = (
        ("--bus", "URL", "ARENA_BUS", None, "The bus: tls://HOST:PORT of a nats-server."),
        (
            "--bus-key",
            "FILE",
            "ARENA_BUS_KEY",
            Path,
            "The key to it, as `arena bus init` wrote it.",
        ),
        ("--bus-ca", "FILE", "ARENA_BUS_CA", Path, "The certificates by which it is known."),
    )
    for name, metavar, variable, kind, text in reversed(options):
        command = click.option(
            name,
            metavar=metavar,
            envvar=variable,
            show_envvar=True,
            type=None if kind is None else click.Path(path_type=kind, dir_okay=False),
            help=text,
        )(command)
    return command


def address(bus: str, key: Path | None, ca: Path | None) -> BusAddress:
    """The address of the bus; raises `UsageError` for another scheme, or without nats-py."""
    if not bus.startswith(("tls://", "nats://")):
        raise UsageError(f"expected tls://HOST:PORT or nats://HOST:PORT for the bus, got {bus!r}")
    with needs_nats():
        from arena.workers.nats_connection import BusAddress
    return BusAddress(bus, key, ca)


@contextmanager
def needs_nats() -> Iterator[None]:
    """Say in one line what is to be installed if an import needs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("nats", "nkeys", "nacl", "cryptography"):
            raise
        raise UsageError("nats-py is not installed: pip install 'card-arena[nats]'") from None
