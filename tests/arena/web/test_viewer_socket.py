"""Viewers without sockets: what their messages bring about, and when they are disconnected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from arena.records.visibility import Viewer, ViewerKind
from arena.referee.transport import Wire
from arena.server.admission import Unwelcome
from arena.server.gateway import Gateway
from arena.web.play.tables import PeopleTables
from arena.web.spectators import Spectators
from arena.web.viewer_socket import Viewers, ViewerSocket
from protocol.errors import UsageError
from protocol.messages import CLOSE_CRASHED, Done, Instruct
from protocol.watching import Seat, Sit, ToViewer, Watch
from tests.support.page_sockets import FakePageConnection, PageSockets, PageSocketStage
from tests.support.scripts import Case, cases


class ViewerSurroundings(PageSockets[FakePageConnection]):
    """Viewers, and a fake gateway, fake spectators and fake tables in one."""

    def __init__(self) -> None:
        super().__init__(FakePageConnection)
        self.tokens = {"hers": Viewer(ViewerKind.OWNER, "ann")}
        self.spends = 0
        self.is_within = True
        self.log: list[str] = []
        self.looks: list[str] = []
        self.wrong: Exception | None = None
        self.admission = self.throttle = self.admin_requests = self
        self.owner = self.viewers = Viewers(
            cast(Gateway, self), cast(Spectators, self), cast(PeopleTables, self), self.now
        )

    def _does(self, *words: object) -> None:
        """Note what is asked for, or fail at it."""
        if self.wrong is not None:
            raise self.wrong
        self.log.append(" ".join(map(str, words)).strip())

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

    def lost(self, connection: FakePageConnection) -> None:
        self._does("lost", connection.peer)

    # --- as the spectators and the tables ---

    def watch(self, spectator: ViewerSocket, watch: Watch, viewer: Viewer, /) -> None:
        self._does("watch", watch.topic, watch.match, viewer.kind.value, viewer.name)

    def unwatch(self, spectator: ViewerSocket, /) -> None:
        self._does("unwatch")

    def disconnected(self, spectator: ViewerSocket, /) -> None:
        self._does("left")

    def sit(self, spectator: ViewerSocket, sit: Sit, address: str, viewer: Viewer, /) -> Seat:
        self._does("sit", sit.game, *sit.against, address, viewer.kind.value, viewer.name)
        return Seat("once", sit.name)

    def stand(self, spectator: ViewerSocket, /) -> None:
        self._does("stand")

    def seen(self, browser: str, /) -> None:
        self.looks.append(f"{browser} looks")

    def unseen(self, browser: str, /) -> None:
        self.looks.append(f"{browser} is away")


class ViewerStage(PageSocketStage[FakePageConnection]):
    """Viewers by their names."""

    def __init__(self, arena: ViewerSurroundings) -> None:
        super().__init__(arena)
        self._arena = arena

    def do_crowd(self, number: str) -> None:
        for each in range(int(number)):
            self.of(f"c{each}")

    def do_wait(self, seconds: str) -> None:
        self._arena.now += float(seconds)

    def do_busy(self, _: str) -> None:
        """The address has used up what it may ask for."""
        self._arena.is_within = False

    def do_fails(self, text: str) -> None:
        kind, _, why = text.partition(" ")
        self._arena.wrong = UsageError(why) if kind == "sit" else Unwelcome(kind, why)

    def do_tokens(self, names: str) -> None:
        """The roster has changed; these tokens are good."""
        self._arena.tokens = {name: self._arena.tokens[name] for name in names.split()}
        self._arena.viewers.roster_changed()

    def do_log(self, text: str) -> None:
        assert self._arena.log == (text.split("; ") if text else [])

    def do_counts(self, text: str) -> None:
        counts = {
            "logged": len(self._arena.log),
            "spends": self._arena.spends,
            "viewers": len(self._arena.viewers),
        }
        name, number = text.split()
        assert counts[name] == int(number)


@pytest.fixture
def arena() -> ViewerSurroundings:
    return ViewerSurroundings()


@pytest.mark.parametrize("case", cases(Path(__file__).with_name("viewers.cases")))
async def test_what_viewers_bring_about(arena: ViewerSurroundings, case: Case) -> None:
    await ViewerStage(arena).play(case)


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


def test_the_events_of_a_seat_are_put_into_words(arena: ViewerSurroundings) -> None:
    connection = arena.opens()
    told = {"event": "told", "seat": None, "news": {"kind": "bid", "seat": 1, "bid": 4}}
    players = ["Eva", "ben", "cem", "dee"]
    for game in ("high_low", "nonsense"):
        described = {"game": game, "seat": 0, "players": players, "events": [told, *[{}] * 40]}
        connection.says({"type": "describe", **described})

    assert connection.heard == [
        {"type": "captions", "captions": [{"text": "ben bids 4"}, *[{}] * 40]},
        {"type": "captions", "captions": [{}, *[{}] * 40]},
    ]
    assert arena.spends == 2 * 3, "twenty events count as a request"
    assert connection.is_open


def test_a_fault_of_the_arena_ends_one_viewer_only(
    arena: ViewerSurroundings, caplog: pytest.LogCaptureFixture
) -> None:
    other, connection = arena.opens(), arena.opens()
    arena.wrong = RuntimeError("a bug")
    connection.says({"type": "watch", "topic": "lobby"})

    assert connection.closed == (CLOSE_CRASHED, "the arena failed; come back")
    assert other.is_open
    assert "a bug" in caplog.text
