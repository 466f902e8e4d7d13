"""What a competition is: everything that must be known to play it, to go on with it after a power cut, and to check it.

A plan is written down when its competition starts and never changes; what came of it is in the matches. Nothing here draws a
number or reads a clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from arena.engine.rules import Game
from arena.games import game_named
from protocol.errors import UsageError
from protocol.messages import Limits
from protocol.vocabulary import Settings

__all__ = [
    "HOUSE_TABLES",
    "WAIT_S",
    "WITH_MATCHES",
    "Form",
    "Plan",
    "RelaunchSpec",
    "form_of",
    "limits_of",
    "plan_of",
]

HOUSE_TABLES = 64
"""At how many tables a house bot plays, if the limits allow it: it is quick, and nobody should have to wait for it."""
WAIT_S = 60.0
"""How long a competition waits for a bot that is away, if nobody says otherwise: for a laptop that starts again."""

_LADDER_GRACE_MS = 10_000
"""A ladder has no end: a match that is lost there costs little, and its opponent should not wait for long."""


class Form(StrEnum):
    """The forms of competition (rules K)."""

    ROUND_ROBIN = "round_robin"
    ELIMINATION = "elimination"
    LEAGUE = "league"
    LADDER = "ladder"


WITH_MATCHES = (Form.ROUND_ROBIN, Form.LEAGUE)
"""The forms in which those who meet may meet more than once."""


class RelaunchSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A bot that the arena launches, as it is written down: to start it again when its competition goes on.

    Attributes:
        name: what it is called.
        house: of one of ours its name among the house bots, else None.
        words: of any other its program and arguments.
        stdio: whether it speaks lines on its pipes.
        folder: where relative paths in its words are from, or None.
        tables: at how many one of ours plays at once.
    """

    name: str
    house: str | None = None
    words: tuple[str, ...] = ()
    stdio: bool = False
    folder: str | None = None
    tables: int = 1


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be played.

    Attributes:
        game: its name.
        form: round robin, elimination, league or ladder.
        settings: of every match, defaults included.
        players: the bots' names in the order of entry; of a ladder those who were there when it began.
        matches: how often each two meet, or each bot the dealer.
        with_itself: whether each bot also meets another instance of itself (A10), if it has two tables.
        limits: of time and space.
        wait_s: how long a bot that is away is waited for.
        pause_s: on a ladder, how long a bot rests between two matches.
        forgive: how many events of a bot cost it only the matches that they end (J3).
        teams: the team of each player that has one.
        house: names for the house bots in a final's free chairs.
        seed: in hex, what an elimination's tables are drawn from (K2); its hash is told when the competition starts.
        run: the name of its `[[run]]`, or empty.
        due_at: when that was to start, in Unix seconds.
        bots: those of its bots that the arena launches.
        not_there: those of the roster who had not come when it started: they do not take part, and have no rank (K5).
    """

    game: str
    form: Form
    settings: dict[str, Any]
    players: tuple[str, ...]
    matches: int = 1
    with_itself: bool = False
    limits: Limits = Limits()
    wait_s: float = WAIT_S
    pause_s: float = 0.0
    forgive: int = 0
    teams: dict[str, str] = {}
    house: tuple[str, ...] = ()
    seed: str = ""
    run: str = ""
    due_at: float | None = None
    bots: tuple[RelaunchSpec, ...] = ()
    not_there: tuple[str, ...] = ()

    @property
    def rules(self) -> Game:
        """The game itself."""
        return game_named(self.game)

    def read_settings(self) -> Settings:
        """The settings, as the rules take them."""
        return self.rules.vocabulary.read_settings(self.settings)


def form_of(game: Game) -> Form:
    """The form in which a game is played if nobody says otherwise: by its number of seats."""
    return {1: Form.LEAGUE, 2: Form.ROUND_ROBIN}.get(game.seats, Form.ELIMINATION)


def limits_of(form: Form, limits: Limits, own: Mapping[str, int] = {}) -> Limits:
    """The limits of a competition.

    Args:
        form: of a ladder `grace_ms` is at most 10 s, unless it has one of its own.
        limits: the arena's.
        own: those that it has of its own, by field.
    """
    bounds: dict[str, Any] = msgspec.structs.asdict(limits)
    if form is Form.LADDER:
        bounds["grace_ms"] = min(limits.grace_ms, _LADDER_GRACE_MS)
    return Limits(**{**bounds, **own})


def plan_of(
    game: Game, settings: Settings, players: tuple[str, ...], form: Form | None = None, **rest: Any
) -> Plan:
    """A plan from the rules' own objects; `rest` are further fields of `Plan`.

    Raises:
        UsageError: `matches` with a form that has no number of them.
    """
    form = form or form_of(game)
    matches = rest.get("matches", 1)
    if matches != 1 and form not in WITH_MATCHES:
        word = form.value.replace("_", " ")
        raise UsageError(
            f"expected matches with a round robin or a league only, got {matches} for {game.name}: {word}"
        )
    return Plan(
        game=game.name, form=form, settings=msgspec.to_builtins(settings), players=players, **rest
    )
