"""`arena luck`: measures the luck of stored matches, and adds up their units for intervals."""

from __future__ import annotations

import click

from arena.cli import Interrupted
from arena.cli import _options as options
from arena.cli import _output as output

__all__ = ["command"]

_REASONS = 5  # why matches were left out: more are in the document


@click.command(name="luck")
@click.argument("where", metavar="DB")
@click.option("--all", "again", is_flag=True, help="Do it again for all matches.")
@options.json_option
def command(where: str, again: bool, as_json: bool) -> None:
    """Measure the luck of the matches of a database, and add up their hands or games.

    An arena adds up the units of a match when it writes it, and measures its luck soon after. This
    writes what is missing for matches of an earlier version, and for the last ones before a stop.
    Results, records and digests stay as they are. `arena standings` shows what bots have won
    without luck.

    DB is a file or a URL on which no arena runs. Ctrl-C is safe: the same command goes on from
    there.

    --json prints {matches, left: {REASON: MATCHES}}: how many were written, and how many could not
    be, as their records cannot be played again.
    """
    from arena.results import match_sums
    from arena.storage.store import Store

    database = options.database(where)
    Store(database, create=False).close()  # it is there and an arena's: no file is made
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
    document = {"matches": done.written, "left": done.left}
    output.print_result(document, "\n".join(lines), as_json=as_json)
