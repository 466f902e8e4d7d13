"""Writes the files of a new bot or a new game into a folder of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from arena.authoring.starter import Starter
from arena.sandbox.languages import LIBRARIES
from protocol.errors import ArenaError, UsageError

__all__ = ["lines_of", "write"]


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Write all files, or none if one fails, and raise `ArenaError`.

    Raises `UsageError` if the folder exists and is not empty.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"expected a folder, {folder} is a file")
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"expected an empty folder or a new one, got {folder}")
    written: list[Path] = []
    made = [] if folder.is_dir() else [folder]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            file = folder / name
            for above in reversed(file.parents):
                if not above.is_dir():
                    above.mkdir()
                    made.append(above)
            written.append(file)
            file.write_text(text, encoding="utf-8", newline="\n")
    except BaseException as error:  # Ctrl-C, too: half a starter would be in the way
        with contextlib.suppress(OSError):
            for file in written:
                file.unlink(missing_ok=True)
            for below in reversed(made):
                below.rmdir()
        if not isinstance(error, OSError):
            raise
        why = error.strerror or error
        raise ArenaError(f"cannot write {(written or [folder])[-1]}: {why}") from None


def lines_of(folder: Path, contents: str, made: Starter) -> Iterator[str]:
    """Yield lines that say what was written and which commands come next."""
    library = f"{LIBRARIES}/"
    names = dict.fromkeys(library if name.startswith(library) else name for name in made.files)
    yield f"{folder} has {contents}: {', '.join(names)}"
    yield "In that folder:\n"
    width = max(len(command.purpose) for command in made.commands)
    for command in made.commands:
        yield f"{command.purpose:{width}}  {command.line}"
