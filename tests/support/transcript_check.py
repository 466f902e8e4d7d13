"""Reads a transcript, and follows it message by message beside a replay of the rules.

Every message must come when it may, and what the arena says about the match must be what the rules
make of the cards and the answers. Values that no record has are taken as they stand: ids, sessions,
limits, the time left in the bank, and the measurements of a verdict.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from arena.games.match import Record
from arena.games.replay import replay
from arena.records.seat_document import seat_match
from arena.records.transcript import (
    Event,
    Heading,
    Line,
    Side,
    Transcript,
    canonical,
    ended,
    heading_of,
    invitation,
)
from protocol import messages
from protocol.codec import Encoding, decode_from_arena, decode_from_bot, encode
from protocol.errors import IllegalAnswer
from protocol.messages import ArenaMessage, BotMessage, Ending
from protocol.session import Session, ask_id
from protocol.vocabulary import News, Question

__all__ = ["check", "read"]


def read(lines: Iterable[bytes]) -> Transcript:
    """A transcript from the lines of its file."""
    first, *others = lines
    said = []
    for line in others:
        [(side, raw)] = msgspec.json.decode(line, type=dict[Side, msgspec.Raw]).items()
        said.append(Line(side, bytes(raw)))
    return Transcript(msgspec.json.decode(first, type=Heading), tuple(said))


def check(transcript: Transcript) -> None:
    """Raise what a line raises that does not fit, mostly AssertionError, with its number."""
    follower = _TranscriptFollower(transcript.heading)
    for number, line in enumerate(transcript.lines, start=2):
        try:
            follower.follow(line)
        except Exception as error:
            error.add_note(f"line {number}: {line.text.decode()}")
            raise
    assert follower.is_over, "it ends before `over`"


class _TranscriptFollower:
    """The state of a conversation; `is_over` after its end."""

    def __init__(self, heading: Heading) -> None:
        record = Record(
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
        assert heading == heading_of(record, heading.players, heading.seat, heading.about)
        assert heading.scores == replay(record).scores
        assert heading.termination.is_offence == (heading.termination.seat is not None)
        played = seat_match(record, heading.seat)
        # Each question with the news before it, and the index of its answer.
        self._due: list[tuple[Question[Any], tuple[News, ...], int | None]] = [
            (each.question, each.news, each.index) for each in played.decisions
        ]
        self._rest = played.news
        if played.waiting is not None:
            self._due.append((played.waiting, played.news, None))
            self._rest = ()
        self.is_over = False
        self._heading = heading
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
        assert not self.is_over, "it goes on after `over`"
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
        self._session.note(message)
        assert self._refusal is None or isinstance(message, messages.Refused)
        assert not self._offence or isinstance(message, messages.Over)

    @property
    def _is_illegal(self) -> bool:
        """Whether this seat's illegal answer ended the match."""
        ended = self._heading.termination
        return (ended.kind, ended.seat) == (Ending.ILLEGAL, self._heading.seat)

    def _event(self, event: Event) -> None:
        if event is Event.UNKNOWN:
            assert self._ask is not None, "expected a question that waits"
            assert self._is_illegal
            self._offence = self._heading.termination.text
        else:
            self._session.disconnected()
            self._invited = False

    # --- the bot's messages ---

    def _bot(self, message: BotMessage) -> None:
        heading, ask = self._heading, self._ask
        match message:
            case messages.Hello():
                assert heading.game in message.games
                assert message.resume == (self._welcome and self._welcome.session)
                if message.from_ is not None:
                    self._owed = max(0, self._answered - message.from_)
            case messages.Ready():
                self._ready = True
                assert message.nonce == heading.nonces[heading.seat]
            case messages.Answer() if ask is not None and message.ask == ask.ask:
                self._answer(message, ask)
            case _:  # a repeated answer counts once
                assert isinstance(message, messages.Answer | messages.Goodbye), message

    def _answer(self, answer: messages.Answer, ask: messages.Ask) -> None:
        try:
            given = ask.question.check(answer.value)
        except IllegalAnswer as error:
            if self._welcome is not None and self._welcome.practice:
                self._refusal = messages.Refused(
                    "illegal", str(error), ask.match, ask.ask, ask.question.choices
                )
            else:
                self._offence = f"seat {self._heading.seat + 1} {error}"
            return
        assert given == self._legal(self._answered)
        self._answered += 1
        self._ask = None

    def _legal(self, number: int) -> Any:
        """The recorded answer to a question of this seat."""
        question, _, index = self._due[number]
        assert index is not None, "the match has no answer to this question"
        return question.check(self._heading.answers[index])

    # --- the arena's messages ---

    def _arena(self, message: ArenaMessage, text: bytes) -> None:
        match message:
            case messages.Welcome():
                _same(text, encode(message, Encoding.JSON))
                assert message.bot == self._heading.players[self._heading.seat]
                self._welcome = message
            case messages.Match():
                first = self._match or message
                expected = invitation(self._heading, first.match, first.limits)
                _same(text, encode(msgspec.structs.replace(expected, page=first.page), _JSON))
                self._match = first
                self._invited = True
            case messages.Refused(ask=str()):
                assert self._refusal is not None, "nothing was said that could be refused"
                _same(text, encode(self._refusal, _JSON))
                self._refusal = None
            case messages.Ask() | messages.Past() | messages.Over():
                assert self._match is not None, "expected `match` before"
                assert self._invited or isinstance(message, messages.Over)
                self._about(message, self._match, text)
            case _:
                raise AssertionError(f"expected a message about a match, got {message}")

    def _about(
        self,
        message: messages.Ask | messages.Past | messages.Over,
        invited: messages.Match,
        text: bytes,
    ) -> None:
        match, limits = invited.match, invited.limits
        if isinstance(message, messages.Past):
            assert self._owed, "expected no more of what was before"
            number = self._answered - self._owed
            self._owed -= 1
            self._invited = self._owed > 0  # `match` comes once more, before the match goes on
            question, news, _ = self._due[number]
            ask, answer = ask_id(match, number + 1), self._legal(number)
            _same(text, encode(messages.Past(match, ask, question, news, answer), _JSON))
            return
        assert not self._owed, "expected more of what was before"
        if isinstance(message, messages.Over):
            self._over(message, match, text)
        elif self._ask is not None:  # it comes again after a lost connection
            _same(text, encode(self._ask, _JSON))
        else:
            most_ms = limits.bank_ms if self._bank_ms is None else self._bank_ms
            assert 0 <= message.bank_ms <= most_ms
            self._bank_ms = message.bank_ms
            question, news, _ = self._due[self._answered]
            ask, times = ask_id(match, self._answered + 1), (message.bank_ms, limits.decision_ms)
            self._ask = messages.Ask(match, ask, question, news, *times)
            _same(text, encode(self._ask, _JSON))

    def _over(self, over: messages.Over, match: str, text: bytes) -> None:
        heading, verdict, why = self._heading, over.verdict, self._heading.termination
        assert self._ready or not heading.decks, "without `ready` nothing is dealt"
        assert self._answered == sum(index is not None for _, _, index in self._due)
        assert self._is_illegal or not self._offence
        assert not self._is_illegal or why.text == self._offence
        _same(text, encode(ended(heading, match, self._rest, verdict), _JSON))
        if verdict is not None:
            assert why.seat == heading.seat, "`verdict` is there for a seat that did nothing"
            question = None if self._ask is None else self._ask.question
            asked = question and msgspec.json.encode(question).decode()
            assert (verdict.kind, verdict.text) == (why.kind, why.text)
            assert (verdict.game, verdict.seat) == (heading.game, heading.seat)
            assert verdict.bot == heading.players[heading.seat]
            assert (verdict.asked, verdict.legal) == (asked, question and question.legal_text())
            assert self._match is not None
            assert verdict.limits == self._match.limits
        self.is_over = True


_JSON = Encoding.JSON


def _same(text: bytes, expected: bytes) -> None:
    """Two messages are the same, in whatever order their fields are; 4 is not 4.0."""
    got, wanted = (_SORTED.encode(msgspec.json.decode(each)) for each in (text, expected))
    assert got == wanted, f"expected {wanted.decode()}"


_SORTED = msgspec.json.Encoder(order="sorted")
