"""Which hint fits what a bot has said."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from arena.authoring.conformance import Hint
from arena.authoring.conformance.diagnose import (
    blame_of_answer,
    blame_of_frame,
    blame_of_hello,
    blame_of_process,
    blame_of_turn,
    in_a_line,
    is_garbled,
    last_lines,
    messages_of,
)
from arena.engine.verdict import Finding
from protocol.ace_king_queen import Open
from protocol.codec import Encoding, decode_from_bot
from protocol.errors import Oversize, ProtocolError
from protocol.gin_rummy import Melds, Turn, TurnAnswer
from protocol.high_low import Bid
from protocol.messages import Answer, Ending, Hello, Mechanism, Ready
from protocol.three_card_poker import Ante
from protocol.vocabulary import Question, Range

HELLO = Hello(1, "ann", ("blackjack",), token="word")
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
    ("changes", "hint"),
    [
        ({"protocol": 2}, Hint.VERSION),
        ({"games": ("blackjack", "bridge")}, Hint.GAMES),
        ({"token": None}, Hint.TOKEN),
        ({"token": "another"}, Hint.TOKEN),
        ({"name": "ben"}, Hint.SAME_NAME),
    ],
)
def test_a_hello_that_an_arena_would_not_accept(changes: dict[str, Any], hint: Hint) -> None:
    hello = msgspec.structs.replace(HELLO, **changes)
    wrong = blame_of_hello(hello, token="word", before=HELLO)

    assert wrong is not None
    assert wrong[1] is hint


def test_a_hello_that_is_fine() -> None:
    assert blame_of_hello(HELLO, token="word", before=HELLO) is None
    assert blame_of_hello(HELLO, token=None, before=None) is None


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


def test_a_message_out_of_turn() -> None:
    assert blame_of_turn(Answer("m", "m:9", "bet")) is Hint.WRONG_ASK
    assert blame_of_turn(Ready("m", "n")) is Hint.OUT_OF_TURN


def test_a_process_that_has_ended() -> None:
    finding = Finding(
        kind=Ending.CRASH,
        text="crashed: exit status 1",
        mechanism=Mechanism.EXIT,
        stderr="Traceback\nKeyError: 'Ks'\n",
    )

    told, hint, stderr = blame_of_process(finding)

    assert hint is Hint.CRASHED
    assert told == "its process: crashed: exit status 1"
    assert stderr == "Traceback\nKeyError: 'Ks'"


@pytest.mark.parametrize(
    ("kind", "hint"), [(Ending.MEMORY, Hint.MEMORY), (Ending.PROCESSES, Hint.PROCESSES)]
)
def test_a_process_that_held_too_much(kind: Ending, hint: Hint) -> None:
    finding = Finding(kind=kind, text="too much", mechanism=Mechanism.SAMPLED)

    blame = blame_of_process(finding, Hint.STAYS)

    assert blame == ("its process: too much", hint, "")


def test_of_what_a_program_wrote_the_last_five_lines_are_shown_as_they_are() -> None:
    assert last_lines("1\n2\n\n3  \n\t4\n5\n6\n\n") == "2\n3\n\t4\n5\n6"
    assert last_lines(" \n") == ""


def test_a_message_is_shown_as_it_came() -> None:
    frame = b'[ {"a": 1.0},{"b":[2]} ]'

    assert [*messages_of(frame, 2)] == [b'{"a": 1.0}', b'{"b":[2]}']
    assert [*messages_of(frame[2:12], 1)] == [b'{"a": 1.0}']


@pytest.mark.parametrize(
    "said",
    [
        "Čapek-李".encode().decode("latin-1"),
        "Čapek-李".encode().decode("cp1252", errors="ignore"),
        "apek-",
    ],
)
@pytest.mark.parametrize("is_utf8", [True, False])
def test_a_name_that_was_encoded_twice_or_has_lost_letters(said: str, is_utf8: bool) -> None:
    assert is_garbled(said, "Čapek-李", is_utf8=is_utf8) is (is_utf8 or said != "apek-")


@pytest.mark.parametrize("said", ["?apek-?", "\ufffd\ufffdapek-\ufffd"])
def test_a_name_that_could_not_be_read_where_it_could_be_read(said: str) -> None:
    assert is_garbled(said, "Čapek-李", is_utf8=True)
    assert not is_garbled(said, "Čapek-李", is_utf8=False)


@pytest.mark.parametrize("said", ["Čapek-李", "ann", "Ďábel", "Capek-Li"])
def test_a_name_of_its_own_is_as_good_as_the_one_that_it_was_given(said: str) -> None:
    assert not is_garbled(said, "Čapek-李", is_utf8=True)


def test_melds_say_which_rule_they_break() -> None:
    assert MELDS.fault([["As", "2s"]]) == ("As 2s: a meld has three cards or more (G2)")
    assert BID.fault([["As", "2s"]]) is None


def test_what_a_stranger_sent_is_shown_in_a_line() -> None:
    assert in_a_line(b"a\nb\xff") == "a\ufffdb\ufffd"
    assert len(in_a_line(b"x" * 1000)) == 300
