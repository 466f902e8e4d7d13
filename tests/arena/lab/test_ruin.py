"""How often a strategy turns a stake into a goal before it goes broke (T10)."""

from __future__ import annotations

from functools import partial
from math import sqrt
from typing import Any, ClassVar

import msgspec
import pytest

from arena.engine.drive import drive
from arena.engine.match import MatchState
from arena.games import GAMES
from arena.lab.in_process import entrant
from arena.lab.ruin import Attempt, Ruin, Trials, ruin
from arena.sandbox import worker_pool
from bots.three_card_poker import Q64, Always, PlayerStrategy
from protocol.errors import BadSettings, UnknownGame, UsageError
from protocol.messages import Ending, Termination
from protocol.three_card_poker import Hand


class AllIn(Always):
    """Antes all that it may."""

    def ante(self, cash: int, most: int) -> int:
        return most


class Folder(PlayerStrategy):
    """Never wins a chip."""

    def play(self, hand: Hand, ante: int, cash: int) -> bool:
        return False


class StandsOnEverything:
    """Blackjack for the impatient: bets a fixed sum and stands on everything."""

    game: ClassVar[str] = "blackjack"

    def __init__(self, bet: int = 5) -> None:
        self.bet = bet

    def decide(self, question: Any) -> object:
        return min(self.bet, question.legal.max) if question.kind == "bet" else "stand"

    def hear(self, news: Any) -> None:
        pass

    def reset(self) -> None:
        pass


class AntesTooMuch(Always):
    """Antes more than it has after a while."""

    def ante(self, cash: int, most: int) -> int:
        return 10 if cash == 100 else 1_000_000


def tried(**changed: Any) -> Ruin:
    """Q64 tries to double 100 chips, unless something else is said."""
    factory = changed.pop("strategy_factory", Q64)
    arguments: dict[str, Any] = {
        "game": "tcp",
        "makers": [lambda seed: factory()],
        "stake": 100,
        "goal": 200,
        "trials": 20,
        "seed": 1,
    }
    [result] = ruin(**(arguments | changed))
    return result


def test_T10_every_trial_ends_at_the_goal_or_broke() -> None:
    result = tried(trials=200)

    assert (result.game, result.stake, result.goal) == ("three_card_poker", 100, 200)
    assert result.wins + result.broke == result.trials == 200
    assert result.wins > 0
    assert result.broke > 0
    assert (result.undecided, result.offences, result.first_offence) == (0, 0, None)


def test_T10_share_and_standard_error() -> None:
    result = tried(trials=200)

    share = result.wins / 200
    assert result.share == share
    assert result.standard_error == pytest.approx(sqrt(share * (1 - share) / 200), rel=0.01)


def test_T10_no_win_in_a_few_trials_still_has_an_error() -> None:
    result = tried(strategy_factory=Folder, trials=10)

    assert (result.wins, result.broke) == (0, 10)
    assert result.standard_error == pytest.approx(sqrt(1 / 12 * 11 / 12 / 10))


def test_T10_a_trial_stops_at_the_goal() -> None:
    """One round of all or nothing: going on would ruin everybody."""
    result = tried(strategy_factory=AllIn, trials=100)

    assert 20 < result.wins < 70


def test_T10_a_goal_reached_with_the_last_round_counts() -> None:
    result = tried(strategy_factory=AllIn, rounds=1, trials=100)

    assert result.wins > 20
    assert result.undecided > 0  # the dealer did not qualify: 150 chips


def test_T10_a_trial_that_is_given_up_is_undecided_and_counts_among_the_trials() -> None:
    result = tried(strategy_factory=Folder, rounds=5, trials=10)

    assert (result.wins, result.broke, result.undecided) == (0, 0, 10)
    assert result.share == 0


def test_T10_an_offence_loses_the_trial_and_is_told() -> None:
    result = tried(strategy_factory=AntesTooMuch)

    assert result.offences == result.trials == 20
    assert result.first_offence is not None
    assert result.first_offence.kind is Ending.ILLEGAL
    assert "answered 1000000 to ante" in result.first_offence.text


def test_T10_every_trial_has_a_strategy_of_its_own() -> None:
    made: list[Q64] = []

    def factory() -> Q64:
        made.append(Q64())
        return made[-1]

    tried(strategy_factory=factory, trials=7)

    assert len(made) == 7


def test_T10_the_same_seed_gives_the_same_result() -> None:
    assert tried(trials=100) == tried(trials=100)
    assert len({tried(trials=100, seed=seed).wins for seed in range(4)}) > 1


def test_T10_without_a_seed_the_cards_differ() -> None:
    results = {tried(trials=100, seed=None).wins for _ in range(6)}

    assert len(results) > 1


def test_T10_further_settings_reach_the_game() -> None:
    with pytest.raises(BadSettings, match="pair_kicker"):
        tried(settings={"pair_kicker": "yes"})

    assert tried(settings={"pair_kicker": True}).trials == 20


def test_T10_works_for_blackjack_too() -> None:
    result = tried(
        game="blackjack", strategy_factory=StandsOnEverything, stake=20, goal=40, trials=100
    )

    assert result.game == "blackjack"
    assert result.wins + result.broke == 100
    assert result.wins > 10
    assert result.broke > 10


def test_T10_a_blackjack_bankroll_below_the_minimum_is_broke() -> None:
    """Bets of 20 and what is left of 23: 3 chips are not enough to go on."""
    bold = partial(StandsOnEverything, 20)
    result = tried(game="blackjack", strategy_factory=bold, stake=23, goal=24, trials=50)

    assert result.undecided == 0
    assert result.broke > 0


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"goal": 100}, "goal above the stake of 100, got 100"),
        ({"goal": 200.0}, "goal above the stake"),
        ({"goal": None}, "goal above the stake"),
        ({"trials": 0}, "at least 1 trial, got 0"),
        ({"trials": True}, "at least 1 trial, got True"),
        ({"game": "akq"}, "ace_king_queen is not played for chips against the dealer"),
    ],
    ids=str,
)
def test_T10_bad_arguments_are_refused(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        tried(**changed)


@pytest.mark.parametrize("changed", [{"stake": -1}, {"stake": "100"}, {"rounds": -1}])
def test_T10_a_stake_that_the_game_refuses_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(BadSettings, match="settings of three_card_poker"):
        tried(**changed)


def test_T10_an_unknown_game_is_refused() -> None:
    with pytest.raises(UnknownGame):
        tried(game="whist")


def test_T10_any_number_of_processes_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_REPORT_S", "_ALONE_S", "_WORTH_S"):
        monkeypatch.setattr(worker_pool, name, -1.0)
    game = GAMES["three_card_poker"]
    makers = [entrant(game, "random", {"ante": ante}).make for ante in (5, 10)]
    trials: list[int] = []
    here, there = (
        ruin(
            *("tcp", makers),
            stake=100,
            goal=200,
            trials=250,
            seed=1,
            report=trials.append,
            jobs=jobs,
        )
        for jobs in (1, 2)
    )

    assert here == there
    assert here[0] != here[1]
    assert sum(trials) == 2 * 2 * 250


def test_T10_a_trial_has_the_same_choices_for_every_maker() -> None:
    seeds: list[str] = []

    def maker(seed: str) -> Q64:
        seeds.append(seed)
        return Q64()

    one, other = ruin("tcp", [maker, maker], stake=100, goal=200, trials=3, seed=1)

    assert one == other
    assert seeds == ["1:1", "1:2", "1:3"] * 2


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
    result = tried(strategy_factory=lambda: Q64(ante), trials=trials)

    exact = chance_of(goal=200, stake=100, ante=ante)
    assert result.share == pytest.approx(exact, abs=4 * result.standard_error)


# ---- Attempts, wherever the strategy is


def test_a_game_that_knows_goals_tells_its_bots_the_goal() -> None:
    attempt = Attempt.of(GAMES["three_card_poker"], stake=100, goal=200)

    assert msgspec.to_builtins(attempt.settings)["goal"] == 200


@pytest.mark.parametrize("game", ["three_card_poker", "blackjack"])
def test_T10_a_trial_is_over_at_the_goal_and_not_before(game: str) -> None:
    attempt = Attempt.of(GAMES[game], stake=20, goal=25)
    bot: Any = Q64 if game == "three_card_poker" else StandsOnEverything
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
    trials = Trials(Attempt.of(GAMES["blackjack"], stake=100, goal=200))
    late = Termination(Ending.TIMEOUT, 0, "late")
    done = Termination(Ending.COMPLETED)
    for score, ended in [(100, done), (-100, done), (50, done), (-100, late)]:
        trials.add(score, ended)
    result = trials.ruin()

    assert (result.trials, result.wins, result.broke) == (4, 1, 1)
    assert (result.undecided, result.offences) == (1, 1)
    assert result.first_offence == late
