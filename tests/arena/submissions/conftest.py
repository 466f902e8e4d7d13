"""Languages that are not tried anew for every test, which takes a second or two."""

from __future__ import annotations

import pytest

from arena.sandbox.toolchains import Toolchain
from arena.submissions import service

LANGUAGES = (Toolchain("python", "Python", "Python 3"), Toolchain("go", "Go", "", "golang-go"))


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> tuple[Toolchain, ...]:
    monkeypatch.setattr(service, "installed", lambda: LANGUAGES)
    return LANGUAGES
