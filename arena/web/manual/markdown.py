"""Renders documents as HTML, with raw HTML off, and splits them into sections for the search.

Links between documents stay unchanged, since pages are served at the documents' own paths. A path
in code, such as `protocol/README.md`, becomes a link too. A link to a source file becomes plain
text.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Container, Sequence
from functools import cache
from html import escape
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
from markdown_it import MarkdownIt
from markdown_it.token import Token

from arena.web.manual.documents import Document

__all__ = ["DocumentSection", "RenderedDocument", "render"]

_README = "/README.md"
_BLOCKS_OF_CODE = ("fence", "code_block")


class DocumentSection(msgspec.Struct, frozen=True):
    """A heading and the text under it, up to the next heading.

    Attributes:
        level: 1 for a document's title, 2 for its parts.
        anchor: the part after `#` in a link to it.
        text: the prose, in plain text; `code` has the blocks of code, such as recorded frames.
    """

    level: int
    title: str
    anchor: str
    text: str = ""
    code: str = ""


class RenderedDocument(msgspec.Struct, frozen=True):
    """A document with its body as HTML, and its sections in order."""

    document: Document
    html: str
    sections: tuple[DocumentSection, ...]


def render(document: Document, known: Container[str]) -> RenderedDocument:
    """Render a document; `known` holds the paths of all documents."""
    if not document.is_markdown:
        html = f'<pre tabindex="0">{escape(document.text)}</pre>\n'
        only = DocumentSection(1, document.title, "", document.text)
        return RenderedDocument(document, html, (only,))
    markdown, reader = _markdown(), _TokenReader(document, known)
    tokens = markdown.parse(document.text)
    reader.read(tokens)
    html = markdown.renderer.render(tokens, markdown.options, {})
    return RenderedDocument(document, html, tuple(reader.sections))


@cache
def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    # `tabindex` lets the keyboard scroll wide blocks.
    for block in _BLOCKS_OF_CODE:
        markdown.add_render_rule(block, _code)
    markdown.add_render_rule("table_open", lambda *_: '<div class="wide" tabindex="0"><table>\n')
    markdown.add_render_rule("table_close", lambda *_: "</table></div>\n")
    return markdown


def _code(_self: object, tokens: Sequence[Token], at: int, *_: Any) -> str:
    return f'<pre tabindex="0"><code>{escape(tokens[at].content)}</code></pre>\n'


class _TokenReader:
    """Reads the tokens of one document: adds anchors, corrects links, collects the sections."""

    def __init__(self, document: Document, known: Container[str]) -> None:
        self.sections: list[DocumentSection] = []
        self._title = document.title  # for text before the first heading
        self._folder = posixpath.dirname(document.path)
        self._known = known
        self._anchors = Counter[str]()

    def read(self, tokens: Sequence[Token]) -> None:
        """Change the tokens in place, and fill `sections`."""
        heading: Token | None = None
        for token in tokens:
            if token.type == "heading_open":
                heading = token
            elif token.type == "inline":
                token.children = self._mended(token.children or [])
                text = _text(token.children)
                if heading is None:
                    self._add(text=text)
                else:
                    self._begin(heading, text)
                    heading = None
            elif token.type in _BLOCKS_OF_CODE:
                self._add(code=token.content)

    def _begin(self, heading: Token, title: str) -> None:
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        count = self._anchors[anchor]
        self._anchors[anchor] += 1
        anchor = f"{anchor}-{count}" if count else anchor
        heading.attrSet("id", anchor)
        self.sections.append(DocumentSection(int(heading.tag[1:]), title, anchor))

    def _add(self, text: str = "", code: str = "") -> None:
        if not self.sections:
            self.sections.append(DocumentSection(1, self._title, ""))
        last = self.sections[-1]
        self.sections[-1] = msgspec.structs.replace(
            last,
            text=" ".join([last.text, *text.split()]).strip(),
            code=" ".join([last.code, *code.split()]).strip(),
        )

    def _mended(self, tokens: Sequence[Token]) -> list[Token]:
        """Return the tokens of a line, with corrected links and without broken ones."""
        shown: list[Token] = []
        is_link = leads_nowhere = False
        for token in tokens:
            if token.type == "link_open":
                is_link = True
                leads_nowhere = not self._aim(token)
            elif token.type == "link_close":
                is_link = False
            elif token.type == "code_inline" and not is_link:
                shown += self._linked(token)
                continue
            if not (leads_nowhere and token.type in ("link_open", "link_close")):
                shown.append(token)
        return shown

    def _aim(self, link: Token) -> bool:
        """Point a link to a folder to its README; return whether the target exists."""
        parts = urlsplit(str(link.attrs["href"]))
        if parts.scheme or parts.netloc or not parts.path:
            return True
        target = posixpath.normpath(posixpath.join(self._folder, unquote(parts.path)))
        if target in self._known:
            return True
        link.attrSet("href", parts._replace(path=parts.path.rstrip("/") + _README).geturl())
        return target + _README in self._known

    def _linked(self, code: Token) -> list[Token]:
        """Return code as a link if it is a document's path from the root."""
        path = code.content
        if path not in self._known or ("/" not in path and self._folder):
            return [code]
        opens = Token("link_open", "a", 1)
        opens.attrSet("href", posixpath.relpath(path, self._folder or "."))
        return [opens, code, Token("link_close", "a", -1)]


def _text(tokens: Sequence[Token]) -> str:
    return "".join(
        " " if token.type in ("softbreak", "hardbreak") else token.content for token in tokens
    )
