"""What the course file says of submissions; the one place where the defaults stand."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from arena.games.statistics import time_of

__all__ = ["SubmissionSettings"]

_A_DAY_S = 86_400


class SubmissionSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table `[submissions]`; without the table nothing can be handed in.

    Attributes:
        opens, closes: when submissions are taken: a date and time each in the file, here Unix
            seconds; None for no limit. What has arrived before closing counts, whenever it is
            checked.
        a_day: how many submissions of an owner a day, of this machine's clock; as many more that
            are no program, and as often another version is put in play.
        languages: which may be handed in, as `arena new` names them; empty for all that are here.
        cores: how many submitted bots compute at once; None for all cores but one, at least one.
        build_s: how long a build may take.
        build_mib: its memory, and as much again for the files that it writes.
        check_s: how long a check may take.
        wait_s: how long one may take until a run no longer waits for what arrived before it.
    """

    opens: float | None = None
    closes: float | None = None
    a_day: Annotated[int, Meta(ge=1, le=1_000)] = 20
    languages: tuple[str, ...] = ()
    cores: Annotated[int, Meta(ge=1, le=1_024)] | None = None
    # The C++ starter takes 40 s on an idle core, and builds have what matches leave.
    build_s: Annotated[int, Meta(ge=1, le=3_600)] = 300
    # g++ holds 760 MiB for the C++ starter, measured.
    build_mib: Annotated[int, Meta(ge=16, le=65_536)] = 1_024
    check_s: Annotated[int, Meta(ge=10, le=3_600)] = 300
    wait_s: Annotated[float, Meta(ge=0, le=_A_DAY_S)] = 600.0

    def closed(self, now: float) -> str:
        """Why nothing can be handed in at a time, or an empty string."""
        if self.opens is not None and now < self.opens:
            return f"submissions open at {time_of(self.opens)}"
        if self.closes is not None and now >= self.closes:
            return f"submissions were closed at {time_of(self.closes)}"
        return ""
