"""Where people play: somebody at the page asks for a chair, comes as an ordinary client of the protocol, and sits down with bots.

A person and the house bots that play against people stand aside: no competition takes them. A competition that needs somebody who sits here
gets it at once; the match is void then. Nothing that happens here is written down or counts for anything: the records of the latest
matches are kept in memory, and an offence ends its match, and that is all.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING

from arena.engine.match import MatchResult
from arena.engine.names import spelled
from arena.engine.rules import Game
from arena.engine.verdict import Finding
from arena.games import game_named
from arena.records.visibility import Viewer
from arena.referee.bot_session import BotSession
from arena.referee.budget import Share
from arena.referee.live_match import LiveMatch
from arena.server.admission import GUEST
from arena.web.play.booking import Booking, PersonSocket, has_time, is_needed
from arena.web.play.house_bots import HouseBots
from arena.web.play.human_limits import limits_for, settings_for
from arena.web.play.person_names import HOUSE, name_for, numbered, person_of
from arena.web.play.recent import PersonalMatch, RecentMatches
from protocol.errors import UnknownBot, UsageError
from protocol.messages import Ending, Mechanism, Refused, Verdict
from protocol.watching import Seat, Sit, encode_to_viewer

if TYPE_CHECKING:
    from arena.competitions.arena_host import Host
    from arena.competitions.competition import Competition

__all__ = ["PeopleTables"]

_MOST = 256  # tables, those included that are laid
_MOST_NEAR = 64  # of one address: a class may sit behind it
_MOST_EACH = 4  # of one person
_WAIT_S = 60.0  # for everybody to come
_UNSEEN_S = 60.0  # until a table is given back that nobody looks at: a page that is loaded again is there within a second
_SHARE, _SAVED_S = 0.1, 0.25  # of the arena's time, for all who play here
_SHARE_EACH, _SAVED_EACH_S = 0.02, 0.05
"""A person takes a hundredth of that, but a program may pass for one: it is served more slowly, and the rest have theirs."""
_OVER = "the match is over"


class PeopleTables:
    """The people who play in an arena.

    Args:
        host: the arena.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._players = host.gateway.players
        self._admission = host.gateway.admission
        self._limits = limits_for(host.limits)
        self._house_bots = HouseBots(host, self._failed)
        self._bookings: dict[str, Booking] = {}
        # Who has to go: why, its token, and the person.
        self._parting: dict[str, tuple[str, str, str]] = {}
        self._share = Share(_SHARE, _SAVED_S)
        self._recent = RecentMatches()
        self._loop = asyncio.get_running_loop()

    # --- what viewers want ---

    def sit(self, socket: PersonSocket, wanted: Sit, address: str, viewer: Viewer) -> Seat:
        """Keep a chair for a person, who says `hello` with its name and token within a minute; the match begins when all are there.

        Args:
            socket: the socket that it asks at.
            wanted: what and against whom.
            address: where it comes from.
            viewer: who it is, by its token.

        Raises:
            Unwelcome: it needs a token, or another name.
            UsageError: there is no such game, bot or setting, or no room.
        """
        person = person_of(socket, viewer)
        self._check_room(socket, address, person)
        game = game_named(wanted.game)
        settings = settings_for(game, wanted.settings or {})
        name = self._called(wanted.name, viewer, person)
        self._check_opponents(game, wanted.against)
        against = (self._opponent(game, one) for one in wanted.against)
        token = GUEST + secrets.token_urlsafe(24)
        share = Share(_SHARE_EACH, _SAVED_EACH_S, within=self._share)
        names = (name, *against)
        booking = Booking(socket, person, address, game, settings, names, token, share)
        self._admission.expect(name, token)
        self._bookings[name] = booking
        why = f"not all came within {_WAIT_S:.0f} s"
        booking.deadline = self._host.gateway.timers.after(
            _WAIT_S, partial(self._end, booking, why)
        )
        return Seat(token, name)

    def stand(self, socket: PersonSocket) -> None:
        """A person gives its match up; if it has begun the others have won."""
        booking = self._of(socket)
        if booking is None:
            return
        booking.socket = None
        if booking.table is None:
            self._end(booking, "you stood up")
        else:
            self._dismiss(booking.name, "stood up in the middle of the match")

    def disconnected(self, socket: PersonSocket) -> None:
        """The socket is gone; whoever plays by now goes on without it."""
        booking = self._of(socket)
        if booking is not None:
            booking.socket = None
            if not booking.has_come:
                self._end(booking, "you left")

    def seen(self, browser: str) -> None:
        """Somebody looks at the page in a browser."""
        for booking in self._bookings.values():
            if booking.browser == browser and booking.unseen is not None:
                booking.unseen.cancel()
                booking.unseen = None

    def unseen(self, browser: str) -> None:
        """Nobody does any more: its tables are given back, unless somebody comes back soon."""
        for booking in self._bookings.values():
            if booking.browser == browser:
                booking.unseen = self._host.gateway.timers.after(
                    _UNSEEN_S, partial(self._give_back, booking)
                )

    # --- what others ask ---

    @property
    def tables(self) -> tuple[LiveMatch, ...]:
        """The matches that are being played."""
        found = (one.table for one in self._bookings.values())
        return tuple(table for table in found if table is not None)

    @property
    def non_competing(self) -> Collection[str]:
        """The names of people, and of the house bots that are here for them: no competition takes these."""
        return {*self._bookings, *self._parting, *self._house_bots.names}

    def is_non_competing(self, name: str) -> bool:
        """Whether no competition takes who is called so."""
        return name in self._bookings or name in self._parting or name in self._house_bots.names

    def is_offered(self, player: BotSession, game: str, tables: int = 1) -> bool:
        """Whether people can play against a bot now: it has time for them, and no competition needs it."""
        return (
            game in player.games
            and has_time(player, tables)
            and not self.is_non_competing(player.name)
            and not any(is_needed(player, one) for one in self._host.competitions)
        )

    def record(self, match: str) -> PersonalMatch | None:
        """A match that was played here lately."""
        return self._recent.get(match)

    # --- what happens ---

    def changed(self) -> None:
        """A bot or a person has come or gone."""
        for booking in tuple(self._bookings.values()):
            if booking.table is None:
                self._begin(booking)
        if self._parting:
            self._loop.call_soon(self._part)

    def competition_started(self, competition: Competition) -> None:
        """A competition begins: who has to play in it does not play here."""
        for booking in tuple(self._bookings.values()):
            name = next((n for n in booking.names if self._has(competition, n)), None)
            if name is None:
                continue
            text = f"{name} has to play in a competition"
            if booking.table is None:
                self._end(booking, text)
            else:
                self._host.referee.void(booking.table, text)

    def close(self) -> None:
        """The arena closes."""
        self._house_bots.close()
        for booking in self._bookings.values():
            booking.cancel()

    # --- to sit down ---

    def _check_room(self, socket: PersonSocket, address: str, person: str) -> None:
        if self._of(socket) is not None:
            raise UsageError("expected to stand up first, you have a chair already")
        bookings = self._bookings.values()
        if sum(one.person == person for one in bookings) >= _MOST_EACH:
            raise UsageError(
                f"expected at most {_MOST_EACH} tables for one person; stand up at one of yours first"
            )
        if sum(one.address == address for one in bookings) >= _MOST_NEAR:
            raise UsageError(
                f"expected at most {_MOST_NEAR} tables for people from one address; come back later"
            )
        if len(bookings) >= _MOST:
            raise UsageError(f"expected at most {_MOST} tables for people; come back later")
        if self._share.is_spent(self._loop.time()):
            raise UsageError(
                "people who play take all the time that the arena has for them; try again in a moment"
            )

    def _called(self, said: str, viewer: Viewer, person: str) -> str:
        """What a person is called: one on the roster by a name below its own, which no bot of its needs.

        If somebody is called so already it gets a number: the second `PersonSocket` is `PersonSocket 2`.

        Raises:
            Unwelcome: it cannot be called so.
        """
        name = spelled(name_for(said, viewer), self._parting)
        if name in self._parting and self._parting[name][2] == person:
            self._part_with(name)  # the same once more, whose last match has ended
        # Without its number, which would hide whose it is.
        self._admission.check_owner(name, viewer)
        people = (*self._bookings, *self._parting)
        name = numbered(name, people, self._host.presence.is_taken)
        self._admission.check_guest(name, viewer)
        return name

    def _check_opponents(self, game: Game, against: Sequence[str]) -> None:
        """See that all of them can play; nothing is started before."""
        others = game.seats - 1
        if len(against) != others:
            raise UsageError(
                f"expected {others} to play against in {game.name}, got {len(against)}"
            )
        for one, tables in Counter(against).items():
            if one.startswith(HOUSE):
                bot, known = one.removeprefix(HOUSE), self._house_bots.known(game.name)
                if bot not in known:
                    raise UnknownBot(
                        f"no house bot {one!r} for {game.name}; expected one of: {', '.join(HOUSE + other for other in known)}"
                    )
                if tables > self._house_bots.free(game.name, bot):
                    raise UsageError(
                        f"expected a bot with a free table, {one} plays at all of its {self._house_bots.tables}; choose another, or come back later"
                    )
                continue
            player = self._players.get(one)
            if player is None or not self.is_offered(player, game.name, tables):
                free = "a free table" if tables == 1 else f"{tables} free tables"
                raise UsageError(
                    f"expected a bot that is connected, plays {game.name}, has {free} and is in no competition, got {one!r}"
                )

    def _opponent(self, game: Game, one: str) -> str:
        """What it is called at the table; a house bot is on its way then."""
        if not one.startswith(HOUSE):
            return one
        return self._house_bots.take(game.name, one.removeprefix(HOUSE))

    def _begin(self, booking: Booking) -> None:
        """Open the match if everybody is there, or see that it never will be."""
        person = self._players.get(booking.name)
        if person is None or person.token != booking.token:
            if booking.has_come:
                self._end(booking, "you left")
            return
        booking.has_come = True
        person.share = booking.share
        if booking.game.name not in person.games:
            self._end(booking, f"expected hello with the game {booking.game.name}")
            return
        for name, count in Counter(booking.names).items():
            player = self._players.get(name)
            if player is None and not self._is_coming(name):
                self._end(booking, f"{name} has left")
                return
            if player is None or not has_time(player, count):
                return
        self._open(booking)

    def _is_coming(self, name: str) -> bool:
        """Whether somebody who is not here is a house bot that will be."""
        return name in self._house_bots.names and not self._house_bots.is_gone(name)

    def _open(self, booking: Booking) -> None:
        if booking.deadline is not None:
            booking.deadline.cancel()
        booking.began = time.time()
        for name in booking.names:
            if name in self._house_bots.names:
                self._players[name].share = self._share
        limits = self._host.limits
        booking.table = self._host.referee.open(
            booking.game,
            booking.settings,
            [self._players[name] for name in booking.names],
            limits,
            partial(self._over, booking),
            by_seat=(self._limits, *(limits for _ in booking.names[1:])),
        )

    # --- to stand up ---

    def _over(
        self, booking: Booking, table: LiveMatch, result: MatchResult, verdict: Verdict | None
    ) -> None:
        """A match has ended, in whatever way."""
        self._recent.add(
            PersonalMatch(
                match=table.id,
                players=booking.names,
                record=result.record,
                verdict=verdict,
                started_at=booking.began,
                finished_at=time.time(),
            )
        )
        is_void = result.termination.kind is Ending.VOID
        self._end(booking, result.termination.text if is_void else _OVER)
        self._loop.call_soon(self.changed)  # somebody may wait for these bots
        self._host.freed(booking.names)

    def _end(self, booking: Booking, text: str) -> None:
        """Clear a table away; whoever sat there is told why if it has not seen it happen."""
        if self._bookings.get(booking.name) is not booking:
            return
        del self._bookings[booking.name]
        booking.cancel()
        for name in booking.names[1:]:
            self._house_bots.leave(name)
        if booking.socket is not None and booking.table is None:
            booking.socket.send(encode_to_viewer(Refused("sit", text)))
        self._parting[booking.name] = text, booking.token, booking.person
        self._loop.call_soon(self._part)

    def _part(self) -> None:
        """See people off; who has lost its connection just now may come back to hear how it ended."""
        for name in tuple(self._parting):
            player = self._players.get(name)
            if player is None or player.connection is not None:
                self._part_with(name)

    def _part_with(self, name: str) -> None:
        text, token, _ = self._parting.pop(name)
        self._dismiss(name, text)
        self._admission.forget(name, token=token)

    def _dismiss(self, name: str, text: str) -> None:
        finding = Finding(kind=Ending.DISCONNECT, text=text, mechanism=Mechanism.SESSION)
        self._host.gateway.dismissals.dismiss(name, finding)

    def _give_back(self, booking: Booking) -> None:
        """Nobody has looked at a table for so long: others may have it."""
        text = f"nobody has looked at the table for {_UNSEEN_S:.0f} s"
        self._dismiss(booking.name, text)

    def _failed(self, name: str, text: str) -> None:
        """A house bot cannot be started."""
        for booking in tuple(self._bookings.values()):
            if name in booking.names and booking.table is None:
                self._end(booking, f"{name} cannot be started: {text}")

    # --- within ---

    def _of(self, socket: PersonSocket) -> Booking | None:
        found = (one for one in self._bookings.values() if one.socket is socket)
        return next(found, None)

    def _has(self, competition: Competition, name: str) -> bool:
        player = self._players.get(name)
        if player is None or self.is_non_competing(name):
            return name in competition.plan.players
        return is_needed(player, competition)
