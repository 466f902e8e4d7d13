"""All `*.cram` of this folder: command lines with what they print."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.cram import CramCase, cases

CASES = cases(Path(__file__).parent)


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_commands_print(
    case: CramCase,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    zone: Callable[[str], None],
) -> None:
    zone("UTC")  # columns of times are as wide everywhere
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for name in case.fixtures:
        request.getfixturevalue(name)
    shown = case.played(tmp_path)

    if request.config.getoption("--update", default=False):
        case.write(shown)
    else:
        assert shown == case.lines
