"""The client without a network: what it says over lines that tests hold the other end of."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from websockets.exceptions import ConnectionClosedError, InvalidMessage

import bots.reach
from bots.client import Client, StrategyFailed
from bots.strategy import RandomMixin
from protocol.ace_king_queen import HandOver, Open
from protocol.codec import Encoding, encode
from protocol.errors import ProtocolError, Unreachable, UsageError
from protocol.messages import (
    ArenaMessage,
    Ask,
    Ending,
    Limits,
    Match,
    Over,
    Past,
    Refused,
    Termination,
    Verdict,
    Welcome,
)
from protocol.vocabulary import News, Question

TIMEOUT_S = 10.0

NEWS = HandOver(1, 0, ("A", "K"), "check", None, (1, -1), (1, -1))


def welcome(session: str = "secret") -> Welcome:
    return Welcome(1, "ann", session, Limits())


def match(name: str = "m") -> Match:
    seats, settings = ("ann", "ben"), {"hands": 1000}
    return Match(name, "ace_king_queen", 0, seats, settings, Limits(), "hash")


def ask(number: int = 1, match: str = "m", news: tuple[News, ...] = ()) -> Ask:
    return Ask(match, f"{match}:{number}", Open(number, "K"), news, 1000, 1000)


def past(number: int = 1, match: str = "m", answer: str = "bet") -> Past:
    return Past(match, f"{match}:{number}", Open(number, "K"), (NEWS,), answer)


def over(match: str = "m", news: tuple[News, ...] = ()) -> Over:
    return Over(match, news, (1, -1), Termination(Ending.COMPLETED), None)


class Closes:
    """The arena closes, or the connection is lost."""

    def __init__(self, code: int = 1006) -> None:
        self.code = code


Frame = ArenaMessage | list[ArenaMessage]
Says = Frame | tuple[Frame, ...] | Closes
"""One frame, some that are read together, or the end."""


class FakeTransport:
    """What a connection goes over: a socket, if there is one."""

    def __init__(self, link: socket.socket | None = None) -> None:
        self._link = link

    def get_extra_info(self, name: str) -> socket.socket | None:
        assert name == "socket"
        return self._link


class ScriptedConnection:
    """One connection, scripted: what the arena says, one frame after another."""

    def __init__(self, *script: Says, encoding: Encoding = Encoding.JSON) -> None:
        self.heard: list[Any] = []
        self.closed: tuple[int, str] | None = None
        self.close_code: int | None = None
        self.close_reason: str | None = None
        self.transport = FakeTransport()
        self.on_read: Callable[[list[bytes]], int] | None = None
        self.backlog = 0
        self._unhandled: list[bytes] = []
        self._script = list(script)
        self._encoding = encoding

    async def recv(self, decode: bool) -> bytes:
        """The next frame that is not handled at once, see `FrameConnection`."""
        assert decode is False
        while not self._unhandled:
            await asyncio.sleep(0)  # the event loop's turn, as with a socket
            if not self._script:
                await self.end()
            says = self._script.pop(0)
            if isinstance(says, Closes):
                self.close_code = says.code
                self.close_reason = "because"
                raise ConnectionClosedError(None, None)
            together = says if isinstance(says, tuple) else (says,)
            frames = [self._written(frame) for frame in together]
            handled = 0
            if self.on_read is not None and not self.backlog:
                handled = self.on_read(frames)
            self._unhandled = frames[handled:]
            self.backlog += len(self._unhandled)
        return self._unhandled.pop(0)

    async def end(self) -> None:
        """The script is over, and the arena says nothing more."""
        await asyncio.get_running_loop().create_future()

    def _written(self, says: Frame) -> bytes:
        if isinstance(says, list):
            parts = b",".join(encode(message, self._encoding) for message in says)
            return b"[%b]" % parts
        return encode(says, self._encoding)

    def say(self, frame: bytes, text: bool) -> None:
        assert text is (self._encoding is Encoding.JSON)
        decoder = msgspec.json if text else msgspec.msgpack
        self.heard.append(decoder.decode(frame))

    async def send(self, frame: bytes, text: bool) -> None:
        self.say(frame, text)

    async def close(self, code: int = 1000, reason: str = "") -> None:
        self.closed = (code, reason)

    def messages(self) -> list[Any]:
        """All that the client said, whatever frames it came in."""
        return [
            message
            for frame in self.heard
            for message in (frame if isinstance(frame, list) else [frame])
        ]

    def said(self, kind: str) -> list[Any]:
        return [message for message in self.messages() if message["type"] == kind]


class Notebook(RandomMixin):
    """Plays at random and notes what happens to it."""

    made: list[Notebook]

    def __init__(self) -> None:
        self.noted: list[str] = []
        type(self).made.append(self)

    def decide(self, question: Question[Any]) -> object:
        self.noted.append(question.kind)
        return super().decide(question)

    def hear(self, news: News) -> None:
        self.noted.append(news.kind)

    def reset(self) -> None:
        self.noted.append("reset")


@pytest.fixture(autouse=True)
def notebooks() -> list[Notebook]:
    """All that the client has made."""
    Notebook.made = []
    return Notebook.made


@pytest.fixture
def dial(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[ScriptedConnection]]:
    """Set what the client gets to when it connects, time after time: a line, or an error."""

    def set_lines(*lines: ScriptedConnection | Exception) -> list[Any]:
        left = list(lines)

        @asynccontextmanager
        async def connect(url: str, **_: object) -> Any:
            line = left.pop(0)
            if isinstance(line, Exception):
                raise line
            yield line

        monkeypatch.setattr(bots.reach, "connect", connect)
        monkeypatch.setattr("random.uniform", lambda low, high: 0.0)  # no pauses
        return list(lines)

    return set_lines


Dial = Callable[..., list[ScriptedConnection]]


def client(
    strategy: Callable[[], Any] = Notebook, url: str = "ws://arena:7700", **options: Any
) -> Client:
    return Client(url, "ann", {"ace_king_queen": strategy}, **options)


# --- a match ---


async def test_it_says_who_it_is_and_what_it_plays(dial: Dial) -> None:
    [line] = dial(ScriptedConnection(Closes(1000)))
    await client(token="t", tables=7).run()

    [hello] = line.said("hello")
    assert hello["name"] == "ann"
    assert hello["games"] == ["ace_king_queen"]
    assert (hello["tables"], hello["token"]) == (7, "t")
    assert hello["batch"] is True
    assert hello["resume"] is None


async def test_it_takes_its_chair_and_answers(dial: Dial, notebooks: list[Notebook]) -> None:
    [line] = dial(
        ScriptedConnection(
            welcome(), match(), ask(), ask(2, news=(NEWS,)), over(news=(NEWS,)), Closes(1000)
        )
    )
    overs: list[tuple[Match, Over]] = []
    await client(on_over=lambda *what: overs.append(what)).run()

    [ready] = line.said("ready")
    answers = line.said("answer")
    assert ready["match"] == "m"
    assert len(ready["nonce"]) == 32
    assert [answer["ask"] for answer in answers] == ["m:1", "m:2"]
    assert all(answer["value"] in ("bet", "check") for answer in answers)
    assert notebooks[0].noted == ["reset", "open", "hand_over", "open", "hand_over"]
    [(invitation, ended)] = overs
    assert (invitation.match, ended.scores) == ("m", (1, -1))


async def test_every_match_has_a_strategy_and_a_nonce_of_its_own(
    dial: Dial, notebooks: list[Notebook]
) -> None:
    [line] = dial(
        ScriptedConnection(
            welcome(),
            [match("m"), match("n"), ask(1, "m"), ask(1, "n")],
            [over("m"), match("o")],
            Closes(1000),
        )
    )
    await client().run()

    assert [book.noted for book in notebooks] == [["reset", "open"], ["reset", "open"], ["reset"]]
    assert len({ready["nonce"] for ready in line.said("ready")}) == 3


@pytest.mark.parametrize("encoding", Encoding)
async def test_it_speaks_the_encoding_that_it_was_told_to(dial: Dial, encoding: Encoding) -> None:
    [line] = dial(ScriptedConnection(welcome(), match(), ask(), Closes(1000), encoding=encoding))
    await client(encoding=encoding).run()

    assert len(line.said("answer")) == 1


@pytest.mark.parametrize(("batch", "frames"), [(True, 2), (False, 7)])
async def test_answers_that_are_there_together_share_a_frame(
    dial: Dial, batch: bool, frames: int
) -> None:
    three = [(match(name), ask(1, name)) for name in "mno"]
    [line] = dial(
        ScriptedConnection([welcome(), *(part for pair in three for part in pair)], Closes(1000))
    )
    await client(batch=batch).run()

    assert len(line.said("answer")) == 3
    assert len(line.heard) == frames


async def test_frames_that_are_read_together_are_answered_together(dial: Dial) -> None:
    [line] = dial(
        ScriptedConnection(
            [welcome(), match("m"), match("n")], (ask(1, "m"), ask(1, "n")), Closes(1000)
        )
    )
    await client().run()

    assert [answer["ask"] for answer in line.heard[-1]] == ["m:1", "n:1"]


async def test_a_frame_that_comes_while_it_leaves_is_not_answered(dial: Dial) -> None:
    class AsksWhileItCloses(ScriptedConnection):
        async def close(self, code: int = 1000, reason: str = "") -> None:
            assert self.on_read is None

    [line] = dial(AsksWhileItCloses(welcome()))
    task = asyncio.create_task(client().run())
    while not line.heard:
        await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(line.said("goodbye")) == 1


async def test_J7_a_slow_strategy_does_not_hold_back_the_answers_it_has(
    dial: Dial, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    class SlowAnswers(Notebook):
        def decide(self, question: Question[Any]) -> object:
            now[0] += 0.5
            return "bet"

    [line] = dial(
        ScriptedConnection(
            welcome(),
            [match("m"), match("n"), match("o")],
            [ask(1, "m"), ask(1, "n"), ask(1, "o")],
            Closes(1000),
        )
    )
    await client(SlowAnswers).run()

    frames = [frame for frame in line.heard if "answer" in str(frame)]
    assert len(frames) >= 2  # not one, at the end of all three


@pytest.mark.parametrize("together", [True, False])
async def test_a_slow_strategy_lets_the_loop_run_between_its_answers(
    dial: Dial, monkeypatch: pytest.MonkeyPatch, together: bool
) -> None:
    now, decided = [0.0], [0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    class StoppedAtOnce(Notebook):
        def decide(self, question: Question[Any]) -> object:
            now[0] += 0.5
            decided[0] += 1
            asyncio.get_running_loop().call_soon(task.cancel)
            return "bet"

    matches = [f"m{number}" for number in range(20)]
    asks: list[ArenaMessage] = [ask(1, name) for name in matches]
    read: Says = asks if together else tuple(asks)
    [line] = dial(ScriptedConnection(welcome(), [match(name) for name in matches], read))
    task = asyncio.create_task(client(StoppedAtOnce, tables=20).run())

    with pytest.raises(asyncio.CancelledError):
        await task
    assert decided[0] <= 3, "of twenty questions that were read together"
    assert len(line.said("answer")) == decided[0]
    assert len(line.said("goodbye")) == 1


# --- lost connections ---


async def test_it_comes_back_with_its_session_and_its_memory(
    dial: Dial, notebooks: list[Notebook]
) -> None:
    first, second = dial(
        ScriptedConnection(welcome("one"), match(), ask(1), Closes()),
        ScriptedConnection(welcome("two"), match(), ask(2, news=(NEWS,)), over(), Closes(1000)),
    )
    await client().run()

    [hello] = second.said("hello")
    assert hello["resume"] == "one"
    assert second.said("ready") == first.said("ready")
    assert [book.noted for book in notebooks] == [["reset", "open", "hand_over", "open"]]


async def test_a_question_that_comes_again_gets_the_same_answer(
    dial: Dial, notebooks: list[Notebook]
) -> None:
    lines = dial(
        *(
            ScriptedConnection(welcome(), match(), ask(1, news=(NEWS,)), Closes())
            for _ in range(20)
        ),
        ScriptedConnection(welcome(), over(), Closes(1000)),
    )
    await client().run()

    answers = [answer for line in lines for answer in line.said("answer")]
    assert len(answers) == 20
    assert len({answer["value"] for answer in answers}) == 1
    assert notebooks[0].noted == ["reset", "hand_over", "open"]


async def test_an_over_that_comes_again_is_heard_once(
    dial: Dial, notebooks: list[Notebook]
) -> None:
    dial(
        ScriptedConnection(welcome(), match(), ask(), over(news=(NEWS,)), Closes()),
        ScriptedConnection(welcome(), over(news=(NEWS,)), Closes(1000)),
    )
    overs: list[Any] = []
    await client(on_over=lambda *what: overs.append(what)).run()

    assert notebooks[0].noted == ["reset", "open", "hand_over"]
    assert len(overs) == 1


async def test_an_over_of_a_match_that_it_never_heard_of_is_nobodys(dial: Dial) -> None:
    dial(ScriptedConnection(welcome(), over("lost"), Closes(1000)))
    overs: list[Any] = []
    await client(on_over=lambda *what: overs.append(what)).run()

    assert overs == []


async def test_an_arena_that_has_forgotten_it_gets_a_new_bot(
    dial: Dial, notebooks: list[Notebook]
) -> None:
    _, _, fresh = dial(
        ScriptedConnection(welcome(), match(), Closes()),
        ScriptedConnection(Refused("session", "no such session"), Closes(4001)),
        ScriptedConnection(welcome(), match(), Closes(1000)),
    )
    await client().run()

    assert fresh.said("hello")[0]["resume"] is None
    assert len(notebooks) == 2


async def test_it_tries_less_and_less_often_until_it_is_welcome(dial: Dial) -> None:
    events: list[str] = []
    dial(
        ScriptedConnection(welcome(), Closes()),
        *[OSError("refused")] * 6,
        ScriptedConnection(Closes()),  # something answers, but it is no welcome
        ScriptedConnection(welcome(), Closes()),
        ScriptedConnection(welcome(), Closes(1000)),
    )
    await client(on_event=events.append).run()

    pauses = [line.partition("in ")[2] for line in events if "next attempt" in line]
    assert pauses == [
        *("0.2 s", "0.5 s", "1.0 s", "2.0 s", "4.0 s", "8.0 s", "10.0 s", "10.0 s"),
        "0.2 s",
    ]
    assert events[-1] == "the arena has closed"


async def test_its_patience_ends(dial: Dial) -> None:
    dial(ScriptedConnection(welcome(), Closes()), OSError("refused"))

    with pytest.raises(Unreachable, match=r"at ws://arena:7700 any more"):
        await client(patience_s=0.0).run()


async def test_it_waits_for_an_arena_that_is_not_up_yet(dial: Dial) -> None:
    events: list[str] = []
    dial(*[OSError("refused")] * 3, ScriptedConnection(welcome(), Closes(1000)))
    await client(on_event=events.append).run()

    assert events == [
        "no arena answers at ws://arena:7700 yet; waiting up to 60 s for it",
        "connected as ann at ws://arena:7700",
        "the arena has closed",
    ]


async def test_it_waits_no_longer_than_it_is_to(dial: Dial) -> None:
    dial(OSError("refused"))
    text = r"^no arena answers at ws://arena:7700: refused$"

    with pytest.raises(Unreachable, match=text):
        await client(wait_s=0.0).run()


async def test_what_will_never_be_an_arena_is_told_at_once(dial: Dial) -> None:
    events: list[str] = []
    dial(InvalidMessage("no HTTP"))

    with pytest.raises(Unreachable, match=r"no arena answers at ws://arena:7700: "):
        await client(on_event=events.append).run()

    assert events == []


async def test_after_a_wait_a_lost_connection_has_all_patience(dial: Dial) -> None:
    events: list[str] = []
    lines = (ScriptedConnection(welcome(), Closes()), ScriptedConnection(welcome(), Closes(1000)))
    dial(OSError("refused"), *lines)
    await client(on_event=events.append, wait_s=1.0).run()

    assert "the connection was lost; next attempt in 0.2 s" in events


async def test_a_dead_link_is_for_the_kernel_to_notice(
    dial: Dial, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not for pings, which an arena that stands still does not answer."""
    [line] = dial(ScriptedConnection(welcome(), Closes(1000)))
    asked: dict[str, Any] = {}
    dialled = vars(bots.reach)["connect"]

    def connect(url: str, **options: Any) -> Any:
        asked.update(options)
        return dialled(url)

    monkeypatch.setattr(bots.reach, "connect", connect)
    with socket.socket() as link:
        line.transport = FakeTransport(link)
        await client().run()

        assert asked["ping_interval"] is None
        assert link.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


@pytest.mark.parametrize(
    ("url", "error", "hint"),
    [
        ("ws://arena:7700", InvalidMessage("no HTTP"), "; it may be a wss:// address"),
        ("wss://arena:7700", InvalidMessage("no HTTP"), ""),
        ("ws://arena:7700", OSError("no HTTP"), ""),
    ],
)
async def test_what_answers_without_HTTP_may_want_encryption(
    dial: Dial, url: str, error: Exception, hint: str
) -> None:
    dial(error)

    with pytest.raises(Unreachable) as caught:
        await client(url=url, wait_s=0.0).run()
    assert str(caught.value) == f"no arena answers at {url}: no HTTP{hint}"


async def test_what_closes_without_a_word_is_waited_for_and_may_want_encryption(dial: Dial) -> None:
    closed = InvalidMessage("no HTTP")
    closed.__cause__ = EOFError()
    events: list[str] = []
    dial(closed, ScriptedConnection(welcome(), Closes(1000)))
    await client(on_event=events.append).run()

    assert events[0].endswith("waiting up to 60 s for it; it may be a wss:// address")
    assert events[1].startswith("connected")


async def test_whoever_goes_on_elsewhere_ends_here(dial: Dial) -> None:
    events: list[str] = []
    dial(ScriptedConnection(welcome(), Closes(4000)))
    await client(on_event=events.append).run()

    assert events[-1] == "the session goes on over another connection"


@pytest.mark.parametrize("code", [1002, 1009])
async def test_what_would_only_happen_again_ends_it(dial: Dial, code: int) -> None:
    dial(ScriptedConnection(welcome(), Closes(code)))
    with pytest.raises(UsageError, match=f"^the arena closed with {code}: because$"):
        await client().run()


# --- a session that outlives its process ---


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "ann.json"


class Killed(BaseException):
    """Stands for `kill -9`: nothing runs after it but the release of the lock."""


class Kills(ScriptedConnection):
    """A line on which the process is killed where the script ends."""

    async def end(self) -> None:
        raise Killed


async def lives(playing: Client) -> None:
    """Run a client whose process is killed; the system opens its lock."""
    with pytest.raises(Killed):
        await playing.run()


class Seeded(Notebook):
    """Notes its seed, too."""

    def seed(self, seed: int | str) -> None:
        self.noted.append(f"seed {seed}")
        super().seed(seed)


async def test_after_a_crash_it_asks_for_all_that_was_before(dial: Dial, file: Path) -> None:
    first, second = dial(
        Kills(welcome("one"), match(), ask(1)), ScriptedConnection(welcome("two"), Closes(1000))
    )
    await lives(client(session_file=file))
    assert file.exists()
    await client(session_file=file).run()

    assert (first.said("hello")[0]["resume"], first.said("hello")[0]["from"]) == (None, None)
    [hello] = second.said("hello")
    assert (hello["resume"], hello["from"]) == ("one", 0)


async def test_a_strategy_is_brought_through_the_past_before_it_decides(
    dial: Dial, file: Path, notebooks: list[Notebook]
) -> None:
    _, second = dial(
        Kills(welcome(), match()),
        ScriptedConnection(
            [welcome(), match(), past(1)], [past(2), ask(3, news=(NEWS,))], ask(4), Closes(1000)
        ),
    )
    events: list[str] = []
    await lives(client(session_file=file))
    await client(session_file=file, on_event=events.append).run()

    assert notebooks[1].noted == [
        "reset",
        *("hand_over", "open", "hand_over", "open"),
        *("hand_over", "open", "open"),
    ]
    assert [answer["ask"] for answer in second.said("answer")] == ["m:3", "m:4"]
    assert sum("goes on after 2 questions" in event for event in events) == 1


@pytest.mark.parametrize("seed", ["lucky", None])
async def test_every_match_gets_the_seed_again_that_it_had(
    dial: Dial, file: Path, notebooks: list[Notebook], seed: str | None
) -> None:
    dial(
        Kills(welcome(), [match("l"), match("m"), match("n")], over("l")),
        Kills(welcome(), [match("n"), match("m"), match("o")], ask(1, "o"), over("m")),
        ScriptedConnection(welcome(), [match("p"), match("o"), match("n")], Closes(1000)),
    )
    for _ in range(2):
        await lives(client(Seeded, session_file=file, seed=seed))
    await client(Seeded, session_file=file, seed=seed).run()

    names = ["l", "m", "n", "n", "m", "o", "p", "o", "n"]
    seeds: dict[str, set[str]] = {}
    for name, book in zip(names, notebooks, strict=True):
        seeds.setdefault(name, set()).add(book.noted[0])
    assert all(len(same) == 1 for same in seeds.values())
    assert len(set.union(*seeds.values())) == 5
    if seed is not None:
        assert seeds["p"] == {"seed lucky:5"}


async def test_without_a_file_nothing_is_seeded_that_need_not_be(
    dial: Dial, notebooks: list[Notebook]
) -> None:
    dial(ScriptedConnection(welcome(), match("m"), match("n"), Closes(1000)))
    await client(Seeded).run()

    assert [book.noted for book in notebooks] == [["reset"], ["reset"]]


async def test_what_the_arena_counts_on_is_in_the_file_before(dial: Dial, file: Path) -> None:
    class LooksIntoTheFile(ScriptedConnection):
        def say(self, frame: bytes, text: bool) -> None:
            seen.append(json.loads(file.read_text())["seeds"] if file.exists() else {})
            super().say(frame, text)

    seen: list[Any] = []
    [line] = dial(LooksIntoTheFile(welcome(), match("m"), [match("n"), over("m")], Closes(1000)))
    await client(session_file=file, seed="s").run()

    assert [set(seeds) for seeds in seen] == [set(), {"m"}, {"n"}]
    assert len(line.said("ready")) == 2


async def test_it_is_there_even_before_a_slow_strategy_has_answered_all(
    dial: Dial, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    class SlowFirstAnswers(Notebook):
        def decide(self, question: Question[Any]) -> object:
            now[0] += 0.5
            return "bet"

    class LooksBetweenAnswers(ScriptedConnection):
        def say(self, frame: bytes, text: bool) -> None:
            super().say(frame, text)
            if len(self.said("ready")) == 1:
                seen.append(set(json.loads(file.read_text())["seeds"]))

    seen: list[set[str]] = []
    script: list[ArenaMessage] = [match("m"), ask(1, "m"), match("n"), ask(1, "n")]
    dial(LooksBetweenAnswers(welcome(), script, Closes(1000)))
    await client(SlowFirstAnswers, session_file=file).run()

    assert seen == [{"m"}]


async def test_a_strategy_that_lives_is_not_told_its_past(
    dial: Dial, file: Path, notebooks: list[Notebook]
) -> None:
    dial(
        Kills(welcome(), match("m"), match("n")),
        ScriptedConnection(welcome(), [match("m"), past(1, "m"), ask(2, "m")], Closes()),
        ScriptedConnection(
            welcome(),
            [match("m"), past(1, "m"), past(2, "m"), ask(3, "m")],
            [match("n"), past(1, "n"), ask(2, "n")],
            Closes(1000),
        ),
    )
    await lives(client(session_file=file))
    await client(session_file=file).run()

    m, n = notebooks[2:]
    assert m.noted == ["reset", "hand_over", "open", "open", "open"]
    assert n.noted == ["reset", "hand_over", "open", "open"]


async def test_a_past_that_breaks_off_is_told_from_the_beginning(
    dial: Dial, file: Path, notebooks: list[Notebook]
) -> None:
    _, _, third, fourth = dial(
        Kills(welcome(), match("m")),
        ScriptedConnection(welcome(), match("m"), past(1), Closes()),
        ScriptedConnection(welcome(), match("m"), past(1), past(2), ask(3), Closes()),
        ScriptedConnection(welcome(), match("m"), ask(4), Closes(1000)),
    )
    await lives(client(session_file=file))
    await client(session_file=file).run()

    assert third.said("hello")[0]["from"] == 0
    assert fourth.said("hello")[0]["from"] is None
    assert notebooks[-1].noted == [
        "reset",
        *("hand_over", "open", "hand_over", "open"),
        *("open", "open"),
    ]


async def test_a_crash_in_the_past_can_be_followed_by_another(
    dial: Dial, file: Path, notebooks: list[Notebook]
) -> None:
    _, _, third = dial(
        Kills(welcome("one"), match("m")),
        Kills(welcome("two"), match("m"), past(1)),
        ScriptedConnection(welcome("three"), match("m"), past(1), ask(2), Closes(1000)),
    )
    for _ in range(2):
        await lives(client(session_file=file))
    await client(session_file=file).run()

    assert third.said("hello")[0]["resume"] == "two"
    assert notebooks[-1].noted == ["reset", "hand_over", "open", "open"]


async def test_a_match_that_was_over_meanwhile_is_told(dial: Dial, file: Path) -> None:
    dial(Kills(welcome(), match()), ScriptedConnection(welcome(), over(), Closes(1000)))
    events: list[str] = []
    await lives(client(session_file=file))
    await client(session_file=file, on_event=events.append).run()

    assert "match m was over meanwhile · +1 -1" in events


async def test_an_arena_that_has_forgotten_the_session_of_a_file_gets_a_new_bot(
    dial: Dial, file: Path, notebooks: list[Notebook]
) -> None:
    *_, fresh = dial(
        Kills(welcome("one"), match()),
        ScriptedConnection(Refused("session", "no such session"), Closes(4001)),
        Kills(welcome("two"), match("n")),
    )
    await lives(client(Seeded, session_file=file, seed="s"))
    await lives(client(Seeded, session_file=file, seed="s"))

    [hello] = fresh.said("hello")
    assert (hello["resume"], hello["from"]) == (None, None)
    assert notebooks[1].noted == ["seed s:1", "reset"]
    kept = json.loads(file.read_text())
    assert (kept["secret"], set(kept["seeds"])) == ("two", {"n"})


async def test_an_arena_that_is_not_there_does_not_cost_the_session(dial: Dial, file: Path) -> None:
    dial(Kills(welcome(), match()), OSError("refused"))
    await lives(client(session_file=file))

    with pytest.raises(Unreachable):
        await client(session_file=file, wait_s=0.0).run()
    assert file.exists()


async def test_who_is_refused_keeps_the_session(dial: Dial, file: Path) -> None:
    dial(Kills(welcome()), ScriptedConnection(Refused("token", "no such token"), Closes(4001)))
    await lives(client(session_file=file))

    with pytest.raises(UsageError):
        await client(session_file=file).run()
    assert file.exists()


@pytest.mark.parametrize(("code", "remains"), [(1000, False), (4000, True)])
async def test_the_file_goes_with_the_session(
    dial: Dial, file: Path, code: int, remains: bool
) -> None:
    dial(ScriptedConnection(welcome(), Closes(code)))
    await client(session_file=file).run()

    assert list(file.parent.iterdir()) == [file] * remains


async def test_a_strategy_that_raised_has_no_session_to_go_on_with(dial: Dial, file: Path) -> None:
    dial(ScriptedConnection(welcome(), match(), Closes(1000)))
    with pytest.raises(StrategyFailed):
        await client(lambda: FailsAtOneThing("reset", KeyError()), session_file=file).run()

    assert list(file.parent.iterdir()) == []


async def test_a_strategy_that_raises_at_its_past_has_crashed(dial: Dial, file: Path) -> None:
    _, line = dial(
        Kills(welcome(), match()), ScriptedConnection(welcome(), match(), past(), Closes(1000))
    )
    await lives(client(session_file=file))

    with pytest.raises(StrategyFailed, match="raised at open, brought back from the"):
        await client(lambda: FailsAtOneThing("open", KeyError()), session_file=file).run()
    assert line.closed is not None
    assert line.closed[0] == 1011


async def test_a_second_bot_of_the_name_leaves_the_session_to_the_first(
    dial: Dial, file: Path
) -> None:
    [first, second] = dial(
        ScriptedConnection(welcome("one")), ScriptedConnection(welcome("two"), Closes(1000))
    )
    events: list[str] = []

    playing = asyncio.ensure_future(client(session_file=file).run())
    while not file.exists():
        await asyncio.sleep(0)
    await client(session_file=file, on_event=events.append).run()
    assert json.loads(file.read_text())["secret"] == "one"
    playing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await playing
    assert second.said("hello")[0]["resume"] is None
    [notice] = [event for event in events if "session file" in event]
    assert notice.startswith("another process of this bot has its session in ")
    assert "one" not in notice.split()
    assert first.messages()[-1] == {"type": "goodbye"}
    assert not file.exists()


async def test_a_file_that_is_none_of_ours_is_told_and_left_alone(dial: Dial, file: Path) -> None:
    file.write_text("class Mine: ...")
    [line] = dial(ScriptedConnection(welcome(), match(), ask(), Closes(1000)))
    events: list[str] = []
    await client(session_file=file, on_event=events.append).run()

    assert len(line.said("answer")) == 1
    assert sum("going on without a session file" in event for event in events) == 1
    assert file.read_text() == "class Mine: ..."
    assert list(file.parent.iterdir()) == [file]


async def test_a_disk_that_fails_is_told_once_and_the_bot_plays_on(
    dial: Dial, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    [line] = dial(ScriptedConnection(welcome(), match(), ask(), Closes(1000)))
    events: list[str] = []
    await client(session_file=file, on_event=events.append).run()

    assert len(line.said("answer")) == 1
    [told] = [event for event in events if "session" in event]
    assert told.endswith("No space left on device; going on without a session file")
    assert "secret" not in told


async def test_nobody_is_told_the_secret(dial: Dial, file: Path) -> None:
    events: list[str] = []
    dial(
        Kills(welcome("hush"), match()),
        ScriptedConnection(welcome("hush hush"), match(), ask(), Closes()),
        ScriptedConnection(Refused("session", "no such session"), Closes(4001)),
        ScriptedConnection(welcome("hush hush hush"), Closes(1000)),
    )
    await lives(client(session_file=file, on_event=events.append))
    await client(session_file=file, on_event=events.append).run()

    assert "back as ann" in str(events)
    assert "hush" not in str(events)


async def test_the_loop_breathes_while_the_past_is_told(
    dial: Dial, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    turns: list[float] = []

    class SlowMemory(Notebook):
        def decide(self, question: Question[Any]) -> object:
            now[0] += 0.001
            return "bet"

    async def ticking() -> None:
        while True:
            turns.append(now[0])
            await asyncio.sleep(0)

    told: list[ArenaMessage] = [past(number) for number in range(1, 1001)]
    dial(
        Kills(welcome(), match()),
        ScriptedConnection(welcome(), match(), told, ask(1001), Closes(1000)),
    )
    await lives(client(session_file=file))
    ticker = asyncio.ensure_future(ticking())
    await client(SlowMemory, session_file=file).run()
    ticker.cancel()

    longest = max(after - before for before, after in pairwise(turns))
    assert turns[-1] > 1.0
    assert longest < 0.008  # a breath every 5 ms, as a decision takes 1


# --- practice ---


def illegal(number: int = 1, legal: object = ("bet", "check")) -> Refused:
    return Refused("illegal", "answered 'raise' to open", "m", f"m:{number}", legal)


class AnswersNeverLegally(Notebook):
    """Answers what is never legal."""

    def decide(self, question: Question[Any]) -> object:
        super().decide(question)
        return "raise"


async def test_in_practice_an_answer_that_is_refused_is_followed_by_a_legal_one(
    dial: Dial, notebooks: list[Notebook]
) -> None:
    rehearsal = msgspec.structs.replace(welcome(), practice=True)
    [line] = dial(
        ScriptedConnection(rehearsal, match(), ask(1), illegal(1), ask(2), illegal(2), Closes(1000))
    )
    events: list[str] = []
    await client(AnswersNeverLegally, on_event=events.append).run()

    answers = line.said("answer")
    assert [answer["ask"] for answer in answers] == ["m:1", "m:1", "m:2", "m:2"]
    assert [answer["value"] for answer in answers[::2]] == ["raise"] * 2
    assert all(answer["value"] in ("bet", "check") for answer in answers[1::2])
    assert notebooks[0].noted == ["reset", "open", "open"]
    assert events[0].endswith(", for practice")
    assert events[1].startswith("refused: answered 'raise' to open; answered \"")


async def test_the_answer_in_its_place_is_given_again_after_a_lost_connection(dial: Dial) -> None:
    first, second = dial(
        ScriptedConnection(welcome(), match(), ask(), illegal(), Closes()),
        ScriptedConnection(welcome(), match(), ask(), Closes(1000)),
    )
    await client(AnswersNeverLegally).run()

    assert second.said("answer") == first.said("answer")[1:]


@pytest.mark.parametrize("refused", [illegal(legal=None), illegal(number=7)])
async def test_where_nothing_legal_is_known_it_is_only_told(dial: Dial, refused: Refused) -> None:
    [line] = dial(ScriptedConnection(welcome(), match(), ask(), refused, Closes(1000)))
    events: list[str] = []
    await client(AnswersNeverLegally, on_event=events.append).run()

    assert len(line.said("answer")) == 1
    assert events[1] == "refused: answered 'raise' to open"


async def test_in_practice_even_what_cannot_be_read_is_only_told(dial: Dial) -> None:
    script = (match(), ask(1), Refused("malformed", "expected `str`"), ask(1))
    rehearsal = msgspec.structs.replace(welcome(), practice=True)
    [line] = dial(ScriptedConnection(rehearsal, *script, Closes(1000)))
    events: list[str] = []
    await client(on_event=events.append).run()

    assert len(line.said("answer")) == 2
    assert events[1] == "refused: expected `str`"
    dial(ScriptedConnection(welcome(), *script, Closes(1000)))
    with pytest.raises(UsageError, match="expected `str`"):
        await client().run()


async def test_after_practice_a_bot_may_be_refused_all_the_same(dial: Dial) -> None:
    rehearsal = msgspec.structs.replace(welcome(), practice=True)
    dial(
        ScriptedConnection(rehearsal, Closes()),
        ScriptedConnection(Refused("name", "is here already"), Closes(4001)),
    )

    with pytest.raises(UsageError, match="is here already"):
        await client().run()


async def test_who_is_to_blame_gets_the_verdict(dial: Dial) -> None:
    verdict = Verdict(
        kind=Ending.ILLEGAL,
        match="m",
        game="ace_king_queen",
        bot="ann",
        seat=0,
        text="seat 1 answered 'raise' to open; legal: bet, check",
        bank_ms=0,
        limits=Limits(),
    )
    ended = msgspec.structs.replace(over(), verdict=verdict)
    dial(ScriptedConnection(welcome(), match(), ask(), ended, Closes(1000)))
    overs: list[Over] = []
    await client(on_over=lambda _, over: overs.append(over)).run()

    assert overs == [ended]


# --- refusals ---


async def test_an_address_that_is_none_is_told_at_once() -> None:
    with pytest.raises(UsageError, match="expected an address such as"):
        await Client("http://arena", "ann", {}).run()


async def test_a_bot_that_the_arena_does_not_take_is_told_why(dial: Dial) -> None:
    dial(ScriptedConnection(Refused("name", "a bot named 'ann' is here already"), Closes(4001)))

    with pytest.raises(UsageError, match="refuses this bot: a bot named 'ann' is here"):
        await client().run()


async def test_an_arena_that_talks_nonsense_is_left(dial: Dial) -> None:
    dial(ScriptedConnection(welcome(), ask(), Closes(1000)))

    with pytest.raises(ProtocolError):
        await client().run()


# --- strategies that fail ---


class FailsAtOneThing(Notebook):
    """Fails at one thing."""

    def __init__(self, doing: str, error: BaseException) -> None:
        super().__init__()
        self.doing, self.error = doing, error
        self._at("making it")

    def _at(self, doing: str) -> None:
        if doing == self.doing:
            raise self.error

    def decide(self, question: Question[Any]) -> object:
        self._at("open")
        return "bet"

    def hear(self, news: News) -> None:
        self._at("hear")

    def reset(self) -> None:
        self._at("reset")


@pytest.mark.parametrize(
    "error", [KeyError("deck"), SystemExit(), RecursionError("too deep"), GeneratorExit()]
)
@pytest.mark.parametrize("doing", ["making it", "reset", "open", "hear"])
async def test_a_strategy_that_raises_ends_it_with_its_error(
    dial: Dial, doing: str, error: BaseException
) -> None:
    [line] = dial(ScriptedConnection(welcome(), match(), ask(), over(news=(NEWS,)), Closes(1000)))

    with pytest.raises(StrategyFailed, match=type(error).__name__) as info:
        await client(lambda: FailsAtOneThing(doing, error)).run()
    assert info.value.__cause__ is error
    assert line.closed is not None
    code, reason = line.closed
    assert code == 1011
    assert reason.startswith("the strategy raised at ")
    assert f": {type(error).__name__}" in reason


async def test_the_reason_fits_a_close_frame(dial: Dial) -> None:
    [line] = dial(ScriptedConnection(welcome(), match(), Closes(1000)))

    with pytest.raises(StrategyFailed):
        await client(lambda: FailsAtOneThing("reset", KeyError("ü" * 500))).run()
    assert line.closed is not None
    assert len(line.closed[1].encode()) <= 123


@pytest.mark.parametrize("answer", [object(), {1: {2}.pop}, "\ud800", {("a",): 1}])
async def test_an_answer_that_cannot_be_sent_is_the_strategys_failure(
    dial: Dial, answer: object
) -> None:
    class OddAnswers(Notebook):
        def decide(self, question: Question[Any]) -> object:
            return answer

    [line] = dial(ScriptedConnection(welcome(), match(), ask(), Closes(1000)))

    with pytest.raises(StrategyFailed, match="the strategy's answer cannot be sent"):
        await client(OddAnswers).run()
    assert line.closed is not None
    assert line.closed[0] == 1011


# --- leaving ---


async def cancelled(playing: Client, holds: Callable[[], bool]) -> None:
    """Run a client until something holds, then stop it as Ctrl-C does."""
    task = asyncio.ensure_future(playing.run())
    while not holds():
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_whoever_stops_it_lets_it_say_goodbye(dial: Dial) -> None:
    [line] = dial(ScriptedConnection(welcome(), match(), ask()))
    await cancelled(client(), lambda: bool(line.said("answer")))

    assert line.messages()[-1] == {"type": "goodbye"}
    assert line.closed == (1000, "")


async def test_it_can_be_stopped_before_it_is_welcome(dial: Dial) -> None:
    [line] = dial(ScriptedConnection())
    await cancelled(client(), lambda: bool(line.said("hello")))

    assert line.closed == (1000, "")


async def test_it_can_be_stopped_while_it_waits_for_an_arena(
    dial: Dial, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    dial(ScriptedConnection(welcome(), Closes()))
    monkeypatch.setattr("random.uniform", lambda low, high: 1000.0)

    await cancelled(client(on_event=events.append), lambda: "next" in str(events))


async def test_a_goodbye_ends_the_session_of_a_file(dial: Dial, file: Path) -> None:
    [line] = dial(ScriptedConnection(welcome(), match(), ask()))
    await cancelled(client(session_file=file), lambda: bool(line.said("answer")))

    assert not file.exists()


async def test_a_bot_that_could_not_say_goodbye_keeps_its_session(
    dial: Dial, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    dial(ScriptedConnection(welcome(), match(), Closes()))
    monkeypatch.setattr("random.uniform", lambda low, high: 1000.0)
    playing = client(session_file=file, on_event=events.append)
    await cancelled(playing, lambda: "next" in str(events))

    assert file.exists()
