"""Whether a transcript is true: followed message by message, beside the rules that are played again.

Every message must come when it may, and all that the arena says about the match must be what the rules make of the cards and the answers.
What no record has is taken as it stands: ids, sessions, limits, what is left in the bank, and the measurements of a verdict. A transcript is a
stranger's here: whatever is wrong with it is a reason, and nothing is raised. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from arena.engine.match import Record
from arena.records.seat_transcript import SeatTranscript, ended, invitation, told
from arena.records.transcript import Event, Heading, Line, Side, Transcript, canonical
from protocol import messages
from protocol.codec import Encoding, decode_from_arena, decode_from_bot, encode
from protocol.errors import ArenaError, IllegalAnswer, in_words, one_line
from protocol.messages import (
    Answer,
    ArenaMessage,
    Ask,
    BotMessage,
    Ending,
    Goodbye,
    Hello,
    Limits,
    Over,
    Past,
    Ready,
    Refused,
    Verdict,
    Welcome,
)
from protocol.session import Session, ask_id
from protocol.vocabulary import shorten

__all__ = ["check"]

_CUT = 160  # of a value that is not what it has to be


def check(transcript: Transcript) -> tuple[str, ...]:
    """What is not as it has to be, in words; empty if all is. The first line that does not fit is the last that is looked at."""
    heading = transcript.heading
    try:
        heard = told(_record(heading), heading.seat)
    except Exception as error:  # a stranger's heading may be broken in any way
        return (f"its match cannot be played again: {_said(error)}",)
    reasons = _seating(heading, heard)
    if reasons:
        return tuple(reasons)
    reasons = _heading(heading, heard)
    follower = _Follower(heading, heard)
    for number, line in enumerate(transcript.lines, start=2):
        try:
            follower.follow(line)
        except Exception as error:  # the same for its lines
            return (*reasons, f"line {number}: {one_line(_said(error))}")
    if not follower.is_over:
        reasons.append("it ends before `over`")
    return tuple(reasons)


class _Deviation(ArenaError):
    """A line is not what it has to be; says in what."""


def _said(error: Exception) -> str:
    """What is wrong; our own errors say it in words of ours."""
    return str(error) if isinstance(error, ArenaError) else in_words(error)


def _record(heading: Heading) -> Record:
    """The match of a heading, as far as it matters what is told."""
    return Record(
        game=heading.game,
        settings=heading.settings,
        seed=heading.seed,
        nonces=heading.nonces,
        decks=None if heading.seed is not None else heading.decks,
        answers=heading.answers,
        scores=heading.scores,
        points=(),
        termination=heading.termination,
    )


def _seating(heading: Heading, heard: SeatTranscript) -> list[str]:
    """Why nobody can have sat so."""
    reasons = []
    seats = len(heard.scores)
    if len(heading.players) != seats:
        reasons.append(f"it has {len(heading.players)} players for {seats} seats")
    if not 0 <= heading.seat < seats:
        reasons.append(f"its seat is {heading.seat}, expected 0 to {seats - 1}")
    ended = heading.termination
    if ended.is_offence != (ended.seat is not None):
        reasons.append(f"it says {ended.kind} with `seat` {shorten(ended.seat)}")
    elif ended.seat is not None and not 0 <= ended.seat < seats:
        reasons.append(f"it says {ended.kind} of seat {ended.seat}, of {seats}")
    return reasons


def _heading(heading: Heading, heard: SeatTranscript) -> list[str]:
    """What in a heading does not fit the match that it makes."""
    reasons = []
    if heading.decks != heard.decks:
        reasons.append("its decks are not what seed and nonces deal")
    if heading.scores != heard.scores:
        made = shorten(list(heard.scores))
        reasons.append(f"its scores say {shorten(list(heading.scores))}, the answers make {made}")
    return reasons


class _Follower:
    """Where a conversation stands.

    Attributes:
        is_over: whether it has come to its end.
    """

    def __init__(self, heading: Heading, heard: SeatTranscript) -> None:
        self.is_over = False
        self._heading, self._told = heading, heard
        self._session = Session()
        self._welcome: Welcome | None = None
        self._match: messages.Match | None = None
        self._invited = self._ready = False  # over this connection; ever
        self._answered = 0  # of our questions, legally
        self._owed = 0  # how many of them have still to be told again
        self._ask: Ask | None = None  # the one that waits
        self._refusal: Refused | None = None  # what has to be said next
        self._offence = ""  # the words of an answer that was not legal
        self._bank_ms: int | None = None

    def follow(self, line: Line) -> None:
        """One line more.

        Raises:
            _Odd: it is not what it has to be.
            ProtocolError: it is no message, or may not be said now.
        """
        if self.is_over:
            raise _Deviation("it goes on after `over`")
        if line.side is Side.EVENT:
            self._event(msgspec.json.decode(line.text, type=Event))
        elif line.side is Side.BOT:
            [said] = decode_from_bot(line.text, Encoding.JSON)
            self._note(said)
            _same(line.text, canonical(said))
            self._bot(said)
        else:
            [heard] = decode_from_arena(line.text, Encoding.JSON, lambda match: self._heading.game)
            self._note(heard)
            self._arena(heard, line.text)

    def _note(self, message: BotMessage | ArenaMessage) -> None:
        """Raises OutOfTurn for what may not be said now."""
        self._session.note(message)
        if self._refusal is not None and not isinstance(message, Refused):
            raise _Deviation("expected `refused` after an answer that is not legal")
        if self._offence and not isinstance(message, Over):
            raise _Deviation("expected `over` after an answer that is not legal")

    def _event(self, event: Event) -> None:
        if event is not Event.UNKNOWN:
            self._session.disconnected()
            self._invited = False
            return
        ended = self._heading.termination
        if self._ask is None:
            raise _Deviation("expected a question that waits")
        if (ended.kind, ended.seat) != (Ending.ILLEGAL, self._heading.seat):
            raise _Deviation("the match did not end by an answer of this seat's")
        self._offence = ended.text

    # --- what the bot says ---

    def _bot(self, message: BotMessage) -> None:
        match message:
            case Hello():
                self._hello(message)
            case Ready():
                self._ready = True
                nonces = self._heading.nonces
                if nonces:
                    _equal("nonce", message.nonce, nonces[self._heading.seat])
            case Answer() if self._ask is not None and message.ask == self._ask.ask:
                self._answer(message, self._ask)
            case Answer() | Goodbye():
                pass  # an answer that is repeated counts once
            case _:
                raise _Deviation("expected a message of a bot that plays")

    def _hello(self, hello: Hello) -> None:
        if self._heading.game not in hello.games:
            raise _Deviation(f"expected `games` with {self._heading.game}")
        session = None if self._welcome is None else self._welcome.session
        _equal("resume", hello.resume, session)
        if hello.from_ is not None:
            self._owed = max(0, self._answered - hello.from_)

    def _answer(self, answer: Answer, ask: Ask) -> None:
        try:
            given = ask.question.check(answer.value)
        except IllegalAnswer as error:
            text = str(error)
            if self._welcome is not None and self._welcome.practice:
                self._refusal = Refused("illegal", text, ask.match, ask.ask, ask.question.choices)
            else:
                self._offence = f"seat {self._heading.seat + 1} {text}"
            return
        number = self._told.asked[self._answered].answer
        if number is None:
            raise _Deviation("the match has no answer to this question")
        recorded = ask.question.check(self._heading.answers[number])
        _equal("value", answer.value, msgspec.to_builtins(recorded), given == recorded)
        self._answered += 1
        self._ask = None

    # --- what the arena says ---

    def _arena(self, message: ArenaMessage, text: bytes) -> None:
        match message:
            case Welcome():
                _same(text, encode(message, Encoding.JSON))
                _equal("bot", message.bot, self._heading.players[self._heading.seat])
                self._welcome = message
            case messages.Match():
                self._invitation(message, text)
            case Ask():
                self._asked(message, text)
            case Past():
                self._past(text)
            case Refused(ask=str()):
                if self._refusal is None:
                    raise _Deviation("nothing was said that could be refused")
                _same(text, encode(self._refusal, Encoding.JSON))
                self._refusal = None
            case Over():
                self._over(message, text)
            case _:
                raise _Deviation("expected a message about a match")

    def _invitation(self, match: messages.Match, text: bytes) -> None:
        first = self._match or match
        expected = msgspec.structs.replace(
            invitation(self._heading, first.match, first.limits), page=first.page
        )
        _same(text, encode(expected, Encoding.JSON))
        self._match = first
        self._invited = True

    def _limits(self) -> Limits:
        assert self._match is not None, "the session lets nothing else come first"
        return self._match.limits

    def _asked(self, ask: Ask, text: bytes) -> None:
        self._told_all()
        self._is_invited()
        if self._ask is not None:  # it comes again after a lost connection
            _same(text, encode(self._ask, Encoding.JSON))
            return
        if self._answered == len(self._told.asked):
            raise _Deviation("the match has no question more for this seat")
        limits = self._limits()
        most_ms = limits.bank_ms if self._bank_ms is None else self._bank_ms
        if not 0 <= ask.bank_ms <= most_ms:
            raise _Deviation(f"`bank_ms` is {ask.bank_ms}, expected 0 to {most_ms}")
        self._bank_ms = ask.bank_ms
        told_now = self._told.asked[self._answered]
        expected = Ask(
            self._chair(),
            ask_id(self._chair(), self._answered + 1),
            told_now.question,
            told_now.news,
            ask.bank_ms,
            limits.decision_ms,
        )
        _same(text, encode(expected, Encoding.JSON))
        self._ask = expected

    def _past(self, text: bytes) -> None:
        if not self._owed:
            raise _Deviation("expected no more of what was before")
        self._is_invited()
        number = self._answered - self._owed
        before = self._told.asked[number]
        assert before.answer is not None, "it was answered: it is counted"
        self._owed -= 1
        self._invited = self._owed > 0  # once more, before it goes on
        expected = Past(
            self._chair(),
            ask_id(self._chair(), number + 1),
            before.question,
            before.news,
            before.question.check(self._heading.answers[before.answer]),
        )
        _same(text, encode(expected, Encoding.JSON))

    def _over(self, over: Over, text: bytes) -> None:
        if self._match is None:
            raise _Deviation("expected `match` before `over`")
        self._told_all()
        if self._told.decks and not self._ready:
            raise _Deviation("expected `ready`, without which nothing is dealt")
        asked = self._told.asked
        due = len(asked) - sum(one.answer is None for one in asked)
        if self._answered < due:
            raise _Deviation(f"expected {due} answers before `over`, got {self._answered}")
        heading, verdict = self._heading, over.verdict
        why = heading.termination
        is_mine = (why.kind, why.seat) == (Ending.ILLEGAL, heading.seat)
        if self._offence and not is_mine:
            raise _Deviation(f"it says {why.kind} after an answer that is not legal")
        if is_mine:
            _equal("text", why.text, self._offence)
        expected = ended(heading, self._chair(), self._told.news, verdict)
        _same(text, encode(expected, Encoding.JSON))
        if why.is_offence and why.seat == heading.seat and verdict is not None:
            self._ruled(verdict)
        elif verdict is not None:
            raise _Deviation("`verdict` is there for a seat that did nothing")
        self.is_over = True

    def _ruled(self, verdict: Verdict) -> None:
        """Compare what a verdict says beside what it has measured."""
        heading, ask = self._heading, self._ask
        question = None if ask is None else ask.question
        expected = {
            "kind": heading.termination.kind,
            "text": heading.termination.text,
            "game": heading.game,
            "bot": heading.players[heading.seat],
            "seat": heading.seat,
            "asked": question and msgspec.json.encode(question).decode(),
            "legal": question and question.legal_text(),
            "limits": self._limits(),
        }
        for name, value in expected.items():
            _equal(f"verdict.{name}", getattr(verdict, name), value)

    def _told_all(self) -> None:
        if self._owed:
            raise _Deviation(f"expected {self._owed} more of what was before")

    def _is_invited(self) -> None:
        if not self._invited:
            raise _Deviation("expected `match` once more after a lost connection")

    def _chair(self) -> str:
        assert self._match is not None, "the session lets nothing else come first"
        return self._match.match


def _equal(what: str, got: object, expected: object, holds: bool | None = None) -> None:
    """Raises _Odd if one field is not what it has to be."""
    if got != expected if holds is None else not holds:
        raise _Deviation(f"`{what}` is {shorten(got, _CUT)}, expected {shorten(expected, _CUT)}")


def _same(text: bytes, expected: bytes) -> None:
    """Raises _Odd if one message is not the other, in whatever order their fields stand; it says which field it is."""
    got, wanted = (msgspec.json.decode(one) for one in (text, expected))
    if _written(got) == _written(wanted):
        return
    for name in {**wanted, **got}:
        mine, theirs = (one.get(name, _MISSING) for one in (got, wanted))
        if _written(mine) != _written(theirs):
            _equal(name, mine, theirs, False)


_MISSING: Any = "nothing"
_written: Callable[[Any], bytes] = msgspec.json.Encoder(order="sorted").encode
"""Tells 4 from 4.0 and true from 1, as comparing does not."""
