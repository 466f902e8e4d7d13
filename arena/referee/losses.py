"""Lost connections: how long a bot may be away, and what follows if it does not come back (J7, J9).

A connection is lost from its close. It is silent from when the peer's machine stops acknowledging,
or the peer stops answering pings. Either lasts until the pending questions are written again.
Meanwhile the grace or the silence of every match that the bot plays is used up
(`arena/referee/bot_session.py`).

When that time is over, the other seats of the match are asked whether they are here. If one of
another side was away as well, nobody can know whose network failed, and the match is void. A bot
without a match keeps its session for the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from arena.games.verdict import Finding, outage
from arena.referee.bot_session import BotSession, Inquiry, LiveMatch, MatchSeat
from arena.referee.decision_time import ConnectionLoss
from arena.referee.referee import Referee
from arena.referee.timers import Timers
from protocol.messages import Ending, Limits, Mechanism

__all__ = ["Losses"]

_AWAY_S = 5.0  # an absence this long may be an outage; a seat that answers within it is here
_AGAIN_S = 0.25  # between checks whether the asked seats have answered
_LEAST_S = 0.001  # a smaller rest would not move the clock, and would be waited for without end


class Losses:
    """The lost connections of one gateway; tells its referee which seats may be away.

    A player without a match has the `grace_ms` or `silence_ms` of `limits`. `on_gone` is called
    with a player that has not come back in time, and `on_back` with one that was silent and is
    heard again.
    """

    def __init__(
        self,
        referee: Referee,
        limits: Limits,
        clock: Callable[[], float],
        timers: Timers,
        on_gone: Callable[[BotSession, Finding], None],
        on_back: Callable[[BotSession], None],
    ) -> None:
        self._referee = referee
        self._limits = limits
        self._timers = timers
        self._on_gone = on_gone
        self._on_back = on_back
        self._clock = clock
        referee.on_lost = self.begin
        referee.on_heard = self._acknowledged
        referee.check_outage = self._check_outage

    def begin(self, player: BotSession, since: float, by_ping: bool = False) -> None:
        """Note a lost or silent connection; a silent one that is closed now keeps its beginning."""
        now = self._clock()
        lag = self._referee.lag
        by_arena = lag.follows_stall(now)
        was_silent = None if player.loss is None else player.loss.is_silent
        # A stall counts as the arena's lag, so a loss during a stall begins at its end.
        since = now if by_arena else since
        loss = player.connection_lost(since, lag.total_s(now), by_arena, by_ping, closed_at=now)
        if was_silent is not loss.is_silent:
            for chair in player.chairs.values():
                chair.inquiry = None  # the others are asked when the new time is over
            self._wait(player, loss)

    def heard(self, player: BotSession, now: float) -> None:
        """Note that something came from a bot; a silent connection goes on, and nothing is lost."""
        player.heard_at = now
        if player.loss is not None and player.loss.is_silent:
            player.connection_regained(now, self._referee.lag.total_s(now))
            self._on_back(player)

    def left_s(self, player: BotSession) -> float:
        """How long a lost player may still come back; its name stays reserved until then."""
        if player.loss is None:
            return self._limits.grace_ms / 1000
        return max(0.0, *self._left_s(player, player.loss))

    def _acknowledged(self, player: BotSession, now: float) -> None:
        """Note that the bot's machine, or a proxy, has acknowledged all that was sent."""
        if player.loss is not None and player.connection is not None and not player.loss.by_ping:
            self.heard(player, now)

    def _wait(self, player: BotSession, loss: ConnectionLoss, again: bool = False) -> None:
        """Wait until the first time is over: a seat's, or the session's; with `again` look soon."""
        session_s, *left_s = self._left_s(player, loss)
        if session_s > 0 or not left_s:
            left_s.append(session_s)
        loss.end()
        rest_s = min(left_s)
        wait_s = _AGAIN_S if again else max(_LEAST_S, rest_s) if rest_s > 0 else 0.0
        loss.timer = self._timers.after(wait_s, partial(self._over, player, loss))

    def _left_s(self, player: BotSession, loss: ConnectionLoss) -> Iterator[float]:
        """Yield what is left of the session's time, then of each seat's."""
        now = self._clock()
        lag_s, limits = self._referee.lag.total_s(now), self._limits
        silent_s, lost_s = loss.parts_s(loss.since, now, lag_s)
        is_silent = loss.is_silent
        yield limits.silence_ms / 1000 - silent_s if is_silent else limits.grace_ms / 1000 - lost_s
        for chair in player.chairs.values():
            yield chair.away_left_s(loss, now, lag_s)

    def _over(self, player: BotSession, loss: ConnectionLoss) -> None:
        """Its time is over: the player loses those matches, and is gone if it has no others."""
        now = self._clock()
        connection = player.connection
        if loss.is_silent and connection and connection.silent_since(now) is None:
            self._acknowledged(player, now)
        if player.loss is not loss or player.leaving:
            return
        session_s, *left_s = self._left_s(player, loss)
        chairs = tuple(player.chairs.values())
        over = [chair for chair, left in zip(chairs, left_s, strict=True) if left <= 0]
        ruled: dict[LiveMatch, tuple[MatchSeat, ...]] = {}
        waits = False
        for chair in over:
            if chair.table.is_over:  # the bot plays against itself
                continue
            if chair.inquiry is None or not chair.inquiry.is_late:
                self._ask(chair, now)
            away = self._others_away(chair, now)
            if away is None:
                waits = True
            elif not self._void_by_outage(chair, away):
                ruled[chair.table] = away
        limits = over[0].limits if over else self._limits
        text = f"lost its connection and did not come back within {limits.grace_ms:,} ms"
        advice = ""
        if loss.is_silent:
            text = f"was silent for {limits.silence_ms:,} ms"
            advice = "keep the machine awake, on a network that stays, and answer pings"
        if over:
            text += " in all"
        finding = Finding(
            kind=Ending.DISCONNECT, text=text, mechanism=Mechanism.SESSION, advice=advice
        )
        if ruled:
            self._referee.offence(player, finding, ruled)
        if session_s > 0 or player.chairs:
            self._wait(player, loss, again=waits)
        else:
            self._on_gone(player, finding)

    # --- outages (J9) ---

    def _check_outage(self, chair: MatchSeat, now: float, is_late: bool) -> bool:
        """Check whether a seat is away by an outage; true if it is, or if that is not known yet.

        A machine that acknowledges is here. But a proxy acknowledges for all, so behind one the
        others are asked before the seat is late, as an outage may end soon after that.
        """
        connection, inquiry = chair.player.connection, chair.inquiry
        is_known = connection is None or connection.is_direct or not connection.has_link
        if is_known or len(chair.table.chairs) == 1:
            return False
        if not is_late:
            if inquiry is None and now - chair.asked_at >= _AWAY_S:
                self._ask(chair, now, is_late=False)
            return False
        if inquiry is None:
            self._ask(chair, now)
            return True
        away, self_away_s = self._others_away(chair, now), self._away_s(chair, chair, now)
        is_away = self_away_s is not None and self_away_s >= _AWAY_S
        if away and is_away:
            if not self._void_by_outage(chair, away):
                self._note_away((chair, *away), inquiry)
            return True
        if not inquiry.is_late:
            self._ask(chair, now)  # a seat that was here before may be away now
            return True
        return away is None or (len(away) > 0 and self_away_s is not None and not is_away)

    def _ask(self, chair: MatchSeat, now: float, *, is_late: bool = True) -> None:
        chair.inquiry = Inquiry(now, self._referee.lag.total_s(now), is_late)
        for asked in chair.table.chairs:
            asked.player.look(now, at_once=True)

    def _others_away(self, chair: MatchSeat, now: float) -> tuple[MatchSeat, ...] | None:
        """The other seats that are away by the inquiry; None until that is known of all."""
        others = [other for other in chair.table.chairs if other.player is not chair.player]
        away = {other: self._away_s(other, chair, now) for other in others}
        times_s = {other: away_s for other, away_s in away.items() if away_s is not None}
        if any(away_s < _AWAY_S for away_s in times_s.values()):
            return None
        return tuple(times_s)

    def _away_s(self, chair: MatchSeat, late: MatchSeat, now: float) -> float | None:
        """How long a seat has been away by the inquiry of the late seat; None if it is here."""
        player, lag_s = chair.player, self._referee.lag.total_s(now)
        if player.process is not None and player is not late.player:
            return None  # it has no network to the arena
        if player.loss is not None:
            return now - player.loss.since - (lag_s - player.loss.lag_s)
        inquiry, connection = late.inquiry, player.connection
        assert inquiry is not None, "it was asked"
        if connection is None or not connection.has_link or player.heard_at >= inquiry.asked_at:
            return None
        # A bot that thinks or starts up may read nothing.
        is_busy = player.pending or any(seat.nonce is None for seat in player.chairs.values())
        if is_busy and connection.is_direct and connection.silent_since(now) is None:
            return None
        return now - inquiry.asked_at - (lag_s - inquiry.lag_s)

    def _void_by_outage(self, chair: MatchSeat, away: tuple[MatchSeat, ...]) -> bool:
        """Void a match if a seat of another side is away; returns whether it was voided."""
        table = chair.table
        if all(table.sides[other.seat] == table.sides[chair.seat] for other in away):
            return False
        assert chair.inquiry is not None, "they were asked"
        gone = sorted((chair, *away), key=lambda each: each.seat)
        self._note_away(gone, chair.inquiry)
        names = [each.player.public_name for each in gone]
        self._referee.void(table, outage(names), tuple(each.seat for each in gone))
        return True

    def _note_away(self, gone: Iterable[MatchSeat], inquiry: Inquiry) -> None:
        """Treat these bots as silent since the inquiry: they get no match until they answer."""
        for player in [chair.player for chair in gone if chair.player.loss is None]:
            self.begin(player, min(player.heard_at, inquiry.asked_at), by_ping=True)
