"""The spectators of an arena: which match each of them watches, and the frames that they get.

A watched match is replayed once (`arena/web/watched_match.py`), and each frame is made once for
each view. All of that happens in `tick`, which the gateway calls about every 50 ms. A tick takes a
few milliseconds; what does not fit waits for the next one. Spectators never slow a match: a
spectator that does not read misses frames and restarts with the current round;
`arena/web/viewer_socket.py` eventually disconnects it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

import msgspec

from arena.records.visibility import Viewer
from arena.referee.bot_session import LiveMatch
from arena.referee.referee import Referee
from arena.web.watched_match import WatchedMatch
from protocol.watching import Gone, View, Watch, encode_lobby, encode_to_viewer

__all__ = ["Spectator", "Spectators"]

log = logging.getLogger(__name__)

# The work in one tick takes at most the sum of these, plus the time for one frame.
_REPLAY_S = 0.0025
_REPLAY_IDLE_S = 0.010  # when few matches are played, this delays nobody
_FRAMES_S = 0.001
_SENDING_S = 0.0015
_BUSY = 50  # decisions between two ticks, that is 1,000 a second

_SLOW_S = 0.1  # between two frames
_FAST_S = 0.25  # the same if more happens than anybody can follow
_FAST = 40  # events in a frame
_SENDS_PER_S = 600  # in total; with more spectators, each gets fewer frames
_LOBBY_S = 1.0
_LINGER_S = 10.0  # so that a reloaded page finds its match still replayed
_GONE_S = 1.0  # from the end to `gone`, to let the record be written


class Spectator(Protocol):
    """A socket at `/watch`."""

    @property
    def is_behind(self) -> bool:
        """Whether the spectator has not yet read earlier frames."""

    def send(self, data: bytes) -> None: ...


class _Audience(msgspec.Struct, eq=False):
    """A watched match and its spectators; times are on the loop's clock."""

    watched: WatchedMatch
    competition: str | None
    subscriptions: dict[Spectator, _Subscription] = {}
    frame_at: float = 0.0
    empty_at: float | None = None
    gone_at: float | None = None


class _Subscription(msgspec.Struct, eq=False):
    """What one spectator sees: a match, or the lobby, for which no other field is set."""

    audience: _Audience | None = None
    view: View | None = None
    is_fresh: bool = False  # the next frame must be complete


class _QueuedFrame(NamedTuple):
    """A frame to be sent; with `must`, even to a spectator that is behind."""

    spectator: Spectator
    subscription: _Subscription
    data: bytes
    must: bool = False


class Spectators:
    """All spectators of an arena; `clock` is the loop's, in seconds.

    `competition_of` gives the id of a match's competition, or None; `lobby` a cached document.
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
        self._subscriptions: dict[Spectator, _Subscription] = {}
        self._audiences: dict[str, _Audience] = {}
        self._document = b""
        self._lobby_at = 0.0
        self._queue: deque[_QueuedFrame] = deque()
        self._decisions = 0
        self._turn = 0

    def watch(self, spectator: Spectator, watch: Watch, viewer: Viewer) -> None:
        """Show a spectator the lobby or a match, instead of what it watched before."""
        self.unwatch(spectator)
        if watch.match is None:
            self._subscriptions[spectator] = _Subscription()
            spectator.send(encode_lobby(self._lobby()))
            return
        audience = self._audience_of(watch.match)
        if audience is None:
            spectator.send(encode_to_viewer(Gone(watch.match)))
            return
        view = audience.watched.view(viewer)
        subscription = _Subscription(audience, view, is_fresh=True)
        self._subscriptions[spectator] = audience.subscriptions[spectator] = subscription
        audience.empty_at = None
        spectator.send(audience.watched.scene(view, audience.competition))

    def unwatch(self, spectator: Spectator) -> None:
        subscription = self._subscriptions.pop(spectator, None)
        if subscription is not None and (audience := subscription.audience) is not None:
            del audience.subscriptions[spectator]
            if not audience.subscriptions:
                audience.empty_at = self._clock()

    def viewers(self, match: str) -> int:
        audience = self._audiences.get(match)
        return 0 if audience is None else len(audience.subscriptions)

    def tick(self, now: float) -> None:
        """Replay what was played since the last tick, and send due frames, as time allows."""
        self._replay(now)
        self._sweep(now)
        self._send()
        if not self._queue:  # otherwise frames would be made faster than they are sent
            self._show(now)
            self._show_lobby(now)
            self._send()

    # --- internal ---

    def _audience_of(self, match: str) -> _Audience | None:
        """Return the audience of a match, a new one if needed; None if it is not being played."""
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

    def _replay(self, now: float) -> None:
        """Replay the watched matches in turn, each with its share of the time."""
        played = self._referee.decisions - self._decisions
        self._decisions = self._referee.decisions
        time_s = _REPLAY_S if played > _BUSY else _REPLAY_IDLE_S
        audiences = [audience for audience in self._audiences.values() if audience.subscriptions]
        if not audiences:
            return
        first = self._turn % len(audiences)
        until = self._clock() + time_s
        for number, audience in enumerate(audiences[first:] + audiences[:first]):
            left_s = until - self._clock()
            if number and left_s <= 0:
                break  # the next tick begins with this match
            self._turn = first + number + 1
            part_s = left_s / (len(audiences) - number)
            try:
                is_due = audience.frame_at <= now
                audience.watched.replay(now, self._for(part_s), is_due)
            except Exception:  # a fault in one match must not stop the others
                self._fail(audience)

    def _for(self, time_s: float) -> Callable[[], bool]:
        """Return a function that says whether less than `time_s` has passed since this call."""
        until = self._clock() + time_s
        return lambda: self._clock() < until

    def _sweep(self, now: float) -> None:
        """Drop matches that are over, or that nobody has watched for a while."""
        for match, audience in list(self._audiences.items()):
            if audience.gone_at is not None and now >= audience.gone_at:
                gone = encode_to_viewer(Gone(match))
                for spectator, subscription in list(audience.subscriptions.items()):
                    self._subscriptions.pop(spectator, None)
                    self._queue.append(_QueuedFrame(spectator, subscription, gone, must=True))
                del self._audiences[match]
            elif audience.empty_at is not None and now - audience.empty_at > _LINGER_S:
                del self._audiences[match]

    def _show(self, now: float) -> None:
        """Make the due frames, in the order in which they became due."""
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
        """Queue a match's frames: new events for most spectators, the whole round for newcomers."""
        news = audience.watched.cut()
        whole = news if news is not None and news.reset else None
        frames: dict[tuple[View, bool], bytes] = {}
        for spectator, subscription in list(audience.subscriptions.items()):
            is_fresh = subscription.is_fresh
            if is_fresh and spectator.is_behind:
                continue
            if is_fresh and whole is None:
                whole = audience.watched.present_round()
            cut = whole if is_fresh else news
            if cut is None or subscription.view is None:
                continue
            key = subscription.view, is_fresh
            if key not in frames:
                frames[key] = audience.watched.frame(cut, subscription.view, now)
            subscription.is_fresh = False
            self._queue.append(_QueuedFrame(spectator, subscription, frames[key]))
        pause_s = 0.0
        if news is not None:
            is_fast = news.skipped > 0 or len(news.events) > _FAST
            each_s = _FAST_S if is_fast else _SLOW_S
            pause_s = max(each_s, len(self._subscriptions) / _SENDS_PER_S)
        audience.frame_at = now + pause_s
        if audience.watched.is_over and audience.gone_at is None:
            audience.gone_at = now + _GONE_S

    def _show_lobby(self, now: float) -> None:
        """Queue the lobby's document for all if it has changed, else for those who missed it."""
        if now < self._lobby_at:
            return
        lobby = [each for each in self._subscriptions.items() if each[1].audience is None]
        if not lobby:
            return
        self._lobby_at = now + max(_LOBBY_S, len(self._subscriptions) / _SENDS_PER_S)
        document = encode_lobby(self._lobby())
        has_changed = document != self._document
        self._document = document
        for spectator, subscription in lobby:
            if has_changed or subscription.is_fresh:
                subscription.is_fresh = False
                self._queue.append(_QueuedFrame(spectator, subscription, document))

    def _send(self) -> None:
        """Send queued frames, as long as there is time."""
        until = self._clock() + _SENDING_S
        queue = self._queue
        while queue:
            spectator, subscription, data, must = queue.popleft()
            if not must and self._subscriptions.get(spectator) is not subscription:
                continue  # the spectator watches something else now, or has left
            if spectator.is_behind and not must:
                subscription.is_fresh = True  # skip this frame; the next one must be complete
            else:
                spectator.send(data)
            if self._clock() > until:
                break

    def _fail(self, audience: _Audience) -> None:
        """Log a fault of the arena, and tell the spectators that the match is gone."""
        log.exception("match %s cannot be shown", audience.watched.id)
        audience.gone_at = 0.0
