"""Measures how good a bot is at Ace-King-Queen: what it wins, and what can be won from it.

A bot that does not learn is described by six shares. It plays against scripts, which get each of
the six possible deals equally often in both roles, and its answers are counted. All figures follow
from these shares, without further hands. A bot whose shares differ between opponents or change over
time adapts, and has no single value.

In 95 of 100 analyses, all true shares of a bot that does not learn lie at once in a box: one
Clopper-Pearson interval per share. A figure's band runs from its least to its greatest value in
that box. This module needs the extra `analysis`. It uses `scipy.special` because `scipy.stats`
takes twice as long to import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import permutations, product
from random import Random
from typing import Any, TypeAlias

import msgspec
import numpy as np
from scipy.optimize import linprog  # type: ignore[import-untyped]
from scipy.special import chdtrc, gammaln  # type: ignore[import-untyped]

from arena.games.ace_king_queen.evaluator import (
    ANSWERS,
    EQUILIBRIUM,
    SPOTS,
    Count,
    Share,
    Shares,
    best_response,
    bettor_value,
    exploitability,
    exploited,
    frequencies,
    gains,
    losses,
    spot_of,
    value,
)
from arena.games.analysis import (
    Analyser,
    Analysis,
    Certainty,
    Figure,
    ProbeMatch,
    SeatDecision,
    SeatMatch,
    Weakness,
)
from arena.games.statistics import LEVEL, clopper_pearson
from protocol.ace_king_queen import CARDS, AceKingQueenSettings, Card
from protocol.vocabulary import News, Question

__all__ = [
    "HANDS",
    "SCRIPTS",
    "SpotCounts",
    "analysed",
    "box",
    "differs",
    "exploitability_band",
    "extremes",
    "halves_differ",
    "probe",
    "watch",
]

Band: TypeAlias = tuple[float, float]
Box: TypeAlias = Sequence[Band]
"""By spot, the bounds of its share."""

HANDS = 4008
"""Per script, each deal 334 times in each role; the error for `honest` and `bluffer` is 0.003."""

SCRIPTS: Mapping[str, Shares] = {
    "against one that bets all and calls all": (1, 1, 1, 1, 1, 1),
    "against one that bets all and folds all": (1, 1, 1, 0, 0, 0),
    "against the equilibrium": EQUILIBRIUM,
    "against one that checks all and calls all": (0, 0, 0, 1, 1, 1),
}
"""The opponents in a probe. Both cards are shown after a hand (A6), so a bot may adapt to each."""

_UNIT = "chips a hand"
_HALF = len(CARDS)
_PERFECT = 1e-9  # smaller values are rounding errors
_ADAPTS = "A bot that adapts has no single value."
_OFTEN = {0: "never {}", 1: "always {}", EQUILIBRIUM[2]: "{} 1 time in 3"}


class _Scripted:
    """Plays by six fixed shares, with random numbers of its own."""

    def __init__(self, shares: Shares, random: Random) -> None:
        self._shares, self._random = shares, random

    def decide(self, question: Question[Any]) -> object:
        spot = spot_of(question)
        return ANSWERS[spot][self._random.random() >= self._shares[spot]]

    def hear(self, news: News) -> None:
        """Do nothing: scripts do not learn."""

    def reset(self) -> None:
        """Do nothing: each script plays one match."""


def probe(settings: AceKingQueenSettings, seed: int, against: Sequence[str]) -> Analyser:
    """Analyse a bot; with `against`, also what it wins from those bots, probed in the same way."""
    tallies = []
    for bot in range(1 + len(against)):
        tally = SpotCounts()
        for number, (title, shares) in enumerate(SCRIPTS.items()):
            random = Random(f"{seed}:{number}")
            played = yield ProbeMatch(
                settings=msgspec.structs.replace(settings, hands=HANDS),
                seat=number % 2,
                others=(_Scripted(shares, random),),
                decks=_balanced(random),
                bot=bot,
            )
            tally.add(title, played.decisions)
        tallies.append(tally)
    first, *others = tallies
    analysis = analysed(first)
    as_probed = _as_probed(first) if analysis.adapts else []
    facing = [_facing(first, other, name) for other, name in zip(others, against, strict=True)]
    return msgspec.structs.replace(analysis, figures=(*analysis.figures, *as_probed, *facing))


def watch(matches: Iterable[SeatMatch]) -> Analysis:
    """Analyse a bot from matches that it has already played."""
    tally = SpotCounts()
    for number, match in enumerate(matches, start=1):
        tally.add(f"in match {number}", match.decisions)
    return analysed(tally)


def analysed(tally: SpotCounts) -> Analysis:
    """Compute the analysis from the counted answers of a bot."""
    counts, shares = tally.counts, tally.shares
    shares_band, lost = box(counts, len(SPOTS)), losses(shares)
    adapts = tally.adapts()
    unseen = [spot_in_words(spot) for spot, (_, asked) in enumerate(counts) if not asked]
    refusal = _ADAPTS if adapts else f"Not seen: {', '.join(unseen)}." if unseen else ""
    return Analysis(
        figures=_figures(shares, shares_band) if not refusal else _refused(refusal),
        weaknesses=_weaknesses(
            counts, shares_band, lost, exploited(shares) if not refusal else None
        ),
        charts=(frequencies(counts, [float(loss) for loss in lost]),),
        adapts=adapts,
        asked=sum(asked for _, asked in counts),
    )


def _balanced(random: Random) -> Iterator[tuple[Card, Card]]:
    """Yield a script's deals in random order, each equally often in both roles."""
    roles = []
    for _ in range(2):
        deals = [*permutations(CARDS, 2)] * (HANDS // 12)
        random.shuffle(deals)
        roles.append(deals)
    for pair in zip(*roles, strict=True):
        yield from pair


# ---- Figures


def _figures(shares: Shares, shares_band: Box) -> tuple[Figure, ...]:
    low, high = exploitability_band(shares_band)
    best = best_response(shares)
    bets, calls = (
        " ".join(card for card, does in zip(CARDS, part, strict=True) if does) or "nothing"
        for part in (best[:_HALF], best[_HALF:])
    )
    remark = f"It is taken by one that bets {bets} and calls {calls}."
    if low < _PERFECT:
        low, remark = 0.0, f"It is within {high:.4f} of perfect."
    mean = value(shares, EQUILIBRIUM)
    return (
        _figure("exploitability", shares, exploitability(shares), (low, high), remark),
        _figure(
            "value against the equilibrium",
            shares,
            mean,
            _between(shares_band, _fixed(EQUILIBRIUM)),
        ),
    )


def _refused(remark: str) -> tuple[Figure, ...]:
    return tuple(
        Figure(name=name, value=None, unit=_UNIT, certainty=Certainty.PROBED, remark=remark)
        for name in ("exploitability", "value against the equilibrium")
    )


def _as_probed(tally: SpotCounts) -> list[Figure]:
    """What an adapting bot won from each script, by its answers to that script."""
    figures = []
    for counts, (title, script) in zip(tally.by_match, SCRIPTS.items(), strict=True):
        mine = shares_of(counts)
        band = _between(box(counts, len(SPOTS)), _fixed(script))
        figures.append(_figure(f"won {title}", mine, value(mine, script), band))
    return figures


def _facing(tally: SpotCounts, other: SpotCounts, name: str) -> Figure:
    """What a bot wins from another bot."""
    title = f"value against {name}"
    for adapts in tally.adapts(), other.adapts():
        if adapts:
            remark = adapts if tally.adapts() else f"{name} adapts. {adapts}"
            return Figure(name=title, value=None, unit=_UNIT, remark=remark)
    spots = 2 * len(SPOTS)
    band = _between(box(tally.counts, spots), box(other.counts, spots))
    pair = tally.shares, other.shares
    return _figure(title, [*pair[0], *pair[1]], value(*pair), band)


def _figure(name: str, shares: Shares, exact: Share, band: Band, remark: str = "") -> Figure:
    """Make a figure. It has an exact fraction only if all shares are 0 or 1: others are samples."""
    return Figure(
        name=name,
        value=float(exact),
        unit=_UNIT,
        certainty=Certainty.PROBED,
        low=min(band[0], float(exact)),  # rounding may put it outside
        high=max(band[1], float(exact)),
        fraction=str(exact) if all(share in (0, 1) for share in shares) else "",
        remark=remark,
    )


def _between(mine: Box, other: Box) -> Band:
    """The least and the greatest value of one bot against another, over the boxes of both."""
    low, high = extremes(_corner_value, [*mine[:_HALF], *other[_HALF:]])
    low_then, high_then = extremes(_corner_value, [*other[:_HALF], *mine[_HALF:]])
    return (low - high_then) / 2, (high - low_then) / 2


def _corner_value(corner: Shares) -> Share:
    return bettor_value(corner[:_HALF], corner[_HALF:])


def _fixed(shares: Shares) -> Box:
    return [(float(share), float(share)) for share in shares]


# ---- Weaknesses


def _weaknesses(
    counts: Sequence[Count], shares_band: Box, lost: Sequence[Share], taken: Sequence[Share] | None
) -> tuple[Weakness, ...]:
    """The spots where the bot deviates from the equilibrium, the most costly first."""
    found = []
    for spot, (done, asked) in enumerate(counts):
        if not asked or done == EQUILIBRIUM[spot] * asked:
            continue
        act, best = f"{SPOTS[spot][0]}s", EQUILIBRIUM[spot]
        low, high = shares_band[spot]
        found.append(
            Weakness(
                spot=spot_in_words(spot),
                played=f"{act} {100 * done / asked:.3g} % of the time",
                best=_OFTEN[best].format(act) + (" (it may do so)" if low <= best <= high else ""),
                cost=float(lost[spot]),
                exploited=None if taken is None else float(taken[spot]),
            )
        )
    found.sort(key=lambda weakness: (-weakness.cost, -(weakness.exploited or 0.0)))
    return tuple(found)


# ---- Bands

_PASSIVE = (0.0,) * len(SPOTS)  # checks all and folds all
_FEW = 5  # the least expected count of each answer for a chi-square test (Cochran)
_TIES = 1 + 1e-7  # tables whose probabilities differ only by rounding are equally likely


def box(counts: Sequence[Count], spots: int) -> list[Band]:
    """The intervals of all shares, so wide that `spots` shares are inside at once in 95 % of cases.

    The interval of a share that was never seen is 0 to 1.
    """
    return [clopper_pearson(done, asked, 1 - (1 - LEVEL) / spots) for done, asked in counts]


def extremes(function: Callable[..., Share], shares: Box) -> Band:
    """The least and the greatest value of a function at the corners of a box.

    If the function is linear in each share, these are its bounds in the whole box. A convex
    function may be smaller inside the box.
    """
    values = [float(function(corner)) for corner in product(*shares)]
    return min(values), max(values)


def exploitability_band(shares: Box) -> Band:
    """The least and the greatest exploitability in a box.

    Exploitability is the value of always passing, plus the gain from betting or calling at each
    spot where that gain is positive. This is convex, so its maximum is at a corner. A linear
    programme finds the minimum, with one more variable per spot for the gain.
    """

    def pieces(corner: Any) -> list[float]:
        return [float(piece) for piece in (value(_PASSIVE, corner), *gains(corner))]

    count = len(SPOTS)
    origin = np.array(pieces(_PASSIVE))
    slopes = np.array([pieces(unit) for unit in np.eye(count)]) - origin
    least = linprog(
        np.concatenate([slopes[:, 0], np.ones(count)]),
        A_ub=np.hstack([slopes[:, 1:].T, -np.eye(count)]),
        b_ub=-origin[1:],
        bounds=[*shares, *[(0, None)] * count],
    )
    return max(0.0, float(origin[0] + least.fun)), extremes(exploitability, shares)[1]


def differs(counts: Sequence[Count]) -> float:
    """The probability that equal shares differ at least as much as these (chi-square test).

    Counts whose expected numbers are too small for the test are left out.
    """
    done, asked = sum(did for did, _ in counts), sum(of for _, of in counts)
    rare = min(done, asked - done)
    used = [(did, of) for did, of in counts if of * rare >= _FEW * asked > 0]
    done, asked = sum(did for did, _ in used), sum(of for _, of in used)
    if len(used) < 2 or not 0 < done < asked:
        return 1.0
    share = done / asked
    square = sum((did - of * share) ** 2 / (of * share * (1 - share)) for did, of in used)
    return float(chdtrc(len(used) - 1, square))


def halves_differ(first: Count, second: Count) -> float:
    """The probability that two equal shares differ at least as much (Fisher's exact test)."""

    def ways(of: Any, chosen: Any) -> Any:
        return gammaln(of + 1) - gammaln(chosen + 1) - gammaln(of - chosen + 1)

    (did, of), (did_then, of_then) = first, second
    done = did + did_then
    possible = np.arange(max(0, done - of_then), min(of, done) + 1)
    chances = ways(of, possible) + ways(of_then, done - possible) - ways(of + of_then, done)
    chances = np.exp(chances)
    observed = chances[did - possible[0]]
    return min(1.0, float(chances[chances <= observed * _TIES].sum()))


# ---- Whether a bot adapts

_FLAGGED = 0.01  # the probability of flagging a bot that does not adapt
_HALVES = ("in the first halves of matches", "in the second halves")
_CARDS = {"A": "the ace", "K": "the king", "Q": "the queen"}


def spot_in_words(spot: int, ending: str = "") -> str:
    """Name a spot: `bet with the queen`. `ending` is added to the verb: `bets with the queen`."""
    act, card = SPOTS[spot]
    return f"{act}{ending} with {_CARDS[card]}"


class SpotCounts:
    """Counts a bot's answers by spot, by match and by half of a match.

    Attributes:
        titles: the names of the matches, such as `against the equilibrium`.
    """

    def __init__(self) -> None:
        self.titles: list[str] = []
        self._halves: list[tuple[list[Count], list[Count]]] = []

    def add(self, title: str, decisions: Sequence[SeatDecision]) -> None:
        halves = [(0, 0)] * len(SPOTS), [(0, 0)] * len(SPOTS)
        for number, decision in enumerate(decisions):
            spot = spot_of(decision.question)
            counts = halves[2 * number >= len(decisions)]
            done, asked = counts[spot]
            counts[spot] = done + (decision.answer == ANSWERS[spot][0]), asked + 1
        self.note(title, *halves)

    def note(self, title: str, first: list[Count], second: list[Count]) -> None:
        """Add a match whose halves are already counted."""
        self.titles.append(title)
        self._halves.append((first, second))

    @property
    def by_match(self) -> list[list[Count]]:
        return [_summed(halves) for halves in self._halves]

    @property
    def counts(self) -> list[Count]:
        return _summed(self.by_match)

    @property
    def shares(self) -> list[Fraction]:
        return shares_of(self.counts)

    def adapts(self) -> str:
        """A sentence that says how the bot adapts; empty if no sign of it was found.

        With two tests per spot, the p-value is multiplied by their number (Bonferroni).
        """
        by_match = self.by_match
        by_half = [_summed(half[late] for half in self._halves) for late in (0, 1)]
        found: list[tuple[float, int, list[Count], Sequence[str]]] = []
        for spot in range(len(SPOTS)):
            matches = [counts[spot] for counts in by_match]
            first, second = (counts[spot] for counts in by_half)
            found.append((differs(matches), spot, matches, self.titles))
            found.append((halves_differ(first, second), spot, [first, second], _HALVES))
        chance, spot, counts, titles = min(found, key=lambda test: test[0])
        chance *= len(found)
        return _adapting(spot, counts, titles, chance) if chance < _FLAGGED else ""


def shares_of(counts: Sequence[Count]) -> list[Fraction]:
    """The shares of a bot; a spot that was never seen gets the equilibrium's share."""
    return [
        Fraction(done, asked) if asked else best
        for (done, asked), best in zip(counts, EQUILIBRIUM, strict=True)
    ]


def _summed(parts: Iterable[Sequence[Count]]) -> list[Count]:
    total = [(0, 0)] * len(SPOTS)
    for part in parts:
        total = [
            (done + more, asked + asked_more)
            for (done, asked), (more, asked_more) in zip(total, part, strict=True)
        ]
    return total


def _adapting(spot: int, counts: Sequence[Count], titles: Sequence[str], chance: float) -> str:
    seen = [
        (done / asked, title) for (done, asked), title in zip(counts, titles, strict=True) if asked
    ]
    (low, where_low), (high, where_high) = min(seen), max(seen)
    how_likely = "< 0.0001" if chance < 0.0001 else f"= {chance:.4f}"
    return (
        f"It {spot_in_words(spot, 's')} {100 * high:.0f} % of the time {where_high}, "
        f"and {100 * low:.0f} % {where_low} (p {how_likely})."
    )
