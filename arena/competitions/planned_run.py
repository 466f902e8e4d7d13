"""One `[[run]]` of a file: a competition planned before its bots have come, and its `Plan`.

`PlannedRun` is what is read from the file. A run is checked at that time, as if its bots were
there, so that no mistake shows only when it is due. Nothing here reads a clock or a file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from arena.formats.formats import check_form, fewest
from arena.formats.spec import (
    WAIT_S,
    WITH_MATCHES,
    Form,
    Plan,
    RelaunchSpec,
    Settling,
    Take,
    limits_of,
    plan_of,
)
from arena.formats.timetable import Times
from arena.games.catalogue import competition_settings, game_named
from arena.games.names import owner_of, spelled
from arena.games.rules import Game
from arena.games.settle import Goal
from arena.sandbox.bot_spec import unused
from protocol.errors import UsageError, did_you_mean, one_line
from protocol.messages import Limits
from protocol.strategy import house_bots
from protocol.vocabulary import Settings

__all__ = [
    "LEAST",
    "MOST_MATCHES",
    "PAUSE_S",
    "Participants",
    "PlannedRun",
    "check",
    "house_bots_of",
    "plan_for",
    "teams_of",
]

PAUSE_S = 5.0  # how long a bot on a ladder rests between two matches by default
MOST_MATCHES = 100_000  # of the same bots, in one competition
LEAST = 20
"""How often each two meet at least, or each bot the dealer, if a run settles."""
_MOST = 1_000
"""How often at most: as many matches as it takes to tell 55 of 100 games from 50."""
_LEVEL_POINTS = 2.0
"""The difference that does not matter, in points of 100."""
_LONGEST_TITLE = 64
_MOST_BOTS = 10_000  # that can be connected to one process
_A_DAY_S = 86_400.0
_LIMITS = (
    *("decision_ms", "bank_ms", "hard_ms", "wall_ms", "wall_bank_ms"),
    *("start_ms", "grace_ms", "silence_ms"),
)
"""The limits that a run may set. The others are for connections and processes, which outlive it."""


class Participants(StrEnum):
    """Which bots take part in a run."""

    CONNECTED = "connected"
    ROSTER = "roster"
    NAMED = "named"


class PlannedRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A planned competition, with the fields of its table `[[run]]`.

    Attributes:
        game: the game's full name.
        name: its title, unique in its file; it may have spaces.
        at: when it begins to wait for its bots; None to play it once, as soon as they are there.
        until: when a ladder ends; None if only the instructor ends it.
        players: the names, or `roster`; None for all connected bots.
        take: whether they play by programs that connect, by their submissions, or by either.
        least: how many bots must be there, its house bots included; None for the default of
            `arena/competitions/attendance.py`.
        matches: how often each two meet, or each bot the dealer; multiplied by `split`.
        settle: the goal until which it is played; `matches` is then the least number (K6), `most`
            the greatest, and `level` the difference that does not matter.
        split: into how many matches a match is split (A9).
        with_itself: whether each bot also meets another instance of itself (A10).
        wait_s: how long matches wait for a bot that is away.
        pause_s: on a ladder, how long a bot rests between two matches.
        forgive: in a round robin or a league, how many offences of a bot cost it only the matches
            that they end (J3).
        house: the house bots that are launched for it, each as often as it is listed.
        settings: override `[games.<game>]`.
        limits: override `[limits]`.
    """

    game: str
    name: str
    form: Form
    at: Times | None = None
    until: Times | None = None
    players: tuple[str, ...] | str | None = None
    take: Take = Take.CONNECTED
    least: Annotated[int, Meta(ge=1, le=_MOST_BOTS)] | None = None
    matches: Annotated[int, Meta(ge=1, le=MOST_MATCHES)] = 1
    settle: Goal | None = None
    level: Annotated[float, Meta(ge=0, lt=50)] = _LEVEL_POINTS
    most: Annotated[int, Meta(ge=1, le=MOST_MATCHES)] = _MOST
    split: Annotated[int, Meta(ge=1, le=MOST_MATCHES)] = 1
    with_itself: bool = False
    wait_s: Annotated[float, Meta(ge=0, le=_A_DAY_S)] = WAIT_S
    pause_s: Annotated[float, Meta(ge=0, le=_A_DAY_S)] = PAUSE_S
    forgive: Annotated[int, Meta(ge=0, le=MOST_MATCHES)] = 0
    house: tuple[str, ...] = ()
    settings: Mapping[str, Any] = {}
    limits: Mapping[str, Any] = {}

    @property
    def rules(self) -> Game:
        return game_named(self.game)

    @property
    def who(self) -> Participants:
        if isinstance(self.players, tuple):
            return Participants.NAMED
        return Participants(self.players or Participants.CONNECTED)

    @property
    def named(self) -> tuple[str, ...]:
        """The names of its players, if they are named."""
        return self.players if isinstance(self.players, tuple) else ()

    @property
    def waits_for_named(self) -> bool:
        """Whether named bots take part even if they are away: their matches wait for them."""
        return self.who is Participants.NAMED and self.take is not Take.SUBMITTED

    @property
    def at_least(self) -> int:
        """How many bots must be there; by default as many as the game has seats."""
        return self.rules.seats if self.least is None else self.least

    @property
    def needed(self) -> int:
        """How many bots must be there even if it is started by hand."""
        return min(fewest(self.form), self.at_least)


def plan_for(
    run: PlannedRun,
    limits: Limits,
    games: Mapping[str, Mapping[str, object]],
    players: tuple[str, ...],
    teams: Mapping[str, str] = {},
    **more: Any,
) -> Plan:
    """Make the plan of a run whose bots are known; the arena fills in `seed` and `house`.

    Raises `UsageError` if settings contradict each other or cannot be split, or if the form
    forgives nothing.

    Args:
        limits: those of the file and the options; the run's override them.
        games: the file's settings, by game; the run's override them.
        players: in the order of entry.
        teams: by name; names that do not take part are left out.
        more: further fields of `Plan` that only the start decides.
    """
    if (mistake := next(_rule_mistakes(run), None)) is not None:
        raise UsageError(mistake)
    settings = competition_settings(run.rules, {**games.get(run.game, {}), **run.settings})
    settle: Settling | msgspec.UnsetType = msgspec.UNSET
    if run.settle is not None:
        settle = Settling(goal=run.settle, level=run.level, most=run.most)
    return plan_of(
        run.rules,
        _split(run, settings),
        players,
        run.form,
        matches=run.matches * run.split,
        with_itself=run.with_itself,
        limits=limits_of(run.form, limits, run.limits),
        wait_s=run.wait_s,
        pause_s=run.pause_s if run.form is Form.LADDER else 0.0,
        forgive=run.forgive,
        settle=settle,
        teams=teams_of(players, teams),
        run=run.name,
        take=run.take,
        **more,
    )


def teams_of(players: Iterable[str], teams: Mapping[str, str]) -> dict[str, str]:
    """Return the teams of these players, for those that have one (K2).

    Programs of one owner, `ann/one` and `ann/two`, are in the owner's team. If the owner has none,
    they are a team of their own, `ann/`.
    """
    players = tuple(players)
    owners = Counter(map(owner_of, players))
    own = {owner: f"{owner}/" for owner, count in owners.items() if count > 1}
    teams = own | dict(teams)
    return {name: teams[owner_of(name)] for name in players if owner_of(name) in teams}


def house_bots_of(run: PlannedRun, taken: Collection[str], tables: int) -> tuple[RelaunchSpec, ...]:
    """Return a run's house bots, each for that many tables, with names that are not `taken`."""
    names = set(taken)
    house_bots = []
    for house in run.house:
        name = unused(house, names)
        names.add(name)
        house_bots.append(RelaunchSpec(name=name, house=house, tables=tables))
    return tuple(house_bots)


def check(run: PlannedRun, limits: Limits, games: Mapping[str, Mapping[str, object]]) -> None:
    """Check that a run can be played by the named bots, or by as many as must be there. The text of
    a `UsageError` begins with the wrong field.
    """
    if (mistake := next(_mistakes(run), None)) is not None:
        raise UsageError(mistake)
    players = run.named or tuple(f"bot-{n}" for n in range(1, run.at_least + 1))
    plan_for(run, limits, games, players)


def _mistakes(run: PlannedRun) -> Iterator[str]:
    """Yield the mistakes in a run, each beginning with its field."""
    title = run.name
    has_single_spaces = title == " ".join(title.split())
    if not (0 < len(title) <= _LONGEST_TITLE and title.isprintable() and has_single_spaces):
        yield (
            f"name: expected a title of 1 to {_LONGEST_TITLE} printable letters with single "
            f"spaces, got {one_line(repr(title), 80)}"
        )
    for limit in run.limits:
        if limit not in _LIMITS:
            yield (
                f"limits.{limit}: expected it in [limits], for the whole arena; "
                f"here some of: {', '.join(_LIMITS)}"
            )
    yield from _player_mistakes(run)
    yield from _form_mistakes(run)
    known = house_bots(run.game, slow=True)
    for bot in run.house:
        if bot not in known:
            names = ", ".join(known) or "none is installed"
            meant = did_you_mean(bot, known)
            yield f"house: no house bot {bot!r} for {run.game}; expected some of: {names}{meant}"


def _player_mistakes(run: PlannedRun) -> Iterator[str]:
    names = run.named
    if isinstance(run.players, str) and run.players != Participants.ROSTER:
        got = one_line(repr(run.players), 60)
        yield f"players: expected a list of names or 'roster', got {got}"
    for name in names:
        if not (0 < len(name) <= 64 and name.isprintable() and name == name.strip()):
            yield f"players: expected names of 1 to 64 printable letters, got {name!r}"
    for place, name in enumerate(names):
        other = spelled(name, names[:place])
        if other in names[:place]:
            got = f"{other!r} and {name!r}, which look alike"
            got = f"{name!r} twice" if other == name else got
            yield f"players: expected every bot once, got {got}"
    if run.who is not Participants.NAMED:
        return
    bots = len(names) + len(run.house)
    if run.least is not None and run.least > bots:
        yield f"least: expected at most the {bots} bots of players and house, got {run.least}"
    if bots < run.needed:
        yield f"players: expected at least {run.needed} bots with those of house, got {bots}"


def _form_mistakes(run: PlannedRun) -> Iterator[str]:
    try:
        check_form(run.rules, run.form)
    except UsageError as error:
        yield f"form: {error}"
    form = run.form.value.replace("_", " ")
    is_round_robin = run.form is Form.ROUND_ROBIN
    if run.matches > 1 and run.form not in WITH_MATCHES:
        yield f"matches: expected a round robin or a league, got a form without them: {form}"
    if run.split > 1 and not is_round_robin:
        yield f"split: only for a round robin, the form is {form}"
    if run.with_itself and not is_round_robin:
        yield f"with_itself: only for a round robin, the form is {form}"
    if run.until is not None and run.form is not Form.LADDER:
        yield f"until: expected a ladder, got {form}"
    # At least one bot of the roster, or of the named ones, is there (K5).
    bots = len(run.house) + (run.who is not Participants.CONNECTED)
    if is_round_robin and run.least == 1 and bots < 2 and not run.with_itself:
        yield f"least: expected at least 2 for a {form}, got {run.least}"
    if (matches := run.matches * run.split) > MOST_MATCHES:
        yield f"matches: expected at most {MOST_MATCHES} with those of split, got {matches}"


def _rule_mistakes(run: PlannedRun) -> Iterator[str]:
    """Yield what a form cannot forgive or settle, each mistake beginning with its field."""
    form = run.form.value.replace("_", " ")
    if run.forgive and run.form not in WITH_MATCHES:
        yield f"forgive: expected a round robin or a league, got {form}"
    if run.settle is None:
        return
    if run.form not in WITH_MATCHES:
        yield f"settle: expected a round robin or a league, got {form}"
    if run.settle is Goal.PAIRS and run.form is Form.LEAGUE:
        yield "settle: expected first or order for a league, where nobody meets, got pairs"
    if run.split > 1:
        yield (
            "split: only without settle, which plays as many matches as are needed; "
            "shorten the match by its settings"
        )
    if run.with_itself:
        yield "with_itself: only without settle"
    if run.most < run.matches:
        yield f"most: expected at least the {run.matches} of matches, got {run.most}"
    for name, number in (("matches", run.matches), ("most", run.most)):
        if run.form is Form.ROUND_ROBIN and number % 2:
            yield (
                f"{name}: expected an even number, so that each seat is had equally often, "
                f"got {number}"
            )


def _split(run: PlannedRun, settings: Settings) -> Settings:
    """Return the settings of one of the matches into which a match is split."""
    n, field = run.split, run.rules.splits_by
    if n == 1:
        return settings
    if field is None:
        raise UsageError(
            f"split: expected a game whose matches can be split, got {run.game}; raise `matches`"
        )
    count: int = getattr(settings, field)
    if not count or count % n:
        raise UsageError(f"split: expected a number that divides the {field}, {count}, got {n}")
    changes: dict[str, Any] = {field: count // n}
    return msgspec.structs.replace(settings, **changes)
