"""`--bus` of `arena cross` and `compare`: their matches are played by workers as well."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from arena.cli._bus_options import address
from protocol.errors import one_line

if TYPE_CHECKING:
    from arena.competitions.arena_host import Host
    from arena.competitions.jobs import Jobs
    from arena.lab.bot_pool import Carrier
    from arena.storage.store import Store

__all__ = ["BusAsked", "carrier"]


class BusAsked(msgspec.Struct, frozen=True):
    """What the options of `bus_options` say; without an address all is played here."""

    url: str | None = None
    key: Path | None = None
    ca: Path | None = None


def carrier(bus: BusAsked) -> Carrier | None:
    """What carries matches over the bus, if there is one.

    Raises `UsageError` for an address that cannot be one, or without nats-py.
    """
    if bus.url is None:
        return None
    where = address(bus.url, bus.key, bus.ca)
    from arena.cli._bus import bus_jobs, connect_bus

    @contextlib.asynccontextmanager
    async def opened(host: Host, store: Store) -> AsyncIterator[Jobs]:
        async with bus_jobs(where, store, _tell) as jobs:
            await connect_bus(host, jobs)
            yield jobs

    return opened


def _tell(line: str) -> None:
    click.echo(one_line(line, 1000), err=True)
