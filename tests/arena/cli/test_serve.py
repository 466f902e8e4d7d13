"""How `arena serve` is called; no socket is opened here. What it does is in tests/e2e."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from arena.cli import _serving
from arena.cli._launched_bots import BotNotices, launched
from arena.cli._serving import cache_folder, check_safety
from arena.competitions.config import Config, ServeSection
from arena.competitions.live_arena import LiveArena
from arena.games import GAMES
from arena.hosts.bus import BusAddress
from arena.sandbox.bot_spec import BotSpec
from arena.storage.store import Store
from protocol.errors import UsageError
from protocol.messages import Ending, Limits, Verdict
from tests.support.databases import Server
from tests.support.in_process import Run


class Call(msgspec.Struct):
    """What `arena serve` would have run."""

    plan: Any
    db: str

    @property
    def endpoint(self) -> ServeSection:
        section: ServeSection = self.plan.config.serve
        return section

    @property
    def plans(self) -> list[Any]:
        return [game.plan for game in self.plan.games]

    @property
    def bots(self) -> list[str]:
        return [bot.name for bot in self.plan.bots]


@pytest.fixture
def called(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Call]:
    """Call `arena serve` in a folder of its own; what it would have run."""
    calls: list[Call] = []

    async def record(store: Store, plan: Any, stop: object) -> bool:
        calls.append(Call(plan, Path(str(store.file)).name))
        return False

    monkeypatch.setattr(_serving, "serve", record)
    monkeypatch.delenv("ARENA_PORT", raising=False)
    monkeypatch.chdir(tmp_path)

    def call(*words: str, config: str | None = None) -> Call:
        if config is not None:
            Path("class.toml").write_text(config)
            words = (*words, "--config", "class.toml")
        assert run("serve", *words)[::2] == (0, "")
        return calls.pop()

    return call


def test_without_anything_all_is_as_the_defaults_say(called: Callable[..., Call]) -> None:
    call = called()
    endpoint, plan = call.endpoint, call.plan

    assert (endpoint.host, endpoint.port, call.db) == ("127.0.0.1", 7700, "arena.db")
    assert (plan.config.limits, endpoint.practice) == (Limits(), False)
    assert [plan.limits for plan in call.plans] == [Limits()] * len(GAMES)
    assert [game.least for game in plan.games] == [game.seats for game in GAMES.values()]
    assert (plan.bots, plan.config.runs) == ((), ())
    assert not endpoint.once

    other = called(config="")
    assert [file.name for file in other.plan.hidden] == ["class.toml"]
    assert other.plans == call.plans
    assert other.endpoint == endpoint


def test_the_bus_of_a_file_is_used_and_its_key_is_hidden(
    called: Callable[..., Call], tmp_path: Path
) -> None:
    file = "[bus]\nurl = 'tls://one:4222'\nkey = 'bus/arena.nk'"
    by_file, by_option = called(config=file), called("--bus", "nats://two:4222", config=file)

    key = tmp_path / "bus" / "arena.nk"
    assert by_file.plan.bus == BusAddress("tls://one:4222", key)
    assert by_option.plan.bus == BusAddress("nats://two:4222", key)
    assert key in by_file.plan.hidden
    assert called().plan.bus is None


def test_a_file_changes_the_defaults(called: Callable[..., Call]) -> None:
    call = called(
        *("akq", "gin", "three_card_poker"),
        config="""
        [serve]
        host = "::1"
        port = 1
        db = "class.db"
        players = 5
        matches = 3
        once = true
        practice = true
        [limits]
        bank_ms = 0
        [games.akq]
        hands = 10
        [games.gin]
        target = 30
        [[bot]]
        command = "sh"
        """,
    )

    assert (call.endpoint.host, call.endpoint.port, call.db) == ("::1", 1, "class.db")
    assert (call.plan.config.limits, call.endpoint.practice) == (Limits(bank_ms=0), True)
    assert [game.least for game in call.plan.games] == [5] * 3
    assert call.endpoint.once
    for plan in call.plans:
        assert (plan.matches, plan.limits) == (3, Limits(bank_ms=0))
    akq, gin, poker = call.plans
    assert (akq.settings["hands"], gin.settings["target"]) == (10, 30)
    assert (poker.settings["stake"], poker.settings["goal"]) == (1000, 1125)
    assert (akq.with_itself, gin.with_itself) == (True, False)
    assert call.bots == ["sh"]


def test_options_win_over_the_file(
    called: Callable[..., Call], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = """
        [serve]
        port = 1
        db = "class.db"
        matches = 3
        once = true
        practice = true
        [limits]
        bank_ms = 0
        memory_mib = 64
        [games.gin]
        target = 30
        max_turns = 40
        [[bot]]
        name = "ann"
        command = "sh"
        """
    words = "gin --port 2 --db my.db --matches 4 --no-once --no-practice --bank-ms 7"
    more = ("--set", "target=20", "--bot", "ben=sh")
    call = called(*words.split(), *more, config=config)

    assert (call.endpoint.port, call.db, call.endpoint.practice) == (2, "my.db", False)
    assert call.plan.config.limits == Limits(bank_ms=7, memory_mib=64)
    [gin] = call.plans
    assert (gin.settings["target"], gin.settings["max_turns"]) == (20, 40)
    assert gin.matches == 4
    assert not call.endpoint.once
    assert call.bots == ["ann", "ben"]

    monkeypatch.setenv("ARENA_PORT", "3")
    assert called("gin", config=config).endpoint.port == 3


@pytest.mark.parametrize(
    ("words", "config", "needs_token"),
    [
        ("--host 0.0.0.0", None, True),
        ("--host ::", None, True),
        ("--host 0.0.0.0 --open", None, False),
        ("", '[serve]\nhost = "0.0.0.0"\nopen = true', False),
        ("--host 127.0.0.1", None, False),
        ("--host ::1", None, False),
        ("--host localhost", None, False),
    ],
)
def test_who_comes_from_elsewhere_needs_a_token_unless_all_may_come(
    called: Callable[..., Call], words: str, config: str | None, needs_token: bool
) -> None:
    assert called(*words.split(), config=config).endpoint.requires_token is needs_token


RUNS = """
    [[run]]
    game = "akq"
    [[run]]
    game = "gin"
    name = "cup"
    """


def test_with_runs_only_they_are_played_and_games_that_are_named(
    called: Callable[..., Call],
) -> None:
    call = called(config=RUNS)
    assert [run.name for run in call.plan.config.runs] == ["ace_king_queen", "cup"]
    assert call.plan.games == ()

    call = called("blackjack", config=RUNS)
    assert len(call.plan.config.runs) == 2
    assert [plan.game for plan in call.plans] == ["blackjack"]


def test_bots_of_other_games_are_not_launched(called: Callable[..., Call]) -> None:
    config = "".join(
        f'[[bot]]\ncommand = "sh"\nname = "{game}"\ngame = "{game}"\n'
        for game in ("akq", "gin", "blackjack")
    )
    config += '[[bot]]\ncommand = "sh"\nname = "any"\n'

    assert called("gin", config=config).bots == ["gin", "any"]
    assert len(called(config=config).bots) == 4
    assert called(config=config + RUNS).bots == ["akq", "gin", "any"]


@pytest.mark.parametrize(
    ("ends", "status", "said"),
    [
        (True, 1, "a competition could not be played to its end, see above"),
        (
            KeyboardInterrupt(),
            130,
            "stopped; all matches that were over are in class.db, "
            "and the same command goes on from there",
        ),
    ],
    ids=["a competition that failed", "Ctrl-C"],
)
def test_how_it_ended_is_a_line_and_the_exit_status(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ends: bool | KeyboardInterrupt,
    status: int,
    said: str,
) -> None:
    async def serves(store: Store, plan: Any, stop: object) -> bool:
        if isinstance(ends, KeyboardInterrupt):
            raise ends
        return ends

    monkeypatch.setattr(_serving, "serve", serves)
    monkeypatch.chdir(tmp_path)

    assert run("serve", "--db", "class.db").refusal(status) == said


# --- what is told ---


def verdict(bot: str, kind: Ending, text: str) -> Verdict:
    fixed: dict[str, Any] = {"match": "m", "game": "ace_king_queen", "seat": 0, "bank_ms": 0}
    return Verdict(kind=kind, bot=bot, text=text, limits=Limits(), **fixed)


def test_an_elimination_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    notices = BotNotices()
    text = "memory 312 MiB > 256 MiB (sampled)"
    notices.ruled(verdict("mallory", Ending.MEMORY, text))
    notices.ruled(verdict("carol", Ending.CRASH, "crashed: exit\n\x1b[2Jstatus 1"))
    crashed = verdict("dee", Ending.CRASH, "crashed: exit status 1")
    notices.ruled(msgspec.structs.replace(crashed, stderr="Error: no bet\n\tat Bot.main\n"))

    assert capsys.readouterr() == (
        "",
        "mallory (ace_king_queen) eliminated: memory 312 MiB > 256 MiB (sampled)\n"
        "carol (ace_king_queen) crashed: exit\ufffd\ufffd[2Jstatus 1\n"
        "dee (ace_king_queen) crashed: exit status 1; it said: Error: no bet\n",
    )


def test_what_a_verdict_has_said_is_not_said_again(capsys: pytest.CaptureFixture[str]) -> None:
    notices = BotNotices()
    notices.ruled(verdict("ann", Ending.ILLEGAL, "answered 4"))
    notices.ruled(verdict("ben", Ending.CRASH, "crashed: exit status 1"))
    capsys.readouterr()
    for _ in range(2):
        for name in ("ann", "ben", "carol"):
            notices.ended(name, "crashed: exit status 1; it said: no")

    assert capsys.readouterr().err == (
        "ann has ended: crashed: exit status 1; it said: no\n"
        "carol has ended: crashed: exit status 1; it said: no\n"
    )


def test_matches_go_on_when_nobody_reads_what_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []

    def closed(*words: object, **options: object) -> None:
        told.append(words)
        raise BrokenPipeError

    monkeypatch.setattr("click.echo", closed)
    BotNotices().say("ann has ended")

    assert told == [("ann has ended",)]


def test_what_was_told_lately_is_kept_with_the_latest_matches(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logged: list[str] = []
    notices = BotNotices()
    log = notices.noting(logged.append)
    notices.say("ann has ended")
    for number in range(1_000):
        log(f"match {number}")
    notices.say("ben has\nended")

    first, *matches, last = notices.lines()
    assert first.endswith(" ann has ended"), "a thousand matches do not push it out"
    assert last.endswith(" ben has\ufffdended")
    assert matches == [f"match {number}" for number in range(750, 1_000)]
    assert len(logged) == 1_000
    assert capsys.readouterr().err == "ann has ended\nben has\ufffdended\n"


def test_no_more_is_kept_than_fits_into_a_frame() -> None:
    notices = BotNotices()
    note = notices.noting(lambda line: None)
    for number in range(600):
        notices.say(f"{number:03} " + "x" * 490)
        note("y" * 500)

    lines = notices.lines()
    assert sum(map(len, lines)) <= 200_000
    assert " 599 x" in lines[-2]


def test_a_strategy_in_a_file_is_launched_like_any_bot(called: Callable[..., Call]) -> None:
    Path("ann").mkdir()
    Path("ann/bot.py").write_text("class Bot: ...")
    [entry] = called("akq", config='[[bot]]\ncommand = "ann/bot.py"').plan.bots
    [other] = called("akq", "--bot", "ann/bot.py").plan.bots

    assert entry.name == other.name == "ann"
    assert entry.program.words[1:5] == ("-P", "-m", "bots", "ann/bot.py")
    assert entry.program == other.program


class HostWithABotThatEnds:
    """Launches anything; every bot has ended before it connected."""

    def __init__(self) -> None:
        self.limits = Limits()
        self.ended: dict[str, str] = {}
        self.supervisor = self

    async def launch_program(self, program: object, name: str) -> None:
        self.ended[name] = "it ended with 1"

    async def wait_for_bots(self, names: Iterable[str], within_s: float) -> set[str]:
        return set()

    async def wait_for_change(self) -> None:
        await asyncio.Event().wait()


async def test_a_bot_that_has_ended_is_reported_before_the_block_begins(
    capsys: pytest.CaptureFixture[str],
) -> None:
    notices = BotNotices()
    entry = BotSpec(cast("Any", object()), name="ann")
    async with launched(cast("LiveArena", HostWithABotThatEnds()), [entry], notices):
        assert [line.partition("ann")[2] for line in notices.lines()] == [
            " has ended: it ended with 1"
        ]


NEAR = Config()


@pytest.fixture
def unsafe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_serving, "unsafe_because", lambda limits: ("no isolation: buy one",))


@pytest.mark.usefixtures("unsafe")
def test_an_arena_that_cannot_isolate_takes_no_submissions() -> None:
    with pytest.raises(UsageError, match="not safe on this machine: no isolation: buy one; "):
        check_safety(NEAR, without_isolation=False)


@pytest.mark.usefixtures("unsafe")
def test_on_loopback_it_may_say_what_everybody_could_read() -> None:
    text = check_safety(NEAR, without_isolation=True)

    assert "other students' programs too (no isolation: buy one)" in text


@pytest.mark.parametrize("changes", [{"host": "0.0.0.0"}, {"trusted_proxy": ["127.0.0.1"]}])
def test_without_isolation_nobody_else_may_connect(changes: dict[str, Any]) -> None:
    elsewhere = Config(serve=ServeSection(**changes))

    with pytest.raises(UsageError, match="only where the arena listens on this machine alone"):
        check_safety(elsewhere, without_isolation=True)


def test_where_it_is_safe_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_serving, "unsafe_because", lambda limits: ())

    assert check_safety(NEAR, without_isolation=False) == ""


def test_programs_are_built_beside_the_file_of_the_database(tmp_path: Path) -> None:
    with Store(tmp_path / "class.db") as store:
        assert cache_folder(store) == tmp_path / "class.db-submissions"


def test_of_a_server_s_database_they_are_built_in_the_user_s_cache(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with Store(postgres.url()) as store:
        folder = cache_folder(store)

    assert folder.parent == tmp_path / "card-arena"


@pytest.mark.parametrize("language", ["rust", ""])
def test_a_starter_is_in_a_language_that_there_is(language: str) -> None:
    with pytest.raises(UsageError, match="expected one of python, "):
        _serving._starter("akq", language)


def test_a_starter_says_which_file_is_to_be_changed() -> None:
    made = _serving._starter("akq", "go")

    assert made.edit in made.files
