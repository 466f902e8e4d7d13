"""Those who look on: who watches what, and the frames that they get.

A match that is watched is told again once (`arena/web/live_match.py`), and each frame is made once for each way to see it, whoever gets it. All of
that happens in `tick`, which the gateway calls about every 50 ms, and which takes only a few milliseconds of them: what does not fit
waits for the next. Spectators never slow a match: who does not read misses frames, and begins afresh (`arena/web/viewer_socket.py` cuts it in the end).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from arena.records.visibility import Viewer, view_of
from arena.referee.live_match import Table
from arena.referee.referee import Conduct
from arena.web.live_match import Cut, Show
from protocol.watching import Gone, View, Watch, encode_lobby, encode_to_viewer

__all__ = ["Gallery", "Spectator"]

log = logging.getLogger(__name__)

# Of a tick, about 50 ms, all work here takes the sum of these at most, but for the last frame that was begun.
_TELLING_S = 0.0025
_TELLING_IDLE_S = 0.010  # while hardly anything is played, nobody waits for it
_FRAMES_S = 0.001
_SENDING_S = 0.0015
_BUSY = 50  # decisions between two ticks: 1,000 a second

_SLOW_S = 0.1  # between two frames
_FAST_S = 0.25  # the same where so much happens that nobody can follow
_FAST = 40  # events in a frame
_SENDS_PER_S = 600  # the more look on, the fewer frames each gets
_LOBBY_S = 1.0
_LINGER_S = 10.0  # a page that is loaded again finds its match told
_GONE_S = 1.0  # from the end to `gone`: the record is written meanwhile


class Spectator(Protocol):
    """A socket at `/watch`."""

    @property
    def is_behind(self) -> bool:
        """Whether frames wait to be read."""

    def send(self, data: bytes) -> None:
        """Send one text frame."""


class _Place:
    """What one spectator watches, and how."""

    __slots__ = ("is_fresh", "view")

    def __init__(self, view: View | None) -> None:
        self.view = view  # None in the lobby
        self.is_fresh = True


_Audience = dict[Spectator, _Place]


class _Hall:
    """A match that is watched, and those who do."""

    __slots__ = ("audience", "competition", "empty_at", "frame_at", "gone_at", "show")

    def __init__(self, show: Show, competition: str | None) -> None:
        self.show = show
        self.competition = competition
        self.audience: _Audience = {}
        self.frame_at = 0.0
        self.empty_at: float | None = None
        self.gone_at: float | None = None


class _Letter(NamedTuple):
    """A frame on its way; one that `must` go is for those who are behind, too."""

    spectator: Spectator
    place: _Place
    data: bytes
    must: bool = False


class Gallery:
    """All who watch.

    Args:
        conduct: the matches.
        competition_of: the id of the competition that a table belongs to, None if it belongs to none.
        lobby: the lobby's document as JSON, made at most once a second by whoever gives it.
        clock: the loop's, in seconds.
    """

    def __init__(
        self,
        conduct: Conduct,
        competition_of: Callable[[Table], str | None],
        lobby: Callable[[], bytes],
        clock: Callable[[], float],
    ) -> None:
        self._conduct = conduct
        self._competition_of = competition_of
        self._lobby = lobby
        self._clock = clock
        self._watched: dict[Spectator, _Hall | None] = {}  # None is the lobby
        self._halls: dict[str, _Hall] = {}
        self._in_lobby: _Audience = {}
        self._document = b""
        self._lobby_at = 0.0
        self._letters: deque[_Letter] = deque()
        self._decisions = 0
        self._turn = 0

    def watch(self, spectator: Spectator, watch: Watch, viewer: Viewer) -> None:
        """Show somebody the lobby or a match, in the place of what it watched before."""
        self.unwatch(spectator)
        if watch.match is None:
            place = self._in_lobby[spectator] = _Place(None)
            self._watched[spectator] = None
            place.is_fresh = False
            spectator.send(encode_lobby(self._lobby()))
            return
        hall = self._hall(watch.match)
        if hall is None:
            spectator.send(encode_to_viewer(Gone(watch.match)))
            return
        # What is being played belongs to no competition that is over.
        view = view_of(hall.show.players, False, viewer)
        hall.audience[spectator] = _Place(view)
        hall.empty_at = None
        self._watched[spectator] = hall
        spectator.send(hall.show.scene(view, hall.competition))

    def unwatch(self, spectator: Spectator) -> None:
        """Show somebody nothing more."""
        hall = self._watched.pop(spectator, None)
        self._in_lobby.pop(spectator, None)
        if hall is not None:
            hall.audience.pop(spectator, None)
            if not hall.audience:
                hall.empty_at = self._clock()

    def left(self, spectator: Spectator) -> None:
        """Somebody's socket is closed."""
        self.unwatch(spectator)

    def viewers(self, match: str) -> int:
        """How many watch a match."""
        hall = self._halls.get(match)
        return 0 if hall is None else len(hall.audience)

    def tick(self, now: float) -> None:
        """Tell what was played meanwhile, and send what is due, as far as there is time."""
        self._tell(now)
        self._sweep(now)
        self._send()
        if not self._letters:  # else there is more to be sent than we can
            self._show(now)
            self._show_lobby(now)
            self._send()

    # --- within ---

    def _hall(self, match: str) -> _Hall | None:
        """Where a match is watched that is being played; None if it is not."""
        hall = self._halls.get(match)
        if hall is not None:
            return hall if hall.gone_at is None else None
        for table in self._conduct.tables:
            if table.id == match:
                show = Show(table, self._clock())
                hall = _Hall(show, self._competition_of(table))
                self._halls[match] = hall
                return hall
        return None

    def _tell(self, now: float) -> None:
        """Follow the matches that are watched, each in its turn with its part of the time."""
        played = self._conduct.decisions - self._decisions
        self._decisions = self._conduct.decisions
        time_s = _TELLING_S if played > _BUSY else _TELLING_IDLE_S
        halls = [hall for hall in self._halls.values() if hall.audience]
        if not halls:
            return
        first = self._turn % len(halls)
        until = self._clock() + time_s
        for number, hall in enumerate(halls[first:] + halls[:first]):
            left_s = until - self._clock()
            if number and left_s <= 0:
                break  # it is the first one of the next tick
            self._turn = first + number + 1
            part_s = left_s / (len(halls) - number)
            try:
                is_due = hall.frame_at <= now
                hall.show.tell(now, self._for(part_s), is_due)
            except Exception:  # one match that cannot be told is no reason to stop all
                self._fail(hall)

    def _for(self, time_s: float) -> Callable[[], bool]:
        """Whether there is still time, for so long from now."""
        until = self._clock() + time_s
        return lambda: self._clock() < until

    def _sweep(self, now: float) -> None:
        """Part with matches that are over, or that nobody watches any more."""
        for match, hall in list(self._halls.items()):
            if hall.gone_at is not None and now >= hall.gone_at:
                gone = encode_to_viewer(Gone(match))
                for spectator, place in list(hall.audience.items()):
                    self._watched.pop(spectator, None)
                    self._letters.append(_Letter(spectator, place, gone, must=True))
                del self._halls[match]
            elif hall.empty_at is not None and now - hall.empty_at > _LINGER_S:
                del self._halls[match]

    def _show(self, now: float) -> None:
        """Make the frames that are due, those first that have waited longest."""
        until = self._clock() + _FRAMES_S
        due = [
            hall
            for hall in self._halls.values()
            if hall.audience and hall.show.is_ready and hall.frame_at <= now
        ]
        due.sort(key=lambda hall: hall.frame_at)
        for hall in due:
            try:
                self._frames(hall, now)
            except Exception:
                self._fail(hall)
            if self._clock() > until:
                break

    def _frames(self, hall: _Hall, now: float) -> None:
        """The frames of one match: for those who follow it, and for those who begin."""
        cut = hall.show.cut()
        begins = cut if cut is not None and cut.reset else None
        made: dict[tuple[View, bool], bytes] = {}
        for spectator, place in list(hall.audience.items()):
            is_fresh = place.is_fresh
            if is_fresh and spectator.is_behind:
                continue
            if is_fresh and begins is None:
                begins = hall.show.afresh()
            what = begins if is_fresh else cut
            if what is None or place.view is None:
                continue
            key = place.view, is_fresh
            if key not in made:
                made[key] = hall.show.frame(what, place.view, now)
            place.is_fresh = False
            self._letters.append(_Letter(spectator, place, made[key]))
        hall.frame_at = now + self._pause_s(cut)
        if hall.show.is_over and hall.gone_at is None:
            hall.gone_at = now + _GONE_S

    def _pause_s(self, cut: Cut | None) -> float:
        """How long until the next frame of a match."""
        if cut is None:
            return 0.0
        is_fast = cut.skipped > 0 or len(cut.events) > _FAST
        return max(_FAST_S if is_fast else _SLOW_S, len(self._watched) / _SENDS_PER_S)

    def _show_lobby(self, now: float) -> None:
        """Tell those in the lobby what has changed there."""
        if not self._in_lobby or now < self._lobby_at:
            return
        self._lobby_at = now + max(_LOBBY_S, len(self._watched) / _SENDS_PER_S)
        document = encode_lobby(self._lobby())
        has_changed = document != self._document
        self._document = document
        for spectator, place in self._in_lobby.items():
            if has_changed or place.is_fresh:
                place.is_fresh = False
                self._letters.append(_Letter(spectator, place, document))

    def _send(self) -> None:
        """Hand out frames, as long as there is time."""
        until = self._clock() + _SENDING_S
        letters = self._letters
        while letters:
            spectator, place, data, must = letters.popleft()
            if not must and self._place(spectator) is not place:
                continue  # it watches something else now, or has left
            if spectator.is_behind and not must:
                place.is_fresh = True  # it misses this one, the next has it all
            else:
                spectator.send(data)
            if self._clock() > until:
                break

    def _place(self, spectator: Spectator) -> _Place | None:
        hall = self._watched.get(spectator)
        return (self._in_lobby if hall is None else hall.audience).get(spectator)

    def _fail(self, hall: _Hall) -> None:
        """A match cannot be told: a fault of ours, which its spectators are spared."""
        log.exception("match %s cannot be shown", hall.show.table.id)
        hall.gone_at = 0.0
