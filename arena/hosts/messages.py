"""The messages of arenas and hosts: on the bus in msgpack, on a link in JSON and in pieces.

On the bus, hosts report themselves, and arenas ask them to take the bots of a match. Everything
else is on the link of one arena and one host: a WebSocket at the arena's port, opened by the host.
A text frame is a message. A binary frame is a piece of a bot's bytes with a header: to the host,
the seat and whether the bot is asked; to the arena, a `BotReading` from when the bytes came. Both
ends must have the same version (`HostKind`).
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
"""Most bytes of a bot in one frame."""

_INPUT = struct.Struct("<I?")
_OUTPUT = struct.Struct("<IQddddd")
T = TypeVar("T")


# --- programs ---


class HouseBot(msgspec.Struct, frozen=True, tag="house"):
    """A house bot, which every host of the same version has."""

    bot: str

    @property
    def key(self) -> str:
        return f"house:{self.bot}"


class Source(msgspec.Struct, frozen=True, tag="source"):
    """A submitted program: its canonical tar, which the host builds itself."""

    key: str  # SHA-256 of the tar
    size: int
    language: str  # as in its manifest


SeatProgram: TypeAlias = HouseBot | Source | Bundle


# --- on the bus ---


class HostKind(msgspec.Struct, frozen=True, kw_only=True):
    """What a host can play, found out by trying."""

    arena_version: str
    system: str  # `linux`
    machine: str  # `x86_64`
    isolation: str  # how bots are isolated, in words; empty if they are not
    languages: tuple[str, ...]  # of submissions, by name; sorted
    commands: tuple[str, ...]  # programs on PATH that start successfully; sorted
    games: tuple[str, ...]  # names; from a package as `leduc 1.0`; sorted


class HostReport(msgspec.Struct, frozen=True, kw_only=True):
    """A host's report about itself, sent twice a second to all arenas."""

    host: str
    session: str  # new at each start
    kind: HostKind
    cores: int
    memory_mib: int
    bots: int  # processes, of all arenas
    room: int  # how many more bots fit into memory without ending idle ones
    is_draining: bool = False
    lag_ms: float = 0.0  # the longest delay of its event loop in the last seconds
    last_error: str = ""


class PlaceBots(msgspec.Struct, frozen=True, kw_only=True):
    """A request of an arena to a host to take all bots of a match, or none.

    Attributes:
        arena: the name of the arena on the bus.
        bots: how many.
        limits: those of every bot that the arena launches; only the memory limits matter here.
        url: where the host opens its link, if it has none to this arena.
        ticket: proves the host's identity there.
        ca: certificates to check the arena's by, besides the host's own; empty for none.
    """

    arena: str
    bots: int
    limits: Limits
    url: str
    ticket: str
    ca: str = ""


class BotsPlaced(msgspec.Struct, frozen=True):
    """The answer: the host reserves room for some seconds, or says `why` it does not."""

    host: str
    why: str = ""


class DrainHost(msgspec.Struct, frozen=True):
    """An operator's order to take no more bots, or to take them again."""

    is_draining: bool


# --- on the link, to the host ---


class _OfSeat(msgspec.Struct, frozen=True):
    """A message about one bot, by its seat: a number that the arena uses only once."""

    seat: int


class StartBot(_OfSeat, frozen=True, kw_only=True, tag="start"):
    """Start a bot in a seat."""

    name: str  # unique in this arena; the bot is told its public part
    game: str
    program: SeatProgram
    limits: Limits
    stderr_bytes: int


class ProgramPart(msgspec.Struct, frozen=True, tag="part"):
    """A requested part of a program; empty, with the reason `why`, if there is none."""

    key: str
    offset: int
    data: bytes = b""
    why: str = ""


class EndBotInput(_OfSeat, frozen=True, tag="end_input"):
    """The input of a bot has ended."""


class RestBot(_OfSeat, frozen=True, tag="rest"):
    """Stop reading a bot that writes too much, or read again if it `goes_on`."""

    goes_on: bool


class StopBot(_OfSeat, frozen=True, tag="stop"):
    """End a bot and all processes that it has started; `BotEnded` follows."""


FromArena: TypeAlias = StartBot | ProgramPart | EndBotInput | RestBot | StopBot


# --- on the link, to the arena ---


class WantedPart(msgspec.Struct, frozen=True, tag="program"):
    """The host needs a part of a program."""

    key: str
    offset: int  # bytes from the start of the tar


class BotStarted(_OfSeat, frozen=True, kw_only=True, tag="started"):
    """A bot runs. `enforced` tells people which limits it is held to, and by what."""

    enforced: str
    is_metered: bool
    now: float  # on the host's clock


class StartRefused(_OfSeat, frozen=True, tag="failed"):
    """A bot cannot be started on this host; that is no offence."""

    why: str


class BotStderr(_OfSeat, frozen=True, tag="stderr"):
    """New output of a bot on stderr."""

    data: bytes


class WholeBotOutput(_OfSeat, frozen=True, tag="whole_output"):
    """A bot has closed its output."""


class BotEnded(_OfSeat, frozen=True, tag="ended"):
    """A bot has ended completely; `finding` is its offence if it was not stopped."""

    finding: Finding | None = None


class RetireBot(_OfSeat, frozen=True, tag="retire"):
    """The host needs a bot's room: the arena stops the bot if it is idle, or ignores this."""


AboutBot: TypeAlias = BotStarted | StartRefused | BotStderr | WholeBotOutput | BotEnded | RetireBot
"""What a host reports about one bot."""

FromHost: TypeAlias = WantedPart | AboutBot


# --- encoding ---

encode = msgspec.msgpack.encode
"""Encode a message in msgpack, for the bus."""


def decode(data: bytes, kind: type[T]) -> T:
    """Decode a message from the bus; raises `msgspec.DecodeError` if it is of another kind."""
    return msgspec.msgpack.decode(data, type=kind)


on_link = msgspec.json.Encoder().encode
"""Encode a message in JSON, for the link."""

from_arena = msgspec.json.Decoder(FromArena).decode
"""Decode a message at the host; raises `msgspec.DecodeError` if it is none."""

from_host = msgspec.json.Decoder(FromHost).decode
"""Decode a message at the arena; raises `msgspec.DecodeError` if it is none."""


class BotLink(Protocol):
    """One end of a link; messages sent after it is lost are dropped."""

    def tell(self, message: FromArena | FromHost) -> None:
        """Send a message."""

    def carry(self, piece: bytes) -> None:
        """Send a piece with its header."""

    def cut(self) -> None:
        """Cut the link at once."""


class BotReading(NamedTuple):
    """A host's measurements of a bot at one moment, in seconds of the host's own clock.

    Time in which the host stood still is charged to nobody: `lag_s` is the total delay of its event
    loop, counting delays of a tenth of a second or more.
    """

    seat: int
    handed: int  # bytes of input that the bot's pipe has taken
    at: float
    handed_at: float  # when the pipe took the last of them
    cpu_ms: float
    waited_ms: float  # ready to run but without a core; negative if the system does not tell
    lag_s: float

    def piece(self, data: bytes = b"") -> bytes:
        """Return a frame: this reading, then bytes that the bot has just written."""
        return _OUTPUT.pack(*self) + data


def input_piece(seat: int, data: bytes, *, asks: bool) -> bytes:
    """Return a frame with bytes for a bot; if it `asks` for an answer, the bot waits for a core."""
    return _INPUT.pack(seat, asks) + data


def read_input(piece: bytes) -> tuple[int, bool, bytes]:
    """Return seat, whether it is asked, and bytes; raises `struct.error` if it is no piece."""
    seat, asks = _INPUT.unpack_from(piece)
    return seat, asks, piece[_INPUT.size :]


def read_output(piece: bytes) -> tuple[BotReading, bytes]:
    """Return the reading and the bytes; raises `struct.error` if it is no piece."""
    return BotReading(*_OUTPUT.unpack_from(piece)), piece[_OUTPUT.size :]
