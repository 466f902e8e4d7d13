"""What a bot gives away where nothing is exact: judged matches against the house bots."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import Any

import msgspec
import pytest

import arena
from arena.engine.analysis import Analysing, Certainty, ProbedMatch, ProbeMatch
from arena.engine.rules import Game
from arena.games import GAMES
from arena.lab import estimate
from arena.lab.analyse import begun
from arena.lab.probe import analyse_here, play_probe
from protocol import strategy as strategies
from protocol.errors import NoAnalysis
from tests.support.judged_toys import install_judged_toy


class Bids:
    """Bids the same on every card."""

    game = "toy_two"
    most = 3

    def decide(self, question: Any) -> int:
        return self.most

    def hear(self, news: Any) -> None: ...

    def reset(self) -> None: ...


class BidsNothing(Bids):
    most = 0


class BidsOnRed(Bids):
    def decide(self, question: Any) -> int:
        return 3 if question.card[1] in "hd" else 0


HOUSE = {"bids": Bids, "nothing": BidsNothing, "on_red": BidsOnRed}


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Game:
    """Bids of 3 with a red card and of 0 with a black one are best; a 2 is not judged."""
    monkeypatch.setattr(strategies, "house_bots", lambda game, **_: HOUSE)
    monkeypatch.setattr(estimate, "house_bots", lambda game, **_: HOUSE)
    return install_judged_toy(monkeypatch)


@pytest.fixture
def changed(toy: Game, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Game]:
    def change(**more: Any) -> Game:
        game = msgspec.structs.replace(toy, **more)
        monkeypatch.setitem(GAMES, game.name, game)
        return game

    return change


def test_it_is_the_mean_of_what_was_given_away_in_each_round(toy: Game) -> None:
    played: list[ProbedMatch] = []
    settings = toy.vocabulary.read_settings({})

    found = analyse_here(toy, begun(toy, settings, 4, ()), [Bids()], played.append)

    cards = [decision.question.card for match in played for decision in match.decisions]  # type: ignore[attr-defined]
    lost = [3 if card[0] != "2" and card[1] in "cs" else 0 for card in cards]  # it always bids 3
    given_away, value = found.figures
    assert given_away.value == pytest.approx(fmean(lost))
    assert given_away.unit == "chips a round"
    assert given_away.certainty is Certainty.ESTIMATE
    assert given_away.low is not None
    assert given_away.high is not None
    assert 0 < given_away.low < fmean(lost) < given_away.high < 3
    assert f"from {len(lost)} rounds against bids, nothing, on_red." in given_away.remark
    assert (value.value, value.remark) == (None, "no exact value of a bot is known in this game")
    [weakness] = found.weaknesses
    assert weakness.cost == pytest.approx(given_away.value)
    judged = sum(card[0] != "2" for card in cards)
    assert weakness.played == f"{lost.count(3)} mistakes in {judged} decisions"
    assert found.asked == len(cards)
    [chart] = found.charts
    assert [row[0].count for row in chart.cells if row[0]] == [0, 0, 0, len(cards)]


class BidsAsWell(Bids):
    """With it there are twice as many house bots as seats."""


def test_it_plays_against_every_house_bot_in_both_seats(
    toy: Game, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = toy.vocabulary.read_settings({})
    house: dict[str, type[Any]] = {**HOUSE, "as_well": BidsAsWell}
    monkeypatch.setattr(strategies, "house_bots", lambda game, **_: house)
    monkeypatch.setattr(estimate, "house_bots", lambda game: house)
    seats: dict[type[Any], set[int]] = {cls: set() for cls in house.values()}
    analyser = begun(toy, settings, 4, ())
    probe: ProbeMatch = next(analyser)
    for _ in range(23):
        seats[type(probe.others[0])].add(probe.seat)
        probe = analyser.send(play_probe(toy, probe, Bids()))

    assert all(taken == {0, 1} for taken in seats.values())


def test_a_bot_without_mistakes_gives_nothing_away(toy: Game) -> None:
    found = arena.analyse(toy.name, BidsOnRed, seed=4)

    assert found.figures[0].value == 0
    assert found.figures[0].low is None  # so few values say nothing of how far they spread
    assert found.weaknesses == ()


def test_a_seed_repeats_it(toy: Game) -> None:
    assert arena.analyse(toy.name, Bids, seed=4) == arena.analyse(toy.name, Bids, seed=4)
    assert arena.analyse(toy.name, Bids, seed=4) != arena.analyse(toy.name, Bids, seed=5)


def test_few_matches_are_played_where_judging_is_slow(changed: Callable[..., Game]) -> None:
    toy = changed()
    assert toy.judging is not None
    slow = changed(judging=msgspec.structs.replace(toy.judging, is_slow=True))

    assert arena.analyse(slow.name, Bids, seed=4).asked == 90  # 3 matches against each of 3


def test_the_reason_of_the_game_says_why_it_is_no_value(changed: Callable[..., Game]) -> None:
    refusing = Analysing(
        version=1, probe=lambda *_: pytest.fail("it refuses"), refuses=lambda s: "of two"
    )
    game = changed(analysing=refusing, habits=None)

    found = arena.analyse(game.name, Bids, seed=4)

    assert (found.figures[1].value, found.figures[1].remark) == (None, "of two")
    assert found.charts == ()


def test_what_is_not_judged_is_refused(toy: Game) -> None:
    with pytest.raises(NoAnalysis, match=r"known in this game, and .*: more than 90 rounds are"):
        arena.analyse(toy.name, Bids, settings={"rounds": 91})


def test_where_nothing_is_asked_nothing_is_said(toy: Game) -> None:
    with pytest.raises(NoAnalysis, match="with these settings nothing is asked"):
        arena.analyse(toy.name, Bids, settings={"rounds": 0})


def test_others_are_compared_elsewhere(toy: Game) -> None:
    with pytest.raises(NoAnalysis, match="in this game; `arena compare` finds out which"):
        arena.analyse(toy.name, Bids, against=[Bids])


def test_without_house_bots_there_is_nobody_to_play_against(
    toy: Game, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimate, "house_bots", lambda game, **_: {})

    with pytest.raises(NoAnalysis, match="there is no house bot to play against"):
        begun(toy, toy.vocabulary.read_settings({}), 4, ())
