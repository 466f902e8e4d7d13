"""Reads this working tree and commits of its repository, and makes scratch copies of either."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = [
    "BASE",
    "PRODUCT",
    "ROOT",
    "YARDSTICK",
    "git",
    "group_of",
    "kept",
    "package_of",
    "run_in",
    "scratch",
    "texts",
    "write_kept",
]

ROOT = Path(__file__).parents[2]
BASE = "3169ece"
"""The commit that size, names and proofs are compared with until the house is finished."""
PRODUCT = ("arena", "protocol", "bots")
YARDSTICK = ROOT / "tests/tools/yardstick.json"
"""What later runs of the proofs compare with."""
_MODULES = Path(".ci", "node_modules")  # what tests find there and no commit holds
_PROOFS = ("tests/tools/trees.py", "tests/tools/branches.py", "tests/tools/trials.py")
_PART_OF = {
    "arena/engine": "arena/games",
    "arena/strength": "arena/games",
    "arena/manual": "arena/web",
}


def git(*words: str, tree: Path = ROOT, text: bytes = b"") -> bytes:
    """The output of a git command.

    Raises:
        SystemExit: git does not do it, or is not there.
    """
    try:
        done = subprocess.run(
            ["git", *words], cwd=tree, input=text, capture_output=True, check=True
        )
    except FileNotFoundError:
        raise SystemExit("expected git, which holds what is compared with") from None
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"git {words[0]}: {error.stderr.decode().strip()}") from None
    return done.stdout


def _paths(*folders: str) -> list[str]:
    """The files of the working tree below some folders, the new ones too."""
    listed = git("ls-files", "-co", "--exclude-standard", "-z", "--", *folders).decode()
    return sorted(path for path in {*listed.split("\0")} if (ROOT / path).is_file())


def texts(commit: str = "", *folders: str) -> dict[str, str]:
    """The text files below some folders, by their paths.

    Args:
        commit: whose files; without it those of the working tree, the new ones too.
        folders: paths from the top; without any all files.
    """
    if not commit:
        read = [(path, (ROOT / path).read_bytes()) for path in _paths(*folders)]
    else:
        held = git("ls-tree", "-r", "--name-only", "-z", commit, "--", *folders).decode()
        if not held:
            return {}
        with tarfile.open(fileobj=io.BytesIO(git("archive", commit, "--", *folders))) as archive:
            members = [(one.name, archive.extractfile(one)) for one in archive if one.isfile()]
            read = [(path, file.read()) for path, file in members if file is not None]
    return {path: data.decode() for path, data in read if b"\0" not in data}


@contextmanager
def scratch(commit: str = "") -> Iterator[Path]:
    """A copy of a commit's files in a folder that goes afterwards, with the proofs as they are now.

    Args:
        commit: without it the copy is one of the working tree, with its new files.
    """
    with tempfile.TemporaryDirectory(prefix="scratch-") as folder:
        tree = Path(folder)
        if commit:
            with tarfile.open(fileobj=io.BytesIO(git("archive", commit))) as archive:
                archive.extractall(tree, filter="data")
        for path in _paths(*(_PROOFS if commit else ())):
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, tree / path)
        if (ROOT / _MODULES).exists():
            (tree / _MODULES).symlink_to(ROOT / _MODULES)
        yield tree


def run_in(tree: Path, module: str, *words: str) -> int:
    """The exit status of one of the proofs, run in a scratch copy."""
    environment = {
        **{name: value for name, value in os.environ.items() if name != "COVERAGE_PROCESS_START"},
        "CI": "1",
        "PYTHONPATH": str(tree),
        "OPENBLAS_NUM_THREADS": "1",  # a process that forks has no threads
    }
    command = [sys.executable, "-m", module, *words]
    with subprocess.Popen(command, cwd=tree, env=environment) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:  # the terminal's has reached it, too: it keeps what it has found
            return process.wait()


def package_of(path: str) -> str:
    """The package that a module belongs to: a folder below `arena`, `protocol` or `bots`."""
    parts = Path(path).parts
    return "/".join(parts[: 2 if parts[0] == "arena" and len(parts) > 2 else 1])


def group_of(path: str) -> str:
    """The package that a module's mutants and faults are counted in: three are too small."""
    package = package_of(path)
    return _PART_OF.get(package, package)


def kept(kind: str) -> dict[str, Any]:
    """What the yardstick holds of a proof; nothing before it was kept."""
    return dict(json.loads(YARDSTICK.read_bytes()).get(kind, {})) if YARDSTICK.exists() else {}


def write_kept(kind: str, entries: Mapping[str, object]) -> None:
    """Have the yardstick hold that of a proof, an entry a line."""
    whole = json.loads(YARDSTICK.read_bytes()) if YARDSTICK.exists() else {}
    whole[kind] = {**entries}
    text = json.dumps(whole, indent=0, sort_keys=True, ensure_ascii=False)
    YARDSTICK.write_text(f"{text}\n", encoding="utf-8")
