"""Bots of ours as programs, against an arena in this process: signals, crashes and new starts.

How the client plays is in `tests/bots/test_client.py` and `tests/arena/server/test_our_client.py`.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from arena.games.catalogue import GAMES
from arena.games.match import MatchState, Record, drive
from bots.strategy import BaseStrategy
from protocol.messages import CLOSE_RESTART, Ending
from protocol.strategy import find
from protocol.vocabulary import Question, Range
from tests.support.gateway_bots import in_arena
from tests.support.stalling_proxy import StallingProxy

if TYPE_CHECKING:
    from tests.support.gateway_bots import GatewayArena, RawBot, StartedProgram

pytestmark = pytest.mark.e2e

Start = Callable[..., "StartedProgram"]

BOT = """
import os, sys, time

class Mine:
    game = "blackjack"
    def reset(self): pass
    def hear(self, news): pass
    def decide(self, question):
        {decide}
        legal = question.legal
        return legal[0] if isinstance(legal, tuple) else legal.min
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the programs keep their sessions: not in the home of whoever runs the tests."""
    place = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(place))
    return place


@pytest.fixture
def bot_file(tmp_path: Path) -> Callable[[str], str]:
    """Write a bot that does something odd when it is asked; its path."""

    def write(decide: str) -> str:
        path = tmp_path / "mine.py"
        path.write_text(BOT.format(decide=decide))
        return str(path)

    return write


async def here(arena: GatewayArena, name: str) -> None:
    await arena.until(lambda: name in arena.gateway.players)


async def ended(program: StartedProgram) -> tuple[int, str, str]:
    return await asyncio.to_thread(program.ends)


def connect(start: Start, arena: GatewayArena, *words: str, **options: Any) -> StartedProgram:
    return start("bots", *words, "--url", arena.url, **options)


async def test_a_bot_plays_through_the_proxy_of_its_environment(start: Start) -> None:
    async with in_arena() as arena:
        with closing(StallingProxy(arena.port, connects=True)) as proxy:
            environment = {**os.environ, "https_proxy": f"http://127.0.0.1:{proxy.port}"}
            words = ("blackjack", "simple", "--url", "ws://far.example:7700")
            start("bots", *words, env=environment)
            await here(arena, "simple")
            _, verdict = await arena.result(arena.open("blackjack", "simple", hands=20))

    assert verdict is None
    assert proxy.asked == [b"CONNECT far.example:7700 HTTP/1.1"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_J10_the_first_signal_finishes_the_matches_that_are_on(
    arena: GatewayArena, start: Start, number: signal.Signals
) -> None:
    program = connect(start, arena, "akq", "random")
    await here(arena, "random")
    async with arena.bot("raw") as raw:
        table = arena.open("ace_king_queen", "random", "raw")
        await raw.ready()
        asked = await raw.hears("ask")
        program.process.send_signal(number)
        await asyncio.to_thread(program.until, "finishing the match that is on")
        await raw.answer(asked)
        await raw.play()
        _, verdict = await arena.result(table)
        status, _, err = await ended(program)

    assert verdict is None
    assert status == 130
    assert err.endswith("goodbye\narena: left the arena\n")


async def test_the_second_signal_leaves_now(arena: GatewayArena, start: Start) -> None:
    program = connect(start, arena, "akq", "random", "--quiet")
    await here(arena, "random")
    async with arena.bot("raw") as raw:
        table = arena.open("ace_king_queen", "random", "raw")
        await raw.ready()
        await raw.hears("ask")
        program.process.send_signal(signal.SIGINT)
        await asyncio.to_thread(program.until, "finishing the match that is on")
        program.process.send_signal(signal.SIGINT)
        result, verdict = await arena.result(table)
        status, _, err = await ended(program)

        assert result.termination.kind is Ending.DISCONNECT
        assert "said goodbye in the middle of the match" in result.termination.text
        assert verdict is not None
        assert status == 130
        assert err.endswith("arena: left the arena\n")
        assert "Traceback" not in err


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such terminals")
async def test_J10_a_terminal_that_is_closed_costs_the_match_nothing(
    arena: GatewayArena, bot_file: Callable[[str], str], tmp_path: Path
) -> None:
    """A shell may send the signal twice, and what the bot prints has no place to go any more."""
    goes_on = tmp_path / "goes_on"
    waits = f"while not os.path.exists({str(goes_on)!r}): time.sleep(0.01)"
    path = bot_file(f"print('asked', flush=True)\n        {waits}\n        print('on', flush=True)")
    screen, terminal = os.openpty()
    words = [sys.executable, "-m", "bots", path, "--url", arena.url]
    program = subprocess.Popen(words, stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    await here(arena, "mine")
    table = arena.open("blackjack", "mine", hands=5)
    said = b""
    while b"asked" not in said:
        said += await asyncio.to_thread(os.read, screen, 1000)
    os.close(screen)
    for _ in range(2):
        program.send_signal(signal.SIGHUP)
        await asyncio.sleep(0.1)  # else the two are one
    goes_on.touch()
    _, verdict = await arena.result(table)
    status = await asyncio.to_thread(program.wait, 60)

    assert verdict is None
    assert status == 130


@pytest.mark.parametrize(
    ("never_returns", "number", "seen"),
    [
        ("while True: pass", signal.SIGINT, "now"),
        ("time.sleep(600)", signal.SIGTERM, "mine.py has been in decide() for 3 s (line 10)"),
        ("input()", signal.SIGINT, "now"),
    ],
)
async def test_the_first_signal_ends_a_strategy_that_does_not_return(
    arena: GatewayArena,
    start: Start,
    bot_file: Callable[[str], str],
    never_returns: str,
    number: signal.Signals,
    seen: str,
) -> None:
    """Whether it is known by then that the strategy takes long, or not."""
    odd = f"print('now', file=sys.stderr, flush=True)\n        {never_returns}"
    program = connect(start, arena, bot_file(odd), stdin=subprocess.PIPE)
    await here(arena, "mine")
    arena.open("blackjack", "mine")
    await asyncio.to_thread(program.until, seen)
    program.process.send_signal(number)
    await asyncio.to_thread(program.process.wait, 60)  # with its standard input open
    status, _, err = await ended(program)

    assert status == 130
    assert err.splitlines()[-1].startswith("arena: ended, as mine.py has been in decide() for ")


async def test_a_strategy_that_does_not_return_ends_with_the_arena_and_learns_why_it_is_out(
    start: Start, bot_file: Callable[[str], str]
) -> None:
    async with in_arena() as arena:
        program = connect(start, arena, bot_file("while True: pass"), stdin=subprocess.PIPE)
        await here(arena, "mine")
        _, verdict = await arena.result(arena.open("blackjack", "mine"))
        await asyncio.to_thread(program.until, "mine.py has been in decide() for 3 s")
    await asyncio.to_thread(program.process.wait, 60)  # with its standard input open
    status, _, err = await ended(program)
    over, last = err.splitlines()[-2:]

    assert verdict is not None
    assert verdict.kind is Ending.TIMEOUT
    assert status == 1
    assert verdict.headline in over
    closed = re.search(
        "the arena has closed the connection; mine.py has been in decide.. for (.*) s", last
    )
    assert closed is not None
    assert float(closed[1]) < 30  # a connection that was only lost could still come back


async def test_a_slow_strategy_comes_back_to_an_arena_that_is_started_again(
    start: Start, bot_file: Callable[[str], str], tmp_path: Path
) -> None:
    goes_on = tmp_path / "goes_on"
    waits = f"while not os.path.exists({str(goes_on)!r}): time.sleep(0.01)"
    slow = bot_file(f"print('now', file=sys.stderr, flush=True)\n        {waits}")
    async with in_arena(hard_ms=15_000) as arena:
        program = connect(start, arena, slow)
        await here(arena, "mine")
        arena.open("blackjack", "mine")
        await asyncio.to_thread(program.until, "now")
        await arena.gateway.close(CLOSE_RESTART, "it goes on later")
    await asyncio.to_thread(program.until, "mine.py has been in decide() for 3 s")
    goes_on.touch()
    line = await asyncio.to_thread(program.until, "will go on where it is")

    assert line == "the arena has stopped, and will go on where it is\n"


async def test_J2_a_strategy_that_raises_has_crashed(
    arena: GatewayArena, start: Start, bot_file: Callable[[str], str]
) -> None:
    program = connect(start, arena, bot_file("raise KeyError('deck')"))
    await here(arena, "mine")
    result, verdict = await arena.result(arena.open("blackjack", "mine"))
    status, _, err = await ended(program)

    assert result.termination.kind is Ending.CRASH
    assert verdict is not None
    assert verdict.headline.startswith("crashed: the strategy raised at ")
    assert status == 1
    assert "KeyError" in err
    assert err.splitlines()[-1].startswith("arena: ")
    assert "Traceback" in err  # its author's, with the line that raised


# --- killed and started again ---

PATIENT = {"decision_ms": 15_000, "bank_ms": 0, "hard_ms": 15_000, "grace_ms": 15_000}
"""Python takes a while to start on a busy machine; no test waits for these times to pass."""


def pick(count: int, number: int) -> int:
    """Which of so many answers the scripted bot gives to its question of that number."""
    return (number * 7 + number // 5) % count


class ScriptedInProcess(BaseStrategy):
    """What `by_script` is over the wire, in process."""

    def __init__(self) -> None:
        self.asked = 0

    def decide(self, question: Question[Any]) -> object:
        self.asked += 1
        legal = question.choices
        assert not isinstance(legal, Range), "these games have lists"
        return legal[pick(len(legal), self.asked)]


async def nothing() -> None:
    """What happens at most answers."""


async def by_script(
    raw: RawBot,
    before: dict[int, Callable[[], Awaitable[None]]],
    after: dict[int, Callable[[], Awaitable[None]]],
) -> None:
    """Play a match by numbers, doing something before some answers and after others."""
    number = 0
    while (message := await raw.hear())["type"] != "over":
        if message["type"] == "match":
            await raw.say(type="ready", match=message["match"], nonce="raw")
        elif message["type"] == "ask":
            number += 1
            await before.get(number, nothing)()
            legal = message["legal"]
            await raw.answer(message, legal[pick(len(legal), number)])
            await after.get(number, nothing)()


def undisturbed(record: Record, bot: str, seed: str) -> Record:
    """The same match with the same cards in process, where nobody is killed."""
    assert record.seed is not None
    game = GAMES[record.game]
    match = MatchState(
        game,
        game.vocabulary.read_settings(record.settings),
        seed=bytes.fromhex(record.seed),
        nonces=record.nonces,
    )
    learner = find(record.game, bot)()
    learner.seed(seed)
    drive(match, [learner, ScriptedInProcess()])
    return match.result().record


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize(
    ("game", "bot", "settings", "encoding"),
    [
        ("ace_king_queen", "nash", {"hands": 200}, "json"),
        ("gin_rummy", "expert", {"games": 4}, "msgpack"),
    ],
)
async def test_a_bot_that_is_killed_and_started_again_plays_as_if_nothing_had_been(
    start: Start, tmp_path: Path, game: str, bot: str, settings: dict[str, object], encoding: str
) -> None:
    file = tmp_path / "session.json"
    words = (game, bot, "--seed", "s", "--session", str(file), "--encoding", encoding)

    async with in_arena(**PATIENT) as arena:
        programs = [connect(start, arena, *words)]
        await here(arena, bot)

        async def killed() -> None:
            programs[-1].process.kill()
            await asyncio.to_thread(programs[-1].process.wait)
            programs.append(connect(start, arena, *words))

        async with arena.bot("raw") as raw:
            first = arena.open(game, bot, "raw", **settings)  # has the first seed
            await by_script(raw, {}, {})
            await arena.result(first)
            table = arena.open(game, bot, "raw", **settings)
            # Once while it waits for the other, once when it has something to answer.
            await by_script(raw, {20: killed}, {45: killed})
            result, verdict = await arena.result(table)

        assert verdict is None
        assert result.termination.kind is Ending.COMPLETED
        assert len(programs) == 3, "it has been killed twice"
        again = undisturbed(result.record, bot, "s:2")
        assert result.record.answers == again.answers
        assert (result.scores, result.points) == (again.scores, again.points)
        if bot == "nash":  # the others leave little or nothing to chance
            assert undisturbed(result.record, bot, "s:1").answers != again.answers
        waited, asked = [await asyncio.to_thread(p.until, "goes on") for p in programs[1:]]
        assert "otherwise" not in waited + asked

    assert not file.exists(), "the arena has closed"


async def test_ctrl_c_ends_a_match_here_of_a_bot_that_catches_everything(
    start: Start, bot_file: Callable[[str], str]
) -> None:
    catches = "exec('while True:\\n try: time.sleep(1)\\n except BaseException: pass')"
    program = start("arena", "play", "blackjack", bot_file(catches))
    await asyncio.to_thread(program.until, "arena: mine.py has been in decide() for 3 s")
    program.process.send_signal(signal.SIGINT)
    status, out, err = await ended(program)

    assert (status, out) == (130, "")
    assert err.splitlines()[-1].startswith("arena: ended, as mine.py has been in decide() for ")
