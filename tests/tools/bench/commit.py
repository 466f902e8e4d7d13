"""Installs another commit beside this tree, with the same libraries."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.tools.bench.processes import Tree
from tests.tools.trees import scratch

__all__ = ["installed"]

_PYTHON = Path("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


@contextmanager
def installed(commit: str, folder: Path | None = None) -> Iterator[Tree]:
    """The commit in a virtual environment of its own, which uses the libraries of this one.

    Args:
        commit: as git names it.
        folder: where the environment is made and kept; one that is there is used as it is. Without
            a folder it goes afterwards.

    Raises:
        SystemExit: git does not know the commit, or it cannot be installed.
    """
    if folder is None:
        with (
            tempfile.TemporaryDirectory(prefix="bench-") as made,
            installed(commit, Path(made)) as tree,
        ):
            yield tree
        return
    python = folder.resolve() / _PYTHON
    if not python.exists():
        with scratch(commit) as files:
            _install(files, folder, python)
    yield Tree(commit, str(python), "")


def _install(files: Path, folder: Path, python: Path) -> None:
    venv.create(folder)
    # Python reads no `.pth` files of a folder that stands in one. So the other commit's packages
    # are found, and of this environment's only those that are no editable checkouts, as this is.
    paths = {"base": str(folder), "platbase": str(folder)}
    own = Path(sysconfig.get_path("purelib", "venv", vars=paths))
    shared = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (own / "libraries.pth").write_text("\n".join(sorted(shared)), encoding="utf-8")
    words = ["install", "--quiet", "--no-deps", "--no-build-isolation", str(files)]
    done = subprocess.run([sys.executable, "-m", "pip", "--python", str(python), *words])
    if done.returncode:
        raise SystemExit(f"the commit cannot be installed into {folder}")
