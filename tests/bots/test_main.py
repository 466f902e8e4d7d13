"""`python -m bots`, called wrong."""

from __future__ import annotations

import sys

import pytest

from bots.__main__ import main


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "missing argument 'GAME NAME | FILE.py'"),
        (["akq"], "expected GAME NAME or FILE.py"),
        (
            ["akq", "nash", "--tables", "x"],
            "invalid value for '--tables': 'x' is not a",
        ),
        (["akq", "nash", "--colour", "1"], "no such option"),
    ],
)
def test_called_wrong_is_one_line_in_the_arenas_words(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
) -> None:
    monkeypatch.setattr(sys, "argv", ["bots", *words])

    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"arena: {said}")
    assert line.endswith("; see 'python -m bots --help'")
