from __future__ import annotations

import pytest

from arena.authoring.template import Values, fill

CARDS: list[Values] = [{"card": "As"}, {"card": "Td"}]


def test_a_text_stands_in_the_place_of_its_tag() -> None:
    assert fill("// {{title}}: {{card}}\n", {"title": "Gin", "card": "As"}) == (
        "// Gin: As\n"
    )


def test_a_list_repeats_the_lines_between_its_tags() -> None:
    template = "a {\n  {{#cards}}\n  {{card}} of {{game}};\n  {{/cards}}\n}\n"

    assert fill(template, {"cards": CARDS, "game": "gin"}) == (
        "a {\n  As of gin;\n  Td of gin;\n}\n"
    )
    assert fill(template, {"cards": [], "game": "gin"}) == "a {\n}\n"


def test_a_list_may_stand_in_a_list() -> None:
    template = "{{#hands}}\n{{seat}}:\n{{#cards}}\n- {{card}}\n{{/cards}}\n{{/hands}}\n"
    hands: list[Values] = [
        {"seat": "0", "cards": CARDS},
        {"seat": "1", "cards": CARDS[:1]},
    ]

    assert fill(template, {"hands": hands}) == "0:\n- As\n- Td\n1:\n- As\n"


@pytest.mark.parametrize(
    ("flag", "filled"), [(True, "yes\n"), ("x", "yes\n"), (False, "no\n"), ("", "no\n")]
)
def test_a_flag_chooses(flag: bool | str, filled: str) -> None:
    template = "{{#flag}}\nyes\n{{/flag}}\n{{^flag}}\nno\n{{/flag}}\n"

    assert fill(template, {"flag": flag}) == filled


def test_an_empty_line_of_a_comment_ends_behind_its_mark() -> None:
    assert fill(" * {{note}}\n", {"note": ""}) == " *\n"


def test_braces_that_are_no_tags_stay() -> None:
    code = 'x := map[string]struct{ A int }{{1}, {2}}; json j{{"a", 1}};\n'

    assert fill(code, {}) == code


def test_a_name_that_is_not_there_is_an_error() -> None:
    with pytest.raises(KeyError):
        fill("{{title}}\n", {})
    with pytest.raises(KeyError):
        fill("{{#cards}}\n{{/cards}}\n", {})


def test_a_section_without_an_end_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"expected \{\{/cards\}\} after line 1"):
        fill("{{#cards}}\n{{card}}\n", {"cards": CARDS})
