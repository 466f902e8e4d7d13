"""What competitions know of bots on other machines, which `arena.hosts` starts there.

An arena plays without that package; nothing here imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from protocol.errors import ArenaError

if TYPE_CHECKING:  # commands that only name a bus load none of it
    from arena.competitions.process_pool import ProcessPool, SeatBot
    from arena.referee.clock import LoopLag
    from arena.sandbox.process import StderrTail
    from arena.server.stdio import Pipes
    from protocol.instructions import HostView, LostBot

__all__ = [
    "AnyLauncher",
    "BusAddress",
    "HostLost",
    "HostOverview",
    "HostedBot",
    "Hosts",
    "secret_files",
]

_KEYS = ("*.nk", "*-key.pem")  # as `arena bus init` names them


class BusAddress(msgspec.Struct, frozen=True):
    """Where a bus is: `tls://HOST:PORT`, the key file of a user, and the CA of the server."""

    url: str
    key: Path | None = None
    ca: Path | None = None


def secret_files(address: BusAddress | None) -> tuple[Path, ...]:
    """What no bot may see: the files of an address, and all keys that lie beside its own."""
    if address is None:
        return ()
    files = [address.key, address.ca]
    if address.key is not None:
        files += [file for name in _KEYS for file in sorted(address.key.parent.glob(name))]
    return tuple(file.absolute() for file in dict.fromkeys(files) if file is not None)


class HostLost(ArenaError):
    """A host cannot be reached any more, or cannot start a bot: no bot is to blame."""


class AnyLauncher(Protocol):
    """The launcher of this machine, or what stands for that of a host."""

    async def stop(self, name: str) -> None:
        """End a bot; its end is not reported. One that is not there is no error."""

    def tail(self, name: str) -> str:
        """The end of what a bot wrote to stderr; empty once it has ended."""


class HostedBot(Protocol):
    """A bot on a host, where a `LaunchedBot` runs here; the host has the gate to its cores.

    Attributes:
        on_handed: called when the host has handed a question over, with the time of that on this
            loop's clock, and with `lag.total_s` at that moment.
    """

    enforced: str
    is_metered: bool
    stderr: StderrTail
    on_handed: Callable[[float, float], None]

    @property
    def pipes(self) -> Pipes: ...

    @property
    def lag(self) -> LoopLag: ...

    def clock(self, now: float) -> float | None: ...

    def cpu_ms(self) -> float: ...

    def waited_ms(self) -> float | None: ...

    def enter(self, who: object, begin: Callable[[], None], used_ms: object = None) -> None: ...

    def leave(self, who: object) -> None: ...


class HostOverview(Protocol):
    """The hosts that an arena hears of.

    Attributes:
        lost: how often a process of a bot was on a host when that was lost.
    """

    lost: int

    def views(self) -> tuple[HostView, ...]:
        """All hosts that have reported since the arena began, by name."""

    def lost_bots(self) -> tuple[LostBot, ...]:
        """The bots that were lost with a host; first who was more often than the others are."""

    async def drain(self, host: str, is_draining: bool) -> None:
        """Have a host take no more bots of any arena, or take them again.

        Raises UsageError if no host of that name reports, or it cannot be told.
        """


class Hosts(Protocol):
    """Room for matches on hosts.

    Attributes:
        on_room: called when a match may have room that had none.
    """

    on_room: Callable[[], None]

    @property
    def pools(self) -> Sequence[ProcessPool]:
        """Those where matches may begin."""

    @property
    def at_once(self) -> int:
        """How many matches of this arena are played at once on the hosts that are there."""

    def is_portable(self, name: str, game: str) -> bool:
        """Whether hosts can start a bot that was launched here, as far as is known by now."""

    def ask(self, bots: Sequence[SeatBot]) -> None:
        """Ask hosts for room for a match of these bots."""
