"""The place of a bot at the end, in every form of competition."""

from __future__ import annotations

from typing import Any

import pytest

from arena.competitions.final_standings import final_standings
from arena.formats.ladder import LadderRow
from arena.formats.schedule import RankingPlace
from arena.formats.settled import SettledRow
from arena.formats.spec import Form
from arena.formats.standings import LeagueRow, Row
from arena.games.statistics import Bounds
from arena.storage.models import CompetitionReport, CompetitionState
from protocol.messages import Ending, Termination

OUT = Termination(Ending.ILLEGAL, 0, "answered 'raise'")
ROWS: dict[str, Any] = {
    "wins": Row(rank=1, name="ann", played=9, wins=6, mean=1.5, interval=Bounds(0.5, 2.5)),
    "settled": SettledRow(
        rank=2, name="ann", played=40, share=0.645, share_low=0.61, share_high=0.68
    ),
    "share": LeagueRow(rank=1, name="ann", played=200, value=0.52, interval=Bounds(0.45, 0.59)),
    "ladder": LadderRow(rank=3, name="ann", rating=21.25, mu=27.0, sigma=1.9167, played=1),
    "few": Row(rank=1, name="ann", played=1, wins=1, mean=3.0),
    "nothing": Row(rank=None, name="ann"),
    "out": Row(rank=None, name="ann", eliminated=OUT),
}
BEN = Row(rank=4, name="ben", played=9)
ABSENT = Row(rank=None, name="cat", not_there=True)


def report(form: Form, game: str = "ace_king_queen", **parts: Any) -> CompetitionReport:
    return CompetitionReport(
        competition="c-1",
        game=game,
        form=form,
        players=("ann", "ben"),
        state=CompetitionState.FINISHED,
        cross_table={},
        verdicts=(),
        played=1,
        seconds=1.0,
        **({"run": "week 3", "standings": (), "ranking": ()} | parts),
    )


@pytest.mark.parametrize(
    ("row", "form", "game", "text", "score", "interval"),
    [
        (
            *("wins", Form.ROUND_ROBIN, "ace_king_queen"),
            "rank 1 of 2 · 6 wins in 9 matches, score +1.5 [+0.5, +2.5] per match",
            *(1.5, (0.5, 2.5)),
        ),
        (
            *("few", Form.ROUND_ROBIN, "ace_king_queen"),
            "rank 1 of 2 · 1 win in 1 match, score +3.0 (too few) per match",
            *(3.0, None),
        ),
        (
            *("settled", Form.ROUND_ROBIN, "ace_king_queen"),
            "rank 2 of 2 · share won 0.645 [0.610, 0.680] in 40 matches",
            *(0.645, (0.61, 0.68)),
        ),
        (
            *("share", Form.LEAGUE, "three_card_poker"),
            "rank 1 of 2 · reached the goal 52.0 % [45.0 %, 59.0 %] in 200 matches",
            *(0.52, (0.45, 0.59)),
        ),
        (
            *("ladder", Form.LADDER, "ace_king_queen"),
            "rank 3 of 2 · rating 21.2 (mu 27.0, σ 1.9) after 1 match",
            *(21.25, None),
        ),
        ("nothing", Form.ROUND_ROBIN, "ace_king_queen", "no match counts", None, None),
        ("out", Form.ROUND_ROBIN, "ace_king_queen", "out: illegal", None, None),
    ],
)
def test_a_row_of_standings(
    row: str,
    form: Form,
    game: str,
    text: str,
    score: float | None,
    interval: tuple[float, float] | None,
) -> None:
    told = final_standings(report(form, game, standings=(ROWS[row], BEN, ABSENT)), "/#/c/c-1")

    assert {*told} == {"ann", "ben"}
    ann = told["ann"]
    assert (ann.text, ann.score, ann.interval) == (f"week 3 is over · {text}", score, interval)
    assert (ann.rank, ann.players, ann.page) == (ROWS[row].rank, 2, "/#/c/c-1")


def test_K2_a_ranking_of_an_elimination() -> None:
    ranking = (
        RankingPlace(rank=1, names=("ann",), stage=2, score=9),
        RankingPlace(rank=2, names=("ben",), stage=2, score=-9),
        RankingPlace(rank=3, names=("cat", "dan"), stage=1, offence=True),
    )
    told = final_standings(report(Form.ELIMINATION, "high_low", run="", ranking=ranking), None)

    assert {name: (each.rank, each.text) for name, each in told.items()} == {
        "ann": (1, "high_low is over · rank 1 of 4 · final · score +9"),
        "ben": (2, "high_low is over · rank 2 of 4 · final · score -9"),
        "cat": (3, "high_low is over · rank 3 of 4 · reached stage 1 · out"),
        "dan": (3, "high_low is over · rank 3 of 4 · reached stage 1 · out"),
    }
