"""`arena mistakes`: lists the costliest decisions of a seat in a match or a competition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from statistics import NormalDist
from typing import Any, TypeAlias

import click
import msgspec

from arena.cli import Interrupted
from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._arena_pages import pages_options
from arena.cli._results import Found, as_json, result_command
from arena.games.match import Record
from arena.games.rules import Game
from arena.games.statistics import LEVEL, plural, several, signed
from arena.records.luck import luck_of
from arena.records.mistakes import (
    JudgedDecision,
    JudgedSeat,
    JudgedUnit,
    MatchMistakes,
    UnitTotal,
    added,
    badness,
)
from arena.records.seat_document import SeatDocument
from protocol.errors import NoLuck, UsageError, one_line

__all__ = ["command"]

_PARTS = 20  # steps of the progress bar per match
_LOST = 5
_LONGEST_LINE = 400
_MARKS = ("", " ?!", " ?", " ??")
_ERRORS = NormalDist().inv_cdf((1 + LEVEL) / 2)  # half the width of an interval, in standard errors


_Played: TypeAlias = tuple[str, int, Record | SeatDocument]
"""A match's id, the judged seat (from 0) and the record."""


class _Judged(msgspec.Struct, frozen=True):
    """A match of which one seat was judged."""

    match: str
    found: MatchMistakes
    units: tuple[int, ...]  # the units judged at least in part; empty if all were
    of: int  # how many decisions were to be judged


class _Mistake(msgspec.Struct, frozen=True):
    """A mistake.

    Attributes:
        error: the standard error of `cost`; null where that is exact.
        times: how often it was made.
    """

    match: str
    seat: int
    round: int
    number: int
    index: int
    kind: str
    question: str
    answer: Any
    answer_text: str
    best: Any
    best_text: str
    cost: float
    unit: str
    error: float | None
    interval: tuple[float, float] | None
    grade: int
    times: int


class _SeatLuck(msgspec.Struct, frozen=True):
    """What a seat won in a match, and how much of that was luck, in `unit`s."""

    unit: str
    gain: float
    luck: float


class _Report(msgspec.Struct, frozen=True):
    """The mistakes of a player.

    Attributes:
        of: how many matches there are.
        games: of a single match the numbers of those that were judged, if not all were; else null.
        totals: for each unit of costs how many mistakes cost how much.
        luck: of a single match with all its cards; else null.
        mistakes: the worst.
    """

    game: str
    player: str
    matches: int
    of: int
    version: int | None
    decisions: int
    judged: int
    games: tuple[int, ...] | None
    totals: Sequence[UnitTotal]
    luck: _SeatLuck | None
    mistakes: Sequence[_Mistake]


@result_command("mistakes", prints=_Report)
@click.argument("where", metavar="MATCH|COMPETITION", callback=options.read_id)
@click.option(
    "--seat",
    "who",
    metavar="NAME",
    help="Whose decisions: a player's name, or in a match the number of a seat.  "
    "[default: of a match, the players that are no house bots, each in turn]",
)
@click.option(
    "--lost",
    "most_lost",
    type=click.IntRange(min=0),
    default=_LOST,
    show_default=True,
    metavar="N",
    help="In a game whose decisions take long, judge the N games of a match that were lost "
    "highest; 0 judges all.",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    metavar="N",
    help="Show the N worst mistakes, by their marks, then by what they cost.",
)
@pages_options
@options.db_option("The database that has the match or the competition.")
def command(where: str, who: str | None, most_lost: int, top: int, db: str) -> Iterator[Found]:
    """Show which decisions of a seat cost most, what would have been better, and by how much.

    MATCH is an id, `last`, or a file, as for `arena replay`. COMPETITION is an id, the beginning of
    one, or the name of a [[run]]: then the costliest of all its matches are shown. A decision is
    judged by what its seat knew at that moment; how the cards then fell makes no difference. What
    cannot be told from the best answer is no mistake.

    With --url the arena there is asked for a MATCH that is over.

    A cost is an average over all cards that could have been: in chips, or in percent of the game
    (1 % is one game more won in 100). It is exact, or an estimate with its 95 % interval. What
    takes long has a progress bar, begins with the games that were lost highest, and says what was
    worst so far; Ctrl-C shows what was found until then. The same mistake in the same situation
    stands once, with how many times it was made.
    """
    from arena.cli._found_match import match_or_none
    from arena.results.seat_records import played_by, seat_records
    from arena.storage.store import Store

    found = match_or_none(where, db)
    if found is not None:
        game = found.rules()
        asked_for = where.removeprefix(f"{found.name}.")  # `ID.SEAT` already names the seat
        if who is not None:
            seats: tuple[int, ...] = (found.seat_of(who, game),)
        elif asked_for.isdigit() and int(asked_for) < game.seats:
            seats = (int(asked_for),)
        else:
            seats = found.own_seats(game)
        if found.seen is not None and seats[0] + 1 != found.seen.seat:
            raise UsageError(f"expected seat {found.seen.seat}, whose view it is, got {who}")
        name = where if found.document is None and found.seen is None else found.name
        for seat in seats:
            judging = _Judging(game, found.names(game)[seat], 1, most_lost)
            ends = [] if seat == seats[-1] else [""]
            yield from judging.run([(name, seat, found.seen or found.record)], top, ends)
        return
    if who is None:
        raise UsageError(f"expected --seat with the name of a player of {where}")
    with Store(db, create=False) as store:
        try:
            competition = store.find(where)
        except UsageError as error:
            raise UsageError(f"{where!r} is no match in the database: {error}") from None
        played = (
            (one.match.id, one.seat, one.record) for one in seat_records(store, competition.id, who)
        )
        total = played_by(store, competition.id, who)
        yield from _Judging(competition.plan.rules, who, total, most_lost).run(played, top)


class _Judging:
    """Judges a player's matches in turn, and reports the worst mistake so far on stderr."""

    def __init__(self, game: Game, player: str, total: int, most_lost: int) -> None:
        self._game = game
        self._player = player
        self._total = total
        self._most_lost = most_lost
        self._done: list[_Judged] = []  # the last one may be incomplete
        self._whole = 0  # how many of `_done` are complete
        self._worst: JudgedDecision | None = None
        unit = game.unit
        # Only in slow games with several rounds are some of a match's rounds left out.
        self._is_slow = game.judging is not None and game.judging.is_slow and unit is not None
        self._is_slow &= unit is not None and unit.closes is not game.vocabulary.closes
        self._is_silent = as_json() or not self._is_slow

    def run(
        self, records: Iterable[_Played], top: int, ends: Sequence[str] = ()
    ) -> Iterator[Found]:
        """Judge all records and yield the costliest mistakes; after Ctrl-C, those found so far."""
        is_interrupted = False
        try:
            with output.ticking("judging", self._total * _PARTS) as tick:
                for match, seat, record in records:
                    self._judge(match, record, seat, _ticks(tick))
        except KeyboardInterrupt:
            is_interrupted = True
        if self._done or not is_interrupted:
            luck = _luck(*records[0][1:]) if isinstance(records, list) else None
            report = self._report(top, luck)
            yield report, (one_line(line, _LONGEST_LINE) for line in [*self._lines(report), *ends])
        if is_interrupted:
            what = f"{self._whole:,} of {plural(self._total, 'match')}"
            if self._total == 1 and self._done:
                done = self._done[0]
                what = f"{done.found.judged:,} of {plural(done.of, 'decision')}"
            raise Interrupted(f"interrupted after {what}")

    def _judge(
        self,
        match: str,
        record: Record | SeatDocument,
        seat: int,
        on_progress: Callable[[int, int], object],
    ) -> None:
        """Judge a seat of a match; an error of `JudgedSeat` may be raised again as `ArenaError`."""
        from arena.games.replay import playing_again

        found: list[JudgedDecision] = []
        with playing_again(f"match {match}"):
            judged = JudgedSeat(record, seat)
            units = judged.units
            if self._is_slow:
                units = judged.lost_first[: self._most_lost or None]
            if not self._is_silent:
                click.echo(self._begins(match, judged, units), err=True)
            is_whole = False
            try:
                for decision in judged.judged(units, on_progress):
                    found.append(decision)
                    self._look(match, decision)
                is_whole = True
            finally:
                if is_whole or found:
                    numbers: tuple[int, ...] = ()
                    if self._is_slow:
                        begun = {each.unit for each in found}
                        chosen = [unit.number for unit in units if is_whole or unit.number in begun]
                        if len(chosen) < len(judged.units):
                            numbers = tuple(sorted(chosen))
                    of = sum(unit.decisions for unit in units)
                    self._done.append(_Judged(match, judged.mistakes(found), numbers, of))
        self._whole += 1

    def _begins(self, match: str, judged: JudgedSeat, units: Sequence[JudgedUnit]) -> str:
        unit = self._game.unit
        assert unit is not None, "others are judged silently"
        where = f" in match {match}" if self._total > 1 else ""
        what = plural(len(judged.units), unit.name)
        if len(units) < len(judged.units):
            return f"judging the {len(units)} of {what} that {self._player} lost highest{where}"
        return f"judging {what} of {self._player}{where}, those lost highest first"

    def _look(self, match: str, decision: JudgedDecision) -> None:
        """Report a decision on stderr if it is the worst mistake so far."""
        is_worst = self._worst is None or badness(decision) < badness(self._worst)
        if self._is_silent or not decision.is_mistake or not is_worst:
            return
        self._worst = decision
        vocabulary, question = self._game.vocabulary, decision.question
        words, judgement = vocabulary.asked_words(question), decision.judgement
        where = f"match {match}, " if self._total > 1 else ""
        line = (
            f"worst so far: {where}{vocabulary.round} {decision.round:,}, "
            f"question {decision.number:,}: "
            f"it {words.answered(question, decision.answer)}; "
            f"better: {words.answered(question, judgement.best)}; "
            f"costs {output.amount(judgement.cost)} {judgement.unit}"
        )
        click.echo(one_line(line, _LONGEST_LINE), err=True)

    def _report(self, top: int, luck: _SeatLuck | None) -> _Report:
        done = self._done
        pairs = [(judged, mistake) for judged in done for mistake in judged.found.mistakes]
        pairs.sort(key=lambda pair: badness(pair[1]))
        described = (_described(self._game, self._player, *pair) for pair in pairs)
        return _Report(
            game=self._game.name,
            player=self._player,
            matches=len(done),
            of=self._total,
            version=done[0].found.version if done else None,
            decisions=sum(judged.found.decisions for judged in done),
            judged=sum(judged.found.judged for judged in done),
            games=done[0].units or None if self._total == 1 and done else None,
            totals=added(each for judged in done for each in judged.found.totals),
            luck=luck,
            mistakes=list(islice(_gathered(described), top)),
        )

    def _lines(self, report: _Report) -> Iterator[str]:
        yield self._summary(report)
        if report.games is not None:
            yield self._chosen(report.games)
        elif any(judged.units for judged in self._done):
            assert self._game.unit is not None, "it has units"
            yield (
                f"Of long matches only the {several(self._game.unit.name)} that were lost highest "
                "were judged; `--lost 0` judges all."
            )
        if (luck := report.luck) is not None:
            won = (luck.gain, luck.gain - luck.luck)
            gain, without = (
                f"{value:,.2f}" if self._game.is_count else signed(value, 2) for value in won
            )
            of_luck = signed(luck.luck, 2)
            yield f"It won {gain} {luck.unit}s, of which {of_luck} is luck: {without} without it."
        for place, mistake in enumerate(report.mistakes, start=1):
            yield ""
            where = f"match {mistake.match}, " if self._total > 1 else ""
            yield from _told(place, mistake, where + self._game.vocabulary.round)
        if report.mistakes:
            yield ""
            yield "Each is judged by what its seat knew at that moment, whatever cards came then."
        if any(mistake.interval is not None for mistake in report.mistakes):
            yield (
                f"[low, high] is a {100 * LEVEL:.0f} % interval of an estimate. The costliest of "
                "many estimates are more often too high than too low."
            )

    def _summary(self, report: _Report) -> str:
        done = self._done
        where = f"match {done[0].match}" if len(done) == 1 else plural(len(done), "match")
        title = f"{self._game.vocabulary.title}, {where}, {self._player}"
        if not report.judged:
            return f"{title}: none of {plural(report.decisions, 'decision')} can be judged."
        judged = plural(report.judged, "judged decision")
        if report.judged < report.decisions:
            judged += f" of {report.decisions:,}"
        if not report.totals:
            return f"{title}: no mistake in {judged}."
        count = plural(sum(each.count for each in report.totals), "mistake")
        cost = " and ".join(f"{output.amount(each.total)} {each.unit}" for each in report.totals)
        return f"{title}: {count} in {judged}, together {cost}."

    def _chosen(self, units: Sequence[int]) -> str:
        """Say which games of a match were judged."""
        assert self._game.unit is not None, "it has units"
        name = self._game.unit.name
        which, were = f"{name} {units[0]}", "was judged, which was lost highest"
        if len(units) > 1:
            which = f"the {len(units)} {several(name)} that were lost highest"
            were = f"were judged, {', '.join(map(str, units[:-1]))} and {units[-1]}"
        return f"Only {which} {were}; `--lost 0` judges all."


def _luck(seat: int, record: Record | SeatDocument) -> _SeatLuck | None:
    """Measure a seat's luck in a match; None if its game or settings do not allow that."""
    if isinstance(record, SeatDocument):
        return None  # measuring luck needs all cards
    try:
        measured = luck_of(record)
    except NoLuck:
        return None
    return _SeatLuck(measured.unit, measured.gains[seat], measured.luck[seat])


def _ticks(tick: Callable[[], None]) -> Callable[[int, int], None]:
    """Return a progress callback that ticks `_PARTS` times per match."""
    ticked = 0

    def progressed(done: int, of: int) -> None:
        nonlocal ticked
        while ticked * of < done * _PARTS:
            tick()
            ticked += 1

    return progressed


def _described(game: Game, player: str, judged: _Judged, mistake: JudgedDecision) -> _Mistake:
    question, judgement = mistake.question, mistake.judgement
    words = game.vocabulary.asked_words(question)
    interval = None
    if judgement.error is not None:
        half = _ERRORS * judgement.error
        interval = judgement.cost - half, judgement.cost + half
    return _Mistake(
        match=judged.match,
        seat=judged.found.seat + 1,
        round=mistake.round,
        number=mistake.number,
        index=mistake.index,
        kind=question.kind,
        question=words.asked(player, question),
        answer=mistake.answer,
        answer_text=words.answered(question, mistake.answer),
        best=judgement.best,
        best_text=words.answered(question, judgement.best),
        cost=judgement.cost,
        unit=judgement.unit,
        error=judgement.error,
        interval=interval,
        grade=judgement.grade,
        times=1,
    )


def _gathered(mistakes: Iterable[_Mistake]) -> Iterator[_Mistake]:
    """Merge repeated mistakes into the first, with a count; estimates are never merged."""
    times: Counter[object] = Counter()
    firsts: dict[object, _Mistake] = {}
    for mistake in mistakes:
        key: object = (mistake.match, mistake.seat, mistake.index)
        if mistake.error is None:
            key = (mistake.question, mistake.answer_text, mistake.best_text, mistake.cost)
        times[key] += 1
        firsts.setdefault(key, mistake)
    for key, first in firsts.items():
        yield msgspec.structs.replace(first, times=times[key])


def _told(place: int, mistake: _Mistake, where: str) -> Iterator[str]:
    how_sure = "exact"
    if mistake.interval is not None:
        low, high = map(output.amount, mistake.interval)
        how_sure = f"estimate, [{low}, {high}]"
    cost = f"costs {output.amount(mistake.cost)} {mistake.unit} ({how_sure})"
    first = ""
    if mistake.times > 1:
        together = output.amount(mistake.cost * mistake.times)
        cost += f", {mistake.times:,} times: {together} together"
        first = "first in "
    yield f"{place}.{_MARKS[mistake.grade]} {cost}"
    yield f"   {first}{where} {mistake.round:,}, its question {mistake.number:,}"
    yield f"   {mistake.question}"
    yield f"   it {mistake.answer_text}"
    yield f"   better: {mistake.best_text}"
