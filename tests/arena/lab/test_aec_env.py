from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pettingzoo.test import api_test  # type: ignore[import-untyped]

import arena
from arena.games import GAMES
from protocol.cards import PACK
from protocol.errors import UsageError
from tests.support.toy_games import install_toy, toy_name

LAB = Path(arena.__file__).parent / "lab"
AS_A_DICTIONARY = (
    # It wants one array of all but the environments that it names, and no dictionary with a mask.
    "ignore:Observation is not a NumPy array:UserWarning",
    "ignore:Observation space for each agent probably should be:UserWarning",
    # Nothing is legal when a match is over.
    "ignore:Action mask numpy array is all zeros:UserWarning",
)


def passes_for_api_test(env: Any) -> Any:
    for rule in AS_A_DICTIONARY:
        env = pytest.mark.filterwarnings(rule)(env)
    return env


@passes_for_api_test
@pytest.mark.parametrize("game", [*GAMES])
def test_the_test_of_pettingzoo_passes(game: str) -> None:
    api_test(arena.aec_env(game), num_cycles=200)


@passes_for_api_test
@pytest.mark.parametrize("seats", [1, 3])
def test_a_game_of_another_package_is_an_environment(
    seats: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_toy(seats, monkeypatch)

    api_test(arena.aec_env(toy_name(seats)), num_cycles=50)


def test_it_takes_few_lines() -> None:
    modules = ("environment.py", "aec_env.py")

    assert sum(len((LAB / name).read_text().splitlines()) for name in modules) <= 250


def observed(env: Any) -> dict[str, Any]:
    arrays: dict[str, Any] = env.observe(env.agent_selection)
    return arrays


def legal(env: Any) -> list[int]:
    return [int(action) for action in np.flatnonzero(observed(env)["action_mask"])]


def test_actions_are_the_numbers_of_legal_answers() -> None:
    env = arena.aec_env("akq", {"hands": 1})
    env.reset(seed=1)
    assert legal(env) == [0, 1]
    env.step(0)
    assert env.agent_selection == "seat_1"
    env.step(1)

    assert env.environment.result().record.answers == ("bet", "fold")
    assert env.rewards == {"seat_0": 1, "seat_1": -1}
    assert all(env.terminations.values())


def test_an_action_that_is_masked_is_refused() -> None:
    env = arena.aec_env("akq", {"hands": 1})
    env.reset(seed=1)

    with pytest.raises(UsageError, match="expected an action from 0 to 1, got 2"):
        env.step(2)


def test_a_range_has_both_ends_and_even_steps() -> None:
    env = arena.aec_env("blackjack", {"bankroll": 625})
    env.reset(seed=1)
    bets = observed(env)["answers"][:, 1]  # behind the place that says that there is an answer

    assert legal(env) == list(range(32))
    assert bets.tolist() == [5 + 20 * number for number in range(32)]


def test_a_short_range_has_every_number() -> None:
    env = arena.aec_env("blackjack", {"bankroll": 8})
    env.reset(seed=1)

    assert legal(env) == [0, 1, 2, 3]
    assert observed(env)["answers"][:5, 1].tolist() == [5, 6, 7, 8, 0]


def test_a_hand_has_a_one_for_each_card() -> None:
    env = arena.aec_env("gin_rummy")
    env.reset(seed=1)
    question = env.environment.observation.question
    # Of two seats, the offer: that it is asked, its up-card, and its hand.
    array = observed(env)["observation"]
    upcard, hand = array[3 : 3 + 52], array[3 + 52 : 3 + 104]

    assert array[:3].tolist() == [*(float(env.agent_selection == each) for each in env.agents), 1]
    assert [PACK[place] for place in np.flatnonzero(upcard)] == [question.upcard]
    assert {PACK[place] for place in np.flatnonzero(hand)} == set(question.hand)


def test_the_latest_news_comes_first() -> None:
    env = arena.aec_env("high_low")
    env.reset(seed=1)
    for _ in range(2):
        env.step(1)  # keep
    env.step(0)
    news = env.environment.observation.news
    heard = [each for each in reversed(news) if each.kind == "swapped"]
    array = observed(env)["observation"]
    _, places = env._at[type(heard[0])]
    seats = [int(array[place + 1]) for place in places]  # behind whether there is one

    assert [bool(array[place]) for place in places] == [True, True, True, False]
    assert seats[:3] == [each.seat for each in heard]
