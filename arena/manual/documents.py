"""The documents of the installed version, in a checkout and in a wheel alike.

Every `*.md` below the packages is one, and so is what lies beside them in a checkout, such as the root README. A wheel has
those in `arena/manual/_root`, as site-packages belongs to everybody. What others wrote, in folders such as `lib` and
`node_modules`, is not part of the manual.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec

from protocol.errors import ArenaError

__all__ = ["Document", "documents", "section"]

_PACKAGES = ("arena", "bots", "protocol")
_ENDING = ".md"
_LICENSE = "LICENSE"
_OF_OTHERS = frozenset({"build", "lib", "node_modules", "venv"})
_MARK = re.compile(r"^<!-- .* -->\n", re.MULTILINE)  # around what is generated
_HEADING = re.compile(r"(#+) (.+)")
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#)[^)]*\)")


class Document(msgspec.Struct, frozen=True):
    """A text of the manual.

    Attributes:
        path: where it is in a checkout, with `/`: `protocol/README.md`.
        text: its Markdown, without the marks around what is generated; the licence is plain text.
    """

    path: str
    text: str

    @property
    def title(self) -> str:
        """The first heading, or the first line of a text without headings."""
        headings = (title for _, _, title in _headings(self.text))
        return next(headings, self.text.strip().partition("\n")[0])

    @property
    def is_markdown(self) -> bool:
        """Whether the text is Markdown."""
        return self.path.endswith(_ENDING)


def documents() -> dict[str, Document]:
    """All documents by path: those of the root, then folder by folder, each with its README first."""
    found = dict(_beside_the_packages())
    for package in _PACKAGES:
        found.update(_below(files(package), f"{package}/"))
    return {
        path: Document(path, _MARK.sub("", found[path].read_text(encoding="utf-8")))
        for path in sorted(found, key=_place)
    }


def section(of: Mapping[str, Document], heading: str) -> str:
    """What stands under a heading, with the headings below it, as a text that can be read by itself.

    Links to other documents become plain words. Capitals, hyphens and underscores make no difference, so that the name of a
    game finds its page.

    Args:
        of: the documents to look in; the first one that has the heading counts.
        heading: its words.

    Raises:
        ArenaError: no document has that heading.
    """
    for document in of.values():
        headings = list(_headings(document.text))
        for at, (start, level, title) in enumerate(headings):
            if _plain(title) == _plain(heading):
                lines = document.text.splitlines(keepends=True)
                rest = (line for line, depth, _ in headings[at + 1 :] if depth <= level)
                text = "".join(lines[start : next(rest, len(lines))])
                return _LINK.sub(r"\1", text).strip() + "\n"
    raise ArenaError(f"expected a heading {heading!r} in the documents, found none")


def _beside_the_packages() -> Iterator[tuple[str, Traversable]]:
    """The root's documents, where the wheel has them or where a checkout does."""
    packed = files("arena.manual") / "_root"
    if packed.is_dir():
        folder: Traversable = packed
    else:
        folder = Path(str(files("arena"))).parent
    for entry in folder.iterdir():
        if entry.name == _LICENSE or entry.name.endswith(_ENDING):
            yield entry.name, entry


def _below(folder: Traversable, within: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.name.startswith((".", "_")) or entry.name in _OF_OTHERS:
            continue
        if entry.is_dir():
            yield from _below(entry, f"{within}{entry.name}/")
        elif entry.name.endswith(_ENDING):
            yield within + entry.name, entry


def _place(path: str) -> tuple[list[str], bool, str]:
    """A sort key: folders in order, in each the README first."""
    *folders, name = path.split("/")
    return folders, name != "README.md", name


def _headings(text: str) -> Iterator[tuple[int, int, str]]:
    """The number of the line, the level and the words of each heading; lines of code are none."""
    is_code = False
    for number, line in enumerate(text.splitlines()):
        if line.startswith("```"):
            is_code = not is_code
        elif not is_code and (found := _HEADING.fullmatch(line)):
            yield number, len(found[1]), found[2].replace("`", "")


def _plain(heading: str) -> str:
    return re.sub(r"[\W_]+", " ", heading).casefold().strip()
