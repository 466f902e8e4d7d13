from __future__ import annotations

from tests.tools.mutants import mutants_of, sample
from tests.tools.sentences import rules_of, sentences_of
from tests.tools.size import Size, size_of

CODE = '''
"""A module."""

LIMIT = 3


class Gate:
    """A gate."""

    def open(self, count: int = 1) -> bool:
        """Open it."""
        assert count != 2, "nobody asks"
        if count > LIMIT and self.is_free:  # Rules 4
            self.log("too many at once")
        return f"{count}" in {
            "one"}
'''


def test_a_mutant_changes_one_thing_in_a_function() -> None:
    made = {
        mutant.name.partition(": ")[2]: mutant for mutant in mutants_of("arena/x/gate.py", CODE)
    }

    assert {*made} == {
        "count > LIMIT and self.is_free -> count > LIMIT or self.is_free",
        "count > LIMIT -> count >= LIMIT",
        'self.log("too many at once") -> pass',
        'return f"{count}" in { "one"} -> return None',
        "f\"{count}\" in { \"one\"} -> f'{count}' not in {'one'}",
        "\"one\" -> 'XXone'",
    }
    changed = made["count > LIMIT -> count >= LIMIT"]
    assert changed.code == CODE.replace("count > L", "count >= L")
    assert changed.lines == [13]


def test_a_sample_has_some_mutants_of_each_package_and_those_of_all_first() -> None:
    files = {f"arena/{name}/gate.py": CODE * 9 for name in ("cli", "web")}

    drawn = [mutant.path for mutant in sample(files, 33, seed=1)]

    assert {*drawn[:2]} == {*files}
    assert min(map(drawn.count, files)) >= 15
    assert drawn == [mutant.path for mutant in sample(files, 33, seed=1)]


def test_size_knows_code_from_prose() -> None:
    assert size_of("arena/x/gate.py", 'LIMIT = f"{1}"  # one\n\n"""Three\nlines."""\n') == Size(
        4, 1, 2, 3, 1
    )
    assert size_of("tests/x.cases", "== one\n\n# two\n") == Size(3, 2, 0, 0, 0)
    assert size_of("arena/x/page.js", "1\n") == Size()


def test_a_sentence_is_a_function_or_a_case() -> None:
    files = {
        "tests/test_x.py": "def test_a(): ...\ndef b(): ...\n",
        "tests/x.cases": "== T6 c\n> d\n",
    }

    assert [*sentences_of(files)] == [("tests/test_x.py", "test_a"), ("tests/x.cases", "T6 c")]
    assert rules_of({"": "- A1. One\n- **A2.** Two\n**G3.** Three\nA4 is none.\n"}) == {
        "A1",
        "A2",
        "G3",
    }
