"""Programs handed in on the page: by a student, and seen by an instructor."""

from __future__ import annotations

import base64
import io
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from arena.sandbox.archive import canonical
from arena.sandbox.manifest import ProgramManifest
from arena.storage.programs import Programs
from arena.storage.store import Store
from arena.storage.submissions import Submissions
from tests.support import arena_process
from tests.support.browser import PHONE
from tests.support.class_with_page import enrolled

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.e2e.page.conftest import Windows
    from tests.support.browser import BrowserWindow

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform != "linux", reason="programs are built and run on Linux"),
]

READY_S = 60.0
DECIDED_MS = 120_000  # a check with pauses of its own, on a busy machine
CONFIG = """
[serve]
port = 0
db = "class.db"

[submissions]

[[run]]
name = "ladder"
game = "ace_king_queen"
form = "ladder"
"""
FIRST = b"""from bots.ace_king_queen import PlayerStrategy


class First(PlayerStrategy):
    pass
"""
DROP = """([name, data]) => {
  const dropped = new DataTransfer();
  dropped.items.add(new File([Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0))], name));
  document.querySelector(".drop").dispatchEvent(new DragEvent("drop", { dataTransfer: dropped, bubbles: true, cancelable: true }));
}"""


class OpenArena:
    """An arena that takes programs; `ann` has one version, and `tokens` has hers."""

    def __init__(self, folder: Path) -> None:
        self.url = ""
        self.folder = folder
        (folder / "class.toml").write_text(CONFIG)
        tokens, instructor = enrolled(folder / "class.db", ["ann", "ben"])
        self.tokens = {**tokens, "instructor": instructor}
        with Store(folder / "class.db") as store:
            _put_in_play(store)

    @contextmanager
    def serving(self, *words: str, within: tuple[str, ...] = ()) -> Iterator[OpenArena]:
        command = ("-m", "arena", "serve", "--config", "class.toml", *words)
        arena = arena_process.start(self.folder, "arena.err", *command, within=within)
        said = self.folder / "arena.err"
        try:
            end = time.monotonic() + READY_S
            while "the page is at " not in said.read_text() and arena.poll() is None:
                assert time.monotonic() < end, said.read_text()
                time.sleep(0.05)
            self.url = said.read_text().partition("the page is at ")[2].split()[0].rstrip("/")
            yield self
        finally:
            arena.terminate()
            arena.wait(20)

    def enter(self, look: BrowserWindow, who: str) -> Page:
        """Log in as somebody."""
        page = look.to("#/")
        page.get_by_role("button", name="Log in").click()
        page.get_by_label("Your token").fill(self.tokens[who])
        page.keyboard.press("Enter")
        page.get_by_role("button", name=f"Logged in as {who}").wait_for()
        return page


def _put_in_play(store: Store) -> None:
    """What ann has handed in and had accepted the day before."""
    tar, submissions = io.BytesIO(), Submissions(store.engine)
    program = canonical("first.py", io.BytesIO(FIRST), tar)
    tar.seek(0)
    Programs(store.engine).put(program.sha256, tar)
    arrived = submissions.arrived(
        "ann", "first.py", "as it was", program.sha256, program.size, time.time() - 86_400
    )
    manifest = ProgramManifest("python", ("python", "-m", "bots", "first.py"), stdio=False)
    games = ("ace_king_queen",)
    submissions.accepted(arrived.number, manifest, games, "passed", arrived.arrived_at)


def _zip(**files: str) -> str:
    """An archive as base64; the names end in `.py`."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as it:
        for name, text in files.items():
            it.writestr(f"{name}.py", text)
    return base64.b64encode(archive.getvalue()).decode()


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenArena]:
    with OpenArena(tmp_path_factory.mktemp("arena")).serving() as it:
        yield it


def test_a_student_with_only_a_browser(windows: Windows, arena: OpenArena) -> None:
    look = windows.at(arena.url, PHONE)
    page = look.to("#/submit")
    page.get_by_text("Log in first.").wait_for()
    assert page.get_by_role("link", name="Hand in").count() == 0
    arena.enter(look, "ann")
    page.get_by_role("link", name="Hand in").click()

    starter = page.get_by_label("bot.py")
    starter.wait_for()
    look.sound("a form")
    starter.press("Control+End")
    page.keyboard.type("\n    def bet(self, card):\n    return False\n")
    page.keyboard.press("Tab")
    assert not starter.evaluate("field => field === document.activeElement")
    written = starter.input_value()
    assert written.endswith("\n    def bet(self, card):\n        return False\n        ")
    page.reload()
    starter.wait_for()
    assert starter.input_value() == written, "the draft is kept"
    page.get_by_role("button", name="Begin again…").click()
    page.get_by_role("dialog").get_by_role("button", name="Begin again").click()
    starter.fill(starter.input_value() + "\n\n# mine\n")
    page.get_by_label("What is new").last.fill("never bluffs")
    page.get_by_role("button", name="Hand in").last.click()
    page.get_by_text("It is being checked").wait_for()
    look.sound("a check")
    page.get_by_text("Accepted as v2").wait_for(timeout=DECIDED_MS)
    look.sound("a version", axe=False)

    page.evaluate(DROP, ["mine.zip", _zip(mine="import bots.nothing_of_that_name\n")])
    page.get_by_text("mine.zip").wait_for()
    page.get_by_role("button", name="Hand in").first.click()
    page.get_by_text("v2 stays in play").wait_for(timeout=DECIDED_MS)
    look.sound("a refusal")
    page.get_by_role("link", name="Its log").click()
    page.get_by_label("the check").get_by_text("nothing_of_that_name").wait_for()
    look.sound("a log")

    page.get_by_role("link", name="Your versions").click()
    page.get_by_text("never bluffs").wait_for()
    look.sound("versions")
    page.get_by_role("button", name="Use v1 in Ace-King-Queen").click()
    page.get_by_text("v1 is in play").wait_for()
    page.get_by_role("button", name="Use v2 in Ace-King-Queen").wait_for()


def test_an_instructor_takes_a_version_out(windows: Windows, arena: OpenArena) -> None:
    look = windows.at(arena.url)
    page = arena.enter(look, "instructor")
    page.get_by_role("link", name="Instructor").click()
    page.get_by_label("Of whom").fill("ann")
    page.get_by_role("button", name="Show").click()
    look.sound("what was handed in")

    with page.expect_download() as download:
        page.get_by_role("button", name="Download first.py of ann").click()
    with zipfile.ZipFile(download.value.path()) as archive:
        assert archive.read("first.py") == FIRST
    page.get_by_role("button", name="Disable first.py of ann").click()
    page.get_by_role("button", name="Allow again first.py of ann").click()
    page.get_by_role("button", name="Disable first.py of ann").wait_for()
    assert page.get_by_role("alert").count() == 0, "programs are isolated"


def test_who_hands_in_where_nothing_is_isolated_reads_so_in_red(
    windows: Windows, tmp_path: Path
) -> None:
    without_bubblewrap = ("/usr/bin/env", f"PATH={tmp_path}")
    option = "--submissions-without-isolation"
    with OpenArena(tmp_path).serving(option, within=without_bubblewrap) as arena:
        for who, view in (("instructor", "#/instructor"), ("ann", "#/submit")):
            look = windows.at(arena.url, is_new=True)
            arena.enter(look, who)
            look.to(view).get_by_role("alert").get_by_text("not isolated").wait_for()
