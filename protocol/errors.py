"""Every error of ours, in one tree.

    ArenaError
    ├── UsageError (a ValueError)    you called us wrong
    │   ├── UnknownGame              no game of that name or alias
    │   ├── BadGame                  a game that breaks a convention, or takes a name that is taken
    │   ├── UnknownBot               no house bot of that name, no file with a bot in it
    │   ├── BadSettings              a setting that is unknown or out of its range
    │   ├── BadArchive               a program that is handed in, packed as none may be
    │   ├── BadDeck                  a stacked deck that is invalid
    │   │   ├── OutOfDecks           the decks or cuts given are used up
    │   │   └── DeckEmpty            dealing from a deck with no cards left (B3)
    ├── IllegalAnswer                a seat answered what its question did not allow (J1)
    ├── ProtocolError                the peer misbehaved on the wire
    │   ├── Malformed                a frame or message that cannot be read
    │   ├── Oversize                 a frame larger than the limit
    │   └── OutOfTurn                a message that its sender may not send now
    ├── NoAnalysis                   a bot or a decision that cannot be judged
    ├── NoLuck                       a match whose luck cannot be measured
    ├── NotInstalled                 something was played by a game that is not installed here
    ├── StoreFailed                  the database cannot be written or read
    └── Unreachable                  a server that is not there, a port that is taken

`UsageError` and below never describe a bot on the wire; `ProtocolError` and `IllegalAnswer` always
do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = [
    "TOKEN_NEEDED",
    "ArenaError",
    "BadArchive",
    "BadDeck",
    "BadGame",
    "BadSettings",
    "DeckEmpty",
    "IllegalAnswer",
    "Malformed",
    "NoAnalysis",
    "NoLuck",
    "NotInstalled",
    "OutOfDecks",
    "OutOfTurn",
    "Oversize",
    "ProtocolError",
    "StoreFailed",
    "UnknownBot",
    "UnknownGame",
    "Unreachable",
    "UsageError",
    "class_name",
    "did_you_mean",
    "error_line",
    "in_words",
    "one_line",
    "token_advice",
]

TOKEN_NEEDED = "expected a token that the instructor of this arena has given out"
"""The refusal of a missing, a wrong or a revoked token, in every arena."""

_CLOSE = 0.7  # of 1: `exprt` and `expert` have 0.9
_ERROR = re.compile(r"(Error|Exception)\b")


class ArenaError(Exception):
    """The root of all errors that Card Arena raises on purpose."""


class UsageError(ArenaError, ValueError):
    """You called us wrong: the text says what was expected and what was given."""


class UnknownGame(UsageError):
    """There is no game of that name or alias."""


class BadGame(UsageError):
    """A game that breaks a convention: `protocol/games.md` lists them."""


class UnknownBot(UsageError):
    """There is no house bot of that name, or the file has no bot in it."""


class BadSettings(UsageError):
    """A setting is unknown, of the wrong type or out of its range."""


class BadArchive(UsageError):
    """A program that is handed in is no file or zip of files that can safely be unpacked."""


class BadDeck(UsageError):
    """A stacked deck has something that is no card of the game, or a card twice."""


class OutOfDecks(BadDeck):
    """The match needs one more deck or cut than it was given."""


class DeckEmpty(BadDeck):
    """A card was to be dealt and none is left (B3)."""


class IllegalAnswer(ArenaError):
    """A seat answered something that its question did not allow (J1)."""


class ProtocolError(ArenaError):
    """The peer sent what the protocol does not allow; `code` is the word of J2."""

    code = "malformed"


class Malformed(ProtocolError):
    """A frame or message that cannot be read, or has fields that do not exist."""


class Oversize(ProtocolError):
    """A frame larger than the limit."""

    code = "oversize"


class OutOfTurn(ProtocolError):
    """A message that its sender may not send in the session's current state."""


class NoLuck(ArenaError):
    """The luck of a match cannot be measured; the text says why."""


class NoAnalysis(ArenaError):
    """A bot or a decision cannot be judged; the text says why."""


class NotInstalled(ArenaError):
    """Something was played by a game from outside whose package is not installed here."""


class StoreFailed(ArenaError):
    """The database cannot be written or read: the disk is full, the file is gone or damaged."""


class Unreachable(ArenaError):
    """A server that is not there, or an address that cannot be listened on."""


def one_line(text: str, limit: int = 200) -> str:
    """Make untrusted text fit for a log or a terminal: one printable line of at most `limit`."""
    shown = text[:limit]
    if not shown.isprintable():
        shown = "".join(
            letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in shown
        )
    return shown if len(text) <= limit else shown[:-1] + "…"


def error_line(stderr: str) -> str:
    """Return the line of a program's standard error that says why it ended, or nothing.

    It is the last line in Python; in Java it is above the stack, in node above the version.
    """
    lines = stderr.strip().splitlines()
    errors = [line for line in lines if _ERROR.search(line) and not line[0].isspace()]
    return one_line((errors or lines or [""])[-1].strip())


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """Return `. Did you mean 'expert'?` for a name that is close to a known one, else nothing."""
    from difflib import get_close_matches

    words = {name.casefold(): name for name in known}
    close = get_close_matches(str(given).casefold(), words, n=1, cutoff=_CLOSE)
    return f". Did you mean {words[close[0]]!r}?" if close else ""


def token_advice(refusal: str, token: str | None) -> str:
    """Say what to do in the terminal if a `refusal` says that a `token` is missing or unknown.

    Empty for any other refusal.
    """
    if TOKEN_NEEDED not in refusal:
        return ""
    if not token:
        return "; give yours with --token or in ARENA_TOKEN"
    return "; copy the whole token, as it was given to you for this arena"


def class_name(value: object) -> str:
    """Return the name of an untrusted object's class, even if its metaclass tries to hide it."""
    return str.__str__(vars(type)["__name__"].__get__(type(value)))


def in_words(error: BaseException) -> str:
    """Describe an exception of untrusted code in one line: `ValueError: no such card`."""
    name = class_name(error)
    try:
        said = str(error)
        return one_line(f"{name}: {said}" if said else name)
    except KeyboardInterrupt:
        raise
    except BaseException:  # its `__str__` may raise anything
        return one_line(name)
