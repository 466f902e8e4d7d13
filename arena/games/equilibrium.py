"""The value of each answer in a small game, against an opponent that plays the equilibrium.

The equilibrium is found by a linear programme in sequence form (Koller, Megiddo and von Stengel,
1996). A sequence is all that a seat has answered so far: its last view and its answer there. The
opponent's plan gives, for each of its sequences, the probability that it plays it, if chance and
the other seat allow. In a game against the dealer there is no opponent, and no programme is needed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from arena.games.game_tree import ChanceNode, DecisionNode, GameTree, TreeNode, View
from protocol.errors import NoAnalysis, one_line

__all__ = ["Equilibrium", "Spot"]

_REACHED = 1e-9  # lower probabilities count as 0

_Sequence: TypeAlias = tuple[View, int] | None
"""A view and the number of the answer there; None before a seat's first answer."""


class Spot(NamedTuple):
    """The answers of a seat in one view, and their values.

    Attributes:
        answers: the legal ones.
        worths: by answer, the mean payoff from there if the seat plays its best afterwards; None if
            the opponent's play never leads to this view.
    """

    answers: tuple[Any, ...]
    worths: tuple[float, ...] | None


class _Asked(NamedTuple):
    """A view in which a seat is asked: its sequence until then, and the legal answers."""

    before: _Sequence
    answers: tuple[Any, ...]


class _Reached(NamedTuple):
    """A leaf, or a question to the judged seat; that seat's own answers do not count as chance.

    Attributes:
        chance: the probability of all draws on the way.
        own, other: the sequences of the seat and of its opponent there.
    """

    chance: float
    own: _Sequence
    other: _Sequence


class Equilibrium:
    """The spots of a seat in one unit of a game for one, or of a zero-sum game for two.

    For two seats it needs scipy.

    Attributes:
        value: the value of the unit for the seat if both play their best.
        spots: by the seat's view.
    """

    def __init__(self, tree: GameTree, seat: int) -> None:
        self._seat = seat
        self._own: dict[View, _Asked] = {}
        self._other: dict[View, _Asked] = {}
        self._ends: list[tuple[_Reached, float]] = []  # and the seat's payoff there
        self._questions: dict[View, list[_Reached]] = defaultdict(list)
        self._walk(tree.root, _Reached(1.0, None, None))
        plan: dict[_Sequence, float] = self._plan() if self._other else {None: 1.0}
        gains: defaultdict[_Sequence, float] = defaultdict(float)
        for end, payoff in self._ends:
            gains[end.own] += end.chance * plan[end.other] * payoff
        self.spots: dict[View, Spot] = {}
        # Reversed, as a view comes after the views that lead to it.
        for view, (before, answers) in reversed(self._own.items()):
            worths = [gains[view, number] for number in range(len(answers))]
            gains[before] += max(worths)
            reached = sum(at.chance * plan[at.other] for at in self._questions[view])
            self.spots[view] = Spot(
                answers, tuple(worth / reached for worth in worths) if reached > _REACHED else None
            )
        self.value = gains[None]

    def _walk(self, node: TreeNode, at: _Reached) -> None:
        """Collect the leaves and questions below a node."""
        if isinstance(node, ChanceNode):
            for share, child in zip(node.shares, node.children, strict=True):
                self._walk(child, at._replace(chance=at.chance * share))
        elif isinstance(node, DecisionNode):
            is_own = node.seat == self._seat
            if is_own:
                self._questions[node.view].append(at)
            asked = self._own if is_own else self._other
            asked.setdefault(node.view, _Asked(at.own if is_own else at.other, node.answers))
            for number, child in enumerate(node.children):
                answered = node.view, number
                self._walk(
                    child, at._replace(own=answered) if is_own else at._replace(other=answered)
                )
        else:
            self._ends.append((at, node.payoffs[self._seat]))

    def _plan(self) -> dict[_Sequence, float]:
        """The opponent's plan that minimizes what the seat can win at most.

        The unknowns are the opponent's sequences, and the most that each view of the seat brings.
        """
        from scipy.optimize import linprog  # type: ignore[import-untyped]
        from scipy.sparse import csr_array  # type: ignore[import-untyped]

        own, other = _numbered(self._own), _numbered(self._other)
        views = {view: len(other) + 1 + at for at, view in enumerate(self._own)}
        columns = len(other) + 1 + len(views)
        least = len(other)  # the column of the unit's value for the seat
        # The value of a sequence of the seat, with that of the views behind it, is at most its
        # view's.
        upper: defaultdict[tuple[int, int], float] = defaultdict(float)
        for end, payoff in self._ends:
            upper[own[end.own], other[end.other]] += end.chance * payoff
        for sequence, row in own.items():
            upper[row, least if sequence is None else views[sequence[0]]] -= 1
        for view, (before, _) in self._own.items():
            upper[own[before], views[view]] += 1
        # The probabilities of the answers in a view sum to that of the sequence before it.
        equal: defaultdict[tuple[int, int], float] = defaultdict(float)
        equal[0, other[None]] = 1
        for row, (view, (before, answers)) in enumerate(self._other.items(), start=1):
            equal[row, other[before]] -= 1
            for number in range(len(answers)):
                equal[row, other[view, number]] += 1

        def matrix(cells: dict[tuple[int, int], float], rows: int) -> Any:
            at = tuple(zip(*cells, strict=True))
            return csr_array((list(cells.values()), at), shape=(rows, columns))

        solved = linprog(
            [float(column == least) for column in range(columns)],
            A_ub=matrix(upper, len(own)),
            b_ub=[0.0] * len(own),
            A_eq=matrix(equal, len(self._other) + 1),
            b_eq=[1.0] + [0.0] * len(self._other),
            bounds=[(0, None)] * len(other) + [(None, None)] * (columns - len(other)),
            method="highs-ds",
        )
        if not solved.success:  # happens if payoffs differ greatly in size
            raise NoAnalysis(f"its equilibrium was not found: {one_line(solved.message)}")
        return {sequence: max(0.0, float(solved.x[at])) for sequence, at in other.items()}


def _numbered(asked: dict[View, _Asked]) -> dict[_Sequence, int]:
    sequences: Sequence[_Sequence] = [
        None,
        *((view, number) for view, (_, answers) in asked.items() for number in range(len(answers))),
    ]
    return {sequence: at for at, sequence in enumerate(sequences)}
