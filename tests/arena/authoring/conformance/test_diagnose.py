"""Which hint fits what a bot has said, or how it left; and which connections are its own."""

from __future__ import annotations

from typing import Any, cast

import pytest

from arena.authoring.conformance import Hint, StepFailed
from arena.authoring.conformance.bot import BotUnderTest, _text
from arena.authoring.conformance.diagnose import (
    blame_of_answer,
    blame_of_frame,
    in_a_line,
    is_garbled,
    last_lines,
    messages_of,
)
from arena.authoring.conformance.wire import Line, Opened, Perturbation
from arena.engine.verdict import Finding
from arena.sandbox.command import Program
from protocol.ace_king_queen import Open
from protocol.codec import Encoding, decode_from_bot
from protocol.errors import ArenaError, Oversize, ProtocolError
from protocol.gin_rummy import Melds, Turn, TurnAnswer
from protocol.high_low import Bid
from protocol.messages import Ending, Limits, Mechanism, Over, Termination
from protocol.three_card_poker import Ante
from protocol.vocabulary import Question, Range

HAND = tuple("As 2s 3s 4s 5s 6s 7s 8s 9s Ts Js".split())
TURN = Turn("Js", HAND, (TurnAnswer("As"), TurnAnswer("Js", True)))
BID = Bid("As", "2s", (None, None, None, None), ("quit", 4, 6))
MELDS = Melds(HAND[:10])
ANTE = Ante(1, 100, Range(1, 50))


def blame(frame: str, *, is_stdio: bool = False) -> Hint:
    with pytest.raises(ProtocolError) as raised:
        decode_from_bot(frame.encode(), Encoding.JSON)
    return blame_of_frame(raised.value, frame.encode(), is_stdio=is_stdio)


@pytest.mark.parametrize(
    ("frame", "hint"),
    [
        ('{"type":"hello","protocol":1.0,"name":"a","games":["x"]}', Hint.NUMBERS),
        ('{"type":"hello","protocol":1,"name":"a","games":[]}', Hint.GAMES),
        ('{"type":"ready","match":"m","nonce":"n","mood":1}', Hint.UNKNOWN_TO_US),
        ('{"type":"ready","match":"m"}', Hint.NO_MESSAGE),
        ('{"type":"ready","match":"m","nonce":7}', Hint.NO_MESSAGE),
        ('{"type":"reday"}', Hint.NO_MESSAGE),
        ("thinking", Hint.NO_MESSAGE),
    ],
)
def test_a_frame_that_cannot_be_read(frame: str, hint: Hint) -> None:
    assert blame(frame) is hint


def test_a_line_that_is_no_message_was_meant_for_people() -> None:
    assert blame("thinking about a bet", is_stdio=True) is Hint.PRINTS
    assert blame("4", is_stdio=True) is Hint.PRINTS
    assert blame('{"type":"ready"}', is_stdio=True) is Hint.NO_MESSAGE


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
        (Open(1, "K"), "raise", Hint.ILLEGAL),
        (Open(1, "K"), None, Hint.ILLEGAL),
        (Open(1, "K"), ["bet"], Hint.ILLEGAL),
        (Melds(HAND[:10]), "null", Hint.STRINGS),
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


def test_of_what_a_program_wrote_the_last_five_lines_are_shown_as_they_are() -> None:
    assert last_lines("1\n2\n\n3  \n\t4\n5\n6\n\n") == "2\n3\n\t4\n5\n6"
    assert last_lines(" \n") == ""


def test_a_message_is_shown_as_it_came() -> None:
    frame = b'[ {"a": 1.0},{"b":[2]} ]'

    assert [*messages_of(frame, 2)] == [b'{"a": 1.0}', b'{"b":[2]}']
    assert [*messages_of(frame[2:12], 1)] == [b'{"a": 1.0}']


TWICE = "Čapek-李".encode()


@pytest.mark.parametrize(
    ("said", "is_garbled_in_utf8", "is_garbled_elsewhere"),
    [
        (TWICE.decode("latin-1"), True, True),
        (TWICE.decode("cp1252", errors="ignore"), True, True),
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


def test_melds_say_which_rule_they_break() -> None:
    assert MELDS.fault([["As", "2s"]]) == ("As 2s: a meld has three cards or more (G2)")
    assert BID.fault([["As", "2s"]]) is None


def test_what_a_stranger_sent_is_shown_in_a_line() -> None:
    assert in_a_line(b"a\nb\xff") == "a\ufffdb\ufffd"
    assert len(in_a_line(b"x" * 1000)) == 300


OVER = Over("m", (), (0,), Termination(Ending.VOID, None, ""), None)


class ClosedConnection:
    """A connection that the bot has closed."""

    is_open = False
    encoding = Encoding.JSON
    close_reason = ""

    def __init__(self, code: int | None) -> None:
        self.close_code = code

    async def deliver(self, *args: object) -> None:
        """Nobody reads it."""


def ended(status: int, stderr: str = "") -> Finding:
    return Finding(
        kind=Ending.CRASH,
        text=f"exit status {status}",
        mechanism=Mechanism.WIRE,
        exit_status=status,
        stderr=stderr,
    )


def started() -> BotUnderTest:
    return BotUnderTest(Program(("bot",)), "ann", Limits(grace_ms=50))


async def hint_of(
    code: int | None, status: int | None, blame: Hint | None, *, is_mute: bool = True
) -> Hint:
    """Why a bot has left that was told `over` last."""
    bot = started() if status is not None else BotUnderTest(None, "ann", Limits(grace_ms=50))
    bot._wire = cast(Line, ClosedConnection(code))
    bot._is_mute = bot._is_idle = is_mute
    finding = None if status is None else ended(status)
    with bot.perturbed(Perturbation(blame)):
        return (await bot._departed("more", Hint.LEFT, finding)).hint


@pytest.mark.parametrize(
    ("code", "status", "blame", "hint"),
    [
        (1000, None, None, Hint.LEAVES_AT_OVER),
        (1001, None, None, Hint.LEAVES_AT_OVER),
        (None, 0, None, Hint.LEAVES_AT_OVER),
        (1000, 0, Hint.FRAGMENTS, Hint.LEAVES_AT_OVER),
        (1007, None, None, Hint.LEFT),
        (1007, None, Hint.FRAGMENTS, Hint.FRAGMENTS),
        (1002, 0, Hint.PIECES, Hint.PIECES),
        (None, 1, None, Hint.CRASHED),
        (None, 1, Hint.FRAGMENTS, Hint.FRAGMENTS),
    ],
)
async def test_only_who_leaves_in_order_has_taken_over_for_the_end(
    code: int | None, status: int | None, blame: Hint | None, hint: Hint
) -> None:
    assert await hint_of(code, status, blame) is hint


async def test_who_has_spoken_since_over_has_not() -> None:
    assert await hint_of(1000, None, None, is_mute=False) is Hint.LEFT


async def test_a_crash_that_is_known_is_no_fault_of_the_step() -> None:
    bot = started()

    def crash(blame: Hint | None, stderr: str) -> Hint:
        with bot.perturbed(Perturbation(blame)):
            return bot.failure("it", "exit status 1", Hint.CRASHED, stderr).hint

    assert crash(Hint.STRICT, "KeyError: 'a'") is Hint.STRICT
    assert crash(Hint.FRAGMENTS, "KeyError: 'a'") is Hint.CRASHED
    assert crash(Hint.FRAGMENTS, "KeyError: 'b'") is Hint.FRAGMENTS


async def test_what_a_step_has_provoked_first_is_its_own() -> None:
    bot, hints = started(), []
    for blame in (Hint.REPEATED, Hint.FORGETS, None, Hint.REFUSAL):
        with bot.perturbed(Perturbation(blame)):
            hints.append(bot.failure("it", "nothing", Hint.SILENT).hint)

    assert hints == [Hint.REPEATED, Hint.FORGETS, Hint.SILENT, Hint.SILENT]


async def test_a_bot_that_was_started_keeps_to_one_connection() -> None:
    with pytest.raises(StepFailed) as raised:
        await started()._take(Opened(cast(Line, ClosedConnection(None))), "an answer")

    assert raised.value.hint is Hint.ONE_CONNECTION


async def test_a_command_that_cannot_be_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def start(*args: object, **named: object) -> None:
        raise ArenaError("no such interpreter")

    monkeypatch.setattr("arena.sandbox.launcher.Launcher.start", start)
    with pytest.raises(StepFailed) as raised:
        await started().launch()

    assert (raised.value.hint, raised.value.came) == (Hint.NOT_STARTED, "no such interpreter")


@pytest.mark.parametrize("deep", [2_000, 100_000])
def test_a_frame_that_is_nested_too_deeply_is_shown_as_it_is(deep: int) -> None:
    frame = b"\x91" * deep + b"\xc0"

    assert _text(frame, Encoding.MSGPACK) == frame
