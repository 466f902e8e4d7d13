"""How `arena tournament` is called and what it shows; what it launches is in tests/e2e."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena.cli import tournament
from arena.formats.schedule import RankingPlace
from arena.formats.spec import Form, Plan
from arena.formats.standings import Row
from arena.storage.models import CompetitionReport
from arena.storage.store import CompetitionState, Store
from protocol.messages import Ending, Limits, Verdict
from tests.support.in_process import Run

BOT = """
from bots.ace_king_queen import Random


class Mine(Random):
    pass
"""


class Called:
    """Stands in for playing: notes the plans, and reports `verdicts` or raises `error`."""

    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self.files: list[Path | None] = []
        self.verdicts: tuple[Verdict, ...] = ()
        self.error: BaseException | None = None

    async def play(self, store: Store, plan: Plan, log_file: str | None) -> CompetitionReport:
        self.plans.append(plan)
        self.files.append(store.file)
        if self.error is not None:
            raise self.error
        row = Row(rank=1, name=plan.players[0], wins=3, score=7)
        place = RankingPlace(rank=1, names=plan.players, stage=1)
        return CompetitionReport(
            competition="akq-1",
            run=plan.run,
            game=plan.game,
            form=plan.form,
            players=plan.players,
            state=CompetitionState.FINISHED,
            standings=(row,) if plan.form is Form.ROUND_ROBIN else (),
            cross_table={},
            ranking=(place,) if plan.form is Form.ELIMINATION else (),
            verdicts=self.verdicts,
            played=3,
            seconds=0.5,
        )


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Called:
    here = Called()
    monkeypatch.setattr(tournament, "_play", here.play)
    monkeypatch.chdir(tmp_path)
    return here


def test_bots_are_named_as_they_are_listed_and_commands_come_after_them(
    run: Run, called: Called
) -> None:
    ran = run(
        *("tournament", "round_robin", "akq", "nash", "random", "nash"),
        *("--bot", "zoe=sh -c x", "--bot", "sh"),
    )

    assert (ran.status, ran.err) == (0, "")
    assert ran.out.splitlines()[1].startswith("tournament · Ace-King-Queen")
    [plan] = called.plans
    assert plan.players == ("nash", "random", "nash-2", "zoe", "sh")
    assert [bot.house for bot in plan.bots] == [*("nash", "random", "nash"), None, None]
    assert plan.bots[3].words == ("sh", "-c", "x")
    assert plan.form is Form.ROUND_ROBIN
    assert (plan.matches, plan.with_itself) == (1, False)


def test_options_are_the_plan(run: Run, called: Called) -> None:
    words = "tournament round_robin akq nash random --matches 3 --split 2 --with-itself"
    ran = run(*words.split(), "--set", "hands=100", "--decision-ms", "50", "--tables", "4")
    assert ran.status == 0, ran.err

    [plan] = called.plans
    assert (plan.matches, plan.with_itself) == (6, True)
    assert plan.settings["hands"] == 50
    assert plan.limits == Limits(decision_ms=50, tables=4)
    assert [bot.tables for bot in plan.bots] == [4, 4]


def test_K3_a_league_has_the_settings_of_a_competition(run: Run, called: Called) -> None:
    words = ("tournament", "league", "tcp", "q64")
    for own in ("--set", "rounds=9"), ("--set", "goal=2000"):
        assert run(*words, *own).status == 0

    short, long = ((plan.settings["rounds"], plan.settings["goal"]) for plan in called.plans)
    assert (short, long) == ((9, 1125), (1000, 2000))


def test_a_bot_in_a_file_plays_from_this_folder_under_a_name_of_its_own(
    run: Run, called: Called, tmp_path: Path
) -> None:
    for folder in (tmp_path, tmp_path / "ann"):
        folder.mkdir(exist_ok=True)
        (folder / "random.py").write_text(BOT)
    bots = ("random.py", "ann/random.py", "random", "../a/random.py")
    (tmp_path.parent / "a").mkdir(exist_ok=True)
    (tmp_path.parent / "a" / "random.py").write_text(BOT)
    ran = run("tournament", "round_robin", "akq", *bots)
    assert ran.status == 0, ran.err

    [plan] = called.plans
    assert plan.players == ("random", "random-2", "random-3", "random-4")
    assert [bot.house for bot in plan.bots] == [None, None, "random", None]
    assert plan.bots[0].folder == str(tmp_path.resolve())
    assert "random.py" in plan.bots[0].words
    assert str((tmp_path.parent / "a" / "random.py").resolve()) in plan.bots[3].words


def test_teams_of_an_elimination(run: Run, called: Called) -> None:
    bots = ("random", "random", "random", "random", "random")
    teams = ("--team", "random=red", "--team", "random-2=red")
    ran = run("tournament", "elimination", "high_low", *bots, *teams)

    assert ran.status == 0, ran.err
    assert called.plans[0].teams == {"random": "red", "random-2": "red"}
    assert "reached stage" in ran.out


WITH_ZOE = ("tournament", "round_robin", "akq", "random", "--bot", "zoe=sh")


def verdict_on_zoe(kind: Ending, text: str, **more: Any) -> Verdict:
    seat: dict[str, Any] = {"game": "ace_king_queen", "match": "m", "seat": 0, "bot": "zoe"}
    return Verdict(kind=kind, text=text, bank_ms=0, limits=Limits(), **seat, **more)


def test_a_bot_that_was_eliminated_is_the_exit_status(run: Run, called: Called) -> None:
    called.verdicts = (verdict_on_zoe(Ending.ILLEGAL, "seat 1 answered 4"),)
    ran = run(*WITH_ZOE)

    assert ran.failure() == "eliminated: zoe (illegal)"
    assert "zoe eliminated: seat 1 answered 4 (illegal)" in ran.out

    ran = run(*WITH_ZOE, "--json")
    assert ran.status == 1
    document = msgspec.json.decode(ran.out)
    assert [verdict["bot"] for verdict in document["verdicts"]] == ["zoe"]


def test_J3_a_bot_that_was_forgiven_is_no_failure(run: Run, called: Called) -> None:
    text = "crashed: exit status 1"
    called.verdicts = (verdict_on_zoe(Ending.CRASH, text, forgiven=True),)
    out = run(*WITH_ZOE, "--forgive", "1").text

    assert "zoe lost this match and plays on: crashed: exit status 1" in out
    assert called.plans[0].forgive == 1


@pytest.mark.parametrize(("advice", "lines"), [("", []), ("answer in time", ["  answer in time"])])
def test_under_a_verdict_is_its_advice_if_it_has_one(
    run: Run, called: Called, advice: str, lines: list[str]
) -> None:
    verdict = verdict_on_zoe(Ending.REMOVED, "removed by Eva", advice=advice)
    called.verdicts = (verdict,)
    said = run(*WITH_ZOE).out.splitlines()

    assert said[-1 - len(lines) :] == [f"zoe {verdict.headline} (removed)", *lines]


def test_json_is_the_document_of_a_competition(run: Run, called: Called) -> None:
    document = run("tournament", "round_robin", "akq", "random", "random", "--json").document

    assert document["form"] == "round_robin"
    assert document["players"] == ["random", "random-2"]
    assert document["standings"][0]["wins"] == 3


def test_ctrl_c_says_whether_it_can_be_gone_on_with(run: Run, called: Called) -> None:
    called.error = KeyboardInterrupt()
    words = ("tournament", "round_robin", "akq", "random", "random")

    assert run(*words).refusal(130) == (
        "interrupted, all bots are stopped; with --db it could be gone on with"
    )
    assert run(*words, "--db", "x.db").refusal(130) == (
        "interrupted, all bots are stopped; the same command goes on from there, x.db"
    )


def test_without_db_the_results_are_thrown_away(run: Run, called: Called, tmp_path: Path) -> None:
    words = ("tournament", "round_robin", "akq", "random", "random")
    run(*words)
    run(*words, "--db", "mine.db")

    thrown, kept = called.files
    assert thrown is not None
    assert not thrown.parent.exists()
    assert kept == Path("mine.db")
    assert kept.exists()
