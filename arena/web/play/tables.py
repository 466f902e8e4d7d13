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
from typing import TYPE_CHECKING, Protocol

from arena.engine.match import MatchResult
from arena.engine.names import alike, spelled
from arena.engine.rules import Game
from arena.engine.verdict import Finding
from arena.formats.spec import Form
from arena.games import game_named
from arena.records.visibility import Kind, Viewer
from arena.referee.bot_session import Player
from arena.referee.budget import Share
from arena.referee.live_match import Table
from arena.referee.timers import Timer
from arena.server.admission import GUEST, Unwelcome
from arena.web.play.house_bots import Servants
from arena.web.play.human_limits import limits_for, settings_for
from arena.web.play.recent import Kept, SatDown
from protocol.errors import UnknownBot, UsageError
from protocol.messages import Ending, Mechanism, Refused, Verdict
from protocol.vocabulary import Settings
from protocol.watching import Seat, Sit, encode_to_viewer

if TYPE_CHECKING:
    from arena.competitions.arena_host import Host
    from arena.competitions.competition import Competition

__all__ = ["Guest", "Parlour"]

_HOUSE = "house:"
_MOST = 256  # tables, those included that are laid
_MOST_NEAR = 64  # of one address: a class may sit behind it
_MOST_EACH = 4  # of one person
_WAIT_S = 60.0  # for everybody to come
_UNSEEN_S = 60.0  # until a table is given back that nobody looks at: a page that is loaded again is there within a second
_SHARE, _SAVED_S = 0.1, 0.25  # of the arena's time, for all who play here
_SHARE_EACH, _SAVED_EACH_S = 0.02, 0.05
"""A person takes a hundredth of that, but a program may pass for one: it is served more slowly, and the rest have theirs."""
_NAME_LETTERS = 64
_OVER = "the match is over"


class Guest(Protocol):
    """The socket at which a person asks for a chair.

    Attributes:
        browser: the same for all sockets of one browser.
    """

    browser: str

    def send(self, data: bytes) -> None:
        """Send one text frame."""


class _Sitting:
    """A person's chair and table, from the asking to the end of the match."""

    def __init__(
        self,
        guest: Guest,
        person: str,
        address: str,
        game: Game,
        settings: Settings,
        names: tuple[str, ...],
        token: str,
        share: Share,
    ) -> None:
        self.guest: Guest | None = guest
        self.browser = guest.browser
        self.person = person
        self.address = address
        self.game = game
        self.settings = settings
        self.names = names
        self.token = token
        self.share = share
        self.has_come = False
        self.table: Table | None = None
        self.began = 0.0
        self.deadline: Timer | None = None
        self.unseen: Timer | None = None  # while nobody looks at it

    @property
    def name(self) -> str:
        """What the person is called."""
        return self.names[0]

    def cancel(self) -> None:
        """Wait for nobody any more."""
        for timer in (self.deadline, self.unseen):
            if timer is not None:
                timer.cancel()


class Parlour:
    """The people who play in an arena.

    Args:
        host: the arena.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._players = host.gateway.players
        self._admission = host.gateway.admission
        self._limits = limits_for(host.limits)
        self._servants = Servants(host, self._failed)
        self._sittings: dict[str, _Sitting] = {}
        # Who has to go: why, its token, and the person.
        self._parting: dict[str, tuple[str, str, str]] = {}
        self._share = Share(_SHARE, _SAVED_S)
        self._kept = Kept()
        self._loop = asyncio.get_running_loop()

    # --- what viewers want ---

    def sit(self, guest: Guest, wanted: Sit, address: str, viewer: Viewer) -> Seat:
        """Keep a chair for a person, who says `hello` with its name and token within a minute; the match begins when all are there.

        Args:
            guest: the socket that it asks at.
            wanted: what and against whom.
            address: where it comes from.
            viewer: who it is, by its token.

        Raises:
            Unwelcome: it needs a token, or another name.
            UsageError: there is no such game, bot or setting, or no room.
        """
        person = _person(guest, viewer)
        self._check_room(guest, address, person)
        game = game_named(wanted.game)
        settings = settings_for(game, wanted.settings or {})
        name = self._called(wanted.name, viewer, person)
        self._check_opponents(game, wanted.against)
        against = (self._opponent(game, one) for one in wanted.against)
        token = GUEST + secrets.token_urlsafe(24)
        share = Share(_SHARE_EACH, _SAVED_EACH_S, within=self._share)
        names = (name, *against)
        sitting = _Sitting(guest, person, address, game, settings, names, token, share)
        self._admission.expect(name, token)
        self._sittings[name] = sitting
        why = f"not all came within {_WAIT_S:.0f} s"
        sitting.deadline = self._host.gateway.timers.after(
            _WAIT_S, partial(self._end, sitting, why)
        )
        return Seat(token, name)

    def stand(self, guest: Guest) -> None:
        """A person gives its match up; if it has begun the others have won."""
        sitting = self._of(guest)
        if sitting is None:
            return
        sitting.guest = None
        if sitting.table is None:
            self._end(sitting, "you stood up")
        else:
            self._dismiss(sitting.name, "stood up in the middle of the match")

    def left(self, guest: Guest) -> None:
        """The socket is gone; whoever plays by now goes on without it."""
        sitting = self._of(guest)
        if sitting is not None:
            sitting.guest = None
            if not sitting.has_come:
                self._end(sitting, "you left")

    def seen(self, browser: str) -> None:
        """Somebody looks at the page in a browser."""
        for sitting in self._sittings.values():
            if sitting.browser == browser and sitting.unseen is not None:
                sitting.unseen.cancel()
                sitting.unseen = None

    def unseen(self, browser: str) -> None:
        """Nobody does any more: its tables are given back, unless somebody comes back soon."""
        for sitting in self._sittings.values():
            if sitting.browser == browser:
                sitting.unseen = self._host.gateway.timers.after(
                    _UNSEEN_S, partial(self._give_back, sitting)
                )

    # --- what others ask ---

    @property
    def tables(self) -> tuple[Table, ...]:
        """The matches that are being played."""
        found = (one.table for one in self._sittings.values())
        return tuple(table for table in found if table is not None)

    @property
    def aside(self) -> Collection[str]:
        """The names of people, and of the house bots that are here for them: no competition takes these."""
        return {*self._sittings, *self._parting, *self._servants.names}

    def is_aside(self, name: str) -> bool:
        """Whether no competition takes who is called so."""
        return (
            name in self._sittings
            or name in self._parting
            or name in self._servants.names
        )

    def is_offered(self, player: Player, game: str, tables: int = 1) -> bool:
        """Whether people can play against a bot now: it has time for them, and no competition needs it."""
        return (
            not player.is_away
            and not player.leaving
            and game in player.games
            and player.tables - len(player.chairs) >= tables
            and not self.is_aside(player.name)
            and not any(_needs(one, player) for one in self._host.competitions)
        )

    def record(self, match: str) -> SatDown | None:
        """A match that was played here lately."""
        return self._kept.get(match)

    # --- what happens ---

    def changed(self) -> None:
        """A bot or a person has come or gone."""
        for sitting in tuple(self._sittings.values()):
            if sitting.table is None:
                self._begin(sitting)
        if self._parting:
            self._loop.call_soon(self._part)

    def needed(self, competition: Competition) -> None:
        """A competition begins: who has to play in it does not play here."""
        for sitting in tuple(self._sittings.values()):
            name = next((n for n in sitting.names if self._has(competition, n)), None)
            if name is None:
                continue
            text = f"{name} has to play in a competition"
            if sitting.table is None:
                self._end(sitting, text)
            else:
                self._host.conduct.void(sitting.table, text)

    def close(self) -> None:
        """The arena closes."""
        self._servants.close()
        for sitting in self._sittings.values():
            sitting.cancel()

    # --- to sit down ---

    def _check_room(self, guest: Guest, address: str, person: str) -> None:
        if self._of(guest) is not None:
            raise UsageError("expected to stand up first, you have a chair already")
        sittings = self._sittings.values()
        if sum(one.person == person for one in sittings) >= _MOST_EACH:
            raise UsageError(
                f"expected at most {_MOST_EACH} tables for one person; stand up at one of yours first"
            )
        if sum(one.address == address for one in sittings) >= _MOST_NEAR:
            raise UsageError(
                f"expected at most {_MOST_NEAR} tables for people from one address; come back later"
            )
        if len(sittings) >= _MOST:
            raise UsageError(
                f"expected at most {_MOST} tables for people; come back later"
            )
        if self._share.is_spent(self._loop.time()):
            raise UsageError(
                "people who play take all the time that the arena has for them; try again in a moment"
            )

    def _called(self, said: str, viewer: Viewer, person: str) -> str:
        """What a person is called: one on the roster by a name below its own, which no bot of its needs.

        If somebody is called so already it gets a number: the second `Guest` is `Guest 2`.

        Raises:
            Unwelcome: it cannot be called so.
        """
        name = said
        if viewer.kind is Kind.OWNER:
            first, slash, below = said.partition("/")
            is_own = alike(first) == alike(viewer.name)
            rest = (below if slash else "person") if is_own else said
            name = f"{viewer.name}/{rest}"
        if len(name) > _NAME_LETTERS or name.endswith("/"):
            raise Unwelcome("name", f"expected a shorter name below {viewer.name}/")
        if alike(name).startswith(_HOUSE):
            text = f"expected a name that no house bot has, got {name!r}"
            raise Unwelcome("name", text)
        name = spelled(name, self._parting)
        if name in self._parting and self._parting[name][2] == person:
            self._part_with(name)  # the same once more, whose last match has ended
        self._admission.check_owner(
            name, viewer
        )  # or its number would hide whose it is
        name = self._numbered(name)
        self._admission.check_guest(name, viewer)
        return name

    def _numbered(self, name: str) -> str:
        """The name, or the first of `name 2`, `name 3` and so on that nobody has, nor one that looks like it."""
        people = set(map(alike, (*self._sittings, *self._parting)))
        found, number = name, 1
        while alike(found) in people or self._host.presence.is_taken(found):
            number += 1
            end = f" {number}"
            found = name[: _NAME_LETTERS - len(end)].rstrip() + end
        return found

    def _check_opponents(self, game: Game, against: Sequence[str]) -> None:
        """See that all of them can play; nothing is started before."""
        others = game.seats - 1
        if len(against) != others:
            raise UsageError(
                f"expected {others} to play against in {game.name}, got {len(against)}"
            )
        for one, tables in Counter(against).items():
            if one.startswith(_HOUSE):
                bot, known = one.removeprefix(_HOUSE), self._servants.known(game.name)
                if bot not in known:
                    raise UnknownBot(
                        f"no house bot {one!r} for {game.name}; expected one of: {', '.join(_HOUSE + other for other in known)}"
                    )
                if tables > self._servants.free(game.name, bot):
                    raise UsageError(
                        f"expected a bot with a free table, {one} plays at all of its {self._servants.tables}; choose another, or come back later"
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
        if not one.startswith(_HOUSE):
            return one
        return self._servants.take(game.name, one.removeprefix(_HOUSE))

    def _begin(self, sitting: _Sitting) -> None:
        """Open the match if everybody is there, or see that it never will be."""
        person = self._players.get(sitting.name)
        if person is None or person.token != sitting.token:
            if sitting.has_come:
                self._end(sitting, "you left")
            return
        sitting.has_come = True
        person.share = sitting.share
        if sitting.game.name not in person.games:
            self._end(sitting, f"expected hello with the game {sitting.game.name}")
            return
        for name, count in Counter(sitting.names).items():
            player = self._players.get(name)
            if player is None and not self._is_coming(name):
                self._end(sitting, f"{name} has left")
                return
            if player is None or not _has_time(player, count):
                return
        self._open(sitting)

    def _is_coming(self, name: str) -> bool:
        """Whether somebody who is not here is a house bot that will be."""
        return name in self._servants.names and not self._servants.is_gone(name)

    def _open(self, sitting: _Sitting) -> None:
        if sitting.deadline is not None:
            sitting.deadline.cancel()
        sitting.began = time.time()
        for name in sitting.names:
            if name in self._servants.names:
                self._players[name].share = self._share
        limits = self._host.limits
        sitting.table = self._host.conduct.open(
            sitting.game,
            sitting.settings,
            [self._players[name] for name in sitting.names],
            limits,
            partial(self._over, sitting),
            by_seat=(self._limits, *(limits for _ in sitting.names[1:])),
        )

    # --- to stand up ---

    def _over(
        self,
        sitting: _Sitting,
        table: Table,
        result: MatchResult,
        verdict: Verdict | None,
    ) -> None:
        """A match has ended, in whatever way."""
        self._kept.add(
            SatDown(
                match=table.id,
                players=sitting.names,
                record=result.record,
                verdict=verdict,
                started_at=sitting.began,
                finished_at=time.time(),
            )
        )
        is_void = result.termination.kind is Ending.VOID
        self._end(sitting, result.termination.text if is_void else _OVER)
        self._loop.call_soon(self.changed)  # somebody may wait for these bots
        self._host.freed(sitting.names)

    def _end(self, sitting: _Sitting, text: str) -> None:
        """Clear a table away; whoever sat there is told why if it has not seen it happen."""
        if self._sittings.get(sitting.name) is not sitting:
            return
        del self._sittings[sitting.name]
        sitting.cancel()
        for name in sitting.names[1:]:
            self._servants.leave(name)
        if sitting.guest is not None and sitting.table is None:
            sitting.guest.send(encode_to_viewer(Refused("sit", text)))
        self._parting[sitting.name] = text, sitting.token, sitting.person
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
        finding = Finding(
            kind=Ending.DISCONNECT, text=text, mechanism=Mechanism.SESSION
        )
        self._host.gateway.dismissals.dismiss(name, finding)

    def _give_back(self, sitting: _Sitting) -> None:
        """Nobody has looked at a table for so long: others may have it."""
        text = f"nobody has looked at the table for {_UNSEEN_S:.0f} s"
        self._dismiss(sitting.name, text)

    def _failed(self, name: str, text: str) -> None:
        """A house bot cannot be started."""
        for sitting in tuple(self._sittings.values()):
            if name in sitting.names and sitting.table is None:
                self._end(sitting, f"{name} cannot be started: {text}")

    # --- within ---

    def _of(self, guest: Guest) -> _Sitting | None:
        found = (one for one in self._sittings.values() if one.guest is guest)
        return next(found, None)

    def _has(self, competition: Competition, name: str) -> bool:
        player = self._players.get(name)
        if player is None or self.is_aside(name):
            return name in competition.plan.players
        return _needs(competition, player)


def _person(guest: Guest, viewer: Viewer) -> str:
    """Whose tables are counted together: those of a login, or without one of a browser."""
    if viewer.kind is Kind.PUBLIC:
        return guest.browser
    return f"{viewer.kind} {viewer.name}"


def _needs(competition: Competition, player: Player) -> bool:
    """Whether a competition that is on may deal to a bot at any time."""
    if competition.plan.form is Form.LADDER:
        is_barred = competition.arbiter.is_barred(player.name)
        return competition.plan.game in player.games and not is_barred
    return competition.is_in(player.name)


def _has_time(player: Player, tables: int) -> bool:
    """Whether it is here, and can be dealt to at so many chairs more."""
    free = player.tables - len(player.chairs)
    return not (player.is_away or player.leaving) and free >= tables
