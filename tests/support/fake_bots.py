"""Bots without sockets: their frames are caught, and tests set the clock of their matches."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from arena.games.catalogue import GAMES
from arena.games.match import MatchResult
from arena.games.rules import Game
from arena.referee.bot_session import BotSession, LiveMatch
from arena.referee.clock import TICK_S
from arena.referee.referee import Referee
from arena.server.websocket import Connection
from protocol.codec import Encoding, decode_from_arena
from protocol.messages import (
    VERSION,
    Answer,
    ArenaMessage,
    Ask,
    BotMessage,
    Hello,
    Limits,
    Match,
    Ready,
    Verdict,
    Welcome,
)
from protocol.vocabulary import Range

__all__ = ["ANY_GAME", "LIMITS", "FakeArena", "FakeBot", "FakeBotConnection", "FakeBotProcess"]

ANY_GAME = "ace_king_queen"
"""The game of tests that would do with any for two."""
LIMITS = Limits(decision_ms=1000, bank_ms=3000, hard_ms=5000, start_ms=2000, grace_ms=1000)


class FakeBotConnection:
    """A connection that records frames; it is behind while more than `room` bytes are unread."""

    address = "10.0.0.1"
    is_direct = True
    min_rtt_ms = 0.5

    def __init__(self, encoding: Encoding = Encoding.JSON, room: float = math.inf) -> None:
        self.encoding = encoding
        self.room = room
        self.is_linked = True  # whether there is a network in between
        self.looks = 0  # at whether there is one, as its link is looked at
        self.pings: list[bytes] = []
        self.silent: float | None = None  # since when
        self.frames: list[bytes] = []
        self.games: dict[str, str] = {}

    @property
    def has_link(self) -> bool:
        self.looks += 1
        return self.is_linked

    @property
    def is_behind(self) -> bool:
        return sum(map(len, self.frames)) > self.room

    def send(self, frame: bytes, encoding: Encoding) -> None:
        assert encoding is self.encoding
        self.frames.append(frame)

    def ping(self, payload: bytes) -> None:
        self.pings.append(payload)

    def silent_since(self, now: float) -> float | None:
        return self.silent

    def read(self) -> list[ArenaMessage]:
        """The messages in all frames that were written since the last call."""
        frames, self.frames = self.frames, []
        messages: list[ArenaMessage] = []
        for frame in frames:
            for message in decode_from_arena(frame, self.encoding, self.games.__getitem__):
                if isinstance(message, Match):
                    self.games[message.match] = message.game
                messages.append(message)
        return messages


class FakeBotProcess:
    """The processes of a launched bot, whose CPU time and waits are what a test says."""

    enforced = "time, memory and processes (sampled)"
    is_metered = True
    lag = None

    def __init__(self) -> None:
        self.used_ms = 0.0
        self.overbooked_ms = 0.0
        self.overbooked_looks = 0
        self.looks = 0

    def cpu_ms(self) -> float:
        self.looks += 1
        return self.used_ms

    def clock(self, now: float) -> float | None:
        return now

    def waited_ms(self) -> float | None:
        self.overbooked_looks += 1
        return self.overbooked_ms

    def tail(self) -> str:
        return "the last that it said"


class FakeBot:
    """A bot, its connection, and the arena's session of it."""

    def __init__(
        self,
        name: str = "ann",
        *,
        tables: int = 1,
        batch: bool = True,
        encoding: Encoding = Encoding.JSON,
        clock: Callable[[], float] = lambda: 0.0,
        on_dirty: Callable[[BotSession], None] = lambda player: None,
        lag_s: Callable[[], float] = lambda: 0.0,
        process: FakeBotProcess | None = None,
    ) -> None:
        self.clock = clock
        self.lag_s = lag_s
        self.process = process
        self.hello = Hello(VERSION, name, tuple(GAMES), tables=tables, batch=batch)
        self.wire = FakeBotConnection(encoding)
        self.player = BotSession(
            self.hello, cast(Connection, self.wire), 512, on_dirty, process=process
        )
        self.player.session.note(self.hello)
        self._welcome()
        self.reads()

    def reads(self) -> list[ArenaMessage]:
        """Flush the outbox, and return all messages since the last call."""
        self.player.flush(self.clock(), self.lag_s())
        return self.wire.read()

    def reads_on(self) -> list[ArenaMessage]:
        """The same, until no more messages come."""
        messages: list[ArenaMessage] = []
        while new := self.reads():
            messages += new
        return messages

    def asks(self) -> list[Ask]:
        """The questions among `reads`."""
        return [message for message in self.reads() if isinstance(message, Ask)]

    def goes(self) -> None:
        """Lose the connection."""
        self.player.disconnected()
        self.player.connection_lost(self.clock(), self.lag_s())

    def comes_back(self, first: int | None = None, room: float = math.inf) -> None:
        """Resume the session over a new connection, knowing `first` questions of each match."""
        games = self.wire.games
        self.wire = FakeBotConnection(self.wire.encoding, room)
        self.wire.games = games
        self.player.resumed(self.hello, cast(Connection, self.wire))
        self.player.session.note(self.hello)
        self._welcome()
        self.player.resend_unseen(first)

    def _welcome(self) -> None:
        self.player.send(Welcome(VERSION, self.player.name, self.player.secret, Limits()))


class FakeArena:
    """Matches between bots without sockets; `now` is the time, in seconds.

    Setting it forward runs the arena's loop on time; `held_up` is for a loop that is late.
    """

    def __init__(self) -> None:
        self._now = 100.0
        self.referee = Referee(lambda: self._now)
        self.results: list[tuple[LiveMatch, MatchResult, Verdict | None]] = []

    @property
    def now(self) -> float:
        return self._now

    @now.setter
    def now(self, then: float) -> None:
        while self._now < then:
            self._now = min(then, self._now + TICK_S)
            self.referee.lag.tick(self._now)

    def held_up(self, seconds: float) -> None:
        """Have the arena's loop stand still for so long."""
        self._now += seconds

    def bot(self, name: str = "ann", **options: Any) -> FakeBot:
        """A bot that is connected here."""
        return FakeBot(
            name,
            clock=lambda: self.now,
            lag_s=lambda: self.referee.lag.total_s(self.now),
            **options,
        )

    def launched(self, name: str = "ann", **options: Any) -> FakeBot:
        """A bot that the arena has launched."""
        return self.bot(name, process=FakeBotProcess(), **options)

    def computes(self, bot: FakeBot, seconds: float) -> None:
        """Let time pass, in which one of the bot's threads computes."""
        assert bot.process is not None, "only launched bots have CPU time"
        self.now += seconds
        bot.process.used_ms += seconds * 1000

    def passes(self, seconds: float) -> None:
        """Let time pass, in which the referee checks deadlines."""
        until = self.now + seconds
        while self.now < until:
            self.now = min(until, self.now + TICK_S)
            self.referee.tick()

    def open(
        self,
        *bots: FakeBot,
        game: str | Game = ANY_GAME,
        limits: Limits = LIMITS,
        versions: Sequence[str] = (),
        referees: Mapping[str, Any] | None = None,
        **settings: object,
    ) -> LiveMatch:
        """Open a match; `referees` are further options of the referee's `open`."""
        rules = GAMES[game] if isinstance(game, str) else game
        return self.referee.open(
            rules,
            rules.vocabulary.read_settings(settings),
            [bot.player for bot in bots],
            limits,
            lambda *over: self.results.append(over),
            versions=versions,
            **(referees or {}),
        )

    def say(self, bot: FakeBot, message: BotMessage) -> None:
        """Have the arena receive a message, as from its gateway."""
        player = bot.player
        if isinstance(message, Answer) and (chair := player.answering(message)):
            self.referee.answer(chair, message, self.now)
        elif player.session.note(message) and isinstance(message, Ready):
            self.referee.ready(player, message)

    def sit(self, *bots: FakeBot) -> None:
        """Have all bots accept their invitations."""
        for bot in dict.fromkeys(bots):  # a bot may have several seats
            for message in bot.reads():
                if isinstance(message, Match):
                    self.say(bot, Ready(message.match, f"nonce of {bot.player.name}"))

    def answer(self, bot: FakeBot, ask: Ask, value: Any = None) -> Any:
        """Answer a question, by default with the first legal answer; what was answered."""
        if value is None:
            legal = ask.question.choices
            value = legal.min if isinstance(legal, Range) else legal[0]
        self.say(bot, Answer(ask.match, ask.ask, value))
        return value

    def play_out(self, *bots: FakeBot) -> None:
        """Answer all questions until no more come."""
        while sum(self._turn(bot) for bot in bots):
            pass

    def _turn(self, bot: FakeBot) -> bool:
        asks = bot.asks()
        for ask in asks:
            self.answer(bot, ask)
        return bool(asks)
