"""A match as a text for people, played again from its record: who decided what out of what was legal, and what came of it.

What one seat saw is told from the news that the rules told it, and is what its bot could have known: `seat` leaves out everything
else. The words for what happens are in `arena/records/phrases.py`, those of blackjack are B13's. Pure: a record in, lines out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import msgspec

from arena.engine.match import Record
from arena.engine.rules import EVERYONE, AskSeat, Game, TellSeat
from arena.engine.shuffle import Stream, match_key
from arena.games import game_named
from arena.games.blackjack import CUTS
from arena.games.replay import reopened
from arena.records import phrases
from arena.records.blackjack_script import BlackjackScript
from protocol import gin_rummy, high_low
from protocol.blackjack import BlackjackSettings, Shuffled
from protocol.errors import ArenaError, UsageError, in_words, one_line
from protocol.messages import Ending, Verdict

__all__ = ["seat_names", "tell"]

_NOTE = 200  # letters of one that are shown


def tell(
    record: Record,
    players: Sequence[str] = (),
    *,
    seat: int | None = None,
    round_number: int | None = None,
    verdict: Verdict | None = None,
) -> Iterator[str]:
    """A match, line by line.

    Args:
        record: the match.
        players: who sat where, if that is known.
        seat: tell only what this seat could see; from 0.
        round_number: tell only this round; from 1.
        verdict: the evidence, if it ended by an offence.

    Raises:
        UsageError: there is no such seat, or no such round.
        ArenaError: the record cannot be played again, from there on; `arena verify` says more.
    """
    found = False
    with _playing():
        game = game_named(record.game)
        teller = _BlackjackNarrator if game.name == "blackjack" else _Narrator
    if seat is not None and not 0 <= seat < game.seats:
        raise UsageError(f"expected a seat from 1 to {game.seats}, got {seat + 1}")
    with _playing():
        story = teller(game, record, seat_names(players, game.seats), seat)
        if round_number is None:
            yield from story.heading()
        for number, line in story.events():
            if round_number is None or number == round_number:
                found = True
                yield line
    if round_number is None:
        yield from story.ending(verdict)
    elif not found:
        raise UsageError(f"expected a round of the match, got {round_number}")


@contextmanager
def _playing() -> Iterator[None]:
    """A stranger's record may be broken in any way."""
    try:
        yield
    except GeneratorExit:
        raise
    except Exception as error:
        said = str(error) if isinstance(error, ArenaError) else in_words(error)
        raise ArenaError(f"the record cannot be played again: {said}") from error


def seat_names(players: Sequence[str], seats: int) -> tuple[str, ...]:
    """What to call those who sit there: by their names, by their seats where these do not tell them apart."""
    if len(players) != seats:
        return tuple(f"seat {seat}" for seat in range(1, seats + 1))
    return tuple(
        f"{name} (seat {seat})" if players.count(name) > 1 else name
        for seat, name in enumerate(players, start=1)
    )


class _Narrator:
    """Tells the matches of all games but blackjack."""

    def __init__(self, game: Game, record: Record, names: Sequence[str], seat: int | None) -> None:
        self.game, self.record, self.names, self.seat = game, record, names, seat
        self._notes = dict(record.notes)
        self._round = 0
        self._asked: list[list[int]] = [[] for _ in names]  # times in ms, by seat

    # --- the parts of a story ---

    def heading(self) -> Iterator[str]:
        """What is played, by whom, by which settings."""
        chairs = ", ".join(
            name if name.startswith("seat ") else f"seat {number} {name}"
            for number, name in enumerate(self.names, start=1)
        )
        yield f"{self.game.vocabulary.title}: {chairs}"
        settings = ", ".join(
            f"{name} {_word(value)}" for name, value in self.record.settings.items()
        )
        yield f"settings: {settings}"
        if self.seat is not None:
            yield f"as {self.names[self.seat]} saw it"

    def events(self) -> Iterator[tuple[int, str]]:
        """Every line with the number of its round."""
        asked: AskSeat | None = None
        steps = reopened(self.record).steps(self.record.answers)
        for number, step in enumerate(steps, start=-1):
            if step.answered is not None and self._sees(step.answered.seat):
                for line in self.decision(number, step.answered, step.answer):
                    yield self._round, line
            yield from self._told(step.news)
            asked = step.asked
            if asked is not None and self._sees(asked.seat):
                yield from self._begins(asked.question)
        if asked is None or not self.record.termination.is_offence:
            return
        if self._sees(asked.seat):
            for line in self.unanswered(asked):
                yield self._round, line

    def ending(self, verdict: Verdict | None) -> Iterator[str]:
        """Why it stopped, the scores, the times."""
        record, ended = self.record, self.record.termination
        if ended.kind is Ending.VOID:
            yield f"void: {one_line(ended.text)}"
        elif ended.is_offence and ended.seat is not None:
            who = self.names[ended.seat] if ended.seat < len(self.names) else "?"
            # Who it was and why, in one word, is all that the others learnt.
            text = f": {one_line(ended.text, 500)}" if self._sees(ended.seat) else ""
            yield f"{who} is out: {ended.kind.value}{text}"
        if verdict is not None and self._sees(verdict.seat):
            yield from _evidence(verdict)
        yield f"scores: {phrases.scores(self.names, record.scores)}"
        if any(record.points):
            yield f"points: {phrases.scores(self.names, record.points)}"
        for name, times_ms in zip(self.names, self._asked, strict=True):
            if times_ms:
                yield (
                    f"{name} took {sum(times_ms):,} ms for {_decisions(len(times_ms))}, "
                    f"{max(times_ms):,} ms at most"
                )

    # --- the lines of an event ---

    def decision(self, number: int, asked: AskSeat, answer: Any) -> Iterator[str]:
        """The lines for an answer."""
        question = asked.question
        what = phrases.asked(self.names[asked.seat], question)
        did = phrases.answered(question, answer)
        took = self._took(number, asked.seat)
        yield f"  {what}: {did} [{phrases.legal(question)}{took}]"
        yield from self.note(number, asked.seat)

    def note(self, number: int, seat: int) -> Iterator[str]:
        """What its author had to say with an answer."""
        if number in self._notes:
            text = one_line(self._notes[number], _NOTE)
            yield f'    {self.names[seat]} notes: "{text}"'

    def unanswered(self, asked: AskSeat) -> Iterator[str]:
        """The lines for the question that got no answer, or not a legal one."""
        what = phrases.asked(self.names[asked.seat], asked.question)
        yield f"  {what}: gives no legal answer [{phrases.legal(asked.question)}]"

    def heard(self, tell: TellSeat) -> Iterator[str]:
        """The lines for news that we may see."""
        actor = phrases.actor(tell.news)
        if actor is not None and self._sees(actor):
            return  # its decision has just been told
        to = range(len(self.names)) if tell.seat == EVERYONE else (tell.seat,)
        for line in phrases.heard(tell.news, self.names, to):
            yield f"  {line}"

    def opening(self, news_or_question: Any) -> Iterator[str]:
        """The line with which a round begins."""
        match news_or_question:
            case gin_rummy.Dealt(game=game, upcard=card, starter=starter):
                more = f" of game {game}: the up-card is {card}, {self.names[starter]} starts"
            case high_low.Dealt(dealer_card=card, starter=starter):
                more = f": the dealer-card is {card}, {self.names[starter]} starts"
            case _:
                more = ""
        yield f"round {self._round}{more}"

    # --- within ---

    def _sees(self, seat: int) -> bool:
        return self.seat is None or self.seat == seat

    def _told(self, news: Sequence[TellSeat]) -> Iterator[tuple[int, str]]:
        for tell in news:
            if tell.seat != EVERYONE and not self._sees(tell.seat):
                continue
            yield from self._begins(tell.news)
            for line in self.heard(tell):
                yield self._round, line

    def _begins(self, what: Any) -> Iterator[tuple[int, str]]:
        """A new round, if there is one."""
        number = getattr(what, "round", self._round)
        if number != self._round:
            self._round = number
            for line in self.opening(what):
                yield number, line

    def _took(self, number: int, seat: int) -> str:
        if number >= len(self.record.times_ms):
            return ""
        took_ms = self.record.times_ms[number]
        self._asked[seat].append(took_ms)
        return f"; {took_ms:,} ms"


class _BlackjackNarrator(_Narrator):
    """Tells a match of blackjack in the words of B13; its player does not see where the deck was cut (B11)."""

    def __init__(self, game: Game, record: Record, names: Sequence[str], seat: int | None) -> None:
        super().__init__(game, record, names, seat)
        settings = game.vocabulary.read_settings(dict[str, object](record.settings))
        assert isinstance(settings, BlackjackSettings), "the vocabulary's own"
        self._made: list[int] = []
        self._cuts: Iterator[int] = iter(())
        if settings.shuffle == "riffle" and seat is None:
            self._cuts = self._all_cuts(settings)
        self._transcript = BlackjackScript(settings.bankroll, self._made)
        self._round = 1  # the first shuffle is of the first hand

    def decision(self, number: int, asked: AskSeat, answer: Any) -> Iterator[str]:
        """The lines for an answer."""
        self._took(number, asked.seat)
        yield from self._transcript.asked(asked.question)
        yield from self._transcript.answered(asked.question, answer)
        yield from self.note(number, asked.seat)

    def unanswered(self, asked: AskSeat) -> Iterator[str]:
        """The lines for the question that got no answer, or not a legal one."""
        yield from self._transcript.asked(asked.question)

    def heard(self, tell: TellSeat) -> Iterator[str]:
        """The lines for news."""
        if type(tell.news) is Shuffled:
            self._made[:] = islice(self._cuts, CUTS)
        yield from self._transcript.told(tell.news)

    def opening(self, news_or_question: Any) -> Iterator[str]:
        """Nothing: a hand has its own line."""
        return iter(())

    def ending(self, verdict: Verdict | None) -> Iterator[str]:
        """The last line, then what all games end with."""
        yield self._transcript.end
        yield from super().ending(verdict)

    def _all_cuts(self, settings: BlackjackSettings) -> Iterator[int]:
        """Where the deck was cut, all through the match."""
        record = self.record
        if record.seed is None:
            return iter(record.decks or ())
        key = match_key(bytes.fromhex(record.seed), record.nonces)
        return self.game.deals(settings, Stream(key))


def _evidence(verdict: Verdict) -> Iterator[str]:
    """What is kept of an elimination (J4), a line each."""
    waited = verdict.waited_ms
    for what, said in (
        ("legal was", verdict.legal),
        ("it answered", verdict.got),
        ("found out by", verdict.mechanism.value),
        ("it took", None if waited is None else f"{waited:,.0f} ms"),
        ("left in its bank", f"{verdict.bank_ms:,} ms"),
        ("held to", verdict.enforced),
        ("its process ended with", verdict.exit_status),
        ("it said last", (verdict.stderr or "").strip().rpartition("\n")[2] or None),
        ("advice", verdict.advice or None),
    ):
        if said is not None:
            yield one_line(f"  {what}: {said}", 500)


def _word(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _decisions(count: int) -> str:
    return "1 decision" if count == 1 else f"{count:,} decisions"
