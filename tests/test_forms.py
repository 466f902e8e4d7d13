"""Forms in which no test is written here: it could not fail, or would fail by a machine's speed."""

from __future__ import annotations

import ast
from functools import cache

from tests.support.documents import parsed

_SAYS = {"fail", "raises", "warns", "expect", "expecting"}  # of pytest, and of a browser
_CHECKERS = {"api_test", "conventions"}  # these raise, as those whose names begin with `check_`
_OF_ANYTHING = {"close", "main", "open", "read"}  # say nothing of who asserts

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def places() -> list[tuple[str, ast.AST]]:
    """What is looked at in `tests`, with where it stands."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.Compare | ast.For
    return [
        (f"{file.as_posix()}:{node.lineno}", node)
        for file, tree in parsed(["tests"]).items()
        for node in ast.walk(tree)
        if isinstance(node, kinds)
    ]


@cache
def called_in(function: Function) -> set[str]:
    """The last names of all that it calls."""
    calls = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
    return {getattr(each, "attr", getattr(each, "id", "")) for each in calls}


@cache
def asserts(function: Function) -> bool:
    """Whether it asserts something itself."""
    called = called_in(function)
    is_checked = any(name.startswith("check_") for name in called)
    return (
        is_checked
        or bool((_SAYS | _CHECKERS) & called)
        or any(
            isinstance(node, ast.Assert)
            or (isinstance(node, ast.Raise) and "AssertionError" in ast.unparse(node))
            for node in ast.walk(function)
        )
    )


def test_every_test_asserts_something_or_calls_what_does() -> None:
    functions = [(where, each) for where, each in places() if isinstance(each, Function)]
    helpers = {each.name for _, each in functions if asserts(each)} - _OF_ANYTHING
    silent = [
        f"{where} {each.name}"
        for where, each in functions
        if each.name.startswith("test_") and not asserts(each) and not helpers & called_in(each)
    ]

    assert silent == []


def test_nothing_is_compared_with_itself() -> None:
    found = [
        where
        for where, node in places()
        if isinstance(node, ast.Compare)
        and not any(isinstance(each, ast.Call | ast.Await) for each in ast.walk(node))
        and ast.unparse(node.left) in map(ast.unparse, node.comparators)
    ]

    assert found == []


def test_no_turns_of_the_event_loop_are_counted() -> None:
    """Who waits for what happens waits until it has, or in virtual time."""
    found = [
        where
        for where, node in places()
        if isinstance(node, ast.For)
        and ast.unparse(node.iter).startswith("range(")
        and [ast.unparse(each) for each in node.body] == ["await asyncio.sleep(0)"]
    ]

    assert found == []
