"""Viewers without sockets: what their messages bring about, and when they are disconnected."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, cast

import pytest
from websockets.datastructures import Headers
from websockets.http11 import Request

from arena.records.visibility import Viewer, ViewerKind
from arena.referee.budget import Budget
from arena.referee.transport import ConnectionOwner, Wire
from arena.server.admission import Unwelcome
from arena.server.gateway import Gateway
from arena.web.play.tables import PeopleTables
from arena.web.spectators import Spectators
from arena.web.viewer_socket import Viewers, ViewerSocket
from protocol.codec import Encoding
from protocol.errors import Oversize, UsageError
from protocol.messages import CLOSE_CRASHED, CLOSE_PROTOCOL, CLOSE_REFUSED, Done, Instruct
from protocol.watching import Seat, Sit, ToViewer, Watch

ANN = Viewer(ViewerKind.OWNER, "ann")
INSTRUCT: dict[str, Any] = {"type": "instruct", "action": "status", "token": "hers", "protocol": 1}


class FakeViewerConnection:
    """A connection that records what it is sent."""

    has_link = True
    is_secure = False

    def __init__(self, arena: ViewerSurroundings, number: int) -> None:
        self.peer = f"10.0.0.1:{number}"
        self.address = "10.0.0.1"
        self.encoding: Encoding | None = None
        self.is_open = self.is_behind = self.is_cut = False
        self.useless = self.pings = self.status = 0
        self.budget = Budget(1)
        self.closed: tuple[int, str] | None = None
        self.heard: list[dict[str, Any]] = []
        self.close_code: int | None = None
        self.close_reason = ""
        self.min_rtt_ms: float | None = None
        self._arena = arena

    def accept(self, request: Request) -> None:
        self.is_open = "Sec-WebSocket-Key" in request.headers

    def respond(self, status: int, headers: Iterable[tuple[str, str]], body: bytes) -> None:
        self.status = status

    def hand_to(self, owner: ConnectionOwner, *, frame_bytes: int, buffer_bytes: int) -> None:
        assert owner is self._arena.viewers
        assert frame_bytes == 64 * 1024
        assert buffer_bytes == 512 * 1024

    def silent_since(self, now: float) -> float | None:
        return None

    def send(self, frame: bytes, encoding: Encoding) -> None:
        assert encoding is Encoding.JSON
        self.heard.append(json.loads(frame))

    def ping(self, payload: bytes) -> None:
        self.pings += 1

    def close(self, code: int, reason: str = "") -> None:
        self.closed, self.is_open = (code, reason), False

    def cut(self) -> None:
        self.is_cut, self.is_open = True, False

    def hello_received(self) -> None:
        raise AssertionError("it is no bot")

    def rest(self, until: float) -> None:
        raise AssertionError("it is no bot")

    def says(self, frame: bytes | None = None, **message: Any) -> FakeViewerConnection:
        data = json.dumps(message).encode() if frame is None else frame
        self._arena.viewers.received(self, data, Encoding.JSON, self._arena.now)
        return self


class ViewerSurroundings:
    """Viewers, and a fake gateway, fake spectators and fake tables in one."""

    def __init__(self) -> None:
        self.now = 100.0
        self.tokens = {"hers": ANN}
        self.blamed = self.spends = 0
        self.is_within = True
        self.log: list[tuple[Any, ...]] = []
        self.looks: list[str] = []
        self.wrong: Exception | None = None
        self.admission = self.login = self.throttle = self.admin_requests = self
        self.viewers = Viewers(
            cast(Gateway, self), cast(Spectators, self), cast(PeopleTables, self), self.now
        )
        self._number = 0

    def opens(self, **headers: str) -> FakeViewerConnection:
        self._number += 1
        connection = FakeViewerConnection(self, self._number)
        said = Headers({"Sec-WebSocket-Key": "x", **headers})
        self.viewers.enter(connection, Request("/watch", said))
        return connection

    def passes(self, seconds: float) -> None:
        """Let time pass, with a tick a second."""
        for _ in range(round(seconds)):
            self.now += 1
            self.viewers.tick(self.now)

    # --- as the gateway ---

    def viewer(self, token: str | None) -> Viewer:
        if token is None:
            return Viewer()
        if token not in self.tokens:
            raise Unwelcome("token", "expected a token")
        return self.tokens[token]

    def received(
        self, connection: Wire, message: Instruct, tell: Callable[[ToViewer], None]
    ) -> None:
        self.viewer(message.token)
        tell(Done("1 on", ()))

    def spent(self, address: str) -> bool:
        self.spends += 1
        return self.is_within

    def blame(self, address: str) -> None:
        self.blamed += 1

    def lost(self, connection: Wire) -> None:
        self.log.append(("lost", connection))

    # --- as the spectators and the tables ---

    def watch(self, spectator: ViewerSocket, watch: Watch, viewer: Viewer, /) -> None:
        if self.wrong is not None:
            raise self.wrong
        self.log.append(("watch", watch.topic, watch.match, viewer))

    def unwatch(self, spectator: ViewerSocket, /) -> None:
        self.log.append(("unwatch",))

    def disconnected(self, spectator: ViewerSocket, /) -> None:
        self.log.append(("left",))

    def sit(self, spectator: ViewerSocket, sit: Sit, address: str, viewer: Viewer, /) -> Seat:
        if self.wrong is not None:
            raise self.wrong
        self.log.append(("sit", sit.game, sit.against, address, viewer))
        return Seat("once", sit.name)

    def stand(self, spectator: ViewerSocket, /) -> None:
        self.log.append(("stand",))

    def seen(self, browser: str, /) -> None:
        self.looks.append(f"{browser} looks")

    def unseen(self, browser: str, /) -> None:
        self.looks.append(f"{browser} is away")


@pytest.fixture
def arena() -> ViewerSurroundings:
    return ViewerSurroundings()


# --- whose browser it is ---


def test_a_browser_is_away_when_its_last_connection_is(arena: ViewerSurroundings) -> None:
    cookie = {"Cookie": "theme=dark; arena-browser=abcdefghijklmnopqrstuv"}
    one, other = arena.opens(**cookie), arena.opens(**cookie)
    stranger = arena.opens(Cookie="arena-browser=short")
    for connection in (one, stranger, other):
        arena.viewers.lost(connection)

    browser = "abcdefghijklmnopqrstuv"
    assert arena.looks == [
        f"{browser} looks",
        "at 10.0.0.1 looks",
        "at 10.0.0.1 is away",
        f"{browser} is away",
    ]


# --- what is said ---


def test_who_watches_sees_what_its_token_is_good_for(arena: ViewerSurroundings) -> None:
    connection = arena.opens()
    connection.says(type="watch", topic="lobby")
    connection.says(type="watch", topic="match", match="a-1", token="hers")
    connection.says(type="unwatch")

    assert arena.log == [
        ("watch", "lobby", None, Viewer()),
        ("watch", "match", "a-1", ANN),
        ("unwatch",),
    ]
    assert (connection.heard, connection.is_open) == ([], True)


def test_who_sits_down_gets_a_seat(arena: ViewerSurroundings) -> None:
    connection = arena.opens()
    connection.says(type="sit", game="blackjack", name="Eva", against=[], token="hers")
    connection.says(type="stand")

    assert arena.log == [("sit", "blackjack", (), "10.0.0.1", ANN), ("stand",)]
    assert connection.heard == [{"type": "seat", "token": "once", "name": "Eva"}]


def test_the_events_of_a_seat_are_put_into_words(arena: ViewerSurroundings) -> None:
    connection = arena.opens()
    told = {"event": "told", "seat": None, "news": {"kind": "bid", "seat": 1, "bid": 4}}
    players = ["Eva", "ben", "cem", "dee"]
    for game in ("high_low", "nonsense"):
        connection.says(type="describe", game=game, seat=0, players=players, events=[told, {}])

    assert connection.heard == [
        {"type": "captions", "captions": [{"text": "ben bids 4"}, {}]},
        {"type": "captions", "captions": [{}, {}]},
    ]
    assert connection.is_open


@pytest.mark.parametrize(
    ("wrong", "code"),
    [(UsageError("no table is free"), "sit"), (Unwelcome("name", "taken"), "name")],
)
def test_who_cannot_sit_down_learns_why_and_may_stay(
    arena: ViewerSurroundings, wrong: Exception, code: str
) -> None:
    arena.wrong = wrong
    connection = arena.opens().says(type="sit", game="akq", name="Eva", against=["ann"])

    [said] = connection.heard
    assert (said["type"], said["code"], said["text"]) == ("refused", code, str(wrong))
    assert (connection.is_open, arena.blamed) == (True, 0)


def test_an_instructor_is_heard(arena: ViewerSurroundings) -> None:
    connection = arena.opens().says(**INSTRUCT)

    assert [message["type"] for message in connection.heard] == ["done"]
    assert connection.is_open


@pytest.mark.parametrize(
    "message",
    [
        {"type": "watch", "topic": "lobby", "token": "guessed"},
        {"type": "sit", "game": "akq", "name": "Eva", "against": [], "token": "guessed"},
        INSTRUCT | {"token": "guessed"},
    ],
    ids=["watch", "sit", "instruct"],
)
def test_a_wrong_token_is_refused_counted_and_the_end(
    arena: ViewerSurroundings, message: dict[str, Any]
) -> None:
    connection = arena.opens().says(**message)

    [refused] = connection.heard
    assert (refused["type"], refused["code"]) == ("refused", "token")
    assert connection.closed == (CLOSE_REFUSED, "expected a token")
    assert (arena.blamed, arena.log) == (1, [])


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"nonsense",
        b"[]",
        b'{"type":"hello"}',
        b'{"type":"watch"}',
        b'{"type":"watch","topic":"lobby","more":1}',
        b"\xff" * 100,
        b"[" * 10_000,
    ],
)
def test_what_cannot_be_read_is_refused_and_the_end(
    arena: ViewerSurroundings, frame: bytes
) -> None:
    connection = arena.opens().says(frame)

    assert [message["type"] for message in connection.heard] == ["refused"]
    assert connection.closed is not None
    assert connection.closed[0] == CLOSE_PROTOCOL
    assert arena.blamed == 1


def test_binary_frames_are_for_bots(arena: ViewerSurroundings) -> None:
    connection = arena.opens()
    arena.viewers.received(connection, b"\x80", Encoding.MSGPACK, arena.now)

    assert "text frames" in connection.heard[0]["text"]
    assert connection.closed is not None


def test_what_the_connection_cannot_take_is_the_end_too(arena: ViewerSurroundings) -> None:
    connection = arena.opens()
    arena.viewers.misbehaved(connection, Oversize("expected less"))

    assert connection.heard[0]["code"] == "oversize"
    assert connection.closed == (CLOSE_PROTOCOL, "expected less")


def test_a_fault_of_the_arena_ends_one_viewer_only(
    arena: ViewerSurroundings, caplog: pytest.LogCaptureFixture
) -> None:
    arena.wrong = RuntimeError("a bug")
    other = arena.opens()
    connection = arena.opens().says(type="watch", topic="lobby")

    assert connection.closed is not None
    assert connection.closed[0] == CLOSE_CRASHED
    assert other.is_open
    assert "a bug" in caplog.text


# --- who may come, and stay ---


def test_a_request_that_is_no_websocket_is_no_viewer(arena: ViewerSurroundings) -> None:
    connection = FakeViewerConnection(arena, 0)
    arena.viewers.enter(connection, Request("/watch", Headers()))

    assert len(arena.viewers) == 0


def test_there_is_an_end_to_viewers_from_one_address(arena: ViewerSurroundings) -> None:
    sockets = [arena.opens() for _ in range(1024)]
    refused = arena.opens()

    assert (refused.status, refused.is_open) == (503, False)

    arena.viewers.lost(sockets[0])

    assert arena.opens().is_open


def test_who_leaves_is_forgotten_everywhere(arena: ViewerSurroundings) -> None:
    connection = arena.opens()
    arena.viewers.lost(connection)

    assert arena.log == [("left",), ("left",), ("lost", connection)]
    assert len(arena.viewers) == 0


def test_who_says_too_much_has_to_go(arena: ViewerSurroundings) -> None:
    connection = arena.opens()
    for _ in range(20):
        connection.says(type="unwatch")

    assert connection.is_open

    connection.says(type="unwatch")

    assert connection.closed == (CLOSE_PROTOCOL, "expected at most 20 messages a second")
    assert (arena.blamed, len(arena.log)) == (1, 20)


def test_who_says_something_now_and_then_may_stay(arena: ViewerSurroundings) -> None:
    connection = arena.opens()
    for _ in range(100):
        arena.now += 0.051
        connection.says(type="unwatch")

    assert connection.is_open


@pytest.mark.parametrize("trifle", ["on_trivial_frame", "ponged"])
def test_pings_without_end_are_too_much_as_well(arena: ViewerSurroundings, trifle: str) -> None:
    connection = arena.opens()
    call: Callable[..., None] = getattr(arena.viewers, trifle)
    arguments = (b"", arena.now) if trifle == "ponged" else ()
    for _ in range(21):
        call(connection, *arguments)

    assert connection.closed is not None


def test_where_an_address_asks_too_much_those_are_served_who_say_little(
    arena: ViewerSurroundings,
) -> None:
    arena.is_within = False
    well, much = arena.opens(), arena.opens()
    for _ in range(5):
        well.says(type="watch", topic="lobby")
        much.says(type="watch", topic="lobby")
    much.says(type="watch", topic="lobby")

    assert much.closed is not None
    assert "this address" in much.closed[1]
    assert len(arena.log) == 10

    arena.now += 2
    well.says(type="watch", topic="lobby")

    assert well.is_open


def test_answering_our_pings_is_on_nobodys_account(arena: ViewerSurroundings) -> None:
    connection = arena.opens()
    arena.passes(20)
    arena.viewers.ponged(connection, b"", arena.now)

    assert (connection.pings, arena.spends) == (1, 0)


def test_who_does_not_read_for_twenty_seconds_is_cut(arena: ViewerSurroundings) -> None:
    slow, well = arena.opens(), arena.opens()
    slow.is_behind = well.is_behind = True
    arena.passes(19)
    well.is_behind = False
    arena.viewers.drained(well)
    well.is_behind = True
    arena.passes(2)

    assert slow.is_cut
    assert not well.is_cut


def test_who_is_gone_without_a_word_is_cut(arena: ViewerSurroundings) -> None:
    gone, there = arena.opens(), arena.opens()
    arena.passes(21)

    assert (gone.pings, there.pings) == (1, 1)

    arena.viewers.ponged(there, b"", arena.now)
    arena.passes(20)

    assert gone.is_cut
    assert (there.is_cut, there.pings) == (False, 2)


def test_a_token_that_is_good_no_longer_shows_nothing_more(arena: ViewerSurroundings) -> None:
    hers = arena.opens().says(type="watch", topic="lobby", token="hers")
    anybody = arena.opens().says(type="watch", topic="lobby")
    arena.viewers.roster_changed()

    assert hers.is_open

    arena.tokens.clear()
    arena.viewers.roster_changed()

    assert hers.closed == (CLOSE_REFUSED, "the token was replaced")
    assert anybody.is_open
