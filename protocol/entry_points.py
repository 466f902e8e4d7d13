"""Finds games and house bots by entry points, ours and those of other installed packages.

A package that cannot be imported, or that uses a name already in use, is left out: `LEFT_OUT` says
why, for `arena doctor` and for a line on stderr. Everything else works without it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext, redirect_stdout
from functools import cache
from importlib.metadata import Distribution, EntryPoint, distributions
from traceback import walk_tb
from types import FrameType
from typing import Any, TypeVar

import msgspec

from protocol.errors import ArenaError, in_words, one_line

__all__ = [
    "LEFT_OUT",
    "OUR_PACKAGES",
    "LeftOut",
    "Package",
    "first_left_out",
    "has_others",
    "leave_out",
    "load_all",
    "package_of",
    "points",
    "unsaid",
]

GROUPS = frozenset({"protocol.games", "arena.games", "arena.bots"})
OUR_PACKAGES = frozenset({"protocol", "arena", "bots"})
"""The import packages of this project."""
_OUR_NAME = "card-arena"

Thing = TypeVar("Thing")


class Package(msgspec.Struct, frozen=True):
    """A package that is installed beside ours."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class LeftOut(msgspec.Struct, frozen=True):
    """An entry point that is not used: of which group and package, and why."""

    group: str
    name: str
    package: str
    why: str

    def is_of(self, group: str, name: str, package: Package | None) -> bool:
        return (self.group, self.name, self.package) == (group, name, str(package))

    def __str__(self) -> str:
        return f"{self.name} of {self.package} is left out ({self.group}): {self.why}"


_MISSING = re.compile(r"^Missing required argument '(\w+)'$")  # an error of msgspec

LEFT_OUT: list[LeftOut] = []
"""The entry points left out so far, each once."""


def package_of(point: EntryPoint) -> Package | None:
    """Return the package of an entry point of another package; None for ours."""
    if point.dist is None:
        top = point.module.partition(".")[0]
        return None if top in OUR_PACKAGES else Package(top, "?")
    package = _package(point.dist)
    # Compare the package, as another's entry point may name a module of ours.
    return None if re.sub(r"[-_.]+", "-", package.name).lower() == _OUR_NAME else package


@cache
def _package(distribution: Distribution) -> Package:
    """Return the name and version of a distribution; cached, as it parses all of the metadata.

    Raises ValueError if either is missing.
    """
    metadata = distribution.metadata
    name, version = metadata["Name"], metadata["Version"]
    if not name or not version:
        raise ValueError("it has no name or no version")
    return Package(name, version)


def points(group: str, name: str | None = None) -> list[EntryPoint]:
    """Return the entry points of a group, ours before those of others, each in order of names."""
    return [point for point in _found() if point.group == group and name in (None, point.name)]


def has_others() -> bool:
    """Whether another package has games or house bots, or is too broken to tell."""
    return any(package_of(point) is not None for point in _found()) or bool(LEFT_OUT)


@cache
def _found() -> tuple[EntryPoint, ...]:
    """Return the entry points of all our groups; packages with broken metadata are left out."""
    found: list[EntryPoint] = []
    seen: set[str] = set()  # of two versions, Python imports the first in the path
    for distribution in distributions():
        try:
            found += _points_of(distribution, seen)
        except Exception as error:  # an installer may have left anything there
            folder = getattr(distribution, "_path", "?")
            why = f"its metadata cannot be read: {in_words(error)}"
            leave_out(LeftOut("metadata", "a package", str(folder), one_line(why, 500)))
    return tuple(
        sorted(
            found,
            key=lambda point: (package_of(point) is not None, point.name, str(package_of(point))),
        )
    )


def _points_of(distribution: Distribution, seen: set[str]) -> list[EntryPoint]:
    """Return the entry points of one package; `seen` has the names of earlier packages."""
    text = distribution.read_text("entry_points.txt") or ""
    if not any(group in text for group in GROUPS):  # reading all names takes 20 ms
        return []
    name = _package(distribution).name
    if name in seen:
        return []
    seen.add(name)
    # Reading `module` raises if the line is invalid.
    return [point for point in distribution.entry_points if point.group in GROUPS and point.module]


def load_all(
    group: str, read: Callable[[EntryPoint, Any], Thing], name: str | None = None
) -> Iterator[Thing]:
    """Yield what `read` returns for each entry point (or those called `name`) and its module.

    Ours come first. Another package's is left out if it cannot be loaded or `read` raises.
    """
    for point in points(group, name):
        package = package_of(point)
        if any(left.is_of(group, point.name, package) for left in LEFT_OUT):
            continue  # do not run its module again, which may be slow or fail in another way
        try:
            # Stdout is for results, so output of another package's module goes to stderr.
            with nullcontext() if package is None else redirect_stdout(sys.stderr):
                thing = read(point, point.load())
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # another package may be broken in any way
            if package is None:
                raise
            leave_out(LeftOut(group, point.name, str(package), one_line(_why(error, point), 500)))
            continue
        yield thing


def _why(error: BaseException, point: EntryPoint) -> str:
    if isinstance(error, ArenaError):
        return str(error)
    if isinstance(error, TypeError) and (found := _MISSING.search(str(error))):
        return (
            f"a game's convention is broken: {found[1]}: expected one in the description, got none"
        )
    calls = [(_package_in(frame), frame, line) for frame, line in walk_tb(error.__traceback__)]
    top = point.module.partition(".")[0]
    places = [f"at {frame.f_code.co_filename}:{line}" for name, frame, line in calls if name == top]
    place = f" {places[-1]}" if places else ""
    # The arena is still being imported itself when it reads the vocabularies of games.
    if point.group != "arena.games" and isinstance(error, ImportError):
        imported = {str(error.name).partition(".")[0], *(name for name, _, _ in calls)}
        if "arena" in imported:
            return f"{point.module} cannot be imported without `arena`{place}; bots have none"
    return f"{in_words(error)}{place}"


def _package_in(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]


def first_left_out() -> list[LeftOut]:
    """Return the first entry point left out per game and package; the others follow from it."""
    return list({(left.name, left.package): left for left in reversed(LEFT_OUT)}.values())[::-1]


def unsaid(text: str) -> str:
    """Remove from an error's text what `first_left_out` has, which has already been printed."""
    for left in first_left_out():
        text = text.replace(f"; {left}", "")
    return text


def leave_out(what: LeftOut) -> None:
    """Record once that an entry point is left out."""
    if what not in LEFT_OUT:
        LEFT_OUT.append(what)
