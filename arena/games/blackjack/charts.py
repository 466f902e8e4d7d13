"""Blackjack's chart: how often a bot hits by its total and the up-card, and what that loses.

A cell has all hands of one total, hard or soft, against one up-card. What it loses is counted from
a fresh deck: how often its hands come to somebody who plays like that, times what the play loses
against the best. So the losses of all cells sum to the distance from the best play. A bot that
counts may rightly differ from it further into the deck.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from arena.games.analysis import Chart, ChartCell, Weakness
from arena.games.blackjack.layout import COLUMNS, LABELS, Cell, laid_out
from arena.games.blackjack.probe import HandAnswer
from arena.games.blackjack.values import UPCARDS, Floats, FreshDeck, FreshPlay, Place
from arena.games.chart_cells import counted_cell
from arena.games.clopper_pearson import clopper_pearson
from arena.games.interval import LEVEL

__all__ = ["Asked", "Chartable"]

Asked: TypeAlias = Mapping[Cell, tuple[int, int]]
"""How often a bot hit in each cell, and how often it was asked."""

_PER_CENT = 100.0
_COST_UNIT = "% of the bet"
_NOTE = (
    "Costs are in % of the bet for every hand that is dealt, from a fresh deck; they sum to the "
    "distance from the best play."
)


class Chartable:
    """The cells of the hands of a fresh deck."""

    def __init__(self, fresh: FreshDeck) -> None:
        self._fresh = fresh
        hands = fresh.hands
        asked: dict[tuple[bool, int], list[int]] = {}
        for number, row in enumerate(zip(hands.soft, hands.totals, strict=True)):
            if hands.cards[number] >= 2 and number != fresh.natural:
                asked.setdefault(row, []).append(number)
        self._hands = asked

    def spread(self, cells: Mapping[Cell, float]) -> Floats:
        """The shares by hand of somebody who hits so often in these cells, and else plays best."""
        shares = self._fresh.best.copy()
        for (is_soft, total, upcard), share in cells.items():
            shares[upcard - 1, self._hands[is_soft, total]] = share
        return shares

    def seen(self, asked: Asked) -> Floats:
        """The shares by hand of a bot that was seen to do this, and else plays best."""
        return self.spread({cell: hits / of for cell, (hits, of) in asked.items()})

    def reachable(self, play: FreshPlay) -> set[Cell]:
        """The cells that somebody who plays like this may come to."""
        return {
            (*row, upcard)
            for row, hands in self._hands.items()
            for upcard in UPCARDS
            if play.reached[upcard - 1, hands].sum() > 0
        }

    def band(self, asked: Asked) -> tuple[float, float]:
        """The 95 % interval of what a chip brings a bot that was seen to do this."""
        cells = [(*row, upcard) for row in self._hands for upcard in UPCARDS]
        level = 1 - (1 - LEVEL) / len(asked)
        bounds = {
            cell: clopper_pearson(*asked[cell], level) if cell in asked else (0.0, 1.0)
            for cell in cells
        }
        low, high = (
            self.spread({cell: both[side] for cell, both in bounds.items()}) for side in (0, 1)
        )
        return self._fresh.bounds(low, high)

    def counted(self, answers: Mapping[Place, Sequence[HandAnswer]]) -> Asked:
        """The answers with hands, by cell."""
        totals, soft = self._fresh.hands.totals, self._fresh.hands.soft
        asked: dict[Cell, tuple[int, int]] = {}
        for (upcard, hand), of in answers.items():
            cell = soft[hand], totals[hand], upcard
            before = asked.get(cell, (0, 0))
            asked[cell] = before[0] + sum(each.hits for each in of), before[1] + len(of)
        return asked

    def charts(
        self, play: FreshPlay, asked: Asked, *, is_exact: bool = False
    ) -> tuple[Chart, Chart]:
        """The charts of a bot that plays like this, as far as it was asked.

        If `is_exact` it is known what it does with every hand: shares are by how likely the hands
        of a cell are, however often each was asked, and have no interval.
        """
        shares, reached, losses = play
        likely, best = self._fresh.likely, self._fresh.best

        def cell(is_soft: bool, total: int, upcard: int) -> ChartCell:
            at = np.ix_([upcard - 1], self._hands[is_soft, total])
            mark = float((likely[at] * best[at]).sum() / likely[at].sum())
            hits, of = asked.get((is_soft, total, upcard), (0, 0))
            if not of:
                return ChartCell(mark=mark)
            cost = _PER_CENT * float(losses[at].sum())
            if is_exact:
                share = float((reached[at] * shares[at]).sum() / reached[at].sum())
                return ChartCell(share=share, count=hits, of=of, mark=mark, cost=cost)
            return counted_cell(hits, of, mark=mark, cost=cost)

        return laid_out(cell, _COST_UNIT, _NOTE)

    def weaknesses(self, play: FreshPlay) -> tuple[Weakness, ...]:
        """The cells that lose anything, the dearest first."""
        shares, reached, losses = play
        best = self._fresh.best
        found = []
        for (is_soft, total), hands in self._hands.items():
            for upcard, label in zip(COLUMNS, LABELS, strict=True):
                at = np.ix_([upcard - 1], hands)
                cost = float(losses[at].sum())
                if cost > 0:
                    weight = reached[at] / reached[at].sum()
                    kind = "soft" if is_soft else "hard"
                    found.append(
                        Weakness(
                            spot=f"{kind} {total} against {label}",
                            played=_in_words(float((weight * shares[at]).sum())),
                            best=_in_words(float((weight * best[at]).sum()), ", by its cards"),
                            cost=_PER_CENT * cost,
                        )
                    )
        return tuple(sorted(found, key=lambda weakness: -weakness.cost))


def _in_words(share: float, more: str = "") -> str:
    """What is done in a cell."""
    percent = f"{share:.1%}"
    return {"0.0%": "stands", "100.0%": "hits"}.get(percent, f"hits {percent}{more}")
