"""A match as a text for people, replayed from its record: decisions, legal answers, results.

With `seat`, the text has only what the rules told that seat, which is all that its bot could know.
The words are from the game's vocabulary, or from its `script` if it has one. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from arena.games.catalogue import game_named, other_rules
from arena.games.match import Record
from arena.games.names import versioned
from arena.games.replay import CardsDealt, Event, SeatAnswered, playing_again
from arena.games.rules import EVERYONE, AskSeat, Game, TellSeat
from arena.records.captions import seat_names
from arena.records.seat_document import SeatDocument, seat_events
from protocol.errors import UsageError, error_line, one_line
from protocol.messages import Ending, Verdict
from protocol.vocabulary import News, Question
from protocol.words import Told, gains

__all__ = ["tell"]

_LONG = 100  # decisions from which a match gets an index: too many lines to page through
_NOTE = 200  # shown letters of a note
_LINES = 40  # of an index, at most
_ALL = "everybody"  # the name for all seats


def tell(
    match: Record | SeatDocument,
    players: Sequence[str] = (),
    *,
    seat: int | None = None,
    round_number: int | None = None,
    verdict: Verdict | None = None,
    indexed: bool = False,
) -> Iterator[str]:
    """Tell a match, line by line; with `indexed` a long match begins with an index of its rounds.

    With `seat`, from 0, tell only what that seat could see; with `round_number`, from 1, only that
    round. `players` are the bots' names by seat, if known; `verdict` is the evidence if an offence
    ended the match. A `SeatDocument` is told as its seat saw it. Raises UsageError if there is no
    such seat or round, and ArenaError at the point from which the record cannot be replayed; `arena
    verify` says more.
    """
    if isinstance(match, SeatDocument):
        record, players, seat = match.record, match.players, match.seat - 1
    else:
        record = match
    with playing_again():
        game = game_named(record.game, record.package)
    if seat is not None and not 0 <= seat < game.seats:
        raise UsageError(f"expected a seat from 1 to {game.seats}, got {seat + 1}")
    with playing_again():
        kind = _Narrator if game.script is None else _ScriptNarrator
        events = partial(seat_events, match, seat)
        narrator = kind(game, record, seat_names(players, game.seats), seat, events)
        if round_number is None:
            yield from narrator.heading()
            if indexed:
                yield from narrator.index()
        is_found, last = False, 0
        for number, line in narrator.lines():
            last = max(last, number)
            if round_number is None or number == round_number:
                is_found = True
                yield line
        if round_number is None:
            yield from narrator.ending(verdict)
    if not is_found and round_number is not None:
        raise UsageError(f"expected a round of the match, 1 to {last:,}, got {round_number}")


class _Narrator:
    """Tells a match in the words of its game's vocabulary."""

    def __init__(
        self,
        game: Game,
        record: Record,
        names: Sequence[str],
        seat: int | None,
        events: Callable[[], Iterator[Event]],
    ) -> None:
        self.game, self.record, self.names, self.seat = game, record, names, seat
        self._events = events
        self._round = 0  # 0 until the first round opens
        self._words, self._opens = game.vocabulary, frozenset(game.vocabulary.opens)
        self._times_ms: list[list[int]] = [[] for _ in names]  # by seat

    # --- the parts of the text ---

    def heading(self) -> Iterator[str]:
        versions = dict(enumerate(self.record.versions or (), start=1))
        seats = ", ".join(
            versioned(
                name if name.startswith("seat ") else f"seat {number} {name}", versions.get(number)
            )
            for number, name in enumerate(self.names, start=1)
        )
        yield f"{self.game.vocabulary.title}: {seats}"
        settings = (f"{name} {_word(value)}" for name, value in self.record.settings.items())
        yield f"settings: {', '.join(settings)}"
        if self.record.worker:
            yield f"refereed by worker {one_line(self.record.worker)}"
        if (why := other_rules(self.game.name, self.record.package)) is not None:
            yield f"told by other rules: {why}"
        if self.seat is not None:
            yield f"as {self.names[self.seat]} saw it"

    def index(self) -> Iterator[str]:
        """The index of the rounds with their payoffs, if the match is long."""
        if len(self.record.answers) < _LONG:
            return
        played = [
            tuple(self._words.payoffs(event.news))
            for event in self._events()
            if type(event) is TellSeat
            and type(event.news) is self._words.closes
            and event.seat in (EVERYONE, self.seat or 0)
        ]
        if len(played) > 1:
            yield f"its {len(played):,} rounds; --round N shows one:"
            yield from _index(played, self.names)

    def lines(self) -> Iterator[tuple[int, str]]:
        waiting: AskSeat | None = None
        for event in self._events():
            if type(event) is TellSeat:
                yield from self._begins(event.news)
                yield from self._numbered(self.heard(event))
            elif type(event) is AskSeat:
                waiting = event
                yield from self._begins(event.question)
            elif type(event) is SeatAnswered:
                waiting = None
                yield from self._numbered(self.decision(event))
            elif type(event) is CardsDealt:
                yield from self._numbered(self.dealt(event.deal))
        if waiting is not None and self.record.termination.is_offence:
            yield from self._numbered(self.unanswered(waiting))

    def ending(self, verdict: Verdict | None) -> Iterator[str]:
        record, ended = self.record, self.record.termination
        if ended.kind is Ending.VOID:
            yield f"void: {one_line(ended.text)}"
        elif ended.is_offence and ended.seat is not None:
            who = self.names[ended.seat] if ended.seat < len(self.names) else "?"
            # The other seats only learn who offended, and the kind of offence.
            text = f": {one_line(ended.text, 500)}" if self._sees(ended.seat) else ""
            yield f"{who} is out: {ended.kind.value}{text}"
        if verdict is not None and self._sees(verdict.seat):
            yield from _evidence(verdict)
        yield f"scores: {gains(self.names, record.scores)}"
        if any(record.points):
            yield f"points: {gains(self.names, record.points)}"
        for name, times_ms in zip(self.names, self._times_ms, strict=True):
            if times_ms:
                decisions = "decision" if len(times_ms) == 1 else "decisions"
                yield (
                    f"{name} took {sum(times_ms):,} ms for {len(times_ms):,} {decisions}, "
                    f"{max(times_ms):,} ms at most"
                )

    # --- the lines of an event ---

    def dealt(self, deal: Any) -> Iterable[str]:
        return ()

    def decision(self, event: SeatAnswered) -> Iterator[str]:
        question = event.question
        words = self._words.asked_words(question)
        what = words.asked(self.names[event.seat], question)
        did = words.answered(question, event.value)
        yield f"  {what}: {did} [{words.choices(question)}{self._took(event)}]"
        yield from self.note(event)

    def note(self, event: SeatAnswered) -> Iterator[str]:
        if event.note is not None:
            yield f'    {self.names[event.seat]} notes: "{one_line(event.note, _NOTE)}"'

    def _took(self, event: SeatAnswered) -> str:
        if event.took_ms is None:
            return ""
        self._times_ms[event.seat].append(event.took_ms)
        return f"; {event.took_ms:,} ms"

    def unanswered(self, asked: AskSeat) -> Iterable[str]:
        """The lines for a question that got no answer, or an illegal one."""
        words = self._words.asked_words(asked.question)
        what = words.asked(self.names[asked.seat], asked.question)
        yield f"  {what}: gives no legal answer [{words.choices(asked.question)}]"

    def heard(self, tell: TellSeat) -> Iterable[str]:
        news: Any = tell.news
        words = self._words.told_words(news)
        if words.repeats and self._sees(news.seat):
            return  # it only repeats the decision above
        is_one = tell.seat != EVERYONE or len(self.names) == 1
        who = self.names[max(tell.seat, 0)] if is_one else _ALL
        for line in words.lines(news, self.names, who):
            yield f"  {line}"

    def opening(self, what: News | Question[Any]) -> Iterable[str]:
        words = self._words.words[type(what)]
        more = words.opened(what, self.names) if isinstance(words, Told) else ""
        yield f"round {self._round}{more}"

    # --- within ---

    def _sees(self, seat: int) -> bool:
        return self.seat is None or self.seat == seat

    def _begins(self, what: Any) -> Iterator[tuple[int, str]]:
        """The lines that open a new round, if this news or question begins one."""
        if type(what) in self._opens and what.round != self._round:
            self._round = what.round
            yield from self._numbered(self.opening(what))

    def _numbered(self, lines: Iterable[str]) -> Iterator[tuple[int, str]]:
        """Number lines by their round; lines before the first round belong to it."""
        for line in lines:
            yield max(self._round, 1), line


class _ScriptNarrator(_Narrator):
    """Tells a match in the words of the game's own script."""

    def __init__(self, game: Game, record: Record, *more: Any) -> None:
        super().__init__(game, record, *more)
        assert game.script is not None, "else its vocabulary has the words"
        self._script = game.script(game.vocabulary.read_settings(record.settings))

    def dealt(self, deal: Any) -> Iterable[str]:
        return self._script.dealt(deal)

    def decision(self, event: SeatAnswered) -> Iterator[str]:
        self._took(event)
        yield from self._script.asked(event.question)
        yield from self._script.answered(event.question, event.value)
        yield from self.note(event)

    def unanswered(self, asked: AskSeat) -> Iterable[str]:
        return self._script.asked(asked.question)

    def heard(self, tell: TellSeat) -> Iterable[str]:
        return self._script.told(tell.news)

    def opening(self, what: News | Question[Any]) -> Iterable[str]:
        return ()  # the script has a line for it

    def ending(self, verdict: Verdict | None) -> Iterator[str]:
        yield from self._script.ended()
        yield from super().ending(verdict)


def _index(played: Sequence[Sequence[int]], names: Sequence[str]) -> Iterator[str]:
    """The lines of an index: one round each, or several rounds and the largest of them."""
    size = -(-len(played) // _LINES)
    for first in range(0, len(played), size):
        some = played[first : first + size]
        if size == 1:
            yield f"  round {first + 1:,}: {gains(names, some[0])}"
            continue
        sums = [sum(of_seat) for of_seat in zip(*some, strict=True)]
        most = max(range(len(some)), key=lambda at: max(map(abs, some[at])))
        yield (
            f"  rounds {first + 1:,} to {first + len(some):,}: {gains(names, sums)}; "
            f"most in round {first + most + 1:,}: {gains(names, some[most])}"
        )


def _evidence(verdict: Verdict) -> Iterator[str]:
    waited = verdict.waited_ms
    for what, value in (
        ("legal was", verdict.legal),
        ("it answered", verdict.got),
        ("found out by", verdict.mechanism.value),
        ("it took", None if waited is None else f"{waited:,.0f} ms"),
        ("left in its bank", f"{verdict.bank_ms:,} ms"),
        ("held to", verdict.enforced),
        ("its process ended with", verdict.exit_status),
        ("it said", error_line(verdict.stderr or "") or None),
        ("advice", verdict.advice or None),
    ):
        if value is not None:
            yield one_line(f"  {what}: {value}", 500)


def _word(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
