"""Bots of authors who have misread the protocol: `python broken.py --way NAME [--game GAME]`.

Unlike those of `rogue.py` they mean no harm, and most of them get through a match or two: `arena
check` has to find each of them. Each way below behaves but for what its words say; `WAYS` has
them by name. The address and the token come from the environment, as for every bot; those of
`LINES` speak over their standard input and output.

The file imports nothing of the arena, like a bot of an author who has only read the protocol. It is
long, as the arena starts single files: the links, a bot that behaves, and the ways in the order of
the steps that find them.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.frames import Frame, Opcode
from websockets.sync.client import connect

__all__ = ["HOARD_MIB", "LINES", "WAYS", "BrokenBot"]

Message = dict[str, Any]

DONE, CRASHED, RESTART, REFUSED = 1000, 1011, 1012, 4001  # close codes
PATIENCE_S = 10.0
HOARD_MIB = 160  # what a hog takes
LATE = 10  # in later rounds some do what they have not done before

# ---- Links


class ConnectionLost(Exception):
    """The connection is gone; `code` says how it was closed, None if it was not."""

    def __init__(self, code: int | None) -> None:
        super().__init__(code)
        self.code = code


class WebSocket:
    """A connection by a library, as most have one."""

    def __init__(self, url: str, max_size: int | None = None) -> None:
        # It is no fault of the bot's if an arena that does much else is late with a pong.
        how: dict[str, Any] = {"compression": None, "ping_interval": None}
        self._websocket = connect(url, max_size=max_size, **how)

    def receive(self) -> str:
        try:
            return str(self._websocket.recv())
        except ConnectionClosed as closed:
            raise ConnectionLost(closed.rcvd.code if closed.rcvd else None) from None

    def send(self, frame: str | bytes) -> None:
        try:
            self._websocket.send(frame)
        except ConnectionClosed as closed:
            raise ConnectionLost(closed.rcvd.code if closed.rcvd else None) from None

    def close(self, code: int = DONE, reason: str = "") -> None:
        self._websocket.close(code, reason)


class HandMade:
    """A connection by somebody who has written a WebSocket in an evening.

    Args:
        url: where to connect to.
        trusts_recv: takes it that a frame is whole in what one `recv` brings.
        trusts_fin: takes every frame for one whole message.
        is_deaf: does not answer pings.
        trusts_letters: takes it that no letter is parted by the end of a frame.
    """

    def __init__(
        self,
        url: str,
        *,
        trusts_recv: bool = False,
        trusts_fin: bool = False,
        is_deaf: bool = False,
        trusts_letters: bool = False,
    ) -> None:
        self._is_deaf = is_deaf
        self._trusts_letters = trusts_letters
        self._trusts_recv, self._trusts_fin = trusts_recv, trusts_fin
        self._chunk = b""
        address = urlsplit(url)
        assert address.hostname is not None, "the arena's address has one"
        self._socket = socket.create_connection((address.hostname, address.port or 80))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        key = base64.b64encode(os.urandom(16)).decode()
        self._socket.sendall(
            f"GET / HTTP/1.1\r\nHost: {address.netloc}\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):  # the arena waits for our hello
            answer += self._some(1)

    def receive(self) -> str:
        text = b""
        while True:
            is_last, opcode, payload = self._frame()
            if opcode == 9 and not self._is_deaf:
                self._write(10, payload)
            elif opcode == 8:
                self._write(8, payload)
                raise ConnectionLost(struct.unpack("!H", payload[:2])[0] if payload else None)
            elif opcode in (0, 1):
                text += payload
                if self._trusts_letters:
                    payload.decode()
                if is_last or self._trusts_fin:
                    return text.decode()

    def send(self, frame: str | bytes) -> None:
        assert isinstance(frame, str), "nobody wrote binary frames that evening"
        self._write(1, frame.encode())

    def close(self) -> None:
        self._socket.close()

    def _frame(self) -> tuple[bool, int, bytes]:
        if not self._trusts_recv:
            return self._parse(self._exactly)
        if not self._chunk:
            self._chunk = self._some(1 << 20)
        return self._parse(self._of_chunk)

    def _parse(self, take: Callable[[int], bytes]) -> tuple[bool, int, bytes]:
        first, size = take(2)
        if size >= 126:
            size = int.from_bytes(take(2 if size == 126 else 8), "big")
        return bool(first & 0x80), first & 0x0F, take(size)

    def _of_chunk(self, size: int) -> bytes:
        """What is there of it: the rest would have come in the same read, would it not."""
        data, self._chunk = self._chunk[:size], self._chunk[size:]
        return data

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += self._some(size - len(data))
        return data

    def _some(self, most: int) -> bytes:
        try:
            data = self._socket.recv(most)
        except OSError:
            data = b""
        if not data:
            raise ConnectionLost(None)
        return data

    def _write(self, opcode: int, payload: bytes) -> None:
        try:
            self._socket.sendall(Frame(Opcode(opcode), payload).serialize(mask=True))
        except OSError:
            raise ConnectionLost(None) from None


class LinePipes:
    """Standard input and output; what flushes after every line, or what does not."""

    def __init__(self, *, flushes: bool = True) -> None:
        self._flushes = flushes

    def receive(self) -> str:
        line = sys.stdin.readline()
        if not line:
            raise ConnectionLost(DONE)
        return line

    def send(self, frame: str | bytes) -> None:
        assert isinstance(frame, str), "lines are text"
        print(frame, flush=self._flushes)

    def close(self) -> None:
        pass


Link = WebSocket | HandMade | LinePipes


# ---- A bot that behaves


class BrokenBot:
    """Plays any legal answer, and keeps to the protocol; the ways below replace one thing each."""

    def __init_subclass__(cls, *, is_way: bool = True) -> None:
        """Make a way of the class, called as it is: `DiesAtOnce` is `dies-at-once`."""
        if is_way:
            name = "".join(f"-{each.lower()}" if each.isupper() else each for each in cls.__name__)
            WAYS[name.removeprefix("-")] = cls

    def __init__(self, game: str) -> None:
        self.game = game
        self.secret: str | None = None
        self.refusal: str | None = None
        self.answers: dict[str, Message] = {}  # the latest of each match

    def main(self) -> None:
        """Play until there is no reason to come back; the exit status says whether all was well."""
        deadline_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline_s:
            try:
                link = self.connect()
                try:
                    code = self.talk(link)
                finally:
                    link.close()
                deadline_s = time.monotonic() + PATIENCE_S
            except (OSError, WebSocketException, ConnectionLost):
                code = None
            if not self.comes_back(code):
                sys.exit(self.status(code))
            time.sleep(0.05)
        sys.exit(1)

    def connect(self) -> Link:
        return WebSocket(os.environ["ARENA_URL"])

    def talk(self, link: Link) -> int | None:
        """From `hello` to the end of the connection; its close code."""
        try:
            link.send(json.dumps(self.hello()))
            while True:
                replies = self.frame(json.loads(link.receive()))
                if replies:
                    link.send(json.dumps(replies if len(replies) > 1 else replies[0]))
        except ConnectionLost as lost:
            return lost.code

    def hello(self) -> Message:
        hello: Message = {
            "type": "hello",
            "protocol": 1,
            "name": os.environ.get("ARENA_NAME", "broken"),
            "games": [self.game],
            "tables": 8,
            "batch": True,
        }
        if token := os.environ.get("ARENA_TOKEN"):
            hello["token"] = token
        if self.secret is not None:
            hello["resume"] = self.secret
        return hello

    def frame(self, frame: Any) -> list[Message]:
        """What is said to one frame."""
        messages = frame if isinstance(frame, list) else [frame]
        return [reply for reply in map(self.take, messages) if reply is not None]

    def take(self, message: Message) -> Message | None:
        """What is said to one message."""
        match message["type"]:
            case "welcome":
                self.secret = message["session"]
            case "match":
                return self.ready(message)
            case "ask":
                return self.ask(message)
            case "over":
                self.over(message)
            case "refused":
                return self.refused(message)
        return None

    def ready(self, match: Message) -> Message | None:
        return ready_of(match, nonce=os.urandom(8).hex())

    def ask(self, ask: Message) -> Message | None:
        latest = self.answers.get(ask["match"])
        if latest is None or latest["ask"] != ask["ask"]:
            latest = self.answer(ask, self.choose(ask["legal"]))
        return latest

    def answer(self, ask: Message, value: Any) -> Message:
        ids = {"match": ask["match"], "ask": ask["ask"]}
        self.answers[ask["match"]] = {"type": "answer", **ids, "value": value}
        return self.answers[ask["match"]]

    def choose(self, legal: Any) -> Any:
        if isinstance(legal, dict):
            return random.randint(legal["min"], legal["max"])
        return random.choice(legal)

    def over(self, over: Message) -> None:
        self.answers.pop(over["match"], None)

    def refused(self, refused: Message) -> Message | None:
        if refused.get("legal") is not None:
            return self.answer(refused, self.choose(refused["legal"]))
        self.refusal = refused["code"]
        return None

    def comes_back(self, code: int | None) -> bool:
        if self.refusal == "session":
            self.refusal = self.secret = None
            self.answers.clear()
            return True
        return self.refusal is None and code in (None, CRASHED, RESTART)

    def status(self, code: int | None) -> int:
        return 0 if code == DONE and self.refusal is None else 1


WAYS: dict[str, type[BrokenBot]] = {"behaves": BrokenBot}
"""All of them, by name."""


def way(name: str, base: type[BrokenBot] = BrokenBot, **methods: Callable[..., Any]) -> None:
    """A bot that behaves but for these methods."""
    type(name, (base,), methods)


def without(field: str, message: Message) -> Message:
    return {name: value for name, value in message.items() if name != field}


def ready_of(match: Message, nonce: str) -> Message:
    return {"type": "ready", "match": match["match"], "nonce": nonce}


# ---- Starting, and hello


class DiesAtOnce(BrokenBot):
    """Has a mistake in its first line."""

    def main(self) -> None:
        raise ImportError("no module named 'numpy'")


class SaysNoHello(BrokenBot):
    """Waits for the arena to begin."""

    def talk(self, link: Link) -> int | None:
        try:
            while True:
                link.receive()
        except ConnectionLost as lost:
            return lost.code


# Is busy with something else, for ever.
way("never-connects", main=lambda bot: time.sleep(3600))
# Begins with what comes later.
way("speaks-of-other-things", hello=lambda bot: {"type": "ready", "match": "mine", "nonce": "n"})
# Has a newer protocol than there is.
way("version-two", hello=lambda bot: {**BrokenBot.hello(bot), "protocol": 2})
# Tells in its hello what nobody has asked for.
way("makes-up-fields", hello=lambda bot: {**BrokenBot.hello(bot), "language": "python"})
# Calls the game by its name on the box.
way("makes-up-games", hello=lambda bot: {**BrokenBot.hello(bot), "games": ["Poker"]})
# Does not say the token that it was given.
way("forgets-its-token", hello=lambda bot: without("token", BrokenBot.hello(bot)))
# Takes a `match` for mere news.
way("says-no-ready", ready=lambda bot, match: None)
# Has no nonce to offer.
way("empty-nonce", ready=lambda bot, match: ready_of(match, nonce=""))

# ---- Frames and numbers


class Floats(BrokenBot):
    """Has a language with one kind of number, and writes 4 as 4.0."""

    def choose(self, legal: Any) -> Any:
        value = super().choose(legal)
        return float(value) if isinstance(value, int) else value


class BinaryFrames(BrokenBot):
    """Sends JSON in binary frames, where msgpack belongs."""

    def connect(self) -> Link:
        link = super().connect()
        send = link.send
        link.send = lambda frame: send(str(frame).encode())  # type: ignore[method-assign]
        return link


class TripsOverFields(BrokenBot):
    """Knows the fields of version 1 and no other."""

    KNOWN = frozenset(
        "type match ask kind round card upcard hand cash ante bankroll total soft discard drawn "
        "dealer_card bids legal news bank_ms decision_ms".split()
    )

    def ask(self, ask: Message) -> Message | None:
        if unknown := ask.keys() - self.KNOWN:
            raise TypeError(f"unexpected keyword argument {min(unknown)!r}")
        return super().ask(ask)


class NameTwice(BrokenBot):
    """Takes the bytes of its name for letters, and encodes those."""

    def hello(self) -> Message:
        hello = super().hello()
        return {**hello, "name": hello["name"].encode().decode("latin-1")}


class Orderly(BrokenBot, is_way=False):
    """Closes with the code for a crash when it fails, and says why; subclasses fail."""

    def talk(self, link: Link) -> int | None:
        try:
            return super().talk(link)
        except TypeError as error:
            assert isinstance(link, WebSocket), "it has a library"
            link.close(CRASHED, str(error))
            sys.exit(1)


class SaysWhy(Orderly, TripsOverFields):
    """Knows no other fields, and says so."""


class TripsOverArrays(Orderly):
    """Says that it reads arrays, and takes each for a message."""

    def frame(self, frame: Any) -> list[Message]:
        if isinstance(frame, list):
            raise TypeError("list indices must be integers")
        return super().frame(frame)


class OneTable(BrokenBot):
    """Says that it plays eight matches at once, and remembers one."""

    match: str = ""

    def ready(self, match: Message) -> Message | None:
        self.match = match["match"]
        return super().ready(match)

    def answer(self, ask: Message, value: Any) -> Message:
        return super().answer({**ask, "match": self.match}, value)


# Writes every answer as a text.
way("strings", choose=lambda bot, legal: str(BrokenBot.choose(bot, legal)))
# Says that it reads arrays, and answers the first message of each.
way(
    "reads-one-of-a-batch",
    frame=lambda bot, frame: BrokenBot.frame(bot, frame[0] if isinstance(frame, list) else frame),
)
# Says that it reads arrays, and knows none of them.
way(
    "reads-no-arrays",
    frame=lambda bot, frame: [] if isinstance(frame, list) else BrokenBot.frame(bot, frame),
)
# Has a library that takes no message of more than 100 KiB.
way("short-messages", connect=lambda bot: WebSocket(os.environ["ARENA_URL"], max_size=100 * 1024))
# Takes every frame for a whole message, also one of several parts.
way("whole-frames", connect=lambda bot: HandMade(os.environ["ARENA_URL"], trusts_fin=True))
# Makes a text of every part of a message, before it puts them together.
way("whole-letters", connect=lambda bot: HandMade(os.environ["ARENA_URL"], trusts_letters=True))
# Takes it that every read brings whole frames, as it is on a fast link.
way(
    "whole-reads",
    connect=lambda bot: HandMade(os.environ["ARENA_URL"], trusts_recv=True),
    hello=lambda bot: {**BrokenBot.hello(bot), "batch": False},  # a long array would not be whole
)
# Does not answer pings: there was no evening left for them.
way("deaf", connect=lambda bot: HandMade(os.environ["ARENA_URL"], is_deaf=True))

# ---- Playing


class OneForTrue(BrokenBot):
    """Has a language without truth values."""

    def choose(self, legal: Any) -> Any:
        value = super().choose(legal)
        if isinstance(value, dict):
            value = {**value, "knock": int(value["knock"])}
        return value


class CountsAsks(BrokenBot):
    """Makes up the ids of questions instead of reading them."""

    def __init__(self, game: str) -> None:
        super().__init__(game)
        self.count = 0

    def answer(self, ask: Message, value: Any) -> Message:
        self.count += 1
        return super().answer({**ask, "ask": str(self.count)}, value)


class Slow(BrokenBot):
    """Thinks for too long about every question."""

    def choose(self, legal: Any) -> Any:
        until_s = time.process_time() + 1.5
        while time.process_time() < until_s:
            pass
        return super().choose(legal)


class Dozes(BrokenBot):
    """Sleeps once for longer than it may compute: no offence of a launched bot."""

    has_slept = False

    def choose(self, legal: Any) -> Any:
        if not self.has_slept:
            self.has_slept = True
            time.sleep(1.5)
        return super().choose(legal)


class Hog(BrokenBot):
    """Keeps everything that it has ever seen, and more."""

    hoard = b""

    def ask(self, ask: Message) -> Message | None:
        if ask.get("round", 0) > LATE and not self.hoard:
            self.hoard = b"x" * (HOARD_MIB << 20)
            time.sleep(0.5)  # it takes a while
        return super().ask(ask)


# Answers with the first of the legal answers, as if they always were a list.
way("first-of-a-list", choose=lambda bot, legal: legal[0])
# Takes the end of a range for the first number that is not legal.
way(
    "one-too-many",
    choose=lambda bot, legal: (
        legal["max"] + 1 if isinstance(legal, dict) else BrokenBot.choose(bot, legal)
    ),
)
# Answers by the game that it knows from home.
way(
    "made-up-answer",
    choose=lambda bot, legal: "raise" if isinstance(legal, list) else BrokenBot.choose(bot, legal),
)
# Melds two cards.
way(
    "made-up-melds",
    choose=lambda bot, legal: [["As", "2s"]] if legal == [None] else BrokenBot.choose(bot, legal),
)
# Tells with each answer how sure it is.
way("explains", answer=lambda bot, *asked: {**BrokenBot.answer(bot, *asked), "confidence": 0.9})
# Notes beside every answer all that it has thought.
way("verbose", answer=lambda bot, *asked: {**BrokenBot.answer(bot, *asked), "note": "well, " * 400})
# Has had enough after some rounds.
way(
    "walks-out",
    ask=lambda bot, ask: sys.exit(0) if ask.get("round", 0) > LATE else BrokenBot.ask(bot, ask),
)
# Has a mistake in its strategy, and no message for it.
way(
    "raises",
    ask=lambda bot, ask: BrokenBot.ask(
        bot, {**ask, "odds": 1 / max(0, LATE - ask.get("round", 0))}
    ),
)

# ---- What comes again, and what is lost


class ReadyOnce(BrokenBot):
    """Says `ready` to every match once, also when it is sent again."""

    def __init__(self, game: str) -> None:
        super().__init__(game)
        self.known: set[str] = set()

    def ready(self, match: Message) -> Message | None:
        if match["match"] in self.known:
            return None
        self.known.add(match["match"])
        return super().ready(match)


class HangsAtALoss(BrokenBot):
    """Has a library that misses the end of a connection, sometimes."""

    losses = 0

    def comes_back(self, code: int | None) -> bool:
        self.losses += code is None
        if self.losses == 3:
            time.sleep(3600)
        return super().comes_back(code)


class FirstSession(BrokenBot):
    """Comes back with the first session that it was ever given, instead of the latest."""

    def take(self, message: Message) -> Message | None:
        first = self.secret
        reply = super().take(message)
        self.secret = first or self.secret
        return reply


# Answers every question once, also when it is asked again.
way(
    "silent-on-repeat",
    ask=lambda bot, ask: (
        None
        if bot.answers.get(ask["match"], {}).get("ask") == ask["ask"]
        else BrokenBot.ask(bot, ask)
    ),
)
# Ends when its connection is lost.
way("stays-away", comes_back=lambda bot, code: bot.refusal is None and bot.secret is None)
# Comes back without saying who it was.
way("a-stranger", hello=lambda bot: without("resume", BrokenBot.hello(bot)))
# Takes a new name for every connection.
way(
    "another-name", hello=lambda bot: {**BrokenBot.hello(bot), "name": f"bot-{os.urandom(4).hex()}"}
)
# Ends when its session is not known any more.
way(
    "gives-up", comes_back=lambda bot, code: bot.refusal is None and BrokenBot.comes_back(bot, code)
)
# Says the session that is not known any more again and again.
way(
    "insists",
    comes_back=lambda bot, code: bot.refusal == "session" or BrokenBot.comes_back(bot, code),
)

# ---- Refusals, and the end


class Hammers(BrokenBot):
    """Comes back at once when it was refused, for ever."""

    def comes_back(self, code: int | None) -> bool:
        is_unwanted = code == REFUSED and self.refusal != "session"
        self.refusal = None if is_unwanted else self.refusal
        return is_unwanted or super().comes_back(code)


class NeverWaits(BrokenBot):
    """Ends if nothing answers at the address."""

    def connect(self) -> Link:
        try:
            return super().connect()
        except ConnectionRefusedError as error:
            sys.exit(f"no arena: {error}")


# Thinks of a refused answer no more.
way(
    "ignores-refusals",
    refused=lambda bot, refused: (
        None if refused.get("legal") is not None else BrokenBot.refused(bot, refused)
    ),
)
# Repeats the answer that was refused.
way(
    "stubborn",
    refused=lambda bot, refused: (
        bot.answers.get(refused.get("match") or "") or BrokenBot.refused(bot, refused)
    ),
)
# Ends after its first match.
way("leaves-at-over", over=lambda bot, over: sys.exit(0))
# Does not end when the arena has closed.
way(
    "stays-after-close",
    status=lambda bot, code: time.sleep(3600) if code == DONE else BrokenBot.status(bot, code),
)
# Ends with an error when the arena closes, as if that was one.
way("fails-at-close", status=lambda bot, code: 1)
# Ends as if all was well when it was refused.
way("shrugs-at-refusal", status=lambda bot, code: 0)

# ---- In lines


class BehavesInLines(BrokenBot):
    """The same bot over its standard input and output."""

    def connect(self) -> Link:
        return LinePipes()


class Chatters(BehavesInLines):
    """Prints for people where the arena reads."""

    def ask(self, ask: Message) -> Message | None:
        print("thinking about", ask["kind"])
        return super().ask(ask)


# Does not end when its input does.
way("stays-at-end", BehavesInLines, comes_back=lambda bot, code: time.sleep(3600))
# Does not flush its lines.
way("holds-back", BehavesInLines, connect=lambda bot: LinePipes(flushes=False))

LINES = frozenset(name for name, bot in WAYS.items() if issubclass(bot, BehavesInLines))
"""Those that speak in lines."""


def main() -> None:
    """Be broken in the way that the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--way", choices=WAYS, required=True)
    parser.add_argument("--game", default="ace_king_queen")
    arguments = parser.parse_args()
    WAYS[arguments.way](arguments.game).main()


if __name__ == "__main__":
    main()
