"""People at a table, without sockets or processes: who may sit down, who comes, what ends it, and what it leaves behind."""

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
from tests.support.fake_host import turns

LIMITS = Limits(decision_ms=1_000, bank_ms=3_000, hard_ms=5_000, start_ms=2_000)
NEAR = "10.0.0.1"
PUBLIC = Viewer()
ANN = Viewer(ViewerKind.OWNER, "ann")


class Eye:
    """The socket that a person asks at, in a browser of its own unless it is said."""

    def __init__(self, browser: str = "") -> None:
        self.browser = browser or f"browser {id(self)}"
        self.told: list[dict[str, Any]] = []

    def send(self, data: bytes) -> None:
        self.told.append(json.loads(data))


class FakeBotSupervisor(set[str]):
    """Stands in for the bots that the arena has launched."""

    def __init__(self, stand: FakePlayHost) -> None:
        super().__init__()
        self._stand = stand

    async def launch_house_bot(self, game: str, name: str, bot: str, tables: int) -> None:
        stand = self._stand
        await asyncio.sleep(0)
        if stand.fails is not None:
            raise stand.fails
        stand.called.append((game, name, bot, tables))
        self.add(name)
        if stand.comes_at_once:
            stand.comes(name, tables=tables)

    def dismiss(self, name: str) -> None:
        self._stand.ends(name)


class FakePlayHost:
    """Stands in for the host and its gateway; bots are a house's."""

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
        self.eye = Eye()

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
        eye, viewer = more.pop("eye", self.eye), more.pop("viewer", PUBLIC)
        address, name = more.pop("address", NEAR), more.pop("name", "Pat")
        sit = Sit(game, name, against, **more)
        return self.people.sit(eye, sit, address, viewer)

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
        """The person says hello."""
        return self.comes(seat.name, token=seat.token)

    def ends(self, name: str) -> None:
        """A process ends."""
        self.supervisor.discard(name)
        self.dismiss(name, _left("crashed: exit status 1"))
        self.people.changed()

    def plays(self, *names: str) -> None:
        """All of them take their chairs and answer until nothing is asked."""
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
    """One that is on."""
    return SimpleNamespace(
        plan=SimpleNamespace(players=names, form=form, game=more.get("game", "ace_king_queen")),
        is_in=lambda name: name in names,
        arbiter=SimpleNamespace(is_barred=lambda name: name in more.get("barred", ())),
    )


@asynccontextmanager
async def opened(**options: Any) -> AsyncIterator[FakePlayHost]:
    stand = FakePlayHost(**options)
    yield stand
    stand.people.close()


@pytest.fixture
async def stand() -> AsyncIterator[FakePlayHost]:
    async with opened() as stand:
        yield stand


# --- to sit down ---


async def test_a_person_plays_a_connected_bot_and_the_record_is_kept(stand: FakePlayHost) -> None:
    stand.comes("bob")
    seat = stand.sits("akq", "bob", settings={"hands": 4})
    assert seat.name == "Pat"
    assert not stand.people.tables

    stand.arrives(seat)
    [table] = stand.people.tables
    assert [chair.player.name for chair in table.chairs] == ["Pat", "bob"]
    assert [chair.limits.hard_ms for chair in table.chairs] == [3_600_000, 5_000]
    assert table.limits == LIMITS
    stand.plays("Pat", "bob")

    record = stand.record
    assert (record.match, record.players) == (table.id, ("Pat", "bob"))
    assert record.record.settings == {"hands": 4}
    assert replay(record.record).record == record.record
    assert record.verdict is None
    assert msgspec.json.decode(msgspec.json.encode(record), type=PersonalMatch)
    assert stand.people.tables == ()
    await turns()
    assert stand.dismissed == ["Pat: the match is over"]
    assert stand.people.non_competing == set()
    assert stand.freed_names == [("Pat", "bob")]


async def test_house_bots_are_started_once_and_stopped_when_nobody_needs_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(house_bots, "_IDLE_S", 0)

    async with opened() as stand:
        one = stand.sits("akq", "house:random")
        other = stand.sits("akq", "house:random", name="Sue", eye=Eye())
        await turns()
        assert stand.called == [("ace_king_queen", "house:random", "random", 512)]
        assert stand.people.is_non_competing("house:random")
        stand.arrives(one)
        stand.arrives(other)
        assert len(stand.people.tables) == 2

        stand.plays("Pat", "Sue", "house:random")
        assert len(stand.people._recent) == 2
        while stand.people.non_competing:
            await asyncio.sleep(0)
        assert stand.supervisor == set()

        stand.sits("akq", "house:random", eye=Eye())
        await turns()
        assert len(stand.called) == 2


async def test_a_house_bot_that_is_wanted_again_in_time_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("arena.web.play.house_bots._IDLE_S", 0.0)

    async with opened() as stand:
        stand.sits("akq", "house:random")
        await turns()
        stand.people.stand(stand.eye)
        stand.sits("akq", "house:random", name="Sue", eye=Eye())
        await turns()
        assert stand.supervisor == {"house:random"}
        assert len(stand.called) == 1


async def test_one_house_bot_takes_several_chairs_of_a_table(stand: FakePlayHost) -> None:
    against = ("house:random",) * 3
    seat = stand.sits("high_low", *against, settings={"max_shuffles": 1})
    stand.arrives(seat)
    assert not stand.people.tables, "the house bot is on its way"
    await turns()
    [table] = stand.people.tables
    names = [chair.player.name for chair in table.chairs]
    assert names == ["Pat", *against]
    assert len(stand.called) == 1


async def test_the_same_house_bot_in_another_game_has_another_name(stand: FakePlayHost) -> None:
    stand.sits("akq", "house:random")
    stand.sits("gin", "house:random", name="Sue", eye=Eye())
    await turns()
    names = [name for _, name, _, _ in stand.called]
    assert names == ["house:random", "house:random (gin)"]


async def test_against_the_dealer_a_person_sits_alone_and_matches_are_short(
    stand: FakePlayHost,
) -> None:
    stand.arrives(stand.sits("blackjack"))
    [table] = stand.people.tables
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
    stand: FakePlayHost, words: tuple[str, ...], said: str
) -> None:
    for name in ("gone", "busy", "needed", "free"):
        stand.comes(name, tables=2 if name == "free" else 1)
    stand.bots["gone"].goes()
    stand.house.open(stand.bots["busy"], stand.bots["free"])
    stand.competitions.append(competition("needed"))

    assert said in stand.refuses(*words)


async def test_who_is_on_a_ladder_of_its_game_is_not_offered_unless_it_is_barred(
    stand: FakePlayHost,
) -> None:
    for name in ("ann", "bob"):
        stand.comes(name)
    stand.competitions.append(competition(form=Form.LADDER, barred=("bob",)))
    offered = [
        name
        for name, player in stand.players.items()
        if stand.people.is_offered(player, "gin_rummy")
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
    stand: FakePlayHost, settings: dict[str, Any], said: str
) -> None:
    assert said in stand.refuses("akq", "house:random", settings=settings)


# --- names and tokens ---


@pytest.mark.parametrize("name", ["bob", "launched", "Pat", "BOB", "Ｌaunched"])
async def test_a_person_whose_name_somebody_has_gets_a_number(
    stand: FakePlayHost, name: str
) -> None:
    stand.comes("bob")
    stand.supervisor.add("launched")
    stand.sits("akq", "house:random")

    for number in (2, 3):
        seat = stand.sits("tcp", name=name, eye=Eye())
        assert seat.name == f"{name} {number}"


async def test_a_number_is_not_given_twice_and_fits_the_longest_name(stand: FakePlayHost) -> None:
    stand.sits("tcp", name="guest  2", eye=Eye())
    names = [stand.sits("tcp", name="Guest", eye=Eye()).name for _ in range(3)]
    assert names == ["Guest", "Guest 3", "Guest 4"]

    long = "x" * 64
    names = [stand.sits("tcp", name=long, eye=Eye()).name for _ in range(2)]
    assert names == [long, "x" * 62 + " 2"]


async def test_a_person_does_not_take_a_name_that_is_kept(stand: FakePlayHost) -> None:
    stand.gateway.admission.expect("kept", "a secret")
    for name in ("kept", "KEPT"):
        assert "is kept" in stand.refuses("tcp", name=name, eye=Eye())


async def test_a_person_does_not_pass_for_a_house_bot(stand: FakePlayHost) -> None:
    for name in ("house:random", "house:anything", "House：x"):
        assert "no house bot" in stand.refuses("tcp", name=name)


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
    async with opened(access=ROSTER) as stand:
        assert stand.sits("tcp", name=said, viewer=ANN).name == called


@pytest.mark.parametrize("name", ["ann", "ann/me"])
async def test_nobody_else_takes_a_name_of_the_roster(name: str) -> None:
    async with opened(access=ROSTER) as stand:
        for viewer in (PUBLIC, Viewer(ViewerKind.INSTRUCTOR)):
            assert "expected a token" in stand.refuses("tcp", name=name, viewer=viewer)
        long = "x" * 62
        assert "a shorter name" in stand.refuses("tcp", name=long, viewer=ANN)
        assert "a shorter name" in stand.refuses("tcp", name="ann/", viewer=ANN)


async def test_where_tokens_are_needed_people_need_one() -> None:
    async with opened(access=ROSTER, requires_token=True) as stand:
        assert "expected a token" in stand.refuses("tcp")
        assert stand.sits("tcp", viewer=ANN).name == "ann/Pat"
        instructor = Viewer(ViewerKind.INSTRUCTOR)
        assert stand.sits("tcp", viewer=instructor, eye=Eye()).name == "Pat"


# --- how many ---


async def test_a_class_behind_one_address_finds_room_and_so_do_four_of_them(
    stand: FakePlayHost,
) -> None:
    for _ in range(64):
        assert stand.sits("tcp", name="Guest", eye=Eye()).name.startswith("Guest")
    said = stand.refuses("tcp")
    assert said == "expected at most 64 tables for people from one address; come back later"  # fmt: skip

    for n in range(192):
        stand.sits("tcp", name="Guest", eye=Eye(), address=f"10.0.1.{n // 64}")
    said = stand.refuses("tcp", address="10.0.2.1")
    assert said == "expected at most 256 tables for people; come back later"


@pytest.mark.parametrize("viewer", [PUBLIC, ANN, Viewer(ViewerKind.INSTRUCTOR, "Eva")])
async def test_a_person_has_four_tables_and_is_told_so(viewer: Viewer) -> None:
    async with opened(access=ROSTER) as stand:

        def eye() -> Eye:  # a login is the same wherever it comes from
            return Eye("one browser" if viewer is PUBLIC else "")

        for _ in range(4):
            stand.sits("tcp", eye=eye(), viewer=viewer)
        said = stand.refuses("tcp", eye=eye(), viewer=viewer)
        assert said == "expected at most 4 tables for one person; stand up at one of yours first"  # fmt: skip

        stand.sits("tcp", eye=Eye(), viewer=PUBLIC, name="another")


async def test_when_people_have_used_up_their_share_newcomers_are_told_so(
    stand: FakePlayHost,
) -> None:
    person = stand.arrives(stand.sits("tcp"))
    share = person.player.share
    assert share is not None
    share.spend(asyncio.get_running_loop().time(), 1.0)

    said = stand.refuses("tcp", eye=Eye(), address="10.0.2.1")
    assert said == "people who play take all the time that the arena has for them; try again in a moment"  # fmt: skip


async def test_a_persons_table_is_served_from_the_share_of_people_and_a_bots_is_not(
    stand: FakePlayHost,
) -> None:
    bob = stand.comes("bob")
    pat = stand.arrives(stand.sits("akq", "house:random"))
    sue = stand.arrives(stand.sits("tcp", name="Sue", eye=Eye()))
    await turns()
    house = stand.players["house:random"]

    assert bob.player.share is None
    assert house.share is not None
    shares = {id(one.share) for one in (pat.player, sue.player, house)}
    assert len(shares) == 3, "each of them its own part"
    now = asyncio.get_running_loop().time()
    assert pat.player.share is not None
    pat.player.share.spend(now, 1.0)
    assert house.share.is_spent(now), "all of it within that of all people"


async def test_a_house_bot_whose_tables_are_all_taken_is_told_at_once(stand: FakePlayHost) -> None:
    stand.people._house_bots.tables = 4
    stand.sits("high_low", *("house:random",) * 3, eye=Eye())
    said = stand.refuses("high_low", *("house:random",) * 3, name="Sue")
    assert "house:random plays at all of its 4; choose another" in said


async def test_nobody_has_two_chairs(stand: FakePlayHost) -> None:
    stand.sits("tcp")
    assert "to stand up first" in stand.refuses("tcp", name="Pat again")
    stand.people.stand(stand.eye)
    await turns()
    stand.sits("tcp", name="Pat")


async def test_the_latest_records_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.web.play.recent._MOST", 3)

    async with opened() as stand:
        for n in range(5):
            seat = stand.sits("tcp", name=f"p{n}", settings={"rounds": 1}, eye=Eye())
            stand.arrives(seat)
            stand.plays(seat.name)
        kept = [one.players[0] for one in stand.people._recent]
        assert kept == ["p2", "p3", "p4"]

        monkeypatch.setattr("arena.web.play.recent._MOST_ANSWERS", 1)
        stand.arrives(stand.sits("tcp", settings={"rounds": 1}))
        stand.plays("Pat")
        assert stand.record.players == ("Pat",), "the latest whatever its length"


async def test_as_many_records_are_kept_as_there_is_room_for_their_answers(
    stand: FakePlayHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(6):
        seat = stand.sits("tcp", name=f"p{n}", settings={"rounds": 1}, eye=Eye())
        stand.arrives(seat)
        stand.plays(seat.name)
        if n == 0:
            answers = len(stand.record.record.answers)
            monkeypatch.setattr("arena.web.play.recent._MOST_ANSWERS", 2 * answers)
    kept = [one.players[0] for one in stand.people._recent]
    assert kept == ["p4", "p5"]


# --- who does not come, and who goes ---


async def test_the_chair_is_for_who_has_its_token(stand: FakePlayHost) -> None:
    seat = stand.sits("tcp")
    stand.comes(seat.name, token="of a bot that was here before")
    assert stand.people.tables == ()

    stand.players[seat.name].token = seat.token
    stand.people.changed()
    assert len(stand.people.tables) == 1


async def test_who_does_not_come_within_a_minute_has_no_chair(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("arena.web.play.tables._WAIT_S", 0)

    async with opened() as stand:
        seat = stand.sits("tcp")
        while not stand.eye.told:
            await asyncio.sleep(0)
        [refused] = stand.eye.told
        assert (refused["code"], refused["text"]) == ("sit", "not all came within 0 s")
        await turns()
        assert stand.people.non_competing == set()
        with pytest.raises(KeyError):
            stand.gateway.admission._expected[hashed(seat.token)]


async def test_a_house_bot_that_cannot_be_started_or_ends_is_told(stand: FakePlayHost) -> None:
    stand.fails = ArenaError("no memory")
    person = stand.arrives(stand.sits("akq", "house:random"))
    await turns()
    assert stand.eye.told[-1]["text"] == "house:random cannot be started: no memory"
    assert stand.dismissed[-1].startswith("Pat: house:random cannot be started")
    assert person.player.name not in stand.players

    stand.fails, stand.comes_at_once = None, False
    stand.arrives(stand.sits("akq", "house:random"))
    await turns()
    stand.ends("house:random")
    assert stand.eye.told[-1]["text"] == "house:random has left"

    await turns()
    stand.comes_at_once = True
    stand.arrives(stand.sits("akq", "house:random"))
    await turns()
    assert len(stand.people.tables) == 1, "it is started once more"


async def test_an_opponent_that_leaves_before_the_match_is_told(stand: FakePlayHost) -> None:
    stand.comes("bob")
    stand.comes("eve")
    seat = stand.sits("akq", "bob")
    stand.ends("bob")
    assert stand.eye.told == [], "perhaps the person does not come either"
    stand.arrives(seat)
    assert stand.eye.told[-1]["text"] == "bob has left"


async def test_a_person_who_plays_another_game_is_sent_away(stand: FakePlayHost) -> None:
    seat = stand.sits("tcp")
    bot = stand.house.bot(seat.name)
    bot.player.token, bot.player.games = seat.token, frozenset({"gin_rummy"})
    stand.players.add(bot.player)
    stand.people.changed()
    await turns()
    assert stand.dismissed == ["Pat: expected hello with the game three_card_poker"]


async def test_who_stands_up_has_lost_and_nobody_is_told(stand: FakePlayHost) -> None:
    stand.comes("bob")
    stand.arrives(stand.sits("akq", "bob"))
    stand.house.sit(stand.bots["Pat"], stand.bots["bob"])
    stand.people.stand(stand.eye)
    ended = stand.record.record.termination
    assert (ended.kind, ended.seat) == (Ending.DISCONNECT, 0)
    assert ended.text == "stood up in the middle of the match"
    assert stand.eye.told == []
    await turns()
    assert "bob" in stand.players
    assert stand.people.non_competing == set()
    stand.people.stand(stand.eye)  # there is nothing to give up any more


async def test_whoever_closes_the_page_before_hello_frees_its_chair_and_after_it_plays_on(
    stand: FakePlayHost,
) -> None:
    stand.sits("tcp")
    stand.people.disconnected(stand.eye)
    await turns()
    assert (stand.people.non_competing, stand.eye.told) == (set(), [])

    stand.arrives(stand.sits("tcp", settings={"rounds": 2}))
    stand.people.disconnected(stand.eye)
    stand.plays("Pat")
    assert stand.record.record.termination.kind is Ending.COMPLETED


async def test_a_table_that_nobody_looks_at_is_given_back_after_a_minute(
    stand: FakePlayHost,
) -> None:
    loop = FakeLoop()
    stand.gateway.timers = timers(loop)
    stand.comes("bob")
    person = stand.arrives(stand.sits("akq", "bob"))
    stand.house.sit(person, stand.bots["bob"])
    stand.arrives(stand.sits("tcp", name="Sue", eye=Eye()))
    stand.people.disconnected(stand.eye)
    stand.people.unseen(stand.eye.browser)

    loop.runs(59)
    assert not list(stand.people._recent)
    loop.runs(2)
    ended = stand.record.record.termination
    assert (ended.kind, ended.seat) == (Ending.DISCONNECT, 0)
    assert ended.text == "nobody has looked at the table for 60 s"
    [table] = stand.people.tables
    assert table.chairs[0].player.name == "Sue", "whom somebody looks at"


async def test_a_page_that_is_loaded_again_keeps_its_table(stand: FakePlayHost) -> None:
    loop = FakeLoop()
    stand.gateway.timers = timers(loop)
    stand.arrives(stand.sits("tcp"))
    for _ in range(3):
        stand.people.disconnected(stand.eye)
        stand.people.unseen(stand.eye.browser)
        loop.runs(59)
        stand.people.seen(stand.eye.browser)
    loop.runs(3600)

    assert len(stand.people.tables) == 1


async def test_who_has_lost_its_connection_at_the_end_may_come_back_to_hear_of_it(
    stand: FakePlayHost,
) -> None:
    stand.comes("bob")
    person = stand.arrives(stand.sits("akq", "bob"))
    stand.house.sit(person, stand.bots["bob"])
    person.goes()
    gone = _left("left")
    stand.referee.offence(stand.players["bob"], gone)
    await turns()
    assert stand.dismissed == []
    assert stand.people.is_non_competing("Pat")

    person.comes_back()
    stand.people.changed()
    await turns()
    assert stand.dismissed == ["Pat: the match is over"]
    assert not stand.people.is_non_competing("Pat")


async def test_the_same_person_plays_again_though_its_last_connection_is_lost(
    stand: FakePlayHost,
) -> None:
    person = stand.arrives(stand.sits("tcp", settings={"rounds": 1}))
    person.goes()
    stand.referee.void(stand.people.tables[0], "for the test")
    await turns()
    assert stand.people.is_non_competing("Pat")

    stand.arrives(stand.sits("tcp", settings={"rounds": 1}))
    stand.plays("Pat")
    assert len(stand.people._recent) == 2


# --- offences, and competitions ---


async def test_an_offence_ends_its_match_and_that_is_all(stand: FakePlayHost) -> None:
    stand.comes("bob")
    stand.arrives(stand.sits("akq", "bob"))
    stand.house.sit(stand.bots["Pat"], stand.bots["bob"])
    [ask] = stand.bots["Pat"].asks()
    stand.house.answer(stand.bots["Pat"], ask, "bet")
    [ask] = stand.bots["bob"].asks()
    stand.house.answer(stand.bots["bob"], ask, "all in")
    record = stand.record
    assert record.verdict is not None
    assert (record.verdict.bot, record.verdict.kind) == ("bob", Ending.ILLEGAL)
    await turns()
    stand.arrives(stand.sits("akq", "bob"))
    assert len(stand.people.tables) == 1, "it can be played against again"


async def test_a_competition_that_needs_a_bot_gets_it_at_once(stand: FakePlayHost) -> None:
    for name in ("ann", "bob"):
        stand.comes(name)
    stand.arrives(stand.sits("akq", "bob"))
    stand.sits("akq", "ann", name="Sue", eye=(eye := Eye()))
    stand.arrives(stand.sits("tcp", name="Tim", eye=Eye()))
    stand.people.competition_started(competition("ann", "bob"))

    ended = stand.record.record.termination
    assert (ended.kind, ended.seat) == (Ending.VOID, None)
    assert ended.text == "bob has to play in a competition"
    assert stand.players["bob"].chairs == {}
    assert eye.told[-1]["text"] == "ann has to play in a competition"
    await turns()
    assert [one.chairs[0].player.name for one in stand.people.tables] == ["Tim"]


async def test_a_ladder_of_the_game_takes_bots_but_neither_people_nor_their_house_bots(
    stand: FakePlayHost,
) -> None:
    stand.comes("bob")
    stand.arrives(stand.sits("akq", "bob"))
    stand.arrives(stand.sits("akq", "house:random", name="Sue", eye=Eye()))
    await turns()
    stand.people.competition_started(competition(form=Form.LADDER))

    [table] = stand.people.tables
    assert table.chairs[0].player.name == "Sue"


async def test_a_person_gives_way_to_a_bot_of_its_name_that_a_competition_awaits(
    stand: FakePlayHost,
) -> None:
    stand.arrives(stand.sits("tcp", name="zoe"))
    stand.people.competition_started(competition("zoe"))
    await turns()
    assert stand.dismissed == ["zoe: zoe has to play in a competition"]
    assert "zoe" not in stand.taken
