"""What a program that was handed in is: its language, and how it is built and started.

Its author is not asked. A `bot.toml` says it; otherwise the program is a starter's folder, which is
recognized by its files, or one FILE.py with a strategy. Nothing of the program runs here, and what
it says is not trusted.
"""

from __future__ import annotations

import os
import shlex
import tomllib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import msgspec

from arena.sandbox.bot_spec import some
from arena.sandbox.command import SYSTEM, find_program, read_program, split_command
from arena.sandbox.languages import LANGUAGES, LIBRARIES, Language
from protocol.errors import UsageError, one_line
from protocol.games import vocabulary_named
from protocol.text_files import decode_text
from protocol.vocabulary import shorten

__all__ = ["ProgramManifest", "manifest_of"]

_OURS = "bot.toml"
_MOST_BYTES = 1 << 16  # of a file that describes a program
_STRATEGY = LANGUAGES[Language.PYTHON].edit
_TESTS = "test_"
_PACKAGE = "package.json"
_OTHER = "other"  # a language without a starter
# Unpacked files all have the same age, so plain `make` would keep what was built elsewhere.
_MAKE_ALL = {"make": ("make", "--always-make")}


class ProgramManifest(msgspec.Struct, frozen=True):
    """How a program is built and started, in its folder.

    Attributes:
        language: as `arena new` names it, or `other`.
        command: the words that start it. A FILE.py with a strategy is started by our client.
        stdio: whether it speaks in lines on its standard streams.
        build: the words that build it; empty if there is nothing to build.
        games: the games that it declares; empty if it declares them in `hello`.
    """

    language: str
    command: tuple[str, ...]
    stdio: bool
    build: tuple[str, ...] = ()
    games: tuple[str, ...] = ()


class _BotFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`bot.toml`."""

    run: str | None = None
    build: str = ""
    games: tuple[str, ...] = ()


class _Package(msgspec.Struct, frozen=True):
    """The relevant fields of a `package.json`."""

    dependencies: dict[str, str] = {}


def manifest_of(folder: Path) -> ProgramManifest:
    """The manifest of the program in a folder, before it is built.

    Raises a `UsageError` that says what was looked for and what was found.
    """
    if not (folder / _OURS).is_file():
        return _by_files(folder)
    try:
        said = _read(folder / _OURS)
        games = tuple(dict.fromkeys(vocabulary_named(game).name for game in said.games))
        if said.run is None:
            if said.build:
                raise UsageError("expected run beside build, which says what starts the bot")
            return msgspec.structs.replace(_by_files(folder), games=games)
        build = _build(said.build, folder)
        return msgspec.structs.replace(_run(said.run, folder, build), games=games)
    except (OSError, UsageError) as error:  # a name that is too long is an OSError
        # Its author does not need the path on this machine.
        text = str(error).replace(str(folder.resolve()), "its folder")
        raise UsageError(f"{_OURS}: {one_line(text, 400)}") from None


# ---- bot.toml


def _read(path: Path) -> _BotFile:
    text = _text(path)
    try:
        return msgspec.convert(tomllib.loads(text), _BotFile)
    except RecursionError:
        raise UsageError("expected TOML, got values nested too deeply") from None
    except msgspec.ValidationError as error:
        raise UsageError(
            f"expected run and build, command lines, and games, a list of names; got: {error}"
        ) from None
    except ValueError as error:  # not TOML, or a number with too many digits
        raise UsageError(f"expected TOML, got: {error}") from None


def _text(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise UsageError(f"expected at most {_MOST_BYTES >> 10} KiB, got more")
    return decode_text(data)


def _run(text: str, folder: Path, build: tuple[str, ...]) -> ProgramManifest:
    words, stdio = split_command(text)
    _check_paths("run", words, folder)
    first, language = words[0], _language(words, folder)
    if build and _is_own(first) and not first.endswith(".py"):  # the build may make it
        first = first if os.path.dirname(first) else os.path.join(os.curdir, first)
        return ProgramManifest(language, (first, *words[1:]), stdio, build)
    program = read_program(text, folder)
    return ProgramManifest(language, program.words, program.stdio, build)


def _build(text: str, folder: Path) -> tuple[str, ...]:
    if not text.strip():
        return ()
    words, stdio = split_command(text)
    if stdio:
        raise UsageError("expected a command for build, got 'stdio:', which belongs to run")
    _check_paths("build", words, folder)
    return read_program(f"stdio: {text}", folder).words  # no FILE.py is for our client here


def _is_own(word: str) -> bool:
    """Whether a program is in the folder, not one that is installed."""
    return bool(os.path.dirname(word)) or find_program(word) is None


def _check_paths(field: str, words: Sequence[str], folder: Path) -> None:
    """Raise `UsageError` for paths that lead out of the folder, except to the system's files."""
    for number, word in enumerate(words):
        path = PurePosixPath(word)
        if path.is_absolute() and (not number or not any(map(path.is_relative_to, SYSTEM))):
            raise UsageError(
                f"expected paths in the folder for {field}, got the absolute path {shorten(word)}; "
                "write the name of a program that is installed, as in 'python3 bot.py', "
                "or a path from the folder, as in './bot'"
            )
        if ".." in path.parts:
            raise UsageError(
                f"expected paths in the folder for {field}, got {shorten(word)}, which leads out"
            )


def _language(words: Sequence[str], folder: Path) -> str:
    """Find the language by the program that starts it, or else by the files."""
    program = PurePosixPath(words[0])
    if program.suffix == ".py" or program.name.startswith("python"):
        return Language.PYTHON.value
    for language, tools in LANGUAGES.items():
        if program.name == split_command(tools.start)[0][0]:
            return language.value
    suffixes = {path.suffix for path in folder.iterdir()}
    found = [
        language.value
        for language, tools in LANGUAGES.items()
        if PurePosixPath(tools.edit).suffix in suffixes
    ]
    return found[0] if len(found) == 1 else _OTHER


# ---- What the files say


def _by_files(folder: Path) -> ProgramManifest:
    found = [
        language
        for language, tools in LANGUAGES.items()
        if all((folder / mark).is_file() for mark in tools.marks)
    ]
    if len(found) > 1:
        languages = " and ".join(
            f"{language.shown} ({', '.join(LANGUAGES[language].marks)})" for language in found
        )
        raise UsageError(
            f"expected a bot in one language, got {languages}; say in {_OURS} what starts it: "
            f"run = '{LANGUAGES[found[0]].start}'"
        )
    if not found or found == [Language.PYTHON]:
        return _strategy(folder)
    [language] = found
    tools = LANGUAGES[language]
    words, stdio = split_command(tools.start)
    if language is Language.JAVASCRIPT:
        _check_libraries(folder)
    build = _MAKE_ALL.get(tools.build, tuple(shlex.split(tools.build)))
    return ProgramManifest(language.value, tuple(words), stdio, build)


def _strategy(folder: Path) -> ProgramManifest:
    """The only FILE.py, or `bot.py` among several; test files do not count."""
    files = sorted(path.name for path in folder.iterdir() if path.is_file())
    strategies = [name for name in files if name.endswith(".py") and not name.startswith(_TESTS)]
    if _STRATEGY in strategies:
        strategies = [_STRATEGY]
    if len(strategies) > 1:
        raise UsageError(
            f"expected {_STRATEGY} or a single FILE.py, got {_some(strategies)}; call the one with "
            f"the strategy {_STRATEGY}, or name it in {_OURS}: run = '{strategies[0]}'"
        )
    if not strategies:
        raise UsageError(
            f"expected a FILE.py with a strategy, all files of a starter, or a {_OURS} "
            f"with run, got {_some(files) if files else 'folders only'}"
        )
    program = read_program(shlex.quote(strategies[0]), folder)
    return ProgramManifest(Language.PYTHON.value, program.words, program.stdio)


def _check_libraries(folder: Path) -> None:
    """Raise `UsageError` if a library is not in the folder, as builds have no network."""
    try:
        package = msgspec.json.decode(_text(folder / _PACKAGE), type=_Package)
    except (RecursionError, ValueError) as error:  # not JSON, or not UTF-8
        raise UsageError(f"{_PACKAGE}: {one_line(str(error))}") from None
    libraries = folder / LIBRARIES
    there = {
        path.relative_to(libraries).as_posix()
        for pattern in ("*", "@*/*")
        for path in libraries.glob(pattern)
    }
    missing = sorted(package.dependencies.keys() - there)
    if missing:
        raise UsageError(
            f"expected the dependencies of {_PACKAGE} in {LIBRARIES}, got no {_some(missing)}: "
            "an arena has no network to fetch them; run npm install, and hand in the folder again"
        )


def _some(names: Sequence[str]) -> str:
    return some([shorten(name, 60) for name in names], 4)
