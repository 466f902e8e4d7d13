"""Shows a submission on a terminal while it is uploaded, built and checked."""

from __future__ import annotations

import shutil
import sys

import click

from arena.cli import Interrupted
from arena.cli import _output as output
from arena.cli._submitter import SubmitterConnection
from protocol.errors import ArenaError, Unreachable, one_line
from protocol.submitting import Progressing

__all__ = ["SubmissionProgress"]

_CLEAR = "\r\x1b[K"  # clears the terminal's last line
_LONGEST = 1000
_DECIDED = ("accepted", "refused")


class SubmissionProgress:
    """Steps on stdout as they happen, unless `quiet`; what passes on stderr, if that is a terminal.

    `last` is what the arena has said last of the submission.
    """

    def __init__(self, *, quiet: bool) -> None:
        self.last: Progressing | None = None
        self._is_quiet = quiet
        self._has_passing = sys.stderr.isatty()
        self._steps: list[dict[str, str]] = []

    def passing(self, text: str) -> None:
        """Show a line that the next one overwrites."""
        if self._has_passing:
            width = shutil.get_terminal_size().columns - 1
            click.echo(f"{_CLEAR}{text[:width]}", err=True, nl=False)

    def clear(self) -> None:
        if self._has_passing:
            click.echo(_CLEAR, err=True, nl=False)

    def follow(self, arena: SubmitterConnection) -> None:
        """Show what the arena says until the submission is decided.

        Raises `Interrupted` at Ctrl-C, and `Unreachable` if the connection is lost; both say how to
        look again.
        """
        try:
            while self.last is None or self.last.state not in _DECIDED:
                message = arena.receive(None)
                if isinstance(message, Progressing):
                    self.last = message
                    self._show(message)
        except KeyboardInterrupt:
            self.clear()
            raise Interrupted(f"nobody waits any more; {self._goes_on}") from None
        except Unreachable as error:
            self.clear()
            raise Unreachable(f"{error}; {self._goes_on}") from None

    def finish(self, *, as_json: bool) -> None:
        """Print what became of it; raises `ArenaError` if it was refused."""
        last = self.last
        assert last is not None, "it is decided"
        if as_json:
            output.print_json(
                {
                    "submission": last.submission,
                    "state": last.state,
                    "version": last.version,
                    "text": last.text,
                    "steps": self._steps,
                }
            )
        if last.state == "refused":
            raise ArenaError(f"submission {last.submission} was refused: {last.text}")
        if not as_json:
            click.echo(f"accepted: {last.text}")

    @property
    def _goes_on(self) -> str:
        if self.last is None:
            return "`arena submissions` shows whether it has arrived"
        number = self.last.submission
        return f"submission {number} goes on, and `arena submissions follow {number}` shows it"

    def _show(self, progress: Progressing) -> None:
        left = progress.expected_s
        expected = "" if left is None else f", decided in about {output.duration(left)}"
        if progress.position is not None:
            self._steps.clear()  # it is begun again
            why = f": {progress.text}" if progress.text else ""
            where = f"waits at position {progress.position}"
            self.passing(f"submission {progress.submission} {where}{expected}{why}")
        elif progress.state in _DECIDED:
            self.clear()
        elif progress.status == "begun":
            self.passing(f"{progress.state}: {progress.step}{expected}")
        elif not progress.step:
            self.passing(f"{progress.state}{expected}")
        else:
            self._step_done(progress)

    def _step_done(self, progress: Progressing) -> None:
        self._steps.append(
            {"step": progress.step, "status": progress.status, "text": progress.text}
        )
        if self._is_quiet:
            return
        self.clear()
        first, *others = progress.text.splitlines() or [""]
        is_failed = progress.status == "FAILED"
        lines = [f"{progress.step:<22} {progress.status:<7} {'' if is_failed else first}".rstrip()]
        lines += [f"    {text}" for text in ([first, *others] if is_failed else others)]
        click.echo("\n".join(one_line(line, _LONGEST) for line in lines))
        sys.stdout.flush()
