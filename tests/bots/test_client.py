"""The client without a network: what it says over lines that tests hold the other end of."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from websockets.exceptions import InvalidMessage

import bots.reach
from bots.client import Client, StrategyFailed
from bots.strategy import RandomMixin
from protocol.codec import Encoding
from protocol.errors import ProtocolError, Unreachable, UsageError
from protocol.messages import ArenaMessage, Ending, Limits, Over, Refused, Verdict
from protocol.vocabulary import News, Question
from tests.support.bot_transcripts import BotTranscript, transcripts
from tests.support.scripted_connection import (
    NEWS,
    FakeTransport,
    ScriptedConnection,
    Step,
    ask,
    dialled,
    match,
    over,
    past,
    welcome,
)


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


class SlowDecider(Notebook):
    """Takes its time for each decision, on a clock of its own."""

    takes_s = 0.5
    now = 0.0

    def decide(self, question: Question[Any]) -> object:
        SlowDecider.now += self.takes_s
        return "bet"


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is that of slow strategies."""
    monkeypatch.setattr(SlowDecider, "now", 0.0)
    monkeypatch.setattr("time.monotonic", lambda: SlowDecider.now)


@pytest.fixture(autouse=True)
def notebooks() -> list[Notebook]:
    """All that the client has made."""
    Notebook.made = []
    return Notebook.made


@pytest.fixture
def dial(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[ScriptedConnection]]:
    """Set what the client gets to when it connects, time after time: a line, or an error."""

    def set_lines(*lines: ScriptedConnection | Exception) -> list[Any]:
        dialled(monkeypatch, lines)
        return [*lines]

    return set_lines


Dial = Callable[..., list[ScriptedConnection]]


def client(
    strategy: Callable[[], Any] = Notebook, url: str = "ws://arena:7700", **options: Any
) -> Client:
    return Client(url, "ann", {"ace_king_queen": strategy}, **options)


async def cancelled(playing: Client, holds: Callable[[], object]) -> None:
    """Run a client until something holds, then stop it as Ctrl-C does."""
    task = asyncio.ensure_future(playing.run())
    while not holds():
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# --- golden transcripts ---


class Killed(BaseException):
    """Stands for `kill -9`: nothing runs after it but the release of the lock."""


class Kills(ScriptedConnection):
    """A line on which the process is killed where the script ends."""

    async def end(self) -> None:
        raise Killed


class ClientTranscript(BotTranscript):
    """A case of `client.cases`."""

    async def play(self, dial: Dial, file: Path) -> None:
        dial(*self.lines_to(ScriptedConnection, Kills))
        overs: list[str] = []
        strategy = Notebook if not self.all("plays") else AnswersNeverLegally
        doings = [line[9:] for line in self.lines if line.startswith("fails at ")]
        make = partial(FailsAtOneThing, doings[0], KeyError()) if doings else strategy
        self.stop = lambda: running.cancel()

        def started() -> asyncio.Task[None]:
            on_over = lambda match, over: overs.append(match.match)  # noqa: E731
            playing = self.speaker = client(make, on_over=on_over, **self.options(file))
            return asyncio.ensure_future(playing.run())

        for _ in [line for line in self.connections if isinstance(line, Kills)]:
            with pytest.raises(Killed):
                await started()
        with ExitStack() as ending:
            for text in self.all("raises"):
                error, _, why = text.partition(" ")
                ending.enter_context(pytest.raises(ERRORS[error], match=re.escape(why) or None))
            running = started()
            await running

        self.check(overs)
        nonces = {(one["match"], one["nonce"]) for one in self.said("ready")}
        assert len(nonces) == len(dict(nonces)) == len({nonce for _, nonce in nonces})
        assert all(len(nonce) == 32 for _, nonce in nonces)
        if self.all("noted"):
            assert [" ".join(book.noted) for book in Notebook.made] == self.all("noted")
        for word, remains in (("kept", [file]), ("gone", [])):
            assert word not in self.lines or list(file.parent.iterdir()) == remains


ERRORS: dict[str, type[BaseException]] = {
    error.__name__: error
    for error in (UsageError, Unreachable, ProtocolError, StrategyFailed, asyncio.CancelledError)
}


@transcripts(ClientTranscript, Path(__file__).with_name("client.cases"))
async def test_transcript(transcript: ClientTranscript, dial: Dial, file: Path) -> None:
    await transcript.play(dial, file)


# --- a match ---


async def test_it_says_who_it_is_and_what_it_plays(dial: Dial) -> None:
    [line] = dial(ScriptedConnection(1000))
    await client(token="t", tables=7).run()

    [hello] = line.said("hello")
    assert hello["name"] == "ann"
    assert hello["games"] == ["ace_king_queen"]
    assert (hello["tables"], hello["token"]) == (7, "t")
    assert hello["batch"] is True
    assert hello["resume"] is None


@pytest.mark.parametrize("encoding", Encoding)
async def test_it_speaks_the_encoding_that_it_was_told_to(dial: Dial, encoding: Encoding) -> None:
    [line] = dial(ScriptedConnection(welcome(), match(), ask(), 1000, encoding=encoding))
    await client(encoding=encoding).run()

    assert len(line.said("answer")) == 1


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize(("batch", "frames"), [(True, 2), (False, 7)])
async def test_answers_that_are_there_together_share_a_frame(
    dial: Dial, batch: bool, frames: int
) -> None:
    three = [part for name in "mno" for part in (match(name), ask(1, name))]
    [line] = dial(ScriptedConnection([welcome(), *three], 1000))
    await client(batch=batch).run()

    assert len(line.said("answer")) == 3
    assert len(line.heard) == frames


@pytest.mark.usefixtures("slow")
async def test_frames_that_are_read_together_are_answered_together(dial: Dial) -> None:
    asks = ask(1, "m"), ask(1, "n")
    [line] = dial(ScriptedConnection([welcome(), match("m"), match("n")], asks, 1000))
    await client().run()

    assert [answer["ask"] for answer in line.heard[-1]] == ["m:1", "n:1"]


async def test_a_frame_that_comes_while_it_leaves_is_not_answered(dial: Dial) -> None:
    class AsksWhileItCloses(ScriptedConnection):
        async def close(self, code: int = 1000, reason: str = "") -> None:
            assert self.on_read is None

    [line] = dial(AsksWhileItCloses(welcome()))
    await cancelled(client(), lambda: line.heard)

    assert len(line.said("goodbye")) == 1


@pytest.mark.usefixtures("slow")
async def test_J7_a_slow_strategy_does_not_hold_back_the_answers_it_has(dial: Dial) -> None:
    matches, asks = [match(name) for name in "mno"], [ask(1, name) for name in "mno"]
    [line] = dial(ScriptedConnection(welcome(), [*matches], [*asks], 1000))
    await client(SlowDecider).run()

    frames = [frame for frame in line.heard if "answer" in str(frame)]
    assert len(frames) >= 2  # not one, at the end of all three


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("together", [True, False])
async def test_a_slow_strategy_lets_the_loop_run_between_its_answers(
    dial: Dial, together: bool
) -> None:
    decided: list[None] = []

    class StoppedAtOnce(SlowDecider):
        def decide(self, question: Question[Any]) -> object:
            decided.append(None)
            asyncio.get_running_loop().call_soon(task.cancel)
            return super().decide(question)

    names = [f"m{number}" for number in range(20)]
    asks: list[ArenaMessage] = [ask(1, name) for name in names]
    read: Step = asks if together else tuple(asks)
    [line] = dial(ScriptedConnection(welcome(), [match(name) for name in names], read))
    task = asyncio.create_task(client(StoppedAtOnce, tables=20).run())

    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(decided) <= 3, "of twenty questions that were read together"
    assert len(line.said("answer")) == len(decided)
    assert len(line.said("goodbye")) == 1


# --- lost connections ---


async def test_a_question_that_comes_again_gets_the_same_answer(
    dial: Dial, notebooks: list[Notebook]
) -> None:
    script = welcome(), match(), ask(1, news=(NEWS,)), 1006
    again = [ScriptedConnection(*script) for _ in range(20)]
    lines = dial(*again, ScriptedConnection(welcome(), over(), 1000))
    await client().run()

    answers = [answer for line in lines for answer in line.said("answer")]
    assert len(answers) == 20
    assert len({answer["value"] for answer in answers}) == 1
    assert notebooks[0].noted == ["reset", "hand_over", "open"]


async def test_a_dead_link_is_for_the_kernel_to_notice(
    dial: Dial, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not for pings, which an arena that stands still does not answer."""
    [line] = dial(ScriptedConnection(welcome(), 1000))
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
    dial(closed, ScriptedConnection(welcome(), 1000))
    await client(on_event=events.append).run()

    assert events[0].endswith("waiting up to 60 s for it; it may be a wss:// address")
    assert events[1].startswith("connected")


# --- a session that outlives its process ---


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "ann.json"


async def lives(playing: Client) -> None:
    """Run a client whose process is killed; the system opens its lock."""
    with pytest.raises(Killed):
        await playing.run()


class Seeded(Notebook):
    """Notes its seed, too."""

    def seed(self, seed: int | str) -> None:
        self.noted.append(f"seed {seed}")
        super().seed(seed)


@pytest.mark.parametrize("seed", ["lucky", None])
async def test_every_match_gets_the_seed_again_that_it_had(
    dial: Dial, file: Path, notebooks: list[Notebook], seed: str | None
) -> None:
    dial(
        Kills(welcome(), [match("l"), match("m"), match("n")], over("l")),
        Kills(welcome(), [match("n"), match("m"), match("o")], ask(1, "o"), over("m")),
        ScriptedConnection(welcome(), [match("p"), match("o"), match("n")], 1000),
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
    dial(ScriptedConnection(welcome(), match("m"), match("n"), 1000))
    await client(Seeded).run()

    assert [book.noted for book in notebooks] == [["reset"], ["reset"]]


async def test_what_the_arena_counts_on_is_in_the_file_before(dial: Dial, file: Path) -> None:
    class LooksIntoTheFile(ScriptedConnection):
        def say(self, frame: bytes, text: bool) -> None:
            seen.append(json.loads(file.read_text())["seeds"] if file.exists() else {})
            super().say(frame, text)

    seen: list[Any] = []
    [line] = dial(LooksIntoTheFile(welcome(), match("m"), [match("n"), over("m")], 1000))
    await client(session_file=file, seed="s").run()

    assert [set(seeds) for seeds in seen] == [set(), {"m"}, {"n"}]
    assert len(line.said("ready")) == 2


@pytest.mark.usefixtures("slow")
async def test_it_is_there_even_before_a_slow_strategy_has_answered_all(
    dial: Dial, file: Path
) -> None:
    class LooksBetweenAnswers(ScriptedConnection):
        def say(self, frame: bytes, text: bool) -> None:
            super().say(frame, text)
            if len(self.said("ready")) == 1:
                seen.append(set(json.loads(file.read_text())["seeds"]))

    seen: list[set[str]] = []
    script: list[ArenaMessage] = [match("m"), ask(1, "m"), match("n"), ask(1, "n")]
    dial(LooksBetweenAnswers(welcome(), script, 1000))
    await client(SlowDecider, session_file=file).run()

    assert seen == [{"m"}]


async def test_an_arena_that_has_forgotten_the_session_of_a_file_gets_a_new_bot(
    dial: Dial, file: Path, notebooks: list[Notebook]
) -> None:
    *_, fresh = dial(
        Kills(welcome("one"), match()),
        ScriptedConnection(Refused("session", "no such session"), 4001),
        Kills(welcome("two"), match("n")),
    )
    await lives(client(Seeded, session_file=file, seed="s"))
    await lives(client(Seeded, session_file=file, seed="s"))

    [hello] = fresh.said("hello")
    assert (hello["resume"], hello["from"]) == (None, None)
    assert notebooks[1].noted == ["seed s:1", "reset"]
    kept = json.loads(file.read_text())
    assert (kept["secret"], set(kept["seeds"])) == ("two", {"n"})


async def test_a_second_bot_of_the_name_leaves_the_session_to_the_first(
    dial: Dial, file: Path
) -> None:
    [first, second] = dial(
        ScriptedConnection(welcome("one")), ScriptedConnection(welcome("two"), 1000)
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
    [line] = dial(ScriptedConnection(welcome(), match(), ask(), 1000))
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
    [line] = dial(ScriptedConnection(welcome(), match(), ask(), 1000))
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
        ScriptedConnection(welcome("hush hush"), match(), ask(), 1006),
        ScriptedConnection(Refused("session", "no such session"), 4001),
        ScriptedConnection(welcome("hush hush hush"), 1000),
    )
    await lives(client(session_file=file, on_event=events.append))
    await client(session_file=file, on_event=events.append).run()

    assert "back as ann" in str(events)
    assert "hush" not in str(events)


@pytest.mark.usefixtures("slow")
async def test_the_loop_breathes_while_the_past_is_told(dial: Dial, file: Path) -> None:
    class SlowMemory(SlowDecider):
        takes_s = 0.001

    async def ticking() -> None:
        while True:
            times.append(SlowDecider.now)
            await asyncio.sleep(0)

    times: list[float] = []
    told: list[ArenaMessage] = [past(number) for number in range(1, 1001)]
    dial(Kills(welcome(), match()), ScriptedConnection(welcome(), match(), told, ask(1001), 1000))
    await lives(client(session_file=file))
    ticker = asyncio.ensure_future(ticking())
    await client(SlowMemory, session_file=file).run()
    ticker.cancel()

    assert times[-1] > 1.0
    assert max(after - before for before, after in pairwise(times)) < 0.008  # 5, and a decision


# --- practice ---


class AnswersNeverLegally(Notebook):
    """Answers what is never legal."""

    def decide(self, question: Question[Any]) -> object:
        super().decide(question)
        return "raise"


async def test_who_is_to_blame_gets_the_verdict(dial: Dial) -> None:
    of: dict[str, Any] = {"match": "m", "game": "ace_king_queen", "bot": "ann", "seat": 0}
    verdict = Verdict(
        kind=Ending.ILLEGAL, text="answered 'raise'", bank_ms=0, limits=Limits(), **of
    )
    ended = msgspec.structs.replace(over(), verdict=verdict)
    dial(ScriptedConnection(welcome(), match(), ask(), ended, 1000))
    overs: list[Over] = []
    await client(on_over=lambda _, over: overs.append(over)).run()

    assert overs == [ended]


async def test_what_the_arena_notes_for_its_author_is_said(dial: Dial) -> None:
    noted = msgspec.structs.replace(welcome(), note="it plays instead of your v3")
    dial(ScriptedConnection(noted, 1000))
    lines: list[str] = []
    await client(url="ws://arena", on_event=lines.append).run()

    assert lines[0] == "connected as ann at ws://arena; it plays instead of your v3"


# --- refusals ---


async def test_an_address_that_is_none_is_told_at_once() -> None:
    with pytest.raises(UsageError, match="expected an address such as"):
        await Client("http://arena", "ann", {}).run()


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
    [line] = dial(ScriptedConnection(welcome(), match(), ask(), over(news=(NEWS,)), 1000))

    with pytest.raises(StrategyFailed, match=type(error).__name__) as info:
        await client(lambda: FailsAtOneThing(doing, error)).run()
    assert info.value.__cause__ is error
    code, reason = line.closed or (0, "")
    assert code == 1011
    assert reason.startswith("failed: the strategy raised at ")
    assert f": {type(error).__name__}" in reason


async def test_the_reason_fits_a_close_frame(dial: Dial) -> None:
    [line] = dial(ScriptedConnection(welcome(), match(), 1000))

    with pytest.raises(StrategyFailed):
        await client(lambda: FailsAtOneThing("reset", KeyError("ü" * 500))).run()
    assert 100 < len((line.closed or (0, ""))[1].encode()) <= 123


@pytest.mark.parametrize("answer", ["\ud800", {"bid": "\ud800"}])
async def test_an_answer_that_cannot_be_sent_is_the_strategys_failure(
    dial: Dial, answer: object
) -> None:
    class OddAnswers(Notebook):
        def decide(self, question: Question[Any]) -> object:
            return answer

    [line] = dial(ScriptedConnection(welcome(), match(), ask(), 1000))

    with pytest.raises(StrategyFailed, match="the strategy's answer cannot be sent"):
        await client(OddAnswers).run()
    assert (line.closed or (0, ""))[0] == 1011


# --- leaving ---


async def test_a_bot_that_could_not_say_goodbye_keeps_its_session(
    dial: Dial, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can be stopped while it waits for an arena."""
    events: list[str] = []
    dial(ScriptedConnection(welcome(), match(), 1006))
    monkeypatch.setattr("random.uniform", lambda low, high: 1000.0)
    await cancelled(
        client(session_file=file, on_event=events.append), lambda: "next" in str(events)
    )

    assert file.exists()


# --- leaving after the matches that are on (J10) ---


@pytest.mark.virtual_time
async def test_J10_an_arena_that_says_nothing_is_not_waited_for(dial: Dial) -> None:
    events: list[str] = []
    bot = client(on_event=events.append)
    [line] = dial(ScriptedConnection(welcome(finish=True), match(), bot.finish))
    line.answers_pings = False
    with pytest.raises(asyncio.CancelledError):
        await bot.run()

    assert events[-1] == "nothing has come from the arena for 3 s"


@pytest.mark.parametrize("for_s", [0.0, 0.03])  # also if answers that wait are sent in between
async def test_J10_a_match_that_comes_with_the_end_of_the_last_is_finished_too(
    dial: Dial, for_s: float
) -> None:
    bot = client(on_over=lambda match, over: time.sleep(for_s))
    together: Step = [over("m"), match("n")]
    [line] = dial(
        ScriptedConnection(
            welcome(), match("m"), bot.finish, together, ask(1, "n"), over("n"), 1000
        )
    )
    await bot.run()

    assert [message["type"] for message in line.messages()[-2:]] == ["answer", "goodbye"]
