"""One tree of errors, drawn once."""

from __future__ import annotations

import inspect

import pytest

from protocol import errors
from protocol.errors import (
    TOKEN_NEEDED,
    ArenaError,
    IllegalAnswer,
    Malformed,
    OutOfTurn,
    Oversize,
    ProtocolError,
    UsageError,
    class_name,
    did_you_mean,
    error_line,
    in_words,
    one_line,
    token_advice,
)
from protocol.messages import Ending

CLASSES = [
    cls
    for _, cls in inspect.getmembers(errors, inspect.isclass)
    if cls.__module__ == errors.__name__
]


@pytest.mark.parametrize("cls", CLASSES)
def test_every_error_has_the_one_root(cls: type[Exception]) -> None:
    assert issubclass(cls, ArenaError)
    assert cls.__name__ in errors.__all__


@pytest.mark.parametrize("cls", CLASSES)
def test_every_error_is_drawn_under_its_parent(cls: type[Exception]) -> None:
    drawn: list[tuple[int, str]] = []  # the names above the line, by their depth
    for line in (errors.__doc__ or "").splitlines():
        name = line.lstrip(" │├└─").split(" ")[0]
        depth = line.find(name) if name else 0
        while drawn and drawn[-1][0] >= depth:
            drawn.pop()
        if name == cls.__name__:
            assert cls is ArenaError or drawn[-1][1] == cls.__bases__[0].__name__
            return
        drawn.append((depth, name))

    pytest.fail(f"{cls.__name__} is not in the tree")


def test_what_is_the_callers_fault_is_a_value_error() -> None:
    assert issubclass(UsageError, ValueError)
    assert not issubclass(ProtocolError, ValueError)
    assert not issubclass(IllegalAnswer, UsageError | ProtocolError)


@pytest.mark.parametrize(
    ("cls", "code"), [(Malformed, "malformed"), (Oversize, "oversize"), (OutOfTurn, "malformed")]
)
def test_J2_a_protocol_error_names_its_offence(cls: type[ProtocolError], code: str) -> None:
    assert cls.code == code
    assert Ending(code)


def test_one_line_leaves_plain_words_alone() -> None:
    assert one_line("bet, check – 4 € 表 ✓") == "bet, check – 4 € 表 ✓"


@pytest.mark.parametrize(
    "letter",
    ["\x00", "\n", "\r", "\t", "\x1b", "\x7f", "\x9b", "\u2028", "\u202e", "\u200b", "\ud800"],
)
def test_one_line_shows_nothing_that_a_terminal_obeys(letter: str) -> None:
    assert one_line(f"a{letter}b") == "a\N{REPLACEMENT CHARACTER}b"


def test_one_line_cuts_what_is_long() -> None:
    assert one_line("x" * 200) == "x" * 200
    assert one_line("x" * 201) == "x" * 199 + "…"
    assert one_line("xyz", limit=2) == "x…"


class Leaves(Exception):
    """Raises when it is asked what went wrong."""

    def __init__(self, error: type[BaseException]) -> None:
        self.error = error

    def __str__(self) -> str:
        raise self.error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no such card"), "ValueError: no such card"),
        (ValueError(), "ValueError"),
        (KeyError("ace"), "KeyError: 'ace'"),
        (ValueError("a\n\ud800"), "ValueError: a��"),
        (Leaves(RuntimeError), "Leaves"),
        (Leaves(SystemExit), "Leaves"),
        (Leaves(GeneratorExit), "Leaves"),
    ],
    ids=repr,
)
def test_what_was_raised_is_told_in_a_line(error: BaseException, said: str) -> None:
    assert in_words(error) == said


def test_ctrl_c_while_an_error_is_told_is_for_us() -> None:
    with pytest.raises(KeyboardInterrupt):
        in_words(Leaves(KeyboardInterrupt))


def test_a_class_cannot_hide_its_name() -> None:
    class HidesItsName(type):
        @property
        def __name__(cls) -> str:  # type: ignore[override]
            raise RuntimeError

    class Hidden(metaclass=HidesItsName):
        pass

    assert class_name(Hidden()) == "Hidden"
    assert class_name(None) == "NoneType"


PYTHON = """Traceback (most recent call last):
  File "bot.py", line 3, in <module>
    x = 1 / 0
ZeroDivisionError: division by zero
"""
NODE = """/tmp/bot.js:5
  x.y.z
TypeError: Cannot read properties of undefined (reading 'z')
    at Object.<anonymous> (/tmp/bot.js:5:7)

Node.js v20.20.2
"""
JAVA = """thinking
Exception in thread "main" java.lang.ArithmeticException: / by zero
\tat MyBot.main(MyBot.java:3)
"""


@pytest.mark.parametrize(
    ("stderr", "line"),
    [
        (PYTHON, "ZeroDivisionError: division by zero"),
        (NODE, "TypeError: Cannot read properties of undefined (reading 'z')"),
        (JAVA, 'Exception in thread "main" java.lang.ArithmeticException: / by zero'),
        ("one\nSegmentation fault\n\n", "Segmentation fault"),
        ("tail of it\n\tat MyBot.main(MyBot.java:3)\n", "at MyBot.main(MyBot.java:3)"),
        ("\x1b[2Jred", "\N{REPLACEMENT CHARACTER}[2Jred"),
        (" \n", ""),
    ],
)
def test_the_line_of_standard_error_that_says_why(stderr: str, line: str) -> None:
    assert error_line(stderr) == line


@pytest.mark.parametrize(
    ("given", "meant"),
    [("exprt", ". Did you mean 'expert'?"), ("EXPERT", ". Did you mean 'expert'?"), ("nash", "")],
)
def test_a_name_that_is_close_to_a_known_one_is_offered(given: str, meant: str) -> None:
    assert did_you_mean(given, ["expert", "patient"]) == meant


def test_advice_on_a_token_is_for_one_that_is_missing_or_not_known() -> None:
    assert "--token" in token_advice(TOKEN_NEEDED, None)
    assert "copy the whole token" in token_advice(f"refused: {TOKEN_NEEDED}", "x")
    assert token_advice("expected at most 4 connections with one token", "x") == ""
