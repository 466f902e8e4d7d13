"""A launched bot as a bundle: a tar of what its sandbox is shown, and words that work elsewhere.

`views` says what a sandbox is shown. A bundle has that and nothing else, so it contains nothing
that is hidden from the bot. The same files give the same bundle on any machine: of their modes only
the executable bit counts, their times do not count, and `__pycache__` is left out.

Another machine has its own programs on PATH, its own system directories, and its own Python with
our packages. A bot that needs more than these and its folder is refused with a line that says why.
Symbolic links stay links if they lead to something in the bundle or in the system's directories.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import sys
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from arena.sandbox.command import SYSTEM, Program, find_program, holds_home, possible_paths, views
from arena.sandbox.program_files import Parts, TarWriter
from arena.sandbox.workdir import with_companions
from protocol.errors import BadArchive, UsageError
from protocol.vocabulary import shorten

__all__ = [
    "MOST_BUNDLED",
    "Bundle",
    "PortableCommand",
    "bundle_key",
    "bundled_program",
    "pack_bundle",
    "portable_command",
    "unpack_bundle",
]

MOST_BUNDLED = 512 << 20
"""The most bytes of a bundle's tar."""

_MOST_ENTRIES = 50_000  # files and folders: a large node_modules has 30,000
_PYTHON = "{python}"
_EVERYWHERE = (*SYSTEM, "/dev", "/proc")  # each sandbox has its own
_CACHES = "__pycache__"
_LONGEST_SHEBANG = 256  # bytes, as in Linux
# A path in the folder: a whole word, an option's value, or an element of a class path.
_IN_FOLDER = r"(?:^|(?<=[=:])){}(/[^:]*)?(?=:|$)"


class PortableCommand(msgspec.Struct, frozen=True):
    """The words that start a program on another machine, and what that machine must have.

    `needs` is a program on PATH. `is_native` says whether the file that starts it is made for one
    kind of machine.
    """

    words: tuple[str, ...]
    needs: str
    is_native: bool


class Bundle(msgspec.Struct, frozen=True, tag="bundle"):
    """A program that an arena launches: what its sandbox is shown, and how it is started.

    In the words, `{python}` stands for a Python interpreter that runs our own packages.
    """

    key: str  # SHA-256 of the words, `stdio`, the game and the tar
    size: int  # of the tar
    words: tuple[str, ...]
    stdio: bool
    needs: str  # the program on PATH that starts it; empty for a file in its own folder
    is_native: bool  # whether a file in its folder starts it, which may only fit such machines


class _BundledEntry(msgspec.Struct, frozen=True):
    """A file, or a link with its target, or a folder, which has no source."""

    source: Path | None = None
    mode: int = 0
    size: int = 0
    target: str = ""


def bundle_key(words: Sequence[str], stdio: bool, game: str, tar: str) -> str:
    """The SHA-256 of a bundle, computed from that of its tar."""
    return hashlib.sha256(msgspec.json.encode((words, stdio, game, tar))).hexdigest()


def portable_command(program: Program) -> PortableCommand:
    """How to start a launched program on another machine, with our Python or its own.

    Raises `UsageError` if its words name something that other machines do not have.
    """
    folder = program.folder
    words = [_moved(word, folder) for word in _without_url(program.words)]
    _check_paths(words, folder)
    first = words[0]
    if _is_our_python(first):
        return PortableCommand((_PYTHON, *words[1:]), needs="", is_native=False)
    if os.path.isabs(first):  # `/usr/bin/java`
        found = find_program(os.path.basename(first))
        if found is None or not _is_same_place(found, first):
            raise UsageError(
                f"expected a program on PATH or in {folder or 'its folder'}, got {shorten(first)}: "
                "other machines may not have it"
            )
        first = os.path.basename(first)
    if not os.path.dirname(first):
        return PortableCommand((first, *words[1:]), needs=first, is_native=False)
    interpreter = None if folder is None else _interpreter(folder / first)
    is_native = interpreter is None
    return PortableCommand((first, *words[1:]), needs=interpreter or "", is_native=is_native)


def pack_bundle(program: Program, game: str, hidden: Iterable[Path], into: BinaryIO) -> Bundle:
    """Write the tar of a program for a game to `into`; call this in a thread.

    Nothing in `hidden` is written, nor the companion files of databases there. Raises `UsageError`
    if the program cannot be played elsewhere or is too large; what was written is then unusable.
    """
    assert not program.sealed, "a program that was handed in is known by its source"
    command = portable_command(program)
    tar = TarWriter(into)
    try:
        for parts, entry in sorted(_listed(program, with_companions(tuple(hidden))).items()):
            if entry.target:
                tar.add_link(parts, entry.target)
            elif entry.source is None:
                tar.add_folder(parts)
            else:
                with _opened(entry.source) as file:
                    tar.add(parts, entry.mode, file, entry.size)
        made = tar.close()
        key = bundle_key(command.words, program.stdio, game, made.sha256)
    except UnicodeEncodeError as error:
        raise UsageError(f"expected names in UTF-8, got {error.object!r}") from None
    except EOFError:
        raise UsageError(
            f"expected files that stay as they are, {entry.source} became shorter"
        ) from None
    except OSError as error:
        raise UsageError(f"expected files that can be read, got {error}") from None
    words, needs, is_native = command.words, command.needs, command.is_native
    return Bundle(key, made.size, words, program.stdio, needs, is_native)


def unpack_bundle(tar: BinaryIO, folder: Path) -> None:
    """Unpack a tar from `pack_bundle` into an empty folder.

    Nothing is written through a link. Raises `BadArchive` for any other tar.
    """
    folders: set[Parts] = {()}
    try:
        with tarfile.open(fileobj=tar, mode="r|") as opened:
            while (info := opened.next()) is not None:
                opened.members.clear()  # type: ignore[attr-defined]  # else it keeps them all
                parts = tuple(info.name.split("/"))
                if parts[:-1] not in folders or parts[-1] in ("", os.curdir, os.pardir):
                    raise BadArchive(f"expected a bundle, got the name {shorten(info.name)} in it")
                path = folder.joinpath(*parts)
                if info.isdir():
                    path.mkdir()
                    folders.add(parts)
                elif info.issym():
                    path.symlink_to(info.linkname)
                else:
                    content = opened.extractfile(info)
                    if content is None:
                        raise BadArchive(f"expected plain files, got {shorten(info.name)}")
                    with path.open("xb") as file:
                        shutil.copyfileobj(content, file)
                    path.chmod(info.mode & 0o755)
    except (FileExistsError, tarfile.TarError) as error:
        raise BadArchive(f"expected a bundle, got a tar that cannot be unpacked: {error}") from None


def bundled_program(words: Sequence[str], stdio: bool, folder: Path) -> Program:
    """The program of a bundle unpacked into `folder`; it sees that folder and nothing else.

    Raises `UsageError` if this machine lacks what it needs.
    """
    first = sys.executable if words[0] == _PYTHON else words[0]
    is_own = bool(os.path.dirname(first))
    if is_own and not os.access(folder / first, os.X_OK):
        raise UsageError(f"expected a program, got {shorten(first)}, which is not executable here")
    if not is_own and find_program(first) is None:
        raise UsageError(f"expected a program on PATH of this machine, got {shorten(first)}")
    _check_system(words)
    words = (first, *words[1:])
    return Program(words, stdio=stdio, folder=folder.resolve(), sealed=True)


# ---- Its words


def _without_url(words: Sequence[str]) -> list[str]:
    """Remove one arena's address from the words of our own client, which uses ARENA_URL."""
    words = list(words)
    if words[:4] == [sys.executable, "-P", "-m", "bots"] and "--url" in words:
        at = words.index("--url")
        del words[at : at + 2]
    return words


def _moved(word: str, folder: Path | None) -> str:
    """The word with absolute paths into the folder made relative to it."""
    if folder is None or word == sys.executable:
        return word

    def relative(match: re.Match[str]) -> str:
        path = os.path.normpath(match[0])
        if not Path(path).is_relative_to(folder):  # because of a `..`
            return match[0]
        return os.path.join(os.curdir, os.path.relpath(path, folder))

    return re.sub(_IN_FOLDER.format(re.escape(str(folder))), relative, word)


def _check_paths(words: Sequence[str], folder: Path | None) -> None:
    """Raise `UsageError` for paths outside of the folder and the system's directories."""
    _check_system(words)
    for text in possible_paths(words[1:]):
        path = Path(os.path.normpath(text))
        if not path.is_absolute() or not path.exists() or _is_in(path, _EVERYWHERE):
            continue
        if not (path.is_dir() and holds_home(path)):  # a home is not shown to it here either
            raise UsageError(
                f"expected the bot's files in {folder or 'its folder'}, got {shorten(text, 200)}: "
                "other machines do not have it; put it there, and name it from there"
            )


def _check_system(words: Sequence[str]) -> None:
    for text in possible_paths(words[1:]):
        path = Path(os.path.normpath(text))
        if _is_in(path, SYSTEM) and not path.exists():
            raise UsageError(
                f"expected {shorten(str(path), 200)} on this machine, as its command names it"
            )


def _is_in(path: Path, folders: Iterable[str]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _is_our_python(word: str) -> bool:
    """Whether a word starts the Python that we run in, by its path or by its common names."""
    if word == sys.executable:
        return True
    found = find_program(word) if word in ("python", "python3") else None
    return found is not None and _is_same_place(found, sys.executable)


def _is_same_place(found: str, word: str) -> bool:
    """Whether two paths lead to one file in one folder; Python environments share the file."""
    there = os.path.dirname(found), os.path.dirname(word)
    return os.path.exists(word) and os.path.samefile(*there) and os.path.samefile(found, word)


def _interpreter(file: Path) -> str | None:
    """The interpreter in a file's `#!`, by its name on PATH; None if the file is no script."""
    try:
        with file.open("rb") as opened:
            line = opened.read(_LONGEST_SHEBANG).partition(b"\n")[0].decode(errors="replace")
    except OSError:
        return None
    if not line.startswith("#!"):
        return None
    names = [os.path.basename(word) for word in line[2:].split()]
    if names[:1] == ["env"]:
        names = [name for name in names[1:] if not name.startswith("-") and "=" not in name]
    return names[0] if names else None


# ---- Its files


def _listed(program: Program, hidden: Sequence[Path]) -> dict[Parts, _BundledEntry]:
    """All files that the program is shown, with the folders above them."""
    found: dict[Parts, _BundledEntry] = {}
    size = 0
    for item in views(program, hidden):
        place = item.place
        if place.is_absolute():
            if program.folder is None or not place.is_relative_to(program.folder):
                continue  # in a sandbox's own folders: all else was refused
            place = place.relative_to(program.folder)
        for depth in range(1, len(place.parts)):
            found.setdefault(place.parts[:depth], _BundledEntry())
        for parts, entry in _below(item.source.resolve(), place.parts, frozenset(hidden)):
            size += 0 if parts in found else entry.size
            found[parts] = entry
            if len(found) > _MOST_ENTRIES or size > MOST_BUNDLED:
                raise UsageError(
                    f"expected at most {MOST_BUNDLED >> 20} MiB and {_MOST_ENTRIES:,} files that "
                    f"the bot is shown, got more in {program.folder}; "
                    "put it into a folder of its own there, and name that"
                )
    found.pop((), None)
    return found


def _below(
    source: Path, place: Parts, hidden: frozenset[Path]
) -> Iterator[tuple[Parts, _BundledEntry]]:
    """Yield a real file or folder, and everything in it; links are not followed."""
    todo = [(source, place)]
    while todo:
        path, parts = todo.pop()
        if path in hidden or path.name == _CACHES:
            continue
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            yield parts, _BundledEntry(path, target=_target(path, parts))
        elif stat.S_ISDIR(found.st_mode):
            yield parts, _BundledEntry()
            todo += [(path / name, (*parts, name)) for name in os.listdir(path)]
        elif stat.S_ISREG(found.st_mode):  # no program needs pipes and sockets of others
            yield parts, _BundledEntry(path, found.st_mode, found.st_size)


def _target(link: Path, parts: Parts) -> str:
    """The target of a link; raises `UsageError` if it may not exist on another machine."""
    target = os.readlink(link)
    path = os.path.normpath(os.path.join(*parts[:-1], target))
    is_inside = not os.path.isabs(path) and path.split(os.sep)[0] != os.pardir
    if not is_inside and not _is_in(Path(path), SYSTEM):
        raise UsageError(
            f"expected links inside the bot's folder, got {shorten('/'.join(parts), 200)}, which "
            f"leads to {shorten(target, 200)}; replace it by what it stands for"
        )
    return target


def _opened(path: Path) -> BinaryIO:
    # Non-blocking, in case it has become a pipe.
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
