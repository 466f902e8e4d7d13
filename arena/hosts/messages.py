"""What arenas and hosts tell each other: on the bus in msgpack, on a link in JSON and in pieces.

On the bus it is said who is there, and asked which host takes the bots of a match. All else is said
on the link of one arena and one host: a WebSocket at the arena's port, opened by the host. A text
frame is a message. A binary frame is a piece of a bot's bytes, with a header: to the host the
seat's number alone, to the arena a `BotReading` of the bot at the moment at which the bytes came.
Both ends must be of one version (`HostKind`).
"""

from __future__ import annotations

import struct
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from arena.games.verdict import Finding
from arena.sandbox.bundle import Bundle
from protocol.messages import Limits

__all__ = [
    "MOST_PIECE",
    "AboutBot",
    "BotEnded",
    "BotLink",
    "BotReading",
    "BotStarted",
    "BotStderr",
    "BotsPlaced",
    "Bundle",
    "DrainHost",
    "EndBotInput",
    "FromArena",
    "FromHost",
    "HostKind",
    "HostReport",
    "HouseBot",
    "PlaceBots",
    "ProgramPart",
    "RestBot",
    "RetireBot",
    "SeatProgram",
    "Source",
    "StartBot",
    "StartRefused",
    "StopBot",
    "WantedPart",
    "WholeBotOutput",
    "decode",
    "encode",
    "from_arena",
    "from_host",
    "input_piece",
    "on_link",
    "read_input",
    "read_output",
]

MOST_PIECE = 256 << 10
"""Bytes of a bot in one frame, at most."""

_INPUT = struct.Struct("<I?")
_OUTPUT = struct.Struct("<IQddddd")
T = TypeVar("T")


# --- programs ---


class HouseBot(msgspec.Struct, frozen=True, tag="house"):
    """A house bot, which every host has, as versions are equal."""

    bot: str

    @property
    def key(self) -> str:
        return f"house:{self.bot}"


class Source(msgspec.Struct, frozen=True, tag="source"):
    """A program that was handed in: its canonical tar, which the host builds itself."""

    key: str  # SHA-256 of the tar
    size: int
    language: str  # as in its manifest


SeatProgram: TypeAlias = HouseBot | Source | Bundle


# --- on the bus ---


class HostKind(msgspec.Struct, frozen=True, kw_only=True):
    """What can be played on a host: tried, not guessed."""

    arena_version: str
    system: str  # `linux`
    machine: str  # `x86_64`
    isolation: str  # how bots are isolated, in words; empty if they are not
    languages: tuple[str, ...]  # of programs that are handed in, by their names; sorted
    commands: tuple[str, ...]  # programs on PATH that were started with success; sorted
    games: tuple[str, ...]  # names; with a package `leduc 1.0`; sorted


class HostReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a host says of itself twice a second, to all arenas."""

    host: str
    session: str  # a new one at each start
    kind: HostKind
    cores: int
    memory_mib: int
    bots: int  # processes that are there, of all arenas
    room: int  # for how many more bots there is memory, without ending idle ones
    is_draining: bool = False
    lag_ms: float = 0.0  # the worst of its event loop in the last seconds
    last_error: str = ""


class PlaceBots(msgspec.Struct, frozen=True, kw_only=True):
    """An arena asks a host to take the bots of a match: all of them, or none.

    Attributes:
        arena: the name of the arena on the bus.
        bots: how many.
        limits: of every bot that the arena launches; only those of memory count here.
        url: where the host opens its link, if it has none to this arena.
        ticket: with it the arena knows the host there.
        ca: certificates that the arena's own is checked by, besides the host's; empty for none.
    """

    arena: str
    bots: int
    limits: Limits
    url: str
    ticket: str
    ca: str = ""


class BotsPlaced(msgspec.Struct, frozen=True):
    """The host keeps room for them, for some seconds; without one it says why not."""

    host: str
    why: str = ""


class DrainHost(msgspec.Struct, frozen=True):
    """An operator has a host take no more bots, or take them again."""

    is_draining: bool


# --- on the link, to the host ---


class _OfSeat(msgspec.Struct, frozen=True):
    """A message about one bot, by its seat: a number that the arena has not used before."""

    seat: int


class StartBot(_OfSeat, frozen=True, kw_only=True, tag="start"):
    """Start a bot in a seat."""

    name: str  # unique among those of this arena; the bot is told its public part
    game: str
    program: SeatProgram
    limits: Limits
    stderr_bytes: int


class ProgramPart(msgspec.Struct, frozen=True, tag="part"):
    """Bytes of a program that the host has asked for; empty with a reason if there are none."""

    key: str
    offset: int
    data: bytes = b""
    why: str = ""


class EndBotInput(_OfSeat, frozen=True, tag="end_input"):
    """Nothing more is written to a bot."""


class RestBot(_OfSeat, frozen=True, tag="rest"):
    """Read nothing of a bot until it `goes_on`, as it has said too much."""

    goes_on: bool


class StopBot(_OfSeat, frozen=True, tag="stop"):
    """End a bot and all that it has started; `BotEnded` follows."""


FromArena: TypeAlias = StartBot | ProgramPart | EndBotInput | RestBot | StopBot


# --- on the link, to the arena ---


class WantedPart(msgspec.Struct, frozen=True, tag="program"):
    """The host needs a part of a program."""

    key: str
    offset: int  # bytes from the start of the tar


class BotStarted(_OfSeat, frozen=True, kw_only=True, tag="started"):
    """A bot runs. `enforced` says which limits it is held to, and by what, for people."""

    enforced: str
    is_metered: bool
    now: float  # on the host's clock


class StartRefused(_OfSeat, frozen=True, tag="failed"):
    """A bot cannot be started on this host, which is no offence."""

    why: str


class BotStderr(_OfSeat, frozen=True, tag="stderr"):
    """What a bot has just written to stderr."""

    data: bytes


class WholeBotOutput(_OfSeat, frozen=True, tag="whole_output"):
    """A bot has closed its output."""


class BotEnded(_OfSeat, frozen=True, tag="ended"):
    """Nothing is left of a bot; `finding` is its offence if it was not stopped."""

    finding: Finding | None = None


class RetireBot(_OfSeat, frozen=True, tag="retire"):
    """The host needs the room of a bot if that is idle: the arena stops it, or ignores this."""


AboutBot: TypeAlias = BotStarted | StartRefused | BotStderr | WholeBotOutput | BotEnded | RetireBot
"""What a host says of one bot."""

FromHost: TypeAlias = WantedPart | AboutBot


# --- how it is sent ---

encode = msgspec.msgpack.encode
"""One message in msgpack, for the bus."""


def decode(data: bytes, kind: type[T]) -> T:
    """Read a message of the bus; raises `msgspec.DecodeError` if it is not of that kind."""
    return msgspec.msgpack.decode(data, type=kind)


on_link = msgspec.json.Encoder().encode
"""One message in JSON, for the link."""

from_arena = msgspec.json.Decoder(FromArena).decode
"""Read a message at the host; raises `msgspec.DecodeError` if it is none."""

from_host = msgspec.json.Decoder(FromHost).decode
"""Read a message at the arena; raises `msgspec.DecodeError` if it is none."""


class BotLink(Protocol):
    """One end of a link; what is sent when it is lost goes nowhere."""

    def tell(self, message: FromArena | FromHost) -> None:
        """Send a message."""

    def carry(self, piece: bytes) -> None:
        """Send a piece with its header."""

    def cut(self) -> None:
        """End it at once."""


class BotReading(NamedTuple):
    """What a host reads of a bot at one moment; times are in seconds of the host's own clock.

    A host that stood still charges nobody for that: `lag_s` is for how long its event loop has done
    so in all, as far as it was a tenth of a second or more at once.
    """

    seat: int
    handed: int  # bytes of input that the bot's pipe has taken
    at: float
    handed_at: float  # when it took the latest of them
    cpu_ms: float
    waited_ms: float  # ready to run, and without a core; negative where the system does not say
    lag_s: float

    def piece(self, data: bytes = b"") -> bytes:
        """The reading before some bytes that the bot has just written."""
        return _OUTPUT.pack(*self) + data


def input_piece(seat: int, data: bytes, *, asks: bool) -> bytes:
    """Bytes for a bot; `asks` says that it has to answer, and so waits for a core."""
    return _INPUT.pack(seat, asks) + data


def read_input(piece: bytes) -> tuple[int, bool, bytes]:
    """The seat, whether it is asked, and the bytes; raises `struct.error` if it is no piece."""
    seat, asks = _INPUT.unpack_from(piece)
    return seat, asks, piece[_INPUT.size :]


def read_output(piece: bytes) -> tuple[BotReading, bytes]:
    """The reading and the bytes; raises `struct.error` if it is no piece."""
    return BotReading(*_OUTPUT.unpack_from(piece)), piece[_OUTPUT.size :]
