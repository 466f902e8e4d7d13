"""Stories as data: files NAME.cases, a paragraph for each, and what a test does step by step.

    == J7 a title of its own
    # a remark
    table ann ben · stall 0.3 · goes on
    3 times: wait 1 · tick

Steps are parted by ` · `; what they mean is up to the test that plays them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

__all__ = ["step_cases"]


def step_cases(file: Path) -> list[Any]:
    """The parameters of a test: the steps of each paragraph, which is named by its title."""
    paragraphs = re.split(r"^== ", file.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    named = (paragraph.partition("\n") for paragraph in paragraphs)
    return [pytest.param([*_steps(text)], id=title.replace(" ", "_")) for title, _, text in named]


def _steps(text: str) -> Iterator[str]:
    for line in text.splitlines():
        found = re.fullmatch(r"(\d+) times: (.*)", line)
        times, steps = found.groups() if found else (1, line)
        if not line.startswith("#"):
            yield from list(filter(None, steps.split(" · "))) * int(times)
