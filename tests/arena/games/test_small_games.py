"""The judge of small games that do not say themselves what decisions cost."""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Sequence
from random import Random
from typing import Any

import msgspec
import pytest

from arena.games import analysis, game_tree, small_games
from arena.games.analysis import Judge, Judgement, SeatDecision
from arena.games.catalogue import GAMES
from arena.games.game_tree import GameTree
from arena.games.match import MatchState
from arena.games.rules import AskSeat, Game, Luck, LuckMeter, TellSeat
from arena.games.small_games import judging_of_small
from arena.records.seat_document import seat_match
from tests.support.small_games import LEDUC, Payoffs, UnitSettings, ask, tell, unit_game

Unit = Generator[AskSeat | TellSeat, Any, Payoffs | None]
Deal = Callable[[], Any]


def judge_of(game: Game, seat: int = 0, settings: Any = None) -> Judge:
    judging = judging_of_small(game)
    assert judging is not None
    read = game.vocabulary.read_settings(settings)
    assert judging.refuses(read) is None
    return judging.judge(read, seat)


def refusal(game: Game) -> str | None:
    judging = judging_of_small(game)
    assert judging is not None
    return judging.refuses(UnitSettings())


def judged(judge: Judge, decisions: Sequence[SeatDecision]) -> list[Judgement | None]:
    """What each decision of a seat costs."""
    found = []
    for decision in decisions:
        for news in decision.news:
            judge.heard(news)
        found.append(judge.judged(decision.question, decision.answer))
        judge.decided(decision.question, decision.answer)
    return found


def decisions(
    game: Game, seat: int, answers: Callable[[Any], Any], rounds: int
) -> list[SeatDecision]:
    """What a seat is asked in a match, where all seats answer like that."""
    match = MatchState(game, UnitSettings(rounds), seed=b"a match")
    found: list[SeatDecision] = []
    news: list[Any] = []
    while match.pending is not None:
        news += [told.news for told in match.take_news() if told.seat in (seat, -1)]
        asked = match.pending
        match.answer(answers(asked.question))
        if asked.seat == seat:
            found.append(SeatDecision(asked.question, match.answers[-1], tuple(news)))
            news = []
    return found


def costs(found: Sequence[Judgement | None]) -> list[float | None]:
    return [None if each is None else each.cost for each in found]


@pytest.mark.parametrize("seat", [0, 1])
def test_it_agrees_with_the_evaluator_of_ace_king_queen(seat: int) -> None:
    game, random = GAMES["ace_king_queen"], Random(seat)
    settings = game.vocabulary.read_settings({"hands": 60})
    match = MatchState(game, settings, seed=b"any")
    while match.pending is not None:
        question: Any = match.pending.question
        match.answer(random.choice(question.legal))
    assert game.judging is not None
    played = seat_match(match.result().record, seat).decisions

    ours = judged(judge_of(game, seat, {"hands": 60}), played)
    own = judged(game.judging.judge(settings, seat), played)

    assert len(ours) > 30
    for mine, its in zip(ours, own, strict=True):
        assert mine is not None
        assert its is not None
        assert mine.cost == pytest.approx(its.cost, abs=1e-9)
        fields = ("best", "unit", "is_level", "grade", "error")
        assert [getattr(mine, field) for field in fields] == [
            getattr(its, field) for field in fields
        ]


def test_folding_a_pair_of_kings_in_leduc_costs_what_is_in_the_pot_and_more() -> None:
    def answers(question: Any) -> str:
        return (
            "fold"
            if question.sees[0] == "K" and "fold" in question.legal
            else "raise"
            if "raise" in question.legal
            else "call"
        )

    found = judged(judge_of(LEDUC), decisions(LEDUC, 0, answers, 40))

    worst = max((each for each in found if each is not None), key=lambda each: each.cost)
    assert worst.best in ("raise", "call")
    assert worst.cost > 1
    assert worst.grade == 3
    assert worst.unit == "points"


def rising(number: int, deal: Deal) -> Unit:
    """From the third unit on all is worth ten times as much, which nobody is told."""
    yield tell(str(number), 0) if number == 2 else tell("", 0)
    answer = yield ask(0, "", "take leave", number)
    stake = 10 if number > 2 else 1
    return (stake,) if answer == "take" else (0,)


def test_units_are_judged_as_they_go_after_those_before() -> None:
    game = unit_game(rising, seats=1)

    found = judged(judge_of(game), decisions(game, 0, lambda question: "leave", 4))

    assert costs(found) == [1, 1, 10, 10]
    assert [each.grade for each in found if each] == [3, 3, 3, 3]


def test_copies_judge_what_comes_after_them_alike() -> None:
    game = unit_game(rising, seats=1)
    played = decisions(game, 0, lambda question: "leave", 4)
    judge, copies = judge_of(game), []
    for decision in played:
        copies.append(copy.deepcopy(judge))
        for news in decision.news:
            judge.heard(news)
        judge.decided(decision.question, decision.answer)

    found = [judged(each, [played[at]]) for at, each in reversed(list(enumerate(copies)))]

    assert [costs(one) for one in found] == [[10], [10], [1], [1]]


def late(number: int, deal: Deal) -> Unit:
    """The second unit cannot be listed; what follows it cannot be judged either."""
    while number == 2 and (yield ask(0, "", "on end", number)) == "on":
        pass
    answer = yield ask(0, "", "take leave", number)
    return (int(answer == "take"),)


def test_what_comes_after_a_unit_that_cannot_be_listed_is_not_judged() -> None:
    game = unit_game(late, seats=1)
    played = decisions(game, 0, lambda question: question.legal[-1], 4)

    assert costs(judged(judge_of(game), played)) == [1, None, None, None, None]


def test_a_match_that_the_rules_do_not_play_is_not_judged() -> None:
    game = unit_game(rising, seats=1)
    first, *later = decisions(game, 0, lambda question: "leave", 4)
    judge = judge_of(game)
    strange = ask(0, "something else", "take leave").question

    assert judge.judged(strange, "take") is None
    assert judge.judged(first.question, "steal") is None
    judge.decided(strange, "take")
    assert costs(judged(judge, later)) == [None] * 3


@pytest.mark.parametrize(("brings", "grade"), [(9, 1), (5, 2), (0, 3)])
def test_a_grade_goes_by_the_least_that_can_be_won_or_lost(brings: int, grade: int) -> None:
    def play(number: int, deal: Deal) -> Unit:
        answer = yield ask(0, "", "best other", number)
        deck = deal()
        return (10 if answer == "best" or deck[0] <= "abcdefghi"[brings - 1 : brings] else 0,)

    judge = judge_of(unit_game(play, "abcdefghij", seats=1))

    found = judge.judged(ask(0, "", "best other").question, "other")

    assert found is not None
    assert found.cost == pytest.approx(10 - brings)
    assert found.grade == grade


def test_units_that_go_the_same_way_are_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = []

    class CountedTree(GameTree):
        def __init__(self, game: Game, *rest: Any) -> None:
            listed.append(game)
            super().__init__(game, *rest)

    monkeypatch.setattr(small_games, "GameTree", CountedTree)
    judged(judge_of(LEDUC), decisions(LEDUC, 0, lambda question: question.legal[0], 6))

    assert len(listed) == 2  # one for each seat that may speak first


def test_an_answer_that_is_as_good_as_another_is_level() -> None:
    def play(number: int, deal: Deal) -> Unit:
        answer = yield ask(0, "", "a b c")
        return (int(answer != "c"),)

    game = msgspec.structs.replace(unit_game(play, seats=1), luck=Luck("chip", _NoLuck))
    judge, question = judge_of(game), ask(0, "", "a b c").question

    for answer in "ab":
        assert judge.judged(question, answer) == Judgement(
            cost=0.0, best=answer, unit="chips", is_level=True
        )
    assert judge.judged(question, "c") == Judgement(cost=1.0, best="a", unit="chips", grade=3)


def test_the_best_answer_is_no_mistake_and_nothing_is_level() -> None:
    game = unit_game(rising, seats=1)

    found = judged(judge_of(game), decisions(game, 0, lambda question: "take", 2))

    assert found == [Judgement(cost=0.0, best="take", unit="points")] * 2


class _NoLuck(LuckMeter):
    def __init__(self, settings: Any) -> None:
        self.rounds = []


def free_money(number: int, deal: Deal) -> Unit:
    yield ask(0, "", "x y", number)
    return 1, 1


def test_two_whose_payoffs_do_not_sum_to_0_are_refused() -> None:
    judging = judging_of_small(unit_game(free_money))
    assert judging is not None

    for _ in "twice":
        why = judging.refuses(UnitSettings())
        assert why == "what a round brings the two does not sum to 0"


def thirds(number: int, deal: Deal) -> Unit:
    yield ask(0, "", "x y", number)
    return 0.1 + 0.2, -0.3


def test_payoffs_sum_to_0_but_for_rounding() -> None:
    assert refusal(unit_game(thirds)) is None


def test_trees_of_other_settings_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = []

    class NotedTree(GameTree):
        def __init__(self, game: Game, *rest: Any) -> None:
            listed.append(rest[0])
            super().__init__(game, *rest)

    monkeypatch.setattr(small_games, "GameTree", NotedTree)
    judging = judging_of_small(unit_game(rising, seats=1))
    assert judging is not None
    for rounds in (3, 3, 4, 3):
        assert judging.refuses(UnitSettings(rounds)) is None

    assert listed == [UnitSettings(3), UnitSettings(4), UnitSettings(3)]


def test_too_many_histories_are_refused_with_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(game_tree, "MOST_HISTORIES", 100)

    assert str(refusal(LEDUC)).startswith("a round has about 1,1")
    assert str(refusal(LEDUC)).endswith(" histories, more than 100")


def test_an_equilibrium_that_is_not_found_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failed:
        success, message = False, "numerical difficulties"

    monkeypatch.setattr("scipy.optimize.linprog", lambda *_, **__: Failed)

    assert refusal(LEDUC) == "its equilibrium was not found: numerical difficulties"


def test_two_need_the_extra_analysis_and_one_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "has_analysis", lambda: False)

    assert str(refusal(LEDUC)).startswith("numpy and scipy are not installed")
    assert refusal(unit_game(rising, seats=1)) is None


@pytest.mark.parametrize(
    "game", [unit_game(rising, seats=3), msgspec.structs.replace(LEDUC, unit=None)]
)
def test_games_for_three_or_without_a_unit_are_not_judged(game: Game) -> None:
    assert judging_of_small(game) is None
