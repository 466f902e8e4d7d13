"""The manual without a network: its addresses, its policy, and that typed text is escaped."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import quote

import pytest
from websockets.datastructures import Headers

from arena.server.reply import Reply
from arena.web.files import page_files
from arena.web.manual.documents import documents
from arena.web.manual_pages import ManualPages

FILES = page_files()
MANUAL = ManualPages(FILES.version)


def get(path: str, query: str = "") -> Reply:
    return MANUAL.answer(path, query, Headers())


@pytest.mark.parametrize("path", documents())
def test_every_document_has_a_page_that_leads_to_all_others(path: str) -> None:
    answer = get(f"/docs/{path}")
    html = answer.body.decode()
    up = "../" * path.count("/") or "./"

    assert answer.status == 200
    assert dict(answer.headers)["Content-Type"] == "text/html; charset=utf-8"
    for other in documents():
        assert f'href="{up}{other}"' in html
    assert html.count('aria-current="page"') == 2, "of the bar and of the list"


@pytest.mark.parametrize("path", ["/docs/", "/docs/bots/README.md", "/docs/a/b/c.md"])
def test_the_styles_are_those_of_the_page(path: str) -> None:
    html = get(path).body.decode()
    styles = re.findall(r'rel="stylesheet" href="([^"]+)"', html)

    assert len(styles) == 2
    for style in styles:
        up, _, name = style.rpartition("../")
        assert up.count("../") + 1 == path.count("/") - 1
        assert FILES.answer(f"/{name}", Headers()).status == 200


def test_the_search_leads_to_sections() -> None:
    html = get("/docs/", "q=hard_ms").body.decode()
    hits = re.findall(r'<a href="\./([^"#]+)#([^"]+)">', html)

    assert hits
    assert "<mark>hard_ms</mark>" in html
    for path, anchor in hits:
        assert f'id="{anchor}"' in get(f"/docs/{path}").body.decode()


@pytest.mark.parametrize(
    "typed", ['"><script>alert(1)</script>', "<img src=x onerror=y>", "</title>"]
)
def test_what_is_typed_is_text(typed: str) -> None:
    html = get("/docs/", f"q={quote(typed)}").body.decode()
    harmless = get("/docs/", "q=xyzzy").body.decode()

    assert html.count(typed) == harmless.count(typed)
    assert unescape(html).count(typed) == harmless.count("xyzzy") + html.count(typed)
