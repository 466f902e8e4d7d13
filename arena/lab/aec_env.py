"""A game as a `pettingzoo.AECEnv`, made from the types in its vocabulary.

Agents are `seat_0`, `seat_1` and so on. The agent to move observes these arrays; the other agents
observe only their seat:

- `observation`: the seat, each kind of question, and the latest `NEWS_KEPT` news of each kind since
  the agent's last question, latest first; zeros stand for what was not asked or told.
- `answers`: a row for each action, which encodes the answer it gives.
- `action_mask`: a 1 for each legal action. An action is an index into the legal answers; a range,
  or a list longer than `MOST_ANSWERS`, is thinned to that many answers at even steps.

A number or a truth value takes one entry. A card is one-hot over the 52 of `protocol.cards.PACK`,
and a word over the words of its type. A struct or a tuple of fixed length is its parts in order.
Any other tuple is the sum of its items: a hand has a 1 for each card. A value that may be null has
an entry before it, 1 if it is not null. Free text is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from msgspec import inspect
from pettingzoo import AECEnv  # type: ignore[import-untyped]

from arena.lab.environment import Environment
from protocol.cards import PACK, Card
from protocol.errors import UsageError
from protocol.strategy import as_sent
from protocol.vocabulary import Legal, News, Question

__all__ = ["MOST_ANSWERS", "NEWS_KEPT", "AecEnvironment"]

MOST_ANSWERS = 32
NEWS_KEPT = 4  # enough for one action of each of four seats between two questions
_CARD = inspect.type_info(Card)


class AecEnvironment(AECEnv):  # type: ignore[misc]
    """An `Environment` whose questions are arrays and whose answers are numbers."""

    def __init__(self, environment: Environment) -> None:
        super().__init__()
        self.environment = environment
        words = environment.game.vocabulary
        self.metadata = {"name": f"{words.name}_v1", "render_modes": ["ansi"]}
        self.possible_agents = agents = [f"seat_{seat}" for seat in range(words.seats)]
        self._answer = inspect.UnionType((*map(_answer_type, words.questions.values()),))
        self._at: dict[type, tuple[inspect.Type, list[int]]] = {}  # type, offsets
        size = words.seats
        for kind in (*words.questions.values(), *words.news.values()):
            info = inspect.UnionType((inspect.type_info(kind),))
            width, times = len([*_places(info, None)]), NEWS_KEPT if issubclass(kind, News) else 1
            self._at[kind] = info, [size + width * number for number in range(times)]
            size += width * times
        rows = MOST_ANSWERS, len([*_places(self._answer, None)])
        observed: dict[str, spaces.Space[Any]] = {
            "observation": spaces.Box(-np.inf, np.inf, (size,), np.float32),
            "answers": spaces.Box(-np.inf, np.inf, rows, np.float32),
            "action_mask": spaces.Box(0, 1, rows[:1], np.int8),
        }
        self.observation_spaces: dict[str, Any] = {each: spaces.Dict(observed) for each in agents}
        self.action_spaces = {each: spaces.Discrete(MOST_ANSWERS) for each in agents}

    def observation_space(self, agent: str) -> Any:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        self.environment.reset(seed)
        self.agents = [*self.possible_agents]
        self.rewards = dict.fromkeys(self.agents, 0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self.agent_selection = self.agents[0]
        self._go_on()

    def step(self, action: int | None) -> None:
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        choices = _listed(self.environment.legal)
        number = as_sent(action)
        if type(number) is not int or not 0 <= number < len(choices):
            raise UsageError(f"expected an action from 0 to {len(choices) - 1}, got {action!r}")
        self.environment.step(choices[number])
        self._cumulative_rewards[agent] = 0
        self.rewards = dict(zip(self.agents, self.environment.rewards, strict=True))
        self._accumulate_rewards()
        self._go_on()

    def observe(self, agent: str) -> dict[str, Any]:
        space, observed = self.observation_spaces[agent], self.environment.observation
        arrays = {name: np.zeros(each.shape, each.dtype) for name, each in space.items()}
        arrays["observation"][self.possible_agents.index(agent)] = 1
        if observed is None or self.possible_agents[observed.seat] != agent:
            return arrays
        told = observed.question, *reversed(observed.news)
        for kind, (info, places) in self._at.items():
            found = (each for each in told if type(each) is kind)
            for at, each in zip(places, found, strict=False):
                numbers = [*_places(info, each)]
                arrays["observation"][at : at + len(numbers)] = numbers
        for action, answer in enumerate(_listed(observed.question.choices)):
            arrays["answers"][action] = [*_places(self._answer, answer)]
            arrays["action_mask"][action] = 1
        return arrays

    def render(self) -> str:
        return str(self.environment.observation)

    def close(self) -> None:
        """Do nothing: the environment holds no resources."""

    def _go_on(self) -> None:
        observed = self.environment.observation
        self.terminations = dict.fromkeys(self.agents, observed is None)
        if observed is not None:
            self.agent_selection = self.possible_agents[observed.seat]


def _listed(legal: Legal) -> Sequence[Any]:
    every = legal if isinstance(legal, tuple) else range(legal.min, legal.max + 1)
    last, most = len(every) - 1, MOST_ANSWERS - 1
    return [every[number * last // most] for number in range(most + 1)] if last > most else every


def _answer_type(question: type[Question[Any]]) -> inspect.Type:
    info: Any = inspect.type_info(question)
    [legal] = (each.type for each in info.fields if each.name == "legal")
    return legal.item_type if isinstance(legal, inspect.VarTupleType) else inspect.IntType()


def _places(kind: inspect.Type, value: Any) -> Iterator[float]:
    """Yield the numbers that encode a value of this type; zeros encode None."""
    match kind:
        case inspect.Metadata():
            cards = (float(value == card) for card in PACK)
            yield from cards if kind == _CARD else _places(kind.type, value)
        case inspect.BoolType() | inspect.IntType() | inspect.FloatType():
            yield float(value) if isinstance(value, int | float) else 0.0
        case inspect.LiteralType():
            yield from (float(value == word) for word in kind.values)
        case inspect.VarTupleType():
            items = [_places(kind.item_type, item) for item in (None, *(value or ()))]
            yield from map(sum, zip(*items, strict=True))
        case inspect.TupleType():
            for place, part in enumerate(kind.item_types):
                yield from _places(part, value and value[place])
        case inspect.UnionType():
            yield float(value is not None)
            for part in kind.types:
                yield from _places(part, value)
        case inspect.StructType():
            for field in kind.fields:
                if field.name != "legal" or not isinstance(field.type, inspect.VarTupleType):
                    yield from _places(field.type, getattr(value, field.name, None))
