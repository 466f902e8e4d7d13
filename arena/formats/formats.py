"""What follows from a plan's form (rules K): its schedule, its standings, its number of matches.

Round robins, eliminations and leagues have a schedule; a ladder has none, as it pairs whatever
bots are free (`arena/formats/ladder.py`). All forms but an elimination have standings; the schedule
of an elimination returns a ranking. Pure: a plan holds everything that these need.
"""

from __future__ import annotations

from arena.formats.elimination import advancing, elimination
from arena.formats.intervals import unit_kind
from arena.formats.ladder import Ladder
from arena.formats.schedule import OpenStages, Schedule, league, round_robin
from arena.formats.settled import SettledLeague, SettledRoundRobin, settled_schedule
from arena.formats.spec import Form, Plan, form_of
from arena.formats.standings import League, RoundRobin, RunningStandings
from arena.games.rules import Game
from arena.games.shuffle import Stream
from protocol.errors import UsageError

__all__ = [
    "check_form",
    "expected_matches",
    "fewest",
    "forms_for",
    "open_stages",
    "schedule_of",
    "standings_of",
]


def check_form(game: Game, form: Form) -> None:
    """Raise `UsageError` if the game cannot be played in that form."""
    fits, needs = _fits(game, form)
    if not fits:
        words = form.value.replace("_", " ")
        article = "an" if form is Form.ELIMINATION else "a"
        forms = ", ".join(other.value.replace("_", " ") for other in forms_for(game))
        raise UsageError(
            f"expected {needs} for {article} {words}, got {game.name}, which is for {game.seats}; "
            f"its forms: {forms}"
        )


def forms_for(game: Game) -> tuple[Form, ...]:
    """The forms in which a game can be played, its usual one first."""
    usual = form_of(game)
    others = (form for form in Form if form is not usual and _fits(game, form)[0])
    return (usual, *others)


def fewest(form: Form) -> int:
    """The fewest bots that a competition needs; none for a ladder, which bots can join later."""
    return {Form.LADDER: 0, Form.LEAGUE: 1}.get(form, 2)


def schedule_of(plan: Plan) -> Schedule:
    """The schedule of the competition from its first stage on.

    Raises UsageError for a game that is not played in this form, a ladder, too few bots, a bot
    entered twice, or fewer than one match; for an elimination also no seed, or too few house names.
    """
    check_form(plan.rules, plan.form)
    match plan.form:
        case Form.ROUND_ROBIN | Form.LEAGUE if plan.settle:
            return settled_schedule(plan)
        case Form.ROUND_ROBIN:
            return round_robin(plan.players, plan.matches, plan.with_itself)
        case Form.LEAGUE:
            return league(plan.players, plan.matches)
        case Form.ELIMINATION:
            return elimination(plan.rules, plan.players, _stream(plan), plan.house, plan.teams)
        case Form.LADDER:
            raise UsageError(
                "expected a form with a schedule, got a ladder, which pairs the bots that are free"
            )


def open_stages(plan: Plan) -> OpenStages:
    """The competition's schedule, with the stages playable now; raises as `schedule_of`."""
    return OpenStages(schedule_of(plan), ahead=1 if plan.settle else 0)


def standings_of(plan: Plan) -> RunningStandings | None:
    """Empty standings for the competition; None for an elimination, which returns a ranking.

    Raises UsageError if the game is not played in this form, and NotInstalled for a league whose
    game is missing, as only the game says what the league ranks by.
    """
    if plan.missing is None:
        check_form(plan.rules, plan.form)
    match plan.form:
        case Form.ROUND_ROBIN if plan.settle:
            return SettledRoundRobin(plan)
        case Form.LEAGUE if plan.settle:
            return SettledLeague(plan)
        case Form.ROUND_ROBIN:
            return RoundRobin(plan.players, plan.not_there, unit_kind(plan))
        case Form.LEAGUE:
            return League(plan.players, plan.rules.measure, plan.read_settings(), plan.not_there)
        case Form.LADDER:
            return Ladder(plan.players)
        case Form.ELIMINATION:
            return None


def expected_matches(plan: Plan) -> int | None:
    """How many matches the competition will have in all; None if that is unknown.

    It is unknown for a ladder, which never ends, for a competition that goes on until it is
    settled, and for an elimination whose game is missing. For an elimination it is an estimate,
    without ties and offences.
    """
    if plan.form is Form.ELIMINATION and plan.missing is not None:
        return None  # only the rules say how many advance from a table
    if plan.settle:
        return None
    bots = len(plan.players)
    match plan.form:
        case Form.ROUND_ROBIN:
            meetings = bots * (bots - 1) // 2 + (bots if plan.with_itself else 0)
            return meetings * plan.matches
        case Form.LEAGUE:
            return bots * plan.matches
        case Form.ELIMINATION:
            return expected_tables(plan.rules, bots)
        case Form.LADDER:
            return None


def expected_tables(game: Game, bots: int) -> int:
    """How many tables an elimination has, the final included, without ties and offences.

    `advancing(game)` bots then advance from every other table.
    """
    tables = 1
    while bots > game.seats:
        drawn = bots // game.seats
        tables += drawn
        bots -= drawn * (game.seats - advancing(game))
    return tables


def _fits(game: Game, form: Form) -> tuple[bool, str]:
    """Whether the game can be played in that form, and the words for the games that can."""
    match form:
        case Form.ROUND_ROBIN:
            return game.seats == 2, "a game for 2"
        case Form.ELIMINATION:
            return game.seats > 2, "a game for 3 or more"
        case Form.LEAGUE:
            return game.seats == 1, "a game for 1"
        case Form.LADDER:
            return game.seats > 1, "a game for 2 or more"


def _stream(plan: Plan) -> Stream:
    """The stream for an elimination's draws; without a seed anybody could predict the tables."""
    try:
        seed = bytes.fromhex(plan.seed)
    except ValueError:
        raise UsageError(f"expected the seed of an elimination in hex, got {plan.seed!r}") from None
    if not seed:
        raise UsageError("expected an elimination with a seed, got none")
    return Stream(seed)
