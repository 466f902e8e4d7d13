"""How `arena serve` is called; no socket is opened here. What it does is in tests/e2e."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from arena.cli import _serving
from arena.cli._launched_bots import BotNotices, launched
from arena.cli._serving import cache_folder, check_safety, page_at, urls_for_others
from arena.competitions.config import Config, ServeSection
from arena.competitions.live_arena import LiveArena
from arena.formats.schedule import Pairing
from arena.games.match import Result
from arena.sandbox.bot_spec import BotSpec
from arena.storage.store import Store
from protocol.errors import UsageError
from protocol.messages import Ending, Limits, Termination, Verdict
from tests.support.databases import Server
from tests.support.in_process import Run

if TYPE_CHECKING:
    from arena.competitions.ledger import Ledger


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
    notices.verdict_given(verdict("mallory", Ending.MEMORY, text))
    notices.verdict_given(verdict("carol", Ending.CRASH, "crashed: exit\n\x1b[2Jstatus 1"))
    crashed = verdict("dee", Ending.CRASH, "crashed: exit status 1")
    notices.verdict_given(msgspec.structs.replace(crashed, stderr="Error: no bet\n\tat Bot.main\n"))

    assert capsys.readouterr() == (
        "",
        "mallory (ace_king_queen) eliminated: memory 312 MiB > 256 MiB (sampled)\n"
        "carol (ace_king_queen) crashed: exit\ufffd\ufffd[2Jstatus 1\n"
        "dee (ace_king_queen) crashed: exit status 1; it said: Error: no bet\n",
    )


def test_what_a_verdict_has_said_is_not_said_again(capsys: pytest.CaptureFixture[str]) -> None:
    notices = BotNotices()
    notices.verdict_given(verdict("ann", Ending.ILLEGAL, "answered 4"))
    notices.verdict_given(verdict("ben", Ending.CRASH, "crashed: exit status 1"))
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
    BotNotices().told("ann has ended")

    assert told == [("ann has ended",)]


def test_what_was_told_lately_is_kept_with_the_latest_matches(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logged: list[str] = []
    notices = BotNotices(log=logged.append)
    notices.told("ann has ended")
    for number in range(1_000):
        finish(notices, Pairing(number, ("ann", "ben")), VOID)
    notices.told("ben has\nended")

    first, *matches, last = notices.lines()
    assert first.endswith(" ann has ended"), "a thousand matches do not push it out"
    assert last.endswith(" ben has\ufffdended")
    assert matches == logged[750:]
    assert matches[-1].endswith(" akq-1 999 m ann 0, ben 0 · void: it was stopped")
    assert len(logged) == 1_000
    assert capsys.readouterr().err == "ann has ended\nben has\ufffdended\n"


VOID = Result((0, 0), (0, 0), Termination(Ending.VOID, None, "it was stopped"))


def finish(notices: BotNotices, pairing: Pairing, result: Result) -> None:
    notices.match_finished(cast("Ledger", SimpleNamespace(id="akq-1")), "m", pairing, result)


def test_the_line_of_a_match_says_who_has_ended_it() -> None:
    notices = BotNotices()
    out = Result((3, -3), (0, 0), Termination(Ending.CRASH, 1, "crashed"))
    finish(notices, Pairing(7, ("ann", "ben")), out)

    assert notices.lines()[0].endswith(" akq-1 7 m ann +3, ben -3 · crash: ben crashed")


def test_no_more_is_kept_than_fits_into_a_frame() -> None:
    notices = BotNotices()
    long = "y" * 64, "z" * 400
    for number in range(600):
        notices.told(f"{number:03} " + "x" * 490)
        finish(notices, Pairing(number, long), VOID)

    lines = notices.lines()
    assert sum(map(len, lines)) <= 200_000
    assert " 599 x" in lines[-2]


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


@pytest.fixture
def unsafe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_serving, "unsafe_because", lambda limits: ("no isolation: buy one",))


@pytest.mark.usefixtures("unsafe")
@pytest.mark.parametrize(
    ("serve", "without_isolation", "why"),
    [
        ({}, False, "not safe on this machine: no isolation: buy one; "),
        ({"host": "0.0.0.0"}, True, "only where the arena listens on this machine alone"),
        ({"trusted_proxy": ["::1"]}, True, "only where the arena listens on this machine alone"),
    ],
)
def test_an_arena_that_cannot_isolate_takes_no_submissions(
    serve: dict[str, Any], without_isolation: bool, why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        check_safety(Config(serve=ServeSection(**serve)), without_isolation=without_isolation)


@pytest.mark.parametrize(("reasons", "says"), [((), ""), (("no cure",), "programs too (no cure)")])
def test_on_loopback_it_says_what_everybody_could_read(
    reasons: tuple[str, ...], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_serving, "unsafe_because", lambda limits: reasons)

    text = check_safety(Config(), without_isolation=bool(reasons))
    assert says in text
    assert bool(text) == bool(says)


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


# --- where it is found ---


@pytest.mark.parametrize(
    ("listens", "name", "v4", "reached"),
    [
        ("ws://0.0.0.0:7700", "desk", "10.1.2.3", ("ws://desk:7700", "ws://10.1.2.3:7700")),
        ("wss://0.0.0.0:81", "desk", "10.1.2.3", ("wss://desk:81", "wss://10.1.2.3:81")),
        ("ws://[::]:7700", "desk", "10.1.2.3", ("ws://desk:7700", "ws://[fd00::7]:7700")),
        ("ws://:7700", "desk", "10.1.2.3", ("ws://desk:7700", "ws://10.1.2.3:7700")),
        ("ws://0.0.0.0:1", "desk", "", ("ws://desk:1",)),
        ("ws://0.0.0.0:1", "localhost.localdomain", "10.1.2.3", ("ws://10.1.2.3:1",)),
        ("ws://0.0.0.0:1", "localhost", "", ()),
        # On one interface the arena's own address is enough.
        ("ws://127.0.0.1:7700", "desk", "10.1.2.3", ()),
        ("ws://[::1]:1", "desk", "10.1.2.3", ()),
        ("ws://10.1.2.3:1", "desk", "10.1.2.3", ()),
        ("wss://arena.school:1", "desk", "10.1.2.3", ()),
    ],
)
def test_others_reach_it_by_this_machines_name_and_address(
    monkeypatch: pytest.MonkeyPatch, listens: str, name: str, v4: str, reached: tuple[str, ...]
) -> None:
    addresses = {socket.AF_INET: v4, socket.AF_INET6: "fd00::7"}
    monkeypatch.setattr(socket, "gethostname", lambda: name)
    monkeypatch.setattr(_serving, "_outward", addresses.__getitem__)

    assert urls_for_others(listens) == reached


def test_the_address_that_leads_out_is_one_that_can_be_listened_on() -> None:
    address = _serving._outward(socket.AF_INET)
    with socket.socket() as here:
        here.bind((address, 0))
        bound, _ = here.getsockname()

    assert bound == (address or "0.0.0.0"), "it is empty on a machine without a network"


@pytest.mark.parametrize(
    ("url", "page"),
    [
        ("ws://127.0.0.1:7700", "http://127.0.0.1:7700"),
        ("wss://arena.example.org:7700", "https://arena.example.org:7700"),
        ("ws://[::1]:7700", "http://[::1]:7700"),
        ("ws://0.0.0.0:7700", "http://localhost:7700"),
        ("wss://[::]:7700", "https://localhost:7700"),
        ("ws://127.0.0.1:7700/arena/", "http://127.0.0.1:7700/arena/"),
        ("wss://0.0.0.0:7700/arena/", "https://localhost:7700/arena/"),
    ],
)
def test_a_browser_on_this_machine_finds_the_page(url: str, page: str) -> None:
    assert page_at(url) == page
