"""Decides who may play in a competition: connected bots, submissions in play, and bots on hosts.

These are queries, which change nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from arena.competitions.ledger import Ledger
from arena.competitions.listener import Listener
from arena.competitions.seating import Seating
from arena.formats.spec import Form, Take
from arena.games.names import CONNECTED, owner_of
from arena.games.verdict import Finding
from arena.referee.bot_session import BotSession
from arena.referee.sessions import BotSessions
from arena.submissions.service import SubmissionService

__all__ = ["CompetingBots"]


class CompetingBots:
    """The bots that may play in one competition, and how many matches at once.

    Without `submitted` no submissions are taken. `findings` are offences between matches, by bot.

    Attributes:
        guests: house bots that were started to play in it.
    """

    def __init__(
        self,
        ledger: Ledger,
        players: BotSessions,
        listener: Listener,
        seating: Seating,
        submitted: SubmissionService | None,
        findings: Mapping[str, Finding],
        wall: Callable[[], float],
    ) -> None:
        self.guests: set[str] = set()
        self._plan = ledger.plan
        self._ledger = ledger
        self._players = players
        self._listener = listener
        self._seating = seating
        self._submitted = submitted
        self._findings = findings
        self._wall = wall
        self._on_hosts: int | None = None  # how many bots hosts can start; None if not counted yet

    @property
    def temporary_house_bots(self) -> tuple[str, ...]:
        """House bots that are here for this competition only, some for free seats of a final."""
        return (*self._plan.house, *self.guests)

    def submission(self, name: str) -> int | None:
        """Return the submission that plays as a bot in its next match; None if none does.

        On a ladder that takes either, a submission does not play while a bot of its owner is here
        or may come back.
        """
        plan = self._plan
        if plan.form is not Form.LADDER:
            return plan.versions.get(name)
        if self._submitted is None or plan.take is Take.CONNECTED or name in self._own_bots:
            return None
        if plan.take is Take.EITHER and self._players.has_owner(plan.game, name):
            return None
        return self._submitted.in_play(plan.game).get(name)

    def climbing_submissions(self) -> Sequence[str]:
        """Return the bots that currently play on a ladder by their submissions."""
        if self._submitted is None or self._plan.take is Take.CONNECTED:
            return ()
        owners = self._submitted.in_play(self._plan.game)
        return [name for name in owners if self.submission(name) is not None]

    @property
    def launched_at_once(self) -> int:
        """How many matches a bot has open at once if it needs no table here for them.

        All bots together then have as many open as are played at once, so that a free place never
        waits for a match. A bot that meets itself needs two.
        """
        plan, at_once = self._plan, self._seating.at_once
        is_ladder = plan.form is Form.LADDER
        bots = len(self.climbing_submissions() if is_ladder else plan.versions)
        if self.has_hosts:
            if self._on_hosts is None:
                here = [bot.name for bot in self.plays()] if is_ladder else plan.players
                self._on_hosts = sum(map(self.is_on_hosts, here))
            bots += self._on_hosts
        each = math.ceil(at_once * self._plan.rules.seats / max(1, bots))
        return max(2 if plan.with_itself else 1, min(each, at_once))

    @property
    def restless(self) -> Collection[str]:
        """Submitted bots that compute out of turn.

        Each plays one match at a time, as they are slow and others would wait for their places.
        """
        return () if self._plan.with_itself else self._seating.restless

    @property
    def has_hosts(self) -> bool:
        """Whether there are hosts that can run bots."""
        hosts = self._seating.hosts
        return hosts is not None and hosts.at_once > 0

    def is_on_hosts(self, name: str) -> bool:
        """Return whether hosts can start a bot that was launched here, and is well."""
        return self.has_hosts and name not in self._findings and self.is_portable(name)

    def are_on_hosts(self, names: Iterable[str]) -> bool:
        """Return whether hosts can start all bots of a match, so that it needs no table here."""
        return self.has_hosts and all(
            self.submission(name) is not None or self.is_on_hosts(name) for name in names
        )

    def is_portable(self, name: str) -> bool:
        """Return whether a bot was launched here and can be started on hosts, if there are any."""
        player, hosts = self.player(name), self._seating.hosts
        is_ours = player is not None and player.process is not None
        return is_ours and hosts is not None and hosts.is_portable(name, self._plan.game)

    def room_changed(self) -> None:
        """Note that bots or hosts have come or gone."""
        self._on_hosts = None

    def player(self, name: str) -> BotSession | None:
        """Return the bot of that name if it can be given new matches here; None if its submission
        plays instead.
        """
        if self.submission(name) is not None:
            return None
        player = self._players.get(name)
        if player is None or player.leaving or self._plan.game not in player.games:
            return None
        return None if self._listener.is_non_competing(name) else player

    def plays(self) -> list[BotSession]:
        """Return all connected bots on a ladder, without people and others' house bots."""
        others = self._listener.house_bots_elsewhere(self.temporary_house_bots)
        players = self._players.of_game(self._plan.game)
        return [
            bot
            for bot in players
            if not bot.leaving and bot.name not in others and self._may_climb(bot.name)
        ]

    def climbs(self, name: str) -> bool:
        """Return whether a bot is among those of `plays`, or plays by a submission."""
        if self.submission(name) is not None:
            return True
        if not self._may_climb(name):
            return False
        others = self._listener.house_bots_elsewhere(self.temporary_house_bots)
        return self.player(name) is not None and name not in others

    def is_out(self, *names: str) -> bool:
        """Return whether one of them has been eliminated (J3)."""
        return not self._ledger.book.out.keys().isdisjoint(names)

    def is_barred(self, name: str) -> bool:
        """Return whether a bot or its owner has been eliminated."""
        return self.is_out(name, owner_of(name))

    def rests_s(self, owner: str) -> float:
        """Return for how many seconds an owner's bots still rest after its offences (J3)."""
        return self._ledger.book.pauses.left_s(owner, self._wall())

    def versions(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return which version of its bot plays in each seat; empty without submissions."""
        if self._submitted is None or self._plan.take is Take.CONNECTED:
            return ()
        versions = []
        for name in names:
            if (number := self.submission(name)) is not None:
                versions.append(self._submitted.label(number))
            else:
                player = self._players.get(name)
                is_ours = name in self._own_bots or (player is not None and bool(player.process))
                versions.append("" if is_ours else CONNECTED)
        return tuple(versions)

    @property
    def _own_bots(self) -> Iterable[str]:
        """The names of the bots that are launched for this competition."""
        return (*(bot.name for bot in self._plan.bots), *self._plan.house)

    def _may_climb(self, name: str) -> bool:
        """Return whether a connected bot may play on a ladder, which may take submissions only."""
        return self._plan.take is not Take.SUBMITTED or name in self._own_bots
