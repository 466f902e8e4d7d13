"""`arena analyse`: of house bots and files, from a competition, and what it refuses."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

import arena
from arena.engine.analysis import (
    Analyser,
    Analysing,
    Analysis,
    Certainty,
    Chart,
    Figure,
    ProbeMatch,
    SeatMatch,
)
from arena.formats.spec import Form
from arena.games import GAMES
from arena.storage.store import Store
from protocol.strategy import find
from tests.support.written_competition import WrittenCompetition, plan

Run = Callable[..., Any]
GAME = "ace_king_queen"


def share(name: str, answers: Iterable[Any]) -> Figure:
    bets = [answer == "bet" for answer in answers if answer in ("bet", "check")]
    value = sum(bets) / len(bets)
    return Figure(
        name=name, value=value, unit="bets", certainty=Certainty.PROBED, low=0.0, high=1.0
    )


def probe(settings: Any, seed: int, against: Sequence[str]) -> Analyser:
    """How often each bot bets in a match."""
    figures = []
    for number, name in enumerate(("share", *against)):
        others = (find(GAME, "honest")(),)
        played = yield ProbeMatch(settings=settings, others=others, seed=seed, bot=number)
        figures.append(share(name, (one.answer for one in played.decisions)))
    return Analysis(figures=tuple(figures), asked=settings.hands)


def watch(matches: Iterable[SeatMatch]) -> Analysis:
    return Analysis(figures=(share("share", (d.answer for m in matches for d in m.decisions)),))


class NoHabits:
    def begin(self, settings: Any, seat: int) -> None: ...

    def heard(self, news: Any) -> None: ...

    def decided(self, question: Any, answer: Any) -> None: ...

    def charts(self) -> tuple[Chart, ...]:
        return ()


@pytest.fixture(autouse=True)
def analysing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def give(**more: Any) -> None:
        analysing = Analysing(version=1, probe=probe, watch=watch, **more)
        game = msgspec.structs.replace(
            GAMES[GAME], analysing=analysing, judging=None, habits=NoHabits
        )
        monkeypatch.setitem(GAMES, GAME, game)

    give()
    return give


def test_a_house_bot_is_analysed_and_the_seed_repeats_it(run: Run) -> None:
    text = run("analyse", GAME, "random", "--set", "hands=40", "--seed", "5").text

    assert text.startswith("random in ace_king_queen, 40 answers, seed 5\n")
    assert text == run("analyse", "akq", "random", "--set", "hands=40", "--seed", "5").text


def test_a_file_stands_beside_others(run: Run, bot_file: Callable[..., str]) -> None:
    mine = bot_file()
    command = ["analyse", GAME, mine, "--against", "honest", "--against", "bluffer", "--seed", "5"]

    document = run(*command, "--set", "hands=40", "--json").document

    analysis = document.pop("analysis")
    assert document == {
        "game": GAME,
        "bot": mine,
        "against": ["honest", "bluffer"],
        "settings": {"hands": 40},
        "seed": 5,
        "competition": None,
        "matches": None,
    }
    mine_bets, honest_bets, bluffer_bets = [figure["value"] for figure in analysis["figures"]]
    assert mine_bets == 1
    assert 0 < honest_bets < bluffer_bets < 1
    assert analysis["figures"][0]["certainty"] == "probed"


def test_what_a_bot_prints_does_not_stand_in_the_result(
    run: Run, bot_file: Callable[..., str]
) -> None:
    loud = bot_file(answer="print('hm') or question.legal[0]")

    done = run("analyse", GAME, loud, "--set", "hands=4", "--json")

    assert "hm" not in done.out
    assert "hm" in done.err


def test_a_bot_that_fails_is_said_in_one_line(run: Run, bot_file: Callable[..., str]) -> None:
    mine = bot_file(answer="'raise'")

    refusal = run("analyse", GAME, "honest", "--against", mine).refusal(1)

    assert refusal == f'{mine} failed: answered "raise" to open; legal: bet, check'


def test_settings_are_refused_with_their_reason(run: Run, analysing: Callable[..., None]) -> None:
    analysing(refuses=lambda settings: f"{settings.hands} hands say nothing")

    refusal = run("analyse", GAME, "honest", "--set", "hands=2").refusal(1)

    assert refusal == "2 hands say nothing"


def test_a_bot_that_connects_is_not_asked(run: Run) -> None:
    refusal = run("analyse", GAME, "ann").refusal()

    assert refusal.startswith("no house bot 'ann' for ace_king_queen; expected one of: ")
    assert refusal.endswith(
        "a bot that connects by itself cannot be asked what is made up, see --from"
    )


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "expected one bot: its name, a FILE.py, or a command with --bot"),
        (["honest", "--bot", sys.executable], "expected one bot: "),
        (["honest", "--wall-ms", "5"], "expected limits with --bot only"),
        (["ann", "--from", "a", "--seed", "1"], "expected the name of a bot with --from, and "),
        (["--from", "a"], "expected the name of a bot with --from, and "),
    ],
)
def test_it_is_called_wrong(run: Run, words: list[str], text: str) -> None:
    assert run("analyse", GAME, *words).refusal().startswith(text)


def test_one_line_says_what_is_not_installed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)

    refusal = run("analyse", GAME, "honest").refusal()

    assert refusal == "numpy and scipy are not installed: pip install 'card-arena[analysis]'"


def test_a_terminal_shows_that_it_goes_on(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = run("analyse", GAME, "honest", "--seed", "5", "--json")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)

    shown = run("analyse", GAME, "honest", "--seed", "5", "--json")

    assert quiet.err == ""
    assert "asking honest" in shown.err
    assert "answers" in shown.err
    assert shown.out == quiet.out


def test_ctrl_c_says_how_far_it_came(run: Run, bot_file: Callable[..., str]) -> None:
    stopped = bot_file(answer="exec('raise KeyboardInterrupt')")

    failure = run("analyse", GAME, "honest", "--against", stopped).failure(130)

    assert re.fullmatch(r"interrupted after [1-9][\d,]+ answers", failure)


# ---- From a competition


@pytest.fixture
def db(tmp_path: Path) -> str:
    """Two matches of ann, who always bets, one of them in the second seat; the third is ben's."""
    where = str(tmp_path / "class.db")
    with Store(where) as store:
        competition = WrittenCompetition(store, plan(Form.ROUND_ROBIN, ("ann", "ben", "cem")))
        for number, players in enumerate((("ann", "ben"), ("cem", "ann"), ("ben", "cem"))):
            bots = [find(GAME, "bluffer" if name == "ann" else "honest")() for name in players]
            result = arena.play(GAME, bots, settings={"hands": 20}, seed=number)
            competition.notes(number + 1, players, result)
        competition.ends()
    return where


def test_a_bot_that_played_in_a_competition_is_looked_at(run: Run, db: str) -> None:
    text = run("analyse", GAME, "ann", "--from", "a-competition", "--db", db).text

    assert " answers in 2 matches of a-competition\n" in text
    assert text.startswith("ann in ace_king_queen, ")


def test_only_what_its_own_seat_did_counts(run: Run, db: str) -> None:
    command = ["analyse", GAME, "ann", "--from", "a-comp", "--db", db, "--json"]

    document = run(*command).document

    assert document["competition"] == "a-competition"
    assert (document["matches"], document["seed"]) == (2, None)
    answers = document["analysis"]["asked"]
    assert 20 <= answers <= 40  # it opens twice ten hands, and answers bets in some of the others
    command[2] = "ben"
    ben = run(*command).document["analysis"]["figures"][0]["value"]
    assert ben < document["analysis"]["figures"][0]["value"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            [GAME, "eve", "--from", "a-comp"],
            "'eve' played no match of a-competition; expected one ",
        ),
        (["gin_rummy", "ann", "--from", "a-comp"], "a-competition is a competition in ace_king"),
        ([GAME, "ann", "--from", "another"], ""),
    ],
)
def test_who_is_not_there(run: Run, db: str, words: list[str], text: str) -> None:
    assert run("analyse", *words, "--db", db).refusal().startswith(text)
