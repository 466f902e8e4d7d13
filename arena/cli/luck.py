"""`arena luck`: measures the luck of stored matches, and adds up their units for intervals."""

from __future__ import annotations

from collections.abc import Mapping

import click
import msgspec

from arena.cli import Interrupted
from arena.cli import _options as options
from arena.cli import _output as output
from arena.cli._results import Found, result_command

__all__ = ["command"]

_REASONS = 5  # shown reasons for left-out matches; the document has all


class _Measured(msgspec.Struct, frozen=True):
    """What was written.

    Attributes:
        matches: how many were written.
        left: for each reason how many could not be, as their records cannot be played again.
    """

    matches: int
    left: Mapping[str, int]


@result_command("luck", prints=_Measured)
@click.argument("where", metavar="DB")
@click.option("--all", "again", is_flag=True, help="Do it again for all matches.")
def command(where: str, again: bool) -> Found:
    """Measure the luck of the matches of a database, and add up their hands or games.

    An arena adds up the units of a match when it writes it, and measures its luck soon after. This
    writes what is missing for matches of an earlier version, and for the last ones before a stop.
    Results, records and digests stay as they are. `arena standings` shows what bots have won
    without luck.

    DB is a file or a URL on which no arena runs. Ctrl-C is safe: the same command goes on from
    there.
    """
    from arena.results import match_sums
    from arena.storage.store import Store

    database = options.database(where)
    Store(database, create=False).close()  # fails unless the database exists and is an arena's
    with Store(database, exclusive=True) as store:
        total = match_sums.count(store, again=again)
        try:
            with output.ticking("measuring luck", total) as tick:
                done = match_sums.recompute(store, again=again, tick=tick)
        except KeyboardInterrupt:
            left = match_sums.count(store)
            raise Interrupted(
                f"interrupted; {output.plural(left, 'match')} left, and the same command goes on"
            ) from None
    lines = [f"measured {output.plural(done.written, 'match')}"]
    shown = list(done.left.items())[:_REASONS]
    lines += [f"left out {output.plural(many, 'match')}: {why}" for why, many in shown]
    if more := sum(done.left.values()) - sum(many for _, many in shown):
        lines.append(f"left out {output.plural(more, 'match')} for other reasons")
    return _Measured(done.written, done.left), lines
