"""Asks a bot the questions of a finished match again, and records where its answers differ.

The cards come from the record's seed and nonces, and all answers from the record. So every question
comes with the same news as in the match, even after an answer that differs. A seat's document
(`arena/records/seat_document.py`) works as well. `arena/lab/seat_referee.py` asks the bot.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from arena.games.catalogue import game_named
from arena.games.match import MatchState, Record
from arena.games.replay import Event, Playback, reopened
from arena.games.rules import TellSeat
from arena.games.shuffle import commitment
from arena.lab.launched import private_arena
from arena.lab.seat_referee import BotFailed, Script, SeatReferee, arrived, referee_of
from arena.records.seat_document import SeatDocument, seat_match
from arena.records.visibility import ending_for
from arena.referee.bot_session import BotSession
from arena.sandbox.command import Program, bot_command, strategy_program
from protocol.errors import ArenaError, IllegalAnswer, UsageError, one_line
from protocol.messages import Limits, Over, Reveal
from protocol.vocabulary import Question

__all__ = [
    "NO_ANSWER",
    "BotFailed",
    "Difference",
    "RecordedSeat",
    "ReplayOutcome",
    "brought",
    "program_of",
    "replay_to_bot",
]


NO_ANSWER = "no legal answer"
"""Stands for the answer to a question that has none in the record."""

_LONGEST_NAME = 64  # as in `hello`
_MOST_ALTERNATIVES = 100  # answers whose outcome is computed; each takes a replay


class Difference(msgspec.Struct, frozen=True):
    """A question that was answered differently.

    Attributes:
        number: which of this seat's questions it is, from 1.
        round: in which round, from 1.
        recorded: the answer in the record; the text `NO_ANSWER` if there was none.
        given: the answer now.
        brought: what the round brought the seat; None unless `would` is known.
        would: what it would have brought with the answer now, if cards and rules alone decide it.
    """

    number: int
    round: int
    question: Question[Any]
    recorded: Any
    given: Any
    brought: int | None = None
    would: int | None = None


class ReplayOutcome(msgspec.Struct, frozen=True):
    """The number of equal answers, the differences, and why the bot stopped early, if it did."""

    same: int
    differences: tuple[Difference, ...] = ()
    failed: BotFailed | None = None


async def replay_to_bot(
    record: Record | SeatDocument,
    seat: int,
    players: Sequence[str],
    start: Callable[[str, str], Program],
    limits: Limits,
    match: str = "replay",
) -> ReplayOutcome:
    """Ask a bot all questions of a seat; the match goes on as recorded.

    A `SeatDocument` works only for its own seat. Seats count from 0, and `players` are the names by
    seat. `start` makes the bot's command line from the arena's address and the bot's name.

    Raises:
        UsageError: `record` is not a match's, there is no such seat, no bot can have that name, or
            the command can never work here.
        ArenaError: the bot cannot be started on this machine.
    """
    seen = record if isinstance(record, SeatDocument) else None
    record = record.record if isinstance(record, SeatDocument) else record
    seats = game_named(record.game).seats
    if not 0 <= seat < seats:
        raise UsageError(f"expected a seat from 1 to {seats}, got {seat + 1}")
    name = players[seat]
    if not 0 < len(name) <= _LONGEST_NAME or "\0" in name:  # the file may have been edited by hand
        raise UsageError(f"expected a bot's name at seat {seat + 1}, got {one_line(name, 80)!r}")
    recorded = RecordedSeat(record, seat, seen)
    async with private_arena(limits) as host:
        referee = referee_of(host)
        await host.supervisor.launch_program(start(host.url, name), name)
        player = await arrived(host, name, limits)
        if isinstance(player, BotFailed):
            return ReplayOutcome(0, failed=player)
        failed = await recorded.put_to(player, referee, players, match)
    differences = recorded.differences if seen else recorded.weighed()
    return ReplayOutcome(recorded.same, tuple(differences), failed)


def program_of(game: str, bot: str, seed: str | None = None) -> Callable[[str, str], Program]:
    """Make the `start` of `replay_to_bot` for a house bot or a FILE.py."""

    def start(url: str, name: str) -> Program:
        if bot.endswith(".py"):
            program = strategy_program(bot, url=url, name=name)
        else:
            program = Program(tuple(bot_command((game, bot), url=url, name=name)))
        seeded = () if seed is None else ("--seed", seed)
        return msgspec.structs.replace(program, words=(*program.words, *seeded))

    return start


class RecordedSeat:
    """A seat of a finished match, replayed with the recorded answers of all seats.

    Args:
        seen: the match as this seat saw it, if the record has no cards.

    Attributes:
        same: the number of answers that equal the recorded ones.
        differences: the other answers.
    """

    def __init__(self, record: Record, seat: int, seen: SeatDocument | None = None) -> None:
        self.same = 0
        self.differences: list[Difference] = []
        self._match = reopened(record) if seen is None else _unseen(record)
        self._record, self._seat, self._seen = record, seat, seen
        self._places: list[int] = []  # of the differences, as indices into the record's answers

    def put_to(
        self, bot: BotSession, referee: SeatReferee, players: Sequence[str], match: str
    ) -> asyncio.Future[BotFailed | None]:
        """Begin to ask a bot the seat's questions; the arguments are as in `SeatReferee.put`."""
        record = self._record
        hidden = commitment(bytes.fromhex(record.seed)) if record.seed else ""
        about = self._match, self._seat, players, self.script(), record.commitment or hidden
        return referee.put(bot, match, *about)

    def script(self) -> Script:
        ended = self._record.termination
        try:
            played = seat_match(self._seen or self._record, self._seat)
        except (IllegalAnswer, ValueError) as error:
            raise ArenaError(f"the record cannot be played again: {error}") from None
        number = 1
        for decision in played.decisions:
            number = decision.round
            given = yield decision.question, decision.news
            if given == decision.answer:
                self.same += 1
            else:
                about = decision.number, number, decision.question, decision.answer
                self.differences.append(Difference(*about, given))
                self._places.append(decision.index)
        # The last question may have no answer, if another seat ended the match.
        news = played.news
        if played.waiting is not None and ended.is_offence and ended.seat == self._seat:
            closes = self._match.game.vocabulary.closes
            number += sum(type(each) is closes for each in news)
            given = yield played.waiting, news
            about = len(played.decisions) + 1, number, played.waiting, NO_ANSWER
            self.differences.append(Difference(*about, given))
            self._places.append(len(self._record.answers))
            news = ()
        reveal = Reveal(self._record.seed, self._record.nonces) if self._record.seed else None
        return Over("", news, self._record.scores, ending_for(ended, [self._seat]), reveal)

    def weighed(self) -> Iterator[Difference]:
        """Yield the differences; only the first hundred may have `brought` and `would`."""
        for nth, (difference, place) in enumerate(zip(self.differences, self._places, strict=True)):
            found = None
            if nth < _MOST_ALTERNATIVES:
                found = brought(self._record, self._seat, place, difference.given)
            if found is None:
                yield difference
            else:
                did, would = found
                yield msgspec.structs.replace(difference, brought=did, would=would)


def _unseen(record: Record) -> MatchState:
    """Make a match with unknown cards, as it is before the deal."""
    game = game_named(record.game, record.package)
    settings = game.vocabulary.read_settings(record.settings)
    return MatchState(game, settings, seed=bytes(32), start=False)


def brought(record: Record, seat: int, index: int, answer: object) -> tuple[int, int] | None:
    """Return what a round brought a seat, and what it would have brought with another answer.

    `index` is the index of the recorded answer. Returns None if the other answer does not end the
    round, as later play is then unknown, or if the record does not end it. Raises as `events_of`.
    """
    playback = Playback.of(record, seat)
    playback.take_events()
    for value in record.answers[:index]:
        playback.feed(value)
    would = _payoff(playback, playback.feed(answer))
    if would is None:
        return None
    playback = Playback.of(record, seat)
    for number, events in enumerate(playback.feed_all(record)):
        if number >= index and (did := _payoff(playback, events)) is not None:
            return did, would
    return None


def _payoff(playback: Playback, events: Iterable[Event]) -> int | None:
    """Return what a finished round brought."""
    words, seat = playback.match.game.vocabulary, playback.seat
    for event in events:
        if type(event) is TellSeat and type(event.news) is words.closes:
            return words.payoffs(event.news)[seat or 0]
    return None
