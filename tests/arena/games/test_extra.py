"""The extra `[analysis]` is there, or one line says what to install."""

from __future__ import annotations

import sys

import pytest

from arena.games.extra import need_analysis
from protocol.errors import UsageError


@pytest.mark.parametrize("package", ["numpy", "scipy"])
def test_one_line_says_what_to_install_where_one_is_missing(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(UsageError) as refused:
        need_analysis()

    expected = "numpy and scipy are not installed: pip install 'card-arena[analysis]'"
    assert str(refused.value) == expected
