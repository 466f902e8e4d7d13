"""Defines what a strategy is, and finds one by the name of a house bot or in a file.

Both ends need this: the client runs strategies over the network, the arena in its own process.
House bots are in the modules of the entry points `arena.bots`, which are named after games, so that
other packages may add theirs; a student's bot is a file with one class.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import SequenceMatcher
from importlib.metadata import EntryPoint
from math import isfinite
from numbers import Real
from operator import index
from pathlib import Path
from traceback import walk_tb
from types import FunctionType, ModuleType, NoneType
from typing import Any, Protocol, TypeGuard

import msgspec
from msgspec.structs import astuple

from protocol.bot_folder import BotFolder, without_folder
from protocol.cards import Coded
from protocol.entry_points import LeftOut, leave_out, load_all, package_of, points
from protocol.errors import UnknownBot, did_you_mean, in_words
from protocol.games import VOCABULARIES
from protocol.vocabulary import News, Question, shorten

__all__ = [
    "Appraisal",
    "Appraiser",
    "Strategy",
    "as_sent",
    "blaming",
    "find",
    "house_bots",
    "house_modules",
    "load_file",
    "load_others",
]

ENTRY_POINTS = "arena.bots"

_INTERFACE = "PlayerStrategy"
_PLUMBING = ("decide", "hear", "reset")  # never taken for a misspelt method
_SENT = frozenset((str, int, bool, float, NoneType))  # types that `as_sent` leaves unchanged
_CLOSE = 0.8  # of 1: one letter of five is wrong, or two letters have changed places
_CLOSE_LETTERS = 5  # shorter words are similar to many others, as `best` is to `bet`
_CO_VARARGS = 4  # from `inspect`, which is slow to import
# Words that people put directly before a name, as in `makebid`; but `display` does not mean `play`.
_FILLERS = frozenset({"choose", "decide", "do", "get", "make", "my", "on", "say"})


class Strategy(Protocol):
    """Plays one seat; it remembers what it likes during a match and is reset before the next.

    It may have a method `seed(text)`, called before `reset`, that makes its random numbers
    repeatable; and a method `recall(question, answer)`. After a crash of its process that is called
    for every earlier question, in order, with what this seat answered, and after `hear` for the
    news of that time. Without `recall` the strategy is asked to `decide` again and its answer is
    dropped: if it depends on questions, news and seed alone, it is then in the same state as
    before.
    """

    def decide(self, question: Question[Any], /) -> object:
        """Answer a question with one of its `legal` answers; `as_sent` says in which types."""

    def hear(self, news: News, /) -> None:
        """Note something that the rules let this seat know."""

    def reset(self) -> None:
        """Forget the last opponent: a new match begins."""


class Appraisal(msgspec.Struct, frozen=True):
    """What a strategy thinks of the answers to one question.

    Attributes:
        answers: those that are worth a thought; one whose worth was asked for is among them.
        worths: by answer and by sample, the share of the game won, from 0 to 1. A sample has the
            same hidden cards for all answers, so that their differences say most.
    """

    answers: tuple[Any, ...]
    worths: tuple[tuple[float, ...], ...]


class Appraiser(Strategy, Protocol):
    """A strategy that can say what the answers to a question are worth, from what its seat knows.

    What it plays does not depend on whether it was asked that. After `appraise` it is told by
    `recall` what was really answered.
    """

    def appraise(
        self, question: Question[Any], answer: object = None, /, *, samples: int
    ) -> Appraisal:
        """What the answers are worth, among them `answer` if that is given."""

    def recall(self, question: Question[Any], answer: Any, /) -> None:
        """Note what this seat answered, without thinking about it."""


def as_sent(answer: Any) -> Any:
    """Return a strategy's answer in the types that are sent; the rules see no others.

    A number with `__index__` becomes an `int`, a text of any class a `str`, an array of NumPy a
    list, a member of an enum its value and a `Coded` its cards. 5.0 and True stay what they are,
    no whole numbers (J1). What cannot be sent becomes a text in angle brackets, which no question
    lists: such an answer is illegal, and not a crash.
    """
    cls = type(answer)
    if cls in _SENT and (cls is not float or isfinite(answer)):
        return answer
    if issubclass(cls, msgspec.Struct) and _SENT.issuperset(map(type, astuple(answer))):
        return answer
    try:
        plain = msgspec.to_builtins(answer, str_keys=True, enc_hook=_sent)
        # Convert again, as msgspec leaves the values of enums unchanged.
        return _finite(msgspec.to_builtins(plain, str_keys=True, enc_hook=_sent))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return _never_legal(answer)


def _finite(value: Any) -> Any:
    """Replace NaN and infinities, which JSON cannot express and msgspec would send as null."""
    cls = type(value)
    if cls is list:
        return [*map(_finite, value)]
    if cls is dict:
        return {name: _finite(field) for name, field in value.items()}
    return _never_legal(value) if cls is float and not isfinite(value) else value


def _sent(value: Any) -> object:
    """Convert a value of a type that msgspec does not know."""
    cls = type(value)
    if issubclass(cls, Coded):
        return value.code
    if issubclass(cls, str):
        return str.__str__(value)
    if hasattr(cls, "tolist"):  # NumPy's arrays and numbers; its truth values have no `__index__`
        return value.tolist()
    if hasattr(cls, "__index__"):
        return index(value)
    return float(value) if issubclass(cls, Real) else _never_legal(value)


def _never_legal(value: object) -> str:
    shown = shorten(value)
    return shown if shown.startswith("<") else f"<{shown}>"


@contextmanager
def blaming(what: str, folder: Path | None = None) -> Iterator[None]:
    """Turn any exception of a bot's code except Ctrl-C into `UnknownBot`, with `what` failed.

    If the exception was raised in the `folder`, the text also names the line.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        place = "" if folder is None else _line_in(folder.resolve(), error)
        raise UnknownBot(f"{what}: {without_folder(in_words(error))}{place}") from error


def _line_in(folder: Path, error: BaseException) -> str:
    """Return the last line in a folder that was running, as ` (bot.py, line 2)`, or nothing."""
    calls = [(at.f_code.co_filename, line) for at, line in walk_tb(error.__traceback__)]
    files = [(Path(name), line) for name, line in calls if not name.startswith("<")]  # Python's own
    own = [(file, line) for file, line in files if file.resolve().is_relative_to(folder)]
    return f" ({own[-1][0].name}, line {own[-1][1]})" if own else ""


def house_bots(game: str, *, slow: bool = False) -> dict[str, type[Any]]:
    """Return the house bots of a game by name, in alphabetical order, ours before those of others.

    They are the strategies in the `__all__` of the modules of the game's entry points; if two have
    the same name, ours wins. A bot is named after its class: `Random` is `random`, `TightPlayer` is
    `tight_player`.

    Slow bots, whose class has `is_slow = True`, are included only with `slow`: they play where
    somebody names them, and are never opponents by default.
    """
    found: dict[str, type[Any]] = {}
    for package, bots in load_all(ENTRY_POINTS, _named_bots, game):
        for name, cls in sorted(bots.items()):
            if name in found:
                why = f"the name is taken by {found[name].__module__}"
                leave_out(LeftOut(ENTRY_POINTS, f"{game}.{name}", package, why))
            else:
                found[name] = cls
    return {name: cls for name, cls in found.items() if slow or not getattr(cls, "is_slow", False)}


def house_modules(game: str) -> list[ModuleType]:
    """Return the modules of `house_bots`, ours first, without those that are left out."""

    def module_of(point: EntryPoint, module: ModuleType) -> ModuleType:
        _house_bots(point, module)  # raises if the module is to be left out
        return module

    return list(load_all(ENTRY_POINTS, module_of, game))


def load_others() -> None:
    """Load the house bots of other packages, so that `LEFT_OUT` is complete."""
    for point in points(ENTRY_POINTS):
        if (package := package_of(point)) is None:
            continue
        house_bots(point.name)
        if point.name not in VOCABULARIES:
            why = "there is no game of that name here"
            leave_out(LeftOut(ENTRY_POINTS, point.name, str(package), why))


def _named_bots(point: EntryPoint, module: ModuleType) -> tuple[str, dict[str, type[Any]]]:
    return str(package_of(point)), _house_bots(point, module)


def _house_bots(point: EntryPoint, module: ModuleType) -> dict[str, type[Any]]:
    if not hasattr(module, "__all__"):
        raise UnknownBot(f"expected `__all__` with the house bots in {point.module}, found none")
    for name in module.__all__:
        if not hasattr(module, name):
            raise UnknownBot(f"expected {name!r} of `__all__` in {point.module}, found none")
    listed: list[Any] = [getattr(module, name) for name in module.__all__]
    bots: list[type[Any]] = [cls for cls in listed if isinstance(cls, type) and _plays(cls)]
    if any(cls.game != point.name for cls in bots):
        raise UnknownBot(f"expected bots for {point.name} only in {point.module}")
    return {"_".join(_words(cls.__name__)): cls for cls in bots if cls.__name__ != _INTERFACE}


def find(game: str, bot: str) -> type[Any]:
    """Return the class of a house bot, or of the bot in a file if `bot` ends in `.py`.

    Raises:
        UnknownBot: there is no such bot, it plays another game, or it cannot be loaded.
    """
    cls: type[Any]
    if bot.endswith(".py"):
        cls = load_file(Path(bot))
        if cls.game != game:
            raise UnknownBot(f"{bot} plays {cls.game}, expected a bot for {game}")
        return cls
    house = house_bots(game, slow=True)
    if bot not in house:
        known = ", ".join(house) or "none is installed"
        raise UnknownBot(
            f"no house bot {bot!r} for {game}; expected one of: {known}, or a file.py"
            f"{did_you_mean(bot, house)}"
        )
    return house[bot]


def load_file(path: Path) -> type[Any]:
    """Load the one strategy class that a file defines; see `BotFolder` for its imports.

    Raises:
        UnknownBot: the file is missing, cannot be run, or defines no bot, more than one, or one
            that misspells a method or gives it other parameters.
    """
    if not path.is_file():
        raise UnknownBot(f"expected a file with a bot in it, found no file {path}")
    with blaming(f"{path} cannot be run", path.parent):
        module = BotFolder(path.parent).load(path)
        bots = _bots_in(module)  # a metaclass may raise as well
        names = ", ".join(sorted(cls.__name__ for cls in bots)) or "none"
        misspelled = [pair for cls in bots for pair in _misspelled(cls)]
        misfits = [pair for cls in bots for pair in _misfits(cls)]
    if len(bots) != 1:
        raise UnknownBot(
            f"expected one class with `game`, `decide`, `hear` and `reset` in {path}, found {names}"
        )
    for default, own in misspelled:
        raise UnknownBot(
            f"{path}: {bots[0].__name__} has no method `{default}`, so the default would play, "
            f"but a method `{own}` that looks like it; "
            f"call it `{default}` if it is meant, or `_{own}` if it is a helper"
        )
    for called, method in misfits:
        code = method.__code__
        raise UnknownBot(
            f"expected `{_head(called)}` in {Path(code.co_filename).name}, "
            f"line {code.co_firstlineno}, got `{_head(method)}`"
        )
    return bots[0]


def _bots_in(module: ModuleType) -> list[type[Any]]:
    """Return the strategy classes that a module defines, without those that others derive from."""
    classes = {
        value  # in a set, as a class may have two names
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__ and _plays(value)
    }
    return [
        cls
        for cls in classes
        if not any(other is not cls and issubclass(other, cls) for other in classes)
    ]


def _plays(cls: type[Any]) -> bool:
    methods = all(hasattr(cls, name) for name in _PLUMBING)
    return methods and isinstance(getattr(cls, "game", None), str)


# ---- Misspelt and mismatched methods


def _misspelled(cls: type[Any]) -> Iterator[tuple[str, str]]:
    """Yield (default, own) for a default method that a bot seems to have meant by one of its own.

    Only public methods in the bot's own file count, of classes that derive from the interface: a
    mixin's or a house bot's methods are there on purpose. A method similar to one that the bot does
    define is taken for a helper.
    """
    base = _interface(cls)
    if base is None:
        return
    theirs = {name: method for name, method in _methods(base).items() if name not in _PLUMBING}
    left = {name for name, method in theirs.items() if _method(cls, name) is method}
    own = [
        name
        for parent in cls.__mro__
        if parent.__module__ == cls.__module__ and issubclass(parent, base)
        for name, value in vars(parent).items()
        if _is_method(value, name) and not hasattr(base, name) and name != "recall"
    ]
    free = _free(cls, base)
    for name in own:
        alike = [default for default in theirs if _look_alike(name, default)]
        if not left.issuperset(alike):
            continue
        for default in alike:
            caller = _caller(theirs[default])
            if (caller == "hear" or not name.startswith("hear_")) and caller not in free:
                yield default, name


def _misfits(cls: type[Any]) -> Iterator[tuple[FunctionType, FunctionType]]:
    """Yield (theirs, own) for each own method that cannot be called like the interface's."""
    base = _interface(cls)
    called = {name: getattr(base or Strategy, name) for name in _PLUMBING}
    free = set(_PLUMBING) if base is None else _free(cls, base)
    if base is not None:
        called = _methods(base) | called
    for name, theirs in called.items():
        own = _method(cls, name)
        if not isinstance(own, FunctionType) or (name not in _PLUMBING and _caller(theirs) in free):
            continue
        code, count = own.__code__, theirs.__code__.co_argcount
        least = code.co_argcount - len(own.__defaults__ or ())
        most = count if code.co_flags & _CO_VARARGS else code.co_argcount
        if not least <= count <= most or code.co_kwonlyargcount > len(own.__kwdefaults__ or ()):
            yield theirs, own


def _head(method: FunctionType) -> str:
    """Show a method's head, such as `def bet(self, card)`."""
    code = method.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return f"def {code.co_name}({', '.join(names)})"


def _interface(cls: type[Any]) -> type[Any] | None:
    return next((cls for cls in reversed(cls.__mro__) if cls.__name__ == _INTERFACE), None)


def _methods(base: type[Any]) -> dict[str, FunctionType]:
    return {name: method for name, method in vars(base).items() if _is_method(method, name)}


def _free(cls: type[Any], base: type[Any]) -> set[str]:
    """Return the callers that a bot overrides; it may name methods called by them as it likes."""
    return {name for name in _PLUMBING if _method(cls, name) is not _method(base, name)}


def _caller(method: FunctionType) -> str:
    """Return which of `decide` and `hear` calls this method of the interface."""
    return "hear" if method.__annotations__.get("return") in (None, "None") else "decide"


def _method(cls: type[Any], name: str) -> object:
    return next((vars(parent)[name] for parent in cls.__mro__ if name in vars(parent)), None)


def _is_method(value: object, name: str) -> TypeGuard[FunctionType]:
    return isinstance(value, FunctionType) and not name.startswith("_")


def _look_alike(own: str, theirs: str) -> bool:
    """Whether one name may be meant as the other; capitals and underscores are ignored."""
    mine, other = _words(own), _words(theirs)
    if _begins_in(mine, other) or (_begins_in(other, mine) and 2 * len(mine) >= len(other)):
        return True
    first, second = "".join(mine), "".join(other)
    if first.removesuffix(second) in _FILLERS or sorted(first) == sorted(second):
        return True
    is_long = min(len(first), len(second)) >= _CLOSE_LETTERS
    return is_long and SequenceMatcher(None, first, second).ratio() >= _CLOSE


def _begins_in(words: list[str], sought: list[str]) -> bool:
    """Whether `sought` begins at a word of a name: `play` in `is_playing`, not in `display`."""
    name = "".join(sought)
    return any("".join(words[place:]).startswith(name) for place in range(len(words)))


def _words(name: str) -> list[str]:
    """Split a name into words: `make_bid`, `makeBid` and `MAKE_BID` are two each."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return [word for word in apart.lower().split("_") if word]
