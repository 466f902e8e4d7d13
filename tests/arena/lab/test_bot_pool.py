"""Who sits where in a pool of launched bots, and how its matches end; the bots have no sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from arena.competitions.live_arena import LiveArena
from arena.games.catalogue import GAMES
from arena.games.rules import AskSeat, Game, Scoreboard, TellSeat
from arena.lab.launched import BotPool, PoolBot
from arena.lab.matches import MatchSpec, PlayedMatch, watched
from arena.sandbox.command import Program
from protocol.errors import ArenaError, UsageError
from protocol.messages import Ending, Limits
from tests.support.fake_bots import FakeArena

AKQ = GAMES["ace_king_queen"]
TWO_HANDS = AKQ.vocabulary.read_settings({"hands": 2})
COMMAND = Program(("./bot",))
SPEC = MatchSpec(bots=(0, 1), numbers=(0, 1), cards=b"", instances=0)


class FakePoolHost:
    """Launched bots connect at once, but for those called `late`."""

    def __init__(self, house: FakeArena, tables: int = 512) -> None:
        self.house = house
        self.limits = Limits(start_ms=20, hello_ms=30, tables=tables)
        self.referee = house.referee
        self.url = "ws://here"
        self.bots: dict[str, Any] = {}
        self.gateway = SimpleNamespace(players={})
        self.supervisor = SimpleNamespace(
            no_hello="{}: no hello {}".format,
            ended={},
            launch=self.launch,
            launch_program=self.launch_program,
        )
        self.programs: dict[str, Program] = {}

    async def launch(self, bot: object, name: str, tables: int) -> None:
        self.come(name, tables)

    async def launch_program(self, program: Program, name: str) -> None:
        if program.words == ("never",):
            raise UsageError("expected something else")
        self.programs[name] = program
        if not name.startswith("late"):
            self.come(name, 1)

    def come(self, name: str, tables: int) -> None:
        self.bots[name] = bot = self.house.bot(name, tables=tables)
        self.gateway.players[name] = bot.player

    async def wait_for_change(self) -> None:
        await asyncio.Event().wait()

    wait_for_bots = LiveArena.wait_for_bots


async def gathered(
    host: FakePoolHost, *guests: PoolBot, copies: int = 1, game: Game = AKQ
) -> BotPool:
    pool = BotPool(cast(LiveArena, host), game)
    for bot in guests:
        await pool.launch(bot, copies)
    await pool.gather()
    return pool


@pytest.fixture
def host(house: FakeArena) -> FakePoolHost:
    return FakePoolHost(house)


@pytest.fixture
async def pair(host: FakePoolHost) -> BotPool:
    """A pool of `ann` and `ben`."""
    return await gathered(host, PoolBot("ann", COMMAND), PoolBot("ben", COMMAND))


async def test_everybody_has_a_name_of_its_own(host: FakePoolHost) -> None:
    long = "x" * 100
    named = ["nash", "nash", "a/mine.py", "mine", long]
    await gathered(host, *(PoolBot(name) for name in named))

    assert list(host.bots) == ["nash", "nash-2", "mine", "mine-2", long[:56]]


async def test_a_file_is_a_program_of_ours_that_sees_its_folder(host: FakePoolHost) -> None:
    await gathered(host, PoolBot("ann/mine.py"), PoolBot("../ben.py"))
    ann, ben = host.programs["mine"], host.programs["ben"]

    assert "ann/mine.py" in ann.words
    assert "ws://here" in ann.words
    assert ann.folder is not None
    assert str(ann.folder.parent / "ben.py") in ben.words


async def test_A9_a_command_sits_twice_by_being_launched_twice(host: FakePoolHost) -> None:
    pool = await gathered(host, PoolBot("nash"), PoolBot("mine", COMMAND), copies=2)

    assert set(host.bots) == {"nash", "mine", "mine-2"}
    assert pool.seats((1, 1)) == ("mine", "mine-2")
    assert pool.seats((0, 1)) is None
    pool.release(("mine-2",))
    assert pool.seats((0, 1)) == ("nash", "mine-2")
    assert pool.seats((0, 0)) == ("nash", "nash")


async def test_with_one_table_for_all_a_house_bot_is_launched_twice_too(house: FakeArena) -> None:
    host = FakePoolHost(house, tables=1)
    pool = await gathered(host, PoolBot("nash"), copies=2)

    assert pool.seats((0, 0)) == ("nash", "nash-2")
    assert pool.seats((0, 0)) is None


async def test_a_command_that_can_never_work_is_told_with_its_name(host: FakePoolHost) -> None:
    with pytest.raises(UsageError, match="ann: expected something else"):
        await gathered(host, PoolBot("ann", Program(("never",))))


async def play(
    host: FakePoolHost, pool: BotPool, names: tuple[str, ...] = ("ann", "ben")
) -> PlayedMatch:
    """Play a match out, with legal answers."""
    task = asyncio.create_task(pool.play(SPEC, TWO_HANDS, names))
    bots = [host.bots[name] for name in names if name in host.bots]
    while not task.done():
        await asyncio.sleep(0)
        host.house.sit(*bots)
        host.house.play_out(*bots)
    return await task


async def test_a_match_is_played_by_the_referee(host: FakePoolHost, pair: BotPool) -> None:
    played = await play(host, pair)

    assert (played.result.termination.kind, played.verdict) == (Ending.COMPLETED, None)
    assert tuple(map(sum, zip(*played.payoffs, strict=True))) == played.result.scores
    assert host.referee.tables == ()


async def test_a_match_that_nobody_waits_for_is_void(host: FakePoolHost, pair: BotPool) -> None:
    task = asyncio.create_task(pair.play(SPEC, TWO_HANDS, ("ann", "ben")))
    await asyncio.sleep(0)
    [table] = host.referee.tables
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert (table.is_over, host.referee.tables) == (True, ())


@pytest.mark.parametrize(
    ("ended", "says"),
    [
        (None, "late: no hello within 50 ms"),
        ("crashed: exit status 1", "did not say hello: crashed: exit status 1"),
        (
            "ended by itself: exit status 0",
            "did not say hello: ended by itself: exit status 0; a program that speaks in lines "
            "needs `stdio:` before its command",
        ),
    ],
)
async def test_J2_who_does_not_come_is_absent_and_holds_up_nobody(
    host: FakePoolHost, ended: str | None, says: str
) -> None:
    if ended is not None:
        host.supervisor.ended["late"] = ended
    pool = await gathered(host, PoolBot("ann", COMMAND), PoolBot("late", COMMAND))

    assert pool.seats((1, 1)) is not None
    played = await play(host, pool, ("ann", "late"))
    kind, seat, text = msgspec.structs.astuple(played.result.termination)
    assert (kind, seat, text, played.verdict) == (Ending.ABSENT, 1, says, None)


def finishes(host: FakePoolHost) -> None:
    host.gateway.players["ben"].session.finishing = True


def plays_gin(host: FakePoolHost) -> None:
    host.gateway.players["ben"].games = frozenset({"gin_rummy"})


def ends(host: FakePoolHost) -> None:
    del host.gateway.players["ben"]
    host.supervisor.ended["ben"] = "ended by itself"


@pytest.mark.parametrize(
    ("meddle", "says"),
    [
        (lambda host: host.gateway.players.pop("ben"), "left before the match"),
        (finishes, "left before the match"),
        (ends, "ended by itself"),
        (plays_gin, "said hello for gin_rummy, expected ace_king_queen among its games"),
    ],
)
async def test_who_cannot_play_the_next_match_is_absent_from_it(
    host: FakePoolHost, pair: BotPool, meddle: Callable[[FakePoolHost], object], says: str
) -> None:
    meddle(host)
    ended = (await play(host, pair)).result.termination

    assert (ended.kind, ended.seat, ended.text) == (Ending.ABSENT, 1, says)


def failing(times: int) -> Game:
    """A game whose rules fail in the first `times` matches, after a hand."""
    fails = iter([False, True] * times)

    def on_step(step: AskSeat | TellSeat, board: Scoreboard) -> bool:
        if isinstance(step, TellSeat) and next(fails, False):
            raise RuntimeError("a fault in the rules")
        return False

    return watched(AKQ, on_step)


@pytest.mark.parametrize("times", [1, 3])
async def test_J5_a_void_match_is_played_again_but_not_for_ever(
    host: FakePoolHost, times: int, caplog: pytest.LogCaptureFixture
) -> None:
    bots = PoolBot("ann", COMMAND), PoolBot("ben", COMMAND)
    pool = await gathered(host, *bots, game=failing(times))

    if times == 3:
        with pytest.raises(ArenaError, match="ann against ben was void 3 times"):
            await play(host, pool)
    else:
        played = await play(host, pool)
        assert played.result.termination.kind is Ending.COMPLETED
        assert len(played.payoffs) == 2, "what was played in vain does not count"
