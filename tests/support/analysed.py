"""A game of ours whose analysis is a toy: how often each bot bets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

import arena
from arena.formats.spec import Form
from arena.games.analysis import (
    Analyser,
    Analysing,
    Analysis,
    Certainty,
    Chart,
    Figure,
    ProbeMatch,
    SeatMatch,
)
from arena.games.catalogue import GAMES
from arena.storage.store import Store
from protocol.strategy import find
from tests.support.written_competition import WrittenCompetition, plan

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


@pytest.fixture
def analysing(monkeypatch: pytest.MonkeyPatch) -> None:
    analysing = Analysing(version=1, probe=probe, watch=watch)
    game = msgspec.structs.replace(GAMES[GAME], analysing=analysing, judging=None, habits=NoHabits)
    monkeypatch.setitem(GAMES, GAME, game)


@pytest.fixture
def bluffer_db(tmp_path: Path) -> None:
    """Two matches of ann, who always bets, one of them in the second seat; the third is ben's."""
    where = str(tmp_path / "class.db")
    with Store(where) as store:
        competition = WrittenCompetition(store, plan(Form.ROUND_ROBIN, ("ann", "ben", "cem")))
        for number, players in enumerate((("ann", "ben"), ("cem", "ann"), ("ben", "cem"))):
            bots = [find(GAME, "bluffer" if name == "ann" else "honest")() for name in players]
            result = arena.play(GAME, bots, settings={"hands": 20}, seed=number)
            competition.notes(number + 1, players, result)
        competition.ends()
