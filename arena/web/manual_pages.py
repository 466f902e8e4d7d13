"""The manual for browsers: each document at its path below `/docs/`, the search at `/docs/?q=…`.

The pages have no scripts and load only the page's styles. A document is rendered at its first
request, and cached.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from arena.server.reply import NO_CACHE, NO_STORE, Headers, Reply, reply, text
from arena.web.files import StaticFile
from arena.web.manual.documents import Document, documents
from protocol.version import __version__

if TYPE_CHECKING:
    from jinja2 import Template

    from arena.web.manual.markdown import RenderedDocument
    from arena.web.manual.search import SearchHit, SearchIndex

__all__ = ["MANUAL", "ManualPages"]

MANUAL = "/docs/"  # below the arena's base path

_FIRST = "README.md"
_HTML = "text/html; charset=utf-8"
_MOST_FIELDS, _MOST_LETTERS = 8, 100
_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)


class ManualPages:
    """Answers requests for the manual; `version` is in the addresses of the styles.

    The first request for a document takes up to a tenth of a second, so call `answer` in a thread.
    """

    def __init__(self, version: str) -> None:
        self._files_version = version
        self._documents = documents()
        self._pages: dict[str, RenderedDocument] = {}
        self._files: dict[str, StaticFile] = {}
        self._index: SearchIndex | None = None
        self._folders: dict[str, list[Document]] = defaultdict(list)
        for path, document in self._documents.items():
            folder, slash, _ = path.partition("/")
            self._folders[folder if slash else ""].append(document)

    def answer(self, path: str, query: str, headers: Headers) -> Reply:
        """Respond to a request whose path begins with `/docs`."""
        if path == MANUAL.rstrip("/"):
            return text(307, "the manual is at docs/", ("Location", "docs/"), NO_STORE)
        place, question = path.removeprefix(MANUAL), _question(query)
        if not place and question:
            hits = self._search(question)
            title = f"Search: {question}"
            body = self._html(place, title=title, question=question, hits=hits)
            return reply(200, body, _HTML, NO_STORE, policy=_POLICY)
        if (place or _FIRST) not in self._documents:
            body = self._html(place, title="Nothing here")
            return reply(404, body, _HTML, NO_STORE, policy=_POLICY)
        if place not in self._files:
            page = self._page(place or _FIRST)
            body = self._html(place, title=page.document.title, page=page)
            self._files[place] = StaticFile("manual.html", body, NO_CACHE, _POLICY)
        return self._files[place].answer(headers)

    def _search(self, question: str) -> list[SearchHit]:
        from arena.web.manual.search import SearchIndex

        if self._index is None:
            self._index = SearchIndex(map(self._page, self._documents))
        return self._index.search(question)

    def _page(self, path: str) -> RenderedDocument:
        from arena.web.manual.markdown import render

        if path not in self._pages:
            self._pages[path] = render(self._documents[path], self._documents)
        return self._pages[path]

    def _html(self, place: str, **values: object) -> bytes:
        """Render a whole page for a path below `/docs/`, with links relative to it."""
        up = "../" * place.count("/")
        html: str = _template().render(
            docs=up or "./",
            root=f"{up}../",
            files=self._files_version,
            version=__version__,
            folders=self._folders,
            **values,
        )
        return html.encode()


@cache
def _template() -> Template:
    # Imported late: the arena starts faster without it, and few visitors open the manual.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("arena.web", ""),
        autoescape=True,
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    return templates.get_template("manual.jinja")


def _question(query: str) -> str:
    try:
        fields = parse_qs(query, max_num_fields=_MOST_FIELDS)
    except ValueError:
        return ""
    return fields.get("q", [""])[0].strip()[:_MOST_LETTERS]
