"""One `[[run]]` of a file: a competition that is planned before its bots have come, and its `Plan`.

A run is checked when its file is read, as if its bots were there, so that no mistake is found only
on the evening when it is due. Nothing here reads a clock or a file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from arena.engine.names import owner_of, spelled
from arena.engine.rules import Game
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
from arena.games import competition_settings, game_named
from arena.sandbox.bot_spec import unused
from arena.strength.settle import Goal
from protocol.errors import UsageError, one_line
from protocol.messages import Limits
from protocol.strategy import house_bots
from protocol.vocabulary import Settings

__all__ = [
    "LEAST",
    "LEVEL_POINTS",
    "LIMITS",
    "MOST",
    "MOST_MATCHES",
    "PAUSE_S",
    "Participants",
    "PlannedRun",
    "check",
    "check_title",
    "house_bots_of",
    "plan_for",
    "teams_of",
]

PAUSE_S = 5.0  # that a bot on a ladder rests between two matches by default
MOST_MATCHES = 100_000  # of the same bots, in one competition
LEAST = 20
"""How often each two meet at least, or each bot the dealer, where a run settles."""
MOST = 1_000
"""How often at most: as many as are needed to tell 55 of 100 games from 50."""
LEVEL_POINTS = 2.0
"""The difference that does not matter, in points of 100."""
_LONGEST_TITLE = 64
LIMITS = (
    *("decision_ms", "bank_ms", "hard_ms", "wall_ms", "wall_bank_ms"),
    *("start_ms", "grace_ms", "silence_ms"),
)
"""The limits that a run may set. The others are of connections and processes, which outlive it."""


class Participants(StrEnum):
    """Who takes part in a run."""

    CONNECTED = "connected"
    ROSTER = "roster"
    NAMED = "named"


class PlannedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A planned competition.

    Attributes:
        name: its title, unique in its file; it may have spaces.
        game: the game's whole name.
        least: how many bots must be there, its house bots among them; None for the default of
            `arena/competitions/attendance.py`.
        at: when it begins to wait for its bots; None to be played once, as soon as they are there.
        until: when a ladder ends; None if only the instructor ends it.
        who: who takes part.
        players: the names, if they are named.
        take: whether they play by programs that connect, by their submissions, or by either.
        matches: how often each two meet, or each bot the dealer; multiplied by `split`.
        settle: until what is settled it is played; `matches` is then the least number (K6).
        split: into how many matches a match is split (A9).
        with_itself: whether each bot also meets another instance of itself (A10).
        settings: win over `[games.<game>]`.
        limits: win over `[limits]`.
        wait_s: how long matches wait for a bot that is away.
        pause_s: on a ladder, how long a bot rests between two matches.
        forgive: in a round robin or a league, how many offences of a bot cost it only the matches
            that they end (J3).
        house: the house bots that are launched for it, the same one as often as it is listed.
    """

    name: str
    game: str
    form: Form
    least: int | None = None
    at: Times | None = None
    until: Times | None = None
    who: Participants = Participants.CONNECTED
    players: tuple[str, ...] = ()
    take: Take = Take.CONNECTED
    matches: int = 1
    settle: Settling | None = None
    split: int = 1
    with_itself: bool = False
    settings: Mapping[str, object] = {}
    limits: Mapping[str, int] = {}
    wait_s: float = WAIT_S
    pause_s: float = PAUSE_S
    forgive: int = 0
    house: tuple[str, ...] = ()

    @property
    def rules(self) -> Game:
        return game_named(self.game)

    @property
    def at_least(self) -> int:
        """How many bots must be there: as many as the game has seats, if nobody says."""
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
    teams: Mapping[str, str] | None = None,
    *,
    due_at: float | None = None,
    bots: tuple[RelaunchSpec, ...] = (),
    not_there: tuple[str, ...] = (),
    versions: Mapping[str, int] = {},
) -> Plan:
    """The plan of a run whose bots are known; the host fills in `seed` and `house`.

    It raises `UsageError` if settings do not go together or cannot be split so, or if the form
    forgives nothing.

    Args:
        limits: the file's, or what options made of them; the run's win.
        games: the file's settings, by game; the run's win.
        players: in the order of entry.
        teams: by name; names that do not take part are left out.
        due_at: in Unix seconds; None if it has no time.
        bots: the players that the arena launches.
        not_there: names of the roster that have not come.
        versions: the numbers of the submissions that play as some of the players.
    """
    if run.forgive and run.form not in (Form.ROUND_ROBIN, Form.LEAGUE):
        form = run.form.value.replace("_", " ")
        raise UsageError(f"forgive: expected a round robin or a league, got {form}")
    if run.settle:
        _check_settle(run, run.settle)
    chosen = {**games.get(run.game, {}), **run.settings}
    settings = competition_settings(run.rules, chosen)
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
        settle=run.settle or msgspec.UNSET,
        teams=teams_of(players, teams or {}),
        run=run.name,
        due_at=due_at,
        bots=bots,
        not_there=not_there,
        take=run.take,
        versions=dict(versions),
    )


def teams_of(players: Iterable[str], teams: Mapping[str, str]) -> dict[str, str]:
    """The teams of these players, for those that have one (K2).

    Programs of one owner, `ann/one` and `ann/two`, are in the owner's team. If it has none, they
    are a team of their own, `ann/`.
    """
    players = tuple(players)
    owners = Counter(map(owner_of, players))
    own = {owner: f"{owner}/" for owner, count in owners.items() if count > 1}
    teams = own | dict(teams)
    return {name: teams[owner_of(name)] for name in players if owner_of(name) in teams}


def house_bots_of(run: PlannedRun, taken: Collection[str], tables: int) -> tuple[RelaunchSpec, ...]:
    """The house bots of a run, each for so many tables at once, by names that are not `taken`."""
    names = set(taken)
    house_bots = []
    for house in run.house:
        name = unused(house, names)
        names.add(name)
        house_bots.append(RelaunchSpec(name=name, house=house, tables=tables))
    return tuple(house_bots)


def check(run: PlannedRun, limits: Limits, games: Mapping[str, Mapping[str, object]]) -> None:
    """Check that a run can be played by the named bots, or by as many as must be there. The text of
    a `UsageError` starts with the field that is wrong.
    """
    _check_players(run)
    _check_form(run)
    known = house_bots(run.game, slow=True)
    for bot in run.house:
        if bot not in known:
            names = ", ".join(known) or "none is installed"
            raise UsageError(
                f"house: no house bot {bot!r} for {run.game}; expected some of: {names}"
            )
    players = run.players or tuple(f"bot-{n}" for n in range(1, run.at_least + 1))
    plan_for(run, limits, games, players)


def check_title(title: str) -> str:
    """Return a title that can be typed and stands in one line of a table, or raise `UsageError`."""
    has_single_spaces = title == " ".join(title.split())
    if not (0 < len(title) <= _LONGEST_TITLE and title.isprintable() and has_single_spaces):
        raise UsageError(
            f"expected a title of 1 to {_LONGEST_TITLE} printable letters with single spaces, "
            f"got {one_line(repr(title), 80)}"
        )
    return title


def _check_players(run: PlannedRun) -> None:
    names = run.players
    for name in names:
        if not (0 < len(name) <= 64 and name.isprintable() and name == name.strip()):
            raise UsageError(f"players: expected names of 1 to 64 printable letters, got {name!r}")
    for place, name in enumerate(names):
        other = spelled(name, names[:place])
        if other in names[:place]:
            got = f"{other!r} and {name!r}, which look alike"
            got = f"{name!r} twice" if other == name else got
            raise UsageError(f"players: expected every bot once, got {got}")
    if run.who is not Participants.NAMED:
        return
    bots = len(names) + len(run.house)
    if run.least is not None and run.least > bots:
        raise UsageError(
            f"least: expected at most the {bots} bots of players and house, got {run.least}"
        )
    if bots < run.needed:
        raise UsageError(
            f"players: expected at least {run.needed} bots with those of house, got {bots}"
        )


def _check_form(run: PlannedRun) -> None:
    try:
        check_form(run.rules, run.form)
    except UsageError as error:
        raise UsageError(f"form: {error}") from None
    form = run.form.value.replace("_", " ")
    is_round_robin = run.form is Form.ROUND_ROBIN
    if run.matches > 1 and run.form not in WITH_MATCHES:
        raise UsageError(
            f"matches: expected a round robin or a league, got a form without them: {form}"
        )
    if run.split > 1 and not is_round_robin:
        raise UsageError(f"split: only for a round robin, the form is {form}")
    if run.with_itself and not is_round_robin:
        raise UsageError(f"with_itself: only for a round robin, the form is {form}")
    if run.until is not None and run.form is not Form.LADDER:
        raise UsageError(f"until: expected a ladder, got {form}")
    # One of the roster, or of those who are named, is always there (K5).
    bots = len(run.house) + (run.who is not Participants.CONNECTED)
    if is_round_robin and run.least == 1 and bots < 2 and not run.with_itself:
        raise UsageError(f"least: expected at least 2 for a {form}, got {run.least}")
    if run.matches * run.split > MOST_MATCHES:
        raise UsageError(
            f"matches: expected at most {MOST_MATCHES} with those of split, "
            f"got {run.matches * run.split}"
        )


def _check_settle(run: PlannedRun, settle: Settling) -> None:
    form = run.form.value.replace("_", " ")
    if run.form not in WITH_MATCHES:
        raise UsageError(f"settle: expected a round robin or a league, got {form}")
    if settle.goal is Goal.PAIRS and run.form is Form.LEAGUE:
        raise UsageError(
            "settle: expected first or order for a league, where nobody meets, got pairs"
        )
    if run.split > 1:
        raise UsageError(
            "split: only without settle, which plays as many matches as are needed; "
            "shorten the match by its settings"
        )
    if run.with_itself:
        raise UsageError("with_itself: only without settle")
    if settle.most < run.matches:
        raise UsageError(f"most: expected at least the {run.matches} of matches, got {settle.most}")
    for name, number in (("matches", run.matches), ("most", settle.most)):
        if run.form is Form.ROUND_ROBIN and number % 2:
            raise UsageError(
                f"{name}: expected an even number, so that each seat is had equally often, "
                f"got {number}"
            )


def _split(run: PlannedRun, settings: Settings) -> Settings:
    """The settings of one of the matches into which a match is split."""
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
