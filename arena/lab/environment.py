"""A game as an environment for learners: reset, step, and what the seat to move knows."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from hashlib import sha256
from importlib.util import find_spec
from typing import Any, SupportsIndex

import msgspec

from arena.games.catalogue import game_named
from arena.games.match import MatchResult, MatchState
from arena.games.rules import EVERYONE
from arena.games.shuffle import seed_from_int
from protocol.errors import IllegalAnswer, NotInstalled, UsageError
from protocol.strategy import as_sent
from protocol.vocabulary import Legal, News, Question

__all__ = ["Environment", "Observation", "aec_env"]


class Observation(msgspec.Struct, frozen=True):
    """The question to the seat to move, and the news since its previous question."""

    seat: int
    question: Question[Any]
    news: tuple[News, ...]


class Environment:
    """Plays one match of a game after another, an answer at a time.

    `observation` is None when the match is over. `rewards` has each seat's change of score since
    the previous answer. A copy, even a pickled one, continues from the same point: it replays the
    match from the seed and the answers.
    """

    def __init__(self, game: str, settings: Mapping[str, object] | None = None) -> None:
        self.game = game_named(game)
        self.settings = self.game.vocabulary.read_settings(settings)
        self._seed = secrets.token_bytes(32)
        self.reset()

    def reset(self, seed: SupportsIndex | None = None) -> Observation | None:
        """Begin a match; the same seed gives the same cards in this match and all later ones.

        Without a seed, the cards follow from the previous match, as in Gymnasium.
        """
        self._seed = sha256(self._seed).digest() if seed is None else seed_from_int(seed)
        return self._begin()

    def step(self, answer: object) -> Observation | None:
        """Answer for the seat to move; raises `IllegalAnswer`, which changes nothing."""
        if self.observation is None:
            raise UsageError("the match is over: expected reset()")
        before, sent = self._match.scores, as_sent(answer)
        try:
            self._match.answer(sent)
        except IllegalAnswer as error:
            advice = self.observation.question.advice(sent)
            raise IllegalAnswer(f"{error}; {advice}") from None
        return self._go_on(before)

    @property
    def legal(self) -> Legal:
        """Return the legal answers of the seat to move; none when the match is over."""
        return () if self.observation is None else self.observation.question.choices

    def result(self) -> MatchResult:
        """Return how the match ended, with its record."""
        if self.observation is not None:
            raise UsageError("the match is not over")
        return self._match.result()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "game": self.game.name, "_match": [*self._match.answers]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, game=game_named(state["game"]))
        self._begin()
        for answer in state["_match"]:
            Environment.step(self, answer)

    def _begin(self) -> Observation | None:
        self._match = MatchState(self.game, self.settings, seed=self._seed)
        self._heard: list[list[News]] = [[] for _ in range(self.game.seats)]
        return self._go_on(self._match.scores)

    def _go_on(self, before: tuple[int, ...]) -> Observation | None:
        match, heard = self._match, self._heard
        self.rewards = tuple(now - was for now, was in zip(match.scores, before, strict=True))
        for told in match.take_news():
            for seat in range(self.game.seats) if told.seat == EVERYONE else [told.seat]:
                heard[seat].append(told.news)
        self.observation = None
        if (asked := match.pending) is not None:
            self.observation = Observation(asked.seat, asked.question, tuple(heard[asked.seat]))
            heard[asked.seat] = []
        return self.observation


def aec_env(game: str, settings: Mapping[str, object] | None = None) -> Any:
    """Make a `pettingzoo.AECEnv` of a game; `arena/lab/aec_env.py` describes its arrays.

    Raises `NotInstalled` without the extra `pettingzoo`.
    """
    if find_spec("pettingzoo") is None:
        raise NotInstalled("pettingzoo is not installed: pip install 'card-arena[pettingzoo]'")
    from arena.lab.aec_env import AecEnvironment

    return AecEnvironment(Environment(game, settings))
