"""A match of `arena check`: the real rules, the bot in one seat, strategies in the others.

It does no I/O: `CheckMatch` says what to send next, and takes what came. The cards come from a seed
and the seats' nonces, as in an arena, so that a bot may check the commitment.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import msgspec

from arena.games.match import MatchState
from arena.games.rules import EVERYONE, Game, Variation
from arena.games.shuffle import Stream, commitment, match_key
from arena.referee.clock import SeatClock
from protocol import messages
from protocol.errors import ArenaError, IllegalAnswer
from protocol.messages import Ask, Ending, Limits, Over, Past, Reveal, Termination
from protocol.session import ask_id
from protocol.strategy import Strategy, as_sent, find, house_bots
from protocol.vocabulary import News, Question, Range

__all__ = ["AnyLegal", "CheckMatch", "house", "seed_of"]

_TRIES = 10_000  # the rarest first deal that is wanted is one in 1,250; half a second at most
_LISTED = 1_000_000  # a bet beyond that ends most matches


class AnyLegal:
    """Answers any game at random: where there are no house bots, and to reach rare questions.

    `prefer` takes the legal answers and returns those to choose from; if it returns none, all.
    """

    def __init__(
        self,
        rng: random.Random,
        prefer: Callable[[Sequence[Any]], Sequence[Any]] = lambda legal: legal,
    ) -> None:
        self._rng = rng
        self._prefer = prefer

    def decide(self, question: Question[Any]) -> object:
        legal = question.choices
        if isinstance(legal, Range):
            return self._rng.randint(legal.min, min(legal.max, legal.min + _LISTED))
        return self._rng.choice(self._prefer(legal) or legal)

    def hear(self, news: News) -> None:
        """News changes nothing."""

    def reset(self) -> None:
        """There is nothing to forget."""


def house(game: str, number: int, rng: random.Random) -> tuple[str, Strategy]:
    """A house bot's name and strategy, or `AnyLegal`; raises `UnknownBot` if it cannot load one."""
    bots = _bots(game)
    if not bots:
        return "chance", AnyLegal(rng)
    name, cls = bots[number % len(bots)]
    strategy: Strategy = cls()
    if callable(seeding := getattr(strategy, "seed", None)):
        seeding(str(rng.getrandbits(64)))
    return name, strategy


@cache
def _bots(game: str) -> tuple[tuple[str, type[Any]], ...]:
    # Cached: finding them takes longer than many a match.
    return tuple((name, find(game, name)) for name in house_bots(game))


class CheckMatch:
    """One match, from its invitation to its end.

    Args:
        number: the number of the match in this check, a part of its id.
        variation: its settings, opponents and first deal.
        name: the bot's.
        run: what the match's id begins with.

    Attributes:
        id: the match's id for the bot's seat.
        ask: the question that the bot has not answered yet, if any.
        asked, rounds: how many questions there were, and how many rounds are over.
        clock: the bot's time for the match, as in an arena.
    """

    def __init__(
        self,
        number: int,
        game: Game,
        variation: Variation,
        seat: int,
        name: str,
        limits: Limits,
        rng: random.Random,
        run: str = "check",
    ) -> None:
        self.run = run
        self.id = f"{run}-{number}.{seat}"
        self.game, self.seat, self.limits = game, seat, limits
        self.settings = game.vocabulary.read_settings(variation.settings(seat))
        self.ask: Ask | None = None
        self.asked = self.rounds = 0
        self.clock = SeatClock(limits)
        self._rng = rng
        self._seed = rng.randbytes(32)
        self._wanted = variation.wanted
        self._others: dict[int, Strategy] = {}
        names = [name] * game.seats
        for other in (each for each in range(game.seats) if each != seat):
            if variation.chooses is None:
                names[other], self._others[other] = house(game.name, number + other, rng)
            else:
                names[other], self._others[other] = "chance", AnyLegal(rng, variation.chooses)
        self._names = tuple(names)
        self._match: MatchState | None = None
        self._nonces: tuple[str, ...] = ()
        self._news: list[News] = []

    @property
    def is_over(self) -> bool:
        """Whether nothing more is asked."""
        return self._match is not None and self._match.termination is not None

    @property
    def invitation(self) -> messages.Match:
        """The match's invitation, the same every time."""
        return messages.Match(
            match=self.id,
            game=self.game.name,
            seat=self.seat,
            seats=self._names,
            settings=msgspec.to_builtins(self.settings),
            limits=self.limits,
            commitment=commitment(self._seed),
        )

    def begin(self, nonce: str) -> None:
        """Deal, with the nonce of the bot's first `ready`; later ones do nothing."""
        if self._match is not None:
            return
        for _ in range(_TRIES):
            self._nonces = tuple(
                nonce if seat == self.seat else self._rng.randbytes(16).hex()
                for seat in range(self.game.seats)
            )
            if self._wanted is None or self._wanted(self._first_deal(), self.seat):
                break
        for strategy in self._others.values():
            strategy.reset()
        self._match = MatchState(self.game, self.settings, seed=self._seed, nonces=self._nonces)

    def next(self) -> Ask | Over:
        """The bot's next question, or `over`; raises `ArenaError` if a house bot fails."""
        match = self._running
        while True:
            self._tell(match)
            pending = match.pending
            if pending is None:
                return self._over(match)
            if pending.seat == self.seat:
                break
            value = as_sent(self._others[pending.seat].decide(pending.question))
            try:
                match.answer(value)
            except IllegalAnswer as error:
                raise ArenaError(f"a house bot failed: {error}") from None
        self.asked += 1
        number, news = ask_id(self.id, self.asked), self._take_news()
        bank_ms, free_ms = self.clock.bank_ms, self.limits.decision_ms
        self.ask = Ask(self.id, number, pending.question, news, bank_ms, free_ms)
        return self.ask

    def take(self, value: object) -> None:
        """Take the answer; an illegal one raises `IllegalAnswer`, and the question stays open."""
        assert self.ask is not None, "an answer follows a question"
        legal = self.ask.question.check(value)
        self.ask = None
        self._running.answer(legal)

    def past(self, first: int) -> list[Past]:
        """The bot's questions and answers from number `first` + 1 on."""
        told = list(self._running.history_for(self.seat))
        return [
            Past(self.id, ask_id(self.id, number), question, news, answer)
            for number, (question, news, answer) in enumerate(told, start=1)
            if number > first
        ]

    def instead(self) -> None:
        """Take a random legal answer instead of the bot's."""
        assert self.ask is not None, "an answer follows a question"
        self.take(AnyLegal(self._rng).decide(self.ask.question))

    def end(self, kind: Ending, seat: int | None, text: str = "") -> Over:
        """End the match early: void, or for the offence of another seat."""
        match = self._running
        match.end(kind, seat, text)
        self.ask = None
        self._tell(match)
        return self._over(match)

    def _first_deal(self) -> Any:
        key = match_key(self._seed, self._nonces)
        return next(self.game.deals(self.settings, Stream(key)))

    @property
    def _running(self) -> MatchState:
        assert self._match is not None, "the bot has said `ready`"
        return self._match

    def _tell(self, match: MatchState) -> None:
        for tell in match.take_news():
            if tell.seat in (self.seat, EVERYONE):
                self._news.append(tell.news)
                self.rounds += type(tell.news) is self.game.vocabulary.closes
            for seat, strategy in self._others.items():
                if tell.seat in (seat, EVERYONE):
                    strategy.hear(tell.news)

    def _over(self, match: MatchState) -> Over:
        ended = match.termination
        assert ended is not None, "there is no question left"
        if ended.is_offence:  # the text is for the offender alone, which is another seat
            ended = Termination(ended.kind, ended.seat)
        reveal = Reveal(self._seed.hex(), self._nonces)
        return Over(self.id, self._take_news(), match.scores, ended, reveal)

    def _take_news(self) -> tuple[News, ...]:
        news, self._news = tuple(self._news), []
        return news


def seed_of(seed: int) -> random.Random:
    """The source of chance of a check, the same for the same seed."""
    return random.Random(hashlib.sha256(str(seed).encode()).digest())
