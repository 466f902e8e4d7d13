"""Reads this working tree and commits of its repository, and makes scratch copies of either."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["BASE", "PRODUCT", "ROOT", "YARDSTICK", "git", "scratch", "texts"]

ROOT = Path(__file__).parents[2]
BASE = "3169ece"
"""The commit that size, names and proofs are compared with until the house is finished."""
PRODUCT = ("arena", "protocol", "bots")
YARDSTICK = ROOT / "tests/tools/yardstick.json"
"""What later runs of the proofs compare with."""


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


def texts(commit: str = "", *folders: str) -> dict[str, str]:
    """The text files below some folders, by their paths.

    Args:
        commit: whose files; without it those of the working tree, the new ones too.
        folders: paths from the top; without any all files.
    """
    if not commit:
        listed = git("ls-files", "-co", "--exclude-standard", "-z", "--", *folders).decode()
        files = [ROOT / path for path in sorted({*listed.split("\0")} - {""})]
        read = [
            (str(file.relative_to(ROOT)), file.read_bytes()) for file in files if file.is_file()
        ]
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
    """A copy of a commit's files, or of the working tree's, in a folder that goes afterwards."""
    with tempfile.TemporaryDirectory(prefix="scratch-") as folder:
        tree = Path(folder)
        if commit:
            with tarfile.open(fileobj=io.BytesIO(git("archive", commit))) as archive:
                archive.extractall(tree, filter="data")
        else:
            listed = git("ls-files", "-co", "--exclude-standard", "-z")
            subprocess.run(
                ["tar", "-c", "--null", "-T", "-", "--ignore-failed-read", "-f", f"{tree}/.tar"],
                cwd=ROOT,
                input=listed,
                check=True,
                stderr=subprocess.DEVNULL,
            )
            with tarfile.open(tree / ".tar") as archive:
                archive.extractall(tree, filter="data")
        yield tree
