"""Repositories of git that tests make."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.needs import skip_without

__all__ = ["commit_all", "git"]


def git(folder: Path, *words: str) -> None:
    """Run git in a folder, as somebody. Skips the test if there is none."""
    skip_without("git")
    who = ("-c", "user.name=ann", "-c", "user.email=ann@example.org")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def commit_all(folder: Path) -> None:
    """Commit what is in a folder now, even if nothing has changed."""
    git(folder, "add", "--all")
    git(folder, "commit", "--allow-empty", "-m", "text")
