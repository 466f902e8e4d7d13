"""Which matches share a worker's processes; the player itself is tested with real ones (e2e)."""

from __future__ import annotations

import pytest

from arena.formats.spec import Form, limits_of
from arena.workers.match_player import launch_limits
from protocol.messages import Limits


def test_a_ladder_and_a_round_robin_share_their_processes() -> None:
    ladder, other = (limits_of(form, Limits()) for form in (Form.LADDER, Form.ROUND_ROBIN))

    assert ladder != other
    assert launch_limits(ladder) == launch_limits(other)


def test_what_decisions_may_take_is_no_matter_of_a_process() -> None:
    assert launch_limits(Limits(wall_bank_ms=1, hard_ms=1)) == launch_limits(Limits())


@pytest.mark.parametrize("limits", [Limits(memory_mib=100), Limits(start_ms=70_000)])
def test_what_a_process_is_started_with_is_its_own(limits: Limits) -> None:
    assert launch_limits(limits) != launch_limits(Limits())
