"""A bot that misbehaves in one way.

    python tests/support/rogues/rogue.py KIND --url ws://... --game GAME --name NAME [--after N]

It gives any legal answer N times, and then misbehaves. `KINDS` at the end has all kinds, with the
word (rules J2) that the arena must find for each. It prints `over` and `refused` as a line of JSON
each, so that a test sees what an author would see.

The file stands alone: it imports nothing of ours, so that the arena is judged by its wire and not
by our client. The WebSocket is `websockets`' protocol without I/O over a plain blocking socket: one
thread, in which every byte can be held back, cut or made up. Memory, processes and time are
bounded, so that it does no harm to the machine, whatever the arena fails to do.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

__all__ = ["KINDS", "NUMBERS", "ConnectionEnded", "Misbehaviour", "RogueBot", "main", "step_back"]

Message = dict[str, Any]
Deed = Callable[["RogueBot", Message], None]

AKQ, GIN, HIGH_LOW = "ace_king_queen", "gin_rummy", "high_low"
POKER, BLACKJACK = "three_card_poker", "blackjack"
NUMBERS = frozenset({HIGH_LOW, POKER, BLACKJACK})
"""The games that ask for numbers: a careless arena would take `true`, `4.0` and `"4"` for one."""

_DRIP_S = 0.05  # from one byte to the next
_DRIPS = 4_000  # bytes: minutes, as an arena that stood still gives more time
_LIFE_S = 30.0  # it ends by then, if nobody ends it before
_HOG_MIB = 320  # more than any limit of a test, and taken before the CPU time is up
_BOMB = 60  # processes
_FLOOD = 20_000  # messages
_CHUNK = 500  # messages at once
_STALE = 9_990  # messages between two good ones


class ConnectionEnded(Exception):
    """The connection has ended, or has been silent for too long."""


class RogueBot:
    """A bot that plays any legal answer; the functions below make it misbehave.

    Args:
        options: the command line.
        narrow: keep the kernel's buffers for this connection as small as they can be, at both ends.

    Raises:
        ConnectionEnded: (any method) the connection has ended.
    """

    def __init__(self, options: argparse.Namespace, *, narrow: bool = False) -> None:
        self.name: str = options.name
        self.game: str = options.game
        self.copies = 1  # of each answer
        self.answered = 0
        self._token: str | None = options.token
        self._session: str | None = None
        self._uri = parse_uri(options.url)
        self._narrow = narrow
        self._random = random.Random(self.name)
        self.connect()

    def connect(self) -> None:
        """Open the socket, without sending a byte."""
        self.socket = socket.socket()
        if self._narrow:
            # The sender's kernel buffers some ten segments for a slow reader: make them small.
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect((self._uri.host, self._uri.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._wire = ClientProtocol(self._uri, max_size=None)
        self.request = self._wire.connect()
        self._waiting: deque[Message] = deque()

    def shake_hands(self) -> None:
        """Do the WebSocket handshake."""
        self._wire.send_request(self.request)
        self._flush()
        while self._wire.state is not State.OPEN:
            self._read()

    def hello(self) -> Message:
        """A correct `hello`."""
        hello = {"type": "hello", "protocol": 1, "name": self.name}
        optional = {"token": self._token, "resume": self._session}
        given = {key: value for key, value in optional.items() if value is not None}
        return {**hello, "games": [self.game], **given}

    def greet(self) -> None:
        """Shake hands, say hello and read the `welcome`."""
        self.shake_hands()
        self.say(self.hello())
        welcome = self.hear()
        if welcome["type"] != "welcome":
            raise ConnectionEnded(welcome)
        self._session = welcome["session"]

    def come_back(self) -> None:
        """Reset the connection, and resume the session over another."""
        reset = struct.pack("ii", 1, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        self.socket.close()
        self.connect()
        self.greet()

    def say(self, *messages: Message) -> None:
        """Send messages, in a frame each."""
        for message in messages:
            self._wire.send_text(json.dumps(message).encode())
        self._flush()

    def close(self, code: int, reason: str = "") -> None:
        """Close the WebSocket, politely, if the arena has not begun to."""
        if self._wire.state is State.OPEN:
            self._wire.send_close(code, reason)
            self._flush()

    def pour(self, data: bytes) -> None:
        """Send bytes, whatever they are."""
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise ConnectionEnded(error) from None

    def drip(self, data: bytes) -> None:
        """Send bytes one by one, slowly, until all are sent or the match is over."""
        for byte in data:
            self.pour(bytes([byte]))
            if self.is_heard_within(_DRIP_S) and self.hear()["type"] == "over":
                return

    def is_heard_within(self, timeout_s: float) -> bool:
        """Whether there is a message to hear after some time."""
        if not self._waiting and select.select([self.socket], [], [], timeout_s)[0]:
            self._read()
        return bool(self._waiting)

    def hear(self) -> Message:
        """The next message; `over` and `refused` are printed."""
        until = time.monotonic() + _LIFE_S
        while not self.is_heard_within(0.5):
            if time.monotonic() > until:
                raise ConnectionEnded("silence")
        message = self._waiting.popleft()
        if message["type"] in ("over", "refused"):
            print(json.dumps(message), flush=True)
        return message

    def play(self, after: int = sys.maxsize, *, number: bool = False) -> Message | None:
        """Play `after` answers; return the next question, with `number` one about a number.

        None if the match is over before.
        """
        while True:
            message = self.hear()
            match message["type"]:
                case "match":
                    self.ready(message)
                case "ask":
                    suits = not number or is_number(message["legal"])
                    if self.answered >= after and suits:
                        return message
                    self.answer(message, self.choose(message["legal"]))
                case "over":
                    return None

    def ready(self, match: Message) -> None:
        """Accept a seat."""
        self.say({"type": "ready", "match": match["match"], "nonce": self.name})

    def answer(self, ask: Message, value: object) -> None:
        """Answer a question."""
        self.answered += 1
        self.say(*[answer_to(ask, value)] * self.copies)

    def choose(self, legal: Any) -> Any:
        """Any legal answer, small if it is a number: a bot that is broke is out too early."""
        if isinstance(legal, dict):
            most = min(legal["max"], legal["min"] + 4)
            return self._random.randint(legal["min"], most)
        return self._random.choice(legal)

    def linger(self) -> None:
        """Listen until the match is over, and then go."""
        while self.hear()["type"] != "over":
            pass
        self.close(1000)

    def _flush(self) -> None:
        for data in self._wire.data_to_send():
            self.pour(data)

    def _read(self) -> None:
        try:
            data = self.socket.recv(65536)
        except OSError as error:
            raise ConnectionEnded(error) from None
        if not data:
            raise ConnectionEnded("closed")
        self._wire.receive_data(data)
        for event in self._wire.events_received():
            if isinstance(event, Frame) and event.opcode is Opcode.TEXT:
                self._waiting.append(json.loads(bytes(event.data)))
        self._flush()  # pongs, and the answer to a close


def answer_to(ask: Message, value: object) -> Message:
    """An answer; `ask` needs no more than its two ids."""
    ids = {"match": ask["match"], "ask": ask["ask"]}
    return {"type": "answer", **ids, "value": value}


def stale(bot: RogueBot, ask: Message) -> bytes:
    """The frame of an answer to the first question of a match, which is over long ago."""
    match = ask["ask"].rpartition(":")[0]
    answer = answer_to({**ask, "ask": f"{match}:1"}, bot.choose(ask["legal"]))
    return frame(json.dumps(answer).encode())


def frame(payload: bytes, opcode: Opcode = Opcode.TEXT) -> bytes:
    """A frame's bytes, as a client sends them."""
    return Frame(opcode, payload).serialize(mask=True)


def is_number(legal: Any) -> bool:
    """Whether an integer is among the legal answers."""
    return isinstance(legal, dict) or any(type(value) is int for value in legal)


def some_number(legal: Any) -> int:
    """A number that is legal, 1 or 4 if possible; 4 if none is."""
    if isinstance(legal, dict):
        return max(1, int(legal["min"]))
    return next((value for value in legal if type(value) is int), 4)


# ---- Deeds, each in the middle of a match, at a question that is theirs


def answering(value: Callable[[RogueBot, Any], object]) -> Deed:
    """Give an answer made of the legal ones, and wait for the reply."""

    def deed(bot: RogueBot, ask: Message) -> None:
        bot.answer(ask, value(bot, ask["legal"]))
        bot.linger()

    return deed


def lingering(act: Callable[[RogueBot], None]) -> Deed:
    """Do something, and wait for the reply."""

    def deed(bot: RogueBot, ask: Message) -> None:
        act(bot)
        bot.linger()

    return deed


illegal = answering(lambda bot, legal: "all in")
as_true = answering(lambda bot, legal: True)
as_float = answering(lambda bot, legal: float(some_number(legal)))
as_text = answering(lambda bot, legal: str(some_number(legal)))
as_list = answering(lambda bot, legal: [bot.choose(legal)])
# The first byte can begin no frame.
garbage_bytes = lingering(lambda bot: bot.pour(b"\xff" + os.urandom(500)))
garbage_json = lingering(lambda bot: bot.pour(frame(b'{"type": "answer", "match": knock knock')))
huge_frame = lingering(lambda bot: bot.pour(frame(b" " * (2 << 20))))
stalls = lingering(lambda bot: None)
leaves = lingering(lambda bot: bot.say({"type": "goodbye"}))
closes = lingering(lambda bot: bot.close(1000))


def anothers_match(bot: RogueBot, ask: Message) -> None:
    number = int(ask["match"].rpartition("-")[2].partition(".")[0])
    match = ask["match"].replace(f"-{number}.", f"-{max(1, number - 1)}.")
    theirs = match if match != ask["match"] else f"{match}1"
    bot.say(answer_to({"match": theirs, "ask": f"{theirs}:1"}, "check"))
    bot.linger()


def answers_early(bot: RogueBot, ask: Message) -> None:
    match, _, number = ask["ask"].rpartition(":")
    bot.answer({**ask, "ask": f"{match}:{int(number) + 1}"}, bot.choose(ask["legal"]))
    bot.linger()


def floods(bot: RogueBot, ask: Message) -> None:
    chunk = stale(bot, ask) * _CHUNK
    for _ in range(_FLOOD // _CHUNK):
        bot.pour(chunk)
        if bot.is_heard_within(0):
            break
    bot.linger()


def answers_stale(bot: RogueBot, ask: Message) -> None:
    """Before each good answer, as many stale ones as an arena takes that counts them in a row."""
    chunk = stale(bot, ask) * (_STALE // 10)
    while True:
        for _ in range(10):
            bot.pour(chunk)
        bot.answer(ask, bot.choose(ask["legal"]))
        message = bot.hear()
        if message["type"] == "over":
            bot.close(1000)
            return
        ask = message


def floods_with_pings(bot: RogueBot, ask: Message) -> None:
    chunk = frame(b"x" * 100, Opcode.PING) * _CHUNK
    until = time.monotonic() + _LIFE_S
    while time.monotonic() < until:
        bot.pour(chunk)
        if bot.is_heard_within(0):
            break
    bot.linger()


def never_reads(bot: RogueBot, ask: Message) -> None:
    chunk = frame(b"x" * 100, Opcode.PING) * _CHUNK
    until = time.monotonic() + _LIFE_S
    while time.monotonic() < until:
        bot.pour(chunk)  # every one is to be answered


def drips(bot: RogueBot, ask: Message) -> None:
    answer = answer_to(ask, bot.choose(ask["legal"]))
    bot.drip(frame(json.dumps({**answer, "note": "x" * _DRIPS}).encode()))


def crashes(bot: RogueBot, ask: Message) -> None:
    print("it was the butler", file=sys.stderr, flush=True)
    os._exit(3)


def says_it_crashed(bot: RogueBot, ask: Message) -> None:
    bot.close(1011, "KeyError: 'deck'")
    bot.linger()


def comes_back(bot: RogueBot, ask: Message) -> None:
    bot.come_back()
    bot.play()


def answers_twice(bot: RogueBot, ask: Message) -> None:
    bot.copies = 2
    bot.answer(ask, bot.choose(ask["legal"]))
    bot.play()


def hogs_memory_in_a_child(bot: RogueBot, ask: Message) -> None:
    child = subprocess.Popen([sys.executable, __file__, "hog"])
    child.wait()


def hogs_memory_in_a_file(bot: RogueBot, ask: Message) -> None:
    file = os.memfd_create("hoard")
    for _ in range(_HOG_MIB):
        os.write(file, b"x" * (1 << 20))
    time.sleep(_LIFE_S)


def bombs(bot: RogueBot, ask: Message) -> None:
    sleep = "import time; time.sleep(20)"
    children = [subprocess.Popen([sys.executable, "-S", "-E", "-c", sleep]) for _ in range(_BOMB)]
    for child in children:
        child.wait()


def spins(bot: RogueBot, ask: Message) -> None:
    until = time.monotonic() + _LIFE_S
    while time.monotonic() < until:
        pass


# ---- Deeds before there is a match


def is_never_ready(options: argparse.Namespace) -> None:
    bot = RogueBot(options)
    bot.greet()
    bot.linger()


def drips_the_handshake(options: argparse.Namespace) -> None:
    RogueBot(options).drip(b"GET / HTTP/1.1\r\nX: " + b"x" * _DRIPS)


def drips_hello(options: argparse.Namespace) -> None:
    bot = RogueBot(options)
    bot.shake_hands()
    hello = {**bot.hello(), "client": "x" * _DRIPS}
    bot.drip(frame(json.dumps(hello).encode()))


def exits(options: argparse.Namespace) -> None:
    print("no such deck", file=sys.stderr, flush=True)
    sys.exit(1)


def sleeps(options: argparse.Namespace) -> None:
    time.sleep(_LIFE_S)


def hog() -> None:
    """Take memory, all of it really and at little cost, and keep it."""
    held = [b"x" * (1 << 20) for _ in range(_HOG_MIB)]
    time.sleep(_LIFE_S)
    del held


# ---- All of them


class Misbehaviour(NamedTuple):
    """One way to misbehave.

    Attributes:
        ending: the word of J2 that its match ends with; None if it never comes to a match.
        game: where it matters most; the deed is possible in any.
        deed: what it does in the middle of a match.
        before: what it does in the place of connecting and playing.
        asked: whether the verdict must show a question, and what would have been legal.
        got: whether the verdict must show what came from the bot.
        told: whether it listens to the end, and so must be told what it has done.
        number: whether the deed is done at a question about a number, in games that have some.
        narrow: whether its connection has as little room as can be.
        launched: whether the arena starts it; the others connect by themselves.
    """

    ending: str | None
    game: str = AKQ
    deed: Deed | None = None
    before: Callable[[argparse.Namespace], None] | None = None
    asked: bool = True
    got: bool = False
    told: bool = False
    number: bool = False
    narrow: bool = False
    launched: bool = False


KINDS: dict[str, Misbehaviour] = {
    # what it says
    "illegal": Misbehaviour("illegal", AKQ, illegal, got=True, told=True),
    "as-true": Misbehaviour("illegal", HIGH_LOW, as_true, got=True, told=True, number=True),
    "as-float": Misbehaviour("illegal", POKER, as_float, got=True, told=True, number=True),
    "as-text": Misbehaviour("illegal", BLACKJACK, as_text, got=True, told=True, number=True),
    "as-list": Misbehaviour("illegal", GIN, as_list, got=True, told=True),
    "garbage-bytes": Misbehaviour("malformed", AKQ, garbage_bytes, told=True),
    "garbage-json": Misbehaviour("malformed", GIN, garbage_json, got=True, told=True),
    "huge-frame": Misbehaviour("oversize", AKQ, huge_frame),
    "anothers-match": Misbehaviour("malformed", HIGH_LOW, anothers_match, got=True, told=True),
    "answers-early": Misbehaviour("malformed", AKQ, answers_early, got=True, told=True),
    "flood": Misbehaviour("timeout", BLACKJACK, floods),  # it is not read, and its clock runs
    "flood-of-pings": Misbehaviour("timeout", POKER, floods_with_pings),
    "stale": Misbehaviour("timeout", BLACKJACK, answers_stale),
    "never-reads": Misbehaviour("overflow", GIN, never_reads, narrow=True),
    # how long it takes
    "stall": Misbehaviour("timeout", AKQ, stalls, told=True),
    "drip": Misbehaviour("timeout", GIN, drips, told=True),
    "not-ready": Misbehaviour("absent", HIGH_LOW, before=is_never_ready, asked=False, told=True),
    "drip-handshake": Misbehaviour(None, before=drips_the_handshake),
    "drip-hello": Misbehaviour(None, before=drips_hello),
    # how it goes
    "vanish": Misbehaviour("disconnect", AKQ, crashes),
    "close": Misbehaviour("disconnect", GIN, closes),
    "goodbye": Misbehaviour("disconnect", HIGH_LOW, leaves, told=True),
    "close-1011": Misbehaviour("crash", AKQ, says_it_crashed),
    # what the arena sees of the processes that it has launched
    "crash": Misbehaviour("crash", AKQ, crashes, launched=True),
    "exit": Misbehaviour("crash", GIN, before=exits, asked=False, launched=True),
    "never-starts": Misbehaviour("absent", BLACKJACK, before=sleeps, asked=False, launched=True),
    "hog": Misbehaviour("memory", AKQ, lambda bot, ask: hog(), launched=True),
    "hog-child": Misbehaviour("memory", HIGH_LOW, hogs_memory_in_a_child, launched=True),
    "hog-file": Misbehaviour("memory", BLACKJACK, hogs_memory_in_a_file, launched=True),
    "fork-bomb": Misbehaviour("processes", GIN, bombs, launched=True),
    "spin": Misbehaviour("cpu", POKER, spins, launched=True),
    "sleep": Misbehaviour("timeout", AKQ, lambda bot, ask: time.sleep(_LIFE_S), launched=True),
    # what is no offence
    "come-back": Misbehaviour("completed", AKQ, comes_back, told=True),
    "answer-twice": Misbehaviour("completed", HIGH_LOW, answers_twice, told=True),
}


def main() -> None:
    """Do it: once, or forever with `--again`. It is no fault if the arena closes the connection."""
    parser = argparse.ArgumentParser(description="A bot that misbehaves in one way.")
    parser.add_argument("kind", choices=[*KINDS])
    parser.add_argument("--url", default=os.environ.get("ARENA_URL"))
    parser.add_argument("--token", default=os.environ.get("ARENA_TOKEN"))
    parser.add_argument("--game", required=True)
    parser.add_argument("--name", default=os.environ.get("ARENA_NAME", "rogue"))
    parser.add_argument("--after", type=int, default=2, help="answers before it")
    parser.add_argument("--again", type=float, metavar="S", help="forever, after so many s")
    parser.add_argument("--eager", action="store_true", help="do not step back")
    options = parser.parse_args()
    if options.again is not None and not options.eager:
        step_back()
    while options.again is not None:
        child = os.fork()  # a life of its own: some do not survive their deed
        if child == 0:
            break
        os.waitpid(child, 0)
        time.sleep(options.again)
    live(options)


def step_back() -> None:
    """Run only when nobody else wants the processor."""
    os.nice(19)
    if sys.platform == "linux":
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def live(options: argparse.Namespace) -> None:
    """One life, from the connection to its end."""
    kind = KINDS[options.kind]
    try:
        if kind.before is not None:
            kind.before(options)
            return
        assert kind.deed is not None, "every kind has a deed"
        bot = RogueBot(options, narrow=kind.narrow)
        bot.greet()
        wants_number = kind.number and bot.game in NUMBERS
        ask = bot.play(options.after, number=wants_number)
        if ask is not None:
            kind.deed(bot, ask)
    except ConnectionEnded as why:
        print(json.dumps({"type": "gone", "why": str(why)}), flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["hog"]:
        hog()
    else:
        main()
