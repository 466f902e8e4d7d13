"""Who is here, and that a join, a leave and a look cost the same however many are there."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, cast

import msgspec
import pytest

from arena.competitions.config import Config
from arena.competitions.live_arena import LiveArena
from arena.competitions.planned_run import PlannedRun
from arena.competitions.scheduler import OpenGame, Scheduler
from arena.formats.spec import Form, plan_of
from arena.games.catalogue import GAMES
from arena.games.names import process_name
from arena.referee.budget import Budget
from arena.referee.sessions import BotSessions
from arena.storage.store import Store
from protocol.codec import Encoding
from protocol.messages import VERSION, Hello, Limits
from tests.support.fake_bots import FakeArena, FakeBotConnection
from tests.support.virtual_time import all_done

GAME = "ace_king_queen"
ROOT = "/arena/"
FEW, MANY = 50, 5_000


# --- who is here ---


def test_players_are_counted_by_game_token_and_address(house: FakeArena) -> None:
    players = BotSessions()
    ann, ben = house.bot("ann").player, house.bot("ben").player
    ann.token = "secret"
    players.add(ann)
    players.add(ben)

    assert (players.here, players.count(GAME), players.count("chess")) == (2, 2, 0)
    assert (players.with_token("secret"), players.anonymous("10.0.0.1")) == (1, 1)

    ann.disconnected()
    players.remove(ben)

    assert (players.here, players.count(GAME)) == (0, 0)
    assert (players.with_token("secret"), players.anonymous("10.0.0.1")) == (0, 0)
    assert list(players) == ["ann"]

    players.remove(ann)

    assert not any((players._counts, players._sessions, players._entries))


def test_who_is_counted_by_address_may_change(house: FakeArena) -> None:
    players = BotSessions()
    players.add(house.bot("ann").player)
    players.recount(lambda player: False)

    assert players.anonymous("10.0.0.1") == 0


def test_a_player_that_comes_back_counts_again_and_keeps_its_place(house: FakeArena) -> None:
    players = BotSessions()
    ann, ben = house.bot("ann"), house.bot("ben")
    players.add(ann.player)
    players.add(ben.player)
    ann.goes()
    ann.comes_back()

    assert players.count(GAME) == 2
    assert [player.name for player in players.of_game(GAME)] == ["ann", "ben"]


def test_sessions_are_found_until_they_are_good_no_longer(house: FakeArena) -> None:
    players = BotSessions()
    ann = house.bot("ann")
    players.add(ann.player)
    first = ann.player.secret
    ann.hello = msgspec.structs.replace(ann.hello, resume=first)
    ann.goes()
    ann.comes_back()

    assert players.of_session(first) is players.of_session(ann.player.secret)
    assert players.of_session("guessed") is None

    ann.player.note_welcome_arrived()
    ann.goes()

    assert players.of_session(first) is None


def test_those_who_moved_are_told_once(house: FakeArena) -> None:
    players = BotSessions()
    ann = house.bot("ann")
    players.add(ann.player)
    ann.goes()

    assert players.take_moved() == ("ann",)
    assert players.take_moved() == ()

    players.remove(ann.player)

    assert players.take_moved() == ("ann",)


def test_who_has_not_been_seen_is_new(house: FakeArena) -> None:
    players = BotSessions()
    ann, ben = house.bot("ann"), house.bot("ben")
    players.add(ann.player)
    players.see(GAME, ["ann"])

    assert list(players.unseen(GAME)) == []

    players.add(ben.player)
    ann.goes()
    ann.comes_back()

    assert list(players.unseen(GAME)) == ["ben"]

    ben.goes()

    assert list(players.unseen(GAME)) == []


def test_a_player_is_found_by_what_its_name_looks_like(house: FakeArena) -> None:
    players = BotSessions()
    ann = house.bot("Ann").player
    players.add(ann)

    assert players.like("ANN") is ann
    assert players.like("anna") is None
    assert "ANN" not in players


# --- what it costs ---


class GatewayConnection(FakeBotConnection):
    """A wire as the gateway needs it."""

    peer, close_code, close_reason = "?", None, ""

    def __init__(self) -> None:
        super().__init__()
        self.useless, self.is_open = 0, True
        self.budget = Budget(1_000)

    def hello_received(self) -> None:
        """It is welcome."""

    def close(self, code: int, reason: str = "") -> None:
        self.is_open = False


class IdleBots:
    """An arena with idle bots and three competitions that wait; cost is in bytecodes."""

    def __init__(self, host: LiveArena, count: int) -> None:
        self.host = host
        self.lines = [self.joins(f"bot {n}") for n in range(count)]
        assert len(host.gateway.players) == count, "all are welcome"

    def joins(self, name: str, **fields: Any) -> GatewayConnection:
        line = GatewayConnection()
        hello = Hello(VERSION, name, tuple(GAMES), **fields)
        now = asyncio.get_running_loop().time()
        self.host.gateway.connected(cast(Any, line))
        frame = msgspec.json.encode(hello)
        self.host.gateway.received(cast(Any, line), frame, Encoding.JSON, now)
        return line

    def leaves(self, line: GatewayConnection) -> None:
        self.host.gateway.lost(cast(Any, line))

    async def cost(self, action: Callable[[], object]) -> int:
        """How much is done for it, the course's tasks included."""
        await asyncio.sleep(0)
        count = 0

        def trace(frame: FrameType, event: str, arg: object) -> Any:
            nonlocal count
            if ROOT not in frame.f_code.co_filename:
                return None  # how often the loop goes round is not ours
            frame.f_trace_opcodes = True
            count += event == "opcode"
            return trace

        gc.disable()  # hypothesis listens to it
        before = sys.gettrace()  # coverage measures by it
        sys.settrace(trace)
        try:
            action()
            await all_done()
        finally:
            sys.settrace(before)
            gc.enable()
        return count


async def costs(tmp_path: Path, count: int) -> dict[str, int]:
    """What each of `COSTS` costs among so many bots."""
    with Store(tmp_path / f"{count}.db") as store:
        limits = Limits(per_address=10**6)
        host = LiveArena(store, limits=limits)
        nothing: Any = lambda *_: None  # noqa: E731
        scheduler = Scheduler(
            host, store, Config(), on_start=nothing, on_report=nothing, tell=nothing
        )
        rules = GAMES[GAME]
        plan = plan_of(rules, rules.vocabulary.read_settings({}), ())
        run = PlannedRun(name="run", game=GAME, form=Form.ROUND_ROBIN, least=10**6)
        waiting = asyncio.create_task(scheduler.run([run], [OpenGame(plan, 10**6)]))
        await asyncio.sleep(0)  # it goes on with nothing
        own = msgspec.structs.replace(plan, players=("bot 1", "bot 2", "new", "away"))
        competition = host.compete(own)
        competition.arbiter.is_paused = True
        playing = asyncio.create_task(host.play(competition))
        crowd = IdleBots(host, count)
        host.gateway._outboxes.flush()
        await all_done()  # a search through all connections has ended
        try:
            return {what: await crowd.cost(act(crowd)) for what, act in COSTS.items()}
        finally:
            for task in (waiting, playing):
                task.cancel()
            await asyncio.gather(waiting, playing, return_exceptions=True)


def comes_back(crowd: IdleBots) -> Callable[[], object]:
    player = crowd.host.gateway.players["bot 1"]
    return lambda: crowd.joins("bot 1", resume=player.secret)


def ticks(crowd: IdleBots) -> Callable[[], object]:
    gateway = crowd.host.gateway
    now = asyncio.get_running_loop().time()
    while gateway._pings._heap and gateway._pings._heap[0][0] <= now:
        list(gateway._pings.tick(now))

    def tick() -> None:
        gateway.referee.tick()
        gateway.throttle.tick()
        assert list(gateway._pings.tick(now)) == []

    # So many joins may have taken a second: that the arena stood still is noticed before.
    gateway.referee.tick()
    gateway.referee.tick()
    return tick


COSTS: dict[str, Callable[[IdleBots], Callable[[], object]]] = {
    "a join": lambda crowd: lambda: crowd.joins("new"),
    "a join with a token": lambda crowd: lambda: crowd.joins("newer", token="a word"),
    "a session that nobody has": lambda crowd: lambda: crowd.joins("bot 7", resume="0" * 32),
    "a leave": lambda crowd: lambda: crowd.leaves(crowd.lines[1]),
    "a bot that comes back": comes_back,
    "an idle tick": ticks,
}


@pytest.mark.virtual_time
async def test_what_happens_costs_the_same_however_many_are_there(tmp_path: Path) -> None:
    few, many = await costs(tmp_path, FEW), await costs(tmp_path, MANY)

    assert [what for what in COSTS if many[what] >= 1.05 * few[what]] == []
    assert 500 < few["a join"] < 50_000


# --- processes of submissions ---


def test_a_process_of_a_submission_is_found_by_its_name_and_nowhere_else(house: FakeArena) -> None:
    players = BotSessions()
    ann, process = house.bot("ann").player, house.bot("ann").player
    process.name = name = process_name("ann", 1)
    players.add(process)
    assert players.spellings.of("Ann") == "Ann", "it takes nobody's name"
    players.add(ann)
    process.disconnected()
    players.note(process)

    assert (players[name], players["ann"], players.like("ANN")) == (process, ann, ann)
    assert (list(players), len(players), players.here) == (["ann"], 1, 1)
    assert list(players.of_game(GAME)) == [ann]
    assert players.of_session(process.secret) is None
    assert players.take_moved() == ("ann",)

    players.remove(process)
    assert name not in players


def test_those_that_the_arena_has_launched_are_listed_with_submissions(house: FakeArena) -> None:
    players = BotSessions()
    launched = house.launched("ann").player
    submitted = house.launched("ben").player
    submitted.name = process_name("ben", 1)
    for player in (launched, house.bot("cem").player, submitted):
        players.add(player)

    assert list(players.launched()) == [launched, submitted]
