"""Compares names so that names that look alike are the same, and picks the spelling to show.

`ANN`, `ａｎｎ` and `ann` with an invisible character in it are one name; the spelling that
came first is shown. Letters of different scripts, such as the Latin and the Cyrillic `a`, stay
different.

Where submissions are taken, a bot's name is shown with the version that has played.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import lru_cache

__all__ = [
    "CONNECTED",
    "Spellings",
    "alike",
    "is_process",
    "owner_of",
    "process_name",
    "public_name",
    "spelled",
    "version_label",
    "versioned",
]

CONNECTED = "connected"
"""The version of a bot that connected from outside."""

_REMEMBERED = 1 << 14  # names of a few hundred bytes

_PROCESS = "\x1f"  # a control character, which no `hello` may contain

_UNSEEN = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\U00016fe4\U0001d159"
    + "".join(map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10))))
    + "".join(map(chr, range(0xE0000, 0xE1000)))
)
"""Invisible characters outside the category Cf: fillers, variation selectors, joiners, tags."""


@lru_cache(_REMEMBERED)
def alike(name: str) -> str:
    """A key that is equal only for names that look alike; not for display."""
    if name.isascii():
        return " ".join(name.lower().split())
    while (folded := _folded(name)) != name:
        name = folded
    return name


def owner_of(name: str) -> str:
    """The owner of a bot: `ann` for `ann` and for `ann/two`, as names on a roster have no slash."""
    return name.partition("/")[0]


def version_label(number: int) -> str:
    """The name of a version in records and texts: 3 is `v3`."""
    return f"v{number}"


def versioned(name: str, version: str | None) -> str:
    """A bot's name with the version that played, for display: `ann v3`, or `ann (connected)`."""
    if version == CONNECTED:
        return f"{name} ({CONNECTED})"
    return f"{name} {version}" if version else name


def process_name(name: str, number: int) -> str:
    """A name for one process of a submitted bot, whose processes all share the bot's name."""
    return f"{name}{_PROCESS}{number}"


def is_process(name: str) -> bool:
    """Whether this name was made by `process_name`."""
    return _PROCESS in name


def public_name(name: str) -> str:
    """The name that people and other bots see: `ann` for `ann` and for each of its processes."""
    return name.partition(_PROCESS)[0]


def spelled(name: str, known: Iterable[str]) -> str:
    """The first known name that looks like this one; the name itself if known, or if none does."""
    known = tuple(known)
    if name in known:
        return name
    key = alike(name)
    return next((other for other in known if alike(other) == key), name)


class Spellings:
    """The names in use, with their first spellings; `ann/two` begins as its owner is spelled.

    An exact spelling always wins: old rosters may hold two names that look alike.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._uses: dict[str, dict[str, int]] = {}  # uses of each spelling, by key
        for name in names:
            self.add(name)

    def __contains__(self, name: str) -> bool:
        return alike(name) in self._uses

    def add(self, name: str) -> None:
        """Count one more use of a name."""
        for part in {owner_of(name), name}:
            uses = self._uses.setdefault(alike(part), {})
            uses[part] = uses.get(part, 0) + 1

    def remove(self, name: str) -> None:
        for part in {owner_of(name), name}:
            key = alike(part)
            uses = self._uses[key]
            uses[part] -= 1
            if not uses[part]:
                del uses[part]
            if not uses:
                del self._uses[key]

    def of(self, name: str) -> str:
        """The spelling in use that looks like this name; the name itself if there is none."""
        owner, slash, rest = name.partition("/")
        return self._first(self._first(owner) + slash + rest)

    def _first(self, name: str) -> str:
        uses = self._uses.get(alike(name))
        return name if not uses or name in uses else next(iter(uses))


def _folded(name: str) -> str:
    # Invisible characters go first, as they prevent normalization; case folding may bring more.
    text = unicodedata.normalize("NFKC", _visible(name)).casefold()
    return unicodedata.normalize("NFKC", " ".join(_visible(text).split()))


def _visible(text: str) -> str:
    return "".join(
        letter for letter in text if letter not in _UNSEEN and unicodedata.category(letter) != "Cf"
    )
