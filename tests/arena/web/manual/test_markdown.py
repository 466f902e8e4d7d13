from __future__ import annotations

import posixpath
import re
from urllib.parse import unquote, urlsplit

import pytest

from arena.web.manual.documents import Document, documents
from arena.web.manual.markdown import RenderedDocument, render

KNOWN = {"README.md", "LICENSE", "bots/README.md", "protocol/README.md"}


def html_of(text: str, path: str = "protocol/README.md") -> str:
    return render(Document(path, text), KNOWN).html


@pytest.fixture(scope="module")
def pages() -> dict[str, RenderedDocument]:
    found = documents()
    return {path: render(document, found) for path, document in found.items()}


def test_raw_html_is_shown_as_text() -> None:
    html = html_of("<script>alert(1)</script>\n\nA <b onclick=x>word</b>.\n")

    assert "<script" not in html
    assert "<b" not in html
    assert "&lt;script&gt;" in html


def test_a_link_that_would_run_something_is_none() -> None:
    assert "href" not in html_of("[a](javascript:alert(1))\n")


@pytest.mark.parametrize(
    ("link", "href"),
    [
        ("[a](../bots/README.md#b)", "../bots/README.md#b"),
        ("[a](#here)", "#here"),
        ("[a](../bots)", "../bots/README.md"),
        ("[a](../bots/#b)", "../bots/README.md#b"),
        ("[a](../LICENSE)", "../LICENSE"),
        ("[a](https://example.org/x)", "https://example.org/x"),
        ("`bots/README.md`", "../bots/README.md"),
        ("[`bots/README.md`](#a)", "#a"),
    ],
)
def test_a_link_leads_to_a_page(link: str, href: str) -> None:
    assert re.findall(r'href="(.*?)"', html_of(link)) == [href]


@pytest.mark.parametrize(
    "link", ["[a](codec.py)", "[a](../arena)", "`README.md`", "`bots/client.py`"]
)
def test_what_is_no_document_is_no_link(link: str) -> None:
    html = html_of(link)

    assert "<a" not in html
    assert "</a>" not in html
    assert re.search(r"a|README.md|bots/client.py", html)


def test_a_link_after_one_that_leads_nowhere_is_one() -> None:
    html = html_of("[a](codec.py) [b](../LICENSE)")

    assert html == '<p>a <a href="../LICENSE">b</a></p>\n'


def test_a_name_in_code_is_a_link_in_the_root() -> None:
    assert 'href="LICENSE"' in html_of("`LICENSE`", "README.md")


def test_headings_have_the_anchors_that_links_expect() -> None:
    text = "# The *wire*: `a_b`\n\n## Again, again\n\n## Again, again\n\nSaid.\n"
    sections = render(Document("a.md", text), KNOWN).sections

    assert [(one.level, one.title, one.anchor) for one in sections] == [
        (1, "The wire: a_b", "the-wire-a_b"),
        (2, "Again, again", "again-again"),
        (2, "Again, again", "again-again-1"),
    ]
    assert sections[-1].text == "Said."
    assert 'id="again-again-1"' in html_of(text)


def test_what_stands_before_a_heading_is_found_under_the_title() -> None:
    [section] = render(Document("a.md", "One\ntwo `three`.\n"), KNOWN).sections

    assert (section.title, section.text) == ("One", "One two three.")


def test_code_and_tables_scroll_by_themselves() -> None:
    html = html_of("```sh\na < b\n```\n\n    c & d\n\n| a |\n|---|\n| b |\n")

    assert '<pre tabindex="0"><code>a &lt; b\n</code></pre>' in html
    assert '<pre tabindex="0"><code>c &amp; d\n</code></pre>' in html
    assert '<div class="wide" tabindex="0"><table>' in html
    assert "</table></div>" in html


def test_a_text_without_markdown_is_shown_as_it_is() -> None:
    shown = render(Document("LICENSE", "MIT\n\n# (c) <me>\n"), KNOWN)

    assert shown.html == '<pre tabindex="0">MIT\n\n# (c) &lt;me&gt;\n</pre>\n'


def test_every_link_between_the_documents_leads_somewhere(
    pages: dict[str, RenderedDocument],
) -> None:
    for path, shown in pages.items():
        for href in re.findall(r'href="(.*?)"', shown.html):
            parts = urlsplit(href)
            if parts.scheme:
                continue
            folder = posixpath.dirname(path)
            target = posixpath.normpath(posixpath.join(folder, unquote(parts.path)))
            there = pages[target if parts.path else path]
            if parts.fragment:
                assert parts.fragment in [one.anchor for one in there.sections], href


def test_no_markdown_is_left_in_the_documents(pages: dict[str, RenderedDocument]) -> None:
    for path, shown in pages.items():
        plain = re.sub(r"<pre.*?</pre>|<code>.*?</code>", "", shown.html, flags=re.S)

        assert "```" not in plain, path
        assert not re.search(r"^\|", plain, re.MULTILINE), path
        assert "](" not in plain, path
