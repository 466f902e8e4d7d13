"""Matches as documents: written, laid out anew, read again."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from arena.records.document import MatchDocument, read, sealed
from arena.records.verify import check
from arena.storage.reader import document_of
from arena.storage.store import Store
from protocol.errors import UsageError
from protocol.messages import Ending, Termination
from tests.support.sample_database import play, write


@pytest.fixture(scope="module")
def sheets(tmp_path_factory: pytest.TempPathFactory) -> list[MatchDocument]:
    file = write(tmp_path_factory.mktemp("sheets") / "arena.db")
    with Store(file, create=False) as store:
        return [document_of(*stored) for stored in store.sealed_matches()]


def test_a_sheet_comes_back_as_it_was_and_white_space_breaks_no_seal(
    sheets: list[MatchDocument],
) -> None:
    for document in sheets:
        for data in (document.to_json(), msgspec.json.format(document.to_json(), indent=4)):
            again = read(data)

            assert isinstance(again, MatchDocument)
            assert again.to_json() == document.to_json()
            assert check(again).reasons == ()


def test_a_bare_record_is_read_as_one() -> None:
    record = play("gin_rummy").record

    assert read(record.to_json()) == type(record).from_json(record.to_json())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{",
        b'{"record": 1}',
        b'{"game": "gin_rummy"}',
        b"\xff\xfe{}",
        b'{"a": "\x00"}',
        b'{"a":' + b"[" * 100_000,
    ],
)
def test_what_is_no_match_is_refused_in_a_line(data: bytes) -> None:
    with pytest.raises(UsageError) as refused:
        read(data)

    assert "\n" not in str(refused.value)


# ---- The seal


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
