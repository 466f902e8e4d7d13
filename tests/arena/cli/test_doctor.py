"""`arena doctor`, called as people do."""

from __future__ import annotations

from typing import Any

import pytest

from arena.sandbox import bubblewrap
from arena.sandbox.languages import Language


def test_every_layer_is_shown_with_why_not(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "probe", lambda **_: "bubblewrap is not installed")
    ran = run("doctor")

    assert (ran.status, ran.err) == (0, "")
    assert "not isolated: bubblewrap is not installed" in ran.out
    assert "sampler" in ran.out
    assert "cgroup v2" in ran.out


def test_the_document_has_a_field_for_all_that_is_shown(run: Any) -> None:
    document = run("doctor", "--json").document

    assert list(document) == ["layers"]
    assert len(document["layers"]) == 9 + len(Language)
    for layer in document["layers"]:
        assert list(layer) == ["name", "active", "detail"]
        assert isinstance(layer["active"], bool)
        assert layer["detail"]
