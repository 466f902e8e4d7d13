"""A strategy at its seat, and how it is brought back."""

from __future__ import annotations

import json
import random
import runpy
from collections.abc import Callable
from decimal import Decimal
from enum import IntEnum, StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgpack  # type: ignore[import-untyped]
import numpy as np
import pytest

import bots
from arena.lab.in_process import play
from bots.ace_king_queen import Learner
from bots.frames import write_frame
from bots.seat import StrategyFailed, StrategySeat
from bots.strategy import BaseStrategy, RandomMixin
from protocol.ace_king_queen import HandOver, Open
from protocol.blackjack import Bet
from protocol.codec import Encoding, decode_from_bot
from protocol.errors import Malformed
from protocol.gin_rummy import Turn, TurnAnswer
from protocol.messages import Answer, Ask, Ending, Limits, Match, Past, Refused
from protocol.session import SeatStanding
from protocol.strategy import Strategy
from protocol.vocabulary import News, Question, Range
from tests.support.answering import Answering

MATCH = Match("m", "ace_king_queen", 0, ("ann", "ben"), {}, Limits(), "hash")
NEWS = HandOver(1, 0, ("A", "K"), "check", None, (1, -1), (1, -1))


def ask(question: Question[Any], number: int = 1, *news: News) -> Ask:
    return Ask("m", f"m:{number}", question, news, 0, 0)


def past(question: Question[Any], answer: object, *news: News) -> Past:
    return Past("m", "m:1", question, news, answer)


def anew(make: Callable[[], Strategy], seed: str | None = None) -> StrategySeat:
    """A seat whose strategy has missed something."""
    return StrategySeat(MATCH, make, SeatStanding(), seed=seed, is_whole=False)


class NotingStrategy(BaseStrategy):
    """Notes what it is told, and decides by the clock, so to say."""

    def __init__(self) -> None:
        self.noted: list[object] = []

    def decide(self, question: Question[Any]) -> object:
        self.noted.append("decide")
        return "bet"

    def hear(self, news: News) -> None:
        self.noted.append(news.kind)

    def recall(self, question: Question[Any], answer: object) -> None:
        """Hear what it answered before."""
        self.noted.append(answer)


class Indexed:
    """Is a whole number, like NumPy's."""

    def __index__(self) -> int:
        return 5

    def __repr__(self) -> str:
        return "Indexed"


class Chosen(IntEnum):
    FIVE = 5


class Worded(StrEnum):
    FIVE = "5"


FIVES: list[tuple[Any, Any]] = [
    *((five, 5) for five in (5, np.int64(5), np.array(5), Chosen.FIVE, Indexed())),
    *((five, "5") for five in ("5", np.str_("5"), Worded.FIVE, Decimal(5))),
    *((five, 5.0) for five in (5.0, np.float64(5), np.float32(5), Fraction(5))),
    *((one, True) for one in (True, np.bool_(True), np.array(True))),
    *(([5], [5]), (np.array([5]), [5]), ({np.int64(5): np.True_}, {"5": True})),
    *((None, None), (range(5), "<range(0, 5)>"), ({(5,): 5}, "<{(5,): 5}>")),
]


@pytest.mark.parametrize(("given", "sent"), FIVES, ids=repr)
def test_J1_an_answer_is_judged_as_it_would_be_sent(given: Any, sent: Any) -> None:
    """5 is the minimum bet: nothing else is legal, and the advice is that of a referee."""
    bot = Answering(lambda asked: given if type(asked) is Bet else "stand")
    match = play("blackjack", [bot], settings={"hands": 1, "bankroll": 5}, seed=1)
    question = Bet(1, 5, Range(5, 5))
    answer = StrategySeat(MATCH, lambda: bot, SeatStanding()).decide(ask(question))

    for encoding in Encoding:
        frame = write_frame([answer], encoding)
        assert repr(decode_from_bot(frame, encoding)) == repr([Answer("m", "m:1", sent)])
    if type(sent) is int:
        assert match.termination.kind is Ending.COMPLETED
        assert repr(match.record.answers[0]) == "5"
    else:
        assert match.termination.kind is Ending.ILLEGAL
        said = f"seat 1 {question.refusal(sent)}; {question.advice(sent)}"
        assert match.termination.text == said


def test_the_example_in_python_sends_numbers_of_numpy() -> None:
    script = Path(bots.__file__).with_name("examples") / "python" / "session.py"
    session = runpy.run_path(str(script))["Session"]([], None)
    said = {"value": [np.int64(5), np.bool_(True), np.str_("bet"), np.array(["As"]), Indexed()]}

    for session.is_binary, read in ((False, json.loads), (True, msgpack.unpackb)):
        assert read(session.written(said)) == {"value": [5, True, "bet", ["As"], 5]}


def test_who_can_recall_is_told_its_answer_after_the_news() -> None:
    strategy = NotingStrategy()
    seat = anew(lambda: strategy)
    seat.recall(past(Open(2, "K"), "check", NEWS))

    assert strategy.noted == ["hand_over", "check"]
    assert (seat.recalled, seat.strayed) == (1, 0)


def test_an_answer_is_recalled_as_what_it_was() -> None:
    strategy = NotingStrategy()
    hand = tuple("As 2s 3s 4h 5d 6c 7h 8d 9c Th Kd".split())
    legal = (TurnAnswer("Kd"), TurnAnswer("Th"))
    wire = {"discard": "Kd", "knock": False, "melds": None}
    anew(lambda: strategy).recall(past(Turn("Kd", hand, legal), wire))

    assert strategy.noted == [TurnAnswer("Kd")]


def test_who_cannot_recall_decides_once_more() -> None:
    class Decides(NotingStrategy):
        recall = None  # type: ignore[assignment]

    strategy = Decides()
    seat = anew(lambda: strategy)
    seat.recall(past(Open(1, "K"), "bet", NEWS))
    seat.recall(past(Open(2, "K"), "check"))

    assert strategy.noted == ["hand_over", "decide", "decide"]
    assert (seat.recalled, seat.strayed) == (2, 1)


def test_an_answer_that_is_not_legal_this_time_has_strayed() -> None:
    class StraysOnce(BaseStrategy):
        def decide(self, question: Question[Any]) -> object:
            return object()

    seat = anew(StraysOnce)
    seat.recall(past(Open(1, "K"), "bet"))

    assert seat.strayed == 1


def test_a_strategy_that_was_asked_something_new_has_no_past_to_recall() -> None:
    strategy = NotingStrategy()
    seat = anew(lambda: strategy)
    seat.decide(ask(Open(1, "K")))
    seat.recall(past(Open(2, "K"), "check"))
    whole = StrategySeat(MATCH, lambda: strategy, SeatStanding())
    whole.recall(past(Open(2, "K"), "check"))

    assert strategy.noted == ["decide"]


def test_what_was_never_legal_is_no_past() -> None:
    with pytest.raises(Malformed, match='m:1 cannot be of the past: answered "raise"'):
        anew(NotingStrategy).recall(past(Open(1, "K"), "raise"))


def test_a_learner_that_was_brought_back_goes_on_as_if_nothing_had_been() -> None:
    class NotingLearner(Learner):
        """Notes all that it is asked, told and answers."""

        log: list[tuple[list[News], Question[Any], object]]

        def reset(self) -> None:
            super().reset()
            self.log, self._news = [], list[News]()

        def decide(self, question: Question[Any]) -> object:
            answer = super().decide(question)
            self.log.append((self._news, question, answer))
            self._news = []
            return answer

        def hear(self, news: News) -> None:
            super().hear(news)
            self._news.append(news)

    class Wild(RandomMixin):
        def __init__(self) -> None:
            self.seed(7)

    first = NotingLearner()
    first.seed("s:1")
    play("ace_king_queen", [first, Wild()], seed=1, settings={"hands": 300})
    seat = anew(Learner, seed="s:1")
    for news, question, answer in first.log[:150]:
        seat.recall(Past("m", "m:1", question, tuple(news), answer))
    rest = [
        seat.decide(ask(question, number, *news)).value
        for number, (news, question, _) in enumerate(first.log[150:])
    ]

    assert seat.strayed == 0
    assert rest == [answer for _, _, answer in first.log[150:]]
    unseeded = anew(Learner, seed="s:2")
    for news, question, answer in first.log[:150]:
        unseeded.recall(Past("m", "m:1", question, tuple(news), answer))
    assert unseeded.strayed > 0, "the seed matters to it"


@pytest.mark.parametrize("seed", [None, "s:1"])
def test_an_attribute_that_only_happens_to_be_called_seed_is_left_alone(seed: str | None) -> None:
    gardener = NotingStrategy()
    vars(gardener)["seed"] = 5
    seat = StrategySeat(MATCH, lambda: gardener, SeatStanding(), seed=seed)
    seat.decide(ask(Open(1, "K")))

    assert vars(gardener)["seed"] == 5
    assert gardener.noted == ["decide"]


@pytest.mark.parametrize("doing", ["hear", "recall"])
def test_a_strategy_that_raises_at_its_past_has_failed(doing: str) -> None:
    def fails(*_: object) -> None:
        raise KeyError("deck")

    strategy = NotingStrategy()
    setattr(strategy, doing, fails)

    with pytest.raises(StrategyFailed, match="open, brought back from the past: KeyEr"):
        anew(lambda: strategy).recall(past(Open(1, "K"), "bet", NEWS))


def test_ctrl_c_is_not_its_failure() -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    strategy = NotingStrategy()
    strategy.recall = interrupted  # type: ignore[method-assign,assignment]

    with pytest.raises(KeyboardInterrupt):
        anew(lambda: strategy).recall(past(Open(1, "K"), "bet"))


def test_in_practice_any_legal_answer_is_given_in_place_of_one_that_is_not() -> None:
    class UncheckedBet(Question[int], frozen=True, gc=False, tag="bet"):
        legal: Range

    seat = StrategySeat(MATCH, NotingStrategy, SeatStanding())
    seat.decide(ask(UncheckedBet(Range(3, 5))))
    rng = random.Random(1)
    refused = Refused("illegal", "answered 'bet'", "m", "m:1", {"min": 3, "max": 5})
    given = [seat.instead(refused, rng) for _ in range(50)]

    assert {answer.value for answer in given if answer} == {3, 4, 5}
    assert {answer.ask for answer in given if answer} == {"m:1"}
