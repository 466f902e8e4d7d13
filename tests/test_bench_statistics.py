"""The commit that `arena bench --against` compares with, and what rounds add up to."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest
from tests.tools.bench.against import checked_out
from tests.tools.bench.spread import compared, spread

from protocol.errors import ArenaError, UsageError
from tests.support.git_repository import commit_all, git

PACKAGES = ("arena", "bots", "protocol")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose file says `old` in the first commit and `new` in the second."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init")
    for package in PACKAGES:
        (folder / package).mkdir()
        (folder / package / "__init__.py").touch()
    for text in ("old", "new"):
        (folder / "file").write_text(text)
        commit_all(folder)
    return folder


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
    git(repository, "rm", "-r", ".")
    commit_all(repository)

    with pytest.raises(UsageError, match="expected a commit with"), checked_out("HEAD", repository):
        pass


@pytest.mark.parametrize("is_below", [True, False])
def test_without_a_checkout_there_is_nothing_to_compare_with(
    repository: Path, is_below: bool
) -> None:
    folder = repository / "below" if is_below else repository.parent
    folder.mkdir(exist_ok=True)

    with pytest.raises(ArenaError, match="in a git checkout"), checked_out("HEAD", folder):
        pass


def test_without_git_it_says_so(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")

    with pytest.raises(ArenaError, match="expected git"), checked_out("HEAD", repository):
        pass


def test_a_spread_is_the_median_between_the_lowest_and_the_highest() -> None:
    found = spread([3.0, 1.0, 2.0, 10.0])

    assert (found.median, found.range) == (2.5, (1.0, 10.0))


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ([0.7, 0.9, 0.8, 0.75, 0.85, 0.95], "faster"),
        ([1.1, 1.3, 1.2, 1.4, 1.5, 1.6], "slower"),
        ([0.9, 1.1, 0.95, 1.05, 0.9, 1.2], "no difference seen"),
    ],
)
def test_a_side_is_faster_if_the_whole_interval_says_so(ratios: list[float], verdict: str) -> None:
    assert compared(ratios).verdict == verdict


def test_with_few_rounds_the_interval_is_all_of_them_and_less_sure() -> None:
    found = compared([0.9, 0.8, 0.7, 0.6, 0.5])

    assert (found.ratio, found.low, found.high) == (0.7, 0.5, 0.9)
    assert (found.level, found.verdict) == (0.9375, "too few rounds to say")


def test_with_many_rounds_single_ratios_that_lie_far_off_do_not_count() -> None:
    found = compared([0.01, 0.8, 0.81, 0.82, 0.83, 0.84, 0.85, 0.86, 99.0])

    assert (found.low, found.high) == (0.8, 0.86)
    assert found.level == pytest.approx(0.9609, abs=1e-4)


@pytest.mark.parametrize("count", [1, 2, 5, 6, 9, 12])
def test_the_level_is_the_share_of_all_coin_throws(count: int) -> None:
    """A ratio is above 1 or below it by a coin; the interval contains 1 so often."""
    throws = list(product((0.5, 2.0), repeat=count))
    contains = [found.low <= 1 <= found.high for found in map(compared, throws)]

    assert sum(contains) / len(throws) == pytest.approx(compared(throws[0]).level)
