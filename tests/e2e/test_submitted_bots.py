"""Submitted bots as real processes: on few cores, beside others that burn them all; competitions."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from arena.competitions.process_pool import SeatBot, StartFailed
from arena.games.catalogue import GAMES
from arena.games.match import MatchResult
from arena.referee.bot_session import LiveMatch
from arena.storage.store import CompetitionState
from protocol.messages import Ending, Limits, Mechanism, Verdict
from tests.support.bot_processes import living
from tests.support.pipe_bot import pipe_bot
from tests.support.submitted_arena import SubmittedArena, submitted_arena

pytestmark = pytest.mark.e2e

TIMEOUT_S = 90.0
LIMITS = Limits(decision_ms=250, bank_ms=0, hard_ms=500, wall_ms=2_500, start_ms=1_000)

SETTINGS: dict[str, dict[str, object]] = {
    "three_card_poker": {"rounds": 1},
    "ace_king_queen": {"hands": 50},
}

# A bot over its pipes that computes for so many ms of CPU time per decision, sleeps for so many,
# or computes without end from its `ready` on.
BOT = pipe_bot(
    first="""
what, ms = sys.argv[1], int(sys.argv[2])
def compute(s):
    until = time.process_time() + s
    while time.process_time() < until: pass
print("I am", os.environ["ARENA_NAME"], file=sys.stderr)
if what == "crash": sys.exit(3)
if what == "start": compute(ms / 1000)
""",
    invited="""
print("plays", it["match"], file=sys.stderr)
if what == "always": threading.Thread(target=compute, args=(60,), daemon=True).start()
""",
    asked="""
if what == "computes": compute(ms / 1000)
if what == "sleeps": time.sleep(ms / 1000)
""",
)


def matches(
    tmp_path: Path, *, cores: int = 1, most: int = 12
) -> AbstractAsyncContextManager[SubmittedArena]:
    return submitted_arena(tmp_path, cores=cores, most=most, limits=LIMITS)


async def play(
    arena: SubmittedArena, game: str, *bots: tuple[str, str], opened: asyncio.Event | None = None
) -> tuple[MatchResult, Verdict | None]:
    """A match between submissions, each of which does something for so many ms."""
    first = len(arena.programs)
    for number, (what, ms) in enumerate(bots, start=first):
        text = BOT.replace("games=[", "games=['chess'] or [") if what == "chess" else BOT
        arena.programs[number] = f"import sys; sys.argv[1:] = {what!r}, {ms!r}\n{text}"
    seats = arena.pool.reserve([SeatBot(f"bot {n}", first + n, game) for n in range(len(bots))])
    assert seats is not None
    match = ""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            sessions = await asyncio.gather(*(seat.session() for seat in seats))
            over: asyncio.Future[tuple[MatchResult, Verdict | None]]
            over = asyncio.get_running_loop().create_future()

            def on_over(_: LiveMatch, result: MatchResult, verdict: Verdict | None) -> None:
                if not over.done():
                    over.set_result((result, verdict))

            rules = GAMES[game]
            settings = rules.vocabulary.read_settings(SETTINGS[game])
            table = arena.host.referee.open(rules, settings, sessions, LIMITS, on_over)
            match = table.id
            if opened is not None:
                opened.set()
            assert table.names == tuple(f"bot {n}" for n in range(len(bots)))
            return await over
    finally:
        for seat in seats:
            seat.release(match)


@pytest.fixture
def busy_machine() -> Iterator[None]:
    """All cores compute something else."""
    command = [sys.executable, "-c", "while True: pass"]
    burning = [subprocess.Popen(command) for _ in range(os.cpu_count() or 1)]
    yield
    for process in burning:
        process.kill()
        process.wait()


@pytest.mark.usefixtures("busy_machine")
async def test_J7_nobody_is_out_for_the_load_of_others(tmp_path: Path) -> None:
    async with matches(tmp_path) as arena:
        bots = [("computes", "50")] * 12
        played = await asyncio.gather(*(play(arena, "three_card_poker", bot) for bot in bots))

    assert [result.termination.kind for result, _ in played] == [Ending.COMPLETED] * 12
    assert arena.gate.waiting == 0


async def test_J7_who_computes_while_others_decide_is_charged(tmp_path: Path) -> None:
    async with matches(tmp_path, cores=2) as arena:
        _, verdict = await play(arena, "ace_king_queen", ("always", "0"), ("sleeps", "400"))

    assert verdict is not None
    assert (verdict.kind, verdict.bot) == (Ending.CPU, "bot 0")


@pytest.mark.parametrize(
    ("bot", "said", "finding"),
    [
        (
            ("start", "9000"),
            "within 1,000 ms of CPU; did it flush its output\\?",
            (Ending.ABSENT, None, ""),
        ),
        (("crash", "0"), "exit status 3", (Ending.CRASH, 3, "I am bot 0\n")),
        (("chess", "0"), "its hello was refused: unknown game 'chess'", None),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) and isinstance(value[0], str) else "",
)
async def test_who_does_not_start_is_told_why(
    tmp_path: Path, bot: tuple[str, str], said: str, finding: tuple[Ending, int | None, str] | None
) -> None:
    async with matches(tmp_path) as arena:
        with pytest.raises(StartFailed, match=said) as failed:
            await play(arena, "three_card_poker", bot)
        assert dict(arena.host.supervisor.ended) == {}, "that is of bots with names of their own"
        found = failed.value.finding

    if finding is not None:
        kind, status, stderr = finding
        assert (found.kind, found.exit_status) == (kind, status)
        assert (found.stderr or "").startswith(stderr)
        assert (found.mechanism is Mechanism.CPU_CLOCK) is (kind is Ending.ABSENT)


async def test_processes_of_submissions_are_nobody_that_is_here(tmp_path: Path) -> None:
    async with matches(tmp_path) as arena:
        host = arena.host
        opened = asyncio.Event()
        sleeper = play(arena, "three_card_poker", ("sleeps", "200"), opened=opened)
        playing = asyncio.create_task(sleeper)
        await opened.wait()
        assert host.gateway.players.here == len(host.gateway.players) == 0
        assert host.here.names("three_card_poker") == ()
        assert host.here.taken == set()
        assert host.here.use_of("bot 0") is None
        await host.supervisor.launch(("three_card_poker", "q64"), "bot 0")
        await playing

    [(submission, match, text)] = arena.stderr
    assert submission == 0
    assert text == f"I am bot 0\nplays {match}.0\n"


# ---- Competitions

SPINS = """
for _ in range(4):
    if os.fork() == 0:
        os.close(1)
        while True: pass
"""
CRASHES = "import sys; sys.exit('no such model')"


async def test_submitted_bots_play_a_round_robin_with_a_house_bot(tmp_path: Path) -> None:
    async with asyncio.timeout(TIMEOUT_S), submitted_arena(tmp_path, ann=11, ben=21) as arena:
        await arena.host.supervisor.launch(("ace_king_queen", "nash"), "house")
        await arena.host.wait_for_bots(["house"], TIMEOUT_S)
        plan = arena.plan("ace_king_queen", "ann", "ben", "house", matches=4)
        report = await arena.play(plan)
        await arena.store.flushed()
        rows = arena.store.results(report.competition)

    assert report.state is CompetitionState.FINISHED
    assert not report.verdicts
    assert report.played == 12
    assert {seat for row in rows for seat in zip(row.players, row.versions, strict=True)} == {
        ("ann", "v1"),
        ("ben", "v1"),
        ("house", None),
    }


async def test_a_program_that_does_not_start_is_out_with_what_it_said(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(TIMEOUT_S),
        submitted_arena(tmp_path, ann=11, ben=21, cem=31) as arena,
    ):
        arena.programs[31] = CRASHES
        report = await arena.play(arena.plan("ace_king_queen", "ann", "ben", "cem"))

    [verdict] = report.verdicts
    assert (verdict.bot, verdict.kind) == ("cem", Ending.CRASH)
    assert "no such model" in (verdict.stderr or "")
    assert [text for *_, text in arena.stderr if "model" in text]
    assert {row.name for row in report.standings if not row.eliminated} == {"ann", "ben"}


@pytest.mark.skipif(sys.platform != "linux", reason="this is not Linux")
async def test_who_computes_out_of_turn_has_only_the_cores_that_nobody_else_wants(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its owner and the log are told once; nobody is out, and all that it has started is behind."""
    async with asyncio.timeout(TIMEOUT_S), submitted_arena(tmp_path, ann=11, eve=21) as arena:
        arena.programs[21] = pipe_bot(first=SPINS)
        report = await arena.play(arena.plan("ace_king_queen", "ann", "eve"))
        while "without a question" not in caplog.text:
            await asyncio.sleep(0.1)
        await asyncio.sleep(0.3)  # for a look of the sampler
        behind = {name: policies(name) for name in ("ann", "eve")}
        again = await arena.play(arena.plan("ace_king_queen", "ann", "eve"))

    assert not report.verdicts + again.verdicts
    assert set(behind["ann"]) == {os.SCHED_OTHER}
    assert behind["eve"][os.SCHED_OTHER] == 1, "its supervisor"
    assert behind["eve"][os.SCHED_IDLE] >= 5
    assert caplog.text.count("eve computed, or") == caplog.text.count(" without a question") == 1
    assert [number for number, _, text in arena.stderr if "without a question" in text] == [21]


def policies(name: str) -> Counter[int]:
    """How the processes of a bot are scheduled."""
    return Counter(map(os.sched_getscheduler, living(name)))
