"""Puts into words what is known of two bots while they are compared."""

from __future__ import annotations

from collections.abc import Sequence

from arena.engine.statistics import Sample
from arena.lab.compare import Matchup, MatchupPart
from arena.lab.comparison import Comparison, Standpoint
from arena.lab.matches import Offence, unit
from arena.lab.recent_matches import LabMatches
from arena.strength.figures import plural, several, with_interval

__all__ = ["LEVEL", "MOST_BLOCKS", "ComparisonSoFar", "notes_of", "sentence_of"]

MOST_BLOCKS = 20_000  # blocks or matches by default: level within 2 of 100 takes 10,000 games
LEVEL = 2.0
"""Two bots that differ by less are called level: games in 100, or per cent."""


class ComparisonSoFar:
    """Adds up the parts of a comparison.

    Args:
        level: two bots that differ by less are called level, as in `Comparison`.
        most: the number of units after which the comparison ends.
    """

    def __init__(
        self, matchup: Matchup, names: tuple[str, ...], seed: int | None, *, level: float, most: int
    ) -> None:
        self.matchup, self.names, self.seed, self.most = matchup, names, seed, most
        self.comparison = Comparison(is_share=matchup.is_share, level=level)
        self.recent = LabMatches()
        self.units = 0
        self.offence: Offence | None = None
        self._measures = Sample(), Sample()

    def add(self, part: MatchupPart) -> bool:
        """Add a part; returns whether it was the last one needed."""
        for match in part.matches:
            self.recent.add(match.seats, match.record)
        if part.offence is not None:
            self.offence = part.offence
            return True
        for value in part.values:
            self.comparison.add(value)
        for sample, measure in zip(self._measures, part.measures, strict=True):
            sample.add(measure)
        self.units += part.units
        return self.comparison.standpoint is not Standpoint.OPEN or self.units >= self.most

    @property
    def measured(self) -> tuple[float, ...] | None:
        """Beside the gain of those who play alone, what a league ranks them by."""
        means = [sample.mean for sample in self._measures]
        known = tuple(mean for mean in means if mean is not None)
        return known if self.matchup.game.seats == 1 and len(known) == len(means) else None

    def more(self) -> int | None:
        """About how many more units would settle it; None if too many."""
        needed, count = self.comparison.more_needed(), self.comparison.values.count
        return None if needed is None else -(-needed * self.units // count)


def sentence_of(run: ComparisonSoFar) -> str:
    """Say what is known, in one sentence."""
    comparison = run.comparison
    first, second = _told_apart(run.names)
    done = _units(run)
    mean, interval = comparison.values.mean, comparison.interval
    standpoint = comparison.standpoint
    if mean is None:
        return f"Nothing is known of {first} and {second} yet."
    if standpoint is Standpoint.ALIKE:
        return (
            f"{first} and {second} play alike: on the same cards each got what the other got, "
            f"in {done}."
        )
    if standpoint is Standpoint.LEVEL:
        return (
            f"{first} and {second} are level within {_level(run)}: "
            f"the better one is better by less than that, after {done}."
        )
    is_first = mean >= (0.5 if comparison.is_share else 0)
    ahead, behind = (first, second) if is_first else (second, first)
    so_far = _amount(run, mean if is_first else _turned(run, mean))
    if interval is None or standpoint is Standpoint.OPEN:
        more = run.more()
        take = "many times as many" if more is None else f"about {_units(run, more)} more"
        return (
            f"{done} are too few to say which is better: {ahead} {_has(run)} {so_far}; "
            f"if it goes on like this it would take {take}."
        )
    least = _amount(run, interval.low if is_first else _turned(run, interval.high))
    does, has = ("wins", "has won") if run.matchup.game.seats == 2 else ("gains", "has gained")
    found = f"it {does} at least {least}, and {has} {so_far}, in {done}."
    return f"{ahead} is better than {behind}: {found}"


def notes_of(run: ComparisonSoFar) -> Sequence[str]:
    """List the interval in figures, and further notes."""
    comparison, matchup = run.comparison, run.matchup
    first, second = _told_apart(run.names)
    lines = []
    interval, mean = comparison.interval, comparison.values.mean
    if interval is not None and mean is not None:
        about = "about " if "about" in interval.method else ""
        what = f"won by {first}" if comparison.is_share else f"{first} ahead of {second}"
        shown = with_interval(f"{mean:.3f}", interval, "{:.3f}".format)
        lines.append(
            f"{what}: {shown}, a range that is wrong {about}once in 20 times at most, "
            "however often one looks"
        )
    if run.measured is not None:
        one, other = (
            f"{100 * value:.1f} %" if matchup.game.measure.is_share else f"{value:,.1f}"
            for value in run.measured
        )
        lines.append(f"{matchup.game.measure.title}: {one} of {first}, {other} of {second}")
    if matchup.game.seats != 2 and matchup.no_luck is not None:
        lines.append(f"luck is not taken out: {matchup.no_luck}")
    return lines


def _told_apart(names: tuple[str, ...]) -> tuple[str, str]:
    first, second = names
    return (first, second) if first != second else (f"{first} (1)", f"{second} (2)")


def _units(run: ComparisonSoFar, count: int | None = None) -> str:
    return plural(run.units if count is None else count, unit(run.matchup.game))


def _has(run: ComparisonSoFar) -> str:
    return "has won" if run.matchup.game.seats == 2 else "has gained"


def _turned(run: ComparisonSoFar, value: float) -> float:
    """A value seen from the second bot."""
    return 1 - value if run.comparison.is_share else -value


def _amount(run: ComparisonSoFar, value: float) -> str:
    if run.comparison.is_share:
        return f"{100 * value:.1f} of 100 {several(unit(run.matchup.game))}"
    gain, of = run.matchup.gain_of
    more = "" if run.matchup.game.seats == 2 else " more"
    if gain == "ante":
        return f"{100 * value:.2f} % of an ante{more} a {of}"
    shown = f"{value:,.3f}" if abs(value) >= 0.001 else f"{value:.1g}"
    return f"{shown} {several(gain)}{more} a {of}"


def _level(run: ComparisonSoFar) -> str:
    level = run.comparison.level
    if run.comparison.is_share:
        return f"{100 * level:g} of 100 {several(unit(run.matchup.game))}"
    return _amount(run, level).replace(" more", "")
