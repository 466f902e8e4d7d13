"""Judges decisions in any small game, also in one from outside, without work by its author.

It serves games for one seat, or zero-sum games for two, that have a unit with a new deal. All
histories of each unit are listed (`arena/games/game_tree.py`), given the units before it. An answer
is compared with the best one against an opponent that plays the equilibrium
(`arena/games/equilibrium.py`). Units with the same tree, such as every second hand, are listed
once.
"""

from __future__ import annotations

from typing import Any

import msgspec

from arena.games.analysis import Judgement, Judging, need_analysis
from arena.games.equilibrium import Equilibrium
from arena.games.game_tree import GameTree, Leaf, View, Views, number_of
from arena.games.rules import Game
from protocol.errors import ArenaError, NoAnalysis
from protocol.vocabulary import News, Question, Settings

__all__ = ["judging_of_small"]

_VERSION = 1
_MOST_TREES = 4  # the most that are kept; more are needed only if units differ from one another
_ROUNDING = 1e-9  # tolerance for payoffs that sum to 0
_LEVEL = 1e-7  # of the least payoff: a smaller cost is an arithmetic error
_GRADES = (0.0, 0.4, 0.9)  # of the least payoff: higher costs get grade 1, 2, 3


def judging_of_small(game: Game) -> Judging | None:
    """The judge for a game that has none of its own; None if its decisions cannot be judged."""
    if game.unit is None or game.seats > 2:
        return None
    units: dict[bytes, _Units] = {}

    def units_with(settings: Settings) -> _Units:
        key = msgspec.json.encode(settings)
        if key not in units:
            units.clear()  # trees are large, and matches of one competition come in a row
            units[key] = _Units(game, settings)
        return units[key]

    return Judging(
        version=_VERSION,
        judge=lambda settings, seat: SmallGameJudge(units_with(settings), seat),
        is_slow=True,
        refuses=lambda settings: units_with(settings).refusal,
    )


class _Units:
    """The judged units of all matches with the same settings."""

    def __init__(self, game: Game, settings: Settings) -> None:
        assert game.unit is not None, "others are not judged"
        self.views = Views()
        self.unit = game.unit
        self.counted_in = "points" if game.luck is None else f"{game.luck.unit}s"
        self._game = game
        self._settings = settings
        self._trees: list[tuple[GameTree, dict[int, _JudgedUnit]]] = []  # the latest first
        self._refusal: str | None = None
        self._is_tried = False

    @property
    def refusal(self) -> str | None:
        """Why decisions cannot be judged; None if they can."""
        if not self._is_tried:
            self._is_tried = True
            try:
                if self._game.seats == 2:
                    need_analysis()
                self.after([], 0)
            except ArenaError as error:
                self._refusal = str(error)
        return self._refusal

    def after(self, before: list[Leaf], seat: int) -> _JudgedUnit:
        """The unit that follows these, for a seat; raises `NoAnalysis` if it cannot be judged."""
        kept = next((each for each in self._trees if each[0].holds(before)), None)
        if kept is None:
            kept = GameTree(self._game, self._settings, before, self.views), {}
            most = max(abs(sum(leaf.payoffs)) for leaf in kept[0].leaves)
            if self._game.seats == 2 and most > _ROUNDING:
                raise NoAnalysis(f"what a {self.unit.name} brings the two does not sum to 0")
            self._trees[_MOST_TREES - 1 :] = []
            self._trees.insert(0, kept)
        tree, judged = kept
        if seat not in judged:
            judged[seat] = _JudgedUnit(tree, seat)
        return judged[seat]


class _JudgedUnit:
    """All histories of a unit, as a seat sees them."""

    def __init__(self, tree: GameTree, seat: int) -> None:
        self.spots = Equilibrium(tree, seat).spots
        payoffs = {abs(leaf.payoffs[seat]) for leaf in tree.leaves} - {0.0}
        self.least = min(payoffs, default=1.0)
        self._leaves = {(leaf.views[seat], leaf.payoffs): leaf for leaf in tree.leaves}

    def ended(self, view: View, payoffs: tuple[float, ...]) -> Leaf:
        """A history that looked like this to the seat; raises `NoAnalysis` if there is none."""
        if (view, payoffs) not in self._leaves:
            raise NoAnalysis("the match took a course that the rules do not take")
        return self._leaves[view, payoffs]


class SmallGameJudge:
    """Judges a seat of one match (see `Judge`)."""

    def __init__(self, units: _Units, seat: int) -> None:
        self._units = units
        self._seat = seat
        self._view = Views.NOTHING
        self._ended: list[tuple[View, tuple[float, ...]]] = []  # of finished units
        self._leaves: list[Leaf] = []  # a history that looks like each; for all copies
        # By the number of the unit, shared by all copies; None from the first that cannot be
        # judged.
        self._judged: list[_JudgedUnit | None] = []

    def __deepcopy__(self, memo: object) -> SmallGameJudge:
        copied = SmallGameJudge(self._units, self._seat)
        copied._view = self._view
        copied._ended = self._ended.copy()
        copied._leaves, copied._judged = self._leaves, self._judged
        return copied

    def heard(self, news: News) -> None:
        if type(news) is self._units.unit.closes:
            payoffs = tuple(map(float, self._units.unit.payoffs(news)))
            self._ended.append((self._view, payoffs))
            self._view = Views.NOTHING
        else:
            self._view = self._units.views.after_message(self._view, news)

    def judged(self, question: Question[Any], answer: Any) -> Judgement | None:
        """What this answer costs.

        None if the equilibrium's opponent never lets this question come up, or if the match cannot
        be followed.
        """
        unit = self._unit()
        spot = None
        if unit is not None:
            spot = unit.spots.get(self._units.views.after_message(self._view, question))
        if unit is None or spot is None or spot.worths is None or answer not in spot.answers:
            return None
        best = max(spot.worths)
        cost = best - spot.worths[spot.answers.index(answer)]
        if cost <= _LEVEL * unit.least:
            is_mixed = sum(best - worth <= _LEVEL * unit.least for worth in spot.worths) > 1
            return Judgement(cost=0.0, best=answer, unit=self._units.counted_in, is_level=is_mixed)
        return Judgement(
            cost=cost,
            best=spot.answers[spot.worths.index(best)],
            unit=self._units.counted_in,
            grade=sum(cost > share * unit.least for share in _GRADES),
        )

    def decided(self, question: Question[Any], answer: Any) -> None:
        views = self._units.views
        self._view = views.after(
            views.after_message(self._view, question), number_of(answer, question)
        )

    def _unit(self) -> _JudgedUnit | None:
        """The current unit; None if it cannot be judged."""
        for number in range(len(self._judged), len(self._ended) + 1):
            before = self._judged[number - 1] if number else None
            try:
                if before is not None:
                    self._leaves.append(before.ended(*self._ended[number - 1]))
                is_lost = number > len(self._leaves)
                self._judged.append(
                    None if is_lost else self._units.after(self._leaves, self._seat)
                )
            except NoAnalysis:
                self._judged.append(None)
        return self._judged[len(self._ended)]
