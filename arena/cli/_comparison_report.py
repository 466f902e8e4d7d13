"""What `arena compare` knows while it plays, and how it says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from arena.cli import _lab_runs as lab_runs
from arena.cli import _output as output
from arena.engine.statistics import Sample
from arena.lab.compare import Matchup, MatchupPart
from arena.lab.comparison import Comparison, Standpoint
from arena.lab.recent_matches import LabMatches
from arena.lab.series import Offence, unit

__all__ = ["ComparisonSoFar", "sentence_of", "show"]


class ComparisonSoFar:
    """Adds up the parts of a comparison.

    Args:
        level: by how much less two bots may differ that are called level, as in `Comparison`.
        most: the number of units after which it is enough.
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
        """Add a part; whether it was the last that is wanted."""
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


def show(run: ComparisonSoFar, *, as_json: bool) -> None:
    """Print what is known, of as many matches as there are."""
    if as_json:
        output.print_json(_document(run))
        return
    game, seed = run.matchup.game, run.seed
    click.echo(f"{game.vocabulary.title}{lab_runs.seed_shown(seed)}")
    if run.offence is not None:
        return
    click.echo(sentence_of(run))
    for line in _notes(run):
        click.echo(line)


def _document(run: ComparisonSoFar) -> dict[str, Any]:
    comparison, matchup = run.comparison, run.matchup
    standpoint = comparison.standpoint
    is_better = standpoint in (Standpoint.FIRST, Standpoint.SECOND)
    verdict = "better" if is_better else str(standpoint)
    gain, of = matchup.gain_of
    return {
        "game": matchup.game.name,
        "settings": matchup.settings,
        "seed": run.seed,
        "bots": run.names,
        "verdict": verdict if run.offence is None else None,
        "better": int(standpoint is Standpoint.SECOND) if is_better else None,
        "unit": unit(matchup.game),
        "units": run.units,
        "value": comparison.values.mean,
        "counted_in": "share" if matchup.is_share else f"{gain} per {of}",
        **output.interval_fields(comparison.interval),
        "level_within": comparison.level,
        "more": run.more() if standpoint is Standpoint.OPEN else 0,
        "measures": run.measured,
        "eliminated": lab_runs.offence_document(run.offence, run.names),
    }


def sentence_of(run: ComparisonSoFar) -> str:
    """What is known, in one sentence."""
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
            f"whichever is better, it is by less than that, after {done}."
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


def _notes(run: ComparisonSoFar) -> Sequence[str]:
    """The interval in figures, and what else there is to know."""
    comparison, matchup = run.comparison, run.matchup
    first, second = _told_apart(run.names)
    lines = []
    interval, mean = comparison.interval, comparison.values.mean
    if interval is not None and mean is not None:
        about = "about " if "about" in interval.method else ""
        what = f"won by {first}" if comparison.is_share else f"{first} ahead of {second}"
        shown = output.with_interval(f"{mean:.3f}", interval, "{:.3f}".format)
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
    return output.plural(run.units if count is None else count, unit(run.matchup.game))


def _has(run: ComparisonSoFar) -> str:
    return "has won" if run.matchup.game.seats == 2 else "has gained"


def _turned(run: ComparisonSoFar, value: float) -> float:
    """A value seen from the second bot."""
    return 1 - value if run.comparison.is_share else -value


def _amount(run: ComparisonSoFar, value: float) -> str:
    if run.comparison.is_share:
        return f"{100 * value:.1f} of 100 {output.several(unit(run.matchup.game))}"
    gain, of = run.matchup.gain_of
    more = "" if run.matchup.game.seats == 2 else " more"
    if gain == "ante":
        return f"{100 * value:.2f} % of an ante{more} a {of}"
    return f"{value:,.3f} {output.several(gain)}{more} a {of}"


def _level(run: ComparisonSoFar) -> str:
    level = run.comparison.level
    if run.comparison.is_share:
        return f"{100 * level:g} of 100 {output.several(unit(run.matchup.game))}"
    return _amount(run, level).replace(" more", "")
