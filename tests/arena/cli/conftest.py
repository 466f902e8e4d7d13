"""The command line, called in this process or in one of its own, and what the `*.cram` need."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import msgspec
import pytest

from arena.cli import _arena_connection, _lab_runs, _serving, instruct, main, tournament
from arena.competitions.config import ServeSection
from arena.formats.formats import schedule_of
from arena.formats.schedule import Pairing, RankingPlace
from arena.formats.spec import Form, Plan
from arena.formats.standings import Row
from arena.games.catalogue import GAMES
from arena.lab import capacity
from arena.lab.capacity import GameCapacity
from arena.records.mistakes import JudgedDecision, JudgedSeat
from arena.records.seat_document import seat_document
from arena.results import export, match_sums
from arena.sandbox import worker_pool
from arena.storage.live_results import LiveResults
from arena.storage.models import CompetitionReport, CompetitionState
from arena.storage.store import Store
from protocol.errors import ArenaError, Unreachable
from protocol.instructions import HostView, LostBot, TimedVerdict
from protocol.messages import Action, Done, Ending, Instruct, Limits, Progress, Termination, Verdict
from protocol.submitting import EntryOf, Rules, SubmissionList, ToSubmitter, encode_to_submitter
from tests.arena.results.test_match_sums import written
from tests.support import sample_database
from tests.support.analysed import analysing, bluffer_db
from tests.support.cram import write_bot
from tests.support.databases import rows
from tests.support.host_views import host_view
from tests.support.in_process import Ran, Run
from tests.support.judged_toys import install_judged_toy, play_in_pairs, toy_match, toy_record
from tests.support.written_competition import WrittenCompetition, names, offence, plan, play

__all__ = ["Ran", "Run", "analysing", "bluffer_db"]

TRANSCRIPTS = Path(__file__).parents[3] / "protocol" / "vectors" / "transcripts"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write what the *.cram files print now")


@pytest.fixture(autouse=True)
def capable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make terminals capable ones, wherever the tests run."""
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in this process."""

    def call(*argv: str) -> Ran:
        capsys.readouterr()
        status = main(argv)
        return Ran(status, *capsys.readouterr())

    return call


@pytest.fixture
def bot_file(tmp_path: Path) -> Callable[..., str]:
    """Write a student's bot and give its path; `answer` is the expression that it returns."""
    return lambda name="mine.py", **about: write_bot(tmp_path / name, **about)


# ---- What the `*.cram` need: a command that only shows what it was asked, or `class.db`


def _ignored(*_: object, **__: object) -> None:
    pass


def _nothing(*_: object, **__: object) -> None:
    raise AssertionError("nothing may be played or launched")


@pytest.fixture
def nothing_is_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_lab_runs, "run", _nothing)


@pytest.fixture
def tournament_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show what `arena tournament` would have played; the first bot's name says how that ends."""
    ends = {
        "illegal": (Ending.ILLEGAL, "seat 1 answered 4", ""),
        "crash": (Ending.CRASH, "crashed: exit status 1", ""),
        "removed": (Ending.REMOVED, "removed by Eva", "answer in time"),
    }

    async def played(store: Store, plan: Plan, log_file: str | None) -> CompetitionReport:
        told = _changed(plan, Plan(game=plan.game, form=plan.form, players=(), settings={}))
        told["limits"] = _changed(plan.limits, Limits())
        click.echo(msgspec.json.encode(told).decode(), err=True)
        assert store.file is not None, "it is a file"
        THROWN.append(store.file)
        first = plan.players[0]
        if first == "ctrl-c":
            raise KeyboardInterrupt
        verdicts: tuple[Verdict, ...] = ()
        if first in ends:
            kind, text, advice = ends[first]
            about: dict[str, Any] = {"bank_ms": 0, "limits": plan.limits, "advice": advice}
            about["forgiven"] = plan.forgive > 0
            verdicts = (
                Verdict(
                    kind=kind, match="m", game=plan.game, bot=first, seat=0, text=text, **about
                ),
            )
        about = {"run": plan.run, "game": plan.game, "form": plan.form, "players": plan.players}
        row = Row(rank=1, name=first, wins=3, score=7)
        place = RankingPlace(rank=1, names=plan.players, stage=1)
        return CompetitionReport(
            competition="akq-1",
            state=CompetitionState.FINISHED,
            standings=(row,) if plan.form is Form.ROUND_ROBIN else (),
            cross_table={},
            ranking=(place,) if plan.form is Form.ELIMINATION else (),
            verdicts=verdicts,
            played=3,
            seconds=0.5,
            **about,
        )

    monkeypatch.setattr(tournament, "_play", played)


THROWN: list[Path] = []
"""The databases of the tournaments that were called."""


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `arena bench` finds with 2 cores and memory for 7 bots, or as much as FOUND of it."""
    found = (("ace_king_queen", 60.0, 4e4), ("three_card_poker", 54.0, 44_444.4))
    games = (*found, ("high_low", 50.0, 36_000.0))

    async def measure(on_game: Callable[[GameCapacity], None]) -> None:
        count = int(os.environ.get("FOUND", 3))
        for game, server_us, matches in games[:count]:
            about = {"server_us": server_us, "matches_per_hour": matches}
            on_game(GameCapacity(game=game, decisions=1500.0, **about))
        if count < len(games):
            raise KeyboardInterrupt

    monkeypatch.setattr(capacity, "usable_cores", lambda: 2)
    monkeypatch.setattr(capacity, "fitting_bots", lambda limits: 7)
    monkeypatch.setattr(capacity, "measure", measure)
    monkeypatch.setattr(capacity, "most_files", lambda: int(os.environ.get("FILES", 0)) or None)


@pytest.fixture
def every_job_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_REPORT_S", "_ALONE_S", "_WORTH_S"):
        monkeypatch.setattr(worker_pool, name, -1.0)


@pytest.fixture
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state directory of the test's own, `state`."""
    for variable in "XDG_STATE_HOME", "LOCALAPPDATA":
        monkeypatch.setenv(variable, str(tmp_path / "state"))


@pytest.fixture
def too_many_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    game = msgspec.structs.replace(GAMES["ace_king_queen"], decisions=lambda settings: 1e6)
    monkeypatch.setitem(GAMES, game.name, game)


@pytest.fixture
def no_cryptography(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    monkeypatch.delitem(sys.modules, "arena.hosts.bus_setup", raising=False)


@pytest.fixture
def answering_arena(monkeypatch: pytest.MonkeyPatch) -> None:
    """An arena that shows on stderr what it is told, and refuses two competitions."""
    cup = {"competition": "akq-1", "run": "cup", "game": "ace_king_queen", "form": "round_robin"}
    settled = {"state": "running", "settled": 1_250, "scheduled": 2_000, "left_s": 200.0}
    waits_for = ("ann", "ben", "cem", "dora", "eve")
    ladder = Progress("gin-2", "", "gin_rummy", "ladder", "paused", 7, 0, None)
    on = (Progress(**cup, **settled, waits_for=waits_for), ladder)  # type: ignore[arg-type]

    def answer(url: str, message: Instruct) -> Done:
        if message.competition == "refused":
            raise ArenaError("expected a competition that is on (none), got 'refused'")
        if message.competition == "unreachable":
            raise Unreachable(f"no arena answers at {url}: refused")
        if message.match == "3f-2":
            raise ArenaError("expected a match of the latest stage, got '3f-2'")
        told = msgspec.to_builtins(message)
        click.echo(f"{url} { {key: told[key] for key in told if told[key] is not None} }", err=True)
        lines = ("one", "two") if message.action is Action.LOG else ()
        hosts: tuple[HostView, ...] = ()
        lost: tuple[LostBot, ...] = ()
        if message.action is Action.HOSTS:
            hosts = host_view("h1", own_bots=2), host_view("h2", state="silent", why="it is off")
            lost = (LostBot("ann", 4, 9, 0.52),)
        away = tuple(
            TimedVerdict("akq-1", f"3f-{match}", bot, "absent", 1.8e9 + match, "did not come", why)
            for match, bot, why in (
                (1, "ann", ""),
                (1, "ben", ""),
                (2, "cem", ""),
                (3, "eve", "stop"),
            )
        )
        is_quiet = message.since is None or message.competition == "quiet"
        return Done("done", on, (), lines, hosts, lost, () if is_quiet else away)

    monkeypatch.setattr(instruct, "_ask", answer)
    monkeypatch.setenv("ARENA_INSTRUCTOR", "secret")
    monkeypatch.delenv("ARENA_URL", raising=False)


def _changed(struct: msgspec.Struct, default: msgspec.Struct) -> dict[str, Any]:
    """The fields that are not as in another."""
    names = struct.__struct_fields__
    return {
        name: getattr(struct, name)
        for name in names
        if getattr(struct, name) != getattr(default, name)
    }


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show what `arena serve` would have run."""

    async def show(store: Store, plan: Any, stop: object) -> bool:
        section, bus = plan.config.serve, plan.bus
        document = {
            "serve": _changed(section, ServeSection()),
            "needs_token": section.requires_token,
            "limits": _changed(plan.config.limits, Limits()),
            "games": {
                game.plan.game: {"least": game.least, **msgspec.to_builtins(game.plan)}
                for game in plan.games
            },
            "bots": {bot.name: bot.program.words[1:] for bot in plan.bots},
            "runs": [run.name for run in plan.config.runs],
            "bus": None if bus is None else f"{bus.url} {bus.key} {bus.ca}",
            "hidden": [str(file) for file in plan.hidden],
        }
        click.echo(json.dumps(document))
        return False

    monkeypatch.setattr(_serving, "serve", show)
    monkeypatch.delenv("ARENA_PORT", raising=False)


@pytest.fixture
def listing_arena(monkeypatch: pytest.MonkeyPatch) -> None:
    """An arena with two submissions, one of which was refused."""
    entry = EntryOf(
        7, "ann", 3, "ann.zip", "faster", "", 9, "python", "accepted", 1.8e9, None, (), (), ""
    )
    why = (
        f"hello: expected a hello; got the process ended. {'x' * 90} It wrote: no module named 'np'"
    )
    refused = msgspec.structs.replace(entry, submission=8, version=None, state="refused", text=why)
    rules = Rules(None, 9, (), (), None, None, None)
    answers: tuple[ToSubmitter, ...] = (rules, SubmissionList((refused, entry)))
    frames = map(encode_to_submitter, answers)

    @contextmanager
    def connected(url: str, path: str) -> Iterator[Any]:
        yield SimpleNamespace(send=_ignored, recv=lambda *_, **__: next(frames))

    monkeypatch.setattr(_arena_connection, "connected_to", connected)


@pytest.fixture
def transcripts(tmp_path: Path) -> None:
    for name in ("ace_king_queen-1.jsonl", "blackjack-1.jsonl"):
        shutil.copy(TRANSCRIPTS / name, tmp_path)


@pytest.fixture
def blackjack_record(tmp_path: Path) -> None:
    (tmp_path / "record.json").write_bytes(sample_database.play("blackjack").record.to_json())


@pytest.fixture(scope="session")
def sample_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    games = ("ace_king_queen", "three_card_poker", "gin_rummy")
    return sample_database.write(tmp_path_factory.mktemp("sample") / "class.db", games)


@pytest.fixture
def class_db(sample_file: Path, tmp_path: Path) -> None:
    """A finished competition of three games, each with a void match and an offence."""
    shutil.copy(sample_file, tmp_path)


@pytest.fixture
def gone_games(tmp_path: Path) -> Iterator[None]:
    """A database with games of a package that is not installed any more."""
    games = ("ace_king_queen", "three_card_poker", "gin_rummy", "high_low")
    with ExitStack() as stack:
        for game in games:
            stack.enter_context(sample_database.from_outside(game))
        sample_database.write(tmp_path / "class.db", games)
    with ExitStack() as stack:
        for game in games:
            stack.enter_context(sample_database.missing(game))
        yield


@pytest.fixture
def empty_db(tmp_path: Path) -> Iterator[Store]:
    """An open database; what is written in the fixtures that take it can be read at once."""
    with Store(tmp_path / "class.db") as store:
        yield store


def _round_robin(store: Store, id_: str, **more: Any) -> WrittenCompetition:
    course = WrittenCompetition(
        store, plan(Form.ROUND_ROBIN, ("ann", "ben", "cem"), matches=2, **more), id_
    )
    course.plays(1, ("ann", "ben"), (5, -5))
    course.plays(2, ("ann", "cem"), (3, -3))
    return course


def _elimination(store: Store, id_: str, **more: Any) -> None:
    final = WrittenCompetition(store, plan(Form.ELIMINATION, names(4), **more), id_)
    (table,) = next(schedule_of(final.plan))
    final.plays(1, table.players, (4, 3, 2, -9), versions=("v2", "connected", "v1", ""))
    final.ends(ranking=LiveResults(store, final.id).ranking)


@pytest.fixture
def monday_db(empty_db: Store) -> None:
    course = _round_robin(empty_db, "akq-1", run="monday")
    course.plays(3, ("ben", "cem"), (0, 0), offence(1))


@pytest.fixture
def forms_db(empty_db: Store) -> None:
    """The other forms, where versions of bots have played."""
    league = WrittenCompetition(empty_db, plan(Form.LEAGUE, ("ann", "ben")), "tcp-1")
    league.plays(1, ("ann",), (1000,), versions=("v3",))
    ladder = WrittenCompetition(empty_db, plan(Form.LADDER, ("ann", "ben")), "gin-1")
    ladder.plays(2, ("ann", "ben"), (1, 0), versions=("v7", "v8"))
    ladder.plays(1, ("ann", "ben"), (1, 0), versions=("connected", "v9"))
    bracket = WrittenCompetition(empty_db, plan(Form.ELIMINATION, names(9)), "high-low-1")
    first, _ = next(schedule_of(bracket.plan))
    bracket.plays(1, first.players, (4, 3, 2, -9), versions=("connected", "v1", "v2", "v3"))
    _elimination(empty_db, "high-low-2")


@pytest.fixture
def forgiven_db(empty_db: Store) -> None:
    of = plan(Form.ROUND_ROBIN, ("ann", "ben"), matches=3, forgive=1)
    course = WrittenCompetition(empty_db, of, "akq-1")
    course.plays(1, ("ann", "ben"), (4, -4))
    course.plays(2, ("ben", "ann"), (0, 0), offence(0, Ending.CRASH), event="one")
    league = WrittenCompetition(
        empty_db, plan(Form.LEAGUE, ("ann",), matches=3, forgive=1), "tcp-1"
    )
    league.plays(1, ("ann",), (1000,))
    league.plays(2, ("ann",), (-1000,), offence(0, Ending.CRASH), event="one")


@pytest.fixture
def absent_db(empty_db: Store) -> None:
    away = {"not_there": ("zoe",)}
    course = WrittenCompetition(
        empty_db, plan(Form.ROUND_ROBIN, ("ann", "ben", "cem"), **away), "akq-1"
    )
    course.plays(1, ("ben", "ann"), (0, 0), offence(1, Ending.ABSENT))
    course.plays(2, ("cem", "ben"), (0, 0), offence(1, Ending.ABSENT))
    league = WrittenCompetition(empty_db, plan(Form.LEAGUE, ("ann", "ben"), **away), "tcp-1")
    league.plays(1, ("ann",), (1000,))
    _elimination(empty_db, "high-low-1", **away)


@pytest.fixture
def two_courses_db(empty_db: Store) -> None:
    """One competition is over, one goes on, and of one a match counts not."""
    for id_, run in (("akq-1", "monday"), ("akq-2", "friday"), ("akq-3", "sunday")):
        course = WrittenCompetition(
            empty_db, plan(Form.ROUND_ROBIN, ("ann", "ben"), run=run, matches=2), id_
        )
        if id_ == "akq-3":
            course.plays(
                1, ("ann", "ben"), (0, 0), Termination(Ending.VOID, None, "it was stopped")
            )
        course.notes(1, ("ann", "ben"), play(seed=1, hands=4))
        if id_ != "akq-2":
            course.notes(2, ("ben", "ann"), play(seed=2, hands=4))
            course.ends()


@pytest.fixture
def older_db(tmp_path: Path) -> None:
    """A database of before, with three matches."""
    written(str(tmp_path / "class.db"), 3)
    rows(str(tmp_path / "class.db"), "ALTER TABLE matches DROP COLUMN sums")


@pytest.fixture
def judged_toy(monkeypatch: pytest.MonkeyPatch) -> str:
    name = install_judged_toy(monkeypatch).name
    monkeypatch.setitem(sample_database.SHORT, name, {"rounds": 3})
    return name


@pytest.fixture
def in_pairs(judged_toy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A match of the toy is one of pairs, and judging them is slow."""
    play_in_pairs(monkeypatch, GAMES[judged_toy])


@pytest.fixture
def judging_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes when so many matches are judged, and decisions of the next: STOP=2.1."""
    judged: Callable[..., Iterator[JudgedDecision]] = JudgedSeat.judged
    begun: list[int] = []

    def until_then(*args: Any) -> Iterator[JudgedDecision]:
        whole, decisions = map(int, os.environ["STOP"].split("."))
        begun.append(1)
        if len(begun) <= whole:
            yield from judged(*args)
            return
        begun.clear()
        yield from islice(judged(*args), decisions)
        raise KeyboardInterrupt

    monkeypatch.setattr(JudgedSeat, "judged", until_then)


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes while matches are written or measured."""

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    write: Callable[..., Any] = export.export
    monkeypatch.setattr(export, "export", lambda *args: write(*args[:-1], stop))
    monkeypatch.setattr(match_sums, "recompute", stop)


@pytest.fixture
def toy_db(judged_toy: str, empty_db: Store, tmp_path: Path) -> None:
    """Five seats of ben's in four matches, beside a void one; and records in files."""
    game = judged_toy
    planned = sample_database.plan(game, players=("ann", "ben", "cem"), form=Form.ROUND_ROBIN)
    writer = sample_database.SampleWriter(empty_db, planned, f"{game}-00000001")
    writer.finished(Pairing(1, ("ann", "ben")), sample_database.void(game), f"{game}-void")
    for number, (players, bids, cards) in enumerate(
        (
            (("ann", "ben"), (3, 1, 2), "Ah Kd 2s"),
            (("ben", "cem"), (3, 0), "As Kd"),
            (("cem", "ben"), (2, 2), "As Qc"),
            (("ben", "ben"), (0,), "Kd"),
        ),
        start=1,
    ):
        writer.finished(Pairing(number, players), toy_match(game, bids, cards), f"m-{number}")
    empty_db.flush()
    damaged = msgspec.structs.replace(toy_record(game, (3, 0), "As Kd"), answers=("x",))
    for file, record in (
        ("unjudged", toy_record(game, (0,), "2h")),
        ("again", toy_record(game, (3, 0, 3, 0), "As Ad As Ad")),
        ("pairs", toy_record(game, (0, 3, 3, 1, 0, 3), "Ad Kd Qs Jh Ah Kd")),
        ("long", toy_record(game, (0,), "2h", 91)),
        ("damaged", damaged),
    ):
        (tmp_path / f"{file}.json").write_bytes(record.to_json())
    view = seat_document(toy_record(game, (3, 0), "As Kd"), 1, "m", ("ann", "ben"))
    (tmp_path / "view.json").write_bytes(view.to_json())
