"""Who is here to compete, and whose names are taken."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from arena.competitions.bot_supervisor import BotSupervisor
from arena.competitions.competition import Competition
from arena.competitions.presence import Presence
from arena.referee.sessions import BotSessions


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("ANN", "ann/gin is connected"),
        ("ben", "ben has lost its connection and may come back"),
        ("cem", "cem/akq takes part in cup-1, which is not over"),
        ("dan", None),  # the instructor has taken it out
        ("flo", "flo takes part in cup-1, which is not over"),
        ("ours", "ours is here"),
        ("pat", "pat is here"),
        ("zed", None),
    ],
)
def test_what_somebodys_bots_do_here(name: str, use: str | None) -> None:
    here = {"ann/gin": object(), "ben": None}
    players = {
        one: SimpleNamespace(name=one, connection=connection) for one, connection in here.items()
    }
    cup = SimpleNamespace(
        id="cup-1",
        plan=SimpleNamespace(players=("cem/akq", "dan")),
        submitted=("flo",),
        ledger=SimpleNamespace(book=SimpleNamespace(removed={"dan": "removed by Eva"})),
    )
    presence = Presence(
        cast(BotSessions, players),
        cast(BotSupervisor, ["ours"]),
        [cast(Competition, cup)],
        lambda: {"pat"},
    )

    assert presence.use_of(name) == use
