"""What all strategies of ours share, and what holds of the house bots of every game."""

from __future__ import annotations

import inspect
import random
import re
from collections import Counter
from importlib import import_module
from typing import Any

import pytest

from arena.games.catalogue import GAMES
from arena.lab.in_process import play
from bots import ace_king_queen, blackjack, gin_rummy, high_low, three_card_poker
from bots.strategy import BaseStrategy, RandomMixin, choose
from protocol import blackjack as blackjack_protocol
from protocol import gin_rummy as gin_protocol
from protocol.ace_king_queen import Open, Respond
from protocol.high_low import Swap
from protocol.messages import Ending
from protocol.schema.definitions import our_games
from protocol.strategy import find, house_bots
from protocol.three_card_poker import Play
from protocol.vocabulary import Question, Range
from tests.support.documents import section


def test_choose_takes_each_listed_answer_equally_often() -> None:
    rng = random.Random(1)
    counts = Counter(choose(("a", "b", "c"), rng) for _ in range(3000))

    assert set(counts) == {"a", "b", "c"}
    assert all(abs(count - 1000) < 4 * 26 for count in counts.values())  # √(3000·2/9)


def test_choose_takes_each_integer_of_a_range_both_ends_included() -> None:
    rng = random.Random(1)

    assert {choose(Range(5, 7), rng) for _ in range(100)} == {5, 6, 7}


def seeded(seed: int | str | None) -> list[float]:
    """The numbers that a strategy draws from a source of its own."""
    strategy = BaseStrategy()
    if seed is not None:
        strategy.seed(seed)
    source = strategy.random
    assert strategy.random is source
    return [source.random() for _ in range(3)]


def test_a_seed_makes_a_strategy_repeatable() -> None:
    assert seeded(1) == seeded(1) != seeded("1/0") == seeded("1/0")
    assert seeded(None) != seeded(None)


def test_a_strategy_that_does_not_answer_says_so() -> None:
    with pytest.raises(TypeError, match="BaseStrategy does not answer 'open'"):
        BaseStrategy().decide(Open(1, "A"))


def test_any_question_can_be_answered_at_random() -> None:
    bot = RandomMixin()

    assert {bot.decide(Open(1, "A")) for _ in range(50)} == {"bet", "check"}


_TEN = ("2c", "3c", "4c", "5c", "6c", "7c", "8c", "9c", "Tc", "Jc")
_KNOCK = gin_protocol.TurnAnswer("Kd", True)


@pytest.mark.parametrize(
    ("base", "method", "question"),
    [
        (ace_king_queen.PlayerStrategy, "bet", Open(1, "K")),
        (ace_king_queen.PlayerStrategy, "call", Respond(1, "K")),
        (three_card_poker.PlayerStrategy, "play", Play(("2c", "4d", "9h"), 10, 100)),
        (blackjack.PlayerStrategy, "draw", blackjack_protocol.Draw("7h", ("Tc", "6d"), 16, False)),
        (high_low.PlayerStrategy, "swap", Swap("3c", "9h")),
        (gin_rummy.PlayerStrategy, "will_take_top_discard", gin_protocol.Offer("Kd", _TEN)),
        (gin_rummy.PlayerStrategy, "will_take_top_discard", gin_protocol.Draw("Kd", _TEN)),
        (gin_rummy.PlayerStrategy, "knock", gin_protocol.Turn("Kd", (*_TEN, "Kd"), (_KNOCK,))),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_a_text_in_the_place_of_true_or_false_is_an_error_that_names_the_method(
    base: type[BaseStrategy], method: str, question: Question[Any]
) -> None:
    def bot(returned: object) -> BaseStrategy:
        methods = {"take_turn": lambda self, drawn: drawn, "starter": 0}
        made: BaseStrategy = type(
            "Bot", (base,), {**methods, method: lambda self, *args: returned}
        )()
        return made

    with pytest.raises(TypeError, match=rf"from `{method}` in \S+\.py:\d+, got 'fold'$"):
        bot("fold").decide(question)
    for fine in (True, False, 1):
        bot(fine).decide(question)
    with pytest.warns(UserWarning, match=rf"`{method}` returned None, which is no"):
        bot(None).decide(question)


# ---- House bots

OUR_GAMES = [words.name for words in our_games()]
EACH_GAME = pytest.mark.parametrize("game", OUR_GAMES)


# Another package may have installed its own.
HOUSE_BOTS = {
    game: [
        name
        for name, cls in house_bots(game, slow=True).items()
        if cls.__module__ == f"bots.{game}"
    ]
    for game in OUR_GAMES
}
EACH_BOT = pytest.mark.parametrize(
    ("game", "bot"), [(game, bot) for game, bots in HOUSE_BOTS.items() for bot in bots]
)


@EACH_GAME
def test_the_house_bots_are_those_of_the_manual(game: str) -> None:
    shown = section("House bots", f"protocol/{game}.md")

    assert HOUSE_BOTS[game] == sorted(re.findall(r"^\| `(\w+)` \|", shown, re.MULTILINE))


@EACH_BOT
def test_a_house_bot_is_a_class_without_arguments(game: str, bot: str) -> None:
    cls: Any = house_bots(game, slow=True)[bot]
    is_class = inspect.isclass(cls)

    assert is_class
    assert cls.__module__ == f"bots.{game}"
    assert issubclass(cls, import_module(f"bots.{game}").PlayerStrategy)
    assert cls.game == game
    assert cls() is not cls()
    assert find(game, bot) is cls


def rounds_of(bots: list[Any]) -> int:
    return 1 if any(getattr(bot, "is_slow", False) for bot in bots) else 12


@EACH_BOT
def test_a_house_bot_plays_a_match_legally_against_the_others(game: str, bot: str) -> None:
    rivals = [find(game, name) for name in HOUSE_BOTS[game] if name != bot]
    seats = GAMES[game].seats
    is_slow = rounds_of([find(game, bot)]) == 1  # then the others play against it, in their tests
    for shift in range(len(rivals) if seats > 1 and not is_slow else 1):
        others = (rivals + rivals)[shift : shift + seats - 1]
        bots: list[Any] = [find(game, bot)(), *(cls() for cls in others)]
        for seat, player in enumerate(bots):
            player.seed(seat)
        settings = GAMES[game].rounds(rounds_of(bots))
        result = play(game, bots, settings=settings, seed=shift)

        assert result.termination.kind is Ending.COMPLETED, result.termination.text


@EACH_BOT
def test_a_house_bot_plays_against_itself_and_the_same_again_after_a_reset(
    game: str, bot: str
) -> None:
    bots: list[Any] = [find(game, bot)() for _ in range(GAMES[game].seats)]
    records = []
    for _ in range(2):
        for seat, player in enumerate(bots):
            player.seed(seat)
        result = play(game, bots, settings=GAMES[game].rounds(rounds_of(bots)), seed=1)
        records.append(result.record.to_json())

        assert result.termination.kind is Ending.COMPLETED, result.termination.text
    assert records[0] == records[1], "a reset forgets everything but the randomness"


@pytest.mark.parametrize("name", HOUSE_BOTS["blackjack"])
def test_B14_after_a_riffle_a_house_bot_plays_as_well(name: str) -> None:
    settings = {"hands": 200, "shuffle": "riffle"}
    result = play("blackjack", [find("blackjack", name)()], settings=settings, seed=1)

    assert result.termination.kind is Ending.COMPLETED


@pytest.mark.parametrize("game", OUR_GAMES)
def test_a_question_of_another_game_is_a_mistake_of_the_caller(game: str) -> None:
    strategy = import_module(f"bots.{game}").PlayerStrategy()
    other: Any = Swap("As", "2c") if game == "ace_king_queen" else Open(1, "A")

    with pytest.raises(AssertionError, match="ask nothing else"):
        strategy.decide(other)
