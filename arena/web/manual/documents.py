"""The documents of the installed version, in a checkout or in a wheel.

Every `*.md` in the packages is a document, and so are those beside the packages, such as the root
README. A wheel has the latter in `arena/web/manual/_root`, because site-packages is shared.
Third-party documents, in folders such as `lib` and `node_modules`, are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec

from protocol.errors import ArenaError

__all__ = ["Document", "documents", "section"]

_PACKAGES = ("arena", "bots", "protocol")
_ENDING = ".md"
_PROTOCOL = "protocol/"
_LICENSE = "LICENSE"
_OF_OTHERS = frozenset({"build", "lib", "node_modules", "venv"})
_MARK = re.compile(r"^<!-- .* -->\n", re.MULTILINE)  # around generated parts
_HEADING = re.compile(r"(#+) (.+)")
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#)[^)]*\)")


class Document(msgspec.Struct, frozen=True):
    """A text of the manual: Markdown without the marks around generated parts, or the licence.

    `path` is its path in a checkout, with `/`: `protocol/README.md`.
    """

    path: str
    text: str

    @property
    def title(self) -> str:
        """The first heading, or the first line if the text has no headings."""
        return _title(self.text)

    @property
    def is_markdown(self) -> bool:
        return self.path.endswith(_ENDING)


def documents() -> dict[str, Document]:
    """Return all documents by path: the root's, then folder by folder, each README first."""
    sources = dict(_beside_the_packages())
    for package in _PACKAGES:
        sources.update(_below(files(package), f"{package}/"))
    return {
        path: Document(path, _MARK.sub("", sources[path].read_text(encoding="utf-8")))
        for path in sorted(sources, key=_place)
    }


def section(of: Mapping[str, Document], heading: str) -> str:
    """Return the section under a heading, with subsections, from the first document that has it.

    Links to other documents become plain words. Case, hyphens and underscores are ignored, so that
    the name of a game finds its page. Raises `ArenaError` if there is no such heading.
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


def protocol_section(heading: str) -> str:
    """Return a section of the protocol's documents by its heading; raises as `section` does."""
    return section(
        {path: text for path, text in documents().items() if path.startswith(_PROTOCOL)}, heading
    )


def _beside_the_packages() -> Iterator[tuple[str, Traversable]]:
    packed = files("arena.web.manual") / "_root"
    folder: Traversable = packed if packed.is_dir() else Path(str(files("arena"))).parent
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
    """Return a sort key: folders in order, each README first."""
    *folders, name = path.split("/")
    return folders, name != "README.md", name


@cache  # each page of the manual lists the titles of all documents
def _title(text: str) -> str:
    headings = (title for _, _, title in _headings(text))
    return next(headings, text.strip().partition("\n")[0])


def _headings(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the line number, level and words of each heading outside code blocks."""
    is_code = False
    for number, line in enumerate(text.splitlines()):
        if line.startswith("```"):
            is_code = not is_code
        elif not is_code and (heading := _HEADING.fullmatch(line)):
            yield number, len(heading[1]), heading[2].replace("`", "")


def _plain(heading: str) -> str:
    return re.sub(r"[\W_]+", " ", heading).casefold().strip()
