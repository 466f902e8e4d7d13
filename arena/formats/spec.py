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
"""How many tables a house bot plays, if the limits allow it: nobody should have to wait for one."""
WAIT_S = 60.0
"""How long a competition waits for a bot that is away by default: for a laptop to reboot."""

_LADDER_GRACE_MS = 10_000  # a match lost on a ladder costs little, and its opponent should not wait


class Form(StrEnum):
    """The forms of competition (rules K)."""

    ROUND_ROBIN = "round_robin"
    ELIMINATION = "elimination"
    LEAGUE = "league"
    LADDER = "ladder"


class Take(StrEnum):
    """By what the bots of a competition play: programs that connect, or submissions."""

    CONNECTED = "connected"
    SUBMITTED = "submitted"
    EITHER = "either"  # connected, if it is here when its competition or, on a ladder, match starts


WITH_MATCHES = (Form.ROUND_ROBIN, Form.LEAGUE)
"""The forms in which those who meet may meet more than once."""


class RelaunchSpec(msgspec.Struct, frozen=True, kw_only=True):
    """How to start a bot of a competition again when the competition is resumed."""

    name: str
    house: str | None = None  # the name of a house bot
    words: tuple[str, ...] = ()  # of any other bot, its program and arguments
    stdio: bool = False  # whether it speaks lines on its pipes
    folder: str | None = None  # what relative paths in its words are relative to
    tables: int = 1  # how many a house bot plays at once


class Settling(msgspec.Struct, frozen=True, kw_only=True):
    """That a competition goes on in blocks until it is settled (K6).

    `Plan.matches` is then the least number of matches of each pairing.
    """

    goal: Goal
    level: float  # the difference that does not matter: points of 100, or per cent of the stake
    most: int  # matches of a pairing, or of a bot in a league


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be played."""

    game: str
    form: Form
    settings: dict[str, Any]  # of every match, defaults included
    players: tuple[str, ...]  # in the order of entry; of a ladder those who were there at first
    matches: int = 1  # how often each two meet, or each bot the dealer
    with_itself: bool = False  # each bot with two tables also meets itself (A10)
    limits: Limits = Limits()
    wait_s: float = WAIT_S  # for a bot that is away
    pause_s: float = 0.0  # of a bot between two matches, on a ladder
    forgive: int = 0  # how many events of a bot cost it only the matches that they end (J3)
    teams: dict[str, str] = {}  # the team of each player that has one
    house: tuple[str, ...] = ()  # names of the house bots in a final's free seats
    seed: str = ""  # in hex, of an elimination (K2); its hash is told at the start
    run: str = ""  # the name of its `[[run]]`
    due_at: float | None = None  # when that was to start, in Unix seconds
    bots: tuple[RelaunchSpec, ...] = ()  # those of its bots that the arena launches
    not_there: tuple[str, ...] = ()  # of the roster, but had not come: no part and no rank (K5)
    # Of a game that is not ours, the package and its version when it was made.
    package: str | msgspec.UnsetType = msgspec.UNSET
    settle: Settling | msgspec.UnsetType = msgspec.UNSET  # unset: every pairing the same number
    take: Take = Take.CONNECTED
    # By player, the number of the submission that plays as it to the end; not of those that are
    # connected, and not on a ladder, which follows what is in play.
    versions: dict[str, int] = {}
    is_alike: bool = False  # only in plans of before: matches of a pairing on machines of one speed

    @property
    def rules(self) -> Game:
        """The game; raises `NotInstalled` if its package is missing."""
        return game_named(self.game, self.package)

    @property
    def missing(self) -> str | None:
        """Why there are no rules for it here; None if there are."""
        try:
            game_named(self.game, self.package)
        except ArenaError as error:
            return str(error)
        return None

    def read_settings(self) -> Settings:
        return self.rules.vocabulary.read_settings(self.settings)


def form_of(game: Game) -> Form:
    """The form in which a game is played by default: by its number of seats."""
    return {1: Form.LEAGUE, 2: Form.ROUND_ROBIN}.get(game.seats, Form.ELIMINATION)


def limits_of(form: Form, limits: Limits, own: Mapping[str, int] = {}) -> Limits:
    """The arena's limits with a competition's `own`; a ladder's `grace_ms` is at most 10 s else."""
    bounds: dict[str, Any] = msgspec.structs.asdict(limits)
    if form is Form.LADDER:
        bounds["grace_ms"] = min(limits.grace_ms, _LADDER_GRACE_MS)
    return Limits(**{**bounds, **own})


def plan_of(
    game: Game, settings: Settings, players: tuple[str, ...], form: Form | None = None, **rest: Any
) -> Plan:
    """A plan from the rules' own objects; `rest` are further fields of `Plan`.

    Raises UsageError for `matches` with a form that has no number of them.
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
