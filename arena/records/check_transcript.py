"""Checks a transcript, message by message, against a replay of the rules.

Every message must come when it may, and what the arena says about the match must be what the rules
make of the cards and the answers. Values that no record has are taken as they stand: ids, sessions,
limits, the time left in the bank, and the measurements of a verdict. What does not fit is a reason;
nothing is raised, however broken a stranger's transcript is. Pure.
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
from protocol.messages import ArenaMessage, BotMessage, Ending, Verdict
from protocol.session import Session, ask_id
from protocol.vocabulary import shorten

__all__ = ["check"]

_CUT = 160  # most letters of a wrong value


def check(transcript: Transcript) -> tuple[str, ...]:
    """What does not fit, in words; the check stops at the first line that does not."""
    heading = transcript.heading
    try:
        heard = told(_record(heading), heading.seat)
    except Exception as error:  # a stranger's heading may be broken in any way
        return (f"its match cannot be played again: {_reason(error)}",)
    reasons = _seating(heading, heard)
    if reasons:
        return tuple(reasons)
    reasons = _heading(heading, heard)
    follower = _Follower(heading, heard)
    for number, line in enumerate(transcript.lines, start=2):
        try:
            follower.follow(line)
        except Exception as error:  # so may its lines
            return (*reasons, f"line {number}: {one_line(_reason(error))}")
    if not follower.is_over:
        reasons.append("it ends before `over`")
    return tuple(reasons)


class _Deviation(ArenaError):
    """A line does not fit; the text says how."""


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, ArenaError) else in_words(error)


def _record(heading: Heading) -> Record:
    """The match of a heading, as far as a replay needs it."""
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
        package=heading.package,
    )


def _seating(heading: Heading, heard: SeatTranscript) -> list[str]:
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
    """What the heading says otherwise than the replay of its match."""
    reasons = []
    if heading.decks != heard.decks:
        reasons.append("its decks are not what seed and nonces deal")
    if heading.scores != heard.scores:
        made = shorten(list(heard.scores))
        reasons.append(f"its scores say {shorten(list(heading.scores))}, the answers make {made}")
    return reasons


class _Follower:
    """The state of a conversation; `is_over` after its end."""

    def __init__(self, heading: Heading, heard: SeatTranscript) -> None:
        self.is_over = False
        self._heading, self._told = heading, heard
        self._session = Session()
        self._welcome: messages.Welcome | None = None
        self._match: messages.Match | None = None
        self._invited = self._ready = False  # over this connection; ever
        self._answered = 0  # legal answers so far
        self._owed = 0  # how many answered questions have still to be told again
        self._ask: messages.Ask | None = None  # the one that waits
        self._refusal: messages.Refused | None = None  # the message that has to come next
        self._offence = ""  # the text about an illegal answer
        self._bank_ms: int | None = None

    def follow(self, line: Line) -> None:
        """Check a line; raises _Deviation or ProtocolError if it does not fit."""
        if self.is_over:
            raise _Deviation("it goes on after `over`")
        if line.side is Side.EVENT:
            self._event(msgspec.json.decode(line.text, type=Event))
        elif line.side is Side.BOT:
            [sent] = decode_from_bot(line.text, Encoding.JSON)
            self._note(sent)
            _same(line.text, canonical(sent))
            self._bot(sent)
        else:
            [heard] = decode_from_arena(line.text, Encoding.JSON, lambda match: self._heading.game)
            self._note(heard)
            self._arena(heard, line.text)

    def _note(self, message: BotMessage | ArenaMessage) -> None:
        """Raises OutOfTurn for a message that may not be sent now."""
        self._session.note(message)
        if self._refusal is not None and not isinstance(message, messages.Refused):
            raise _Deviation("expected `refused` after an answer that is not legal")
        if self._offence and not isinstance(message, messages.Over):
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
            raise _Deviation("the match did not end with an illegal answer from this seat")
        self._offence = ended.text

    # --- the bot's messages ---

    def _bot(self, message: BotMessage) -> None:
        match message:
            case messages.Hello():
                self._hello(message)
            case messages.Ready():
                self._ready = True
                nonces = self._heading.nonces
                if nonces:
                    _equal("nonce", message.nonce, nonces[self._heading.seat])
            case messages.Answer() if self._ask is not None and message.ask == self._ask.ask:
                self._answer(message, self._ask)
            case messages.Answer() | messages.Goodbye():
                pass  # a repeated answer counts once
            case _:
                raise _Deviation("expected a message of a bot that plays")

    def _hello(self, hello: messages.Hello) -> None:
        if self._heading.game not in hello.games:
            raise _Deviation(f"expected `games` with {self._heading.game}")
        session = None if self._welcome is None else self._welcome.session
        _equal("resume", hello.resume, session)
        if hello.from_ is not None:
            self._owed = max(0, self._answered - hello.from_)

    def _answer(self, answer: messages.Answer, ask: messages.Ask) -> None:
        try:
            given = ask.question.check(answer.value)
        except IllegalAnswer as error:
            text = str(error)
            if self._welcome is not None and self._welcome.practice:
                self._refusal = messages.Refused(
                    "illegal", text, ask.match, ask.ask, ask.question.choices
                )
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

    # --- the arena's messages ---

    def _arena(self, message: ArenaMessage, text: bytes) -> None:
        match message:
            case messages.Welcome():
                _same(text, encode(message, Encoding.JSON))
                _equal("bot", message.bot, self._heading.players[self._heading.seat])
                self._welcome = message
            case messages.Match():
                self._invitation(message, text)
            case messages.Ask():
                self._asked(message, text)
            case messages.Past():
                self._past(text)
            case messages.Refused(ask=str()):
                if self._refusal is None:
                    raise _Deviation("nothing was said that could be refused")
                _same(text, encode(self._refusal, Encoding.JSON))
                self._refusal = None
            case messages.Over():
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

    def _invited_to(self) -> messages.Match:
        assert self._match is not None, "the session lets no other message come first"
        return self._match

    def _asked(self, ask: messages.Ask, text: bytes) -> None:
        self._check_told()
        self._check_invited()
        if self._ask is not None:  # it comes again after a lost connection
            _same(text, encode(self._ask, Encoding.JSON))
            return
        if self._answered == len(self._told.asked):
            raise _Deviation("the match has no question more for this seat")
        match, limits = self._invited_to().match, self._invited_to().limits
        most_ms = limits.bank_ms if self._bank_ms is None else self._bank_ms
        if not 0 <= ask.bank_ms <= most_ms:
            raise _Deviation(f"`bank_ms` is {ask.bank_ms}, expected 0 to {most_ms}")
        self._bank_ms = ask.bank_ms
        now = self._told.asked[self._answered]
        number = ask_id(match, self._answered + 1)
        expected = messages.Ask(
            match, number, now.question, now.news, ask.bank_ms, limits.decision_ms
        )
        _same(text, encode(expected, Encoding.JSON))
        self._ask = expected

    def _past(self, text: bytes) -> None:
        if not self._owed:
            raise _Deviation("expected no more of what was before")
        self._check_invited()
        number = self._answered - self._owed
        before = self._told.asked[number]
        assert before.answer is not None, "it was answered: it is counted"
        self._owed -= 1
        self._invited = self._owed > 0  # `match` comes once more, before the match goes on
        match = self._invited_to().match
        answer = before.question.check(self._heading.answers[before.answer])
        expected = messages.Past(
            match, ask_id(match, number + 1), before.question, before.news, answer
        )
        _same(text, encode(expected, Encoding.JSON))

    def _over(self, over: messages.Over, text: bytes) -> None:
        if self._match is None:
            raise _Deviation("expected `match` before `over`")
        self._check_told()
        if self._told.decks and not self._ready:
            raise _Deviation("expected `ready`, without which nothing is dealt")
        due = sum(asked.answer is not None for asked in self._told.asked)
        if self._answered < due:
            raise _Deviation(f"expected {due} answers before `over`, got {self._answered}")
        heading, verdict = self._heading, over.verdict
        why = heading.termination
        is_mine = (why.kind, why.seat) == (Ending.ILLEGAL, heading.seat)
        if self._offence and not is_mine:
            raise _Deviation(f"it says {why.kind} after an answer that is not legal")
        if is_mine:
            _equal("text", why.text, self._offence)
        expected = ended(heading, self._match.match, self._told.news, verdict)
        _same(text, encode(expected, Encoding.JSON))
        if why.is_offence and why.seat == heading.seat and verdict is not None:
            self._verdict(verdict)
        elif verdict is not None:
            raise _Deviation("`verdict` is there for a seat that did nothing")
        self.is_over = True

    def _verdict(self, verdict: Verdict) -> None:
        """Check all but its measurements."""
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
            "limits": self._invited_to().limits,
        }
        for name, value in expected.items():
            _equal(f"verdict.{name}", getattr(verdict, name), value)

    def _check_told(self) -> None:
        if self._owed:
            raise _Deviation(f"expected {self._owed} more of what was before")

    def _check_invited(self) -> None:
        if not self._invited:
            raise _Deviation("expected `match` once more after a lost connection")


def _equal(what: str, got: object, expected: object, holds: bool | None = None) -> None:
    """Raises _Deviation if a field has a wrong value."""
    if got != expected if holds is None else not holds:
        raise _Deviation(f"`{what}` is {shorten(got, _CUT)}, expected {shorten(expected, _CUT)}")


def _same(text: bytes, expected: bytes) -> None:
    """Raises _Deviation for the first field in which two messages differ, in whatever order."""
    got, wanted = msgspec.json.decode(text), msgspec.json.decode(expected)
    for name in {**wanted, **got}:
        mine, theirs = got.get(name, _MISSING), wanted.get(name, _MISSING)
        if _sorted(mine) != _sorted(theirs):
            _equal(name, mine, theirs, False)


_MISSING: Any = "nothing"
_sorted: Callable[[Any], bytes] = msgspec.json.Encoder(order="sorted").encode
"""Tells 4 from 4.0 and true from 1, as `==` does not."""
