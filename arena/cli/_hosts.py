"""Connects an arena to the hosts that run bots for it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from arena.cli._addresses import urls_for_others
from arena.cli._bus_options import BusAddress, needs_nats
from arena.cli._submissions import cache_folder
from arena.competitions.host_pools import HostPools
from arena.competitions.live_arena import LiveArena
from arena.hosts.bus import ARENA_USER, BusDown
from arena.hosts.directory import HostDirectory
from arena.hosts.host_links import HostLinks
from arena.hosts.host_machine import isolation
from arena.hosts.seat_programs import SeatPrograms
from arena.storage.store import Store
from protocol.errors import Unreachable

__all__ = ["connected_hosts", "programs_folder"]


def programs_folder(store: Store) -> Path:
    """Where the programs lie that hosts ask for: beside the submissions."""
    folder = cache_folder(store)
    return folder.with_name(f"{folder.name.removesuffix('-submissions')}-programs")


@contextlib.asynccontextmanager
async def connected_hosts(
    arena: LiveArena, where: BusAddress, store: Store, certificate: Path | None = None
) -> AsyncIterator[None]:
    """Have hosts run the launched bots of an open arena; raises `Unreachable` if the bus is away.

    On the bus the arena is known by the id of its database.
    """
    with needs_nats():
        from arena.hosts.nats_connection import NatsConnection
    service, folder = arena.submissions, programs_folder(store)
    programs = SeatPrograms(arena.supervisor.relaunch_specs, service, folder, arena.hidden)
    # Without submissions there is nobody who hands in.
    on_stderr = (lambda submission, match, text: None) if service is None else service.note_stderr
    pools = HostPools(arena.supervisor, programs, on_stderr)
    links = HostLinks(pools.opened, pools.closed)
    name = await asyncio.to_thread(store.arena_id)
    bus = NatsConnection(where, f"arena {name}", ARENA_USER)
    others = urls_for_others(arena.url)
    try:
        await bus.open()
        directory = pools.directory = HostDirectory(
            bus,
            name,
            arena.limits,
            others[0] if others else arena.url,
            links.ticket,
            links.bots,
            "" if certificate is None else certificate.read_text(),
            isolated=bool(isolation()),
        )
        await directory.open()
    except BusDown as error:
        raise Unreachable(str(error)) from None
    arena.take_hosts(pools, links)
    arena.host_directory = directory
    try:
        yield
    finally:
        links.close()
        pools.close()
        await bus.close()
