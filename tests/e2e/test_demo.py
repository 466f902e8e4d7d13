"""The demo: separate processes, three rogues, all games.

`python -m tests.tools.bare_checkout` plays the whole of it, as the README says.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arena.cli import main
from arena.competitions.competition import Competition
from arena.games.catalogue import GAMES
from arena.games.replay import replay
from arena.lab.demo import DemoGame, demo, field
from arena.storage.store import Store
from protocol.errors import ArenaError
from protocol.messages import Ending
from protocol.strategy import house_bots

pytestmark = pytest.mark.e2e

SMALL = (
    DemoGame(
        game="ace_king_queen", bots=("nash", "honest", "rogue-illegal"), settings={"hands": 100}
    ),
    DemoGame(
        game="three_card_poker",
        bots=("q64", "rogue-crash", "always"),
        settings={"rounds": 30},
        matches=4,
    ),
    DemoGame(
        game="gin_rummy", bots=("random", "simple", "rogue-stall"), settings={"max_rounds": 3}
    ),
)

OTHER = DemoGame(game="blackjack", bots=("simple", "counting"), settings={"hands": 20})


async def test_three_rogues_are_out_for_three_reasons_and_nobody_else_is(tmp_path: Path) -> None:
    path = tmp_path / "demo.db"
    stored: list[int] = []

    def started(title: str, competition: Competition) -> None:
        with Store(path, create=False) as reader:
            stored.append(sum(len(reader.matches(c.id)) for c in reader.competitions()))

    with Store(path) as store:
        reports = await demo(store, SMALL, started)

        kinds = {v.bot: v.kind for report in reports for v in report.verdicts}
        assert kinds == {
            "akq-rogue-illegal": Ending.ILLEGAL,
            "tcp-rogue-crash": Ending.CRASH,
            "gin-rogue-stall": Ending.TIMEOUT,
        }
        assert [report.played for report in reports] == [
            sum(
                match.result.termination.kind is not Ending.VOID
                for match in store.matches(competition.id)
            )
            for competition in store.competitions()
        ]
        assert {verdict.bot for verdict in store.verdicts()} == set(kinds)
        for competition in store.competitions():
            for match in store.matches(competition.id):
                record = store.record(match.id)
                assert replay(record).scores == match.result.scores
                assert match.result.termination.kind in (
                    Ending.COMPLETED,
                    Ending.VOID,
                    *kinds.values(),
                )
        for report in reports:
            assert all(row.rank is not None for row in report.standings[:-1])
            assert report.standings[-1].eliminated is not None
        league = reports[1].standings
        assert [row.played for row in league[:-1]] == [4, 4]

    assert len(stored) == 3
    assert stored == sorted(stored)
    assert stored[1] > 0  # results are there while the next game is played


def test_the_field_has_all_games_and_house_bots_and_three_rogues() -> None:
    contests = {contest.game: contest for contest in field()}

    assert [*contests] == [*GAMES]
    assert [bot for c in contests.values() for bot in c.bots if bot.startswith("rogue")] == [
        "rogue-illegal",
        "rogue-crash",
        "rogue-stall",
    ]
    for game, contest in contests.items():
        assert {*house_bots(game)} <= {*contest.bots}
        assert len(contest.bots) > GAMES[game].seats
        assert contest.settings == GAMES[game].demo.settings


async def test_a_bot_that_does_not_start_is_told_at_once(tmp_path: Path) -> None:
    contests = (DemoGame(game="blackjack", bots=("nobody", "simple"), settings={}),)

    with (
        Store(tmp_path / "demo.db") as store,
        pytest.raises(ArenaError, match="no house bot 'nobody' for blackjack"),
    ):
        await demo(store, contests)


def test_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "kept.db"
    contests = (SMALL[0], OTHER)
    monkeypatch.setattr("arena.lab.demo.field", lambda: contests)
    status = main(["demo", "--json", "--keep", str(path)])
    out, err = capsys.readouterr()

    assert status == 0, err
    competitions = json.loads(out)["competitions"]
    assert {competition["game"] for competition in competitions} == {each.game for each in contests}
    [verdict] = [v for competition in competitions for v in competition["verdicts"]]
    assert (verdict["bot"], verdict["kind"]) == ("akq-rogue-illegal", "illegal")
    assert all(competition["played"] for competition in competitions)
    with Store(path, create=False) as store:
        assert len(store.competitions()) == len(contests)
        assert len(store.verdicts()) == 1
