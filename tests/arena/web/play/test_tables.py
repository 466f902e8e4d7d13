"""The tables of people, without sockets or processes: bookings, matches, and their ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from arena.competitions.arena_host import Host
from arena.engine.names import alike
from arena.engine.verdict import Finding
from arena.formats.spec import Form
from arena.games.replay import replay
from arena.records.visibility import Viewer, ViewerKind
from arena.referee.sessions import BotSessions
from arena.referee.timers import Timers
from arena.server.admission import Admission, Unwelcome
from arena.storage.tokens import Access, hashed
from arena.web.play import house_bots
from arena.web.play.recent import PersonalMatch
from arena.web.play.tables import PeopleTables
from protocol.errors import ArenaError, UsageError
from protocol.messages import Ending, Limits, Mechanism
from protocol.watching import Seat, Sit
from tests.arena.referee.test_timers import FakeLoop, timers
from tests.support.fake_bots import FakeArena, FakeBot
from tests.support.virtual_time import all_done

pytestmark = pytest.mark.virtual_time

LIMITS = Limits(decision_ms=1_000, bank_ms=3_000, hard_ms=5_000, start_ms=2_000)
NEAR = "10.0.0.1"
PUBLIC = Viewer()
ANN = Viewer(ViewerKind.OWNER, "ann")


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

    def __init__(self, requires_token: bool = False, access: Access | None = None):
        self.house = FakeArena()
        self.referee = self.house.referee
        self.limits = LIMITS
        self.players = BotSessions()
        self.gateway = SimpleNamespace(
            players=self.players,
            admission=Admission(self.players, LIMITS, access, requires_token),
            dismissals=SimpleNamespace(dismiss=self.dismiss),
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
        self.people = PeopleTables(cast(Host, self))
        self.socket = FakePersonSocket()

    # --- as a host ---

    @property
    def presence(self) -> FakePlayHost:
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

    def sits(self, game: str = "akq", *against: str, **more: Any) -> Seat:
        socket, viewer = more.pop("socket", self.socket), more.pop("viewer", PUBLIC)
        address, name = more.pop("address", NEAR), more.pop("name", "Pat")
        sit = Sit(game, name, against, **more)
        return self.people.sit(socket, sit, address, viewer)

    def refuses(self, *words: Any, **more: Any) -> str:
        before = (self.people.non_competing, list(self.called))
        with pytest.raises((UsageError, Unwelcome)) as caught:
            self.sits(*words, **more)
        assert (self.people.non_competing, self.called) == before
        return str(caught.value)

    def comes(self, name: str, *, tables: int = 1, token: str | None = None) -> FakeBot:
        bot = self.house.bot(name, tables=tables)
        bot.player.token = token
        self.players.add(bot.player)
        self.bots[name] = bot
        self.people.changed()
        return bot

    def arrives(self, seat: Seat) -> FakeBot:
        return self.comes(seat.name, token=seat.token)

    def ends(self, name: str) -> None:
        self.supervisor.discard(name)
        self.dismiss(name, _left("crashed: exit status 1"))
        self.people.changed()

    def plays(self, *names: str) -> None:
        """Seat these bots, and have them answer until nothing is asked."""
        bots = [self.bots[name] for name in names]
        self.house.sit(*bots)
        self.house.play_out(*bots)

    @property
    def record(self) -> PersonalMatch:
        [found] = self.people._recent
        assert self.people.record(found.match) is found
        return found


def _left(text: str) -> Finding:
    return Finding(kind=Ending.DISCONNECT, text=text, mechanism=Mechanism.SESSION)


def competition(*names: str, form: Form = Form.ROUND_ROBIN, **more: Any) -> Any:
    """A running competition."""
    return SimpleNamespace(
        plan=SimpleNamespace(players=names, form=form, game=more.get("game", "ace_king_queen")),
        is_in=lambda name: name in names,
        arbiter=SimpleNamespace(is_barred=lambda name: name in more.get("barred", ())),
    )


@asynccontextmanager
async def opened(**options: Any) -> AsyncIterator[FakePlayHost]:
    host = FakePlayHost(**options)
    yield host
    host.people.close()


@pytest.fixture
async def host() -> AsyncIterator[FakePlayHost]:
    async with opened() as host:
        yield host


# --- to sit down ---


async def test_a_person_plays_a_connected_bot_and_the_record_is_kept(host: FakePlayHost) -> None:
    host.comes("bob")
    seat = host.sits("akq", "bob", settings={"hands": 4})
    assert seat.name == "Pat"
    assert not host.people.tables

    host.arrives(seat)
    [table] = host.people.tables
    assert [chair.player.name for chair in table.chairs] == ["Pat", "bob"]
    assert [chair.limits.hard_ms for chair in table.chairs] == [3_600_000, 5_000]
    assert table.limits == LIMITS
    host.plays("Pat", "bob")

    record = host.record
    assert (record.match, record.players) == (table.id, ("Pat", "bob"))
    assert record.record.settings == {"hands": 4}
    assert replay(record.record).record == record.record
    assert record.verdict is None
    assert msgspec.json.decode(msgspec.json.encode(record), type=PersonalMatch)
    assert host.people.tables == ()
    await all_done()
    assert host.dismissed == ["Pat: the match is over"]
    assert host.people.non_competing == set()
    assert host.freed_names == [("Pat", "bob")]


async def test_house_bots_are_started_once_and_stopped_when_nobody_needs_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(house_bots, "_IDLE_S", 0)

    async with opened() as host:
        one = host.sits("akq", "house:random")
        other = host.sits("akq", "house:random", name="Sue", socket=FakePersonSocket())
        await all_done()
        assert host.called == [("ace_king_queen", "house:random", "random", 512)]
        assert host.people.is_non_competing("house:random")
        host.arrives(one)
        host.arrives(other)
        assert len(host.people.tables) == 2

        host.plays("Pat", "Sue", "house:random")
        assert len(host.people._recent) == 2
        while host.people.non_competing:
            await asyncio.sleep(0)
        assert host.supervisor == set()

        host.sits("akq", "house:random", socket=FakePersonSocket())
        await all_done()
        assert len(host.called) == 2


async def test_a_house_bot_that_is_wanted_again_in_time_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("arena.web.play.house_bots._IDLE_S", 0.0)

    async with opened() as host:
        host.sits("akq", "house:random")
        await all_done()
        host.people.stand(host.socket)
        host.sits("akq", "house:random", name="Sue", socket=FakePersonSocket())
        await all_done()
        assert host.supervisor == {"house:random"}
        assert len(host.called) == 1


async def test_one_house_bot_takes_several_chairs_of_a_table(host: FakePlayHost) -> None:
    against = ("house:random",) * 3
    seat = host.sits("high_low", *against, settings={"max_shuffles": 1})
    host.arrives(seat)
    assert not host.people.tables, "the house bot is on its way"
    await all_done()
    [table] = host.people.tables
    names = [chair.player.name for chair in table.chairs]
    assert names == ["Pat", *against]
    assert len(host.called) == 1


async def test_the_same_house_bot_in_another_game_has_another_name(host: FakePlayHost) -> None:
    host.sits("akq", "house:random")
    host.sits("gin", "house:random", name="Sue", socket=FakePersonSocket())
    await all_done()
    names = [name for _, name, _, _ in host.called]
    assert names == ["house:random", "house:random (gin)"]


async def test_against_the_dealer_a_person_sits_alone_and_matches_are_short(
    host: FakePlayHost,
) -> None:
    host.arrives(host.sits("blackjack"))
    [table] = host.people.tables
    assert msgspec.to_builtins(table.settings) == {
        "bankroll": 100,
        "hands": 20,
        "shuffle": "uniform",
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("poker",), "unknown game 'poker'"),
        (("akq",), "expected 1 to play against in ace_king_queen, got 0"),
        (("blackjack", "house:simple"), "expected 0 to play against in blackjack"),
        (("akq", "house:nobody"), "no house bot 'house:nobody' for ace_king_queen"),
        (("akq", "nobody"), "has a free table and is in no competition, got 'nobody'"),
        (("akq", "gone"), "got 'gone'"),
        (("akq", "busy"), "got 'busy'"),
        (("akq", "needed"), "got 'needed'"),
        (("high_low", "free", "free", "free"), "has 3 free tables and"),
    ],
)
async def test_who_cannot_be_played_against(
    host: FakePlayHost, words: tuple[str, ...], said: str
) -> None:
    for name in ("gone", "busy", "needed", "free"):
        host.comes(name, tables=2 if name == "free" else 1)
    host.bots["gone"].goes()
    host.house.open(host.bots["busy"], host.bots["free"])
    host.competitions.append(competition("needed"))

    assert said in host.refuses(*words)


async def test_who_is_on_a_ladder_of_its_game_is_not_offered_unless_it_is_barred(
    host: FakePlayHost,
) -> None:
    for name in ("ann", "bob"):
        host.comes(name)
    host.competitions.append(competition(form=Form.LADDER, barred=("bob",)))
    offered = [
        name for name, player in host.players.items() if host.people.is_offered(player, "gin_rummy")
    ]

    assert offered == ["bob"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"hands": 1_001}, "expected hands of at most 1,000 with a person at the table"),
        ({"hands": -1}, "hands"),
        ({"rounds": 3}, "rounds"),
        ({"hands": "many"}, "hands"),
        ({"hands": [1]}, "hands"),
    ],
)
async def test_settings_that_are_none_or_too_long(
    host: FakePlayHost, settings: dict[str, Any], said: str
) -> None:
    assert said in host.refuses("akq", "house:random", settings=settings)


# --- names and tokens ---


@pytest.mark.parametrize("name", ["bob", "launched", "Pat", "BOB", "Ｌaunched"])
async def test_a_person_whose_name_somebody_has_gets_a_number(
    host: FakePlayHost, name: str
) -> None:
    host.comes("bob")
    host.supervisor.add("launched")
    host.sits("akq", "house:random")

    for number in (2, 3):
        seat = host.sits("tcp", name=name, socket=FakePersonSocket())
        assert seat.name == f"{name} {number}"


async def test_a_number_is_not_given_twice_and_fits_the_longest_name(host: FakePlayHost) -> None:
    host.sits("tcp", name="guest  2", socket=FakePersonSocket())
    names = [host.sits("tcp", name="Guest", socket=FakePersonSocket()).name for _ in range(3)]
    assert names == ["Guest", "Guest 3", "Guest 4"]

    long = "x" * 64
    names = [host.sits("tcp", name=long, socket=FakePersonSocket()).name for _ in range(2)]
    assert names == [long, "x" * 62 + " 2"]


async def test_a_person_does_not_take_a_name_that_is_kept(host: FakePlayHost) -> None:
    host.gateway.admission.expect("kept", "a secret")
    for name in ("kept", "KEPT"):
        assert "is kept" in host.refuses("tcp", name=name, socket=FakePersonSocket())


async def test_a_person_does_not_pass_for_a_house_bot(host: FakePlayHost) -> None:
    for name in ("house:random", "house:anything", "House：x"):
        assert "no house bot" in host.refuses("tcp", name=name)


ROSTER = Access(names=frozenset({"ann"}), players={hashed("a"): "ann"})


@pytest.mark.parametrize(
    ("said", "called"),
    [
        ("Pat", "ann/Pat"),
        ("ann/Pat", "ann/Pat"),
        ("ann", "ann/person"),
        ("ANN/Pat", "ann/Pat"),
        ("ANN", "ann/person"),
    ],
)
async def test_who_is_on_the_roster_keeps_its_own_name_for_its_bot(said: str, called: str) -> None:
    async with opened(access=ROSTER) as host:
        assert host.sits("tcp", name=said, viewer=ANN).name == called


@pytest.mark.parametrize("name", ["ann", "ann/me"])
async def test_nobody_else_takes_a_name_of_the_roster(name: str) -> None:
    async with opened(access=ROSTER) as host:
        for viewer in (PUBLIC, Viewer(ViewerKind.INSTRUCTOR)):
            assert "expected a token" in host.refuses("tcp", name=name, viewer=viewer)
        long = "x" * 62
        assert "a shorter name" in host.refuses("tcp", name=long, viewer=ANN)
        assert "a shorter name" in host.refuses("tcp", name="ann/", viewer=ANN)


async def test_where_tokens_are_needed_people_need_one() -> None:
    async with opened(access=ROSTER, requires_token=True) as host:
        assert "expected a token" in host.refuses("tcp")
        assert host.sits("tcp", viewer=ANN).name == "ann/Pat"
        instructor = Viewer(ViewerKind.INSTRUCTOR)
        assert host.sits("tcp", viewer=instructor, socket=FakePersonSocket()).name == "Pat"


# --- how many ---


async def test_a_class_behind_one_address_finds_room_and_so_do_four_of_them(
    host: FakePlayHost,
) -> None:
    for _ in range(64):
        assert host.sits("tcp", name="Guest", socket=FakePersonSocket()).name.startswith("Guest")
    said = host.refuses("tcp")
    assert said == "expected at most 64 tables for people from one address; come back later"

    for n in range(192):
        host.sits("tcp", name="Guest", socket=FakePersonSocket(), address=f"10.0.1.{n // 64}")
    said = host.refuses("tcp", address="10.0.2.1")
    assert said == "expected at most 256 tables for people; come back later"


@pytest.mark.parametrize("viewer", [PUBLIC, ANN, Viewer(ViewerKind.INSTRUCTOR, "Eva")])
async def test_a_person_has_four_tables_and_is_told_so(viewer: Viewer) -> None:
    async with opened(access=ROSTER) as host:

        def socket() -> FakePersonSocket:  # a login is the same wherever it comes from
            return FakePersonSocket("one browser" if viewer is PUBLIC else "")

        for _ in range(4):
            host.sits("tcp", socket=socket(), viewer=viewer)
        said = host.refuses("tcp", socket=socket(), viewer=viewer)
        assert said == "expected at most 4 tables for one person; stand up at one of yours first"

        host.sits("tcp", socket=FakePersonSocket(), viewer=PUBLIC, name="another")


async def test_when_people_have_used_up_their_share_newcomers_are_told_so(
    host: FakePlayHost,
) -> None:
    person = host.arrives(host.sits("tcp"))
    share = person.player.share
    assert share is not None
    share.spend(asyncio.get_running_loop().time(), 1.0)

    said = host.refuses("tcp", socket=FakePersonSocket(), address="10.0.2.1")
    assert (
        said
        == "people who play take all the time that the arena has for them; try again in a moment"
    )


async def test_a_persons_table_is_served_from_the_share_of_people_and_a_bots_is_not(
    host: FakePlayHost,
) -> None:
    bob = host.comes("bob")
    pat = host.arrives(host.sits("akq", "house:random"))
    sue = host.arrives(host.sits("tcp", name="Sue", socket=FakePersonSocket()))
    await all_done()
    house = host.players["house:random"]

    assert bob.player.share is None
    assert house.share is not None
    shares = {id(player.share) for player in (pat.player, sue.player, house)}
    assert len(shares) == 3, "each of them its own part"
    now = asyncio.get_running_loop().time()
    assert pat.player.share is not None
    pat.player.share.spend(now, 1.0)
    assert house.share.is_spent(now), "all of it within that of all people"


async def test_a_house_bot_whose_tables_are_all_taken_is_told_at_once(host: FakePlayHost) -> None:
    host.people._house_bots.tables = 4
    host.sits("high_low", *("house:random",) * 3, socket=FakePersonSocket())
    said = host.refuses("high_low", *("house:random",) * 3, name="Sue")
    assert "house:random plays at all of its 4; choose another" in said


async def test_nobody_has_two_chairs(host: FakePlayHost) -> None:
    host.sits("tcp")
    assert "to stand up first" in host.refuses("tcp", name="Pat again")
    host.people.stand(host.socket)
    await all_done()
    host.sits("tcp", name="Pat")


async def test_the_latest_records_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.web.play.recent._MOST", 3)

    async with opened() as host:
        for n in range(5):
            seat = host.sits("tcp", name=f"p{n}", settings={"rounds": 1}, socket=FakePersonSocket())
            host.arrives(seat)
            host.plays(seat.name)
        kept = [match.players[0] for match in host.people._recent]
        assert kept == ["p2", "p3", "p4"]

        monkeypatch.setattr("arena.web.play.recent._MOST_ANSWERS", 1)
        host.arrives(host.sits("tcp", settings={"rounds": 1}))
        host.plays("Pat")
        assert host.record.players == ("Pat",), "the latest whatever its length"


async def test_as_many_records_are_kept_as_there_is_room_for_their_answers(
    host: FakePlayHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(6):
        seat = host.sits("tcp", name=f"p{n}", settings={"rounds": 1}, socket=FakePersonSocket())
        host.arrives(seat)
        host.plays(seat.name)
        if n == 0:
            answers = len(host.record.record.answers)
            monkeypatch.setattr("arena.web.play.recent._MOST_ANSWERS", 2 * answers)
    kept = [match.players[0] for match in host.people._recent]
    assert kept == ["p4", "p5"]


# --- who does not come, and who goes ---


async def test_the_chair_is_for_who_has_its_token(host: FakePlayHost) -> None:
    seat = host.sits("tcp")
    host.comes(seat.name, token="of a bot that was here before")
    assert host.people.tables == ()

    host.players[seat.name].token = seat.token
    host.people.changed()
    assert len(host.people.tables) == 1


async def test_who_does_not_come_within_a_minute_has_no_chair(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("arena.web.play.tables._WAIT_S", 0)

    async with opened() as host:
        seat = host.sits("tcp")
        while not host.socket.told:
            await asyncio.sleep(0)
        [refused] = host.socket.told
        assert (refused["code"], refused["text"]) == ("sit", "not all came within 0 s")
        await all_done()
        assert host.people.non_competing == set()
        with pytest.raises(KeyError):
            host.gateway.admission._expected[hashed(seat.token)]


async def test_a_house_bot_that_cannot_be_started_or_ends_is_told(host: FakePlayHost) -> None:
    host.fails = ArenaError("no memory")
    person = host.arrives(host.sits("akq", "house:random"))
    await all_done()
    assert host.socket.told[-1]["text"] == "house:random cannot be started: no memory"
    assert host.dismissed[-1].startswith("Pat: house:random cannot be started")
    assert person.player.name not in host.players

    host.fails, host.comes_at_once = None, False
    host.arrives(host.sits("akq", "house:random"))
    await all_done()
    host.ends("house:random")
    assert host.socket.told[-1]["text"] == "house:random has left"

    await all_done()
    host.comes_at_once = True
    host.arrives(host.sits("akq", "house:random"))
    await all_done()
    assert len(host.people.tables) == 1, "it is started once more"


async def test_an_opponent_that_leaves_before_the_match_is_told(host: FakePlayHost) -> None:
    host.comes("bob")
    host.comes("eve")
    seat = host.sits("akq", "bob")
    host.ends("bob")
    assert host.socket.told == [], "perhaps the person does not come either"
    host.arrives(seat)
    assert host.socket.told[-1]["text"] == "bob has left"


async def test_a_person_who_plays_another_game_is_sent_away(host: FakePlayHost) -> None:
    seat = host.sits("tcp")
    bot = host.house.bot(seat.name)
    bot.player.token, bot.player.games = seat.token, frozenset({"gin_rummy"})
    host.players.add(bot.player)
    host.people.changed()
    await all_done()
    assert host.dismissed == ["Pat: expected hello with the game three_card_poker"]


async def test_who_stands_up_has_lost_and_nobody_is_told(host: FakePlayHost) -> None:
    host.comes("bob")
    host.arrives(host.sits("akq", "bob"))
    host.house.sit(host.bots["Pat"], host.bots["bob"])
    host.people.stand(host.socket)
    ended = host.record.record.termination
    assert (ended.kind, ended.seat) == (Ending.DISCONNECT, 0)
    assert ended.text == "stood up in the middle of the match"
    assert host.socket.told == []
    await all_done()
    assert "bob" in host.players
    assert host.people.non_competing == set()
    host.people.stand(host.socket)  # there is nothing to give up any more


async def test_whoever_closes_the_page_before_hello_frees_its_chair_and_after_it_plays_on(
    host: FakePlayHost,
) -> None:
    host.sits("tcp")
    host.people.disconnected(host.socket)
    await all_done()
    assert (host.people.non_competing, host.socket.told) == (set(), [])

    host.arrives(host.sits("tcp", settings={"rounds": 2}))
    host.people.disconnected(host.socket)
    host.plays("Pat")
    assert host.record.record.termination.kind is Ending.COMPLETED


async def test_a_table_that_nobody_looks_at_is_given_back_after_a_minute(
    host: FakePlayHost,
) -> None:
    loop = FakeLoop()
    host.gateway.timers = timers(loop)
    host.comes("bob")
    person = host.arrives(host.sits("akq", "bob"))
    host.house.sit(person, host.bots["bob"])
    host.arrives(host.sits("tcp", name="Sue", socket=FakePersonSocket()))
    host.people.disconnected(host.socket)
    host.people.unseen(host.socket.browser)

    loop.runs(59)
    assert not list(host.people._recent)
    loop.runs(2)
    ended = host.record.record.termination
    assert (ended.kind, ended.seat) == (Ending.DISCONNECT, 0)
    assert ended.text == "nobody has looked at the table for 60 s"
    [table] = host.people.tables
    assert table.chairs[0].player.name == "Sue", "whom somebody looks at"


async def test_a_page_that_is_loaded_again_keeps_its_table(host: FakePlayHost) -> None:
    loop = FakeLoop()
    host.gateway.timers = timers(loop)
    host.arrives(host.sits("tcp"))
    for _ in range(3):
        host.people.disconnected(host.socket)
        host.people.unseen(host.socket.browser)
        loop.runs(59)
        host.people.seen(host.socket.browser)
    loop.runs(3600)

    assert len(host.people.tables) == 1


async def test_who_has_lost_its_connection_at_the_end_may_come_back_to_hear_of_it(
    host: FakePlayHost,
) -> None:
    host.comes("bob")
    person = host.arrives(host.sits("akq", "bob"))
    host.house.sit(person, host.bots["bob"])
    person.goes()
    gone = _left("left")
    host.referee.offence(host.players["bob"], gone)
    await all_done()
    assert host.dismissed == []
    assert host.people.is_non_competing("Pat")

    person.comes_back()
    host.people.changed()
    await all_done()
    assert host.dismissed == ["Pat: the match is over"]
    assert not host.people.is_non_competing("Pat")


async def test_the_same_person_plays_again_though_its_last_connection_is_lost(
    host: FakePlayHost,
) -> None:
    person = host.arrives(host.sits("tcp", settings={"rounds": 1}))
    person.goes()
    host.referee.void(host.people.tables[0], "for the test")
    await all_done()
    assert host.people.is_non_competing("Pat")

    host.arrives(host.sits("tcp", settings={"rounds": 1}))
    host.plays("Pat")
    assert len(host.people._recent) == 2


# --- offences, and competitions ---


async def test_an_offence_ends_its_match_and_that_is_all(host: FakePlayHost) -> None:
    host.comes("bob")
    host.arrives(host.sits("akq", "bob"))
    host.house.sit(host.bots["Pat"], host.bots["bob"])
    [ask] = host.bots["Pat"].asks()
    host.house.answer(host.bots["Pat"], ask, "bet")
    [ask] = host.bots["bob"].asks()
    host.house.answer(host.bots["bob"], ask, "all in")
    record = host.record
    assert record.verdict is not None
    assert (record.verdict.bot, record.verdict.kind) == ("bob", Ending.ILLEGAL)
    await all_done()
    host.arrives(host.sits("akq", "bob"))
    assert len(host.people.tables) == 1, "it can be played against again"


async def test_a_competition_that_needs_a_bot_gets_it_at_once(host: FakePlayHost) -> None:
    for name in ("ann", "bob"):
        host.comes(name)
    host.arrives(host.sits("akq", "bob"))
    host.sits("akq", "ann", name="Sue", socket=(socket := FakePersonSocket()))
    host.arrives(host.sits("tcp", name="Tim", socket=FakePersonSocket()))
    host.people.competition_started(competition("ann", "bob"))

    ended = host.record.record.termination
    assert (ended.kind, ended.seat) == (Ending.VOID, None)
    assert ended.text == "bob has to play in a competition"
    assert host.players["bob"].chairs == {}
    assert socket.told[-1]["text"] == "ann has to play in a competition"
    await all_done()
    assert [table.chairs[0].player.name for table in host.people.tables] == ["Tim"]


async def test_a_ladder_of_the_game_takes_bots_but_neither_people_nor_their_house_bots(
    host: FakePlayHost,
) -> None:
    host.comes("bob")
    host.arrives(host.sits("akq", "bob"))
    host.arrives(host.sits("akq", "house:random", name="Sue", socket=FakePersonSocket()))
    await all_done()
    host.people.competition_started(competition(form=Form.LADDER))

    [table] = host.people.tables
    assert table.chairs[0].player.name == "Sue"


async def test_a_person_gives_way_to_a_bot_of_its_name_that_a_competition_awaits(
    host: FakePlayHost,
) -> None:
    host.arrives(host.sits("tcp", name="zoe"))
    host.people.competition_started(competition("zoe"))
    await all_done()
    assert host.dismissed == ["zoe: zoe has to play in a competition"]
    assert "zoe" not in host.taken
