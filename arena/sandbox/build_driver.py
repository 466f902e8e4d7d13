"""Runs a program's build in its sandbox and writes the result to standard output.

`arena/sandbox/build.py` runs `python -I -S build_driver.py COMMAND...` in a directory with the
program's files, which are read-only. The files are copied, the command runs in the copy, and its
output goes to our stderr. With exit status 0, standard output gets a tar of the folder, with plain
files and folders only; otherwise it gets a line that says why there is none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

__all__ = ["main"]

_NICENESS = 10  # matches come first
_FULL_BYTES = 1 << 16  # reserved in case the build fills its directory


def main(command: Sequence[str]) -> int:
    """Build; returns the exit status."""
    os.nice(_NICENESS)
    names = os.listdir()
    work = Path(tempfile.mkdtemp(prefix=".build-", dir=".")).resolve()
    folder, home, scratch = work / "program", work / "home", work / "tmp"
    try:
        for path in (folder, home, scratch):
            path.mkdir()
        for name in names:
            (shutil.copytree if os.path.isdir(name) else shutil.copy)(name, folder / name)
        why = _run(command, folder, {"HOME": str(home), "TMPDIR": str(scratch)})
        if not why:
            with tarfile.open(
                fileobj=sys.stdout.buffer, mode="w|", format=tarfile.GNU_FORMAT
            ) as tar:
                _write(tar, folder)
    except (OSError, shutil.Error) as error:
        why = f"it cannot be copied: {error}"
    if why:
        room = os.statvfs(work)
        if room.f_bavail * room.f_frsize < _FULL_BYTES:
            why += f"; the {room.f_blocks * room.f_frsize >> 20} MiB for its files are full"
        sys.stdout.write(why)
    return 1 if why else 0


def _run(command: Sequence[str], folder: Path, places: dict[str, str]) -> str:
    """Run the command; returns why it failed, or nothing."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | places,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            check=False,
        )
    except OSError as error:
        return f"{command[0]} cannot be started: {error.strerror}"
    if done.returncode < 0:
        return f"{command[0]} was ended by signal {-done.returncode}"
    return f"{command[0]} ended with exit status {done.returncode}" if done.returncode else ""


def _write(tar: tarfile.TarFile, folder: Path) -> None:
    for path, name in _entries(folder, ""):
        info = tarfile.TarInfo(name)
        if path.is_dir():
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(info)
            continue
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            info.size, info.mode = found.st_size, found.st_mode & 0o777
            tar.addfile(info, file)


def _entries(folder: Path, above: str) -> Iterator[tuple[Path, str]]:
    """Yield all files and folders below, with their names; for a link to a file, that file."""
    for path in sorted(folder.iterdir()):
        name = above + path.name
        if path.is_dir() and not path.is_symlink():
            yield path, name
            yield from _entries(path, f"{name}/")
        elif path.is_file():
            yield path, name
        else:  # a link to a folder might lead back up, and reading a pipe might never end
            print(f"left out, as it is no plain file or folder: {name}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
