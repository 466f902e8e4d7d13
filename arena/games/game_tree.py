"""Lists all histories of one unit of a small game, by running its rules with a branching stream.

A history is a list of choices: which card a draw gives, which answer a seat gives. A generator
cannot be copied, so the rules run once per history, from the beginning of the match, with given
choices for the units before. A shuffled deck is drawn card by card as the rules look at it, so
cards that nobody looks at make no further histories.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import prod
from random import Random
from statistics import fmean
from typing import Any, TypeAlias, TypeVar, cast, overload

import msgspec

from arena.games.rules import EVERYONE, AskSeat, Game, Scoreboard
from arena.games.shuffle import Stream
from protocol.errors import ArenaError, NoAnalysis, in_words
from protocol.vocabulary import News, Question, Range, Settings

__all__ = [
    "MOST_HISTORIES",
    "ChanceNode",
    "DecisionNode",
    "GameTree",
    "Leaf",
    "TreeNode",
    "View",
    "Views",
    "number_of",
]

MOST_HISTORIES = 100_000
"""The most histories that are listed for a unit; that many take seconds."""
_MOST_STEPS = 200  # of a history; endless raises would never end
_SAMPLED = 500  # histories from which their number is estimated

Item = TypeVar("Item")
View: TypeAlias = int
"""What one seat was told, asked and has answered in a unit, as a number from `Views`."""


class Leaf(msgspec.Struct, frozen=True):
    """The end of a history.

    Attributes:
        choices: the choices that led to it.
        views: by seat, what it knew before it was told how the unit ended.
        payoffs: by seat.
    """

    choices: tuple[int, ...]
    views: tuple[View, ...]
    payoffs: tuple[float, ...]


class ChanceNode(msgspec.Struct):
    """A draw; `shares` are the probabilities of its outcomes."""

    shares: tuple[float, ...]
    children: list[TreeNode] = []

    @property
    def size(self) -> int:
        return len(self.shares)


class DecisionNode(msgspec.Struct):
    """A question to `seat`, which cannot distinguish nodes with the same `view`."""

    seat: int
    view: View
    answers: tuple[Any, ...]
    children: list[TreeNode] = []

    @property
    def size(self) -> int:
        return len(self.answers)


TreeNode: TypeAlias = ChanceNode | DecisionNode | Leaf


class Views:
    """Numbers the views of all seats in all units; the number of a round is no part of a view."""

    NOTHING: View = 0

    def __init__(self) -> None:
        self._known: dict[tuple[View, bytes | int], View] = {}

    def after(self, view: View, said: bytes | int) -> View:
        """The view after one more message, encoded by `seen`, or after an answer's number."""
        return self._known.setdefault((view, said), len(self._known) + 1)

    def after_message(self, view: View, message: News | Question[Any]) -> View:
        return self.after(view, seen(message))


def seen(message: News | Question[Any]) -> bytes:
    """Encode a message without its round number: rounds that differ only in it are the same."""
    fields = {name: getattr(message, name) for name in message.__struct_fields__}
    fields.pop("round", None)
    return msgspec.msgpack.encode((message.kind, fields))


def number_of(answer: Any, question: Question[Any]) -> int:
    """The index of an answer among the legal ones; -1 if it is not among them."""
    legal = question.choices
    if isinstance(legal, Range):
        return int(answer - legal.min)
    return legal.index(answer) if answer in legal else -1


def _listed(question: Question[Any]) -> tuple[Any, ...]:
    """The legal answers of a question; raises `NoAnalysis` if there are too many to list."""
    legal = question.choices
    if not isinstance(legal, Range):
        return legal
    if legal.max - legal.min >= MOST_HISTORIES:
        raise NoAnalysis(f"{question.kind} may be answered by {legal}: too many to try")
    return tuple(range(legal.min, legal.max + 1))


class _Draws(Stream):
    """A stream whose draws are the choices of a history."""

    __slots__ = ("_course",)

    def __init__(self, course: _Course) -> None:
        super().__init__(b"")
        self._course = course

    def below(self, n: int) -> int:
        return self._course.drawn([1] * n)

    def shuffled(self, cards: Sequence[Item]) -> list[Item]:
        return self.dealt(cards, len(cards))

    def dealt(self, cards: Sequence[Item], count: int) -> list[Item]:
        # Rules only read a deck; they change nothing but lists of their own.
        return cast(list[Item], _Deck(self._course, cards, count))


class _Deck(Sequence[Item]):
    """Cards that are drawn when they are looked at; equal cards are one outcome."""

    def __init__(self, course: _Course, cards: Sequence[Item], count: int) -> None:
        self._course = course
        self._unit = course.unit
        self._left = Counter(cards)
        self._drawn: dict[int, Item] = {}
        self._places = list(range(count))

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, at: int) -> Item: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Item]: ...

    def __getitem__(self, at: int | slice) -> Item | Sequence[Item]:
        if isinstance(at, slice):
            return [self._card(place) for place in self._places[at]]
        return self._card(self._places[at])

    def pop(self, at: int = -1) -> Item:
        return self._card(self._places.pop(at))

    def _card(self, place: int) -> Item:
        if place not in self._drawn:
            if self._unit != self._course.unit:
                raise NoAnalysis("its cards are not dealt anew for each unit")
            choice = self._course.drawn([*self._left.values()])
            card = [*self._left][choice]
            self._drawn[place] = card
            self._left[card] -= 1
            if not self._left[card]:
                del self._left[card]
        return self._drawn[place]


class _Course:
    """One run of the rules with given choices.

    Attributes:
        unit: how many units are closed.
        steps, choices: the draws and questions of the last unit, and the choice at each.
        views: by seat, its view in the last unit.
        payoffs: of the last unit.
    """

    def __init__(
        self,
        seats: int,
        given: Sequence[int],
        otherwise: Callable[[int], int],
        units: int,
        views: Views,
    ) -> None:
        """Prepare a run that ends with the unit after `units` others.

        After the `given` choices, `otherwise` makes each choice; its argument is their number.
        """
        self.unit = 0
        self.steps: list[ChanceNode | DecisionNode] = []
        self.choices: list[int] = []
        self.views = [Views.NOTHING] * seats
        self.payoffs: tuple[float, ...] = ()
        self._given = iter(given)
        self._otherwise = otherwise
        self._units = units
        self._known = views

    @property
    def leaf(self) -> Leaf:
        return Leaf(tuple(self.choices), tuple(self.views), self.payoffs)

    def run(self, game: Game, settings: Settings) -> None:
        """Run the rules. Raises `NoAnalysis` if the unit never closes, and what the rules raise."""
        unit = game.unit
        assert unit is not None, "only games with units are listed"
        rules = game.rules(settings, game.deals(settings, _Draws(self)), Scoreboard(game.seats))
        reply: Any = None
        while self.unit <= self._units:
            try:
                step = rules.send(reply)
            except StopIteration:
                raise NoAnalysis(f"a match may end before a {unit.name} is closed") from None
            reply = None
            if isinstance(step, AskSeat):
                reply = self._answered(step.seat, step.question)
            elif type(step.news) is unit.closes and step.seat in (EVERYONE, 0):
                self.payoffs = tuple(map(float, unit.payoffs(step.news)))
                self.unit += 1
            else:
                news = seen(step.news)
                for seat in range(game.seats) if step.seat == EVERYONE else (step.seat,):
                    self._see(seat, news)

    def drawn(self, weights: Sequence[int]) -> int:
        """Draw one of some outcomes with these weights; returns its index."""
        if len(weights) == 1:
            return 0
        total = sum(weights)
        return self._chosen(ChanceNode(tuple(weight / total for weight in weights)))

    def _answered(self, seat: int, question: Question[Any]) -> Any:
        answers = _listed(question)
        self._see(seat, seen(question))
        is_free = len(answers) > 1
        choice = self._chosen(DecisionNode(seat, self.views[seat], answers)) if is_free else 0
        self._see(seat, choice)
        return answers[choice]

    def _chosen(self, step: ChanceNode | DecisionNode) -> int:
        choice = next(self._given, None)
        if choice is None:
            choice = self._otherwise(step.size)
        choice = min(choice, step.size - 1)  # the given choices may come from another unit
        if self.unit == self._units:
            if len(self.steps) == _MOST_STEPS:
                raise NoAnalysis(
                    f"it may take more than {_MOST_STEPS} draws and answers to its end"
                )
            self.steps.append(step)
            self.choices.append(choice)
        return choice

    def _see(self, seat: int, said: bytes | int) -> None:
        if self.unit == self._units:
            self.views[seat] = self._known.after(self.views[seat], said)


class GameTree:
    """All histories of one unit of a game, after given units.

    Attributes:
        root: the first draw or question; a leaf if there is none.
        leaves: the ends of all histories.

    Raises:
        NoAnalysis: the unit has too many histories (the message has their number), it uses cards of
            the unit before, or a match may end within it.
    """

    def __init__(
        self, game: Game, settings: Settings, before: Sequence[Leaf], views: Views
    ) -> None:
        self._game = game
        self._settings = settings
        self._known = views
        course = self._course(before)
        self.root: TreeNode = course.steps[0] if course.steps else course.leaf
        self.leaves: list[Leaf] = []
        path: list[ChanceNode | DecisionNode] = []
        kept = 0  # how many nodes of the path are shared with the history before
        while True:
            path[kept:] = course.steps[kept:]
            parents = path[max(kept - 1, 0) :]
            for parent, child in zip(parents, [*parents[1:], course.leaf], strict=False):
                parent.children.append(child)
            self.leaves.append(course.leaf)
            open_ = [at for at, node in enumerate(path) if course.choices[at] + 1 < node.size]
            if not open_:
                return
            if len(self.leaves) == MOST_HISTORIES:
                raise NoAnalysis(self._too_many(before))
            kept = open_[-1] + 1
            choices = (*course.choices[: kept - 1], course.choices[kept - 1] + 1)
            course = self._course(before, choices)

    def holds(self, before: Sequence[Leaf]) -> bool:
        """Whether this tree is also right after these units; checked on three of its histories."""
        tried = self.leaves[0], self.leaves[len(self.leaves) // 2], self.leaves[-1]
        return all(self._course(before, leaf.choices).leaf == leaf for leaf in tried)

    def _course(
        self,
        before: Sequence[Leaf],
        choices: Sequence[int] = (),
        otherwise: Callable[[int], int] = lambda size: 0,
    ) -> _Course:
        given = (*(choice for leaf in before for choice in leaf.choices), *choices)
        course = _Course(self._game.seats, given, otherwise, len(before), self._known)
        try:
            course.run(self._game, self._settings)
        except ArenaError:
            raise
        except Exception as error:  # rules from outside may fail in any way here
            raise NoAnalysis(
                f"its rules fail where all cards are tried: {in_words(error)}"
            ) from error
        return course

    def _too_many(self, before: Sequence[Leaf]) -> str:
        """The message for a unit with too many histories, with their number by random sampling."""
        chance = Random(0)
        courses = (self._course(before, (), chance.randrange) for _ in range(_SAMPLED))
        count = fmean(prod(step.size for step in course.steps) for course in courses)
        unit = "unit" if self._game.unit is None else self._game.unit.name
        return f"a {unit} has about {count:,.0f} histories, more than {MOST_HISTORIES:,}"
