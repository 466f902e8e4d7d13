"""What `arena check` looks at, in order, and what it says: the steps, the hints, and what comes of a step.

A scripted arena speaks to one bot and takes it through `Step`, one after another: the real rules, the real codec, the real table of
turns, and house bots in the other seats. A step is `ok`, `FAILED` with what was sent, expected and came and one `Hint`, `skipped`
with the reason, or `incomplete`: nothing was wrong, and there was no time to see all. Its hint goes by the cause, whatever the step: a bot that crashes at a question has `CRASHED` in the first step that asks
one. After a step that failed a launched bot is started again, and the rest goes on.

| module | what it does |
|---|---|
| `arena/authoring/conformance/__init__.py` | this: the words |
| `arena/authoring/conformance/fake_transport.py` | connections that can be slow, in fragments, or lost |
| `arena/authoring/conformance/connection.py` | one end of the connection: who comes, who goes, and whose fault it is |
| `arena/authoring/conformance/conversation.py` | the conversation: what is told and how, what is heard, when it is too late |
| `arena/authoring/conformance/diagnose.py` | what is wrong with what was said, and which hint fits |
| `arena/authoring/conformance/bot.py` | the bot: started or awaited, greeted, ended |
| `arena/authoring/conformance/session.py` | the bot at its tables, in whole matches or single moves |
| `arena/authoring/conformance/table.py` | matches by the real rules, with the bot in one seat |
| `arena/authoring/conformance/legal_shapes.py` | every shape that `legal` can have, and the settings that bring it about |
| `arena/authoring/conformance/steps.py`, `arena/authoring/conformance/connection_steps.py` | the steps, each a coroutine: what is said and played; what happens to the connection |
| `arena/authoring/conformance/run.py` | runs them: deadlines, restarts, the report |

Nothing here does I/O.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from protocol.messages import Limits

__all__ = [
    "HINTS",
    "TITLES",
    "CheckReport",
    "Hint",
    "ResourceUse",
    "Step",
    "StepFailed",
    "StepIncomplete",
    "StepOutcome",
    "StepSkipped",
    "StepStatus",
]


class Step(StrEnum):
    """The steps, in order; `PLAY` and `LEGAL` come once for every game that the bot offers."""

    STARTS = "starts"
    HELLO = "hello"
    ENCODING = "encoding"
    UNKNOWN_FIELDS = "unknown-fields"
    PLAY = "play"
    LEGAL = "legal"
    BATCH = "batch"
    TABLES = "tables"
    REPEATED_QUESTION = "repeated-question"
    LOST_CONNECTION = "lost-connection"
    LOST_SESSION = "lost-session"
    FRAGMENTED_FRAME = "fragmented-frame"
    SLOW_LINK = "slow-link"
    REFUSAL = "refusal"
    OVER = "over"
    CLOSE = "close"
    REFUSED_HELLO = "refused-hello"
    LATE_ARENA = "late-arena"


TITLES: dict[Step, str] = {
    Step.STARTS: "the program starts, and connects or writes its first line",
    Step.HELLO: "its first message is a `hello` that the arena accepts",
    Step.ENCODING: "whole numbers are whole, and keys in another order, spaces and letters beyond ASCII are read",
    Step.UNKNOWN_FIELDS: "fields that it does not know do not disturb it, at any depth",
    Step.PLAY: "rounds by the real rules, against house bots",
    Step.LEGAL: "every shape of `legal` that the rules can bring about",
    Step.BATCH: "a frame may be an array, if it says `batch`",
    Step.TABLES: "several matches at once, if it says `tables`",
    Step.REPEATED_QUESTION: "a `match` and an `ask` that come again are answered again",
    Step.LOST_CONNECTION: "cut off in the middle of a question, it comes back with `resume` and goes on",
    Step.LOST_SESSION: "when its `resume` is refused it says `hello` without",
    Step.FRAGMENTED_FRAME: "frames in fragments, with a ping between them",
    Step.SLOW_LINK: "a link of 150 ms whose bytes come in small pieces",
    Step.REFUSAL: "in practice, an answer that was refused is given once more",
    Step.OVER: "it stays after `over`, whatever ended the match, and plays the next one",
    Step.CLOSE: "closed with 1000, or at the end of its input, it ends with exit status 0 within 2 seconds",
    Step.REFUSED_HELLO: "a `hello` that was refused ends it, with another exit status, and it does not come back",
    Step.LATE_ARENA: "started before anything listens at its address, it tries again until the arena is there",
}


class Hint(StrEnum):
    """Why a step failed; `HINTS` has what its author can do about it."""

    NOT_STARTED = "not-started"
    DIED = "died"
    NOT_CONNECTED = "not-connected"
    NO_HELLO = "no-hello"
    NOT_FLUSHED = "not-flushed"
    PRINTS = "prints"
    NOT_HELLO = "not-hello"
    VERSION = "version"
    GAMES = "games"
    TOKEN = "token"
    NAME = "name"
    SAME_NAME = "same-name"
    NO_MESSAGE = "no-message"
    UNKNOWN_TO_US = "unknown-to-us"
    NUMBERS = "numbers"
    STRINGS = "strings"
    JSON_LIBRARY = "json-library"
    STRICT = "strict"
    NOT_READY = "not-ready"
    SILENT = "silent"
    SLOW = "slow"
    ILLEGAL = "illegal"
    MELDS = "melds"
    WRONG_ASK = "wrong-ask"
    OUT_OF_TURN = "out-of-turn"
    ONE_CONNECTION = "one-connection"
    CRASHED = "crashed"
    LEFT = "left"
    BATCH = "batch"
    MESSAGE_LIMIT = "message-limit"
    TABLES = "tables"
    REPEATED = "repeated"
    NOT_BACK = "not-back"
    NO_RESUME = "no-resume"
    OLD_SESSION = "old-session"
    FORGETS = "forgets"
    SESSION_REFUSED = "session-refused"
    FRAGMENTS = "fragments"
    PONG = "pong"
    PIECES = "pieces"
    REFUSAL = "refusal"
    LEAVES_AT_OVER = "leaves-at-over"
    STAYS = "stays"
    EXIT_STATUS = "exit-status"
    COMES_BACK = "comes-back"
    IMPATIENT = "impatient"
    OVERSIZE = "oversize"
    MEMORY = "memory"
    PROCESSES = "processes"


HINTS: dict[Hint, str] = {
    Hint.NOT_STARTED: "Try the same command in this folder by hand. A program that the arena starts sees the files that its command names "
    "and what lies beside them, and no other folder of yours.",
    Hint.DIED: "Stay until the connection, or the input, is closed. Connect to ARENA_URL, and to no address in the code; write `stdio:` before "
    "the command of a program that speaks in lines, and of no other. Files outside its folder are not seen. See its standard error.",
    Hint.NOT_CONNECTED: "Read the address from the environment variable ARENA_URL and open a WebSocket to it at once, before anything that takes long.",
    Hint.NO_HELLO: "Send `hello` as soon as the connection is open; the arena says nothing before it.",
    Hint.NOT_FLUSHED: "Write `hello` at once, and flush standard output after every line: most languages hold it back when it is no terminal.",
    Hint.PRINTS: "Standard output belongs to the arena: print for people on standard error.",
    Hint.NOT_HELLO: "Send `hello` as the first message of every connection, and nothing else until `welcome` has come.",
    Hint.VERSION: 'Say `"protocol":1` in `hello`, as a whole number.',
    Hint.GAMES: "Name in `games` one game or more, spelled as the arena spells them: ace_king_queen gin_rummy high_low three_card_poker blackjack.",
    Hint.TOKEN: "Put the environment variable ARENA_TOKEN, if it is set, into the `token` of every `hello`; without it the arena does not know you.",
    Hint.NAME: "Say the name in ARENA_NAME letter by letter, or one of your own: the environment is in UTF-8. "
    "Decode it where your language does not do so by itself, and encode it once.",
    Hint.SAME_NAME: "Say the same `name` in every `hello`.",
    Hint.NO_MESSAGE: "Write every message as JSON in a text frame (or msgpack in a binary one), with all the fields that the document names, "
    "each of its type and no longer than it may be.",
    Hint.UNKNOWN_TO_US: "Send only the fields that the document names: the arena refuses all others.",
    Hint.NUMBERS: "Write whole numbers without a fraction: 4, not 4.0. Convert to an integer before you encode; "
    "many libraries read every number as floating point.",
    Hint.STRINGS: "Send the very element of `legal`, type and all: 4 is not \"4\", true is neither \"true\" nor 1, "
    "and a map is not a text that holds one.",
    Hint.JSON_LIBRARY: "Read messages with a JSON library, as UTF-8, and find fields by their names: "
    "their order is free, there may be spaces, and names have letters of all languages.",
    Hint.STRICT: "Ignore fields that you do not know, in the message and in all that is in it: later versions may add some. "
    "Tell your decoder not to fail on unknown properties.",
    Hint.NOT_READY: 'Answer every `match` at once with `ready`, its `match` and a `nonce` of 1 to 64 characters.',
    Hint.SILENT: "Answer every `ask` with one `answer` that has its `match` and its `ask`, and flush what you write. "
    "It may be computing for too long, or for ever; or an exception has stopped it: look at standard error.",
    Hint.SLOW: "Decide faster, or stop when time is up and answer something: up to `decision_ms` is free, what is beyond comes out of the bank, "
    "and nothing may take longer than `hard_ms`.",
    Hint.ILLEGAL: "Answer with an element of `legal` as it stands, or with a whole number from `min` to `max`, both included; "
    "if your strategy wants something else, take the nearest of those.",
    Hint.MELDS: "Declare sets of three or four of one rank and runs of three or more of one suit, the ace below the 2, "
    "of the ten cards that you keep, none twice; a knock leaves at most 10 deadwood. Or say null, and the referee arranges the best.",
    Hint.WRONG_ASK: "Copy `match` and `ask` into the answer from the question that you answer, and keep nothing of an older one.",
    Hint.OUT_OF_TURN: "Speak only when you are asked: `hello` first, one `ready` for a `match`, one `answer` for an `ask`.",
    Hint.ONE_CONNECTION: "Keep to one connection: open another one only when the first is gone.",
    Hint.CRASHED: "Something in the program failed at this message: see what it wrote to standard error, "
    "or the reason with which it closed, and mend that.",
    Hint.LEFT: "Keep the connection open and go on reading: only the arena ends it.",
    Hint.BATCH: "With `\"batch\":true` a frame may hold an array: handle its messages one after another, all of them. "
    "If you do not want that, leave `batch` out.",
    Hint.MESSAGE_LIMIT: "Allow messages of 1 MiB: your WebSocket library, or the buffer that you read into, has a lower limit "
    "(some have 64 or 256 KiB). With `batch` the arena sends arrays of up to 128 KiB, which come in many reads.",
    Hint.TABLES: "Keep what you know of a match in an object of its own, found by `match`: with `tables` messages about several come mixed.",
    Hint.REPEATED: "Answer an `ask` or a `match` that comes again once more: the arena repeats what it has no answer to.",
    Hint.NOT_BACK: "When a connection is lost, or closed with any code but 1000, 1002, 1009, 4000 or 4001, connect again after a short pause, "
    "and go on trying for `grace_ms`.",
    Hint.NO_RESUME: "Say in the `hello` after a lost connection `resume` with the `session` of the last `welcome`; without it your matches are lost.",
    Hint.OLD_SESSION: "Every `welcome` has a new `session`: remember the latest one. "
    "The one before it is good only until you have said `ready` or answered a ping.",
    Hint.FORGETS: "After `welcome` answer every `match` with `ready` again, also those that you know, and then the `ask` that waits.",
    Hint.SESSION_REFUSED: "When `hello` is refused with the code `session`, forget the session and your matches, connect once more and say `hello` without `resume`.",
    Hint.FRAGMENTS: "A WebSocket message may come in several frames: gather them up to the one that is final, or let your library do it.",
    Hint.PONG: "Answer pings with pongs that have the same bytes; WebSocket libraries do it while you read.",
    Hint.PIECES: "One read need not be one message: gather bytes until the frame, or the line, is whole; and let no read time out in between.",
    Hint.REFUSAL: "After a `refused` with an `ask` answer that question again, with one of its `legal`.",
    Hint.LEAVES_AT_OVER: "Stay after `over`, whatever it says, and read on: the next match comes over the same connection.",
    Hint.STAYS: "When the arena closes with 1000, or your input ends, end the program at once, threads and children included, and do not connect again.",
    Hint.EXIT_STATUS: "End with exit status 0 when the arena has closed in order, and with another one, 1, when it has refused you.",
    Hint.COMES_BACK: "A `hello` that was refused (4001) is refused again: print the reason on standard error, end with exit status 1, "
    "and do not connect again.",
    Hint.IMPATIENT: "When nobody answers at ARENA_URL, try again after a short pause, and go on for 60 s: "
    "in a class the bots are often started before the arena.",
    Hint.OVERSIZE: "Keep frames under `frame_bytes`, and those before `welcome` under 16 KiB.",
    Hint.MEMORY: "Hold less in memory, all processes of the bot together, or give a runtime such as Java's a limit of its own (-Xmx).",
    Hint.PROCESSES: "Start fewer processes, and wait for them to end.",
}  # fmt: skip


class StepStatus(StrEnum):
    """What came of a step."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"
    INCOMPLETE = "incomplete"


class StepOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One step that is done.

    Attributes:
        number: its place, from 1.
        step: which it is.
        game: for `play` and `legal`, of which game.
        status: what came of it.
        about: what was done, or why it was skipped, or not done as a whole.
        rounds: of a `play` that is incomplete: how many were played.
        missing: of a `legal` that is incomplete: the shapes that did not come up.
        sent: what the arena said last, in a line; this and the next five only if it failed.
        expected: what was to come.
        came: what came instead.
        hint: why it failed.
        advice: what its author can do about it, in a sentence or two.
        stderr: the last five lines on its standard error, as they are, where it crashed or fell silent.
        took_ms: how long the step took.
    """

    number: int
    step: Step
    game: str | None = None
    status: StepStatus
    about: str = ""
    rounds: int | None = None
    missing: tuple[str, ...] = ()
    sent: str | None = None
    expected: str | None = None
    came: str | None = None
    hint: Hint | None = None
    advice: str | None = None
    stderr: str | None = None
    took_ms: float = 0.0

    @property
    def name(self) -> str:
        """The step as people are shown it: `play gin_rummy`."""
        return self.step if self.game is None else f"{self.step} {self.game}"


class ResourceUse(msgspec.Struct, frozen=True, kw_only=True):
    """What a bot took while it played its games.

    Attributes:
        decisions: how many answers were measured.
        p50_ms, p99_ms, max_ms: from the question to its answer, by the clock on the wall; None where none was measured.
        bank_ms: the most that was taken out of the bank in one match: CPU time, where that can be measured.
        memory_mib: the most that its processes held; None for a bot that was not started here, or where that is not measured.
        processes: the most that it had at once.
        cpu_ms: CPU time of all its processes.
    """

    decisions: int = 0
    p50_ms: float | None = None
    p99_ms: float | None = None
    max_ms: float | None = None
    bank_ms: float = 0.0
    memory_mib: float | None = None
    processes: int | None = None
    cpu_ms: float | None = None


class CheckReport(msgspec.Struct, frozen=True, kw_only=True):
    """A whole check; `passed` if no step failed or is incomplete, and at least one game was played.

    `seed` is what its chance came from, if it was a number.
    """

    passed: bool
    name: str | None
    games: tuple[str, ...]
    steps: tuple[StepOutcome, ...]
    report: ResourceUse
    limits: Limits
    seed: int | None = None


class StepFailed(Exception):
    """A step found something wrong; the fields are those of `StepOutcome`."""

    def __init__(self, sent: str, expected: str, came: str, hint: Hint, stderr: str = "") -> None:
        super().__init__(f"expected {expected}, got {came}")
        self.sent, self.expected, self.came, self.hint = sent, expected, came, hint
        self.stderr = stderr


class StepSkipped(Exception):
    """A step has no meaning for this bot; the text says why."""


class StepIncomplete(Exception):
    """Nothing was wrong, but there was no time to see all; the text says how far it came, the fields are those of `StepOutcome`."""

    def __init__(
        self, text: str, *, rounds: int | None = None, missing: tuple[str, ...] = ()
    ) -> None:
        super().__init__(text)
        self.rounds, self.missing = rounds, missing
