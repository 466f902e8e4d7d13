"""One match in progress, without I/O: its seats, its scores, why it stopped, its record.

`MatchState` runs a game's rules until they need an answer. Every driver (in process, over the
network, replay, tests) is a few lines around it: look at `pending`, get an answer from somewhere,
`answer()` it, pass on `take_news()`. Nothing here knows time, sockets or randomness. `drive` is the
driver for strategy objects in this process; an exception in a strategy is a crash of its seat.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from traceback import walk_tb
from types import FrameType, TracebackType
from typing import Any, TypeAlias

import msgspec

from arena.games.rules import EVERYONE, NOBODY, AskSeat, Game, Scoreboard, TellSeat
from arena.games.shuffle import Stream, match_key
from arena.games.statistics import UnitCounter, UnitSums
from protocol.bot_folder import is_import, without_folder
from protocol.errors import IllegalAnswer, OutOfDecks, in_words, one_line
from protocol.messages import Ending, Termination, Verdict
from protocol.strategy import Strategy, as_sent
from protocol.vocabulary import News, Question, Settings

__all__ = ["MatchResult", "MatchState", "Record", "Result", "drive", "place_of"]

_Listener: TypeAlias = tuple[int, Callable[[Any], object]]  # a seat and its `hear`

LONGEST_PATH = 1000  # longer paths lose their end, which says the most


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a match depended on, and its result; no prose.

    Fields that only matches over the network have are None or empty in process.
    """

    game: str
    settings: dict[str, Any]  # all of them, defaults included
    seed: str | None  # in hex, or None if decks were given
    commitment: str | None = None  # to the seed, told before the seats chose their nonces (J6)
    nonces: tuple[str, ...]  # by seat
    # By seat, which limits its bot was held to, and by what; only time if it connected from
    # outside.
    enforced: tuple[str, ...] = ()
    decks: tuple[Any, ...] | None  # what was dealt, if decks were given
    answers: tuple[Any, ...]  # in order; whose they are follows from the rules
    times_ms: tuple[int, ...] = ()  # from each question to its answer, on the arena's clock
    notes: tuple[tuple[int, str], ...] = ()  # (number of the answer, note) where there is one
    scores: tuple[int, ...]
    points: tuple[int, ...]
    termination: Termination
    also_out: tuple[int, ...] | msgspec.UnsetType = msgspec.UNSET
    # After an offence, the event of the offender and of each seat in `also_out`; see `Verdict`.
    events: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    # Of a match made void by an outage, the seats that were away (J9).
    away: tuple[int, ...] | msgspec.UnsetType = msgspec.UNSET
    # Of a game from outside, the package and its version: `leduc 1.0`.
    package: str | msgspec.UnsetType = msgspec.UNSET
    # By seat, where submissions are taken: `v3`, `connected`, or "" for a house bot.
    versions: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    # Who refereed it, in old records, if not the arena itself; no longer written.
    worker: str | msgspec.UnsetType = msgspec.UNSET

    def to_json(self) -> bytes:
        """The record as one JSON document; the same match gives the same bytes."""
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, data: bytes) -> Record:
        """Read what `to_json` wrote; raises `msgspec.DecodeError` if it is no record."""
        return msgspec.json.decode(data, type=cls)


class Result(msgspec.Struct, frozen=True, gc=False):
    """How a match ended."""

    scores: tuple[int, ...]  # by seat, in the unit of the rulebook's "Scores" paragraph
    points: tuple[int, ...]  # by seat; beside the scores, where a game has any (G15), else zeros
    termination: Termination
    also_out: tuple[int, ...] = ()  # further seats that are out, as they were absent too

    @property
    def out(self) -> tuple[int, ...]:
        """The seats that this match puts out (J3)."""
        return () if self.offender is None else (self.offender, *self.also_out)

    @property
    def offender(self) -> int | None:
        """The seat whose offence ended the match (J2); None if it ended otherwise."""
        return self.termination.seat if self.termination.is_offence else None

    @property
    def winner(self) -> int | None:
        """The winner of a match of two: after an offence the other seat (J3); None if none won."""
        if len(self.scores) != 2 or self.termination.kind is Ending.VOID:
            return None
        if self.offender is not None:
            return 1 - self.offender
        if self.scores[0] == self.scores[1]:
            return None
        return 0 if self.scores[0] > self.scores[1] else 1


class MatchResult(Result, frozen=True, kw_only=True):
    """How a match ended, with the record that replays it, and its units added up if it has any.

    `units` follows from the record and is not part of it.
    """

    record: Record
    units: UnitSums | None = None
    others: tuple[Verdict, ...] = ()  # on the seats in `also_out`, if the referee gave them

    def __repr__(self) -> str:
        """One line, without the record: `MatchResult(leduc, scores 3 -3, completed)`."""
        ended = self.termination
        scores = " ".join(map(str, self.scores))
        how = one_line(f"{ended.kind}: {ended.text}" if ended.text else str(ended.kind), 120)
        return f"MatchResult({self.record.game}, scores {scores}, {how})"


class MatchState:
    """A game's rules in progress.

    `pending` is the question that waits for an answer; it is None once `termination` is set. Give a
    `seed` (and the seats' `nonces`) or stacked `decks`. With `start=False` no card is dealt before
    `start()`; a match that never started can be ended, and then has a result and a record, too.
    With `tells_deals` every deal is among the news, told to `NOBODY`. The constructor, `start` and
    `answer` raise `BadDeck` if a stacked deck is invalid or there are too few.
    """

    __slots__ = (
        "_away",
        "_board",
        "_closes",
        "_dealt",
        "_events",
        "_nonces",
        "_rules",
        "_seed",
        "_send",
        "_units",
        "also_out",
        "answers",
        "commitment",
        "enforced",
        "game",
        "news",
        "notes",
        "pending",
        "settings",
        "termination",
        "times_ms",
        "versions",
    )

    def __init__(
        self,
        game: Game,
        settings: Settings,
        *,
        seed: bytes | None = None,
        nonces: tuple[str, ...] = (),
        decks: Iterable[Any] | None = None,
        start: bool = True,
        enforced: tuple[str, ...] = (),
        commitment: str | None = None,
        tells_deals: bool = False,
        versions: tuple[str, ...] = (),
    ) -> None:
        assert (seed is None) != (decks is None), "a seed or decks, never both"
        self.game = game
        self.settings = settings
        self.enforced = enforced
        self.versions = versions
        self.commitment = commitment
        self.pending: AskSeat | None = None
        self.news: list[TellSeat] = []
        self.answers: list[Any] = []
        self.times_ms: list[int] = []
        self.notes: list[tuple[int, str]] = []
        self.termination: Termination | None = None
        self.also_out: tuple[int, ...] = ()
        self._events: tuple[str, ...] = ()
        self._away: tuple[int, ...] = ()
        self._seed, self._nonces = seed, nonces
        self._dealt: list[Any] | None = None if decks is None else []
        self._board = Scoreboard(game.seats)
        unit = game.unit
        self._closes = None if unit is None else unit.closes
        self._units = None if unit is None else UnitCounter(game.seats, unit.block)
        if seed is not None:
            deals = game.deals(settings, Stream(match_key(seed, nonces)))
        else:
            assert decks is not None, "checked above"
            deals = game.stacked(settings, decks)
        if decks is not None or tells_deals:
            deals = self._noting(deals, tells_deals)
        self._rules = game.rules(settings, deals, self._board)
        self._send = self._rules.send
        if start:
            self.start()

    def start(self) -> None:
        """Deal; only for a match that was created with `start=False`."""
        for step in self._rules:
            if type(step) is AskSeat:
                self.pending = step
                return
            assert type(step) is TellSeat, "rules yield AskSeat and TellSeat only"
            self.news.append(step)
            if type(step.news) is self._closes:
                self._close(step)
        self.termination = Termination(Ending.COMPLETED)

    def answer(self, value: object, note: str | None = None, took_ms: int | None = None) -> None:
        """Answer the pending question; `IllegalAnswer` if there is none or the answer is not legal.

        An illegal answer changes nothing. `note` is the bot's own remark; `took_ms` is only given
        where there is a clock.
        """
        asked = self.pending
        if asked is None:
            raise IllegalAnswer(f"answer {len(self.answers) + 1} comes after the end")
        try:
            legal = asked.question.check(value)
        except IllegalAnswer as error:
            raise IllegalAnswer(f"seat {asked.seat + 1} {error}") from None
        self.answers.append(legal)
        if took_ms is not None:
            self.times_ms.append(took_ms)
        if note is not None:
            self.notes.append((len(self.answers) - 1, note))
        send, news, closes = self._send, self.news, self._closes
        try:
            step = send(legal)
            while type(step) is TellSeat:
                news.append(step)
                if type(step.news) is closes:
                    self._close(step)
                step = send(None)
            assert type(step) is AskSeat, "rules yield AskSeat and TellSeat only"
            self.pending = step
        except StopIteration:
            self.pending = None
            self.termination = Termination(Ending.COMPLETED)
        except Exception:
            self.pending = None  # a generator that has raised cannot go on
            raise

    def take_news(self) -> list[TellSeat]:
        news, self.news = self.news, []
        return news

    def end(
        self,
        kind: Ending,
        seat: int | None,
        text: str,
        also_out: tuple[int, ...] = (),
        events: tuple[str, ...] = (),
        away: tuple[int, ...] = (),
    ) -> None:
        """Stop before the rules are done: an offence of `seat` (and `also_out`), or a void match.

        `events` gives the event of each of these seats, the offender's first; see `Verdict`.
        `away` are the seats whose outage makes the match void (J9).
        """
        if self.termination is not None:
            return  # only the first offence received ends a match (J2)
        self.pending = None
        self.termination = Termination(kind, seat, text)
        self.also_out = also_out
        self._events = events
        self._away = away
        self._rules.close()
        if self.game.stake is not None and self.termination.is_offence:
            self._board.scores[0] = -self.game.stake(self.settings)

    @property
    def scores(self) -> tuple[int, ...]:
        return tuple(self._board.scores)

    @property
    def points(self) -> tuple[int, ...]:
        return tuple(self._board.points)

    def result(self) -> MatchResult:
        """The result and the record, once `termination` is set."""
        assert self.termination is not None, "the match is still going on"
        points = self.points
        record = Record(
            game=self.game.name,
            settings=msgspec.to_builtins(self.settings),
            seed=None if self._seed is None else self._seed.hex(),
            commitment=self.commitment,
            nonces=self._nonces,
            enforced=self.enforced,
            decks=None if self._dealt is None else tuple(self._dealt),
            answers=tuple(self.answers),
            times_ms=tuple(self.times_ms),
            notes=tuple(self.notes),
            scores=self.scores,
            points=points,
            termination=self.termination,
            also_out=self.also_out or msgspec.UNSET,
            events=self._events or msgspec.UNSET,
            away=self._away or msgspec.UNSET,
            package=msgspec.UNSET if self.game.package is None else str(self.game.package),
            versions=self.versions or msgspec.UNSET,
        )
        return MatchResult(
            self.scores,
            points,
            self.termination,
            self.also_out,
            record=record,
            units=None if self._units is None else self._units.sums(),
        )

    def history_for(self, seat: int) -> Iterator[tuple[Question[Any], tuple[News, ...], Any]]:
        """Yield what a seat has been asked so far: each question, the news before it, its answer.

        The match is replayed for this, answer by answer, so that no history has to be stored.
        """
        assert self._seed is not None, "only matches over a network are told again"
        again = MatchState(self.game, self.settings, seed=self._seed, nonces=self._nonces)
        heard: list[News] = []
        for answer in tuple(self.answers):
            heard += (told.news for told in again.take_news() if told.seat in (seat, EVERYONE))
            asked = again.pending
            assert asked is not None, "it was answered"
            if asked.seat == seat:
                yield asked.question, tuple(heard), answer
                heard.clear()
            again.answer(answer)

    def _close(self, told: TellSeat) -> None:
        """Add a unit's payoffs. Rules may tell each seat separately; the first telling counts."""
        if told.seat in (EVERYONE, 0):
            unit, units = self.game.unit, self._units
            assert unit is not None, "something has closed one"
            assert units is not None, "as it is for every unit"
            units.add(unit.payoffs(told.news))

    def _noting(self, deals: Iterator[Any], tells_deals: bool) -> Iterator[Any]:
        for deal in deals:
            if self._dealt is not None:
                self._dealt.append(deal)
            if tells_deals:
                self.news.append(TellSeat(NOBODY, deal))
            yield deal
        raise OutOfDecks("the match needs another deck or cut, and all that were given are used up")


def drive(match: MatchState, strategies: Sequence[Strategy]) -> None:
    """Ask and tell strategies until the match is over.

    Any exception of a strategy, except Ctrl-C, is a crash of its seat and ends the match. Once the
    match is over its result stands: an exception at the last news only stops telling them (J2).
    """
    decides: list[Callable[[Any], object]] = []
    everyone: list[_Listener] = []
    for seat, strategy in enumerate(strategies):
        try:
            strategy.reset()
            decides.append(strategy.decide)
            everyone.append((seat, strategy.hear))
        except BaseException as error:
            return _crashed(match, seat, error)
    listeners = {EVERYONE: everyone, **{seat: [(seat, hear)] for seat, hear in everyone}}
    while True:
        if told := match.news:
            match.news = []
            for tell in told:
                news = tell.news
                for seat, hear in listeners[tell.seat]:
                    try:
                        hear(news)
                    except BaseException as error:
                        return _crashed(match, seat, error)
        asked = match.pending
        if asked is None:
            return None
        try:
            value = as_sent(decides[asked.seat](asked.question))
        except BaseException as error:
            return _crashed(match, asked.seat, error)
        try:
            match.answer(value)
        except IllegalAnswer as error:
            text = f"{error}; {asked.question.advice(value)}"
            return match.end(Ending.ILLEGAL, asked.seat, text)


def _crashed(match: MatchState, seat: int, error: BaseException) -> None:
    """End the match with a text that tells the strategy's author what was raised, and where."""
    if isinstance(error, KeyboardInterrupt):
        raise error
    where = place_of(sys.exc_info()[2])
    what = without_folder(in_words(error))
    match.end(Ending.CRASH, seat, f"seat {seat + 1} raised {what}{where}")


def _is_base(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).startswith("bots.")


def place_of(raised: TracebackType | None) -> str:
    """The place in the called code where an exception was raised: ` at FILE:LINE`, or nothing.

    The first frame is the caller's own. Frames of imports and of the classes that bots are built on
    are skipped.
    """
    _ours, *frames = walk_tb(raised)
    theirs = [at for at in frames if not (is_import(at[0]) or _is_base(at[0]))]
    if not theirs:
        return ""
    frame, line = theirs[-1]
    return one_line(f" at {frame.f_code.co_filename}:{line}", LONGEST_PATH)
