"""The settings for submissions in the course file, with their defaults."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from arena.games.statistics import time_of

__all__ = ["SubmissionSettings"]

_A_DAY_S = 86_400


class SubmissionSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table `[submissions]`; without it nothing can be submitted.

    Attributes:
        opens, closes: the times between which submissions are accepted: dates with a time in the
            file, Unix seconds here, None for no limit. Submissions that arrive before closing
            count, even if they are checked later.
        a_day: an owner's submissions per day, by this machine's clock. Uploads that are no program,
            and changes of the version in play, have the same limit each.
        languages: the accepted languages, as `arena new` names them; empty for all installed ones.
        cores: how many submitted bots compute at once; None for all cores but one, at least one.
        build_s: the time limit of a build.
        build_mib: the memory limit of a build, and that of the files that it writes.
        check_s: the time limit of a check.
        wait_s: how long one decision may take before runs stop waiting for the undecided.
    """

    opens: float | None = None
    closes: float | None = None
    a_day: Annotated[int, Meta(ge=1, le=1_000)] = 20
    languages: tuple[str, ...] = ()
    cores: Annotated[int, Meta(ge=1, le=1_024)] | None = None
    # The C++ starter takes 40 s on an idle core, and builds get the cores that matches leave.
    build_s: Annotated[int, Meta(ge=1, le=3_600)] = 300
    # Measured: g++ takes 760 MiB for the C++ starter.
    build_mib: Annotated[int, Meta(ge=16, le=65_536)] = 1_024
    check_s: Annotated[int, Meta(ge=10, le=3_600)] = 300
    wait_s: Annotated[float, Meta(ge=0, le=_A_DAY_S)] = 600.0

    def closed(self, now: float) -> str:
        """Return why nothing can be submitted at a time, or an empty string."""
        if self.opens is not None and now < self.opens:
            return f"submissions open at {time_of(self.opens)}"
        if self.closes is not None and now >= self.closes:
            return f"submissions were closed at {time_of(self.closes)}"
        return ""
