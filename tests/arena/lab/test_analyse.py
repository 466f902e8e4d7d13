"""`arena.analyse` as a function, and what can be said from matches that were played."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

import arena
from arena.engine.analysis import (
    Analyser,
    Analysing,
    Analysis,
    Chart,
    Figure,
    ProbeMatch,
    SeatMatch,
)
from arena.engine.rules import Game
from arena.games import GAMES
from arena.lab.analyse import watched
from arena.records.seat_matches import seat_match
from protocol.errors import NoAnalysis, UsageError
from protocol.strategy import find
from protocol.vocabulary import News, Question

SETTINGS = GAMES["ace_king_queen"].vocabulary.read_settings({})
HONEST = find("ace_king_queen", "honest")
Made = Callable[..., Game]


class Six:
    """A student's class."""

    game = "ace_king_queen"

    def __init__(self) -> None:
        self.seeds: list[str] = []

    def seed(self, text: str) -> None:
        self.seeds.append(text)

    def decide(self, question: Question[Any]) -> object:
        return question.legal[0]  # type: ignore[attr-defined]

    def hear(self, news: News) -> None: ...

    def reset(self) -> None: ...


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
    path = tmp_path / "mine.py"
    path.write_text(
        "class Mine:\n"
        "    game = 'ace_king_queen'\n"
        "    def decide(self, question): return question.legal[0]\n"
        "    def hear(self, news): pass\n"
        "    def reset(self): pass\n"
    )
    return str(path)


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


def test_a_bot_that_fails_is_named(made: Made) -> None:
    class AnswersRaise(Six):
        def decide(self, question: Question[Any]) -> object:
            return "raise"

    with pytest.raises(
        NoAnalysis, match=r'^AnswersRaise failed: answered "raise" to open; legal: '
    ):
        arena.analyse("akq", "honest", against=[AnswersRaise])


def test_one_line_says_what_is_not_installed(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)

    with pytest.raises(UsageError, match=r"pip install 'card-arena\[analysis\]'"):
        arena.analyse("akq", Six)


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
