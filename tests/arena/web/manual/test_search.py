from __future__ import annotations

import pytest

from arena.web.manual.documents import Document
from arena.web.manual.markdown import render
from arena.web.manual.search import MOST_HITS, SearchHit, SearchIndex

WIRE = """# The wire

## Time

A decision that takes no longer than a second costs nothing of the bank.

## Space

A frame has room for a decision.
"""
BOTS = "# Bots\n\nThe Bank is told as `bank_ms`, and how long time is left.\n"


@pytest.fixture
def index() -> SearchIndex:
    texts = {"wire.md": WIRE, "bots.md": BOTS}
    return SearchIndex(render(Document(*item), texts) for item in texts.items())


def titles(hits: list[SearchHit]) -> list[str]:
    return [hit.section.title for hit in hits]


@pytest.mark.parametrize(
    ("question", "found"),
    [
        pytest.param("decision bank", ["Time"], id="all_words_must_be_there"),
        ("decision", ["Time", "Space"]),
        ("nothing-of-the-kind", []),
        pytest.param("time", ["Time", "Bots"], id="a_title_is_worth_more_than_a_mention"),
        pytest.param("wire frame", ["Space"], id="the_title_of_the_document_counts_as_said"),
        ("bank", ["Bots", "Time"]),
        pytest.param("BANK", ["Bots", "Time"], id="capitals_make_no_difference"),
        pytest.param("", [], id="no_question_has_no_answer"),
        ("  ", []),
        ("\n", []),
        pytest.param(".*", [], id="what_is_a_pattern_elsewhere_is_a_word_here"),
        ("bank_ms", ["Bots"]),
    ],
)
def test_a_question_finds_sections(index: SearchIndex, question: str, found: list[str]) -> None:
    assert titles(index.search(question)) == found


def test_what_is_said_comes_before_what_stands_in_code() -> None:
    text = "# Frames\n\n```\nnews news news\n```\n\n# Words\n\nThere is news.\n"
    index = SearchIndex([render(Document("a.md", text), ())])
    words, frames = index.search("news")

    assert titles([words, frames]) == ["Words", "Frames"]
    assert [piece.text for piece in frames.snippet if piece.is_match] == ["news"] * 3


def test_a_snippet_marks_the_words(index: SearchIndex) -> None:
    [hit] = index.search("bank second")
    marked = [piece.text for piece in hit.snippet if piece.is_match]

    assert marked == ["second", "bank"]
    assert "".join(piece.text for piece in hit.snippet) == hit.section.text


@pytest.mark.parametrize(
    ("before", "after"), [("word " * 100, " word" * 100), ("x" * 500, "y" * 500)]
)
def test_a_snippet_of_a_long_text_is_short(before: str, after: str) -> None:
    text = f"# Long\n\n{before} needle{after}\n"
    [hit] = SearchIndex([render(Document("a.md", text), ())]).search("needle")
    shown = "".join(piece.text for piece in hit.snippet)

    assert "needle" in shown
    assert len(shown) < 300
    assert shown[:2] + shown[-2:] == "…  …"


def test_there_are_only_so_many_hits_and_words() -> None:
    text = "".join(f"# Part {number}\n\nsaid\n\n" for number in range(MOST_HITS + 1))
    index = SearchIndex([render(Document("a.md", text), ())])

    assert len(index.search("said")) == MOST_HITS
    assert len(index.search("said " * 8 + "never")) == MOST_HITS
