"""The messages of a session: what travels between a bot and the arena around the game's own questions and news.

One struct per message, `type` on the wire; a union per direction. The arena refuses fields that it does not know; bots ignore
them. Strings that a bot sends have a limit here, in the type, so that nothing longer gets past the codec.

What stands under `Attributes:` here and in the games is written for people with any language, in the wire's words (`null`, not
None): `python -m protocol.schema` puts it into the pages beside it and into the schemas. There `see "Time"` becomes a link.
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
    "CLOSE_OVERSIZE",
    "CLOSE_PROTOCOL",
    "CLOSE_REFUSED",
    "CLOSE_REPLACED",
    "CLOSE_RESTART",
    "KEEPALIVE_REASONS",
    "LAUNCHED_LIMITS",
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

CLOSE_DONE = 1000
"""The arena is closing, or has heard `goodbye`."""
CLOSE_PROTOCOL = 1002
"""The arena: the bot broke the protocol; `refused` has said how."""
CLOSE_OVERSIZE = 1009
"""The arena: the frame was too large; `refused` has said so."""
CLOSE_CRASHED = 1011
"""Whoever closes has failed; a bot that closes so has crashed, and its reason goes into the verdict, unless a keepalive failed."""
KEEPALIVE_REASONS = ("keepalive", "ping timeout", "pong timeout", "heartbeat")
"""In the reason of a 1011 from a bot, in any case: its library has given the link up, which is a lost connection and no crash (J7)."""
CLOSE_RESTART = 1012
"""The arena stops in the middle of a competition, or while one is about to begin, and will go on: come back."""
CLOSE_REPLACED = 4000
"""The arena: the session goes on over another connection."""
CLOSE_REFUSED = 4001
"""The arena: `hello` was not accepted; `refused` has said why."""

Name = Annotated[str, Meta(min_length=1, max_length=64)]
Id = Annotated[str, Meta(min_length=1, max_length=64)]
Nonce = Annotated[str, Meta(min_length=1, max_length=64)]
Note = Annotated[str, Meta(max_length=1024)]

_LIST = 262_144  # letters: a university
_Plain: TypeAlias = bool | int | float | str | None
_Value1: TypeAlias = _Plain | list[_Plain] | dict[str, _Plain]
_Value2: TypeAlias = _Plain | list[_Value1] | dict[str, _Value1]
_Value3: TypeAlias = _Plain | list[_Value2] | dict[str, _Value2]
Value: TypeAlias = _Plain | list[_Value3] | dict[str, _Value3]
"""What an answer may be made of: what JSON has, one level deeper than any legal answer. Not `Any`: msgpack's maps may have
arrays as keys, and a frame of those whose hashes collide would hold up the arena for a minute."""


class Ending(StrEnum):
    """Why a match stopped: `completed`, `void`, or the one word of an offence (J2).

    Attributes:
        completed: the match ran its course.
        void: nobody's fault; it does not count.
        illegal: an answer that was not legal.
        malformed: a message that cannot be read or was out of turn.
        timeout: did not answer in time.
        oversize: a frame that was too large.
        overflow: read too slowly.
        memory: its processes hold more than `memory_mib`; only a bot that the arena has started, as the next two.
        processes: it has more than `processes`.
        cpu: a decision took too much CPU time; too long by the clock on the wall is `timeout`.
        crash: its process ended, with whatever status, or it closed with 1011, unless its library says that a keepalive failed.
        absent: did not come, or was not `ready` in time.
        disconnect: left with `goodbye` in the middle of a match, or lost its connection for longer than `grace_ms` in all.
        removed: the instructor took it out, or revoked its token; it counts like an offence.
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
    """Why a match stopped.

    Attributes:
        kind: the word for it, see "What goes wrong".
        seat: the seat to blame, or `null`.
        text: a sentence for people; empty if another seat is to blame.
    """

    kind: Ending
    seat: int | None = None
    text: str = ""

    @property
    def is_offence(self) -> bool:
        """Whether a seat is to blame, and so out (J3)."""
        return self.kind not in (Ending.COMPLETED, Ending.VOID)


_DAY_MS = 86_400_000  # nobody waits longer; and it travels in every encoding


class Limits(Struct, frozen=True, kw_only=True):
    """What a bot may take. A limit of `launched` bots is for those that the arena has started itself.

    Attributes:
        decision_ms: a decision that takes no longer costs nothing.
        bank_ms: what decisions may take beyond that, in all, per match and seat.
        hard_ms: no single decision may take longer.
        wall_ms: no single decision of a launched bot may take longer by the clock on the wall; its other times are CPU time.
        start_ms: from `match` to `ready`, the credit apart.
        grace_ms: a connection may be lost for so long, per match and seat in all; the clock stands meanwhile.
        hello_ms: from the connection to `hello`.
        frame_bytes: the largest frame a bot may send.
        buffer_bytes: how much may wait for a bot that reads slowly before it is an offender.
        unanswered: how many messages a second may come to nothing, such as answers that are repeated, before a bot is not read until the next second.
        tables: the most matches at once over one connection; who says more in `hello` gets that many.
        memory_mib: what all processes of a launched bot may hold together.
        processes: how many processes a launched bot may have.
        strangers: how many connections from one address may be open that have not said `hello`.
        per_token: how many connections may be open with one `token`.
        per_address: how many connections without a `token` may be open from one address.
    """

    # The one place where the defaults stand (design §5).
    decision_ms: Annotated[int, Meta(ge=1, le=_DAY_MS)] = 1_000
    bank_ms: Annotated[int, Meta(ge=0, le=_DAY_MS)] = 20_000
    hard_ms: Annotated[int, Meta(ge=1, le=_DAY_MS)] = 15_000
    wall_ms: Annotated[int, Meta(ge=1, le=_DAY_MS)] = 30_000
    start_ms: Annotated[int, Meta(ge=1, le=_DAY_MS)] = 10_000
    grace_ms: Annotated[int, Meta(ge=0, le=_DAY_MS)] = 30_000
    hello_ms: Annotated[int, Meta(ge=1, le=_DAY_MS)] = 10_000
    frame_bytes: Annotated[int, Meta(ge=1024, le=1 << 30)] = 1 << 20
    buffer_bytes: Annotated[int, Meta(ge=1024, le=1 << 30)] = 8 << 20
    unanswered: Annotated[int, Meta(ge=1, le=1 << 30)] = 1_000
    tables: Annotated[int, Meta(ge=1, le=4096)] = 512
    memory_mib: Annotated[int, Meta(ge=16, le=1 << 30)] = 512
    processes: Annotated[int, Meta(ge=1, le=1 << 30)] = 32
    strangers: Annotated[int, Meta(ge=1, le=1 << 30)] = 512
    per_token: Annotated[int, Meta(ge=1, le=1 << 30)] = 8
    per_address: Annotated[int, Meta(ge=1, le=1 << 30)] = 1_024


LAUNCHED_LIMITS = ("wall_ms", "memory_mib", "processes")
"""Those that only a bot which the arena has started is held to."""


class Mechanism(StrEnum):
    """What found an offence out.

    Attributes:
        rules: the rules of the game: the answer was not legal.
        wire: the rules of the wire: what came cannot be read, was out of turn, too large or too much.
        wall clock: the arena's clock.
        wall cap: the arena's clock, for a launched bot that neither computes nor answers.
        CPU clock: the CPU time of a launched bot's processes.
        sampled: a look at a launched bot's processes, ten times a second.
        cgroup: the kernel, which counts for a launched bot's control group.
        exit: the end of a launched bot's process.
        session: the session: the bot did not come, left, or stayed away too long.
        instructor: the instructor.
    """

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
    """What an instructor can have done.

    Attributes:
        status: nothing; `done` says how far the competitions are.
        pause: no new matches begin.
        resume: they begin again.
        stop: the competition ends for good; what is being played is void.
        void: a match does not count and is played again.
        remove: a bot is out, like an offender.
        start: a competition begins now.
        import: a class is put on the roster.
        rename: somebody on the roster gets another name.
        unlist: somebody is taken off the roster.
        log: nothing; `done` has what the arena has told lately.
    """

    STATUS = "status"
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    VOID = "void"
    REMOVE = "remove"
    START = "start"
    IMPORT = "import"
    RENAME = "rename"
    UNLIST = "unlist"
    LOG = "log"


class Verdict(Struct, frozen=True, kw_only=True):
    """One offence and its evidence (J4). `null` is what does not apply.

    Attributes:
        kind: the word for it, see "What goes wrong".
        match: the id of the match, not of the chair.
        game: what was played.
        bot: who it was, by the name it is called here.
        seat: where it sat, from 0.
        text: what it did, with figures, in one line.
        advice: what its author can do about it, in one line.
        mechanism: what found out.
        asked: the question, as a text of JSON; `null` if none waited.
        legal: what would have been legal, in words.
        got: what came instead, cut to a line; `null` if nothing did.
        taken_ms: what the decision took as it is charged, the credit not yet taken off.
        waited_ms: how long the question had been waiting by the clock on the wall.
        credit_ms: the credit: what was taken off for the link and for the arena's own delays.
        min_rtt_ms: the least round trip that the kernel has seen on the connection, to compare; it decides nothing.
        bank_ms: what was left in the seat's bank.
        exit_status: of a launched bot's process, negative for a signal; `null` if it still runs.
        stderr: the end of what a launched bot has written there.
        enforced: which limits this bot was held to, and by what, see "The record of a match".
        limits: all limits in force.
        event: the id of the event, the same in all verdicts that one lost connection, one crash or one freeze brought about: that of the chair whose match it ended first.
        forgiven: whether it cost the bot this match only, as the run forgives so many events (J3).
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
    event: str = ""
    forgiven: bool = False

    @property
    def headline(self) -> str:
        """What happened, in the line that people are shown."""
        if self.forgiven:
            return f"lost this match and plays on: {self.text}"
        if self.kind is Ending.CRASH:
            return self.text
        return f"eliminated: {self.text}"


class Hello(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="hello"
):
    """A bot's first message: who it is and what it can do.

    Attributes:
        protocol: the version of the protocol: 1.
        name: what the bot is called: printable characters, no space at either end; nobody else present may have it, or one that looks like it.
        games: what it plays: names of games, at least one.
        token: what the instructor has given out, or what `ARENA_TOKEN` says for a bot that the arena has started. It says who
            the bot is, see "Names and tokens". Without a roster and on the same machine it may be left out, and a word of one's
            own is kept with the session.
        tables: how many matches it plays at once.
        batch: whether it reads frames that hold an array of messages.
        resume: the `session` of the last `welcome`, to go on after a lost connection.
        from: with `resume`: how many questions of every match the bot remembers; those after them come again as `past`. Left
            out: all of them.
        client: what library speaks; for the log.
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
    """The seat is set up.

    Attributes:
        match: from `match`.
        nonce: a text of your own, which goes into the cards (J6).
    """

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
    """A decision.

    Attributes:
        match: from `ask`.
        ask: from `ask`.
        value: the answer; the question decides whether it is legal. Maps and lists in it may be nested four deep.
        note: a text of your own; kept in the record, up to 256 KiB per match, and shown to nobody else while the competition
            lasts.
    """

    match: Id
    ask: Id
    value: Value
    note: Note | None = None


class Goodbye(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="goodbye"
):
    """The bot leaves for good: it wants no more matches."""


class Instruct(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="instruct"
):
    """An instructor's word, in the place of `hello`; answered with `done` or `refused`.

    Attributes:
        protocol: the version of the protocol: 1.
        token: the instructor's.
        action: what is to be done, a word of the table below.
        competition: its id, or the name of its run; without it `pause`, `resume` and `stop` are about all that go on, and
            `remove` about all that the bot is in. For `start`: the name of a run, which begins whatever its time is, or of a game,
            which is played by whoever is connected.
        match: for `void`: the id of a match, not of a chair.
        bot: for `remove`: its name; for `rename` and `unlist`: a name on the roster.
        form: for `start` of a game: `round_robin`, `elimination`, `league` or `ladder`; without it the usual one of the game.
        matches: for `start` of a game: how often each two meet, or each bot the dealer.
        settings: for `start` of a game: settings of its own.
        text: for `import`: a CSV with the columns `name` and, if you like, `email` and `team`; for `rename`: the new name.
    """

    protocol: int
    token: Annotated[str, Meta(max_length=256)]
    action: Action
    competition: Id | None = None
    match: Id | None = None
    bot: Name | None = None
    form: Id | None = None
    matches: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    settings: dict[str, _Plain] | None = None
    text: Annotated[str, Meta(max_length=_LIST)] | None = None


class Progress(Struct, frozen=True):
    """How far a competition is.

    Attributes:
        competition: its id.
        run: the name of its run.
        game: what is played.
        form: its form.
        state: `running` or `paused`.
        settled: how many of its matches are done.
        scheduled: how many matches it has.
        left_s: an estimate in seconds, `null` while there is nothing to base one on.
        waits_for: names of bots that are away.
    """

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
    """What came of an `instruct`.

    Attributes:
        text: what has been done.
        competitions: how far each is then.
        tokens: after `import`: the name and the token of everybody who is new; they are said this once.
        lines: after `log`: what the arena has told, oldest first; after `status`: for whom runs wait.
    """

    text: str
    competitions: tuple[Progress, ...] = ()
    tokens: tuple[tuple[str, str], ...] = ()
    lines: tuple[str, ...] = ()


class Welcome(Struct, frozen=True, tag_field="type", tag="welcome"):
    """The answer to `hello`.

    Attributes:
        protocol: the version of the protocol: 1.
        bot: what the bot is called here; the arena may know better than its `hello`.
        session: a secret, new with every `welcome`; it is what `resume` takes.
        limits: those in force, see "Time" and "Space".
        practice: whether illegal answers are refused instead of ending the match, see "Practice".
    """

    protocol: int
    bot: str
    session: str
    limits: Limits
    practice: bool = False


class Match(Struct, frozen=True, omit_defaults=True, tag_field="type", tag="match"):
    """A chair at a table: answer with `ready`.

    Attributes:
        match: the id of *this chair in this match*; every message about it has it.
        game: what is played.
        seat: where the bot sits, from 0.
        seats: the names of all who play, by seat.
        settings: all settings of the game.
        limits: those of this match.
        commitment: the hash of the seed of the cards (J6).
        page: where a browser shows this match, as an absolute path at the arena's address: `/#/m/4e56d80d-1`. Left out if the arena has no page.
    """

    match: str
    game: str
    seat: int
    seats: tuple[str, ...]
    settings: dict[str, Any]
    limits: Limits
    commitment: str
    page: str | None = None


class Ask(Struct, frozen=True, gc=False):
    """A question with all that its seat may hear since its last answer: answer with `answer`.

    On the wire the question's own fields stand directly in the message, between `ask` and `news`.

    Attributes:
        match: which chair is asked.
        ask: the id of the question.
        question: the fields of its kind, see "The games".
        kind: the kind of question; each game has its own.
        legal: the answers that are legal, see "What is legal".
        news: all that this seat has learnt since its last answer, in order, each with its own `kind`.
        bank_ms: what is left in the bank, see "Time".
        decision_ms: what the decision may take at no cost.
    """

    match: str
    ask: str
    question: Question[Any]
    news: tuple[News, ...]
    bank_ms: int
    decision_ms: int


class Past(Struct, frozen=True, gc=False):
    """A question of before, as it was; only after `hello` with `from`, and not to be answered. See "Lost memory".

    On the wire it is like an `ask`, with `answer` in the place of the times.

    Attributes:
        match: which chair was asked.
        ask: the id of the question.
        question: the fields of its kind, see "The games".
        kind: the kind of question.
        legal: the answers that were legal.
        news: what this seat had learnt since the answer before, in order.
        answer: the answer that it got.
    """

    match: str
    ask: str
    question: Question[Any]
    news: tuple[News, ...]
    answer: Any


class Reveal(Struct, frozen=True):
    """What the cards came from (J6).

    Attributes:
        seed: the seed, 32 bytes in hex.
        nonces: by seat; empty for one that was never ready.
    """

    seed: str
    nonces: tuple[str, ...]


class Over(Struct, frozen=True, tag_field="type", tag="over"):
    """The match is over.

    Attributes:
        match: which chair.
        news: what had not been told yet, in order.
        scores: the result, by seat.
        termination: why the match stopped.
        reveal: what the cards came from.
        verdict: the evidence, if you are to blame, see "Verdicts"; else `null`.
    """

    match: str
    news: tuple[News, ...]
    scores: tuple[int, ...]
    termination: Termination
    reveal: Reveal | None
    verdict: Verdict | None = None


class Refused(Struct, frozen=True, tag_field="type", tag="refused"):
    """The arena does not accept what came, and says why.

    Attributes:
        code: a word for programs, see "What goes wrong".
        text: a sentence for people.
        match: which chair, where it was about one; else `null`.
        ask: in practice: the question that still stands, and whose time runs on; else `null`.
        legal: in practice: what can be answered; else `null`.
    """

    code: str
    text: str
    match: str | None = None
    ask: str | None = None
    legal: Any = None


BotMessage: TypeAlias = Hello | Instruct | Ready | Answer | Goodbye
ArenaMessage: TypeAlias = Welcome | Match | Ask | Past | Over | Refused | Done
