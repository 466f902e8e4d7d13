"""`arena doctor`: says which limits of launched bots and which games from outside work here."""

from __future__ import annotations

from collections.abc import Iterator

from arena.cli import _output as output
from arena.cli._results import Found, result_command
from arena.games.catalogue import GAMES
from arena.sandbox.doctor import DoctorReport, Layer, examine
from arena.sandbox.toolchains import installed
from protocol.entry_points import first_left_out

__all__ = ["command"]


@result_command("doctor", prints=DoctorReport)
def command() -> Found:
    """See what is active on this machine to hold launched bots to their limits, and why not.

    It also says whether submissions are safe here, and in which languages they can be.

    It lists the games of other packages, with package and version, and what is left out of such a
    package, with the reason.

    The exit status is 0 whatever is found.
    """
    languages = (
        Layer(
            f"submissions in {tool.title}",
            not tool.missing,
            f"not installed: {tool.missing}" if tool.missing else tool.version,
        )
        for tool in installed()
    )
    report = DoctorReport((*examine().layers, *languages, *_games()))
    active = ("", lambda layer: "yes" if layer.active else "no")
    columns = (("layer", "name"), active, "detail")
    title = "What is active on this machine"
    return report, [output.table_of(title, report.layers, *columns, words=("",))]


def _games() -> Iterator[Layer]:
    """Yield the installed games of other packages, and what is left out of such packages."""
    others = (f"{game.name} of {game.package}" for game in GAMES.values() if game.package)
    if text := ", ".join(others):
        yield Layer("games from outside", True, text)
    for left in first_left_out():
        yield Layer(f"{left.name} of {left.package}", False, f"left out ({left.group}): {left.why}")
