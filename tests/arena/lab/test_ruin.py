"""How often each category is dealt (T9), and a stake becomes a goal before one is broke (T10)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import sqrt
from typing import Any

import msgspec
import pytest

from arena.games.catalogue import GAMES, game_named
from arena.games.match import MatchResult, MatchState, drive
from arena.lab.in_process import Entrant, entrant, play_parts
from arena.lab.matches import Offence, PlayedMatch
from arena.lab.odds import exact_counts, odds
from arena.lab.ruin import Attempt, Ruin, Trials, TrialsPart
from arena.sandbox import worker_pool
from bots.three_card_poker import Q64, Always, PlayerStrategy
from protocol.errors import BadSettings, UnknownGame, UsageError
from protocol.messages import Ending, Termination
from protocol.three_card_poker import CATEGORIES, Hand
from tests.support.answering import Answering
from tests.support.long import sized


def test_T9_percentages_of_all_six_categories_in_a_fixed_order() -> None:
    shares, one = odds(1000, seed=1), odds(1, seed=1)

    assert tuple(shares) == CATEGORIES
    assert sum(shares.values()) == pytest.approx(100)
    assert sorted(one.values()) == [0.0] * 5 + [100.0]
    assert all(type(share) is float for share in one.values())


def test_T9_the_same_seed_deals_the_same_hands() -> None:
    hands: list[int] = []

    assert odds(500, seed=3, report=hands.append) == odds(500, seed=3) != odds(500, seed=4)
    assert sum(hands) == 500, "every hand is reported"
    assert odds(2000) != odds(2000)
    assert odds(10_000, seed=1) != odds(20_000, seed=1), "what is dealt together and the next"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        *[((bad,), "whole number of hands") for bad in (0, -1, 1.0, True, "10", None)],
        *[((1, bad), "whole number for a seed") for bad in (1.0, True, "1")],
    ],
    ids=repr,
)
def test_T9_anything_but_whole_numbers_is_refused(call: tuple[Any, ...], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        odds(*call)


@pytest.mark.stats
def test_T9_random_hands_approach_the_exact_shares() -> None:
    n = sized(500_000, 20_000)
    shares = odds(n, seed=2)

    for label, count in exact_counts().items():
        exact = count / 22_100
        error = 100 * sqrt(exact * (1 - exact) / n)
        assert shares[label] == pytest.approx(100 * exact, abs=4 * error), label


def test_T9_any_number_of_processes_deals_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "_WORTH_S", -1.0)
    monkeypatch.setattr(worker_pool, "_ALONE_S", -1.0)

    assert odds(25_000, seed=1, jobs=2) == odds(25_000, seed=1)


class AllIn(Always):
    """Antes all that it may."""

    def ante(self, cash: int, most: int) -> int:
        return most


class Folder(PlayerStrategy):
    """Never wins a chip."""

    def play(self, hand: Hand, ante: int, cash: int) -> bool:
        return False


def stands_on_everything(bet: int = 5) -> Answering:
    """Blackjack for the impatient: bets a fixed sum and stands on everything."""
    return Answering(lambda asked: min(bet, asked.legal.max) if asked.kind == "bet" else "stand")


def ruined(
    entrants: Sequence[Entrant],
    *,
    game: str = "tcp",
    trials: int = 20,
    jobs: int = 1,
    report: Callable[[int], None] = lambda units: None,
    **changed: Any,
) -> list[Ruin]:
    """The entrants try to double 100 chips, unless something else is said."""
    attempt = Attempt(game_named(game), **{"stake": 100, "goal": 200, "seed": 1, **changed})
    done = Trials()
    parts = attempt.parts(len(entrants), trials)
    units = trials * len(entrants)
    play_parts(attempt, entrants, parts, done.add, units=units, jobs=jobs, report=report)
    return [done[bot] for bot in range(len(entrants))]


def tried(strategy: Callable[[], Any] = Q64, **changed: Any) -> Ruin:
    [result] = ruined([Entrant("one", lambda seed: strategy())], **changed)
    return result


def test_T10_every_trial_ends_at_the_goal_or_broke() -> None:
    result = tried(trials=200)

    assert (result.game, result.stake, result.goal) == ("three_card_poker", 100, 200)
    assert result.wins + result.broke == result.trials == 200
    assert result.wins > 0
    assert result.broke > 0
    assert (result.undecided, result.offences, result.offence) == (0, 0, None)
    share = result.wins / 200
    assert result.share == share
    assert result.standard_error == pytest.approx(sqrt(share * (1 - share) / 200), rel=0.01)


def test_T10_no_win_in_a_few_trials_still_has_an_error() -> None:
    result = tried(Folder, trials=10)

    assert (result.wins, result.broke) == (0, 10)
    assert result.standard_error == pytest.approx(sqrt(1 / 12 * 11 / 12 / 10))


@pytest.mark.parametrize(("more", "is_decided"), [({}, True), ({"rounds": 1}, False)])
def test_T10_a_trial_stops_at_the_goal(more: dict[str, int], is_decided: bool) -> None:
    """One round of all or nothing: going on would ruin everybody; the last round counts, too."""
    result = tried(AllIn, trials=100, **more)

    assert 20 < result.wins < 70
    assert (result.undecided == 0) is is_decided  # the dealer did not qualify: 150 chips


def test_T10_a_trial_that_is_given_up_is_undecided_and_one_below_the_least_is_broke() -> None:
    given_up = tried(Folder, rounds=5, trials=10)
    # Bets of 20 and what is left of 23: 3 chips are not enough to go on.
    bold = partial(stands_on_everything, 20)
    broke = tried(bold, game="blackjack", stake=23, goal=24, trials=50)

    counts = given_up.wins, given_up.broke, given_up.undecided, given_up.share
    assert counts == (0, 0, 10, 0)
    assert broke.undecided == 0 < broke.broke


@pytest.mark.parametrize(
    ("changed", "error", "says"),
    [
        ({"goal": 100}, UsageError, "goal above the stake of 100, got 100"),
        ({"goal": 200.0}, UsageError, "goal above the stake"),
        ({"goal": None}, UsageError, "goal above the stake"),
        ({"trials": 0}, UsageError, "at least 1 trial, got 0"),
        ({"trials": True}, UsageError, "at least 1 trial, got True"),
        ({"game": "akq"}, UsageError, "ace_king_queen is not played for chips against the dealer"),
        ({"game": "whist"}, UnknownGame, "whist"),
        ({"stake": -1}, BadSettings, "settings of three_card_poker"),
        ({"stake": "100"}, BadSettings, "settings of three_card_poker"),
        ({"rounds": -1}, BadSettings, "settings of three_card_poker"),
        ({"settings": {"pair_kicker": "yes"}}, BadSettings, "pair_kicker"),
    ],
    ids=str,
)
def test_T10_bad_arguments_are_refused(
    changed: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        tried(**changed)


def test_T10_any_number_of_processes_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_REPORT_S", "_ALONE_S", "_WORTH_S"):
        monkeypatch.setattr(worker_pool, name, -1.0)
    entrants = [entrant(GAMES["three_card_poker"], "random", {"ante": ante}) for ante in (5, 10)]
    trials: list[int] = []
    here, there = (ruined(entrants, trials=250, report=trials.append, jobs=jobs) for jobs in (1, 2))

    assert here == there
    assert here[0].wins != here[1].wins
    assert sum(trials) == 2 * 2 * 250


def test_T10_a_trial_has_the_same_choices_for_every_bot() -> None:
    seeds: list[str] = []

    def make(seed: str) -> Q64:
        seeds.append(seed)
        return Q64()

    one, other = ruined([Entrant("one", make), Entrant("other", make)], trials=3)

    assert one == msgspec.structs.replace(other, bot=0)
    assert seeds == ["1:1", "1:2", "1:3"] * 2
    wins = {tried(trials=100, seed=seed).wins for seed in range(4)}
    assert len(wins) > 1
    assert len({tried(trials=100, seed=None).wins for _ in range(6)}) > 1, "without a seed, too"


# All 407,170,400 pairs of hands, enumerated apart from this code: what Q64 nets, in antes.
OUTCOMES_OF_Q64 = {-2: 91_374_160, -1: 132_652_800, 0: 322_560, 1: 85_493_652, 2: 97_327_228}


def chance_of(goal: int, stake: int, ante: int) -> float:
    """How likely `Q64` reaches the goal: each cash is worth the mean of what follows it."""
    pairs = sum(OUTCOMES_OF_Q64.values())
    odds = {outcome: count / pairs for outcome, count in OUTCOMES_OF_Q64.items()}
    worth = [0.0] * goal + [1.0] * 2 * ante
    change = 1.0
    while change > 1e-7:
        change = 0.0
        for cash in range(2, goal):
            bet = min(ante, cash // 2)
            mean = sum(odds[o] * worth[cash + o * bet] for o in odds)
            change = max(change, abs(mean - worth[cash]))
            worth[cash] = mean
    return worth[stake]


@pytest.mark.stats
@pytest.mark.parametrize(("ante", "trials"), [(10, 1000), (25, 2000)])
def test_T10_an_ante_doubles_a_stake_as_often_as_theory_says(ante: int, trials: int) -> None:
    result = tried(lambda: Q64(ante), trials=trials)

    exact = chance_of(goal=200, stake=100, ante=ante)
    assert result.share == pytest.approx(exact, abs=4 * result.standard_error)


# ---- Attempts, wherever the strategy is


def test_a_game_that_knows_goals_tells_its_bots_the_goal() -> None:
    attempt = Attempt(GAMES["three_card_poker"], stake=100, goal=200)

    assert msgspec.to_builtins(attempt.settings)["goal"] == 200


@pytest.mark.parametrize("game", ["three_card_poker", "blackjack"])
def test_T10_a_trial_is_over_at_the_goal_and_not_before(game: str) -> None:
    attempt = Attempt(GAMES[game], stake=20, goal=25)
    bot: Any = Q64 if game == "three_card_poker" else stands_on_everything
    ends = set()
    for seed in range(20):
        match = MatchState(attempt.game, attempt.settings, seed=bytes([seed] * 32))
        drive(match, [bot()])
        assert match.termination == Termination(Ending.COMPLETED)
        cash = 20 + match.scores[0]
        assert not attempt.least <= cash < 25
        ends.add(attempt.end_of(match.scores[0], match.termination))

    assert ends == {"wins", "broke"}


def test_trials_add_up() -> None:
    attempt = Attempt(GAMES["blackjack"], stake=100, goal=200)
    late = Termination(Ending.TIMEOUT, 0, "late")
    done = Termination(Ending.COMPLETED)

    def part(first: int, *ends: tuple[int, Termination]) -> Ruin:
        numbers = range(first, first + len(ends))
        specs = attempt.specs(TrialsPart(0, numbers))
        no_record: Any = None
        played = [
            PlayedMatch(spec, MatchResult((score,), (0,), ended, record=no_record), [])
            for spec, (score, ended) in zip(specs, ends, strict=True)
        ]
        return attempt.summed(TrialsPart(0, numbers), played)

    trials = Trials()
    trials.add(part(0, (100, done), (-100, done)))
    trials.add(part(2, (50, done), (-100, late)))
    trials.add(part(4, (-100, late)))
    result = trials[0]

    assert (result.trials, result.wins, result.broke) == (5, 1, 1)
    assert (result.undecided, result.offences) == (1, 2)
    assert result.offence == Offence(0, 4, Ending.TIMEOUT, "late", 4)
