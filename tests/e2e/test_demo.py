"""The demo: separate processes, three rogues, all games.

`python -m tests.tools.bare_checkout` plays the whole of it, as the README says.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from arena.competitions.competition import Competition
from arena.games.catalogue import GAMES
from arena.games.replay import replay
from arena.lab import demo
from arena.lab.demo import DemoGame, field
from arena.storage.store import Store
from protocol.errors import ArenaError
from protocol.messages import Ending
from protocol.strategy import house_bots
from tests.support.in_process import run_here

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
ROGUES = {
    "akq-rogue-illegal": Ending.ILLEGAL,
    "tcp-rogue-crash": Ending.CRASH,
    "gin-rogue-stall": Ending.TIMEOUT,
}


def test_three_rogues_are_out_for_three_reasons_and_nobody_else_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kept.db"
    stored: list[int] = []
    play = demo.demo

    async def watched(store: Store, contests: Any, on_start: Any) -> object:
        def begun(title: str, competition: Competition) -> None:
            with Store(path, create=False) as reader:
                stored.append(sum(len(reader.matches(c.id)) for c in reader.competitions()))
            on_start(title, competition)

        return await play(store, contests, begun)

    monkeypatch.setattr(demo, "field", lambda: SMALL)
    monkeypatch.setattr(demo, "demo", watched)
    done = run_here("demo", "--json", "--keep", str(path))
    assert done.status == 0, done.err
    reports = json.loads(done.out)["competitions"]

    assert [report["game"] for report in reports] == [each.game for each in SMALL]
    assert {v["bot"]: v["kind"] for report in reports for v in report["verdicts"]} == ROGUES
    with Store(path, create=False) as store:
        assert {verdict.bot for verdict in store.verdicts()} == {*ROGUES}
        for report, competition in zip(reports, store.competitions(), strict=True):
            matches = store.matches(competition.id)
            kinds = [match.result.termination.kind for match in matches]
            assert report["played"] == sum(kind is not Ending.VOID for kind in kinds)
            assert {*kinds} <= {Ending.COMPLETED, Ending.VOID, *ROGUES.values()}
            for match in matches:
                assert replay(store.record(match.id)).scores == match.result.scores
    for report in reports:
        *others, last = report["standings"]
        assert all(row["rank"] is not None for row in others)
        assert last["eliminated"] is not None
    assert [row["played"] for row in reports[1]["standings"][:-1]] == [4, 4]
    assert len(stored) == 3
    assert stored == sorted(stored)
    assert stored[1] > 0  # results are there while the next game is played


def test_the_field_has_all_games_and_house_bots_and_three_rogues() -> None:
    contests = {contest.game: contest for contest in field()}

    assert [*contests] == [*GAMES]
    rogues = [bot for each in contests.values() for bot in each.bots if bot.startswith("rogue")]
    assert rogues == ["rogue-illegal", "rogue-crash", "rogue-stall"]
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
        await demo.demo(store, contests)
