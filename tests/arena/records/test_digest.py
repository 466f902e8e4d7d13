from __future__ import annotations

import hashlib
from typing import Any

import pytest

from arena.engine.match import Result
from arena.records.digest import sealed
from protocol.messages import Ending, Termination

FIELDS: dict[str, Any] = {
    "match": "m-1",
    "competition": "akq-1",
    "pairing": 3,
    "players": ("ann", "Łukasz"),
    "result": Result((4, -4), (0, 1), Termination(Ending.TIMEOUT, 1, "too late")),
    "started_at": 100.25,
    "finished_at": 101.0,
    "record": b'{"game":"ace_king_queen"}',
}


def test_J6_a_seal_can_be_made_in_any_language() -> None:
    text = (
        '["m-1","akq-1",3,["ann","Łukasz"],[4,-4],[0,1],"timeout",1,"too late",100.25,101.0]'
        '\n{"game":"ace_king_queen"}'
    )

    assert sealed(**FIELDS) == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    "change",
    [
        {"match": "m-2"},
        {"competition": "akq-2"},
        {"pairing": 4},
        {"players": ("Łukasz", "ann")},
        {"result": Result((5, -5), (0, 1), FIELDS["result"].termination)},
        {"result": Result((4, -4), (1, 0), FIELDS["result"].termination)},
        {"result": Result((4, -4), (0, 1), Termination(Ending.CPU, 1, "too late"))},
        {"result": Result((4, -4), (0, 1), Termination(Ending.TIMEOUT, 0, "too late"))},
        {"result": Result((4, -4), (0, 1), Termination(Ending.TIMEOUT, 1, "too lazy"))},
        {"started_at": 100.5},
        {"finished_at": 101.5},
        {"record": b'{"game":"ace_king_queem"}'},
    ],
)
def test_J6_a_seal_is_another_whatever_changes(change: dict[str, Any]) -> None:
    assert sealed(**FIELDS | change) != sealed(**FIELDS)


def test_a_void_match_has_a_seal_too() -> None:
    void = Result((0, 0), (0, 0), Termination(Ending.VOID))

    assert len(sealed(**FIELDS | {"result": void})) == 64
