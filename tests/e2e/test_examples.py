"""The examples of `bots/examples`: built as their READMEs say, checked, and in competitions.

Every folder is copied and built once in a run, all at the same time. The README says behind
`arena check --` how to start an example: one that can use a WebSocket and lines is two bots. A
language that is not installed is skipped. Where `CI` is set that is a failure, because `.ci/run`
installs them all.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from string import Template
from typing import NamedTuple

import pytest
from websockets.asyncio.server import ServerConnection, serve

from arena.authoring.conformance import CheckReport, Step, StepStatus
from arena.authoring.conformance.bot import BotUnderTest
from arena.authoring.conformance.run import run as check_run
from arena.competitions.live_arena import LiveArena
from arena.competitions.process_pool import SeatBot
from arena.formats.spec import plan_of
from arena.games.catalogue import GAMES
from arena.sandbox.command import Program
from arena.sandbox.languages import LIBRARIES
from arena.sandbox.launcher import bot_command, read_program
from arena.server.listener import Certificate
from arena.storage.models import CompetitionReport
from arena.storage.store import Store
from protocol.codec import Encoding
from protocol.messages import Ending, Limits
from protocol.strategy import house_bots
from tests.e2e.test_tls import make as certify
from tests.support.gateway_bots import Message, in_arena_with
from tests.support.long import LONG, sized
from tests.support.needs import found, make_options, missing, skip_without
from tests.support.submitted_arena import submitted_arena

pytestmark = [pytest.mark.e2e, pytest.mark.shares_processes, pytest.mark.timeout(1_000)]

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "bots" / "examples"
BUILD_S = 900.0  # C++ takes ten seconds, on a loaded machine many times that
TIMEOUT_S = 600.0  # of all competitions or all checks, which take half a minute of CPU time
CHECKS_AT_ONCE = 6  # part of a check is waiting
ROUNDS = 4  # of each game, in a check

NEEDS = {
    "python": (),
    "javascript": ("node",),
    "java": ("make", "javac", "gson"),
    "cpp": ("make", "g++", "boost", "nlohmann"),
    "go": ("make", "go", "gorilla"),
    "bash": ("bash", "jq"),
}
"""Names of tests/support/needs.py."""

DEAD_PROXY = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), "http://127.0.0.1:9")
"""In the environment of all, as their arenas are on this machine."""

BOTH_WAYS = {"java", "cpp"}
LINES_ONLY = {"bash"}

BUILT = "node_modules venv build bot bot_test *.o *.d *.jar *.class __pycache__ .*".split()
"""What somebody may have built in the folders themselves."""

# Virtual machines take a second to be warm, and a loaded machine longer to give it.
LIMITS = Limits(decision_ms=4_000, bank_ms=20_000, hard_ms=10_000, start_ms=30_000, hello_ms=30_000)
SHORT: dict[str, dict[str, object]] = {
    "three_card_poker": {"rounds": 20},
    "blackjack": {"hands": 20},
}
"""Both are played by those that have no duel, alone; `arena check` plays all games with each."""


class Duel(NamedTuple):
    """A match against weak house bots that is long enough for the better bot to win."""

    game: str
    house: str
    settings: dict[str, object]

    @property
    def rivals(self) -> tuple[str, ...]:
        """What they are called."""
        return tuple(
            f"{self.game} {self.house} {number}" for number in range(1, GAMES[self.game].seats)
        )


# Each is won by five standard errors and more. Against the dealer that would take many matches.
AKQ = Duel("ace_king_queen", "bluffer", {"hands": 2_000})
GIN = Duel("gin_rummy", "random", {"games": 5})
HIGH_LOW = Duel("high_low", "random", {"max_shuffles": 10, "gap": 1_000_000})
DUELS = {"python": AKQ, "go": AKQ, "java": GIN, "javascript": HIGH_LOW}


class Example(NamedTuple):
    """An example that is built: its folder, and its command lines as its README has them."""

    folder: Path
    lines: tuple[str, ...]


# ---- Building


def lines_of(language: str) -> tuple[str, ...]:
    """The commands behind `arena check --` in an example's README, with their variables."""
    text = (EXAMPLES / language / "README.md").read_text(encoding="utf-8")
    variables = dict(re.findall(r"^(\w+)='(.+)'$", text, re.MULTILINE))
    variables["python"] = sys.executable
    text = text.replace("venv/bin/python", "$python")  # as its reader has made one
    lines = re.findall(r"^arena check -- (.+)$", text, re.MULTILINE)
    return tuple(Template(line.strip("'\"")).substitute(variables) for line in lines)


def build(language: str, folder: Path) -> Example:
    """Copy an example, and do what its README says, but for Python's `venv`."""
    shutil.copytree(EXAMPLES / language, folder, ignore=shutil.ignore_patterns(*BUILT))
    if (folder / "Makefile").exists():
        run(folder, "make", "-j2", *make_options())
    if (folder / "package.json").exists():
        shutil.copytree(ROOT / "bots" / "vendor", folder / LIBRARIES)
    return Example(folder, lines_of(language))


def run(folder: Path, *words: str) -> None:
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, check=False, timeout=BUILD_S
    )
    assert done.returncode == 0, f"{' '.join(words)} failed: {done.stderr}"


@pytest.fixture(scope="session")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builds]:
    """All examples whose language is here, each as soon as it is built."""
    folder = tmp_path_factory.mktemp("examples")
    with ThreadPoolExecutor() as pool:
        yield {
            language: pool.submit(build, language, folder / language)
            for language in NEEDS
            if missing(*NEEDS[language]) is None
        }


Builds = Mapping[str, Future[Example]]


def example_of(language: str, builds: Builds) -> Example:
    skip_without(*NEEDS[language])
    return builds[language].result(BUILD_S)


def finished(builds: Builds) -> dict[str, Example]:
    """All that could be built; what could not has a test that fails."""
    return {
        language: build.result()
        for language, build in builds.items()
        if build.exception(BUILD_S) is None
    }


EACH_LANGUAGE = pytest.mark.parametrize("language", NEEDS)
EACH_WITH_A_WEBSOCKET = pytest.mark.parametrize("language", sorted(NEEDS.keys() - LINES_ONLY))


@asynccontextmanager
async def running(example: Example, url: str, name: str) -> AsyncIterator[Process]:
    """An example that is connecting to an arena; it is ended at the end."""
    environment = {**os.environ, **DEAD_PROXY, "ARENA_URL": url, "ARENA_NAME": name}
    environment.pop("ARENA_TOKEN", None)
    bot = await asyncio.create_subprocess_exec(
        *shlex.split(example.lines[0]),
        cwd=example.folder,
        env=environment,
        stdin=DEVNULL,
        stderr=PIPE,
    )
    try:
        yield bot
    finally:
        await ended(bot)


# ---- What is there


def test_every_example_has_its_row_in_the_table() -> None:
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir()}

    assert folders - {"__pycache__"} == set(NEEDS)
    assert set(re.findall(r"^\| `(\w+)` \|", readme, re.MULTILINE)) == set(NEEDS)


@EACH_LANGUAGE
def test_the_readme_says_how_each_way_is_checked(language: str) -> None:
    ways = {line.startswith("stdio:") for line in lines_of(language)}

    assert ways == ({False, True} if language in BOTH_WAYS else {language in LINES_ONLY})


@EACH_LANGUAGE
def test_the_readme_fits_on_a_screen(language: str) -> None:
    readme = (EXAMPLES / language / "README.md").read_text(encoding="utf-8")

    assert len(readme.splitlines()) <= 64


def test_the_example_in_python_imports_nothing_of_ours() -> None:
    for path in (EXAMPLES / "python").glob("*.py"):
        found = re.findall(r"^\s*(?:from|import) (\w+)", path.read_text("utf-8"), re.MULTILINE)

        assert not {"arena", "bots", "protocol"} & set(found)


def test_mypy_finds_nothing_in_the_example_in_python() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "bot.py", "session.py"],
        cwd=EXAMPLES / "python",
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MYPY_CACHE_DIR": os.devnull},
    )

    assert done.returncode == 0, done.stdout + done.stderr


# ---- Playing


class ExamplesOutcome(NamedTuple):
    """What came of the competitions by game, and of the duels by language."""

    reports: dict[str, CompetitionReport]
    duels: dict[str, CompetitionReport]


async def compete(
    host: LiveArena, game: str, players: tuple[str, ...], settings: dict[str, object]
) -> CompetitionReport:
    """One competition, in the form in which that game is played."""
    read = GAMES[game].vocabulary.read_settings(settings)
    return await host.play(host.compete(plan_of(GAMES[game], read, players, limits=LIMITS)))


async def play_all(store: Store, examples: Mapping[str, Example]) -> ExamplesOutcome:
    """All examples in one arena: the duels, and a competition of each other game."""
    async with asyncio.timeout(TIMEOUT_S), LiveArena(store, limits=LIMITS) as host:
        names = []
        for language, example in examples.items():
            for line in example.lines:
                way = " in lines" * line.startswith("stdio:")
                way += " in msgpack" * line.endswith("--encoding msgpack")
                names.append(f"{language}{way}")
                await host.supervisor.launch_program(read_program(line, example.folder), names[-1])
        weak = {name: (duel.game, duel.house) for duel in DUELS.values() for name in duel.rivals}
        for name, words in weak.items():
            await host.supervisor.launch(words, name, tables=8)
        while not {*names, *weak} <= {*host.gateway.players}:
            assert not host.supervisor.ended, host.supervisor.ended
            await host.wait_for_change()
        others = tuple(name for name in names if name not in DUELS)
        duels = {language: duel for language, duel in DUELS.items() if language in names}
        reports = await asyncio.gather(
            *(compete(host, game, others, settings) for game, settings in SHORT.items()),
            *(
                compete(host, duel.game, (language, *duel.rivals), duel.settings)
                for language, duel in duels.items()
            ),
        )
    await store.flushed()
    return ExamplesOutcome(
        dict(zip(SHORT, reports, strict=False)),
        dict(zip(duels, reports[len(SHORT) :], strict=True)),
    )


@pytest.fixture(scope="session")
def season(builds: Builds, tmp_path_factory: pytest.TempPathFactory) -> ExamplesOutcome:
    """What came of it all."""
    with Store(tmp_path_factory.mktemp("arena") / "arena.db") as store:
        return asyncio.run(play_all(store, finished(builds)))


@EACH_LANGUAGE
def test_an_example_plays_a_whole_competition(
    language: str, builds: Builds, season: ExamplesOutcome
) -> None:
    ways = len(example_of(language, builds).lines)
    for game in SHORT:
        report = season.reports[game]
        mine = [name for name in report.players if name.split()[0] == language]

        assert len(mine) == ways - (language in DUELS)
        assert not [verdict for verdict in report.verdicts if verdict.bot in mine]
        assert report.played >= len(report.players) > 0


@pytest.mark.parametrize("language", DUELS)
def test_an_example_beats_a_weak_house_bot_in_its_game(
    language: str, builds: Builds, season: ExamplesOutcome
) -> None:
    example_of(language, builds)
    report = season.duels[language]
    assert language not in {verdict.bot for verdict in report.verdicts}
    if report.ranking:  # of an elimination
        assert report.ranking[0].names == (language,)
    else:
        assert report.standings[0].name == language
        assert report.standings[1].wins == 0


# ---- Encrypted

SECURE = ("python", "javascript", "java", "go", "client")
"""Those that speak `wss://`."""

_STORE = "keytool -importcert -noprompt -alias arena -storepass changeit".split()


def trusting(folder: Path) -> dict[str, str]:
    """The certificate of a folder, where each of them looks for one that nobody vouches for."""
    store = folder / "arena.p12"
    if found("keytool"):
        run(folder, *_STORE, "-file", "arena.crt", "-keystore", str(store))
    return {
        "SSL_CERT_FILE": str(folder / "arena.crt"),
        "NODE_EXTRA_CA_CERTS": str(folder / "arena.crt"),
        "JAVA_TOOL_OPTIONS": f"-Djavax.net.ssl.trustStore={store} "
        "-Djavax.net.ssl.trustStorePassword=changeit",
    }


async def encrypt(folder: Path, programs: Mapping[str, Program]) -> dict[str, Ending]:
    """Have each play a match of blackjack over TLS; how it ended."""
    tls = Certificate(*certify(folder, "arena")).current
    environment = os.environ | trusting(folder) | DEAD_PROXY
    async with asyncio.timeout(TIMEOUT_S), in_arena_with(LIMITS) as arena, AsyncExitStack() as ends:
        url = f"wss://127.0.0.1:{await arena.gateway.open('127.0.0.1', 0, tls)}"
        for name, program in programs.items():
            here = {"ARENA_URL": url, "ARENA_NAME": name}
            bot = await asyncio.create_subprocess_exec(
                *program.words,
                cwd=program.folder,
                env=environment | here,
                stdin=DEVNULL,
                stderr=DEVNULL,
            )
            ends.push_async_callback(ended, bot)
        await arena.until(lambda: programs.keys() <= {*arena.gateway.players})
        tables = {name: arena.open("blackjack", name, **SHORT["blackjack"]) for name in programs}
        return {
            name: (await arena.result(table))[0].termination.kind for name, table in tables.items()
        }


async def ended(bot: Process) -> None:
    """End a bot, if it has not by itself."""
    if bot.returncode is None:
        bot.kill()
    await bot.communicate()


@pytest.fixture(scope="session")
def encrypted(builds: Builds, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ending]:
    """What came of it."""
    programs = {
        language: read_program(example.lines[0], example.folder)
        for language, example in finished(builds).items()
        if language in SECURE
    }
    ours = bot_command(("blackjack", next(iter(house_bots("blackjack")))), name="client")
    programs["client"] = Program(tuple(ours))
    return asyncio.run(encrypt(tmp_path_factory.mktemp("tls"), programs))


@pytest.mark.parametrize("language", SECURE)
def test_an_example_plays_over_tls(
    language: str, builds: Builds, encrypted: dict[str, Ending]
) -> None:
    if language != "client":
        example_of(language, builds)

    assert encrypted[language] == Ending.COMPLETED


# ---- What an arena says

MATCH: Message = {"type": "match", "match": "m", "game": "three_card_poker", "seats": ["bot"]}
ASK: Message = {"type": "ask", "match": "m", "ask": "1", "kind": "play", "legal": [1], "news": []}
OVER: Message = {"type": "over", "match": "m", "news": []}
WELCOME: Message = {"type": "welcome", "protocol": 1, "session": "secret"}
GOODBYE: Message = {"type": "goodbye"}


class ScriptedArena:
    """An arena that says what a test has it say."""

    def __init__(self, port: int, connections: asyncio.Queue[ServerConnection]) -> None:
        self.url = f"ws://127.0.0.1:{port}"
        self._connections = connections
        self._now: ServerConnection | None = None

    async def connected(self) -> None:
        """The bot connects and says hello."""
        self._now = await self._connections.get()
        assert (await self.hears())["type"] == "hello"

    @property
    def now(self) -> ServerConnection:
        """The latest connection."""
        assert self._now is not None, "a bot has connected"
        return self._now

    async def says(self, *messages: Message) -> None:
        """Send a frame."""
        await self.now.send(json.dumps(messages))

    async def hears(self) -> Message:
        """The next frame, of one message."""
        heard = json.loads(await self.now.recv())
        assert isinstance(heard, dict), heard
        return heard


@asynccontextmanager
async def scripted_arena() -> AsyncIterator[ScriptedArena]:
    connections: asyncio.Queue[ServerConnection] = asyncio.Queue()

    async def receive(socket: ServerConnection) -> None:
        connections.put_nowait(socket)
        await socket.wait_closed()

    async with serve(receive, "127.0.0.1", 0) as server:
        [listening] = server.sockets
        yield ScriptedArena(listening.getsockname()[1], connections)


# ---- Closed

COMES_BACK = (None, 1012, 4321)
ENDS = (1002, 1009, 4000, 4001)
"""Close codes; None is a close frame without one."""
CLOSE_WITHOUT_CODE = b"\x88\x00"  # a frame

CRASHED = 1011  # what a bot closes with, which has come upon what there is not
UNKNOWN = {"type": "thunder", "text": "and lightning"}


@EACH_WITH_A_WEBSOCKET
async def test_an_example_comes_back_unless_it_is_no_use(language: str, builds: Builds) -> None:
    example = await asyncio.to_thread(example_of, language, builds)

    async def closed(*codes: int | None) -> int:
        """Its exit status after connections that are closed with these codes."""
        async with scripted_arena() as arena, running(example, arena.url, "bot") as bot:
            for code in codes:
                await arena.connected()
                await arena.says(WELCOME)
                if code is None:
                    arena.now.transport.write(CLOSE_WITHOUT_CODE)
                else:
                    await arena.now.close(code)
            return await bot.wait()

    lives = [(*COMES_BACK, 1000), *((code,) for code in ENDS)]
    assert await asyncio.gather(*(closed(*codes) for codes in lives)) == [0, 1, 1, 1, 1]


@EACH_LANGUAGE
async def test_an_example_does_not_pass_over_a_message_that_there_is_not(
    language: str, builds: Builds
) -> None:
    example = await asyncio.to_thread(example_of, language, builds)

    for line in example.lines:
        if line.startswith("stdio:"):
            words = shlex.split(line.removeprefix("stdio:"))
            bot = await asyncio.create_subprocess_exec(
                *words, cwd=example.folder, stdin=PIPE, stdout=DEVNULL, stderr=PIPE
            )
            _, said = await bot.communicate(json.dumps(UNKNOWN).encode() + b"\n")
            assert (bot.returncode, b"no message of type" in said) == (1, True)
    if language not in LINES_ONLY:
        async with scripted_arena() as arena, running(example, arena.url, "bot") as bot:
            await arena.connected()
            await arena.says(WELCOME)
            await arena.says(UNKNOWN)
            await arena.now.wait_closed()
            assert (arena.now.close_code, await bot.wait()) == (CRASHED, 1)


# ---- Leaving


@EACH_WITH_A_WEBSOCKET
async def test_J10_an_example_finishes_its_match_and_leaves_with_one_goodbye(
    language: str, builds: Builds
) -> None:
    example = await asyncio.to_thread(example_of, language, builds)
    async with scripted_arena() as arena, running(example, arena.url, "bot") as bot:
        await arena.connected()
        await arena.says(WELCOME | {"finish": True}, MATCH)
        assert (await arena.hears())["type"] == "ready"
        bot.send_signal(signal.SIGTERM)
        await stderr_of(bot).readuntil(b"Ctrl-C again leaves now")
        assert await arena.hears() == GOODBYE | {"finish": True}
        arena.now.transport.abort()

        await arena.connected()
        await arena.says(WELCOME)  # an arena of before: it hears nothing while a match is on
        await arena.says(ASK)
        assert (await arena.hears())["type"] == "answer"
        await arena.says(OVER)
        assert await arena.hears() == GOODBYE
        await arena.now.close(COMES_BACK[-1])

        assert await bot.wait() == 0


@pytest.mark.parametrize("is_connected", [True, False])
@EACH_WITH_A_WEBSOCKET
async def test_a_second_signal_or_one_before_welcome_ends_it_at_once(
    language: str, is_connected: bool, builds: Builds
) -> None:
    example = await asyncio.to_thread(example_of, language, builds)
    async with scripted_arena() as arena, running(example, arena.url, "bot") as bot:
        await arena.connected()
        if is_connected:
            await arena.says(WELCOME | {"finish": True}, MATCH)
            assert (await arena.hears())["type"] == "ready"
            bot.send_signal(signal.SIGINT)
            assert await arena.hears() == GOODBYE | {"finish": True}
        bot.send_signal(signal.SIGTERM)

        await bot.wait()


def stderr_of(bot: Process) -> asyncio.StreamReader:
    assert bot.stderr is not None, "it is a pipe"
    return bot.stderr


# ---- Checked


TAUGHT_ALREADY = {Step.UNKNOWN_FIELDS, Step.LEGAL, Step.REFUSED_HELLO, Step.LATE_ARENA}
"""What another encoding or link does not change, and starts bots or plays long."""


async def check_all(programs: Mapping[str, Program]) -> dict[str, CheckReport]:
    """`arena check` of them all, some at a time."""
    turns = asyncio.Semaphore(CHECKS_AT_ONCE)

    async def check(name: str, program: Program) -> CheckReport:
        async with turns:
            bot = BotUnderTest(program, "bot", LIMITS)
            is_other = name.endswith(("msgpack", "--stdio")) and not LONG
            chosen = {*Step} - (TAUGHT_ALREADY if is_other else set())
            return await check_run(bot, rounds=ROUNDS, seed=1, chosen=chosen)

    async with asyncio.timeout(TIMEOUT_S):
        found = await asyncio.gather(*(check(*item) for item in programs.items()))
    return dict(zip(programs, found, strict=True))


@pytest.fixture(scope="session")
def checked(builds: Builds) -> dict[str, CheckReport]:
    """What came of the checks."""
    words = bot_command(("gin_rummy", "simple"), name="bot", tables=8, encoding=Encoding.MSGPACK)
    programs = {"client in msgpack": Program(tuple(words))}
    for language, example in finished(builds).items():
        for line in example.lines:
            programs[f"{language} {line}"] = read_program(line, example.folder)
    return asyncio.run(check_all(programs))


@EACH_LANGUAGE
def test_an_example_passes_the_check(
    language: str, builds: Builds, checked: dict[str, CheckReport]
) -> None:
    example = example_of(language, builds)
    for line in example.lines:
        found = checked[f"{language} {line}"]

        assert_passed(found)
        assert {*found.games} == {*GAMES}


def test_our_client_passes_the_check(checked: dict[str, CheckReport]) -> None:
    assert_passed(checked["client in msgpack"])  # in JSON a starter of tests/e2e/test_new.py does


def assert_passed(checked: CheckReport) -> None:
    failed = [step for step in checked.steps if step.status is StepStatus.FAILED]

    assert failed == []
    assert checked.passed
    assert checked.report.decisions > ROUNDS


KEEP_ALIVE = ("go", "java", "javascript")  # their libraries do that in threads and timers of theirs


async def test_who_waits_for_long_is_neither_restless_nor_out(
    tmp_path: Path, builds: Builds, caplog: pytest.LogCaptureFixture
) -> None:
    numbers = {language: number for number, language in enumerate(KEEP_ALIVE, start=1)}
    async with (
        asyncio.timeout(TIMEOUT_S),
        submitted_arena(tmp_path, cores=2, limits=LIMITS, **numbers) as arena,
    ):
        for language, number in numbers.items():
            example = example_of(language, builds)
            arena.programs[number] = read_program(example.lines[0], example.folder)
        plan = arena.plan("ace_king_queen", *KEEP_ALIVE)
        reports = [await arena.play(plan)]
        await asyncio.sleep(sized(60, 6))
        bots = [SeatBot(name, number, "ace_king_queen") for name, number in numbers.items()]
        stayed = arena.pool.warm(bots)
        reports.append(await arena.play(plan))

    assert [(report.played, report.verdicts) for report in reports] == [(3, ()), (3, ())]
    assert stayed == len(KEEP_ALIVE)
    assert "without a question" not in caplog.text
