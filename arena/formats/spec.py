"""What a competition is: everything needed to play it, to resume it after a crash, and to audit it.

A plan is stored when its competition starts and never changes; the results are in the matches.
Nothing here draws random numbers or reads a clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from arena.games.catalogue import game_named
from arena.games.rules import Game
from arena.games.settle import Goal
from protocol.errors import ArenaError, UsageError
from protocol.messages import Limits
from protocol.vocabulary import Settings

__all__ = [
    "HOUSE_TABLES",
    "WAIT_S",
    "WITH_MATCHES",
    "Form",
    "Plan",
    "RelaunchSpec",
    "Settling",
    "Take",
    "form_of",
    "limits_of",
    "plan_of",
]

HOUSE_TABLES = 64
"""How many tables a house bot plays, if the limits allow: nobody should have to wait for it."""
WAIT_S = 60.0
"""How long a competition waits for an absent bot by default: enough for a laptop to reboot."""

_LADDER_GRACE_MS = 10_000  # a match lost on a ladder costs little, and its opponent should not wait


class Form(StrEnum):
    """The forms of competition (rules K)."""

    ROUND_ROBIN = "round_robin"
    ELIMINATION = "elimination"
    LEAGUE = "league"
    LADDER = "ladder"


class Take(StrEnum):
    """How the bots of a competition play: by programs that connect, or by submissions."""

    CONNECTED = "connected"
    SUBMITTED = "submitted"
    EITHER = "either"  # a connected program, if here when the competition (a ladder's match) starts


WITH_MATCHES = (Form.ROUND_ROBIN, Form.LEAGUE)
"""The forms in which the same opponents may meet more than once."""


class RelaunchSpec(msgspec.Struct, frozen=True, kw_only=True):
    """How to start a bot of a competition again when the competition is resumed."""

    name: str
    house: str | None = None  # the name of a house bot
    words: tuple[str, ...] = ()  # program and arguments of any other bot
    stdio: bool = False  # whether it speaks the protocol in lines on its pipes
    folder: str | None = None  # where relative paths in its words start
    tables: int = 1  # how many a house bot plays at once


class Settling(msgspec.Struct, frozen=True, kw_only=True):
    """Makes a competition go on in blocks until it is settled (K6).

    `Plan.matches` is then the least number of matches of each pairing.
    """

    goal: Goal
    level: float  # the difference that does not matter: points of 100, or per cent of the stake
    most: int  # of a pairing, or of a bot in a league


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A competition: what is to be played, and by whom."""

    game: str
    form: Form
    settings: dict[str, Any]  # of every match, defaults included
    players: tuple[str, ...]  # in the order of entry; on a ladder, those there at the start
    matches: int = 1  # how often each pair meets, or each bot plays the dealer
    with_itself: bool = False  # each bot with two tables also meets itself (A10)
    limits: Limits = Limits()
    wait_s: float = WAIT_S  # for an absent bot
    pause_s: float = 0.0  # of a bot between two matches, on a ladder
    forgive: int = 0  # how many events of a bot cost it only the matches that they end (J3)
    teams: dict[str, str] = {}  # the team of each player that has one
    house: tuple[str, ...] = ()  # names of the house bots in a final's free seats
    seed: str = ""  # in hex, of an elimination (K2); its hash is published at the start
    run: str = ""  # the name of its `[[run]]`
    due_at: float | None = None  # when the run was due, in Unix seconds
    bots: tuple[RelaunchSpec, ...] = ()  # the bots that the arena launches
    not_there: tuple[str, ...] = ()  # on the roster, but absent: no part and no rank (K5)
    # Of a game from outside, the package and its version when the plan was made.
    package: str | msgspec.UnsetType = msgspec.UNSET
    settle: Settling | msgspec.UnsetType = msgspec.UNSET  # unset: as many for every pairing
    take: Take = Take.CONNECTED
    # By player, the number of the submission that plays for it to the end; not for connected
    # players, and not on a ladder, which follows the active version.
    versions: dict[str, int] = {}
    is_alike: bool = False  # only in old plans: matches of a pairing on machines of one speed

    @property
    def rules(self) -> Game:
        """The game; raises `NotInstalled` if its package is missing."""
        return game_named(self.game, self.package)

    @property
    def missing(self) -> str | None:
        """Why the rules of its game are missing here; None if they are not."""
        try:
            game_named(self.game, self.package)
        except ArenaError as error:
            return str(error)
        return None

    def read_settings(self) -> Settings:
        return self.rules.vocabulary.read_settings(self.settings)


def form_of(game: Game) -> Form:
    """The default form of a game, by its number of seats."""
    return {1: Form.LEAGUE, 2: Form.ROUND_ROBIN}.get(game.seats, Form.ELIMINATION)


def limits_of(form: Form, limits: Limits, own: Mapping[str, int] = {}) -> Limits:
    """The arena's limits with a competition's `own`; `grace_ms` is at most 10 s on a ladder."""
    bounds: dict[str, Any] = msgspec.structs.asdict(limits)
    if form is Form.LADDER:
        bounds["grace_ms"] = min(limits.grace_ms, _LADDER_GRACE_MS)
    return Limits(**{**bounds, **own})


def plan_of(
    game: Game, settings: Settings, players: tuple[str, ...], form: Form | None = None, **rest: Any
) -> Plan:
    """Make a plan from the rules' own objects; `rest` are further fields of `Plan`.

    Raises UsageError for `matches` with a form that has no number of matches.
    """
    form = form or form_of(game)
    matches = rest.get("matches", 1)
    if matches != 1 and form not in WITH_MATCHES:
        word = form.value.replace("_", " ")
        raise UsageError(
            "expected matches with a round robin or a league only, "
            f"got {matches} for {game.name}: {word}"
        )
    if game.package is not None:
        rest["package"] = str(game.package)
    return Plan(
        game=game.name, form=form, settings=msgspec.to_builtins(settings), players=players, **rest
    )
