"""`arena mistakes`: the decisions of a seat that cost most, in a match or in a competition."""

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
from arena.cli._found_match import match_or_none
from arena.engine.match import Record
from arena.engine.rules import Game
from arena.games import game_named
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
from arena.results.seat_records import played_by, seat_records
from arena.storage.store import CompetitionRow, Store
from arena.strength.figures import signed
from arena.strength.interval import LEVEL
from protocol.errors import ArenaError, NoAnalysis, NoLuck, UsageError, in_words, one_line

__all__ = ["command"]

_PARTS = 20  # of a match, on the progress bar
_LOST = 5
_LONGEST_LINE = 400
_MARKS = ("", "?!", "?", "??")
_ERRORS = NormalDist().inv_cdf((1 + LEVEL) / 2)  # standard errors that an interval reaches


_Played: TypeAlias = tuple[str, int, Record | SeatDocument]
"""A match, and the seat in it, from 0, that is judged."""


class _Judged(msgspec.Struct, frozen=True):
    """A match whose seat was judged."""

    match: str
    player: str
    found: MatchMistakes
    units: tuple[int, ...]  # those that were judged, if not all were


class _Mistake(msgspec.Struct, frozen=True):
    """One mistake, as `--json` prints it."""

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
    """What a seat won in a match, and how much of it is luck, in `unit`s."""

    unit: str
    gain: float
    luck: float


@click.command(name="mistakes")
@click.argument("where", metavar="MATCH|COMPETITION")
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
@options.db_option("The database that has the match or the competition.")
@options.json_option
@click.pass_context
def command(
    ctx: click.Context,
    where: str,
    who: str | None,
    most_lost: int,
    top: int,
    db: str,
    as_json: bool,
) -> None:
    """Show which decisions of a seat cost most, what would have been better, and by how much.

    MATCH is an id, `last`, or a file, as for `arena replay`. COMPETITION is an id, the beginning of
    one, or the name of a [[run]]: then the costliest of all its matches are shown. A decision is
    judged by what its seat knew at that moment; how the cards then fell makes no difference. What
    cannot be told from the best answer is no mistake.

    A cost is an average over all cards that could have been: in chips, or in percent of the game
    (1 % is one game more won in 100). It is exact, or an estimate with its 95 % interval. What
    takes long has a progress bar, begins with the games that were lost highest, and says what was
    worst so far; Ctrl-C shows what was found until then. The same mistake in the same situation
    stands once, with how many times it was made.

    --json prints {game, player, matches, of, version, decisions, judged, games, totals, luck,
    mistakes}, a line for each player: `totals` has for each unit of costs {unit, count, total}, how
    many mistakes cost how much, and the worst of them are in `mistakes`, each with how many `times`
    it was made. Of a single match `games` are the numbers of those that were judged, if not all
    were, and with all its cards there is `luck`: {unit, gain, luck}; else both are null.
    """
    is_told = ctx.get_parameter_source("db") is not click.core.ParameterSource.DEFAULT
    found = match_or_none(where, db, is_told=is_told)
    if found is not None:
        game = found.rules()
        seats = found.own_seats(game) if who is None else (found.seat_of(who, game),)
        if found.seen is not None and seats[0] + 1 != found.seen.seat:
            raise UsageError(f"expected seat {found.seen.seat}, whose view it is, got {who}")
        name = where if found.document is None and found.seen is None else found.name
        for seat in seats:
            one: _Played = (name, seat, found.seen or found.record)
            player = found.names(game)[seat]
            _run(game, player, [one], 1, top, most_lost, as_json=as_json)
            if seat != seats[-1] and not as_json:
                click.echo()
        return
    if who is None:
        raise UsageError(f"expected --seat with the name of a player of {where}")
    with Store(options.database(db), create=False) as store:
        competition = _competition(store, where)
        game = game_named(competition.plan.game, competition.plan.package)
        total = played_by(store, competition.id, who)
        played = (
            (one.match.id, one.seat, one.record) for one in seat_records(store, competition.id, who)
        )
        _run(game, who, played, total, top, most_lost, as_json=as_json)


def _competition(store: Store, where: str) -> CompetitionRow:
    try:
        return store.find(where)
    except UsageError as error:
        raise UsageError(f"{where!r} is no match in the database: {error}") from None


def _run(
    game: Game,
    player: str,
    records: Iterable[_Played],
    total: int,
    top: int,
    most_lost: int,
    *,
    as_json: bool,
) -> None:
    """Judge all records and print the costliest mistakes, on Ctrl-C those found so far."""
    judging = _Judging(game, player, most_lost, is_silent=as_json, has_match=total > 1)
    is_interrupted = False
    try:
        with output.ticking("judging", total * _PARTS) as tick:
            for match, seat, record in records:
                judging.judge(match, record, seat, _ticks(tick))
    except KeyboardInterrupt:
        is_interrupted = True
    done = judging.done
    if done or not is_interrupted:
        luck = _luck(*records[0][1:]) if isinstance(records, list) else None
        _show(game, player, done, total, top, luck, as_json=as_json)
    if is_interrupted:
        what = f"{judging.whole:,} of {output.plural(total, 'match')}"
        if total == 1 and done:
            found = done[0].found
            what = f"{found.judged:,} of {output.plural(found.decisions, 'decision')}"
        raise Interrupted(f"interrupted after {what}")


class _Judging:
    """Judges matches one after the other, and says on stderr what was worst so far.

    `done` has those that are judged, of the last one as far as it was judged; `whole` of them were
    judged to their end.
    """

    def __init__(
        self, game: Game, player: str, most_lost: int, *, is_silent: bool, has_match: bool
    ) -> None:
        self.done: list[_Judged] = []
        self.whole = 0
        self._game = game
        self._player = player
        self._most_lost = most_lost
        self._worst: JudgedDecision | None = None
        unit = game.unit
        # Only a game of several rounds takes long enough that some of a match are chosen.
        self._is_slow = game.judging is not None and game.judging.is_slow and unit is not None
        self._is_slow &= unit is not None and unit.closes is not game.vocabulary.closes
        self._is_silent = is_silent or not self._is_slow
        self._has_match = has_match

    def judge(
        self,
        match: str,
        record: Record | SeatDocument,
        seat: int,
        on_progress: Callable[[int, int], object],
    ) -> None:
        """Judge a seat of a match; raises as `JudgedSeat` does, or an `ArenaError` in its place."""
        found: list[JudgedDecision] = []
        try:
            judged = JudgedSeat(record, seat)
            units = judged.units
            if self._is_slow:
                units = judged.lost_first[: self._most_lost or None]
            if not self._is_silent:
                click.echo(self._begins(match, judged, units), err=True)
            for decision in judged.judged(units, on_progress):
                found.append(decision)
                self._look(match, decision)
        except KeyboardInterrupt:
            if found:
                self._add(match, judged, units, found)
            raise
        except NoAnalysis:
            raise
        except Exception as error:  # a file from anywhere may be wrong in any way
            why = str(error) if isinstance(error, ArenaError) else in_words(error)
            raise ArenaError(f"match {match} cannot be played again: {why}") from error
        self._add(match, judged, units, found)
        self.whole += 1

    def _add(
        self,
        match: str,
        judged: JudgedSeat,
        units: Sequence[JudgedUnit],
        found: Sequence[JudgedDecision],
    ) -> None:
        chosen = units if len(units) < len(judged.units) else ()
        numbers = tuple(sorted(unit.number for unit in chosen))
        self.done.append(_Judged(match, self._player, judged.mistakes(found), numbers))

    def _begins(self, match: str, judged: JudgedSeat, units: Sequence[JudgedUnit]) -> str:
        unit = self._game.unit
        assert unit is not None, "others are judged silently"
        where = f" in match {match}" if self._has_match else ""
        what = output.plural(len(judged.units), unit.name)
        if len(units) < len(judged.units):
            return f"judging the {len(units)} of {what} that {self._player} lost highest{where}"
        return f"judging {what} of {self._player}{where}, those lost highest first"

    def _look(self, match: str, decision: JudgedDecision) -> None:
        """Tell of a mistake that is worse than all before."""
        is_worst = self._worst is None or badness(decision) < badness(self._worst)
        if self._is_silent or not decision.is_mistake or not is_worst:
            return
        self._worst = decision
        vocabulary, question = self._game.vocabulary, decision.question
        words, judgement = vocabulary.asked_words(question), decision.judgement
        where = f"match {match}, " if self._has_match else ""
        line = (
            f"worst so far: {where}{vocabulary.round} {decision.round:,}, "
            f"question {decision.number:,}: "
            f"it {words.answered(question, decision.answer)}; "
            f"better: {words.answered(question, judgement.best)}; "
            f"costs {output.amount(judgement.cost)} {judgement.unit}"
        )
        click.echo(one_line(line, _LONGEST_LINE), err=True)


def _luck(seat: int, record: Record | SeatDocument) -> _SeatLuck | None:
    """What chance gave a seat in a match; None if its game or settings do not say."""
    if isinstance(record, SeatDocument):
        return None  # luck is made of all cards
    try:
        measured = luck_of(record)
    except NoLuck:
        return None
    return _SeatLuck(measured.unit, measured.gains[seat], measured.luck[seat])


def _ticks(tick: Callable[[], None]) -> Callable[[int, int], None]:
    """Ticks `_PARTS` times in a match."""
    ticked = 0

    def progressed(done: int, of: int) -> None:
        nonlocal ticked
        while ticked * of < done * _PARTS:
            tick()
            ticked += 1

    return progressed


def _show(
    game: Game,
    player: str,
    done: Sequence[_Judged],
    total: int,
    top: int,
    luck: _SeatLuck | None,
    *,
    as_json: bool,
) -> None:
    pairs = [(judged, mistake) for judged in done for mistake in judged.found.mistakes]
    pairs.sort(key=lambda pair: badness(pair[1]))
    described = (_described(game, judged, mistake) for judged, mistake in pairs)
    mistakes = list(islice(_gathered(described), top))
    counts = {
        name: sum(getattr(judged.found, name) for judged in done)
        for name in ("decisions", "judged")
    }
    totals = added(each for judged in done for each in judged.found.totals)
    if as_json:
        output.print_json(
            {
                "game": game.name,
                "player": player,
                "matches": len(done),
                "of": total,
                "version": done[0].found.version if done else None,
                **counts,
                "games": done[0].units or None if total == 1 and done else None,
                "totals": totals,
                "luck": luck,
                "mistakes": mistakes,
            }
        )
        return
    click.echo(one_line(_summary(game, player, done, counts, totals), _LONGEST_LINE))
    if total == 1 and done and done[0].units:
        click.echo(_chosen(game, done[0].units))
    elif any(judged.units for judged in done):
        assert game.unit is not None, "it has units"
        click.echo(
            f"Of long matches only the {output.several(game.unit.name)} that were lost highest "
            "were judged; `--lost 0` judges all."
        )
    if luck is not None:
        gain, cards, without = (
            signed(value, 2) for value in (luck.gain, luck.luck, luck.gain - luck.luck)
        )
        click.echo(f"It won {gain} {luck.unit}s, of which {cards} is luck: {without} without it.")
    for place, mistake in enumerate(mistakes, start=1):
        click.echo()
        round_word = game.vocabulary.round
        for line in _lines(place, mistake, round_word, has_match=total > 1):
            click.echo(one_line(line, _LONGEST_LINE))
    if mistakes:
        click.echo()
        for line in _notes(mistakes):
            click.echo(line)


def _summary(
    game: Game,
    player: str,
    done: Sequence[_Judged],
    counts: dict[str, Any],
    totals: Sequence[UnitTotal],
) -> str:
    where = f"match {done[0].match}" if len(done) == 1 else output.plural(len(done), "match")
    title = f"{game.vocabulary.title}, {where}, {player}"
    if not counts["judged"]:
        return f"{title}: none of {output.plural(counts['decisions'], 'decision')} can be judged."
    judged = output.plural(counts["judged"], "judged decision")
    if counts["judged"] < counts["decisions"]:
        judged += f" of {counts['decisions']:,}"
    if not totals:
        return f"{title}: no mistake in {judged}."
    count = output.plural(sum(each.count for each in totals), "mistake")
    cost = " and ".join(f"{output.amount(each.total)} {each.unit}" for each in totals)
    return f"{title}: {count} in {judged}, together {cost}."


def _chosen(game: Game, units: Sequence[int]) -> str:
    """Which games of a match were judged."""
    assert game.unit is not None, "it has units"
    name = game.unit.name
    if len(units) == 1:
        return f"Only {name} {units[0]} was judged, which was lost highest; `--lost 0` judges all."
    numbers = f"{', '.join(map(str, units[:-1]))} and {units[-1]}"
    return (
        f"Only the {len(units)} {output.several(name)} that were lost highest were judged, "
        f"{numbers}; `--lost 0` judges all."
    )


def _described(game: Game, judged: _Judged, mistake: JudgedDecision) -> _Mistake:
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
        question=words.asked(judged.player, question),
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
    """Each mistake once, at its first place, with how often it was made; estimates stay apart."""
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


def _lines(place: int, mistake: _Mistake, round_word: str, *, has_match: bool) -> Iterator[str]:
    cost = output.amount(mistake.cost)
    how_sure = "exact"
    if mistake.interval is not None:
        low, high = map(output.amount, mistake.interval)
        how_sure = f"estimate, [{low}, {high}]"
    mark = f" {_MARKS[mistake.grade]}" if mistake.grade else ""
    where = f"match {mistake.match}, " if has_match else ""
    times = first = ""
    if mistake.times > 1:
        together = output.amount(mistake.cost * mistake.times)
        times, first = f", {mistake.times:,} times: {together} together", "first in "
    yield f"{place}.{mark} costs {cost} {mistake.unit} ({how_sure}){times}"
    yield f"   {first}{where}{round_word} {mistake.round:,}, its question {mistake.number:,}"
    yield f"   {mistake.question}"
    yield f"   it {mistake.answer_text}"
    yield f"   better: {mistake.best_text}"


def _notes(mistakes: Sequence[_Mistake]) -> Iterator[str]:
    yield "Each is judged by what its seat knew at that moment, whatever cards came then."
    if any(mistake.interval is not None for mistake in mistakes):
        yield (
            f"[low, high] is a {100 * LEVEL:.0f} % interval of an estimate. The costliest of many "
            "estimates are more often too high than too low."
        )
