from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

from arena.competitions.competition import Competition
from arena.competitions.listener import Listener
from arena.competitions.relay import Relay
from arena.formats.spec import Form


async def test_bots_that_are_freed_together_are_offered_once() -> None:
    offers: list[Sequence[str]] = []
    plan = SimpleNamespace(form=Form.ROUND_ROBIN)
    competition = SimpleNamespace(seat=offers.append, playing=0, rest=0.0, plan=plan)
    relay = Relay([cast(Competition, competition)], Listener(), lambda verdict: None)
    relay.freed(("ann", "ben"))
    relay.freed(("cem", "ann"))
    await asyncio.sleep(0)

    assert offers == [("ann", "ben", "cem")]

    relay.freed(("ben",))
    await asyncio.sleep(0)

    assert offers[1:] == [("ben",)]
