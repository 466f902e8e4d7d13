"""Matches as documents: written, laid out anew, read again."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from arena.records.document import MatchDocument, read
from arena.records.verify import check
from arena.storage.reader import document_of
from arena.storage.store import Store
from protocol.errors import UsageError
from tests.support.sample_database import play, write


@pytest.fixture(scope="module")
def sheets(tmp_path_factory: pytest.TempPathFactory) -> list[MatchDocument]:
    file = write(tmp_path_factory.mktemp("sheets") / "arena.db")
    with Store(file, create=False) as store:
        return [document_of(*stored) for stored in store.sealed_matches()]


def test_a_sheet_comes_back_as_it_was(sheets: list[MatchDocument]) -> None:
    for document in sheets:
        again = read(document.to_json())

        assert isinstance(again, MatchDocument)
        assert again.to_json() == document.to_json()
        assert check(again).reasons == ()


def test_white_space_does_not_break_the_seal(sheets: list[MatchDocument]) -> None:
    pretty = msgspec.json.format(sheets[1].to_json(), indent=4)

    again = read(pretty)

    assert isinstance(again, MatchDocument)
    assert check(again).reasons == ()


def test_what_another_program_has_changed_breaks_it(sheets: list[MatchDocument]) -> None:
    document = json.loads(sheets[1].to_json())
    document["players"].reverse()

    again = read(json.dumps(document, ensure_ascii=False).encode())

    assert isinstance(again, MatchDocument)
    assert check(again).reasons == ("its digest does not fit its rows and its record",)


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


def test_the_sample_holds_what_it_says(tmp_path: Path) -> None:
    with Store(write(tmp_path / "arena.db"), create=False) as store:
        kinds = {
            (played.game, played.result.termination.kind.value)
            for played, _ in store.sealed_matches()
        }

    assert len({game for game, _ in kinds}) == 5
    assert {kind for _, kind in kinds} == {"completed", "void", "illegal"}
