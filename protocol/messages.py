"""The messages of a session: what a bot and the arena say around a game's questions and news.

One struct per message, `type` on the wire; a union per direction. An instructor's messages are in
`protocol/instructions.py`, limits and offences in `protocol/verdicts.py`; all can be imported from
here. The arena refuses fields that it does not know; bots ignore them. Strings that a bot sends
have a limit in the type, so that nothing longer gets past the codec.

`python -m protocol.schema` puts the text under `Attributes:`, here and in the games, into the pages
beside this file and into the schemas. So it is written for readers with any language, in the wire's
words (`null`, not None). There `see "Time"` becomes a link.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, field

from protocol.errors import UsageError
from protocol.field_types import Id, Name, Nonce, Note, Value
from protocol.instructions import Action, Done, Instruct, Progress
from protocol.verdicts import LAUNCHED_LIMITS, Ending, Limits, Mechanism, Termination, Verdict
from protocol.vocabulary import News, Question

__all__ = [
    "CLOSE_CRASHED",
    "CLOSE_DONE",
    "CLOSE_OVERSIZE",
    "CLOSE_PROTOCOL",
    "CLOSE_REFUSED",
    "CLOSE_REPLACED",
    "CLOSE_RESTART",
    "FAILED",
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
    "FinalStanding",
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
"""The arena is closing, or has received `goodbye`."""
CLOSE_PROTOCOL = 1002
"""The arena: the bot broke the protocol; `refused` has said how."""
CLOSE_OVERSIZE = 1009
"""The arena: the frame was too large; `refused` has said so."""
CLOSE_CRASHED = 1011
"""The side that closes has failed. A bot that closes so has crashed, and its reason goes into the
verdict. Unless it says `failed:`, it has lost its connection if a keepalive failed or the arena
stood still.
"""
FAILED = "failed:"
"""Begins the reason of a 1011 from a bot that has certainly failed."""
# In the reason of a 1011 from a bot, in upper or lower case: its library gave the link up, which is
# a lost connection and no crash (J7).
KEEPALIVE_REASONS = ("keepalive", "ping timeout", "pong timeout", "heartbeat")
CLOSE_RESTART = 1012
"""The arena stops during or just before a competition, and will go on with it: reconnect."""
CLOSE_REPLACED = 4000
"""The arena: the session goes on over another connection."""
CLOSE_REFUSED = 4001
"""The arena: `hello` was not accepted; `refused` has said why."""


class Hello(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="hello"):
    """A bot's first message: who it is and what it can do.

    Attributes:
        protocol: the version of the protocol: 1.
        name: the bot's name: printable characters, no space at either end; no other bot that is
            present may have it, or one that looks like it.
        games: the names of the games that it plays, at least one.
        token: the token from the instructor, or from `ARENA_TOKEN` for a bot that the arena has
            started. It proves who the bot is, see "Names and tokens". Without a roster and on the
            same machine it may be left out, or be any text, which then belongs to the session.
        tables: how many matches it plays at once.
        batch: whether it reads frames that hold an array of messages.
        resume: the `session` of the last `welcome`, to go on after a lost connection.
        from: with `resume`: how many questions of every match the bot remembers; those after them
            come again as `past`. Left out: it remembers all.
        client: the name of its library, for the log.
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
        """Refuse names with invisible characters, which disturb a terminal or look like others.

        Raises:
            UsageError: `name` or `client` has some; the codec reports it as `Malformed`.
        """
        for text in (self.name, self.client or ""):
            if not text.isprintable() or text != text.strip():
                raise UsageError(
                    f"expected a name of printable letters, not framed by spaces, got {text!r}"
                )


class Ready(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="ready"):
    """The bot is ready to play.

    Attributes:
        match: from `match`.
        nonce: a text of your own, from which the cards are drawn, too (J6).
    """

    match: Id
    nonce: Nonce


class Answer(
    Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag_field="type", tag="answer"
):
    """A decision.

    Attributes:
        match: from `ask`.
        ask: from `ask`.
        value: the answer; the question decides whether it is legal. Maps and lists in it may be
            nested four deep.
        note: a text of your own; stored in the record, up to 256 KiB per match, and shown to nobody
            else while the competition lasts.
    """

    match: Id
    ask: Id
    value: Value
    note: Note | None = None


class Goodbye(
    Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="type",
    tag="goodbye",
):
    """The bot leaves for good and wants no more matches.

    Attributes:
        finish: whether it first plays the matches that are on to their end, see "Leaving". Only for
            an arena whose `welcome` has `finish`.
    """

    finish: bool = False


class Welcome(Struct, frozen=True, tag_field="type", tag="welcome"):
    """The answer to `hello`.

    Attributes:
        protocol: the version of the protocol: 1.
        bot: the bot's name here, which may differ from its `hello`.
        session: a secret for `resume`, new with every `welcome`.
        limits: those in force, see "Time" and "Space".
        practice: whether illegal answers are refused instead of ending the match, see "Practice".
        finish: whether the arena knows the field `finish` of `goodbye`.
        note: what the bot's author should know, in a line for people.
    """

    protocol: int
    bot: str
    session: str
    limits: Limits
    practice: bool = False
    finish: bool = False
    note: str | UnsetType = UNSET


class Match(Struct, frozen=True, omit_defaults=True, tag_field="type", tag="match"):
    """A seat in a match: answer with `ready`.

    Attributes:
        match: the id of *this seat in this match*; every message about it has it.
        game: the name of the game.
        seat: the bot's seat, from 0.
        seats: the names of all players, by seat.
        settings: all settings of the game.
        limits: those of this match.
        commitment: the hash of the seed of the cards (J6).
        page: where a browser shows this match, as an absolute path at the arena's address:
            `/#/m/4e56d80d-1`. Left out if the arena has no page.
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
    """A question, with the news of its seat since its last answer: answer with `answer`.

    On the wire the question's own fields stand directly in the message, between `ask` and `news`.

    Attributes:
        match: the id of the seat that is asked.
        ask: the id of the question.
        question: the fields of its kind, see "The games".
        kind: the kind of question; each game has its own.
        legal: the answers that are legal, see "What is legal".
        news: what this seat has learnt since its last answer, in order, each with its own `kind`.
        bank_ms: what is left in the bank, see "Time".
        decision_ms: how long the decision may take at no cost.
    """

    match: str
    ask: str
    question: Question[Any]
    news: tuple[News, ...]
    bank_ms: int
    decision_ms: int


class Past(Struct, frozen=True, gc=False):
    """An earlier question, not to be answered; only after `hello` with `from`. See "Lost memory".

    On the wire it is like an `ask`, with `answer` in the place of the times.

    Attributes:
        match: the id of the seat that was asked.
        ask: the id of the question.
        question: the fields of its kind, see "The games".
        kind: the kind of question.
        legal: the answers that were legal.
        news: what this seat had learnt since the answer before, in order.
        answer: the bot's answer.
    """

    match: str
    ask: str
    question: Question[Any]
    news: tuple[News, ...]
    answer: Any


class Reveal(Struct, frozen=True):
    """What the cards were drawn from (J6).

    Attributes:
        seed: the seed, 32 bytes in hex.
        nonces: by seat; empty for one that was never ready.
    """

    seed: str
    nonces: tuple[str, ...]


class FinalStanding(Struct, frozen=True, kw_only=True):
    """How a bot stands when a competition or a ladder is over, or the bot leaves a ladder.

    Attributes:
        competition: its id.
        run: the name of its run in the instructor's file; empty without one.
        game: the name of the game.
        rank: the bot's, from 1, shared by equals; `null` if it is out or nothing of it counts.
        players: how many bots took part.
        score: per match in a round robin, or the share won in one that is played until it is
            settled; the measure of a league; the rating on a ladder; in the final of an
            elimination. `null` without one.
        interval: the two ends of a 95 % interval of the score; `null` where there is none.
        text: all of it in a line for people.
        page: where a browser shows the competition, as an absolute path at the arena's address;
            `null` if the arena has no page.
    """

    competition: str
    run: str
    game: str
    rank: int | None
    players: int
    score: float | None
    interval: tuple[float, float] | None
    text: str
    page: str | None


class Over(Struct, frozen=True, tag_field="type", tag="over"):
    """The match is over; or, with a `standing`, a competition is.

    Attributes:
        match: the id of the seat; with a `standing`, the id of the competition.
        news: what this seat has not been told yet, in order.
        scores: the result, by seat.
        termination: why the match stopped.
        reveal: what the cards were drawn from.
        verdict: the evidence, if you are to blame, see "Verdicts"; else `null`.
        standing: how you stand in a competition that is over, see "The end of a competition".
    """

    match: str
    news: tuple[News, ...]
    scores: tuple[int, ...]
    termination: Termination
    reveal: Reveal | None
    verdict: Verdict | None = None
    standing: FinalStanding | UnsetType = UNSET


class Refused(Struct, frozen=True, tag_field="type", tag="refused"):
    """The arena does not accept a message, and says why.

    Attributes:
        code: a word for programs, see "What goes wrong".
        text: a sentence for people.
        match: the id of the seat that it was about; else `null`.
        ask: in practice: the question that still waits, and whose time runs on; else `null`.
        legal: in practice: the legal answers; else `null`.
    """

    code: str
    text: str
    match: str | None = None
    ask: str | None = None
    legal: Any = None


BotMessage: TypeAlias = Hello | Instruct | Ready | Answer | Goodbye
ArenaMessage: TypeAlias = Welcome | Match | Ask | Past | Over | Refused | Done
