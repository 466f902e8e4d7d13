from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from arena.games.catalogue import GAMES
from arena.web.manual import documents as module
from arena.web.manual.documents import Document, documents, section
from protocol.errors import ArenaError
from tests.support.arena_process import ROOT

TWO = """# The wire

Said [here](#here) and [there](bots/README.md#how).

```sh
# no heading
```

## High_low

Four seats.

### Its `legal`

A list.

## Gin rummy

Two seats.
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Document]:
    return documents()


@pytest.mark.needs("git")
def test_every_document_of_the_repository_is_found(found: dict[str, Document]) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*.md", "LICENSE"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("this is no checkout")
    ours = {path for path in listed.stdout.split() if "/lib/" not in path and path[:6] != "tests/"}

    assert {path for path in ours if (ROOT / path).exists()} <= {*found}


def test_what_others_wrote_is_left_out(found: dict[str, Document]) -> None:
    assert not [path for path in found if "/lib/" in path or "node_modules" in path]


def test_a_readme_comes_first_in_its_folder(found: dict[str, Document]) -> None:
    paths = [*found]

    assert paths[0] == "README.md"
    for readme in (path for path in paths if path.endswith("/README.md")):
        folder = readme.rpartition("/")[0]
        beside = [path for path in paths if path.rpartition("/")[0] == folder]
        assert beside[0] == readme


def test_a_title_is_the_first_heading(found: dict[str, Document]) -> None:
    assert found["README.md"].title == "Card Arena"
    assert found["LICENSE"].title == "MIT License"
    assert Document("a.md", "```\n# no\n```\n\n# Its `code`\n").title == "Its code"


def test_marks_around_what_is_generated_are_not_part_of_it(found: dict[str, Document]) -> None:
    for document in found.values():
        assert "<!--" not in document.text, document.path


def test_an_installation_has_the_documents_of_the_root_in_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in ("arena/web/manual/_root/README.md", "arena/README.md", "bots/b.md"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"# {path}\n")
    (tmp_path / "README.md").write_text("# Of another package\n")
    (tmp_path / "protocol").mkdir()
    monkeypatch.setattr(module, "files", lambda package: tmp_path / package.replace(".", "/"))
    shown = {path: document.title for path, document in documents().items()}

    assert shown["README.md"] == "arena/web/manual/_root/README.md"
    assert shown["bots/b.md"] == "bots/b.md"


def test_a_section_has_what_stands_below_its_heading() -> None:
    text = section({"a.md": Document("a.md", TWO)}, "high-low")

    assert text == "## High_low\n\nFour seats.\n\n### Its `legal`\n\nA list.\n"


def test_links_to_other_documents_become_words_in_a_section() -> None:
    text = section({"a.md": Document("a.md", TWO)}, "The wire")

    assert "Said [here](#here) and there." in text
    assert text.endswith("Two seats.\n")


def test_a_heading_that_is_not_there_is_named() -> None:
    with pytest.raises(ArenaError, match="expected a heading 'No heading'"):
        section({"a.md": Document("a.md", TWO)}, "No heading")


@pytest.mark.parametrize("game", GAMES)
def test_the_name_of_a_game_finds_its_part_of_the_protocol(
    game: str, found: dict[str, Document]
) -> None:
    protocol = {path: text for path, text in found.items() if "protocol/" in path}
    text = section(protocol, game)

    for kind in GAMES[game].vocabulary.questions:
        assert f"`{kind}`" in text
