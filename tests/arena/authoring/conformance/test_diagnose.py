"""Which hint fits what a bot has said, or how it left; and which connections are its own."""

from __future__ import annotations

from typing import Any, cast

import pytest

from arena.authoring.conformance import Hint, StepFailed
from arena.authoring.conformance.bot import BotUnderTest
from arena.authoring.conformance.diagnose import (
    blame_of_answer,
    blame_of_frame,
    blame_of_process,
    in_a_line,
    is_garbled,
    last_lines,
    messages_of,
    readable,
)
from arena.authoring.conformance.wire import (
    Disconnected,
    FrameReceived,
    Line,
    Opened,
    Perturbation,
    ProcessEnded,
)
from arena.games.verdict import Finding
from arena.sandbox.command import Program
from protocol.ace_king_queen import Open
from protocol.codec import Encoding, decode_from_bot, encode
from protocol.errors import ArenaError, Oversize, ProtocolError
from protocol.gin_rummy import Melds, Turn, TurnAnswer
from protocol.high_low import Bid
from protocol.messages import Ending, Hello, Limits, Match, Mechanism, Over, Termination
from protocol.three_card_poker import Ante
from protocol.vocabulary import Question, Range

HAND = tuple("As 2s 3s 4s 5s 6s 7s 8s 9s Ts Js".split())
TURN = Turn("Js", HAND, (TurnAnswer("As"), TurnAnswer("Js", True)))
BID = Bid("As", "2s", (None, None, None, None), ("quit", 4, 6))
MELDS = Melds(HAND[:10])
ANTE = Ante(1, 100, Range(1, 50))


@pytest.mark.parametrize(
    ("frame", "hint", "in_lines"),
    [
        ('{"type":"hello","protocol":1.0,"name":"a","games":["x"]}', Hint.NUMBERS, None),
        ('{"type":"hello","protocol":1,"name":"a","games":[]}', Hint.GAMES, None),
        ('{"type":"ready","match":"m","nonce":"n","mood":1}', Hint.UNKNOWN_TO_US, None),
        ('{"type":"ready","match":"m"}', Hint.NO_MESSAGE, None),
        ('{"type":"ready","match":"m","nonce":7}', Hint.NO_MESSAGE, None),
        ('{"type":"reday"}', Hint.NO_MESSAGE, None),
        # A line that is no message was meant for people.
        ("thinking", Hint.NO_MESSAGE, Hint.PRINTS),
        ("4", Hint.NO_MESSAGE, Hint.PRINTS),
    ],
)
def test_a_frame_that_cannot_be_read(frame: str, hint: Hint, in_lines: Hint | None) -> None:
    with pytest.raises(ProtocolError) as raised:
        decode_from_bot(frame.encode(), Encoding.JSON)

    assert blame_of_frame(raised.value, frame.encode(), is_stdio=False) is hint
    assert blame_of_frame(raised.value, frame.encode(), is_stdio=True) is (in_lines or hint)


def test_a_frame_that_is_too_large() -> None:
    assert blame_of_frame(Oversize("too large"), b"{", is_stdio=False) is Hint.OVERSIZE


@pytest.mark.parametrize(
    ("question", "value", "hint"),
    [
        (BID, 4.0, Hint.NUMBERS),
        (ANTE, 7.0, Hint.NUMBERS),
        (ANTE, 7.5, Hint.ILLEGAL),
        (BID, "4", Hint.STRINGS),
        (ANTE, "7", Hint.STRINGS),
        (ANTE, "7.0", Hint.STRINGS),
        (ANTE, True, Hint.STRINGS),
        (ANTE, 51, Hint.ILLEGAL),
        (BID, True, Hint.ILLEGAL),
        (BID, "5", Hint.ILLEGAL),
        (BID, "pass", Hint.ILLEGAL),
        (BID, [["As", "2s"]], Hint.ILLEGAL),
        (Open(1, "K"), "raise", Hint.ILLEGAL),
        (Open(1, "K"), None, Hint.ILLEGAL),
        (Open(1, "K"), ["bet"], Hint.ILLEGAL),
        (MELDS, "null", Hint.STRINGS),
        (TURN, {"discard": "Js", "knock": "true", "melds": None}, Hint.STRINGS),
        (TURN, {"discard": "As", "knock": 0}, Hint.STRINGS),
        (TURN, {"discard": "As", "melds": "null"}, Hint.STRINGS),
        (TURN, {"discard": "Kd", "knock": False}, Hint.ILLEGAL),
        (TURN, '{"discard":"As"}', Hint.STRINGS),
        (TURN, "As", Hint.ILLEGAL),
        (TURN, {"discard": "Js", "knock": 1, "melds": None}, Hint.STRINGS),
        (TURN, {"discard": "Js", "knock": True, "melds": {}}, Hint.FAULT),
        (MELDS, [["As", "2s"]], Hint.FAULT),
    ],
)
def test_an_answer_that_is_not_legal(question: Question[Any], value: object, hint: Hint) -> None:
    assert blame_of_answer(question, value) is hint


@pytest.mark.parametrize(
    ("said", "is_garbled_in_utf8", "is_garbled_elsewhere"),
    [
        ("Čapek-李".encode().decode("latin-1"), True, True),
        ("Čapek-李".encode().decode("cp1252", errors="ignore"), True, True),
        ("apek-", True, False),  # has lost letters
        ("?apek-?", True, False),  # could not be read where it could be read
        ("\ufffd\ufffdapek-\ufffd", True, False),
        # A name of its own is as good as the one that it was given.
        *[(name, False, False) for name in ("Čapek-李", "ann", "Ďábel", "Capek-Li")],
    ],
)
def test_a_name_that_was_encoded_twice_or_has_lost_letters(
    said: str, is_garbled_in_utf8: bool, is_garbled_elsewhere: bool
) -> None:
    assert is_garbled(said, "Čapek-李", is_utf8=True) is is_garbled_in_utf8
    assert is_garbled(said, "Čapek-李", is_utf8=False) is is_garbled_elsewhere


def test_what_came_is_shown_in_a_line_and_as_it_came() -> None:
    frame = b'[ {"a": 1.0},{"b":[2]} ]'

    assert [*messages_of(frame, 2)] == [b'{"a": 1.0}', b'{"b":[2]}']
    assert [*messages_of(frame[2:12], 1)] == [b'{"a": 1.0}']
    assert in_a_line(b"a\nb\xff") == "a\ufffdb\ufffd"
    assert len(in_a_line(b"x" * 1000)) == 300
    for deep in (2_000, 100_000):  # too deeply nested for anybody
        nested = b"\x91" * deep + b"\xc0"
        assert readable(nested, Encoding.MSGPACK) == nested


# ---- How a bot left


def ended(status: int, stderr: str = "") -> Finding:
    said = {"kind": Ending.CRASH, "text": f"exit status {status}", "mechanism": Mechanism.WIRE}
    return Finding(**said, exit_status=status, stderr=stderr)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("stderr", "status", "hint", "said"),
    [
        ("1\n2\n\n3  \n\t4\n5\n6\n\n", 1, Hint.DIED, "2\n3\n\t4\n5\n6"),  # the last five lines
        (" \n", 1, Hint.DIED, ""),
        ("arena: bot.py cannot be run: SyntaxError: … (bot.py, line 5)", 2, Hint.NOT_LOADED, None),
        ("arena: there is no arena", 1, Hint.DIED, None),
        ("usage: bot", 2, Hint.DIED, None),
    ],
)
def test_a_program_that_ends_before_it_connects(
    stderr: str, status: int, hint: Hint, said: str | None
) -> None:
    shown = blame_of_process(ended(status, stderr), Hint.DIED)

    assert shown == (f"its process: exit status {status}", hint, stderr if said is None else said)
    assert last_lines(stderr) == shown[2]


class ClosedConnection:
    """A connection that the bot has closed."""

    is_open = False
    encoding = Encoding.JSON
    close_reason = ""

    def __init__(self, code: int | None) -> None:
        self.close_code = code

    async def deliver(self, *args: object) -> None:
        """Nobody reads it."""

    def hello_received(self) -> None:
        """It is closed already."""


OVER = Over("m", (), (0,), Termination(Ending.VOID, None, ""), None)
MATCH = Match("n", "ace_king_queen", 0, ("ann", "ben"), {"hands": 6}, Limits(), "0" * 64)


@pytest.mark.parametrize(
    ("code", "status", "blame", "said", "hint"),
    [
        (1000, None, None, [OVER], Hint.LEAVES_AT_OVER),
        (1001, None, None, [OVER], Hint.LEAVES_AT_OVER),
        (None, 0, None, [OVER], Hint.LEAVES_AT_OVER),
        (1000, 0, Hint.FRAGMENTS, [OVER], Hint.LEAVES_AT_OVER),
        (1000, 0, Hint.FRAGMENTS, [OVER, MATCH], Hint.FRAGMENTS),
        (1000, None, None, [], Hint.LEFT),  # it has spoken since
        (1007, None, None, [OVER], Hint.LEFT),
        (1007, None, Hint.FRAGMENTS, [OVER], Hint.FRAGMENTS),
        (1002, 0, Hint.PIECES, [OVER], Hint.PIECES),
        (None, 1, None, [OVER], Hint.CRASHED),
        (None, 1, Hint.FRAGMENTS, [OVER], Hint.FRAGMENTS),
    ],
)
async def test_only_who_leaves_in_order_has_taken_over_for_the_end(
    code: int | None, status: int | None, blame: Hint | None, said: list[Any], hint: Hint
) -> None:
    bot = BotUnderTest(None if status is None else Program(("bot",)), "ann", Limits(grace_ms=50))
    wire, events = cast(Line, ClosedConnection(code)), bot.endpoint.events
    hello = encode(Hello(1, "ann", ("ace_king_queen",)), Encoding.JSON)
    for event in (Opened(wire), FrameReceived(wire, hello, Encoding.JSON, 0.0)):
        events.put_nowait(event)
    await bot.connect("it connects", Hint.NOT_CONNECTED, 50)
    await bot.meet()
    await bot.say(*said)
    events.put_nowait(Disconnected(wire) if status is None else ProcessEnded(ended(status)))

    with bot.perturbed(Perturbation(blame)), pytest.raises(StepFailed) as raised:
        await bot.quiet(1)
    assert raised.value.hint is hint


def started() -> BotUnderTest:
    return BotUnderTest(Program(("bot",)), "ann", Limits(grace_ms=50))


@pytest.mark.parametrize(
    ("ways", "hints"),
    [
        # A crash that is known is no fault of the step.
        (
            [
                (Hint.STRICT, Hint.CRASHED, "KeyError: 'a'"),
                (Hint.FRAGMENTS, Hint.CRASHED, "KeyError: 'a'"),
                (Hint.FRAGMENTS, Hint.CRASHED, "KeyError: 'b'"),
            ],
            [Hint.STRICT, Hint.CRASHED, Hint.FRAGMENTS],
        ),
        # What a step has provoked first is its own.
        (
            [(blame, Hint.SILENT, "") for blame in (Hint.REPEATED, Hint.FORGETS, None)]
            + [(Hint.REFUSAL, Hint.SILENT, "")],
            [Hint.REPEATED, Hint.FORGETS, Hint.SILENT, Hint.SILENT],
        ),
    ],
)
async def test_a_fault_that_is_known_has_its_usual_hint(
    ways: list[tuple[Hint | None, Hint, str]], hints: list[Hint]
) -> None:
    bot, found = started(), []
    for blame, hint, stderr in ways:
        with bot.perturbed(Perturbation(blame)):
            found.append(bot.failure("it", "nothing", hint, stderr).hint)

    assert found == hints


async def test_a_bot_that_was_started_keeps_to_one_connection() -> None:
    bot = started()
    bot.endpoint.opened(cast(Line, ClosedConnection(None)))
    with pytest.raises(StepFailed) as raised:
        await bot.quiet(1)

    assert raised.value.hint is Hint.ONE_CONNECTION


async def test_a_command_that_cannot_be_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def start(*args: object, **named: object) -> None:
        raise ArenaError("no such interpreter")

    monkeypatch.setattr("arena.sandbox.launcher.Launcher.start", start)
    with pytest.raises(StepFailed) as raised:
        await started().launch()

    assert (raised.value.hint, raised.value.came) == (Hint.NOT_STARTED, "no such interpreter")
