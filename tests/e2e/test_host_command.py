"""`arena host` where it cannot join its bus."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.in_process import run_here

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize(
    ("words", "said"),
    [(("--bus-key", "none.nk"), "cannot read none.nk"), ((), "nats://127.0.0.1:1: ")],
)
def test_a_bus_that_cannot_be_joined_is_one_line(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    where = ("--cache", str(tmp_path), "--bus", "nats://127.0.0.1:1")
    done = run_here("host", *where, *words)

    assert done.status in (1, 2)
    [line] = done.err.splitlines()
    assert said in line
