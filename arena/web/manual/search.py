"""Full-text search over all documents: finds the sections with every word, the best first."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from arena.web.manual.markdown import DocumentSection, RenderedDocument

__all__ = ["MOST_HITS", "SearchHit", "SearchIndex", "SnippetPiece"]

MOST_HITS = 50

_MOST_WORDS = 8  # of a query; further words are ignored
_IN_TITLE, _IN_DOCUMENT, _IN_TEXT, _IN_CODE = 20, 5, 2, 1  # a word's points by its place
_MOST_COUNTED = 5  # occurrences in the text that score
_BEFORE, _AFTER = 60, 180  # characters shown around the first word


class SnippetPiece(msgspec.Struct, frozen=True):
    """A part of a snippet; `is_match` marks a word of the query."""

    text: str
    is_match: bool


class SearchHit(msgspec.Struct, frozen=True):
    """A section found by a search, with a snippet of it."""

    page: RenderedDocument
    section: DocumentSection
    snippet: tuple[SnippetPiece, ...]


class _IndexedSection(msgspec.Struct, frozen=True):
    page: RenderedDocument
    section: DocumentSection
    document: str
    title: str
    text: str
    code: str


class SearchIndex:
    """An index of all sections of some pages; a search takes about a millisecond."""

    def __init__(self, pages: Iterable[RenderedDocument]) -> None:
        self._entries = [
            _IndexedSection(
                page,
                section,
                page.document.title.lower(),
                section.title.lower(),
                section.text.lower(),
                section.code.lower(),
            )
            for page in pages
            for section in page.sections
        ]

    def search(self, question: str) -> list[SearchHit]:
        """Return at most `MOST_HITS` sections with all words of a query; case is ignored."""
        words = question.lower().split()[:_MOST_WORDS]
        if not words:
            return []
        hits = [(worth, entry) for entry in self._entries if (worth := _worth(entry, words))]
        hits.sort(key=lambda hit: -hit[0])
        any_word = re.compile("|".join(map(re.escape, words)), re.IGNORECASE)
        return [
            SearchHit(entry.page, entry.section, _snippet(entry.section, any_word))
            for _, entry in hits[:MOST_HITS]
        ]


def _worth(entry: _IndexedSection, words: Iterable[str]) -> int:
    """Return the points of a section; 0 if it lacks a word."""
    total = 0
    for word in words:
        worth = _IN_TITLE if word in entry.title else 0
        worth += _IN_DOCUMENT if word in entry.document else 0
        worth += _IN_TEXT * min(entry.text.count(word), _MOST_COUNTED)
        worth += _IN_CODE if word in entry.code else 0
        if not worth:
            return 0
        total += worth
    return total


def _snippet(section: DocumentSection, word: re.Pattern[str]) -> tuple[SnippetPiece, ...]:
    """Return the text around the first match, cut between words; code if only code matches."""
    has_only_code = not word.search(section.text) and word.search(section.code)
    text = section.code if has_only_code else section.text
    first, last = match.span() if (match := word.search(text)) else (0, 0)
    start = max(0, first - _BEFORE)
    if start and (space := text.find(" ", start, first)) >= 0:
        start = space + 1
    end = min(len(text), last + _AFTER)
    if end < len(text) and (space := text.rfind(" ", last, end)) >= 0:
        end = space
    pieces = [SnippetPiece("… ", False)] if start else []
    at = start
    for match in word.finditer(text, start, end):
        pieces += [SnippetPiece(text[at : match.start()], False), SnippetPiece(match[0], True)]
        at = match.end()
    pieces.append(SnippetPiece(text[at:end] + (" …" if end < len(text) else ""), False))
    return tuple(pieces)
