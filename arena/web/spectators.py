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
from arena.referee.live_match import LiveMatch
from arena.referee.referee import Referee
from arena.web.live_match import EventCut, WatchedMatch
from protocol.watching import Gone, View, Watch, encode_lobby, encode_to_viewer

__all__ = ["Spectator", "Spectators"]

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


class _Subscription:
    """What one spectator watches, and how."""

    __slots__ = ("is_fresh", "view")

    def __init__(self, view: View | None) -> None:
        self.view = view  # None in the lobby
        self.is_fresh = True


_Subscriptions = dict[Spectator, _Subscription]


class _Audience:
    """A match that is watched, and those who do."""

    __slots__ = ("competition", "empty_at", "frame_at", "gone_at", "subscriptions", "watched")

    def __init__(self, watched: WatchedMatch, competition: str | None) -> None:
        self.watched = watched
        self.competition = competition
        self.subscriptions: _Subscriptions = {}
        self.frame_at = 0.0
        self.empty_at: float | None = None
        self.gone_at: float | None = None


class _QueuedFrame(NamedTuple):
    """A frame on its way; one that `must` go is for those who are behind, too."""

    spectator: Spectator
    subscription: _Subscription
    data: bytes
    must: bool = False


class Spectators:
    """All who watch.

    Args:
        referee: the matches.
        competition_of: the id of the competition that a table belongs to, None if it belongs to none.
        lobby: the lobby's document as JSON, made at most once a second by whoever gives it.
        clock: the loop's, in seconds.
    """

    def __init__(
        self,
        referee: Referee,
        competition_of: Callable[[LiveMatch], str | None],
        lobby: Callable[[], bytes],
        clock: Callable[[], float],
    ) -> None:
        self._referee = referee
        self._competition_of = competition_of
        self._lobby = lobby
        self._clock = clock
        self._watched: dict[Spectator, _Audience | None] = {}  # None is the lobby
        self._audiences: dict[str, _Audience] = {}
        self._in_lobby: _Subscriptions = {}
        self._document = b""
        self._lobby_at = 0.0
        self._queue: deque[_QueuedFrame] = deque()
        self._decisions = 0
        self._turn = 0

    def watch(self, spectator: Spectator, watch: Watch, viewer: Viewer) -> None:
        """Show somebody the lobby or a match, in the place of what it watched before."""
        self.unwatch(spectator)
        if watch.match is None:
            subscription = self._in_lobby[spectator] = _Subscription(None)
            self._watched[spectator] = None
            subscription.is_fresh = False
            spectator.send(encode_lobby(self._lobby()))
            return
        audience = self._audience_of(watch.match)
        if audience is None:
            spectator.send(encode_to_viewer(Gone(watch.match)))
            return
        # What is being played belongs to no competition that is over.
        view = view_of(audience.watched.players, False, viewer)
        audience.subscriptions[spectator] = _Subscription(view)
        audience.empty_at = None
        self._watched[spectator] = audience
        spectator.send(audience.watched.scene(view, audience.competition))

    def unwatch(self, spectator: Spectator) -> None:
        """Show somebody nothing more."""
        audience = self._watched.pop(spectator, None)
        self._in_lobby.pop(spectator, None)
        if audience is not None:
            audience.subscriptions.pop(spectator, None)
            if not audience.subscriptions:
                audience.empty_at = self._clock()

    def disconnected(self, spectator: Spectator) -> None:
        """Somebody's socket is closed."""
        self.unwatch(spectator)

    def viewers(self, match: str) -> int:
        """How many watch a match."""
        audience = self._audiences.get(match)
        return 0 if audience is None else len(audience.subscriptions)

    def tick(self, now: float) -> None:
        """Tell what was played meanwhile, and send what is due, as far as there is time."""
        self._tell(now)
        self._sweep(now)
        self._send()
        if not self._queue:  # else there is more to be sent than we can
            self._show(now)
            self._show_lobby(now)
            self._send()

    # --- within ---

    def _audience_of(self, match: str) -> _Audience | None:
        """Where a match is watched that is being played; None if it is not."""
        audience = self._audiences.get(match)
        if audience is not None:
            return audience if audience.gone_at is None else None
        for table in self._referee.tables:
            if table.id == match:
                watched = WatchedMatch(table, self._clock())
                audience = _Audience(watched, self._competition_of(table))
                self._audiences[match] = audience
                return audience
        return None

    def _tell(self, now: float) -> None:
        """Follow the matches that are watched, each in its turn with its part of the time."""
        played = self._referee.decisions - self._decisions
        self._decisions = self._referee.decisions
        time_s = _TELLING_S if played > _BUSY else _TELLING_IDLE_S
        audiences = [audience for audience in self._audiences.values() if audience.subscriptions]
        if not audiences:
            return
        first = self._turn % len(audiences)
        until = self._clock() + time_s
        for number, audience in enumerate(audiences[first:] + audiences[:first]):
            left_s = until - self._clock()
            if number and left_s <= 0:
                break  # it is the first one of the next tick
            self._turn = first + number + 1
            part_s = left_s / (len(audiences) - number)
            try:
                is_due = audience.frame_at <= now
                audience.watched.tell(now, self._for(part_s), is_due)
            except Exception:  # one match that cannot be told is no reason to stop all
                self._fail(audience)

    def _for(self, time_s: float) -> Callable[[], bool]:
        """Whether there is still time, for so long from now."""
        until = self._clock() + time_s
        return lambda: self._clock() < until

    def _sweep(self, now: float) -> None:
        """Part with matches that are over, or that nobody watches any more."""
        for match, audience in list(self._audiences.items()):
            if audience.gone_at is not None and now >= audience.gone_at:
                gone = encode_to_viewer(Gone(match))
                for spectator, subscription in list(audience.subscriptions.items()):
                    self._watched.pop(spectator, None)
                    self._queue.append(_QueuedFrame(spectator, subscription, gone, must=True))
                del self._audiences[match]
            elif audience.empty_at is not None and now - audience.empty_at > _LINGER_S:
                del self._audiences[match]

    def _show(self, now: float) -> None:
        """Make the frames that are due, those first that have waited longest."""
        until = self._clock() + _FRAMES_S
        due = [
            audience
            for audience in self._audiences.values()
            if audience.subscriptions and audience.watched.is_ready and audience.frame_at <= now
        ]
        due.sort(key=lambda audience: audience.frame_at)
        for audience in due:
            try:
                self._frames(audience, now)
            except Exception:
                self._fail(audience)
            if self._clock() > until:
                break

    def _frames(self, audience: _Audience, now: float) -> None:
        """The frames of one match: for those who follow it, and for those who begin."""
        cut = audience.watched.cut()
        begins = cut if cut is not None and cut.reset else None
        made: dict[tuple[View, bool], bytes] = {}
        for spectator, subscription in list(audience.subscriptions.items()):
            is_fresh = subscription.is_fresh
            if is_fresh and spectator.is_behind:
                continue
            if is_fresh and begins is None:
                begins = audience.watched.afresh()
            what = begins if is_fresh else cut
            if what is None or subscription.view is None:
                continue
            key = subscription.view, is_fresh
            if key not in made:
                made[key] = audience.watched.frame(what, subscription.view, now)
            subscription.is_fresh = False
            self._queue.append(_QueuedFrame(spectator, subscription, made[key]))
        audience.frame_at = now + self._pause_s(cut)
        if audience.watched.is_over and audience.gone_at is None:
            audience.gone_at = now + _GONE_S

    def _pause_s(self, cut: EventCut | None) -> float:
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
        for spectator, subscription in self._in_lobby.items():
            if has_changed or subscription.is_fresh:
                subscription.is_fresh = False
                self._queue.append(_QueuedFrame(spectator, subscription, document))

    def _send(self) -> None:
        """Hand out frames, as long as there is time."""
        until = self._clock() + _SENDING_S
        queue = self._queue
        while queue:
            spectator, subscription, data, must = queue.popleft()
            if not must and self._place(spectator) is not subscription:
                continue  # it watches something else now, or has left
            if spectator.is_behind and not must:
                subscription.is_fresh = True  # it misses this one, the next has it all
            else:
                spectator.send(data)
            if self._clock() > until:
                break

    def _place(self, spectator: Spectator) -> _Subscription | None:
        audience = self._watched.get(spectator)
        return (self._in_lobby if audience is None else audience.subscriptions).get(spectator)

    def _fail(self, audience: _Audience) -> None:
        """A match cannot be told: a fault of ours, which its spectators are spared."""
        log.exception("match %s cannot be shown", audience.watched.table.id)
        audience.gone_at = 0.0
