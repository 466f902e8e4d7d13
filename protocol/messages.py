"""The messages of a session: what travels between a bot and the arena around the game's own questions and news.

One struct per message, `type` on the wire; a union per direction. The arena refuses fields that it does not know; bots ignore
them. Strings that a bot sends have a limit here, in the type, so that nothing longer gets past the codec.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, TypeAlias

from msgspec import Meta, Struct, field

from protocol.errors import UsageError
from protocol.vocabulary import News, Question

__all__ = [
    "CLOSE_CRASHED",
    "CLOSE_DONE",
    "CLOSE_PROTOCOL",
    "CLOSE_REFUSED",
    "CLOSE_REPLACED",
    "CLOSE_RESTART",
    "VERSION",
    "Action",
    "Answer",
    "ArenaMessage",
    "Ask",
    "BotMessage",
    "Done",
    "Ending",
    "Goodbye",
    "Hello",
    "Instruct",
    "Limits",
    "Match",
    "Mechanism",
    "Over",
    "Past",
    "Progress",
    "Ready",
    "Refused",
    "Reveal",
    "Termination",
    "Verdict",
    "Welcome",
]

VERSION = 1

# How connections are closed; a bot need come back after one of them only, `CLOSE_RESTART`.
CLOSE_DONE = 1000  # the arena has closed, or the bot has said goodbye
CLOSE_PROTOCOL = 1002  # the bot broke the protocol; `refused` has said how
CLOSE_CRASHED = 1011  # the program that closes has failed; the reason says how
CLOSE_RESTART = 1012  # the arena stops in the middle of a competition, and will go on
CLOSE_REPLACED = 4000  # the session goes on over another connection
CLOSE_REFUSED = 4001  # `hello` was not accepted; `refused` has said why

Name = Annotated[str, Meta(min_length=1, max_length=64)]
Id = Annotated[str, Meta(min_length=1, max_length=64)]
Nonce = Annotated[str, Meta(min_length=1, max_length=64)]
Note = Annotated[str, Meta(max_length=1024)]

_Plain: TypeAlias = bool | int | float | str | None
_Value1: TypeAlias = _Plain | list[_Plain] | dict[str, _Plain]
_Value2: TypeAlias = _Plain | list[_Value1] | dict[str, _Value1]
_Value3: TypeAlias = _Plain | list[_Value2] | dict[str, _Value2]
Value: TypeAlias = _Plain | list[_Value3] | dict[str, _Value3]
"""What an answer may be made of: what JSON has, one level deeper than any legal answer. Not `Any`: msgpack's maps may have
arrays as keys, and a frame of those whose hashes collide would hold up the arena for a minute."""


class Ending(StrEnum):
    """Why a match stopped: `completed`, `void`, or the one word of an offence (J2).

    `removed` is the instructor's: that bot is out like an offender.
    """

    COMPLETED = "completed"
    VOID = "void"
    ILLEGAL = "illegal"
    MALFORMED = "malformed"
    TIMEOUT = "timeout"
    OVERSIZE = "oversize"
    OVERFLOW = "overflow"
    MEMORY = "memory"
    PROCESSES = "processes"
    CPU = "cpu"
    CRASH = "crash"
    ABSENT = "absent"
    DISCONNECT = "disconnect"
    REMOVED = "removed"


class Termination(Struct, frozen=True):
    """Why a match stopped, whose doing it was (a seat from 0, or None) and a sentence for people."""

    kind: Ending
    seat: int | None = None
    text: str = ""

    @property
    def is_offence(self) -> bool:
        """Whether a seat is to blame, and so out (J3)."""
        return self.kind not in (Ending.COMPLETED, Ending.VOID)


_DAY_MS = 86_400_000  # nobody waits longer; and it travels in every encoding


class Limits(Struct, frozen=True, kw_only=True):
    """What a bot may take; the one place where the defaults stand (design §5).

    Attributes:
        decision_ms: a decision that takes no longer costs nothing.
        bank_ms: per match and seat, what decisions may take beyond that, in all.
        hard_ms: no single decision may take longer.
        wall_ms: the same by the clock on the wall, for a bot that the arena launched: its other times are CPU time.
        start_ms: from `match` to `ready`.
        grace_ms: a connection may be lost for so long; the clock runs on meanwhile.
        hello_ms: from the connection to `hello`.
        frame_bytes: the largest frame a bot may send.
        buffer_bytes: how much may wait for a reader that is slow before it is an offender.
        unanswered: how many messages in a row may come to nothing, such as answers that are repeated, before they are a flood.
        tables: the most matches at once over one connection.
        memory_mib: what all processes of a bot that the arena launched may hold together.
        processes: how many processes such a bot may have.
        strangers: how many connections from one address may be open that have not said `hello` yet.
        per_token: how many connections may be open with one token.
        per_address: how many connections without a token may be open from one address.
    """

    decision_ms: Annotated[int, Meta(ge=1, le=_DAY_MS)] = 1_000
    bank_ms: Annotated[int, Meta(ge=0, le=_DAY_MS)] = 10_000
    hard_ms: Annotated[int, Meta(ge=1, le=_DAY_MS)] = 5_000
    wall_ms: Annotated[int, Meta(ge=1, le=_DAY_MS)] = 30_000
    start_ms: Annotated[int, Meta(ge=1, le=_DAY_MS)] = 10_000
    grace_ms: Annotated[int, Meta(ge=0, le=_DAY_MS)] = 10_000
    hello_ms: Annotated[int, Meta(ge=1, le=_DAY_MS)] = 10_000
    frame_bytes: Annotated[int, Meta(ge=1024, le=1 << 30)] = 1 << 20
    buffer_bytes: Annotated[int, Meta(ge=1024, le=1 << 30)] = 8 << 20
    unanswered: Annotated[int, Meta(ge=1, le=1 << 30)] = 10_000
    tables: Annotated[int, Meta(ge=1, le=4096)] = 512
    memory_mib: Annotated[int, Meta(ge=16, le=1 << 30)] = 512
    processes: Annotated[int, Meta(ge=1, le=1 << 30)] = 32
    strangers: Annotated[int, Meta(ge=1, le=1 << 30)] = 512
    per_token: Annotated[int, Meta(ge=1, le=1 << 30)] = 8
    per_address: Annotated[int, Meta(ge=1, le=1 << 30)] = 1_024


class Mechanism(StrEnum):
    """What found an offence out; `WALL_CAP` is for a launched bot that neither computes nor answers."""

    RULES = "rules"
    WIRE = "wire"
    WALL_CLOCK = "wall clock"
    WALL_CAP = "wall cap"
    CPU_CLOCK = "CPU clock"
    SAMPLED = "sampled"
    CGROUP = "cgroup"
    EXIT = "exit"
    SESSION = "session"
    INSTRUCTOR = "instructor"


class Action(StrEnum):
    """What an instructor can have done."""

    STATUS = "status"
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    VOID = "void"
    REMOVE = "remove"


class Verdict(Struct, frozen=True, kw_only=True):
    """One elimination and its evidence (J4); no field depends on anything outside this struct.

    Attributes:
        kind: the word of J2.
        match: the match's id.
        game: its game.
        bot: the offender's name.
        seat: where it sat, from 0.
        text: what it did, with figures, in one line.
        advice: what its author can do about it, in one line.
        mechanism: what found out.
        asked: the question as JSON, or None if nothing was asked.
        legal: what would have been legal, as text.
        got: what came back, cut to a line, or None if nothing did.
        taken_ms: what was charged for the decision, before credit.
        waited_ms: how long the question had been waiting by the clock on the wall.
        credit_ms: what was taken off, for the link and for the arena's own delays.
        min_rtt_ms: the kernel's own measure of the link's round trip, to compare; None where it has none.
        bank_ms: what was left in the seat's bank.
        exit_status: of its process, negative for a signal; None if it runs, or is not ours.
        stderr: the end of what its process wrote there.
        enforced: which limits this bot was held to, and by what.
        limits: all limits in force.
    """

    kind: Ending
    match: str
    game: str
    bot: str
    seat: int
    text: str
    advice: str = ""
    mechanism: Mechanism = Mechanism.RULES
    asked: str | None = None
    legal: str | None = None
    got: str | None = None
    taken_ms: float | None = None
    waited_ms: float | None = None
    credit_ms: float | None = None
    min_rtt_ms: float | None = None
    bank_ms: int
    exit_status: int | None = None
    stderr: str | None = None
    enforced: str = "time"
    limits: Limits

    @property
    def headline(self) -> str:
        """What happened, in the line that people are shown."""
        if self.kind is Ending.CRASH:
            return self.text
        return f"eliminated: {self.text}"


class Hello(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="hello"
):
    """A bot's first message: who it is and what it can do.

    `tables` is how many matches it will play at once; `batch` says that it reads frames that hold an array of messages;
    `resume` is the session of an earlier `welcome`, to go on after a lost connection; with `from: n` all questions after the
    first n of every match come again as `past`, for a program that has lost its memory.
    """

    protocol: int
    name: Name
    games: Annotated[tuple[Id, ...], Meta(min_length=1, max_length=64)]
    token: Annotated[str, Meta(max_length=256)] | None = None
    tables: Annotated[int, Meta(ge=1)] = 1
    batch: bool = False
    resume: Annotated[str, Meta(max_length=64)] | None = None
    from_: Annotated[int, Meta(ge=0)] | None = field(default=None, name="from")
    client: Annotated[str, Meta(max_length=256)] | None = None

    def __post_init__(self) -> None:
        """Refuse what would disturb a terminal or pass for another's name: controls, hidden and turned letters.

        Raises:
            UsageError: the name, or the client's, has some; the codec reports it as `Malformed`.
        """
        for text in (self.name, self.client or ""):
            if not text.isprintable() or text != text.strip():
                raise UsageError(
                    f"expected a name of printable letters, not framed by spaces, got {text!r}"
                )


class Ready(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="ready"
):
    """The seat is set up; its nonce goes into the cards (J6)."""

    match: Id
    nonce: Nonce


class Answer(
    Struct,
    frozen=True,
    gc=False,
    forbid_unknown_fields=True,
    tag_field="type",
    tag="answer",
):
    """A decision. `value` may be anything within `Value`: the question decides whether it is legal."""

    match: Id
    ask: Id
    value: Value
    note: Note | None = None


class Goodbye(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="goodbye"
):
    """The bot leaves: it wants no more matches."""


class Instruct(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="instruct"
):
    """An instructor's word, in the place of `hello`; answered with `done` or `refused`.

    `competition` is its id, or the name of its run: without one `pause`, `resume` and `stop` are about all that go on, and
    `remove` about all that the bot is in. `void` takes a `match`, `remove` a `bot`.
    """

    protocol: int
    token: Annotated[str, Meta(max_length=256)]
    action: Action
    competition: Id | None = None
    match: Id | None = None
    bot: Name | None = None


class Progress(Struct, frozen=True):
    """How far a competition is; `left_s` is an estimate, None while there is nothing to base one on."""

    competition: str
    run: str
    game: str
    form: str
    state: str
    settled: int
    scheduled: int
    left_s: float | None
    waits_for: tuple[str, ...] = ()


class Done(Struct, frozen=True, tag_field="type", tag="done"):
    """What came of an `instruct`: a sentence, and how far the competitions are then."""

    text: str
    competitions: tuple[Progress, ...] = ()


class Welcome(Struct, frozen=True, tag_field="type", tag="welcome"):
    """The answer to `hello`; `session` is what `resume` takes, to be kept secret.

    `bot` is what the bot is called here: a token may say otherwise than `hello` did. In `practice` an illegal answer is refused,
    and can be given again.
    """

    protocol: int
    bot: str
    session: str
    limits: Limits
    practice: bool = False


class Match(Struct, frozen=True, tag_field="type", tag="match"):
    """A chair at a table: answer with `ready`.

    `match` names this chair in this match and is in every message about it. `seats` are the names of all who play, by
    seat; `commitment` is the hash of the seed (J6).
    """

    match: str
    game: str
    seat: int
    seats: tuple[str, ...]
    settings: dict[str, Any]
    limits: Limits
    commitment: str


class Ask(Struct, frozen=True, gc=False):
    """A question with all that its seat may hear since its last answer.

    On the wire the question's own fields, its `kind` and its `legal` stand directly in the message.
    """

    match: str
    ask: str
    question: Question[Any]
    news: tuple[News, ...]
    bank_ms: int
    decision_ms: int


class Past(Struct, frozen=True, gc=False):
    """A question of before, with the answer that it got: for a program that comes back without its memory.

    On the wire it is like an `ask`, with `answer` in the place of the times.
    """

    match: str
    ask: str
    question: Question[Any]
    news: tuple[News, ...]
    answer: Any


class Reveal(Struct, frozen=True):
    """What the cards came from: the seed in hex, and every seat's nonce (J6)."""

    seed: str
    nonces: tuple[str, ...]


class Over(Struct, frozen=True, tag_field="type", tag="over"):
    """The match is over: the last news, the scores by seat and why it stopped.

    Who is to blame gets the `verdict`; the others learn the word and the seat only.
    """

    match: str
    news: tuple[News, ...]
    scores: tuple[int, ...]
    termination: Termination
    reveal: Reveal | None
    verdict: Verdict | None = None


class Refused(Struct, frozen=True, tag_field="type", tag="refused"):
    """The arena does not accept what came, and says why; `match` where it was about one.

    With `ask` that question still stands, its time runs on, and `legal` says once more what can be answered.
    """

    code: str
    text: str
    match: str | None = None
    ask: str | None = None
    legal: Any = None


BotMessage: TypeAlias = Hello | Instruct | Ready | Answer | Goodbye
ArenaMessage: TypeAlias = Welcome | Match | Ask | Past | Over | Refused | Done
