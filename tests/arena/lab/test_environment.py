"""Environments for learners: of a match, and by the interface of PettingZoo."""

from __future__ import annotations

import pickle
import re
import sys
from collections.abc import Callable, Iterator
from copy import copy, deepcopy
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import Phase, assume, given, reject, settings
from hypothesis import strategies as st
from pettingzoo.test import api_test, seed_test  # type: ignore[import-untyped]

import arena
from arena.games.catalogue import GAMES, competition_settings
from arena.games.match import MatchResult
from arena.games.rules import EVERYONE, AskSeat, Scoreboard, TellSeat
from arena.games.shuffle import Stream, seed_from_int
from arena.lab.environment import Environment
from arena.lab.matches import watched
from protocol.cards import PACK
from protocol.errors import IllegalAnswer, NotInstalled, UsageError
from protocol.vocabulary import Range
from tests.support.toy_games import install_toy, toy_name

EACH_GAME = pytest.mark.parametrize("game", [*GAMES])


def some_answer(environment: Environment, chance: Random) -> Any:
    legal = environment.legal
    if isinstance(legal, Range):
        return np.int64(chance.randint(legal.min, min(legal.max, legal.min + 20)))
    return chance.choice(legal)


def played(environment: Environment, chance: Random) -> tuple[list[Any], MatchResult]:
    """The rest of a match with random answers: what was observed and gained, and the result."""
    seen: list[Any] = []
    while environment.observation is not None:
        seen.append((environment.rewards, environment.observation))
        environment.step(some_answer(environment, chance))
    return [*seen, (environment.rewards, None)], environment.result()


@EACH_GAME
def test_a_match_is_that_of_its_record(game: str) -> None:
    environment = arena.Environment(game, GAMES[game].short)
    environment.reset(seed=7)
    seen, result = played(environment, Random(1))

    assert arena.replay(result.record) == result
    assert tuple(map(sum, zip(*(gained for gained, _ in seen), strict=True))) == result.scores
    assert environment.legal == ()


@EACH_GAME
def test_a_seed_deals_its_match_and_all_after_it_again(game: str) -> None:
    def records(environment: Environment) -> list[bytes]:
        found = []
        for seed in (7, None, None, np.int64(7)):
            environment.reset(seed)
            found.append(played(environment, Random(1))[1].record.to_json())
        return found

    first = records(Environment(game, GAMES[game].short))

    assert records(Environment(game, GAMES[game].short)) == first
    assert first[0] == first[3]
    assert len({*first}) == 3


def pickled(environment: Any) -> Any:
    return pickle.loads(pickle.dumps(environment))


@EACH_GAME
@pytest.mark.parametrize("copied", [copy, deepcopy, pickled])
def test_a_copy_goes_on_from_where_it_was_made(game: str, copied: Callable[[Any], Any]) -> None:
    environment = Environment(game, GAMES[game].short)
    for _ in range(3):
        if environment.observation is not None:
            environment.step(some_answer(environment, Random(1)))
    twin = copied(environment)

    for _ in range(2):
        assert played(twin, Random(2)) == played(environment, Random(2))
        assert twin.reset() == environment.reset()


@pytest.mark.parametrize("copied", [deepcopy, pickled])
def test_a_copy_for_learners_goes_on_from_there(copied: Callable[[Any], Any]) -> None:
    env = arena.aec_env("gin_rummy")
    env.reset(seed=1)
    env.step(0)
    twin = copied(env)
    before = {name: array.tolist() for name, array in observed(env).items()}
    twin.step(legal(twin)[0])

    assert {name: array.tolist() for name, array in observed(env).items()} == before
    env.step(legal(env)[0])
    assert str(env.last()) == str(twin.last())


def test_the_seat_to_move_hears_what_was_told_since_it_was_asked() -> None:
    environment = Environment("high_low", {"max_shuffles": 1, "gap": 1_000_000})
    observed = environment.reset(seed=3)
    assert observed is not None
    heard = [[news.kind for news in observed.news]]
    for _ in range(3):
        observed = environment.step("keep")
        assert observed is not None
        heard.append([news.kind for news in observed.news])

    assert heard == [["dealt", *["swapped"] * others] for others in range(4)]


def test_an_illegal_answer_changes_nothing() -> None:
    environment = Environment("akq")
    before = environment.reset(seed=1)

    with pytest.raises(IllegalAnswer, match="legal: bet, check; answer with"):
        environment.step("raise")
    assert environment.observation == before


def test_a_match_has_a_result_and_no_more_steps_when_it_is_over() -> None:
    environment = Environment("akq", {"hands": 2})

    with pytest.raises(UsageError, match="the match is not over"):
        environment.result()
    for answer in ("check", "check"):
        environment.step(answer)
    with pytest.raises(UsageError, match="expected reset"):
        environment.step("check")
    assert environment.result().termination.kind == "completed"


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pettingzoo", None)

    with pytest.raises(
        NotInstalled, match=r"^pettingzoo .* pip install 'card-arena\[pettingzoo\]'$"
    ):
        arena.aec_env("akq")


# ---- Nobody observes what its seat was not told

STEPS = 60  # of a match that are looked at
SETTINGS = {
    name: competition_settings(
        game, {**game.short, **({"starter": 0} if name == "gin_rummy" else {})}
    )
    for name, game in GAMES.items()
}


def first_deck(game: str, seed: int) -> tuple[Any, ...]:
    deal = next(GAMES[game].deals(SETTINGS[game], Stream(seed_from_int(seed))))
    return tuple(getattr(deal, "deck", deal))


class OneDeck:
    """An environment that deals one deck, beside what its rules tell and ask one seat."""

    def __init__(self, game: str, deck: tuple[Any, ...], seat: int) -> None:
        self.aec = arena.aec_env(game, msgspec.to_builtins(SETTINGS[game]))
        self.environment: Environment = self.aec.environment
        self.agent, self.seat = f"seat_{seat}", seat
        self.told: list[Any] = []
        self.decks = 0
        rules = watched(GAMES[game], self.hear)
        self.environment.game = msgspec.structs.replace(
            rules, deals=lambda settings, stream: rules.stacked(settings, self.dealing(deck))
        )
        self.aec.reset()

    def hear(self, step: AskSeat | TellSeat, board: Scoreboard) -> bool:
        if isinstance(step, TellSeat) and step.seat in (self.seat, EVERYONE):
            self.told.append(step.news)
        return False

    def dealing(self, deck: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        while True:
            self.decks += 1
            yield deck

    def observed(self, answers: Callable[[Environment], Any]) -> Iterator[tuple[Any, ...]]:
        """At every step what the seat observes, as structs and as arrays, until another deck."""
        for _ in range(STEPS):
            observed = self.environment.observation
            if observed is None or self.decks > 1:
                return
            if observed.seat == self.seat:
                self.told.append(observed.question)
            arrays = self.aec.observe(self.agent)
            bits = b"".join(array.tobytes() for array in arrays.values())
            yield observed if observed.seat == self.seat else None, bits
            self.environment.step(answers(self.environment))


def cards_in(told: object) -> set[str]:
    """All words in what a seat was told, of which some are cards."""
    return set(re.findall(r"\w+", msgspec.json.encode(told).decode()))


@EACH_GAME
@given(seed=st.integers(0, 10**6), data=st.data())
@settings(max_examples=20, deadline=None, database=None, phases=[Phase.generate])
def test_what_a_seat_was_not_told_changes_no_observation_of_it(
    game: str, seed: int, data: st.DataObject
) -> None:
    seat = data.draw(st.integers(0, GAMES[game].seats - 1), "seat")
    moves, answers = Random(seed), list[Any]()

    def noted(environment: Environment) -> Any:
        answers.append(some_answer(environment, moves))
        return answers[-1]

    deck = first_deck(game, seed)
    table = OneDeck(game, deck, seat)
    before, told = [], []
    for observed in table.observed(noted):
        before.append(observed)
        told.append(len(table.told))
    asked = [number for number, (mine, _) in enumerate(before) if mine is not None]
    assume(asked)
    last = data.draw(st.sampled_from(asked), "last question")
    seen = cards_in(table.told[: told[last]])
    hidden = [place for place, card in enumerate(deck) if card not in seen]
    changed = [*deck]
    for place, other in zip(hidden, data.draw(st.permutations(hidden), "hidden"), strict=True):
        changed[place] = deck[other]
    again = iter(answers)
    other_table = OneDeck(game, tuple(changed), seat)
    try:
        after = [*islice(other_table.observed(lambda _: next(again)), last + 1)]
    except IllegalAnswer:
        reject()  # another seat would have had to do something else

    assert after == before[: last + 1]


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
    seed_test(lambda: arena.aec_env(game), num_cycles=50)


@passes_for_api_test
@pytest.mark.parametrize("seats", [1, 3])
def test_a_game_of_another_package_is_an_environment(
    seats: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_toy(seats, monkeypatch)

    api_test(arena.aec_env(toy_name(seats)), num_cycles=50)


def test_it_takes_few_lines() -> None:
    modules = ("environment.py", "aec_env.py")

    assert sum(len((LAB / name).read_text().splitlines()) for name in modules) <= 280


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

    for action in (2, -1, 1.0, True, np.True_):
        with pytest.raises(UsageError, match="expected an action from 0 to 1, got"):
            env.step(action)
    env.step(np.int64(1))


@pytest.mark.parametrize(
    ("bankroll", "bets"), [(625, range(5, 626, 20)), (8, range(5, 9))], ids=["even steps", "all"]
)
def test_a_range_has_both_ends_and_even_steps_or_every_number(bankroll: int, bets: range) -> None:
    env = arena.aec_env("blackjack", {"bankroll": bankroll})
    env.reset(seed=1)
    # Behind the place that says that there is an answer.
    answers = observed(env)["answers"][:, 1].tolist()

    assert legal(env) == list(range(len(bets)))
    assert answers == [*bets, *[0] * (32 - len(bets))]


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
