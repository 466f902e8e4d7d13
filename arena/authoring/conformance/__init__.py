"""The conformance test of bots, `arena check`: its steps, its hints, and the outcome of a step.

A scripted arena takes one bot through every `Step`, with the real rules, the real codec, the real
order of messages, and house bots in the other seats. A step is `ok`, `FAILED`, `skipped` or
`incomplete` (nothing was wrong, but time ran out). A failed step says what was sent, what was
expected and what came, and has one `Hint`. The hint names the cause, not the step: a bot that
crashes at a question gets `CRASHED` in the first step that asks a question. After a failed step,
`arena check` restarts a bot that it has started, and goes on with the next step.

| module | what it does |
|---|---|
| `__init__` | this: steps, hints, outcomes; no I/O |
| `wire` | the arena's connections, and how they can be perturbed |
| `diagnose` | what is wrong with a message, and which hint fits |
| `bot` | the bot: started or awaited, greeted, talked to, lost, and whose fault that is |
| `matches` | matches by the real rules, with the bot in one seat: as a whole, or in single moves |
| `steps` | the steps, each a coroutine and a perturbation |
| `run` | runs the steps: deadlines, restarts, the report |
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self

import msgspec

from protocol.games import VOCABULARIES
from protocol.messages import Limits

__all__ = [
    "CheckReport",
    "Hint",
    "ResourceUse",
    "Step",
    "StepEnded",
    "StepFailed",
    "StepOutcome",
    "StepStatus",
]


class Step(StrEnum):
    """The steps in order, as in `checking.md`; `PLAY` and `LEGAL` are run once for every game."""

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


class Hint(StrEnum):
    """Why a step failed; `advice` says what the bot's author can do about it."""

    advice: str

    def __new__(cls, word: str, advice: str) -> Self:
        hint = str.__new__(cls, word)
        hint._value_ = word
        hint.advice = advice
        return hint

    # fmt: off
    NOT_STARTED = "not-started", (
        "Try the same command in this folder by hand. A program that the arena starts sees the "
        "files that its command names and what lies beside them, and no other folder of yours.")
    DIED = "died", (
        "Stay until the connection, or the input, is closed. Connect to ARENA_URL, and to no "
        "address in the code; write `stdio:` before the command of a program that speaks in lines, "
        "and of no other. Files outside its folder are not seen. See its standard error.")
    NOT_LOADED = "not-loaded", (
        "Mend your file as the last line of its standard error says: what is wrong, and in which "
        "line. A module that is missing is installed with pip, or lies beside the file if it is "
        "yours. `arena play GAME FILE.py random` loads the file in the same way.")
    NOT_CONNECTED = "not-connected", (
        "Read the address from the environment variable ARENA_URL and open a WebSocket to it at "
        "once, before anything that takes long.")
    NO_HELLO = "no-hello", (
        "Send `hello` as soon as the connection is open; the arena says nothing before it.")
    NOT_FLUSHED = "not-flushed", (
        "Write `hello` at once, and flush standard output after every line: most languages hold it "
        "back when it is no terminal.")
    PRINTS = "prints", "Standard output belongs to the arena: print for people on standard error."
    NOT_HELLO = "not-hello", (
        "Send `hello` as the first message of every connection, and nothing else until `welcome` "
        "has come.")
    VERSION = "version", 'Say `"protocol":1` in `hello`, as a whole number.'
    GAMES = "games", (
        "Name in `games` one game or more, spelled as the arena spells them: "
        f"{' '.join(VOCABULARIES)}.")
    TOKEN = "token", (
        "Put the environment variable ARENA_TOKEN, if it is set, into the `token` of every "
        "`hello`; without it the arena does not know you.")
    NAME = "name", (
        "Say the name in ARENA_NAME letter by letter, or one of your own: the environment is in "
        "UTF-8. Decode it where your language does not do so by itself, and encode it once.")
    SAME_NAME = "same-name", "Say the same `name` in every `hello`."
    NO_MESSAGE = "no-message", (
        "Write every message as JSON in a text frame (or msgpack in a binary one), with all the "
        "fields that the document names, each of its type and no longer than it may be.")
    UNKNOWN_TO_US = "unknown-to-us", (
        "Send only the fields that the document names: the arena refuses all others.")
    NUMBERS = "numbers", (
        "Write whole numbers without a fraction: 4, not 4.0. Convert to an integer before you "
        "encode; many libraries read every number as floating point.")
    STRINGS = "strings", (
        'Send the very element of `legal`, type and all: 4 is not "4", true is neither "true" nor '
        "1, and a map is not a text that holds one.")
    JSON_LIBRARY = "json-library", (
        "Read messages with a JSON library, as UTF-8, and find fields by their names: their order "
        "is free, there may be spaces, and names have letters of all languages.")
    STRICT = "strict", (
        "Ignore fields that you do not know, in the message and in all that is in it: later "
        "versions may add some. Tell your decoder not to fail on unknown properties.")
    NOT_READY = "not-ready", (
        "Answer every `match` at once with `ready`, its `match` and a `nonce` of 1 to 64 "
        "characters.")
    SILENT = "silent", (
        "Answer every `ask` with one `answer` that has its `match` and its `ask`, and flush what "
        "you write. It may be computing for too long, or for ever; or an exception has stopped it: "
        "look at standard error.")
    SLOW = "slow", (
        "Decide faster, or stop when time is up and answer something: up to `decision_ms` is free, "
        "what is beyond comes out of the bank, and nothing may take longer than `hard_ms`.")
    ILLEGAL = "illegal", (
        "Answer with an element of `legal` as it stands, or with a whole number from `min` to "
        "`max`, both included; if your strategy wants something else, take the nearest of those.")
    FAULT = "fault", (
        "Answer with an element of `legal` as it stands; or see on the game's page what the rules "
        "want of an answer that `legal` does not list.")
    WRONG_ASK = "wrong-ask", (
        "Copy `match` and `ask` into the answer from the question that you answer, and keep "
        "nothing of an older one.")
    OUT_OF_TURN = "out-of-turn", (
        "Speak only when you are asked: `hello` first, one `ready` for a `match`, one `answer` for "
        "an `ask`.")
    ONE_CONNECTION = "one-connection", (
        "Keep to one connection: open another one only when the first is gone.")
    CRASHED = "crashed", (
        "Something in the program failed at this message: see what it wrote to standard error, or "
        "the reason with which it closed, and mend that.")
    LEFT = "left", "Keep the connection open and go on reading: only the arena ends it."
    BATCH = "batch", (
        'With `"batch":true` a frame may hold an array: handle its messages one after another, all '
        "of them. If you do not want that, leave `batch` out.")
    MESSAGE_LIMIT = "message-limit", (
        "Allow messages of 1 MiB: your WebSocket library, or the buffer that you read into, has a "
        "lower limit (some have 64 or 256 KiB). With `batch` the arena sends arrays of up to 128 "
        "KiB, which come in many reads.")
    TABLES = "tables", (
        "Keep what you know of a match in an object of its own, found by `match`: with `tables` "
        "messages about several come mixed.")
    REPEATED = "repeated", (
        "Answer an `ask` or a `match` that comes again once more: the arena repeats what it has no "
        "answer to.")
    NOT_BACK = "not-back", (
        "When a connection is lost, or closed with any code but 1000, 1002, 1009, 4000 or 4001, "
        "connect again after a short pause, and go on trying for `grace_ms`.")
    NO_RESUME = "no-resume", (
        "Say in the `hello` after a lost connection `resume` with the `session` of the last "
        "`welcome`; without it your matches are lost.")
    OLD_SESSION = "old-session", (
        "Every `welcome` has a new `session`: remember the latest one. The one before it is good "
        "only until you have said `ready` or answered a ping.")
    FORGETS = "forgets", (
        "After `welcome` answer every `match` with `ready` again, also those that you know, and "
        "then the `ask` that waits.")
    SESSION_REFUSED = "session-refused", (
        "When `hello` is refused with the code `session`, forget the session and your matches, "
        "connect once more and say `hello` without `resume`.")
    FRAGMENTS = "fragments", (
        "A WebSocket message may come in several frames: gather them up to the one that is final, "
        "or let your library do it.")
    PONG = "pong", (
        "Answer pings with pongs that have the same bytes; WebSocket libraries do it while you "
        "read.")
    PIECES = "pieces", (
        "One read need not be one message: gather bytes until the frame, or the line, is whole; "
        "and let no read time out in between.")
    REFUSAL = "refusal", (
        "After a `refused` with an `ask` answer that question again, with one of its `legal`.")
    LEAVES_AT_OVER = "leaves-at-over", (
        "Stay after `over`, whatever it says, and read on: the next match comes over the same "
        "connection.")
    STAYS = "stays", (
        "When the arena closes with 1000, or your input ends, end the program at once, threads and "
        "children included, and do not connect again.")
    EXIT_STATUS = "exit-status", (
        "End with exit status 0 when the arena has closed in order, and with another one, 1, when "
        "it has refused you.")
    COMES_BACK = "comes-back", (
        "A `hello` that was refused (4001) is refused again: print the reason on standard error, "
        "end with exit status 1, and do not connect again.")
    IMPATIENT = "impatient", (
        "When nobody answers at ARENA_URL, try again after a short pause, and go on for 60 s: in a "
        "class the bots are often started before the arena.")
    OVERSIZE = "oversize", (
        "Keep frames under `frame_bytes`, and those before `welcome` under 16 KiB.")
    MEMORY = "memory", (
        "Hold less in memory, all processes of the bot together, or give a runtime such as Java's "
        "a limit of its own (-Xmx).")
    PROCESSES = "processes", "Start fewer processes, and wait for them to end."
    # fmt: on


class StepStatus(StrEnum):
    """How a step ended."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"
    INCOMPLETE = "incomplete"


class StepOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one step.

    Attributes:
        number: its place, from 1.
        game: for `play` and `legal` only.
        about: what was done, or why it was skipped or is incomplete.
        rounds: how many were played; only for an incomplete `play`.
        missing: the shapes that did not come up; only for an incomplete `legal`.
        sent: the arena's last message, in one line. It and the next five fields are there only if
            the step failed.
        stderr: the last five lines on the bot's standard error, if it crashed or fell silent.
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
        """The step's name for people, such as `play GAME`."""
        return self.step if self.game is None else f"{self.step} {self.game}"


class ResourceUse(msgspec.Struct, frozen=True, kw_only=True):
    """The time, memory and processes that a bot used in a check.

    Attributes:
        p50_ms, p99_ms, max_ms: wall time from question to answer; None without a measurement.
        bank_ms: the most that one match took out of the bank, as CPU time where it is measured.
        wall_bank_ms: the most that one match took out of the bank of clock time, likewise.
        memory_mib, processes: the most at once, of all its processes; None if the bot was not
            started here, or where they are not measured.
        cpu_ms: the CPU time of all its processes; None if it was not started here.
    """

    decisions: int = 0
    p50_ms: float | None = None
    p99_ms: float | None = None
    max_ms: float | None = None
    bank_ms: float = 0.0
    wall_bank_ms: float = 0.0
    memory_mib: float | None = None
    processes: int | None = None
    cpu_ms: float | None = None


class CheckReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check; `passed` if a game was played and no step failed or is incomplete."""

    passed: bool
    name: str | None
    games: tuple[str, ...]
    steps: tuple[StepOutcome, ...]
    report: ResourceUse
    limits: Limits
    seed: int | None = None


class StepEnded(Exception):
    """A step did not pass. The attributes are fields of `StepOutcome`."""

    def __init__(self, status: StepStatus, about: str, **more: object) -> None:
        super().__init__(about)
        vars(self).update(more, status=status, about=about)


class StepFailed(StepEnded):
    """A step found a fault; `advice` is the hint's, unless the question knows better."""

    def __init__(self, sent: str, expected: str, came: str, hint: Hint, stderr: str = "") -> None:
        super().__init__(StepStatus.FAILED, "")
        self.sent, self.expected, self.came, self.hint = sent, expected, came, hint
        self.advice, self.stderr = hint.advice, stderr or None
