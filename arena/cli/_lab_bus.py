"""`--bus` of `arena cross` and `compare`: their matches are played by workers as well."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import click

from protocol.errors import one_line

if TYPE_CHECKING:
    from arena.competitions.arena_host import Host
    from arena.competitions.jobs import Jobs
    from arena.lab.bot_pool import Carrier
    from arena.storage.store import Store
    from arena.workers.bus import BusAddress

__all__ = ["carrier"]


def carrier(bus: BusAddress | None) -> Carrier | None:
    """What carries matches over the bus, if there is one."""
    if bus is None:
        return None
    from arena.cli._bus import bus_jobs, connect_bus

    @contextlib.asynccontextmanager
    async def opened(host: Host, store: Store) -> AsyncIterator[Jobs]:
        async with bus_jobs(bus, store, _tell) as jobs:
            await connect_bus(host, jobs)
            yield jobs

    return opened


def _tell(line: str) -> None:
    click.echo(one_line(line, 1000), err=True)
