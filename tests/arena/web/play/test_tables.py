"""The tables of people, without sockets or processes: bookings, matches, and their ends."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from arena.competitions.live_arena import LiveArena
from arena.formats.spec import Form
from arena.games.names import alike
from arena.games.replay import replay
from arena.games.verdict import Finding
from arena.records.visibility import Viewer, ViewerKind
from arena.referee.bot_session import LiveMatch
from arena.referee.budget import Share
from arena.referee.sessions import BotSessions
from arena.referee.timers import Timers
from arena.server.admission import Admission, Unwelcome
from arena.storage.tokens import Access, hashed
from arena.web.play import tables
from arena.web.play.tables import PeopleTables
from arena.web.questions import PersonalMatch
from protocol.errors import ArenaError, UsageError
from protocol.messages import Ending, Limits, Mechanism
from protocol.watching import Seat, Sit
from tests.support.fake_bots import FakeArena, FakeBot
from tests.support.scripts import Case, Stage, cases, fields, like
from tests.support.virtual_time import all_done

pytestmark = pytest.mark.virtual_time(limit_s=7_200)

LIMITS = Limits(decision_ms=1_000, bank_ms=3_000, hard_ms=5_000, start_ms=2_000)
ROSTER = Access(names=frozenset({"ann"}), players={hashed("a"): "ann"})
VIEWERS = {
    "anybody": Viewer(),
    "ann": Viewer(ViewerKind.OWNER, "ann"),
    "instructor": Viewer(ViewerKind.INSTRUCTOR, "Eva"),
}


class FakePersonSocket:
    """A person's socket, in a browser of its own unless one is given."""

    def __init__(self, browser: str = "") -> None:
        self.browser = browser or f"browser {id(self)}"
        self.told: list[dict[str, Any]] = []

    def send(self, data: bytes) -> None:
        self.told.append(json.loads(data))


class FakeBotSupervisor(set[str]):
    """The bots that the arena has launched."""

    def __init__(self, host: FakePlayHost) -> None:
        super().__init__()
        self._host = host

    async def launch_house_bot(self, game: str, name: str, bot: str, tables: int) -> None:
        host = self._host
        await asyncio.sleep(0)
        if host.fails is not None:
            raise host.fails
        host.called.append((game, name, bot, tables))
        self.add(name)
        if host.comes_at_once:
            host.comes(name, tables=tables)

    def dismiss(self, name: str) -> None:
        self._host.ends(name)


class FakePlayHost:
    """A host and its gateway, with fake bots."""

    def __init__(
        self, requires_token: bool = False, access: Access | None = None, tables: int = 512
    ) -> None:
        self.house = FakeArena()
        self.referee = self.house.referee
        self._opened: list[str] = []
        opens = self.referee.open

        def opened(*seats: Any, **more: Any) -> LiveMatch:
            table = opens(*seats, **more)
            self._opened.append(table.id)
            return table

        self.referee.open = opened  # type: ignore[method-assign]
        self.limits = msgspec.structs.replace(LIMITS, tables=tables)
        self.players = BotSessions()
        self.gateway = SimpleNamespace(
            players=self.players,
            admission=Admission(self.players, LIMITS, access, requires_token),
            dismiss=self.dismiss,
            timers=Timers(asyncio.get_running_loop()),
        )
        self.competitions: list[Any] = []
        self.called: list[tuple[str, str, str, int]] = []
        self.dismissed: list[str] = []
        self.freed_names: list[tuple[str, ...]] = []
        self.supervisor = FakeBotSupervisor(self)
        self.fails: ArenaError | None = None
        self.comes_at_once = True
        self.bots: dict[str, FakeBot] = {}
        self.people = PeopleTables(cast(LiveArena, self))

    # --- as a host ---

    @property
    def here(self) -> FakePlayHost:
        return self

    @property
    def taken(self) -> set[str]:
        return {*self.players, *self.supervisor, *self.people.non_competing}

    def is_taken(self, name: str) -> bool:
        return alike(name) in map(alike, self.taken)

    def freed(self, names: Sequence[str]) -> None:
        self.freed_names.append(tuple(names))

    def dismiss(self, name: str, finding: Finding) -> None:
        """As the gateway does."""
        player = self.players.get(name)
        if player is not None:
            self.dismissed.append(f"{name}: {finding.text}")
            player.leaving = True
            self.referee.offence(player, finding)
            self.players.remove(player)

    # --- what a test does ---

    def comes(self, name: str, *, tables: int = 1, token: str | None = None) -> FakeBot:
        bot = self.house.bot(name, tables=tables)
        bot.player.token = token
        self.players.add(bot.player)
        self.bots[name] = bot
        self.people.changed()
        return bot

    def ends(self, name: str) -> None:
        self.supervisor.discard(name)
        self.dismiss(name, _left("crashed: exit status 1"))
        self.people.changed()

    @property
    def recent(self) -> list[PersonalMatch]:
        """The matches that are kept, the oldest first."""
        return [found for match in self._opened if (found := self.people.record(match))]


def _left(text: str) -> Finding:
    return Finding(kind=Ending.DISCONNECT, text=text, mechanism=Mechanism.SESSION)


class TableStage(Stage):
    """People by their names, bots by theirs; each person has a socket in a browser of its own."""

    def __init__(self, host: FakePlayHost, patch: pytest.MonkeyPatch) -> None:
        self.host = host
        self._patch = patch
        self._sockets = defaultdict[str, FakePersonSocket](FakePersonSocket)
        self._seats: dict[str, Seat] = {}

    # --- what happens ---

    async def do_settle(self, _: str) -> None:
        await all_done()

    async def do_wait(self, seconds: str) -> None:
        await asyncio.sleep(float(seconds))

    def do_launch(self, how: str) -> None:
        """Say how house bots are launched from now on: `at once`, `late`, or `fails WHY`."""
        fails, _, why = how.partition(" ")
        self.host.fails = ArenaError(why) if fails == "fails" else None
        self.host.comes_at_once = how == "at once"

    def do_supervise(self, name: str) -> None:
        self.host.supervisor.add(name)

    def do_expect(self, name: str) -> None:
        self.host.gateway.admission.expect(name, "a secret")

    def do_most(self, number: str) -> None:
        """So many matches that people have played are kept."""
        self._patch.setattr(tables, "_LEAST_ANSWERS", 1_000_000 // int(number))

    def do_open(self, names: str) -> None:
        """Have bots play a match that is no person's."""
        self.host.house.open(*(self.host.bots[name] for name in names.split()))

    def do_seat(self, names: str) -> None:
        self.host.house.sit(*(self.host.bots[name] for name in names.split()))

    def do_play(self, names: str) -> None:
        """Seat these bots, and have them answer until nothing is asked."""
        self.do_seat(names)
        self.host.house.play_out(*(self.host.bots[name] for name in names.split()))

    def do_void(self, why: str) -> None:
        self.host.referee.void(self.host.people.tables[0], why)

    def do_competition(self, words: str) -> None:
        self.host.competitions.append(competition(words))

    def do_starts(self, words: str) -> None:
        self.host.people.competition_started(competition(words))

    def do_crowd(self, address: str) -> None:
        for number in range(64):
            self.by_sits(f"{address}-{number}", f"tcp name=Guest from={address}")

    # --- what a person or a bot does ---

    def by_sits(self, name: str, words: str) -> None:
        """Book a seat: the game, against whom, settings; `as=`, `from=`, `name=`, `browser=`."""
        named = fields(" ".join(word for word in words.split() if "=" in word))
        viewer = VIEWERS[named.pop("as", "anybody")]
        address = named.pop("from", "10.0.0.1")
        said = named.pop("name", name).replace("_", " ")
        socket = self._sockets[name]
        socket.browser = named.pop("browser", socket.browser)
        game, *against = (word for word in words.split() if "=" not in word)
        sit = Sit(game, said, tuple(against), named or None)
        self._seats[name] = self.host.people.sit(socket, sit, address, viewer)

    def by_refused(self, name: str, text: str) -> None:
        words, _, why = text.partition(": ")
        before = (self.host.people.non_competing, list(self.host.called))
        with pytest.raises((UsageError, Unwelcome)) as caught:
            self.by_sits(name, words)
        assert (self.host.people.non_competing, self.host.called) == before
        assert like(str(caught.value), why), str(caught.value)

    def by_arrives(self, name: str, _: str) -> None:
        seat = self._seats[name]
        self.host.comes(seat.name, token=seat.token)

    def by_sends(self, name: str, text: str) -> None:
        """Send a bot of that name: a stranger, or one for another game."""
        seat, bot = self._seats[name], self.host.house.bot(name)
        if text == "a stranger":
            bot.player.token = "of a bot that was here before"
        else:
            bot.player.token, bot.player.games = seat.token, frozenset({text})
        self.host.players.add(bot.player)
        self.host.people.changed()

    def by_matches(self, name: str, words: str) -> None:
        """Play a match from the beginning to the end."""
        self.by_sits(name, words)
        self.by_arrives(name, "")
        self.do_play(name)

    def by_stands(self, name: str, _: str) -> None:
        self.host.people.stand(self._sockets[name])

    def by_closes(self, name: str, _: str) -> None:
        """Close the page; its browser shows no other one."""
        self.host.people.disconnected(self._sockets[name])
        self.host.people.unseen(self._sockets[name].browser)

    def by_looks(self, name: str, _: str) -> None:
        self.host.people.seen(self._sockets[name].browser)

    def by_comes(self, name: str, tables: str) -> None:
        self.host.comes(name, tables=int(tables or 1))

    def by_goes(self, name: str, _: str) -> None:
        self.host.bots[name].goes()

    def by_returns(self, name: str, _: str) -> None:
        self.host.bots[name].comes_back()
        self.host.people.changed()

    def by_ends(self, name: str, _: str) -> None:
        self.host.ends(name)

    def by_loses(self, name: str, _: str) -> None:
        self.host.referee.offence(self.host.players[name], _left("left"))

    def by_answers(self, name: str, value: str) -> None:
        bot = self.host.bots[name]
        [ask] = bot.asks()
        self.host.house.answer(bot, ask, value)

    def by_spends(self, name: str, _: str) -> None:
        self._share(name).spend(asyncio.get_running_loop().time(), 1.0)

    # --- what is so ---

    def do_tables(self, expected: str) -> None:
        tables = [[chair.player.name for chair in one.chairs] for one in self.host.people.tables]
        assert ["+".join(names) for names in tables] == (expected.split(", ") if expected else [])

    def do_settings(self, words: str) -> None:
        [table] = self.host.people.tables
        assert msgspec.to_builtins(table.settings) == fields(words)

    def do_launched(self, names: str) -> None:
        assert self.host.supervisor == set(names.split())

    def do_launches(self, expected: str) -> None:
        assert ["/".join(map(str, one)) for one in self.host.called] == expected.split(", ")

    def do_aside(self, names: str) -> None:
        """Those who take part in no competition."""
        assert self.host.people.non_competing == set(names.split())
        assert all(map(self.host.people.is_non_competing, names.split()))

    def do_offered(self, words: str) -> None:
        game, *names = words.split()
        offered = self.host.people.is_offered
        assert [name for name, bot in self.host.players.items() if offered(bot, game)] == names

    def do_recent(self, names: str) -> None:
        assert [match.players[0] for match in self.host.recent] == names.split()

    def do_record(self, text: str) -> None:
        """How the latest match ended: the kind, the seat, and why."""
        words, _, why = text.partition(": ")
        record = self.host.recent[-1]
        ended = record.record.termination
        assert f"{ended.kind.value} {ended.seat}" == words
        assert ended.text == why or not why

    def do_verdict(self, words: str) -> None:
        verdict = self.host.recent[-1].verdict
        assert (f"{verdict.bot} {verdict.kind.value}" if verdict else "") == words

    def do_dismissed(self, expected: str) -> None:
        assert self.host.dismissed == ([expected] if expected else [])
        self.host.dismissed.clear()

    def do_here(self, names: str) -> None:
        assert set(self.host.players) == set(names.split())

    def do_shares(self, names: str) -> None:
        """Each of them has a part of its own in the time of people."""
        shares = [self._share(name) for name in names.split()]
        assert len(set(map(id, shares))) == len(shares)

    def _share(self, name: str) -> Share:
        """The part of the time of people with which a player is served."""
        share = self.host.players[name].share
        if share is None:
            raise LookupError(f"{name} has no part of it")
        return share

    def by_shareless(self, name: str, _: str) -> None:
        assert self.host.players[name].share is None

    def by_spent(self, name: str, _: str) -> None:
        assert self._share(name).is_spent(asyncio.get_running_loop().time())

    def by_called(self, name: str, said: str) -> None:
        assert self._seats[name].name == said

    def by_told(self, name: str, text: str) -> None:
        told = [(one["type"], one["code"], one["text"]) for one in self._sockets[name].told]
        assert told[-1:] == ([("refused", "sit", text)] if text else [])

    def by_free(self, name: str, _: str) -> None:
        assert self.host.players[name].chairs == {}

    def by_forgotten(self, name: str, _: str) -> None:
        """Nobody is expected any more with the token of that seat."""
        assert hashed(self._seats[name].token) not in self.host.gateway.admission._expected


def competition(words: str) -> Any:
    """A running competition of these bots; or a `ladder`, from which some are `barred`."""
    names, _, barred = words.partition(" barred ")
    form = Form.LADDER if names == "ladder" else Form.ROUND_ROBIN
    players = () if form is Form.LADDER else tuple(names.split())
    return SimpleNamespace(
        plan=SimpleNamespace(players=players, form=form, game="ace_king_queen"),
        is_in=lambda name: name in players,
        only_waits=False,
        arbiter=SimpleNamespace(
            bots=SimpleNamespace(is_barred=lambda name: name in barred.split())
        ),
    )


@asynccontextmanager
async def opened(roster: bool = False, **options: Any) -> AsyncIterator[FakePlayHost]:
    host = FakePlayHost(access=ROSTER if roster else None, **options)
    yield host
    host.people.close()


@pytest.mark.parametrize("case", cases(Path(__file__).with_name("tables.cases")))
async def test_what_happens_at_the_tables(monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    async with opened(**case.given) as host:
        await TableStage(host, monkeypatch).play(case)


async def test_a_person_plays_a_connected_bot_and_the_record_is_kept() -> None:
    async with opened() as host:
        bob = host.comes("bob")
        seat = host.people.sit(
            FakePersonSocket(), Sit("akq", "Pat", ("bob",), {"hands": 4}), "10.0.0.1", Viewer()
        )
        pat = host.comes(seat.name, token=seat.token)
        [table] = host.people.tables
        assert [chair.limits.hard_ms for chair in table.chairs] == [3_600_000, 5_000]
        assert table.limits == LIMITS
        host.house.sit(pat, bob)
        host.house.play_out(pat, bob)

        [record] = host.recent
        assert (record.match, record.players) == (table.id, ("Pat", "bob"))
        assert record.record.settings == {"hands": 4}
        assert replay(record.record).record == record.record
        assert msgspec.json.decode(msgspec.json.encode(record), type=PersonalMatch)
        assert host.freed_names == [("Pat", "bob")]
