"""The tables where people play: booking a seat, the match against bots, and its end.

A person asks for a seat at `/watch` and then connects like any client of the protocol. People, and
the house bots that play against them, take part in no competition. If a competition needs a bot
that plays here, it gets the bot at once, and the match is void. Matches here do not count: only the
latest records are kept, in memory, and an offence only ends its match.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

import msgspec

from arena.formats.spec import Form
from arena.games.catalogue import game_named
from arena.games.match import MatchResult
from arena.games.names import spelled
from arena.games.rules import Game
from arena.games.verdict import Finding
from arena.records.visibility import Viewer, ViewerKind
from arena.referee.bot_session import BotSession, LiveMatch
from arena.referee.budget import Share
from arena.referee.timers import Timer
from arena.server.admission import GUEST
from arena.web.play.house_bots import HouseBots
from arena.web.play.people import HOUSE, limits_for, name_for, numbered, settings_for
from arena.web.questions import PersonalMatch
from arena.web.sized_cache import SizedCache
from protocol.errors import UnknownBot, UsageError
from protocol.messages import Ending, Mechanism, Refused, Verdict
from protocol.vocabulary import Settings
from protocol.watching import Seat, Sit, encode_to_viewer

if TYPE_CHECKING:
    from arena.competitions.competition import Competition
    from arena.competitions.live_arena import LiveArena

__all__ = ["Booking", "PeopleTables", "PersonSocket"]

_MOST = 256  # tables, including those waiting for players
_MOST_NEAR = 64  # per address, which a whole class may share
_MOST_EACH = 4  # per person
_WAIT_S = 60.0  # for all players to come
_UNSEEN_S = 60.0  # without an open page; reloading it takes a second
_SHARE, _SAVED_S = 0.1, 0.25  # of the arena's time, for all tables here
# A person needs a hundredth of that. A program that plays as a person is slowed down.
_SHARE_EACH, _SAVED_EACH_S = 0.02, 0.05
_ANSWERS = 1_000_000  # in the records of the latest matches: about ten megabytes
_LEAST_ANSWERS = _ANSWERS // 200  # shorter records count as this many, so at most 200 are kept
_OVER = "the match is over"


class PersonSocket(Protocol):
    """A person's socket at `/watch`; `browser` is the same for all sockets of one browser."""

    browser: str

    def send(self, data: bytes) -> None: ...


class Booking(msgspec.Struct, eq=False):
    """A person's seat and table, from the request to the end of the match.

    `socket` is None once it is closed or the person has stood up. `person` identifies the person,
    to count their tables. Their name is the first of `names`, and they say `hello` with `token`.
    `began` is in Unix seconds. The timer `deadline` ends a booking whose players do not come, and
    `unseen` one without an open page. `ended` is why the booking has ended.
    """

    socket: PersonSocket | None
    browser: str
    person: str
    address: str
    game: Game
    settings: Settings
    names: tuple[str, ...]
    token: str
    share: Share
    has_come: bool = False
    table: LiveMatch | None = None
    began: float = 0.0
    deadline: Timer | None = None
    unseen: Timer | None = None
    ended: str = ""

    @property
    def name(self) -> str:
        return self.names[0]

    def cancel(self) -> None:
        for timer in (self.deadline, self.unseen):
            if timer is not None:
                timer.cancel()


class PeopleTables:
    """The tables of an arena at which people play."""

    def __init__(self, arena: LiveArena) -> None:
        self._arena = arena
        self._players = arena.gateway.players
        self._admission = arena.gateway.admission
        self._limits = limits_for(arena.limits)
        self._house_bots = HouseBots(arena, self._house_bot_failed)
        self._bookings: dict[str, Booking] = {}
        self._leaving: dict[str, Booking] = {}  # people to be told why, and disconnected
        self._share = Share(_SHARE, _SAVED_S)
        self._recent = SizedCache[str, PersonalMatch](
            _ANSWERS, lambda match: max(len(match.record.answers), _LEAST_ANSWERS)
        )
        self._loop = asyncio.get_running_loop()

    # --- requests of viewers ---

    def sit(self, socket: PersonSocket, request: Sit, address: str, viewer: Viewer) -> Seat:
        """Book a seat for a person, who must say `hello` with its name and token within a minute.

        The match begins when all players are connected. Raises Unwelcome if the person needs a
        token or another name, UsageError for an unknown game, bot or setting, or without room.
        """
        # Tables are counted per login, or per browser without one.
        is_public = viewer.kind is ViewerKind.PUBLIC
        person = socket.browser if is_public else f"{viewer.kind} {viewer.name}"
        self._check_room(socket, address, person)
        game = game_named(request.game)
        settings = settings_for(game, request.settings or {})
        name = self._name_for(request.name, viewer, person)
        self._check_opponents(game, request.against)
        opponents = (
            self._house_bots.take(game.name, other.removeprefix(HOUSE))
            if other.startswith(HOUSE)
            else other
            for other in request.against
        )
        booking = Booking(
            socket=socket,
            browser=socket.browser,
            person=person,
            address=address,
            game=game,
            settings=settings,
            names=(name, *opponents),
            token=GUEST + secrets.token_urlsafe(24),
            share=Share(_SHARE_EACH, _SAVED_EACH_S, within=self._share),
        )
        self._admission.expect(name, booking.token)
        self._bookings[name] = booking
        give_up = partial(self._end, booking, f"not all came within {_WAIT_S:.0f} s")
        booking.deadline = self._arena.gateway.timers.after(_WAIT_S, give_up)
        return Seat(booking.token, name)

    def stand(self, socket: PersonSocket) -> None:
        """Give up a person's match; once it has begun, the person loses."""
        booking = self._booking_at(socket)
        if booking is None:
            return
        booking.socket = None
        if booking.table is None:
            self._end(booking, "you stood up")
        else:
            self._dismiss(booking.name, "stood up in the middle of the match")

    def disconnected(self, socket: PersonSocket) -> None:
        """End the booking of a closed socket, unless the person already plays."""
        booking = self._booking_at(socket)
        if booking is not None:
            booking.socket = None
            if not booking.has_come:
                self._end(booking, "you left")

    def seen(self, browser: str) -> None:
        for booking in self._bookings.values():
            if booking.browser == browser and booking.unseen is not None:
                booking.unseen.cancel()
                booking.unseen = None

    def unseen(self, browser: str) -> None:
        """Give up a browser's tables in a minute, as it has closed the page."""
        text = f"nobody has looked at the table for {_UNSEEN_S:.0f} s"
        for booking in self._bookings.values():
            if booking.browser == browser:
                give_up = partial(self._dismiss, booking.name, text)
                booking.unseen = self._arena.gateway.timers.after(_UNSEEN_S, give_up)

    # --- queries ---

    @property
    def tables(self) -> tuple[LiveMatch, ...]:
        tables = (booking.table for booking in self._bookings.values())
        return tuple(table for table in tables if table is not None)

    @property
    def non_competing(self) -> Collection[str]:
        """The names of people and of their house bots, which take part in no competition."""
        return {*self._bookings, *self._leaving, *self._house_bots.by_name}

    def is_non_competing(self, name: str) -> bool:
        return name in self._bookings or name in self._leaving or name in self._house_bots.by_name

    def is_offered(self, player: BotSession, game: str, tables: int = 1) -> bool:
        """Whether people can play `game` against a bot now.

        It plays the game, has `tables` free, may be needed by no competition that is on, and is
        neither a person nor a person's house bot.
        """
        return (
            game in player.games
            and player.has_room(tables)
            and not self.is_non_competing(player.name)
            and not any(_is_needed(player, competition) for competition in self._arena.competitions)
        )

    def record(self, match: str) -> PersonalMatch | None:
        """Return one of the latest matches by its id, or None."""
        return self._recent.get(match)

    # --- events ---

    def changed(self) -> None:
        """Begin the matches that can begin; called when a bot or a person has come or gone."""
        for booking in tuple(self._bookings.values()):
            if booking.table is None:
                self._begin(booking)
        if self._leaving:
            self._loop.call_soon(self._dismiss_leaving)

    def competition_started(self, competition: Competition) -> None:
        """End the matches of bots that must play in a starting competition."""
        for booking in tuple(self._bookings.values()):
            name = next((name for name in booking.names if self._needs(competition, name)), None)
            if name is None:
                continue
            text = f"{name} has to play in a competition"
            if booking.table is None:
                self._end(booking, text)
            else:
                self._arena.referee.void(booking.table, text)

    def close(self) -> None:
        self._house_bots.close()
        for booking in self._bookings.values():
            booking.cancel()

    # --- sitting down ---

    def _check_room(self, socket: PersonSocket, address: str, person: str) -> None:
        bookings = self._bookings.values()
        if self._booking_at(socket) is not None:
            why = "expected to stand up first, you have a seat already"
        elif sum(booking.person == person for booking in bookings) >= _MOST_EACH:
            limit = f"expected at most {_MOST_EACH} tables for one person"
            why = f"{limit}; stand up at one of yours first"
        elif sum(booking.address == address for booking in bookings) >= _MOST_NEAR:
            why = (
                f"expected at most {_MOST_NEAR} tables for people from one address; come back later"
            )
        elif len(bookings) >= _MOST:
            why = f"expected at most {_MOST} tables for people; come back later"
        elif self._share.is_spent(self._loop.time()):
            why = (
                "people who play take all the time that the arena has for them; "
                "try again in a moment"
            )
        else:
            return
        raise UsageError(why)

    def _name_for(self, requested: str, viewer: Viewer, person: str) -> str:
        """Choose a person's name, with a number if it is taken (`Guest 2`); may raise Unwelcome."""
        name = spelled(name_for(requested, viewer), self._leaving)
        if name in self._leaving and self._leaving[name].person == person:
            self._dismiss_one(name)  # the same person plays again
        # Check before adding a number, which would hide whose name it is.
        self._admission.check_owner(name, viewer)
        people = (*self._bookings, *self._leaving)
        name = numbered(name, people, self._arena.here.is_taken)
        self._admission.check_guest(name, viewer)
        return name

    def _check_opponents(self, game: Game, against: Sequence[str]) -> None:
        """Raise `UsageError` unless all opponents can play; called before any is started."""
        others = game.seats - 1
        if len(against) != others:
            raise UsageError(
                f"expected {others} to play against in {game.name}, got {len(against)}"
            )
        for name, tables in Counter(against).items():
            if name.startswith(HOUSE):
                self._check_house_bot(game, name, tables)
                continue
            player = self._players.get(name)
            if player is None or not self.is_offered(player, game.name, tables):
                free = "a free table" if tables == 1 else f"{tables} free tables"
                raise UsageError(
                    f"expected a bot that is connected, plays {game.name}, has {free} "
                    f"and is in no competition, got {name!r}"
                )

    def _check_house_bot(self, game: Game, name: str, tables: int) -> None:
        bot, known = name.removeprefix(HOUSE), self._house_bots.known(game.name)
        if bot not in known:
            names = ", ".join(HOUSE + other for other in known)
            raise UnknownBot(f"no house bot {name!r} for {game.name}; expected one of: {names}")
        if tables > self._house_bots.free(game.name, bot):
            raise UsageError(
                f"expected a bot with a free table, {name} plays at all of its "
                f"{self._house_bots.tables}; choose another, or come back later"
            )

    def _begin(self, booking: Booking) -> None:
        """Start the match if all players are connected; end the booking if one cannot come."""
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
            if player is None and self._house_bots.is_gone(name):
                self._end(booking, f"{name} has left")
                return
            if player is None or not player.has_room(count):
                return
        self._open(booking)

    def _open(self, booking: Booking) -> None:
        if booking.deadline is not None:
            booking.deadline.cancel()
        booking.began = time.time()
        for name in booking.names:
            if name in self._house_bots.by_name:
                self._players[name].share = self._share
        limits = self._arena.limits
        booking.table = self._arena.referee.open(
            booking.game,
            booking.settings,
            [self._players[name] for name in booking.names],
            limits,
            partial(self._over, booking),
            by_seat=(self._limits, *(limits for _ in booking.names[1:])),
        )

    # --- standing up ---

    def _over(
        self, booking: Booking, table: LiveMatch, result: MatchResult, verdict: Verdict | None
    ) -> None:
        """Add a finished match to the recent ones, and free its players."""
        self._recent.put(
            table.id,
            PersonalMatch(
                match=table.id,
                players=booking.names,
                record=result.record,
                verdict=verdict,
                started_at=booking.began,
                finished_at=time.time(),
            ),
        )
        is_void = result.termination.kind is Ending.VOID
        self._end(booking, result.termination.text if is_void else _OVER)
        self._loop.call_soon(self.changed)  # another booking may wait for these bots
        self._arena.here.freed(booking.names)

    def _end(self, booking: Booking, text: str) -> None:
        """End a booking; if the match has not begun, the person's page is told why."""
        if self._bookings.get(booking.name) is not booking:
            return
        del self._bookings[booking.name]
        booking.cancel()
        for name in booking.names[1:]:
            self._house_bots.leave(name)
        if booking.socket is not None and booking.table is None:
            booking.socket.send(encode_to_viewer(Refused("sit", text)))
        booking.ended = text
        self._leaving[booking.name] = booking
        self._loop.call_soon(self._dismiss_leaving)

    def _dismiss_leaving(self) -> None:
        """Dismiss people whose match has ended, except those who may reconnect for the result."""
        for name in tuple(self._leaving):
            player = self._players.get(name)
            if player is None or player.connection is not None:
                self._dismiss_one(name)

    def _dismiss_one(self, name: str) -> None:
        booking = self._leaving.pop(name)
        self._dismiss(name, booking.ended)
        self._admission.forget(name, token=booking.token)

    def _dismiss(self, name: str, text: str) -> None:
        finding = Finding(kind=Ending.DISCONNECT, text=text, mechanism=Mechanism.SESSION)
        self._arena.gateway.dismiss(name, finding)

    def _house_bot_failed(self, name: str, text: str) -> None:
        for booking in tuple(self._bookings.values()):
            if name in booking.names and booking.table is None:
                self._end(booking, f"{name} cannot be started: {text}")

    # --- internal ---

    def _booking_at(self, socket: PersonSocket) -> Booking | None:
        bookings = self._bookings.values()
        return next((booking for booking in bookings if booking.socket is socket), None)

    def _needs(self, competition: Competition, name: str) -> bool:
        player = self._players.get(name)
        if player is None or self.is_non_competing(name):
            return name in competition.plan.players
        return _is_needed(player, competition)


def _is_needed(player: BotSession, competition: Competition) -> bool:
    """Whether a running competition may open a match of this bot at any time."""
    if competition.plan.form is Form.LADDER:
        is_barred = competition.arbiter.bots.is_barred(player.name)
        return competition.plan.game in player.games and not is_barred
    return competition.is_in(player.name) and not competition.only_waits
