from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from arena.records.document import MatchDocument, sealed
from protocol.messages import Ending, Termination

DOCUMENT = MatchDocument(
    match="m-1",
    competition="akq-1",
    pairing=3,
    players=("ann", "Łukasz"),
    game="ace_king_queen",
    scores=(4, -4),
    points=(0, 1),
    termination=Termination(Ending.TIMEOUT, 1, "too late"),
    started_at=100.25,
    finished_at=101.0,
    digest="",
    record=msgspec.Raw(b'{"game":"ace_king_queen"}'),
)


def test_J6_a_seal_can_be_made_in_any_language() -> None:
    text = (
        '["m-1","akq-1",3,["ann","Łukasz"],[4,-4],[0,1],"timeout",1,"too late",100.25,101.0]'
        '\n{"game":"ace_king_queen"}'
    )

    assert sealed(DOCUMENT) == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    "change",
    [
        {"match": "m-2"},
        {"competition": "akq-2"},
        {"pairing": 4},
        {"players": ("Łukasz", "ann")},
        {"scores": (5, -5)},
        {"points": (1, 0)},
        {"termination": Termination(Ending.CPU, 1, "too late")},
        {"termination": Termination(Ending.TIMEOUT, 0, "too late")},
        {"termination": Termination(Ending.TIMEOUT, 1, "too lazy")},
        {"started_at": 100.5},
        {"finished_at": 101.5},
        {"record": msgspec.Raw(b'{"game":"ace_king_queem"}')},
    ],
)
def test_J6_a_seal_is_another_whatever_changes(change: dict[str, Any]) -> None:
    assert sealed(replace(DOCUMENT, **change)) != sealed(DOCUMENT)


def test_a_void_match_has_a_seal_too() -> None:
    void = replace(DOCUMENT, termination=Termination(Ending.VOID))

    assert len(sealed(void)) == 64
