"""How good a bot is in Ace-King-Queen: what it wins and what can be won from it.

A bot that does not learn is six shares. It is put to scripts, whose deals are the six possible ones
equally often in both roles, and its answers are counted. From the shares all else follows without
further hands (`ace_king_queen_values`); how well they are known, `ace_king_queen_bands` says. A bot
whose shares differ with the opponent or with time adapts, and has no single value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from random import Random
from typing import Any

import msgspec

from arena.games.ace_king_queen.bands import Band, Box, box, exploitability_band, extremes
from arena.games.ace_king_queen.habits import ANSWERS, Count, frequencies, spot_of
from arena.games.ace_king_queen.tally import Tally, shares_of, spot_in_words
from arena.games.ace_king_queen.values import (
    EQUILIBRIUM,
    SPOTS,
    Share,
    Shares,
    best_response,
    bettor_value,
    exploitability,
    exploited,
    losses,
    value,
)
from arena.games.analysis import (
    Analyser,
    Analysis,
    Certainty,
    Figure,
    ProbeMatch,
    SeatMatch,
    Weakness,
)
from protocol.ace_king_queen import CARDS, AceKingQueenSettings, Card
from protocol.vocabulary import News, Question

__all__ = ["HANDS", "SCRIPTS", "analysed", "probe", "watch"]

HANDS = 4008
"""To a script, each deal 334 times in each role: then `honest` and `bluffer` are known to 0.003."""

SCRIPTS: Mapping[str, Shares] = {
    "against one that bets all and calls all": (1, 1, 1, 1, 1, 1),
    "against one that bets all and folds all": (1, 1, 1, 0, 0, 0),
    "against the equilibrium": EQUILIBRIUM,
    "against one that checks all and calls all": (0, 0, 0, 1, 1, 1),
}
"""What a bot is put to; it learns both cards after every hand (A6), so it may adapt to each."""

_UNIT = "chips a hand"
_HALF = len(CARDS)
_PERFECT = 1e-9  # less is rounding
_ADAPTS = "A bot that adapts has no single value."
_OFTEN = {0: "never {}", 1: "always {}", EQUILIBRIUM[2]: "{} 1 time in 3"}


class _Scripted:
    """Plays six shares, by its own random numbers."""

    def __init__(self, shares: Shares, random: Random) -> None:
        self._shares, self._random = shares, random

    def decide(self, question: Question[Any]) -> object:
        spot = spot_of(question)
        return ANSWERS[spot][self._random.random() >= self._shares[spot]]

    def hear(self, news: News) -> None:
        """Nothing: scripts do not learn."""

    def reset(self) -> None:
        """Nothing: each plays one match."""


def probe(settings: AceKingQueenSettings, seed: int, against: Sequence[str]) -> Analyser:
    """Analyse a bot, and what it wins from others, which are probed as it is."""
    tallies = []
    for bot in range(1 + len(against)):
        tally = Tally()
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
    """Analyse what a bot did in matches of others."""
    tally = Tally()
    for number, match in enumerate(matches, start=1):
        tally.add(f"in match {number}", match.decisions)
    return analysed(tally)


def analysed(tally: Tally) -> Analysis:
    """What follows from a bot's answers."""
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
    """The deals of a script, in any order, but each equally often in both roles."""
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


def _as_probed(tally: Tally) -> list[Figure]:
    """What a bot that adapts wins from each script, as it played against that."""
    figures = []
    for counts, (title, script) in zip(tally.by_match, SCRIPTS.items(), strict=True):
        mine = shares_of(counts)
        band = _between(box(counts, len(SPOTS)), _fixed(script))
        figures.append(_figure(f"won {title}", mine, value(mine, script), band))
    return figures


def _facing(tally: Tally, other: Tally, name: str) -> Figure:
    """What a bot wins from another one."""
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
    """A figure; a fraction of counted shares says something only if they are all 0 or 1."""
    return Figure(
        name=name,
        value=float(exact),
        unit=_UNIT,
        certainty=Certainty.PROBED,
        low=min(band[0], float(exact)),  # which rounding may put outside
        high=max(band[1], float(exact)),
        fraction=str(exact) if all(share in (0, 1) for share in shares) else "",
        remark=remark,
    )


def _between(mine: Box, other: Box) -> Band:
    """The least and the greatest value of one against another, by their boxes."""
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
    """By spot where the bot does not play the equilibrium, the dearest first."""
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
