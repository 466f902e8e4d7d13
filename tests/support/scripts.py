"""Cases that a `Stage` plays, whose steps are words with a method each; `cases.py` has their form.

    == what it shows
    given a_day=1                                for who sets the stage
    ann opens · pass 21 · ann,bob pongs

A step that begins with `pass` is the method `do_pass`; another one begins with a name, or with
several, and is a method of its second word, here `by_pongs`.
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.cases import paragraphs, steps_of
from tests.support.rule_cases import value

__all__ = ["Case", "Stage", "at", "cases", "fields", "fit", "fits", "like"]


class Case(NamedTuple):
    """A paragraph of a file."""

    given: dict[str, Any]
    steps: tuple[str, ...]


class Stage:
    """Plays cases; every word of them is a method of a class derived from this."""

    async def play(self, case: Case) -> None:
        for step in case.steps:
            try:
                await self._step(step)
            except BaseException as error:
                error.add_note(f"in the step: {step}")
                raise

    async def _step(self, step: str) -> None:
        first, _, rest = step.partition(" ")
        if do := getattr(self, f"do_{first}", None):
            await _done(do(rest))
            return
        verb, _, rest = rest.partition(" ")
        for name in first.split(","):
            await _done(getattr(self, f"by_{verb}")(name, rest))


async def _done(result: Any) -> None:
    if inspect.isawaitable(result):
        await result


def cases(file: Path) -> list[Any]:
    """The cases of a file, as arguments of a test."""
    found = []
    for title, lines in [*paragraphs(file).items()][1:]:
        given = [line.removeprefix("given ") for line in lines if line.startswith("given ")]
        steps = steps_of(line for line in lines if not line.startswith("given "))
        case = Case(fields(" ".join(given)), tuple(steps))
        found.append(pytest.param(case, id=title.replace(" ", "_")))
    return found


def fields(words: str) -> dict[str, Any]:
    """What `name=value name=value` says."""
    return {name: value(text) for name, _, text in (word.partition("=") for word in words.split())}


def fits(document: Any, expected: str) -> bool:
    try:
        fit(document, expected)
    except (AssertionError, KeyError):
        return False
    return True


def fit(document: Any, expected: str) -> None:
    """Hold a document in JSON against `path=value path~part path<number: its text`.

    A path `a.b` leads through objects, and through lists to all that their items have there; `a.0`
    is an item, and `a.#` their number. In the text `…` stands for anything.
    """
    words, has_text, text = f" {expected}".partition(": ")
    for word in words.split():
        path, sign, wanted = re.fullmatch(r"([^=~<>]+)([=~<>])(.*)", word).groups()  # type: ignore[union-attr]
        found = at(document, path)
        if sign == "=":
            assert json.dumps(found) == json.dumps(value(wanted)), path  # as text: 1 is not true
        elif sign == "~":
            near = isinstance(found, float | int) and abs(found - float(wanted)) <= 1
            assert near or wanted in found, path
        else:
            assert found > float(wanted) if sign == ">" else found < float(wanted), path
    if has_text:
        assert like(document["text"], text), document["text"]


def like(text: str, pattern: str) -> bool:
    """Whether a text is as a pattern, in which `…` stands for anything."""
    return bool(re.fullmatch(".*".join(map(re.escape, pattern.split("…"))), text, re.DOTALL))


def at(document: Any, path: str) -> Any:
    for name in path.split("."):
        if name == "#":
            document = len(document)
        elif not isinstance(document, list):
            document = document[name]
        elif name.lstrip("-").isdigit():
            document = document[int(name)]
        else:
            document = [item[name] for item in document]
    return document
