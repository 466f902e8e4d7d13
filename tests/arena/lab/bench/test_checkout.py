"""The commit that `arena bench --against` compares with, and what is no such commit."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from arena.lab.bench.against import checked_out
from protocol.errors import ArenaError, UsageError

PACKAGES = ("arena", "bots", "protocol")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose file says `old` in the first commit and `new` in the second."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet")
    for package in PACKAGES:
        (folder / package).mkdir()
        (folder / package / "__init__.py").touch()
    for text in ("old", "new"):
        (folder / "file").write_text(text)
        commit_all(folder)
    return folder


def commit_all(folder: Path) -> None:
    git(folder, "add", "--all")
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    git(folder, *author, "commit", "--quiet", "--allow-empty", "-m", "text")


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True)


def test_a_commit_is_checked_out_elsewhere_and_removed_afterwards(repository: Path) -> None:
    (repository / "file").write_text("not committed")

    with checked_out("HEAD~1", repository) as tree:
        assert (tree / "file").read_text() == "old"
        assert repository not in tree.parents

    assert not tree.exists()
    assert (repository / "file").read_text() == "not committed"


def test_it_is_removed_when_what_is_done_with_it_ends_badly(repository: Path) -> None:
    with pytest.raises(KeyboardInterrupt), checked_out("HEAD", repository) as tree:
        raise KeyboardInterrupt

    assert not tree.exists()


@pytest.mark.parametrize("commit", ["no such", "--upload-pack=x", "", "HEAD:file"])
def test_what_is_no_commit_is_refused(repository: Path, commit: str) -> None:
    with pytest.raises(UsageError, match="expected a commit"), checked_out(commit, repository):
        pass


@pytest.mark.parametrize("missing", [PACKAGES, *((package,) for package in PACKAGES)])
def test_a_commit_without_a_package_is_refused(repository: Path, missing: Sequence[str]) -> None:
    for package in missing:
        (repository / package / "__init__.py").unlink()
        (repository / package / "other.py").touch()
    commit_all(repository)

    said = r"\Aexpected a commit with arena/, bots/ and protocol/, got 'HEAD'\Z"
    with pytest.raises(UsageError, match=said), checked_out("HEAD", repository):
        pass


def test_an_empty_commit_is_refused(repository: Path) -> None:
    git(repository, "rm", "--quiet", "-r", ".")
    commit_all(repository)

    with pytest.raises(UsageError, match="expected a commit with"), checked_out("HEAD", repository):
        pass


def test_without_a_checkout_there_is_nothing_to_compare_with(tmp_path: Path) -> None:
    with pytest.raises(ArenaError, match="in a git checkout"), checked_out("HEAD", tmp_path):
        pass


def test_a_folder_below_a_checkout_is_none_of_its_own(repository: Path) -> None:
    below = repository / "below"
    below.mkdir()

    with pytest.raises(ArenaError, match="in a git checkout"), checked_out("HEAD", below):
        pass


def test_without_git_it_says_so(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")

    with pytest.raises(ArenaError, match="expected git"), checked_out("HEAD", repository):
        pass
