"""Names that look alike are the same name: how they are compared, and which spelling is shown. Pure.

`ANN`, `ａｎｎ` and `ann` with a letter in it that nobody sees are one name; the one that was written first is shown. Letters of different scripts
that look alike, as the Latin and the Cyrillic `a`, are different letters here.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import lru_cache

__all__ = ["Spellings", "alike", "owner_of", "spelled"]

_REMEMBERED = 1 << 14  # names of a few hundred bytes

_UNSEEN = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\U00016fe4\U0001d159"
    + "".join(map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10))))
    + "".join(map(chr, range(0xE0000, 0xE1000)))
)
"""Letters that nobody sees beside those of the category Cf: fillers, variation selectors, joiners, tags."""


@lru_cache(_REMEMBERED)
def alike(name: str) -> str:
    """The same for all names that look alike, and for no others: compare what this returns; it is not for people."""
    if name.isascii():
        return " ".join(name.lower().split())
    while (folded := _folded(name)) != name:
        name = folded
    return name


def owner_of(name: str) -> str:
    """Whose a name is: `ann` for `ann` and for `ann/gin`, as names on a roster have no slash."""
    return name.partition("/")[0]


def spelled(name: str, known: Iterable[str]) -> str:
    """The name as it is spelled among those that are known: itself, or the first that looks like it, or itself if none does."""
    known = tuple(known)
    if name in known:
        return name
    key = alike(name)
    return next((other for other in known if alike(other) == key), name)


class Spellings:
    """Names that are in use, each with its first spelling; names below an owner's, `ann/gin`, begin with the owner's first spelling.

    Two that were in use before look-alikes counted as one stay two: an exact spelling always wins.

    Args:
        names: those that are in use from the beginning, in order.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._uses: dict[str, dict[str, int]] = {}  # by what they look like
        for name in names:
            self.add(name)

    def __contains__(self, name: str) -> bool:
        """Whether a name that looks like this is in use."""
        return alike(name) in self._uses

    def add(self, name: str) -> None:
        """The name is in use, once more."""
        for part in {owner_of(name), name}:
            uses = self._uses.setdefault(alike(part), {})
            uses[part] = uses.get(part, 0) + 1

    def remove(self, name: str) -> None:
        """The name is in use once less."""
        for part in {owner_of(name), name}:
            key = alike(part)
            uses = self._uses[key]
            uses[part] -= 1
            if not uses[part]:
                del uses[part]
            if not uses:
                del self._uses[key]

    def of(self, name: str) -> str:
        """How the name is spelled: as whoever is in use that looks like it, else as it stands."""
        owner, slash, rest = name.partition("/")
        return self._first(self._first(owner) + slash + rest)

    def _first(self, name: str) -> str:
        uses = self._uses.get(alike(name))
        return name if not uses or name in uses else next(iter(uses))


def _folded(name: str) -> str:
    # A letter that nobody sees keeps marks apart that else change places or become one letter: it goes first, and again where one has come.
    text = unicodedata.normalize("NFKC", _seen(name)).casefold()
    return unicodedata.normalize("NFKC", " ".join(_seen(text).split()))


def _seen(text: str) -> str:
    """What of it can be seen."""
    return "".join(
        letter for letter in text if letter not in _UNSEEN and unicodedata.category(letter) != "Cf"
    )
