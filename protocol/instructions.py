"""The messages of an instructor to a running arena, and the arena's answer."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from protocol.field_types import Id, Name, Plain

__all__ = [
    "WORKER_STATES",
    "Action",
    "Done",
    "Instruct",
    "LostAttempt",
    "Progress",
    "TimedVerdict",
    "Unplayed",
    "WorkerView",
]

WORKER_STATES = ("idle", "working", "draining", "silent", "refused")
"""What a `WorkerView` says of a worker; `silent`: nothing comes from it."""

_LIST = 262_144  # letters: enough for a whole university


class Action(StrEnum):
    """What an instructor can have done.

    Attributes:
        status: nothing; `done` says how far the competitions are.
        pause: no new matches begin.
        resume: they begin again.
        stop: the competition ends for good; its open matches are void.
        void: a match does not count and is played again; or, with `since`, nothing: `done` has the
            verdicts that could be taken back so.
        remove: a bot is out, like an offender.
        start: a competition begins now.
        import: a class is put on the roster.
        rename: an owner on the roster gets another name.
        unlist: an owner is taken off the roster.
        log: nothing; `done` has the arena's latest log lines.
        workers: nothing; `done` has the machines that play matches for the arena.
        drain: a worker begins no more matches; what it has begun is played to its end.
        undrain: it takes matches again.
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
    WORKERS = "workers"
    DRAIN = "drain"
    UNDRAIN = "undrain"


class Unplayed(StrEnum):
    """What becomes of results that were made void after the end, if they are not played again.

    Attributes:
        before: they count as they did before.
        void: they stay void.
    """

    BEFORE = "before"
    VOID = "void"


class Instruct(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="instruct"):
    """An instruction, in the place of `hello`; answered with `done` or `refused`.

    Attributes:
        protocol: the version of the protocol: 1.
        token: the instructor's.
        action: what is to be done, a word of the table below.
        competition: its id, or the name of its run; without it `pause`, `resume` and `stop` are
            about all that are running, `remove` about all that the bot is in, and `void` with
            `since` about all. For `start`: the name of a run, which begins now whatever its time
            is, or of a game, which the connected bots play.
        match: for `void`: the id of a match, not of a seat.
        bot: for `remove`: its name; for `rename` and `unlist`: a name on the roster.
        form: for `start` of a game: `round_robin`, `elimination`, `league` or `ladder`; without it
            the usual one of the game.
        matches: for `start` of a game: how often each two meet, or each bot the dealer.
        settings: for `start` of a game: settings that differ from the defaults.
        text: for `import`: a CSV with the column `name` and optional columns `email` and `team`;
            for `rename`: the new name.
        worker: for `drain` and `undrain`: its name.
        since: for `void`, in the place of `match`: a time in Unix seconds. The verdicts `absent`
            and `disconnect` from then on are listed.
        until: for `void` with `since`: the end of that time; without it now.
        unplayed: for `stop` of a competition that was over and goes on: what becomes of the results
            that were made void and are not played again, `before` or `void`.
        from_running: for `unlist`: whether the owner's bots are first removed from the competitions
            that are not over. Otherwise a name that is in use is refused.
    """

    protocol: int
    token: Annotated[str, Meta(max_length=256)]
    action: Action
    competition: Id | None = None
    match: Id | None = None
    bot: Name | None = None
    form: Id | None = None
    matches: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    settings: dict[str, Plain] | None = None
    text: Annotated[str, Meta(max_length=_LIST)] | None = None
    worker: Name | None = None
    since: float | None = None
    until: float | None = None
    unplayed: Unplayed | None = None
    from_running: bool | None = None


class Progress(Struct, frozen=True):
    """How far a competition is.

    Attributes:
        competition: its id.
        run: the name of its run.
        game: the name of the game.
        form: its form.
        state: `running` or `paused`.
        settled: how many of its matches are done.
        scheduled: how many matches it has.
        left_s: an estimate in seconds, `null` while there is nothing to base one on.
        waits_for: the names of bots that are away.
        reopened: whether it was over and goes on, as matches of it were made void: nobody is
            absent from it, and `stop` needs `unplayed`.
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
    reopened: bool = False


class WorkerView(Struct, frozen=True):
    """A machine that plays matches for the arena.

    Attributes:
        name: its name.
        state: `idle`, `working`, `draining`, `refused`, or `silent` if nothing comes from it.
        why: one line why it is refused.
        running: how many matches it plays now.
        slots: how many it takes at once.
        played: how many it has played since it was started.
        cores: how many it uses.
        speed: of a core, in calibrations a second, measured while it was idle.
        memory_mib: its memory.
        lag_ms: how late its event loop has been lately.
        system: its system and architecture.
        isolation: how bots are isolated there; empty if they are not.
        languages: in which it plays programs that were handed in.
        games: which it plays.
        last_error: its latest fault; empty if there was none.
        seen_s: for how long nothing has come from it.
    """

    name: str
    state: str
    why: str
    running: int
    slots: int
    played: int
    cores: int
    speed: float
    memory_mib: int
    lag_ms: float
    system: str
    isolation: str
    languages: tuple[str, ...]
    games: tuple[str, ...]
    last_error: str
    seen_s: float


class LostAttempt(Struct, frozen=True):
    """A match that a worker began and whose result does not count or has not come.

    Attributes:
        match: its id.
        competition: its id; empty for a match of no competition.
        players: names, by seat.
        worker: the name of the worker.
        state: `lost`: it may still come; `void`: it will never count.
        why: one line.
        at: when it was announced, in Unix seconds.
    """

    match: str
    competition: str
    players: tuple[str, ...]
    worker: str
    state: str
    why: str
    at: float


class TimedVerdict(Struct, frozen=True):
    """A verdict of the time that was asked for.

    Attributes:
        competition: its id.
        match: the id of the match.
        bot: who was absent, or lost its connection.
        kind: `absent` or `disconnect`.
        at: when that was ruled, in Unix seconds.
        text: the reason of the verdict.
        refusal: why the match cannot be made void; empty if it can.
    """

    competition: str
    match: str
    bot: str
    kind: str
    at: float
    text: str
    refusal: str = ""


class Done(Struct, frozen=True, tag_field="type", tag="done"):
    """The result of an `instruct`.

    Attributes:
        text: what has been done.
        competitions: how far each is then.
        tokens: after `import`: the name and the token of each new owner; they are sent only once.
        lines: after `log`: the arena's latest log lines, oldest first; after `status`: what runs
            and competitions that were over wait for.
        workers: after `workers`, `drain` and `undrain`: the machines that play for the arena.
        lost: after `workers`: the latest matches of workers without a result, the latest first.
        verdicts: after `void` with `since`: the verdicts of that time, the first one first.
    """

    text: str
    competitions: tuple[Progress, ...] = ()
    tokens: tuple[tuple[str, str], ...] = ()
    lines: tuple[str, ...] = ()
    workers: tuple[WorkerView, ...] = ()
    lost: tuple[LostAttempt, ...] = ()
    verdicts: tuple[TimedVerdict, ...] = ()
