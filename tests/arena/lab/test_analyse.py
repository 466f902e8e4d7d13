"""`arena.analyse` as a function: exact, from matches that were played, or estimated by judged ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec
import pytest

import arena
from arena.games.analysis import (
    Analyser,
    Analysing,
    Analysis,
    Certainty,
    Chart,
    Figure,
    ProbedMatch,
    ProbeMatch,
    SeatMatch,
)
from arena.games.catalogue import GAMES
from arena.games.rules import Game
from arena.lab import estimate
from arena.lab.analyse import begun, watched
from arena.lab.probe import analyse_here, play_probe
from arena.records.seat_document import seat_match
from protocol import strategy as strategies
from protocol.errors import NoAnalysis
from protocol.strategy import find
from protocol.vocabulary import News, Question
from tests.support.answering import Answering
from tests.support.cram import write_bot
from tests.support.judged_toys import install_judged_toy

SETTINGS = GAMES["ace_king_queen"].vocabulary.read_settings({})
HONEST = find("ace_king_queen", "honest")
Made = Callable[..., Game]


class Six(Answering):
    """A student's class."""

    game = "ace_king_queen"

    def __init__(self) -> None:
        super().__init__()
        self.seeds: list[str] = []

    def seed(self, text: str) -> None:
        self.seeds.append(text)


def bets(settings: Any, seed: int, against: Sequence[str]) -> Analyser:
    """Counts how often bots bet in a match, the first one and then each other."""
    figures = []
    for number, name in enumerate(("itself", *against)):
        played = yield ProbeMatch(settings=settings, others=(HONEST(),), seed=seed, bot=number)
        share = sum(decision.answer == "bet" for decision in played.decisions)
        figures.append(Figure(name=name, value=share / settings.hands, unit=f"seed {seed}"))
    return Analysis(figures=tuple(figures))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    """Give the game an analysis of the test's."""

    def make(**more: Any) -> Game:
        game = msgspec.structs.replace(GAMES["ace_king_queen"], **more)
        monkeypatch.setitem(GAMES, game.name, game)
        return game

    make(analysing=Analysing(version=1, probe=bets))
    return make


@pytest.fixture
def file(tmp_path: Path) -> str:
    return write_bot(tmp_path / "mine.py")


def test_a_bot_is_an_object_a_class_a_name_or_a_file(made: Made, file: str) -> None:
    found = [
        arena.analyse("akq", bot, settings={"hands": 40}, seed=3) for bot in (Six(), Six, file)
    ]

    assert found[0] == found[1] == found[2]
    assert found[0].figures[0].value == 0.5
    assert (
        arena.analyse("akq", "honest", settings={"hands": 40}, seed=3).figures != found[0].figures
    )


def test_others_stand_beside_it_by_their_names(made: Made, file: str) -> None:
    found = arena.analyse("akq", Six, against=["honest", Six(), file], settings={"hands": 40})

    assert [figure.name for figure in found.figures] == ["itself", "honest", "Six", file]


def test_a_seed_is_the_analysis_and_the_bots_too(made: Made) -> None:
    bot = Six()

    found = arena.analyse("akq", bot, seed=8)

    assert found.figures[0].unit == "seed 8"
    assert bot.seeds == ["8:0"]
    assert arena.analyse("akq", bot).figures[0].unit != arena.analyse("akq", bot).figures[0].unit


def test_a_game_without_an_analysis_and_a_judge_is_refused(made: Made) -> None:
    made(analysing=None, judging=None)

    with pytest.raises(NoAnalysis, match="no exact value of a bot is known in this game"):
        arena.analyse("akq", Six)


def test_settings_may_be_refused_with_their_reason(made: Made) -> None:
    refusing = Analysing(version=1, probe=bets, refuses=lambda s: f"{s.hands} are too many")
    made(analysing=refusing, judging=None)

    with pytest.raises(NoAnalysis, match=r"^8 are too many$"):
        arena.analyse("akq", Six, settings={"hands": 8})


# ---- From matches


class BetMeter:
    """Counts answers."""

    def __init__(self) -> None:
        self.answers: list[Any] = []

    def begin(self, settings: Any, seat: int) -> None: ...

    def heard(self, news: News) -> None: ...

    def decided(self, question: Question[Any], answer: Any) -> None:
        self.answers.append(answer)

    def charts(self) -> tuple[Chart, ...]:
        return (Chart(title=f"{len(self.answers)}", what="", rows=(), columns=(), cells=()),)


def first_only(matches: Iterable[SeatMatch]) -> Analysis:
    """Looks at the first match alone."""
    seen = len(next(iter(matches)).decisions)
    return Analysis(figures=(Figure(name="seen", value=float(seen)),))


def matches() -> Iterator[SeatMatch]:
    for seed in (1, 2):
        record = arena.play("akq", [Six(), HONEST()], settings={"hands": 10}, seed=seed).record
        yield seat_match(record, 0)


def test_figures_and_charts_come_from_the_same_matches(made: Made) -> None:
    game = made(analysing=Analysing(version=1, probe=bets, watch=first_only), habits=BetMeter)
    all_of_them = [len(match.decisions) for match in matches()]

    found = watched(game, SETTINGS, matches())

    assert found.figures[0].value == all_of_them[0]
    assert found.asked == sum(all_of_them)
    assert found.charts[0].title == str(sum(all_of_them))


def test_charts_are_shown_where_figures_are_refused(made: Made) -> None:
    refusing = Analysing(version=1, probe=bets, watch=first_only, refuses=lambda s: "no value here")
    game = made(analysing=refusing, habits=BetMeter)

    found = watched(game, SETTINGS, matches())

    assert found.figures == (Figure(name="value", value=None, remark="no value here"),)
    assert found.charts


def test_a_game_that_says_nothing_of_bots_is_refused(made: Made) -> None:
    game = made(analysing=Analysing(version=1, probe=bets), habits=None)

    with pytest.raises(NoAnalysis, match="nothing can be said of a bot from its matches"):
        watched(game, SETTINGS, matches())


class Bids(Answering):
    """Bids the same on every card."""

    game = "toy_two"
    most = 3

    def decide(self, question: Any) -> int:
        return self.most


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


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"settings": {"rounds": 91}}, "known in this game, and .*: more than 90 rounds are"),
        ({"settings": {"rounds": 0}}, "with these settings nothing is asked"),
        ({"against": [Bids]}, "in this game; `arena compare` finds out which"),
    ],
)
def test_what_is_not_judged_is_refused(toy: Game, more: dict[str, Any], why: str) -> None:
    with pytest.raises(NoAnalysis, match=why):
        arena.analyse(toy.name, Bids, **more)


def test_without_house_bots_there_is_nobody_to_play_against(
    toy: Game, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimate, "house_bots", lambda game, **_: {})

    with pytest.raises(NoAnalysis, match="there is no house bot to play against"):
        begun(toy, toy.vocabulary.read_settings({}), 4, ())
