"""What competitions know of bots on other machines; `arena.hosts` starts these bots.

An arena works without that package; nothing here imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from protocol.errors import ArenaError

if TYPE_CHECKING:  # commands that only name a bus do not load these
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
    """The address of a bus: `tls://HOST:PORT`, the key file of a user, and the server's CA."""

    url: str
    key: Path | None = None
    ca: Path | None = None


def secret_files(address: BusAddress | None) -> tuple[Path, ...]:
    """Return the files that no bot may see: those of an address, and all keys beside its own."""
    if address is None:
        return ()
    files = [address.key, address.ca]
    if address.key is not None:
        files += [file for name in _KEYS for file in sorted(address.key.parent.glob(name))]
    return tuple(file.absolute() for file in dict.fromkeys(files) if file is not None)


class HostLost(ArenaError):
    """A host cannot be reached any more, or cannot start a bot; no bot is to blame."""


class AnyLauncher(Protocol):
    """The launcher of this machine, or the one that represents a host."""

    async def stop(self, name: str) -> None:
        """End a bot without a report of its end; ignored if there is none of that name."""

    def tail(self, name: str) -> str:
        """Return the end of a bot's stderr; empty once the bot has ended."""


class HostedBot(Protocol):
    """A bot on a host, in place of a `LaunchedBot` here; the host has the gate to its cores.

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
    """The hosts that an arena knows.

    Attributes:
        lost: how often a bot's process was lost with its host.
    """

    lost: int

    def views(self) -> tuple[HostView, ...]:
        """Return all hosts that have reported since the arena began, by name."""

    def lost_bots(self) -> tuple[LostBot, ...]:
        """Return the bots that were lost with a host, those with the most excess losses first."""

    async def drain(self, host: str, is_draining: bool) -> None:
        """Tell a host to take no more bots of any arena, or to take them again.

        Raises UsageError if no host of that name reports, or it cannot be reached or does not obey.
        """


class Hosts(Protocol):
    """Room for matches on hosts.

    Attributes:
        on_room: called when there may be room for a match that had none.
    """

    on_room: Callable[[], None]

    @property
    def pools(self) -> Sequence[ProcessPool]:
        """The pools where matches may begin."""

    @property
    def at_once(self) -> int:
        """How many matches of this arena can be played at once on the hosts that are there."""

    def is_portable(self, name: str, game: str) -> bool:
        """Return whether hosts can start a bot that was launched here, as far as is known."""

    def ask(self, bots: Sequence[SeatBot]) -> None:
        """Ask hosts for room for a match of these bots."""
