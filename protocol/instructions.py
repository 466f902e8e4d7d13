"""The messages of an instructor to a running arena, and the arena's answer."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from protocol.field_types import Id, Name, Plain

__all__ = [
    "HOST_STATES",
    "Action",
    "Done",
    "HostView",
    "Instruct",
    "LostBot",
    "Progress",
    "TimedVerdict",
    "Unplayed",
]

HOST_STATES = ("idle", "working", "draining", "silent", "unfit")
"""What a `HostView` says of a host; `silent`: nothing comes from it."""

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
        hosts: nothing; `done` has the machines that run bots for the arena.
        drain: a host takes no more bots, of any arena; matches of those that it has go on.
        undrain: it takes bots again.
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
    HOSTS = "hosts"
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
        host: for `drain` and `undrain`: its name.
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
    host: Name | None = None
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


class HostView(Struct, frozen=True):
    """A machine that runs bots for the arena.

    Attributes:
        host: its name.
        state: `idle` or `working`, `draining` if it takes no more bots, `unfit` if it can run no
            bot of this arena, or `silent` if nothing comes from it.
        why: one line why it is unfit or silent, else its latest fault; empty if there is none.
        cores: how many it shares among its bots.
        memory_mib: its memory.
        bots: how many processes of bots it has, of all arenas.
        own_bots: how many of this arena, with those that start or end.
        room: for how many more there is memory.
        isolation: how bots are isolated there; empty if they are not.
        languages: in which it runs programs that were handed in.
        lag_ms: how late its event loop has been lately.
        version: of Card Arena there.
    """

    host: str
    state: str
    why: str
    cores: int
    memory_mib: int
    bots: int
    own_bots: int
    room: int
    isolation: str
    languages: tuple[str, ...]
    lag_ms: float
    version: str


class LostBot(Struct, frozen=True):
    """How often a bot was lost with a host; nothing is ruled by that.

    Attributes:
        bot: its name.
        lost: how often a process of it was on a host when that was lost.
        of: how often a process of it was started on hosts.
        expected: how often it would have been lost at the rate of all other bots together.
    """

    bot: str
    lost: int
    of: int
    expected: float


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
        hosts: after `hosts`, `drain` and `undrain`: the machines that run bots for the arena.
        lost: after `hosts`: the bots that were lost with a host since the arena was started, those
            first that were lost more often than the others.
        verdicts: after `void` with `since`: the verdicts of that time, the first one first.
    """

    text: str
    competitions: tuple[Progress, ...] = ()
    tokens: tuple[tuple[str, str], ...] = ()
    lines: tuple[str, ...] = ()
    hosts: tuple[HostView, ...] = ()
    lost: tuple[LostBot, ...] = ()
    verdicts: tuple[TimedVerdict, ...] = ()
