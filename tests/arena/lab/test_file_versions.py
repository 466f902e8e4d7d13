"""A bot's file as it was at a commit, from real repositories of git."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import pytest

from arena.games.catalogue import GAMES
from arena.lab.file_versions import bot_path, entrants_of, game_of, is_file
from protocol.errors import UnknownBot, UsageError
from tests.support.git_repository import commit_all, git

AKQ = GAMES["ace_king_queen"]
NEEDS_GIT = pytest.mark.needs("git")

BOT = """
import helper
class Mine:
    game = "ace_king_queen"
    def decide(self, question): return helper.NUMBER
    def hear(self, news): pass
    def reset(self): pass
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A bot in a folder, and beside it a module that says 1 at the first commit, and 2 now."""
    folder = tmp_path / "bots"
    folder.mkdir()
    (folder / "mine.py").write_text(BOT)
    (folder / "helper.py").write_text("NUMBER = 1\n")
    git(tmp_path, "init")
    commit_all(tmp_path)
    (folder / "helper.py").write_text("NUMBER = 2\n")
    return folder


@pytest.mark.parametrize(("bot", "is_one"), [("nash", False), ("mine.py", True)])
def test_a_name_or_a_file_is_handed_on_as_it_is(bot: str, is_one: bool) -> None:
    assert is_file(bot) is is_one
    assert is_file("bots/mine.py@HEAD~3")
    with bot_path(bot) as path:
        assert path == bot


@NEEDS_GIT
def test_the_folder_of_a_commit_is_there_while_it_is_used(repository: Path) -> None:
    with bot_path(f"{repository}/mine.py@HEAD") as path:
        assert (Path(path).parent / "helper.py").read_text() == "NUMBER = 1\n"
        assert game_of(path) is AKQ

    assert not Path(path).parent.exists()


@NEEDS_GIT
def test_both_versions_have_their_own_modules(repository: Path) -> None:
    now = str(repository / "mine.py")
    with bot_path(f"{now}@HEAD") as before:
        assert game_of(now) is AKQ  # as the command does first
        entrants = entrants_of(AKQ, ("now", "before"), (now, before))
        numbers = [each.make("").decide(None) for each in entrants]  # type: ignore[arg-type]
        again = [pickle.loads(pickle.dumps(each)) for each in entrants]
        in_a_worker = [each.make("").decide(None) for each in again]

    assert numbers == in_a_worker == [2, 1]
    assert [each.name for each in entrants] == ["now", "before"]


@NEEDS_GIT
@pytest.mark.parametrize("place", [".", "bots"])
def test_a_file_or_a_folder_that_is_gone_by_now(repository: Path, place: str) -> None:
    folder = repository.parent / place
    (folder / "mine.py").write_text(BOT)
    commit_all(repository.parent)
    shutil.rmtree(repository)
    (folder / "mine.py").unlink(missing_ok=True)

    with bot_path(f"{folder}/mine.py@HEAD") as path:
        assert Path(path).read_text() == BOT


@NEEDS_GIT
@pytest.mark.parametrize(
    ("bot", "said"),
    [
        ("mine.py@HEAD~7", "expected a commit after the @, found none named 'HEAD~7'"),
        ("mine.py@--output=x", "expected a commit after the @, found none named '--output=x'"),
        ("nine.py@HEAD", "bots/nine.py is not in commit HEAD; see git log"),
    ],
)
def test_what_is_not_there_is_said(repository: Path, bot: str, said: str) -> None:
    with pytest.raises(UnknownBot) as caught, bot_path(f"{repository}/{bot}"):
        pass

    assert str(caught.value).endswith(said)


@NEEDS_GIT
def test_a_folder_outside_any_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(UnknownBot, match="in a git repository, found none"):
        bot_path(f"{tmp_path}/mine.py@HEAD").__enter__()


def test_without_git_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="expected git on this machine, found none"):
        bot_path(f"{tmp_path}/mine.py@HEAD").__enter__()
