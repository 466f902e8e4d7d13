"""The command line of a bot, and which files that bot may see.

A program runs in a scratch directory of its own, and its relative paths work there. It is shown
what its words name:

- something in a folder, like `python3 ann/bot.py`: that folder, `ann`;
- a file in the current folder, `.`, or no file at all, like `java -cp . MyBot`: the whole
  current folder, without the entries that start with a dot.

The arena's own files are never shown, not even deep in a folder that is shown.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import msgspec

from protocol.codec import Encoding
from protocol.entry_points import OUR_PACKAGES, package_of, points
from protocol.errors import UsageError
from protocol.games import VOCABULARIES
from protocol.strategy import house_bots

if TYPE_CHECKING:  # `manifest` imports this module, too
    from arena.sandbox.manifest import ProgramManifest

__all__ = [
    "SYSTEM",
    "Program",
    "VisiblePath",
    "bot_command",
    "expose",
    "find_program",
    "game_folders",
    "game_packages",
    "holds_home",
    "over_pipes",
    "possible_paths",
    "read_program",
    "sealed_program",
    "search_path",
    "split_command",
    "views",
]

_MOST_SHOWN = 1_000  # each is a mount: with more, bubblewrap is slow and then refuses
_PATIENCE_S = 5  # a house bot whose arena has died ends itself after this time
_STDIO = "stdio:"
_HEAP_LIMITS = ("-Xmx", "-XX:MaxRAM", "-XX:MaxHeapSize")  # options of a JVM
_RELAY = Path(__file__).with_name("relay.py").resolve()

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt")
"""The system's own directories, which every program sees."""


class Program(msgspec.Struct, frozen=True):
    """A bot's command line; with `stdio` it speaks the protocol in lines on its standard streams.

    Relative paths start from `folder`. None is for a command without paths, which sees no files.

    Attributes:
        sealed: whether it is shown all of `folder`, dot files too, and nothing else, whatever its
            words name.
        script: a Python program of ours that starts it, with `words` as its arguments.
    """

    words: tuple[str, ...]
    stdio: bool = False
    folder: Path | None = None
    sealed: bool = False
    script: Path | None = None

    @property
    def command(self) -> tuple[str, ...]:
        if self.script is None:
            return self.words
        return (sys.executable, "-I", "-S", str(self.script), *self.words)

    @property
    def is_relayed(self) -> bool:
        """Whether it speaks WebSocket through the relay, over its pipes."""
        return self.script == _RELAY

    @property
    def has_open_heap(self) -> bool:
        """Whether it is Java without a heap limit: it may use a quarter of the machine's memory."""
        words = " ".join(self.words).split()  # also the words of `sh -c "java …"`
        is_limited = any(word.startswith(_HEAP_LIMITS) for word in words)
        return not is_limited and any(PurePath(word).stem == "java" for word in words)


class VisiblePath(msgspec.Struct, frozen=True):
    """A file or folder, and where a program sees it: absolute, or below its directory."""

    source: Path
    place: Path


def read_program(text: str, folder: Path | None = None) -> Program:
    """Read a command line such as `java -cp . MyBot` or `stdio: ./mybot --fast`, or a FILE.py.

    Relative paths start from `folder`, by default the current directory. Raises `UsageError` if
    the command is missing, its quotes are not closed, or there is no such program.
    """
    folder = (folder or Path()).resolve()
    words, stdio = split_command(text)
    if not stdio and len(words) == 1 and _is_strategy(folder / words[0]):
        name = Path(words[0]).stem
        return Program(words=tuple(bot_command(words, name=name)), folder=folder)
    words[0] = _command(words[0], folder)
    return Program(words=tuple(words), stdio=stdio, folder=folder)


def split_command(text: str) -> tuple[list[str], bool]:
    """Split a command line into words; also returns whether it begins with `stdio:`.

    Raises `UsageError` if the command is missing or its quotes are not closed.
    """
    if "\0" in text:
        raise UsageError(f"expected a command line without NUL, got {text!r}")
    stdio = text.lstrip().startswith(_STDIO)
    line = text.lstrip().removeprefix(_STDIO)
    try:
        words = shlex.split(line, posix=os.name == "posix")
    except ValueError as error:
        raise UsageError(f"expected a command line with its quotes closed, got {text!r}") from error
    if not words or not words[0]:
        raise UsageError(f"expected a command line such as 'python3 bot.py', got {text!r}")
    return words, stdio


def _is_strategy(file: Path) -> bool:
    """Whether our client connects it: a FILE.py, unless it is executable and begins with `#!`."""
    if file.suffix != ".py" or not file.is_file():
        return False
    if shutil.which(file) is None:
        return True
    with file.open("rb") as opened:
        return opened.read(2) != b"#!"


def _command(word: str, folder: Path) -> str:
    """The program as it is called from the scratch directory."""
    given = word
    if os.path.dirname(word):
        path = folder / word
    elif find_program(word) is not None:
        return word
    else:
        path, word = folder / word, os.path.join(os.curdir, word)
    if not path.is_file():
        game = next((game for game in VOCABULARIES if given in house_bots(game, slow=True)), None)
        hint = "" if game is None else f"; for a house bot: `arena connect {game} {given}`"
        raise UsageError(
            f"expected a program on PATH or in {folder}, got {given!r}, which is in neither{hint}"
        )
    if shutil.which(path) is None:
        raise UsageError(
            f"expected a program, got {word!r}, which is not executable; "
            "start it as in 'python3 bot.py', or chmod +x it"
        )
    return word


def sealed_program(folder: Path, manifest: ProgramManifest) -> Program:
    """The program of a submission: it sees all of `folder`, has no network, and uses pipes.

    A program that speaks WebSocket runs behind `arena/sandbox/relay.py`. Raises `UsageError` if
    there is no such program.
    """
    folder = folder.resolve()
    program, *arguments = manifest.command
    try:
        program = _command(program, folder)
    except UsageError as error:  # its author does not need the path on this machine
        raise UsageError(str(error).replace(str(folder), "its folder")) from None
    words = (program, *arguments)
    return over_pipes(Program(words, stdio=manifest.stdio, folder=folder, sealed=True))


def over_pipes(program: Program) -> Program:
    """The program as it runs without a network; one that speaks WebSocket, behind the relay."""
    if program.stdio:
        return program
    return msgspec.structs.replace(program, stdio=True, script=_RELAY)


def search_path() -> str:
    """Our PATH for bots, without relative entries, which would mean the bots' directories."""
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(entry for entry in entries if os.path.isabs(entry))


def find_program(word: str) -> str | None:
    """Find a program on PATH by a single word."""
    return shutil.which(word, path=search_path())


def bot_command(
    bot: Sequence[str],
    *,
    name: str,
    url: str | None = None,
    tables: int = 1,
    encoding: Encoding = Encoding.JSON,
) -> list[str]:
    """The command line that connects a bot, GAME NAME or FILE.py, to `url` or else to ARENA_URL."""
    options = {
        **({} if url is None else {"--url": url}),
        "--name": name,
        "--tables": str(tables),
        "--encoding": encoding.value,
        "--patience": str(_PATIENCE_S),
    }
    # -P: a folder `bots` in the current directory is not the package.
    words = [word for option in options.items() for word in option]
    flags = ("--quiet", "--no-session")  # a session file would be lost with the scratch directory
    return [sys.executable, "-P", "-m", "bots", *bot, *words, *flags]


def strategy_program(file: str, *, name: str, url: str | None = None, tables: int = 1) -> Program:
    """The command line that connects the strategy in a FILE.py, which sees its own folder."""
    path = Path(file)
    if ".." in path.parts:  # it would lead out of the scratch directory
        path = path.resolve()
    words = bot_command((str(path),), url=url, name=name, tables=tables)
    return Program(tuple(words), folder=Path().resolve())


# ---- What it sees


def views(program: Program, hidden: Iterable[Path]) -> tuple[VisiblePath, ...]:
    """What a program is shown: parts of its folder, and what its words name by absolute paths.

    It does not see `hidden` files or folders, which need not exist yet. Raises `UsageError` if it
    names something above its folder, or if its folder has too many entries.
    """
    folder = program.folder
    secret = tuple(path.resolve() for path in hidden)
    if folder is None:
        exposed, todo = list[tuple[Path, Path]](), ""
    elif program.sealed:
        # Built programs are in a folder that is hidden from all other programs.
        secret = tuple(path for path in secret if not folder.is_relative_to(path))
        exposed = [(folder / name, Path(name)) for name in _names_in(folder)]
        todo = "put them into folders"
    else:
        exposed = _exposed(program.words, folder)
        todo = (
            "put the bot into a folder of its own there, and name that, as in 'python3 ann/bot.py'"
        )
    shown = {
        item.place: item for source, place in exposed for item in expose(source, place, secret)
    }
    if len(shown) > _MOST_SHOWN:
        raise UsageError(
            f"expected at most {_MOST_SHOWN:,} files beside the bot, "
            f"got {len(shown):,} in {folder}; {todo}"
        )
    if program.script is not None:
        shown[program.script] = VisiblePath(program.script, program.script)
    return tuple(shown.values())


def _exposed(words: Sequence[str], folder: Path) -> list[tuple[Path, Path]]:
    """The paths that a command line names: where they are, and where the program sees them."""
    tops, wants_all = _named(words, folder)
    if wants_all:
        tops |= {name for name in _names_in(folder) if not name.startswith(".")}
    exposed = [(folder / top, Path(top)) for top in sorted(tops)]
    return exposed + [(file, file) for path in _absolute(words) for file in _around(path)]


def expose(
    source: Path, place: Path, hidden: Sequence[Path], _above: frozenset[Path] = frozenset()
) -> Iterator[VisiblePath]:
    """Show a file or folder at `place`; if something in it is hidden, yield its other entries.

    Neither `source` nor the paths in `hidden`, which are resolved, need exist.
    """
    real = source.resolve()
    if not source.exists() or any(real.is_relative_to(secret) for secret in hidden):
        return
    if not any(secret.is_relative_to(real) for secret in hidden):
        yield VisiblePath(source, place)
    elif real not in _above:  # otherwise it is a link that leads back up
        for name in _names_in(source):
            yield from expose(source / name, place / name, hidden, _above | {real})


@functools.cache
def game_packages() -> tuple[Path, ...]:
    """The packages of games and house bots from outside, each with the metadata beside it.

    Those installed in our Python are visible in any case, others only if they are shown.
    """
    found: dict[Path, None] = {}
    for group in ("protocol.games", "arena.bots"):
        for point in points(group):
            if package_of(point) is None or point.module.partition(".")[0] in OUR_PACKAGES:
                continue
            spec = importlib.util.find_spec(point.module.partition(".")[0])
            if spec is not None:
                places = spec.submodule_search_locations or [spec.origin or ""]
                found |= dict.fromkeys(map(Path, places))
            if point.dist is not None:
                beside = Path(str(point.dist.locate_file("")))
                found |= dict.fromkeys(beside.glob("*.dist-info"))
    return tuple(found)


def game_folders() -> str:
    """Our PYTHONPATH for bots: only the folders of `game_packages`."""
    folders = {str(path.parent) for path in game_packages()}
    entries = map(os.path.abspath, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    return os.pathsep.join(entry for entry in entries if entry in folders)


def _named(words: Sequence[str], folder: Path) -> tuple[set[str], bool]:
    """The entries of a folder that a command line names, and whether all others are shown, too."""
    tops: set[str] = set()
    wants_all = False
    # Without a slash, the program itself was found on PATH.
    for text in possible_paths(words if os.path.dirname(words[0]) else words[1:]):
        path = os.path.normpath(text)
        top, *below = path.split(os.sep)
        if os.path.isabs(path) or not os.path.lexists(folder / top):
            continue
        if top == os.pardir:
            if os.path.lexists(folder / path):
                raise UsageError(
                    f"expected paths in {folder}, got {text!r}; "
                    "start the arena there, or write the whole path"
                )
        elif top == os.curdir:
            wants_all = True
        elif os.path.isdir(folder / top):
            tops.add(top)
        elif not below:
            tops.add(top)
            wants_all = True
    return tops, wants_all or not tops


def _absolute(words: Sequence[str]) -> Iterator[Path]:
    """The absolute paths that a command line names, without the program and system files."""
    for text in possible_paths(words[1:]):
        path = Path(os.path.normpath(text))
        is_seen = any(path.is_relative_to(folder) for folder in SYSTEM)
        if path.is_absolute() and path.exists() and not is_seen:
            yield path


def possible_paths(words: Sequence[str]) -> Iterator[str]:
    """Yield everything that may be a path: words, values of options, elements of class paths."""
    for word in words:
        value = word.partition("=")[2]
        for text in {word, value, *word.split(os.pathsep), *value.split(os.pathsep)}:
            if text and "\0" not in text:
                yield text


def _around(path: Path) -> Iterator[Path]:
    """A folder, or a file with its siblings; in a home directory only the file itself."""
    if path.is_dir():
        if not holds_home(path):
            yield path
    elif holds_home(path.parent):
        yield path
    else:
        names = _names_in(path.parent)
        yield from (path.parent / name for name in names if not name.startswith("."))
        if path.name.startswith("."):
            yield path


def holds_home(folder: Path) -> bool:
    """Whether the folder is the home directory or contains it."""
    return Path(os.path.expanduser("~")).resolve().is_relative_to(folder.resolve())


def _names_in(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:  # we may not read it
        return []
